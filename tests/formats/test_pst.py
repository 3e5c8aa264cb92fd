"""The formats of the parameter-sweep template: the paper's examples, and there and back again."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.formats.loading import load_platform, load_program
from headrace.formats.platform_toml import read_platform, write_platform
from headrace.formats.pst_behaviour import read_behaviour, write_behaviour, write_trace
from headrace.formats.pst_grid import read_grid, write_grid
from headrace.formats.pst_work import read_work, write_work
from headrace.formats.registry import detect
from headrace.model.behaviour import AddCluster, AddHost, Behaviour, LinkTrace, Trace, grid_script
from headrace.model.errors import BadFile, BadPlatform
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program

DATA = Path(__file__).parent / "data" / "pst"
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_the_grid_of_the_appendix() -> None:
    script = read_grid(DATA / "grid.pst")
    assert len(script.events) == 22
    assert script.present(0) == (
        "host3.1", "host3.2", "host4.1", "host4.2", "host5.1", "host5.2", "host6.1", "host6.2",
    )  # fmt: skip
    assert script.present(200)[:1] == ("host4.1",)
    assert len(script.present(1000)) == 10
    assert script.present(1500)[:2] == ("host5.1", "host5.2")
    changed = next(c for c in script.changes if c.what == "host-trace")
    assert isinstance(changed.behaviour, Trace)
    assert [changed.behaviour.at(t) for t in (553, 558, 563)] == [0.05, 0.3, 0.5], "from value 4, circular"
    assert script.ignored == ("ChangeCluster at 1550 s: cluster 'cluster3' is not present",)
    assert [h.arch for h in script.platform.hosts[:2]] == [0, 1]


def test_the_application_of_the_appendix() -> None:
    program = read_work(DATA / "sweep.pst")
    graph, real = program.graph, program.real
    assert (graph.n_tasks, graph.n_items, len(program.inputs()), len(program.results())) == (12, 22, 10, 12)
    hosts = (Host("a"), Host("b", arch=1), Host("c", arch=2))
    rates = Platform((Site("s", hosts),)).rates
    estimated = graph.work[0] / rates(graph)[graph.speed_class[0]]
    actual = real.work[0] / rates(real)[real.speed_class[0]]
    assert estimated.tolist() == pytest.approx([610, 503, 602])
    assert actual.tolist() == pytest.approx([600, 500, 600])
    assert real.size.tolist() == graph.size.tolist()


def test_sizes_may_differ_from_their_estimates(tmp_path: Path) -> None:
    text = "WorkDescription 1 2 1\nFile: <1> <o> <50> <40>\nFile: <0> <i> <7> <9.5>\n"
    (tmp_path / "w").write_text(text + "Work: <0> <1 : 0> <1 : 1> <1 : 3> <1 : 3>\n")
    program = read_work(tmp_path / "w")
    size = dict(
        zip(program.graph.item_names, zip(program.graph.size, program.real.size, strict=True), strict=True)
    )
    assert size == {"i": (9.5, 7.0), "o": (40.0, 50.0)}


def test_right_estimates_need_no_second_graph(tmp_path: Path) -> None:
    (tmp_path / "w").write_text("WorkDescription 1 0 1\nWork: <0> <0 :> <0 : > <2 : 4 2> <2 : 4 2>\n")
    assert read_work(tmp_path / "w").reality is None


def test_names_that_repeat_get_their_id(tmp_path: Path) -> None:
    lines = [
        "WorkDescription 1 3 1",
        *(f"File: <{i}> <{n}> <1> <1>" for i, n in enumerate(("a", "a", "a#0"))),
    ]
    (tmp_path / "w").write_text("\n".join([*lines, "Work: <0> <3 : 0 1 2> <0 :> <1 : 1> <1 : 1>"]))
    assert list(read_work(tmp_path / "w").data)[:3] == ["a#0_", "a#1", "a#0"]


def test_plan_and_check_of_the_examples() -> None:
    program, platform = load_program(DATA / "sweep.pst"), load_platform(DATA / "grid.pst")
    assert detect(DATA / "sweep.pst").kind == "program"
    assert detect(DATA / "grid.pst").kind == "grid"
    plan = hr.plan(program, platform, "sufferage")
    first = next(t for t in plan.tasks() if t.id == "work0")
    host = next(h for h in platform.hosts if h.name == first.host)
    expected = (610, 503)[host.arch] / (1 - host.load)
    assert first.finish - first.start == pytest.approx(expected)


times = st.floats(0.001, 1e6).map(lambda x: float(f"{x:.10g}"))
sizes = st.one_of(st.just(0.0), st.integers(0, 10**12).map(float), times)


@st.composite
def sweeps(draw: st.DrawFn) -> str:
    archs, inputs, tasks = draw(st.integers(1, 3)), draw(st.integers(0, 5)), draw(st.integers(0, 5))
    lines = [f"WorkDescription 1 {inputs + tasks} {tasks}"]
    for i in range(inputs + tasks):
        lines.append(f"File: <{i}> <f{i}> <{draw(sizes):.15g}> <{draw(sizes) + 1:.15g}>")
    for t in range(tasks):
        reads = sorted(draw(st.sets(st.integers(0, inputs - 1)))) if inputs else []
        cells = [" ".join(f"{draw(times):.15g}" for _ in range(archs)) for _ in range(2)]
        ids = f"<{len(reads)} : {' '.join(map(str, reads))}> <1 : {inputs + t}>"
        lines.append(f"Work: <{t}> {ids} <{archs} : {cells[0]}> <{archs} : {cells[1]}>")
    return "\n".join(lines) + "\n"


@same_folder
@given(sweeps())
def test_an_application_comes_back_as_it_was_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.pst").write_text(text)
    write_work(read_work(tmp_path / "a.pst"), tmp_path / "b.pst")
    assert (tmp_path / "b.pst").read_text() == text


def test_what_the_format_cannot_say_is_refused(tmp_path: Path) -> None:
    program = Program()
    program.task(name="a")
    program.task(name="b", after=["a"])
    with pytest.raises(BadFile, match="'b' must run after"):
        write_work(program, tmp_path / "w")
    assert not (tmp_path / "w").exists()


@st.composite
def series(draw: st.DrawFn, top: float, *, even: bool) -> Trace:
    n = draw(st.integers(1, 6))
    value = np.array(draw(st.lists(st.floats(0, top), min_size=n, max_size=n)))
    if even:
        return Trace.steps(np.round(value, 2), draw(st.sampled_from([5.0, 2.5, 60.0])))
    time = np.concatenate(
        ([0.0], np.cumsum(draw(st.lists(st.floats(0.01, 9), min_size=n - 1, max_size=n - 1))))
    )
    length = draw(st.one_of(st.just(math.inf), st.floats(60, 90)))
    return Trace(time, value, length, draw(st.floats(-100, 100)))


@same_folder
@given(series(1.0, even=False))
def test_our_own_layout_keeps_every_bit(tmp_path: Path, trace: Trace) -> None:
    write_trace(trace, tmp_path / "t")
    assert read_behaviour(tmp_path / "t") == trace
    link = LinkTrace(trace, Trace(trace.time, trace.value / 7, trace.length, trace.offset))
    write_trace(link, tmp_path / "t")
    assert read_behaviour(tmp_path / "t") == link


@same_folder
@given(series(1.0, even=True))
def test_the_template_layout_where_steps_are_even(tmp_path: Path, trace: Trace) -> None:
    write_behaviour(trace, tmp_path / "t")
    assert (tmp_path / "t").read_text().split()[0] == str(len(trace))
    back = read_behaviour(tmp_path / "t")
    assert isinstance(back, Trace)
    assert back.value.tolist() == pytest.approx(trace.value.tolist(), abs=1e-14)
    assert (back.length, back.time.tolist()) == (trace.length, trace.time.tolist())


def test_latency_is_in_milliseconds_and_comes_first(tmp_path: Path) -> None:
    (tmp_path / "l").write_text("# a link\n2\n\n50 1000\n80 2000\n")
    link = read_behaviour(tmp_path / "l")
    assert isinstance(link, LinkTrace)
    assert [link.latency.at(t) for t in (0, 5, 10)] == [0.05, 0.08, 0.05]
    assert [link.bandwidth.at(t) for t in (0, 5, 10)] == [1000, 2000, 1000]


def test_a_link_whose_two_series_do_not_fit_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hr.HeadraceError, match="different times"):
        write_trace(LinkTrace(Trace.steps([1, 2], 5), Trace.steps([1, 2], 6)), tmp_path / "t")


def test_a_grid_comes_back(tmp_path: Path) -> None:
    before = read_grid(DATA / "grid.pst")
    write_grid(before, tmp_path / "grid.pst")
    after = read_grid(tmp_path / "grid.pst")
    assert after.events == before.events
    assert after.changes == before.changes
    assert after.behaviours == before.behaviours


def test_a_behaviour_needs_the_name_of_a_file(tmp_path: Path) -> None:
    behaviours: dict[str, Behaviour] = {
        "../net": LinkTrace(Trace.constant(1), Trace.constant(0)),
        "cpu": Trace.constant(1),
    }
    script = grid_script([AddCluster(0, "c", "../net"), AddHost(0, "c", "h", "cpu")], behaviours)
    with pytest.raises(BadFile, match=r"'\.\./net' cannot be used as a file name"):
        write_grid(script, tmp_path / "grid.pst")


def test_a_platform_with_traces_comes_back(tmp_path: Path) -> None:
    cpu, net = Trace([0.0, 3.0], [1.0, 0.1], 7.0), LinkTrace(Trace.constant(3e4), Trace.constant(0.2))
    hosts = (Host("a", load=0.25, trace=cpu, arch=2), Host("b", trace=cpu))
    sites = (Site("s", hosts, uplink=1e4, uplink_trace=net), Site("t", uplink=9.0), Site("u"))
    links = (Link("s", "u", 5.0, latency=0.5, trace=net), Link("t", "u", 5.0))
    platform = Platform(sites, links, name="lab")
    write_platform(platform, tmp_path / "lab.toml")
    back = read_platform(tmp_path / "lab.toml")
    assert (back.sites, back.links) == (platform.sites, platform.links)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab-1.trace", "lab-2.trace", "lab.toml"]


def test_planners_see_the_mean_of_a_trace(tmp_path: Path) -> None:
    (tmp_path / "n.trace").write_text("2\n100\n50\n")
    (tmp_path / "up.trace").write_text("HeadraceTrace 1 repeat 10\n0 1000\n5 3000\n")
    (tmp_path / "p.toml").write_text(
        '[[site]]\nname = "s"\nuplink_trace = "up.trace"\nuplink_latency = "2 ms"\n'
        '[[site.host]]\nname = "n"\ncount = 2\ntrace = "n.trace"\n[[site]]\nname = "o"\n'
    )
    platform = read_platform(tmp_path / "p.toml")
    assert [h.load for h in platform.hosts] == [0.25, 0.25]
    site = platform.sites[0]
    assert (site.uplink, site.uplink_latency) == (2000.0, 0.002)
    assert site.uplink_trace is not None
    assert site.uplink_trace.latency == Trace.constant(0.002)
    assert platform.network.link_trace[0] is site.uplink_trace


def test_a_grid_without_a_host_at_the_start_has_no_platform_to_plan_on(tmp_path: Path) -> None:
    (tmp_path / "n").write_text("1\n1 1\n")
    (tmp_path / "h").write_text("1\n100\n")
    (tmp_path / "g").write_text(
        "GridDescription 1\n5:ADD_CLUSTER <c> <n> <0>\n5:ADD_HOST <c> <x> <h> <0> <0>\n"
    )
    assert read_grid(tmp_path / "g").present(5) == ("x",)
    with pytest.raises(BadPlatform, match="no host is present at time 0"):
        load_platform(tmp_path / "g")
