"""Rules: checking a plan of 100,000 tasks on 1,000 hosts by 100 rules, in seconds and peak memory.

python -m bench.rules check
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from bench.large import layered
from bench.tools import print_rows
from headrace.model.graph import Graph
from headrace.model.plan import NO_MOVES, Plan
from headrace.model.platform import Host, Platform, Site
from headrace.rules.evaluate import evaluate
from headrace.rules.parser import parse_rules

HOSTS, RULES = 1_000, 100
SHAPES = {
    "placement": """assert relationship requirement (
      (select task-assigned-proc-name from task where task-kind = "k{i}") like "a{i}%")""",
    "label": """assert relationship requirement (
      (select task-finish-time from task where task-label = "t{n}") <= {n} * 10)""",
    "every pair": """assert relationship requirement (
      (select task-finish-time from task where task-kind = "k{i}") <=
      (select task-start-time from task where task-level > 200))""",
    "order": """assert ordering preference (
      (select task-start-time from task where task-level < 1{i} order by task-path-length desc), <=)""",
    "join": """assert value requirement (function = (select count(*) from task as a, task as b, dep
      where dep-from = a.task-id and dep-to = b.task-id and
      a.task-assigned-proc-id = b.task-assigned-proc-id), min = {n})""",
    "apart": """assert value requirement (function = (select count(*) from task as a, task as b
      where a.task-assigned-proc-id = b.task-assigned-proc-id and a.task-id < b.task-id
      and a.task-level = b.task-level), max = {n})""",
    "group": """assert relationship requirement (
      (select count(*) from task where task-level > {i} group by task-assigned-proc-id) <= 10{i})""",
    "correlated": """assert relationship requirement ((select proc-task-count from proc where
      (select count(*) from task where task-assigned-proc-id = proc-id and task-kind = "k{i}") > 25) < 9{i})""",
    "in": """assert relationship requirement ((select task-id from task where task-level = {n})
      in (select dep-from from dep where dep-size > {i} * 1000))""",
    "makespan": """assert value preference (opt-type = minimize, priority = {i} + 1,
      function = (select max(task-finish-time) from task), min = 0,
      max = (select sum(task-exec-time) from task) + (select sum(non-local-comm-time) from dep))""",
}
"""Ten shapes, each used ten times with other numbers."""


def rules_text(shapes: list[str], count: int) -> str:
    """So many rules, of the shapes in turn."""
    return "\n".join(shapes[r % len(shapes)].format(i=r // len(shapes) % 10, n=r + 1) for r in range(count))


def random_plan(graph: Graph, platform: Platform) -> Plan:
    """A schedule for rules to judge: random hosts, levels one after another. It books no transfers."""
    random = np.random.default_rng(2)
    n = graph.n_tasks
    start = graph.level * 20.0 + random.uniform(0, 5, n)
    host = random.integers(0, len(platform.hosts), n).astype(np.int32)
    return Plan(graph, platform, "random", host, np.zeros(n, np.int32), start, start + graph.work, **NO_MOVES)


def check() -> None:
    graph = layered().graph
    hosts = tuple(Host(f"a{i}", 1.0 + i % 3, price=0.1) for i in range(HOSTS))
    platform = Platform((Site("a", hosts, bandwidth=125e6, latency=1e-4),))
    plan = random_plan(graph, platform)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows: list[tuple[object, ...]] = []
    for name, shapes in [*((name, [text]) for name, text in SHAPES.items()), ("all", list(SHAPES.values()))]:
        count = RULES if name == "all" else RULES // len(SHAPES)
        text = rules_text(shapes, count)
        began = time.perf_counter()
        rules = parse_rules(text)
        parsed = time.perf_counter()
        verdicts = evaluate(rules, graph, platform, plan)
        ended = time.perf_counter()
        tests = sum(verdict.rows for verdict in verdicts)
        rows.append((name, count, f"{tests:,}", f"{parsed - began:.2f}", f"{ended - parsed:.2f}"))
    print_rows(("rules", "number", "tests", "parsing [s]", "evaluation [s]"), rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{graph.n_tasks:,} tasks, {HOSTS:,} hosts; peak memory {peak:.2f} GB ({before:.2f} GB before the rules)"
    )


if __name__ == "__main__":
    if sys.argv[1:] != ["check"]:
        sys.exit("python -m bench.rules check")
    check()
