"""masked_fill, masked_select, masked_scatter and nonzero: values, derivatives, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentTypeError, DTypeError, ShapeError
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.testing import Sample, check_op

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4))

MASKS = {
    "same shape": (X, X > 0),
    "row": (X, np.array([True, False, True, False])),
    "column": (X, np.array([[True], [False], [True]])),
    "larger": (X, RNG.random((2, 3, 4)) > 0.5),
    "both broadcast": (X[:, :1], np.array([[True, False, True]])),
    "0d mask": (X, np.array(True)),
    "0d": (X[0, 0], np.array(True)),
    "0d x": (X[0, 0], np.array([True, False, True])),
    "none": (X, np.zeros((3, 4), bool)),
    "empty": (np.zeros((0, 4)), np.zeros((0, 4), bool)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MASKS)
def test_masked_fill_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x, mask = MASKS[name]

    def on(lib):
        m = lib.tensor(mask)
        numbers = (-2.5, float("-inf"), 3, True)
        return lambda x, v: (
            *[lib.masked_fill(x * x, m, number) for number in numbers],
            lib.masked_fill(x * x, m, v * v),
        )

    compare(on(flow), on(torch), np.asarray(x, dtype), np.asarray(1.5, dtype), orders=0)

    def finite(lib):
        m = lib.tensor(mask)
        return lambda x, v: (
            lib.masked_fill(x * x, m, -2.5),
            lib.masked_fill(x * x, m, v * v),
        )

    compare(finite(flow), finite(torch), np.asarray(x, dtype), np.asarray(1.5, dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MASKS)
def test_masked_select_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x, mask = MASKS[name]
    compare(
        lambda x: flow.masked_select(x * x, flow.tensor(mask)),
        lambda x: torch.masked_select(x * x, torch.tensor(mask)),
        np.asarray(x, dtype),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MASKS)
def test_masked_scatter_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x, mask = MASKS[name]
    shape = np.broadcast_shapes(np.shape(x), mask.shape)
    count = int(np.broadcast_to(mask, shape).sum())
    for size in ((count,), (2, count + 1)):
        compare(
            lambda x, v: flow.masked_scatter(x * x, flow.tensor(mask), v * v),
            lambda x, v: torch.masked_scatter(x * x, torch.tensor(mask), v * v),
            np.asarray(x, dtype),
            RNG.normal(size=size).astype(dtype),
        )


def test_derivatives(device):
    mask = flow.tensor(X > 0, device=device)
    options = {"degenerate": False, "device": device}
    check_op(lambda x: flow.masked_fill(x, mask, 2.0), [Sample(X)], **options)
    check_op(
        lambda x, v: flow.masked_fill(x, mask[0], v.reshape(())),
        [Sample(X, np.array([0.5]))],
        **options,
    )
    check_op(lambda x: flow.masked_select(x, mask), [Sample(X)], **options)
    check_op(
        lambda x, v: flow.masked_scatter(x, mask, v),
        [Sample(X, RNG.normal(size=(4, 3)))],
        **options,
    )


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16"])
def test_dtypes_agree_with_pytorch(dtype):
    torch = pytest.importorskip("torch")
    x = np.array([[1, 0, 3], [4, 5, 6]]).astype(dtype)
    mask = np.array([[True, False, True], [False, True, True]])
    for call in (
        lambda lib, x, m: lib.masked_fill(x, m, 1.7),
        lambda lib, x, m: lib.masked_fill(x, m, lib.tensor(1.7)),
        lambda lib, x, m: lib.masked_select(x, m),
        lambda lib, x, m: lib.masked_scatter(x, m, lib.flip(x, (0, 1))),
        lambda lib, x, m: lib.nonzero(x),
        lambda lib, x, m: x.nonzero(as_tuple=True)[1],
    ):
        ours = call(flow, flow.tensor(x), flow.tensor(mask)).numpy()
        theirs = call(torch, torch.tensor(x), torch.tensor(mask)).numpy()
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("x", [X > 0, X[0, 0], np.array(0), np.zeros((0, 2)), np.zeros(3)])
def test_nonzero_agrees_with_pytorch(x):
    torch = pytest.importorskip("torch")
    ours, theirs = flow.nonzero(flow.tensor(x)), torch.nonzero(torch.tensor(x))
    assert ours.shape == theirs.shape and ours.dtype == flow.int64
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    ours = flow.nonzero(flow.tensor(x), as_tuple=True)
    theirs = torch.nonzero(torch.tensor(x), as_tuple=True)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_values_on_each_device(device):
    x, mask = flow.tensor(X, device=device), flow.tensor(X > 0, device=device)
    np.testing.assert_array_equal(x.masked_fill(mask, 0.0).numpy(), np.minimum(X, 0))
    np.testing.assert_array_equal(x.masked_select(mask).numpy(), X[X > 0])
    source = flow.arange(12, dtype=flow.float64, device=device)
    expected = X.copy()
    expected[X > 0] = np.arange((X > 0).sum())
    np.testing.assert_array_equal(x.masked_scatter(mask, source).numpy(), expected)
    np.testing.assert_array_equal(mask.nonzero().numpy(), np.argwhere(X > 0))


M = flow.tensor(X > 0)
ERRORS = [
    (lambda x: x.masked_fill(x, 1.0), DTypeError, "mask"),
    (lambda x: x.masked_fill(X > 0, 1.0), ArgumentTypeError, "mask"),
    (lambda x: x.masked_fill(M[:, :3], 1.0), ShapeError, "mask"),
    (lambda x: x.masked_fill(M, x), ShapeError, "value"),
    (lambda x: x.masked_fill(M, "a"), ArgumentTypeError, "value"),
    (lambda x: x.masked_fill(M, 1j), DTypeError, "value"),
    (lambda x: x.half().masked_fill(M, -1e9), DTypeError, "value"),
    (lambda x: x.masked_select(x), DTypeError, "mask"),
    (lambda x: x.masked_select(M[:, :3]), ShapeError, "mask"),
    (lambda x: x.masked_scatter(M, x.float()), DTypeError, "source"),
    (lambda x: x.masked_scatter(M, x[:0]), ShapeError, "source"),
    (lambda x: x.masked_scatter(M, x[0, :1]), ShapeError, "source"),
    (lambda x: x.masked_scatter(M, 1.0), ArgumentTypeError, "source"),
    (lambda x: x.masked_scatter(M[:, :3], x), ShapeError, "mask"),
]


@pytest.mark.parametrize(("call", "error", "argument"), ERRORS)
def test_errors_leave_everything_as_it_was(call, error, argument):
    x = flow.tensor(X)
    with pytest.raises(error, match=rf"^masked_\w+\(\): argument '{argument}'"):
        call(x)
    np.testing.assert_array_equal(x.numpy(), X)


@pytest.mark.parametrize("written", [None, "x", "y", "other"])
@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_large_arrays_are_chosen_from_bit_by_bit(dtype, written):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 70, 90)).astype(dtype)
    for special, each in ((x, 7), (y, 5)):
        for value in (np.nan, np.inf, -np.inf, -0.0):
            special[rng.integers(0, 70, each), rng.integers(0, 90, each)] = value
    mask = rng.random(x.shape) < 0.5
    where, fill = (op_expr(name).kernel(np) for name in ("where", "masked_fill"))
    for value in (0.0, -0.0, 2.5, -np.inf, np.nan):
        given = {"x": x.copy(), "y": y.copy(), "other": np.ones_like(x)}
        out = {} if written is None else {"out": given[written]}
        chosen = where(mask, given["x"], given["y"], **out)
        assert chosen.tobytes() == np.where(mask, x, y).tobytes()
        for number in (value, np.array(value, dtype)):
            if written is None:
                chosen = where(mask, number, y), where(mask, x, number)
                assert chosen[0].tobytes() == np.where(mask, x.dtype.type(value), y).tobytes()
                assert chosen[1].tobytes() == np.where(mask, x, y.dtype.type(value)).tobytes()
        given = {"x": x.copy(), "y": y.copy(), "other": np.ones_like(x)}
        out = {} if written is None else {"out": given[written]}
        filled = fill(given["x"], mask, value=value, **out)
        assert filled.tobytes() == np.where(mask, x.dtype.type(value), x).tobytes()
        assert written is None or filled is out["out"]
