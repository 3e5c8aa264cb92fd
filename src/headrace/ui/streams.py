"""Pipelines that run: what may be started from the page, and its routes."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import UsageError
from headrace.model.safe_path import safe_path
from headrace.ui.deployments import deployment_of, write_for_run
from headrace.ui.endpoint import Endpoint, json_types, number_of, request_of

if TYPE_CHECKING:
    from headrace.ui.workspace import Workspace

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")
_SPEEDS = re.compile(r"[0-9.eE+-]+(\s*,\s*[0-9.eE+-]+)*")


@dataclass(frozen=True)
class StreamRequest:
    """What to run; files are relative to the folder of the page."""

    app: str
    """`file.py:name`, or a drawing."""
    execute: bool = False
    """The page has said what will be executed, and the user has agreed."""
    job: int = 0
    """A deployment that was planned here; 0: none."""
    deployment: str = ""
    """The file of a deployment."""
    platform: str = ""
    """The platform to emulate; it needs the trial run in `pipeline`."""
    pipeline: str = ""
    slower: float = 1.0
    workers: int = 0
    speeds: str = ""
    duration: float = 0.0
    adapt: bool = False
    output: str = "results"


def start_stream(space: Workspace, request: StreamRequest) -> dict[str, Any]:
    """Run `headrace stream` as a process that the page follows."""
    _require_allowed(space, request)
    if request.job:
        deployment_of(space, request.job)
    return space.streams.start(request.app, lambda folder: _command(space, request, folder))


def _require_allowed(space: Workspace, request: StreamRequest) -> None:
    if not request.execute:
        raise UsageError(f"{request.app} would be executed", hint="allow it, if you trust the file")
    file, _, name = request.app.partition(":")
    if not file.endswith((".py", ".toml")) or (name and not _NAME.fullmatch(name)):
        raise UsageError(f"{request.app[:100]!r} is not a pipeline application", hint="such as app.py:app")
    space.path(file)
    for given in (request.deployment, request.platform, request.pipeline):
        if given:
            space.path(given)
    if request.job and request.deployment:
        raise UsageError("two deployments", hint="choose one")
    if request.speeds and not _SPEEDS.fullmatch(request.speeds):
        raise UsageError(f"the speeds are {request.speeds[:100]!r}", hint="such as 4,2,1")
    if not 0 < request.slower <= 1e6 or not 0 <= request.duration <= 1e6 or not 0 <= request.workers <= 64:
        raise UsageError("a number is out of range", hint="see /api/openapi.json")
    safe_path(request.output, "the results")


def _command(space: Workspace, request: StreamRequest, folder: Path) -> list[str]:
    file, colon, name = request.app.partition(":")
    # An absolute path cannot be taken for an option.
    command = [sys.executable, "-m", "headrace.cli", "stream", f"{space.path(file)}{colon}{name}", "--live"]
    command += ["--output", str(space.root / request.output)]
    files = {"--deployment": request.deployment, "--platform": request.platform}
    for option, given in (files | {"--pipeline": request.pipeline}).items():
        if given:
            command += [option, str(space.path(given))]
    if request.job:
        command += ["--deployment", str(write_for_run(space, request.job, folder))]
    if request.platform and request.slower != 1.0:
        command += ["--slower", str(request.slower)]
    command += ["--workers", str(request.workers)] if request.workers else []
    command += [f"--speeds={request.speeds}"] if request.speeds else []
    command += ["--duration", str(request.duration)] if request.duration else []
    return command + (["--adapt"] if request.adapt else [])


def _start(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    return start_stream(space, request_of(StreamRequest, body))


STREAM_ENDPOINTS = (
    Endpoint("GET", "/api/streams", "Pipelines that were started here", lambda s, p, b: s.streams.all()),
    Endpoint("POST", "/api/streams", "Run a pipeline", _start, json_types(StreamRequest)),
    Endpoint(
        "POST",
        "/api/streams/{process}/stop",
        "Ask a pipeline to end",
        lambda s, p, b: s.streams.stop(number_of(p, "process")),
        {},
    ),
)
