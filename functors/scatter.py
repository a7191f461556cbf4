"""gather, scatter and their kin: what users call to read or write along one dimension."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    ShapeError,
    bad_argument,
)
from oneflow_lite.functors.checks import check_dim, check_tensor, require_integer
from oneflow_lite.functors.creation import full
from oneflow_lite.functors.fill_value import fill_value
from oneflow_lite.functors.indexing import GETITEM_ADVANCED, getitem
from oneflow_lite.functors.masking import masked_fill
from oneflow_lite.functors.shape import expand, reshape
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

GATHER = op_expr("gather")
SCATTER = op_expr("scatter")
SCATTER_ADD = op_expr("scatter_add")
SCATTER_MULTIPLY = op_expr("scatter_multiply")
SCATTER_MASK = op_expr("scatter_mask")
INDEX_SELECT = op_expr("index_select")
INDEX_ADD = op_expr("index_add")
INDEX_MASK = op_expr("index_mask")
INDEX_FROM_ZERO = op_expr("index_from_zero")


@register_functor("gather")
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Return the elements of `input` that `index` names along `dim`.

    For three dimensions and `dim=1`, y[i, j, k] = input[i, index[i, j, k], k].

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension that the indices count along.
    index : Tensor
        Of an integer dtype, with as many dimensions as `input`, no larger than it in any but
        `dim`. The result has its shape.
    sparse_grad : bool
        Only False: gradients are dense.

    Raises
    ------
    IndexRangeError
        When an index is negative or too large (on CUDA the values are not looked at).
    ShapeError, DTypeError, DimError
        When shapes do not fit, `index` is not of integers, or there is no such dimension.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.gather(flow.tensor([[1, 2], [3, 4]]), 1, flow.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    if sparse_grad:
        raise _no_sparse("gather", "sparse_grad")
    dim = _check_index("gather", input, dim, index)
    return dispatch(GATHER, (input, index), {"dim": dim})  # type: ignore[no-any-return]


@register_functor("scatter")
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """Return `input` with values written to the places that `index` names along `dim`.

    For three dimensions and `dim=1`, y[i, index[i, j, k], k] = src[i, j, k]. Of several values for
    one place the last one stays, and only that one gets a gradient. (PyTorch gives the overwritten
    ones a gradient as well. On CUDA it is not said which one stays.)

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension that the indices count along.
    index : Tensor
        Of an integer dtype, with as many dimensions as `input`.
    src : Tensor or number
        At least as large as `index` in every dimension, with the dtype of `input`.
    value : number
        Instead of `src`.
    reduce : {None, "add", "multiply"}
        Add to what is there, or multiply it, instead of replacing it. "multiply" has no gradient.

    Raises
    ------
    IndexRangeError
        When an index is negative or too large (on CUDA the values are not looked at).
    ShapeError, DTypeError, DimError, ArgumentError
        When shapes or dtypes do not fit, there is no such dimension, or `reduce` is unknown.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.scatter(flow.zeros(2, 3), 1, flow.tensor([[2], [0]]), 5.)
    tensor([[0., 0., 5.],
            [5., 0., 0.]])
    """
    dim = _check_index("scatter", input, dim, index)
    if reduce not in (None, "add", "multiply"):
        raise bad_argument(
            ArgumentError,
            "scatter",
            "reduce",
            expected="'add', 'multiply' or None",
            got=repr(reduce),
            mend="name one of these",
        )
    if (src is None) == (value is None):
        raise bad_argument(
            ArgumentTypeError,
            "scatter",
            "src",
            expected="either src or value",
            got="both" if src is not None else "neither",
            mend="pass one of them",
        )
    if not isinstance(src, Tensor):
        number = value if src is None else src
        number = fill_value("scatter", "value" if src is None else "src", number, input.dtype)
        if reduce is None:
            mask = dispatch1(SCATTER_MASK, index, {"dim": dim, "shape": input.shape})
            return masked_fill(input, mask, number)
        src = full(index.shape, number, dtype=input.dtype, device=input.device)
    src = _check_source("scatter", input, index, src)
    op = {None: SCATTER, "add": SCATTER_ADD, "multiply": SCATTER_MULTIPLY}[reduce]
    return dispatch(op, (input, index, src), {"dim": dim})  # type: ignore[no-any-return]


@register_functor("scatter_add")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return `input` with values added at the places that `index` names along `dim`.

    For three dimensions and `dim=1`, y[i, index[i, j, k], k] += src[i, j, k]; values for one place
    sum up. Arguments and errors are those of `scatter`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.scatter_add(flow.zeros(3), 0, flow.tensor([0, 2, 0]), flow.tensor([1., 2., 3.]))
    tensor([4., 0., 2.])
    """
    dim = _check_index("scatter_add", input, dim, index)
    src = _check_source("scatter_add", input, index, check_tensor("scatter_add", "src", src))
    return dispatch(SCATTER_ADD, (input, index, src), {"dim": dim})  # type: ignore[no-any-return]


