"""Copies of views, writes into copies, calculus: memory and errors.

Values and derivatives stand in tests/functors/test_declared.py.
"""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    IndexRangeError,
    ShapeError,
)
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.functors.declaring.samples import samples
from oneflow_lite.ops.registry import FUNCTORS

COPIES = [name for name in DECLARATIONS if name.endswith("_copy") and name != "index_copy"]


@pytest.mark.parametrize("name", [*COPIES, "unsafe_split", "unsafe_chunk"])
def test_copies_share_nothing(name):
    x, *rest = samples(name)[0].args
    x = flow.tensor(x)
    results = FUNCTORS.get(name)(x, *rest, **samples(name)[0].kwargs)
    for y in results if isinstance(results, tuple) else (results,):
        assert not y.is_view() and not np.shares_memory(y.numpy(), x.numpy())


@pytest.mark.parametrize("transposed", [False, True])
def test_what_is_written_is_a_copy(transposed, device):
    x = flow.arange(12.0, device=device).reshape(3, 4)
    x = x.t() if transposed else x
    before = x.cpu().numpy().copy()
    y = flow.select_scatter(x, flow.zeros(x.shape[1], device=device), 0, -1)
    expected = before.copy()
    expected[-1] = 0
    assert y.tolist() == expected.tolist() and x.tolist() == before.tolist()
    y = flow.diagonal_scatter(x, flow.full((3,), 5.0, device=device))
    np.fill_diagonal(before[:3, :3], 5.0)
    assert y.tolist() == before.tolist()


def test_counts_say_how_often(device):
    x, counts = flow.tensor([1.0, 2.0, 3.0], device=device), flow.tensor([2, 0, 1], device=device)
    assert flow.repeat_interleave(x, counts).tolist() == [1, 1, 3]
    assert flow.repeat_interleave(x, counts, output_size=3).tolist() == [1, 1, 3]
    assert flow.repeat_interleave(counts).tolist() == [0, 0, 2]
    assert flow.repeat_interleave(x, flow.tensor([2], device=device)).shape == (6,)
    assert flow.repeat_interleave(x[:0], counts[:0]).shape == (0,)


X, V = flow.ones(3, 4), flow.ones(3)
MINUS = flow.tensor([1, -1, 0])
ERRORS = [
    (lambda: flow.select_scatter(X, V, 1, 4), IndexRangeError, "select_scatter", "index"),
    (lambda: flow.select_scatter(X, V, 0, 1), ShapeError, "select_scatter", "src"),
    (lambda: flow.slice_scatter(X, X, 1, 1), ShapeError, "slice_scatter", "src"),
    (lambda: flow.slice_scatter(X, X, step=0), ArgumentError, "slice_scatter", "step"),
    (lambda: flow.diagonal_scatter(X, V, 2), ShapeError, "diagonal_scatter", "src"),
    (lambda: flow.as_strided_scatter(X[:, 1:], V, (3,), (1,)), ArgumentError, "as_str", "input"),
    (lambda: flow.as_strided(X, (2, 2), (1,)), ArgumentError, "as_strided", "stride"),
    (lambda: flow.as_strided(X, (2,), (-1,)), ArgumentError, "as_strided", "stride"),
    (lambda: flow.as_strided(X, (13,), (1,)), ArgumentError, "as_strided", "size"),
    (lambda: flow.as_strided(X, (1,), (1,), -1), ArgumentError, "as_strided", "storage_offset"),
    (lambda: flow.squeeze_copy(X, 2), DimError, "squeeze", "dim"),
    (lambda: flow.slice_copy(X[0, 0]), ArgumentError, "slice_copy", "input"),
    (lambda: flow.diff(X[0, 0]), DimError, "diff", "input"),
    (lambda: flow.diff(X, -1), ArgumentError, "diff", "n"),
    (lambda: flow.gradient(X, spacing=[1.0]), ArgumentError, "gradient", "spacing"),
    (lambda: flow.gradient(X, edge_order=3), ArgumentError, "gradient", "edge_order"),
    (lambda: flow.gradient(X[:1]), ShapeError, "gradient", "input"),
    (lambda: flow.gradient(X.byte()), DTypeError, "gradient", "input"),
    (lambda: flow.trapezoid(X, V), ShapeError, "trapezoid", "x"),
    (lambda: flow.trapezoid(X > 0), DTypeError, "trapezoid", "y"),
    (lambda: flow.vander(X), ShapeError, "vander", "x"),
    (lambda: flow.vander(V, -1), ArgumentError, "vander", "N"),
    (lambda: flow.addr(X, X, V), ShapeError, "addr", "vec1"),
    (lambda: flow.block_diag(X[None]), ShapeError, "block_diag", r"tensors\[0\]"),
    (lambda: flow.cartesian_prod(V, X), ShapeError, "cartesian_prod", r"tensors\[1\]"),
    (lambda: flow.broadcast_tensors(X, V), ShapeError, "broadcast_tensors", "tensors"),
    (lambda: flow.combinations(X), ShapeError, "combinations", "input"),
    (lambda: flow.atleast_2d(X, 1.0), ArgumentTypeError, "atleast_2d", r"tensors\[1\]"),
    (lambda: flow.rot90(X, 1, (0,)), ShapeError, "rot90", "dims"),
    (lambda: flow.fliplr(V), ShapeError, "fliplr", "input"),
    (lambda: flow.flipud(V[0]), ShapeError, "flipud", "input"),
    (lambda: flow.tensor_split(X, 0), ArgumentError, "tensor_split", "indices_or_sections"),
    (lambda: flow.hsplit(X, 3), ShapeError, "hsplit", "indices_or_sections"),
    (lambda: flow.vsplit(V, 3), ShapeError, "vsplit", "input"),
    (lambda: flow.dsplit(X, 1), ShapeError, "dsplit", "input"),
    (lambda: X.split_with_sizes([1, 1]), ShapeError, "split_with_sizes", "split_sizes"),
    (lambda: flow.repeat_interleave(V, MINUS), ArgumentError, "repeat_interleave", "repeats"),
    (lambda: flow.repeat_interleave(V, -1), ArgumentError, "repeat_interleave", "repeats"),
    (lambda: flow.repeat_interleave(X, MINUS, 1), ShapeError, "repeat_interleave", "repeats"),
    (lambda: flow.repeat_interleave(V), DTypeError, "repeat_interleave", "input"),
    (lambda: flow.unravel_index(V, (2, 2)), DTypeError, "unravel_index", "indices"),
    (lambda: flow.tril_indices(2, -1), ArgumentError, "tril_indices", "col"),
    (lambda: flow.triu_indices(2, 2, dtype=flow.float32), DTypeError, "triu_indices", "dtype"),
    (lambda: flow.adjoint(V), ShapeError, "adjoint", "input"),
]


@pytest.mark.parametrize(("call", "error", "op", "argument"), ERRORS)
def test_errors(call, error, op, argument):
    with pytest.raises(error, match=rf"^{op}\w*\(\): argument '{argument}"):
        call()
