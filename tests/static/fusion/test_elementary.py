"""The elementary functions of machine code: within 2 ulp, everywhere."""

import re

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `jit` is not installed")
from numba import from_dtype, njit, types

from oneflow_lite.static.fusion import elementary

LONG = np.longdouble
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1e-310, -1e-310, 1.0, -1.0, 0.5, -0.5]
    + [709.7, 709.79, 710.0, -708.0, -745.0, -746.0, 1e308, -1e308, 20.0, -20.0, 0.625, -0.625]
    + [1.6e6, 1.6000001e6, 1e22]
)


def points(count=30_000):
    rng = np.random.default_rng(0)
    sign = rng.choice([-1.0, 1.0], count)
    nearest = np.round(rng.uniform(-(2**20), 2**20, count)) * (np.pi / 2)  # to zeros of sin and cos
    return np.concatenate(
        [
            SPECIAL,
            rng.standard_normal(count) * 10,
            rng.uniform(-1.5, 1.5, count),
            rng.uniform(-760, 760, count),
            np.exp(rng.uniform(-40, 8, count)) * sign,
            np.exp(rng.uniform(-744, 709, count)) * sign,
            nearest,
        ]
    )


def singles(step=20_011):
    """Return float32 numbers from all over their range, and those around where methods change."""
    bits = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32)
    edges = "0 1 0.5 0.625 2 4 20 105 131072 88.72283 1.4142135 0.70710677 1e-30 1.1754944e-38 16"
    at = np.array(edges.split(), np.float32).view(np.int32)
    around = np.maximum(at[:, None] + np.arange(-2000, 2000), 0).astype(np.uint32)
    around = np.concatenate([around.ravel(), around.ravel() ^ np.uint32(1 << 31)])
    with np.errstate(all="ignore"):
        special = SPECIAL.astype(np.float32)
    return np.concatenate([special, bits.view(np.float32), around.view(np.float32)])


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def erf(x):
    """Abramowitz and Stegun 7.1.6; beyond 6 it is 1 in float64."""
    z = np.where(np.abs(x) < 6, x, 0)
    term = z * 2 / np.sqrt(np.arctan(LONG(1)) * 4) * np.exp(-z * z)
    total = term.copy()
    for n in range(1, 140):
        term = term * 2 * z * z / (2 * n + 1)
        total = total + term
    return np.where(np.isnan(x), x, np.where(np.abs(x) < 6, total, np.sign(x)))


TRUTH = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh,
    "sigmoid": sigmoid, "erf": erf, "sin": np.sin, "cos": np.cos, "tan": np.tan,
}  # fmt: skip


def results(name, x):
    function = elementary.FUNCTIONS[name]

    @njit(error_model="numpy")
    def loop(given, found):
        for i in range(given.size):
            found[i] = function(given[i])

    found = np.empty_like(x)
    loop(x, found)
    return found


def check(name, x, wide):
    """Hold a function against NumPy's in more digits."""
    found = results(name, x)
    with np.errstate(all="ignore"):
        truth = TRUTH[name](x.astype(wide))
        rounded = truth.astype(x.dtype)
        assert np.array_equal(np.isnan(found), np.isnan(rounded))
        endless = np.isinf(rounded)
        assert np.array_equal(found[endless], rounded[endless])
        usual = np.isfinite(rounded)
        ulp = np.abs(found[usual] - truth[usual]) / np.spacing(np.abs(rounded[usual]))
    assert ulp.max() <= 2, (x[usual][ulp.argmax()], float(ulp.max()))
    zero = (x == 0) & (rounded == 0)
    assert np.array_equal(np.signbit(found[zero]), np.signbit(rounded[zero]))


@pytest.mark.slow
@pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="long doubles are doubles here")
@pytest.mark.parametrize("name", TRUTH)
def test_within_two_ulp(name):
    check(name, points(), LONG)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", TRUTH)
def test_single_precision_is_within_two_ulp(name):
    check(name, singles(), np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TRUTH)
def test_loops_stay_simd(name, dtype):
    """LLVM makes vectors of the loop, whose width is that of the dtype."""
    function = elementary.FUNCTIONS[name]

    def loop(given, found):
        for i in range(given.size):
            found[i] = function(given[i])

    array = types.Array(from_dtype(np.dtype(dtype)), 1, "C")
    compiled = njit(types.void(array, array), error_model="numpy")(loop)
    (text,) = compiled.inspect_llvm().values()
    kind = {"float32": "float", "float64": "double"}[dtype]
    assert re.search(rf"fmul contract <\d+ x {kind}>", text)


def test_choices_keep_nan():
    x, y = (g.ravel() for g in np.meshgrid([0.0, -1.0, np.nan, np.inf], [1.0, np.nan, -np.inf]))
    for name in ("maximum", "minimum"):
        function = elementary.FUNCTIONS[name]
        found = [function(a, b) for a, b in zip(x, y, strict=True)]
        assert np.array_equal(found, getattr(np, name)(x, y), equal_nan=True)
