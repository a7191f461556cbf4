"""Kernels that repeat elements, move them around, and find the diagonals of matrices."""

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.kernels.batches import flat
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import in_c_order, like_first, of_shape, register_view, tiled
from oneflow_lite.kernels.numerics import copied, zeros
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.ops.sbp_rules import Way


def _repeated_whole(shapes, attrs):
    front = len(attrs["sizes"]) - len(shapes[0])
    return [Way((i,), (front + i,)) for i, n in enumerate(attrs["sizes"][front:]) if n == 1]


def _batch_of_repeated(call, x, *, sizes):
    return call.run(call.front(0, len(sizes)), sizes=(1, *sizes))


@register_kernel("repeat", infer=tiled, sbp=_repeated_whole, linear="x", batch=_batch_of_repeated)
def repeat(xp, x, *, sizes):
    """`sizes` counts copies, one for each dimension of the result."""
    return xp.tile(x, sizes)


@register_kernel("flip", infer=in_c_order(like_first), linear="x")
def flip(xp, x, *, dims, out=None):
    return copied(xp.flip(x, dims), out)


def _batch_of_rolled(call, x, *, shifts, dims):
    if dims is not None:
        return call.run(x, shifts=shifts, dims=tuple([d % (x.ndim - 1) + 1 for d in dims]))
    return call.F.reshape(call.run(flat(call, x), shifts=shifts, dims=(1,)), shape=x.shape)


@register_kernel("roll", infer=in_c_order(like_first), linear="x", batch=_batch_of_rolled)
def roll(xp, x, *, shifts, dims):
    """Without `dims` the flattened array is rolled, by a single shift."""
    return xp.roll(x, shifts[0]) if dims is None else xp.roll(x, shifts, dims)


def _check_repeats(repeats, output_size):
    if repeats.size and repeats.min() < 0:
        raise arg_error(
            "repeat_interleave",
            "repeats",
            expected="counts of at least 0",
            got=int(repeats.min()),
            hint="clamp them",
            kind=ArgumentError,
        )
    total = repeats.sum(dtype=np.float64)
    if total * repeats.itemsize >= 2.0**63:  # NumPy counts them without a look
        raise arg_error(
            "repeat_interleave",
            "repeats",
            expected="counts whose sum an array can have",
            got=f"{total:g}",
            hint="give smaller ones",
            kind=ArgumentError,
        )
    if output_size is not None and output_size != repeats.sum():
        raise arg_error(
            "repeat_interleave",
            "output_size",
            expected=f"the sum of repeats, {int(repeats.sum())}",
            got=output_size,
            hint="leave it out, and it is counted",
            kind=ArgumentError,
        )


def _repeated(repeats, *, output_size):
    return None if output_size is None else ArraySpec((output_size,), np.dtype(np.int64))


def _batch_of_positions(call, repeats, *, output_size):
    return NotImplemented if output_size is not None else call.refuse()


@register_kernel(
    "repeat_index",
    infer=_repeated,
    dynamic_shape=lambda _, output_size: output_size is None,
    batch=_batch_of_positions,
)
def repeat_index(xp, repeats, *, output_size):
    """Return each position as often as `repeats` says there; counted here without `output_size`."""
    if on_host(xp):
        _check_repeats(repeats, output_size)
        return np.repeat(np.arange(repeats.size), repeats)
    # CuPy's repeat takes counts from the host alone: a search among the ends of copies does it.
    ends = xp.cumsum(repeats)
    total = output_size if output_size is not None else int(ends[-1]) if ends.size else 0
    return xp.searchsorted(ends, xp.arange(total), side="right")


# --- Diagonals and triangles ----------------------------------------------------------------------


@register_kernel("tril", infer=in_c_order(like_first), sbp="...MN->...", linear="x")
def tril(xp, x, *, diagonal=0):
    return xp.tril(x, diagonal)


@register_kernel("triu", infer=in_c_order(like_first), sbp="...MN->...", linear="x")
def triu(xp, x, *, diagonal=0):
    return xp.triu(x, diagonal)


@register_view("diagonal")
def diagonal(xp, x, *, offset, dim1, dim2):
    y = x.diagonal(offset, dim1, dim2)
    if on_host(xp):  # NumPy marks it read-only, though each element stands in it once
        y.flags.writeable = x.flags.writeable
    return y


@register_kernel("diagonal_grad", infer=of_shape)
def diagonal_grad(xp, dy, *, offset, dim1, dim2, shape, out=None):
    dx = zeros(xp, shape, dy.dtype, out)
    rows = xp.arange(dy.shape[-1])
    # Transposed so that the two dimensions stand last, dx is still written in place.
    matrices = xp.moveaxis(dx, (dim1, dim2), (-2, -1))
    matrices[..., rows + max(-offset, 0), rows + max(offset, 0)] = dy
    return dx


@register_kernel("diag_embed", batch="front")
def diag_embed(xp, x, *, offset, dim1, dim2, out=None):
    size = x.shape[-1] + abs(offset)
    shape = list(x.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, size)
    return diagonal_grad(xp, x, offset=offset, dim1=dim1, dim2=dim2, shape=shape, out=out)
