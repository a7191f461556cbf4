"""Ops that change shapes, join and make tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.onnx.graph import Graph, Value
from oneflow_lite.onnx.registry import NotTranslated, register_onnx
from oneflow_lite.onnx.sizes import SymbolicSize, varies

_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@register_onnx("reshape")
def _reshape(g: Graph, x: Value, *, shape: Sequence[Any]) -> Any:
    return g.reshape(x, shape)


@register_onnx("permute")
def _permute(g: Graph, x: Value, *, dims: Sequence[int]) -> Any:
    return g.Transpose(x, perm=[dim % x.ndim for dim in dims])


@register_onnx("transpose")
def _transpose(g: Graph, x: Value, *, dim0: int, dim1: int) -> Any:
    return swapped(g, x, dim0, dim1)


def swapped(g: Graph, x: Value, dim0: int, dim1: int) -> Any:
    """Swap two dimensions."""
    perm = list(range(x.ndim))
    if not perm:
        return x
    perm[dim0], perm[dim1] = perm[dim1], perm[dim0]
    return g.Transpose(x, perm=perm)


@register_onnx("squeeze")
def _squeeze(g: Graph, x: Value, *, dim: Any) -> Any:
    dims = [dim] if type(dim) is int else list(dim)
    return g.Squeeze(x, g.sizes(dims)) if dims else x


@register_onnx("unsqueeze")
def _unsqueeze(g: Graph, x: Value, *, dim: int) -> Any:
    return g.Unsqueeze(x, g.sizes([dim]))


@register_onnx("expand")
def _expand(g: Graph, x: Value, *, shape: Sequence[Any]) -> Any:
    return g.Expand(x, g.sizes(shape))


@register_onnx("repeat")
def _repeat(g: Graph, x: Value, *, sizes: Sequence[Any]) -> Any:
    extra = len(sizes) - x.ndim
    if extra > 0:
        x = g.Unsqueeze(x, g.sizes(range(extra)))
    return g.Tile(x, g.sizes(sizes))


@register_onnx("sum_to")
def _sum_to(g: Graph, x: Value, *, shape: Sequence[Any]) -> Any:
    extra = x.ndim - len(shape)
    stretched = [
        extra + i for i, n in enumerate(shape) if type(n) is int and n == 1 != x.shape[extra + i]
    ]
    if extra or stretched:
        x = g.ReduceSum(x, g.sizes([*range(extra), *stretched]), keepdims=1)
    return g.Squeeze(x, g.sizes(range(extra))) if extra else x


@register_onnx("cat")
def _cat(g: Graph, *xs: Value, dim: int) -> Any:
    return g.Concat(*xs, axis=dim)


@register_onnx("stack")
def _stack(g: Graph, *xs: Value, dim: int) -> Any:
    return g.Concat(*[g.Unsqueeze(x, g.sizes([dim])) for x in xs], axis=dim)


@register_onnx("flip")
def _flip(g: Graph, x: Value, *, dims: Any) -> Any:
    dims = [dims] if type(dims) is int else list(dims)
    if not dims:
        return x
    count = len(dims)
    starts, ends = [-1] * count, [np.iinfo(np.int64).min] * count
    return g.Slice(x, g.sizes(starts), g.sizes(ends), g.sizes(dims), g.sizes([-1] * count))


@register_onnx("roll")
def _roll(g: Graph, x: Value, *, shifts: Any, dims: Any) -> Any:
    shape = x.shape
    shifts = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    if dims is None or dims == ():
        flat = Value(g.Reshape(x, g.sizes([-1])))
        return g.reshape(_rolled(g, flat, shifts[0], 0), shape)
    dims = dims if isinstance(dims, (tuple, list)) else (dims,)
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(g, x, shift % max(shape[dim], 1) if type(shape[dim]) is int else shift, dim)
    return x


def _rolled(g: Graph, x: Value, shift: int, dim: int) -> Any:
    if not shift:
        return x
    axis, cut = g.sizes([dim]), g.sizes([-shift])
    tail = g.Slice(x, cut, g.sizes([np.iinfo(np.int64).max]), axis)
    return g.Concat(tail, g.Slice(x, g.sizes([0]), cut, axis), axis=dim)


@register_onnx("tril")
def _tril(g: Graph, x: Value, *, diagonal: int = 0) -> Any:
    return g.Trilu(x, np.int64(diagonal), upper=0)


@register_onnx("triu")
def _triu(g: Graph, x: Value, *, diagonal: int = 0) -> Any:
    return g.Trilu(x, np.int64(diagonal), upper=1)


@register_onnx("pad")
def _pad(g: Graph, x: Value, *, pad: Sequence[Any], mode: str = "constant", value: Any = 0) -> Any:
    """`pad` has the two ends of the last dimension, then of the one before, and so on."""
    count = len(pad) // 2
    axes = [x.ndim - 1 - i for i in range(count)]
    pads = [*pad[0::2], *pad[1::2]]
    if mode == "circular" and g.opset < 19:
        raise NotTranslated("circular padding needs opset 19")
    fill = g.number(value, x) if mode == "constant" else None
    return g.Pad(x, g.sizes(pads), fill, g.sizes(axes), mode=_PAD_MODES[mode])


# --- Creation -------------------------------------------------------------------------------------


def filled(g: Graph, shape: Sequence[Any], value: Any, dtype: Any) -> Any:
    """Return a tensor of one number."""
    if varies(value):
        like = Value()
        like.dtype = np.dtype(dtype)
        return g.Expand(g.number(value, like), g.sizes(shape))
    one = np.full(1, value).astype(dtype)
    if not varies(tuple(shape)) and np.prod(shape) <= 1024:
        return g.constant(np.full(shape, one[0], dtype))
    return g.Expand(g.constant(one.reshape(())), g.sizes(shape))


@register_onnx("full", "fill_constant")
def _full(g: Graph, *, shape: Sequence[Any], value: Any, dtype: Any, device: Any = None) -> Any:
    return filled(g, shape, value, dtype)


@register_onnx("empty")
def _empty(g: Graph, *, shape: Sequence[Any], dtype: Any, device: Any = None) -> Any:
    return filled(g, shape, 0, dtype)


@register_onnx("zeros_like")
def _zeros_like(g: Graph, x: Value) -> Any:
    return filled(g, x.shape, 0, x.dtype)


@register_onnx("ones_like")
def _ones_like(g: Graph, x: Value) -> Any:
    return filled(g, x.shape, 1, x.dtype)


@register_onnx("arange")
def _arange(g: Graph, *, start: Any, end: Any, step: Any, dtype: Any, device: Any = None) -> Any:
    if not varies((start, end, step)):
        return g.constant(np.arange(start, end, step).astype(dtype))
    like = Value()
    like.dtype = np.dtype(dtype)
    return g.Range(*[g.number(n, like) for n in (start, end, step)])


def _constant_of(make: Callable[..., Any]) -> Callable[..., Any]:
    def translate(g: Graph, *, dtype: Any, device: Any = None, **attrs: Any) -> Any:
        if any(isinstance(value, SymbolicSize) for value in attrs.values()):
            raise NotTranslated("its size depends on the dynamic axes")
        return g.constant(make(**attrs).astype(dtype))

    return translate


register_onnx("eye")(_constant_of(lambda n, m: np.eye(n, m)))
register_onnx("linspace")(_constant_of(lambda start, end, steps: np.linspace(start, end, steps)))
register_onnx("logspace")(
    _constant_of(lambda start, end, steps, base: np.logspace(start, end, steps, base=base))
)
