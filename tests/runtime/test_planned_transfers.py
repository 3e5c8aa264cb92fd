"""Planned sources on real workers: data is sent ahead from where the plan says."""

from __future__ import annotations

import time

import numpy as np
import pytest

import headrace as hr
from headrace.core.replan import Replan
from headrace.core.scheduler import Problem
from headrace.model.events import DataMoved, Event
from headrace.model.plan import Plan
from headrace.runtime.cluster import open_local


def make() -> bytes:
    return bytes(1_000_000)


def first(x: bytes) -> int:
    return len(x)


def slow() -> int:
    time.sleep(1.0)
    return 1


def last(x: bytes, y: int, z: int) -> int:
    return len(x) + y + z


class ByHand:
    """`make` on w0, `first` on w1, `slow` and `last` on w2; x reaches w2 by way of w1."""

    name = "by-hand"

    def plan(self, problem: Problem) -> Plan:
        graph, places = problem.graph, problem.platform.network.place_names
        number = {name: k for k, name in enumerate(places)}
        items = {name: k for k, name in enumerate(graph.item_names)}
        start = {"make": 0.0, "first": 0.1, "slow": 0.0, "last": 2.0}
        host = {"make": "w0", "first": "w1", "slow": "w2", "last": "w2"}
        begins = np.array([start[name] for name in graph.task_names])
        moves = [("x", "w0", "w1", 0.05), ("x", "w1", "w2", 0.2), ("y", "w1", "w2", 0.3)]
        return Plan(
            graph,
            problem.platform,
            self.name,
            np.array([number[host[name]] for name in graph.task_names], np.int32),
            np.zeros(graph.n_tasks, np.int32),
            begins,
            begins + 0.01,
            np.array([items[m[0]] for m in moves], np.int32),
            np.array([number[m[1]] for m in moves], np.int32),
            np.array([number[m[2]] for m in moves], np.int32),
            np.array([m[3] for m in moves]),
            np.array([m[3] + 0.01 for m in moves]),
        )


def program() -> hr.Program:
    made = hr.Program("relay")
    made.task(make, outputs={"x": 1e6}, work=0.01, name="make")
    made.task(first, inputs=["x"], outputs={"y": 8.0}, work=0.01, name="first")
    made.task(slow, outputs={"z": 8.0}, work=1.0, name="slow")
    made.output(made.task(last, inputs=["x", "y", "z"], outputs={"end": 8.0}, work=0.01, name="last"))
    return made


@pytest.mark.timeout(120)
def test_an_item_comes_from_the_source_that_the_plan_names() -> None:
    events: list[Event] = []
    with open_local(3) as cluster:
        outcome = cluster.execute(program(), Replan(ByHand()), events.append)
    assert outcome.results == {"end": 2_000_001}
    moved = [(e.item, e.source, e.target) for e in events if isinstance(e, DataMoved)]
    assert ("x", "w0", "w1") in moved
    assert ("x", "w1", "w2") in moved
