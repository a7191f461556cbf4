"""Loops of convolution where each channel has a filter of its own, over one or two dimensions.

Taps are written out, so that the innermost loop, along a row of the output, decides nothing.
"""

import functools
import math
from typing import Any

import numpy as np

from oneflow_lite.kernels import depthwise_planes
from oneflow_lite.kernels.conv import met_taps
from oneflow_lite.kernels.windows import padded
from oneflow_lite.ops.eager_loops import Loop

_TAPS = 49  # of a filter, at most: LLVM takes 2 s for the sums of so many
_PRODUCTS = 8  # in the time that other loops take for an element

_CONVOLVE = """\
def group(part, begin, end, x, weight, bias, y):
    _, rows, columns = y.shape
    for i in range(begin, end):
        channel = i % bias.size
        w, value = weight[channel], bias[channel]
        {factors}
        for r in range(rows):
            {lines}
            line = y[i, r]
            for c in range(columns):
                line[c] = {products} + value
"""
_DOTS = """\
def group(part, begin, end, x, dy, dweight):
    planes, rows, columns = dy.shape
    for channel in range(begin, end):
        for i in range(channel, planes, dweight.shape[0]):
            {zeros}
            for r in range(rows):
                {lines}
                line = dy[i, r]
                for c in range(columns):
                    d = line[c]
                    {sums}
            {stored}
"""


@functools.cache
def _loop(text, kernel_size, stride, dilation):
    (rows, columns), (down, right), (apart, aside) = kernel_size, stride, dilation
    met = [f"line{k}[c * {right} + {m * aside}]" for k in range(rows) for m in range(columns)]
    taps = [*enumerate(met)]

    def written(level, lines):
        return ("\n" + 4 * level * " ").join(lines)

    lines = [f"line{k} = x[i, r * {down} + {k * apart}]" for k in range(rows)]
    parts = {"lines": written(3 if text is _CONVOLVE else 4, lines)}
    if text is _CONVOLVE:
        parts["factors"] = written(2, [f"w{t} = w[{t}]" for t, _ in taps])
        parts["products"] = " + ".join([f"w{t} * {each}" for t, each in taps])
    else:
        parts["zeros"] = written(3, [f"s{t} = real(0.0)" for t, _ in taps])
        parts["sums"] = written(5, [f"s{t} = add(s{t}, d * {each})" for t, each in taps])
        parts["stored"] = written(3, [f"dweight[channel, {t}] += s{t}" for t, _ in taps])
    return Loop(text.format(**parts))


def _of_two(*geometry):
    """Return sizes and steps for two dimensions."""
    return [each if len(each) == 2 else (1, *each) for each in geometry]


def _planes(x):
    rows = x.shape[2] if x.ndim == 4 else 1
    return x.reshape(-1, rows, x.shape[-1])


def _fits(x, y, input_size, output_size, kernel_size, *steps):
    if depthwise_planes.pays(len(x), input_size, output_size, kernel_size):
        return False
    if met_taps(input_size, kernel_size, *steps)[0] is not None:
        return False  # taps that meet padding alone are left out
    floats = x.dtype.char in "fd" and x.dtype is y.dtype and x.size and y.size
    return floats and len(kernel_size) <= 2 and 1 < math.prod(kernel_size) <= _TAPS


def _convolved(x, weight, bias, y, stride, dilation):
    """Write the convolution of x, padding included, to y; return whether the loop ran."""
    loop = _loop(_CONVOLVE, *_of_two(weight.shape[2:], stride, dilation))
    planes, filters = _planes(y), weight.reshape(len(weight), -1)
    work = y.size * filters.shape[1] // _PRODUCTS
    return loop(len(planes), _planes(x), filters, bias, planes, work=work)


def conv(x, weight, bias, *, stride, padding, dilation, output_size, out):
    if not _fits(x, weight, x.shape[2:], output_size, weight.shape[2:], stride, padding, dilation):
        return None
    y = np.empty((*x.shape[:2], *output_size), x.dtype) if out is None else out
    bias = np.zeros(len(weight), x.dtype) if bias is None else bias
    x = padded(np, x, padding, padding)
    return y if _convolved(x, weight, bias, y, stride, dilation) else None


def conv_weight_grad(dy, x, *, kernel_size, stride, padding, dilation, out):
    pays = stride[-1] > 1  # BLAS is as fast along rows
    sizes = x.shape[2:], dy.shape[2:], kernel_size
    if not pays or not _fits(x, dy, *sizes, stride, padding, dilation):
        return None
    loop = _loop(_DOTS, *_of_two(kernel_size, stride, dilation))
    total = np.zeros((x.shape[1], math.prod(kernel_size)))
    source, work = padded(np, x, padding, padding), dy.size * total.shape[1] // _PRODUCTS
    if not loop(len(total), _planes(source), _planes(dy), total, work=work):
        return None
    dweight = np.empty((len(total), 1, *kernel_size), x.dtype) if out is None else out
    dweight[...] = total.reshape(dweight.shape)
    return dweight


def conv_input_grad(dy, weight, *, input_size, stride, padding, dilation, out):
    """Convolve dy, with zeros between and around, with turned filters, which must be finite."""
    reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    first = [n - p for n, p in zip(reach, padding, strict=True)]
    if min(first) < 0 or not np.isfinite(weight).all():
        return None
    if not _fits(dy, weight, input_size, dy.shape[2:], weight.shape[2:], stride, padding, dilation):
        return None
    size = [n + m for n, m in zip(input_size, reach, strict=True)]
    source = np.zeros((*dy.shape[:2], *size), dy.dtype)
    steps = zip(first, stride, dy.shape[2:], strict=True)
    places: Any = (..., *[slice(a, a + s * n, s) for a, s, n in steps])
    source[places] = dy
    turned = np.ascontiguousarray(np.flip(weight, tuple(range(2, weight.ndim))))
    dx = np.empty((*dy.shape[:2], *input_size), dy.dtype) if out is None else out
    bias, once = np.zeros(len(weight), dy.dtype), (1,) * len(stride)
    return dx if _convolved(source, turned, bias, dx, once, dilation) else None
