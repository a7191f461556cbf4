"""Time until the explorer's page shows a graph: documents of 5,000 nodes in a headless Chromium.

`python -m tests.benchmarks.explorer` prints seconds from the start of loading to the first picture
of the graph, which is the page's first tab here, then from each press on a control to its picture.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from oneflow_lite.explore.html import write
from tests.benchmarks.results import table
from tests.explore import documents
from tests.explore.conftest import NAMES

WORKS = {"loop": documents.looped, "modules": documents.modular, "neither": documents.tangled}
# What is done, and the element to press for it.
PRESSES = {
    "all nodes": ".graph [aria-label='Open all groups']",
    "backward": "#tab-backward",
    "a step": "[aria-label='Step forward']",
    "last step": "[aria-label='Last step']",
}
PRESS = """async (what) => {
  const start = performance.now();
  document.querySelector(what).click();
  do await new Promise((seen) => requestAnimationFrame(() => setTimeout(seen)));
  while (document.querySelector("[aria-busy]"));
  return (performance.now() - start) / 1000;
}"""


def timed(browser: Any, path: Path) -> dict[str, float]:
    """Return the seconds of loading a page, and of each press."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(120_000)
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    found = {"first picture": time.perf_counter() - start}
    for name, what in PRESSES.items():
        found[name] = page.evaluate(PRESS, what)
    page.close()
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, NAMES)))
    rows = []
    with sync_playwright() as started, tempfile.TemporaryDirectory() as folder:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, make in WORKS.items():
            document = make()
            path = write(document, Path(folder) / f"{name}.html")
            runs = [timed(browser, path) for _ in range(rounds)]
            for what in runs[0]:
                seconds = [run[what] for run in runs]
                middle, least = statistics.median(seconds), min(seconds)
                count = str(len(document["nodes"]))
                rows.append([name, count, what, f"{middle:.2f}", f"{least:.2f}"])
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(table(["graph", "nodes", "what", "median", "least"], rows))


if __name__ == "__main__":
    main()
