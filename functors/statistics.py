"""Variance, standard deviation and norms: what users call."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    bad_argument,
)
from oneflow_lite.functors.arithmetic import abs
from oneflow_lite.functors.checks import require_floating
from oneflow_lite.functors.out import write_out
from oneflow_lite.functors.reduce import Dims, mean, reduced, to_dtype
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

VAR = op_expr("var")
STD = op_expr("std")
NORM = op_expr("norm")


def _spread(
    op: OpExpr, name: str, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Tensor:
    """Dispatch var or std after sorting out PyTorch's two spellings of the correction.

    `name` is that of the op that was called, for errors.
    """
    require_floating(name, input)
    dim, correction = _correction(name, dim, unbiased, correction)
    attrs = reduced(name, input, dim, keepdim)
    attrs["correction"] = correction
    return dispatch1(op, input, attrs)


def _correction(op: str, dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    """Return `dim` and the number taken off the count; `var(x, False)` gives `unbiased` first."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        if not isinstance(unbiased, bool) or correction is not None:
            raise bad_argument(
                ArgumentTypeError,
                op,
                "unbiased",
                expected="a bool, and no correction beside it",
                got=f"{unbiased!r} and correction={correction!r}",
                mend="give correction= alone",
            )
        return dim, int(unbiased)
    if correction is None:
        return dim, 1
    if isinstance(correction, (int, float)):
        return dim, correction
    raise bad_argument(
        ArgumentTypeError,
        op,
        "correction",
        expected="a number",
        got=repr(correction),
        mend="pass 1 for the sample variance or 0 for that of the whole population",
    )


@register_functor("var")
def var(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the variance Σ (x - mean x)² / max(0, n - correction).

    Parameters
    ----------
    input : Tensor
        Floating or complex.
    dim : int or sequence of int, optional
        The dimensions to reduce; None and () mean all.
    unbiased : bool, optional
        The older spelling: True is correction 1, False is correction 0. `var(x, False)` works.
    keepdim : bool
        Keep the reduced dimensions, with size 1.
    correction : number, optional
        Taken off the count n; 1 by default (Bessel's correction).
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When the input is of integers or bools.
    DimError
        When a dimension is out of range or given twice.
    ArgumentTypeError
        When `unbiased` and `correction` are both given, or are of another type.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1., 2., 3., 4.])
    >>> flow.var(x), flow.var(x, correction=0)
    (tensor(1.6667), tensor(1.2500))
    """
    if out is not None:
        return write_out("var", out, var, input, dim, unbiased, keepdim, correction=correction)
    return _spread(VAR, "var", input, dim, unbiased, keepdim, correction)


@register_functor("std")
def std(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the standard deviation, the root of `var`; its gradient at 0 is 0.

    Parameters and errors are those of `var`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.std(flow.tensor([[1., 3.], [2., 2.]]), dim=1)
    tensor([1.4142, 0.0000])
    """
    if out is not None:
        return write_out("std", out, std, input, dim, unbiased, keepdim, correction=correction)
    return _spread(STD, "std", input, dim, unbiased, keepdim, correction)


@register_functor("var_mean")
def var_mean(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean; parameters and errors are those of `var`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.var_mean(flow.tensor([1., 3.]))
    (tensor(2.), tensor(2.))
    """
    variance = _spread(VAR, "var_mean", input, dim, unbiased, keepdim, correction)
    return variance, mean(input, None if isinstance(dim, bool) else dim, keepdim)


@register_functor("std_mean")
def std_mean(
    input: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean; parameters and errors are those of `var`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.std_mean(flow.tensor([1., 3.]), correction=0)
    (tensor(1.), tensor(2.))
    """
    deviation = _spread(STD, "std_mean", input, dim, unbiased, keepdim, correction)
    return deviation, mean(input, None if isinstance(dim, bool) else dim, keepdim)


@register_functor("norm")
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """Return the vector norm (Σ |x|^p)^(1/p) over the given dimensions, all of them by default.

    Parameters
    ----------
    input : Tensor
        Floating or complex, unless `dtype` is.
    p : number, inf, -inf or "fro"
        "fro" and None are 2; 0 counts the elements that are not zero; inf and -inf are the
        largest and the smallest absolute value.
    dim : int or sequence of int, optional
        The dimensions to reduce; None and () mean all.
    keepdim : bool
        Keep the reduced dimensions, with size 1.
    dtype : dtype, optional
        Cast the input to it first.
    out : Tensor, optional
        Receives the result.

    Returns
    -------
    Tensor
        Real. Where the norm is 0 its gradient is 0; for inf and -inf the gradient is shared
        evenly among ties.

    Raises
    ------
    ArgumentError
        When p is neither a number nor "fro".
    DTypeError
        When the input is of integers or bools.
    DimError
        When a dimension is out of range or given twice, or is empty with p = inf or p < 0.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[3., -4.], [0., 1.]])
    >>> flow.norm(x, dim=1), flow.norm(x, float("inf")), flow.norm(x, 1, dim=0)
    (tensor([5., 1.]), tensor(4.), tensor([3., 5.]))
    """
    if out is not None:
        return write_out("norm", out, norm, input, p, dim, keepdim, dtype=dtype)
    return norm_for("norm", to_dtype("norm", input, dtype), p, dim, keepdim)


def norm_for(op: str, input: Tensor, p: Any, dim: Dims, keepdim: bool) -> Tensor:
    """Return the norm on behalf of an op, under whose name bad arguments are refused."""
    order = 2 if p is None or p == "fro" else p
    if isinstance(order, bool) or not isinstance(order, (int, float)) or math.isnan(order):
        raise bad_argument(
            ArgumentError,
            op,
            "p",
            expected="a number, inf, -inf or 'fro'",
            got=repr(p),
            mend="name one of them",
        )
    input = require_floating(op, input)
    attrs = reduced(op, input, dim, keepdim)
    shape = input._data.shape
    if (order == math.inf or order < 0) and 0 in [shape[d] for d in attrs["dim"]]:
        raise bad_argument(
            DimError,
            op,
            "dim",
            expected=f"dimensions that are not empty for p={order}",
            got=f"{attrs['dim']} of shape {shape}",
            mend="reduce another dimension or take another p",
        )
    if input._data.dtype.kind == "c":
        input = abs(input)
    attrs["p"] = order
    return dispatch1(NORM, input, attrs)
