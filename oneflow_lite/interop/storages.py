"""Storages: the memory behind a tensor as one dimension, typed or in bytes, and from files."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from oneflow_lite.arrays.array_spec import owner
from oneflow_lite.arrays.bfloat16_arrays import adopted, as_plain
from oneflow_lite.arrays.device import CPU, Device, DeviceLike, as_device, to_device
from oneflow_lite.arrays.dtype import DType, DTypeLike, as_dtype, default_float
from oneflow_lite.arrays.dtype_object import dtype as DTypeObject
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.arrays.size import Size
from oneflow_lite.errors import ArgumentTypeError, arg_error
from oneflow_lite.functors.creation import from_file
from oneflow_lite.tensors.spellings import as_number
from oneflow_lite.tensors.tensor import Tensor, as_constant, make_tensor, to_array
from oneflow_lite.tensors.tensor_methods import type_


@guarded
def construct(op: str, dtype: DType, device: Device, data: tuple[Any, ...]) -> Tensor:
    """Return the tensor of an old constructor: sizes give uninitialised memory, the rest is data.

    A tensor is not copied, and has to be of the type itself.
    """
    first = data[0] if data else 0
    if len(data) == 1 and isinstance(first, Tensor) and first.ndim:
        if first.dtype != dtype or first.device != device:
            raise arg_error(
                op,
                "data",
                expected=f"a tensor of dtype {dtype} on {device}",
                got=f"{first.dtype} on {first.device}",
                hint="convert it with to()",
                kind=ArgumentTypeError,
            )
        return first.view_as(first)
    sizes = first if isinstance(first, Size) and len(data) == 1 else data
    if isinstance(sizes, Size) or all(isinstance(as_number(n), int) for n in data):
        array = np.empty([int(n) for n in sizes] if data else 0, dtype)
    elif len(data) == 1 and not isinstance(as_number(first), (int, float, complex)):
        array = to_array(op, first)
        array = array if array.dtype == dtype else to_array(op, first, dtype)
    else:
        raise arg_error(
            op,
            "data",
            expected="sizes, or one sequence of numbers",
            got=", ".join([type(x).__name__ for x in data]),
            hint="wrap a number in a list",
            kind=ArgumentTypeError,
        )
    return as_constant(make_tensor(array if device is CPU else to_device(array, device)))


class TypedStorage:
    """The memory behind a tensor, as one dimension; a write reaches all tensors that share it.

    It is made of a size or of numbers, or of another storage by `wrap_storage`.
    """

    _default: Any = None  # the dtype, where none is named

    @guarded
    def __init__(
        self,
        data: Any = 0,
        *,
        wrap_storage: TypedStorage | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        _internal: bool = False,
    ) -> None:
        if isinstance(data, Tensor):
            self._flat = data
            return
        name, dtype = type(self).__name__, self._default if dtype is None else dtype
        chosen = default_float() if dtype is None else as_dtype(name, dtype)
        if wrap_storage is not None:
            self._flat = _seen_as(wrap_storage._flat, chosen)
        else:
            self._flat = construct(name, chosen, as_device(device), (data,)).reshape(-1)

    @classmethod
    def from_file(
        cls, filename: Any, shared: bool = False, size: int = 0, *, nbytes: int = 0
    ) -> Self:
        """Return the memory of a file, of so many elements or bytes; see `flow.from_file`."""
        dtype = default_float() if cls._default is None else cls._default
        return cls(from_file(filename, shared, size or nbytes // dtype.itemsize, dtype=dtype))

    def __len__(self) -> int:
        return self._flat.numel()

    size = __len__

    def __getitem__(self, index: Any) -> Any:
        part = self._flat[index]
        return type(self)(part) if part.ndim else part.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._flat[index] = value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __repr__(self) -> str:
        kind = f"{type(self).__name__}(dtype={self.dtype}, device={self.device})"
        elements = ["..."] if self._flat.is_meta else [f" {x}" for x in self]
        return "\n".join([*elements, f"[{kind} of size {len(self)}]"])

    @property
    def dtype(self) -> DTypeObject:
        """The dtype of the elements."""
        return self._flat.dtype

    @property
    def device(self) -> Device:
        """The device of the memory."""
        return self._flat.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a CUDA device."""
        return self._flat.is_cuda

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._flat.data_ptr()

    _cdata = property(data_ptr)  # what tells storages apart

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._flat.nbytes

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self._flat.itemsize

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        return self._flat.tolist()  # type: ignore[no-any-return]

    def type(self) -> str:
        """Return PyTorch's name of the type."""
        return str(type_(self._flat)).replace("Tensor", "Storage")

    def clone(self) -> TypedStorage:
        """Return a copy."""
        return type(self)(self._flat.clone())

    def resize_(self, size: int) -> Self:
        """Change the number of elements. Tensors that share the memory keep it as it was."""
        self._flat = self._flat.detach().resize_(size)
        return self

    def cpu(self) -> TypedStorage:
        """Return a copy on the CPU; a storage on the CPU returns itself."""
        return self if self._flat.is_cpu else type(self)(self._flat.cpu())

    def fill_(self, value: Any) -> TypedStorage:
        """Set all elements to a number."""
        self._flat.fill_(value)
        return self

    def copy_(self, source: TypedStorage) -> TypedStorage:
        """Copy the elements of another storage of the same length."""
        self._flat.copy_(source._flat)
        return self

    def share_memory_(self) -> TypedStorage:
        """Return the storage."""
        return self

    def is_shared(self) -> bool:
        """Return False: processes share no memory."""
        return False

    def untyped(self) -> UntypedStorage:
        """Return the storage as bytes."""
        return UntypedStorage(_seen_as(self._flat, np.dtype(np.uint8)))

    def elements(self, dtype: Any) -> Tensor:
        """Return the elements as a tensor, those of an untyped storage in a dtype."""
        return self._flat


class UntypedStorage(TypedStorage):
    """The memory behind a tensor, byte by byte."""

    _default = np.dtype(np.uint8)

    def untyped(self) -> UntypedStorage:
        """Return the storage."""
        return self

    def elements(self, dtype: Any) -> Tensor:
        """Return the bytes as a tensor of a dtype."""
        return _seen_as(self._flat, dtype)


def _seen_as(flat: Tensor, dtype: Any) -> Tensor:
    """Return all whole elements of a dtype in the memory of a tensor of one dimension."""
    data, own = as_plain(flat._data), np.dtype(dtype)
    rest = data.nbytes % own.itemsize
    data = data.view(np.uint8)[: data.nbytes - rest] if rest else data
    seen = make_tensor(adopted(data.view(own)))
    seen._storage = flat.memory
    return seen


def storage(self: Tensor) -> TypedStorage:
    """Return the memory that the tensor and its views share, as a one-dimensional storage."""
    self._leave("storage")
    flat = make_tensor(owner(as_plain(self._data)).ravel("K"))
    flat._storage = self.memory
    return TypedStorage(_seen_as(flat, self._data.dtype))


def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the memory that the tensor and its views share, byte by byte."""
    return storage(self).untyped()


def is_storage(obj: Any) -> bool:
    """Return whether an object is the storage of a tensor."""
    return isinstance(obj, TypedStorage)


def storage_type(self: Tensor) -> type[TypedStorage]:
    """Return the class of the storage."""
    return TypedStorage


Storage = TypedStorage
