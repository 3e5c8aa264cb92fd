"""WfFormat, the JSON of workflow instances: reads 1.0 to 1.6, writes 1.5.

How documents are interpreted:
- A task of 1.5 and 1.6 is identified by its `id`, one of 1.0 to 1.4 by its `name` (name and id where names
  repeat); there, `parents` and `children` may use either.
- An edge exists if either side lists it or a file implies it. One that no file implies becomes `Task.after`.
- Every file has a size. The specification gives `size` in kB up to 1.3, but the instances hold bytes: read as bytes.
  Up to 1.4, where each user of a file repeats its size, the writer's value is used, or else the largest.
- Every task has a run time; tasks of 1.0 to 1.4 whose type is not `compute` may omit it (0 s).
- No version of the schema has labels or tags of tasks; `labels` of a task (texts or numbers by name) is read in all.
- Of commands only the name is read here: nothing from a file is executed unless the user allows it
  (`wfformat_commands.py`).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.formats.files import encode_text, read_file, write_file
from headrace.formats.format import Format
from headrace.formats.shapes import read_shape, shorten
from headrace.formats.wfformat_shapes import Document, FlatTask, Workflow, document_adapter
from headrace.model.errors import BadFile, BadProgram, HeadraceError
from headrace.model.needs import checked_resources
from headrace.model.program import Command, Data, Program, Task

MAX_TASKS = 5_000_000
VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
_NUMBERING = re.compile(r"_(?:ID)?[0-9]+\Z")
_PLAIN_WORD = re.compile(r"\S{1,80}")


def read_program(path: str | Path, *, max_tasks: int = MAX_TASKS) -> Program:
    """Read a workflow instance, plain or gzipped: O(bytes), about 3 times the file's size in memory."""
    where = str(path)
    document = read_shape(document_adapter(), read_file(path), where)
    try:
        return _program(document, max_tasks)
    except HeadraceError as error:
        raise error.at(where) from None


