"""The cases carried out by the program as it is: the one file of the corpus that follows its API."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

import headrace as hr
from corpus.cases import Case
from corpus.inputs import Spec
from corpus.results import Answer, Row, answer, failure
from headrace.experiment.grids import ClusterSpec, GridSpec, generate_grid
from headrace.formats.loading import load_grid, load_program
from headrace.model.errors import HeadraceError
from headrace.model.platform import Pairs
from headrace.model.trace import LinkTrace, Trace
from headrace.simulator.replay.plan_replay import replay_plan

RULES = (
    "events", "interval", "horizon", "keep", "hold", "planning", "planning_fixed", "subset", "reduce",
    "replan",
)  # fmt: skip
MECHANICS = {
    "link_order": "link_order",
    "prefetch": "prefetch_depth",
    "steal": "steal",
    "duplicate": "duplicate",
    "replicate": "replicate",
    "strict": "strict",
}
SETTING = ("estimates", "faults", "error")
DECIDE = ("lheft", "dheft", "workqueue")
AS_RECORDED = {"task_order": "ready", "link_order": "out-of-order", "routes": "nearest"}
"""What the recorded program did: queues in order of readiness, each item from the nearest copy."""


def carry_out(case: Case) -> Answer | None:
    """The answer to a case; None where one of its files is absent."""
    program, platform = case.program(), case.platform()
    if program is None or platform is None:
        return None
    does = {"plan": _plan, "replay": _replay, "simulate": _simulate}[case.what]
    try:
        return does(case, program, platform)
    except HeadraceError as error:
        return failure(error)


def _plan(case: Case, program: Spec, platform: Spec) -> Answer:
    made = hr.plan(_program(program), _platform(platform), case.scheduler, **case.options)
    return answer({"makespan": made.makespan, "bound": made.bound}, _rows(made))


def _replay(case: Case, program: Spec, platform: Spec) -> Answer:
    made = hr.plan(_program(program), _platform(platform), case.scheduler)
    options = {("prefetch_depth" if k == "prefetch" else k): v for k, v in case.options.items()}
    outcome = replay_plan(made, **options)
    return answer({"planned": made.makespan, "makespan": outcome.makespan}, _rows(outcome.executed))


def _rows(plan: hr.Plan) -> list[Row]:
    rows: list[Row] = [(f"run {t.id} on {t.host}", (t.start, t.finish)) for t in plan.tasks()]
    moves = [(f"send {m.data} {m.source} {m.target}", (m.start, m.finish)) for m in plan.transfers()]
    return rows + moves


def _simulate(case: Case, program: Spec, platform: Spec) -> Answer:
    options = case.options
    policy = {k: v for k, v in options.items() if k in RULES}
    policy |= {"misprediction": options["off_by"]} if "off_by" in options else {}
    policy |= {"replan": f"{100 * options['every']:g}%"} if options.get("every") else {}
    execution = {MECHANICS[k]: v for k, v in options.items() if k in MECHANICS}
    setting = hr.SimulationConfig(
        hr.ReplanPolicy(**({"events": "S2"} if case.scheduler not in DECIDE else {}) | policy),
        hr.ExecutionPolicy(**(AS_RECORDED | execution)),
        **{k: v for k, v in options.items() if k in SETTING},
    )
    run = hr.simulate(
        _program(program), _grid(platform), case.scheduler, setting, seed=options.get("seed", 0)
    )
    counters = {
        "makespan": run.makespan,
        "bound": run.bound,
        "redone": run.redone,
        "stolen": run.stolen,
        "copied": run.duplicates,
        "replicas": run.replicas,
        "bytes_moved": run.bytes_moved,
    }
    return answer(counters, [_log_row(line) for line in run.log_lines()])


def _log_row(line: str) -> Row:
    time, *words = shlex.split(
        line
    )  # names with spaces are quoted; they were not when the corpus was recorded
    return " ".join(words), (float(time),)


def _program(spec: Spec) -> hr.Program:
    if "file" in spec:
        return load_program(spec["file"])
    program = hr.Program(spec["name"])
    for name, size in spec["inputs"].items():
        program.input(name, size=size, sites=spec.get("at", {}).get(name, ()))
    for task in spec["tasks"]:
        program.task(None, **task)
    for name, sites in spec.get("to", {}).items():
        program.output(name, sites=sites)
    return program


def _grid(spec: Spec) -> Any:
    if "file" in spec:
        return load_grid(spec["file"])
    if "churn" in spec:
        churn = dict(spec["churn"])
        seed = churn.pop("seed")
        clusters = (ClusterSpec(2), ClusterSpec(3, 0.7), ClusterSpec(4, 0.3))
        return generate_grid(GridSpec(clusters, **churn), seed)
    return _platform(spec)


def _platform(spec: Spec) -> hr.Platform:
    sites = tuple(_site(site) for site in spec["sites"])
    links = tuple(
        hr.Link(row["from"], row["to"], **{k: v for k, v in row.items() if k not in ("from", "to")})
        for row in spec.get("links", ())
    )
    pairs = spec.get("pairs")
    return hr.Platform(
        sites,
        links,
        None if pairs is None else Pairs(np.array(pairs["bandwidth"]), pairs["latency"]),
        contention=spec["contention"],
        origin=spec.get("origin"),
        name=spec["name"],
        routing=spec.get("routing", "quickest"),
    )


def _site(spec: Spec) -> hr.Site:
    values = {k: v for k, v in spec.items() if k not in ("hosts", "uplink_trace")}
    if "uplink_trace" in spec:
        values["uplink_trace"] = LinkTrace(*(Trace(**trace) for trace in spec["uplink_trace"]))
    return hr.Site(hosts=tuple(_host(host) for host in spec["hosts"]), **values)


def _host(spec: Spec) -> hr.Host:
    values = {k: v for k, v in spec.items() if k != "trace"}
    return hr.Host(trace=Trace(**spec["trace"]) if "trace" in spec else None, **values)
