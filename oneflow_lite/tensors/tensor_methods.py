"""Methods of Tensor that ask or set what it is made of, and compute nothing.

Attached with the functors' methods, so that tensor.py holds the data model alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import c_strides
from oneflow_lite.arrays.device import CPU, DeviceLike, to_device
from oneflow_lite.arrays.dtype import DTypeLike, as_dtype, default_float
from oneflow_lite.arrays.memory_format import check_memory_format, memory_format
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GradientError,
    ShapeError,
    arg_error,
    memory_for,
)
from oneflow_lite.tensors.tensor import Tensor, make_tensor


class layout:
    """The layout of a tensor: `flow.strided`, or `flow.sparse_coo` of a SparseTensor."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"oneflow_lite.{self._name}"


strided = layout("strided")

# The class names that `type()` speaks, as PyTorch's.
TYPE_NAMES = {
    "BFloat16Tensor": "bfloat16",
    "BoolTensor": "bool",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ComplexDoubleTensor": "complex128",
    "ComplexFloatTensor": "complex64",
    "DoubleTensor": "float64",
    "FloatTensor": "float32",
    "HalfTensor": "float16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "ShortTensor": "int16",
    "UInt16Tensor": "uint16",
    "UInt32Tensor": "uint32",
    "UInt64Tensor": "uint64",
}


def type_(self: Tensor, dtype: DTypeLike | None = None, non_blocking: bool = False) -> Any:
    """Return PyTorch's name of the type, such as "torch.FloatTensor", or the tensor as another."""
    if dtype is None:
        names = {kind: name for name, kind in TYPE_NAMES.items()}
        return f"torch.{'cuda.' if self.is_cuda else ''}{names[self.dtype.name]}"
    if isinstance(dtype, str) and dtype.startswith("torch."):
        place, _, name = dtype.removeprefix("torch.").rpartition(".")
        if name not in TYPE_NAMES or place not in ("", "cuda"):
            raise arg_error(
                "type",
                "dtype",
                expected="a dtype, or one of " + ", ".join([f"'torch.{n}'" for n in TYPE_NAMES]),
                got=repr(dtype),
                hint="pass flow.float32 or another dtype",
                kind=ArgumentError,
            )
        return self.to(place or "cpu", TYPE_NAMES[name])
    if hasattr(dtype, "type_name"):
        return type_(self, dtype.type_name)
    # PyTorch's alias of the type that has the default dtype.
    if dtype is Tensor:  # type: ignore[comparison-overlap]
        dtype = default_float()
    return self.to(as_dtype("type", dtype))


def data_ptr(self: Tensor) -> int:
    """Return the address of the first element; 0 when there is none."""
    self._leave("data_ptr")
    array = self._data
    if not array.size:
        return 0
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


@guarded
def get_device(self: Tensor) -> int:
    """Return the index of the CUDA device; -1 on the CPU."""
    return -1 if self.device.index is None else self.device.index


def is_inference(input: Tensor) -> bool:
    """Return whether the tensor was made in `inference_mode`."""
    return input._inference


@guarded
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is not 0."""
    return bool(input)


@guarded
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have one shape."""
    return input.shape == other.shape


@guarded
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return whether two tensors are the same memory, laid out alike."""
    same = self.shape == tensor.shape and self.stride() == tensor.stride()
    return same and data_ptr(self) == data_ptr(tensor)


@guarded
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype has negative numbers."""
    return input.dtype.kind not in "bu"


def is_pinned(self: Tensor, device: DeviceLike | None = None) -> bool:
    """Return False: pinned memory is used for transfers only."""
    return False


def dim_order(self: Tensor) -> tuple[int, ...]:
    """Return the dimensions from the largest stride to the smallest."""
    strides = self.stride()
    return tuple(sorted(range(self.ndim), key=lambda i: (-strides[i], i)))


def never(input: Tensor) -> bool:
    """Return False: there are no such tensors here."""
    return False


no = property(never)
ndimension = dense_dim = Tensor.dim


@property  # type: ignore[misc]
def is_cpu(self: Tensor) -> bool:
    """Whether the tensor is on the CPU."""
    return self.device is CPU


@property  # type: ignore[misc]
def of_layout(self: Tensor) -> layout:
    """The layout of the tensor in memory."""
    return strided


