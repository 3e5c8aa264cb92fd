"""The LPSched experiments on real processes."""

from __future__ import annotations

import pytest

from headrace.model.errors import UsageError
from headrace.planners.pipeline.plan import PLANNERS
from headrace.reproductions import Ask, lpsched_real, reproduce
from headrace.reproductions.lpsched import cases


def test_a_deployment_is_never_faster_than_its_emulated_hosts(monkeypatch):
    monkeypatch.setattr(lpsched_real, "SECONDS", 1.5)
    made = PLANNERS["lpsched"](cases()["1x2x1"][0])
    assert 0 < lpsched_real.carried_out(made, "planned") < 1.15 * made.throughput


def test_only_some_figures_have_real_runs():
    with pytest.raises(UsageError, match="has no real runs"):
        reproduce("figure-11", real=True)
    with pytest.raises(UsageError, match="no random numbers"):
        reproduce("lpsched", Ask(seeds=3), real=True)
