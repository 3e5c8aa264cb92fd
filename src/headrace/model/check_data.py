"""Plan checks: location and availability of data, results, and storage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.model.check_case import EXCESS, Case, Findings, Numbers, makespan_of, slack
from headrace.model.graph import Bools, Floats
from headrace.model.network import EVERYWHERE


@dataclass(frozen=True, eq=False)
class Copies:
    """When each item is available at each place; one entry per item and place, sorted by key."""

    places: int
    key: Numbers
    """item * places + place"""
    since: Floats
    """When the copy starts to occupy storage."""
    ready: Floats
    """When it can be used."""
    move: Numbers
    """The transfer that delivers it; -1 where it is produced or initially present."""

    def find(self, item: Numbers, place: Numbers) -> Numbers:
        """The entry of each item and place; -1 where there is none."""
        key = item.astype(np.int64) * self.places + place
        if not len(self.key):
            return np.full(len(key), -1)
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        return np.where(self.key[at] == key, at, -1)


def find_copies(case: Case, findings: Findings) -> Copies:
    """All copies: produced by tasks, initially present, or delivered by transfers."""
    graph, plan, network = case.graph, case.plan, case.network
    made = np.flatnonzero((graph.producer >= 0) & case.maker_ok)
    maker = graph.producer[made]
    homeless = (graph.producer < 0) & ~graph.initial_locations.given
    outside = np.flatnonzero(homeless & (network.origin != EVERYWHERE))
    settled = np.repeat(np.arange(graph.n_items), np.diff(graph.initial_locations.ptr))
    first_place = np.concatenate((np.full(len(outside), network.origin), case.home_place))
    outside = np.concatenate((outside, settled))
    moves = np.flatnonzero(case.move_ok)
    zeros = np.zeros(len(outside))
    item = np.concatenate((made, outside, plan.move_item[moves])).astype(np.int64)
    place = np.concatenate((case.place[maker], first_place, plan.move_target[moves]))
    move = np.concatenate((np.full(len(made) + len(outside), -1), moves))
    since = np.concatenate((plan.start[maker], zeros, plan.move_start[moves]))
    ready = np.concatenate((plan.finish[maker], zeros, plan.move_finish[moves]))
    key = item * network.n_places + place
    order = np.lexsort((ready, move >= 0, key))
    key = key[order]
    first = np.ones(len(key), np.bool_)
    first[1:] = key[1:] != key[:-1]
    again = move[order[~first]]
    findings.add(
        "twice", np.sort(again), lambda k: f"{case.move(k)}: the item is delivered to this place twice"
    )
    keep = order[first]
    return Copies(network.n_places, key[first], since[keep], ready[keep], move[keep])


def _needs_copy(case: Case, item: Numbers) -> Bools:
    """Whether an item needs a copy where it is used: it has bytes and is not available everywhere."""
    graph = case.graph
    everywhere = (
        (graph.producer[item] < 0)
        & (case.network.origin == EVERYWHERE)
        & ~graph.initial_locations.given[item]
    )
    return (graph.size[item] > 0) & ~everywhere


def check_inputs(case: Case, copies: Copies, findings: Findings) -> None:
    """A task starts after its predecessors finish, with every input present at its place."""
    graph, plan = case.graph, case.plan
    task, item = case.reader, graph.reads
    maker = graph.producer[item]
    start = plan.start[task]
    judged = case.task_ok[task] & case.maker_ok[item]
    early = judged & (maker >= 0) & (plan.finish[maker] > start + slack(start))
    findings.add(
        "order",
        early,
        lambda r: f"{case.task(task[r])}: starts before its predecessor, {case.task(maker[r])}, has finished",
    )
    at = copies.find(item, case.place[task])
    needed = judged & _needs_copy(case, item)
    findings.add(
        "input",
        needed & (at < 0),
        lambda r: (
            f"{case.task(task[r])}: its input {graph.item_names[item[r]]!r} "
            f"never arrives at {case.place_name(case.place[task[r]])}"
        ),
    )
    there = needed & (at >= 0) & ~early
    late = np.flatnonzero(there)[copies.ready[at[there]] > start[there] + slack(start[there])]
    findings.add(
        "input",
        late,
        lambda r: (
            f"{case.task(task[r])}: its input {graph.item_names[item[r]]!r} "
            f"is at {case.place_name(case.place[task[r]])} only from {float(copies.ready[at[r]])!r} on"
        ),
    )


def check_sources(case: Case, copies: Copies, findings: Findings) -> None:
    """A transferred item must be at the source by the start, and originate from its producer."""
    plan, graph = case.plan, case.graph
    item = np.where(case.move_ok, plan.move_item, 0)
    start = plan.move_start
    known = case.move_ok.copy()
    known[known] = case.maker_ok[item[known]]
    needed = known.copy()
    needed[known] = _needs_copy(case, item[known])
    at = np.full(len(item), -1)
    at[needed] = copies.find(item[needed], plan.move_source[needed])
    missing = needed & (at < 0)
    findings.add("source", missing, lambda k: f"{case.move(k)}: the item is never at the source")
    ready = np.full(len(item), -np.inf)
    ready[at >= 0] = copies.ready[at[at >= 0]]
    signals = np.flatnonzero(known & (case.move_size == 0))
    signals = signals[graph.producer[item[signals]] >= 0]
    ready[signals] = plan.finish[graph.producer[item[signals]]]
    late = known & ~missing & (ready > start + slack(start))
    findings.add(
        "source", late, lambda k: f"{case.move(k)}: the item is there only from {float(ready[k])!r} on"
    )
    circular = _without_beginning(np.where(at >= 0, copies.move[at], -1) if len(copies.key) else at)
    findings.add(
        "source",
        circular & needed & ~missing & ~late,
        lambda k: (
            f"{case.move(k)}: the item travels in a cycle of transfers that does not start at its producer"
        ),
    )


def _without_beginning(feeder: Numbers) -> Bools:
    """Transfers whose chain of preceding transfers is cyclic: pointer doubling, O(n log n)."""
    n = len(feeder)
    jump = np.append(np.where(feeder >= 0, feeder, n), n)
    for _ in range(n.bit_length()):
        jump = jump[jump]
    endless: Bools = jump[:n] != n
    return endless


def check_results(case: Case, copies: Copies, findings: Findings) -> None:
    """Every result a task produces reaches one of its destinations, or the origin if there is one."""
    graph, origin = case.graph, case.network.origin
    _check_goals(case, copies, findings)
    if origin == EVERYWHERE:
        return
    items = np.flatnonzero(graph.result & (graph.size > 0) & (graph.producer >= 0))
    items = items[case.maker_ok[items]]
    absent = items[copies.find(items, np.full(len(items), origin)) < 0]
    findings.add(
        "result",
        absent,
        lambda i: f"result {graph.item_names[i]!r} never arrives at the origin, {case.place_name(origin)}",
    )


def _check_goals(case: Case, copies: Copies, findings: Findings) -> None:
    """Items with destinations reach one of them by the deadline of their producer."""
    graph, plan = case.graph, case.plan
    items = np.flatnonzero(graph.destinations.given & (graph.size > 0) & case.maker_ok)
    kept = _kept_at_goals(case, copies)
    reached = np.zeros(graph.n_items, np.bool_)
    item = copies.key[kept] // copies.places
    reached[item] = True
    findings.add(
        "result",
        items[~reached[items]],
        lambda i: (
            f"result {graph.item_names[i]!r} never arrives at {' or '.join(map(repr, graph.destinations.of(i)))}"
        ),
    )
    ready = copies.ready[kept]
    due = np.where(graph.producer[item] >= 0, graph.deadline[graph.producer[item]], np.inf)
    late = np.flatnonzero(
        (ready > due + slack(ready)) & (plan.finish[graph.producer[item]] <= due + slack(due))
    )
    findings.add(
        "deadline",
        late,
        lambda j: (
            f"result {graph.item_names[item[j]]!r} is at {case.place_name(copies.key[kept[j]] % copies.places)} "
            f"only from {float(ready[j])!r} on, it is due at {float(due[j])!r}"
        ),
    )


def _kept_at_goals(case: Case, copies: Copies) -> Numbers:
    """For each item that reaches a destination, its earliest copy at one; ties: lower place."""
    graph = case.graph
    item = np.repeat(np.arange(graph.n_items), np.diff(graph.destinations.ptr))
    at = copies.find(item, case.goal_place)
    item, at = item[at >= 0], at[at >= 0]
    order = np.lexsort((at, copies.ready[at], item))
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(item[order]) != 0
    return at[order[first]]


def check_storage(case: Case, copies: Copies, findings: Findings) -> None:
    """No site holds more than its storage; one violation for each interval above it."""
    network = case.network
    if not np.isfinite(network.storage).any():
        return
    item, place = np.divmod(copies.key, network.n_places)
    until = _held_until(case, copies, item, place)
    size = case.graph.size[item]
    # Copies whose lifetimes only touch, within rounding, do not coexist.
    until = until - slack(until)
    counts = _needs_copy(case, item) & (until > copies.since)
    for site in np.flatnonzero(np.isfinite(network.storage)).tolist():
        here = np.flatnonzero(counts & (network.site[place] == site))
        moment = np.concatenate((until[here], copies.since[here]))
        change = np.concatenate((-size[here], size[here]))
        order = np.argsort(moment, kind="stable")
        used = np.cumsum(change[order])
        capacity = float(network.storage[site])
        for peak in _peaks(moment[order], used, capacity):
            findings.say(
                "storage",
                f"site {case.platform.sites[site].name!r} needs {float(used[peak])!r} bytes "
                f"at {float(moment[order[peak]])!r}, its storage holds {capacity!r}",
            )


def _peaks(moment: Floats, used: Floats, capacity: float) -> list[int]:
    """The peak of each interval above the capacity; a dip of zero duration does not split one."""
    over = np.flatnonzero(used > capacity * (1 + EXCESS))
    if not len(over):
        return []
    dip = moment[over[1:]] - moment[over[:-1] + 1] > 2 * slack(moment[over[1:]])
    stretches = np.split(over, np.flatnonzero(dip) + 1)
    return [int(stretch[np.argmax(used[stretch])]) for stretch in stretches]


def _held_until(case: Case, copies: Copies, item: Numbers, place: Numbers) -> Floats:
    """When each copy is last used: by a transfer out, a task there, or as a result at its destination or the origin."""
    graph, plan, network = case.graph, case.plan, case.network
    until = copies.ready.copy()
    moves = np.flatnonzero(case.move_ok)
    source = copies.find(plan.move_item[moves], plan.move_source[moves])
    np.maximum.at(until, source[source >= 0], plan.move_finish[moves[source >= 0]])
    reads = np.flatnonzero(case.task_ok[case.reader])
    task = case.reader[reads]
    used = copies.find(graph.reads[reads], case.place[task])
    np.maximum.at(until, used[used >= 0], plan.finish[task[used >= 0]])
    kept = graph.result[item] & (place == network.origin)
    until[kept] = np.maximum(until[kept], makespan_of(case))
    at_goals = _kept_at_goals(case, copies)
    until[at_goals] = np.maximum(until[at_goals], makespan_of(case))
    return until
