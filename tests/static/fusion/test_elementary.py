"""The elementary functions of machine code: within 2 ulp, everywhere."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `jit` is not installed")
from numba import njit

from oneflow_lite.static.fusion import elementary

LONG = np.longdouble
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1e-310, -1e-310, 1.0, -1.0, 0.5, -0.5]
    + [709.7, 709.79, 710.0, -708.0, -745.0, -746.0, 1e308, -1e308, 20.0, -20.0, 0.625, -0.625]
)


def points(count=100_000):
    rng = np.random.default_rng(0)
    sign = rng.choice([-1.0, 1.0], count)
    return np.concatenate(
        [
            SPECIAL,
            rng.standard_normal(count) * 10,
            rng.uniform(-1.5, 1.5, count),
            rng.uniform(-760, 760, count),
            np.exp(rng.uniform(-40, 8, count)) * sign,
            np.exp(rng.uniform(-744, 709, count)) * sign,
        ]
    )


def sigmoid(x):
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


def erf(x):
    """Abramowitz and Stegun 7.1.6; beyond 6 it is 1 in float64."""
    z = np.where(np.abs(x) < 6, x, 0)
    term = z * 2 / np.sqrt(np.arctan(LONG(1)) * 4) * np.exp(-z * z)
    total = term.copy()
    for n in range(1, 220):
        term = term * 2 * z * z / (2 * n + 1)
        total = total + term
    return np.where(np.isnan(x), x, np.where(np.abs(x) < 6, total, np.sign(x)))


TRUTH = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh,
    "sigmoid": sigmoid, "erf": erf,
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


@pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="long doubles are doubles here")
@pytest.mark.parametrize("name", TRUTH)
def test_within_two_ulp(name):
    x = points()
    found = results(name, x)
    with np.errstate(all="ignore"):
        truth = TRUTH[name](x.astype(LONG))
        rounded = truth.astype(np.float64)
        assert np.array_equal(np.isnan(found), np.isnan(rounded))
        endless = np.isinf(rounded)
        assert np.array_equal(found[endless], rounded[endless])
        usual = np.isfinite(rounded)
        ulp = np.abs(found[usual] - truth[usual]) / np.spacing(np.abs(rounded[usual]))
    assert ulp.max() <= 2, (x[usual][ulp.argmax()], float(ulp.max()))
    zero = (x == 0) & (rounded == 0)
    assert np.array_equal(np.signbit(found[zero]), np.signbit(rounded[zero]))


def test_choices_keep_nan():
    x, y = (g.ravel() for g in np.meshgrid([0.0, -1.0, np.nan, np.inf], [1.0, np.nan, -np.inf]))
    for name in ("maximum", "minimum"):
        function = elementary.FUNCTIONS[name]
        found = [function(a, b) for a, b in zip(x, y, strict=True)]
        assert np.array_equal(found, getattr(np, name)(x, y), equal_nan=True)
