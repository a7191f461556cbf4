"""Gradients of layer, batch and root-mean-square normalization.

All rules come down to `standardize_grad`, the gradient of z = (x - mean) / √(var + eps). It takes z
and var as arguments of its own, so that its partial derivatives, and with them every order, follow.
"""

from math import prod

from oneflow_lite.autograd.grad_function import register_grad_func


def _dx(F, ctx, dz, dvariance, z, variance, centred=True):
    """Return the gradient of x for those of z and of the variance; either may be None."""
    dx = None
    if dz is not None:
        dx = F.standardize_grad(dz, z, variance, dim=ctx.dim, eps=ctx.eps, centred=centred)
    if dvariance is not None:
        # The variance is the mean square of z √(variance + eps).
        part = dvariance * F.sqrt(variance + ctx.eps) * z * (2 / _count(ctx, z))
        dx = _sum(dx, F.cast(part, dtype=z.dtype))  # for halves the variance is float32
    return dx


def _count(ctx, z):
    return max(1, prod(z.shape[d] for d in ctx.dim))


def _sum(a, b):
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _scaled(dy, weight):
    return dy if dy is None or weight is None else dy * weight


@register_grad_func("standardize", saves="y0, y1", materialize=False)
def standardize_grad(F, ctx, dz, dvariance):
    return _dx(F, ctx, dz, dvariance, ctx.y0, ctx.y1)


@register_grad_func("layer_norm", saves="weight, y1, y2", materialize=False)
def layer_norm_grad(F, ctx, dy, dz, dvariance):
    dx = dweight = None
    if ctx.needs_input_grad[0]:
        dz = _sum(_scaled(dy, ctx.weight), dz)
        dx = _dx(F, ctx, dz, dvariance, ctx.y1, ctx.y2)
    if ctx.needs_input_grad[1] and dy is not None:
        dweight = dy * ctx.y1
    return dx, dweight, dy


@register_grad_func("rms_norm", wrt="x", saves="weight, y1, y2", materialize=False)
def rms_norm_dx(F, ctx, dy, dz, dsquare):
    dz = _sum(_scaled(dy, ctx.weight), dz)
    return _dx(F, ctx, dz, dsquare, ctx.y1, ctx.y2, centred=False)


@register_grad_func("rms_norm", wrt="weight", saves="y1", materialize=False)
def rms_norm_dweight(F, ctx, dy, dz, dsquare):
    return None if dy is None else dy * ctx.y1


@register_grad_func("batch_norm", saves="weight, y1, y2", materialize=False)
def batch_norm_grad(F, ctx, dy, dz, dvariance, dmean):
    dx = dweight = dbias = None
    if ctx.needs_input_grad[0]:
        weight = ctx.weight
        if weight is not None:
            weight = F.reshape(weight, shape=(-1,) + (1,) * (len(ctx.dim) - 1))
        dz = _sum(_scaled(dy, weight), dz)
        dx = _dx(F, ctx, dz, dvariance, ctx.y1, ctx.y2)
        if dmean is not None:
            part = F.expand(dmean / _count(ctx, ctx.y1), shape=ctx.y1.shape)
            dx = _sum(dx, F.cast(part, dtype=ctx.y1.dtype))
    if ctx.needs_input_grad[1] and dy is not None:
        dweight = F.sum(dy * ctx.y1, dim=ctx.dim, keepdim=False)
    if ctx.needs_input_grad[2] and dy is not None:
        dbias = F.sum(dy, dim=ctx.dim, keepdim=False)
    return dx, dweight, dbias


# The gradient's own gradient: it is linear and symmetric in dy.


@register_grad_func("standardize_grad", wrt="dy", saves="z, variance")
def standardize_grad_ddy(F, ctx, d):
    return F.standardize_grad(d, ctx.z, ctx.variance, dim=ctx.dim, eps=ctx.eps, centred=ctx.centred)


@register_grad_func("standardize_grad", wrt="z", saves="dy, z, variance")
def standardize_grad_dz(F, ctx, d):
    by_d = ctx.dy * F.mean(d * ctx.z, dim=ctx.dim, keepdim=True)
    by_dy = d * F.mean(ctx.dy * ctx.z, dim=ctx.dim, keepdim=True)
    return F.cast(-(by_d + by_dy) * F.rsqrt(ctx.variance + ctx.eps), dtype=ctx.z.dtype)


@register_grad_func("standardize_grad", wrt="variance", saves="variance, y")
def standardize_grad_dvariance(F, ctx, d):
    return d * ctx.y * (-0.5 / (ctx.variance + ctx.eps))
