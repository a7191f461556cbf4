"""What stands between the brackets of x[...]: split into a basic index and index tensors.

PyTorch's order is kept: ints, slices and None are applied first, as a view, and index tensors
then choose from that view. So an int never counts as an index array, as it does in NumPy.
"""

from __future__ import annotations

import contextlib
import operator
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite import errors
from oneflow_lite.device import CPU, to_device
from oneflow_lite.tensor import Tensor, make_constant

ALL = slice(None)


class ParsedIndex(NamedTuple):
    """`x[basic]` is a view; `tensors` choose from it, each beginning at the dimension in `dims`."""

    basic: tuple[Any, ...]
    tensors: tuple[Tensor, ...]
    dims: tuple[int, ...]

    @property
    def chooses_all(self) -> bool:
        """Whether `x[basic]` is x itself."""
        return all(item is ... or (type(item) is slice and item == ALL) for item in self.basic)


def is_plain_slice(item: slice) -> bool:
    """Return whether a slice is made of ints and None only and has a step."""
    start, stop, step = item.start, item.stop, item.step
    return (
        (start is None or type(start) is int)
        and (stop is None or type(stop) is int)
        and (step is None or (type(step) is int and step != 0))
    )


def parse_index(op: str, input: Tensor, index: Any) -> ParsedIndex:
    """Check an index against the shape of `input` and split it.

    Raises `IndexRangeError` for an int outside its dimension, a mask of another shape, tensors that
    do not broadcast, or what is no index, and `DimError` for more indices than dimensions.
    """
    shape = input._data.shape
    items = [_item(op, input, item) for item in (index if _is_several(index) else (index,))]
    items = _expanded(op, _without_scalar_tensors(items), len(shape))
    basic: list[Any] = []
    tensors: list[Tensor] = []
    dims: list[int] = []
    dim = place = 0  # in `input`, and in the view that the basic index makes
    for item in items:
        consumed = _consumed(item)
        if isinstance(item, Tensor):
            want = shape[dim : dim + consumed]
            if item._data.dtype.kind == "b" and item.shape != want:
                mend = "make the mask's sizes those of the dimensions it stands for"
                raise _error(op, f"a mask of shape {want}", f"a mask of shape {item.shape}", mend)
            tensors.append(item)
            dims.append(place)
            basic += [ALL] * consumed
            place += consumed
        else:
            if type(item) is int and not -shape[dim] <= item < shape[dim]:
                expected = f"{-shape[dim]} to {shape[dim] - 1}" if shape[dim] else "no index"
                where = f"for dimension {dim} of shape {shape}"
                raise _error(op, f"{expected} {where}", item, "stay inside the tensor")
            basic.append(item)
            place += type(item) is not int
        dim += consumed
    shapes = [t.shape for t in tensors if t._data.dtype.kind != "b"]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        expected, got = (
            "index tensors whose shapes broadcast together",
            " and ".join(map(str, shapes)),
        )
        raise _error(op, expected, got, "make their sizes equal or 1") from None
    return ParsedIndex((*basic, ...), tuple(tensors), tuple(dims))


def _is_several(index: Any) -> bool:
    """Return whether an index stands for several: a tuple, or as in PyTorch a list like one.

    A list is one index where it holds numbers alone, or more than 31 items.
    """
    if isinstance(index, list) and len(index) < 32:
        return any(item is None or item is ... or isinstance(item, _NO_NUMBERS) for item in index)
    return isinstance(index, tuple)


_NO_NUMBERS = (Tensor, slice, list, tuple, range, np.ndarray)


def _consumed(item: Any) -> int:
    """Return how many dimensions of the input an item stands for."""
    if item is None or item is ...:
        return 0
    if isinstance(item, Tensor) and item._data.dtype.kind == "b":
        return item._data.ndim
    return 1