def write_program(program: Program, path: str | Path) -> None:
    """Write a program as WfFormat 1.5; the same program gives the same bytes.

    Of Python functions only the kind is written. Kinds that are not a single word go to `category` instead of
    `command.program`. Headrace's own keys, which other readers ignore: `"result": true` marks a declared result,
    `sites` of a file lists its locations or destinations, `"unknown": true` marks a file of unknown size (written as
    0), and tasks may have `cores`, `release`, `deadline`, `archSpeeds`, `labels`, and `kind` if it is not the name of
    the command's program. A command may have `stdout`, and `placeholders` if `{name}` stands for a file.
    """
    text = json.dumps(_document(program), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_file(path, encode_text(text + "\n", str(path)))


@dataclass(slots=True)
class _Row:
    """A task of either layout; `parents` and `children` are names as in the document."""

    name: str
    kind: str
    work: float
    inputs: list[str]
    outputs: list[str]
    parents: list[str]
    children: list[str]
    cores: int = 1
    release: float = 0.0
    deadline: float = math.inf
    arch_speeds: tuple[float, ...] = ()
    labels: dict[str, str | float] = field(default_factory=dict)
    memory: float = 0.0
    resources: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Parts:
    """What a program is built from, and the names of its parts in the document."""

    rows: list[_Row]
    items: dict[str, Data]
    known: dict[str, str]
    """Every name that refers to a task, and the task's name."""
    place: str
    reads: str
    writes: str


def _program(document: Document, max_tasks: int) -> Program:
    if document.version not in VERSIONS:
        raise BadFile(
            f"schemaVersion is {shorten(document.version)}",
            hint=f"convert it to one of {', '.join(VERSIONS)}",
        )
    workflow = document.workflow
    count = len(workflow.specification.tasks if workflow.specification else workflow.tasks)
    if not count:
        raise BadProgram(
            "there are no tasks", where="workflow", hint="give specification.tasks (1.5) or tasks (1.4)"
        )
    if count > max_tasks:
        raise BadProgram(f"{count} tasks, more than {max_tasks}", where="workflow", hint="split the program")
    parts = _split_parts(workflow) if workflow.specification else _flat_parts(workflow.tasks)
    program = Program(document.name)
    program.data = parts.items
    _add_tasks(program, parts)
    _ = program.graph  # finds cycles
    return program


def _split_parts(workflow: Workflow) -> _Parts:
    """1.5 and 1.6: tasks and files in the specification, run times in the execution."""
    specification, execution = workflow.specification, workflow.execution
    assert specification is not None
    if execution is None:
        raise BadProgram(
            "the tasks have no run times: workflow.execution is missing",
            hint="use an instance that was executed, or add execution.tasks with runtimeInSeconds",
        )
    place = "workflow.specification.tasks"
    known: dict[str, str] = {}
    for i, task in enumerate(specification.tasks):
        if task.id in known:
            raise _twice("task", task.id, f"{place}[{i}].id")
        known[task.id] = task.id
    executed = {}
    for i, entry in enumerate(execution.tasks):
        if entry.id not in known:
            raise _unknown("task", entry.id, f"workflow.execution.tasks[{i}].id")
        if entry.id in executed:
            raise _twice("task", entry.id, f"workflow.execution.tasks[{i}].id")
        executed[entry.id] = entry
    items: dict[str, Data] = {}
    sited: dict[str, tuple[str, ...]] = {}
    for i, file in enumerate(specification.files):
        if file.id in items:
            raise _twice("file", file.id, f"workflow.specification.files[{i}].id")
        if file.sites:
            sited[file.id] = tuple(file.sites)
        items[file.id] = Data(file.id, None if file.unknown else file.size, result=file.result)
    rows = []
    for i, task in enumerate(specification.tasks):
        run = executed.get(task.id)
        if run is None:
            raise BadProgram(
                f"task {shorten(task.id)} has no run time",
                where=f"{place}[{i}]",
                hint="add it to workflow.execution.tasks with runtimeInSeconds",
            )
        command = run.command.program if run.command else None
        kind = task.kind or _kind(command, task.category, task.name or task.id)
        row = _Row(task.id, kind, run.runtime, task.inputs, task.outputs, task.parents, task.children)
        row.cores, row.release, row.arch_speeds = task.cores, task.release, tuple(task.arch_speeds)
        row.labels, row.memory = task.labels, task.memory
        row.resources = checked_resources(task.resources, f"{place}[{i}].resources", BadProgram)
        row.deadline = math.inf if task.deadline is None else task.deadline
        rows.append(row)
    written = {item for row in rows for item in row.outputs}
    for name, sites in sited.items():
        old = items[name]
        items[name] = (
            replace(old, result=True, destinations=sites)
            if name in written
            else replace(old, initial_locations=sites)
        )
    return _Parts(rows, items, known, place, "inputFiles", "outputFiles")


def _flat_parts(tasks: list[FlatTask]) -> _Parts:
    """1.3 and 1.4: everything about a task in one entry; files are repeated for every user."""
    repeats = Counter(task.name for task in tasks)
    keys = [t.name if repeats[t.name] == 1 or not t.id else f"{t.name}_{t.id}" for t in tasks]
    ids = Counter(t.id for t in tasks if t.id)
    known = {t.id: key for t, key in zip(tasks, keys, strict=True) if t.id and ids[t.id] == 1}
    known |= {t.name: key for t, key in zip(tasks, keys, strict=True) if repeats[t.name] == 1}
    sizes: dict[str, float] = {}
    written: dict[str, float] = {}
    rows = []
    taken: set[str] = set()
    for i, (task, key) in enumerate(zip(tasks, keys, strict=True)):
        if key in taken or (task.id and ids[task.id] > 1):
            raise _twice("task", key if key in taken else str(task.id), f"workflow.tasks[{i}]")
        taken.add(key)
        known[key] = key
        if task.runtime is None and task.type == "compute":
            raise BadProgram(
                f"task {shorten(key)} has no run time",
                where=f"workflow.tasks[{i}].runtimeInSeconds",
                hint="add the run time in seconds",
            )
        links: dict[str, list[str]] = {"input": [], "output": []}
        for file in task.files:
            item = f"{file.path}/{file.name}" if file.path else file.name
            links[file.link].append(item)
            sizes[item] = max(file.size, sizes.get(item, 0.0))
            if file.link == "output":
                written[item] = file.size
        kind = _kind(task.command.program if task.command else None, task.category, task.name)
        rows.append(
            _Row(key, kind, task.runtime or 0.0, links["input"], links["output"], task.parents, task.children)
        )
        rows[-1].labels = task.labels
    items = {item: Data(item, written.get(item, size)) for item, size in sizes.items()}
    return _Parts(rows, items, known, "workflow.tasks", "files", "files")


def _add_tasks(program: Program, parts: _Parts) -> None:
    """Connect rows by files first, then by the remaining parents and children: O(tasks + edges)."""
    name_of = {name: name for name in parts.items}  # one string per item, however often it is named
    maker = program.producer
    for i, row in enumerate(parts.rows):
        for j, item in enumerate(row.outputs):
            if item not in name_of:
                raise _unknown("file", item, f"{parts.place}[{i}].{parts.writes}[{j}]")
            first = maker.setdefault(name_of[item], row.name)
            if first != row.name:
                raise BadProgram(
                    f"file {shorten(item)} is written by {shorten(first)} and by {shorten(row.name)}",
                    where=f"{parts.place}[{i}].{parts.writes}",
                    hint="a file can have only one writer: rename the second output",
                )
    before = _listed_edges(parts)
    for i, row in enumerate(parts.rows):
        for j, item in enumerate(row.inputs):
            if item not in name_of:
                raise _unknown("file", item, f"{parts.place}[{i}].{parts.reads}[{j}]")
            if maker.get(item) == row.name:
                raise BadProgram(
                    f"task {shorten(row.name)} reads {shorten(item)}, which it writes itself",
                    where=f"{parts.place}[{i}].{parts.reads}",
                    hint="remove one of the two",
                )
        inputs = tuple(name_of[item] for item in row.inputs)
        makers = {maker[item] for item in inputs if item in maker}
        after = tuple(task for task in before[i] if task not in makers)
        outputs = tuple(dict.fromkeys(name_of[item] for item in row.outputs))
        program.tasks[row.name] = Task(
            row.name, row.work, inputs, outputs, row.kind, None, after, row.cores, row.release, row.deadline,
            row.arch_speeds, row.labels, memory=row.memory, resources=row.resources,
        )  # fmt: skip


def _listed_edges(parts: _Parts) -> list[dict[str, None]]:
    """The predecessors of each task, from its `parents` and from the `children` of others."""
    number = {row.name: i for i, row in enumerate(parts.rows)}
    before: list[dict[str, None]] = [{} for _ in parts.rows]
    for i, row in enumerate(parts.rows):
        for j, parent in enumerate(row.parents):
            if parent not in parts.known:
                raise _unknown("task", parent, f"{parts.place}[{i}].parents[{j}]")
            before[i][parts.known[parent]] = None
    for i, row in enumerate(parts.rows):
        for j, child in enumerate(row.children):
            if child not in parts.known:
                raise _unknown("task", child, f"{parts.place}[{i}].children[{j}]")
            before[number[parts.known[child]]][row.name] = None
    return before


def _kind(command: str | None, category: str | None, name: str) -> str:
    """
    >>> _kind("mProject", None, "x"), _kind("cat a | sort", None, "sort_ID0000012"), _kind(None, "fft", "x")
    ('mProject', 'sort', 'fft')
    """
    if command is not None and _PLAIN_WORD.fullmatch(command):
        return command
    if category is not None:
        return category
    return _NUMBERING.sub("", name) or name


def _unknown(what: str, name: str, where: str) -> BadProgram:
    return BadProgram(
        f"there is no {what} {shorten(name)}", where=where, hint=f"name a {what} that is listed"
    )


def _twice(what: str, name: str, where: str) -> BadProgram:
    return BadProgram(
        f"two {what}s are called {shorten(name)}", where=where, hint=f"give each {what} its own name"
    )


def _document(program: Program) -> dict[str, Any]:
    parents = {
        task.name: dict.fromkeys(
            [*(program.producer[item] for item in task.inputs if item in program.producer), *task.after]
        )
        for task in program.tasks.values()
    }
    children: dict[str, list[str]] = {name: [] for name in program.tasks}
    for name, befores in parents.items():
        for before in befores:
            children[before].append(name)
    tasks = [
        {
            "name": task.name,
            "id": task.name,
            "parents": list(parents[task.name]),
            "children": children[task.name],
            "inputFiles": list(task.inputs),
            "outputFiles": list(task.outputs),
        }
        | ({} if _PLAIN_WORD.fullmatch(task.kind) else {"category": task.kind})
        | ({"kind": task.kind} if _is_renamed(task) else {})
        | _asked(task)
        for task in program.tasks.values()
    ]
    files = [
        {"id": item.name, "sizeInBytes": _plain(item.size or 0.0)}
        | ({"unknown": True} if item.size is None else {})
        | ({"result": True} if item.result else {})
        | (
            {"sites": list(item.initial_locations or item.destinations)}
            if item.initial_locations or item.destinations
            else {}
        )
        for item in program.data.values()
    ]
    runs = [
        {"id": task.name, "runtimeInSeconds": task.work} | _command(task) for task in program.tasks.values()
    ]
    return {
        "name": program.name,
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": tasks, "files": files},
            "execution": {"makespanInSeconds": 0, "executedAt": "1970-01-01T00:00:00Z", "tasks": runs},
        },
    }


