"""L-HEFT as it runs: ranks, locality, buffering, rebalancing, joins and losses."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.initial_state import make_state, make_static_problem
from headrace.core.records import RunRecords
from headrace.core.scheduler import WakeConditions
from headrace.core.state import BALANCED, IDLE_HOSTS, CoordinatorState, StaticProblem
from headrace.core.transitions.balance import least_queues_left, queues_left
from headrace.core.transitions.wake import compiled_wake, is_asked_for
from headrace.experiment.dataflow import jacobi
from headrace.model.behaviour import Change
from headrace.model.check import check
from headrace.model.errors import UsageError
from headrace.online.lheft import LHeft
from headrace.online.workqueue import Workqueue
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program


def test_a_task_that_needs_no_traffic_stays_with_its_data():
    program = hr.Program()
    first = [program.task(None, name=f"a{i}", outputs={f"x{i}": 1e9}, work=1.0) for i in range(4)]
    for i, made in enumerate(first):
        program.task(None, name=f"b{i}", inputs=[made], outputs=[f"y{i}"], work=1.0)
    lab = hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    run = simulate_scheduler(program.graph, lab, LHeft(rebalance=False))
    host = dict(zip(program.graph.task_names, run.executed.host.tolist(), strict=True))
    assert all(host[f"a{i}"] == host[f"b{i}"] for i in range(4))
    assert run.bytes_moved == 0


def test_lower_levels_and_less_traffic_go_first():
    program = hr.Program()
    big = program.task(None, name="big", outputs={"big.out": 1e6}, work=1.0)
    small = program.task(None, name="small", outputs={"small.out": 1e3}, work=1.0)
    program.task(None, name="much", inputs=[big, small], outputs=["m"], work=1.0)
    program.task(None, name="none", inputs=[big], outputs=["n"], work=1.0)
    lab = hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    run = simulate_scheduler(program.graph, lab, LHeft())
    start = dict(zip(program.graph.task_names, run.executed.start.tolist(), strict=True))
    assert start["none"] <= start["much"]


def test_tail_of_a_long_queue_moves_to_an_idle_host():
    program = hr.Program()
    source = program.task(None, name="source", outputs={"x": 1e6}, work=1.0)
    for i in range(40):
        program.task(None, name=f"r{i}", inputs=[source], outputs=[f"y{i}"], work=5.0)
    lab = hr.Platform.pairwise([1.0] * 4, bandwidth=1e6)
    still = simulate_scheduler(program.graph, lab, LHeft(rebalance=False))
    moved = simulate_scheduler(program.graph, lab, LHeft(rebalance=True))
    assert len(np.unique(still.executed.host)) == 1
    assert len(np.unique(moved.executed.host)) == 4
    assert moved.makespan < 0.5 * still.makespan


def test_buffered_tasks_are_placed_together():
    program = jacobi(iterations=4, pieces=16)
    lab = hr.Platform.pairwise([1.0] * 4, bandwidth=1e9)
    one = simulate_scheduler(program.graph, lab, LHeft(buffer=1, rebalance=False))
    many = simulate_scheduler(program.graph, lab, LHeft(buffer=64, rebalance=False))
    assert many.asked < one.asked
    assert check(program.graph, lab, many.executed) == []


def test_a_joining_host_is_used_at_once():
    program = jacobi(iterations=20, pieces=16)
    lab = hr.Platform.pairwise([1.0] * 3, bandwidth=1e9)
    whole = simulate_scheduler(program.graph, lab, LHeft()).makespan
    run = simulate_scheduler(program.graph, lab, LHeft(), changes=[Change(0.3 * whole, "host-up", "h2")])
    mine = run.executed.start[run.executed.host == 2]
    assert len(mine)
    assert mine.min() < 0.4 * whole


def test_a_loss_repeats_no_more_than_back_to_the_replicas():
    program = jacobi(iterations=30, pieces=16)
    lab = hr.Platform.pairwise([1.0] * 4, bandwidth=1e9)
    whole = simulate_scheduler(program.graph, lab, LHeft()).makespan
    lost = [Change(0.8 * whole, "host-down", "h3")]
    bare = simulate_scheduler(program.graph, lab, LHeft(), changes=lost)
    kept = simulate_scheduler(program.graph, lab, LHeft(), changes=lost, policy=ExecutionPolicy(replicate=3))
    assert kept.replicas > 0
    assert bare.redone > 0
    assert kept.redone < bare.redone


def test_just_in_time_leaves_no_host_idle_while_tasks_wait():
    program = hr.Program()
    for i in range(20):
        program.task(None, name=f"t{i}", outputs=[f"y{i}"], work=1.0 + i % 3)
    lab = hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    run = simulate_scheduler(program.graph, lab, Workqueue())
    last_start = float(run.executed.start.max())
    for host in (0, 1):
        mine = run.executed.host == host
        begin, end = np.sort(run.executed.start[mine]), np.sort(run.executed.finish[mine])
        assert np.all(begin[1:] - end[:-1] < 1e-9) or begin[-1] >= last_start


def test_history_corrects_what_the_user_says_wrongly():
    program = hr.Program()
    for i in range(60):
        program.task(None, name=f"t{i}", kind="slow-here", outputs=[f"y{i}"], work=1.0)
    lab = hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    slow = [Change(0.0, "host-trace", "h1", hr_trace(0.1))]
    told = simulate_program(program, lab, "lheft", SimulationConfig())
    assert told.makespan == pytest.approx(30.0)
    naive = simulate_scheduler(program.graph, lab, LHeft(rebalance=False), changes=slow)
    from headrace.core.estimates import HistoryEstimates

    learned = simulate_scheduler(
        program.graph,
        lab,
        LHeft(buffer=4, rebalance=False),
        changes=slow,
        estimates=HistoryEstimates(program.graph, lab),
    )
    assert learned.makespan <= naive.makespan


def hr_trace(share):
    from headrace.model.trace import Trace

    return Trace.constant(share)


def test_a_buffer_of_nothing_is_refused():
    with pytest.raises(UsageError, match="buffer is 0"):
        LHeft(buffer=0)
    with pytest.raises(UsageError, match="late_weight is -1"):
        LHeft(late_weight=-1.0)


def two_tasks_foreseen() -> tuple[StaticProblem, CoordinatorState]:
    """Of 5 and 3 s, on two hosts."""
    program = hr.Program()
    for work in (5.0, 3.0):
        program.task(None, work=work)
    platform = hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    problem = make_static_problem(program.graph, platform, ExecutionPolicy())
    state = make_state(program.graph, platform, problem)
    state.predicted[:] = [5.0, 3.0]
    return problem, state


@numba.njit
def called(problem, state, now, starts_known, late_weight):
    left = np.empty(len(state.host_up))
    queues_left(problem, state, now, starts_known, late_weight, left)
    return left


def left(problem: StaticProblem, state: CoordinatorState, *more: object) -> np.ndarray:
    records = RunRecords(problem, state)
    return called(records.problem_ref, records.state_ref, *more)


@numba.njit
def bound(problem, state, now):
    least = np.empty(len(state.host_up))
    least_queues_left(problem, state, now, least)
    return least


@given(
    st.lists(st.floats(0.0, 1e6), min_size=4, max_size=4),
    st.lists(st.floats(0.0, 1e3), min_size=4, max_size=4),
    st.floats(0.0, 1e5),
)
@settings(max_examples=100, deadline=None)
def test_the_bound_of_a_backlog_is_never_above_it_and_close_to_it_if_nothing_is_overdue(
    starts, predicted, waited
):
    """On a host with two cores and one with three, of which two tasks each run; the first host has a queue, too."""
    program = hr.Program()
    for _ in range(4):
        program.task(None, work=1.0)
    hosts = (hr.Host("a", cores=2), hr.Host("b", cores=3))
    platform = hr.Platform((hr.Site("lab", hosts, bandwidth=1e6),))
    problem = make_static_problem(program.graph, platform, ExecutionPolicy())
    state = make_state(program.graph, platform, problem)
    state.predicted[:], state.run_start[:] = predicted, starts
    for task, core in enumerate((0, 1, 2, 4)):
        host = task // 2
        state.core_task[core], state.run_host[task] = task, host
        state.running[host] += 1
        state.start_sum[host] += starts[task]
        state.backlog[host] += predicted[task]
    state.backlog[0] += 500.0
    now = max(starts) + waited
    records = RunRecords(problem, state)
    least = bound(records.problem_ref, records.state_ref, now)
    exact = left(problem, state, now, True, 0.0)
    assert (least <= exact).all()
    for host in (0, 1):
        on_time = all(now <= starts[t] + predicted[t] for t in (2 * host, 2 * host + 1))
        if on_time:
            assert least[host] == pytest.approx(exact[host], abs=1e-2)


def test_only_the_running_task_has_had_time():
    """A host that was idle before is not taken for free, nor one whose running task is overdue for done."""
    problem, state = two_tasks_foreseen()
    state.backlog[0], state.last_completion[0], state.busy_cores[0] = 8.0, 40.0, 1
    state.core_task[0], state.run_host[0], state.run_start[0] = 0, 0, 100.0
    assert left(problem, state, 102.0, True, 1.0).tolist() == [6.0, 0.0]
    assert left(problem, state, 120.0, True, 0.0).tolist() == [3.0, 0.0]
    late = left(problem, state, 120.0, True, 1.0).tolist()
    assert late == [18.0, 0.0]  # 15 s late: as long again, then the other one


def test_where_nobody_says_when_tasks_begin_the_first_has_had_the_time_since_the_last_completion():
    problem, state = two_tasks_foreseen()
    state.backlog[0], state.last_completion[0], state.queue_length[0], state.queue_head[0] = 8.0, 40.0, 2, 0
    assert left(problem, state, 42.0, False, 1.0).tolist() == [6.0, 0.0]
    assert left(problem, state, 60.0, False, 1.0).tolist() == [3.0, 0.0]
    assert left(problem, state, 60.0, True, 1.0).tolist() == [8.0, 0.0], "nothing runs: it waits for data"


def test_equal_ranks_go_by_the_longer_run_time():
    program = hr.Program()
    for name, work in (("short", 1.0), ("long", 4.0), ("middle", 2.0)):
        program.task(None, name=name, outputs=[f"{name}.out"], work=work)
    lab = hr.Platform.pairwise([1.0], bandwidth=1e6)
    run = simulate_scheduler(program.graph, lab, LHeft())
    start = dict(zip(program.graph.task_names, run.executed.start.tolist(), strict=True))
    assert start == {"long": 0.0, "middle": 4.0, "short": 6.0}


def test_several_idle_hosts_take_from_one_queue_at_once():
    """All readers stay with their data on one host; the three others take one each from its tail, not one in all."""
    program = hr.Program()
    source = program.task(None, name="source", outputs={"x": 1.0}, work=1.0)
    for i in range(12):
        program.task(None, name=f"r{i}", inputs=[source], outputs=[f"y{i}"], work=100.0)
    lab = hr.Platform.pairwise([1.0] * 4, bandwidth=1e9)
    run = simulate_scheduler(program.graph, lab, LHeft())
    first = [
        float(run.executed.start[(run.executed.host == h) & (run.executed.start >= 1.0)].min())
        for h in range(4)
    ]
    assert max(first) < 1.1
    assert run.makespan == pytest.approx(301.0, abs=0.1)


@pytest.mark.parametrize("scheduler", [LHeft, Workqueue])
def test_tasks_that_need_several_cores_go_where_there_are_enough(scheduler):
    program = hr.Program()
    for i in range(8):
        program.task(None, name=f"t{i}", work=1.0, cores=3 if i % 2 else 1, outputs=[f"y{i}"])
    lab = hr.Platform((hr.Site("s", (hr.Host("fast", cores=2, speed=9.0), hr.Host("wide", cores=4))),))
    run = simulate_scheduler(program.graph, lab, scheduler())
    assert check(program.graph, lab, run.executed) == []
    assert set(run.executed.host[1::2].tolist()) == {1}


@pytest.mark.parametrize(("within", "placed"), [(0.0, 3.9), (1.8, 3.9), (2.0, 2.0)])
def test_ready_tasks_are_placed_when_a_host_will_soon_be_idle(within, placed):
    """At 2 s a task becomes ready; one host runs its last task until 3.9 s, the other until 5 s."""
    program = hr.Program()
    first = program.task(None, name="first", outputs={"x": 1e3}, work=2.0)
    program.task(None, name="last", outputs=["y"], work=5.0)
    program.task(None, name="queued", outputs=["z"], work=1.9)
    program.task(None, name="ready", inputs=[first], outputs=["w"], work=1.0)
    at = {}

    class Spy(LHeft):
        def react(self, view, events):
            answers = super().react(view, events)
            at.update({program.graph.task_names[t]: view.time for a in answers for t in a.tasks.tolist()})
            return answers

    lab = hr.Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    simulate_scheduler(program.graph, lab, Spy(idle_within=within, rebalance=False))
    assert at == {"first": 0.0, "last": 0.0, "queued": 0.0, "ready": pytest.approx(placed)}


def test_a_negative_time_is_refused():
    with pytest.raises(UsageError, match="idle_within is -1"):
        LHeft(idle_within=-1)


def test_a_host_that_was_idle_long_is_not_taken_for_soon_idle():
    """Host b waits 100 s for its input, then works 50 s: at 110 s it has 40 s left, not none."""
    program = hr.Program()
    for _ in range(2):
        program.task(None, work=50.0)
    platform = hr.Platform.pairwise([1.0], bandwidth=1e6)
    problem = make_static_problem(program.graph, platform, ExecutionPolicy())
    state = make_state(program.graph, platform, problem)
    state.predicted[:] = 50.0
    state.backlog[0], state.last_completion[0], state.busy_cores[0] = 50.0, 0.0, 1
    state.core_task[0], state.run_host[0], state.run_start[0] = 0, 0, 100.0
    state.load[0], state.counters[IDLE_HOSTS] = BALANCED, 0
    records = RunRecords(problem, state)

    def asked(now: float, within: float) -> bool:
        conditions = WakeConditions(ready=64, idle=True, idle_within=within)
        wake = compiled_wake(
            conditions, program.graph.work, program.graph.speed_class, platform.rates(program.graph), True
        )
        return bool(is_asked_for(records.problem_ref, records.state_ref, now, wake, True, False))

    assert not asked(110.0, 30.0)
    assert asked(125.0, 30.0)
    assert not asked(125.0, 0.0)


def test_just_in_time_gives_out_free_cores_once():
    """Tasks of one and two cores, with inputs from afar: what waits for its input holds its cores already."""
    program = hr.Program()
    for i in range(12):
        program.task(None, name=f"t{i}", inputs=[program.input(f"x{i}", size=1e6)], work=1.0, cores=1 + i % 2)
    hosts = (hr.Host("slow", cores=3), hr.Host("fast", cores=2, speed=2.0))
    lab = hr.Platform((hr.Site("home"), hr.Site("s", hosts, uplink=1e6)), origin="home")
    most = []

    class Spy(Workqueue):
        def react(self, view, events):
            answers = super().react(view, events)
            held = {h.name: int(view.state.busy_cores[k]) for k, h in enumerate(hosts)}
            for k, host in enumerate(hosts):
                held[host.name] += sum(int(view.graph.cores[t]) for t in view.queue(k))
            for answer in answers:
                for task, host in zip(answer.tasks.tolist(), answer.hosts.tolist(), strict=True):
                    held[hosts[host].name] += int(view.graph.cores[task])
            most.append(held)
            return answers

    run = simulate_scheduler(program.graph, lab, Spy())
    assert check(program.graph, lab, run.executed) == []
    assert max(held["slow"] for held in most) == 3
    assert max(held["fast"] for held in most) == 2


def test_just_in_time_takes_the_fastest_free_host():
    program = hr.Program()
    for _ in range(2):
        program.task(None, work=6.0)
    run = simulate_scheduler(program.graph, hr.Platform.pairwise([1.0, 3.0, 2.0], bandwidth=1e6), Workqueue())
    assert run.executed.host.tolist() == [1, 2]


def test_the_mean_follows_which_hosts_are_up_and_not_how_many():
    rates, scheduler = np.array([[1.0, 2.0, 4.0]]), LHeft()
    first = scheduler._mean_seconds(SimpleNamespace(hosts_up=np.array([True, True, False])), rates)
    then = scheduler._mean_seconds(SimpleNamespace(hosts_up=np.array([False, True, True])), rates)
    assert (first.tolist(), then.tolist()) == ([0.75], [0.375])
