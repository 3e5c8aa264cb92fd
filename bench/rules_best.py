"""`best --rules` against every other planner, on recorded workflows with ten mixed rules each.

    python -m bench.rules_best [SECONDS]

Batch planners, which take minutes for large programs on contended links, are compared up to 500 tasks. The requirements
are satisfied by a plan that HEFT makes with one host left out, so they can hold together.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from bench.tools import instances, print_rows
from headrace.api import plan as make_plan
from headrace.formats.wfformat import read_program
from headrace.model.errors import NoPlan
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.rules.builder import apart, at_most, avoid, before, combine, finish_by, on, together
from headrace.rules.evaluate import evaluate, score
from headrace.rules.parser import parse_rules
from headrace.rules.tree import RuleSet

PLANNERS = (
    "auto",
    "heft",
    "cpop",
    "peft",
    "wu-gajski",
    "locality",
    "minmin",
    "sufferage",
    "round-robin",
    "single-host",
)
PREFERENCES = """
short: assert value preference (opt-type = minimize, priority = 5,
  function = (select max(task-finish-time) from task), min = 0, max = {makespan})
warm: assert relationship preference priority 1 (
  (select task-assigned-proc-name from task where task-level = 0) = "{warm}")
spread: assert value preference (opt-type = minimize, priority = 1,
  function = (select max(proc-task-count) from proc), min = 0, max = (select count(*) from task))
"""


def mixed_rules(plan: Plan, banned: str, seed: int) -> RuleSet:
    """Seven requirements that a plan satisfies, and three preferences."""
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
        PREFERENCES.format(makespan=2 * plan.makespan, warm=some[0]),
    ]
    return parse_rules(combine(*(text for text in texts if text)))


def main(seconds: float = 10.0) -> None:
    platform = Platform.read("examples/lab.toml")
    rows = []
    for seed, path in enumerate(instances()):
        program = read_program(path)
        banned = platform.hosts[seed % len(platform.hosts)].name
        start = make_plan(program, platform, "heft", rules=avoid(banned))
        rules = mixed_rules(start, banned, seed)
        began = time.perf_counter()
        best = make_plan(program, platform, "best", rules=rules, time=seconds)
        took = time.perf_counter() - began
        print(f"{path.name}: {took:.1f} s", file=sys.stderr, flush=True)
        verdicts = evaluate(rules, program.graph, platform, best)
        kept = sum(v.kept for v in verdicts if v.importance == "requirement")
        rivals = (
            PLANNERS
            if program.graph.n_tasks <= 500
            else [n for n in PLANNERS if n not in ("minmin", "sufferage")]
        )
        scores = {
            name: value for name in rivals if (value := _score(program, platform, rules, name)) is not None
        }
        rival = min(scores, key=lambda name: scores[name], default="none")
        rows.append(
            (
                path.name.split(".")[0],
                program.graph.n_tasks,
                f"{kept} of {len(rules.requirements)}",
                len(scores),
                score(verdicts),
                rival,
                scores.get(rival, float("nan")),
                took,
            )
        )
    print_rows(
        (
            "program",
            "tasks",
            "kept",
            "planners that keep them",
            "best: score",
            "next best",
            "score",
            "seconds",
        ),
        rows,
    )


def _score(program: object, platform: Platform, rules: RuleSet, name: str) -> float | None:
    """The score of a planner's plan; None if it finds none that keeps the requirements."""
    try:
        plan = make_plan(program, platform, name, rules=rules)  # type: ignore[arg-type]
    except NoPlan:
        return None
    return float(score(evaluate(rules, plan.graph, platform, plan)))


if __name__ == "__main__":
    main(*(float(argument) for argument in sys.argv[1:]))
