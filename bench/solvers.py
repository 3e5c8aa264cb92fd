"""Whether the solvers of deployments and co-schedules keep their word. One command for each figure:

python -m bench.solvers sources [N]          N = 200 problems with several sources: lpsched against each source alone
                                             and against the simple rules (about 2 minutes)
python -m bench.solvers more [N]             N = 1,000 problems with one source, host or link more, or more time
                                             (about 45 minutes)
python -m bench.solvers hosts                10,000 different hosts through the command with its default time (about
                                             8 minutes)
python -m bench.solvers whatif-deploy [N]    N = 100 what-if questions against the changed problem solved from scratch
                                             (about 2 minutes)

Subcommands of co-schedules are in bench.solvers_coschedule.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np

from bench.generated.deployments import More, all_different, several_sources, with_more
from bench.generated.pipelines import mixed_machines
from bench.tools import print_rows
from headrace.commands.deploy_questions import ask_what_if
from headrace.formats.pipeline_ini import write_pipeline
from headrace.formats.platform_ini import Machines, write_machines
from headrace.model.deployment import Deployment
from headrace.model.errors import NoPlan
from headrace.model.pipeline import PipelineProblem
from headrace.model.platform import Platform
from headrace.planners.pipeline.plan import PLANNERS, deploy_lpsched

TOLERANCE = 1e-6


def solved(
    problem: PipelineProblem, solve: Callable[..., Deployment] = deploy_lpsched, **more: float
) -> float:
    """The objective, after a check; -inf where there is no plan."""
    try:
        made = solve(problem, **more)
    except NoPlan:
        return -np.inf
    assert made.check() == [], made.check()[:3]
    return made.objective


def below(value: float, other: float) -> bool:
    """Whether an objective is worse by more than rounding."""
    return value < other - TOLERANCE * max(1.0, abs(other))


def sources(count: int = 200) -> int:
    """Cases in which lpsched is below a single source or a simple rule."""
    worse = {"a single source": 0, "trivial": 0, "total": 0}
    wins = 0
    for seed in range(count):
        problem = several_sources(seed)
        best = solved(problem)
        pipeline = problem.pipeline
        single = [
            solved(replace(problem, pipeline=pipeline.with_sources([s]))) for s in problem.pipeline.sources
        ]
        worse["a single source"] += below(best, max(single))
        wins += min(single) < best - 0.02 * abs(best)
        for rule in ("trivial", "total"):
            worse[rule] += below(best, solved(problem, PLANNERS[rule]))
    print(f"{count} problems with several sources; in {wins} the choice of the source matters by over 2 %")
    print_rows(("below", "cases"), list(worse.items()))
    return sum(worse.values())


def more(count: int = 1000, kinds: tuple[str, ...] = (*get_args(More), "time")) -> int:
    """Cases in which a richer problem has a worse answer."""
    rows, total = [], 0
    for what in kinds:
        worse = better = tried = seed = 0
        while tried < count:
            problem = several_sources(seed, wishes=seed % 2 == 1)
            seed += 1
            if what == "time":
                before, after = solved(problem, seconds=0.5), solved(problem, seconds=5.0)
            else:
                richer = with_more(problem, what, seed)  # type: ignore[arg-type]
                if richer is None:
                    continue
                before, after = solved(problem), solved(richer)
            tried += 1
            worse += below(after, before)
            better += below(before, after)
        rows.append((what, tried, better, worse))
        total += worse
    print_rows(("one more", "problems", "better", "worse"), rows)
    return total


HOSTS: tuple[tuple[str, Callable[[], PipelineProblem]], ...] = (
    ("40 clusters around one, seed 0", lambda: mixed_machines(10_000, 40, 0, seed=0)),
    ("40 clusters around one, seed 1", lambda: mixed_machines(10_000, 40, 0, seed=1)),
    ("one cluster", lambda: mixed_machines(10_000, 1, 0, seed=2)),
    ("30 clusters behind uplinks", lambda: all_different(10_000, 30, seed=3, shape="uplinks")),
    ("60 clusters in a tree", lambda: all_different(10_000, 60, seed=4, shape="tree")),
    ("25 clusters in a mesh", lambda: all_different(10_000, 25, seed=5, shape="mesh")),
    ("8 clusters around one", lambda: all_different(10_000, 8, seed=6)),
)


def hosts(options: tuple[str, ...] = ()) -> float:
    """The largest gap of `headrace deploy` with its default time, on 10,000 different hosts."""
    rows, largest = [], 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, make in HOSTS:
            problem = make()
            write_pipeline(problem.pipeline, folder / "p.ini")
            write_machines(Machines(problem.platform), folder / "m.ini")
            made, seconds, peak = _command(folder, options)
            gap = float(made["gap"])
            largest = max(largest, gap)
            rows.append(
                (what, made["form"], float(made["throughput"]), len(made["hosts_used"]), f"{gap:.3%}",
                 float(made["seconds"]), seconds, round(peak))
            )  # fmt: skip
    headers = (
        "10,000 different hosts",
        "form",
        "MB/s",
        "hosts used",
        "gap",
        "planning s",
        "command s",
        "peak MB",
    )
    print_rows(headers, rows)
    return largest


def _command(folder: Path, options: tuple[str, ...]) -> tuple[dict[str, object], float, float]:
    args = ["deploy", "p.ini", "--on", "m.ini", "--json", *options]
    began = time.perf_counter()
    with (folder / "out.json").open("w") as out, (folder / "err.txt").open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", *args], cwd=folder, stdout=out, stderr=err
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (folder / "err.txt").read_text()
    seconds = time.perf_counter() - began
    return json.loads((folder / "out.json").read_text()), seconds, usage.ru_maxrss / 1024


def whatif_deploy(count: int = 100) -> int:
    """What-if answers that differ from the changed problem, written down by hand and solved from scratch."""
    differ = asked = seed = 0
    while asked < count:
        problem = several_sources(seed, wishes=seed % 3 == 2)
        seed += 1
        for text, platform in changed_by_hand(problem.platform, seed):
            asked += 1
            try:
                made = deploy_lpsched(problem)
                (answer,) = ask_what_if(made, [text], deploy_lpsched)
            except NoPlan:
                continue
            scratch = solved(replace(problem, platform=platform))
            told = answer.after.objective if isinstance(answer.after, Deployment) else -np.inf
            differ += below(told, scratch) or below(scratch, told)
    print(
        f"{asked} questions, {differ} answers differ from solving the changed problem from scratch",
        flush=True,
    )
    return differ


def changed_by_hand(platform: Platform, seed: int) -> list[tuple[str, Platform]]:
    """Changes in words, with the platform that each of them means."""
    random = np.random.default_rng([seed, 17])
    hosts = platform.hosts
    chosen = hosts[int(random.integers(len(hosts)))]
    more = tuple(
        replace(s, hosts=(*s.hosts, replace(chosen, name="new"))) if chosen in s.hosts else s
        for s in platform.sites
    )
    fast = tuple(
        replace(s, hosts=tuple(replace(h, speed=h.speed * 1.5) if h is chosen else h for h in s.hosts))
        for s in platform.sites
    )
    changes = [
        (f"host {chosen.name}", replace(platform, sites=more)),
        (f"host {chosen.name} x1.5", replace(platform, sites=fast)),
    ]
    if platform.links:
        link = platform.links[int(random.integers(len(platform.links)))]
        name = f"link {link.source}-{link.target}"
        for text, rate in ((f"{name} x2", link.bandwidth * 2), (f"{name} +4MB/s", link.bandwidth + 4e6)):
            links = tuple(replace(x, bandwidth=rate) if x is link else x for x in platform.links)
            changes.append((text, replace(platform, links=links)))
        rest = tuple(x for x in platform.links if x is not link)
        changes.append((f"without {name}", replace(platform, links=rest)))
    return changes


COMMANDS: dict[str, Callable[..., object]] = {
    "sources": sources,
    "more": more,
    "hosts": hosts,
    "whatif-deploy": whatif_deploy,
}


def main(args: list[str]) -> None:
    """Run one subcommand; those that are not of deployments are passed on."""
    if not args or args[0] in ("-h", "--help"):
        print(__doc__)
        return
    if args[0] in COMMANDS:
        COMMANDS[args[0]](*(int(arg) for arg in args[1:2]))
        return
    from importlib import import_module

    import_module("bench.solvers_coschedule").main(args)


if __name__ == "__main__":
    main(sys.argv[1:])
