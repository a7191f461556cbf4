"""Arrays made from nothing but attributes."""

import math

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.kernels.infer_rules import like_input, made, made_vector
from oneflow_lite.kernels.numerics import zeros
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.ops.sbp_rules import Way


@register_kernel("full", infer=made)
def full(xp, *, shape, value, dtype, out=None):
    if out is None:
        return xp.full(shape, value, dtype)
    xp.copyto(out, value, casting="unsafe")
    return out


# Programs fill parameters and the first gradient by this name; to the passes it is `full`.
register_kernel("fill_constant", infer=made)(full)


@register_kernel("empty", infer=made)
def empty(xp, *, shape, dtype):
    return xp.empty(shape, dtype)


def _of_no_values(shapes, attrs):
    # The result depends on no value of x, so partial sums need not be added up first.
    return "elementwise", Way(("P",), ("B",))


@register_kernel("zeros_like", infer=like_input, reuses="x", sbp=_of_no_values, batch="pointwise")
def zeros_like(xp, x, *, out=None):
    return zeros(xp, x.shape, x.dtype, out)


@register_kernel("ones_like", infer=like_input, reuses="x", sbp=_of_no_values, batch="pointwise")
def ones_like(xp, x, *, out=None):
    if out is None:
        return xp.ones(x.shape, x.dtype)
    out[...] = 1
    return out


def _range(*, start, end, step, dtype):
    # As NumPy counts; numbers of a lazily written range stay a range of no memory.
    return ArraySpec((max(0, math.ceil((end - start) / step)),), np.dtype(dtype))


@register_kernel("arange", infer=_range)
def arange(xp, *, start, end, step, dtype):
    return xp.arange(start, end, step, dtype)


@register_kernel("linspace", infer=made_vector)
def linspace(xp, *, start, end, steps, dtype):
    return xp.linspace(start, end, steps).astype(dtype)


@register_kernel("logspace", infer=made_vector)
def logspace(xp, *, start, end, steps, base, dtype):
    return xp.power(base, xp.linspace(start, end, steps)).astype(dtype)


def _matrix(*, n, m, dtype):
    return ArraySpec((n, n if m is None else m), np.dtype(dtype))


@register_kernel("eye", infer=_matrix)
def eye(xp, *, n, m, dtype):
    return xp.eye(n, m, dtype=dtype)
