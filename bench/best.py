"""What `best` gains over HEFT in a given time, on pairwise networks without contention.

python -m bench.best [SECONDS]
"""

from __future__ import annotations

import sys

from bench.tools import geometric_mean, instances, print_rows, read_dag, read_network
from headrace.core.scheduler import Problem
from headrace.formats.wfformat import read_program
from headrace.model.check import require_valid
from headrace.planners.list.heft import Heft
from headrace.planners.search.best import Best
from headrace.planners.timed import plan_with_bound

FAR = 1.05
"""Only instances where HEFT is further than this above the bound leave room for a gain."""


def main(seconds: float) -> None:
    cases = [(path.name.split(".")[0], read_program(path).graph, "wf32") for path in instances()]
    cases += [(f"layered-{n}", read_dag(n), f"h{h}") for n in (100, 300, 1000, 3000, 10000) for h in (8, 64)]
    rows: list[tuple[object, ...]] = []
    gains = []
    for name, graph, network in cases:
        problem = Problem(graph, read_network(network))
        heft = plan_with_bound(Heft(), problem)
        best = plan_with_bound(Best(time=seconds), problem)
        require_valid(graph, problem.platform, best)
        assert best.makespan <= heft.makespan * (1 + 1e-9)
        if heft.ratio > FAR:
            gains.append(best.makespan / heft.makespan)
        shorter = 100 * (1 - best.makespan / heft.makespan)
        rows.append((name, network, heft.ratio, best.ratio, shorter, best.seconds))
    print_rows(("program", "network", "heft / bound", "best / bound", "shorter, %", "seconds"), rows)
    print(f"{len(gains)} instances where HEFT is more than 5 % above the bound: ", end="")
    print(f"best is {100 * (1 - geometric_mean(gains)):.2f} % shorter in geometric mean")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
