"""Gradients of the ops on the border of a transform.

The gradient of a Taylor series x(t) = Σ xₖ tᵏ up to order K is kept as the series with its
coefficients in reverse, Σ x̄ₖ tᴷ⁻ᵏ. Products of series then give the gradients of products, so the
gradient rules of all ops serve series as they are. For K = 1, a value and its tangent, the two
parts are swapped.
"""

from __future__ import annotations

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func


@register_grad_func("enter_batch")
def enter_batch_grad(F, ctx, dy):
    return F.leave_batch(dy, level=ctx.level, dim=ctx.dim, crossing=ctx.level.crossing())


@register_grad_func("leave_batch")
def leave_batch_grad(F, ctx, dy):
    return F.enter_batch(dy, level=ctx.level, dim=ctx.dim)


@register_grad_func("sum_batch")
def sum_batch_grad(F, ctx, dy):
    return dy  # the same for all entries


@register_grad_func("enter_jet", saves="coefficients.shape")
def enter_jet_grad(F, ctx, dy):
    level, top = ctx.level, ctx.level.order
    return tuple(
        F.leave_jet(dy, level=level, order=top - k, crossing=level.crossing()) if needed else None
        for k, needed in zip(ctx.orders, ctx.needs_input_grad, strict=True)
    )


@register_grad_func("leave_jet")
def leave_jet_grad(F, ctx, dy):
    return F.enter_jet(dy, level=ctx.level, orders=(ctx.level.order - ctx.order,))
