"""Late-acceptance search over orders, hosts and ways; every trial is a whole list schedule."""

from __future__ import annotations

import numpy as np
from numba import njit

from headrace.planners.coschedule.kernels.schedule import clear, place_all, spread
from headrace.planners.kernels.jit import inner

SPREAD = 0.02
"""Weight of when pools and links are last busy, next to the makespan."""
LIST = 40
"""A trial is taken if it is no worse than what was current so many trials ago."""


@inner
def draw(state, below):
    """A number from 0 up to `below`, by xorshift: the same sequence on every machine."""
    x = state[0]
    x ^= (x << np.uint64(13)) & np.uint64(0xFFFFFFFFFFFFFFFF)
    x ^= x >> np.uint64(7)
    x ^= (x << np.uint64(17)) & np.uint64(0xFFFFFFFFFFFFFFFF)
    state[0] = x
    return np.int64((x >> np.uint64(11)) % np.uint64(below))


@inner
def _shift(order, source, target):
    """Move one entry of the order to another position."""
    job = order[source]
    if source < target:
        for i in range(source, target):
            order[i] = order[i + 1]
    else:
        for i in range(source, target, -1):
            order[i] = order[i - 1]
    order[target] = job


@inner
def _other_host(case, state, job, host):
    """A host that can run the job, drawn; the same one if there is no other."""
    for _ in range(8):
        other = draw(state, len(case.host_place))
        if other != host and case.seconds[job, other] < np.inf:
            return other
    return host


@inner
def _forget_ways(case, choices, job):
    for e in range(case.read_ptr[job], case.read_ptr[job + 1]):
        choices.in_way[e] = -1
    for e in range(case.write_ptr[job], case.write_ptr[job + 1]):
        choices.out_way[e] = -1


@inner
def _copy_ways(case, source, target, job):
    for e in range(case.read_ptr[job], case.read_ptr[job + 1]):
        target.in_way[e] = source.in_way[e]
    for e in range(case.write_ptr[job], case.write_ptr[job + 1]):
        target.out_way[e] = source.out_way[e]


@inner
def _late_position(choices, outcome, first, n, state, value):
    """A position: one time in two of a job that ends late, else any."""
    position = first + draw(state, n - first)
    if draw(state, 2) == 0:
        for _ in range(12):
            if outcome.done[choices.order[position]] >= 0.97 * value:
                return position
            position = first + draw(state, n - first)
    return position


@inner
def _change(case, choices, state, i, k, kind):
    """Change the decisions about the jobs at positions i and k."""
    a, b = choices.order[i], choices.order[k]
    if kind <= 3:
        _shift(choices.order, i, k)
    elif kind == 4:
        choices.order[i], choices.order[k] = b, a
    elif kind <= 6:
        choices.host[a] = _other_host(case, state, a, choices.host[a])
        _forget_ways(case, choices, a)
    elif kind <= 8:
        to_a, to_b = choices.host[b], choices.host[a]
        if case.seconds[a, to_a] < np.inf and case.seconds[b, to_b] < np.inf:
            choices.host[a], choices.host[b] = to_a, to_b
            _forget_ways(case, choices, a)
            _forget_ways(case, choices, b)
    else:
        for e in range(case.read_ptr[a], case.read_ptr[a + 1]):
            choices.in_way[e] = draw(state, 9) - 1
        for e in range(case.write_ptr[a], case.write_ptr[a + 1]):
            choices.out_way[e] = draw(state, 9) - 1


@inner
def _restore(case, choices, kept, i, k, kind):
    if kind <= 3:
        _shift(choices.order, k, i)
        return
    if kind == 4:
        choices.order[i], choices.order[k] = choices.order[k], choices.order[i]
        return
    for position in (i, k):
        job = choices.order[position]
        choices.host[job] = kept.host[job]
        _copy_ways(case, kept, choices, job)


@inner
def _keep(case, choices, kept, i, k):
    """Note accepted hosts and ways of the jobs at two positions."""
    for position in (i, k):
        job = choices.order[position]
        kept.host[job] = choices.host[job]
        _copy_ways(case, choices, kept, job)


@inner
def _score(case, choices, first, board_calendar, steps, copies, outcome, scratch):
    clear(case, choices, board_calendar, steps, copies, outcome)
    value = place_all(case, choices, 0, len(choices.order), board_calendar, steps, copies, outcome, scratch)
    return value, value + SPREAD * spread(case, steps, board_calendar, outcome)


@njit(cache=True)
def search(
    case,
    choices,
    kept,
    best,
    first,
    trials,
    state,
    history,
    numbers,
    calendar,
    steps,
    copies,
    outcome,
    scratch,
):
    """Try so many changes of the jobs from position `first` on; `best` gets the best decisions.

    `numbers` is [trials so far, score now, best value, value now]; with `state` and `history` it lets a search
    go on where it stopped, with the same outcome as one call. Returns whether the board was too small.
    O(trials * list schedule).
    """
    n = len(choices.order)
    for _ in range(trials):
        turn = np.int64(numbers[0])
        numbers[0] += 1.0
        kind = draw(state, 10)
        i = _late_position(choices, outcome, first, n, state, numbers[3])
        k = first + draw(state, n - first)
        if kind <= 1:
            k = min(n - 1, max(first, i + draw(state, 33) - 16))
        _change(case, choices, state, i, k, kind)
        value, score = _score(case, choices, first, calendar, steps, copies, outcome, scratch)
        if calendar.used[1] or steps.used[1]:
            _restore(case, choices, kept, i, k, kind)
            return True
        slot = turn % len(history)
        if score <= history[slot] or score <= numbers[1]:
            numbers[1] = score
            numbers[3] = value
            _keep(case, choices, kept, i, k)
            if value < numbers[2] * (1.0 - 1e-12):
                numbers[2] = value
                best.order[:] = choices.order
                best.host[:] = choices.host
                best.in_way[:] = choices.in_way
                best.out_way[:] = choices.out_way
        else:
            _restore(case, choices, kept, i, k, kind)
        history[slot] = numbers[1]
    return False
