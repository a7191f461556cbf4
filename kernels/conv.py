"""Kernels of convolution, in any number of spatial dimensions, and of its two transposed maps.

A convolution is a matrix product with the windows of the input, copied side by side for a few
images at a time; none of the copies is kept for the backward pass. Copies and sums are quick over
long runs of memory, so there are two layouts. With few channels the windows keep the order of the
input (columns, one product for each image). With many the channels come last (rows, one product for
several images). Large images go by some rows of the output at a time (see `conv_blocks.py`).
"""

import functools
import math

import numpy as np

from oneflow_lite.kernels import conv_blocks, depthwise
from oneflow_lite.kernels.batches import merged, parted
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import add_at
from oneflow_lite.kernels.infer_rules import convolved, input_of_windows, kernel_of_windows
from oneflow_lite.kernels.numerics import zeros
from oneflow_lite.kernels.windows import (
    FEW,
    copy,
    count_windows,
    images_at_once,
    inside,
    padded,
    positions_of_few,
    sliding_windows,
    taps,
)
from oneflow_lite.ops.registry import register_kernel

_SMALL_IMAGE = 16


def _channels_apart(one_group, groups):
    """Return the SBP rule for channels that all meet, and for groups, which stay together."""
    return lambda shapes, attrs: one_group if attrs["groups"] == 1 else groups


def _batch_of_convolutions(call, x, weight, bias, **attrs):
    """Fold the batch into the images where all share the weight; else into the groups."""
    if not call.batched[1] and not (bias is not None and call.batched[2]):
        return parted(call, call.run(merged(call, x, 0), weight, bias, **attrs), 0)
    groups = call.size * attrs["groups"]
    bias = None if bias is None else merged(call, call.front(2), 0)
    x, weight = merged(call, call.front(0), 1), merged(call, call.front(1), 0)
    return parted(call, call.run(x, weight, bias, **{**attrs, "groups": groups}), 1)


def _batch_of_input_gradients(call, dy, weight, **attrs):
    if not call.batched[1]:
        return parted(call, call.run(merged(call, dy, 0), weight, **attrs), 0)
    groups = call.size * attrs["groups"]
    dy, weight = merged(call, call.front(0), 1), merged(call, call.front(1), 0)
    return parted(call, call.run(dy, weight, **{**attrs, "groups": groups}), 1)


def _batch_of_weight_gradients(call, dy, x, **attrs):
    def each():
        return _each_weight_gradient(call, **attrs)

    if not call.sums_later():
        return each()

    def whole():
        return call.run(merged(call, call.front(0), 0), merged(call, call.front(1), 0), **attrs)

    channels = call.shape(1)[1] // attrs["groups"]
    return call.pending((call.shape(0)[1], channels, *attrs["kernel_size"]), each, whole)


def _each_weight_gradient(call, **attrs):
    groups = call.size * attrs["groups"]
    dy, x = merged(call, call.front(0), 1), merged(call, call.front(1), 1)
    return parted(call, call.run(dy, x, **{**attrs, "groups": groups}), 0)


