"""Gradients of exponentials and logarithms, circular and hyperbolic functions."""

from __future__ import annotations

import math

from oneflow_lite.autograd.rules.forward_rules import register_taylor
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.grad_funcs.arithmetic import coefficient

# --- Exponentials and logarithms ------------------------------------------------------------------

_LN_2 = math.log(2)
_LN_10 = math.log(10)
_2_OVER_SQRT_PI = 2 / math.sqrt(math.pi)


@register_grad_func("exp", saves="y")
def exp(F, ctx, dy):
    return dy * ctx.y


@register_grad_func("exp2", saves="y")
def exp2(F, ctx, dy):
    return dy * ctx.y * _LN_2


@register_grad_func("expm1", saves="y")
def expm1(F, ctx, dy):
    return dy * (ctx.y + 1)


@register_grad_func("log", saves="x")
def log(F, ctx, dy):
    return dy / ctx.x


@register_grad_func("log1p", saves="x")
def log1p(F, ctx, dy):
    return dy / (ctx.x + 1)


@register_grad_func("log2", saves="x")
def log2(F, ctx, dy):
    return dy / (ctx.x * _LN_2)


@register_grad_func("log10", saves="x")
def log10(F, ctx, dy):
    return dy / (ctx.x * _LN_10)


@register_grad_func("tanh", saves="y")
def tanh(F, ctx, dy):
    return F.tanh_grad(dy, ctx.y)


@register_grad_func("tanh_grad", wrt="dy", saves="y")
def tanh_grad_ddy(F, ctx, dz):
    return F.tanh_grad(dz, ctx.y)


@register_grad_func("tanh_grad", wrt="y", saves="dy, y")
def tanh_grad_dy(F, ctx, dz):
    return dz * ctx.dy * ctx.y * -2.0


@register_grad_func("sigmoid", saves="y")
def sigmoid(F, ctx, dy):
    return F.sigmoid_grad(dy, ctx.y)


@register_grad_func("sigmoid_grad", wrt="dy", saves="y")
def sigmoid_grad_ddy(F, ctx, dz):
    return F.sigmoid_grad(dz, ctx.y)


@register_grad_func("sigmoid_grad", wrt="y", saves="dy, y")
def sigmoid_grad_dy(F, ctx, dz):
    return dz * ctx.dy * (1.0 - 2.0 * ctx.y)


@register_grad_func("erf", saves="x")
def erf(F, ctx, dy):
    return dy * F.exp(-(ctx.x * ctx.x)) * _2_OVER_SQRT_PI


@register_grad_func("erfc", saves="x")
def erfc(F, ctx, dy):
    return dy * F.exp(-(ctx.x * ctx.x)) * -_2_OVER_SQRT_PI


@register_grad_func("logaddexp", wrt="x", saves="x, y")
def logaddexp_dx(F, ctx, dz):
    return dz * F.sigmoid(ctx.x - ctx.y)


@register_grad_func("logaddexp", wrt="y", saves="x, y")
def logaddexp_dy(F, ctx, dz):
    return dz * F.sigmoid(ctx.y - ctx.x)


@register_grad_func("logaddexp2", wrt="x", saves="x, y")
def logaddexp2_dx(F, ctx, dz):
    return dz * F.sigmoid((ctx.x - ctx.y) * _LN_2)


@register_grad_func("logaddexp2", wrt="y", saves="x, y")
def logaddexp2_dy(F, ctx, dz):
    return dz * F.sigmoid((ctx.y - ctx.x) * _LN_2)


@register_grad_func("xlogy", wrt="x", saves="x, y")
def xlogy_dx(F, ctx, dz):
    # Where x is 0 the value is constantly 0 for y ≤ 0, so log y is not to be seen there.
    dx = F.xlogy(dz, ctx.y)
    return F.where((ctx.x == 0) & (ctx.y <= 0), F.zeros_like(dx), dx)


@register_grad_func("xlogy", wrt="y", saves="x, y")
def xlogy_dy(F, ctx, dz):
    return dz * ctx.x / ctx.y


# --- Circular and hyperbolic functions ------------------------------------------------------------


@register_grad_func("sin", saves="x")
def sin(F, ctx, dy):
    return dy * F.cos(ctx.x)


@register_grad_func("cos", saves="x")
def cos(F, ctx, dy):
    return -(dy * F.sin(ctx.x))


@register_grad_func("tan", saves="y")
def tan(F, ctx, dy):
    return dy * (ctx.y * ctx.y + 1)


@register_grad_func("asin", saves="x")
def asin(F, ctx, dy):
    # (1 - x)(1 + x) keeps the digits near ±1 that 1 - x² loses.
    return dy / F.sqrt((1 - ctx.x) * (1 + ctx.x))


@register_grad_func("acos", saves="x")
def acos(F, ctx, dy):
    return -(dy / F.sqrt((1 - ctx.x) * (1 + ctx.x)))


@register_grad_func("atan", saves="x")
def atan(F, ctx, dy):
    return dy / (ctx.x * ctx.x + 1)


@register_grad_func("atan2", wrt="y", saves="y, x")
def atan2_dy(F, ctx, dz):
    return dz * ctx.x * _inverse_square_radius(F, ctx)


