"""`headrace deploy --simulate`: planned and simulated throughput, and round robin's, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command import headrace

LPSCHED = Path(__file__).parents[2] / "examples" / "lpsched"
LOADED = [LPSCHED / "averager-1x7x1.ini", "--on", LPSCHED / "ufmg.ini", "--load", LPSCHED / "ufmg-load.csv"]


def test_one_deployment_as_json_has_both_routings(tmp_path):
    done = headrace("deploy", *LOADED, "--simulate", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    said = json.loads(done.out)
    planned, in_turn = said["simulated"]["planned"], said["simulated"]["round-robin"]
    assert planned["throughput"] == pytest.approx(said["throughput"], rel=0.05)
    assert in_turn["throughput"] < 0.9 * planned["throughput"]
    assert set(planned["host_busy"]) == set(said["hosts_used"])
    assert planned["of_planned"] == pytest.approx(planned["throughput"] / said["throughput"])


@pytest.mark.slow
def test_tables_have_simulated_throughput(tmp_path):
    one = headrace("deploy", *LOADED, "--simulate", cwd=tmp_path)
    assert one.code == 0, one.err
    assert "routed as planned" in one.out
    assert "routed round-robin" in one.out
    several = headrace("deploy", *LOADED, "--compare", "trivial,lpsched", "--simulate", cwd=tmp_path)
    assert "round robin" in several.out
    plain = headrace("deploy", *LOADED, "--compare", "trivial,lpsched", cwd=tmp_path)
    assert "simulated" not in plain.out
