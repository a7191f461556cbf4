"""Objects taken apart into named arrays and a JSON description, and put together again.

`Writer` and `Reader` are behind `flow.save` and `flow.load`, and behind checkpoints. A description
holds numbers and text, never code: each kind of object that it may name stands in `_KINDS`.
"""

from __future__ import annotations

import base64
import itertools
import json
import struct
import zlib
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite.arrays.array_spec import bounds, owner
from oneflow_lite.arrays.bfloat16_arrays import adopted
from oneflow_lite.arrays.device import Device, to_device
from oneflow_lite.arrays.dtype import as_dtype
from oneflow_lite.arrays.dtype_object import DTYPE_CLASSES, DTYPES
from oneflow_lite.arrays.size import Size
from oneflow_lite.errors import FlowError, SerializationError
from oneflow_lite.files.torch_files import FACTORIES, Keys, with_attributes
from oneflow_lite.functors.unfolding import as_strided
from oneflow_lite.nn.parameter import Buffer, Parameter
from oneflow_lite.sparse import SparseTensor, sparse_coo_tensor
from oneflow_lite.tensors.tensor import Tensor, attributes_of, make_tensor, to_array

STRUCTURE, CHECKSUM = "oneflow_lite", "oneflow_lite_crc32"  # our entries in the metadata
_VERSION = 3  # since 2, the metadata of state dicts; since 3, views and `_KINDS`
_DTYPES: dict[str, Any] = {
    "BOOL": np.uint8, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32,
    "I64": np.int64, "U16": np.uint16, "U32": np.uint32, "U64": np.uint64, "BF16": "bfloat16",
    "F16": np.float16, "F32": np.float32, "F64": np.float64, "C64": np.complex64,
}  # fmt: skip
_LEAVES = (bool, int, float, str)
_TENSORS: dict[str, Any] = {"Tensor": Tensor, "Parameter": Parameter, "Buffer": Buffer}
Arrays = dict[str, np.ndarray[Any, Any]]
Path = tuple[str, ...]


