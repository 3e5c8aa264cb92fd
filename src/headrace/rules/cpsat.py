"""A whole problem with its rules as a CP-SAT model: the best schedule with a proven bound, for small programs.

The model holds all semi-active schedules on free links (see `semi_active`) and every rule in exact integers: times are
whole units chosen so that all durations are, and rules that have no exact form raise `CannotExpress`. The score is a
sum of scaled preferences; a scale whose ends depend on the schedule is rounded down in steps of `1 / STEPS`, so bounds
stay valid and the score is exact within `ROUNDING`. The answer is decoded and judged by the evaluation that `check`
uses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from headrace.model.plan import Plan
from headrace.rules.cpsat_schedule import ScheduleModel, schedule_model
from headrace.rules.cpsat_select import Env, Translator
from headrace.rules.cpsat_terms import CannotExpress, Cell, Quotient, Term, constant, negated
from headrace.rules.evaluate import Verdict, evaluate, score
from headrace.rules.semi_active import ScheduleSpace, semi_active_plan
from headrace.rules.tree import Number, Ordering, Relationship, Rule, RuleSet, Value

STEPS = 10**7
"""Steps of a scale whose ends depend on the schedule."""
ROUNDING = 1e-6
"""The score of the model is within this of the score of the schedule."""
_WEIGHT = 10**15
"""The objective is the score in units of 1 / _WEIGHT."""
Status = Literal["optimal", "feasible", "infeasible", "unknown"]


@dataclass(frozen=True, eq=False)
class Solution:
    """The answer of the solver."""

    status: Status
    """`optimal`: proven best. `infeasible`: proven that no schedule keeps all requirements."""
    plan: Plan | None
    score: float
    """Of the plan, by `evaluate`; inf without one."""
    bound: float
    """No semi-active schedule has a smaller score; inf if infeasible."""
    exact: bool
    """Times are not rounded in the model."""
    verdicts: tuple[Verdict, ...] = ()


class Part(NamedTuple):
    """A preference in the objective: `weight * expr` units."""

    expr: Any
    weight: int


def solve(rules: RuleSet, space: ScheduleSpace, *, time: float = 60.0, workers: int = 1) -> Solution:
    """The schedule of least score that keeps all requirements, of least makespan among equals.

    Args:
        rules: Requirements and preferences.
        space: The program on its platform; contention is not modelled.
        time: Time limit in seconds.
        workers: Threads of the solver.

    Raises:
        CannotExpress: A rule has no exact form in the model.

    >>> from headrace.model.graph import make_graph
    >>> from headrace.model.platform import Platform
    >>> from headrace.rules.parser import parse_rules
    >>> from headrace.rules.semi_active import schedule_space
    >>> g = make_graph(work=[2.0, 4.0], size=[], producer=[], read_ptr=[0, 0, 0], reads=[])
    >>> rules = parse_rules('''assert value preference (opt-type = minimize, min = 0, max = 10,
    ...     function = (select max(task-finish-time) from task))''')
    >>> found = solve(rules, schedule_space(g, Platform.pairwise([1.0, 2.0], bandwidth=1e6)))
    >>> found.status, found.score
    ('optimal', 0.2)
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    schedule = schedule_model(model, space)
    add_requirements(model, rules.requirements, Translator(schedule))
    objective = sum(part.weight * part.expr for part in _objective(rules, Translator(schedule)))
    model.minimize(objective)
    solver = _solver(cp_model, time, workers)
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return Solution("infeasible", None, math.inf, math.inf, schedule.exact)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Solution("unknown", None, math.inf, 0.0, schedule.exact)
    bound = max(0.0, solver.best_objective_bound / _WEIGHT - len(rules) * 1e-8)
    hosts, starts = _decoded(schedule, solver)
    if status == cp_model.OPTIMAL and not isinstance(objective, int):
        hosts, starts = _shortest(model, schedule, objective, solver, cp_model, time) or (hosts, starts)
    plan = semi_active_plan(space, hosts, starts, "cp-sat")
    verdicts = tuple(evaluate(rules, space.graph, space.platform, plan))
    found: Status = "optimal" if status == cp_model.OPTIMAL else "feasible"
    return Solution(found, plan, score(list(verdicts)), bound, schedule.exact, verdicts)


def _solver(cp_model: Any, time: float, workers: int) -> Any:
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = 0
    solver.parameters.relative_gap_limit = 0.0
    return solver


