"""Lists of idle and crowded hosts: as a count over all hosts finds them, after any sequence of decisions and events."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from core.programs import Told, finished
from headrace.core import state as s
from headrace.core.coordinator import Coordinator
from headrace.core.scheduler import ON_GRID_CHANGES, Assign
from headrace.model.events import HostJoined, HostLeft, Started
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program

LAB = Platform((Site("lab", (Host("a", cores=1), Host("b", cores=2), Host("c", cores=3)), bandwidth=10.0),))


def loads(coordinator: Coordinator) -> tuple[set[int], set[int]]:
    """Idle hosts and crowded hosts, as the lists have them."""
    state = coordinator.records.state
    counts = state.counters
    return (
        set(state.idle_hosts[: counts[s.IDLE_HOSTS]].tolist()),
        set(state.crowded_hosts[: counts[s.CROWDED_HOSTS]].tolist()),
    )


def independent(cores: list[int]) -> Program:
    program = Program()
    for number, count in enumerate(cores):
        program.task(name=f"t{number}", work=10.0, cores=count)
    return program


def test_a_host_is_idle_with_a_free_core_and_crowded_with_more_tasks_than_cores() -> None:
    answer = [Assign("t0", "a", 0), Assign("t1", "a", 1), Assign("t2", "b", 2), Assign("t3", "b", 3)]
    coordinator = Coordinator(Told(answer, wake=ON_GRID_CHANGES), independent([1] * 4).graph, LAB)
    assert loads(coordinator) == ({0, 1, 2}, set())
    coordinator.handle([Started(0.0)])
    assert loads(coordinator) == ({2}, {0})
    coordinator.handle([finished("t0", "a", 10.0)])
    assert loads(coordinator) == ({2}, set())
    coordinator.handle([finished("t2", "b", 10.0)])
    assert loads(coordinator) == ({1, 2}, set())
    coordinator.handle([HostLeft(11.0, "b")])
    assert loads(coordinator) == ({2}, set())
    assert coordinator.records.state.counters[s.HOSTS_UP] == 2
    coordinator.handle([HostJoined(12.0, "b")])
    assert loads(coordinator) == ({1, 2}, set())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from("abc"), st.integers(0, 2)), max_size=12),
)
def test_the_lists_are_what_a_count_finds(cores: list[int], steps: list[tuple[int, str, int]]) -> None:
    """`validate_state` counts; it also compares the sums that bound the backlogs."""
    answers = [[Assign(f"t{task % len(cores)}", host, k)] for k, (task, host, _) in enumerate(steps)]
    coordinator = Coordinator(Told([], *answers, wake=ON_GRID_CHANGES), independent(cores).graph, LAB)
    coordinator.handle([Started(0.0)])
    for time, (_, host, what) in enumerate(steps, 1):
        state, number = coordinator.records.state, coordinator.view.host_number[host]
        running = [t for t in range(len(cores)) if state.run_host[t] == number]
        if what == 0 and running:
            coordinator.handle([finished(f"t{running[0]}", host, float(time))])
        else:
            coordinator.handle(
                [HostLeft(float(time), host), HostJoined(float(time), host)]
                if what == 1
                else [HostJoined(float(time), host)]
            )
        coordinator.validate_state()
