"""What a copy sends: channels to the copies of the next filters, with credits.

A buffer goes straight from the filter's memory into the socket; if the socket is full, `send` waits. Only what
passes an emulated port is sent by a thread of the channel while the filter goes on, as a socket would do it behind a
real port. At most `credits` buffers wait there; then `send` blocks.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from headrace.runtime.streams.counters import (
    COMPUTING,
    WAITS_CREDIT,
    WAITS_SEND,
    Counters,
)
from headrace.runtime.streams.framing import CREDIT, DATA, HEADER, Connection, LinkLost
from headrace.runtime.streams.ports import CHUNK, Port, pass_through
from headrace.runtime.streams.routing import Router


class Channel:
    """A connection to one copy of the next filter."""

    def __init__(
        self, number: int, connection: Connection, name: str, credits: int, ports: Sequence[Port] = ()
    ) -> None:
        self.number = number
        self.connection = connection
        self.name = name
        self.credits = credits
        self.ports = tuple(ports)
        self.writable = select.poll()
        self.writable.register(connection.fileno(), select.POLLOUT)
        self.unsent = 0
        """Frames that the thread has yet to send."""
        self.in_unit = 0
        self.items: SimpleQueue[tuple[list[memoryview], bool]] = SimpleQueue()
        self.thread: threading.Thread | None = None
        self._partial = b""

    def take_credits(self) -> None:
        """Add the credits that have arrived."""
        data = self.connection.receive(4096)
        while data is not None:
            data = self._partial + data
            whole = len(data) - len(data) % CREDIT.size
            self.credits += sum(count for (count,) in CREDIT.iter_unpack(data[:whole]))
            self._partial = data[whole:]
            data = self.connection.receive(4096)


class Outlet:
    """All channels of a copy, and a router for each of its streams."""

    def __init__(
        self,
        streams: Sequence[tuple[Router, Sequence[Channel]]],
        credits: int,
        counters: Counters,
        *,
        needs_credits: bool = False,
    ) -> None:
        self._streams = [(router, list(channels)) for router, channels in streams]
        self.channels = [channel for _, channels in self._streams for channel in channels]
        self._limit = credits
        self._counters = counters
        self._watch_credits = needs_credits
        self._by_file = {channel.connection.fileno(): channel for channel in self.channels}
        self._poll = select.poll()
        for file in self._by_file:
            self._poll.register(file, select.POLLIN)
        self._changed = threading.Condition()
        self._backlog = 0
        self._failure: LinkLost | None = None
        self._version = 0

    def send(self, stream: int, data: memoryview, unit: int, stable: bool) -> None:
        """Send a buffer to the copy that the router chooses; `stable`: its bytes cannot change."""
        if self._counters.version != self._version:
            self._update_weights()
        router, channels = self._streams[stream]
        if self._watch_credits:
            self._collect_credits(0)
        channel = channels[router.choose([c.credits for c in channels]) if len(channels) > 1 else 0]
        if not channel.credits:
            # With frames of its own still unsent, it is the network that holds this copy back, not the target.
            state, spent = (WAITS_SEND, "send_ns") if channel.unsent else (WAITS_CREDIT, "credit_ns")
            self._await(lambda: channel.credits > 0, state, spent, lambda: self._collect_credits(None))
        channel.credits -= 1
        channel.in_unit += 1
        views = [memoryview(HEADER.pack(DATA, unit, len(data)))]
        if len(data):
            views.append(data)
        self._counters.count_target(channel.number, len(data))
        self._write(channel, views, stable)

    def end(self, kind: int, unit: int) -> None:
        """Tell every copy of the next filters that the unit, or the run, has ended, and how many buffers it had."""
        for channel in self.channels:
            self._write(channel, [memoryview(HEADER.pack(kind, unit, channel.in_unit))], True, marker=True)
            channel.in_unit = 0

    def flush(self) -> None:
        """Wait until everything has been handed to the network."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure or not any(c.unsent for c in self.channels))
            self._check()

    def _write(self, channel: Channel, views: list[memoryview], stable: bool, marker: bool = False) -> None:
        if channel.ports:
            self._enqueue(channel, views if stable else [memoryview(bytes(view)) for view in views], marker)
            return
        self._guarded(channel, views)
        if views:  # the socket is full: what it holds is sent while we wait
            self._await(lambda: not views, WAITS_SEND, "send_ns", lambda: self._push_on(channel, views))

    def _push_on(self, channel: Channel, views: list[memoryview]) -> None:
        channel.writable.poll()
        self._guarded(channel, views)

    def _enqueue(self, channel: Channel, views: list[memoryview], marker: bool) -> None:
        """Leave a frame to the thread of the channel."""
        if not marker and self._backlog >= self._limit:
            self._await(lambda: self._backlog < self._limit, WAITS_SEND, "send_ns", self._wait_backlog)
        with self._changed:
            self._check()
            channel.unsent += 1
            self._backlog += not marker
        self._counters.put("backlog", self._backlog)
        self._counters.put("most_backlog", max(self._backlog, self._counters.get("most_backlog")))
        channel.items.put((views, marker))
        if channel.thread is None:
            channel.thread = threading.Thread(target=self._drain, args=(channel,), daemon=True)
            channel.thread.start()

    def _drain(self, channel: Channel) -> None:
        """The thread of a channel: send what is queued, in order, as the ports permit."""
        try:
            while True:
                views, marker = channel.items.get()
                for piece in _pieces(views):
                    pass_through(channel.ports, len(piece[0]))
                    self._guarded(channel, piece)
                    while piece:
                        self._push_on(channel, piece)
                with self._changed:
                    channel.unsent -= 1
                    self._backlog -= not marker
                    self._changed.notify_all()
        except LinkLost as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _guarded(self, channel: Channel, views: list[memoryview]) -> None:
        try:
            channel.connection.push(views)
        except LinkLost as error:
            raise error.at(f"to {channel.name}") from None

    def _await(self, done: Callable[[], bool], state: int, spent: str, wait: Callable[[], None]) -> None:
        """Wait until something holds, and note for how long."""
        if done():
            return
        began = time.monotonic_ns()
        self._counters.put("state", state)
        while not done():
            wait()
        self._counters.put("state", COMPUTING)
        self._counters.add(spent, time.monotonic_ns() - began)

    def _collect_credits(self, patience: int | None) -> None:
        for file, _ in self._poll.poll(patience):
            channel = self._by_file[file]
            try:
                channel.take_credits()
            except LinkLost as error:
                raise error.at(f"to {channel.name}") from None

    def _wait_backlog(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._failure or self._backlog < self._limit)
            self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _update_weights(self) -> None:
        """New proportions from the agent."""
        self._version = self._counters.version
        weights = self._counters.weights()
        for router, channels in self._streams:
            router.set_weights([weights[channel.number] for channel in channels])


def _pieces(views: list[memoryview]) -> list[list[memoryview]]:
    """The same bytes in pieces that ports carry one at a time."""
    return [[view[i : i + CHUNK]] for view in views for i in range(0, len(view), CHUNK)]
