"""What the replay of a plan in time keeps of events, flows, and of the pairs of places and links they use.

A *pair* is two places that transfers go between. All its flows have the same links, and therefore the same rate, so
one clock of bytes served to each of them is enough: a flow that joins has its *goal* that many bytes ahead.
"""

from __future__ import annotations

import numpy as np

EVENT = np.dtype([("time", np.float64), ("node", np.int32)], align=True)

FLOW = np.dtype([("goal", np.float64), ("child", np.int32), ("sibling", np.int32)], align=True)
"""A transfer that shares links; child and sibling are those of the pair's heap of flows."""

PAIR = np.dtype(
    [
        ("served", np.float64),  # bytes each of its flows has got since the pair was last idle
        ("since", np.float64),  # the moment of `served`
        ("rate", np.float64),  # of each flow; below 0 while it is being worked out
        ("end", np.float64),  # when its first flow is over
        ("flows", np.int32),
        ("root", np.int32),  # the flow with the least goal, or -1
        ("place", np.int32),  # in the heap of pairs, or -1
        ("mark", np.int32),
        ("first", np.int32),  # its steps are steps[first:last]
        ("last", np.int32),
    ],
    align=True,
)

STEP = np.dtype(
    [("link", np.int32), ("pair", np.int32), ("before", np.int32), ("after", np.int32)], align=True
)
"""One link on the way of a pair; while the pair has flows, in the list of the link's active pairs."""

LINK = np.dtype(
    [
        ("bandwidth", np.float64),
        ("left", np.float64),
        ("users", np.float64),
        ("head", np.int32),  # the first step of its list, or -1
        ("mark", np.int32),
    ],
    align=True,
)

READY, EVENTS, PAIRS, TOUCHED, MARK, REACHED = range(6)
"""Counters: nodes to start now, events to come, pairs with flows, links whose flows changed, ..."""
COUNTERS = 6
