"""Attributes of ops as plain data that `flow.save` writes, and back.

None, booleans, numbers, strings, lists and tuples are written as they are. Anything else is a dict
with one key, which names its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import Device
from oneflow_lite.arrays.dtype import SUPPORTED
from oneflow_lite.arrays.dtype_object import DTYPE_CLASSES
from oneflow_lite.arrays.size import Size
from oneflow_lite.distributed.process_group import GroupMember, ProcessGroup, group_of
from oneflow_lite.errors import SerializationError
from oneflow_lite.functors.random import default_generator
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.tensors.tensor import Tensor, make_tensor

_PLAIN = (bool, int, float, str, type(None))


def write_attribute(value: Any) -> Any:
    """Return plain data for a value.

    Raises
    ------
    SerializationError
        When values of its type cannot be written.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (list, tuple, Size):
        return (list if kind is list else tuple)(write_attribute(item) for item in value)
    if isinstance(value, dict):
        return {"dict": [[key, write_attribute(item)] for key, item in value.items()]}
    if kind is slice:
        return {"slice": [write_attribute(x) for x in (value.start, value.stop, value.step)]}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    if value is ...:
        return {"ellipsis": True}
    if isinstance(value, DTYPE_CLASSES):
        return {"dtype": value.name}
    if isinstance(value, Device):
        return {"device": str(value)}
    if isinstance(value, OpExpr):
        return {"op": value.op_type_name}
    if value is default_generator:
        return {"generator": "default"}
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype in SUPPORTED:
        name = "scalar" if isinstance(value, np.generic) else "array"
        return {name: make_tensor(np.asarray(value))}
    if isinstance(value, ProcessGroup):
        return {"group": None if value is GroupMember.WORLD else list(value.ranks)}
    if hasattr(value, "parent_idx"):
        return {"block": value.idx}
    raise SerializationError(f"a value of type {kind.__name__} cannot be written")


def read_attribute(data: Any, blocks: Sequence[Any]) -> Any:
    """Return the value for plain data; `blocks` are those of the Program.

    Raises
    ------
    SerializationError
        When the data is of no known kind.
    """
    if type(data) in _PLAIN:
        return data
    if type(data) in (list, tuple):
        return type(data)(read_attribute(item, blocks) for item in data)
    if not isinstance(data, dict) or len(data) != 1:
        raise SerializationError(f"an attribute is given as {type(data).__name__}")
    ((kind, content),) = data.items()
    if kind == "block":
        if type(content) is not int or not 0 <= content < len(blocks):
            raise SerializationError(f"there is no block {content!r}")
        return blocks[content]
    reader = READERS.get(kind)
    if reader is None:
        raise SerializationError(f"an attribute is of the unknown kind {kind!r}")
    try:
        if kind in ("dict", "slice"):
            content = [read_attribute(item, blocks) for item in content]
        value = reader(content)
        # What is written otherwise was no such value: a slice of two parts, a dict of equal keys.
        if kind not in ("array", "scalar") and repr(write_attribute(value)) != repr(data):
            raise SerializationError(f"{str(content)[:99]} is not as it is written")
    except Exception as error:
        raise SerializationError(f"an attribute is no {kind}: {error}") from None
    return value


def read_dtype(name: Any) -> np.dtype[Any]:
    """Return the dtype of a name."""
    for dtype in SUPPORTED:
        if type(name) is str and dtype.name == name:
            return dtype
    raise SerializationError(f"there is no dtype {name!r}")


def read_device(name: Any) -> Device:
    """Return the device of a name, whether this machine has it or not."""
    if type(name) is not str:
        raise SerializationError(f"there is no device {name!r}")
    return Device(name)


def _read_op(name: Any) -> OpExpr:
    if name not in KERNELS:
        raise SerializationError(f"there is no op {name!r}")
    return op_expr(name)


def _read_generator(name: Any) -> Any:
    if name != "default":
        raise SerializationError(f"there is no generator {name!r}")
    return default_generator


def _read_array(tensor: Any) -> np.ndarray[Any, Any]:
    if not isinstance(tensor, Tensor):
        raise SerializationError("its content is missing")
    return tensor.numpy()


READERS: dict[str, Callable[[Any], Any]] = {
    "array": _read_array,
    "complex": lambda parts: complex(*parts),
    "device": read_device,
    "dict": dict,
    "dtype": read_dtype,
    "ellipsis": lambda content: ...,
    "generator": _read_generator,
    "group": group_of,
    "op": _read_op,
    "scalar": lambda tensor: _read_array(tensor)[()],
    "slice": lambda parts: slice(*parts),
}
