"""Conveniences on model classes, such as drawing and reading files: they live in outer layers.

They are found by name when they are called. The model then depends on no outer layer, and compiled code, whose digest
covers all that its module imports, is not compiled again when a drawing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

FUNCTIONS = {
    "load_program": "headrace.formats.loading",
    "load_platform": "headrace.formats.loading",
    "load_plan": "headrace.given",
    "program_from_networkx": "headrace.formats.networkx_graph",
    "program_to_networkx": "headrace.formats.networkx_graph",
    "program_from_dask": "headrace.runtime.dask_graphs",
    "program_to_dask": "headrace.runtime.dask_graphs",
    "write_program_as": "headrace.formats.saving",
    "write_platform_as": "headrace.formats.saving",
    "probe_platform": "headrace.runtime.measured",
    "draw_plan": "headrace.report.picture",
    "plan_frame": "headrace.report.frames",
    "write_plan_as": "headrace.report.frames",
    "draw_simulated": "headrace.report.picture",
    "simulated_html": "headrace.report.notebook",
    "program_html": "headrace.report.notebook",
    "platform_html": "headrace.report.notebook",
    "plan_html": "headrace.report.notebook",
}
"""The module of each function."""


def deferred(name: str) -> Callable[..., Any]:
    """A function of an outer layer, imported now.

    >>> deferred("load_platform")("local").name
    'local'
    """
    found: Callable[..., Any] = getattr(import_module(FUNCTIONS[name]), name)
    return found
