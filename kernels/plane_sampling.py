"""Kernels that read planes at positions that a grid names, and the two transposes of that.

y[n, c, p] = Σ_taps weight(grid[n, p]) x[n, c, tap(grid[n, p])], with taps in a lattice around the
position. `orders` has a number for each spatial dimension, the first one first: so often is the
weight differentiated by that coordinate. Hence the derivatives of these ops are these ops again.
Where two pieces of a weight meet, or padding folds a coordinate, the derivative is PyTorch's.

Planes get a margin that every tap stays in. So the taps of all positions are equally far apart, and
one array of indices serves for all of them.
"""

import functools
import itertools
import math
import operator
from typing import NamedTuple

import numpy as np

from oneflow_lite.array_spec import ArraySpec
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import add_at, take
from oneflow_lite.kernels.infer_rules import in_c_order
from oneflow_lite.kernels.windows import along, images_at_once, inside, padded
from oneflow_lite.registry import register_kernel

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


@register_kernel("plane_sample", infer=_sampled)
@in_float32
def plane_sample(xp, x, grid, *, interpolation_mode, padding_mode, align_corners, orders):
    """x (N, C, *size), grid (N, *positions, spatial) in -1 … 1, the last dimension of x first."""
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


@register_kernel("plane_sample_input_grad", infer=_unsampled)
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


@register_kernel("plane_sample_grid_grad", infer=_like_grid)
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
    """Return x with what is read around it: zeros, or what padding repeats there for cubics."""
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
    """Yield, for a few images at a time, where the first tap stands and what every tap weighs.

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
            place = xp.fmax(first, low).astype(np.int64)  # a NaN is read somewhere
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
        where = xp.where(xp.isinf(where), math.nan, where)  # there is no mirror so far out
        where, sign = _mirrored(xp, where, n, way.align_corners)
        slope = sign * slope
    if way.padding_mode != "zeros" and way.interpolation_mode != "bicubic":
        slope = slope * ((where > 0) & (where < n - 1))
        where = xp.minimum(xp.fmax(where, 0), n - 1)  # a NaN comes to the first element
    return where, slope


def _mirrored(xp, where, n, align_corners):
    """Return positions between the mirrors, and -1 where they move the other way there."""
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
    """Return for each tap the weights of these orders; t is how far behind the first one it is."""
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
