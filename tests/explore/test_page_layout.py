"""At first sight a graph fits the canvas, can be read, and uses the room."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import oneflow_lite as flow
from tests.explore.conftest import Browse
from tests.explore.documents import explored
from tests.explore.networks import NETWORKS

SNIPPETS = Path(__file__).resolve().parents[2] / "docs" / "learn" / "snippets"
SEEN = """() => {
  const { cy } = explorer.views.graph.picture;
  const { x1, x2, y1, y2 } = cy.elements().renderedBoundingBox();
  return { label: 13 * cy.zoom(), largest: cy.zoom() >= 1.14, boxes: cy.nodes().length,
    width: (x2 - x1) / cy.width(), height: (y2 - y1) / cy.height(), left: x1, top: y1,
    over: cy.width() - x2, below: cy.height() - y2 };
}"""


def script(path: Path) -> Callable[[], None]:
    """Return a script as a function."""

    def run() -> None:
        runpy.run_path(str(path), {"print": lambda *words: None})

    run.__name__ = path.stem
    return run


SCRIPTS = [script(path) for path in sorted(SNIPPETS.glob("*.py")) if path.stem != "static_graph"]


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("code", [*NETWORKS, *SCRIPTS], ids=lambda code: code.__name__)
def test_a_graph_is_read_at_first_sight(browse: Browse, code: Callable[[], Any]) -> None:
    flow.manual_seed(0)
    document = explored(code)
    page = browse(document, width=1400, height=900, tab="graph" if document["nodes"] else "")
    if not document["nodes"]:
        pytest.skip("it has no graph")
    page.wait_for_timeout(100)
    seen = page.evaluate(SEEN)
    assert seen["label"] >= 9, seen
    assert min(seen[side] for side in ("left", "top", "over", "below")) > -2, seen
    assert seen["largest"] or seen["width"] * seen["height"] > 0.4, seen
