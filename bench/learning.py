"""Does history help? Plans from learned figures against plans from the user's, judged with the true run times.

    python -m bench.learning [--runs 4] [--seeds 3] [--scheduler heft] [--programs fork_join ...]

Histories are simulated: each run draws its times around the truth with a noise of 5 %. One execution in ten is an
outlier of 2 to 6 times, and so are three in ten of those that are the first of their kind on a host. The plan of a
run is made from what was learned so far, and is judged by a replay with the true times. Beside the programs of the
bars there are shapes that the learning was not developed on. With history "of another program" the executions before
the first run are those of a program of the same shape with the same functions and other tasks.

The last columns compare plans with history to the plan without: their ratio in the median, and the worst. It takes
about half a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

import headrace as hr
from headrace.core.scheduler import Problem
from headrace.model.graph import Floats, Graph
from headrace.model.platform import Host, Site
from headrace.planners.bounds import lower_bound
from headrace.predict.kind_fit import OTHER
from headrace.predict.learning import Observed, input_sizes, learn
from headrace.predict.parameters import task_parameters
from headrace.simulator.replay.replay import replay

SPEEDS = (4.0, 2.0, 1.0, 1.0)
NOISE, OUTLIERS, FIRST_SLOW = 0.05, 0.1, 0.3


def fork_join(rng: np.random.Generator) -> hr.Program:
    """Three phases of parallel tasks of one kind and very different lengths, joined after each."""
    program = hr.Program("fork-join")
    last = None
    for phase in range(3):
        made = [
            program.task(
                None,
                kind="work",
                name=f"w{phase}.{k}",
                inputs=[last] if last else [],
                work=w,
                outputs={f"x{phase}.{k}": 1e4},
            )
            for k, w in enumerate(rng.uniform(0.2, 3.0, 16))
        ]
        last = program.task(
            None, kind="join", name=f"j{phase}", inputs=made, work=0.1, outputs={f"y{phase}": 1e4}
        )
    return program


def fft(rng: np.random.Generator, size: float = 8e6 / 16) -> hr.Program:
    """A butterfly over 16 blocks, by default of 8 MB in all."""
    program = hr.Program("fft")
    row = [
        program.task(None, kind="split", name=f"s{k}", work=0.1, outputs={f"d0.{k}": size}) for k in range(16)
    ]
    for level in range(4):
        row = [
            program.task(
                None,
                kind="butterfly",
                name=f"b{level}.{k}",
                inputs=[row[k], row[k ^ (1 << level)]],
                work=0.4 * rng.uniform(0.8, 1.25),
                outputs={f"d{level + 1}.{k}": size},
            )
            for k in range(16)
        ]
    return program


def fft_large(rng: np.random.Generator) -> hr.Program:
    """The same with blocks of 8 MB each."""
    return fft(rng, 8e6)


def chain_and_sides(rng: np.random.Generator) -> hr.Program:
    """A chain that bounds the makespan, and independent tasks of the same kind beside it."""
    program = hr.Program("chain")
    last = None
    for k in range(12):
        last = program.task(
            None, kind="step", name=f"c{k}", inputs=[last] if last else [], work=2.0, outputs={f"c{k}": 1e5}
        )
    for k, w in enumerate(rng.uniform(0.3, 4.0, 20)):
        program.task(None, kind="step", name=f"side{k}", work=w, outputs={f"side{k}": 1e4})
    return program


def layers(rng: np.random.Generator) -> hr.Program:
    """Held out: random layers, three kinds, run times that follow the input size."""
    program = hr.Program("layers")
    above = [program.input(f"in{k}", size=float(rng.uniform(1e5, 4e6))) for k in range(8)]
    size = {item.name: item.size for item in above}
    for level in range(5):
        made = []
        for k in range(10):
            inputs = [above[i] for i in rng.choice(len(above), 2, replace=False)]
            read = sum(size[i.name] for i in inputs)
            item = program.task(
                None,
                kind=f"kind{level % 3}",
                name=f"t{level}.{k}",
                inputs=inputs,
                work=0.2 + read * (1 + level % 3) * 3e-7,
                outputs={f"o{level}.{k}": read * 0.4},
            )
            size[item.name] = read * 0.4
            made.append(item)
        above = made
    return program


def pipelines(rng: np.random.Generator) -> hr.Program:
    """Held out: independent chains of different kinds, lognormal lengths."""
    program = hr.Program("pipelines")
    for k in range(8):
        last = None
        for stage, kind in enumerate(("read", "filter", "fit", "write")):
            last = program.task(
                None,
                kind=kind,
                name=f"{kind}{k}",
                inputs=[last] if last else [],
                work=float(rng.lognormal(stage * 0.3 - 0.5, 0.8)),
                outputs={f"{kind}.{k}": 3e5},
            )
    return program


def bag(rng: np.random.Generator) -> hr.Program:
    """Held out: a bag of tasks of one kind."""
    program = hr.Program("bag")
    for k, w in enumerate(rng.pareto(2.0, 40) + 0.2):
        program.task(None, kind="job", name=f"job{k}", work=float(w), outputs={f"o{k}": 1e3})
    return program


def random_graph(rng: np.random.Generator) -> hr.Program:
    """Held out: each task reads up to three of the eight before it; four kinds, lognormal lengths."""
    program = hr.Program("random")
    made: list[hr.Data] = []
    for k in range(50):
        near = made[-8:]
        chosen = rng.choice(len(near), min(len(near), int(rng.integers(0, 4))), replace=False) if near else []
        kind = int(rng.integers(4))
        made.append(
            program.task(
                None,
                kind=f"kind{kind}",
                name=f"t{k}",
                inputs=[near[i] for i in chosen],
                work=float(rng.lognormal(0.3 * kind, 0.6)),
                outputs={f"o{k}": float(rng.uniform(1e4, 1e7))},
            )
        )
    return program


def sweep(rng: np.random.Generator) -> hr.Program:
    """Held out: tasks of one function whose run time follows the product of two parameters."""
    program = hr.Program("sweep")
    for k in range(30):
        rows, rounds = int(rng.integers(10, 200)), int(rng.integers(1, 20))
        program.task(
            partial(_iterate, rows=rows, rounds=rounds),
            kind="iterate",
            name=f"s{k}",
            work=rows * rounds * 1e-3,
            outputs={f"o{k}": 1e4},
        )
    return program


def _iterate(*, rows: int, rounds: int) -> bytes:
    """Never executed here: what it receives counts."""
    return bytes(rows * rounds)


PROGRAMS: tuple[Callable[[np.random.Generator], hr.Program], ...] = (
    fork_join, fft, chain_and_sides, layers, pipelines, bag, random_graph, sweep,
)  # fmt: skip
FIGURES: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
    "exact": lambda work, rng: work,
    "three times": lambda work, rng: 3.0 * work,
    "a third": lambda work, rng: work / 3.0,
    "each off by up to 3": lambda work, rng: work * np.exp(rng.uniform(-np.log(3), np.log(3), len(work))),
    "none": lambda work, rng: np.ones(len(work)),
}


@dataclass(frozen=True)
class Judged:
    """Makespan over bound of successive plans, and how far the promise was off."""

    ratio: list[float]
    promise: list[float]


def truth_of(
    program: hr.Program, surprise: float, rng: np.random.Generator
) -> tuple[Graph, hr.Platform, hr.Platform]:
    """The true graph, the platform as known, and as it is: speeds that differ by up to `surprise` for each kind."""
    graph = program.graph
    known = hr.Platform.local(speeds=SPEEDS)
    kinds = [k for k in graph.kinds if k]
    hosts = tuple(
        Host(
            h.name,
            h.speed,
            kinds={k: h.speed * float(np.exp(rng.uniform(-surprise, surprise))) for k in kinds},
        )
        for h in known.hosts
    )
    site = known.sites[0]
    return graph, known, replace(known, sites=(Site(site.name, hosts, site.bandwidth, site.latency),))


def histories(
    make: Callable[[np.random.Generator], hr.Program],
    figures: str,
    surprise: float,
    other: bool,
    options: argparse.Namespace,
    seed: int,
) -> Judged:
    """Plan, judge and learn several times; with `other`, starting from the executions of another program."""
    rng = np.random.default_rng(seed)
    program = make(np.random.default_rng(seed))
    graph, known, real = truth_of(program, surprise, rng)
    user = graph.with_work(FIGURES[figures](graph.work, rng))
    bound = lower_bound(Problem(graph, real))
    parameters = {task: of.numbers for task, of in task_parameters(program).items()}
    observed: list[Observed] = []
    judged = Judged([], [])
    for k in range(options.runs):
        learned = learn(user, known, observed, parameters)
        plan = hr.plan(learned.graph, learned.platform, options.scheduler)
        happened = replay(replace(plan, graph=graph, platform=real))
        judged.ratio.append(happened.makespan / bound)
        judged.promise.append(plan.makespan / happened.makespan)
        if not other:
            observed += executions(happened, user, parameters, rng)
        elif k == 0:
            second = make(np.random.default_rng(seed + 1000))
            wrong = second.graph.with_work(FIGURES[figures](second.graph.work, rng))
            first = replay(
                replace(hr.plan(wrong, known, options.scheduler), graph=second.graph, platform=real)
            )
            numbers = {task: of.numbers for task, of in task_parameters(second).items()}
            observed += [replace(one, task=OTHER) for one in executions(first, wrong, numbers, rng)]
    return judged


def executions(
    happened: hr.Plan, user: Graph, parameters: Mapping[str, Mapping[str, float]], rng: np.random.Generator
) -> list[Observed]:
    """What the record would hold of a run."""
    sizes = input_sizes(user)
    number = {name: t for t, name in enumerate(user.task_names)}
    rows = []
    begun: set[tuple[int, str]] = set()
    for task in sorted(happened.tasks(), key=lambda task: task.start):
        t = number[task.id]
        first = (int(user.kind[t]), task.host) not in begun
        begun.add((int(user.kind[t]), task.host))
        factor = float(np.exp(rng.normal(0.0, NOISE))) * (
            float(rng.uniform(2, 6)) if rng.random() < (FIRST_SLOW if first else OUTLIERS) else 1.0
        )
        rows.append(
            Observed(
                user.kinds[user.kind[t]],
                t,
                task.host,
                (task.finish - task.start) * factor,
                float(sizes[t]),
                float(user.work[t]),
                first,
                parameters[task.id],
            )
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scheduler", default="heft")
    parser.add_argument("--programs", nargs="+", default=[make.__name__ for make in PROGRAMS])
    options = parser.parse_args()
    print(
        "program, figures, speeds, history: makespan / bound of each run | with / without history, worst | promise"
    )
    for make, figures, surprise, other in product(PROGRAMS, FIGURES, (0.0, 0.4), (False, True)):
        if make.__name__ not in options.programs:
            continue
        found = [histories(make, figures, surprise, other, options, seed) for seed in range(options.seeds)]
        ratio = np.array([one.ratio for one in found])
        against = ratio[:, 1:] / ratio[:, :1]
        shown = " ".join(f"{r:.2f}" for r in np.median(ratio, axis=0))
        print(
            f"{make.__name__:15} {figures:19} {'exact' if not surprise else 'wrong':5} {'other' if other else 'own':5}"
            f" {shown} | {np.median(against):.2f} {against.max():.2f}"
            f" | {np.median([one.promise[-1] for one in found]):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
