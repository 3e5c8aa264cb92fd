"""Needs of tasks as constraints: the hosts where a task fits, and limits on what runs there at once.

Planners and schedulers obey these as they obey any other constraints. `check` does not use them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headrace.model.constraints import ALL, Constraints, Limit
from headrace.model.graph import Bools, Graph
from headrace.model.needs import capacity, fit_classes
from headrace.model.platform import Platform


def with_needs(constraints: Constraints | None, graph: Graph, platform: Platform) -> Constraints | None:
    """The constraints with those that follow from needs; the same if these forbid nothing.

    O(needs * tasks log tasks + classes of needs * hosts).

    >>> from headrace.model.program import Program
    >>> program = Program()
    >>> tasks = [program.task(None, work=1.0, memory=memory) for memory in (3.0, 5.0)]
    >>> lab = Platform.local(1, cores=2, memory=6.0)
    >>> [limit.at_once for limit in with_needs(None, program.graph, lab).limits]
    [6.0]
    """
    if not graph.needs.names or (constraints is not None and constraints.needs):
        return constraints
    of_task, fits = fit_classes(graph, platform)
    limits = _limits(graph, platform)
    if fits.all() and not limits:
        return constraints
    base = Constraints.none(graph.n_tasks, len(platform.hosts)) if constraints is None else constraints
    pairs, number = np.unique(base.allowed_class.astype(np.int64) * len(fits) + of_task, return_inverse=True)
    made = replace(
        base,
        allowed=base.allowed[pairs // len(fits)] & fits[pairs % len(fits)],
        allowed_class=number.reshape(-1).astype(np.int32),
        limits=(*base.limits, *limits),
        needs="all" if constraints is None else "some",
    )
    rules, of_rules = _by_rule(constraints, made, graph, platform)
    return replace(made, rules=rules, of_rules=of_rules)


def _by_rule(
    given: Constraints | None, made: Constraints, graph: Graph, platform: Platform
) -> tuple[tuple[str, ...], Callable[[tuple[str, ...]], Constraints]]:
    """What `Constraints.only` needs so that needs hold whatever rules are left out."""

    def bound(constraints: Constraints | None) -> Constraints:
        return with_needs(constraints, graph, platform) or made

    if given is None:
        return (), lambda names: made
    if given.of_rules is None:
        return (ALL,), lambda names: made if names else bound(None)
    of_rules = given.of_rules
    return given.rules, lambda names: bound(of_rules(names))


def _limits(graph: Graph, platform: Platform) -> tuple[Limit, ...]:
    """A limit for each host where the tasks that its cores can run at once may need more than it has."""
    limits = []
    has = capacity(platform, graph.needs.names)
    cores = np.array([host.cores for host in platform.hosts])
    for k, name in enumerate(graph.needs.names):
        amount = np.where(graph.work > 0, graph.needs.amount[:, k], 0.0)  # what takes no time holds nothing
        tasks: Bools = amount > 0
        largest = np.sort(amount)[::-1]
        total = np.concatenate(([0.0], np.cumsum(largest)))
        first = np.searchsorted(-largest, -has[:, k])  # larger ones do not fit
        last = np.minimum(first + cores, len(largest))
        for host in np.flatnonzero(total[last] - total[first] > has[:, k]).tolist():
            there = np.zeros(len(cores), np.bool_)
            there[host] = True
            most = float(has[host, k])
            limits.append(Limit(tasks, there, at_once=most, amount=amount, need=name))
    return tuple(limits)
