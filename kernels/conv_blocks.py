"""Convolution of large images, some rows of the output at a time; see `conv.py`.

A block is a part of an image's output whose windows fit into the cache that each core has of its
own. Windows are copied into the cache, side by side, and multiplied at once: no product waits for
memory. Threads share the blocks, each with products on its own thread. The gradient of the input
gathers, as a convolution does: each step of the stride meets some of the taps, its *phase*, and is
a convolution of dy with these, turned around. So no thread writes where another one does.
"""

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite.arrays.blas_threads import products_on_one_thread
from oneflow_lite.arrays.threads import in_threads, threads
from oneflow_lite.kernels.windows import copy, padded, sliding_windows

WAY = "blocks of some rows of the output"  # as a profile calls it

# Bytes of the windows of a block. On a core with a second cache of 1 MB, 2^18 took 1.2 to 3 times
# as long, since threads wait for each other's Python, and 2^19 up to 1.3 times as long.
_BYTES = 2**20
# Multiplications from which blocks pay, results of a product by the rows of its left matrix, and
# positions of an image. With fewer rows BLAS fills no tile: products for a scattered gradient have
# `taps` times as many. With fewer positions the filters take longer to read than the windows.
_PRODUCTS, _ROWS, _POSITIONS = 2**24, 8, 256


def pay(xp, x, batch, groups, rows, inner, taps, output_size):
    """Return whether blocks take less time than whole images.

    A product of an image has `rows` times `inner` times positions multiplications. Kernels of one
    element meet an input that is its own columns, which BLAS shares as well.
    """
    positions = math.prod(output_size)
    return (
        xp is np
        and x.dtype.char in "fd"
        and taps > 1
        and rows >= _ROWS
        and positions >= _POSITIONS
        and batch * groups * rows * inner * positions >= _PRODUCTS
    )


class _Axis(NamedTuple):
    """A spatial dimension: y[s] meets x[first + s·stride + k·dilation] for each k of `taps`."""

    size: int
    taps: int
    first: int
    stride: int
    dilation: int

    def met(self, given):
        """Return (part, before, behind): the elements that are met, and how many zeros are."""
        last = self.first + (self.size - 1) * self.stride + (self.taps - 1) * self.dilation
        begin = min(max(0, self.first), given)
        end = min(max(begin, last + 1), given)
        length = last + 1 - self.first
        before = min(length, max(0, -self.first))
        return slice(begin, end), before, length - before - (end - begin)


def _windows(x, axes):
    """Return the windows of x, a view (*lead, *taps, *size) of x or of its padded copy."""
    sizes = x.shape[x.ndim - len(axes) :]
    met = [axis.met(n) for axis, n in zip(axes, sizes, strict=True)]
    parts, before, behind = zip(*met, strict=True)
    x = padded(np, x[(..., *parts)], before, behind)
    sizes, taps, _, strides, dilations = zip(*axes, strict=True)
    return sliding_windows(np, x, taps, sizes, strides, dilations)


