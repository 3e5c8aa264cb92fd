"""Values out of a parsed TOML table or INI section, each checked when it is taken."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from headrace.formats.shapes import shorten
from headrace.model.errors import BadFile, HeadraceError
from headrace.model.units import quantity

D = TypeVar("D")
MAX_TEXT = 255
_SWITCHES = {
    "yes": True,
    "true": True,
    "on": True,
    "1": True,
    "no": False,
    "false": False,
    "off": False,
    "0": False,
}


class Table:
    """One table of a document and its place.

    Parameters
    ----------
    values
        The keys and values.
    where
        The file and the table, for messages.
    error
        The error that a wrong value raises.
    untyped
        Values may be text that stands for a number or a switch, as in INI files; text may be empty.

    >>> site = Table({"latency": "2 ms", "bandwith": 3}, "lab.toml: [[site]] 'uw'")
    >>> site.quantity("latency", "time", 0.0)
    0.002
    >>> site.require_known(["latency", "bandwidth"])
    Traceback (most recent call last):
    headrace.model.errors.BadFile: lab.toml: [[site]] 'uw': unknown key 'bandwith' (try: bandwidth)
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        where: str,
        *,
        error: type[HeadraceError] = BadFile,
        untyped: bool = False,
    ) -> None:
        self.values = values
        self.where = where
        self.error = error
        self.untyped = untyped

    def with_values(self, values: Mapping[str, Any], where: str = "") -> Table:
        """Another table of the same document, at the same place if none is given."""
        return Table(values, where or self.where, error=self.error, untyped=self.untyped)

    def wrong(self, problem: str, hint: str) -> HeadraceError:
        """The error to raise."""
        return self.error(problem, where=self.where, hint=hint)

    def bad_value(self, key: str, value: object, hint: str) -> HeadraceError:
        """The error to raise for one value."""
        return self.wrong(f"{key} is {shorten(value)}", hint)

    def require_known(self, keys: Sequence[str], *prefixes: str) -> None:
        """Refuse keys other than these and those that begin with a prefix; suggest the nearest."""
        for key in self.values:
            if key not in keys and not any(key.startswith(p) for p in prefixes):
                near = difflib.get_close_matches(key[:80], keys, n=1)
                raise self.wrong(f"unknown key {shorten(key)}", near[0] if near else ", ".join(keys))

    def text(self, key: str, default: D) -> str | D:
        """Text of at most 255 characters."""
        if key not in self.values:
            return default
        value = self.values[key]
        if not (isinstance(value, str) and len(value) <= MAX_TEXT and (value or self.untyped)):
            hint = f'give text of at most {MAX_TEXT} characters, such as {key} = "a"'
            raise self.bad_value(key, value, hint)
        return value

    def flag(self, key: str) -> bool:
        """A switch; off if it is absent."""
        value = self.values.get(key, False)
        if self.untyped and not isinstance(value, bool):
            value = _SWITCHES.get(str(value).lower(), value)
        if not isinstance(value, bool):
            raise self.bad_value(key, value, "give yes or no" if self.untyped else "give true or false")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number; required if there is no default."""
        if key not in self.values and default is not None:
            return default
        return as_number(self.required(key), key, self)

    def whole(self, key: str, default: int, *, least: int = 1, most: int = 10**9) -> int:
        """A whole number within these bounds."""
        value = self.values.get(key, default)
        number: Any = _number(value) if self.untyped else value
        if self.untyped and isinstance(number, float) and number.is_integer():
            number = int(number)
        if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
            raise self.bad_value(key, value, f"give a whole number from {least} to {most}")
        return number

    def quantity(self, key: str, what: str, default: D) -> float | D:
        """A number or text with a unit; `what` is size, rate or time."""
        return as_quantity(self.values[key], what, key, self) if key in self.values else default

    def required(self, key: str) -> Any:
        """The value of a key that must be there."""
        if key not in self.values:
            raise self.wrong(f"{key} is missing", f"add {key} = ...")
        return self.values[key]

    def table(self, key: str) -> dict[str, Any]:
        """An inner table; empty if it is absent."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.bad_value(key, value, f"give a table, such as {key} = {{ a = 1.0 }}")
        return value

    def tables(self, key: str, name: str, label: Callable[[dict[str, Any]], str]) -> list[Table]:
        """The entries of an array of tables; `label` identifies an entry in messages."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.bad_value(key, value, f"write it as [[{name}]]")
        return [
            self.with_values(entry, f"{self.where}: [[{name}]] {label(entry) or f'number {i + 1}'}")
            for i, entry in enumerate(value)
        ]


def as_number(value: object, key: str, table: Table) -> float:
    """A value that must be a finite number."""
    number = _number(value) if table.untyped else value
    if not isinstance(number, (int, float)) or isinstance(number, bool) or not _finite(number):
        raise table.bad_value(key, value, "give a finite number")
    return float(number)


def as_quantity(value: object, what: str, key: str, table: Table) -> float:
    """A value that must be a size, rate or time, with or without a unit."""
    if isinstance(value, int) and not _finite(value):
        raise table.bad_value(key, value, f"give a {what} within the range of floating-point numbers")
    try:
        return quantity(value if isinstance(value, (int, float, str)) else shorten(value), what)
    except HeadraceError as error:
        raise table.wrong(f"{key}: {error.problem}", error.hint) from None


def _number(value: object) -> object:
    """Text that is a number, as that number."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond every float
        return False
