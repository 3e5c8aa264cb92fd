"""Values of an experiment's parameters: lists, linear and logarithmic steps, random and Latin-hypercube draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from headrace.formats.shapes import shorten
from headrace.formats.tables import Table
from headrace.model.errors import HeadraceError

MAX_VALUES = 1_000_000
Scalar: TypeAlias = str | float | int | bool


@dataclass(frozen=True)
class Values:
    """The values of one parameter.

    `drawn` is the kind of draw for values that belong to the same draw as those of other parameters: such parameters
    are combined point by point.
    """

    values: tuple[Any, ...]
    drawn: Literal["", "random", "latin"] = ""


def read_values(value: Any, key: str, table: Table, number: int = 0) -> Values:
    """The values that a list or a table describes; `number` tells draws of several parameters apart.

    >>> read_values({"from": 1, "to": 100, "steps": 3, "scale": "log"}, "n", Table({}, "x.toml")).values
    (1, 10, 100)
    """
    if isinstance(value, list):
        if not value:
            raise table.wrong(f"{key} is an empty list", "give at least one value")
        for each in value:
            _require_scalar(each, key, table)
        return Values(_limited(tuple(value), key, table))
    if not isinstance(value, dict):
        _require_scalar(value, key, table)
        return Values((value,))
    inner = table.with_values(value, f"{table.where}: {key}")
    inner.require_known(["from", "to", "steps", "scale", "random", "latin", "seed"])
    counts = [name for name in ("steps", "random", "latin") if name in value]
    if len(counts) != 1:
        raise inner.wrong(f"{key} is {shorten(value)}", "give one of steps, random and latin")
    count = inner.whole(counts[0], 1, least=1, most=MAX_VALUES)
    if "seed" in value and counts[0] == "steps":
        raise inner.wrong("steps need no seed", "leave it out")
    unit = _unit(counts[0], count, inner.whole("seed", 0, least=0, most=2**31 - 1), number)
    drawn: Any = "" if counts[0] == "steps" else counts[0]
    return Values(_scaled(unit, inner), drawn)


def _limited(values: tuple[Any, ...], key: str, table: Table) -> tuple[Any, ...]:
    if len(values) > MAX_VALUES:
        raise table.wrong(f"{key} has {len(values)} values", f"at most {MAX_VALUES}")
    return values


def _require_scalar(value: Any, key: str, table: Table) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and not (abs(value) < 1e300 and math.isfinite(value)):
        raise table.wrong(f"{key} has {shorten(value)}", "give finite numbers")
    if not (number or isinstance(value, str | bool)) or (isinstance(value, str) and len(value) > 10_000):
        raise table.wrong(f"{key} has {shorten(value)}", "give numbers, texts or true and false")


def _unit(how: str, count: int, seed: int, number: int) -> Any:
    """Numbers from 0 to 1."""
    if how == "steps":
        return np.linspace(0.0, 1.0, count)
    rng = np.random.default_rng([seed, number])
    if how == "random":
        return rng.random(count)
    return (rng.permutation(count) + rng.random(count)) / count


def _scaled(unit: Any, table: Table) -> tuple[Any, ...]:
    """Numbers between `from` and `to`: whole ones if both ends are, and all of them would be, or they are drawn."""
    for name in ("from", "to"):
        table.required(name)
    low, high = table.number("from"), table.number("to")
    scale = table.text("scale", "linear")
    if scale not in ("linear", "log"):
        raise table.wrong(f"scale is {shorten(scale)}", "use linear or log")
    if scale == "log" and not (low > 0 and high > 0):
        raise table.wrong(f"from is {low:g} and to is {high:g}", "a log scale needs ends above 0")
    try:
        with np.errstate(all="ignore"):
            found = low * (high / low) ** unit if scale == "log" else low + (high - low) * unit
    except (OverflowError, ZeroDivisionError) as error:
        raise _overflow(table) from error
    if not np.isfinite(found).all():
        raise _overflow(table)
    whole = all(isinstance(table.values[name], int) for name in ("from", "to"))
    rounded = np.round(found)
    if whole and abs(low) < 2**53 and abs(high) < 2**53:
        drawn = "steps" not in table.values
        if drawn or np.allclose(found, rounded, rtol=1e-12, atol=1e-9):
            return tuple(int(v) for v in rounded)
    return tuple(float(f"{v:.12g}") for v in found.tolist())


def _overflow(table: Table) -> HeadraceError:
    return table.wrong("the range is too wide", "give smaller numbers")
