"""flow.save and flow.load: state dicts as safetensors files, which hold numbers and never code.

PyTorch's own files are read, too (`oneflow_lite/files/torch_files.py`), and never written.

A file is a safetensors file: flat state dicts keep their names and are read by any safetensors
library. Its metadata holds as JSON the facts that safetensors has no place for: nesting, numbers
and strings between the tensors, complex dtypes, names that share one tensor.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import adopted
from oneflow_lite.arrays.device import Device, to_device
from oneflow_lite.arrays.dtype import as_dtype
from oneflow_lite.errors import (
    ArgumentTypeError,
    FlowError,
    SerializationError,
    arg_error,
)
from oneflow_lite.files.torch_files import is_torch_file, load_torch, locate
from oneflow_lite.tensors.tensor import Tensor, make_tensor, to_array

_STRUCTURE, _CHECKSUM = "oneflow_lite", "oneflow_lite_crc32"  # our entries in the metadata
_VERSION = 2  # since 2, the metadata of state dicts
_DTYPES: dict[str, Any] = {
    "BOOL": np.uint8, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32,
    "I64": np.int64, "U16": np.uint16, "U32": np.uint32, "U64": np.uint64, "BF16": "bfloat16",
    "F16": np.float16, "F32": np.float32, "F64": np.float64, "C64": np.complex64,
}  # fmt: skip
_LEAVES = (bool, int, float, str)
Arrays = dict[str, np.ndarray[Any, Any]]


def save(
    obj: Any,
    f: str | os.PathLike[str] | BinaryIO,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write a state dict to a file.

    Parameters
    ----------
    obj : dict
        Tensors by name, as `Module.state_dict()` returns them, or an optimizer's state dict:
        tensors, NumPy arrays (loaded as tensors), numbers, strings, None, and lists, tuples and
        dicts of these.
    f : path or binary file
        A path is written all at once: after an error an older file is as it was.
    pickle_module, pickle_protocol, _use_new_zipfile_serialization
        Accepted for scripts written for PyTorch; change nothing, since nothing is pickled.

    Raises
    ------
    SerializationError
        When the object holds any other type (a function, a module).
    OSError
        When the file cannot be written.

    Notes
    -----
    Names that share one tensor share it after loading, too. The file does not say whether a tensor
    requires a gradient.

    Examples
    --------
    >>> import io
    >>> import oneflow_lite as flow
    >>> file = io.BytesIO()
    >>> flow.save({"weight": flow.tensor([1.0, 2.0]), "epoch": 3}, file)
    >>> flow.load(io.BytesIO(file.getvalue()))
    {'weight': tensor([1., 2.]), 'epoch': 3}
    """
    data = Writer().dump(obj)
    if isinstance(f, (str, os.PathLike)):
        replace_file(os.path.realpath(f), data)
    elif hasattr(f, "write"):
        f.write(data)
    else:
        raise _not_a_file_error("save", f)


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a file of `save`, any safetensors file as a dict of tensors, or a file of PyTorch.

    Nothing in a file is executed. A file of PyTorch is read when it holds tensors, parameters,
    numbers, strings, bytes, NumPy arrays of numbers, and containers of these, as the files of
    `torch.save(model.state_dict(), path)` do, and checkpoints of several state dicts.

    Parameters
    ----------
    f : path or binary file
        Where to read.
    map_location : device, dict or callable, optional
        Where the tensors are put; the CPU by default. For PyTorch's files also a dict of devices
        by the device that they were saved from, or a function of elements and that device.
    pickle_module, weights_only, mmap, **pickle_load_args
        Accepted for scripts written for PyTorch; change nothing. A file is always read as with
        `weights_only=True`.

    Returns
    -------
    object
        As it was saved. Tensors of `save` require no gradient; tensors of PyTorch require a
        gradient if they did when they were saved.

    Raises
    ------
    SerializationError
        When the file is damaged, cut short, or of another kind, or holds another type of object.
    FileNotFoundError
        When there is no such file.
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            data = file.read()
    elif hasattr(f, "read"):
        data = f.read()
    else:
        raise _not_a_file_error("load", f)
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SerializationError(
            f"load(): the file gives {type(data).__name__} instead of bytes; open it in binary mode"
        )
    data = bytes(data)
    if is_torch_file(data):
        return load_torch(data, map_location)
    device = locate(map_location)(make_tensor(np.empty(0)), "cpu")
    return Reader(data, device).load()


