"""Elementary functions for machine code: a few multiplications each, so that loops stay SIMD.

Each is within 2 ulp of the truth over the whole range, infinities, nan, subnormals and signed
zeros included. All compute in float64; of float32 the result is rounded once by whoever stores it.
Reductions of the argument follow Cody and Waite, "Software
Manual for the Elementary Functions" (1980); the series are Taylor's, and that of log is the one in
atanh of Sun's fdlibm.

Numba is imported with this module, which is itself imported when there is something to compile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_INF = math.inf
_LN2_HIGH = 0.693147180369123816490  # 32 bits of log 2: multiples up to 2^20 are exact
_LN2_LOW = 1.90821492927058770002e-10
_LOG2_E = 1.4426950408889634
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves an integer in the low bits
_ROUND_BITS = 0x4338000000000000
_EXP_MAX = 709.782712893384  # log of the largest double

Function = TypeVar("Function", bound=Callable[..., Any])
_njit: Any = njit


def _inlined(*rounding: str) -> Callable[[Function], Function]:
    """Have Numba compile a function into its callers; LLVM may round as these flags allow."""
    made: Callable[[Function], Function] = _njit(
        error_model="numpy", nogil=True, forceinline=True, fastmath={"contract", *rounding}
    )
    return made


_intrinsic: Callable[[Callable[..., Any]], Any] = intrinsic


@_intrinsic
def _bits(context: Any, x: Any) -> Any:
    """Return the bits of a double as an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@_intrinsic
def _double(context: Any, x: Any) -> Any:
    """Return the double with these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@_inlined()
def where(condition: Any, x: Any, y: Any) -> Any:
    """Choose; both sides are there, so it is no branch."""
    return x if condition else y


@_inlined()
def maximum(x: Any, y: Any) -> Any:
    """Return the larger number, nan where one is nan."""
    return x if (x >= y) | (x != x) else y


@_inlined()
def minimum(x: Any, y: Any) -> Any:
    """Return the smaller number, nan where one is nan."""
    return x if (x <= y) | (x != x) else y


@_intrinsic
def pointer(context: Any, array: Any) -> Any:
    """Return where an array begins: its elements are found without a look at the index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(array)(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), generate


def _extreme(name: str) -> Any:
    """Return LLVM's maximum or minimum: nan where one is nan, and SIMD in reductions too."""

    @_intrinsic
    def extreme(context: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            own = arguments[0].type
            kind = ir.FunctionType(own, [own, own])
            made = builder.module.declare_intrinsic(f"llvm.{name}", [own], kind)
            return builder.call(made, arguments)

        return x(x, x), generate

    return extreme


highest, lowest = _extreme("maximum"), _extreme("minimum")


@_inlined()
def isnan(x: Any) -> Any:
    """Tell whether a number is nan."""
    return x != x


@_inlined()
def _reduced(x: float) -> Any:
    """Return r, what was rounded off it, and k, with x = r + k log 2 and |r| <= log(2) / 2."""
    shifted = x * _LOG2_E + _ROUND
    n = shifted - _ROUND
    high, low = x - n * _LN2_HIGH, n * _LN2_LOW
    r = high - low
    return r, (high - r) - low, _bits(shifted) - _ROUND_BITS


@_inlined()
def _series(r: float) -> Any:
    """Return (exp(r) - 1 - r) / r² for |r| <= log(2) / 2."""
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    return p * r + 0.5


@_inlined()
def exp(x: Any) -> Any:
    """Return e to a power."""
    y = float(x)
    bound = where(y > _EXP_MAX, _EXP_MAX, where(y < -746.0, -746.0, y))
    r, lost, k = _reduced(bound)
    e = 1.0 + (r + (r * r * _series(r) + lost))
    half = k >> 1  # in two steps, for what is subnormal
    e = e * _double((half + 1023) << 52) * _double((k - half + 1023) << 52)
    return where(y > _EXP_MAX, _INF, where(y != y, y, e))


@_inlined()
def expm1(x: Any) -> Any:
    """Return exp(x) - 1, exact near 0."""
    y = float(x)
    bound = where(y > _EXP_MAX, _EXP_MAX, where(y < -45.0, -45.0, y))
    r, lost, k = _reduced(bound)
    half = _double((k + 1022) << 52)  # of the power of two, for 2^1024 is no number
    e = ((r + (r * r * _series(r) + lost)) * half + (half - 0.5)) * 2.0
    return where(y > _EXP_MAX, _INF, where((abs(y) < 1e-300) | (y != y), y, e))


@_inlined()
def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x))."""
    y = float(x)
    e = exp(-abs(y))
    below = 1.0 + e
    quotient = where(y < 0.0, e, 1.0) / below
    return quotient - quotient * ((e - (below - 1.0)) / below)  # what 1 + e rounded away


@_inlined()
def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent, near 0 by the rational function of Moshier's Cephes."""
    y = float(x)
    size = abs(y)
    large = 1.0 - 2.0 / (exp(2.0 * where(size > 20.0, 20.0, size)) + 1.0)
    z = y * y
    p = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3
    q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z
    near = y + y * (z * p / (q + 4.84406305325125486048e3))
    t = where(size < 0.625, near, where(y < 0.0, -large, large))
    return where((y == 0.0) | (y != y), y, t)


