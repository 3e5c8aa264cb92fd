"""Small commands that together reach everything Headrace compiles.

One line is one workload: a command as a user types it, on the small files below. What is compiled depends on the
types of arrays alone, not on their sizes, so small is enough. A new compiled function needs a line here only if no
line reaches it yet; `tests/cli/test_warmup.py` finds out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

_SITES = """
name = "small"
contention = "{contention}"
origin = "a1"
[[site]]
name = "a"
{own_disks}
uplink = "100 Mbit/s"
storage = "1 TB"
[[site.host]]
name = "a"
count = 3
speed = 1.0
cores = 2
load = 0.1
[[site]]
name = "b"
{own_disks}
uplink = "50 Mbit/s"
[[site.host]]
name = "b"
count = 3
speed = 2.0
kinds = {{ half = 3.0 }}
"""
_PIPELINE = """
[pipeline]
name = small
[filter Reader]
seconds = 10
volume = 32 MB
power = 1
[filter Worker]
seconds = 20
volume = 3 MB
power = 1
[filter Writer]
seconds = 5
volume = 0 MB
power = 1
[source a]
a1 = 1.0
"""
_MACHINES = """
[cluster a]
bandwidth = 100 Mbit/s
[host a1..3]
cluster = a
power = 1
"""
_SWEEP = """
WorkDescription 1 4 2
File: <0> <in0> <100000> <100000>
File: <1> <in1> <100000> <100000>
File: <2> <out0> <1000> <1000>
File: <3> <out1> <1000> <1000>
Work: <0> < 1 : 0 > < 1 : 2 > < 1 : 600 > < 1 : 610 >
Work: <1> < 2 : 0 1 > < 1 : 3 > < 1 : 600 > < 1 : 590 >
"""
_GRID = """
GridDescription 1
0:ADD_CLUSTER <a> <link> <0>
0:ADD_HOST <a> <a1> <host> <0> <0>
0:ADD_CLUSTER <b> <link> <1>
0:ADD_HOST <b> <b1> <host> <1> <0>
10:CHANGE_CLUSTER_BEHAVIOR <a> <link> <1>
20:CHANGE_HOST_BEHAVIOR <a1> <host> <1>
30:REMOVE_CLUSTER <b>
40:ADD_CLUSTER <b> <link> <0>
40:ADD_HOST <b> <b1> <host> <0> <0>
"""

_STAR = """
name = "star"
contention = "fifo"
routing = "links"
[[site]]
name = "store"
[[site.host]]
name = "pool"
cores = 2
[[site]]
name = "farm"
storage = "4 GB"
[[site.host]]
name = "worker"
cores = 2
[[link]]
from = "store"
to = "farm"
bandwidth = "1 Gbit/s"
"""
_JOBS = "name,duration,input_size,sources,output_size,destinations\n" + "".join(
    f"job{number},{60 + number},1 GB,store,1 GB,store\n" for number in range(40)
)
_RULES = """
first-on-a1: assert relationship requirement (
  (select task-assigned-proc-name from task where task-name = "first") = "a1")
not-on-b3: assert relationship requirement (
  (select proc-task-count from proc where proc-name = "b3") = 0)
ends-together: assert relationship requirement (
  (select task-assigned-proc-id from task where task-name = "first") =
  (select task-assigned-proc-id from task where task-name = "last"))
apart: assert relationship requirement (
  (select task-assigned-proc-id from task where task-label = "half0") <>
  (select task-assigned-proc-id from task where task-label = "half1"))
in-order: assert relationship requirement (
  (select task-finish-time from task where task-label = "half2") <=
  (select task-start-time from task where task-label = "half3"))
few-on-a2: assert relationship requirement (
  (select count(*) from task where task-assigned-proc-name = "a2") <= 4)
two-at-once: assert relationship requirement (
  (select count(*) from task a, task b
   where a.task-name = "half" and b.task-name = "half" and
     a.task-assigned-proc-id = b.task-assigned-proc-id and
     b.task-start-time <= a.task-start-time and a.task-start-time < b.task-finish-time
   group by a.task-id) <= 2)
by-then: assert relationship requirement ((select max(task-finish-time) from task) <= 1 h)
"""
_SOON = """
soon: assert relationship requirement ((select task-finish-time from task where task-label = "half8") <= 10)
"""
"""HEFT's own order misses it, so that it orders tasks by latest start."""
_SHAPES = """
even: assert relationship requirement (
  (select max(proc-task-count) from proc) <= 2 * (select avg(proc-task-count) from proc) + 3)
short: assert value preference (opt-type = minimize, priority = 1,
  function = (select max(task-finish-time) from task), min = 0, max = 1000)
"""


class Workload(NamedTuple):
    """Commands that are run one after the other in one process, because they share most of their code."""

    name: str
    commands: tuple[str, ...]


