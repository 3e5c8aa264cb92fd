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
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.metrics import time as engine_time

from headrace.model.errors import ClusterRestarted, HeadraceError, NoPlan
from headrace.model.events import (
    DataMoved,
    Event,
    HostJoined,
    HostLeft,
    HostPaused,
    Started,
    TaskErred,
    TaskFinished,
)
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.runtime.dask_control import Control
from headrace.runtime.dask_copies import Listening
from headrace.runtime.dask_draining import Draining
from headrace.runtime.dask_files import install_stores, remove_stores
from headrace.runtime.dask_hosts import Hosts, Suspects, run_on_workers
from headrace.runtime.dask_memory_manager import keep_manager_off, let_manager_on
from headrace.runtime.dask_outbox import Outbox, error_text, is_by_engine, is_poison
from headrace.runtime.dask_releases import Releases, hold_unreleased, let_start
from headrace.runtime.dask_watchdog import Watchdog
from headrace.runtime.ending import end_commands
from headrace.runtime.retrying import Retries
from headrace.runtime.run_policy import RunPolicy
from headrace.runtime.worker_report import ATTEMPT, METADATA

if TYPE_CHECKING:
    from headrace.runtime.graph import Key, Layout
    from headrace.runtime.kept_files import Keeping

_FORGET_SECONDS = 2.0
_TICK_SECONDS = 0.5
"""How often workers are looked at."""
_MEND_SECONDS = 2.0
"""A standstill that lasts longer is examined: an event may have been overlooked."""
_PATIENCE = 2.0
"""Seconds without a host for any ready task after which a run fails: workers that restart come and go meanwhile."""

Hook = TypeVar("Hook", bound=Callable[..., Any])


def _guarded(hook: Hook) -> Hook:
    """End the run when a hook raises an exception; the engine would only log it."""

    @functools.wraps(hook)
    def guarded(self: CoordinatorPlugin, *args: Any, **kwargs: Any) -> Any:
        try:
            return hook(self, *args, **kwargs)
        except HeadraceError as error:
            self.fail(error)
        except Exception:
            self.fail(HeadraceError(f"the policy failed:\n{traceback.format_exc()}", where="scheduler"))
        return None

    return cast(Hook, guarded)


