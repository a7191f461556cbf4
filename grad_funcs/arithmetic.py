"""Gradients of arithmetic. Broadcasting is undone by the engine, never here."""

from oneflow_lite.autograd.rules.forward_rules import (
    piecewise_linear,
    register_parts,
    register_taylor,
)
from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.autograd.rules.zero import ZERO
from oneflow_lite.tensors.mode import is_grad_enabled


def flat(F, dx, edge):
    """Return the gradient of an input at an edge, as a function of that input with derivative zero.

    A rule of an op that is linear, or made of linear pieces, reads no input. PyTorch's nodes save
    the input all the same, and give zeros for it.
    """
    if not is_grad_enabled() or edge[0] is None:
        return dx
    stand_in = dx.detach()  # of the right shape and dtype, without memory
    stand_in._edge = edge
    return F.flat_in(dx, stand_in)


@register_grad_func("flat_in")
def flat_in_grad(F, ctx, dy):
    return dy, ZERO


@register_grad_func("add", wrt="x")
def add_dx(F, ctx, dz):
    return dz


@register_grad_func("add", wrt="y")
def add_dy(F, ctx, dz):
    return dz


@register_grad_func("sub", wrt="x")
def sub_dx(F, ctx, dz):
    return dz


@register_grad_func("sub", wrt="y")
def sub_dy(F, ctx, dz):
    return -dz


@register_grad_func("mul", wrt="x", saves="y")
def mul_dx(F, ctx, dz):
    return dz * ctx.y


@register_grad_func("mul", wrt="y", saves="x")
def mul_dy(F, ctx, dz):
    return dz * ctx.x


@register_grad_func("mul_scalar")
def mul_scalar_dx(F, ctx, dy):
    return F.mul_scalar(dy, factor=ctx.factor)


@register_grad_func("div", wrt="x", saves="y")
def div_dx(F, ctx, dz):
    return dz / ctx.y


@register_grad_func("div", wrt="y", saves="x, y")
def div_dy(F, ctx, dz):
    return -dz * ((ctx.x / ctx.y) / ctx.y)  # x / y² overflows where the quotients do not


@register_grad_func("floor_divide", wrt="x")
def floor_divide_dx(F, ctx, dz):
    return ZERO


@register_grad_func("floor_divide", wrt="y")
def floor_divide_dy(F, ctx, dz):
    return ZERO


@register_grad_func("div_trunc", wrt="x")
def div_trunc_dx(F, ctx, dz):
    return ZERO


@register_grad_func("div_trunc", wrt="y")
def div_trunc_dy(F, ctx, dz):
    return ZERO


@register_grad_func("pow", wrt="x", saves="x, y")
def pow_dx(F, ctx, dz):
    # y x^(y-1), and 0 where y = 0. There the exponent is 0, so that no inf at x = 0 meets a 0.
    constant = ctx.y == 0
    power = F.pow(ctx.x, F.where(constant, 0.0, ctx.y - 1))
    return F.where(constant, 0.0, dz * (ctx.y * power))


@register_grad_func("pow", wrt="y", saves="x, y, out")
def pow_dy(F, ctx, dz):
    return F.pow_grad_exponent(dz, ctx.x, ctx.y, ctx.out)


@register_grad_func("pow_grad_exponent", wrt="dz", saves="x, y, z")
def pow_grad_exponent_ddz(F, ctx, d):
    return F.pow_grad_exponent(d, ctx.x, ctx.y, ctx.z)


@register_grad_func("pow_grad_exponent", wrt="x", saves="dz, x, y")
def pow_grad_exponent_dx(F, ctx, d):
    # z / x, the derivative of z log x with z held fixed: the rule of z has the rest
    return d * ctx.dz * F.pow(ctx.x, ctx.y - 1)


@register_grad_func("pow_grad_exponent", wrt="y")
def pow_grad_exponent_dy(F, ctx, d):
    return None