@register_functor("take_along_dim")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements named along `dim`, as `gather`, with shapes broadcast in the others.

    Without `dim` both are flattened. Indices count from the end when negative.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[3., 1., 2.], [6., 5., 4.]])
    >>> flow.take_along_dim(x, flow.argsort(x, dim=1), dim=1)
    tensor([[1., 2., 3.],
            [4., 5., 6.]])
    """
    op = "take_along_dim"
    check_tensor(op, "input", input)
    require_integer(op, indices, "indices")
    if dim is None:
        input, indices, dim = reshape(input, -1), reshape(indices, -1), 0
    dim = check_dim(op, dim, input.ndim)
    if input.ndim != indices.ndim:
        raise bad_argument(
            ShapeError,
            op,
            "indices",
            expected=f"as many dimensions as input has, {input.ndim}",
            got=f"shape {indices.shape}",
            mend="unsqueeze it, or leave dim out",
        )
    if input.ndim:
        have, want = list(input.shape), list(indices.shape)
        for k, (n, m) in enumerate(zip(input.shape, indices.shape, strict=True)):
            if k == dim or n == m:
                continue
            if 1 not in (n, m):
                raise bad_argument(
                    ShapeError,
                    op,
                    "indices",
                    expected=f"a shape that broadcasts with {input.shape} except in dim {dim}",
                    got=indices.shape,
                    mend="make the sizes equal or 1",
                )
            have[k] = want[k] = m if n == 1 else n
        input, indices = expand(input, have), expand(indices, want)
    size = input.shape[dim] if input.ndim else 1
    attrs = {"size": size, "op": op, "argument": "indices"}
    index = dispatch1(INDEX_FROM_ZERO, indices, attrs)
    return dispatch(GATHER, (input, index), {"dim": dim})  # type: ignore[no-any-return]


@register_functor("take")
def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements that `index` names in the flattened tensor, in the shape of `index`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.take(flow.tensor([[1, 2], [3, 4]]), flow.tensor([3, 0]))
    tensor([4, 1])
    """
    check_tensor("take", "input", input)
    require_integer("take", index)
    attrs = {"size": input.numel(), "op": "take", "argument": "index"}
    places = dispatch1(INDEX_FROM_ZERO, index, attrs)
    return dispatch(GETITEM_ADVANCED, (reshape(input, -1), places), {"dims": (0,)})  # type: ignore[no-any-return]


