"""The schedulers that decide while a program runs, on real workers: the objects that simulations use."""

from __future__ import annotations

import pytest

from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.model.events import HostLeft
from headrace.model.program import Program
from headrace.online.dheft import DHeft
from headrace.online.lheft import LHeft
from headrace.online.workqueue import Workqueue
from headrace.planners.registry import make
from headrace.simulator.events.simulate import simulate_program

from .tasks import Later, finished, killer, layered, one


def schedulers():
    held = ReplanPolicy(events="once", hold=True)
    return [Workqueue(), LHeft(), DHeft(pause=0.2), Replan(make("minmin"), held)]


@pytest.mark.parametrize("scheduler", schedulers(), ids=lambda s: s.name)
def test_the_answer_is_right_and_hosts_share_the_work(scheduler, cluster):
    program, answer = layered(8, 5, 0.01)
    outcome = cluster.execute(program, scheduler, timeout=120)
    assert outcome.results == {"answer": answer}
    assert len({e.host for e in finished(outcome.events)}) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheduler", "victim"),
    [*zip(schedulers(), ("w0", "w1", "w2", "w0"), strict=True)],
    ids=lambda s: getattr(s, "name", s),
)
def test_a_killed_worker_does_not_change_the_answer(scheduler, victim, hardy):
    program, answer = layered(8, 6, 0.02)
    outcome = hardy.execute(program, scheduler, killer(hardy.pids, {12: victim}), timeout=120)
    assert outcome.results == {"answer": answer}
    assert [e.host for e in outcome.events if isinstance(e, HostLeft)] == [victim]


def test_the_same_object_runs_in_simulation_and_for_real(cluster):
    program, answer = layered(6, 4, 0.01)
    scheduler = LHeft()
    simulated = simulate_program(program, cluster.platform, scheduler)
    outcome = cluster.execute(program, scheduler, timeout=120)
    assert outcome.results == {"answer": answer}
    assert len(simulated.executed.start) == len(program.tasks)


def test_a_scheduler_is_asked_at_the_time_it_names(cluster):
    """Nothing else happens between the placing of one task and the next."""
    program = Program("later")
    for k in range(3):
        program.task(one, outputs=[f"x{k}"], name=f"t{k}")
    cluster.execute(program, timeout=60)  # the workers have then imported what tasks need
    outcome = cluster.execute(program, Later(), timeout=60)
    assert sum(outcome.results.values()) == 3
    starts = sorted(event.start for event in finished(outcome.events))
    assert all(start > 0.2 * (k + 1) - 0.02 for k, start in enumerate(starts))
