"""Gradients of random ops: 0, but implicit gradients of gamma and Dirichlet numbers."""

from oneflow_lite.autograd.rules.forward_rules import dense_jacobian
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.autograd.rules.zero import ZERO


@register_grad_func("dropout_mask")
def dropout_mask_grad(F, ctx, dy):
    return None


@register_grad_func("bernoulli")
def bernoulli_grad(F, ctx, dy):
    return ZERO


@register_grad_func("poisson")
def poisson_grad(F, ctx, dy):
    return ZERO


# A draw with distribution function F and density f moves with a parameter a by -(∂F/∂a) / f;
# Figurnov, Mohamed and Mnih, Implicit Reparameterization Gradients, 2018. ∂F/∂a is an integral of
# f ∂(log f)/∂a over one tail, and so are the derivatives of that integral.


@register_grad_func("_standard_gamma", saves="x, y")
def standard_gamma_grad(F, ctx, dy):
    return dy * F.gamma_slope(ctx.x, ctx.y)


@register_grad_func("gamma_slope", wrt="a", saves="a, z")
def gamma_slope_da(F, ctx, dy):
    a, z = ctx.a, ctx.z
    shift, change = F.log(z) - F.digamma(a), F.polygamma_n(a, n=1)
    first, second, third = (F.gamma_tail(a, z, n=n) for n in range(3))
    return dy * (change * first - shift * second - third)


@register_grad_func("gamma_slope", wrt="z", saves="a, z, y")
def gamma_slope_dz(F, ctx, dy):
    a, z = ctx.a, ctx.z
    return dy * ((1 - (a - 1) / z) * ctx.y - F.log(z) + F.digamma(a))


@register_grad_func("gamma_tail", wrt="a", saves="a, z")
def gamma_tail_da(F, ctx, dy):
    return dy * F.gamma_tail(ctx.a, ctx.z, n=ctx.n + 1)


@register_grad_func("gamma_tail", wrt="z", saves="a, z, y")
def gamma_tail_dz(F, ctx, dy):
    a, z, n = ctx.a, ctx.z, ctx.n
    before = F.gamma_tail(a, z, n=n - 1) * -n / z if n else 1
    return dy * ((1 - (a - 1) / z) * ctx.y + before)


dense_jacobian("_sample_dirichlet")


@register_grad_func("_sample_dirichlet", saves="x, y")
def sample_dirichlet_grad(F, ctx, dy):
    # Each share is a Beta number of its concentration and the sum of the rest. When it moves, the
    # rest gives way in proportion.
    a, x = ctx.x, ctx.y
    slope = F.beta_slope(a, F.sum(a, dim=(-1,), keepdim=True) - a, x)
    return (dy - F.sum(x * dy, dim=(-1,), keepdim=True)) * slope / (1 - x)


@register_grad_func("beta_slope", wrt="a", saves="a, b, x")
def beta_slope_da(F, ctx, dy):
    a, b, x = ctx.a, ctx.b, ctx.x
    shift = F.log(x) - F.digamma(a) + F.digamma(a + b)
    change = F.polygamma_n(a, n=1) - F.polygamma_n(a + b, n=1)
    first, second, third = (F.beta_tail(a, b, x, n=n, m=0) for n in range(3))
    return dy * (change * first - shift * second - third)


@register_grad_func("beta_slope", wrt="b", saves="a, b, x")
def beta_slope_db(F, ctx, dy):
    a, b, x = ctx.a, ctx.b, ctx.x
    shift = F.log(x) - F.digamma(a) + F.digamma(a + b)
    inner = F.polygamma_n(a + b, n=1) * F.beta_tail(a, b, x, n=0, m=0)
    inner = inner + shift * F.beta_tail(a, b, x, n=0, m=1) + F.beta_tail(a, b, x, n=1, m=1)
    return -(dy * inner)


@register_grad_func("beta_slope", wrt="x", saves="a, b, x, y")
def beta_slope_dx(F, ctx, dy):
    a, b, x = ctx.a, ctx.b, ctx.x
    shift = F.log(x) - F.digamma(a) + F.digamma(a + b)
    return dy * (((b - 1) / (1 - x) - (a - 1) / x) * ctx.y - shift)


@register_grad_func("beta_tail", wrt="a", saves="a, b, x")
def beta_tail_da(F, ctx, dy):
    return dy * F.beta_tail(ctx.a, ctx.b, ctx.x, n=ctx.n + 1, m=ctx.m)


@register_grad_func("beta_tail", wrt="b", saves="a, b, x")
def beta_tail_db(F, ctx, dy):
    return dy * F.beta_tail(ctx.a, ctx.b, ctx.x, n=ctx.n, m=ctx.m + 1)


@register_grad_func("beta_tail", wrt="x", saves="a, b, x, y")
def beta_tail_dx(F, ctx, dy):
    a, b, x, n, m = ctx.a, ctx.b, ctx.x, ctx.n, ctx.m
    slope = ((b - 1) / (1 - x) - (a - 1) / x) * ctx.y + (0 if n or m else 1)
    if n:
        slope = slope - F.beta_tail(a, b, x, n=n - 1, m=m) * n / x
    if m:
        slope = slope + F.beta_tail(a, b, x, n=n, m=m - 1) * m / (1 - x)
    return dy * slope


@register_grad_func("normal")
def normal_of_grad(F, ctx, dy):
    return ZERO, ZERO


def _written(F, ctx, dy):
    return ZERO


for _name in """uniform_ normal_ bernoulli_ random_ exponential_ geometric_ log_normal_
    cauchy_""".split():
    register_grad_func(_name)(_written)
