"""Kernels of embedding, embedding_bag and one_hot: rows and units named by class numbers."""

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import IndexRangeError, ShapeError, arg_error
from oneflow_lite.kernels.batches import into_merged, merged
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import (
    add_at,
    check_range,
    on_host,
    sparse_pays,
    sum_rows,
    take,
)
from oneflow_lite.kernels.infer_rules import in_c_order, looked_up, one_hot_rows
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.ops.sbp_rules import Way

# From so many numbers on, SciPy's sparse products outweigh what they cost to set up.
_LARGE_BAGS = 4096


def _rows(shapes, attrs):
    return "...,Ve->...e", Way(("B", 0), ("P",), run=_looked_up)


def _looked_up(line, arrays, attrs):
    """Look up the rows that this rank has, and zeros for the rest: the ranks' sum is the result."""
    ids, weight = arrays
    check_range(line.xp, "embedding", "input", ids, line.size)
    inside = (ids >= line.begin) & (ids < line.end)
    made = line.xp.zeros((*ids.shape, weight.shape[1]), weight.dtype)
    made[inside] = weight[ids[inside] - line.begin]
    return made


def _batch_of_rows(call, x, weight, **attrs):
    if not call.batched[1]:
        return call.run(x, weight, **attrs)
    index = into_merged(call, call.front(0), weight.shape[1])
    return call.run(index, merged(call, weight, 0))


@register_kernel("embedding", infer=looked_up, sbp=_rows, linear="weight", batch=_batch_of_rows)
def embedding(xp, x, weight, *, padding_idx=None, scale_grad_by_freq=False, out=None):
    check_range(xp, "embedding", "input", x, weight.shape[0])
    return take(xp, weight, x, 0, out)


def _batch_of_scales(call, dy, x, *, scale_grad_by_freq, **attrs):
    """Without counts each index is a matter of its own."""
    if scale_grad_by_freq:
        return NotImplemented
    return call.run(call.front(0), call.front(1), scale_grad_by_freq=False, **attrs)


@register_kernel(
    "embedding_scale",
    sbp=lambda _, attrs: "whole" if attrs["scale_grad_by_freq"] else "...E,...->...",
    linear="",
    batch=_batch_of_scales,
)
def embedding_scale(xp, dy, x, *, padding_idx, scale_grad_by_freq, rows):
    """Return a factor for the gradient of each row that was looked up, in dy's dtype."""
    scale = xp.ones(x.shape, dy.dtype)
    if scale_grad_by_freq:
        counts = xp.zeros(rows, xp.int64)  # bincount would wait for the device
        add_at(xp, counts, x, xp.ones(x.shape, xp.int64))
        scale /= counts.take(x)
    if padding_idx is not None:
        scale[x == padding_idx] = 0
    return scale[..., None]


# The bags of embedding_bag lie one behind the other in `indices`, each from its offset on.


@in_c_order
def _one_row_for_each_bag(weight, coefficients, indices, offsets, **attrs):
    return ArraySpec((offsets.shape[0], *weight.shape[1:]), weight.dtype)


@in_c_order
def _one_for_each_index(x, y, indices, offsets):
    return ArraySpec(indices.shape, x.dtype)


@register_kernel("embedding_bag_sum", infer=_one_row_for_each_bag)
@in_float32
def embedding_bag_sum(xp, weight, coefficients, indices, offsets, *, scale_grad_by_freq=False):
    """Σ coefficient · weight[index] over each bag; coefficients None are 1."""
    check_range(xp, "embedding_bag", "input", indices, weight.shape[0])
    if _in_one_product(xp, indices.size * weight.shape[1]):
        return _matrix(coefficients, indices, offsets, weight) @ weight
    rows, bags = weight.take(indices, 0), _bags(xp, indices, offsets)
    return sum_rows(xp, _scaled(rows, coefficients), bags, len(offsets))


@register_kernel("embedding_bag_sum_grad")
@in_float32
def embedding_bag_sum_grad(xp, dy, coefficients, indices, offsets, *, rows):
    """dweight[r] = Σ coefficient · dy[bag] over all indices that name the row r"""
    check_range(xp, "embedding_bag", "input", indices, rows)
    if _in_one_product(xp, indices.size * dy.shape[1]):
        return _matrix(coefficients, indices, offsets, dy, rows).T @ dy
    dys = dy.take(_bags(xp, indices, offsets), 0)
    return sum_rows(xp, _scaled(dys, coefficients), indices, rows)


