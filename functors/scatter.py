"""gather, scatter, index_select and their kin: reads and writes along one dimension."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any

import numpy as np

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DimError, arg_error
from oneflow_lite.functors.declaring import domains
from oneflow_lite.functors.declaring.checks import check_tensor, numeric, real, require_integer
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    Dim,
    Flag,
    Integer,
    TensorOrNumber,
    attribute,
    choice,
)
from oneflow_lite.functors.declaring.fill_value import fill_value
from oneflow_lite.functors.masking import check_same_dtype, filled
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

_GATHER, _SCATTER_ADD = op_expr("gather"), op_expr("scatter_add")
_INDEX_FROM_ZERO = op_expr("index_from_zero")


def check_places(op: str, argument: str, index: Tensor, input: Tensor, dim: int) -> Tensor:
    """Return an index of integers when its shape fits `input` along a dimension."""
    shape, places = input._data.shape, require_integer(op, index, argument)._data.shape
    fits = max(len(shape), 1) == max(len(places), 1) and all(
        m <= n for k, (n, m) in enumerate(zip(shape, places, strict=False)) if k != dim
    )
    if fits or 0 in places:
        return index
    expected = f"as many dimensions as {shape} and no size above it except in dim {dim}"
    raise arg_error(op, argument, expected, index, "expand or crop the index")


def check_source(op: str, argument: str, src: Tensor, input: Tensor, index: Tensor) -> Tensor:
    """Return the part of `src` that `index` stands for."""
    check_same_dtype(op, input, argument, check_tensor(op, argument, src))
    have, want = src.shape, index.shape
    if have == want:
        return src
    if len(have) == len(want) and all(n >= m for n, m in zip(have, want, strict=True)):
        return src[tuple(slice(n) for n in want)]
    if 0 in want:  # nothing is written, whatever the shape of src
        return src.new_zeros(want)
    expected = f"at least the shape of index, {want}"
    raise arg_error(op, argument, expected, have, "expand it, or crop the index")


_NO_INDEX = {
    "DTypeError": "When {x} does not hold integers.",
    "IndexRangeError": "When {x} is out of range (on CUDA the values are not looked at).",
}
_SAYS = "Of integers, with as many dimensions as `input`, no larger than it in any but `dim`."
_MISFITS = {**_NO_INDEX, "ShapeError": "When the shapes do not fit."}
Index = Annotated[
    Tensor, attribute(check_places, ", {first}, dim", says=_SAYS, raises=_MISFITS, tensor="one")
]
_SRC = "Of the dtype of `input`, at least as large as `index` in every dimension."
_OTHER = {"DTypeError": "When {x} has another dtype than `input`."}
Src = Annotated[
    Tensor, attribute(check_source, ", {first}, index", says=_SRC, raises=_OTHER, tensor="one")
]
Join = Annotated[str, choice("sum", "prod", "mean", "amax", "amin", says="How they are joined.")]

_PLACES = "x(3, 4), 1, fixed(np.array([[0, 2], [3, 1]]))"
_GATHERED = "x(3, 4), 1, i(3, 2, n=4); x(3, 4), -2, i(2, 4, n=3); x(), 0, i(n=1)"
_SCATTERED = f"""{_PLACES}, x(2, 2); {_PLACES}, 0.5; {_PLACES}, x(3, 3); {_PLACES}, value=2.0
    {_PLACES}, x(2, 2), reduce="add"; x(), 0, i(n=1), x()"""
_ADDED = f"""{_PLACES}, x(2, 2); x(3, 4), -2, i(5, 4, n=3), x(5, 4)
    x(3, 4), 0, i(2, 2, n=3), x(4, 4)"""
_JOINED = f"""{_PLACES}, x(2, 2), "sum"; x(3, 4), 0, i(5, 4, n=3), x(5, 4), "prod"
    x(3, 4), 0, i(5, 4, n=3), x(5, 4), "mean", include_self=False
    x(3, 4), -1, i(3, 6, n=4), x(3, 6), "amax"; x(4), 0, i(6, n=3), x(6), "prod", include_self=False
    x(3, 4), 1, i(2, 6, n=4), x(3, 6), "amin", include_self=False"""
_PUT = "x(3, 4), fixed(np.array([[0, 5], [-1, 7]])), x(2, 2); x(4), i(3, n=4), x(3), True"
_TAKEN = """x(3, 4), i(3, 2, n=4), 1; x(3, 4), i(1, 4, n=3, low=-3), -2; x(3, 4), i(5, n=12)
    x(1, 4), i(3, 2, n=4), 1"""
_writing = functools.partial(functor, "flow Tensor", out="same", twin=True)


@functor("flow Tensor", out="same", samples=_GATHERED)
def gather(input: AnyTensor, dim: Dim, index: Index, *, sparse_grad: bool = False) -> Tensor:
    """Return the elements of `input` that `index` names along `dim`, in the shape of `index`.

    For three dimensions and `dim=1`, y[i, j, k] = input[i, index[i, j, k], k].

    sparse_grad: only False: gradients are dense.

    >>> flow.gather(flow.tensor([[1, 2]]), 1, flow.tensor([[0, 0, 1]]))
    tensor([[1, 1, 2]])
    """
    if sparse_grad:
        raise ArgumentError("gather(): argument 'sparse_grad': gradients are dense; pass False")
    return dispatch(_GATHER, (input, index), {"dim": dim})


@_writing(samples=_SCATTERED)
def scatter(
    input: AnyTensor,
    dim: Dim,
    index: Index,
    src: TensorOrNumber = None,
    *,
    value: TensorOrNumber = None,
    reduce: str | None = None,
) -> Tensor:
    """Return `input` with values written to the places that `index` names along `dim`.

    For three dimensions and `dim=1`, y[i, index[i, j, k], k] = src[i, j, k]. Of several values for
    a place the last stays, and it alone gets a gradient. (PyTorch gives overwritten values a
    gradient, too. On CUDA any value may stay.)

    src, value: a number, or as `src` a Tensor of the dtype of `input`, no smaller than `index`.
    reduce: "add" to the elements or "multiply" them; "multiply" has no gradient, unlike
        `scatter_reduce`.
    ArgumentError: when `reduce` is unknown.

    >>> flow.scatter(flow.zeros(1, 3), 1, flow.tensor([[2, 1]]), 5.)
    tensor([[0., 5., 5.]])
    """
    if reduce not in (None, "add", "multiply"):
        expected, hint = "'add', 'multiply' or None", "name one of these"
        raise arg_error("scatter", "reduce", expected, repr(reduce), hint, ArgumentError)
    if (src is None) == (value is None):
        expected, got = "either src or value", "neither" if src is None else "both"
        raise arg_error("scatter", "src", expected, got, "pass one of them", ArgumentTypeError)
    if not isinstance(src, Tensor):
        argument, number = ("value", value) if src is None else ("src", src)
        number = fill_value("scatter", argument, number, input._data.dtype)
        if reduce is None:
            return input.masked_fill(F.scatter_mask(index, dim=dim, shape=input.shape), number)
        src = input.new_full(index.shape, number)
    src = check_source("scatter", "src", src, input, index)
    op = op_expr(f"scatter_{reduce}" if reduce else "scatter")
    return dispatch(op, (input, index, src), {"dim": dim})


@_writing(samples=_ADDED)
def scatter_add(input: AnyTensor, dim: Dim, index: Index, src: Src) -> Tensor:
    """Return `input` with values added at the places that `index` names along `dim`.

    For three dimensions and `dim=1`, y[i, index[i, j, k], k] += src[i, j, k].
    """


@_writing(samples=_JOINED)
def scatter_reduce(
    input: AnyTensor, dim: Dim, index: Index, src: Src, reduce: Join, *, include_self: Flag = True
) -> Tensor:
    """Return `input` with values joined to it at the places that `index` names along `dim`.

    The gradient of a product is right where factors are zero, too. The gradient of an extremum is
    shared evenly among the values that equal it.

    include_self: whether the elements of `input` take part where values are written.
    DTypeError: when dtypes do not fit, or numbers have no order.

    >>> x, index = flow.tensor([1, 2, 3]), flow.tensor([0, 0, 2])
    >>> flow.scatter_reduce(x, 0, index, flow.tensor([4, 5, 6]), "prod")
    tensor([20,  2, 18])
    """
    return reduced_at("scatter_reduce", input, dim, index, src, reduce, include_self)


def reduced_at(
    op: str, input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    """Join values of the shape of `index` to `input`, on behalf of an op."""
    if reduce in ("amax", "amin"):
        real(op, input)
    if reduce == "mean":
        numeric(op, input)
    start, attrs = input, {"dim": dim}
    if not include_self:
        written = F.scatter_mask(index, dim=dim, shape=input.shape)
        start = input.masked_fill(written, neutral_element(reduce, input._data.dtype))
    join = _SCATTER_ADD if reduce in ("sum", "mean") else op_expr(f"scatter_{reduce}")
    result: Tensor = dispatch(join, (start, index, src), attrs)
    if reduce != "mean":
        return result
    count = F.ones_like(input) if include_self else F.zeros_like(input)
    count = dispatch(_SCATTER_ADD, (count, index, F.ones_like(src)), attrs)
    if input.is_complex():
        return result / count.masked_fill(count == 0, 1)
    count = count.clamp_min(1)
    return result / count if input.is_floating_point() else result // count


def neutral_element(reduce: str, dtype: np.dtype[Any]) -> Any:
    """Return the number that leaves a reduction unchanged."""
    if reduce not in ("amax", "amin"):
        return int(reduce == "prod")
    if dtype.kind == "f":
        return -math.inf if reduce == "amax" else math.inf
    if dtype.kind == "b":
        return reduce == "amin"
    limits = np.iinfo(dtype)
    return int(limits.min if reduce == "amax" else limits.max)


@functor("flow Tensor", out="same", samples=_TAKEN)
def take_along_dim(input: AnyTensor, indices: Integer, dim: Dim | None = None) -> Tensor:
    """Return the elements named along `dim`, as `gather`, with shapes broadcast in the others.

    Without `dim` both are flattened. Indices count from the end when negative.

    IndexRangeError: when an index is out of range (on CUDA the values are not looked at).
    ShapeError: when shapes do not broadcast.
    """
    op = "take_along_dim"
    if dim is None:
        input, indices, dim = input.reshape(-1), indices.reshape(-1), 0
    if input.ndim != indices.ndim:
        expected = f"as many dimensions as input has, {input.ndim}"
        raise arg_error(op, "indices", expected, indices, "unsqueeze it, or leave dim out")
    if input.ndim:
        others = (x.shape[:dim] + (1,) + x.shape[dim + 1 :] for x in (input, indices))
        try:
            shape = list(np.broadcast_shapes(*others))
        except ValueError:
            expected = f"a shape that broadcasts with {input.shape} except in dim {dim}"
            hint = "make the sizes equal or 1"
            raise arg_error(op, "indices", expected, indices.shape, hint) from None
        shape[dim] = -1
        input, indices = input.expand(shape), indices.expand(shape)
    index = from_zero(op, "indices", indices, input.shape[dim] if input.ndim else 1)
    return dispatch(_GATHER, (input, index), {"dim": dim})


def from_zero(op: str, argument: str, index: Tensor, size: int, negative: bool = True) -> Tensor:
    """Return indices counted from 0, checked where their values are at hand."""
    attrs = {"size": size, "op": op, "argument": argument, "negative": negative}
    return dispatch1(_INDEX_FROM_ZERO, index, attrs)


@functor("flow Tensor", out="same", samples="x(3, 4), i(2, 3, n=12, low=-12); x(4), i(n=4)")
def take(input: AnyTensor, index: Integer) -> Tensor:
    """Return the elements that `index` names in the flattened tensor, in the shape of `index`.

    IndexRangeError: when an index is out of range (on CUDA the values are not looked at).

    >>> flow.take(flow.tensor([[1, 2], [3, 4]]), flow.tensor([3, 0]))
    tensor([4, 1])
    """
    places = from_zero("take", "index", index, input.numel())
    return F.getitem_advanced(input.reshape(-1), places, dims=(0,))


@functor("flow Tensor", twin=True, samples=_PUT)
def put(input: AnyTensor, index: Integer, source: AnyTensor, accumulate: Flag = False) -> Tensor:
    """Return `input` with values written, or added, where `index` names its flattened elements.

    Of several values for an element the last stays, with the gradient, as in `scatter`.

    source: of the dtype of `input`, with as many elements as `index`.
    IndexRangeError: when an index is out of range (on CUDA the values are not looked at).
    ShapeError, DTypeError: when `source` does not fit.
    """
    check_same_dtype("put", input, "source", source)
    if source.numel() != index.numel():
        expected = f"{index.numel()} elements, one for each index"
        raise arg_error("put", "source", expected, source, "give one value for each index")
    places = from_zero("put", "index", index.reshape(-1), input.numel())
    write = F.scatter_add if accumulate else F.scatter
    return write(input.reshape(-1), 0, places, source.reshape(-1)).reshape(input.shape)


# --- Entries named by a vector of indices ---------------------------------------------------------


_INDEX_SELECT = op_expr("index_select")
_CHOSEN = "x(3, 4), 1, i(3, n=4); x(3, 4), -2, i(n=3); x(), 0, i(1, n=1)"
_ENTRIES = "x(3, 4), 1, fixed(np.array([2, 0])), x(3, 2)"
_INDEX_ADDED = f"{_ENTRIES}; x(3, 4), -2, i(5, n=3), x(5, 4), alpha=-2; x(), 0, i(1, n=1), x()"
_INDEX_REDUCED = f"""{_ENTRIES}, "prod"; x(3, 4), 0, i(5, n=3), x(5, 4), "mean", include_self=False
    x(3, 4), 0, i(5, n=3), x(5, 4), "amax"; x(3, 4), -1, i(5, n=4), x(3, 5), "amin"
    x(), 0, i(1, n=1), x(), 'prod'"""
_INDEX_FILLED = """x(3, 4), 1, i(2, n=4, low=-4), 0.5; x(3, 4), -2, i(n=3), 2
    x(3, 4), 0, i(2, n=3), x(); x(), 0, i(1, n=1), 3.0"""


def check_vector(op: str, value: Tensor, argument: str = "index") -> Tensor:
    """Return integers of at most one dimension as a vector."""
    rank = require_integer(op, value, argument)._data.ndim
    if rank < 2:
        return value if rank else value.reshape(1)
    raise arg_error(op, argument, "a vector", value, "flatten it", DimError)


def check_entries(
    op: str, argument: str, source: Tensor, input: Tensor, dim: int, index: Tensor
) -> Tensor:
    """Return `source` when it has an entry for each index; a 0-d input has one entry."""
    check_same_dtype(op, input, argument, check_tensor(op, argument, source))
    shape = input.shape
    want = (*shape[:dim], *index.shape, *shape[dim + 1 :]) if shape else ()
    if len(shape) + source.ndim == source.numel() == index.numel() == 1:  # one of both is 0-d
        source = source.reshape(want)
    if source.shape == want and (shape or index.shape == (1,)):
        return source
    expected = f"shape {want}: that of input, with one entry per index in dim {dim}"
    raise arg_error(op, argument, expected, source, "give one entry for each index")


_NO_VECTOR = {**_NO_INDEX, "DimError": "When {x} is no vector."}
Vector = Annotated[
    Tensor, domains.tensor(check_vector, "", "A vector of integers.", "i(2, n=2)", **_NO_VECTOR)
]
_LIKE = "Of the dtype and shape of `input`, except for len(index) entries along `dim`."
_UNLIKE = {"ShapeError, DTypeError": "When {x} does not fit."}
_CHECK = attribute(check_entries, ", {first}, dim, index", says=_LIKE, raises=_UNLIKE, tensor="one")
Entries = Annotated[Tensor, _CHECK]


@functor("flow Tensor", out="same", samples=_CHOSEN)
def index_select(input: AnyTensor, dim: Dim, index: Vector) -> Tensor:
    """Return the entries of one dimension that a vector of indices names.

    >>> flow.index_select(flow.tensor([[1, 2, 3]]), 1, flow.tensor([2, 0]))
    tensor([[3, 1]])
    """
    if input.ndim:
        return dispatch(_INDEX_SELECT, (input, index), {"dim": dim})
    if index.shape != (1,):
        expected, hint = "one index for a 0-d tensor", "unsqueeze the input"
        raise arg_error("index_select", "index", expected, index, hint)
    return dispatch(_INDEX_SELECT, (input.reshape(1), index), {"dim": 0}).reshape(())


def _written(op: str, *given: Tensor, **attrs: Any) -> Tensor:
    """Dispatch an op, of 0-d tensors as of vectors of one entry."""
    if given[0].ndim:
        return dispatch(op_expr(op), given, attrs)
    return dispatch(op_expr(op), tuple(x.reshape(1) for x in given), attrs).reshape(())


@_writing(samples=_INDEX_ADDED)
def index_add(
    input: AnyTensor, dim: Dim, index: Vector, source: Entries, *, alpha: domains.Scalar = 1
) -> Tensor:
    """Return `input` with alpha · source added to the entries that a vector of indices names.

    >>> flow.index_add(flow.zeros(3), 0, flow.tensor([0, 0]), flow.tensor([1., 2.]), alpha=10)
    tensor([30.,  0.,  0.])
    """
    return _written("index_add", input, index, source, dim=dim, alpha=alpha)


@_writing(samples=f"{_ENTRIES}; x(3, 4), -2, i(n=3), x(1, 4); x(), 0, i(1, n=1), x()")
def index_copy(input: AnyTensor, dim: Dim, index: Vector, source: Entries) -> Tensor:
    """Return `input` with `source` written to the entries that a vector of indices names.

    Of several entries for an index the last stays, with the gradient, as in `scatter`.
    """
    return _written("index_copy", input, index, source, dim=dim)


@_writing(samples=_INDEX_REDUCED)
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

    Gradients are as in `scatter_reduce`.

    include_self: whether the entries of `input` take part themselves.
    DTypeError: when numbers have no order.
    """
    index = from_zero("index_reduce", "index", index, input.shape[dim] if input.ndim else 1, False)
    shape = (-1, *[1] * (input.ndim - 1 - dim)) if input.ndim else ()
    index = index.reshape(shape).expand(source.shape)
    return reduced_at("index_reduce", input, dim, index, source, reduce, include_self)


@functor("flow Tensor", twin=True, samples=_INDEX_FILLED)
def index_fill(input: AnyTensor, dim: Dim, index: Vector, value: float | Tensor) -> Tensor:
    """Return `input` with a number written to the entries that a vector of indices names.

    index: a vector of integers, counted from the end when negative.
    value: as in `masked_fill`.
    ShapeError, DTypeError: when `value` does not fit.
    """
    shape = input.shape
    mask = F.index_mask(index, dim=dim, shape=shape or (1,))
    return filled("index_fill", input, mask if shape else mask.reshape(()), value)
