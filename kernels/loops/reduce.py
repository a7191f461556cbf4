"""Loops of running sums and products, which are kept in float64.

They go line by line where `inner` is 1. Else all elements of `inner` are in step, and `kept` has
the sums of a thread.
"""

import math

import numpy as np

from oneflow_lite.arrays.threads import threads
from oneflow_lite.ops.eager_loops import Loop


@Loop
def _sums(part, begin, end, x, y, kept, backwards):
    # (outer, n, inner): neighbours in `inner` are SIMD, lines go four at a time, as none waits
    _, n, inner = x.shape
    if inner == 1:
        i = begin
        while i + 4 <= end:
            a = b = c = d = 0.0
            for k in range(n):
                j = n - 1 - k if backwards else k
                a += x[i, j, 0]
                b += x[i + 1, j, 0]
                c += x[i + 2, j, 0]
                d += x[i + 3, j, 0]
                y[i, j, 0], y[i + 1, j, 0] = a, b
                y[i + 2, j, 0], y[i + 3, j, 0] = c, d
            i += 4
        while i < end:
            a = 0.0
            for k in range(n):
                j = n - 1 - k if backwards else k
                a += x[i, j, 0]
                y[i, j, 0] = a
            i += 1
        return
    sums = kept[part]
    for i in range(begin, end):
        sums[:] = 0.0
        for k in range(n):
            j = n - 1 - k if backwards else k
            xs, ys = x[i, j], y[i, j]
            for m in range(inner):
                sums[m] += xs[m]
                ys[m] = sums[m]


@Loop
def _products(part, begin, end, x, y, kept):
    _, n, inner = x.shape
    whole = end - (end - begin) % 4 if inner == 1 else begin
    for i in range(begin, whole, 4):
        a = b = c = d = 1.0
        for j in range(n):
            a *= x[i, j, 0]
            b *= x[i + 1, j, 0]
            c *= x[i + 2, j, 0]
            d *= x[i + 3, j, 0]
            y[i, j, 0], y[i + 1, j, 0] = a, b
            y[i + 2, j, 0], y[i + 3, j, 0] = c, d
    products = kept[part]
    for i in range(whole, end):
        products[:] = 1.0
        for k in range(n):
            for m in range(inner):
                products[m] *= x[i, k, m]
                y[i, k, m] = products[m]


@Loop
def _recurrence(part, begin, end, a, b, y, kept, backwards):
    _, n, inner = a.shape
    sums = kept[part]
    for i in range(begin, end):
        for k in range(n):
            j = n - 1 - k if backwards else k
            for m in range(inner):
                sums[m] = b[i, j, m] if k == 0 else a[i, j, m] * sums[m] + b[i, j, m]
                y[i, j, m] = sums[m]


def _along(loop, dim, out, arrays, *numbers):
    x = arrays[0]
    if x.dtype.char not in "fd" or not x.ndim or not x.size:
        return None
    if len(arrays) > 1 and (arrays[1].dtype is not x.dtype or arrays[1].shape != x.shape):
        return None
    y = np.empty(x.shape, x.dtype) if out is None else out
    outer, inner = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    lines = [each.reshape(outer, -1, inner) for each in (*arrays, y)]
    return y if loop(outer, *lines, np.empty((threads(), inner)), *numbers) else None


def cumsum(x, *, dim, out=None):
    return _along(_sums, dim, out, (x,), False)


def cumsum_grad(dy, *, dim, out=None):
    return _along(_sums, dim, out, (dy,), True)


def cumprod(x, *, dim):
    return _along(_products, dim, None, (x,))


def recurrence(a, b, *, dim, reverse):
    return _along(_recurrence, dim, None, (a, b), bool(reverse))
