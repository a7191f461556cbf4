"""Kernels of complex numbers: their parts, their phase, and how real numbers make them."""

from __future__ import annotations

import numpy as np

from oneflow_lite.kernels.arithmetic import sign
from oneflow_lite.kernels.infer_rules import in_c_order, like_first, register_view
from oneflow_lite.kernels.numerics import copied
from oneflow_lite.kernels.statistics import safe_divide
from oneflow_lite.ops.registry import register_kernel


@register_kernel("conj", infer=in_c_order(like_first), reuses="x", linear="x")
def conj(xp, x, *, out=None):
    return xp.conj(x, out=out) if x.dtype.kind == "c" else copied(x, out)


@register_kernel("sgn", infer=in_c_order(like_first), reuses="x")
def sgn(xp, x, *, out=None):
    if x.dtype.kind != "c":
        return sign(xp, x, out=out)
    # not by sign, which is that of the real part in some versions of CuPy
    return safe_divide(xp, x, xp.abs(x), out=out)


@register_kernel("angle", sbp="elementwise")
def angle(xp, x):
    if x.dtype.kind == "c":
        return xp.arctan2(x.imag, x.real)
    # not by arctan2, for which -0.0 is negative
    return xp.where(xp.isnan(x), x, (x < 0) * x.dtype.type(np.pi))


@register_kernel("complex", sbp="elementwise", linear="real+imag")
def complex(xp, real, imag, *, out=None):
    if out is None:
        shape = xp.broadcast_shapes(real.shape, imag.shape)
        out = xp.empty(shape, (real[..., None][:0] * 1j).dtype)
    out.real = real
    out.imag = imag
    return out


@register_kernel("polar", sbp="elementwise")
def polar(xp, abs, angle, *, out=None):
    return complex(xp, abs * xp.cos(angle), abs * xp.sin(angle), out=out)


@register_view("view_as_real", sbp="...->...")
def view_as_real(xp, x):
    return x[..., None].view(x.real.dtype)


@register_view("view_as_complex", sbp="...R->...")
def view_as_complex(xp, x):
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]
