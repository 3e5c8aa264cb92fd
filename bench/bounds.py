"""How tight lower bounds are, and that they hold.

python -m bench.bounds exact [--cases N]      N = 500 small cases against proven optima (about 6 minutes)
python -m bench.bounds recorded [--seconds S] [--only NAME]
                                              recorded workflows on three platforms, S = 2 s for each bound (about
                                              3 minutes); S = 60 shows what longer searches prove
python -m bench.bounds shared                 regular programs on few fast hosts and many slow ones, and what keeps
                                              plans of a layered graph above its bound (about 1 minute)
python -m bench.bounds large                  CPU seconds of a full bound: 10,000 tasks on 100 hosts (about 1 minute)
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count as count_up
from itertools import islice
from pathlib import Path

import numpy as np

from bench.sweep import layered, pairwise
from bench.tools import geometric_mean, instances, print_rows, read_dag, read_network
from headrace.core.scheduler import Problem
from headrace.experiment.dataflow import fft, matmul
from headrace.formats.loading import load_platform
from headrace.formats.wfformat import read_program
from headrace.model.bound import Bound
from headrace.model.platform import Contention, Host, Platform, Site
from headrace.planners.bounding import anytime
from headrace.planners.bounds import CHAIN, DATA, WORK, full_bound, lower_bound, quick_bounds
from headrace.planners.registry import make
from headrace.testing.exact import proven_makespan, small_case
from headrace.testing.exact_links import linked_case, proven_optimum

EXAMPLES = Path(__file__).parents[1] / "examples"
FORMER = (CHAIN, WORK, DATA)
"""The bounds that there were before prices and programs."""
FAIR_PLANNERS = ("heft", "minmin", "sufferage", "locality", "single-host", "round-robin", "auto")


def former_bound(problem: Problem) -> float:
    """Chains, work by plain speed, and data at an origin without hosts."""
    return max(bound for bound in quick_bounds(problem) if bound.name in FORMER)


def cases(count: int) -> Iterator[tuple[str, Problem, tuple[float, float]]]:
    """Cases with bounds on their optimum: 2 of 5 are `small_case` without links, the others have all kinds of network.

    The optimum under fair links is not known; the shortest of several plans takes its place. A case that is not proven
    in time, or that not all of these planners obey, is replaced by the next one.
    """
    for kind, share in (
        (small_cases(), 2),
        (linked_cases("none"), 1),
        (linked_cases("fifo"), 1),
        (fair_cases(), 1),
    ):
        yield from islice(kind, count * share // 5)


def small_cases() -> Iterator[tuple[str, Problem, tuple[float, float]]]:
    for seed in count_up():
        problem = small_case(seed)
        try:
            yield "pairwise, 6 to 12 tasks on 3 hosts", problem, proven_makespan(problem, seconds=300.0)
        except AssertionError as unproven:
            print(f"replaced: {unproven}", flush=True)


def linked_cases(contention: Contention) -> Iterator[tuple[str, Problem, tuple[float, float]]]:
    for seed in count_up():
        problem = linked_case(seed, contention)
        if (found := proven_optimum(problem)) is not None:
            yield f"all networks, {contention}", problem, found
        else:
            print(f"replaced: {problem.graph.name} on {problem.platform.name}", flush=True)


def fair_cases() -> Iterator[tuple[str, Problem, tuple[float, float]]]:
    for seed in count_up():
        problem = linked_case(seed, "fair")
        if problem.constraints is None and problem.graph.cores.max() == 1 and not problem.graph.release.any():
            shortest = min(make(name).plan(problem).makespan for name in FAIR_PLANNERS)
            yield "all networks, fair (shortest plan found)", problem, (shortest, shortest)


def exact(count: int) -> int:
    """Bounds above the optimum; prints how often each bound equals it, and its mean share of it."""
    tables: dict[str, list[tuple[float, ...]]] = {}
    above, names = 0, Counter[str]()
    for kind, problem, (low, high) in cases(count):
        bounds = (former_bound(problem), lower_bound(problem), full_bound(problem))
        above += any(bound > high * (1 + 1e-9) for bound in bounds)
        shares = [float(b / high) if high > 0 else 1.0 for b in bounds]
        tables.setdefault(kind, []).append((*(float(b >= low) for b in bounds), *shares))
        names[bounds[2].name] += 1
    rows: list[tuple[object, ...]] = []
    for kind, values in tables.items():
        sums = np.array(values).sum(axis=0)
        rows.append(
            (kind, len(values), *(int(v) for v in sums[:3]), *(f"{v / len(values):.4f}" for v in sums[3:]))
        )
    headers = (
        "cases",
        "number",
        "former equal",
        "quick equal",
        "full equal",
        "former mean share",
        "quick",
        "full",
    )
    print_rows(headers, rows)
    print(f"{above} bounds above the optimum; full bounds by name: {dict(names.most_common())}")
    return above


def platforms() -> dict[str, Platform]:
    return {
        "lab": load_platform(str(EXAMPLES / "lab.toml")),
        "sites": load_platform(str(EXAMPLES / "sites.toml")),
        "wf32": read_network("wf32"),
    }


def recorded(seconds: float, only: str) -> None:
    """Bounds of the recorded workflows beside the plans of heft and auto."""
    rows: list[tuple[object, ...]] = []
    ratios: list[tuple[float, float]] = []
    for where, platform in platforms().items():
        for path in instances():
            if only not in path.name:
                continue
            problem = Problem(read_program(path).graph, platform)
            heft, auto = (make(name).plan(problem).makespan for name in ("heft", "auto"))
            former = former_bound(problem)
            began = time.process_time()
            bound = full_bound(problem, most=auto, seconds=seconds)
            spent = time.process_time() - began
            ratios.append((auto / former, auto / bound))
            rows.append(
                (path.name.split(".")[0], where, problem.graph.n_tasks, f"{former:.1f}", f"{bound:.1f}",
                 bound.name, spent, heft / bound, auto / bound)
            )  # fmt: skip
    headers = (
        "program",
        "platform",
        "tasks",
        "former bound",
        "bound",
        "name",
        "CPU s",
        "heft / bound",
        "auto / bound",
    )
    print_rows(headers, rows)
    print("geometric mean of auto / former bound, auto / bound: ", end="")
    print(", ".join(f"{geometric_mean(r[k] for r in ratios):.3f}" for k in range(2)))


def regular_cases() -> Iterator[tuple[str, str, Problem]]:
    """Programs with fewer tasks at a time than hosts, of which few are fast."""
    random = np.random.default_rng(1)
    even = layered(2000, width=32, work=(50.0, 100.0))
    butterflies = fft(2**20, pieces=32, ratio=30.0).graph
    blocks = matmul().graph
    for fast, slow in ((8, 56), (16, 16)):
        hosts = [Host(f"f{k}", 4.0) for k in range(fast)] + [Host(f"s{k}", 1.0) for k in range(slow)]
        platform = Platform((Site("s", tuple(hosts)),))
        for name, graph in (("layers of 32", even), ("fft of 32 pieces", butterflies), ("matmul", blocks)):
            yield name, f"{fast} fast, {slow} slow", Problem(graph, platform)
    spread = Platform.pairwise(random.uniform(1.0, 4.0, 64), 100.0 * random.uniform(1.0, 4.0, (64, 64)))
    yield "layers of 32", "64 of speed 1 to 4", Problem(even, spread)


def layered_cases() -> Iterator[tuple[str, str, Problem]]:
    """layers-3000 on pairs-64 as it is, and without some of what makes it hard."""
    graph, plain = layered(3000), pairwise(64)
    speeds, links = np.array([h.speed for h in plain.hosts]), plain.network.route_bandwidth
    widest = float(links[~np.eye(64, dtype=np.bool_)].max())
    fast, quick = np.full(64, speeds.max()), np.full((64, 64), widest)
    many = np.full(1000, speeds.max())
    for where, platform in (
        ("pairs-64", plain),
        ("all links as the fastest", Platform.pairwise(speeds, quick)),
        ("all hosts as the fastest", Platform.pairwise(fast, links)),
        ("both", Platform.pairwise(fast, quick)),
        ("both, 1,000 hosts", Platform.pairwise(many, np.full((1000, 1000), widest))),
        ("no transfers", Platform((Site("s", plain.hosts),))),
    ):
        yield "layers-3000", where, Problem(graph, platform)


def shared() -> None:
    """Full bounds with and without chains that share hosts."""
    rows: list[tuple[object, ...]] = []
    search = anytime.chain_bounds
    for name, where, problem in (*regular_cases(), *layered_cases()):
        heft = make("heft").plan(problem).makespan
        vars(anytime)["chain_bounds"] = lambda *_: iter(())
        without = full_bound(problem, most=heft)
        vars(anytime)["chain_bounds"] = search
        cpu = time.process_time()
        bound = full_bound(problem, most=heft)
        cpu = time.process_time() - cpu
        rows.append((name, where, problem.graph.n_tasks, heft, heft / without, heft / bound, bound.name, cpu))
    headers = ("program", "hosts", "tasks", "heft s", "heft / bound without", "heft / bound", "name", "CPU s")
    print_rows(headers, rows)


def large() -> None:
    """CPU time and value of a full bound for large layered graphs."""
    rows: list[tuple[object, ...]] = []
    random = np.random.default_rng(3)
    flat = Platform.pairwise(random.uniform(1, 4, 100), random.uniform(1e6, 1e8, (100, 100)))
    for tasks, name, platform in ((3000, "h64", read_network("h64")), (10_000, "100 hosts", flat)):
        problem = Problem(read_dag(tasks), platform)
        heft = make("heft").plan(problem).makespan
        former = former_bound(problem)
        wall, cpu = time.perf_counter(), time.process_time()
        bound: Bound = full_bound(problem, most=heft)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        rows.append((tasks, name, former, float(bound), bound.name, heft / bound, cpu, wall))
    print_rows(("tasks", "hosts", "former bound", "bound", "name", "heft / bound", "CPU s", "wall s"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("exact", "recorded", "shared", "large"))
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    if asked.what == "exact":
        raise SystemExit(1 if exact(asked.cases) else 0)
    if asked.what == "recorded":
        recorded(asked.seconds, asked.only)
    else:
        {"shared": shared, "large": large}[asked.what]()


if __name__ == "__main__":
    main()
