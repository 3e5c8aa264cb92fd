"""The cases of the corpus, by name: what is planned, replayed and simulated, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from corpus import inputs as make
from corpus.inputs import FORMATS, Spec

What: TypeAlias = Literal["plan", "replay", "simulate"]


@dataclass(frozen=True)
class Case:
    """One thing to do. `program` and `platform` make their spec when called: None where a file is absent."""

    name: str
    what: What
    scheduler: str
    program: Callable[[], Spec | None]
    platform: Callable[[], Spec | None]
    options: dict[str, Any] = field(default_factory=dict)
    slow: bool = False
    """Not in the fast tier."""


SHAPES = ("layered", "fork-join", "chain", "sweep", "random")
NETWORKS = ("pairs", "shared-site", "ports", "uplinks", "sites")
CONTENTIONS = ("none", "fifo", "fair")
ORIGINS = ("none", "host", "site")

PLANNERS = (
    "auto", "heft", "cpop", "peft", "wu-gajski", "subset", "single-host", "round-robin", "minmin", "maxmin",
    "sufferage", "xsufferage", "random-minmin", "random-maxmin", "random-sufferage", "random-xsufferage",
    "sufferage2", "local", "equal-load", "pull",
)  # fmt: skip
TIMED = ("best", "coschedule")
"""Their budget counts steps, not seconds, as long as the machine is not very slow."""
ONLINE = ("lheft", "workqueue", "dheft")

STEERED: tuple[tuple[str, Spec], ...] = (
    ("heft", {"events": "once", "replan": "neither"}),
    ("heft", {"events": "once", "replan": "both", "hold": True}),
    ("minmin", {"events": "S1", "interval": 12.0, "replan": "both"}),
    ("minmin", {"events": "S1", "interval": 9.0, "horizon": 1.0, "keep": 0, "replan": "both"}),
    ("sufferage", {"events": "S2", "interval": 10.0, "replan": "both", "keep": 2}),
    ("xsufferage", {"events": "S3", "interval": 10.0, "replan": "joins", "link_order": "in-order"}),
    ("xsufferage", {"events": "S2", "interval": 15.0, "replan": "losses", "link_order": "hybrid"}),
    ("maxmin", {"events": "S1", "interval": 15.0, "subset": 6, "reduce": "shared-file", "replan": "both"}),
    ("maxmin", {"events": "S1", "interval": 15.0, "subset": 6, "reduce": "random", "replan": "both"}),
    ("cpop", {"events": "S2", "interval": 20.0, "planning_fixed": 2.0, "replan": "both"}),
    ("peft", {"events": "S1", "interval": 20.0, "planning": 10.0, "hold": True, "replan": "both"}),
    ("random-minmin", {"events": "S2", "interval": 20.0, "replan": "both", "seed": 5}),
    ("heft", {"events": "once", "replan": "both", "off_by": 1.3, "error": 0.5, "seed": 3}),
    ("sufferage2", {"events": "S3", "interval": 8.0, "replan": "both", "strict": True}),
    ("wu-gajski", {"events": "S1", "interval": 25.0, "every": 0.2, "replan": "both"}),
)

DECIDING: tuple[tuple[str, Spec], ...] = (
    ("lheft", {}),
    ("lheft", {"prefetch": 1}),
    ("lheft", {"prefetch": 4, "replicate": 1}),
    ("lheft", {"replicate": 2}),
    ("lheft", {"duplicate": True}),
    ("lheft", {"estimates": "history", "error": 0.6, "seed": 7}),
    ("workqueue", {}),
    ("workqueue", {"duplicate": True, "error": 0.5, "seed": 2}),
    ("workqueue", {"prefetch": 3, "strict": True}),
    ("dheft", {}),
    ("dheft", {"planning": 20.0, "error": 0.5, "seed": 1}),
    ("dheft", {"error": 0.7, "seed": 4, "estimates": "perfect"}),
)

FAULTS = (
    "",
    "kill=h1@6",
    "kill=h0@4+9,slow=h2*0.4@3",
    "join=h2@5,kill=h3@12",
    "kill=2@7+6",
    "slow=2*0.5@2+10,kill=h4@9+4",
)


def all_cases() -> list[Case]:
    """Every case; names are unique."""
    found = [
        *_generated_plans(),
        *_known_plans(),
        *_replays(),
        *_runs(),
        *_sweep_runs(),
        *_grid_runs(),
        *_large(),
    ]
    assert len({case.name for case in found}) == len(found)
    return found


def _pair(i: int, *, storage: bool = False, traces: bool = False, **features: bool) -> tuple[Any, Any, str]:
    """A generated program and platform; shapes, networks, contentions and origins all come by."""
    shape, network = SHAPES[i % 5], NETWORKS[(i // 5 + i) % 5]
    contention, origin = CONTENTIONS[i % 3], ORIGINS[(i // 2) % 3]
    tasks = 7 + 5 * (i % 7)

    def program() -> Spec:
        return make.program(i, tasks, shape, **features)

    def platform() -> Spec:
        size = 0.0
        if storage:
            spec = program()
            size = sum(spec["inputs"].values()) + sum(sum(t["outputs"].values()) for t in spec["tasks"])
        room = 1.5 * size if storage else None
        return make.platform(
            i, network, contention, hosts=3 + i % 4, origin=origin, storage=room, traces=traces
        )

    return program, platform, f"{i}-{shape}-{network}-{contention}-{origin}"


def _generated_plans() -> Iterator[Case]:
    for i in range(24):
        program, platform, name = _pair(i)
        for k, planner in enumerate(PLANNERS):
            if i < 6 or (i + k) % 3 == 0:
                yield Case(f"plan/{name}/{planner}", "plan", planner, program, platform, {"seed": i})
    for i in range(24, 36):
        which = {"storage": i % 3 == 0, "cores": i % 3 == 1, "release": i % 3 == 2}
        program, platform, name = _pair(i, **which)
        word = next(key for key, on in which.items() if on)
        for planner in ("heft", "peft", "minmin", "xsufferage", "auto", "equal-load", "pull"):
            yield Case(f"plan/{name}-{word}/{planner}", "plan", planner, program, platform, {"seed": i})


def _known_plans() -> Iterator[Case]:
    for contention in CONTENTIONS:
        for planner in PLANNERS:
            yield Case(
                f"plan/srasearch-lab-{contention}/{planner}",
                "plan",
                planner,
                lambda: make.workflow("srasearch-chameleon-30a-001.json.gz"),
                lambda contention=contention: make.lab(contention),
                {"seed": 1},
            )
    for file in ("diamond-1.3.json", "chain-1.6.json", "repeated-names-1.4.json"):
        for planner in ("heft", "auto", "minmin"):
            yield Case(
                f"plan/{file}/{planner}",
                "plan",
                planner,
                lambda file=file: make.workflow(file),
                lambda: make.lab("fifo"),
            )
    for planner in PLANNERS:
        yield Case(
            f"plan/dag-100-net-8/{planner}",
            "plan",
            planner,
            lambda: make.recorded_graph("dag-square-n100.json.gz"),
            lambda: make.recorded_net("net-h8.json.gz"),
            {"seed": 2},
        )
        yield Case(
            f"plan/sweep-clusters/{planner}",
            "plan",
            planner,
            lambda: make.sweep(3, 60, 4),
            lambda: make.clusters(),
            {"seed": 2},
        )
    for i in (1, 8, 14):
        program, platform, name = _pair(i)
        yield Case(
            f"plan/{name}/best", "plan", "best", program, platform, {"seed": i, "time": 0.2}, slow=i > 1
        )
    for seed in (0, 1, 2):
        for planner in ("coschedule", "local", "equal-load", "pull"):
            options = {"seed": seed, "time": 0.2} if planner == "coschedule" else {}
            yield Case(
                f"plan/jobs-{seed}/{planner}",
                "plan",
                planner,
                lambda seed=seed: make.jobs(seed, 12, 4),
                lambda seed=seed: make.job_grid(seed, 4),
                options,
                slow=planner == "coschedule" and seed > 0,
            )


def _replays() -> Iterator[Case]:
    for i in range(18):
        program, platform, name = _pair(i)
        for k, planner in enumerate(("heft", "minmin", "round-robin")):
            error = 0.0 if (i + k) % 3 == 0 else 0.4
            late = {"prefetch": 2} if i % 4 == 0 and CONTENTIONS[i % 3] != "fifo" else {}
            options = {"error": error, "seed": 10 + i, **late}
            yield Case(f"replay/{name}/{planner}-{error}", "replay", planner, program, platform, options)


def _runs() -> Iterator[Case]:
    """Generated programs under online schedulers and planners with explicit rules, with and without faults."""
    settings = (*DECIDING, *STEERED)
    for k, (scheduler, options) in enumerate(settings):
        for turn in range(7):
            i = (5 * k + 3 * turn) % 24 + 40
            traces, faults = turn % 3 == 2, FAULTS[(k + turn) % len(FAULTS)]
            program, platform, name = _pair(i, traces=traces)
            if "link_order" in options and platform()["contention"] != "fifo":
                continue
            if faults and len([h for s in platform()["sites"] for h in s["hosts"]]) < 5:
                faults = ""
            whole = {**options, "faults": faults}
            yield Case(f"run/{name}/{k}.{turn}-{scheduler}", "simulate", scheduler, program, platform, whole)
    for i in range(80, 92):
        which = {"storage": i % 3 == 0, "cores": i % 3 == 1, "release": i % 3 == 2}
        program, platform, name = _pair(i, **which)
        for scheduler, options in (*DECIDING[:1], *DECIDING[6:7], DECIDING[9], STEERED[1], STEERED[2]):
            word = next(key for key, on in which.items() if on)
            yield Case(
                f"run/{name}-{word}/{scheduler}", "simulate", scheduler, program, platform, dict(options)
            )


def _sweep_runs() -> Iterator[Case]:
    """Sweeps on clusters with common storage: what the planning loop was made for."""
    for traces in (False, True):
        for k, (scheduler, options) in enumerate((*DECIDING, *STEERED)):
            scaled = {o: v * 25 if o in ("interval", "planning_fixed") else v for o, v in options.items()}
            for faults in ("", "kill=c0h0@300+400,kill=c2h1@500", "join=c1h0@200,cluster=c2@600+300"):
                more = {"steal": True} if k % 4 == 3 else {}
                yield Case(
                    f"run/sweep-clusters{'-traced' if traces else ''}/{k}-{scheduler}/{faults or 'quiet'}",
                    "simulate",
                    scheduler,
                    lambda: make.sweep(4, 48, 4),
                    lambda traces=traces: make.clusters(traces=traces),
                    {**scaled, **more, "faults": faults},
                )


def _grid_runs() -> Iterator[Case]:
    """Grids that change by themselves: files in the PST format, and generated ones with churn."""
    sweep, grid = {"file": str(FORMATS / "pst" / "sweep.pst")}, {"file": str(FORMATS / "pst" / "grid.pst")}
    for k, (scheduler, options) in enumerate((*DECIDING, *STEERED)):
        if options.get("estimates") == "history":
            continue
        scaled = {o: v * 20 if o in ("interval", "planning_fixed") else v for o, v in options.items()}
        yield Case(
            f"run/pst/{k}-{scheduler}", "simulate", scheduler, lambda: sweep, lambda: grid, dict(scaled)
        )
        for seed in (1, 2):
            churn: Spec = {"churn": {"seed": seed, "up": 900.0, "down": 300.0, "until": 4000.0}}
            yield Case(
                f"run/churn-{seed}/{k}-{scheduler}",
                "simulate",
                scheduler,
                lambda: make.sweep(5, 60, 5, shared=3e5),
                lambda churn=churn: churn,
                dict(scaled),
            )
    for estimates in ("perfect", "bounded:0.3", "sampled", "forecast"):
        for scheduler in ("xsufferage", "lheft"):
            options = {"events": "S2", "interval": 200.0, "replan": "both"} if scheduler != "lheft" else {}
            yield Case(
                f"run/pst-{estimates}/{scheduler}",
                "simulate",
                scheduler,
                lambda: sweep,
                lambda: grid,
                {**options, "estimates": estimates, "seed": 6},
            )


def _large() -> Iterator[Case]:
    """Real workflows, where the files are there."""
    for file in (
        "1000genome-chameleon-22ch-250k-001.json.gz",
        "atacseq-dirt02-001.json.gz",
        "epigenomics-chameleon-ilmn-6seq-50k-001.json.gz",
        "montage-chameleon-dss-15d-001.json.gz",
    ):
        batch = ("minmin", "xsufferage") if file.startswith(("1000genome", "atacseq")) else ()
        for contention in CONTENTIONS:
            where = lambda contention=contention: make.lab(contention)  # noqa: E731
            for planner in ("heft", "peft", "round-robin", *batch):
                name = f"{file.split('-')[0]}-{contention}/{planner}"
                yield Case(
                    f"plan/{name}", "plan", planner, lambda file=file: make.workflow(file), where, slow=True
                )
            for scheduler, options in (DECIDING[0], DECIDING[6], DECIDING[9], STEERED[0]):
                name = f"{file.split('-')[0]}-{contention}/{scheduler}"
                more = {**options, "faults": "kill=uw2@200+400"} if contention != "none" else dict(options)
                yield Case(
                    f"run/{name}",
                    "simulate",
                    scheduler,
                    lambda file=file: make.workflow(file),
                    where,
                    more,
                    slow=True,
                )
