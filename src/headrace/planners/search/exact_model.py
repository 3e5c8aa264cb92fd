"""The whole problem as a constraint program: tasks on cores, and with limited links also transfers on links.

Times are rounded down to whole units. Of a valid plan, the rounded times satisfy every row, so what the solver proves
is a bound on the makespan of all plans. Its solutions decide hosts, orders, sources and relays; their exact times
follow from a replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from headrace.arrays.problem import problem_arrays
from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE, Floats, Ints
from headrace.model.network import EVERYWHERE, Network
from headrace.model.plan import Plan
from headrace.planners.bounding.work_table import work_table
from headrace.planners.placed_bounds import returned_items
from headrace.planners.search.annealing_search import between_places

UNITS = 1_000_000
"""Units of time in the makespan of the known plan."""
_DOWN = 1.0 - 1e-12


class Pool(NamedTuple):
    """Hosts of equal speeds at one place: their cores are interchangeable."""

    hosts: tuple[int, ...]
    place: int
    cores: int


class Send(NamedTuple):
    """A transfer that a solution may contain."""

    item: int
    source: int
    target: int
    chosen: Any
    start: Any


class Decisions(NamedTuple):
    """A solution: the pool and the start of each task, and transfers with their start; starts in units."""

    pool: list[int]
    start: list[int]
    sends: list[tuple[int, int, int, int]]
    """Item, source, target, start; empty without limited links."""


def pools_of(problem: Problem) -> list[Pool]:
    """Groups of hosts at one place that take the same time for each task."""
    network, rates = problem.platform.network, problem.platform.rates(problem.graph)
    groups: dict[tuple[int, bytes], list[int]] = {}
    for host, place in enumerate(network.host_place.tolist()):
        groups.setdefault((place, rates[:, host].tobytes()), []).append(host)
    hosts = problem.platform.hosts
    return [Pool(tuple(g), place, sum(hosts[h].cores for h in g)) for (place, _), g in groups.items()]


class Journeys(NamedTuple):
    """The quickest way of an item from where it is to every place, if no link is busy."""

    seconds: Floats
    """[places] inf where there is none."""
    before: Ints
    """[places] the place that sends it there; -1 where it is already."""


def journeys(network: Network, sources: Iterable[int], size: float) -> Journeys:
    """Dijkstra's algorithm over places: O(places^2)."""
    n = network.n_places
    found = Journeys(np.full(n, np.inf), np.full(n, -1, np.int32))
    found.seconds[list(sources)] = 0.0
    left = set(range(n))
    while left:
        nearest = min(left, key=lambda place: (found.seconds[place], place))
        left.remove(nearest)
        for place in left:
            arrival = found.seconds[nearest] + network.seconds(nearest, place, size)
            if arrival < found.seconds[place]:
                found.seconds[place], found.before[place] = arrival, nearest
    return found


def holders_of(problem: Problem, item: int) -> set[int]:
    """The places that hold an item from outside at the beginning; empty if all do."""
    origin, held = problem.platform.network.origin, problem.holders.get(item, ())
    return set(held) if held else {origin} if origin != EVERYWHERE else set()


def links_held(network: Network, source: int, target: int, size: float) -> Iterator[tuple[int, float]]:
    """The links of a transfer's route, and for how long from its start on it keeps each of them busy under `fifo`."""
    for link in network.route(source, target):
        yield link, network.busy_seconds(source, target, size, link)


