"""Hostile and wrong experiment files: a typed error that names the place, exit code 2, and nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli import run_command
from headrace.model.errors import BadFile, BadProgram, HeadraceError
from headrace.model.user_code import UserCodeError

PROGRAM = """
import pathlib

import headrace as hr


def one(x):
    pathlib.Path("started").touch()
    return x


def two(x, y):
    return x


def tuned(x, sigma=1.0):
    return x


def program(depth=1):
    made = hr.Program("p")
    x = made.input("x", value=1)
    image = made.input("image", "image.txt")
    a = made.task(one, inputs=[x], outputs=["a"], name="first")
    b = made.task(tuned, inputs=[a], outputs=["b"], name="second")
    made.task(two, inputs=[b, image], outputs=["c"], name="third")
    return made


same = hr.Program("same")
x = same.input("x", value=1)
same.task(one, inputs=[x], outputs=["y"], name="x")
"""
START = 'program = "prog.py:program"\n'
CASES = {
    "a program outside": ('program = "../prog.py:program"', "outside its folder"),
    "a program elsewhere": ('program = "/etc/prog.py:program"', "outside its folder"),
    "no such program": ('program = "none.py:program"', "no file 'none.py'"),
    "no such name": ('program = "prog.py:programme"', "does not define 'programme'"),
    "not a program": ('program = "prog.py:tuned"\n[replace.x]\nwith = [1]', "returns a int"),
    "not a name": ("program = \"prog.py:__import__('os')\"", "names no function"),
    "no such task": (START + "[replace.frist]\nwith = ['prog.py:one']", "did you mean 'first'"),
    "no such task to set": (START + "[set.x]\nsigma = [1]", "no task 'x'"),
    "two meanings": ('program = "prog.py:same"\n[replace.x]\nwith = [1]', "both a task and an input"),
    "other inputs": (START + "[replace.first]\nwith = ['prog.py:two']", "has 1 input"),
    "fewer inputs": (START + "[replace.third]\nwith = ['prog.py:one']", "has 2 inputs"),
    "not a function": (START + "[replace.first]\nwith = ['prog.py:x']", "not a function"),
    "code from elsewhere": (START + "[replace.first]\nwith = ['../x.py:f']", "outside its folder"),
    "code as text": (START + "[replace.first]\nwith = ['lambda x: x']", "names no function"),
    "a number for a task": (START + "[replace.first]\nwith = [3]", "cannot replace a task"),
    "no such parameter": (START + "[set.second]\nsgima = [1]", "unexpected keyword argument 'sgima'"),
    "a clash with an input": (START + "[set.second]\nx = [1]", "multiple values for argument 'x'"),
    "no such file": (START + "[replace.image]\nwith = ['none.txt']", "no file 'none.txt'"),
    "a file outside": (START + "[replace.image]\nwith = ['../image.txt']", "outside its folder"),
    "a number for a file": (START + "[replace.image]\nwith = [3]", "cannot replace a file"),
    "a condition that is code": (
        START + "[set.second]\nsigma = [1]\n[combine]\nexcept = \"__import__('os').remove('x')\"",
        "except",
    ),
    "an unknown name in a condition": (
        START + '[set.second]\nsigma = [1]\n[combine]\nexcept = "sgima > 1"',
        "there is no 'sgima'",
    ),
    "nothing left": (START + '[set.second]\nsigma = [1]\n[combine]\nexcept = "sigma > 0"', "no combination"),
    "unequal lengths": (
        START + '[set.second]\nsigma = [1, 2]\n[replace.x]\nwith = [1]\n[combine]\nmode = "zip"',
        "differ in length",
    ),
    "too many combinations": (
        START + "[set.second]\nsigma = { from = 1, to = 100000, steps = 100000 }\n"
        "[replace.x]\nwith = { from = 1, to = 100000, steps = 100000 }",
        "10000000000 combinations",
    ),
    "an unknown group": (START + '[set.second]\nsigma = [1]\n[combine]\ngroups = [["x"]]', "no 'x' to group"),
    "a package that is not there": (START + 'packages = ["no-such-package-x"]', "is not installed"),
    "a missing parameter in a command": (
        "[sweep]\ncommand = ['true', '{n}']\nstdout = 'o'",
        "{n} in the command",
    ),
    "a wrong parameter of the program": (START + "[replace.deep]\nwith = [1]", "did you mean 'depth'"),
    "raises": ('program = "raises.py:program"', "importing it raised ZeroDivisionError"),
    "endless nesting": ("x = " + "[" * 5000, "not valid TOML"),
    "binary": ("\x00\x01", "not valid TOML"),
}


@pytest.mark.parametrize("quote", [True, False], ids=["quote", "run"])
@pytest.mark.parametrize("name", CASES)
def test_a_typed_error_and_nothing_started(
    name: str, quote: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, part = CASES[name]
    (tmp_path / "prog.py").write_text(PROGRAM)
    (tmp_path / "raises.py").write_text("1 / 0\n")
    (tmp_path / "image.txt").write_text("1")
    (tmp_path / "e.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("headrace.runtime.local_workers.spawn_workers", None)
    with pytest.raises(HeadraceError) as caught:
        run_command(["sweep", "e.toml", *(["--quote"] if quote else [])])
    if name == "raises":  # the user's code is wrong, not the file
        assert isinstance(caught.value, UserCodeError)
    else:
        assert isinstance(caught.value, BadFile | BadProgram)
        assert caught.value.exit_code == 2
    assert part in str(caught.value)
    assert len(str(caught.value)) < 600
    assert not (tmp_path / "started").exists()


def test_a_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    with pytest.raises(BadFile):
        run_command(["sweep", str(tmp_path / "none.toml")])
