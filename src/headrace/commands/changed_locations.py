"""Where the data of a program is, and whether a plan for it remains possible, after a change of the platform."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.model.check import check
from headrace.model.errors import NoPlan
from headrace.model.graph import OUTSIDE, Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.sited import SiteLists


def located_on(graph: Graph, before: Platform, after: Platform) -> Graph:
    """The program with those initial locations and destinations that are left on a changed platform.

    Raises NoPlan if none is left for an input or a result, or if they need an origin that is gone.
    """
    if before.place_of.keys() <= after.place_of.keys() and (
        before.origin is None or after.origin is not None
    ):
        return graph
    given, goals = graph.initial_locations, graph.destinations
    made = graph.producer != OUTSIDE
    at_origin = np.where(made, graph.result & ~goals.given, ~given.given) & (graph.size > 0)
    if before.origin is not None and after.origin is None and at_origin.any():
        item = graph.item_names[int(np.flatnonzero(at_origin)[0])]
        raise NoPlan(
            f"inputs are stored at the origin {before.origin!r}, and results return there: {item!r} and others",
            where="--what-if",
            hint="keep the origin, or name other sites in the program",
        )
    return replace(
        graph,
        initial_locations=_left(graph, given, before, after, "is stored only at"),
        destinations=_left(graph, goals, before, after, "must be delivered to"),
    )


def _left(graph: Graph, lists: SiteLists, before: Platform, after: Platform, which: str) -> SiteLists:
    """The lists without the names of places that are gone."""
    names, old, new = before.network.place_names, before.place_of, after.place_of
    still = {
        name: name if name in new or name not in old else names[old[name]]  # the site of a host that is gone
        for name in lists.names
    }
    left = {}
    for item in np.flatnonzero(lists.given).tolist():
        listed = lists.of(item)
        left[item] = [still[name] for name in listed if still[name] in new or name not in old]
        if not left[item] and graph.size[item] > 0:
            raise NoPlan(
                f"item {graph.item_names[item]!r} {which} {' or '.join(listed)}",
                where="--what-if",
                hint="name another site in the program",
            )
    return SiteLists.of_items(left, graph.n_items)


def remains_possible(plan: Plan, graph: Graph, platform: Platform) -> bool:
    """Whether a plan is valid on a changed platform, with the same hosts, places and times."""
    host = {h.name: number for number, h in enumerate(platform.hosts)}
    place = {name: number for number, name in enumerate(platform.network.place_names)}
    hosts = np.array([host.get(h.name, -1) for h in plan.platform.hosts], np.int32)[plan.host]
    places = np.array([place.get(name, -1) for name in plan.platform.network.place_names], np.int32)
    sources, targets = places[plan.move_source], places[plan.move_target]
    if min(int(found.min(initial=0)) for found in (hosts, sources, targets)) < 0:
        return False
    moved = replace(
        plan, graph=graph, platform=platform, host=hosts, move_source=sources, move_target=targets, bound=0.0
    )
    return not check(graph, platform, moved, limit=1)
