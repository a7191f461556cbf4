"""Putting tensors together: what users call."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from oneflow_lite.errors import DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_dim, check_tensor, check_tensors
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Count, Domain, Flag, Tensors, Vector
from oneflow_lite.functors.shape import expand, reshape, unsqueeze
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor, make_constant

CAT = op_expr("cat")
STACK = op_expr("stack")


def _some(op: str, value: Any, argument: str = "tensors") -> Sequence[Tensor]:
    """Return the tensors in their common dtype; `ShapeError` when there are none."""
    if isinstance(value, (list, tuple)) and not value:
        raise bad_argument(ShapeError, op, argument, "at least one tensor", "none", "pass one")
    return check_tensors(op, value, argument)


_SOME = Domain(
    "Tensors on one device; they are brought to their common dtype.",
    "{x} = _some(NAME, {x}, '{x}')",
    raises={"ShapeError": "When there is no tensor, or shapes do not fit."},
    uses=(_some,),
    tensor="many",
    sample="[x(2, 3), x(2, 3)]",
    type="sequence of Tensors",
)
Some = Annotated[Sequence[Tensor], _SOME]


@functor(
    "flow",
    out=True,
    alias="concat concatenate",
    samples="[x(2, 3), x(1, 3)]; [x(2, 3), x(2, 1)], -1; [x(0), x(2)]",
)
def cat(tensors: Tensors, dim: int = 0) -> Tensor:
    """Join tensors along a dimension that they have.

    Vectors without elements are skipped, as in PyTorch.

    dim: the dimension that grows.
    ShapeError: when shapes do not fit, or a tensor is 0-d.
    DimError: when there is no such dimension.

    >>> flow.cat([flow.zeros(1, 2), flow.ones(2, 2)])
    tensor([[0., 0.],
            [1., 1.],
            [1., 1.]])
    """
    return _joined("cat", tensors, dim)


concat = concatenate = cat


@functor("flow", out=True, samples="[x(2, 3), x(2, 3)]; [x(2), x(2)], -1; [x(), x()]")
def stack(tensors: Some, dim: int = 0) -> Tensor:
    """Join tensors of one shape along a new dimension.

    DimError: when `dim` is out of range.

    >>> flow.stack([flow.tensor([1, 2]), flow.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    first = tensors[0]._data.shape
    for i, tensor in enumerate(tensors):
        if tensor._data.shape != first:
            expected, got = f"the shape of the first, {first}", f"shape {tensor.shape}"
            raise bad_argument(
                ShapeError, "stack", f"tensors[{i}]", expected, got, "reshape or expand it"
            )
    dim = check_dim("stack", dim, len(first) + 1)
    return dispatch(STACK, tuple(tensors), {"dim": dim})


_row_of = functools.partial(functor, "flow", out=True, samples="[x(2), x(2)]; [x(2, 3), x(2, 3)]")


@_row_of(samples="[x(2), x(3)]; [x(2, 3), x(2, 1)]")
def hstack(tensors: Some) -> Tensor:
    """Join tensors side by side: vectors along their dimension, others along the second.

    >>> flow.hstack([flow.tensor([1, 2]), flow.tensor([3])])
    tensor([1, 2, 3])
    """
    xs = [_at_least_1d(x) for x in tensors]
    return _joined("hstack", xs, 0 if xs[0].ndim == 1 else 1)


@_row_of(alias="row_stack")
def vstack(tensors: Some) -> Tensor:
    """Join tensors as rows: vectors become rows first.

    >>> flow.vstack([flow.tensor([1, 2]), flow.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return _joined("vstack", [_at_least_2d(x) for x in tensors], 0)


@_row_of()
def dstack(tensors: Some) -> Tensor:
    """Join tensors along the third dimension, which is added where it is missing.

    >>> flow.dstack([flow.tensor([1, 2]), flow.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return _joined("dstack", [_at_least_3d(x) for x in tensors], 2)


@_row_of()
def column_stack(tensors: Some) -> Tensor:
    """Join tensors as columns: vectors become columns first.

    >>> flow.column_stack([flow.tensor([1, 2]), flow.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    xs = [reshape(x, -1, 1) if x._data.ndim < 2 else x for x in tensors]
    return _joined("column_stack", xs, 1)


def _joined(op: str, tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Check shapes and join; `op` is the functor that was called."""
    xs, shapes = tensors, [x._data.shape for x in tensors]
    if () in shapes:
        which = f"tensors[{shapes.index(())}]"
        raise bad_argument(
            ShapeError, op, which, "at least one dimension", "a 0-d tensor", "use stack()"
        )
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
            expected = f"the shape of the first, {first}, except in dim {dim}"
            got = f"shape {shape}"
            raise bad_argument(ShapeError, op, f"tensors[{i}]", expected, got, "reshape or crop it")
    return dispatch(CAT, tuple(xs), {"dim": dim})


# --- Dimensions in front and behind ---------------------------------------------------------------


def _at_least_1d(x: Tensor) -> Tensor:
    return x if x._data.ndim else reshape(x, 1)


def _at_least_2d(x: Tensor) -> Tensor:
    return x if x._data.ndim >= 2 else unsqueeze(_at_least_1d(x), 0)


def _at_least_3d(x: Tensor) -> Tensor:
    return x if x._data.ndim >= 3 else unsqueeze(_at_least_2d(x), -1)


def _of_each(op: str, tensors: tuple[Any, ...], change: Callable[[Tensor], Tensor]) -> Any:
    """Change tensors, given one by one or as one sequence; of one alone return one."""
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return change(tensors[0])
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return tuple(change(check_tensor(op, f"tensors[{i}]", x)) for i, x in enumerate(given))


@functor("flow", samples="x(); x(2), x()")
def atleast_1d(*tensors: Any) -> Any:
    """Return each tensor with one dimension at least."""
    return _of_each("atleast_1d", tensors, _at_least_1d)


@functor("flow", samples="x(); x(2), x(2, 3)")
def atleast_2d(*tensors: Any) -> Any:
    """Return each tensor with two dimensions at least; vectors become rows."""
    return _of_each("atleast_2d", tensors, _at_least_2d)


@functor("flow", samples="x(); x(2), x(2, 3)")
def atleast_3d(*tensors: Any) -> Any:
    """Return each tensor with three dimensions at least; (n,) becomes (1, n, 1)."""
    return _of_each("atleast_3d", tensors, _at_least_3d)


# --- Grids, products, blocks ----------------------------------------------------------------------


@functor("flow", samples="x(2), x(3), indexing='ij'; x(2), x(3), x(), indexing='xy'")
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid spanned by vectors, as views of shape (len, len, …).

    tensors: vectors or 0-d tensors of one dtype, also as one sequence.
    indexing: "ij" counts dimensions in the order of the vectors; "xy" exchanges the first two.
    ShapeError, DTypeError: when a tensor has more dimensions, there is none, `indexing` is
        unknown, or dtypes differ.

    >>> a, b = flow.meshgrid(flow.arange(2), flow.arange(3), indexing="ij")
    >>> a
    tensor([[0, 0, 0],
            [1, 1, 1]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    _some("meshgrid", tensors)
    if indexing not in ("ij", "xy"):
        got, mend = repr(indexing), "name one of these"
        raise bad_argument(ShapeError, "meshgrid", "indexing", "'ij' or 'xy'", got, mend)
    dtype = tensors[0].dtype
    for i, tensor in enumerate(tensors):
        name = f"tensors[{i}]"
        if tensor._data.ndim > 1:
            got = f"shape {tensor.shape}"
            raise bad_argument(ShapeError, "meshgrid", name, "a vector", got, "flatten it")
        if tensor.dtype != dtype:
            expected = f"the dtype of the first, {dtype}"
            raise bad_argument(DTypeError, "meshgrid", name, expected, tensor.dtype, "convert it")
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


@functor("flow", samples="x(2, 1), x(3); x(2), x()")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Return the tensors expanded to the shape in which they meet.

    ShapeError: when the shapes do not broadcast.
    """
    shapes = [check_tensor("broadcast_tensors", "tensors", x)._data.shape for x in tensors]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        expected, mend = "shapes that broadcast together", "make the sizes equal or 1"
        raise bad_argument(
            ShapeError, "broadcast_tensors", "tensors", expected, shapes, mend
        ) from None
    return tuple(expand(x, shape) for x in tensors)


@functor("flow", samples="x(2), x(3); x(2)")
def cartesian_prod(*tensors: Any) -> Tensor:
    """Return all combinations of one element of each vector, as rows; of one vector itself.

    >>> flow.cartesian_prod(flow.tensor([1, 2]), flow.tensor([4, 5]))
    tensor([[1, 4],
            [1, 5],
            [2, 4],
            [2, 5]])
    """
    for i, x in enumerate(tensors):
        if check_tensor("cartesian_prod", f"tensors[{i}]", x)._data.ndim != 1:
            got, mend = f"shape {x.shape}", "flatten it"
            raise bad_argument(ShapeError, "cartesian_prod", f"tensors[{i}]", "a vector", got, mend)
    if len(tensors) == 1:
        return reshape(tensors[0], -1)
    grids = meshgrid(*tensors)
    return stack([reshape(x, -1) for x in grids], 1)


@functor("flow", samples="x(4); x(4), 3; x(3), 2, True; x(3), 1")
def combinations(input: Vector, r: Count = 2, with_replacement: Flag = False) -> Tensor:
    """Return all ways to take r elements of a vector, each as a row, in lexicographic order.

    >>> flow.combinations(flow.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input.numel()), r)), np.int64).reshape(-1, r)
    index = make_constant(rows.reshape(-1)).to(input.device)
    return reshape(FUNCTORS.get("index_select")(input, 0, index), rows.shape)


@functor("flow", samples="x(2, 2), x(1, 3), x(); x(2)")
def block_diag(*tensors: Any) -> Tensor:
    """Return a matrix with these on its diagonal, and 0 elsewhere; vectors are rows.

    tensors: of at most two dimensions.
    ShapeError: when one has more.

    >>> flow.block_diag(flow.tensor([[1, 2]]), flow.tensor([3]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    for i, x in enumerate(tensors):
        if check_tensor("block_diag", f"tensors[{i}]", x)._data.ndim > 2:
            got, mend = f"shape {x.shape}", "flatten it"
            raise bad_argument(
                ShapeError, "block_diag", f"tensors[{i}]", "at most 2 dimensions", got, mend
            )
    blocks = [_at_least_2d(x) for x in check_tensors("block_diag", tensors)]
    pad, before, rows = FUNCTORS.get("pad"), 0, []
    width = sum(x._data.shape[1] for x in blocks)
    for x in blocks:
        after = width - before - x._data.shape[1]
        rows.append(pad(x, (before, after)))
        before += x._data.shape[1]
    return cat(rows)
