"""Requirements that cannot hold together: a smallest set of them, down to the tests that clash.

Requirements are switched on by assumptions in a solver's model. If they are infeasible together, the solver names some
that suffice, and a deletion filter leaves out one after the other for as long as the rest stays infeasible. What
remains is minimal: without any one of its members the others can be satisfied in the model.

Models are tried from the smallest: hosts alone, which finds wrong and full hosts; with times but without limits on
cores, which finds circular orders and deadlines below the longest path, also in large programs; then with cores; and,
if asked, without schedules that delay a task on purpose. An infeasible smaller model proves that the larger ones are
infeasible too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from headrace.rules.clash_text import describe, words_of_test
from headrace.rules.cpsat import requirement_tests
from headrace.rules.cpsat_schedule import ScheduleModel, schedule_model
from headrace.rules.cpsat_select import Env, Translator
from headrace.rules.cpsat_terms import CannotExpress
from headrace.rules.semi_active import ScheduleSpace
from headrace.rules.tree import Ordering, Relationship, Rule, RuleSet, Value
from headrace.rules.walk import all_columns

MOST_TASKS = 40
"""Larger programs are not modelled with cores."""


@dataclass(frozen=True, slots=True)
class Member:
    """A requirement of a clashing set."""

    rule: Rule
    rows: tuple[tuple[Env, ...], ...]
    """The rows of each of its tests that clash: by alias, the relation and row number."""
    words: tuple[str, ...]
    """These tests in words."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Requirements that cannot all hold."""

    members: tuple[Member, ...]
    """Empty: no schedule exists even without rules."""
    text: str
    minimal: bool
    """Leaving out any member makes the others feasible; False: time ran out before this was known."""
    ignored: tuple[str, ...] = ()
    """Rules that have no form in the model; the clash holds without them."""


class _Clause(NamedTuple):
    """One test of a rule as a clause of literals."""

    rule: int
    literals: list[Any]
    rows: tuple[Env, ...]


def find_clash(
    rules: RuleSet, space: ScheduleSpace, *, time: float = 10.0, never_late: bool = False
) -> Clash | None:
    """A smallest set of requirements that cannot hold together; None if none was found.

    None means that the requirements are feasible in the largest model tried, or that time ran out.

    Args:
        rules: Preferences do not matter.
        space: The program on its platform.
        time: Time limit in seconds.
        never_late: Tasks are never delayed on purpose, as in the search.

    >>> from headrace.model.graph import make_graph
    >>> from headrace.model.platform import Platform
    >>> from headrace.rules.parser import parse_rules
    >>> from headrace.rules.semi_active import schedule_space
    >>> g = make_graph(work=[2.0, 4.0], size=[], producer=[], read_ptr=[0, 0, 0], reads=[])
    >>> space = schedule_space(g, Platform.pairwise([1.0, 2.0], bandwidth=1e6))
    >>> rules = parse_rules('''
    ... soon: assert relationship requirement ((select task-finish-time from task) <= 3)
    ... slow: assert relationship requirement ((select task-assigned-proc-name from task) = "h0")
    ... free: assert relationship requirement ((select task-start-time from task) >= 0)''')
    >>> clash = find_clash(rules, space)
    >>> [(member.rule.name, len(member.rows)) for member in clash.members], clash.minimal
    ([('soon', 1), ('slow', 1)], True)
    """
    until = monotonic() + time
    stages = ["hosts", "relaxed"]
    if space.graph.n_tasks <= MOST_TASKS:
        stages += ["cores", *(["never late"] if never_late else [])]
    wanted = list(rules.requirements)
    for number, stage in enumerate(stages):
        problem = _Problem(wanted, space, stage, until)
        core = problem.infeasible(problem.switches, range(len(wanted)))
        if core is None:
            continue
        ignored = problem.ignored
        # A model of these rules alone is solved faster, and that many times.
        problem = _Problem([wanted[i] for i in core], space, stage, until)
        fewer = problem.core()
        core = core if fewer is None else [core[i] for i in fewer]
        minimal, best = problem.in_time, stage
        for larger in stages[number + 1 :] if _times_matter([wanted[i] for i in core], space) else ():
            # A larger model may need fewer of these rules.
            problem = _Problem([wanted[i] for i in core], space, larger, until)
            smaller = problem.core()
            if smaller is not None and len(smaller) < len(core):
                core, best = [core[i] for i in smaller], larger
            minimal = minimal and problem.in_time
        return _clash([wanted[i] for i in core], space, best, until, minimal, ignored)
    return None


_TIMES = ("task-start-time", "task-finish-time", "proc-finish-time")


def _times_matter(rules: Sequence[Rule], space: ScheduleSpace) -> bool:
    """Whether hosts that satisfy these rules may still be impossible: without deadlines and rules on times, tasks on
    any hosts can be scheduled."""
    return any(_timed(rule) for rule in rules) or bool(np.isfinite(space.graph.deadline).any())


def _timed(rule: Rule) -> bool:
    """Whether a rule speaks of times."""
    body = rule.body.function if isinstance(rule.body, Value) else rule.body
    whole = (
        body.condition
        if isinstance(body, Relationship)
        else body.sequence
        if isinstance(body, Ordering)
        else body
    )
    parts = [part for part in (whole, rule.low, rule.high) if part is not None]
    return any(column.attribute in _TIMES for part in parts for column in all_columns(part))


