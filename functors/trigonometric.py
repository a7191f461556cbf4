"""Circular and hyperbolic functions, angles in radians: what users call."""

from __future__ import annotations

from oneflow_lite.functors.checks import floating
from oneflow_lite.functors.elementwise_checks import real, real_floating_pair
from oneflow_lite.functors.out import write_out
from oneflow_lite.interpreter import dispatch1, dispatch2, promote
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

SIN = op_expr("sin")
COS = op_expr("cos")
TAN = op_expr("tan")
ASIN = op_expr("asin")
ACOS = op_expr("acos")
ATAN = op_expr("atan")
ATAN2 = op_expr("atan2")
HYPOT = op_expr("hypot")
SINH = op_expr("sinh")
COSH = op_expr("cosh")
ASINH = op_expr("asinh")
ACOSH = op_expr("acosh")
ATANH = op_expr("atanh")
SINC = op_expr("sinc")


@register_functor("sin")
def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the sine of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.sin(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """
    if out is not None:
        return write_out("sin", out, sin, input)
    return dispatch1(SIN, floating("sin", input))


@register_functor("cos")
def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the cosine of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.cos(flow.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """
    if out is not None:
        return write_out("cos", out, cos, input)
    return dispatch1(COS, floating("cos", input))


@register_functor("tan")
def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the tangent of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.tan(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """
    if out is not None:
        return write_out("tan", out, tan, input)
    return dispatch1(TAN, floating("tan", input))


@register_functor("asin")
def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the angle in [-π/2, π/2] whose sine is the element; nan outside [-1, 1].

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.asin(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """
    if out is not None:
        return write_out("asin", out, asin, input)
    return dispatch1(ASIN, floating("asin", input))


@register_functor("acos")
def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the angle in [0, π] whose cosine is the element; nan outside [-1, 1].

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.acos(flow.tensor([1.0, 0.0]))
    tensor([0.0000, 1.5708])
    """
    if out is not None:
        return write_out("acos", out, acos, input)
    return dispatch1(ACOS, floating("acos", input))


@register_functor("atan")
def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the angle in (-π/2, π/2) whose tangent is the element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.atan(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """
    if out is not None:
        return write_out("atan", out, atan, input)
    return dispatch1(ATAN, floating("atan", input))


@register_functor("atan2")
def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the angle in [-π, π] of the point whose ordinate is `input` and abscissa `other`.

    Parameters
    ----------
    input, other : Tensor
        Real, of shapes that broadcast together. Integers and bools are computed in the default
        dtype.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When an argument is complex.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.atan2(flow.tensor([1.0, -1.0]), flow.tensor([1.0, -1.0]))
    tensor([ 0.7854, -2.3562])
    """
    if out is not None:
        return write_out("atan2", out, atan2, input, other)
    y, x = promote("atan2", real("atan2", input), real("atan2", other, "other"))
    return dispatch2(ATAN2, floating("atan2", y), floating("atan2", x))


@register_functor("hypot")
def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return √(x² + y²), the hypotenuse of a right triangle, without overflow.

    Parameters
    ----------
    input, other : Tensor
        Real, of shapes that broadcast together; their common dtype is floating.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When an argument is complex, or neither is floating.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.hypot(flow.tensor([3.0, 5.0]), flow.tensor([4.0, 12.0]))
    tensor([ 5., 13.])
    """
    if out is not None:
        return write_out("hypot", out, hypot, input, other)
    x, y = real_floating_pair("hypot", input, other)
    return dispatch2(HYPOT, x, y)


@register_functor("sinh")
def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the hyperbolic sine of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.sinh(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """
    if out is not None:
        return write_out("sinh", out, sinh, input)
    return dispatch1(SINH, floating("sinh", input))


@register_functor("cosh")
def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the hyperbolic cosine of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.cosh(flow.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """
    if out is not None:
        return write_out("cosh", out, cosh, input)
    return dispatch1(COSH, floating("cosh", input))


@register_functor("asinh")
def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse hyperbolic sine of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.asinh(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """
    if out is not None:
        return write_out("asinh", out, asinh, input)
    return dispatch1(ASINH, floating("asinh", input))


@register_functor("acosh")
def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse hyperbolic cosine of each element; nan below 1.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.acosh(flow.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    if out is not None:
        return write_out("acosh", out, acosh, input)
    return dispatch1(ACOSH, floating("acosh", input))


@register_functor("atanh")
def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse hyperbolic tangent of each element; nan outside [-1, 1].

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.atanh(flow.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    if out is not None:
        return write_out("atanh", out, atanh, input)
    return dispatch1(ATANH, floating("atanh", input))


@register_functor("sinc")
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return sin(πx) / (πx) of each element x, and 1 at 0.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.sinc(flow.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    if out is not None:
        return write_out("sinc", out, sinc, input)
    return dispatch1(SINC, floating("sinc", input))
