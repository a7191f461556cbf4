"""Elementary functions in float32 throughout, for loops in which nothing is wider.

They fill twice as many lanes as those of `elementary.py`, which compute in float64, and are within
2.5 ulp of float32. The reduction of the argument is the same; polynomials are Moshier's (Cephes).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from oneflow_lite.static.fusion.elementary import (
    _bits as _wide_bits,
    _double,
    _inlined,
    _intrinsic,
    where,
)

f32, i32 = np.float32, np.int32
_ROUND = f32(12582912.0)  # 1.5 * 2^23: adding it leaves an integer in the low bits
_ROUND_BITS = i32(0x4B400000)
_LOG2_E, _LN2_HIGH, _LN2_LOW = f32(1.44269504), f32(0.693359375), f32(-2.12194440e-4)
_MAX, _MIN, _INF = f32(88.72283), f32(-104.0), f32(np.inf)  # of arguments of exp
_ONE, _TWO = f32(1), f32(2)
_P0, _P1, _P2 = f32(1.9875691500e-4), f32(1.3981999507e-3), f32(8.3334519073e-3)
_P3, _P4, _P5 = f32(4.1665795894e-2), f32(1.6666665459e-1), f32(5.0000001201e-1)
_T0, _T1, _T2 = f32(-5.70498872745e-3), f32(2.06390887954e-2), f32(-5.37397155531e-2)
_T3, _T4, _NEAR = f32(1.33314422036e-1), f32(-3.33332819422e-1), f32(0.625)
_E0, _E1, _E2 = f32(7.853861353153693e-5), f32(-8.010193625184903e-4), f32(5.188327685732524e-3)
_E3, _E4, _E5 = f32(-2.685381193529856e-2), f32(1.128358514861418e-1), f32(-3.761262582423300e-1)
_E6 = f32(1.128379165726710)
_A0, _A1, _A2 = f32(2.326819970068386e-2), f32(-1.387039388740657e-1), f32(3.687424674597105e-1)
_A3, _A4, _A5 = f32(-5.824733027278666e-1), f32(6.210004621745983e-1), f32(-4.944515323274145e-1)
_A6, _A7, _A8 = f32(3.404879937665872e-1), f32(-2.741127028184656e-1), f32(5.638259427386472e-1)
_FAR = f32(4)


@_intrinsic
def _bits(context: Any, x: Any) -> Any:
    """Return the bits of a float32 as an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


@_intrinsic
def _single(context: Any, x: Any) -> Any:
    """Return the float32 with these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@_inlined()
def _power(k: Any) -> Any:
    """Return 2 to a power from -126 to 127."""
    return _single(i32((k + i32(127)) << i32(23)))


@_inlined()
def _reduced(x: Any) -> Any:
    """Return exp(r) - 1 and k, with x = r + k log 2 and |r| <= log(2) / 2."""
    shifted = x * _LOG2_E + _ROUND
    n = shifted - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
    return p * r * r + r, i32(_bits(shifted) - _ROUND_BITS)


@_inlined()
def exp(x: Any) -> Any:
    """Return e to a power."""
    p, k = _reduced(where(x > _MAX, _MAX, where(x < _MIN, _MIN, x)))
    half = i32(k >> i32(1))  # in two steps, for what is subnormal
    e = (_ONE + p) * _power(half) * _power(i32(k - half))
    return where(x > _MAX, _INF, where(x != x, x, e))


@_inlined()
def expm1(x: Any) -> Any:
    """Return exp(x) - 1, exact near 0."""
    p, k = _reduced(where(x > _MAX, _MAX, where(x < f32(-20.0), f32(-20.0), x)))
    half = _power(i32(k - i32(1)))  # of the power of two, for 2^128 is no number
    e = (p * half + (half - f32(0.5))) * _TWO
    return where(x > _MAX, _INF, where((abs(x) < f32(1e-30)) | (x != x), x, e))


@_inlined()
def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x))."""
    e = exp(-abs(x))
    return where(x < f32(0), e, _ONE) / (_ONE + e)


@_inlined()
def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    size = abs(x)
    large = _ONE - _TWO / (exp(_TWO * where(size > f32(10), f32(10), size)) + _ONE)
    z = where(size > _ONE, _ONE, size) * where(size > _ONE, _ONE, size)
    near = ((((_T0 * z + _T1) * z + _T2) * z + _T3) * z + _T4) * z * x + x
    t = where(size < _NEAR, near, where(x < f32(0), -large, large))
    return where((x == f32(0)) | (x != x), x, t)


@_inlined()
def erf(x: Any) -> Any:
    """Return the error function."""
    size = abs(x)
    z = where(size < _ONE, x * x, _ONE)
    near = ((((((_E0 * z + _E1) * z + _E2) * z + _E3) * z + _E4) * z + _E5) * z + _E6) * x
    a = where(size > _FAR, _FAR, where(size < _ONE, _ONE, size))  # beyond, it is 1
    q = _ONE / a
    w = q * q
    p = ((((_A0 * w + _A1) * w + _A2) * w + _A3) * w + _A4) * w + _A5
    p = ((p * w + _A6) * w + _A7) * w + _A8
    far = _ONE - exp(-a * a) * q * p
    return where(size < _ONE, near, where(x < f32(0), -far, where(x != x, x, far)))


# Integers in the order of floating numbers, whose maximum needs no comparison of nans and is SIMD.
# Positive nans are above infinity, negative ones below it.


@_inlined()
def rank(x: Any) -> Any:
    """Return an integer that is the greater, the greater a float32 is."""
    bits = _bits(x)
    return i32(bits ^ ((bits >> i32(31)) & i32(0x7FFFFFFF)))


@_inlined()
def of_rank(k: Any) -> Any:
    """Return the float32 of a rank."""
    return _single(i32(k ^ ((k >> i32(31)) & i32(0x7FFFFFFF))))


@_inlined()
def _wide_rank(x: Any) -> Any:
    bits = _wide_bits(x)
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)


@_inlined()
def _of_wide_rank(k: Any) -> Any:
    return _double(k ^ ((k >> 63) & 0x7FFFFFFFFFFFFFFF))


SINGLE = {
    **{f.__name__: f for f in (exp, expm1, sigmoid, tanh, erf, rank, of_rank)},
    "real": f32,
}
DOUBLE = {"rank": _wide_rank, "of_rank": _of_wide_rank, "real": np.float64}
