"""The part of a program that still has to run when some of its items are kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace.model.program import Program


@dataclass(frozen=True)
class Remaining:
    """What is left of a program, as a program: kept items that are still read, or results, are its inputs."""

    program: Program
    reused: tuple[str, ...]
    """Tasks that need not run again."""


def remaining_program(
    program: Program,
    kept: Mapping[str, tuple[float, Any]],
    done: Collection[str] = (),
    again: Collection[str] = (),
) -> Remaining:
    """Leave out every task whose outputs are kept, or needed by nothing that still has to run.

    Parameters
    ----------
    kept
        Size and value of each kept item; the value may be a reference to it.
    done
        Tasks that have finished: others that come `after` them need not wait again.
    again
        Items that are to be made even if nothing needs them.

    O(tasks + reads).

    >>> program = Program("three")
    >>> a = program.task(None, outputs=["a"], name="first")
    >>> b = program.task(None, inputs=[a], outputs=["b"], name="second")
    >>> c = program.task(None, inputs=[b, a], outputs=["c"], name="third")
    >>> left = remaining_program(program, {"b": (10.0, "reference")})
    >>> list(left.program.tasks), [d.name for d in left.program.inputs()], left.reused
    (['first', 'third'], ['b'], ('second',))
    """
    needed = _needed(program, kept, set(done), again)
    results = {item.name for item in program.results()}
    left = Program(program.name)
    read = {name for task in needed for name in program.tasks[task].inputs}
    for name, item in program.data.items():
        producer = program.producer.get(name)
        wanted = replace(item, result=name in results)
        if producer in needed and producer is not None:
            left.data[name] = wanted
            left.producer[name] = producer
        elif name in kept and (name in read or name in results):
            size, value = kept[name]
            # An empty item is never transferred: what is kept always has a size.
            left.data[name] = replace(wanted, size=max(1.0, size), value=value, destinations=())
        elif producer is None:
            left.data[name] = wanted
    for name, task in program.tasks.items():
        if name in needed:
            left.tasks[name] = replace(task, after=tuple(b for b in task.after if b in needed))
    return Remaining(left, tuple(name for name in program.tasks if name not in needed))


def _needed(program: Program, kept: Collection[str], done: set[str], again: Collection[str]) -> set[str]:
    """Tasks that must run: those that make missing results, or what is to be made again, and what they need."""
    results = {item.name for item in program.results()}
    read = {name for task in program.tasks.values() for name in task.inputs}
    waiting = [
        name
        for name, task in program.tasks.items()
        if any(out in results and out not in kept for out in task.outputs)
        or (not any(out in results or out in read for out in task.outputs) and not _is_done(task, kept, done))
    ]
    needed = set(waiting)
    for name in sorted({program.producer[item] for item in again if item in program.producer} - needed):
        needed.add(name)
        waiting.append(name)
    while waiting:
        task = program.tasks[waiting.pop()]
        before = [program.producer[i] for i in task.inputs if i not in kept and i in program.producer]
        before += [name for name in task.after if not _is_done(program.tasks[name], kept, done)]
        for name in before:
            if name not in needed:
                needed.add(name)
                waiting.append(name)
    return needed


def _is_done(task: Any, kept: Collection[str], done: set[str]) -> bool:
    return task.name in done or all(out in kept for out in task.outputs)
