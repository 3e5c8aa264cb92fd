"""The schedulers that decide while a program runs, on real workers: the objects that simulations use."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.model.events import HostLeft
from headrace.model.program import Program
from headrace.online.dheft import DHeft
from headrace.online.lheft import LHeft
from headrace.online.workqueue import Workqueue
from headrace.planners.registry import make
from headrace.runtime.cluster import open_local
from headrace.simulator.events.simulate import simulate_program

from .tasks import Later, finished, killer, layered, one


def schedulers():
    held = ReplanPolicy(events="once", hold=True)
    return [Workqueue(), LHeft(), DHeft(pause=0.2), Replan(make("minmin"), held)]


@pytest.mark.parametrize("scheduler", schedulers(), ids=lambda s: s.name)
def test_the_answer_is_right_and_hosts_share_the_work(scheduler):
    program, answer = layered(8, 5, 0.01)
    with open_local(3) as cluster:
        outcome = cluster.execute(program, scheduler, timeout=120)
    assert outcome.results == {"answer": answer}
    assert len({e.host for e in finished(outcome.events)}) > 1


@pytest.mark.parametrize("scheduler", schedulers(), ids=lambda s: s.name)
def test_a_killed_worker_does_not_change_the_answer(scheduler):
    program, answer = layered(8, 6, 0.02)
    with open_local(3) as cluster:
        outcome = cluster.execute(program, scheduler, killer(cluster.pids, {12: "w2"}), timeout=120)
    assert outcome.results == {"answer": answer}
    assert [e.host for e in outcome.events if isinstance(e, HostLeft)] == ["w2"]


def test_the_same_object_runs_in_simulation_and_for_real():
    program, answer = layered(6, 4, 0.01)
    scheduler = LHeft()
    with open_local(2) as cluster:
        simulated = simulate_program(program, cluster.platform, scheduler)
        outcome = cluster.execute(program, scheduler, timeout=120)
    assert outcome.results == {"answer": answer}
    assert len(simulated.executed.start) == len(program.tasks)


def test_a_scheduler_is_asked_at_the_time_it_names():
    """Nothing else happens between the placing of one task and the next."""
    program = Program("later")
    for k in range(3):
        program.task(one, outputs=[f"x{k}"], name=f"t{k}")
    with open_local(1) as cluster:
        cluster.execute(program, timeout=60)  # the worker has then imported what tasks need
        outcome = cluster.execute(program, Later(), timeout=60)
    assert sum(outcome.results.values()) == 3
    starts = sorted(event.start for event in finished(outcome.events))
    assert min(starts[0], *(after - before for before, after in pairwise(starts))) > 0.15
