"""Gradients of ops that take complex numbers apart and put them together.

Where the output is complex, dy arrives conjugated and the engine conjugates the result again.
"""

from __future__ import annotations

from oneflow_lite.autograd.rules.forward_rules import dense_jacobian
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.autograd.rules.zero import ZERO


@register_grad_func("conj")
def conj_grad(F, ctx, dy):
    return F.conj(dy)


dense_jacobian("sgn")  # of complex numbers it is not holomorphic


@register_grad_func("sgn", saves="x, y")
def sgn_grad(F, ctx, dy):
    # z / |z| only turns with z: the part of dy along it is dropped, the rest divided by |z|
    inner = F.conj(dy)
    along = F.real(inner * F.conj(ctx.y))
    return F.conj(F.safe_divide(inner - ctx.y * along, F.abs(ctx.x)))


@register_grad_func("angle", saves="x")
def angle_grad(F, ctx, dy):
    if ctx.x.dtype.kind != "c":
        return ZERO
    # i z / |z|², in an order in which |z|² neither overflows nor vanishes
    return F.safe_divide(F.sgn(ctx.x) * 1j * dy, F.abs(ctx.x))


@register_grad_func("complex", wrt="real")
def complex_dreal(F, ctx, dz):
    return F.real(dz)


@register_grad_func("complex", wrt="imag")
def complex_dimag(F, ctx, dz):
    return -F.imag(dz)


@register_grad_func("polar", wrt="abs", saves="angle")
def polar_dabs(F, ctx, dz):
    return F.real(dz) * F.cos(ctx.angle) - F.imag(dz) * F.sin(ctx.angle)


@register_grad_func("polar", wrt="angle", saves="out")
def polar_dangle(F, ctx, dz):
    return -F.imag(dz * ctx.out)


@register_grad_func("view_as_real")
def view_as_real_grad(F, ctx, dy):
    dim = dy.ndim - 1
    return F.complex(F.select(dy, dim=dim, index=0), F.select(dy, dim=dim, index=1))


@register_grad_func("view_as_complex")
def view_as_complex_grad(F, ctx, dy):
    return F.view_as_real(F.conj(dy))
