"""What the coordinator knows after events: what is left, where data is, what a lost host costs.

Workers have queues of their own here, so that only events matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.programs import Told, chain, finished, moved, undone
from headrace.core.coordinator import Coordinator
from headrace.core.scheduler import Assign
from headrace.model.errors import NoPlan
from headrace.model.events import Event, HostJoined, HostLeft, Started, TaskErred
from headrace.model.graph import Graph
from headrace.model.platform import Host, Platform, Site
from headrace.testing.generate import random_program


class Validated(Coordinator):
    """Validates its state after everything that it handles."""

    def handle(self, events: Sequence[Event]) -> list[object]:  # type: ignore[override]
        answer: list[object] = list(super().handle(events))
        self.validate_state()
        return answer


def coordinator(graph: Graph, hosts: int = 3) -> Validated:
    return Validated(Told(), graph, Platform.pairwise([1.0] * hosts, bandwidth=1e6), workers_queue=True)


def test_events_reach_the_scheduler_with_the_state_after_them():
    scheduler = Told([Assign("b", "h0", 0.0)])
    c = Validated(scheduler, chain().graph, Platform.pairwise([1.0] * 3, bandwidth=1e6), workers_queue=True)
    events = [Started(0.0), finished("a", "h1", time=7.0)]
    assert c.handle(events) == [Assign("b", "h0", 0.0)]
    assert scheduler.seen == [(7.0, events)]
    assert undone(c) == ["b", "c", "d"]


def test_time_never_goes_back():
    c = coordinator(chain().graph)
    c.handle([finished("a", "h1", time=7.0), moved("y", "h1", "h0")])
    assert c.view.time == 7.0


def test_an_error_leaves_the_task_undone():
    c = coordinator(chain().graph)
    c.handle([TaskErred(1.0, "a", "h0", "boom")])
    assert undone(c) == ["a", "b", "c", "d"]


def test_the_whole_problem_is_left_at_the_start():
    graph = chain().graph
    problem = coordinator(graph).view.problem()
    assert problem.graph.task_names == graph.task_names
    assert np.array_equal(problem.graph.work, graph.work)
    assert np.array_equal(problem.graph.reads, graph.reads)
    assert problem.holders == {}


def test_what_is_left_after_some_tasks():
    c = coordinator(chain().graph)
    c.handle([finished("a", "h1"), moved("y", "h1", "h2"), finished("b", "h2")])
    problem = c.view.problem()
    rest = problem.graph
    names = list(rest.item_names)
    assert list(rest.task_names) == ["c", "d"]
    assert rest.work.tolist() == [3.0, 4.0]
    assert [rest.kinds[k] for k in rest.kind] == ["", ""]
    assert [[names[i] for i in rest.reads_of(t)] for t in range(2)] == [["z", "x"], ["y"]]
    assert {names[i]: p for i, p in problem.holders.items()} == {"y": (1, 2), "z": (2,)}
    assert {n: int(p) for n, p in zip(names, rest.producer, strict=True)} == {
        "x": -1,
        "y": -1,
        "z": -1,
        "w": 0,
        "v": 1,
    }
    assert [n for n, wanted in zip(names, rest.result, strict=True) if wanted] == ["w", "v"]


def test_nothing_is_left_in_the_end():
    c = coordinator(chain().graph)
    c.handle([finished(t, "h0") for t in "abcd"])
    assert c.view.problem().graph.n_tasks == 0


def test_places_are_numbered_anew_when_a_host_has_left():
    c = coordinator(chain().graph)
    c.handle([finished("a", "h2"), HostLeft(2.0, "h0")])
    problem = c.view.problem()
    assert [h.name for h in problem.platform.hosts] == ["h1", "h2"]
    assert problem.holders == {1: (1,)}


def test_hosts_that_share_a_file_system_hold_together():
    hosts = tuple(Host(f"h{i}") for i in range(3))
    c = Validated(Told(), chain().graph, Platform((Site("s", hosts),)), workers_queue=True)
    c.handle([finished("a", "h2"), moved("y", "h2", "h0")])
    assert c.view.problem().holders == {1: (0,)}


def test_a_lost_copy_costs_nothing_while_another_is_left():
    c = coordinator(chain().graph)
    c.handle([finished("a", "h1"), moved("y", "h1", "h2"), HostLeft(2.0, "h1")])
    assert undone(c) == ["b", "c", "d"]
    c.handle([HostLeft(3.0, "h2")])
    assert undone(c) == ["a", "b", "c", "d"]


def test_what_nobody_needs_any_more_is_not_made_again():
    c = coordinator(chain().graph)
    c.handle([finished("a", "h1"), finished("d", "h0"), finished("b", "h0"), HostLeft(2.0, "h1")])
    assert undone(c) == ["c"]


def test_makers_of_makers_run_again_when_their_data_is_gone_too():
    c = coordinator(chain().graph)
    c.handle([finished("a", "h1"), finished("d", "h0"), finished("b", "h0")])
    c.handle([HostLeft(2.0, "h1"), HostLeft(3.0, "h0")])
    # z is gone and c needs it; y went with h1, when nobody needed it, and v is a result.
    assert undone(c) == ["a", "b", "c", "d"]


def test_a_lost_result_is_made_again():
    c = coordinator(chain().graph)
    c.handle([finished(t, "h1" if t == "c" else "h0") for t in "abcd"])
    c.handle([HostLeft(2.0, "h1")])
    assert undone(c) == ["c"]


def test_a_host_comes_back_empty():
    c = coordinator(chain().graph)
    c.handle([finished("a", "h1"), HostLeft(2.0, "h1"), HostJoined(3.0, "h1")])
    problem = c.view.problem()
    assert [h.name for h in problem.platform.hosts] == ["h0", "h1", "h2"]
    assert undone(c) == ["a", "b", "c", "d"]
    assert problem.holders == {}
    c.handle([finished("a", "h1")])
    assert c.view.problem().holders == {1: (1,)}


def test_news_from_a_host_that_has_left_does_not_count():
    c = coordinator(chain().graph)
    c.handle([finished("a", "h0"), HostLeft(2.0, "h1"), moved("y", "h0", "h1"), finished("b", "h1")])
    assert undone(c) == ["b", "c", "d"]
    assert c.view.problem().holders == {1: (0,)}
    c.handle([HostLeft(3.0, "h0")])
    assert undone(c) == ["a", "b", "c", "d"]


def test_without_any_host_there_is_no_plan():
    c = coordinator(chain().graph, hosts=2)
    c.handle([HostLeft(1.0, "h0"), HostLeft(1.0, "h1")])
    with pytest.raises(NoPlan, match="no host is up"):
        c.view.problem()


def must_run_again(graph: Graph, done: set[int], copies: dict[int, set[str]]) -> set[int]:
    """The definition, by repetition: done tasks with a wanted output of which no copy is left. Signals are not lost."""
    again: set[int] = set()
    while True:
        more = {
            t
            for t in done - again
            for i in graph.writes_of(t).tolist()
            if not copies.get(i)
            and graph.size[i] > 0
            and (graph.result[i] or any(r not in done or r in again for r in graph.readers_of(i).tolist()))
        }
        if not more:
            return again
        again |= more


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    st.integers(0, 10**6), st.integers(1, 18), st.sampled_from(["layered", "fork-join", "chain", "random"])
)
def test_losing_hosts_costs_the_fewest_tasks(seed, tasks, shape):
    """Random runs on four hosts, of which three leave one after another, some to come back."""
    rng = np.random.default_rng(seed)
    graph = random_program(seed, tasks, shape).graph
    c = coordinator(graph, hosts=4)
    done: set[int] = set()
    copies: dict[int, set[str]] = {}
    up = ["h0", "h1", "h2", "h3"]
    for _ in range(3):
        for t in graph.order.tolist():
            before = {int(graph.producer[i]) for i in graph.reads_of(t)} - {-1}
            if t not in done and before <= done and rng.random() < 0.7:
                host = str(rng.choice(up))
                done.add(t)
                c.handle([finished(graph.task_names[t], host)])
                for i in graph.writes_of(t).tolist():
                    copies.setdefault(i, set()).add(host)
                    if rng.random() < 0.3:
                        target = str(rng.choice(up))
                        copies[i].add(target)
                        c.handle([moved(graph.item_names[i], host, target)])
        lost = str(rng.choice(up))
        for hosts in copies.values():
            hosts.discard(lost)
        done -= must_run_again(graph, done, copies)
        c.handle([HostLeft(1.0, lost)])
        assert set(np.flatnonzero(c.view.done).tolist()) == done
        if rng.random() < 0.5:
            c.handle([HostJoined(1.0, lost)])
        else:
            up.remove(lost)
        problem = c.view.problem()
        assert [h.name for h in problem.platform.hosts] == [h for h in ("h0", "h1", "h2", "h3") if h in up]
        for i in problem.graph.reads.tolist():
            made = graph.producer[i] >= 0 and problem.graph.producer[i] < 0 and graph.size[i] > 0
            assert not made or set(problem.holders[i]) == {
                n for n, h in enumerate(problem.platform.hosts) if h.name in copies[i]
            }
