"""Elements by their rank or their number: k-th value, median, quantiles, mode; what users call."""

from __future__ import annotations

from collections import namedtuple
from typing import Annotated, Any

from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError
from oneflow_lite.functors.checks import check_dim
from oneflow_lite.functors.creation import full_like, tensor as make
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Int, KeepDim, RealFloating, choice
from oneflow_lite.functors.extrema import FilledDim
from oneflow_lite.functors.scatter import gather
from oneflow_lite.functors.shape import movedim, reshape
from oneflow_lite.functors.sorting import Ordered, check_rank, sort
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

KTHVALUE = op_expr("kthvalue")
MEDIAN = op_expr("median"), op_expr("median_of_all")
NANMEDIAN = op_expr("nanmedian"), op_expr("nanmedian_of_all")


KthvalueResult = namedtuple("KthvalueResult", ["values", "indices"])
MedianResult = namedtuple("MedianResult", ["values", "indices"])
NanmedianResult = namedtuple("NanmedianResult", ["values", "indices"])
ModeResult = namedtuple("ModeResult", ["values", "indices"])


_RANKED = "x(3, 4); x(3, 4), 0; x(2, 5), -1, True; x(); x(), 0"


@functor("flow Tensor", out=True, samples="x(3, 4), 2; x(3, 4), 3, 0; x(2, 5), 1, -1, True; x(), 1")
def kthvalue(
    input: Ordered, k: Int, dim: FilledDim = -1, keepdim: KeepDim = False
) -> KthvalueResult:
    """Return the k-th smallest element along a dimension, and where it stands.

    NaN counts as the greatest value. Which of equal elements is named is not said.

    k: 1 to the size of the dimension.
    ShapeError: when there are fewer than k elements.

    >>> flow.kthvalue(flow.tensor([3.0, 1.0, 2.0]), 2)
    KthvalueResult(values=tensor(2.), indices=tensor(2))
    """
    check_rank("kthvalue", k, 1, input, dim)
    return KthvalueResult(*dispatch(KTHVALUE, (input,), {"k": k, "dim": dim, "keepdim": keepdim}))


@functor("flow Tensor", out=True, samples=_RANKED)
def median(input: Ordered, dim: FilledDim | None = None, keepdim: KeepDim = False) -> Any:
    """Return the median: the lower one of two middle elements, and NaN where there is a NaN.

    - `median(input)`: a 0-d tensor. The gradient is shared evenly among the elements that equal it.
    - `median(input, dim, keepdim=False)`: a named tuple `(values, indices)`; the gradient goes to
      the element at the index.

    >>> x = flow.tensor([[3.0, 1.0, 2.0]])
    >>> flow.median(x), flow.median(x, 1).values
    (tensor(2.), tensor([2.]))
    """
    if dim is None:
        return dispatch1(MEDIAN[1], input)
    return MedianResult(*dispatch(MEDIAN[0], (input,), {"dim": dim, "keepdim": keepdim}))


@functor("flow Tensor", out=True, samples=_RANKED)
def nanmedian(input: Ordered, dim: FilledDim | None = None, keepdim: KeepDim = False) -> Any:
    """Return the median of the elements that are not NaN; see `median`.

    >>> flow.nanmedian(flow.tensor([3.0, float("nan"), 2.0]))
    tensor(2.)
    """
    if dim is None:
        return dispatch1(NANMEDIAN[1], input)
    return NanmedianResult(*dispatch(NANMEDIAN[0], (input,), {"dim": dim, "keepdim": keepdim}))


@functor(
    "flow Tensor", out=True, samples="x(3, 4); fixed(np.array([2., 1., 2., 1.])); x(2, 5), 0, True"
)
def mode(input: Ordered, dim: FilledDim = -1, keepdim: KeepDim = False) -> ModeResult:
    """Return the most frequent element along a dimension, and where it stands last.

    Of elements that are equally frequent it is the smallest.

    >>> flow.mode(flow.tensor([3, 1, 2, 1, 2]))
    ModeResult(values=tensor(1), indices=tensor(3))
    """


