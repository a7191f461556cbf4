"""Reductions and normalizations of the elements that a mask keeps: what `flow.masked` exposes.

All are compositions: what the mask drops becomes the number that changes nothing in the op.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.functors.checks import cast, check_dims, floating
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, CastTo, Dim, Domain, KeepDim
from oneflow_lite.functors.scatter import neutral_element
from oneflow_lite.tensor import Tensor

_WHICH = "Which elements count, all by default; its shape broadcasts to that of `input`."
Mask = Annotated[Tensor | None, Domain(_WHICH)]
_OF_INDEX = "Of the index; by default that of the input, as in PyTorch."
IndexType = Annotated[Any, Domain(_OF_INDEX)]
_REDUCED = "x(2, 3); x(2, 3), 1, mask=b(2, 3); x(2, 3), (0, 1), keepdim=True, mask=b(3)"
_PLACED = _REDUCED.replace("(0, 1)", "0")


def _kept(input: Tensor, mask: Tensor | None, neutral: str | float) -> Tensor:
    """Return the input with a neutral element, or that of a reduction, where the mask is False."""
    if mask is None:
        return input
    number = neutral_element(neutral, input.dtype) if isinstance(neutral, str) else neutral
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


def _median(input: Tensor, mask: Tensor | None, dim: Any, keepdim: bool) -> Tensor:
    return _kept(floating("masked.median", input), mask, math.nan).nanmedian(dim, keepdim).values


def _joined(reduce: Callable[..., Tensor], neutral: str | float) -> Callable[..., Tensor]:
    return lambda input, mask, dim, keepdim: reduce(_kept(input, mask, neutral), dim, keepdim)


def _declare(author: Any, name: str, what: str, samples: str) -> Callable[..., Tensor]:
    author.__name__ = f"masked_{name}"
    summary = f"Return {what} of the elements that the mask keeps."
    author.__doc__ = f"{summary}\n\n{author.__doc__ or ''}"
    return functor("masked", samples=samples)(author)


def _reduction(
    name: str, what: str, run: Callable[..., Tensor], samples: str = _REDUCED, **hints: Any
) -> Callable[..., Tensor]:
    """Declare a reduction; one with `hints` of its own gives the input's dtype."""

    def author(
        input: AnyTensor,
        dim: Any = None,
        *,
        keepdim: KeepDim = False,
        dtype: CastTo = None,
        mask: Mask = None,
    ) -> Tensor:
        """dim: the dimensions to reduce, all of them by default."""
        result = run(input, mask, dim, keepdim)
        return cast(result, dtype or input.dtype) if hints else result

    if "dim" in hints:
        author.__doc__, author.__defaults__ = "", (-1,)
    author.__annotations__ |= hints
    return _declare(author, name, what, samples)


masked_sum = _reduction("sum", "the sum", _joined(F.sum, 0))
masked_prod = _reduction("prod", "the product", _product)
masked_amax = _reduction("amax", "the maximum", _joined(F.amax, "amax"))
masked_amin = _reduction("amin", "the minimum", _joined(F.amin, "amin"))
masked_mean = _reduction("mean", "the mean", _mean)
masked_logsumexp = _reduction("logsumexp", "log Σ exp", _log_of_sum)
_argmax, _argmin = _joined(F.argmax, "amax"), _joined(F.argmin, "amin")
masked_argmax = _reduction("argmax", "the index of the maximum", _argmax, _PLACED, dtype=IndexType)
masked_argmin = _reduction("argmin", "the index of the minimum", _argmin, _PLACED, dtype=IndexType)
masked_median = _reduction(
    "median",
    "the median along a dimension, NaN of none,",
    _median,
    "x(2, 3); x(2, 5), mask=fixed(np.array([1, 0, 1, 1, 0])); x(2, 3), 0, keepdim=True",
    dim=Dim,
)


def _along(
    name: str, what: str, run: Callable[..., Tensor], out_of: float
) -> Callable[..., Tensor]:
    def author(input: AnyTensor, dim: Dim, *, dtype: CastTo = None, mask: Mask = None) -> Tensor:
        return cast(run(_kept(input, mask, out_of), dim), input.dtype)

    drops = name != "log_softmax"  # which has no derivative at -inf
    samples = f"x(2, 3), 1; x(2, 3), -1, mask=fixed(np.array([True, {not drops}, True]))"
    return _declare(author, name, what, samples)


masked_cumsum = _along("cumsum", "the running sum", F.cumsum, 0)
masked_cumprod = _along("cumprod", "the running product", F.cumprod, 1)
masked_softmax = _along("softmax", "the softmax", F.softmax, -math.inf)
masked_log_softmax = _along("log_softmax", "log softmax", F.log_softmax, -math.inf)
masked_softmin = _along("softmin", "softmax(-x)", lambda x, dim: F.softmax(-x, dim), math.inf)


def _spread(name: str, what: str, finish: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def author(
        input: AnyTensor,
        dim: Any = None,
        unbiased: bool | None = None,
        *,
        correction: float | None = None,
        keepdim: KeepDim = False,
        dtype: CastTo = None,
        mask: Mask = None,
    ) -> Tensor:
        """correction: taken off the count, 1 by default; `unbiased` is its older spelling."""
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        x = floating(f"masked.{name}", input)
        centred = _kept(x - _mean(x, mask, dim, True), mask, 0)
        total = (centred * centred.conj()).sum(dim, keepdim)
        freedom = cast(_count(x, mask, dim, keepdim), total.real.dtype) - correction
        return finish(total / freedom.clamp_min(0))

    samples = "x(2, 3), 1, mask=fixed(np.array([True, False, True])); x(2, 3), correction=0"
    return _declare(author, name, what, f"x(2, 3); {samples}")


masked_var = _spread("var", "the variance", lambda variance: variance)
masked_std = _spread("std", "the standard deviation", lambda variance: variance.sqrt())


@functor(
    "masked", samples="x(2, 3); x(2, 3), 3, 1, mask=b(2, 3); x(2, 3), inf, keepdim=True, mask=b(3)"
)
def masked_norm(
    input: AnyTensor,
    ord: Any = 2.0,
    dim: Any = None,
    *,
    keepdim: KeepDim = False,
    dtype: CastTo = None,
    mask: Mask = None,
) -> Tensor:
    """Return the vector norm of the elements that the mask keeps; see `norm`."""
    kept = _kept(input, mask, math.inf if ord == -math.inf else 0)
    return kept.norm(2.0 if ord is None else ord, dim, keepdim)


@functor("masked", samples="x(2, 3), 2.0, 1; x(2, 3), 1, 0, mask=b(2, 3)")
def masked_normalize(
    input: AnyTensor,
    ord: float,
    dim: Dim,
    *,
    eps: float = 1e-12,
    dtype: CastTo = None,
    mask: Mask = None,
) -> Tensor:
    """Return the elements that the mask keeps, divided by their norm or by `eps`; 0 elsewhere."""
    norm = masked_norm(input, ord, dim, keepdim=True, mask=mask)
    return _kept(input, mask, 0) / norm.clamp_min(eps)


@functor("masked", samples="x(2, 3), x(2, 3)")
def masked_logaddexp(
    input: AnyTensor,
    other: AnyTensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Return log(exp(input) + exp(other)) of the elements that the masks keep; -inf of none.

    dtype: of the result; by default that of the input.
    """
    x, y = _kept(input, input_mask, -math.inf), _kept(other, other_mask, -math.inf)
    return cast(x.logaddexp(y), dtype or input.dtype)
