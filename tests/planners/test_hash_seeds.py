"""The same seed gives the same plan, whatever Python's hashes are; planners of one file each."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib
from headrace.core.scheduler import Problem
from headrace.planners.registry import entries, make
from headrace.testing.generate import random_platform, random_program

folders = ("headrace.planners.list.", "headrace.planners.batch.", "headrace.planners.search.")
names = [e.name for e in entries() if e.module.startswith(folders)]
options = {"best": {"time": 0.05}} | {name: {"tolerance": 0.3} for name in names if name.startswith("random-")}
for name in names:
    digest = hashlib.sha256()
    for seed, (shape, network, contention, origin) in enumerate([
        ("sweep", "uplinks", "fifo", "site"), ("layered", "pairs", "none", "none"),
        ("random", "sites", "fair", "host"), ("fork-join", "ports", "fifo", "host"),
    ]):
        platform = random_platform(seed, network, contention=contention, hosts=5, origin=origin)
        graph = random_program(seed, 12 if name == "search" else 25, shape).graph
        plan = make(name, **options.get(name, {})).plan(Problem(graph, platform, seed=7))
        for array in (plan.host, plan.core, plan.start, plan.move_item, plan.move_source, plan.move_start):
            digest.update(array.tobytes())
    print(name, digest.hexdigest())
"""


@pytest.mark.slow
def test_plans_do_not_depend_on_hashes() -> None:
    found = []
    for seed in ("0", "4294967295"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True, text=True
        )
        found.append(done.stdout.splitlines())
    assert len(found[0]) >= 19
    assert len({line.split()[1] for line in found[0]}) > 5
    for other in found[1:]:
        assert other == found[0]
