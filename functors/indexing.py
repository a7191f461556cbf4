"""x[index], x[index] = value, narrow and select: functions that users call.

PyTorch's order is kept: ints, slices and None are applied first, as a view, and index tensors
then choose from that view. So an int never counts as an index array, as it does in NumPy.
"""

from __future__ import annotations

import contextlib
import operator
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite import errors
from oneflow_lite.arrays.device import CPU, to_device
from oneflow_lite.arrays.size import fits
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import (
    ArgumentTypeError,
    DimError,
    FlowError,
    IndexRangeError,
    ShapeError,
    arg_error,
    too_large_error,
)
from oneflow_lite.functors.declaring.checks import check_dim, check_tensor, dimension_error
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import AnyTensor, Dim, Flag, Int
from oneflow_lite.functors.declaring.fill_value import fill_value
from oneflow_lite.functors.masking import check_same_dtype
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import register_functor
from oneflow_lite.tensors.spellings import byte_mask
from oneflow_lite.tensors.tensor import Tensor, first_of, make_constant, to_array

_GETITEM, _GETITEM_ADVANCED, _SETITEM = map(op_expr, ("getitem", "getitem_advanced", "setitem_"))
_NARROW, _SELECT, _CAST = map(op_expr, ("narrow", "select", "cast"))
_PAIRS = "x(3, 4), (fixed(np.array([0, 2])), fixed(np.array([3, 1])))"
_PUT = f"""{_PAIRS}, x(2); {_PAIRS}, x(), True; x(3, 4), (i(5, n=3),), x(5, 4), True
    x(3, 4), (i(2, n=3),), x()"""


@register_functor("getitem")
def getitem(input: Tensor, index: Any) -> Tensor:
    """Return `input[index]`.

    Ints, slices, None and Ellipsis give a view; tensors, arrays and lists choose elements and copy
    them. A list with anything but numbers in it stands for a tuple.

    Two things differ from PyTorch: slices may have a negative step, and a 0-d integer tensor on
    CUDA copies, so that its value is read only where the index is used.

    Raises `IndexRangeError` for an index outside the tensor or of another type, a mask of another
    shape, and index tensors that do not broadcast, and `DimError` for too many. On CUDA the values
    of index tensors are not looked at, and an index outside wraps around.

    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[1., 2.], [3., 4.], [5., 6.]])
    >>> x[0], x[::2, 1], x[[2, 0], 0], x[x > 4]
    (tensor([1., 2.]), tensor([2., 6.]), tensor([5., 1.]), tensor([5., 6.]))
    """
    basic = _basic(index)
    if basic is not None:
        try:
            return dispatch1(_GETITEM, input, {"index": basic})
        except IndexError:  # rare, so that NumPy may find it; the parser says what is wrong
            _parse("getitem", input, index)
            raise
    parsed = _parse("getitem", check_tensor("getitem", "input", input), index)
    if not parsed.tensors:
        return dispatch1(_GETITEM, input, {"index": parsed.basic})
    view = input if parsed.chooses_all else dispatch1(_GETITEM, input, {"index": parsed.basic})
    return dispatch(_GETITEM_ADVANCED, (view, *parsed.tensors), {"dims": parsed.dims})


def _basic(index: Any) -> tuple[Any, ...] | None:
    """Return an index as NumPy takes it, or None when it has more than ints, slices and None."""
    items = index if type(index) is tuple else (index,)
    ellipsis_seen = False
    for item in items:
        kind = type(item)
        if kind is slice:
            if not _is_plain(item):
                return None
        elif item is ...:
            ellipsis_seen = True
        elif kind is not int and item is not None:
            return None
    # Without an Ellipsis an index of ints alone would give a scalar, and no view.
    return items if ellipsis_seen else (*items, ...)


