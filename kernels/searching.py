"""Kernels that look values up in others: searchsorted, isin."""

import numpy as np

from oneflow_lite.array_spec import ArraySpec
from oneflow_lite.kernels.infer_rules import in_c_order
from oneflow_lite.registry import register_kernel


@in_c_order
def _places(sorted_sequence, values, sorter, *, out_int32, right):
    return ArraySpec(values.shape, np.dtype(np.int32 if out_int32 else np.int64))


@register_kernel("searchsorted", infer=_places)
def searchsorted(xp, sorted_sequence, values, sorter, *, out_int32, right):
    """The leading dimensions of a sequence of several are those of `values`."""
    if sorted_sequence.ndim == 1:
        side = "right" if right else "left"
        places = xp.searchsorted(sorted_sequence, values.reshape(-1), side, sorter)
        places = places.reshape(values.shape)
    else:
        if sorter is not None:
            sorted_sequence = xp.take_along_axis(sorted_sequence, sorter, -1)
        places = _bisected(xp, sorted_sequence, values, right)
    return places.astype(np.int32 if out_int32 else np.int64)


def _bisected(xp, sequence, values, right):
    """Search all rows at once: the bits of each place are found from the highest on."""
    size = sequence.shape[-1]
    places = xp.zeros(values.shape, np.int64)
    step = (1 << size.bit_length()) >> 1
    while step:
        probes = places + step
        found = xp.take_along_axis(sequence, xp.minimum(probes, size) - 1, -1)
        before = ~(found > values if right else found >= values)
        places = xp.where(before & (probes <= size), probes, places)
        step >>= 1
    return places


@in_c_order
def _found(elements, test_elements, **attrs):
    return ArraySpec(elements.shape, np.dtype(bool))


@register_kernel("isin", infer=_found)
def isin(xp, elements, test_elements, *, assume_unique, invert):
    found = xp.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    return xp.asarray(found).reshape(elements.shape)
