"""The live tutorials: each runs as a script, and in a browser the film follows a changed cell."""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import started, wait_until

pytest.importorskip("marimo")
playwright = pytest.importorskip("playwright.sync_api")

ROOT = Path(__file__).resolve().parents[2]
LIVE = ROOT / "docs" / "learn" / "live"
TUTORIALS = sorted(path for path in LIVE.glob("*.py") if path.stem != "telling")
PAGE = "iframe[title=explorer]"


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_tells_of_its_film(
    tutorial: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each paragraph names a place that is there, and the page is written for whom and why."""
    monkeypatch.syspath_prepend(str(LIVE))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    _, names = runpy.run_path(str(tutorial))["app"].run()
    document = names["film"].document
    assert len(names["story"]) >= 3
    lengths = {"op": len(document["ops"]), "node": len(document["nodes"])}
    lengths |= {"program": len(document["programs"]), "run": len(document["runs"])}
    for at, text in names["story"]:
        tab, _, query = at.partition("?")
        assert tab in ("forward", "graph", "backward", "programs"), at
        where = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", query)}
        assert [at for key in where if key in lengths and where[key] >= lengths[key]] == []
        if "step" in where:
            assert where["step"] <= len(document["runs"][where["run"]]["steps"]), at
        assert text.startswith("**"), text
    text = " ".join(tutorial.read_text("utf-8").split())
    assert re.search(r"For everybody who .*You will be able to .*\*\*Try:\*\*", text)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Open copies of the tutorials, as `make learn` does, and return the address."""
    folder = tmp_path_factory.mktemp("learn")
    for path in (*LIVE.glob("*.py"), ROOT / "pyproject.toml"):
        shutil.copy(path, folder)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    words = ["edit", ".", "--headless", "--no-token", "--skip-update-check", "--port", str(port)]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    server = subprocess.Popen(
        [sys.executable, "-m", "marimo", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "XDG_CONFIG_HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdout is not None
    said = ""
    for line in server.stdout:
        said += line
        if found := re.search(r"http://\S+", line):
            break
    else:
        raise AssertionError(said)
    yield found[0]
    server.terminate()
    server.wait()


def film(page: Any) -> Any:
    """Return the frame of the explorer's page once it is ready."""
    frame = page.wait_for_selector(PAGE).content_frame()
    frame.wait_for_selector("html[data-ready]")
    return frame


@pytest.mark.slow
def test_the_film_follows_buttons_sliders_and_changed_cells(address: str) -> None:
    with started() as browser:
        page = browser.new_page(viewport={"width": 1500, "height": 1400})
        page.set_default_timeout(60_000)
        page.goto(f"{address}?file=one_relu.py")
        assert film(page).inner_text(".count") == "step 0 of 2"

        def shows(text: str) -> None:
            """Wait until the film has a text, in the frame that there is by then."""
            for _ in range(600):
                with contextlib.suppress(playwright.Error, AttributeError):  # it has just gone
                    if text in film(page).evaluate("document.body.innerText"):
                        return
                page.wait_for_timeout(100)
            raise AssertionError(f"the film never shows {text!r}")

        page.locator("button", has_text="▸ show").nth(3).click()  # of the turn of relu
        shows("step 1 of 2")
        shows("[0, 1]")  # the sum that x has been sent

        slider = page.get_by_role("slider").first
        slider.focus()
        for _ in range(4):
            slider.press("ArrowRight")
        shows("[1, 1]")  # x is [1, 2] now

        cell = page.locator(".cm-content", has_text="flow.relu(x)").first
        cell.click()
        page.keyboard.press("Control+Home")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("End")
        page.keyboard.type(" * 3")
        page.keyboard.press("Control+Enter")
        shows("step 1 of 3")
        shows("mul_backward")
        wait_until(film(page), "explorer.data.nodes.length === 3")
