"""After a loss, values that workers have kept are read back, in place of running their tasks again.

An item that is needed and has no copy left is loaded under its own key by a worker, without the tasks before it. From
then on the coordinator takes it as present on that host. If what was kept turns out to be damaged or out of reach, the
coordinator is told that the copy is lost, and the task runs again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distributed.metrics import time as engine_time

from headrace.model.events import CopyLost, DataMoved, Event, HostLeft, HostPaused
from headrace.runtime.commit import Entry, load_here
from headrace.runtime.dask_pins import NOWHERE
from headrace.runtime.kept_files import Keeping, Kept
from headrace.runtime.spooled import is_spooled

if TYPE_CHECKING:
    from headrace.core.coordinator import Coordinator
    from headrace.runtime.dask_copies import CopyIndex
    from headrace.runtime.dask_hosts import Hosts
    from headrace.runtime.dask_pins import Pins
    from headrace.runtime.graph import Key

_WAITS = ("waiting", "no-worker")


@dataclass(slots=True)
class _Load:
    """A key that is being loaded, and what it was before."""

    item: str
    host: str
    spec: Any
    dependencies: list[Any]


class Reloads:
    """Which items are kept, and which are being loaded. Without `keeping` there are none."""

    def __init__(
        self,
        engine: Any,
        keeping: Keeping | None,
        coordinator: Coordinator,
        copies: CopyIndex,
        hosts: Hosts,
        pins: Pins,
    ) -> None:
        self.engine = engine
        self.keeping = keeping
        self.coordinator = coordinator
        self.copies = copies
        self.hosts = hosts
        self.pins = pins
        self.kept: dict[str, Kept] = {}
        """What workers have kept and others can read."""
        self.loading: dict[Key, _Load] = {}
        self._free: list[Any] = []
        """The engine's tasks that loads may have made superfluous."""
        self._given_up: list[Key] = []

    def note(self, reported: Iterable[Entry]) -> None:
        """A task has finished: what its worker has kept, unless only that worker can read it."""
        for entry in reported if self.keeping is not None else ():
            kept = Kept(*entry)
            if not is_spooled(kept.file):
                self.kept[kept.item] = kept

    def forget(self, keys: Iterable[Key]) -> None:
        """These keys are no longer needed."""
        for key in keys:
            self.kept.pop(self.copies.item_of.get(key, ""), None)

    def begin(self, changes: Sequence[Event], now: float) -> list[Event]:
        """Prepare the loading of what is lost with these changes and kept; the coordinator is told the answer first.

        O(copies + items lost); call `start` afterwards.
        """
        if not self.kept or not any(isinstance(event, HostLeft | HostPaused | CopyLost) for event in changes):
            return []
        found: list[Event] = []
        unfit = {event.host for event in changes if isinstance(event, HostLeft | HostPaused)}
        needed = dict.fromkeys(self._needed(self._copies_after(changes)))
        moved = {load.item: load.host for load in self.loading.values() if load.host in unfit}
        for item in needed | moved:
            key = self.copies.key_of[item]
            host = self._host_for(key, unfit) if self._can_load(item) or key in self.loading else None
            if host is not None:
                self._cut(item, host)
                found.append(DataMoved(now, item, host, self.copies.place(host), now, 0.0))
            elif key in self.loading:
                self._give_up(key)
            if item in moved:
                found.append(CopyLost(now, item, self.copies.place(moved[item])))
        return found

    def start(self) -> None:
        """Let loads start whose keys waited for others; must not be called inside a transition."""
        moves: dict[Key, str] = {}
        for key in self.loading:
            state = self.engine.tasks.get(key)
            if state is not None and state.state == "waiting" and not state.waiting_on:
                moves[key] = "processing"
        given_up, self._given_up = self._given_up, []
        for key in given_up:
            state = self.engine.tasks.get(key)
            if state is not None and state.state in (*_WAITS, "processing"):
                moves[key] = "released"  # the engine finds out again what it waits for
        freed, self._free = self._free, []
        for state in freed:
            known = self.engine.tasks.get(state.key) is state
            if known and state.state in (*_WAITS, "memory") and not state.waiters and not state.who_wants:
                moves[state.key] = "released"
        if moves:
            self.engine.transitions(moves, stimulus_id=f"headrace-load-{engine_time()}")

    def loaded(self, key: Key) -> None:
        """A key is in memory: if it was loaded, the engine's task is as it was before."""
        if key in self.loading:
            self._restore(key)

    def failed(self, key: Key, now: float) -> list[Event]:
        """What was kept of an item cannot be loaded: the coordinator is told that its copy is lost."""
        load = self._restore(key)
        self.kept.pop(load.item, None)
        return [CopyLost(now, load.item, self.copies.place(load.host))]

    def stop(self) -> None:
        """Leave the engine's tasks as they were."""
        for key in list(self.loading):
            self._restore(key)

    def _copies_after(self, changes: Sequence[Event]) -> dict[int, set[str]]:
        """The places of each item's copies after these changes, if nothing were loaded because of them."""
        places, number = self.copies.known(), self.coordinator.view.item_number
        for event in changes:
            if isinstance(event, DataMoved):
                places.setdefault(number[event.item], set()).add(event.target)
            elif isinstance(event, CopyLost):
                places.get(number[event.item], set()).discard(event.place)
        lost = {self.copies.place(event.host) for event in changes if isinstance(event, HostLeft)}
        return {item: there - lost for item, there in places.items()}

    def _needed(self, places: dict[int, set[str]]) -> list[str]:
        """The kept items to be loaded: without a copy, and read by a task that has yet to run or must run again."""
        view = self.coordinator.view
        graph, done = view.graph, view.done
        load: dict[str, None] = {}
        seen: set[int] = set()
        pending = [item for item in places if not places[item] and self._is_read(item)]
        while pending:
            item = pending.pop()
            producer = int(graph.producer[item])
            if item in seen or places.get(item) or producer < 0 or not done[producer]:
                continue
            seen.add(item)
            name = graph.item_names[item]
            if self._can_load(name):
                load[name] = None
            else:
                pending += graph.reads_of(producer).tolist()
        return sorted(load)

    def _is_read(self, item: int) -> bool:
        """Whether a task that has not finished reads an item, or it is a result."""
        graph, done = self.coordinator.view.graph, self.coordinator.view.done
        readers = graph.readers[graph.reader_ptr[item] : graph.reader_ptr[item + 1]]
        return bool(graph.result[item] or not done[readers].all())

    def _can_load(self, item: str) -> bool:
        if item not in self.kept or item not in self.copies.key_of:
            return False
        state = self.engine.tasks.get(self.copies.key_of[item])
        return state is not None and state.state in _WAITS

    def _host_for(self, key: Key, gone: set[str]) -> str | None:
        """Where a key is loaded: where it is read first, or the host with the least to do."""
        down = self.coordinator.view.down | gone
        usable = {host: at for host, at in self.hosts.usable().items() if host not in down}
        usable = {host: at for host, at in usable.items() if host in self.coordinator.view.host_number}
        if not usable:
            return None
        reader = self.pins.first_reader(self.engine.tasks[key], usable)
        if reader is not None:
            return reader.host
        loads = [load.host for load in self.loading.values()]
        workers = self.engine.workers
        return min(usable, key=lambda host: (len(workers[usable[host]].processing) + loads.count(host), host))

    def _cut(self, item: str, host: str) -> None:
        """The engine's task of an item loads it; the tasks before it keep it as a dependent, so as to stay known."""
        from dask._task_spec import Task as EngineTask

        key = self.copies.key_of[item]
        state = self.engine.tasks[key]
        before = self.loading.get(key)
        if before is None:
            before = _Load(item, host, state.run_spec, list(state.dependencies))
            self.loading[key] = before
        before.host = host
        for dependency in list(state.dependencies):
            state.dependencies.discard(dependency)
            if state.waiting_on:
                state.waiting_on.discard(dependency)
            if dependency.waiters:
                dependency.waiters.discard(state)
            self._free.append(dependency)
        state.run_spec = EngineTask(key, load_here, self.keeping, self.kept[item])
        self.pins.place(key, host)

    def _give_up(self, key: Key) -> None:
        """There is no host to load a key: it is made again when there is one."""
        self._restore(key)
        self._given_up.append(key)

    def _restore(self, key: Key) -> _Load:
        load = self.loading.pop(key)
        state = self.engine.tasks.get(key)
        if state is not None:
            state.run_spec = load.spec
            state.worker_restrictions = {NOWHERE}
            state.dependencies.update(d for d in load.dependencies if self.engine.tasks.get(d.key) is d)
        return load
