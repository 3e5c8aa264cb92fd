"""Check a deployment against every restriction, using only the definitions.

The check shares no code with the planners: it sums over placements and flows. Rule numbers are those of
the restrictions in docs/guide-deploy.md. The relative tolerance of sums is one part in a million.
"""

from __future__ import annotations

import math
from collections import defaultdict

from headrace.model.check_case import Violation
from headrace.model.deployment import Deployment, Flow
from headrace.model.pipeline import MEGABYTE, PipelineProblem
from headrace.model.units import plural

RELATIVE = 1e-6
ABSOLUTE = 1e-9


def check_deployment(deployment: Deployment) -> list[Violation]:
    """List every violated restriction: O(placements + flows * links of a route)."""
    judge = _Judge(deployment)
    judge.names()
    if judge.found:
        return judge.found
    judge.sources()
    judge.shares()
    judge.balance()
    judge.processors()
    judge.network()
    judge.value()
    return judge.found


def _above(value: float, limit: float) -> bool:
    return value > limit + RELATIVE * abs(limit) + ABSOLUTE


def _differ(a: float, b: float) -> bool:
    return _above(a, b) or _above(b, a)


def _named(flow: Flow) -> str:
    """
    >>> _named(Flow("read", "add", "n1", "n2", 3.0))
    "flow from 'read' on n1 to 'add' on n2"
    """
    return f"flow from {flow.source_filter!r} on {flow.source} to {flow.target_filter!r} on {flow.target}"


