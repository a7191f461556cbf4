"""Kernels of diagonals and triangles of matrices."""

from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import in_c_order, like_first, of_shape, register_view
from oneflow_lite.kernels.numerics import zeros
from oneflow_lite.registry import register_kernel


@register_kernel("tril", infer=in_c_order(like_first))
def tril(xp, x, *, diagonal=0):
    return xp.tril(x, diagonal)


@register_kernel("triu", infer=in_c_order(like_first))
def triu(xp, x, *, diagonal=0):
    return xp.triu(x, diagonal)


@register_view("diagonal")
def diagonal(xp, x, *, offset, dim1, dim2):
    y = x.diagonal(offset, dim1, dim2)
    if on_host(xp):  # NumPy marks it read-only; it is a view as good as any
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


@register_kernel("diag_embed")
def diag_embed(xp, x, *, offset, dim1, dim2, out=None):
    size = x.shape[-1] + abs(offset)
    shape = list(x.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, size)
    return diagonal_grad(xp, x, offset=offset, dim1=dim1, dim2=dim2, shape=shape, out=out)
