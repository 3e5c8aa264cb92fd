"""The variables of a schedule in a CP-SAT model: hosts and times, and the relations made of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from headrace.rules.attributes import LABEL, RELATIONS
from headrace.rules.cpsat_terms import UNKNOWN, CannotExpress, Cell, Literal, Term, Terms, constant, negated
from headrace.rules.relations import Relations
from headrace.rules.semi_active import ScheduleSpace
from headrace.rules.tree import RelationName, Type

_MOST_UNITS = 10**6
"""The largest number of time units in a second that still makes all times exact."""
_INEXACT_HORIZON = 10**7
"""Units in the longest schedule, where times are rounded."""


@dataclass(eq=False)
class ScheduleModel:
    """Hosts and times of all tasks as variables.

    Times are whole units of `1 / units` seconds. `exact` says whether every duration and delay is a whole number of
    units; otherwise they are rounded to the nearest.
    """

    space: ScheduleSpace
    terms: Terms
    units: int
    exact: bool
    horizon: int
    on: list[dict[int, Literal]]
    """For each task, by host."""
    start: list[Any]
    end: list[Any]
    run: list[dict[int, int]]
    """For each task, by host, in units."""
    relations: Relations
    rank: list[Any] = field(default_factory=list)
    cells: dict[tuple[str, int, bool], Cell] = field(default_factory=dict)

    def together(self, a: int, b: int) -> Literal:
        """Whether two tasks share a host."""
        return self.terms.any_of(
            self.terms.all_of((self.on[a][h], self.on[b][h])) for h in self.on[a] if h in self.on[b]
        )

    # The relations.

    def length(self, relation: RelationName) -> int:
        return self.relations.length(relation)

    def cell(self, relation: RelationName, attribute: str, row: int, type: Type) -> Cell:
        """The value of an attribute; made once."""
        key = (attribute, row, type is Type.TEXT)
        if key not in self.cells:
            fixed = attribute.startswith(LABEL) or not RELATIONS[relation][attribute].scheduled
            self.cells[key] = (
                self._fixed(relation, attribute, row, type) if fixed else self._moving(attribute, row)
            )
        return self.cells[key]

    def _fixed(self, relation: RelationName, attribute: str, row: int, type: Type) -> Cell:
        vector = self.relations.column(relation, attribute, type)
        if not vector.known[row]:
            return UNKNOWN
        return constant(vector.word(row) if vector.words is not None else float(vector.values[row]))

    def _moving(self, attribute: str, row: int) -> Cell:
        if attribute == "non-local-comm-time":
            return self._transfer(row)
        if attribute.startswith("proc-"):
            return self._of_host(attribute, row)
        hosts = self.space.platform.hosts
        if attribute == "task-scheduled":
            return constant(1.0)
        if attribute == "task-start-time":
            return Cell(term=Term(self.start[row], self.units, 0, self.horizon))
        if attribute == "task-finish-time":
            return Cell(term=Term(self.end[row], self.units, 0, self.horizon))
        if attribute == "task-assigned-proc-id":
            return self._by_host(row, {h: float(h) for h in self.on[row]})
        if attribute == "task-assigned-proc-name":
            return self._by_host(row, {h: hosts[h].name for h in self.on[row]})
        if attribute == "task-site":
            site = [s.name for s in self.space.platform.sites for _ in s.hosts]
            return self._by_host(row, {h: site[h] for h in self.on[row]})
        if attribute == "task-exec-time":
            return self._by_host(row, {h: float(self.space.run[row, h]) for h in self.on[row]})
        return self._by_host(row, {h: self._usage(attribute, row, h) for h in self.on[row]})

    def _usage(self, attribute: str, task: int, host: int) -> float:
        """Cost or energy of a task on a host."""
        column = "proc-price" if attribute.endswith("cost") else "proc-watts"
        rate = float(self.relations.column("proc", column).values[host])
        rate = rate / 3600.0 if column == "proc-price" else rate
        return float(self.space.run[task, host]) * float(self.space.graph.cores[task]) * rate

    def _by_host(self, task: int, value: dict[int, Any]) -> Cell:
        """A value that follows from the host of a task: one literal for each different value."""
        groups: dict[Any, list[Literal]] = {}
        for h, literal in self.on[task].items():
            groups.setdefault(value[h], []).append(literal)
        return Cell(choice=tuple((self._one_of(ls, len(groups)), v) for v, ls in groups.items()))

    def _one_of(self, literals: list[Literal], groups: int) -> Literal:
        return True if groups == 1 else self.terms.any_of(literals)

    def _transfer(self, row: int) -> Cell:
        """The transfer time of a row of `dep`, by the hosts of its two tasks."""
        a, b = (int(self.relations.column("dep", c).values[row]) for c in ("dep-from", "dep-to"))
        graph = self.space.graph
        item = int(graph.reads[graph.producer[graph.reads] >= 0][row])
        groups: dict[float, list[Literal]] = {}
        for h, x in self.on[a].items():
            for k, y in self.on[b].items():
                seconds = float(self.space.seconds[item][h, k])
                if np.isfinite(seconds):
                    groups.setdefault(seconds, []).append(self.terms.all_of((x, y)))
        return Cell(choice=tuple((self._one_of(ls, len(groups)), v) for v, ls in sorted(groups.items())))

    def _of_host(self, attribute: str, host: int) -> Cell:
        terms = self.terms
        here = [(t, on[host]) for t, on in enumerate(self.on) if host in on]
        if attribute in ("proc-task-count", "proc-task-list"):
            count = terms.total([terms.only_if(terms.number(1.0), literal) for _, literal in here])
            some = terms.any_of(literal for _, literal in here)
            return Cell(term=count, known=some if attribute == "proc-task-list" else True)
        if attribute == "proc-finish-time":
            ends = [(literal, Term(self.end[t], self.units, 0, self.horizon)) for t, literal in here]
            last, known = terms.largest([*ends, (True, Term(0, self.units, 0, 0))])
            assert known is True
            return Cell(term=last)
        if attribute == "proc-total-running-time":
            run = [terms.only_if(terms.number(Fraction(self.run[t][host], self.units)), x) for t, x in here]
            return Cell(term=terms.total(run))
        used = [terms.only_if(terms.number(self._usage(attribute, t, host)), x) for t, x in here]
        return Cell(term=terms.total(used))


def time_units(space: ScheduleSpace) -> tuple[int, bool]:
    """Units in a second that make all times whole, and True; or some that make them nearly so, and False."""
    values = np.concatenate(
        [
            space.run.ravel(),
            space.outside.ravel(),
            space.free_at,
            *(s.ravel() for row in space.inputs for _, s in row),
        ]
    )
    deadline = space.graph.deadline
    values = np.unique(np.concatenate((values[np.isfinite(values)], deadline[np.isfinite(deadline)])))
    units = 1
    for value in values.tolist():
        near = Fraction(value).limit_denominator(_MOST_UNITS)
        if abs(float(near) - value) > 1e-12 * (1.0 + abs(value)):
            units = _MOST_UNITS + 1
        else:
            units = math.lcm(units, near.denominator)
        if units > _MOST_UNITS:
            return max(1, int(_INEXACT_HORIZON / max(space.horizon, 1e-9))), False
    return units, True


def schedule_model(
    model: Any, space: ScheduleSpace, *, timed: bool = True, relaxed: bool = False, late: bool = False
) -> ScheduleModel:
    """The variables of a schedule, with its constraints.

    Args:
        model: The solver's model, which is extended.
        space: The program on its platform.
        timed: False: only the hosts of tasks are constrained, their times mean nothing.
        relaxed: Hosts do not limit how many tasks they run at once. Every schedule satisfies this model, and it stays
            small for large programs.
        late: Tasks may start later than they could.
    """
    terms = Terms(model)
    units, exact = time_units(space)
    graph, n = space.graph, space.graph.n_tasks

    def whole(seconds: float) -> int:
        return round(seconds * units)

    horizon = whole(space.horizon) + n * 2 + 1
    on: list[dict[int, Literal]] = []
    for task in range(n):
        hosts = np.flatnonzero(np.isfinite(space.run[task])).tolist()
        on.append({h: True if len(hosts) == 1 else terms.new() for h in hosts})
        if len(hosts) > 1:
            model.add_exactly_one(on[-1].values())
    run = [{h: whole(float(space.run[t, h])) for h in on[t]} for t in range(n)]
    start = [model.new_int_var(0, horizon, f"start {t}") for t in range(n)]
    end = [model.new_int_var(0, horizon, f"end {t}") for t in range(n)]
    made = ScheduleModel(
        space, terms, units, exact, horizon, on, start, end, run, Relations(graph, space.platform)
    )
    if not timed:
        return made
    for task in range(n):
        model.add(end[task] == start[task] + sum(run[task][h] * x for h, x in on[task].items()))
        if math.isfinite(graph.deadline[task]):
            model.add(end[task] <= whole(float(graph.deadline[task])))
    arrivals = [_arrivals(made, task, whole, relaxed) for task in range(n)]
    if not relaxed:
        _cores(made)
        if not late:
            _never_late(made, arrivals)
    return made


def _arrivals(made: ScheduleModel, task: int, whole: Any, relaxed: bool) -> list[Any]:
    """When a task may start: by its release and inputs from outside, and by each predecessor."""
    space, model, start = made.space, made.terms.model, made.start[task]
    first = {
        h: max(whole(float(space.outside[task, h])), whole(float(space.free_at[h]))) for h in made.on[task]
    }
    outside = sum(first[h] * x for h, x in made.on[task].items())
    model.add(start >= outside)
    arrivals = [outside]
    for maker, seconds in space.inputs[task]:
        if relaxed and len(made.on[maker]) * len(made.on[task]) > 64:
            least = seconds[np.ix_(list(made.on[maker]), list(made.on[task]))].min()
            model.add(start >= made.end[maker] + (whole(float(least)) if np.isfinite(least) else 0))
            continue
        delays = {
            (h, k): whole(float(seconds[h, k])) if np.isfinite(seconds[h, k]) else None
            for h in made.on[maker]
            for k in made.on[task]
        }
        known = [d for d in delays.values() if d is not None]
        delay = made.terms.variable(min(known, default=0), max(known, default=0))
        for (h, k), d in delays.items():
            pair = [literal for literal in (made.on[maker][h], made.on[task][k]) if literal is not True]
            if d is None:
                model.add_bool_or([negated(p) for p in pair])
            elif pair:
                model.add(delay == d).only_enforce_if(pair)
            else:
                model.add(delay == d)
        model.add(start >= made.end[maker] + delay)
        arrivals.append(made.end[maker] + delay)
    return arrivals


def _cores(made: ScheduleModel) -> None:
    """A host runs at most as many tasks at once as it has cores."""
    model, space = made.terms.model, made.space
    for host, cores in enumerate(space.cores.tolist()):
        here = [t for t in range(space.graph.n_tasks) if host in made.on[t]]
        if cores > 1 and any(made.run[t][host] == 0 for t in here):
            raise CannotExpress("tasks of no run time on a host of several cores are not modelled")
        intervals = [
            model.new_optional_fixed_size_interval_var(made.start[t], made.run[t][host], made.on[t][host], "")
            for t in here
        ]
        if cores == 1:
            model.add_no_overlap(intervals)
        else:
            model.add_cumulative(intervals, [int(space.graph.cores[t]) for t in here], cores)


def _never_late(made: ScheduleModel, arrivals: list[list[Any]]) -> None:
    """Every task starts when an input arrives, or when a core that it waited for becomes free.

    A task that waits for a core has `tight` predecessors on its host: one ends when it starts, and those placed before
    it that are not finished earlier leave too few cores. Ranks forbid that tasks explain each other in a circle.
    """
    model, terms, n = made.terms.model, made.terms, made.space.graph.n_tasks
    made.rank = [model.new_int_var(0, n, "") for _ in range(n)]
    for task in range(n):
        reasons = []
        for arrival in arrivals[task]:
            tight = terms.new()
            model.add(made.start[task] == arrival).only_enforce_if(tight)
            reasons.append(tight)
        busy: dict[tuple[int, int], Literal] = {}
        for other in range(n):
            if other == task or not (made.on[task].keys() & made.on[other].keys()):
                continue
            tight, together = terms.new(), made.together(task, other)
            busy[task, other] = held = terms.new()
            for literal in (held, tight):
                model.add(made.rank[other] < made.rank[task]).only_enforce_if(literal)
                model.add(made.start[other] <= made.start[task]).only_enforce_if(literal)
                model.add_bool_or([together, ~literal]) if together is not True else None
            model.add(made.end[other] >= made.start[task]).only_enforce_if(held)
            model.add(made.start[task] == made.end[other]).only_enforce_if(tight)
            reasons.append(tight)
        _require_full_hosts(made, task, busy, reasons[len(arrivals[task]) :])
        model.add_bool_or(reasons)


def _require_full_hosts(
    made: ScheduleModel, task: int, busy: dict[tuple[int, int], Literal], tight: list[Literal]
) -> None:
    """On hosts of several cores, a task waits only while too few of them are free."""
    model, cores = made.terms.model, made.space.cores.tolist()
    wanted = made.space.graph.cores.tolist()
    used = sum(wanted[other] * literal for (_, other), literal in busy.items())
    for host, x in made.on[task].items():
        if cores[host] == 1:
            continue
        for literal in tight:
            conditions = [literal] if x is True else [literal, x]
            model.add(used >= cores[host] - wanted[task] + 1).only_enforce_if(conditions)
