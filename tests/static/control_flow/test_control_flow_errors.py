"""Refusals of control flow, with the argument or the line of the user that is at fault."""

from __future__ import annotations

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    CaptureError,
    DTypeError,
    ShapeError,
)
from oneflow_lite.static import nn
from tests.static.control_flow.control_flow_checks import array, check


@pytest.fixture
def guarded():
    with static.program_guard(static.Program(), static.Program()):
        yield static.data("x", [2])


@pytest.mark.parametrize(
    ("other", "error", "words"),
    [
        (lambda x: x.sum(), ShapeError, ["false_fn", "(2,)", "()"]),
        (lambda x: x.double(), DTypeError, ["false_fn", "float32", "float64"]),
        (lambda x: (x, x), ArgumentError, ["false_fn", "a tensor", "tuple of 2"]),
        (lambda x: None, ArgumentError, ["false_fn", "a tensor", "None"]),
    ],
)
def test_results_that_differ(guarded, other, error, words):
    before = len(static.default_main_program().blocks)
    with pytest.raises(error) as info:
        nn.cond(guarded.sum() > 0, lambda: guarded, lambda: other(guarded))
    assert all(word in str(info.value) for word in words), info.value
    assert len(static.default_main_program().blocks) == before


def test_the_place_of_a_difference_is_named(guarded):
    x = guarded
    with pytest.raises(ShapeError, match=r"branch_fns\[4\].* at \['a'\]\[1\].*\(2,\).*\(1,\)"):
        nn.switch_case(x.sum().long(), {3: lambda: {"a": [x, x]}, 4: lambda: {"a": [x, x[:1]]}})
    with pytest.raises(DTypeError, match=r"body.* at \[1\].*float32.*float64"):
        nn.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.double()), [0, x])


def test_loops_return_what_they_take(guarded):
    x = guarded
    with pytest.raises(ArgumentError, match=r"body.*2 loop variable.*1"):
        nn.while_loop(lambda i, y: i < 3, lambda i, y: i + 1, [0, x])
    with pytest.raises(ArgumentError, match=r"cond.*one element.*\(2,\)"):
        nn.while_loop(lambda y: y < 3, lambda y: y + 1, [x])


@pytest.mark.parametrize(
    "where", ["outer", "parameter", "view", "constant", "made", "statistics", "draw"]
)
def test_writes_to_outer_memory_are_refused(guarded, where):
    x = guarded
    layer = flow.nn.Linear(2, 2)
    norm = flow.nn.BatchNorm1d(2)
    shared = flow.tensor([1.0, 2.0])
    y = x * 1

    def branch():
        if where == "outer":
            y.add_(1)
        elif where == "parameter":
            with flow.no_grad():
                layer.weight.mul_(2)
        elif where == "view":
            y[:1].add_(1)
        elif where == "constant":
            shared.mul_(2)
        elif where == "made":
            flow.tensor([1.0, 2.0])[:1].mul_(2)
        elif where == "statistics":
            norm(x.reshape(1, 2).expand(3, 2))
        else:
            y.clone().uniform_()
        return x

    with pytest.raises(CaptureError, match=r"test_control_flow_errors.py:\d+ in branch") as info:
        nn.cond(x.sum() > 0, branch, lambda: x)
    assert "cond()" in str(info.value)


def test_writes_to_memory_of_the_block_are_fine():
    def fn(x):
        def branch():
            y = x * 2
            y[:1] = x[1:]
            y.mul_(x)
            return y

        return nn.cond(x.sum() > 0, branch, lambda: x)

    check(fn, (array(1.0, 2.0),), (array(-1.0, -2.0),))


def test_values_modules_feeds_and_backward_are_refused_inside(guarded):
    x = guarded
    w = flow.ones(2, requires_grad=True)
    with pytest.raises(CaptureError, match="item"):
        nn.cond(x.sum() > 0, lambda: x * x.sum().item(), lambda: x)
    with pytest.raises(CaptureError, match="uniform_.*before"):
        nn.cond(x.sum() > 0, lambda: flow.nn.Linear(2, 2)(x), lambda: x)
    with pytest.raises(CaptureError, match="declare 'z' before"):
        nn.cond(x.sum() > 0, lambda: static.data("z", [2]), lambda: x)
    with pytest.raises(CaptureError, match=r"backward.*\.grad"):
        nn.cond(x.sum() > 0, lambda: (w * x).sum().backward(), lambda: None)


class Cube(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * 3 * x * x


def test_functions_of_the_user_take_tensors_of_the_block():
    def fn(x):
        return nn.cond(x.sum() > 0, lambda: Cube.apply(x * 1), lambda: x)

    check(fn, (array(1.0, 2.0),), (array(-1.0, -2.0),))
    check(
        lambda n, x: nn.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, Cube.apply(y)), [0, x])[
            1
        ],
        *[(np.array(n), array(0.5, 0.9)) for n in (0, 2)],
    )
    with static.program_guard(static.Program()):
        x = static.data("x", [2])
        x.requires_grad = True
        with pytest.raises(CaptureError, match="autograd.Function.*clone"):
            nn.cond(x.sum() > 0, lambda: Cube.apply(x), lambda: x)


def test_wrong_arguments():
    with pytest.raises(ArgumentTypeError, match="true_fn"):
        nn.cond(flow.tensor(True), 3)
    with pytest.raises(ArgumentError, match="pred"):
        nn.cond(flow.ones(2), lambda: 1)
    with pytest.raises(ArgumentError, match="branch_fns"):
        nn.switch_case(0, [(0, lambda: 1), (0, lambda: 2)])
    with pytest.raises(ArgumentTypeError, match="branch_fns"):
        nn.switch_case(0, [])
    with pytest.raises(ArgumentTypeError, match="branch_fns"):
        nn.switch_case(0, {0: 1})
    with pytest.raises(ArgumentTypeError, match="loop_vars"):
        nn.while_loop(lambda: True, lambda: 1, [])
    with pytest.raises(ArgumentTypeError, match="body"):
        nn.while_loop(lambda x: True, None, [1])
