"""The array (CSR) form of a program: built once, shared by every algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from headrace.model.errors import BadProgram
from headrace.model.needs import NO_NEEDS, Needs
from headrace.model.sited import SiteLists

Ints: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

OUTSIDE = -1
"""The producer of an input of the program."""
ASSUMED_SIZE = 1.0
"""Assumed bytes of an item of unknown size until it is measured: it is transferred, but has no influence on plans."""


class LabelColumn(NamedTuple):
    """One label of the tasks that have it."""

    tasks: Ints
    """Increasing."""
    values: tuple[str | float, ...]


@dataclass(frozen=True, eq=False)
class Graph:
    """Tasks 0..n-1 and data items 0..m-1 as arrays.

    `reads[read_ptr[t]:read_ptr[t+1]]` are the items that task t reads; `writes` and `readers` are stored in the same
    way. An item of 0 bytes only orders tasks and needs no transfer. `result` items are returned to the platform's
    origin, or to one of their `destinations` if they have any. Inputs of the program are stored at their
    `initial_locations`, or at the origin if they have none.
    """

    work: Floats
    """Seconds of each task on a host of speed 1."""
    kind: Ints
    """Kind of each task, as an index into `kinds`. Tasks of one kind share history."""
    kinds: tuple[str, ...]
    size: Floats
    """Bytes of each item, `ASSUMED_SIZE` if unknown."""
    producer: Ints
    read_ptr: Ints
    reads: Ints
    write_ptr: Ints
    writes: Ints
    reader_ptr: Ints
    readers: Ints
    result: Bools
    task_names: Sequence[str]
    item_names: Sequence[str]
    name: str = "program"
    cores: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """Cores of one host that each task occupies; 1 by default."""
    release: Floats = field(default_factory=lambda: np.zeros(0))
    """Earliest start of each task; 0 by default."""
    deadline: Floats = field(default_factory=lambda: np.zeros(0))
    """Latest time by which each task has finished and its results are at their destinations; inf by default."""
    initial_locations: SiteLists = field(default_factory=SiteLists)
    destinations: SiteLists = field(default_factory=SiteLists)
    speed_class: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """Row of `Platform.rates` for each task: tasks of one class run equally fast on every host. The kind by default."""
    class_kind: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    """The kind of the tasks of each class."""
    arch_speeds: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """[classes, architectures] speed relative to architecture 0; nan where the program has no run time. A class
    of nan only is equally fast on all architectures."""
    unknown_size: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Items of unknown size; if not given, those whose `size` is nan."""
    labels: Mapping[str, LabelColumn] = field(default_factory=dict)
    """The users' labels of tasks, by name."""
    needs: Needs = NO_NEEDS
    """Memory and named resources that each task needs while it runs."""
    order: Ints = field(init=False)
    """All tasks, each after its predecessors; ties by task number."""
    level: Ints = field(init=False)
    """Longest distance of each task from a task without predecessors."""

    def __post_init__(self) -> None:
        n, m = len(self.work), len(self.size)
        for name, plain in (("cores", np.ones(n, np.int32)), ("release", np.zeros(n))):
            if len(getattr(self, name)) != n:
                object.__setattr__(self, name, plain)
        if len(self.deadline) != n:
            object.__setattr__(self, "deadline", np.full(n, np.inf))
        for name in ("initial_locations", "destinations"):
            if len(getattr(self, name).ptr) != m + 1:
                object.__setattr__(self, name, SiteLists.of_items({}, m))
        if len(self.unknown_size) != m:
            unknown = np.isnan(self.size)
            object.__setattr__(self, "unknown_size", unknown)
            object.__setattr__(self, "size", np.where(unknown, ASSUMED_SIZE, self.size))
        if len(self.class_kind) == 0:
            object.__setattr__(self, "speed_class", self.kind)
            object.__setattr__(self, "class_kind", np.arange(len(self.kinds), dtype=np.int32))
            object.__setattr__(self, "arch_speeds", np.zeros((len(self.kinds), 0)))
        order, level = order_and_level(self)
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "level", level)

    def __repr__(self) -> str:
        return f"<Graph {self.name!r}: {len(self.work):,} tasks, {len(self.size):,} items>"

    @property
    def n_tasks(self) -> int:
        return len(self.work)

    @property
    def n_items(self) -> int:
        return len(self.size)

    def reads_of(self, task: int) -> Ints:
        return self.reads[self.read_ptr[task] : self.read_ptr[task + 1]]

    def writes_of(self, task: int) -> Ints:
        return self.writes[self.write_ptr[task] : self.write_ptr[task + 1]]

    def readers_of(self, item: int) -> Ints:
        return self.readers[self.reader_ptr[item] : self.reader_ptr[item + 1]]

    def with_fields(self, **fields: Any) -> Graph:
        """The same graph with some fields of other values, which the caller answers for: O(fields), nothing is derived.

        For changes whose effect on `order`, `level` and the lists of readers and writers is known.

        >>> g = make_graph(work=[1, 2], size=[8.0], producer=[0], read_ptr=[0, 0, 1], reads=[0])
        >>> late = g.with_fields(release=np.array([0.0, 5.0]))
        >>> late.release.tolist(), late.order is g.order
        ([0.0, 5.0], True)
        """
        made: Graph = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.__dict__.update(fields)
        return made

    def with_work(self, work: Any) -> Graph:
        """The same graph with other run times."""
        return replace(self, work=np.ascontiguousarray(work, dtype=np.float64))

    def with_size(self, size: Any) -> Graph:
        """The same graph with other sizes of items; nan: unknown."""
        return replace(
            self, size=np.ascontiguousarray(size, dtype=np.float64), unknown_size=np.zeros(0, np.bool_)
        )

    @property
    def known_size(self) -> Floats:
        """Bytes of each item, 0 if unknown."""
        return np.where(self.unknown_size, 0.0, self.size)

    def moving_as(self, real: Graph) -> Graph:
        """The same estimates, where items have bytes if and only if they really have.

        What is moved and what is only a signal is a matter of fact. An estimate of 0 for an item that has bytes means
        that its size is unknown.

        >>> g = make_graph(work=[1], size=[0.0, 5.0, 5.0], producer=[0] * 3, read_ptr=[0, 0], reads=[])
        >>> told = g.moving_as(g.with_size([70.0, 0.0, 80.0]))
        >>> told.size.tolist(), told.unknown_size.tolist()
        ([1.0, 0.0, 5.0], [True, False, False])
        """
        has_bytes = real.size > 0
        if np.array_equal(has_bytes, self.size > 0):
            return self
        estimated = np.where(self.unknown_size | (self.size == 0), np.nan, self.size)
        return self.with_size(np.where(has_bytes, estimated, 0.0))

    def with_plain_classes(self) -> Graph:
        """The same graph with a speed class for each kind first, without tasks and alike on all architectures."""
        kinds = len(self.kinds)
        plain = np.full((kinds, self.arch_speeds.shape[1]), np.nan)
        return replace(
            self,
            speed_class=self.speed_class + np.int32(kinds),
            class_kind=np.concatenate((np.arange(kinds, dtype=np.int32), self.class_kind)),
            arch_speeds=np.concatenate((plain, self.arch_speeds)),
        )

    def with_plain_classes_only(self) -> Graph:
        """The same graph without other speed classes than those of `with_plain_classes`."""
        kinds = len(self.kinds)
        return replace(
            self,
            speed_class=self.kind.copy(),
            class_kind=self.class_kind[:kinds],
            arch_speeds=self.arch_speeds[:kinds],
        )


