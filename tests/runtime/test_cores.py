"""Tasks that need several cores of a worker, or much of its memory."""

from __future__ import annotations

import math
import random
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from headrace.execution import run
from headrace.model.errors import BadProgram, NoPlan, TaskFailed
from headrace.model.events import TaskFinished
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.record import Record
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.core_slots import CoreSlots, Room

from .tasks import RoundRobin, nap, one


def test_more_cores_than_any_host_has(cluster: Cluster) -> None:
    program = Program("wide")
    program.task(one, outputs=["x"], name="wide", cores=2)
    for scheduler in (RoundRobin(), None):
        with pytest.raises(NoPlan, match="task 'wide' needs 2 cores, but no host has more than 1"):
            cluster.execute(program, scheduler, timeout=60)


def test_a_task_with_two_cores_runs_alone_on_a_worker_with_two_threads() -> None:
    program = Program("wide")
    pause = program.input("pause", value=0.15)
    for i in range(6):
        program.task(nap, inputs=[pause], outputs=[f"x{i}"], name=f"t{i}", cores=2 if i % 3 == 1 else 1)
    with open_local(1, threads=2) as cluster:
        outcome = cluster.execute(program, None, timeout=60)
    spans = [(e.start, e.time, e.task) for e in outcome.events if isinstance(e, TaskFinished)]
    assert len(spans) == 6
    wide = [span for span in spans if span[2] in ("t1", "t4")]
    for start, end, task in wide:
        others = [other for other in spans if other[2] != task]
        assert not any(s < end - 0.02 and start + 0.02 < e for s, e, _ in others)
    narrow = sorted(span for span in spans if span not in wide)
    assert any(b[0] < a[1] - 0.05 for a, b in pairwise(narrow))


def test_cores_are_given_in_order() -> None:
    """A task that needs all cores is not overtaken for ever by tasks that need one."""
    slots, order = CoreSlots(), []
    first = threading.Event()

    def work(name: str, cores: int) -> None:
        with slots.occupied(Room(cores), Room(2), name):
            order.append(name)
            if name == "first":
                first.wait(10)

    threads = []
    for name, cores in [("first", 1), ("wide", 2), ("late", 1)]:
        threads.append(threading.Thread(target=work, args=(name, cores)))
        threads[-1].start()
        time.sleep(0.1)
    assert order == ["first"]
    first.set()
    for thread in threads:
        thread.join()
    assert order == ["first", "wide", "late"]


def test_too_many_cores_for_a_worker() -> None:
    with pytest.raises(TaskFailed, match="needs 3 cores"), CoreSlots().occupied(Room(3), Room(2), "t"):
        pass


def test_tasks_at_once_fit_into_memory() -> None:
    """Threads that ask for random amounts never have more together than there is, and all get their turn."""
    rng = random.Random(7)
    slots, total, lock = CoreSlots(), Room(4, 10.0), threading.Lock()
    held, most, done = [0.0], [0.0], []

    def work(number: int, needed: Room) -> None:
        with slots.occupied(needed, total, f"t{number}"):
            with lock:
                held[0] += needed.memory
                most[0] = max(most[0], held[0])
            time.sleep(0.001)
            with lock:
                held[0] -= needed.memory
                done.append(number)

    wishes = [Room(rng.randint(1, 2), rng.choice((0.0, 0.1, 2.5, 4.0, 10.0))) for _ in range(60)]
    threads = [threading.Thread(target=work, args=(i, needed)) for i, needed in enumerate(wishes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(done) == list(range(60))
    assert 4.0 < most[0] <= 10.0 + 1e-9
    assert slots._memory == 0.0


def test_more_memory_than_any_host_has(cluster: Cluster, tmp_path: Path) -> None:
    program = Program("large")
    program.task(one, outputs=["x"], name="large", memory="900 TB")
    for scheduler in (RoundRobin(), None):
        with pytest.raises(
            NoPlan, match=r"task 'large' needs 900 TB of memory, but no host has more than .* GB"
        ):
            cluster.execute(program, scheduler, timeout=60)
    with pytest.raises(NoPlan, match="needs 900 TB"):
        run(program, on=cluster, scheduler="heft", record=tmp_path, output=tmp_path)
    with Record.open(tmp_path) as record:
        assert not record.runs()  # nothing was started


def described(*memory: float) -> Platform:
    """The hosts of the cluster, with so much memory."""
    hosts = tuple(Host(f"w{i}", memory=has) for i, has in enumerate(memory))
    return Platform((Site("here", hosts, bandwidth=1e8),), name="described")


@pytest.mark.parametrize("scheduler", ["heft", "lheft"])
def test_tasks_run_where_there_is_enough_memory(cluster: Cluster, tmp_path: Path, scheduler: str) -> None:
    program = Program("mixed")
    for i in range(8):
        program.task(one, outputs=[f"x{i}"], name=f"t{i}", memory=3e6 if i % 2 else 0.0)
    platform = described(1e6, 5e6, 2e6)
    done = run(program, on=cluster, scheduler=scheduler, platform=platform, record=tmp_path, output=tmp_path)
    assert done.failure is None
    where = {e.task: e.host for e in done.outcome.events if isinstance(e, TaskFinished)}
    assert {where[f"t{i}"] for i in (1, 3, 5, 7)} == {"w1"}
    assert len(where) == 8


def test_a_scheduler_that_ignores_memory_is_refused(cluster: Cluster) -> None:
    """A scheduler that knows nothing of memory is told so by an error that names the task."""
    program = Program("mixed")
    program.task(one, outputs=["x"], name="large", memory=3e6)
    with pytest.raises(NoPlan, match="'large' was assigned to host 'w0', which has too little memory"):
        cluster.execute(program, RoundRobin(), platform=described(1e6, 5e6, 2e6), timeout=60)


def test_a_worker_refuses_what_it_has_no_room_for() -> None:
    slots = CoreSlots()
    with (
        pytest.raises(TaskFailed, match="it needs 3 MB of memory, but this worker has 1 MB"),
        slots.occupied(Room(1, 3e6), Room(1, 1e6), "large"),
    ):
        pass
    with (
        pytest.raises(TaskFailed, match="it needs 2 of 'gpu', but this worker has 1"),
        slots.occupied(Room(1, 0.0, (("gpu", 2),)), Room(2, 1e6, (("gpu", 1),)), "large"),
    ):
        pass


@pytest.mark.parametrize("memory", [-1.0, math.inf, math.nan, "much"])
def test_memory_is_a_number_of_bytes(memory: float | str) -> None:
    with pytest.raises(BadProgram, match=r"task 't': .* is not a size"):
        Program("bad").task(one, outputs=["x"], name="t", memory=memory)


@pytest.mark.slow
def test_two_large_tasks_of_a_worker_run_one_after_the_other() -> None:
    program = Program("large")
    pause = program.input("pause", value=0.2)
    for i in range(4):
        program.task(nap, inputs=[pause], outputs=[f"x{i}"], name=f"t{i}", memory=3e6 if i < 2 else 1e6)
    with open_local(1, threads=3) as cluster:
        host = Host("w0", cores=3, memory=5e6)
        platform = Platform((Site("here", (host,), bandwidth=1e8),), name="small")
        outcome = cluster.execute(program, None, platform=platform, timeout=60)
    span = {e.task: (e.start, e.time) for e in outcome.events if isinstance(e, TaskFinished)}
    first, second = sorted((span["t0"], span["t1"]))
    assert second[0] >= first[1] - 0.02
    assert len(span) == 4
