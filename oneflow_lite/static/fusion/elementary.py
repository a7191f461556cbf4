"""Elementary functions for machine code: a few multiplications each, so that loops stay SIMD.

Each is within 2 ulp of the truth over the whole range, infinities, nan, subnormals and signed
zeros included; but sin, cos and tan beyond a million are the C library's. A float32 is computed in
float32, so that a vector has twice as many; anything else in float64. Reductions of the argument
follow Cody and Waite, "Software Manual for the Elementary Functions" (1980); log is the series in
atanh of Sun's fdlibm, and tanh and erf of float64 have the rational functions of Moshier's Cephes.
The other polynomials are weighted least squares.

Numba is imported with this module, which is itself imported when there is something to compile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

Function = TypeVar("Function", bound=Callable[..., Any])
_njit: Any = njit
_pointer: Any = types.CPointer
_intrinsic: Callable[[Callable[..., Any]], Any] = intrinsic
_overload: Any = overload


def _options(*rounding: str) -> dict[str, Any]:
    """Return how a function is compiled into its callers; LLVM may round as these flags allow."""
    fastmath = {"contract", *rounding}
    return {"error_model": "numpy", "nogil": True, "forceinline": True, "fastmath": fastmath}


def _inlined(*rounding: str) -> Callable[[Function], Function]:
    made: Callable[[Function], Function] = _njit(**_options(*rounding))
    return made


# Choices


@_inlined()
def where(condition: Any, x: Any, y: Any) -> Any:
    """Choose; both sides are there, so it is no branch."""
    return x if condition else y


@_inlined()
def maximum(x: Any, y: Any) -> Any:
    """Return the larger number, nan where one is nan; of two zeros the second, as NumPy does."""
    return x if (x > y) | (x != x) else y


@_inlined()
def minimum(x: Any, y: Any) -> Any:
    """Return the smaller number, nan where one is nan; of two zeros the second, as NumPy does."""
    return x if (x < y) | (x != x) else y


@_intrinsic
def start(context: Any, array: Any) -> Any:
    """Return where an array begins: its elements are found without a look at the index.

    Truth values are bytes there.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(array)(context, builder, arguments[0]).data

    dtype = types.uint8 if array.dtype == types.boolean else array.dtype
    return _pointer(dtype)(array), generate


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


# Functions that Python lacks


@_intrinsic
def _bits(context: Any, x: Any) -> Any:
    """Return the bits of a float as an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], ir.IntType(x.bitwidth))
        return builder.sext(bits, ir.IntType(64)) if x.bitwidth < 64 else bits

    return types.int64(x), generate


@_intrinsic
def _double(context: Any, bits: Any) -> Any:
    """Return the float64 of these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@_intrinsic
def _single(context: Any, bits: Any) -> Any:
    """Return the float32 of the low half of these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(builder.trunc(arguments[0], ir.IntType(32)), ir.FloatType())

    return types.float32(types.int64), generate


_REAL = ir.DoubleType()


def _rare(name: str) -> Any:
    """Return a function of the C library, of float64, that few elements need, if any.

    LLVM keeps a loop SIMD around a call in a branch when the call has no effect and some masked
    vector form of it exists. Having no form for the width of the loop it asks each element's mask.
    """
    known = f"oneflow_lite_rare_{name}"
    pair, mask = ir.VectorType(_REAL, 2), ir.VectorType(ir.IntType(1), 2)

    def made(module: Any) -> Any:
        kind = ir.FunctionType(_REAL, [_REAL])
        function = ir.Function(module, kind, known)
        function.linkage = "linkonce_odr"
        for attribute in ("noinline", "nounwind", "readnone"):
            function.attributes.add(attribute)
        variant = f'"vector-function-abi-variant"="_ZGV_LLVM_M2v_{known}({known}_2)"'
        set.add(function.attributes, variant)
        body = ir.IRBuilder(function.append_basic_block())
        body.ret(body.call(ir.Function(module, kind, name), function.args))
        form = ir.Function(module, ir.FunctionType(pair, [pair, mask]), f"{known}_2")
        form.linkage = "weak_odr"  # which stays, though nothing calls it
        body = ir.IRBuilder(form.append_basic_block())
        pair_of_results = form.args[0]
        for i in map(ir.IntType(32), range(2)):
            x = body.extract_element(pair_of_results, i)
            pair_of_results = body.insert_element(pair_of_results, body.call(function, [x]), i)
        body.ret(pair_of_results)
        return function

    @_intrinsic
    def call(context: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            function = builder.module.globals.get(known) or made(builder.module)
            return builder.call(function, arguments)

        return types.float64(types.float64), generate

    return call


def _polynomial(real: Any, *coefficients: float) -> Any:
    """Return a polynomial, by Horner's rule; the coefficient of the highest power comes first."""
    scope = {f"c{i}": real(c) for i, c in enumerate(coefficients)}
    text = "c0"
    for name in list(scope)[1:]:
        text = f"({text}) * x + {name}"
    exec(f"def polynomial(x):\n    return {text}", scope)
    return _inlined()(scope["polynomial"])


