"""A drawn program: tasks with parameters, the items that connect them, and where each is drawn.

A drawing names functions and commands; making it into a program executes nothing. `with_functions` of
`formats/function_reference.py` imports them when the program is to run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from headrace.formats.function_reference import FunctionReference
from headrace.formats.shapes import shorten
from headrace.formats.tables import Table
from headrace.model.errors import HeadraceError
from headrace.model.program import Command, Program
from headrace.model.safe_path import safe_path

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value]"
Place: TypeAlias = tuple[float, float]

MAX_TASKS = 20_000
LONGEST_TEXT = 10_000
DEEPEST = 8
LARGEST = 2**53
"""Whole numbers beyond this would change in a browser."""
_FUNCTION = re.compile(r"(?P<place>[^\0:]{1,500}):(?P<name>[^\W\d]\w{0,199})\Z")
_INPUT_KEYS = ("name", "path", "value", "size", "at")
_TASK_KEYS = (
    "name",
    "function",
    "command",
    "inputs",
    "set",
    "outputs",
    "stdout",
    "work",
    "cores",
    "after",
    "group",
    "at",
)  # fmt: skip
_RESULT_KEYS = ("item", "path", "at")


@dataclass(frozen=True)
class DrawnInput:
    """An input of the program: a file, or a value."""

    name: str
    path: str | None = None
    value: Value | None = None
    size: str | None = None
    at: Place | None = None


@dataclass(frozen=True)
class DrawnTask:
    """A function or a command; without both, a task that is only planned."""

    name: str
    function: str = ""
    """`file.py:name`, relative to the drawing, or `module:name`."""
    command: tuple[str, ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()
    """Parameter and item; the parameter is "" where the order decides."""
    set: Mapping[str, Value] = field(default_factory=dict)
    """Parameters that are not connected, and their values."""
    outputs: tuple[tuple[str, str | None], ...] = ()
    """Item and estimated size, if it is given."""
    stdout: str | None = None
    work: str | float = 1.0
    cores: int = 1
    after: tuple[str, ...] = ()
    group: str = ""
    at: Place | None = None


@dataclass(frozen=True)
class DrawnResult:
    """An item that is a result, and the file that it is written to."""

    item: str
    path: str | None = None
    at: Place | None = None


@dataclass(frozen=True)
class Drawing:
    """All of it; names are unique within each list."""

    name: str
    inputs: tuple[DrawnInput, ...] = ()
    tasks: tuple[DrawnTask, ...] = ()
    results: tuple[DrawnResult, ...] = ()

    @property
    def streams(self) -> list[tuple[str, str]]:
        """Pairs of tasks of which one makes what the other is given, each once: the streams of a pipeline.

        >>> read = DrawnTask("read", outputs=(("lines", None),))
        >>> Drawing("p", tasks=(read, DrawnTask("add", inputs=(("", "lines"),)))).streams
        [('read', 'add')]
        """
        maker = {item: task.name for task in self.tasks for item, _ in task.outputs}
        pairs = [(maker[item], task.name) for task in self.tasks for _, item in task.inputs if item in maker]
        return list(dict.fromkeys(pairs))

    def program(self, folder: Path) -> Program:
        """The program; paths are relative to the drawing's folder. O(tasks + connections); nothing is executed.

        >>> task = DrawnTask("a", "math:sqrt", inputs=(("", "x"),), outputs=(("root", None),))
        >>> program = Drawing("one", (DrawnInput("x", value=4.0),), (task,)).program(Path())
        >>> program.tasks["a"].kind, program.tasks["a"].body(4.0)
        ('sqrt', 2.0)
        """
        made = Program(self.name)
        for given in self.inputs:
            path = None if given.path is None else _inside(folder, given.path)
            made.input(given.name, path, size=given.size or 0.0, value=given.value)
        for task in self.tasks:
            names = tuple(name for name, _ in task.inputs)
            body: FunctionReference | Command | None = None
            if task.function:
                body = FunctionReference(task.function, str(folder), names, dict(task.set))
            elif task.command:
                body = Command(task.command, task.stdout)
            made.task(
                body,
                name=task.name,
                kind=task.function.rpartition(":")[2] or None,
                inputs=[item for _, item in task.inputs],
                outputs={item: 0.0 if size is None else size for item, size in task.outputs},
                work=task.work,
                cores=task.cores,
                after=task.after,
                labels={"group": task.group} if task.group else None,
            )
        for result in self.results:
            made.output(result.item, result.path)
        return made


def _inside(folder: Path, path: str) -> str:
    """An input's path as the runtime takes it: URLs and absolute paths as they are."""
    return path if "://" in path or Path(path).is_absolute() else str(folder / path)


