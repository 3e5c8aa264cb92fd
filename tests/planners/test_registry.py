"""Schedulers by name, from a file, and by entry point of an installed package."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from headrace.core.scheduler import Problem
from headrace.model.errors import BadProgram, UsageError
from headrace.planners import registry
from headrace.planners.list.round_robin import RoundRobin
from headrace.testing.generate import random_platform, random_program


class InTurn(RoundRobin):
    name = "in-turn"


class Neither:
    name = "neither"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers a planner, something else, a class that does not exist, and a name that is taken."""
    module = ModuleType("their_package")
    vars(module).update(InTurn=InTurn, Neither=Neither)
    monkeypatch.setitem(sys.modules, "their_package", module)
    values = {
        "in-turn": "their_package:InTurn",
        "neither": "their_package:Neither",
        "missing": "their_package:Missing",
        "gone": "their_lost_package.planner:Planner",
        "heft": "their_package:Neither",
    }
    points = [EntryPoint(name, value, registry.ENTRY_POINTS) for name, value in values.items()]
    monkeypatch.setattr(
        registry, "entry_points", lambda group: points if group == registry.ENTRY_POINTS else []
    )


@pytest.mark.usefixtures("installed")
def test_a_planner_is_found_by_entry_point() -> None:
    assert registry.names()[-4:] == ["in-turn", "neither", "missing", "gone"]
    assert registry.entries()[-4].line == "from their_package"
    planner = registry.make("in-turn")
    program, platform = random_program(1), random_platform(1)
    plan = planner.plan(Problem(program.graph, platform))
    assert plan.scheduler == "in-turn"


@pytest.mark.usefixtures("installed")
def test_what_is_built_in_keeps_its_name() -> None:
    assert type(registry.make("heft")).__name__ == "Heft"
    assert registry.names().count("heft") == 1


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing", "AttributeError: module 'their_package' has no attribute 'Missing'"),
        ("gone", "ModuleNotFoundError: No module named 'their_lost_package'"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named(name: str, problem: str) -> None:
    with pytest.raises(UsageError, match=f"scheduler '{name}' cannot be loaded: {problem}") as caught:
        registry.make(name)
    assert "their_" in str(caught.value)
    assert "uninstall" in str(caught.value)


@pytest.mark.usefixtures("installed")
def test_what_is_neither_a_planner_nor_a_scheduler_is_refused() -> None:
    with pytest.raises(UsageError, match="'neither' is neither a planner nor a scheduler"):
        registry.make("neither")


@pytest.mark.usefixtures("installed")
def test_names_of_packages_are_taken_and_suggested() -> None:
    with pytest.raises(UsageError, match="already exists"):
        registry.register(registry.Entry("in-turn", "m", "C", "all", "", ""))
    with pytest.raises(UsageError, match="in-turn"):
        registry.make("in-trun")


def test_a_file_without_the_scheduler_names_those_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import headrace as hr\n"
        "from headrace.planners.list.heft import Heft\n"
        "program = hr.Program('p')\n"
        "class Mine:\n"
        "    name = 'mine'\n"
        "    def plan(self, problem):\n"
        "        return None\n"
    )
    with pytest.raises(BadProgram, match="does not define 'Other'") as caught:
        registry.make(f"{tmp_path / 'own.py'}:Other")
    assert caught.value.hint.endswith("own.py:Mine")
