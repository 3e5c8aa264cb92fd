"""The LPSched experiments on real processes."""

from __future__ import annotations

import pytest

from headrace.model.errors import UsageError
from headrace.planners.pipeline.plan import PLANNERS
from headrace.reproductions import Ask, lpsched_real, reproduce
from headrace.reproductions.lpsched import cases
from headrace.simulator.pipeline.flow import simulate_deployment


def test_a_deployment_is_never_faster_than_its_emulated_hosts(monkeypatch):
    monkeypatch.setattr(lpsched_real, "SECONDS", 1.5)
    made = PLANNERS["lpsched"](cases()["1x2x1"][0])
    assert 0 < lpsched_real.carried_out(made, "planned") < 1.15 * made.throughput


def test_only_some_figures_have_real_runs():
    with pytest.raises(UsageError, match="has no real runs"):
        reproduce("figure-11", real=True)
    with pytest.raises(UsageError, match="no random numbers"):
        reproduce("lpsched", Ask(seeds=3), real=True)


def as_simulated(made, routing):
    """Runs that go exactly as simulated, for what is said about them."""
    return simulate_deployment(made, routing).throughput


@pytest.mark.slow
def test_claims_and_pictures_follow_from_the_measurements(monkeypatch):
    monkeypatch.setattr(lpsched_real, "carried_out", as_simulated)
    made = reproduce("lpsched", real=True)
    assert all(claim.agrees for claim in made.claims)
    assert {len(row) for row in made.rows} == {len(made.headers)}
    (picture,) = made.pictures
    assert set(picture.curves) == {"lpsched", "trivial", "total"}
    assert len(picture.x) == 5
    # With LPSched at half its speed, it no longer wins where it was less than that ahead.
    found = lpsched_real._run_cases(Ask())
    slower = {
        key: c._replace(measured=c.measured / 2) if key[1] == "lpsched" else c for key, c in found.items()
    }
    assert [c.agrees for c in lpsched_real._winners(slower)] == [False, False, False, False, True]
    assert not any(c.agrees for c in lpsched_real._sources(slower))
