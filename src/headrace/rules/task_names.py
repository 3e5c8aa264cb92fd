"""Tasks by name: conditions such as `task-name = "FFT"` look names up instead of comparing each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from headrace.rules.like import matching
from headrace.rules.tree import Column, Compare, Condition, In, Like, Or, Text
from headrace.rules.vectors import Codes

DIGITS = "0123456789"
ENDINGS = ("_ID", ".", "_", "-", " ")
"""What may stand between a name and its number; the first that fits is left out with it."""
NAME, LABEL = "task-name", "task-label"


def name_without_number(name: str) -> str:
    """
    >>> [name_without_number(name) for name in ("FFT.3", "FFT_3", "FFT 03", "sort_ID0000012", "42", "preview")]
    ['FFT', 'FFT', 'FFT', 'sort', '42', 'preview']
    """
    stem = name.rstrip(DIGITS)
    if stem != name:
        for ending in ENDINGS:
            if stem.endswith(ending):
                stem = stem.removesuffix(ending)
                break
    return stem or name


_FEW = 32
"""Names with the same beginning that are looked at one by one."""
_LAST_CHARACTER = chr(0x10FFFF)


class TaskNames:
    """The tasks of a graph by name. Sorting the names takes O(n log n) once, each look-up O(log n + names found).

    >>> names = TaskNames(("FFT.1", "FFT.2", "sort", "FFTs.1"))
    >>> names.with_name("FFT"), names.with_label("sort"), names.like("FFT%")
    ([0, 1], [2], [0, 1, 3])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._looked_at = 0

    @cached_property
    def _last(self) -> dict[str, int]:
        """The last task of each name."""
        return dict(zip(self.names, range(len(self.names)), strict=True))

    @cached_property
    def _repeated(self) -> dict[str, list[int]]:
        """The tasks of each name that several have."""
        if len(self._last) == len(self.names):
            return {}
        tasks: dict[str, list[int]] = {}
        for task, name in enumerate(self.names):
            tasks.setdefault(name, []).append(task)
        return {name: listed for name, listed in tasks.items() if len(listed) > 1}

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._last)

    @cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        """All names by name without number: made when so many names were looked at that it would have been quicker."""
        stems: dict[str, list[str]] = {}
        for name in self._last:
            stems.setdefault(name_without_number(name), []).append(name)
        return stems

    def with_label(self, name: str) -> list[int]:
        """The tasks of this full name."""
        return self._repeated.get(name) or ([self._last[name]] if name in self._last else [])

    def with_name(self, stem: str) -> list[int]:
        """The tasks that have this name and a number, or this name and no number."""
        if self._looked_at > len(self.names):
            return self._all(self._by_stem.get(stem, []))
        beginning = self._between(stem, stem + _LAST_CHARACTER)
        if len(beginning) <= _FEW:
            return self._all(name for name in beginning if name_without_number(name) == stem)
        found = [stem] if stem in self._last and name_without_number(stem) == stem else []
        for ending in ("", *ENDINGS):
            among = self._between(f"{stem}{ending}0", f"{stem}{ending}:")  # a colon comes after 9
            self._looked_at += len(among)
            found += [name for name in among if name != stem and name_without_number(name) == stem]
        return self._all(found)

    def like(self, pattern: str) -> list[int]:
        """The tasks whose full name matches a pattern."""
        return self._all(self._sorted[at] for at in matching(self._sorted, pattern))

    def _between(self, low: str, high: str) -> list[str]:
        return self._sorted[bisect_left(self._sorted, low) : bisect_left(self._sorted, high)]

    def _all(self, names: Iterable[str]) -> list[int]:
        return sorted(task for name in names for task in self.with_label(name))


def tasks_named(names: TaskNames, condition: Condition) -> Codes | None:
    """The tasks for which a condition on names alone is TRUE, in order; None for other conditions.

    >>> from headrace.rules.parser import parse_rules
    >>> text = 'assert relationship requirement ((select task-id from task where {}) = 1)'
    >>> names = TaskNames(("FFT.1", "FFT.2", "sort", "FFTs.1"))
    >>> for where in ('task-name = "FFT" or task-label = "sort"', 'task-label like "FFT%"', 'task-level = 1'):
    ...     print(tasks_named(names, parse_rules(text.format(where)).rules[0].body.condition.left.where))
    [0 1 2]
    [0 1 3]
    None
    """
    found = _listed(names, condition)
    return None if found is None else np.array(sorted(set(found)), np.int64)


def _listed(names: TaskNames, condition: Condition) -> list[int] | None:
    match condition:
        case Compare(op="=", left=Column(attribute=attribute), right=Text(value=text)):
            return _called(names, attribute, [text])
        case Compare(op="=", left=Text(value=text), right=Column(attribute=attribute)):
            return _called(names, attribute, [text])
        case In(operand=Column(attribute=attribute), options=tuple(options), negated=False):
            texts = [option.value for option in options if isinstance(option, Text)]
            return _called(names, attribute, texts) if len(texts) == len(options) else None
        case Like(operand=Column(attribute="task-label"), pattern=pattern, negated=False):
            return names.like(pattern)
        case Or(parts=parts):
            each = [_listed(names, part) for part in parts]
            return None if None in each else [task for tasks in each for task in tasks or ()]
    return None


def _called(names: TaskNames, attribute: str, texts: Iterable[str]) -> list[int] | None:
    if attribute == LABEL:
        return [task for text in texts for task in names.with_label(text)]
    return [task for text in texts for task in names.with_name(text)] if attribute == NAME else None
