"""Steering: a plugin that places the tasks of a client's graphs on the workers of a Dask cluster that are not alike.

It replaces, for tasks of steered graphs only, what the engine's scheduler does when a task becomes ready: the task is
queued, and leaves the queue when `steering_dispatch` has a worker for it. No restriction, annotation or setting is
changed: all it does is to shadow these attributes of the scheduler object, which `stop` deletes again:

- `_TRANSITIONS_TABLE`: waiting -> processing, waiting -> queued and queued -> processing;
- `stimulus_queue_slots_maybe_opened`, which the engine calls whenever a thread may have become free;
- `put_key_in_stealable` of its work stealing, so that it does not take steered tasks to slow workers;
- `_calculate_worker_for` of its shuffles, so that fast workers get more of the output (see `steering_shuffles`).

A task that the engine must treat in its own way (restrictions, resources, actors) is left to the engine. When anything
in here raises an exception, `stop` hands all tasks back to the engine and the client is told, once.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.metrics import time as engine_time
from distributed.shuffle._core import barrier_key
from sortedcontainers import SortedDict  # type: ignore[import-untyped]

from headrace.runtime.steering_dispatch import Part, Slot, dispatch, ready_task
from headrace.runtime.steering_moves import worthwhile_moves
from headrace.runtime.steering_ranks import fits, ranked, restore, upward_ranks
from headrace.runtime.steering_shuffles import UnequalSpec
from headrace.runtime.steering_times import GUESS, Delays, Times

_SHADOWED = ("_TRANSITIONS_TABLE", "stimulus_queue_slots_maybe_opened")
_LEAST_PAUSE = 0.002
_LONGEST_PAUSE = 0.05
"""While tasks wait, decisions are reviewed at least this often: a task may last longer than expected."""

_SMALL = 1e6
"""Bytes of inputs up to which the time of a transfer is that of its beginning."""
_RATE = 1e9
"""Bytes/s between workers of which nothing is known."""

_MOST_ENDED = 16
_ENDED: dict[str, Any] = {}
"""Sessions that an error has ended, until their client asks."""

Row = tuple[str, str, float, float]


class AlreadySteered(Exception):
    """Another session steers the cluster; the argument lists the clients of all."""


def _guarded(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Stop steering when something raises an exception; the engine goes on by itself."""

    @functools.wraps(hook)
    def guarded(self: SteeringPlugin, *args: Any, **kwargs: Any) -> Any:
        try:
            return hook(self, *args, **kwargs)
        except Exception:
            self.give_up(traceback.format_exc())
            return None

    return guarded


