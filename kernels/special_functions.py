"""Special functions: SciPy's on the CPU, CuPy's on CUDA; the modules are imported when first used.

SciPy's functions of one real variable are silent at poles and outside of their domains, as PyTorch.
"""

from __future__ import annotations

import math

import numpy as np

from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import broadcast, in_c_order, like_first
from oneflow_lite.ops.registry import register_kernel


def special(xp):
    """Return scipy.special for numpy arrays, cupyx.scipy.special for cupy arrays."""
    if xp.__name__ == "numpy":
        import scipy.special

        return scipy.special
    import cupyx.scipy.special

    return cupyx.scipy.special


# Ops that are one function of these modules: op name to function name.
_UNARY = {
    "digamma": "digamma",
    "erfinv": "erfinv",
    "erfcx": "erfcx",
    "ndtr": "ndtr",
    "ndtri": "ndtri",
    "log_ndtr": "log_ndtr",
    "entr": "entr",
    "i0": "i0",
    "i0e": "i0e",
    "i1": "i1",
    "i1e": "i1e",
    "bessel_j0": "j0",
    "bessel_j1": "j1",
    "bessel_y0": "y0",
    "bessel_y1": "y1",
    "modified_bessel_k0": "k0",
    "modified_bessel_k1": "k1",
    "scaled_modified_bessel_k0": "k0e",
    "scaled_modified_bessel_k1": "k1e",
}
_BINARY = {
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "xlog1py": "xlog1py",
    "zeta": "zeta",
}


def _of_one(name):
    def kernel(xp, x, *, out=None):
        return getattr(special(xp), name)(x, out=out)

    return kernel


def _of_two(name):
    def kernel(xp, x, y, *, out=None):
        return getattr(special(xp), name)(x, y, out=out)

    return kernel


for _op, _name in _UNARY.items():
    register_kernel(_op, infer=like_first, reuses="x")(in_float32(_of_one(_name)))
for _op, _name in _BINARY.items():
    register_kernel(_op, infer=broadcast, reuses=("x", "y"))(in_float32(_of_two(_name)))


@register_kernel("lgamma", infer=in_c_order(like_first))
@in_float32
def lgamma(xp, x):
    if xp is np and not np.isfinite(x).all():
        x = xp.where(x == -math.inf, math.inf, x)  # the poles grow towards it: SciPy says -inf
    y = special(xp).gammaln(x)
    if xp is np and x.dtype.char == "d" and np.isinf(y).any():
        # 1/x overflows in SciPy's where x is subnormal: -log|x| is all there is.
        tiny = (x != 0) & (xp.abs(x) < 1e-300)
        y = xp.where(tiny, -xp.log(xp.where(tiny, xp.abs(x), 1)), y)
    return y


@register_kernel("polygamma_n", infer=in_c_order(like_first))
@in_float32
def polygamma_n(xp, x, *, n):
    """The nth derivative of digamma: (-1)ⁿ⁺¹ n! ζ(n+1, x) for n ≥ 1."""
    if n == 0:
        return special(xp).digamma(x)
    factorial = float(math.factorial(n)) if n <= 170 else math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        y = special(xp).zeta(float(n + 1), x)
        return y * x.dtype.type(factorial if n % 2 else -factorial)


@register_kernel("logit", infer=in_c_order(like_first))
@in_float32
def logit(xp, x, *, eps):
    """log(x / (1 - x)), of x brought into [eps, 1 - eps] unless eps is None."""
    if eps is not None:
        x = xp.where(x < eps, eps, xp.where(x > 1 - eps, 1 - eps, x))
    return special(xp).logit(x)


@register_kernel("log_ndtr_grad", infer=like_first)
@in_float32
def log_ndtr_grad(xp, x):
    """φ(x) / Φ(x), which neither overflows nor vanishes where both factors are tiny."""
    with np.errstate(divide="ignore"):
        return math.sqrt(2 / math.pi) / special(xp).erfcx(x * -math.sqrt(0.5))


@register_kernel("spherical_bessel_j0", infer=in_c_order(like_first))
@in_float32
def spherical_bessel_j0(xp, x):
    """sin(x) / x, with its limits at 0 and at infinity."""
    infinite = xp.isinf(x)
    special_value = infinite | (x == 0)
    inner = xp.where(special_value, 1, x)
    return xp.where(special_value, ~infinite, xp.sin(inner) / inner)


@register_kernel("bessel_jn", infer=in_c_order(like_first))
@in_float32
def bessel_jn(xp, x, *, n):
    """Jₙ(x) for n ≥ 2; its recurrence loses no digits where |x| > n."""
    functions = special(xp)
    return _bessel(xp, x, n, functions.j0, functions.j1, 1.0, n + 1)


@register_kernel("modified_bessel_in", infer=in_c_order(like_first))
@in_float32
def modified_bessel_in(xp, x, *, n, scaled):
    """Iₙ(x) for n ≥ 2, times exp(-|x|) where `scaled`."""
    functions = special(xp)
    if not scaled:
        return _bessel(xp, x, n, functions.i0, functions.i1, -1.0, 4 * n)
    return _bessel(xp, x, n, functions.i0e, functions.i1e, -1.0, 4 * n, scaled=True)


def _bessel(xp, x, n, zeroth, first, sign, limit, scaled=False):
    """Return a Bessel function of order n by those of order 0 and 1, or by its series near 0.

    Bₘ₊₁ = ±(2m/x Bₘ - Bₘ₋₁), and Bₙ = (x/2)ⁿ Σ (∓x²/4)ᵏ / (k! (n+k)!): above are the signs of J,
    below those of I.
    """
    near = xp.abs(x) < limit
    far_x = xp.where(near, 1, x)
    before, far = zeroth(far_x), first(far_x)
    with np.errstate(invalid="ignore"):  # where I overflows
        for m in range(1, n):
            before, far = far, (far * (2 * m) / far_x - before) * sign

    half = xp.where(near, x, 0) / 2
    square = half * half * -sign
    series = xp.ones_like(square)
    for k in reversed(range(1, 20 + 4 * n)):
        series *= square / (k * (n + k))
        series += 1
    for k in range(1, n + 1):
        series *= half / k
    if scaled:
        series *= xp.exp(-xp.abs(half) * 2)
    return xp.where(near, series, far)
