"""What an experiment varies, and the combinations of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace.experiment.sweep.condition import parse_condition, require_columns, select
from headrace.formats.experiment_toml import ExperimentFile
from headrace.model.errors import BadFile, HeadraceError, UsageError

MAX_POINTS = 1_000_000
_MAX_BEFORE = 4_000_000
"""Combinations before some are left out."""
Label: TypeAlias = str | float | int
Points: TypeAlias = npt.NDArray[np.int32]
What: TypeAlias = Literal["task", "input", "program", "parameter"]


@dataclass(frozen=True)
class Axis:
    """One thing that is varied.

    `what` says what: the function or command of a task, an input, a parameter of the program's function, or a
    parameter of a task.
    """

    name: str
    what: What
    target: str
    labels: tuple[Label, ...]
    values: tuple[Any, ...]
    parameter: str = ""
    drawn: str = ""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def full_name(self) -> str:
        return f"{self.target}.{self.parameter}" if self.parameter else self.target


def combinations(axes: Sequence[Axis], file: ExperimentFile) -> Points:
    """For each combination the number of the value of each axis, first axes slowest: O(combinations * axes).

    >>> from pathlib import Path
    >>> axes = [Axis("a", "input", "a", (1, 2), (1, 2)), Axis("b", "input", "b", ("x", "y"), ("x", "y"))]
    >>> file = ExperimentFile(Path("e.toml"), "e", "p", (), excepted=("a = 1 and b = 'y'",))
    >>> combinations(axes, file).tolist()
    [[0, 0], [1, 0], [1, 1]]
    """
    where = f"{file.path}: [combine]"
    groups = _groups(axes, file, where)
    sizes = []
    for group in groups:
        lengths = {len(axes[k]) for k in group}
        if len(lengths) > 1:
            told = ", ".join(f"{axes[k].name} has {len(axes[k])}" for k in group)
            raise BadFile(
                f"lists that are combined element by element differ in length: {told}",
                where=where,
                hint="give lists of equal length",
            )
        sizes.append(lengths.pop())
    total = math.prod(sizes)
    if total > _MAX_BEFORE:
        raise BadFile(f"{total} combinations", where=where, hint=f"at most {MAX_POINTS}")
    points = np.zeros((total, len(axes)), np.int32)
    number = np.arange(total)
    for group, size in zip(reversed(groups), reversed(sizes), strict=True):
        points[:, group] = (number % size)[:, None]
        number = number // size
    points = points[_wanted(axes, points, file, where)]
    if len(points) == 0:
        raise BadFile("no combination is left", where=where, hint="exclude fewer combinations")
    if len(points) > MAX_POINTS:
        raise BadFile(f"{len(points)} combinations", where=where, hint=f"at most {MAX_POINTS}")
    return points


def columns(axes: Sequence[Axis], points: Points) -> dict[str, list[Label]]:
    """The labels of all combinations, by the names of axes, and by their full names."""
    found: dict[str, list[Label]] = {}
    for k, axis in enumerate(axes):
        values = np.array(axis.labels, object)[points[:, k]].tolist()
        found[axis.name] = found[axis.full_name] = values
    return found


def _wanted(axes: Sequence[Axis], points: Points, file: ExperimentFile, where: str) -> npt.NDArray[np.bool_]:
    wanted = np.ones(len(points), np.bool_)
    if not file.excepted:
        return wanted
    known = columns(axes, points)
    for text in file.excepted:
        try:
            condition = parse_condition(text, "except")
            require_columns(condition, list(known), "except")
        except UsageError as error:
            raise BadFile(error.problem, where=f"{where}: {error.where}", hint=error.hint) from None
        wanted &= ~select(condition, known)
    return wanted


def _groups(axes: Sequence[Axis], file: ExperimentFile, where: str) -> list[list[int]]:
    """Axes that are combined one by one; groups are combined with each other in all ways."""
    everything = list(range(len(axes)))
    if file.mode == "zip":
        return [everything] if everything else []
    if file.mode == "product":
        groups: dict[object, list[int]] = {}
        for k, axis in enumerate(axes):
            groups.setdefault((axis.drawn, len(axis)) if axis.drawn else k, []).append(k)
        return list(groups.values())
    number = {name: k for k, axis in enumerate(axes) for name in (axis.full_name, axis.name)}
    found: list[list[int]] = []
    seen: set[int] = set()
    for group in file.groups:
        found.append([])
        for name in group:
            if name not in number:
                raise _unknown(name, list(number), where)
            if number[name] in seen:
                raise BadFile(f"{name!r} is in two groups", where=where, hint="list it once")
            seen.add(number[name])
            found[-1].append(number[name])
    return found + [[k] for k in everything if k not in seen]


def _unknown(name: str, known: list[str], where: str) -> HeadraceError:
    return BadFile(f"there is no {name[:60]!r} to group", where=where, hint=f"one of {', '.join(known[:20])}")
