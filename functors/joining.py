"""Functions that users call to put tensors together, and to take them apart into views."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, get_args

import numpy as np

from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.arrays.size import Size
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import (
    ArgumentError,
    DimError,
    DTypeError,
    FlowError,
    ShapeError,
    arg_error,
    memory_for,
)
from oneflow_lite.functors.declaring import checks
from oneflow_lite.functors.declaring.checks import check_dim, check_int, check_tensor, check_tensors
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    Count,
    Flag,
    Int,
    IntOrInts,
    TensorOrTensors,
    Tensors,
    Vector,
)
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.storage import SPLIT
from oneflow_lite.tensors.tensor import Tensor, make_constant

_CAT, _STACK, _NARROW, _SELECT = map(op_expr, ("cat", "stack", "narrow", "select"))
_ROWS = "[x(2), x(2)]; [x(2, 3), x(2, 3)]"


def _some(op: str, value: Any, argument: str = "tensors") -> Sequence[Tensor]:
    """Return the tensors in their common dtype; `ShapeError` when there are none."""
    if isinstance(value, (list, tuple)) and not value:
        raise arg_error(op, argument, "at least one tensor", "none", "pass one")
    return check_tensors(op, value, argument)


Some = Annotated[
    Sequence[Tensor],
    get_args(Tensors)[1]._replace(
        check="{x} = _some(NAME, {x}, '{x}')",
        raises={"ShapeError": "When there is no tensor, or shapes do not fit."},
        uses=(_some,),
    ),
]
Views = tuple[Tensor, ...]
_joining = functools.partial(functor, "flow", out=True)


@_joining(
    alias="concat concatenate", samples="[x(2, 3), x(1, 3)]; [x(2, 3), x(2, 1)], -1; [x(0), x(2)]"
)
def cat(tensors: Tensors, dim: int = 0) -> Tensor:
    """Join tensors along a dimension; vectors without elements are skipped, as in PyTorch.

    ShapeError: when shapes do not fit, or a tensor is 0-d.
    DimError: when `dim` is out of range.

    >>> flow.cat([flow.zeros(2, 1), flow.ones(2, 2)], dim=1)
    tensor([[0., 1., 1.],
            [0., 1., 1.]])
    """
    return _joined("cat", tensors, dim)


@_joining(samples="[x(2, 3), x(2, 3)]; [x(2), x(2)], -1; [x(), x()]")
def stack(tensors: Some, dim: int = 0) -> Tensor:
    """Join tensors of one shape along a new dimension.

    DimError: when `dim` is out of range.
    """
    first = tensors[0]._data.shape
    for i, tensor in enumerate(tensors):
        if tensor._data.shape != first:
            expected = f"the shape of the first, {first}"
            raise arg_error("stack", f"tensors[{i}]", expected, tensor, "reshape or expand it")
    return dispatch(_STACK, tuple(tensors), {"dim": check_dim("stack", dim, len(first) + 1)})


@_joining(samples="[x(2), x(3)]; [x(2, 3), x(2, 1)]")
def hstack(tensors: Some) -> Tensor:
    """Join tensors side by side: vectors along their dimension, others along the second."""
    xs = [_at_least(1, x) for x in tensors]
    return _joined("hstack", xs, 0 if xs[0].ndim == 1 else 1)


@_joining(alias="row_stack", samples=_ROWS)
def vstack(tensors: Some) -> Tensor:
    """Join tensors as rows: vectors become rows first."""
    return _joined("vstack", [_at_least(2, x) for x in tensors], 0)


@_joining(samples=_ROWS)
def dstack(tensors: Some) -> Tensor:
    """Join tensors along the third dimension, which is added where it is missing."""
    return _joined("dstack", [_at_least(3, x) for x in tensors], 2)


@_joining(samples=_ROWS)
def column_stack(tensors: Some) -> Tensor:
    """Join tensors as columns: vectors become columns first."""
    columns = [F.reshape(x, -1, 1) if x._data.ndim < 2 else x for x in tensors]
    return _joined("column_stack", columns, 1)


def _joined(op: str, tensors: Sequence[Tensor], dim: int) -> Tensor:
    xs, shapes = tensors, [x._data.shape for x in tensors]
    if () in shapes:
        which = f"tensors[{shapes.index(())}]"
        raise arg_error(op, which, "at least one dimension", "a 0-d tensor", "use stack()")
    first = shapes[0]
    if (0,) in shapes:
        xs = [x for x in xs if x._data.shape != (0,)] or xs[:1]
        first = xs[0]._data.shape
    if first != (0,):  # of nothing but empty vectors any dimension is taken
        dim = check_dim(op, dim, len(first))
    elif type(dim) is int:
        dim = 0
    for i, shape in enumerate(shapes):
        if shape == first or shape == (0,):
            continue
        if len(shape) != len(first) or shape != (*first[:dim], shape[dim], *first[dim + 1 :]):
            expected = f"the shape of the first, {first}, except in dim {dim}"
            raise arg_error(op, f"tensors[{i}]", expected, f"shape {shape}", "reshape or crop it")
    return dispatch(_CAT, tuple(xs), {"dim": dim})


def _at_least(rank: int, x: Tensor) -> Tensor:
    """Return a tensor with 1, 2 or 3 dimensions at least: (n,) becomes (1, n) or (1, n, 1)."""
    x = x if x._data.ndim else F.reshape(x, 1)
    x = x if x._data.ndim >= min(rank, 2) else F.unsqueeze(x, 0)
    return x if x._data.ndim >= rank else F.unsqueeze(x, -1)


def _atleast(rank: int, what: str) -> Any:
    name = f"atleast_{rank}d"

    def author(*tensors: TensorOrTensors) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return _at_least(rank, tensors[0])
        one_list = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
        each = enumerate(tensors[0] if one_list else tensors)
        return tuple(_at_least(rank, check_tensor(name, f"tensors[{i}]", x)) for i, x in each)

    author.__name__ = author.__qualname__ = name
    author.__doc__ = f"Return each tensor with {what}."
    return functor("flow", samples="x(); x(2), x(2, 3), x()")(author)


atleast_1d = _atleast(1, "one dimension at least")
atleast_2d = _atleast(2, "two dimensions at least; vectors become rows")
atleast_3d = _atleast(3, "three dimensions at least; (n,) becomes (1, n, 1)")


@functor("flow", samples="x(2), x(3), indexing='ij'; x(2), x(3), x(), indexing='xy'")
def meshgrid(*tensors: TensorOrTensors, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid spanned by vectors, as views of shape (len, len, …).

    tensors: of at most one dimension and of the same dtype, also as a sequence.
    indexing: "ij" counts dimensions in the order of the vectors; "xy" exchanges the first two.
    ShapeError, DTypeError: when tensors are missing or do not fit, or `indexing` is unknown.

    >>> flow.meshgrid(flow.arange(1), flow.arange(3), indexing="ij")
    (tensor([[0, 0, 0]]), tensor([[0, 1, 2]]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    _some("meshgrid", tensors)
    if indexing not in ("ij", "xy"):
        raise arg_error("meshgrid", "indexing", "'ij' or 'xy'", repr(indexing), "name one of these")
    dtype = tensors[0].dtype
    for i, tensor in enumerate(tensors):
        name = f"tensors[{i}]"
        if tensor._data.ndim > 1:
            raise arg_error("meshgrid", name, "a vector", tensor, "flatten it")
        if tensor.dtype != dtype:
            expected = f"the dtype of the first, {dtype}"
            raise arg_error("meshgrid", name, expected, tensor.dtype, "convert it", DTypeError)
    places = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        places[:2] = 1, 0
    shape = [tensors[place].numel() for place in places]
    lines = [[n if k == place else 1 for k, n in enumerate(shape)] for place in places]
    grids = zip(tensors, lines, strict=True)
    return tuple(F.expand(F.reshape(x, line), shape) for x, line in grids)


@functor("flow", samples="x(2, 1), x(3); x(2), x()")
def broadcast_tensors(*tensors: TensorOrTensors) -> tuple[Tensor, ...]:
    """Return the tensors expanded to the shape in which they meet.

    ShapeError: when the shapes do not broadcast.
    """
    shapes = [check_tensor("broadcast_tensors", "tensors", x)._data.shape for x in tensors]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        expected, hint = "shapes that broadcast together", "make the sizes equal or 1"
        raise arg_error("broadcast_tensors", "tensors", expected, shapes, hint) from None
    return tuple(F.expand(x, shape) for x in tensors)


@guarded
def broadcast_shapes(*shapes: Any) -> Size:
    """Return the shape in which tensors of these shapes meet.

    Raises `ShapeError` when the shapes do not broadcast.

    >>> import oneflow_lite as flow
    >>> flow.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    listed = [tuple(s) if isinstance(s, (tuple, list)) else (s,) for s in shapes]
    try:
        return Size(np.broadcast_shapes(*listed))
    except ValueError:
        expected, hint = "shapes that broadcast together", "make the sizes equal or 1"
        got = " and ".join(map(str, listed))
        raise arg_error("broadcast_shapes", "shapes", expected, got, hint, ShapeError) from None


