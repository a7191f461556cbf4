"""The gradients of distances between all rows of two matrices; 0 where two rows are equal."""

from __future__ import annotations

import math

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.autograd.rules.zero import ZERO


@register_grad_func("cdist", saves="x, y, out")
def cdist_grad(F, ctx, dz):
    """dx_i = Σ_j e_ij and dy_j = -Σ_i e_ij, of e_ij = dz_ij sign(d) (|d| / z_ij)^(p − 1)

    with d = x_i − y_j.
    """
    p, x, y, z, (for_x, for_y) = ctx.p, ctx.x, ctx.y, ctx.out, ctx.needs_input_grad
    dim = z.ndim - 1
    if p == 0:
        return ZERO, ZERO  # a count
    if ctx.mm:
        weight = F.safe_divide(dz, z)
        turned = F.transpose(weight, dim0=dim - 1, dim1=dim)
        return (
            _by_product(F, weight, x, y, dim) if for_x else None,
            _by_product(F, turned, y, x, dim) if for_y else None,
        )
    d = F.unsqueeze(x, dim=x.ndim - 1) - F.unsqueeze(y, dim=y.ndim - 2)
    if p == 2:
        e = d * F.unsqueeze(F.safe_divide(dz, z), dim=dim + 1)
    else:
        dz, z = F.unsqueeze(dz, dim=dim + 1), F.unsqueeze(z, dim=dim + 1)
        if p == 1:
            e = F.sign(d) * dz
        elif p == math.inf:
            e = F.sign(d) * F.where(F.abs(d) == z, dz, 0.0)
        else:
            scale = dz * F.pow(z, 1 - p) if p < 1 else F.safe_divide(dz, F.pow(z, p - 1))
            e = F.safe_divide(F.pow(F.abs(d), p), d) * scale
    return (
        F.sum(e, dim=(dim,), keepdim=False) if for_x else None,
        -F.sum(e, dim=(dim - 1,), keepdim=False) if for_y else None,
    )


def _by_product(F, weight, x, y, dim):
    """Σ_j weight_ij (x_i − y_j)"""
    return x * F.sum(weight, dim=(dim,), keepdim=True) - F.matmul(weight, y)


@register_grad_func("upper_pairs", saves="x.shape")
def upper_pairs_dx(F, ctx, dy):
    return F.upper_pairs_grad(dy, n=ctx.x_shape[0])


@register_grad_func("upper_pairs_grad")
def upper_pairs_grad_ddy(F, ctx, ddx):
    return F.upper_pairs(ddx)
