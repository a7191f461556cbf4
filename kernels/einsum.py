"""The kernel under einsum and tensordot: one contraction of two arrays by their labels."""

from __future__ import annotations

import functools
import math
from typing import Any

from oneflow_lite.kernels.matmul import product
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.ops.sbp_rules import letters


@functools.lru_cache(maxsize=1024)
def _plan(xs, ys, zs):
    """Sort the labels: in all three (batch), in x and y only (summed), in one and the result."""
    batch = [c for c in zs if c in xs and c in ys]
    left = [c for c in xs if c in zs and c not in ys]
    right = [c for c in ys if c in zs and c not in xs]
    summed = [c for c in xs if c in ys and c not in zs]
    made = batch + left + right
    return (
        len(batch),
        len(left),
        len(summed),
        tuple(xs.index(c) for c in batch + left + summed),
        tuple(ys.index(c) for c in batch + summed + right),
        tuple(made.index(c) for c in zs),
    )


def _spread(x, labels, zs):
    """View x with its dimensions in the order of zs, and size 1 where it lacks one."""
    x = x.transpose([labels.index(c) for c in zs if c in labels])
    return x[tuple(slice(None) if c in labels else None for c in zs)]


def _parts(shapes, attrs):
    xs, ys, zs = [[(label,) for label in attrs[name]] for name in ("xs", "ys", "zs")]
    return letters([xs, ys], [zs], shapes)


def _batched(call, x, y, *, xs, ys, zs):
    """Give the batch a label of its own."""
    known = [*xs, *ys, *zs]
    first: Any
    if isinstance(zs, str):
        first = chr(max(map(ord, known), default=ord("`")) + 1)
    else:
        first = (max(known, default=-1) + 1,)
    xs, ys = [
        first + labels if own else labels
        for own, labels in zip(call.batched, (xs, ys), strict=True)
    ]
    return call.run(x, y, xs=xs, ys=ys, zs=first + zs)


@register_kernel("contract", sbp=_parts, linear="x y", batch=_batched)
def contract(xp, x, y, *, xs, ys, zs, out=None):
    """Σ over the labels of xs and ys that zs lacks of x[xs] y[ys], ordered as zs.

    Each of the three names a label at most once, and every label stands in two of the three.
    """
    outer = not [c for c in xs if c not in zs]
    if outer:
        return xp.multiply(_spread(x, xs, zs), _spread(y, ys, zs), out=out)
    if zs and zs[-1] in xs and zs[-1] not in ys:
        # The result ends with a dimension of x: in the other order it need not be turned.
        x, y, xs, ys = y, x, ys, xs
    n_batch, n_left, n_summed, x_order, y_order, z_order = _plan(xs, ys, zs)
    x, y = x.transpose(x_order), y.transpose(y_order)
    batch, left = x.shape[:n_batch], x.shape[n_batch : n_batch + n_left]
    right = y.shape[n_batch + n_summed :]
    n = math.prod(x.shape[n_batch + n_left :])
    x = x.reshape(*batch, math.prod(left), n)
    y = y.reshape(*batch, n, math.prod(right))
    if out is not None:
        made = out.transpose(sorted(range(len(z_order)), key=z_order.__getitem__))
        if made.flags.c_contiguous:
            product(xp, x, y, made.reshape(*batch, math.prod(left), math.prod(right)))
            return out
    z = product(xp, x, y).reshape(batch + left + right).transpose(z_order)
    if out is None:
        return z
    out[...] = z
    return out
