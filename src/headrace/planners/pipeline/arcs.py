"""The network between zones as arcs on which the program has flows.

Where deployments choose routes, an arc is one direction of a link, and the flow of a stream is conserved at every site
and at the hub. All routes are thereby possible, and there are S L columns for S streams and L arcs. Where routes are
fixed, an arc is the whole route between two zones: S Z² columns for Z zones.

The weight of a flow depends on the two clusters at its ends. If it is the same for all pairs, what enters the network
is one commodity for each stream; otherwise there is one for each stream and cluster of origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.model.check_case import Numbers
from headrace.model.graph import Bools, Floats
from headrace.model.link_graph import link_graph
from headrace.model.pipeline import PipelineProblem

_REFERENCE_SIZE = 1e6
"""Of two routes, the one on which so many bytes take less time is preferred."""


class Incidence(NamedTuple):
    """Links and segments, by number, each with two zones between which it carries flows."""

    row: Numbers
    source: Numbers
    target: Numbers


@dataclass(frozen=True, eq=False)
class Arcs:
    """The arcs, with the links and segments that they load."""

    tail: Numbers
    head: Numbers
    seconds: Floats
    """Time of a small transfer."""
    link: Numbers
    """The link of each arc by its number in the network; -1 for none, or where arcs are whole routes."""
    n_nodes: int
    send: Numbers
    """The node at which flows of each zone enter, ..."""
    receive: Numbers
    """... and that at which they leave."""
    weight: Floats
    """W_C of the flow on each arc, where arcs are whole routes; else 0."""
    fixed: bool
    """Whether arcs are whole routes."""
    by_origin: bool
    """Whether there is a commodity for each zone of origin."""
    arc_rows: tuple[Numbers, Numbers]
    """Rows, and arcs that load them."""
    end_rows: tuple[Numbers, Numbers]
    """Rows, and zones whose flows from and to others load them."""
    inside_rows: tuple[Numbers, Numbers]
    """Rows, and zones whose inner flows load them."""
    inhabited: Bools
    """Zones with hosts."""

    @property
    def commodities(self) -> int:
        """For each stream."""
        return len(self.send) if self.by_origin else 1


def find_arcs(
    problem: PipelineProblem, routed: Bools, weight: Floats, links: dict[int, int], quickest: Incidence
) -> Arcs:
    """O(links), or O(zones squared) for fixed routes; `links` has the row of each link."""
    if problem.routes == "quickest" or problem.platform.pairs is not None:
        return _whole_routes(routed, weight, quickest)
    return _single_links(problem, routed, weight, links)


def _whole_routes(routed: Bools, weight: Floats, quickest: Incidence) -> Arcs:
    n = len(routed)
    pairs = np.argwhere(routed & ~np.eye(n, dtype=bool))
    number = np.full((n, n), -1, np.int64)
    number[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    at = number[quickest.source, quickest.target]
    none = np.empty(0, np.int64)
    within = quickest.source == quickest.target
    return Arcs(
        tail=pairs[:, 0],
        head=n + pairs[:, 1],
        seconds=np.zeros(len(pairs)),
        link=np.full(len(pairs), -1),
        n_nodes=2 * n,
        send=np.arange(n),
        receive=n + np.arange(n),
        weight=weight[pairs[:, 0], pairs[:, 1]],
        fixed=True,
        by_origin=False,
        arc_rows=(quickest.row[~within], at[~within]),
        end_rows=(none, none),
        inside_rows=(quickest.row[within], quickest.source[within]),
        inhabited=np.diag(routed).copy(),
    )


def _single_links(problem: PipelineProblem, routed: Bools, weight: Floats, links: dict[int, int]) -> Arcs:
    platform = problem.platform
    edges = link_graph(platform)
    n = len(routed)
    hub = n
    inhabited = np.diag(routed).copy()
    tail = np.array([e.tail for e in edges], np.int64)
    head = np.array([e.head for e in edges], np.int64)
    receive = np.arange(n)
    if platform.routing == "links":  # no way through a site
        receive = n + 1 + receive
        head = np.where(head == hub, hub, head + n + 1)
    link = np.array([e.link for e in edges], np.int64)
    limited = np.flatnonzero(link >= 0)
    row = np.array([links[number] for number in link[limited].tolist()], np.int64)
    names = [s.name for s in platform.sites]
    shared = np.array([names.index(site) for site in problem.segments], np.int64)
    segments = (len(links) + np.arange(len(shared)), shared)
    return Arcs(
        tail=tail,
        head=head,
        seconds=np.array([e.latency + _REFERENCE_SIZE / e.bandwidth for e in edges]),
        link=link,
        n_nodes=2 * n + 1,
        send=np.arange(n),
        receive=receive,
        weight=np.zeros(len(edges)),
        fixed=False,
        by_origin=_uneven(weight, inhabited),
        arc_rows=(row, limited),
        end_rows=segments,
        inside_rows=segments,
        inhabited=inhabited,
    )


def _uneven(weight: Floats, inhabited: Bools) -> bool:
    """Whether flows between clusters must be told apart by their origin.

    Not if all weigh the same and no more than flows inside clusters: then none gains by leaving and coming back.
    """
    here = np.flatnonzero(inhabited)
    across = weight[np.ix_(here, here)][~np.eye(len(here), dtype=bool)]
    if not len(across):
        return False
    return bool(np.ptp(across) > 0 or across.max() > weight[here, here].min())