class Limits(TypedDict, total=False):
    """What few programs say about their tasks and items; see the fields of `Graph` with these names."""

    cores: Any
    release: Any
    deadline: Any
    initial_locations: SiteLists | None
    destinations: SiteLists | None
    classes: SpeedClasses | None
    labels: Mapping[str, LabelColumn]
    needs: Needs


def make_graph(
    *,
    work: Any,
    size: Any,
    producer: Any,
    read_ptr: Any,
    reads: Any,
    kind: Any = None,
    kinds: Sequence[str] = ("",),
    result: Any = None,
    task_names: Sequence[str] | None = None,
    item_names: Sequence[str] | None = None,
    name: str = "program",
    **limits: Unpack[Limits],
) -> Graph:
    """Build a graph from who makes each item and who reads it; everything else follows.

    A size of nan is an unknown one.

    >>> g = make_graph(work=[1, 2], size=[8.0], producer=[0], read_ptr=[0, 0, 1], reads=[0])
    >>> g.order.tolist(), g.level.tolist(), g.readers_of(0).tolist(), g.result.tolist()
    ([0, 1], [0, 1], [1], [False])
    """
    classes = limits.get("classes")
    work = np.ascontiguousarray(work, dtype=np.float64)
    size = np.ascontiguousarray(size, dtype=np.float64)
    producer = np.ascontiguousarray(producer, dtype=np.int32)
    read_ptr = np.ascontiguousarray(read_ptr, dtype=np.int32)
    reads = np.ascontiguousarray(reads, dtype=np.int32)
    n, m = len(work), len(size)
    kind = np.zeros(n, np.int32) if kind is None else np.ascontiguousarray(kind, dtype=np.int32)
    made = np.flatnonzero(producer >= 0).astype(np.int32)
    writes = made[np.argsort(producer[made], kind="stable")]
    write_ptr = _pointers(producer[made], n)
    reader_task = np.repeat(np.arange(n, dtype=np.int32), np.diff(read_ptr))
    readers = reader_task[np.argsort(reads, kind="stable")]
    reader_ptr = _pointers(reads, m)
    if result is None:
        result = (np.diff(reader_ptr) == 0) & (producer >= 0)
    return Graph(
        work=work,
        kind=kind,
        kinds=tuple(kinds),
        size=size,
        producer=producer,
        read_ptr=read_ptr,
        reads=reads,
        write_ptr=write_ptr,
        writes=writes,
        reader_ptr=reader_ptr,
        readers=readers,
        result=np.ascontiguousarray(result, dtype=np.bool_),
        task_names=Numbered("t", n) if task_names is None else task_names,
        item_names=Numbered("d", m) if item_names is None else item_names,
        name=name,
        cores=np.ascontiguousarray(limits.get("cores", ()), dtype=np.int32),
        release=np.ascontiguousarray(limits.get("release", ()), dtype=np.float64),
        deadline=np.ascontiguousarray(limits.get("deadline", ()), dtype=np.float64),
        initial_locations=limits.get("initial_locations") or SiteLists(),
        destinations=limits.get("destinations") or SiteLists(),
        labels=limits.get("labels") or {},
        needs=limits.get("needs") or NO_NEEDS,
        **({} if classes is None else classes._asdict()),
    )


