"""Time per task of a real run over plain Dask: 1,000 tasks that do nothing, on the same local workers.

Once with Dask's default, which hands tasks without inputs out a few at a time, and once with that queue off
(worker-saturation inf): pinned tasks never go through it, so only the second compares like with like.

python -m bench.overhead
"""

from __future__ import annotations

import time

from bench.tools import print_rows
from headrace.core.replan import Replan
from headrace.core.scheduler import Problem
from headrace.model.program import Program
from headrace.planners.list.heft import Heft
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
        policy = Replan(Heft(), first=plan)
    outcome = cluster.execute(program, policy)
    seconds = time.perf_counter() - began
    assert len(outcome.results) == TASKS
    return seconds


def measure(queue: bool) -> list[tuple[object, ...]]:
    import dask

    setting = {} if queue else {"distributed.scheduler.worker-saturation": float("inf")}
    with dask.config.set(setting), open_local(2) as cluster:
        plain_dask(cluster, -1)
        headrace_run(cluster, True)
        dask_alone, watched, planned = [], [], []
        for number in range(REPEATS):
            dask_alone.append(plain_dask(cluster, number))
            watched.append(headrace_run(cluster, False))
            planned.append(headrace_run(cluster, True))
    base = min(dask_alone)
    label = "on (default)" if queue else "off"
    return [
        (label, who, min(times), 1e3 * (min(times) - base) / TASKS)
        for who, times in (
            ("plain Dask", dask_alone),
            ("headrace, placed by Dask", watched),
            ("headrace, planned", planned),
        )
    ]


def main() -> None:
    rows = [*measure(queue=True), *measure(queue=False)]
    headers = (
        "Dask's queue",
        f"{TASKS} no-op tasks",
        f"seconds, best of {REPEATS}",
        "ms per task over plain Dask",
    )
    print_rows(headers, rows)


if __name__ == "__main__":
    main()