@functor("flow", samples="x(2), x(3); x(2)")
def cartesian_prod(*tensors: TensorOrTensors) -> Tensor:
    """Return all combinations of an element of each vector, as rows; of one vector, the vector.

    >>> flow.cartesian_prod(flow.tensor([1]), flow.tensor([4, 5]))
    tensor([[1, 4],
            [1, 5]])
    """
    for i, x in enumerate(tensors):
        if check_tensor("cartesian_prod", f"tensors[{i}]", x)._data.ndim != 1:
            raise arg_error("cartesian_prod", f"tensors[{i}]", "a vector", x, "flatten it")
    if len(tensors) == 1:
        return F.reshape(tensors[0], -1)
    return stack([F.reshape(x, -1) for x in meshgrid(*tensors)], 1)


@functor("flow", samples="x(4); x(4), 3; x(3), 2, True; x(3), 1")
def combinations(input: Vector, r: Count = 2, with_replacement: Flag = False) -> Tensor:
    """Return all ways to take r elements of a vector, each as a row, in lexicographic order.

    >>> flow.combinations(flow.tensor([1, 2, 3]), 3)
    tensor([[1, 2, 3]])
    """
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    n = input.numel()
    if not r:  # PyTorch's: no row of no element, but no element
        return input[:0]
    count = math.comb(n + r - 1 if with_replacement and n else n, r)
    with memory_for("combinations", r=r, rows=count):
        np.empty((count, r), np.int64)  # before so many are counted out
        rows = itertools.chain.from_iterable(choose(range(n), r)) if count else ()
        index = make_constant(np.fromiter(rows, np.int64, count * r)).to(input.device)
    return F.reshape(F.index_select(input, 0, index), (count, r))


