"""The picture of a graph as Graphviz text."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.graph import Node, saved_tensors_hooks, to_dot
from oneflow_lite.errors import ArgumentTypeError, GradientError
from tests.autograd.leaves import leaf

QUOTED = r'"((?:[^"\\]|\\.)*)"'
ATTRIBUTE = rf"(\w+)=(?:{QUOTED}|(\w+))"
LIST = rf"\[({ATTRIBUTE}(?:, {ATTRIBUTE})*)\]"
STATEMENT = re.compile(rf"  (\w+)(?: -> (\w+))?(?: {LIST})?")


@dataclasses.dataclass
class Picture:
    """The content of a text in the DOT language: labels by node, and edges with their labels."""

    labels: dict[str, list[str]]
    shapes: dict[str, str]
    edges: list[tuple[str, str, str | None]]

    def find(self, name: str) -> str:
        """Return the one node whose label starts with a name."""
        (found,) = [node for node, lines in self.labels.items() if lines[0] == name]
        return found


def parse(text: str) -> Picture:
    """Parse the part of the DOT language that is needed; fail on anything else."""
    first, *lines, last = text.splitlines()
    assert (first, last) == ("digraph {", "}")
    picture = Picture({}, {}, [])
    for line in lines:
        if line == "  rankdir=BT":
            continue
        match = STATEMENT.fullmatch(line)
        assert match, line
        given = {n: q or word for n, q, word in re.findall(ATTRIBUTE, match[3] or "")}
        source, target = match[1], match[2]
        if source in ("node", "edge"):
            continue
        if target is not None:
            assert {source, target} <= set(picture.labels)
            picture.edges.append((source, target, given.get("label")))
        else:
            label = re.sub(r"\\(.)", lambda m: "\0" if m[1] == "n" else m[1], given["label"])
            picture.labels[source] = label.split("\0")
            picture.shapes[source] = given.get("shape", "box")
    return picture


class TestLabels:
    def test_say_name_shape_saved_sizes_and_numbers(self):
        x, w = leaf(np.ones((2, 3), np.float32)), leaf(np.ones((3, 4)).astype(np.float32))
        y = (x @ w).tanh()
        picture = parse(to_dot(y, params={"x": x, "w": w}))
        node = y.grad_fn
        assert picture.labels[picture.find("tanh_backward")] == [
            "tanh_backward",
            "(2, 4) float32",
            "saved y 32 B",
            f"seq {node.sequence_nr} topo {node.topological_nr}",
        ]
        lines = picture.labels[picture.find("matmul_backward")]
        assert sorted(line for line in lines if line.startswith("saved")) == [
            "saved x 24 B",
            "saved y 48 B",
        ]
        assert picture.labels[picture.find("x")] == ["x", "(2, 3) float32"]
        assert picture.shapes[picture.find("x")] == "ellipse"
        assert node.topological_nr == 2

    def test_of_what_was_released_or_packed(self):
        x = leaf([1.0, 2.0])
        with saved_tensors_hooks(lambda t: t.tolist(), flow.tensor):
            y = x.sin()
        z = x.sin()
        (flow.exp(z) * 2).sum().backward()
        assert "saved x packed" in parse(to_dot(y)).labels["n0"]
        assert "saved tensors released" in parse(to_dot(z)).labels["n0"]

    def test_of_a_leaf_without_a_name(self):
        x = leaf([1.0, 2.0])
        assert parse(to_dot(x)).labels == {"n0": ["accumulate_grad", "(2,) float32"]}

    def test_of_several_outputs(self):
        x = leaf([[1.0, 3.0], [4.0, 2.0]])
        values, _ = x.sort(1)
        picture = parse(to_dot(values.sum()))
        lines = picture.labels[picture.find("sort_backward")]
        assert lines[1:3] == ["0: (2, 2) float32", "1: no gradient"]
        edge = (picture.find("sum_backward"), picture.find("sort_backward"), "0")
        assert edge in picture.edges

    @pytest.mark.parametrize("name", ['a "quoted" one', "back\\slash", "two\nlines", "ünïcode", ""])
    def test_names_are_escaped(self, name):
        x = leaf([1.0, 2.0])
        picture = parse(to_dot(x * 2, params={name: x}))
        text = "\0".join(picture.labels["n1"])
        expected = (name or "accumulate_grad").replace("\n", "\0")
        assert text == f"{expected}\0(2,) float32"


class TestTheGraph:
    def test_edges_are_those_of_the_nodes(self):
        x, w = leaf(2.0), leaf(3.0)
        y = x * w
        z = y + y.exp()
        picture = parse(to_dot(z, {"x": x, "w": w}))
        names = {node: lines[0] for node, lines in picture.labels.items()}
        assert sorted((names[a], names[b]) for a, b, _ in picture.edges) == [
            ("add_backward", "exp_backward"),
            ("add_backward", "mul_backward"),
            ("exp_backward", "mul_backward"),
            ("mul_backward", "w"),
            ("mul_backward", "x"),
        ]

    def test_an_input_that_is_used_twice_has_two_edges(self):
        x = leaf(2.0)
        assert parse(to_dot(x * x)).edges == [("n0", "n1", None)] * 2

    def test_nodes_are_in_the_order_in_which_they_run(self):
        x = leaf(2.0)
        picture = parse(to_dot((x.exp() + x.sin()) * x))
        assert [lines[0] for lines in picture.labels.values()] == [
            "mul_backward",
            "add_backward",
            "sin_backward",
            "exp_backward",
            "accumulate_grad",
        ]

    def test_several_roots_share_nodes(self):
        x = leaf(2.0)
        y = x * 3
        both = parse(to_dot([y.exp(), y.sin()]))
        assert len(both.labels) == 4
        assert len(both.edges) == 3

    def test_nodes_as_roots(self):
        x = leaf(2.0)
        y = x.exp()
        assert isinstance(y.grad_fn, Node)
        assert to_dot(y.grad_fn) == to_dot(y) == to_dot((y, x))

    def test_is_the_same_each_time(self):
        x = leaf(2.0)
        y = (x * x).exp() + x
        assert to_dot(y) == to_dot(y)

    def test_leaves_the_graph_as_it_was(self):
        x = leaf(2.0)
        y = x.exp()
        to_dot(y)
        assert y.grad_fn.metas is None
        y.backward()
        assert x.grad is not None

    def test_of_the_graph_of_a_gradient(self):
        x = leaf(2.0)
        (g,) = flow.autograd.grad(x**3, x, create_graph=True)
        picture = parse(to_dot(g, {"x": x}))
        assert any(target == picture.find("x") for _, target, _ in picture.edges)

    def test_of_a_view_that_was_overwritten_through_its_base(self):
        x = leaf([1.0, 2.0])
        y = x * 1
        view = y[0]
        y.mul_(2)
        assert "mul_backward" in to_dot(view)

    def test_on_each_device(self, device):
        x = flow.tensor([1.0, 2.0], device=device, requires_grad=True)
        assert "saved x 8 B" in parse(to_dot(x.sin())).labels["n0"]

    @pytest.mark.slow
    def test_a_chain_deeper_than_the_recursion_limit(self):
        x = leaf(1.0)
        y = x
        count = 100 * sys.getrecursionlimit()
        for _ in range(count):
            y = y + 1.0
        text = to_dot(y)
        assert text.count("add_backward") == count
        assert text.count(" -> ") == count


class TestErrors:
    def test_a_tensor_without_a_gradient(self):
        with pytest.raises(GradientError, match="to_dot"):
            to_dot(flow.ones(2))

    @pytest.mark.parametrize("bad", [3, "text", [3], None])
    def test_no_tensor(self, bad):
        with pytest.raises(ArgumentTypeError, match="to_dot"):
            to_dot(bad)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_accepts_it() -> None:
    x = leaf([[1.0, 3.0], [4.0, 2.0]])
    text: Any = to_dot(x.sort(1)[0].exp().sum(), {'a "name" \\': x})
    done = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    assert "<svg" in done.stdout
    assert not done.stderr
