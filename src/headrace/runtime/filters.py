"""Filters connected by streams: the programming model of pipeline applications.

A filter works in cycles, one for each unit of work: `init`, then `process` for every buffer that arrives,
then `finalize`. A reader has no incoming streams; it reads its share of the input instead. An `App` declares
filters and the streams between them. Nothing here moves data: a runner does, on one host
or many, with one or more copies of each filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from headrace.model.errors import BadProgram, HeadraceError, UsageError
from headrace.model.units import quantity, show_size


@dataclass(frozen=True, slots=True)
class Work:
    """One unit of work as one copy of a filter sees it."""

    name: str
    settings: Mapping[str, Any]
    """The settings of this unit."""
    folder: Path
    """Scratch space of this copy; removed after the unit."""
    begin: float = 0.0
    end: float = 1.0
    """The share of the input that this copy of a reader reads; all of it if there is one copy."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes that arrived, and the stream they came on."""

    stream: str
    data: bytes


Sendable = bytes | bytearray | memoryview | NDArray[Any]
"""What a filter may send: bytes, or anything else that is contiguous in memory."""


def flat(data: Sendable) -> bytes | memoryview:
    """The same memory, one byte after another.

    >>> import numpy as np
    >>> len(flat(np.zeros((2, 3)))), flat(b"ab"), flat(np.zeros((0, 3)))
    (48, b'ab', b'')
    """
    if isinstance(data, bytes):
        return data
    view = memoryview(data)  # type: ignore[arg-type]  # arrays are buffers, but are not typed so before 3.12
    if not view.nbytes:
        return b""  # memory without bytes cannot be cast
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


class Output(Protocol):
    """The interface through which a filter sends data."""

    def send(self, data: Sendable, stream: str = "") -> None:
        """Send one buffer on this stream, or on the only one. A filter without outgoing streams produces results."""


class Filter:
    """The base class of all filters: override what is needed."""

    def init(self, work: Work) -> None:
        """Begin a unit of work: allocate memory, open files, build tables."""

    def process(self, buffer: Buffer, out: Output) -> None:
        """Process one buffer. Buffers from different copies and streams arrive in any order."""

    def finalize(self, out: Output) -> None:
        """End the unit: send remaining data, release what `init` acquired."""


class Reader(Filter):
    """A filter without incoming streams: the source of the data."""

    def prepare(self, work: Work) -> None:
        """Generate or fetch this copy's share of the input in `work.folder`, before timing starts."""

    def read(self, out: Output) -> None:
        """Read the share of the input passed to `init`, and send it buffer by buffer."""
        raise NotImplementedError(f"{type(self).__name__} reads nothing: it needs a method read(out)")


@dataclass(frozen=True, slots=True)
class Stream:
    """A one-way channel between all copies of one filter and all copies of another."""

    name: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of work: a name and settings passed to the filters."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


