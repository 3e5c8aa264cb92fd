"""One agent that stands for many emulated hosts: a cluster of fifty starts as fast as one host."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from headrace.runtime.streams.hosts import Event, LocalHosts
from headrace.runtime.streams.tls import Certificates

_NAME = "all"


class SharedAgent:
    """Hosts that share an agent on this machine."""

    tls: Certificates | None = None

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._inner = LocalHosts([_NAME])
        self._waiting: deque[Event] = deque()

    def send(self, host: str, command: dict[str, Any]) -> None:
        """Stopping, connecting and new weights concern all copies at once; other commands those of one host."""
        if command["do"] not in ("stop", "wire", "weights") or host == min(self.names):
            self._inner.send(_NAME, command)

    def receive(self, timeout: float) -> Event | None:
        if not self._waiting:
            event = self._inner.receive(timeout)
            if event is None:
                return None
            whole = event["event"] in ("stopped", "lost")
            self._waiting.extend(event | {"host": name} for name in (self.names if whole else self.names[:1]))
        return self._waiting.popleft()

    def address(self, host: str) -> str:
        return self._inner.address(_NAME)

    def fetch(self, host: str, file: str) -> bytes:
        return self._inner.fetch(_NAME, file)

    def abandon(self, host: str) -> None:
        """The agent goes on for the others."""

    def close(self) -> None:
        self._inner.close()

    def __enter__(self) -> SharedAgent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
