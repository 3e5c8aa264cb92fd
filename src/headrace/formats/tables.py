"""Values out of a parsed TOML table, each checked when taken; keys nobody took are errors."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.formats.shapes import shorten
from headrace.model.errors import BadPlatform, HeadraceError
from headrace.model.units import quantity

D = TypeVar("D")


class Table:
    """One table of a document and its place.

    >>> site = Table({"latency": "2 ms", "bandwith": 3}, "lab.toml: [[site]] 'uw'")
    >>> site.quantity("latency", "time", 0.0)
    0.002
    >>> site.done(["latency", "bandwidth"])
    Traceback (most recent call last):
    headrace.model.errors.BadPlatform: lab.toml: [[site]] 'uw': unknown key 'bandwith' (try: bandwidth)
    """

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self.values = values
        self.where = where

    def wrong(self, problem: str, hint: str) -> BadPlatform:
        return BadPlatform(problem, where=self.where, hint=hint)

    def done(self, known: list[str]) -> None:
        """Refuse keys beyond those known, naming the nearest."""
        for key in self.values:
            if key not in known:
                near = difflib.get_close_matches(key[:80], known, n=1)
                raise self.wrong(f"unknown key {shorten(key)}", near[0] if near else ", ".join(known))

    def text(self, key: str, default: D) -> str | D:
        if key not in self.values:
            return default
        value = self.values[key]
        if not (isinstance(value, str) and 0 < len(value) <= 255):
            raise self.wrong(f"{key} is {shorten(value)}", f'give text, such as {key} = "a"')
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(f"{key} is {shorten(value)}", "give true or false")
        return value

    def whole(self, key: str, default: int, *, least: int = 1) -> int:
        value = self.values.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 10**9:
            raise self.wrong(f"{key} is {shorten(value)}", f"give a whole number from {least} to 1000000000")
        return value

    def number(self, key: str, default: float) -> float:
        return as_number(self.values.get(key, default), key, self)

    def quantity(self, key: str, what: str, default: D) -> float | D:
        """A number or text with a unit; `what` is size, rate or time."""
        return as_quantity(self.values[key], what, key, self) if key in self.values else default

    def table(self, key: str) -> dict[str, Any]:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(f"{key} is {shorten(value)}", f"give a table, such as {key} = {{ a = 1.0 }}")
        return value

    def tables(self, key: str, name: str, label: Callable[[dict[str, Any]], str]) -> list[Table]:
        """The entries of an array of tables; `label` tells one from another in messages."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.wrong(f"{key} is {shorten(value)}", f"write it as [[{name}]]")
        return [
            Table(entry, f"{self.where}: [[{name}]] {label(entry) or f'number {i + 1}'}")
            for i, entry in enumerate(value)
        ]


def as_number(value: object, key: str, table: Table) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not _finite(value):
        raise table.wrong(f"{key} is {shorten(value)}", "give a finite number")
    return float(value)


def as_quantity(value: object, what: str, key: str, table: Table) -> float:
    if isinstance(value, int) and not _finite(value):
        raise table.wrong(f"{key} is {shorten(value)}", f"give a {what} that exists")
    try:
        return quantity(value if isinstance(value, (int, float, str)) else shorten(value), what)
    except HeadraceError as error:
        raise BadPlatform(f"{key}: {error.problem}", where=table.where, hint=error.hint) from None


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond every float
        return False