def _writable(op: str, self: Tensor) -> None:
    if self.requires_grad or (self._base is not None and self._base.requires_grad):
        raise GradientError(
            f"{op}(): the tensor requires a gradient, which cannot follow; detach() it first"
        )
    if self.is_view():
        raise arg_error(
            op,
            "self",
            expected="a tensor that is no view of another one",
            got=f"a view of a tensor of shape {self._base.shape if self._base is not None else ()}",
            hint="clone() it first",
            kind=ShapeError,
        )
    self._leave(op)


@guarded
def resize_(
    self: Tensor,
    *sizes: Any,
    size: Sequence[int] | None = None,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Change the shape in place; the elements keep their order, new ones hold anything.

    Unlike in PyTorch the memory is new when the number of elements changes, so tensors that
    shared the old memory keep it.
    """
    check_memory_format("resize_", memory_format)
    _writable("resize_", self)
    sizes = sizes if size is None else (size,)
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    flat = self._data.reshape(-1)
    count = math.prod(shape)
    if count == flat.size:
        self._data = flat.reshape(shape)
    else:
        with memory_for("resize_", size=shape):
            array = np.empty(count, self.dtype)
        array = array if self.device is CPU else to_device(array, self.device)
        kept = min(count, flat.size)
        array[:kept] = flat[:kept]
        version = self._version
        _take(self, make_tensor(array.reshape(shape)))
        self.memory.version = version
    self.memory.version += 1
    return self


@guarded
def resize_as_(
    input: Tensor, the_template: Tensor, *, memory_format: memory_format | None = None
) -> Tensor:
    """Change the shape in place to that of another tensor."""
    return resize_(input, the_template.shape, memory_format=memory_format)


@guarded
def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Make the tensor another name of the memory of `source`; without one it becomes empty.

    source: a tensor, or a storage.
    storage_offset, size, stride: the part to take, counted in elements; by default all of it, and
    as it lies in C order.
    """
    _writable("set_", self)
    if hasattr(source, "elements"):  # a storage
        source = source.elements(self._data.dtype)
    if source is None:
        source = make_tensor(self._data[:0].reshape(0) if self.ndim else self._data.reshape(1)[:0])
    if not isinstance(source, Tensor):
        raise arg_error(
            "set_",
            "source",
            expected="a Tensor or a storage",
            got=type(source).__name__,
            hint="pass a tensor",
            kind=ArgumentTypeError,
        )
    if source.dtype != self.dtype:
        raise arg_error(
            "set_",
            "source",
            expected=f"dtype {self.dtype}",
            got=source.dtype,
            hint="convert it first",
            kind=DTypeError,
        )
    source = source.detach()
    if size is not None:
        steps = c_strides(tuple(size), 1) if stride is None else stride
        source = source.as_strided(size, steps, storage_offset)
    _take(self, source)
    return self


def _take(self: Tensor, other: Tensor) -> None:
    """Take over another tensor's memory; values that a graph saved count as overwritten."""
    self.memory.version += 1
    self.data = other


@guarded
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it; slow, on the CPU only."""
    return _mapped("apply_", self, callable)


@guarded
def map_(self: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a function makes of it and one of another tensor."""
    return _mapped("map_", self, callable, other)


def _mapped(op: str, self: Tensor, function: Callable[..., Any], *others: Tensor) -> Tensor:
    if self.requires_grad or any([x.requires_grad for x in others]):
        raise GradientError(
            f"{op}(): a tensor requires a gradient, which cannot follow a Python function; "
            "detach() it first"
        )
    if self.is_cuda:
        raise ArgumentTypeError(f"{op}(): the tensor is on {self.device}; call .cpu() first")
    columns = [x.expand(self.shape).reshape(-1).tolist() for x in (self, *others)]
    values = [function(*row) for row in zip(*columns, strict=True)]
    return self.copy_(make_tensor(np.array(values, self.dtype).reshape(self.shape)))


@property  # type: ignore[misc]
def __cuda_array_interface__(self: Tensor) -> Any:
    """The protocol of other CUDA libraries; there on CUDA devices only."""
    if not self.is_cuda:
        raise AttributeError("a tensor on the CPU has no __cuda_array_interface__")
    if self.requires_grad:
        raise GradientError(
            "__cuda_array_interface__: a tensor that requires a gradient is not exported; "
            "detach() it first"
        )
    return self._data.__cuda_array_interface__


def sparse_dim(self: Tensor) -> int:
    """Return the number of dimensions that indices stand for: none in a dense tensor."""
    return 0


def to_dense(
    self: Tensor, dtype: DTypeLike | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """Return the tensor, which is dense; converted where a dtype is named."""
    return self if dtype is None else self.to(dtype)