def _shortest(
    model: Any, schedule: ScheduleModel, objective: Any, solver: Any, cp_model: Any, time: float
) -> tuple[Any, Any] | None:
    """Among schedules of this score, the one that ends first; None if the time does not suffice."""
    best = round(solver.objective_value)
    for variable, value in zip(
        (*schedule.start, *schedule.end), map(solver.value, (*schedule.start, *schedule.end)), strict=True
    ):
        model.add_hint(variable, value)
    model.add(objective <= best)
    last = schedule.terms.variable(0, schedule.horizon)
    model.add_max_equality(last, schedule.end)
    model.minimize(last)
    again = _solver(cp_model, time, solver.parameters.num_workers)
    status = again.solve(model)
    return _decoded(schedule, again) if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None


def _decoded(schedule: ScheduleModel, solver: Any) -> tuple[Any, Any]:
    """Hosts and starts in seconds: decoded in the order of the model's starts, so without rounding."""
    space, n = schedule.space, schedule.space.graph.n_tasks
    host = [
        next(h for h, x in schedule.on[t].items() if x is True or solver.boolean_value(x)) for t in range(n)
    ]
    start = [solver.value(s) for s in schedule.start]
    rank = [solver.value(r) for r in schedule.rank]
    position = np.argsort(space.graph.order)
    order = sorted(range(n), key=lambda t: (start[t], rank[t], position[t]))
    placed, starts, _ = space.decode([(t, host[t]) for t in _topological(space, order)])
    return placed, starts


def _topological(space: ScheduleSpace, order: Sequence[int]) -> list[int]:
    """The order with predecessors first where tasks of no run time start together."""
    done: set[int] = set()
    waiting, made = list(order), []
    while waiting:
        task = next(t for t in waiting if all(m in done for m, _ in space.inputs[t]))
        waiting.remove(task)
        done.add(task)
        made.append(task)
    return made


def add_requirements(model: Any, rules: Sequence[Rule], translator: Translator) -> None:
    """All tests of all requirements hold."""
    for rule in rules:
        for clause, _ in requirement_tests(rule, translator):
            if not any(literal is True for literal in clause):
                model.add_bool_or(clause or [False])


def requirement_tests(rule: Rule, translator: Translator) -> list[tuple[list[Any], tuple[Env, ...]]]:
    """A requirement as clauses, one for each test, with the rows of the test; an empty clause cannot hold.

    Raises:
        CannotExpress: The rule has no exact form.
    """
    tests: list[tuple[tuple[Any, Any], tuple[Env, ...]]]
    try:
        if isinstance(rule.body, Value):
            tests = [((False, negated(false)), ()) for false in _limits(rule, translator)]
        else:
            made = translator.tests(rule.body)
            tests = [((negated(test.present), negated(test.false)), test.rows) for test in made]
    except CannotExpress as error:
        raise named(error, rule) from None
    return [([literal for literal in clause if literal is not False], rows) for clause, rows in tests]


def named(error: CannotExpress, rule: Rule) -> CannotExpress:
    """The error with the rule that it is about."""
    return CannotExpress(
        f"rule {rule.name} cannot be translated for the solver: {error.problem}",
        where=f"line {rule.line}",
        hint="use --scheduler search or best, which judge any rule by evaluation",
    )


def _limits(rule: Rule, translator: Translator) -> list[Any]:
    """The literals of the broken limits of a value requirement."""
    assert isinstance(rule.body, Value)
    value = function_cell(rule.body.function, translator)
    found = []
    for op, limit in ((">=", rule.low), ("<=", rule.high)):
        if limit is not None:
            found.append(translator.terms.compare(op, value, translator.cell(limit, {}), True).false)
    return found


def function_cell(function: Any, translator: Translator) -> Cell:
    """The function of a value rule; of a nested rule, the number of its failed tests."""
    if not isinstance(function, Relationship | Ordering):
        return translator.cell(function, {})
    return Cell(term=_failed(translator, function)[0])


def _failed(translator: Translator, body: Relationship | Ordering) -> tuple[Term, Term]:
    """The numbers of failed tests and of tests."""
    tests = translator.tests(body)
    terms = translator.terms
    failed = [terms.all_of((test.present, test.false)) for test in tests]
    return translator._count(failed), translator._count([test.present for test in tests])


# The objective.


