"""Entries of one dimension named by a vector of indices: what users call to read or write them."""

from __future__ import annotations

import functools
from typing import Annotated, Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import DimError
from oneflow_lite.functors.checks import require_integer, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Dim, Flag, Scalar, choice, tensor
from oneflow_lite.functors.masking import check_same_dtype, filled
from oneflow_lite.functors.scatter import from_zero, reduced_at
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

INDEX_SELECT = op_expr("index_select")

_CHOSEN = "x(3, 4), 1, i(3, n=4); x(3, 4), -2, i(n=3); x(), 0, i(1, n=1)"
_ENTRIES = "x(3, 4), 1, fixed(np.array([2, 0])), x(3, 2)"
_ADDED = f"{_ENTRIES}; x(3, 4), -2, i(5, n=3), x(5, 4), alpha=-2; x(), 0, i(1, n=1), x()"
_REDUCED = f"""{_ENTRIES}, "prod"; x(3, 4), 0, i(5, n=3), x(5, 4), "mean", include_self=False
    x(3, 4), 0, i(5, n=3), x(5, 4), "amax"; x(3, 4), -1, i(5, n=4), x(3, 5), "amin"
    x(), 0, i(1, n=1), x(), 'prod'"""
_FILLED = """x(3, 4), 1, i(2, n=4, low=-4), 0.5; x(3, 4), -2, i(n=3), 2; x(3, 4), 0, i(2, n=3), x()
    x(), 0, i(1, n=1), 3.0"""

_writing = functools.partial(functor, "flow Tensor", out=True, twin=True)


def check_vector(op: str, value: Tensor, argument: str = "index") -> Tensor:
    """Return integers of at most one dimension as a vector."""
    rank = require_integer(op, value, argument)._data.ndim
    if rank < 2:
        return value if rank else value.reshape(1)
    raise wrong(op, argument, "a vector", value, "flatten it", DimError)


Vector = Annotated[
    Tensor,
    tensor(
        check_vector,
        "",
        "A vector of integers.",
        "i(2, n=2)",
        DTypeError="When {x} does not hold integers.",
        DimError="When {x} is no vector.",
        IndexRangeError="When an index is out of range (on CUDA the values are not looked at).",
    ),
]


@functor("flow Tensor", out=True, samples=_CHOSEN)
def index_select(input: AnyTensor, dim: Dim, index: Vector) -> Tensor:
    """Return the entries of one dimension that a vector of indices names.

    >>> flow.index_select(flow.tensor([[1, 2, 3], [4, 5, 6]]), 1, flow.tensor([2, 0]))
    tensor([[3, 1],
            [6, 4]])
    """
    if input.ndim:
        return dispatch(INDEX_SELECT, (input, index), {"dim": dim})
    if index.shape != (1,):
        expected, mend = "one index for a 0-d tensor", "unsqueeze the input"
        raise wrong("index_select", "index", expected, index, mend)
    return dispatch(INDEX_SELECT, (input.reshape(1), index), {"dim": 0}).reshape(())


def _entries(op: str, input: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    """Check that there is an entry of `source` for each index; a 0-d input has one entry."""
    check_same_dtype(op, input, "source", source)
    shape = input.shape
    want = (*shape[:dim], *index.shape, *shape[dim + 1 :]) if shape else ()
    if source.shape != want or (not shape and index.shape != (1,)):
        expected = f"shape {want}: that of input, with one entry per index in dim {dim}"
        raise wrong(op, "source", expected, source, "give one entry for each index")
    return (input, index, source) if shape else (input.reshape(1), index, source.reshape(1))


def _with_entries(op: str, input: Tensor, dim: int, *given: Tensor, **attrs: Any) -> Tensor:
    result = dispatch(op_expr(op), _entries(op, input, dim, *given), {"dim": dim, **attrs})
    return result if input.ndim else result.reshape(())


@_writing(samples=_ADDED)
def index_add(
    input: AnyTensor, dim: Dim, index: Vector, source: AnyTensor, *, alpha: Scalar = 1
) -> Tensor:
    """Return `input` with alpha · source added to the entries that a vector of indices names.

    source: of the dtype and shape of `input`, except for len(index) entries along `dim`.
    ShapeError, DTypeError: when `source` does not fit.

    >>> flow.index_add(flow.zeros(3), 0, flow.tensor([0, 0]), flow.tensor([1., 2.]), alpha=10)
    tensor([30.,  0.,  0.])
    """
    return _with_entries("index_add", input, dim, index, source, alpha=alpha)


@_writing(samples=f"{_ENTRIES}; x(3, 4), -2, i(n=3), x(1, 4); x(), 0, i(1, n=1), x()")
def index_copy(input: AnyTensor, dim: Dim, index: Vector, source: AnyTensor) -> Tensor:
    """Return `input` with `source` written to the entries that a vector of indices names.

    Of several entries for one index the last one stays, and only that one gets a gradient.
    (PyTorch gives the overwritten ones a gradient as well.)

    source: of the dtype and shape of `input`, except for len(index) entries along `dim`.
    ShapeError, DTypeError: when `source` does not fit.
    """
    return _with_entries("index_copy", input, dim, index, source)


@_writing(samples=_REDUCED)
def index_reduce(
    input: AnyTensor,
    dim: Dim,
    index: Vector,
    source: AnyTensor,
    reduce: Annotated[str, choice("prod", "mean", "amax", "amin", says="How they are joined.")],
    *,
    include_self: Flag = True,
) -> Tensor:
    """Return `input` with `source` joined to the entries that a vector of indices names.

    Gradients are those of `scatter_reduce`.

    source: of the dtype and shape of `input`, except for len(index) entries along `dim`.
    include_self: whether the entries of `input` take part themselves.
    ShapeError, DTypeError: when `source` does not fit, or numbers have no order.

    >>> x, index = flow.tensor([1.0, 2.0, 3.0]), flow.tensor([0, 0, 2])
    >>> flow.index_reduce(x, 0, index, flow.tensor([4.0, 5.0, 6.0]), "prod")
    tensor([20.,  2., 18.])
    """
    op = "index_reduce"
    x, index, source = _entries(op, input, dim, index, source)
    index = from_zero(op, "index", index, x.shape[dim], False)
    index = index.reshape(*index.shape, *[1] * (x.ndim - 1 - dim)).expand(source.shape)
    result = reduced_at(op, x, dim, index, source, reduce, include_self)
    return result if input.ndim else result.reshape(())


@functor("flow Tensor", twin=True, samples=_FILLED)
def index_fill(input: AnyTensor, dim: Dim, index: Vector, value: float | Tensor) -> Tensor:
    """Return `input` with a number written to the entries that a vector of indices names.

    index: a vector of integers, counted from the end when negative.
    value: a number or a 0-d tensor, which gets the sum of the gradients where it was written.
    ShapeError, DTypeError: when `value` does not fit.
    """
    shape = input.shape
    mask = F.index_mask(index, dim=dim, shape=shape or (1,))
    return filled("index_fill", input, mask if shape else mask.reshape(()), value)
