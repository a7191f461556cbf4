"""Functions that take host data, give it back, or have another signature than NumPy's."""

from typing import Any

import numpy as np

from tests.strict_cupy import devices
from tests.strict_cupy.array import Capsule, call, from_host, ndarray


def array(
    obj: Any,
    dtype: Any = None,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    blocking: bool = False,
) -> ndarray:
    """An array on the current device: from an array of any device, or copied from the host."""
    return _to_current_device("array", obj, dtype, copy, order, ndmin)


def as_strided(x: ndarray, shape: Any = None, strides: Any = None) -> ndarray:
    """A view that does not say whose memory it shares."""
    view: ndarray = call("as_strided", np.lib.stride_tricks.as_strided, (x, shape, strides), {})
    view.base = None
    return view


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    copy: bool | None = None,
    blocking: bool = False,
) -> ndarray:
    return _to_current_device("asarray", a, dtype, copy, order or "K")


def asanyarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    copy: bool | None = None,
    blocking: bool = False,
) -> ndarray:
    return asarray(a, dtype, order, copy=copy)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    return _to_current_device("ascontiguousarray", a, dtype, None, "C", 1)


def asfortranarray(a: Any, dtype: Any = None) -> ndarray:
    return _to_current_device("asfortranarray", a, dtype, None, "F", 1)


def _to_current_device(
    via: str, obj: Any, dtype: Any, copy: bool | None, order: Any, ndmin: int = 0
) -> ndarray:
    if isinstance(obj, ndarray):
        if obj.device.id != devices.current_device():
            obj = obj.copy()
        options = {"dtype": dtype, "copy": copy, "order": order, "ndmin": ndmin}
        return call("array", np.array, (obj,), options)
    if isinstance(obj, list | tuple) and any(isinstance(item, ndarray) for item in obj):
        return call("array", np.array, (obj,), {"dtype": dtype, "order": order, "ndmin": ndmin})
    return from_host(obj, via, dtype=dtype, order=order, ndmin=ndmin)


def copy(a: Any, order: Any = "K") -> ndarray:
    return array(a, order=order)


def asnumpy(
    a: Any, stream: Any = None, order: Any = "C", out: Any = None, *, blocking: bool = True
) -> Any:
    """A host array: copied from an array of the stand-in, taken as it is otherwise."""
    if isinstance(a, ndarray):
        return a.get(stream=stream, order=order, out=out, blocking=blocking)
    return np.asarray(a, order=order)


def from_dlpack(obj: Any, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """A view of another owner's array on a device."""
    capsule = obj.__dlpack__()
    if not isinstance(capsule, Capsule):
        raise BufferError("from_dlpack() takes arrays on a CUDA device only")
    view = capsule.array.view()
    return view.copy() if copy else view


def clip(a: Any, a_min: Any, a_max: Any, out: Any = None) -> ndarray:
    return call("clip", np.clip, (a, a_min, a_max, out))


def take(a: ndarray, indices: Any, axis: Any = None, out: Any = None) -> ndarray:
    return a.take(indices, axis, out)


def take_along_axis(a: ndarray, indices: ndarray, axis: int | None = -1) -> ndarray:
    """Unlike NumPy's, an index past the end wraps around."""
    length = a.size if axis is None else a.shape[axis]
    return call("take_along_axis", np.take_along_axis, (a, indices % max(length, 1), axis))


FUNCTIONS = (
    array, asanyarray, asarray, ascontiguousarray, asfortranarray, asnumpy, clip, copy, from_dlpack,
    take, take_along_axis,
)  # fmt: skip
