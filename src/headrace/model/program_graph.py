"""The array form of a program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headrace.model.architecture import speed_classes
from headrace.model.arguments import short
from headrace.model.errors import BadProgram
from headrace.model.graph import OUTSIDE, Graph, LabelColumn, make_graph
from headrace.model.needs import MOST_MEMORY, checked_resources, needs_of
from headrace.model.sited import SiteLists
from headrace.model.task_checks import MOST_CORES

if TYPE_CHECKING:
    from headrace.model.program import Program, Task


def build_graph(program: Program) -> Graph:
    """Build the arrays of a program: O(tasks + items + reads)."""
    number = {name: i for i, name in enumerate(program.tasks)}
    item_number = {name: i for i, name in enumerate(program.data)}
    size = [math.nan if d.size is None else d.size for d in program.data.values()]
    producer = [number[program.producer[d]] if d in program.producer else OUTSIDE for d in program.data]
    item_names = list(program.data)
    wanted = {d.name for d in program.results()}
    result = [name in wanted and not item.destinations for name, item in program.data.items()]
    signals: dict[str, int] = {}
    work = np.empty(len(number))
    read_ptr = np.zeros(len(number) + 1, np.int32)
    reads: list[int] = []
    for i, task in enumerate(program.tasks.values()):
        if not math.isfinite(task.work) or task.work < 0:
            raise BadProgram(
                f"work is {task.work}",
                where=f"{program.name}: task {task.name!r}",
                hint="give a number of seconds, 0 or more",
            )
        if not 0 <= task.memory <= MOST_MEMORY:
            raise BadProgram(
                f"memory is {task.memory}",
                where=f"{program.name}: task {task.name!r}",
                hint=f"give a number of bytes from 0 to {MOST_MEMORY:,}",
            )
        checked_resources(task.resources, f"{program.name}: task {task.name!r}", BadProgram)
        if not 1 <= task.cores <= MOST_CORES or not task.release >= 0 or math.isnan(task.deadline):
            raise BadProgram(
                f"cores is {short(task.cores)}, release {task.release}, deadline {task.deadline}",
                where=f"{program.name}: task {task.name!r}",
                hint=f"give 1 to {MOST_CORES:,} cores and moments of 0 or more",
            )
        work[i] = task.work
        read = dict.fromkeys(_item(program, task, item_number, name) for name in task.inputs)
        for before in dict.fromkeys(task.after):
            if before not in number:
                raise BadProgram(
                    f"task {task.name!r} comes after {before!r}, which does not exist",
                    where=program.name,
                    hint="name an existing task",
                )
            if before not in signals:
                signals[before] = len(size)
                size.append(0.0)
                producer.append(number[before])
                item_names.append(_signal_name(before, item_number))
                result.append(False)
            read[signals[before]] = None
        reads.extend(read)
        read_ptr[i + 1] = len(reads)
    kinds = {name: k for k, name in enumerate(dict.fromkeys(task.kind for task in program.tasks.values()))}
    kind = [kinds[task.kind] for task in program.tasks.values()]
    return make_graph(
        work=work,
        size=size,
        producer=producer,
        read_ptr=read_ptr,
        reads=reads,
        kind=kind,
        kinds=tuple(kinds) or ("",),
        result=result,
        task_names=tuple(number),
        item_names=tuple(item_names),
        name=program.name,
        cores=[task.cores for task in program.tasks.values()],
        release=[task.release for task in program.tasks.values()],
        deadline=[task.deadline for task in program.tasks.values()],
        initial_locations=_sites_of(program, "initial_locations", len(size)),
        destinations=_sites_of(program, "destinations", len(size)),
        classes=speed_classes(kind, [task.arch_speeds for task in program.tasks.values()]),
        labels=_label_columns(program),
        needs=needs_of(program.tasks.values()),
    )


def _label_columns(program: Program) -> dict[str, LabelColumn]:
    """O(tasks + labels)."""
    columns: dict[str, dict[int, str | float]] = {}
    for i, task in enumerate(program.tasks.values()):
        for name, value in task.labels.items():
            columns.setdefault(name, {})[i] = value
    return {
        name: LabelColumn(np.array(list(found), np.int32), tuple(found.values()))
        for name, found in columns.items()
    }


def _sites_of(program: Program, which: str, items: int) -> SiteLists:
    named = {i: getattr(item, which) for i, item in enumerate(program.data.values())}
    return SiteLists.of_items({i: sites for i, sites in named.items() if sites}, items)


def _item(program: Program, task: Task, item_number: dict[str, int], name: str) -> int:
    if name not in item_number:
        raise BadProgram(
            f"task {task.name!r} reads {name!r}, which no task writes",
            where=program.name,
            hint="declare it with program.input, or as an output of a task",
        )
    return item_number[name]


def _signal_name(task: str, taken: dict[str, int]) -> str:
    name = f"{task}.finished"
    while name in taken:
        name += "_"
    return name
