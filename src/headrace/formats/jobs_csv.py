"""Jobs as CSV: one row per job with its run time, input files and their locations, and its output's destination.

Columns, in any order: `duration`; `input_size`, `sources`; `output_size`, `destinations`; optionally `name`, `input`
(file names: jobs that name the same file share it), `kind`, `cores`, `memory`, `resources` (such as `gpu=1`),
`release`, `deadline`. Separate multiple inputs and multiple resources with `;` and multiple sites with `|`. Sizes and
times may have units; `?` is an unknown size.
"""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from headrace.formats.files import encode_text, read_file, write_file
from headrace.formats.format import Format
from headrace.formats.resource_text import read_resources, write_resources
from headrace.formats.shapes import MAX_NUMBER, shorten
from headrace.model.errors import BadFile, BadProgram, HeadraceError
from headrace.model.program import Program
from headrace.model.units import quantity

MAX_BYTES = 256_000_000
MAX_JOBS = 1_000_000
MAX_INPUTS = 1_000
NEEDED = ("duration",)
KNOWN = (
    "name", "kind", "duration", "input", "input_size", "sources", "output_size", "destinations",
    "cores", "memory", "resources", "release", "deadline",
)  # fmt: skip
UNKNOWN = "?"
"""A size that is not known."""
_MARKS = ("input_size", "output_size", "sources", "destinations")


def is_jobs_csv(head: bytes) -> bool:
    """Whether a file begins with the header of a table of jobs.

    >>> is_jobs_csv(b"duration,input_size,sources\\n"), is_jobs_csv(b"name = 1")
    (True, False)
    """
    first = head.lstrip().split(b"\n", 1)[0].decode("ascii", "replace").lower()
    columns = [column.strip() for column in first.split(",")]
    return "duration" in columns and any(mark in columns for mark in _MARKS)


