"""searchsorted, bucketize, isin: equal values, batches, dtypes, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32"])
@pytest.mark.parametrize(
    "shapes", [((7,), (2, 3)), ((7,), ()), ((0,), (3,)), ((2, 3, 8), (2, 3, 5))]
)
def test_searchsorted(shapes, dtype, right, device):
    torch = pytest.importorskip("torch")
    sequence, values = (RNG.integers(0, 6, shape).astype(dtype) for shape in shapes)
    order = np.argsort(sequence, -1, kind="stable")
    ordered = np.sort(sequence, -1)
    ours = flow.searchsorted(
        flow.tensor(ordered, device=device), flow.tensor(values, device=device), right=right
    )
    theirs = torch.searchsorted(torch.tensor(ordered), torch.tensor(values), right=right)
    assert ours.dtype == flow.int64 and ours.shape == tuple(theirs.shape)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    unordered = flow.searchsorted(
        flow.tensor(sequence, device=device),
        flow.tensor(values, device=device),
        side="right" if right else "left",
        sorter=flow.tensor(order, device=device),
        out_int32=True,
    )
    assert unordered.dtype == flow.int32
    np.testing.assert_array_equal(unordered.numpy(), theirs.numpy())


def test_nan_is_searched_at_the_end():
    for sequence in (flow.tensor([1.0, 2.0]), flow.tensor([[1.0, 2.0]])):
        values = flow.full((*sequence.shape[:-1], 1), float("nan"))
        assert flow.searchsorted(sequence, values).reshape(-1).tolist() == [2]


def test_numbers_and_no_gradient():
    edges = flow.tensor([1.0, 3.0], requires_grad=True)
    assert (
        flow.bucketize(3, edges).item() == 1 and flow.bucketize(3.0, edges, right=True).item() == 2
    )
    assert not flow.bucketize(flow.ones(2, requires_grad=True), edges).requires_grad


@pytest.mark.parametrize("dtype", ["int64", "float32", "uint8"])
@pytest.mark.parametrize("invert", [False, True])
def test_isin(dtype, invert):
    torch = pytest.importorskip("torch")
    a, b = RNG.integers(0, 9, (3, 4)).astype(dtype), RNG.integers(0, 9, (5,)).astype(dtype)
    pairs = [(a, b), (a, b[:0]), (a[:0], b), (a[0, 0], b)]
    for x, y in pairs:
        ours = flow.isin(flow.tensor(x), flow.tensor(y), invert=invert)
        theirs = torch.isin(torch.tensor(x), torch.tensor(y), invert=invert)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


X = flow.tensor([1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda: flow.searchsorted(X, X, side="middle"), ArgumentError, "side"),
        (lambda: flow.searchsorted(X, X, right=True, side="left"), ArgumentError, "side"),
        (lambda: flow.searchsorted(flow.ones(2, 3), X), ShapeError, "sorted_sequence"),
        (lambda: flow.searchsorted(X, X, sorter=flow.arange(3)), ShapeError, "sorter"),
        (lambda: flow.searchsorted(X, X, sorter=X), DTypeError, "sorter"),
        (lambda: flow.bucketize(X, flow.ones(2, 2)), ShapeError, "boundaries"),
        (lambda: flow.isin(1, 2), ArgumentTypeError, "elements"),
        (lambda: flow.isin(X + 1j, X), DTypeError, "elements"),
    ],
)
def test_errors(call, error, argument):
    with pytest.raises(error, match=rf"^\w+\(\): argument '{argument}'"):
        call()