@register_functor("setitem")
def setitem(input: Tensor, index: Any, value: Any) -> Tensor:
    """Write `value` into `input[index]` in place and return `input`.

    A value, a Tensor, array, list or number, is broadcast to the indexed elements and cast to the
    dtype of `input`. Of several values for an element the last stays, and it alone gets a gradient.
    (PyTorch gives overwritten values a gradient, too. On CUDA any value may stay.)

    Raises the errors of `getitem`, and `ShapeError` or `DTypeError` when `value` does not fit.

    >>> import oneflow_lite as flow
    >>> x = flow.zeros(3)
    >>> x[0], x[1:] = 5, flow.tensor([1., 2.])
    >>> x
    tensor([5., 1., 2.])
    """
    data = check_tensor("setitem", "input", input)._data
    parsed = _parse("setitem", input, index)
    tensor = fill = None
    if isinstance(value, (Tensor, np.ndarray, list, tuple)):
        if not isinstance(value, Tensor):
            value = _beside(input, to_array("setitem", value))
        tensor = _matching(value, data.dtype)
        shown = data.view(np.ndarray) if hasattr(data, "levels") else data  # in a transform
        if input.is_meta and not parsed.tensors:
            tensor = _from_host(tensor, input)
        if not parsed.tensors and not fits(want := shown[parsed.basic].shape, tensor.shape):
            expected = f"a shape that broadcasts to the indexed elements, {want}"
            hint = "give one value, or one for each element"
            raise arg_error("setitem", "value", expected, tensor, hint)
    elif value is None or isinstance(value, str):
        expected, got = "a Tensor, an array or a number", type(value).__name__
        hint = "wrap the value with flow.tensor(...)"
        raise arg_error("setitem", "value", expected, got, hint, ArgumentTypeError)
    else:
        fill = fill_value("setitem", "value", value, data.dtype)
    attrs = {"index": parsed.basic, "dims": parsed.dims, "fill": fill}
    return dispatch(_SETITEM, (input, tensor, *parsed.tensors), attrs)


def _matching(value: Tensor, dtype: Any) -> Tensor:
    """Return a value in this dtype and without leading dimensions of size 1."""
    if value._data.dtype is not dtype:
        value = dispatch1(_CAST, value, {"dtype": dtype})
    shape = value._data.shape
    leading = 0
    while leading < len(shape) and shape[leading] == 1:
        leading += 1
    return F.reshape(value, shape[leading:]) if leading else value


@functor("flow Tensor", samples="x(3, 4), 0, 1, 2; x(3, 4), -1, -3, 2; x(3, 4), 1, 4, 0")
def narrow(input: AnyTensor, dim: Dim, start: Int, length: Int) -> Tensor:
    """Return a view of `length` entries of one dimension, beginning at `start`.

    IndexRangeError: when `start` lies outside -size … size.
    ShapeError: when fewer than `length` entries follow it, or `input` is 0-d.

    >>> flow.narrow(flow.tensor([1, 2, 3, 4]), 0, 1, 2)
    tensor([2, 3])
    """
    shape = input._data.shape
    if not shape:
        raise dimension_error("narrow", "input", ShapeError)
    size = shape[dim]
    if not -size <= start <= size:
        expected = f"{-size} to {size} for dimension {dim} of shape {shape}"
        raise arg_error(
            "narrow", "start", expected, start, "stay inside the tensor", IndexRangeError
        )
    begin = start + size if start < 0 else start
    if not 0 <= length <= size - begin:
        expected = f"0 to {size - begin} from start {start} of dimension {dim} of shape {shape}"
        raise arg_error("narrow", "length", expected, length, "shorten it")
    return dispatch1(_NARROW, input, {"dim": dim, "start": begin, "length": length})


@functor("flow Tensor", samples="x(3, 4), 0, 1; x(3, 4), -1, -4; x(3), 0, 2")
def select(input: AnyTensor, dim: int, index: Int) -> Tensor:
    """Return a view of one entry of a dimension; the dimension is gone.

    IndexRangeError: when `index` lies outside the dimension.
    DimError: when `input` is 0-d, or has no such dimension.
    """
    shape = input._data.shape
    if not shape:
        raise dimension_error("select", "input", DimError, "use the tensor itself")
    dim = check_dim("select", dim, len(shape))
    size = shape[dim]
    if not -size <= index < size:
        expected = f"{-size} to {size - 1} for dimension {dim} of shape {shape}"
        raise arg_error(
            "select", "index", expected, index, "stay inside the tensor", IndexRangeError
        )
    return dispatch1(_SELECT, input, {"dim": dim, "index": index + size if index < 0 else index})