def read_jobs(path: str | Path) -> Program:
    """Read a table of jobs: O(bytes)."""
    where = str(path)
    try:
        text = read_file(path, limit=MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFile(f"not UTF-8 text: byte {error.start}", where=where, hint="save it as UTF-8") from None
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    program = Program(Path(path).name.partition(".")[0] or "jobs")
    columns: list[str] = []
    number = 0
    try:
        for line in rows:
            if not any(cell.strip() for cell in line):
                continue
            if not columns:
                columns = _columns(line)
                continue
            number += 1
            if number > MAX_JOBS:
                raise BadFile(f"more than {MAX_JOBS} jobs", hint="split it")
            _add_job(program, dict(zip(columns, line, strict=False)), len(line), len(columns), number)
    except csv.Error as error:
        raise BadFile(
            f"not valid CSV: {error}", where=f"{where}: line {rows.line_num}", hint="fix that line"
        ) from None
    except HeadraceError as error:
        raise error.at(f"{where}: line {rows.line_num}") from None
    if not number:
        raise BadFile(
            "there are no jobs",
            where=where,
            hint=f"give a header such as {','.join(KNOWN)} and one row per job",
        )
    return program


def write_jobs(program: Program, path: str | Path) -> None:
    """Write a program of independent jobs as a table that `read_jobs` reads back."""
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(KNOWN)
    for task in program.tasks.values():
        if task.after or any(name in program.producer for name in task.inputs) or len(task.outputs) > 1:
            raise BadProgram(
                f"task {task.name!r} reads the output of another task, or has several outputs",
                where=str(path),
                hint="write WfFormat instead",
            )
        if task.arch_speeds:
            raise BadProgram(
                f"task {task.name!r} has several run times, one for each architecture",
                where=str(path),
                hint="write PST or WfFormat instead",
            )
        inputs = [program.data[name] for name in task.inputs]
        output = program.data[task.outputs[0]]
        table.writerow(
            (
                task.name,
                task.kind,
                repr(task.work),
                ";".join(item.name for item in inputs),
                ";".join(_written(item.size) for item in inputs),
                ";".join("|".join(item.initial_locations) for item in inputs),
                _written(output.size),
                "|".join(output.destinations),
                task.cores,
                repr(task.memory) if task.memory else "",
                write_resources(task.resources, str(path)),
                repr(task.release),
                repr(task.deadline) if math.isfinite(task.deadline) else "",
            )
        )
    write_file(path, encode_text(out.getvalue(), str(path)))


def _columns(line: list[str]) -> list[str]:
    columns = [cell.strip().lower() for cell in line]
    if not set(columns) & set(KNOWN):
        raise BadFile(
            f"the first line {shorten(','.join(line))} has no names of columns",
            hint=f"begin with a header such as duration,input_size,sources; the columns are {', '.join(KNOWN)}",
        )
    for column in columns:
        if column not in KNOWN:
            raise BadFile(f"unknown column {shorten(column)}", hint=f"the columns are {', '.join(KNOWN)}")
    for column in NEEDED:
        if column not in columns:
            raise BadFile(f"column {column!r} is missing", hint="add it")
    if len(set(columns)) < len(columns):
        raise BadFile("a column appears twice", hint="remove one")
    return columns


def _add_job(program: Program, row: dict[str, str], cells: int, columns: int, number: int) -> None:
    if cells != columns:
        raise BadFile(f"{cells} cells for {columns} columns", hint="give every row one cell per column")
    cell = {key: value.strip() for key, value in row.items()}
    name = cell.get("name") or f"job{number}"
    made = program.task(
        None,
        inputs=_inputs(program, cell, name),
        outputs={f"{name}.out": _size(cell.get("output_size", ""), "output_size")},
        work=_amount(cell["duration"], "time", "duration", needed=True),
        name=name,
        kind=cell.get("kind", ""),
        cores=_whole(cell.get("cores", "")),
        memory=_amount(cell.get("memory", ""), "size", "memory"),
        resources=read_resources(cell.get("resources", "")),
        release=_amount(cell.get("release", ""), "time", "release"),
        deadline=_amount(cell["deadline"], "time", "deadline") if cell.get("deadline") else math.inf,
    )
    destinations = _names(cell.get("destinations", ""), "|")
    if destinations:
        program.output(made, sites=destinations)


def _inputs(program: Program, cell: dict[str, str], job: str) -> list[str]:
    """Declare the inputs that are new; returns the names of all."""
    sizes = _names(cell.get("input_size", ""), ";")
    names = _names(cell.get("input", ""), ";")
    sources = [part.strip() for part in cell.get("sources", "").split(";")]
    count = max(len(sizes), len(names))
    if count > MAX_INPUTS:
        raise BadFile(f"{count} inputs, more than {MAX_INPUTS}", hint="combine some of them")
    names = names or [f"{job}.in" if count == 1 else f"{job}.in{k + 1}" for k in range(count)]
    if len(names) != count or (sizes and len(sizes) not in (1, count)) or len(sources) not in (1, count):
        raise BadFile(
            f"{len(names)} inputs, {len(sizes)} sizes and {len(sources)} lists of sources",
            hint="give one of each per input, separated by ;",
        )
    for k, item in enumerate(names):
        size = _size(sizes[k if len(sizes) > 1 else 0] if sizes else "", "input_size")
        initial_locations = tuple(_names(sources[k if len(sources) > 1 else 0], "|"))
        if item not in program.data:
            program.input(item, size=size, sites=initial_locations)
        elif program.data[item].size != size or program.data[item].initial_locations != initial_locations:
            raise BadProgram(
                f"file {shorten(item)} has a different size or different sources than in an earlier row",
                hint="give a shared file the same size and sources in every row",
            )
    return names


def _names(text: str, mark: str) -> list[str]:
    return [part.strip() for part in text.split(mark) if part.strip()]


def _size(text: str, column: str) -> float | None:
    return None if text == UNKNOWN else _amount(text, "size", column)


def _written(size: float | None) -> str:
    return UNKNOWN if size is None else repr(size)


def _amount(text: str, what: str, column: str, *, needed: bool = False) -> float:
    if not text and not needed:
        return 0.0
    try:
        value = quantity(text, what)
    except HeadraceError as error:
        raise BadFile(f"{column}: {error.problem}", hint=error.hint) from None
    if value > MAX_NUMBER:
        raise BadFile(f"{column} is {value}", hint=f"give at most {MAX_NUMBER:g}")
    return value


def _whole(text: str) -> int:
    if not text:
        return 1
    if not text.isdecimal() or not 1 <= len(text) <= 7 or int(text) < 1:
        raise BadFile(f"cores is {shorten(text)}", hint="give a whole number of 1 or more")
    return int(text)


FORMATS = (
    Format(
        "csv",
        "program",
        "a table of independent jobs",
        suffixes=(".csv",),
        sniff=is_jobs_csv,
        read=read_jobs,
        write=write_jobs,
    ),
)
