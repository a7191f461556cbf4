"""Kernels of losses that are more than a sum of differences."""

import functools
import math

import numpy as np

from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import check_range, on_host, take
from oneflow_lite.kernels.infer_rules import in_c_order, like_first, loss_of_classes, of_shape
from oneflow_lite.kernels.numerics import check_probabilities, copied, zeros
from oneflow_lite.registry import register_kernel

_INT64, _UINT64 = np.dtype(np.int64), np.dtype(np.uint64)


@register_kernel("nll_loss", infer=loss_of_classes)
@in_float32
def nll_loss(xp, x, target, weight, *, ignore_index, reduction, op="nll_loss", out=None):
    """-weight[t] x[n, t] for each target t; ignored ones give 0 and do not count in the mean.

    `op` is the op that was called, for the error of a target that is no class.
    """
    each = reduction == "none"
    plain = None if each else _plain_places(xp, x.shape, target, weight, ignore_index)
    if plain is not None:
        total = -np.add.reduce(x.reshape(x.size).take(plain))
        total = total / plain.size if reduction == "mean" else total
        return total if out is None else copied(total, out)
    places, factor, ignored = _places(xp, x, x.shape, target, weight, ignore_index, op)
    y = out.reshape(out.size) if each and out is not None else None
    y = take(xp, x.reshape(x.size), places, None, y)
    xp.negative(y, out=y)
    if ignored is not None:
        y[ignored] = 0
    if factor is not None:
        y *= factor
    if each:
        return y.reshape(target.shape) if out is None else out
    total = y.sum()
    if reduction == "mean":
        total = _divided(total, factor, y)
    return total if out is None else copied(total, out)


@register_kernel("nll_loss_grad", infer=of_shape)
@in_float32
def nll_loss_grad(xp, dy, target, weight, *, shape, ignore_index, reduction, out=None):
    if not dy.ndim:
        plain = _plain_places(xp, shape, target, weight, ignore_index)
        if plain is not None:
            dx = zeros(xp, shape, dy.dtype, out)
            total = dy.item()  # a division of doubles rounds to that of the gradient's dtype
            dx.reshape(dx.size)[plain] = -total / plain.size if reduction == "mean" else -total
            return dx
    places, factor, ignored = _places(xp, dy, shape, target, weight, ignore_index)
    values = -dy.reshape(-1)
    if factor is not None:
        values = values * factor
    if reduction == "mean":
        values = _divided(values, factor, places)
    if ignored is not None:
        values[ignored] = 0
    dx = zeros(xp, shape, dy.dtype, out)
    dx.reshape(dx.size)[places] = values
    return dx


def _plain_places(xp, shape, target, weight, ignore_index):
    """Return the places in the usual case: rows of classes on the CPU, none ignored or weighted."""
    if (
        weight is not None
        or len(shape) != 2
        or target.dtype is not _INT64
        or not on_host(xp)
        or 0 <= ignore_index < shape[1]
        or not _all_below(target, shape[1])
    ):
        return None
    return _row_starts(*shape) + target


@functools.lru_cache(64)
def _row_starts(rows, size):
    return np.arange(rows) * size


def _places(xp, like, shape, target, weight, ignore_index, op=None):
    """Return, for all targets in a row, their places in x, their weights and which are ignored.

    The last two are None when all weights are 1 and none is ignored: the usual case, which the
    CPU can afford to look for. With the name of an `op` the targets are checked.
    """
    classes = shape[1] if len(shape) > 1 else shape[0]
    batch, positions = shape[0] if len(shape) > 1 else 1, math.prod(shape[2:])
    target = target.reshape(target.size).astype(np.int64, copy=False)
    if on_host(xp) and not 0 <= ignore_index < classes and _all_below(target, classes):
        ignored = None
    else:
        ignored = target == ignore_index
        if on_host(xp):
            if not ignored.any():
                ignored = None
            if op is not None:
                counted = target if ignored is None else target[~ignored]
                check_range(xp, op, "target", counted, classes)
    if ignored is not None:
        target = xp.where(ignored, 0, target)
    factor = None if weight is None else weight.take(target)
    if ignored is not None:
        factor = xp.ones(target.size, like.dtype) if factor is None else factor
        factor[ignored] = 0
    places = xp.arange(batch) * (classes * positions)
    if positions != 1:
        places = (places[:, None] + xp.arange(positions)).reshape(target.size)
    return places + target * positions, factor, ignored


def _all_below(target, classes):
    """Return whether all targets are classes; read as unsigned, negative ones are large."""
    if not target.size or not target.flags.c_contiguous:
        return False
    return int(np.maximum.reduce(target.view(_UINT64), None)) < classes


def _divided(total, factor, each):
    """Divide by the weight of all targets; the mean of nothing is NaN."""
    if factor is None:
        return total / each.size if each.size else total * math.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / factor.sum()


@register_kernel("huber", infer=like_first, reuses="x")
@in_float32
def huber(xp, x, *, delta, out=None):
    """c (|x| - c / 2) with c = min(|x|, delta): x² / 2 inside, delta (|x| - delta / 2) outside."""
    size = xp.abs(x)
    y = xp.minimum(size, delta, out=out)
    size -= y / 2
    y *= size
    return y


@register_kernel("huber_grad", infer=in_c_order(like_first), reuses="x")
def huber_grad(xp, dy, x, *, delta, out=None):
    return xp.multiply(dy, xp.clip(x, -delta, delta, out=out), out=out)


@register_kernel("binary_cross_entropy", infer=in_c_order(like_first))
@in_float32
def binary_cross_entropy(xp, x, target, *, out=None):
    """-(t log x + (1 - t) log(1 - x)), with logarithms of at least -100."""
    mend = "apply a sigmoid, or use binary_cross_entropy_with_logits"
    check_probabilities(xp, "binary_cross_entropy", "input", x, mend)
    check_probabilities(xp, "binary_cross_entropy", "target", target, mend)
    with np.errstate(divide="ignore"):
        hit = xp.asarray(xp.maximum(xp.log(x, out=out), -100, out=out))
        miss = xp.maximum(xp.log1p(-x), -100)
    hit -= miss
    hit *= target
    hit += miss
    return xp.negative(hit, out=hit)


@register_kernel("bce_with_logits", infer=in_c_order(like_first))
@in_float32
def bce_with_logits(xp, x, target, *, out=None):
    """max(x, 0) - x t + log(1 + exp(-|x|))"""
    y = xp.asarray(xp.abs(x, out=out))  # of a 0-d array NumPy makes a scalar, which is no `out`
    xp.negative(y, out=y)
    xp.exp(y, out=y)
    xp.log1p(y, out=y)
    y += xp.maximum(x, 0)
    y -= x * target
    return y


@register_kernel("least_variance", infer=like_first, reuses="variance")
def least_variance(xp, variance, *, eps, out=None):
    """max(variance, eps)"""
    if on_host(xp) and variance.size and variance.min() < 0:
        raise bad_argument(
            ArgumentError,
            "gaussian_nll_loss",
            "var",
            expected="no negative values",
            got=variance.min(),
            mend="pass variances, which are squares",
        )
    return xp.maximum(variance, eps, out=out)
