"""The experiments of the LPSched paper on real processes, at small scale: emulated hosts, ports and links.

Filters sleep for their time and send their volume. Every deployment is made to last a few seconds; results are
scaled back.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from headrace.experiment.diagram import Diagram
from headrace.model.deployment import Deployment
from headrace.model.errors import UsageError
from headrace.planners.pipeline.plan import PLANNERS
from headrace.reproductions import Ask, Cell, Claim, Reproduction
from headrace.reproductions.lpsched import cases
from headrace.runtime.streams.emulation import emulate_platform
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import plan_of
from headrace.runtime.streams.routing import Routing
from headrace.runtime.streams.shared_host import SharedAgent
from headrace.runtime.streams.sleepers import Scale, sleeping_app
from headrace.runtime.streams.specs import Emulation, Ports
from headrace.runtime.streams.summary import summarize
from headrace.runtime.streams.supervisor import Supervisor
from headrace.simulator.pipeline.flow import simulate_deployment

SECONDS = 6.0
"""How long a deployment is made to last, as planned."""
MEGABYTES = 4.0
"""Input of the small runs."""
LEFT_OUT = ("microscope, two clusters, 5 MB/s", "microscope, two clusters, 5 MB/s, W_C 0.5")
"""Variants of a case that the paper does not have."""
NEAR = 0.08
UNEQUAL = "1x7x1 loaded"
FAR = "microscope, two clusters, 2 MB/s"
IN_TURN = "in turn"


class Case(NamedTuple):
    """A deployment, its throughput in MB/s simulated and measured, and how buffers were routed."""

    made: Deployment
    routing: Routing
    simulated: float
    measured: float

    @property
    def seconds(self) -> float:
        """Measured time for the whole input, at full scale."""
        return self.made.problem.pipeline.reader.volume / self.measured

    @property
    def row(self) -> tuple[Cell, ...]:
        made = self.made
        copies = " + ".join(str(made.copies(f.name)) for f in made.problem.pipeline.order)
        rates = (made.throughput, self.simulated, self.measured, self.measured / self.simulated)
        return made.planner, self.routing, made.source, copies, *rates, self.seconds


Cases = Mapping[tuple[str, str], Case]
"""By case and planner, or `in turn` for LPSched's copies without its flows."""


def reproduce(ask: Ask) -> Reproduction:
    """Each case and planner on emulated hosts; LPSched's flows as planned, the others' buffers round-robin."""
    if ask.seeds is not None:
        raise UsageError("lpsched uses no random numbers", where="reproduce", hint="omit --seeds")
    found = _run_cases(ask)
    near = sum(abs(case.measured / case.simulated - 1) <= NEAR for case in found.values())
    return Reproduction(
        title="LPSched on real processes, with emulated hosts and networks",
        source="do Nascimento, Ferreira, Meira Jr., Guedes: Scheduling data flow applications using linear "
        "programming, sections 5.2 to 5.6",
        headers=(
            "case",
            "planner",
            "routing",
            "source",
            "copies",
            "planned MB/s",
            "simulated",
            "measured",
            "measured/simulated",
            "seconds",
        ),
        rows=[(name, *case.row) for (name, _), case in found.items()],
        claims=[*_winners(found), *_ratios(found), *_sources(found)],
        pictures=_pictures(found),
        notes=(
            f"{near} of {len(found)} measured within {NEAR:.0%} of the simulation. Each copy is a process, with up to "
            "71 at a time; filters sleep for their time and send their volume through emulated ports and links.",
            f"Each run is scaled to {SECONDS:g} s and {MEGABYTES:g} MB, and its result scaled back: seconds are those "
            "of the whole input on the paper's machines. Trial runs are those of `lpsched`.",
        ),
    )


def _run_cases(ask: Ask) -> dict[tuple[str, str], Case]:
    """Carry out all cases, and one with LPSched's copies but buffers in turn."""
    found: dict[tuple[str, str], Case] = {}
    for name, (problem, planners) in cases().items():
        for planner in () if name in LEFT_OUT else planners:
            made = PLANNERS[planner](problem)
            ways: dict[str, Routing] = {planner: "planned" if planner == "lpsched" else "round-robin"}
            if planner == "lpsched" and name == UNEQUAL:
                ways[IN_TURN] = "round-robin"
            for way, routing in ways.items():
                ask.tell(f"{name}, {way}")
                simulated = simulate_deployment(made, _simulated(routing)).throughput
                found[name, way] = Case(made, routing, simulated, carried_out(made, routing))
    return found


def _simulated(routing: Routing) -> Literal["planned", "round-robin"]:
    return "planned" if routing == "planned" else "round-robin"


