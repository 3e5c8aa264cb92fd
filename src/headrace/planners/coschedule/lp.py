"""The linear program for the bound and the first plan: shares of jobs on hosts, flows of files on paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.model.graph import Floats, Ints
from headrace.planners.coschedule.disks import disk_seconds
from headrace.planners.coschedule.inflows import InflowRows, Inflows, shared_sets
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.list_scheduler import ANY, Decisions, ListScheduler
from headrace.planners.coschedule.queues import Queue, find_queues, seen_moments
from headrace.planners.coschedule.relaxation import (
    Entries,
    arc_loads,
    busy_windows,
    file_entries,
    path_bound,
    quick_bound,
    weighted_bound,
)

MOST_SHARES = 400_000
"""Groups of jobs times hosts above which jobs are grouped more coarsely; the bound stays valid."""
_FINEST = 1 << 12


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A solution of the linear program."""

    makespan: float
    """Estimated by the linear program; not a bound if idle times were assumed."""
    share: Floats
    """[jobs, hosts] the share of each job on each host."""
    flow: dict[tuple[bool, int, int], dict[int, float]]
    """Share of the bytes on each path, by (whether they are inputs, set of sources or destinations, place)."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of similar jobs, each with a representative."""

    of_job: Ints
    """-1 for jobs that are not considered."""
    count: Ints
    seconds: Floats
    """[groups, hosts] mean seconds times cores."""
    alike: bool
    """Whether the jobs of each group are identical in all relevant respects."""