def _quotient(over: Any, under: Any) -> Any:
    @_inlined()
    def quotient(x: Any) -> Any:
        return over(x) / under(x)

    return quotient


# The functions: written once, made for each dtype


def _functions(
    real: Any,
    number: Any,
    mantissa: int,
    to_integer: float,
    ln2: tuple[float, float],
    exp_range: tuple[float, float, float],
    tiny: float,
    near_exp: Any,
    near_log: Any,
    near_tanh: Any,
    near_erf: Any,
    erfcx: Any,
    erf_is_one: float,
    near_sin: Any,
    near_cos: Any,
    quarter: Any,
    quarters_until: float,
) -> dict[str, Callable[..., Any]]:
    """Return the functions of one dtype.

    Parameters
    ----------
    real : type
        Of its numbers.
    number : function
        From bits to a float.
    mantissa : int
        The bits of it that are stored.
    to_integer : float
        Adding it leaves an integer in the low bits: 1.5 * 2^mantissa.
    ln2 : (float, float)
        Two parts of log(2); of the first one, multiples by an exponent are exact.
    exp_range : (float, float, float)
        The log of the largest number; beneath the second exp is 0, beneath the third expm1 is -1.
    tiny : float
        What is exact near 0 returns what is smaller, before anything of it is subnormal.
    near_exp, near_log, near_tanh, near_erf, erfcx, near_sin, near_cos : function
        (exp(r) - 1 - r) / r² to log(2)/2; log((1 + s) / (1 - s)) / s - 2 of s²; of x², tanh(x) / x
        - 1 to 0.625, and erf(x) / x - 1 to 1; erfc(x) exp(x²) from 1 to `erf_is_one`; of x²,
        (sin(x) / x - 1) / x² and (cos(x) - 1 + x²/2) / x⁴ to pi/4.
    quarter : function
        Returns a number less a multiple of pi/2, what that rounded off, and the multiple in the low
        bits of an integer.
    quarters_until : float
        How far it does.
    """
    zero, half, one, two, inf, nan = map(real, (0.0, 0.5, 1.0, 2.0, math.inf, math.nan))
    log2_e, ln2_high, ln2_low = real(1 / math.log(2)), real(ln2[0]), real(ln2[1])
    shift, largest, tiny = real(to_integer), real(exp_range[0]), real(tiny)
    least, one_less = real(exp_range[1]), real(exp_range[2])
    erf_is_one, tanh_is_one = real(erf_is_one), real(20)
    until, near, pole = real(quarters_until), real(0.625), real(-1)
    bias = (1 << (8 * shift.itemsize - mantissa - 2)) - 1
    shift_bits = int(shift.view(f"i{shift.itemsize}"))
    least_normal, up = np.finfo(real).smallest_normal, real(2.0 ** (mantissa + 2))
    raised = real(mantissa + 2)
    root = int(np.sqrt(half).view(f"i{shift.itemsize}"))
    to_root = (1 << mantissa) * bias - root  # brings what is above sqrt(2) into the next power

    @_inlined()
    def reduced(x: Any) -> Any:
        """Return r, what was rounded off it, and k, with x = r + k log 2 and |r| <= log(2) / 2."""
        shifted = x * log2_e + shift
        n = shifted - shift
        high, low = x - n * ln2_high, n * ln2_low
        r = high - low
        return r, (high - r) - low, _bits(shifted) - shift_bits

    @_inlined()
    def two_parts(x: Any) -> Any:
        """Return exp(x), and what that rounds off."""
        r, lost, k = reduced(where(x > largest, largest, where(x < least, least, x)))
        p = r + (r * r * near_exp(r) + lost)
        e = one + p
        part = k >> 1  # in two steps, for what is subnormal
        first, second = number((part + bias) << mantissa), number((k - part + bias) << mantissa)
        return e * first * second, ((one - e) + p) * first * second

    @_inlined()
    def exp(x: Any) -> Any:
        return where(x > largest, inf, where(x != x, x, two_parts(x)[0]))

    @_inlined()
    def expm1(x: Any) -> Any:
        bound = where(x > largest, largest, where(x < one_less, one_less, x))
        r, lost, k = reduced(bound)
        scale = number((k + (bias - 1)) << mantissa)  # half of it, for 2^1024 is no number
        e = ((r + (r * r * near_exp(r) + lost)) * scale + (scale - half)) * two
        return where(x > largest, inf, where((abs(x) < tiny) | (x != x), x, e))

    @_inlined()
    def sigmoid(x: Any) -> Any:
        e, lost = two_parts(-abs(x))
        below = one + e
        quotient = where(x < zero, e, one) / below
        lost_above = where(x < zero, lost, zero)
        lost_below = (e - (below - one)) + lost
        quotient = quotient + (lost_above - quotient * lost_below) / below
        return where(x != x, x, quotient)

    @_inlined()
    def tanh(x: Any) -> Any:
        size = abs(x)
        far = one - two / (exp(two * where(size > tanh_is_one, tanh_is_one, size)) + one)
        t = where(size < near, x + x * near_tanh(x * x), where(x < zero, -far, far))
        return where((x == zero) | (x != x), x, t)

    @_inlined()
    def log_of(f: Any, k: Any, low: Any) -> Any:
        """Return log((1 + f) (1 + low)) + k log 2 for 1 + f between sqrt(1/2) and sqrt(2)."""
        s = f / (two + f)
        z = s * s
        square = half * f * f
        rest = s * (square + z * near_log(z)) + (k * ln2_low + low)
        return k * ln2_high - ((square - rest) - f)

    @_inlined()
    def split(x: Any) -> Any:
        """Return m and k with x = m 2^k and m between sqrt(1/2) and sqrt(2), of a positive one."""
        is_subnormal = x < least_normal
        bits = _bits(where(is_subnormal, x * up, x))
        k = ((bits + to_root) >> mantissa) - bias
        m = number(bits - (k << mantissa))
        exponent = number(k + shift_bits) - shift
        return m, exponent - where(is_subnormal, raised, zero)

    @_inlined()
    def log(x: Any) -> Any:
        m, k = split(where((x > zero) & (x < inf), x, one))
        y = log_of(m - one, k, zero)
        y = where(x == zero, -inf, where(x < zero, nan, y))
        return where((x == inf) | (x != x), x, y)

    @_inlined()
    def log1p(x: Any) -> Any:
        z = where((x > pole) & (x < inf), x, zero)
        u = one + z
        m, k = split(u)
        lost = where(abs(z) < one, z - (u - one), one - (u - z)) / u  # what 1 + z rounds away
        is_near = k == zero  # then z itself is there
        y = log_of(where(is_near, z, m - one), k, where(is_near, zero, lost))
        y = where(abs(z) < tiny, z, y)
        y = where(x == pole, -inf, where(x < pole, nan, y))
        return where((x == inf) | (x != x) | (x == zero), x, y)

    @_inlined()
    def erf(x: Any) -> Any:
        size = abs(x)
        is_near = size < one
        a = where(size > erf_is_one, erf_is_one, where(is_near, one, size))
        far = one - exp(-a * a) * erfcx(a)
        nearby = x + x * near_erf(where(is_near, x * x, one))
        return where(is_near, nearby, where(x < zero, -far, where(x != x, x, far)))

    @_inlined()
    def sin_and_cos(x: Any) -> Any:
        """Return sin(r), what it rounds off, the same of cos(r), and n.

        x is r + n pi/2, and |r| at most pi/4.
        """
        r, low, n = quarter(where(abs(x) <= until, x, zero))
        z = r * r
        square = half * z
        w = one - square
        of_sin = r * z * near_sin(z) + low * w
        of_cos = ((one - w) - square) + (z * z * near_cos(z) - r * low)
        sin, cos = r + of_sin, w + of_cos
        return sin, (r - sin) + of_sin, cos, (w - cos) + of_cos, n

    def periodic(turned: int, rare: Any) -> Any:
        """Return sin, turned by quarters."""

        @_inlined()
        def function(x: Any) -> Any:
            sin, _, cos, _, n = sin_and_cos(x)
            n = n + turned
            y = where((n & 1) != 0, cos, sin)
            y = where((n & 2) != 0, -y, y)
            if turned == 0:
                y = where(x == zero, x, y)
            if not (abs(x) <= until):
                y = real(rare(float(x)))
            return y

        return function

    rare_tan = _rare("tan")

    @_inlined()
    def tan(x: Any) -> Any:
        sin, sin_lost, cos, cos_lost, n = sin_and_cos(x)
        odd = (n & 1) != 0
        below = where(odd, sin, cos)
        y = where(odd, -cos, sin) / below
        lost_above = where(odd, -cos_lost, sin_lost)
        lost = lost_above - y * where(odd, sin_lost, cos_lost)
        y = where(x == zero, x, y + lost / below)
        if not (abs(x) <= until):
            y = real(rare_tan(float(x)))
        return y

    made = {f.__name__: f for f in (exp, expm1, sigmoid, tanh, log, log1p, erf, tan)}
    return {**made, "sin": periodic(0, _rare("sin")), "cos": periodic(1, _rare("cos"))}


