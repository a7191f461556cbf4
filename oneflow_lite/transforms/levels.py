"""Levels: arrays of logical shape that stand for a batch or a Taylor series, and who handles them.

A transform opens a `Level` and gives the function tensors whose array is a `LevelArray`. Such an
array has the shape that the function is to see. Its parts are the values that it stands for,
tensors without history: a batch in one array, or the coefficients of a series.

`TransformInterpreter` stands below an AutogradInterpreter. It takes the highest level among the
arrays of an op, lets that level run the op on the parts, and so comes to the level below, until
plain arrays are left for the interpreter below it. Functors, the graph and the gradient rules see
logical shapes alone, so one graph serves all nestings.

A gradient that comes from outside of a level, and reaches a value without that level, is `settled`:
a batch is summed, and of a series the coefficient is taken that belongs to the value.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import attrs
import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec, may_share_memory
from oneflow_lite.arrays.bfloat16_arrays import BFloat16Array
from oneflow_lite.arrays.device import CPU, Device
from oneflow_lite.arrays.dtype_object import CHAR
from oneflow_lite.errors import TransformError
from oneflow_lite.interpreter.stack import (
    AutogradInterpreter,
    Interpreter,
    count_after,
    current_interpreter,
)
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.tensors.mode import local as thread
from oneflow_lite.tensors.storage import NO_GRAD, SPLIT
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.tensors.views import link

ndarray = np.ndarray
_numbers = itertools.count(1)


class _Active(threading.local):
    """The levels that are open on a thread, the outermost first.

    Attributes
    ----------
    limit : float
        Levels from this number on do not draw: the lowest of them is drawing, through those below.
    """

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.limit: float = math.inf


active = _Active()


class Level(ABC):
    """One open transform; a context manager.

    Attributes
    ----------
    number : int
        A level that was opened later has a higher number, and is taken off first.
    ended : bool
        Whether its function has returned. Backward passes may still go through its arrays.
    name : str
        The function that users called, for messages.
    told : str
        What an array of this level is, in words.
    """

    told = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = next(_numbers)
        self.ended = False
        self.alone = frozenset([self])

    def __enter__(self) -> Self:
        install(current_interpreter())
        active.levels.append(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.ended = True
        active.levels.remove(self)

    def cover(self, x: Tensor) -> Tensor:
        """Return a tensor that carries this level, in memory of its own, where writes need that."""
        return x

    def crossing(self) -> Crossing:
        """Return what the node of an op that leaves this level keeps."""
        return Crossing(self)

    def draws(self, op: OpExpr) -> bool:
        """Return whether an op is this level's to run on plain tensors, too, as random ops are."""
        return False

    @abstractmethod
    def run(
        self,
        below: TransformInterpreter,
        op: OpExpr,
        inputs: tuple[Any, ...],
        attrs: dict[str, Any],
    ) -> Any:
        """Run an op, some of whose inputs carry this level as their highest."""

    @abstractmethod
    def array_of(self, parts: Sequence[Any]) -> LevelArray:
        """Return an array of this level for its parts."""

    @abstractmethod
    def settle(self, grad: Tensor) -> Tensor:
        """Return the gradient of a value without this level; recorded like any other op."""


