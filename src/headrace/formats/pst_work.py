"""PST application descriptions: files and tasks with real and estimated sizes and run times."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from headrace.formats.files import encode_text, write_file
from headrace.formats.format import Format
from headrace.formats.pst import Line, header, pst_kind, read_lines, written
from headrace.formats.shapes import shorten
from headrace.model.architecture import arch_speeds, speed_classes
from headrace.model.errors import BadFile, BadProgram
from headrace.model.graph import Graph
from headrace.model.program import Program

MAX_BYTES = 2**28
MAX_TASKS = 1_000_000
MAX_FILES = 4_000_000
MAX_ARCHITECTURES = 1_000
_FILE_FORM = "File: <id> <name> <real size> <estimated size>"
_WORK_FORM = "Work: <id> <n : inputs> <n : outputs> <n : run times> <n : estimated run times>"


@dataclass
class _Read:
    """The files and tasks read so far, by id."""

    files: dict[int, tuple[str, float, float]] = field(default_factory=dict)
    works: dict[int, _Work] = field(default_factory=dict)
    writer: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Work:
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    real: tuple[float, tuple[float, ...]]
    """Work, and the speed on each architecture."""
    estimated: tuple[float, ...]
    """Seconds on each architecture."""


def read_work(path: str | Path) -> Program:
    """Read an application: O(bytes). Estimates make the program, real values its `reality`.

    All tasks are of one kind, named after the application: they run the same program. An estimated size of 0 of a file
    that is not empty means that its size is unknown.
    Files that a task writes are results. Tasks are named work0, work1, ...; items are named after their files, with
    the id where names repeat.
    """
    lines = read_lines(path, MAX_BYTES)
    first, rest = header(lines, "work", path)
    if len(rest) != 2:
        raise first.wrong(
            f"{len(rest)} numbers after the version", "begin with WorkDescription 1 FILES TASKS"
        )
    n_files = first.whole(rest[0], "the number of files", MAX_FILES)
    n_tasks = first.whole(rest[1], "the number of tasks", MAX_TASKS)
    got = _Read()
    for line in lines:
        word, colon, fields = line.text.partition(":")
        if not colon or word not in ("File", "Work"):
            raise line.wrong(f"{shorten(line.text, 40)}", f"write {_FILE_FORM} or {_WORK_FORM}")
        if word == "File":
            _file(line, line.fields(fields.strip()), n_files, got)
        else:
            _work(line, line.fields(fields.strip()), n_tasks, got)
    for what, count, found in (("files", n_files, got.files), ("tasks", n_tasks, got.works)):
        if len(found) != count:
            raise first.wrong(
                f"declares {count} {what} and has {len(found)}", "correct the counts in the first line"
            )
    return _program(got, Path(path).name.partition(".")[0] or "sweep")


def _file(line: Line, fields: list[str], count: int, got: _Read) -> None:
    if len(fields) != 4:
        raise line.wrong(f"{len(fields)} fields", f"write {_FILE_FORM}")
    number = _id(line, fields[0], count, "file")
    if number in got.files:
        raise line.wrong(f"file id {number} is used twice", "give each file its own id")
    got.files[number] = (
        line.name(fields[1], "the name"),
        line.number_in(fields[2], "the real size"),
        line.number_in(fields[3], "the estimated size"),
    )


def _work(line: Line, fields: list[str], count: int, got: _Read) -> None:
    if len(fields) != 5:
        raise line.wrong(f"{len(fields)} fields", f"write {_WORK_FORM}")
    number = _id(line, fields[0], count, "task")
    if number in got.works:
        raise line.wrong(f"task id {number} is used twice", "give each task its own id")
    inputs, outputs = (
        tuple(_known(line, text, got) for text in _list(line, fields[k], what))
        for k, what in ((1, "inputs"), (2, "outputs"))
    )
    for out in outputs:
        if got.writer.setdefault(out, number) != number or outputs.count(out) > 1:
            raise line.wrong(f"file {out} is written twice", "a file can have only one writer")
        if out in inputs:
            raise line.wrong(f"file {out} is read and written by task {number}", "give the output its own id")
    real, estimated = _times(line, fields[3], "run times"), _times(line, fields[4], "estimated run times")
    if len(real) != len(estimated):
        raise line.wrong(
            f"{len(real)} run times and {len(estimated)} estimated ones", "give both for every architecture"
        )
    try:
        _ = arch_speeds(estimated)
        got.works[number] = _Work(inputs, outputs, arch_speeds(real), tuple(estimated))
    except BadProgram as error:
        raise line.wrong(error.problem, error.hint) from None


def _id(line: Line, text: str, count: int, what: str) -> int:
    number = line.whole(text, f"the id of the {what}")
    if number >= count:
        raise line.wrong(f"the id of the {what} is {number}", f"ids range from 0 to {count - 1}")
    return number


def _list(line: Line, text: str, what: str) -> list[str]:
    """The values of <n : a b c>."""
    count, colon, rest = text.partition(":")
    values = rest.split()
    if not colon or line.whole(count.strip(), f"the number of {what}") != len(values):
        raise line.wrong(f"{what} are {shorten(text, 40)}", "write <n : ...> with n values after the colon")
    return values


def _known(line: Line, text: str, got: _Read) -> int:
    number = line.whole(text, "the id of a file")
    if number not in got.files:
        raise line.wrong(
            f"file {number} is not declared before this line", "declare files before tasks use them"
        )
    return number


def _times(line: Line, text: str, what: str) -> list[float]:
    values = _list(line, text, what)
    if not 0 < len(values) <= MAX_ARCHITECTURES:
        raise line.wrong(f"{len(values)} {what}", f"give 1 to {MAX_ARCHITECTURES}, one per architecture")
    return [line.number_in(value, "a run time") for value in values]


def _program(got: _Read, name: str) -> Program:
    used = Counter(file for file, _, _ in got.files.values())
    taken = set(used)
    names: dict[int, str] = {}
    for i, (file, _, _) in sorted(got.files.items()):
        names[i] = file if used[file] == 1 else _free(f"{file}#{i}", taken)
    program = Program(name)
    size = {i: None if estimated == 0 < real else estimated for i, (_, real, estimated) in got.files.items()}
    for i in sorted(set(got.files) - set(got.writer)):
        program.input(names[i], size=size[i])
    for t, work in sorted(got.works.items()):
        made = {names[i]: size[i] for i in work.outputs}
        program.task(
            name=f"work{t}",
            inputs=[names[i] for i in work.inputs],
            outputs=made,
            work=work.estimated,
            kind=name,
        )
        for item in made:
            program.output(item)
    program.reality = _reality(program.graph, got, {names[i]: got.files[i][1] for i in names})
    return program


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _reality(graph: Graph, got: _Read, real_size: dict[str, float]) -> Graph | None:
    """The same graph with real sizes and run times; None if the estimates are exact."""
    works = [got.works[t] for t in sorted(got.works)]
    work = np.array([work.real[0] for work in works], np.float64)
    size = np.array([real_size.get(name, 0.0) for name in graph.item_names], np.float64)
    right = all(work.real == arch_speeds(work.estimated) for work in works)
    if right and np.array_equal(size, graph.size) and not graph.unknown_size.any():
        return None
    classes = speed_classes(graph.kind.tolist(), [work.real[1] for work in works])
    return replace(graph.with_size(size), work=work, **({} if classes is None else classes._asdict()))


def write_work(program: Program, path: str | Path) -> None:
    """Write a program: O(tasks + items). Numbers have 15 digits.

    This format cannot express orderings without data (`after`), and has no kinds. Run times are written for as many
    architectures as the tasks have, or for one if they have none. An unknown size is written as an estimate of 0.
    """
    real, graph = program.real, program.graph
    archs = max(1, graph.arch_speeds.shape[1], real.arch_speeds.shape[1])
    _require_plain(program, str(path))
    files, lines = _file_lines(program)
    for t, task in enumerate(program.tasks.values()):
        if task.after or any(name not in files for name in task.inputs):
            raise BadFile(
                f"task {task.name!r} must run after a task whose output it does not read",
                where=str(path),
                hint="write WfFormat instead, which can express that",
            )
        made = [name for name in task.outputs if name in files]
        lines.append(
            f"Work: <{t}> {_ids([files[n] for n in dict.fromkeys(task.inputs)])} {_ids([files[n] for n in made])} "
            f"{_seconds(real, t, archs)} {_seconds(graph, t, archs)}"
        )
    lines.insert(0, f"WorkDescription 1 {len(files)} {len(program.tasks)}")
    write_file(path, encode_text("\n".join(lines) + "\n", str(path)))


def _require_plain(program: Program, where: str) -> None:
    """Refuse constraints that this format cannot express."""
    for task in program.tasks.values():
        needs = task.cores != 1 or task.memory > 0 or task.resources
        if needs or task.release > 0 or task.deadline < math.inf:
            raise BadFile(
                f"task {task.name!r} has cores, memory, resources, a release time or a deadline",
                where=where,
                hint="write WfFormat instead, or remove them",
            )
    for item in program.data.values():
        if item.initial_locations or item.destinations:
            raise BadFile(
                f"item {item.name!r} has its own location or destination",
                where=where,
                hint="write WfFormat instead: here inputs come from the origin and outputs return to it",
            )


def _file_lines(program: Program) -> tuple[dict[str, int], list[str]]:
    """Ids of the items that are files, and their lines; an empty item without readers is not a file."""
    read = {name for task in program.tasks.values() for name in task.inputs}
    files: dict[str, int] = {}
    lines: list[str] = []
    sizes = zip(program.data.values(), program.real.size.tolist(), strict=False)
    for item, real_size in sizes:
        if item.size == 0 and real_size == 0 and item.name in program.producer and item.name not in read:
            continue
        if set(item.name) & set("<>\n"):
            raise BadFile(f"the name {item.name!r} cannot be written", hint="use names without < and >")
        files[item.name] = len(files)
        lines.append(
            f"File: <{files[item.name]}> <{item.name}> <{written(real_size)}> <{written(item.size or 0.0)}>"
        )
    return files, lines


def _ids(numbers: list[int]) -> str:
    return f"<{len(numbers)} : {' '.join(map(str, numbers))}>"


def _seconds(graph: Graph, task: int, archs: int) -> str:
    row = graph.arch_speeds[graph.speed_class[task]]
    speeds = row[~np.isnan(row)].tolist() or [1.0] * archs
    times = (written(float(graph.work[task]) / speed) for speed in speeds)
    return f"<{len(speeds)} : {' '.join(times)}>"


def _is_work(head: bytes) -> bool:
    return pst_kind(head) == "work"


FORMATS = (
    Format(
        "pst",
        "program",
        "a PST application description",
        suffixes=(".pst",),
        sniff=_is_work,
        read=read_work,
        write=write_work,
    ),
)
