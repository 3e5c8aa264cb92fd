"""Buffers on their way: arrays, back-pressure, proportions, TLS, emulated hosts and ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model.errors import UsageError
from headrace.model.platform import Host, Platform, Site
from headrace.runtime.filters_here import run_here
from headrace.runtime.streams.counters import Counters
from headrace.runtime.streams.emulation import emulate_platform, emulate_speeds
from headrace.runtime.streams.hosts import LocalHosts
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import Place, even_plan, make_plan
from headrace.runtime.streams.ports import Port
from headrace.runtime.streams.progress import Progress, UnitResult
from headrace.runtime.streams.specs import Emulation
from headrace.runtime.streams.summary import summarize
from headrace.runtime.streams.supervisor import Supervisor
from headrace.runtime.trial import trial

from .apps import carried_out
from .made import arrays, build


def test_arrays_arrive_as_they_were_sent(hosts):
    _, units = carried_out(arrays(200), {"sum": 2}, hosts)
    assert sorted(map(int, units[0].results["sum"])) == list(range(200))
    assert sorted(map(int, run_here(arrays(20))["sum"])) == list(range(20))
    assert len(trial(arrays(20)).results["sum"]) == 20


def test_a_slow_filter_slows_its_source(hosts):
    """Whatever the speeds, no more than the credits are on their way, and no more than that wait to be sent."""
    ahead: list[int] = []
    app = arrays(120, pause=0.005)
    plan = even_plan(app, {}, ["h0"])

    def observe(progress: Progress) -> None:
        if len(progress.copies) == 2:
            ahead.append(progress.copies[0]["buffers_out"] - progress.copies[1]["buffers_in"])

    units: list[UnitResult] = []
    options = StreamOptions(credits=3)
    run = Supervisor(app, plan, hosts, options, commit=units.append, observe=observe)
    progress = run.run()
    assert len(units[0].results["sum"]) == 120
    # One more is being processed, and one waits for its credit.
    assert max(ahead) <= 3 + 2
    assert progress.copies[0]["most_backlog"] <= 3
    assert progress.copies[0]["credit_ns"] > progress.copies[0]["busy_ns"]


def test_buffers_go_out_in_the_planned_proportions(hosts):
    app = arrays(140)
    places = [Place("read", "h0", 1, 1.0), Place("sum", "h0", 1, 1 / 7), Place("sum", "h1", 2, 6 / 7)]
    plan = make_plan(app, places, {("read", "sum"): {("h0", "h0"): 1.0, ("h0", "h1"): 6.0}}, 7.0)
    progress = Supervisor(app, plan, hosts, StreamOptions(), commit=lambda unit: None).run()
    assert [buffers for buffers, _ in progress.copies[0]["sent"]] == [20, 60, 60]
    flows = summarize(app, progress).flows
    assert flows[1].planned == 6.0
    assert flows[1].measured == pytest.approx(6 * flows[0].measured)


def test_units_are_repeated_for_a_duration(hosts):
    app = build("chain", 1, 1, [[3] * 5, [4] * 5])
    _, units = carried_out(app, {}, hosts, StreamOptions(duration=0.3))
    assert [unit.number for unit in units] == list(range(len(units)))
    assert [unit.name for unit in units[:3]] == ["u0", "u1", "u0"]
    assert units[0].results == units[2].results


def test_copies_speak_tls():
    security = pytest.importorskip("distributed").Security.temporary()
    tls = {
        "ca": security.tls_ca_file,
        "cert": security.tls_worker_cert,
        "key": security.tls_worker_key,
    }
    with LocalHosts(["a", "b"], tls) as hosts:
        _, units = carried_out(arrays(300), {"read": 1, "sum": 3}, hosts, StreamOptions(credits=2))
    assert sorted(map(int, units[0].results["sum"])) == list(range(300))


def test_ports_book_one_after_another(tmp_path: Path):
    first, second = Port(tmp_path / "p", 1000.0), Port(tmp_path / "p", 1000.0)
    moments = [first.book(500), second.book(500), first.book(100)]
    first.close()
    second.close()
    assert moments[1] - moments[0] == pytest.approx(0.5)
    assert moments[2] - moments[1] == pytest.approx(0.1)


def test_emulated_platforms_have_factors_and_ports(tmp_path: Path):
    app = arrays(1)
    lab = Platform(
        (Site("s", (Host("n1", 2.0), Host("n2", 1.0, kinds={"sum": 0.5})), bandwidth=1e6),), name="lab"
    )
    plan = even_plan(app, {}, ["n1", "n2"])
    made = emulate_platform(app, plan.pairs, lab, {"read": 2.0, "sum": 2.0}, tmp_path)
    assert made.factors == {("read", "n1"): 1.0, ("sum", "n2"): 4.0}
    assert [rate for _, rate in made.ports("n1", "n2")] == [1e6, 1e6]
    assert made.ports("n1", "n1") == ()
    slow = emulate_platform(app, plan.pairs, lab, {"read": 2.0, "sum": 2.0}, tmp_path, slower=2.0)
    assert slow.factors["read", "n1"] == 2.0
    assert slow.ports("n1", "n2")[0][1] == 5e5
    with pytest.raises(UsageError, match="times as fast as this machine"):
        emulate_platform(app, plan.pairs, lab, {"read": 1.0, "sum": 1.0}, tmp_path)
    with pytest.raises(UsageError, match="no host 'n3'"):
        emulate_platform(app, [("read", "n3")], lab, {"read": 2.0, "sum": 2.0}, tmp_path)
    assert emulate_speeds(plan.pairs, {"n1": 4, "n2": 1}).factors == {("read", "n1"): 1.0, ("sum", "n2"): 4.0}


def test_a_narrow_port_is_what_limits(hosts, tmp_path: Path):
    app = arrays(40)
    ports = Emulation(ports=lambda source, target: ((str(tmp_path / "out"), 4e6),))
    plan = even_plan(app, {}, hosts.names)
    progress = Supervisor(
        app, plan, hosts, StreamOptions(credits=2), emulation=ports, commit=lambda unit: None
    ).run()
    summary = summarize(app, progress)
    assert summary.overall <= 4.2
    assert summary.limit.startswith("the network")
    assert progress.copies[0]["most_backlog"] == 2


def test_weights_can_change_while_a_copy_runs():
    counters = Counters(3)
    assert counters.version == 0
    counters.write_weights([0.5, 0.0, 2.0])
    assert (counters.version, counters.weights()) == (1, [0.5, 0.0, 2.0])
