"""PST grid descriptions: clusters and hosts that join, change and leave."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from headrace.formats.files import encode_text, write_file
from headrace.formats.format import Format
from headrace.formats.pst import MAX_NAME, Line, header, pst_kind, read_lines, written
from headrace.formats.pst_behaviour import read_behaviour, write_behaviour
from headrace.formats.shapes import shorten
from headrace.formats.sibling_path import sibling_path
from headrace.model.behaviour import (
    AddCluster,
    AddHost,
    Behaviour,
    ChangeCluster,
    ChangeHost,
    GridEvent,
    GridScript,
    RemoveCluster,
    RemoveHost,
    Trace,
    grid_script,
)
from headrace.model.errors import BadFile, HeadraceError

MAX_BYTES = 64_000_000
MAX_EVENTS = 1_000_000
MAX_CLUSTERS = 2_000
MAX_HOSTS = 100_000
MAX_BEHAVIOURS = 10_000
MAX_STEPS = 20_000_000
"""Total number of values in all behaviour files of a grid."""

_FIELDS = {
    "ADD_CLUSTER": ("cluster", "behaviour", "offset"),
    "ADD_HOST": ("cluster", "host", "behaviour", "offset", "architecture"),
    "REMOVE_CLUSTER": ("cluster",),
    "REMOVE_HOST": ("host",),
    "CHANGE_HOST_BEHAVIOR": ("host", "behaviour", "offset"),
    "CHANGE_CLUSTER_BEHAVIOR": ("cluster", "behaviour", "offset"),
}
_NUMBERS = ("offset", "architecture")
_MAKE: dict[str, Callable[..., GridEvent]] = {
    "ADD_CLUSTER": AddCluster,
    "ADD_HOST": AddHost,
    "REMOVE_CLUSTER": RemoveCluster,
    "REMOVE_HOST": RemoveHost,
    "CHANGE_HOST_BEHAVIOR": ChangeHost,
    "CHANGE_CLUSTER_BEHAVIOR": ChangeCluster,
}
_WORD = {make: word for word, make in _MAKE.items()}


def read_grid(path: str | Path) -> GridScript:
    """Read a grid description and the behaviour files that it refers to, which are in its folder."""
    lines = read_lines(path, MAX_BYTES)
    first, rest = header(lines, "grid", path)
    if rest:
        raise first.wrong(f"{shorten(' '.join(rest), 40)} after the version", "begin with GridDescription 1")
    events: list[GridEvent] = []
    places: list[str] = []
    behaviours: dict[str, Behaviour] = {}
    steps = 0
    for line in lines:
        event = _event(line)
        events.append(event)
        places.append(f"line {line.number}")
        steps += _load(event, line, behaviours, Path(path))
        if steps > MAX_STEPS:
            raise line.wrong(f"the behaviours have more than {MAX_STEPS} values in total", "use fewer values")
        if len(events) > MAX_EVENTS:
            raise line.wrong(f"more than {MAX_EVENTS} events", "split the grid")
    _check_counts(events, str(path))
    try:
        name = Path(path).name.partition(".")[0] or "grid"
        return grid_script(events, behaviours, name=name, places=places)
    except HeadraceError as error:
        raise error.at(str(path)) from None


def write_grid(script: GridScript, path: str | Path) -> None:
    """Write the description and a file for each behaviour beside it; existing files are not changed."""
    lines = ["GridDescription 1"]
    for event in script.events:
        word = _WORD[type(event)]
        values = (getattr(event, {"architecture": "arch"}.get(f, f)) for f in _FIELDS[word])
        lines.append(f"{written(event.time)}:{word} " + " ".join(f"<{value}>" for value in values))
    files = _behaviour_files(script, path)
    for target, behaviour in files.items():
        write_behaviour(behaviour, target)
    write_file(path, encode_text("\n".join(lines) + "\n", str(path)))


def _behaviour_files(script: GridScript, path: str | Path) -> dict[Path, Behaviour]:
    """The files to write beside a grid; a file that exists must already have the same contents."""
    files: dict[Path, Behaviour] = {}
    for name, behaviour in script.behaviours.items():
        plain = 0 < len(name) <= MAX_NAME and not set(name) & set("<>\n") and name == name.strip()
        if not plain or Path(name).name != name or name == Path(path).name:
            raise BadFile(
                f"the behaviour name {name!r} cannot be used as a file name",
                where=str(path),
                hint="give behaviours plain names",
            )
        target = Path(path).parent / name
        if not target.exists():
            files[target] = behaviour
        elif not _holds(target, behaviour):
            raise BadFile(
                "exists with different contents",
                where=str(target),
                hint="write the grid to another folder",
            )
    return files


def _holds(target: Path, behaviour: Behaviour) -> bool:
    """Whether a file holds this behaviour, to the 15 digits that are written."""
    try:
        found = read_behaviour(target)
    except HeadraceError:
        return False
    series, others = ((one,) if isinstance(one, Trace) else tuple(one) for one in (behaviour, found))
    return len(series) == len(others) and all(map(_alike, series, others))


def _alike(one: Trace, other: Trace) -> bool:
    same = len(one) == len(other) and one.repeats == other.repeats
    return same and bool(
        np.allclose(one.time, other.time, rtol=1e-14, atol=0)
        and np.allclose(one.value, other.value, rtol=1e-14, atol=0)
        and (not one.repeats or math.isclose(one.length, other.length, rel_tol=1e-14))
        and one.offset == other.offset
    )


def _event(line: Line) -> GridEvent:
    time, colon, rest = line.text.partition(":")
    word, _, fields = rest.partition(" ")
    if not colon:
        raise line.wrong(f"{shorten(line.text, 40)} has no time", "write <time>:EVENT <a> <b>")
    if word not in _FIELDS:
        raise line.wrong(f"the event is {shorten(word, 40)}", f"one of {', '.join(_FIELDS)}")
    names = _FIELDS[word]
    values = line.fields(fields)
    if len(values) != len(names):
        form = " ".join(f"<{name}>" for name in names)
        raise line.wrong(f"{word} has {len(values)} fields", f"write {word} {form}")
    read = [
        line.whole(value, f"the {name}") if name in _NUMBERS else line.name(value, f"the {name}")
        for name, value in zip(names, values, strict=True)
    ]
    return _MAKE[word](line.number_in(time.strip(), "the time", 1e15), *read)


def _load(event: GridEvent, line: Line, behaviours: dict[str, Behaviour], grid: Path) -> int:
    """Read the behaviour of an event if it has not been read; returns its number of values."""
    if isinstance(event, RemoveCluster | RemoveHost) or event.behaviour in behaviours:
        return 0
    if len(behaviours) >= MAX_BEHAVIOURS:
        raise line.wrong(f"more than {MAX_BEHAVIOURS} behaviours", "let hosts and links share them")
    try:
        behaviour = read_behaviour(sibling_path(grid, event.behaviour))
    except HeadraceError as error:
        raise error.at(f"{line.file}: line {line.number}") from None
    behaviours[event.behaviour] = behaviour
    return len(behaviour) if isinstance(behaviour, Trace) else len(behaviour.bandwidth)


def _check_counts(events: list[GridEvent], where: str) -> None:
    """Refuse excessive counts before anything is built."""
    for kind, name, limit in ((AddCluster, "cluster", MAX_CLUSTERS), (AddHost, "host", MAX_HOSTS)):
        count = len({getattr(event, name) for event in events if isinstance(event, kind)})
        if count > limit:
            raise BadFile(f"{count} {name}s, more than {limit}", where=where, hint="describe a smaller grid")


def _is_grid(head: bytes) -> bool:
    return pst_kind(head) == "grid"


FORMATS = (
    Format(
        "pst",
        "grid",
        "a PST grid description",
        suffixes=(".pst",),
        sniff=_is_grid,
        read=read_grid,
        write=write_grid,
    ),
)
