"""The tutorials: each ends with a page of the explorer, made from a snippet that runs alone."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEARN = ROOT / "docs" / "learn"
SNIPPETS = sorted((LEARN / "snippets").glob("*.py"))


@pytest.mark.parametrize("page", sorted(LEARN.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_says_what_one_will_be_able_to_do_and_ends_with_the_explorer(page: Path) -> None:
    text = page.read_text("utf-8")
    named = re.findall(r"^```\{explorer\} (\S+)$", text, re.MULTILINE)
    if page.stem == "index":
        assert not named
        return
    opening = text.split("\n\n")[1]
    assert opening.startswith("You will be able to ")
    assert [name for name in named if not (LEARN / "snippets" / name).is_file()] == []
    assert len(named) == 1


def test_each_snippet_belongs_to_a_page() -> None:
    assert SNIPPETS
    assert [s.name for s in SNIPPETS if not (LEARN / f"{s.stem}.md").is_file()] == []


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder, with the library of this checkout; return what it prints."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,  # it takes some seconds; a busy machine may take longer
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.stem)
def test_a_snippet_runs_by_itself_and_is_explored(snippet: Path, tmp_path: Path) -> None:
    words = ("-m", "oneflow_lite.explore", "--no-open", "--out", "page.html", str(snippet))
    assert run(tmp_path, *words).strip()
    (page,) = [path.read_text("utf-8") for path in tmp_path.iterdir()]
    assert snippet.name in page
    assert page.rstrip().endswith("</html>")


@pytest.mark.slow
def test_each_picture_is_drawn_and_shown(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = LEARN / "figures"
    spec = importlib.util.spec_from_file_location("draw", folder / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    draw = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(draw)
    shown = {
        name
        for page in LEARN.glob("*.md")
        for name in re.findall(r"!\[[^]]+\]\(figures/(\w+)\.svg\)", page.read_text("utf-8"))
    }
    assert shown == {picture.stem for picture in folder.glob("*.svg")} == set(draw.FIGURES)
    del draw.FIGURES["digits"]  # it trains a network
    draw.main(tmp_path)
    assert {picture.stem for picture in tmp_path.iterdir()} == set(draw.FIGURES)
