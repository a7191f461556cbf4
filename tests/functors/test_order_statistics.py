"""kthvalue, median, mode and quantiles: ties, NaN, errors; the sweeps do the rest."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, DimError, DTypeError, ShapeError
from tests.functors.agreement import compare

NAN = float("nan")
TIED = np.array([[3.0, 1.0, 3.0, 2.0, 1.0], [2.0, NAN, 2.0, 5.0, 4.0], [NAN, NAN, NAN, 0.0, 1.0]])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "uint8"])
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", ["median", "nanmedian", "mode", "kthvalue"])
def test_values_and_places(name, dim, dtype):
    torch = pytest.importorskip("torch")
    # Which element PyTorch's mode returns when all are different and some are NaN is chance.
    x = TIED if dtype[0] == "f" and name != "mode" else np.nan_to_num(TIED, nan=7.0)
    x = x.astype(dtype)
    args = (2, dim) if name == "kthvalue" else (dim,)
    ours = getattr(flow, name)(flow.tensor(x), *args, keepdim=True)
    theirs = getattr(torch, name)(torch.tensor(x), *args, keepdim=True)
    np.testing.assert_array_equal(ours.values.numpy(), theirs.values.numpy())
    chosen = np.take_along_axis(x, ours.indices.numpy(), dim)
    np.testing.assert_array_equal(chosen, ours.values.numpy())
    if name == "mode":
        np.testing.assert_array_equal(ours.indices.numpy(), theirs.indices.numpy())


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_of_all_elements_ties_share_the_gradient(name, device):
    x = flow.tensor([2.0, 2.0, 1.0, 3.0, 2.0], device=device, requires_grad=True)
    y = getattr(flow, name)(x)
    (dx,) = flow.autograd.grad(y, x)
    assert y.item() == 2 and dx.tolist() == pytest.approx([1 / 3, 1 / 3, 0, 0, 1 / 3])
    assert np.isnan(getattr(flow, name)(flow.zeros(0, 2, device=device)).item())


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_of_all_elements(name, dtype):
    torch = pytest.importorskip("torch")
    for x in (TIED, np.full((2, 2), NAN), np.array(3.0), np.array([NAN, 1.0, 2.0, -np.inf])):
        x = (x if dtype[0] == "f" else np.nan_to_num(x, neginf=-7)).astype(dtype)
        ours, theirs = getattr(flow, name)(flow.tensor(x)), getattr(torch, name)(torch.tensor(x))
        assert str(theirs.dtype) == f"torch.{ours.dtype}"
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_mode_has_the_gradient_where_the_value_stands_last():
    torch = pytest.importorskip("torch")
    for x in (np.array([1.0, 2.0, 2.0, 1.0, 3.0]), np.nan_to_num(TIED, nan=7.0)):
        compare(lambda t: flow.mode(t, 0).values, lambda t: torch.mode(t, 0).values, x)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_with_nan(name, how):
    torch = pytest.importorskip("torch")
    q = np.array([0.0, 0.2, 0.5, 0.77, 1.0])
    compare(
        lambda x: getattr(flow, name)(x, flow.tensor(q), 1, interpolation=how),
        lambda x: getattr(torch, name)(x, torch.tensor(q), 1, interpolation=how),
        TIED[:2] + np.array([[0], [1]]),
    )


def test_quantile_has_a_derivative_by_q():
    torch = pytest.importorskip("torch")
    x = np.array([4.0, 1.0, 3.0, 9.0])
    compare(lambda x, q: flow.quantile(x, q), lambda x, q: torch.quantile(x, q), x, np.array(0.4))


X = flow.tensor(np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda: flow.kthvalue(X, 4), ShapeError, "k"),
        (lambda: flow.kthvalue(X, 0), ShapeError, "k"),
        (lambda: flow.median(X, 2), DimError, "dim"),
        (lambda: flow.median(X[:, :0], 1), DimError, "dim"),
        (lambda: flow.mode(X[:0], 0), DimError, "dim"),
        (lambda: flow.mode(X + 1j), DTypeError, "input"),
        (lambda: flow.quantile(X, 1.5), ArgumentError, "q"),
        (lambda: flow.quantile(X, flow.ones(2, 2)), ShapeError, "q"),
        (lambda: flow.quantile(X, flow.ones(2)), DTypeError, "q"),
        (lambda: flow.quantile(X[:0], 0.5), ShapeError, "input"),
        (lambda: flow.quantile(X.long(), 0.5), DTypeError, "input"),
        (lambda: flow.quantile(X, 0.5, interpolation="cubic"), ArgumentError, "interpolation"),
    ],
)
def test_errors(call, error, argument):
    with pytest.raises(error, match=rf"^\w+\(\): argument '{argument}'"):
        call()
