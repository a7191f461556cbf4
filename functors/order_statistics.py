"""Elements by their rank or their number: k-th value, median, quantiles, mode; what users call."""

from __future__ import annotations

from collections import namedtuple
from typing import Annotated, Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError
from oneflow_lite.functors.checks import wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Dim, Int, KeepDim, RealFloating, choice
from oneflow_lite.functors.extrema import Filled
from oneflow_lite.functors.sorting import Ordered, check_rank
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

KTHVALUE = op_expr("kthvalue")
MEDIAN = op_expr("median")
NANMEDIAN = op_expr("nanmedian")

KthvalueResult = namedtuple("KthvalueResult", ["values", "indices"])
MedianResult = namedtuple("MedianResult", ["values", "indices"])
NanmedianResult = namedtuple("NanmedianResult", ["values", "indices"])
ModeResult = namedtuple("ModeResult", ["values", "indices"])

_RANKED = "x(3, 4); x(3, 4), 0; x(2, 5), -1, True; x(); x(), 0"
_MODES = "x(3, 4); fixed(np.array([2., 1., 2., 1.])); x(2, 5), 0, True"
_QUANTILES = """x(7), 0.3; x(3, 4), fixed(np.array([0.1, 0.6, 0.95])), 1; x(3, 4), 0.4, 0, True
    x(5), 0.37, interpolation="lower"; x(5), 0.37, interpolation="higher"; x(2, 4), share(2), -1
    x(5), 0.3, interpolation="midpoint"; x(5), 0.37, interpolation="nearest"; x(), 0.5"""


@functor("flow Tensor", out=True, samples="x(3, 4), 2; x(3, 4), 3, 0; x(2, 5), 1, -1, True; x(), 1")
def kthvalue(input: Ordered, k: Int, dim: Filled = -1, keepdim: KeepDim = False) -> KthvalueResult:
    """Return the k-th smallest element along a dimension, and where it stands.

    NaN counts as the greatest value. Which of equal elements is named is not said.

    ShapeError: when k is not from 1 to the size of the dimension.

    >>> flow.kthvalue(flow.tensor([3.0, 1.0, 2.0]), 2)
    KthvalueResult(values=tensor(2.), indices=tensor(2))
    """
    check_rank("kthvalue", k, 1, input, dim)
    return KthvalueResult(*dispatch1(KTHVALUE, input, {"k": k, "dim": dim, "keepdim": keepdim}))


@functor("flow Tensor", out=True, samples=_RANKED)
def median(input: Ordered, dim: Filled | None = None, keepdim: KeepDim = False) -> Any:
    """Return the median: the lower one of two middle elements, and NaN where there is a NaN.

    - `median(input)`: a 0-d tensor. The gradient is shared evenly among the elements that equal it.
    - `median(input, dim, keepdim=False)`: a named tuple `(values, indices)`; the gradient goes to
      the element at the index.

    >>> x = flow.tensor([[3.0, 1.0, 2.0]])
    >>> flow.median(x), flow.median(x, 1).values
    (tensor(2.), tensor([2.]))
    """
    if dim is None:
        return F.median_of_all(input)
    return MedianResult(*dispatch1(MEDIAN, input, {"dim": dim, "keepdim": keepdim}))


@functor("flow Tensor", out=True, samples=_RANKED)
def nanmedian(input: Ordered, dim: Filled | None = None, keepdim: KeepDim = False) -> Any:
    """Return the median of the elements that are not NaN; see `median`."""
    if dim is None:
        return F.nanmedian_of_all(input)
    return NanmedianResult(*dispatch1(NANMEDIAN, input, {"dim": dim, "keepdim": keepdim}))


@functor("flow Tensor", out=True, samples=_MODES)
def mode(input: Ordered, dim: Filled = -1, keepdim: KeepDim = False) -> ModeResult:
    """Return the most frequent element along a dimension, and where it stands last.

    Of elements that are equally frequent it is the smallest.

    >>> flow.mode(flow.tensor([3, 1, 2, 1, 2]))
    ModeResult(values=tensor(1), indices=tensor(3))
    """


