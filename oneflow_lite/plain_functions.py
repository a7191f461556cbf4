"""Functions of PyTorch that are said in a few others: no ops, and no declarations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import array_module, as_device, to_device
from oneflow_lite.arrays.dtype import as_dtype, default_float
from oneflow_lite.arrays.size import Size
from oneflow_lite.errors import ArgumentError, ShapeError, arg_error
from oneflow_lite.functors.creation import arange, check_real, from_dlpack, from_numpy, full, tensor
from oneflow_lite.functors.declaring.out import fill_out
from oneflow_lite.functors.joining import cat
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor, make_constant


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Return anything as a tensor, sharing memory where it can be shared.

    obj: a tensor, a NumPy array or scalar, an object with `__dlpack__`, a buffer (read as elements
    of `dtype`), or numbers in nested sequences.
    copy: True always copies, False raises where a copy is needed.
    requires_grad: by default that of `obj`; False cuts a tensor off from its history.

    Raises `ArgumentError` when `copy=False` cannot be kept.

    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> array = np.zeros(2)
    >>> shared = flow.asarray(array)
    >>> array[0] = 1
    >>> shared
    tensor([1., 0.], dtype=float64)
    """
    dtype = None if dtype is None else as_dtype("asarray", dtype)
    is_array = isinstance(obj, np.ndarray)
    shared: Tensor | None = None
    if isinstance(obj, Tensor):
        shared = obj
    elif is_array and obj.dtype.isnative and obj.dtype.kind in "biufc":
        shared = from_numpy(obj)
    elif not is_array and not isinstance(obj, np.generic) and hasattr(obj, "__dlpack__"):
        shared = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        shared = frombuffer(obj, dtype=default_float() if dtype is None else dtype)
    if shared is None:
        if copy is False:
            raise _not_shared_error(f"a {type(obj).__name__}")
        made = tensor(obj, dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made
    place = shared.device if device is None else as_device(device)
    result = shared.to(place, shared.dtype if dtype is None else dtype)
    if result is not shared and copy is False:
        raise _not_shared_error(f"{shared.dtype} on {shared.device}")
    if copy and result is shared:
        result = shared.clone()
    if requires_grad is False and result.requires_grad:
        result = result.detach()
    return result.requires_grad_() if requires_grad and not result.requires_grad else result


def _not_shared_error(got: str) -> Exception:
    expected = "what shares memory, as copy=False asks"
    return arg_error("asarray", "obj", expected, got, "leave copy= out", ArgumentError)


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Return the bytes of a buffer as a tensor of one dimension that shares its memory.

    buffer: an object with Python's buffer protocol, as a bytearray; of one that cannot be written
    the tensor cannot be written either.
    count: the number of elements; -1 takes all bytes.
    offset: the bytes to leave out at the start.

    Raises `ArgumentError` when the bytes are too few, or no whole number of elements.

    >>> import oneflow_lite as flow
    >>> flow.frombuffer(bytearray([1, 0, 2, 0]), dtype=flow.int16)
    tensor([1, 2], dtype=int16)
    """
    dtype = as_dtype("frombuffer", dtype)
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        expected, got = "an object with the buffer protocol", type(buffer).__name__
        hint = "use flow.tensor(...)"
        raise arg_error("frombuffer", "buffer", expected, got, hint, ArgumentError) from None
    size, left = dtype.itemsize, length - offset
    wrong: tuple[str, str, Any] | None = None
    if not length or not count:
        wrong = "buffer", "bytes, and a count that is not 0", f"{length} bytes, count {count}"
    elif not 0 <= offset < length:
        wrong = "offset", f"0 to {length - 1}, as the buffer has {length} bytes", offset
    elif count < 0 and left % size:
        wrong = "buffer", f"a multiple of {size} bytes after the offset", left
    elif count > 0 and count * size > left:
        wrong = "count", f"at most {left // size} elements of {size} bytes", count
    if wrong is not None:
        hint = "change count or offset"
        raise arg_error("frombuffer", wrong[0], wrong[1], wrong[2], hint, ArgumentError)
    array = np.frombuffer(buffer, dtype, -1 if count < 0 else count, offset)
    return from_numpy(array).requires_grad_(requires_grad)


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return an uninitialised tensor of a size whose elements lie in memory at these strides.

    Raises `ShapeError` when there is not one stride of at least 0 for each size.

    >>> import oneflow_lite as flow
    >>> flow.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    size, strides = Size(size), Size(stride)
    if len(size) != len(strides) or min(strides, default=0) < 0 or min(size, default=0) < 0:
        expected, got = "one stride of at least 0 for each size", f"{strides} for sizes {size}"
        hint = "give as many strides as sizes"
        raise arg_error("empty_strided", "stride", expected, got, hint, ShapeError)
    chosen = default_float() if dtype is None else as_dtype("empty_strided", dtype)
    place = as_device(device)
    last = sum((n - 1) * step for n, step in zip(size, strides, strict=True))
    memory = np.empty(last + 1 if size.numel() else 0, chosen)
    memory = memory if place.type == "cpu" else to_device(memory, place)
    steps = tuple(step * chosen.itemsize for step in strides)
    as_strided = array_module(place).lib.stride_tricks.as_strided
    return make_constant(as_strided(memory, tuple(size), steps)).requires_grad_(requires_grad)


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """Return a number as a 0-d tensor, of the default dtype unless one is given.

    >>> import oneflow_lite as flow
    >>> flow.scalar_tensor(3)
    tensor(3.)
    """
    dtype = default_float() if dtype is None else dtype
    return full((), s, dtype=dtype, device=device, **options)


def range(
    start: Any, end: Any, step: Any = 1, *, out: Any = None, dtype: Any = None, **options: Any
) -> Tensor:
    """Return numbers from `start` to `end`, which is included, in the default dtype.

    A UserWarning says that PyTorch will drop it for `arange`, which leaves the end out.

    >>> import warnings
    >>> import oneflow_lite as flow
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     flow.range(1, 3)
    tensor([1., 2., 3.])
    """
    warn_caller("range() is deprecated; use arange(), which leaves the end out")
    given = {"start": start, "end": end, "step": step}
    start, end, step = (check_real("range", name, value) for name, value in given.items())
    if not step or (end - start) * step < 0:
        expected, got = "a step that leads from start to end", step
        hint = "change its sign"
        raise arg_error("range", "step", expected, got, hint, ArgumentError)
    count = math.floor((end - start) / step) + 1
    if dtype is None:
        dtype = default_float() if out is None else out.dtype
    result = arange(count, dtype=np.float64, **options) * step + start
    result = result.to(dtype)
    return result if out is None else fill_out("range", out, result)


def broadcast_shapes(*shapes: Any) -> Size:
    """Return the shape in which tensors of these shapes meet.

    Raises `ShapeError` when there is none.

    >>> import oneflow_lite as flow
    >>> flow.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    listed = [tuple(s) if isinstance(s, (tuple, list)) else (s,) for s in shapes]
    try:
        return Size(np.broadcast_shapes(*listed))
    except ValueError:
        expected, hint = "shapes that broadcast together", "make the sizes equal or 1"
        got = " and ".join(map(str, listed))
        raise arg_error("broadcast_shapes", "shapes", expected, got, hint, ShapeError) from None


def nonzero_static(
    input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None
) -> Tensor:
    """Return `size` rows: the indices of the first elements that are not 0, then `fill_value`.

    >>> import oneflow_lite as flow
    >>> flow.nonzero_static(flow.tensor([0, 5]), size=2).tolist()
    [[1], [-1]]
    """
    found = input.nonzero()[:size]
    rest = found.new_full((size - found.shape[0], found.shape[1]), fill_value)
    result = cat([found, rest])
    return result if out is None else fill_out("nonzero_static", out, result)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norm over all dimensions but one, which keeps its place; for -1 over all.

    >>> import oneflow_lite as flow
    >>> flow.norm_except_dim(flow.ones(2, 4)).tolist()
    [[2.0], [2.0]]
    """
    norm = FUNCTORS.get("norm")
    if dim == -1:
        return norm(v, pow)  # type: ignore[no-any-return]
    kept = dim % v.ndim
    others = tuple(d for d, _ in enumerate(v.shape) if d != kept)
    return norm(v, pow, others, True) if others else v.abs()


def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Return the parts that `split_with_sizes` returns, as copies, which may be written freely."""
    return FUNCTORS.get("split_with_sizes_copy")(input, split_sizes, dim)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the diagonal, that of equal indices, to a number.

    wrap: go on below the square part of a tall matrix.

    Raises `ShapeError` for fewer than two dimensions, or three and more of different sizes.
    """
    sizes, expected = self.shape, ""
    if len(sizes) < 2:
        expected = "at least 2 dimensions"
    elif len(sizes) > 2 and len(set(sizes)) > 1:
        expected = "dimensions of one size, as there are more than 2"
    if expected:
        hint = "fill each matrix by itself"
        raise arg_error("fill_diagonal_", "self", expected, f"shape {sizes}", hint, ShapeError)
    count, step, start = min(sizes), sum(self.stride()), self.storage_offset()
    if count:
        self.as_strided((count,), (step,), start).fill_(fill_value)
    height, width = sizes[:2]
    if wrap and len(sizes) == 2 and height > width + 1 and count:
        more = math.ceil(self.numel() / (width + 1)) - count
        start += self.stride(0) * (width + 1)
        self.as_strided((more,), (step,), start).fill_(fill_value)
    return self