@functor("flow Tensor", twin="flow Tensor", samples=_PUT)
def index_put(
    input: AnyTensor, indices: Any, values: AnyTensor, accumulate: Flag = False
) -> Tensor:
    """Return `input` with values written, or added, where index tensors point: y[indices] = values.

    Of several values for an element the last stays, and it alone gets the gradient; with
    `accumulate` they add up.

    indices: a tuple of integer or bool Tensors; None stands for all of a dimension.
    values: of the dtype of `input`; broadcast to the indexed elements.
    ShapeError, DTypeError, IndexRangeError, DimError: when indices or values do not fit.

    >>> rows = flow.tensor([0, 0, 1])
    >>> flow.index_put(flow.zeros(2), (rows,), flow.tensor([1.0, 2.0, 3.0]), accumulate=True)
    tensor([3., 3.])
    """
    if not isinstance(indices, (tuple, list)):
        expected, got = "a tuple of Tensors and None", type(indices).__name__
        raise arg_error(
            "index_put", "indices", expected, got, "write (indices,)", ArgumentTypeError
        )
    check_same_dtype("index_put", input, "values", values)
    index = tuple(slice(None) if each is None else each for each in indices)
    if not accumulate:
        return setitem(input.clone(), index, values)
    parsed = _parse("index_put", input, index)
    view = input if parsed.chooses_all else dispatch1(_GETITEM, input, {"index": parsed.basic})
    if parsed.tensors:
        attrs = {"dims": parsed.dims}
        chosen = dispatch(_GETITEM_ADVANCED, (view, *parsed.tensors), attrs).shape
        values = values.expand(chosen)
        values = F.getitem_advanced_grad(values, *parsed.tensors, **attrs, shape=view.shape)
    total = view + values
    return total if parsed.chooses_all else setitem(input.clone(), parsed.basic, total)


# --- The index between the brackets ---------------------------------------------------------------


_ALL = slice(None)
_NO_NUMBERS = (Tensor, slice, list, tuple, range, np.ndarray)


class _Parsed(NamedTuple):
    """`x[basic]` is a view; `tensors` choose from it, each beginning at the dimension in `dims`."""

    basic: tuple[Any, ...]
    tensors: tuple[Tensor, ...]
    dims: tuple[int, ...]

    @property
    def chooses_all(self) -> bool:
        """Whether `x[basic]` is x itself."""
        return all(item is ... or (type(item) is slice and item == _ALL) for item in self.basic)


def _is_plain(item: slice) -> bool:
    """Return whether a slice is made of ints and None only and has a step."""
    start, stop, step = item.start, item.stop, item.step
    return (
        (start is None or type(start) is int)
        and (stop is None or type(stop) is int)
        and (step is None or (type(step) is int and step != 0))
    )


def _parse(op: str, input: Tensor, index: Any) -> _Parsed:
    """Check an index against the shape of `input`, and split it; raise the errors of `getitem`."""
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
                hint = "make the mask's sizes those of the dimensions it stands for"
                raise _index_error(
                    op, f"a mask of shape {want}", f"a mask of shape {item.shape}", hint
                )
            tensors.append(_from_host(item, input))
            dims.append(place)
            basic += [_ALL] * consumed
            place += consumed
        else:
            if type(item) is int and not -shape[dim] <= item < shape[dim]:
                expected = f"{-shape[dim]} to {shape[dim] - 1}" if shape[dim] else "no index"
                where = f"for dimension {dim} of shape {shape}"
                raise _index_error(op, f"{expected} {where}", item, "stay inside the tensor")
            basic.append(item)
            place += type(item) is not int
        dim += consumed
    shapes = [t.shape for t in tensors if t._data.dtype.kind != "b"]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        expected = "index tensors whose shapes broadcast together"
        got = " and ".join(map(str, shapes))
        raise _index_error(op, expected, got, "make their sizes equal or 1") from None
    return _Parsed((*basic, ...), tuple(tensors), tuple(dims))


def _from_host(part: Tensor, input: Tensor) -> Tensor:
    """Return a tensor where the input is; one of the CPU may index tensors of all devices."""
    if type(part._data) is np.ndarray and not isinstance(input._data, np.ndarray):
        moved: Tensor = F.to_device(part, input.device)
        return moved
    return part