class SpeedClasses(NamedTuple):
    """Which tasks run equally fast everywhere; the fields of `Graph` with these names."""

    speed_class: Ints
    class_kind: Ints
    arch_speeds: Floats


class Numbered(Sequence[str]):
    """The names prefix0 .. prefix(n-1) without a string for each.

    >>> Numbered("t", 3)[2], len(Numbered("t", 3))
    ('t2', 3)
    """

    def __init__(self, prefix: str, length: int) -> None:
        self.prefix = prefix
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [f"{self.prefix}{i}" for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return f"{self.prefix}{index % self._length}"


def _pointers(owners: Ints, count: int) -> Ints:
    pointers = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(owners, minlength=count), out=pointers[1:])
    return pointers


def order_and_level(graph: Graph) -> tuple[Ints, Ints]:
    """Kahn's algorithm, a whole level at a time: O(tasks + reads) array operations per level.

    Within a level tasks stay in number order, so the order is the same everywhere.

    Raises:
        BadProgram: Tasks wait for each other in a circle.
    """
    n = graph.n_tasks
    source = graph.producer[graph.reads]
    inner = source >= 0
    reader_of = np.repeat(np.arange(n, dtype=np.int32), np.diff(graph.read_ptr))
    waits = np.bincount(reader_of[inner], minlength=n)
    succ_from = source[inner]
    by_source = np.argsort(succ_from, kind="stable")
    succ = reader_of[inner][by_source]
    ptr = _pointers(succ_from, n)
    level = np.full(n, -1, np.int32)
    order = np.empty(n, np.int32)
    ready = np.flatnonzero(waits == 0).astype(np.int32)
    placed = depth = 0
    while len(ready):
        order[placed : placed + len(ready)] = ready
        placed += len(ready)
        level[ready] = depth
        depth += 1
        counts = ptr[ready + 1] - ptr[ready]
        total = int(counts.sum())
        if total == 0:
            break
        offsets = np.repeat(ptr[ready] - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        touched = succ[offsets + np.arange(total)]
        if total < 64:
            np.subtract.at(waits, touched, 1)
        else:
            waits -= np.bincount(touched, minlength=n)
        touched = np.unique(touched)
        ready = touched[waits[touched] == 0].astype(np.int32)
    if placed < n:
        raise BadProgram(
            f"tasks wait for each other in a circle: {' -> '.join(_a_cycle(graph, level < 0))}",
            where=graph.name,
            hint="remove one of these dependencies",
        )
    return order, level


def _a_cycle(graph: Graph, stuck: Bools) -> list[str]:
    task = int(np.flatnonzero(stuck)[0])
    seen: dict[int, int] = {}
    path: list[int] = []
    while task not in seen:
        seen[task] = len(path)
        path.append(task)
        makers = graph.producer[graph.reads_of(task)]
        task = int(next(p for p in makers if p >= 0 and stuck[p]))
    cycle = [*path[seen[task] :], task][::-1]
    names = [graph.task_names[t] for t in cycle]
    return names if len(names) <= 8 else [*names[:4], "...", *names[-3:]]
