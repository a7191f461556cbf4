"""Functions that users call to repeat elements, to move them, and for diagonals of matrices."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import DimError, ShapeError, arg_error, memory_for
from oneflow_lite.functors.creation import LAID_OUT, from_host
from oneflow_lite.functors.declaring import checks, domains
from oneflow_lite.functors.declaring.checks import check_dim, check_dims, check_ndim, check_shape
from oneflow_lite.functors.declaring.declare import functor, keyword, with_options
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    Count,
    Dim,
    Int,
    IntOrInts,
    Matrices,
    Sizes,
    TensorOrInt,
)
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

_REPEAT, _ROLL = op_expr("repeat"), op_expr("roll")
_INTERLEAVED = """x(2, 3), 2; x(2, 3), 2, -1; x(3, 2), fixed(i(3, n=3)), 0
    x(3), fixed(np.array([2, 0, 2])), output_size=4; x(3), fixed(i(1)), 0; i(3)"""


@functor("Tensor", samples="x(2, 3), 1, 2; x(2), (2, 3)")
def repeat(input: AnyTensor, *repeats: Sizes, **named: Any) -> Tensor:
    """Return copies of a tensor side by side.

    repeats: how many copies along each dimension; further numbers in front make new dimensions.
    ShapeError: when a number is missing or negative.

    >>> flow.tensor([1, 2]).repeat(1, 3)
    tensor([[1, 2, 1, 2, 1, 2]])
    """
    ndim = input._data.ndim
    if len(repeats) < ndim or any(n < 0 for n in repeats):
        expected = f"at least {ndim} numbers, none negative, for shape {input.shape}"
        raise arg_error(
            "repeat", "repeats", expected, repeats, "name every dimension, or use tile()"
        )
    return dispatch1(_REPEAT, input, {"sizes": repeats})


@functor("flow Tensor", samples="x(2, 3), (2,); x(2), (2, 3)")
def tile(input: AnyTensor, *dims: Sizes, **named: Any) -> Tensor:
    """Return copies of a tensor side by side; missing numbers, in front, are 1.

    ShapeError: when a number is negative.
    """
    if any(n < 0 for n in dims):
        raise arg_error(
            "tile", "dims", "no negative number", dims, "pass how many copies are wanted"
        )
    return dispatch1(_REPEAT, input, {"sizes": (1,) * (input._data.ndim - len(dims)) + dims})


@functor("flow Tensor", samples="x(2, 3), (0,); x(2, 3), (0, -1)")
def flip(input: AnyTensor, *dims: Sizes, **named: Any) -> Tensor:
    """Return a copy with the order of entries reversed along the given dimensions.

    DimError: when a dimension is out of range or given twice.
    """
    # check_dims takes () as all dimensions, flip as none.
    places = check_dims("flip", dims, input._data.ndim, "dims") if dims else ()
    return dispatch1(op_expr("flip"), input, {"dims": places})


@functor("flow Tensor")
def fliplr(input: Matrices) -> Tensor:
    """Return a copy with the order of columns reversed."""
    return F.flip(input, 1)


@functor("flow Tensor", samples="x(2, 3); x(2)")
def flipud(input: AnyTensor) -> Tensor:
    """Return a copy with the order of rows reversed.

    ShapeError: when `input` is 0-d.
    """
    if not input._data.ndim:
        raise checks.dimension_error("flipud", "input", ShapeError)
    return F.flip(input, 0)


@functor("flow Tensor", samples="x(2, 3); x(2, 3, 2), 2, (0, -1); x(2, 3), -1; x(2, 3), 4")
def rot90(input: AnyTensor, k: Int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy turned k times by 90° from the first of two dimensions to the second.

    ShapeError, DimError: when `dims` are not two dimensions of the tensor.

    >>> flow.rot90(flow.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    places = check_dims("rot90", dims, input._data.ndim, "dims")
    if len(places) != 2:
        hint = "name the two that span the plane"
        raise arg_error("rot90", "dims", "two dimensions", f"{dims}", hint)
    a, b = places
    y = F.flip(input, ((), (b,), (a, b), (a,))[k % 4])
    return y.transpose(a, b) if k % 2 else y


@functor("flow Tensor", samples="x(4), 1; x(2, 3), -2, 1; x(2, 3), (1, 2), (0, -1)")
def roll(input: AnyTensor, shifts: int | Sequence[int], dims: IntOrInts = None) -> Tensor:
    """Return a copy with entries moved along dimensions; the last entries come back in front.

    With a negative shift, the first entries come back behind.

    dims: the dimension of each shift. Without it the tensor is shifted as if flattened.
    ShapeError: when shifts and dimensions differ in number.
    DimError: when a dimension is out of range.

    >>> flow.roll(flow.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """
    ndim = input._data.ndim
    steps = check_shape("roll", (shifts,), "shifts")
    given = () if dims is None else tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if not steps or (len(steps) != len(given) and (given or len(steps) != 1)):
        expected = f"one shift for each of {len(given)} dims" if given else "one shift"
        raise arg_error(
            "roll", "shifts", expected, f"{shifts}", "make shifts and dims equally long"
        )
    if not given:
        return dispatch1(_ROLL, input, {"shifts": steps, "dims": None})
    if not ndim:
        raise arg_error(
            "roll", "dims", "no dims for a 0-d tensor", dims, "leave them out", DimError
        )
    total: dict[int, int] = {}  # a dimension named twice is shifted by the sum
    for dim, step in zip(given, steps, strict=True):
        place = check_dim("roll", dim, ndim, "dims")
        total[place] = total.get(place, 0) + step
    return dispatch1(_ROLL, input, {"shifts": tuple(total.values()), "dims": tuple(total)})


@functor("flow Tensor", samples=_INTERLEAVED)
def repeat_interleave(
    input: AnyTensor | None = None,
    repeats: TensorOrInt = None,
    dim: IntOrInts = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Return each entry of a dimension, or of the flattened tensor, as often as `repeats` says.

    repeats: a count for all entries, or a vector with a count for each entry. Without it `input`
        holds the counts, and the result the positions of entries.
    output_size: the sum of the counts, if known; otherwise a device has to be asked.
    ShapeError: when counts and entries differ in number.
    ArgumentError: when a count is negative, or the sum is not `output_size`.

    >>> flow.repeat_interleave(flow.tensor([5, 6]), flow.tensor([2, 1]))
    tensor([5, 5, 6])
    """
    op = "repeat_interleave"
    if input is None or repeats is None:
        name, counts = ("repeats", repeats) if input is None else ("input", input)
        return _positions(op, checks.check_tensor(op, name, counts), name, None, output_size)
    if dim is None:
        input, dim = F.reshape(input, -1), 0
    dim = check_dim(op, dim, input._data.ndim)
    if not input._data.ndim:
        input = F.reshape(input, 1)
    shape = input._data.shape
    before, entries, after = shape[:dim], shape[dim], shape[dim + 1 :]
    if isinstance(repeats, Tensor):
        if repeats._data.size == 1 != entries:
            repeats = F.expand(F.reshape(repeats, 1), entries)
        return F.index_select(input, dim, _positions(op, repeats, "repeats", entries, output_size))
    count = checks.check_int(op, "repeats", repeats, 0)
    # One count needs no index: a new dimension behind the entries is expanded.
    y = F.expand(F.unsqueeze(input, dim + 1), (*before, entries, count, *after))
    return F.reshape(y, (*before, entries * count, *after))


def _positions(op: str, counts: Tensor, name: str, entries: int | None, total: Any) -> Tensor:
    shape = checks.require_integer(op, counts, name)._data.shape
    if len(shape) > 1 or (entries is not None and shape not in ((), (entries,))):
        expected = "a vector" if entries is None else f"one count, or {entries} of them"
        raise arg_error(op, "repeats", expected, counts, "give one for each entry of the dimension")
    return F.repeat_index(F.reshape(counts, -1), output_size=total)


@functor("flow", samples="i(4, n=6), (2, 3); i(2, 2, n=4), 4")
def unravel_index(indices: domains.Integer, shape: IntOrInts) -> tuple[Tensor, ...]:
    """Return the coordinates of positions in a tensor of this shape, counted in C order.

    >>> flow.unravel_index(flow.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    sizes = check_shape("unravel_index", (shape,), "shape")
    coordinates, rest = [], checks.cast(indices, np.int64)
    for n in sizes[:0:-1]:
        coordinates.append(rest % n)
        rest = rest // n
    return (rest % sizes[0], *coordinates[::-1]) if sizes else ()


@functor("flow", samples="x(2, 3), (1, 2); x(3), [-1, 2], 1.5")
def constant_pad_nd(input: AnyTensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Add entries of one value before and after the last dimensions, as `nn.functional.pad`."""
    return F.pad(input, pad, "constant", value)


# --- Diagonals and triangles ----------------------------------------------------------------------


_triangle = functools.partial(
    functor, "flow Tensor", out="same", twin=True, samples="x(3, 3); x(2, 2, 3), -1; x(3, 2), 1"
)


@_triangle()
def tril(input: Matrices, diagonal: Int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal.

    diagonal: the last diagonal to keep: 0 the main diagonal, 1 the next above it.

    >>> flow.tril(flow.ones(2, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """


@_triangle()
def triu(input: Matrices, diagonal: Int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal, which is kept and counted as by `tril`."""


@functor("flow Tensor", samples="x(3, 3); x(3, 2), -1; x(2, 3, 2), 0, -1, 1")
def diagonal(input: AnyTensor, offset: Int = 0, dim1: Dim = 0, dim2: Dim = 1) -> Tensor:
    """Return a view of the diagonals of two dimensions, as a new last dimension.

    offset: 0 the main diagonal, positive above it.
    ShapeError: when both dimensions are the same.

    >>> flow.diagonal(flow.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return dispatch1(op_expr("diagonal"), input, _place("diagonal", offset, dim1, dim2))


@functor("flow Tensor", samples="x(3); x(2, 2), 1; x(2, 2), -1, 0, -1")
def diag_embed(input: AnyTensor, offset: Int = 0, dim1: Int = -2, dim2: Int = -1) -> Tensor:
    """Return matrices whose diagonal is the last dimension of `input`, and 0 elsewhere.

    dim1, dim2: of the result.
    ShapeError: when `input` is 0-d, or both dimensions are the same.
    DimError: when a dimension is out of range.
    """
    op, rank = "diag_embed", input._data.ndim + 1
    if rank == 1:
        raise checks.dimension_error(op, "input", ShapeError)
    dim1, dim2 = check_dim(op, dim1, rank, "dim1"), check_dim(op, dim2, rank, "dim2")
    return dispatch1(op_expr("diag_embed"), input, _place(op, offset, dim1, dim2))


def _place(op: str, offset: int, dim1: int, dim2: int) -> dict[str, int]:
    if dim1 != dim2:
        return {"offset": offset, "dim1": dim1, "dim2": dim2}
    raise arg_error(
        op, "dim2", "another dimension than dim1", dim2, "name two different dimensions"
    )


@functor("flow Tensor", out="same", samples="x(3); x(2), -1; x(3, 2); x(3, 3), 1")
def diag(input: AnyTensor, diagonal: Int = 0) -> Tensor:
    """Return a vector as a diagonal matrix, or the diagonal of a matrix as a vector, copied.

    ShapeError: when `input` is neither.
    """
    if check_ndim("diag", input, (1, 2))._data.ndim == 1:
        return diag_embed(input, diagonal)
    return input.diagonal(diagonal).clone()


@functor("flow Tensor", samples="x(2, 2); x(3), -1")
def diagflat(input: AnyTensor, offset: Int = 0) -> Tensor:
    """Return a matrix with all elements on a diagonal, and 0 elsewhere."""
    return diag_embed(F.reshape(input, -1), offset)


@functor("flow Tensor", samples="x(3, 2); z(2, 2)")
def trace(input: AnyTensor) -> Tensor:
    """Return the sum of the main diagonal of a matrix.

    ShapeError: when `input` is no matrix.
    """
    return diagonal(check_ndim("trace", input, (2,))).sum()


def _indices(name: str, places: Any, which: str, second_row: int) -> Any:
    """Declare the function that returns the places of a triangle."""

    def author(
        row: Count, col: Count, offset: Int = 0, *, dtype: Any = None, **options: Any
    ) -> Tensor:
        with memory_for(name, row=row, col=col, offset=offset):
            indices = np.stack(places(row, offset, col))
        chosen = np.int64 if dtype is None else dtype
        return from_host(name, indices, {"dtype": chosen, **options}, "iu")

    summary = f"""Return the places of the {which} triangle of a matrix: rows, then columns.

    offset: the diagonal that bounds it, as in `{name[:4]}`.
    dtype, device: int64 on the CPU by default.
    DTypeError: when the dtype is not an integer one.

    >>> flow.{name}(2, 2).tolist()
    [[0, {second_row}, 1], [0, {1 - second_row}, 1]]
    """
    options = (keyword("device"), keyword("requires_grad", "bool"), *LAID_OUT)
    samples = "2, 3; 3, 3, offset=-1; 2, 3, 1, dtype=int32"
    return with_options("flow", options, name, summary, samples=samples)(author)


tril_indices = _indices("tril_indices", np.tril_indices, "lower", 1)
triu_indices = _indices("triu_indices", np.triu_indices, "upper", 0)


# --- Channels and positions -----------------------------------------------------------------------


@functor("flow functional", samples="x(1, 4, 2, 3), 2; x(9, 1, 2), 3; x(2, 1, 2), 1")
def pixel_shuffle(input: AnyTensor, upscale_factor: domains.Positive) -> Tensor:
    """Make larger images of fewer channels: (*, C·r², H, W) becomes (*, C, H·r, W·r).

    Shi et al., Real-Time Single Image and Video Super-Resolution, 2016.

    upscale_factor: r.
    ShapeError: when there are fewer than three dimensions, or r² does not divide the channels.

    >>> flow.pixel_shuffle(flow.arange(4.).reshape(4, 1, 1), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    r = upscale_factor
    _check("pixel_shuffle", input, -3, r * r)
    *lead, channels, height, width = input.shape
    blocks = input.reshape(*lead, channels // (r * r), r, r, height, width)
    size = (*lead, channels // (r * r), height * r, width * r)
    return _copy(blocks.movedim((-4, -3), (-3, -1)), size)


@functor("flow functional", samples="x(1, 1, 4, 2), 2; x(2, 3, 6), 3; x(2, 1, 2), 1")
def pixel_unshuffle(input: AnyTensor, downscale_factor: domains.Positive) -> Tensor:
    """Undo `pixel_shuffle`: (*, C, H·r, W·r) becomes (*, C·r², H, W).

    downscale_factor: r.
    ShapeError: when there are fewer than three dimensions, or r does not divide height and width.
    """
    r = downscale_factor
    _check("pixel_unshuffle", input, -2, r)
    _check("pixel_unshuffle", input, -1, r)
    *lead, channels, height, width = input.shape
    blocks = input.reshape(*lead, channels, height // r, r, width // r, r)
    size = (*lead, channels * r * r, height // r, width // r)
    return _copy(blocks.movedim((-3, -1), (-4, -3)), size)


@functor("flow functional", samples="x(1, 4, 3), 2; x(2, 6, 1, 2), 3; x(1, 2, 3), 1")
def channel_shuffle(input: AnyTensor, groups: domains.Positive) -> Tensor:
    """Deal the channels of (N, C, *) out to `groups` in turn (Zhang et al., ShuffleNet, 2018).

    ShapeError: when there are fewer than three dimensions, or the channels cannot be dealt.

    >>> flow.channel_shuffle(flow.arange(4.).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    _check("channel_shuffle", input, 1, groups)
    batch, channels, *size = input.shape
    blocks = input.reshape(batch, groups, channels // groups, *size)
    return _copy(blocks.transpose(1, 2), input.shape)


def _copy(moved: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the moved elements in new memory, in C order."""
    y = moved.reshape(shape)
    return y.clone() if y.is_view() else y


def _check(op: str, input: Tensor, dim: int, factor: int) -> None:
    if input.ndim < 3 or input.shape[dim] % factor:
        expected = f"three dimensions or more, and a multiple of {factor} in dimension {dim}"
        raise arg_error(op, "input", expected, input, "reshape it, or choose another factor")
