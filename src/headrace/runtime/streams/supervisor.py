"""Carries out a plan: starts the copies, commits the results of each unit of work once, and ends everything.

A fault ends all copies. With restarts left, the units that are not committed are replayed from the readers;
otherwise the run fails, and the results of the units before are kept.
"""

from __future__ import annotations

import base64
import secrets
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.model.errors import TaskFailed
from headrace.runtime.filters import App
from headrace.runtime.packing import packer
from headrace.runtime.streams.adapt import Adapter
from headrace.runtime.streams.counters import COMPUTING, STATES
from headrace.runtime.streams.hosts import Event, Hosts
from headrace.runtime.streams.plan import StreamPlan
from headrace.runtime.streams.routing import Routing
from headrace.runtime.streams.specs import Emulation, make_specs

START_SECONDS = 60.0
"""Time for all copies to start and connect."""
_AFTERMATH_SECONDS = 1.0
"""After a fault, time for the units before it to end, and to learn why a connection was lost."""
_AHEAD = 2
"""Units that readers may begin before the first of them is committed, when there is no fixed number."""
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a plan is carried out."""

    credits: int | None = None
    """Buffers that may be on their way to a copy, or wait there, for each of its senders; None: 4, and as many as
    make 4 MB if buffers are small, up to 64."""
    routing: Routing = "planned"
    work_conserving: bool = False
    """Send to another copy if the one whose turn it is has no credit."""
    duration: float | None = None
    """Repeat the units of work for so many seconds; None: each unit once."""
    restarts: int = 0
    """How often units are replayed after a fault."""
    adapt: bool = False
    """Change the proportions while it runs, when copies turn out faster or slower than planned."""
    stall: float = 60.0
    """Seconds without any progress after which a link counts as stalled."""

    def window(self, buffer: int) -> int:
        """The credits for buffers of this size.

        >>> StreamOptions().window(1_000_000), StreamOptions().window(64_000), StreamOptions(credits=2).window(1)
        (4, 62, 2)
        """
        return max(4, min(64, 4_000_000 // buffer)) if self.credits is None else self.credits


@dataclass(frozen=True, slots=True)
class UnitResult:
    """The results of one unit of work."""

    number: int
    name: str
    results: Mapping[str, list[bytes]]
    """For each filter without outgoing streams, what it sent."""


@dataclass(slots=True)
class Progress:
    """What is known of a run while it goes on, and at its end."""

    plan: StreamPlan
    began: float = 0.0
    """When the readers were allowed to begin."""
    ended: float = 0.0
    copies: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The latest counters of each copy."""
    samples: list[tuple[float, int, int]] = field(default_factory=list)
    """Moments, and the bytes that all readers had sent, and all other filters had received, by then."""
    committed: int = 0
    restarts: int = 0
    adaptations: int = 0
    """How often routing weights were changed."""
    faults: list[str] = field(default_factory=list)


class Fault(Exception):
    """Something that ends an attempt."""

    def __init__(
        self, problem: str, where: str, hint: str = "", *, host: str = "", link: bool = False, unit: int = 0
    ) -> None:
        super().__init__(problem)
        self.problem, self.where, self.hint = problem, where, hint
        self.host = host
        """The host that was lost, if one was."""
        self.link = link
        """Whether only a connection was lost, which has a cause elsewhere."""
        self.unit = unit
        """The unit in which it happened."""


