"""Simulations with many seeds: the same as `headrace simulate --runs`, from a form."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.model.errors import UsageError
from headrace.ui.endpoint import Endpoint, json_types, request_of
from headrace.ui.jobs import Job

if TYPE_CHECKING:
    from headrace.ui.workspace import Workspace

MOST_RUNS = 10_000


@dataclass(frozen=True)
class SimulateRequest:
    """What to simulate; files are relative to the folder of the page."""

    program: str
    platform: str = "local"
    scheduler: str = "auto"
    runs: int = 100
    seed: int = 0
    error: float = 0.0
    faults: str = ""
    estimates: str = "user"
    seconds: float = 0.0
    """Search time of schedulers that search; 0: theirs."""
    execute: bool = False
    """Whether a Python file may be executed to read its program."""


def start_simulation(space: Workspace, request: SimulateRequest) -> dict[str, Any]:
    """Begin to simulate."""
    if not 1 <= request.runs <= MOST_RUNS or not 0 <= request.seed < 2**31:
        raise UsageError(f"{request.runs} runs from seed {request.seed}", hint=f"at most {MOST_RUNS:,} runs")
    space.require_case(request.program, request.platform, request.scheduler, execute=request.execute)
    return space.jobs.start("simulation", lambda job: _simulated(space, request, job))


def _simulated(space: Workspace, request: SimulateRequest, job: Job) -> dict[str, Any]:
    from headrace.commands.simulate import SimulateCase
    from headrace.commands.simulate_options import SimulateSource, require_fitting
    from headrace.commands.simulate_runs import simulate_runs
    from headrace.formats.loading import load_grid, load_program
    from headrace.simulator.events.config import SimulationConfig

    file, colon, name = request.program.partition(":")
    grid = load_grid("local" if request.platform == "local" else space.path(request.platform))
    source = SimulateSource(request.scheduler, seed=request.seed, time=request.seconds or None)
    config = SimulationConfig(estimates=request.estimates, faults=request.faults, error=request.error)
    require_fitting(source, config, grid)
    job.say("reading")
    case = SimulateCase(load_program(f"{space.path(file)}{colon}{name}"), grid, source, config)
    repeated = simulate_runs(case, request.runs, job.say)
    return {
        "title": f"{case.program.name} under {repeated.scheduler}",
        "summary": repeated.rows(),
        "command": command_of(request),
        **repeated.json(),
    }


def command_of(request: SimulateRequest) -> str:
    """The command that gives the same figures.

    >>> command_of(SimulateRequest("a.json", "lab.toml", "heft", 50, 3, 0.2, "kill=1@50%"))
    'headrace simulate a.json --on lab.toml --scheduler heft --runs 50 --seed 3 --error 0.2 --faults kill=1@50%'
    """
    given: list[str] = [request.program, "--on", request.platform, "--scheduler", request.scheduler]
    given += ["--runs", str(request.runs), "--seed", str(request.seed)]
    given += ["--error", f"{request.error:g}"] if request.error else []
    given += ["--faults", request.faults] if request.faults else []
    given += ["--estimates", request.estimates] if request.estimates != "user" else []
    given += ["--time", f"{request.seconds:g}"] if request.seconds else []
    return f"headrace simulate {shlex.join(given)}"


def hosts_of(space: Workspace, platform: str) -> dict[str, Any]:
    """Names of hosts and links, to choose those that fail."""
    from headrace.formats.loading import load_platform

    found = load_platform("local" if platform == "local" else space.path(platform))
    return {"hosts": [host.name for host in found.hosts][:2000], "sites": [site.name for site in found.sites]}


def _simulate(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    return start_simulation(space, request_of(SimulateRequest, body))


def _hosts(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    platform = body.get("platform")
    if not isinstance(platform, str):
        raise UsageError("no platform", hint='send {"platform": "..."}')
    return hosts_of(space, platform)


SIMULATE_ENDPOINTS = (
    Endpoint("POST", "/api/simulations", "Begin to simulate", _simulate, json_types(SimulateRequest)),
    Endpoint("POST", "/api/platforms/hosts", "Hosts of a platform", _hosts, {"platform": "string"}),
)
