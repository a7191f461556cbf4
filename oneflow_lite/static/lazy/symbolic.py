"""SymbolicArray: the array without values that a tensor holds while a Program is captured.

It has shape, dtype, strides and memory of its own, so that views have their real structure. Its
memory is never read: reading a value raises `CaptureError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.errors import CaptureError
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.location import at_user_line
from oneflow_lite.static.ir.program import Program, VarDesc
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import make_tensor

_CLONE = op_expr("clone")
_READS_NO_VALUE = frozenset((np.empty_like, np.may_share_memory, np.shape, np.zeros_like))


def no_value_error(op: str, name: str | None) -> CaptureError:
    """Build the error for reading a value that a Program does not have yet."""
    which = "a symbolic tensor" if name is None else f"{name!r}, a variable of a Program,"
    return CaptureError(
        f"{op}(): {which} has no value while the Program is captured{at_user_line()}; "
        "fetch it with Executor.run, or keep the computation inside tensors, as with where() or "
        "static.nn.cond"
    )


class SymbolicArray(np.ndarray[Any, Any]):
    """The array of a symbolic tensor.

    Attributes
    ----------
    var : VarDesc or None
        Its variable; None for an array that no op of a Program made.
    family : object
        The family of its Program.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]
    # This hides the variance of an array, which would be a value.
    var: VarDesc | None = None  # type: ignore[assignment]
    family: object = None
    is_symbolic = True  # eager kernels refuse it

    @property
    def name(self) -> str | None:
        """The name of the variable."""
        return None if self.var is None else self.var.name

    @property
    def plain(self) -> np.ndarray[Any, Any]:
        """The same memory as an ordinary array: for view kernels, which read no values."""
        return self.view(np.ndarray)

    def copy(self, order: Any = "C") -> SymbolicArray:
        """Append a `clone` to the Program, for code of the library that copies arrays."""
        with no_grad():
            clone: SymbolicArray = dispatch(_CLONE, (make_tensor(self),))._data
        return clone

    def __getitem__(self, index: Any) -> Any:
        """Return a view; an element, or a selection by an array, would be a value."""
        part = self.plain[index]
        if isinstance(part, np.ndarray) and np.may_share_memory(part, self):
            return part.view(SymbolicArray)
        raise no_value_error("getitem", self.name)

    def __repr__(self) -> str:
        return f"SymbolicArray({self.name!r}, shape={self.shape}, dtype={self.dtype})"

    __str__ = __repr__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        raise no_value_error(f"numpy.{ufunc.__name__}", _name_among((*inputs, *kwargs.values())))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _READS_NO_VALUE:
            plain = [x.plain if isinstance(x, SymbolicArray) else x for x in args]
            return func(*plain, **kwargs)
        raise no_value_error(f"numpy.{func.__name__}", _name_among((*args, *kwargs.values())))


def _name_among(values: tuple[Any, ...]) -> str | None:
    for value in values:
        if isinstance(value, (list, tuple)):
            value = next((x for x in value if isinstance(x, SymbolicArray)), None)
        if isinstance(value, SymbolicArray):
            return value.name
    return None


def _refusing(method: str) -> Callable[..., Any]:
    def refuse(self: SymbolicArray, *args: Any, **kwargs: Any) -> Any:
        raise no_value_error(method.strip("_"), self.name)

    refuse.__name__ = refuse.__qualname__ = method
    return refuse


# Methods that NumPy answers in C, without asking __array_ufunc__ or __array_function__.
for _name in """
    __array__ __bool__ __bytes__ __complex__ __contains__ __copy__ __deepcopy__ __dlpack__ __float__
    __index__ __int__ __iter__ __reduce__ __reduce_ex__ __setitem__ all any argmax argmin
    argpartition argsort astype byteswap choose clip compress cumprod cumsum diagonal dot dump dumps
    fill flatten item max mean min nonzero partition prod ptp put repeat round searchsorted sort std
    sum take tobytes tofile tolist trace
""".split():
    setattr(SymbolicArray, _name, _refusing(_name))


def symbolic(desc: VarDesc, array: np.ndarray[Any, Any], program: Program) -> SymbolicArray:
    """Return an array of a program's variable in the memory of an ordinary one."""
    made = array.view(SymbolicArray)
    made.var = desc
    made.family = program.family
    return made


def plain(data: Any) -> Any:
    """Return an array as an ordinary one, without values if it is symbolic."""
    return data.plain if isinstance(data, SymbolicArray) else data


def is_number(data: Any) -> bool:
    """Return whether this is a number of an expression, as 2.5 in `x * 2.5`, and never written."""
    return isinstance(data, np.ndarray) and not data.ndim and not data.flags.writeable


def constant_key(data: Any) -> Any:
    """Return the key of a constant of a block; that of a number is its value."""
    return (data.dtype.str, data.tobytes()) if is_number(data) else id(data)
