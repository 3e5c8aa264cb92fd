"""Notices what makes no noise: a host that is not heard from, a process that is stopped, a link that stalls."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from headrace.runtime.streams.counters import COMPUTING, STATES
from headrace.runtime.streams.faults import Fault
from headrace.runtime.streams.hosts import Event
from headrace.runtime.streams.plan import CopyPlace

_PAUSE = 2.0
"""Seconds between two checks that mean that this process itself did not run."""


class Liveness:
    """Watches the copies of one attempt. After `patience` seconds without a sign of life it raises a fault."""

    def __init__(self, copies: Mapping[int, CopyPlace], patience: float) -> None:
        self._copies = copies
        self._patience = patience
        now = time.monotonic()
        self._heard = dict.fromkeys(copies, now)
        self._stopped: dict[int, float] = {}
        self._total = -1
        self._moved = self._checked = now

    def note(self, event: Event) -> None:
        """A progress report of an agent."""
        now = time.monotonic()
        for number, counters in event["copies"].items():
            copy = int(number)
            self._heard[copy] = now
            if counters["stopped"]:
                self._stopped.setdefault(copy, now)
            else:
                self._stopped.pop(copy, None)

    def check(self, copies: Mapping[int, Mapping[str, Any]]) -> None:
        """Raise a fault if something has been silent for too long."""
        now = time.monotonic()
        if now - self._checked > _PAUSE:
            self._excuse(now - self._checked)
        self._checked = now
        self._check_hosts(now)
        self._check_stopped(now)
        self._check_links(now, copies)

    def _excuse(self, gap: float) -> None:
        """Reports may have waited here while this process did not run."""
        self._moved += gap
        self._heard = {copy: moment + gap for copy, moment in self._heard.items()}
        self._stopped = {copy: moment + gap for copy, moment in self._stopped.items()}

    def _check_hosts(self, now: float) -> None:
        for number, moment in self._heard.items():
            if now - moment > self._patience:
                host = self._copies[number].host
                raise Fault(
                    f"nothing was heard from the host for {self._patience:g} s",
                    host,
                    "see whether it still runs, and the network to it",
                    host=host,
                )

    def _check_stopped(self, now: float) -> None:
        for number, moment in self._stopped.items():
            if now - moment > self._patience:
                raise Fault(
                    f"its process has been stopped for {self._patience:g} s",
                    self._copies[number].name,
                    "did somebody send it SIGSTOP?",
                )

    def _check_links(self, now: float, copies: Mapping[int, Mapping[str, Any]]) -> None:
        """No copy computes, and nothing has moved for too long: a link is stuck."""
        total = sum(
            c["bytes_in"] + c["bytes_out"] + c["results"] + c["unit"] + c["busy_ns"] for c in copies.values()
        )
        working = any(c["state"] == COMPUTING and not c["stopped"] for c in copies.values())
        if total != self._total or working:
            self._total, self._moved = total, now
        elif now - self._moved > self._patience and not self._stopped:
            stuck = ", ".join(
                f"{self._copies[number].name} is {STATES[c['state']]}"
                for number, c in sorted(copies.items())
                if STATES[c["state"]] in ("waiting for credit", "sending")
            )
            raise Fault(
                f"no data has moved for {self._patience:g} s: {stuck or 'every copy waits for input'}",
                "a link stalls",
                "check the network between these hosts",
            )
