"""Variance, standard deviation and norms: functions that users call."""

from __future__ import annotations

import math
from typing import Annotated, Any

from oneflow_lite.arrays.dtype import as_dtype, common_dtype
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DimError, DTypeError, arg_error
from oneflow_lite.functors.declaring.checks import check_dims, require_floating, to_dtype
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    Dims,
    Domain,
    FloatingOrComplex,
    IntOrInts,
    KeepDim,
)
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.spellings import as_number
from oneflow_lite.tensors.tensor import Tensor

NORM = op_expr("norm")


def to_norm(op: str, input: Tensor, dtype: Any) -> Tensor:
    """Return `input` in another dtype, complex for complex numbers, in which no digit is lost."""
    own, wanted = require_floating(op, input)._data.dtype, as_dtype(op, dtype)
    if wanted.kind != own.kind or common_dtype(own, wanted) != wanted:
        kind = "complex" if own.kind == "c" else "real floating"
        expected, hint = f"a {kind} dtype no narrower than {own}", "convert the norm with .to()"
        raise arg_error(op, "dtype", expected, wanted, hint, DTypeError)
    return to_dtype(op, input, wanted)


NormDType = Annotated[
    Any,
    Domain(
        "Cast the input to it first; no narrower, and complex for complex numbers.",
        "{first} = to_norm(NAME, {first}, {x})",
        "{x} is None",
        {"DTypeError": "When {x} would lose digits or imaginary parts."},
        (to_norm,),
        early=True,
        type="dtype, optional",
    ),
]

_SPREAD = """x(2, 3); x(2, 3), 0; x(3, 2), -1, False, True; x(2, 3), (0, 1), correction=0
    x(4), False"""
_NORMS = """x(2, 3); x(2, 3), 3, 0; x(2, 3), inf, -1, True; x(2, 3), 1; x(2, 3), -inf
    x(2, 3), 0.5, (0, 1); x(2, 3), 'nuc'"""


def _declare(name: str, summary: str, example: str = "") -> Any:
    """Declare var or std, alone or with the mean."""
    op, with_mean = op_expr(name.removesuffix("_mean")), name.endswith("_mean")

    def author(
        input: FloatingOrComplex,
        dim: IntOrInts = None,
        unbiased: bool | None = None,
        keepdim: KeepDim = False,
        *,
        correction: float | None = None,
    ) -> Any:
        older: Any = unbiased
        if isinstance(dim, bool):  # var(x, False)
            dim, older = None, dim
        if older is not None:
            if not isinstance(older, bool) or correction is not None:
                expected = "a bool, and no correction beside it"
                got, hint = f"{older!r} and correction={correction!r}", "give correction= alone"
                raise arg_error(name, "unbiased", expected, got, hint, ArgumentTypeError)
            correction = int(older)
        elif correction is None:
            correction = 1
        elif not isinstance(correction := as_number(correction), (int, float)):
            hint = "pass 1 for the sample variance or 0 for that of the whole population"
            raise arg_error(
                name, "correction", "a number", repr(correction), hint, ArgumentTypeError
            )
        dims = check_dims(name, dim, input._data.ndim)
        spread = dispatch1(op, input, {"dim": dims, "keepdim": keepdim, "correction": correction})
        return (spread, F.mean(input, dims, keepdim)) if with_mean else spread

    author.__name__ = name
    author.__doc__ = f"""{summary}

    dim: the dimensions to reduce; None and () mean all.
    unbiased: the older spelling of correction 1 and 0; `var(x, False)` works.
    correction: taken off the count n; 1 by default (Bessel's correction).
    DimError: when a dimension is out of range or given twice.
    ArgumentTypeError: when `unbiased` and `correction` are both given, or are of another type.

    {example}
    """
    on, result = ("flow", "tuple[Tensor, Tensor]") if with_mean else ("flow Tensor", "Tensor")
    return functor(on, out=not with_mean, samples=_SPREAD, results=result)(author)


var = _declare(
    "var",
    "Return the variance Σ (x - mean x)² / max(0, n - correction).",
    ">>> flow.var(flow.tensor([1., 2., 3., 4.]), correction=0)\n    tensor(1.2500)",
)
std = _declare("std", "Return the standard deviation, the root of `var`; its gradient at 0 is 0.")
var_mean = _declare("var_mean", "Return the variance and the mean; see `var`.")
std_mean = _declare("std_mean", "Return the standard deviation and the mean; see `var`.")


@functor("flow Tensor", out="same", samples=_NORMS)
def norm(
    input: AnyTensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: KeepDim = False,
    *,
    dtype: NormDType = None,
) -> Tensor:
    """Return the vector norm (Σ |x|^p)^(1/p) over the given dimensions, all of them by default.

    Where the norm is 0, its gradient is 0; for inf and -inf it is shared evenly among ties.

    p: a number; "fro" and None are 2; 0 counts the elements that are not zero; inf and -inf are the
        largest and the smallest absolute value; "nuc" is the nuclear norm of matrices.
    ArgumentError: when p is neither a number nor "fro" nor "nuc".
    DTypeError: when the input is of integers or bools.
    DimError: when a dimension is out of range or given twice, or is empty with p = inf or p < 0.

    >>> x = flow.tensor([[3., -4.], [0., 1.]])
    >>> flow.norm(x, dim=1), flow.norm(x, float("inf"))
    (tensor([5., 1.]), tensor(4.))
    """
    if p == "nuc":
        return F.linalg_matrix_norm(input, p, dim, keepdim)
    return norm_for("norm", input, p, dim, keepdim)


def norm_for(op: str, input: Tensor, p: Any, dim: Any, keepdim: bool) -> Tensor:
    """Return the norm on behalf of an op, under whose name bad arguments are refused."""
    order = 2 if p is None or p == "fro" else as_number(p)
    if isinstance(order, bool) or not isinstance(order, (int, float)) or math.isnan(order):
        expected = "a number, inf, -inf or 'fro'"
        raise arg_error(op, "p", expected, repr(p), "name one of them", ArgumentError)
    shape = require_floating(op, input)._data.shape
    dims = check_dims(op, dim, len(shape))
    if (order == math.inf or order < 0) and 0 in [shape[d] for d in dims]:
        hint, got = "reduce another dimension or take another p", f"{dims} of shape {shape}"
        raise arg_error(
            op, "dim", f"dimensions that are not empty for p={order}", got, hint, DimError
        )
    if input._data.dtype.kind == "c":
        input = input.abs()
    return dispatch1(NORM, input, {"p": order, "dim": dims, "keepdim": bool(keepdim)})
