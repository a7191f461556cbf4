"""Logic on truth values and bits: values over dtypes, operators and errors."""

import operator

import numpy as np
import pytest

import oneflow_lite as flow

LOGICAL = {
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
BITWISE = {
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}
A, B = np.array([[0, 0, 3, 12], [1, 6, 0, 255]]), np.array([0, 5, 0, 10])


@pytest.mark.parametrize("name", LOGICAL)
@pytest.mark.parametrize("dtypes", [("float32", "bool"), ("int64", "int64"), ("bool", "uint8")])
def test_logical(name, dtypes, device):
    a, b = A.astype(dtypes[0]), B.astype(dtypes[1])
    x = flow.tensor(a, device=device)
    result = getattr(flow, name)(x, flow.tensor(b, device=device))
    assert result.dtype == flow.bool
    np.testing.assert_array_equal(result.numpy(), LOGICAL[name](a, b))


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
def test_logical_not(dtype, device):
    a = A.astype(dtype)
    result = flow.logical_not(flow.tensor(a, device=device))
    assert result.dtype == flow.bool
    np.testing.assert_array_equal(result.numpy(), a == 0)


def test_nan_is_true():
    x = flow.tensor([float("nan")])
    assert flow.logical_and(x, x).item() and not flow.logical_not(x).item()


@pytest.mark.parametrize("name", BITWISE)
@pytest.mark.parametrize("dtypes", [("int64", "int64"), ("int32", "uint8"), ("bool", "bool")])
def test_bitwise(name, dtypes, device):
    a, b = A.astype(dtypes[0]), B.astype(dtypes[1])
    x, y = flow.tensor(a, device=device), flow.tensor(b, device=device)
    expected = BITWISE[name](a, b)
    for result in (getattr(flow, name)(x, y), BITWISE[name](x, y)):
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("name", BITWISE)
def test_bitwise_with_a_scalar(name):
    x = flow.tensor(A)
    np.testing.assert_array_equal(getattr(flow, name)(x, 6).numpy(), BITWISE[name](A, 6))
    np.testing.assert_array_equal(getattr(flow, name)(6, x).numpy(), BITWISE[name](6, A))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_bitwise_not(dtype, device):
    a = A.astype(dtype)
    x = flow.tensor(a, device=device)
    for result in (flow.bitwise_not(x), ~x):
        assert result.dtype == a.dtype
        np.testing.assert_array_equal(result.numpy(), ~a)


def test_shapes():
    assert flow.logical_or(flow.ones(0, 3), flow.ones(2, 1, 1)).shape == (2, 0, 3)
    assert flow.bitwise_xor(flow.tensor(3), flow.tensor(1)).shape == ()


ERRORS = [
    *[(lambda x, n=n: getattr(flow, n)(x, 1), TypeError, n, "other") for n in LOGICAL],
    *[(lambda x, n=n: getattr(flow, n)(1, x), TypeError, n, "input") for n in LOGICAL],
    *[
        (lambda x, n=n: getattr(flow, n)(x, flow.ones(5)), RuntimeError, n, "shapes")
        for n in LOGICAL
    ],
    (lambda x: flow.logical_not(2), TypeError, "logical_not", "input"),
    *[(lambda x, n=n: getattr(flow, n)(x.float(), x), RuntimeError, n, "input") for n in BITWISE],
    *[(lambda x, n=n: getattr(flow, n)(x, 1.5), RuntimeError, n, "other") for n in BITWISE],
    *[(lambda x, n=n: getattr(flow, n)(x, "a"), RuntimeError, n, "other") for n in BITWISE],
    *[
        (lambda x, n=n: getattr(flow, n)(x, flow.tensor([1] * 5)), RuntimeError, n, "shapes")
        for n in BITWISE
    ],
    (lambda x: flow.bitwise_not(2), TypeError, "bitwise_not", "input"),
    (lambda x: flow.bitwise_not(x.float()), RuntimeError, "bitwise_not", "input"),
]


@pytest.mark.parametrize(("call", "kind", "op", "argument"), ERRORS)
def test_errors(call, kind, op, argument):
    x = flow.tensor([[1, 2], [3, 4]])
    with pytest.raises(kind, match=rf"(?s)^{op}\(\).*{argument}") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1, 2], [3, 4]]
