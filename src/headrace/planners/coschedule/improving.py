"""The steps by which a co-schedule gets better, one after another, until the time is used up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.model.bound import Bound
from headrace.model.errors import NoPlan
from headrace.model.graph import Floats, Ints
from headrace.model.plan import Plan
from headrace.planners.coschedule.cp import FEW_CHOICES, MOST_CHOICES
from headrace.planners.coschedule.instance import Instance
from headrace.planners.coschedule.judge import is_valid, with_executed_times
from headrace.planners.coschedule.large_search import LargeSearch
from headrace.planners.coschedule.list_scheduler import Decisions, undecided_paths
from headrace.planners.coschedule.lp import Relaxer, rounded
from headrace.planners.coschedule.orders import mixed, rules, topological
from headrace.planners.coschedule.relaxation import least_times, quick_bound
from headrace.planners.coschedule.schedule_jobs import FAILED
from headrace.planners.coschedule.site_planning import SiteSearch
from headrace.planners.coschedule.sites import Sites, sites_of
from headrace.planners.coschedule.workers import WORKERS, SearchWorker
from headrace.planners.side_by_side import rounds_of, together

Tell = Callable[[float, float, float], None]
"""Called with elapsed seconds, makespan and bound whenever the makespan or the bound improves."""
WEIGHED = "work over cores, or the longest job"
RELAXED = "work, files and disks over hosts and links"
EXACT = "exact model"
"""What proves a bound."""
ROUNDS = 6
"""Number of rounds in which the relaxation learns from the idle times of the best list schedule."""
FIRST_DISPATCHES = 8
"""Number of list schedules that decide hosts as they go, in each worker, after the relaxation is solved."""
MOST_DISPATCHES, DISPATCHING = 1000, 0.25
"""Most further ones in a stage, and the share of its time for them."""
SITES, SITE_STEP = 0.4, 6e-8
"""Share of the time of a stage for the search over sites with small disks; seconds for one of its steps."""
FIRST_STAGE, FIRST_STAGE_OF_JOB = 2.0, 0.01
"""Least seconds of the first stage, in all and for each job; each further one is twice as long."""
DISPATCH, LONG_CALENDAR = 1.8e-6, 700
"""Seconds for each job that a host looks at in such a list schedule; twice as many with this many jobs, and so on."""
LONG_SEARCH = 2500
"""A list schedule of this many jobs takes twice as long for each job."""
SMALL_DISKS = 3.0
"""How many times as long list schedules take where disks are limited."""
SMALL = 40
"""Number of jobs below which only a part of these list schedules is made: the exact model and search do better."""
FIRST_SEARCH, FIRST_SEARCH_OF_JOB = 0.3, 5e-3
"""Most seconds of search before the exact model is tried, in all and for each job."""
FIRST_SOLVING, MOST_SOLVING = 1.0, 60.0
"""Seconds of work for the exact model, before all else if there are few choices, and later; the search continues."""
SEARCH, LARGE_SEARCH = 3.0, 1.5
"""Seconds of local search, and of search in large neighbourhoods, in each round."""
MORE_DISPATCHES = 3
"""Number of further list schedules that decide hosts as they go, in each round."""
SITE_PARTS = 8
"""Number of parts of that search, most of at least a second, that are followed by a plan;"""
ASSEMBLY_OF_JOB = 1e-3
"""and the seconds for each of its jobs."""
LONGEST_PAUSE = 8
"""Most rounds for which a step that finds nothing is left out."""
CHUNKS = (200, 100, 50, 400, 25)
"""Numbers of jobs in a chunk that are tried next to the whole, one in each stage."""
CHUNK_SECONDS = 4e-3
"""Seconds for each job of a plan in chunks."""
_OPTIMAL = 1.0 + 1e-9


class Improving:
    """The best plan so far, the proven bound, and the remaining time, which is counted work, not measured seconds."""

    def __init__(self, instance: Instance, began: float, seconds: float, tell: Tell) -> None:
        self.instance = instance
        workers = WORKERS if instance.n >= SMALL else 1
        self._workers = [SearchWorker(number, instance, workers) for number in range(workers)]
        self._turns = rounds_of(workers)
        self.scheduler = self._workers[0].scheduler
        self.began = began
        self.seconds = seconds
        self.tell = tell
        self.bound = Bound(quick_bound(instance), WEIGHED)
        self.value = np.inf
        self.decisions: Decisions | None = None
        self.exact: Plan | None = None
        self.executed: Plan | None = None
        """The best plan with the times of its execution, where links are shared fairly."""
        self._neighbours: LargeSearch | None = None
        self._sites: Sites | None = sites_of(instance) if instance.n >= SMALL else None
        self._site_searches: list[SiteSearch] = []
        self._sites_share = SITES
        self._waits, self._pauses = [0, 0, 0], [1, 1, 1]
        """Of the three steps of a round: for how many it is left out, and for how many it was."""
        self.left = 0.85 * seconds
        """Remaining seconds of work, as estimated for a machine of ordinary speed."""

    def cost(self, count: int = 1) -> float:
        """Seconds that `count` list schedules take."""
        instance = self.instance
        entries = instance.n + len(instance.reads) + len(instance.writes)
        return count * (1.5e-4 + self._slower * 4.8e-7 * entries * (1 + instance.n / LONG_SEARCH))

    @property
    def _slower(self) -> float:
        limited = self.scheduler.arrays.limited_storage and self.instance.n >= SMALL
        return SMALL_DISKS if limited else 1.0

    @property
    def latest(self) -> float:
        """The time on the work clock by which the search ends on a slow machine."""
        return self.began + 1.25 * self.seconds + 2

    @property
    def overdue(self) -> bool:
        return work_clock() > self.latest

    @property
    def optimal(self) -> bool:
        return self.value <= self.bound * _OPTIMAL

    @property
    def _late(self) -> bool:
        """Whether the best plan so far misses deadlines, for which its value has a penalty."""
        return self.value > self.plan("").makespan * (1 + 1e-9) + 1e-6

    def prove(self, bound: float, name: str) -> None:
        if bound > self.bound:
            self.bound = Bound(bound, name)
            self._say()

    def offer(self, value: float, decisions: Decisions | None = None, exact: Plan | None = None) -> bool:
        """Keep decisions (or a plan) if they are better; returns whether they are."""
        if value >= self.value * (1 - 1e-12):
            return False
        self.value = value
        self.decisions = None if decisions is None else decisions.copy()
        self.exact = exact
        if self.instance.problem.platform.contention == "fair" and value < FAILED:
            self._execute(value, self.plan(""))
        self._say()
        return True

    def _execute(self, value: float, plan: Plan) -> None:
        """Where links are shared fairly, keep the plan that is shortest when it is carried out, if it is not late."""
        if value > plan.makespan * (1 + 1e-9) + 1e-6:
            return
        done = with_executed_times(plan, self.instance.problem)
        if self.executed is None or done.makespan < self.executed.makespan:
            self.executed = done

    def _say(self) -> None:
        if self.value < FAILED:
            value = self.value if self.executed is None else self.executed.makespan
            self.tell(work_clock() - self.began, value, self.bound)

    def run(self) -> None:
        """Run all steps in turn while there is time and the plan is not proven optimal."""
        self._comparators()
        self._simple()
        self._dispatch(1)
        if not self.optimal and self.left > 0:
            self._solved(FEW_CHOICES, FIRST_SOLVING)
        if not self.optimal and self.left > 0:
            self._relaxed()
        if self.instance.n >= SMALL:
            self._dispatch(FIRST_DISPATCHES)
        stage = 0
        while not self.optimal and not self.overdue and self.left > 0:
            self._stage(stage)
            stage += 1
            if self.value >= FAILED and self.instance.n < SMALL:
                return  # there is nothing to search from

    def _stage(self, stage: int) -> None:
        """List schedules that decide hosts as they go, a plan in chunks, and searches.

        How long each part of a stage takes does not depend on the time limit: with more time the same steps are made
        first, and the plan is no worse.
        """
        instance = self.instance
        seconds = max(FIRST_STAGE, FIRST_STAGE_OF_JOB * instance.n) * 2.0**stage
        until = self.left - seconds
        if instance.n >= SMALL:
            self._by_sites(self._sites_share * seconds)
            self._dispatch(MOST_DISPATCHES, DISPATCHING * seconds)
        if stage == 0:
            if self.optimal or self.left <= 0 or self.overdue:
                return
            self._searched(min(FIRST_SEARCH, FIRST_SEARCH_OF_JOB * instance.n))
            if not self.optimal and self.left > 0:
                self._solved(MOST_CHOICES, MOST_SOLVING)
        if stage < len(CHUNKS) and 2 * CHUNKS[stage] <= instance.n and not self.optimal and self.left > 0:
            self.chunks(CHUNKS[stage], CHUNK_SECONDS * instance.n)
        self._rounds(until)

    def _rounds(self, until: float) -> None:
        """Local search in turns with the others; one that finds nothing is left out for more and more rounds."""
        steps: tuple[Callable[[], None], ...] = (self._searched, self._large, self._dispatch)
        while not self.optimal and not self.overdue and self.left > max(0.0, until) and self.value < FAILED:
            for k, step in enumerate(steps):
                self._waits[k] -= 1
                if self._waits[k] >= 0:
                    continue
                before = self.value
                step()
                self._pauses[k] = 0 if self.value < before else min(1 + 2 * self._pauses[k], LONGEST_PAUSE)
                self._waits[k] = self._pauses[k]

    def in_chunks(self, size: int) -> None:
        """Plan the jobs in chunks; as a whole only if chunks do not fit on the disks."""
        relaxer = Relaxer(self.instance)
        relaxer.solve()
        self.prove(relaxer.bound, RELAXED)
        self.chunks(size, self.left)
        if self.value >= FAILED:
            self._simple()
            self.left = max(self.left, 10.0)
            self._dispatch(FIRST_DISPATCHES)

    def chunks(self, size: int, seconds: float) -> None:
        """Plan the jobs in chunks."""
        from headrace.planners.coschedule.chunks import chunked

        decisions = chunked(self, size, min(seconds, max(0.0, self.left)))
        self.offer(self.scheduler.value(decisions), decisions)

    def _comparators(self) -> None:
        """Offer the plans of all comparators, whatever the time: the answer is never worse."""
        for decisions in comparators(self.instance):
            value = self.scheduler.value(decisions)
            self.offer(value, decisions)
            if self.instance.problem.platform.contention == "fair" and value < FAILED:
                self._execute(value, self.scheduler.plan(decisions, ""))

    def _simple(self) -> None:
        """Get a first plan quickly, from list schedules of simple decisions."""
        for decisions in simple_starts(self.instance):
            self.left -= self.cost()
            self.offer(self.scheduler.value(decisions), decisions)
            if self.left < 0 and self.value < FAILED:
                return

    def _dispatch(self, count: int = MORE_DISPATCHES, seconds: float = np.inf) -> None:
        """Make list schedules that decide hosts as they go, up to this number and for these seconds of work."""
        n, until = self.instance.n, max(0.0, self.left - seconds)
        for _ in range(count):
            if self.left < until or self.optimal or self.overdue:
                return
            dispatcher = self._workers[0].dispatcher
            looks = n * min(n, dispatcher.width)
            each = self.cost() + DISPATCH * self._slower * (1 + n / LONG_CALENDAR) * looks
            for value, decisions in together([worker.dispatcher.next for worker in self._workers]):
                self.offer(value, decisions)
            most = max(worker.dispatcher.solved for worker in self._workers)
            self.left -= self._turns * (each + solving(most))

    def _relaxed(self) -> None:
        """Make list schedules of the relaxation, which learns from them: first with queues, then only idle times."""
        relaxer = Relaxer(self.instance)
        for queues in (True, False) if relaxer.has_queues else (False,):
            learned = None
            for _ in range(ROUNDS):
                here = self._round(relaxer, learned, queues)
                if self.left < 0 or self.optimal or self.overdue or here is None:
                    break
                learned = here if learned is None else 0.5 * (learned + here)

    def _round(self, relaxer: Relaxer, learned: Floats | None, queues: bool) -> Floats | None:
        """Solve the relaxation and make list schedules by all rules; returns what is learned from the best one."""
        plain = np.arange(self.instance.n, dtype=np.int32)
        first = rounded(self.instance, relaxer.solve(learned), plain)
        for worker in self._workers:
            worker.know(relaxer)
        self.prove(relaxer.bound, RELAXED)
        here, value, least = None, np.inf, np.full(len(self.instance.host_place), np.inf)
        for decisions in self._ordered(first):
            trial = self.scheduler.value(decisions)
            self.offer(trial, decisions)
            if trial < FAILED:
                seen = relaxer.learned(self.scheduler, decisions, trial, queues)
                least = np.minimum(least, seen[: len(least)])
                here, value = (seen, trial) if trial < value else (here, value)
        self.left -= self.cost(15) + solving(relaxer.size)
        if here is not None:
            here[: len(least)] = least  # each host can use its best rule
        return here

    def _ordered(self, first: Decisions) -> Iterator[Decisions]:
        """The same hosts and paths in the order of each rule, and of the best rule per host."""
        orders, ends = [], []
        for _, order in rules(self.instance, first.host):
            yield replace(first, order=order)
            orders.append(order)
            ends.append(self.scheduler.ends(order))
        yield replace(first, order=mixed(self.instance, first.host, orders, ends))

    def _by_sites(self, seconds: float) -> None:
        """Search over which jobs run at which sites with small disks."""
        if self._sites is None or self.optimal:
            return
        if not self._site_searches:
            relaxer, seed = Relaxer(self.instance), self.instance.problem.seed
            relaxer.solve()
            self._site_searches = [
                SiteSearch(self.instance, self._sites, relaxer, seed, worker.number)
                for worker in self._workers
            ]
            self.left -= 3 * solving(relaxer.size)
        for search in self._site_searches:
            search.begin(int(seconds / (SITE_STEP * self._turns)))
        part, before = min(seconds, max(1.0, seconds / SITE_PARTS)), self.value
        while seconds > 0.01 * part and self.left > 0 and not self.overdue:
            steps = int(part / (SITE_STEP * self._turns)) + 1
            for plan in together([partial(search.go_on, steps) for search in self._site_searches]):
                if plan is not None:
                    self.left -= ASSEMBLY_OF_JOB * self.instance.n
                    self.offer(plan.makespan, None, plan)
            self.left -= part
            seconds -= part
        self._sites_share = SITES if self.value < before else 0.5 * self._sites_share

    def _solved(self, most_choices: int, most_seconds: float) -> None:
        """Solve the exact model if it has few enough choices."""
        from headrace.planners.coschedule.cp import fits, solve

        if not fits(self.instance, most_choices):
            return
        limit = min(self.left, most_seconds)
        start = None if self.value >= FAILED else self.plan("")
        answer = solve(self.instance, start, self.bound, limit, self.latest)
        self.left -= answer.work
        if answer.plan is not None:
            self.offer(answer.plan.makespan, None, answer.plan)
        self.prove(min(answer.bound, self.value), EXACT)
        if answer.impossible and self.value >= FAILED:
            raise NoPlan(
                "no plan satisfies the storage limits and deadlines: the exact model is infeasible",
                where=f"{self.instance.problem.graph.name} on {self.instance.problem.platform.name}",
                hint="increase storage or use later deadlines",
            )

    def _searched(self, seconds: float = SEARCH) -> None:
        """Continue the local searches; from the best plan if that came from elsewhere."""
        for worker in self._workers:
            worker.follow(self.decisions, self.value)
        searches = [worker.search for worker in self._workers if worker.search is not None]
        block = max(1, int(0.25 / self.cost()))
        trials = int(min(seconds, self.left) / (self.cost() * self._turns)) + 1
        while searches and trials > 0 and not self.overdue and not self.optimal:
            count = min(block, trials)
            together([partial(search.run, count) for search in searches])
            self.left -= self.cost(count) * self._turns
            trials -= block
            for search in searches:
                self.offer(search.value, search.best)

    def _large(self, seconds: float = LARGE_SEARCH) -> None:
        """Search in large neighbourhoods of the best plan."""
        constraints = self.instance.problem.constraints
        if (constraints is not None and constraints.needs != "all") or self._late:
            return
        if self._neighbours is None:
            seed = self.instance.problem.seed
            self._neighbours = LargeSearch(self.scheduler, self.plan(""), seed, self.latest)
        large, until = self._neighbours, self.left - min(seconds, self.left)
        if self.value < large.best.makespan * (1 - 1e-12):
            large.replace(self.plan(""))
        while self.left > until and not self.overdue and not self.optimal:
            self.left -= large.step()
            exact = None if large.decisions is not None else large.best
            self.offer(large.best.makespan, large.decisions, exact)

    def simple_plan(self) -> Plan | None:
        """The shortest valid plan of the comparators and simple decisions; None if none is valid.

        Inputs that are at several sites from the beginning count as held at all of them here, and in a plan only where
        they are used: where such disks are too small for all, a list schedule may hold more than there is room for.
        """
        found: Plan | None = None
        for decisions in (*comparators(self.instance), *simple_starts(self.instance)):
            if self.scheduler.value(decisions) < FAILED:
                made = with_executed_times(self.scheduler.plan(decisions, ""), self.instance.problem)
                shorter = found is None or made.makespan < found.makespan
                found = made if shorter and is_valid(made, self.instance.problem) else found
        return found

    def plan(self, name: str) -> Plan:
        """The best plan so far."""
        if self.exact is not None:
            return self.exact
        assert self.decisions is not None
        return self.scheduler.plan(self.decisions, name)


def solving(variables: int) -> float:
    """Seconds that a linear program takes to be solved again; 0 without variables."""
    return float(0.01 + 3.3e-7 * variables**1.5) if variables else 0.0


def simple_starts(instance: Instance) -> Iterator[Decisions]:
    """Simple decisions: each job where it finishes first on its own, all on one host."""
    before, after = least_times(instance)
    own = (before + instance.seconds + after).argmin(axis=1).astype(np.int32)
    for _, order in rules(instance, own):
        yield Decisions(order, own, **undecided_paths(instance))
    given = topological(instance, np.zeros(instance.n))
    whole = np.flatnonzero(instance.can_run.all(axis=0))
    power = instance.host_cores[whole] / np.maximum(instance.seconds[:, whole].sum(axis=0), 1e-300)
    for h in whole[np.argsort(-power, kind="stable")][:8].tolist():
        host = np.full(instance.n, h, np.int32)
        longest = topological(instance, -instance.seconds[:, h])
        for order in (longest, given):
            yield Decisions(order, host, **undecided_paths(instance))


def comparators(instance: Instance) -> Iterator[Decisions]:
    """The decisions of the comparators: equal loads, pulled jobs, all jobs at one site for each site that can."""
    yield in_given_order(instance, equal_hosts(instance))
    yield pulled(instance)
    for site in able_sites(instance):
        yield in_given_order(instance, hosts_within(instance, site))


def in_given_order(instance: Instance, host: Ints) -> Decisions:
    """Jobs in the given order on these hosts."""
    return Decisions(topological(instance, np.zeros(instance.n)), host, **undecided_paths(instance))


def pulled(instance: Instance) -> Decisions:
    """Idle cores take jobs in the given order."""
    return replace(in_given_order(instance, instance.seconds.argmin(axis=1).astype(np.int32)), pull=True)


def able_sites(instance: Instance) -> list[int]:
    """Sites whose hosts can run every job."""
    at = instance.site[instance.host_place]
    return [s for s in np.unique(at).tolist() if instance.can_run[:, at == s].any(axis=1).all()]


def hosts_within(instance: Instance, site: int) -> Ints:
    """Equal loads on the hosts of one site."""
    away = instance.site[instance.host_place] != site
    return equal_hosts(replace(instance, seconds=np.where(away, np.inf, instance.seconds)))


def equal_hosts(instance: Instance) -> Ints:
    """Assign each job, in the given order, to the host with the least work per core: O(jobs * hosts)."""
    load = instance.host_free.copy()
    host = np.zeros(instance.n, np.int32)
    cores = instance.problem.graph.cores
    for j in topological(instance, np.zeros(instance.n)).tolist():
        after = load + instance.seconds[j] * cores[j] / instance.host_cores
        host[j] = int(np.argmin(after))
        load[host[j]] = after[host[j]]
    return host
