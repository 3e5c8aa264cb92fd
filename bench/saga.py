"""HEFT here and in SAGA (anrg-saga 2.0.2), one after the other on the same graph, in one run.

SAGA is needed for this alone: pip install "headrace[bench]", best in an environment of its own. The larger case
takes it minutes.

python -m bench.saga [TASKS HOSTS]
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from importlib.metadata import version

from bench.tools import DATA, best_of, print_rows, read_dag, read_network
from headrace.core.scheduler import Problem
from headrace.planners.list.heft import Heft


def saga_heft(tasks: int, hosts: int) -> tuple[float, float]:
    """Seconds that SAGA's HEFT takes, without building its graphs, and the makespan it finds."""
    from saga.schedulers import HeftScheduler

    from saga import Network, TaskGraph

    dag = json.loads(gzip.decompress((DATA / "dags" / f"dag-square-n{tasks}.json.gz").read_bytes()))
    net = json.loads(gzip.decompress((DATA / "dags" / f"net-h{hosts}.json.gz").read_bytes()))
    graph = TaskGraph.create(
        tasks=[(f"t{t}", cost) for t, cost in enumerate(dag["cost"])],
        dependencies=[(f"t{a}", f"t{b}", size) for a, b, size in dag["edges"]],
    )
    network = Network.create(
        nodes=[(f"h{h}", speed) for h, speed in enumerate(net["speed"])],
        edges=[(f"h{i}", f"h{i + 1 + j}", bw) for i, row in enumerate(net["bw"]) for j, bw in enumerate(row)],
    )
    began = time.perf_counter()
    schedule = HeftScheduler().schedule(network, graph)
    return time.perf_counter() - began, float(schedule.makespan)


def main(tasks: int = 3000, hosts: int = 64) -> None:
    problem = Problem(read_dag(tasks), read_network(f"h{hosts}"))
    ours, plan = best_of(5, lambda: Heft().plan(problem))
    theirs, makespan = saga_heft(tasks, hosts)
    print_rows(
        (
            "tasks",
            "hosts",
            "headrace s",
            f"SAGA {version('anrg-saga')} s",
            "times faster",
            "makespan",
            "SAGA's",
        ),
        [(tasks, hosts, ours, theirs, theirs / ours, plan.makespan, makespan)],
    )


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:3]))