@register_grad_func("atan2", wrt="x", saves="y, x")
def atan2_dx(F, ctx, dz):
    return -(dz * ctx.y * _inverse_square_radius(F, ctx))


def _inverse_square_radius(F, ctx):
    """1 / (x² + y²), and 0 at the origin: atan2's gradient is 0 there, as in PyTorch."""
    square = ctx.x * ctx.x + ctx.y * ctx.y
    return F.where(square == 0, F.zeros_like(square), 1 / square)


@register_grad_func("hypot", wrt="x", saves="x, out")
def hypot_dx(F, ctx, dz):
    return dz * (ctx.x / ctx.out)


@register_grad_func("hypot", wrt="y", saves="y, out")
def hypot_dy(F, ctx, dz):
    return dz * (ctx.y / ctx.out)


@register_grad_func("sinh", saves="x")
def sinh(F, ctx, dy):
    return dy * F.cosh(ctx.x)


@register_grad_func("cosh", saves="x")
def cosh(F, ctx, dy):
    return dy * F.sinh(ctx.x)


@register_grad_func("asinh", saves="x")
def asinh(F, ctx, dy):
    return dy / F.sqrt(ctx.x * ctx.x + 1)


@register_grad_func("acosh", saves="x")
def acosh(F, ctx, dy):
    # Two roots: the root of x² - 1 would take the wrong branch where Re x < 0. Adding 1 would turn
    # an imaginary part of -0.0 into 0.0, from one side of the cut to the other.
    return dy / F.sqrt(ctx.x - 1) / F.sqrt(ctx.x - -1)


@register_grad_func("atanh", saves="x")
def atanh(F, ctx, dy):
    return dy / ((1 - ctx.x) * (1 + ctx.x))


@register_grad_func("sinc", saves="x")
def sinc(F, ctx, dy):
    return F.sinc_grad(dy, ctx.x, order=1)


@register_grad_func("sinc_grad", wrt="dy", saves="x")
def sinc_grad_ddy(F, ctx, dz):
    return F.sinc_grad(dz, ctx.x, order=ctx.order)


@register_grad_func("sinc_grad", wrt="x", saves="dy, x")
def sinc_grad_dx(F, ctx, dz):
    return F.sinc_grad(dz * ctx.dy, ctx.x, order=ctx.order + 1)


# --- Series ---------------------------------------------------------------------------------------


def _weighted(a, b, k):
    """Return Σ j a_j b_{k-j} / k for j from 1 to k: coefficient k of ∫ a' b."""
    total = None
    for j in range(1, k + 1):
        if a[j] is not None and b[k - j] is not None:
            term = a[j] * b[k - j]
            term = term if j == k else term * (j / k)
            total = term if total is None else total + term
    return total


@register_taylor("exp")
def exp_series(F, y, x):
    made = [y]
    for k in range(1, len(x)):
        made.append(_weighted(x, made, k))
    return made


@register_taylor("log")
def log_series(F, y, x):
    """x y' = x': y_k = (x_k - Σ_{0<j<k} j y_j x_{k-j} / k) / x_0."""
    made = [y]
    for k in range(1, len(x)):
        rest = x[k]
        for j in range(1, k):
            if made[j] is not None and x[k - j] is not None:
                term = made[j] * x[k - j] * (j / k)
                rest = -term if rest is None else rest - term
        made.append(None if rest is None else rest / x[0])
    return made


def _pair(other, sign):
    """Return the recurrence of y, whose derivative is another function, and of that function."""

    def series(F, y, x):
        ys, zs = [y], [getattr(F, other)(x[0])]
        for k in range(1, len(x)):
            ys.append(_weighted(x, zs, k))
            z = _weighted(x, ys, k)
            zs.append(-z if z is not None and sign < 0 else z)
        return ys

    return series


def _turned(series):
    """Return the recurrence of a function whose derivative is minus another function."""

    def turned(F, y, x):
        ys, zs = [y], [series(F, x[0])]
        for k in range(1, len(x)):
            z = _weighted(x, zs, k)
            ys.append(None if z is None else -z)
            zs.append(_weighted(x, ys, k))
        return ys

    return turned


register_taylor("sin")(_pair("cos", -1))
register_taylor("sinh")(_pair("cosh", 1))
register_taylor("cosh")(_pair("sinh", 1))
register_taylor("cos")(_turned(lambda F, x: F.sin(x)))


def _by_derivative(slope):
    """Return the recurrence of y' = g(y) x': `slope` gives coefficient k of g(y)."""

    def series(F, y, x):
        made, slopes = [y], []
        for k in range(1, len(x)):
            slopes.append(slope(made, k - 1))
            made.append(_weighted(x, slopes, k))
        return made

    return series


def _slope_of_tanh(made, k):
    square = coefficient(made, made, k)
    return 1 - square if k == 0 else None if square is None else -square


def _slope_of_sigmoid(made, k):
    square = coefficient(made, made, k)
    if made[k] is None:
        return None if square is None else -square
    return made[k] if square is None else made[k] - square


register_taylor("tanh")(_by_derivative(_slope_of_tanh))
register_taylor("sigmoid")(_by_derivative(_slope_of_sigmoid))
