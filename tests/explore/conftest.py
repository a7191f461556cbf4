"""The explorer's page in a headless Chromium, the system's, driven by playwright.

Tests that ask for `browse` skip where either is missing. Each page is watched: at its end there has
been no error, no warning on the console, and no request but the one for the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oneflow_lite.distributed.global_interpreter import GlobalInterpreter
from oneflow_lite.explore.html import write
from oneflow_lite.interpreter import DEFAULT_STACK
from tests.chromium import started

Browse = Callable[..., Any]


@pytest.fixture(autouse=True)
def plain_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the interpreter that the first global tensor of a process has added for good."""
    if type(DEFAULT_STACK.inner) is GlobalInterpreter:
        monkeypatch.setattr(DEFAULT_STACK, "inner", DEFAULT_STACK.inner.inner)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Start a browser for the tests of one file."""
    with started() as browser:
        yield browser


@pytest.fixture
def browse(chromium: Any, tmp_path: Path) -> Iterator[Browse]:
    """Open documents, at a size and with a colour scheme."""
    complaints: list[str] = []
    contexts = []

    def opened(
        document: Any, width: int = 1400, height: int = 900, scheme: str = "light", tab: str = ""
    ) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)  # a loaded machine may be slow
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        path = write(document, tmp_path / f"page{len(contexts)}.html")
        page.on(
            "request",
            lambda request: request.url == path.as_uri() or complaints.append(request.url),
        )
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        if tab:
            page.click(f"#tab-{tab}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
