"""Kernels that resize the trailing dimensions, as many as `output_size` has, and their transposes.

Every mode is a linear map along one dimension after the other: each entry of the result is a sum of
a few entries of the source, its taps. A map is a table of positions (entries, taps) and one of
weights, or None where all are 1. The transposed map has tables of the same kind. Positions are
computed in the dtype of the data and with PyTorch's formulas, so that they round alike.
"""

import functools
import math

import numpy as np

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import take
from oneflow_lite.kernels.infer_rules import pooled, unpooled
from oneflow_lite.kernels.windows import images_at_once, split
from oneflow_lite.registry import register_kernel


@register_kernel("resample", infer=pooled)
@in_float32
def resample(xp, x, *, output_size, mode, align_corners, scales, antialias):
    """Resize to `output_size`.

    mode is "nearest", "nearest-exact", "linear", "cubic" or, with antialias, "lanczos". `scales`
    has, for each dimension, the factor that positions are computed with, or None for the quotient
    of the sizes. Integers are rounded after each dimension, as in PyTorch.
    """
    _, size = split(x.shape, len(output_size))
    dtype = np.dtype(np.float32) if x.dtype.kind in "iu" else x.dtype
    maps = _maps(size, output_size, scales, mode, align_corners, antialias, dtype, False)
    if x.dtype == dtype or mode.startswith("nearest"):
        return _mapped(xp, x, maps)
    limits = np.iinfo(x.dtype)
    for way in sorted(maps, reverse=True):
        y = _mapped(xp, x.astype(dtype), [way])
        y += 0.5
        x = xp.clip(xp.floor(y, out=y), limits.min, limits.max, out=y).astype(x.dtype)
    return x if maps else x.copy()


@register_kernel("resample_grad", infer=unpooled)
@in_float32
def resample_grad(xp, dy, *, input_size, mode, align_corners, scales, antialias):
    _, size = split(dy.shape, len(input_size))
    maps = _maps(input_size, size, scales, mode, align_corners, antialias, dy.dtype, True)
    return _mapped(xp, dy, maps)


def _mapped(xp, x, maps):
    """Apply maps, each along its axis (counted from the last one, -1)."""
    y = x
    for axis, count, columns, weights in maps:
        shape = y.shape
        before, after = math.prod(shape[:axis]), math.prod(shape[axis:][1:])
        source = y.reshape(before, shape[axis], after)
        if xp is not np:
            columns = [xp.asarray(positions) for positions in columns]
            weights = None if weights is None else [xp.asarray(each) for each in weights]
        by = _by_tap if columns[0].size == count else _by_entry
        y = by(xp, source, columns, weights)
        y = y.reshape(*shape[:axis], count, *shape[axis:][1:])
    return x.copy() if y is x else y


def _by_tap(xp, x, columns, weights):
    """Gather and add one tap of all entries after the other."""
    before, count, after = x.shape[0], columns[0].size, x.shape[2]
    y = xp.empty((before, count, after), x.dtype)
    step = images_at_once(xp, before, 2 * count * after * x.dtype.itemsize)
    memory = xp.empty((step if len(columns) > 1 else 0, count, after), x.dtype)
    for start in range(0, before, step):
        part, total = x[start : start + step], y[start : start + step]
        for k, positions in enumerate(columns):
            out = memory[: len(part)] if k else total
            term = take(xp, part, positions, 1, out)
            if weights:
                term *= weights[k]
            if k:
                total += term
    return y


def _by_entry(xp, x, rows, weights):
    """Gather and add all taps of one entry after the other: there are more taps than entries."""
    y = xp.empty((x.shape[0], len(rows), x.shape[2]), x.dtype)
    for i, positions in enumerate(rows):
        part = x.take(positions, 1)
        y[:, i] = part.sum(1) if weights is None else xp.matmul(weights[i], part)
    return y


@functools.lru_cache(maxsize=64)
def _maps(sizes, counts, scales, mode, align_corners, antialias, dtype, transposed):
    """Return the maps from `sizes` to `counts` that change something, or the transposed ones.

    A map is (axis, entries, positions, weights), in lists of one array for each tap, or for each
    entry where those are fewer. Maps that shrink come first and those that grow last: then fewer
    elements are passed over.
    """
    maps = []
    for axis, (size, count, scale) in enumerate(zip(sizes, counts, scales, strict=True)):
        if size == count and (scale in (None, 1) or mode == "linear") and not antialias:
            continue
        positions, weights = _table(size, count, scale, mode, align_corners, antialias, dtype)
        if transposed:
            positions, weights = _transposed(positions, weights, size, dtype)
        entries, taps = positions.shape
        if entries >= taps:
            positions = positions.T
            weights = None if weights is None else weights.T[..., None]
        growth = entries / (count if transposed else size)
        factors = None if weights is None else list(weights.copy())
        each = (axis - len(sizes), entries, list(positions.copy()), factors)
        maps.append((growth, -axis, each))
    return [each for *_, each in sorted(maps, key=lambda each: each[:2])]


