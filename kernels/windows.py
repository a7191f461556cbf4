"""Windows that slide over the trailing dimensions of an array, for the kernels of conv and pooling.

Nothing here is an op. Sizes, steps and offsets are sequences with one entry per spatial dimension,
so that one text serves one, two and three of them.
"""

import numpy as np

# Windows are copied out for as many images at a time as stay in a CPU's cache. On CUDA launches
# cost more than memory traffic.
_BYTES_AT_ONCE = 2**20
_BYTES_AT_ONCE_CUDA = 2**28


def padded(xp, x, before, after, value=0):
    """Return x with elements of `value` before and after each spatial dimension."""
    if not any(before) and not any(after):
        return x
    lead = x.shape[: x.ndim - len(before)]
    size = x.shape[len(lead) :]
    shape = [b + n + a for b, n, a in zip(before, size, after, strict=True)]
    y = xp.full((*lead, *shape), value, x.dtype) if value else xp.zeros((*lead, *shape), x.dtype)
    y[(..., *inside(size, before))] = x
    return y


def inside(size, before):
    """Return the slices that cut the padding off."""
    return tuple([slice(b, b + n) for n, b in zip(size, before, strict=True)])


def count_windows(size, kernel_size, stride, padding, dilation):
    """Return how many windows fit into each spatial dimension."""
    return tuple(
        [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(size, kernel_size, stride, padding, dilation, strict=True)
        ]
    )


def sliding_windows(xp, x, kernel_size, output_size, stride, dilation):
    """Return the windows of x (*, *size), a strided view (*, *kernel_size, *output_size)."""
    lead = x.ndim - len(kernel_size)
    steps = x.strides[lead:]
    within = [step * d for step, d in zip(steps, dilation, strict=True)]
    across = [step * s for step, s in zip(steps, stride, strict=True)]
    shape = (*x.shape[:lead], *kernel_size, *output_size)
    strides = (*x.strides[:lead], *within, *across)
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


def taps(kernel_size, output_size, stride, dilation):
    """Yield, for each element of the kernel, the slices of the padded input that meet it.

    The first slices are those of the kernel's first element; its last dimension moves quickest.
    """
    for element in np.ndindex(*kernel_size):
        yield tuple(
            [
                slice(i * d, i * d + (n - 1) * s + 1, s)
                for i, n, s, d in zip(element, output_size, stride, dilation, strict=True)
            ]
        )


def take_larger(xp, y, tap, candidates):
    """Write into y what is larger in the candidates, and into tap which (from 1 on) it was."""
    for number, candidate in enumerate(candidates, 1):
        better = candidate > y
        if y.dtype.kind == "f":
            better |= candidate != candidate  # NaN
        xp.maximum(y, candidate, out=y)
        xp.maximum(tap, better * tap.dtype.type(number), out=tap)


def overhang(size, kernel_size, stride, before, dilation, output_size):
    """Return how many elements each spatial dimension must be padded with at its end."""
    return [
        max(0, (out - 1) * s + d * (k - 1) + 1 - b - n)
        for n, k, s, b, d, out in zip(
            size, kernel_size, stride, before, dilation, output_size, strict=True
        )
    ]


def images_at_once(xp, count, bytes_each):
    """Return how many of `count` images are worked on together."""
    budget = _BYTES_AT_ONCE if xp is np else _BYTES_AT_ONCE_CUDA
    return max(1, min(count, budget // max(1, bytes_each)))


def split(shape, spatial):
    """Return the sizes that number the planes, and those of a plane."""
    return shape[: len(shape) - spatial], shape[len(shape) - spatial :]


def last_first(lead, *sizes):
    """Yield (axis, sizes…) for each spatial dimension, the last one first."""
    axes = range(len(lead), len(lead) + len(sizes[0]))
    return reversed(list(zip(axes, *sizes, strict=True)))


def along(axis, place):
    return (*(slice(None),) * axis, place)


def with_size(shape, axis, size):
    return (*shape[:axis], size, *shape[axis + 1 :])
