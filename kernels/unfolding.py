"""Windows along one dimension, as a view of the input."""

from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import of_shape, register_view
from oneflow_lite.kernels.numerics import zeros
from oneflow_lite.registry import register_kernel


@register_view("unfold")
def unfold(xp, x, *, dimension, size, step):
    if x.ndim == 0:
        return x[None][:size]
    stride = x.strides[dimension]
    shape, strides = list(x.shape), list(x.strides)
    shape[dimension] = (shape[dimension] - size) // step + 1
    strides[dimension] = stride * step
    y = xp.lib.stride_tricks.as_strided(x, (*shape, size), (*strides, stride))
    if on_host(xp) and step < size and shape[dimension] > 1:
        y.flags.writeable = False  # windows overlap: an element would be written more than once
    return y


@register_kernel("unfold_grad", infer=of_shape)
def unfold_grad(xp, dy, *, dimension, size, step, shape, out=None):
    """Return zeros of `shape` with the windows dy added where they came from."""
    dx = zeros(xp, shape, dy.dtype, out)
    if not shape:
        dx[...] = dy.sum()
        return dx
    along = xp.moveaxis(dx, dimension, -1)
    windows = xp.moveaxis(dy, dimension, -2)
    count = windows.shape[-2]
    if size <= count:
        for k in range(size):
            along[..., k : k + (count - 1) * step + 1 : step] += windows[..., k]
    else:
        for k in range(count):
            along[..., k * step : k * step + size] += windows[..., k, :]
    return dx
