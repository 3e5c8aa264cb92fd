"""Pictures of deployments: valid XML, everything in it, within limits."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from headrace.model.deployment import Deployment, Limit
from headrace.model.pipeline import FilterProfile, Pipeline, PipelineProblem, Source, Stream
from headrace.model.platform import Host, Link, Platform, Site
from headrace.report.deployment import deployment_svg, write_deployment
from headrace.report.deployment_cells import content
from simulator.pipeline.deployments import chain, deployed, lab

SVG = "{http://www.w3.org/2000/svg}"
ALARM = "#bb2200"


def clusters(*sizes: int) -> Platform:
    sites = [
        Site(f"c{k}", tuple(Host(f"c{k}n{i}") for i in range(size)), bandwidth=1e7)
        for k, size in enumerate(sizes)
    ]
    links = [Link(f"c{a}", f"c{b}", 1e7) for a in range(len(sizes)) for b in range(a)]
    return Platform(tuple(sites), links=tuple(links), name="grid")


def spread_out(sizes: tuple[int, ...], *limits: Limit) -> Deployment:
    """f1 on all hosts but the first and the last, which read and end."""
    platform = clusters(*sizes)
    names = [h.name for h in platform.hosts]
    problem = PipelineProblem(chain((1, 100), (50, 200), (5, 0), reader=names[0]), platform)
    return replace(deployed(problem, {"f1": names[1:-1], "f2": names[-1:]}), limits=limits)


def elements(svg: str, tag: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(svg).findall(f".//{SVG}{tag}")


def squares(svg: str) -> int:
    return len([r for r in elements(svg, "rect") if r.get("fill-opacity")])


def texts(svg: str) -> list[str]:
    return ["".join(t.itertext()) for t in elements(svg, "text")]


def test_every_host_has_a_square_and_every_flow_between_clusters_a_band(tmp_path):
    made = spread_out((4, 3))
    write_deployment(tmp_path / "d.svg", made)
    svg = (tmp_path / "d.svg").read_text()
    assert squares(svg) == 7
    bands = elements(svg, "path")
    assert len(bands) == 4  # the reader to both clusters, both clusters to the last filter
    shown = content(made)
    assert sum(b.rate for b in shown.bands) == pytest.approx(sum(f.rate for f in made.flows))
    wide = {b.find(f"{SVG}title").text: float(b.get("stroke-width")) for b in bands}  # type: ignore
    rates = {name: float(re.search(r"([\d.]+) MB/s", name)[1]) for name in wide}  # type: ignore
    for name, width in wide.items():
        assert width == pytest.approx(max(0.8, 34 * rates[name] / (2 * made.throughput)), abs=0.06)


def test_clusters_copies_and_idle_clusters_are_named():
    problem = PipelineProblem(chain((1, 100), (5, 0), reader="c0n0"), clusters(3, 2))
    svg = deployment_svg(deployed(problem, {"f1": ["c0n1", "c0n2"]}))
    said = texts(svg)
    assert {"c0", "f0", "f1", "1 copy", "2 copies", "3 of 3 hosts", "c0n1, c0n2"} <= set(said)
    assert any(line.startswith("Not used: c1 (2 hosts)") for line in said)


@pytest.mark.parametrize(
    ("limit", "reds"),
    [
        (Limit("cpu", "f1", "f1 is slow"), 2),
        (Limit("reader", "f0", "f0 is slow"), 1),
        (Limit("port", "f2", "its port is full"), 1),
        (Limit("link", "c1 -> c0", "the link is full"), 2),
        (Limit("segment", "segment of c1", "the segment is full"), 1),
        (Limit("hosts", "", "all hosts are in use"), 0),
    ],
)
def test_what_limits_is_red_and_said(limit, reds):
    plain, marked = (deployment_svg(spread_out((3, 3), *limits)) for limits in ((), (limit,)))
    drawn = [e for tag in ("rect", "path") for e in elements(marked, tag) if e.get("stroke") == ALARM]
    assert len(drawn) == reds
    assert ALARM not in plain
    assert limit.text in texts(marked)


def test_a_thousand_hosts_stay_readable():
    few = deployment_svg(spread_out((330, 330, 340)))
    assert squares(few) <= 2 + 3 * 60
    many = deployment_svg(spread_out((25,) * 40))
    assert squares(many) <= 2 + 40 * 20
    for svg in (few, many):
        assert len(svg) < 300_000
        ElementTree.fromstring(svg)
    assert "A square is a host, or several" in few


def test_graphs_with_branches_put_filters_of_one_depth_into_one_column():
    filters = [FilterProfile(n, 1, 10) for n in ("read", "left", "right", "join")]
    ends = [("read", "left"), ("read", "right"), ("left", "join"), ("right", "join"), ("read", "join")]
    pipeline = Pipeline("x", filters, [Stream(*e) for e in ends], [Source("s", {"h0": 1.0})])
    made = deployed(
        PipelineProblem(pipeline, lab([1] * 4)), {"left": ["h1"], "right": ["h2"], "join": ["h3"]}
    )
    assert content(made).columns == (("read",), ("left", "right"), ("join",))
    assert len(elements(deployment_svg(made), "path")) == 5


def test_names_from_outside_are_escaped():
    platform = Platform((Site("<script>", (Host("a&b"), Host('"q"\x07')), bandwidth=1e6),), name="</svg>")
    problem = PipelineProblem(chain((1, 1), (1, 0), reader="a&b"), platform)
    svg = deployment_svg(deployed(problem, {"f1": ['"q"\x07']}))
    assert "<script" not in svg
    assert any("<script>" in t for t in texts(svg))