class _Problem:
    """A model in which each requirement can be switched on."""

    def __init__(self, rules: Sequence[Rule], space: ScheduleSpace, stage: str, until: float) -> None:
        from ortools.sat.python import cp_model

        self.cp = cp_model
        self.model = cp_model.CpModel()
        self.until = until
        self.in_time = True
        self.schedule = _modelled(self.model, space, stage)
        self.ignored: tuple[str, ...] = ()
        self.clauses = self._clauses(rules, stage)
        self.switches = [self.model.new_bool_var(rule.name) for rule in rules]
        for clause in self.clauses:
            if not any(literal is True for literal in clause.literals):
                self.model.add_bool_or([*clause.literals, ~self.switches[clause.rule]])

    def _clauses(self, rules: Sequence[Rule], stage: str) -> list[_Clause]:
        translator, made = Translator(self.schedule), []
        for number, rule in enumerate(rules):
            if stage == "hosts" and _timed(rule):
                continue
            try:
                made += [
                    _Clause(number, literals, rows) for literals, rows in requirement_tests(rule, translator)
                ]
            except CannotExpress:
                self.ignored = (*self.ignored, rule.name)
        return made

    def core(self) -> list[int] | None:
        """A minimal set of rules that are infeasible together; None if all are feasible, or time ran out."""
        return self.minimal(self.switches)

    def minimal(self, switches: Sequence[Any]) -> list[int] | None:
        """A minimal infeasible subset of these assumptions, by number."""
        core = self.infeasible(switches, range(len(switches)))
        if core is None:
            return None
        for number in list(core):
            if number not in core or len(core) == 1:
                continue
            smaller = self.infeasible(switches, [n for n in core if n != number])
            if smaller is not None:
                core = smaller
        if len(core) == 1 and self.infeasible(switches, []) is not None:
            return []
        return core

    def infeasible(self, switches: Sequence[Any], chosen: Sequence[int]) -> list[int] | None:
        """Some of the chosen assumptions that are infeasible together; None if all hold, or time runs out."""
        left = self.until - monotonic()
        if left <= 0:
            self.in_time = False
            return None
        self.model.clear_assumptions()
        self.model.add_assumptions([switches[n] for n in chosen])
        solver = self.cp.CpSolver()
        solver.parameters.max_time_in_seconds = left
        # Sufficient assumptions are only found by a single worker.
        solver.parameters.num_workers = 1
        # Presolving takes longer than solving these models, and each is solved many times.
        solver.parameters.cp_model_presolve = False
        solver.parameters.symmetry_level = 0
        solver.parameters.linearization_level = 0
        status = solver.solve(self.model)
        if status == self.cp.UNKNOWN:
            self.in_time = False
        if status != self.cp.INFEASIBLE:
            return None
        named = set(solver.sufficient_assumptions_for_infeasibility())
        return [n for n in chosen if switches[n].index in named]


def _modelled(model: Any, space: ScheduleSpace, stage: str) -> ScheduleModel:
    """The variables of a schedule; relaxed, with what hosts can do before the last task ends."""
    schedule = schedule_model(
        model, space, timed=stage != "hosts", relaxed=stage == "relaxed", late=stage != "never late"
    )
    if stage == "relaxed" and 0 < space.graph.n_tasks <= MOST_TASKS:
        last = model.new_int_var(0, schedule.horizon, "last")
        model.add_max_equality(last, schedule.end)
        cores, wanted = space.cores.tolist(), space.graph.cores.tolist()
        for host, count in enumerate(cores):
            work = sum(
                schedule.run[t][host] * wanted[t] * on[host] for t, on in enumerate(schedule.on) if host in on
            )
            model.add(work <= count * last)
    return schedule


def _clash(
    rules: list[Rule], space: ScheduleSpace, stage: str, until: float, minimal: bool, ignored: tuple[str, ...]
) -> Clash:
    """The clash of a minimal set of rules, with the tests of each that are needed for it."""
    if not rules:
        return Clash((), "no schedule exists, even without rules", minimal, ignored)
    tests = _needed_tests(rules, space, stage, until)
    members = []
    for number, rule in enumerate(rules):
        rows = tuple(clause.rows for clause in tests if clause.rule == number)
        words = tuple(words_of_test(rule, envs, space) for envs in rows)
        members.append(Member(rule, rows, words))
    text = describe([(member.rule, member.rows, member.words) for member in members], space)
    return Clash(tuple(members), text, minimal, ignored)


def _needed_tests(rules: list[Rule], space: ScheduleSpace, stage: str, until: float) -> list[_Clause]:
    """A minimal set of the tests of these rules that clash; all of them if time runs out."""
    problem = _Problem(rules, space, stage, until)
    tests = [clause for clause in problem.clauses if not any(x is True for x in clause.literals)]
    switches = [problem.model.new_bool_var("") for _ in tests]
    for clause, switch in zip(tests, switches, strict=True):
        problem.model.add_bool_or([*clause.literals, ~switch])
    core = problem.minimal(switches)
    return tests if not core else [tests[n] for n in core]
