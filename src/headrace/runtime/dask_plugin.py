"""The plugin inside the engine's scheduler; only `dask_*` and `worker_report` use non-public hooks of distributed.

It relies on the following, in addition to the documented hooks of SchedulerPlugin:
- `update_graph` runs before any task of the graph can start, and `transition` of a finished task before
  its dependents are placed: restrictions and priorities set there are obeyed;
- `remove_worker` is called after lost tasks were rescheduled: those pinned to the lost worker are then in
  `no-worker`, where the engine would leave them forever.
"""

from __future__ import annotations

import asyncio
import functools
import math
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.metrics import time as engine_time

from headrace.core.scheduler import Assign, Cancel, Fetch, Remove, Replicate, Requeue
from headrace.model.errors import HeadraceError, NoPlan
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, Started, TaskErred, TaskFinished
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.runtime.dask_outbox import Outbox, error_text
from headrace.runtime.dask_pins import NOWHERE, Pins
from headrace.runtime.dask_transfers import PlannedTransfers
from headrace.runtime.packing import unpack
from headrace.runtime.warm_up import warm_up
from headrace.runtime.worker_report import METADATA

if TYPE_CHECKING:
    from headrace.core.coordinator import Coordinator
    from headrace.runtime.graph import Key, Layout

Hook = TypeVar("Hook", bound=Callable[..., Any])


def _guarded(hook: Hook) -> Hook:
    """End the run when a hook raises an exception; the engine would only log it."""

    @functools.wraps(hook)
    def guarded(self: CoordinatorPlugin, *args: Any, **kwargs: Any) -> None:
        try:
            hook(self, *args, **kwargs)
        except HeadraceError as error:
            self.fail(error)
        except Exception:
            self.fail(HeadraceError(f"the policy failed:\n{traceback.format_exc()}", where="scheduler"))

    return cast(Hook, guarded)


