"""Figure 11 done again: the cells are makespans of plans, the claims follow from the cells."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headrace.commands.reproduce import to_json
from headrace.core.scheduler import Problem
from headrace.planners.registry import make
from headrace.reproductions import Ask, reproduce
from headrace.reproductions import figure_11 as figure


@pytest.fixture(scope="module")
def made() -> figure.Reproduction:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "SIZES", (75, 9600))
        patch.setattr(figure, "SEARCH", 0.05)
        return reproduce("figure-11", Ask(seeds=2))


def test_cells_are_means_over_seeds(made: figure.Reproduction) -> None:
    rows = {(row[0], row[1]): dict(zip(made.headers, row, strict=True)) for row in made.rows}
    assert list(rows) == [("in chunks", 75), ("in chunks", 9600), ("shuffled", 75), ("shuffled", 9600)]
    for heuristic in ("H3", "H7"):
        makespans = []
        for seed in range(2):
            program, platform = figure.figure_11(9600, seed, shuffled=True)
            plan = make(figure.HEURISTICS[heuristic]).plan(Problem(program.graph, platform, seed=seed))
            makespans.append(plan.makespan)
        assert rows["shuffled", 9600][heuristic] == pytest.approx(np.mean(makespans))
    for row in rows.values():
        assert row["bound"] <= row["best"]
        assert min(row["H4 / best"], row["H9 / best"]) >= 1.0 - 1e-9


def test_what_the_paper_says_about_workqueue_and_hosts_holds(made: figure.Reproduction) -> None:
    agrees = {claim.paper.split(" (")[0]: claim.agrees for claim in made.claims}
    assert agrees["workqueue"]
    assert agrees["sufferage over hosts"]
    assert all(claim.why for claim in made.claims if not claim.agrees)


def test_the_papers_rule_for_links_is_the_simulators_own() -> None:
    """A link that passes over what is not ready; a plan with exact estimates comes out as it was made."""
    program, platform = figure.figure_11(4800, seed=3)
    plan = make("sufferage").plan(Problem(program.graph, platform, seed=3))
    assert figure.by_the_papers_rule(program, platform, "sufferage", 3) == pytest.approx(plan.makespan)


@pytest.mark.parametrize(
    ("shuffled", "kilobytes", "makespan"),
    [(False, 1200, 4379), (False, 2400, 5233), (False, 4800, 7090), (True, 1200, 4398), (True, 9600, 11054)],
)
def test_the_workqueue_takes_what_another_program_found(
    shuffled: bool, kilobytes: int, makespan: float
) -> None:
    """Hosts that fetch when they take a task: within a few percent of a prototype, whose draws are others."""
    found = [figure.self_scheduled(*figure.figure_11(kilobytes, seed, shuffled)) for seed in range(5)]
    assert np.mean(found) == pytest.approx(makespan, rel=0.03)


def test_a_claim_can_fail() -> None:
    """Were all heuristics alike, workqueue would not be bad."""
    same = dict.fromkeys(figure.HEURISTICS, 100.0)
    seeds = {heuristic: [100.0] for heuristic in same}
    flat = figure.Row("shuffled", 9600, seeds, 100.0, 99.0, 0.0, 0.0, same)
    found = figure.claims([flat])
    assert not found[0].agrees
    assert not found[1].agrees


def test_it_is_there_for_machines(made: figure.Reproduction) -> None:
    written = json.loads(json.dumps(to_json("figure-11", made), allow_nan=False))
    assert len(written["rows"]) == 4
    assert [p["x"] for p in written["pictures"]] == [[75.0, 9600.0]] * 2
    assert len(written["pictures"][0]["curves"]) == 7