class Relaxer:
    """The linear program of an instance, solved repeatedly with idle times learned from schedules.

    O(groups * hosts + paths) variables; later solutions start from the previous one.
    """

    def __init__(self, instance: Instance, jobs: Ints | None = None) -> None:
        """`jobs` restricts the program to these jobs, in which case there is no bound; None: all."""
        self.instance = instance
        self._jobs = np.arange(instance.n, dtype=np.int32) if jobs is None else jobs
        self.head, self.tail = busy_windows(instance)
        self.single = path_bound(instance)
        self.bound = quick_bound(instance) if len(self._jobs) == instance.n else self.single
        self.price: Floats = np.zeros(len(self.head))
        """Prices of hosts, links and disks in the latest solution."""
        self._groups = groups = _grouped(instance, self._jobs)
        self._rows = rows = Rows()
        hosts, links = len(instance.host_place), instance.problem.platform.network.n_links
        work = float(instance.seconds[self._jobs].min(axis=1).sum())
        self._scale = max(self.single, work / max(1, int(instance.host_cores.sum())), 1e-12)
        self._group, self._host = np.nonzero(np.isfinite(groups.seconds))
        self._top = rows.columns(1)
        self._share = rows.columns(len(self._group)) + np.arange(len(self._group))
        for count in groups.count.tolist():
            rows.row(count, count)
        rows.put(self._group, self._share, np.ones(len(self._group)))
        count = hosts + links + len(instance.storage)
        self._resource = np.array([rows.row(-np.inf, 0.0) for _ in range(count)])
        rows.put(self._resource, np.full(count, self._top), -np.ones(count))
        load = groups.seconds[self._group, self._host] / instance.host_cores[self._host] / self._scale
        rows.put(self._resource[self._host], self._share, load)
        self._add_disks()
        self._late = [
            (queue, moment) for queue in self._queues() for moment in queue.thresholds if moment <= self.bound
        ]
        self._late_rows = np.array([self._add_late(queue, moment) for queue, moment in self._late], np.int64)
        self._flows: dict[tuple[bool, int, int], tuple[list[int], int]] = {}
        self.inflows: Inflows | None = None
        """Prices of bytes that enter places in the latest solution."""
        self._inflow_rows: InflowRows | None = None
        if instance.exclusive_links:
            for entries in file_entries(instance):
                self._add_flows(entries)
            if groups.alike and len(self._jobs) == instance.n:
                self._add_inflows()

    def _add_disks(self) -> None:
        """Each disk holds at most its size at any time: the byte-seconds of the jobs on its hosts."""
        instance, groups = self.instance, self._groups
        seconds = disk_seconds(instance)[self._jobs]
        if not seconds.any():
            return
        mean = np.zeros(groups.seconds.shape)
        np.add.at(mean, groups.of_job[self._jobs], seconds)
        load = (mean / groups.count[:, None])[self._group, self._host] / self._scale
        used = np.flatnonzero(load > 0)
        row = self._resource[-len(instance.storage) :][instance.site[instance.host_place[self._host[used]]]]
        self._rows.put(row, self._share[used], load[used])

    @property
    def has_queues(self) -> bool:
        """Whether there are unavoidable links."""
        return bool(self._late)

    def learned(
        self, scheduler: ListScheduler, decisions: Decisions, makespan: float, by_queues: bool
    ) -> Floats:
        """Values learned from the latest schedule: idle times of hosts and links, then thresholds of queues.

        With `queues`, links with queues keep their proven idle times, because the queues are more precise; otherwise
        the queues keep their proven thresholds.
        """
        if not by_queues:
            return np.concatenate((scheduler.idle(decisions.order), [moment for _, moment in self._late]))
        idle = scheduler.idle(decisions.order)
        hosts = len(self.instance.host_place)
        queues = [
            queue for k, (queue, _) in enumerate(self._late) if k == 0 or self._late[k - 1][0] is not queue
        ]
        for queue in queues:
            idle[hosts + queue.link] = 0.0
        seen = [
            seen_moments(queue, decisions.host, scheduler.uses(queue.link, queue.into), makespan)
            for queue in queues
        ]
        return np.concatenate((idle, *seen))

    def solve_with_unused(self, share: Floats) -> Relaxation:
        """Solve the relaxation as if this share of each host, link and disk could not be used."""
        return self.solve(np.concatenate((share * self.bound, [moment for _, moment in self._late])))

    def solve(self, learned: Floats | None = None) -> Relaxation:
        """Solve the relaxation with values learned from schedules; the bound uses only proven values."""
        certain = len(self._resource)
        idle = None if learned is None else learned[:certain]
        for k, row in enumerate(self._late_rows.tolist()):
            moment = self._late[k][1] if learned is None else float(learned[certain + k])
            self._rows.upper[row] = -moment / self._scale
        known = self.head + self.tail
        known = np.where(known <= self.bound, known, 0.0)
        window = known if idle is None else np.maximum(known, idle)
        for row, seconds in zip(self._resource.tolist(), window.tolist(), strict=True):
            self._rows.upper[row] = -seconds / self._scale
        values, duals = self._rows.solve(self._top)
        price = np.maximum(0.0, -duals[self._resource])
        self.price = price
        self.inflows = None if self._inflow_rows is None else self._inflow_rows.prices(duals)
        if len(self._jobs) == self.instance.n:
            late = [
                (float(max(0.0, -dual)), moment, queue.loads(moment))
                for (queue, moment), dual in zip(self._late, duals[self._late_rows].tolist(), strict=True)
                if dual < 0
            ]
            least = weighted_bound(self.instance, price, self.head, self.tail, late, self.bound, self.inflows)
            self.bound = max(self.bound, least)
        share = np.zeros(self._groups.seconds.shape)
        share[self._group, self._host] = (
            np.maximum(0.0, values[self._share]) / self._groups.count[self._group]
        )
        parts = {
            key: _parts(values[first : first + len(paths)], paths)
            for key, (paths, first) in self._flows.items()
        }
        shares = np.zeros(self.instance.seconds.shape)
        shares[self._jobs] = share[self._groups.of_job[self._jobs]]
        return Relaxation(float(values[self._top]) * self._scale, shares, parts)

    def _queues(self) -> list[Queue]:
        """Queues are used only if the jobs of each group are identical, so that loads per group equal loads per job."""
        alike = self._groups.alike and len(self._jobs) == self.instance.n
        return find_queues(self.instance) if alike else []

    def _add_late(self, queue: Queue, moment: float) -> int:
        """Add the constraint that load which cannot arrive before a time comes after it."""
        row = self._rows.row(-np.inf, -moment / self._scale)
        first = np.zeros(len(self._groups.count), np.int64)
        first[self._groups.of_job[self._jobs][::-1]] = self._jobs[::-1]
        load = queue.loads(moment)[first[self._group], self._host]
        used = np.flatnonzero(load > 0)
        self._rows.put(np.full(len(used), row), self._share[used], load[used] / self._scale)
        self._rows.put(np.array([row]), np.array([self._top]), -np.ones(1))
        return row

    @property
    def size(self) -> int:
        """Variables."""
        return self._rows.n_columns

    def _add_inflows(self) -> None:
        """Each place receives shared files whole."""
        instance, network = self.instance, self.instance.paths
        inflows = InflowRows(instance, self._rows, self._groups, self._scale)
        if not inflows.worthwhile:
            return
        unit = float(file_entries(instance)[0].size.mean()) or 1.0
        entering: dict[int, list[tuple[int, float]]] = {}
        for (into, _, _), (paths, first) in self._flows.items():
            for k, path in enumerate(paths if into else ()):
                for arc in network.arcs_of(path):
                    entering.setdefault(int(network.arcs.head[arc]), []).append((first + k, unit))
        place = instance.host_place[self._host]
        columns = {p: (self._group[place == p], self._share[place == p]) for p in np.unique(place).tolist()}
        inflows.add(columns, entering, self._loads_of_arcs())
        self._inflow_rows = inflows

    def _loads_of_arcs(self) -> list[list[tuple[int, float]]]:
        """For each arc, the rows of its links and the scaled seconds per byte there."""
        instance = self.instance
        link_row = self._resource[len(instance.host_place) : -len(instance.storage)]
        uses: list[list[tuple[int, float]]] = [[] for _ in range(len(instance.paths.arcs.tail))]
        for a, at, s in zip(*(values.tolist() for values in arc_loads(instance)), strict=True):
            uses[a].append((int(link_row[at]), s / self._scale))
        return uses

    def _add_flows(self, entries: Entries) -> None:
        """For each class of files and place, add flows over paths for what the jobs there need; they load links."""
        instance, rows, groups, network = self.instance, self._rows, self._groups, self.instance.paths
        if not len(entries.job):
            return
        unit = float(entries.size.mean()) or 1.0
        uses = self._loads_of_arcs()
        place = instance.host_place[self._host]
        for ends in np.unique(entries.ends).tolist():
            mine = (entries.ends == ends) & (groups.of_job[entries.job] >= 0)
            total = np.bincount(groups.of_job[entries.job[mine]], entries.part[mine], len(groups.count))
            need = total / groups.count / unit
            for p in np.unique(instance.host_place).tolist():
                paths = list(network.of(ends, p) if entries.into else network.of(p, ends))
                here = (place == p) & (need[self._group] > 0)
                if not here.any() or not paths or not network.arcs_of(paths[0]):
                    continue
                row = rows.row(0.0, 0.0)
                rows.put(np.full(int(here.sum()), row), self._share[here], -need[self._group[here]])
                first = rows.columns(len(paths))
                self._flows[(entries.into, ends, p)] = (paths, first)
                for k, path in enumerate(paths):
                    loads = [use for a in network.arcs_of(path) for use in uses[a]]
                    rows.put(
                        np.array([row, *(r for r, _ in loads)]),
                        np.full(1 + len(loads), first + k),
                        np.array([1.0, *(amount * unit for _, amount in loads)]),
                    )


