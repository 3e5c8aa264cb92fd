"""What is on its way between places when a plan is made, and what links are to carry before anything new."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.core.state import CONTENTION, FIFO, HERE, MOVES, REQUESTED
from headrace.model.graph import Floats
from headrace.model.network import Network
from headrace.predict.remaining import left_on_time

if TYPE_CHECKING:
    from headrace.core.view import RunView


class Carried(NamedTuple):
    """A transfer that is under way or stays in the queue of a link; times in seconds from now."""

    item: int
    target: int
    link: int
    """The narrowest link of its way; -1 where none is limited."""
    start: float
    end: float


class InFlight(NamedTuple):
    """Transfers that go on while a plan is made, and when each link is done with them."""

    carried: list[Carried]
    link_free: Floats

    def arrivals(self) -> dict[tuple[int, int], float]:
        """When each item that is on its way arrives, by (item, place)."""
        return {(row.item, row.target): row.end for row in self.carried}


def in_flight(state: RunView, keep: int, sizes: Floats) -> InFlight:
    """What moves, and of what waits on links what the first `keep` tasks of each queue need or results need to
    return: the rest is taken back when queues are cut. How long it takes is a belief, as `sizes` of items are.

    A link that carries one transfer at a time is expected to work its queue off in order. O(moves + requests).
    """
    desk, problem = state.desk, state.static
    network = state.estimates.platform(state.time).network
    found = InFlight([], np.zeros(len(desk.link_up)))
    live = desk.live_transfers[: int(desk.count[MOVES])]
    for move in np.sort(live).tolist():
        item, source, target = (
            int(desk.transfer_item[move]),
            int(desk.transfer_source[move]),
            int(desk.transfer_target[move]),
        )
        whole = network.seconds(source, target, float(sizes[item]))
        begun = np.array([float(desk.transfer_start[move])])
        left = float(left_on_time(begun, np.array([whole]), state.time)[0])
        _carry(state, found, item, source, target, 0.0, left)
    if problem.policy[CONTENTION] == FIFO:
        _queue_up(state, found, network, _needed(state, keep), sizes)
    return found


def _needed(state: RunView, keep: int) -> set[tuple[int, int]]:
    """Inputs, and where, that the kept tasks of each queue lack."""
    desk, problem, places = state.desk, state.static, len(state.desk.place_up)
    needed = set()
    for host in range(len(desk.host_up)) if keep else ():
        place = int(problem.host_place[host])
        for task in state.queue(host)[:keep]:
            for item in state.graph.reads_of(task).tolist():
                if not problem.no_transfer[item] and desk.present[item * places + place] != HERE:
                    needed.add((item, place))
    return needed


def _queue_up(
    state: RunView, found: InFlight, network: Network, needed: set[tuple[int, int]], sizes: Floats
) -> None:
    """Let the links carry what stays in their queues, one after the other."""
    desk, problem, places = state.desk, state.static, len(state.desk.place_up)
    for head in desk.request_head.tolist():
        slot = head
        while slot >= 0:
            item, target = int(desk.request_item[slot]), int(desk.request_target[slot])
            slot_after = int(desk.request_next[slot])
            is_open = desk.present[item * places + target] == REQUESTED and desk.copies[item] > 0
            if is_open and ((item, target) in needed or target == problem.destination[item]):
                source = int(desk.holder[item])
                links = _links(state, source, target)
                start = max((float(found.link_free[link]) for link in links), default=0.0)
                whole = network.seconds(source, target, float(sizes[item]))
                _carry(state, found, item, source, target, start, start + whole)
            slot = slot_after


def _carry(
    state: RunView, found: InFlight, item: int, source: int, target: int, start: float, end: float
) -> None:
    if not np.isfinite(end):  # there is no way at present: nobody knows when it arrives
        return
    links = _links(state, source, target)
    home = int(state.static.route_bottleneck[source * len(state.desk.place_up) + target])
    found.carried.append(Carried(item, target, home, start, end))
    for link in links:
        found.link_free[link] = max(float(found.link_free[link]), end)


def _links(state: RunView, source: int, target: int) -> list[int]:
    """The links between two places."""
    problem, at = state.static, source * len(state.desk.place_up) + target
    links: list[int] = problem.route_links[problem.route_ptr[at] : problem.route_ptr[at + 1]].tolist()
    return links
