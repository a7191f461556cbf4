"""Gradients of resizing, and of reading planes at positions of a grid.

Resizing and its transpose are each other's gradients. At a grid each op is linear in all but the
grid. A derivative by a coordinate of the grid raises the order to which the weights of that
coordinate are differentiated.
"""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.autograd.rules.zero import ZERO


def _map(ctx):
    return {
        "mode": ctx.mode,
        "align_corners": ctx.align_corners,
        "scales": ctx.scales,
        "antialias": ctx.antialias,
    }


@register_grad_func("resample", saves="x.shape")
def resample_grad(F, ctx, dy):
    size = ctx.x_shape[-len(ctx.output_size) :]
    return F.resample_grad(dy, input_size=size, **_map(ctx))


@register_grad_func("resample_grad", saves="dy.shape")
def resample_grad_grad(F, ctx, d):
    size = ctx.dy_shape[-len(ctx.input_size) :]
    return F.resample(d, output_size=size, **_map(ctx))


def _options(ctx):
    return {
        "interpolation_mode": ctx.interpolation_mode,
        "padding_mode": ctx.padding_mode,
        "align_corners": ctx.align_corners,
    }


@register_grad_func("plane_sample", wrt="x", saves="x.shape, grid")
def plane_sample_dx(F, ctx, dy):
    size = ctx.x_shape[2:]
    return F.plane_sample_input_grad(
        dy, ctx.grid, input_size=size, **_options(ctx), orders=ctx.orders
    )


@register_grad_func("plane_sample", wrt="grid", saves="x, grid")
def plane_sample_dgrid(F, ctx, dy):
    if ctx.interpolation_mode == "nearest":
        return ZERO
    return F.plane_sample_grid_grad(dy, ctx.x, ctx.grid, **_options(ctx), orders=ctx.orders)


@register_grad_func("plane_sample_input_grad", wrt="dy", saves="grid")
def plane_sample_input_grad_ddy(F, ctx, d):
    return F.plane_sample(d, ctx.grid, **_options(ctx), orders=ctx.orders)


@register_grad_func("plane_sample_input_grad", wrt="grid", saves="dy, grid")
def plane_sample_input_grad_dgrid(F, ctx, d):
    return F.plane_sample_grid_grad(ctx.dy, d, ctx.grid, **_options(ctx), orders=ctx.orders)


def _raised(F, ctx, d):
    """Yield, for each coordinate, its entries of d (N, 1, *positions) and the orders raised."""
    spatial = len(ctx.orders)
    for j in range(spatial):
        row = spatial - 1 - j
        orders = tuple([order + (axis == row) for axis, order in enumerate(ctx.orders)])
        yield F.getitem(d, index=(slice(None), None, ..., j)), {**_options(ctx), "orders": orders}


@register_grad_func("plane_sample_grid_grad", wrt="dy", saves="x, grid")
def plane_sample_grid_grad_ddy(F, ctx, d):
    return _sum([dj * F.plane_sample(ctx.x, ctx.grid, **to) for dj, to in _raised(F, ctx, d)])


@register_grad_func("plane_sample_grid_grad", wrt="x", saves="dy, x.shape, grid")
def plane_sample_grid_grad_dx(F, ctx, d):
    size = ctx.x_shape[2:]
    return _sum(
        [
            F.plane_sample_input_grad(ctx.dy * dj, ctx.grid, input_size=size, **to)
            for dj, to in _raised(F, ctx, d)
        ]
    )


@register_grad_func("plane_sample_grid_grad", wrt="grid", saves="dy, x, grid")
def plane_sample_grid_grad_dgrid(F, ctx, d):
    return _sum(
        [
            F.plane_sample_grid_grad(ctx.dy * dj, ctx.x, ctx.grid, **to)
            for dj, to in _raised(F, ctx, d)
        ]
    )


def _sum(terms):
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
