"""gather, scatter, scatter_add, take_along_dim and take: values, derivatives, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    IndexRangeError,
    NotDifferentiableError,
    ShapeError,
)
from oneflow_lite.testing import Fixed, Sample, check_op

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5))


def places(shape, size):
    return RNG.integers(0, size, shape)


# (dim, x, index): as large as x, smaller, larger along dim, 0-d, of another integer dtype, empty.
INDEXED = {
    "first": (0, X, places(X.shape, 3)),
    "middle": (1, X, places((3, 7, 5), 4)),
    "last": (-1, X, places((3, 4, 2), 5)),
    "smaller": (1, X, places((2, 3, 1), 4)),
    "vector": (0, X[0, 0], places(8, 5)),
    "int32": (1, X[0], places((4, 2), 5).astype(np.int32)),
    "0d": (0, X[0, 0, 0], np.array(0)),
    "0d x": (0, X[0, 0, 0], np.array([0, 0])),
    "0d index": (0, X[0, 0], np.array(3)),
    "empty": (1, X[0], np.zeros((4, 0), np.int64)),
    "empty x": (0, np.zeros((0, 3)), np.zeros((0, 3), np.int64)),
    "empty vector": (1, X[0], np.zeros(0, np.int64)),
}


def unique_places(shape, dim, size):
    """Return indices that name no place twice."""
    index = np.argsort(RNG.random((*shape[:dim], size, *shape[dim + 1 :])), dim)
    return np.take(index, range(shape[dim]), dim)


UNIQUE = {
    "first": (0, X, unique_places((2, 4, 5), 0, 3)),
    "middle": (1, X, unique_places((3, 4, 5), 1, 4)),
    "last": (-1, X, unique_places((3, 2, 3), 2, 5)),
    "vector": (0, X[0, 0], unique_places((3,), 0, 5)),
    "0d": (0, X[0, 0, 0], np.array(0)),
    "empty": (1, X[0], np.zeros((4, 0), np.int64)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", INDEXED)
def test_gather_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    dim, x, index = INDEXED[name]
    compare(
        lambda x: flow.gather(x * x, dim, flow.tensor(index)),
        lambda x: torch.gather(x * x, dim, torch.tensor(index)),
        np.asarray(x, dtype),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", INDEXED)
def test_scatter_add_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    dim, x, index = INDEXED[name]
    compare(
        lambda x, v: (x * x).scatter_add(dim, flow.tensor(index), v * v),
        lambda x, v: (x * x).scatter_add(dim, torch.tensor(index), v * v),
        np.asarray(x, dtype),
        RNG.normal(size=index.shape).astype(dtype),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", UNIQUE)
def test_scatter_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    dim, x, index = UNIQUE[name]
    compare(
        lambda x, v: (x * x).scatter(dim, flow.tensor(index), v * v),
        lambda x, v: (x * x).scatter(dim, torch.tensor(index), v * v),
        np.asarray(x, dtype),
        RNG.normal(size=index.shape).astype(dtype),
    )


@pytest.mark.parametrize("number", [(2.5,), {"value": 2.5}], ids=str)
@pytest.mark.parametrize("name", INDEXED)
def test_scatter_of_a_number_agrees_with_pytorch(name, number):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    dim, x, index = INDEXED[name]

    def on(lib):
        if isinstance(number, dict):
            return lambda x: (x * x).scatter(dim, lib.tensor(index), **number)
        return lambda x: (x * x).scatter(dim, lib.tensor(index), *number)

    compare(on(flow), on(torch), x)


def test_larger_source():
    torch = pytest.importorskip("torch")
    dim, x, index = UNIQUE["last"]
    source = RNG.normal(size=(3, 4, 5))
    leaf = flow.tensor(source, requires_grad=True)
    y = flow.scatter(flow.tensor(x), dim, flow.tensor(index), leaf)
    expected = torch.scatter(*map(torch.tensor, (x, dim, index, source)))
    np.testing.assert_array_equal(y.numpy(), expected.numpy())
    y.sum().backward()
    expected = np.zeros_like(source)
    expected[:3, :2, :3] = 1
    np.testing.assert_array_equal(leaf.grad.numpy(), expected)


@pytest.mark.filterwarnings("ignore:The reduce argument")
@pytest.mark.parametrize("reduce", ["add", "multiply"])
@pytest.mark.parametrize("name", ["first", "middle", "last", "smaller", "vector"])
def test_reduce_agrees_with_pytorch(name, reduce):
    torch = pytest.importorskip("torch")
    dim, x, index = INDEXED[name]
    for value in (RNG.normal(size=index.shape), 3.0):
        ours, theirs = (
            lib.scatter(
                lib.tensor(x),
                dim,
                lib.tensor(index),
                lib.tensor(value) if isinstance(value, np.ndarray) else value,
                reduce=reduce,
            )
            for lib in (flow, torch)
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_multiplying_has_no_gradient_and_says_so(device):
    x = flow.ones(3, device=device, requires_grad=True)
    index = flow.tensor([1, 1, 2], device=device)
    y = x.scatter(0, index, 3.0, reduce="multiply")
    assert y.tolist() == [1, 9, 3]
    with pytest.raises(NotDifferentiableError, match="scatter_multiply"):
        y.sum().backward()
    flow.ones(3, device=device).scatter(0, index, x * 2, reduce="add").sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_derivatives(device):
    x, index = X[:2, :3, 0], flow.tensor([[0, 2, 2], [1, 1, 0]], device=device)
    v = RNG.normal(size=(2, 3))
    options = {"degenerate": False, "device": device}
    check_op(lambda x: flow.gather(x, 1, index), [Sample(x)], **options)
    check_op(lambda x, v: flow.scatter(x, 1, index, v), [Sample(x, v)], **options)
    check_op(lambda x: flow.scatter(x, 1, index, 4.0), [Sample(x)], **options)
    check_op(lambda x, v: flow.scatter_add(x, 1, index, v), [Sample(x, v)], **options)
    check_op(lambda x: flow.take_along_dim(x, index - 1, 1), [Sample(x)], **options)
    check_op(lambda x: flow.take(x, index - 3), [Sample(x)], **options)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "bool", "float16"])
def test_dtypes_agree_with_pytorch(dtype):
    torch = pytest.importorskip("torch")
    x = np.array([[1, 0, 3], [4, 5, 6]]).astype(dtype)
    index = np.array([[0, 2, 2], [1, 1, 0]])
    for call in (
        lambda lib, x, i: lib.gather(x, 1, i),
        lambda lib, x, i: lib.scatter(x, 1, i[:, :2], x),
        lambda lib, x, i: lib.scatter(x, 1, i, 1),
        lambda lib, x, i: lib.scatter_add(x, 1, i, x),
        lambda lib, x, i: lib.take(x, i),
    ):
        ours = call(flow, flow.tensor(x), flow.tensor(index)).numpy()
        theirs = call(torch, torch.tensor(x), torch.tensor(index)).numpy()
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_integers_sum_on_both_devices(device):
    for dtype in ("int64", "int16", "uint8", "bool"):
        x = flow.zeros(3, dtype=dtype, device=device)
        ones = flow.ones(4, dtype=dtype, device=device)
        y = x.scatter_add(0, flow.tensor([0, 2, 2, 0], device=device), ones)
        assert str(y.dtype) == dtype
        assert y.tolist() == ([True, False, True] if dtype == "bool" else [2, 0, 2])


TAKEN = {
    "sorted": (1, X, np.argsort(X, 1)),
    "flattened": (None, X, np.array([[3, 59], [1, 0]])),
    "broadcast index": (0, X, np.array([[[2, 0, -1, 1, 0]]])),
    "broadcast x": (2, X[:, :1], RNG.integers(-5, 5, (3, 4, 2))),
    "both": (1, X[:1], RNG.integers(0, 4, (3, 2, 1))),
    "0d": (None, X[0, 0, 0], np.array([0, 0])),
}


@pytest.mark.parametrize("name", TAKEN)
def test_take_along_dim_agrees_with_pytorch(name):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    dim, x, index = TAKEN[name]
    compare(
        lambda x: flow.take_along_dim(x * x, flow.tensor(index), dim),
        lambda x: torch.take_along_dim(x * x, torch.tensor(index), dim),
        x,
    )


@pytest.mark.parametrize("index", [3, [0, -1, 3], [[59, 0], [0, -60]], np.zeros((0, 2), int)])
def test_take_agrees_with_pytorch(index):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(
        lambda x: flow.take(x * x, flow.tensor(index)),
        lambda x: torch.take(x * x, torch.tensor(index)),
        X,
    )


I = flow.tensor(np.zeros((3, 4, 5), np.int64))  # noqa: E741
ERRORS = [
    (lambda x: x.gather(3, I), DimError, "gather", "dim"),
    (lambda x: x.gather(0, I[0]), ShapeError, "gather", "index"),
    (lambda x: x.gather(0, flow.cat([I, I], 1)), ShapeError, "gather", "index"),
    (lambda x: x.gather(0, x), DTypeError, "gather", "index"),
    (lambda x: x.gather(0, 1), ArgumentTypeError, "gather", "index"),
    (lambda x: x.gather(1, I + 4), IndexRangeError, "gather", "index"),
    (lambda x: x.gather(1, I - 1), IndexRangeError, "gather", "index"),
    (lambda x: x.gather(1, I, sparse_grad=True), ArgumentError, "gather", "sparse_grad"),
    (lambda x: x.scatter(1, I + 4, x), IndexRangeError, "scatter", "index"),
    (lambda x: x.scatter(1, I - 1, 2.0), IndexRangeError, "scatter", "index"),
    (lambda x: x.scatter(1, I, x[:, :2]), ShapeError, "scatter", "src"),
    (lambda x: x.scatter(1, I, x[0]), ShapeError, "scatter", "src"),
    (lambda x: x.scatter(1, I, x.to(flow.float32)), DTypeError, "scatter", "src"),
    (lambda x: x.scatter(1, I, x, reduce="mean"), ArgumentError, "scatter", "reduce"),
    (lambda x: x.scatter(1, I), ArgumentTypeError, "scatter", "src"),
    (lambda x: x.scatter(1, I, x, value=1.0), ArgumentTypeError, "scatter", "src"),
    (lambda x: x.scatter(1, I, "a"), ArgumentTypeError, "scatter", "src"),
    (lambda x: x.scatter(1, I, value=1j), DTypeError, "scatter", "value"),
    (lambda x: x.scatter_add(1, I - 5, x), IndexRangeError, "scatter_add", "index"),
    (lambda x: x.scatter_add(1, I, 2.0), ArgumentTypeError, "scatter_add", "src"),
    (lambda x: x.take_along_dim(I + 5, 2), IndexRangeError, "take_along_dim", "indices"),
    (lambda x: x.take_along_dim(I[0], 2), ShapeError, "take_along_dim", "indices"),
    (lambda x: x.take_along_dim(I[:, :3], 2), ShapeError, "take_along_dim", "indices"),
    (lambda x: x.take_along_dim(x, 2), DTypeError, "take_along_dim", "indices"),
    (lambda x: x.take(I + 60), IndexRangeError, "take", "index"),
    (lambda x: x.take(I - 61), IndexRangeError, "take", "index"),
]


@pytest.mark.parametrize(("call", "error", "op", "argument"), ERRORS)
def test_errors_leave_everything_as_it_was(call, error, op, argument):
    x = flow.tensor(X, requires_grad=True)
    with pytest.raises(error, match=rf"^{op}\(\): argument '{argument}'"):
        call(x)
    np.testing.assert_array_equal(x.numpy(), X)
    assert x._version == 0 and x.grad is None


def test_in_place_twins_write_nothing_on_errors():
    x = flow.zeros(2, 3)
    with pytest.raises(IndexRangeError):
        x.scatter_(1, flow.tensor([[0], [3]]), 1.0)
    with pytest.raises(IndexRangeError):
        x.scatter_add_(1, flow.tensor([[0], [3]]), flow.ones(2, 1))
    assert not x.any() and x._version == 0
    x.scatter_(1, flow.tensor([[0], [2]]), 1.0)
    assert x.tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (5, 0)])
@pytest.mark.parametrize("dim", [0, 1])
def test_an_empty_index_writes_nothing(shape, dim, device):
    x = flow.ones(3, 4, device=device, requires_grad=True)
    index = flow.zeros(shape, dtype=flow.int64, device=device)
    for src in (flow.zeros(shape, device=device), flow.zeros(3, 4, device=device)):
        for y in (x.scatter(dim, index, src), x.scatter_add(dim, index, src)):
            (dx,) = flow.autograd.grad(y.sum(), x)
            assert y.tolist() == dx.tolist() == x.tolist()
    assert x.scatter(dim, index, 5.0).tolist() == x.tolist()


REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]
TIES = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 3.0]])
TIED_SOURCE = np.array([[2.0, 2.0, 0.0, 0.0], [0.0, 1.0, 3.0, 3.0]])
INTO = np.array([[0, 0, 1, 1], [0, 0, 2, 2]])


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_scatter_reduce_with_zeros_and_ties(reduce, include_self, device):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    # PyTorch counts the excluded input among the ties, and raises for second derivatives at zeros.
    x = TIES + 0.25 * (reduce[0] == "a" and not include_self)
    compare(
        lambda x, s: x.scatter_reduce(1, flow.tensor(INTO), s, reduce, include_self=include_self),
        lambda x, s: x.scatter_reduce(1, torch.tensor(INTO), s, reduce, include_self=include_self),
        x,
        TIED_SOURCE,
        orders=1,
    )
    result = flow.tensor(x, device=device).scatter_reduce(
        1, flow.tensor(INTO, device=device), flow.tensor(TIED_SOURCE, device=device), reduce,
        include_self=include_self,
    )  # fmt: skip
    expected = torch.tensor(x).scatter_reduce(
        1, torch.tensor(INTO), torch.tensor(TIED_SOURCE), reduce, include_self=include_self
    )
    np.testing.assert_allclose(result.numpy(), expected.numpy())


def test_products_of_zeros_have_derivatives_of_any_order():
    index = Fixed(INTO)
    samples = [Sample(TIES, 1, index, TIED_SOURCE, "prod", include_self=s) for s in (True, False)]
    check_op("scatter_reduce", samples, degenerate=False)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_scatter_reduce_of_any_dtype(reduce, dtype, device):
    torch = pytest.importorskip("torch")
    x, src = TIES.astype(dtype), TIED_SOURCE.astype(dtype)
    if reduce == "mean" and dtype == "bool":
        with pytest.raises(DTypeError):
            flow.tensor(x).scatter_reduce(1, flow.tensor(INTO), flow.tensor(src), "mean")
        return
    for include_self in (True, False):
        ours = flow.tensor(x, device=device).scatter_reduce(
            1, flow.tensor(INTO, device=device), flow.tensor(src, device=device), reduce,
            include_self=include_self,
        )  # fmt: skip
        theirs = torch.tensor(x).scatter_reduce(
            1, torch.tensor(INTO), torch.tensor(src), reduce, include_self=include_self
        )
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_nan_is_an_extremum():
    src, index = flow.tensor([float("nan"), 1.0, 2.0]), flow.tensor([0, 0, 1])
    for reduce in ("amax", "amin"):
        assert np.isnan(flow.zeros(2).scatter_reduce(0, index, src, reduce)[0].item())


def test_put_takes_the_last_value_and_its_gradient(device):
    index = flow.tensor([1, -3, 1], device=device)
    source = flow.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    x = flow.zeros(4, device=device)
    y = x.put(index, source)
    assert y.tolist() == [0, 3, 0, 0]
    y.sum().backward()
    assert source.grad.tolist() == [0, 0, 1]
    assert x.put_(index, source.detach(), accumulate=True).tolist() == [0, 6, 0, 0]
    with pytest.raises(IndexRangeError, match=r"^put\(\): argument 'index'"):
        flow.zeros(4).put(flow.tensor([4]), flow.ones(1))
    with pytest.raises(ShapeError, match=r"^put\(\): argument 'source'"):
        flow.zeros(4).put(flow.tensor([1]), flow.ones(2))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("alpha", [1, -0.5])
def test_many_rows_are_added_as_few_are(dim, alpha):
    rng = np.random.default_rng(0)
    x, source = rng.standard_normal((50, 8)), rng.standard_normal((9000, 8))
    index = rng.integers(0, 50, 9000)
    wanted = x.copy()
    np.add.at(wanted, index, alpha * source)
    given = [flow.tensor(a if dim == 0 else a.T.copy()) for a in (x, source)]
    found = flow.index_add(given[0], dim, flow.tensor(index), given[1], alpha=alpha).numpy()
    np.testing.assert_allclose(found if dim == 0 else found.T, wanted, 1e-10, 1e-10)
