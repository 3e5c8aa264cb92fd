"""`best --rules` against every other planner, on recorded workflows with ten mixed rules each.

    python -m bench.rules_best [--time 10] [--only NAME...] [--most-batch 500] [--generated N] [--seed 0]

Reads every instance under HEADRACE_DATA: workflows on examples/lab.toml (fifo links), and graphs on the network that
comes with them (no contention). Batch planners take minutes for large programs and are compared up to `--most-batch`
tasks on contended links and up to 3,000 without contention. The requirements are satisfied by a plan that HEFT makes
with one host left out, so they can hold together. The last column says whether `best` keeps all requirements and no
planner that keeps them is better. `--generated 20` takes generated programs and platforms instead, of 20 to 1,000
tasks on 4 to 32 hosts with links of all kinds, and preferences chosen at random; nothing in `best` was tuned on them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench.tools import instances, print_rows, read_dag, read_network
from headrace.api import plan as make_plan
from headrace.formats.wfformat import read_program
from headrace.model.errors import HeadraceError, NoPlan
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.rules.builder import apart, at_most, avoid, before, combine, finish_by, on, together
from headrace.rules.evaluate import evaluate, score
from headrace.rules.parser import parse_rules
from headrace.rules.tree import RuleSet
from headrace.testing import random_platform, random_program

PLANNERS = (
    "auto",
    "heft",
    "cpop",
    "peft",
    "wu-gajski",
    "locality",
    "round-robin",
    "single-host",
)
BATCH = ("minmin", "maxmin", "sufferage", "xsufferage", "sufferage2")
PREFERENCES = """
short: assert value preference (opt-type = minimize, priority = 5,
  function = (select max(task-finish-time) from task), min = 0, max = {makespan})
warm: assert relationship preference priority 1 (
  (select task-assigned-proc-name from task where task-level = 0) = "{warm}")
spread: assert value preference (opt-type = minimize, priority = 1,
  function = (select max(proc-task-count) from proc), min = 0, max = (select count(*) from task))
"""


FURTHER_PREFERENCES = (
    """
early: assert value preference (opt-type = minimize, priority = {weight},
  function = (select avg(task-finish-time) from task), min = 0, max = {makespan})""",
    """
few-bytes: assert value preference (opt-type = minimize, priority = {weight},
  function = (select sum(non-local-comm-time) from dep), min = 0, max = (select sum(task-exec-time) from task))""",
    """
balanced: assert value preference (opt-type = minimize, priority = {weight},
  function = (select max(proc-finish-time) from proc) - (select min(proc-finish-time) from proc),
  min = 0, max = {makespan})""",
    """
wide: assert relationship preference priority {weight} ((select proc-task-count from proc) >= 2)""",
)


def mixed_rules(plan: Plan, banned: str, seed: int, further: bool = False) -> RuleSet:
    """Seven requirements that a plan satisfies, and three preferences; others, at random, if `further`."""
    rng = np.random.default_rng(seed)
    names, hosts = plan.graph.task_names, [host.name for host in plan.platform.hosts]
    ordered = np.argsort(plan.start, kind="stable")
    first, last = int(ordered[len(ordered) // 4]), int(ordered[-1])
    one = int(rng.integers(len(names)))
    others = np.flatnonzero(plan.host == plan.host[one])
    mate = int(others[others != one][0]) if len(others) > 1 else one
    away = int(np.flatnonzero(plan.host != plan.host[one])[0]) if plan.hosts_used > 1 else -1
    some = [hosts[k] for k in sorted({int(plan.host[first]), *rng.choice(len(hosts), 3).tolist()})]
    texts = [
        avoid(banned, name="avoid"),
        on(names[first], hosts=some, name="on"),
        before(names[first], names[last], name="before") if plan.finish[first] <= plan.start[last] else "",
        finish_by(float(plan.makespan) * 1.3, names[last], name="deadline"),
        together([names[one], names[mate]], name="together") if mate != one else "",
        apart([names[one], names[away]], name="apart") if away >= 0 else "",
        at_most(int((plan.host == plan.host[one]).sum()), hosts=hosts[plan.host[one]], name="at-most"),
        *(
            [
                FURTHER_PREFERENCES[k].format(makespan=2 * plan.makespan, weight=int(rng.integers(1, 8)))
                for k in rng.permutation(len(FURTHER_PREFERENCES))[:3]
            ]
            if further
            else [PREFERENCES.format(makespan=2 * plan.makespan, warm=some[0])]
        ),
    ]
    return parse_rules(combine(*(text for text in texts if text)))


@dataclass(frozen=True)
class Case:
    name: str
    graph: Graph
    platform: Platform


def cases(only: list[str]) -> Iterator[Case]:
    """Every instance that can be read; the others are named on stderr."""
    lab = Platform.read("examples/lab.toml")
    for path in instances():
        name = path.name.split(".")[0]
        if not only or any(part in name for part in only):
            try:
                yield Case(name, read_program(path).graph, lab)
            except HeadraceError as error:
                print(f"{path}: not read: {error}", file=sys.stderr)
    for tasks, network in ((100, "h8"), (300, "h8"), (1000, "h64"), (3000, "h64"), (10_000, "h64")):
        name = f"dag-square-n{tasks}"
        if not only or any(part in name for part in only):
            yield Case(name, read_dag(tasks), read_network(network))


def generated(count: int, seed: int) -> Iterator[Case]:
    """Programs and platforms that nothing was tuned on."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        tasks, hosts = (round(float(np.exp(rng.uniform(*np.log(span))))) for span in ((20, 1000), (4, 32)))
        links, contention = str(rng.choice(("uplinks", "pairs"))), str(rng.choice(("none", "fifo", "fair")))
        yield Case(
            f"{tasks} tasks, {links}, {contention}",
            random_program(seed + number, tasks=tasks).graph,
            random_platform(seed + number, links, contention=contention, hosts=hosts),
        )


