"""Kernels of complex numbers: their parts, their phase, and what makes them of real ones."""

from __future__ import annotations

import numpy as np

from oneflow_lite.kernels.statistics import safe_divide
from oneflow_lite.registry import register_kernel


@register_kernel("conj")
def conj(xp, x):
    return xp.conj(x) if x.dtype.kind == "c" else x.copy()


@register_kernel("sgn")
def sgn(xp, x):
    if x.dtype.kind != "c":
        return xp.sign(x)
    # not by sign, which is that of the real part in some versions of CuPy
    return safe_divide(xp, x, xp.abs(x))


@register_kernel("angle")
def angle(xp, x):
    if x.dtype.kind == "c":
        return xp.arctan2(x.imag, x.real)
    # not by arctan2, for which -0.0 is negative
    return xp.where(xp.isnan(x), x, (x < 0) * x.dtype.type(np.pi))


@register_kernel("complex")
def complex(xp, real, imag):
    out = xp.empty(xp.broadcast_shapes(real.shape, imag.shape), (real[..., None][:0] * 1j).dtype)
    out.real = real
    out.imag = imag
    return out


@register_kernel("polar")
def polar(xp, abs, angle):
    return complex(xp, abs * xp.cos(angle), abs * xp.sin(angle))


@register_kernel("view_as_real", view_of="x")
def view_as_real(xp, x):
    return x[..., None].view(x.real.dtype)


@register_kernel("view_as_complex", view_of="x")
def view_as_complex(xp, x):
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]