@register_grad_func("pow_grad_exponent", wrt="z", saves="dz, x")
def pow_grad_exponent_dz(F, ctx, d):
    return F.where(ctx.x == 0, 0.0, d * ctx.dz * F.log(F.where(ctx.x == 0, 1.0, ctx.x)))


@register_grad_func("neg")
def neg_grad(F, ctx, dy):
    return -dy


@register_grad_func("abs", saves="x")
def abs_grad(F, ctx, dy):
    return dy * F.sgn(ctx.x)


@register_grad_func("sign")
def sign_grad(F, ctx, dy):
    return ZERO


@register_grad_func("square", saves="x")
def square_grad(F, ctx, dy):
    return dy * ctx.x * 2


@register_grad_func("sqrt", saves="y")
def sqrt_grad(F, ctx, dy):
    return dy / (ctx.y * 2)


@register_grad_func("rsqrt", saves="y")
def rsqrt_grad(F, ctx, dy):
    return dy * -0.5 * (ctx.y * ctx.y * ctx.y)


@register_grad_func("reciprocal", saves="y")
def reciprocal_grad(F, ctx, dy):
    return -dy * (ctx.y * ctx.y)


@register_grad_func("floor")
def floor_grad(F, ctx, dy):
    return ZERO


@register_grad_func("ceil")
def ceil_grad(F, ctx, dy):
    return ZERO


@register_grad_func("trunc")
def trunc_grad(F, ctx, dy):
    return ZERO


@register_grad_func("round")
def round_grad(F, ctx, dy):
    return ZERO


@register_grad_func("frac")
def frac_grad(F, ctx, dy):
    return dy


@register_grad_func("fmod", wrt="x")
def fmod_dx(F, ctx, dz):
    return dz


@register_grad_func("fmod", wrt="y", saves="x, y")
def fmod_dy(F, ctx, dz):
    return -dz * F.div_trunc(ctx.x, ctx.y)


@register_grad_func("remainder", wrt="x")
def remainder_dx(F, ctx, dz):
    return dz


@register_grad_func("remainder", wrt="y", saves="x, y")
def remainder_dy(F, ctx, dz):
    return -dz * F.floor_divide(ctx.x, ctx.y)


@register_grad_func("maximum", wrt="x", saves="x, y")
def maximum_dx(F, ctx, dz):
    return F.extreme_grad(dz, ctx.x, ctx.y, largest=True)


@register_grad_func("maximum", wrt="y", saves="x, y")
def maximum_dy(F, ctx, dz):
    return F.extreme_grad(dz, ctx.y, ctx.x, largest=True)


@register_grad_func("minimum", wrt="x", saves="x, y")
def minimum_dx(F, ctx, dz):
    return F.extreme_grad(dz, ctx.x, ctx.y, largest=False)


@register_grad_func("minimum", wrt="y", saves="x, y")
def minimum_dy(F, ctx, dz):
    return F.extreme_grad(dz, ctx.y, ctx.x, largest=False)


# fmax and fmin give a tie to the first argument, as PyTorch; a number wins over nan.


@register_grad_func("fmax", wrt="x", saves="x, y")
def fmax_dx(F, ctx, dz):
    return F.where((ctx.x >= ctx.y) | F.isnan(ctx.y), dz, 0.0)


@register_grad_func("fmax", wrt="y", saves="x, y")
def fmax_dy(F, ctx, dz):
    return F.where((ctx.x >= ctx.y) | F.isnan(ctx.y), 0.0, dz)


@register_grad_func("fmin", wrt="x", saves="x, y")
def fmin_dx(F, ctx, dz):
    return F.where((ctx.x <= ctx.y) | F.isnan(ctx.y), dz, 0.0)


@register_grad_func("fmin", wrt="y", saves="x, y")
def fmin_dy(F, ctx, dz):
    return F.where((ctx.x <= ctx.y) | F.isnan(ctx.y), 0.0, dz)


