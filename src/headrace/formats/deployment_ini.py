"""Deployments as INI: what a runtime needs to start filter copies and to route data between them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from headrace.formats.format import Format
from headrace.formats.pipeline_ini import knob_values, read_knobs
from headrace.formats.sections import (
    ARROW,
    Section,
    plain_name,
    read_sections,
    split_arrow,
    write_sections,
)
from headrace.model.check_case import Violation
from headrace.model.deployment import Deployment, Flow, Form, Placement
from headrace.model.errors import BadFile, BadPlan
from headrace.model.pipeline import PipelineProblem

_MARK = re.compile(rb"^[ \t]*\[deployment\]", re.MULTILINE)
_TOP = (
    "pipeline",
    "platform",
    "planner",
    "form",
    "source",
    "throughput",
    "predicted_seconds",
    "objective",
    "bound",
    "several_per_host",
)


def write_deployment(deployment: Deployment, path: str | Path) -> None:
    """Write a deployment that `read_deployment` reads back, without limits, prices and notes."""
    write_sections(
        path, _sections(deployment, path), "deployment: copies and share of the work; rates in MB/s"
    )


def read_deployment(path: str | Path, problem: PipelineProblem) -> Deployment:
    """Read a deployment of this problem; rates and busy cores follow from the shares.

    Its own knobs, and whether filters share hosts, replace those of the problem. Use its `check` to validate it.
    """
    sections = read_sections(path)
    top = next((s for s in sections if s.kind == "deployment"), None)
    if top is None:
        raise BadFile("no [deployment] section", where=str(path), hint="see docs/formats.md")
    top.require_known(_TOP)
    form = top.text("form", "strict")
    if form not in get_args(Form):
        raise top.wrong(f"form is {form!r}", f"one of {', '.join(get_args(Form))}")
    problem = replace(
        problem, knobs=read_knobs(sections, problem.knobs), several_per_host=top.flag("several_per_host")
    )
    throughput = top.number("throughput")
    objective = top.number("objective", 0.0)
    placements: list[Placement] = []
    flows: list[Flow] = []
    for section in sections:
        if section.kind == "copies":
            placements.extend(_placements(section, problem, throughput))
        elif section.kind == "flow":
            flows.extend(_flows(section))
        elif section.kind not in ("deployment", "knobs"):
            raise section.wrong("unknown section", "one of deployment, knobs, copies, flow")
    return Deployment(
        problem=problem,
        planner=top.text("planner", "unknown"),
        form=cast(Form, form),
        source=top.text("source", ""),
        throughput=throughput,
        placements=tuple(placements),
        flows=tuple(flows),
        objective=objective,
        bound=top.number("bound", objective),
    )


def read_placements(path: str | Path) -> dict[str, set[str]]:
    """The hosts of each filter in a deployment file, whatever platform it was made for."""
    sections = read_sections(path)
    if all(s.kind != "deployment" for s in sections):
        raise BadFile("no [deployment] section", where=str(path), hint="see docs/formats.md")
    return {s.name: set(s.values) for s in sections if s.kind == "copies"}


def check_header(path: str | Path, deployment: Deployment) -> list[Violation]:
    """Wrong statements in the file about its pipeline, its platform and its predicted time."""
    top = next(s for s in read_sections(path) if s.kind == "deployment")
    problem = deployment.problem
    found = [
        Violation(what, f"the file was made for {stated!r}, not for {name!r}")
        for what, name in (("pipeline", problem.pipeline.name), ("platform", problem.platform.name))
        if (stated := top.text(what, name)) != name
    ]
    seconds = deployment.predicted_seconds
    stated_seconds = top.number("predicted_seconds", seconds)
    if not math.isclose(stated_seconds, seconds, rel_tol=1e-6):
        message = f"predicted_seconds is {stated_seconds:.9g}; the throughput gives {seconds:.9g}"
        found.append(Violation("time", message))
    return found


def _placements(section: Section, problem: PipelineProblem, throughput: float) -> Iterator[Placement]:
    name, pipeline = section.name, problem.pipeline
    if name not in pipeline.index:
        raise BadPlan(
            f"no such filter: {name!r}", where=section.where, hint="give the pipeline that it was made for"
        )
    rate = pipeline.inflow(name) / pipeline.reader.volume * throughput
    for host in section.values:
        if host not in problem.hosts:
            raise BadPlan(
                f"no such host: {host!r}", where=section.where, hint="give the platform that it was made for"
            )
        copies, _, share_text = str(section.text(host, "")).partition(",")
        pair = Section(section.kind, name, {"copies": copies, "share": share_text}, section.file)
        share = pair.number("share")
        yield Placement(
            name,
            host,
            pair.whole("copies", 1, most=10**6),
            share,
            share * rate,
            share * throughput / problem.capacity(name, host),
        )


def _flows(section: Section) -> Iterator[Flow]:
    source_filter, target_filter = section.ends()
    for ends in section.values:
        source, target = split_arrow(ends, section)
        yield Flow(source_filter, target_filter, source, target, section.number(ends))


def _sections(d: Deployment, path: str | Path) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    yield (
        "deployment",
        "",
        {
            "pipeline": plain_name(d.problem.pipeline.name, path),
            "platform": plain_name(d.problem.platform.name, path),
            "planner": d.planner,
            "form": d.form,
            "source": plain_name(d.source, path),
            "throughput": d.throughput,
            "predicted_seconds": d.predicted_seconds,
            "objective": d.objective,
            "bound": d.bound,
            "several_per_host": d.problem.several_per_host,
        },
    )
    yield "knobs", "", knob_values(d.problem.knobs, path)
    for f in d.problem.pipeline.order:
        rows = {plain_name(p.host, path): f"{p.copies}, {p.share!r}" for p in d.of(f.name)}
        yield "copies", plain_name(f.name, path), rows
    for s in d.problem.pipeline.streams:
        here = [f for f in d.flows if (f.source_filter, f.target_filter) == (s.source, s.target)]
        yield "flow", f"{s.source}{ARROW}{s.target}", {f"{f.source}{ARROW}{f.target}": f.rate for f in here}


def _is_deployment(head: bytes) -> bool:
    return not head.startswith(b"{") and _MARK.search(head) is not None


FORMATS = (
    Format(
        "ini",
        "deployment",
        "a deployment as INI",
        suffixes=(".ini",),
        sniff=_is_deployment,
        read=read_deployment,
        write=write_deployment,
    ),
)