class SteeringPlugin(SchedulerPlugin):  # type: ignore[misc]
    """Steers the graphs that one client submits until it is stopped, or its client leaves."""

    def __init__(
        self,
        name: str,
        client: str,
        speeds: Mapping[str, float],
        rates: Mapping[tuple[str, str], float],
        rows: Iterable[Row] = (),
        observe_only: bool = False,
    ) -> None:
        self.name = name
        self.client = client
        self.speeds = dict(speeds)
        self.rates = dict(rates)
        """Bandwidth from worker to worker, and from "" for the usual one into a worker, in bytes/s."""
        self.rows = list(rows)
        self.observe_only = observe_only

    async def start(self, scheduler: Any) -> None:
        """Take over. Raises an exception, and changes nothing, if another session steers this cluster."""
        if others := steering_clients(scheduler):
            raise AlreadySteered(others)
        self.scheduler = scheduler
        self.times = Times(self.speeds)
        self.times.load(self.rows)
        self.delays = Delays()
        self.ended_at: dict[str, float] = {}
        """When the last task of each worker ended."""
        self.usual_rate = sorted(self.rates.values())[len(self.rates) // 2] if self.rates else _RATE
        self.mine: set[Any] = set()
        self.queue: Any = SortedDict()
        self.place_of: dict[Any, Any] = {}
        """The queue's index of each waiting task."""
        self.chosen: dict[Any, str] = {}
        self.original_priority: dict[Any, tuple[Any, ...]] = {}
        self.slots: dict[str, Slot] = {}
        self.moving: dict[Any, tuple[Any, str]] = {}
        self.stopped = self.is_due = False
        self.timer: Any = None
        self.error = ""
        for address in sorted(scheduler.workers, key=lambda a: str(scheduler.workers[a].name)):
            self._know(scheduler.workers[address])
        self.stealing = scheduler.extensions.get("stealing")
        self.shuffles: Any = None
        if not self.observe_only:
            self._shadow()

    def _shadow(self) -> None:
        scheduler = self.scheduler
        table = dict(scheduler._TRANSITIONS_TABLE)
        self.original = {
            pair: table[pair]
            for pair in (("waiting", "processing"), ("waiting", "queued"), ("queued", "processing"))
        }
        table["waiting", "processing"] = self._waiting_processing
        table["waiting", "queued"] = self._waiting_queued
        table["queued", "processing"] = self._queued_processing
        self.queue_slots = scheduler.stimulus_queue_slots_maybe_opened
        scheduler._TRANSITIONS_TABLE = table
        scheduler.stimulus_queue_slots_maybe_opened = self._slots_opened
        if self.stealing is not None:
            self.put_stealable = self.stealing.put_key_in_stealable
            self.stealing.put_key_in_stealable = self._put_stealable
        self.shuffles = scheduler.extensions.get("shuffle")
        if self.shuffles is not None and hasattr(self.shuffles, "_calculate_worker_for"):
            self.worker_for = self.shuffles._calculate_worker_for
            self.shuffles._calculate_worker_for = self._worker_for

    # What the engine calls instead of its own functions.

    def _waiting_processing(self, state: Any, key: Any, stimulus_id: str) -> Any:
        ts = state.tasks[key]
        if self._steers(ts):
            return {key: "queued"}, {}, {}
        return self.original["waiting", "processing"](state, key, stimulus_id)

    def _waiting_queued(self, state: Any, key: Any, stimulus_id: str) -> Any:
        ts = state.tasks[key]
        if not self._steers(ts) or not self._enqueue(ts):
            if not self._queues(ts):
                return {key: "processing"}, {}, {}
            return self.original["waiting", "queued"](state, key, stimulus_id)
        ts.state = "queued"
        state.queued.add(ts)
        self._soon()
        return {}, {}, {}

    def _queued_processing(self, state: Any, key: Any, stimulus_id: str) -> Any:
        worker = state.workers.get(self.chosen.pop(key, ""))
        if worker is not None and worker in state.running:
            ts = state.tasks[key]
            state.queued.discard(ts)
            return state._add_to_processing(ts, worker, stimulus_id=stimulus_id)
        if key in self.place_of:
            return {}, {}, {}
        return self.original["queued", "processing"](state, key, stimulus_id)

    def _slots_opened(self, *, stimulus_id: str) -> None:
        self._decide()
        if len(self.scheduler.queued) > len(self.queue):
            self._others(stimulus_id)

    def _put_stealable(self, ts: Any) -> None:
        if ts.key not in self.mine or self.stopped:
            self.put_stealable(ts)

    def _worker_for(self, spec: Any) -> dict[Any, str]:
        """Which worker gets each output partition of a shuffle."""
        if not self.stopped and barrier_key(spec.id) in self.mine:
            workers = self.scheduler.workers
            power = {address: self.times.speed(address) * workers[address].nthreads for address in workers}
            spec = UnequalSpec(spec, power)
        return dict(self.worker_for(spec))

    # Hooks of the plugin.

    @_guarded
    def update_graph(self, scheduler: Any, *, client: str, tasks: list[Any], **_: Any) -> None:
        if client != self.client or self.stopped:
            return
        states = [scheduler.tasks[key] for key in tasks if key in scheduler.tasks]
        self.mine.update(ts.key for ts in states)
        new = [ts for ts in states if ts.priority and ts.state == "released"]
        memory = sum([worker.memory_limit or 0 for worker in scheduler.workers.values()])
        if len(new) > 1 and not self.observe_only and fits(new, self.times, memory):
            new.sort(key=lambda ts: ts.priority)  # the engine's order: a task comes after its inputs
            ranks = upward_ranks(new, self.times, self.delays.latency, self.usual_rate)
            longest = max(ranks.values())
            for ts in new:
                self.original_priority[ts.key] = ts.priority
                ts.priority = ranked(ts.priority, ranks[ts.key], longest)

    @_guarded
    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if self.stopped:
            return
        if start == "processing":
            self._left(key, finish, kwargs)
        elif start == "queued" and key in self.place_of:
            self.queue.pop(self.place_of.pop(key), None)
        if finish == "processing":
            self._entered(key)
        elif finish == "forgotten":
            self.mine.discard(key)
            self.original_priority.pop(key, None)

    @_guarded
    def add_worker(self, scheduler: Any, worker: str) -> None:
        if not self.stopped:
            self._know(scheduler.workers[worker])
            self._soon()

    @_guarded
    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        if not self.stopped:
            self.slots.pop(worker, None)
            self._soon()

    def remove_client(self, scheduler: Any, client: str) -> None:
        if client == self.client:
            scheduler.loop.add_callback(self.stop)

    @_guarded
    def restart(self, scheduler: Any) -> None:
        self.mine.clear()
        self.queue.clear()
        self.place_of.clear()
        self.moving.clear()

    # Decisions.

    def _steers(self, ts: Any) -> bool:
        if self.stopped or self.observe_only or ts.key not in self.mine or not self.scheduler.running:
            return False
        return not (ts.actor or ts.worker_restrictions or ts.host_restrictions or ts.resource_restrictions)

    def _queues(self, ts: Any) -> bool:
        """Whether the engine itself would queue a task now."""
        return not self.scheduler.idle_task_count and self.scheduler.is_rootish(ts)

    @_guarded
    def _enqueue(self, ts: Any) -> bool:
        prefix = ts.prefix.name
        parts = [Part(d.get_nbytes(), tuple([w.address for w in d.who_has or ()])) for d in ts.dependencies]
        place = (ts.priority, str(ts.key))
        work = self.times.work(prefix, ts.key)
        self.queue[place] = ready_task(ts.key, ts.priority, prefix, work, parts, self.times.knows(prefix))
        self.place_of[ts.key] = place
        return True

    def _soon(self) -> None:
        """Decide when the engine has finished what it does now."""
        if not self.is_due:
            self.is_due = True
            self.scheduler.loop.add_callback(self._decide)

    @_guarded
    def _decide(self) -> None:
        self.is_due = False
        if self.stopped:
            return
        now = engine_time()
        self._without_seceded(now)
        usable = self._usable()
        if self.queue and usable:
            sent = dispatch(self.queue.values(), usable, now, self.times.seconds, self._rate, self.delays)
            if sent:
                self.chosen = {task.key: worker for task, worker in sent}
                # The engine takes the last of them first.
                moves = {task.key: "processing" for task, _ in reversed(sent)}
                self.scheduler.transitions(moves, f"headrace-steering-{now}")
        if self.moving or (not self.queue and self.stealing is not None):
            self._rebalance(now)
        self._wake_later(now)

    def _without_seceded(self, now: float) -> None:
        """Tasks that gave their thread back do not keep a worker busy."""
        for address, slot in self.slots.items():
            worker = self.scheduler.workers.get(address)
            if worker is not None and worker.long_running:
                for ts in worker.long_running:
                    slot.remove(ts.key, now)

    def _usable(self) -> dict[str, Slot]:
        if len(self.scheduler.running) == len(self.slots):
            return self.slots
        running = {worker.address for worker in self.scheduler.running}
        return {address: slot for address, slot in self.slots.items() if address in running}

    def _rate(self, source: str, target: str) -> float:
        found = self.rates.get((source, target))
        return self.rates.get(("", target), self.usual_rate) if found is None else found

    def _wake_later(self, now: float) -> None:
        """Look again when a worker has little left to do, or tasks that wait for one should not wait any longer."""
        if self.timer is not None or not (self.queue or self.moving or self._waiting()):
            return
        ahead = self.delays.ahead
        pause = min((slot.busy(now) - ahead for slot in self.slots.values()), default=_LONGEST_PAUSE)
        pause = _LONGEST_PAUSE if pause <= 0 else min(max(pause, _LEAST_PAUSE), _LONGEST_PAUSE)
        self.timer = self.scheduler.loop.call_later(pause, self._woken)

    def _woken(self) -> None:
        self.timer = None
        self._decide()

    def _waiting(self) -> bool:
        return any(len(slot.tasks) > slot.running for slot in self.slots.values())

    def _rebalance(self, now: float) -> None:
        """Move tasks that wait at a worker to another one that would finish them sooner."""
        for key, (_, source) in list(self.moving.items()):
            self._follow_move(key, source, now)
        if self.stealing is None:
            return
        for key, source, target in worthwhile_moves(self._usable(), now, self._ready_at):
            ts = self.scheduler.tasks.get(key)
            if ts is None or key not in self.mine or key in self.moving or not self._steers(ts):
                continue
            victim, thief = self.scheduler.workers[source], self.scheduler.workers[target]
            if ts.processing_on is victim:
                self.stealing.move_task_request(ts, victim, thief)
                self.moving[key] = (ts, source)

    def _ready_at(self, key: Any, worker: str) -> tuple[float, float]:
        """Seconds of transfer and of the task on a worker."""
        ts = self.scheduler.tasks[key]
        prefix = ts.prefix.name
        here = self.scheduler.workers[worker]
        missing = sum([d.get_nbytes() for d in ts.dependencies if here not in (d.who_has or ())])
        work = self.times.work(prefix, key)
        return missing / self._rate("", worker), self.times.seconds(prefix, work, worker)

    def _follow_move(self, key: Any, source: str, now: float) -> None:
        ts = self.scheduler.tasks.get(key)
        if ts is not None and ts in self.stealing.in_flight:
            return
        self.moving.pop(key, None)
        if ts is not None and ts.processing_on is not None and ts.processing_on.address != source:
            if source in self.slots:
                self.slots[source].remove(key, now)
            self._entered(key)

    # Bookkeeping.

    def _know(self, worker: Any) -> None:
        slot = self.slots[worker.address] = Slot(str(worker.name), worker.nthreads)
        now = engine_time()
        for ts in worker.processing:
            slot.add(ts.key, GUESS, ts.priority, now)

    def _entered(self, key: Any) -> None:
        ts = self.scheduler.tasks[key]
        worker = ts.processing_on
        slot = None if worker is None else self.slots.get(worker.address)
        if slot is None:
            return
        prefix = ts.prefix.name
        seconds = self.times.seconds(prefix, self.times.work(prefix, key), worker.address)
        seconds += self.delays.between.value
        guessed = "" if self.times.knows(prefix) else prefix
        slot.add(key, seconds, ts.priority, engine_time(), guessed)

    def _left(self, key: Any, finish: str, details: Mapping[str, Any]) -> None:
        now = engine_time()
        had = None
        for slot in self.slots.values():
            had = slot.remove(key, now)
            if had is not None:
                break
        if finish != "memory" or key not in self.mine:
            return
        ts, fetched = self.scheduler.tasks[key], 0.0
        for step in details.get("startstops") or ():
            seconds = max(0.0, step["stop"] - step["start"])
            if step["action"] == "compute":
                self._measured(ts, details["worker"], seconds)
                before = self.ended_at.get(details["worker"])
                self.ended_at[details["worker"]] = step["stop"]
                if had is not None and before is not None and had.sent < before and not fetched:
                    self.delays.add(self.delays.between, step["start"] - before)
                self.delays.add(self.delays.report, now - step["stop"])
                if had is not None and had.sent == had.started:  # it did not wait behind another task
                    self.delays.add(self.delays.send, step["start"] - had.sent - fetched)
            elif step["action"] == "transfer":
                fetched += seconds
                if ts.get_nbytes_deps() < _SMALL:
                    self.delays.add(self.delays.transfer, seconds)

    def _measured(self, ts: Any, worker: str, seconds: float) -> None:
        prefix = ts.prefix.name
        known = self.times.knows(prefix)
        self.times.observe(prefix, ts.key, worker, seconds, float(ts.get_nbytes()))
        if known:
            return
        work = self.times.prefixes[prefix].work.value
        for address, slot in self.slots.items():
            slot.learn(prefix, self.times.seconds(prefix, work, address))
        for task in self.queue.values():
            if task.prefix == prefix:
                task.work, task.known = self.times.work(prefix, task.key), True

    @_guarded
    def _others(self, stimulus_id: str) -> None:
        """Tasks of other clients wait too: send as many as the engine would. O(tasks that wait)."""
        scheduler = self.scheduler
        waiting = sorted(
            (ts for ts in scheduler.queued if ts.key not in self.place_of), key=lambda ts: ts.priority
        )
        for ts in waiting:
            if not scheduler.idle_task_count:
                return
            scheduler.transitions({ts.key: "processing"}, stimulus_id)

    # The end.

    def give_up(self, error: str) -> None:
        """Hand everything back to the engine because of an error, and tell the client."""
        if not self.stopped:
            self.error = error
            while len(_ENDED) >= _MOST_ENDED:
                _ENDED.pop(next(iter(_ENDED)))
            _ENDED[self.name] = self
            self.stop()

    def stop(self, *, at_once: bool = False) -> None:
        """Leave the scheduler as it was; tasks that wait are placed by the engine. Can be called again.

        `at_once` is for callers that are not inside a transition of a task.
        """
        if self.stopped:
            return
        self.stopped = True
        scheduler = self.scheduler
        for attribute in _SHADOWED:
            scheduler.__dict__.pop(attribute, None)
        if self.stealing is not None:
            self.stealing.__dict__.pop("put_key_in_stealable", None)
        if self.shuffles is not None:
            self.shuffles.__dict__.pop("_calculate_worker_for", None)
        scheduler.plugins.pop(self.name, None)
        if self.timer is not None:
            scheduler.loop.remove_timeout(self.timer)
        waiting = [task.key for task in self.queue.values()]
        self.queue.clear()
        self.place_of.clear()
        if at_once:
            self._hand_back(waiting)
        else:
            scheduler.loop.add_callback(self._hand_back, waiting)

    def _hand_back(self, waiting: list[Any]) -> None:
        scheduler = self.scheduler
        restore(scheduler.tasks, self.original_priority)
        if self.stealing is not None:
            for worker in scheduler.workers.values():
                for ts in worker.processing:
                    if ts.key in self.mine and ts not in worker.long_running:
                        self.stealing.recalculate_cost(ts)
        # Released, they become ready again at once, and the engine places them; the last one comes first.
        states = [scheduler.tasks[key] for key in waiting if key in scheduler.tasks]
        queued = sorted((ts for ts in states if ts.state == "queued"), key=lambda ts: ts.priority)
        stimulus = f"headrace-steering-stop-{engine_time()}"
        scheduler.transitions({ts.key: "released" for ts in reversed(queued)}, stimulus)
        if not _no_queue(scheduler):
            scheduler.stimulus_queue_slots_maybe_opened(stimulus_id=stimulus)


def steering_clients(dask_scheduler: Any) -> list[str]:
    """In the scheduler: the clients that steer the cluster."""
    return [p.client for p in dask_scheduler.plugins.values() if isinstance(p, SteeringPlugin)]


def end_steering(name: str, dask_scheduler: Any) -> tuple[list[Row], str]:
    """In the scheduler: end a session; returns what it measured, and the error that ended it before."""
    plugin = _ENDED.pop(name, None) or dask_scheduler.plugins.get(name)
    if plugin is None:
        return [], "the cluster was restarted"
    plugin.stop(at_once=True)
    rows = [(prefix, index, work, size) for (prefix, index), (work, size) in plugin.times.observed.items()]
    return rows, plugin.error


def _no_queue(scheduler: Any) -> bool:
    return float(scheduler.WORKER_SATURATION) == float("inf")
