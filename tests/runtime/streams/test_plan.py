"""Plans of stream runs, and deployments that do not fit: typed errors before anything starts."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import BadFile, BadPlan, UsageError
from headrace.runtime.filters import App, Filter, Reader
from headrace.runtime.streams.plan import even_plan, read_plan

GOOD = """
[deployment]
pipeline = p
platform = q
throughput = 10.0
[copies read]
n1 = 1, 1.0
[copies add]
n2 = 2, 0.75
n3 = 1, 0.25
[copies show]
n4 = 1, 1.0
[flow read -> add]
n1 -> n2 = 7.5
n1 -> n3 = 2.5
[flow add -> show]
n2 -> n4 = 0.75
n3 -> n4 = 0.25
"""


def three() -> App:
    app = App("three")
    app.filter("read", Reader)
    app.filter("add", Filter, inputs=["read"])
    app.filter("show", Filter, inputs=["add"])
    return app


def read(tmp_path: Path, text: str):
    file = tmp_path / "d.ini"
    file.write_text(text)
    return read_plan(three(), file)


def test_a_deployment_file_becomes_copies_and_weights(tmp_path):
    plan = read(tmp_path, GOOD)
    assert plan.throughput == 10.0
    assert plan.hosts == ("n1", "n2", "n3", "n4")
    assert [c.name for c in plan.copies][1:3] == ["add 1 on n2", "add 2 on n2"]
    assert plan.weights(plan.copies[0], "add") == [3.75, 3.75, 2.5]
    assert plan.inflow("read") == 10.0
    assert plan.inflow("show") == 1.0


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[copies show]\nn4 = 1, 1.0\n", "", "filter 'show' has no copies"),
        ("n3 = 1, 0.25\n", "n3 = 1, 0.5\n", "the shares of 'add' sum to 1.25"),
        ("n1 -> n3 = 2.5\n", "n1 -> n3 = 5\n", "of the work"),
        ("n1 -> n3 = 2.5\n", "n1 -> n9 = 2.5\n", "on 'n9', where it has no copy"),
        ("copies show", "copies draw", "no filter 'draw'"),
        ("flow add -> show", "flow read -> show", "no flow|no stream"),
        ("n1 = 1, 1.0", "n1 = 0, 1.0", "copies"),
        ("n1 = 1, 1.0", "n1 = many", "copies"),
        ("[deployment]", "[deploy]", "deployment"),
        ("n2 -> n4 = 0.75", "n2 -> n4 = nan", "nan|number"),
    ],
)
def test_deployments_that_do_not_fit_are_refused(tmp_path, old, new, problem):
    assert old in GOOD
    with pytest.raises((BadPlan, BadFile), match=problem):
        read(tmp_path, GOOD.replace(old, new))


@given(st.lists(st.integers(1, 5), min_size=3, max_size=3), st.integers(1, 4))
def test_reader_shares_cover_the_input(counts, hosts):
    app = three()
    plan = even_plan(app, dict(zip(app.order, counts, strict=True)), [f"h{i}" for i in range(hosts)])
    readers = [copy for copy in plan.copies if copy.filter == "read"]
    assert readers[0].begin == 0.0
    assert readers[-1].end == 1.0
    assert all(a.end == b.begin for a, b in itertools.pairwise(readers))
    assert [copy.copy for copy in plan.copies] == list(range(len(plan.copies)))


def test_the_work_of_a_lost_host_goes_to_others(tmp_path):
    plan = read(tmp_path, GOOD)
    left = plan.without("n2", ["n1", "n3", "n4"])
    assert [(p.filter, p.host, p.share) for p in left.places] == [
        ("read", "n1", 1.0),
        ("add", "n3", 1.0),
        ("show", "n4", 1.0),
    ]
    moved = plan.without("n4", ["n1", "n2", "n3"])
    assert moved.of("show")[0].host == "n1"
    assert moved.flows["add", "show"] == {("n2", "n1"): 0.75, ("n3", "n1"): 0.25}


def test_bad_counts_are_refused():
    with pytest.raises(UsageError, match="0 copies of 'add'"):
        even_plan(three(), {"add": 0}, ["a"])
    with pytest.raises(UsageError, match="copies of 'sub'"):
        even_plan(three(), {"sub": 1}, ["a"])