class CoordinatorPlugin(SchedulerPlugin):  # type: ignore[misc]
    """Executes a scheduler's assignments or, with `policy` None, only observes.

    All events are sent to the client in batches under `topic`: dictionaries with `events`,
    `measured`, and once `end` or `error`.
    """

    def __init__(
        self,
        layout: Layout,
        graph: Graph,
        platform: Platform,
        policy: bytes | None,
        topic: str,
        patience: float,
    ) -> None:
        self.name = topic
        self.layout = layout
        self.graph = graph
        self.platform = platform
        self.policy = policy
        self.topic = topic
        self.patience = patience
        """Seconds to wait for a worker when none is left."""

    async def start(self, scheduler: Any) -> None:
        """Plan: errors raised here are passed to the client unchanged."""
        self.scheduler = scheduler
        self.began: float | None = None
        self.over = False
        self.outbox = Outbox(scheduler, self.topic, self._send)
        self.told_dropped = 0
        self.known = {*self.layout.tasks, *self.layout.follows}
        self.wanted = frozenset(self.layout.wanted)
        self.missing = set(self.layout.wanted)
        self.busy: set[Key] = set()
        self.host_names = {host.name for host in self.platform.hosts}
        self.address: dict[str, str] = {}
        self.host_at: dict[str, str] = {}
        self.told_lost: set[str] = set()
        """Hosts reported as lost since the run began."""
        for address, worker in scheduler.workers.items():
            self._note_worker(address, str(worker.name))
        if not self.address:
            raise _no_worker(self.platform)
        self.coordinator: Coordinator | None = None
        self.timer = math.inf
        """When the scheduler will be asked next, as it wished."""
        self.asked_for = -math.inf
        """The last such time that has come."""
        if self.policy is not None:
            # In a thread, so that the scheduler stays responsive to workers and other clients.
            await asyncio.to_thread(self._prepare_policy)

    def _prepare_policy(self) -> None:
        assert self.policy is not None
        from headrace.core.coordinator import Coordinator  # imports compiled code that not every run needs
        from headrace.core.estimates import HistoryEstimates

        scheduler = unpack(self.policy)
        warm_up(scheduler)
        self.coordinator = Coordinator(
            scheduler,
            self.graph,
            self.platform,
            estimates=HistoryEstimates(self.graph, self.platform),
            workers_queue=True,
        )
        self.policy_name = self.coordinator.scheduler.name
        self.pins = Pins(self.scheduler, self.layout, self.graph, self.address, self.policy_name)
        absent = [HostLeft(0.0, h.name) for h in self.platform.hosts if h.name not in self.address]
        self.planned_for = [h.name for h in self.platform.hosts if h.name in self.address]
        self.transfers = PlannedTransfers(
            self.scheduler, {name: key for key, name in self.layout.items.items()}, self.address
        )
        self.first_answer = self.coordinator.handle([*absent, Started(0.0)])

    # Hooks called by the engine.

    @_guarded
    def update_graph(self, scheduler: Any, *, tasks: list[Key], **_: Any) -> None:
        if self.began is not None or not tasks or tasks[0] not in self.known:
            return
        self.began = engine_time()
        self.outbox.emit(Started(0.0))
        if self.coordinator is None:
            return
        for key in self.known:
            scheduler.tasks[key].worker_restrictions = {NOWHERE}
        # The engine has already ordered the first tasks by its own priorities: hold them back until
        # it is done and then send them by ours, since a worker starts with what it receives first.
        scheduler.loop.add_callback(self._begin)

    @_guarded
    def _begin(self) -> None:
        """Execute the initial commands that are still valid."""
        assert self.coordinator is not None
        workers = self.scheduler.workers
        gone = [host for host in self.planned_for if self.address.get(host) not in workers]
        left = [HostLeft(self._now(), host) for host in gone if host not in self.told_lost]
        for event in left:
            self.address.pop(event.host, None)
            self.outbox.emit(event)
        self._carry_out([command for command in self.first_answer if self._still_holds(command, gone)])
        if left:
            self._carry_out(self.coordinator.handle(left))
        self._apply()

    def _still_holds(self, command: object, gone: list[str]) -> bool:
        """Whether an initial command is still valid, as hosts may have left or joined since."""
        if not isinstance(command, Assign):
            return True
        there = command.host in self.address or command.host not in self.planned_for
        return command.task not in self.pins.pin and command.host not in gone and there

    def transition(self, key: Key, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if key in self.known and not self.over:
            self._moved_on(key, start, finish, kwargs)

    @_guarded
    def _moved_on(self, key: Key, start: str, finish: str, details: dict[str, Any]) -> None:
        if start == "processing":
            self.busy.discard(key)
        elif start == "memory" and key in self.wanted:
            self.missing.add(key)
        if finish == "processing":
            self.busy.add(key)
        elif finish == "memory":
            if details.get("metadata"):
                self._finished(key, details["metadata"].get(METADATA), details["worker"])
            self.missing.discard(key)
            if not self.missing:
                self.outbox.send_soon(now=True)
        elif finish == "erred":
            self._erred(key, details)

    @_guarded
    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        if worker in self.host_at and not self.over:
            self._host_left(worker)

    @_guarded
    def add_worker(self, scheduler: Any, worker: str) -> None:
        host = str(scheduler.workers[worker].name)
        self._note_worker(worker, host)
        if host not in self.address or self.began is None or self.over:
            return
        event = HostJoined(self._now(), host)
        self.outbox.emit(event)
        if self.coordinator is not None:
            self._carry_out(self.coordinator.handle([event]))
            self.pins.rescue()
            self._apply()

    # Event handling.

    def _now(self) -> float:
        return self._since(engine_time())

    def _since(self, instant: float) -> float:
        return float(instant - (self.began or instant))

    def _note_worker(self, address: str, host: str) -> None:
        self.host_at[address] = host
        if host in self.host_names:
            self.address[host] = address

    def _finished(self, key: Key, measured: dict[str, Any] | None, worker: str) -> None:
        if measured is None:
            return
        host, task = self._host(worker), self.layout.tasks[key]
        happened = self._moves(measured.pop("moves"), host)
        begin, end = self._since(measured["start"]), self._since(measured["finish"])
        sizes = tuple((name, float(size)) for name, size in measured["sizes"])
        happened.append(TaskFinished(end, task, host, begin, sizes))
        self.outbox.measured.append((task, measured))
        for event in happened:
            self.outbox.emit(event)
        if self.coordinator is not None:
            self._carry_out(self.coordinator.handle(happened))
            # Transitions must not be nested: tasks are moved right after this one.
            if self.pins.to_apply or self.transfers.waiting:
                self.scheduler.loop.add_callback(self._apply)

    def _moves(self, moves: Iterable[Any], target: str) -> list[Event]:
        return [
            DataMoved(
                self._since(stop),
                self.layout.items[key],
                self._host(who),
                target,
                self._since(start),
                float(size),
            )
            for start, stop, who, keys in moves
            for key, size in keys
            if key in self.layout.items
        ]

    def _host(self, address: str) -> str:
        return self.host_at.get(address, address)

    def _erred(self, key: Key, details: dict[str, Any]) -> None:
        state = self.scheduler.tasks.get(key)
        if state is None or state.exception_blame is not state:
            return
        task = self.layout.tasks.get(key) or self.layout.follows[key][0]
        host = self._host(details.get("worker") or "")
        self.outbox.emit(TaskErred(self._now(), task, host, error_text(details)))
        self.outbox.send_soon(now=True)

    def _host_left(self, address: str) -> None:
        host = self.host_at[address]
        if self.address.get(host) == address:
            del self.address[host]
        if self.began is None:
            return
        event = HostLeft(self._now(), host)
        self.told_lost.add(host)
        self.outbox.emit(event)
        if not self.address:
            self.scheduler.loop.call_later(self.patience, self._give_up_without_hosts)
        if self.coordinator is None or host not in self.host_names:
            return
        self._carry_out(self.coordinator.handle([event]))
        self.pins.rescue()
        self._apply()

    @_guarded
    def _give_up_without_hosts(self) -> None:
        if not self.address and not self.over:
            raise _no_worker(self.platform)

    # Commands of the coordinator.

    def _carry_out(self, commands: Sequence[object]) -> None:
        """Execute the coordinator's commands; state changes of tasks are deferred to `_apply`."""
        assert self.coordinator is not None
        for event in self.coordinator.dropped[self.told_dropped :]:
            self.outbox.emit(event)
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
        self._set_timer()

    def _apply(self) -> None:
        self.pins.apply()
        self.transfers.start_next()

    def _set_timer(self) -> None:
        """Have the scheduler asked at the time it named last."""
        assert self.coordinator is not None
        at = self.coordinator.scheduler.wake.at
        if self.asked_for < at < self.timer:
            self.timer = at
            self.scheduler.loop.call_later(max(0.0, at - self._now()), self._ask_in_time)

    @_guarded
    def _ask_in_time(self) -> None:
        """The time is there for which a timer was set; the scheduler may have named a later one meanwhile."""
        if self.over or self.coordinator is None or not self.missing:
            return
        self.asked_for, self.timer = self.timer, math.inf
        self._carry_out(self.coordinator.handle((), now=self._now()))
        self._apply()

    # Messages to the client.

    @_guarded
    def _send(self) -> None:
        if self.over:
            return
        self.outbox.publish(end=self.began is not None and not self.missing)
        self._check_progress()

    def _check_progress(self) -> None:
        """Fail if nothing runs and ready tasks have no host: the run would never end."""
        if self.coordinator is None or self.busy or not self.missing or not self.address:
            return
        if self.pins.to_apply or self.timer < math.inf:  # it wants to be asked later
            return
        held = self.pins.held()
        if held:
            raise NoPlan(
                f"{len(held)} ready tasks have no host, the first is {held[0]!r}",
                where=self.policy_name,
                hint="use another scheduler",
            )

    def fail(self, error: HeadraceError) -> None:
        """End the run with an error that the client raises."""
        if not self.over:
            self.over = True
            self.outbox.publish(error=error)


def _no_worker(platform: Platform) -> NoPlan:
    return NoPlan("no worker is left", where=platform.name, hint="add a worker and run it again")
