"""Leaves with a post-accumulate hook run when their gradient is complete, others at the end."""

from __future__ import annotations

from typing import Any

import pytest

import oneflow_lite as flow


def order(lib: Any, create_graph: bool = False) -> list[str]:
    """Run a chain of three products, the last of which uses the first factor again."""
    a, b, c = (lib.ones(2, requires_grad=True) for _ in range(3))
    seen: list[str] = []
    for name, leaf in (("a", a), ("b", b), ("c", c)):
        leaf.register_post_accumulate_grad_hook(lambda leaf, name=name: seen.append(name))
    x = lib.ones(2, requires_grad=True) * a
    x.register_hook(lambda grad: seen.append("gradient of x"))
    y = x * b
    y.register_hook(lambda grad: seen.append("gradient of y"))
    ((y * c) * a).sum().backward(create_graph=create_graph)
    return seen


WANTED = ["c", "gradient of y", "b", "gradient of x", "a"]


def test_a_hook_runs_before_the_rest_of_the_pass() -> None:
    assert order(flow) == WANTED


def test_the_order_is_pytorchs_where_it_has_one() -> None:
    torch = pytest.importorskip("torch")
    found = order(torch)
    assert found.index("c") < found.index("gradient of x")
    assert found.index("b") < found.index("a")


@pytest.mark.filterwarnings("ignore:.*create_graph")
def test_a_recorded_pass_keeps_the_order() -> None:
    assert order(flow, create_graph=True) == WANTED


def test_a_gradient_may_be_used_up_while_the_pass_runs() -> None:
    layers = [flow.nn.Linear(3, 3) for _ in range(4)]
    waiting = []

    def drop(leaf: Any) -> None:
        leaf.grad = None
        waiting.append(sum(p.grad is not None for layer in layers for p in layer.parameters()))

    for layer in layers:
        for parameter in layer.parameters():
            parameter.register_post_accumulate_grad_hook(drop)
    flow.nn.Sequential(*layers)(flow.ones(1, 3)).sum().backward()
    assert waiting == [0] * 8
