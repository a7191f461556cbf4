"""Pictures of the explorer for the docs, of the network in small_network.py.

    ONEFLOW_LITE_FIGURES=1 python -m pytest tests/explore/test_page_figures.py

writes docs/figures/explorer-*.png, and what text they show to figures.json. Without the variable
the text is compared: a picture is stale when the page no longer shows what stands in it. Numbers of
lines and values are left out, and so are pixels, for fonts differ from machine to machine.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oneflow_lite as flow
from tests.explore import small_network
from tests.explore.conftest import Browse
from tests.explore.documents import explored

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"
SHOWN = Path(__file__).with_name("figures.json")
WRITE = bool(os.environ.get("ONEFLOW_LITE_FIGURES"))
MOST = 200_000  # bytes of a picture
DARK = {"backward": FIGURES / "explorer-backward-dark.png"}  # for dark pages of the site


def forward(page: Any) -> None:
    page.click(".forward .row:has-text('tanh')")
    page.hover(".forward article .tensor >> nth=0")
    page.wait_for_selector("#tip:not([hidden])")


def graph(page: Any) -> None:
    page.click("#tab-graph")
    page.click(".graph .row:has-text('tanh')")
    page.mouse.move(640, 5)


def backward(page: Any) -> None:
    page.click("#tab-backward")
    page.fill(".film [type=range]", "5")
    page.mouse.move(640, 5)


PLACES: dict[str, Callable[[Any], None]] = {
    "forward": forward,
    "graph": graph,
    "backward": backward,
}


@functools.cache
def stepped() -> Any:
    """Return the document of one step of training, of the same numbers each time."""
    flow.manual_seed(0)
    small_network.net = small_network.Net()
    return explored(small_network.step)


def shown(page: Any) -> list[str]:
    """Return the lines of text in sight, without what differs from run to run.

    The groups of a graph that are open at first hang on the widths of letters: they are left out.
    """
    text = page.inner_text("main") + page.inner_text("#tip")
    same = re.sub(r":\d+|-?\d+\.\d*(e-?\d+)?|(?<=sequence )(number\s+)?\d+", "…", text)
    return [line.strip() for line in same.splitlines() if line.strip()]


def test_the_picture_of_a_summary_is_made(chromium: Any) -> None:
    """The table that a notebook shows, for the README."""
    found = flow.summary(small_network.Net(), (16, 4))
    assert "parameters" in str(found)
    if WRITE:
        page = chromium.new_page(viewport={"width": 720, "height": 400})
        page.set_content(f"<body style='font: 15px sans-serif'>{found._repr_html_()}</body>")
        page.locator(".oneflow-lite").screenshot(path=FIGURES / "summary.png")
        page.close()
    assert (FIGURES / "summary.png").stat().st_size < MOST


@pytest.mark.parametrize("name", PLACES)
def test_pictures_show_what_the_page_shows(browse: Browse, name: str) -> None:
    page = browse(stepped(), width=1280, height=900)
    PLACES[name](page)
    page.wait_for_timeout(300)  # the canvas draws in its own time
    figure = FIGURES / f"explorer-{name}.png"
    texts = json.loads(SHOWN.read_text()) if SHOWN.exists() else {}
    if WRITE:
        page.screenshot(path=figure)
        if name in DARK:
            page.emulate_media(color_scheme="dark")
            page.wait_for_timeout(300)
            page.screenshot(path=DARK[name])
        SHOWN.write_text(
            json.dumps({**texts, name: shown(page)}, indent=1, ensure_ascii=False) + "\n"
        )
    else:
        assert shown(page) == texts[name], "make the pictures anew: see the top of this file"
    assert figure.stat().st_size < MOST
