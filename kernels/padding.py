"""Kernels of pad.

`pad` counts elements as PyTorch does: (before, after) of the last dimension, then of the one before
it. Negative numbers cut elements off, in mode "constant" alone: for the others the functor cuts.
"""

import functools
import math

import numpy as np

from oneflow_lite.kernels.index_arrays import add_at
from oneflow_lite.kernels.infer_rules import padded
from oneflow_lite.kernels.windows import FEW
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.ops.sbp_rules import Way


def _unpadded(shapes, attrs):
    ndim, pad = len(shapes[0]), attrs["pad"]
    kept = {ndim - 1 - i for i in range(len(pad) // 2) if pad[2 * i] or pad[2 * i + 1]}
    return [Way((d,), (d,)) for d in range(ndim) if d not in kept]


@register_kernel("pad", infer=padded, sbp=_unpadded, batch="front")
def pad(xp, x, *, pad, mode="constant", value=0, out=None):
    if xp is np and mode != "constant" and out is None:
        positions = _positions_of_few(x.shape, pad, mode)
        if positions is not None:
            return x.take(positions)
    return _filled(xp, x, _geometry(x.shape, pad, mode), mode, value, out)


def _filled(xp, x, geometry, mode, value=0, out=None):
    shape, place, source, bands = geometry
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
    y[place] = x[source]
    for band, copied in bands:
        y[band] = y[copied]
    return y


@register_kernel("pad_grad", sbp=_unpadded, batch="front")
def pad_grad(xp, dy, *, pad, mode):
    """Return the gradient of x, in which an element gets the gradients of its copies, too."""
    shape, _, _, _ = _geometry(dy.shape, tuple([-n for n in pad]), "constant")
    if xp is np and (positions := _positions_of_few(shape, pad, mode)) is not None:
        dx = np.zeros(shape, dy.dtype)
        add_at(np, dx.reshape(-1), positions, dy)
        return dx
    _, place, _, bands = _geometry(shape, pad, mode)
    dx = dy.copy()
    for band, source in reversed(bands):
        given = dx[band]
        dim = len(band) - 1
        dx[source] += given.sum(dim, keepdims=True) if mode == "replicate" else given
    return dx[place].copy()


@functools.lru_cache(256)
def _positions_of_few(size, pad, mode):
    """Return the C-order positions of copied elements, (*padded size), if there are few.

    With these a single call copies, or adds, the elements of all bands.
    """
    geometry = _geometry(size, pad, mode)
    if not 0 < math.prod(geometry[0]) <= FEW:
        return None
    return _filled(np, np.arange(math.prod(size)).reshape(size), geometry, mode)


@functools.lru_cache(512)
def _geometry(size, pad, mode):
    """Return the padded shape, the place of x, the part of x there, and pairs (band, source)."""
    pairs = [(0, 0)] * (len(size) - len(pad) // 2)
    pairs += [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    shape = tuple([n + before + after for n, (before, after) in zip(size, pairs, strict=True)])
    source = _interior(size, [(-before, -after) for before, after in pairs])
    bands = [
        each
        for dim, (before, after) in enumerate(pairs)
        for each in _bands(dim, before, after, size[dim], mode)
        if mode != "constant"
    ]
    return shape, _interior(shape, pairs), source, bands


def _interior(shape, pairs):
    """Return the slices that leave out the entries before and after."""
    return tuple([slice(max(b, 0), n - max(a, 0)) for n, (b, a) in zip(shape, pairs, strict=True)])


def _bands(dim, before, after, size, mode):
    """Return index pairs (band, its source) along one dimension."""
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
