"""Parsing `--what-if CHANGE`: one change of a platform, in words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from headrace.model.errors import HeadraceError, UsageError
from headrace.model.units import quantity

Kind = Literal["host", "link", "disk", "cores", "site"]
Operation = Literal["add", "multiply", "more", "remove"]

FORMS = (
    "host NAME",
    "host NAME xFACTOR",
    "link A-B xFACTOR",
    "link A-B +RATE",
    "disk SITE xFACTOR",
    "disk SITE +SIZE",
    "cores SITE xFACTOR",
    "cores SITE +NUMBER",
    "without host NAME",
    "without link A-B",
    "without site NAME",
)
_FACTOR = re.compile(r"[x*]\s*(\S+)\Z")
_MAX_LENGTH = 1000
_MOST = 1e6
"""The largest factor."""
_UNIT = {"link": "rate", "disk": "size"}


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a platform; `amount` is 0 where the operation needs none."""

    kind: Kind
    name: str
    """The host or site, or for a link its two ends as in `uw-ufmg`."""
    operation: Operation
    """add: one more host like this one. multiply: speed, bandwidth, disk space or cores times the amount.
    more: this many bytes/s, bytes or cores more. remove: without it."""
    amount: float = 0.0

    def __str__(self) -> str:
        """
        >>> str(parse_change("link uw-ufmg +100Mbit/s"))
        'link uw-ufmg +12500000'
        """
        if self.operation == "remove":
            return f"without {self.kind} {self.name}"
        sign = {"multiply": "x", "more": "+"}.get(self.operation)
        return f"{self.kind} {self.name}" + (f" {sign}{self.amount:.10g}" if sign else "")


def parse_change(text: str) -> Change:
    """Read a change; raises UsageError with the place and the known forms.

    >>> parse_change("host n9")
    Change(kind='host', name='n9', operation='add', amount=0.0)
    >>> parse_change("link uw-ufmg x2").amount, parse_change("disk prague +1TB").amount
    (2.0, 1000000000000.0)
    >>> parse_change("without site ohio").operation
    'remove'
    """
    words = text.split(maxsplit=1)
    if len(text) > _MAX_LENGTH or len(words) < 2:
        shown = text if len(text) <= _MAX_LENGTH else f"{text[:40]}..."
        raise _wrong(shown, f"{shown!r} has no kind and name")
    first, rest = words[0], words[1].strip()
    if first == "without":
        return _removal(text, rest)
    if first not in ("host", "link", "disk", "cores"):
        raise _wrong(text, f"{first!r} is not a kind of change")
    kind: Kind = first  # type: ignore[assignment]
    name, amount = _split_amount(kind, rest)
    if not name:
        raise _wrong(text, f"{rest!r} has no name")
    if not amount:
        if kind != "host":
            raise _wrong(text, f"{rest!r} has no factor or amount")
        return Change("host", name, "add")
    factor = _FACTOR.match(amount)
    if factor:
        return Change(kind, name, "multiply", _factor(text, factor[1]))
    if kind == "host":
        raise _wrong(text, f"{amount!r} is not a factor")
    return Change(kind, name, "more", _amount(text, kind, amount[1:].strip()))


def find_link(name: str, known: Callable[[str, str], bool], sites: Collection[str]) -> tuple[str, str]:
    """The two ends of a link written as `A-B`; every hyphen may be the one between the names.

    Raises UsageError if no split gives a known link, or if several do.

    >>> pairs = {("uw", "ufmg"), ("a-b", "c")}
    >>> find_link("a-b-c", lambda a, b: (a, b) in pairs, ["uw", "ufmg", "a-b", "c"])
    ('a-b', 'c')
    """
    splits = [(name[:i], name[i + 1 :]) for i, c in enumerate(name) if c == "-"]
    found = [ends for ends in splits if known(*ends)]
    if len(found) == 1:
        return found[0]
    if found:
        listed = " or ".join(f"{a!r} to {b!r}" for a, b in found)
        raise UsageError(f"{name!r} may mean {listed}", where="--what-if", hint="rename one of the sites")
    some = ", ".join(sorted(sites)[:8])
    raise UsageError(
        f"there is no link {name!r}", where="--what-if", hint=f"give two linked sites as A-B; sites: {some}"
    )


def _split_amount(kind: Kind, rest: str) -> tuple[str, str]:
    """The name and the text of the amount: the last ` x...` or ` +...`; a rate may contain spaces."""
    match = re.match(r"(.*?)\s+((?:[x*]\s*[0-9.][^\s]*|\+.*))\Z", rest)
    if match is None:
        return rest, ""
    return match[1].strip(), match[2].strip()


def _removal(text: str, rest: str) -> Change:
    kind, _, name = rest.partition(" ")
    if kind not in ("host", "link", "site") or not name.strip():
        raise _wrong(text, f"{rest!r} is not a host, link or site")
    return Change(kind, name.strip(), "remove")  # type: ignore[arg-type]


def _factor(text: str, number: str) -> float:
    try:
        value = float(number)
    except ValueError:
        raise _wrong(text, f"{number!r} is not a factor") from None
    if not (math.isfinite(value) and value > 0):
        raise _wrong(text, f"the factor {number!r} is not above 0")
    if not 1 / _MOST <= value <= _MOST:
        raise _wrong(text, f"the factor {number!r} is not between {1 / _MOST:g} and {_MOST:g}")
    return value


def _amount(text: str, kind: Kind, number: str) -> float:
    if kind == "cores":
        if not (number.isascii() and number.isdigit() and int(number[:9]) > 0 and len(number) < 9):
            raise _wrong(text, f"{number!r} is not a number of cores")
        return float(number)
    try:
        value = quantity(number, _UNIT[kind], "--what-if")
    except HeadraceError as error:
        raise _wrong(text, error.problem) from None
    if not value > 0:
        raise _wrong(text, f"{number!r} is not above 0")
    return value


def _wrong(text: str, problem: str) -> UsageError:
    return UsageError(problem, where=f"--what-if {text!r}", hint=f"one of: {'; '.join(FORMS)}")