@register_grad_func("copysign", wrt="x", saves="x, out")
def copysign_dx(F, ctx, dz):
    return dz * (F.sign(ctx.x) * F.sign(ctx.out))


@register_grad_func("copysign", wrt="y")
def copysign_dy(F, ctx, dz):
    return ZERO


@register_grad_func("nextafter", wrt="x", saves="x, y")
def nextafter_dx(F, ctx, dz):
    return dz * F.cast(ctx.x != ctx.y, dtype=dz.dtype)


@register_grad_func("nextafter", wrt="y")
def nextafter_dy(F, ctx, dz):
    return ZERO


@register_grad_func("frexp", saves="y1")
def frexp_grad(F, ctx, dmantissa, dexponent):
    # mantissa = x 2^-exponent, where the exponent is constant almost everywhere
    return dmantissa * F.exp2(-F.cast(ctx.y1, dtype=dmantissa.dtype))


@register_grad_func("extreme_grad", wrt="dz", saves="x, y")
def extreme_grad_ddz(F, ctx, d):
    return F.extreme_grad(d, ctx.x, ctx.y, largest=ctx.largest)


@register_grad_func("extreme_grad", wrt="x")
def extreme_grad_dx(F, ctx, d):
    return None


@register_grad_func("extreme_grad", wrt="y")
def extreme_grad_dy(F, ctx, d):
    return None


@register_grad_func("clamp_min", wrt="x", saves="x, low")
def clamp_min_dx(F, ctx, dy):
    return F.mask_less(dy, ctx.low, ctx.x, equal=True)


@register_grad_func("clamp_min", wrt="low", saves="x, low")
def clamp_min_dlow(F, ctx, dy):
    return F.mask_less(dy, ctx.x, ctx.low, equal=False)


@register_grad_func("clamp_max", wrt="x", saves="x, high")
def clamp_max_dx(F, ctx, dy):
    return F.mask_less(dy, ctx.x, ctx.high, equal=True)


@register_grad_func("clamp_max", wrt="high", saves="x, high")
def clamp_max_dhigh(F, ctx, dy):
    return F.mask_less(dy, ctx.high, ctx.x, equal=False)


@register_grad_func("clamp", wrt="x", saves="x, low, high")
def clamp_dx(F, ctx, dy):
    inside = F.mask_less(dy, ctx.low, ctx.x, equal=True)
    return F.mask_less(inside, ctx.x, ctx.high, equal=True)


@register_grad_func("clamp", wrt="low", saves="x, low, high")
def clamp_dlow(F, ctx, dy):
    below = F.mask_less(dy, ctx.x, ctx.low, equal=False)
    return F.mask_less(below, ctx.low, ctx.high, equal=False)


@register_grad_func("clamp", wrt="high", saves="x, low, high")
def clamp_dhigh(F, ctx, dy):
    return F.mask_less(dy, ctx.high, F.maximum(ctx.x, ctx.low), equal=False)


@register_grad_func("mask_less", saves="x, y")
def mask_less_grad(F, ctx, d):
    return F.mask_less(d, ctx.x, ctx.y, equal=ctx.equal), None, None


@register_grad_func("where", wrt="x", saves="condition")
def where_dx(F, ctx, dz):
    return F.where(ctx.condition, dz, 0.0)


@register_grad_func("where", wrt="y", saves="condition")
def where_dy(F, ctx, dz):
    return F.where(ctx.condition, 0.0, dz)


@register_grad_func("lerp", wrt="x", saves="weight")
def lerp_dx(F, ctx, dz):
    return dz * (1 - ctx.weight)


@register_grad_func("lerp", wrt="end", saves="weight")
def lerp_dend(F, ctx, dz):
    return dz * ctx.weight


@register_grad_func("lerp", wrt="weight", saves="x, end")
def lerp_dweight(F, ctx, dz):
    return dz * (ctx.end - ctx.x)