def _plain(size: float) -> float:
    """A whole number without a decimal point."""
    return int(size) if size.is_integer() else size


def _asked(task: Task) -> dict[str, Any]:
    """The requirements of a task other than one core at any time."""
    asked: dict[str, Any] = {"cores": task.cores} if task.cores > 1 else {}
    asked |= {"memory": _plain(float(task.memory))} if task.memory > 0 else {}
    asked |= {"resources": dict(task.resources)} if task.resources else {}
    asked |= {"release": task.release} if task.release > 0 else {}
    asked |= {"archSpeeds": list(task.arch_speeds)} if task.arch_speeds else {}
    asked |= {"labels": dict(task.labels)} if task.labels else {}
    return asked | ({"deadline": task.deadline} if math.isfinite(task.deadline) else {})


def _command(task: Task) -> dict[str, Any]:
    """What a task executes; of a function, its kind."""
    if isinstance(task.body, Command) and task.body.argv:
        program, *arguments = task.body.argv
        command: dict[str, Any] = {"program": program, "arguments": arguments}
        command |= {} if task.body.stdout is None else {"stdout": task.body.stdout}
        return {"command": command | ({} if task.body.literal else {"placeholders": True})}
    return {"command": {"program": task.kind}} if _PLAIN_WORD.fullmatch(task.kind) else {}


def _is_renamed(task: Task) -> bool:
    return isinstance(task.body, Command) and bool(task.kind) and task.body.argv[:1] != (task.kind,)


def _is_json(head: bytes) -> bool:
    """Any JSON: more specific formats are asked first."""
    return head.startswith((b"{", b"["))


FORMATS = (
    Format(
        "wfformat",
        "program",
        "WfCommons JSON",
        suffixes=(".json",),
        sniff=_is_json,
        read=read_program,
        write=write_program,
    ),
)
