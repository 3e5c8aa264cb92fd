"""The experiments of the LPSched paper on real processes, at small scale: emulated hosts, ports and links.

Filters sleep for their time and send their volume. Every deployment is made to last a few seconds; results are
scaled back.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

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


def reproduce(ask: Ask) -> Reproduction:
    """Each case and planner on emulated hosts; LPSched's flows as planned, the others' buffers round-robin."""
    if ask.seeds is not None:
        raise UsageError("lpsched uses no random numbers", where="reproduce", hint="omit --seeds")
    rows: list[tuple[Cell, ...]] = []
    seconds: dict[tuple[str, str], float] = {}
    near = 0
    for case, (problem, planners) in cases().items():
        for planner in () if case in LEFT_OUT else planners:
            ask.tell(f"{case}, {planner}")
            made = PLANNERS[planner](problem)
            routing: Literal["planned", "round-robin"] = "planned" if planner == "lpsched" else "round-robin"
            simulated = simulate_deployment(made, routing).throughput
            measured = carried_out(made, routing)
            seconds[case, planner] = problem.pipeline.reader.volume / measured
            near += abs(measured / simulated - 1) <= NEAR
            copies = " + ".join(str(made.copies(f.name)) for f in problem.pipeline.order)
            rows.append((case, planner, copies, made.throughput, simulated, measured, measured / simulated))
    return Reproduction(
        title="LPSched on real processes, emulated hosts and networks",
        source="do Nascimento, Ferreira, Meira Jr., Guedes: Scheduling data flow applications using linear "
        "programming, sections 5.2 to 5.6",
        headers=("case", "planner", "copies", "planned MB/s", "simulated", "measured", "measured/simulated"),
        rows=rows,
        claims=_claims(seconds),
        notes=(
            f"{near} of {len(rows)} measured within {NEAR:.0%} of the simulation. Filters sleep for their time; "
            f"each run is scaled to {SECONDS:g} s and {MEGABYTES:g} MB and its result scaled back.",
        ),
    )


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


def _claims(seconds: dict[tuple[str, str], float]) -> list[Claim]:
    """Who wins, and by how much."""
    claims = []
    for case, slower, paper in (
        ("1x2x1", 1.05, "1x2x1: LPSched is as fast as Total with fewer machines, and faster than Trivial"),
        ("1x5x1", 1.05, "1x5x1: LPSched is as fast as Total with fewer machines, and faster than Trivial"),
        ("1x7x1 loaded", 1.0, "1x7x1 under load: LPSched is faster than Total and Trivial"),
        ("microscope", 1.0, "microscope: LPSched is faster than Total, by up to 25 %, and than Trivial"),
    ):
        ours, trivial, total = (seconds[case, planner] for planner in ("lpsched", "trivial", "total"))
        claims.append(
            Claim(
                paper,
                f"{ours:.1f} s; Total {total:.1f} s, Trivial {trivial:.1f} s",
                ours < slower * total and ours < trivial,
                rule=f"{'at most 5 % slower than' if slower > 1 else 'faster than'} Total, faster than Trivial",
            )
        )
    return claims
