"""Plans from the search over sites with small disks."""

from __future__ import annotations

import contextlib

import numpy as np

from headrace.model.errors import BadPlan
from headrace.model.plan import Plan
from headrace.planners.coschedule.assembly import assembled
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.judge import is_valid
from headrace.planners.coschedule.lp import Relaxer
from headrace.planners.coschedule.site_records import copied, new_run, new_trial
from headrace.planners.coschedule.site_search import MET, TARGET, search_sites
from headrace.planners.coschedule.sites import Sites, chosen_by
from headrace.planners.search.random_numbers import random_state
from headrace.simulator.replay.replay import replay

UNUSED = 0.03, 0.1, 0.3
"""Shares of hosts, links and disks that the relaxation from which the search starts leaves unused."""
FROM = 1.2
"""The first target, as a multiple of the bound."""
TEMPERATURE = 1.5e-3
"""The first temperature, as a share of the bound."""


class SiteSearch:
    """Anneals which jobs run at which sites, and makes a plan of what it finds.

    Each time it starts from the relaxation, with other random numbers.
    """

    def __init__(self, instance: Instance, sites: Sites, relaxer: Relaxer, seed: int, worker: int) -> None:
        self._instance, self._sites, self._bound = instance, sites, relaxer.bound
        links = instance.problem.platform.network.n_links
        counts = (len(instance.host_place), links, len(instance.storage))
        self._first = chosen_by(sites, relaxer.solve_with_unused(np.repeat(UNUSED, counts)).share)
        self._first.totals[TARGET] = FROM * relaxer.bound
        self._run, self._trial = new_run(sites.arrays), new_trial(instance.n)
        self._seed = 2 * seed + worker
        self._done = self._steps = 0
        self._choice, self._best = self._first, self._first

    @property
    def met(self) -> float:
        """The smallest target that has been met."""
        return float(self._best.totals[MET])

    def begin(self, steps: int) -> None:
        """Begin to anneal for this many steps of work."""
        self._seed += 1_000_003
        self._random = random_state(self._seed)
        self._choice, self._best = copied(self._first), copied(self._first)
        self._done, self._steps = 0, steps

    def go_on(self, steps: int) -> Plan | None:
        """Make some of these steps; returns a plan if a lower target has been met."""
        before = self.met
        self._done = search_sites(
            self._sites.arrays,
            self._run,
            self._choice,
            self._best,
            self._trial,
            self._random,
            self._done,
            min(self._steps, self._done + steps),
            self._steps,
            TEMPERATURE * self._bound,
        )
        return self._plan() if self.met < before else None

    def _plan(self) -> Plan | None:
        """The plan of the best choice; None if it is not valid."""
        problem = self._instance.problem
        with contextlib.suppress(BadPlan):  # orders of jobs and transfers that wait for each other
            made = assembled(self._instance, self._sites, self._best, self._run)
            plan = replay(made, holders=problem.holders)
            return plan if is_valid(plan, problem) else None
        return None
