"""Applications that behave as a pipeline was measured, and many emulated hosts behind one agent."""

from __future__ import annotations

import pytest

from headrace.model.pipeline import FilterProfile, Pipeline, PipelineProblem, Source, Stream
from headrace.model.platform import Host, Platform, Site
from headrace.runtime.filters_here import run_here
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.shared_host import SharedAgent
from headrace.runtime.streams.sleepers import Scale, sleeping_app
from headrace.runtime.streams.supervisor import Supervisor

from .apps import carried_out


def diamond() -> PipelineProblem:
    pipeline = Pipeline(
        "diamond",
        [
            FilterProfile("read", 10.0, 100.0, 2.0),
            FilterProfile("a", 20.0, 50.0, 2.0),
            FilterProfile("b", 30.0, 20.0, 2.0),
            FilterProfile("join", 5.0, 0.0, 2.0),
        ],
        [Stream("read", "a"), Stream("read", "b", 40.0), Stream("a", "join"), Stream("b", "join")],
        sources=[Source("n1", {"n1": 1.0})],
    )
    return PipelineProblem(pipeline, Platform((Site("s", (Host("n1", 4.0), Host("n2", 1.0)), 1e6),)))


def test_volumes_and_times_are_in_proportion():
    app, powers = sleeping_app(diamond(), Scale(buffers=50, faster=1000.0, smaller=1000.0))
    assert powers == dict.fromkeys(app.order, 4.0)
    reader = app.make("read")
    assert reader.sizes == {"read-a": 2000, "read-b": 800}  # type: ignore[attr-defined]
    # Half of its time, on a host of twice the power.
    assert reader.seconds == pytest.approx(10.0 / 1000 / 50 / 2)  # type: ignore[attr-defined]
    a = app.make("a")
    assert a.seconds_per_byte * 100_000 == pytest.approx(20.0 / 1000 / 2)  # type: ignore[attr-defined]
    assert a.ratios == {"a-join": 0.5}  # type: ignore[attr-defined]
    assert run_here(app) == {"join": []}


def test_many_hosts_share_an_agent():
    app, _ = sleeping_app(diamond(), Scale(buffers=60, faster=10_000.0, smaller=1000.0))
    names = [f"n{i}" for i in range(12)]
    with SharedAgent(names) as hosts:
        progress, units = carried_out(app, {"a": 5, "b": 4}, hosts)
        again = Supervisor(
            app, even_plan(app, {"a": 2}, names), hosts, StreamOptions(), commit=lambda unit: None
        ).run()
    assert len(units) == 1
    received = {c.filter: 0 for c in progress.plan.copies}
    for copy in progress.plan.copies:
        received[copy.filter] += progress.copies[copy.copy]["buffers_in"]
    assert received == {"read": 0, "a": 60, "b": 60, "join": 120}
    assert again.committed == 1
