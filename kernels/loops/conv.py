"""Loops of convolution over any dimensions; see `kernels/conv.py`.

The windows are not copied. A position of the output and a tap meet at the sum of their offsets,
which stand in tables. So strides, dilation and the number of dimensions make no difference. Filters
(or channels, for the gradient of the input) lie side by side in vectors, and a tile of some
positions or taps stays in registers until its products are added up.
"""

import functools
import math
from typing import Any

import numpy as np

from oneflow_lite.arrays.threads import threads
from oneflow_lite.kernels.conv import met_taps
from oneflow_lite.kernels.loops import PRODUCTS, depthwise
from oneflow_lite.kernels.windows import count_windows, inside, padded
from oneflow_lite.ops.eager_loops import Loop

_ROWS, _BYTES = 4, 64  # of a tile
_BLOCK = 128  # numbers that are added up before their sum is stored
_CHUNK = 16  # positions that are turned while they are in the nearest cache
# Below these BLAS is faster on one thread: products for a result, positions of all images, which
# share the cost of turning the filters, and the part of a vector that filters fill.
_FEW_PRODUCTS, _FEW_POSITIONS, _FILLED = 28, 1024, 0.5
_FEW_SHARED = 24  # products for a result, where threads share the loop: 25 take 0.66 to 0.73

_OUTPUT = """\
make = tile({rows}, {lanes})

def group(part, begin, end, x, weight, taps, places, bias, y, sums):
    groups, blocks, inner, _ = weight.shape
    _, _, filters, positions = y.shape
    px, pw, ps = start(x), start(weight), start(sums[part])
    for step in range(begin, end):
        i = step // (groups * blocks)
        g = step // blocks % groups
        first = step % blocks * {lanes}
        at_x = (i * groups + g) * x.shape[2]
        at_w = step % (groups * blocks) * inner * {lanes}
        for p in range(0, positions, {chunk}):
            some = min({chunk}, positions - p)
            for k in range(0, inner, {block}):
                count, pt = min({block}, inner - k), start(taps[k:])
                for m in range(0, some, {rows}):
                    make(
                        px, at_x, pw, at_w + k * {lanes}, ps, m * {lanes},
                        count, start(places[p + m:]), pt, {lanes}, {lanes}, int64(k > 0),
                    )
            for f in range(min({lanes}, filters - first)):
                value, line = bias[g, first + f], start(y[i, g, first + f, p:])
                for m in range(some):
                    line[m] = ps[m * {lanes} + f] + value
"""
_WEIGHT = """\
make = tile({rows}, {lanes})

def group(part, begin, end, x, dy, taps, places, sums, turned):
    _, groups, size = x.shape
    _, _, filters, positions = dy.shape
    _, _, blocks, inner, _ = sums.shape
    px, ps, pt = start(x), start(sums[part]), start(turned[part])
    for step in range(begin, end):
        i = step // (groups * blocks)
        g = step // blocks % groups
        first = step % blocks * {lanes}
        some = min({lanes}, filters - first)
        for m in range(positions * {lanes} * (some < {lanes})):
            pt[m] = 0
        for p in range(0, positions, {chunk}):
            for f in range(some):
                line, own = start(dy[i, g, first + f, p:]), start(turned[part, p:])
                for m in range(min({chunk}, positions - p)):
                    own[m * {lanes} + f] = line[m]
        at_x, at_s = (i * groups + g) * size, step % (groups * blocks) * inner
        for p in range(0, positions, {block}):
            count, pp = min({block}, positions - p), start(places[p:])
            for k in range(0, inner, {rows}):
                make(
                    px, at_x, pt, p * {lanes}, ps, (at_s + k) * {lanes},
                    count, start(taps[k:]), pp, {lanes}, {lanes}, 1,
                )
"""
_INPUT = """\
make = tile({rows}, {lanes})

def group(part, begin, end, dy, weight, taps, places, kept, dx, sums, turned):
    groups, blocks, _, filters, _ = weight.shape
    _, _, channels, size = dx.shape
    positions = dy.shape[3]
    pt, pw, ps = start(turned[part]), start(weight), start(sums[part])
    for step in range(begin, end):
        i = step // (groups * blocks)
        g = step // blocks % groups
        first = step % blocks * {lanes}
        at_w = step % (groups * blocks) * taps.size
        for m in range(sums[part].size):
            ps[m] = 0
        for p in range(0, positions, {chunk}):
            some = min({chunk}, positions - p)
            for f in range(filters):
                line = start(dy[i, g, f, p:])
                for m in range(some):
                    pt[f * {chunk} + m] = line[m]
            for t in range(taps.size):
                for m in range(0, some, {rows}):
                    make(
                        pt, m, pw, (at_w + t) * filters * {lanes}, ps, taps[t] * {lanes},
                        filters, 1, {chunk}, {lanes}, start(places[p + m:]), 1,
                    )
        for p in range(0, size, {chunk}):
            for c in range(min({lanes}, channels - first)):
                line = start(dx[i, g, first + c, p:])
                for m in range(min({chunk}, size - p)):
                    line[m] = ps[kept[p + m] * {lanes} + c]
"""


