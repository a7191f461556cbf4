"""Kernels that lay the windows of planes side by side as columns, and add columns back to planes.

Each is the other's transpose. What lies before the channels numbers the images.
"""

import math

from oneflow_lite.array_spec import ArraySpec
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import in_c_order
from oneflow_lite.kernels.windows import count_windows, inside, padded, sliding_windows, taps
from oneflow_lite.registry import register_kernel


@in_c_order
def _columns(x, *, kernel_size, **geometry):
    *lead, channels = x.shape[: x.ndim - len(kernel_size)]
    blocks = count_windows(x.shape[len(lead) + 1 :], kernel_size, **geometry)
    return ArraySpec((*lead, channels * math.prod(kernel_size), math.prod(blocks)), x.dtype)


@in_c_order
def _planes(x, *, output_size, kernel_size, **geometry):
    *lead, rows, _ = x.shape
    return ArraySpec((*lead, rows // math.prod(kernel_size), *output_size), x.dtype)


@register_kernel("im2col", infer=_columns)
def im2col(xp, x, *, kernel_size, dilation, padding, stride):
    """y[…, c·K + k, s] = x[…, c, s·stride + k·dilation - padding], zeros where that is outside"""
    *lead, channels = x.shape[: x.ndim - len(kernel_size)]
    blocks = count_windows(x.shape[len(lead) + 1 :], kernel_size, stride, padding, dilation)
    x = padded(xp, x, padding, padding)
    columns = sliding_windows(xp, x, kernel_size, blocks, stride, dilation).copy()
    return columns.reshape(*lead, channels * math.prod(kernel_size), math.prod(blocks))


@register_kernel("col2im", infer=_planes)
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