def _table(size, count, scale, mode, align_corners, antialias, dtype):
    """Return positions and weights, (entries, taps) each."""
    real = dtype.type(0).real.dtype.type
    if not align_corners:
        ratio = real(1 / scale) if scale else real(size) / real(count)
    else:
        ratio = real(size - 1) / real(count - 1) if count > 1 else real(0)
    make = _blurred if antialias else {"linear": _linear, "cubic": _cubic}.get(mode, _nearest)
    return make(size, np.arange(count, dtype=real), ratio, mode, align_corners)


def _nearest(size, entries, ratio, mode, align_corners):
    where = entries * ratio
    if mode == "nearest-exact":
        where = _source(entries, ratio, False).clip(0) + ratio.dtype.type(0.5)
    return np.minimum(_floor(where), size - 1)[:, None], None


def _linear(size, entries, ratio, mode, align_corners):
    first, t = _split(_source(entries, ratio, align_corners).clip(0), size)
    positions = np.stack([first, np.minimum(first + 1, size - 1)], 1)
    return positions, np.stack([1 - t, t], 1)


def _cubic(size, entries, ratio, mode, align_corners):
    first, t = _split(_source(entries, ratio, align_corners), size)
    positions = (first[:, None] + np.arange(-1, 3)).clip(0, size - 1)
    return positions, _bump(np.stack([1 + t, t, 1 - t, 2 - t], 1), -0.75)


def _blurred(size, entries, ratio, mode, align_corners):
    """Weigh all entries that a shrunk one covers: a hat, a cubic bump or Lanczos' over them."""
    reach = {"linear": 1, "cubic": 2, "lanczos": 3}[mode] * max(ratio, 1)
    centre = ((entries + 0.5) * ratio).astype(ratio.dtype)
    first = np.maximum(_trunc(centre - reach + 0.5), 0)
    stop = np.minimum(_trunc(centre + reach + 0.5), size)
    positions = first[:, None] + np.arange((stop - first).max())
    distance = abs((positions - centre[:, None] + 0.5) / max(ratio, 1)).astype(ratio.dtype)
    if mode == "lanczos":
        weights = np.where(distance < 3, np.sinc(distance) * np.sinc(distance / 3), 0)
        weights = weights.astype(distance.dtype)
    else:
        weights = _bump(distance, -0.5) if mode == "cubic" else (1 - distance).clip(0)
    weights *= positions < stop[:, None]
    weights /= weights.sum(1, keepdims=True)
    return np.minimum(positions, stop[:, None] - 1), weights


def _source(entries, ratio, align_corners):
    """Return where entries lie in the source."""
    half = ratio.dtype.type(0.5)
    return entries * ratio if align_corners else (entries + half) * ratio - half


def _floor(where):
    return np.floor(where.astype(np.float32)).astype(np.int64)  # PyTorch: floorf, always


def _trunc(where):
    return where.astype(np.int64)


def _split(where, size):
    """Return the entry before each position, and how far behind it the position is."""
    first = np.minimum(_floor(where), size - 1)
    return first, (where - first).clip(0, 1).astype(where.dtype)


def _bump(distance, a):
    """Return the weights of cubic convolution (R. Keys, 1981) for distances from 0 on."""
    x = distance
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0)).astype(x.dtype)


def _transposed(positions, weights, size, dtype):
    """Return the table by which `size` entries gather what they gave."""
    taps = positions.shape[1]
    flat = positions.reshape(-1)
    counts = np.bincount(flat, minlength=size)
    order = np.argsort(flat, kind="stable")
    first = np.cumsum(counts) - counts
    row, column = flat[order], np.arange(flat.size) - np.repeat(first, counts)
    # What is left over weighs nothing and repeats a position that is read anyway.
    givers = np.zeros((size, counts.max()), np.int64)
    givers += (order[np.minimum(first, flat.size - 1)] // taps)[:, None]
    givers[row, column] = order // taps
    if weights is None:
        if counts.min() == counts.max():
            return givers, None
        weights = np.ones(flat.size, dtype)
    turned = np.zeros(givers.shape, weights.dtype)
    turned[row, column] = weights.reshape(-1)[order]
    return givers, turned
