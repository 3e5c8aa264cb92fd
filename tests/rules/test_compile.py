"""Compiled constraints mean what the rules mean: on random plans, against the evaluation of the rules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.graph import Floats, Graph, Ints
from headrace.model.platform import Platform
from headrace.rules.compile import compile_rules
from headrace.rules.evaluate import evaluate
from headrace.rules.parser import parse_rules
from headrace.testing.check_constraints import check_constraints
from rules.eval_cases import random_relations, seeds


class Schedule(NamedTuple):
    """As much of a plan as constraints and rules look at."""

    graph: Graph
    platform: Platform
    host: Ints
    start: Floats
    finish: Floats


def schedules(seed: int) -> list[Schedule]:
    """Random schedules of one program: on random hosts, on few, at random times, and one task after another."""
    relations = random_relations(seed, tasks=5, partial=False)
    rng = np.random.default_rng(seed + 1)
    found = []
    for _ in range(12):
        hosts = rng.choice(3, int(rng.integers(1, 4)), replace=False)
        host = rng.choice(hosts, 5).astype(np.int32)
        start = rng.integers(0, 12, 5) / 4.0
        length = rng.integers(1, 6, 5) / 4.0
        if rng.random() < 0.5:
            order = rng.permutation(5)
            start[order] = np.cumsum(length[order]) - length[order]
        found.append(Schedule(relations.graph, relations.platform, host, start, start + length))
    return found


names = st.sampled_from(["FFT", "sobel", "fft", "none"])
hosts = st.sampled_from(["h0", "h1", "h2", "h9"])
sites = st.sampled_from(["uw", "osu"])
numbers = st.integers(-1, 6).map(str)
fractions = st.integers(0, 16).map(lambda n: str(n / 4))
ops = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
less = st.sampled_from(["<", "<=", "=", ">="])


@st.composite
def tasks(draw: st.DrawFn, a: str = "") -> str:
    """A condition on tasks, known before planning."""
    options = [
        f'{a}task-name = "{draw(names)}"',
        f"{a}task-id < {draw(numbers)}",
        f"{a}task-id = {draw(numbers)}",
        f'{a}label-region = "a"',
        f'{a}task-kind = "draw" and not {a}task-name = "{draw(names)}"',
        f"{a}task-scheduled = 1",
        f"{a}task-id in (select dep-to from dep)",
        f"{a}task-work > {draw(fractions)}",
    ]
    return draw(st.sampled_from(options))


@st.composite
def on_host(draw: st.DrawFn, a: str = "") -> str:
    """A condition on the host of a task."""
    options = [
        f'{a}task-assigned-proc-name = "{draw(hosts)}"',
        f'{a}task-site = "{draw(sites)}"',
        f"{a}task-assigned-proc-id in (select proc-id from proc where proc-speed > 1)",
        f'({a}task-assigned-proc-name = "h1" or {a}task-site = "osu")',
    ]
    return draw(st.sampled_from(options))


@st.composite
def conditions(draw: st.DrawFn) -> str:
    t, u, h = draw(tasks()), draw(tasks()), draw(on_host())
    op, n, f, low = draw(ops), draw(numbers), draw(fractions), draw(less)
    x, y = (draw(st.sampled_from(["task-start-time", "task-finish-time"])) for _ in range(2))
    host = draw(st.sampled_from(["task-assigned-proc-id", "task-assigned-proc-name", "task-site"]))
    group = draw(
        st.sampled_from(["", f"group by {host}", "group by task-name", f"group by task-kind, {host}"])
    )
    agg = draw(st.sampled_from(["max", "min"]))
    proc = draw(
        st.sampled_from(["proc-task-count", "proc-total-running-time", "2 * proc-task-count - proc-cores"])
    )
    where_proc = draw(
        st.sampled_from(["", "where proc-speed > 1", "where proc-utilization > 3", 'where proc-site = "osu"'])
    )
    same = draw(st.sampled_from(["", f"and a.{host} = b.{host}"]))
    options = [
        f'(select task-assigned-proc-name from task where {t}) {op} "{draw(hosts)}"',
        f'"{draw(sites)}" {op} (select task-site from task where {t})',
        f'(select task-site from task where {t}) {draw(st.sampled_from(["in", "not in"]))} ("uw", "{draw(sites)}")',
        f"(select task-assigned-proc-id from task where {t}) {op} (select proc-id from proc {where_proc})",
        f"(select task-assigned-proc-id from task where {t}) not in (select proc-id from proc {where_proc})",
        f"(select task-assigned-proc-name from task where {t}) like 'h%{draw(st.sampled_from('012'))}'",
        f'(select task-name from task where {h}) {op} "{draw(names)}"',
        f"(select task-id + task-assigned-proc-id from task where {t}) {op} {n}",
        f"(select {proc} from proc {where_proc}) {low} {n}",
        f"(select sum({proc}) from proc {where_proc}) {low} {f}",
        f"(select max({proc}) from proc {where_proc}) {low} {n}",
        f"(select proc-task-list from proc {where_proc}) = unknown",
        f"(select {host} from task where {t}) {op} (select {host} from task where {u})",
        f"(select count(distinct {host}) from task where {t}) {op} {n}",
        f"(select count(distinct {host}) from task where {t} group by task-name) {op} {n}",
        f"(select count(*) from task where {t} and {h} {group}) {low} {n}",
        f"(select count(*) from task where {t} {group}) {low} {n}",
        f'(select count(*) from task where {h} and task-name = "FFT") = 0',
        f"(select sum(task-exec-time) from task where {t} and {h} {group}) {low} {f}",
        f"(select {x} from task where {t}) {op} {f}",
        f"{f} {op} 2 * (select {x} - 1 from task where {t})",
        f"(select {agg}({x}) from task where {t}) {op} {f}",
        f"(select {x} - task-work from task where {t}) {op} {f}",
        f"(select {x} from task where {t}) between {f} and {f} + {n}",
        f"(select {x} from task where {t}) {op} (select {y} from task where {u})",
        f"(select max({x}) from task where {t}) {op} (select {agg}({y}) from task where {u})",
        f"(select count(*) from task a, task b where a.task-id < b.task-id and a.{host} {op} b.{host}) = 0",
        f"(select count(*) from task a, task b, dep where dep-from = a.task-id and dep-to = b.task-id and "
        f"a.{x} {op} b.{y}) = 0",
        f"(select count(*) from task a, task b where a.{host} = b.{host} and b.task-start-time <= a.task-start-time "
        f"and a.task-start-time < b.task-finish-time group by a.task-id) {low} {n}",
        f"(select count(*) from task a, task b where {draw(on_host('a.'))} and {draw(on_host('b.'))} {same} and "
        f"a.task-start-time >= b.task-start-time and b.task-finish-time > a.task-start-time "
        f"group by a.task-id) {low} {n}",
    ]
    return draw(st.sampled_from(options))


@st.composite
def requirements(draw: st.DrawFn) -> str:
    x = draw(st.sampled_from(["task-start-time", "task-finish-time", "task-assigned-proc-id", "task-site"]))
    order = draw(
        st.sampled_from(["", "order by task-work desc", "order by task-id", "order by task-start-time"])
    )
    c, d, op, n = draw(conditions()), draw(conditions()), draw(ops), draw(fractions)
    options = [
        *[f"assert relationship requirement ({c})"] * 4,
        f"assert relationship requirement ({c} and {d})",
        f"assert relationship requirement (not {c})",
        f"assert ordering requirement ((select {x} from task where {draw(tasks())} {order}), {op})",
        f"assert value requirement (function = (select max(task-finish-time) from task), max = {n})",
        f"assert value requirement (function = (select count(distinct task-site) from task), min = 1, max = {n})",
        f"assert value requirement (function = assert relationship preference ({c}), max = 0)",
    ]
    return draw(st.sampled_from(options))


def hold(seed: int, text: str) -> tuple[str, list[tuple[bool, bool, bool]]]:
    """The coverage of a rule and, for each schedule: whether it keeps the rule, and satisfies both constraints."""
    rules = parse_rules(text)
    cases = schedules(seed)
    compiled = compile_rules(rules, cases[0].graph, cases[0].platform)
    (coverage,) = compiled.coverage.values()
    found = []
    for case in cases:
        verdict = evaluate(rules, case.graph, case.platform, case)[0]
        both = [not check_constraints(c, case) for c in (compiled.implied, compiled.sufficient)]  # type: ignore[arg-type]
        found.append((verdict.kept, *both))
    return coverage, found


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(seeds, requirements())
def test_constraints_agree_with_evaluation(seed: int, text: str) -> None:
    coverage, found = hold(seed, text)
    for kept, implied, sufficient in found:
        assert implied or not kept, text  # what the rule implies
        if coverage != "other":
            assert kept or not sufficient, text
        if coverage == "exactly":
            assert kept == sufficient == implied, text


@pytest.mark.slow
@settings(max_examples=6_000, deadline=None)
@given(seeds, requirements())
def test_constraints_agree_with_evaluation_often(seed: int, text: str) -> None:
    test_constraints_agree_with_evaluation.hypothesis.inner_test(seed, text)  # type: ignore[attr-defined]
