"""Sorting, elements by their rank, and values looked up in sequences, for users."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, arg_error
from oneflow_lite.functors.creation import tensor
from oneflow_lite.functors.declaring import domains
from oneflow_lite.functors.declaring.checks import check_tensor, require_integer
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    Dim,
    Flag,
    Int,
    KeepDim,
    Real,
    RealFloating,
    TensorOrNumber,
)
from oneflow_lite.functors.reduce import Filled
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1, promote
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

KTHVALUE = op_expr("kthvalue")
NANMEDIAN = op_expr("nanmedian")
TOPK = op_expr("topk")

SortResult = NamedTuple("SortResult", [("values", Tensor), ("indices", Tensor)])
TopkResult = NamedTuple("TopkResult", [("values", Tensor), ("indices", Tensor)])
KthvalueResult = NamedTuple("KthvalueResult", [("values", Tensor), ("indices", Tensor)])
MedianResult = NamedTuple("MedianResult", [("values", Tensor), ("indices", Tensor)])
NanmedianResult = NamedTuple("NanmedianResult", [("values", Tensor), ("indices", Tensor)])
ModeResult = NamedTuple("ModeResult", [("values", Tensor), ("indices", Tensor)])


def ordered(op: str, value: Tensor, argument: str = "input") -> Tensor:
    """Return `value` when its elements have an order; raise `DTypeError` otherwise."""
    if check_tensor(op, argument, value)._data.dtype.kind != "c":
        return value
    hint = "complex numbers have no order; sort abs() or real"
    raise arg_error(op, argument, "a real dtype", value.dtype, hint, DTypeError)


Ordered = Annotated[
    Tensor, domains.tensor(ordered, "fiub", "Of any real dtype.", DTypeError="When {x} is complex.")
]
Stable = Annotated[bool, domains.Domain("Sorting is always stable, either way.", early=True)]

_SORTED = "x(2, 3); x(3, 2), 0, True; x(2, 3), dim=-1, stable=True; x()"
_TOP = "x(2, 5), 2; x(3, 2), 2, 0, False; x(4), 3, -1, True, True"


@functor("flow Tensor", out="same", samples=_SORTED)
def sort(
    input: Ordered, dim: Dim = -1, descending: Flag = False, *, stable: Stable = False
) -> SortResult:
    """Return the elements sorted along a dimension, and where they stood; falling if `descending`.

    NaN counts as the greatest value. Equal elements always keep their order.

    >>> flow.sort(flow.tensor([3., 1., 2.]))
    SortResult(values=tensor([1., 2., 3.]), indices=tensor([1, 2, 0]))
    """


@functor("flow Tensor", out="same", samples=_SORTED)
def argsort(
    input: Ordered, dim: Dim = -1, descending: Flag = False, *, stable: Stable = False
) -> Tensor:
    """Return the indices that sort a tensor along a dimension; see `sort`."""


@functor("flow Tensor", out="same", samples="x(3, 2); x(4)")
def msort(input: Ordered) -> Tensor:
    """Return the tensor sorted along its first dimension."""
    return sort(input, 0).values


@functor("flow Tensor", out="same", samples=_TOP)
def topk(
    input: Ordered, k: Int, dim: Dim = -1, largest: Flag = True, sorted: Flag = True
) -> TopkResult:
    """Return the k largest, or smallest, elements along a dimension and where they stood.

    NaN counts as the greatest value. Among equal elements, any may be taken.

    sorted: whether they come in order.
    ShapeError: when k is not from 0 to the size of the dimension.

    >>> flow.topk(flow.tensor([3., 1., 4., 2.]), 2).indices
    tensor([2, 0])
    """
    check_rank("topk", k, 0, input, dim)
    attrs = {"k": k, "dim": dim, "largest": largest, "sorted": sorted}
    return TopkResult(*dispatch1(TOPK, input, attrs))


def check_rank(op: str, k: int, least: int, input: Tensor, dim: int) -> None:
    """Raise `ShapeError` unless a dimension has so many elements."""
    shape = input._data.shape
    size = shape[dim] if shape else 1
    if not least <= k <= size:
        expected = f"{least} to {size} for dimension {dim} of shape {shape}"
        raise arg_error(op, "k", expected, k, "ask for fewer elements")


# --- Elements by their rank or their number -------------------------------------------------------

_MEDIAN = "dim: None = ... -> Tensor; dim: int -> {}"
_RANKED = "x(3, 4); x(3, 4), 0; x(2, 5), -1, True; x(); x(), 0"
_MODES = "x(3, 4); fixed(np.array([2., 1., 2., 1.])); x(2, 5), 0, True"
_QUANTILES = """x(7), 0.3; x(3, 4), fixed(np.array([0.1, 0.6, 0.95])), 1; x(3, 4), 0.4, 0, True
    x(5), 0.37, interpolation="lower"; x(5), 0.37, interpolation="higher"; x(2, 4), share(2), -1
    x(5), 0.3, interpolation="midpoint"; x(5), 0.37, interpolation="nearest"; x(), 0.5"""


@functor(
    "flow Tensor", out="same", samples="x(3, 4), 2; x(3, 4), 3, 0; x(2, 5), 1, -1, True; x(), 1"
)
def kthvalue(input: Ordered, k: Int, dim: Filled = -1, keepdim: KeepDim = False) -> KthvalueResult:
    """Return the k-th smallest element along a dimension, and where it stands.

    NaN counts as the greatest value. Among equal elements, any may be named.

    ShapeError: when k is not from 1 to the size of the dimension.

    >>> flow.kthvalue(flow.tensor([3.0, 1.0, 2.0]), 2)
    KthvalueResult(values=tensor(2.), indices=tensor(2))
    """
    check_rank("kthvalue", k, 1, input, dim)
    return KthvalueResult(*dispatch1(KTHVALUE, input, {"k": k, "dim": dim, "keepdim": keepdim}))


@functor("flow Tensor", out="same", samples=_RANKED, results=_MEDIAN.format("MedianResult"))
def median(input: Ordered, dim: Filled | None = None, keepdim: KeepDim = False) -> Any:
    """Return the median: the lower of two middle elements, and NaN if an element is NaN.

    Without `dim`, the elements that equal it share the gradient evenly. Along a dimension, the
    result is a named tuple `(values, indices)`, and the gradient goes to the element at the index.

    >>> x = flow.tensor([[3.0, 1.0, 2.0]])
    >>> flow.median(x), flow.median(x, 1).values
    (tensor(2.), tensor([2.]))
    """
    if dim is None:
        return F.median_of_all(input)
    return MedianResult(*dispatch1(op_expr("median"), input, {"dim": dim, "keepdim": keepdim}))


@functor("flow Tensor", out="same", samples=_RANKED, results=_MEDIAN.format("NanmedianResult"))
def nanmedian(input: Ordered, dim: Filled | None = None, keepdim: KeepDim = False) -> Any:
    """Return the median of the elements that are not NaN; see `median`."""
    if dim is None:
        return F.nanmedian_of_all(input)
    return NanmedianResult(*dispatch1(NANMEDIAN, input, {"dim": dim, "keepdim": keepdim}))


@functor("flow Tensor", out="same", samples=_MODES)
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
            raise arg_error(op, "q", "0 to 1", repr(q), "pass a share", ArgumentError)
        return input.new_full((), float(q))
    if q.ndim > 1:
        raise arg_error(op, "q", "a number or a vector", q, "flatten it")
    if q.dtype != input.dtype:
        expected, hint = f"the dtype of input, {input.dtype}", "convert it with .to(input.dtype)"
        raise arg_error(op, "q", expected, q.dtype, hint, DTypeError)
    return q


_WAYS = domains.choice("linear", "lower", "higher", "midpoint", "nearest")
Interpolation = Annotated[str, _WAYS._replace(says="The value where a rank is not whole.")]


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
            raise arg_error(
                name, "input", "at least one element", input, "reduce another dimension"
            )
        x = F.sort(x, -1).values  # NaN stands last
        if name == "nanquantile":
            ranks = q.reshape(-1) * ((~x.isnan()).sum(-1, True) - 1).clamp(min=0).to(x.dtype)
        else:
            ranks = (q.reshape(-1) * (size - 1)).expand(*x.shape[:-1], q.numel())
            # A line with a NaN answers with its last element, the NaN.
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
    return functor("flow Tensor", out="same", samples=_QUANTILES)(author)


quantile = _declare(
    "quantile",
    """Return quantiles along a dimension, or of all elements: the rank of q is q · (n - 1).

    Where there is a NaN, the result is NaN. The gradient goes to the elements that the quantile
    lies between.

    q: a number from 0 to 1, or a vector of them, whose quantiles come along a first dimension.
    dim: None for the flattened tensor.
    ArgumentError: when q lies outside 0 … 1.
    ShapeError: when `q` has several dimensions, or there is no element.

    >>> x = flow.tensor([4.0, 1.0, 3.0, 2.0])
    >>> flow.quantile(x, 0.5), flow.quantile(x, flow.tensor([0.25, 0.75]))
    (tensor(2.5000), tensor([1.7500, 3.2500]))
    """,
)
nanquantile = _declare(
    "nanquantile", "Return quantiles of the elements that are not NaN; see `quantile`."
)


# --- Values looked up in sequences ----------------------------------------------------------------

_SEQUENCE = "fixed(np.array([1.0, 2.0, 2.0, 5.0]))"
_SEARCHED = f"""{_SEQUENCE}, fixed(x(2, 3)); {_SEQUENCE}, 2.0, right=True
    {_SEQUENCE}, fixed(x(3)), out_int32=True
    fixed(np.arange(6.0).reshape(2, 3)), fixed(pos(2, 4)), side="right"
    fixed(np.array([2.0, 1.0])), fixed(pos(3)), sorter=fixed(np.array([1, 0]))"""
_FOUND = "fixed(i(2, 3)), i(4); i(2, 3), 2, invert=True; 2, i(4), assume_unique=True"


@functor("flow", out="same", spelled="self=input", samples=_SEARCHED)
def searchsorted(
    sorted_sequence: Real,
    input: TensorOrNumber,
    *,
    out_int32: Flag = False,
    right: Flag = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return where values would be inserted into a sequence to keep it in order.

    sorted_sequence: a vector, or a line along the last dimension for each line of the values.
    input: a real Tensor, or a number.
    right: insert behind equal elements instead of in front of them.
    side: "left" or "right"; another way to give `right`.
    sorter: the indices that sort the sequence, where it is not in order.
    ShapeError, DTypeError, ArgumentError: when arguments do not fit together.

    >>> flow.searchsorted(flow.tensor([1, 3, 5]), flow.tensor([3, 4]))
    tensor([1, 2])
    """
    op = "searchsorted"
    if side not in (None, "left", "right") or (side == "left" and right):
        expected, hint = "'left' or 'right', in accord with right=", "give one of the two alone"
        raise arg_error(op, "side", expected, repr(side), hint, ArgumentError)
    right = right or side == "right"
    return _searched(op, sorted_sequence, input, sorter, out_int32=out_int32, right=right)


