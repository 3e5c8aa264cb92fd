"""Requirements that cannot hold together, as the error that planning ends with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headrace.core.scheduler import Problem
from headrace.model.errors import NoPlan
from headrace.planners.obeying import bound_problem
from headrace.rules.compile import implied_parts
from headrace.rules.compile_parts import constraints_of
from headrace.rules.relations import Relations
from headrace.rules.tree import RuleSet

SECONDS = 10.0
"""Time limit for finding out which requirements clash."""
MOST_CELLS = 4_000_000
"""Items times hosts times hosts up to which a solver looks for clashes; beyond that only compiled rules are seen."""


class Clashing(NoPlan):
    """Requirements that cannot hold together; the text names a smallest set."""


def clash_of(problem: Problem, rules: RuleSet) -> Clashing | None:
    """The error for requirements that cannot hold together; None if no clash is found.

    >>> import headrace as hr
    >>> from headrace.rules.parser import parse_rules
    >>> program = hr.Program()
    >>> _ = program.task(None, work=1.0, name="FFT.1")
    >>> lab = hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    >>> rules = parse_rules(hr.rules.combine(
    ...     hr.rules.on("FFT", hosts="h1", name="there"), hr.rules.avoid("h1", name="free"),
    ...     hr.rules.finish_by("1 h", name="soon")))
    >>> clash_of(Problem(program.graph, lab), rules).problem.partition(":")[0]
    '`there` (line 1) and `free` (line 3) clash'
    """
    from headrace.rules.clash import find_clash
    from headrace.rules.cpsat_terms import CannotExpress
    from headrace.rules.semi_active import schedule_space

    if not rules.requirements:
        return None
    if problem.graph.n_items * len(problem.platform.hosts) ** 2 > MOST_CELLS:
        return compiled_clash(problem, rules)
    space = schedule_space(
        problem.graph, problem.platform, holders=problem.holders, since=problem.since, free_at=problem.free_at
    )
    try:
        clash = find_clash(rules, space, time=SECONDS)
    except CannotExpress:  # the schedule itself has no exact model
        return compiled_clash(problem, rules)
    if clash is None or not clash.members:
        return None
    return Clashing(clash.text, where=rules.source)


def compiled_clash(problem: Problem, rules: RuleSet) -> Clashing | None:
    """A clash among constraints on hosts and order, in problems too large for a solver's model.

    Found are tasks without an allowed host, tasks that must be together and apart, and circular orders.
    """
    parts = implied_parts(rules, Relations(problem.graph, problem.platform))
    tasks, hosts = problem.graph.n_tasks, len(problem.platform.hosts)

    def refused(names: Sequence[str]) -> str:
        """Why these rules clash; empty if no clash is seen."""
        chosen = constraints_of([part for name in names for part in parts[name]], tasks, hosts)
        try:
            bound_problem(replace(problem, rules=None, constraints=chosen))
        except NoPlan as error:
            return error.problem
        return ""

    names = [name for name in parts if parts[name]]
    if not refused(names):
        return None
    core = smallest(names, lambda chosen: bool(refused(chosen)))
    line = {rule.name: rule.line for rule in rules.rules}
    listed = [f"`{name}` (line {line[name]})" for name in core]
    together = (
        f"{', '.join(listed[:-1])} and {listed[-1]} clash" if len(core) > 1 else f"{listed[0]} cannot hold"
    )
    out = {1: "", 2: "; leave out either one"}.get(len(core), "; leave out any one")
    return Clashing(f"{together}: {refused(core)}{out}", where=rules.source)


def smallest(names: Sequence[str], fails: Callable[[Sequence[str]], bool]) -> list[str]:
    """A minimal subset that fails, of names that fail together: O(k log n) tests for k members.

    >>> smallest("abcdefgh", lambda chosen: {"b", "g"} <= set(chosen))
    ['b', 'g']
    """
    core: list[str] = []
    left = list(names)
    while not fails(core):
        # The shortest prefix of the rest that fails with the members so far ends with a member.
        low, high = 0, len(left)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if fails([*core, *left[:middle]]) else (middle + 1, high)
        core.append(left[low - 1])
        left = left[: low - 1]
    return sorted(core, key=list(names).index)
