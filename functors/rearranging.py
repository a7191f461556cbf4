"""Repeating elements and moving them around: what users call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import DimError, ShapeError
from oneflow_lite.functors import checks
from oneflow_lite.functors.checks import check_dim, check_dims, check_shape, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Int, Integer, Matrices, Sizes
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

REPEAT = op_expr("repeat")
ROLL = op_expr("roll")
_INTERLEAVED = """x(2, 3), 2; x(2, 3), 2, -1; x(3, 2), fixed(i(3, n=3)), 0
    x(3), fixed(np.array([2, 0, 2])), output_size=4; x(3), fixed(i(1)), 0; i(3)"""


@functor("Tensor", samples="x(2, 3), 1, 2; x(2), (2, 3)")
def repeat(input: AnyTensor, *repeats: Sizes, **named: Any) -> Tensor:
    """Return copies of a tensor side by side.

    repeats: how many copies along each dimension, at least one number per dimension of `input`;
        further ones in front make new dimensions.
    ShapeError: when there are too few numbers or one is negative.

    >>> flow.tensor([1, 2]).repeat(2, 3)
    tensor([[1, 2, 1, 2, 1, 2],
            [1, 2, 1, 2, 1, 2]])
    """
    ndim = input._data.ndim
    if len(repeats) < ndim or any(n < 0 for n in repeats):
        expected = f"at least {ndim} numbers, none negative, for shape {input.shape}"
        raise wrong("repeat", "repeats", expected, repeats, "name every dimension, or use tile()")
    return dispatch1(REPEAT, input, {"sizes": repeats})


@functor("flow Tensor", samples="x(2, 3), (2,); x(2), (2, 3)")
def tile(input: AnyTensor, *dims: Sizes, **named: Any) -> Tensor:
    """Return copies of a tensor side by side; missing numbers, in front, are 1.

    ShapeError: when a number is negative.
    """
    if any(n < 0 for n in dims):
        mend = "pass how many copies are wanted"
        raise wrong("tile", "dims", "no negative number", dims, mend)
    return dispatch1(REPEAT, input, {"sizes": (1,) * (input._data.ndim - len(dims)) + dims})


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
        raise checks.no_dimension("flipud", "input", ShapeError)
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
        mend = "name the two that span the plane"
        raise wrong("rot90", "dims", "two dimensions", f"{dims}", mend)
    a, b = places
    y = F.flip(input, ((), (b,), (a, b), (a,))[k % 4])
    return y.transpose(a, b) if k % 2 else y


@functor("flow Tensor", samples="x(4), 1; x(2, 3), -2, 1; x(2, 3), (1, 2), (0, -1)")
def roll(input: AnyTensor, shifts: int | Sequence[int], dims: Any = None) -> Tensor:
    """Return a copy with entries moved along dimensions; what falls off comes back in front.

    shifts: by how many places.
    dims: the dimension of each shift. Without it the tensor is shifted as if flattened.
    ShapeError: when there is not one shift for each dimension.
    DimError: when a dimension is out of range.

    >>> flow.roll(flow.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """
    ndim = input._data.ndim
    steps = check_shape("roll", (shifts,), "shifts")
    given = () if dims is None else tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if not steps or (len(steps) != len(given) and (given or len(steps) != 1)):
        expected = f"one shift for each of {len(given)} dims" if given else "one shift"
        raise wrong("roll", "shifts", expected, f"{shifts}", "make shifts and dims equally long")
    if not given:
        return dispatch1(ROLL, input, {"shifts": steps, "dims": None})
    if not ndim:
        expected = "no dims for a 0-d tensor"
        raise wrong("roll", "dims", expected, dims, "leave them out", DimError)
    total: dict[int, int] = {}  # a dimension named twice is shifted by the sum
    for dim, step in zip(given, steps, strict=True):
        place = check_dim("roll", dim, ndim, "dims")
        total[place] = total.get(place, 0) + step
    return dispatch1(ROLL, input, {"shifts": tuple(total.values()), "dims": tuple(total)})


@functor("flow Tensor", samples=_INTERLEAVED)
def repeat_interleave(
    input: AnyTensor, repeats: Any = None, dim: Any = None, *, output_size: int | None = None
) -> Tensor:
    """Return each entry of a dimension, or of the flattened tensor, as often as told.

    repeats: one count for all, or a tensor with one for each entry. Without it, `input` itself
        holds counts, and the result says which positions they stand for.
    output_size: the sum of the counts, if it is known; otherwise a device has to be asked.
    ShapeError: when there is not one count for each entry.
    ArgumentError: when a count is negative, or the sum is not `output_size`.

    >>> flow.repeat_interleave(flow.tensor([5, 6]), flow.tensor([2, 1]))
    tensor([5, 5, 6])
    """
    op = "repeat_interleave"
    if repeats is None:
        return _positions(op, input, "input", None, output_size)
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
    y = F.expand(F.unsqueeze(input, dim + 1), (*before, entries, count, *after))
    return F.reshape(y, (*before, entries * count, *after))


def _positions(op: str, counts: Tensor, name: str, entries: int | None, total: Any) -> Tensor:
    """Return each position as often as a vector counts it."""
    shape = checks.require_integer(op, counts, name)._data.shape
    if len(shape) > 1 or (entries is not None and shape not in ((), (entries,))):
        expected = "a vector" if entries is None else f"one count, or {entries} of them"
        raise wrong(op, "repeats", expected, counts, "give one for each entry of the dimension")
    return F.repeat_index(F.reshape(counts, -1), output_size=total)


@functor("flow", samples="i(4, n=6), (2, 3); i(2, 2, n=4), 4")
def unravel_index(indices: Integer, shape: Any) -> tuple[Tensor, ...]:
    """Return the coordinates of positions in a tensor of this shape, counted in C order.

    shape: one or several sizes, none of them negative.

    >>> flow.unravel_index(flow.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    sizes = check_shape("unravel_index", (shape,), "shape")
    found, rest = [], indices
    for n in sizes[:0:-1]:
        found.append(rest % n)
        rest = rest // n
    return (rest % sizes[0], *found[::-1]) if sizes else ()


@functor("flow", samples="x(2, 3), (1, 2); x(3), [-1, 2], 1.5")
def constant_pad_nd(input: AnyTensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Add entries of one value before and after the last dimensions, as `nn.functional.pad`."""
    return F.pad(input, pad, "constant", value)
