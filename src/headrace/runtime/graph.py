"""A program as one graph for the engine, and the meaning of its keys.

A task is one key whose value is its output. A task with several outputs also has a small key for each output
that is read, so that items are transferred separately; a task that others come `after` has one with an empty
value, so that ordering moves no data. Inputs are keys too, unless they are small enough to be sent with
each reader.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from dask._task_spec import Task as EngineTask
from dask._task_spec import TaskRef

from headrace.model.errors import BadFile, BadProgram, UsageError
from headrace.model.program import Data, Program, Task
from headrace.model.units import show_size
from headrace.runtime.bodies import Job, run_job, unpack_input
from headrace.runtime.commit import load_here, run_and_keep
from headrace.runtime.core_slots import HostRoom
from headrace.runtime.files import Generated, StagedFile
from headrace.runtime.input_files import InputFile, SharedFolders, load_input, read_input
from headrace.runtime.kept_files import Keeping, Kept, load_kept, sealed_parts
from headrace.runtime.packing import Packed, packer
from headrace.runtime.unique_graph import UniqueGraph

Key: TypeAlias = tuple[str, str]
Pack: TypeAlias = Callable[[object, str], bytes]

INPUT_LIMIT = 2 * 10**9
"""Maximum total size of values and small files in bytes: they pass through the engine's scheduler."""
_TRAVELS_ALONG = 4096
"""Inputs of at most this many bytes are sent with each reader instead of having their own key."""


@dataclass(frozen=True)
class Layout:
    """The meaning of a graph's keys: all that the plugin inside the engine needs to know."""

    tasks: dict[Key, str] = field(default_factory=dict)
    items: dict[Key, str] = field(default_factory=dict)
    """The item whose value a key holds."""
    follows: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    """Keys that are not tasks, each with tasks; it is placed with the first of them that has a host."""
    wanted: tuple[Key, ...] = ()
    """Keys that the client keeps: when all are available, the run is complete."""
    n_items: int | None = None
    """Items of the program. The graph of a run under rules has more: signals that only the coordinator knows."""


@dataclass(frozen=True)
class EngineGraph:
    """A program ready to be submitted."""

    graph: dict[Key, Any]
    layout: Layout
    results: dict[str, Key]
    """The key of each result produced by a task."""
    given: dict[str, Any]
    """Results that are inputs: they never leave the client."""
    files: dict[str, InputFile] = field(default_factory=dict)
    """Inputs that workers may ask for, by token."""


@dataclass(frozen=True, slots=True)
class JobSettings:
    """What all tasks of a run share."""

    timeout: float = math.inf
    """Seconds that an attempt may take, for tasks that do not say so themselves."""
    topic: str = ""
    """Where the client listens for logs."""
    logs: str = ""
    """The folder for logs, if workers can write to it."""
    host_room: HostRoom = ()
    """Hosts whose memory and resources are known, with these."""
    shared: SharedFolders = field(default_factory=dict)
    """By host: folders that it sees as the client does."""
    inputs: str = ""
    """Where the client listens for requests for inputs."""


DEFAULT_SETTINGS = JobSettings()


def build_engine_graph(
    program: Program,
    token: str,
    base: str | Path = ".",
    settings: JobSettings = DEFAULT_SETTINGS,
    keeping: Keeping | None = None,
    shared: bool = True,
) -> EngineGraph:
    """Translate a program: O(tasks + items + reads).

    With `keeping`, workers keep what they make, and inputs may be `Kept` values of an earlier session: read by
    the workers if they share the record's folder, or else sent to them.

    Keys are (kind-token, task name): tasks of one kind are one group to the engine, which learns their
    times together, and no two runs share a key.
    """
    program.graph  # noqa: B018 - checks the program: dangling names, cycles
    _refuse_broken_names(program)
    with packer() as pack:
        return _Builder(program, token, Path(base), pack, settings, keeping, shared).build()


