"""Decisions of steering, by themselves: against a plain statement of the rule, and in a simulated clock."""

from __future__ import annotations

import heapq
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.runtime.steering_dispatch import MOST, Part, Ready, Slot, dispatch, ready_task
from headrace.runtime.steering_moves import COST, worthwhile_moves
from headrace.runtime.steering_ranks import upward_ranks
from headrace.runtime.steering_times import Delays, Times, index_of

QUIET = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
works = st.lists(st.floats(0.001, 10.0), min_size=1, max_size=12)
speeds = st.lists(st.sampled_from([0.5, 1.0, 2.0, 4.0]), min_size=1, max_size=4)


def tasks_of(work: list[float]) -> list[Ready]:
    return [ready_task(k, (0, 0, k), "f", w, []) for k, w in enumerate(work)]


def slots_of(speed: list[float], threads: int = 1) -> dict[str, Slot]:
    return {f"w{k}": Slot(f"w{k}", threads) for k in range(len(speed))}


def seconds_of(speed: list[float]):
    return lambda prefix, work, worker: work / speed[int(worker[1:])]


def run_all(work: list[float], speed: list[float]) -> float:
    """The makespan of independent tasks in a simulated clock, dispatched at every end of a task."""
    queue, slots, seconds = tasks_of(work), slots_of(speed), seconds_of(speed)
    now, ends, free_at = 0.0, [], dict.fromkeys(slots, 0.0)
    while queue or ends:
        sent = dispatch(queue, slots, now, seconds, lambda a, b: 1e9, Delays())
        assert sent or ends, "tasks wait, and nothing runs"
        for task, worker in sent:
            lasts = seconds("f", task.work, worker)
            slots[worker].add(task.key, lasts, task.priority, now)
            free_at[worker] = max(free_at[worker], now) + lasts
            heapq.heappush(ends, (free_at[worker], task.key, worker))
            queue.remove(task)
        now, key, worker = heapq.heappop(ends)
        slots[worker].remove(key, now)
    return now


@QUIET
@given(works, speeds)
def test_every_task_runs_and_never_later_than_all_on_the_fastest(work, speed):
    assert run_all(work, speed) <= sum(work) / max(speed) * (1 + 1e-9) + 1e-9


@QUIET
@given(
    st.lists(st.floats(0.1, 5.0), min_size=1, max_size=6),
    st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=1, max_size=3),
)
def test_within_twice_the_optimum_of_all_assignments(work, speed):
    best = min(
        max(sum(w for w, at in zip(work, placed, strict=True) if at == k) / s for k, s in enumerate(speed))
        for placed in itertools.product(range(len(speed)), repeat=len(work))
    )
    assert run_all(work, speed) <= 2 * best + 1e-9


def plain_rule(work, speed, busy, ahead):
    """What `dispatch` does to tasks without inputs on workers with one thread, said once more."""
    sent, busy = [], list(busy)
    for number, amount in enumerate(work):
        finish = [b + amount / s for b, s in zip(busy, speed, strict=True)]
        at = finish.index(min(finish))
        if busy[at] < ahead:
            sent.append((number, at))
        busy[at] += amount / speed[at]
    return sent


@QUIET
@given(works, st.data())
def test_as_the_rule_says(work, data):
    speed = data.draw(speeds)
    busy = data.draw(
        st.lists(st.sampled_from([0.0, 0.004, 0.5, 3.0]), min_size=len(speed), max_size=len(speed))
    )
    slots = slots_of(speed)
    for slot, left in zip(slots.values(), busy, strict=True):
        if left:
            slot.add("old", left, (0,), 0.0)
    delays = Delays()
    found = dispatch(tasks_of(work), slots, 0.0, seconds_of(speed), lambda a, b: 1e9, delays)
    assert [(task.key, int(worker[1:])) for task, worker in found] == plain_rule(
        work, speed, busy, delays.ahead
    )


def test_a_slow_worker_is_left_idle_when_the_fast_one_is_sooner_free():
    speed = [4.0, 1.0]
    slots = slots_of(speed)
    slots["w0"].add("old", 0.3, (0,), 0.0)
    two, five = tasks_of([1.0, 1.0]), tasks_of([1.0] * 5)
    seconds = seconds_of(speed)
    assert dispatch(two, slots, 0.0, seconds, lambda a, b: 1e9, Delays()) == []
    assert [w for _, w in dispatch(five, slots, 0.0, seconds, lambda a, b: 1e9, Delays())] == ["w1"]


def test_a_task_goes_where_its_inputs_are_unless_moving_pays():
    slots = slots_of([1.0, 1.0])
    slots["w0"].add("old", 1.0, (0,), 0.0)
    seconds, rate = seconds_of([1.0, 1.0]), lambda a, b: 1e6

    def worker(size: float) -> list[str]:
        task = ready_task("t", (0,), "f", 0.1, [Part(size, ("w0",))])
        return [w for _, w in dispatch([task], slots, 0.0, seconds, rate, Delays())]

    assert worker(100.0) == ["w1"]  # 0.1 ms to move, 1 s to wait
    assert worker(5e6) == []  # 5 s to move: it waits for w0


