"""Reductions and normalizations of the elements that a mask keeps, exposed as `flow.masked`.

All are compositions: a dropped element becomes the number that changes nothing in the op.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, get_args

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.functors.declaring import domains as D
from oneflow_lite.functors.declaring.checks import cast, check_dims, floating
from oneflow_lite.functors.declaring.declare import Function, Options, keyword, with_options
from oneflow_lite.functors.declaring.domains import AnyTensor, IntOrInts, Order
from oneflow_lite.functors.scatter import neutral_element
from oneflow_lite.tensors.tensor import Tensor

_WHICH = "True for the elements that count, all by default; broadcasts to the shape of `input`."
_MASK = keyword("mask", "Tensor | None", D.Domain(_WHICH))
_NORMED = (keyword("dtype", domain=get_args(D.CastTo)[1]), _MASK)
_KEEPDIM = keyword("keepdim", "bool", get_args(D.KeepDim)[1])
_REDUCED = (_KEEPDIM, *_NORMED)
_OF_INDEX = D.Domain("Of the index; by default that of the input, as in PyTorch.")
_PLACED = (_KEEPDIM, keyword("dtype", domain=_OF_INDEX), _MASK)
_OVER = "x(2, 3); x(2, 3), 1, mask=b(2, 3); x(2, 3), (0, 1), keepdim=True, mask=b(3)"
_ALONG = _OVER.replace("(0, 1)", "0")
_BY_RANK = "x(2, 3); x(2, 5), mask=fixed(np.array([1, 0, 1, 1, 0])); x(2, 3), 0, keepdim=True"
_ORDERS = "x(2, 3); x(2, 3), 3, 1, mask=b(2, 3); x(2, 3), inf, keepdim=True, mask=b(3)"
_DIMS = "\n\ndim: the dimensions to reduce, all of them by default."
_CORRECTED = "\n\ncorrection: taken off the count, 1 by default; `unbiased` is its older spelling."


def _kept(input: Tensor, mask: Tensor | None, neutral: str | float) -> Tensor:
    """Return the input with a neutral element, or that of a reduction, where the mask is False."""
    if mask is None:
        return input
    own = input._data.dtype
    number = neutral_element(neutral, own) if isinstance(neutral, str) else neutral
    return input.masked_fill(~cast(mask, bool).expand(input.shape), number)


def _count(input: Tensor, mask: Tensor | None, dim: Any, keepdim: bool) -> Tensor:
    every = input.new_ones((), dtype=bool) if mask is None else cast(mask, bool)
    return every.expand(input.shape).sum(dim, keepdim)


def _mean(input: Tensor, mask: Tensor | None, dim: Any, keepdim: bool) -> Tensor:
    return _kept(input, mask, 0).sum(dim, keepdim) / _count(input, mask, dim, keepdim)


def _product(input: Tensor, mask: Tensor | None, dim: Any, keepdim: bool) -> Tensor:
    result = _kept(input, mask, 1)
    for each in sorted(check_dims("masked.prod", dim, input.ndim), reverse=True):
        result = result.prod(each, keepdim)
    return result if input.dtype.kind in "fc" else cast(result, "int64")


def _log_of_sum(input: Tensor, mask: Tensor | None, dim: Any, keepdim: bool) -> Tensor:
    dims = tuple(range(input.ndim)) if dim is None else dim
    return _kept(floating("masked.logsumexp", input), mask, -math.inf).logsumexp(dims, keepdim)


def _joined(reduce: Callable[..., Tensor], neutral: str | float) -> Callable[..., Tensor]:
    return lambda input, mask, dim, keepdim: reduce(_kept(input, mask, neutral), dim, keepdim)


def _declared(
    name: str, what: str, samples: str, options: Options = _REDUCED, more: str = ""
) -> Callable[[Function], Function]:
    summary = f"Return {what} of the elements that the mask keeps.{more}"
    return with_options("masked", options, f"masked_{name}", summary, samples=samples)


def _reduction(name: str, what: str, run: Callable[..., Tensor]) -> None:
    @_declared(name, what, _OVER, more=_DIMS)
    def author(input: AnyTensor, dim: IntOrInts = None, **options: Any) -> Tensor:
        return run(input, options["mask"], dim, options["keepdim"])


_reduction("sum", "the sum", _joined(F.sum, 0))
_reduction("prod", "the product", _product)
_reduction("amax", "the maximum", _joined(F.amax, "amax"))
_reduction("amin", "the minimum", _joined(F.amin, "amin"))
_reduction("mean", "the mean", _mean)
_reduction("logsumexp", "log Σ exp", _log_of_sum)


def _place(name: str, what: str, run: Callable[..., Tensor]) -> None:
    @_declared(name, f"the index of {what}", _ALONG, _PLACED, _DIMS)
    def author(input: AnyTensor, dim: IntOrInts = None, **options: Any) -> Tensor:
        place = run(input, options["mask"], dim, options["keepdim"])
        return cast(place, options["dtype"] or input.dtype)


_place("argmax", "the maximum", _joined(F.argmax, "amax"))
_place("argmin", "the minimum", _joined(F.argmin, "amin"))


@with_options("masked", _REDUCED, samples=_BY_RANK)
def masked_median(input: AnyTensor, dim: D.Dim = -1, **options: Any) -> Tensor:
    """Return the median of the elements that the mask keeps along a dimension; NaN of none."""
    kept = _kept(floating("masked.median", input), options["mask"], math.nan)
    return cast(kept.nanmedian(dim, options["keepdim"]).values, options["dtype"] or input.dtype)


def _along(name: str, what: str, run: Callable[..., Tensor], out_of: float) -> None:
    drops = name != "log_softmax"  # which has no derivative at -inf
    samples = f"x(2, 3), 1; x(2, 3), -1, mask=fixed(np.array([True, {not drops}, True]))"

    @_declared(name, what, samples, _NORMED)
    def author(input: AnyTensor, dim: D.Dim, **options: Any) -> Tensor:
        return cast(run(_kept(input, options["mask"], out_of), dim), input.dtype)


_along("cumsum", "the running sum", F.cumsum, 0)
_along("cumprod", "the running product", F.cumprod, 1)
_along("softmax", "the softmax", F.softmax, -math.inf)
_along("log_softmax", "log softmax", F.log_softmax, -math.inf)
_along("softmin", "softmax(-x)", lambda x, dim: F.softmax(-x, dim), math.inf)


def _spread(name: str, what: str, finish: Callable[[Tensor], Tensor]) -> None:
    samples = "x(2, 3), 1, mask=fixed(np.array([True, False, True])); x(2, 3), correction=0"

    @_declared(name, what, f"x(2, 3); {samples}", more=_CORRECTED)
    def author(
        input: AnyTensor,
        dim: IntOrInts = None,
        unbiased: bool | None = None,
        *,
        correction: float | None = None,
        **options: Any,
    ) -> Tensor:
        mask, keepdim = options["mask"], options["keepdim"]
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        x = floating(f"masked.{name}", input)
        centred = _kept(x - _mean(x, mask, dim, True), mask, 0)  # a dropped element adds nothing
        total = (centred * centred.conj()).sum(dim, keepdim)
        freedom = cast(_count(x, mask, dim, keepdim), total.real.dtype) - correction
        return finish(total / freedom.clamp_min(0))


_spread("var", "the variance", lambda variance: variance)
_spread("std", "the standard deviation", lambda variance: variance.sqrt())


@with_options("masked", _REDUCED, samples=_ORDERS)
def masked_norm(
    input: AnyTensor, ord: Order = 2.0, dim: IntOrInts = None, **options: Any
) -> Tensor:
    """Return the vector norm of the elements that the mask keeps; see `norm`."""
    kept = _kept(input, options["mask"], math.inf if ord == -math.inf else 0)
    return kept.norm(2.0 if ord is None else ord, dim, options["keepdim"])


@with_options("masked", _NORMED, samples="x(2, 3), 2.0, 1; x(2, 3), 1, 0, mask=b(2, 3)")
def masked_normalize(
    input: AnyTensor, ord: float, dim: D.Dim, *, eps: float = 1e-12, **options: Any
) -> Tensor:
    """Return the elements that the mask keeps, divided by their norm or by `eps`; 0 elsewhere."""
    mask = options["mask"]
    norm = masked_norm(input, ord, dim, keepdim=True, mask=mask)
    return _kept(input, mask, 0) / norm.clamp_min(eps)


_OPTIONS = (keyword("dtype"), *(keyword(f"{x}_mask", "Tensor | None") for x in ("input", "other")))


@with_options("masked", _OPTIONS, samples="x(2, 3), x(2, 3)")
def masked_logaddexp(input: AnyTensor, other: AnyTensor, **options: Any) -> Tensor:
    """Return log(exp(input) + exp(other)) of the elements that the masks keep; -inf where none is.

    dtype: of the result; by default that of the input.
    """
    x = _kept(input, options["input_mask"], -math.inf)
    y = _kept(other, options["other_mask"], -math.inf)
    return cast(x.logaddexp(y), options["dtype"] or input.dtype)
