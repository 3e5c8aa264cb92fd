"""Imports point one way: a folder may use those before it in this list, never those after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import headrace

ROOT = Path(headrace.__file__).parent
SURFACE = "surface"
"""Modules beside the folders (the command, the functions of `import headrace`), and the page."""
ORDER = (
    "model",
    "formats",
    "rules",
    "predict",
    "arrays",
    "core",
    "simulator",
    "simulator.replay",
    "planners",
    "online",
    "simulator.events",
    "simulator.pipeline",
    "runtime",
    "record",
    "experiment",
    "report",
    "reproductions",
    SURFACE,
    "testing",
)
DOWN_INSIDE_FUNCTIONS = {
    ("model/pipeline.py", "Pipeline.read"),
    ("model/deployment.py", "Deployment.plot"),
}
"""Conveniences on model classes that load what they need when they are called."""
LIGHT = ("model", "formats", "predict", "record", "report")
HEAVY = ("numba", "distributed", "dask", "ortools")


@dataclass(frozen=True)
class Import:
    """One imported module, with the function it is imported in ('' at module level)."""

    target: str
    function: str
    line: int


def imports_of(source: str, package: tuple[str, ...]) -> Iterator[Import]:
    """All imports of a module in this package, without those for type checkers alone."""
    yield from _visit(ast.parse(source), (), False, package)


def _visit(
    node: ast.AST, scope: tuple[str, ...], in_function: bool, package: tuple[str, ...]
) -> Iterator[Import]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        function = ".".join(scope) if in_function else ""
        yield from (Import(target, function, node.lineno) for target in _targets(node, package))
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        children: list[ast.AST] = list(node.orelse)
    else:
        children = list(ast.iter_child_nodes(node))
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    if is_function or isinstance(node, ast.ClassDef):
        scope = (*scope, node.name)
    for child in children:
        yield from _visit(child, scope, in_function or is_function, package)


def _targets(node: ast.Import | ast.ImportFrom, package: tuple[str, ...]) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    start = package[: len(package) - node.level + 1] if node.level else ()
    base = ".".join((*start, *((node.module,) if node.module else ())))
    return [f"{base}.{name.name}" for name in node.names]


def layer(dotted: str) -> str | None:
    """The entry of ORDER that a module belongs to; None for other packages."""
    parts = dotted.split(".")
    if parts[0] != "headrace":
        return None
    if ".".join(parts[1:3]) in ORDER:
        return ".".join(parts[1:3])
    return (
        parts[1]
        if len(parts) > 1 and (ROOT / parts[1]).is_dir() and parts[1] not in ("ui", "commands")
        else SURFACE
    )


MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


def found_in(module: str) -> tuple[str, list[Import]]:
    path = ROOT / module
    package = ("headrace", *Path(module).parts[:-1])
    own = layer(".".join((*package, path.stem)))
    assert own is not None
    return own, list(imports_of(path.read_text(encoding="utf-8"), package))


def points_down(own: str, target: str) -> bool:
    to = layer(target)
    return to is not None and ORDER.index(to) > ORDER.index(own)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_up(module):
    own, imports = found_in(module)
    assert own in ORDER, f"{module}: put the folder {own!r} into ORDER, where it belongs"
    down = [i for i in imports if points_down(own, i.target)]
    assert [i for i in down if not i.function] == []
    assert [i for i in down if i.function and (module, i.function) not in DOWN_INSIDE_FUNCTIONS] == []


@pytest.mark.parametrize("module", [m for m in MODULES if m.split("/")[0] in LIGHT])
def test_light_folders_load_nothing_heavy(module):
    _, imports = found_in(module)
    assert [i for i in imports if not i.function and i.target.split(".")[0] in HEAVY] == []


def test_all_ways_to_import_are_seen():
    source = """
import headrace.report.gantt as g
from headrace.planners.list import heft
from ..runtime import execute
from . import units
if TYPE_CHECKING:
    from headrace.record import store
else:
    import numba
class A:
    import headrace.cli
    def f(self):
        def g():
            from headrace import testing
        try:
            import headrace.ui.page
        except ImportError:
            pass
"""
    assert [(i.target, i.function) for i in imports_of(source, ("headrace", "model"))] == [
        ("headrace.report.gantt", ""),
        ("headrace.planners.list.heft", ""),
        ("headrace.runtime.execute", ""),
        ("headrace.model.units", ""),
        ("numba", ""),
        ("headrace.cli", ""),
        ("headrace.testing", "A.f.g"),
        ("headrace.ui.page", "A.f"),
    ]


def test_layers_and_directions():
    assert [
        layer(m) for m in ("headrace.model.graph", "headrace.cli", "headrace.api.plan", "headrace", "numpy")
    ] == [
        "model",
        SURFACE,
        SURFACE,
        SURFACE,
        None,
    ]
    assert points_down("model", "headrace.runtime.cluster")
    assert points_down("simulator.replay", "headrace.planners.list.heft")
    assert points_down("planners", "headrace.simulator.events.backend")
    assert not points_down("planners", "headrace.simulator.replay.replay")
    assert not points_down("simulator.events", "headrace.planners.registry")
    assert not points_down("runtime", "headrace.runtime.files")
    assert not points_down("model", "numba")
