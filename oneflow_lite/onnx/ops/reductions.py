"""Ops that reduce dimensions, or run along one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.onnx.graph import Graph, Value
from oneflow_lite.onnx.ops.elementwise import from_scalar
from oneflow_lite.onnx.registry import NotTranslated, register_onnx


def _dims(x: Value, dim: Any) -> list[int]:
    dims = range(x.ndim) if dim is None else [dim] if type(dim) is int else dim
    return [d % max(x.ndim, 1) for d in dims]


def _reduced(op_type: str, integers: Any = None) -> Callable[..., Any]:
    def translate(g: Graph, x: Value, *, dim: Any, keepdim: bool = False) -> Any:
        if integers is not None and x.dtype.kind in "iub":
            x, shape = g.cast(x, integers), x.shape
            x.shape = shape
        dims = _dims(x, dim) if x.ndim else []
        if not dims:  # an element is its own sum and extreme; ONNX would reduce all
            return x
        return g.node(op_type, x, g.sizes(dims), keepdims=int(keepdim))

    return translate


for _op, _onnx_op, _integers in (
    ("sum", "ReduceSum", np.int64), ("mean", "ReduceMean", None), ("prod", "ReduceProd", np.int64),
    ("amax", "ReduceMax", None), ("amin", "ReduceMin", None),
):  # fmt: skip
    register_onnx(_op)(_reduced(_onnx_op, _integers))


def _truth(op_type: str) -> Callable[..., Any]:
    """`any` and `all`: the largest, or smallest, of zeros and ones."""

    def translate(g: Graph, x: Value, *, dim: Any, keepdim: bool = False) -> Any:
        ones = g.cast(g.cast(x, bool), np.int32)
        ones.shape, ones.dtype = x.shape, np.dtype(np.int32)
        return g.cast(_reduced(op_type)(g, ones, dim=dim, keepdim=keepdim), bool)

    return translate


register_onnx("any")(_truth("ReduceMax"))
register_onnx("all")(_truth("ReduceMin"))


@register_onnx("count_nonzero")
def _count_nonzero(g: Graph, x: Value, *, dim: Any) -> Any:
    ones = g.cast(g.cast(x, bool), np.int64)
    ones.shape, ones.dtype = x.shape, np.dtype(np.int64)
    return _reduced("ReduceSum")(g, ones, dim=dim)


def _place(op_type: str) -> Callable[..., Any]:
    def translate(g: Graph, x: Value, *, dim: Any, keepdim: bool) -> Any:
        if not x.ndim:
            return g.constant(np.int64(0))
        if dim is not None:
            return g.node(op_type, x, axis=dim, keepdims=int(keepdim))
        flat = g.node(op_type, g.Reshape(x, g.sizes([-1])), axis=0, keepdims=0)
        return g.Reshape(flat, g.sizes([1] * x.ndim if keepdim else []))

    return translate


register_onnx("argmax")(_place("ArgMax"))
register_onnx("argmin")(_place("ArgMin"))


def _extreme(values: str, place: str) -> Callable[..., Any]:
    def translate(g: Graph, x: Value, *, dim: Any, keepdim: bool) -> Any:
        return (
            _reduced(values)(g, x, dim=dim, keepdim=keepdim),
            _place(place)(g, x, dim=dim, keepdim=keepdim),
        )

    return translate


register_onnx("max")(_extreme("ReduceMax", "ArgMax"))
register_onnx("min")(_extreme("ReduceMin", "ArgMin"))


@register_onnx("softmax")
def _softmax(g: Graph, x: Value, *, dim: int) -> Any:
    return g.Softmax(x, axis=dim) if x.ndim else g.constant(np.ones((), x.dtype))


@register_onnx("log_softmax")
def _log_softmax(g: Graph, x: Value, *, dim: int) -> Any:
    return g.LogSoftmax(x, axis=dim) if x.ndim else g.constant(np.zeros((), x.dtype))


@register_onnx("norm")
def _norm(g: Graph, x: Value, *, p: float, dim: Any, keepdim: bool) -> Any:
    kinds = {1.0: "ReduceL1", 2.0: "ReduceL2"}
    if p in kinds:
        magnitudes = g.Abs(x)
        magnitudes.shape, magnitudes.dtype = x.shape, x.dtype
        return _reduced(kinds[p])(g, magnitudes, dim=dim, keepdim=keepdim)
    y = from_scalar("norm", g, [x], {"p": p, "dim": dim, "keepdim": keepdim})
    if y is not None:
        return y
    powers = g.Pow(g.Abs(x), g.number(p, x))
    powers.shape, powers.dtype = x.shape, x.dtype
    return g.Pow(_reduced("ReduceSum")(g, powers, dim=dim, keepdim=keepdim), g.number(1 / p, x))


@register_onnx("cumsum")
def _cumsum(g: Graph, x: Value, *, dim: int) -> Any:
    if x.dtype.kind in "iub":
        x, shape = g.cast(x, np.int64), x.shape
        x.shape = shape
    return g.CumSum(x, np.int64(dim)) if x.ndim else x


@register_onnx("shift")
def _shift(g: Graph, x: Value, *, dim: int, offset: int, fill: Any) -> Any:
    if not x.ndim:
        raise NotTranslated("only tensors with dimensions")
    axis = g.sizes([dim])
    ends: Sequence[int] = (0, -1) if offset > 0 else (1, np.iinfo(np.int64).max)
    kept = g.Slice(x, g.sizes([ends[0]]), g.sizes([ends[1]]), axis)
    pads = g.sizes([1, 0] if offset > 0 else [0, 1])
    return g.Pad(kept, pads, g.number(fill, x), axis)
