"""Comparisons: what users call. The results carry no gradient."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import ArgumentError, DTypeError, bad_argument
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.elementwise_checks import check_number, real
from oneflow_lite.functors.out import write_out
from oneflow_lite.interpreter import dispatch1, dispatch2
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

EQ = op_expr("eq")
NE = op_expr("ne")
LT = op_expr("lt")
LE = op_expr("le")
GT = op_expr("gt")
GE = op_expr("ge")
ISNAN = op_expr("isnan")
ISINF = op_expr("isinf")
ISFINITE = op_expr("isfinite")
ISCLOSE = op_expr("isclose")
ALLCLOSE = op_expr("allclose")
EQUAL = op_expr("equal")


@register_functor("eq")
def eq(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return where two tensors are equal, as bools. nan equals nothing.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.
    other : Tensor or number
        Of a shape that broadcasts.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.eq(flow.tensor([1, 2, 3]), 2)
    tensor([False,  True, False])
    """
    if out is not None:
        return write_out("eq", out, eq, input, other)
    return dispatch2(EQ, input, other)


@register_functor("ne")
def ne(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return where two tensors differ, as bools. nan differs from everything.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.
    other : Tensor or number
        Of a shape that broadcasts.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.ne(flow.tensor([1, 2, 3]), 2)
    tensor([ True, False,  True])
    """
    if out is not None:
        return write_out("ne", out, ne, input, other)
    return dispatch2(NE, input, other)


def _ordered(op: OpExpr, input: Any, other: Any) -> Tensor:
    """Dispatch a comparison of order, which complex numbers do not have."""
    name = op.op_type_name
    for argument, value in (("input", input), ("other", other)):
        if isinstance(value, Tensor):
            real(name, value, argument)
        elif isinstance(value, complex):
            check_number(name, argument, value)
    return dispatch2(op, input, other)


@register_functor("lt")
def lt(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return where `input` is less than `other`, as bools.

    Parameters
    ----------
    input : Tensor
        Real, of any shape.
    other : Tensor or number
        Real, of a shape that broadcasts.
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
    >>> flow.lt(flow.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])
    """
    if out is not None:
        return write_out("lt", out, lt, input, other)
    return _ordered(LT, input, other)


@register_functor("le")
def le(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return where `input` is at most `other`, as bools.

    Parameters
    ----------
    input : Tensor
        Real, of any shape.
    other : Tensor or number
        Real, of a shape that broadcasts.
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
    >>> flow.le(flow.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    if out is not None:
        return write_out("le", out, le, input, other)
    return _ordered(LE, input, other)


@register_functor("gt")
def gt(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return where `input` is greater than `other`, as bools.

    Parameters
    ----------
    input : Tensor
        Real, of any shape.
    other : Tensor or number
        Real, of a shape that broadcasts.
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
    >>> flow.gt(flow.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    if out is not None:
        return write_out("gt", out, gt, input, other)
    return _ordered(GT, input, other)


@register_functor("ge")
def ge(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Return where `input` is at least `other`, as bools.

    Parameters
    ----------
    input : Tensor
        Real, of any shape.
    other : Tensor or number
        Real, of a shape that broadcasts.
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
    >>> flow.ge(flow.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    if out is not None:
        return write_out("ge", out, ge, input, other)
    return _ordered(GE, input, other)


@register_functor("isnan")
def isnan(input: Tensor) -> Tensor:
    """Return where an element is nan, as bools.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.isnan(flow.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """
    return dispatch1(ISNAN, input)


@register_functor("isinf")
def isinf(input: Tensor) -> Tensor:
    """Return where an element is inf or -inf, as bools.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.isinf(flow.tensor([1.0, float("-inf")]))
    tensor([False,  True])
    """
    return dispatch1(ISINF, input)


@register_functor("isfinite")
def isfinite(input: Tensor) -> Tensor:
    """Return where an element is neither inf, -inf nor nan, as bools.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.isfinite(flow.tensor([1.0, float("inf")]))
    tensor([ True, False])
    """
    return dispatch1(ISFINITE, input)


def _tolerances(
    op: str, input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool
) -> dict[str, Any]:
    """Check the arguments of a comparison with tolerances and return its attributes."""
    check_tensor(op, "input", input)
    if check_tensor(op, "other", other).dtype != input.dtype:
        raise bad_argument(
            DTypeError,
            op,
            "other",
            expected=f"dtype {input.dtype}, that of 'input'",
            got=other.dtype,
            mend="convert one of them with .to(dtype)",
        )
    attrs = {"rtol": check_number(op, "rtol", rtol), "atol": check_number(op, "atol", atol)}
    for argument, value in attrs.items():
        if value < 0:
            raise bad_argument(
                ArgumentError, op, argument, expected="0 or more", got=value, mend="drop the sign"
            )
    return {**attrs, "equal_nan": bool(equal_nan)}


@register_functor("isclose")
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Return where the distance of two tensors is at most atol + rtol times the size of `other`.

    Parameters
    ----------
    input, other : Tensor
        Of one dtype, and of shapes that broadcast together.
    rtol, atol : float
        The tolerances, at least 0.
    equal_nan : bool
        Whether nan is close to nan.

    Raises
    ------
    ArgumentError
        When a tolerance is negative.
    DTypeError
        When the dtypes differ.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.isclose(flow.tensor([1.0, 2.0]), flow.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    attrs = _tolerances("isclose", input, other, rtol, atol, equal_nan)
    return dispatch2(ISCLOSE, input, other, attrs)


@register_functor("allclose")
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Return whether `isclose` holds for every element, as a Python bool.

    Parameters
    ----------
    input, other : Tensor
        Of one dtype, and of shapes that broadcast together.
    rtol, atol : float
        The tolerances, at least 0.
    equal_nan : bool
        Whether nan is close to nan.

    Raises
    ------
    ArgumentError
        When a tolerance is negative.
    DTypeError
        When the dtypes differ.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.allclose(flow.tensor([1.0, 2.0]), flow.tensor([1.0, 2.1]), atol=0.2)
    True
    """
    attrs = _tolerances("allclose", input, other, rtol, atol, equal_nan)
    return bool(dispatch2(ALLCLOSE, input, other, attrs))


@register_functor("equal")
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and equal elements, as a Python bool.

    Parameters
    ----------
    input, other : Tensor
        Of any shape and dtype. A tensor with nan equals nothing.

    Raises
    ------
    ArgumentTypeError
        When an argument is no Tensor.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.equal(flow.tensor([1, 2]), flow.tensor([1, 2]))
    True
    """
    check_tensor("equal", "input", input)
    check_tensor("equal", "other", other)
    return input.shape == other.shape and bool(dispatch2(EQUAL, input, other))
