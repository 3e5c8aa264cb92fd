"""Co-schedules against models of another kind, on grids with small disks, and under changed questions.

python -m bench.solvers_coschedule exact [CASES [FIRST]]  the time-slot model of the tests; about 1 s for each case
python -m bench.solvers_coschedule grids [JOBS ...] [--seeds FIRST LAST]   200, 1000 and 5000 jobs, grids 0 to 2:
                                                       25 minutes in all
python -m bench.solvers_coschedule chunks              200 jobs, also in chunks; 15 minutes
python -m bench.solvers_coschedule cpsat [SECONDS]     40 jobs: plain CP-SAT on two threads for 600 s; 32 minutes
python -m bench.solvers_coschedule more [CASES [FIRST]]   more disk, bandwidth, cores, time; about 4 s for each case
python -m bench.solvers_coschedule figure3             slowdowns up to 300; 10 minutes
python -m bench.solvers_coschedule whatif [CASES]      about 1 s for each case

Cases are numbered; FIRST (default 0) is the first of them.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.tools import print_rows
from headrace.commands.changed_platform import changed_platform
from headrace.commands.plan_questions import what_if
from headrace.commands.what_if import Change, parse_change
from headrace.core.scheduler import Problem
from headrace.model.check import require_valid
from headrace.model.errors import NoPlan
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Host, Link, Platform
from headrace.model.program import Program
from headrace.model.sited import SiteLists
from headrace.planners.coschedule.cp import solve_plainly
from headrace.planners.coschedule.instance import instance_of
from headrace.planners.coschedule.planner import Coschedule
from headrace.reproductions.coscheduling_figure_3 import SLOWDOWNS, gains
from headrace.testing.tiered_grid import SIZES, tiered_grid

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from planners.coschedule.cases import rich_case
from planners.coschedule.oracle import least_makespan

SECONDS = {200: 60.0, 1000: 120.0, 5000: 300.0}
LATEST = 40
"""Time slots in which a case without a plan is searched for one."""


def planned(
    program: Program | Graph, platform: Platform, seconds: float, chunk: int | None = None
) -> Plan | None:
    """A checked plan; None if there is none."""
    graph = program.graph if isinstance(program, Program) else program
    try:
        plan = Coschedule(time=seconds, chunk=chunk).plan(Problem(graph, platform))
    except NoPlan:
        return None
    require_valid(graph, platform, plan)
    return plan


def exact(cases: int = 500, first: int = 0) -> None:
    """Several destinations with readers, shared files, several cores, releases, deadlines, tight disks."""
    equal = false = without = undecided = 0
    for seed in range(first, first + cases):
        program, platform = rich_case(seed)
        plan = planned(program, platform, 10.0)
        try:
            best = least_makespan(program, platform, LATEST if plan is None else math.ceil(plan.makespan))
        except AssertionError:  # the other model ran out of time
            undecided += 1
            continue
        if plan is None:
            without += best is None
            equal += best is None
            false += best is not None
            continue
        equal += best is not None and abs(plan.makespan - best) < 1e-6
        false += best is None or plan.bound > best + 1e-6
    print(
        f"{equal} of {cases} equal ({without} of them without a plan), {false} false proofs, {undecided} undecided"
    )


def grids(*sizes: int, seeds: tuple[int, int] = (0, 2)) -> None:
    """The gap on grids of three tiers, and when the first answer came."""
    planned(*tiered_grid(40), 1.0)  # so that compiling does not count
    rows = []
    for jobs in sizes or SIZES:
        for seed in range(seeds[0], seeds[1] + 1):
            program, platform = tiered_grid(jobs, seed)
            first: list[float] = []
            planner = Coschedule(time=SECONDS.get(jobs, 60.0), tell=lambda s, m, b, f=first: f.append(s))
            began = time.perf_counter()
            plan = planner.plan(Problem(program.graph, platform))
            took = time.perf_counter() - began
            require_valid(program, platform, plan)
            rows.append((jobs, seed, first[0], took, plan.makespan, plan.bound, 100 * (plan.ratio - 1)))
            print(*rows[-1], flush=True)
    print_rows(("jobs", "grid", "first answer s", "took s", "makespan", "bound", "gap %"), rows)


def chunks() -> None:
    """The default against chunks of several sizes, for the same time."""
    rows = []
    for seed in range(3):
        program, platform = tiered_grid(200, seed)
        found = [planned(program, platform, 30.0, size) for size in (None, 25, 50, 80, 100)]
        rows.append((seed, *("no plan" if plan is None else plan.makespan for plan in found)))
    print_rows(("grid", "default", "25", "50", "80", "100"), rows)


def cpsat(seconds: float = 600.0) -> None:
    """40 jobs: the exact model alone, on two threads, against 20 s of the planner."""
    rows = []
    for seed in range(3):
        program, platform = tiered_grid(40, seed)
        ours = planned(program, platform, 20.0)
        assert ours is not None
        plain = solve_plainly(instance_of(Problem(program.graph, platform)), seconds, threads=2)
        rows.append((seed, ours.makespan, "none" if plain is None else plain.makespan))
        print(*rows[-1], flush=True)
    print_rows(("grid", "coschedule, 20 s", f"CP-SAT, {seconds:g} s"), rows)


def more(cases: int = 1000, first: int = 0) -> None:
    """A richer question never has a worse answer: a source, a host, a link, cores, bandwidth, disk, time more."""
    worse: dict[str, int] = {}
    tried = 0
    for seed in range(first, first + cases):
        program, platform = rich_case(seed)
        plan = planned(program, platform, 10.0)
        if plan is None:
            continue
        tried += 1
        random = np.random.default_rng(seed)
        if seed % 25 == 0:
            print(f"case {seed}", file=sys.stderr, flush=True)
        for name, (richer, where, seconds) in richer_questions(program.graph, platform, random).items():
            other = planned(richer, where, seconds)
            longer = other is None or other.makespan > plan.makespan * (1 + 1e-9)
            worse[name] = worse.get(name, 0) + longer
            if longer:
                print(
                    f"case {seed}, more {name}: {None if other is None else other.makespan}, {plan.makespan}"
                )
    print(f"{tried} of {cases} cases have a plan; worse with more of: {worse}", flush=True)


def richer_questions(
    graph: Graph, platform: Platform, random: np.random.Generator
) -> dict[str, tuple[Graph, Platform, float]]:
    """The same question with one thing more, by the name of that thing, and the seconds to answer it."""
    site = int(random.integers(len(platform.sites)))
    link = int(random.integers(len(platform.links)))
    a, b = random.permutation(len(platform.sites))[:2].tolist()
    ends = platform.sites[a].name, platform.sites[b].name
    disks = [replace(s, storage=s.storage * 1.5) if k == site else s for k, s in enumerate(platform.sites)]
    wide = [replace(s, hosts=tuple(replace(h, cores=h.cores + 1) for h in s.hosts)) for s in platform.sites]
    hosts = [
        replace(s, hosts=(*s.hosts, Host("new"))) if k == site else s for k, s in enumerate(platform.sites)
    ]
    links = [replace(x, bandwidth=2 * x.bandwidth) if k == link else x for k, x in enumerate(platform.links)]
    return {
        "sources": _with_source(graph, platform, random),
        "hosts": (graph, replace(platform, sites=tuple(hosts)), 10.0),
        "links": (graph, replace(platform, links=(*platform.links, Link(*ends, 1.0, oneway=True))), 10.0),
        "cores": (graph, replace(platform, sites=tuple(wide)), 10.0),
        "bandwidth": (graph, replace(platform, links=tuple(links)), 10.0),
        "disk": (graph, replace(platform, sites=tuple(disks)), 10.0),
        "time": (graph, platform, 20.0),
    }


def _with_source(
    graph: Graph, platform: Platform, random: np.random.Generator
) -> tuple[Graph, Platform, float]:
    """One input file is stored at one more site, which has more room by its size."""
    at = {i: graph.initial_locations.of(i) for i in np.flatnonzero(graph.initial_locations.given).tolist()}
    item, site = int(random.choice(list(at))), int(random.integers(len(platform.sites)))
    name = platform.sites[site].name
    roomier = [
        replace(s, storage=s.storage + float(graph.size[item])) if k == site else s
        for k, s in enumerate(platform.sites)
    ]
    lists = SiteLists.of_items(at | {item: (*at[item], name)}, graph.n_items)
    return replace(graph, initial_locations=lists), replace(platform, sites=tuple(roomier)), 10.0


def figure3() -> None:
    """Optimized against chunks and the upper bound, at every slowdown."""
    rows = []
    for slowdown in SLOWDOWNS:
        found = gains(slowdown, 0)
        share = found["optimized"] / found["upper bound"]
        rows.append((slowdown, found["chunks of 200"], found["optimized"], found["upper bound"], 100 * share))
        print(*rows[-1], flush=True)
    print_rows(("slowdown", "chunks %", "optimized %", "upper bound %", "share of bound %"), rows)
    behind = sum(row[2] < row[1] - 1e-9 for row in rows)
    print(f"behind chunks at {behind}; least share up to 50: {min(r[4] for r in rows if r[0] <= 50):.1f} %")


def whatif(cases: int = 100) -> None:
    """Answers to --what-if against the changed problem solved from scratch."""
    equal = 0
    for seed in range(cases):
        program, platform = rich_case(seed)
        change = _random_change(platform, np.random.default_rng(seed))

        def solve(graph: Graph, changed: Platform) -> Plan:
            return Coschedule(time=5.0).plan(Problem(graph, changed))

        answer = what_if(program.graph, platform, [str(change)], solve)[0]
        fresh = planned(program, changed_platform(platform, parse_change(str(change))), 5.0)
        equal += answer.makespan == (None if fresh is None else fresh.makespan)
    print(f"{equal} of {cases} equal")


def _random_change(platform: Platform, random: np.random.Generator) -> Change:
    host = platform.hosts[int(random.integers(len(platform.hosts)))]
    link = platform.links[int(random.integers(len(platform.links)))]
    site = next(s for s in platform.sites if host in s.hosts)
    changes = (
        Change("host", host.name, "add"),
        Change("host", host.name, "multiply", 2.0),
        Change("link", f"{link.source}-{link.target}", "multiply", 2.0),
        Change("link", f"{link.target}-{link.source}", "more", 1.0),
        Change("disk", site.name, "multiply", 2.0),
        Change("cores", site.name, "more", 1.0),
        Change("link", f"{link.source}-{link.target}", "multiply", 0.5),
    )
    return changes[int(random.integers(len(changes)))]


def main() -> None:
    what, *more_words = sys.argv[1:] or ["exact"]
    words = [word for word in more_words if word != "--cases"]
    if what == "grids" and "--seeds" in words:
        at = words.index("--seeds")
        grids(*(int(word) for word in words[:at]), seeds=(int(words[at + 1]), int(words[at + 2])))
        return
    commands = {
        "exact": exact,
        "grids": grids,
        "chunks": chunks,
        "cpsat": cpsat,
        "more": more,
        "figure3": figure3,
        "whatif": whatif,
    }
    commands[what](*(int(word) for word in words))  # type: ignore[operator]


if __name__ == "__main__":
    main()
