"""Rules over labels in runs: they hold in plans made again in the middle of a run, and when the run is judged."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.core.remaining_graph import remaining_graph
from headrace.core.replan_policy import ReplanPolicy
from headrace.model.platform import Host, Platform, Site
from headrace.rules.evaluate import evaluate
from headrace.rules.parser import parse_rules
from headrace.simulator.events.config import SimulationConfig

RULES = parse_rules("""
stays: assert relationship requirement ((select task-site from task where label-data = "patients") = "hospital")
last: assert relationship requirement (
  (select task-finish-time from task where label-step < 2) <=
  (select task-start-time from task where label-step = 2))
""")


def program() -> hr.Program:
    """Three steps of eight tasks; every other task works on data of patients. No item orders the steps."""
    made = hr.Program("study")
    for step in range(3):
        for k in range(8):
            labels = {"step": step} if k % 2 else {"step": step, "data": "patients"}
            made.task(None, work=4.0 + k, name=f"s{step}.{k}", labels=labels)
    return made


def platform() -> Platform:
    fast = tuple(Host(f"c{i}", speed=8.0) for i in range(3))
    slow = tuple(Host(f"h{i}") for i in range(3))
    return Platform(
        (Site("cloud", fast, bandwidth=1e6, uplink=1e6), Site("hospital", slow, bandwidth=1e6, uplink=1e6))
    )


@pytest.mark.parametrize("scheduler", ["heft", "sufferage", "lheft"])
def test_rules_over_labels_hold_after_planning_again(scheduler: str) -> None:
    made, grid = program(), platform()
    policy = ReplanPolicy(events="S1", interval=3.0) if scheduler != "lheft" else ReplanPolicy()
    config = SimulationConfig(policy=policy, faults="kill=h1@5")
    run = hr.simulate(made, grid, scheduler, config, rules=RULES)
    assert run.plans > 1 or scheduler == "lheft"
    verdicts = evaluate(RULES, run.executed.graph, grid, run.executed)
    assert [(v.name, v.kept, v.rows) for v in verdicts] == [("stays", True, 12), ("last", True, 16 * 8)]


def test_the_remaining_graph_has_the_labels_of_its_tasks() -> None:
    graph = program().graph
    keep = np.arange(graph.n_tasks) >= 15
    rest, old = remaining_graph(graph, keep)
    there = dict(zip(graph.labels["step"].tasks.tolist(), graph.labels["step"].values, strict=True))
    left = dict(zip(rest.labels["step"].tasks.tolist(), rest.labels["step"].values, strict=True))
    assert {int(old[task]): value for task, value in left.items()} == {
        t: v for t, v in there.items() if keep[t]
    }
    assert len(rest.labels["data"].tasks) == 4
