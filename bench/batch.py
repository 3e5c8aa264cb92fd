"""Batch planners where links carry one transfer at a time.

python -m bench.batch [PLATFORM]    recorded workflows: CPU seconds, beside those of HEFT; examples/lab.toml by default
python -m bench.batch kept          recorded workflows, generated programs and sweeps: makespans with keys that are kept
                                    for a while over makespans with current keys (10 minutes)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.gap_cases import Case, held_out, recorded
from bench.generated.sweeps import sweep
from bench.tools import geometric_mean, instances, print_rows
from headrace.core.scheduler import Problem
from headrace.formats.wfformat import read_program
from headrace.model.check import require_valid
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.planners.batch import batch_planner
from headrace.planners.registry import make

RULES = ("minmin", "maxmin", "sufferage", "xsufferage", "sufferage2")


def _cpu_seconds(times: int, action: Callable[[], Plan]) -> tuple[float, Plan]:
    """The least CPU seconds of several runs, and the plan."""
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        plan = action()
        best = min(best, time.process_time() - began)
    return best, plan


def beside_heft(path: str) -> None:
    platform = Platform.read(path)
    rows = []
    for number, instance in enumerate(instances()):
        graph = read_program(instance).graph
        problem = Problem(graph, platform)
        if number == 0:
            for name in ("heft", *RULES):  # compile
                make(name).plan(problem)
        base, _ = _cpu_seconds(5, lambda problem=problem: make("heft").plan(problem))  # type: ignore[misc]
        row: list[object] = [instance.name.split("-")[0], graph.n_tasks, base]
        for name in RULES:
            seconds, plan = _cpu_seconds(3, lambda name=name, problem=problem: make(name).plan(problem))  # type: ignore[misc]
            require_valid(graph, platform, plan)
            row.append(f"{seconds:.3g} ({seconds / base:.0f})")
        rows.append(row)
    print_rows(("workflow", "tasks", "heft s", *(f"{name} s (times heft)" for name in RULES)), rows)


def kept_keys() -> None:
    """Geometric mean and extremes, by rule, of makespans with kept keys over those with current ones."""
    rows: list[tuple[object, ...]] = []
    for title, cases, rules in (
        ("recorded workflows", list(_recorded()), RULES),
        ("generated programs", list(held_out("")), RULES),
        ("sweeps of 30,000 tasks", list(_sweeps()), RULES[2:]),
    ):
        for name in rules:
            ratios = [_makespan(name, case, kept=True) / _makespan(name, case, kept=False) for case in cases]
            rows.append((title, name, len(ratios), geometric_mean(ratios), min(ratios), max(ratios)))
            print(*rows[-1], file=sys.stderr, flush=True)
    print_rows(("programs", "rule", "cases", "kept / current, mean", "least", "most"), rows)


def _recorded() -> Iterator[Case]:
    return (case for case in recorded(("lab", "sites"), "") if case.problem.graph.n_tasks < 10_000)


def _sweeps() -> Iterator[Case]:
    for seed in (31, 32, 33):
        program, platform = sweep(30_000, hosts=200, clusters=12, seed=seed)
        yield Case(program.name, platform.name, Problem(program.graph, platform))


def _makespan(name: str, case: Case, kept: bool) -> float:
    limits = batch_planner.EXACT_ON_SHARED_LINKS, batch_planner.EXACT_IN_SWEEPS
    if not kept:
        batch_planner.EXACT_ON_SHARED_LINKS = batch_planner.EXACT_IN_SWEEPS = 10**9
    try:
        plan = make(name).plan(case.problem)
    finally:
        batch_planner.EXACT_ON_SHARED_LINKS, batch_planner.EXACT_IN_SWEEPS = limits
    require_valid(case.problem.graph, case.problem.platform, plan)
    return plan.makespan


def main(what: str = str(Path(__file__).parents[1] / "examples" / "lab.toml")) -> None:
    if what == "kept":
        kept_keys()
    else:
        beside_heft(what)


if __name__ == "__main__":
    main(*sys.argv[1:])