@register_functor("index_select")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the entries of one dimension that a vector of indices names.

    Raises
    ------
    IndexRangeError
        When an index is negative or too large (on CUDA the values are not looked at).
    DimError
        When `index` is no vector, or there is no such dimension.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.index_select(flow.tensor([[1, 2, 3], [4, 5, 6]]), 1, flow.tensor([2, 0]))
    tensor([[3, 1],
            [6, 4]])
    """
    dim = check_dim("index_select", dim, check_tensor("index_select", "input", input).ndim)
    index = _vector("index_select", index)
    if input.ndim:
        return dispatch(INDEX_SELECT, (input, index), {"dim": dim})  # type: ignore[no-any-return]
    if index.shape != (1,):
        raise bad_argument(
            ShapeError,
            "index_select",
            "index",
            expected="one index for a 0-d tensor",
            got=f"shape {index.shape}",
            mend="unsqueeze the input",
        )
    return reshape(dispatch(INDEX_SELECT, (reshape(input, 1), index), {"dim": 0}), ())


@register_functor("index_add")
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1
) -> Tensor:
    """Return `input` with alpha · source added to the entries that a vector of indices names.

    Entries that are named twice get both.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension that the indices count along.
    index : Tensor
        A vector of integers.
    source : Tensor
        Of the dtype and shape of `input`, except for len(index) entries along `dim`.
    alpha : number
        Factor of `source`.

    Raises
    ------
    IndexRangeError
        When an index is negative or too large (on CUDA the values are not looked at).
    ShapeError, DTypeError, DimError
        When `source` does not fit, or there is no such dimension.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.index_add(flow.zeros(3), 0, flow.tensor([0, 0]), flow.tensor([1., 2.]), alpha=10)
    tensor([30.,  0.,  0.])
    """
    op = "index_add"
    shape = check_tensor(op, "input", input).shape
    dim = check_dim(op, dim, len(shape))
    _same_dtype(op, input, "source", check_tensor(op, "source", source))
    alpha = fill_value(op, "alpha", alpha, input.dtype)
    index = _vector(op, index)
    want = (*shape[:dim], *index.shape, *shape[dim + 1 :]) if shape else ()
    if source.shape != want or (not shape and index.shape != (1,)):
        raise bad_argument(
            ShapeError,
            op,
            "source",
            expected=f"shape {want}: that of input, with one entry per index in dim {dim}",
            got=f"shape {source.shape}",
            mend="give one entry for each index",
        )
    attrs = {"dim": dim, "alpha": alpha}
    if shape:
        return dispatch(INDEX_ADD, (input, index, source), attrs)  # type: ignore[no-any-return]
    return reshape(dispatch(INDEX_ADD, (reshape(input, 1), index, reshape(source, 1)), attrs), ())


@register_functor("index_fill")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return `input` with a number written to the entries that a vector of indices names.

    `value` is a number or a 0-d tensor; indices count from the end when negative.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.index_fill(flow.zeros(2, 3), 1, flow.tensor([0, -1]), 7)
    tensor([[7., 0., 7.],
            [7., 0., 7.]])
    """
    shape = check_tensor("index_fill", "input", input).shape
    dim = check_dim("index_fill", dim, len(shape))
    index = _vector("index_fill", index)
    mask = dispatch1(INDEX_MASK, index, {"dim": dim, "shape": shape or (1,)})
    return masked_fill(input, mask if shape else reshape(mask, ()), value)


# Checks


def _check_index(op: str, input: Tensor, dim: int, index: Tensor) -> int:
    """Return `dim` counted from 0 after checking it and `index` against `input`."""
    shape = check_tensor(op, "input", input)._data.shape
    dim = check_dim(op, dim, len(shape))
    places = require_integer(op, index)._data.shape
    fits = max(len(shape), 1) == max(len(places), 1) and all(
        m <= n for k, (n, m) in enumerate(zip(shape, places, strict=False)) if k != dim
    )
    if not fits and 0 not in places:
        raise bad_argument(
            ShapeError,
            op,
            "index",
            expected=f"as many dimensions as {shape} and no size above it except in dim {dim}",
            got=f"shape {places}",
            mend="expand or crop the index",
        )
    return dim


def _check_source(op: str, input: Tensor, index: Tensor, src: Tensor) -> Tensor:
    """Return the part of `src` that `index` stands for."""
    _same_dtype(op, input, "src", src)
    have, want = src.shape, index.shape
    if have == want:
        return src
    if len(have) != len(want) or any(n < m for n, m in zip(have, want, strict=True)):
        raise bad_argument(
            ShapeError,
            op,
            "src",
            expected=f"at least the shape of index, {want}",
            got=f"shape {have}",
            mend="expand it, or crop the index",
        )
    return getitem(src, tuple(slice(n) for n in want))


def _same_dtype(op: str, input: Tensor, argument: str, source: Tensor) -> None:
    if source._data.dtype != input._data.dtype:
        raise bad_argument(
            DTypeError,
            op,
            argument,
            expected=f"the dtype of input, {input.dtype}",
            got=source.dtype,
            mend="convert it with .to(input.dtype)",
        )


def _vector(op: str, index: Tensor) -> Tensor:
    """Return an index of at most one dimension as a vector."""
    rank = require_integer(op, index)._data.ndim
    if rank == 1:
        return index
    if rank == 0:
        return reshape(index, 1)
    raise bad_argument(
        DimError,
        op,
        "index",
        expected="a vector",
        got=f"shape {index.shape}",
        mend="flatten it",
    )


def _no_sparse(op: str, argument: str) -> ArgumentError:
    return ArgumentError(f"{op}(): argument '{argument}': gradients are dense; pass False")