class ExactModel:
    """The constraint program of a problem, with a known plan as hint and limit.

    Args:
        problem: Without constraints; tasks need one core each; links are unlimited or carry one transfer at a time.
        plan: A plan of the problem; solutions are no longer than it.
        bound: A known lower bound.
    """

    def __init__(self, problem: Problem, plan: Plan, bound: float) -> None:
        from ortools.sat.python import cp_model

        self.problem, self.plan = problem, plan
        self.graph, self.network = problem.graph, problem.platform.network
        self.model: Any = cp_model.CpModel()
        self.unit = plan.makespan / UNITS
        self.pools = pools_of(problem)
        self.between = between_places(problem_arrays(problem))
        self.makespan = self.model.new_int_var(self.units(bound), UNITS, "makespan")
        self.sends: list[Send] = []
        self.model.add_hint(self.makespan, UNITS)
        self._tasks()
        if problem.platform.contention == "none":
            self._delays()
        else:
            self._links()
        self.model.minimize(self.makespan)

    def units(self, seconds: float) -> int:
        """Whole units, rounded down."""
        return int(np.floor(seconds / self.unit * _DOWN))

    def _time(self, hint: float) -> Any:
        variable = self.model.new_int_var(0, UNITS, "")
        self.model.add_hint(variable, min(UNITS, self.units(hint)))
        return variable

    def _choice(self, hint: bool) -> Any:
        variable = self.model.new_bool_var("")
        self.model.add_hint(variable, hint)
        return variable

    def _tasks(self) -> None:
        """Each task is an interval in one pool, within the least times before and after it there."""
        table, most = work_table(self.problem), self.plan.makespan * (1.0 + 1e-9)
        of_host = {host: k for k, pool in enumerate(self.pools) for host in pool.hosts}
        classes = [table.class_of_host[pool.hosts[0]] for pool in self.pools]
        model = self.model
        busy: list[list[Any]] = [[] for _ in self.pools]
        self.on: list[dict[int, Any]] = []
        self.run: list[dict[int, int]] = []
        """Units that each task takes in each pool."""
        self.start: list[Any] = []
        self.end: list[Any] = []
        for t in range(self.graph.n_tasks):
            own = of_host[int(self.plan.host[t])]
            fits = [k for k, c in enumerate(classes) if table.chain[t, c] <= most or k == own]
            on = {k: self._choice(k == own) for k in fits}
            run, before, after = (
                {k: self.units(float(value[t, classes[k]])) for k in fits}
                for value in (table.seconds, table.before, table.after)
            )
            start = self._time(float(self.plan.start[t]))
            end = start + sum(run[k] * here for k, here in on.items())
            model.add_exactly_one(on.values())
            model.add(start >= sum(before[k] * here for k, here in on.items()))
            model.add(end + sum(after[k] * here for k, here in on.items()) <= self.makespan)
            for k, here in on.items():
                busy[k].append(model.new_optional_fixed_size_interval_var(start, run[k], here, ""))
            self.on.append(on)
            self.run.append(run)
            self.start.append(start)
            self.end.append(end)
        for pool, intervals in zip(self.pools, busy, strict=True):
            if pool.cores == 1:
                model.add_no_overlap(intervals)
            elif len(intervals) > pool.cores:
                model.add_cumulative(intervals, [1] * len(intervals), pool.cores)

    def _edges(self) -> dict[tuple[int, int], float]:
        """The bytes of the largest item between each pair of maker and reader."""
        largest: dict[tuple[int, int], float] = {}
        graph = self.graph
        for task in range(graph.n_tasks):
            for item in graph.reads_of(task).tolist():
                maker = int(graph.producer[item])
                if maker != OUTSIDE:
                    largest[maker, task] = max(largest.get((maker, task), 0.0), float(graph.size[item]))
        return largest

    def _delays(self) -> None:
        """Without limited links, data takes the least time of its journey."""
        graph, origin = self.graph, self.network.origin
        for (maker, task), size in self._edges().items():
            self.model.add(self.start[task] >= self.end[maker])
            if size > 0:
                self._delay(maker, task, self._ways(size))
        returned = returned_items(self.problem)
        for item in np.flatnonzero(graph.size > 0).tolist():
            maker, size = int(graph.producer[item]), float(graph.size[item])
            if maker == OUTSIDE and (initial := holders_of(self.problem, item)):
                arrival = self._units_at_pools(self._ways(size)[sorted(initial)].min(axis=0))
                for task in graph.readers_of(item).tolist():
                    self.model.add(self.start[task] >= _weighted(arrival, self.on[task]))
            elif maker != OUTSIDE and returned[item]:
                late = _weighted(self._units_at_pools(self._ways(size)[:, origin]), self.on[maker])
                self.model.add(self.end[maker] + late <= self.makespan)

    def _ways(self, size: float) -> Floats:
        """[places, places] least seconds of a journey, through other places where that is quicker: O(places^3)."""
        latency, per_byte = self.between
        way: Floats = latency + size * per_byte
        for k in range(len(way)):
            np.minimum(way, way[:, k : k + 1] + way[k : k + 1, :], out=way)
        return way

    def _units_at_pools(self, seconds: Floats) -> list[int]:
        """Of seconds by place; what never happens would take twice the known makespan."""
        return [
            self.units(float(seconds[pool.place])) if np.isfinite(seconds[pool.place]) else 2 * UNITS
            for pool in self.pools
        ]

    def _delay(self, maker: int, task: int, way: Floats) -> None:
        """A reader starts later than its maker ends, by a time that depends on where both are."""
        for a, here in self.on[maker].items():
            for b, there in self.on[task].items():
                seconds = float(way[self.pools[a].place, self.pools[b].place])
                if not np.isfinite(seconds):
                    self.model.add_bool_or([here.negated(), there.negated()])
                elif self.units(seconds) > 0:
                    later = self.model.add(self.start[task] >= self.end[maker] + self.units(seconds))
                    later.only_enforce_if([here, there])

    def _links(self) -> None:
        """With limited links, an item arrives at most once at each place, in an interval on every link of its route."""
        busy: dict[int, list[Any]] = {}
        for maker, task in self._edges():
            self.model.add(self.start[task] >= self.end[maker])
        for item in range(self.graph.n_items):
            if self.graph.size[item] > 0:
                _Item(self, item, busy).build()
        for intervals in busy.values():
            self.model.add_no_overlap(intervals)

    def decisions(self, solver: Any) -> Decisions:
        """What a solution of the program decides."""
        pool = [next(k for k, here in on.items() if solver.boolean_value(here)) for on in self.on]
        sends = [
            (send.item, send.source, send.target, int(solver.value(send.start)))
            for send in self.sends
            if solver.boolean_value(send.chosen)
        ]
        return Decisions(pool, [int(solver.value(start)) for start in self.start], sends)


