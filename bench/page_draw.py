"""Generated drawings, as the page draws them, and what they should do when they run.

Each case is made twice from the same choices: as the values that the page sends to the server, and as a program
built in Python with plain function calls, which gives the graph and the results to compare with.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headrace as hr

SOURCE = '''"""Functions of generated drawings."""

from pathlib import Path

print("operations.py is executed")


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def scale(x: float, factor: float = 2.0, shift: float = 0.0) -> float:
    """Scale a number and shift it."""
    return x * factor + shift


def total(start: float = 0.0, *values: float, sign: int = 1) -> float:
    """The sum of any number of values."""
    return start + sign * sum(values)


def halves(x: float) -> tuple[float, float]:
    """Two halves of a number."""
    return x / 2, x - x / 2


def choose(low: float, mode: str, *, high: float) -> float:
    """One of two numbers."""
    return low if mode == "low" else high


def measure(path: Path, weights: list = [1]) -> float:
    """The size of a file, weighted."""
    return path.stat().st_size * float(sum(weights))
'''


@dataclass
class Case:
    """A drawing, the same program in Python, and its results."""

    drawing: dict[str, Any]
    program: hr.Program
    expected: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)


class _Maker:
    """Draws one program."""

    def __init__(self, seed: int, functions: dict[str, Callable[..., Any]]) -> None:
        self.chance = random.Random(seed)
        self.functions = functions
        self.drawing: dict[str, Any] = {
            "name": f"drawn {seed}",
            "inputs": [],
            "tasks": [],
            "results": [],
        }
        self.program = hr.Program(f"drawn {seed}")
        self.numbers: dict[str, float] = {}
        self.paths: dict[str, str] = {}
        self.files: dict[str, str] = {}

    def place(self) -> list[int]:
        return [self.chance.randrange(2000), self.chance.randrange(1000)]

    def input(self, number: int) -> None:
        name = self.chance.choice([f"in{number}", f"in put {number}", f"größe.{number}"])
        if self.chance.random() < 0.3:
            content = "x" * self.chance.randrange(1, 50)
            self.files[f"{number}.txt"] = content
            given = {"path": f"{number}.txt", "value": None}
            self.program.input(name, f"{number}.txt", size=len(content))
            self.paths[name] = content
        else:
            value = self.chance.choice([float(self.chance.randrange(100)), self.chance.randrange(9)])
            given = {"path": None, "value": repr(value)}
            self.program.input(name, value=value)
            self.numbers[name] = value
        size = f"{len(self.paths[name])} B" if name in self.paths else None
        self.drawing["inputs"].append({"name": name, "size": size, "at": self.place(), **given})

    def number(self) -> str:
        return self.chance.choice(list(self.numbers))

    def task(self, number: int) -> None:
        kinds = ["add", "scale", "total", "halves", "choose", "command"] + ["measure"] * bool(self.paths)
        kind = self.chance.choice(kinds)
        name = f"{kind} {number}"
        outputs = [f"{name} out"] if kind != "halves" else [f"{name}/a", f"{name}/b"]
        common = {
            "name": name,
            "outputs": [[item, None] for item in outputs],
            "work": self.chance.choice(["1", "0.25", "20 ms"]),
            "group": self.chance.choice(["", "", "first half"]),
            "at": self.place(),
        }
        if kind == "command":
            self._command(common, outputs[0])
            return
        inputs, values = getattr(self, f"_{kind}")()
        function = self.functions[kind]
        arguments = [(name, self._value(item)) for name, item in inputs]
        made = _called(function, arguments, values)
        self.numbers |= dict(zip(outputs, made if kind == "halves" else [made], strict=True))
        drawn = {"function": f"operations.py:{kind}", "inputs": [list(pair) for pair in inputs]}
        self.drawing["tasks"].append({**common, **drawn, "set": [[k, repr(v)] for k, v in values.items()]})
        body = functools.partial(_called_in_order, function, [name for name, _ in inputs], values)
        self._python(common, body, kind, [item for _, item in inputs])

    def _value(self, item: str) -> Any:
        if item in self.numbers:
            return self.numbers[item]
        return _Sized(len(self.paths[item]))

    def _command(self, common: dict[str, Any], output: str) -> None:
        text = self.chance.choice(["a", "b c", '"quoted"', "{literal", "$HOME"])
        command = ["printf", "%s", text]
        self.paths[output] = text
        self.drawing["tasks"].append(
            {**common, "command": command, "stdout": output, "inputs": [], "set": []}
        )
        self.program.task(
            command,
            name=common["name"],
            outputs=[output],
            stdout=output,
            work=_work(common["work"]),
            labels=_labels(common["group"]),
        )

    def _python(self, common: dict[str, Any], body: Any, kind: str, inputs: list[str]) -> None:
        self.program.task(
            body,
            name=common["name"],
            kind=kind,
            inputs=inputs,
            outputs=[name for name, _ in common["outputs"]],
            work=_work(common["work"]),
            labels=_labels(common["group"]),
        )

    def _add(self) -> tuple[list[tuple[str, str]], dict[str, Any]]:
        if self.chance.random() < 0.3:
            return [("b", self.number())], {"a": 1.5}
        return [("a", self.number()), ("b", self.number())], {}

    def _scale(self) -> tuple[list[tuple[str, str]], dict[str, Any]]:
        if self.chance.random() < 0.4:
            return [("x", self.number()), ("shift", self.number())], {"factor": 3}
        return [("x", self.number())], self.chance.choice([{}, {"shift": -1.0}])

    def _total(self) -> tuple[list[tuple[str, str]], dict[str, Any]]:
        several = [("values", self.number()) for _ in range(self.chance.randrange(4))]
        several = list(dict.fromkeys(several))
        start = [("start", self.number())] if self.chance.random() < 0.5 else []
        return [*start, *several], self.chance.choice([{}, {"sign": -1}])

    def _halves(self) -> tuple[list[tuple[str, str]], dict[str, Any]]:
        return [("x", self.number())], {}

    def _choose(self) -> tuple[list[tuple[str, str]], dict[str, Any]]:
        return [("low", self.number()), ("high", self.number())], {
            "mode": self.chance.choice(["low", 'hi"gh'])
        }

    def _measure(self) -> tuple[list[tuple[str, str]], dict[str, Any]]:
        weights = self.chance.choice([{}, {"weights": [1, 2.5]}])
        return [("path", self.chance.choice(list(self.paths)))], weights

    def results(self) -> dict[str, Any]:
        made = [item for item in self.numbers if item in self.program.producer]
        chosen = self.chance.sample(made, min(len(made), 3))
        for item in chosen:
            self.program.output(item)
            self.drawing["results"].append({"item": item, "path": None, "at": self.place()})
        return {item: self.numbers[item] for item in chosen}


def draw_case(seed: int, functions: dict[str, Callable[..., Any]]) -> Case:
    """A random program of 2 to 25 tasks."""
    maker = _Maker(seed, functions)
    for number in range(maker.chance.randrange(1, 5)):
        maker.input(number)
    if not maker.numbers:
        maker.drawing["inputs"].append(
            {"name": "n", "path": None, "value": "1", "size": None, "at": maker.place()}
        )
        maker.program.input("n", value=1)
        maker.numbers["n"] = 1
    maker.task(0)
    while not any(item in maker.program.producer for item in maker.numbers):
        maker.task(len(maker.program.tasks))
    for _ in range(maker.chance.randrange(1, 24)):
        maker.task(len(maker.program.tasks))
    return Case(maker.drawing, maker.program, maker.results(), maker.files)


def operations() -> dict[str, Callable[..., Any]]:
    """The functions of `SOURCE`, to compute what is expected."""
    found: dict[str, Any] = {"print": lambda *texts: None}
    exec(SOURCE, found)  # a constant of this file
    return {name: found[name] for name in ("add", "scale", "total", "halves", "choose", "measure")}


def same_graph(one: hr.Program, other: hr.Program) -> bool:
    """Whether two programs have the same tasks, items, connections, run times, kinds and labels."""
    return _facts(one) == _facts(other)


def _facts(program: hr.Program) -> str:
    tasks = {
        name: [task.work, task.inputs, task.outputs, task.kind, task.cores, task.after, dict(task.labels)]
        for name, task in program.tasks.items()
    }
    data = {name: [item.size, item.value, item.result] for name, item in program.data.items()}
    graph = program.graph
    arrays = [graph.producer.tolist(), graph.read_ptr.tolist(), graph.reads.tolist()]
    return json.dumps([tasks, data, program.producer, arrays])


class _Sized:
    """Stands for a path in the expected computation."""

    def __init__(self, size: int) -> None:
        self.st_size = size

    def stat(self) -> _Sized:
        return self


def _called(function: Callable[..., Any], given: list[tuple[str, Any]], values: dict[str, Any]) -> Any:
    """The call that a person would write."""
    named = {name: value for name, value in given if name != "values"} | values
    several = [value for name, value in given if name == "values"]
    if not several:
        return function(**named)
    start = named.pop("start", 0.0)
    return function(start, *several, **named)


def _called_in_order(
    function: Callable[..., Any], names: list[str], values: dict[str, Any], *given: Any
) -> Any:
    return _called(function, list(zip(names, given, strict=True)), values)


def _work(text: str) -> float | str:
    return text if " " in text else float(text)


def _labels(group: str) -> dict[str, str | float] | None:
    return {"group": group} if group else None


def write_files(case: Case, folder: Path) -> None:
    """The files that the drawing needs beside it."""
    (folder / "operations.py").write_text(SOURCE)
    for name, content in case.files.items():
        (folder / name).write_text(content)
