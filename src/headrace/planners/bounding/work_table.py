"""Tasks and classes of hosts as a table: run times, and the least times before and after each task on each class.

A class is a set of hosts with equal speeds for all tasks, equal numbers of cores and equal positions in the network.
Values of a class are the least of its hosts, so whatever is derived from them holds for each host.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.core.scheduler import Problem
from headrace.model.check_case import Numbers
from headrace.model.graph import Bools, Floats, Ints
from headrace.planners.placed_bounds import before_and_after, may_run, quickest_at_places

MOST_CLASSES = 128
"""Beyond this many classes, hosts of equal speed and cores are one class wherever they are."""


@dataclass(frozen=True, eq=False)
class WorkTable:
    """What bounds need to know of a problem; [tasks, classes] unless stated otherwise."""

    problem: Problem
    class_of_host: Numbers
    """[hosts]"""
    cores: Floats
    """[classes] cores of all hosts of the class."""
    hosts: Numbers
    """[classes] number of hosts."""
    seconds: Floats
    """Run time; inf where the task may not run."""
    before: Floats
    """Least time before the task can start there,"""
    after: Floats
    """and after it has finished there."""
    row: Numbers
    """[tasks] tasks with the same number have run times that differ by a factor only."""
    width: Floats
    """[tasks] cores that the task occupies."""

    @property
    def chain(self) -> Floats:
        """The least makespan of a plan in which the task runs on a host of the class."""
        total: Floats = self.before + self.seconds + self.after
        return total

    def of(self, tasks: Ints) -> WorkTable:
        """The table of some tasks."""
        return WorkTable(
            self.problem, self.class_of_host, self.cores, self.hosts, self.seconds[tasks], self.before[tasks],
            self.after[tasks], self.row[tasks], self.width[tasks],
        )  # fmt: skip


def work_table(problem: Problem) -> WorkTable:
    """O(tasks * hosts + (tasks + reads) * places).

    >>> from headrace.testing import random_platform, random_program
    >>> table = work_table(Problem(random_program(1, 20).graph, random_platform(1)))
    >>> table.seconds.shape, int(table.cores.sum()) == sum(h.cores for h in table.problem.platform.hosts)
    ((20, 4), True)
    """
    graph, platform = problem.graph, problem.platform
    network, hosts = platform.network, platform.hosts
    rates = platform.rates(graph)
    row, may = may_run(problem)
    class_of = host_classes(problem, rates, may)
    count = int(class_of.max()) + 1
    first = np.unique(class_of, return_index=True)[1]
    seconds = graph.work[:, None] / rates[graph.speed_class][:, first]
    seconds[~may[row][:, first]] = np.inf
    column = np.unique(network.host_place, return_inverse=True)[1]
    quick = quickest_at_places(problem)
    by_place = before_and_after(problem, quick)
    before, after = (np.full((graph.n_tasks, count), np.inf) for _ in range(2))
    for place, at in {(int(p), int(c)) for p, c in zip(column, class_of, strict=True)}:
        for least, known in zip((before, after), by_place, strict=True):
            np.minimum(least[:, at], known[:, place], out=least[:, at])
    return WorkTable(
        problem=problem,
        class_of_host=class_of,
        cores=np.bincount(class_of, [h.cores for h in hosts]).astype(np.float64),
        hosts=np.bincount(class_of),
        seconds=seconds,
        before=before,
        after=after,
        row=np.unique(graph.speed_class * np.int64(len(may)) + row, return_inverse=True)[1],
        width=graph.cores.astype(np.float64),
    )


def host_classes(problem: Problem, rates: Floats, may: Bools) -> Numbers:
    """The class of each host, in order of the first host of each."""
    network = problem.platform.network
    place = network.host_place
    held = np.zeros(network.n_places, np.int64)
    for holder, at in enumerate(sorted({p for held in problem.holders.values() for p in held})):
        held[at] = holder + 1
    cores = np.array([h.cores for h in problem.platform.hosts])
    speeds = np.concatenate((rates, may.astype(np.float64), cores[None, :]))
    where = np.stack((network.zone[place], network.port[place], place == network.origin, held[place]))
    for key in (np.concatenate((speeds, where)), speeds):
        _, first, number = np.unique(key, axis=1, return_index=True, return_inverse=True)
        if len(first) <= MOST_CLASSES:
            break
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    classes: Numbers = rank[number.reshape(-1)]
    return classes
