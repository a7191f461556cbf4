"""Kernels that resize planes, that read planes at positions of a grid, and their transposes.

Resizing works on the trailing dimensions, as many as `output_size` has. Every mode is a linear map
along each dimension in turn: an entry of the result is a weighted sum of a few entries of the
source, its taps. A map is a table of positions (entries, taps) and a table of weights, or None
where all weights are 1. The transposed map has tables of the same kind. Positions are computed in
the dtype of the data and with PyTorch's formulas, so that they round alike.

At a grid, y[n, c, p] = Σ_taps weight(grid[n, p]) x[n, c, tap(grid[n, p])], with taps in a lattice
around the position. `orders` says, for each spatial dimension from the first on, how often the
weight is differentiated by that coordinate. Hence the derivatives of these ops are these ops again.
Where two pieces of a weight meet, or padding folds a coordinate, the derivative is PyTorch's.
Planes get a margin that every tap stays in. So the taps of all positions are equally far apart, and
a single array of indices serves every tap.
"""

import functools
import itertools
import math
import operator
from typing import NamedTuple

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import add_at, take
from oneflow_lite.kernels.infer_rules import in_c_order, pooled, unpooled
from oneflow_lite.kernels.pieces import by_planes
from oneflow_lite.kernels.windows import FEW, along, images_at_once, inside, padded, split
from oneflow_lite.ops.registry import register_kernel

# --- Resizing -------------------------------------------------------------------------------------


@register_kernel("resample", infer=pooled, linear="x")
@by_planes()
@in_float32
def resample(xp, x, *, output_size, mode, align_corners, scales, antialias):
    """Resize to `output_size`.

    mode is "nearest", "nearest-exact", "linear", "cubic" or, with antialias, "lanczos". `scales`
    has, for each dimension, the factor that positions are computed with, or None for the quotient
    of the sizes. Integers are rounded after each dimension, as in PyTorch.
    """
    _, size = split(x.shape, len(output_size))
    dtype = np.dtype(np.float32) if x.dtype.kind in "iu" else x.dtype
    steps = x.dtype == np.uint8 and not mode.startswith("nearest")
    dtype = np.dtype(np.float64) if steps else dtype
    maps = _maps(size, output_size, scales, mode, align_corners, antialias, dtype, False, steps)
    if x.dtype == dtype or mode.startswith("nearest"):
        return _mapped(xp, x, maps)
    limits = np.iinfo(x.dtype)
    for way in sorted(maps, reverse=True):
        y = _mapped(xp, x.astype(dtype), [way])
        y += 0.5
        x = xp.clip(xp.floor(y, out=y), limits.min, limits.max, out=y).astype(x.dtype)
    return x if maps else x.copy()


@register_kernel("resample_grad", infer=unpooled)
@by_planes()
@in_float32
def resample_grad(xp, dy, *, input_size, mode, align_corners, scales, antialias):
    _, size = split(dy.shape, len(input_size))
    maps = _maps(input_size, size, scales, mode, align_corners, antialias, dy.dtype, True)
    return _mapped(xp, dy, maps)


def _mapped(xp, x, maps):
    """Apply maps, each along its axis (counted from the last one, -1)."""
    y = x
    dense = xp is np and 0 < x.size <= FEW and maps and maps[0][-1] is not None
    # The zeros of a matrix meet all elements: none may be infinite or NaN.
    dense = dense and np.isfinite(x).all()
    for axis, count, columns, weights, matrix in maps:
        lead, (size, *rest) = y.shape[:axis], y.shape[axis:]
        if dense and matrix is not None:
            y = (
                matrix @ y.reshape(-1, size, math.prod(rest))
                if rest
                else y.reshape(-1, size) @ matrix.T
            )
        else:
            source = y.reshape(math.prod(lead), size, math.prod(rest))
            if xp is not np:
                columns = [xp.asarray(positions) for positions in columns]
                weights = None if weights is None else [xp.asarray(each) for each in weights]
            by = _by_tap if columns[0].size == count else _by_entry
            y = by(xp, source, columns, weights)
        y = y.reshape(*lead, count, *rest)
    return x.copy() if y is x else y


def _by_tap(xp, x, columns, weights):
    """Sum tap by tap: gather a tap of all entries, and add."""
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
    """Sum entry by entry, where taps outnumber entries: gather all taps of an entry, and add."""
    y = xp.empty((x.shape[0], len(rows), x.shape[2]), x.dtype)
    for i, positions in enumerate(rows):
        part = x.take(positions, 1)
        y[:, i] = part.sum(1) if weights is None else xp.matmul(weights[i], part)
    return y


