"""Kernels that read or write the entries of one dimension named by a vector of indices."""

from math import prod

from oneflow_lite.kernels.index_arrays import add_at, check_range, take
from oneflow_lite.kernels.infer_rules import in_c_order, like_first, mask_of_dim, taken
from oneflow_lite.kernels.numerics import copied
from oneflow_lite.registry import register_kernel


@register_kernel("index_select", infer=taken)
def index_select(xp, x, index, *, dim, out=None):
    check_range(xp, "index_select", "index", index, x.shape[dim])
    return take(xp, x, index, dim, out)


@register_kernel("index_add")
def index_add(xp, x, index, source, *, dim, alpha=1):
    check_range(xp, "index_add", "index", index, x.shape[dim])
    # With `dim` first, each index names one run of memory.
    y = xp.array(xp.moveaxis(x, dim, 0), order="C")
    moved = xp.moveaxis(source, dim, 0)
    width = prod(y.shape[1:])
    positions = index.astype(xp.int64).reshape(-1, 1) * width + xp.arange(width)
    add_at(xp, y.reshape(-1), positions, moved if alpha == 1 else moved * x.dtype.type(alpha))
    return xp.moveaxis(y, 0, dim)


@register_kernel("index_copy", infer=in_c_order(like_first), reuses="x")
def index_copy(xp, x, index, source, *, dim, out=None):
    check_range(xp, "index_copy", "index", index, x.shape[dim])
    y = copied(x, out)
    # In C order, so that of two values for one element the later one stays.
    y[(slice(None),) * dim + (index,)] = xp.ascontiguousarray(source)
    return y


@register_kernel("index_mask", infer=mask_of_dim)
def index_mask(xp, index, *, dim, shape):
    """Return a mask that broadcasts to `shape` and is True at the indices along `dim`."""
    size = shape[dim]
    check_range(xp, "index_fill", "index", index, size, negative=True)
    mask = xp.zeros(size, bool)
    mask[index] = True
    return mask.reshape((size,) + (1,) * (len(shape) - 1 - dim))
