"""Gradients of sort and topk: each value's gradient goes back to where the value stood."""

from oneflow_lite.autograd.grad_function import register_grad_func


def _values_dx(F, ctx, dvalues, dindices):
    return F.gather_grad(dvalues, ctx.y1, dim=ctx.dim, shape=ctx.x_shape)


register_grad_func("sort", saves="y1, x.shape")(_values_dx)
register_grad_func("topk", saves="y1, x.shape")(_values_dx)
