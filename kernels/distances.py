"""The kernel of distances between all rows of two matrices."""

from __future__ import annotations

import math

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.kernels.batches import flat
from oneflow_lite.ops.registry import register_kernel

# Elements of differences in memory at once: rows of x are taken in parts that make no more.
_BLOCK = 1 << 22


def _pairs(x, y, **attrs):
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return ArraySpec((*batch, x.shape[-2], y.shape[-2]), x.dtype)


@register_kernel("cdist", infer=_pairs, sbp="...mK,...nK->...mn")
def cdist(xp, x, y, *, p, mm):
    """(Σ |x_ik − y_jk|^p)^(1/p) for all i and j; with mm, p = 2, by a product of matrices."""
    if mm:
        return _by_product(xp, x, y)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    z = xp.empty((*batch, x.shape[-2], y.shape[-2]), x.dtype)
    rows = max(1, _BLOCK // max(1, math.prod(batch) * math.prod(y.shape[-2:])))
    for start in range(0, x.shape[-2], rows):
        part = slice(start, start + rows)
        z[..., part, :] = _norms(xp, x[..., part, None, :] - y[..., None, :, :], p)
    return z


def _norms(xp, difference, p):
    if not difference.shape[-1]:
        return 0
    if p == 0:
        return (difference != 0).sum(-1)
    if p == 2:
        difference *= difference
        return xp.sqrt(difference.sum(-1))
    size = xp.abs(difference, out=difference)
    if p == math.inf:
        return size.max(-1)
    if p == 1:
        return size.sum(-1)
    size **= p
    return size.sum(-1) ** (1 / p)


def _by_product(xp, x, y):
    """√(|x|² − 2 x·y + |y|²)"""
    z = xp.asarray(x @ y.swapaxes(-1, -2), order="C")
    z *= -2
    z += (x * x).sum(-1)[..., :, None]
    z += (y * y).sum(-1)[..., None, :]
    xp.maximum(z, 0, out=z)  # rounding takes small squares below 0, where the root is NaN
    return xp.sqrt(z, out=z)


def _condensed(x):
    return ArraySpec((x.shape[0] * (x.shape[0] - 1) // 2,), x.dtype)


def _batch_of_pairs(call, x):
    n = x.shape[-1]
    rows, columns = np.triu_indices(n, 1)
    places = call.constant(rows * n + columns)
    return call.F.index_select(flat(call, x), places, dim=1)


def _batch_of_pair_gradients(call, dy, *, n):
    rows, columns = np.triu_indices(n, 1)
    places = call.constant(rows * n + columns)
    zero = call.F.full(
        shape=(call.size, n * n), value=0, dtype=dy.dtype, device=call.level.device_of(call)
    )
    made = call.F.index_add(zero, places, dy, dim=1)
    return call.F.reshape(made, shape=(call.size, n, n))


@register_kernel("upper_pairs", infer=_condensed, batch=_batch_of_pairs)
def upper_pairs(xp, x):
    """The elements above the diagonal of a square matrix, row by row."""
    return x[xp.triu_indices(len(x), 1)]


@register_kernel(
    "upper_pairs_grad",
    infer=lambda dy, *, n: ArraySpec((n, n), dy.dtype),
    batch=_batch_of_pair_gradients,
)
def upper_pairs_grad(xp, dy, *, n):
    dx = xp.zeros((n, n), dy.dtype)
    dx[xp.triu_indices(n, 1)] = dy
    return dx
