"""Random arrays, drawn from a `Generator`'s stream for the device."""

import math

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import (
    broadcast,
    in_c_order,
    like_first,
    like_input,
    made,
    made_list,
    scalar_bool,
    written,
)
from oneflow_lite.kernels.numerics import check_probabilities, copied, quiet_overflow
from oneflow_lite.kernels.special_functions import special
from oneflow_lite.ops.registry import register_kernel

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
    """Draw how many of `count` trials succeed; `count` is cut off at 0, `prob` at 0 and 1."""
    tries = xp.maximum(count, 0).astype(np.int64)
    chance = xp.clip(prob, 0, 1).astype(np.float64)
    shape = np.broadcast_shapes(count.shape, prob.shape)
    return generator.stream(xp).binomial(tries, chance, shape).astype(count.dtype)


@in_c_order
def _places(x, *, num_samples, **attrs):
    return ArraySpec((*x.shape[:-1], num_samples), np.dtype(np.int64))


@register_kernel("_standard_gamma", random=True, infer=in_c_order(like_first))
def _standard_gamma(xp, x, *, generator):
    """Gamma numbers of rate 1 and the concentrations x; never 0, which has probability 0."""
    draws = generator.stream(xp).standard_gamma(x.astype(np.float64), x.shape).astype(x.dtype)
    return xp.maximum(draws, np.finfo(x.dtype).tiny)


@register_kernel("_sample_dirichlet", random=True, infer=in_c_order(like_first))
def _sample_dirichlet(xp, x, *, generator):
    """Shares of gamma numbers in their sums along the last dimension; neither 0 nor 1."""
    draws = generator.stream(xp).standard_gamma(x.astype(np.float64), x.shape)
    draws = xp.maximum(draws, np.finfo(np.float64).tiny)
    info = np.finfo(x.dtype)
    return xp.clip((draws / draws.sum(-1, keepdims=True)).astype(x.dtype), info.tiny, 1 - info.eps)


# ∫₀^∞ f(v) dv of an f that falls exponentially, by the trapezoidal rule in t, v = exp(t - exp(-t));
# Takahasi and Mori, Double exponential formulas for numerical integration, 1974.
def _rule(step, first, last):
    """Return nodes, as a column, and weights."""
    t = np.arange(first, last + step / 2, step)
    nodes = np.exp(t - np.exp(-t))
    return nodes[:, None], nodes * (1 + np.exp(-t)) * step


# Integrals are right to 1e-10 by the fine rule and to 1e-5 by the coarse one; for nearly all
# arguments to 1e-14 and 1e-8.
_FINE, _COARSE = _rule(0.125, -3.875, 3.875), _rule(0.25, -3.0, 3.25)
_HOST_BLOCK, _CUDA_BLOCK = 2**9, 2**16  # arguments at a time: all values stay in the host's caches


def _by_nodes(xp, rule, integrand, *rows):
    """Integrate over v for each entry of the rows; `integrand(v, *rows)` gets nodes as a column."""
    nodes, weights = map(xp.asarray, rule)
    y, size = xp.empty(rows[0].shape), _HOST_BLOCK if on_host(xp) else _CUDA_BLOCK
    for i in range(0, y.size, size):
        y[i : i + size] = weights @ integrand(nodes, *[row[i : i + size] for row in rows])
    return y


def _by_tails(xp, arrays, upper, integral, more):
    """Integrate over the upper tail for some arguments, over the lower one for the others.

    Each tail has a formula, `integral(is_upper, rule, *rows)`; to compute both would take twice as
    long. `upper(*rows)` chooses, and `more(*rows)` gives further arguments. All is in double
    precision: rounded logarithms would cancel.
    """
    shape, dtype = np.broadcast_shapes(*(x.shape for x in arrays)), arrays[0].dtype
    rows = [xp.broadcast_to(x, shape).reshape(-1).astype(np.float64) for x in arrays]
    y, rule = xp.empty(rows[0].shape), _FINE if dtype.char == "d" else _COARSE
    with np.errstate(all="ignore"):
        chosen, rows = upper(*rows), [*rows, *more(*rows)]
        for side in (False, True):
            places = xp.flatnonzero(chosen == side)
            if places.size:
                y[places] = integral(side, rule, *[row[places] for row in rows])
    return y.reshape(shape).astype(dtype)


