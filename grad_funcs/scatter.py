"""Gradients of reading and writing along one dimension at places given by indices."""

import math

from oneflow_lite.autograd.rules.forward_rules import piecewise_linear
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.grad_funcs.arithmetic import flat


@register_grad_func("gather", wrt="x", saves="index, x.shape")
def gather_dx(F, ctx, dy):
    return F.gather_grad(dy, ctx.index, dim=ctx.dim, shape=ctx.x_shape)


@register_grad_func("gather_grad", wrt="dy", saves="index")
def gather_grad_ddy(F, ctx, ddx):
    return F.gather(ddx, dim=ctx.dim, index=ctx.index)


@register_grad_func("scatter", wrt="x", saves="index")
def scatter_dx(F, ctx, dy):
    return F.masked_fill(dy, F.scatter_mask(ctx.index, dim=ctx.dim, shape=dy.shape), value=0)


@register_grad_func("scatter", wrt="src", saves="index")
def scatter_dsrc(F, ctx, dy):
    # A value that a later one overwrote is not in y: PyTorch gives it a gradient.
    gone = F.scatter_overwritten(ctx.index, dim=ctx.dim, shape=dy.shape)
    return F.masked_fill(F.gather(dy, dim=ctx.dim, index=ctx.index), gone, value=0)


@register_grad_func("scatter_add", wrt="x")
def scatter_add_dx(F, ctx, dy):
    return dy


@register_grad_func("scatter_add", wrt="src", saves="index")
def scatter_add_dsrc(F, ctx, dy):
    return F.gather(dy, dim=ctx.dim, index=ctx.index)


@register_grad_func("scatter_prod", wrt="x", saves="index, src, x.edge")
def scatter_prod_dx(F, ctx, dy):
    factors = F.scatter_prod(F.ones_like(dy), ctx.index, ctx.src, dim=ctx.dim)
    return flat(F, dy * factors, ctx.x_edge)


@register_grad_func("scatter_prod", wrt="src", saves="x, index, src")
def scatter_prod_dsrc(F, ctx, dy):
    """Multiply, for each factor, the factors of its place before and after it: no division."""
    shape, count = ctx.index.shape, math.prod(ctx.index.shape)
    order, first, last = F.scatter_groups(ctx.index, dim=ctx.dim, shape=ctx.x.shape)
    factors = F.getitem_advanced(F.reshape(ctx.src, shape=(count,)), order, dims=(0,))
    before = _product_so_far(F, factors, first, 1)
    after = _product_so_far(F, factors, last, -1)
    others = F.getitem_advanced_grad(before * after, order, dims=(0,), shape=(count,))
    own = F.gather(dy * ctx.x, dim=ctx.dim, index=ctx.index)
    return own * F.reshape(others, shape=shape)


def _product_so_far(F, factors, begins, offset):
    """s_i = factors_{i - offset} s_{i - offset}, and 1 where a group begins."""
    previous = F.masked_fill(F.shift(factors, dim=0, offset=offset, fill=0), begins, value=0)
    ones = F.cast(begins, dtype=factors.dtype)
    return F.recurrence(previous, ones, dim=0, reverse=offset < 0)


def _scatter_extreme_grad(F, ctx, dy):
    """Each extremum's gradient is shared evenly among x and src where they equal it."""
    shares, shares_of_src = F.scatter_tie_weights(ctx.x, ctx.index, ctx.src, ctx.y, dim=ctx.dim)
    dx = dy * shares if ctx.needs_input_grad[0] else None
    if not ctx.needs_input_grad[2]:
        return dx, None, None
    return dx, None, F.gather(dy, dim=ctx.dim, index=ctx.index) * shares_of_src


register_grad_func("scatter_amax", saves="x, index, src, y")(_scatter_extreme_grad)
register_grad_func("scatter_amin", saves="x, index, src, y")(_scatter_extreme_grad)


@register_grad_func("scatter_tie_weights")
def scatter_tie_weights_grad(F, ctx, dx_shares, dsrc_shares):
    return None, None, None, None  # constant wherever it has a derivative


# --- Entries named by a vector of indices ---------------------------------------------------------


@register_grad_func("index_select", wrt="x", saves="index, x.shape")
def index_select_dx(F, ctx, dy):
    return F.getitem_advanced_grad(dy, ctx.index, dims=(ctx.dim,), shape=ctx.x_shape)


@register_grad_func("index_add", wrt="x")
def index_add_dx(F, ctx, dy):
    return dy


@register_grad_func("index_add", wrt="source", saves="index")
def index_add_dsource(F, ctx, dy):
    dsource = F.getitem_advanced(dy, ctx.index, dims=(ctx.dim,))
    return dsource if ctx.alpha == 1 else dsource * ctx.alpha


@register_grad_func("index_copy", wrt="x", saves="index")
def index_copy_dx(F, ctx, dy):
    return F.masked_fill(dy, F.index_mask(ctx.index, dim=ctx.dim, shape=dy.shape), value=0)


@register_grad_func("index_copy", wrt="source", saves="index")
def index_copy_dsource(F, ctx, dy):
    # A value that a later one overwrote is not in y: PyTorch gives it a gradient.
    gone = F.setitem_overwritten(ctx.index, dims=(ctx.dim,), shape=dy.shape)
    return F.masked_fill(F.getitem_advanced(dy, ctx.index, dims=(ctx.dim,)), gone, value=0)


piecewise_linear("scatter_amax", "scatter_amin")
