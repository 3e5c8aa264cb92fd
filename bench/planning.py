"""Planning time and makespan / bound of a scheduler on workflow instances and seeded graphs.

python -m bench.planning [SCHEDULER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.tools import best_of, geometric_mean, instances, print_rows, read_dag, read_network
from headrace.core.scheduler import Problem
from headrace.formats.wfformat import read_program
from headrace.model.check import require_valid
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.planners.registry import make
from headrace.planners.timed import plan_with_bound


def main(scheduler: str) -> None:
    lab = Platform.read(Path(__file__).parents[1] / "examples" / "lab.toml")
    wide = read_network("wf32")
    rows, ratios = [], []
    for path in instances():
        graph = read_program(path).graph
        for label, platform in (("32 hosts, pairwise", wide), ("lab.toml, fifo", lab)):
            row, ratio = _measure(path.name.split(".")[0], graph, label, platform, scheduler)
            rows.append(row)
            ratios.append(ratio)
    for tasks in (100, 300, 1000, 3000, 10000):
        graph = read_dag(tasks)
        for hosts in (8, 64):
            row, ratio = _measure(
                f"layered-{tasks}", graph, f"{hosts} hosts, pairwise", read_network(f"h{hosts}"), scheduler
            )
            rows.append(row)
            ratios.append(ratio)
    rows.append(("geometric mean", "", "", "", "", "", geometric_mean(ratios)))
    print_rows(
        ("program", "tasks", "platform", "planning s", "makespan s", "bound s", "makespan / bound"), rows
    )


def _measure(
    name: str, graph: Graph, label: str, platform: Platform, scheduler: str
) -> tuple[tuple[object, ...], float]:
    seconds, plan = best_of(3, lambda: plan_with_bound(make(scheduler), Problem(graph, platform)))
    require_valid(graph, platform, plan)
    return (name, graph.n_tasks, label, seconds, plan.makespan, plan.bound, plan.ratio), plan.ratio


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "heft")
