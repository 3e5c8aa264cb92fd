"""The coordinator: events in, commands out. It owns queues, data locations, estimates and recovery.

It has no clock and does no I/O. Its state is a set of arrays (`core.state`) updated by compiled functions
(`core.transitions`). The simulated grid calls those functions from its own compiled loop; events of real workers are
passed to `Coordinator.handle`. This is the only implementation of queues, losses and recovery.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from headrace.core import state as s
from headrace.core.constraint_arrays import Unseen, constraint_arrays, passed_on, running_by_gate
from headrace.core.estimates import Estimates
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.growth import grown_state, with_host
from headrace.core.initial_state import make_state, make_static_problem
from headrace.core.records import RunRecords
from headrace.core.scheduler import (
    Assign,
    AssignMany,
    Cancel,
    Command,
    Deliver,
    DiskOrder,
    Fetch,
    Remove,
    Replicate,
    Requeue,
    RequeueTail,
    Scheduler,
    WakeConditions,
)
from headrace.core.transitions.data import remove_copy, unblock
from headrace.core.transitions.dispatch import copy_arrived, dispatch_all, task_finished
from headrace.core.transitions.link_turns import release_links
from headrace.core.transitions.losses import (
    cancel,
    copy_lost,
    host_joined,
    host_left,
    host_paused,
    link_joined,
    link_left,
    storage_joined,
    storage_left,
    task_released,
)
from headrace.core.transitions.queues import assign_all, requeue_all, requeue_tails
from headrace.core.transitions.replication import enqueue_results, enqueue_single, replicas_due
from headrace.core.transitions.requests import fetch_all, replicate_all, withdraw_all
from headrace.core.transitions.wake import Wake, compiled_wake, is_asked_for, is_balance_asked_for
from headrace.core.validation import validate
from headrace.core.view import RunView
from headrace.model.constraints import Constraints
from headrace.model.errors import NoPlan
from headrace.model.events import (
    CopyLost,
    DataMoved,
    Event,
    HostJoined,
    HostLeft,
    HostPaused,
    LinkJoined,
    LinkLeft,
    RuleDropped,
    Started,
    StorageJoined,
    StorageLeft,
    TaskErred,
    TaskFinished,
    TaskReleased,
)
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.platform import Host, Platform
from headrace.model.user_code import is_users, user_code

# Commands from the coordinator to a back end.


@dataclass(frozen=True, slots=True)
class StartTask:
    """Run a task on a core of a host, where all its inputs are present."""

    task: str
    host: str
    core: int


@dataclass(frozen=True, slots=True)
class SendItem:
    """Send a copy of an item from one place to another."""

    item: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class StopTask:
    """Stop a running task."""

    task: str
    host: str
    core: int


@dataclass(frozen=True, slots=True)
class AbortTransfer:
    """Abort a transfer."""

    item: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class DropCopy:
    """Remove a copy of an item."""

    item: str
    place: str


BackendCommand: TypeAlias = StartTask | SendItem | StopTask | AbortTransfer | DropCopy
"""Commands for back ends that start every task and transfer on the coordinator's command."""

GRID_CHANGES = (Started, HostLeft, HostPaused, HostJoined, TaskErred, CopyLost)
"""Events after which the scheduler is always called."""


