"""Kernels of matrix products; all of them come down to `product`.

Three forms, each the gradient of the others: x y (`matmul`), x yᵀ (`matmul_nt`), xᵀ y
(`matmul_tn`). Transposing is a view, which BLAS reads as it is.
"""

from __future__ import annotations

import math

import numpy as np

from oneflow_lite.registry import register_kernel


def product(xp, x, y):
    """x (..., M, K) times y (..., K, N), in as few BLAS calls as the shapes allow."""
    if x.dtype.char == "e" and xp is np:  # NumPy has no BLAS for halves
        return product(xp, x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    if y.ndim > 2:
        return xp.matmul(x, y)
    if x.ndim == 2:
        return x.dot(y)  # half the overhead of matmul
    # One large product instead of one for every matrix of the batch.
    return _rows(x).dot(y).reshape(*x.shape[:-1], y.shape[-1])


def _rows(x):
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])  # -1 is refused where a size is 0


@register_kernel("matmul")
def matmul(xp, x, y):
    return product(xp, x, y)


@register_kernel("matmul_nt")
def matmul_nt(xp, x, y):
    """x yᵀ"""
    return product(xp, x, y.swapaxes(-1, -2))


@register_kernel("matmul_tn")
def matmul_tn(xp, x, y, *, merge):
    """xᵀ y; with merge, summed over the batch: the gradient of a matrix that a batch shares."""
    if merge:
        x, y = _rows(x), _rows(y)
    return product(xp, x.swapaxes(-1, -2), y)


@register_kernel("dot")
def dot(xp, x, y):
    return x.dot(y)
