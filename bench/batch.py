"""CPU seconds of batch planners on the recorded workflows, beside HEFT's, where links carry one transfer at a time.

python -m bench.batch [PLATFORM]        examples/lab.toml by default
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.tools import instances, print_rows
from headrace.core.scheduler import Problem
from headrace.formats.wfformat import read_program
from headrace.model.check import require_valid
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.planners.registry import make

RULES = ("minmin", "maxmin", "sufferage", "xsufferage")


def _cpu_seconds(times: int, action: Callable[[], Plan]) -> tuple[float, Plan]:
    """The least CPU seconds of several runs, and the plan."""
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        plan = action()
        best = min(best, time.process_time() - began)
    return best, plan


def main(path: str) -> None:
    platform = Platform.read(path)
    rows = []
    for number, instance in enumerate(p for p in instances() if p.parent.name != "synthetic"):
        graph = read_program(instance).graph
        problem = Problem(graph, platform)
        if number == 0:
            for name in ("heft", *RULES):  # compile
                make(name).plan(problem)
        base, _ = _cpu_seconds(5, lambda problem=problem: make("heft").plan(problem))  # type: ignore[misc]
        row: list[object] = [instance.name.split("-")[0], graph.n_tasks, base]
        for name in RULES:
            seconds, plan = _cpu_seconds(1, lambda name=name, problem=problem: make(name).plan(problem))  # type: ignore[misc]
            require_valid(graph, platform, plan)
            row.append(f"{seconds:.3g} ({seconds / base:.0f})")
        rows.append(row)
    print_rows(("workflow", "tasks", "heft s", *(f"{name} s (times heft)" for name in RULES)), rows)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).parents[1] / "examples" / "lab.toml"))
