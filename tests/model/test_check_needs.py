"""The checks of memory and resources: against plans made by hand, and a count moment by moment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.check import check
from headrace.model.errors import BadPlatform, BadProgram
from headrace.model.plan import NO_MOVES, Plan
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program


def planned(
    spans: list[tuple[float, float, float, int]], memory: float, gpus: int
) -> tuple[Program, Platform, Plan]:
    """Tasks (start, seconds, memory, GPUs), each on its own core of one host."""
    program = Program("spans")
    for number, (_, seconds, needed, gpu) in enumerate(spans):
        program.task(None, name=f"t{number}", work=seconds, memory=needed, resources={"gpu": gpu})
    host = Host("h", cores=len(spans), memory=memory, resources={"gpu": gpus})
    lab = Platform((Site("a", (host,)),))
    n = len(spans)
    start = np.array([s for s, *_ in spans])
    finish = start + np.array([d for _, d, *_ in spans])
    core = np.arange(n, dtype=np.int32)
    return program, lab, Plan(program.graph, lab, "x", np.zeros(n, np.int32), core, start, finish, **NO_MOVES)


def test_the_message_says_who_when_and_how_much() -> None:
    program, lab, plan = planned([(0.0, 4.0, 3e9, 1), (2.0, 4.0, 2e9, 1), (6.0, 1.0, 3e9, 0)], 4e9, 1)
    memory, gpu = check(program, lab, plan)
    assert memory.rule == "memory"
    assert "task 't1' on host 'h', core 1, 2.0 to 6.0: needs 2 GB of memory" in memory.message
    assert "at 2.0 that makes 5 GB of memory, and the host has 4 GB of memory" in memory.message
    assert gpu.rule == "resource"
    assert "needs 1 of 'gpu'" in gpu.message
    assert "makes 2 of 'gpu', and the host has 1 of 'gpu'" in gpu.message


def test_one_task_after_another_is_fine() -> None:
    assert not check(*planned([(0.0, 4.0, 3e9, 1), (4.0, 4.0, 3e9, 1)], 4e9, 1))


def test_a_task_that_does_not_fit_alone() -> None:
    (alone,) = check(*planned([(1.0, 0.0, 5e9, 0)], 4e9, 0))
    assert "needs 5 GB of memory, the host has 4 GB of memory in all" in alone.message


spans = st.lists(
    st.tuples(
        st.integers(0, 8).map(float), st.integers(0, 5).map(float), st.integers(0, 4), st.integers(0, 2)
    ),
    min_size=1,
    max_size=9,
)


@settings(max_examples=200, deadline=None)
@given(spans, st.integers(0, 9), st.integers(0, 4))
def test_as_a_count_moment_by_moment(
    listed: list[tuple[float, float, int, int]], memory: int, gpus: int
) -> None:
    program, lab, plan = planned([(s, d, float(m), g) for s, d, m, g in listed], float(memory), gpus)
    found = {violation.rule for violation in check(program, lab, plan)}
    wanted = set()
    for rule, column, has in (("memory", 2, memory), ("resource", 3, gpus)):
        alone = any(each[column] > has for each in listed)
        at_once = max(
            sum(each[column] for each in listed if each[0] <= moment < each[0] + each[1])
            for moment in np.arange(0.5, 14.0)
        )
        if alone or at_once > has:
            wanted.add(rule)
    assert found == wanted


@pytest.mark.parametrize(
    "resources",
    [{"gpu": 0.5}, {"gpu": -1}, {"gpu": True}, {"gpu": "1"}, {"": 1}, {"memory": 1}, {"cores": 1}, ["gpu"]],
)
def test_resources_are_whole_numbers_by_name(resources: dict[str, int]) -> None:
    with pytest.raises(BadProgram, match="resource"):
        Program("bad").task(None, name="t", resources=resources)
    with pytest.raises(BadPlatform, match="resource"):
        Host("h", resources=resources)


def test_bytes_are_rounded_up_for_tasks_and_down_for_hosts() -> None:
    """Half a byte more than there is does not fit."""
    assert [v.rule for v in check(*planned([(0.0, 1.0, 4.5, 0)], 4.9, 0))] == ["memory"]
    assert not check(*planned([(0.0, 1.0, 3.5, 0)], 4.0, 0))


def test_more_memory_than_can_be_counted() -> None:
    program = Program("huge")
    program.task(None, memory=1e17)
    with pytest.raises(BadProgram, match="memory is 1e"):
        _ = program.graph
