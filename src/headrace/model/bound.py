"""A proven lower bound, with the name of what proves it."""

from __future__ import annotations

from typing import Literal

Effort = Literal["quick", "full"]
"""How much computing a bound may cost."""


class Bound(float):
    """Seconds that no plan undercuts. It is a number; `name` says which argument gives it.

    >>> bound = Bound(1284.0, "work per kind over hosts")
    >>> bound / 2, bound.name, max(Bound(3.0, "chain of tasks"), bound).name
    (642.0, 'work per kind over hosts', 'work per kind over hosts')
    """

    name: str

    def __new__(cls, seconds: float, name: str = "") -> Bound:
        made = super().__new__(cls, seconds)
        made.name = name
        return made

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]
        return float(self), self.name


def bound_name(bound: float) -> str:
    """The name of a bound; empty for a plain number.

    >>> bound_name(Bound(1.0, "chain of tasks")), bound_name(1.0)
    ('chain of tasks', '')
    """
    return bound.name if isinstance(bound, Bound) else ""
