"""Shared infer rules: they describe the results of an op, given descriptions of its inputs.

A rule takes an `ArraySpec` for each array parameter of the kernel (None for an array left out) and
the attributes. It returns an ArraySpec, or a tuple with an ArraySpec for each result. Where it
returns None, the kernel is run on stand-ins instead. Most rules answer for inputs in C order alone,
because the layout of the result is then C order, too.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.ops.registry import register_kernel


def says(sbp):
    """Give a rule the SBP rule of its ops, which holds unless an op declares its own."""

    def decorator(rule):
        rule.sbp = sbp
        return rule

    return decorator


def in_c_order(rule):
    """Let a rule answer for inputs in C order alone."""

    @functools.wraps(rule)
    def checked(*arrays, **attrs):
        if any(x is not None and x.strides is not None for x in arrays):
            return None
        return rule(*arrays, **attrs)

    return checked


def _spread(arrays, dtype):
    """Describe the result of a ufunc: inputs broadcast, and their common layout is kept."""
    first = arrays[0]
    if all(x.strides is None and x.shape == first.shape for x in arrays):
        return ArraySpec(first.shape, dtype)
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    if 0 in shape:
        return ArraySpec(shape, dtype)
    # Only the order of the dimensions counts, so NumPy is asked with at most two entries in each.
    few = (slice(2),) * len(shape)
    operands = [x.phantom()[(*few[: x.ndim], ...)] for x in arrays]
    flags: Any = [["readonly"]] * len(operands) + [["writeonly", "allocate"]]
    made = np.nditer([*operands, None], op_flags=flags, op_dtypes=[None] * len(operands) + [dtype])
    strides, step = [0] * len(shape), made.operands[-1].itemsize
    for _, dim in sorted((s, -d) for d, s in enumerate(made.operands[-1].strides)):
        strides[-dim], step = step, step * shape[-dim]
    return ArraySpec.of(ArraySpec(shape, made.operands[-1].dtype, tuple(strides)))


def of_ufunc(name):
    """Return the rule of a kernel that applies a ufunc of NumPy."""
    ufunc = getattr(np, name)

    @says("elementwise")
    def rule(*arrays, **attrs):
        dtypes = ufunc.resolve_dtypes((*[x.dtype for x in arrays], None))
        return _spread(arrays, dtypes[-1])

    return rule


@says("elementwise")
def like_first(x, *others, **attrs):
    """Elementwise in inputs of one shape and layout, with the dtype of the first."""
    if any(y is not None and y.strides != x.strides for y in others) or _stretched(x):
        return None
    return _spread([x], x.dtype)


def _stretched(x):
    """Return whether elements share memory, by a stride of 0: a copy has another layout."""
    return x.strides is not None and 0 in x.strides


def _broadcast_shape(arrays):
    return np.broadcast_shapes(*[x.shape for x in arrays if x is not None])


@says("elementwise")
@in_c_order
def broadcast(*arrays, **attrs):
    """The common shape of all inputs, the dtype of the first."""
    return ArraySpec(_broadcast_shape(arrays), arrays[0].dtype)


@says("elementwise")
@in_c_order
def broadcast_to_last(*arrays, **attrs):
    """The common shape of all inputs, the dtype of the last."""
    return ArraySpec(_broadcast_shape(arrays), arrays[-1].dtype)


@says("elementwise")
@in_c_order
def broadcast_to_bool(*arrays, **attrs):
    return ArraySpec(_broadcast_shape(arrays), np.dtype(bool))


@says("elementwise")
def like_input(x, **attrs):
    """C order with shape and dtype of the one input."""
    return ArraySpec(x.shape, x.dtype)


@says("elementwise")
def converted(x, *, dtype):
    """The layout of the input, in another dtype."""
    if _stretched(x) or (x.strides is not None and x.dtype.kind == "c" and dtype.kind not in "bc"):
        return None
    return _spread([x], dtype)


@says("elementwise")
def written(x, *others, **attrs):
    """The first input, in which the kernel writes."""
    return x


def made(*, shape, dtype, **attrs):
    """An array made from attributes."""
    return ArraySpec(tuple(shape), np.dtype(dtype))


def made_vector(*, steps, dtype, **attrs):
    return ArraySpec((steps,), np.dtype(dtype))


def made_list(*, n, dtype, **attrs):
    return ArraySpec((n,), np.dtype(dtype))


def of_shape(x, *others, shape, **attrs):
    """C order, the dtype of the first input, the shape given by an attribute."""
    return ArraySpec(tuple(shape), x.dtype)


@in_c_order
def loss_of_classes(x, target, weight, *, reduction, **attrs):
    return ArraySpec(target.shape if reduction == "none" else (), x.dtype)


def masked(x, mask):
    """The shape of the mask, the dtype of the first input."""
    return ArraySpec(mask.shape, x.dtype)


def mask_of_shape(*arrays, shape, **attrs):
    return ArraySpec(tuple(shape), np.dtype(bool))


@says("elementwise")
@in_c_order
def mask_like(index, **attrs):
    return ArraySpec(index.shape, np.dtype(bool))


@says("elementwise")
@in_c_order
def indices_like(index, **attrs):
    return ArraySpec(index.shape, np.dtype(np.int64))


def mask_of_dim(index, *, dim, shape):
    """A mask along one dimension that broadcasts to `shape`."""
    return ArraySpec((shape[dim],) + (1,) * (len(shape) - 1 - dim), np.dtype(bool))


def scalar_bool(*arrays, **attrs):
    return ArraySpec((), np.dtype(bool))


def scalar_like(x, *others, **attrs):
    return ArraySpec((), x.dtype)


def reduced_shape(shape, dim, keepdim):
    """Return a shape without the dimensions `dim`: one, several, or None for all."""
    if dim is None:
        dims = set(range(len(shape)))
    else:
        dims = {d % len(shape) for d in ((dim,) if isinstance(dim, int) else dim) if shape}
    if keepdim:
        return tuple([1 if d in dims else n for d, n in enumerate(shape)])
    return tuple([n for d, n in enumerate(shape) if d not in dims])


def reduction(dtype_of):
    """Return the rule of a reduction whose result has the dtype `dtype_of(dtype)`."""

    @says("reduce")
    @in_c_order
    def rule(x, *, dim, keepdim=False, **attrs):
        return ArraySpec(reduced_shape(x.shape, dim, keepdim), np.dtype(dtype_of(x.dtype)))

    return rule


def same_dtype(dtype):
    return dtype


def real_dtype(dtype):
    """Return the dtype of an absolute value."""
    return dtype.type(0).real.dtype


def sum_dtype(dtype):
    return np.int64 if dtype.kind in "iub" else dtype


@says("elementwise")
@in_c_order
def accumulated(x, *, dim):
    return ArraySpec(x.shape, np.dtype(sum_dtype(x.dtype)))


def index_dtype(dtype):
    return np.int64


def truth_dtype(dtype):
    return dtype if dtype.char == "B" else np.bool_


@says("reduce")
@in_c_order
def extreme_with_index(x, *, dim, keepdim):
    shape = reduced_shape(x.shape, dim, keepdim)
    return ArraySpec(shape, x.dtype), ArraySpec(shape, np.dtype(np.int64))


def of_view(view):
    """Return the rule of a kernel that always gives a view: `view(x, **attrs)` of a phantom."""

    def rule(x, **attrs):
        return ArraySpec.of(view(np, x.phantom(), **attrs))

    return rule


def register_view(op_type_name, **declared):
    """Register a kernel that always returns a view of its input x."""

    def decorator(kernel):
        infer = of_view(kernel)
        return register_kernel(op_type_name, view_of="x", infer=infer, **declared)(kernel)

    return decorator


def reshaped(x, *, shape):
    return x.reshaped(tuple(shape))


def _product(x, y):
    """Describe x (..., M, K) times y (..., K, N)."""
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(f"{x.shape} and {y.shape} have no product: the inner sizes differ")
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return ArraySpec((*batch, x.shape[-2], y.shape[-1]), np.result_type(x.dtype, y.dtype))


def _turned(x):
    return ArraySpec((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


@in_c_order
def product(x, y):
    return _product(x, y)


@in_c_order
def product_nt(x, y):
    return _product(x, _turned(y))


@in_c_order
def product_tn(x, y, *, merge):
    if merge:
        x, y = _rows(x), _rows(y)
    return _product(_turned(x), y)


def _rows(x):
    return ArraySpec((math.prod(x.shape[:-1]), x.shape[-1]), x.dtype)


@in_c_order
def concatenated(*xs, dim):
    for x in xs[1:]:
        if x.shape[:dim] + x.shape[dim + 1 :] != xs[0].shape[:dim] + xs[0].shape[dim + 1 :]:
            return None  # the kernel says what is wrong
    shape = (*xs[0].shape[:dim], sum(x.shape[dim] for x in xs), *xs[0].shape[dim + 1 :])
    return ArraySpec(shape, np.result_type(*[x.dtype for x in xs]))


@in_c_order
def stacked(*xs, dim):
    if any(x.shape != xs[0].shape for x in xs):
        return None
    shape = (*xs[0].shape[:dim], len(xs), *xs[0].shape[dim:])
    return ArraySpec(shape, np.result_type(*[x.dtype for x in xs]))


@in_c_order
def taken(x, index, *, dim):
    """Entries of one dimension, named by an index of any number of dimensions."""
    if dim >= x.ndim:
        return None
    return ArraySpec((*x.shape[:dim], *index.shape, *x.shape[dim + 1 :]), x.dtype)


@in_c_order
def chosen(x, *indices, dims):
    """x[index] with an array of integers; for several index arrays NumPy is asked."""
    return taken(x, *indices, dim=dims[0]) if len(indices) == 1 else None


def put_back(dy, *indices, dims, shape):
    """Zeros of `shape` with dy added at the indices: masks, or indices of the first dimensions."""
    masks = any(index.dtype.kind == "b" for index in indices)
    return of_shape(dy, shape=shape) if masks or dims == tuple(range(len(dims))) else None


@in_c_order
def looked_up(index, weight, **attrs):
    return ArraySpec((*index.shape, *weight.shape[1:]), weight.dtype)


@in_c_order
def one_hot_rows(x, *, num_classes):
    return ArraySpec((*x.shape, num_classes), np.dtype(np.int64))


@in_c_order
def gathered(x, index, **attrs):
    return ArraySpec(index.shape, x.dtype)


@in_c_order
def convolved(x, weight, bias, *, stride, padding, dilation, groups):
    geometry = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    size = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in geometry]
    return ArraySpec((x.shape[0], weight.shape[0], *size), x.dtype)


@in_c_order
def kernel_of_windows(dy, x, *, kernel_size, groups, **attrs):
    return ArraySpec((dy.shape[1], x.shape[1] // groups, *kernel_size), x.dtype)


@in_c_order
def input_of_windows(dy, weight, *, input_size, groups, **attrs):
    return ArraySpec((dy.shape[0], groups * weight.shape[1], *input_size), dy.dtype)


@says("b*->b")
@in_c_order
def pooled(x, *others, output_size, **attrs):
    return ArraySpec((*x.shape[: x.ndim - len(output_size)], *output_size), x.dtype)


@says("b*->b")
def pooled_with_index(*arrays, **attrs):
    y = pooled(*arrays, **attrs)
    return y and (y, ArraySpec(y.shape, np.dtype(np.int64)))


@says("b*->b")
@in_c_order
def unpooled(dy, *others, input_size, **attrs):
    return ArraySpec((*dy.shape[: dy.ndim - len(input_size)], *input_size), dy.dtype)


@in_c_order
def padded(x, *, pad, **attrs):
    shape = list(x.shape)
    for i in range(len(pad) // 2):
        shape[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    return ArraySpec(tuple(shape), x.dtype)


@in_c_order
def tiled(x, *, sizes):
    front = (1,) * (len(sizes) - x.ndim)
    return ArraySpec(tuple([n * k for n, k in zip(front + x.shape, sizes, strict=True)]), x.dtype)


@says("elementwise")
@in_c_order
def ordered(x, *, dim, descending=False):
    return ArraySpec(x.shape, x.dtype), ArraySpec(x.shape, np.dtype(np.int64))


@says("elementwise")
@in_c_order
def order_of(x, *, dim, descending=False):
    return None if descending else ArraySpec(x.shape, np.dtype(np.int64))
