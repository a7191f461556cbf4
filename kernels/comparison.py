"""Kernels of comparisons; called by the interpreter, never by a gradient."""

from __future__ import annotations

from oneflow_lite.registry import register_kernel


@register_kernel("eq")
def eq(xp, x, y):
    return xp.equal(x, y)


@register_kernel("ne")
def ne(xp, x, y):
    return xp.not_equal(x, y)


@register_kernel("lt")
def lt(xp, x, y):
    return xp.less(x, y)


@register_kernel("le")
def le(xp, x, y):
    return xp.less_equal(x, y)


@register_kernel("gt")
def gt(xp, x, y):
    return xp.greater(x, y)


@register_kernel("ge")
def ge(xp, x, y):
    return xp.greater_equal(x, y)


@register_kernel("isnan")
def isnan(xp, x):
    return xp.isnan(x)


@register_kernel("isinf")
def isinf(xp, x):
    return xp.isinf(x)


@register_kernel("isfinite")
def isfinite(xp, x):
    return xp.isfinite(x)


@register_kernel("isclose")
def isclose(xp, x, y, *, rtol, atol, equal_nan):
    return xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)


@register_kernel("allclose")
def allclose(xp, x, y, *, rtol, atol, equal_nan):
    return xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan).all()


@register_kernel("equal")
def equal(xp, x, y):
    return (x == y).all()
