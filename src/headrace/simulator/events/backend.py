"""The simulated grid: a back end in virtual time whose hosts and links change according to a script.

The compiled loop (`advance`) calls the coordinator's transitions directly and returns to Python only when the scheduler
must be called, the next change of the script is due, or the log is full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.core import state as s
from headrace.core.coordinator import Coordinator
from headrace.core.estimates import Estimates
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan import Replan
from headrace.core.scheduler import Scheduler
from headrace.core.transitions.data import unblock
from headrace.core.transitions.wake import is_balance_asked_for
from headrace.model.behaviour import Change
from headrace.model.errors import HeadraceError, NoPlan, UsageError
from headrace.model.events import (
    DataMoved,
    Event,
    HostJoined,
    HostLeft,
    LinkJoined,
    LinkLeft,
    Started,
    StorageJoined,
    StorageLeft,
    TaskFinished,
    TaskReleased,
)
from headrace.model.graph import Graph
from headrace.model.platform import Platform, Site
from headrace.model.program import Program
from headrace.model.trace import LinkTrace
from headrace.simulator.events import grid_state as g
from headrace.simulator.events.advance import (
    FINISHED,
    LOG_FULL,
    NO_ROOM,
    STUCK,
    TIME,
    WAKE,
    advance,
    host_speed_changes,
    link_speed_changes,
    settle,
)
from headrace.simulator.events.grid_refs import grid_ref
from headrace.simulator.events.run import SimulatedRun
from headrace.simulator.events.setup import set_up_grid
from headrace.simulator.events.trace import events_of

MOST_IN_VAIN = 100
"""Maximum number of successive scheduler calls without effect while nothing is active."""


def simulate_scheduler(
    graph: Graph,
    platform: Platform,
    scheduler: Scheduler,
    *,
    changes: Sequence[Change] = (),
    real: Graph | None = None,
    estimates: Estimates | None = None,
    policy: ExecutionPolicy | None = None,
    tell: Callable[[float, int], None] = lambda time, done: None,
) -> SimulatedRun:
    """Run a program in virtual time under a scheduler.

    `real` is the same graph with the actual run times and sizes, if they differ from the estimated ones. Hosts and
    links with traces follow them. `estimates` is what the scheduler sees. `tell` is called from time to time with the
    virtual time and the number of finished tasks.
    """
    began = work_clock()
    real = real or graph
    graph = graph.moving_as(real)
    run = _Run(graph, platform, scheduler, changes, real, estimates, policy, tell)
    run.go()
    return run.outcome(work_clock() - began)


class _Run:
    """One simulated run."""

    def __init__(
        self,
        graph: Graph,
        platform: Platform,
        scheduler: Scheduler,
        changes: Sequence[Change],
        real: Graph,
        estimates: Estimates | None,
        policy: ExecutionPolicy | None,
        tell: Callable[[float, int], None],
    ) -> None:
        self.coordinator = Coordinator(
            scheduler, graph, platform, policy=policy, estimates=estimates, measured=real.size
        )
        self.view, self.records = self.coordinator.view, self.coordinator.records
        self.graph, self.platform, self.scheduler, self.tell = graph, platform, scheduler, tell
        self.changes = sorted(changes, key=lambda change: change.time)
        self.setup = set_up_grid(real, platform, self.records.problem, self.records.state, self.changes)
        self.grid = self.setup.grid
        self.grid_ref = grid_ref(self.grid)
        self.results = int((self.records.problem.destination >= 0).sum())
        self.at_change = 0
        late = np.flatnonzero(graph.release > 0)
        self.releases = late[np.argsort(graph.release[late], kind="stable")].tolist()
        self.at_release = 0
        self.read = 0
        self.deciding = 0.0

    @property
    def state(self) -> s.CoordinatorState:
        return self.records.state

    def go(self) -> None:
        """Simulate the whole run."""
        self._take_away_what_comes_later()
        self._apply_changes(0.0)
        self.read = int(self.grid.log_length[0])
        flags = self.grid.flags
        flags[g.LOOK_AGAIN] = self._ask([Started(0.0)])[1]
        flags[g.MUTED] = True
        while True:
            script = self._next_of_script()
            until = min(script, self._next_time())
            reason = self._advance(until, script == math.inf)
            if reason == FINISHED:
                return
            if reason in (NO_ROOM, LOG_FULL):
                self._make_room() if reason == NO_ROOM else self._lengthen_log()
                continue
            flags[g.HAPPENED] = False
            if reason == STUCK:
                if until == math.inf and not self._unstick():
                    raise self._stuck()
                flags[g.MUTED] = False
                continue
            if flags[g.QUIET]:
                if unblock(*self.coordinator.refs):
                    flags[g.MUTED] = True
                    continue
                self.grid.stops[g.IN_VAIN] += 1
                if self.grid.stops[g.IN_VAIN] > MOST_IN_VAIN:
                    raise self._stuck()
            if flags[g.LOOK_AGAIN] and reason == TIME and not self._is_balance_asked_for(until):
                flags[g.LOOK_AGAIN], flags[g.MUTED] = False, True
                continue
            commands, flags[g.LOOK_AGAIN] = self._ask(self._news(reason, script))
            flags[g.MUTED] = reason == WAKE or not commands

    def _advance(self, until: float, script_over: bool) -> int:
        """Run the compiled loop; returns why it stopped."""
        coordinator = self.coordinator
        reason: int = advance(
            *coordinator.refs, self.grid_ref, until, self.results, coordinator.wake(), script_over
        )
        self.view.time = float(self.grid.now[0])
        self.tell(self.view.time, int(self.state.counters[s.DONE]))
        return reason

    def _news(self, reason: int, script: float) -> list[Event]:
        """What has happened since the last scheduler call, after releases and changes that are due."""
        if script > self.view.time:
            return self._happenings()
        news = self._release()
        if reason == TIME:
            news += self._apply_changes(self.view.time)
        return [*self._happenings(), *news]

    def _is_balance_asked_for(self, until: float) -> bool:
        """Whether the scheduler could move queued tasks to hosts that it left idle, or another event is due."""
        return until <= self.view.time or bool(
            is_balance_asked_for(*self.coordinator.refs, self.view.time, self.coordinator.wake())
        )

    def _make_room(self) -> None:
        """Reserve the copy records that the next steps can add."""
        counters = self.state.counters
        self.records.reserve(
            1024
            + 4 * int(counters[s.REQUESTS])
            + 2 * len(self.state.host_up)
            + 4 * int(counters[s.RUNNING_WRITES])
        )

    def _take_away_what_comes_later(self) -> None:
        """Remove hosts and links that join later, as their first change shows."""
        first: dict[str, Change] = {}
        for change in self.changes:
            if not change.what.endswith("trace"):
                first.setdefault(change.name, change)
        for change in first.values():
            if change.what == "host-up":
                self._room_for_log()
                self.coordinator.absent_at_start(change.name)
                self._settle()
                self._write(g.HOST_LEFT, self.view.host_number[change.name])
            elif change.what == "link-up":
                self._link_change(change._replace(what="link-down"), (-1, -1))

    def _next_release(self) -> float:
        if self.at_release == len(self.releases):
            return math.inf
        return float(self.graph.release[self.releases[self.at_release]])

    def _release(self) -> list[Event]:
        """Release the tasks whose release time has been reached."""
        released: list[Event] = []
        while self._next_release() <= self.view.time:
            task = self.graph.task_names[self.releases[self.at_release]]
            released.append(TaskReleased(self.view.time, task))
            self.coordinator.note(released[-1])
            self.at_release += 1
        return released

    def _next_change(self) -> float:
        return self.changes[self.at_change].time if self.at_change < len(self.changes) else math.inf

    def _next_time(self) -> float:
        """The scheduler's wake-up time; inf while no host is up."""
        return self.scheduler.wake.at if self.state.counters[s.HOSTS_UP] else math.inf

    def _next_of_script(self) -> float:
        """When the grid changes next, or a task is released."""
        return min(self._next_change(), self._next_release())

    def _ask(self, events: Sequence[Event]) -> tuple[int, bool]:
        """Call the scheduler; return the number of commands and whether it left hosts idle while others have queues."""
        began = work_clock()
        commands, leaves_idle = self.coordinator.ask_and_look(events)
        self.deciding += work_clock() - began
        return len(commands), leaves_idle

    def _write(self, kind: int, subject: int, origin: int = -1, target: int = -1) -> None:
        if int(self.grid.log_length[0]) + 8 >= len(self.grid.log_time):
            self._lengthen_log()
        grid = self.grid
        k = int(grid.log_length[0])
        grid.log_time[k], grid.log_kind[k] = grid.now[0], kind
        grid.log_subject[k], grid.log_from[k], grid.log_to[k] = subject, origin, target
        grid.log_length[0] = k + 1

    def _settle(self) -> None:
        """Execute the stops caused by a change of the grid before anything new starts."""
        settle(*self.coordinator.refs, self.grid_ref)

    def _apply_changes(self, now: float) -> list[Event]:
        """Apply all changes of the script that are due."""
        events: list[Event] = []
        while self._next_change() <= now:
            change, traces = self.changes[self.at_change], self.setup.of_change[self.at_change]
            self.at_change += 1
            self._room_for_log()
            if change.what == "host-down":
                events += self._host_leaves(now, change.name)
            elif change.what == "host-up":
                if traces[0] >= 0:
                    self._host_trace(change.name, traces[0])
                events += self._host_comes(now, change.name)
            elif change.what == "host-trace":
                self._host_trace(change.name, traces[0])
            else:
                events += self._link_change(change, traces)
        return events

    def _host_trace(self, name: str, trace: int) -> None:
        host = self.view.host_number[name]
        host_speed_changes(*self.coordinator.refs, self.grid_ref, host, trace)
        self.view.estimates.change(self.view.time, "host", host, self.setup.traces[trace])
        self._write(g.CHANGED, host)

    def _host_leaves(self, now: float, name: str) -> list[Event]:
        host = self.view.host_number[name]
        if not self.state.host_up[host]:
            return []
        event = HostLeft(now, name)
        self.coordinator.note(event)
        self._settle()
        self._write(g.HOST_LEFT, host)
        return [event]

    def _host_comes(self, now: float, name: str) -> list[Event]:
        host = self.view.host_number[name]
        if self.state.host_up[host]:
            return []
        event = HostJoined(now, name)
        self.coordinator.note(event)
        self._write(g.HOST_JOINED, host)
        return [event]

    def _link_change(self, change: Change, traces: tuple[int, int]) -> list[Event]:
        events: list[Event] = []
        now, names = self.view.time, self.platform.network.link_names
        for link in self.setup.links.get(change.name, ()):
            if change.what == "link-down":
                events.append(LinkLeft(now, names[link]))
                self.coordinator.note(events[-1])
                self._settle()
                self._write(g.LINK_LEFT, link)
            elif change.what == "link-up":
                events.append(LinkJoined(now, names[link]))
                self.coordinator.note(events[-1])
                self._write(g.LINK_JOINED, link)
            if change.what != "link-down" and traces[0] >= 0:
                behaviour = change.behaviour
                assert isinstance(behaviour, LinkTrace)
                link_speed_changes(*self.coordinator.refs, self.grid_ref, link, *traces)
                self.view.estimates.change(now, "link", link, behaviour)
                self._write(g.CHANGED, -1, link)
        site = next((each for each in self.platform.sites if each.name == change.name), None)
        if site is not None and (site.bandwidth is None or not site.hosts) and self.platform.pairs is None:
            events += self._storage_change(change, site)
        return events

    def _storage_change(self, change: Change, site: Site) -> list[Event]:
        """A site's shared storage leaves and returns with its link if none of the site's hosts is up."""
        place, now = self.view.place_number[site.name], self.view.time
        reachable = bool(self.state.place_up[place])
        if change.what == "link-down" and all(host.name in self.view.down for host in site.hosts):
            if reachable and place != self.records.problem.origin:
                self.coordinator.note(StorageLeft(now, site.name))
                self._settle()
                self._write(g.STORAGE_LEFT, place)
                return [StorageLeft(now, site.name)]
        elif change.what == "link-up" and not reachable:
            self.coordinator.note(StorageJoined(now, site.name))
            self._write(g.STORAGE_JOINED, place)
            return [StorageJoined(now, site.name)]
        return []

    def _room_for_log(self) -> None:
        need = int(self.state.counters[s.TRANSFERS]) + len(self.state.core_task) + 64
        while int(self.grid.log_length[0]) + need >= len(self.grid.log_time):
            self._lengthen_log()

    def _lengthen_log(self) -> None:
        self.grid = g.with_longer_log(self.grid)
        self.grid_ref = grid_ref(self.grid)

    def _happenings(self) -> list[Event]:
        """Log entries since the last scheduler call as events; only for schedulers that wake on every event."""
        grid, state = self.grid, self.state
        first, self.read = self.read, int(grid.log_length[0])
        if not self.view.estimates.fixed:
            ended = first + np.flatnonzero(grid.log_kind[first : self.read] == g.TASK_ENDED)
            tasks, hosts_of = grid.log_subject[ended], grid.log_from[ended]
            if len(ended):
                took = grid.log_time[ended] - state.run_start[tasks]
                self.view.estimates.note(grid.log_time[ended], tasks, hosts_of, took)
        if not self.scheduler.wake.every_event:
            return []
        names, hosts = self.graph.task_names, self.platform.hosts
        places, items = self.platform.network.place_names, self.graph.item_names
        events: list[Event] = []
        for k in range(first, self.read):
            kind, at = int(grid.log_kind[k]), float(grid.log_time[k])
            subject, origin, target = int(grid.log_subject[k]), int(grid.log_from[k]), int(grid.log_to[k])
            if kind == g.TASK_ENDED:
                began = float(state.run_start[subject])
                events.append(TaskFinished(at, names[subject], hosts[origin].name, began))
            elif kind == g.MOVE_ENDED:
                size = float(grid.size[subject])
                events.append(DataMoved(at, items[subject], places[origin], places[target], at, size))
        return events

    def _unstick(self) -> bool:
        """Resolve a deadlock: call the scheduler for ready tasks without a host, then release planned orders.

        Returns whether that helps.
        """
        waiting = self.view.ready_count
        if waiting:
            self._ask([])
        fewer = self.view.ready_count < waiting
        return fewer or self._next_time() < math.inf or bool(unblock(*self.coordinator.refs))

    def _stuck(self) -> HeadraceError:
        left = int((self.state.done == 0).sum())
        missing = f"{left} of {self.graph.n_tasks} tasks not done"
        if left == 0:
            undelivered = self.results - int(self.state.counters[s.DELIVERED])
            missing = f"{undelivered} of {self.results} results not delivered"
        return NoPlan(
            f"the run is stuck after {self.view.time:g} s: nothing more can happen, with {missing}",
            where=f"{self.graph.name} on {self.platform.name}",
            hint="check whether all hosts have left, a host or link is down or stopped permanently, or a site's "
            "storage is too small",
        )

    def outcome(self, seconds: float) -> SimulatedRun:
        """The outcome of the run."""
        grid, counters = self.grid, self.state.counters
        length = int(grid.log_length[0])
        kinds = grid.log_kind[:length]
        moved = grid.log_subject[:length][kinds == g.MOVE_ENDED]
        last = grid.log_time[:length][(kinds == g.TASK_ENDED) | (kinds == g.MOVE_ENDED)]
        scheduler = self.scheduler
        return SimulatedRun(
            graph=self.graph,
            platform=self.platform,
            scheduler=scheduler.name,
            makespan=float(last.max()) if len(last) else 0.0,
            log_time=grid.log_time[:length].copy(),
            log_kind=kinds.copy(),
            log_subject=grid.log_subject[:length].copy(),
            log_from=grid.log_from[:length].copy(),
            log_to=grid.log_to[:length].copy(),
            seconds=seconds,
            deciding=self.deciding,
            asked=self.coordinator.asked,
            plans=scheduler.plans if isinstance(scheduler, Replan) else self.coordinator.asked,
            redone=int(counters[s.REDONE]),
            stolen=int(counters[s.STOLEN]),
            duplicates=int(counters[s.DUPLICATES]),
            replicas=int(counters[s.REPLICAS]),
            bytes_moved=float(grid.size[moved].sum()),
            notes=tuple(str(rule) for rule in self.coordinator.dropped),
            dropped=tuple(self.coordinator.dropped),
        )


@dataclass(frozen=True)
class SimulatedOutcome:
    """A simulated run in the form common to all back ends; task bodies do not run, so there are no results."""

    run: SimulatedRun
    events: tuple[Event, ...]
    results: dict[str, object] = field(default_factory=dict)

    @property
    def makespan(self) -> float:
        return self.run.makespan


class SimulatedGrid:
    """A platform in virtual time, as a back end."""

    computes = False

    def __init__(
        self, platform: Platform, changes: Sequence[Change] = (), policy: ExecutionPolicy | None = None
    ) -> None:
        self.platform = platform
        self.changes = changes
        self.policy = policy

    def execute(
        self, program: Program, scheduler: Scheduler | None, observe: Callable[[Event], None]
    ) -> SimulatedOutcome:
        """Run a program under a scheduler; `observe` is called with all events, in order, after the run."""
        if scheduler is None:
            raise UsageError("a simulated grid needs a scheduler", hint="pass a scheduler")
        run = simulate_scheduler(
            program.graph,
            self.platform,
            scheduler,
            changes=self.changes,
            real=program.real,
            policy=self.policy,
        )
        events = tuple(events_of(run))
        for event in events:
            observe(event)
        return SimulatedOutcome(run, events)
