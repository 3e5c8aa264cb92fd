"""Time per task of a real run over plain Dask: 1,000 tasks that do nothing, on the same number of worker processes.

Plain Dask is `client.get` and `gather` on Dask's own LocalCluster (TCP on the loopback interface, open to every local
user), and on Headrace's local cluster with each of its transports, so that both sides use the same one. Headrace is a
whole `run` by HEFT: estimates, a plan, the record in SQLite, logs, a commit of every result, and the results fetched.
On Headrace's clusters runs of both take turns.

Dask's default hands tasks without inputs out a few at a time. Pinned tasks never go through that queue, so plain Dask
is also measured with the queue off (worker-saturation inf), which is faster.

CPU seconds are those of all processes of a cluster. They vary less than elapsed time on a busy machine.

python -m bench.overhead              about 30 s on an idle machine with two cores
python -m bench.overhead --repeats 3
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from bench.tools import print_rows
from headrace.execution import run
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster, open_local

TASKS = 1000
WORKERS = 2
REPEATS = 7
NO_QUEUE = {"distributed.scheduler.worker-saturation": float("inf")}


def nothing() -> None:
    return None


def plain_dask(client: Any, number: int) -> float:
    """Seconds for one graph of independent keys, as a user of Dask would submit it."""
    from dask._task_spec import Task

    graph = {f"plain-{number}-{i}": Task(f"plain-{number}-{i}", nothing) for i in range(TASKS)}
    began = time.perf_counter()
    results = client.gather(client.get(graph, list(graph), sync=False))
    seconds = time.perf_counter() - began
    assert len(results) == TASKS
    return seconds


def headrace_run(cluster: Cluster, folder: str) -> float:
    """Seconds for the same tasks as a program, planned, recorded, logged and committed."""
    program = Program("nothing")
    for i in range(TASKS):
        program.task(nothing, name=f"t{i}", outputs=[f"x{i}"], work=0.001)
    began = time.perf_counter()
    done = run(program, on=cluster, scheduler="heft", record=folder, output=folder)
    seconds = time.perf_counter() - began
    assert len(done.results) == TASKS
    return seconds


@contextmanager
def dask_cluster(settings: dict[str, Any]) -> Iterator[Any]:
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set(settings),
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def cpu_seconds(client: Any) -> float:
    """CPU seconds so far of this process, which holds the scheduler, and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


class Contender:
    """One way to run the tasks, with its times."""

    def __init__(self, label: str, transport: str, client: Any, once: Callable[[int], float]) -> None:
        self.label = label
        self.transport = transport
        self.client = client
        self.once = once
        self.times: list[tuple[float, float]] = []

    def measure(self, number: int) -> None:
        before = cpu_seconds(self.client)
        seconds = self.once(number)
        self.times.append((seconds, cpu_seconds(self.client) - before))

    def best(self) -> tuple[float, float]:
        return min(elapsed for elapsed, _ in self.times), min(cpu for _, cpu in self.times)


def dask_alone(label: str, settings: dict[str, Any], repeats: int) -> list[Contender]:
    """Plain Dask on its own cluster."""
    with dask_cluster(settings) as client:
        alone = Contender(label, "tcp", client, lambda n: plain_dask(client, n))
        _race([alone], repeats)
    return [alone]


def side_by_side(transport: Literal["unix", "tls"], repeats: int) -> list[Contender]:
    """Plain Dask and Headrace, taking turns on the same workers."""
    import dask

    with (
        dask.config.set(NO_QUEUE),
        open_local(WORKERS, transport=transport) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        racing = [
            Contender(
                "plain Dask, queue off", transport, cluster.client, lambda n: plain_dask(cluster.client, n)
            ),
            Contender("headrace run", transport, cluster.client, lambda _: headrace_run(cluster, folder)),
        ]
        _race(racing, repeats)
    return racing


def _race(racing: list[Contender], repeats: int) -> None:
    for one in racing:
        one.once(-1)
    for number in range(repeats):
        for one in racing:
            one.measure(number)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=REPEATS)
    repeats = parser.parse_args(list(arguments)).repeats
    racing = [
        *dask_alone("plain Dask", {}, repeats),
        *dask_alone("plain Dask, queue off", NO_QUEUE, repeats),
        *side_by_side("unix", repeats),
        *side_by_side("tls", repeats),
    ]
    (elapsed, cpu), (no_queue, no_queue_cpu) = racing[0].best(), racing[1].best()
    rows = []
    for one in racing:
        mine, mine_cpu = one.best()
        rows.append(
            (
                one.label,
                one.transport,
                mine,
                1e3 * (mine - elapsed) / TASKS,
                1e3 * (mine - no_queue) / TASKS,
                mine_cpu,
                1e3 * (mine_cpu - cpu) / TASKS,
                1e3 * (mine_cpu - no_queue_cpu) / TASKS,
            )
        )
    headers = (
        f"{TASKS} no-op tasks", "transport",
        f"seconds, best of {repeats}", "ms per task over plain Dask", "over Dask, queue off",
        "CPU seconds", "CPU ms per task over plain Dask", "over Dask, queue off",
    )  # fmt: skip
    print_rows(headers, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
