"""Random arrays, drawn from a `Generator`'s stream for the device."""

import math

import numpy as np

from oneflow_lite.array_spec import ArraySpec
from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import (
    broadcast,
    in_c_order,
    like_first,
    like_input,
    made,
    made_list,
    written,
)
from oneflow_lite.kernels.numerics import check_probabilities, copied, quiet_overflow
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


@register_kernel("normal", random=True, infer=broadcast)
def normal(xp, mean, std, *, generator):
    """A number for each element of the mean and the standard deviation, which broadcast."""
    _check_values(xp, "normal", "std", std, std >= 0, "at least 0")
    shape = np.broadcast_shapes(mean.shape, std.shape)
    return _normal(xp, generator, shape, mean.dtype) * std + mean


@register_kernel("poisson", random=True, infer=in_c_order(like_first))
@quiet_overflow
def poisson(xp, x, *, generator):
    _check_values(xp, "poisson", "input", x, x >= 0, "rates of at least 0")
    return generator.stream(xp).poisson(x.astype(np.float64), x.shape).astype(x.dtype)


@register_kernel("binomial", random=True, infer=broadcast)
def binomial(xp, count, prob, *, generator):
    """How many of `count` trials succeed; fewer than 0 are none, probabilities end at 0 and 1."""
    tries = xp.maximum(count, 0).astype(np.int64)
    chance = xp.clip(prob, 0, 1).astype(np.float64)
    shape = np.broadcast_shapes(count.shape, prob.shape)
    return generator.stream(xp).binomial(tries, chance, shape).astype(count.dtype)


@in_c_order
def _places(x, *, num_samples, **attrs):
    return ArraySpec((*x.shape[:-1], num_samples), np.dtype(np.int64))


@register_kernel("multinomial", random=True, infer=_places)
def multinomial(xp, x, *, num_samples, replacement, generator):
    """Draw places along the last dimension with the probabilities x / Σ x."""
    valid = (x >= 0) & (x < math.inf)
    _check_values(xp, "multinomial", "input", x, valid, "finite values of at least 0")
    totals = x.sum(-1, np.float64)
    _check_values(xp, "multinomial", "input", totals, totals > 0, "lines with a sum above 0")
    stream = generator.stream(xp)
    if not replacement:  # the first arrivals, where x is the rate of each place
        with np.errstate(divide="ignore", invalid="ignore"):
            arrivals = stream.standard_exponential(x.shape) / x
        if num_samples == 1:
            return xp.asarray(arrivals.argmin(-1))[..., None]
        return arrivals.argsort(-1)[..., :num_samples].copy()
    lines = xp.arange(totals.size, dtype=np.float64).reshape(*totals.shape, 1)
    bounds = x.cumsum(-1, np.float64)
    bounds = bounds / bounds[..., -1:] + lines  # those of line n lie in n … n + 1
    draws = lines + stream.random((*totals.shape, num_samples))
    draws = xp.minimum(draws, xp.nextafter(lines + 1, lines))
    places = xp.searchsorted(bounds.reshape(-1), draws, side="right")
    return places - lines.astype(np.int64) * x.shape[-1]


def _check_values(xp, op, argument, values, valid, expected):
    """Raise `ArgumentError` unless all values are valid; on CUDA a look would be a copy."""
    if on_host(xp) and not valid.all():
        raise bad_argument(
            ArgumentError,
            op,
            argument,
            expected=expected,
            got=values[~valid].reshape(-1)[0],
            mend="look for what gave this value",
        )


def _wide(x):
    """Return the dtype to compute in: halves would be too coarse."""
    return _FLOAT32 if x.dtype.char == "e" else x.dtype


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


@register_kernel("random_", mutates="x", random=True, infer=written)
@quiet_overflow
def random_(xp, x, *, low, high, generator):
    """Integers from `low` on, below `high`."""
    x[...] = generator.stream(xp).integers(low, high - 1, x.shape, endpoint=True).astype(x.dtype)
    return x


@register_kernel("exponential_", mutates="x", random=True, infer=written)
@quiet_overflow
def exponential_(xp, x, *, lambd, generator):
    draws = _uniform(xp, generator, x.shape, _wide(x))
    x[...] = xp.log1p(-draws) / -lambd
    xp.maximum(x, np.finfo(x.dtype).tiny, out=x)  # 0 has probability 0
    return x


@register_kernel("geometric_", mutates="x", random=True, infer=written)
@quiet_overflow
def geometric_(xp, x, *, p, generator):
    x[...] = generator.stream(xp).geometric(p, x.shape).astype(x.dtype)
    return x


@register_kernel("log_normal_", mutates="x", random=True, infer=written)
@quiet_overflow
def log_normal_(xp, x, *, mean, std, generator):
    x[...] = xp.exp(_normal(xp, generator, x.shape, _wide(x)) * std + mean)
    return x


@register_kernel("cauchy_", mutates="x", random=True, infer=written)
@quiet_overflow
def cauchy_(xp, x, *, median, sigma, generator):
    draws = _uniform(xp, generator, x.shape, _wide(x)) - 0.5
    x[...] = xp.tan(draws * math.pi) * sigma + median
    return x


@register_kernel("bernoulli_", mutates="x", random=True, infer=written)
def bernoulli_(xp, x, *, p, generator):
    x[...] = generator.stream(xp).random(x.shape) < p
    return x


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
