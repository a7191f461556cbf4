"""Exponentials, logarithms and what is made of them: what users call."""

from __future__ import annotations

import functools

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.functors.checks import real_floating_pair
from oneflow_lite.functors.declare import binary, functor, unary
from oneflow_lite.functors.domains import AnyTensor, Floating, RealFloatingPair, RealToFloating
from oneflow_lite.functors.operands import RealToFloatingOperands
from oneflow_lite.interpreter import dispatch2, promote
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

_floating = functools.partial(unary, domain=Floating, twin="flow Tensor")
_special = functools.partial(_floating, on="flow Tensor special")
_error = functools.partial(_special, domain=RealToFloating)
_log = functools.partial(_floating, samples="pos(2, 3)")
_UNIT = "[0.0, 1.0] -> tensor"

exp = _floating("exp", "Return e to the power of each element.", f"{_UNIT}([1.0000, 2.7183])")
exp2 = _special("exp2", "Return 2 to the power of each element.")
expm1 = _special("expm1", "Return exp(x) - 1 of each element x, with all its digits also near 0.")
log = _log("log", "Return the natural logarithm of each element: -inf at 0, nan below it.")
log1p = _special(
    "log1p",
    "Return log(1 + x) of each element x, with all its digits also near 0.",
    samples="unit(2, 3); unit(3) * 0.1; pos(2, 3)",
)
log2 = _log("log2", "Return the logarithm to base 2 of each element.")
log10 = _log("log10", "Return the logarithm to base 10 of each element.")
tanh = _floating(
    "tanh", "Return the hyperbolic tangent of each element.", on="flow Tensor functional"
)
sigmoid = _floating(
    "sigmoid",
    "Return the logistic function 1 / (1 + exp(-x)) of each element x.",
    f"{_UNIT}([0.5000, 0.7311])",
    on="flow Tensor functional special.expit",
)
erf = _error("erf", "Return the error function, 2/√π times the integral of exp(-t²) from 0 to x.")
erfc = _error("erfc", "Return 1 - erf(x), with all its digits also for large x.")


@functor("flow Tensor", out=True, samples="x(2, 3), x(2, 3); x(2, 3), x(3)")
def logaddexp(input: AnyTensor, other: AnyTensor) -> Tensor:
    """Return log(exp(x) + exp(y)) without overflow.

    input, other: of shapes that broadcast together; their common dtype is floating or complex.
    DTypeError: when neither is floating or complex.
    ShapeError: when the shapes do not broadcast.

    >>> flow.logaddexp(flow.tensor([0.0, 1000.0]), flow.tensor([0.0, 1000.0]))
    tensor([6.9315e-01, 1.0007e+03])
    """
    x, y = promote("logaddexp", input, other)
    if not x.is_complex():
        x, y = real_floating_pair("logaddexp", x, y)
        return dispatch2(op_expr("logaddexp"), x, y)
    first = F.real(x) >= F.real(y)
    larger, smaller = F.where(first, x, y), F.where(first, y, x)
    return larger + log1p(exp(smaller - larger))


logaddexp2 = binary(
    "logaddexp2",
    "Return log2(2**x + 2**y) without overflow.",
    domain=RealFloatingPair,
    samples="x(2, 3), x(2, 3); x(2, 3), x(3)",
)
xlogy = binary(
    "xlogy",
    "Return x log(y), which is 0 where x is 0 (unless y is nan).",
    "[0.0, 2.0] & [0.0, 3.0] -> tensor([0.0000, 2.1972])",
    domain=RealToFloatingOperands,
    on="flow Tensor special",
    twin="flow Tensor",
    samples="x(2, 3), pos(2, 3); x(2, 3), 2.5; 1.5, pos(3)",
)
