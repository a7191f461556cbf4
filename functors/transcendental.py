"""Exponentials and logarithms, circular and hyperbolic functions, for users."""

from __future__ import annotations

import functools

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.functors.declaring import domains as D
from oneflow_lite.functors.declaring.checks import real_floating_pair
from oneflow_lite.functors.declaring.declare import binary, functor, unary
from oneflow_lite.functors.operands import RealToFloatingOperands
from oneflow_lite.interpreter.dispatch import dispatch2, promote
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

_floating = functools.partial(unary, domain=D.Floating, twin="flow Tensor")
_special = functools.partial(_floating, on="flow Tensor special")
_error = functools.partial(_special, domain=D.RealToFloating)
_positive = functools.partial(_floating, samples="pos(2, 3)")
_inside = functools.partial(_floating, samples="unit(2, 3)")
_UNIT = "[0.0, 1.0] -> tensor"
_PAIRS = "x(2, 3), x(2, 3); x(2, 3), x(3)"

exp = _floating("exp", "Return e to the power of each element.", f"{_UNIT}([1.0000, 2.7183])")
_special("exp2", "Return 2 to the power of each element.")
_special("expm1", "Return exp(x) - 1 of each element x, with all its digits also near 0.")
_positive("log", "Return the natural logarithm of each element: -inf at 0, nan below it.")
_special(
    "log1p",
    "Return log(1 + x) of each element x, with all its digits also near 0.",
    samples="unit(2, 3); unit(3) * 0.1; pos(2, 3)",
)
_positive("log2", "Return the logarithm to base 2 of each element.")
_positive("log10", "Return the logarithm to base 10 of each element.")
sigmoid = _floating(
    "sigmoid",
    "Return the logistic function 1 / (1 + exp(-x)) of each element x.",
    f"{_UNIT}([0.5000, 0.7311])",
    on="flow Tensor functional special.expit",
)
_error("erf", "Return the error function, 2/√π times the integral of exp(-t²) from 0 to x.")
_error("erfc", "Return 1 - erf(x), with all its digits also for large x.")

sin = _floating("sin", "Return the sine of each element.", f"{_UNIT}([0.0000, 0.8415])")
_floating("cos", "Return the cosine of each element.")
_floating("tan", "Return the tangent of each element.")
_inside("asin", "Return the angle in [-π/2, π/2] with sine x; nan outside [-1, 1].", alias="arcsin")
_inside("acos", "Return the angle in [0, π] with cosine x; nan outside [-1, 1].", alias="arccos")
_floating("atan", "Return the angle in (-π/2, π/2) whose tangent is x.", alias="arctan")
_floating("sinh", "Return the hyperbolic sine of each element.")
_floating("cosh", "Return the hyperbolic cosine of each element.")
_floating("tanh", "Return the hyperbolic tangent of each element.", on="flow Tensor functional")
_floating("asinh", "Return the inverse hyperbolic sine of each element.", alias="arcsinh")
_floating(
    "acosh",
    "Return the inverse hyperbolic cosine of each element; nan below 1.",
    alias="arccosh",
    samples="pos(2, 3) + 1",
)
_inside("atanh", "Return the inverse hyperbolic tangent; nan outside [-1, 1].", alias="arctanh")
sinc = _special(
    "sinc",
    "Return sin(πx) / (πx) of each element x, and 1 at 0.",
    "[0.0, 0.5] -> tensor([1.0000, 0.6366])",
)
atan2 = binary(
    "atan2",
    "Return the angle in [-π, π] of the point whose ordinate is `input` and abscissa `other`.",
    "[1.0, -1.0] & [1.0, -1.0] -> tensor([ 0.7854, -2.3562])",
    domain=D.RealToFloatingPair,
    alias="arctan2",
    twin=True,
)
binary("hypot", "Return √(x² + y²) without overflow.", domain=D.RealFloatingPair, twin=True)


@functor("flow Tensor", out=True, samples=_PAIRS)
def logaddexp(input: D.AnyTensor, other: D.AnyTensor) -> Tensor:
    """Return log(exp(x) + exp(y)) without overflow.

    DTypeError: when neither is floating or complex.
    ShapeError: when the shapes do not broadcast.

    >>> flow.logaddexp(flow.tensor([0.0, 1000.0]), flow.tensor([0.0, 1000.0]))
    tensor([6.9315e-01, 1.0007e+03])
    """
    x, y = promote("logaddexp", input, other)
    if not x.is_complex():
        x, y = real_floating_pair("logaddexp", x, y)
        return dispatch2(op_expr("logaddexp"), x, y)
    first = F.real(x) >= F.real(y)  # so that exp, below, cannot overflow
    larger, smaller = F.where(first, x, y), F.where(first, y, x)
    return larger + F.log1p(exp(smaller - larger))


binary(
    "logaddexp2",
    "Return log2(2**x + 2**y) without overflow.",
    domain=D.RealFloatingPair,
    samples=_PAIRS,
)
xlogy = binary(
    "xlogy",
    "Return x log(y), which is 0 where x is 0 (unless y is nan).",
    "[0.0, 2.0] & [0.0, 3.0] -> tensor([0.0000, 2.1972])",
    domain=RealToFloatingOperands,
    on="flow Tensor special",
    twin="flow Tensor",
    spelled="self=input",
    samples="x(2, 3), pos(2, 3); x(2, 3), 2.5; 1.5, pos(3)",
)
