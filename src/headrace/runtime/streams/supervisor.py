"""Carries out a plan: starts the copies, commits the results of each unit of work once, and ends everything.

A fault ends all copies. With restarts left, the units that are not committed are replayed from the readers;
otherwise the run fails, and the results of the units before are kept.
"""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import Callable, Iterator, Mapping

from headrace.model.errors import TaskFailed
from headrace.runtime.filters import App
from headrace.runtime.packing import packer
from headrace.runtime.streams.attempt import START_SECONDS, Attempt
from headrace.runtime.streams.faults import Fault
from headrace.runtime.streams.hosts import Event, Hosts
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import StreamPlan
from headrace.runtime.streams.progress import Progress, UnitResult
from headrace.runtime.streams.redeploy import Redeployer
from headrace.runtime.streams.specs import Emulation, make_specs

_LENGTH = struct.Struct("<I")


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
        redeployer: Redeployer | None = None,
        commit: Callable[[UnitResult], None],
        observe: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self.app = app
        self.plan = plan
        self.hosts = hosts
        self.options = options
        self.emulation = emulation or Emulation()
        self.redeployer = redeployer
        """Plans other deployments while it runs, on any of the hosts; None: only routing weights adapt."""
        self.progress = Progress(plan)
        self.living = set(hosts.names)
        self._emulated_since = 0.0
        self._commit = commit
        self._observe = observe
        with packer() as pack:
            self._payload = base64.b64encode(pack(app, app.name)).decode()

    def run(self) -> Progress:
        """Until all units are committed. Raises TaskFailed if a fault remains."""
        while True:
            try:
                attempt = Attempt(self)
                attempt.start()
                changed = attempt.supervise()
                self._stop()
                if changed is None or not self.living:
                    return self.progress
                self._change(changed)
            except Fault as fault:
                self.progress.faults.append(f"{fault.where}: {fault.problem}")
                self._recover(fault)

    def _change(self, plan: StreamPlan) -> None:
        """Go on with another deployment; all units that were begun are committed."""
        progress = self.progress
        progress.redeployments += 1
        if progress.samples:
            progress.retired = progress.samples[-1][1:]
        progress.copies.clear()
        self._adopt(plan)

    def _recover(self, fault: Fault) -> None:
        """Prepare another attempt, or give up."""
        if fault.host:
            self.give_up(fault.host)
        self._stop()
        if self.progress.restarts >= self.options.restarts or not self.living:
            raise TaskFailed(
                fault.problem, where=f"{self.app.name}: {fault.where}", hint=fault.hint
            ) from None
        self.progress.restarts += 1
        self.progress.copies.clear()
        self.progress.samples.clear()
        self.progress.began, self.progress.retired = 0.0, (0, 0)
        self._adopt(self.plan)

    def _adopt(self, plan: StreamPlan) -> None:
        """Use this plan from now on, on the hosts that are left."""
        for host in plan.hosts:
            if host not in self.living:
                plan = plan.without(host, sorted(self.living))
        self.plan = self.progress.plan = plan

    def receive(self, timeout: float) -> Event | None:
        """The next event; those of a host that was given up, and has woken up since, are ignored."""
        event = self.hosts.receive(timeout)
        return event if event is not None and event["host"] in self.living else None

    def _stop(self) -> None:
        """End all copies, and skip the events they left."""
        waiting = set(self.living)
        for host in sorted(waiting):
            self.hosts.send(host, {"do": "stop"})
        deadline = time.monotonic() + START_SECONDS
        while waiting and time.monotonic() < deadline:
            event = self.receive(1.0)
            if event is None:
                continue
            if event["event"] == "progress":
                self.note(event)
            elif event["event"] in ("stopped", "lost"):
                waiting.discard(event["host"])
                if event["event"] == "lost":
                    self.give_up(event["host"])
        for host in waiting:
            self.give_up(host)

    def give_up(self, host: str) -> None:
        """Do without a host."""
        self.living.discard(host)
        self.hosts.abandon(host)

    def start_hosts(self, token: str) -> None:
        """Tell every host which copies it has."""
        self._emulated_since = self._emulated_since or time.monotonic()
        specs = make_specs(
            self.app,
            self.plan,
            self.options,
            self.emulation,
            self.progress.committed,
            self._emulated_since,
        )
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
        sent, received = progress.retired
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


def _buffers(data: bytes) -> Iterator[bytes]:
    """The buffers of a file of results."""
    place = 0
    while place < len(data):
        (size,) = _LENGTH.unpack_from(data, place)
        place += _LENGTH.size
        yield data[place : place + size]
        place += size
