"""What is left of a merged experiment when some values are kept, counted without building a program."""

from __future__ import annotations

from collections.abc import Collection
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
    needed: dict[str, str] = {}
    for variant in merged.variants:
        needed |= _needed(variant, kept)
    by_task: dict[str, int] = {}
    for name in needed.values():
        by_task[name] = by_task.get(name, 0) + 1
    return Left(len(needed), len(merged.identities) - len(needed), by_task)


def _needed(variant: Variant, kept: Collection[str]) -> dict[str, str]:
    """By identity the tasks that must run."""
    program = variant.program
    results = {item.name for item in program.results()}
    wanted = {name: np.zeros(len(variant.tasks[maker]), np.bool_) for name, maker in program.producer.items()}
    read = {item for task in program.tasks.values() for item in task.inputs}
    found: dict[str, str] = {}
    names = list(program.tasks)
    for t in reversed(program.graph.order.tolist()):
        task = program.tasks[names[t]]
        of = variant.tasks[task.name]
        for item in task.outputs:
            # A task whose outputs are not needed is executed for its side effects.
            if item in results or not any(each in results or each in read for each in task.outputs):
                wanted[item][:] = True
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
