"""Extrema: the three forms of max and min, ties, indices and errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.testing import Fixed, Sample, check_op

X = np.random.default_rng(1).permutation(24.0 * np.arange(1, 25)).reshape(2, 3, 4) / 24
TIES = np.array([[1.0, 5.0, 5.0], [5.0, 2.0, 1.0], [0.0, 0.0, 0.0]])

CASES = {
    f"{name}_{case}": (name, *rest)
    for name in ("max", "min")
    for case, *rest in [
        ("all", lambda lib, f, x: f(x), X),
        ("method", lambda lib, f, x: getattr(x, f.__name__)(), X),
        ("0d", lambda lib, f, x: f(x), X[0, 0, 0]),
        ("ties", lambda lib, f, x: f(x), TIES),
        ("dim", lambda lib, f, x: f(x, 1), X),
        ("dim_negative", lambda lib, f, x: f(x, dim=-1), X),
        ("dim_keepdim", lambda lib, f, x: f(x, 0, True), X),
        ("dim_ties", lambda lib, f, x: f(x, 1, keepdim=True), TIES),
        ("dim_0d", lambda lib, f, x: f(x, 0), X[0, 0, 0]),
        ("dim_method", lambda lib, f, x: getattr(x, f.__name__)(dim=2), X),
        ("dim_of_nothing", lambda lib, f, x: f(x, 1), np.zeros((0, 3))),
        ("nan", lambda lib, f, x: f(x), np.array([1.0, np.nan, 3.0, np.nan])),
        ("dim_nan", lambda lib, f, x: f(x, 0), np.array([1.0, np.nan, 3.0, np.nan])),
        ("transposed", lambda lib, f, x: f(x.transpose(0, 2), 1), X),
    ]
} | {
    f"{name}_{case}": (name, *rest)
    for name in ("amax", "amin")
    for case, *rest in [
        ("all", lambda lib, f, x: f(x), X),
        ("dim", lambda lib, f, x: f(x, 1), X),
        ("dims_keepdim", lambda lib, f, x: f(x, (0, -1), keepdim=True), X),
        ("no_dims", lambda lib, f, x: f(x, dim=()), X),
        ("ties", lambda lib, f, x: f(x, 1), TIES),
        ("ties_all", lambda lib, f, x: f(x), TIES),
        ("0d", lambda lib, f, x: f(x, 0), X[0, 0, 0]),
        ("of_nothing", lambda lib, f, x: f(x, 1), np.zeros((0, 3))),
    ]
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_pytorch(case, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    name, function, x = CASES[case]
    compare(
        lambda x: function(flow, getattr(flow, name), x),
        lambda x: function(torch, getattr(torch, name), x),
        np.asarray(x).astype(dtype),
    )


SMALL = np.array([[0.5, -1.2, 2.0], [1.5, 0.7, -0.4]])
SAMPLES = {
    "max": [Sample(SMALL), Sample(SMALL, 1), Sample(SMALL, 0, True), Sample(SMALL, SMALL[::-1])],
    "min": [Sample(SMALL), Sample(SMALL, 1), Sample(SMALL, 0, True), Sample(SMALL, SMALL[::-1])],
    "amax": [Sample(SMALL), Sample(SMALL, 1), Sample(SMALL, (0, 1), True)],
    "amin": [Sample(SMALL), Sample(SMALL, 1), Sample(SMALL, (0, 1), True)],
    "argmax": [Sample(Fixed(SMALL)), Sample(Fixed(SMALL), 1), Sample(Fixed(SMALL), keepdim=True)],
    "argmin": [Sample(Fixed(SMALL)), Sample(Fixed(SMALL), 1), Sample(Fixed(SMALL), 0, True)],
}


@pytest.mark.parametrize("op", SAMPLES)
def test_op(op, device):
    check_op(op, SAMPLES[op], device=device)


def test_second_derivative_through_the_chosen_elements():
    pytest.importorskip("torch")
    from tests.functors.agreement import compare

    for function in (
        lambda x: (x * x).amax(1) ** 3,
        lambda x: (x * x).max() ** 3,
        lambda x: (x * x).min(0).values ** 3,
    ):
        compare(function, function, TIES + 0.5, orders=3)


@pytest.mark.parametrize("name", ["max", "min"])
def test_two_tensors(name):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    a, b = X[0], X[1, 1]
    compare(getattr(flow, name), getattr(torch, name), a, b)
    assert getattr(flow, name)(flow.tensor([1, 5]), other=flow.tensor([3, 2])).tolist() in (
        [[3, 5], [1, 2]][name == "min"],
    )


def test_named_results():
    result = flow.max(flow.tensor([[1.0, 5.0], [7.0, 2.0]]), 1)
    assert result.values.tolist() == [5, 7] and result.indices.tolist() == [1, 0]
    assert result.indices.dtype == flow.int64 and not result.indices.requires_grad
    result = flow.tensor([3, 1, 2]).min(0)
    assert result.values.item() == 1 and result.indices.item() == 1


INDICES = [
    lambda lib, f, x: f(x),
    lambda lib, f, x: f(x, 1),
    lambda lib, f, x: f(x, dim=-1, keepdim=True),
    lambda lib, f, x: f(x, keepdim=True),
    lambda lib, f, x: f(x[0, 0], -1),
    lambda lib, f, x: f(x[0, 0], keepdim=True),
    lambda lib, f, x: f(x[:0], 1),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("number", range(len(INDICES)))
def test_indices_agree_with_pytorch(number, name, dtype):
    torch = pytest.importorskip("torch")
    x = X[0].astype(dtype)
    ours = INDICES[number](flow, getattr(flow, name), flow.tensor(x)).numpy()
    theirs = INDICES[number](torch, getattr(torch, name), torch.tensor(x)).numpy()
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def test_the_memory_of_a_0d_maximum_is_its_own():
    x = flow.tensor(3.0)
    y, z = flow.amax(x), flow.max(x, 0).values
    x.numpy()[...] = 5.0
    assert y.item() == 3 and z.item() == 3


ERRORS = [
    (lambda x: flow.max(x, 2), IndexError, "max", "dim"),
    (lambda x: flow.min(x, "a"), TypeError, "min", "dim"),
    (lambda x: flow.max(x, (0, 1)), TypeError, "max", "dim"),
    (lambda x: flow.max([1.0]), TypeError, "max", "input"),
    (lambda x: flow.max(x, other=3.0), TypeError, "max", "other"),
    (lambda x: flow.max(x[:0]), RuntimeError, "max", "input"),
    (lambda x: flow.min(x[:0]), RuntimeError, "min", "input"),
    (lambda x: flow.min(x[:0], 0), IndexError, "min", "dim"),
    (lambda x: flow.amax(x, (0, 0)), flow.errors.DimError, "amax", "dim"),
    (lambda x: flow.amax(x[:0]), RuntimeError, "amax", "input"),
    (lambda x: flow.amin(x[:0], 0), IndexError, "amin", "dim"),
    (lambda x: flow.argmax(x, 2), IndexError, "argmax", "dim"),
    (lambda x: flow.argmax(x[:0]), IndexError, "argmax", "input"),
    (lambda x: flow.argmin(x[:0], 0), IndexError, "argmin", "dim"),
    (lambda x: flow.argmin(3.0), TypeError, "argmin", "input"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_bad_arguments(number):
    call, kind, op, argument = ERRORS[number]
    x = flow.ones(2, 3)
    with pytest.raises(kind, match=rf"{op}\(\).*'{argument}'.*;") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0] * 3] * 2
