"""Functions of the array API standard that are not elementwise, in NumPy's order of parameters.

The first parameters are the standard's. A parameter that only NumPy has stands where NumPy has it,
so that one function serves both `t.__array_namespace__()` and NumPy's dispatch.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite.array_api.adapter import adapter, functor, through_numpy
from oneflow_lite.array_api.elementwise import meet, operate, tensor
from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import (
    SCALAR_TYPES,
    DType,
    DTypeLike,
    Number,
    as_dtype,
    common_dtype,
    default_float,
    result_dtype,
    to_complex,
)
from oneflow_lite.arrays.dtype_object import DTYPES, dtype as DTypeObject
from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError, arg_error
from oneflow_lite.tensors.tensor import Tensor

# Parts


def _out(out: Any) -> dict[str, Any]:
    return {} if out is None else {"out": out}


def as_float(x: Any) -> Tensor:
    """Return the tensor in a floating or complex dtype."""
    x = tensor(x)
    return x if x.dtype.kind in "fc" else x.to(default_float())


def axes_of(x: Tensor, axis: Any) -> tuple[int, ...]:
    """Return the axes counted from 0; None means all."""
    if axis is None:
        return tuple(range(x.ndim))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for each in axes:
        if not -x.ndim <= each < x.ndim:
            functor("unbind")(x, each)  # raises and names the range
    return tuple([each % x.ndim for each in axes])


def to_end(x: Tensor, axis: Any) -> tuple[Tensor, tuple[int, ...]]:
    """Return the tensor with the axes merged into a last axis, and the shape with them as 1."""
    axes = axes_of(x, axis)
    rest = [i for i in range(x.ndim) if i not in axes]
    sizes = [x.shape[i] for i in rest]
    count = math.prod([x.shape[i] for i in axes])
    kept = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
    return functor("permute")(x, (*rest, *axes)).reshape(*sizes, count), kept


def over_axes(name: str, x: Tensor, axis: Any, keepdims: bool, **options: Any) -> Tensor:
    """Reduce over any number of axes with a functor that reduces one."""
    if isinstance(axis, (int, np.integer)):  # without a copy
        return functor(name)(x, int(axis), bool(keepdims), **options)
    merged, kept = to_end(x, axis)
    result = functor(name)(merged, -1, **options)
    return result.reshape(kept) if keepdims else result


def cast(x: Any, dtype: Any) -> Tensor:
    """Return the tensor in a dtype; None leaves it as it is."""
    return tensor(x, None if dtype is None else as_dtype("astype", dtype))


def summed_dtype(x: Tensor, dtype: Any) -> DType:
    """Return the dtype of a sum: integers are summed in the widest integer dtype of their kind."""
    if dtype is not None:
        return as_dtype("astype", dtype)
    widest = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
    return widest.get(x._data.dtype.kind, x._data.dtype)


# Creation


def _made(name: str, *args: Any, dtype: Any, device: Any, **options: Any) -> Any:
    return functor(name)(*args, dtype=dtype, device=device, **options)


def asarray(
    obj: Any,
    /,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Return a tensor of an array, a number or a nested sequence, sharing memory where it can."""
    if copy is False and not isinstance(obj, (Tensor, np.ndarray)):
        raise arg_error(
            "asarray",
            "copy",
            expected="None or True for a number or a sequence, which is always copied",
            got=False,
            hint="leave it out",
            kind=ArgumentError,
        )
    made = functor("as_tensor")(obj, dtype=dtype, device=device)
    if copy:
        return made.clone() if made is obj or isinstance(obj, np.ndarray) else made
    if copy is False and not np.shares_memory(made.detach().numpy(), np.asarray(_plain(obj))):
        raise arg_error(
            "asarray",
            "copy",
            expected="None or True where dtype or device change",
            got=False,
            hint="leave it out",
            kind=ArgumentError,
        )
    return made


def _plain(obj: Any) -> Any:
    return obj.detach().numpy() if isinstance(obj, Tensor) else obj


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return evenly spaced numbers, without the end."""
    low, high = (0, start) if stop is None else (start, stop)
    if dtype is None and builtins.any([isinstance(x, float) for x in (low, high, step)]):
        dtype = default_float()
    if (high - low) * step < 0:  # empty, where PyTorch raises
        high = low
    return _made("arange", low, high, step, dtype=dtype, device=device)


def empty(
    shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Return an uninitialised tensor."""
    return _made("empty", shape, dtype=dtype, device=device)


