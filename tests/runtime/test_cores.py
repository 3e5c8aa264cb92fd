"""Tasks that need several cores of a worker."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest

from headrace.model.errors import NoPlan, TaskFailed
from headrace.model.events import TaskFinished
from headrace.model.program import Program
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.core_slots import CoreSlots

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
        with slots.occupied(cores, 2, name):
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
    with pytest.raises(TaskFailed, match="needs 3 cores"), CoreSlots().occupied(3, 2, "t"):
        pass
