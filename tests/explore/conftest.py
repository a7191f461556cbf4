"""The explorer's page in a headless Chromium, the system's, driven by playwright.

Tests that ask for `browse` skip where either is missing. Each page is watched: at its end there has
been no error, no warning on the console, and no request but the one for the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oneflow_lite.explore.html import write
from tests.chromium import started

Browse = Callable[..., Any]


@pytest.fixture(autouse=True)
def stack_as_shown(plain_stack: None) -> None:
    """Show the interpreters of a process without global tensors."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Start a browser for the tests of one file."""
    with started() as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(chromium: Any) -> list[Any]:
    """Hold the pages of one file, for a new one costs as much as all that most tests do with it."""
    return []


@pytest.fixture
def browse(chromium: Any, pages: list[Any], tmp_path: Path) -> Iterator[Browse]:
    """Open documents, each in a page of its own, at a size and with a colour scheme."""
    complaints: list[str] = []
    opened_here: list[tuple[Any, dict[str, Callable[[Any], Any]]]] = []

    def opened(
        document: Any, width: int = 1400, height: int = 900, scheme: str = "light", tab: str = ""
    ) -> Any:
        number = len(opened_here)
        if number == len(pages):
            pages.append(chromium.new_context().new_page())
            pages[-1].set_default_timeout(120_000)  # a loaded machine may be slow
        page, path = pages[number], write(document, tmp_path / f"page{number}.html")
        listeners: dict[str, Callable[[Any], Any]] = {
            "console": lambda message: complaints.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: complaints.append(str(error)),
            "request": lambda each: each.url == path.as_uri() or complaints.append(each.url),
        }
        opened_here.append((page, listeners))
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        for event, listener in listeners.items():
            page.on(event, listener)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        if tab:
            page.click(f"#tab-{tab}")
        return page

    yield opened
    whole, pages[:] = list(pages), []  # none is used again if one cannot be put back
    for page, listeners in opened_here:
        page.mouse.move(0, 0)
        page.evaluate("localStorage.clear()")  # complaints on their way come before its answer
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
    pages[:] = whole
    assert complaints == []