def _is_several(index: Any) -> bool:
    """Return whether an index stands for several: a tuple, or a short list not only of numbers."""
    if isinstance(index, list) and len(index) < 32:
        return any(item is None or item is ... or isinstance(item, _NO_NUMBERS) for item in index)
    return isinstance(index, tuple)


def _consumed(item: Any) -> int:
    """Return how many dimensions of the input an item stands for."""
    if item is None or item is ...:
        return 0
    if isinstance(item, Tensor) and item._data.dtype.kind == "b":
        return item._data.ndim
    return 1


def _expanded(op: str, items: list[Any], ndim: int) -> list[Any]:
    missing = ndim - sum([_consumed(item) for item in items])
    if missing < 0:
        expected = f"at most {ndim} indices for a tensor of {ndim} dimensions"
        hint = "drop the surplus ones" if ndim else "use item() to get the number"
        raise _index_error(op, expected, ndim - missing, hint, DimError)
    places = [i for i, item in enumerate(items) if item is ...]
    if len(places) > 1:
        raise _index_error(op, "one Ellipsis", len(places), "write the other one as slices")
    for i in places:
        items[i : i + 1] = [_ALL] * missing
    return items


def _item(op: str, input: Tensor, item: Any) -> Any:
    """Return one item of an index as an int, slice, None, Ellipsis or Tensor."""
    if item is None or item is ... or type(item) is int:
        return item
    if isinstance(item, slice):
        return item if _is_plain(item) else _slice_of_ints(op, item)
    if isinstance(item, Tensor):
        return _number(op, item)
    if isinstance(item, (bool, np.bool_)):
        return _beside(input, np.array(bool(item)))
    if isinstance(item, (list, tuple, range, np.ndarray)):
        first_of(op, "index", item)
        try:
            array = np.array(item)
        except MemoryError as error:
            raise too_large_error(op, "its index", error) from None
        except ValueError:
            expected, hint = "nested lists of equal lengths", "make the rows equally long"
            raise _index_error(op, expected, "a ragged list", hint) from None
        if array.dtype.kind == "O":
            hint = "write several indices as a tuple, x[a, b]"
            raise _index_error(op, "a list of ints or bools", "a list of other objects", hint)
        if not array.size and not isinstance(item, np.ndarray):
            array = array.astype(np.int64)
        return _number(op, _beside(input, array))
    if hasattr(type(item), "__index__"):
        return operator.index(item)
    kind = ArgumentTypeError if isinstance(item, str) else IndexRangeError
    expected = "ints, slices, None, Ellipsis, and tensors, arrays or lists of ints or bools"
    raise _index_error(op, expected, type(item).__name__, "convert it with int()", kind)


def _number(op: str, index: Tensor) -> Any:
    """Return the value of a 0-d integer tensor where it is at hand, so that indexing is a view.

    It is not at hand on CUDA, nor of a variable of a Program: then the tensor chooses, and copies.
    """
    data, kind = index._data, index._data.dtype.kind
    if data.dtype == np.uint8:
        return byte_mask("indexing", index)
    if kind not in "biu":
        hint = "convert it with .bool() if it is a mask, else with .long()"
        raise _index_error(op, "an index of integer or bool dtype", data.dtype, hint)
    if type(data) is np.ndarray and not data.ndim and kind != "b":
        with contextlib.suppress(errors.CaptureError):
            return int(index)
    return index


def _beside(input: Tensor, array: np.ndarray[Any, Any]) -> Tensor:
    device = input.device
    return make_constant(array if device is CPU else to_device(array, device))


def _slice_of_ints(op: str, item: slice) -> slice:
    parts = [item.start, item.stop, item.step]
    if not all(part is None or hasattr(part, "__index__") for part in parts):
        hint = "convert the bounds with int()"
        raise _index_error(op, "slices of ints or None", item, hint, ArgumentTypeError)
    parts = [None if part is None else operator.index(part) for part in parts]
    if parts[2] == 0:
        raise _index_error(op, "a slice step other than 0", item, "use 1", errors.ArgumentError)
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


def _index_error(
    op: str, expected: str, got: Any, hint: str, kind: Any = IndexRangeError
) -> FlowError:
    return arg_error(op, "index", expected, got, hint, kind)
