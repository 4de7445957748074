"""A real Chromium, driven by Playwright; where there is none, tests of the page are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from waiting import HANG_SECONDS

PATH = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
IMPORTED = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
needs_chromium = pytest.mark.skipif(PATH is None, reason="Chromium is not installed")
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 780}


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser that can reach this machine only."""
    with IMPORTED.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=PATH, args=["--no-sandbox", "--no-proxy-server"]
        )
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A tab of the browser; whatever it reports as an error is kept."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(viewport=DESK, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(HANG_SECONDS * 1000)
        self.address = address
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note)

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def open(self, place: str) -> Any:
        self.page.goto(f"{self.address}/#{place}")
        return self.page
