"""The gradient of distances between all rows of two matrices; 0 where two rows are equal."""

from __future__ import annotations

import math

from oneflow_lite.autograd.grad_function import register_grad_func


@register_grad_func("cdist", wrt="x", saves="x, y, out")
def cdist_dx(F, ctx, dz):
    return _dx(F, ctx, dz, ctx.x, ctx.y, ctx.out)


@register_grad_func("cdist", wrt="y", saves="x, y, out")
def cdist_dy(F, ctx, dz):
    dim = dz.ndim - 1
    dz, z = (F.transpose(d, dim0=dim - 1, dim1=dim) for d in (dz, ctx.out))
    return _dx(F, ctx, dz, ctx.y, ctx.x, z)


def _dx(F, ctx, dz, x, y, z):
    """Σ_j dz_ij sign(d) (|d| / z_ij)^(p − 1) with d = x_i − y_j"""
    p, dim = ctx.p, z.ndim - 1
    if p == 0:
        return F.zeros_like(x)  # a count
    if ctx.mm:
        weight = F.safe_divide(dz, z)
        return x * F.sum(weight, dim=(dim,), keepdim=True) - F.matmul(weight, y)
    d = F.unsqueeze(x, dim=x.ndim - 1) - F.unsqueeze(y, dim=y.ndim - 2)
    dz, z = F.unsqueeze(dz, dim=dim + 1), F.unsqueeze(z, dim=dim + 1)
    if p == 2:
        dx = d * F.safe_divide(dz, z)
    elif p == 1:
        dx = F.sign(d) * dz
    elif p == math.inf:
        dx = F.sign(d) * F.where(F.abs(d) == z, dz, 0.0)
    else:
        scale = dz * z ** (1 - p) if p < 1 else F.safe_divide(dz, z ** (p - 1))
        dx = F.safe_divide(F.abs(d) ** p, d) * scale
    return F.sum(dx, dim=(dim,), keepdim=False)


@register_grad_func("upper_pairs", saves="x.shape")
def upper_pairs_dx(F, ctx, dy):
    return F.upper_pairs_grad(dy, n=ctx.x_shape[0])


@register_grad_func("upper_pairs_grad")
def upper_pairs_grad_ddy(F, ctx, ddx):
    return F.upper_pairs(ddx)
