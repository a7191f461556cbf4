"""Kernels of logic on truth values and bits; called by the interpreter, never by a gradient."""

from __future__ import annotations

from oneflow_lite.registry import register_kernel


@register_kernel("logical_and")
def logical_and(xp, x, y):
    return xp.logical_and(x, y)


@register_kernel("logical_or")
def logical_or(xp, x, y):
    return xp.logical_or(x, y)


@register_kernel("logical_xor")
def logical_xor(xp, x, y):
    return xp.logical_xor(x, y)


@register_kernel("logical_not")
def logical_not(xp, x):
    return xp.logical_not(x)


@register_kernel("bitwise_and")
def bitwise_and(xp, x, y):
    return xp.bitwise_and(x, y)


@register_kernel("bitwise_or")
def bitwise_or(xp, x, y):
    return xp.bitwise_or(x, y)


@register_kernel("bitwise_xor")
def bitwise_xor(xp, x, y):
    return xp.bitwise_xor(x, y)


@register_kernel("bitwise_not")
def bitwise_not(xp, x):
    return xp.invert(x)