class App:
    """A pipeline application: filters, streams between them, and units of work.

    >>> app = App("lines", buffer="64 kB")
    >>> app.filter("read", Reader)
    'read'
    >>> app.filter("count", Filter, inputs=["read"])
    'count'
    >>> [stream.name for stream in app.streams], app.order
    (['read-count'], ('read', 'count'))
    """

    def __init__(
        self, name: str = "app", *, buffer: float | str = "1 MB", units: Iterable[Unit] = (Unit("all"),)
    ) -> None:
        self.name = name
        self.buffer = _buffer_size(buffer, name)
        """The maximum size of a buffer."""
        self.units = tuple(units)
        self.filters: dict[str, Callable[[], Filter]] = {}
        self.streams: list[Stream] = []
        if not self.units:
            raise BadProgram(
                "there is no unit of work", where=name, hint="omit `units`, or give at least one"
            )

    def filter(self, name: str, make: Callable[[], Filter], *, inputs: Sequence[str] = ()) -> str:
        """Add a filter, created by calling `make`, with a stream from each filter in `inputs`; returns its name."""
        if name in self.filters:
            raise BadProgram(
                f"two filters are named {name!r}", where=self.name, hint="give each its own name"
            )
        if not callable(make):
            raise BadProgram(
                f"filter {name!r} is of type {type(make).__name__}",
                where=self.name,
                hint="give the filter's class, or functools.partial(Class, ...)",
            )
        self.filters[name] = make
        self._changed()
        for source in inputs:
            self.stream(source, name)
        return name

    def stream(self, source: str, target: str, name: str = "") -> str:
        """Connect two filters by a stream, named `source-target` by default; returns its name."""
        stream = Stream(name or f"{source}-{target}", source, target)
        for end in (source, target):
            if end not in self.filters:
                raise BadProgram(
                    f"stream {stream.name!r} needs filter {end!r}, which does not exist",
                    where=self.name,
                    hint="add the filter first",
                )
        if any(stream.name == other.name for other in self.streams):
            raise BadProgram(
                f"two streams are named {stream.name!r}", where=self.name, hint="give each its own name"
            )
        self.streams.append(stream)
        self._changed()
        return stream.name

    def into(self, name: str) -> list[Stream]:
        """The streams that end at this filter, in the order they were added."""
        return [stream for stream in self.streams if stream.target == name]

    def out_of(self, name: str) -> list[Stream]:
        """The streams that begin at this filter, in the order they were added."""
        return [stream for stream in self.streams if stream.source == name]

    def make(self, name: str) -> Filter:
        """A new copy of this filter."""
        made = self.filters[name]()
        wanted = Filter if self.into(name) else Reader
        if not isinstance(made, wanted):
            raise BadProgram(
                f"filter {name!r} is of type {type(made).__name__}, not a {wanted.__name__}",
                where=self.name,
                hint="derive it from headrace.runtime.filters.Filter"
                if wanted is Filter
                else "derive a filter without incoming streams from headrace.runtime.filters.Reader",
            )
        return made

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All filters in topological order; raises an error for cycles."""
        if not self.filters:
            raise BadProgram("there is no filter", where=self.name, hint="add one with app.filter")
        waits = {name: len(self.into(name)) for name in self.filters}
        order = [name for name, count in waits.items() if count == 0]
        for name in order:
            for stream in self.out_of(name):
                waits[stream.target] -= 1
                if waits[stream.target] == 0:
                    order.append(stream.target)
        if len(order) < len(self.filters):
            circle = sorted(set(self.filters) - set(order))
            raise BadProgram(
                f"streams form a cycle through or before {', '.join(circle[:5])}",
                where=self.name,
                hint="remove a stream that closes the cycle",
            )
        return tuple(order)

    def _changed(self) -> None:
        self.__dict__.pop("order", None)


class Sender:
    """Checks shared by all `Output`s: which stream is meant, and whether the buffer fits."""

    def __init__(self, app: App, name: str) -> None:
        self._where = f"{app.name}: filter {name!r}"
        self._limit = app.buffer
        self._streams = tuple(stream.name for stream in app.out_of(name))

    def checked(self, data: bytes | memoryview, stream: str) -> str:
        """The stream's name; "" for a result."""
        if len(data) > self._limit:
            raise UsageError(
                f"a buffer of {len(data)} bytes exceeds the maximum of {self._limit}",
                where=self._where,
                hint=f"send it in pieces, or set the app's buffer size to {show_size(len(data))}",
            )
        if stream in self._streams or (not stream and not self._streams):
            return stream
        if not stream and len(self._streams) == 1:
            return self._streams[0]
        problem = f"there is no stream {stream!r}" if stream else "the stream is not named"
        streams = (
            f"use one of {', '.join(self._streams)}"
            if self._streams
            else "send results without a stream name"
        )
        raise UsageError(problem, where=self._where, hint=streams)


def cycle(filter: Filter, work: Work, incoming: Iterable[Buffer], out: Output) -> None:
    """Run one unit of work of one copy: init, process all buffers (or read), finalize."""
    filter.init(work)
    if isinstance(filter, Reader):
        filter.read(out)
    for buffer in incoming:
        filter.process(buffer, out)
    filter.finalize(out)


def in_turn(streams: Iterable[Iterable[Buffer]]) -> Iterator[Buffer]:
    """The buffers of several streams, in round-robin order."""
    return (buffer for buffer in chain.from_iterable(zip_longest(*streams)) if buffer is not None)


def _buffer_size(size: float | str, name: str) -> int:
    try:
        wanted = int(quantity(size, "size"))
    except HeadraceError as error:
        raise BadProgram(error.problem, where=f"{name}: buffer", hint=error.hint) from None
    if wanted < 1:
        raise BadProgram(f"buffers of {size!r}", where=name, hint='give a size such as "1 MB"')
    return wanted
