"""What a copy has done so far, in memory shared with the agent of its host.

The copy writes, the agent reads when it likes: progress costs the copy no message and no thread. Routing weights
go the other way.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence

FIELDS = (
    "buffers_in",
    "bytes_in",
    "buffers_out",
    "bytes_out",
    "results",
    "busy_ns",
    "input_ns",
    "credit_ns",
    "send_ns",
    "state",
    "unit",
    "backlog",
    "most_backlog",
    "started_ns",
    "now_ns",
)
IDLE, COMPUTING, WAITS_INPUT, WAITS_CREDIT, WAITS_SEND = range(5)
STATES = ("between units", "computing", "waiting for input", "waiting for credit", "sending")
_NUMBER = {name: i for i, name in enumerate(FIELDS)}


class Counters:
    """Integers by name, then buffers and bytes sent to each target, then a version and weights of the targets.

    >>> counters = Counters(targets=2)
    >>> counters.add("buffers_in", 3)
    >>> counters.count_target(1, 500)
    >>> counters.read()["buffers_in"], counters.sent()
    (3, [(0, 0), (1, 500)])
    >>> counters.write_weights([1.0, 2.0])
    >>> counters.version, counters.weights()
    (1, [1.0, 2.0])
    """

    def __init__(self, targets: int) -> None:
        words = len(FIELDS) + 3 * targets + 1
        self._memory = mmap.mmap(-1, max(words * 8, mmap.PAGESIZE))
        self.integers = memoryview(self._memory).cast("q")
        self._floats = memoryview(self._memory).cast("d")
        self._targets = targets
        self._sent = len(FIELDS)
        self._version = self._sent + 2 * targets

    def add(self, name: str, amount: int) -> None:
        self.integers[_NUMBER[name]] += amount

    def put(self, name: str, value: int) -> None:
        self.integers[_NUMBER[name]] = value

    def get(self, name: str) -> int:
        return self.integers[_NUMBER[name]]

    def count_target(self, target: int, size: int) -> None:
        place = self._sent + 2 * target
        self.integers[place] += 1
        self.integers[place + 1] += size

    def read(self) -> dict[str, int]:
        return dict(zip(FIELDS, self.integers[: len(FIELDS)], strict=True))

    def sent(self) -> list[tuple[int, int]]:
        """Buffers and bytes sent to each target."""
        flat = self.integers[self._sent : self._version]
        return [(flat[2 * i], flat[2 * i + 1]) for i in range(self._targets)]

    @property
    def version(self) -> int:
        """Increases when there are new weights."""
        return self.integers[self._version]

    def write_weights(self, weights: Sequence[float]) -> None:
        """Set the weights, then the version: a reader that sees the new version sees the new weights."""
        for i, weight in enumerate(weights):
            self._floats[self._version + 1 + i] = weight
        self.integers[self._version] += 1

    def weights(self) -> list[float]:
        return list(self._floats[self._version + 1 : self._version + 1 + self._targets])


def number(name: str) -> int:
    """The place of a counter, for hot loops that write `integers` directly."""
    return _NUMBER[name]