@register_kernel(
    "conv",
    infer=convolved,
    sbp=_channels_apart("bC*,oC*,o->bo", "bC*,O*,O->b"),
    batch=_batch_of_convolutions,
)
@in_float32
def conv(xp, x, weight, bias, *, stride, padding, dilation, groups, out=None):
    """y[n, o, s] = Σ_c Σ_k weight[o, c, k] x[n, c, s·stride + k·dilation - padding] + bias[o]"""
    taps_met, padding = met_taps(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    weight = weight if taps_met is None else weight[taps_met]
    filters, channels, kernel_size = len(weight) // groups, weight.shape[1], weight.shape[2:]
    size = math.prod(kernel_size)
    output_size = count_windows(x.shape[2:], kernel_size, stride, padding, dilation)
    positions = math.prod(output_size)
    shape = (len(x), groups * filters, *output_size)
    y = xp.empty(shape, x.dtype) if out is None else out
    grouped = y.reshape(len(x), groups, filters, positions)
    geometry = (kernel_size, output_size, stride, padding, dilation, groups)
    if _alone(xp, x, filters, channels, size):
        depthwise.convolve(x, weight, y, stride, padding, dilation)
    elif conv_blocks.pay(xp, x, len(x), groups, filters, channels * size, size, output_size):
        conv_blocks.conv(x, weight, bias, y, stride, padding, dilation, groups)
        return y
    elif _many(channels, kernel_size, output_size):
        weight = _channels_last(weight, groups, filters, channels, size).swapaxes(1, 2)
        for images, rows in _rows(xp, x, weight, *geometry):
            part = xp.matmul(rows, weight)
            part = part.reshape(groups, part.shape[1] // positions, positions, filters)
            grouped[images] = part.transpose(1, 0, 3, 2)
    else:
        weight = weight.reshape(groups, filters, channels * size)
        for images, columns in _columns(xp, x, *geometry):
            xp.matmul(weight, columns, out=grouped[images])
    if bias is not None:
        grouped += bias.reshape(groups, filters, 1)
    return y


@register_kernel(
    "conv_weight_grad",
    infer=kernel_of_windows,
    sbp=_channels_apart("bo*,bC*->oC", "b*,b*->O"),
    linear="dy x",
    batch=_batch_of_weight_gradients,
)
@in_float32
def conv_weight_grad(xp, dy, x, *, kernel_size, stride, padding, dilation, groups, out=None):
    """dweight[o, c, k] = Σ_n Σ_s dy[n, o, s] x[n, c, s·stride + k·dilation - padding]"""
    taps_met, padding = met_taps(x.shape[2:], kernel_size, stride, padding, dilation)
    if taps_met is not None:
        dweight = zeros(xp, (dy.shape[1], x.shape[1] // groups, *kernel_size), x.dtype, out)
        met = dweight[taps_met]
        attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        met[...] = conv_weight_grad(xp, dy, x, kernel_size=met.shape[2:], **attrs)
        return dweight
    (batch, filters), output_size = dy.shape[:2], dy.shape[2:]
    filters, channels = filters // groups, x.shape[1] // groups
    size, positions = math.prod(kernel_size), math.prod(output_size)
    dweight = zeros(xp, (groups * filters, channels, *kernel_size), x.dtype, out)
    if _alone(xp, x, filters, channels, size):
        depthwise.weight_grad(dy, x, dweight, stride, padding, dilation)
        if np.isfinite(dweight).all():
            return dweight
        dweight.fill(0)  # zeros between positions met an infinite x; windows meet no such zeros
    if conv_blocks.pay(xp, x, batch, groups, filters, channels * size, size, output_size):
        conv_blocks.weight_grad(dy, x, dweight, stride, padding, dilation, groups)
        return dweight
    dy = dy.reshape(batch, groups, filters, positions)
    grouped = dweight.reshape(groups, filters, channels, size)
    geometry = (kernel_size, output_size, stride, padding, dilation, groups)
    products = None
    if _many(channels, kernel_size, output_size):
        for images, rows in _rows(xp, x, dweight, *geometry):
            part = dy[images].transpose(1, 2, 0, 3).reshape(groups, filters, rows.shape[1])
            part = xp.matmul(part, rows)
            products = part if products is None else xp.add(products, part, out=products)
        if products is not None:
            grouped[...] = products.reshape(groups, filters, size, channels).swapaxes(2, 3)
    else:
        total = grouped.reshape(groups, filters, channels * size)
        for images, columns in _columns(xp, x, *geometry):
            if batch == 1:
                xp.matmul(dy[0], columns[0].swapaxes(1, 2), out=total)
                break
            if products is None:  # the first images are the most
                products = xp.empty((len(columns), *total.shape), x.dtype)
            part = products[: len(columns)]
            total += xp.matmul(dy[images], columns.swapaxes(2, 3), out=part).sum(axis=0)
    return dweight


@register_kernel(
    "conv_input_grad",
    infer=input_of_windows,
    sbp=_channels_apart("bo*,oC*->bC", "b*,O*->b"),
    linear="dy weight",
    batch=_batch_of_input_gradients,
)
@in_float32
def conv_input_grad(xp, dy, weight, *, input_size, stride, padding, dilation, groups, out=None):
    """dx[n, c, s·stride + k·dilation - padding] = Σ_o weight[o, c, k] dy[n, o, s], over all k, s"""
    taps_met, padding = met_taps(input_size, weight.shape[2:], stride, padding, dilation)
    weight = weight if taps_met is None else weight[taps_met]
    (batch, filters), output_size = dy.shape[:2], dy.shape[2:]
    filters, channels, kernel_size = filters // groups, weight.shape[1], weight.shape[2:]
    size, positions = math.prod(kernel_size), math.prod(output_size)
    dx = xp.empty((batch, groups * channels, *input_size), dy.dtype) if out is None else out
    if _alone(xp, dx, filters, channels, size) and np.isfinite(weight).all():
        depthwise.input_grad(dy, weight, dx, stride, padding, dilation)
        return dx
    if (
        conv_blocks.pay(xp, dy, batch, groups, channels, filters * size, size, output_size)
        and np.isfinite(weight).all()  # these meet the zeros around dy
    ):
        conv_blocks.input_grad(dy, weight, dx, stride, padding, dilation, groups)
        return dx
    dy = dy.reshape(batch, groups, filters, positions)
    # BLAS is slow where a product of matrices is an outer product.
    multiply = xp.multiply if filters == 1 else xp.matmul
    many = _many(channels, kernel_size, output_size)
    if size == 1 and output_size == input_size and not any(padding):
        weight = weight.reshape(groups, filters, channels)
        images = dx.reshape(batch, groups, channels, positions)
        if many:
            rows = dy.transpose(1, 0, 3, 2).reshape(groups, batch * positions, filters)
            products = xp.matmul(rows, weight).reshape(groups, batch, positions, channels)
            images[...] = products.transpose(1, 0, 3, 2)
        else:
            multiply(weight.swapaxes(1, 2), dy, out=images)
        return dx
    grouped = dx.reshape(batch, groups, channels, *input_size)
    padded_size = [n + 2 * p for n, p in zip(input_size, padding, strict=True)]
    if xp is np:
        shape = (batch, groups * channels, *padded_size)
        columns = _columns_of_few(shape, kernel_size, output_size, stride, dilation, groups)
        if columns is not None:
            total = np.zeros(shape, dy.dtype)
            weight = weight.reshape(groups, filters, channels * size).swapaxes(1, 2)
            add_at(np, total.reshape(-1), columns, weight @ dy)
            dx[...] = total[inside(input_size, padding)]
            return dx
    if many:
        weight = _channels_last(weight, groups, filters, channels, size)
    else:
        weight = weight.reshape(groups, filters, channels * size).swapaxes(1, 2)
    step, memory = _memory(xp, batch, groups * channels * size * positions, weight)
    for start in range(0, batch, step):
        part = dy[start : start + step]
        count = len(part)
        products = memory[: count * groups * channels * size * positions]
        if many:
            rows = part.transpose(1, 0, 3, 2).reshape(groups, count * positions, filters)
            products = products.reshape(groups, count * positions, size * channels)
            xp.matmul(rows, weight, out=products)
            products = products.reshape(groups, count, *output_size, size, channels)
            last = products.ndim - 1
            products = products.transpose(last - 1, 1, 0, last, *range(2, last - 1))
            total = xp.zeros((groups, count, *padded_size, channels), dy.dtype)
            total = total.transpose(1, 0, last - 1, *range(2, last - 1))
        else:
            products = products.reshape(count, groups, channels * size, positions)
            multiply(weight, part, out=products)
            products = products.reshape(count, groups, channels, size, *output_size)
            products = products.transpose(3, 0, 1, 2, *range(4, products.ndim))
            total = xp.zeros((count, groups, channels, *padded_size), dy.dtype)
        places = taps(kernel_size, output_size, stride, dilation)
        for product, place in zip(products, places, strict=True):
            total[place] += product
        copy(grouped[start : start + step], total[inside(input_size, padding)])
    return dx


def _alone(xp, x, filters, channels, size):
    """Return whether each channel has a filter of its own; small images go another way."""
    return filters == channels == 1 < size and x.size > FEW and xp is np and x.dtype.char in "fd"


@functools.lru_cache(512)
def met_taps(input_size, kernel_size, stride, padding, dilation):
    """Return the index of the taps that meet more than padding, and the padding that remains.

    The index is None where no tap is cut off. Both ends lose the same number of taps, which keeps
    the output's size.
    """
    output_size = count_windows(input_size, kernel_size, stride, padding, dilation)
    cut = []
    for n, out, k, s, p, d in zip(
        input_size, output_size, kernel_size, stride, padding, dilation, strict=True
    ):
        before = (p - (out - 1) * s + d - 1) // d  # taps whose last place is in front of the input
        behind = k - (n + p + d - 1) // d  # taps whose first place is behind it
        cut.append(max(0, min(before, behind, (k - 1) // 2, p // d)))  # no padding below 0
    if not any(cut):
        return None, padding
    places = [slice(c, k - c) for c, k in zip(cut, kernel_size, strict=True)]
    left = [p - c * d for c, p, d in zip(cut, padding, dilation, strict=True)]
    return (..., *places), tuple(left)


def _channels_last(weight, groups, filters, channels, size):
    """Return filters (groups, filters, kernel·channels)."""
    weight = weight.reshape(groups, filters, channels, size).swapaxes(2, 3)
    return weight.reshape(groups, filters, size * channels)


def _many(channels, kernel_size, output_size):
    """Return whether the channels of a position are a longer run than a row of positions.

    Kernels of one element take the input as it is, unless images are too small for BLAS.
    """
    one = math.prod(kernel_size) == 1
    return channels > output_size[-1] and not (one and math.prod(output_size) > _SMALL_IMAGE)


def _memory(xp, batch, elements, weight):
    """Return how many images are worked on together, and memory for `elements` of each.

    Large filters pass through the cache for each of these groups, so there are few groups then.
    """
    step = images_at_once(xp, batch, elements * weight.itemsize, weight.nbytes)
    return step, xp.empty(step * elements, weight.dtype)


def _columns(xp, x, kernel_size, output_size, stride, padding, dilation, groups):
    """Yield (images, columns): columns (images, groups, channels·kernel, positions)."""
    x = padded(xp, x, padding, padding)
    if xp is np:
        places = _columns_of_few(x.shape, kernel_size, output_size, stride, dilation, groups)
        if places is not None:
            yield slice(None), x.take(places)
            return
    windows = sliding_windows(xp, x, kernel_size, output_size, stride, dilation)
    batch, height = len(x), x.shape[1] // groups * math.prod(kernel_size)
    positions = math.prod(output_size)
    step = images_at_once(xp, batch, groups * height * positions * x.dtype.itemsize)
    # With kernels of one element the input is its own columns.
    if step == batch or windows.flags.c_contiguous:
        yield slice(None), windows.reshape(batch, groups, height, positions)
        return
    memory = xp.empty(step * groups * height * positions, x.dtype)
    for start in range(0, batch, step):
        part = windows[start : start + step]
        columns = memory[: len(part) * groups * height * positions].reshape(part.shape)
        copy(columns, part)
        images = slice(start, start + step)
        yield images, columns.reshape(len(part), groups, height, positions)


@functools.lru_cache(64)
def _columns_of_few(shape, kernel_size, output_size, stride, dilation, groups):
    """Return the C-order positions of all columns in the padded input; None for many elements."""
    positions = positions_of_few(shape, kernel_size, output_size, stride, dilation)
    if positions is None:
        return None
    return np.moveaxis(positions, 0, 2).reshape(shape[0], groups, -1, math.prod(output_size))


def _rows(xp, x, weight, kernel_size, output_size, stride, padding, dilation, groups):
    """Yield (images, rows): rows (groups, images·positions, kernel·channels)."""
    x = padded(xp, x, padding, padding)
    batch, channels = len(x), x.shape[1] // groups
    x = x.reshape(batch, groups, channels, *x.shape[2:])
    spatial = len(kernel_size)
    places = range(2, 2 + spatial)
    last = xp.ascontiguousarray(x.transpose(1, 0, *range(3, 3 + spatial), 2))
    planes = last.transpose(0, 1, 2 + spatial, *places)
    windows = sliding_windows(xp, planes, kernel_size, output_size, stride, dilation)
    kernel_axes, output_axes = range(3, 3 + spatial), range(3 + spatial, 3 + 2 * spatial)
    windows = windows.transpose(0, 1, *output_axes, *kernel_axes, 2)
    width, positions = math.prod(kernel_size) * channels, math.prod(output_size)
    if windows.flags.c_contiguous:  # with kernels of one element
        yield slice(None), windows.reshape(groups, batch * positions, width)
        return
    step, memory = _memory(xp, batch, groups * positions * width, weight)
    for start in range(0, batch, step):
        part = windows[:, start : start + step]
        rows = memory[: part.size].reshape(part.shape)
        copy(rows, part)
        images = slice(start, start + step)
        yield images, rows.reshape(groups, part.shape[1] * positions, width)