def _weighted(value: list[int], on: dict[int, Any]) -> Any:
    return sum(value[k] * here for k, here in on.items())


class _Item:
    """Where an item is, since when, and the transfers that bring it there."""

    def __init__(self, whole: ExactModel, item: int, busy: dict[int, list[Any]]) -> None:
        self.whole, self.item, self.busy = whole, item, busy
        graph, plan = whole.graph, whole.plan
        self.size, self.maker = float(graph.size[item]), int(graph.producer[item])
        moves = np.flatnonzero(plan.move_item == item)
        self.planned = {int(plan.move_target[m]): m for m in moves[::-1].tolist()}
        self.readers = graph.readers_of(item).tolist()
        self.returns = bool(returned_items(whole.problem)[item])
        self.initial = holders_of(whole.problem, item)

    def build(self) -> None:
        whole, network = self.whole, self.whole.network
        if self.maker == OUTSIDE and not self.initial:
            return  # it is everywhere
        if not self.readers and not self.returns:
            return
        places = range(network.n_places)
        self.since = {q: self._since(q) for q in places}
        self.has: dict[int, Any] = {}
        sends = {q: self._into(q) for q in places}
        for q in places:
            self.has[q] = self._made(q) + sum(send.chosen for send in sends[q])
            whole.model.add(self.has[q] <= 1)
        for q in places:
            for send in sends[q]:
                whole.model.add(self.has[send.source] >= 1).only_enforce_if(send.chosen)
            whole.sends.extend(sends[q])
        self._needed()

    def _since(self, place: int) -> Any:
        """From when on the item is at a place, if it is ever."""
        whole = self.whole
        if self.maker == OUTSIDE and place in self.initial:
            return 0
        made = 0.0 if self.maker == OUTSIDE else float(whole.plan.finish[self.maker])
        move = self.planned.get(place)
        since = whole._time(made if move is None else float(whole.plan.move_finish[move]))
        if self.maker != OUTSIDE:
            whole.model.add(since >= whole.end[self.maker])
        return since

    def _made(self, place: int) -> Any:
        """Whether the item is made or held at a place, as a number or a sum of choices."""
        if self.maker == OUTSIDE:
            return int(place in self.initial)
        on = self.whole.on[self.maker]
        return sum(here for k, here in on.items() if self.whole.pools[k].place == place)

    def _into(self, target: int) -> list[Send]:
        """The transfers into a place, of which at most one is chosen; they have one start."""
        whole, network = self.whole, self.whole.network
        if self.maker == OUTSIDE and target in self.initial:
            return []
        move = self.planned.get(target)
        planned = -1 if move is None else int(whole.plan.move_source[move])
        start = whole._time(0.0 if move is None else float(whole.plan.move_start[move]))
        sends = []
        for source in range(network.n_places):
            seconds = network.seconds(source, target, self.size)
            if source == target or not np.isfinite(seconds):
                continue
            chosen = whole._choice(source == planned)
            whole.model.add(start >= self.since[source]).only_enforce_if(chosen)
            whole.model.add(self.since[target] >= start + whole.units(seconds)).only_enforce_if(chosen)
            for link, held in links_held(network, source, target, self.size):
                interval = whole.model.new_optional_fixed_size_interval_var(
                    start, whole.units(held), chosen, ""
                )
                self.busy.setdefault(link, []).append(interval)
            sends.append(Send(self.item, source, target, chosen, start))
        return sends

    def _needed(self) -> None:
        """Readers start when the item is at their place; a result gets to the origin."""
        whole, model = self.whole, self.whole.model
        for task in self.readers:
            for k, here in whole.on[task].items():
                place = whole.pools[k].place
                model.add(self.has[place] >= 1).only_enforce_if(here)
                model.add(whole.start[task] >= self.since[place]).only_enforce_if(here)
        if self.returns:
            origin = whole.network.origin
            model.add(self.has[origin] >= 1)
            model.add(whole.makespan >= self.since[origin])