@_inlined()
def _quarter_of_double(x: float) -> Any:
    """Take a multiple of pi/2 in parts of 33 bits, which are exact up to a multiple of 2^20."""
    shifted = x * 0.6366197723675814 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    a = x - n * 1.57079632673412561417
    b = a - n * 6.07710050630396597660e-11
    c = b - n * 2.02226624871116645580e-21
    lost = ((a - b) - n * 6.07710050630396597660e-11) + (
        ((b - c) - n * 2.02226624871116645580e-21) - n * 8.47842766036889956997e-32
    )
    r = c + lost
    return r, (c - r) + lost, _bits(shifted)


_turn, _nearest = np.float32(0.63661975), np.float32(12582912.0)


@_inlined()
def _quarter_of_single(x: Any) -> Any:
    """Take a multiple of pi/2 in float64."""
    shifted = x * _turn + _nearest
    n = float(shifted - _nearest)
    exact = (float(x) - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11
    r = np.float32(exact)
    return r, np.float32(exact - float(r)), _bits(shifted)


_DOUBLE = _functions(
    np.float64,
    _double,
    mantissa=52,
    to_integer=6755399441055744.0,
    ln2=(0.693147180369123816490, 1.90821492927058770002e-10),
    exp_range=(709.782712893384, -746.0, -45.0),
    tiny=1e-300,
    near_exp=_polynomial(
        np.float64, 2.0898790383535488e-09, 2.5110911126785424e-08, 2.7557275452658075e-07,
        2.755723974998781e-06, 2.4801587406774384e-05, 0.0001984126988901756, 0.001388888888878144,
        0.008333333333321641, 0.041666666666667046, 0.16666666666666674, 0.5,
    ),
    near_log=_polynomial(
        np.float64, 0.1486361998672263, 0.15306865656592827, 0.1818386568609559,
        0.22222192264346707, 0.28571428810622745, 0.39999999999063296, 0.6666666666666798,
    ),
    near_tanh=_quotient(
        _polynomial(
            np.float64, -9.64399179425052238628e-1, -9.92877231001918586564e1,
            -1.61468768441708447952e3, 0.0,
        ),
        _polynomial(
            np.float64, 1.0, 1.12811678491632931402e2, 2.23548839060100448583e3,
            4.84406305325125486048e3,
        ),
    ),
    # Cephes' numerator less its denominator: what erf(x) / x is beyond 1.
    near_erf=_quotient(
        _polynomial(
            np.float64, -1.0, -23.95674042487979357721, -431.3319300597684108733,
            -2362.31848376295808761, -15625.67492026104266987, 6324.9070401759041682,
        ),
        _polynomial(
            np.float64, 1.0, 3.35617141647503099647e1, 5.21357949780152679795e2,
            4.59432382970980127987e3, 2.26290000613890934246e4, 4.92673942608635921086e4,
        ),
    ),
    erfcx=_quotient(
        _polynomial(
            np.float64, 2.46196981473530512524e-10, 5.64189564831068821977e-1,
            7.46321056442269912687, 4.86371970985681366614e1, 1.96520832956077098242e2,
            5.26445194995477358631e2, 9.34528527171957607540e2, 1.02755188689515710272e3,
            5.57535335369399327526e2,
        ),
        _polynomial(
            np.float64, 1.0, 1.32281951154744992508e1, 8.67072140885989742329e1,
            3.54937778887819891062e2, 9.75708501743205489753e2, 1.82390916687909736289e3,
            2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2,
        ),
    ),
    erf_is_one=6.0,
    near_sin=_polynomial(
        np.float64, 1.5897743489105215e-10, -2.50507761480465e-08, 2.7557313821073913e-06,
        -0.000198412698302344, 0.008333333333323041, -0.16666666666666635,
    ),
    near_cos=_polynomial(
        np.float64, -1.13575506962891e-11, 2.0875688704393063e-09, -2.7557314154198873e-07,
        2.480158728905081e-05, -0.0013888888888873975, 0.0416666666666666,
    ),
    quarter=_quarter_of_double,
    quarters_until=1.6e6,
)  # fmt: skip
_SINGLE = _functions(
    np.float32,
    _single,
    mantissa=23,
    to_integer=12582912.0,
    ln2=(0.693145751953125, 1.42860682030941723212e-6),
    exp_range=(88.72283, -105.0, -20.0),
    tiny=1e-30,
    near_exp=_polynomial(np.float32, 0.00139512, 0.0083693005, 0.041666195, 0.16666515, 0.5),
    near_log=_polynomial(np.float32, 0.23669447, 0.2853203, 0.40000436, 0.6666666),
    near_tanh=_polynomial(
        np.float32, -0.0057165837, 0.020650193, -0.053743385, 0.1333149, -0.33333284, 0.0
    ),
    near_erf=_polynomial(
        np.float32, 7.889119e-05, -0.0008020841, 0.005189535, -0.026854444, 0.112836, -0.37612626,
        0.12837917,
    ),
    erfcx=_polynomial(
        np.float32, -0.00038888163, 0.0060050944, -0.040997997, 0.16413315, -0.43167874, 0.7925939,
        -1.0482101, 0.98612714,
    ),
    erf_is_one=4.0,
    near_sin=_polynomial(np.float32, 2.7156648e-06, -0.00019839051, 0.008333328, -0.16666667),
    near_cos=_polynomial(np.float32, 2.4412779e-05, -0.0013887144, 0.04166664),
    quarter=_quarter_of_single,
    quarters_until=131072.0,
)  # fmt: skip


def _of_either(name: str) -> Callable[..., Any]:
    """Return a function that is that of float32 for a float32, and that of float64 for the rest."""
    single, double = _SINGLE[name], _DOUBLE[name]

    def function(x: Any) -> Any:
        return double(float(x))

    def of_single(x: Any) -> Any:
        return single(x)

    def choose(x: Any) -> Any:
        return of_single if x == types.float32 else function

    function.__name__ = name
    _overload(function, jit_options=_options())(choose)
    return function


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
    **{f.__name__: f for f in (where, maximum, minimum, isnan, add, compensated, pow)},
    **{name: _of_either(name) for name in _DOUBLE},
    "start": start, "highest": highest, "lowest": lowest,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,  # math's are integers
    "sqrt": math.sqrt, "abs": abs,
}  # fmt: skip
