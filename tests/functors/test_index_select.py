"""index_select, index_add and index_fill: values, derivatives, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    IndexRangeError,
    ShapeError,
)
from oneflow_lite.testing import Sample, check_op

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5))

CASES = {
    "first": (0, X, [2, 0, 2, 2]),
    "middle": (1, X, [3, 1, 1]),
    "last": (-1, X, [0, 4]),
    "vector": (0, X[0, 0], [4, 4, 0]),
    "one": (1, X, 2),
    "none": (1, X, []),
    "0d": (0, X[0, 0, 0], [0]),
    "empty x": (0, np.zeros((2, 0)), [1, 1]),
}


def both(torch, index):
    index = np.array(index, np.int64)
    return flow.tensor(index), torch.tensor(index)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_index_select_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    dim, x, index = CASES[name]
    ours, theirs = both(torch, index)
    compare(
        lambda x: flow.index_select(x * x, dim, ours),
        lambda x: torch.index_select(x * x, dim, theirs),
        np.asarray(x, dtype),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("alpha", [1, -2.5])
@pytest.mark.parametrize("name", CASES)
def test_index_add_agrees_with_pytorch(name, alpha, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    dim, x, index = CASES[name]
    ours, theirs = both(torch, index)
    source = RNG.normal(size=np.take(x, np.atleast_1d(index).astype(int), dim).shape)
    if not np.ndim(x):
        source = source[0]
    compare(
        lambda x, v: (x * x).index_add(dim, ours, v * v, alpha=alpha),
        lambda x, v: (x * x).index_add(dim, theirs, v * v, alpha=alpha),
        np.asarray(x, dtype),
        np.asarray(source, dtype),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_index_fill_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    dim, x, index = CASES[name]
    ours, theirs = both(torch, index)
    x = np.asarray(x, dtype)
    compare(
        lambda x: (x * x).index_fill(dim, ours, 2.5),
        lambda x: (x * x).index_fill(dim, theirs, 2.5),
        x,
    )
    compare(
        lambda x, v: (x * x).index_fill(dim, ours, v * v),
        lambda x, v: (x * x).index_fill(dim, theirs, v * v),
        x,
        np.asarray(1.5, dtype),
    )


def test_index_fill_counts_from_the_end():
    x = flow.index_fill(flow.zeros(2, 3), 1, flow.tensor([-1]), 1)
    assert x.tolist() == [[0, 0, 1], [0, 0, 1]]


def test_derivatives(device):
    x, index = X[:2, :3, 0], flow.tensor([2, 0, 2], device=device)
    v = RNG.normal(size=(2, 3))
    options = {"degenerate": False, "device": device}
    check_op(lambda x: flow.index_select(x, 1, index), [Sample(x)], **options)
    check_op(lambda x, v: flow.index_add(x, 1, index, v), [Sample(x, v)], **options)
    check_op(
        lambda x, v: flow.index_add(x, 0, index // 2, v, alpha=3),
        [Sample(x, X[0, :3, :3])],
        **options,
    )
    check_op(lambda x, v: flow.index_fill(x, 1, index, v), [Sample(x, np.array(0.5))], **options)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool", "float16"])
def test_dtypes(dtype, device):
    array = np.array([[1, 0, 3], [4, 5, 6]]).astype(dtype)
    x = flow.tensor(array, device=device)
    index = flow.tensor([1, 1], device=device)
    for y, expected in (
        (x.index_select(0, index), array[[1, 1]]),
        (x.index_add(0, index, x), np.stack([array[0], array.sum(0, dtype=dtype) + array[1]])),
        (x.index_fill(1, index, 1), np.where([False, True, False], np.array(1, dtype), array)),
    ):
        assert y.dtype == array.dtype
        np.testing.assert_array_equal(y.numpy(), expected)


INDEX = flow.tensor([0, 1])
ERRORS = [
    (lambda x: x.index_select(3, INDEX), DimError, "dim"),
    (lambda x: x.index_select(0, INDEX + 2), IndexRangeError, "index"),
    (lambda x: x.index_select(0, INDEX - 1), IndexRangeError, "index"),
    (lambda x: x.index_select(0, INDEX.reshape(1, 2)), DimError, "index"),
    (lambda x: x.index_select(0, INDEX.double()), DTypeError, "index"),
    (lambda x: x[0, 0, 0].index_select(0, INDEX * 0), ShapeError, "index"),
    (lambda x: x.index_add(0, INDEX + 2, x[:2]), IndexRangeError, "index"),
    (lambda x: x.index_add(0, INDEX - 1, x[:2]), IndexRangeError, "index"),
    (lambda x: x.index_add(0, INDEX, x), ShapeError, "source"),
    (lambda x: x.index_add(0, INDEX, x[:2, :1]), ShapeError, "source"),
    (lambda x: x.index_add(0, INDEX, x[:2].float()), DTypeError, "source"),
    (lambda x: x.index_add(0, INDEX, 1.0), ArgumentTypeError, "source"),
    (lambda x: x.index_add(0, INDEX, x[:2], alpha="a"), ArgumentTypeError, "alpha"),
    (lambda x: x.index_fill(0, INDEX + 2, 1.0), IndexRangeError, "index"),
    (lambda x: x.index_fill(0, INDEX - 4, 1.0), IndexRangeError, "index"),
    (lambda x: x.index_fill(0, INDEX, x), ShapeError, "value"),
    (lambda x: x.index_fill(0, INDEX, 1j), DTypeError, "value"),
]


@pytest.mark.parametrize(("call", "error", "argument"), ERRORS)
def test_errors_leave_everything_as_it_was(call, error, argument):
    x = flow.tensor(X)
    with pytest.raises(error, match=rf"^index_\w+\(\): argument '{argument}'"):
        call(x)
    np.testing.assert_array_equal(x.numpy(), X)


def test_index_copy_and_put_keep_the_last_value(device):
    index = flow.tensor([1, 0, 1], device=device)
    source = flow.tensor([[1.0], [2.0], [3.0]], device=device, requires_grad=True)
    calls = [
        lambda x: x.index_copy(0, index, source),
        lambda x: x.index_put((index,), source),
    ]
    for call in calls:
        y = call(flow.zeros(3, 1, device=device))
        assert y.tolist() == [[2], [3], [0]]
        (dsource,) = flow.autograd.grad(y.sum(), source)
        assert dsource.tolist() == [[0], [1], [1]]


def test_index_put_accumulates(device):
    x = flow.zeros(2, 3, device=device)
    rows, column = flow.tensor([0, 0, 1], device=device), flow.tensor(2, device=device)
    values = flow.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    y = x.index_put((rows, column), values * values, accumulate=True)
    assert y.tolist() == [[0, 0, 5], [0, 0, 9]]
    y.sum().backward()
    assert values.grad.tolist() == [2, 4, 6]
    x.index_put_((rows,), flow.ones((), device=device), accumulate=True)
    assert x.tolist() == [[2, 2, 2], [1, 1, 1]]


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda x: x.index_copy(0, flow.tensor([3]), x[:1]), IndexRangeError, "index"),
        (lambda x: x.index_copy(0, flow.tensor([0]), x), ShapeError, "source"),
        (lambda x: x.index_copy(0, flow.tensor([0]), x[:1].double()), DTypeError, "source"),
        (lambda x: x.index_reduce(0, flow.tensor([-1]), x[:1], "prod"), IndexRangeError, "index"),
        (lambda x: x.index_reduce(0, flow.tensor([1]), x[:1], "sum"), ArgumentError, "reduce"),
        (lambda x: x.index_put(flow.tensor([1]), x[:1]), ArgumentTypeError, "indices"),
        (lambda x: x.index_put((flow.tensor([1]),), x[:1].double()), DTypeError, "values"),
        (lambda x: x.index_put((flow.tensor([3]),), x[:1]), IndexRangeError, "index"),
    ],
)
def test_errors_of_copies(call, error, argument):
    x = flow.ones(3, 2)
    with pytest.raises(error, match=rf"argument '{argument}'"):
        call(x)
    assert x.tolist() == [[1, 1]] * 3
