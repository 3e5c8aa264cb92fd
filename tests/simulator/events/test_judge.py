"""The judge of simulated runs: logs that were tampered with are refused, each by its rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from headrace.model.behaviour import Change
from headrace.model.graph import make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.online.workqueue import Workqueue
from headrace.simulator.events import grid_state as w
from headrace.simulator.events.backend import simulate_scheduler
from headrace.simulator.events.run import SimulatedRun
from headrace.testing.fair_truth import Flow, finish_flows
from headrace.testing.grid_truth import Pieces
from headrace.testing.invariants import judge

GONE = [Change(5.0, "host-down", "h1")]


def a_run(contention: str = "fifo") -> SimulatedRun:
    """Two hosts with two cores each, inputs at a store, four tasks with a result each; h1 leaves at 5 s."""
    graph = make_graph(
        work=[3.0, 3.0, 3.0, 3.0],
        size=[20.0, 10.0, 10.0, 10.0, 10.0],
        producer=[-1, 0, 1, 2, 3],
        read_ptr=[0, 1, 2, 3, 4],
        reads=[0, 0, 0, 0],
    )
    hosts = (Host("h0", cores=2), Host("h1", cores=2))
    platform = Platform(
        (Site("lab", hosts, bandwidth=10.0, uplink=10.0), Site("store", storage=1e3)),
        contention=contention,  # type: ignore[arg-type]
        origin="store",
    )
    return simulate_scheduler(graph, platform, Workqueue(), changes=GONE)


def first(run: SimulatedRun, kind: int) -> int:
    return int(np.flatnonzero(run.log_kind == kind)[0])


def without(kind: int) -> Callable[[SimulatedRun], SimulatedRun]:
    def tamper(run: SimulatedRun) -> SimulatedRun:
        keep = np.arange(run.events) != first(run, kind)
        return replace(
            run,
            **{
                name: getattr(run, name)[keep]
                for name in ("log_time", "log_kind", "log_subject", "log_from", "log_to")
            },
        )

    return tamper


def changed(kind: int, column: str, by: float) -> Callable[[SimulatedRun], SimulatedRun]:
    def tamper(run: SimulatedRun) -> SimulatedRun:
        values = getattr(run, column).copy()
        values[first(run, kind)] += by
        return replace(run, **{column: values})

    return tamper


def later(kind: int, by: float) -> Callable[[SimulatedRun], SimulatedRun]:
    """The line and all after it happen later."""

    def tamper(run: SimulatedRun) -> SimulatedRun:
        times = run.log_time.copy()
        times[first(run, kind) :] += by
        return replace(run, log_time=times, makespan=run.makespan + by)

    return tamper


@pytest.mark.parametrize(
    ("tamper", "rule"),
    [
        (without(w.TASK_STARTED), "core"),
        (without(w.TASK_ENDED), "lost"),
        (without(w.TASK_STOPPED), "host"),
        (without(w.MOVE_STARTED), "source"),
        (without(w.MOVE_ENDED), "input"),
        (without(w.HOST_LEFT), "script"),
        (changed(w.TASK_STARTED, "log_to", 5), "core"),
        (changed(w.TASK_STARTED, "log_subject", 1), "twice"),
        (changed(w.MOVE_STARTED, "log_from", -1), "source"),
        (changed(w.HOST_LEFT, "log_subject", -1), "script"),
        (changed(w.TASK_STOPPED, "log_time", -1.0), "stopped"),
        (later(w.TASK_ENDED, 0.5), "duration"),
        (later(w.MOVE_ENDED, 0.5), "transfer"),
        (later(w.HOST_LEFT, 0.5), "script"),
    ],
)
def test_a_log_that_was_tampered_with_is_refused(
    tamper: Callable[[SimulatedRun], SimulatedRun], rule: str
) -> None:
    run = a_run()
    assert judge(run, GONE) == []
    assert rule in {violation.rule for violation in judge(tamper(run), GONE)}


def test_results_must_be_back_at_the_origin() -> None:
    run = a_run()
    last = int(np.flatnonzero(run.log_kind == w.MOVE_ENDED)[-1])
    cut_off = replace(
        run,
        **{
            name: getattr(run, name)[:last]
            for name in ("log_time", "log_kind", "log_subject", "log_from", "log_to")
        },
    )
    assert "result" in {violation.rule for violation in judge(cut_off, GONE)}


def test_a_run_on_links_that_were_narrower_is_refused() -> None:
    """With fair links the shares are worked out anew."""
    run = a_run("fair")
    assert judge(run, GONE) == []
    site = replace(run.platform.sites[0], uplink=8.0)
    narrower = replace(run, platform=replace(run.platform, sites=(site, run.platform.sites[1])))
    assert "transfer" in {violation.rule for violation in judge(narrower, GONE)}


def test_a_run_on_less_storage_is_refused() -> None:
    run = a_run()
    store = replace(run.platform.sites[1], storage=30.0)
    smaller = replace(run, platform=replace(run.platform, sites=(run.platform.sites[0], store)))
    assert "storage" in {violation.rule for violation in judge(smaller, GONE)}


def test_a_run_under_another_script_is_refused() -> None:
    run = a_run()
    assert "script" in {violation.rule for violation in judge(run, [])}
    other = [*GONE, Change(0.5, "link-down", "lab"), Change(9.0, "link-up", "lab")]
    assert "script" in {violation.rule for violation in judge(run, other)}


def test_shares_of_flows_by_hand() -> None:
    """20 and 60 bytes over 10 B/s: 4 s at 5 B/s each, then 40 bytes alone; one that is cut frees its share."""
    flows = [Flow(0.0, 20.0, (0,), arrived=True), Flow(0.0, 60.0, (0,), arrived=True)]
    finish_flows(flows, [Pieces(10.0, None)])
    assert [flow.end for flow in flows] == [4.0, 8.0]
    flows = [Flow(0.0, 60.0, (0,), arrived=True), Flow(0.0, 60.0, (0,), over=2.0)]
    finish_flows(flows, [Pieces(10.0, None)])
    assert flows[0].end == 7.0