@register_kernel("embedding_bag_sum_dots", infer=_one_for_each_index)
@in_float32
def embedding_bag_sum_dots(xp, dy, weight, indices, offsets):
    """dy[bag] · weight[index] for each index: the gradient of the coefficients"""
    return (dy.take(_bags(xp, indices, offsets), 0) * weight.take(indices, 0)).sum(1)


@in_c_order
def _coefficients(weight, indices, offsets, **attrs):
    return ArraySpec(indices.shape, weight.dtype)


@register_kernel("embedding_bag_coefficients", infer=_coefficients)
def embedding_bag_coefficients(xp, weight, indices, offsets, *, mode, padding_idx):
    """Return 1, or for a mean 1 / the size of the bag; 0 for padding, which does not count.

    `weight` gives its dtype.
    """
    kept = xp.ones(indices.size, bool) if padding_idx is None else indices != padding_idx
    if mode == "sum":
        return kept.astype(weight.dtype)
    bags = _bags(xp, indices, offsets)
    sizes = xp.zeros(len(offsets), np.int64)
    add_at(xp, sizes, bags, kept.astype(np.int64))
    return (kept / xp.maximum(sizes.take(bags), 1)).astype(weight.dtype)


@register_kernel("embedding_bag_argmax")
def embedding_bag_argmax(xp, weight, indices, offsets, *, padding_idx):
    """Return the row of each bag's largest number in each column; -1 for an empty bag."""
    check_range(xp, "embedding_bag", "input", indices, weight.shape[0])
    sizes = xp.append(offsets[1:], indices.size) - offsets
    order = xp.argsort(-sizes)  # large bags first: bags with a k-th member stand in front
    offsets, sizes = offsets.take(order), sizes.take(order)
    best = xp.full((len(offsets), weight.shape[1]), np.nan, weight.dtype)
    winners = xp.full(best.shape, -1, np.int64)
    for k in range(int(sizes[0]) if sizes.size else 0):  # on CUDA this waits for the device
        count = int((sizes > k).sum())
        members = indices.take(offsets[:count] + k)[:, None]
        rows = weight.take(members[:, 0], 0)
        better = ~(rows <= best[:count])  # also over the NaN of an empty bag, and by a NaN
        if padding_idx is not None:
            better &= members != padding_idx
        best[:count] = xp.where(better, rows, best[:count])
        winners[:count] = xp.where(better, members, winners[:count])
    places = xp.empty_like(winners)
    places[order] = winners
    return places


def _in_one_product(xp, elements):
    return on_host(xp) and elements > _LARGE_BAGS and sparse_pays(elements)


def _matrix(coefficients, indices, offsets, like, rows=None):
    """Return the bags as a sparse matrix (number of bags, number of rows) of coefficients."""
    import scipy.sparse

    values = np.ones(indices.size, like.dtype) if coefficients is None else coefficients
    shape = (len(offsets), len(like) if rows is None else rows)
    return scipy.sparse.csr_array((values, indices, np.append(offsets, indices.size)), shape)


def _bags(xp, indices, offsets):
    """Return for each index the number of its bag."""
    return xp.searchsorted(offsets, xp.arange(indices.size), side="right") - 1


def _scaled(rows, coefficients):
    return rows if coefficients is None else rows * coefficients[:, None]


def _counts_classes(x, *, num_classes):
    return num_classes < 0


@register_kernel(
    "one_hot",
    infer=one_hot_rows,
    dynamic_shape=_counts_classes,
    sbp=lambda _, attrs: "...->..." if attrs["num_classes"] >= 0 else "whole",
    batch="front",
)
def one_hot(xp, x, *, num_classes, out=None):
    if num_classes < 0:
        # The shape of the result depends on the values: on CUDA this waits for the device.
        if not x.size:
            raise arg_error(
                "one_hot",
                "num_classes",
                expected="the number of classes for an empty tensor",
                got=num_classes,
                hint="pass num_classes",
                kind=ShapeError,
            )
        num_classes = int(x.max()) + 1
    if on_host(xp) and x.size and (x.min() < 0 or x.max() >= num_classes):
        raise arg_error(
            "one_hot",
            "tensor",
            expected=f"class numbers from 0 to {num_classes - 1}",
            got=f"{x.min()} to {x.max()}",
            hint="raise num_classes or correct the labels",
            kind=IndexRangeError,
        )
    classes = xp.arange(num_classes)
    if out is None:
        return (x[..., None] == classes).astype(xp.int64)
    return xp.equal(x[..., None], classes, out=out)
