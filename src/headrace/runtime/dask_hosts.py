"""The workers of a run: which host each one is, and whether it can be used.

A worker can be used while it runs and is heard of. One that is paused (its memory is full) or retiring takes no more
tasks, but its data can be read. One that is silent is suspected: as far as the engine is concerned, its tasks and data
are taken from it, but it is not told. If it comes back with an answer before another worker has one, its answer counts.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from distributed.metrics import time as engine_time

from headrace.runtime.dask_pins import NOWHERE

if TYPE_CHECKING:
    from headrace.runtime.graph import Key

State = Literal["up", "paused", "silent"]


class Hosts:
    """Names and addresses of workers, and the state of each as the coordinator was told."""

    def __init__(self, scheduler: Any, known: Callable[[str], bool], suspect: float) -> None:
        self.scheduler = scheduler
        self.known = known
        """Whether a name is that of a host of the platform."""
        self.suspect = suspect
        self.address: dict[str, str] = {}
        """Hosts that are there, without silent ones."""
        self.host_at: dict[str, str] = {}
        self.told: dict[str, State] = {}
        self._looked = engine_time()
        self._heard = 0.0
        """When the scheduler itself was last busy for long: it received no messages before."""

    def note(self, address: str, host: str) -> None:
        """A worker is there."""
        self.host_at[address] = host
        if self.known(host):
            self.address[host] = address
            self.told[host] = "up"

    def admit(self, address: str, host: str) -> None:
        """A worker that is no host of the platform takes part all the same."""
        self.address[host] = address
        self.told[host] = "up"

    def tell(self, host: str, address: str, state: State) -> None:
        """The coordinator is about to be told the state of a host."""
        self.told[host] = state
        if state == "silent":
            self.address.pop(host, None)
        else:
            self.address[host] = address

    def forget(self, address: str) -> str:
        """A worker is gone; returns its host, or "" if that has another worker by now."""
        host = self.host_at[address]
        if self.address.get(host, address) != address:
            return ""
        self.address.pop(host, None)
        self.told.pop(host, None)
        return host

    def overlooked(self) -> tuple[list[str], list[str]]:
        """Addresses of workers that are gone, and of workers that are new, which were not reported. O(workers).

        The engine calls the hooks of a plugin only after it has started, and planning is part of that.
        """
        there = self.scheduler.workers
        silent = {host: address for address, host in self.host_at.items() if self.told.get(host) == "silent"}
        known = {*self.address.values(), *silent.values()}
        return sorted(known - there.keys()), [address for address in there if address not in self.host_at]

    def host(self, address: str) -> str:
        """The host at an address, or the address itself."""
        return self.host_at.get(address, address)

    def usable(self) -> dict[str, str]:
        """The addresses of the hosts that take tasks."""
        return {host: address for host, address in self.address.items() if self.told[host] == "up"}

    def address_of(self, host: str) -> str | None:
        """The address of a host, also of a silent one."""
        if host in self.address:
            return self.address[host]
        there = [a for a, name in self.host_at.items() if name == host and a in self.scheduler.workers]
        return there[-1] if there else None

    def changes(self) -> list[tuple[str, State]]:
        """Hosts whose state is no longer what was told, in order of name; call it often. O(hosts)."""
        now = engine_time()
        if now - self._looked > self.suspect / 2:  # we were deaf, they need not have been silent
            self._heard = now
        self._looked = now
        found = []
        for host in sorted(self.told):
            state = self._state(host, now)
            if state is not None and state != self.told[host]:
                found.append((host, state))
        return found

    def _state(self, host: str, now: float) -> State | None:
        worker = self.scheduler.workers.get(self.address_of(host) or "")
        if worker is None:
            return None
        if now - max(worker.last_seen, self._heard) > self.suspect:
            return "silent"
        return "up" if worker.status.name == "running" else "paused"

    def silence(self, host: str) -> float:
        """Seconds since a host was heard of."""
        worker = self.scheduler.workers.get(self.address_of(host) or "")
        return 0.0 if worker is None else engine_time() - worker.last_seen


async def run_on_workers(
    scheduler: Any, workers: list[str], function: Callable[..., Any], argument: str
) -> None:
    """Call a function on workers, from the scheduler; it receives the worker as `dask_worker`."""
    message = {
        "op": "run",
        "function": pickle.dumps(function),
        "args": pickle.dumps((argument,)),
        "wait": True,
    }
    with suppress(Exception):  # a worker that cannot be reached is about to be noticed
        await scheduler.broadcast(msg=message, workers=workers, on_error="ignore")


def hang_up(address: str, dask_worker: Any) -> None:
    """On a worker: close all connections to another one."""
    dask_worker.rpc.remove(address)


class Suspects:
    """What was taken from silent workers, and is given back if they return."""

    def __init__(self, scheduler: Any, known: set[Key]) -> None:
        self.scheduler = scheduler
        self.known = known
        self.running: dict[Key, str] = {}
        """Tasks that a silent worker was given, and its address."""
        self.data: dict[str, list[Key]] = {}

    def take(self, address: str) -> None:
        """Have the engine run and make elsewhere what a silent worker runs and has. The worker is not told."""
        worker = self.scheduler.workers[address]
        recommendations: dict[Any, str] = {}
        for state in list(worker.processing):
            if state.key in self.known:
                recommendations[state.key] = "released"
                self.running[state.key] = address
                state.worker_restrictions = {NOWHERE}  # else the engine would send it there again
        taken = self.data.setdefault(address, [])
        for state in list(worker.has_what):
            if state.key in self.known:
                taken.append(state.key)
                self.scheduler.remove_replica(state, worker)
                if not state.who_has:
                    recommendations[state.key] = "released"
        to_clients: dict[str, list[Any]] = {}
        to_workers: dict[str, list[Any]] = {}
        self.scheduler._transitions(
            recommendations, to_clients, to_workers, f"headrace-silent-{engine_time()}"
        )
        to_workers.pop(address, None)
        self.scheduler.send_all(to_clients, to_workers)
        self.scheduler.loop.add_callback(self._hang_up, address)

    async def _hang_up(self, address: str) -> None:
        """Break connections of other workers to a silent one: they would wait for its data forever."""
        others = [other for other in self.scheduler.workers if other != address]
        await run_on_workers(self.scheduler, others, hang_up, address)

    def give_back(self, address: str) -> None:
        """A silent worker is heard again: its copies count again where the data still exists, else it drops them."""
        worker = self.scheduler.workers.get(address)
        drop = []
        for key in self.data.pop(address, ()):
            state = self.scheduler.tasks.get(key)
            if worker is not None and state is not None and state.state == "memory":
                self.scheduler.add_replica(state, worker)
            else:
                drop.append(key)
        if worker is not None and drop:
            message = {"op": "free-keys", "keys": drop, "stimulus_id": f"headrace-back-{engine_time()}"}
            self.scheduler.worker_send(address, message)

    def adopt(self, key: Key, address: str) -> bool:
        """Whether the answer of a worker that was silent is the first one; the engine then asks it for it again.

        The engine expects the answer from another worker, if any, and would refuse this one.
        """
        if self.running.get(key) != address:
            return False
        del self.running[key]
        state = self.scheduler.tasks.get(key)
        if state is None or state.state not in ("processing", "no-worker"):
            return False
        if state.state == "processing" and state.processing_on.address == address:
            return False
        state.worker_restrictions = {address}
        target = "released" if state.state == "processing" else "processing"
        self.scheduler.transitions({key: target}, stimulus_id=f"headrace-first-{engine_time()}")
        return True
