"""Windows along one dimension as a view, and windows of planes side by side as columns.

`im2col` and `col2im` are each other's transposes. Dimensions before the channels number images.
"""

import math

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import arg_error
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import in_c_order, of_shape, register_view
from oneflow_lite.kernels.numerics import zeros
from oneflow_lite.kernels.windows import count_windows, inside, padded, sliding_windows, taps
from oneflow_lite.ops.registry import register_kernel


def _windows(call, x, *, dimension, size, step):
    """Take windows of the dimension behind the batch; a number is one window."""
    if call.ndim(0):
        dimension = dimension + 1 if dimension >= 0 else dimension
        return call.run(x, dimension=dimension, size=size, step=step)
    y = call.run(x, dimension=0, size=1, step=1)
    return call.F.getitem(y, index=(slice(None), slice(size)))


def _windows_back(call, dy, *, dimension, size, step, shape):
    dimension = dimension + 1 if dimension >= 0 else dimension
    if not shape:
        return call.F.sum(dy, dim=tuple(range(1, call.ndim(0) + 1)), keepdim=False)
    shape = (call.size, *shape)
    return call.run(dy, dimension=dimension, size=size, step=step, shape=shape)


@register_view("unfold", batch=_windows)
def unfold(xp, x, *, dimension, size, step):
    if x.ndim == 0:
        return x[None][:size]
    if step < 1 or not 0 <= size <= x.shape[dimension]:  # windows outside the memory
        got, hint = f"size {size} and step {step}", "take smaller windows"
        raise arg_error("unfold", "size", f"windows inside shape {x.shape}", got, hint)
    stride = x.strides[dimension]
    shape, strides = list(x.shape), list(x.strides)
    shape[dimension] = (shape[dimension] - size) // step + 1
    strides[dimension] = stride * step
    y = xp.lib.stride_tricks.as_strided(x, (*shape, size), (*strides, stride))
    if on_host(xp) and step < size and shape[dimension] > 1:
        y.flags.writeable = False  # windows overlap: an element would be written more than once
    return y


@register_kernel("unfold_grad", infer=of_shape, batch=_windows_back)
@in_float32
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


@in_c_order
def _columns(x, *, kernel_size, **geometry):
    *lead, channels = x.shape[: x.ndim - len(kernel_size)]
    blocks = count_windows(x.shape[len(lead) + 1 :], kernel_size, **geometry)
    return ArraySpec((*lead, channels * math.prod(kernel_size), math.prod(blocks)), x.dtype)


@in_c_order
def _planes(x, *, output_size, kernel_size, **geometry):
    *lead, rows, _ = x.shape
    return ArraySpec((*lead, rows // math.prod(kernel_size), *output_size), x.dtype)


@register_kernel("im2col", infer=_columns, sbp="b*->b", linear="x")
def im2col(xp, x, *, kernel_size, dilation, padding, stride):
    """y[…, c·K + k, s] = x[…, c, s·stride + k·dilation - padding], zeros where that is outside"""
    *lead, channels = x.shape[: x.ndim - len(kernel_size)]
    blocks = count_windows(x.shape[len(lead) + 1 :], kernel_size, stride, padding, dilation)
    x = padded(xp, x, padding, padding)
    columns = sliding_windows(xp, x, kernel_size, blocks, stride, dilation).copy()
    return columns.reshape(*lead, channels * math.prod(kernel_size), math.prod(blocks))


@register_kernel("col2im", infer=_planes, sbp="b*->b", linear="x")
@in_float32
def col2im(xp, x, *, output_size, kernel_size, dilation, padding, stride):
    *lead, rows, _ = x.shape
    size = math.prod(kernel_size)
    blocks = count_windows(output_size, kernel_size, stride, padding, dilation)
    x = x.reshape(*lead, rows // size, size, *blocks)
    padded_size = [n + 2 * p for n, p in zip(output_size, padding, strict=True)]
    y = xp.zeros((*lead, rows // size, *padded_size), x.dtype)
    every = (slice(None),) * len(blocks)
    for k, place in enumerate(taps(kernel_size, blocks, stride, dilation)):
        y[place] += x[(..., k, *every)]
    return y[inside(output_size, padding)].copy() if any(padding) else y
