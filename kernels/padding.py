"""Kernels of pad.

`pad` counts elements as PyTorch does: (before, after) of the last dimension, then of the one before
it. Negative numbers cut elements off, in mode "constant" alone: for the others the functor cuts.
"""

from oneflow_lite.kernels.infer_rules import padded
from oneflow_lite.registry import register_kernel


@register_kernel("pad", infer=padded)
def pad(xp, x, *, pad, mode="constant", value=0, out=None):
    pairs = _pairs(x.ndim, pad)
    shape = tuple([n + before + after for n, (before, after) in zip(x.shape, pairs, strict=True)])
    if out is not None:
        y = out
        if mode == "constant":
            y[...] = value
    elif mode != "constant":
        y = xp.empty(shape, x.dtype)
    elif value:
        y = xp.full(shape, value, x.dtype)
    else:
        y = xp.zeros(shape, x.dtype)
    y[_interior(y.shape, pairs)] = x[_interior(x.shape, [(-b, -a) for b, a in pairs])]
    if mode != "constant":
        for dim, (before, after) in enumerate(pairs):
            for band, source in _bands(dim, before, after, x.shape[dim], mode):
                y[band] = y[source]
    return y


@register_kernel("pad_grad")
def pad_grad(xp, dy, *, pad, mode):
    """Add the gradients of the bands to those of the elements that they were copied from."""
    pairs = _pairs(dy.ndim, pad)
    shape = tuple([n - before - after for n, (before, after) in zip(dy.shape, pairs, strict=True)])
    dx = dy.copy()
    for dim in reversed(range(dy.ndim)):
        before, after = pairs[dim]
        for band, source in _bands(dim, before, after, shape[dim], mode):
            dx[source] += dx[band].sum(dim, keepdims=True) if mode == "replicate" else dx[band]
    return dx[_interior(dx.shape, pairs)].copy()


def _pairs(ndim, pad):
    """Return (before, after) for each dimension, the first one first."""
    pairs = [(0, 0)] * (ndim - len(pad) // 2)
    return pairs + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]


def _interior(shape, pairs):
    """Return the slices that leave out what stands before and after."""
    return tuple([slice(max(b, 0), n - max(a, 0)) for n, (b, a) in zip(shape, pairs, strict=True)])


def _bands(dim, before, after, size, mode):
    """Return index pairs (band, what it is copied from) along one dimension."""
    end = before + size
    if mode == "reflect":
        stop = end - 2 - after
        left = slice(2 * before, before, -1)
        right = slice(end - 2, stop if stop >= 0 else None, -1)
    elif mode == "replicate":
        left, right = slice(before, before + 1), slice(end - 1, end)
    else:  # circular
        left, right = slice(size, size + before), slice(before, before + after)
    rows = (slice(None),) * dim
    bands = []
    if before:
        bands.append(((*rows, slice(0, before)), (*rows, left)))
    if after:
        bands.append(((*rows, slice(end, end + after)), (*rows, right)))
    return bands
