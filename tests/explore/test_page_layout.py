"""At first sight a graph fits the canvas, can be read, and uses the room; no edge crosses a box."""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from tests.compiler.programs.kit import PROGRAMS
from tests.compiler.programs.run import Plain, installed_package
from tests.explore.conftest import Browse
from tests.explore.documents import explored, looped
from tests.explore.networks import NETWORKS

DOCS = Path(__file__).resolve().parents[2] / "docs"
SEEN = """async (tab) => {
  const { cy, boxes } = explorer.views[tab].picture;
  await new Promise((drawn) => {
    cy.one("render", drawn);
    cy.forceRender();
  });
  const groups = new Map();
  for (const item of boxes.keys()) {
    groups.set(item.id, []);
    for (let each = item; each; each = each.parent) groups.get(item.id).push(each.id);
  }
  // What is read: closed boxes, titles of open ones, and what stands at an edge.
  const texts = cy.nodes().map((node) => ({ id: node.id(), at: node.hasClass("open")
    ? node._private.labelBounds.all : node.boundingBox({ includeLabels: false }) }));
  const names = cy.edges(".named").map((edge) =>
    ({ id: edge.id(), at: edge._private.labelBounds.source }));
  // Whether a line from p to q is inside of a rectangle, less a border of two pixels.
  const crosses = (p, q, at) => {
    let [from, to] = [0, 1];
    for (const axis of ["x", "y"]) {
      const ends = [at[`${axis}1`] + 2, at[`${axis}2`] - 2].map((end) => end - p[axis]);
      const by = q[axis] - p[axis];
      if (by === 0 && (ends[0] >= 0 || ends[1] <= 0)) return false;
      if (by === 0) continue;
      const [first, last] = ends.map((end) => end / by).sort((a, b) => a - b);
      [from, to] = [Math.max(from, first), Math.min(to, last)];
    }
    return from < to;
  };
  const overlap = (a, b) => ["x", "y"].every((axis) =>
    Math.min(a[`${axis}2`], b[`${axis}2`]) - Math.max(a[`${axis}1`], b[`${axis}1`]) > 4);
  const crossed = cy.edges().flatMap((edge) => {
    const bends = edge.hasClass("bent") ? edge.segmentPoints() : [];
    const way = [edge.sourceEndpoint(), ...bends, edge.targetEndpoint()];
    const own = [edge.source(), edge.target()].flatMap((node) => groups.get(node.id()));
    return texts.filter(({ id, at }) => !own.includes(id)
      && way.slice(1).some((point, k) => crosses(way[k], point, at)))
      .map(({ id }) => `${edge.id()} through ${id}`);
  });
  const hidden = names.flatMap(({ id, at }, k) => [...texts, ...names.slice(0, k)]
    .filter((other) => overlap(at, other.at)).map((other) => `text at ${id} over ${other.id}`));
  const { x1, x2, y1, y2 } = cy.elements().renderedBoundingBox();
  return { label: 13 * cy.zoom(), largest: cy.zoom() >= 1.14, crossed, hidden,
    used: (x2 - x1) * (y2 - y1) / cy.width() / cy.height(),
    outside: Math.max(-x1, -y1, x2 - cy.width(), y2 - cy.height()) };
}"""


class Enough(BaseException):
    """A script has made as many backward calls as are looked at."""


@contextlib.contextmanager
def stopped(calls: int) -> Iterator[None]:
    """Stop the block after some backward calls."""
    backward, made = flow.Tensor.backward, []

    def counted(self: flow.Tensor, *args: Any, **kwargs: Any) -> None:
        backward(self, *args, **kwargs)
        made.append(self)
        if len(made) == calls:
            raise Enough

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Enough):
        patch.setattr(flow.Tensor, "backward", counted)
        yield


def snippet(path: Path) -> Callable[[], None]:
    """Return a script as a function."""

    def run() -> None:
        runpy.run_path(str(path), {"print": lambda *words: None})

    run.__name__ = path.stem
    return run


def example(name: str) -> Callable[[], None]:
    """Return the first steps of a script in docs/examples as a function."""
    path = DOCS / "examples" / f"{name}.py"

    def run() -> None:
        shown = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, stopped(calls=3):
            patch.setattr("sys.argv", [str(path)])
            patch.syspath_prepend(path.parent)
            with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
                runpy.run_path(str(path), run_name="__main__")

    run.__name__ = f"example_{name}"
    return run


def program(name: str) -> Callable[[], None]:
    """Return a training program's first steps as a function."""

    def run() -> None:
        with installed_package(), contextlib.redirect_stdout(io.StringIO()):
            list(itertools.islice(PROGRAMS[name].run(Plain()), 3))

    run.__name__ = name
    return run


SNIPPETS = [
    path for path in sorted(DOCS.glob("learn/snippets/*.py")) if path.stem != "static_graph"
]
# Of the others, own_op and private_gradients make hundreds of calls, neural_ode 20,000 ops first.
EXAMPLES = """char_transformer digits eager gaussian_process higher_order lstm_forecaster maml pinn
wgan_gp""".split()
# Each has a network of its own; the other programs differ in their loops.
KINDS = ("generative", "graphs", "language", "science", "vision")
TRAINED = [
    name for name, each in PROGRAMS.items()
    if each.run.__module__.rpartition("train_")[2] in KINDS
]  # fmt: skip
WALK = [*NETWORKS, *map(snippet, SNIPPETS), *map(example, EXAMPLES), *map(program, TRAINED)]


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("code", WALK, ids=lambda code: code.__name__)
def test_a_graph_is_read_at_first_sight(browse: Browse, code: Callable[[], Any]) -> None:
    for seed in (flow.manual_seed, random.seed, np.random.seed):
        seed(0)
    document = explored(code)
    page = browse(document, width=1400, height=900)
    if not document["nodes"]:
        pytest.skip("it has no graph")
    for tab in ("graph", "backward")[: 1 + bool(document["runs"])]:
        page.click(f"#tab-{tab}")
        seen = page.evaluate(SEEN, tab)
        assert seen["label"] >= 9, seen
        assert seen["outside"] < 2, seen
        assert not seen["crossed"] and not seen["hidden"], seen
        assert tab == "backward" or seen["largest"] or seen["used"] > 0.4, seen


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", ["gcn_sparse", "vae", "physics_informed"])
def test_a_telephone_shows_a_graph_that_is_read(browse: Browse, name: str) -> None:
    page = browse(explored(program(name)), width=390, height=844, tab="graph")
    seen = page.evaluate(SEEN, "graph")
    assert seen["label"] >= 9 and seen["outside"] < 2, seen
    assert not seen["crossed"] and not seen["hidden"], seen


def test_an_edge_through_a_box_is_found(browse: Browse) -> None:
    """The measure can fail: a box is put into the way of an edge."""
    page = browse(looped(4), width=1400, height=900, tab="graph")
    assert page.evaluate(SEEN, "graph")["crossed"] == []
    page.evaluate("""() => {
        const { cy } = explorer.views.graph.picture;
        const [edge] = cy.edges();
        const [p, q] = [edge.sourceEndpoint(), ...edge.segmentPoints()];
        cy.nodes().filter((node) => ![edge.source().id(), edge.target().id()].includes(node.id()))
          .forEach((node) => node.position({ x: (p.x + q.x) / 2, y: (p.y + q.y) / 2 }));
    }""")
    assert page.evaluate(SEEN, "graph")["crossed"]