def shares(op: str, q: Any, input: Tensor) -> Tensor:
    """Return q as a tensor of numbers from 0 to 1, of at most one dimension."""
    if not isinstance(q, Tensor):
        if not isinstance(q, (int, float)) or not 0 <= q <= 1:
            raise wrong(op, "q", "0 to 1", repr(q), "pass a share", ArgumentError)
        return input.new_full((), float(q))
    if q.ndim > 1:
        raise wrong(op, "q", "a number or a vector", q, "flatten it")
    if q.dtype != input.dtype:
        expected, mend = f"the dtype of input, {input.dtype}", "convert it with .to(input.dtype)"
        raise wrong(op, "q", expected, q.dtype, mend, DTypeError)
    return q


_WAYS = ("linear", "lower", "higher", "midpoint", "nearest")
Interpolation = Annotated[str, choice(*_WAYS, says="What is returned where a rank is not whole.")]


def _declare(name: str, document: str) -> Any:
    def author(
        input: RealFloating,
        q: float | Tensor,
        dim: Dim | None = None,
        keepdim: KeepDim = False,
        *,
        interpolation: Interpolation = "linear",
    ) -> Tensor:
        q, shape = shares(name, q, input), input.shape
        x, kept, reduced = input.reshape(-1), (1,) * len(shape), shape[:0]
        if dim is not None and shape:
            x, reduced = input.movedim(dim, -1), shape[:dim] + shape[dim + 1 :]
            kept = (*shape[:dim], 1, *shape[dim + 1 :])
        size = x.shape[-1]
        if not size:
            raise wrong(name, "input", "at least one element", input, "reduce another dimension")
        x = F.sort(x, -1).values  # NaN stands last
        if name == "nanquantile":
            ranks = q.reshape(-1) * ((~x.isnan()).sum(-1, True) - 1).clamp(min=0).to(x.dtype)
        else:
            ranks = (q.reshape(-1) * (size - 1)).expand(*x.shape[:-1], q.numel())
            ranks = ranks.masked_fill(x[..., -1:].isnan(), size - 1)
        rounding = {"lower": "floor", "higher": "ceil", "nearest": "round"}.get(interpolation)
        if rounding is not None:
            y = x.gather(-1, getattr(ranks.detach(), rounding)().long())
        else:
            below, above = ranks.detach().floor(), ranks.detach().ceil()
            weight = F.full_like(below, 0.5) if interpolation == "midpoint" else ranks - below
            y = x.gather(-1, below.long()).lerp(x.gather(-1, above.long()), weight)
        return y.movedim(-1, 0).reshape((*q.shape, *(kept if keepdim else reduced)))

    author.__name__ = name
    author.__doc__ = document
    return functor("flow Tensor", out=True, samples=_QUANTILES)(author)


quantile = _declare(
    "quantile",
    """Return quantiles along a dimension, or of all elements: the rank of q is q · (n - 1).

    Where there is a NaN, the result is NaN. The gradient goes to the elements it lies between.

    q: a number from 0 to 1, or a vector of them, whose quantiles come along a first dimension.
    dim: the dimension to reduce; None for the flattened tensor.
    ArgumentError: when q lies outside 0 … 1.
    DTypeError: when `input` is not real floating, or `q` of another dtype.
    ShapeError: when `q` has several dimensions, or there is no element.

    >>> x = flow.tensor([4.0, 1.0, 3.0, 2.0])
    >>> flow.quantile(x, 0.5), flow.quantile(x, flow.tensor([0.25, 0.75]))
    (tensor(2.5000), tensor([1.7500, 3.2500]))
    """,
)
nanquantile = _declare("nanquantile", "Return quantiles of what is not NaN; see `quantile`.")
