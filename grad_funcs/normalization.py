"""Gradients of layer, batch and root-mean-square normalization.

All rules come down to `standardize_grad`, the gradient of z = (x - mean) / √(var + eps). It takes z
and var as arguments of its own, so that its partial derivatives, and with them every order, follow.
"""

from math import prod

from oneflow_lite.autograd.gradient_rules import register_grad_func


def _dx(F, ctx, dz, dvariance, z, variance, centred=True):
    """Return the gradient of x for those of z and of the variance; either may be None."""
    dx, groups = None, ctx.groups
    if dz is not None:
        dx = F.standardize_grad(dz, z, variance, groups=groups, eps=ctx.eps, centred=centred)
    if dvariance is not None:
        # The variance is the mean square of z √(variance + eps).
        part = dvariance * F.sqrt(variance + ctx.eps) * (2 / _count(groups))
        dx = _sum(dx, _like(F, z, part * F.reshape(z, shape=groups)))
    return dx


def _count(groups):
    return max(1, prod(groups) // max(1, groups[-2]))


def _like(F, x, part):
    """Return a part of a gradient, seen as groups, as one of x; of halves it is float32."""
    return F.reshape(F.cast(part, dtype=x.dtype), shape=x.shape)


def _sum(a, b):
    if a is None or b is None:
        return b if a is None else a
    return a + b


@register_grad_func("standardize", saves="y0, y1", materialize=False)
def standardize_grad(F, ctx, dz, dvariance):
    return _dx(F, ctx, dz, dvariance, ctx.y0, ctx.y1)


def _affine_norm_grad(F, ctx, dy, dz, dvariance, dmean=None):
    dx, dweight, dbias = None, None, None
    z, variance, needs = ctx.y1, ctx.y2, ctx.needs_input_grad
    if dy is not None:
        attrs = {"groups": ctx.groups, "channels": ctx.channels, "eps": ctx.eps, "needs": needs}
        found = F.affine_norm_grad(dy, z, variance, ctx.weight, **attrs)
        dx, dweight, dbias = _at_their_places(needs, found)
    if needs[0]:
        dx = _sum(dx, _dx(F, ctx, dz, dvariance, z, variance))
        if dmean is not None:
            part = F.expand(dmean / _count(ctx.groups), shape=ctx.groups)
            dx = _sum(dx, _like(F, z, part))
    return dx, dweight, dbias


for _op in ("affine_norm", "batch_norm"):
    register_grad_func(_op, saves="weight, y1, y2", materialize=False)(_affine_norm_grad)


def _at_their_places(needs, found):
    """Return for each input its gradient, or None, where those that are needed were found."""
    found = iter(found if sum(needs) > 1 else (found,))
    return [next(found) if need else None for need in needs]


@register_grad_func("rms_norm", wrt="x", saves="weight, y1, y2", materialize=False)
def rms_norm_dx(F, ctx, dy, dz, dsquare):
    if dy is not None and ctx.weight is not None:
        rows = F.reshape(dy, shape=ctx.groups) * ctx.weight
        dy = F.reshape(rows, shape=dy.shape)
    return _dx(F, ctx, _sum(dy, dz), dsquare, ctx.y1, ctx.y2, centred=False)


@register_grad_func("rms_norm", wrt="weight", saves="y1", materialize=False)
def rms_norm_dweight(F, ctx, dy, dz, dsquare):
    return None if dy is None else F.reshape(dy * ctx.y1, shape=ctx.groups)


# The gradients' own gradients: they are linear in dy, and that of x is symmetric.


@register_grad_func("standardize_grad", wrt="dy", saves="z, variance")
def standardize_grad_ddy(F, ctx, d):
    attrs = {"groups": ctx.groups, "eps": ctx.eps, "centred": ctx.centred}
    return F.standardize_grad(d, ctx.z, ctx.variance, **attrs)


@register_grad_func("standardize_grad", wrt="z", saves="dy, z, variance")
def standardize_grad_dz(F, ctx, d):
    return _by_z(F, ctx, d, ctx.dy, ctx.z, ctx.variance)


def _by_z(F, ctx, d, dy, z, variance):
    d, dy, folded = [F.reshape(each, shape=ctx.groups) for each in (d, dy, z)]
    by_d = dy * _mean(F, d * folded)
    by_dy = d * _mean(F, dy * folded)
    return _like(F, z, -(by_d + by_dy) * F.rsqrt(variance + ctx.eps))


def _mean(F, x):
    """Return means (B, 1) of (B, P) or (A, B, P)."""
    x = F.mean(x, dim=(x.ndim - 1,), keepdim=True)
    return x if x.ndim == 2 else F.mean(x, dim=(0,), keepdim=False)


@register_grad_func("standardize_grad", wrt="variance", saves="variance, y")
def standardize_grad_dvariance(F, ctx, d):
    return _by_variance(F, ctx, d, ctx.y, ctx.variance)


def _by_variance(F, ctx, d, dx, variance):
    return F.reshape(d * dx, shape=ctx.groups) * (-0.5 / (variance + ctx.eps))


@register_grad_func("affine_norm_grad", saves="dy, z, variance, weight", materialize=False)
def affine_norm_grad_grads(F, ctx, *given):
    dx, dweight, dbias = _at_their_places(ctx.needs, given if len(given) > 1 else given[0])
    dy, z, variance, weight, channels = ctx.dy, ctx.z, ctx.variance, ctx.weight, ctx.channels

    def scaled(x, scale):
        """Return x times a number for each channel."""
        if scale is None:
            return x
        column = scale if len(channels) == 2 else F.unsqueeze(scale, dim=1)
        return F.reshape(F.reshape(x, shape=channels) * column, shape=x.shape)

    ddy = dz = dvariance = dscale = None
    if dx is not None:
        attrs = {"groups": ctx.groups, "eps": ctx.eps, "centred": True}
        back = F.standardize_grad(dx, z, variance, **attrs)
        ddy, dz = scaled(back, weight), _by_z(F, ctx, dx, scaled(dy, weight), z, variance)
        dvariance = _by_variance(F, ctx, scaled(dy, weight), back, variance)
        if ctx.needs_input_grad[3]:
            dscale = F.reshape(dy * back, shape=channels)
            dims = (0,) if len(channels) == 2 else (0, 2)
            dscale = F.sum(dscale, dim=dims, keepdim=False)
    if dweight is not None:
        ddy, dz = _sum(ddy, scaled(z, dweight)), _sum(dz, scaled(dy, dweight))
    if dbias is not None:
        ddy = _sum(ddy, scaled(F.ones_like(z), dbias))
    return ddy, dz, dvariance, dscale
