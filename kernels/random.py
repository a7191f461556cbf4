"""Random arrays, drawn from a `Generator`'s stream for the device."""

import math

import numpy as np

from oneflow_lite.kernels.infer_rules import (
    in_c_order,
    like_first,
    like_input,
    made,
    made_list,
    written,
)
from oneflow_lite.kernels.numerics import check_probabilities, copied
from oneflow_lite.kernels.special_functions import special
from oneflow_lite.registry import register_kernel

_DRAWS_DIRECTLY = ("float32", "float64")
_FLOAT32 = np.dtype(np.float32)
_STEPS_OF_HALVES = 2.0**11  # float16 holds all multiples of 2^-11 below 1


def _uniform(xp, generator, shape, dtype, out=None):
    """Return uniform numbers, in `out` where that is given and can be drawn to."""
    stream = generator.stream(xp)
    if dtype.name in _DRAWS_DIRECTLY:
        return stream.random(shape, dtype=dtype, out=out)
    if dtype.kind == "c":
        parts = stream.random((2, *shape), dtype=np.finfo(dtype).dtype)
        return parts[0] + 1j * parts[1]
    y = stream.random(shape, dtype=_FLOAT32)  # rounded down: rounding to nearest reaches 1
    y *= _STEPS_OF_HALVES
    xp.floor(y, out=y)
    y /= _STEPS_OF_HALVES
    return y.astype(dtype)


def _chances(xp, generator, x, out=None):
    """Return uniform numbers to compare probabilities with: halves would be too coarse."""
    dtype = _FLOAT32 if x.dtype.char == "e" else x.real.dtype
    direct = out is not None and out.dtype == dtype
    return _uniform(xp, generator, x.shape, dtype, out if direct else None)


def _normal(xp, generator, shape, dtype, out=None):
    """Return normal numbers, in `out` where that is given and can be drawn to."""
    stream = generator.stream(xp)
    if dtype.name in _DRAWS_DIRECTLY:
        return stream.standard_normal(shape, dtype=dtype, out=out)
    if dtype.kind == "c":  # variance 1 in all, half of it in each part
        parts = stream.standard_normal((2, *shape)) * 0.5**0.5
        return (parts[0] + 1j * parts[1]).astype(dtype)
    return stream.standard_normal(shape).astype(dtype)


@register_kernel("random_uniform", random=True, infer=made)
def random_uniform(xp, *, shape, dtype, generator, out=None):
    y = _uniform(xp, generator, shape, dtype, out)
    return y if out is None else copied(y, out)


@register_kernel("random_normal", random=True, infer=made)
def random_normal(xp, *, shape, dtype, generator, out=None):
    y = _normal(xp, generator, shape, dtype, out)
    return y if out is None else copied(y, out)


@register_kernel("random_integers", random=True, infer=made)
def random_integers(xp, *, low, high, shape, dtype, generator):
    return generator.stream(xp).integers(low, high, shape).astype(dtype)


@register_kernel("random_permutation", random=True, infer=made_list)
def random_permutation(xp, *, n, dtype, generator):
    return xp.argsort(generator.stream(xp).random(n)).astype(dtype)


@register_kernel("dropout_mask", random=True, infer=like_input)
def dropout_mask(xp, x, *, p, generator, out=None):
    kept = _chances(xp, generator, x, out) >= p
    return xp.multiply(kept, x.dtype.type(0.0 if p == 1 else 1 / (1 - p)), out=out)


@register_kernel("bernoulli", random=True, infer=in_c_order(like_first))
def bernoulli(xp, x, *, generator, out=None):
    check_probabilities(xp, "bernoulli", "input", x, "pass the probability of a 1")
    ones = _chances(xp, generator, x, out) < x
    return ones.astype(x.dtype) if out is None else copied(ones, out)


@register_kernel("uniform_", mutates="x", random=True, infer=written)
def uniform_(xp, x, *, low, high, generator):
    low_of_parts = low * (1 + 1j) if x.dtype.kind == "c" else low
    x[...] = _uniform(xp, generator, x.shape, x.dtype) * (high - low) + low_of_parts
    return x


@register_kernel("normal_", mutates="x", random=True, infer=written)
def normal_(xp, x, *, mean, std, generator):
    mean_of_parts = mean * (1 + 1j) if x.dtype.kind == "c" else mean
    x[...] = _normal(xp, generator, x.shape, x.dtype) * std + mean_of_parts
    return x


@register_kernel("bernoulli_", mutates="x", random=True, infer=written)
def bernoulli_(xp, x, *, p, generator):
    x[...] = generator.stream(xp).random(x.shape) < p
    return x


def _wide(x):
    """Return the dtype to compute in: halves would be too coarse."""
    return _FLOAT32 if x.dtype.char == "e" else x.dtype


@register_kernel("trunc_normal_", mutates="x", random=True, infer=written)
def trunc_normal_(xp, x, *, mean, std, low, high, generator):
    # The inverse of the distribution function, at uniform draws between its values at the bounds.
    wide = std * math.sqrt(2.0)
    first, last = (math.erf((bound - mean) / wide) for bound in (low, high))
    draws = _uniform(xp, generator, x.shape, _wide(x)) * (last - first) + first
    x[...] = xp.clip(special(xp).erfinv(draws) * wide + mean, low, high)
    return x


@register_kernel("orthogonal_", mutates="x", random=True, infer=written)
def orthogonal_(xp, x, *, gain, generator):
    rows, columns = x.shape[0], math.prod(x.shape[1:])
    matrix = _normal(xp, generator, (rows, columns), _wide(x))
    q, r = xp.linalg.qr(matrix if rows >= columns else matrix.T)
    # With the signs of R's diagonal Q is uniformly distributed, whatever the QR's convention.
    q = q * xp.sign(xp.diagonal(r))
    q = q if rows >= columns else q.T
    x[...] = (q * gain).reshape(x.shape)
    return x
