"""What limits the throughput, and the gain from one more host of each kind.

Both come from the dual values (prices) of linear programs that maximise the MB/s read: with the hosts as deployed, each
price times its resource is the part of the throughput determined by this resource; with the numbers of hosts variable,
the price of a class is the gain from one more host of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.model.deployment import Limit, Price
from headrace.model.graph import Floats
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.compact import Compact, Resource
from headrace.planners.pipeline.linear import Linear, solve
from headrace.planners.pipeline.search import held_back, relax

NOTABLE = 0.01
"""A resource that determines less than this part of the throughput is not reported."""
MOST_PRICES = 40


def find_limits(problem: PipelineProblem, program: Compact, x: Floats) -> tuple[Limit, ...]:
    """The resources that limit the throughput of a deployment, the most important first."""
    linear = held_back(program)
    low, high = linear.low.copy(), linear.high.copy()
    low[linear.whole] = high[linear.whole] = np.rint(x[linear.whole])
    answer = solve(_most_read(program, linear.with_bounds(low, high)), whole=False)
    if answer.x is None or answer.dual is None or answer.objective <= 0:
        return ()
    reader = program.resources[0]
    full = float(program.rates.readable @ np.rint(x[program.option]))
    if answer.objective >= full * (1 - 1e-9):  # even if other resources are exactly used up
        return (_limit(problem, program, reader, np.rint(x[program.option])),)
    parts: list[tuple[float, Limit]] = []
    for resource in program.resources:
        part = answer.dual[resource.rows] * resource.amount * answer.x[resource.columns]
        weight = float(part.sum()) / answer.objective
        if weight > NOTABLE:
            parts.append((weight, _limit(problem, program, resource, part)))
    capacity = program.rates.capacity
    for j, dual in enumerate(answer.dual[program.link_rows].tolist()):
        if dual * capacity[j] / answer.objective > NOTABLE:
            name = program.rates.link_names[j]
            kind = "segment" if name.startswith("segment of ") else "link"
            text = f"{name} is full: {capacity[j] * program.rates.unit:.4g} MB/s"
            parts.append((dual * float(capacity[j]) / answer.objective, Limit(kind, name, text)))  # type: ignore[arg-type]
    parts.sort(key=lambda entry: -entry[0])
    return tuple(limit for _, limit in parts)


def find_prices(problem: PipelineProblem, program: Compact, option: int) -> tuple[Price, ...]:
    """The gain from one more host of each class, largest first; reading hosts are fixed by their data."""
    classes = program.classes
    linear = replace(relax(program), row_low=relax(replace(program, linear=held_back(program))).row_low)
    low, high = linear.low.copy(), linear.high.copy()
    high[program.option] = 0.0
    low[program.option[option]] = high[program.option[option]] = 1.0
    if len(program.local):
        high[program.count[0]] = np.inf  # the rows limit the number of hosts, and have a price
    answer = solve(_most_read(program, linear.with_bounds(low, high)), whole=False)
    if answer.dual is None:
        return ()
    gain = np.maximum(answer.dual[program.host_rows], 0.0) * program.rates.unit
    gain[gain < 1e-9] = 0.0
    hosts = problem.platform.hosts
    order = np.lexsort((classes.first, -gain))
    order = order[classes.share[option, order] == 0][:MOST_PRICES]
    return tuple(
        Price(
            problem.cluster[hosts[classes.first[g]].name],
            hosts[classes.first[g]].name,
            int(classes.size[g]),
            hosts[classes.first[g]].speed * (1.0 - hosts[classes.first[g]].load),
            float(gain[g]),
        )
        for g in order.tolist()
    )


def shortage(problem: PipelineProblem, program: Compact, x: Floats) -> str:
    """Explain in words why the reader is throttled: the filter that lacks hosts, and how many."""
    rates = program.rates
    option = int(np.argmax(x[program.option]))
    throughput, full = float(x[program.read].sum()), float(rates.readable[option])
    rest = f"planned with a throttled reader: {throughput / full:.0%} of its {full * rates.unit:.4g} MB/s"
    if problem.several_per_host:
        return rest
    free = np.flatnonzero(rates.share[option] == 0)
    each = (rates.core * rates.cores)[1:, free].mean(axis=1)
    need = np.ceil(full / each * (1 - 1e-9)).astype(np.int64)
    k = int(np.argmax(need))
    left = max(len(free) - int(np.delete(need, k).sum()), 0)
    if need[k] <= left:
        return rest
    name = problem.pipeline.order[k + 1].name
    powers = {problem.power(name, problem.platform.hosts[h].name) for h in free.tolist()}
    sort = "of this power" if len(powers) == 1 else "of mean power"
    return (
        f"at full rate filter {name} needs {need[k]} hosts {sort} and the other filters leave {left}: {rest}"
    )


def _most_read(program: Compact, linear: Linear) -> Linear:
    cost = np.zeros(len(linear.cost))
    cost[program.read] = 1.0
    return replace(linear, cost=cost)


def _limit(problem: PipelineProblem, program: Compact, resource: Resource, part: Floats) -> Limit:
    """Describe a binding resource in words."""
    hosts = problem.platform.hosts
    order = [f.name for f in problem.pipeline.order]
    name = order[resource.filter] if resource.filter >= 0 else "all filters"
    if resource.kind == "reader":
        j = int(np.argmax(part))
        full = float(program.rates.readable[j]) * program.rates.unit
        real = float(resource.amount[j]) * program.rates.unit
        if real < full * (1 - 1e-9):
            text = f"the reader's port carries {real:.4g} of the {full:.4g} MB/s it could read"
            return Limit("port", name, text)
        return Limit("reader", name, f"the reader delivers at most {real:.4g} MB/s")
    where = [hosts[program.classes.first[g]].name for g in resource.classes[part > 0].tolist()]
    some = f"{where[0]} and those like it" if len(where) == 1 else ", ".join(where[:2])
    some += " and others" * (len(where) > 2)
    if resource.kind == "cpu":
        return Limit("cpu", name, f"the hosts of {name} are busy all the time ({some})")
    return Limit("port", name, f"ports of hosts with {name} are full ({some})")