@functor(
    "flow",
    out="same",
    spelled="self=input",
    samples=f"fixed(x(2, 3)), {_SEQUENCE}; 2.0, {_SEQUENCE}, right=True",
)
def bucketize(
    input: TensorOrNumber, boundaries: Tensor, *, out_int32: Flag = False, right: Flag = False
) -> Tensor:
    """Return the number of the bucket, between ordered boundaries, that each value falls into.

    input, boundaries: a real Tensor or a number, and a vector in rising order.
    right: count a value that equals a boundary to the bucket behind it.
    ShapeError, DTypeError: when arguments do not fit together.
    """
    if check_tensor("bucketize", "boundaries", boundaries).ndim != 1:
        raise arg_error("bucketize", "boundaries", "a vector", boundaries, "flatten it")
    return _searched("bucketize", boundaries, input, None, out_int32=out_int32, right=right)


def _searched(op: str, sequence: Tensor, values: Any, sorter: Any, **attrs: bool) -> Tensor:
    sequence, values = promote(op, sequence.detach(), _given(values, sequence))
    shape, own = sequence.shape, values.shape
    if not shape or (len(shape) > 1 and shape[:-1] != own[:-1]) or sequence.is_complex():
        expected = f"a real vector, or lines for values of shape {own}"
        got, hint = f"{sequence.dtype} of shape {shape}", "give both the same leading dimensions"
        raise arg_error(op, "sorted_sequence", expected, got, hint)
    if sorter is not None and require_integer(op, sorter, "sorter").shape != shape:
        expected = f"the shape of the sequence, {shape}"
        raise arg_error(op, "sorter", expected, sorter.shape, "take that of argsort()")
    return dispatch(op_expr("searchsorted"), (sequence, values, sorter), attrs)