class _Builder:
    def __init__(
        self,
        program: Program,
        token: str,
        base: Path,
        pack: Pack,
        settings: JobSettings,
        keeping: Keeping | None = None,
        shared: bool = True,
    ) -> None:
        self.keeping = keeping
        self.shared = shared
        self.program = program
        self.settings = settings
        self.token = token
        self.base = base
        self.pack = pack
        self.packed_bodies: dict[int, bytes] = {}
        self.input_bytes = 0
        self.graph: dict[Key, Any] = UniqueGraph(token)
        self.tasks: dict[Key, str] = {}
        self.items: dict[Key, str] = {}
        self.follows: dict[Key, tuple[str, ...]] = {}
        self.task_key = {t.name: (f"{t.kind or 'task'}-{token}", t.name) for t in program.tasks.values()}
        self.readers: dict[str, list[str]] = {}
        self.item_argument: dict[str, Any] = {}
        self.files: dict[str, InputFile] = {}

    def build(self) -> EngineGraph:
        results = {item.name for item in self.program.results()}
        for task in self.program.tasks.values():
            for name in dict.fromkeys(task.inputs):
                self.readers.setdefault(name, []).append(task.name)
        given = {d.name: self._given(d) for d in self.program.inputs() if d.name in results}
        for item in self.program.inputs():
            if item.name in self.readers:
                self._add_input(item)
        item_key = self._name_items(results)
        before = dict.fromkeys(name for task in self.program.tasks.values() for name in task.after)
        for name in before:
            self._add_signal(name)
        for task in self.program.tasks.values():
            self._add_task(task, results)
        made = {name: item_key[name] for name in sorted(results) if name in item_key}
        ends = [
            self.task_key[task.name]
            for task in self.program.tasks.values()
            if task.name not in before and not any(o in self.readers or o in results for o in task.outputs)
        ]
        wanted = tuple(dict.fromkeys([*made.values(), *ends]))
        layout = Layout(self.tasks, self.items, self.follows, wanted, self.program.graph.n_items)
        return EngineGraph(self.graph, layout, made, given, self.files)

    def _add_input(self, item: Data) -> None:
        key = (f"headrace.input-{self.token}", item.name)
        value = self._value(item)
        made: EngineTask | None = None
        if isinstance(value, Generated):
            made = EngineTask(key, bytes, value.size)
        elif isinstance(value, Kept) and value.file and self.shared:
            made = EngineTask(key, load_here, self.keeping, value)
        elif isinstance(value, Kept) and value.is_staged:
            value = self._kept_file(item, value)
        if isinstance(value, InputFile):
            self.files[value.token] = value
            made = EngineTask(key, load_input, value)
        if made is not None:
            self.graph[key] = made
            self._note_item(key, item.name, tuple(self.readers[item.name]))
            return
        payload = self._payload(item, value)
        self.input_bytes += len(payload)
        if self.input_bytes > INPUT_LIMIT:
            raise BadFile(
                f"the inputs exceed {show_size(INPUT_LIMIT)}",
                where=f"{self.program.name}: input {item.name!r}",
                hint="give large values as files",
            )
        if len(payload) <= _TRAVELS_ALONG:
            self.item_argument[item.name] = Packed(payload)
            return
        self.graph[key] = EngineTask(key, unpack_input, payload, item.name)
        self._note_item(key, item.name, tuple(self.readers[item.name]))

    def _payload(self, item: Data, value: Any) -> bytes:
        if not isinstance(value, Kept):
            return self.pack(value, f"input {item.name!r}")
        parts = self._sealed(value)
        # A pickle without large buffers is sent as it was kept.
        return bytes(parts[0]) if len(parts) == 1 else self.pack(self._given(item), f"input {item.name!r}")

    def _sealed(self, kept: Kept) -> list[memoryview]:
        assert self.keeping is not None, "kept values are read only in a run that keeps"
        return sealed_parts(kept, Path(self.keeping.folder), self.keeping.key, self.keeping.run)

    def _given(self, item: Data) -> Any:
        """The value of an input that is also a result."""
        value = self._value(item)
        if isinstance(value, InputFile):
            return value.here()
        if not isinstance(value, Kept):
            return value
        assert self.keeping is not None, "kept values are read only in a run that keeps"
        return load_kept(value, Path(self.keeping.folder), self.keeping.key, self.keeping.run)

    def _kept_file(self, item: Data, kept: Kept) -> Any:
        """A kept file that workers cannot see: sent like an input."""
        path = self._given(item).path
        return read_input(replace(item, path=path), self.base, self.token, self.settings.inputs, {})

    def _name_items(self, results: set[str]) -> dict[str, Key]:
        """Choose the key of each item that a task produces; adds the keys that split outputs."""
        keys: dict[str, Key] = {}
        for task in self.program.tasks.values():
            whole = self.task_key[task.name]
            if len(task.outputs) == 1:
                keys[task.outputs[0]] = whole
                self.items[whole] = task.outputs[0]
                self.item_argument[task.outputs[0]] = TaskRef(whole)
                continue
            for index, name in enumerate(task.outputs):
                if name not in self.readers and name not in results:
                    continue
                key = (f"headrace.item-{self.token}", name)
                self.graph[key] = EngineTask(key, take_output, index, TaskRef(whole))
                self._note_item(key, name, (task.name,))
                keys[name] = key
        return keys

    def _note_item(self, key: Key, item: str, follows: tuple[str, ...]) -> None:
        self.items[key] = item
        self.follows[key] = follows
        self.item_argument[item] = TaskRef(key)

    def _add_signal(self, task: str) -> None:
        key = (f"headrace.signal-{self.token}", task)
        self.graph[key] = EngineTask(key, nothing, TaskRef(self.task_key[task]))
        self.follows[key] = (task,)

    def _add_task(self, task: Task, results: set[str]) -> None:
        key = self.task_key[task.name]
        self.tasks[key] = task.name
        timeout = self.settings.timeout if task.timeout is None else task.timeout
        job = Job(
            task.name, self._body(task), task.inputs, task.outputs,
            task.cores, timeout, self.settings.topic, self.settings.logs,
            task.memory, tuple(task.resources.items()),
            self.settings.host_room if task.memory or task.resources else (),
        )  # fmt: skip
        values = [self.item_argument[name] for name in task.inputs]
        signals = [TaskRef((f"headrace.signal-{self.token}", name)) for name in dict.fromkeys(task.after)]
        if self.keeping is None:
            self.graph[key] = EngineTask(key, run_job, job, *values, *signals)
            return
        wanted = tuple(name for name in task.outputs if name in results)
        if not wanted and not any(name in self.readers for name in task.outputs):
            wanted = task.outputs  # nobody reads them: that it has run is its result
        self.graph[key] = EngineTask(key, run_and_keep, self.keeping, wanted, job, *values, *signals)

    def _body(self, task: Task) -> bytes:
        if task.body is None:
            raise UsageError(
                "it has a run time but no function or command",
                where=f"{self.program.name}: task {task.name!r}",
                hint="emulate the program, or give the task a function or a command",
            )
        if id(task.body) not in self.packed_bodies:
            self.packed_bodies[id(task.body)] = self.pack(task.body, f"task {task.name!r}")
        return self.packed_bodies[id(task.body)]

    def _value(self, item: Data) -> Any:
        if item.path is None or item.value is not None:
            if item.value is None and (item.size is None or item.size > 0):
                raise BadProgram(
                    f"input {item.name!r} has a size but no content",
                    where=self.program.name,
                    hint="give it a path or a value, or emulate the program",
                )
            return item.value
        return read_input(item, self.base, self.token, self.settings.inputs, self.settings.shared)


def _refuse_broken_names(program: Program) -> None:
    """The engine's messages cannot hold names with half of a surrogate pair, and it would wait for ever."""
    for name in (*program.tasks, *program.data, *(task.kind for task in program.tasks.values())):
        try:
            name.isascii() or name.encode()
        except UnicodeEncodeError:
            raise BadProgram(
                f"the name {name!r} is not valid Unicode", where=program.name, hint="use another name"
            ) from None


def take_output(index: int, outputs: Any) -> Any:
    """One of several outputs of a task."""
    value = outputs[index]
    if isinstance(value, StagedFile):
        from headrace.runtime.dask_files import hold_here

        hold_here(value)
    return value


def nothing(_: Any) -> None:
    """The value of a signal: it indicates that a task has finished and holds no data."""
