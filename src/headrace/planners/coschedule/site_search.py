"""Search over which jobs run at which sites with small disks, and in which order; all other hosts are one pool.

Seconds by which deliveries exceed a target are added up over all jobs, and core-seconds by which the pool does. Unlike
the makespan, the sum gets better with each single job that gets nearer to the target. Once it is zero, the target is
lowered. A change costs simulations of the one or two sites that it concerns.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry, leaf
from headrace.planners.coschedule.site_records import LEFT_OUT, SiteArrays, SiteChoice, SiteRun, Trial
from headrace.planners.coschedule.site_schedule import STEPS, simulate_site
from headrace.planners.search.random_numbers import RandomState, next_random

LOWER = 1e-3
"""Share by which the target is lowered when it has been met."""
_ORDER, _KEEP, _ADD, _REMOVE = 0.25, 0.27, 0.34, 0.41
"""Up to which random number each kind of change is made; above, two jobs change places."""
_MOST_KEPT = 5
_NEAR = 4
_IMPOSSIBLE = 1e12
POOL, EXCESS, TARGET, MET = 0, 1, 2, 3


@leaf
def _draw(random: RandomState, count: int) -> int:
    return min(count - 1, int(next_random(random) * count))


@leaf
def _excess(arrays: SiteArrays, run: SiteRun, trial: Trial, which: int, keep: int, target: float) -> float:
    """Simulate a list; returns the seconds by which its deliveries exceed the target."""
    jobs, count = trial.order[which], trial.length[which]
    if not simulate_site(arrays, run, jobs, count, trial.site[which], keep):
        return _IMPOSSIBLE
    total = 0.0
    for k in range(count):
        total += max(0.0, run.delivered[jobs[k]] - target)
    return float(total)


@leaf
def _pool_excess(arrays: SiteArrays, pool: float, target: float) -> float:
    return arrays.pool_cores * max(0.0, pool + arrays.pool_slack - target)


@leaf
def _take_list(choice: SiteChoice, trial: Trial, which: int, site: int) -> None:
    trial.site[which] = site
    trial.length[which] = choice.length[site]
    for k in range(choice.length[site]):
        trial.order[which, k] = choice.order[site, k]


@leaf
def _shift(trial: Trial, a: int, b: int) -> None:
    """Move the job at position a of the first list to position b."""
    job, order = trial.order[0, a], trial.order
    step = 1 if a < b else -1
    for k in range(a, b, step):
        order[0, k] = order[0, k + step]
    order[0, b] = job


@leaf
def _reorder(trial: Trial, random: RandomState) -> bool:
    count = trial.length[0]
    if count < 2:
        return False
    a, b = _draw(random, count), _draw(random, count)
    if next_random(random) < 0.5:
        b = min(count - 1, max(0, a + _draw(random, 2 * _NEAR + 1) - _NEAR))
    if next_random(random) < 0.4:
        trial.order[0, a], trial.order[0, b] = trial.order[0, b], trial.order[0, a]
    else:
        _shift(trial, a, b)
    return a != b


@leaf
def _add(arrays: SiteArrays, choice: SiteChoice, trial: Trial, random: RandomState) -> bool:
    """A job of the pool joins the site."""
    job, count = _draw(random, len(choice.site)), trial.length[0]
    if choice.site[job] != LEFT_OUT or arrays.seconds[trial.site[0], job] == np.inf:
        return False
    trial.order[0, count] = job
    trial.length[0] += 1
    _shift(trial, count, _draw(random, count + 1))
    trial.moved[0] = job
    return True


@leaf
def _remove(arrays: SiteArrays, trial: Trial, random: RandomState) -> bool:
    """A job goes to the pool."""
    count = trial.length[0]
    if count == 0:
        return False
    at = _draw(random, count)
    job = trial.order[0, at]
    _shift(trial, at, count - 1)
    trial.length[0] -= 1
    trial.moved[1] = job
    return bool(arrays.pool_seconds[job] < np.inf)


@leaf
def _exchange(arrays: SiteArrays, choice: SiteChoice, trial: Trial, random: RandomState) -> bool:
    """A job changes places with one of the pool or of another site."""
    count, site = trial.length[0], trial.site[0]
    job = _draw(random, len(choice.site))
    other = choice.site[job]
    if count == 0 or other == site or arrays.seconds[site, job] == np.inf:
        return False
    at = _draw(random, count)
    leaving = trial.order[0, at]
    away = arrays.pool_seconds[leaving] if other == LEFT_OUT else arrays.seconds[other, leaving]
    trial.order[0, at] = job
    if next_random(random) < 0.5:
        _shift(trial, at, _draw(random, count))
    trial.moved[0], trial.moved[1] = job, leaving
    if other != LEFT_OUT:
        _take_list(choice, trial, 1, other)
        for k in range(trial.length[1]):
            if trial.order[1, k] == job:
                trial.order[1, k] = leaving
    return bool(away < np.inf)


@leaf
def _change(arrays: SiteArrays, choice: SiteChoice, trial: Trial, random: RandomState) -> bool:
    """Draw a change; False if there is none of the kind that was drawn."""
    site = _draw(random, len(choice.length))
    _take_list(choice, trial, 0, site)
    trial.site[1] = -1
    trial.moved[:] = -1
    trial.keep[0] = choice.keep[site]
    kind = next_random(random)
    if kind < _ORDER:
        return _reorder(trial, random)
    if kind < _KEEP:
        trial.keep[0] = _draw(random, _MOST_KEPT)
        return bool(trial.keep[0] != choice.keep[site])
    if kind < _ADD:
        return _add(arrays, choice, trial, random)
    if kind < _REMOVE:
        return _remove(arrays, trial, random)
    return _exchange(arrays, choice, trial, random)


@leaf
def _pool_after(arrays: SiteArrays, choice: SiteChoice, trial: Trial) -> float:
    pool = choice.totals[POOL]
    if trial.site[1] < 0:
        if trial.moved[0] >= 0:
            pool -= arrays.pool_seconds[trial.moved[0]]
        if trial.moved[1] >= 0:
            pool += arrays.pool_seconds[trial.moved[1]]
    return float(pool)


@leaf
def _try(
    arrays: SiteArrays, run: SiteRun, choice: SiteChoice, trial: Trial, pool: float, limit: float
) -> float:
    """The excess of all after a change, or more than the limit as soon as that is certain."""
    target = choice.totals[TARGET]
    total = choice.totals[EXCESS] - choice.excess[trial.site[0]]
    total += _pool_excess(arrays, pool, target) - _pool_excess(arrays, choice.totals[POOL], target)
    if trial.site[1] >= 0:
        total -= choice.excess[trial.site[1]]
    for which in range(2):
        site = trial.site[which]
        if site < 0 or total > limit:
            break
        keep = trial.keep[0] if which == 0 else choice.keep[site]
        trial.excess[which] = _excess(arrays, run, trial, which, keep, target)
        total += trial.excess[which]
    return float(total)


@leaf
def _accept(choice: SiteChoice, trial: Trial, pool: float, total: float) -> None:
    choice.keep[trial.site[0]] = trial.keep[0]
    for which in range(2):
        site = trial.site[which]
        if site >= 0:
            choice.length[site] = trial.length[which]
            choice.excess[site] = trial.excess[which]
            for k in range(trial.length[which]):
                choice.order[site, k] = trial.order[which, k]
    if trial.moved[0] >= 0:
        choice.site[trial.moved[0]] = trial.site[0]
    if trial.moved[1] >= 0:
        choice.site[trial.moved[1]] = trial.site[1] if trial.site[1] >= 0 else LEFT_OUT
    choice.totals[POOL], choice.totals[EXCESS] = pool, total


@leaf
def _aim(arrays: SiteArrays, run: SiteRun, choice: SiteChoice, trial: Trial, target: float) -> None:
    """Set the target and what exceeds it."""
    pool = 0.0
    for job in range(len(choice.site)):
        if choice.site[job] == LEFT_OUT:
            pool += arrays.pool_seconds[job]
    total = _pool_excess(arrays, pool, target)
    for site in range(len(choice.length)):
        _take_list(choice, trial, 0, site)
        choice.excess[site] = _excess(arrays, run, trial, 0, choice.keep[site], target)
        total += choice.excess[site]
    choice.totals[POOL], choice.totals[EXCESS], choice.totals[TARGET] = pool, total, target


@leaf
def _keep_best(choice: SiteChoice, best: SiteChoice) -> None:
    choice.totals[MET] = choice.totals[TARGET]
    for site in range(len(choice.length)):
        best.length[site] = choice.length[site]
        best.keep[site] = choice.keep[site]
        for k in range(choice.length[site]):
            best.order[site, k] = choice.order[site, k]
    for job in range(len(choice.site)):
        best.site[job] = choice.site[job]
    for k in range(len(choice.totals)):
        best.totals[k] = choice.totals[k]


@entry(nogil=True)
def search_sites(
    arrays: SiteArrays,
    run: SiteRun,
    choice: SiteChoice,
    best: SiteChoice,
    trial: Trial,
    random: RandomState,
    first: int,
    until: int,
    total: int,
    temperature: float,
) -> int:
    """Anneal a choice from this step of work on; `best` is the last choice that met its target.

    Returns the step that is next. The temperature falls to 0 at the step `total`; one step is a change, or a job that a
    simulation looks at.
    """
    run.counter[STEPS] = 0
    if first == 0:
        _aim(arrays, run, choice, trial, choice.totals[TARGET])
    tried, done = first, first
    while done < until:
        while choice.totals[EXCESS] <= 1e-6:
            _keep_best(choice, best)
            _aim(arrays, run, choice, trial, choice.totals[TARGET] * (1.0 - LOWER))
        tried += 1
        done = tried + run.counter[STEPS]
        if not _change(arrays, choice, trial, random):
            continue
        pool = _pool_after(arrays, choice, trial)
        heat = temperature * max(0.0, 1.0 - done / total)
        limit = choice.totals[EXCESS] - heat * np.log(1.0 - next_random(random))
        excess = _try(arrays, run, choice, trial, pool, limit)
        if excess <= limit:
            _accept(choice, trial, pool, excess)
    return done
