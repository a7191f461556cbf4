"""The stand-in's `ndarray`, and the two ways into NumPy: `call` and `call_ufunc`."""

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import overlaps
from tests.strict_cupy import facts, races
from tests.strict_cupy.devices import Device, MemoryPointer, current_device, get_current_stream
from tests.strict_cupy.graphs import no_sync, run_or_capture
from tests.strict_cupy.record import Transfer, log

SCALARS = (bool, int, float, complex, np.generic)


class ndarray:
    """An array "on a device": a host array in a slot that nothing outside this package opens."""

    __slots__ = ("__weakref__", "_device", "_host", "base")
    __array_priority__ = 100
    __hash__ = None

    def __init__(self, shape: Any, dtype: Any = float, order: Any = "C") -> None:
        self._host = np.empty(shape, dtype, order)
        self._device = current_device()
        self.base: ndarray | None = None

    @classmethod
    def _of(cls, host: Any, device: int, base: "ndarray | None" = None) -> "ndarray":
        if host.dtype.kind not in "biufc" or host.dtype.char in "gG":
            raise TypeError(f"Unsupported dtype {host.dtype}")
        array = cls.__new__(cls)
        array._host, array._device, array.base = host, device, base
        return array

    # What can be read without touching the data.

    dtype = property(lambda self: self._host.dtype)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    ndim = property(lambda self: self._host.ndim)
    shape = property(lambda self: self._host.shape)
    size = property(lambda self: self._host.size)
    strides = property(lambda self: self._host.strides)
    flags = property(lambda self: Flags(self))
    device = property(lambda self: Device(self._device))
    data = property(lambda self: MemoryPointer(self._host, self._device))
    T = property(lambda self: call("transpose", np.transpose, (self,)))
    mT = property(lambda self: call("matrix_transpose", np.matrix_transpose, (self,)))

    @property
    def real(self) -> "ndarray":
        return call("real", np.real, (self,))

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> "ndarray":
        return call("imag", np.imag, (self,))

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    # Ways to the host: all of them written down, the implicit one closed.

    def _copy_to_host(self, via: str, order: Any = "C") -> Any:
        no_sync(get_current_stream(self._device).graph)
        log.append(Transfer("d2h", via, self.shape, self.dtype, self._device))
        _launch(via, [self], [], self._device)
        if races.watch is not None:
            races.watch.synchronized(get_current_stream(self._device)._key(self._device))
        return np.array(self._host, order=order)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Use `.get()` to construct a NumPy array explicitly."
        )

    def get(
        self, stream: Any = None, order: Any = "C", out: Any = None, blocking: bool = True
    ) -> Any:
        host = self._copy_to_host("get", order)
        if out is None:
            return host
        out[...] = host
        return out

    def item(self) -> Any:
        return self._copy_to_host("item").item()

    def tolist(self) -> Any:
        return self._copy_to_host("tolist").tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        return self._copy_to_host("tobytes").tobytes(order)

    def __bool__(self) -> bool:
        return bool(self._copy_to_host("__bool__"))

    def __int__(self) -> int:
        return int(self._copy_to_host("__int__"))

    def __float__(self) -> float:
        return float(self._copy_to_host("__float__"))

    def __complex__(self) -> complex:
        return complex(self._copy_to_host("__complex__"))

    def __index__(self) -> int:
        return self._copy_to_host("__index__").__index__()

    def __repr__(self) -> str:
        return repr(self._copy_to_host("__repr__"))

    def __str__(self) -> str:
        return str(self._copy_to_host("__str__"))

    def __format__(self, specification: str) -> str:
        return format(self._copy_to_host("__format__"), specification)

    def __reduce__(self) -> Any:
        return from_host, (self._copy_to_host("__reduce__"), "unpickle")

    # Ways onto the device, and from one device to another.

    def set(self, host: Any, stream: Any = None) -> None:
        if not isinstance(host, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if host.dtype != self.dtype or host.shape != self.shape:
            raise ValueError(f"expected {self.dtype} {self.shape}, got {host.dtype} {host.shape}")
        no_sync(get_current_stream(self._device).graph)
        log.append(Transfer("h2d", "set", self.shape, self.dtype, self._device))
        self._host[...] = host

    def copy(self, order: Any = "C") -> "ndarray":
        """A copy on the current device, wherever this array is."""
        if self._device != current_device():
            log.append(Transfer("d2d", "copy", self.shape, self.dtype, current_device()))
        copied = ndarray._of(_run("copy", np.ndarray.copy, (self._host, order)), current_device())
        _launch("copy", [self], [copied])
        return copied

    def __copy__(self) -> "ndarray":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "ndarray":
        with self.device:
            return self.copy()

    def __dlpack__(self, **options: Any) -> "Capsule":
        return Capsule(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._device)  # kDLCUDA

    # The container protocol.

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Iterator["ndarray"]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        index = _on_device(index)
        host_index, arrays = _host_index(self, index)
        if arrays:
            _check_devices([self, *arrays])
            # The index is looked up again: a graph computes it at each launch.
            picked = _run("__getitem__", lambda h: h[_host_index(self, index)[0]], (self._host,))
            return _wrap(picked, [self])
        return _wrap(self._host[host_index], [self])

    def __setitem__(self, index: Any, value: Any) -> None:
        index = _on_device(index)
        arrays = _host_index(self, index)[1]
        if isinstance(value, ndarray):
            arrays.append(value)
        elif not isinstance(value, SCALARS):
            raise TypeError(f"Unsupported type {type(value)}")
        _check_devices([self, *arrays])
        host = value._host if isinstance(value, ndarray) else value
        store = lambda h, v: h.__setitem__(_host_index(self, index)[0], v)  # noqa: E731
        _run("__setitem__", store, (self._host, host))
        _launch("__setitem__", arrays, [self])

    # NumPy's own functions come here when they meet one of these arrays.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if ufunc.__name__ in facts.LACKING_FUNCTIONS:
            return NotImplemented
        out = keywords.get("out")
        if out is not None and len(out) == 1:
            keywords["out"] = out[0]
        return call_ufunc(ufunc, method, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        name = function.__name__
        lacking = facts.LACKING_FUNCTIONS
        if function.__module__ == "numpy.linalg":
            lacking = facts.LACKING_LINALG
        return NotImplemented if name in lacking else call(name, function, args, keywords)


class Flags:
    """The three flags that CuPy's arrays have; there is no `writeable` among them."""

    __slots__ = ("c_contiguous", "f_contiguous", "owndata")

    def __init__(self, array: ndarray) -> None:
        self.c_contiguous = array._host.flags.c_contiguous
        self.f_contiguous = array._host.flags.f_contiguous
        self.owndata = array.base is None

    def __getitem__(self, name: str) -> bool:
        return {
            "C_CONTIGUOUS": self.c_contiguous,
            "F_CONTIGUOUS": self.f_contiguous,
            "OWNDATA": self.owndata,
        }[name]


class Capsule:
    """The answer of `__dlpack__`: no PyCapsule, so only the stand-in's `from_dlpack` opens it."""

    def __init__(self, array: ndarray) -> None:
        self.array = array


def from_host(value: Any, via: str, **options: Any) -> ndarray:
    """Copy host data to the current device, and write it down."""
    host = np.array(value, **options)
    no_sync(get_current_stream().graph)
    log.append(Transfer("h2d", via, host.shape, host.dtype, current_device()))
    copied = ndarray._of(host, current_device())
    _launch(via, [], [copied])
    return copied


def _launch(name: str, reads: list[ndarray], writes: list[ndarray], device: int = -1) -> None:
    device = current_device() if device < 0 else device
    stream = get_current_stream(device)
    if races.watch is not None and stream.graph is None:
        reads, writes = ([_owner(a._host) for a in arrays] for arrays in (reads, writes))
        races.watch.kernel(name, stream._key(device), reads, writes)


def call(name: str, function: Any, args: Any, keywords: dict[str, Any] | None = None) -> Any:
    """Call a NumPy function on the arrays behind the arguments; refuse and answer as CuPy does."""
    keywords = keywords or {}
    unknown = facts.LACKING_KEYWORDS.get(name, frozenset()) & keywords.keys()
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    arrays: list[ndarray] = []
    host_args, host_keywords = _unwrap(args, arrays), _unwrap(keywords, arrays)
    if name not in facts.VIEWS:
        _check_devices(arrays)
    result = _run(name, function, host_args, host_keywords)
    if name in facts.ARRAY_ANSWERS:
        result = np.asarray(result)
    answer = _wrap(result, arrays)
    if name not in facts.VIEWS:
        made = answer if isinstance(answer, list | tuple) else [answer]
        written = [a for a in made if isinstance(a, ndarray)]
        _launch(name, arrays, written + (arrays[:1] if name in facts.WRITING else []))
    return answer


def call_ufunc(ufunc: Any, method: str, args: Any, keywords: dict[str, Any]) -> Any:
    """Call a ufunc or one of its methods; inputs are arrays or scalars, never lists."""
    name = ufunc.__name__
    if method != "__call__" and name not in facts.UFUNC_METHODS.get(method, {name}):
        raise NotImplementedError(f"`{name}.{method}` is not supported yet")
    known = {"out", "dtype", "casting"} | (
        {"axes", "axis", "keepdims"} if ufunc.signature or method != "__call__" else set()
    )
    if not keywords.keys() <= known:
        raise TypeError(f"Wrong arguments {sorted(keywords.keys() - known)} for {name}")
    if method == "at":
        target, index, *values = args
        return _scatter(ufunc, target, index, values)
    for operand in args:
        if operand is not None and not isinstance(operand, (ndarray, *SCALARS)):
            raise TypeError(f"Unsupported type {type(operand)}")
    return call(name, getattr(ufunc, method), args, keywords)


def _scatter(ufunc: Any, target: ndarray, index: Any, values: list[Any]) -> None:
    name = ufunc.__name__
    if not isinstance(target, ndarray):
        raise TypeError(f"Unsupported type {type(target)}")
    index = _on_device(index)
    arrays = _host_index(target, index)[1]
    by_number = any(array.dtype.kind in "iu" for array in arrays)
    if by_number and target.dtype.name not in facts.SCATTER_DTYPES[name]:
        raise TypeError(f"cupy.{name}.at does not support {target.dtype}")
    host_values = _unwrap(values, arrays)
    _check_devices([target, *arrays])
    _launch(name, arrays, [target])
    scatter = lambda h, *v: ufunc.at(h, _host_index(target, index)[0], *v)  # noqa: E731
    _run(name, scatter, (target._host, *host_values))


def _run(name: str, function: Any, args: Any, keywords: Any = types.MappingProxyType({})) -> Any:
    graph = None if name in facts.VIEWS else get_current_stream().graph
    return run_or_capture(graph, name, function, args, keywords)


def _unwrap(value: Any, found: list[ndarray]) -> Any:
    if isinstance(value, ndarray):
        found.append(value)
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, list | tuple):
        return type(value)([_unwrap(item, found) for item in value])
    if isinstance(value, dict):
        return {key: _unwrap(item, found) for key, item in value.items()}
    return value


def _wrap(result: Any, sources: list[ndarray]) -> Any:
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if isinstance(result, np.ndarray):
        owner = _owner(result)
        for source in sources:
            if result is source._host:
                return source
            if owner is _owner(source._host):
                writeable = source._host.flags.writeable and not overlaps(result)
                if writeable and not result.flags.writeable:
                    result.flags.writeable = True  # CuPy's diagonal() can be written
                base = source if source.base is None else source.base
                return ndarray._of(result, source._device, base)
        return ndarray._of(result, current_device())
    if isinstance(result, list | tuple):
        # A plain sequence: NumPy's named results (of slogdet, say) have no counterpart.
        answers = [_wrap(item, sources) for item in result]
        return answers if isinstance(result, list) else tuple(answers)
    return result


def _owner(host: Any) -> Any:
    while getattr(host, "base", None) is not None:
        host = host.base
    return host


def _check_devices(arrays: list[ndarray]) -> None:
    for array in arrays:
        if array._device != current_device():
            raise ValueError(
                f"The device where the array resides ({array._device}) is different from the "
                f"current device ({current_device()}). Peer access is unavailable between these "
                "devices."
            )


def _on_device(index: Any) -> Any:
    """Copy the lists of an index to the device."""
    if isinstance(index, list):
        return from_host(index, "index", dtype=None if index else int)
    return tuple(map(_on_device, index)) if isinstance(index, tuple) else index


def _host_index(array: ndarray, index: Any) -> tuple[tuple[Any, ...], list[ndarray]]:
    """Return an index for NumPy, and the arrays in it; entries out of range wrap around."""
    items = list(index) if isinstance(index, tuple) else [index]
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)  # so that NumPy answers with a 0-d view, not with a scalar
    arrays: list[ndarray] = []
    for position, item in enumerate(items):
        if isinstance(item, np.ndarray):
            raise TypeError(f"Unsupported type {type(item)}")
        if isinstance(item, ndarray):
            arrays.append(item)
            items[position] = item._host
    axis = 0
    taken = [_axes_taken(item) for item in items]
    for position, item in enumerate(items):
        if item is Ellipsis:
            axis = array.ndim - sum(taken[position:])
        if isinstance(item, np.ndarray) and item.dtype.kind in "iu" and 0 <= axis < array.ndim:
            items[position] = item % max(array.shape[axis], 1)
        axis += taken[position]
    return tuple(items), arrays


def _axes_taken(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool | np.bool):
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype.kind == "b" else 1