def test_many_inputs_are_summed_by_worker():
    parts = [Part(10.0, ("a",)), *[Part(1.0, ("a", "b"))] * 20]
    task = ready_task("t", (0,), "f", 1.0, parts)
    assert task.transfer("a", lambda s, t: 1.0, 0.5) == 0.0
    assert task.transfer("b", lambda s, t: 1.0, 0.5) == 10.5
    assert task.transfer("c", lambda s, t: 2.0, 0.5) == 15.5


def test_tasks_that_take_no_time_do_not_pile_up_without_limit():
    sent = dispatch(
        tasks_of([0.0] * 500), slots_of([1.0]), 0.0, seconds_of([1.0]), lambda a, b: 1e9, Delays()
    )
    assert len(sent) == MOST


def test_a_worker_gets_one_task_of_unknown_length():
    tasks = [ready_task(k, (0, 0, k), "f", 0.001, [], known=False) for k in range(10)]
    sent = dispatch(tasks, slots_of([1.0, 1.0]), 0.0, seconds_of([1.0, 1.0]), lambda a, b: 1e9, Delays())
    assert sorted(worker for _, worker in sent) == ["w0", "w1"]


def test_threads_run_side_by_side():
    sent = dispatch(
        tasks_of([1.0] * 6), slots_of([1.0], threads=4), 0.0, seconds_of([1.0]), lambda a, b: 1e9, Delays()
    )
    assert len(sent) == 4


def test_a_task_that_overruns_is_expected_to_go_on():
    slot = Slot("w", 1)
    slot.add("a", 1.0, (0,), 0.0)
    slot.add("b", 1.0, (1,), 0.0)
    assert slot.busy(0.5) == pytest.approx(1.5)
    assert slot.busy(11.0) == pytest.approx(11.05)
    slot.remove("a", 11.0)
    assert slot.tasks["b"].started == 11.0
    assert slot.busy(11.0) == pytest.approx(1.0)


def test_waiting_tasks_move_to_idle_workers_only_if_they_end_sooner():
    slots = slots_of([1.0, 1.0])
    for key in ("a", "b"):
        slots["w0"].add(key, 1.0, (key,), 0.0)
    soon = lambda key, worker: (0.0, 1.0)  # noqa: E731
    late = lambda key, worker: (0.0, 2.0 - COST)  # noqa: E731
    assert list(worthwhile_moves(slots, 0.0, soon)) == [("b", "w0", "w1")]
    assert list(worthwhile_moves(slots, 0.0, late)) == []


class Named:
    def __init__(self, key: str, prefix: str) -> None:
        self.key, self.prefix, self.dependents = key, self, set()
        self.name = prefix


def test_upward_ranks_are_longest_ways():
    times = Times({})
    times.load([("f", "a", 1.0, 0.0), ("f", "b", 5.0, 0.0), ("f", "c", 2.0, 0.0), ("f", "d", 1.0, 0.0)])
    a, b, c, d = (Named(key, "f") for key in "abcd")
    a.dependents, b.dependents, c.dependents = {b, c}, {d}, {d}
    assert upward_ranks([a, b, c, d], times, 0.0, 1e9) == {"d": 1.0, "c": 3.0, "b": 6.0, "a": 7.0}


def test_times_of_the_same_task_of_its_prefix_and_of_its_worker():
    times = Times({"fast": 4.0, "slow": 1.0})
    assert not times.knows("f")
    times.observe("f", ("f-1", 0), "fast", 1.0, 8.0)
    times.observe("f", ("f-1", 1), "fast", 2.0, 8.0)
    assert times.work("f", ("f-2", 1)) == 8.0
    assert times.work("f", ("f-2", 9)) == 6.0
    assert times.seconds("f", 6.0, "slow") == 6.0
    for _ in range(50):
        times.observe("f", ("f-3", 5), "slow", 12.0, 8.0)  # for this function it is slower than probed
    assert times.seconds("f", times.prefixes["f"].work.value, "slow") == pytest.approx(12.0, rel=0.1)


@QUIET
@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.0, 1e6)), max_size=30), st.sampled_from("abcd"))
def test_times_stay_finite_and_positive(seen, worker):
    times = Times({"a": 1.0, "b": 2.0})
    for where, seconds in seen:
        times.observe("f", "k", where, seconds, 1.0)
    assert 0 <= times.seconds("f", times.work("f", "k"), worker) < 1e9


def test_index_of_keys():
    assert index_of(("x-ab", 1, 2)) == "1,2"
    assert index_of("x-abc") == "x-abc"
