"""Charts: what is in them, and pictures that are well-formed, small and free of overlaps."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

from headrace.model.events import DataMoved, HostJoined, HostLeft, Started, TaskErred, TaskFinished
from headrace.model.platform import Host, Platform, Site
from headrace.report.chart import AWAY, FAILED, TRANSFER
from headrace.report.gantt import Bar, Chart, Lane, Mark, chart_svg, plan_chart, run_chart
from headrace.report.text import text_width

SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def bar_rects(svg: str) -> list[ElementTree.Element]:
    """Rects of bars: those whose tooltip tells a time."""
    return [r for r in parsed(svg).iter(f"{SVG}rect") if " to " in (r.findtext(f"{SVG}title") or "")]


def shown_texts(svg: str) -> list[tuple[float, float, float, str]]:
    """(left, right, baseline, text) of every text in a picture."""
    found = []

    def walk(node: ElementTree.Element, anchor: str, size: float) -> None:
        anchor = node.get("text-anchor", anchor)
        size = float(node.get("font-size", size))
        if node.tag == f"{SVG}text" and node.text:
            x, y = float(node.get("x", "nan")), float(node.get("y", "nan"))
            width = text_width(node.text, size) * 0.9  # the measure is generous
            left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
            found.append((left, left + width, y, node.text))
        for child in node:
            walk(child, anchor, size)

    walk(parsed(svg), "start", 11.0)
    return found


def test_a_plan_s_tasks_are_bars_in_lanes_of_their_cores(make_plan):
    plan = make_plan(hosts=2, tasks=9, cores=2)
    chart = plan_chart(plan)
    assert [b.label for b in chart.bars] == list(plan.graph.task_names)
    assert {lane.group for lane in chart.lanes} == {"node0", "node1"}
    used = {(int(h), int(c)) for h, c in zip(plan.host, plan.core, strict=True)}
    assert len(chart.lanes) == len(used)
    assert [mark.time for mark in chart.marks] == [plan.makespan, plan.bound]
    assert len(bar_rects(chart_svg(chart))) == 9


def test_unused_hosts_are_left_out_and_said_so(make_plan):
    chart = plan_chart(make_plan(hosts=5, tasks=1))
    assert len(chart.lanes) == 1
    assert chart.notes == ("inputs are everywhere", "1 of 5 hosts are used; the others are not drawn.")


def test_transfers_are_thin_lanes_under_the_place_they_reach(make_plan):
    chart = plan_chart(make_plan(hosts=3, tasks=30, moves=12))
    assert sum(b.colour_key == TRANSFER for b in chart.bars) == 12
    for before, lane in itertools.pairwise(chart.lanes):
        if lane.thin:
            assert before.group == lane.group
            assert not before.thin


def test_data_that_reaches_a_shared_site_comes_after_its_hosts(make_plan):
    platform = Platform(
        (Site("a", (Host("a1"), Host("a2")), uplink=1e6), Site("b", (Host("b1"),), uplink=1e6))
    )
    events = [
        TaskFinished(1.0, "x", "a1", 0.0),
        TaskFinished(1.0, "y", "a2", 0.0),
        DataMoved(2.0, "d", "b", "a", 1.0, 5.0),
        TaskFinished(3.0, "z", "b1", 2.0),
        TaskFinished(3.0, "z", "stranger", 2.0),
    ]
    lanes = run_chart(None, events, platform).lanes
    assert [(lane.group, lane.thin) for lane in lanes] == [
        ("a1", False),
        ("a2", False),
        ("a", True),
        ("b1", False),
        ("stranger", False),
    ]


def test_a_run_is_filled_bars_over_the_plan_s_outlines(make_plan):
    plan = make_plan(hosts=2, tasks=8, cores=2)
    events = [Started(0.0)]
    events += [TaskFinished(t.finish + 1, t.id, t.host, t.start + 1) for t in plan.tasks()]
    chart = run_chart(plan, events, plan.platform)
    outlines = {b.label: b for b in chart.bars if b.outline}
    filled = {b.label: b for b in chart.bars if not b.outline}
    assert outlines.keys() == filled.keys() == set(plan.graph.task_names)
    for name, bar in filled.items():
        planned = outlines[name]
        assert (bar.lane, bar.colour_key) == (planned.lane, planned.colour_key)
        assert bar.start == pytest.approx(planned.start + 1)
    assert chart.end == pytest.approx(plan.makespan + 1)
    assert [m.label.split()[0] for m in chart.marks] == ["took", "lower", "planned"]
    assert "as planned" in chart_svg(chart)


def test_a_run_without_plan_takes_kinds_and_bound_from_its_caller(make_plan):
    plan = make_plan(tasks=4)
    events = [TaskFinished(2.0, "t0", "node0", 0.0), TaskFinished(2.5, "t1", "node0", 1.0)]
    chart = run_chart(None, events, plan.platform, graph=plan.graph, bound=2.0, title="by Dask")
    assert chart.title == "by Dask"
    assert [b.colour_key for b in chart.bars] == [plan.graph.kinds[k] for k in plan.graph.kind[:2]]
    assert len(chart.lanes) == 2  # the two overlap
    assert Mark(2.0, "lower bound 2 s", dashed=True) in chart.marks


def test_failures_and_absences_are_drawn_and_noted(make_plan):
    platform = make_plan(tasks=1).platform
    events = [
        TaskFinished(2.0, "a", "node0", 0.0),
        TaskErred(2.5, "b", "node1", "boom"),
        HostLeft(3.0, "node0"),
        HostJoined(4.0, "node0"),
        HostLeft(5.0, "node1"),
        TaskFinished(9.0, "c", "node0", 4.0),
        HostLeft(20.0, "node0"),
    ]
    chart = run_chart(None, events, platform)
    away = [(b.lane, b.start, b.finish) for b in chart.bars if b.colour_key == AWAY]
    assert away == [("node0 0", 3.0, 4.0), ("node1 0", 5.0, 9.0)]
    assert [b.label for b in chart.bars if b.colour_key == FAILED] == ["b failed: boom"]
    assert chart.notes[:2] == ("b failed on node1 at 2.5 s.", "node0 left at 3 s.")
    assert "b failed: boom" in chart_svg(chart)


def test_hostile_names_stay_text(make_plan):
    evil = '</title><script>alert(1)</script>&"{}\x00\ud800'
    plan = make_plan(tasks=5, host_name=evil, task_name=evil, kinds=(evil, "x"))
    svg = chart_svg(plan_chart(plan))
    svg.encode()
    tags = {node.tag.removeprefix(SVG) for node in parsed(svg).iter()}
    assert tags <= {"svg", "title", "rect", "text", "g", "path"}


@pytest.mark.parametrize("width", [360, 700, 1100, 2000])
@pytest.mark.parametrize(("hosts", "cores"), [(4, 1), (6, 8), (300, 1)])
@pytest.mark.parametrize("bound", [0.005, 0.5, 0.999])
def test_texts_neither_overlap_nor_leave_the_picture(make_plan, width, hosts, cores, bound):
    kinds = tuple(f"a kind with a long name {i}" for i in range(11))
    plan = make_plan(
        hosts, 600, cores=cores, kinds=kinds, host_name="a-host-with-quite-a-long-name-{}", bound=bound
    )
    svg = chart_svg(plan_chart(plan), width)
    height = float(parsed(svg).get("height", "0"))
    texts = shown_texts(svg)
    assert len(texts) > 10
    for left, right, y, text in texts:
        assert left >= 0, text
        assert right <= width, text
        assert 8 <= y <= height - 2, text
    for (l1, r1, y1, a), (l2, r2, y2, b) in itertools.combinations(texts, 2):
        assert abs(y1 - y2) >= 10 or r1 <= l2 or r2 <= l1, (a, b)


def test_more_than_sixty_lanes_are_labelled_now_and_then(make_plan):
    few, many = (chart_svg(plan_chart(make_plan(hosts=n, tasks=20 * n))) for n in (50, 250))
    count = [sum(t.startswith("node") for *_, t in shown_texts(svg)) for svg in (few, many)]
    assert count[0] == 50
    assert 40 <= count[1] < 125


@pytest.mark.parametrize(("hosts", "cores", "moves"), [(256, 1, 20_000), (256, 64, 0)])
def test_a_hundred_thousand_tasks_stay_under_three_megabytes(make_plan, hosts, cores, moves):
    plan = make_plan(hosts, 100_000, cores=cores, moves=moves, kinds=tuple("abcdefghijkl"))
    svg = chart_svg(plan_chart(plan))
    parsed(svg)
    assert len(svg) < 3_000_000
    assert float(parsed(svg).get("height", "0")) < 6000


def test_bars_stay_inside_the_plot_and_at_their_times():
    lanes = (Lane("a", "a"), Lane("b", "b"))
    bars = (Bar("a", 0.0, 5.0, "x", "k"), Bar("b", 5.0, 10.0, "y", "k"), Bar("b", 10.0, 10.0, "z", FAILED))
    x, y, z = bar_rects(chart_svg(Chart("t", lanes, bars, 10.0)))
    left, width = float(x.get("x", "0")), float(x.get("width", "0"))
    assert float(y.get("x", "0")) == pytest.approx(left + width, abs=0.02)
    assert float(y.get("width", "0")) == pytest.approx(width, abs=0.02)
    assert float(z.get("x", "0")) + float(z.get("width", "0")) <= left + 2 * width + 0.02
    assert float(x.get("y", "0")) < float(y.get("y", "0"))


def test_nothing_to_draw_is_still_a_picture(make_plan):
    parsed(chart_svg(plan_chart(make_plan(tasks=0))))
    parsed(chart_svg(run_chart(None, [], make_plan(tasks=0).platform)))


def test_the_same_plan_gives_the_same_file(make_plan, tmp_path):
    for name in ("a.svg", "b.svg"):
        make_plan(moves=5).gantt(tmp_path / name)
    first = (tmp_path / "a.svg").read_bytes()
    assert first == (tmp_path / "b.svg").read_bytes()
    assert re.match(rb'<svg xmlns="http://www.w3.org/2000/svg" width="1100"', first)


@pytest.mark.parametrize("time", [0.0, 0.1, 5.0, 10.0])
def test_labels_of_marks_stay_in_the_picture(time):
    marks = (Mark(10.0, "makespan 10 s"), Mark(time, "a rather long label of a moment", dashed=True))
    chart = Chart("t", (Lane("a", "a"),), (Bar("a", 0.0, 10.0, "x", "k"),), 10.0, marks)
    for left, right, _, text in shown_texts(chart_svg(chart, 400)):
        assert left >= 0, text
        assert right <= 400, text
