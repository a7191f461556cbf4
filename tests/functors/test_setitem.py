"""x[index] = value: values, derivatives, history, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentTypeError,
    DimError,
    DTypeError,
    IndexRangeError,
    InplaceError,
    ShapeError,
)
from oneflow_lite.testing import Fixed, Sample, check_op
from tests.functors.test_indexing import ADVANCED, BASIC, X, on

RNG = np.random.default_rng(1)
# PyTorch gives a gradient to both values of an element that is written twice.
WITH_REPEATS = "repeated", "matrix", "two", "broadcast", "after a slice", "last", "all three"
WITHOUT_REPEATS = [name for name in ADVANCED if name not in WITH_REPEATS]


def written(x, index, value):
    """Return a copy of x with value at index, recorded."""
    y = x * 1
    y[index] = value
    return y


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*BASIC, *WITHOUT_REPEATS])
def test_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    index = {**BASIC, **ADVANCED}[name]
    ours, theirs = on(flow, index), on(torch, index)
    shape = flow.tensor(X)[ours].shape
    values = [RNG.normal(size=shape), RNG.normal()]
    if shape:
        values += [RNG.normal(size=(1, *shape)), RNG.normal(size=shape[-1:])]
    for value in values:
        compare(
            lambda x, v: written(x, ours, v * v),
            lambda x, v: written(x, theirs, v * v),
            X.astype(dtype),
            np.asarray(value, dtype),
        )


@pytest.mark.parametrize("name", ["int", "mixed", "repeated", "apart", "all three", "mask of all"])
def test_derivatives(name, device):
    index = {**BASIC, **ADVANCED}[name]
    place = flow.tensor(index, device=device) if isinstance(index, np.ndarray) else index
    x = X if name in ("mixed", "all three", "mask of all") else X[:, :, :2]
    shape = x[index].shape
    samples = [Sample(x, RNG.normal(size=shape)), Sample(x, RNG.normal(size=shape[-1:]))]
    check_op(lambda x, v: written(x, place, v), samples[:1], degenerate=False, device=device)


def test_an_overwritten_value_gets_no_gradient(device):
    x = flow.zeros(3, 2, device=device)
    value = flow.tensor(RNG.normal(size=(4, 2)), device=device, dtype=flow.float32)
    value.requires_grad_()
    x[[0, 2, 0, 0]] = value
    np.testing.assert_array_equal(x[0].numpy(), value[3].numpy())
    x.backward(flow.ones_like(x))
    np.testing.assert_array_equal(value.grad.numpy(), [[0, 0], [1, 1], [0, 0], [1, 1]])


def test_the_later_value_stays_whatever_the_layout():
    value = RNG.normal(size=(3, 4))
    rows = np.array([[0], [0], [1]])
    columns = np.array([[0, 1, 1, 0]])
    expected = np.zeros((2, 2))
    for i in range(3):
        for j in range(4):
            expected[rows[i, 0], columns[0, j]] = value[i, j]
    for v in (value, np.asfortranarray(value)):
        x = flow.zeros(2, 2, dtype=flow.float64)
        leaf = flow.tensor(v, requires_grad=True)
        x[rows, columns] = leaf
        np.testing.assert_array_equal(x.numpy(), expected)
        x.sum().backward()
        np.testing.assert_array_equal(leaf.grad.numpy() != 0, np.isin(value, expected))


def test_values_of_any_kind(device):
    x = flow.zeros(2, 3, device=device)
    x[0] = [1, 2, 3]
    x[1, 1:] = np.array([4.0, 5.0])
    x[1, 0] = np.float64(6)
    x[:, 0] += 1
    np.testing.assert_array_equal(x.numpy(), [[2, 2, 3], [7, 4, 5]])
    y = flow.zeros(3, dtype=flow.int64, device=device)
    y[0], y[1], y[2] = 1.9, True, flow.tensor(2.5, device=device)
    assert y.tolist() == [1, 1, 2]
    mask = flow.tensor([True, False, True], device=device)
    y[mask] = -1
    assert y.tolist() == [-1, 1, -1]
    z = flow.zeros(2, dtype=flow.bool, device=device)
    z[0] = 3
    assert z.tolist() == [True, False]


def test_at_a_scalar_tensor(device):
    x = flow.zeros(3, 2, device=device)
    i, j = flow.tensor(1, device=device), flow.tensor(-1, device=device)
    x[i] += 1
    x[i, 0] = flow.tensor(5.0, device=device)
    x[i, j] = 7
    x[0, j] = flow.tensor([3.0], device=device)
    line = flow.zeros(3, device=device)
    line[i] += 1
    line[j] = flow.tensor([2.0], device=device)
    assert x.tolist() == [[0, 3], [5, 7], [0, 0]] and line.tolist() == [0, 1, 2]
    with pytest.raises(ShapeError, match="value"):
        line[i] = flow.ones(2, device=device)


def test_gradients_at_a_scalar_tensor(device):
    x = flow.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    v = flow.tensor(4.0, device=device, requires_grad=True)
    y = x * x
    y[flow.tensor(1, device=device)] = v * v
    y.sum().backward()
    assert x.grad.tolist() == [2, 0, 6] and v.grad.item() == 8


def test_overlapping_memory():
    x = flow.arange(5)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]
    x[[4, 3]] = x[:2]
    assert x.tolist() == [0, 0, 1, 0, 0]


def test_version_counts_and_history_moves():
    x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    version = y._version
    y[1] = 7.0
    assert y._version == version + 1
    assert y.grad_fn.name() == "setitem__backward"
    y.sum().backward()
    assert x.grad.tolist() == [2, 0, 2]
    z = flow.zeros(3)
    z[0] = x[1]
    assert z.requires_grad and not z.is_leaf


def test_leaf_that_requires_a_gradient_is_not_written():
    x = flow.ones(3, requires_grad=True)
    with pytest.raises(InplaceError, match="leaf"):
        x[0] = 1.0
    assert x._version == 0
    with flow.no_grad():
        x[0] = 5.0
    assert x.tolist() == [5, 1, 1] and x.requires_grad


@pytest.mark.parametrize(
    ("index", "value", "error", "argument"),
    [
        (3, 1.0, IndexRangeError, "index"),
        ([0, 3], 1.0, IndexRangeError, "index"),
        ((slice(None), [0, -5]), np.zeros(5), IndexRangeError, "index"),
        ((0, 0, 0, 0), 1.0, DimError, "index"),
        (0, np.zeros((2, 4)), ShapeError, "value"),
        (0, np.zeros((4, 5, 1)), ShapeError, "value"),
        ([0, 1], np.zeros((3, 4, 5)), ShapeError, "value"),
        (X > 1.2, np.zeros(2), ShapeError, "value"),
        (0, "a", ArgumentTypeError, "value"),
        (0, None, ArgumentTypeError, "value"),
        (0, 1j, DTypeError, "value"),
    ],
)
def test_errors_leave_everything_as_it_was(index, value, error, argument):
    x = flow.tensor(X)
    value = flow.tensor(value) if isinstance(value, np.ndarray) else value
    with pytest.raises(error, match=rf"^setitem\(\): argument '{argument}'"):
        x[index] = value
    np.testing.assert_array_equal(x.numpy(), X)
    assert x._version == 0 and x.grad_fn is None


@pytest.mark.parametrize(("dtype", "value"), [("uint8", 300), ("int8", -129), ("float16", 1e9)])
def test_numbers_that_do_not_fit(dtype, value):
    x = flow.zeros(2, dtype=dtype)
    with pytest.raises(DTypeError, match=dtype):
        x[0] = value
    with pytest.raises(DTypeError):
        flow.zeros(2, dtype=flow.int64)[0] = float("nan")


def test_fixed_value_and_fixed_input():
    value = Fixed(RNG.normal(size=5))
    check_op(lambda x, v: written(x, (0, 1), v), [Sample(X[:1], value)], degenerate=False)

    def into_constant(v):
        y = flow.zeros(2, 5, dtype=flow.float64)
        y[1] = v
        return y

    check_op(into_constant, [Sample(RNG.normal(size=5))], degenerate=False, single_precision=False)