class Supervisor:
    """One run of a plan."""

    def __init__(
        self,
        app: App,
        plan: StreamPlan,
        hosts: Hosts,
        options: StreamOptions,
        *,
        emulation: Emulation | None = None,
        commit: Callable[[UnitResult], None],
        observe: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self.app = app
        self.plan = plan
        self.hosts = hosts
        self.options = options
        self.emulation = emulation or Emulation()
        self.progress = Progress(plan)
        self._commit = commit
        self._observe = observe
        self._living = set(hosts.names)
        with packer() as pack:
            self._payload = base64.b64encode(pack(app, app.name)).decode()

    def run(self) -> Progress:
        """Until all units are committed. Raises TaskFailed if a fault remains."""
        while True:
            try:
                self._attempt()
                self._stop()
                return self.progress
            except Fault as fault:
                self.progress.faults.append(f"{fault.where}: {fault.problem}")
                self._recover(fault)

    def _recover(self, fault: Fault) -> None:
        """Prepare another attempt, or give up."""
        if fault.host:
            self._living.discard(fault.host)
        self._stop()
        if self.progress.restarts >= self.options.restarts or not self._living:
            raise TaskFailed(
                fault.problem, where=f"{self.app.name}: {fault.where}", hint=fault.hint
            ) from None
        self.progress.restarts += 1
        for host in self.plan.hosts:
            if host not in self._living:
                self.plan = self.plan.without(host, sorted(self._living))
        self.progress.plan = self.plan
        self.progress.copies.clear()
        self.progress.samples.clear()

    def _attempt(self) -> None:
        """Start all copies and see them through the units that are left."""
        attempt = _Attempt(self)
        attempt.start()
        attempt.supervise()

    def _stop(self) -> None:
        """End all copies, and skip the events they left."""
        waiting = set(self._living)
        for host in sorted(waiting):
            self.hosts.send(host, {"do": "stop"})
        deadline = time.monotonic() + START_SECONDS
        while waiting and time.monotonic() < deadline:
            event = self.hosts.receive(1.0)
            if event is None:
                continue
            if event["event"] == "progress":
                self.note(event)
            elif event["event"] in ("stopped", "lost"):
                waiting.discard(event["host"])
                if event["event"] == "lost":
                    self._living.discard(event["host"])

    def start_hosts(self, token: str) -> None:
        """Tell every host which copies it has."""
        specs = make_specs(self.app, self.plan, self.options, self.emulation, self.progress.committed)
        where = {copy.copy: copy.host for copy in self.plan.copies}
        for host in self.plan.hosts:
            mine = [spec.to_json() for spec in specs if where[spec.copy] == host]
            tls = None if self.hosts.tls is None else dict(self.hosts.tls)
            command = {"do": "start", "payload": self._payload, "token": token, "tls": tls, "copies": mine}
            self.hosts.send(host, command)

    def note(self, event: Event) -> None:
        """Keep the counters of a progress report."""
        progress = self.progress
        for copy, counters in event["copies"].items():
            progress.copies[int(copy)] = counters
        sent = received = 0
        for copy in self.plan.copies:
            counters = progress.copies.get(copy.copy)
            if counters is not None:
                received += counters["bytes_in"]
                sent += 0 if self.app.into(copy.filter) else counters["bytes_out"]
        progress.samples.append((time.monotonic(), sent, received))
        if len(progress.samples) > 20_000:  # a long run: keep every other one
            del progress.samples[1:-1:2]
        self._observe(progress)

    def commit_unit(self, number: int, files: Mapping[int, str]) -> None:
        """Fetch the results of a unit, hand them on, and remove them from the hosts."""
        results: dict[str, list[bytes]] = {}
        for copy in self.plan.copies:
            if copy.copy in files:
                data = self.hosts.fetch(copy.host, files[copy.copy])
                results.setdefault(copy.filter, []).extend(_buffers(data))
        unit = self.app.units[number % len(self.app.units)]
        self._commit(UnitResult(number, unit.name, results))
        self.progress.committed = number + 1
        for copy in self.plan.copies:
            if copy.copy in files:
                self.hosts.send(copy.host, {"do": "discard", "files": [files[copy.copy]]})


class _Attempt:
    """From the start of the copies to the end of the last unit, or to a fault."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._up = supervisor
        self._plan = supervisor.plan
        self._copy = {copy.copy: copy for copy in self._plan.copies}
        self._sinks = {c.copy for c in self._plan.copies if not supervisor.app.out_of(c.filter)}
        self._done: dict[int, dict[int, str]] = {}
        self._finished: set[int] = set()
        self._granted = 0
        self._last_total = -1
        self._last_change = time.monotonic()
        self._adapter = Adapter(supervisor.app, self._plan) if supervisor.options.adapt else None

    def start(self) -> None:
        """Start, connect, and let the readers begin."""
        self._up.start_hosts(secrets.token_hex(32))
        addresses: dict[int, tuple[str, int]] = {}
        deadline = time.monotonic() + START_SECONDS
        while len(addresses) < len(self._copy):
            event = self._up.hosts.receive(1.0)
            if time.monotonic() > deadline:
                late = next(c for c in self._copy.values() if c.copy not in addresses)
                raise Fault("it did not start in time", late.name, "see its output above")
            if event is None:
                continue
            if event["event"] == "listening":
                addresses[event["copy"]] = (self._up.hosts.address(event["host"]), event["port"])
            else:
                self._handle(event)
        for host in self._plan.hosts:
            self._up.hosts.send(host, {"do": "wire", "addresses": addresses})
        self._up.progress.began = self._last_change = time.monotonic()
        self._grant(self._up.progress.committed + _AHEAD)

    def supervise(self) -> None:
        """Until every copy has finished."""
        while len(self._finished) < len(self._copy):
            event = self._up.hosts.receive(0.25)
            if event is not None:
                self._handle(event)
            self._check_stall()
        self._up.progress.ended = time.monotonic()

    def _grant(self, units: int) -> None:
        """Let readers begin so many units; with a duration, no more once it is over."""
        options, total = self._up.options, len(self._up.app.units)
        if options.duration is None:
            units, last = total, True
        else:
            last = time.monotonic() - self._up.progress.began >= options.duration
            units = max(self._granted, total) if last else max(units, self._granted)
        self._granted = units
        for host in self._plan.hosts:
            self._up.hosts.send(host, {"do": "grant", "units": units, "last": last})

    def _handle(self, event: Event) -> None:
        kind = event["event"]
        if kind == "progress":
            self._up.note(event)
            self._adapt()
        elif kind == "unit":
            self._note_unit(event)
        elif kind == "finished":
            self._finished.add(event["copy"])
        elif kind in ("failed", "died", "lost"):
            raise self._root_cause(self._fault(event))

    def _adapt(self) -> None:
        """Change the proportions if it pays."""
        if self._adapter is None:
            return
        weights = self._adapter.observe(time.monotonic(), self._up.progress.copies)
        if weights is not None:
            self._up.progress.adaptations += 1
            for host in self._plan.hosts:
                self._up.hosts.send(host, {"do": "weights", "weights": weights})

    def _note_unit(self, event: Event) -> None:
        files = self._done.setdefault(event["unit"], {})
        files[event["copy"]] = event["file"]
        while (unit := self._up.progress.committed) in self._done and set(self._done[unit]) == self._sinks:
            self._up.commit_unit(unit, self._done.pop(unit))
            if self._up.options.duration is not None:
                self._grant(self._granted + 1)

    def _fault(self, event: Event) -> Fault:
        if event["event"] == "lost":
            return Fault("the host was lost", event["host"], "see whether it still runs", host=event["host"])
        copy = self._copy[event["copy"]]
        if event["event"] == "died":
            what = f"was killed by signal {-event['status']}" if event["status"] < 0 else "ended early"
            return Fault(f"its process {what}", copy.name, "look for memory limits, or use --restart")
        unit = self._up.app.units[event["unit"] % len(self._up.app.units)].name
        where = f"{copy.name}, unit {unit!r}" + (f": {event['where']}" if event["where"] else "")
        return Fault(event["problem"], where, event["hint"], link=event["link"], unit=event["unit"])

    def _root_cause(self, fault: Fault) -> Fault:
        """Give what is under way a moment: the units before the fault may end, and a lost connection is mostly the
        consequence of another fault."""
        deadline = time.monotonic() + _AFTERMATH_SECONDS
        while fault.link or self._up.progress.committed < fault.unit:
            event = self._up.hosts.receive(max(0.0, deadline - time.monotonic()))
            if event is None and time.monotonic() >= deadline:
                break
            if event is not None and event["event"] == "unit":
                self._note_unit(event)
            elif event is not None and event["event"] in ("failed", "died", "lost"):
                other = self._fault(event)
                fault = fault if other.link or not fault.link else other
        return fault

    def _check_stall(self) -> None:
        """Nobody computes, and nothing has moved for too long: a link is stuck."""
        copies = self._up.progress.copies
        total = sum(
            c["bytes_in"] + c["bytes_out"] + c["results"] + c["unit"] + c["busy_ns"] for c in copies.values()
        )
        now = time.monotonic()
        if total != self._last_total or any(c["state"] == COMPUTING for c in copies.values()):
            self._last_total, self._last_change = total, now
        elif now - self._last_change > self._up.options.stall:
            stuck = ", ".join(
                f"{self._copy[number].name} is {STATES[c['state']]}"
                for number, c in sorted(copies.items())
                if STATES[c["state"]] in ("waiting for credit", "sending")
            )
            raise Fault(
                f"no data has moved for {self._up.options.stall:g} s: {stuck or 'every copy waits for input'}",
                "a link stalls",
                "check the network between these hosts",
            )


def _buffers(data: bytes) -> Iterator[bytes]:
    """The buffers of a file of results."""
    place = 0
    while place < len(data):
        (size,) = _LENGTH.unpack_from(data, place)
        place += _LENGTH.size
        yield data[place : place + size]
        place += size
