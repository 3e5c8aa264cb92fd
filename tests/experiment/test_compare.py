"""Comparisons: the figures of the planners, and nothing planned twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import headrace.experiment.compare as module
from headrace.core.scheduler import Problem
from headrace.experiment.compare import compare, geometric_means
from headrace.experiment.kept import Kept, KeptResults, key_of
from headrace.model.sited import SiteLists
from headrace.planners.registry import make
from headrace.planners.timed import plan_with_bound
from headrace.testing import random_platform, random_program

GRAPH = random_program(3).graph
PLATFORM = random_platform(3)


def test_rows_hold_what_the_planners_give(tmp_path: Path) -> None:
    with KeptResults(tmp_path) as kept:
        (row,) = compare({"p": GRAPH}, {"q": PLATFORM}, ["heft", "round-robin"], kept)
    for name in ("heft", "round-robin"):
        plan = plan_with_bound(make(name), Problem(GRAPH, PLATFORM))
        result = row.results[name]
        assert isinstance(result, Kept)
        assert (result.makespan, result.bound) == (plan.makespan, plan.bound)
        assert geometric_means([row], [name])[name] == pytest.approx(plan.ratio)


def test_what_is_kept_is_not_planned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with KeptResults(tmp_path) as kept:
        first = compare({"p": GRAPH}, {"q": PLATFORM}, ["heft"], kept)
    planned: list[str] = []
    monkeypatch.setattr(module, "make", lambda name, **options: planned.append(name) or make(name))
    with KeptResults(tmp_path) as kept:
        assert compare({"p": GRAPH}, {"q": PLATFORM}, ["heft"], kept) == first
        assert planned == []
        compare({"p": GRAPH.with_work(GRAPH.work * 2)}, {"q": PLATFORM}, ["heft"], kept)
        assert planned == ["heft"]


def test_keys_differ_with_everything_that_matters() -> None:
    other = random_platform(4)
    at_one_site = SiteLists.of_items({0: ("here",)}, GRAPH.n_items)
    keys = {
        key_of(GRAPH, PLATFORM, "heft", {}, 0),
        key_of(GRAPH, PLATFORM, "heft", {}, 1),
        key_of(GRAPH, PLATFORM, "best", {"time": 1.0}, 0),
        key_of(GRAPH, PLATFORM, "best", {"time": 2.0}, 0),
        key_of(GRAPH, other, "heft", {}, 0),
        key_of(GRAPH.with_size(GRAPH.size + 1), PLATFORM, "heft", {}, 0),
        key_of(replace(GRAPH, cores=GRAPH.cores + 1), PLATFORM, "heft", {}, 0),
        key_of(replace(GRAPH, release=GRAPH.release + 1.0), PLATFORM, "heft", {}, 0),
        key_of(replace(GRAPH, deadline=GRAPH.release + 99.0), PLATFORM, "heft", {}, 0),
        key_of(replace(GRAPH, initial_locations=at_one_site), PLATFORM, "heft", {}, 0),
        key_of(replace(GRAPH, destinations=at_one_site), PLATFORM, "heft", {}, 0),
    }
    assert len(keys) == 11


def test_a_changed_file_of_a_scheduler_of_ones_own_is_another(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    keys = set()
    for text in ("a = 1", "a = 2"):
        file.write_text(text)
        keys.add(key_of(GRAPH, PLATFORM, f"{file}:Mine", {}, 0))
    assert len(keys) == 2
