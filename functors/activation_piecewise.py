"""Activations made of straight pieces: what users call."""

from __future__ import annotations

from oneflow_lite.errors import ArgumentError, DTypeError, bad_argument
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.elementwise_checks import check_number, real_floating
from oneflow_lite.functors.fill_value import fill_value
from oneflow_lite.functors.out import write_out
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS, register_functor
from oneflow_lite.tensor import Tensor

RELU = op_expr("relu")
LEAKY_RELU = op_expr("leaky_relu")
HARDTANH = op_expr("hardtanh")
HARDSIGMOID = op_expr("hardsigmoid")
HARDSWISH = op_expr("hardswish")
HARDSHRINK = op_expr("hardshrink")
SOFTSHRINK = op_expr("softshrink")
THRESHOLD = op_expr("threshold")


def _number_tensor(op: str, input: Tensor) -> Tensor:
    """Return `input` when its dtype is an integer or real floating one."""
    if check_tensor(op, "input", input)._data.dtype.kind in "fiu":
        return input
    raise bad_argument(
        DTypeError,
        op,
        "input",
        expected="a real dtype other than bool",
        got=input.dtype,
        mend="convert it with .float()",
    )


@register_functor("relu")
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the larger of x and 0 for each element x; the gradient at 0 is 0.

    Parameters
    ----------
    input : Tensor
        Of any shape; an integer or real floating dtype.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    DTypeError
        When `input` is bool or complex.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.relu(flow.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """
    if type(input) is not Tensor or input._data.dtype.kind not in "fiu":
        _number_tensor("relu", input)
    if inplace:
        return FUNCTORS.get("relu_")(input)
    return dispatch1(RELU, input)


@register_functor("leaky_relu")
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x for x > 0, else negative_slope x; the gradient at 0 is negative_slope.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    negative_slope : float
        The slope left of 0.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    ArgumentTypeError
        When `negative_slope` is no number.
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.leaky_relu(flow.tensor([-1.0, 0.0, 2.0]), 0.1)
    tensor([-0.1000,  0.0000,  2.0000])
    """
    real_floating("leaky_relu", input)
    negative_slope = check_number("leaky_relu", "negative_slope", negative_slope)
    if inplace:
        return FUNCTORS.get("leaky_relu_")(input, negative_slope)
    return dispatch1(LEAKY_RELU, input, {"negative_slope": negative_slope})


@register_functor("hardtanh")
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return x kept between min_val and max_val; the gradient at both ends is 0.

    Parameters
    ----------
    input : Tensor
        Of any shape; an integer or real floating dtype.
    min_val, max_val : float
        The bounds; of integers only the whole part counts.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    ArgumentError
        When `min_val` is above `max_val`.
    ArgumentTypeError
        When a bound is no number.
    DTypeError
        When `input` is bool or complex, or its dtype cannot hold a bound.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.hardtanh(flow.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    return _clip("hardtanh", input, min_val, max_val, inplace)


@register_functor("relu6")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x kept between 0 and 6; the gradient at both ends is 0.

    Parameters
    ----------
    input : Tensor
        Of any shape; an integer or real floating dtype.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    DTypeError
        When `input` is bool or complex.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.relu6(flow.tensor([-1.0, 3.0, 7.0]))
    tensor([0., 3., 6.])
    """
    return _clip("relu6", input, 0.0, 6.0, inplace)


def _clip(op: str, input: Tensor, min_val: float, max_val: float, inplace: bool) -> Tensor:
    _number_tensor(op, input)
    dtype = input._data.dtype
    low = fill_value(op, "min_val", min_val, dtype)
    high = fill_value(op, "max_val", max_val, dtype)
    if min_val > max_val:
        raise bad_argument(
            ArgumentError,
            op,
            "min_val",
            expected=f"at most max_val, {max_val}",
            got=min_val,
            mend="swap the bounds",
        )
    if inplace:
        return FUNCTORS.get("hardtanh_")(input, low, high)
    return dispatch1(HARDTANH, input, {"min_val": low, "max_val": high})


@register_functor("hardsigmoid")
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return (x + 3)/6 kept between 0 and 1; the gradient at ±3 is 0.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.hardsigmoid(flow.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    real_floating("hardsigmoid", input)
    if inplace:
        return FUNCTORS.get("hardsigmoid_")(input)
    return dispatch1(HARDSIGMOID, input)


@register_functor("hardswish")
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x times hardsigmoid(x); the gradient is 0 at -3 and 1 at 3.

    Howard et al., Searching for MobileNetV3, 2019.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    inplace : bool
        Write the result into `input`.

    Raises
    ------
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.hardswish(flow.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    real_floating("hardswish", input)
    if inplace:
        return FUNCTORS.get("hardswish_")(input)
    return dispatch1(HARDSWISH, input)


@register_functor("hardshrink")
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Return x where it is outside [-lambd, lambd], else 0; the gradient at both ends is 0.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    lambd : float
        Half the width of the gap.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ArgumentTypeError
        When `lambd` is no number.
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.hardshrink(flow.tensor([-1.0, 0.2, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    if out is not None:
        return write_out("hardshrink", out, hardshrink, input, lambd)
    attrs = {"lambd": check_number("hardshrink", "lambd", lambd)}
    return dispatch1(HARDSHRINK, real_floating("hardshrink", input), attrs)


@register_functor("softshrink")
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Return x moved towards 0 by lambd, and 0 within; the gradient at ±lambd is 0.

    Parameters
    ----------
    input : Tensor
        Real floating, of any shape.
    lambd : float
        How far to move, at least 0.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ArgumentError
        When `lambd` is negative.
    ArgumentTypeError
        When `lambd` is no number.
    DTypeError
        When `input` is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.softshrink(flow.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    if out is not None:
        return write_out("softshrink", out, softshrink, input, lambd)
    lambd = check_number("softshrink", "lambd", lambd)
    if lambd < 0:
        raise bad_argument(
            ArgumentError,
            "softshrink",
            "lambd",
            expected="0 or more",
            got=lambd,
            mend="pass its absolute value",
        )
    return dispatch1(SOFTSHRINK, real_floating("softshrink", input), {"lambd": lambd})


@register_functor("threshold")
def threshold(
    input: Tensor,
    threshold: float,
    value: float,
    inplace: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return x where it is above the threshold, else value; the gradient at the threshold is 0.

    Parameters
    ----------
    input : Tensor
        Of any shape; an integer or real floating dtype.
    threshold : float
        What x is compared with.
    value : float
        What replaces the rest; of integers only the whole part counts.
    inplace : bool
        Write the result into `input`.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ArgumentTypeError
        When `threshold` or `value` is no number.
    DTypeError
        When `input` is bool or complex, or its dtype cannot hold one of the numbers.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.threshold(flow.tensor([-1.0, 0.5, 2.0]), 0.5, 9.0)
    tensor([9., 9., 2.])
    """
    if out is not None:
        return write_out(
            "threshold", out, FUNCTORS.get("threshold"), input, threshold, value, inplace
        )
    _number_tensor("threshold", input)
    dtype = input._data.dtype
    limit = fill_value("threshold", "threshold", threshold, dtype)
    value = fill_value("threshold", "value", value, dtype)
    if inplace:
        return FUNCTORS.get("threshold_")(input, limit, value)
    return dispatch1(THRESHOLD, input, {"threshold": limit, "value": value})
