"""Co-scheduling: the gap on large grids, against MiniZinc with Gecode, and against proven optima.

python -m bench.coschedule scale [JOBS SECONDS] | gecode | optimal | anytime
"""

from __future__ import annotations

import math
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.tools import print_rows
from headrace.core.scheduler import Problem
from headrace.model.check import require_valid
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.planners.coschedule.planner import Coschedule
from headrace.reproductions.coscheduling_figure_3 import production

MODELS = Path(__file__).parent / "minizinc"
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from planners.coschedule.cases import grid, small_case  # noqa: E402
from planners.coschedule.oracle import least_makespan  # noqa: E402

LIMIT = 180
"""Seconds for each stage of MiniZinc, as in the paper."""


def planned(program: Program, platform: Platform, seconds: float) -> tuple[Plan, float, float]:
    """A checked plan, the seconds it took, and the seconds to the first answer."""
    began = time.perf_counter()
    first: list[float] = []
    planner = Coschedule(time=seconds, tell=lambda passed, makespan, bound: first.append(passed))
    plan = planner.plan(Problem(program.graph, platform))
    took = time.perf_counter() - began
    require_valid(program, platform, plan)
    return plan, took, first[0]


def scale(jobs: int = 1000, seconds: float = 120.0) -> None:
    """10 sites and 40 one-way links; a small problem first, so that compiling does not count."""
    planned(*grid(50), 0.5)
    plan, took, first = planned(*grid(jobs), seconds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print_rows(
        ("jobs", "--time", "first answer s", "took s", "makespan", "bound", "gap %", "memory GB"),
        [(jobs, seconds, first, took, plan.makespan, plan.bound, 100 * (plan.ratio - 1), memory)],
    )


def anytime() -> None:
    """--time 1 and more on the same problems."""
    rows = []
    for name, (program, platform) in (
        ("grid-1000", grid(1000)),
        ("grid-5000", grid(5000)),
        ("star-20", production(20, 0)),
        ("star-50", production(50, 0)),
    ):
        gaps = [100 * (planned(program, platform, seconds)[0].ratio - 1) for seconds in (1.0, 5.0, 20.0)]
        assert gaps == sorted(gaps, reverse=True)
        rows.append((name, *gaps))
    print_rows(("problem", "gap %, 1 s", "5 s", "20 s"), rows)


def optimal() -> None:
    """100 small problems against an optimum proven by another model."""
    right = binding = 0
    for seed in range(100):
        tight = seed % 8 != 0
        program, platform = small_case(seed, tight=tight)
        plan, _, _ = planned(program, platform, 10.0)
        horizon = math.ceil(plan.makespan)
        best = least_makespan(program, platform, horizon)
        right += best is not None and abs(plan.makespan - best) < 1e-6
        if tight:
            ample = replace(platform, sites=tuple(replace(s, storage=math.inf) for s in platform.sites))
            binding += least_makespan(program, ample, horizon) != best
    print(f"{right} of 100 plans optimal; in {binding} the disks cost time")


def gecode() -> None:
    """One chunk of 200 jobs of figure 3, slowdown 20, whole minutes, on both sides."""
    program, platform = production(20, 0, 200)
    graph = program.graph
    whole = replace(graph, work=np.ceil(graph.work), size=np.ceil(graph.size))
    duration = whole.work.astype(int).tolist()
    way_in = [int(20 * whole.size[whole.reads_of(j)[0]]) for j in range(200)]
    way_out = [int(20 * whole.size[whole.writes_of(j)[0]]) for j in range(200)]
    data = {
        "jobs": 200,
        "duration": duration,
        "way_in": way_in,
        "way_out": way_out,
        "local_cores": 80,
        "remote_cores": 20,
    }
    began = time.perf_counter()
    planning = _minizinc("planning.mzn", data)
    remote = [int(x) for x in re.findall(r"\d+", planning[-1].partition("remote=")[2].partition(";")[0])]
    chosen = {"remote": remote, "horizon": 4 * max(int(sum(duration) / 80), 20 * 30)}
    scheduling = _minizinc("scheduling.mzn", data | chosen)
    took = time.perf_counter() - began
    gecodes = int(re.findall(r"makespan=(\d+)", scheduling[-1])[0])
    coschedule = Coschedule(time=took / 12)
    began = time.perf_counter()
    plan = coschedule.plan(Problem(whole, platform))
    ours = time.perf_counter() - began
    require_valid(whole, platform, plan)
    print_rows(
        ("", "makespan, min", "bound", "seconds"),
        [("MiniZinc + Gecode", gecodes, "", took), ("headrace coschedule", plan.makespan, plan.bound, ours)],
    )


def _minizinc(model: str, data: dict[str, object]) -> list[str]:
    """All solutions that Gecode finds in the time, one line each."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.dzn"
        file.write_text("".join(f"{key} = {value};\n" for key, value in data.items()))
        command = ["minizinc", "--solver", "gecode", "-p", "2", "-a", "--time-limit", str(LIMIT * 1000)]
        ran = subprocess.run(
            [*command, str(MODELS / model), str(file)], capture_output=True, text=True, check=False
        )
    found = [line for line in ran.stdout.splitlines() if "makespan=" in line]
    if not found:
        raise SystemExit(f"minizinc found nothing: {ran.stderr or ran.stdout}")
    return found


if __name__ == "__main__":
    what, *more = sys.argv[1:] or ["scale"]
    if what == "scale" and more:
        scale(int(more[0]), float(more[1]))
    else:
        {"scale": scale, "gecode": gecode, "optimal": optimal, "anytime": anytime}[what]()
