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
from oneflow_lite.arrays.dtype import as_dtype, int64
from oneflow_lite.arrays.dtype_object import DTYPE_CLASSES, DTYPES
from oneflow_lite.arrays.size import Size
from oneflow_lite.errors import FlowError, SerializationError
from oneflow_lite.files.torch_files import FACTORIES, Keys, room_of, shown, with_attributes
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
_BITS = 14_000  # of an int: about as many as Python reads from text
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
            if kind is int and obj.bit_length() > _BITS:
                raise SerializationError(
                    f"save(): {_where(path)} is an int of {obj.bit_length()} bits, of which a file "
                    f"takes {_BITS}; save it as text, hex(x)"
                )
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
        odd = _odd_part(key)
        if odd is not None:
            raise SerializationError(
                f"save(): {_where(path)} has the key {odd!r} of type {type(odd).__name__}; "
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
        name = name.encode(errors="replace").decode()  # halves of characters are in no header
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
    """Checks a file and puts the object together again.

    Descriptions are taken as they are written and in no other form: whatever differs is an error.
    """

    def __init__(self, data: bytes, device: Device) -> None:
        self.data = data
        self.device = device
        self.version = _VERSION
        self.room = room_of(len(data))  # for the elements of sparse tensors, which are looked at
        self.arrays: Arrays = {}
        self.tensors: dict[str, Tensor] = {}
        self.objects: dict[Any, Any] = {}
        self.keys = Keys()
        self.path: list[Any] = []  # the keys that lead to what is read

    def load(self) -> Any:
        """Return the object."""
        try:
            metadata = self.parse()
        except SerializationError:
            raise
        except Exception as error:  # the library's own class of errors, or numbers too large
            raise _damaged_error(shown(error)) from None
        # A flipped bit may hide one of our entries, but not both.
        if not {STRUCTURE, CHECKSUM} & {*metadata}:  # of another library: a flat dict of tensors
            return {name: self.stored(name, a.dtype.name) for name, a in self.arrays.items()}
        structure = metadata.get(STRUCTURE, "")
        if metadata.get(CHECKSUM) != str(checksum(structure, self.arrays)):
            raise _damaged_error("its checksum does not match its contents")
        try:
            described = parsed(structure)
            self.version = described["version"]
            if type(self.version) is int and self.version > _VERSION:
                raise SerializationError(
                    f"load(): the file is of version {self.version}, this library reads up to "
                    f"{_VERSION}; use a newer oneflow_lite"
                )
            require(described.keys() == {"version", "root"}, "its description has other parts")
            require(type(self.version) is int and self.version > 0, "it is of no version")
            found = self.build(described["root"])
            unused = next((name for name in self.arrays if name not in self.tensors), None)
            require(unused is None, f"nothing names its tensor {unused!r}")
        except Exception as error:  # a description without sense
            raise _damaged_error(self.failing(error)) from None
        return found

    def failing(self, error: Exception) -> str:
        """Return the text for an error: where it was met, and why."""
        where = ".".join(map(str, self.path))[:200]
        part = f"of the entry {where!r} " if where else ""
        return f"the description {part}cannot be followed: {shown(error)}"

    def parse(self) -> dict[str, str]:
        """Fill `arrays`, in the order of the file, and return the metadata."""
        from safetensors import deserialize

        entries = dict(deserialize(self.data))  # type: ignore[no-untyped-call]
        length = struct.unpack("<Q", self.data[:8])[0]
        # The header has the order of the file, which deserialize() loses.
        header = parsed(self.data[8 : 8 + length])
        metadata: dict[str, str] = header.pop("__metadata__", None) or {}
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
        require(natural(listed(shape)), "a shape that is none")
        array = np.frombuffer(data, stored.newbyteorder("<"))
        return array.astype(np.bool_ if kind == "BOOL" else stored).reshape(shape)

    def build(self, described: Any) -> Any:
        """Return the object that `Writer.describe` described."""
        if described is None or type(described) in _LEAVES:
            return described
        if "tensor" in described:
            return self.tensor(described)
        ((name, content),) = described.items()
        if name == "dict":
            return self.entries(content)
        if name in ("list", "tuple"):
            items = [self.item(i, item) for i, item in enumerate(listed(content))]
            return items if name == "list" else tuple(items)
        if name == "state_dict":
            entries, metadata = listed(content)
            state: Any = OrderedDict(self.entries(entries))
            state._metadata = self.item("_metadata", metadata)
            require(type(state._metadata) is dict, "the metadata is no dict")
            return state
        require(self.version > 2, f"version {self.version} has no kind {name!r}")
        kind = _KINDS[name]
        found = kind.read(self, content)
        if kind.is_leaf:
            written = kind.write(_WRITER, found, ())
            require(repr(written) == repr(content), f"{content!r} is written as {written!r}")
        return found

    def entries(self, described: Any) -> dict[Any, Any]:
        """Return the entries of a dict."""
        found: dict[Any, Any] = {}
        for each, value in map(listed, listed(described)):
            key = self.key(each)
            if key in found:
                raise ValueError(f"the key {key!r} is there twice")
            found[key] = self.item(key, value)
        return found

    def key(self, described: Any) -> Any:
        """Return a key of a dict, or a member of a set."""
        key = self.build(described)
        if type(key) not in (str, bytes):  # whose hashes no file can choose
            require(_odd_part(key) is None, "a key that no dict of a file has")
            self.keys.note(key)
        return key

    def item(self, key: Any, described: Any) -> Any:
        """Return the value under a key of a dict, or at a place of a list."""
        self.path.append(key)  # an error leaves it there
        value = self.build(described)
        self.path.pop()
        return value

    def tensor(self, described: dict[str, Any]) -> Any:
        """Return a tensor or an array, the same object wherever it occurs."""
        stored = self.stored(described["tensor"], described["dtype"])
        require(type(described.get("object", 0)) in (int, str), "no object is named so")
        key = id(stored), repr(described)
        if key not in self.objects:
            self.objects[key] = self.made(stored, described)
        return self.objects[key]

    def made(self, stored: Tensor, described: dict[str, Any]) -> Any:
        """Return a new tensor or array in the memory of a stored tensor."""
        more, seen = described.keys() - {"tensor", "dtype", "object"}, stored
        if "view" in more:
            require(self.version > 2, f"version {self.version} has no views")
            offset, shape, strides = listed(described["view"])
            require(natural([offset, *listed(shape), *listed(strides)]), "a view that is none")
            seen = as_strided(stored, shape, strides, offset)
        kind = described.get("kind", "Tensor")
        if kind == "array":
            require(more <= {"kind", "view"}, "an array has no attributes")
            return seen.numpy()
        tensor = make_tensor(seen._data, _TENSORS[kind])
        tensor._storage = stored.memory
        if "requires_grad" in more:
            require(described["requires_grad"] is True, "requires_grad is not true")
            tensor.requires_grad = True
        attributes: Any = {}
        if "attributes" in more:
            attributes = self.item("attributes", described["attributes"])
        require(type(attributes) is dict and {*map(type, attributes)} <= {str}, "odd attributes")
        known = {"view", "kind", "requires_grad", "attributes"}
        require(more <= known, f"a tensor has {', '.join(more - known)}")
        return with_attributes(tensor, attributes)

    def stored(self, name: str, dtype: str) -> Tensor:
        """Return the tensor of this name as it is stored."""
        if name not in self.tensors:
            array = self.arrays[name]
            pairs = array.shape[-1:] == (2,) and f"complex{16 * array.itemsize}" == dtype
            if pairs and array.dtype.kind == "f":
                array = array.view(dtype).reshape(array.shape[:-1])
            if self.device.type != "cpu":
                array = to_device(array, self.device)
            self.tensors[name] = make_tensor(adopted(array))
        found = self.tensors[name]
        if found.dtype.name != dtype:
            raise ValueError(f"the tensor {name!r} is of {found.dtype}")
        return found


class _Kind(NamedTuple):
    """Objects that version 2 did not write: how they are described, and made from it."""

    kind: Any
    write: Callable[[Writer, Any, Path], Any]
    read: Callable[[Reader, Any], Any]
    any_subclass: bool = False
    is_leaf: bool = True  # whether nothing else is described inside


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

    def read(reader: Reader, content: Any) -> Any:
        members = kind(map(reader.key, listed(content)))
        require(len(members) == len(content), "a member of a set is there twice")
        return members

    return _Kind(kind, write, read, is_leaf=False)


def _mapping(kind: Any) -> _Kind:
    return _Kind(
        kind,
        lambda writer, x, path: writer.entries(x, path),
        lambda reader, content: kind(reader.entries(content)),
        is_leaf=False,
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
    name, entries = listed(content)
    return defaultdict(factories[name], reader.entries(entries))


def _write_sparse(writer: Writer, x: Any, path: Path) -> Any:
    parts = [("indices", x._indices()), ("values", x._values())]
    described = [writer.describe(part, (*path, name)) for name, part in parts]
    return [*described, list(x.shape), x.is_coalesced()]


def _read_sparse(reader: Reader, content: Any) -> Any:
    *parts, size, coalesced = listed(content)
    places, values = map(reader.build, parts)
    require(type(places) is Tensor and places.dtype == int64, "places that are no int64")
    require(isinstance(values, Tensor) and natural(listed(size)), "a size or values that are none")
    reader.room -= places.nbytes + values.nbytes
    require(reader.room >= 0, "its sparse tensors name the same elements again and again")
    require(type(coalesced) is bool, "it is not said whether its places are sorted")
    found = sparse_coo_tensor(places, values, size)
    require(not coalesced or _is_sorted(places.cpu().numpy()), "its places are not sorted")
    return SparseTensor(places, values, found.shape, coalesced)


def _is_sorted(places: np.ndarray[Any, Any]) -> bool:
    """Return whether columns are in order, and differ."""
    steps = np.diff(places)
    if not steps.size:  # there is a column at most, or columns have no numbers and are alike
        return bool(steps.shape[1] == 0)
    first = (steps != 0).argmax(0)  # the first row in which a column differs from the last one
    return bool((np.take_along_axis(steps, first[None], 0) > 0).all())


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
    "defaultdict": _Kind(defaultdict, _write_default_dict, _read_default_dict, is_leaf=False),
    "size": _Kind(Size, lambda _, x, path: list(x), lambda _, content: Size(content)),
    "device": _Kind(Device, lambda _, x, path: str(x), lambda _, content: Device(content)),
    "dtype": _Kind(
        DTYPE_CLASSES,
        lambda _, x, path: _dtype_name(x, path),
        lambda _, content: DTYPES[as_dtype("load", content)],
        any_subclass=True,
    ),
    "scalar": _Kind(np.generic, _write_scalar, _read_scalar, any_subclass=True),
    "sparse": _Kind(SparseTensor, _write_sparse, _read_sparse, is_leaf=False),
}
_KEYS = (*_LEAVES, type(None), complex, bytes, Size, Device)
_WRITER = Writer()  # of leaves, which leave nothing in it


def checksum(structure: str, arrays: Arrays) -> int:
    """Return a CRC-32 of all of a file but the order of the tensors."""
    crc = zlib.crc32(structure.encode())
    for name in sorted(arrays):
        array = arrays[name]
        crc = zlib.crc32(f"{name} {array.dtype.name} {array.shape}".encode(), crc)
        crc = zlib.crc32(array.reshape(-1).view(np.uint8).data, crc)
    return crc


def _odd_part(key: Any) -> Any:
    """Return the part of a key that is written nowhere in keys, or None."""
    parts = [key]
    for part in parts:
        if type(part) in (tuple, frozenset):
            parts.extend(part)
        elif type(part) not in _KEYS and not isinstance(part, (np.generic, *DTYPE_CLASSES)):
            return part
    return None


def require(holds: bool, why: str) -> None:
    """Raise for a description that no file of ours has."""
    if not holds:
        raise ValueError(why)


def listed(content: Any) -> list[Any]:
    """Return a list of a description."""
    if type(content) is not list:
        raise ValueError(f"a list is given as {type(content).__name__}")
    return content


def natural(numbers: list[Any]) -> bool:
    """Return whether numbers are whole, none of them below 0."""
    return all(type(x) is int and 0 <= x < 1 << 63 for x in numbers)


def parsed(text: str | bytes) -> Any:
    """Return the data of JSON, in whose objects names differ."""
    return json.loads(text, object_pairs_hook=_distinct)


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
