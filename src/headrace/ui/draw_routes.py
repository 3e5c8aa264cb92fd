"""Routes of the view Draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.errors import UsageError
from headrace.ui import draw
from headrace.ui.endpoint import Endpoint, text_of, texts_of
from headrace.ui.overview import overview
from headrace.ui.workspace import Workspace

Body = Mapping[str, Any]


def _library(space: Workspace, path: Mapping[str, str], body: Body) -> Any:
    return draw.library(space, texts_of(body, "places", 200))


def _open(space: Workspace, path: Mapping[str, str], body: Body) -> Any:
    return draw.opened(space, text_of(body, "file"))


def _check(space: Workspace, path: Mapping[str, str], body: Body) -> Any:
    return draw.checked(space, _drawing(body), text_of(body, "file"))


def _save(space: Workspace, path: Mapping[str, str], body: Body) -> Any:
    return draw.saved(space, _drawing(body), text_of(body, "file"), text_of(body, "version"))


def _executes(space: Workspace, path: Mapping[str, str], body: Body) -> Any:
    return {"executes": draw.executes(space, text_of(body, "program"))}


def _overview(space: Workspace, path: Mapping[str, str], body: Body) -> Any:
    return overview(space, text_of(body, "program"), texts_of(body, "opened", 10_000))


def _drawing(body: Body) -> Body:
    found = body.get("drawing")
    if not isinstance(found, dict):
        raise UsageError("no drawing", hint='send {"drawing": {...}}')
    return found


_DRAWING = {"drawing": "object", "file": "string"}
DRAW_ENDPOINTS = (
    Endpoint("POST", "/api/library", "Functions of files and modules", _library, {"places": "array"}),
    Endpoint("POST", "/api/drawings/open", "A drawn program", _open, {"file": "string"}),
    Endpoint("POST", "/api/drawings/check", "File and Python program of a drawing", _check, _DRAWING),
    Endpoint(
        "POST", "/api/drawings/save", "Write a drawing to its file", _save, {**_DRAWING, "version": "string"}
    ),
    Endpoint("POST", "/api/programs/executes", "What a run would execute", _executes, {"program": "string"}),
    Endpoint(
        "POST",
        "/api/programs/overview",
        "A program by levels",
        _overview,
        {"program": "string", "opened": "array"},
    ),
)
