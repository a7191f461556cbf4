"""x[index], narrow and select: values, views, derivatives, errors."""

import sys

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    IndexRangeError,
    ShapeError,
)
from oneflow_lite.functors.indexing import getitem
from oneflow_lite.testing import Sample, check_op

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, (3, 4, 5))
MASK = np.array([[True, False, True, False]] * 3)

BASIC = {
    "int": 1,
    "negative int": -1,
    "slice": slice(0, 2),
    "step": slice(None, None, 2),
    "beyond the end": slice(1, 99),
    "empty": slice(2, 1),
    "ints": (1, 2, 3),
    "ellipsis": ...,
    "nothing": (),
    "ellipsis last": (0, ...),
    "ellipsis first": (..., -1),
    "ellipsis for nothing": (0, ..., 1, 2),
    "none": (None, 0, None, slice(1, 3), None),
    "numpy int": (np.int64(1), np.int32(-1)),
    "mixed": (slice(None), 1, slice(None, None, 3)),
}
ADVANCED = {
    "list": [2, 0],
    "repeated": [1, 1, -1, 1],
    "matrix": np.array([[0, 1], [2, 0]]),
    "empty list": [],
    "tuple in a tuple": ((0, 2),),
    "range": range(2),
    "two": ([0, 2, 2], [1, 3, 3]),
    "broadcast": (np.array([[0], [2]]), np.array([1, 3, 1])),
    "after a slice": (slice(None), [1, 1, 0]),
    "last": (..., np.array([[4, 0], [0, 4]])),
    "apart": ([0, 1], slice(None), [1, 1]),
    "apart by an int": ([0, 1], 2, [1, 1]),
    "apart by none": ([0, 1], None, [1, 1]),
    "int first": (0, slice(None), [0, 1]),
    "int between": (slice(None), 0, [0, 1]),
    "all three": ([0, 1, 1], [1, 2, 2], [4, 0, 0]),
    "mask": MASK,
    "mask of one dim": [True, False, True],
    "mask of all": X > 1.2,
    "mask in the middle": (slice(None), np.array([True, False, True, True])),
    "mask and ints": (np.array([True, False, True]), [1, 1]),
    "mask and ints apart": (np.array([True, False, True]), slice(None), [1, 1]),
    "true": True,
    "false": (False, 0),
}


def on(lib, index):
    """Return an index with its arrays as tensors of a library."""
    if isinstance(index, tuple):
        return tuple(on(lib, item) for item in index)
    return lib.tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*BASIC, *ADVANCED])
def test_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    index = {**BASIC, **ADVANCED}[name]
    ours, theirs = on(flow, index), on(torch, index)
    compare(lambda x: (x * x)[ours], lambda x: (x * x)[theirs], X.astype(dtype))


@pytest.mark.parametrize("name", ["int", "none", "mixed", "repeated", "apart", "mask of all"])
def test_derivatives(name, device):
    index = {**BASIC, **ADVANCED}[name]
    x = X[:, :, :2] if name in ("repeated", "mask of all") else X[:2, :3]
    index = index[:, :, :2] if name == "mask of all" else index

    def getitem(x):
        moved = index
        if isinstance(index, np.ndarray):
            moved = flow.tensor(index, device=device)
        return x[moved]

    check_op(getitem, [Sample(x)], degenerate=False, device=device)


@pytest.mark.parametrize("name", BASIC)
def test_basic_indices_are_views(name):
    x = flow.tensor(X)
    y = x[BASIC[name]]
    assert y.is_view() or not y.numel()
    assert np.shares_memory(y.numpy(), x.numpy()) or not y.numel()
    np.testing.assert_array_equal(y.numpy(), X[BASIC[name]])


@pytest.mark.parametrize("name", ADVANCED)
def test_index_tensors_copy(name):
    x = flow.tensor(X)
    y = x[on(flow, ADVANCED[name])]
    assert not y.is_view() and not np.shares_memory(y.numpy(), x.numpy())


def test_one_element_is_an_array_of_no_dimensions():
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    assert x[1].shape == () and isinstance(x[1].numpy(), np.ndarray)
    assert x[1].grad_fn.name() == "getitem_backward"


