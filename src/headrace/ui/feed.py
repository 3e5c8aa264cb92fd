"""What happens on the server, as numbered events that a page can follow and catch up with."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

KEPT = 20_000
"""Events that a page which was away can still be given."""
_ALIVE = 15.0
"""Seconds after which something is sent if nothing happens, so that both sides notice a lost connection."""


class FeedEvent(NamedTuple):
    number: int
    kind: str
    values: dict[str, Any]

    def text(self) -> str:
        """As a server-sent event.

        >>> FeedEvent(3, "plan", {"job": 1}).text()
        'id: 3\\nevent: plan\\ndata: {"job":1}\\n\\n'
        """
        data = json.dumps(self.values, separators=(",", ":"), allow_nan=False)
        return f"id: {self.number}\nevent: {self.kind}\ndata: {data}\n\n"


class Feed:
    """Events from any thread, to any number of pages.

    A page that comes back gives the number of the last event it has seen and gets those since. If they are no longer
    kept, or the server is another one, it gets `reset` first and must load everything again.

    >>> feed = Feed()
    >>> first, second = feed.publish("runs", {}), feed.publish("runs", {"run": "a"})
    >>> [event.number for event in feed.since(first)], feed.since(99)
    ([2], None)
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._events: deque[FeedEvent] = deque(maxlen=kept)
        self._last = 0
        self._lock = threading.Lock()
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def publish(self, kind: str, values: dict[str, Any]) -> int:
        """Add an event and wake the pages; returns its number."""
        with self._lock:
            self._last += 1
            self._events.append(FeedEvent(self._last, kind, values))
            waiting = list(self._waiting)
            number = self._last
        for loop, event in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)
        return number

    @property
    def last(self) -> int:
        return self._last

    def since(self, number: int) -> list[FeedEvent] | None:
        """The events after a number; None if some of them are gone or there never was such a number."""
        with self._lock:
            oldest = self._events[0].number if self._events else self._last + 1
            if number > self._last or number < oldest - 1:
                return None
            return [event for event in self._events if event.number > number]

    async def follow(self, number: int) -> AsyncIterator[str]:
        """All events after a number, as text, for ever."""
        event = asyncio.Event()
        entry = (asyncio.get_running_loop(), event)
        with self._lock:
            self._waiting.add(entry)
        try:
            yield "retry: 1000\n\n"
            while True:
                event.clear()
                found = self.since(number)
                if found is None:
                    number = self.last
                    yield FeedEvent(number, "reset", {}).text()
                    continue
                for one in found:
                    number = one.number
                    yield one.text()
                try:
                    await asyncio.wait_for(event.wait(), _ALIVE)
                except TimeoutError:
                    yield ": alive\n\n"
        finally:
            with self._lock:
                self._waiting.discard(entry)
