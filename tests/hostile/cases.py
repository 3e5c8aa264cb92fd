"""Hostile files: each must give one typed error that names the value and the place.

A case builds its files in a fresh folder: a program, a platform, or program, platform and plan. The bad file
comes last. Large ones are made here rather than kept.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.model.errors import BadFile, BadPlan, BadPlatform, BadProgram, HeadraceError


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    """program, platform or plan"""
    build: Callable[[Path], list[Path]]
    expect: tuple[str, ...]
    """Parts of the message: the value and the place."""
    error: type[HeadraceError]


CASES: list[Case] = []

GOOD: dict[str, Any] = {
    "name": "good",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"name": "a", "id": "a", "parents": [], "children": ["b"], "outputFiles": ["f"]},
                {"name": "b", "id": "b", "parents": ["a"], "children": [], "inputFiles": ["f"]},
            ],
            "files": [{"id": "f", "sizeInBytes": 10}],
        },
        "execution": {
            "makespanInSeconds": 3,
            "executedAt": "2024-01-01T00:00:00Z",
            "tasks": [{"id": "a", "runtimeInSeconds": 1}, {"id": "b", "runtimeInSeconds": 2}],
        },
    },
}
FLAT: dict[str, Any] = {
    "name": "flat",
    "schemaVersion": "1.4",
    "workflow": {
        "tasks": [
            {
                "name": "a",
                "type": "compute",
                "runtimeInSeconds": 1,
                "files": [{"link": "output", "name": "f", "sizeInBytes": 1}],
            },
            {
                "name": "b",
                "type": "compute",
                "runtimeInSeconds": 1,
                "parents": ["a"],
                "files": [{"link": "input", "name": "f", "sizeInBytes": 1}],
            },
        ]
    },
}
LAB = (
    '[[site]]\nname = "s"\nbandwidth = 100\n[[site.host]]\nname = "h"\ncores = 2\n[[site.host]]\nname = "g"\n'
)
PLAN: dict[str, Any] = {
    "format": "headrace-plan-1",
    "scheduler": "by hand",
    "tasks": [
        {"id": "a", "host": "h", "start": 0, "finish": 1},
        {"id": "b", "host": "h", "start": 1, "finish": 3},
    ],
    "transfers": [],
}


def as_json(document: Any) -> bytes:
    return json.dumps(document).encode()


def _file(name: str, data: bytes | Callable[[], bytes]) -> Callable[[Path], list[Path]]:
    def build(folder: Path) -> list[Path]:
        path = folder / name
        path.write_bytes(data if isinstance(data, bytes) else data())
        return [path]

    return build


def _changed(document: dict[str, Any], at: str, value: Any) -> dict[str, Any]:
    """A copy with one value replaced; `at` is like workflow/tasks/0/name."""
    copy = deepcopy(document)
    *way, last = [int(step) if step.isdigit() else step for step in at.split("/")]
    inner: Any = copy
    for step in way:
        inner = inner[step]
    inner[last] = value
    return copy


def program(
    name: str, data: bytes | Callable[[], bytes], *expect: str, error: type[HeadraceError] = BadFile
) -> None:
    CASES.append(Case(name, "program", _file("hostile.json", data), expect, error))


def change(name: str, at: str, value: Any, *expect: str, error: type[HeadraceError] = BadFile) -> None:
    program(name, as_json(_changed(GOOD, at, value)), *expect, error=error)


def flat(name: str, at: str, value: Any, *expect: str, error: type[HeadraceError] = BadFile) -> None:
    program(name, as_json(_changed(FLAT, at, value)), *expect, error=error)


def special(name: str, build: Callable[[Path], list[Path]], *expect: str) -> None:
    CASES.append(Case(name, "program", build, expect, BadFile))


def platform(name: str, data: bytes | str, *expect: str, error: type[HeadraceError] = BadPlatform) -> None:
    raw = data.encode() if isinstance(data, str) else data
    CASES.append(Case(name, "platform", _file("hostile.toml", raw), expect, error))


def plan(name: str, at: str, value: Any, *expect: str, error: type[HeadraceError] = BadPlan) -> None:
    document = as_json(_changed(PLAN, at, value))

    def build(folder: Path) -> list[Path]:
        files = [folder / "good.json", folder / "good.toml", folder / "hostile.plan"]
        for path, data in zip(files, (as_json(GOOD), LAB.encode(), document), strict=True):
            path.write_bytes(data)
        return files

    CASES.append(Case(name, "plan", build, expect, error))


def _bomb(text: bytes, times: int) -> Callable[[], bytes]:
    return lambda: gzip.compress(b'{"workflow": [' + text * times)


def _fifo(folder: Path) -> list[Path]:
    os.mkfifo(folder / "hostile.json")
    return [folder / "hostile.json"]


def _folder(folder: Path) -> list[Path]:
    (folder / "hostile.json").mkdir()
    return [folder / "hostile.json"]


def _loop(folder: Path) -> list[Path]:
    (folder / "hostile.json").symlink_to(folder / "other.json")
    (folder / "other.json").symlink_to(folder / "hostile.json")
    return [folder / "hostile.json"]


def _dangling(folder: Path) -> list[Path]:
    (folder / "hostile.json").symlink_to(folder / ".." / ".." / "no such file")
    return [folder / "hostile.json"]


TASKS = "workflow.specification.tasks"
RUNS = "workflow.execution.tasks"
_PACKED = gzip.compress(as_json(GOOD))

# Files that are not what they seem
special("missing file", lambda folder: [folder / "hostile.json"], "cannot be opened", "No such file")
special("directory", _folder, "is a directory")
special("pipe that nobody writes to", _fifo, "pipe")
special("endless device", lambda folder: [Path("/dev/zero")], "/dev/zero", "device")
special("symbolic links in a circle", _loop, "cannot be opened")
special("symbolic link to nothing", _dangling, "cannot be opened", "No such file")
program("empty file", b"", "hostile.json")
program("gzip cut short", _PACKED[:-20], "truncated", str(len(_PACKED) - 20))
program("gzip of only a header", _PACKED[:5], "truncated")
program("gzip with a flipped byte", _PACKED[:30] + b"\xff\xff\xff" + _PACKED[33:], "gzip data is corrupt")
program("gzip with a wrong checksum", _PACKED[:-8] + bytes(8), "gzip data is corrupt", "check")
program("gzip bomb of blanks", _bomb(b" " * 1_000_000, 100), "more than 200 times")
program("gzip bomb of thirty million tasks", _bomb(b"{}," * 1_000_000, 30), "more than 200 times")

# JSON that is broken
program("deep nesting of lists", b'{"workflow":' + b"[" * 100_000, "recursion limit", "line 1")
program("deep nesting of objects", b'{"a":' * 100_000, "recursion limit", "line 1")
program("invalid UTF-8", b'{"name": "\xff\xfe", "workflow": {}}', "not valid JSON", "line 1 column 11")
program("half of a surrogate pair", b'{"name": "\\ud800"}', "not valid JSON", "line 1")
program("text that ends in the middle", as_json(GOOD)[:100], "not valid JSON", "EOF", "line 1 column 100")
program("a comma too many", b'{"schemaVersion": "1.5",\n}', "not valid JSON", "line 2 column 1")
program("a number of 5000 digits", b'{"schemaVersion": ' + b"9" * 5000 + b"}", "not valid JSON", "line 1")
program("JSON list", b"[1, 2, 3]", "the document is a list of 3")

# Shapes that are wrong
change("unknown schema version", "schemaVersion", "9.9", "schemaVersion is '9.9'", "1.5")
change("version that is a number", "schemaVersion", 1.5, "schemaVersion is 1.5")
change("workflow that is text", "workflow", "x" * 10_000, "workflow is 'xxx")
change("workflow without tasks", "workflow", {}, "there are no tasks", "workflow", error=BadProgram)
change("tasks that are an object", "workflow/specification/tasks", {"a": 1}, f"{TASKS} is an object of 1")
change("a task that is null", "workflow/specification/tasks/1", None, f"{TASKS}[1] is None")
change("an id that is a number", "workflow/specification/tasks/1/id", 7, f"{TASKS}[1].id is 7")
change("an id that is empty", "workflow/specification/tasks/0/id", "", f"{TASKS}[0].id is ''")
change(
    "a file name that is a list", "workflow/specification/tasks/1/inputFiles", ["f", ["f"]], "inputFiles[1]"
)
change("no run times at all", "workflow/execution", None, "workflow.execution is missing", error=BadProgram)
change("an endless id", "workflow/specification/tasks/0/id", "x" * 5000, f"{TASKS}[0].id is 'xxx", "4096")

# Numbers that are none
_SIZE = "workflow/specification/files/0/sizeInBytes"
_TIME = "workflow/execution/tasks/1/runtimeInSeconds"
change("negative size", _SIZE, -1, "files[0].sizeInBytes is -1")
change("size that is NaN", _SIZE, float("nan"), "files[0].sizeInBytes is nan")
change("infinite size", _SIZE, float("inf"), "files[0].sizeInBytes is inf")
change("absurd size", _SIZE, 10**19, "files[0].sizeInBytes is 10000000000000000000")
change("size beyond every float", _SIZE, 10**400, "files[0].sizeInBytes is 1000")
change("size as text", _SIZE, "10", "files[0].sizeInBytes is '10'")
change("size that is true", _SIZE, True, "files[0].sizeInBytes is True")
change("missing size", "workflow/specification/files/0", {"id": "f"}, "files[0].sizeInBytes is missing")
change("negative run time", _TIME, -0.5, f"{RUNS}[1].runtimeInSeconds is -0.5")
change("absurd run time", _TIME, 1e300, f"{RUNS}[1].runtimeInSeconds is 1e+300")
program(
    "run time that overflows",
    as_json(_changed(GOOD, _TIME, 1)).replace(b'"runtimeInSeconds": 1}]', b'"runtimeInSeconds": 1e999}]'),
    f"{RUNS}[1].runtimeInSeconds is inf",
)

# Programs that contradict themselves
_AT = "workflow/specification/tasks"
change("two tasks of one id", f"{_AT}/1/id", "a", f"{TASKS}[1].id", "'a'", error=BadProgram)
change(
    "two files of one id",
    "workflow/specification/files",
    [{"id": "f", "sizeInBytes": 1}, {"id": "f", "sizeInBytes": 2}],
    "files[1].id",
    "two files are called 'f'",
    error=BadProgram,
)
change("unknown parent", f"{_AT}/1/parents", ["a", "zz"], f"{TASKS}[1].parents[1]", "'zz'", error=BadProgram)
change("unknown child", f"{_AT}/0/children", ["yy"], f"{TASKS}[0].children[0]", "'yy'", error=BadProgram)
change("unknown input", f"{_AT}/1/inputFiles", ["g"], f"{TASKS}[1].inputFiles[0]", "'g'", error=BadProgram)
change(
    "unknown output with a hostile name",
    f"{_AT}/1/outputFiles",
    ["; rm -rf $HOME #"],
    f"{TASKS}[1].outputFiles[0]",
    "; rm -rf $HOME #",
    error=BadProgram,
)
change(
    "a file with two writers",
    f"{_AT}/1/outputFiles",
    ["f"],
    "'f' is written by 'a' and by 'b'",
    error=BadProgram,
)
change("a task that reads what it writes", f"{_AT}/0/inputFiles", ["f"], "'a' reads 'f'", error=BadProgram)
change("a task before itself", f"{_AT}/0/parents", ["a"], "circle: a -> a", error=BadProgram)
change("a circle of two tasks", f"{_AT}/0/parents", ["b"], "circle", "a -> b", error=BadProgram)
change(
    "run time of an unknown task",
    "workflow/execution/tasks/1/id",
    "q",
    f"{RUNS}[1].id",
    "'q'",
    error=BadProgram,
)
change(
    "two run times of one task",
    "workflow/execution/tasks/1/id",
    "a",
    f"{RUNS}[1].id",
    "two tasks are called 'a'",
    error=BadProgram,
)
change(
    "a task without a run time",
    "workflow/execution/tasks",
    [{"id": "a", "runtimeInSeconds": 1}],
    f"{TASKS}[1]",
    "'b' has no run time",
    error=BadProgram,
)


def _long_circle() -> bytes:
    n = 20_000
    document = deepcopy(GOOD)
    tasks = [{"id": f"t{i}", "parents": [f"t{(i - 1) % n}"], "children": []} for i in range(n)]
    document["workflow"]["specification"]["tasks"] = tasks
    document["workflow"]["execution"]["tasks"] = [{"id": f"t{i}", "runtimeInSeconds": 1} for i in range(n)]
    return as_json(document)


program("a circle of 20,000 tasks", _long_circle, "circle", "...", error=BadProgram)

# The older layout
flat(
    "link that is neither",
    "workflow/tasks/0/files/0/link",
    "inout",
    "workflow.tasks[0].files[0].link",
    "'inout'",
)
flat(
    "1.4: size missing",
    "workflow/tasks/1/files/0",
    {"link": "input", "name": "f"},
    "tasks[1].files[0].sizeInBytes",
)
flat("1.4: two tasks of one name", "workflow/tasks/1/name", "a", "workflow.tasks[1]", "'a'", error=BadProgram)
flat(
    "1.4: unknown parent",
    "workflow/tasks/1/parents",
    ["c"],
    "workflow.tasks[1].parents[0]",
    "'c'",
    error=BadProgram,
)
flat(
    "1.4: no run time",
    "workflow/tasks/1/runtimeInSeconds",
    None,
    "workflow.tasks[1]",
    "'b'",
    error=BadProgram,
)

# Platforms
platform("TOML that is broken", '[[host]]\nname = "a\n', "not valid TOML", "line 2", error=BadFile)
platform("TOML that is not UTF-8", b'[[host]]\nname = "\xff"\n', "0xff", "line 2", error=BadFile)
platform("TOML nested too deep", "name = " + "[" * 100_000, "nested too deep", error=BadFile)
platform("TOML with an endless dotted key", "a." * 50_000 + "a = 1\n", "dotted key in line 1", error=BadFile)
platform("TOML with a key twice", 'name = "a"\nname = "b"\n', "not valid TOML", "line 2", error=BadFile)
platform(
    "a thousand million hosts", '[[host]]\nname = "n"\ncount = 1000000000\n', "'n'", "count = 1000000000"
)
platform("count beyond all numbers", f'[[host]]\nname = "n"\ncount = 1{"0" * 50}\n', "'n'", "count is 1000")
platform("negative count", '[[host]]\nname = "n"\ncount = -3\n', "'n'", "count is -3")
platform(
    "counts that add up",
    '[[host]]\nname = "a"\ncount = 60000\n[[host]]\nname = "b"\ncount = 60000\n',
    "120000",
)
platform("too many pairs", '[[host]]\nname = "n"\ncount = 5000\n[pairs]\nbandwidth = 1\n', "5000", "2000")
platform("no host", 'name = "bare"\n', "there is no host", "bare")
platform("negative speed", '[[host]]\nname = "n"\nspeed = -1\n', "'n'", "speed is -1")
platform("speed that is NaN", '[[host]]\nname = "n"\nspeed = nan\n', "'n'", "speed is nan")
platform("speed as text", '[[host]]\nname = "n"\nspeed = "fast"\n', "'n'", "speed is 'fast'")
platform("no cores", '[[host]]\nname = "n"\ncores = 0\n', "'n'", "cores is 0")
platform("all load", '[[host]]\nname = "n"\nload = 1.0\n', "'n'", "load is 1.0")
platform("unknown key", '[[host]]\nname = "n"\nsped = 2\n', "'n'", "unknown key 'sped' (try: speed)")
platform("unknown unit", LAB.replace("100", '"100 parsec"'), "'s'", "bandwidth", "parsec")
platform(
    "trace outside of the folder",
    '[[host]]\nname = "n"\ntrace = "../n.trace"\n',
    "'n'",
    "../n.trace",
    "outside",
    error=BadFile,
)
platform(
    "trace that is not there", '[[host]]\nname = "n"\ntrace = "n.trace"\n', "'n'", "n.trace", error=BadFile
)
platform("two hosts of one name", '[[host]]\nname = "n"\n[[host]]\nname = "n"\n', "'n' is used 2 times")
platform("a host without a name", "[[host]]\nspeed = 1\n", "[[host]] number 1", "name is missing")
platform("hosts that are a table", '[host]\nname = "n"\n', "host is an object of 1", "[[host]]")
platform(
    "link to nowhere",
    LAB + '[[link]]\nfrom = "s"\nto = "mars"\nbandwidth = 1\n',
    "'s' -> 'mars'",
    "no site 'mars'",
)
platform("no route", LAB + '[[site]]\nname = "island"\n', "no route", "'s' and 'island'")
platform("unknown origin", 'origin = "moon"\n' + LAB, "origin 'moon'")
platform("unknown contention", 'contention = "rude"\n' + LAB, "contention is 'rude'")
platform(
    "pairs of the wrong size",
    '[[host]]\nname = "n"\ncount = 2\n[pairs]\nbandwidth = [[1, 2]]\n',
    "1 rows for 2",
)
platform(
    "pairs without bandwidth", '[[host]]\nname = "n"\ncount = 2\n[pairs]\nbandwidth = 0\n', "bandwidth", "0.0"
)

# Plans
plan("unknown format", "format", "headrace-plan-99", "format is 'headrace-plan-99'", error=BadFile)
plan("unknown task", "tasks/1/id", "zz", "tasks[1].id", "'zz'")
plan("unknown host", "tasks/1/host", "mars", "tasks[1].host", "'mars'")
plan("task that is there twice", "tasks/1/id", "a", "tasks[1]", "'a' appears twice")
plan("task that is missing", "tasks", PLAN["tasks"][:1], "tasks", "such as 'b'")
plan("core that does not exist", "tasks/1/core", 2, "tasks[1].core", "no core 2 on host 'h'")
plan("core that is negative", "tasks/1/core", -1, "tasks[1].core is -1", error=BadFile)
plan("finish before start", "tasks/1/finish", 0.5, "tasks[1]", "finish 0.5 is before start 1.0")
plan("start that is NaN", "tasks/0/start", float("nan"), "tasks[0].start is nan", error=BadFile)
plan("start before time", "tasks/0/start", -5, "tasks[0].start is -5", error=BadFile)
plan(
    "two tasks on one core",
    "tasks",
    [{"id": "a", "host": "g", "start": 0, "finish": 2}, {"id": "b", "host": "g", "start": 1.5, "finish": 3}],
    "'b' starts at 1.5 on host 'g'",
    "1 cores are all busy",
)
plan(
    "transfer of unknown data",
    "transfers",
    [{"data": "x", "from": "h", "to": "g", "start": 0, "finish": 1}],
    "transfers[0].data",
    "'x'",
)
plan(
    "transfer from nowhere",
    "transfers",
    [{"data": "f", "from": "moon", "to": "g", "start": 0, "finish": 1}],
    "transfers[0].from",
    "'moon'",
)
plan(
    "transfer without an end",
    "transfers",
    [{"data": "f", "from": "h", "to": "g", "start": 0}],
    "transfers[0].finish is missing",
    error=BadFile,
)
