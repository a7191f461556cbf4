"""Random arrays, drawn from a `Generator`'s stream for the device."""

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
    return _uniform(xp, generator, x.shape, dtype, out)


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
