"""Experiments as TOML: a program, what is substituted in it, and how substitutions are combined.

The file is untrusted as far as this module goes: nothing is executed. Python files that it names are executed when the
experiment is quoted or run; they must lie in its folder or below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from headrace.formats.experiment_values import Scalar, Values, read_values
from headrace.formats.files import read_file
from headrace.formats.format import Format
from headrace.formats.shapes import shorten
from headrace.formats.tables import Table
from headrace.formats.toml_text import parse_toml
from headrace.model.arguments import checked_path

MAX_BYTES = 4_000_000
MAX_SUBSTITUTED = 1_000
"""Tasks, inputs and parameters that are varied."""
Mode: TypeAlias = Literal["product", "zip", "groups"]
_EXPERIMENT = re.compile(rb"""^[ \t]*(?:program[ \t]*=|\[[ \t]*sweep[ \t]*\])""", re.MULTILINE)
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\]{1,120}\Z")
_TOP = [
    "name",
    "program",
    "replace",
    "set",
    "combine",
    "sweep",
    "packages",
    "environment",
    "versions",
    "platform",
]
_SWEEP = ["name", "command", "inputs", "outputs", "stdout", "work", "results"]


@dataclass(frozen=True)
class Substitution:
    """What takes the place of a task, an input or a parameter.

    `parameter` is the parameter of the task that is set; "" if the whole is replaced. `labels` are the names of the
    alternatives, if the file gives them.
    """

    target: str
    parameter: str
    values: Values
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class CommandSweep:
    """A program of one command that is executed for each point."""

    name: str
    command: tuple[str, ...]
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Files by item; `{parameter}` in a path makes it a file of each point."""
    outputs: tuple[str, ...] = ()
    stdout: str | None = None
    work: float = 1.0
    results: Mapping[str, str] = field(default_factory=dict)
    """Functions (`file.py:name`) by result: each reads the outputs and returns a value."""


@dataclass(frozen=True)
class ExperimentFile:
    """What an experiment file says."""

    path: Path
    name: str
    program: str
    """`file.py:name` or a file; "" if `sweep` is given."""
    substitutions: tuple[Substitution, ...]
    mode: Mode = "product"
    groups: tuple[tuple[str, ...], ...] = ()
    excepted: tuple[str, ...] = ()
    """Conditions; combinations for which one holds are left out."""
    sweep: CommandSweep | None = None
    packages: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    versions: Mapping[str, Scalar] = field(default_factory=dict)
    platform: bool = False


def read_experiment(path: str | Path) -> ExperimentFile:
    """Read and validate an experiment file: O(bytes + values)."""
    where = str(checked_path(path, "experiment"))
    top = Table(parse_toml(read_file(path, limit=MAX_BYTES), where), where)
    top.require_known(_TOP)
    substitutions = (*_replacements(top), *_settings(top))
    if len(substitutions) > MAX_SUBSTITUTED:
        raise top.wrong(f"{len(substitutions)} substitutions", f"at most {MAX_SUBSTITUTED}")
    program = top.text("program", "")
    sweep = _sweep(top)
    if bool(program) == (sweep is not None):
        raise top.wrong(
            "both a program and [sweep]" if program else "there is no program",
            'give one of program = "file.py:name" and [sweep] with a command',
        )
    mode, groups, excepted = _combine(top)
    name = top.text("name", Path(path).name.partition(".")[0] or "experiment")
    if not _NAME.match(name):
        raise top.bad_value("name", name, "give a name without slashes and control characters")
    return ExperimentFile(
        Path(path), name, program, substitutions, mode, groups, excepted, sweep,
        _texts(top, "packages"), _texts(top, "environment"), _versions(top), top.flag("platform"),
    )  # fmt: skip


def _replacements(top: Table) -> list[Substitution]:
    found = []
    for number, (target, of) in enumerate(_tables(top, "replace")):
        of.require_known(["with"])
        given = of.required("with")
        labels: tuple[str, ...] = ()
        ranged = isinstance(given, dict) and "from" in given
        if isinstance(given, dict) and not ranged:
            labels = tuple(given)
            given = list(given.values())
        commands = isinstance(given, list) and bool(given) and all(isinstance(each, list) for each in given)
        if commands:
            values = Values(tuple(tuple(_command(each, "with", of)) for each in given))
        else:
            values = read_values(given, "with", of, number)
        if any(not _NAME.match(label) for label in labels):
            raise of.wrong("the name of an alternative cannot be used", "use plain names without slashes")
        found.append(Substitution(target, "", values, labels))
    return found


