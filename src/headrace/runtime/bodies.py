"""Execution of one task on a worker: call a function or start a command, and measure it."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from headrace.model.errors import HeadraceError, TaskFailed
from headrace.model.program import Command
from headrace.runtime import crash_notes
from headrace.runtime.core_slots import CORES, HostRoom, Room
from headrace.runtime.files import File, FileData, Scratch, StagedFile, set_current_scratch
from headrace.runtime.local_command import LocalCommand
from headrace.runtime.pace import wait_out
from headrace.runtime.packing import Packed, unpack, unpack_once
from headrace.runtime.sealing import hint_for, safe_text, seal, unseal
from headrace.runtime.task_logs import LIMIT, SHIPPED, TaskLog, captured
from headrace.runtime.timeouts import call_within
from headrace.runtime.worker_report import RunningTask, attach_measurement, running_task, ship

_SHOWN = 6000
"""Maximum characters of an error message: the engine replaces errors of more than 10,000."""


@dataclass(frozen=True, slots=True)
class Job:
    """One task in the form sent to a worker."""

    task: str
    payload: bytes
    """The packed function or command."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    cores: int = 1
    timeout: float = math.inf
    """Seconds that it may take."""
    topic: str = ""
    """Where the client listens for logs."""
    logs: str = ""
    """The folder for logs, if it is on this machine."""
    memory: float = 0.0
    """Bytes that it needs."""
    resources: tuple[tuple[str, int], ...] = ()
    """How many of each resource it needs."""
    host_room: HostRoom = ()
    """Hosts whose memory and resources are known, with these; the others have what their workers say."""

    def __dask_tokenize__(self) -> str:
        """Keys of the engine are unique without it: the engine need not look into this for each task."""
        return self.task

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled three times for each task: as a dataclass with slots would be, it takes five times as long."""
        return Job, (
            self.task, self.payload, self.inputs, self.outputs, self.cores, self.timeout, self.topic, self.logs,
            self.memory, self.resources, self.host_room,
        )  # fmt: skip


@dataclass(slots=True)
class Measured:
    """Measurements of one execution of a task."""

    start: float
    finish: float = 0.0
    cpu: float = 0.0
    """CPU seconds of the function's thread; for a command, its elapsed time."""
    read: int = 0
    """Total size of its inputs in bytes."""
    sizes: list[tuple[str, int]] = field(default_factory=list)
    """Size of each output in bytes."""


def run_job(job: Job, *values: Any) -> Any:
    """Execute a task on this worker; values beyond its inputs are signals that only enforce order.

    Returns its output, or a tuple of outputs. The measurement is sent to the engine when the task ends.
    """
    here = running_task()
    notes = crash_notes.NOTES
    if notes is not None:
        notes.begin(here.key, job.task)
    try:
        with CORES.occupied(Room(job.cores, job.memory, job.resources), _room(job, here), job.task):
            outputs, measured = _logged(job, values[: len(job.inputs)], here.host, here.attempt)
    finally:
        if notes is not None:
            notes.end()
    attach_measurement(
        {
            "start": measured.start,
            "finish": measured.finish,
            "cpu": measured.cpu,
            "read": measured.read,
            "sizes": measured.sizes,
        }
    )
    sealed = tuple(
        seal(v, job.task, name, size) for v, (name, size) in zip(outputs, measured.sizes, strict=True)
    )
    output = sealed[0] if len(sealed) == 1 else sealed
    if any(isinstance(each, StagedFile) for each in sealed):
        from headrace.runtime.dask_files import hold_here

        hold_here(output)
    return output


def _room(job: Job, here: RunningTask) -> Room:
    """What this worker has for tasks."""
    known = (room for room in job.host_room if room[0] == here.host)
    _, memory, resources = next(known, ("", math.inf, here.resources))
    return Room(here.threads, min(here.memory, memory), resources)


def _logged(job: Job, values: Sequence[Any], host: str, attempt: int) -> tuple[tuple[Any, ...], Measured]:
    """Execute a task; what it prints is kept."""
    log = TaskLog(job.task, job.logs, host, attempt, LIMIT if job.logs else SHIPPED)
    try:
        with captured(log):
            return execute_job(job, values)
    finally:
        printed = log.close()
        if printed and job.topic:
            ship(job.topic, {"events": (), "measured": (), "logs": [(job.task, host, attempt, printed)]})


