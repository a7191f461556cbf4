"""Small private helpers of PyTorch that packages import, from `torch._utils` to `nn.attention`."""

from __future__ import annotations

import datetime
import enum
import re
import types
import typing
import weakref
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, Final as Final

import numpy as np

import oneflow_lite as flow
from oneflow_lite.arrays.device import Device, as_device
from oneflow_lite.nn.module import _REGISTRATION_HOOKS
from oneflow_lite.tensors.tensor import Tensor

DEFAULT_PROTOCOL = 2  # of pickles in a file
MAP_LOCATION = typing.Union[Callable[..., Any], Device, str, dict[str, str], None]  # noqa: UP007
CUDA_HOME = None  # no compiler of CUDA is looked for
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
_TensorMeta = type(Tensor)
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_global_parameter_registration_hooks = _REGISTRATION_HOOKS["parameters"]
np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of NumPy's that make no tensors
default_pg_timeout = datetime.timedelta(minutes=30)
no_scripts = types.SimpleNamespace(_enabled=types.SimpleNamespace(enabled=False))


# --- Assertions -----------------------------------------------------------------------------------


def _assert(condition: Any, message: str = "") -> None:
    """Raise AssertionError with a message unless a condition holds."""
    assert condition, message


def _checking(kind: type[Exception]) -> Callable[..., None]:
    def check(cond: Any, message: Any = None) -> None:
        if not cond:
            text = "Expected cond to be True" if message is None else message
            raise kind(text() if callable(text) else text)

    check.__doc__ = f"Raise {kind.__name__} with a message, or what it returns, unless it holds."
    return check


check, check_value, check_type = map(_checking, (RuntimeError, ValueError, TypeError))
check_index = _checking(IndexError)


def check_size(i: Any, message: Any = None, *, max: int | None = None) -> None:
    """Raise RuntimeError unless a number can be the size of a dimension."""
    check(i >= 0 and (max is None or i <= max), message)


def truth(condition: Any) -> bool:
    """Return whether a condition on sizes holds: sizes are numbers."""
    return bool(condition)


# --- Devices and versions -------------------------------------------------------------------------


def yes() -> bool:
    """Return True."""
    return True


def one() -> int:
    """Return 1: the CPU counts as one device."""
    return 1


def cpu_name() -> str:
    """Return "cpu"."""
    return "cpu"


def get_device_module(device: Any = None) -> Any:
    """Return the module of a type of devices: `flow.cuda`, or `flow.cpu`."""
    place = flow.get_default_device() if device is None else as_device(device)
    return getattr(flow, place.type)


def _get_available_device_type() -> str | None:
    """Return "cuda" where a device is, else None."""
    return "cuda" if flow.cuda.is_available() else None


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the number of a device; -1 is the CPU."""
    if device is None:
        check_value(optional, "expected a device with an index, got None")
        return int(flow.cuda.current_device())
    place = as_device(device)
    check_value(place.type != "cpu" or allow_cpu, f"expected a CUDA device, got {place}")
    return -1 if place.type == "cpu" else place.index or 0


def show() -> str:
    """Return the versions of the libraries that compute."""
    return str(flow.info())


class TorchVersion(str):
    """A version as text, which compares as a version does: with texts and tuples.

    >>> from oneflow_lite.compatibility.helpers import TorchVersion
    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 14)
    (True, False)
    """

    def _numbers(self, other: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        text = other if isinstance(other, str) else ".".join(map(str, other))
        ours, theirs = (
            [int(n) for n in re.findall(r"\d+", version.partition("+")[0])]
            for version in (str(self), text)
        )
        length = max(len(ours), len(theirs))
        ours, theirs = ([*found, *[0] * (length - len(found))] for found in (ours, theirs))
        return tuple(ours), tuple(theirs)

    def __lt__(self, other: Any) -> bool:
        ours, theirs = self._numbers(other)
        return ours < theirs

    def __le__(self, other: Any) -> bool:
        ours, theirs = self._numbers(other)
        return ours <= theirs

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) if isinstance(other, str) else self <= other <= self

    __hash__ = str.__hash__


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return four numbers that seed NumPy in a worker of a DataLoader."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(n) for n in np.random.SeedSequence(entropy).generate_state(4)]


def _get_default_group() -> Any:
    """Return the group of all processes."""
    return flow.distributed.group.WORLD


# --- Tensors --------------------------------------------------------------------------------------


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return all elements of tensors of one dtype, behind each other."""
    return flow.cat([x.contiguous().view(-1) for x in tensors]) if tensors else flow.empty(0)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return views of a flat tensor in the shapes of tensors."""
    parts = flat.split([x.numel() for x in tensors])
    return tuple([part.view(x.shape) for part, x in zip(parts, tensors, strict=True)])


def grouped_tensors(
    lists: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[Any, tuple[list[list[Any]], list[int]]]:
    """Group parallel lists by the device and dtype of the first list's tensors."""
    groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
    rows = [each or [None] * len(lists[0]) for each in lists]
    for number, row in enumerate(zip(*rows, strict=True)):
        key = row[0].device, row[0].dtype
        columns, numbers = groups.setdefault(key, ([[] for _ in lists], []))
        for column, value in zip(columns, row, strict=True):
            column.append(value)
        if with_indices:
            numbers.append(number)
    return groups