def _expanded(op: str, items: list[Any], ndim: int) -> list[Any]:
    """Replace Ellipsis by the slices it stands for."""
    missing = ndim - sum([_consumed(item) for item in items])
    if missing < 0:
        expected = f"at most {ndim} indices for a tensor of {ndim} dimensions"
        mend = "drop the surplus ones" if ndim else "use item() to get the number"
        raise _error(op, expected, ndim - missing, mend, errors.DimError)
    places = [i for i, item in enumerate(items) if item is ...]
    if len(places) > 1:
        raise _error(op, "one Ellipsis", len(places), "write the other one as slices")
    for i in places:
        items[i : i + 1] = [ALL] * missing
    return items


def _item(op: str, input: Tensor, item: Any) -> Any:
    """Return one item of an index as an int, slice, None, Ellipsis or Tensor."""
    if item is None or item is ... or type(item) is int:
        return item
    if isinstance(item, slice):
        return item if is_plain_slice(item) else _slice_of_ints(op, item)
    if isinstance(item, Tensor):
        return _number(op, item)
    if isinstance(item, (bool, np.bool_)):
        return constant_beside(input, np.array(bool(item)))
    if isinstance(item, (list, tuple, range, np.ndarray)):
        try:
            array = np.array(item)
        except ValueError:
            expected, mend = "nested lists of equal lengths", "make the rows equally long"
            raise _error(op, expected, "a ragged list", mend) from None
        if array.dtype.kind == "O":
            mend = "write several indices as a tuple, x[a, b]"
            raise _error(op, "a list of ints or bools", "a list of other objects", mend)
        if not array.size and not isinstance(item, np.ndarray):
            array = array.astype(np.int64)
        return _number(op, constant_beside(input, array))
    if hasattr(item, "__index__"):
        return operator.index(item)
    kind = errors.ArgumentTypeError if isinstance(item, str) else errors.IndexRangeError
    expected = "ints, slices, None, Ellipsis, and tensors, arrays or lists of ints or bools"
    raise _error(op, expected, type(item).__name__, "convert it with int()", kind)


def _number(op: str, index: Tensor) -> Any:
    """Return the value of a 0-d integer tensor where it is at hand, so that indexing is a view.

    On CUDA and of a variable of a Program it is not: there the tensor chooses, and copies.
    """
    data, kind = index._data, index._data.dtype.kind
    if kind not in "biu" or data.dtype == np.uint8:
        mend = "convert it with .bool() if it is a mask, else with .long()"
        raise _error(op, "an index of integer or bool dtype", data.dtype, mend)
    if type(data) is np.ndarray and not data.ndim and kind != "b":
        with contextlib.suppress(errors.CaptureError):
            return int(index)
    return index


def constant_beside(input: Tensor, array: np.ndarray[Any, Any]) -> Tensor:
    """Return an array as a tensor on the device of another one."""
    device = input.device
    return make_constant(array if device is CPU else to_device(array, device))


def _slice_of_ints(op: str, item: slice) -> slice:
    parts = [item.start, item.stop, item.step]
    if not all(part is None or hasattr(part, "__index__") for part in parts):
        mend = "convert the bounds with int()"
        raise _error(op, "slices of ints or None", item, mend, errors.ArgumentTypeError)
    parts = [None if part is None else operator.index(part) for part in parts]
    if parts[2] == 0:
        raise _error(op, "a slice step other than 0", item, "use 1", errors.ArgumentError)
    return slice(*parts)


def _without_scalar_tensors(items: list[Any]) -> list[Any]:
    """Turn 0-d integer tensors into ints where they stand beside larger index tensors.

    There PyTorch, too, reads their value. On their own they stay tensors and nothing is read.
    """
    tensors = [item for item in items if isinstance(item, Tensor)]
    scalars = [t for t in tensors if not t._data.ndim and t._data.dtype.kind != "b"]
    if not scalars or len(scalars) == len(tensors):
        return items
    return [int(item) if any(item is s for s in scalars) else item for item in items]


def _error(op: str, expected: str, got: Any, mend: str, kind: Any = None) -> errors.FlowError:
    return errors.bad_argument(kind or errors.IndexRangeError, op, "index", expected, got, mend)