class Writer:
    """Takes an object apart into named arrays and a description of its structure."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.version = 2  # the oldest that has all kinds of the description
        self.names: dict[int, str] = {}  # by the identity of a tensor's array
        self.described: dict[int, tuple[Tensor, dict[str, Any]]] = {}  # by that of a tensor
        self.tensors: dict[int, Tensor] = {}  # by that of a NumPy array given to save
        self.alive: list[Any] = []  # an identity holds only while its array lives

    def dump(self, obj: Any) -> bytes:
        """Return the bytes of the file."""
        try:
            root = self.describe(obj, ())
            self.join_views()
            structure = json.dumps({"version": self.version, "root": root})
        except (RecursionError, ValueError):  # JSON calls a circle a ValueError
            raise SerializationError(
                "save(): the object is nested too deeply or contains itself; flatten it"
            ) from None
        metadata = {STRUCTURE: structure, CHECKSUM: str(checksum(structure, self.arrays))}
        return self.to_bytes(self.arrays, metadata)

    @staticmethod
    def to_bytes(arrays: Arrays, metadata: dict[str, str]) -> bytes:
        """Return the bytes of a safetensors file."""
        from safetensors.numpy import save as to_bytes

        try:
            return bytes(to_bytes(arrays, metadata))
        except Exception as error:  # the library's own class of errors
            raise SerializationError(f"save(): safetensors refuses the tensors: {error}") from error

    def describe(self, obj: Any, path: Path) -> Any:
        """Return the JSON description of an object, collecting its tensors."""
        kind = type(obj)
        if obj is None or kind in _LEAVES:
            return obj
        if _TENSORS.get(kind.__name__) is kind:
            return self.add(obj, ".".join(path), kind.__name__)
        if kind in (np.ndarray, np.memmap):
            return self.add(self.tensor_of(obj, path), ".".join(path), "array")
        if kind is dict:
            return {"dict": self.entries(obj, path)}
        if kind in (list, tuple):
            return {kind.__name__: [self.describe(x, (*path, str(i))) for i, x in enumerate(obj)]}
        metadata = getattr(obj, "_metadata", None) if kind is OrderedDict else None
        if metadata is not None:
            described = self.describe(dict(metadata), (*path, "_metadata"))
            return {"state_dict": [self.entries(obj, path), described]}
        self.version = 3
        for name, each in _KINDS.items():
            if kind is each.kind or (each.any_subclass and isinstance(obj, each.kind)):
                return {name: each.write(self, obj, path)}
        raise SerializationError(
            f"save(): {_where(path)} is of type {kind.__name__}; only tensors, arrays, numbers, "
            "strings, None, and lists, tuples and dicts of these are written: save "
            "module.state_dict() rather than the module, for a file never carries code, and of an "
            "object of your own its contents, as by dict(x), int(x) or vars(x)"
        )

    def entries(self, items: Mapping[Any, Any], path: Path) -> list[Any]:
        """Return the descriptions of the entries of a dict."""
        return [self.entry(key, value, path) for key, value in items.items()]

    def entry(self, key: Any, value: Any, path: Path) -> list[Any]:
        """Return the description of an entry of a dict."""
        return [self.key(key, path), self.describe(value, (*path, str(key)))]

    def key(self, key: Any, path: Path) -> Any:
        """Return the description of a key of a dict, or of a member of a set."""
        parts = [key]
        for part in parts:
            if type(part) in (tuple, frozenset):
                parts.extend(part)
            elif type(part) not in _KEYS and not isinstance(part, (np.generic, *DTYPE_CLASSES)):
                raise SerializationError(
                    f"save(): {_where(path)} has the key {part!r} of type {type(part).__name__}; "
                    "use strings or numbers as keys"
                )
        return self.describe(key, path)

    def tensor_of(self, array: np.ndarray[Any, Any], path: Path) -> Tensor:
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

    def add(self, tensor: Tensor, name: str, kind: str = "Tensor") -> dict[str, Any]:
        """Store a tensor, unless its array is stored already; return its description."""
        if id(tensor) in self.described:
            return self.described[id(tensor)][1]
        known = self.names.get(id(tensor._data))
        array = tensor.numpy()
        described: dict[str, Any] = {"tensor": known, "dtype": array.dtype.name}
        if known is None:
            described["tensor"] = self.names[id(tensor._data)] = self.store(array, name)
            self.alive.append(tensor._data)
        else:  # another tensor with the same memory
            described["object"] = len(self.described)
        if kind != "Tensor":
            described["kind"] = kind
        if tensor.requires_grad:
            described["requires_grad"] = True
        self.described[id(tensor)] = tensor, described
        attributes = attributes_of(tensor)
        if attributes:
            described["attributes"] = self.describe(attributes, (name,))
        return described

    def store(self, array: np.ndarray[Any, Any], name: str) -> str:
        """Store an array under a free name, and return the name."""
        while name in self.arrays or name in ("", "__metadata__"):
            name += "_"
        if array.dtype.kind == "c":  # stored as pairs of reals, in a last dimension
            array = np.stack([array.real, array.imag], axis=-1)
        self.arrays[name] = np.asarray(array, order="C")
        return name

    def join_views(self) -> None:
        """Store memory in which tensors overlap once, and describe the tensors as its views."""
        groups: dict[int, list[tuple[Tensor, dict[str, Any]]]] = {}
        for tensor, described in self.described.values():
            if tensor.numel() and not tensor.is_global:
                groups.setdefault(id(owner(tensor._data)), []).append((tensor, described))
        for group in groups.values():
            if len(group) == 1:
                continue
            whole = owner(group[0][0]._data)
            arrays = {id(x._data): x._data for x, _ in group}.values()
            spans = sorted(map(bounds, arrays))
            apart = all(low[1] <= high[0] for low, high in itertools.pairwise(spans))
            alike = all(x.dtype == whole.dtype and min(x.strides, default=0) >= 0 for x in arrays)
            if apart or not alike or not whole.flags.c_contiguous:
                continue
            for name in {described["tensor"] for _, described in group}:
                del self.arrays[name]
            # A tensor that covers the memory keeps its name and shape for other libraries.
            covers = [x for x, _ in group if x.is_contiguous() and x.nbytes == whole.nbytes]
            shape = covers[0].shape if covers else whole.shape
            name = self.names[id(covers[0]._data)] if covers else group[0][1]["tensor"] + ".memory"
            name = self.store(make_tensor(whole).numpy().reshape(shape), name)
            self.version = 3
            for number, (x, described) in enumerate(group):
                view = [x.storage_offset(), list(x.shape), list(x.stride())]
                described.update(tensor=name, view=view, object=f"view {number}")


class Reader:
    """Checks a file and puts the object together again."""

    def __init__(self, data: bytes, device: Device) -> None:
        self.data = data
        self.device = device
        self.arrays: Arrays = {}
        self.tensors: dict[str, Tensor] = {}
        self.objects: dict[Any, Any] = {}
        self.keys = Keys()

    def load(self) -> Any:
        """Return the object."""
        metadata = self.parse()
        # A flipped bit may hide one of our entries, but not both.
        if not {STRUCTURE, CHECKSUM} & {*metadata}:  # of another library: a flat dict of tensors
            return {name: self.stored(name, a.dtype.name) for name, a in self.arrays.items()}
        structure = metadata.get(STRUCTURE, "")
        if metadata.get(CHECKSUM) != str(checksum(structure, self.arrays)):
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
        except SerializationError:
            raise
        except Exception as error:  # a description without sense
            raise _damaged_error(f"its description cannot be followed ({error!r})") from None

    def parse(self) -> dict[str, str]:
        """Fill `arrays`, in the order of the file, and return the metadata."""
        from safetensors import deserialize

        try:
            entries = dict(deserialize(self.data))  # type: ignore[no-untyped-call]
            length = struct.unpack("<Q", self.data[:8])[0]
            header = json.loads(self.data[8 : 8 + length], object_pairs_hook=_distinct)
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
            return self.tensor(described)
        ((name, content),) = described.items()
        if name == "dict":
            return self.entries(content)
        if name in ("list", "tuple"):
            items = [self.item(i, item) for i, item in enumerate(content)]
            return items if name == "list" else tuple(items)
        if name == "state_dict":
            state: Any = OrderedDict(self.entries(content[0]))
            state._metadata = self.build(content[1])
            return state
        return _KINDS[name].read(self, content)

    def entries(self, described: Any) -> dict[Any, Any]:
        """Return the entries of a dict."""
        found = {}
        for each, value in described:
            key = self.key(each)
            found[key] = self.item(key, value)
        return found

    def key(self, described: Any) -> Any:
        """Return a key of a dict, or a member of a set."""
        key = self.build(described)
        if type(key) not in (str, bytes):  # whose hashes no file can choose
            self.keys.note(key)
        return key

    def item(self, key: Any, described: Any) -> Any:
        """Return the value under a key of a dict, or at a place of a list."""
        return self.build(described)

    def tensor(self, described: dict[str, Any]) -> Any:
        """Return a tensor or an array, the same object wherever it occurs."""
        stored = self.stored(described["tensor"], described["dtype"])
        key = id(stored), described.get("object")
        if key not in self.objects:
            self.objects[key] = self.made(stored, described)
        return self.objects[key]

    def made(self, stored: Tensor, described: dict[str, Any]) -> Any:
        """Return a new tensor or array in the memory of a stored tensor."""
        seen = stored
        if "view" in described:
            offset, shape, strides = described["view"]
            seen = as_strided(stored, shape, strides, offset)
        kind = described.get("kind", "Tensor")
        if kind == "array":
            return seen.numpy()
        tensor = make_tensor(seen._data, _TENSORS[kind])
        tensor._storage = stored.memory
        tensor.requires_grad = described.get("requires_grad") is True
        return with_attributes(tensor, self.build(described.get("attributes")))

    def stored(self, name: str, dtype: str) -> Tensor:
        """Return the tensor of this name as it is stored."""
        if name not in self.tensors:
            array = self.arrays[name]
            if dtype.startswith("complex") and array.dtype.kind != "c":
                array = array.view(dtype).reshape(array.shape[:-1])
            if self.device.type != "cpu":
                array = to_device(array, self.device)
            self.tensors[name] = make_tensor(adopted(array))
        return self.tensors[name]


class _Kind(NamedTuple):
    """Objects that version 2 did not write: how they are described, and made from it."""

    kind: Any
    write: Callable[[Writer, Any, Path], Any]
    read: Callable[[Reader, Any], Any]
    any_subclass: bool = False


def _text(kind: Any) -> _Kind:
    return _Kind(
        kind,
        lambda writer, x, path: base64.b64encode(x).decode(),
        lambda reader, content: kind(base64.b64decode(content, validate=True)),
    )


def _set(kind: Any) -> _Kind:
    def write(writer: Writer, x: Any, path: Path) -> Any:
        # Sorted: the order of a set changes from process to process.
        return sorted([writer.key(member, path) for member in x], key=json.dumps)

    return _Kind(kind, write, lambda reader, content: kind(map(reader.key, content)))


def _mapping(kind: Any) -> _Kind:
    return _Kind(
        kind,
        lambda writer, x, path: writer.entries(x, path),
        lambda reader, content: kind(reader.entries(content)),
    )


def _dtype_name(x: Any, path: Path) -> str:
    """Return the name of a dtype that there are tensors of."""
    try:
        return str(as_dtype("save", x).name)
    except FlowError as error:
        raise SerializationError(f"save(): {_where(path)} is of dtype {x}: {error}") from None


def _write_scalar(writer: Writer, x: Any, path: Path) -> Any:
    name = _dtype_name(x.dtype, path)
    return [name, [float(x.real), float(x.imag)] if name.startswith("complex") else x.item()]


def _read_scalar(reader: Reader, content: Any) -> Any:
    name, value = content
    return as_dtype("load", name).type(complex(*value) if isinstance(value, list) else value)


def _write_default_dict(writer: Writer, x: Any, path: Path) -> Any:
    if x.default_factory not in (None, *FACTORIES):
        raise SerializationError(
            f"save(): {_where(path)} is a defaultdict that calls {x.default_factory!r}; save "
            "dict(x), for a file never carries code"
        )
    return [getattr(x.default_factory, "__name__", None), writer.entries(x, path)]


def _read_default_dict(reader: Reader, content: Any) -> Any:
    factories = {None: None} | {kind.__name__: kind for kind in FACTORIES}
    return defaultdict(factories[content[0]], reader.entries(content[1]))


def _write_sparse(writer: Writer, x: Any, path: Path) -> Any:
    parts = [("indices", x._indices()), ("values", x._values())]
    described = [writer.describe(part, (*path, name)) for name, part in parts]
    return [*described, list(x.shape), x.is_coalesced()]


def _read_sparse(reader: Reader, content: Any) -> Any:
    places, values, size, coalesced = content
    made = sparse_coo_tensor(reader.build(places), reader.build(values), size)
    return SparseTensor(made._indices(), made._values(), made.shape, coalesced is True)


_KINDS: dict[str, _Kind] = {
    "bytes": _text(bytes),
    "bytearray": _text(bytearray),
    "complex": _Kind(
        complex, lambda _, x, path: [x.real, x.imag], lambda _, c: complex(c[0], c[1])
    ),
    "set": _set(set),
    "frozenset": _set(frozenset),
    "ordered": _mapping(OrderedDict),
    "counter": _mapping(Counter),
    "defaultdict": _Kind(defaultdict, _write_default_dict, _read_default_dict),
    "size": _Kind(Size, lambda _, x, path: list(x), lambda _, content: Size(content)),
    "device": _Kind(Device, lambda _, x, path: str(x), lambda _, content: Device(content)),
    "dtype": _Kind(
        DTYPE_CLASSES,
        lambda _, x, path: _dtype_name(x, path),
        lambda _, content: DTYPES[as_dtype("load", content)],
        any_subclass=True,
    ),
    "scalar": _Kind(np.generic, _write_scalar, _read_scalar, any_subclass=True),
    "sparse": _Kind(SparseTensor, _write_sparse, _read_sparse),
}
_KEYS = (*_LEAVES, type(None), complex, bytes, Size, Device)


def checksum(structure: str, arrays: Arrays) -> int:
    """Return a CRC-32 of all of a file but the order of the tensors."""
    crc = zlib.crc32(structure.encode())
    for name in sorted(arrays):
        array = arrays[name]
        crc = zlib.crc32(f"{name} {array.dtype.name} {array.shape}".encode(), crc)
        crc = zlib.crc32(array.reshape(-1).view(np.uint8).data, crc)
    return crc


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the dict of a JSON object, whose names differ."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("two records of one name")
    return found


def _where(path: Path) -> str:
    return f"the entry {'.'.join(path)!r}" if path else "the object"


def _damaged_error(why: str) -> SerializationError:
    return SerializationError(
        f"load(): the file is damaged, cut short or no safetensors file: {why}; "
        "save it again with flow.save"
    )
