"""Shapes: most of these return views of the input's memory."""

import math

import numpy as np

from oneflow_lite.registry import register_kernel


@register_kernel("reshape", view_of="x")
def reshape(xp, x, *, shape):
    return x.reshape(shape)


@register_kernel("transpose", view_of="x")
def transpose(xp, x, *, dim0, dim1):
    return x.swapaxes(dim0, dim1)


@register_kernel("permute", view_of="x")
def permute(xp, x, *, dims):
    return x.transpose(dims)


@register_kernel("squeeze", view_of="x")
def squeeze(xp, x, *, dim):
    return x.squeeze(dim)


@register_kernel("unsqueeze", view_of="x")
def unsqueeze(xp, x, *, dim):
    return xp.expand_dims(x, dim)


@register_kernel("expand", view_of="x")
def expand(xp, x, *, shape):
    extra = len(shape) - x.ndim
    if shape[extra:] == x.shape and math.prod(shape[:extra]) == 1:  # no element stands twice
        return x[(None,) * extra + (...,)]
    return xp.broadcast_to(x, shape)


@register_kernel("sum_to")
def sum_to(xp, x, *, shape):
    extra = x.ndim - len(shape)
    stretched = [extra + i for i, n in enumerate(shape) if n == 1 and x.shape[extra + i] != 1]
    return x.sum(axis=(*range(extra), *stretched), keepdims=True).reshape(shape)


@register_kernel("sum_to", device="cpu")
def sum_to_cpu(xp, x, *, shape):
    extra = x.ndim - len(shape)
    if extra and x.shape[extra:] == shape and x.dtype.char in "fd" and x.size:
        # The gradient of a bias: BLAS adds rows up several times quicker than a reduction.
        rows = x.reshape(math.prod(x.shape[:extra]), math.prod(shape))
        return np.ones(len(rows), x.dtype).dot(rows).reshape(shape)
    return sum_to(np, x, shape=shape)


@register_kernel("clone")
def clone(xp, x):
    return x.copy()


@register_kernel("real", view_of="x")
def real(xp, x):
    return x.real


@register_kernel("imag", view_of="x")
def imag(xp, x):
    return x.imag


@register_kernel("view_dtype", view_of="x")
def view_dtype(xp, x, *, dtype):
    return x.view(dtype)


@register_kernel("cast")
def cast(xp, x, *, dtype):
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        x = x.real
    return x.astype(dtype)


@register_kernel("copy_", mutates="x")
def copy_(xp, x, value):
    x[...] = value
    return x


@register_kernel("fill_", mutates="x")
def fill_(xp, x, value):
    x[...] = value
    return x


@register_kernel("to_device")
def to_device(xp, x, *, target, source):
    return target.put(x)
