"""Comparisons: values over dtypes and shapes, tolerances and errors."""

import math
import operator

import numpy as np
import pytest

import oneflow_lite as flow

INF, NAN = math.inf, math.nan
ORDER = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
KINDS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
A = np.array([[1, 2, 3], [0, 2, 5]])
B = np.array([2, 2, 3])


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize(
    "dtypes", [("float32", "float32"), ("int64", "float32"), ("uint8", "bool")]
)
def test_values(name, dtypes, device):
    a, b = A.astype(dtypes[0]), B.astype(dtypes[1])
    x, y = flow.tensor(a, device=device), flow.tensor(b, device=device)
    for result, expected in (
        (getattr(flow, name)(x, y), ORDER[name](a, b)),
        (getattr(flow, name)(x, 2), ORDER[name](a, 2)),
        (ORDER[name](x, y), ORDER[name](a, b)),
        (ORDER[name](x, 2.5), ORDER[name](a.astype("d"), 2.5)),
        (ORDER[name](2, x), ORDER[name](2, a)),
    ):
        assert result.dtype == flow.bool and not result.requires_grad
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("name", ORDER)
def test_shapes(name):
    compare = getattr(flow, name)
    zero_d = compare(flow.tensor(1.0), flow.tensor(2.0))
    assert zero_d.shape == () and zero_d.item() == ORDER[name](1.0, 2.0)
    assert compare(flow.ones(0, 3), flow.ones(2, 1, 1)).shape == (2, 0, 3)


@pytest.mark.parametrize("name", ORDER)
def test_nan_is_unordered(name):
    x = flow.tensor([NAN, 1.0])
    assert getattr(flow, name)(x, NAN).tolist() == [name == "ne"] * 2


@pytest.mark.parametrize("name", ORDER)
def test_results_carry_no_gradient(name):
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    y = getattr(flow, name)(x, x.detach())
    assert not y.requires_grad and y.grad_fn is None


def test_complex_numbers_are_equal_or_not():
    z = flow.tensor([1 + 2j, 1 - 2j])
    assert flow.eq(z, 1 + 2j).tolist() == [True, False]
    assert flow.ne(z, 1 + 2j).tolist() == [False, True]


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name, device):
    x = np.array([0.0, -1.0, INF, -INF, NAN])
    for a in (x, x.astype("f"), x.astype("e"), x[:0], x[4], x * (1 + 1j), A, A > 1):
        result = getattr(flow, name)(flow.tensor(a, device=device))
        assert result.dtype == flow.bool
        np.testing.assert_array_equal(result.numpy(), KINDS[name](a))


CLOSE = [
    ([1.0, 2.0], [1.0, 2.1], {}, [True, False]),
    ([1.0, 2.0], [1.0, 2.1], {"rtol": 0.0, "atol": 0.2}, [True, True]),
    ([1.0, 100.0], [1.05, 105.0], {"rtol": 0.05, "atol": 0.0}, [True, True]),
    ([105.0], [100.0], {"rtol": 0.049, "atol": 0.0}, [False]),
    ([NAN, 1.0], [NAN, NAN], {}, [False, False]),
    ([NAN, 1.0], [NAN, NAN], {"equal_nan": True}, [True, False]),
    ([INF, INF], [INF, -INF], {}, [True, False]),
    ([3, 4], [3, 5], {}, [True, False]),
    ([3, 4], [3, 5], {"atol": 1}, [True, True]),
    ([True], [False], {}, [False]),
    ([1 + 1j], [1 + 1j], {}, [True]),
]


@pytest.mark.parametrize(("a", "b", "options", "expected"), CLOSE)
def test_closeness(a, b, options, expected, device):
    x, y = flow.tensor(a, device=device), flow.tensor(b, device=device)
    assert flow.isclose(x, y, **options).tolist() == expected
    assert flow.allclose(x, y, **options) is all(expected)


@pytest.mark.parametrize(("a", "b", "options", "expected"), CLOSE)
def test_closeness_agrees_with_pytorch(a, b, options, expected):
    torch = pytest.importorskip("torch")
    x, y = torch.tensor(a), torch.tensor(b)
    assert torch.isclose(x, y, **options).tolist() == expected
    assert torch.allclose(x, y, **options) is all(expected)


def test_closeness_broadcasts():
    assert flow.isclose(flow.ones(2, 3), flow.ones(3)).shape == (2, 3)
    assert flow.allclose(flow.ones(2, 3), flow.ones(3))
    assert flow.allclose(flow.ones(0), flow.ones(0))


def test_equal(device):
    x = flow.tensor([1, 2], device=device)
    assert flow.equal(x, flow.tensor([1, 2], device=device)) is True
    assert flow.equal(x, flow.tensor([1.0, 2.0], device=device)) is True
    assert flow.equal(x, flow.tensor([1, 3], device=device)) is False
    assert flow.equal(x, flow.tensor([[1, 2]], device=device)) is False
    assert flow.equal(flow.ones(0), flow.ones(0)) is True
    assert flow.equal(flow.tensor([NAN]), flow.tensor([NAN])) is False


ERRORS = [
    (lambda x: flow.eq(x, "a"), TypeError, "eq", "other"),
    (lambda x: flow.ne(x, None), TypeError, "ne", "other"),
    (lambda x: flow.lt([], x), TypeError, "lt", "input"),
    (lambda x: flow.eq(x, flow.ones(5)), RuntimeError, "eq", "shapes"),
    *[
        (lambda x, n=n: getattr(flow, n)(x * 1j, x), RuntimeError, n, "input")
        for n in list(ORDER)[2:]
    ],
    *[
        (lambda x, n=n: getattr(flow, n)(x, x * 1j), RuntimeError, n, "other")
        for n in list(ORDER)[2:]
    ],
    *[(lambda x, n=n: getattr(flow, n)(x, 1j), TypeError, n, "other") for n in list(ORDER)[2:]],
    *[(lambda x, n=n: getattr(flow, n)(1.0), TypeError, n, "input") for n in KINDS],
]
for _name in ("isclose", "allclose"):
    ERRORS += [
        (lambda x, n=_name: getattr(flow, n)(1.0, x), TypeError, _name, "input"),
        (lambda x, n=_name: getattr(flow, n)(x, 1.0), TypeError, _name, "other"),
        (lambda x, n=_name: getattr(flow, n)(x, x.double()), RuntimeError, _name, "other"),
        (lambda x, n=_name: getattr(flow, n)(x, x, rtol=-1), ValueError, _name, "rtol"),
        (lambda x, n=_name: getattr(flow, n)(x, x, atol=-1), ValueError, _name, "atol"),
        (lambda x, n=_name: getattr(flow, n)(x, x, rtol="a"), TypeError, _name, "rtol"),
        (lambda x, n=_name: getattr(flow, n)(x, flow.ones(5)), RuntimeError, _name, "shapes"),
    ]
ERRORS += [
    (lambda x: flow.equal(x, 1.0), TypeError, "equal", "other"),
    (lambda x: flow.equal(1.0, x), TypeError, "equal", "input"),
]


@pytest.mark.parametrize(("call", "kind", "op", "argument"), ERRORS)
def test_errors(call, kind, op, argument):
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(kind, match=rf"(?s)^{op}\(\).*{argument}") as caught:
        call(x)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