def _settings(top: Table) -> list[Substitution]:
    found = []
    for number, (target, of) in enumerate(_tables(top, "set")):
        for position, (parameter, given) in enumerate(of.values.items()):
            if not parameter.isidentifier() or len(parameter) > 120:
                raise of.wrong(f"{shorten(parameter)} is not the name of a parameter", "use a plain name")
            values = read_values(given, parameter, of, 1000 + 100 * number + position)
            found.append(Substitution(target, parameter, values))
    return found


def _tables(top: Table, key: str) -> list[tuple[str, Table]]:
    """The tables `[key.NAME]`."""
    found = []
    for target, of in top.table(key).items():
        where = f"{top.where}: [{key}.{shorten(target, 60)}]"
        if not isinstance(of, dict) or not of:
            raise top.with_values({}, where).wrong(f"is {shorten(of)}", f"write a table: [{key}.NAME]")
        if not _NAME.match(target):
            raise top.with_values({}, where).wrong(
                "the name cannot be used", "name a task, input or parameter"
            )
        found.append((target, top.with_values(of, where)))
    return found


def _combine(top: Table) -> tuple[Mode, tuple[tuple[str, ...], ...], tuple[str, ...]]:
    combine = top.with_values(top.table("combine"), f"{top.where}: [combine]")
    combine.require_known(["mode", "except", "groups"])
    mode = combine.text("mode", "groups" if "groups" in combine.values else "product")
    if mode not in ("product", "zip", "groups"):
        raise combine.bad_value("mode", mode, "use product, zip or groups")
    if (mode == "groups") != ("groups" in combine.values):
        raise combine.wrong(
            f"mode is {mode}", 'give mode = "groups" and groups = [["a"], ["b", "c"]] together'
        )
    groups = combine.values.get("groups", [])
    listed = isinstance(groups, list) and all(isinstance(group, list) and group for group in groups)
    if not listed or not all(isinstance(name, str) for group in groups for name in group):
        raise combine.bad_value(
            "groups", groups, 'give lists of names, such as [["image"], ["detect", "sigma"]]'
        )
    excepted = combine.values.get("except", [])
    excepted = [excepted] if isinstance(excepted, str) else excepted
    if not isinstance(excepted, list) or not all(isinstance(text, str) for text in excepted):
        raise combine.bad_value(
            "except", excepted, "give a condition, such as \"detect = 'sobel' and sigma > 1\""
        )
    modes: dict[str, Mode] = {"product": "product", "zip": "zip", "groups": "groups"}
    return modes[mode], tuple(tuple(group) for group in groups), tuple(excepted)


def _sweep(top: Table) -> CommandSweep | None:
    if "sweep" not in top.values:
        return None
    sweep = top.with_values(top.table("sweep"), f"{top.where}: [sweep]")
    sweep.require_known(_SWEEP)
    outputs = _texts(sweep, "outputs")
    stdout = sweep.text("stdout", None)
    if stdout is not None and stdout not in outputs:
        outputs = (*outputs, stdout)
    if not outputs:
        raise sweep.wrong("the command has no output", 'add outputs = ["NAME"] or stdout = "NAME"')
    return CommandSweep(
        sweep.text("name", "point"),
        tuple(_command(sweep.required("command"), "command", sweep)),
        _text_table(sweep, "inputs"),
        outputs,
        stdout,
        sweep.quantity("work", "time", 1.0),
        _text_table(sweep, "results"),
    )


def _command(value: Any, key: str, table: Table) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise table.bad_value(key, value, 'give the program and its arguments: ["prog", "--n", "{n}"]')
    if any("\0" in each or len(each) > 100_000 for each in value) or not value[0]:
        raise table.bad_value(key, value, "give arguments without null characters, and a program")
    return value


def _text_table(table: Table, key: str) -> dict[str, str]:
    found = table.table(key)
    for name, value in found.items():
        if not isinstance(value, str) or not value or "\0" in value or not _NAME.match(name):
            raise table.bad_value(f"{key}.{name[:60]}", value, "give a text")
    return found


def _texts(table: Table, key: str) -> tuple[str, ...]:
    value = table.values.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, str) and _NAME.match(v) for v in value):
        raise table.bad_value(key, value, f'give a list of names, such as {key} = ["a"]')
    if len(set(value)) < len(value):
        raise table.wrong(f"{key} contains a duplicate", "list each name once")
    return tuple(value)


def _versions(top: Table) -> dict[str, Scalar]:
    found = top.table("versions")
    for name, value in found.items():
        if not isinstance(value, str | int | float | bool):
            raise top.bad_value(f"versions.{shorten(name)}", value, "give a text or a number")
    return found


def _is_experiment(head: bytes) -> bool:
    return not head.startswith(b"{") and _EXPERIMENT.search(head) is not None


FORMATS = (Format("toml", "experiment", "an experiment as TOML", sniff=_is_experiment, read=read_experiment),)
