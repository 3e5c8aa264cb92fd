"""The example notebook: its cells run in order, and what they end in can be shown."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "tour.ipynb"


def cells() -> list[str]:
    document = json.loads(NOTEBOOK.read_text())
    assert document["nbformat"] == 4
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    return ["".join(cell["source"]) for cell in code]


def shown(text: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last expression."""
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "notebook"}
    values = [shown(text, names) for text in cells()]
    html = {type(value).__name__: value._repr_html_() for value in values if hasattr(value, "_repr_html_")}
    assert set(html) == {"Program", "Platform", "Plan", "SimulatedRun", "Run", "DataFrame"}
    for kind in ("Plan", "SimulatedRun", "Run"):
        assert "<svg" in html[kind]
    assert names["run"].results["sum"] == pytest.approx(0.5 * tiles())
    assert names["failed"].makespan > names["plan"].makespan
    assert values[-1] == pytest.approx(names["plan"].makespan)


def test_the_notebook_has_no_outputs_and_its_cells_can_be_compiled() -> None:
    assert all(compile(text, "cell", "exec") for text in cells())


def tiles() -> int:
    return sum((x * y + n) % 7 for n in range(4) for x in range(20) for y in range(20))
