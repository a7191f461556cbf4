"""Putting tensors together: what users call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    FlowError,
    ShapeError,
    bad_argument,
)
from oneflow_lite.functors.checks import check_dim, check_tensor
from oneflow_lite.functors.out import write_out
from oneflow_lite.functors.shape import expand, reshape, unsqueeze
from oneflow_lite.interpreter import dispatch, promote
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

CAT = op_expr("cat")
STACK = op_expr("stack")

Tensors = Sequence[Tensor]


@register_functor("cat")
def cat(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Join tensors along a dimension that they have.

    Dtypes are promoted. Vectors without elements are skipped, as in PyTorch.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of equal shapes, except in `dim`.
    dim : int
        The dimension that grows.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ShapeError
        When shapes do not fit, or a tensor is 0-d.
    ArgumentError, ArgumentTypeError, DimError
        When there is no tensor, something is no tensor, or there is no such dimension.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.cat([flow.zeros(1, 2), flow.ones(2, 2)])
    tensor([[0., 0.],
            [1., 1.],
            [1., 1.]])
    """
    if out is not None:
        return write_out("cat", out, cat, tensors, dim)
    _check_tensors("cat", tensors, ArgumentError)
    return _joined("cat", tensors, dim)


@register_functor("concat")
def concat(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Join tensors along a dimension; another name of `cat`."""
    if out is not None:
        return write_out("concat", out, concat, tensors, dim)
    return cat(tensors, dim)


@register_functor("concatenate")
def concatenate(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Join tensors along a dimension; another name of `cat`."""
    if out is not None:
        return write_out("concatenate", out, concatenate, tensors, dim)
    return cat(tensors, dim)


@register_functor("stack")
def stack(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Join tensors of one shape along a new dimension.

    Raises
    ------
    ShapeError
        When shapes differ, or there is no tensor.
    ArgumentTypeError, DimError
        When something is no tensor, or `dim` is out of range.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.stack([flow.tensor([1, 2]), flow.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if out is not None:
        return write_out("stack", out, stack, tensors, dim)
    _check_tensors("stack", tensors, ShapeError)
    first = tensors[0]._data.shape
    for i, tensor in enumerate(tensors):
        if tensor._data.shape != first:
            raise bad_argument(
                ShapeError,
                "stack",
                f"tensors[{i}]",
                expected=f"the shape of the first, {first}",
                got=f"shape {tensor.shape}",
                mend="reshape or expand it",
            )
    dim = check_dim("stack", dim, len(first) + 1)
    return dispatch(STACK, tuple(_promoted("stack", tensors)), {"dim": dim})


@register_functor("hstack")
def hstack(tensors: Tensors, *, out: Tensor | None = None) -> Tensor:
    """Join tensors side by side: vectors along their dimension, others along the second.

    >>> import oneflow_lite as flow
    >>> flow.hstack([flow.tensor([1, 2]), flow.tensor([3])])
    tensor([1, 2, 3])
    """
    if out is not None:
        return write_out("hstack", out, hstack, tensors)
    _check_tensors("hstack", tensors, ShapeError)
    xs = [reshape(x, 1) if not x._data.ndim else x for x in tensors]
    return _joined("hstack", xs, 0 if xs[0].ndim == 1 else 1)


@register_functor("vstack")
def vstack(tensors: Tensors, *, out: Tensor | None = None) -> Tensor:
    """Join tensors as rows: vectors become rows first.

    >>> import oneflow_lite as flow
    >>> flow.vstack([flow.tensor([1, 2]), flow.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    if out is not None:
        return write_out("vstack", out, vstack, tensors)
    _check_tensors("vstack", tensors, ShapeError)
    xs = [reshape(x, 1, -1) if x._data.ndim < 2 else x for x in tensors]
    return _joined("vstack", xs, 0)


@register_functor("dstack")
def dstack(tensors: Tensors, *, out: Tensor | None = None) -> Tensor:
    """Join tensors along the third dimension, which is added where it is missing.

    >>> import oneflow_lite as flow
    >>> flow.dstack([flow.tensor([1, 2]), flow.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    if out is not None:
        return write_out("dstack", out, dstack, tensors)
    _check_tensors("dstack", tensors, ShapeError)
    xs = [reshape(x, 1, -1) if x._data.ndim < 2 else x for x in tensors]
    return _joined("dstack", [unsqueeze(x, 2) if x.ndim == 2 else x for x in xs], 2)


@register_functor("column_stack")
def column_stack(tensors: Tensors, *, out: Tensor | None = None) -> Tensor:
    """Join tensors as columns: vectors become columns first.

    >>> import oneflow_lite as flow
    >>> flow.column_stack([flow.tensor([1, 2]), flow.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    if out is not None:
        return write_out("column_stack", out, column_stack, tensors)
    _check_tensors("column_stack", tensors, ShapeError)
    xs = [reshape(x, -1, 1) if x._data.ndim < 2 else x for x in tensors]
    return _joined("column_stack", xs, 1)


@register_functor("meshgrid")
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid spanned by vectors, as views of shape (len, len, …).

    Parameters
    ----------
    tensors : Tensor
        Vectors or 0-d tensors of one dtype, also as one sequence.
    indexing : {"ij", "xy"}
        "ij" counts dimensions in the order of the vectors; "xy" exchanges the first two.

    Raises
    ------
    ShapeError, DTypeError
        When a tensor has more dimensions, there is none, `indexing` is unknown, or dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> a, b = flow.meshgrid(flow.arange(2), flow.arange(3), indexing="ij")
    >>> a
    tensor([[0, 0, 0],
            [1, 1, 1]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    _check_tensors("meshgrid", tensors, ShapeError)
    if indexing not in ("ij", "xy"):
        raise bad_argument(
            ShapeError,
            "meshgrid",
            "indexing",
            expected="'ij' or 'xy'",
            got=repr(indexing),
            mend="name one of these",
        )
    for i, tensor in enumerate(tensors):
        if tensor._data.ndim > 1:
            raise bad_argument(
                ShapeError,
                "meshgrid",
                f"tensors[{i}]",
                expected="a vector",
                got=f"shape {tensor.shape}",
                mend="flatten it",
            )
        if tensor.dtype != tensors[0].dtype:
            raise bad_argument(
                DTypeError,
                "meshgrid",
                f"tensors[{i}]",
                expected=f"the dtype of the first, {tensors[0].dtype}",
                got=tensor.dtype,
                mend="convert it",
            )
    places = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        places[:2] = 1, 0
    shape = [1] * len(tensors)
    for tensor, place in zip(tensors, places, strict=True):
        shape[place] = tensor.numel()
    return tuple(
        expand(reshape(x, [n if k == place else 1 for k, n in enumerate(shape)]), shape)
        for x, place in zip(tensors, places, strict=True)
    )


def _check_tensors(op: str, tensors: Any, when_empty: type[FlowError]) -> None:
    if not isinstance(tensors, (list, tuple)):
        raise bad_argument(
            ArgumentTypeError,
            op,
            "tensors",
            expected="a list or tuple of tensors",
            got=type(tensors).__name__,
            mend="put the tensors in a list",
        )
    if not tensors:
        raise bad_argument(
            when_empty, op, "tensors", expected="at least one tensor", got="none", mend="pass one"
        )
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            check_tensor(op, f"tensors[{i}]", tensor)


def _joined(op: str, tensors: Tensors, dim: int) -> Tensor:
    """Check shapes and join; `op` is the functor that was called."""
    shapes = [x._data.shape for x in tensors]
    if () in shapes:
        raise bad_argument(
            ShapeError,
            op,
            f"tensors[{shapes.index(())}]",
            expected="at least one dimension",
            got="a 0-d tensor",
            mend="use stack()",
        )
    xs = _promoted(op, tensors)
    first = shapes[0]
    if (0,) in shapes:
        xs = [x for x in xs if x._data.shape != (0,)] or xs[:1]
        first = xs[0]._data.shape
    dim = check_dim(op, dim, len(first))
    for i, shape in enumerate(shapes):
        if shape == first or shape == (0,):
            continue
        if len(shape) != len(first) or any(
            n != m for k, (n, m) in enumerate(zip(shape, first, strict=True)) if k != dim
        ):
            raise bad_argument(
                ShapeError,
                op,
                f"tensors[{i}]",
                expected=f"the shape of the first, {first}, except in dim {dim}",
                got=f"shape {shape}",
                mend="reshape or crop it",
            )
    return dispatch(CAT, tuple(xs), {"dim": dim})


def _promoted(op: str, tensors: Tensors) -> Tensors:
    """Return the tensors in their common dtype."""
    dtype = tensors[0]._data.dtype
    if all([x._data.dtype is dtype for x in tensors]):
        return tensors
    return promote(op, *tensors)