def compared(
    case: Case, seed: int, seconds: float, most_batch: int, further: bool = False
) -> tuple[object, ...]:
    """A row of the table."""
    graph, platform = case.graph, case.platform
    banned = platform.hosts[seed % len(platform.hosts)].name
    rules = mixed_rules(make_plan(graph, platform, "heft", rules=avoid(banned)), banned, seed, further)
    began = time.perf_counter()
    best = make_plan(graph, platform, "best", rules=rules, time=seconds)
    took = time.perf_counter() - began
    verdicts = evaluate(rules, graph, platform, best)
    kept = sum(v.kept for v in verdicts if v.importance == "requirement")
    batch = graph.n_tasks <= (_MOST_FREE if platform.contention == "none" else most_batch)
    scores = {}
    for name in (*PLANNERS, *(BATCH if batch else ())):
        print(f"{case.name}: {name}", file=sys.stderr, flush=True)
        if (value := _score(graph, platform, rules, name)) is not None:
            scores[name] = value
    rival = min(scores, key=lambda name: scores[name], default="none")
    least = scores.get(rival, float("inf"))
    good = kept == len(rules.requirements) and score(verdicts) <= least + 1e-9
    requirements = f"{kept} of {len(rules.requirements)}"
    shown = (case.name, graph.n_tasks, len(platform.hosts), requirements, len(scores))
    return (*shown, score(verdicts), rival, least, took, "yes" if good else "NO")


_MOST_FREE = 3000
HEADERS = (
    "program",
    "tasks",
    "hosts",
    "kept",
    "planners that keep them",
    "best: score",
    "next best",
    "score",
    "seconds",
    "no worse",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--time", type=float, default=10.0, help="seconds for best")
    parser.add_argument("--only", nargs="+", default=[], help="instances whose names contain one of these")
    parser.add_argument("--most-batch", type=int, default=500)
    parser.add_argument("--generated", type=int, default=0, help="so many generated cases instead")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = []
    chosen = generated(given.generated, given.seed) if given.generated else cases(given.only)
    for seed, case in enumerate(chosen, start=given.seed):
        rows.append(compared(case, seed, given.time, given.most_batch, bool(given.generated)))
        print(*rows[-1], file=sys.stderr, flush=True)
    print_rows(HEADERS, rows)


def _score(graph: Graph, platform: Platform, rules: RuleSet, name: str) -> float | None:
    """The score of a planner's plan; None if it finds none that keeps the requirements."""
    try:
        plan = make_plan(graph, platform, name, rules=rules)
    except NoPlan:
        return None
    return float(score(evaluate(rules, plan.graph, platform, plan)))


if __name__ == "__main__":
    main()
