"""Windows that slide over the trailing dimensions of an array, for the kernels of conv and pooling.

Nothing here is an op. Sizes, steps and offsets are tuples with an entry per spatial dimension, so
that the same text serves one to three dimensions. Indices and shapes that follow from the tuples
are remembered: on small images they take longer to compute than the arithmetic.
"""

import functools
import math

import numpy as np

from oneflow_lite.errors import ShapeError

remembered = functools.lru_cache(512)

FEW = 4096  # elements, on which the number of calls matters more than the order of the work

# Windows are copied out for as many images at a time as stay in a CPU's cache. On CUDA launches
# cost more than memory traffic.
_BYTES_AT_ONCE = 2**20
_BYTES_AT_ONCE_CUDA = 2**28


def copy(target, source):
    """Copy an array onto another one of its shape.

    A row goes as one item where its elements lie side by side: NumPy takes 7 ns to begin with each
    row, and 3 ns for an item of so few bytes.
    """
    step = target.itemsize
    if (
        type(target) is type(source) is np.ndarray
        and target.dtype is source.dtype
        and target.size > FEW
        and target.strides[-1] == source.strides[-1] == step
    ):
        row = np.dtype((np.void, step * target.shape[-1]))
        target, source = target.view(row), source.view(row)
    target[...] = source


def padded(xp, x, before, after, value=0):
    """Return x with elements of `value` before and after each spatial dimension."""
    if not any(before) and not any(after):
        return x
    lead = x.shape[: x.ndim - len(before)]
    size = x.shape[len(lead) :]
    shape = [b + n + a for b, n, a in zip(before, size, after, strict=True)]
    y = xp.full((*lead, *shape), value, x.dtype) if value else xp.zeros((*lead, *shape), x.dtype)
    copy(y[inside(size, before)], x)
    return y


@remembered
def inside(size, before):
    """Return the index that cuts the padding off."""
    return (..., *[slice(b, b + n) for n, b in zip(size, before, strict=True)])


@remembered
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
    shape, strides = _layout(x.shape, x.strides, kernel_size, output_size, stride, dilation)
    if xp is np and x.flags.c_contiguous:  # a tenth of the time
        return np.ndarray(shape, x.dtype, x, 0, strides)
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


@remembered
def _layout(shape, strides, kernel_size, output_size, stride, dilation):
    lead = len(shape) - len(kernel_size)
    for n, k, o, s, d in zip(shape[lead:], kernel_size, output_size, stride, dilation, strict=True):
        if min(k, o) > 0 and (min(s, d) < 0 or (k - 1) * d + (o - 1) * s >= n):
            raise ShapeError(f"{o} windows of {k} elements do not fit into {n}; take fewer")
    steps = strides[lead:]
    within = [step * d for step, d in zip(steps, dilation, strict=True)]
    across = [step * s for step, s in zip(steps, stride, strict=True)]
    return (*shape[:lead], *kernel_size, *output_size), (*strides[:lead], *within, *across)


@remembered
def taps(kernel_size, output_size, stride, dilation):
    """Return, for each element of the kernel, the index of the padded input that it meets.

    The first is that of the kernel's first element; its last dimension moves quickest.
    """
    reach = [(n - 1) * s + 1 for n, s in zip(output_size, stride, strict=True)]
    steps = [*zip(dilation, reach, stride, strict=True)]
    return [
        (..., *[slice(i * d, i * d + r, s) for i, (d, r, s) in zip(k, steps, strict=True)])
        for k in np.ndindex(*kernel_size)
    ]


@functools.lru_cache(64)
def positions_of_few(shape, kernel_size, output_size, stride, dilation):
    """Return the C-order positions of all taps in the padded input, (taps, *, *output_size).

    `take` and `put` with these are quicker than copies of strided views, for few elements in small
    windows; None for more elements, and for no element.
    """
    size, count = math.prod(shape), math.prod(kernel_size)
    windows = math.prod(shape[: len(shape) - len(kernel_size)]) * math.prod(output_size)
    if not (0 < size <= FEW and 1 < count <= 64 and 0 < windows * count <= 4 * FEW):
        return None
    positions = np.arange(size).reshape(shape)
    places = taps(kernel_size, output_size, stride, dilation)
    return np.stack([positions[place] for place in places])


@remembered
def lines(axis, count, output_size, stride):
    """Return the index of the elements that each of `count` steps along an axis meets."""
    rows, reach = (slice(None),) * axis, (output_size - 1) * stride + 1
    return [(*rows, slice(i, i + reach, stride)) for i in range(count)]


def take_larger(xp, y, tap, candidates):
    """Write larger elements of candidates into y, and the candidate's number, from 1, into tap."""
    for number, candidate in enumerate(candidates, 1):
        better = candidate > y
        if y.dtype.kind == "f":
            better |= candidate != candidate  # NaN
        xp.maximum(y, candidate, out=y)
        xp.maximum(tap, better * tap.dtype.type(number), out=tap)


@remembered
def overhang(size, kernel_size, stride, before, dilation, output_size):
    """Return how many elements each spatial dimension must be padded with at its end."""
    geometry = zip(size, kernel_size, stride, before, dilation, output_size, strict=True)
    return tuple(
        [max(0, (out - 1) * s + d * (k - 1) + 1 - b - n) for n, k, s, b, d, out in geometry]
    )


def images_at_once(xp, count, bytes_each, least=0):
    """Return how many of `count` images to work on together; `least` raises the budget of bytes."""
    budget = max(least, _BYTES_AT_ONCE if xp is np else _BYTES_AT_ONCE_CUDA)
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
