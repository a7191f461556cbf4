"""Loops of windows of planes side by side as columns, and back; see `kernels/unfolding.py`."""

import math

import numpy as np

from oneflow_lite.eager_loops import Loop
from oneflow_lite.kernels.windows import count_windows


@Loop
def _columns(part, begin, end, x, y, kernel, stride, before, dilation):
    # x (planes, height, width), y (planes, kernel, kernel, rows, columns)
    _, height, width = x.shape
    _, _, _, rows, columns = y.shape
    for i in range(begin, end):
        for k in range(kernel[0]):
            for m in range(kernel[1]):
                left = m * dilation[1] - before[1]
                for r in range(rows):
                    h = r * stride[0] + k * dilation[0] - before[0]
                    line = y[i, k, m, r]
                    if h < 0 or h >= height:
                        for c in range(columns):
                            line[c] = 0
                    else:
                        source = x[i, h]
                        for c in range(columns):
                            w = left + c * stride[1]
                            line[c] = source[w] if w >= 0 and w < width else 0


@Loop
def _planes(part, begin, end, x, y, kernel, stride, before, dilation):
    _, height, width = y.shape
    _, _, _, rows, columns = x.shape
    for i in range(begin, end):
        for h in range(height):
            for w in range(width):
                y[i, h, w] = 0
        for k in range(kernel[0]):
            for m in range(kernel[1]):
                left = m * dilation[1] - before[1]
                for r in range(rows):
                    h = r * stride[0] + k * dilation[0] - before[0]
                    if h >= 0 and h < height:
                        line, target = x[i, k, m, r], y[i, h]
                        for c in range(columns):
                            w = left + c * stride[1]
                            if w >= 0 and w < width:
                                target[w] += line[c]


def im2col(x, *, kernel_size, dilation, padding, stride):
    if len(kernel_size) != 2 or x.dtype.char not in "fd" or not x.size:
        return None
    *lead, channels, height, width = x.shape
    blocks = count_windows((height, width), kernel_size, stride, padding, dilation)
    planes = math.prod((*lead, channels))
    y = np.empty((*lead, channels * math.prod(kernel_size), math.prod(blocks)), x.dtype)
    windows = y.reshape(planes, *kernel_size, *blocks)
    geometry = (kernel_size, stride, padding, dilation)
    return y if _columns(planes, x.reshape(planes, height, width), windows, *geometry) else None


def col2im(x, *, output_size, kernel_size, dilation, padding, stride):
    if len(kernel_size) != 2 or x.dtype.char not in "fd" or not x.size:
        return None
    *lead, rows, _ = x.shape
    blocks = count_windows(output_size, kernel_size, stride, padding, dilation)
    channels = rows // math.prod(kernel_size)
    planes = math.prod((*lead, channels))
    y = np.empty((*lead, channels, *output_size), x.dtype)
    windows = x.reshape(planes, *kernel_size, *blocks)
    geometry = (kernel_size, stride, padding, dilation)
    return y if _planes(planes, windows, y.reshape(planes, *output_size), *geometry) else None
