"""All file formats. A new one is a module with `FORMATS` and a line here, or an entry point `headrace.formats`."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from headrace.formats.files import read_head
from headrace.formats.format import Format, Kind
from headrace.model.errors import BadFile, UsageError

MODULES = (
    "headrace.formats.python_program",
    "headrace.rules.file_format",
    "headrace.formats.jobs_csv",
    "headrace.formats.pst_behaviour",
    "headrace.formats.pst_grid",
    "headrace.formats.pst_work",
    "headrace.formats.deployment_ini",
    "headrace.formats.pipeline_ini",
    "headrace.formats.platform_ini",
    "headrace.formats.dot",
    "headrace.formats.graphml",
    "headrace.formats.simgrid",
    "headrace.formats.campaign_toml",
    "headrace.formats.drawing_toml",
    "headrace.formats.experiment_toml",
    "headrace.formats.platform_toml",
    "headrace.formats.plan_json",
    "headrace.formats.node_link",
    "headrace.formats.wfformat",
)
"""In the order in which they are asked whether a file is theirs: any TOML is a platform, any JSON a program, so
these come after the formats that look for more. A module is imported when its turn comes."""

GROUP = "headrace.formats"
"""The group of entry points; each names a `Format`. These are asked before the built-in ones."""

_registered: list[Format] = []


def register(added: Format) -> None:
    """Add a format, ahead of the built-in ones.

    Raises
    ------
    UsageError
        If there is a format of that name for that kind.
    """
    if any((found.name, found.kind) == (added.name, added.kind) for found in formats()):
        raise UsageError(
            f"there is already a format {added.name!r} for a {added.kind}", hint="choose another name"
        )
    _registered.append(added)


def formats() -> Iterator[Format]:
    """All formats in the order in which they are asked; modules are imported as they are reached."""
    yield from _registered
    yield from _from_entry_points()
    for module in MODULES:
        yield from import_module(module).FORMATS


@cache
def _from_entry_points() -> tuple[Format, ...]:
    loaded = [(point, point.load()) for point in entry_points(group=GROUP)]
    for point, found in loaded:
        if not isinstance(found, Format):
            raise UsageError(
                f"{point.value} is a {type(found).__name__}, not a headrace.formats.format.Format",
                where=f"entry point {point.name!r} of {GROUP}",
                hint="name a Format in the entry point",
            )
    return tuple(found for _, found in loaded)


def detect(spec: str | Path) -> Format:
    """The format of a file, by its first 64 kB; Python programs (`file.py:name`) by their suffix.

    Whether the rest of the file is valid is up to the format's `read`.

    Raises
    ------
    BadFile
        If the file cannot be read, or no format recognises it.
    """
    path = str(spec).partition(":")[0]
    head: bytes | None = None
    for found in formats():
        if found.read is None:
            continue
        if found.sniff is None:
            if found.matches(path):
                return found
            continue
        if found.name == "csv" and found.matches(
            path
        ):  # also without a header, so that the error is about CSV
            return found
        if head is None:
            head = read_head(spec).lstrip()
        if found.sniff(head):
            return found
    if head is None:
        head = read_head(spec)
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise BadFile("is UTF-16 text", where=str(spec), hint="save it as UTF-8")
    what = "is empty" if not head else f"starts with {head[:16]!r}"
    raise BadFile(
        f"{what}: not a format that Headrace reads",
        where=str(spec),
        hint="programs are WfFormat or node-link JSON, GraphML, DOT, CSV or PST; platforms TOML, INI, SimGrid XML or "
        "PST; plans JSON; rules end in .rules; "
        "see docs/formats.md",
    )


def writable(kind: Kind) -> list[Format]:
    """The formats that this kind of content can be written in."""
    return [found for found in formats() if found.kind == kind and found.write is not None]


def choose_format(choices: list[Format], path: Path, name: str | None = None) -> Format | None:
    """The format of that name; without a name, the one with the longest suffix that the path ends in."""
    if name is not None:
        return next((found for found in choices if found.name == name.lower()), None)
    fitting = [found for found in choices if found.matches(path)]
    return max(fitting, key=lambda found: found.matches(path), default=None)
