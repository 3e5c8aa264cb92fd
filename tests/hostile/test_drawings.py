"""Hostile and wrong drawn programs: a typed error that names the place, and nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.formats.function_reference import with_functions
from headrace.formats.loading import load_program
from headrace.model.errors import HeadraceError

START = '[program]\nname = "p"\n'
TASK = START + '[[task]]\nname = "t"\n'
CASES = {
    "a file outside": (TASK + 'function = "../x.py:f"', "leaves its folder"),
    "a file elsewhere": (TASK + 'function = "/etc/x.py:f"', "leaves its folder"),
    "code as text": (TASK + "function = \"m:__import__('os')\"", "function is"),
    "not a module": (TASK + 'function = "a b:f"', "function is"),
    "both": (TASK + 'function = "m:f"\ncommand = ["a"]', "both"),
    "an empty command": (TASK + "command = []", "command is"),
    "a command as text": (TASK + 'command = "rm -rf /"', "command is"),
    "a null character": (TASK + 'command = ["a", "\\u0000"]', "command is"),
    "a result outside": (
        START + '[[input]]\nname = "x"\nvalue = 1\n[[result]]\nitem = "x"\npath = "../x"',
        "leaves",
    ),
    "an unknown key": (TASK + 'shell = "x"', "unknown key"),
    "an unknown table": (START + "[more]\nx = 1", "unknown key"),
    "a date": (TASK + 'function = "m:f"\nset = { x = 2020-01-01 }', "x is"),
    "infinity": (TASK + 'function = "m:f"\nset = { x = inf }', "x is"),
    "a large number": (TASK + 'function = "m:f"\nset = { x = 99999999999999999999 }', "x is"),
    "deep values": (TASK + f'function = "m:f"\nset = {{ x = {"[" * 50}{"]" * 50} }}', "x is"),
    "twice": (TASK + '[[task]]\nname = "t"', "two tasks"),
    "connected and set": (
        START + '[[input]]\nname = "i"\nvalue = 1\n[[task]]\nname = "t"\nfunction = "m:f"\n'
        'inputs = { x = "i" }\nset = { x = 1 }',
        "connected and set",
    ),
    "a circle": (TASK + 'inputs = ["t.done"]', "circle"),
    "no such item": (TASK + 'inputs = ["gone"]', "gone"),
    "a place": (TASK + "at = [1, 2, 3]", "at is"),
    "path and value": (START + '[[input]]\nname = "x"\npath = "a"\nvalue = 1', "both"),
    "cores": (TASK + "cores = true", "cores is"),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_drawings(case: str, tmp_path: Path):
    content, said = CASES[case]
    (tmp_path / "p.toml").write_text(content)
    with pytest.raises(HeadraceError, match=said) as caught:
        load_program(tmp_path / "p.toml")
    assert str(tmp_path / "p.toml") in str(caught.value)


def test_files_are_executed_when_the_program_runs_and_not_before(tmp_path: Path):
    (tmp_path / "harmful.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'harm')!r}).touch()\n\n\ndef f():\n    return 1\n"
    )
    (tmp_path / "p.toml").write_text(TASK + 'function = "harmful.py:f"\noutputs = ["x"]')
    program = load_program(tmp_path / "p.toml")
    assert program.graph.n_tasks == 1
    assert not (tmp_path / "harm").exists()
    assert with_functions(program).tasks["t"].body() == 1
    assert (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("function", "said"),
    [("gone.py:f", "no file"), ("f.py:g", "no function"), ("no_such_module_:f", "cannot be imported")],
)
def test_functions_that_are_not_there(tmp_path: Path, function: str, said: str):
    (tmp_path / "f.py").write_text("g = 1\n")
    (tmp_path / "p.toml").write_text(TASK + f'function = "{function}"')
    with pytest.raises(HeadraceError, match=said):
        with_functions(load_program(tmp_path / "p.toml"))


def test_parameters_that_do_not_fit(tmp_path: Path):
    (tmp_path / "fits.py").write_text("def f(a, b=1):\n    return a\n")
    for more, said in (("set = { c = 1 }", "no parameter 'c'"), ("set = { b = 1 }", "'a' has no value")):
        (tmp_path / "p.toml").write_text(TASK + f'function = "fits.py:f"\n{more}')
        with pytest.raises(HeadraceError, match=said):
            with_functions(load_program(tmp_path / "p.toml"))
