"""All combinations of an experiment merged: each distinct task once.

Tasks are taken in topological order. Two combinations share an instance of a task if they agree on what the task
executes, on its parameters, and on the instances that make its inputs. So common prefixes of combinations are found
without comparing combinations with each other: O(tasks * inputs * combinations * log combinations) array operations and
O(distinct tasks) hashing.

The identity of an instance is a digest of its code, its parameters, the contents of the files and values from outside
that it reads, the identities of the tasks whose outputs it reads, and what the user declares: versions of packages,
environment variables. It is the same in every experiment, run and process.
"""

from __future__ import annotations

import platform as machine
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace.experiment.sweep.axes import Axis, Label, Points
from headrace.experiment.sweep.command_sweep import placeholders
from headrace.experiment.sweep.substitute import Experiment, bodies, takes
from headrace.model.program import Data, Program, Task
from headrace.record.task_identity import (
    Bodies,
    Declared,
    begin_digest,
    end_digest,
    input_digest,
    item_identity,
    parameter_text,
    unwrapped,
)

Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(eq=False)
class Instances:
    """The distinct instances of one task, or of one input of the program."""

    of_point: Ints
    """The instance that each combination of the variant uses."""
    first: Ints
    """The first combination that uses each instance."""
    identity: list[str]
    axes: frozenset[int]
    """What they depend on."""
    body: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Which of the task's functions each instance executes."""

    def __len__(self) -> int:
        return len(self.identity)


@dataclass(eq=False)
class Variant:
    """The combinations that share the parameters of the program's function, and so its structure."""

    program: Program
    points: Points
    """Values of all axes for each of its combinations."""
    numbers: Ints
    """The numbers of its combinations."""
    tasks: dict[str, Instances] = field(default_factory=dict)
    inputs: dict[str, Instances] = field(default_factory=dict)
    bodies: dict[str, list[Any]] = field(default_factory=dict)

    def source(self, item: str) -> Instances:
        """The instances of what makes an item."""
        maker = self.program.producer.get(item)
        return self.inputs[item] if maker is None else self.tasks[maker]


@dataclass(frozen=True, eq=False)
class Merged:
    """An experiment's combinations as instances of tasks."""

    experiment: Experiment
    variants: tuple[Variant, ...]
    known: Bodies
    """What is known of each function."""
    declared: Declared

    @property
    def points(self) -> int:
        return len(self.experiment.points)

    @property
    def tasks_alone(self) -> int:
        """Tasks if every combination ran by itself."""
        return sum(len(v.program.tasks) * len(v.points) for v in self.variants)

    @cached_property
    def identities(self) -> set[str]:
        """The identities of all distinct tasks."""
        found: set[str] = set()
        for variant in self.variants:
            for of in variant.tasks.values():
                found.update(of.identity)
        return found

    def labels(self, variant: Variant, of: Instances) -> list[dict[str, Label]]:
        """The labels of each instance: values of the axes it depends on that all its combinations share."""
        axes = self.experiment.axes
        found: list[dict[str, Label]] = [{} for _ in range(len(of))]
        order = np.argsort(of.of_point, kind="stable")
        starts = np.searchsorted(of.of_point[order], np.arange(len(of)))
        for k in sorted(of.axes):
            column = variant.points[order, k]
            low, high = np.minimum.reduceat(column, starts), np.maximum.reduceat(column, starts)
            for i in np.flatnonzero(low == high).tolist():
                found[i][axes[k].name] = axes[k].labels[int(low[i])]
        return found


def merge(experiment: Experiment, *, digests: bool = True) -> Merged:
    """Find the distinct tasks of all combinations and their identities.

    Without `digests` the contents of inputs are not read: identities then hold for this experiment only.
    """
    known = Bodies()
    declared = Declared.of(
        experiment.file.packages, experiment.file.environment, experiment.file.versions,
        machine.machine() if experiment.file.platform else "",
    )  # fmt: skip
    variants = []
    for values, numbers in _by_structure(experiment):
        program = experiment.build(values)
        variant = Variant(program, experiment.points[numbers], numbers)
        variants.append(variant)
        _merge_variant(experiment, variant, known, declared, digests)
    return Merged(experiment, tuple(variants), known, declared)