def execute_job(job: Job, values: Sequence[Any]) -> tuple[tuple[Any, ...], Measured]:
    """Run a task; return its outputs and measurements. Every failure is raised as a TaskFailed.

    >>> from headrace.runtime.packing import packer
    >>> with packer() as pack:
    ...     job = Job("t", pack(divmod, "t"), ("a", "b"), ("q", "r"))
    >>> execute_job(job, (7, 2))[0]
    (3, 1)
    """
    measured = Measured(start=time.time())
    began = time.perf_counter()
    try:
        body = unpack_once(job.payload)
        # Code is loaded once per worker: that is not the task's run time.
        measured.start, began = time.time(), time.perf_counter()
        inputs = [unseal(unpack(v.payload) if isinstance(v, Packed) else v) for v in values]
        with Scratch(_scratch_parent) as scratch:
            if isinstance(body, Command):
                from headrace.runtime.commands import run_command

                own = body if isinstance(body, LocalCommand) else job
                named = dict(zip(own.inputs, inputs, strict=True))
                outputs = run_command(body, job.task, named, own.outputs, scratch, job.timeout)
                measured.cpu = time.perf_counter() - began
            else:
                outputs = _call(body, job, inputs, scratch, measured)
            scratch.require_unchanged()
    except HeadraceError as error:
        error.problem = safe_text(error.problem)
        error.where = error.where or f"task {job.task!r}"
        raise
    except BaseException as error:  # whatever the user's code raises is the task's failure
        raise TaskFailed(_shown(error), where=f"task {job.task!r}", hint=hint_for(error)) from None
    if not getattr(body, "sets_own_pace", False):
        wait_out(measured.cpu, time.perf_counter() - began)
    measured.read = sum(size_of(v) for v in inputs)
    measured.sizes = [(name, size_of(v)) for name, v in zip(job.outputs, outputs, strict=True)]
    measured.finish = measured.start + time.perf_counter() - began
    return outputs, measured


def unpack_input(payload: bytes, item: str) -> Any:
    """An input of the program, as its readers get it."""
    return seal(unpack(payload), "input", item, len(payload))


def size_of(value: Any) -> int:
    """Approximate size in bytes of a value when it is transferred.

    >>> size_of(b"abc"), size_of(FileData("x", b"abcd")), size_of(None)
    (3, 4, 0)
    """
    if value is None:
        return 0
    if isinstance(value, FileData):
        return len(value.data)
    if isinstance(value, StagedFile):
        return value.size
    if isinstance(value, bytes | bytearray):
        return len(value)
    from dask.sizeof import sizeof

    return int(sizeof(value))


def _call(
    body: Callable[..., Any], job: Job, inputs: Sequence[Any], scratch: Scratch, measured: Measured
) -> tuple[Any, ...]:
    arguments = [
        materialise(scratch, v.name, v) if isinstance(v, FileData | StagedFile) else v for v in inputs
    ]

    def in_its_folder(*given: Any) -> Any:
        set_current_scratch(scratch)  # here: a time limit runs it in a thread of its own
        try:
            return body(*given)
        finally:
            set_current_scratch(None)

    value, measured.cpu = call_within(in_its_folder, arguments, job.timeout)
    if len(job.outputs) == 1:
        return (_stored(value, job.outputs[0], scratch),)
    if not isinstance(value, tuple | list) or len(value) != len(job.outputs):
        got = f"{len(value)} values" if isinstance(value, tuple | list) else f"one {type(value).__name__}"
        raise TaskFailed(
            f"it returned {got}, but has {len(job.outputs)} outputs",
            where=f"task {job.task!r}",
            hint=f"return a tuple of {len(job.outputs)} values",
        )
    return tuple(_stored(each, name, scratch) for each, name in zip(value, job.outputs, strict=True))


def materialise(scratch: Scratch, name: str, value: Any, *, literal: bool = False) -> Path:
    """A value as a file for a task."""
    if not isinstance(value, StagedFile):
        return scratch.write(name, value, literal=literal)
    from headrace.runtime.dask_files import store_here

    store = store_here(value.run)
    if store is None:
        raise TaskFailed(f"the file {value.name!r} is not on this worker")
    return store.show(scratch, value, name=name, literal=literal)


def store_output(path: Path, name: str, item: str, *, move: bool) -> FileData | StagedFile:
    """A file or folder that a task has made, as a value; outside a worker, files are read whole."""
    from headrace.runtime.dask_files import store_here

    store = store_here()
    if store is not None:
        return store.adopt(path, name, item, move=move)
    if path.is_dir():
        raise TaskFailed(f"its output {item!r} is a folder, and this is not a worker")
    return FileData(name, path.read_bytes())


def _stored(value: Any, item: str, scratch: Scratch) -> Any:
    if not isinstance(value, File):
        return value
    path = Path(value.path)
    if not path.exists():
        raise TaskFailed(f"its output {item!r} is {str(path)!r}, which does not exist", hint="write it first")
    own = path.resolve().is_relative_to(scratch.root.resolve())
    return store_output(path, path.name, item, move=own)


def _scratch_parent() -> Path | None:
    """In the worker's file store, so that files need not be copied to get there."""
    from headrace.runtime.dask_files import store_here

    store = store_here()
    return None if store is None else store.folder


def _shown(error: BaseException) -> str:
    """The traceback without frames of Headrace, which are of no use to the user."""
    own = str(Path(__file__).resolve().parent)
    frame: TracebackType | None = error.__traceback__
    while frame is not None and str(Path(frame.tb_frame.f_code.co_filename).resolve().parent) == own:
        frame = frame.tb_next
    text = "".join(traceback.format_exception(type(error), error, frame)).rstrip()
    return safe_text(text[-_SHOWN:])
