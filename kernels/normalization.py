"""Kernels of layer, batch and root-mean-square normalization.

All of them divide x by its spread over some dimensions, keep the result z for the backward pass,
and scale it. An array is seen as `groups`, (B, P) or (A, B, P): normalized over A and P, for each b
in B apart. So one text serves rows and channels, and BLAS makes the sums over P. Statistics are
(B, 1) outside of this file.
"""

import functools

import numpy as np

from oneflow_lite.array_spec import ArraySpec
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import in_c_order, like_first, written
from oneflow_lite.kernels.numerics import sum_over
from oneflow_lite.registry import register_kernel

_SHORTEST_LINE, _SHORT_LINE, _LINE, _RUN = 64, 128, 4096, 1024
_FEW = 4096  # elements, on which the number of calls matters more than how sums are made


def _with_statistics(arrays, statistics):
    """Return the rule of ops with so many outputs like x, and statistics, in float32 of halves."""

    @in_c_order
    def rule(x, *scale, groups, **attrs):
        dtype = np.dtype(np.float32) if x.dtype.char == "e" else x.dtype
        statistic = ArraySpec((groups[-2], 1), dtype)
        return (ArraySpec(x.shape, x.dtype),) * arrays + (statistic,) * statistics

    return rule


@register_kernel("standardize", infer=_with_statistics(1, 1))
def standardize(xp, x, *, groups, eps):
    """Return z = (x - mean) / √(var + eps), and var."""
    z, variance, _ = _standardized(xp, x, groups, eps)
    return _restored(z, x), _of_group(variance)


@register_kernel("affine_norm", infer=_with_statistics(2, 1))
def affine_norm(xp, x, weight, bias, *, groups, channels, eps):
    """Return z weight + bias, z and var.

    Weight and bias have one element for each c, where z is seen as `channels`, (a, c) or (a, c, l).
    """
    z, variance, _ = _standardized(xp, x, groups, eps)
    y = _scaled(z.reshape(channels), weight, bias)
    return _restored(y, x), _restored(z, x), _of_group(variance)


@register_kernel("batch_norm", infer=_with_statistics(2, 2))
def batch_norm(xp, x, weight, bias, *, groups, channels, eps):
    """Return z weight + bias, z, var and mean, as above."""
    z, variance, mean = _standardized(xp, x, groups, eps)
    y = _scaled(z.reshape(channels), weight, bias)
    return _restored(y, x), _restored(z, x), _of_group(variance), _of_group(mean)


@register_kernel("rms_norm", infer=_with_statistics(2, 1))
def rms_norm(xp, x, weight, *, groups, eps):
    """Return z weight, z = x / √(s + eps), and s = mean x²."""
    z = _wide(x).reshape(groups)
    square = _mean_of_product(xp, z, z)
    z = z * _rsqrt(xp, square, eps)
    y = _scaled(z, weight, None)
    return _restored(y, x), _restored(z, x), _of_group(square)


@register_kernel("standardize_grad", infer=in_c_order(like_first), reuses="z")
@in_float32
def standardize_grad(xp, dy, z, variance, *, groups, eps, centred, out=None):
    """(dy - mean dy - z mean(dy z)) / √(variance + eps), without mean dy unless `centred`."""
    dx = None if out is None else out.reshape(groups)
    dx = _dx(xp, dy.reshape(groups), z.reshape(groups), variance, eps, centred, dx)
    return dx.reshape(dy.shape) if out is None else out


def _dx(xp, dy, z, variance, eps, centred=True, out=None):
    dx = xp.multiply(z, _mean_of_product(xp, dy, z), out=out)
    xp.subtract(dy, dx, out=dx)
    if centred:
        dx -= _mean(xp, dy)
    dx *= _rsqrt(xp, variance, eps)
    return dx


@in_c_order
def _of_each(dy, z, variance, weight, *, channels, needs, **attrs):
    of_channels = ArraySpec((channels[1],), dy.dtype)
    specs = zip((ArraySpec(dy.shape, dy.dtype), of_channels, of_channels), needs, strict=True)
    made = tuple([spec for spec, need in specs if need])
    return made if len(made) > 1 else made[0]


@register_kernel("affine_norm_grad", infer=_of_each)
@in_float32
def affine_norm_grad(xp, dy, z, variance, weight, *, groups, channels, eps, needs):
    """Return the gradients of x, weight and bias, as far as they are needed."""
    by_channel, found = dy.reshape(channels), []
    if needs[1]:
        found.append(_product_by_channel(xp, by_channel, z.reshape(channels)))
    if needs[2]:
        found.append(_sum_by_channel(xp, by_channel))
    if needs[0]:
        dz = by_channel if weight is None else by_channel * _column(weight, by_channel)
        dx = xp.empty(dy.shape, dy.dtype)  # not a view: the caller takes what owns its memory
        _dx(xp, dz.reshape(groups), z.reshape(groups), variance, eps, out=dx.reshape(groups))
        found.insert(0, dx)
    return tuple(found) if len(found) > 1 else found[0]