@functools.lru_cache(maxsize=64)
def _maps(sizes, counts, scales, mode, align_corners, antialias, dtype, transposed, steps=False):
    """Return the maps from `sizes` to `counts` that change something, or their transposes.

    A map is (axis, entries, positions, weights, matrix). Positions and weights are lists with an
    array for each tap, or for each entry where entries are fewer. The matrix is the same map for
    few elements, and None for many. Maps that shrink come before maps that grow: then fewer
    elements are passed over. With `steps`, weights are multiples of a power of two that fit into 16
    bits, as PyTorch's are for bytes.
    """
    maps = []
    # PyTorch has a kernel of its own for small images.
    few = len(counts) == 2 and sum(counts) <= 128 and mode.startswith("nearest")
    dtype = np.dtype(np.float32) if few else dtype
    for axis, (size, count, scale) in enumerate(zip(sizes, counts, scales, strict=True)):
        if few and mode == "nearest" and count in (size, 2 * size):
            scale = None
        if size == count and (scale in (None, 1) or mode == "linear"):
            continue
        positions, weights = _table(size, count, scale, mode, align_corners, antialias, dtype)
        if transposed:
            positions, weights = _transposed(positions, weights, size, dtype)
        if steps:
            weights = _in_steps(positions, weights)
        entries, taps = positions.shape
        matrix, source = None, count if transposed else size
        if weights is not None and entries * source <= FEW:
            matrix = np.zeros((entries, source), weights.dtype)
            np.add.at(matrix, (np.arange(entries)[:, None], positions), weights)
        if entries >= taps:
            positions = positions.T
            weights = None if weights is None else weights.T[..., None]
        factors = None if weights is None else list(weights.copy())
        each = (axis - len(sizes), entries, list(positions.copy()), factors, matrix)
        maps.append((entries / source, -axis, each))
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
    """Weigh all entries that a shrunk entry covers, by a hat, a cubic bump or Lanczos' kernel."""
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


def _in_steps(positions, weights):
    """Round to multiples of 2**-p, with the largest p up to 22 for which all fit into 16 bits."""
    for k in range(1, weights.shape[1]):  # what is read twice, at a border, is rounded once
        twice = positions[:, k] == positions[:, k - 1]
        weights[twice, k] += weights[twice, k - 1]
        weights[twice, k - 1] = 0
    top = weights.max()
    p = next((p for p in range(22) if int(0.5 + top * 2 ** (p + 1)) >= 1 << 15), 22)
    return np.copysign(np.floor(abs(weights) * 2**p + 0.5), weights) / 2**p


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
    """Return the table of the transposed map: each of `size` entries gathers from its receivers."""
    taps = positions.shape[1]
    flat = positions.reshape(-1)
    counts = np.bincount(flat, minlength=size)
    order = np.argsort(flat, kind="stable")
    first = np.cumsum(counts) - counts
    row, column = flat[order], np.arange(flat.size) - np.repeat(first, counts)
    # Entries have different numbers of taps: the rest weighs 0, at a position that is read anyway.
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


# --- Reading at a grid ----------------------------------------------------------------------------

_TAPS = {"nearest": range(1), "bilinear": range(2), "bicubic": range(-1, 3)}
_DEGREES = {"nearest": 0, "bilinear": 1, "bicubic": 3}
# Cubic convolution (R. Keys, 1981) with a = -0.75, near and far of the position.
_NEAR, _FAR = (1.25, -2.25, 0.0, 1.0), (-0.75, 3.75, -6.0, 3.0)


class _Way(NamedTuple):
    """The attributes of a call that say how it reads."""

    interpolation_mode: str
    padding_mode: str
    align_corners: bool


@in_c_order
def _sampled(x, grid, **attrs):
    return ArraySpec((*x.shape[:2], *grid.shape[1:-1]), x.dtype)


@in_c_order
def _unsampled(dy, grid, *, input_size, **attrs):
    return ArraySpec((*dy.shape[:2], *input_size), dy.dtype)


@in_c_order
def _like_grid(dy, x, grid, **attrs):
    return ArraySpec(grid.shape, dy.dtype)


