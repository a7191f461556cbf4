"""PyTorch's own files, read without pickle: nothing in a file is called, imported or executed.

A `.pt` file is a pickle, a program for a stack machine, with the bytes of the tensors beside it.
`_Machine` runs the instructions that build plain data, and no others. Where pickle would import a
name and call it, `_Machine` looks up the name in the table `_GLOBALS` of this file, whose functions
make tensors, numbers and containers. Any other name is an error.
"""

from __future__ import annotations

import io
import math
import pickletools
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite.arrays.array_spec import overlaps
from oneflow_lite.arrays.bfloat16_arrays import adopted, as_plain
from oneflow_lite.arrays.device import CPU, Device, as_device, to_device
from oneflow_lite.arrays.dtype import as_dtype
from oneflow_lite.arrays.dtype_object import DTYPES
from oneflow_lite.arrays.size import Size
from oneflow_lite.errors import DeviceError, SerializationError
from oneflow_lite.nn.parameter import Buffer, Parameter
from oneflow_lite.tensors.storage import Storage
from oneflow_lite.tensors.tensor import Tensor, make_tensor

ZIP_MAGIC = b"PK\x03\x04"
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_VERSION = 1001
_CONVERT = (
    "save it from PyTorch with torch.save(model.state_dict(), path), numbers and strings beside it "
    "in a dict, or with safetensors.torch.save_file"
)
_DTYPES = {  # of PyTorch's storages
    "Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16",
    "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip
_KEYS = (str, int, float, complex, bytes, type(None))  # bool is an int
Location = Callable[[Tensor, str], Device]


def is_torch_file(data: bytes) -> bool:
    """Return whether bytes look like a file of PyTorch, or like any pickle or zip file."""
    if data[:1] == b"\x80":
        # The length of a safetensors header may begin so; its text follows after eight bytes.
        return data[8:9] not in (b"", b"{")
    return data[:4] == ZIP_MAGIC


def load_torch(data: bytes, map_location: Any) -> Any:
    """Return the object that `torch.save` wrote.

    Raises
    ------
    SerializationError
        When the file is damaged, or holds other types than tensors, numbers, strings and
        containers of these.
    """
    read, location = _Zip if data[:4] == ZIP_MAGIC else _Legacy, locate(map_location)
    failed: list[Exception] = []

    def asked(elements: Tensor, where: str) -> Device:
        try:
            return location(elements, where)
        except Exception as error:
            failed.append(error)
            raise

    try:
        return read(data, asked if callable(map_location) else location).load()
    except (DeviceError, SerializationError):
        raise
    except Exception as error:  # instructions without sense, or no zip file
        if failed:  # the caller's own function failed
            raise failed[0] from None
        raise damaged_error(shown(error)) from None


def damaged_error(why: str) -> SerializationError:
    """Return the error for a file that does not follow its own format."""
    return SerializationError(
        f"load(): the file is damaged, cut short or no file of torch.save: {why}; {_CONVERT}"
    )


def room_of(nbytes: int) -> int:
    """Return how many bytes a file of this size may have copied of what it holds."""
    return 1_000_000 + 16 * nbytes


def shown(error: Exception) -> str:
    """Return a short text for an error, which may quote a part of a file."""
    try:
        text = str(error)[:300]
    except ValueError:  # of an int of many digits
        text = ""
    return text if type(error) is ValueError and text else f"{type(error).__name__}: {text}"


def locate(map_location: Any) -> Location:
    """Return a function that gives the device of a storage by PyTorch's `map_location`.

    A device is for all storages; a dict has the new device by the name of the old. A function gets
    the elements, as a tensor on the CPU, and the old device; it returns the tensor moved.
    """
    if isinstance(map_location, dict):
        return lambda elements, location: as_device(map_location.get(location, location))
    if callable(map_location):

        def ask(elements: Tensor, location: str) -> Device:
            result = map_location(elements, location)
            return result.device if isinstance(result, Tensor) else CPU

        return ask
    device = as_device(map_location)
    return lambda elements, location: device


class _Global(NamedTuple):
    """The meaning of a name in a file: a function of this file, or a class that is only named."""

    name: str
    make: Callable[..., Any] | None = None
    kind: Any = None  # the plain type, or the name of a storage's dtype


class _Stored(NamedTuple):
    """The elements that some tensors of a file are views of."""

    array: np.ndarray[Any, Any]  # one dimension
    device: Device
    versions: Storage
    copies: Callable[[int], None]  # takes the bytes of a copy off the room for copies


class _Machine:
    """Runs the instructions of a pickle that build plain data; any other is an error.

    Parameters
    ----------
    stored : callable
        Returns the `_Stored` of a persistent id.
    room : int
        How many elements may be passed to functions. A small file can pass the same long text or
        list again and again, and have it copied each time.
    """

    def __init__(self, stored: Callable[[Any], _Stored], room: int) -> None:
        self.stored = stored
        self.room = room
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.keys = Keys()
        self.seen: dict[int, Any] = {}  # tuples that were looked through, and so stay alive

    def plain(self, value: Any) -> Any:
        return plain(value, self.seen)

    def pairs(self, values: list[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield the pairs of a list of alternating keys and values."""
        for key, value in zip(values[::2], values[1::2], strict=True):
            yield self.keys.checked(key), self.plain(value)

    def run(self, file: io.BytesIO, record: str) -> Any:
        """Run the pickle of a record, and leave the file at its end."""
        position: int | None = file.tell()
        name = "PROTO"
        try:
            for opcode, argument, at in pickletools.genops(file):
                position, name = at, opcode.name
                step = _STEPS.get(name)
                if name in _CONSTANTS:
                    self.stack.append(_CONSTANTS[name])
                elif name in _LITERALS:
                    self.stack.append(argument)
                elif name == "STOP":
                    return self.plain(self.stack.pop())
                elif step is None:
                    raise refused_error(f"the instruction {name}")
                else:
                    step(self, argument)
            raise damaged_error("it ends in the middle")
        except DeviceError:
            raise
        except Exception as error:
            known = isinstance(error, SerializationError)
            text = str(error if known else damaged_error(shown(error))).removeprefix("load(): ")
            where = f"{record}, byte {position} ({name})"
            raise SerializationError(f"load(): {where}: {text}") from None

    def pop_mark(self) -> list[Any]:
        """Return the values above the last mark, and take them off the stack."""
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def mark(self, _: Any) -> None:
        self.marks.append(len(self.stack))

    def pop(self, _: Any) -> None:
        self.stack.pop()

    def drop_mark(self, _: Any) -> None:
        self.pop_mark()

    def duplicate(self, _: Any) -> None:
        self.stack.append(self.stack[-1])

    def put(self, key: int | None) -> None:
        key = len(self.memo) if key is None else key
        value = self.memo[key] = self.stack[-1]
        if isinstance(value, _Numpy):
            value.keys.append(key)

    def get(self, key: int) -> None:
        self.stack.append(self.memo[key])

    def empty(self, kind: Callable[[], Any]) -> None:
        self.stack.append(kind())

    def tuple_of(self, count: int | None) -> None:
        start = len(self.stack) - (count or 0)
        if start < 0:
            raise damaged_error("it takes more than there is")
        values = self.pop_mark() if count is None else self.stack[start:]
        if count is not None:
            del self.stack[start:]
        self.stack.append(tuple(values))

    def collect(self, kind: Callable[[Any], Any]) -> None:
        self.stack.append(kind(self.pop_mark()))

    def append(self, _: Any) -> None:
        value = self.stack.pop()
        self.top(list).append(self.plain(value))

    def appends(self, _: Any) -> None:
        values = self.pop_mark()
        self.top(list).extend(map(self.plain, values))

    def set_item(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.top(dict)[self.keys.checked(key)] = self.plain(value)

    def set_items(self, _: Any) -> None:
        values = self.pop_mark()
        self.top(dict).update(self.pairs(values))

    def add_items(self, _: Any) -> None:
        values = self.pop_mark()
        self.top(set).update(map(self.keys.checked, values))

    def top(self, kind: type) -> Any:
        """Return the value on the top of the stack, which is of this kind."""
        if not isinstance(self.stack[-1], kind):
            raise damaged_error(
                f"it fills a {type(self.stack[-1]).__name__} as if it were a {kind}"
            )
        return self.stack[-1]

    def named(self, name: str) -> None:
        module, _, last = name.partition(" ")
        self.stack.append(global_of(module, last))

    def stack_named(self, _: Any) -> None:
        last, module = self.stack.pop(), self.stack.pop()
        self.stack.append(global_of(module, last))

    def call(self, _: Any) -> None:
        args, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, _Global) or function.make is None or type(args) is not tuple:
            raise damaged_error("it calls what cannot be called")
        self.spend(args)
        self.stack.append(function.make(*args))

    def spend(self, args: Any) -> None:
        """Take the elements of arguments off the room that is left."""
        self.room -= sum([len(arg) for arg in args if isinstance(arg, _SIZED)])
        if self.room < 0:
            raise damaged_error("it copies its contents more often than any file of weights does")

    def build(self, _: Any) -> None:
        """Give an object its state; a new object takes the old object's places in the memo."""
        state, before = self.stack.pop(), self.stack.pop()
        after: Any = before
        if isinstance(before, _Numpy):
            self.spend(state)
            self.room -= len(before.keys)
            after = before.filled(state)
            self.memo.update(dict.fromkeys(before.keys, after))
        elif isinstance(before, OrderedDict) and isinstance(state, dict) and [*state] == [_META]:
            after._metadata = self.plain(state[_META])
            if not isinstance(after._metadata, dict):
                raise damaged_error("the metadata is no dict")
        else:
            raise refused_error(f"the state of a {type(before).__name__}")
        self.stack.append(after)

    def persistent(self, _: Any) -> None:
        self.stack.append(self.stored(self.stack.pop()))


_META = "_metadata"
_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)
_LITERALS = frozenset(
    """
    INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE
    BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8 STRING BINSTRING SHORT_BINSTRING
    """.split()
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_M = _Machine
_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "MARK": _M.mark,
    "POP": _M.pop,
    "POP_MARK": _M.drop_mark,
    "DUP": _M.duplicate,
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _M.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _M.get),
    "MEMOIZE": _M.put,
    "EMPTY_LIST": lambda machine, _: machine.empty(list),
    "EMPTY_DICT": lambda machine, _: machine.empty(dict),
    "EMPTY_SET": lambda machine, _: machine.empty(set),
    "EMPTY_TUPLE": lambda machine, _: machine.empty(tuple),
    "TUPLE": lambda machine, _: machine.tuple_of(None),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "LIST": lambda machine, _: machine.collect(lambda values: [*map(machine.plain, values)]),
    "DICT": lambda machine, _: machine.collect(lambda values: dict(machine.pairs(values))),
    "FROZENSET": lambda machine, _: machine.collect(
        lambda values: frozenset(map(machine.keys.checked, values))
    ),
    "APPEND": _M.append,
    "APPENDS": _M.appends,
    "SETITEM": _M.set_item,
    "SETITEMS": _M.set_items,
    "ADDITEMS": _M.add_items,
    "GLOBAL": _M.named,
    "STACK_GLOBAL": _M.stack_named,
    "REDUCE": _M.call,
    "NEWOBJ": _M.call,
    "BUILD": _M.build,
    "BINPERSID": _M.persistent,
}


class Keys:
    """Checks keys of dicts and members of sets, whose hashes a file may have chosen.

    Different keys of one hash take quadratic time, and numbers and tuples are hashed anew each
    time. So a file may have 64 different keys of a hash, tuples of 64 parts, and ints of 1024 bits.
    """

    def __init__(self) -> None:
        self.alike: dict[int, list[Any]] = {}  # by hash; those of text differ in each process

    def checked(self, key: Any) -> Any:
        """Return a key: a number, text, bytes, None, or a tuple of these."""
        if type(key) in (str, bytes):
            return key
        parts = key if type(key) is tuple else (key,)
        for part in parts:
            if not isinstance(part, _KEYS):
                raise refused_error(f"a key of type {type(part).__name__}")
        self.note(key, parts)
        return key

    def note(self, key: Any, parts: Any = ()) -> None:
        """Raise for a key that takes long to hash, or is one of many of its hash."""
        long = any(type(part) is int and part.bit_length() > 1024 for part in parts)
        alike = self.alike.setdefault(0 if long else hash(key), [])
        if key not in alike:
            alike.append(key)
        if long or len(alike) > 64 or len(parts) > 64:
            raise damaged_error("its keys are too long, or too many have one hash")


def plain(value: Any, seen: dict[int, Any] | None = None) -> Any:
    """Return a value for the result; raise for a name or a half-built object.

    seen: tuples by identity that were looked through before.
    """
    if isinstance(value, _NumpyDType):
        return value.dtype
    left, seen = [value], {} if seen is None else seen
    while left:
        part = left.pop()
        if isinstance(part, _Global):
            raise refused_error(f"'{part.name}'")
        if isinstance(part, (_Numpy, _Stored)):
            raise refused_error("an array or a storage that is not finished")
        if type(part) is tuple and id(part) not in seen:  # lists and dicts were checked when filled
            seen[id(part)] = part
            left.extend(part)
    return value


def refused_error(what: str) -> SerializationError:
    """Return the error for contents that this reader does not build."""
    return SerializationError(
        f"load(): the file holds {what}; only tensors, numbers, strings and containers of these "
        f"are read, and nothing in a file is executed: {_CONVERT}"
    )


def global_of(module: Any, name: Any) -> Any:
    """Return the meaning of a name in a file; raise for a name that is not in the table."""
    if not isinstance(module, str) or not isinstance(name, str):
        raise damaged_error("a name that is no text")
    if module == "torch" and name in _TORCH_DTYPES:
        return DTYPES[as_dtype("load", name)]
    entry = _GLOBALS.get((module, name))
    if entry is None:
        raise refused_error(f"'{module}.{name}'")
    return entry


# --- The functions behind the names of a file -----------------------------------------------------


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise damaged_error(f"a yes or no that is a {type(value).__name__}")
    return value


def _sizes(values: Any) -> tuple[int, ...]:
    sizes = tuple(values)
    if not all(type(value) is int and 0 <= value < 1 << 63 for value in sizes):
        raise damaged_error("a shape, a stride or an offset that is none")
    return sizes


def _tensor(
    stored: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any = False,
    hooks: Any = (),
    metadata: Any = None,
) -> Tensor:
    """Return a view of stored elements; raise when it reaches outside."""
    if not isinstance(stored, _Stored):
        raise damaged_error("a tensor without a storage")
    shape, steps, (first,) = _sizes(size), _sizes(stride), _sizes((offset,))
    if len(shape) != len(steps):
        raise damaged_error(f"a tensor of shape {shape} with strides {steps}")
    if hooks or not isinstance(hooks, (dict, tuple)):
        raise refused_error("a tensor with hooks")
    last = first + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if math.prod(shape) and last >= stored.array.size:
        raise damaged_error(f"a tensor whose elements reach to {last} of {stored.array.size}")
    flat = as_plain(stored.array)
    flags = metadata if isinstance(metadata, dict) else {}
    lazy = bool(flags.get("conj") or flags.get("neg"))  # a view in PyTorch, a copy here
    item = flat.itemsize
    if lazy or stored.device is not CPU:
        stored.copies(math.prod(shape) * item)
    if math.prod(shape):
        strides = tuple(step * item for step in steps)
        array: Any = np.ndarray(shape, flat.dtype, flat, first * item, strides)
        if overlaps(array):
            array.flags.writeable = False  # a write would change several elements
        array = np.conj(array) if flags.get("conj") else array
        array = -array if flags.get("neg") else array
    else:
        array = np.empty(shape, flat.dtype)
    if stored.device is not CPU:
        array = to_device(array, stored.device)
    tensor = make_tensor(adopted(array))
    if stored.device is CPU and not lazy:
        tensor._storage = stored.versions
    tensor.requires_grad = _flag(requires_grad)
    return tensor


def _typed_tensor(
    stored: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """Return a view of stored bytes as elements of a dtype."""
    if not isinstance(stored, _Stored):
        raise damaged_error("a tensor without a storage")
    typed = as_plain(stored.array).view(_numpys(as_dtype("load", dtype)))
    stored = stored._replace(array=adopted(typed))
    return _tensor(stored, offset, size, stride, requires_grad, hooks, metadata)


def _parameter(data: Any, requires_grad: Any, hooks: Any = (), state: Any = None) -> Parameter:
    """Return a parameter; `state` are attributes that were set on it."""
    if not isinstance(data, Tensor) or hooks or not isinstance(hooks, (dict, tuple)):
        raise refused_error("a parameter that is no tensor, or has hooks")
    made: Parameter = with_attributes(Parameter(data, _flag(requires_grad)), state)
    return made


def _of_type(make: Any, kind: Any, args: Any, state: Any) -> Any:
    """Return a tensor that was saved with attributes of its own."""
    if not isinstance(make, _Global) or make.make not in (_tensor, _typed_tensor, _parameter):
        raise refused_error("a tensor of a class of its own")
    tensor, attributes = make.make(*args), dict(plain(state) or {})
    if attributes.pop("_is_buffer", None) is True:
        tensor = Buffer(tensor, persistent=attributes.get("persistent") is not False)
    return with_attributes(tensor, attributes)


def with_attributes(tensor: Any, state: Any) -> Any:
    """Set attributes that a file has for a tensor, but for names with a meaning; return it."""
    for name, value in (plain(state) or {}).items():
        if type(name) is str and not name.startswith("__") and not hasattr(tensor, name):
            setattr(tensor, name, value)
    return tensor


def _numpys(dtype: Any) -> Any:
    """Return NumPy's dtype, for bfloat16 the dtype of ml_dtypes."""
    return getattr(dtype, "dtype", dtype)


class _Numpy:
    """An array of NumPy before its state is set."""

    def __init__(self) -> None:
        self.keys: list[int] = []  # its places in the memo

    def filled(self, state: Any) -> Any:
        """Return the array of the bytes."""
        _, shape, dtype, fortran, data = state
        if not isinstance(data, (bytes, bytearray)):
            raise refused_error("an array of NumPy of Python objects")
        array = np.frombuffer(data, _numpy_dtype(dtype))
        shape = _sizes(shape)
        array = array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
        return array.astype(array.dtype.newbyteorder("="))


class _NumpyDType(_Numpy):
    """A dtype of NumPy; its state is the byte order."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype

    def filled(self, state: Any) -> Any:
        """Return the dtype with its byte order."""
        order = state[1]
        return _NumpyDType(self.dtype if order == "|" else self.dtype.newbyteorder(order))


def _numpy_dtype(value: Any) -> Any:
    if not isinstance(value, _NumpyDType):
        raise damaged_error("elements of NumPy without a dtype")
    return value.dtype


def _make_numpy_dtype(name: Any, *_: Any) -> _Numpy:
    if not isinstance(name, str) or name not in _NUMPY_DTYPES:
        raise refused_error("an array of NumPy of another dtype than tensors have")
    return _NumpyDType(np.dtype(name))


def _numpy_scalar(dtype: Any, data: Any) -> Any:
    return np.frombuffer(data, _numpy_dtype(dtype)).astype(_numpy_dtype(dtype).newbyteorder("="))[0]


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise damaged_error("bytes that are no text")
    return text.encode(encoding)


def _numbers(kind: Callable[..., Any]) -> Callable[..., Any]:
    def make(*args: Any) -> Any:
        if not all(isinstance(arg, (int, float)) for arg in args):
            raise damaged_error("a number that is none")
        return kind(*args)

    return make


def _device(*args: Any) -> Device:
    try:
        return Device(*args)
    except DeviceError as error:  # not to be taken for a device that `map_location` names
        raise damaged_error(str(error)) from None


def _ordered(items: Any = ()) -> Any:
    given = items.items() if isinstance(items, dict) else items
    check = Keys().checked
    return OrderedDict((check(key), plain(value)) for key, value in given)


def _default_dict(factory: Any = None, items: Any = ()) -> Any:
    kind = factory.kind if isinstance(factory, _Global) else factory
    if kind is not None and kind not in FACTORIES:
        raise refused_error("a defaultdict of another factory than a plain type")
    return defaultdict(kind, _ordered(items))


def _elements(kind: Any) -> Callable[..., Any]:
    """Return a function that makes a container, empty or with the elements of a list."""

    def make(items: Any = ()) -> Any:
        if not isinstance(items, (list, tuple, bytes)):
            raise refused_error(f"a {kind.__name__} of something else than elements")
        return kind(map(Keys().checked if kind in (set, frozenset) else plain, items))

    return make


FACTORIES = (list, dict, set, int, float, str, tuple, bool)
_TORCH_DTYPES = frozenset(
    """
    float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 uint16 uint32 uint64 bool
    complex64 complex128
    """.split()
)
_NUMPY_DTYPES = {np.dtype(name).str[1:] for name in _TORCH_DTYPES - {"bfloat16"}}
_PLAIN_TYPES: dict[Any, Callable[..., Any] | None] = {
    **{kind: _elements(kind) for kind in (set, frozenset, list, tuple, bytes, bytearray)},
    dict: lambda items=(): dict(_ordered(items)),
    complex: _numbers(complex),
    **dict.fromkeys((int, float, bool, str)),
}
_MAKERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torch": {"Size": lambda values=(): Size(_sizes(values)), "device": _device},
    "torch._utils": {
        "_rebuild_tensor": _tensor,
        "_rebuild_tensor_v2": _tensor,
        "_rebuild_tensor_v3": _typed_tensor,
        "_rebuild_parameter": _parameter,
        "_rebuild_parameter_with_state": _parameter,
    },
    "torch._tensor": {"_rebuild_from_type_v2": _of_type},
    "collections": {
        "OrderedDict": _ordered,
        "Counter": lambda items=(): Counter(_ordered(items)),
        "defaultdict": _default_dict,
    },
    "_codecs": {"encode": _encoded},
    "numpy": {"dtype": _make_numpy_dtype},
    "numpy._core.multiarray": {"_reconstruct": lambda *_: _Numpy(), "scalar": _numpy_scalar},
}
_MAKERS["numpy.core.multiarray"] = _MAKERS["numpy._core.multiarray"]  # before NumPy 2
_GLOBALS: dict[tuple[str, str], _Global] = {
    (module, name): _Global(f"{module}.{name}", make)
    for module, makers in _MAKERS.items()
    for name, make in makers.items()
}
_GLOBALS |= {
    (module, kind.__name__): _Global(kind.__name__, make, kind)
    for module in ("builtins", "__builtin__")
    for kind, make in _PLAIN_TYPES.items()
}
_GLOBALS |= {
    ("torch", f"{name}Storage"): _Global(f"torch.{name}Storage", kind=dtype)
    for name, dtype in _DTYPES.items()
}
_GLOBALS["torch.storage", "UntypedStorage"] = _Global("torch.UntypedStorage", kind="bytes")
_GLOBALS |= {  # classes that files name as arguments; nothing calls them
    (module, name): _Global(f"{module}.{name}")
    for module, name in (
        ("numpy", "ndarray"),
        ("torch", "Tensor"),
        ("torch.nn.parameter", "Parameter"),
        ("torch.nn.parameter", "Buffer"),
    )
}


# --- The two kinds of files -----------------------------------------------------------------------


class _File:
    """The base of both kinds of files: storages by key, each made once.

    Parameters
    ----------
    data : bytes
        The file.
    location : callable
        Gives the device of a storage.
    """

    def __init__(self, data: bytes, location: Location) -> None:
        self.data = data
        self.location = location
        self.swapped = False  # whether the bytes are in the order of another machine
        self.room = room_of(len(data))
        self.storages: dict[str, _Stored] = {}

    def load(self) -> Any:
        """Return the object."""
        result = self.read()
        for stored in self.storages.values():
            if stored.array.dtype == np.bool_:  # any byte but 0 is true
                memory = stored.array.view(np.uint8)
                memory[...] = memory != 0
        return result

    def run(self, file: io.BytesIO, record: str) -> Any:
        """Run a pickle of the file."""
        return _Machine(self.stored, self.room).run(file, record)

    def copies(self, nbytes: int) -> None:
        """Take the bytes of a copy off the room that is left, before there is the copy."""
        self.room -= nbytes
        if self.room < 0:
            raise damaged_error("its views are copies of many times its size")

    def stored(self, identity: Any) -> _Stored:
        """Return the storage of a persistent id."""
        if type(identity) is not tuple or len(identity) < 5 or identity[0] != "storage":
            raise refused_error("a reference to something else than a storage")
        _, kind, key, where, count = identity[:5]
        (count,) = _sizes((count,))
        dtype_name = kind.kind if isinstance(kind, _Global) else None
        if type(dtype_name) is not str or type(key) is not str or type(where) is not str:
            raise damaged_error("a storage without a dtype, a name or a device")
        if any(part is not None for part in identity[5:]):
            raise refused_error("a storage that is part of another one")
        untyped = dtype_name == "bytes"
        if untyped and self.swapped:
            raise refused_error("bytes in the order of another machine, without a dtype")
        dtype = _numpys(as_dtype("load", "uint8" if untyped else dtype_name))
        known = self.storages.get(key)
        if known is None:
            known = self.storages[key] = self.make(key, where, count, dtype)
        elif as_plain(known.array).dtype != dtype or known.array.size != count:
            raise damaged_error("a storage is of two dtypes or sizes")
        return known

    def make(self, key: str, where: str, count: int, dtype: Any) -> _Stored:
        """Return a new storage."""
        memory = self.memory(key, count * dtype.itemsize)
        if self.swapped:
            memory.view(dtype).byteswap(inplace=True)
        array = adopted(memory.view(dtype))
        return _Stored(array, self.location(make_tensor(array), where), Storage(), self.copies)

    def memory(self, key: str, nbytes: int) -> Any:
        """Return the bytes of a storage, as an array of their own."""
        raise NotImplementedError

    def read(self) -> Any:
        """Return the object."""
        raise NotImplementedError


class _Zip(_File):
    """Since PyTorch 1.6: a zip file of data.pkl, data/0, data/1, ..., not compressed."""

    def read(self) -> Any:
        """Return the object."""
        with zipfile.ZipFile(io.BytesIO(self.data)) as archive:
            self.archive = archive
            names = archive.namelist()
            if len(set(names)) != len(names):
                raise damaged_error("two records of one name")
            if sum([info.file_size for info in archive.infolist()]) > len(self.data):
                raise damaged_error("its records lie in each other, or are compressed")
            pickles = [
                name for name in names if name.count("/") == 1 and name.endswith("/data.pkl")
            ]
            if len(pickles) != 1:
                raise damaged_error(f"{len(pickles)} records data.pkl")
            self.folder = pickles[0].removesuffix("data.pkl")
            if f"{self.folder}constants.pkl" in names:
                raise refused_error("a model with its code, of torch.jit.save")
            if f"{self.folder}byteorder" in names:
                order = bytes(self.record("byteorder"))
                if order not in (b"little", b"big"):
                    raise damaged_error("a byte order that is neither little nor big")
                self.swapped = order == b"big"
            return self.run(io.BytesIO(bytes(self.record("data.pkl"))), "record 'data.pkl'")

    def record(self, name: str) -> Any:
        """Return the bytes of a record, which its checksum covers."""
        info = self.archive.getinfo(self.folder + name)
        if info.compress_type != zipfile.ZIP_STORED:
            raise damaged_error(f"the record {name!r} is compressed")
        return np.frombuffer(bytearray(self.archive.read(info)), np.uint8)

    def memory(self, key: str, nbytes: int) -> Any:
        """Return the bytes of a storage, as an array of their own."""
        memory = self.record(f"data/{key}")
        if len(memory) != nbytes:
            raise damaged_error(
                f"the record 'data/{key}' has {len(memory)} bytes instead of {nbytes}"
            )
        return memory


class _Legacy(_File):
    """Before PyTorch 1.6: several pickles, and the bytes of the storages behind them."""

    def read(self) -> Any:
        """Return the object."""
        self.left = len(self.data)
        self.memories: dict[str, Any] = {}
        self.sizes: dict[str, int] = {}
        file = io.BytesIO(self.data)
        if self.run(file, "pickle 0") != _LEGACY_MAGIC:
            raise refused_error("a pickle that torch.save did not write")
        version, system, result, keys = [self.run(file, f"pickle {n}") for n in range(1, 5)]
        if version != _LEGACY_VERSION or not isinstance(system, dict):
            raise damaged_error("it is of another version")
        if system.get("little_endian") is False:
            raise refused_error("bytes in the order of another machine")
        if not isinstance(keys, list) or {*keys} != {*self.memories}:
            raise damaged_error("the storages are not those of the tensors")
        for key in keys:
            memory = self.memories[key]
            count = int.from_bytes(file.read(8), "little")
            if count * self.sizes[key] != len(memory) or file.readinto(memory) != len(memory):
                raise damaged_error(f"the storage {key!r} is cut short")
        return result

    def stored(self, identity: Any) -> _Stored:
        """Return the storage of a persistent id."""
        stored = super().stored(identity)
        self.sizes[identity[2]] = stored.array.itemsize
        return stored

    def memory(self, key: str, nbytes: int) -> Any:
        """Return room for the bytes, which follow the last pickle of the file."""
        self.left -= nbytes
        if self.left < 0:
            raise damaged_error("its storages are longer than the file")
        self.memories[key] = np.zeros(nbytes, np.uint8)
        return self.memories[key]