class LevelArray(ndarray[Any, Any]):
    """The array of a tensor inside a transform.

    It shares the memory of a part, so that views are views and writes reach all who should see
    them. Nobody reads the values there.

    Attributes
    ----------
    level : Level
    parts : tuple of Tensor or None
        Without history.
    levels : frozenset of Level
        All levels of this array and of its parts.
    is_symbolic : bool
        Whether a part is a variable of a Program.
    device_of_parts : Device
    """

    __hash__ = object.__hash__  # type: ignore[assignment]
    level: Any = None  # none of an array that NumPy made of one
    parts: tuple[Any, ...] = ()
    levels: frozenset[Level] = frozenset()
    is_symbolic = False
    device_of_parts: Device = CPU
    of_bfloat16: type[LevelArray]

    def hold(self, level: Level, parts: tuple[Any, ...]) -> None:
        """Take the parts in."""
        self.level, self.parts, self.levels = level, parts, level.alone
        for part in parts:
            if part is not None and type(part._data) is not ndarray:
                data = part._data
                if isinstance(data, LevelArray):
                    self.levels = _joined(self.levels, data.levels)
                if getattr(data, "is_symbolic", False):
                    self.is_symbolic = True
                self.device_of_parts = part.device

    @property
    def memory_of_parts(self) -> Any:
        """The address of the memory that the parts own; None where they own none."""
        data = self
        while isinstance(data, LevelArray):
            if sum([part is not None for part in data.parts]) != 1:
                return None
            data = next(part for part in data.parts if part is not None)._data
        return id(data) if type(data) is ndarray and data.base is None else None

    @property
    def moves(self) -> bool:
        """Whether a tangent, or a higher coefficient of a series, is not zero."""
        return any([getattr(p._data, "moves", False) for p in self.parts if p is not None])

    @property
    def constant(self) -> LevelArray:
        """The array without tangents, as `detach` leaves it."""
        return self

    def covered(self, x: Tensor) -> Tensor:
        """Return a tensor of any shape that carries the levels of this array."""
        for level in sorted(self.levels - levels_of(x), key=lambda level: level.number):
            x = level.cover(x)
        return x

    def copy(self, order: Any = "C") -> Any:
        """Return a copy of the parts, made by an op."""
        return current_interpreter().enter1(op_expr("clone"), make_tensor(self))._data

    def get(self) -> Any:
        """Raise: a level has no array that NumPy could read."""
        raise self._no_value_error("numpy")

    def _no_value_error(self, what: str) -> TransformError:
        name = "vmap" if self.level is None else self.level.name
        return TransformError(
            f"{what}(): a tensor inside {name} has a value for each entry of the batch, and "
            "not one for Python to read; keep the computation inside tensors, as with where(), or "
            f"return the tensor from the function and read it outside of {name}"
        )

    @property
    def around(self) -> list[Level]:
        """The levels in which the array lies, the innermost first."""
        found: list[Level] = []
        array: Any = self
        while isinstance(array, LevelArray) and array.level is not None:
            found.append(array.level)
            array = array.parts[0]._data
        return found

    @property
    def told(self) -> str:
        """The levels in words, as "batch of 5, vmap", the innermost first."""
        return "; ".join([f"{level.told}, {level.name}" for level in self.around])

    def text(self, facts: Sequence[str] = ()) -> str:
        """Return the text of a tensor, with facts about its history."""
        about = [level.told for level in self.around]
        about += [f"shape={tuple(self.shape)}", f"dtype={self.dtype}", *facts]
        return f"tensor({', '.join(about)})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"

    __str__ = __repr__

    def __getitem__(self, index: Any) -> Any:
        """Return an array without values, of the shape of a part."""
        part = np.broadcast_to(np.zeros((), np.int8), self.shape)[index]
        if not isinstance(part, np.ndarray):
            raise self._no_value_error("getitem")
        return part

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        raise self._no_value_error(f"numpy.{ufunc.__name__}")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _READS_NO_VALUE:
            return func(*[plain(x) for x in args], **kwargs)
        raise self._no_value_error(f"numpy.{func.__name__}")


@functools.lru_cache(256)
def _joined(a: frozenset[Level], b: frozenset[Level]) -> frozenset[Level]:
    """Return the union, the same object for the same sets: they are compared by identity first."""
    return a | b


_READS_NO_VALUE = frozenset((np.may_share_memory, np.shares_memory, np.shape, np.ndim, np.size))


def _refusing(method: str) -> Callable[..., Any]:
    def refuse(self: LevelArray, *args: Any, **kwargs: Any) -> Any:
        raise self._no_value_error(method.strip("_"))

    refuse.__name__ = refuse.__qualname__ = method
    return refuse


# Methods that NumPy answers in C, without asking __array_ufunc__ or __array_function__.
for _name in """
    __array__ __bool__ __bytes__ __complex__ __contains__ __copy__ __deepcopy__ __dlpack__ __float__
    __index__ __int__ __iter__ __reduce__ __reduce_ex__ __setitem__ all any argmax argmin
    argpartition argsort astype byteswap choose clip compress cumprod cumsum diagonal dot dump dumps
    fill flatten item max mean min nonzero partition prod ptp put repeat round searchsorted sort std
    sum take tobytes tofile tolist trace var
""".split():
    setattr(LevelArray, _name, _refusing(_name))


