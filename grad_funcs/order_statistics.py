"""Gradients of k-th value, median and mode: dy goes to the chosen element."""

from oneflow_lite.autograd.grad_function import register_grad_func
from oneflow_lite.grad_funcs.extrema import chosen_grad

for _op in ("kthvalue", "median", "nanmedian", "mode"):
    register_grad_func(_op, saves="y1, x.shape")(chosen_grad)


def _of_all_grad(F, ctx, dy):
    return dy * F.tie_weights(ctx.x, ctx.y, dim=tuple(range(ctx.x.ndim)))


register_grad_func("median_of_all", saves="x, y")(_of_all_grad)
register_grad_func("nanmedian_of_all", saves="x, y")(_of_all_grad)
