"""Kernels of matrix products; all of them come down to `product`.

Three forms, each the gradient of the others: x y (`matmul`), x yᵀ (`matmul_nt`), xᵀ y
(`matmul_tn`). Transposing is a view, which BLAS reads as it is.
"""

from __future__ import annotations

import math

import numpy as np

from oneflow_lite.kernels.infer_rules import product as inferred, product_nt, product_tn
from oneflow_lite.ops.registry import register_kernel


def product(xp, x, y, out=None):
    """x (..., M, K) times y (..., K, N), in as few BLAS calls as the shapes allow."""
    if x.dtype.char == "e" and xp is np:  # NumPy has no BLAS for halves
        z = product(xp, x.astype(np.float32), y.astype(np.float32))
        if out is None:
            return z.astype(x.dtype)
        out[...] = z
        return out
    if y.ndim > 2:  # a matrix for each place of the batch
        return xp.matmul(x, y, out=out)
    if x.ndim == 2:
        return x.dot(y, out)  # half the overhead of matmul
    # One large product instead of one for every matrix of the batch.
    if out is None:
        return _rows(x).dot(y).reshape(*x.shape[:-1], y.shape[-1])
    _rows(x).dot(y, _rows(out))
    return out


def _rows(x):
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])  # -1 is refused where a size is 0


@register_kernel("matmul", infer=inferred, sbp="...mk,...kn->...mn", linear="x y")
def matmul(xp, x, y, *, out=None):
    return product(xp, x, y, out)


@register_kernel("matmul_nt", infer=product_nt, sbp="...mk,...nk->...mn", linear="x y")
def matmul_nt(xp, x, y, *, out=None):
    """x yᵀ"""
    return product(xp, x, y.swapaxes(-1, -2), out)


@register_kernel(
    "matmul_tn",
    infer=product_tn,
    sbp=lambda _, attrs: "...km,...kn->mn" if attrs["merge"] else "...km,...kn->...mn",
    linear="x y",
)
def matmul_tn(xp, x, y, *, merge, out=None):
    """xᵀ y; with merge, summed over the batch: the gradient of a matrix that a batch shares."""
    if merge:
        x, y = _rows(x), _rows(y)
    return product(xp, x.swapaxes(-1, -2), y, out)


@register_kernel("dot", sbp="k,k->", linear="x y")
def dot(xp, x, y, *, out=None):
    if out is None:
        return x.dot(y)
    x.dot(y, out)
    return out