def drawing_of(values: Mapping[str, Any], where: str) -> Drawing:
    """Validate the tables of a file: O(values).

    Raises
    ------
    BadFile
        With the table and the key, if something is not as it should be.
    """
    top = Table(values, where)
    top.require_known(["program", "input", "task", "result"])
    head = top.with_values(top.table("program"), f"{where}: [program]")
    head.require_known(["name"])
    tasks = top.tables("task", "task", _label)
    if len(tasks) > MAX_TASKS:
        raise top.wrong(f"{len(tasks)} tasks", f"at most {MAX_TASKS}")
    drawing = Drawing(
        head.text("name", "program"),
        tuple(_input(table) for table in top.tables("input", "input", _label)),
        tuple(_task(table) for table in tasks),
        tuple(_result(table) for table in top.tables("result", "result", lambda one: _label(one, "item"))),
    )
    _require_consistent(drawing, where)
    return drawing


def _label(entry: Mapping[str, Any], key: str = "name") -> str:
    return shorten(entry[key], 60) if isinstance(entry.get(key), str) else ""


def _input(table: Table) -> DrawnInput:
    table.require_known(_INPUT_KEYS)
    path, value = table.text("path", None), table.values.get("value")
    if path is not None and value is not None:
        raise table.wrong("both a path and a value", "give one of them")
    size = _amount(table, "size")
    return DrawnInput(
        _name(table, "name"),
        path,
        None if value is None else checked(value, "value", table),
        size,
        _at(table),
    )


def _task(table: Table) -> DrawnTask:
    table.require_known(_TASK_KEYS)
    function, command = table.text("function", ""), _texts(table, "command")
    if function and command:
        raise table.wrong("both a function and a command", "give one of them")
    if function:
        require_function(function, table)
    given = {key: checked(value, key, table) for key, value in table.table("set").items()}
    if given and not function:
        raise table.wrong("set without a function", "give function = ... as well")
    stdout = table.text("stdout", None)
    outputs = _outputs(table)
    if stdout is not None and stdout not in dict(outputs):
        raise table.bad_value("stdout", stdout, "name one of the outputs")
    work = table.values.get("work", 1.0)
    if isinstance(work, bool) or not isinstance(work, str | int | float):
        raise table.bad_value("work", work, 'give a time, such as "2 s"')
    return DrawnTask(
        _name(table, "name"), function, command, _inputs(table, bool(function)), given, outputs, stdout,
        work, table.whole("cores", 1, most=10_000), _texts(table, "after"), table.text("group", ""), _at(table),
    )  # fmt: skip


def _result(table: Table) -> DrawnResult:
    table.require_known(_RESULT_KEYS)
    path = table.text("path", None)
    if path is not None:
        safe_path(path, table.where)
    return DrawnResult(_name(table, "item"), path, _at(table))


def require_function(text: str, table: Table) -> None:
    """Refuse what is no `file.py:name` below the folder and no `module:name`."""
    found = _FUNCTION.match(text)
    if found is None:
        raise table.bad_value("function", text, 'give "file.py:name" or "module:name"')
    place = found["place"]
    if place.endswith(".py"):
        safe_path(place, table.where)
    elif not all(part.isidentifier() for part in place.split(".")):
        raise table.bad_value("function", text, 'give "file.py:name" or "module:name"')


