"""Loops of softmax, its logarithm and their gradients along the last dimension."""

import numpy as np

from oneflow_lite.eager_loops import Loop
from oneflow_lite.kernels.loops.names import add, exp, highest, log, real


def _by_lines(loop, dim, out, *arrays):
    x = arrays[0]
    if x.dtype.char not in "fd" or dim not in (-1, x.ndim - 1) or x.shape[-1] == 0:
        return None
    if len(arrays) > 1 and (x.dtype is not arrays[1].dtype or x.shape != arrays[1].shape):
        return None
    y = np.empty(x.shape, x.dtype) if out is None else out
    lines = [each.reshape(-1, x.shape[-1]) for each in (*arrays, y)]
    return y if loop(len(lines[0]), *lines) else None


@Loop
def _softmax(part, begin, end, x, y):
    n = x.shape[1]
    for i in range(begin, end):
        largest = x[i, 0]
        for j in range(n):
            largest = highest(largest, x[i, j])
        total = 0.0
        for j in range(n):
            e = exp(x[i, j] - largest)
            y[i, j] = e
            total = add(total, e)
        scale = real(1.0 / total)
        for j in range(n):
            y[i, j] *= scale


@Loop
def _log_softmax(part, begin, end, x, y):
    n = x.shape[1]
    for i in range(begin, end):
        largest = x[i, 0]
        for j in range(n):
            largest = highest(largest, x[i, j])
        total = 0.0
        for j in range(n):
            total = add(total, exp(x[i, j] - largest))
        shift = real(log(total))
        for j in range(n):
            y[i, j] = (x[i, j] - largest) - shift


@Loop
def _softmax_grad(part, begin, end, dy, y, dx):
    n = y.shape[1]
    for i in range(begin, end):
        total = 0.0
        for j in range(n):
            total = add(total, dy[i, j] * y[i, j])
        mean = real(total)
        for j in range(n):
            dx[i, j] = (dy[i, j] - mean) * y[i, j]


@Loop
def _log_softmax_grad(part, begin, end, dy, y, dx):
    n = y.shape[1]
    for i in range(begin, end):
        total = 0.0
        for j in range(n):
            total = add(total, dy[i, j])
        sum = real(total)
        for j in range(n):
            dx[i, j] = dy[i, j] - exp(y[i, j]) * sum


def softmax(x, *, dim, out=None):
    return _by_lines(_softmax, dim, out, x)


def log_softmax(x, *, dim, out=None):
    return _by_lines(_log_softmax, dim, out, x)


def softmax_grad(dy, y, *, dim, out=None):
    return _by_lines(_softmax_grad, dim, out, dy, y)


def log_softmax_grad(dy, y, *, dim, out=None):
    return _by_lines(_log_softmax_grad, dim, out, dy, y)