@register_kernel("update_running", mutates="running", infer=written)
def update_running(xp, running, batch, *, momentum):
    """running ← (1 - momentum) running + momentum batch, in place."""
    running *= 1 - momentum
    running += momentum * batch.reshape(running.shape)
    return running


def _wide(x):
    """Halves are computed in float32, and their statistics stay so, as in PyTorch."""
    return x.astype(np.float32) if x.dtype.char == "e" else x


def _restored(y, x):
    y = y.reshape(x.shape)
    return y if y.dtype is x.dtype else y.astype(x.dtype)


def _of_group(statistic):
    return statistic if statistic.shape[1] == 1 else statistic[:, :1].copy()


def _standardized(xp, x, groups, eps):
    """Return z as groups, variance and mean."""
    x = _wide(x).reshape(groups)
    mean = _mean(xp, x)
    z = x - mean
    variance = _mean_of_product(xp, z, z)
    z *= _rsqrt(xp, variance, eps)
    return z, variance, mean


def _mean(xp, x):
    """Return the mean of each group (B, 1), or standing at each of its elements (B, P)."""
    if _is_few_lines(xp, x):
        return _mean_of_few_lines(x)
    x = x[None] if x.ndim == 2 else x
    count = max(1, x.shape[0] * x.shape[2])
    if xp is np and x.size <= _FEW:
        return np.add.reduce(x, (0, 2))[:, None] / count
    if x.shape[2] == 1 or x.shape[2] > _LINE:
        return sum_over(xp, x, (0, 2))[:, None] / count
    return sum_over(xp, x @ xp.full(x.shape[2], 1 / count, x.dtype), (0,))[:, None]


def _mean_of_product(xp, x, y):
    """Return the mean of x y, in the same way."""
    if _is_few_lines(xp, x):
        return _mean_of_few_lines(x * y)
    x, y = (x[None], y[None]) if x.ndim == 2 else (x, y)
    count = max(1, x.shape[0] * x.shape[2])
    if xp is np and x.size <= _FEW:
        return np.einsum("abp,abp->b", x, y)[:, None] / count
    total = _sum_of_lines if xp is np and x.shape[2] >= _SHORT_LINE else _sum_of_columns
    return total(xp, x, y)[:, None] / count


def _is_few_lines(xp, x):
    return xp is np and x.ndim == 2 and x.size <= _FEW and x.shape[1] > 0


def _mean_of_few_lines(x):
    """Return means (B, 1); of short lines (B, P), for NumPy takes thrice as long to broadcast."""
    size = x.shape[1]
    if size > _SHORTEST_LINE:
        return np.add.reduce(x, 1, keepdims=True) / size
    ones, count = _summing(size, x.dtype)
    total = x.dot(ones)
    total /= count
    return total


@functools.lru_cache(64)
def _summing(size, dtype):
    """Return ones that sum lines up at each of their elements, and the size as an array."""
    return np.ones((size, size), dtype), np.array(size, dtype)


@functools.lru_cache(64)
def _ones(shape, dtype):
    return np.ones(shape, dtype)


# Many products are summed in blocks: a running sum in float32 loses digits with its length.


def _sum_of_lines(xp, x, y):
    rest = x.shape[2] % _LINE  # BLAS, behind vecdot, is quicker at lines than einsum
    lines = np.vecdot(x[..., :rest], y[..., :rest])
    if rest < x.shape[2]:
        blocks = (*x.shape[:2], -1, _LINE)
        x, y = x[..., rest:].reshape(blocks), y[..., rest:].reshape(blocks)
        lines += sum_over(xp, np.vecdot(x, y), (2,))
    return sum_over(xp, lines, (0,))


def _sum_of_columns(xp, x, y):
    a, b, p = x.shape
    rest = a % _RUN if xp is np and a > _RUN else a
    total = xp.einsum("abp,abp->b", x[:rest], y[:rest])
    if rest < a:
        blocks = (-1, _RUN, b, p)
        x, y = x[rest:].reshape(blocks), y[rest:].reshape(blocks)
        total += sum_over(xp, xp.einsum("kabp,kabp->kb", x, y), (0,))
    return total


def _rsqrt(xp, variance, eps):
    return xp.reciprocal(xp.sqrt(variance + eps))


def _scaled(z, weight, bias):
    y = z.copy() if weight is None else z * _column(weight, z)
    if bias is not None:
        y += _column(bias, z)
    return y


def _column(scale, x):
    """Let one number for each channel meet x (a, c) or (a, c, l)."""
    return scale if x.ndim == 2 else scale[:, None]


def _product_by_channel(xp, x, y):
    if xp is np and x.ndim == 3 and x.shape[2] >= _SHORT_LINE:
        return _sum_of_lines(xp, x, y)
    return _sum_by_channel(xp, x * y)


def _sum_by_channel(xp, x):
    if xp is np and x.ndim == 2 and len(x) <= _LINE:
        return _ones(len(x), x.dtype).dot(x)
    return sum_over(xp, x, 0 if x.ndim == 2 else (0, 2))
