"""The merged experiment as a program that plans, simulates and runs like any other."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from headrace.experiment.sweep.axes import Label
from headrace.experiment.sweep.merge import (
    Instances,
    Merged,
    Variant,
    as_argument,
    input_at,
    input_axes,
)
from headrace.experiment.sweep.substitute import takes
from headrace.model.program import Command, Program, Task
from headrace.record.task_identity import TaskFacts, item_identity, unwrapped
from headrace.runtime.local_command import LocalCommand

_UNSAFE = re.compile(r"[^\w.,=+-]")


@dataclass(eq=False)
class MergedProgram:
    """The program, and how its tasks and items correspond to combinations."""

    program: Program
    facts: dict[str, TaskFacts] = field(default_factory=dict)
    """By task."""
    items: dict[str, str] = field(default_factory=dict)
    """The identity of each item that a task makes."""
    results: list[tuple[int, str, str]] = field(default_factory=list)
    """Number of the combination, name of the result in the program, and item."""
    of_identity: dict[str, str] = field(default_factory=dict)
    """The task of each identity."""
    inputs: dict[tuple[str, str], str] = field(default_factory=dict)
    """The item of each input from outside, by its name in the program and its identity."""
    external: dict[str, str] = field(default_factory=dict)
    """The identity of each input from outside."""

    def item_identity(self, item: str) -> str:
        return self.items[item] if item in self.items else self.external[item]


def merged_program(merged: Merged) -> MergedProgram:
    """Build the program: O(distinct tasks + reads + results of all combinations)."""
    made = MergedProgram(Program(merged.experiment.name))
    for variant in merged.variants:
        _Builder(merged, variant, made).build()
    return made


def without_tasks(made: MergedProgram, tasks: Collection[str]) -> MergedProgram:
    """The same without some tasks and all that depend on them: O(tasks + reads)."""
    program = made.program
    gone = set(tasks)
    names = list(program.tasks)
    for t in program.graph.order.tolist():
        task = program.tasks[names[t]]
        makers = {program.producer[item] for item in task.inputs if item in program.producer}
        if gone & makers or gone & set(task.after):
            gone.add(task.name)
    left = Program(program.name)
    left.tasks = {name: task for name, task in program.tasks.items() if name not in gone}
    left.data = {name: item for name, item in program.data.items() if program.producer.get(name) not in gone}
    left.producer = {item: maker for item, maker in program.producer.items() if maker not in gone}
    items = {item: identity for item, identity in made.items.items() if item in left.producer}
    return replace(made, program=left, items=items)


def label_text(labels: dict[str, Label], plain: bool = True) -> str:
    """The labels of an instance in its name: texts as they are, numbers with the name of their axis.

    >>> label_text({"image": "region_a", "sigma": 0.5})
    'region_a,sigma=0.5'
    """
    return ",".join(
        value if isinstance(value, str) and plain else f"{name}={value}" for name, value in labels.items()
    )


class _Builder:
    """Adds the instances of one variant."""

    def __init__(self, merged: Merged, variant: Variant, made: MergedProgram) -> None:
        self.merged = merged
        self.variant = variant
        self.made = made
        self.base = variant.program
        self.packed: dict[Any, Any] = {}

    def build(self) -> None:
        names = list(self.base.tasks)
        for t in self.base.graph.order.tolist():
            self._add_task(self.base.tasks[names[t]])
        self._add_results()

    def _add_task(self, task: Task) -> None:
        of = self.variant.tasks[task.name]
        labels = self.merged.labels(self.variant, of)
        options = self.variant.bodies[task.name]
        for i, identity in enumerate(of.identity):
            if identity in self.made.of_identity:
                continue
            suffix = label_text(labels[i])
            name = self._free(f"{task.name}@{suffix}" if suffix else task.name, self.made.program.tasks)
            inputs = tuple(self._item(item, int(of.first[i])) for item in task.inputs)
            outputs = tuple(
                self._output(task, k, suffix, labels[i], identity, name) for k in range(len(task.outputs))
            )
            original = options[int(of.body[i])]
            body, given = self._body(task, original, int(of.first[i]))
            replaced = original is not task.body and not isinstance(original, Command)
            after = tuple(self._task_at(other, int(of.first[i])) for other in task.after)
            self.made.program.tasks[name] = replace(
                task, name=name, inputs=inputs, outputs=outputs, body=body, after=after,
                kind=getattr(unwrapped(original)[0], "__qualname__", task.kind) if replaced else task.kind,
                labels={**task.labels, **labels[i]},
            )  # fmt: skip
            self.made.of_identity[identity] = name
            self._note(task, name, identity, original, given, inputs, labels[i])

    def _note(
        self, task: Task, name: str, identity: str, body: Any, given: dict[str, Any],
        inputs: tuple[str, ...], labels: dict[str, Label],
    ) -> None:  # fmt: skip
        function, keywords = unwrapped(body)
        shown = {key: repr(value)[:200] for key, value in (keywords | given).items()}
        read = {
            item: self.made.item_identity(called) for item, called in zip(task.inputs, inputs, strict=True)
        }
        self.made.facts[name] = TaskFacts(
            identity, name, task.name, self.merged.known.code(function).digest, shown, read,
            self.merged.declared.facts, labels,
        )  # fmt: skip

    def _output(
        self, task: Task, k: int, suffix: str, labels: dict[str, Label], identity: str, name: str
    ) -> str:
        item = self.base.data[task.outputs[k]]
        called = f"{item.name}@{suffix}" if suffix else item.name
        if item.name == f"{task.name}.done":
            called = f"{name}.done"
        called = self._free(called, self.made.program.data)
        self.made.program.data[called] = replace(item, name=called, path=None, result=False)
        self.made.program.producer[called] = name
        self.made.items[called] = item_identity(identity, k)
        return called

    def _item(self, name: str, point: int) -> str:
        """The item that a combination reads under this name; inputs from outside are added when first read."""
        maker = self.base.producer.get(name)
        if maker is not None:
            task = self.made.program.tasks[self._task_at(maker, point)]
            return task.outputs[self.base.tasks[maker].outputs.index(name)]
        source = self.variant.inputs[name]
        j = int(source.of_point[point])
        key = name, source.identity[j]
        if key not in self.made.inputs:
            self.made.inputs[key] = self._add_input(name, source, j)
        return self.made.inputs[key]

    def _add_input(self, name: str, source: Instances, j: int) -> str:
        item, data = self.base.data[name], self.made.program.data
        axes = input_axes(item, self.merged.experiment)
        point = self.variant.points[int(source.first[j])]
        if axes:
            item = input_at(item, axes, point, self.merged.experiment)
        varied = [(self.merged.experiment.axes[k], int(point[k])) for k in axes]
        suffix = label_text({axis.name: axis.labels[v] for axis, v in varied})
        called = self._free(f"{name}@{suffix}" if suffix else name, data)
        data[called] = replace(item, name=called, result=False)
        self.made.external[called] = source.identity[j]
        return called

    def _task_at(self, task: str, point: int) -> str:
        of = self.variant.tasks[task]
        return self.made.of_identity[of.identity[int(of.of_point[point])]]

    def _body(self, task: Task, body: Any, point: int) -> tuple[Any, dict[str, Any]]:
        """The function or command with the parameters of a combination; equal ones are one object."""
        row = self.variant.points[point]
        given = {
            axis.parameter: axis.values[int(row[k])]
            for k, axis in enumerate(self.merged.experiment.axes)
            if axis.what == "parameter" and axis.target == task.name
            and self._takes(body, len(task.inputs), axis.parameter)
        }  # fmt: skip
        key = (task.name, id(body), *((name, type(value), value) for name, value in given.items()))
        if key not in self.packed:
            self.packed[key] = _with_parameters(task, body, given)
        return self.packed[key], given

    @functools.cache  # noqa: B019 - lives as long as the builder
    def _takes(self, body: Any, inputs: int, parameter: str) -> bool:
        return takes(body, inputs, parameter)

    def _add_results(self) -> None:
        """Mark results: an item may be a result of one task and also what another makes on the way."""
        data = self.made.program.data
        for item in self.base.results():
            maker = self.base.producer.get(item.name)
            if maker is None:
                continue
            of = self.variant.tasks[maker]
            k = self.base.tasks[maker].outputs.index(item.name)
            outputs = [self.made.program.tasks[self.made.of_identity[i]].outputs[k] for i in of.identity]
            labels = self.merged.labels(self.variant, of) if item.path is not None else []
            for i, called in enumerate(outputs):
                path = data[called].path
                if item.path is not None and path is None:
                    path = _labelled(item.path, label_text(labels[i]))
                data[called] = replace(data[called], result=True, path=path)
            for number, j in zip(self.variant.numbers.tolist(), of.of_point.tolist(), strict=True):
                self.made.results.append((number, item.name, outputs[j]))

    @staticmethod
    def _free(name: str, taken: dict[str, Any]) -> str:
        if name not in taken:
            return name
        number = 2
        while f"{name}#{number}" in taken:
            number += 1
        return f"{name}#{number}"


def _labelled(path: str, suffix: str) -> str:
    """The file of a result of one combination.

    >>> _labelled("out/edges.png", "region_a,sigma=0.5")
    'out/edges-region_a,sigma=0.5.png'
    """
    if not suffix:
        return path
    parts = PurePosixPath(path)
    return str(parts.with_name(f"{parts.stem}-{_UNSAFE.sub('_', suffix)[:150]}{parts.suffix}"))


def _with_parameters(task: Task, body: Any, given: dict[str, Any]) -> Any:
    if isinstance(body, Command):
        argv = body.argv
        for name, value in given.items():
            argv = tuple(argument.replace(f"{{{name}}}", as_argument(value)) for argument in argv)
        return LocalCommand(argv, body.stdout, body.literal, task.name, task.inputs, task.outputs)
    return functools.partial(body, **given) if given else body


def points_of(merged: Merged) -> Iterator[tuple[int, dict[str, Label]]]:
    """Each combination with its labels."""
    axes = merged.experiment.axes
    for number, row in enumerate(merged.experiment.points.tolist()):
        yield number, {axis.name: axis.labels[v] for axis, v in zip(axes, row, strict=True)}
