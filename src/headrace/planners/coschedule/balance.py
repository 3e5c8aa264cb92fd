"""Jobs exchanged between cores, also of different hosts, so that all cores end alike."""

from __future__ import annotations

import numpy as np

from headrace.arrays import Int64s
from headrace.model.graph import Floats, Ints

MOST_EXCHANGES = 20
"""Most exchanges for each core."""


def balanced(jobs: Ints, host: Ints, busy: Floats, seconds: Floats) -> Int64s:
    """The core of each job: longest first, then the core that ends last exchanges a job while that helps.

    `host` is that of each core and `busy` when it is free; `seconds` are run times [jobs, hosts]. Each exchange is the
    one after which the later of its two cores ends first; a job may also move alone. O(jobs * cores * exchanges).
    """
    run = seconds[np.ix_(jobs, host)]
    core, end = _longest_first(run, busy.copy())
    for _ in range(MOST_EXCHANGES * len(host)):
        last = int(np.argmax(end))
        mine, others = np.flatnonzero(core == last), np.flatnonzero(core != last)
        if not len(mine):
            break
        to = np.concatenate((core[others], np.arange(len(host))))
        back = np.concatenate((run[others, last], np.zeros(len(host))))
        gone = np.concatenate((run[others, core[others]], np.zeros(len(host))))
        here = end[last] - run[mine, last][:, None] + back
        there = end[to] - gone + run[mine][:, to]
        later = np.maximum(here, there)
        later[:, len(others) + last] = np.inf
        a, b = divmod(int(np.argmin(later)), len(to))
        if not later[a, b] < end[last] * (1.0 - 1e-9):
            break
        end[last], end[to[b]] = here[a, b], there[a, b]
        core[mine[a]] = to[b]
        if b < len(others):
            core[others[b]] = last
    return core


def _longest_first(run: Floats, end: Floats) -> tuple[Int64s, Floats]:
    """Each job, the longest first, on the core where it ends first."""
    core = np.zeros(len(run), np.int64)
    for k in np.argsort(-run.min(axis=1), kind="stable").tolist():
        core[k] = int(np.argmin(end + run[k]))
        end[core[k]] += run[k, core[k]]
    return core, end
