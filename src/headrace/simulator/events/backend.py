"""Simulate a program under an online scheduler on a grid that changes: virtual time around the coordinator."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Sequence

import numpy as np

from headrace.core import state as d
from headrace.core.estimates import Estimates
from headrace.core.online import EVERY_EVENT, ON_GRID_CHANGES, Command, Fetch, RequeueTail, WakeConditions
from headrace.core.scheduler import Assign, Follow
from headrace.core.state_refs import problem_ref, state_ref
from headrace.core.transitions.data import deliver_all, unblock, withdraw_all
from headrace.core.transitions.losses import (
    host_joined,
    host_left,
    link_joined,
    link_left,
    released,
    storage_joined,
    storage_left,
)
from headrace.core.transitions.queues import assign_all, truncate
from headrace.core.view import RunView
from headrace.model.behaviour import Change
from headrace.model.errors import HeadraceError, NoPlan
from headrace.model.events import DataMoved, Event, HostJoined, HostLeft, Started, TaskFinished
from headrace.model.graph import Graph
from headrace.model.platform import Platform, Site
from headrace.model.trace import LinkTrace
from headrace.simulator.events import grid_state as w
from headrace.simulator.events.advance import (
    FINISHED,
    LOG_FULL,
    STUCK,
    TIME,
    WAKE,
    advance,
    host_speed_changes,
    link_speed_changes,
    settle,
)
from headrace.simulator.events.grid_refs import grid_ref
from headrace.simulator.events.run import LINK_ORDERS, ExecutionPolicy, Scheduler, SimulatedRun
from headrace.simulator.events.setup import set_up_grid

MOST_IN_VAIN = 100
"""How often a scheduler may be asked while nothing is under way and nothing comes of it."""


def simulate_online(
    graph: Graph,
    platform: Platform,
    scheduler: Scheduler,
    *,
    changes: Sequence[Change] = (),
    real: Graph | None = None,
    estimates: Estimates | None = None,
    mechanics: ExecutionPolicy | None = None,
    tell: Callable[[float, int], None] = lambda time, done: None,
) -> SimulatedRun:
    """Run a program in virtual time under a scheduler that decides while it goes.

    `real` is the same graph with what tasks truly take and items truly weigh, where estimates
    differ. Hosts and links with traces follow them; `estimates` are what the scheduler is
    told.
    """
    began = clock.perf_counter()
    run = _Run(
        graph, platform, scheduler, changes, real or graph, estimates, mechanics or ExecutionPolicy(), tell
    )
    run.go()
    return run.outcome(clock.perf_counter() - began)


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
        mechanics: ExecutionPolicy,
        tell: Callable[[float, int], None],
    ) -> None:
        widest = max(host.cores for host in platform.hosts)
        if (graph.cores > widest).any():
            task = int(np.argmax(graph.cores))
            raise NoPlan(
                f"task {graph.task_names[task]!r} needs {graph.cores[task]} cores, no host has more than {widest}",
                where=f"{graph.name} on {platform.name}",
                hint="add a host with more cores",
            )
        self.graph, self.platform, self.scheduler, self.tell = graph, platform, scheduler, tell
        self.problem = d.make_static_problem(
            graph,
            platform,
            link_order=LINK_ORDERS[mechanics.link_order],
            strict=mechanics.strict,
            ahead=max(1, mechanics.ahead),
            steal=mechanics.steal,
            duplicate=mechanics.duplicate,
            replicate=mechanics.replicate,
        )
        self.desk = d.make_state(graph, platform, self.problem)
        self.problem_ref, self.state_ref = problem_ref(self.problem), state_ref(self.desk)
        self.changes = sorted(changes, key=lambda change: change.time)
        self.stage = set_up_grid(real, platform, self.problem, self.desk, self.changes)
        self.grid = self.stage.grid
        self.grid_ref = grid_ref(self.grid)
        self.host_number = {host.name: h for h, host in enumerate(platform.hosts)}
        self.place_number = {name: p for p, name in enumerate(platform.network.place_names)}
        self.estimates = estimates or Estimates(graph, platform)
        refs = (self.problem_ref, self.state_ref)
        self.state = RunView(graph, platform, self.problem, self.desk, self.estimates, refs)
        self.results = int((self.problem.destination >= 0).sum())
        self.at_change = 0
        late = np.flatnonzero(graph.release > 0)
        self.releases = late[np.argsort(graph.release[late], kind="stable")].tolist()
        self.at_release = 0
        self.lines = self.in_vain = 0
        self.last_time = -1.0
        self.untold: list[Event] = []
        """What happened while there was no host to plan for."""
        self.read = 0
        self.asked = 0
        self.deciding = 0.0

    def go(self) -> None:
        """From the start to the end."""
        events: list[Event] = [Started(0.0)]
        for change in self._first_changes():
            if change.what == "host-up":
                self._host_leaves(change.name, wiped=False)  # it comes when the script says so
            elif change.what == "link-up":
                self._link_change(change._replace(what="link-down"), (-1, -1))
        self._apply_changes(0.0)
        self.read = int(self.grid.log_len[0])
        self._ask(events)
        asked_idle = True
        while True:
            wake = _wake_of(self.scheduler)
            until = min(self._next_change(), self._next_release(), self._next_time())
            reason = advance(
                self.problem_ref,
                self.state_ref,
                self.grid_ref,
                until,
                self.results,
                _ready_limit(wake),
                wake.soon if wake.idle else -1.0,
                wake.uneven,
                wake.off_by,
                asked_idle and not wake.every,
            )
            self.state.time = float(self.grid.now[0])
            self.tell(self.state.time, int(self.desk.count[d.DONE]))
            if reason == FINISHED:
                return
            if reason == LOG_FULL:
                self._lengthen_log()
                asked_idle = False
                if not wake.every:
                    continue
            if reason == STUCK:
                if until == math.inf and not self._unstick():
                    raise self._stuck()
                asked_idle = False
                continue
            if self._is_quiet(reason):
                if unblock(self.problem_ref, self.state_ref):
                    asked_idle = True
                    continue
                self.in_vain += 1
                if self.in_vain > MOST_IN_VAIN:
                    raise self._stuck()
            news: list[Event] = []
            self._release()
            if reason == TIME and self._next_change() <= self.state.time:
                news = self._apply_changes(self.state.time)
            answers = self._ask([*self._happenings(), *news])
            asked_idle = reason == WAKE or not answers

    def _is_quiet(self, reason: int) -> bool:
        """Whether nothing has begun since the scheduler was asked, and nothing is to come by itself."""
        lines = int(self.grid.log_len[0])
        quiet = lines == self.lines
        for_ever = min(self._next_change(), self._next_release()) == math.inf and not self._moves_on()
        stands = reason == TIME and self.state.time == self.last_time
        self.lines, self.last_time = lines, self.state.time
        if not quiet:
            self.in_vain = 0
        return quiet and (for_ever or stands)

    def _moves_on(self) -> bool:
        """Whether anything that is under way will ever end; hosts and links can stand still for good."""
        grid = self.grid
        if grid.heap_len[0] > 0 and grid.heap_time[0] < math.inf:
            return True
        flows = grid.active[: int(grid.n_active[0])]
        return len(flows) > 0 and bool(grid.flow_time[1] < math.inf or (grid.pair_rate[flows] > 0).any())

    def _first_changes(self) -> list[Change]:
        """The first thing that happens to each host and link that comes or goes."""
        first: dict[str, Change] = {}
        for change in self.changes:
            if not change.what.endswith("trace"):
                first.setdefault(change.name, change)
        return list(first.values())

    def _next_release(self) -> float:
        if self.at_release == len(self.releases):
            return math.inf
        return float(self.graph.release[self.releases[self.at_release]])

    def _release(self) -> None:
        """Tasks whose time has come."""
        while self._next_release() <= self.state.time:
            released(self.problem_ref, self.state_ref, self.releases[self.at_release])
            self.at_release += 1

    def _next_change(self) -> float:
        return self.changes[self.at_change].time if self.at_change < len(self.changes) else math.inf

    def _next_time(self) -> float:
        """When the scheduler wants to be asked; without a host there is nothing to ask."""
        return float(getattr(self.scheduler, "next_time", math.inf)) if self.desk.host_up.any() else math.inf

    def _ask(self, events: Sequence[Event]) -> int:
        """What the scheduler answers is put into the queues; how much that was."""
        self.untold.extend(events)
        if not self.desk.host_up.any():
            return 0
        events, self.untold = self.untold, []
        began = clock.perf_counter()
        self.state.surprised = bool(self.desk.count[d.OFF] > 0)
        self.desk.count[d.OFF] = 0
        answers = self.scheduler.react(self.state, events)
        self.deciding += clock.perf_counter() - began
        self.asked += 1
        self._apply(answers)
        return len(answers)

    def _apply(self, answers: Sequence[Command]) -> None:
        task_number, item_number = self.state.task_number, self.state.item_number
        for answer in answers:
            if isinstance(answer, RequeueTail):
                truncate(self.problem_ref, self.state_ref, answer.keep)
                withdraw_all(self.problem_ref, self.state_ref)
        chosen = [a for a in answers if isinstance(a, Assign)]
        if chosen:
            tasks = np.array([task_number[a.task] for a in chosen], np.int32)
            hosts = np.array([self.host_number[a.host] for a in chosen], np.int32)
            ranks = np.array([a.rank for a in chosen], np.float64)
            expected = self.estimates.seconds(self.state.time, tasks, hosts)
            assign_all(self.problem_ref, self.state_ref, tasks, hosts, ranks, expected)
        sent = [a for a in answers if isinstance(a, Fetch)]
        if sent and self.platform.contention == "fifo":
            deliver_all(
                self.problem_ref,
                self.state_ref,
                np.array([item_number[a.item] for a in sent], np.int32),
                np.array([self.place_number[a.source] for a in sent], np.int32),
                np.array([self.place_number[a.target] for a in sent], np.int32),
                np.array([a.rank for a in sent], np.float64),
            )

    def _write(self, kind: int, a: int, b: int = -1, c: int = -1) -> None:
        grid = self.grid
        if int(grid.log_len[0]) + 8 >= len(grid.log_time):
            self._lengthen_log()
            grid = self.grid
        k = int(grid.log_len[0])
        grid.log_time[k], grid.log_kind[k] = grid.now[0], kind
        grid.log_a[k], grid.log_b[k], grid.log_c[k] = a, b, c
        grid.log_len[0] = k + 1

    def _apply_changes(self, now: float) -> list[Event]:
        """Everything of the script that happens by now."""
        events: list[Event] = []
        while self._next_change() <= now:
            change, traces = self.changes[self.at_change], self.stage.of_change[self.at_change]
            self.at_change += 1
            if change.what == "host-down":
                if self._host_leaves(change.name):
                    events.append(HostLeft(now, change.name))
            elif change.what == "host-up":
                if traces[0] >= 0:
                    self._host_trace(change.name, traces[0])
                if self._host_comes(change.name):
                    events.append(HostJoined(now, change.name))
            elif change.what == "host-trace":
                self._host_trace(change.name, traces[0])
            else:
                self._link_change(change, traces)
        return events

    def _host_trace(self, name: str, trace: int) -> None:
        host = self.host_number[name]
        host_speed_changes(self.problem_ref, self.state_ref, self.grid_ref, host, trace)
        self.estimates.change(self.state.time, "host", host, self.stage.traces[trace])
        self._write(w.CHANGED, host)

    def _host_leaves(self, name: str, *, wiped: bool = True) -> bool:
        host = self.host_number[name]
        if not self.desk.host_up[host]:
            return False
        self._room_for_log()
        host_left(self.problem_ref, self.state_ref, host, wiped)
        settle(self.problem_ref, self.state_ref, self.grid_ref)
        self.state.down.add(name)
        self._write(w.HOST_LEFT, host)
        return True

    def _host_comes(self, name: str) -> bool:
        host = self.host_number[name]
        if self.desk.host_up[host]:
            return False
        host_joined(self.problem_ref, self.state_ref, host, self.grid.now[0])
        self.state.down.discard(name)
        self._write(w.HOST_JOINED, host)
        return True

    def _link_change(self, change: Change, traces: tuple[int, int]) -> None:
        links = self.stage.links.get(change.name, ())
        self._room_for_log()
        for link in links:
            if change.what == "link-down":
                link_left(self.problem_ref, self.state_ref, link)
                settle(self.problem_ref, self.state_ref, self.grid_ref)
                self._write(w.LINK_LEFT, link)
            elif change.what == "link-up":
                link_joined(self.problem_ref, self.state_ref, link)
                self._write(w.LINK_JOINED, link)
            if change.what != "link-down" and traces[0] >= 0:
                behaviour = change.behaviour
                assert isinstance(behaviour, LinkTrace)
                link_speed_changes(self.problem_ref, self.state_ref, self.grid_ref, link, *traces)
                self.estimates.change(self.state.time, "link", link, behaviour)
                self._write(w.CHANGED, -1, link)
        site = next((s for s in self.platform.sites if s.name == change.name), None)
        if site is not None and (site.bandwidth is None or not site.hosts) and self.platform.pairs is None:
            self._storage_change(change, site)

    def _storage_change(self, change: Change, site: Site) -> None:
        """A site's common storage goes with its link if none of its hosts is there, and comes back with it."""
        place = self.place_number[site.name]
        if change.what == "link-down" and all(host.name in self.state.down for host in site.hosts):
            if storage_left(self.problem_ref, self.state_ref, place):
                settle(self.problem_ref, self.state_ref, self.grid_ref)
                self._write(w.STORAGE_LEFT, place)
        elif change.what == "link-up" and storage_joined(self.problem_ref, self.state_ref, place):
            self._write(w.STORAGE_JOINED, place)

    def _room_for_log(self) -> None:
        need = int(self.desk.count[d.MOVES]) + len(self.desk.core_task) + 64
        while int(self.grid.log_len[0]) + need >= len(self.grid.log_time):
            self._lengthen_log()

    def _lengthen_log(self) -> None:
        self.grid = w.with_longer_log(self.grid)
        self.grid_ref = grid_ref(self.grid)

    def _happenings(self) -> list[Event]:
        """What the log has had since the scheduler was asked, as events; only for those who want everything."""
        grid = self.grid
        first, self.read = self.read, int(grid.log_len[0])
        ended = first + np.flatnonzero(grid.log_kind[first : self.read] == w.TASK_ENDED)
        tasks, hosts_of = grid.log_a[ended], grid.log_b[ended]
        if len(ended):
            took = grid.log_time[ended] - self.desk.run_start[tasks]
            self.estimates.note(self.state.time, tasks, hosts_of, took)
        if not _wake_of(self.scheduler).every:
            return []
        names, hosts = self.graph.task_names, self.platform.hosts
        places, items = self.platform.network.place_names, self.graph.item_names
        events: list[Event] = []
        for k in range(first, self.read):
            kind, a, b, c = (int(x[k]) for x in (grid.log_kind, grid.log_a, grid.log_b, grid.log_c))
            at = float(grid.log_time[k])
            if kind == w.TASK_ENDED:
                events.append(TaskFinished(at, names[a], hosts[b].name, float(self.desk.run_start[a])))
            elif kind == w.MOVE_ENDED:
                events.append(DataMoved(at, items[a], places[b], places[c], at, float(grid.size[a])))
        return events

    def _unstick(self) -> bool:
        """Nothing can happen: ask the scheduler about tasks that nobody has, and loosen queues; whether that helps."""
        waiting = int(self.desk.count[d.WAITING])
        if waiting:
            self._ask([])
        fewer = int(self.desk.count[d.WAITING]) < waiting
        return fewer or self._next_time() < math.inf or unblock(self.problem_ref, self.state_ref)

    def _stuck(self) -> HeadraceError:
        left = int((self.desk.done == 0).sum())
        missing = f"{left} of {self.graph.n_tasks} tasks not done"
        if left == 0:
            missing = (
                f"{self.results - int(self.desk.count[d.DELIVERED])} of {self.results} results not delivered"
            )
        return NoPlan(
            f"after {self.state.time:g} s nothing more can happen, with {missing}",
            where=f"{self.graph.name} on {self.platform.name}",
            hint="every host may be gone, a host or link down or at a stand for good, or a site's storage too small",
        )

    def outcome(self, seconds: float) -> SimulatedRun:
        grid, desk = self.grid, self.desk
        length = int(grid.log_len[0])
        kinds = grid.log_kind[:length]
        moved = grid.log_a[:length][kinds == w.MOVE_ENDED]
        last = grid.log_time[:length][(kinds == w.TASK_ENDED) | (kinds == w.MOVE_ENDED)]
        return SimulatedRun(
            graph=self.graph,
            platform=self.platform,
            scheduler=self.scheduler.name,
            makespan=float(last.max()) if len(last) else 0.0,
            log_time=grid.log_time[:length].copy(),
            log_kind=kinds.copy(),
            log_a=grid.log_a[:length].copy(),
            log_b=grid.log_b[:length].copy(),
            log_c=grid.log_c[:length].copy(),
            seconds=seconds,
            deciding=self.deciding,
            asked=self.asked,
            plans=int(getattr(self.scheduler, "plans", self.asked)),
            redone=int(desk.count[d.REDONE]),
            stolen=int(desk.count[d.STOLEN]),
            copied=int(desk.count[d.COPIED]),
            replicas=int(desk.count[d.REPLICAS]),
            bytes_moved=float(grid.size[moved].sum()),
        )


def _wake_of(scheduler: Scheduler) -> WakeConditions:
    """When it wants to be asked; one that does not say wants to hear of everything."""
    wake: WakeConditions = getattr(
        scheduler, "wake", ON_GRID_CHANGES if isinstance(scheduler, Follow) else EVERY_EVENT
    )
    return wake


def _ready_limit(wake: WakeConditions) -> int:
    if wake.every:
        return -1
    return wake.ready if wake.ready > 0 else np.iinfo(np.int64).max