def test_negative_steps_are_allowed_as_in_numpy():
    x = flow.tensor(X, requires_grad=True)
    y = x[::-1, 1:3, ::-2]
    np.testing.assert_array_equal(y.numpy(), X[::-1, 1:3, ::-2])
    weight = np.arange(y.numel(), dtype=float).reshape(y.shape)
    y.backward(flow.tensor(weight))
    expected = np.zeros_like(X)
    expected[::-1, 1:3, ::-2] = weight
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_scalar_tensors(device):
    x = flow.tensor(X, device=device)
    i, j = flow.tensor(1, device=device), flow.tensor(-1, device=device)
    np.testing.assert_array_equal(x[i].numpy(), X[1])
    np.testing.assert_array_equal(x[:, i, j].numpy(), X[:, 1, -1])
    np.testing.assert_array_equal(x[i, :, j].numpy(), X[1, :, -1])
    # Beside other index tensors they count as ints, so that the result's order is PyTorch's.
    rows = flow.tensor([0, 2], device=device)
    np.testing.assert_array_equal(x[i, :, rows].numpy(), X[1][:, [0, 2]])
    assert x[i : i + 2, 0].shape == (2, 5)


# Where PyTorch's rules are its own: 0-d tensors count as ints, a short list may be a tuple.
VIEWS = {
    "0-d": np.array(1),
    "0-d negative": (slice(None), np.array(-1)),
    "0-d of another width": np.array(1, np.int32),
    "0-d each": (np.array(1), np.array(0), np.array(2)),
    "0-d and an int": (np.array(1), slice(None), 2),
    "0-d in a list": [np.array(1)],
    "0-d after none": (None, np.array(0)),
    "0-d last": (..., np.array(0)),
    "0-d bounds": slice(np.array(0), np.array(2)),
    "list with a slice": [0, slice(None), 1],
    "list with none": [None, 0],
    "list with an ellipsis": [..., 0],
}
COPIES = {
    "list of lists": [[0, 1], [1, 0]],
    "list of tuples": [(0, 1), (1, 0)],
    "list of a list": [[0, 1]],
    "list of a deep list": [[[0, 1]]],
    "list of tensors": [np.array([0, 1]), np.array([1, 0])],
    "list and an int": [0, [0, 1]],
    "long list of lists": [[0]] * 32,
    "0-d and rows": (np.array(0), np.array([0, 1])),
    "rows and 0-d apart": (np.array([0, 1]), slice(None), np.array(0)),
}


def tensors_in(lib, index):
    """Return an index with its arrays as tensors, inside lists and slices too."""
    if isinstance(index, slice):
        return slice(*[tensors_in(lib, part) for part in (index.start, index.stop, index.step)])
    if isinstance(index, (tuple, list)):
        return type(index)(tensors_in(lib, item) for item in index)
    return lib.tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("name", [*VIEWS, *COPIES])
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_ints_in_tensors_and_lists_like_tuples(name):
    torch = pytest.importorskip("torch")
    index = {**VIEWS, **COPIES}[name]
    x, theirs = flow.tensor(X), torch.tensor(X)
    y = x[tensors_in(flow, index)]
    np.testing.assert_array_equal(y.numpy(), theirs[tensors_in(torch, index)].numpy())
    assert y.is_view() == (name in VIEWS) == np.shares_memory(y.numpy(), x.numpy())
    x[tensors_in(flow, index)] = 7.0
    theirs[tensors_in(torch, index)] = 7.0
    np.testing.assert_array_equal(x.numpy(), theirs.numpy())


def test_a_write_through_a_view_at_a_scalar_tensor():
    x = flow.tensor(X, requires_grad=True)
    y = x * 1
    y[flow.tensor(1)].mul_(3)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[:, 0, 0], [1, 3, 1])