def plain(data: Any) -> Any:
    """Return the memory of a level's array as an ordinary array; other arrays as they are."""
    return data.view(ndarray) if isinstance(data, LevelArray) else data


_view = ndarray.view
_entry = ndarray.__getitem__
_FIRST = (0, ...)


def first_entry(data: Any, kind: type[LevelArray]) -> Any:
    """Return the first entry of an array, as an array of a level."""
    if data.dtype.char == CHAR:
        kind = kind.of_bfloat16
    if not isinstance(data, ndarray):  # on a CUDA device: a stand-in of shape and layout
        strides = tuple(data.strides[1:])
        return _view(ArraySpec(tuple(data.shape[1:]), data.dtype, strides).phantom(), kind)
    if not data.shape[0]:
        return _view(np.empty(data.shape[1:], data.dtype), kind)
    if type(data) is not ndarray:
        data = _view(data, ndarray)
    return _view(_entry(data, _FIRST), kind)


def whole(data: Any, kind: type[LevelArray]) -> Any:
    """Return an array as an array of a level."""
    if data.dtype.char == CHAR:
        kind = kind.of_bfloat16
    if not isinstance(data, ndarray):
        data = ArraySpec(tuple(data.shape), data.dtype, tuple(data.strides)).phantom()
    return _view(data, kind)


def levels_of(tensor: Any) -> frozenset[Level]:
    """Return the levels of a tensor's array; none for a plain tensor, or for no tensor."""
    data = getattr(tensor, "_data", None)
    return data.levels if isinstance(data, LevelArray) else frozenset()


def top_level(inputs: Sequence[Any]) -> Level | None:
    """Return the highest level among tensors."""
    top: Level | None = None
    for x in inputs:
        if x is not None:
            data = x._data
            if isinstance(data, LevelArray) and (top is None or data.level.number > top.number):
                top = data.level
    return top


class Crossing:
    """Kept by the node of an op that leaves a level: while it lives, plain tensors lead to levels.

    A backward pass has to know, because gradients are then no plain arrays.
    """

    __slots__ = ("level",)

    def __init__(self, level: Any) -> None:
        self.level = level
        thread.foreign[id(self)] = None

    def __del__(self) -> None:
        thread.foreign.pop(id(self), None)


# --- Arrays and nodes that are made again ---------------------------------------------------------


@attrs.frozen
class Pattern:
    """An array of a level without memory: names, patterns or None in the place of its parts."""

    level: Level
    parts: tuple[Any, ...]

    def put_together(self, found: dict[Any, Any]) -> LevelArray:
        """Return an array with parts of the arrays that are found first under the names."""
        parts: list[Any] = []
        for part in self.parts:
            array = part.put_together(found) if isinstance(part, Pattern) else part
            array = found[array][0] if type(array) is str else array
            parts.append(None if array is None else make_tensor(array))
        return self.level.array_of(parts)


def taken_apart(array: Any, name_of: Callable[[Any], str | None]) -> Pattern | str | None:
    """Return the name of an array, or the pattern of an array of a level; None without a name."""
    if not isinstance(array, LevelArray):
        return name_of(array)
    if not array.parts or getattr(array, "error", None) is not None:
        return None
    parts = [None if part is None else taken_apart(part._data, name_of) for part in array.parts]
    if any([p is None and part is not None for p, part in zip(parts, array.parts, strict=True)]):
        return None
    return Pattern(array.level, tuple(parts))


def names_in(pattern: Pattern | str | None) -> list[str]:
    """Return the names in a pattern."""
    if isinstance(pattern, Pattern):
        return [name for part in pattern.parts for name in names_in(part)]
    return [] if pattern is None else [pattern]