def _parts(values: Floats, paths: list[int]) -> dict[int, float]:
    total = float(values.sum())
    return {
        path: float(v) / total
        for path, v in zip(paths, values, strict=True)
        if total > 0 and v > 1e-9 * total
    }


class Rows:
    """A linear program built from arrays: minimises one column, all columns non-negative."""

    def __init__(self) -> None:
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.n_columns = 0
        self._entries: list[tuple[Any, Any, Any]] = []
        self._model: Any = None
        self._solver: Any = None

    def columns(self, count: int) -> int:
        first = self.n_columns
        self.n_columns += count
        return first

    def row(self, lower: float, upper: float) -> int:
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.lower) - 1

    def put(self, row: Any, column: Any, value: Any) -> None:
        self._entries.append((row, column, value))

    def solve(self, target: int) -> tuple[Floats, Floats]:
        """Values of columns and duals of rows; zeros if the solver gives up.

        Later calls update only the upper limits of rows.
        """
        from ortools.math_opt.python import mathopt

        if self._solver is None:
            self._model = mathopt.Model.from_model_proto(self._proto(target))
            self._solver = mathopt.IncrementalSolver(self._model, mathopt.SolverType.GLOP)
        else:
            for number, limit in enumerate(self.upper):
                constraint = self._model.get_linear_constraint(number)
                if constraint.upper_bound != limit:
                    constraint.upper_bound = limit
        result = self._solver.solve()
        values, duals = np.zeros(self.n_columns), np.zeros(len(self.lower))
        if result.solutions and result.solutions[0].primal_solution is not None:
            for variable, v in result.solutions[0].primal_solution.variable_values.items():
                values[variable.id] = v
        if result.solutions and result.solutions[0].dual_solution is not None:
            for constraint, v in result.solutions[0].dual_solution.dual_values.items():
                duals[constraint.id] = v
        return values, duals

    def _proto(self, target: int) -> Any:
        from ortools.math_opt import model_pb2

        row, column, value = (np.concatenate([e[k] for e in self._entries]) for k in range(3))
        key = row.astype(np.int64) * self.n_columns + column
        key, inverse = np.unique(key, return_inverse=True)
        proto = model_pb2.ModelProto()
        proto.variables.ids.extend(range(self.n_columns))
        proto.variables.lower_bounds.extend([0.0] * self.n_columns)
        proto.variables.upper_bounds.extend([np.inf] * self.n_columns)
        proto.variables.integers.extend([False] * self.n_columns)
        proto.linear_constraints.ids.extend(range(len(self.lower)))
        proto.linear_constraints.lower_bounds.extend(self.lower)
        proto.linear_constraints.upper_bounds.extend(self.upper)
        proto.linear_constraint_matrix.row_ids.extend((key // self.n_columns).tolist())
        proto.linear_constraint_matrix.column_ids.extend((key % self.n_columns).tolist())
        proto.linear_constraint_matrix.coefficients.extend(np.bincount(inverse, value).tolist())
        proto.objective.linear_coefficients.ids.append(target)
        proto.objective.linear_coefficients.values.append(1.0)
        return proto


def _grouped(instance: Instance, jobs: Ints) -> Groups:
    """Group jobs with the same run times and files; if that gives too many groups, jobs that are roughly the same."""
    graph = instance.problem.graph
    seconds = instance.seconds * graph.cores[:, None]
    columns = [np.where(np.isfinite(seconds), seconds, -1.0)]
    for entries in file_entries(instance):
        for s in np.unique(entries.ends).tolist():
            mine = entries.ends == s
            columns.append(np.bincount(entries.job[mine], entries.part[mine], instance.n)[:, None])
    table = np.concatenate(columns, axis=1)[jobs]
    seconds = seconds[jobs]
    grain = _FINEST
    apart = np.concatenate((table, shared_sets(instance)[jobs][:, None]), axis=1)
    keys, of_job = np.unique(apart, axis=0, return_inverse=True)
    while len(keys) * seconds.shape[1] > MOST_SHARES and grain > 1:
        top = np.maximum(table.max(axis=0), 1e-300)
        grain //= 2
        keys, of_job = np.unique(np.ceil(table / top * grain), axis=0, return_inverse=True)
    of_job = of_job.reshape(-1)
    count = np.bincount(of_job)
    group = np.full(instance.n, -1, np.int32)
    group[jobs] = of_job
    mean = np.full((len(count), seconds.shape[1]), np.inf)
    for h in range(seconds.shape[1]):
        total = np.bincount(of_job, np.where(np.isfinite(seconds[:, h]), seconds[:, h], np.inf))
        mean[:, h] = total / count
    return Groups(group, count.astype(np.int32), mean, grain == _FINEST)


def rounded(instance: Instance, relaxation: Relaxation, order: Ints) -> Decisions:
    """Round a relaxation: each job goes to the host with its largest share, identical jobs in proportion; files alike.

    Jobs are processed in the given order: O(jobs * hosts + files * paths).
    """
    host = np.zeros(instance.n, np.int32)
    owed = np.zeros(len(instance.host_place))
    share = np.where(instance.can_run, relaxation.share + 1e-12, -1.0)
    for j in order.tolist():
        wish = share[j]
        sure = int(np.argmax(wish))
        if wish[sure] > 0.999:
            host[j] = sure
            continue
        owed += np.maximum(wish, 0.0)
        host[j] = int(np.argmax(np.where(wish > 1e-9, owed, -np.inf)))
        owed[host[j]] -= 1.0
    input_path = _paths_in_proportion(
        instance, relaxation, instance.read_ptr, instance.reads, instance.source, host, order, True
    )
    output_path = _paths_in_proportion(
        instance, relaxation, instance.write_ptr, instance.writes, instance.destination, host, order, False
    )
    return Decisions(order, host, input_path, output_path)


def _paths_in_proportion(
    instance: Instance,
    relaxation: Relaxation,
    ptr: Ints,
    items: Ints,
    ends: Ints,
    host: Ints,
    order: Ints,
    into: bool,
) -> Ints:
    """Choose the path of each file so that paths carry bytes in the proportions of the relaxation."""
    chosen = np.full(len(items), ANY, np.int32)
    sent: dict[tuple[bool, int, int], dict[int, float]] = {}
    for j in order.tolist():
        p = int(instance.host_place[host[j]])
        for e in range(int(ptr[j]), int(ptr[j + 1])):
            key = (into, int(ends[items[e]]), p)
            parts = relaxation.flow.get(key)
            if not parts:
                continue
            so_far = sent.setdefault(key, dict.fromkeys(parts, 0.0))
            path = min(parts, key=lambda q: (so_far[q] / parts[q], q))
            so_far[path] += float(instance.size[items[e]])
            first = instance.paths.of(key[1], p) if into else instance.paths.of(p, key[1])
            chosen[e] = path - first.start
    return chosen
