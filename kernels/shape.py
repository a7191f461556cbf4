"""Kernels that give another shape, dtype or device; most return views of the input's memory."""

import functools
import math

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.arrays.bfloat16_arrays import seen_as
from oneflow_lite.kernels.bfloat16_products import rounded
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import (
    converted,
    in_c_order,
    like_input,
    register_view,
    reshaped,
    sum_dtype,
    written,
)
from oneflow_lite.kernels.numerics import copied, sum_over
from oneflow_lite.ops.registry import Lines, register_kernel
from oneflow_lite.ops.sbp_rules import Way

# Rows that are added one after the other: of many numbers fewer, as a running sum loses digits.
_FEW, _FEW_OF_MANY, _MANY = 512, 128, 65536


def _factors(a, b):
    """Yield pairs of dimensions that begin at the same place of two shapes of one size."""
    i = j = 0
    before_a = before_b = 1
    while i < len(a) and j < len(b):
        if before_a == before_b:
            if a[i] == 1:
                i += 1
                continue
            if b[j] == 1:
                j += 1
                continue
            yield i, j
        if before_a * a[i] <= before_b * b[j]:
            before_a *= a[i]
            i += 1
        else:
            before_b *= b[j]
            j += 1


def _same_beginning(shapes, attrs):
    x, y = shapes[0], attrs["shape"]
    for i, j in _factors(x, y) if 0 not in x else ():
        unit = math.gcd(x[i], y[j]) if x[i] != y[j] else 0
        yield Way((i,), (j,), x[i], (y[j],), unit)


@register_kernel("reshape", view_of="x", infer=reshaped, sbp=_same_beginning)
def reshape(xp, x, *, shape):
    return x.reshape(shape)


@register_view("transpose")
def transpose(xp, x, *, dim0, dim1):
    return x.swapaxes(dim0, dim1)


def _batch_of_permuted(call, x, *, dims):
    return call.run(x, dims=(0, *[d % len(dims) + 1 for d in dims]))


@register_view("permute", batch=_batch_of_permuted)
def permute(xp, x, *, dims):
    return x.transpose(dims)


@register_view("squeeze")
def squeeze(xp, x, *, dim):
    return x.squeeze(dim) if dim else x[...]  # a view: NumPy would hand x through


@register_view("unsqueeze")
def unsqueeze(xp, x, *, dim):
    return x.reshape((*x.shape[:dim], 1, *x.shape[dim:]))  # quicker than expand_dims


def _batch_of_expanded(call, x, *, shape):
    return call.run(call.front(0, len(shape)), shape=(call.size, *shape))


@register_view("expand", batch=_batch_of_expanded)
def expand(xp, x, *, shape):
    extra = len(shape) - x.ndim
    if shape[extra:] == x.shape and math.prod(shape[:extra]) == 1:  # no element stands twice
        return x[(None,) * extra + (...,)]
    return xp.broadcast_to(x, shape)


@in_c_order
def _summed(x, *, shape):
    return ArraySpec(tuple(shape), np.dtype(sum_dtype(x.dtype)))


def _summed_places(shapes, *, shape):
    whole = shapes["x"]
    kept = (1,) * (len(whole) - len(shape)) + tuple(shape)
    return {"line": (whole, kept), 0: (whole, kept)}


def _summed_parts(shapes, attrs):
    x, shape = shapes[0], attrs["shape"]
    for i, j in enumerate(range(len(shape) - len(x), len(shape))):
        yield Way((i,), (j if j >= 0 and shape[j] == x[i] else "P",))


def _batch_of_sums(call, x, *, shape):
    ones = (1,) * (x.ndim - 1 - len(shape))
    y = call.run(x, shape=(call.size, *ones, *shape))
    return call.F.reshape(y, shape=(call.size, *shape)) if ones else y


@register_kernel(
    "sum_to",
    infer=_summed,
    scalar=Lines("sum(x)", _summed_places),
    sbp=_summed_parts,
    linear="x",
    batch=_batch_of_sums,
)
@in_float32
def sum_to(xp, x, *, shape, out=None):
    extra = x.ndim - len(shape)
    stretched = [extra + i for i, n in enumerate(shape) if n == 1 and x.shape[extra + i] != 1]
    dims = (*range(extra), *stretched)
    if out is None:
        return sum_over(xp, x, dims, sum_dtype(x.dtype), None, True).reshape(shape)
    sum_over(xp, x, dims, sum_dtype(x.dtype), out[(None,) * extra], True)
    return out


@register_kernel("sum_to", device="cpu")
def sum_to_cpu(xp, x, *, shape, out=None):
    extra = x.ndim - len(shape)
    count, few = math.prod(x.shape[:extra]), _FEW if x.size < _MANY else _FEW_OF_MANY
    if extra and x.shape[extra:] == shape and x.dtype.char in "fd" and x.size and count <= few:
        # The gradient of a bias: BLAS adds rows up several times quicker than a reduction.
        ones = _ones(count, x.dtype)
        if extra == len(shape) == 1:
            return ones.dot(x, out)
        rows = x.reshape(count, math.prod(shape))
        if out is None:
            return ones.dot(rows).reshape(shape)
        ones.dot(rows, out.reshape(rows.shape[1]))
        return out
    return sum_to(np, x, shape=shape, out=out)


@functools.lru_cache(64)
def _ones(size, dtype):
    return np.ones(size, dtype)


@register_kernel("clone", infer=like_input, reuses="x", scalar="x", linear="x")
def clone(xp, x, *, out=None):
    return copied(x, out)


@register_view("real", sbp="elementwise")
def real(xp, x):
    return x.real


@register_view("imag", sbp="elementwise")
def imag(xp, x):
    return x.imag


@register_view("view_dtype", linear="", batch="front")
def view_dtype(xp, x, *, dtype):
    return seen_as(x, dtype)


def _cast_parts(shapes, attrs):
    return "elementwise", *([Way(("P",), ("P",))] if attrs["dtype"].kind in "fc" else [])


@register_kernel("cast", infer=converted, reuses="x", sbp=_cast_parts, batch="pointwise")
def cast(xp, x, *, dtype, out=None):
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        x = x.real
    if dtype.char == "E":  # bfloat16 has arrays of its own
        return rounded(x, dtype)
    return x.astype(dtype) if out is None else copied(x, out)


@register_kernel("copy_", mutates="x", infer=written)
def copy_(xp, x, value):
    x[...] = value
    return x


@register_kernel("fill_", mutates="x", infer=written)
def fill_(xp, x, value):
    x[...] = value
    return x


@register_kernel("to_device", batch="pointwise")
def to_device(xp, x, *, target, source):
    return target.put(x)
