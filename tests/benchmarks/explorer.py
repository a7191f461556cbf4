"""How soon the explorer's page shows a graph: documents of 5,000 nodes in a headless Chromium.

`python -m tests.benchmarks.explorer` prints, as medians over rounds, seconds from the start of
loading to the first picture of the page, then from the press on a tab to its picture. `cpu` is what
the page's thread worked for it, which other programs of the machine disturb less than the seconds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oneflow_lite.explore.html import write
from tests.benchmarks.results import table
from tests.explore import documents
from tests.explore.conftest import NAMES

WORKS = {"loop": documents.looped, "modules": documents.modular, "neither": documents.tangled}
# What is done, and the element to press for it.
PRESSES = {
    "graph": "#tab-graph",
    "all nodes": ".graph [aria-label='Open all groups']",
    "backward": "#tab-backward",
    "a step": "[aria-label='Step forward']",
    "last step": "[aria-label='Last step']",
}
PRESS = """async (what) => {
  const start = performance.now();
  document.querySelector(what).click();
  await new Promise((seen) => requestAnimationFrame(() => setTimeout(seen)));
  return (performance.now() - start) / 1000;
}"""


def cpu(session: Any) -> float:
    """Return the seconds that the page's thread has worked."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return sum(each["value"] for each in metrics if each["name"] == "TaskDuration")


def timed(browser: Any, path: Path) -> dict[str, tuple[float, float]]:
    """Return seconds and thread seconds of loading a page, and of each press."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(120_000)
    session = page.context.new_cdp_session(page)
    session.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    session.send("Performance.enable")
    found = {}

    def note(name: str, run: Callable[[], float]) -> None:
        worked = cpu(session)
        seconds = run()
        found[name] = seconds, cpu(session) - worked

    def load() -> float:
        start = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        return time.perf_counter() - start

    note("load", load)
    for name, what in PRESSES.items():
        note(name, lambda what=what: page.evaluate(PRESS, what))  # type: ignore[misc]
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
                seconds, worked = (statistics.median(run[what][k] for run in runs) for k in (0, 1))
                rows.append([name, str(len(document["nodes"])), what, f"{seconds:.2f}", f"{worked:.2f}"])
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(table(["graph", "nodes", "what", "seconds", "cpu"], rows))


if __name__ == "__main__":
    main()