class CoordinatorPlugin(SchedulerPlugin):  # type: ignore[misc]
    """Executes a scheduler's assignments or, with `policy` None, only observes.

    All events are sent to the client in batches under `topic`: dictionaries with `events`,
    `measured`, and once `end` or `error`. It ends with its client, or when told so under `stop_topic`.
    """

    def __init__(
        self,
        layout: Layout,
        graph: Graph,
        platform: Platform,
        policy: bytes | None,
        topic: str,
        patience: float,
        client: str,
        run_policy: RunPolicy,
        keeping: Keeping | None = None,
    ) -> None:
        self.name = topic
        self.layout = layout
        self.graph = graph
        self.platform = platform
        self.policy = policy
        self.topic = topic
        self.stop_topic = f"{topic}-stop"
        self.patience = patience
        """Seconds to wait for a worker when none is left."""
        self.client = client
        """The engine's name of the client."""
        self.run_policy = run_policy
        self.keeping = keeping
        """Where workers keep what they make."""
        self.retries = Retries(policy=run_policy)

    async def start(self, scheduler: Any) -> None:
        """Plan: errors raised here are passed to the client unchanged."""
        self.scheduler = scheduler
        self.began: float | None = None
        self.begun = False
        """Whether the scheduler's first commands were carried out; until then nothing is told to the coordinator."""
        self.over = self.stopped = False
        self.outbox = Outbox(scheduler, self.topic, self._send)
        self.known = {*self.layout.tasks, *self.layout.follows}
        self.wanted = frozenset(self.layout.wanted)
        self.missing = set(self.layout.wanted)
        self.busy: set[Key] = set()
        self.stranded: list[Key] = []
        self.idle_since = math.inf
        """When ready tasks were first seen without a host while nothing ran."""
        self.finished: set[str] = set()
        self.draining: Draining | None = None
        names = {host.name for host in self.platform.hosts}
        self.hosts = Hosts(scheduler, names.__contains__, self.run_policy.suspect)
        await self._await_worker()
        for address, worker in scheduler.workers.items():
            self.hosts.note(address, str(worker.name))
        if not scheduler.workers or (self.policy is None and not self.hosts.address):
            raise _no_worker(self.platform)
        await install_stores(scheduler, self.topic[-12:])
        self.control: Control | None = None
        self.releases = Releases(self.graph)
        self.suspects = Suspects(scheduler, self.known)
        self.watchdog = Watchdog(scheduler, self.layout, self.hosts, self.run_policy.stall)
        self.listening: list[Listening] = []
        self.manager_off = False
        if self.policy is not None:
            control = Control(scheduler, self.layout, self.hosts, self.outbox.emit)
            control.on_timer = lambda seconds: scheduler.loop.call_later(seconds, self._ask_in_time)
            # In a thread, so that the scheduler stays responsive to workers and other clients.
            await asyncio.to_thread(
                control.prepare,
                self.policy,
                self.graph,
                self.platform,
                self.run_policy,
                self.topic,
                self.keeping,
            )
            self.control = control
            control.pins.unreleased = self.releases.pending
            self.listening = [
                Listening(scheduler, "add-keys", self._keys_arrived),
                Listening(scheduler, "task-finished", self._answered),
            ]
            self.manager_off = keep_manager_off(scheduler)
        if self.client not in scheduler.clients:  # it has gone while we planned
            scheduler.loop.add_callback(self.stop)

    async def _await_worker(self) -> None:
        """Those of a cluster that is being restarted may all be away."""
        end = engine_time() + self.patience
        while not self.scheduler.workers and engine_time() < end:
            await asyncio.sleep(_TICK_SECONDS / 5)

    # Hooks called by the engine.

    @_guarded
    def update_graph(self, scheduler: Any, *, tasks: list[Key], **_: Any) -> None:
        if self.began is not None or not tasks or tasks[0] not in self.known:
            return
        self.began = engine_time()
        self.watchdog.moved()
        self.outbox.emit(Started(0.0))
        scheduler.loop.call_later(_TICK_SECONDS, self._tick)
        if self.control is not None:
            self.control.hold_all(self.known)
            # The engine has already ordered the first tasks by its own priorities: hold them back until
            # it is done and then send them by ours, since a worker starts with what it receives first.
            scheduler.loop.add_callback(self._begin)
        else:
            self.begun = True
            self._look_for_overlooked()
            hold_unreleased(scheduler, self.layout, self.releases)
            self._release()

    @_guarded
    def _begin(self) -> None:
        if self.control is None or self.over or self.begun:
            return
        self._look_for_overlooked()
        self._admit_new()
        if not self.hosts.address:  # `add_worker` calls this again
            self.scheduler.loop.call_later(self.patience, self._give_up_without_hosts)
            return
        self.begun = True
        self.control.begin(self._now())
        self._release()

    def transition(self, key: Key, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if key in self.known and not self.over:
            self._moved_on(key, start, finish, kwargs)

    @_guarded
    def _moved_on(self, key: Key, start: str, finish: str, details: dict[str, Any]) -> None:
        self.watchdog.moved()
        if start == "processing":
            self.busy.discard(key)
            if self.draining is not None:
                self.outbox.send_soon()
        elif start == "memory" and key in self.wanted:
            self.missing.add(key)
        if finish == "processing":
            self.busy.add(key)
        elif finish == "memory":
            if details.get("metadata"):
                self._finished(key, details["metadata"].get(METADATA), details["worker"])
            self._in_memory(key)
        elif finish == "no-worker" and self.control is not None:
            if not self.stranded:
                self.scheduler.loop.add_callback(self._look_at_stranded)
            self.stranded.append(key)
        elif finish == "erred":
            self._erred(key, details)

    @_guarded
    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        if worker in self.hosts.host_at and not self.over:
            self._host_left(worker)

    @_guarded
    def add_worker(self, scheduler: Any, worker: str) -> None:
        if not self.over:
            self._host_joined(worker)
            if self.began is not None and not self.begun:
                self._begin()

    def remove_client(self, scheduler: Any, client: str) -> None:
        if client == self.client:
            self.scheduler.loop.add_callback(self.stop)

    def log_event(self, topic: str, msg: Any) -> None:
        if topic == self.stop_topic:
            self.scheduler.loop.add_callback(self.stop)
        elif isinstance(msg, dict) and msg.get("action") == "worker-status-change" and not self.over:
            self.scheduler.loop.add_callback(self._look_at_hosts)

    @_guarded
    def restart(self, scheduler: Any) -> None:
        if self.began is not None and self.missing:
            raise ClusterRestarted(
                "the cluster was restarted and has forgotten the run",
                where=self.platform.name,
                hint="run it again",
            )

    def stop(self) -> None:
        """Leave the scheduler as it was before the run. Can be called again."""
        if self.stopped:
            return
        self.over = self.stopped = True
        for listening in self.listening:
            listening.stop()
        if self.control is not None:
            self.control.stop()
        if self.manager_off:
            let_manager_on(self.scheduler)
        self.scheduler.plugins.pop(self.name, None)
        # The client is about to end its subscription, which would bring the topic back.
        self.scheduler.loop.call_later(_FORGET_SECONDS, self.outbox.forget, self.topic, self.stop_topic)
        self.scheduler.loop.add_callback(remove_stores, self.scheduler, self.topic[-12:])
        if self.began is not None and self.missing:
            self.scheduler.loop.add_callback(self._end_commands)

    async def _end_commands(self) -> None:
        """The run was given up: its commands would keep workers busy."""
        await run_on_workers(self.scheduler, list(self.scheduler.workers), end_commands, self.topic[-12:])

    # Event handling.

    def _now(self) -> float:
        return self._since(engine_time())

    def _since(self, instant: float) -> float:
        return float(instant - (self.began or instant))

    def _tell(self, events: list[Event]) -> None:
        """Report changes of hosts to the client and the coordinator."""
        for event in events:
            self.outbox.emit(event)
        if self.control is not None:
            self.control.grid_changed(events, self._now())

    def _admit_new(self, only: str | None = None) -> bool:
        """Add hosts to the platform that it does not have; returns whether `only` belongs to the run."""
        for address, host in list(self.hosts.host_at.items()):
            worker = self.scheduler.workers.get(address)
            if host in self.hosts.address or worker is None or self.control is None:
                continue
            about = {"memory_limit": worker.memory_limit, "resources": worker.resources}
            if self.control.admit(host, worker.nthreads, about):
                self.hosts.admit(address, host)
        return only in self.hosts.address or self.control is None

    def _finished(self, key: Key, measured: dict[str, Any] | None, worker: str) -> None:
        if measured is None:
            return
        host, task = self.hosts.host(worker), self.layout.tasks[key]
        happened = self._moves(measured.pop("moves"), host)
        begin, end = self._since(measured["start"]), self._since(measured["finish"])
        sizes = tuple((name, float(size)) for name, size in measured["sizes"])
        happened.append(TaskFinished(end, task, host, begin, sizes))
        self.outbox.measured.append((task, measured))
        self.finished.add(task)
        for event in happened:
            self.outbox.emit(event)
        if self.control is not None:
            self.control.reloads.note(measured.get("kept", ()))
            self.control.finished(task, happened, end)

    def _in_memory(self, key: Key) -> None:
        if self.control is not None:
            self.control.in_memory(key)
            # Transitions must not be nested: tasks are moved right after this one.
            if self.control.has_changes:
                self.scheduler.loop.add_callback(self._apply)
        self.missing.discard(key)
        if not self.missing:
            self.outbox.send_soon(now=True)

    @_guarded
    def _apply(self) -> None:
        if self.control is not None and not self.over:
            self.control.apply()

    def _moves(self, moves: Iterable[Any], target: str) -> list[Event]:
        return [
            DataMoved(
                self._since(stop),
                self.layout.items[key],
                self.hosts.host(who),
                target,
                self._since(start),
                float(size),
            )
            for start, stop, who, keys in moves
            for key, size in keys
            if key in self.layout.items
        ]

    def _erred(self, key: Key, details: dict[str, Any]) -> None:
        state = self.scheduler.tasks.get(key)
        if state is None or state.exception_blame is not state:
            return
        if self.control is not None and self.control.is_loading(key):
            self.scheduler.loop.add_callback(self._load_failed, key)
            return
        task = self.layout.tasks.get(key) or self.layout.follows[key][0]
        host = self.hosts.host(details.get("worker") or "")
        pause = self.retries.pause(task, host, poisonous=is_poison(details), by_engine=is_by_engine(details))
        attempt = self.retries.attempts(task)
        event = TaskErred(self._now(), task, host, error_text(details), attempt, pause is not None)
        self.outbox.emit(event)
        self.outbox.send_soon(now=True)
        if pause is not None:
            self.scheduler.loop.call_later(pause, self._retry, key, event)
        elif self.draining is None:
            self.draining = Draining(
                self.scheduler, self.layout, self.topic[-12:], self.releases.pending, self.finished
            )
            self.scheduler.loop.add_callback(self._drain, self.draining)

    @_guarded
    def _load_failed(self, key: Key) -> None:
        """A kept value could not be loaded: its task runs again."""
        if self.over or self.control is None or not self.control.is_loading(key):
            return
        self.control.load_failed(key, self._now())
        self.scheduler.stimulus_retry([key])
        self._apply()

    async def _drain(self, draining: Draining) -> None:
        """A task has failed for good: what runs may finish, and no other task is started."""
        await draining.begin()
        self.outbox.send_soon(now=True)

    @_guarded
    def _retry(self, key: Key, event: TaskErred) -> None:
        """Execute a task that has failed again, on a host where it has not failed if there is one."""
        self.retries.resumed(event.task)
        state = self.scheduler.tasks.get(key)
        if self.over or self.draining is not None or state is None or state.state != "erred":
            return
        state.annotations = {**(state.annotations or {}), ATTEMPT: event.attempt + 1}
        usable = self.hosts.usable()
        preferred = self.retries.preferred(event.task, usable)
        if self.control is not None:
            self.control.failed(replace(event, time=self._now()), preferred)
        elif preferred:
            state.worker_restrictions = {usable[host] for host in preferred}
            state.loose_restrictions = True
        self.scheduler.stimulus_retry([key])
        self._apply()

    @_guarded
    def _release(self) -> None:
        """Let tasks start whose release time has come, and wait for the next."""
        if self.over or self.draining is not None:
            return
        due = self.releases.take(self._now())
        if due and self.control is not None:
            self.control.release(due, self._now())
        elif due:
            let_start(self.scheduler, self.layout, due, f"headrace-{engine_time()}")
        following = self.releases.next()
        if following is not None:
            self.scheduler.loop.call_later(max(0.0, following - self._now()), self._release)

    def _look_for_overlooked(self) -> None:
        """Workers that have left or joined while the scheduler planned."""
        gone, new = self.hosts.overlooked()
        for address in gone:
            self._host_left(address)
        for address in new:
            self._host_joined(address)

    def _host_joined(self, address: str) -> None:
        host = str(self.scheduler.workers[address].name)
        self.hosts.note(address, host)
        if self.begun and self._admit_new(host):
            self._tell([HostJoined(self._now(), host)])

    def _host_left(self, address: str) -> None:
        was_silent = self.hosts.told.get(self.hosts.host(address)) == "silent"
        host = self.hosts.forget(address)
        if not self.begun or was_silent or not host:
            return
        if not self.hosts.address:
            self.scheduler.loop.call_later(self.patience, self._give_up_without_hosts)
        self._tell([HostLeft(self._now(), host)])

    @_guarded
    def _give_up_without_hosts(self) -> None:
        if not self.hosts.host_at.keys() & self.scheduler.workers.keys() and not self.over:
            raise _no_worker(self.platform)

    @_guarded
    def _look_at_stranded(self) -> None:
        keys, self.stranded = self.stranded, []
        if self.control is not None and not self.over:
            self.control.look_at_stranded(keys, self._now())

    @_guarded
    def _ask_in_time(self) -> None:
        if self.control is not None and self.missing and not self.over:
            self.control.ask_in_time(self._now())

    # Messages of workers.

    @_guarded
    def _keys_arrived(self, worker: str, keys: Iterable[Key] = (), **_: Any) -> bool:
        mine = [key for key in keys if key in self.known]
        if mine and not self.over:
            self.watchdog.moved()
            self.scheduler.loop.add_callback(self._note_copies, mine, worker)
        return False

    @_guarded
    def _note_copies(self, keys: list[Key], worker: str) -> None:
        if self.control is not None and not self.over:
            self.control.arrived(keys, worker, self._now())
            self.control.apply()

    @_guarded
    def _answered(self, key: Key, worker: str, **_: Any) -> bool:
        """A task has an answer; that of a worker that was silent may come first."""
        if self.over or self.suspects.running.get(key) != worker:
            return False
        self._look_at_hosts()
        return self.suspects.adopt(key, worker)

    # What happens by itself.

    @_guarded
    def _tick(self) -> None:
        if self.over:
            return
        self.scheduler.loop.call_later(_TICK_SECONDS, self._tick)
        self._look_at_hosts()
        self.outbox.beat()
        if self.retries.waiting or self.releases.pending:
            self.watchdog.moved()
        if self.missing:
            self._mend()
            self.watchdog.check(self.control)

    def _mend(self) -> None:
        """Go on if something was overlooked."""
        if self.control is not None and self.begun and self.hosts.usable():
            self.control.mend(self._now())
            if self.watchdog.still > _MEND_SECONDS:
                self._check_progress()

    @_guarded
    def _look_at_hosts(self) -> None:
        """Tell the coordinator of hosts that are paused, silent, or back."""
        if self.over or not self.begun or self.control is None:
            return
        self._look_for_overlooked()
        for host, state in self.hosts.changes():
            address = self.hosts.address_of(host)
            if address is None:
                continue
            if self.hosts.told[host] == "silent":
                self.suspects.give_back(address)
            self.hosts.tell(host, address, state)
            if state != "up":
                self.control.pins.leave(address)
            if state == "silent":
                self.suspects.take(address)
                self._tell([HostLeft(self._now(), host)])
            else:
                kind = HostJoined if state == "up" else HostPaused
                self._tell([kind(self._now(), host)])

    # Messages to the client.

    @_guarded
    def _send(self) -> None:
        if self.over:
            return
        drained = self.draining is not None and self.draining.settled and not self.busy
        self.outbox.publish(end=self.began is not None and not self.missing, drained=drained)
        self._check_progress()

    def _check_progress(self) -> None:
        """Fail if nothing runs and ready tasks have no host, for some time: the run would never end."""
        if not self._makes_no_progress():
            self.idle_since = math.inf
            return
        self.idle_since = min(self.idle_since, self._now())
        if self.control is not None and self._now() >= self.idle_since + _PATIENCE:
            self.control.require_hosts()

    def _makes_no_progress(self) -> bool:
        control = self.control
        if control is None or self.busy or not self.missing or not self.hosts.address or self.stranded:
            return False
        if self.retries.waiting or self.releases.pending:
            return False
        if control.waits or not control.pins.held() or control.reconcile(self._now()):
            return False
        return "up" in self.hosts.told.values() and not control.pins.awaits_worker()

    def fail(self, error: HeadraceError) -> None:
        """End the run with an error that the client raises."""
        if not self.over:
            self.over = True
            self.outbox.publish(error=error)


def _no_worker(platform: Platform) -> NoPlan:
    return NoPlan("no worker is left", where=platform.name, hint="add a worker and run it again")
