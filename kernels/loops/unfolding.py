"""The loop that adds columns up as windows of planes; see `kernels/unfolding.py`."""

import math

import numpy as np

from oneflow_lite.kernels.windows import count_windows
from oneflow_lite.ops.eager_loops import Loop


@Loop
def _planes(part, begin, end, x, y, kernel, stride, before, dilation):
    # x (planes, kernel, kernel, rows, columns), y (planes, height, width)
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