@pytest.mark.filterwarnings("ignore:flow.compile")
def test_scalar_tensors_in_a_capture():
    rows = flow.arange(6.0).reshape(3, 2)

    @flow.compile
    def row(i):
        y = rows[i]
        y += 1
        return y * 2

    expected = rows.clone()
    for i in (0, 2, 2, 1):
        expected[i] += 1
        assert row(flow.tensor(i)).tolist() == (expected[i] * 2).tolist()
    assert rows.tolist() == expected.tolist()


def test_scalar_tensor_is_not_read():
    from tests import strict_cupy

    if strict_cupy.real_device_present():
        pytest.skip("the stand-in counts copies")
    with strict_cupy.installed():
        x = flow.tensor(X, device="cuda")
        rows, scalar = flow.tensor([0, 2], device="cuda"), flow.tensor(1, device="cuda")
        x.requires_grad_()
        strict_cupy.clear_log()
        y = x[rows] + x[scalar] + x[1] + x[:1]
        y.backward(flow.ones_like(y))
        assert not strict_cupy.transfers("d2h")


def test_an_index_array_is_copied():
    rows = np.array([0, 2])
    x = flow.tensor(X, requires_grad=True)
    y = x[rows]
    rows[:] = 1
    y.sum().backward()
    assert x.grad[0].sum().item() == 20 and x.grad[1].sum().item() == 0


def test_integers_and_bools_are_indexed_too():
    for array in (np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3) % 2 == 0):
        y = flow.tensor(array)[[1, 0, 1], 1:]
        assert y.dtype == array.dtype
        np.testing.assert_array_equal(y.numpy(), array[[1, 0, 1], 1:])


def test_gradient_into_repeated_rows_is_a_sum():
    rows = RNG.integers(-6, 6, (40, 3))
    for shape, dim in [((6, 7), 0), ((7, 6), 1), ((2, 6, 3), 1)]:
        x = flow.tensor(RNG.normal(size=shape), requires_grad=True)
        index = (slice(None),) * dim + (rows,)
        y = x[index]
        weight = RNG.normal(size=y.shape)
        y.backward(flow.tensor(weight))
        expected = np.zeros(shape)
        np.add.at(expected, index, weight)
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (3, IndexRangeError, "got 3"),
        (-4, IndexRangeError, "-3 to 2"),
        ((0, 4), IndexRangeError, "dimension 1"),
        ((0, 0, 0, 0), DimError, "at most 3"),
        ([0, 3], IndexRangeError, "got 3"),
        ((slice(None), [0, -5]), IndexRangeError, "got -5"),
        (([0, 1], [0, 1, 2]), IndexRangeError, "(2,) and (3,)"),
        ([True, False], IndexRangeError, "(3,)"),
        (([True, True, False], [0, 1, 2]), IndexRangeError, "(2,)"),
        ((..., ...), IndexRangeError, "Ellipsis"),
        (1.5, IndexRangeError, "float"),
        ("a", ArgumentTypeError, "str"),
        ([0.5], IndexRangeError, "float64"),
        ([[[0], [1, 2]]], IndexRangeError, "ragged"),
        ([object()], IndexRangeError, "tuple"),
        (slice(None, None, 0), ArgumentError, "step"),
        (slice(0.5, None), ArgumentTypeError, "int"),
    ],
)
def test_errors(index, error, text):
    x = flow.tensor(X)
    with pytest.raises(error) as caught:
        x[index]
    assert str(caught.value).startswith("getitem(): argument 'index'")
    assert text in str(caught.value)
    if error in (IndexRangeError, DimError):
        assert isinstance(caught.value, IndexError)
    np.testing.assert_array_equal(x.numpy(), X)


def test_errors_of_scalars_and_of_empty_dimensions():
    with pytest.raises(DimError, match="item"):
        flow.tensor(1.0)[0]
    with pytest.raises(DimError):
        flow.tensor(1.0)[:]
    with pytest.raises(IndexRangeError, match="no index"):
        flow.zeros(0, 2)[0]
    with pytest.raises(IndexRangeError, match="no values"):
        flow.zeros(0, 2)[[0]]
    with pytest.raises(ArgumentTypeError, match="input"):
        getitem(np.zeros(2), 0)


# narrow and select


