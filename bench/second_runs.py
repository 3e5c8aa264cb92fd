"""Real runs in succession: does each plan get as good as the first with exact figures?

    python -m bench.second_runs [--runs 5] [--factor 1 3] [--programs fork_join fft chain_and_sides] [--scale 0.3]

Workers of speeds 4:2:1:1 on this machine; tasks use CPU time and are stretched, so that they fit on two cores. For each
program and each error of the figures (1: exact, 3: each wrong by up to three times either way) a new record is filled.
It takes a minute and a half. `fft_large` has blocks of 8 MB; with `--scale 2` it takes two minutes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial

import numpy as np

import headrace as hr
from bench.learning import chain_and_sides, fft, fft_large, fork_join
from bench.spending import spend
from headrace.runtime.cluster import open_local

SPEEDS = (4.0, 2.0, 1.0, 1.0)
STRETCH = 40.0


def with_bodies(shape: hr.Program, error: float, seed: int, scale: float = 0.3) -> hr.Program:
    """The program with tasks that use their share of CPU time, and figures that are wrong by up to `error`."""
    rng = np.random.default_rng(seed)
    program = hr.Program(shape.name)
    for task in shape.tasks.values():
        seconds = task.work * scale
        (out,) = task.outputs
        size = int(shape.data[out].size or 0)
        wrong = float(np.exp(rng.uniform(-np.log(error), np.log(error)))) if error > 1 else 1.0
        program.task(
            partial(spend, seconds / STRETCH, size),
            inputs=task.inputs,
            outputs={out: size},
            work=seconds * wrong,
            name=task.name,
            kind=task.kind,
        )
    return program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=0.3, help="seconds of work 1 at speed 1")
    parser.add_argument("--factor", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--programs", nargs="+", default=["fork_join", "fft", "chain_and_sides"])
    options = parser.parse_args()
    shapes: dict[str, Callable[[np.random.Generator], hr.Program]] = {
        f.__name__: f for f in (fork_join, fft, fft_large, chain_and_sides)
    }
    with open_local(speeds=SPEEDS, stretch=STRETCH) as cluster:
        for name in options.programs:
            for error in options.factor:
                program = with_bodies(shapes[name](np.random.default_rng(1)), error, 2, options.scale)
                with tempfile.TemporaryDirectory() as folder:
                    done = [
                        hr.run(program, cluster, record=folder, output=folder) for _ in range(options.runs)
                    ]
                ratios = " ".join(f"{run.makespan / (run.bound or np.nan):.2f}" for run in done)
                promises = " ".join(f"{run.plan.makespan / run.makespan:.2f}" for run in done if run.plan)
                print(
                    f"{name:16} x{error:g}: makespan / bound {ratios}; planned / makespan {promises}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