class Coordinator:
    """Carries one program through one run under a scheduler.

    `estimates` default to the figures of the program and the platform. With `workers_queue` the workers keep their own
    queues and fetch data themselves, so `handle` returns assignments instead of starts and transfers.
    `measured` are the real sizes of items, of which those of inputs are known from the start. Items from number
    `unseen_from` on are signals that such workers do not know: tasks that wait for one are not passed on before.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        graph: Graph,
        platform: Platform,
        *,
        policy: ExecutionPolicy | None = None,
        estimates: Estimates | None = None,
        workers_queue: bool = False,
        measured: Floats | None = None,
        unseen_from: int | None = None,
    ) -> None:
        widest = max(host.cores for host in platform.hosts)
        if (graph.cores > widest).any():
            task = int(np.argmax(graph.cores))
            raise NoPlan(
                f"task {graph.task_names[task]!r} needs {graph.cores[task]} cores, but no host has more than {widest}",
                where=f"{graph.name} on {platform.name}",
                hint="add a host with more cores",
            )
        self.scheduler = scheduler
        self.policy = policy or ExecutionPolicy()
        self.workers_queue = workers_queue
        problem = make_static_problem(graph, platform, self.policy)
        self.records = RunRecords(problem, make_state(graph, platform, problem, measured))
        self.estimates = estimates or Estimates(graph, platform)
        self.view = RunView(
            graph, platform, self.records, self.estimates, policy=self.policy, starts_known=not workers_queue
        )
        self.asked = 0
        """Number of scheduler calls."""
        self._wake: tuple[WakeConditions, Floats, Wake] | None = None
        self._constraints: Constraints | None = None
        self._unseen = Unseen.of(graph, graph.n_items if unseen_from is None else unseen_from)
        self._told: Ints | None = None
        """With limits on tasks at once or an order that workers with their own queues do not know, the hosts of tasks
        that they have been told."""
        if len(self._unseen.task):
            self._told = np.full(graph.n_tasks, -1, np.int32)
        self._take_constraints()
        self._untold: list[Event] = []
        """Events held back while no host was up; the scheduler receives them when a host joins."""

    @property
    def refs(self) -> tuple[object, object]:
        """References to the problem and the state for compiled functions."""
        return self.records.problem_ref, self.records.state_ref

    @property
    def told(self) -> Ints:
        """The host of each task that workers with their own queues have been told; -1 for none."""
        return self.records.state.assigned if self._told is None else self._told

    @property
    def dropped(self) -> Sequence[RuleDropped]:
        """The rules that the scheduler has left out, because they could not be kept any more."""
        left_out: Sequence[RuleDropped] = getattr(self.scheduler, "dropped", ())
        return left_out

    # Events.

    def handle(
        self, events: Sequence[Event], now: float = 0.0, idle_links: Sequence[int] = ()
    ) -> list[BackendCommand | Command]:
        """Take note of events, ask the scheduler if it wants to be asked, and say what follows.

        `now` is for back ends that call at the time named by `WakeConditions.at`, with nothing else to tell.
        `idle_links` have carried the bytes of the transfer whose turn it was, which may still be under way; that alone
        is no reason to ask the scheduler. Back ends that cannot tell leave them out: links are idle again at the
        latest when the transfer ends.
        The answer is a list of `BackendCommand`; for workers with queues of their own it is a list of
        `Assign` and `Requeue`, for tasks that got another host or none, and of what the scheduler said about data.
        """
        before = self.records.state.assigned.copy()
        self.view.time = max(self.view.time, now)
        if len(idle_links):
            release_links(*self.refs, np.array(idle_links, np.int64))
            if not events:
                return self._dispatch()
        for event in events:
            self.note(event)
        answer = self._backend_commands()
        changed = any(isinstance(event, GRID_CHANGES) for event in events)
        if not changed:  # otherwise call the scheduler before anything starts
            answer += self._dispatch()
        answer += self._ask_as_needed(events, changed)
        if not self.workers_queue:
            return answer
        lost = any(isinstance(event, HostLeft) for event in events)
        return [*self._reassigned(before), *answer, *self._replicas(), *self._replaced_replicas(lost)]

    def _replaced_replicas(self, lost: bool) -> list[Command]:
        """Copies of items that have only one left after a loss, or that are due by a step chosen after it."""
        if not lost or not self.records.problem.policy[s.REPLICATE]:
            return []
        enqueue_single(*self.refs)
        return self._replicas()

    def _replicas(self) -> list[Command]:
        """Copies that lazy replication makes now; only workers with their own queues are told so."""
        state = self.records.state
        if state.to_replicate_at[0] == state.to_replicate_at[1]:
            return []
        names, places = self.view.graph.item_names, self.view.platform.network.place_names
        items, targets = replicas_due(*self.refs)
        return [Replicate(names[i], places[p]) for i, p in zip(items.tolist(), targets.tolist(), strict=True)]

    def replicate_every(self, levels: int) -> None:
        """From now on, copy what every so many levels produce; 0: nothing."""
        self.policy = replace(self.policy, replicate=levels)
        settings = self.records.problem.policy.copy()
        settings[s.REPLICATE] = levels
        self.records.change(self.records.problem._replace(policy=settings), self.records.state)

    def unblock(self) -> list[BackendCommand | Command]:
        """Resolve a deadlock: unfinished tasks remain, but nothing is running and no event is pending.

        The scheduler is called for ready tasks without a host. If that does not help, planned orders are dropped and
        the inputs of all queued tasks are requested. Back ends call this; if it returns no command, the run is stuck.
        """
        before, waiting = self.records.state.assigned.copy(), self.view.ready_count
        answer = self._answer_to(self.ask(())) if waiting else []
        if self.view.ready_count == waiting and unblock(*self.refs):
            answer += self._dispatch()
        return [*self._reassigned(before), *answer] if self.workers_queue else answer

    def _ask_as_needed(self, events: Sequence[Event], changed: bool) -> list[BackendCommand | Command]:
        """Call the scheduler until no wake condition holds, in the order of the simulated grid; return the commands."""
        answer: list[BackendCommand | Command] = []
        happened, muted, check_balance = True, False, False
        while True:
            balance = check_balance and is_balance_asked_for(*self.refs, self.view.time, self.wake())
            wanted = changed or balance
            wanted = wanted or is_asked_for(*self.refs, self.view.time, self.wake(), happened, muted)
            due = self.scheduler.wake.at
            if not wanted and not self.is_due:
                return answer
            commands, leaves_idle = self.ask_and_look(events)
            started = self._answer_to(commands)
            if leaves_idle and not started and not self.workers_queue and unblock(*self.refs):
                started = self._dispatch()  # nothing could start: fetch inputs for all queued tasks
            answer += started
            check_balance = leaves_idle and not balance
            muted = not commands or (wanted and not changed and not balance)
            if (
                not wanted and self.scheduler.wake.at == due
            ):  # the scheduler did not set its next wake-up time
                return answer
            events, changed, happened = (), False, False

    def _answer_to(self, commands: Sequence[Command]) -> list[BackendCommand | Command]:
        """Commands for the back end that follow from the scheduler's commands."""
        if self.workers_queue:
            return [c for c in commands if isinstance(c, Fetch | Replicate | Remove | Cancel)]
        return [*self._backend_commands(), *self._dispatch()]

    @property
    def is_due(self) -> bool:
        """Whether the scheduler's wake-up time has passed."""
        return bool(self.view.hosts_up.any()) and self.scheduler.wake.at <= self.view.time

    def note(self, event: Event) -> None:
        """Update the state for one event without calling the scheduler. Events of hosts that have left are ignored."""
        view = self.view
        view.time = max(view.time, event.time)
        self._reserve_for(event)
        match event:
            case TaskFinished():
                self._task_finished(event)
            case TaskErred(task=task):
                cancel(*self.refs, view.task_number[task])
            case TaskReleased(task=task):
                task_released(*self.refs, view.task_number[task])
            case DataMoved(item=item, target=target):
                place = self._place(target)
                if place >= 0 and self.records.state.place_up[place]:
                    copy_arrived(*self.refs, view.item_number[item], place)
            case HostLeft(host=host) if host in view.host_number:
                host_left(*self.refs, view.host_number[host], True)
            case HostPaused(host=host) if host in view.host_number:
                host_paused(*self.refs, view.host_number[host])
            case CopyLost(item=item, place=name) if self._place(name) >= 0:
                copy_lost(*self.refs, view.item_number[item], self._place(name))
            case HostJoined(host=host) if host in view.host_number:
                host_joined(*self.refs, view.host_number[host], event.time)
            case LinkLeft(link=link):
                link_left(*self.refs, self._link(link))
            case LinkJoined(link=link):
                link_joined(*self.refs, self._link(link))
            case StorageLeft(place=name):
                storage_left(*self.refs, view.place_number[name])
            case StorageJoined(place=name):
                storage_joined(*self.refs, view.place_number[name])

    def grow(self, host: Host) -> bool:
        """Add a host that the platform did not have; it is down until `HostJoined`. O(tasks + copies + places^2).

        Only for workers with their own queues. Returns False, and changes nothing, if the scheduler obeys
        constraints: they were made for the hosts of the platform.
        """
        if self._constraints is not None or not self.workers_queue:
            return False
        view, old = self.view, self.records.state
        platform, graph = with_host(view.platform, host), view.graph
        problem = make_static_problem(graph, platform, self.policy)
        names = view.platform.network.place_names
        places = np.array([platform.place_of[name] for name in names], np.int32)
        state = grown_state(problem, old, make_state(graph, platform, problem), places)
        self.records.change(problem, state)
        self.estimates = self.estimates.grown(graph, platform)
        view.move_to(platform, self.estimates)
        return True

    def absent_at_start(self, host: str) -> None:
        """Mark a host as absent when the run starts; its initial data becomes available when it joins."""
        host_left(*self.refs, self.view.host_number[host], False)

    def _reserve_for(self, event: Event) -> None:
        """Reserve the copy records that an event can add."""
        graph = self.view.graph
        if isinstance(event, HostJoined | StorageJoined):
            self.records.reserve(graph.n_items + 1)
        elif isinstance(event, TaskFinished):
            self.records.reserve(2 * len(graph.writes_of(self.view.task_number[event.task])) + 1)
        else:
            self.records.reserve(2)

    def _task_finished(self, event: TaskFinished) -> None:
        view, state = self.view, self.records.state
        task, host = view.task_number[event.task], view.host_number.get(event.host, -1)
        if host < 0 or state.done[task] or not state.place_up[self.records.problem.host_place[host]]:
            return
        took = max(0.0, event.time - event.start)
        expected, factor = float(state.predicted[task]), self.scheduler.wake.misprediction
        if factor < np.inf and (took > factor * expected or factor * took < expected):
            state.counters[s.MISPREDICTED] += 1
        for item, size in event.sizes:
            number = view.item_number[item]
            if not state.exists[number]:  # all copies count as large as the first
                state.size[number] = size
        task_finished(*self.refs, task, host, event.time)
        if self.workers_queue and self.records.problem.policy[s.REPLICATE]:
            enqueue_results(*self.refs, task)
        state.ran_for[task] = took
        one = np.array([task], np.int32), np.array([host], np.int32), np.array([took])
        self.estimates.note(np.array([event.time]), *one)

    def _place(self, name: str) -> int:
        """The number of a place, by its own name or the name of a host that stores data there; -1 if unknown."""
        if name in self.view.place_number:
            return self.view.place_number[name]
        host = self.view.host_number.get(name, -1)
        return -1 if host < 0 else int(self.records.problem.host_place[host])

    def _link(self, name: str) -> int:
        return self.view.platform.network.link_names.index(name)

    # Decisions.

    def wake(self) -> Wake:
        """The scheduler's wake conditions for compiled functions."""
        estimates, rates = self.estimates, self.view.rates()
        if self._wake is not None and self._wake[0] is self.scheduler.wake and self._wake[1] is rates:
            return self._wake[2]
        wake = compiled_wake(
            self.scheduler.wake, estimates.work, estimates.graph.speed_class, rates, estimates.fixed
        )
        self._wake = (self.scheduler.wake, rates, wake)
        return wake

    def ask(self, events: Sequence[Event]) -> Sequence[Command]:
        """Call the scheduler and apply its commands. While no host is up, the call is postponed."""
        self._untold.extend(events)
        if not self.records.state.counters[s.HOSTS_UP]:
            return ()
        events, self._untold = self._untold, []
        if is_users(self.scheduler):
            with user_code(f"the scheduler {self.scheduler.name!r}"):
                commands = self.scheduler.react(self.view, events)
        else:
            commands = self.scheduler.react(self.view, events)
        self._take_constraints()
        self.records.state.counters[s.MISPREDICTED] = 0
        self.asked += 1
        self.apply(commands)
        return commands

    def _take_constraints(self) -> None:
        """Take the constraints that the scheduler obeys into the arrays; a scheduler may leave some out in a run."""
        wanted = getattr(self.scheduler, "constraints", None)
        if wanted is self._constraints:
            return
        self._constraints = wanted
        records, arrays = self.records, constraint_arrays(wanted)
        settings = records.problem.policy.copy()
        settings[s.GATED] = len(arrays.gate_most) > 0
        if self._told is None and settings[s.GATED]:
            self._told = np.full(len(records.state.assigned), -1, np.int32)
        running = running_by_gate(arrays, records.state.run_host)
        records.change(
            records.problem._replace(policy=settings, **arrays._asdict()),
            records.state._replace(gate_running=running),
        )

    def ask_and_look(self, events: Sequence[Event]) -> tuple[Sequence[Command], bool]:
        """As `ask`; also returns whether it placed ready tasks and left one host idle while another has a queue."""
        waiting = self.view.ready_count
        commands = self.ask(events)
        placed = bool(commands) and waiting > 0 and self.scheduler.wake.imbalance
        counters = self.records.state.counters
        return commands, placed and bool(counters[s.IDLE_HOSTS] > 0 and counters[s.CROWDED_HOSTS] > 0)

    def apply(self, commands: Sequence[Command]) -> None:
        """Apply the scheduler's commands: cancellations first, then assignments, then data."""
        for command in commands:
            if isinstance(command, RequeueTail):
                requeue_tails(*self.refs, command.keep)
                withdraw_all(*self.refs)
                self.records.state.disk_end[:] = self.records.state.disk_head  # planned anew
            elif isinstance(command, Requeue):
                requeue_all(*self.refs, np.array([self._task(command.task)], np.int32))
            elif isinstance(command, Cancel):
                cancel(*self.refs, self._task(command.task))
        self._deliver([c for c in commands if isinstance(c, Deliver)])
        self._assign(commands)
        self._fetch([c for c in commands if isinstance(c, Fetch)])
        self._order_disks([c for c in commands if isinstance(c, DiskOrder)])
        for command in commands:
            if isinstance(command, Replicate):
                self.records.reserve(2)
                item, target = self._item(command.item), self._known_place(command.target)
                replicate_all(*self.refs, np.array([item], np.int32), np.array([target], np.int32))
            elif isinstance(command, Remove):
                remove_copy(*self.refs, self._item(command.item), self._known_place(command.place))

    def _assign(self, commands: Sequence[Command]) -> None:
        in_plan_order = self.policy.task_order == "planned"
        singles: dict[bool, list[Assign]] = {}
        for command in commands:
            if isinstance(command, AssignMany):
                self._enqueue(command.tasks, command.hosts, command.ranks, command.in_order and in_plan_order)
            elif isinstance(command, Assign):
                singles.setdefault(command.in_order and in_plan_order, []).append(command)
        for in_order, chosen in singles.items():
            tasks = np.array([self._task(a.task) for a in chosen], np.int32)
            hosts = np.array([self._host(a.host, a.task) for a in chosen], np.int32)
            self._enqueue(tasks, hosts, np.array([a.rank for a in chosen], np.float64), in_order)

    def _enqueue(self, tasks: Ints, hosts: Ints, ranks: Floats, in_order: bool) -> None:
        self.records.reserve_for(tasks)
        estimates, rates = (
            self.estimates,
            self.view.rates(),
        )  # rates first: learning also updates the run times
        run_times = estimates.work, estimates.graph.speed_class, rates
        assign_all(*self.refs, tasks, hosts, np.asarray(ranks, np.float64), *run_times, in_order)

    def _fetch(self, fetches: Sequence[Fetch]) -> None:
        """Request planned transfers. Without fixed routes, only fifo links need future transfers in their queues."""
        planned = self.policy.routes == "planned"
        if not fetches or not (planned or self.view.platform.contention == "fifo"):
            return
        self.records.reserve(2 * len(fetches))
        fetch_all(
            *self.refs,
            np.array([self._item(f.item) for f in fetches], np.int32),
            np.array([self._known_place(f.source) for f in fetches], np.int32),
            np.array([self._known_place(f.target) for f in fetches], np.int32),
            np.array([f.rank for f in fetches], np.float64),
            np.array([f.prefetch for f in fetches], np.bool_),
            np.array([f.in_turn for f in fetches], np.bool_),
            planned,
        )

    def _deliver(self, deliveries: Sequence[Deliver]) -> None:
        """Change the destinations of results that have not been delivered."""
        for chosen in deliveries:
            problem, state = self.records.problem, self.records.state
            open_ = state.delivered[chosen.items] == 0
            destination = problem.destination.copy()
            destination[chosen.items[open_]] = chosen.places[open_]
            self.records.change(problem._replace(destination=destination), state)

    def _order_disks(self, orders: Sequence[DiskOrder]) -> None:
        """Storage is taken up in the order that was given last."""
        for order in orders[-1:]:
            problem, state = self.records.problem, self.records.state
            site = problem.place_site[order.places]
            by_site = np.argsort(site, kind="stable")
            counts = np.bincount(site, minlength=len(problem.storage))
            tasks = order.tasks[by_site].astype(np.int32)
            position = np.full(len(state.disk_position), -1, np.int32)
            position[tasks[tasks >= 0]] = np.flatnonzero(tasks >= 0)
            end = np.cumsum(counts)
            made = state._replace(
                disk_head=end - counts,
                disk_end=end,
                disk_task=tasks,
                disk_item=order.items[by_site].astype(np.int32),
                disk_place=order.places[by_site].astype(np.int32),
                disk_position=position,
            )
            self.records.change(problem, made)

    def _task(self, name: str) -> int:
        return self._number(self.view.task_number, name, "task")

    def _item(self, name: str) -> int:
        return self._number(self.view.item_number, name, "item")

    def _known_place(self, name: str) -> int:
        place = self._place(name)
        return place if place >= 0 else self._number(self.view.place_number, name, "place")

    def _host(self, name: str, task: str) -> int:
        if name not in self.view.host_number:
            raise NoPlan(
                f"{task!r} was assigned to host {name!r}, which does not exist",
                where=self.scheduler.name,
                hint=f"the hosts of {self.view.platform.name} are {_some(self.view.host_number)}",
            )
        return self.view.host_number[name]

    def _number(self, numbers: dict[str, int], name: str, what: str) -> int:
        if name not in numbers:
            raise NoPlan(
                f"the scheduler named the {what} {name!r}, which does not exist",
                where=self.scheduler.name,
                hint=f"the first ones are {_some(numbers)}",
            )
        return numbers[name]

    # Answers.

    def _dispatch(self) -> list[BackendCommand | Command]:
        """Start everything that can start; workers with their own queues do that themselves."""
        if self.workers_queue:
            return []
        state = self.records.state
        self.records.reserve(64 + int(state.counters[s.REQUESTS]) + len(state.host_up))
        dispatch_all(*self.refs, self.view.time)
        return self._backend_commands()

    def _backend_commands(self) -> list[BackendCommand | Command]:
        """Commands since the last call. Transfers are identified by number; the next dispatch may reuse numbers."""
        state, names = self.records.state, _Names(self.view)
        count = int(state.counters[s.COMMANDS])
        state.counters[s.COMMANDS] = 0
        if self.workers_queue:  # workers that have left need no stop command
            return []
        rows = zip(
            state.command_kind[:count].tolist(),
            state.command_subject[:count].tolist(),
            state.command_from[:count].tolist(),
            state.command_to[:count].tolist(),
            strict=True,
        )
        return [names.command(state, *row) for row in rows]

    def _reassigned(self, before: Ints) -> list[Assign | Requeue]:
        """Tasks whose host has changed or been withdrawn, for workers with their own queues."""
        state, view = self.records.state, self.view
        hosts, names = view.platform.hosts, view.graph.task_names
        now = state.assigned
        if self._told is not None:
            before, now = self._told, passed_on(self.records.problem, state, self._told, self._unseen)
            self._told = now
        taken_off = np.flatnonzero((before >= 0) & (now < 0) & (state.done == 0))
        released = [Requeue(names[t]) for t in taken_off.tolist()]
        changed = np.flatnonzero((now != before) & (now >= 0))
        ordered = changed[np.lexsort((changed, state.rank[changed]))].tolist()
        return [*released, *(Assign(names[t], hosts[now[t]].name, float(state.rank[t])) for t in ordered)]

    def validate_state(self) -> None:
        """Raise AssertionError if the state is inconsistent: O(tasks + copies + requests)."""
        validate(self.records.problem, self.records.state)


class _Names:
    """Back-end commands with names in place of numbers."""

    def __init__(self, view: RunView) -> None:
        self.tasks, self.items = view.graph.task_names, view.graph.item_names
        self.hosts, self.places = view.platform.hosts, view.platform.network.place_names

    def command(
        self, state: s.CoordinatorState, kind: int, subject: int, origin: int, target: int
    ) -> BackendCommand:
        if kind == s.START:
            return StartTask(self.tasks[subject], self.hosts[origin].name, target)
        if kind == s.STOP:
            return StopTask(self.tasks[subject], self.hosts[origin].name, target)
        if kind == s.DROP:
            return DropCopy(self.items[subject], self.places[origin])
        item = self.items[state.transfer_item[subject]]
        if kind == s.SEND:
            return SendItem(item, self.places[origin], self.places[target])
        return AbortTransfer(item, self.places[origin], self.places[target])


def _some(names: dict[str, int]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
