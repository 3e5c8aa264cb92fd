"""Emulated ports and links of one machine: token buckets that processes share through files.

A bucket holds the moment until which a port is booked. Whoever sends books its bytes and sleeps until the port has
carried them, so that all senders together stay within the bandwidth.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Sequence
from pathlib import Path

CHUNK = 64 * 1024
"""Bytes booked at a time at most: senders that share a port alternate."""
_MOMENT = struct.Struct("d")
_BURST = 0.002
"""Seconds that an idle port may make up for, since sleeping is not exact."""


class Port:
    """A port of this many bytes/s; the same file is the same port, in any process of this machine."""

    def __init__(self, file: Path, bandwidth: float) -> None:
        self.bandwidth = bandwidth
        self._file = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)

    def book(self, size: int) -> float:
        """Book this many bytes; returns the moment of `time.monotonic` when they have passed."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            stored = os.pread(self._file, _MOMENT.size, 0)
            until = _MOMENT.unpack(stored)[0] if stored else 0.0
            until = max(until, time.monotonic() - _BURST) + size / self.bandwidth
            os.pwrite(self._file, _MOMENT.pack(until), 0)
            return until
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._file)


def pass_through(ports: Sequence[Port], size: int) -> None:
    """Wait until this many bytes have passed all of these ports."""
    until = max(port.book(size) for port in ports)
    rest = until - time.monotonic()
    if rest > 0:
        time.sleep(rest)
