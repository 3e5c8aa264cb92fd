"""Small problems with random rules, and their best schedules by enumeration.

The enumeration covers the semi-active schedules on free links that `rules.semi_active` defines: every assignment of
tasks to hosts with every sequence on each host. Shifting a task to an earlier start never breaks the model's own rules,
so for rules and scores that do not get worse when tasks start earlier these schedules contain a best one among all
schedules. Other rules ("start after ...", "hosts busy equally long") may be better served by a delay; search, solver
and enumeration all leave such delays out, so their answers can be compared for any rule.

Nothing here is shared with the search or the solver but the evaluation of rules on complete schedules.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from headrace.model.graph import Floats, Graph, Ints, make_graph
from headrace.model.platform import Host, Pairs, Platform, Site
from headrace.rules.evaluate import evaluate, score
from headrace.rules.parser import parse_rules
from headrace.rules.tree import RuleSet

MOST_SCHEDULES = 1500
"""Problems with more schedules are drawn again with more dependencies."""


class Case(NamedTuple):
    graph: Graph
    platform: Platform
    rules: RuleSet


class Schedule(NamedTuple):
    host: Ints
    start: Floats
    finish: Floats


class Best(NamedTuple):
    """The least score of a schedule that keeps all requirements; None: there is none."""

    score: float | None
    schedules: int


def case(seed: int) -> Case:
    """4 to 7 tasks on 2 or 3 hosts with 1 to 5 rules; all times are multiples of 1/2."""
    rng = random.Random(seed)
    platform = _platform(rng)
    tasks = rng.randint(4, 7)
    for density in (0.3, 0.5, 0.7, 0.9, 1.0):
        graph = _graph(rng, tasks, density)
        if _few(graph, platform):
            break
    else:
        graph = _chain(rng, 4)
    return Case(graph, platform, _rules(rng, graph.n_tasks, len(platform.hosts)))


def _platform(rng: random.Random) -> Platform:
    hosts = tuple(
        Host(
            f"h{i}",
            speed=rng.choice([1.0, 1.0, 2.0]),
            cores=2 if rng.random() < 0.2 else 1,
            memory=rng.choice([1e9, 4e9]),
            price=float(rng.randint(0, 3)) * 3600.0,
            watts=float(rng.randint(0, 5)),
        )
        for i in range(rng.randint(2, 3))
    )
    bandwidth = np.array([[float(rng.choice([1, 2, 4])) for _ in hosts] for _ in hosts])
    sites = (Site("a", hosts[:1]), Site("b", hosts[1:]))
    return Platform(sites, pairs=Pairs(bandwidth, 0.0))


def _graph(rng: random.Random, tasks: int, density: float) -> Graph:
    """Each task writes an item; a later task reads it with some probability."""
    reads, ptr = [], [0]
    for task in range(tasks):
        reads += [p for p in range(max(0, task - 3), task) if rng.random() < density]
        ptr.append(len(reads))
    return _made(rng, tasks, reads, ptr)


def _chain(rng: random.Random, tasks: int) -> Graph:
    return _made(rng, tasks, list(range(tasks - 1)), [0, *range(tasks)])


def _made(rng: random.Random, tasks: int, reads: list[int], ptr: list[int]) -> Graph:
    names = [f"{rng.choice(['fft', 'cut', 'sum'])}.{t}" for t in range(tasks)]
    return make_graph(
        work=[float(rng.randint(1, 6)) for _ in range(tasks)],
        size=[float(rng.choice([0, 2, 4, 8])) for _ in range(tasks)],
        producer=list(range(tasks)),
        read_ptr=ptr,
        reads=reads,
        task_names=names,
        kind=[rng.randrange(2) for _ in range(tasks)],
        kinds=("x", "y"),
    )


# Rules.


def _rules(rng: random.Random, tasks: int, hosts: int) -> RuleSet:
    text = "\n".join(_rule(rng, tasks, hosts) for _ in range(rng.randint(1, 5)))
    return parse_rules(text)


def _rule(rng: random.Random, tasks: int, hosts: int) -> str:
    kind = rng.random()
    important = "requirement" if rng.random() < 0.5 else "preference"
    if kind < 0.45:
        head = f"assert relationship {important}"
        settings = f", priority = {rng.randint(1, 5)}" if important == "preference" else ""
        return f"{head} ({_condition(rng, tasks, hosts)}{settings})"
    if kind < 0.6:
        key = rng.choice(["task-work", "task-path-length desc", "task-start-time", "task-name, task-id desc"])
        what = rng.choice(["task-finish-time", "task-start-time", "task-assigned-proc-id", "task-exec-time"])
        test = rng.choice(["<=", ">=", "<"]) if important == "preference" else "<="
        where = rng.choice(["", f" where task-id in ({rng.randrange(tasks)}, {rng.randrange(tasks)})"])
        return f"assert ordering {important} ((select {what} from task{where} order by {key}), {test})"
    if important == "requirement":
        low, high = sorted((rng.randint(0, 8), rng.randint(4, 24)))
        ends = rng.choice([f"max = {high}", f"min = {low}", f"min = {low}, max = {high + 4}"])
        return f"assert value requirement (function = {_function(rng, tasks, hosts)}, {ends})"
    goal = rng.choice(["minimize", "minimize", "maximize"])
    function, top = _function(rng, tasks, hosts), str(rng.randint(5, 40))
    if rng.random() < 0.5:
        function = _time(rng, hosts)
        top = "(select sum(task-exec-time) from task) + (select sum(non-local-comm-time) from dep)"
    return (
        f"assert value preference (opt-type = {goal}, priority = {rng.randint(1, 4)}, "
        f"function = {function}, min = {rng.randint(0, 3)}, max = {top})"
    )


def _condition(rng: random.Random, tasks: int, hosts: int) -> str:
    t, u, h = rng.randrange(tasks), rng.randrange(tasks), rng.randrange(hosts)
    name = rng.choice(["fft", "cut", "sum"])
    return rng.choice(
        [
            f"(select task-assigned-proc-id from task where task-name = '{name}') = "
            f"(select proc-id from proc where proc-name = 'h{h}')",
            f"(select task-assigned-proc-name from task where task-id = {t}) <> 'h{h}'",
            f"(select proc-task-count from proc where proc-id = {h}) <= {rng.randint(0, 3)}",
            f"(select proc-task-list from proc where proc-id = {h}) = unknown",
            f"(select task-finish-time from task where task-id = {t}) <= "
            f"(select task-start-time from task where task-id = {u})",
            f"(select task-finish-time from task where task-name = '{name}') <= {rng.randint(4, 16)}",
            f"2 * (select proc-finish-time from proc where proc-id = {h}) <= "
            f"(select max(proc-finish-time) from proc)",
            f"(select task-assigned-proc-id from task where task-id = {t}) <> "
            f"(select task-assigned-proc-id from task where task-id = {u})",
            f"(select task-site from task where task-name = '{name}') like '{rng.choice('ab')}%'",
            f"(select count(*) from task group by task-assigned-proc-id) <= {rng.randint(2, 4)}",
            f"(select sum(task-exec-time) from task where task-assigned-proc-id = {h}) between "
            f"{rng.randint(0, 3)} and {rng.randint(6, 14)}",
            f"(select avg(task-start-time) from task where task-start-time > 0) <= {rng.randint(3, 9)}",
            f"(select non-local-comm-time from dep where dep-size > 2) <= {rng.randint(0, 4)} or "
            f"(select task-start-time from task where task-id = {t}) = 0",
            f"(select a.task-finish-time - b.task-start-time from task a, dep, task b where a.task-id = dep-from "
            f"and b.task-id = dep-to) >= {-rng.randint(0, 6)}",
            f"(select task-finish-time from task where task-cost > {rng.randint(1, 8)}) <= {rng.randint(5, 20)}",
        ]
    )


def _function(rng: random.Random, tasks: int, hosts: int) -> str:
    return rng.choice(
        [
            _time(rng, hosts),
            "(select sum(task-cost) from task)",
            "(select sum(task-energy) / 2 from task)",
            "(select count(*) from proc where proc-task-count > 0)",
            "(select count(distinct task-site) from task)",
            f"assert relationship preference ({_condition(rng, tasks, hosts)})",
        ]
    )


def _time(rng: random.Random, hosts: int) -> str:
    h, g = rng.randrange(hosts), rng.randrange(hosts)
    return rng.choice(
        [
            "(select max(task-finish-time) from task)",
            "(select sum(task-start-time) from task)",
            "(select sum(non-local-comm-time) from dep)",
            f"abs((select proc-total-running-time from proc where proc-id = {h}) - "
            f"2 * (select proc-total-running-time from proc where proc-id = {g}))",
            f"(select proc-finish-time from proc where proc-id = {h})",
            f"(select min(task-start-time) from task where task-assigned-proc-id = {h})",
            f"(select avg(task-finish-time) from task where task-name = '{rng.choice(['fft', 'cut'])}')",
            "(select max(a.task-finish-time) from task a where a.task-finish-time < "
            "(select max(b.task-finish-time) from task b))",
        ]
    )


# Enumeration.


def _few(graph: Graph, platform: Platform) -> bool:
    return all(count < MOST_SCHEDULES for count, _ in enumerate(schedules(graph, platform)))


def schedules(graph: Graph, platform: Platform) -> Iterator[Schedule]:
    """Every semi-active schedule, each once."""
    hosts = platform.hosts
    rates = platform.rates(graph)
    run = [[float(graph.work[t] / rates[graph.speed_class[t], h]) for h in range(len(hosts))]
           for t in range(graph.n_tasks)]  # fmt: skip
    seen: set[frozenset[tuple[int, int, float]]] = set()
    stack: list[dict[int, tuple[int, float]]] = [{}]
    while stack:
        placed = stack.pop()
        if len(placed) == graph.n_tasks:
            host = np.array([placed[t][0] for t in range(graph.n_tasks)], np.int32)
            start = np.array([placed[t][1] for t in range(graph.n_tasks)])
            yield Schedule(
                host, start, start + np.array([run[t][placed[t][0]] for t in range(graph.n_tasks)])
            )
            continue
        for task in range(graph.n_tasks):
            if task in placed or any(p not in placed for p in graph.producer[graph.reads_of(task)].tolist()):
                continue
            for h in range(len(hosts)):
                start = _start(graph, platform, run, placed, task, h)
                if any(at == h and begin > start for at, begin in placed.values()):
                    continue  # it would overtake: the schedule of another sequence
                wider = {**placed, task: (h, start)}
                key = frozenset((t, at, begin) for t, (at, begin) in wider.items())
                if key not in seen:
                    seen.add(key)
                    stack.append(wider)


def _start(
    graph: Graph,
    platform: Platform,
    run: list[list[float]],
    placed: dict[int, tuple[int, float]],
    task: int,
    host: int,
) -> float:
    """When a task can start on a host after all that is placed there."""
    ready = 0.0
    for item in graph.reads_of(task).tolist():
        maker = int(graph.producer[item])
        at, begin = placed[maker]
        seconds = platform.network.seconds(at, host, float(graph.size[item]))
        ready = max(ready, begin + run[maker][at] + seconds)
    ends = sorted((begin + run[t][host] for t, (at, begin) in placed.items() if at == host), reverse=True)
    cores = platform.hosts[host].cores
    return max(ready, ends[cores - 1]) if len(ends) >= cores else ready


def best(problem: Case) -> Best:
    """The least score over all schedules that keep the requirements."""
    least: float | None = None
    count = 0
    for schedule in schedules(problem.graph, problem.platform):
        count += 1
        verdicts = evaluate(problem.rules, problem.graph, problem.platform, schedule)
        if all(v.kept for v in verdicts if v.importance == "requirement"):
            found = score(verdicts)
            least = found if least is None else min(least, found)
    return Best(least, count)
