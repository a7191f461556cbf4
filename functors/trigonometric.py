"""Circular and hyperbolic functions, angles in radians: what users call."""

from __future__ import annotations

import functools

from oneflow_lite.functors.declare import binary, unary
from oneflow_lite.functors.domains import Floating, RealFloatingPair, RealToFloatingPair

_floating = functools.partial(unary, domain=Floating, twin="flow Tensor")
_inside = functools.partial(_floating, samples="unit(2, 3)")

sin = _floating("sin", "Return the sine of each element.", "[0.0, 1.0] -> tensor([0.0000, 0.8415])")
cos = _floating("cos", "Return the cosine of each element.")
tan = _floating("tan", "Return the tangent of each element.")
asin = _inside(
    "asin", "Return the angle in [-π/2, π/2] whose sine is x; nan outside [-1, 1].", alias="arcsin"
)
acos = _inside(
    "acos", "Return the angle in [0, π] whose cosine is x; nan outside [-1, 1].", alias="arccos"
)
atan = _floating("atan", "Return the angle in (-π/2, π/2) whose tangent is x.", alias="arctan")
sinh = _floating("sinh", "Return the hyperbolic sine of each element.")
cosh = _floating("cosh", "Return the hyperbolic cosine of each element.")
asinh = _floating("asinh", "Return the inverse hyperbolic sine of each element.", alias="arcsinh")
acosh = _floating(
    "acosh",
    "Return the inverse hyperbolic cosine of each element; nan below 1.",
    alias="arccosh",
    samples="pos(2, 3) + 1",
)
atanh = _inside(
    "atanh", "Return the inverse hyperbolic tangent of x; nan outside [-1, 1].", alias="arctanh"
)
sinc = _floating(
    "sinc",
    "Return sin(πx) / (πx) of each element x, and 1 at 0.",
    "[0.0, 0.5] -> tensor([1.0000, 0.6366])",
    on="flow Tensor special",
)
atan2 = binary(
    "atan2",
    "Return the angle in [-π, π] of the point whose ordinate is `input` and abscissa `other`.",
    "[1.0, -1.0] & [1.0, -1.0] -> tensor([ 0.7854, -2.3562])",
    domain=RealToFloatingPair,
    alias="arctan2",
    twin=True,
)
hypot = binary("hypot", "Return √(x² + y²) without overflow.", domain=RealFloatingPair, twin=True)
