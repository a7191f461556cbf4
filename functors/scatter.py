"""gather, scatter and their kin: what users call to read or write along one dimension."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    bad_argument,
)
from oneflow_lite.functors.checks import check_dim, check_tensor, require_integer
from oneflow_lite.functors.creation import full
from oneflow_lite.functors.fill_value import fill_value
from oneflow_lite.functors.indexing import GETITEM_ADVANCED, getitem
from oneflow_lite.functors.masking import masked_fill
from oneflow_lite.functors.out import write_out
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
INDEX_FROM_ZERO = op_expr("index_from_zero")


@register_functor("gather")
def gather(
    input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None
) -> Tensor:
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
    out : Tensor, optional
        Receives the result.

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
    if out is not None:
        return write_out("gather", out, gather, input, dim, index, sparse_grad=sparse_grad)
    if sparse_grad:
        raise _no_sparse("gather", "sparse_grad")
    dim = _check_index("gather", input, dim, index)
    return dispatch(GATHER, (input, index), {"dim": dim})


@register_functor("scatter")
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
    out: Tensor | None = None,
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
    out : Tensor, optional
        Receives the result.

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
    if out is not None:
        return write_out(
            "scatter", out, scatter, input, dim, index, src, value=value, reduce=reduce
        )
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
    return dispatch(op, (input, index, src), {"dim": dim})


@register_functor("scatter_add")
def scatter_add(
    input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """Return `input` with values added at the places that `index` names along `dim`.

    For three dimensions and `dim=1`, y[i, index[i, j, k], k] += src[i, j, k]; values for one place
    sum up. Arguments and errors are those of `scatter`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.scatter_add(flow.zeros(3), 0, flow.tensor([0, 2, 0]), flow.tensor([1., 2., 3.]))
    tensor([4., 0., 2.])
    """
    if out is not None:
        return write_out("scatter_add", out, scatter_add, input, dim, index, src)
    dim = _check_index("scatter_add", input, dim, index)
    src = _check_source("scatter_add", input, index, check_tensor("scatter_add", "src", src))
    return dispatch(SCATTER_ADD, (input, index, src), {"dim": dim})


@register_functor("take_along_dim")
def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
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
    if out is not None:
        return write_out("take_along_dim", out, take_along_dim, input, indices, dim)
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
    return dispatch(GATHER, (input, index), {"dim": dim})


@register_functor("take")
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements that `index` names in the flattened tensor, in the shape of `index`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.take(flow.tensor([[1, 2], [3, 4]]), flow.tensor([3, 0]))
    tensor([4, 1])
    """
    if out is not None:
        return write_out("take", out, take, input, index)
    check_tensor("take", "input", input)
    require_integer("take", index)
    attrs = {"size": input.numel(), "op": "take", "argument": "index"}
    places = dispatch1(INDEX_FROM_ZERO, index, attrs)
    return dispatch(GETITEM_ADVANCED, (reshape(input, -1), places), {"dims": (0,)})


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
    check_same_dtype(op, input, "src", src)
    have, want = src.shape, index.shape
    if have == want:
        return src
    if len(have) == len(want) and all(n >= m for n, m in zip(have, want, strict=True)):
        return getitem(src, tuple(slice(n) for n in want))
    if 0 in want:  # nothing is written, whatever the shape of src
        return full(want, 0, dtype=src.dtype, device=src.device)
    raise bad_argument(
        ShapeError,
        op,
        "src",
        expected=f"at least the shape of index, {want}",
        got=f"shape {have}",
        mend="expand it, or crop the index",
    )


def check_same_dtype(op: str, input: Tensor, argument: str, source: Tensor) -> None:
    """Raise `DTypeError` unless `source` has the dtype of `input`."""
    if source._data.dtype != input._data.dtype:
        raise bad_argument(
            DTypeError,
            op,
            argument,
            expected=f"the dtype of input, {input.dtype}",
            got=source.dtype,
            mend="convert it with .to(input.dtype)",
        )


def _no_sparse(op: str, argument: str) -> ArgumentError:
    return ArgumentError(f"{op}(): argument '{argument}': gradients are dense; pass False")