class Writer:
    """Takes an object apart into named arrays and a description of its structure."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.names: dict[int, str] = {}  # by the identity of the tensor's array
        self.tensors: dict[int, Tensor] = {}  # by the identity of a NumPy array given to save
        self.alive: list[Any] = []  # an identity holds only while its array lives

    def dump(self, obj: Any) -> bytes:
        """Return the bytes of the file."""
        try:
            structure = json.dumps({"version": _VERSION, "root": self.describe(obj, ())})
        except RecursionError:
            raise SerializationError(
                "save(): the object is nested too deeply or contains itself; flatten it"
            ) from None
        metadata = {_STRUCTURE: structure, _CHECKSUM: str(_checksum(structure, self.arrays))}
        return self.to_bytes(self.arrays, metadata)

    @staticmethod
    def to_bytes(arrays: Arrays, metadata: dict[str, str]) -> bytes:
        """Return the bytes of a safetensors file."""
        from safetensors.numpy import save as to_bytes

        try:
            return bytes(to_bytes(arrays, metadata))
        except Exception as error:  # the library's own class of errors
            raise SerializationError(f"save(): safetensors refuses the tensors: {error}") from error

    def describe(self, obj: Any, path: tuple[str, ...]) -> Any:
        """Return the JSON description of an object, collecting its tensors."""
        if isinstance(obj, np.ndarray):
            return self.add(self.tensor_of(obj, path), ".".join(path))
        if isinstance(obj, np.generic) and obj.dtype.kind in "biuf":
            return obj.item()
        if isinstance(obj, Tensor):
            return self.add(obj, ".".join(path))
        if obj is None or isinstance(obj, _LEAVES):
            return obj
        if isinstance(obj, Mapping):
            items = [self.entry(key, value, path) for key, value in obj.items()]
            metadata = getattr(obj, "_metadata", None)
            if metadata is None:
                return {"dict": items}
            return {"state_dict": [items, self.describe(metadata, (*path, "_metadata"))]}
        if type(obj) in (list, tuple):
            items = [self.describe(item, (*path, str(i))) for i, item in enumerate(obj)]
            return {type(obj).__name__: items}
        raise SerializationError(
            f"save(): {_where(path)} is of type {type(obj).__name__}; only tensors, arrays, "
            "numbers, strings, None, and lists, tuples and dicts of these are written: save "
            "module.state_dict() rather than the module, for a file never carries code"
        )

    def entry(self, key: Any, value: Any, path: tuple[str, ...]) -> list[Any]:
        """Return the description of an entry of a dict, whose key is a string or an int."""
        if not isinstance(key, (str, int)) or isinstance(key, bool):
            raise SerializationError(
                f"save(): {_where(path)} has the key {key!r} of type {type(key).__name__}; "
                "use strings or ints as keys"
            )
        return [key, self.describe(value, (*path, str(key)))]

    def tensor_of(self, array: np.ndarray[Any, Any], path: tuple[str, ...]) -> Tensor:
        """Return the tensor as which an array is saved, always the same tensor for an array."""
        if id(array) not in self.tensors:
            try:
                self.tensors[id(array)] = make_tensor(to_array("save", array))
            except FlowError as error:
                raise SerializationError(
                    f"save(): {_where(path)} is an array of {array.dtype}: {error}"
                ) from None
            self.alive.append(array)
        return self.tensors[id(array)]

    def add(self, tensor: Tensor, name: str) -> dict[str, str]:
        """Store a tensor under a free name, unless it is stored already; return its description."""
        known = self.names.get(id(tensor._data))
        array = tensor.numpy()
        if known is None:
            known = name
            while known in self.arrays or known in ("", "__metadata__"):
                known += "_"
            self.names[id(tensor._data)] = known
            self.alive.append(tensor._data)
            if array.dtype.kind == "c":  # stored as pairs of reals, in a last dimension
                stored = np.stack([array.real, array.imag], axis=-1)
            else:
                stored = np.asarray(array, order="C")
            self.arrays[known] = stored
        return {"tensor": known, "dtype": array.dtype.name}


class Reader:
    """Checks a file and puts the object together again."""

    def __init__(self, data: bytes, device: Device) -> None:
        self.data = data
        self.device = device
        self.arrays: Arrays = {}
        self.tensors: dict[str, Tensor] = {}

    def load(self) -> Any:
        """Return the object."""
        metadata = self.parse()
        if _STRUCTURE not in metadata:  # of another library: a flat dict of tensors
            return {name: self.tensor(name, a.dtype.name) for name, a in self.arrays.items()}
        structure = metadata[_STRUCTURE]
        if metadata.get(_CHECKSUM) != str(_checksum(structure, self.arrays)):
            raise _damaged_error("its checksum does not match its contents")
        try:
            described = json.loads(structure)
            version = described["version"]
            if version > _VERSION:
                raise SerializationError(
                    f"load(): the file is of version {version}, this library reads up to "
                    f"{_VERSION}; use a newer oneflow_lite"
                )
            return self.build(described["root"])
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise _damaged_error(f"its description cannot be followed ({error!r})") from None

    def parse(self) -> dict[str, str]:
        """Fill `arrays`, in the order of the file, and return the metadata."""
        from safetensors import deserialize

        try:
            entries = dict(deserialize(self.data))  # type: ignore[no-untyped-call]
            length = struct.unpack("<Q", self.data[:8])[0]
            header = json.loads(self.data[8 : 8 + length])
        except Exception as error:  # the library's own class of errors
            raise _damaged_error(str(error)) from None
        # The header has the order of the file, which deserialize() loses.
        metadata = header.pop("__metadata__", None) or {}
        for name in header:
            stored = entries[name]
            self.arrays[name] = self.decoded(name, stored["dtype"], stored["data"], stored["shape"])
        return metadata

    @staticmethod
    def decoded(name: str, kind: str, data: bytes, shape: Any) -> Any:
        """Return the array of an entry of a file."""
        if kind not in _DTYPES:
            raise SerializationError(
                f"load(): tensor {name!r} is of dtype {kind}, which there is no tensor of; "
                "convert it to F32 where the file was made"
            )
        dtype = as_dtype("load", _DTYPES[kind])
        stored = np.dtype(getattr(dtype, "dtype", dtype))  # for bfloat16 the dtype of ml_dtypes
        array = np.frombuffer(data, stored.newbyteorder("<"))
        return array.astype(np.bool_ if kind == "BOOL" else stored).reshape(shape)

    def build(self, described: Any) -> Any:
        """Return the object that `Writer.describe` described."""
        if described is None or isinstance(described, _LEAVES):
            return described
        if "tensor" in described:
            return self.tensor(described["tensor"], described["dtype"])
        ((kind, items),) = described.items()
        if kind == "state_dict":
            state: Any = OrderedDict((key, self.item(key, value)) for key, value in items[0])
            state._metadata = self.build(items[1])
            return state
        if kind == "dict":
            return {key: self.item(key, value) for key, value in items}
        return {"list": list, "tuple": tuple}[kind](
            [self.item(i, item) for i, item in enumerate(items)]
        )

    def item(self, key: Any, described: Any) -> Any:
        """Return the value under a key of a dict, or at a place of a list."""
        return self.build(described)

    def tensor(self, name: str, dtype: str) -> Tensor:
        """Return the tensor of this name, the same object wherever the name occurs."""
        if name not in self.tensors:
            array = self.arrays[name]
            if dtype.startswith("complex") and array.dtype.kind != "c":
                array = array.view(dtype).reshape(array.shape[:-1])
            if self.device.type != "cpu":
                array = to_device(array, self.device)
            self.tensors[name] = make_tensor(adopted(array))
        return self.tensors[name]


def _checksum(structure: str, arrays: Arrays) -> int:
    """Return a CRC-32 of all of a file but the order of the tensors."""
    crc = zlib.crc32(structure.encode())
    for name in sorted(arrays):
        array = arrays[name]
        crc = zlib.crc32(f"{name} {array.dtype.name} {array.shape}".encode(), crc)
        crc = zlib.crc32(array.reshape(-1).view(np.uint8).data, crc)
    return crc


def replace_file(path: str, data: bytes) -> None:
    """Write a file beside `path`, then rename it: a reader never sees half a file."""
    temporary = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a crash could leave the new name with an empty file
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _where(path: tuple[str, ...]) -> str:
    return f"the entry {'.'.join(path)!r}" if path else "the object"


def _damaged_error(why: str) -> SerializationError:
    return SerializationError(
        f"load(): the file is damaged, cut short or no safetensors file: {why}; "
        "save it again with flow.save"
    )


def _not_a_file_error(op: str, value: object) -> FlowError:
    return arg_error(
        op,
        "f",
        expected="a path or a binary file",
        got=type(value).__name__,
        hint="pass a path",
        kind=ArgumentTypeError,
    )
