"""Drawn programs as TOML that a person can read and compare: one table for each input, task and result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from headrace.formats.drawing import Drawing, DrawnTask, Place, Value, drawing_of
from headrace.formats.files import read_file, write_file
from headrace.formats.format import Format
from headrace.formats.toml_text import parse_toml
from headrace.model.program import Program

MAX_BYTES = 16_000_000
_DRAWN = re.compile(rb"^[ \t]*\[[ \t]*program[ \t]*\]", re.MULTILINE)
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def read_drawing(path: str | Path) -> Drawing:
    """Read and validate a drawing: O(bytes). Nothing is executed."""
    where = str(path)
    return drawing_of(parse_toml(read_file(path, limit=MAX_BYTES), where), where)


def read_drawn_program(path: str | Path) -> Program:
    """The program of a drawing; its functions are imported when it runs."""
    return read_drawing(path).program(Path(path).parent)


def write_drawing(drawing: Drawing, path: str | Path) -> None:
    """Write a drawing; the same drawing gives the same bytes."""
    write_file(path, drawing_text(drawing).encode())


def drawing_text(drawing: Drawing) -> str:
    """
    >>> print(drawing_text(Drawing("one", tasks=(DrawnTask("a", command=("true",)),))))
    [program]
    name = "one"
    <BLANKLINE>
    [[task]]
    name = "a"
    command = ["true"]
    <BLANKLINE>
    """
    parts = [f"[program]\nname = {_text(drawing.name)}"]
    for given in drawing.inputs:
        lines = {"name": given.name, "path": given.path, "value": given.value, "size": given.size}
        parts.append(_table("input", lines, given.at))
    for task in drawing.tasks:
        parts.append("\n".join(["[[task]]", *_task_lines(task)]))
    for result in drawing.results:
        parts.append(_table("result", {"item": result.item, "path": result.path}, result.at))
    return "\n\n".join(parts) + "\n"


def _task_lines(task: DrawnTask) -> Iterator[str]:
    yield f"name = {_text(task.name)}"
    if task.function:
        yield f"function = {_text(task.function)}"
    if task.command:
        yield f"command = {_value(list(task.command))}"
    if task.inputs:
        yield f"inputs = {_value(_grouped(task.inputs))}"
    if task.set:
        yield f"set = {_value(dict(task.set))}"
    if task.outputs:
        sized = any(size is not None for _, size in task.outputs)
        sizes: dict[str, Value] = {name: size if size is not None else 0 for name, size in task.outputs}
        yield f"outputs = {_value(sizes if sized else list(sizes))}"
    if task.stdout is not None:
        yield f"stdout = {_text(task.stdout)}"
    if task.work != 1.0:
        yield f"work = {_value(task.work)}"
    if task.cores != 1:
        yield f"cores = {task.cores}"
    if task.after:
        yield f"after = {_value(list(task.after))}"
    if task.group:
        yield f"group = {_text(task.group)}"
    if task.at is not None:
        yield f"at = {_at(task.at)}"


def _grouped(inputs: tuple[tuple[str, str], ...]) -> Value:
    """A list of items if their order decides; else a table, with a list for a parameter that takes several."""
    if not any(name for name, _ in inputs):
        return [item for _, item in inputs]
    found: dict[str, list[Value]] = {}
    for name, item in inputs:
        found.setdefault(name, []).append(item)
    return {name: items[0] if len(items) == 1 else items for name, items in found.items()}


def _table(kind: str, values: dict[str, Value | None], at: Place | None) -> str:
    lines = [f"{key} = {_value(value)}" for key, value in values.items() if value is not None]
    if at is not None:
        lines.append(f"at = {_at(at)}")
    return "\n".join([f"[[{kind}]]", *lines])


def _at(at: Place) -> str:
    return f"[{at[0]:.10g}, {at[1]:.10g}]"


def _value(value: Value) -> str:
    """
    >>> _value({"a b": [1, 2.5, True, "x"]})
    '{ "a b" = [1, 2.5, true, "x"] }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in value)}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return repr(value)


def _key(name: str) -> str:
    return name if _BARE.match(name) else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def is_drawing(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a drawn program."""
    return not head.startswith(b"{") and _DRAWN.search(head) is not None


FORMATS = (
    Format("drawn", "program", "a program drawn in the page", sniff=is_drawing, read=read_drawn_program),
)
