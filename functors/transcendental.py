"""Exponentials, logarithms and what is made of them: what users call."""

from __future__ import annotations

from typing import Any

from oneflow_lite.functors.arithmetic import where
from oneflow_lite.functors.checks import check_tensor, floating
from oneflow_lite.functors.elementwise_checks import check_number, real, real_floating_pair
from oneflow_lite.functors.out import write_out
from oneflow_lite.functors.shape import real as real_part
from oneflow_lite.interpreter import dispatch1, dispatch2, promote
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

EXP = op_expr("exp")
EXP2 = op_expr("exp2")
EXPM1 = op_expr("expm1")
LOG = op_expr("log")
LOG1P = op_expr("log1p")
LOG2 = op_expr("log2")
LOG10 = op_expr("log10")
TANH = op_expr("tanh")
SIGMOID = op_expr("sigmoid")
ERF = op_expr("erf")
ERFC = op_expr("erfc")
LOGADDEXP = op_expr("logaddexp")
XLOGY = op_expr("xlogy")


@register_functor("exp")
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return e to the power of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.exp(flow.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    if out is not None:
        return write_out("exp", out, exp, input)
    return dispatch1(EXP, floating("exp", input))


@register_functor("exp2")
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return 2 to the power of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.exp2(flow.tensor([-1.0, 3.0]))
    tensor([0.5000, 8.0000])
    """
    if out is not None:
        return write_out("exp2", out, exp2, input)
    return dispatch1(EXP2, floating("exp2", input))


@register_functor("expm1")
def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return exp(x) - 1 of each element x, with all its digits also near 0.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.expm1(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """
    if out is not None:
        return write_out("expm1", out, expm1, input)
    return dispatch1(EXPM1, floating("expm1", input))


@register_functor("log")
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the natural logarithm of each element: -inf at 0, nan below it.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.log(flow.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """
    if out is not None:
        return write_out("log", out, log, input)
    return dispatch1(LOG, floating("log", input))


@register_functor("log1p")
def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return log(1 + x) of each element x, with all its digits also near 0.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.log1p(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """
    if out is not None:
        return write_out("log1p", out, log1p, input)
    return dispatch1(LOG1P, floating("log1p", input))


@register_functor("log2")
def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the logarithm to base 2 of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.log2(flow.tensor([1.0, 10.0]))
    tensor([0.0000, 3.3219])
    """
    if out is not None:
        return write_out("log2", out, log2, input)
    return dispatch1(LOG2, floating("log2", input))


@register_functor("log10")
def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the logarithm to base 10 of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.log10(flow.tensor([1.0, 2.0]))
    tensor([0.0000, 0.3010])
    """
    if out is not None:
        return write_out("log10", out, log10, input)
    return dispatch1(LOG10, floating("log10", input))


@register_functor("tanh")
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the hyperbolic tangent of each element.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.tanh(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    if out is not None:
        return write_out("tanh", out, tanh, input)
    return dispatch1(TANH, floating("tanh", input))


@register_functor("sigmoid")
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the logistic function 1 / (1 + exp(-x)) of each element x.

    Parameters
    ----------
    input : Tensor
        Of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.sigmoid(flow.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """
    if out is not None:
        return write_out("sigmoid", out, sigmoid, input)
    return dispatch1(SIGMOID, floating("sigmoid", input))


@register_functor("erf")
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the error function of each element, 2/√π times the integral of exp(-t²) from 0 to x.

    Parameters
    ----------
    input : Tensor
        Real, of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When `input` is complex.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.erf(flow.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    if out is not None:
        return write_out("erf", out, erf, input)
    return dispatch1(ERF, floating("erf", real("erf", input)))


@register_functor("erfc")
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return 1 - erf(x) of each element x, with all its digits also for large x.

    Parameters
    ----------
    input : Tensor
        Real, of any shape. Integers and bools are computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When `input` is complex.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.erfc(flow.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """
    if out is not None:
        return write_out("erfc", out, erfc, input)
    return dispatch1(ERFC, floating("erfc", real("erfc", input)))


@register_functor("logaddexp")
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return log(exp(x) + exp(y)) without overflow.

    Parameters
    ----------
    input, other : Tensor
        Of shapes that broadcast together; their common dtype is floating or complex.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When neither is floating or complex.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.logaddexp(flow.tensor([0.0, 1000.0]), flow.tensor([0.0, 1000.0]))
    tensor([6.9315e-01, 1.0007e+03])
    """
    if out is not None:
        return write_out("logaddexp", out, logaddexp, input, other)
    op = "logaddexp"
    x, y = promote(op, check_tensor(op, "input", input), check_tensor(op, "other", other))
    if not x.is_complex():
        x, y = real_floating_pair(op, x, y)
        return dispatch2(LOGADDEXP, x, y)
    first = real_part(x) >= real_part(y)
    larger, smaller = where(first, x, y), where(first, y, x)
    return larger + log1p(exp(smaller - larger))


@register_functor("xlogy")
def xlogy(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return x log(y), which is 0 where x is 0 (unless y is nan).

    Parameters
    ----------
    input, other : Tensor or number
        At least one Tensor; real, of shapes that broadcast together. Integers and bools are
        computed in the default dtype.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ArgumentTypeError
        When neither argument is a Tensor, or one is no number.
    DTypeError
        When an argument is complex.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.xlogy(flow.tensor([0.0, 2.0]), flow.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])
    """
    if out is not None:
        return write_out("xlogy", out, xlogy, input, other)
    if not isinstance(other, Tensor):
        check_tensor("xlogy", "input", input)
    operands = (("input", input), ("other", other))
    x, y = promote(
        "xlogy",
        *(
            real("xlogy", x, name) if isinstance(x, Tensor) else check_number("xlogy", name, x)
            for name, x in operands
        ),
    )
    return dispatch2(XLOGY, floating("xlogy", x), floating("xlogy", y))