def _by_structure(experiment: Experiment) -> list[tuple[dict[str, Any], Ints]]:
    """Combinations by the values of the parameters of the program's function."""
    chosen = [k for k, axis in enumerate(experiment.axes) if axis.what == "program"]
    if not chosen:
        return [({}, np.arange(len(experiment.points)))]
    rows, inverse = np.unique(experiment.points[:, chosen], axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    found = []
    for number, row in enumerate(rows.tolist()):
        values = {
            experiment.axes[k].target: experiment.axes[k].values[v] for k, v in zip(chosen, row, strict=True)
        }
        found.append((values, np.flatnonzero(inverse == number)))
    return found


def _merge_variant(
    experiment: Experiment, variant: Variant, known: Bodies, declared: Declared, digests: bool
) -> None:
    program = variant.program
    order = program.graph.order.tolist()
    for item in program.inputs():
        variant.inputs[item.name] = _input_instances(item, experiment, variant, digests)
    choices = {
        task.name: _choices(task, experiment.axes, variant, known, declared.digest)
        for task in program.tasks.values()
    }
    numbers = _ordinals(program, choices)
    names = list(program.tasks)
    for t in order:
        task = program.tasks[names[t]]
        variant.bodies[task.name] = choices[task.name].options
        variant.tasks[task.name] = _task_instances(task, variant, choices[task.name], numbers[task.name])


def factorize(columns: Sequence[npt.NDArray[Any]]) -> tuple[Ints, Ints]:
    """The number of each row among distinct rows, and the first row of each: O(columns * rows * log rows).

    >>> at, first = factorize([np.array([7, 7, 8]), np.array([1, 1, 1])])
    >>> at.tolist(), first.tolist()
    ([0, 0, 1], [0, 2])
    """
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if int(key.max(initial=0) + 1) * width >= 2**62:
            key = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
        key = key * width + column
    _, first, at = np.unique(key, return_index=True, return_inverse=True)
    return at.reshape(-1).astype(np.int64), first.astype(np.int64)


def _input_instances(item: Data, experiment: Experiment, variant: Variant, digests: bool) -> Instances:
    axes, points = input_axes(item, experiment), variant.points
    if not axes:
        told = [input_digest(item, experiment.folder, digests)]
        return Instances(np.zeros(len(points), np.int64), np.zeros(1, np.int64), told, frozenset())
    at, first = factorize([points[:, k] for k in axes])
    told = [
        input_digest(input_at(item, axes, points[p], experiment), experiment.folder, digests)
        for p in first.tolist()
    ]
    # Values that are alike share an instance.
    number: dict[str, int] = {}
    alike = np.array([number.setdefault(each, len(number)) for each in told], np.int64)
    merged = alike[at]
    return Instances(merged, factorize([merged])[1], list(number), frozenset(axes))


def input_axes(item: Data, experiment: Experiment) -> list[int]:
    """The axes that an input depends on: its own, or those whose values are in its path."""
    own = [k for k, a in enumerate(experiment.axes) if a.what == "input" and a.target == item.name]
    if own or item.path is None or experiment.file.sweep is None:
        return own
    names = set(placeholders(item.path))
    return [k for k, a in enumerate(experiment.axes) if a.what == "parameter" and a.parameter in names]


def input_at(item: Data, axes: Sequence[int], point: npt.NDArray[Any], experiment: Experiment) -> Data:
    """An input as one combination has it."""
    chosen = {k: experiment.axes[k].values[int(point[k])] for k in axes}
    first = experiment.axes[axes[0]]
    if first.what == "input":
        value = chosen[axes[0]]
        if item.path is not None:
            return replace(item, path=str(value), value=None)
        return replace(item, value=value)
    path = str(item.path)
    for k, value in chosen.items():
        path = path.replace(f"{{{experiment.axes[k].parameter}}}", as_argument(value))
    return replace(item, path=path)


def as_argument(value: Any) -> str:
    """A value on a command line or in a path.

    >>> as_argument(0.5), as_argument(True), as_argument("a b")
    ('0.5', 'true', 'a b')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@dataclass(frozen=True, eq=False)
class _Choices:
    """What a task can execute, and what it executes in each combination."""

    options: list[Any]
    begun: list[Any]
    """For each function the digest of what its instances share."""
    bound: list[list[str]]
    """For each function its own keywords."""
    body: Ints
    """Which function each combination has."""
    given: list[tuple[Ints, list[bool], list[str]]]
    """For each parameter the number of its value in each combination, the functions that take it, and its texts."""
    axes: frozenset[int]
    columns: list[Ints]
    """Combinations that agree in these execute the same."""

    def texts(self, point: int) -> list[str]:
        """The parameters of a combination: those that are set replace those that are bound."""
        b = int(self.body[point])
        own = [texts[int(value[point])] for value, takers, texts in self.given if takers[b]]
        if self.bound[b]:
            names = {text.partition("=")[0] for text in own}
            own += [text for text in self.bound[b] if text.partition("=")[0] not in names]
        return sorted(own)


def _choices(task: Task, axes: Sequence[Axis], variant: Variant, known: Bodies, declared: str) -> _Choices:
    points = variant.points
    options = bodies(task.name, axes, variant.program)
    own = [k for k, a in enumerate(axes) if a.target == task.name and a.what in ("task", "parameter")]
    begun, bound, told = [], [], []
    for option in options:
        function, keywords = unwrapped(option)
        code = known.code(function)
        begun.append(begin_digest(code.digest, task, function, declared))
        bound.append(sorted(parameter_text(name, value) for name, value in keywords.items()))
        told.append("\0".join((code.digest, *bound[-1])))
    body = next((points[:, k] for k in own if axes[k].what == "task"), np.zeros(len(points), np.int64))
    columns: list[Ints] = [_alike(told)[body]]
    given = []
    for k in own:
        if axes[k].what == "parameter":
            takers = [takes(option, len(task.inputs), axes[k].parameter) for option in options]
            texts = [parameter_text(axes[k].parameter, value) for value in axes[k].values]
            columns.append(np.where(np.array(takers)[body], _alike(texts)[points[:, k]] + 1, 0))
            given.append((points[:, k].astype(np.int64), takers, texts))
    return _Choices(options, begun, bound, body.astype(np.int64), given, frozenset(own), columns)


def _ordinals(program: Program, choices: dict[str, _Choices]) -> dict[str, Ints]:
    """The number of each task among those that execute the same with the same inputs, in each combination."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for task in program.tasks.values():
        groups.setdefault((task.inputs, task.after), []).append(task.name)
    found = {name: np.zeros(len(of.body), np.int64) for name, of in choices.items()}
    for names in groups.values():
        if len(names) == 1:
            continue
        number: dict[tuple[str, ...], int] = {}
        earlier: list[Ints] = []
        for name in names:
            of = choices[name]
            at, first = factorize(of.columns)
            keys = [(of.begun[int(of.body[p])].hexdigest(), *of.texts(p)) for p in first.tolist()]
            told = np.array([number.setdefault(key, len(number)) for key in keys], np.int64)[at]
            for other in earlier:
                found[name] += other == told
            earlier.append(told)
    return found


def _task_instances(task: Task, variant: Variant, choices: _Choices, ordinal: Ints) -> Instances:
    program = variant.program
    sources = [variant.source(name) for name in task.inputs] + [variant.tasks[name] for name in task.after]
    at, first = factorize([*choices.columns, ordinal, *(source.of_point for source in sources)])
    places = [
        program.tasks[program.producer[name]].outputs.index(name) if name in program.producer else 0
        for name in task.inputs
    ] + [0] * len(task.after)
    read = [_read(source, place, first) for source, place in zip(sources, places, strict=True)]
    identity = [
        end_digest(
            choices.begun[int(choices.body[p])],
            int(ordinal[p]),
            choices.texts(p),
            [column[i] for column in read],
        )
        for i, p in enumerate(first.tolist())
    ]
    depends = choices.axes.union(*(source.axes for source in sources))
    return Instances(at, first, identity, depends, choices.body[first])


def _read(source: Instances, place: int, first: Ints) -> list[str]:
    """The identity of the item that each instance reads."""
    if place == 0:
        return [source.identity[j] for j in source.of_point[first].tolist()]
    return [item_identity(source.identity[j], place) for j in source.of_point[first].tolist()]


def _alike(texts: Sequence[str]) -> Ints:
    """The number of each text among distinct ones."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(text, len(number)) for text in texts], np.int64)