def _objective(rules: RuleSet, translator: Translator) -> list[Part]:
    """The scaled preferences, weighted by priority over the sum of priorities."""
    priorities = [_priority(rule, translator) for rule in rules.preferences]
    total = sum(priorities)
    parts = []
    for rule, priority in zip(rules.preferences, priorities, strict=True):
        if priority > 0:
            try:
                parts += _scaled(rule, priority / total, translator)
            except CannotExpress as error:
                raise named(error, rule) from None
    return parts


def _priority(rule: Rule, translator: Translator) -> float:
    if rule.priority is None or isinstance(rule.priority, Number):
        return 1.0 if rule.priority is None else rule.priority.value
    cell = translator.cell(rule.priority, {})
    if cell.known is False:
        return 0.0
    found = None if isinstance(cell.term, Quotient) else translator.terms.term(cell).constant
    if found is None or cell.known is not True:
        raise named(CannotExpress("its priority depends on the schedule"), rule)
    return float(found)


def _scaled(rule: Rule, share: float, translator: Translator) -> list[Part]:
    """A preference as parts of the objective."""
    body = rule.body
    if isinstance(body, Value):
        value, top = function_cell(body.function, translator), None
    else:
        failed, tests = _failed(translator, body)
        value, top = Cell(term=failed), Cell(term=tests)
    low = constant(0.0) if rule.low is None else translator.cell(rule.low, {})
    high = translator.cell(rule.high, {}) if rule.high is not None else top
    assert high is not None
    known = translator.terms.all_of((value.known, low.known, high.known))
    if known is False:
        return []
    maximize = isinstance(body, Value) and body.goal == "maximize"
    over, under = _fraction(value, low, high, translator)
    return _clipped(over, under, share, known, maximize, translator)


def _fraction(value: Cell, low: Cell, high: Cell, translator: Translator) -> tuple[Term, Term]:
    """(value - low) and (high - low) over one denominator, both multiplied by what the value is divided by."""
    terms = translator.terms
    bottom, top = terms.term(low), terms.term(high)
    if isinstance(value.term, Quotient):
        by = value.term.under
        over = terms.minus(value.term.over, terms.times(bottom, by))
        return over, terms.times(terms.minus(top, bottom), by)
    return terms.minus(terms.term(value), bottom), terms.minus(top, bottom)


def _clipped(
    over: Term, under: Term, share: float, known: Any, maximize: bool, translator: Translator
) -> list[Part]:
    """The share of a preference: clipped to 0 .. 1, reversed to maximize, 0 where it is UNKNOWN."""
    terms, model = translator.terms, translator.terms.model
    den = math.lcm(over.den, under.den)
    n, d = terms._to(over, den), terms._to(under, den)
    if d.high <= 0:
        above = terms.reified(">", n, terms.number(Fraction(0)))
        value = Term(1 if above is True else 0 if above is False else above, 1, 0, 1)
        steps = 1
    elif d.low == d.high:
        inside = terms.variable(0, d.high)
        floor = terms.variable(0, max(0, n.high))
        model.add_max_equality(floor, [n.expr, 0])
        model.add_min_equality(inside, [floor, d.high])
        value, steps = Term(inside, 1, 0, d.high), d.high
    else:
        value, steps = _divided(n, d, maximize, translator), STEPS
    result = terms.minus(Term(steps, 1, steps, steps), value) if maximize else value
    result = terms.only_if(result, known)
    return [Part(result.expr, round(share * _WEIGHT / steps))]


def _divided(n: Term, d: Term, up: bool, translator: Translator) -> Term:
    """STEPS * clip(n / d), rounded down (or up); where d <= 0, STEPS if n > 0 and else 0."""
    terms, model = translator.terms, translator.terms.model
    if STEPS * d.high > 2**61:
        raise CannotExpress("its max is too large for exact integers")
    width = terms.variable(1, d.high)
    model.add_max_equality(width, [d.expr, 1])
    floor, inside = terms.variable(0, max(0, n.high)), terms.variable(0, d.high)
    model.add_max_equality(floor, [n.expr, 0])
    model.add_min_equality(inside, [floor, width])
    numerator = terms.variable(0, (STEPS + 1) * d.high)
    model.add(numerator == STEPS * inside + (width - 1 if up else 0))
    quotient = terms.variable(0, STEPS)
    model.add_division_equality(quotient, numerator, width)
    flat = terms.reified("<=", d, terms.number(Fraction(0)))
    if flat is False:
        return Term(quotient, 1, 0, STEPS)
    # Where d <= 0 the width is 1, so a positive whole n is clipped to 1 and the quotient is STEPS.
    return Term(quotient, 1, 0, STEPS)
