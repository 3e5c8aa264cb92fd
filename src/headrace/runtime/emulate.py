"""Emulation of programs without bodies: tasks that take the given time and produce data of the given size."""

from __future__ import annotations

import time
from dataclasses import dataclass

from headrace.model.errors import UsageError
from headrace.model.graph import ASSUMED_SIZE
from headrace.model.program import Program
from headrace.model.units import show_size
from headrace.runtime.files import Generated
from headrace.runtime.pace import PACE

MEMORY_LIMIT = 4 * 10**9
"""Maximum total size in bytes of emulated items, which workers keep in memory."""


@dataclass(frozen=True, slots=True)
class Emulated:
    """The body of an emulated task."""

    seconds: float
    """On a worker of speed 1."""
    sizes: tuple[int, ...]
    burn: bool = False
    sets_own_pace = True

    def __call__(self, *inputs: object) -> object:
        """Take as long as the task takes on this worker, and produce its outputs.

        >>> Emulated(0.0, (2, 3))()
        (b'\\x00\\x00', b'\\x00\\x00\\x00')
        """
        _spend(self.seconds / PACE.speed, self.burn)
        made = tuple(bytes(size) for size in self.sizes)
        return made[0] if len(made) == 1 else made


def emulate(
    program: Program, *, time_scale: float, size_scale: float | None = None, burn: bool = False
) -> Program:
    """The same graph with task bodies that sleep (or burn CPU) and produce data of the scaled size.

    Work and sizes of the new program are scaled, so that plans for it are in real seconds.

    >>> program = Program("one")
    >>> _ = program.task(work=10.0, name="a", outputs={"x": 1000})
    >>> small = emulate(program, time_scale=0.1)
    >>> small.tasks["a"].work, small.data["x"].size
    (1.0, 100.0)
    """
    bytes_scale = time_scale if size_scale is None else size_scale
    for name, scale in (("time_scale", time_scale), ("size_scale", bytes_scale)):
        if not 0 <= scale < float("inf"):
            raise UsageError(f"{name} is {scale}", where=program.name, hint="give a number of 0 or more")
    size = {
        item.name: int((ASSUMED_SIZE if item.size is None else item.size) * bytes_scale)
        for item in program.data.values()
    }
    total = sum(size.values())
    if total > MEMORY_LIMIT:
        raise UsageError(
            f"the emulated items would take {show_size(total)}, more than {show_size(MEMORY_LIMIT)}",
            where=program.name,
            hint=f"use a size scale of {bytes_scale * MEMORY_LIMIT / total:.2g} or less",
        )
    emulated = Program(program.name)
    for item in program.inputs():
        emulated.input(item.name, size=size[item.name], value=Generated(size[item.name]))
    for task in program.tasks.values():
        work = task.work * time_scale
        body = Emulated(work, tuple(size[name] for name in task.outputs), burn)
        emulated.task(
            body,
            inputs=task.inputs,
            outputs={name: size[name] for name in task.outputs},
            work=work,
            name=task.name,
            kind=f"emulated {task.kind}" if task.kind else "",
            after=task.after,
        )
    for item in program.data.values():
        if item.result:
            emulated.output(item.name)
    return emulated


def _spend(seconds: float, burn: bool) -> None:
    """Sleep, or burn CPU time; on a busy machine burning takes longer, as real work does."""
    if not burn:
        time.sleep(seconds)
        return
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
