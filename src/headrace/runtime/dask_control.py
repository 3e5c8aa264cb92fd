"""The coordinator inside the engine's scheduler: events in, and its commands carried out on the engine's tasks.

The coordinator alone decides what runs again after a loss. A finished task's key is restricted to no worker at all, so
that the engine, which would make again whatever was lost, has to wait for that decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.scheduler import Assign, Cancel, Fetch, Remove, Replicate, Requeue
from headrace.model.errors import NoPlan
from headrace.model.events import CopyLost, Event, HostJoined, HostLeft, Started, TaskErred, TaskReleased
from headrace.model.platform import Host, Platform
from headrace.runtime.dask_copies import CopyIndex
from headrace.runtime.dask_keeping import Keeping
from headrace.runtime.dask_pins import NOWHERE, Pins
from headrace.runtime.dask_reloads import Reloads
from headrace.runtime.dask_transfers import PlannedTransfers
from headrace.runtime.packing import unpack
from headrace.runtime.run_policy import RunPolicy, levels_between_copies
from headrace.runtime.warm_up import warm_up

if TYPE_CHECKING:
    from headrace.model.graph import Graph
    from headrace.runtime.dask_hosts import Hosts
    from headrace.runtime.graph import Key, Layout
    from headrace.runtime.kept_files import Keeping as KeptBy


class Control:
    """One run under a scheduler: the coordinator, and what it needs of the engine."""

    def __init__(self, engine: Any, layout: Layout, hosts: Hosts, emit: Callable[[Event], None]) -> None:
        self.engine = engine
        self.layout = layout
        self.hosts = hosts
        self.emit = emit
        self.timer = math.inf
        """When the scheduler will be asked next, as it wished."""
        self.asked_for = -math.inf
        """The last such time that has come."""
        self.told_dropped = 0
        self.losses = 0

    def prepare(
        self,
        policy: bytes,
        graph: Graph,
        platform: Platform,
        run_policy: RunPolicy,
        name: str,
        kept: KeptBy | None,
    ) -> None:
        """Make the coordinator and ask the scheduler for the first time, which may take long."""
        from headrace.core.coordinator import Coordinator  # imports compiled code that not every run needs
        from headrace.core.estimates import HistoryEstimates

        scheduler = unpack(policy)
        warm_up(scheduler)
        self.replicates_by_losses = run_policy.replicate == "auto"
        levels = 0 if run_policy.replicate == "auto" else run_policy.replicate
        self.coordinator = Coordinator(
            scheduler,
            graph,
            platform,
            policy=ExecutionPolicy(replicate=levels),
            estimates=HistoryEstimates(graph, platform),
            workers_queue=True,
            unseen_from=self.layout.n_items,
        )
        self.name = self.coordinator.scheduler.name
        address = self.hosts.address
        self.pins = Pins(self.engine, self.layout, self.hosts, self.name)
        self.copies = CopyIndex(self.engine, self.layout, self.coordinator, self.hosts.host_at)
        self.reloads = Reloads(self.engine, kept, self.coordinator, self.copies, self.hosts, self.pins)
        self.copies.loading = self.reloads.loading
        self.keeping = Keeping(self.engine, f"{name}-keeps", graph, self.copies.item_of)
        self.transfers = PlannedTransfers(
            self.engine, {name: key for key, name in self.layout.items.items()}, address, self._share_of_link
        )
        absent = [HostLeft(0.0, h.name) for h in platform.hosts if h.name not in address]
        self.planned_for = [h.name for h in platform.hosts if h.name in address]
        self.first_answer = self.coordinator.handle([*absent, Started(0.0)])

    def _share_of_link(self, source: str, target: str) -> float:
        """The share of the last link to a place that a transfer from another can use, by the platform."""
        platform = self.coordinator.view.platform
        if source not in platform.place_of or target not in platform.place_of:
            return 1.0
        network, ends = platform.network, (platform.place_of[source], platform.place_of[target])
        route = network.route(*ends)
        return network.bandwidth(*ends) / float(network.link_bandwidth[route[-1]]) if route else 1.0

    # The course of a run.

    def begin(self, now: float) -> None:
        """Execute the initial commands that are still valid, as hosts may have left or joined since."""
        there = self.hosts.address
        gone = [host for host in self.planned_for if host not in there]
        self._carry_out([command for command in self.first_answer if self._still_holds(command, gone)], now)
        view = self.coordinator.view
        left = [HostLeft(now, host) for host in gone if host not in view.down]
        new = [HostJoined(now, host) for host in sorted(there) if host in view.down]
        if left or new:
            self.handle([*left, *new], now)
        self.apply()

    def _still_holds(self, command: object, gone: list[str]) -> bool:
        if not isinstance(command, Assign):
            return True
        return command.task not in self.pins.pin and command.host not in gone

    def handle(self, events: Sequence[Event], now: float) -> None:
        """Tell the coordinator; state changes that follow are deferred to `apply`."""
        done_before = self.coordinator.records.state.done.copy()
        self._carry_out(self.coordinator.handle(events, now=now), now)
        done = self.coordinator.records.state.done
        undone = (done_before == 1) & (done == 0)
        if undone.any():
            self.keeping.again(undone.nonzero()[0].tolist())

    def finished(self, task: str, events: Sequence[Event], now: float) -> None:
        """A task has finished, and data has arrived for it before. Called inside a transition of the engine."""
        self.pins.finished(task)
        self.handle(events, now)
        self.keeping.finished(self.coordinator.view.task_number[task])

    def in_memory(self, key: Key) -> None:
        """A key of this run is in memory."""
        self.reloads.loaded(key)
        self.keeping.hold(key)
        if key in self.layout.follows and key not in self.layout.items:
            self._cut(key)

    def _cut(self, key: Key) -> None:
        """A signal, once given, can be given again without the task that gave it."""
        from dask._task_spec import Task as EngineTask

        from headrace.runtime.graph import nothing

        state = self.engine.tasks[key]
        for before in list(state.dependencies):
            before.dependents.discard(state)
            state.dependencies.discard(before)
        state.run_spec = EngineTask(key, nothing, None)

    def arrived(self, keys: Sequence[Key], address: str, now: float) -> None:
        """A worker reports copies."""
        events = self.copies.arrived(keys, address, now)
        if events:
            self.handle(events, now)

    def grid_changed(self, events: Sequence[Event], now: float) -> None:
        """Hosts have left, paused or joined: first the coordinator learns of every copy that there is."""
        if self.replicates_by_losses and any(isinstance(event, HostLeft) for event in events):
            self.losses += 1
            self.coordinator.replicate_every(self._levels_between_copies(now))
        self._lose([*self.copies.compare(now), *events], now)
        self.apply()

    def _lose(self, changes: Sequence[Event], now: float) -> None:
        """Tell of changes that include losses: what is kept is loaded, the rest is made again."""
        self.handle([*self.reloads.begin(changes, now), *changes], now)
        self.keeping.lost(self.coordinator.view.done, self.reloads.loading)

    def is_loading(self, key: Key) -> bool:
        """Whether a key is being loaded rather than made."""
        return key in self.reloads.loading

    def load_failed(self, key: Key, now: float) -> None:
        """A kept value could not be loaded; the engine's task waits to be retried. Call `apply` afterwards."""
        self._lose(self.reloads.failed(key, now), now)

    def _levels_between_copies(self, now: float) -> int:
        """For automatic replication: from losses so far, the pace of the run, and the sizes of what it has made."""
        view = self.coordinator.view
        levels = int(view.graph.level[view.done].max(initial=-1)) + 1
        made = float(view.state.size[view.graph.producer >= 0].sum()) / max(
            1, int(view.graph.level.max()) + 1
        )
        network = view.platform.network
        pairs = [network.seconds(0, place, made) for place in range(1, network.n_places)]
        copying = sum(pairs) / len(pairs) / len(view.platform.hosts) if pairs else 0.0
        return levels_between_copies(now, self.losses, levels, copying)

    def look_at_stranded(self, keys: Iterable[Key], now: float) -> None:
        """Keys that wait for a worker, though nobody will assign one: the engine wants what we took for finished."""
        stranded = [key for key in keys if self.pins.stranded(key)]
        view, tasks = self.coordinator.view, self.layout.tasks
        lost = [
            CopyLost(now, view.graph.item_names[item], place)
            for key in stranded
            if key in tasks and view.done[view.task_number[tasks[key]]]
            for item in view.graph.writes_of(view.task_number[tasks[key]]).tolist()
            for place in [view.platform.network.place_names[p] for p in view.places_of(item)]
        ]
        if lost:
            self._lose(lost, now)
        self.pins.assign(self._assigned_already(stranded))
        for key in stranded:
            if key not in tasks or (view.done[view.task_number[tasks[key]]] and self.pins.stranded(key)):
                self.pins.rescue(key)
        self.apply()

    def mend(self, now: float) -> None:
        """Look again at keys that wait for a worker although, as far as we know, they have one. O(such keys).

        Should an order of events have been overlooked, the run goes on all the same.
        """
        view, tasks = self.coordinator.view, self.layout.tasks
        stuck = []
        for state in self.engine.unrunnable:
            key = state.key
            if key in tasks:
                number = view.task_number[tasks[key]]
                known = view.done[number] or self.coordinator.told[number] >= 0
                forgotten = known and tasks[key] not in self.pins.unreleased
            else:
                forgotten = key in self.layout.follows
            if forgotten and key not in self.pins.to_apply:
                stuck.append(key)
        if stuck:
            self.look_at_stranded(sorted(stuck), now)

    def _assigned_already(self, keys: Iterable[Key]) -> list[Assign]:
        """Assignments of tasks that were running elsewhere at that time, and no longer are."""
        view, usable = self.coordinator.view, self.hosts.usable()
        found = []
        for key in keys:
            if key in self.layout.tasks:
                task = view.task_number[self.layout.tasks[key]]
                host = int(self.coordinator.told[task])
                if host >= 0 and view.platform.hosts[host].name in usable:
                    name, rank = view.platform.hosts[host].name, float(view.state.rank[task])
                    found.append(Assign(self.layout.tasks[key], name, rank))
        return found

    def failed(self, event: TaskErred, preferred: Sequence[str]) -> None:
        """A task is about to be tried again: on one of the preferred hosts, if there is one.

        Its scheduler may choose another host, or none. Call `apply` afterwards.
        """
        before = self.pins.pin.get(event.task)
        self.handle([event], event.time)
        pin = self.pins.pin.get(event.task) or before
        if pin is None or not preferred:
            return
        if pin.host not in preferred:
            pin = replace(pin, host=self.pins.least_busy(preferred))
        self.pins.assign([pin])

    def release(self, tasks: Sequence[str], now: float) -> None:
        """The release times of tasks have passed."""
        self.handle([TaskReleased(now, task) for task in tasks], now)
        pins = [self.pins.pin[task] for task in tasks if task in self.pins.pin]
        self.pins.assign([pin for pin in pins if pin.host in self.hosts.address])
        self.apply()

    def admit(self, host: str, cores: int) -> bool:
        """Add a host that the platform did not have, as fast as the mean until it is measured."""
        view = self.coordinator.view
        if host in view.host_number:
            return True
        known = view.platform.hosts
        speed = sum(h.speed * (1.0 - h.load) for h in known) / len(known)
        return self.coordinator.grow(Host(host, speed, cores))

    def reconcile(self, now: float) -> bool:
        """Nothing moves although tasks are ready: compare with the engine, then ask again. True if that helped."""
        events = self.copies.compare(now)
        if events:
            self.grid_changed(events, now)
        if not self.pins.to_apply:
            self._carry_out(self.coordinator.unblock(), now)
        helped = bool(self.pins.to_apply)
        self.apply()
        return helped

    def ask_in_time(self, now: float) -> None:
        """The time is there for which a timer was set; the scheduler may have named a later one meanwhile."""
        self.asked_for, self.timer = self.timer, math.inf
        self.handle((), now)
        self.apply()

    # Commands of the coordinator.

    def _carry_out(self, commands: Sequence[object], now: float) -> None:
        for event in self.coordinator.dropped[self.told_dropped :]:
            self.emit(event)
        self.told_dropped = len(self.coordinator.dropped)
        for command in commands:
            if isinstance(command, Requeue | Cancel):
                self.pins.hold(command.task, running=isinstance(command, Cancel))
        self.pins.assign([command for command in commands if isinstance(command, Assign)])
        fetches = [command for command in commands if isinstance(command, Fetch)]
        if fetches:
            self.transfers.replace(fetches)
        for command in commands:
            if isinstance(command, Replicate):
                self.transfers.replicate(command.item, command.target)
            elif isinstance(command, Remove):
                self.transfers.remove(command.item, command.place)
        self._set_timer(now)

    def _set_timer(self, now: float) -> None:
        """Note the time at which the scheduler wants to be asked."""
        at = self.coordinator.scheduler.wake.at
        if self.asked_for < at < self.timer:
            self.timer = at
            self.on_timer(max(0.0, at - now))

    on_timer: Callable[[float], None]
    """Set by the plugin: have `ask_in_time` called after so many seconds."""

    @property
    def waits(self) -> bool:
        """Whether something is about to happen: a change to apply, or a time at which the scheduler is asked."""
        return bool(self.pins.to_apply) or self.timer < math.inf

    @property
    def has_changes(self) -> bool:
        """Whether `apply` has something to do."""
        return bool(self.pins.to_apply or not self.transfers.is_idle or self.keeping.to_release)

    def apply(self) -> None:
        """Move tasks to their hosts, start transfers, drop data; must not be called inside a transition."""
        self.reloads.forget(self.keeping.flush())
        self.reloads.start()
        self.pins.apply()
        self.transfers.start_next()

    def require_hosts(self) -> None:
        """Raise NoPlan if ready tasks have no host, and asking again does not help: the run would never end."""
        held = self.pins.held()
        if held:
            raise NoPlan(
                f"{len(held)} ready tasks have no host, the first is {held[0]!r}",
                where=self.name,
                hint="use another scheduler",
            )

    def hold_all(self, keys: set[Key]) -> None:
        """No key of the graph has a host yet."""
        for key in keys:
            self.engine.tasks[key].worker_restrictions = {NOWHERE}

    def stop(self) -> None:
        self.reloads.stop()
        self.keeping.stop()
