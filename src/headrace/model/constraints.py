"""Constraints on a schedule in terms that planners obey directly: hosts, groups, order, limits and times.

Rules of the rules language are compiled to these where their shape allows it (`rules.compile`). `check` never reads
them: it evaluates the rules themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.graph import Bools, Floats, Ints


@dataclass(frozen=True, eq=False, slots=True)
class Limit:
    """At most so much of some tasks on some hosts together."""

    tasks: Bools
    """[tasks] those that count."""
    hosts: Bools
    """[hosts] those on which they count."""
    count: float = np.inf
    """At most this many of them in the whole schedule,"""
    seconds: float = np.inf
    """at most this much run time,"""
    at_once: float = np.inf
    """and at most this many at any moment."""
    rule: str = ""
    """The rule that asks for it, for messages."""


@dataclass(frozen=True, eq=False, slots=True)
class Constraints:
    """What a schedule must satisfy besides the model's own rules. Every field has a value that constrains nothing."""

    allowed_class: Ints
    """[tasks] the row of `allowed` that applies to each task."""
    allowed: Bools
    """[classes, hosts] the hosts on which tasks of each class may run."""
    before: Ints
    """[pairs, 2] the second task starts when the first has finished, or later."""
    together: Ints
    """[tasks] tasks with the same number run on one host; -1: no such group."""
    together_at_site: Ints
    """[tasks] tasks with the same number run at one site; -1: no such group."""
    apart: tuple[Ints, ...]
    """Groups of tasks that run on hosts all different."""
    limits: tuple[Limit, ...]
    release: Floats
    """[tasks] the earliest start of each task; 0: none."""
    deadline: Floats
    """[tasks] the latest finish of each task; inf: none."""

    @staticmethod
    def none(tasks: int, hosts: int) -> Constraints:
        """The constraints that every schedule satisfies.

        >>> Constraints.none(3, 2).allowed.all()
        np.True_
        """
        return Constraints(
            allowed_class=np.zeros(tasks, np.int32),
            allowed=np.ones((1, hosts), np.bool_),
            before=np.empty((0, 2), np.int32),
            together=np.full(tasks, -1, np.int32),
            together_at_site=np.full(tasks, -1, np.int32),
            apart=(),
            limits=(),
            release=np.zeros(tasks),
            deadline=np.full(tasks, np.inf),
        )
