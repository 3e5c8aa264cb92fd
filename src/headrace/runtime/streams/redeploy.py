"""Plan the deployment again while a pipeline runs, when hosts are faster or slower than the plan assumed.

The rule: every second the measured capacity of each filter on each host is compared with the one last planned for. If
one differs by more than `CHANGE`, and it is either a gain or makes the present copies fall short of the plan by
`GAIN`, `PATIENCE` times in a row, a deployment for the measured powers is planned. Seconds in which one differs by more
than `LARGE` count twice: a clear change need not be waited for, and a small one may pass by itself. The deployment is
adopted if its throughput is `GAIN` above both what the present copies could take with the best proportions and what was
measured. `REST` seconds pass between two plans, and twice as long after each deployment that was adopted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from statistics import median

from headrace.model.deployment import Deployment
from headrace.model.errors import HeadraceError
from headrace.model.pipeline import MEGABYTE, PipelineProblem
from headrace.model.platform import Host
from headrace.runtime.filters import App
from headrace.runtime.streams.capacities import Capacities, Place
from headrace.runtime.streams.plan import StreamPlan, plan_of

CHANGE = 0.15
LARGE = 0.3
GAIN = 0.15
PATIENCE = 6
REST = 10.0
ABSENT = 1e-6
"""The power of a host that cannot be used, as a share of what it had: no deployment needs it."""

Planner = Callable[[PipelineProblem], Deployment]


class Redeployer:
    """Watches capacities, and plans in a thread of its own."""

    def __init__(self, app: App, problem: PipelineProblem, planner: Planner, *, slower: float = 1.0) -> None:
        """`problem`: what the deployment that runs was planned for. `slower`: by which it is emulated more slowly."""
        self._app = app
        self._problem = problem
        self._planner = planner
        self._slower = slower
        self._assumed: dict[Place, float] = {}
        self._strikes = 0
        self._rest = REST
        self._not_before = -math.inf
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="headrace-redeploy")
        self._planning: tuple[Future[Deployment], PipelineProblem] | None = None
        self.plans = 0
        """How often a deployment was planned."""

    def observe(
        self,
        now: float,
        plan: StreamPlan,
        capacities: Capacities,
        throughput: float,
        hosts: Collection[str],
    ) -> StreamPlan | None:
        """A deployment on some of these hosts to change to; else None. `throughput`: bytes/s read, as measured."""
        if self._planning is not None:
            found = self._collect(now, plan, throughput * self._slower / MEGABYTE)
            return found if found is not None and set(found.hosts) <= set(hosts) else None
        ratios = power_ratios(self._problem, plan, capacities, self._slower)
        weight = self._weight(ratios, plan)
        self._strikes = self._strikes + weight if weight else 0
        self._consider(now, ratios, hosts)
        return None

    def _consider(self, now: float, found: Mapping[Place, float], hosts: Collection[str]) -> None:
        """Begin to plan, if the powers have required it for long enough."""
        if self._strikes < PATIENCE or now < self._not_before:
            return
        self._strikes = 0
        self._assumed.update(found)
        absent = {
            (f.name, host): ABSENT
            for f in self._problem.pipeline.filters
            for host in self._problem.hosts
            if host not in hosts
        }
        problem = with_powers(self._problem, self._assumed | absent)
        self._planning = self._pool.submit(self._planner, problem), problem
        self.plans += 1

    def _weight(self, found: Mapping[Place, float], plan: StreamPlan) -> int:
        """0 if powers are as planned for or no other deployment could pay; else 1, or 2 if that is clear."""
        changes = [ratio / self._assumed.get(place, 1.0) for place, ratio in found.items()]
        gain, loss = max(changes, default=1.0), 1 / max(min(changes, default=1.0), ABSENT)
        if gain > 1 + CHANGE:
            return 2 if gain > 1 + LARGE else 1
        if plan.throughput is None or loss < 1 + CHANGE:
            return 0
        if plan.throughput <= (1 + GAIN) * reach(with_powers(self._problem, found), plan):
            return 0
        return 2 if loss > 1 + LARGE else 1

    def _collect(self, now: float, plan: StreamPlan, throughput: float) -> StreamPlan | None:
        """The plan that was asked for, if it is there and pays."""
        assert self._planning is not None
        planned, problem = self._planning
        if not planned.done():
            return None
        self._planning = None
        self._not_before = now + self._rest
        try:
            made = planned.result()
        except HeadraceError:  # no deployment on such hosts: what runs goes on
            return None
        if made.throughput < (1 + GAIN) * max(reach(problem, plan), throughput):
            return None
        self._rest *= 2
        self._not_before = now + self._rest
        return plan_of(self._app, made)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def power_ratios(
    problem: PipelineProblem, plan: StreamPlan, capacities: Capacities, slower: float = 1.0
) -> dict[Place, float]:
    """For filter and host, the measured power divided by that of the problem."""
    busy = capacities.busy_hosts()
    sharing = {host: len({p.filter for p in plan.places if p.host == host}) for host in plan.hosts}
    found: dict[Place, float] = {}
    for (name, host), rate in capacities.by_place().items():
        expected = problem.capacity(name, host) * _volume(problem, name) * MEGABYTE
        if not (0 < expected < math.inf):
            continue
        ratio = rate * slower / expected
        if sharing[host] > 1:
            # Copies that share a host slow each other down, which the plan has allowed for.
            ratio = min(1.0, ratio * max(1.0, busy.get(host, 0.0) / problem.hosts[host].cores))
        found[name, host] = ratio
    return found


def _volume(problem: PipelineProblem, name: str) -> float:
    """Bytes that a filter receives, or that the reader sends, for each byte read."""
    pipeline = problem.pipeline
    if name != pipeline.reader.name:
        return pipeline.inflow(name) / pipeline.reader.volume
    sent = zip(pipeline.streams, pipeline.volumes, strict=True)
    return sum(volume for stream, volume in sent if stream.source == name) / pipeline.reader.volume


def with_powers(problem: PipelineProblem, ratios: Mapping[Place, float]) -> PipelineProblem:
    """The same problem with other powers; a filter not measured on a host gets the median of those that were."""

    def changed(host: Host) -> Host:
        mine = {name: ratio for (name, where), ratio in ratios.items() if where == host.name}
        if not mine:
            return host
        usual = median(mine.values())
        kinds = {kind: speed * usual for kind, speed in host.kinds.items()}
        for f in problem.pipeline.filters:
            kind = problem.pipeline.kind(f.name)
            kinds[kind] = host.kinds.get(kind, host.speed) * mine.get(f.name, usual)
        return replace(host, speed=host.speed * usual, kinds=kinds)

    platform = problem.platform
    sites = tuple(replace(site, hosts=tuple(map(changed, site.hosts))) for site in platform.sites)
    return replace(problem, platform=replace(platform, sites=sites))


def reach(problem: PipelineProblem, plan: StreamPlan) -> float:
    """MB/s read that these copies could take with the best proportions, if the network allows."""
    most = math.inf
    reader = problem.pipeline.reader.name
    for name in problem.pipeline.index:
        rates = [problem.capacity(name, place.host) * place.copies for place in plan.of(name)]
        if name == reader:
            shares = [place.share for place in plan.of(name)]
            most = min([most, *(r / share for r, share in zip(rates, shares, strict=True) if share > 0)])
        else:
            most = min(most, sum(rates))
    return most