def _gamma_integral(xp, a, z, weight, more=lambda a, z: ()):
    """∫₀ᶻ (t/z)^(a-1) exp(z-t) weight(log(t/z)) dt, or minus that from z to ∞.

    The upper tail is taken above the mean, but for tiny a and z, where it has two scales.
    """

    def integral(upper, rule, a, z, *more):
        falling = xp.abs(z - a)
        scale = 2 / (falling + xp.sqrt(falling * falling + 2 * z))

        def above(v, a, z, scale, *more):  # t/z is 1 + v
            v = v * scale
            log_t = xp.log1p(v)
            v *= -z
            v += (a - 1) * log_t
            return xp.exp(v, out=v) * weight(log_t, *more)

        def below(v, a, z, scale, *more):  # t/z is exp(-v)
            log_t = v * -scale
            v = xp.expm1(log_t)
            v *= -z
            v += a * log_t
            return xp.exp(v, out=v) * weight(log_t, *more)

        if upper:
            return -z * scale * _by_nodes(xp, rule, above, a, z, scale, *more)
        scale = xp.maximum(scale, 1 / a)
        return z * scale * _by_nodes(xp, rule, below, a, z, scale, *more)

    return _by_tails(xp, (a, z), lambda a, z: z > xp.maximum(a, 0.1), integral, more)


def _beta_integral(xp, a, b, x, weight, more=lambda a, b, x: ()):
    """∫₀ˣ (t/x)^(a-1) (s/y)^(b-1) weight(log(t/x), log(s/y)) dt, or minus that from x to 1.

    s is 1 - t and y is 1 - x. The upper tail, which is taken above the mean, is the lower tail of y
    with a and b exchanged.
    """

    def integral(upper, rule, a, b, x, *more):
        a, b, x, rest = (b, a, 1 - x, x) if upper else (a, b, x, 1 - x)
        odds = x / rest
        falling, bend = a - (b - 1) * odds, xp.maximum(b - 1, 0) * odds * (1 + odds)
        scale = xp.maximum(2 / (falling + xp.sqrt(falling * falling + 2 * bend)), 1 / a)

        def below(v, a, b, odds, scale, *more):  # t/x is exp(-v)
            log_t = v * -scale
            log_s = xp.expm1(log_t)
            log_s *= -odds
            xp.log1p(log_s, out=log_s)
            values = a * log_t
            values += (b - 1) * log_s
            logs = (log_s, log_t) if upper else (log_t, log_s)
            return xp.exp(values, out=values) * weight(*logs, *more)

        factor = -x * scale if upper else x * scale
        return factor * _by_nodes(xp, rule, below, a, b, odds, scale, *more)

    return _by_tails(xp, (a, b, x), lambda a, b, x: x * (a + b) > a, integral, more)


@register_kernel("gamma_tail", infer=broadcast)
def gamma_tail(xp, a, z, *, n):
    """∫₀ᶻ (t/z)^(a-1) exp(z-t) log(t/z)ⁿ dt, or minus that from z to ∞."""
    return _gamma_integral(xp, a, z, lambda log_t: log_t**n)


@register_kernel("gamma_slope", infer=broadcast)
def gamma_slope(xp, a, z):
    """The derivative of a gamma number z by its concentration a, where its quantile stays.

    Minus the integral of f ∂(log f)/∂a = f (log t - ψ(a)), f the density, over one tail, by f(z).
    """
    psi = special(xp).digamma
    shift = lambda a, z: (xp.log(z) - psi(a),)  # noqa: E731
    return -_gamma_integral(xp, a, z, lambda log_t, shift: log_t + shift, shift)


@register_kernel("beta_tail", infer=broadcast)
def beta_tail(xp, a, b, x, *, n, m):
    """∫₀ˣ (t/x)^(a-1) (s/y)^(b-1) log(t/x)ⁿ log(s/y)ᵐ dt, or minus that from x to 1.

    s is 1 - t and y is 1 - x.
    """
    return _beta_integral(xp, a, b, x, lambda log_t, log_s: log_t**n * log_s**m)


@register_kernel("beta_slope", infer=broadcast)
def beta_slope(xp, a, b, x):
    """The derivative of a Beta number x by its concentration a, where its quantile stays."""
    psi = special(xp).digamma
    shift = lambda a, b, x: (xp.log(x) - psi(a) + psi(a + b),)  # noqa: E731
    return -_beta_integral(xp, a, b, x, lambda log_t, _, shift: log_t + shift, shift)


