"""Running sums and products: values, derivatives with zeros, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.testing import Sample, check_op

X = np.random.default_rng(3).uniform(0.5, 2.0, (2, 5, 3))
ZEROS = np.array([[2.0, 0.0, 3.0, 4.0], [0.0, 0.0, 4.0, 0.0], [1.0, 5.0, -2.0, 0.0]])

CASES = {
    "middle": (lambda f, x: f(x, 1), X),
    "last": (lambda f, x: f(x, dim=-1), X),
    "method": (lambda f, x: getattr(x, f.__name__)(0), X),
    "transposed": (lambda f, x: f(x.transpose(0, 1), 0), X),
    "zeros": (lambda f, x: f(x, 1), ZEROS),
    "zeros_columns": (lambda f, x: f(x, 0), ZEROS),
    "long": (lambda f, x: f(x, 0), np.random.default_rng(4).uniform(0.7, 1.3, 37)),
    "one": (lambda f, x: f(x, 0), X[:1]),
    "0d": (lambda f, x: f(x, 0), X[0, 0, 0]),
    "empty": (lambda f, x: f(x, 0), np.zeros((0, 3))),
    "empty_lines": (lambda f, x: f(x, 1), np.zeros((0, 3))),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_pytorch(case, name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    function, x = CASES[case]
    compare(
        lambda x: function(getattr(flow, name), x),
        lambda x: function(getattr(torch, name), x),
        np.asarray(x).astype(dtype),
    )


SMALL = np.array([[0.5, -1.2, 2.0], [1.5, 0.7, -0.4]])
WITH_ZEROS = np.array([[0.0, -1.2, 2.0], [0.0, 0.7, 0.0]])
BOTH_WAYS = [
    Sample(SMALL, WITH_ZEROS, dim=1, reverse=False),
    Sample(WITH_ZEROS, SMALL, dim=1, reverse=True),
    Sample(SMALL, SMALL * 2, dim=0, reverse=False),
]
SAMPLES = {
    "cumsum": [Sample(SMALL, 1), Sample(SMALL, 0)],
    "cumprod": [Sample(SMALL, 1), Sample(WITH_ZEROS, 0), Sample(WITH_ZEROS, -1)],
}
# What their gradients are made of; without functors, so without checks.
INNER = {
    "cumsum_grad": [Sample(SMALL, dim=1), Sample(SMALL, dim=0)],
    "recurrence": BOTH_WAYS,
    "shift": [Sample(SMALL, dim=1, offset=1, fill=1), Sample(SMALL, dim=0, offset=-1, fill=0)],
}


@pytest.mark.parametrize("op", SAMPLES)
def test_op(op, device):
    check_op(op, SAMPLES[op], device=device)


@pytest.mark.parametrize("op", INNER)
def test_inner_op(op, device):
    check_op(op, INNER[op], device=device, degenerate=False)


def test_third_derivative_of_a_running_product_with_zeros():
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    def chain(lib, x):  # the same product, one factor at a time
        products = [x[0]]
        for i in range(1, 5):
            products.append(products[-1] * x[i])
        return lib.stack(products)

    x = np.array([2.0, 0.0, 3.0, 0.0, 5.0])
    compare(lambda x: x.cumprod(0), lambda x: chain(torch, x), x, orders=4)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "float16"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_dtypes_agree_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    x = np.array([[1, 2, 3], [4, 0, 6]]).astype(dtype)
    ours = getattr(flow, name)(flow.tensor(x), 1).numpy()
    theirs = getattr(torch, name)(torch.tensor(x), 1).numpy()
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)
    wide = getattr(flow, name)(flow.tensor(x), 1, dtype=flow.float64)
    assert wide.dtype == flow.float64


ERRORS = [
    (lambda x: flow.cumsum(x, 2), IndexError, "cumsum", "dim"),
    (lambda x: flow.cumsum(x, None), TypeError, "cumsum", "dim"),
    (lambda x: flow.cumprod(x, -3), IndexError, "cumprod", "dim"),
    (lambda x: flow.cumprod([1.0], 0), TypeError, "cumprod", "input"),
    (lambda x: flow.cumprod(x, 0, dtype="word"), TypeError, "cumprod", "dtype"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_bad_arguments(number):
    call, kind, op, argument = ERRORS[number]
    x = flow.ones(2, 3)
    with pytest.raises(kind, match=rf"{op}\(\).*'{argument}'.*;") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "bool"])
def test_running_extremes_with_ties_and_nan(name, dtype, device):
    torch = pytest.importorskip("torch")
    x = np.array([[1, 3, 3, 0, 3], [2, 2, 1, 1, 5]]).astype(dtype)
    if dtype[0] == "f":
        x[1, 2:4] = np.nan
    for dim in (0, 1):
        ours = getattr(flow.tensor(x, device=device), name)(dim)
        theirs = getattr(torch.tensor(x), name)(dim)
        np.testing.assert_array_equal(ours.values.numpy(), theirs.values.numpy())
        np.testing.assert_array_equal(ours.indices.numpy(), theirs.indices.numpy())


def test_logcumsumexp_at_infinities():
    torch = pytest.importorskip("torch")
    inf = float("inf")
    for line in ([-inf, 1.0, 2.0], [-inf, -inf, 0.0], [1.0, inf, 2.0], [1000.0, 1001.0, -1000.0]):
        x = flow.tensor(line, requires_grad=True)
        theirs = torch.tensor(line, requires_grad=True)
        y, z = flow.logcumsumexp(x, 0), torch.logcumsumexp(theirs, 0)
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy())
        with np.errstate(all="ignore"):
            (dx,) = flow.autograd.grad(y.sum(), x)
        (dz,) = torch.autograd.grad(z.sum(), theirs)
        finite = np.isfinite(dz.numpy())
        np.testing.assert_allclose(dx.numpy()[finite], dz.numpy()[finite], rtol=1e-4)
