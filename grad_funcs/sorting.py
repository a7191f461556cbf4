"""Gradients of sorting and ranks: each value's gradient goes back to where the value stood."""

from oneflow_lite.autograd.rules.forward_rules import piecewise_linear, register_push
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.grad_funcs.reduce import chosen_grad, extreme_push, gathered_push


def _values_dx(F, ctx, dvalues, dindices):
    return F.gather_grad(dvalues, ctx.y1, dim=ctx.dim, shape=ctx.x_shape)


register_grad_func("sort", saves="y1, x.shape")(_values_dx)
register_grad_func("topk", saves="y1, x.shape")(_values_dx)

for _op in ("kthvalue", "median", "nanmedian", "mode"):
    register_grad_func(_op, saves="y1, x.shape")(chosen_grad)


def _of_all_grad(F, ctx, dy):
    return dy * F.tie_weights(ctx.x, ctx.y, dim=tuple(range(ctx.x.ndim)))


register_grad_func("median_of_all", saves="x, y")(_of_all_grad)
register_grad_func("nanmedian_of_all", saves="x, y")(_of_all_grad)


for _op in ("sort", "topk"):
    register_push(_op)(gathered_push)
for _op in ("kthvalue", "median", "nanmedian", "mode"):
    register_push(_op)(extreme_push)
piecewise_linear(*"sort topk kthvalue median nanmedian mode median_of_all nanmedian_of_all".split())