@_inlined()
def _log_of(f: float, k: float, low: float) -> Any:
    """Return log((1 + f) (1 + low)) + k log 2 for 1 + f between sqrt(1/2) and sqrt(2)."""
    s = f / (2.0 + f)
    z = s * s
    p = 1.479819860511658591e-01
    p = p * z + 1.531383769920937332e-01
    p = p * z + 1.818357216161805012e-01
    p = p * z + 2.222219843214978396e-01
    p = p * z + 2.857142874366239149e-01
    p = p * z + 3.999999999940941908e-01
    p = p * z + 6.666666666666735130e-01
    rest = p * z
    half = 0.5 * f * f
    return k * _LN2_HIGH - ((half - (s * (half + rest) + (k * _LN2_LOW + low))) - f)


@_inlined()
def _split(y: float) -> Any:
    """Return m and k with y = m 2^k and m between sqrt(1/2) and sqrt(2), of a positive number."""
    tiny = y < 2.2250738585072014e-308
    bits = _bits(where(tiny, y * 18014398509481984.0, y))
    up = bits + 0x95F6200000000  # brings what is above sqrt(2) into the next power
    k = (up >> 52) - 1023
    m = _double(bits - (k << 52))
    return m, float(k) - where(tiny, 54.0, 0.0)


@_inlined()
def log(x: Any) -> Any:
    """Return the natural logarithm."""
    y = float(x)
    m, k = _split(where((y > 0.0) & (y < _INF), y, 1.0))
    found = _log_of(m - 1.0, k, 0.0)
    found = where(y == 0.0, -_INF, where(y < 0.0, math.nan, found))
    return where((y == _INF) | (y != y), y, found)


@_inlined()
def log1p(x: Any) -> Any:
    """Return log(1 + x), exact near 0."""
    y = float(x)
    inside = (y > -1.0) & (y < _INF)
    z = where(inside, y, 0.0)
    u = 1.0 + z
    m, k = _split(u)
    lost = where(abs(z) < 1.0, z - (u - 1.0), 1.0 - (u - z)) / u  # what 1 + z rounds away
    near = k == 0.0  # then z itself is there
    found = _log_of(where(near, z, m - 1.0), k, where(near, 0.0, lost))
    found = where(abs(z) < 1e-300, z, found)
    found = where(y == -1.0, -_INF, where(y < -1.0, math.nan, found))
    return where((y == _INF) | (y != y) | (y == 0.0), y, found)


@_inlined()
def erf(x: Any) -> Any:
    """Return the error function, by the rational functions of Moshier's Cephes."""
    y = float(x)
    size = abs(y)
    z = where(size < 1.0, y * y, 1.0)
    p = -z - 23.95674042487979357721
    p = p * z - 431.3319300597684108733
    p = p * z - 2362.31848376295808761
    p = p * z - 15625.67492026104266987
    p = p * z + 6324.9070401759041682
    q = z + 3.35617141647503099647e1
    q = q * z + 5.21357949780152679795e2
    q = q * z + 4.59432382970980127987e3
    q = q * z + 2.26290000613890934246e4
    q = q * z + 4.92673942608635921086e4
    near = y + y * (p / q)  # p is Cephes' less q: what erf(x) / x is beyond 1
    a = where(size > 6.0, 6.0, where(size < 1.0, 1.0, size))  # beyond 6 it is 1
    p = 2.46196981473530512524e-10
    p = p * a + 5.64189564831068821977e-1
    p = p * a + 7.46321056442269912687
    p = p * a + 4.86371970985681366614e1
    p = p * a + 1.96520832956077098242e2
    p = p * a + 5.26445194995477358631e2
    p = p * a + 9.34528527171957607540e2
    p = p * a + 1.02755188689515710272e3
    p = p * a + 5.57535335369399327526e2
    q = a + 1.32281951154744992508e1
    q = q * a + 8.67072140885989742329e1
    q = q * a + 3.54937778887819891062e2
    q = q * a + 9.75708501743205489753e2
    q = q * a + 1.82390916687909736289e3
    q = q * a + 2.24633760818710981792e3
    q = q * a + 1.65666309194161350182e3
    q = q * a + 5.57535340817727675546e2
    far = 1.0 - exp(-a * a) * (p / q)
    return where(size < 1.0, near, where(y < 0.0, -far, where(y != y, y, far)))


@_inlined()
def pow(x: Any, y: Any) -> Any:
    """Return a power."""
    return math.pow(float(x), float(y))


@_inlined("reassoc", "nsz")
def add(total: float, x: Any) -> Any:
    """Add in any order, so that several sums may run side by side."""
    return total + float(x)


@_inlined()
def compensated(total: float, lost: float, x: float) -> Any:
    """Add to a sum, and to what its rounding has lost (Neumaier 1974)."""
    new = total + x
    if not math.isfinite(new):
        return new, 0.0
    if abs(total) >= abs(x):
        return new, lost + ((total - new) + x)
    return new, lost + ((x - new) + total)


FUNCTIONS = {
    **{f.__name__: f for f in (where, maximum, minimum, isnan, exp, expm1, sigmoid, tanh, log)},
    "pointer": pointer, "highest": highest, "lowest": lowest,
    "add": add, "compensated": compensated, "log1p": log1p, "pow": pow, "erf": erf, "abs": abs,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,  # math's are integers
    "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tan": math.tan,
}  # fmt: skip
