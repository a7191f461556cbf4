"""Gradients of layer, batch and root-mean-square normalization.

All rules come down to `standardize_grad`, the gradient of z = (x - mean) rstd. It takes z and rstd
as arguments of its own, so that its partial derivatives, and with them every order, follow.
"""

from math import prod

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.grad_funcs.needed import added, at_their_places


def _dx(F, ctx, dz, drstd, z, rstd, centred=True):
    """Return the gradient of x for the gradients of z and of rstd; either may be None."""
    dx, groups = None, ctx.groups
    if dz is not None:
        dx = F.standardize_grad(dz, z, rstd, groups=groups, centred=centred)
    if drstd is not None:  # 1 / rstd² is eps and the mean square of z / rstd
        part = drstd * rstd * rstd * (-1 / _count(groups))
        dx = added(dx, _like(F, z, part * F.reshape(z, shape=groups)))
    return dx


def _count(groups):
    return max(1, prod(groups) // max(1, groups[-2]))


def _like(F, x, part):
    """Return a part of a gradient, in groups and float32 for halves, in x's shape and dtype."""
    return F.reshape(F.cast(part, dtype=x.dtype), shape=x.shape)


@register_grad_func("standardize", saves="y0, y1", materialize=False)
def standardize_grad(F, ctx, dz, drstd):
    return _dx(F, ctx, dz, drstd, ctx.y0, ctx.y1)


@register_grad_func("affine_norm", saves="weight, y1, y2", materialize=False)
def affine_norm_grad(F, ctx, dy, dz, drstd):
    z, rstd, needs = ctx.y1, ctx.y2, ctx.needs_input_grad
    dx = dweight = dbias = None
    if dy is not None:
        attrs = {"groups": ctx.groups, "channels": ctx.channels, "needs": needs}
        gradients = F.affine_norm_grad(dy, z, rstd, ctx.weight, **attrs)
        dx, dweight, dbias = at_their_places(needs, gradients)
    if needs[0] and (dz is not None or drstd is not None):
        dx = added(dx, _dx(F, ctx, dz, drstd, z, rstd))
    return dx, dweight, dbias


@register_grad_func("batch_norm", saves="weight, y1, y2", materialize=False)
def batch_norm_grad(F, ctx, dy, dz, drstd, dvariance, dmean):
    dx, dweight, dbias = affine_norm_grad(F, ctx, dy, dz, drstd)
    if ctx.needs_input_grad[0]:
        z, groups, count = ctx.y1, ctx.groups, _count(ctx.groups)
        if dvariance is not None:  # the variance is the mean square of z / rstd
            part = dvariance / ctx.y2 * (2 / count)
            dx = added(dx, _like(F, z, part * F.reshape(z, shape=groups)))
        if dmean is not None:
            dx = added(dx, _like(F, z, F.expand(dmean / count, shape=groups)))
    return dx, dweight, dbias


@register_grad_func("rms_norm", wrt="x", saves="weight, y1, y2", materialize=False)
def rms_norm_dx(F, ctx, dy, dz, drstd):
    if dy is not None and ctx.weight is not None:
        rows = F.reshape(dy, shape=ctx.groups) * ctx.weight
        dy = F.reshape(rows, shape=dy.shape)
    return _dx(F, ctx, added(dy, dz), drstd, ctx.y1, ctx.y2, centred=False)


@register_grad_func("rms_norm", wrt="weight", saves="y1", materialize=False)
def rms_norm_dweight(F, ctx, dy, dz, drstd):
    return None if dy is None else F.reshape(dy * ctx.y1, shape=ctx.groups)


# Second derivatives: a gradient is linear in dy, and standardize_grad is a symmetric map of dy.


@register_grad_func("standardize_grad", wrt="dy", saves="z, rstd")
def standardize_grad_ddy(F, ctx, d):
    return F.standardize_grad(d, ctx.z, ctx.rstd, groups=ctx.groups, centred=ctx.centred)


@register_grad_func("standardize_grad", wrt="z", saves="dy, z, rstd")
def standardize_grad_dz(F, ctx, d):
    return _by_z(F, ctx, d, ctx.dy, ctx.z, ctx.rstd)


def _by_z(F, ctx, d, dy, z, rstd):
    d, dy, folded = [F.reshape(each, shape=ctx.groups) for each in (d, dy, z)]
    by_d = dy * _mean(F, d * folded)
    by_dy = d * _mean(F, dy * folded)
    return _like(F, z, -(by_d + by_dy) * rstd)


def _mean(F, x):
    """Return means (B, 1) of (B, P) or (A, B, P)."""
    x = F.mean(x, dim=(x.ndim - 1,), keepdim=True)
    return x if x.ndim == 2 else F.mean(x, dim=(0,), keepdim=False)


@register_grad_func("standardize_grad", wrt="rstd", saves="rstd, y")
def standardize_grad_drstd(F, ctx, d):
    return F.reshape(d * ctx.y, shape=ctx.groups) / ctx.rstd


@register_grad_func("affine_norm_grad", saves="dy, z, rstd, weight", materialize=False)
def affine_norm_grad_grads(F, ctx, *given):
    dx, dweight, dbias = at_their_places(ctx.needs, given if len(given) > 1 else given[0])
    dy, z, rstd, weight, channels = ctx.dy, ctx.z, ctx.rstd, ctx.weight, ctx.channels

    def scaled(x, scale):
        """Return x times a number for each channel."""
        if scale is None:
            return x
        column = scale if len(channels) == 2 else F.unsqueeze(scale, dim=1)
        return F.reshape(F.reshape(x, shape=channels) * column, shape=x.shape)

    ddy = dz = drstd = dscale = None
    if dx is not None:
        back = F.standardize_grad(dx, z, rstd, groups=ctx.groups, centred=True)
        ddy, dz = scaled(back, weight), _by_z(F, ctx, dx, scaled(dy, weight), z, rstd)
        drstd = F.reshape(scaled(dy, weight) * back, shape=ctx.groups) / rstd
        if ctx.needs_input_grad[3]:
            dscale = F.reshape(dy * back, shape=channels)
            dims = (0,) if len(channels) == 2 else (0, 2)
            dscale = F.sum(dscale, dim=dims, keepdim=False)
    if dweight is not None:
        ddy, dz = added(ddy, scaled(z, dweight)), added(dz, scaled(dy, dweight))
    if dbias is not None:
        ddy = added(ddy, scaled(F.ones_like(z), dbias))
    return ddy, dz, drstd, dscale
