"""Reductions of the segments of a dimension: what users call."""

from __future__ import annotations

from typing import Annotated

from oneflow_lite.errors import ArgumentTypeError
from oneflow_lite.functors.checks import cast, check_dim, require_integer, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Flag, RealFloating, choice
from oneflow_lite.functors.scatter import neutral_element, reduced_at
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

SEGMENT_IDS = op_expr("segment_ids")


@functor(
    "flow",
    samples="""
    x(5), "sum", lengths=fixed([2, 0, 3]); x(5, 2), "max", lengths=fixed([2, 3])
    x(5), "prod", lengths=fixed([2, 0, 3]); x(5), "min", offsets=fixed([0, 2, 2, 5]), initial=9.0
    x(2, 4), "mean", lengths=fixed([[1, 3], [2, 2]]), axis=1""",
)
def segment_reduce(
    data: RealFloating,
    reduce: Annotated[str, choice("sum", "mean", "prod", "max", "min")],
    *,
    lengths: Tensor | None = None,
    indices: None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: Flag = False,
    initial: float | None = None,
) -> Tensor:
    """Return the reduction of each segment of a dimension.

    The gradient of a product holds where factors are zero, too; that of an extremum is shared
    evenly among the values that equal it.

    lengths: of the segments one after the other, integers, (*data.shape[:axis], segments).
    indices: only None.
    offsets: instead of lengths: where segments begin, and where the last one ends.
    unsafe: do not check that the segments cover `data`.
    initial: what reductions begin with; by default an empty segment gives 0, NaN, 1, -inf or inf.
    ArgumentTypeError, ShapeError, DTypeError: when lengths or offsets do not fit.

    >>> flow.segment_reduce(flow.tensor([1.0, 2.0, 5.0]), "max", lengths=flow.tensor([2, 1]))
    tensor([2., 5.])
    """
    op = "segment_reduce"
    if (lengths is None) == (offsets is None) or indices is not None:
        expected, got = "either lengths or offsets, and no indices", "both or neither"
        raise wrong(op, "lengths", expected, got, "pass one of them", ArgumentTypeError)
    if lengths is None:
        ends = require_integer(op, offsets, "offsets")  # type: ignore[arg-type]
        lengths = ends.narrow(-1, 1, ends.shape[-1] - 1) - ends.narrow(-1, 0, ends.shape[-1] - 1)
    axis = check_dim(op, axis, data.ndim, "axis")
    shape, segments = data.shape, require_integer(op, lengths, "lengths").shape
    if segments[:-1] != shape[:axis] or not segments:
        expected = f"shape {(*shape[:axis], 'segments')} for axis {axis}"
        mend = "give the lengths of the segments for each line"
        raise wrong(op, "lengths", expected, segments, mend)
    rest = (1,) * (len(shape) - 1 - axis)
    ids = dispatch1(SEGMENT_IDS, lengths, {"size": shape[axis], "op": op, "checked": not unsafe})
    ids = ids.reshape(*ids.shape, *rest).expand(shape)
    # What lies beyond the last segment goes to one more, which is dropped.
    joined = {"mean": "sum", "max": "amax", "min": "amin"}.get(reduce, reduce)
    target = (*shape[:axis], segments[-1] + 1, *shape[axis + 1 :])
    start = data.new_full(target, neutral_element(joined, data.dtype))
    y = reduced_at(op, start, axis, ids, data, joined, True).narrow(axis, 0, segments[-1])
    if initial is not None:
        if joined in ("amax", "amin"):
            y = y.masked_fill(y < initial if joined == "amax" else y > initial, initial)
        else:
            y = y * initial if reduce == "prod" else y + initial
    if reduce == "mean":
        count = lengths if initial is None else lengths.clamp_min(1)
        y = y / cast(count.reshape(*segments, *rest), data.dtype)
    return y
