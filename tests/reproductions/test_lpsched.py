"""The LPSched paper's experiments, done again: what must agree, and why the rest cannot."""

from __future__ import annotations

import pytest

from headrace.model.errors import UsageError
from headrace.reproductions import Ask, Reproduction, reproduce
from headrace.reproductions.lpsched_cases import FAST, LOADED, minas_gerais, on


@pytest.fixture(scope="module")
def made() -> Reproduction:
    told: list[str] = []
    result = reproduce("lpsched", Ask(tell=told.append))
    assert "microscope" in told
    return result


@pytest.mark.parametrize(
    "says",
    [
        "1x2x1 on 17 machines: 5",
        "1x5x1 on 17 machines: 7",
        "1x7x1 with 8 machines loaded by half: 12",
        "the same, if MG10 and MG14 were not loaded",
        "MG1 or MG13+14: reads from MG1",
        "MG1 or MG13..16: reads from MG13-16",
        "MG1 loaded or MG13+14: reads from MG13-14",
        "MG1 or MG13..16 loaded: reads from MG1",
        "microscope on 48 machines: 45",
        "the Total placement: 1 + 35 + 6 + 5 + 1",
        "two clusters with a slow shared link",
        "1x2x1: more than 2 times",
        "1x5x1: almost 5 times",
        "1x7x1 under load: faster than Total",
        "two clusters: Total is as bad as Trivial",
    ],
)
def test_what_the_paper_says_comes_out(made, says):
    (claim,) = [c for c in made.claims if c.paper.startswith(says)]
    assert claim.agrees, claim


def test_every_disagreement_has_a_reason(made):
    others = [c for c in made.claims if not c.agrees]
    assert len(others) == 6
    assert all(c.why for c in others)


def test_rows_and_pictures_fit_together(made):
    assert all(len(row) == len(made.headers) for row in made.rows)
    planned, simulated = made.headers.index("MB/s"), made.headers.index("simulated")
    for row in made.rows:
        assert row[simulated] == pytest.approx(row[planned], rel=0.05), row
    (bars,) = made.pictures
    assert all(len(values) == len(bars.x) for values in bars.curves.values())


def test_nothing_is_drawn():
    with pytest.raises(UsageError, match="seeds"):
        reproduce("lpsched", Ask(seeds=3))


def test_the_machines_are_the_papers():
    hosts = {h.name: h for h in minas_gerais(loaded=LOADED, slow_disks=True).hosts}
    assert len(hosts) == 19
    assert [name for name, h in hosts.items() if h.load == 0.5] == [f"MG{i}" for i in LOADED]
    assert hosts["MG1"].speed_for("reader") / hosts["MG15"].speed_for("reader") == pytest.approx(3.0)
    assert hosts["MG8"].speed == FAST
    assert len(minas_gerais(without=(7, 8)).hosts) == 17
    assert on(13, 14, 15, 16).shares == {f"MG{i}": 0.25 for i in (13, 14, 15, 16)}