@register_kernel("_von_mises", random=True, infer=in_c_order(like_first))
def _von_mises(xp, x, *, generator):
    """Angles from -π to π around 0, of the concentrations x; nan unless x is above 0.

    Best and Fisher, Efficient simulation of the von Mises distribution, 1979, in double precision;
    very concentrated, where that loses all digits, they are normal.
    """
    stream, kappa = generator.stream(xp), x.astype(np.float64).reshape(-1)
    root = xp.sqrt(1 + 4 * kappa * kappa)
    rho = 2 * kappa / (1 + root + xp.sqrt(2 + 2 * root))  # (τ - √2τ) / 2κ, τ = 1 + root
    y = stream.standard_normal(kappa.shape) / xp.sqrt(xp.where(kappa > 0, kappa, math.nan))
    left = xp.flatnonzero((kappa > 0) & (kappa < 1e8))
    while left.size:
        k, r = kappa[left], rho[left]
        z, u, sign = stream.random((3, left.size))
        z = xp.cos(math.pi * z)
        f = (2 * r + (1 + r * r) * z) / (1 + r * r + 2 * r * z)
        c = k * ((1 + r * r) / (2 * r) - f)
        with np.errstate(divide="ignore"):
            taken = (c * (2 - c) > u) | (xp.log(c / u) + 1 - c >= 0)
        y[left[taken]] = (xp.sign(sign - 0.5) * xp.arccos(xp.clip(f, -1, 1)))[taken]
        left = left[~taken]
    return y.reshape(x.shape).astype(x.dtype)


@register_kernel("multinomial", random=True, infer=_places)
def multinomial(xp, x, *, num_samples, replacement, generator):
    """Draw places along the last dimension with the probabilities x / Σ x."""
    valid = (x >= 0) & (x < math.inf)
    _check_values(xp, "multinomial", "input", x, valid, "finite values of at least 0")
    totals = x.sum(-1, np.float64)
    _check_values(xp, "multinomial", "input", totals, totals > 0, "lines with a sum above 0")
    stream = generator.stream(xp)
    # The first arrivals of exponential times, with the rates x, are a draw without replacement.
    if not replacement:
        with np.errstate(divide="ignore", invalid="ignore"):
            arrivals = stream.standard_exponential(x.shape) / x
        if num_samples == 1:
            return xp.asarray(arrivals.argmin(-1))[..., None]
        return arrivals.argsort(-1)[..., :num_samples].copy()
    lines = xp.arange(totals.size, dtype=np.float64).reshape(*totals.shape, 1)
    bounds = x.cumsum(-1, np.float64)
    bounds = bounds / bounds[..., -1:] + lines  # line n lies in n … n + 1: one search for all lines
    draws = lines + stream.random((*totals.shape, num_samples))
    # A draw that rounds up to n + 1 would count to the next line.
    draws = xp.minimum(draws, xp.nextafter(lines + 1, lines))
    places = xp.searchsorted(bounds.reshape(-1), draws, side="right")
    return places - lines.astype(np.int64) * x.shape[-1]


def _check_values(xp, op, argument, values, valid, expected):
    """Raise `ArgumentError` unless all values are valid; on CUDA a look would be a copy."""
    if on_host(xp) and not valid.all():
        raise arg_error(
            op,
            argument,
            expected=expected,
            got=values[~valid].reshape(-1)[0],
            hint="look for what gave this value",
            kind=ArgumentError,
        )


def _checked_whole(call, x, valid, **attrs):
    """Check all entries at once."""
    ndim = max(call.ndim(0), call.ndim(1))
    y = call.run(call.front(0, ndim), call.front(1, ndim), **attrs)
    return call.F.expand(y, shape=(call.size,))


@register_kernel("check_values", random=True, infer=scalar_bool, batch=_checked_whole)
def check_values(xp, x, valid, *, name, argument, expected, generator):
    """Raise unless all values are valid; marked as random, so that passes keep its place."""
    if valid.shape != x.shape[: valid.ndim]:  # it is about x together with bounds
        x = xp.broadcast_to(x, valid.shape)
    _check_values(xp, name, argument, x, valid, expected)
    return xp.ones((), np.bool_)


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
