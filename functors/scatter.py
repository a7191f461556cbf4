"""gather, scatter and their kin: what users call to read or write along one dimension."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from oneflow_lite.errors import ArgumentError, ArgumentTypeError, ShapeError
from oneflow_lite.functors.arithmetic import clamp_min
from oneflow_lite.functors.checks import check_dim, numeric, real
from oneflow_lite.functors.creation import full, ones_like, zeros_like
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Dim, Flag, Integer, choice
from oneflow_lite.functors.fill_value import fill_value
from oneflow_lite.functors.indexing import GETITEM_ADVANCED, getitem
from oneflow_lite.functors.masking import check_same_dtype, masked_fill
from oneflow_lite.functors.shape import expand, reshape
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

GATHER = op_expr("gather")
SCATTER = op_expr("scatter")
SCATTER_ADD = op_expr("scatter_add")
SCATTER_MULTIPLY = op_expr("scatter_multiply")
SCATTER_MASK = op_expr("scatter_mask")
SCATTER_REDUCTIONS = {
    "sum": SCATTER_ADD,
    "mean": SCATTER_ADD,
    "prod": op_expr("scatter_prod"),
    "amax": op_expr("scatter_amax"),
    "amin": op_expr("scatter_amin"),
}
INDEX_FROM_ZERO = op_expr("index_from_zero")


@functor(
    "flow Tensor",
    out=True,
    samples="x(3, 4), 1, i(3, 2, n=4); x(3, 4), -2, i(2, 4, n=3); x(), 0, i(n=1)",
)
def gather(input: AnyTensor, dim: Dim, index: Integer, *, sparse_grad: bool = False) -> Tensor:
    """Return the elements of `input` that `index` names along `dim`.

    For three dimensions and `dim=1`, y[i, j, k] = input[i, index[i, j, k], k].

    index: with as many dimensions as `input`, no larger than it in any but `dim`. The result has
        its shape.
    sparse_grad: only False: gradients are dense.
    IndexRangeError: when an index is negative or too large (on CUDA the values are not looked at).
    ShapeError: when shapes do not fit.

    >>> flow.gather(flow.tensor([[1, 2], [3, 4]]), 1, flow.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    if sparse_grad:
        raise ArgumentError("gather(): argument 'sparse_grad': gradients are dense; pass False")
    _check_index("gather", input, dim, index)
    return dispatch(GATHER, (input, index), {"dim": dim})


_PLACES = "x(3, 4), 1, fixed(np.array([[0, 2], [3, 1]]))"


@functor(
    "flow Tensor",
    out=True,
    twin=True,
    samples=f"""
    {_PLACES}, x(2, 2); {_PLACES}, 0.5; {_PLACES}, x(3, 3); {_PLACES}, value=2.0
    {_PLACES}, x(2, 2), reduce="add"; x(), 0, i(n=1), x()
""",
)
def scatter(
    input: AnyTensor,
    dim: Dim,
    index: Integer,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """Return `input` with values written to the places that `index` names along `dim`.

    For three dimensions and `dim=1`, y[i, index[i, j, k], k] = src[i, j, k]. Of several values for
    one place the last one stays, and only that one gets a gradient. (PyTorch gives the overwritten
    ones a gradient as well. On CUDA it is not said which one stays.)

    index: with as many dimensions as `input`.
    src: a number, or a Tensor of the dtype of `input`, at least as large as `index` in every
        dimension.
    value: a number instead of `src`.
    reduce: "add" or "multiply": add to what is there, or multiply it, instead of replacing it.
        "multiply" has no gradient; that of `scatter_reduce` has.
    IndexRangeError: when an index is negative or too large (on CUDA the values are not looked at).
    ShapeError, DTypeError: when shapes or dtypes do not fit.
    ArgumentError: when `reduce` is unknown.

    >>> flow.scatter(flow.zeros(2, 3), 1, flow.tensor([[2], [0]]), 5.)
    tensor([[0., 0., 5.],
            [5., 0., 0.]])
    """
    _check_index("scatter", input, dim, index)
    if reduce not in (None, "add", "multiply"):
        expected = "'add', 'multiply' or None"
        mend = "name one of these"
        raise ArgumentError(
            f"scatter(): argument 'reduce': expected {expected}, got {reduce!r}; {mend}"
        )
    if (src is None) == (value is None):
        got = "both" if src is not None else "neither"
        expected = "either src or value"
        raise ArgumentTypeError(
            f"scatter(): argument 'src': expected {expected}, got {got}; pass one of them"
        )
    if not isinstance(src, Tensor):
        number = value if src is None else src
        number = fill_value("scatter", "value" if src is None else "src", number, input.dtype)
        if reduce is None:
            return masked_fill(input, _written(input, dim, index), number)
        src = full(index.shape, number, dtype=input.dtype, device=input.device)
    src = _check_source("scatter", input, index, src)
    op = {None: SCATTER, "add": SCATTER_ADD, "multiply": SCATTER_MULTIPLY}[reduce]
    return dispatch(op, (input, index, src), {"dim": dim})


@functor(
    "flow Tensor",
    out=True,
    twin=True,
    samples=f"""
    {_PLACES}, x(2, 2); x(3, 4), -2, i(5, 4, n=3), x(5, 4); x(3, 4), 0, i(2, 2, n=3), x(4, 4)
""",
)
def scatter_add(input: AnyTensor, dim: Dim, index: Integer, src: AnyTensor) -> Tensor:
    """Return `input` with values added at the places that `index` names along `dim`.

    For three dimensions and `dim=1`, y[i, index[i, j, k], k] += src[i, j, k]; values for one place
    sum up. Arguments and errors are those of `scatter`.

    >>> flow.scatter_add(flow.zeros(3), 0, flow.tensor([0, 2, 0]), flow.tensor([1., 2., 3.]))
    tensor([4., 0., 2.])
    """
    _check_index("scatter_add", input, dim, index)
    src = _check_source("scatter_add", input, index, src)
    return dispatch(SCATTER_ADD, (input, index, src), {"dim": dim})


Reduce = Annotated[
    str, choice("sum", "prod", "mean", "amax", "amin", says="How values for one place are joined.")
]


@functor(
    "flow Tensor",
    out=True,
    twin=True,
    samples=f"""
    {_PLACES}, x(2, 2), "sum"; x(3, 4), 0, i(5, 4, n=3), x(5, 4), "prod"
    x(3, 4), 0, i(5, 4, n=3), x(5, 4), "mean", include_self=False
    x(3, 4), -1, i(3, 6, n=4), x(3, 6), "amax"
    x(3, 4), 1, i(2, 6, n=4), x(3, 6), "amin", include_self=False
    x(4), 0, i(6, n=3), x(6), "prod", include_self=False
""",
)
def scatter_reduce(
    input: AnyTensor,
    dim: Dim,
    index: Integer,
    src: AnyTensor,
    reduce: Reduce,
    *,
    include_self: Flag = True,
) -> Tensor:
    """Return `input` with values joined to it at the places that `index` names along `dim`.

    The gradient of a product holds where factors are zero, too; that of an extremum is shared
    evenly among the values that equal it.

    src: of the dtype of `input`, at least as large as `index` in every dimension.
    include_self: whether what stands in `input` takes part where values are written.
    IndexRangeError: when an index is negative or too large (on CUDA the values are not looked at).
    ShapeError, DTypeError: when shapes or dtypes do not fit, or numbers have no order.

    >>> x, index = flow.tensor([1.0, 2.0, 3.0]), flow.tensor([0, 0, 2])
    >>> flow.scatter_reduce(x, 0, index, flow.tensor([4.0, 5.0, 6.0]), "prod")
    tensor([20.,  2., 18.])
    """
    _check_index("scatter_reduce", input, dim, index)
    src = _check_source("scatter_reduce", input, index, src)
    return reduced_at("scatter_reduce", input, dim, index, src, reduce, include_self)


def reduced_at(
    op: str, input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    """Join values of the shape of `index` to `input`, on behalf of an op."""
    real(op, input) if reduce in ("amax", "amin") else None
    numeric(op, input) if reduce == "mean" else None
    start = input
    if not include_self:
        neutral = neutral_element(reduce, input.dtype)
        start = masked_fill(input, _written(input, dim, index), neutral)
    attrs = {"dim": dim}
    result: Tensor = dispatch(SCATTER_REDUCTIONS[reduce], (start, index, src), attrs)
    if reduce != "mean":
        return result
    count = ones_like(input) if include_self else zeros_like(input)
    count = dispatch(SCATTER_ADD, (count, index, ones_like(src)), attrs)
    if input.is_complex():
        return result / masked_fill(count, count == 0, 1)
    count = clamp_min(count, 1)
    return result / count if input.is_floating_point() else result // count


def neutral_element(reduce: str, dtype: np.dtype[Any]) -> Any:
    """Return the number that changes nothing when it is joined to others."""
    if reduce not in ("amax", "amin"):
        return int(reduce == "prod")
    if dtype.kind == "f":
        return -math.inf if reduce == "amax" else math.inf
    if dtype.kind == "b":
        return reduce == "amin"
    limits = np.iinfo(dtype)
    return int(limits.min if reduce == "amax" else limits.max)


@functor(
    "flow Tensor",
    out=True,
    samples="""
    x(3, 4), i(3, 2, n=4), 1; x(3, 4), i(1, 4, n=3, low=-3), -2; x(3, 4), i(5, n=12)
    x(1, 4), i(3, 2, n=4), 1
""",
)
def take_along_dim(input: AnyTensor, indices: Integer, dim: int | None = None) -> Tensor:
    """Return the elements named along `dim`, as `gather`, with shapes broadcast in the others.

    Without `dim` both are flattened. Indices count from the end when negative.

    DimError: when there is no such dimension.
    ShapeError: when shapes do not broadcast.

    >>> x = flow.tensor([[3., 1., 2.], [6., 5., 4.]])
    >>> flow.take_along_dim(x, flow.argsort(x, dim=1), dim=1)
    tensor([[1., 2., 3.],
            [4., 5., 6.]])
    """
    op = "take_along_dim"
    if dim is None:
        input, indices, dim = reshape(input, -1), reshape(indices, -1), 0
    dim = check_dim(op, dim, input.ndim)
    if input.ndim != indices.ndim:
        expected = f"as many dimensions as input has, {input.ndim}"
        mend = "unsqueeze it, or leave dim out"
        raise ShapeError(
            f"{op}(): argument 'indices': expected {expected}, got shape {indices.shape}; {mend}"
        )
    if input.ndim:
        have, want = list(input.shape), list(indices.shape)
        for k, (n, m) in enumerate(zip(input.shape, indices.shape, strict=True)):
            if k == dim or n == m:
                continue
            if 1 not in (n, m):
                expected = f"a shape that broadcasts with {input.shape} except in dim {dim}"
                mend = "make the sizes equal or 1"
                raise ShapeError(
                    f"{op}(): argument 'indices': expected {expected}, got {indices.shape}; {mend}"
                )
            have[k] = want[k] = m if n == 1 else n
        input, indices = expand(input, have), expand(indices, want)
    index = from_zero(op, "indices", indices, input.shape[dim] if input.ndim else 1)
    return dispatch(GATHER, (input, index), {"dim": dim})


def from_zero(op: str, argument: str, index: Tensor, size: int, negative: bool = True) -> Tensor:
    """Return indices counted from 0, checked where their values are at hand."""
    attrs = {"size": size, "op": op, "argument": argument, "negative": negative}
    return dispatch1(INDEX_FROM_ZERO, index, attrs)


@functor("flow Tensor", out=True, samples="x(3, 4), i(2, 3, n=12, low=-12); x(4), i(n=4)")
def take(input: AnyTensor, index: Integer) -> Tensor:
    """Return the elements that `index` names in the flattened tensor, in the shape of `index`.

    IndexRangeError: when an index is out of range (on CUDA the values are not looked at).

    >>> flow.take(flow.tensor([[1, 2], [3, 4]]), flow.tensor([3, 0]))
    tensor([4, 1])
    """
    places = from_zero("take", "index", index, input.numel())
    return dispatch(GETITEM_ADVANCED, (reshape(input, -1), places), {"dims": (0,)})


@functor(
    "flow Tensor",
    twin=True,
    samples="""
    x(3, 4), fixed(np.array([[0, 5], [-1, 7]])), x(2, 2); x(4), i(3, n=4), x(3), True
""",
)
def put(input: AnyTensor, index: Integer, source: AnyTensor, accumulate: Flag = False) -> Tensor:
    """Return `input` with values written where `index` names its flattened elements.

    Of several values for one element the last one stays, and only that one gets a gradient.

    source: of the dtype of `input`, with as many elements as `index`.
    accumulate: add the values instead.
    IndexRangeError: when an index is out of range (on CUDA the values are not looked at).
    ShapeError, DTypeError: when `source` does not fit.

    >>> flow.put(flow.zeros(2, 2), flow.tensor([3, 0]), flow.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 1.]])
    """
    check_same_dtype("put", input, "source", source)
    if source.numel() != index.numel():
        expected = f"{index.numel()} elements, one for each index"
        mend = "give one value for each index"
        raise ShapeError(
            f"put(): argument 'source': expected {expected}, got shape {source.shape}; {mend}"
        )
    places = from_zero("put", "index", reshape(index, -1), input.numel())
    inputs = (reshape(input, -1), places, reshape(source, -1))
    result = dispatch(SCATTER_ADD if accumulate else SCATTER, inputs, {"dim": 0})
    return reshape(result, input.shape)


# Checks


def _written(input: Tensor, dim: int, index: Tensor) -> Tensor:
    return dispatch1(SCATTER_MASK, index, {"dim": dim, "shape": input.shape})


def _check_index(op: str, input: Tensor, dim: int, index: Tensor) -> None:
    """Check the shape of `index` against that of `input`."""
    shape, places = input._data.shape, index._data.shape
    fits = max(len(shape), 1) == max(len(places), 1) and all(
        m <= n for k, (n, m) in enumerate(zip(shape, places, strict=False)) if k != dim
    )
    if not fits and 0 not in places:
        expected = f"as many dimensions as {shape} and no size above it except in dim {dim}"
        mend = "expand or crop the index"
        raise ShapeError(
            f"{op}(): argument 'index': expected {expected}, got shape {places}; {mend}"
        )


def _check_source(op: str, input: Tensor, index: Tensor, src: Tensor) -> Tensor:
    """Return the part of `src` that `index` stands for."""
    check_same_dtype(op, input, "src", src)
    have, want = src.shape, index.shape
    if have == want:
        return src
    if len(have) == len(want) and all(n >= m for n, m in zip(have, want, strict=True)):
        return getitem(src, tuple(slice(n) for n in want))
    if 0 in want:  # nothing is written, whatever the shape of src
        return full(want, 0, dtype=src.dtype, device=src.device)
    expected = f"at least the shape of index, {want}"
    mend = "expand it, or crop the index"
    raise ShapeError(f"{op}(): argument 'src': expected {expected}, got shape {have}; {mend}")
