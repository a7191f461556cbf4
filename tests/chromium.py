"""A headless Chromium, the system's, driven by playwright; tests skip where either is missing."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextlib.contextmanager
def started() -> Iterator[Any]:
    """Start a browser, and end it."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as driver:
        # A container's root user has no sandbox.
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def wait_until(page: Any, expression: str) -> None:
    """Wait for an expression to be true.

    `page.wait_for_function` asks again by `eval`, which the policy of our pages forbids.
    """
    for _ in range(1000):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"not true after 20 s: {expression}")
