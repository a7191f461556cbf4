"""Activations made of straight pieces: what users call."""

from __future__ import annotations

import functools

from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors.checks import wrong
from oneflow_lite.functors.declare import functor, unary
from oneflow_lite.functors.domains import NonNegative, Number, RealFloating, RealNumber, Scalar
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

HARDTANH = op_expr("hardtanh")
_EVERYWHERE = "flow functional"


@functor("flow Tensor functional", inplace=True, twin="flow Tensor functional")
def relu(input: RealNumber) -> Tensor:
    """Return the larger of x and 0 for each element x; the gradient at 0 is 0.

    >>> flow.relu(flow.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """


@functor("functional", inplace=True, twin="functional", samples="x(2, 3); x(2, 3), 2.0")
def leaky_relu(input: RealFloating, negative_slope: Number = 0.01) -> Tensor:
    """Return x for x > 0, else negative_slope x; the gradient at 0 is negative_slope."""


@functor("functional", inplace=True, twin="functional", samples="x(2, 3); x(2, 3), -0.5, 1.2")
def hardtanh(input: RealNumber, min_val: Scalar = -1.0, max_val: Scalar = 1.0) -> Tensor:
    """Return x kept between min_val and max_val; the gradient at both ends is 0.

    min_val, max_val: the bounds; of integers only the whole part counts.
    ArgumentError: when `min_val` is above `max_val`.
    """
    if min_val > max_val:
        expected, mend = f"at most max_val, {max_val}", "swap the bounds"
        raise wrong("hardtanh", "min_val", expected, min_val, mend, ArgumentError)
    return dispatch1(HARDTANH, input, {"min_val": min_val, "max_val": max_val})


@functor("functional", inplace=True)
def relu6(input: RealNumber) -> Tensor:
    """Return x kept between 0 and 6; the gradient at both ends is 0."""
    kind = float if input._data.dtype.kind == "f" else int
    return dispatch1(HARDTANH, input, {"min_val": kind(0), "max_val": kind(6)})


_hard = functools.partial(
    unary, domain=RealFloating, on="functional", out=False, inplace=True, samples="x(2, 3) * 2"
)
hardsigmoid = _hard(
    "hardsigmoid", "Return (x + 3)/6 kept between 0 and 1; the gradient at ±3 is 0."
)
hardswish = _hard(
    "hardswish",
    "Return x times hardsigmoid(x); the gradient is 0 at -3 and 1 at 3.\n\n"
    "Howard et al., Searching for MobileNetV3, 2019.",
    "[-4.0, 1.0, 4.0] -> tensor([-0.0000, 0.6667, 4.0000])",
)


@functor("flow Tensor functional", out=True, samples="x(2, 3); x(2, 3), 1")
def hardshrink(input: RealFloating, lambd: Number = 0.5) -> Tensor:
    """Return x where it is outside [-lambd, lambd], else 0; the gradient at both ends is 0."""


@functor("functional", out=True, samples="x(2, 3); x(2, 3), 1")
def softshrink(input: RealFloating, lambd: NonNegative = 0.5) -> Tensor:
    """Return x moved towards 0 by lambd, and 0 within; the gradient at ±lambd is 0."""


@functor(_EVERYWHERE, out=True, inplace=True, twin=_EVERYWHERE, samples="x(2, 3), 0.5, 9.0")
def threshold(input: RealNumber, threshold: Scalar, value: Scalar) -> Tensor:
    """Return x where it is above the threshold, else value; the gradient at the threshold is 0.

    value: what replaces the rest; of integers only the whole part counts.
    """
