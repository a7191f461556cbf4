"""The site is built strictly, works from a disk, and embeds what the explorer shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chromium import started, wait_until

pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("marimo")
pytest.importorskip("myst_parser")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
STAND_IN = """
import pathlib, runpy, sys
script, page = sys.argv[1:]
runpy.run_path(script)
pathlib.Path(page).write_text(f"<html><p>explored {pathlib.Path(script).name}</p></html>")
"""
INDEX = """# Start

```{toctree}
learn/one
learn/transforms
learn/live/one_relu
examples/script
```

[One](learn/one.md), its [middle](learn/one.md#the-middle), an [example](examples/script.py),
a [snippet](learn/snippets/ran.py) and the [license](LICENSE).
"""
ONE = """# One

## The middle

```{explorer} ran.py
```

```python
text = "LONG"
```

![a picture](seen.png)

Back to the [start](../index.md), and {py:obj}`flow.fft.rfft`.

```{include} ../note.txt
```
"""
TRANSFORMS = """# Transforms

```{names} fft
```

## `nn.functional` and `nn`

```{names} nn.functional
:from: functors.conv functors.unfolding
```

```{names} nn
:from: nn.modules.conv
```
"""


def build(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Build the pages of a folder with the configuration of the site, and without its pages."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    stand_in = folder.parent / "stand_in.py"
    stand_in.write_text(STAND_IN)
    settings = {
        "whole_reference": "0",
        "explorer_command": f"{{python}},{stand_in},{{script}},{{page}}",
    }
    words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-c", str(DOCS), *words, *options]
    return subprocess.run(
        [*command, str(folder), str(folder.parent / "site")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small site, built strictly."""
    folder = tmp_path_factory.mktemp("small") / "docs"
    (folder / "learn" / "snippets").mkdir(parents=True)
    (folder / "examples").mkdir()
    (folder / "index.md").write_text(INDEX)
    (folder / "learn" / "one.md").write_text(ONE.replace("LONG", "long " * 60))
    (folder / "learn" / "transforms.md").write_text(TRANSFORMS)
    (folder / "examples" / "script.py").write_text('"""A script to read."""\n\nx = 6 * 7\n')
    (folder / "learn" / "snippets" / "ran.py").write_text('"""Nothing."""\n')
    for name in ("seen.png", "seen-dark.png"):
        shutil.copy(DOCS / "figures" / "explorer-backward.png", folder / "learn" / name)
    (folder / "learn" / "live").mkdir()
    for name in ("one_relu.py", "telling.py"):
        shutil.copy(DOCS / "learn" / "live" / name, folder / "learn" / "live")
    (folder / "note.txt").write_text("The [first page](learn/one.md) has it.\n")
    (folder / "LICENSE").write_text("Anything goes.\n")
    done = build(folder, "-W", "--keep-going")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder.parent / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start a browser."""
    with started() as found:
        yield found


def test_pages_link_to_pages_and_files(site: Path) -> None:
    start = (site / "index.html").read_text("utf-8")
    assert 'href="learn/one.html"' in start
    assert 'href="learn/one.html#the-middle"' in start
    assert 'href="examples/script.html"' in start
    assert re.search(r'href="_downloads/[^"]*/ran.py"', start)
    (license_file,) = re.findall(r'href="(_downloads/[^"]*LICENSE)"', start)
    assert (site / license_file).read_text() == "Anything goes.\n"
    one = (site / "learn" / "one.html").read_text("utf-8")
    assert 'href="flow.fft.rfft.html#flow.fft.rfft"' in one
    assert re.search(r'href="#"[^>]*><span[^>]*>first page', one)


def test_the_explorer_is_embedded_and_linked(site: Path) -> None:
    one = (site / "learn" / "one.html").read_text("utf-8")
    (source,) = re.findall(r'<iframe class="explorer" src="([^"]+)"', one)
    assert f'href="{source}"' in one
    assert (site / "learn" / source).read_text() == "<html><p>explored ran.py</p></html>"


def test_a_picture_follows_the_scheme(site: Path, browser: Any) -> None:
    for scheme, shown in (("light", "seen.png"), ("dark", "seen-dark.png")):
        page = browser.new_page(color_scheme=scheme)
        page.goto((site / "learn" / "one.html").as_uri())
        visible = [e.get_attribute("src") for e in page.locator("img").all() if e.is_visible()]
        assert [str(source).rpartition("/")[2] for source in visible] == [shown]
        page.close()


def test_no_box_of_code_overflows(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((site / "learn" / "one.html").as_uri())
    widths = page.evaluate(
        "[...document.querySelectorAll('pre')].map(e => [e.scrollWidth, e.clientWidth])"
    )
    assert widths
    assert all(inner <= outer for inner, outer in widths)
    page.close()


def test_a_live_tutorial_is_a_page_whose_links_send_the_film(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto((site / "learn" / "live" / "one_relu.html").as_uri())
    assert page.inner_text("h1").startswith("One relu")
    assert "y = flow.relu(x)" in page.inner_text("article")
    (frame,) = page.frames[1:]
    frame.wait_for_selector("html[data-ready]")
    for count in ("step 1 of 2", "step 2 of 2", "step 0 of 2"):
        page.click(f'a[target=film][href$="step={count[5]}"]')
        wait_until(frame, f'document.querySelector(".count")?.innerText === "{count}"')
    page.close()


def test_a_script_is_a_page(site: Path) -> None:
    page = (site / "examples" / "script.html").read_text("utf-8")
    assert "A script to read." in page
    assert "script.py" in page
    assert page.count("A script to read.") == 1  # what stands above the script is not in it again


def text_of(page: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page.read_text("utf-8")))


def test_each_name_has_a_page_to_which_its_kind_leads(site: Path) -> None:
    kind = (site / "learn" / "transforms.html").read_text("utf-8")
    assert re.search(r'<td id="flow.fft.rfft">.*?href="flow.fft.rfft.html#flow.fft.rfft"', kind)
    assert "Parameters" not in kind
    text = text_of(site / "learn" / "flow.fft.rfft.html")
    assert re.search(r"flow\.fft\.rfft ?\( ?input: Tensor, ?n: \w+", text)
    assert "ShapeError" in text or "DTypeError" in text
    assert "Parameters" in text
    assert "In functors/spectral.py" in text


def test_another_name_is_a_row_that_says_which_is_the_first(site: Path) -> None:
    kind = (site / "learn" / "transforms.html").read_text("utf-8")
    row = re.search(r'<td id="flow.nn.functional.conv2d">.*?</tr>', kind, re.DOTALL)
    assert row
    assert "The same as" in row[0]
    assert "flow.conv2d" in row[0]
    assert not (site / "learn" / "flow.nn.functional.conv2d.html").exists()


def test_the_columns_lead_to_the_names_and_to_members(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 500})
    page.goto((site / "learn" / "transforms.html").as_uri())
    page.click(".sidebar-tree :text('nn.functional and nn') ~ label")
    page.click(".sidebar-tree a:text-is('Conv2d')")
    page.wait_for_url("**/learn/flow.nn.Conv2d.html")
    here = page.locator(".sidebar-tree .current-page > a")
    assert here.all_inner_texts() == ["Conv2d"]
    box = here.bounding_box()
    assert 0 < box["y"] < 500
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    members = page.locator(".toc-tree a").all_text_contents()
    assert {"forward()", "extra_repr()"} <= {member.strip() for member in members}
    page.close()


BROKEN = {
    "[x](nowhere.md)": "nowhere.md",
    "[x](index.md#nowhere)": "nowhere",
    "{py:obj}`flow.nothing`": "flow.nothing",
    "```{names} nothing\n```": "no public name is in flow.nothing",
    "```{explorer} fails.py\n```": "the script has failed",
    "![x](nowhere.png)": "nowhere.png",
}


def test_mistakes_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "index.md").write_text("# Start\n\n" + "\n\n".join(BROKEN))
    (folder / "forgotten.md").write_text("# Forgotten\n")
    (folder / "fails.py").write_text("raise SystemExit('the script has failed')\n")
    done = build(folder, "-W", "--keep-going")
    assert done.returncode == 1
    assert [message for message in BROKEN.values() if message not in done.stderr] == []
    assert re.search(r"forgotten\.md: WARNING: document isn't included in any toctree", done.stderr)


def test_what_the_reference_lacks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from docs.site import reference
    from docs.site.public_names import Name

    said: list[str] = []
    monkeypatch.setattr(reference._log, "warning", lambda text, *args: said.append(text % args))
    monkeypatch.setattr(reference, "without_docstring", lambda: ["flow.mute"])
    names = {f"flow.{name}": Name("", name, None) for name in ("a", "b", "c", "b.member")}
    monkeypatch.setattr(reference, "public_names", lambda: names)
    app: Any = SimpleNamespace(config=SimpleNamespace(whole_reference=True))
    kinds = {"one": {"": ["flow.a", "flow.b"]}, "two": {"": ["flow.a"]}}
    env: Any = SimpleNamespace(project=SimpleNamespace(kinds=kinds))
    reference.check(app, env)
    assert said == [
        "flow.a is on two pages: one and two",
        "flow.c is on no page of docs/reference",
        "flow.mute has no docstring",
    ]
    app.config.whole_reference = False
    reference.check(app, env)
    assert len(said) == 3


def test_values_are_shown_without_their_addresses() -> None:
    from docs.site import reference

    assert reference._shown({"a": build}) == "{'a': <function build>}"


# --- In a browser -------------------------------------------------------------------------------


def test_search_works_from_a_disk(site: Path, browser: Any) -> None:
    page = browser.new_page()
    refused: list[str] = []
    page.on("request", lambda r: r.url.startswith("http") and refused.append(r.url))
    page.goto((site / "index.html").as_uri())
    page.fill("input.sidebar-search", "irfft")
    page.press("input.sidebar-search", "Enter")
    first = page.locator("#search-results li a").first
    first.wait_for()
    assert first.inner_text().startswith("flow.fft.irfft")
    first.click()
    page.wait_for_url("**/learn/flow.fft.irfft.html*")
    assert refused == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_scheme_of_the_system(site: Path, browser: Any, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto((site / "index.html").as_uri())
    colours = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", colours)[:3])) / 3
    assert (brightness > 128) == (scheme == "light")
    page.close()
