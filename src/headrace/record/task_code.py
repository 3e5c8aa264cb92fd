"""What each task of a program executes, as digests: whether a change since a run was started concerns a task.

A digest covers the task's code (`headrace.record.code_parts`) and the values of its inputs. A task that refers to a
value whose changes could not be noticed has no digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.program import Program
from headrace.record.code_parts import NotUnderstoodError, code_of, digest_of, value_digest

MOST_TASKS = 20_000
"""Larger programs have no digests: they would take longer to store than they are worth."""


def code_digests(program: Program) -> dict[str, str]:
    """By task, a digest of what it executes; without tasks that cannot be understood. O(tasks + code).

    >>> def digest(factor):
    ...     program = Program()
    ...     x = program.input("x", value=2)
    ...     _ = program.task(lambda x: factor * x, inputs=[x], name="t"), program.task(abs, inputs=[x], name="u")
    ...     return code_digests(program)
    >>> one, other = digest(3), digest(4)
    >>> one["t"] == other["t"], one["u"] == other["u"], one == digest(3)
    (False, True, True)
    """
    if len(program.tasks) > MOST_TASKS:
        return {}
    bodies: dict[int, str | None] = {}
    inputs = {item.name: _understood(item.value) for item in program.inputs()}
    found = {}
    for task in program.tasks.values():
        if id(task.body) not in bodies:
            bodies[id(task.body)] = _understood(task.body, is_code=True)
        parts = [bodies[id(task.body)], *(inputs[name] for name in task.inputs if name in inputs)]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            found[task.name] = digest_of(known)
    return found


def changed_tasks(
    program: Program, before: Mapping[str, str], tasks: tuple[str, ...], file_changed: bool
) -> list[str]:
    """Those of the tasks that may execute something else than before; without a digest, if their file has changed."""
    now = code_digests(program)
    return [
        task
        for task in tasks
        if (before[task] != now[task] if task in before and task in now else file_changed)
    ]


def _understood(value: Any, is_code: bool = False) -> str | None:
    """The digest of a value; None if it has none."""
    try:
        return code_of(value).digest if is_code else value_digest(value)
    except (NotUnderstoodError, RecursionError):
        return None
