"""Loops of running sums and products."""

import math

import numpy as np
from numpy import float64 as real  # in a loop it is the dtype of the first array

from oneflow_lite.ops.eager_loops import Loop


@Loop
def _sums(part, begin, end, x, y, backwards):
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
    for i in range(begin, end):
        for k in range(n):
            j = n - 1 - k if backwards else k
            xs, ys = x[i, j], y[i, j]
            if k == 0:
                for m in range(inner):
                    ys[m] = xs[m]
            else:
                before = y[i, j + 1 if backwards else j - 1]
                for m in range(inner):
                    ys[m] = before[m] + xs[m]


@Loop
def _products(part, begin, end, x, y):
    _, n, inner = x.shape
    whole = end - (end - begin) % 4 if inner == 1 else begin
    for i in range(begin, whole, 4):
        a = b = c = d = real(1.0)
        for j in range(n):
            a *= x[i, j, 0]
            b *= x[i + 1, j, 0]
            c *= x[i + 2, j, 0]
            d *= x[i + 3, j, 0]
            y[i, j, 0], y[i + 1, j, 0] = a, b
            y[i + 2, j, 0], y[i + 3, j, 0] = c, d
    for i in range(whole, end):
        for k in range(n):
            if k == 0:
                for m in range(inner):
                    y[i, k, m] = x[i, k, m]
            else:
                for m in range(inner):
                    y[i, k, m] = y[i, k - 1, m] * x[i, k, m]


@Loop
def _recurrence(part, begin, end, a, b, y, backwards):
    _, n, inner = a.shape
    for i in range(begin, end):
        for k in range(n):
            j = n - 1 - k if backwards else k
            if k == 0:
                for m in range(inner):
                    y[i, j, m] = b[i, j, m]
            else:
                last = j + 1 if backwards else j - 1
                for m in range(inner):
                    y[i, j, m] = a[i, j, m] * y[i, last, m] + b[i, j, m]


def _along(loop, dim, out, arrays, *numbers):
    x = arrays[0]
    if x.dtype.char not in "fd" or not x.ndim or not x.size:
        return None
    if len(arrays) > 1 and (arrays[1].dtype is not x.dtype or arrays[1].shape != x.shape):
        return None
    y = np.empty(x.shape, x.dtype) if out is None else out
    outer, inner = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    lines = [each.reshape(outer, -1, inner) for each in (*arrays, y)]
    return y if loop(outer, *lines, *numbers) else None


def cumsum(x, *, dim, out=None):
    return _along(_sums, dim, out, (x,), False)


def cumsum_grad(dy, *, dim, out=None):
    return _along(_sums, dim, out, (dy,), True)


def cumprod(x, *, dim):
    return _along(_products, dim, None, (x,))


def recurrence(a, b, *, dim, reverse):
    return _along(_recurrence, dim, None, (a, b), bool(reverse))
