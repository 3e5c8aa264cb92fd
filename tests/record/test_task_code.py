"""Digests of what tasks execute: the same in another process, and different when something that matters is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Lock

import numpy as np
import pytest

from headrace.formats.loading import load_program
from headrace.model.program import Program
from headrace.record.task_code import changed_tasks, code_digests

SOURCE = """
import math
from dataclasses import dataclass

import headrace as hr

FACTOR = 3
NAMES = {"b", "a", "c"}


@dataclass
class Point:
    x: int

    def far(self):
        return self.x > 100


def helper(x):
    return FACTOR * x if x in NAMES else x


def uses_helper(x):
    return helper(x)


def uses_class(x):
    return Point(x).far()


def plain(x):
    def inner(y, z=5):
        return math.sqrt(y) + z

    return inner(x)


program = hr.Program("code")
x = program.input("x", value=7)
for body in (uses_helper, uses_class, plain):
    program.task(body, inputs=[x], name=body.__name__)
"""


def digests(folder: Path, text: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / "prog.py").write_text(text)
    return code_digests(load_program(f"{folder / 'prog.py'}:program"))


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("# none", "# none", set()),
        ("import math\n", "import math  # of Python\n\n\n", set()),
        ("FACTOR = 3", "FACTOR = 4", {"uses_helper"}),
        ('"a", "c"}', '"a", "d"}', {"uses_helper"}),
        ("return FACTOR * x", "return FACTOR + x", {"uses_helper"}),
        ("self.x > 100", "self.x > 101", {"uses_class"}),
        ("z=5", "z=6", {"plain"}),
        ("math.sqrt", "math.cbrt", {"plain"}),
        ("value=7", "value=8", {"uses_helper", "uses_class", "plain"}),
    ],
)
def test_a_change_concerns_the_tasks_that_it_reaches(
    tmp_path: Path, old: str, new: str, changed: set[str]
) -> None:
    before = digests(tmp_path, SOURCE)
    assert set(before) == {"uses_helper", "uses_class", "plain"}
    after = digests(tmp_path, SOURCE.replace(old, new))
    assert {name for name in before if before[name] != after[name]} == changed


def test_digests_do_not_depend_on_the_process(tmp_path: Path) -> None:
    here = digests(tmp_path, SOURCE)
    code = (
        "from headrace.formats.loading import load_program\n"
        "from headrace.record.task_code import code_digests\n"
        f"print(code_digests(load_program({str(tmp_path / 'prog.py') + ':program'!r})))\n"
    )
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == repr(here)


def test_a_change_in_another_file_of_the_user_counts(tmp_path: Path) -> None:
    (tmp_path / "side_of_code.py").write_text("def shift(x):\n    return x + 1\n")
    text = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport headrace as hr\nimport side_of_code\n"
    text += "def task(x):\n    return side_of_code.shift(x)\n"
    text += "program = hr.Program('p')\nprogram.task(task, inputs=[program.input('x', value=1)], name='t')\n"
    before = digests(tmp_path, text)
    sys.modules.pop("side_of_code")
    (tmp_path / "side_of_code.py").write_text("def shift(x):\n    return x + 22\n")
    try:
        assert digests(tmp_path, text)["t"] != before["t"]
    finally:
        sys.modules.pop("side_of_code")
        sys.path.remove(str(tmp_path))


def test_what_is_not_understood_counts_as_changed_with_its_file() -> None:
    program = Program("odd")
    lock = Lock()
    array = program.input("array", value=np.arange(5.0))
    program.task(lambda: lock.locked(), name="lock")
    program.task(np.sum, inputs=[array], name="array")
    program.task(["echo", "a"], name="command")
    before = code_digests(program)
    assert set(before) == {"array", "command"}
    names = ("array", "command", "lock")
    assert changed_tasks(program, before, names, file_changed=True) == ["lock"]
    assert changed_tasks(program, before, names, file_changed=False) == []
    assert changed_tasks(program, before | {"array": "x"}, names, file_changed=False) == ["array"]
