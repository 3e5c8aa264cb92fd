"""The plugin inside the engine's scheduler: the only module that uses non-public hooks of distributed.

It relies on the following, in addition to the documented hooks of SchedulerPlugin:
- `update_graph` runs before any task of the graph can start, and `transition` of a finished task before
  its dependents are placed: restrictions and priorities set there are obeyed;
- a task with `worker_restrictions` is neither queued by the scheduler nor stolen, so neither need be
  turned off; restricted to an address that does not exist, it stays in `no-worker` until that changes;
- `remove_worker` is called after lost tasks were rescheduled: those pinned to the lost worker are then in
  `no-worker`, where the engine would leave them forever;
- a worker sends its task's `metadata` with the message that it finished, and logs incoming transfers
  in `transfer_incoming_log`.
"""

from __future__ import annotations

import asyncio
import functools
import math
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar, cast

from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.metrics import time as engine_time

from headrace.core.replan import Replan
from headrace.core.scheduler import Assign, Cancel, Fetch, Remove, Replicate, Requeue
from headrace.model.errors import HeadraceError, NoPlan, TaskFailed
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, Started, TaskErred, TaskFinished
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.planners.list.round_robin import RoundRobin
from headrace.runtime.dask_transfers import PlannedTransfers
from headrace.runtime.messages import encode_error, encode_event
from headrace.runtime.packing import unpack

if TYPE_CHECKING:
    from headrace.core.coordinator import Coordinator
    from headrace.core.scheduler import Scheduler
    from headrace.runtime.graph import Key, Layout

_NOWHERE = "headrace://no-host-yet"
"""The restriction of a task that has no host yet."""
_BATCH_SECONDS = 0.05
_FIRST = float("-inf")
_CLOCK_NOISE = 0.1
_METADATA = "headrace"
_shipping = threading.Lock()
_last_shipped: dict[str, Any] | None = None
"""On a worker: the last entry of its transfer log that was reported to the scheduler."""

Hook = TypeVar("Hook", bound=Callable[..., Any])