@register_grad_func("nan_to_num", saves="x")
def nan_to_num_grad(F, ctx, dy):
    return F.mask_finite(dy, ctx.x)


@register_grad_func("mask_finite", saves="x")
def mask_finite_grad(F, ctx, d):
    return F.mask_finite(d, ctx.x), None


# --- Forward mode and series ----------------------------------------------------------------------

piecewise_linear(
    *"abs sign floor ceil trunc round frac floor_divide div_trunc fmod remainder".split(),
    *"maximum minimum fmax fmin copysign nextafter extreme_grad clamp clamp_min clamp_max".split(),
    *"mask_less nan_to_num mask_finite".split(),
)


@register_taylor("div")
def div_series(F, z, x, y):
    """z y = x: z_k = (x_k - Σ_{j>0} y_j z_{k-j}) / y_0."""
    made = [z]
    for k in range(1, len(x)):
        rest = x[k]
        for j in range(1, k + 1):
            if y[j] is not None and made[k - j] is not None:
                product = y[j] * made[k - j]
                rest = -product if rest is None else rest - product
        made.append(None if rest is None else rest / y[0])
    return made


@register_taylor("pow")
def pow_series(F, z, x, y):
    """x z' = y x' z for a constant y; else z = exp(y log x).

    A small whole power is a product: the recurrence divides by x.
    """
    if any(c is not None for c in y[1:]):
        return NotImplemented
    whole = _whole_number(y[0])
    if whole is not None:
        return _power(whole, x, z)
    made = [z]
    for k in range(1, len(x)):
        total = None
        for j in range(1, k + 1):
            if x[j] is not None and made[k - j] is not None:
                term = (y[0] * j - (k - j)) * x[j] * made[k - j]
                total = term if total is None else total + term
        made.append(None if total is None else total / (x[0] * k))
    return made


def _whole_number(y):
    """Return a 0-d exponent that is a small whole number; else None."""
    if y.ndim or getattr(y._data, "levels", None) or getattr(y._data, "is_symbolic", False):
        return None
    value = y._data.item()
    small = value in (0, 1, 2, 3, 4, 5, 6, 7, 8)
    return int(value.real) if small else None


def _power(n, x, z):
    if n == 0:
        return [z] + [None] * (len(x) - 1)
    made = x
    for _ in range(n - 1):
        made = _convolved(made, x)
    return [z, *made[1:]]


def _convolved(a, b):
    return [coefficient(a, b, k) for k in range(len(a))]


def coefficient(a, b, k):
    """Return coefficient k of the product of two series, Σ a_j b_{k-j}; None is zero."""
    total = None
    for j in range(k + 1):
        if a[j] is not None and b[k - j] is not None:
            term = a[j] * b[k - j]
            total = term if total is None else total + term
    return total


@register_parts("pow")
def pow_parts(F, x, y):
    return F.exp(y * F.log(x))


@register_parts("pow_grad_exponent")
def pow_grad_exponent_parts(F, dz, x, y, z):
    flat = (x == 0) & (F.real(y) >= 0 if y.is_complex() else y >= 0)
    return dz * F.where(flat, 0.0, z * F.log(F.where(flat, 1.0, x)))


@register_taylor("sqrt")
def sqrt_series(F, y, x):
    """y² = x: y_k = (x_k - Σ_{0<j<k} y_j y_{k-j}) / 2 y_0."""
    made = [y]
    for k in range(1, len(x)):
        rest = x[k]
        for j in range(1, k):
            if made[j] is not None and made[k - j] is not None:
                term = made[j] * made[k - j]
                rest = -term if rest is None else rest - term
        made.append(None if rest is None else rest / (y * 2))
    return made


@register_parts("safe_divide")
def safe_divide_parts(F, x, y):
    zero = y == 0
    return F.where(zero, 0.0, x / F.where(zero, 1.0, y))
