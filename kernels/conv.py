"""Kernels of convolution, in any number of spatial dimensions, and of its two transposed maps.

A convolution is one matrix product on columns: the windows of the input, copied side by side. The
copy holds a few images at a time, and nothing of it is kept for the backward pass.
"""

import math

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.windows import images_at_once, inside, padded, sliding_windows, taps
from oneflow_lite.registry import register_kernel


@register_kernel("conv")
@in_float32
def conv(xp, x, weight, bias, *, stride, padding, dilation, groups):
    """y[n, o, s] = Σ_c Σ_k weight[o, c, k] x[n, c, s·stride + k·dilation] + bias[o]"""
    channels, *kernel_size = weight.shape
    windows = sliding_windows(
        xp, padded(xp, x, padding, padding), kernel_size[1:], stride, dilation
    )
    output_size = windows.shape[-len(stride) :]
    y = xp.empty((len(x), channels, *output_size), x.dtype)
    grouped = y.reshape(len(x), groups, channels // groups, math.prod(output_size))
    filters = weight.reshape(groups, channels // groups, math.prod(kernel_size))
    for images, columns in _columns(xp, windows, groups):
        part = xp.matmul(filters, columns, out=grouped[images])
        if bias is not None:
            part += bias.reshape(groups, channels // groups, 1)
    return y


@register_kernel("conv_weight_grad")
@in_float32
def conv_weight_grad(xp, dy, x, *, kernel_size, stride, padding, dilation, groups):
    """dweight[o, c, k] = Σ_n Σ_s dy[n, o, s] x[n, c, s·stride + k·dilation]"""
    windows = sliding_windows(xp, padded(xp, x, padding, padding), kernel_size, stride, dilation)
    batch, channels, *output_size = dy.shape
    dweight = xp.zeros((channels, x.shape[1] // groups, *kernel_size), x.dtype)
    filters = dweight.reshape(groups, channels // groups, math.prod(dweight.shape[1:]))
    dy = dy.reshape(batch, groups, channels // groups, math.prod(output_size))
    products = None
    for images, columns in _columns(xp, windows, groups):
        if products is None:  # the first part of the batch is the largest
            products = xp.empty((len(columns), *filters.shape), x.dtype)
        rows = columns.swapaxes(-1, -2)
        filters += xp.matmul(dy[images], rows, out=products[: len(columns)]).sum(axis=0)
    return dweight


@register_kernel("conv_input_grad")
@in_float32
def conv_input_grad(xp, dy, weight, *, input_size, stride, padding, dilation, groups):
    """dx[n, c, s·stride + k·dilation] = Σ_o weight[o, c, k] dy[n, o, s], summed over k and s"""
    batch, filters, *output_size = dy.shape
    channels, *kernel_size = weight.shape[1:]  # of one group
    filters //= groups
    positions, size = math.prod(output_size), math.prod(kernel_size)
    # What is added up should lie in long runs of memory: rows of the image, or channels.
    channels_last = channels > output_size[-1]
    weight = weight.reshape(groups, filters, channels, size)
    if channels_last:
        weight = xp.ascontiguousarray(weight.transpose(3, 0, 1, 2))
    else:
        weight = weight.reshape(groups, filters, channels * size).swapaxes(1, 2)
    dy = dy.reshape(batch, groups, filters, positions)
    dx = xp.empty((batch, groups * channels, *input_size), dy.dtype)
    grouped = dx.reshape(batch, groups, channels, *input_size)
    padded_size = [n + 2 * p for n, p in zip(input_size, padding, strict=True)]
    height = channels * size
    step = images_at_once(xp, batch, groups * height * positions * dy.itemsize)
    memory = xp.empty(groups * height * step * positions, dy.dtype)
    for start in range(0, batch, step):
        part = dy[start : start + step]
        count = len(part)
        if channels_last:
            rows = part.transpose(1, 0, 3, 2).reshape(groups, count * positions, filters)
            products = memory[: groups * height * count * positions]
            products = products.reshape(size, groups, count * positions, channels)
            products = xp.matmul(rows, weight, out=products)
            products = products.reshape(size, groups, count, *output_size, channels)
            products = xp.moveaxis(products, (1, -1), (2, 3))
            total = xp.zeros((groups, count, *padded_size, channels), dy.dtype)
            total = xp.moveaxis(total, (0, -1), (1, 2))
        else:
            products = memory[: groups * height * count * positions]
            products = products.reshape(count, groups, height, positions)
            products = xp.matmul(weight, part, out=products)
            products = products.reshape(count, groups, channels, size, *output_size)
            products = xp.moveaxis(products, 3, 0)
            total = xp.zeros((count, groups, channels, *padded_size), dy.dtype)
        places = taps(kernel_size, output_size, stride, dilation)
        for product, place in zip(products, places, strict=True):
            target = total[(..., *place)]
            target += product
        grouped[start : start + step] = total[(..., *inside(input_size, padding))]
    return dx


def _columns(xp, windows, groups):
    """Yield (images, columns): columns (images, groups, channels·kernel, positions)."""
    batch, channels = windows.shape[:2]
    spatial = (windows.ndim - 2) // 2
    height = channels // groups * math.prod(windows.shape[2 : 2 + spatial])
    positions = math.prod(windows.shape[2 + spatial :])
    if windows.flags.c_contiguous:  # kernels of one element: the input is its own columns
        yield slice(None), windows.reshape(batch, groups, height, positions)
        return
    step = images_at_once(xp, batch, groups * height * positions * windows.itemsize)
    memory = xp.empty((step, *windows.shape[1:]), windows.dtype)
    for start in range(0, batch, step):
        images = slice(start, min(start + step, batch))
        columns = memory[: images.stop - start]
        columns[...] = windows[images]
        yield images, columns.reshape(len(columns), groups, height, positions)
