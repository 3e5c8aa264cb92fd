"""Cost of obeying rules: `hr.plan` with heft, with and without rules given as text, in CPU time.

    python -m bench.rules_planning [--tasks 10000] [--hosts 256] [--runs 7] [--rules 5 50 200] [--profile]

Both are what a user calls, warm: planning, the lower bound and the check of the plan; with rules also parsing,
compiling and judging them. The bar is a ratio of 1.3 for 50 rules on 10,000 tasks and 256 hosts. The least of several
runs counts.
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


def cpu(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=256)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--rules", type=int, nargs="+", default=[5, 50, 200])
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    given = parser.parse_args()
    sites = random_platform(1, "uplinks", contention="fifo", hosts=given.hosts)
    rows = []
    for links, platform in (("free", pairwise(given.hosts)), ("fifo", sites)):
        for shape in given.shapes:
            graph = program(given.tasks, SHAPES[shape])
            texts = {count: rules_text(graph, platform, count) for count in given.rules}
            plain, ruled = [], {count: [] for count in given.rules}  # type: ignore[var-annotated]
            for _ in range(given.runs + 1):  # the first one warms up
                plain.append(cpu(lambda: make_plan(graph, platform, "heft")))  # noqa: B023
                for count, text in texts.items():
                    ruled[count].append(cpu(lambda: make_plan(graph, platform, "heft", rules=text)))  # noqa: B023
            least = min(plain[1:])
            for count in given.rules:
                obeying = min(ruled[count][1:])
                rows.append((shape, links, count, 1e3 * least, 1e3 * obeying, obeying / least))
    print_rows(("graph", "links", "rules", "without [CPU ms]", "with [CPU ms]", "ratio"), rows)


if __name__ == "__main__":
    main()
