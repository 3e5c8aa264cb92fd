"""HEFT on the best subset of hosts: with limited links, fewer hosts are often faster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from headrace.arrays.problem import ProblemArrays, problem_arrays
from headrace.core.scheduler import Problem, obeys
from headrace.model.errors import NoPlan
from headrace.model.graph import Floats, Ints
from headrace.model.network import EVERYWHERE
from headrace.model.plan import Plan
from headrace.planners.constraint_failures import DeadEnd
from headrace.planners.list.host_choice import host_constraints
from headrace.planners.list.list_scheduler import list_plan
from headrace.planners.list.ranks import by_decreasing_rank, mean_costs, upward_rank


class Subset:
    """HEFT restricted to several subsets of hosts; keeps the best plan.

    The subsets are the first 1, 2, 4, ... and all hosts, sorted by work per second and by connectivity, and single
    sites. Candidates are compared by their makespan under the platform's contention model. O(log hosts + sites) times
    HEFT.

    Args:
        max_sites: Maximum number of single sites to try: those with the most work per second.

    >>> from headrace.testing import random_platform, random_program
    >>> Subset().plan(Problem(random_program(1).graph, random_platform(1))).scheduler
    'subset'
    """

    name = "subset"

    def __init__(self, max_sites: int = 16) -> None:
        self.max_sites = max_sites

    @obeys
    def plan(self, problem: Problem) -> Plan:
        arrays = problem_arrays(problem)
        best: Plan | None = None
        refused: NoPlan | None = None
        for hosts in host_subsets(problem, self.max_sites):
            try:
                plan = _heft_on(problem, hosts, arrays)
            except NoPlan as error:  # these hosts alone cannot reach the inputs, or return the results
                if not isinstance(
                    refused, DeadEnd
                ):  # of all hosts: the hosts of some tasks must be chosen first
                    refused = error
                continue
            if best is None or plan.makespan < best.makespan:
                best = plan
        if best is None:
            assert refused is not None
            raise refused
        return best


def _heft_on(problem: Problem, hosts: Ints, arrays: ProblemArrays) -> Plan:
    order = by_decreasing_rank(arrays.tasks, upward_rank(arrays.tasks, mean_costs(arrays, hosts)))
    plan = list_plan(problem, order, Subset.name, host_constraints(arrays, hosts=hosts), arrays)
    few = len(hosts) < len(problem.platform.hosts)
    note = f"planned on {len(hosts)} of {len(problem.platform.hosts)} hosts"
    return replace(plan, notes=(*plan.notes, note)) if few else plan


def host_subsets(problem: Problem, max_sites: int = 16) -> Iterator[Ints]:
    """The subsets to try, without duplicates, all hosts first: O(places^2 + hosts log^2 hosts)."""
    capacity = _work_per_second(problem)
    n = len(capacity)
    everyone = np.arange(n, dtype=np.int32)
    by_capacity = np.lexsort((everyone, -capacity)).astype(np.int32)
    by_connection = np.lexsort((everyone, -capacity, _seconds_per_byte(problem))).astype(np.int32)
    seen: set[bytes] = set()
    candidates: list[Ints] = [everyone]
    for count in (1 << k for k in range(n.bit_length())):
        candidates += [by_capacity[:count], by_connection[:count]]
    for hosts in (*candidates, *_single_sites(problem, capacity)[:max_sites]):
        members = np.sort(hosts)
        if members.tobytes() not in seen:
            seen.add(members.tobytes())
            yield members


def _work_per_second(problem: Problem) -> Floats:
    """Work per second of each host, on all its cores, for this program's mix of kinds."""
    graph, platform = problem.graph, problem.platform
    work = np.bincount(graph.speed_class, weights=graph.work, minlength=len(graph.class_kind))
    share = work / work.sum() if work.sum() > 0 else np.full(len(work), 1.0 / len(work))
    cores = np.array([h.cores for h in platform.hosts])
    capacity: Floats = cores / (share @ (1.0 / platform.rates(graph)))
    return capacity


def _seconds_per_byte(problem: Problem) -> Floats:
    """Mean over all other places with hosts, and the origin, in both directions; inf if there is no route."""
    network = problem.platform.network
    ends = np.unique(network.host_place)
    others = ends if network.origin == EVERYWHERE else np.union1d(ends, [network.origin])
    mean = np.zeros(network.n_places)
    for place in ends.tolist():
        away = others[others != place]
        zone, there = network.zone[place], network.zone[away]
        port = np.minimum(network.port[place], network.port[away])
        with np.errstate(divide="ignore"):
            out = 1.0 / np.minimum(network.route_bandwidth[zone, there], port)
            back = 1.0 / np.minimum(network.route_bandwidth[there, zone], port)
        mean[place] = float((out + back).mean()) if len(away) else 0.0
    seconds: Floats = mean[network.host_place]
    return seconds


def _single_sites(problem: Problem, capacity: Floats) -> list[Ints]:
    """The hosts of each site, for the sites of largest capacity."""
    counts = [len(site.hosts) for site in problem.platform.sites]
    sites = np.split(np.arange(len(capacity), dtype=np.int32), np.cumsum(counts)[:-1])
    total = np.array([float(capacity[hosts].sum()) for hosts in sites])
    largest = np.argsort(-total, kind="stable")
    return [sites[s] for s in largest.tolist() if len(sites[s])]
