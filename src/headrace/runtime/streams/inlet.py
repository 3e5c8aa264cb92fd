"""What a copy receives: frames from all copies of the filters before it, and the end of each unit of work.

Buffers that wait are in the sockets, at most `credits` of each sender; the copy itself holds the one it
processes and, of each sender, the one that is arriving. A unit has ended when every sender has said so; a sender that
is ahead is not read until then.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Sequence

from headrace.model.errors import HeadraceError
from headrace.runtime.streams.counters import COMPUTING, WAITS_INPUT, Counters
from headrace.runtime.streams.framing import CREDIT, DATA, HEADER, RUN_END, UNIT_END, Connection, LinkLost

_HEADER = HEADER.size


class Sender:
    """A connection from one copy, on one stream."""

    def __init__(self, connection: Connection, stream: str, name: str) -> None:
        self.connection = connection
        self.stream = stream
        self.name = name
        self.in_unit = 0
        self.taken = 0
        """Buffers taken whose credit has not been returned yet."""
        self._head = b""
        self._kind = self._unit = self._size = 0
        self._parts: list[bytes] = []
        self._missing = 0

    def frame(self) -> tuple[int, int, int, bytes] | None:
        """The next whole frame: kind, unit, number, data; None if it has not arrived yet."""
        if len(self._head) < _HEADER:
            part = self.connection.receive(_HEADER - len(self._head))
            if part is None:
                return None
            self._head += part
            if len(self._head) < _HEADER:
                return None
            self._kind, self._unit, self._size = HEADER.unpack(self._head)
            self._missing = self._size if self._kind == DATA else 0
        while self._missing:
            part = self.connection.receive(self._missing)
            if part is None:
                return None
            self._parts.append(part)
            self._missing -= len(part)
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._head = b""
        self._parts = []
        return self._kind, self._unit, self._size, data


class Inlet:
    """All senders of a copy."""

    def __init__(self, senders: Sequence[Sender], credits: int, largest: int, counters: Counters) -> None:
        self.senders = list(senders)
        self._by_file = {sender.connection.fileno(): sender for sender in self.senders}
        self._batch = max(1, credits // 2)
        self._largest = largest
        self._counters = counters
        self._poll = select.poll()
        self._ready: deque[Sender] = deque()
        self._open: set[int] = set()
        self.run_ended = False

    def begin_unit(self) -> None:
        """Read from every sender again."""
        for file, sender in self._by_file.items():
            self._poll.register(file, select.POLLIN)
            sender.in_unit = 0
        self._open = set(self._by_file)
        self._ready.extend(self.senders)

    def next(self, unit: int) -> tuple[str, bytes] | None:
        """Stream and data of the next buffer of this unit; None after the last."""
        while self._open:
            if not self._ready:
                self._wait()
            sender = self._ready[0]
            try:
                frame = sender.frame()
            except LinkLost as error:
                raise error.at(f"from {sender.name}") from None
            if frame is None:
                self._ready.popleft()
                continue
            self._ready.rotate(-1)
            kind, number, size, data = frame
            if kind == DATA:
                self._check(sender, number == unit and size <= self._largest)
                sender.in_unit += 1
                self._return_credit(sender)
                return sender.stream, data
            self._end(sender, kind, number, size, unit)
        return None

    def _end(self, sender: Sender, kind: int, number: int, size: int, unit: int) -> None:
        """This sender has nothing more in this unit."""
        self._check(sender, kind in (UNIT_END, RUN_END) and number == unit and size == sender.in_unit)
        self.run_ended = self.run_ended or kind == RUN_END
        file = sender.connection.fileno()
        self._open.discard(file)
        self._poll.unregister(file)
        self._ready = deque(other for other in self._ready if other is not sender)

    def _return_credit(self, sender: Sender) -> None:
        sender.taken += 1
        if sender.taken >= self._batch:
            self._give(sender)

    def _give(self, sender: Sender) -> None:
        """Return credits. The socket has room: a sender never has more than its credits under way."""
        views = [memoryview(CREDIT.pack(sender.taken))]
        sender.taken = 0
        sender.connection.push(views)
        while views:
            select.select([], [sender.connection], [])
            sender.connection.push(views)

    def _wait(self) -> None:
        """Return all credits, then wait for a sender that has data."""
        for sender in self.senders:
            if sender.taken:
                self._give(sender)
        pending = [s for file, s in self._by_file.items() if file in self._open and s.connection.pending()]
        if pending:
            self._ready.extend(pending)
            return
        began = time.monotonic_ns()
        self._counters.put("state", WAITS_INPUT)
        found = self._poll.poll()
        self._counters.put("state", COMPUTING)
        self._counters.add("input_ns", time.monotonic_ns() - began)
        self._ready.extend(self._by_file[file] for file, _ in found)

    def _check(self, sender: Sender, holds: bool) -> None:
        if not holds:
            raise HeadraceError(
                "a frame that does not fit the protocol",
                where=f"from {sender.name}",
                hint="please report this",
            )