@register_kernel("plane_sample", infer=_sampled, sbp="b*,b*->b", linear="x")
@in_float32
def plane_sample(xp, x, grid, *, interpolation_mode, padding_mode, align_corners, orders):
    """Read x (N, C, *size) at a grid (N, *positions, spatial) in -1 … 1, last dimension first."""
    way = _Way(interpolation_mode, padding_mode, align_corners)
    y = xp.zeros((*x.shape[:2], math.prod(grid.shape[1:-1])), x.dtype)
    source = _with_margin(xp, x, way)
    for images, index, corners in _corners(xp, source.shape, grid, way, [orders]):
        flat, total = source[images].reshape(-1), y[images]
        memory = xp.empty_like(total)
        for offset, (weight,) in corners:
            term = take(xp, flat[offset:], index, None, memory)
            term *= weight
            total += term
    return y.reshape(*x.shape[:2], *grid.shape[1:-1])


@register_kernel("plane_sample_input_grad", infer=_unsampled, sbp="b*,b*->b")
@in_float32
def plane_sample_input_grad(
    xp, dy, grid, *, input_size, interpolation_mode, padding_mode, align_corners, orders
):
    """Add dy, weighted, to the elements that were read."""
    way = _Way(interpolation_mode, padding_mode, align_corners)
    margin = len(_TAPS[interpolation_mode])
    dx = xp.zeros((*dy.shape[:2], *[n + 2 * margin for n in input_size]), dy.dtype)
    dy = dy.reshape(*dy.shape[:2], math.prod(dy.shape[2:]))
    for images, index, corners in _corners(xp, dx.shape, grid, way, [orders]):
        flat, given = dx[images].reshape(-1), dy[images]
        for offset, (weight,) in corners:
            add_at(xp, flat[offset:], index, given * weight)
    return _without_margin(xp, dx, input_size, way)


@register_kernel("plane_sample_grid_grad", infer=_like_grid, sbp="b*,b*,b*->b", linear="dy x")
@in_float32
def plane_sample_grid_grad(
    xp, dy, x, grid, *, interpolation_mode, padding_mode, align_corners, orders
):
    """Return dgrid[n, p, j] = Σ_c dy[n, c, p] y'[n, c, p], differentiated once more by grid j."""
    way = _Way(interpolation_mode, padding_mode, align_corners)
    spatial = len(orders)
    # Coordinate j of the grid belongs to the j-th dimension from the end.
    raised = [
        tuple([order + (axis == spatial - 1 - j) for axis, order in enumerate(orders)])
        for j in range(spatial)
    ]
    dy = dy.reshape(*dy.shape[:2], math.prod(dy.shape[2:]))
    dgrid = xp.zeros((len(grid), dy.shape[2], spatial), dy.dtype)
    source = _with_margin(xp, x, way)
    for images, index, corners in _corners(xp, source.shape, grid, way, raised):
        flat, given, total = source[images].reshape(-1), dy[images], dgrid[images]
        memory = xp.empty_like(given)
        for offset, weights in corners:
            term = take(xp, flat[offset:], index, None, memory)
            term *= given
            read = term.sum(1, keepdims=True)
            for j, weight in enumerate(weights):
                if weight is not None:
                    total[..., j] += (read * weight)[:, 0]
    return dgrid.reshape(grid.shape)


def _with_margin(xp, x, way):
    """Return x with a margin: zeros, or for bicubic the elements that the padding repeats."""
    margin = len(_TAPS[way.interpolation_mode])
    if way.interpolation_mode != "bicubic" or way.padding_mode == "zeros":
        return padded(xp, x, (margin,) * (x.ndim - 2), (margin,) * (x.ndim - 2))
    for axis in range(2, x.ndim):
        x = x.take(xp.asarray(_repeated(x.shape[axis], margin, way)), axis)
    return x


def _without_margin(xp, dx, size, way):
    margin = len(_TAPS[way.interpolation_mode])
    if way.interpolation_mode != "bicubic" or way.padding_mode == "zeros":
        return dx[inside(size, (margin,) * len(size))].copy()
    for axis, n in enumerate(size, 2):
        part = dx[along(axis, slice(margin, margin + n))].copy()
        for k, place in enumerate(_repeated(n, margin, way)):
            if not margin <= k < margin + n:
                target = part[along(axis, slice(place, place + 1))]
                target += dx[along(axis, slice(k, k + 1))]
        dx = part
    return dx


def _repeated(n, margin, way):
    """Return which of n elements stands at each place, margins included."""
    places = np.arange(-margin, n + margin, dtype=np.float64)
    if way.padding_mode == "reflection":
        places, _ = _mirrored(np, places, n, way.align_corners)
    return places.clip(0, n - 1).astype(np.int64)


