"""The vocabulary of the programs: ops, views and in-place writes, each said once for all sides.

A *call* runs on oneflow_lite and on PyTorch alike, because the two spell their APIs the same. A
view also says what it does to an array of positions, and a write which out-of-place call computes
what it writes; that is all the copying interpreter knows of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

Call = Callable[..., Any]


def _method(name: str) -> Call:
    return lambda lib, x, *args: getattr(x, name)(*args)


def _function(name: str) -> Call:
    return lambda lib, *args: getattr(lib, name)(*args)


# Ops: they return new memory

UNARY: dict[str, Call] = {
    name: _method(name)
    for name in "neg exp sin cos tanh sigmoid relu square abs reciprocal clone".split()
} | {
    "sqrt": lambda lib, x: (x * x + 0.5).sqrt(),
    "log": lambda lib, x: (x * x + 0.5).log(),
    "rsqrt": lambda lib, x: (x * x + 0.5).rsqrt(),
    "half": lambda lib, x: x * 0.5,
    "pow": lambda lib, x: x**3,
    "clamp": lambda lib, x: x.clamp(-0.4, 0.8),
    "clamp_min": lambda lib, x: x.clamp_min(0.1),
    "flip_sign": lambda lib, x: 1.5 - x,
}

BINARY: dict[str, Call] = {
    "add": lambda lib, x, y: x + y,
    "sub": lambda lib, x, y: x - y,
    "mul": lambda lib, x, y: x * y,
    "div": lambda lib, x, y: x / (y * y + 0.5),
    "maximum": _function("maximum"),
    "where": lambda lib, x, y: lib.where(x.detach() > y.detach(), x, y),
    "add_alpha": lambda lib, x, y: lib.add(x, y, alpha=0.5),
    "lerp": lambda lib, x, y: x.lerp(y, 0.3),
}

TERNARY: dict[str, Call] = {
    "addcmul": lambda lib, x, y, z: x.addcmul(y, z, value=0.5),
    "addcdiv": lambda lib, x, y, z: x.addcdiv(y, z * z + 0.5, value=0.5),
    "where_of_three": lambda lib, x, y, z: lib.where(x.detach() > 0.3, y, z),
}

# Of one tensor and a dimension of it.
ALONG: dict[str, Call] = {
    "sum": lambda lib, x, dim: x.sum(dim),
    "mean": lambda lib, x, dim: x.mean(dim, keepdim=True),
    "prod": lambda lib, x, dim: x.prod(dim),
    "max": lambda lib, x, dim: x.max(dim)[0],
    "amax": lambda lib, x, dim: x.amax(dim, keepdim=True),
    "cumsum": lambda lib, x, dim: x.cumsum(dim),
    "softmax": lambda lib, x, dim: x.softmax(dim),
    "log_softmax": lambda lib, x, dim: x.log_softmax(dim),
    "logsumexp": lambda lib, x, dim: x.logsumexp(dim),
    "flip": lambda lib, x, dim: x.flip(dim),
    "roll": lambda lib, x, dim: x.roll(1, dim),
    "var": lambda lib, x, dim: x.var(dim, correction=0, keepdim=True),
    "sum_all": lambda lib, x, dim: x.sum(),
    "mean_all": lambda lib, x, dim: x.mean(),
    "cat": lambda lib, x, dim: lib.cat([x, x * 0.5], dim),
    "stack": lambda lib, x, dim: lib.stack([x, x * 0.5], dim),
}

REAL_ONLY = set(
    "relu abs clamp clamp_min maximum where where_of_three max amax softmax log_softmax logsumexp "
    "prod var sigmoid rsqrt sqrt log relu_ clamp_ clamp_min_ clamp_max_ sigmoid_ abs_ floor_ "
    "masked_relu uniform_ normal_ bernoulli_ sqrt_ cumprod_ exp2_ tril_ lerp lerp_".split()
)


# Views: how to make one, and which positions of the memory it shows


@attrs.frozen
class View:
    """A view op: `call` on a tensor, `positions` on an array of positions, a NumPy view as well."""

    call: Call
    positions: Callable[..., Any]


def _select(p: Any, dim: int, index: int) -> Any:
    return p[(*[slice(None)] * dim, index, ...)]


def _narrow(p: Any, dim: int, start: int, length: int) -> Any:
    return p[(*[slice(None)] * dim, slice(start, start + length))]


def _basic(p: Any, *index: Any) -> Any:
    return p[index if Ellipsis in index else (*index, ...)]


def _squeeze(p: Any, dim: int) -> Any:
    return p.squeeze(dim) if p.ndim and p.shape[dim] == 1 else p[...]


def _unfold(p: Any, dim: int, size: int, step: int) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(p, size, axis=dim, writeable=True)
    return windows[(*[slice(None)] * dim, slice(None, None, step))]


def _diagonal(p: Any, offset: int, dim1: int, dim2: int) -> Any:
    shown = np.diagonal(p, offset, dim1, dim2)
    shown.flags.writeable = True
    return shown


def _expand(p: Any, *shape: int) -> Any:
    return np.broadcast_to(p, shape)


def _split(p: Any, size: int, dim: int) -> list[Any]:
    return [_narrow(p, dim, i, size) for i in range(0, max(p.shape[dim], 1), size)]


def _chunk(p: Any, count: int, dim: int) -> list[Any]:
    return _split(p, -(-p.shape[dim] // count), dim) if p.shape[dim] else [p[...]] * count


VIEWS: dict[str, View] = {
    "getitem": View(lambda lib, x, *index: x[index], _basic),
    "select": View(_method("select"), _select),
    "narrow": View(_method("narrow"), _narrow),
    "view": View(_method("view"), lambda p, *shape: p.reshape(shape)),
    "reshape": View(_method("reshape"), lambda p, *shape: p.reshape(shape)),
    "transpose": View(_method("transpose"), np.swapaxes),
    "permute": View(_method("permute"), lambda p, *dims: p.transpose(dims)),
    "t": View(_method("t"), np.transpose),
    "squeeze": View(_method("squeeze"), _squeeze),
    "unsqueeze": View(_method("unsqueeze"), np.expand_dims),
    "expand": View(_method("expand"), _expand),
    "diagonal": View(_method("diagonal"), _diagonal),
    "unfold": View(_method("unfold"), _unfold),
    "movedim": View(_method("movedim"), np.moveaxis),
    "view_as_itself": View(lambda lib, x: x.view_as(x), lambda p: p[...]),
    "real": View(lambda lib, x: x.real, lambda p: p[...]),
    "imag": View(lambda lib, x: x.imag, lambda p: p[...]),
}

# Several views at once; PyTorch lets nobody write into one of them.
MULTI_VIEWS: dict[str, View] = {
    "unbind": View(
        _method("unbind"), lambda p, dim: [_select(p, dim, i) for i in range(p.shape[dim])]
    ),
    "split": View(_method("split"), _split),
    "chunk": View(_method("chunk"), _chunk),
}

# In-place changes of how a tensor itself lies over its memory: the view op that does the same.
RESHAPERS = {
    "t_": "t",
    "transpose_": "transpose",
    "squeeze_": "squeeze",
    "unsqueeze_": "unsqueeze",
}


# Writes: how to make one, and the out-of-place call for what it writes


@attrs.frozen
class Write:
    """An in-place op: `call` writes into its first tensor, `value` returns what it would write."""

    call: Call
    value: Call


def _twin(name: str) -> Write:
    return Write(_method(f"{name}_"), _method(name))


def _augmented(operator: str) -> Call:
    def write(lib: Any, x: Any, *args: Any) -> Any:
        return getattr(x, f"__i{operator}__")(*args)

    return write


WRITES_UNARY = {
    f"{name}_": _twin(name)
    for name in "neg exp sqrt relu tanh sigmoid square abs sin cos exp2 floor".split()
} | {
    "zero_": Write(_method("zero_"), lambda lib, x: lib.zeros_like(x)),
    "fill_": Write(lambda lib, x: x.fill_(0.7), lambda lib, x: lib.full_like(x, 0.7)),
    "clamp_": Write(lambda lib, x: x.clamp_(-0.4, 0.8), lambda lib, x: x.clamp(-0.4, 0.8)),
    "clamp_min_": Write(lambda lib, x: x.clamp_min_(0.1), lambda lib, x: x.clamp_min(0.1)),
    "clamp_max_": Write(lambda lib, x: x.clamp_max_(0.6), lambda lib, x: x.clamp_max(0.6)),
    "pow_": Write(lambda lib, x: x.pow_(3), lambda lib, x: x.pow(3)),
    "add_number_": Write(lambda lib, x: x.add_(0.25), lambda lib, x: x + 0.25),
    "mul_number_": Write(lambda lib, x: x.mul_(1.25), lambda lib, x: x * 1.25),
    # The random ones draw from a distribution of a single value.
    "uniform_": Write(lambda lib, x: x.uniform_(0.3, 0.3), lambda lib, x: lib.full_like(x, 0.3)),
    "normal_": Write(lambda lib, x: x.normal_(0.4, 0.0), lambda lib, x: lib.full_like(x, 0.4)),
    "bernoulli_": Write(lambda lib, x: x.bernoulli_(1.0), lambda lib, x: lib.ones_like(x)),
}

# The second tensor broadcasts to the first.
WRITES_BINARY = {
    "add_": _twin("add"),
    "sub_": _twin("sub"),
    "mul_": _twin("mul"),
    "div_": Write(lambda lib, x, y: x.div_(y * y + 0.5), lambda lib, x, y: x / (y * y + 0.5)),
    "+=": Write(_augmented("add"), lambda lib, x, y: x + y),
    "*=": Write(_augmented("mul"), lambda lib, x, y: x * y),
    "-=": Write(_augmented("sub"), lambda lib, x, y: x - y),
    "add_alpha_": Write(
        lambda lib, x, y: x.add_(y, alpha=0.5), lambda lib, x, y: lib.add(x, y, alpha=0.5)
    ),
    "copy_": Write(_method("copy_"), lambda lib, x, y: lib.zeros_like(x) + y),
    "lerp_": Write(lambda lib, x, y: x.lerp_(y, 0.3), lambda lib, x, y: x.lerp(y, 0.3)),
    "addcmul_": Write(
        lambda lib, x, y: x.addcmul_(y, y, value=0.5),
        lambda lib, x, y: x.addcmul(y, y, value=0.5),
    ),
    "addcdiv_": Write(
        lambda lib, x, y: x.addcdiv_(y, y * y + 0.5),
        lambda lib, x, y: x.addcdiv(y, y * y + 0.5),
    ),
}

# Of a dimension and indices into it.
WRITES_INDEXED = {
    "index_fill_": Write(
        lambda lib, x, dim, index: x.index_fill_(dim, index, 0.9),
        lambda lib, x, dim, index: x.index_fill(dim, index, 0.9),
    ),
    "cumsum_": Write(
        lambda lib, x, dim, index: x.cumsum_(dim), lambda lib, x, dim, index: x.cumsum(dim)
    ),
}
WRITES_SCATTERED = {
    "index_add_": _twin("index_add"),
    "scatter_": _twin("scatter"),
    "scatter_add_": _twin("scatter_add"),
}

# Of a mask of the tensor's own shape.
WRITES_MASKED = {
    "masked_fill_": Write(
        lambda lib, x, mask: x.masked_fill_(mask, 0.6),
        lambda lib, x, mask: x.masked_fill(mask, 0.6),
    ),
}

# What results of an op is made compact, but for keep_order: a Fortran-ordered one stays so.
OPS = (
    UNARY
    | BINARY
    | TERNARY
    | ALONG
    | {
        "matmul": lambda lib, x, y: x @ y,
        "cat_of_two": lambda lib, x, y: lib.cat([x, y], 0),
        "stack_of_two": lambda lib, x, y: lib.stack([x, y], -1),
        "masked_fill": lambda lib, x, mask: x.masked_fill(mask, 0.5),
        "index_select": _method("index_select"),
        "gather": _method("gather"),
        "index": lambda lib, x, index: x[index],
        "index_add": _method("index_add"),
        "scatter_add": _method("scatter_add"),
        "reshape_that_copies": _method("reshape"),
        "keep_order": lambda lib, x: x * 2.0,
    }
)
WRITES = WRITES_MASKED | WRITES_UNARY | WRITES_BINARY | WRITES_INDEXED | WRITES_SCATTERED
