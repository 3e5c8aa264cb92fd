"""The routes of the page, and the server on a socket of this machine."""

from __future__ import annotations

import ipaddress
import json
import mimetypes
import re
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import HeadraceError, UsageError
from headrace.ui import workspace
from headrace.ui.deployments import DEPLOY_ENDPOINTS
from headrace.ui.draw_routes import DRAW_ENDPOINTS
from headrace.ui.endpoint import Endpoint, json_types, number_of, request_of, text_of
from headrace.ui.feed import Feed
from headrace.ui.gate import Gate
from headrace.ui.jobs import JOB_ENDPOINTS
from headrace.ui.live import RunRequest, Watch, finished_since, log_of, stop_run
from headrace.ui.look_back import LOOK_BACK_ENDPOINTS
from headrace.ui.simulations import SIMULATE_ENDPOINTS
from headrace.ui.streams import STREAM_ENDPOINTS
from headrace.ui.workspace import Move, PlanRequest, Workspace

if TYPE_CHECKING:  # an optional dependency
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}")
"""Names of files of the built page."""


def _plan(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    return space.start_plan(request_of(PlanRequest, body)).facts()


def _run(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    return space.launcher.start(request_of(RunRequest, body))


def _job(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    return space.job(number_of(path, "job")).facts()


def _offers(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    start = body.get("start")
    if not isinstance(start, int | float) or isinstance(start, bool) or not abs(start) < 1e18:
        raise UsageError("no start", hint="send seconds from the start of the plan")
    move = Move(text_of(body, "task"), text_of(body, "host"), float(start))
    return {"offers": space.offers(number_of(path, "job"), move, text_of(body, "rules"))}


def _since(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    after = body.get("after")
    if not isinstance(after, int) or isinstance(after, bool) or not 0 <= after < 2**53:
        raise UsageError("no row", hint='send {"after": 0}')
    return finished_since(path["run"], after)


def _log(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    seen = body.get("seen", {})
    if not isinstance(seen, dict) or not all(isinstance(n, int) and abs(n) < 2**53 for n in seen.values()):
        raise UsageError("seen is not what it should be", hint="send the bytes seen of each attempt")
    return log_of(path["run"], text_of(body, "task"), seen)


def _check(space: Workspace, path: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    text = body.get("text")
    if not isinstance(text, str):
        raise UsageError("no text", hint='send {"text": "..."}')
    return {"errors": workspace.check_rules(text)}


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/files",
        "Files that can be planned",
        lambda s, p, b: {"root": str(s.root), "files": s.files()},
    ),
    Endpoint("GET", "/api/schedulers", "Schedulers by name", lambda s, p, b: s.schedulers()),
    Endpoint(
        "POST", "/api/plans", "Begin to plan; the feed tells when it is done", _plan, json_types(PlanRequest)
    ),
    Endpoint("GET", "/api/plans/{job}", "A plan, or how far it is", _job),
    Endpoint(
        "POST",
        "/api/plans/{job}/stop",
        "End a search: what it has found is good enough",
        lambda s, p, b: s.stop_plan(number_of(p, "job")),
        {},
    ),
    Endpoint(
        "POST",
        "/api/plans/{job}/offers",
        "Rules that say what a dragged bar says",
        _offers,
        {"task": "string", "host": "string", "start": "number", "rules": "string"},
    ),
    Endpoint("POST", "/api/rules/check", "What is wrong with rules", _check, {"text": "string"}),
    Endpoint(
        "GET", "/api/rules/attributes", "What rules can speak of", lambda s, p, b: workspace.attributes()
    ),
    Endpoint("GET", "/api/runs", "Runs of the record", lambda s, p, b: workspace.runs()),
    Endpoint("POST", "/api/runs", "Execute a program", _run, json_types(RunRequest)),
    Endpoint("POST", "/api/runs/{run}/stop", "Ask a run to end", lambda s, p, b: stop_run(p["run"]), {}),
    Endpoint(
        "POST",
        "/api/runs/{run}/since",
        "Executions recorded after a row",
        _since,
        {"after": "integer"},
    ),
    Endpoint(
        "POST",
        "/api/runs/{run}/log",
        "What a task has printed",
        _log,
        {"task": "string", "seen": "object"},
    ),
    Endpoint("GET", "/api/runs/{run}", "A run over its plan", lambda s, p, b: workspace.run(p["run"])),
    *DRAW_ENDPOINTS,
    *LOOK_BACK_ENDPOINTS,
    *JOB_ENDPOINTS,
    *DEPLOY_ENDPOINTS,
    *STREAM_ENDPOINTS,
    *SIMULATE_ENDPOINTS,
)


def make_app(root: Path, feed: Feed | None = None) -> Starlette:
    """The application without its gate; only `guarded` should be served."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, StreamingResponse
    from starlette.routing import Route

    feed = feed or Feed()
    space, watch = Workspace(root, feed), Watch(feed)
    routes = [Route(one.path, _handler(one, space), methods=[one.method]) for one in ENDPOINTS]

    async def events(request: Request) -> Response:
        given = request.headers.get("last-event-id", request.query_params.get("after", ""))
        after = int(given) if given.isascii() and given.isdigit() and len(given) < 16 else feed.last

        async def stream() -> AsyncIterator[str]:
            async with watch.listened():
                async for one in feed.follow(after):
                    yield one

        return StreamingResponse(stream(), media_type="text/event-stream")

    routes += [
        Route("/api/events", events, methods=["GET"]),
        Route("/api/openapi.json", lambda request: JSONResponse(openapi()), methods=["GET"]),
        Route("/", lambda request: _static("index.html"), methods=["GET"]),
        Route(
            "/assets/{name}",
            lambda request: _static(f"assets/{request.path_params['name']}"),
            methods=["GET"],
        ),
    ]
    return Starlette(routes=routes)


def guarded(root: Path, origin: str, feed: Feed | None = None) -> Gate:
    """The application as it is served."""
    return Gate(make_app(root, feed), origin)


def _handler(endpoint: Endpoint, space: Workspace) -> Callable[[Request], Any]:
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse, Response

    async def handle(request: Request) -> Response:
        try:
            body = _object(await request.body()) if endpoint.method == "POST" else {}
            # Files, the record and rules take time: the loop goes on with other requests.
            answer = await run_in_threadpool(endpoint.answer, space, request.path_params, body)
            return JSONResponse(answer)
        except ClientDisconnect:
            return Response(status_code=413)
        except HeadraceError as error:
            return JSONResponse({"error": str(error)}, status_code=400)

    return handle


def _object(body: bytes) -> dict[str, Any]:
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        raise UsageError("the request is not JSON", hint="send an object") from None
    if not isinstance(read, dict):
        raise UsageError("the request is not an object", hint="send an object")
    return read


def _static(name: str) -> Response:
    """A file of the built page; names with a slash do not get here."""
    from starlette.responses import Response

    folder, _, file = name.rpartition("/")
    place = files("headrace.ui") / "static"
    found = (place / folder if folder else place) / file
    if not _NAME.fullmatch(file) or not found.is_file():
        return Response("not found\n", status_code=404, media_type="text/plain")
    kind = mimetypes.guess_type(file)[0] or "application/octet-stream"
    return Response(found.read_bytes(), media_type=kind)


def openapi() -> dict[str, Any]:
    """A description of the routes for programs."""
    paths: dict[str, dict[str, Any]] = {}
    for one in ENDPOINTS:
        names = [part[1:-1] for part in one.path.split("/") if part.startswith("{")]
        given = [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]
        answers = {"200": {"description": "as JSON"}, "400": {"description": "an error, as text"}}
        described: dict[str, Any] = {"summary": one.line, "responses": answers}
        if given:
            described["parameters"] = given
        if one.method == "POST":
            schema: dict[str, Any] = {"type": "object"}
            if one.body is not None:
                schema["properties"] = {name: {"type": kind} for name, kind in one.body.items()}
            content = {"application/json": {"schema": schema}}
            described["requestBody"] = {"required": True, "content": content}
        paths.setdefault(one.path, {})[one.method.lower()] = described
    return {"openapi": "3.1.0", "info": {"title": "Headrace", "version": "1"}, "paths": paths}


@dataclass(frozen=True)
class Address:
    """Where the server listens; only loopback without a certificate."""

    host: str = "127.0.0.1"
    port: int = 0
    cert: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise UsageError("a certificate needs its key", hint="give --cert FILE and --key FILE")
        try:
            loopback = ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            raise UsageError(f"{self.host!r} is not an IP address", hint="such as 127.0.0.1") from None
        if not loopback and self.cert is None:
            raise UsageError(
                f"{self.host} can be reached from other machines",
                hint="give --cert FILE and --key FILE, or use 127.0.0.1",
            )
        if ipaddress.ip_address(self.host).is_unspecified:
            raise UsageError("the page answers to one address only", hint="give the address of this machine")

    def listen(self) -> socket.socket:
        """A socket on the address; UsageError if it is taken."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((self.host, self.port))
        except OSError as error:
            made.close()
            raise UsageError(
                f"port {self.port} of {self.host} cannot be used: {error.strerror}",
                hint="give another --port",
            ) from None
        made.listen(64)
        return made

    def origin(self, port: int) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.cert is None else 'https'}://{host}:{port}"


def make_server(gate: Gate, address: Address) -> Any:
    """A server for one page; `run(sockets=[...])` serves until it is told to exit."""
    import uvicorn

    config = uvicorn.Config(
        gate,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=32_768,
        ssl_certfile=None if address.cert is None else str(address.cert),
        ssl_keyfile=None if address.key is None else str(address.key),
    )
    return uvicorn.Server(config)