def _corners(xp, planes, grid, way, all_orders):
    """Yield, for a few images at a time, the place of the first tap and the weight of every tap.

    That is (images, index of the first tap, (offset, weights) of each tap): indices count elements
    of the images, in planes with margins; there is a weight for each tuple of orders.
    """
    batch, channels, *size = planes
    taps, degree = _TAPS[way.interpolation_mode], _DEGREES[way.interpolation_mode]
    count, margin = math.prod(grid.shape[1:-1]), len(taps)
    if all(max(orders) > degree for orders in all_orders) or not batch * channels * count:
        return
    strides = [math.prod(size[axis + 1 :]) for axis in range(len(size))]
    step = images_at_once(xp, batch, channels * count * 16)
    planes_at = xp.arange(step * channels).reshape(step, channels, 1) * math.prod(size)
    grid = grid.reshape(batch, 1, count, len(size))
    for start in range(0, batch, step):
        images = slice(start, start + step)
        points = grid[images]
        first_at, factors = 0, []
        for axis, stride in enumerate(strides):
            n = size[axis] - 2 * margin
            where, slope = _positions(xp, points[..., -1 - axis], n, way)
            low = -margin - taps[0]
            where = xp.clip(where, low, n + margin - 1 - taps[-1])
            first = xp.rint(where) if degree == 0 else xp.floor(where)
            wanted = {orders[axis] for orders in all_orders if orders[axis] <= degree}
            factors.append(_weights(where - first, slope, degree, wanted))
            place = xp.fmax(first, low).astype(np.int64)  # a NaN reads, too, with the weight NaN
            place += margin + taps[0]
            first_at = first_at + place * stride
        yield images, planes_at[: len(points)] + first_at, _weighed(factors, strides, all_orders)


def _weighed(factors, strides, all_orders):
    """Yield the offset of each tap from the first one, and its weights: None for 0."""
    for corner in itertools.product(*[range(len(taps)) for taps in factors]):
        offset = sum(k * stride for k, stride in zip(corner, strides, strict=True))
        chosen = [taps[k] for taps, k in zip(factors, corner, strict=True)]
        yield offset, [_product(chosen, orders) for orders in all_orders]


def _product(factors, orders):
    weights = [by_order.get(order) for by_order, order in zip(factors, orders, strict=True)]
    return None if any(w is None for w in weights) else functools.reduce(operator.mul, weights)


def _positions(xp, coordinates, n, way):
    """Return positions among n elements, and how fast they move with the coordinate."""
    slope = (n - 1) / 2 if way.align_corners else n / 2
    where = (coordinates + 1) * slope
    if not way.align_corners:
        where -= 0.5
    if way.padding_mode == "reflection":
        where = xp.where(xp.isinf(where), math.nan, where)  # no reflection ends so far out
        where, sign = _mirrored(xp, where, n, way.align_corners)
        slope = sign * slope
    if way.padding_mode != "zeros" and way.interpolation_mode != "bicubic":
        slope = slope * ((where > 0) & (where < n - 1))
        where = xp.minimum(xp.fmax(where, 0), n - 1)  # a NaN comes to the first element
    return where, slope


def _mirrored(xp, where, n, align_corners):
    """Return positions reflected to lie between the mirrors, and the sign of their movement."""
    low, span = (0, n - 1) if align_corners else (-0.5, n)
    if not span:
        return xp.zeros_like(where), xp.zeros_like(where)
    distance = where - low
    flips = xp.floor(abs(distance) / span)
    rest = abs(distance) - flips * span
    odd = flips % 2 == 1
    sign = xp.where(odd != (distance < 0), -1, 1).astype(where.dtype)
    return xp.where(odd, span - rest, rest) + low, sign


def _weights(t, slope, degree, orders):
    """Return for each tap the weights of these orders; t is the distance behind the tap before."""
    if degree == 0:
        return [{0: 1.0}]
    if degree == 1:
        return [{0: 1 - t, 1: -slope}, {0: t, 1: slope}]
    taps = [(_FAR, 1, t + 1), (_NEAR, 1, t), (_NEAR, -1, 1 - t), (_FAR, -1, 2 - t)]
    return [
        {r: _polynomial(np.polyder(p, r), x) * (sign * slope) ** r for r in orders}
        for p, sign, x in taps
    ]


def _polynomial(coefficients, x):
    y = x * 0
    for c in coefficients:
        y = y * x + float(c)
    return y
