"""Drawings between the page and files: open, check and save them, and tell what they would execute.

The page sends values of parameters as texts of Python literals: 2 and 2.0 are the same number to a browser.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headrace.formats.drawing import (
    LONGEST_TEXT,
    Drawing,
    DrawnTask,
    Value,
    drawing_of,
    require_function,
)
from headrace.formats.drawing_python import drawing_python
from headrace.formats.drawing_toml import drawing_text, read_drawing, write_drawing
from headrace.formats.function_source import FunctionSource, ModuleSource, file_source, module_source
from headrace.formats.tables import Table
from headrace.model.errors import HeadraceError, UsageError
from headrace.model.safe_path import safe_path
from headrace.ui.workspace import Workspace

WHERE = "the drawing"


def library(space: Workspace, places: list[str]) -> list[dict[str, Any]]:
    """The functions of files and modules, from their source; a place that cannot be read has an error."""
    return [_library_entry(space, place) for place in places[:200]]


def _library_entry(space: Workspace, place: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"place": place, "functions": [], "classes": [], "filters": [], "error": ""}
    try:
        found = source_of(space, place)
    except HeadraceError as error:
        return entry | {"error": str(error)}
    functions = [asdict(one) for one in found.functions]
    classes, filters = ([asdict(one) for one in listed] for listed in (found.classes, found.filters))
    return entry | {"functions": functions, "classes": classes, "filters": filters}


def source_of(space: Workspace, place: str, folder: Path | None = None) -> ModuleSource:
    """What a file below the folder, or a module, has."""
    if place.endswith(".py"):
        base = space.root if folder is None else folder
        path = space.path(str((base / safe_path(place, WHERE)).relative_to(space.root)))
        return file_source(path, place)
    return module_source(place)


def opened(space: Workspace, file: str) -> dict[str, Any]:
    """A drawing for the page, with the functions that it names."""
    path = space.path(file)
    drawing = read_drawing(path)
    answer = described(space, drawing, path.parent)
    return {"drawing": page_values(drawing), "version": _version(path), **answer}


def checked(space: Workspace, values: Mapping[str, Any], file: str) -> dict[str, Any]:
    """The file and the Python program of a drawing that is not saved yet."""
    return described(space, from_page(values), _folder(space, file))


def saved(space: Workspace, values: Mapping[str, Any], file: str, version: str) -> dict[str, Any]:
    """Write a drawing; a file that has changed since it was opened, or is something else, is not replaced."""
    if not file.endswith(".toml"):
        raise UsageError(f"{file[:100]!r} does not end in .toml", hint="such as program.toml")
    path = _folder(space, file) / Path(safe_path(file, WHERE)).name
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageError(f"{file} is not a plain file", hint="choose another name")
    if path.exists() and _version(path) != version:
        raise UsageError(f"{file} exists, or was changed by another program", hint="save under another name")
    drawing = from_page(values)
    write_drawing(drawing, path)
    return {"version": _version(path), **described(space, drawing, path.parent)}


def described(space: Workspace, drawing: Drawing, folder: Path) -> dict[str, Any]:
    """What the page shows beside a drawing: the file, the Python program, functions, and what is missing."""
    known = {task.function: _known(space, task.function, folder) for task in drawing.tasks if task.function}
    problems = [
        {"task": task.name, "problem": problem}
        for task in drawing.tasks
        for problem in _problems(task, known)
    ]
    return {
        "file": drawing_text(drawing),
        "python": drawing_python(drawing, known.get),
        "functions": [asdict(one) for one in known.values() if one is not None],
        "problems": problems + _mixed(drawing, known),
    }


def _mixed(drawing: Drawing, known: Mapping[str, FunctionSource | None]) -> list[dict[str, str]]:
    """Tasks that are no filters, in a drawing that has filters."""
    filters = {reference for reference, one in known.items() if one is not None and one.filter}
    if not filters:
        return []
    problem = "A pipeline has filters only."
    return [{"task": task.name, "problem": problem} for task in drawing.tasks if task.function not in filters]


def _problems(task: DrawnTask, known: Mapping[str, FunctionSource | None]) -> list[str]:
    """What would stop a task from running, as far as its source tells."""
    if not task.function:
        return [] if task.command else ["It has no function or command: it can be planned, not run."]
    source = known[task.function]
    if source is None:
        return [f"The source of {task.function} was not found."]
    if source.executable:
        return [f"{task.function}: {source.executable}."]
    names = {one.name for one in source.parameters}
    keywords = any(one.kind == "keywords" for one in source.parameters)
    given = {name for name, _ in task.inputs} | set(task.set)
    found = [] if keywords else [f"{task.function} has no parameter {n}." for n in given - names - {""}]
    if any(name == "" for name, _ in task.inputs):
        return sorted(found)
    needed = [p.name for p in source.parameters if p.default is None and p.kind in ("positional", "keyword")]
    return sorted(found) + [f"{name} has no value." for name in needed if name not in given]


def _known(space: Workspace, reference: str, folder: Path) -> FunctionSource | None:
    place, _, name = reference.rpartition(":")
    try:
        found = source_of(space, place, folder)
    except HeadraceError:
        return None
    return found.find(name)


def executes(space: Workspace, program: str) -> list[str]:
    """What running a program would execute, in words; the file itself is only read."""
    file = program.partition(":")[0]
    path = space.path(file)
    if file.endswith(".py"):
        return [f"{file}: the whole file, and the tasks that it makes"]
    if not file.endswith(".toml"):
        return []
    drawing = read_drawing(path)
    functions = {task.function for task in drawing.tasks if task.function}
    commands = {" ".join(task.command) for task in drawing.tasks if task.command}
    return [f"function {one}" for one in sorted(functions)] + [f"command {one}" for one in sorted(commands)]


def _folder(space: Workspace, file: str) -> Path:
    """The folder of a file that may not exist yet; it must lie in the folder of the page."""
    folder = (space.root / safe_path(file or "program.toml", WHERE)).parent.resolve()
    if not folder.is_relative_to(space.root) or not folder.is_dir():
        raise UsageError(f"there is no folder for {file[:100]!r}", hint=str(space.root))
    return folder


def _version(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()


def page_values(drawing: Drawing) -> dict[str, Any]:
    """A drawing for the page: lists instead of tables, and values as literals."""
    values = asdict(drawing)
    for given in values["inputs"]:
        given["value"] = None if given["value"] is None else repr(given["value"])
    for task in values["tasks"]:
        task["set"] = [[name, repr(value)] for name, value in task["set"].items()]
        work = task["work"]
        task["work"] = work if isinstance(work, str) else repr(float(work)).removesuffix(".0")
    return values


def from_page(values: Mapping[str, Any]) -> Drawing:
    """The drawing that the page has sent, as strictly checked as a file."""
    table = Table(values, WHERE, error=UsageError)
    table.require_known(["name", "inputs", "tasks", "results"])
    tables = {key: table.tables(key, key, lambda one: "") for key in ("inputs", "tasks", "results")}
    native = {
        "program": {"name": table.text("name", "program")},
        "input": [_native(one) for one in tables["inputs"]],
        "task": [_native_task(one) for one in tables["tasks"]],
        "result": [_native(one) for one in tables["results"]],
    }
    return drawing_of(native, WHERE)


def _native(table: Table) -> dict[str, Any]:
    given = {key: value for key, value in table.values.items() if value is not None}
    if "value" in given:
        given["value"] = literal(given["value"], "value", table)
    return given


def _native_task(table: Table) -> dict[str, Any]:
    given = {key: value for key, value in table.values.items() if value not in (None, "", [])}
    pairs = {key: _pairs(table, key) for key in ("inputs", "set", "outputs")}
    given["set"] = {name: literal(value, name, table) for name, value in pairs["set"]}
    if any(name for name, _ in pairs["inputs"]):
        several: dict[str, list[Any]] = {}
        for name, item in pairs["inputs"]:
            several.setdefault(name, []).append(item)
        given["inputs"] = several
    else:
        given["inputs"] = [item for _, item in pairs["inputs"]]
    sizes = {name: "0 B" if size is None else size for name, size in pairs["outputs"]}
    if len(sizes) < len(pairs["outputs"]):
        raise table.wrong("two outputs have the same name", "give different names")
    sized = any(size is not None for _, size in pairs["outputs"])
    given["outputs"] = sizes if sized else list(sizes)
    given["work"] = _number_or_text(given.get("work", 1.0))
    if "function" in given and isinstance(given["function"], str):
        require_function(given["function"], table)
    return given


def _pairs(table: Table, key: str) -> list[tuple[str, Any]]:
    value = table.values.get(key, [])
    pairs = isinstance(value, list) and all(isinstance(one, list) and len(one) == 2 for one in value)
    if not pairs or not all(isinstance(name, str) for name, _ in value):
        raise table.bad_value(key, value, "send a list of pairs")
    return [(name, other) for name, other in value]


def _number_or_text(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value


def literal(text: object, key: str, table: Table) -> Value:
    """The value of a Python literal, without executing anything.

    >>> literal("[1, 2.0]", "sizes", Table({}, "here"))
    [1, 2.0]
    """
    try:
        if not isinstance(text, str) or len(text) > LONGEST_TEXT:
            raise ValueError
        value: Value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        raise table.bad_value(
            key, text, 'write a number, "text", True, False, or lists and tables of them'
        ) from None
    return value