def attach_measurement(measured: dict[str, Any]) -> None:
    """On a worker, in a task: report a measurement and incoming transfers when the task ends."""
    global _last_shipped
    from distributed.comm import get_address_host
    from distributed.worker import get_worker, thread_state

    worker = get_worker()
    with _shipping:
        arrived = list(
            takewhile(lambda entry: entry is not _last_shipped, list(worker.transfer_incoming_log)[::-1])
        )
        arrived.reverse()
        if arrived:
            _last_shipped = arrived[-1]
    # The engine's estimate of the clock offset is only as exact as its messages are fast: a small offset is
    # noise, and could make a task start before its predecessor ended. On one machine there is one clock.
    delay = worker.scheduler_delay
    apart = get_address_host(worker.address) != get_address_host(worker.scheduler.address)
    shift = delay if apart and abs(delay) > _CLOCK_NOISE else 0.0
    measured["start"] += shift
    measured["finish"] += shift
    measured["moves"] = [
        (
            entry["start"] - delay + shift,
            entry["stop"] - delay + shift,
            entry["who"],
            [*entry["keys"].items()],
        )
        for entry in arrived
    ]
    state = worker.state.tasks.get(thread_state.key)
    if state is not None:
        state.metadata[_METADATA] = measured


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
        self.events: list[Event] = []
        self.told_dropped = 0
        self.measured: list[tuple[str, Any]] = []
        self.sending = False
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
        self.key_of = {name: key for key, name in self.layout.tasks.items()}
        self.helpers_of: dict[str, list[Key]] = {}
        for key, tasks in self.layout.follows.items():
            for task in tasks:
                self.helpers_of.setdefault(task, []).append(key)
        self.pin: dict[str, Assign] = {}
        self.to_apply: dict[Key, str] = {}
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
        self._emit(Started(0.0))
        if self.coordinator is None:
            return
        for key in self.known:
            scheduler.tasks[key].worker_restrictions = {_NOWHERE}
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
            self._emit(event)
        self._carry_out([command for command in self.first_answer if self._still_holds(command, gone)])
        if left:
            self._carry_out(self.coordinator.handle(left))
        self._apply()

    def _still_holds(self, command: object, gone: list[str]) -> bool:
        """Whether an initial command is still valid, as hosts may have left or joined since."""
        if not isinstance(command, Assign):
            return True
        there = command.host in self.address or command.host not in self.planned_for
        return command.task not in self.pin and command.host not in gone and there

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
                self._finished(key, details["metadata"].get(_METADATA), details["worker"])
            self.missing.discard(key)
            if not self.missing:
                self._send_soon(now=True)
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
        self._emit(event)
        if self.coordinator is not None:
            self._carry_out(self.coordinator.handle([event]))
            self._rescue()
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
        self.measured.append((task, measured))
        for event in happened:
            self._emit(event)
        if self.coordinator is not None:
            self._carry_out(self.coordinator.handle(happened))
            # Transitions must not be nested: tasks are moved right after this one.
            if self.to_apply or self.transfers.waiting:
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
        self._emit(TaskErred(self._now(), task, host, _error_text(details)))
        self._send_soon(now=True)

    def _host_left(self, address: str) -> None:
        host = self.host_at[address]
        if self.address.get(host) == address:
            del self.address[host]
        if self.began is None:
            return
        event = HostLeft(self._now(), host)
        self.told_lost.add(host)
        self._emit(event)
        if not self.address:
            self.scheduler.loop.call_later(self.patience, self._give_up_without_hosts)
        if self.coordinator is None or host not in self.host_names:
            return
        self._carry_out(self.coordinator.handle([event]))
        self._rescue()
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
            self._emit(event)
        self.told_dropped = len(self.coordinator.dropped)
        for command in commands:
            if isinstance(command, Requeue | Cancel):
                self._hold(command.task, running=isinstance(command, Cancel))
        self._assign([command for command in commands if isinstance(command, Assign)])
        fetches = [command for command in commands if isinstance(command, Fetch)]
        if fetches:
            self.transfers.replace(fetches)
        for command in commands:
            if isinstance(command, Replicate):
                self.transfers.replicate(command.item, command.target)
            elif isinstance(command, Remove):
                self.transfers.remove(command.item, command.place)
        self._set_timer()

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

    def _hold(self, task: str, running: bool) -> None:
        """Remove a task from its worker; it waits until it is assigned again."""
        self.pin.pop(task, None)
        state = self.scheduler.tasks.get(self.key_of[task])
        if state is None:
            return
        state.worker_restrictions = {_NOWHERE}
        if state.state == "processing" and (running or state not in state.processing_on.executing):
            self.to_apply[self.key_of[task]] = "released"

    def _assign(self, answer: Iterable[Assign]) -> None:
        """Set restrictions and priorities; state changes are deferred to `_apply`."""
        helpers: dict[Key, None] = {}
        for assignment in answer:
            address = self.address.get(assignment.host)
            if address is None or assignment.task not in self.key_of:
                raise NoPlan(
                    f"{assignment.task!r} was assigned to {assignment.host!r}, which is not there",
                    where=self.policy_name,
                    hint="use another scheduler",
                )
            self.pin[assignment.task] = assignment
            self._place(self.key_of[assignment.task], address, assignment.rank)
            helpers.update(dict.fromkeys(self.helpers_of.get(assignment.task, ())))
        for key in helpers:
            self._place_helper(key)

    def _place_helper(self, key: Key) -> None:
        pins = [self.pin[task] for task in self.layout.follows[key] if task in self.pin]
        pins = [pin for pin in pins if pin.host in self.address]
        if pins:
            self._place(key, self.address[min(pins, key=lambda pin: pin.rank).host], _FIRST)

    def _place(self, key: Key, address: str, rank: float) -> None:
        state = self.scheduler.tasks.get(key)
        if state is None:
            return
        state.worker_restrictions = {address}
        state.loose_restrictions = False
        state.priority = (*state.priority[:2], rank)
        if state.state == "no-worker":
            self.to_apply[key] = "processing"
        elif state.state == "processing":
            worker = state.processing_on
            # A task that has started stays: moving it would only repeat its work.
            if worker.address != address and state not in worker.executing:
                self.to_apply[key] = "released"

    def _rescue(self) -> None:
        """Pin every key that is pinned to a lost worker to a worker of its readers.

        The engine also recomputes tasks that the coordinator considers finished, if their data had already
        been dropped: no assignment is made for those. O(keys).
        """
        if not self.address:  # another worker may come
            return
        names = self.graph.task_names
        for number in reversed(self.graph.order.tolist()):
            task = names[number]
            pin = self.pin.get(task)
            if pin is None or pin.host in self.address:
                continue
            state = self.scheduler.tasks.get(self.key_of[task])
            if state is None:
                continue
            reader = self._first_reader(state)
            host = reader.host if reader else self._least_busy_host()
            self._assign([Assign(task, host, reader.rank if reader else pin.rank)])
        for key in self.layout.follows:
            state = self.scheduler.tasks.get(key)
            if state is not None and not state.worker_restrictions & self.scheduler.workers.keys():
                self._place_helper(key)

    def _first_reader(self, state: Any) -> Assign | None:
        """The pin of the first task, by rank, that reads this key's data and has a live host."""
        pins: list[Assign] = []
        for reader in state.dependents:
            tasks = (
                [self.layout.tasks[reader.key]]
                if reader.key in self.layout.tasks
                else [self.layout.tasks[r.key] for r in reader.dependents if r.key in self.layout.tasks]
            )
            pins += [self.pin[t] for t in tasks if t in self.pin and self.pin[t].host in self.address]
        return min(pins, key=lambda pin: (pin.rank, pin.task), default=None)

    def _least_busy_host(self) -> str:
        workers = self.scheduler.workers
        return min(self.address, key=lambda host: (len(workers[self.address[host]].processing), host))

    def _apply(self) -> None:
        """Move tasks to their assigned hosts: those that waited for a host, and those on another one."""
        changes, self.to_apply = self.to_apply, {}
        movable = []
        for key, target in changes.items():
            state = self.scheduler.tasks.get(key)
            expected = "no-worker" if target == "processing" else "processing"
            if state is not None and state.state == expected:
                movable.append((state.priority, key, target))
        if movable:
            # The engine processes the last of them first.
            moves = {key: target for _, key, target in sorted(movable, reverse=True)}
            self.scheduler.transitions(moves, stimulus_id=f"headrace-{engine_time()}")
        self.transfers.start_next()

    # Messages to the client.

    def _emit(self, event: Event) -> None:
        self.events.append(event)
        self._send_soon()

    def _send_soon(self, now: bool = False) -> None:
        if now:
            self.scheduler.loop.add_callback(self._send)
        elif not self.sending:
            self.sending = True
            self.scheduler.loop.call_later(_BATCH_SECONDS, self._send)

    @_guarded
    def _send(self) -> None:
        self.sending = False
        if self.over:
            return
        message: dict[str, Any] = {
            "events": [encode_event(event) for event in self.events],
            "measured": self.measured,
        }
        self.events, self.measured = [], []
        if self.began is not None and not self.missing:
            message["end"] = True
        if message["events"] or message["measured"] or "end" in message:
            self._publish(message)
        self._check_progress()

    def _publish(self, message: dict[str, Any]) -> None:
        self.scheduler.log_event(self.topic, message)
        # It has been sent; the scheduler would otherwise keep it forever.
        self.scheduler._broker.truncate(self.topic)

    def _check_progress(self) -> None:
        """Fail if nothing runs and ready tasks have no host: the run would never end."""
        if self.coordinator is None or self.busy or not self.missing or not self.address or self.to_apply:
            return
        if self.timer < math.inf:  # it wants to be asked later
            return
        held = sorted(
            self.layout.tasks[state.key]
            for state in self.scheduler.unrunnable
            if state.key in self.layout.tasks and state.worker_restrictions == {_NOWHERE}
        )
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
            self._publish(
                {
                    "events": [encode_event(event) for event in self.events],
                    "measured": self.measured,
                    "error": encode_error(error),
                }
            )