@functools.cache
def _loop(text, lanes):
    return Loop(text.format(rows=_ROWS, lanes=lanes, block=_BLOCK, chunk=_CHUNK))


def _lanes(x, y, side_by_side, products, positions, geometry):
    """Return how many filters are side by side in a vector; None where NumPy is to be asked."""
    lanes, kernel_size = _BYTES // x.itemsize, geometry[1]
    if met_taps(*geometry)[0] is not None:  # taps that meet padding alone are left out
        return None
    enough = products >= (_FEW_PRODUCTS if threads() == 1 else _FEW_SHARED)
    enough = enough and positions >= _FEW_POSITIONS
    pays = enough and math.prod(kernel_size) > 1 and side_by_side >= _FILLED * lanes
    return lanes if pays and x.dtype.char in "fd" and x.dtype == y.dtype else None


@functools.lru_cache(256)
def _offsets(channels, output_size, input_size, kernel_size, stride, padding, dilation):
    """Return where taps and positions lie in a group's channels of a padded image."""
    size = [n + 2 * p for n, p in zip(input_size, padding, strict=True)]
    place = np.arange(channels * math.prod(size)).reshape(channels, *size)
    taps: Any = [slice(0, d * (k - 1) + 1, d) for k, d in zip(kernel_size, dilation, strict=True)]
    steps: Any = [slice(0, s * (n - 1) + 1, s) for n, s in zip(output_size, stride, strict=True)]
    return place[(slice(None), *taps)].ravel(), place[(0, *steps)].ravel()


def _in_tiles(offsets, more):
    """Return offsets filled up to whole tiles; results at the added offsets are not used."""
    return np.concatenate([offsets, more[: -len(offsets) % _ROWS]])


