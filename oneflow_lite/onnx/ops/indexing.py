"""Ops that take, put and order elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.onnx.graph import Graph, Value
from oneflow_lite.onnx.ops.shapes import filled
from oneflow_lite.onnx.registry import NotTranslated, register_onnx
from oneflow_lite.onnx.sizes import varies

_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@register_onnx("narrow")
def _narrow(g: Graph, x: Value, *, dim: int, start: Any, length: Any) -> Any:
    if not varies((start, length)):
        return g.Slice(x, g.sizes([start]), g.sizes([start + length]), g.sizes([dim]))
    if not varies(start) and start == 0:
        return g.Slice(x, g.sizes([0]), g.sizes([length]), g.sizes([dim]))
    end = g.Add(g.size(start), g.size(length))
    return g.Slice(x, g.size(start), end, g.sizes([dim]))


@register_onnx("select")
def _select(g: Graph, x: Value, *, dim: int, index: Any) -> Any:
    if varies(index):
        return g.Squeeze(g.Gather(x, g.size(index), axis=dim), g.sizes([dim]))
    return g.Gather(x, np.int64(index), axis=dim)


@register_onnx("getitem")
def _getitem(g: Graph, x: Value, *, index: Any) -> Any:
    """Slices first, then the dimensions that integers take away, then those that None adds."""
    index = list(index) if isinstance(index, tuple) else [index]
    named = sum(part is not None and part is not Ellipsis for part in index)
    if Ellipsis not in [part for part in index if part is None or part is Ellipsis]:
        index.append(Ellipsis)
    at = next(i for i, part in enumerate(index) if part is Ellipsis)
    index[at : at + 1] = [slice(None)] * (x.ndim - named)
    slices: list[tuple[Any, Any, int, Any]] = []
    dropped: list[int] = []
    added: list[int] = []
    dim = place = 0
    for part in index:
        if part is None:
            added.append(place)
            place += 1
            continue
        if isinstance(part, slice):
            if part != slice(None):
                step = 1 if part.step is None else part.step
                start = (0 if step > 0 else _LAST) if part.start is None else part.start
                stop = (_LAST if step > 0 else _FIRST) if part.stop is None else part.stop
                slices.append((start, stop, dim, step))
            place += 1
        else:
            slices.append((part, _LAST if part == -1 else part + 1, dim, 1))
            dropped.append(dim)
        dim += 1
    if slices:
        x = g.Slice(x, *[g.sizes(ends) for ends in zip(*slices, strict=True)])
    if dropped:
        x = g.Squeeze(x, g.sizes(dropped))
    return g.Unsqueeze(x, g.sizes(added)) if added else x


@register_onnx("getitem_advanced")
def _getitem_advanced(g: Graph, x: Value, *indices: Value, dims: Sequence[int]) -> Any:
    if any(index.dtype.kind == "b" for index in indices):
        raise NotTranslated("the shape of what a mask takes depends on values")
    if len(indices) == 1:
        return g.Gather(x, indices[0], axis=dims[0])
    ndim = max(index.ndim for index in indices)
    first = list(dims)
    rest = [dim for dim in range(x.ndim) if dim not in first]
    turned = g.Transpose(x, perm=[*first, *rest])
    # ONNX does not broadcast indices: each adds zeros of all other shapes.
    whole = []
    for index in indices:
        for other in indices:
            if other is not index:
                index = g.Add(index, g.Mul(other, g.constant(np.zeros((), other.dtype))))
        whole.append(g.Unsqueeze(index, g.sizes([ndim])))
    y = g.GatherND(turned, g.Concat(*whole, axis=ndim))
    if first == list(range(first[0], first[0] + len(first))) and first[0]:
        # Indices side by side: the dimensions taken go to the place of the indices.
        before = list(range(ndim, ndim + first[0]))
        after = list(range(ndim + first[0], ndim + len(rest)))
        y = g.Transpose(y, perm=[*before, *range(ndim), *after])
    return y


@register_onnx("index_from_zero")
def _index_from_zero(g: Graph, index: Value, *, size: Any, negative: bool = True, **of: Any) -> Any:
    if not negative:
        return index
    size = g.number(size, index)
    return g.Where(g.Less(index, g.number(0, index)), g.Add(index, size), index)


@register_onnx("index_select")
def _index_select(g: Graph, x: Value, index: Value, *, dim: int) -> Any:
    if not x.ndim:
        x = g.Reshape(x, g.sizes([1]))
        return g.Reshape(g.Gather(x, index, axis=0), np.zeros(0, np.int64))
    return g.Gather(x, index, axis=dim)


@register_onnx("gather")
def _gather(g: Graph, x: Value, index: Value, *, dim: int) -> Any:
    """ONNX wants the index as large as x in all other dimensions, so x is cut to its sizes."""
    if not x.ndim or not index.ndim:
        raise NotTranslated("only tensors with dimensions")
    return g.GatherElements(_as_large(g, x, index, dim), index, axis=dim)


def _as_large(g: Graph, x: Value, index: Value, dim: int) -> Any:
    """Cut x to the sizes of an index in all dimensions but one."""
    cut = [d for d in range(x.ndim) if d != dim % x.ndim and x.shape[d] != index.shape[d]]
    if not cut:
        return x
    ends = g.sizes([index.shape[d] for d in cut])
    return g.Slice(x, g.sizes([0] * len(cut)), ends, g.sizes(cut))


def _scattered(reduction: str) -> Callable[..., Any]:
    def translate(g: Graph, x: Value, index: Value, src: Value, *, dim: int) -> Any:
        if not x.ndim or src.ndim != index.ndim:
            raise NotTranslated("only tensors with dimensions")
        cut = [d for d in range(src.ndim) if src.shape[d] != index.shape[d]]
        if cut:  # the op reads as much of the source as the index has
            ends = g.sizes([index.shape[d] for d in cut])
            src = g.Slice(src, g.sizes([0] * len(cut)), ends, g.sizes(cut))
        return g.ScatterElements(x, index, src, axis=dim, reduction=reduction)

    return translate


for _op, _reduction in {
    "scatter": "none", "scatter_add": "add", "scatter_amax": "max", "scatter_amin": "min",
    "scatter_prod": "mul", "scatter_multiply": "mul",
}.items():  # fmt: skip
    register_onnx(_op)(_scattered(_reduction))


@register_onnx("index_add")
def _index_add(g: Graph, x: Value, index: Value, source: Value, *, dim: int, alpha: Any = 1) -> Any:
    if alpha != 1:
        source_ = g.Mul(source, g.number(alpha, x))
        source_.shape = source.shape
        source = source_
    return _put_rows(g, x, index, source, dim, "add")


@register_onnx("index_copy")
def _index_copy(g: Graph, x: Value, index: Value, source: Value, *, dim: int) -> Any:
    return _put_rows(g, x, index, source, dim, "none")


def _put_rows(g: Graph, x: Value, index: Value, source: Value, dim: int, reduction: str) -> Any:
    """Put rows of a source to the rows of x that an index names."""
    if not x.ndim:
        raise NotTranslated("only tensors with dimensions")
    perm = [dim, *[d for d in range(x.ndim) if d != dim]]
    back = sorted(range(x.ndim), key=perm.__getitem__)
    rows = g.Reshape(index, g.sizes([-1, 1]))
    moved = [g.Transpose(each, perm=perm) for each in (x, source)]
    return g.Transpose(g.ScatterND(moved[0], rows, moved[1], reduction=reduction), perm=back)


@register_onnx("embedding")
def _embedding(g: Graph, x: Value, weight: Value, **backward: Any) -> Any:
    return g.Gather(weight, x, axis=0)


@register_onnx("one_hot")
def _one_hot(g: Graph, x: Value, *, num_classes: int) -> Any:
    if num_classes < 0:
        raise NotTranslated("the number of classes depends on values; pass num_classes")
    return g.OneHot(x, np.int64(num_classes), np.array([0, 1], np.int64), axis=-1)


@register_onnx("plane_take")
def _plane_take(g: Graph, x: Value, indices: Value, *, spatial: int) -> Any:
    lead = list(x.shape[: x.ndim - spatial])
    flat = g.Reshape(x, g.sizes([*([0] * len(lead)), -1]))
    places = g.Reshape(indices, g.sizes([*([0] * len(lead)), -1]))
    return g.reshape(g.GatherElements(flat, places, axis=len(lead)), indices.shape)


@register_onnx("unfold")
def _unfold(g: Graph, x: Value, *, dimension: int, size: int, step: int) -> Any:
    """Windows along a dimension; the elements of a window go to a last dimension."""
    if not x.ndim or varies((x.shape[dimension], size)):
        raise NotTranslated("only along a dimension of a fixed size")
    dim = dimension % x.ndim
    starts = np.arange(0, x.shape[dim] - size + 1, step)
    y = g.Gather(x, starts[:, None] + np.arange(size), axis=dim)
    others = [d for d in range(x.ndim + 1) if d != dim + 1]
    return g.Transpose(y, perm=[*others, dim + 1])


@register_onnx("diagonal")
def _diagonal(g: Graph, x: Value, *, offset: int, dim1: int, dim2: int) -> Any:
    first, second = dim1 % x.ndim, dim2 % x.ndim
    if varies((x.shape[first], x.shape[second])):
        raise NotTranslated("only of dimensions of a fixed size")
    rows, columns = x.shape[first], x.shape[second]
    size = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    at = np.arange(size)
    places = np.stack([at - min(offset, 0), at + max(offset, 0)], -1)
    rest = [d for d in range(x.ndim) if d not in (first, second)]
    taken = g.GatherND(g.Transpose(x, perm=[first, second, *rest]), places)
    return g.Transpose(taken, perm=[*range(1, x.ndim - 1), 0])


@register_onnx("topk")
def _topk(
    g: Graph, x: Value, *, k: Any, dim: int, largest: bool = True, sorted: bool = True
) -> Any:
    if not x.ndim:
        raise NotTranslated("only tensors with dimensions")
    return g.TopK(x, g.size(k), outputs=2, axis=dim, largest=int(largest), sorted=int(sorted))


@register_onnx("sort")
def _sort(g: Graph, x: Value, *, dim: int, descending: bool = False) -> Any:
    if not x.ndim:
        return x, filled(g, (), 0, np.int64)
    return _topk(g, x, k=x.shape[dim], dim=dim, largest=descending)


@register_onnx("argsort")
def _argsort(g: Graph, x: Value, *, dim: int, descending: bool = False) -> Any:
    return _sort(g, x, dim=dim, descending=descending)[1]


# --- Writes: the name stands for the new value from here on ---------------------------------------


@register_onnx("copy_")
def _copy_(g: Graph, x: Value, value: Value) -> Any:
    value = value if value.dtype == x.dtype else g.cast(value, x.dtype)
    return value if getattr(value, "shape", None) == x.shape else g.Expand(value, g.sizes(x.shape))


@register_onnx("fill_")
def _fill_(g: Graph, x: Value, value: Value) -> Any:
    return _copy_(g, x, value)


@register_onnx("setitem_")
def _setitem_(
    g: Graph,
    x: Value,
    value: Value | None,
    *indices: Value,
    index: Any,
    dims: Sequence[int],
    fill: Any = None,
) -> Any:
    """The places are known beforehand: they are written to the flat tensor."""
    if indices or varies((index, x.shape)):
        raise NotTranslated("only x[...] = value without index tensors, and of a fixed size")
    places = np.arange(int(np.prod(x.shape))).reshape(x.shape)[index]
    if value is None:
        update = g.constant(np.full(places.size, fill, x.dtype))
    else:
        value = value if value.dtype == x.dtype else g.cast(value, x.dtype)
        update = g.Reshape(g.Expand(value, g.sizes(places.shape)), g.sizes([-1]))
    flat = g.Reshape(x, g.sizes([-1]))
    flat = g.ScatterElements(flat, places.reshape(-1), update, axis=0)
    return g.Reshape(flat, g.sizes(x.shape))
