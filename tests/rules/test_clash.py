"""Clashing requirements: found exactly if there is no schedule, minimal, and quick for many rules."""

from __future__ import annotations

import random

import pytest

from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Host, Platform, Site
from headrace.rules.clash import Clash, find_clash
from headrace.rules.cpsat import solve
from headrace.rules.parser import parse_rules
from headrace.rules.semi_active import ScheduleSpace, schedule_space
from headrace.rules.tree import RuleSet
from rules.brute_force import best, case

LAB = """
fft-on-lillith: assert relationship requirement (
  (select task-assigned-proc-id from task where task-name = "FFT") =
  (select proc-id from proc where proc-name = "lillith"))
quiet-machines: assert relationship requirement (
  (select proc-task-count from proc where proc-utilization > 3) = 0)
soon: assert relationship requirement ((select max(task-finish-time) from task) <= 1000)
"""


def lab() -> ScheduleSpace:
    graph = make_graph(
        work=[2.0, 4.0, 3.0, 6.0],
        size=[4.0, 2.0],
        producer=[0, 1],
        read_ptr=[0, 0, 0, 1, 2],
        reads=[0, 1],
        task_names=["cut.1", "FFT.3", "sum.1", "sum.2"],
    )
    hosts = (Host("lillith", load=0.07), Host("oddvar"), Host("norge"))
    return schedule_space(graph, Platform((Site("lab", hosts, bandwidth=1e6),)))


def only(rules: RuleSet, *names: str) -> RuleSet:
    return rules.without(*(rule.name for rule in rules.rules if rule.name not in names))


def require_minimal(clash: Clash, rules: RuleSet, space: ScheduleSpace) -> None:
    """The members clash, and without any one of them the others have a schedule."""
    names = [member.rule.name for member in clash.members]
    assert clash.minimal
    assert solve(only(rules, *names), space).status == "infeasible"
    for name in names:
        assert solve(only(rules, *(n for n in names if n != name)), space).status == "optimal"


def test_the_words_name_hosts_tasks_and_values() -> None:
    rules, space = parse_rules(LAB), lab()
    clash = find_clash(rules, space)
    assert clash is not None
    require_minimal(clash, rules, space)
    assert clash.text == (
        "`fft-on-lillith` (line 2) and `quiet-machines` (line 5) clash: FFT.3 must run on lillith, "
        "lillith has utilization 7 and lillith must have no task; leave out either one"
    )
    assert [len(member.rows) for member in clash.members] == [1, 1]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "a: assert relationship requirement ((select task-finish-time from task where task-id = 2) <= "
            "(select task-start-time from task where task-id = 3))\n"
            "b: assert relationship requirement ((select task-finish-time from task where task-id = 3) <= "
            "(select task-start-time from task where task-id = 2))",
            ["a", "b"],
        ),
        ("a: assert value requirement (function = (select max(task-finish-time) from task), max = 9)", ["a"]),
        (
            "a: assert value requirement (function = (select max(task-finish-time) from task), max = 14)\n"
            "b: assert relationship requirement ((select task-assigned-proc-name from task) = 'norge')",
            ["a", "b"],
        ),
        (
            "a: assert relationship requirement ((select proc-task-count from proc) <= 1)\n"
            "b: assert relationship requirement ((select task-id from task) >= 0)",
            ["a"],
        ),
    ],
)
def test_orders_deadlines_and_limits(text: str, names: list[str]) -> None:
    rules, space = parse_rules(text), lab()
    clash = find_clash(rules, space)
    assert clash is not None
    assert [member.rule.name for member in clash.members] == names
    require_minimal(clash, rules, space)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            '(select task-assigned-proc-name from task where task-name = "FFT") in ("oddvar", "norge")',
            "FFT.3 must run on oddvar or norge",
        ),
        (
            '(select task-assigned-proc-id from task where task-name = "FFT") in (1, 2)',
            "FFT.3 must run on oddvar or norge",
        ),
        (
            '(select task-assigned-proc-name from task where task-name = "FFT") not in ("lillith")',
            "FFT.3 must not run on lillith",
        ),
        (
            '(select task-site from task where task-name = "FFT") in ("moon", "mars")',
            "FFT.3 must run at site moon or mars",
        ),
        (
            '(select task-start-time from task where task-name = "FFT") in (7, 8)',
            "task-start-time must be 7 or 8 for FFT.3 (other)",
        ),
        (
            '(select task-start-time from task where task-name = "FFT") between 7 and 8',
            "task-start-time must be between 7 and 8 for FFT.3 (other)",
        ),
    ],
)
def test_lists_are_said_in_words(body: str, words: str) -> None:
    first = (
        LAB.split("quiet")[0]
        + 'fft-first: assert relationship requirement ((select task-start-time from task where task-name = "FFT") = 0)'
    )
    rules = parse_rules(f"{first}\nother: assert relationship requirement ({body})")
    clash = find_clash(rules, lab())
    assert clash is not None
    assert words in clash.text
    assert " in (" not in clash.text


