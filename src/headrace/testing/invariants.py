"""Independent checks of simulated runs: invariants of every log, whatever happened to the grid.

They use the log, the graph, the platform and the script of changes, but none of the simulator's arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from headrace.model.behaviour import Change
from headrace.model.check_case import ABSOLUTE, EXCESS, RELATIVE, ROUNDING, Violation
from headrace.model.graph import OUTSIDE, Graph
from headrace.simulator.events import grid_state as w
from headrace.simulator.events.run import SimulatedRun
from headrace.testing.copies import Copies
from headrace.testing.fair_truth import Flow, finish_flows
from headrace.testing.grid_truth import GridTruth, Transition

_SCRIPTED = {
    w.HOST_LEFT: "host-down",
    w.HOST_JOINED: "host-up",
    w.LINK_LEFT: "link-down",
    w.LINK_JOINED: "link-up",
    w.STORAGE_LEFT: "storage-down",
    w.STORAGE_JOINED: "storage-up",
}
MOST = 50
"""Maximum number of violations stored; one bug breaks many rules."""


def judge(
    run: SimulatedRun,
    changes: Sequence[Change] = (),
    *,
    real: Graph | None = None,
    duplicates: bool = False,
) -> list[Violation]:
    """List violations in a run, at most 50: O(log * links of a route), with fair links
    O(transfers * concurrent transfers).

    `real` is the graph with true work and sizes, `duplicates` whether copies of running tasks may be started.
    Rules: `script` (the grid did not change as scripted), `core`, `release`, `host`, `twice`, `input`,
    `duration`, `stopped`, `source`, `route`, `link`, `transfer`, `cut`, `storage`, `lost`, `result`, `order`.

    >>> from headrace.model.graph import make_graph
    >>> from headrace.model.platform import Platform
    >>> from headrace.online.workqueue import Workqueue
    >>> from headrace.simulator.events.backend import simulate_scheduler
    >>> graph = make_graph(work=[1, 2], size=[8.0], producer=[0], read_ptr=[0, 0, 1], reads=[0])
    >>> judge(simulate_scheduler(graph, Platform.pairwise([1.0, 2.0], 8.0), Workqueue()))
    []
    """
    return _Judge(run, changes, real or run.graph, duplicates).verdict()


def _close(a: float, b: float, duration: float) -> bool:
    """Whether two times are equal, up to rounding."""
    return a == b or abs(a - b) <= ABSOLUTE + ROUNDING * max(abs(a), abs(b)) + RELATIVE * duration


class _Judge:
    def __init__(
        self,
        run: SimulatedRun,
        changes: Sequence[Change],
        real: Graph,
        duplicates: bool,
    ) -> None:
        self.run, self.graph, self.network = run, run.graph, run.platform.network
        self.work, self.size, self.speed_class = real.work, real.size, real.speed_class
        self.duplicates = duplicates
        self.truth = GridTruth(real, run.platform, changes)
        self.found: list[Violation] = []
        self.link_up = [True] * self.network.n_links
        self.copies = Copies(run.graph, run.platform, self.size)
        self.on_core: dict[tuple[int, int], tuple[int, float]] = {}
        self.executions: dict[int, dict[int, float]] = {}
        """Hosts on which each task currently runs, with start times."""
        self.ended = np.zeros(self.graph.n_tasks, np.int64)
        self.ended_at: dict[int, float] = {}
        self.owed: set[int] = set()
        """Finished tasks that must run again: their outputs were lost and are needed."""
        self.moving: dict[tuple[int, int, int], float] = {}
        self.on_link: dict[int, tuple[tuple[int, int, int], float]] = {}
        self.flows: list[tuple[Flow, str]] = []
        self.flow_of: dict[tuple[int, int, int], Flow] = {}
        self.now = 0.0
        self.host_up = [True] * len(run.platform.hosts)
        self.seen = 0

    def verdict(self) -> list[Violation]:
        for kind, time, a, b, c in self._rows():
            if time < self.now:
                self._say("order", f"line at {time} after one at {self.now}")
            self.now = time
            if kind in _SCRIPTED or kind == w.CHANGED:
                self._changes(kind, a, b)
            elif kind <= w.TASK_STOPPED:
                (self._starts, self._ends, self._stops)[kind - w.TASK_STARTED](a, b, c)
            elif kind <= w.MOVE_CUT:
                (self._sends, self._arrives, self._breaks)[kind - w.MOVE_STARTED](a, b, c)
            elif kind == w.COPY_DROPPED:
                self._drops(a, b)
            if kind in (w.TASK_STARTED, w.MOVE_STARTED):  # nothing else takes up storage
                self._look_at_storage()
        late = self._due()
        if late is not None and late.time < self.now and not _close(late.time, self.now, 0.0):
            self._say("script", f"{late} had not happened by the end at {self.now}")
        self._look_at_end()
        self._look_at_flows()
        return self.found[:MOST]

    def _rows(self) -> Iterator[tuple[int, float, int, int, int]]:
        run = self.run
        columns = (run.log_kind, run.log_time, run.log_subject, run.log_from, run.log_to)
        return zip(*(column.tolist() for column in columns), strict=True)

    def _say(self, rule: str, message: str) -> None:
        self.found.append(Violation(rule, f"at {self.now!r}: {message}"))

    # Scripted changes.

    def _due(self) -> Transition | None:
        return self.truth.transitions[self.seen] if self.seen < len(self.truth.transitions) else None

    def _changes(self, kind: int, a: int, b: int) -> None:
        what = _SCRIPTED.get(kind, "host-trace" if a >= 0 else "link-trace")
        number = b if what == "link-trace" else a
        due = self._due()
        self.seen += 1
        if due is None or (due.what, due.number) != (what, number) or not _close(due.time, self.now, 0.0):
            self._say("script", f"{what} {number} instead of {due}")
        if what == "host-down":
            self._host_goes(number)
        elif what == "host-up":
            self.host_up[number] = True
            self.copies.place_back(int(self.network.host_place[number]))
        elif what == "link-down":
            self.link_up[number] = False
            for item, source, target in self.moving:
                if number in self.network.route(source, target):
                    self._say(
                        "link", f"item {item} is still sent from {source} to {target} over link {number}"
                    )
        elif what == "link-up":
            self.link_up[number] = True
        elif what == "storage-down":
            self._look_at_moves(number)
            self.copies.place_gone(number, wiped=False)
            self._owe()
        elif what == "storage-up":
            self.copies.place_back(number)

    def _host_goes(self, host: int) -> None:
        self.host_up[host] = False
        for (other, core), (task, _) in self.on_core.items():
            if other == host:
                self._say("host", f"task {task} still runs on core {core} of host {host}, which is gone")
        self._place_goes(host)
        self._owe()

    def _place_goes(self, host: int) -> None:
        place = int(self.network.host_place[host])
        if self.truth.own_place(host) and place != self.network.origin:
            self._look_at_moves(place)
            self.copies.place_gone(place, wiped=self.seen > self.truth.joins_later)

    def _look_at_moves(self, place: int) -> None:
        for item, source, target in self.moving:
            if place in (source, target):
                self._say(
                    "source", f"item {item} is still sent from {source} to {target}, though {place} is gone"
                )

    def _owe(self) -> None:
        """Which tasks must run again: producers of lost data that is needed, transitively."""
        lost = {i for i in range(self.graph.n_items) if self.copies.is_lost(i)}
        stack = [i for i in sorted(lost) if self._needed(i)]
        while stack:
            maker = int(self.graph.producer[stack.pop()])
            if maker == OUTSIDE or not self.ended[maker] or maker in self.owed:
                continue
            self.owed.add(maker)
            stack.extend(i for i in self.graph.reads_of(maker).tolist() if i in lost)

    def _needed(self, item: int) -> bool:
        if self.copies.must_be_kept(item):
            return True
        readers = self.graph.readers_of(item).tolist()
        return any((not self.ended[r] or r in self.owed) and not self.executions.get(r) for r in readers)

    # Tasks.

    def _require_needs(self, task: int, host: int, name: str) -> None:
        """The host has the memory and resources that its tasks need together."""
        machine, needs = self.run.platform.hosts[host], self.graph.needs
        others = {t for (h, _), (t, _) in self.on_core.items() if h == host}
        for k, what in enumerate(needs.names):
            has = machine.memory if what == "memory" else machine.resources.get(what, 0)
            taken = sum(float(needs.amount[t, k]) for t in others)
            if needs.amount[task, k] > 0 and taken + float(needs.amount[task, k]) > has:
                self._say(
                    "needs", f"{name}: {taken} of {has} {what} is taken, it needs {needs.amount[task, k]}"
                )

    def _starts(self, task: int, host: int, core: int) -> None:
        name = f"task {task} on host {host}, core {core}"
        if not self.host_up[host]:
            self._say("host", f"{name}: the host is not present")
        if not 0 <= core < self.run.platform.hosts[host].cores:
            self._say("core", f"{name}: there is no such core")
        if (host, core) in self.on_core:
            self._say("core", f"{name}: the core runs task {self.on_core[host, core][0]}")
        taken = sum(int(self.graph.cores[t]) for (h, _), (t, _) in self.on_core.items() if h == host)
        if taken + int(self.graph.cores[task]) > self.run.platform.hosts[host].cores:
            self._say("core", f"{name}: {taken} cores are taken, it needs {self.graph.cores[task]}")
        self._require_needs(task, host, name)
        if self.now < self.graph.release[task] - ABSOLUTE:
            self._say("release", f"{name}: not before {float(self.graph.release[task])!r}")
        running = self.executions.setdefault(task, {})
        if running and (not self.duplicates or host in running or len(running) > 1):
            self._say("twice", f"{name}: it already runs on {sorted(running)}")
        if self.ended[task] and task not in self.owed:
            self._say("twice", f"{name}: it has finished before, and no output that is needed was lost")
        place = int(self.network.host_place[host])
        for item in self.graph.reads_of(task).tolist():
            maker = int(self.graph.producer[item])
            if self.graph.size[item] == 0 and maker != OUTSIDE and not self.ended[maker]:
                self._say("input", f"{name}: task {maker} has not ended")
            elif not self.copies.at(item, place):
                self._say("input", f"{name}: item {item} is not at place {place}")
        running[host] = self.now
        self.on_core[host, core] = (task, self.now)
        self.copies.reserve(place, float(self.size[self.graph.writes_of(task)].sum()))

    def _leave(self, task: int, host: int, core: int) -> float:
        """Remove a task from its core; returns when it started."""
        found = self.on_core.pop((host, core), None)
        if found is None or found[0] != task:
            self._say("core", f"task {task} leaves core {core} of host {host}, which it was not on")
            return math.nan
        del self.executions[task][host]
        place = int(self.network.host_place[host])
        self.copies.reserve(place, -float(self.size[self.graph.writes_of(task)].sum()))
        return found[1]

    def _ends(self, task: int, host: int, core: int) -> None:
        start = self._leave(task, host, core)
        if self.ended[task] and task not in self.owed:
            self._say("twice", f"task {task} ends again on host {host}")
        self.ended[task] += 1
        self.ended_at[task] = self.now
        self.owed.discard(task)
        for item in self.graph.writes_of(task).tolist():
            self.copies.add(item, int(self.network.host_place[host]))
        if math.isnan(start):
            return
        speed = self.truth.speed[int(self.speed_class[task])][host]
        amount = float(self.work[task])
        if not self._amount_right(speed.done, start, amount):
            done = speed.done(start, self.now)
            self._say("duration", f"task {task} on host {host} from {start!r}: {done!r} of {amount!r}")

    def _amount_right(self, done: Callable[[float, float], float], start: float, amount: float) -> bool:
        """Whether it ends exactly when `amount` is done."""
        slack = ABSOLUTE + ROUNDING * self.now + RELATIVE * (self.now - start)
        early = done(start, self.now - slack) <= amount
        late = done(start, self.now + slack) >= amount
        before = self.now - 2.0 * slack
        stood = before > start and not done(before, self.now) > 0.0
        return early and late and not stood

    def _stops(self, task: int, host: int, core: int) -> None:
        self._leave(task, host, core)
        leaves = self._scripted_now("host-down", (host,))
        if not leaves and self.ended_at.get(task) != self.now:
            self._say("stopped", f"task {task} on host {host}, though the host stays and no copy of it ended")

    def _scripted_now(self, what: str, numbers: Sequence[int]) -> bool:
        return any(
            t.what == what and t.number in numbers and _close(t.time, self.now, 0.0)
            for t in self.truth.transitions
        )

    # Transfers.

    def _sends(self, item: int, source: int, target: int) -> None:
        name = f"item {item} from {source} to {target}"
        if not self.copies.at(item, source):
            self._say("source", f"{name}: it is not there")
        if not self.copies.up[target]:
            self._say("source", f"{name}: the target is not there")
        if self.copies.at(item, target):
            self._say("twice", f"{name}: it is already there")
        if any(i == item and q == target for i, _, q in self.moving):
            self._say("twice", f"{name}: it is already in transfer")
        route = self.network.route(source, target)
        if source == target or not self.network.bandwidth(source, target) > 0:
            self._say("route", f"{name}: there is none")
        for link in route:
            if not self.link_up[link]:
                self._say("link", f"{name}: link {link} is down")
            if self.run.platform.contention == "fifo" and self._is_busy(link):
                self._say("link", f"{name}: link {link} is busy")
            self.on_link[link] = (item, source, target), self.now
        self.moving[item, source, target] = self.now
        self.copies.reserve(target, float(self.size[item]))
        if self.run.platform.contention == "fair" and route:
            begin = self.now + self.truth.latency(source, target, self.now)
            flow = Flow(begin, float(self.size[item]), tuple(route))
            self.flow_of[item, source, target] = flow

    def _is_busy(self, link: int) -> bool:
        """Whether the latest transfer over a link is under way, and the link has not carried all its bytes.

        With routing by links it is busy as long as the transfer is under way.
        """
        if link not in self.on_link:
            return False
        move, start = self.on_link[link]
        if self.moving.get(move) != start:
            return False
        slack = ABSOLUTE + ROUNDING * self.now + RELATIVE * (self.now - start)
        carried = self.truth.bandwidth[link].done(start, self.now + slack)
        return self.run.platform.routing == "links" or carried < float(self.size[move[0]])

    def _off_the_links(self, item: int, source: int, target: int) -> float:
        start = self.moving.pop((item, source, target), None)
        if start is None:
            self._say("source", f"item {item} was not in transfer from {source} to {target}")
            return math.nan
        self.copies.reserve(target, -float(self.size[item]))
        return start

    def _arrives(self, item: int, source: int, target: int) -> None:
        start = self._off_the_links(item, source, target)
        if not self.copies.at(item, source):
            self._say("source", f"item {item} arrives from {source}, where it is not")
        self.copies.add(item, target)
        if math.isnan(start):
            return
        if self.run.platform.contention == "fair" and self.network.route(source, target):
            self._flow_over(item, source, target, arrived=True)
            return
        begin = start + self.truth.latency(source, target, start)
        size = float(self.size[item])
        if not self.network.route(source, target) or size == 0:
            right = _close(begin, self.now, self.now - start)
        else:
            right = self._amount_right(lambda a, b: self.truth.sent(source, target, a, b), begin, size)
        if not right:
            self._say("transfer", f"item {item} from {source} to {target}: sent from {start!r}")

    def _breaks(self, item: int, source: int, target: int) -> None:
        start = self._off_the_links(item, source, target)
        hosts = [h for h, p in enumerate(self.network.host_place.tolist()) if p in (source, target)]
        if not (
            self._scripted_now("host-down", hosts)
            or self._scripted_now("storage-down", (source, target))
            or self._scripted_now("link-down", self.network.route(source, target))
        ):
            self._say("cut", f"item {item} from {source} to {target}, though its route and both ends remain")
        if not math.isnan(start) and (item, source, target) in self.flow_of:
            self._flow_over(item, source, target, arrived=False)

    def _flow_over(self, item: int, source: int, target: int, *, arrived: bool) -> None:
        flow = self.flow_of.pop((item, source, target))
        flow.over = self.now
        flow.arrived = arrived
        self.flows.append((flow, f"item {item} from {source} to {target}"))

    def _look_at_flows(self) -> None:
        """Fair links: whether each transfer ends when the integral of its rate equals its size."""
        for (item, source, target), flow in self.flow_of.items():  # still in progress at the end
            flow.over = self.now
            self.flows.append((flow, f"item {item} from {source} to {target}"))
        finish_flows([flow for flow, _ in self.flows], self.truth.bandwidth)
        for flow, name in self.flows:
            self.now = flow.over
            took = flow.over - flow.begin
            early = flow.end < flow.over and not _close(flow.end, flow.over, abs(took))
            if early or (flow.arrived and not _close(flow.end, flow.over, abs(took))):
                self._say("transfer", f"{name} must be over at {flow.end!r}, begun at {flow.begin!r}")

    # Storage and the end.

    def _drops(self, item: int, place: int) -> None:
        if not self.copies.at(item, place):
            self._say("storage", f"item {item} is dropped at {place}, where it is not")
        if any(i == item and p == place for i, p, _ in self.moving):
            self._say("storage", f"item {item} is dropped at {place} while it is sent from there")
        self.copies.drop(item, place)
        if self.copies.is_lost(item) and self._needed(item):
            self._say("storage", f"item {item} is dropped at {place}, was nowhere else and is needed")

    def _look_at_storage(self) -> None:
        """Copies count until their last use there; afterwards they may stay if they must not be dropped."""
        for site, used in self.copies.over_full(self.network.storage, EXCESS):
            room = float(self.network.storage[site])
            counted = used - self.copies.unused(site, self._in_use)
            if counted > room * (1.0 + EXCESS) + EXCESS:
                self._say("storage", f"site {site} holds {counted!r} of {room!r} bytes")

    def _in_use(self, item: int, place: int) -> bool:
        """Whether a task or transfer uses a copy now, it is a delivered result, or it is needed and nowhere else."""
        if any(i == item and source == place for i, source, _ in self.moving):
            return True
        running = [t for (h, _), (t, _) in self.on_core.items() if self.network.host_place[h] == place]
        if any(item in self.graph.reads_of(task) for task in running):
            return True
        if self.copies.is_delivered(item, place):
            return True
        return self._needed(item) and not self.copies.elsewhere(item, place)

    def _look_at_end(self) -> None:
        for task in np.flatnonzero(self.ended == 0).tolist():
            self._say("lost", f"task {task} never ended")
        for host, core in self.on_core:
            self._say("lost", f"core {core} of host {host} still runs {self.on_core[host, core][0]}")
        for item in self.copies.undelivered():
            self._say("result", f"item {item} is not where results must be")
        last = max(self.ended_at.values(), default=0.0)
        if self.run.makespan < last:
            self._say("order", f"makespan {self.run.makespan} before the last end at {last}")
