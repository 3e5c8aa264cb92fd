"""A tab of a real browser."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
"""The system's browser; without it, the one that playwright may have installed."""
AXE = Path(__file__).parents[2] / "page" / "node_modules" / "axe-core" / "axe.min.js"


class Tab:
    """A tab that notes errors and requests."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.problems: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on(
            "console", lambda said: self.problems.append(said.text) if said.type == "error" else None
        )
        self.page.on(
            "response",
            lambda got: self.problems.append(f"{got.status} {got.url}") if got.status >= 400 else None,
        )
        self.page.on("request", lambda request: self.asked.append(request.url))

    def view(self, name: str) -> None:
        """Go to a view."""
        self.page.locator("nav").get_by_role("button", name=name, exact=True).click()

    def serious(self) -> list[tuple[str, str]]:
        """What axe finds serious or critical in what is shown."""
        self.page.evaluate(AXE.read_text())
        report = self.page.evaluate("axe.run()")
        return [
            (one["id"], one["nodes"][0]["html"][:120])
            for one in report["violations"]
            if one["impact"] in ("serious", "critical")
        ]