class _Judge:
    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.problem: PipelineProblem = deployment.problem
        self.pipeline = self.problem.pipeline
        self.found: list[Violation] = []
        self.where = {(p.filter, p.host): p for p in deployment.placements}

    def say(self, rule: str, message: str) -> None:
        self.found.append(Violation(rule, message))

    def names(self) -> None:
        """All names exist and are unique, and values are finite; the other checks rely on this."""
        deployment, known = self.deployment, self.pipeline.index
        if deployment.source not in {s.name for s in self.problem.sources}:
            self.say("source", f"there is no source {deployment.source!r}")
        if len(self.where) < len(deployment.placements):
            self.say("place", "a filter is placed twice on one host")
        for p in deployment.placements:
            if p.filter not in known or p.host not in self.problem.hosts:
                self.say("place", f"{p.filter!r} on {p.host!r}: no such filter or host")
            if not all(math.isfinite(v) and v >= 0 for v in (p.share, p.rate, p.busy)) or p.copies < 1:
                values = f"{p.copies} copies, share {p.share:g}, rate {p.rate:g}, busy {p.busy:g}"
                self.say("finite", f"{p.filter!r} on {p.host!r}: {values}")
        joined = {(s.source, s.target) for s in self.pipeline.streams}
        for f in deployment.flows:
            ends = (f.source_filter, f.target_filter)
            if ends not in joined:
                self.say("stream", f"there is no stream {ends[0]!r} -> {ends[1]!r}")
            elif (ends[0], f.source) not in self.where or (ends[1], f.target) not in self.where:
                self.say("13", f"{_named(f)}: one end has no copy of its filter")
            if not (math.isfinite(f.rate) and f.rate >= 0):
                self.say("finite", f"{_named(f)}: the rate is {f.rate:g}")
        for what in (deployment.throughput, deployment.objective, deployment.bound):
            if not math.isfinite(what):
                self.say("finite", f"throughput, objective or bound is {what}")

    def sources(self) -> None:
        """4, 5, 5': the readers are those of one option, each reads its share, at most at its rate."""
        option = next(s for s in self.problem.sources if s.name == self.deployment.source)
        reader = self.pipeline.reader
        readers = {p.host: p for p in self.deployment.of(reader.name)}
        if set(readers) != {h for h, share in option.shares.items() if share > 0}:
            self.say("5", f"readers on {sorted(readers)}, but {option.name!r} is on {sorted(option.shares)}")
            return
        full = math.inf
        for host, p in readers.items():
            can = reader.volume / reader.seconds * self.problem.power(reader.name, host) / reader.power
            full = min(full, can / option.shares[host])
            if _above(p.rate, can):
                self.say("5'", f"{host} reads {p.rate:.9g} MB/s but can read at most {can:.9g}")
            if _differ(p.rate, option.shares[host] * self.deployment.throughput):
                self.say("6", f"{host} reads {p.rate:.9g} MB/s, not its share of the throughput")
        if self.deployment.form == "strict" and _differ(self.deployment.throughput, full):
            self.say("5'", f"throughput {self.deployment.throughput:.9g} MB/s, the reader's is {full:.9g}")

    def shares(self) -> None:
        """7, and the definition of a share: the part of a filter's total input."""
        for f in self.pipeline.filters:
            here = self.deployment.of(f.name)
            if not here:
                self.say("7", f"filter {f.name!r} has no copy")
            elif _differ(sum(p.share for p in here), 1.0):
                self.say("share", f"the shares of {f.name!r} sum to {sum(p.share for p in here):.9g}")
            whole = self.pipeline.inflow(f.name) / self.pipeline.reader.volume * self.deployment.throughput
            for p in here:
                if _differ(p.rate, p.share * whole):
                    self.say("share", f"{f.name!r} on {p.host}: rate {p.rate:.9g} is not its share")

    def balance(self) -> None:
        """6, 8 and 9: on every stream each host sends and receives what its share of the work requires."""
        sent: dict[tuple[str, str, str], float] = defaultdict(float)
        received: dict[tuple[str, str, str], float] = defaultdict(float)
        for flow in self.deployment.flows:
            sent[flow.source_filter, flow.target_filter, flow.source] += flow.rate
            received[flow.source_filter, flow.target_filter, flow.target] += flow.rate
        for stream, volume in zip(self.pipeline.streams, self.pipeline.volumes, strict=True):
            whole = volume / self.pipeline.reader.volume * self.deployment.throughput
            for name, moved, verb in ((stream.source, sent, "sends"), (stream.target, received, "receives")):
                for p in self.deployment.of(name):
                    has = moved[stream.source, stream.target, p.host]
                    if abs(has - p.share * whole) > RELATIVE * whole + ABSOLUTE:
                        self.say(
                            "9",
                            f"{p.host} {verb} {has:.9g} MB/s on {stream.source!r} -> {stream.target!r}, "
                            f"its share requires {p.share * whole:.9g}",
                        )

    def processors(self) -> None:
        """10, 11, 14 and 15: maximum and minimum load of hosts."""
        problem, form = self.problem, self.deployment.form
        reader = self.pipeline.reader
        most = next(problem.readable(s) for s in problem.sources if s.name == self.deployment.source)
        busy: dict[str, float] = defaultdict(float)
        filters_on: dict[str, list[str]] = defaultdict(list)
        for f in self.pipeline.filters:
            here = self.deployment.of(f.name)
            together = 0.0
            for p in here:
                cores = problem.hosts[p.host].cores if f is not reader or problem.several_per_host else 1
                power = problem.power(f.name, p.host)
                # in MB read at the start: c over rho
                one = math.inf if f.seconds == 0 else reader.volume / f.seconds * power / f.power
                done = p.share * self.deployment.throughput
                together += one * cores
                filters_on[p.host].append(f.name)
                busy[p.host] += done / one
                if p.copies > cores:
                    self.say("10", f"{p.copies} copies of {f.name!r} on {p.host}, which has {cores} cores")
                if _differ(p.busy, done / one):
                    self.say(
                        "10",
                        f"{f.name!r} on {p.host}: {p.busy:.9g} cores busy, but its share requires {done / one:.9g}",
                    )
                if _above(done, one * p.copies):
                    copies = plural(p.copies, "copy")
                    self.say(
                        "10",
                        f"{f.name!r} on {p.host}: its share requires {done / one:.9g} cores, but it has {copies}",
                    )
                least = problem.knobs.least_share(f.name) * min(one * cores, most)
                spared = f is reader or len(here) == 1 or form not in ("strict", "first relaxation")
                if not spared and _above(least, done):
                    self.say("14", f"{f.name!r} on {p.host} does {done:.9g}, but the minimum is {least:.9g}")
            need = (1.0 + problem.knobs.spare) * self.deployment.throughput
            if form in ("strict", "first relaxation") and f is not reader and _above(need, together):
                self.say("11", f"the hosts of {f.name!r} can do {together:.9g} of {need:.9g} MB/s")
        for host, names in filters_on.items():
            if not problem.several_per_host and len(names) > 1:
                self.say("15", f"{host} has {len(names)} filters: {', '.join(names)}")
            if _above(busy[host], problem.hosts[host].cores):
                self.say("15", f"{host} is busy {busy[host]:.9g} with {problem.hosts[host].cores} cores")

    def network(self) -> None:
        """12: ports, links and segments do not exceed their capacity."""
        platform = self.problem.platform
        network = platform.network
        place = {h.name: int(network.host_place[j]) for j, h in enumerate(platform.hosts)}
        load: dict[int, float] = defaultdict(float)
        segment: dict[str, float] = defaultdict(float)
        for flow in self.deployment.flows:
            a, b = place[flow.source], place[flow.target]
            if flow.source == flow.target:
                continue
            for site in {self.problem.cluster[flow.source], self.problem.cluster[flow.target]}:
                segment[site] += flow.rate
            if a == b:
                continue
            if flow.rate > 0 and network.bandwidth(a, b) == 0:
                self.say("12", f"{_named(flow)}: there is no route")
            for link in network.route(a, b):
                load[link] += flow.rate
        for link, rate in load.items():
            if _above(rate, network.link_bandwidth[link] / MEGABYTE):
                name = network.link_names[link] if network.link_names else link
                self.say(
                    "12", f"{name}: {rate:.9g} MB/s exceeds {network.link_bandwidth[link] / MEGABYTE:.9g}"
                )
        for site, bandwidth in self.problem.segments.items():
            if _above(segment[site], bandwidth / MEGABYTE):
                self.say("12", f"segment of {site}: {segment[site]:.9g} MB/s on {bandwidth / MEGABYTE:.9g}")

    def value(self) -> None:
        """3: the objective matches its definition and does not exceed its bound."""
        knobs, cluster = self.problem.knobs, self.problem.cluster
        flow = sum(knobs.weight(cluster[f.source], cluster[f.target]) * f.rate for f in self.deployment.flows)
        value = flow - knobs.host_cost * len(self.deployment.hosts_used)
        scale = max(abs(flow), abs(value))
        if abs(value - self.deployment.objective) > RELATIVE * scale + ABSOLUTE:
            self.say("3", f"the objective is {value:.9g}, not {self.deployment.objective:.9g}")
        if self.deployment.objective > self.deployment.bound + RELATIVE * scale + ABSOLUTE:
            self.say("bound", f"{self.deployment.bound:.9g} is below {self.deployment.objective:.9g}")