def _given(value: Any, other: Tensor) -> Tensor:
    """Return a value without gradient; a number becomes a tensor on the device of `other`."""
    return value.detach() if isinstance(value, Tensor) else tensor(value, device=other.device)


@functor("flow", out="same", spelled="element=elements test_element=test_elements", samples=_FOUND)
def isin(
    elements: TensorOrNumber,
    test_elements: TensorOrNumber,
    *,
    assume_unique: Flag = False,
    invert: Flag = False,
) -> Tensor:
    """Return, as bools, which elements are among the test elements.

    elements, test_elements: real Tensors, one of which may be a number.
    assume_unique: say that neither holds a value twice, which is quicker.
    invert: return which are not.
    ArgumentTypeError: when neither is a Tensor.

    >>> flow.isin(flow.tensor([1, 2, 3]), flow.tensor([2, 5]))
    tensor([False,  True, False])
    """
    both = (elements, test_elements)
    tensors = [value for value in both if isinstance(value, Tensor)]
    if not tensors:
        expected, got = "a Tensor, as elements or as test_elements", type(elements).__name__
        hint = "wrap one with flow.tensor(...)"
        raise arg_error("isin", "elements", expected, got, hint, ArgumentTypeError)
    x, y = (_given(value, tensors[0]) for value in both)
    if x.is_complex() or y.is_complex():
        got, hint = f"{x.dtype} and {y.dtype}", "compare .real and .imag"
        raise arg_error("isin", "elements", "real dtypes", got, hint, DTypeError)
    return dispatch(op_expr("isin"), (x, y), {"assume_unique": assume_unique, "invert": invert})
