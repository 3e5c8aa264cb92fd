"""A browser and a tab that shows the page of a folder; each module has a fixture `folder`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ui.browsing import CHROMIUM, Tab


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with api.sync_playwright() as driver:
        try:
            made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except api.Error as error:
            pytest.skip(f"no browser starts here (make browser): {str(error).splitlines()[0]}")
        yield made
        made.close()


@pytest.fixture
def served_page(folder: Path) -> Iterator[Any]:
    from ui.serving import served

    with served(folder) as page:
        yield page


@pytest.fixture
def tab(browser: Any, served_page: Any) -> Iterator[Tab]:
    made = Tab(browser, viewport={"width": 1200, "height": 900})
    made.page.goto(served_page.link)
    made.page.wait_for_selector("nav button")
    yield made
    assert made.problems == []
    assert [url for url in made.asked if not url.startswith((served_page.origin, "data:"))] == []
    made.page.close()
