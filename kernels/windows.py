"""Windows that slide over the trailing dimensions of an array, for the kernels of conv and pooling.

Nothing here is an op. An array is (N, C, *spatial); sizes, steps and offsets are tuples with one
entry per spatial dimension, so that one text serves one, two and three of them.
"""

import numpy as np

# Windows are copied out for as many images at a time as stay in a CPU's cache. On CUDA launches
# cost more than memory traffic.
_BYTES_AT_ONCE = 2**20
_BYTES_AT_ONCE_CUDA = 2**28


def padded(xp, x, padding, value=0):
    """Return x with `padding` elements of `value` on both sides of each spatial dimension."""
    if not any(padding):
        return x
    shape = x.shape[:2] + tuple(
        [size + 2 * p for size, p in zip(x.shape[2:], padding, strict=True)]
    )
    y = xp.full(shape, value, x.dtype) if value else xp.zeros(shape, x.dtype)
    y[(..., *inside(x.shape[2:], padding))] = x
    return y


def inside(size, padding):
    """Return the slices that cut the padding off."""
    return tuple([slice(p, p + n) for n, p in zip(size, padding, strict=True)])


def sliding_windows(xp, x, kernel_size, stride, dilation):
    """Return the windows of x as a strided view (N, C, *kernel_size, *output_size)."""
    steps = x.strides[2:]
    output_size = [
        (size - d * (k - 1) - 1) // s + 1
        for size, k, s, d in zip(x.shape[2:], kernel_size, stride, dilation, strict=True)
    ]
    shape = (*x.shape[:2], *kernel_size, *output_size)
    within = [step * d for step, d in zip(steps, dilation, strict=True)]
    across = [step * s for step, s in zip(steps, stride, strict=True)]
    strides = (*x.strides[:2], *within, *across)
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


def taps(kernel_size, output_size, stride, dilation):
    """Yield, for each element of the kernel, the slices of the input that meet it.

    The first is that of the kernel's first element; the last dimension moves quickest.
    """
    for element in np.ndindex(*kernel_size):
        yield tuple(
            [
                slice(i * d, i * d + (n - 1) * s + 1, s)
                for i, n, s, d in zip(element, output_size, stride, dilation, strict=True)
            ]
        )


def in_batches(xp, count, bytes_each):
    """Yield slices of `count` images that are worked on together."""
    budget = _BYTES_AT_ONCE if xp is np else _BYTES_AT_ONCE_CUDA
    step = max(1, budget // max(1, bytes_each))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