def _plans(names: str, on: str = "fifo", options: str = "") -> tuple[str, ...]:
    return tuple(f"plan program.json --on {on}.toml -s {name}{options}" for name in names.split())


# The longest first, but what shares functions with it later: on two cores these are then in the cache.
WORKLOADS = (
    Workload(
        "online schedulers",
        (
            "simulate program.json --on shared.toml -s lheft --faults kill=1@30%,join=1@50%,link=a@10%+5 --steal",
            "simulate program.json --on fair.toml -s lheft --faults slow=1*0.5@10%+20%,cluster=b@40%+5",
            "simulate program.json --on fifo.toml -s workqueue --replicate 2 --duplicate --error 0.3",
            "simulate program.json --on fifo.toml -s dheft --planning 1 --links hybrid",
            "simulate program.json --on fifo.toml -s heft --events S3 --interval 5 --ahead 1",
            "simulate sweep.pst --on grid.pst -s workqueue --estimates forecast",
            "simulate program.json --on none.toml -s lheft --rules small.rules --faults kill=b1@30%",
        ),
    ),
    Workload(
        "co-scheduling",
        (
            *_plans("coschedule", "none", " --time 1"),
            *_plans("local equal-load pull"),
            "plan jobs.csv --on star.toml -s coschedule --time 1",
        ),
    ),
    Workload("batch planners", _plans("minmin xsufferage sufferage2 random-maxmin workqueue")),
    Workload(
        "planners under rules",
        (
            *_plans("heft auto minmin sufferage2", "fifo", " --rules small.rules"),
            *_plans("heft", "fifo", " --rules soon.rules"),
            *_plans("best", "fifo", " --rules small.rules --time 0.1"),
            *_plans("best", "none", " --rules small.rules --time 0.3"),
            *_plans("best", "none", " --rules shapes.rules --time 0.1"),
            *_plans("search", "none", " --rules shapes.rules"),
            "simulate program.json --on shared.toml -s heft --rules small.rules"
            " --faults kill=b1@30% --steal --duplicate",
        ),
    ),
    Workload("search", _plans("best", "none", " --time 0.1") + _plans("best", "fifo", " --time 0.1")),
    Workload(
        "list planners",
        (
            *_plans("heft", "fifo", " -o plan.json"),
            *_plans("heft", "none", " --bound full"),
            "simulate program.json --on fifo.toml --plan plan.json --error 0.1",
            *_plans("auto heft cpop peft lheft wu-gajski subset"),
            *_plans("auto", "fair"),
        ),
    ),
    Workload("pipelines", ("deploy pipeline.ini --on machines.ini --time 1 --simulate",)),
    Workload("real runs", ("run program.json --emulate --time-scale 0.001 --workers 2 -s lheft",)),
)


def write_inputs(folder: Path) -> None:
    """Write the files that the commands read."""
    (folder / "program.json").write_text(json.dumps(_program()))
    own_disks = 'bandwidth = "100 Mbit/s"\nlatency = "0.5 ms"'
    for contention in ("none", "fifo", "fair"):
        sites = _SITES.format(contention=contention, own_disks=own_disks)
        (folder / f"{contention}.toml").write_text(sites)
    (folder / "shared.toml").write_text(_SITES.format(contention="fifo", own_disks=""))
    (folder / "pipeline.ini").write_text(_PIPELINE)
    (folder / "machines.ini").write_text(_MACHINES)
    (folder / "sweep.pst").write_text(_SWEEP.lstrip())
    (folder / "grid.pst").write_text(_GRID.lstrip())
    (folder / "jobs.csv").write_text(_JOBS)
    (folder / "star.toml").write_text(_STAR)
    (folder / "small.rules").write_text(_RULES)
    (folder / "soon.rules").write_text(_SOON)
    (folder / "shapes.rules").write_text(_SHAPES)
    (folder / "link").write_text("2\n50 100000\n50 80000\n")
    (folder / "host").write_text("2\n50\n100\n")


def _program() -> dict[str, object]:
    """A fork and join of twelve tasks in WfFormat."""
    middle = [f"half{number}" for number in range(10)]
    tasks = [_task("first", [], middle), *(_task(name, ["first"], ["last"]) for name in middle)]
    tasks.append(_task("last", middle, []))
    files = [{"id": f"{task['id']}.out", "sizeInBytes": 1_000_000} for task in tasks]
    runs = [{"id": task["id"], "runtimeInSeconds": 10.0, "coreCount": 1} for task in tasks]
    return {
        "name": "small",
        "schemaVersion": "1.5",
        "workflow": {"specification": {"tasks": tasks, "files": files}, "execution": {"tasks": runs}},
    }


def _task(name: str, parents: list[str], children: list[str]) -> dict[str, object]:
    return {
        "name": name.rstrip("0123456789"),
        "id": name,
        "parents": parents,
        "children": children,
        "inputFiles": [f"{parent}.out" for parent in parents],
        "outputFiles": [f"{name}.out"],
    }