def warm_up(scheduler: Scheduler) -> None:
    """Compile all code that a run under this scheduler needs, before its clock starts, by a small simulated run.

    Only for schedulers and planners of Headrace: user-defined ones might have side effects.
    """
    from headrace.core.coordinator import Coordinator
    from headrace.core.estimates import HistoryEstimates
    from headrace.model.constraints import Constraints
    from headrace.online.adapter import is_obeying, obeying

    decides = scheduler.planner if isinstance(scheduler, Replan) else scheduler
    if not type(decides).__module__.startswith("headrace."):
        scheduler = Replan(RoundRobin())
    program = Program("warm-up")
    made = [program.task(None, outputs={f"x{k}": 1.0}, work=1.0, name=f"t{k}") for k in range(4)]
    program.task(None, inputs=made, outputs={"y": 1.0}, work=1.0, name="last")
    platform = Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    a, b = (host.name for host in platform.hosts)
    copied = deepcopy(scheduler)
    if isinstance(copied, Replan):
        copied.first = None
    if is_obeying(copied):  # its constraints are those of another program
        obeying(copied, Constraints.none(program.graph.n_tasks, len(platform.hosts)))
    estimates = HistoryEstimates(program.graph, platform)
    coordinator = Coordinator(copied, program.graph, platform, estimates=estimates, workers_queue=True)
    coordinator.handle([Started(0.0)])
    coordinator.handle([TaskFinished(1.0, "t0", a, 0.0)])
    coordinator.handle([DataMoved(1.1, "x0", a, b, 1.0, 1.0)])
    coordinator.handle([HostLeft(1.2, b)])
    coordinator.handle([HostJoined(1.3, b)])
    for k in range(1, 4):
        coordinator.handle([TaskFinished(2.0 + k, f"t{k}", a, 1.0 + k)])


def _no_worker(platform: Platform) -> NoPlan:
    return NoPlan("no worker is left", where=platform.name, hint="add a worker and run it again")


def _error_text(details: dict[str, Any]) -> str:
    """The message for the user: from our own wrapper if there is one, otherwise from the engine."""
    import pickle

    from distributed.protocol.serialize import Serialized, deserialize

    error = details.get("exception")
    try:
        if isinstance(error, Serialized):
            error = deserialize(error.header, error.frames)
        if isinstance(error, bytes | bytearray):
            error = pickle.loads(error)
    except Exception:  # its class may not exist here; the engine also sent its text
        error = None
    if isinstance(error, TaskFailed):
        return str(error)
    text = details.get("traceback_text") or ""
    return f"{text}{details.get('exception_text') or error or 'the task failed'}"