def zeros(
    shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Return zeros."""
    return _made("zeros", shape, dtype=dtype, device=device)


def ones(
    shape: int | Sequence[int], *, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Return ones."""
    return _made("ones", shape, dtype=dtype, device=device)


def full(
    shape: int | Sequence[int],
    fill_value: Number,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return a number, repeated."""
    shape = (shape,) if isinstance(shape, int) else shape
    return _made("full", shape, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return ones on the k-th diagonal, zeros elsewhere."""
    # By NumPy, as the functor knows no k.
    chosen = default_float() if dtype is None else as_dtype("eye", dtype)
    return asarray(np.eye(n_rows, n_cols, k, dtype=chosen), device=device)


def linspace(
    start: Number,
    stop: Number,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Return `num` numbers at equal distances."""
    if dtype is None:
        complex_ = isinstance(start, complex) or isinstance(stop, complex)
        dtype = to_complex(default_float()) if complex_ else default_float()
    chosen = as_dtype("linspace", dtype)
    return asarray(np.linspace(start, stop, num, endpoint, dtype=chosen), device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Return coordinate tensors; the first two axes are exchanged unless indexing is "ij"."""
    return list(functor("meshgrid")(*[tensor(x) for x in arrays], indexing=indexing))


adapter("meshgrid")(meshgrid)


def from_dlpack(
    x: Tensor, /, *, device: DeviceLike | None = None, copy: bool | None = None
) -> Tensor:
    """Return an array of another library as a tensor."""
    made = functor("from_dlpack")(x)
    moved = made if device is None else made.to(device)
    return moved.clone() if copy and moved is made else moved


@adapter("empty_like")
def empty_like(
    x: Tensor, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """Return an uninitialised tensor of the same shape."""
    return _made("empty_like", x, dtype=dtype, device=device)


@adapter("zeros_like")
def zeros_like(
    x: Tensor, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """Return zeros of the same shape."""
    return _made("zeros_like", x, dtype=dtype, device=device)


@adapter("ones_like")
def ones_like(
    x: Tensor, /, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """Return ones of the same shape."""
    return _made("ones_like", x, dtype=dtype, device=device)


@adapter("full_like")
def full_like(
    x: Tensor,
    /,
    fill_value: Number,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return a number in the same shape."""
    return _made("full_like", x, fill_value, dtype=dtype, device=device)


@adapter("tril")
def tril(x: Tensor, /, k: int = 0) -> Tensor:
    """Return the lower triangle, zeros elsewhere."""
    return functor("tril")(x, k)


@adapter("triu")
def triu(x: Tensor, /, k: int = 0) -> Tensor:
    """Return the upper triangle, zeros elsewhere."""
    return functor("triu")(x, k)


# Dtypes


@adapter("astype")
def astype(
    x: Tensor, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike | None = None
) -> Tensor:
    """Return the tensor in another dtype, as a copy unless `copy` is False."""
    y = cast(x, dtype)
    y = y if device is None else y.to(device)
    return y.clone() if copy and y is x else y


def result_type(*arrays_and_dtypes: Tensor | DTypeLike | Number) -> DTypeObject:
    """Return the dtype in which tensors, dtypes and numbers meet."""
    arrays, scalars = [], []
    for value in arrays_and_dtypes:
        if isinstance(value, SCALAR_TYPES) and not isinstance(value, np.generic):
            scalars.append(value)
        else:
            own = value.dtype if isinstance(value, (Tensor, np.ndarray, np.generic)) else value
            arrays.append((as_dtype("result_type", own), 1))  # 0-d arrays count alike here
    return DTYPES[result_dtype(arrays, scalars)]


def can_cast(from_: Tensor | DTypeLike, to: Tensor | DTypeLike, /) -> bool:
    """Return whether a dtype is promoted to another without a loss."""
    source = from_.dtype if isinstance(from_, Tensor) else as_dtype("can_cast", from_)
    target = as_dtype("can_cast", to)
    try:
        return common_dtype(source, target) == target
    except DTypeError:  # uint64 and a signed integer meet in none
        return False


_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Return whether a dtype is of a kind: a name of the standard, a dtype, or a tuple of them."""
    if isinstance(kind, tuple):
        return builtins.any([isdtype(dtype, one) for one in kind])
    if isinstance(kind, str) and kind in _KINDS:
        return as_dtype("isdtype", dtype).kind in _KINDS[kind]
    if isinstance(kind, str):
        raise arg_error(
            "isdtype",
            "kind",
            expected="one of " + ", ".join(map(repr, _KINDS)),
            got=repr(kind),
            hint="name a kind of the standard, or pass a dtype",
            kind=ArgumentError,
        )
    return as_dtype("isdtype", dtype) == as_dtype("isdtype", kind)


# Elementwise, with more than operands


@adapter("clip")
def clip(
    x: Tensor,
    /,
    min: Tensor | Number | None = None,
    max: Tensor | Number | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the elements brought into [min, max]."""
    x = tensor(x)
    if min is None and max is None:
        return functor("clone")(x)
    given = [b for b in (min, max) if b is not None]
    if builtins.all([isinstance(b, SCALAR_TYPES) for b in given]):
        return functor("clamp")(x, min, max, **_out(out))
    x, *ends = meet("clip", x, *given)
    low = ends.pop(0) if min is not None else None
    high = ends.pop(0) if max is not None else None
    y = x if low is None else functor("maximum")(x, low)
    y = y if high is None else functor("minimum")(y, high)
    return y if out is None else out.copy_(y)


@adapter("round")
def round(x: Tensor, /, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Return the elements rounded, halves to even."""
    x = tensor(x)
    if x.is_complex():
        parts = [functor("round")(part, decimals=decimals) for part in (x.real, x.imag)]
        return functor("complex")(*parts)
    return functor("round")(x, decimals=decimals, **_out(out))


@adapter("real")
def real(x: Tensor, /) -> Tensor:
    """Return the real parts."""
    return functor("real")(tensor(x))


@adapter("imag")
def imag(x: Tensor, /) -> Tensor:
    """Return the imaginary parts; zeros for real numbers."""
    x = tensor(x)
    return functor("imag")(x) if x.is_complex() else functor("zeros_like")(x)


# Indexing


@adapter("take")
def take(
    x: Tensor, indices: Tensor, /, axis: int | None = None, out: Tensor | None = None
) -> Tensor:
    """Return the entries at `indices` along an axis; negative indices count from the end."""
    x = tensor(x)
    if axis is None:
        x, axis = functor("flatten")(x), 0
    (axis,) = axes_of(x, axis)
    number = isinstance(indices, (int, np.integer))
    index = indices if number else tensor(indices).to(x.device)
    taken = x[(*[slice(None)] * axis, index)]
    return taken if out is None else out.copy_(taken)


@adapter("take_along_axis")
def take_along_axis(x: Tensor, indices: Tensor, /, axis: int | None = -1) -> Tensor:
    """Return the entries that `indices` names for each place along an axis."""
    x, index = tensor(x), tensor(indices).long()
    size = x.numel() if axis is None else x.shape[axis]
    index = functor("where")(index < 0, index + size, index)
    return functor("take_along_dim")(x, index, axis)


# Manipulation


@adapter("broadcast_arrays")
def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Return the tensors in the shape in which they meet."""
    tensors = [tensor(x) for x in arrays]
    shape = np.broadcast_shapes(*[x.shape for x in tensors])
    return [functor("broadcast_to")(x, shape) for x in tensors]


@adapter("broadcast_to")
def broadcast_to(x: Tensor, /, shape: int | Sequence[int]) -> Tensor:
    """Return the tensor in a shape, repeated without a copy."""
    return functor("broadcast_to")(tensor(x), (shape,) if isinstance(shape, int) else shape)


@adapter("concatenate")
def concat(
    arrays: Sequence[Tensor],
    /,
    axis: int | None = 0,
    out: Tensor | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the tensors joined along an axis; None flattens them first."""
    parts = alike("cat", arrays, dtype)
    if axis is None:
        parts, axis = [functor("flatten")(x) for x in parts], 0
    return functor("cat")(parts, axis, **_out(out))


def alike(name: str, arrays: Any, dtype: Any = None) -> list[Tensor]:
    """Return arrays as tensors of one dtype, of `dtype` if it is given."""
    return meet(name, *arrays) if dtype is None else [cast(x, dtype) for x in arrays]


@adapter("stack")
def stack(
    arrays: Sequence[Tensor],
    /,
    axis: int = 0,
    out: Tensor | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the tensors joined along a new axis."""
    return functor("stack")(alike("stack", arrays, dtype), axis, **_out(out))


@adapter("unstack")
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the entries of an axis."""
    return functor("unbind")(tensor(x), axis)


@adapter("expand_dims")
def expand_dims(x: Tensor, /, axis: int | Sequence[int] = 0) -> Tensor:
    """Return the tensor with an axis of size 1 more, or several."""
    x = tensor(x)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    ndim = x.ndim + len(axes)
    for place in sorted([a + ndim if a < 0 else a for a in axes]):
        x = functor("unsqueeze")(x, place)
    return x


@adapter("squeeze")
def squeeze(x: Tensor, /, axis: int | Sequence[int] | None = None) -> Tensor:
    """Return the tensor without axes of size 1; an axis of another size raises."""
    x = tensor(x)
    axes = axes_of(x, axis)
    if axis is not None and builtins.any([x.shape[i] != 1 for i in axes]):
        raise arg_error(
            "squeeze",
            "axis",
            expected="axes of size 1",
            got=f"{axis} of shape {x.shape}",
            hint="name axes of size 1 only",
            kind=ArgumentError,
        )
    return functor("squeeze")(x, axes)


@adapter("flip")
def flip(x: Tensor, /, axis: int | Sequence[int] | None = None) -> Tensor:
    """Return the tensor with the order along the axes reversed."""
    x = tensor(x)
    return functor("flip")(x, axes_of(x, axis))


@adapter("moveaxis")
def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """Return the tensor with axes moved to other places."""
    return functor("movedim")(tensor(x), source, destination)


@adapter("transpose")
def permute_dims(x: Tensor, /, axes: Sequence[int] | None = None) -> Tensor:
    """Return the tensor with its axes in another order, reversed by default."""
    x = tensor(x)
    return functor("permute")(x, tuple(range(x.ndim))[::-1] if axes is None else tuple(axes))


@adapter("repeat")
def repeat(x: Tensor, repeats: Tensor | int | Sequence[int], /, axis: int | None = None) -> Tensor:
    """Return the tensor with each entry of an axis repeated."""
    x = tensor(x)
    if axis is None:
        x, axis = functor("flatten")(x), 0
    (axis,) = axes_of(x, axis)
    counts = _plain(repeats) if isinstance(repeats, Tensor) else repeats
    index = asarray(np.repeat(np.arange(x.shape[axis]), counts), device=x.device)
    return functor("index_select")(x, axis, index)


@adapter("reshape")
def reshape(x: Tensor, /, shape: int | Sequence[int], *, copy: bool | None = None) -> Tensor:
    """Return the tensor in another shape; `copy=False` raises where that takes a copy."""
    x = tensor(x)
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if copy is False:
        return functor("view")(x, *shape)
    y = functor("reshape")(x, shape)
    return y.clone() if copy else y


@adapter("roll")
def roll(
    x: Tensor, /, shift: int | Sequence[int], axis: int | Sequence[int] | None = None
) -> Tensor:
    """Return the tensor with the entries moved along the axes, and from the end to the front."""
    x = tensor(x)
    if axis is None:
        return functor("roll")(x, shift)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    for each, by in zip(axes, shifts, strict=True):  # an axis may be named twice
        x = functor("roll")(x, by, each)
    return x


@adapter("tile")
def tile(x: Tensor, repetitions: int | Sequence[int], /) -> Tensor:
    """Return the tensor repeated as a whole."""
    counts = (repetitions,) if isinstance(repetitions, (int, np.integer)) else tuple(repetitions)
    return functor("tile")(tensor(x), counts) if counts else tensor(x).clone()


# Searching


@adapter("argmax")
def argmax(
    x: Tensor, /, axis: int | None = None, out: Tensor | None = None, *, keepdims: bool = False
) -> Tensor:
    """Return the place of the largest element."""
    return functor("argmax")(tensor(x), axis, keepdims, **_out(out))


@adapter("argmin")
def argmin(
    x: Tensor, /, axis: int | None = None, out: Tensor | None = None, *, keepdims: bool = False
) -> Tensor:
    """Return the place of the smallest element."""
    return functor("argmin")(tensor(x), axis, keepdims, **_out(out))


@adapter("count_nonzero")
def count_nonzero(
    x: Tensor, /, axis: int | Sequence[int] | None = None, *, keepdims: bool = False
) -> Tensor:
    """Return how many elements are not zero."""
    return sum(operate("not_equal", tensor(x), 0), axis, keepdims=keepdims)


@adapter("nonzero")
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero, one tensor for each dimension."""
    x = tensor(x)
    if not x.ndim:
        raise arg_error(
            "nonzero",
            "x",
            expected="one dimension or more",
            got="a 0-d tensor",
            hint="reshape it to (1,)",
            kind=ShapeError,
        )
    return functor("nonzero")(x, as_tuple=True)


@adapter("searchsorted")
def searchsorted(
    x1: Tensor, x2: Tensor, /, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Return where each element of `x2` belongs in the sorted `x1`."""
    options = {} if sorter is None else {"sorter": tensor(sorter).long()}
    return functor("searchsorted")(tensor(x1), tensor(x2), side=side, **options)


@adapter("where")
def where(condition: Tensor, x1: Tensor | None = None, x2: Tensor | None = None, /) -> Any:
    """Return elements of `x1` where the condition holds, of `x2` elsewhere."""
    condition = tensor(condition)
    if x1 is None and x2 is None:
        return nonzero(condition)
    return functor("where")(condition.bool(), *meet("where", x1, x2))


# Sets


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


@adapter("unique_all")
def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the distinct values, their first places, the place of each element, and counts."""
    return UniqueAll(*through_numpy("unique_all", (x,), {}))


@adapter("unique_counts")
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct values, and their counts."""
    return UniqueCounts(*through_numpy("unique_counts", (x,), {}))


@adapter("unique_inverse")
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the distinct values, and for each element the place of its value."""
    return UniqueInverse(*through_numpy("unique_inverse", (x,), {}))


@adapter("unique_values")
def unique_values(x: Tensor, /) -> Tensor:
    """Return the distinct values."""
    return through_numpy("unique_values", (x,), {})


# Sorting


@adapter("argsort")
def argsort(
    x: Tensor,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = True,
    descending: bool = False,
) -> Tensor:
    """Return the indices that sort the tensor along an axis."""
    x, axis = (functor("flatten")(tensor(x)), 0) if axis is None else (tensor(x), axis)
    return functor("argsort")(x, axis, descending, stable=True)


@adapter("sort")
def sort(
    x: Tensor,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = True,
    descending: bool = False,
) -> Tensor:
    """Return the tensor sorted along an axis."""
    x, axis = (functor("flatten")(tensor(x)), 0) if axis is None else (tensor(x), axis)
    return functor("sort")(x, axis, descending, stable=True)[0]


# Statistics


@adapter("sum")
def sum(
    x: Tensor,
    /,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the sum over axes."""
    x = tensor(x)
    dtype = summed_dtype(x, dtype) if out is None else out.dtype
    x = cast(x, dtype)
    return x if axis == () else cast(functor("sum")(x, axis, keepdims, **_out(out)), dtype)


@adapter("prod")
def prod(
    x: Tensor,
    /,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the product over axes."""
    x = tensor(x)
    dtype = summed_dtype(x, dtype) if out is None else out.dtype
    x = cast(x, dtype)
    return x if axis == () else cast(over_axes("prod", x, axis, keepdims, **_out(out)), dtype)


@adapter("mean")
def mean(
    x: Tensor,
    /,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the mean over axes."""
    x = as_float(x) if dtype is None else cast(x, dtype)
    return x if axis == () else functor("mean")(x, axis, keepdims, **_out(out))


def _spread(
    name: str,
    x: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    ddof: float,
    keepdims: bool,
    correction: float | None,
) -> Tensor:
    x = as_float(x) if dtype is None else cast(x, dtype)
    if axis == ():
        x, axis, keepdims = functor("unsqueeze")(x, -1), -1, False
    by = ddof if correction is None else correction
    return functor(name)(x, axis, keepdim=keepdims, correction=by, **_out(out))


@adapter("var")
def var(
    x: Tensor,
    /,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the variance over axes."""
    return _spread("var", x, axis, dtype, out, ddof, keepdims, correction)


@adapter("std")
def std(
    x: Tensor,
    /,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the standard deviation over axes."""
    return _spread("std", x, axis, dtype, out, ddof, keepdims, correction)


@adapter("max")
def max(
    x: Tensor,
    /,
    axis: int | Sequence[int] | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the largest element over axes; equal elements share the gradient."""
    x = tensor(x)
    return x if axis == () else functor("amax")(x, axis, keepdims, **_out(out))


@adapter("min")
def min(
    x: Tensor,
    /,
    axis: int | Sequence[int] | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the smallest element over axes; equal elements share the gradient."""
    x = tensor(x)
    return x if axis == () else functor("amin")(x, axis, keepdims, **_out(out))


def _cumulative(
    name: str, x: Any, axis: int | None, dtype: Any, out: Any, include_initial: bool
) -> Tensor:
    x = tensor(x)
    if axis is None and x.ndim > 1:
        raise arg_error(
            f"cumulative_{name}",
            "axis",
            expected="an axis, for a tensor of several dimensions",
            got=None,
            hint="name the axis",
            kind=ArgumentError,
        )
    x, axis = (functor("flatten")(x), 0) if axis is None or not x.ndim else (x, axis)
    dtype = summed_dtype(x, dtype)
    x = cast(x, dtype)
    if include_initial:
        first = list(x.shape)
        first[axis] = 1
        value = 0 if name == "sum" else 1
        x = functor("cat")([full(first, value, dtype=x.dtype, device=x.device), x], axis)
    return cast(functor(f"cum{name}")(x, axis, **_out(out)), dtype)


@adapter("cumulative_sum")
def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running sum along an axis."""
    return _cumulative("sum", x, axis, dtype, out, include_initial)


@adapter("cumulative_prod")
def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running product along an axis."""
    return _cumulative("prod", x, axis, dtype, out, include_initial)


# Truth, differences


@adapter("all")
def all(
    x: Tensor,
    /,
    axis: int | Sequence[int] | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return whether all elements over axes are true."""
    x = tensor(x).bool()
    return x if axis == () else functor("all")(x, axis, keepdims, **_out(out))


@adapter("any")
def any(
    x: Tensor,
    /,
    axis: int | Sequence[int] | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return whether any element over axes is true."""
    x = tensor(x).bool()
    return x if axis == () else functor("any")(x, axis, keepdims, **_out(out))


@adapter("diff")
def diff(
    x: Tensor,
    /,
    n: int = 1,
    axis: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours along an axis, taken `n` times."""
    x = tensor(x)
    (axis,) = axes_of(x, axis)
    parts = alike("cat", [part for part in (prepend, x, append) if part is not None])
    entry = [1 if i == axis else k for i, k in enumerate(x.shape)]
    parts = [part if part.ndim else functor("broadcast_to")(part, entry) for part in parts]
    x = functor("cat")(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        size = x.shape[axis]
        low = functor("narrow")(x, axis, 0, builtins.max(size - 1, 0))
        high = functor("narrow")(x, axis, builtins.min(1, size), builtins.max(size - 1, 0))
        x = operate("not_equal" if x.dtype.kind == "b" else "subtract", high, low)
    return x


# Linear algebra of the main namespace


@adapter("matmul")
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the matrix product."""
    return functor("matmul")(*meet("matmul", x1, x2))


@adapter("matrix_transpose")
def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return the tensor with its last two axes exchanged."""
    x = tensor(x)
    if x.ndim < 2:
        raise arg_error(
            "matrix_transpose",
            "x",
            expected="two dimensions or more",
            got=f"shape {x.shape}",
            hint="reshape it into a matrix",
            kind=ShapeError,
        )
    return functor("transpose")(x, -2, -1)


@adapter("tensordot")
def tensordot(x1: Tensor, x2: Tensor, /, axes: int | Sequence[int] = 2) -> Tensor:
    """Return the sum of products over the axes named for both."""
    return functor("tensordot")(*meet("tensordot", x1, x2), axes)


@adapter("vecdot")
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the product of vectors along an axis; `x1` is conjugated."""
    x, y = meet("vecdot", x1, x2)
    if not -min_ndim(x, y) <= axis < min_ndim(x, y) or x.shape[axis] != y.shape[axis]:
        raise arg_error(
            "vecdot",
            "x2",
            expected=f"as many elements as x1 of shape {x.shape} along axis {axis}",
            got=f"shape {y.shape}",
            hint="name an axis that both have, of one size",
            kind=ShapeError,
        )
    product = functor("mul")(functor("conj")(x) if x.is_complex() else x, y)
    return cast(functor("sum")(product, axis), x.dtype)


def min_ndim(x: Tensor, y: Tensor) -> int:
    """Return the smaller number of dimensions."""
    return builtins.min(x.ndim, y.ndim)