@pytest.mark.parametrize("args", [(0, 1, 2), (-1, -3, 2), (1, 4, 0), (2, 0, 5)])
def test_narrow_agrees_with_pytorch(args):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(lambda x: flow.narrow(x * x, *args), lambda x: torch.narrow(x * x, *args), X)
    assert flow.tensor(X).narrow(*args).is_view()


@pytest.mark.parametrize("args", [(0, 1), (-1, -5), (1, 3)])
def test_select_agrees_with_pytorch(args):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(lambda x: flow.select(x * x, *args), lambda x: torch.select(x * x, *args), X)
    assert flow.tensor(X).select(*args).is_view()


def test_scalar_tensors_are_sizes_dims_and_starts():
    x, one = flow.tensor(X), flow.tensor(1)
    assert x.narrow(one, one, flow.tensor(2)).tolist() == X[:, 1:3].tolist()
    assert x.select(one, one).tolist() == X[:, 1].tolist()
    assert x.sum(one).shape == x.sum((one,)).shape == (3, 5)
    assert x.size(one) == 4 and x.stride(one) == 5
    assert x.reshape(flow.tensor(4), -1).shape == (4, 15)
    assert flow.zeros(flow.tensor(2), 3).shape == flow.zeros((flow.tensor(2), 3)).shape == (2, 3)
    assert x.topk(flow.tensor(2))[0].shape == (3, 4, 2)
    for wrong in (flow.tensor(1.0), flow.tensor([1]), flow.tensor(True)):
        with pytest.raises(ArgumentTypeError, match="'start'"):
            x.narrow(0, wrong, 1)


def test_narrow_and_select_derivatives(device):
    x = X[:2, :3, 0]
    check_op("narrow", [Sample(x, 1, 1, 2)], device=device)
    check_op("select", [Sample(x, 1, 2), Sample(x[0], 0, 1)], device=device)


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda x: flow.narrow(x, 3, 0, 1), DimError, "dim"),
        (lambda x: flow.narrow(x, 0, 4, 0), IndexRangeError, "start"),
        (lambda x: flow.narrow(x, 0, 2, 2), ShapeError, "length"),
        (lambda x: flow.narrow(x, 0, 1, -1), ShapeError, "length"),
        (lambda x: flow.narrow(x, 0, 1.0, 1), ArgumentTypeError, "start"),
        (lambda x: flow.narrow(x[0, 0, 0], 0, 0, 1), ShapeError, "input"),
        (lambda x: flow.select(x, 0, 3), IndexRangeError, "index"),
        (lambda x: flow.select(x, 5, 0), DimError, "dim"),
        (lambda x: flow.select(x[0, 0, 0], 0, 0), DimError, "input"),
    ],
)
def test_narrow_and_select_errors(call, error, argument):
    with pytest.raises(error, match=rf"^(narrow|select)\(\): argument '{argument}'"):
        call(flow.tensor(X))


@pytest.mark.parametrize("row", [10, -11])
def test_rows_are_never_added_outside(row):
    """Also where no forward pass has checked the indices, as in a Program that needs none."""
    import scipy.sparse  # noqa: F401

    from oneflow_lite.kernels.index_arrays import sum_rows

    with pytest.raises(IndexError):
        sum_rows(np, np.ones((100, 100)), np.full(100, row), 10)


def test_the_first_sums_of_rows_do_without_scipy(monkeypatch):
    import scipy.sparse  # noqa: F401

    from oneflow_lite.kernels import index_arrays

    values, rows = RNG.normal(size=(200, 30)), RNG.integers(-5, 5, 200)
    quick = index_arrays.sum_rows(np, values, rows, 5)
    monkeypatch.setattr(index_arrays, "_added", [index_arrays._WORTH_IT - 2 * values.size])
    monkeypatch.delitem(sys.modules, "scipy.sparse")
    monkeypatch.setitem(sys.modules, "scipy", None)  # an import of it raises
    for _ in range(2):
        np.testing.assert_array_equal(index_arrays.sum_rows(np, values, rows, 5), quick)
    with pytest.raises(ModuleNotFoundError, match="scipy"):
        index_arrays.sum_rows(np, values, rows, 5)
