"""Transfers in flight when a plan is made, and the backlog of each link."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.core.state import CONTENTION, FIFO, TRANSFERS
from headrace.model.graph import Floats
from headrace.predict.remaining import left_on_time

if TYPE_CHECKING:
    from headrace.core.view import RunView


class Carried(NamedTuple):
    """A transfer that is in flight or stays in the queue of a link; times in seconds from now."""

    item: int
    target: int
    link: int
    """The narrowest link of its route; -1 if no link is limited."""
    start: float
    end: float


class InFlight(NamedTuple):
    """Transfers that continue while a plan is made, and when each link has finished them."""

    carried: list[Carried]
    link_free: Floats

    def arrivals(self) -> dict[tuple[int, int], float]:
        """Arrival time of each item in flight, by (item, place)."""
        return {(row.item, row.target): row.end for row in self.carried}


def in_flight(view: RunView, keep: int, sizes: Floats) -> InFlight:
    """Transfers in flight, and the queued ones that stay in the queues of links.

    A queued transfer stays if one of the first `keep` tasks of a host's queue needs it or if it returns a result; the
    others are withdrawn when queues are cut. Durations are estimates based on `sizes`. Fifo links are expected to
    process their queues in order. O(transfers + requests).
    """
    state = view.state
    network = view.estimates.platform(view.time).network
    found = InFlight([], np.zeros(len(state.link_up)))
    for transfer in np.sort(state.live_transfers[: int(state.counters[TRANSFERS])]).tolist():
        item = int(state.transfer_item[transfer])
        source, target = int(state.transfer_source[transfer]), int(state.transfer_target[transfer])
        whole = network.seconds(source, target, float(sizes[item]))
        begun = float(state.transfer_start[transfer])
        _carry(view, found, item, source, target, 0.0, _left(begun, whole, view.time))
        for link in _links(view, source, target):
            if state.link_holder[link] == transfer or not state.transfer_in_turn[transfer]:
                busy = network.busy_seconds(source, target, float(sizes[item]), link)
                _keep_busy(found, link, _left(begun, busy, view.time))
    if view.static.policy[CONTENTION] == FIFO:
        _queue_up(view, found, _needed(view, keep), sizes)
    return found


def _left(begun: float, seconds: float, now: float) -> float:
    return float(left_on_time(np.array([begun]), np.array([seconds]), now)[0])


def _needed(view: RunView, keep: int) -> set[tuple[int, int]]:
    """(item, place) of the missing inputs of the tasks that stay queued."""
    needed = set()
    for host in range(len(view.platform.hosts)) if keep else ():
        place = int(view.static.host_place[host])
        for task in view.queue(host, keep):
            for item in view.graph.reads_of(task).tolist():
                if not view.static.no_transfer[item] and place not in view.places_of(item):
                    needed.add((item, place))
    return needed


def _queue_up(view: RunView, found: InFlight, needed: set[tuple[int, int]], sizes: Floats) -> None:
    """Add the queued transfers that stay, one after another on each link."""
    from headrace.core.transitions.lists import open_requests

    network = view.estimates.platform(view.time).network
    items, targets = open_requests(*view.compiled)
    for item, target in zip(items.tolist(), targets.tolist(), strict=True):
        if (item, target) in needed or target == view.static.destination[item]:
            source = int(view.state.holder[item])
            start = max((float(found.link_free[k]) for k in _links(view, source, target)), default=0.0)
            size = float(sizes[item])
            _carry(view, found, item, source, target, start, start + network.seconds(source, target, size))
            for link in _links(view, source, target):
                _keep_busy(found, link, start + network.busy_seconds(source, target, size, link))


def _carry(
    view: RunView, found: InFlight, item: int, source: int, target: int, start: float, end: float
) -> None:
    if not np.isfinite(end):  # no route at present, so the arrival time is unknown
        return
    bottleneck = int(view.static.route_bottleneck[source * len(view.state.place_up) + target])
    found.carried.append(Carried(item, target, bottleneck, start, end))


def _keep_busy(found: InFlight, link: int, until: float) -> None:
    if np.isfinite(until):  # otherwise there is no route at present
        found.link_free[link] = max(float(found.link_free[link]), until)


def _links(view: RunView, source: int, target: int) -> list[int]:
    """The links between two places."""
    static, at = view.static, source * len(view.state.place_up) + target
    links: list[int] = static.route_links[static.route_ptr[at] : static.route_ptr[at + 1]].tolist()
    return links
