"""A clash among 200 rules, found and reduced to a minimal set.

python -m bench.rules_clash
"""

from __future__ import annotations

import random
import time

from bench.tools import print_rows
from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Platform
from headrace.rules.clash import find_clash
from headrace.rules.parser import parse_rules
from headrace.rules.semi_active import schedule_space

RULES = 200
CASES = ((200, 12), (1_000, 16), (3_000, 32))
"""Tasks and hosts."""
PLANTED = (
    "planted-a: assert relationship requirement ((select task-assigned-proc-name from task where task-id in (190, 191, "
    '192)) = "h3")',
    'planted-b: assert relationship requirement ((select proc-task-count from proc where proc-name = "h3") <= 2)',
)


def program(tasks: int, rng: random.Random) -> Graph:
    """Each task reads outputs of some of the ten before it."""
    reads: list[int] = []
    read_ptr = [0]
    for task in range(tasks):
        reads += [before for before in range(max(0, task - 10), task) if rng.random() < 0.2]
        read_ptr.append(len(reads))
    return make_graph(
        work=[float(rng.randint(1, 9)) for _ in range(tasks)],
        size=[float(rng.randint(1, 9)) for _ in range(tasks)],
        producer=list(range(tasks)),
        read_ptr=read_ptr,
        reads=reads,
    )


def harmless(number: int, tasks: int, hosts: int, rng: random.Random) -> str:
    """A rule that the others leave room for."""
    first, second = sorted(rng.sample(range(tasks), 2))
    host = rng.randrange(hosts)
    body = (
        f'(select task-assigned-proc-name from task where task-id = {first}) in ("h{host}", "h5")',
        f"(select task-finish-time from task where task-id = {first}) <= "
        f"(select task-start-time from task where task-id = {second})",
        f"(select task-finish-time from task where task-id = {first}) <= {50 * tasks}",
        f"(select proc-task-count from proc where proc-id = {host}) <= {tasks // 2}",
        f"(select task-assigned-proc-id from task where task-id = {first}) <> {host}",
    )[number % 5]
    return f"r{number}: assert relationship requirement ({body})"


def main() -> None:
    rows = []
    for tasks, hosts in CASES:
        rng = random.Random(tasks)
        texts = [harmless(number, tasks, hosts, rng) for number in range(RULES - len(PLANTED))]
        for text in PLANTED:
            texts.insert(rng.randrange(len(texts)), text)
        platform = Platform.pairwise([float(rng.randint(1, 3)) for _ in range(hosts)], bandwidth=10.0)
        space = schedule_space(program(tasks, rng), platform)
        began = time.perf_counter()
        clash = find_clash(parse_rules("\n".join(texts)), space)
        took = time.perf_counter() - began
        names = [member.rule.name for member in clash.members] if clash else []
        rows.append((tasks, hosts, RULES, ", ".join(names), "yes" if clash and clash.minimal else "no", took))
    print_rows(("tasks", "hosts", "rules", "clashing set", "minimal", "seconds"), rows)


if __name__ == "__main__":
    main()