def in_blocks(weight, lanes):
    """Return (groups, inner, n) as (groups, blocks, inner, lanes), filled up with zeros."""
    groups, inner, count = weight.shape
    filled = np.zeros((groups, inner, -(-count // lanes) * lanes), weight.dtype)
    filled[..., :count] = weight
    return np.ascontiguousarray(filled.reshape(groups, inner, -1, lanes).swapaxes(1, 2))


_FIRST = np.zeros(_ROWS, np.int64)


def conv(x, weight, bias, *, stride, padding, dilation, groups, out=None):
    batch, filters, channels = len(x), len(weight) // groups, weight.shape[1]
    geometry = x.shape[2:], weight.shape[2:], stride, padding, dilation
    output_size = count_windows(*geometry)
    if filters == channels == 1:
        steps = {"stride": stride, "padding": padding, "dilation": dilation}
        return depthwise.conv(x, weight, bias, **steps, output_size=output_size, out=out)
    positions, products = math.prod(output_size), channels * math.prod(weight.shape[2:])
    lanes = _lanes(x, weight, filters, products, batch * positions, geometry)
    if lanes is None:
        return None
    x = padded(np, x, padding, padding)
    taps, places = _offsets(channels, output_size, *geometry)
    packed = in_blocks(weight.reshape(groups, filters, products).swapaxes(1, 2), lanes)
    y = np.empty((batch, groups * filters, *output_size), x.dtype) if out is None else out
    bias = np.zeros(groups * filters, x.dtype) if bias is None else bias
    done = _loop(_OUTPUT, lanes)(
        batch * groups * packed.shape[1],
        x.reshape(batch, groups, -1),
        packed,
        taps,
        _in_tiles(places, _FIRST),
        bias.reshape(groups, filters),
        y.reshape(batch, groups, filters, positions),
        np.empty((threads(), _CHUNK, lanes), x.dtype),
        work=y.size * products // PRODUCTS,
    )
    return y if done else None


def conv_weight_grad(dy, x, *, kernel_size, stride, padding, dilation, groups, out=None):
    batch, filters, channels = len(x), dy.shape[1] // groups, x.shape[1] // groups
    if filters == channels == 1:
        steps = {"stride": stride, "padding": padding, "dilation": dilation}
        return depthwise.conv_weight_grad(dy, x, kernel_size=kernel_size, **steps, out=out)
    positions, products = math.prod(dy.shape[2:]), channels * math.prod(kernel_size)
    geometry = x.shape[2:], kernel_size, stride, padding, dilation
    lanes = _lanes(x, dy, filters, products, batch * positions, geometry)
    if lanes is None:
        return None
    x = padded(np, x, padding, padding)
    taps, places = _offsets(channels, dy.shape[2:], *geometry)
    taps, blocks = _in_tiles(taps, _FIRST), -(-filters // lanes)
    sums = np.zeros((threads(), groups, blocks, taps.size, lanes), x.dtype)
    done = _loop(_WEIGHT, lanes)(
        batch * groups * blocks,
        x.reshape(batch, groups, -1),
        dy.reshape(batch, groups, filters, positions),
        taps,
        places,
        sums,
        np.empty((threads(), positions, lanes), x.dtype),
        work=dy.size * products // PRODUCTS,
    )
    if not done:
        return None
    total = sums.sum(axis=0)[:, :, :products].swapaxes(2, 3).reshape(groups, -1, products)
    dweight = total[:, :filters].reshape(groups * filters, channels, *kernel_size)
    if out is None:
        return dweight
    out[...] = dweight
    return out


def conv_input_grad(dy, weight, *, input_size, stride, padding, dilation, groups, out=None):
    batch, filters, channels = len(dy), len(weight) // groups, weight.shape[1]
    if filters == channels == 1:
        steps = {"stride": stride, "padding": padding, "dilation": dilation}
        return depthwise.conv_input_grad(dy, weight, input_size=input_size, **steps, out=out)
    positions, size = math.prod(dy.shape[2:]), math.prod(weight.shape[2:])
    geometry = input_size, weight.shape[2:], stride, padding, dilation
    lanes = _lanes(dy, weight, channels, filters * size, batch * positions, geometry)
    if lanes is None:
        return None
    taps, places = _offsets(1, dy.shape[2:], *geometry)
    padded_size = [n + 2 * p for n, p in zip(input_size, padding, strict=True)]
    end = math.prod(padded_size)
    kept = np.arange(end).reshape(padded_size)[inside(input_size, padding)].ravel()
    # For each tap a matrix of filters and channels.
    packed = weight.reshape(groups, filters, channels, size).transpose(0, 3, 1, 2)
    packed = in_blocks(packed.reshape(groups, size * filters, channels), lanes)
    dx = np.empty((batch, groups * channels, *input_size), dy.dtype) if out is None else out
    done = _loop(_INPUT, lanes)(
        batch * groups * packed.shape[1],
        dy.reshape(batch, groups, filters, positions),
        packed.reshape(groups, -1, size, filters, lanes),
        taps,
        _in_tiles(places, end + np.arange(_ROWS)) * lanes,
        kept,
        dx.reshape(batch, groups, channels, -1),
        np.empty((threads(), end + _ROWS + taps[-1], lanes), dy.dtype),
        np.zeros((threads(), filters, _CHUNK), dy.dtype),
        work=dy.size * channels * size // PRODUCTS,
    )
    return dx if done else None
