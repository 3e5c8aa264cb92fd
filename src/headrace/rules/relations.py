"""The three relations of a schedule as columns, made when they are first asked for.

A schedule may be partial: tasks without a host have the host number -1. A column takes O(rows) time and memory, texts
O(rows log rows); `task-path-length` takes O(tasks + reads), and means over pairs of hosts O(hosts) for hosts that are
alike within their sites.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from headrace.model.graph import Bools, Floats, Graph, Ints
from headrace.model.needs import MEMORY
from headrace.model.platform import Platform
from headrace.model.usage import HOUR, prices
from headrace.rules.attributes import LABEL, SCHEDULED
from headrace.rules.mean_costs import MeanTransfer, mean_run_seconds, mean_transfer, path_lengths
from headrace.rules.task_names import TaskNames, name_without_number
from headrace.rules.tree import RelationName, Type
from headrace.rules.vectors import Codes, Vector, numbers, texts


class Placed(Protocol):
    """Where and when tasks run: a `Plan`, or a partial schedule."""

    @property
    def host(self) -> Ints:
        """[tasks] -1: not placed."""

    @property
    def start(self) -> Floats: ...
    @property
    def finish(self) -> Floats: ...


class Relations:
    """Columns of `task`, `proc` and `dep` for one schedule.

    >>> from headrace.model.graph import make_graph
    >>> g = make_graph(work=[4.0], size=[], producer=[], read_ptr=[0, 0], reads=[])
    >>> nothing_placed = Relations(g, Platform.pairwise([2.0], bandwidth=1e6))
    >>> nothing_placed.column("task", "task-start-time").known.tolist()
    [False]
    """

    def __init__(self, graph: Graph, platform: Platform, schedule: Placed | None = None) -> None:
        self.graph, self.platform = graph, platform
        n = graph.n_tasks
        self.host: Ints = np.full(n, -1, np.int32) if schedule is None else schedule.host
        self.start: Floats = np.zeros(n) if schedule is None else schedule.start
        self.finish: Floats = np.zeros(n) if schedule is None else schedule.finish
        self.placed: Bools = self.host >= 0
        self._columns: dict[tuple[str, Type], Vector] = {}
        self._every: dict[RelationName, Codes] = {}
        self.conditions: dict[int, Any] = {}
        """What `joins` knows of conditions whatever the schedule, by their identity."""

    def with_schedule(self, schedule: Placed) -> Relations:
        """The relations of another schedule, with the columns and means that no schedule changes.

        >>> from headrace.model.graph import make_graph
        >>> g = make_graph(work=[4.0], size=[], producer=[], read_ptr=[0, 0], reads=[])
        >>> empty = Relations(g, Platform.pairwise([2.0], bandwidth=1e6))
        >>> work = empty.column("task", "task-work")
        >>> empty.with_schedule(empty).column("task", "task-work") is work
        True
        """
        other = Relations(self.graph, self.platform, schedule)
        other._columns = {key: column for key, column in self._columns.items() if key[0] not in SCHEDULED}
        shared = {name: self.__dict__[name] for name in _SHARED if name in self.__dict__}
        other.__dict__.update(shared)
        other.conditions, other._every = self.conditions, self._every
        return other

    def length(self, relation: RelationName) -> int:
        """Number of rows."""
        if relation == "dep":
            return len(self._dep_item)
        return self.graph.n_tasks if relation == "task" else len(self.platform.hosts)

    def every(self, relation: RelationName) -> Codes:
        """The numbers of all rows."""
        if relation not in self._every:
            self._every[relation] = np.arange(self.length(relation))
        return self._every[relation]

    def column(self, relation: RelationName, attribute: str, type: Type = Type.TEXT) -> Vector:
        """An attribute of every row; the type matters only for labels, which are texts or numbers as a rule needs."""
        key = (attribute, type) if attribute.startswith(LABEL) else (attribute, Type.TEXT)
        if key not in self._columns:
            if attribute.startswith(LABEL):
                self._columns[key] = self._label(attribute.removeprefix(LABEL), type)
            else:
                self._columns[key] = _COLUMNS[attribute](self)
        return self._columns[key]

    def name(self, relation: RelationName, row: int) -> str:
        """What a row is called in messages."""
        if relation == "dep":
            return self.graph.item_names[int(self._dep_item[row])]
        return self.graph.task_names[row] if relation == "task" else self.platform.hosts[row].name

    # What several columns share.

    @cached_property
    def complete(self) -> bool:
        return bool(self.placed.all())

    @cached_property
    def task_names(self) -> TaskNames:
        return TaskNames(self.graph.task_names)

    @cached_property
    def host_or_0(self) -> Ints:
        return np.where(self.placed, self.host, 0)

    @cached_property
    def run_seconds(self) -> Floats:
        """On the task's host; 0 where it has none."""
        return np.where(self.placed, self.finish - self.start, 0.0)

    @cached_property
    def mean_run_seconds(self) -> Floats:
        return mean_run_seconds(self.graph, self.platform)

    @cached_property
    def mean_transfer(self) -> MeanTransfer:
        return mean_transfer(self.platform)

    @cached_property
    def site_of_host(self) -> Vector:
        return texts([site.name for site in self.platform.sites for _ in site.hosts])

    @cached_property
    def task_cost(self) -> Floats:
        price, _ = prices(self.platform)
        return self.run_seconds * self.graph.cores * price[self.host_or_0] / HOUR

    @cached_property
    def task_energy(self) -> Floats:
        _, watts = prices(self.platform)
        return self.run_seconds * self.graph.cores * watts[self.host_or_0]

    @cached_property
    def task_count(self) -> Codes:
        return np.bincount(self.host[self.placed], minlength=len(self.platform.hosts))

    def per_host(self, values: Floats) -> Vector:
        """Sums over the tasks of each host."""
        weights = values[self.placed]
        return numbers(np.bincount(self.host[self.placed], weights, minlength=len(self.platform.hosts)))

    def of_placed(self, values: Floats) -> Vector:
        return numbers(values, self.placed)

    def of_host(self, column: Vector) -> Vector:
        """A column of hosts, for the host of each task."""
        chosen = column[self.host_or_0]
        return Vector(chosen.values, chosen.known & self.placed, chosen.words)

    def of_hosts(self, attribute: str) -> Vector:
        return numbers([getattr(host, attribute) for host in self.platform.hosts])

    def bytes_of_tasks(self, pointers: Ints, items: Ints) -> Vector:
        """Bytes of the items of each task; UNKNOWN if the size of one is."""
        n = self.graph.n_tasks
        task = np.repeat(np.arange(n), np.diff(pointers))
        total = np.bincount(task, self.graph.size[items], minlength=n)
        unknown = np.bincount(task, self.graph.unknown_size[items], minlength=n)
        return numbers(total, unknown == 0)

    @cached_property
    def _dep_item(self) -> Ints:
        """The item of each row of `dep`: by reader, then in the order in which it reads them."""
        reads = self.graph.reads
        return reads[self.graph.producer[reads] >= 0]

    @cached_property
    def _dep_reader(self) -> Ints:
        graph = self.graph
        reader = np.repeat(np.arange(graph.n_tasks, dtype=np.int32), np.diff(graph.read_ptr))
        return reader[graph.producer[graph.reads] >= 0]

    def dep_from(self) -> Ints:
        return self.graph.producer[self._dep_item]

    def dep_to(self) -> Ints:
        return self._dep_reader

    def dep_names(self) -> Vector:
        return texts([self.graph.item_names[item] for item in self._dep_item.tolist()])

    def dep_sizes(self) -> Vector:
        return numbers(self.graph.size[self._dep_item], ~self.graph.unknown_size[self._dep_item])

    def comm_seconds(self) -> Vector:
        """Transfer times between the hosts of the two tasks; the mean until both have one."""
        network = self.platform.network
        place = network.host_place[self.host_or_0]
        source, target = place[self.dep_from()], place[self.dep_to()]
        zone_a, zone_b = network.zone[source], network.zone[target]
        bandwidth = np.minimum(network.port[source], network.port[target])
        bandwidth = np.minimum(bandwidth, network.route_bandwidth[zone_a, zone_b])
        size = self.graph.size[self._dep_item]
        with np.errstate(divide="ignore", invalid="ignore"):
            seconds = network.route_latency[zone_a, zone_b] + size / bandwidth
        seconds = np.where(bandwidth > 0, seconds, np.inf)
        seconds[(source == target) | (size == 0)] = 0.0
        both = self.placed[self.dep_from()] & self.placed[self.dep_to()]
        return numbers(np.where(both, seconds, self.mean_transfer.seconds(size)))

    def host_finish(self) -> Vector:
        """The last finish on each host. Without a task: 0 in a complete schedule, UNKNOWN in a partial one."""
        last = np.zeros(len(self.platform.hosts))
        np.maximum.at(last, self.host[self.placed], self.finish[self.placed])
        return numbers(last, (self.task_count > 0) | self.complete)

    def _label(self, name: str, type: Type) -> Vector:
        """A label by its name, in which rules write hyphens for underscores."""
        n = self.graph.n_tasks
        found: list[str | float | None] = [None] * n
        for label, column in self.graph.labels.items():
            if label.replace("_", "-") == name:
                for task, value in zip(column.tasks.tolist(), column.values, strict=True):
                    found[task] = value
        if type is Type.TEXT:
            return texts([_as_text(value) for value in found])
        values = [_as_number(value) for value in found]
        return numbers([0.0 if v is None else v for v in values], [v is not None for v in values])


