"""Messages from the plugin inside the engine's scheduler to the client: events in batches, then the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from distributed.metrics import time as engine_time

from headrace.model.errors import HeadraceError, PoisonTask, TaskFailed
from headrace.model.events import Event
from headrace.runtime.messages import encode_error, encode_event

_BATCH_SECONDS = 0.05
_BEAT_SECONDS = 5.0


class Outbox:
    """Collects events and measurements and sends them under a topic.

    `send` is called in the scheduler's loop when a batch is due; it decides what else the message says and calls
    `publish`.
    """

    def __init__(self, scheduler: Any, topic: str, send: Callable[[], None]) -> None:
        self.scheduler = scheduler
        self.topic = topic
        self.send = send
        self.events: list[Event] = []
        self.measured: list[tuple[str, Any]] = []
        self._is_due = False
        self._sent = engine_time()

    def emit(self, event: Event) -> None:
        """Send an event with the next batch."""
        self.events.append(event)
        self.send_soon()

    def send_soon(self, now: bool = False) -> None:
        """Have the next batch sent, in a moment or as soon as the scheduler's loop is free."""
        if now:
            self.scheduler.loop.add_callback(self.send)
        elif not self._is_due:
            self._is_due = True
            self.scheduler.loop.call_later(_BATCH_SECONDS, self.send)

    def beat(self) -> None:
        """Send a sign of life if nothing was sent for a while."""
        if engine_time() - self._sent > _BEAT_SECONDS:
            self._log({"events": [], "measured": []})

    def publish(self, end: bool = False, error: HeadraceError | None = None, drained: bool = False) -> None:
        """Send what was collected; with the end or the error of the run if there is one.

        `drained` says that after a failure nothing runs any more.
        """
        self._is_due = False
        message: dict[str, Any] = {
            "events": [encode_event(event) for event in self.events],
            "measured": self.measured,
        }
        self.events, self.measured = [], []
        if end:
            message["end"] = True
        if drained:
            message["drained"] = True
        if error is not None:
            message["error"] = encode_error(error)
        if len(message) > 2 or message["events"] or message["measured"]:
            self._log(message)

    def forget(self, *topics: str) -> None:
        """Have the scheduler forget topics; it would otherwise keep their names forever."""
        for topic in topics:
            self.scheduler._broker._topics.pop(topic, None)

    def _log(self, message: dict[str, Any]) -> None:
        self._sent = engine_time()
        self.scheduler.log_event(self.topic, message)
        # It has been sent; the scheduler would otherwise keep it forever.
        self.scheduler._broker.truncate(self.topic)


def error_text(details: dict[str, Any]) -> str:
    """The message for the user: from our own wrapper if there is one, otherwise from the engine."""
    error = _error(details)
    if isinstance(error, TaskFailed):
        return str(error)
    text = details.get("traceback_text") or ""
    return f"{text}{details.get('exception_text') or error or 'the task failed'}"


def is_poison(details: dict[str, Any]) -> bool:
    """Whether a task failed because it kills its workers."""
    return isinstance(_error(details), PoisonTask)


def is_by_engine(details: dict[str, Any]) -> bool:
    """Whether a task failed before any of its own code ran, such as when its inputs vanished under it.

    What a task raises is wrapped by us, in a function that its traceback shows.
    """
    from distributed.scheduler import KilledWorker

    error = _error(details)
    if error is None or isinstance(error, HeadraceError | KilledWorker):
        return False
    return f"headrace{os.sep}runtime" not in (details.get("traceback_text") or "")


def _error(details: dict[str, Any]) -> object:
    """The exception of a failed task; None if it cannot be unpickled here."""
    import pickle

    from distributed.protocol.serialize import Serialized, deserialize

    error = details.get("exception")
    try:
        if isinstance(error, Serialized):
            error = deserialize(error.header, error.frames)
        if isinstance(error, bytes | bytearray):
            error = pickle.loads(error)
    except Exception:  # its class may not exist here; the engine also sent its text
        return None
    return error