def test_no_clash() -> None:
    assert find_clash(parse_rules(LAB).without("quiet-machines"), lab()) is None


def require_as_enumerated(seed: int) -> bool:
    """A clash is found if and only if no schedule keeps the requirements; each set is minimal by enumeration."""
    problem = case(seed)
    space = schedule_space(problem.graph, problem.platform)
    clash = find_clash(problem.rules, space, time=60, never_late=True)
    assert (clash is None) == (best(problem).score is not None)
    if clash is None:
        return False
    names = [member.rule.name for member in clash.members]
    assert best(problem._replace(rules=only(problem.rules, *names))).score is None
    for name in names:
        rest = only(problem.rules, *(n for n in names if n != name))
        assert best(problem._replace(rules=rest)).score is not None
    return True


@pytest.mark.slow
def test_clashes_are_those_of_enumeration() -> None:
    assert sum(require_as_enumerated(seed) for seed in range(6)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(6, 100, 10))
def test_many_clashes_are_those_of_enumeration(first: int) -> None:
    assert sum(require_as_enumerated(seed) for seed in range(first, first + 10)) >= 1


def many(rng: random.Random, tasks: int, hosts: int) -> tuple[Graph, Platform]:
    reads, ptr = [], [0]
    for t in range(tasks):
        reads += [p for p in range(max(0, t - 10), t) if rng.random() < 0.2]
        ptr.append(len(reads))
    graph = make_graph(
        work=[float(rng.randint(1, 9)) for _ in range(tasks)],
        size=[float(rng.randint(1, 9)) for _ in range(tasks)],
        producer=list(range(tasks)),
        read_ptr=ptr,
        reads=reads,
    )
    return graph, Platform.pairwise([float(rng.randint(1, 3)) for _ in range(hosts)], bandwidth=10.0)


def harmless(rng: random.Random, number: int, tasks: int, hosts: int) -> str:
    t, u = sorted(rng.sample(range(tasks), 2))
    body = (
        f"(select task-assigned-proc-name from task where task-id = {t}) in ('h{rng.randrange(hosts)}', 'h5')",
        f"(select task-finish-time from task where task-id = {t}) <= "
        f"(select task-start-time from task where task-id = {u})",
        f"(select task-finish-time from task where task-id = {t}) <= 5000",
        f"(select proc-task-count from proc where proc-id = {rng.randrange(hosts)}) <= {rng.randint(60, 90)}",
        f"(select task-assigned-proc-id from task where task-id = {t}) <> {rng.randrange(hosts - 1)}",
    )[number % 5]
    return f"r{number}: assert relationship requirement ({body})"


def test_a_clash_among_200_rules_is_reduced() -> None:
    rng = random.Random(1)
    tasks, hosts = 200, 12
    texts = [harmless(rng, i, tasks, hosts) for i in range(198)]
    texts.insert(50, "p1: assert relationship requirement ((select task-assigned-proc-name from task "
                     "where task-id in (190, 191, 192)) = 'h3')")  # fmt: skip
    texts.insert(150, "p2: assert relationship requirement ((select proc-task-count from proc "
                      "where proc-name = 'h3') <= 2)")  # fmt: skip
    space = schedule_space(*many(rng, tasks, hosts))
    clash = find_clash(parse_rules("\n".join(texts)), space, time=60)
    assert clash is not None
    assert [member.rule.name for member in clash.members] == ["p1", "p2"]
    assert [len(member.rows) for member in clash.members] == [3, 1]
    assert clash.minimal