def _element_size(dtype: Any) -> int:
    """Return the bytes of an element."""
    return int(dtype.itemsize)


def _disabled_torch_function_impl(
    func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """Call the function: no subclass is asked."""
    return func(*args, **(kwargs or {}))


def is_tensor_like(inp: Any) -> bool:
    """Return whether an object is a tensor, or says that it acts as one."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def to_dlpack(tensor: Tensor) -> Any:
    """Return a capsule of a tensor's memory, for `from_dlpack`."""
    return tensor.__dlpack__()


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return the CUDA devices that tensors are on, and the states of their generators."""
    found = {x.device.index or 0 for x in args if isinstance(x, Tensor) and x.is_cuda}
    return sorted(found), [flow.cuda.get_rng_state(n) for n in sorted(found)]


def set_device_states(devices: Sequence[int], states: Sequence[Any], **options: Any) -> None:
    """Set the states of the generators of CUDA devices."""
    for device, state in zip(devices, states, strict=True):
        flow.cuda.set_rng_state(state, device)


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary whose keys are objects by identity, which goes on without dead keys."""

    def __init__(self, given: Any = None, **options: Any) -> None:
        self._held: dict[int, tuple[weakref.ref[Any], Any]] = {}
        self.update(given or {})

    def __setitem__(self, key: Any, value: Any) -> None:
        number, held = id(key), self._held
        self._held[number] = weakref.ref(key, lambda _: held.pop(number, None)), value

    def __getitem__(self, key: Any) -> Any:
        if id(key) not in self._held:
            raise KeyError(key)
        return self._held[id(key)][1]

    def __delitem__(self, key: Any) -> None:
        if self._held.pop(id(key), None) is None:
            raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        keys = [reference() for reference, _ in list(self._held.values())]
        return iter([key for key in keys if key is not None])

    def __len__(self) -> int:
        return len(self._held)


# --- The shapes of results, dispatch by a flag, attention -----------------------------------------


def __getattr__(name: str) -> Any:
    if name in ("cummax", "cummin", "max", "min", "sort", "topk"):
        x = flow.ones(1)
        result = x.topk(1) if name == "topk" else getattr(x, name)(dim=0)
        return type(result)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


class OptState(enum.Enum):
    """The steps of a gradient scaler with an optimizer."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _get_activation_fn(activation: str) -> Callable[..., Any]:
    """Return relu or gelu by its name."""
    return getattr(flow.nn.functional, activation)  # type: ignore[no-any-return]


class SDPBackend(enum.IntEnum):
    """The ways of PyTorch to compute attention; here there is one."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


def _addindent(s_: str, numSpaces: int) -> str:
    """Indent all lines but the first."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Return device, dtype, non_blocking and memory format of the arguments of `Module.to`."""
    values: dict[str, Any] = {
        "device": None,
        "dtype": None,
        "non_blocking": False,
        "memory_format": None,
    }
    values.update({k: v for k, v in kwargs.items() if k not in ("tensor", "copy")})
    rest = [kwargs["tensor"], *args] if "tensor" in kwargs else list(args)
    if rest and isinstance(rest[0], Tensor):
        values["device"], values["dtype"] = rest[0].device, rest.pop(0).dtype
    elif rest and isinstance(rest[0], (str, int, Device)):
        values["device"] = rest.pop(0)
    if rest and not isinstance(rest[0], bool):
        values["dtype"] = rest.pop(0)
    if rest:
        values["non_blocking"] = rest[0]
    if values["device"] is not None:
        values["device"] = as_device(values["device"])
    return values["device"], values["dtype"], bool(values["non_blocking"]), values["memory_format"]
