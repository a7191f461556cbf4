"""Kernels of layer, batch and root-mean-square normalization.

All of them divide x by its spread over some dimensions, keep the result z for the backward pass, and
scale it. An array is seen as (A, B, P): normalized over A and P, for each b in B apart. So one text
serves rows (A = 1) and channels, and BLAS makes the sums over P.
"""

import math

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.registry import register_kernel


@register_kernel("standardize")
@in_float32
def standardize(xp, x, *, dim, eps):
    """Return z = (x - mean) / √(var + eps), and var."""
    z, variance, _ = _standardized(xp, x, dim, eps)
    return z.reshape(x.shape), variance.reshape(_kept(x.shape, dim))


@register_kernel("layer_norm")
@in_float32
def layer_norm(xp, x, weight, bias, *, dim, eps):
    """Return z weight + bias, z and var; weight and bias have the shape of the dimensions `dim`."""
    z, variance, _ = _standardized(xp, x, dim, eps)
    y = _scaled(z, weight, bias, (-1,))
    return y.reshape(x.shape), z.reshape(x.shape), variance.reshape(_kept(x.shape, dim))


@register_kernel("batch_norm")
@in_float32
def batch_norm(xp, x, weight, bias, *, dim, eps):
    """Return z weight + bias, z, var and mean; weight and bias have one element per channel."""
    z, variance, mean = _standardized(xp, x, dim, eps)
    y = _scaled(z, weight, bias, (-1, 1))
    kept = _kept(x.shape, dim)
    return y.reshape(x.shape), z.reshape(x.shape), variance.reshape(kept), mean.reshape(kept)


@register_kernel("rms_norm")
@in_float32
def rms_norm(xp, x, weight, *, dim, eps):
    """Return z weight, z = x / √(s + eps), and s = mean x²."""
    z = x.reshape(_folded(x.shape, dim))
    square = _mean_of_product(xp, z, z)
    z = z * _rsqrt(xp, square, eps)
    y = _scaled(z, weight, None, (-1,))
    return y.reshape(x.shape), z.reshape(x.shape), square.reshape(_kept(x.shape, dim))


@register_kernel("standardize_grad")
@in_float32
def standardize_grad(xp, dy, z, variance, *, dim, eps, centred):
    """(dy - mean dy - z mean(dy z)) / √(variance + eps), without mean dy unless `centred`."""
    shape = dy.shape
    folded = _folded(shape, dim)
    dy, z = dy.reshape(folded), z.reshape(folded)
    dx = z * -_mean_of_product(xp, dy, z)
    dx += dy
    if centred:
        dx -= _mean(xp, dy)
    dx *= _rsqrt(xp, variance.reshape(-1, 1), eps)
    return dx.reshape(shape)


def _folded(shape, dim):
    """Return (A, B, P), the sizes of the leading `dim`, of what is kept, and of the trailing `dim`."""
    kept = [d for d in range(len(shape)) if d not in dim]
    first, last = (kept[0], kept[-1] + 1) if kept else (0, 0)
    return math.prod(shape[:first]), math.prod(shape[first:last]), math.prod(shape[last:])


def _kept(shape, dim):
    return tuple([1 if d in dim else n for d, n in enumerate(shape)])


def _standardized(xp, x, dim, eps):
    """Return z (A, B, P), and variance and mean (B, 1)."""
    x = x.reshape(_folded(x.shape, dim))
    mean = _mean(xp, x)
    z = x - mean
    variance = _mean_of_product(xp, z, z)
    z *= _rsqrt(xp, variance, eps)
    return z, variance, mean


def _mean(xp, x):
    count = max(1, x.shape[0] * x.shape[2])
    return (x @ xp.full(x.shape[2], 1 / count, x.dtype)).sum(0)[:, None]


def _mean_of_product(xp, x, y):
    count = max(1, x.shape[0] * x.shape[2])
    return xp.einsum("abp,abp->b", x, y)[:, None] / count


def _rsqrt(xp, variance, eps):
    return 1 / xp.sqrt(variance + eps)


def _scaled(z, weight, bias, shape):
    y = z.copy() if weight is None else z * weight.reshape(shape)
    if bias is not None:
        y += bias.reshape(shape)
    return y
