"""Sums, products, truth: values, derivatives and errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.testing import Sample, check_op

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, (2, 3, 4))
ZEROS = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 4.0], [1.0, 5.0, -2.0]])

CASES = {
    "sum": (lambda lib, x: lib.sum(x), X),
    "sum_method": (lambda lib, x: x.sum(), X),
    "sum_dim": (lambda lib, x: lib.sum(x, 1), X),
    "sum_negative_dim": (lambda lib, x: x.sum(-1), X),
    "sum_dims_keepdim": (lambda lib, x: x.sum((0, -1), keepdim=True), X),
    "sum_no_dims": (lambda lib, x: x.sum(()), X),
    "sum_0d": (lambda lib, x: x.sum(0), X[0, 0, 0]),
    "sum_empty": (lambda lib, x: x.sum(0), np.zeros((0, 3))),
    "sum_transposed": (lambda lib, x: x.transpose(0, 2).sum(1), X),
    "sum_dtype": (lambda lib, x: x.sum(1, dtype=lib.float32), X),
    "mean": (lambda lib, x: lib.mean(x), X),
    "mean_dim": (lambda lib, x: x.mean(dim=1), X),
    "mean_dims_keepdim": (lambda lib, x: lib.mean(x, dim=(0, 2), keepdim=True), X),
    "mean_0d": (lambda lib, x: x.mean(-1), X[0, 0, 0]),
    "mean_empty": (lambda lib, x: x.mean(0), np.zeros((0, 3))),
    "mean_to_empty": (lambda lib, x: x.mean(1), np.zeros((0, 3))),
    "mean_dtype": (lambda lib, x: x.mean(0, dtype=lib.float32), X),
    "prod": (lambda lib, x: lib.prod(x), X),
    "prod_dim": (lambda lib, x: x.prod(1), X),
    "prod_keepdim": (lambda lib, x: x.prod(-1, keepdim=True), X),
    "prod_0d": (lambda lib, x: x.prod(), X[0, 0, 0]),
    "prod_0d_dim": (lambda lib, x: x.prod(0), X[0, 0, 0]),
    "prod_1d": (lambda lib, x: x.prod(), X[0, 0]),
    "prod_zeros": (lambda lib, x: x.prod(1), ZEROS),
    "prod_zeros_columns": (lambda lib, x: x.prod(0), ZEROS),
    "prod_one_zero": (lambda lib, x: x.prod(), ZEROS[0]),
    "prod_two_zeros": (lambda lib, x: x.prod(), ZEROS[1]),
    "prod_empty": (lambda lib, x: x.prod(0), np.zeros((0, 3))),
    "logsumexp": (lambda lib, x: lib.logsumexp(x, 1), X),
    "logsumexp_dims": (lambda lib, x: x.logsumexp((0, 2)), X),
    "logsumexp_keepdim": (lambda lib, x: x.logsumexp(dim=-1, keepdim=True), X),
    "logsumexp_large": (lambda lib, x: x.logsumexp(1), X * 1000),
    "logsumexp_0d": (lambda lib, x: x.logsumexp(0), X[0, 0, 0]),
    "logsumexp_empty": (lambda lib, x: x.logsumexp(1), np.zeros((0, 3))),
    "logsumexp_some_infinite": (
        lambda lib, x: x.logsumexp(1),
        np.array([[1.0, -np.inf], [2.0, 3.0]]),
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_pytorch(case, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    function, x = CASES[case]
    compare(lambda x: function(flow, x), lambda x: function(torch, x), np.asarray(x).astype(dtype))


SMALL = np.array([[0.5, -1.2, 2.0], [1.5, 0.7, -0.4]])
WITH_ZEROS = np.array([[0.0, -1.2, 2.0], [0.0, 0.7, 0.0]])
SAMPLES = {
    "sum": [Sample(SMALL), Sample(SMALL, 1), Sample(SMALL, (0, 1), True), Sample(SMALL, -2, True)],
    "mean": [Sample(SMALL), Sample(SMALL, 1), Sample(SMALL, (1,), True)],
    "prod": [Sample(SMALL), Sample(SMALL, 1), Sample(WITH_ZEROS, 0, True), Sample(WITH_ZEROS)],
    "logsumexp": [Sample(SMALL, 1), Sample(SMALL, (0, 1)), Sample(SMALL, 0, keepdim=True)],
    "any": [Sample(SMALL), Sample(SMALL, 1)],
    "all": [Sample(SMALL), Sample(SMALL, 1)],
    "count_nonzero": [Sample(SMALL), Sample(SMALL, 1)],
}


@pytest.mark.parametrize("op", SAMPLES)
def test_op(op, device):
    check_op(op, SAMPLES[op], device=device)


def test_third_derivative_of_a_product_with_zeros():
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x = np.array([0.0, 0.0, 3.0, 2.0])
    compare(lambda x: x.prod(), lambda x: x.prod(), x, orders=1)
    leaf = flow.tensor(x, requires_grad=True)
    total = leaf.prod()
    for _ in range(3):
        (total,) = flow.autograd.grad(total.sum(), leaf, create_graph=True)
    # d³/dx³ of Σ over the products of three by three, taken by hand: each x_i in all triples.
    theirs = torch.tensor(x, requires_grad=True)
    value = theirs[0] * theirs[1] * theirs[2] * theirs[3]
    for _ in range(3):
        (value,) = torch.autograd.grad(value.sum(), theirs, create_graph=True)
    np.testing.assert_allclose(total.detach().numpy(), value.detach().numpy())


INTEGERS = [
    lambda lib, x: x.sum(0),
    lambda lib, x: x.prod(1),
    lambda lib, x: x.any(1),
    lambda lib, x: x.all(0),
    lambda lib, x: lib.any(x),
    lambda lib, x: lib.all(x),
    lambda lib, x: x.any(-1, keepdim=True),
    lambda lib, x: lib.all(x, (0, 1)),
    lambda lib, x: lib.count_nonzero(x),
    lambda lib, x: lib.count_nonzero(x, dim=1),
    lambda lib, x: lib.count_nonzero(x, dim=(0, 1)),
    lambda lib, x: lib.logsumexp(x, 0),
    lambda lib, x: x.sum(dtype=lib.float32),
    lambda lib, x: lib.mean(x, dtype=lib.float64),
]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool", "float32"])
@pytest.mark.parametrize("number", range(len(INTEGERS)))
def test_integers_agree_with_pytorch(number, dtype):
    torch = pytest.importorskip("torch")
    x = np.array([[0, 1, 2], [0, 3, 0]]).astype(dtype)
    ours = INTEGERS[number](flow, flow.tensor(x)).numpy()
    theirs = INTEGERS[number](torch, torch.tensor(x)).numpy()
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_halves_are_summed_in_single_precision():
    x = flow.ones(4096, dtype=flow.float16)
    assert x.sum().item() == 4096 and x.sum().dtype == flow.float16
    assert x.mean().item() == 1 and flow.prod(x).dtype == flow.float16


def test_complex():
    z = flow.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (dz,) = flow.autograd.grad(flow.sum(z * z).real, z)
    np.testing.assert_allclose(dz.numpy(), np.conj(2 * z.detach().numpy()))
    (dz,) = flow.autograd.grad(flow.prod(z).real, z)
    np.testing.assert_allclose(dz.numpy(), np.conj([3 - 1j, 1 + 2j]))


ERRORS = [
    (lambda x: flow.sum(x, 2), IndexError, "sum", "dim"),
    (lambda x: flow.sum(x, (0, 0)), flow.errors.DimError, "sum", "dim"),
    (lambda x: flow.sum(x, "a"), TypeError, "sum", "dim"),
    (lambda x: flow.sum([1.0]), TypeError, "sum", "input"),
    (lambda x: flow.sum(x, dtype="word"), TypeError, "sum", "dtype"),
    (lambda x: flow.mean(x.long()), RuntimeError, "mean", "input"),
    (lambda x: flow.mean(x, -3), IndexError, "mean", "dim"),
    (lambda x: flow.prod(x, 5), IndexError, "prod", "dim"),
    (lambda x: flow.prod(x, (0, 1)), TypeError, "prod", "dim"),
    (lambda x: flow.any(x, 2), IndexError, "any", "dim"),
    (lambda x: flow.all(x, 2), IndexError, "all", "dim"),
    (lambda x: flow.count_nonzero(x, 2), IndexError, "count_nonzero", "dim"),
    (lambda x: flow.logsumexp(x, 2), IndexError, "logsumexp", "dim"),
    (lambda x: flow.logsumexp(3.0, 0), TypeError, "logsumexp", "input"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_bad_arguments(number):
    call, kind, op, argument = ERRORS[number]
    x = flow.ones(2, 3)
    with pytest.raises(kind, match=rf"{op}\(\).*'{argument}'.*;") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0] * 3] * 2


def test_large_sums_are_taken_in_the_dtype_that_was_asked_for():
    from oneflow_lite.kernels.numerics import sum_over

    found = sum_over(np, np.full((200, 200), 0.1, np.float32), 1, np.dtype(np.float64))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, 200 * float(np.float32(0.1)), rtol=1e-14)
