"""Entries of one dimension named by a vector of indices: what users call to read or write them."""

from __future__ import annotations

import functools
from typing import Annotated, Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import DimError
from oneflow_lite.functors.checks import check_tensor, require_integer, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Dim, Flag, Scalar, attribute, choice, tensor
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


def check_entries(
    op: str, argument: str, source: Tensor, input: Tensor, dim: int, index: Tensor
) -> Tensor:
    """Return `source` when it has an entry for each index; a 0-d input has one entry."""
    check_same_dtype(op, input, argument, check_tensor(op, argument, source))
    shape = input.shape
    want = (*shape[:dim], *index.shape, *shape[dim + 1 :]) if shape else ()
    if source.shape == want and (shape or index.shape == (1,)):
        return source
    expected = f"shape {want}: that of input, with one entry per index in dim {dim}"
    raise wrong(op, argument, expected, source, "give one entry for each index")


_MISFITS = {
    "DTypeError": "When {x} does not hold integers.",
    "DimError": "When {x} is no vector.",
    "IndexRangeError": "When an index is out of range (on CUDA the values are not looked at).",
}
Vector = Annotated[
    Tensor, tensor(check_vector, "", "A vector of integers.", "i(2, n=2)", **_MISFITS)
]
_SAYS = "Of the dtype and shape of `input`, except for len(index) entries along `dim`."
_OTHER = {"ShapeError, DTypeError": "When {x} does not fit."}
_CHECK = attribute(check_entries, ", {first}, dim, index", says=_SAYS, raises=_OTHER, tensor="one")
Entries = Annotated[Tensor, _CHECK]


@functor("flow Tensor", out=True, samples=_CHOSEN)
def index_select(input: AnyTensor, dim: Dim, index: Vector) -> Tensor:
    """Return the entries of one dimension that a vector of indices names.

    >>> flow.index_select(flow.tensor([[1, 2, 3]]), 1, flow.tensor([2, 0]))
    tensor([[3, 1]])
    """
    if input.ndim:
        return dispatch(INDEX_SELECT, (input, index), {"dim": dim})
    if index.shape != (1,):
        expected, mend = "one index for a 0-d tensor", "unsqueeze the input"
        raise wrong("index_select", "index", expected, index, mend)
    return dispatch(INDEX_SELECT, (input.reshape(1), index), {"dim": 0}).reshape(())


def _written(op: str, *given: Tensor, **attrs: Any) -> Tensor:
    """Dispatch an op, of 0-d tensors as of vectors of one entry."""
    if given[0].ndim:
        return dispatch(op_expr(op), given, attrs)
    return dispatch(op_expr(op), tuple(x.reshape(1) for x in given), attrs).reshape(())


@_writing(samples=_ADDED)
def index_add(
    input: AnyTensor, dim: Dim, index: Vector, source: Entries, *, alpha: Scalar = 1
) -> Tensor:
    """Return `input` with alpha · source added to the entries that a vector of indices names.

    >>> flow.index_add(flow.zeros(3), 0, flow.tensor([0, 0]), flow.tensor([1., 2.]), alpha=10)
    tensor([30.,  0.,  0.])
    """
    return _written("index_add", input, index, source, dim=dim, alpha=alpha)


@_writing(samples=f"{_ENTRIES}; x(3, 4), -2, i(n=3), x(1, 4); x(), 0, i(1, n=1), x()")
def index_copy(input: AnyTensor, dim: Dim, index: Vector, source: Entries) -> Tensor:
    """Return `input` with `source` written to the entries that a vector of indices names.

    Of several entries for one index the last one stays, with the gradient, as in `scatter`.
    """
    return _written("index_copy", input, index, source, dim=dim)


@_writing(samples=_REDUCED)
def index_reduce(
    input: AnyTensor,
    dim: Dim,
    index: Vector,
    source: Entries,
    reduce: Annotated[str, choice("prod", "mean", "amax", "amin", says="How they are joined.")],
    *,
    include_self: Flag = True,
) -> Tensor:
    """Return `input` with `source` joined to the entries that a vector of indices names.

    Gradients are those of `scatter_reduce`.

    include_self: whether the entries of `input` take part themselves.

    >>> x, index = flow.tensor([1.0, 2.0, 3.0]), flow.tensor([0, 0, 2])
    >>> flow.index_reduce(x, 0, index, flow.tensor([4.0, 5.0, 6.0]), "prod")
    tensor([20.,  2., 18.])
    """
    index = from_zero("index_reduce", "index", index, input.shape[dim] if input.ndim else 1, False)
    shape = (-1, *[1] * (input.ndim - 1 - dim)) if input.ndim else ()
    index = index.reshape(shape).expand(source.shape)
    return reduced_at("index_reduce", input, dim, index, source, reduce, include_self)


@functor("flow Tensor", twin=True, samples=_FILLED)
def index_fill(input: AnyTensor, dim: Dim, index: Vector, value: float | Tensor) -> Tensor:
    """Return `input` with a number written to the entries that a vector of indices names.

    index: a vector of integers, counted from the end when negative.
    value: as in `masked_fill`.
    ShapeError, DTypeError: when `value` does not fit.
    """
    shape = input.shape
    mask = F.index_mask(index, dim=dim, shape=shape or (1,))
    return filled("index_fill", input, mask if shape else mask.reshape(()), value)
