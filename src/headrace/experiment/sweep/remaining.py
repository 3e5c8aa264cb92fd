"""What is left of a merged experiment when some values are kept, counted without building a program."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.experiment.sweep.merge import Instances, Merged, Variant
from headrace.model.program import Task
from headrace.record.task_identity import item_identity


@dataclass(frozen=True)
class Left:
    """Counts of tasks."""

    tasks: int
    """Distinct tasks that must run."""
    reused: int
    by_task: dict[str, int]
    """Distinct tasks that must run, by their name in the program."""


def left_of(merged: Merged, kept: Collection[str]) -> Left:
    """The tasks that make missing results, and those whose outputs they need and that are not kept.

    `kept` are identities of items. O(tasks * inputs * combinations) array operations and O(distinct tasks).
    """
    used = {identity for variant in merged.variants for identity in _used(variant)}
    needed: dict[str, str] = {}
    for variant in merged.variants:
        needed |= _needed(variant, kept, used)
    by_task: dict[str, int] = {}
    for name in needed.values():
        by_task[name] = by_task.get(name, 0) + 1
    return Left(len(needed), len(merged.identities) - len(needed), by_task)


def _used(variant: Variant) -> Iterator[str]:
    """Identities of the tasks that have an output which is a result or is read."""
    program = variant.program
    used = {item.name for item in program.results()}
    used |= {item for task in program.tasks.values() for item in task.inputs}
    for task in program.tasks.values():
        if not used.isdisjoint(task.outputs):
            yield from variant.tasks[task.name].identity


def _needed(variant: Variant, kept: Collection[str], used: Collection[str]) -> dict[str, str]:
    """By identity the tasks that must run."""
    program = variant.program
    results = {item.name for item in program.results()}
    wanted = {name: np.zeros(len(variant.tasks[maker]), np.bool_) for name, maker in program.producer.items()}
    found: dict[str, str] = {}
    names = list(program.tasks)
    for t in reversed(program.graph.order.tolist()):
        task = program.tasks[names[t]]
        of = variant.tasks[task.name]
        for item in task.outputs:
            # A task whose outputs nobody needs, under any name that it has elsewhere, is executed for its side effects.
            wanted[item] |= item in results or np.array([each not in used for each in of.identity], np.bool_)
        runs = _must_run(task, of, wanted, kept)
        found |= {of.identity[i]: task.name for i in np.flatnonzero(runs).tolist()}
        first = of.first[runs]
        for item in task.inputs:
            if item in wanted:
                wanted[item][variant.source(item).of_point[first]] = True
        for other in task.after:
            wanted[program.tasks[other].outputs[0]][variant.tasks[other].of_point[first]] = True
    return found


def _must_run(
    task: Task,
    of: Instances,
    wanted: dict[str, npt.NDArray[np.bool_]],
    kept: Collection[str],
) -> npt.NDArray[np.bool_]:
    runs = np.zeros(len(of), np.bool_)
    for k, item in enumerate(task.outputs):
        missing = np.ones(len(of), np.bool_)
        if kept:
            missing = np.array([item_identity(each, k) not in kept for each in of.identity], np.bool_)
        runs |= missing & wanted[item]
    return runs