@functor("flow", samples="x(2, 2), x(1, 3), x(); x(2)")
def block_diag(*tensors: TensorOrTensors) -> Tensor:
    """Return a matrix with these on its diagonal, and 0 elsewhere; vectors are rows.

    Of none it has the shape (1, 0), as in PyTorch.

    ShapeError: when one has more than two dimensions.

    >>> flow.block_diag(flow.tensor([[1, 2]]), flow.tensor([3]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    for i, x in enumerate(tensors):
        if check_tensor("block_diag", f"tensors[{i}]", x)._data.ndim > 2:
            raise arg_error("block_diag", f"tensors[{i}]", "at most 2 dimensions", x, "flatten it")
    if not tensors:
        return F.zeros(1, 0)
    blocks = [_at_least(2, x) for x in check_tensors("block_diag", tensors)]
    before, after, rows = 0, sum(x._data.shape[1] for x in blocks), []
    for x in blocks:
        after -= x._data.shape[1]
        rows.append(F.pad(x, (before, after)))
        before += x._data.shape[1]
    return cat(rows)


_MOST_EMPTY = 2**20  # parts of no entry

# --- Taking tensors apart -------------------------------------------------------------------------


@functor(
    "flow Tensor",
    spelled="split_size=split_size_or_sections",
    samples="x(5, 2), 2; x(2, 5), [1, 0, 4], -1",
)
def split(tensor: AnyTensor, split_size_or_sections: int | Sequence[int], dim: Int = 0) -> Views:
    """Cut a tensor along a dimension into views.

    split_size_or_sections: the size of every part (the last one may be smaller), or all sizes.
    ShapeError: when sizes are negative or do not add up, or the tensor is 0-d.
    DimError: when `dim` is out of range.

    >>> flow.split(flow.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return _split("split", tensor, split_size_or_sections, dim)


def _split(op: str, tensor: Tensor, given: Any, dim: int) -> Views:
    size, dim = _cut_size(op, "tensor", tensor, dim)
    argument = "split_sizes" if "sizes" in op else "split_size_or_sections"
    if isinstance(given, (list, tuple)):
        sizes = [check_int(op, argument, n) for n in given]
        if sum(sizes) != size or any(n < 0 for n in sizes):
            expected = f"sizes that add up to {size}, dimension {dim} of {tensor.shape}"
            raise arg_error(op, argument, expected, sizes, "make them add up")
        return _cut(tensor, dim, sizes)
    step = check_int(op, argument, given)
    if step < 0 or (step == 0 and size):
        raise arg_error(op, argument, "a positive size", step, "pass at least 1")
    return _cut(tensor, dim, _even_sizes(size, step))


@functor("flow Tensor", samples="x(5), [2, 3]")
def split_with_sizes(input: AnyTensor, split_sizes: Sequence[int], dim: Int = 0) -> Views:
    """Cut a tensor along a dimension into views of these sizes."""
    return _split("split_with_sizes", input, list(split_sizes), dim)


@functor("flow Tensor", samples="x(5), 2; x(2, 5), 4, -1")
def chunk(input: AnyTensor, chunks: Int, dim: Int = 0) -> Views:
    """Cut a tensor along a dimension into at most so many views; the last one may be smaller."""
    return _chunk("chunk", input, chunks, dim)


def _chunk(op: str, input: Tensor, chunks: int, dim: int) -> Views:
    size, dim = _cut_size(op, "input", input, dim)
    _check_parts(op, "chunks", chunks, size)
    return _cut(input, dim, _even_sizes(size, -(-size // chunks)) if size else [0] * chunks)


@functor("flow Tensor", samples="x(5), 2; x(2, 5), 3, -1")
def unsafe_split(input: AnyTensor, split_size: Int, dim: Int = 0) -> Views:
    """Do what `split` does, into copies."""
    return tuple([part.clone() for part in _split("unsafe_split", input, split_size, dim)])


@functor("flow Tensor", samples="x(5), [2, 3]")
def unsafe_split_with_sizes(input: AnyTensor, split_sizes: Sequence[int], dim: Int = 0) -> Views:
    """Do what `split_with_sizes` does, into copies."""
    parts = _split("unsafe_split_with_sizes", input, list(split_sizes), dim)
    return tuple([part.clone() for part in parts])


@functor("flow Tensor", samples="x(5), 2")
def unsafe_chunk(input: AnyTensor, chunks: Int, dim: Int = 0) -> Views:
    """Do what `chunk` does, into copies."""
    return tuple([part.clone() for part in _chunk("unsafe_chunk", input, chunks, dim)])


_PARTED = "indices=indices_or_sections sections=indices_or_sections"


@functor(
    "flow Tensor",
    spelled=f"{_PARTED} tensor_indices_or_sections=indices_or_sections",
    samples="x(7), 3; x(2, 5), (1, 3), -1; x(5), (4, 2); x(5), i(2)",
)
def tensor_split(input: AnyTensor, indices_or_sections: IntOrInts, dim: Int = 0) -> Views:
    """Cut a tensor along a dimension into views: into so many, or at these indices.

    indices_or_sections: the number of parts, the first of which may be larger by one; or indices. A
        tensor is read.
    ShapeError: when the tensor is 0-d.
    ArgumentError: when the number of parts is below 1.

    >>> flow.tensor_split(flow.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    return _tensor_split("tensor_split", input, indices_or_sections, dim)


def _tensor_split(op: str, input: Tensor, given: Any, dim: int) -> Views:
    size, dim = _cut_size(op, "input", input, dim)
    given = given.tolist() if isinstance(given, Tensor) else given
    given = checks.check_ints(op, "indices_or_sections", given)
    if isinstance(given, int):
        _check_parts(op, "indices_or_sections", given, size, ArgumentError)
        step, rest = divmod(size, given)
        return _cut(input, dim, [step + (i < rest) for i in range(given)])
    bounds = [0, *[min(max(n + size if n < 0 else n, 0), size) for n in given], size]
    return _cut(input, dim, [max(b - a, 0) for a, b in itertools.pairwise(bounds)], bounds)


def _sides(name: str, dim: int, ndim: int, where: str) -> Any:
    """Declare the tensor_split of one dimension."""

    def author(input: AnyTensor, indices_or_sections: IntOrInts) -> Views:
        shape, given = input._data.shape, indices_or_sections
        if len(shape) < ndim:
            raise arg_error(name, "input", f"at least {ndim} dimension(s)", input, "unsqueeze it")
        place = min(dim, len(shape) - 1)
        if isinstance(given, int) and given > 0 and shape[place] % given:
            expected = f"a divisor of {shape[place]}"
            hint = "use tensor_split(), whose parts may differ"
            raise arg_error(name, "indices_or_sections", expected, given, hint)
        return _tensor_split(name, input, given, place)

    author.__name__ = author.__qualname__ = name
    author.__doc__ = f"""Cut a tensor {where} into views: into so many of one size, or at indices.

    ShapeError: when the tensor has too few dimensions, or the size is no multiple."""
    x = f"x{(4,) * ndim}"
    samples = f"{x}, 2; {x}, (1, 3)"
    return functor("flow Tensor", spelled=_PARTED, listed=True, samples=samples)(author)


hsplit = _sides("hsplit", 1, 1, "along its second dimension, vectors along the first,")
vsplit = _sides("vsplit", 0, 2, "along its first dimension")
dsplit = _sides("dsplit", 2, 3, "along its third dimension")


@functor("flow Tensor", samples="x(2, 3); x(2, 3), -1")
def unbind(input: AnyTensor, dim: Int = 0) -> Views:
    """Return the entries of one dimension as views.

    DimError: when `dim` is out of range.
    """
    size, dim = _cut_size("unbind", "input", input, dim, DimError)
    return _marked([dispatch1(_SELECT, input, {"dim": dim, "index": i}) for i in range(size)])


def _cut_size(op: str, name: str, x: Tensor, dim: int, kind: Any = ShapeError) -> tuple[int, int]:
    """Return the size of the dimension to cut, and the dimension counted from 0."""
    dim = check_dim(op, dim, x._data.ndim)
    if not x._data.ndim:
        raise checks.dimension_error(op, name, kind)
    return x._data.shape[dim], dim


def _even_sizes(size: int, step: int) -> list[int]:
    """Return the sizes of parts of `step` entries; the last one may be smaller."""
    return [min(step, size - start) for start in range(0, size, step)] if size else [0]


def _check_parts(
    op: str, argument: str, count: int, size: int, kind: type[FlowError] = ShapeError
) -> None:
    if count < 1:
        raise arg_error(op, argument, "at least 1", count, "ask for one part or more", kind)
    if count > size + _MOST_EMPTY:  # a list of them would fill the memory
        expected = f"at most {_MOST_EMPTY} parts more than the size {size}"
        raise arg_error(op, argument, expected, count, "ask for fewer parts", ArgumentError)


def _cut(tensor: Tensor, dim: int, sizes: list[int], starts: Iterable[int] | None = None) -> Views:
    starts = itertools.accumulate(sizes, initial=0) if starts is None else starts
    places = [{"dim": dim, "start": a, "length": n} for n, a in zip(sizes, starts, strict=False)]
    return _marked([dispatch1(_NARROW, tensor, place) for place in places])


def _marked(parts: list[Tensor]) -> Views:
    """Note that the views were made together: as in PyTorch, no such view is written in place."""
    for part in parts:
        if part._view is not None and part._view.origin is None:
            part._view.origin = SPLIT
    return tuple(parts)
