"""`headrace deploy --simulate`: planned and simulated throughput, and round robin's, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command import headrace
from headrace.commands.deploy_simulated import WIDER, simulated_json, simulated_rows
from headrace.model.pipeline import PipelineProblem
from headrace.simulator.pipeline.flow import simulate_deployment
from simulator.pipeline.deployments import chain, deployed, lab

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


def test_the_window_is_named_where_it_is_the_limit():
    problem = PipelineProblem(chain((10, 100), (9, 0)), lab([1, 1]))
    made = deployed(problem, {"f1": ["h1"]})
    outcomes = {routing: simulate_deployment(made, routing) for routing in ("planned", "round-robin")}
    assert len(simulated_rows(outcomes)) == 2
    limited = {**outcomes, WIDER: simulate_deployment(made, window=256)}
    rows = simulated_rows(limited)
    assert [row[0] for row in rows] == ["simulated", "", "round robin"]
    assert (
        rows[1][1] == "room for 16 buffers limits the simulation: with 256 it is 10 MB/s, 100.0% of the plan"
    )
    assert simulated_json(limited)[WIDER]["window"] == 256
