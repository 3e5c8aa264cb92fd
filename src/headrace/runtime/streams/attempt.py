"""One attempt of a stream run: from the start of the copies to the end of the last unit, or to a fault."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from headrace.runtime.streams.adapt import Adapter
from headrace.runtime.streams.capacities import Capacities
from headrace.runtime.streams.faults import Fault, lost_host
from headrace.runtime.streams.hosts import Event
from headrace.runtime.streams.liveness import Liveness
from headrace.runtime.streams.plan import StreamPlan

if TYPE_CHECKING:
    from headrace.runtime.streams.supervisor import Supervisor

START_SECONDS = 60.0
"""Time for all copies to start and connect."""
_AFTERMATH_SECONDS = 2.0
"""After a fault, time for the units before it to end, and to learn why a connection was lost."""
_AHEAD = 2
"""Units that readers may begin before the first of them is committed, if they do not begin all at once."""
_RATE_SECONDS = 3.0
"""Over which the throughput is measured that another deployment has to exceed."""


class Attempt:
    """From the start of the copies to the end of the last unit, or to a fault."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._up = supervisor
        self._plan = supervisor.plan
        self._copy = {copy.copy: copy for copy in self._plan.copies}
        self._sinks = {c.copy for c in self._plan.copies if not supervisor.app.out_of(c.filter)}
        readers = [c.host for c in self._plan.copies if not supervisor.app.into(c.filter)]
        self._reading = tuple(dict.fromkeys(readers))
        self._done: dict[int, dict[int, str]] = {}
        self._finished: set[int] = set()
        self._granted = 0
        self._all_granted = False
        self._next_plan: StreamPlan | None = None
        self._liveness = Liveness(self._copy, supervisor.options.stall)
        self._capacities = Capacities(supervisor.app, self._plan)
        self._adapter = Adapter(supervisor.app, self._plan) if supervisor.options.adapt else None

    def start(self) -> None:
        """Start, connect, and let the readers begin."""
        self._up.start_hosts(secrets.token_hex(32))
        addresses: dict[int, tuple[str, int]] = {}
        deadline = time.monotonic() + START_SECONDS
        while len(addresses) < len(self._copy):
            event = self._up.receive(1.0)
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
        progress = self._up.progress
        progress.since = time.monotonic()
        progress.began = progress.began or progress.since
        self._liveness = Liveness(self._copy, self._up.options.stall)
        self._grant(progress.committed + _AHEAD)

    def supervise(self) -> StreamPlan | None:
        """Until every copy has finished. Returns the deployment to go on with, if it is to change."""
        while len(self._finished) < len(self._copy):
            event = self._up.receive(0.25)
            if event is not None:
                self._handle(event)
            self._liveness.check(self._up.progress.copies)
        self._up.progress.ended = time.monotonic()
        return self._next_plan

    def _grant(self, units: int) -> None:
        """Let readers begin this many units. All at once, unless the run may end or change before the last."""
        options, total = self._up.options, len(self._up.app.units)
        if self._next_plan is not None:
            units, last = self._granted, True
        elif options.duration is not None:
            last = time.monotonic() - self._up.progress.began >= options.duration
            units = max(self._granted, total) if last else max(units, self._granted)
        elif self._up.redeployer is not None:
            units = max(self._granted, min(units, total))
            last = units == total
        else:
            units, last = total, True
        self._granted, self._all_granted = units, last
        for host in self._reading:
            self._up.hosts.send(host, {"do": "grant", "units": units, "last": last})

    def _handle(self, event: Event) -> None:
        kind = event["event"]
        if kind == "progress":
            self._up.note(event)
            self._liveness.note(event)
            self._adapt()
        elif kind == "unit":
            self._note_unit(event)
        elif kind == "finished":
            self._finished.add(event["copy"])
        elif kind == "lost" and event["host"] not in self._plan.hosts:
            self._up.give_up(event["host"])  # it had no copy
        elif kind in ("failed", "died", "lost"):
            raise self._root_cause(self._fault(event))

    def _adapt(self) -> None:
        """Change the proportions, or the copies, if it pays."""
        progress, now = self._up.progress, time.monotonic()
        if self._adapter is None or not self._capacities.update(now, progress.copies):
            return
        weights = self._adapter.observe(self._capacities)
        if weights is not None:
            progress.adaptations += 1
            for host in self._plan.hosts:
                self._up.hosts.send(host, {"do": "weights", "weights": weights})
        if self._up.redeployer is not None and not self._all_granted:
            found = self._up.redeployer.observe(
                now, self._plan, self._capacities, progress.rate(_RATE_SECONDS), self._up.living
            )
            progress.plans = self._up.redeployer.plans
            if found is not None:  # readers begin no more units with the present copies
                self._next_plan = found
                self._grant(self._granted)

    def _note_unit(self, event: Event) -> None:
        files = self._done.setdefault(event["unit"], {})
        files[event["copy"]] = event["file"]
        while (unit := self._up.progress.committed) in self._done and set(self._done[unit]) == self._sinks:
            self._up.commit_unit(unit, self._done.pop(unit))
            if not self._all_granted:
                self._grant(self._granted + 1)

    def _fault(self, event: Event) -> Fault:
        if event["event"] == "lost":
            return lost_host(event["host"])
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
            event = self._up.receive(max(0.0, deadline - time.monotonic()))
            if event is None and time.monotonic() >= deadline:
                break
            if event is not None and event["event"] == "unit":
                self._note_unit(event)
            elif event is not None and event["event"] in ("failed", "died", "lost"):
                other = self._fault(event)
                fault = fault if other.link or not fault.link else other
        return fault
