"""Kernels of layer, batch and root-mean-square normalization.

All of them divide x by its spread over some dimensions, keep the result z for the backward pass,
and scale it. An array is seen as (A, B, P): normalized over A and P, for each b in B apart. So one
text serves rows (A = 1) and channels, and BLAS makes the sums over P.
"""

import functools
import math

import numpy as np

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import in_c_order, like_first, normalized, written
from oneflow_lite.kernels.numerics import sum_over
from oneflow_lite.registry import register_kernel

_SHORT_LINE, _LINE, _RUN = 128, 4096, 1024
_FEW = 4096  # elements, on which the number of calls matters more than how sums are made


@register_kernel("standardize", infer=normalized("standardize"))
def standardize(xp, x, *, dim, eps):
    """Return z = (x - mean) / √(var + eps), and var."""
    z, variance, _ = _standardized(xp, x, dim, eps)
    return _restored(z, x), variance.reshape(_kept(x.shape, dim))


@register_kernel("layer_norm", infer=normalized("layer_norm"))
def layer_norm(xp, x, weight, bias, *, dim, eps):
    """Return z weight + bias, z and var; weight and bias have the shape of the dimensions `dim`."""
    z, variance, _ = _standardized(xp, x, dim, eps)
    y = _scaled(z, weight, bias, (-1,))
    return _restored(y, x), _restored(z, x), variance.reshape(_kept(x.shape, dim))


@register_kernel("batch_norm", infer=normalized("batch_norm"))
def batch_norm(xp, x, weight, bias, *, dim, eps):
    """Return z weight + bias, z, var and mean; weight and bias have one element per channel."""
    z, variance, mean = _standardized(xp, x, dim, eps)
    y = _scaled(z, weight, bias, (-1, 1))
    kept = _kept(x.shape, dim)
    return _restored(y, x), _restored(z, x), variance.reshape(kept), mean.reshape(kept)


@register_kernel("rms_norm", infer=normalized("rms_norm"))
def rms_norm(xp, x, weight, *, dim, eps):
    """Return z weight, z = x / √(s + eps), and s = mean x²."""
    z = _wide(x).reshape(_folded(x.shape, dim))
    square = _mean_of_product(xp, z, z)
    z = z * _rsqrt(xp, square, eps)
    y = _scaled(z, weight, None, (-1,))
    return _restored(y, x), _restored(z, x), square.reshape(_kept(x.shape, dim))


@register_kernel("standardize_grad", infer=in_c_order(like_first), reuses="z")
@in_float32
def standardize_grad(xp, dy, z, variance, *, dim, eps, centred, out=None):
    """(dy - mean dy - z mean(dy z)) / √(variance + eps), without mean dy unless `centred`."""
    shape = dy.shape
    folded = _folded(shape, dim)
    dy, z = dy.reshape(folded), z.reshape(folded)
    dx = None if out is None else out.reshape(folded)
    dx = xp.multiply(z, -_mean_of_product(xp, dy, z), out=dx)
    dx += dy
    if centred:
        dx -= _mean(xp, dy)
    dx *= _rsqrt(xp, variance.reshape(-1, 1), eps)
    return dx.reshape(shape) if out is None else out


@register_kernel("update_running", mutates="running", infer=written)
def update_running(xp, running, batch, *, momentum):
    """running ← (1 - momentum) running + momentum batch, in place."""
    running *= 1 - momentum
    running += momentum * batch.reshape(running.shape)
    return running


@functools.lru_cache(512)
def _folded(shape, dim):
    """Return (A, B, P), the sizes of the leading `dim`, of the rest, and of the trailing `dim`."""
    kept = [d for d in range(len(shape)) if d not in dim]
    first, last = (kept[0], kept[-1] + 1) if kept else (0, 0)
    return math.prod(shape[:first]), math.prod(shape[first:last]), math.prod(shape[last:])


def _wide(x):
    """Halves are computed in float32, and their statistics stay so, as in PyTorch."""
    return x.astype(np.float32) if x.dtype.char == "e" else x


def _restored(y, x):
    return y.reshape(x.shape).astype(x.dtype, copy=False)


@functools.lru_cache(512)
def _kept(shape, dim):
    return tuple([1 if d in dim else n for d, n in enumerate(shape)])


def _standardized(xp, x, dim, eps):
    """Return z (A, B, P), and variance and mean (B, 1)."""
    x = _wide(x).reshape(_folded(x.shape, dim))
    mean = _mean(xp, x)
    z = x - mean
    variance = _mean_of_product(xp, z, z)
    z *= _rsqrt(xp, variance, eps)
    return z, variance, mean


def _mean(xp, x):
    count = max(1, x.shape[0] * x.shape[2])
    if xp is np and x.size <= _FEW:
        return np.add.reduce(x, (0, 2))[:, None] / count
    if x.shape[2] == 1 or x.shape[2] > _LINE:
        return sum_over(xp, x, (0, 2))[:, None] / count
    return sum_over(xp, x @ xp.full(x.shape[2], 1 / count, x.dtype), (0,))[:, None]


def _mean_of_product(xp, x, y):
    count = max(1, x.shape[0] * x.shape[2])
    if xp is np and x.size <= _FEW:
        return np.einsum("abp,abp->b", x, y)[:, None] / count
    total = _sum_of_lines if xp is np and x.shape[2] >= _SHORT_LINE else _sum_of_columns
    return total(xp, x, y)[:, None] / count


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
    return 1 / xp.sqrt(variance + eps)


def _scaled(z, weight, bias, shape):
    y = z.copy() if weight is None else z * weight.reshape(shape)
    if bias is not None:
        y += bias.reshape(shape)
    return y
