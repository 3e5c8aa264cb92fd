"""Time per task of a real run over plain Dask: 1,000 tasks that do nothing, on the same local workers.

python -m bench.overhead
"""

from __future__ import annotations

import time

from bench.tools import print_rows
from headrace.core.scheduler import Follow, Problem, assignments_of
from headrace.model.program import Program
from headrace.planners.heft import Heft
from headrace.runtime.cluster import Cluster, open_local

TASKS = 1000
REPEATS = 7


def nothing() -> None:
    return None


def plain_dask(cluster: Cluster, number: int) -> float:
    """One graph of independent keys, as a user of Dask would submit it."""
    from dask._task_spec import Task

    graph = {f"plain-{number}-{i}": Task(f"plain-{number}-{i}", nothing) for i in range(TASKS)}
    began = time.perf_counter()
    futures = cluster.client.get(graph, list(graph), sync=False)
    cluster.client.gather(futures)
    return time.perf_counter() - began


def headrace_run(cluster: Cluster, planned: bool) -> float:
    """The same tasks as a program, planned, pinned and observed; or placed by the engine."""
    program = Program("nothing")
    for i in range(TASKS):
        program.task(nothing, name=f"t{i}", outputs=[f"x{i}"], work=0.001)
    began = time.perf_counter()
    policy = None
    if planned:
        plan = Heft().plan(Problem(program.graph, cluster.platform))
        policy = Follow(Heft(), assignments_of(plan))
    outcome = cluster.execute(program, policy)
    seconds = time.perf_counter() - began
    assert len(outcome.results) == TASKS
    return seconds


def main() -> None:
    with open_local(2) as cluster:
        plain_dask(cluster, -1)
        headrace_run(cluster, True)
        dask, watched, planned = [], [], []
        for number in range(REPEATS):
            dask.append(plain_dask(cluster, number))
            watched.append(headrace_run(cluster, False))
            planned.append(headrace_run(cluster, True))
    base = min(dask)
    rows = [
        (label, min(times), 1e3 * (min(times) - base) / TASKS)
        for label, times in (
            ("plain Dask", dask),
            ("headrace, placed by Dask", watched),
            ("headrace, planned", planned),
        )
    ]
    print_rows((f"{TASKS} no-op tasks", f"seconds, best of {REPEATS}", "ms per task over plain Dask"), rows)


if __name__ == "__main__":
    main()
