"""sort, argsort and topk: values, indices, derivatives, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentTypeError, DimError, DTypeError, ShapeError
from oneflow_lite.testing import Sample, check_op

RNG = np.random.default_rng(0)
X = RNG.permutation(60).reshape(3, 4, 5) / 7.0
TIES = np.array([[2, 1, 2, 1, 2, 3, 1], [0, 0, 0, 0, 0, 0, 0]])
NAN = np.array([[1.0, np.nan, 3.0, -np.inf], [np.nan, np.inf, np.nan, 0.0]])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_sort_agrees_with_pytorch(dim, descending, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(
        lambda x: tuple(flow.sort(x * x, dim, descending)),
        lambda x: tuple(torch.sort(x * x, dim, descending)),
        X.astype(dtype),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("k", "dim"), [(1, 0), (2, 1), (1, -1), (2, -1), (5, -1), (0, 1)])
def test_topk_agrees_with_pytorch(k, dim, largest, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(
        lambda x: tuple(flow.topk(x * x, k, dim, largest)),
        lambda x: tuple(torch.topk(x * x, k, dim, largest)),
        X.astype(dtype),
    )


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (3, 0)])
def test_small_shapes_agree_with_pytorch(shape):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x = np.ones(shape)
    compare(lambda x: tuple(flow.sort(x, 0)), lambda x: tuple(torch.sort(x, 0)), x)
    k = min(shape[0], 1) if shape else 1
    compare(lambda x: tuple(flow.topk(x, k, 0)), lambda x: tuple(torch.topk(x, k, 0)), x)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("x", [TIES, TIES > 1, TIES.astype(np.uint8), NAN], ids=str)
def test_equal_elements_keep_their_order_and_nan_is_greatest(x, descending):
    torch = pytest.importorskip("torch")
    values, indices = flow.sort(flow.tensor(x), descending=descending)
    expected = torch.sort(torch.tensor(x), dim=-1, descending=descending, stable=True)
    assert values.dtype == x.dtype and indices.dtype == flow.int64
    np.testing.assert_array_equal(values.numpy(), expected.values.numpy())
    np.testing.assert_array_equal(indices.numpy(), expected.indices.numpy())
    order = flow.argsort(flow.tensor(x), descending=descending, stable=True)
    np.testing.assert_array_equal(order.numpy(), expected.indices.numpy())


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_topk_of_nan(k, largest):
    torch = pytest.importorskip("torch")
    values, indices = flow.topk(flow.tensor(NAN), k, largest=largest)
    expected = torch.topk(torch.tensor(NAN), k, largest=largest)
    np.testing.assert_array_equal(values.numpy(), expected.values.numpy())
    np.testing.assert_array_equal(np.take_along_axis(NAN, indices.numpy(), 1), values.numpy())


def many(dtype, shape):
    """Return numbers with ties, all special values, and the largest and smallest of the dtype."""
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        x = RNG.integers(info.min, info.max, shape, dtype, endpoint=True)
        x[RNG.random(shape) < 0.3] = info.max // 3
        return x
    x = (RNG.standard_normal(shape) * 3).astype(dtype)
    x[RNG.random(shape) < 0.3] = 0.0
    for special in (-0.0, np.nan, -np.nan, np.inf, -np.inf, np.finfo(dtype).smallest_subnormal):
        x[RNG.random(shape) < 0.05] = special
    return x


@pytest.mark.parametrize("shape", [(5000,), (70, 33), (1500, 2), (9, 300), (2, 3, 400)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "uint8"])
def test_many_elements_are_in_the_order_of_numpys_stable_sort(dtype, shape):
    for x in (many(dtype, shape), RNG.integers(-5, 5, shape).astype(dtype)):
        for dim in range(len(shape)):
            order = flow.tensor(x).argsort(dim).numpy()
            np.testing.assert_array_equal(order, np.argsort(x, dim, kind="stable"))
            falling = shape[dim] - 1 - np.flip(np.argsort(np.flip(x, dim), dim, kind="stable"), dim)
            np.testing.assert_array_equal(flow.tensor(x).argsort(dim, True).numpy(), falling)


@pytest.mark.parametrize("shape", [(9000,), (3, 5000), (64, 200), (4100, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_topk_of_long_lines(dtype, shape):
    x = many(dtype, shape)
    for dim in (0, -1):
        for k in {1, 17, 60, shape[dim] // 40, shape[dim] // 3}:
            for largest in (True, False):
                if 0 < k <= shape[dim]:
                    values, places = (y.numpy() for y in flow.tensor(x).topk(k, dim, largest))
                    order = flow.tensor(x).sort(dim, largest).values.narrow(dim, 0, k).numpy()
                    np.testing.assert_array_equal(values, order)
                    np.testing.assert_array_equal(np.take_along_axis(x, places, dim), values)
                    assert (np.diff(np.sort(places, dim), axis=dim) > 0).all()


def test_unsorted_topk():
    x = flow.tensor(X.reshape(4, 15))
    values, indices = flow.topk(x, 3, sorted=False)
    ordered = flow.topk(x, 3)
    np.testing.assert_array_equal(
        flow.sort(values, descending=True).values.numpy(), ordered.values.numpy()
    )
    np.testing.assert_array_equal(flow.gather(x, 1, indices).numpy(), values.numpy())


def test_named_results():
    result = flow.sort(flow.tensor([3.0, 1.0]))
    assert result.values.tolist() == [1, 3] and result.indices.tolist() == [1, 0]
    assert flow.topk(flow.tensor([3.0, 1.0]), 1).indices.tolist() == [0]
    assert not result.indices.requires_grad


def test_derivatives(device):
    x = X[:2, 0]
    check_op("sort", [Sample(x), Sample(x, 0, True)], device=device)
    check_op("topk", [Sample(x, 2), Sample(x, 1, 0, False)], degenerate=False, device=device)
    order = flow.tensor(x, device=device).argsort(1, descending=True)
    np.testing.assert_array_equal(order.numpy(), np.argsort(-x, 1))


@pytest.mark.parametrize(
    ("call", "error", "op", "argument"),
    [
        (lambda x: flow.sort(x, 3), DimError, "sort", "dim"),
        (lambda x: flow.sort(x, 1.0), ArgumentTypeError, "sort", "dim"),
        (lambda x: flow.sort(x * 1j), DTypeError, "sort", "input"),
        (lambda x: flow.sort([1.0]), ArgumentTypeError, "sort", "input"),
        (lambda x: flow.argsort(x, -4), DimError, "argsort", "dim"),
        (lambda x: flow.argsort(x * 1j), DTypeError, "argsort", "input"),
        (lambda x: flow.topk(x, 6), ShapeError, "topk", "k"),
        (lambda x: flow.topk(x, -1), ShapeError, "topk", "k"),
        (lambda x: flow.topk(x, 1.0), ArgumentTypeError, "topk", "k"),
        (lambda x: flow.topk(x, 1, 3), DimError, "topk", "dim"),
        (lambda x: flow.topk(x * 1j, 1), DTypeError, "topk", "input"),
    ],
)
def test_errors(call, error, op, argument):
    with pytest.raises(error, match=rf"^{op}\(\): argument '{argument}'"):
        call(flow.tensor(X))