def checked(value: object, key: str, table: Table, depth: int = 0) -> Value:
    """A value that a file, Python and a browser can all hold."""
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) <= LARGEST):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str) and len(value) <= LONGEST_TEXT and _is_text(value):
        return value
    if isinstance(value, list) and depth < DEEPEST and len(value) <= LONGEST_TEXT:
        return [checked(each, key, table, depth + 1) for each in value]
    named = isinstance(value, dict) and all(isinstance(name, str) and _is_text(name) for name in value)
    if isinstance(value, dict) and named and depth < DEEPEST and len(value) <= LONGEST_TEXT:
        return {name: checked(each, key, table, depth + 1) for name, each in value.items()}
    raise table.bad_value(key, value, "give a number, a text, true, false, or lists and tables of them")


def _is_text(value: str) -> bool:
    try:
        return "\0" not in value and bool(value.encode() or True)
    except UnicodeEncodeError:  # half a surrogate pair
        return False


def _name(table: Table, key: str) -> str:
    table.required(key)
    name: str = table.text(key, "")
    if not _is_text(name) or any(ord(sign) < 32 for sign in name):
        raise table.bad_value(key, name, "give a name without control characters")
    return name


def _amount(table: Table, key: str) -> str | None:
    table.quantity(key, "size", 0.0)
    return None if key not in table.values else str(table.values[key])


def _texts(table: Table, key: str) -> tuple[str, ...]:
    value = table.values.get(key, [])
    right = isinstance(value, list) and all(isinstance(each, str) and _is_text(each) for each in value)
    if not right or (key in table.values and key == "command" and not (value and value[0])):
        raise table.bad_value(key, value, f'give a list of texts, such as {key} = ["a"]')
    return tuple(value)


def _inputs(table: Table, function: bool) -> tuple[tuple[str, str], ...]:
    value = table.values.get("inputs", [])
    if isinstance(value, list):
        return tuple(("", item) for item in _texts(table, "inputs"))
    if not function or not isinstance(value, dict):
        raise table.bad_value("inputs", value, 'give a list of items, such as inputs = ["a"]')
    found: list[tuple[str, str]] = []
    for name, items in value.items():
        listed = items if isinstance(items, list) else [items]
        if not name.isidentifier() or not all(isinstance(item, str) and item for item in listed):
            raise table.bad_value("inputs", value, 'give an item for each parameter: { image = "item" }')
        found += [(name, item) for item in listed]
    return tuple(found)


def _outputs(table: Table) -> tuple[tuple[str, str | None], ...]:
    value = table.values.get("outputs", [])
    if isinstance(value, dict):
        sizes = table.with_values(value)
        found = tuple((name, _amount(sizes, name)) for name in value)
    else:
        found = tuple((name, None) for name in _texts(table, "outputs"))
    if len(dict(found)) < len(found) or any(not name for name, _ in found):
        raise table.bad_value("outputs", value, "give different names")
    return found


def _at(table: Table) -> Place | None:
    value = table.values.get("at")
    if value is None:
        return None
    pair = isinstance(value, list) and len(value) == 2
    if not pair or not all(
        isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e7 for v in value
    ):
        raise table.bad_value("at", value, "give two numbers: at = [x, y]")
    return value[0], value[1]


def _require_consistent(drawing: Drawing, where: str) -> None:
    """What can be said without the functions: names, items and cycles are as a program needs them."""
    parameters = [(task.name, name) for task in drawing.tasks for name in _twice(task)]
    table = Table({}, where)
    if parameters:
        task, name = parameters[0]
        raise table.wrong(f"task {task!r}: {name} is connected and set", "leave one out")
    _unique([one.item for one in drawing.results], "result", table)
    try:
        _ = drawing.program(Path()).graph
    except HeadraceError as error:
        raise table.wrong(error.problem, error.hint) from None


def _twice(task: DrawnTask) -> list[str]:
    return [name for name in task.set if name in dict(task.inputs)]


def _unique(names: Sequence[str], what: str, table: Table) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise table.wrong(f"two entries for {what} {name!r}", "keep one of them")
        seen.add(name)
