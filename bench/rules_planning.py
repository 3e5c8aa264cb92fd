"""Cost of obeying rules: `hr.plan` with heft, with and without rules given as text, in CPU time.

    python -m bench.rules_planning [--tasks 10000] [--hosts 256] [--runs 7] [--rules 5 50 200]
        [--shapes wide layered deep] [--links free fifo]

Both are what a user calls, warm: planning, the lower bound and the check of the plan; with rules also compiling and
judging them, and parsing them if the text is new (the last texts are remembered as parsed). The bar is a ratio of 1.3
for 50 rules on 10,000 tasks and 256 hosts. The least of several runs counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from bench.sweep import pairwise
from bench.tools import print_rows
from headrace.api import plan as make_plan
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Platform
from headrace.rules.builder import apart, at_most, avoid, before, combine, on, require, together
from headrace.testing.generate import random_platform

SHAPES = {"wide": 4, "layered": 100, "deep": 1000}
"""Levels of each graph."""


def program(tasks: int, levels: int, seed: int = 1) -> Graph:
    """Levels of the same width, three inputs a task; named as workflow systems do, `stage3_ID0000017`."""
    rng = np.random.default_rng(seed)
    width = -(-tasks // levels)
    level = np.arange(tasks) // width
    reads = np.where(level > 0, 3, 0)
    source = np.repeat((level - 1) * width, reads) + rng.integers(0, width, int(reads.sum()))
    return make_graph(
        work=rng.uniform(1.0, 100.0, tasks),
        size=rng.uniform(1.0, 100.0, len(source)),
        producer=source,
        read_ptr=np.concatenate(([0], np.cumsum(reads))),
        reads=np.arange(len(source)),
        task_names=tuple(f"stage{k % 40}_ID{t:07d}" for t, k in enumerate(level.tolist())),
    )


def rules_text(graph: Graph, platform: Platform, count: int, seed: int = 0) -> str:
    """Rules on placement and order, of ten shapes in turn, that can hold together."""
    rng = np.random.default_rng(seed)
    names, hosts = graph.task_names, [host.name for host in platform.hosts]
    tasks = iter(rng.permutation(graph.n_tasks).tolist())
    spare, used = hosts[: len(hosts) // 8], hosts[len(hosts) // 8 :]

    def some(n: int) -> list[str]:
        return [names[next(tasks)] for _ in range(n)]

    def few(among: list[str], n: int) -> list[str]:
        return [among[k] for k in sorted(rng.choice(len(among), n, replace=False).tolist())]

    def in_order(name: str) -> str:
        first, second = sorted((next(tasks), next(tasks)))  # lower numbers come first in these programs
        return before(names[first], names[second], name=name)

    starting = "(select task-assigned-proc-name from task where task-label like {0!r}) <> {1!r}"
    shapes: list[Callable[[str], str]] = [
        lambda name: on(some(1), hosts=few(used, 8), name=name),
        in_order,
        lambda name: avoid(few(spare, 1), name=name),
        lambda name: together(some(4), name=name),
        in_order,
        lambda name: apart(some(5), name=name),
        lambda name: avoid(few(used, 4), tasks=some(5), name=name),
        in_order,
        lambda name: at_most(int(rng.integers(20, 60)), hosts=few(used, 1), name=name),
        lambda name: require(starting.format(some(1)[0][:-2] + "%", few(spare, 1)[0]), name=name),
    ]
    return combine(*(shapes[number % len(shapes)](f"rule-{number}") for number in range(count)))


def cpu(graph: Graph, platform: Platform, rules: str | None) -> float:
    """CPU seconds of a plan; the graph is a new object, so that nothing is remembered of it."""
    fresh = graph.with_fields()
    began = time.process_time()
    make_plan(fresh, platform, "heft", rules=rules)
    return time.process_time() - began


def measured(graph: Graph, platform: Platform, counts: list[int], runs: int) -> list[tuple[float, ...]]:
    """For each number of rules: ms without rules, with rules, and with rules whose text is new each time."""
    texts = {count: rules_text(graph, platform, count) for count in counts}
    plain: list[float] = []
    known: dict[int, list[float]] = {count: [] for count in counts}
    new: dict[int, list[float]] = {count: [] for count in counts}
    for run in range(runs + 1):
        plain.append(cpu(graph, platform, None))
        for count, text in texts.items():
            known[count].append(cpu(graph, platform, text))
            new[count].append(cpu(graph, platform, f"-- {run}\n{text}"))
    return [  # the first one warms up
        tuple(1e3 * min(each[1:]) for each in (plain, known[count], new[count])) for count in counts
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=256)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--rules", type=int, nargs="+", default=[5, 50, 200])
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--links", nargs="+", default=["free", "fifo"], choices=["free", "fifo"])
    given = parser.parse_args()
    platforms = {
        "free": lambda: pairwise(given.hosts),
        "fifo": lambda: random_platform(1, "uplinks", contention="fifo", hosts=given.hosts),
    }
    rows: list[tuple[object, ...]] = []
    for links in given.links:
        platform = platforms[links]()
        for shape in given.shapes:
            graph = program(given.tasks, SHAPES[shape])
            for count, (plain, known, new) in zip(
                given.rules, measured(graph, platform, given.rules, given.runs), strict=True
            ):
                rows.append((shape, links, count, plain, known, known / plain, new, new / plain))
    headers = ("graph", "links", "rules", "without [CPU ms]", "with", "ratio", "with a new text", "ratio")
    print_rows(headers, rows)


if __name__ == "__main__":
    main()