def without_crossing(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a node that does not lead out of a level yet."""
    return {k: Crossing if type(v) is Crossing else v for k, v in attrs.items()}


def with_crossing(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a node that was made from such a node."""
    if not any([v is Crossing for v in attrs.values()]):
        return attrs
    crossing = attrs["level"].crossing()
    return {k: crossing if v is Crossing else v for k, v in attrs.items()}


def are_plain(grads: Sequence[Any]) -> bool:
    """Return whether these are all tensors whose arrays are plain, and not None."""
    return all([g is not None and not levels_of(g) and not g.is_global for g in grads])


# --- The interpreter ------------------------------------------------------------------------------


class TransformInterpreter(Interpreter):
    """Runs ops on arrays of levels; hands all other ops to the interpreter below."""

    def __init__(self, inner: Interpreter) -> None:
        self.inner: Interpreter = inner

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op."""
        top: Any = None
        for x in inputs:
            if x is not None:
                data = x._data
                if type(data) is not ndarray and isinstance(data, LevelArray):
                    level = data.level
                    if top is None or (level is not top and level.number > top.number):
                        top = level
        special = _special.get(op_expr)
        if special is None:
            special = _special[op_expr] = _kind_of(op_expr)
        if special == "border" and (top is None or top.number <= attrs["level"].number):
            return BETWEEN[op_expr.op_type_name](self, *inputs, **attrs)
        if special == "random" and active.levels:
            lowest = 0 if top is None else top.number
            for level in reversed(active.levels):
                if lowest < level.number < active.limit and level.draws(op_expr):
                    top = level
                    break
        if top is None:
            return self.inner.apply(op_expr, inputs, attrs)
        try:
            return top.run(self, op_expr, inputs, attrs)
        except BaseException as error:
            count_after(op_expr, inputs, error)
            raise

    def call(self, name: str, *inputs: Any, **attrs: Any) -> Any:
        """Run an op by name, on parts."""
        return self.apply(op_expr(name), inputs, attrs)


_special: dict[OpExpr, str] = {}
KERNELS.on_change.append(lambda name: _special.clear())


def _kind_of(op: OpExpr) -> str:
    """Return "border" of ops on the border of a level, "random" of ops that may draw, or ""."""
    if op.op_type_name in BETWEEN:
        return "border"
    return "random" if op.schema.random or op.op_type_name == "empty" else ""


BETWEEN: dict[str, Callable[..., Any]] = {}  # the ops that enter and leave levels


def between(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function that does an op on the border of a level."""

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        BETWEEN[name] = function
        return function

    return decorator


def install(top: Interpreter) -> None:
    """Put a TransformInterpreter below the AutogradInterpreter of a stack, unless one is there."""
    place: Interpreter | None = top
    while place is not None:
        below = place.inner
        if isinstance(place, AutogradInterpreter):
            if not isinstance(below, TransformInterpreter):
                assert below is not None
                place.inner = TransformInterpreter(below)
            return
        place = below


def overlap(y: Any, x: Any) -> bool:
    """Return whether the result of a view op is a view; where nothing is, it counts as one."""
    return np.may_share_memory(y, x) or not x.size


def _shares(a: LevelArray, b: LevelArray) -> bool:
    """Return whether arrays share memory: that they show, or on a device that of their parts."""
    if overlap(plain(a), plain(b)):
        return True
    inner = _innermost(a)
    return not isinstance(inner, ndarray) and may_share_memory(inner, _innermost(b))


def _innermost(data: Any) -> Any:
    while isinstance(data, LevelArray):
        data = next(part for part in data.parts if part is not None)._data
    return data


def wrap_output(
    op: OpExpr, inputs: Sequence[Any], array: Any, attrs: dict[str, Any], several: bool
) -> Tensor:
    """Return a tensor of a level's array, as a view of its input where the op gives views."""
    y = make_tensor(array)
    viewed = op.schema.view_of
    if viewed is not None:
        x = inputs[op.schema.inputs.index(viewed)]
        if isinstance(x._data, LevelArray) and _shares(array, x._data):
            origin = None if thread.state.grad_enabled else NO_GRAD
            link(op, x, y, attrs, origin or (SPLIT if several else None))
    if thread.state.inference and y._view is None:
        y._inference = True
    return y


class OfBFloat16:
    """Mixed into the arrays of a level whose parts are of bfloat16."""

    is_bfloat16 = True
    dtype = BFloat16Array.dtype
