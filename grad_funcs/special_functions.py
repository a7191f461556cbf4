"""Gradients of special functions; the engine calls them.

Most are one expression: in x, or in x and the result y. Where PyTorch's functions give no such
derivative, ours (`bessel_jn`, `polygamma_n`) do, to any order.
"""

from __future__ import annotations

import math

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func

_HALF_SQRT_PI = math.sqrt(math.pi) / 2
_2_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
_SQRT_2PI = math.sqrt(2 * math.pi)
_1_OVER_PI = 1 / math.pi

# op: its derivative from x
_FROM_X = {
    "lgamma": lambda F, x: F.digamma(x),
    "digamma": lambda F, x: F.polygamma_n(x, n=1),
    "erfinv": lambda F, x: F.exp(F.square(F.erfinv(x))) * _HALF_SQRT_PI,
    "ndtr": lambda F, x: F.exp(F.square(x) * -0.5) / _SQRT_2PI,
    "log_ndtr": lambda F, x: F.log_ndtr_grad(x),
    "entr": lambda F, x: -(F.log(x) + 1),
    "i0": lambda F, x: F.i1(x),
    "i1": lambda F, x: (F.i0(x) + F.modified_bessel_in(x, n=2, scaled=False)) / 2,
    "bessel_j0": lambda F, x: -F.bessel_j1(x),
    "bessel_j1": lambda F, x: (F.bessel_j0(x) - F.bessel_jn(x, n=2)) / 2,
    "bessel_y0": lambda F, x: -F.bessel_y1(x),
    "modified_bessel_k0": lambda F, x: -F.modified_bessel_k1(x),
}
# op: its derivative from x and y
_FROM_XY = {
    "erfcx": lambda F, x, y: x * y * 2 - _2_OVER_SQRT_PI,
    "log_ndtr_grad": lambda F, x, y: -(y * (x + y)),
    "i0e": lambda F, x, y: F.i1e(x) - F.sign(x) * y,
    "i1e": lambda F, x, y: (
        (F.i0e(x) + F.modified_bessel_in(x, n=2, scaled=True)) / 2 - F.sign(x) * y
    ),
    "bessel_y1": lambda F, x, y: F.bessel_y0(x) - y / x,
    "modified_bessel_k1": lambda F, x, y: -(F.modified_bessel_k0(x) + y / x),
    "scaled_modified_bessel_k0": lambda F, x, y: y - F.scaled_modified_bessel_k1(x),
    "scaled_modified_bessel_k1": lambda F, x, y: y - F.scaled_modified_bessel_k0(x) - y / x,
}


def _from_x(derivative):
    return lambda F, ctx, dy: dy * derivative(F, ctx.x)


def _from_xy(derivative):
    return lambda F, ctx, dy: dy * derivative(F, ctx.x, ctx.y)


for _op, _of_x in _FROM_X.items():
    register_grad_func(_op, saves="x")(_from_x(_of_x))
for _op, _of_xy in _FROM_XY.items():
    register_grad_func(_op, saves="x, y")(_from_xy(_of_xy))


@register_grad_func("ndtri", saves="y")
def ndtri(F, ctx, dy):
    return dy * F.exp(F.square(ctx.y) / 2) * _SQRT_2PI


@register_grad_func("spherical_bessel_j0", saves="x")
def spherical_bessel_j0(F, ctx, dy):
    return F.sinc_grad(dy * _1_OVER_PI, ctx.x * _1_OVER_PI, order=1)


@register_grad_func("polygamma_n", saves="x")
def polygamma_n(F, ctx, dy):
    return dy * F.polygamma_n(ctx.x, n=ctx.n + 1)


@register_grad_func("bessel_jn", saves="x")
def bessel_jn(F, ctx, dy):
    n = ctx.n
    before = F.bessel_j1(ctx.x) if n == 2 else F.bessel_jn(ctx.x, n=n - 1)
    return dy * (before - F.bessel_jn(ctx.x, n=n + 1)) / 2


@register_grad_func("modified_bessel_in", saves="x, y")
def modified_bessel_in(F, ctx, dy):
    x, n, scaled = ctx.x, ctx.n, ctx.scaled
    if n > 2:
        before = F.modified_bessel_in(x, n=n - 1, scaled=scaled)
    else:
        before = F.i1e(x) if scaled else F.i1(x)
    slope = (before + F.modified_bessel_in(x, n=n + 1, scaled=scaled)) / 2
    return dy * (slope - F.sign(x) * ctx.y if scaled else slope)


@register_grad_func("logit", saves="x")
def logit(F, ctx, dy):
    x, eps = ctx.x, ctx.eps
    low, outside = (0, math.nan) if eps is None else (eps, 0.0)
    return F.where((x >= low) & (x <= 1 - low), dy / (x * (1 - x)), outside)


@register_grad_func("igamma", wrt="y", saves="x, y")
def igamma_dy(F, ctx, dz):
    return dz * _gamma_density(F, ctx.x, ctx.y)


@register_grad_func("igammac", wrt="y", saves="x, y")
def igammac_dy(F, ctx, dz):
    return -(dz * _gamma_density(F, ctx.x, ctx.y))


def _gamma_density(F, a, y):
    """y^(a-1) exp(-y) / Γ(a)."""
    return F.exp(F.xlogy(a - 1, y) - y - F.lgamma(a))


@register_grad_func("xlog1py", wrt="x", saves="x, y")
def xlog1py_dx(F, ctx, dz):
    # Where x is 0 the value is constantly 0 for y ≤ -1, so log1p(y) is not to be seen there.
    dx = F.xlog1py(dz, ctx.y)
    return F.where((ctx.x == 0) & (ctx.y <= -1), F.zeros_like(dx), dx)


@register_grad_func("xlog1py", wrt="y", saves="x, y")
def xlog1py_dy(F, ctx, dz):
    return dz * ctx.x / (ctx.y + 1)


@register_grad_func("zeta", wrt="y", saves="x, y")
def zeta_dy(F, ctx, dz):
    return dz * -ctx.x * F.zeta(ctx.x + 1, ctx.y)
