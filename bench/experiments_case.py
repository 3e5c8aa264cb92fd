"""A small experiment over files and functions of its own: what benchmarks and tests change, damage and kill."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from headrace.experiment.sweep.merge import merge
from headrace.experiment.sweep.merged_program import MergedProgram, merged_program
from headrace.experiment.sweep.substitute import bind
from headrace.formats.experiment_toml import read_experiment
from headrace.record import Record
from headrace.record.experiments import results_table

MAIN = '''"""Numbers that depend on everything they are made from."""

import functools

import headrace as hr
import steps_of_case

OFFSET = 17
TABLE = {"a": 3, "b": [5, 7]}


def mixed(*parts):
    """A number that changes with any of its parts."""
    found = 1469598103
    for part in parts:
        for byte in repr(part).encode():
            found = (found ^ byte) * 16777619 % 4294967291
    return found


def load(data):
    return mixed(data.read_bytes(), 11)


def first(x, scale=2, *, shift=3):
    return mixed(x, scale, shift, OFFSET)


def second(x, scale=2):
    def inner(y):
        return mixed(y, 23)

    return inner(mixed(x, scale, TABLE["a"], TABLE["b"]))


class Third:
    weight = 29

    def __init__(self, bias):
        self.bias = bias

    def __call__(self, x):
        return mixed(x, self.weight, self.bias)


def join(a, b, c):
    return steps_of_case.finish(mixed(a, b, c))


def unrelated(x):
    return x + 1


program = hr.Program("case")
data = program.input("data", "data_a.bin")
number = program.input("number", value=31)
loaded = program.task(load, inputs=[data], outputs=["loaded"], name="load")
one = program.task(first, inputs=[loaded], outputs=["one"], name="first")
two = program.task(functools.partial(second, scale=5), inputs=[loaded], outputs=["two"], name="second")
three = program.task(Third(37), inputs=[number], outputs=["three"], name="third")
done = program.task(join, inputs=[one, two, three], outputs=["value"], name="join")
'''
STEPS = '''"""Steps that another file has."""

LAST = 41


def finish(x):
    return ending(x) % 1000003


def ending(x):
    return x * 43 + LAST


def unused(x):
    return x
'''
TOML = """name = "case"
program = "case.py:program"
[replace.data]
with = ["data_a.bin", "data_b.bin"]
[replace.first]
with = ["case.py:first", "case.py:second"]
[set.first]
scale = [1, 2, 3]
"""
FILES = {"case.py": MAIN, "steps_of_case.py": STEPS, "case.toml": TOML, "other.py": "VALUE = 1\n"}


def write_case(folder: Path, changed: dict[str, str] | None = None) -> Path:
    """Write the files, some of them changed; returns the experiment file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**FILES, **(changed or {})}.items():
        (folder / name).write_text(text)
    for name, byte in (("data_a.bin", 1), ("data_b.bin", 2)):
        if not (folder / name).exists():
            (folder / name).write_bytes(bytes([byte]) * 100)
    return folder / "case.toml"


def fresh() -> None:
    """Forget modules that the case has imported: its files may have changed."""
    for name in ("case", "steps_of_case"):
        sys.modules.pop(name, None)


def build(file: Path) -> MergedProgram:
    return merged_program(merge(bind(read_experiment(file))))


def truth(file: Path) -> dict[int, Any]:
    """The value of each combination, computed here, one task after the other and without any record."""
    fresh()
    built = build(file)
    values: dict[str, Any] = {}
    for item in built.program.inputs():
        values[item.name] = item.value if item.path is None else file.parent / item.path
    names = list(built.program.tasks)
    for t in built.program.graph.order.tolist():
        task = built.program.tasks[names[t]]
        values[task.outputs[0]] = task.body(*(values[name] for name in task.inputs))  # type: ignore[misc,operator]
    return {point: values[item] for point, name, item in built.results if name == "value"}


def recorded(home: Path, name: str = "case") -> dict[int, Any]:
    """The value of each combination, from the record."""
    with Record.open(home) as record:
        return {int(row["point"] or 0): row["value"] for row in results_table(record, name).rows}


def shown(values: dict[int, Any]) -> str:
    return json.dumps(values)
