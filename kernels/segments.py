"""The kernel that says which elements of a dimension belong to which segment."""

import numpy as np

from oneflow_lite.array_spec import ArraySpec
from oneflow_lite.errors import ShapeError, bad_argument
from oneflow_lite.kernels.index_arrays import add_at, on_host
from oneflow_lite.registry import register_kernel


def _along_axis(lengths, *, size, **attrs):
    return ArraySpec((*lengths.shape[:-1], size), np.dtype(np.int64))


@register_kernel("segment_ids", infer=_along_axis)
def segment_ids(xp, lengths, *, size, op, checked):
    """Return to which segment each of `size` elements belongs; beyond the last one, their number.

    `lengths` (..., segments) gives (..., size). `checked` wants them to sum to `size`.
    """
    if checked and on_host(xp) and lengths.size:
        totals = lengths.sum(-1)
        if lengths.min() < 0 or (totals != size).any():
            raise bad_argument(
                ShapeError,
                op,
                "lengths",
                expected=f"lengths of at least 0 that sum to {size}, the size of data along axis",
                got=lengths.tolist(),
                mend="let the segments cover data exactly",
            )
    ends = xp.minimum(lengths.cumsum(-1), size).reshape(-1, lengths.shape[-1])
    marks = xp.zeros((len(ends), size + 1), np.int64)
    rows = xp.arange(len(ends)).reshape(-1, 1) * (size + 1)
    add_at(xp, marks.reshape(-1), rows + ends, xp.ones(ends.shape, np.int64))
    return marks[:, :size].cumsum(1).reshape(*lengths.shape[:-1], size)