Interpolation = Annotated[
    str,
    choice(
        "linear",
        "lower",
        "higher",
        "midpoint",
        "nearest",
        says="What is returned where a rank is not whole.",
    ),
]
_QUANTILES = """x(7), 0.3; x(3, 4), fixed(np.array([0.1, 0.6, 0.95])), 1; x(3, 4), 0.4, 0, True
    x(5), 0.37, interpolation="lower"; x(5), 0.37, interpolation="higher"; x(2, 4), share(2), -1
    x(5), 0.3, interpolation="midpoint"; x(5), 0.37, interpolation="nearest"; x(), 0.5"""


@functor("flow Tensor", out=True, samples=_QUANTILES)
def quantile(
    input: RealFloating,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: KeepDim = False,
    *,
    interpolation: Interpolation = "linear",
) -> Tensor:
    """Return quantiles along a dimension, or of all elements: the rank of q is q · (n - 1).

    Where there is a NaN, the result is NaN. The gradient goes to the elements it lies between.

    q: a number from 0 to 1, or a vector of them of the dtype of `input`, whose quantiles then come
        along a first dimension of the result.
    dim: the dimension to reduce; None for the flattened tensor.
    ArgumentError: when q lies outside 0 … 1.
    DimError: when `dim` is out of range.
    ShapeError: when `q` has several dimensions, or there is no element.

    >>> x = flow.tensor([4.0, 1.0, 3.0, 2.0])
    >>> flow.quantile(x, 0.5), flow.quantile(x, flow.tensor([0.25, 0.75]))
    (tensor(2.5000), tensor([1.7500, 3.2500]))
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@functor("flow Tensor", out=True, samples=_QUANTILES)
def nanquantile(
    input: RealFloating,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: KeepDim = False,
    *,
    interpolation: Interpolation = "linear",
) -> Tensor:
    """Return quantiles of the elements that are not NaN; see `quantile`.

    >>> flow.nanquantile(flow.tensor([1.0, float("nan"), 2.0]), 0.5)
    tensor(1.5000)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


def _quantile(
    op: str, input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, skip: bool
) -> Tensor:
    shape = input.shape
    q = _shares(op, q, input)
    if dim is None:
        x, kept = reshape(input, -1), (1,) * len(shape)
    else:
        dim = check_dim(op, dim, len(shape))
        x = movedim(input, dim, -1) if shape else reshape(input, 1)
        kept = shape[:dim] + (1,) * bool(shape) + shape[dim + 1 :]
    size = x.shape[-1]
    if not size:
        expected = "at least one element"
        mend = "reduce another dimension"
        raise ShapeError(
            f"{op}(): argument 'input': expected {expected}, got shape {shape}; {mend}"
        )
    x = sort(x, -1).values  # NaN stands last
    if skip:
        last = ((~x.isnan()).sum(-1, True) - 1).clamp(min=0).to(x.dtype)
        ranks = reshape(q, -1) * last
    else:
        ranks = (reshape(q, -1) * (size - 1)).expand(*x.shape[:-1], q.numel())
        ranks = ranks.masked_fill(x[..., -1:].isnan(), size - 1)
    rounding = {"lower": "floor", "higher": "ceil", "nearest": "round"}.get(interpolation)
    if rounding is not None:
        y = gather(x, -1, getattr(ranks.detach(), rounding)().long())
    else:
        below = ranks.detach().floor()
        weight = full_like(below, 0.5) if interpolation == "midpoint" else ranks - below
        y = gather(x, -1, below.long()).lerp(gather(x, -1, ranks.detach().ceil().long()), weight)
    reduced = [n for k, n in enumerate(shape) if k != dim] if dim is not None else []
    return reshape(movedim(y, -1, 0), (*q.shape, *(kept if keepdim else reduced)))


def _shares(op: str, q: Any, input: Tensor) -> Tensor:
    """Return q as a tensor of numbers from 0 to 1, of at most one dimension."""
    if not isinstance(q, Tensor):
        if not isinstance(q, (int, float)) or not 0 <= q <= 1:
            raise ArgumentError(f"{op}(): argument 'q': expected 0 to 1, got {q!r}; pass a share")
        return make(float(q), dtype=input.dtype, device=input.device)
    if q.ndim > 1:
        expected = "a number or a vector"
        raise ShapeError(
            f"{op}(): argument 'q': expected {expected}, got shape {q.shape}; flatten it"
        )
    if q.dtype != input.dtype:
        expected = f"the dtype of input, {input.dtype}"
        mend = "convert it with .to(input.dtype)"
        raise DTypeError(f"{op}(): argument 'q': expected {expected}, got {q.dtype}; {mend}")
    return q
