"""What limits the throughput of a deployment.

The dual values (prices) of the linear program that maximises the MB/s read with the hosts as deployed: each price times
its resource is the part of the throughput determined by this resource.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.deployment import Limit
from headrace.model.graph import Floats
from headrace.model.pipeline import PipelineProblem
from headrace.model.units import plural
from headrace.planners.pipeline.compact import Compact, Resource, build_compact
from headrace.planners.pipeline.disaggregate import HostFlows
from headrace.planners.pipeline.groups import Partition, partition_groups
from headrace.planners.pipeline.linear import Linear, solve
from headrace.planners.pipeline.rates import Rates
from headrace.planners.pipeline.search import SourceCase
from headrace.planners.pipeline.shared import build_shared

NOTABLE = 0.01
"""A resource that determines less than this part of the throughput is not reported."""
MANY_HOSTS = 10**9
"""If a filter would need so many hosts or more, their number is not reported."""
MOST_SECONDS = 3.0


def find_limits(
    problem: PipelineProblem, case: SourceCase, found: HostFlows, *, gap: float, solved: bool
) -> tuple[Limit, ...]:
    """The resources that limit the throughput of a deployment, the most important first.

    `gap` is what the search left open; `solved`: whether that is no more than was asked for.
    """
    full = float(case.rates.readable[0])
    if found.throughput >= full * (1 - 1e-9):  # even if other resources are exactly used up
        return (_reader_limit(problem, case),)
    program, linear, hosts = _as_deployed(case, found)
    most = _most_read(program, linear)
    answer = solve(most, whole=False, seconds=MOST_SECONDS, primal=case.several_per_host)
    if answer.x is None or answer.dual is None or answer.objective <= 0:
        return ()
    parts: list[tuple[float, Limit]] = []
    for resource in program.resources:
        held = answer.x[resource.columns] if len(resource.columns) else 1.0
        part = answer.dual[resource.rows] * resource.amount * held
        weight = float(part.sum()) / answer.objective
        if weight > NOTABLE:
            parts.append((weight, _limit(problem, case, resource, part, hosts)))
    capacity = program.rates.capacity
    for j, dual in enumerate(answer.dual[program.link_rows].tolist()):
        if dual != 0.0 and dual * capacity[j] / answer.objective > NOTABLE:
            name = program.rates.link_names[j]
            kind = "segment" if name.startswith("segment of ") else "link"
            text = f"{name} is full: {capacity[j] * program.rates.unit:.4g} MB/s"
            parts.append((dual * float(capacity[j]) / answer.objective, Limit(kind, name, text)))  # type: ignore[arg-type]
    parts.sort(key=lambda entry: -entry[0])
    limits = [limit for _, limit in parts]
    return (*limits, *_idle(problem, found, limits, gap=gap, solved=solved))


def _as_deployed(case: SourceCase, found: HostFlows) -> tuple[Compact, Linear, list[Numbers]]:
    """The program with the hosts as deployed, and the hosts of each of its groups."""
    classes = case.classes
    if case.several_per_host:
        used = np.bincount(classes.of_host, np.any(found.placed > 0, axis=0), classes.n)
        which = np.flatnonzero(used)
        some = classes.some(which)
        program = build_shared(case.rates, some, case.weights)
        low, high = program.linear.low.copy(), program.linear.high.copy()
        low[program.count[0]] = high[program.count[0]] = used[which]
        hosts = [np.array([first]) for first in some.first.tolist()]
        return program, program.linear.with_bounds(low, high), hosts
    counts = np.zeros((case.rates.n_filters, classes.n), np.int64)
    for k in range(1, len(counts)):
        counts[k] = np.bincount(classes.of_host, found.placed[k], classes.n)
    part = Partition(counts, np.zeros(classes.n, np.int64))
    groups, block_of, _ = partition_groups(case.groups, part)
    weights = replace(case.weights, least=np.zeros_like(case.weights.least))
    program = build_compact(case.rates, groups, weights)
    low = program.linear.low.copy()
    low[program.count] = program.linear.high[program.count]
    first = groups.n - int(block_of.max(initial=-1)) - 1
    hosts = [np.empty(0, np.int64)] * groups.n
    for j in range(first, groups.n):
        at, g = np.nonzero(block_of == j - first)
        hosts[j] = np.flatnonzero((found.placed[at[0]] > 0) & np.isin(classes.of_host, g))
    return program, program.linear.with_bounds(low, program.linear.high), hosts


def _idle(
    problem: PipelineProblem, found: HostFlows, limits: list[Limit], *, gap: float, solved: bool
) -> tuple[Limit, ...]:
    """Why hosts are idle although those in use are busy."""
    idle = int((found.placed.sum(axis=0) == 0).sum())
    if idle == 0 or not any(limit.kind in ("cpu", "port") for limit in limits):
        return ()
    cost = problem.knobs.host_cost
    if not solved:
        text = f"{plural(idle, 'host')} idle: whether they could add up to {gap:.2%} was not found out in the time"
    elif cost > 0:
        text = f"{plural(idle, 'host')} idle: using them would add less than they cost (W_X {cost:g})"
    else:
        text = f"{plural(idle, 'host')} idle: using them would add nothing"
    return (Limit("hosts", "idle hosts", text),)


def shortage(problem: PipelineProblem, rates: Rates, found: HostFlows) -> str:
    """Explain in words why the reader is throttled: the filter that lacks hosts, and how many."""
    full = problem.readable(problem.sources[found.option]) / rates.unit
    rest = (
        f"planned with a throttled reader: {found.throughput / full:.0%} of its {full * rates.unit:.4g} MB/s"
    )
    if problem.several_per_host:
        return rest
    free = np.flatnonzero(rates.share[found.option] == 0)
    each = (rates.core * rates.cores)[1:, free].mean(axis=1)
    with np.errstate(over="ignore"):
        need = np.ceil(np.minimum(full / each * (1 - 1e-9), MANY_HOSTS)).astype(np.int64)
    k = int(np.argmax(need))
    left = max(len(free) - int(np.delete(need, k).sum()), 0)
    if need[k] <= left or need[k] == MANY_HOSTS:
        return rest
    name = problem.pipeline.order[k + 1].name
    powers = {problem.power(name, problem.platform.hosts[h].name) for h in free.tolist()}
    sort = "of this power" if len(powers) == 1 else "of mean power"
    return (
        f"at full rate filter {name} needs {need[k]} hosts {sort} and the other filters leave {left}: {rest}"
    )


def reserve_note(problem: PipelineProblem, rates: Rates, found: HostFlows) -> tuple[str, ...]:
    """That W_F costs throughput, where all of the reserve of a filter is needed to keep it."""
    spare = problem.knobs.spare
    if spare == 0 or problem.several_per_host:
        return ()
    power = (rates.core * rates.cores)[1:]
    together = np.where(found.placed[1:] > 0, power, 0.0).sum(axis=1)
    if float(together.min()) > (1 + spare) * found.throughput * (1 + 1e-6):
        return ()
    return (
        f"the reserve W_F = {spare:g} is kept although hosts are short: --spare 0 would use all their power",
    )


def _most_read(program: Compact, linear: Linear) -> Linear:
    cost = np.zeros(len(linear.cost))
    cost[program.read] = 1.0
    return replace(linear, cost=cost)


def _reader_limit(problem: PipelineProblem, case: SourceCase) -> Limit:
    name = problem.pipeline.reader.name
    full = problem.readable(problem.sources[case.option])
    real = float(case.rates.reader_rate[0]) * case.rates.unit
    if real < full * (1 - 1e-9) and not problem.several_per_host:
        text = f"the reader's port carries {real:.4g} of the {full:.4g} MB/s it could read"
        return Limit("port", name, text)
    return Limit("reader", name, f"the reader delivers at most {full:.4g} MB/s")


def _limit(
    problem: PipelineProblem, case: SourceCase, resource: Resource, part: Floats, members: list[Numbers]
) -> Limit:
    """Describe a binding resource in words."""
    if resource.kind == "reader":
        return _reader_limit(problem, case)
    order = [f.name for f in problem.pipeline.order]
    name = order[resource.filter] if resource.filter >= 0 else "all filters"
    binding = [members[g] for g in resource.groups[part > 0].tolist()]
    some = [problem.platform.hosts[h].name for hosts in binding for h in hosts[:2].tolist()]
    number = sum(len(hosts) for hosts in binding)
    listed = ", ".join(some[:2]) + " and others" * (number > 2)
    spare = problem.knobs.spare
    if resource.kind == "reserve" or (resource.kind == "cpu" and problem.several_per_host and spare > 0):
        return Limit("cpu", name, f"the hosts of {name} have no power left beyond W_F = {spare:g} ({listed})")
    if resource.kind == "cpu":
        return Limit("cpu", name, f"the hosts of {name} are busy all the time ({listed})")
    return Limit("port", name, f"ports of hosts with {name} are full ({listed})")
