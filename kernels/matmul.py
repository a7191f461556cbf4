"""Kernels of matrix products; all of them come down to `product`.

Three forms, each the gradient of the others: x y (`matmul`), x yᵀ (`matmul_nt`), xᵀ y
(`matmul_tn`). Transposing is a view, which BLAS reads as it is.
"""

from __future__ import annotations

import math

import numpy as np

from oneflow_lite.arrays.dtype_object import HALVES
from oneflow_lite.kernels import bfloat16_products
from oneflow_lite.kernels.halves import narrowed
from oneflow_lite.kernels.infer_rules import product as inferred, product_nt, product_tn
from oneflow_lite.ops.registry import register_kernel


def product(xp, x, y, out=None):
    """x (..., M, K) times y (..., K, N), in as few BLAS calls as the shapes allow."""
    if x.dtype.char in HALVES and xp is np:  # NumPy has no BLAS for halves
        z = bfloat16_products.product(x, y) if x.dtype.char == "E" else None
        if z is None:
            z = product(xp, x.astype(np.float32), y.astype(np.float32))
        if out is None:
            return narrowed(z, x.dtype)
        out[...] = z
        return out
    if y.ndim > 2:  # a matrix for each place of the batch
        if x.shape[-1] == 1:  # outer products, of which BLAS would be called for each
            return xp.multiply(x, y, out=out)
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


def _batch_of_tn(call, x, y, *, merge):
    if call.sums_later() and (merge or call.ndim(0) == call.ndim(1) == 2):
        # The gradient of a matrix that all entries share: rows of all entries in one product.
        def whole():
            rows = [
                call.F.reshape(z, shape=(math.prod(z.shape[:-1]), z.shape[-1]))
                for z in (call.front(0), call.front(1))
            ]
            return call.run(*rows, merge=True)

        shape = (call.shape(0)[-1], call.shape(1)[-1])
        return call.pending(shape, lambda: _each_tn(call, x, y, merge=merge), whole)
    return _each_tn(call, x, y, merge=merge)


def _each_tn(call, x, y, *, merge):
    if not merge:
        ndim = max(call.ndim(0), call.ndim(1))
        x, y = [
            call.front(i, ndim) if own else call.values[i] for i, own in enumerate(call.batched)
        ]
        return call.run(x, y, merge=False)
    rows = [
        call.F.reshape(z, shape=(call.size, math.prod(z.shape[1:-1]), z.shape[-1]))
        for z in (call.front(0), call.front(1))
    ]
    return call.run(*rows, merge=False)


@register_kernel(
    "matmul_tn",
    infer=product_tn,
    sbp=lambda _, attrs: "...km,...kn->mn" if attrs["merge"] else "...km,...kn->...mn",
    linear="x y",
    batch=_batch_of_tn,
)
def matmul_tn(xp, x, y, *, merge, out=None):
    """xᵀ y; with merge, summed over the batch: the gradient of a matrix that a batch shares."""
    if merge:
        x, y = _rows(x), _rows(y)
    return product(xp, x.swapaxes(-1, -2), y, out)


def _batch_of_dots(call, x, y):
    (size, n), F = call.front(0).shape, call.F
    product = F.matmul(
        F.reshape(call.front(0), shape=(size, 1, n)), F.reshape(call.front(1), shape=(size, n, 1))
    )
    return F.reshape(product, shape=(size,))


@register_kernel("dot", sbp="k,k->", linear="x y", batch=_batch_of_dots)
def dot(xp, x, y, *, out=None):
    if out is None:
        return x.dot(y)
    x.dot(y, out)
    return out
