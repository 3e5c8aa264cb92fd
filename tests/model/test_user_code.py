"""Errors in code of users: one line says whose it is, and their own traceback follows."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr
from headrace.formats.loading import load_program
from headrace.model.errors import BadProgram
from headrace.model.user_code import UserCodeError

OWN = """
class Raises:
    name = "mine"
    def plan(self, problem):
        return self.inner(problem)
    def inner(self, problem):
        raise KeyError("oops")
class Refuses:
    name = "mine"
    def __init__(self):
        raise RuntimeError("no licence")
    def plan(self, problem): ...
class Wrong:
    name = "mine"
    def plan(self, problem):
        return 5
from headrace.core.scheduler import EVERY_EVENT
class Reacts:
    name = "mine"
    wake = EVERY_EVENT
    def react(self, view, events):
        return {}["nothing"]
"""


@pytest.fixture
def lab() -> hr.Platform:
    return hr.Platform.pairwise([1.0], bandwidth=1e6)


@pytest.fixture
def program() -> hr.Program:
    made = hr.Program("p")
    made.task(None, name="a")
    return made


@pytest.mark.parametrize(
    ("name", "line", "last"),
    [
        ("Raises", "the planner 'mine' raised KeyError: 'oops'", "in inner"),
        ("Refuses", "raised RuntimeError: no licence", "in __init__"),
        ("Wrong", "plan() returned 5, not a Plan", "not a Plan"),
        ("Reacts", "the scheduler 'mine' raised KeyError: 'nothing'", "in react"),
    ],
)
def test_own_planners(
    name: str, line: str, last: str, tmp_path: Path, program: hr.Program, lab: hr.Platform
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    for call in (hr.plan, hr.simulate):
        with pytest.raises(UserCodeError) as caught:
            call(program, lab, f"{tmp_path / 'own.py'}:{name}")
        first, *rest = str(caught.value).splitlines()
        assert line in first
        assert last in "\n".join(rest)
        assert "headrace/planners" not in str(caught.value)
        if name == "Wrong":
            return  # a simulation needs no bound, and finds out otherwise


def test_program_factories(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(
        "def program():\n    return helper()\ndef helper():\n    return 1 / 0\n"
    )
    with pytest.raises(UserCodeError) as caught:
        load_program(f"{tmp_path / 'made.py'}:program")
    first, *rest = str(caught.value).splitlines()
    assert (
        first == f"{tmp_path / 'made.py'}: the function 'program' raised ZeroDivisionError: division by zero"
    )
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[1].endswith("line 2, in program")
    assert rest[-1] == "ZeroDivisionError: division by zero"


def test_importing(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import nowhere_to_be_found\n")
    with pytest.raises(UserCodeError, match="importing it raised ModuleNotFoundError") as caught:
        load_program(tmp_path / "bad.py")
    assert "line 1, in <module>" in str(caught.value)
    assert "importlib" not in str(caught.value)


def test_errors_of_a_wrong_program_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import headrace as hr\nhr.Program().task('echo hi')\n")
    with pytest.raises(BadProgram, match="no shell"):
        load_program(tmp_path / "wrong.py")