def _parts(sizes, bytes_each):
    """Return the index of each block in the output's dimensions; a position takes `bytes_each`."""
    most = max(1, _BYTES // bytes_each)
    axis = 0  # the first whose steps fit
    while axis < len(sizes) - 1 and math.prod(sizes[axis + 1 :]) > most:
        axis += 1
    step = max(1, most // math.prod(sizes[axis + 1 :]))
    count = -(-sizes[axis] // step)
    cuts = itertools.pairwise([sizes[axis] * i // count for i in range(count + 1)])
    inner = [slice(0, n) for n in sizes[axis + 1 :]]
    outer = itertools.product(*[[slice(i, i + 1) for i in range(n)] for n in sizes[:axis]])
    return [(*i, slice(*cut), *inner) for i, cut in itertools.product(outer, cuts)]


def _share(x, axes, work):
    """Call work(thread, image, group, part, columns) for each block; x (images, groups, c, *)."""
    windows = _windows(x, axes)
    batch, groups, channels = x.shape[:3]
    sizes = [axis.size for axis in axes]
    inner = channels * math.prod([axis.taps for axis in axes])
    parts = _parts(sizes, inner * x.itemsize)
    blocks = list(itertools.product(range(batch), range(groups), parts))
    most = max([math.prod([s.stop - s.start for s in part]) for part in parts])

    def some(thread, count):
        memory = np.empty(inner * most, x.dtype)
        begin, end = (len(blocks) * i // count for i in (thread, thread + 1))
        for image, group, part in blocks[begin:end]:
            block = windows[(image, group, ..., *part)]
            columns = memory[: block.size].reshape(block.shape)
            copy(columns, block)
            work(thread, image, group, part, columns.reshape(inner, -1))

    with products_on_one_thread() as alone:
        count = min(threads(), len(blocks)) if alone else 1
        in_threads([functools.partial(some, t, count) for t in range(count)])


def _gather(x, weight, bias, y, axes):
    """Fill y (images, groups, filters, *) by x and weight (groups, filters, channels·taps)."""

    def multiply(_, image, group, part, columns):
        product = weight[group] @ columns
        if bias is not None:
            product += bias[group]
        target = y[(image, group, slice(None), *part)]
        copy(target, product.reshape(target.shape))

    _share(x, axes, multiply)


def conv(x, weight, bias, y, stride, padding, dilation, groups):
    """Fill y with the convolution."""
    axes = [*map(_Axis, y.shape[2:], weight.shape[2:], [-p for p in padding], stride, dilation)]
    bias = None if bias is None else bias.reshape(groups, -1, 1)
    weight = weight.reshape(groups, len(weight) // groups, -1)
    x, y = (a.reshape(len(a), groups, -1, *a.shape[2:]) for a in (x, y))
    _gather(x, weight, bias, y, axes)


def weight_grad(dy, x, dweight, stride, padding, dilation, groups):
    """Fill dweight with the gradient of the weight, each thread with a sum of its own."""
    sizes = dweight.shape[2:]
    axes = [*map(_Axis, dy.shape[2:], sizes, [-p for p in padding], stride, dilation)]
    x, dy = (a.reshape(len(a), groups, -1, *a.shape[2:]) for a in (x, dy))
    sums = np.zeros((threads(), groups, dy.shape[2], dweight[0].size), x.dtype)

    def multiply(thread, image, group, part, columns):
        own = dy[(image, group, slice(None), *part)].reshape(dy.shape[2], -1)
        sums[thread, group] += own @ columns.T

    _share(x, axes, multiply)
    np.sum(sums, axis=0, out=dweight.reshape(sums.shape[1:]))


@functools.lru_cache(512)
def _phases(size, taps, stride, padding, dilation):
    """Return (places, the taps that they meet, axis) of each phase of a dimension of dx."""
    found = []
    apart = stride // math.gcd(stride, dilation)
    for phase in range(min(stride, size)):
        met = [k for k in range(taps) if (phase + padding - k * dilation) % stride == 0]
        if met:  # the last tap meets the first element of dy
            first = (phase + padding - met[-1] * dilation) // stride
            between = dilation * apart // stride
            axis = _Axis(-(-(size - phase) // stride), len(met), first, 1, between)
            turned = slice(met[-1], met[0] - 1 if met[0] else None, -apart)
        else:
            axis, turned = None, slice(0)
        found.append((slice(phase, size, stride), turned, axis))
    return found


def input_grad(dy, weight, dx, stride, padding, dilation, groups):
    """Fill dx with the gradient of the input."""
    batch, channels = len(dx), weight.shape[1]
    dy, dx = (a.reshape(batch, groups, -1, *a.shape[2:]) for a in (dy, dx))
    weight = weight.reshape(groups, -1, *weight.shape[1:]).swapaxes(1, 2)
    geometry = zip(dx.shape[3:], weight.shape[3:], stride, padding, dilation, strict=True)
    for phase in itertools.product(*[_phases(*each) for each in geometry]):
        places, turned, axes = zip(*phase, strict=True)
        target: Any = dx[(..., *places)]
        if None in axes:
            target[...] = 0
        else:
            met = np.ascontiguousarray(weight[(..., *turned)])
            _gather(dy, met.reshape(groups, channels, -1), None, target, axes)
