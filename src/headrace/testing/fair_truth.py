"""Expected end times of transfers over fairly shared links, computed without the simulator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.testing.grid_truth import Pieces


@dataclass
class Flow:
    """A transfer over links, from its start time."""

    begin: float
    size: float
    route: tuple[int, ...]
    over: float = math.inf
    """When it ended according to the log ..."""
    arrived: bool = False
    """... and whether it had arrived or was aborted."""
    end: float = math.inf
    """When it must end; set by `finish_flows`."""

    @property
    def gone(self) -> float:
        """When it releases its links without having arrived."""
        return math.inf if self.arrived else self.over


def finish_flows(flows: Sequence[Flow], bandwidth: Sequence[Pieces]) -> None:
    """Share all links max-min fairly between any two changes; sets `end`.

    O(changes * concurrent flows * links of a route).
    """
    waiting = [k for k, flow in enumerate(flows) if flow.begin < flow.gone]
    waiting.sort(key=lambda k: (-flows[k].begin, -k))
    left: dict[int, float] = {}
    now = 0.0
    while waiting or left:
        if not left:
            now = max(now, flows[waiting[-1]].begin)
        while waiting and flows[waiting[-1]].begin <= now:
            k = waiting.pop()
            left[k] = flows[k].size
        for k in [k for k in left if flows[k].gone <= now]:
            del left[k]
        rates = max_min({k: flows[k].route for k in left}, bandwidth, now)
        ends = {k: now + left[k] / rates[k] if rates[k] > 0 else math.inf for k in left}
        step = min(
            (bandwidth[link].next_step(now) for k in left for link in flows[k].route), default=math.inf
        )
        begins = flows[waiting[-1]].begin if waiting else math.inf
        leaves = min((flows[k].gone for k in left), default=math.inf)
        after = min([*ends.values(), step, begins, leaves])
        if after == math.inf:
            return
        for k in list(left):
            left[k] -= rates[k] * (after - now)
            if ends[k] <= after:
                flows[k].end = after
                del left[k]
        now = after


def max_min(routes: dict[int, tuple[int, ...]], bandwidth: Sequence[Pieces], now: float) -> dict[int, float]:
    """Max-min fair rates: the link with the smallest fair share fixes its flows; repeat with the rest.

    >>> share = max_min({0: (0,), 1: (0, 1)}, [Pieces(10.0, None), Pieces(2.0, None)], 0.0)
    >>> share[0], share[1]
    (8.0, 2.0)
    """
    room = {link: bandwidth[link].at(now) for route in routes.values() for link in route}
    rates: dict[int, float] = {}
    while len(rates) < len(routes):
        users: dict[int, list[int]] = {}
        for k, route in routes.items():
            if k not in rates:
                for link in route:
                    users.setdefault(link, []).append(k)
        tightest = min(users, key=lambda link: (max(0.0, room[link]) / len(users[link]), link))
        share = max(0.0, room[tightest]) / len(users[tightest])
        for k in users[tightest]:
            rates[k] = share
            for link in routes[k]:
                room[link] -= share
    return rates