def _pictures(found: Cases) -> list[Diagram]:
    compared = [name for name, planner in found if planner == "total"]
    planners = ("lpsched", "trivial", "total")
    curves: dict[str, list[float | None]] = {
        planner: [found[name, planner].seconds for name in compared] for planner in planners
    }
    title = "Seconds for the whole input, measured and scaled back"
    labels = [name.replace("two clusters, 2 MB/s", "two clusters") for name in compared]
    return [Diagram(title, "", "seconds", labels, curves, shape="bars")]


def carried_out(made: Deployment, routing: Routing) -> float:
    """MB/s of a deployment on emulated hosts, at full scale."""
    problem = made.problem
    most = max(made.copies(f.name) for f in problem.pipeline.filters)
    scale = Scale(
        max(200, 24 * most), made.predicted_seconds / SECONDS, problem.pipeline.reader.volume / MEGABYTES
    )
    app, powers = sleeping_app(problem, scale)
    plan = plan_of(app, made)
    with tempfile.TemporaryDirectory(prefix="headrace-ports-") as folder, SharedAgent(plan.hosts) as hosts:
        full = emulate_platform(app, plan.pairs, problem.platform, powers, Path(folder))

        def ports(source: str, target: str) -> Ports:
            return tuple((file, rate * scale.bandwidth) for file, rate in full.ports(source, target))

        emulation = Emulation(full.factors, ports, full.text)
        options = StreamOptions(routing=routing, credits=2)
        run = Supervisor(app, plan, hosts, options, emulation=emulation, commit=lambda unit: None)
        return summarize(app, run.run()).throughput * scale.smaller / scale.faster


def _winners(found: Cases) -> Iterator[Claim]:
    """Who wins."""
    for name, slower, paper in (
        ("1x2x1", 1.05, "1x2x1: LPSched is as fast as Total with fewer machines, and faster than Trivial"),
        ("1x5x1", 1.05, "1x5x1: LPSched is as fast as Total with fewer machines, and faster than Trivial"),
        (UNEQUAL, 1.0, "1x7x1 under load: LPSched is faster than Total and Trivial"),
        ("microscope", 1.0, "microscope: LPSched is faster than Total, by up to 25 %, and than Trivial"),
        (FAR, 1.0, "microscope on two clusters: LPSched is faster than Total and Trivial"),
    ):
        ours, trivial, total = (found[name, planner].seconds for planner in ("lpsched", "trivial", "total"))
        yield Claim(
            paper,
            f"{ours:.1f} s; Total {total:.1f} s, Trivial {trivial:.1f} s",
            ours < slower * total and ours < trivial,
            rule=f"{'at most 5 % slower than' if slower > 1 else 'faster than'} Total, faster than Trivial",
        )


def _ratios(found: Cases) -> Iterator[Claim]:
    """By how much."""

    def ratio(name: str, other: str) -> float:
        return found[name, other].seconds / found[name, "lpsched"].seconds

    for paper, name, other, low, high in (
        ("1x2x1: more than 2 times as fast as Trivial", "1x2x1", "trivial", 2.0, 2.5),
        ("1x5x1: almost 5 times as fast as Trivial", "1x5x1", "trivial", 4.5, 5.2),
        ("1x7x1 under load: faster than Total", UNEQUAL, "total", 1.05, 10.0),
    ):
        times = ratio(name, other)
        measured = f"{times:.2f} times as fast"
        rule = f"{low:g} to {high:g} times as fast"
        yield Claim(paper, measured, low <= times <= high, rule=rule, afterwards=name == "1x5x1")
    kept = found[UNEQUAL, IN_TURN].measured / found[UNEQUAL, "lpsched"].measured
    yield Claim(
        "the runtime cannot follow the planned flows, which can make optimal plans suboptimal",
        f"1x7x1 under load: with buffers in turn, the same copies reach {kept:.0%} of what they do as planned",
        kept < 0.95,
        rule="less than 95 %",
    )
    worst = ratio(FAR, "total") / ratio(FAR, "trivial")
    yield Claim(
        "two clusters: Total is as bad as Trivial, or worse",
        f"Total takes {worst:.2f} times as long as Trivial",
        worst >= 0.9,
        rule="at least 0.9 times Trivial's seconds",
    )


def _sources(found: Cases) -> Iterator[Claim]:
    """Where the data is read."""
    for name, source, seconds in (
        ("MG1 or MG13+14", "MG1", 53.2),
        ("MG1 or MG13..16", "MG13-16", 41.7),
        ("MG1 loaded or MG13+14", "MG13-14", 81.2),
    ):
        case = found[name, "lpsched"]
        yield Claim(
            f"{name}: reads from {source}, {seconds} s",
            f"reads from {case.made.source}, {case.seconds:.1f} s",
            case.made.source == source and abs(case.seconds / seconds - 1) <= NEAR,
            rule=f"the same source, and the time within {NEAR:.0%}",
            afterwards=True,  # the trial runs were fitted to these times
        )
