"""Which copies of files a plan holds where, how long, and which transfers it needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headrace.arrays import Int64s
from headrace.model.graph import Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.coschedule.instance import NONE, Instance


@dataclass(frozen=True, eq=False)
class Holdings:
    """Copies: the item, the place, and the times from and until which it is held."""

    item: Ints
    place: Ints
    since: Floats
    until: Floats


def holdings(instance: Instance, plan: Plan) -> Holdings:
    """The copies of a plan. A copy is held until its last use, the delivered one until the end. O(items * places)."""
    graph, places = instance.problem.graph, instance.places
    at = instance.host_place[plan.host]
    since = np.full(len(instance.size) * places, np.inf)
    until = np.full(len(since), -np.inf)
    ready = np.full(len(since), np.inf)
    first = _initial(instance)
    since[first] = until[first] = ready[first] = 0.0
    maker = graph.producer[instance.writes]
    made = instance.writes.astype(np.int64) * places + at[maker]
    since[made], until[made], ready[made] = plan.start[maker], plan.finish[maker], plan.finish[maker]
    target = plan.move_item.astype(np.int64) * places + plan.move_target
    since[target], ready[target] = plan.move_start, plan.move_finish
    np.maximum.at(until, target, plan.move_finish)
    np.maximum.at(until, plan.move_item.astype(np.int64) * places + plan.move_source, plan.move_finish)
    job = np.repeat(np.arange(instance.n), np.diff(instance.read_ptr))
    np.maximum.at(until, instance.reads.astype(np.int64) * places + at[job], plan.finish[job])
    until[_delivered(instance, ready)] = plan.makespan
    found = np.flatnonzero(np.isfinite(since) & (until > since))
    item, place = (found // places).astype(np.int32), (found % places).astype(np.int32)
    return Holdings(item, place, since[found], until[found])


def without_needless_moves(instance: Instance, plan: Plan) -> Plan:
    """The plan without transfers to places where no job reads the file, and that neither deliver nor relay it.

    What remains keeps its times. O(items * places + transfers * places).
    """
    graph, places = instance.problem.graph, instance.places
    at = instance.host_place[plan.host]
    source = plan.move_item.astype(np.int64) * places + plan.move_source
    target = plan.move_item.astype(np.int64) * places + plan.move_target
    ready = np.full(len(instance.size) * places, np.inf)
    ready[_initial(instance)] = 0.0
    ready[target] = plan.move_finish
    maker = graph.producer[instance.writes]
    ready[instance.writes.astype(np.int64) * places + at[maker]] = plan.finish[maker]
    needed = np.zeros(len(ready), np.bool_)
    needed[_delivered(instance, ready)] = True
    job = np.repeat(np.arange(instance.n), np.diff(instance.read_ptr))
    needed[instance.reads.astype(np.int64) * places + at[job]] = True
    while not needed[relays := source[needed[target]]].all():
        needed[relays] = True
    keep = needed[target]
    return replace(
        plan,
        move_item=plan.move_item[keep],
        move_source=plan.move_source[keep],
        move_target=plan.move_target[keep],
        move_start=plan.move_start[keep],
        move_finish=plan.move_finish[keep],
    )


def _initial(instance: Instance) -> Int64s:
    """The copies that are there from the beginning."""
    return np.array(
        [
            item * instance.places + p
            for item in np.flatnonzero(instance.source != NONE).tolist()
            for p in instance.paths.sets[instance.source[item]]
        ],
        np.int64,
    )


def _delivered(instance: Instance, ready: Floats) -> Int64s:
    """The copy of each result that counts as delivered: the earliest at a destination; ties: the lower place."""
    places, kept = instance.places, []
    for goal in np.unique(instance.destination[instance.destination != NONE]).tolist():
        items = np.flatnonzero(instance.destination == goal)
        targets = np.array(sorted(instance.paths.sets[goal]))
        keys = items[:, None] * places + targets
        kept.append(keys[np.arange(len(items)), ready[keys].argmin(axis=1)])
    return np.concatenate(kept) if kept else np.zeros(0, np.int64)
