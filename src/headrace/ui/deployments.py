"""Deployments of pipelines: plan one, show its flows on its hosts, and save it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import UsageError
from headrace.model.safe_path import safe_path
from headrace.ui.endpoint import Endpoint, json_types, number_of, request_of, text_of
from headrace.ui.jobs import Job

if TYPE_CHECKING:
    from headrace.model.deployment import Deployment
    from headrace.ui.workspace import Workspace

MOST_SECONDS = 3600.0
MOST_FLOWS = 600
"""With more flows, hosts of a site are drawn as one."""


@dataclass(frozen=True)
class DeployRequest:
    """What to deploy; files are relative to the folder of the page."""

    pipeline: str
    platform: str
    planner: str = "lpsched"
    source: str = ""
    """Hosts that hold the input, as for `headrace deploy --source`; "": as the pipeline's file says."""
    several_per_host: bool = False
    seconds: float = 30.0


def start_deployment(space: Workspace, request: DeployRequest) -> dict[str, Any]:
    """Begin to plan a deployment."""
    from headrace.planners.pipeline.plan import PLANNERS

    space.path(request.pipeline)
    if request.platform != "local":
        space.path(request.platform)
    if request.planner not in PLANNERS:
        raise UsageError(
            f"there is no planner {request.planner[:100]!r}", hint=f"use one of {', '.join(PLANNERS)}"
        )
    if not 0 < request.seconds <= MOST_SECONDS:
        raise UsageError(f"a search cannot take {request.seconds} s", hint=f"at most {MOST_SECONDS:g} s")
    return space.jobs.start("deployment", lambda job: _deployed(space, request, job))


def _deployed(space: Workspace, request: DeployRequest, job: Job) -> dict[str, Any]:
    from headrace.commands.deploy import DeployOptions, deploy_file
    from headrace.commands.deploy_show import chosen_deployment, filter_rows, summary

    platform = request.platform if request.platform == "local" else str(space.path(request.platform))
    options = DeployOptions(
        planners=request.planner,
        sources=(request.source,) if request.source.strip() else (),
        time=request.seconds,
        several_per_host=request.several_per_host,
    )
    made = chosen_deployment(deploy_file(str(space.path(request.pipeline)), platform, options, job.say).made)
    job.deployment = made
    headers, rows = filter_rows(made)
    return {
        "request": {"pipeline": request.pipeline, "platform": request.platform},
        "title": f"{made.problem.pipeline.name} on {made.problem.platform.name}",
        "throughput": made.throughput,
        "summary": summary(made),
        "filters": {"headers": headers, "rows": rows},
        "picture": picture(made),
    }


def picture(made: Deployment) -> dict[str, Any]:
    """Filters in order, the hosts of each, and what flows between them in MB/s: O(placements + flows).

    With very many flows, the hosts of a site are one.
    """
    site = {host.name: one.name for one in made.problem.platform.sites for host in one.hosts}
    whole = len(made.flows) > MOST_FLOWS
    place = (lambda host: site[host]) if whole else (lambda host: host)
    nodes: dict[tuple[str, str], dict[str, Any]] = {}
    for one in made.placements:
        node = nodes.setdefault(
            (one.filter, place(one.host)),
            {"filter": one.filter, "host": place(one.host), "site": site[one.host]}
            | {"copies": 0, "rate": 0.0, "busy": 0.0},
        )
        node["copies"] += one.copies
        node["rate"] += one.rate
        node["busy"] += one.busy
    for node in nodes.values():
        node["busy"] /= node["copies"]
    flows: dict[tuple[str, str, str, str], float] = {}
    for flow in made.flows:
        key = (flow.source_filter, flow.target_filter, place(flow.source), place(flow.target))
        flows[key] = flows.get(key, 0.0) + flow.rate
    limits = {limit.name.split()[0] for limit in made.limits if limit.name}
    return {
        "filters": [one.name for one in made.problem.pipeline.order],
        "nodes": list(nodes.values()),
        "flows": [
            dict(zip(("source_filter", "target_filter", "source", "target"), key, strict=True))
            | {"planned": rate}
            for key, rate in flows.items()
        ],
        "limits": sorted(limits),
        "merged": whole,
    }


def save_deployment(space: Workspace, number: int, file: str) -> dict[str, str]:
    """Write a deployment to a new file, for `headrace stream --deployment`."""
    from headrace.formats.deployment_ini import write_deployment

    made = deployment_of(space, number)
    if not file.endswith(".ini"):
        raise UsageError(f"{file[:100]!r} does not end in .ini", hint="such as deployment.ini")
    path = (space.root / safe_path(file, "the deployment")).resolve()
    if not path.is_relative_to(space.root) or not path.parent.is_dir():
        raise UsageError(f"there is no folder for {file[:100]!r}", hint=str(space.root))
    if path.exists():
        raise UsageError(f"{file} exists", hint="save under another name")
    write_deployment(made, path)
    return {"file": str(path.relative_to(space.root))}


def deployment_of(space: Workspace, number: int) -> Deployment:
    """The deployment of a job that is done."""
    made = space.jobs.find(number).deployment
    if made is None:
        raise UsageError(f"job {number} has no deployment", hint="wait for it")
    return made


def write_for_run(space: Workspace, number: int, folder: Path) -> Path:
    """The file of a deployment that a run is given."""
    from headrace.formats.deployment_ini import write_deployment

    path = folder / "deployment.ini"
    write_deployment(deployment_of(space, number), path)
    return path


def _deploy(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    return start_deployment(space, request_of(DeployRequest, body))


def _save(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    return save_deployment(space, number_of(path, "job"), text_of(body, "file"))


DEPLOY_ENDPOINTS = (
    Endpoint("POST", "/api/deployments", "Begin to plan a deployment", _deploy, json_types(DeployRequest)),
    Endpoint("POST", "/api/deployments/{job}/save", "Write a deployment", _save, {"file": "string"}),
)
