"""repeat, tile, flip and roll: values, derivatives, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentTypeError, DimError, ShapeError
from oneflow_lite.testing import Sample, check_op

X = np.random.default_rng(0).normal(size=(2, 3))
S = X[0, 0]

CASES = {
    "repeat": (lambda lib, x: x.repeat(2, 3), X),
    "repeat more dims": (lambda lib, x: x.repeat((2, 1, 3)), X),
    "repeat once": (lambda lib, x: x.repeat(1, 1), X),
    "repeat nothing": (lambda lib, x: x.repeat(0, 2), X),
    "repeat empty": (lambda lib, x: x.repeat(2, 2), X[:0]),
    "repeat 0d": (lambda lib, x: x.repeat(3), S),
    "tile": (lambda lib, x: lib.tile(x, (2,)), X),
    "tile more dims": (lambda lib, x: x.tile(2, 1, 2), X),
    "tile once": (lambda lib, x: lib.tile(x, ()), X),
    "tile 0d": (lambda lib, x: lib.tile(x, (2, 2)), S),
    "flip": (lambda lib, x: lib.flip(x, (0,)), X),
    "flip both": (lambda lib, x: x.flip(0, -1), X),
    "flip none": (lambda lib, x: lib.flip(x, ()), X),
    "flip 0d": (lambda lib, x: lib.flip(x, (0,)), S),
    "flip empty": (lambda lib, x: lib.flip(x, (0, 1)), X[:0]),
    "roll": (lambda lib, x: lib.roll(x, 1), X),
    "roll back": (lambda lib, x: lib.roll(x, -2, 1), X),
    "roll both": (lambda lib, x: lib.roll(x, (1, 5), (0, 1)), X),
    "roll twice": (lambda lib, x: lib.roll(x, shifts=(1, 1), dims=(1, 1)), X),
    "roll 0d": (lambda lib, x: lib.roll(x, 1), S),
    "roll empty": (lambda lib, x: lib.roll(x, 1, 0), X[:0]),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    call, x = CASES[name]
    compare(lambda x: call(flow, x * x), lambda x: call(torch, x * x), np.asarray(x, dtype))


@pytest.mark.parametrize("name", CASES)
def test_result_is_new_memory(name):
    call, x = CASES[name]
    x = flow.tensor(x)
    assert not np.shares_memory(call(flow, x).numpy(), x.numpy())


def test_derivatives(device):
    check_op("repeat", [Sample(X, 2, 2), Sample(X, (2, 1, 1))], device=device)
    check_op("tile", [Sample(X, (2,))], device=device)
    check_op("flip", [Sample(X, (0, 1))], device=device)
    check_op("roll", [Sample(X, 1), Sample(X, (1, 2), (0, 1))], device=device)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16"])
def test_dtypes_are_kept(dtype, device):
    x = flow.tensor(X, device=device).to(dtype)
    for y in (x.repeat(2, 1), x.tile(2), x.flip(0), flow.roll(x, 1)):
        assert y.dtype == dtype


@pytest.mark.parametrize(
    ("call", "error", "op", "argument"),
    [
        (lambda x: x.repeat(2), ShapeError, "repeat", "repeats"),
        (lambda x: x.repeat(-1, 1), ShapeError, "repeat", "repeats"),
        (lambda x: x.repeat(1.5, 1), ArgumentTypeError, "repeat", "repeats"),
        (lambda x: x.tile(-1), ShapeError, "tile", "dims"),
        (lambda x: x.flip(2), DimError, "flip", "dims"),
        (lambda x: x.flip((0, 0)), DimError, "flip", "dims"),
        (lambda x: flow.flip(1.0, 0), ArgumentTypeError, "flip", "input"),
        (lambda x: flow.roll(x, (1, 2)), ShapeError, "roll", "shifts"),
        (lambda x: flow.roll(x, (1, 2), 0), ShapeError, "roll", "shifts"),
        (lambda x: flow.roll(x, (), ()), ShapeError, "roll", "shifts"),
        (lambda x: flow.roll(x, 1, 5), DimError, "roll", "dims"),
        (lambda x: flow.roll(x[0, 0], 1, 0), DimError, "roll", "dims"),
        (lambda x: flow.roll(x, 1.0), ArgumentTypeError, "roll", "shifts"),
    ],
)
def test_errors(call, error, op, argument):
    with pytest.raises(error, match=rf"^{op}\(\): argument '{argument}'"):
        call(flow.tensor(X))
