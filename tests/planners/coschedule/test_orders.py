"""Orders of jobs: cores that end alike, and the order of a flow shop against all others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.scheduler import Problem
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program
from headrace.planners.coschedule.instance import instance_of
from headrace.planners.coschedule.orders import _even_cores, rules


def longest_first(run: list[float], cores: int) -> list[float]:
    ends = [0.0] * cores
    for seconds in sorted(run, reverse=True):
        ends[ends.index(min(ends))] += seconds
    return ends


@given(st.lists(st.integers(1, 1000).map(float), min_size=1, max_size=60), st.integers(1, 8))
def test_every_job_is_on_one_core_and_none_ends_later_than_longest_first(
    run: list[float], cores: int
) -> None:
    jobs = _even_cores(np.array(run), cores)
    assert sorted(j for core in jobs for j in core) == list(range(len(run)))
    assert max(sum(run[j] for j in core) for core in jobs) <= max(longest_first(run, cores)) + 1e-9


def test_exchanges_close_a_gap() -> None:
    """Longest first gives 5 + 3 + 3 = 11 and 5 + 4 = 9; with one exchange both are 10."""
    run = np.array([5.0, 5.0, 4.0, 3.0, 3.0])
    assert max(longest_first(run.tolist(), 2)) == 11.0
    assert [float(run[core].sum()) for core in _even_cores(run, 2)] == [10.0, 10.0]


def flow_shop_end(jobs: list[tuple[int, int, int]], order: Sequence[int]) -> int:
    """When the last output arrives if both links serve the jobs in this order and no job waits for a core."""
    arrived = sent = 0
    for j in order:
        come, run, leave = jobs[j]
        arrived += come
        sent = max(sent, arrived + run) + leave
    return sent


@given(st.lists(st.tuples(*[st.integers(1, 20)] * 3), min_size=1, max_size=6))
def test_no_order_is_better_than_that_of_a_flow_shop(jobs: list[tuple[int, int, int]]) -> None:
    program = Program("flow-shop")
    for j, (come, run, leave) in enumerate(jobs):
        program.input(f"in{j}", size=come, sites=["from"])
        made = program.task(None, inputs=[f"in{j}"], outputs={f"out{j}": leave}, work=run, name=f"j{j}")
        program.output(made, sites=["to"])
    platform = Platform(
        (Site("from"), Site("farm", (Host("pool", cores=len(jobs)),)), Site("to")),
        (Link("from", "farm", 1.0, oneway=True), Link("farm", "to", 1.0, oneway=True)),
        contention="fifo",
        routing="links",
    )
    instance = instance_of(Problem(program.graph, platform))
    order = dict(rules(instance, np.zeros(len(jobs), np.int32)))["flow shop"]
    least = min(flow_shop_end(jobs, other) for other in permutations(range(len(jobs))))
    assert flow_shop_end(jobs, order.tolist()) == least