def _as_text(value: str | float | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _as_number(value: str | float | None) -> float | None:
    try:
        number = None if value is None else float(value)
    except ValueError:
        return None
    return None if number is None or not math.isfinite(number) else number


def _finite(values: Floats) -> Vector:
    known = np.isfinite(values)
    return numbers(np.where(known, values, 0.0), known)


def _kinds(relations: Relations) -> Vector:
    graph = relations.graph
    kinds = texts(list(graph.kinds))
    return kinds[graph.kind]


def _memory_needed(relations: Relations) -> Vector:
    needs = relations.graph.needs
    needed = np.zeros(relations.graph.n_tasks)
    if MEMORY in needs.names:
        needed = needs.amount[:, needs.names.index(MEMORY)]
    return numbers(needed, needed > 0)


_SHARED = ("task_names", "mean_run_seconds", "mean_transfer", "site_of_host", "_dep_item", "_dep_reader")

_COLUMNS: dict[str, Callable[[Relations], Vector]] = {
    "task-id": lambda r: numbers(np.arange(r.graph.n_tasks)),
    "task-name": lambda r: texts([name_without_number(name) for name in r.graph.task_names]),
    "task-label": lambda r: texts(list(r.graph.task_names)),
    "task-kind": _kinds,
    "task-level": lambda r: numbers(r.graph.level),
    "task-path-length": lambda r: numbers(path_lengths(r.graph, r.mean_run_seconds, r.mean_transfer)),
    "task-cores": lambda r: numbers(r.graph.cores),
    "task-memory": lambda r: _memory_needed(r),
    "task-work": lambda r: numbers(r.graph.work),
    "task-input-size": lambda r: r.bytes_of_tasks(r.graph.read_ptr, r.graph.reads),
    "task-output-size": lambda r: r.bytes_of_tasks(r.graph.write_ptr, r.graph.writes),
    "task-release": lambda r: numbers(r.graph.release),
    "task-deadline": lambda r: _finite(r.graph.deadline),
    "task-scheduled": lambda r: numbers(r.placed),
    "task-assigned-proc-id": lambda r: r.of_placed(r.host_or_0.astype(np.float64)),
    "task-assigned-proc-name": lambda r: r.of_host(r.column("proc", "proc-name")),
    "task-site": lambda r: r.of_host(r.site_of_host),
    "task-exec-time": lambda r: numbers(np.where(r.placed, r.run_seconds, r.mean_run_seconds)),
    "task-start-time": lambda r: r.of_placed(r.start),
    "task-finish-time": lambda r: r.of_placed(r.finish),
    "task-cost": lambda r: r.of_placed(r.task_cost),
    "task-energy": lambda r: r.of_placed(r.task_energy),
    "proc-id": lambda r: numbers(np.arange(len(r.platform.hosts))),
    "proc-name": lambda r: texts([host.name for host in r.platform.hosts]),
    "proc-site": lambda r: r.site_of_host,
    "proc-speed": lambda r: r.of_hosts("speed"),
    "proc-cores": lambda r: r.of_hosts("cores"),
    "proc-memory": lambda r: _finite(r.of_hosts("memory").values),
    "proc-utilization": lambda r: numbers(100.0 * r.of_hosts("load").values),
    "proc-price": lambda r: r.of_hosts("price"),
    "proc-watts": lambda r: r.of_hosts("watts"),
    "proc-total-running-time": lambda r: r.per_host(r.run_seconds),
    "proc-finish-time": Relations.host_finish,
    "proc-task-count": lambda r: numbers(r.task_count),
    "proc-task-list": lambda r: numbers(r.task_count, r.task_count > 0),
    "proc-cost": lambda r: r.per_host(r.task_cost),
    "proc-energy": lambda r: r.per_host(r.task_energy),
    "dep-from": lambda r: numbers(r.dep_from()),
    "dep-to": lambda r: numbers(r.dep_to()),
    "dep-name": Relations.dep_names,
    "dep-size": Relations.dep_sizes,
    "non-local-comm-time": Relations.comm_seconds,
}
