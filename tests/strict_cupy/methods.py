"""The operators and NumPy's methods of the stand-in's `ndarray`, attached from tables."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.strict_cupy.array import SCALARS, call, call_ufunc, ndarray

# A wrong operand is refused, not deferred to: a host array would otherwise try its own operator.
_OPERANDS = (ndarray, np.ndarray, *SCALARS)

_ARITHMETIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_WITHOUT_IN_PLACE = {"matmul": np.matmul, "divmod": np.divmod}
_COMPARISONS = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
_METHODS = """
    all any argmax argmin argpartition argsort astype choose clip compress conj conjugate cumprod
    cumsum diagonal dot fill flatten max mean min nonzero partition prod ravel repeat reshape round
    searchsorted sort squeeze std sum swapaxes trace transpose var view
""".split()


def _binary(ufunc: Any, *, swap: bool = False) -> Callable[[ndarray, Any], Any]:
    def operator(self: ndarray, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return call_ufunc(ufunc, "__call__", (other, self) if swap else (self, other), {})

    return operator


def _in_place(ufunc: Any) -> Callable[[ndarray, Any], Any]:
    def operator(self: ndarray, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return call_ufunc(ufunc, "__call__", (self, other), {"out": self})

    return operator


def _unary(ufunc: Any) -> Callable[[ndarray], Any]:
    return lambda self: call_ufunc(ufunc, "__call__", (self,), {})


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np.ndarray, name)
    return lambda self, *args, **keywords: call(name, function, (self, *args), keywords)


def _take(self: ndarray, indices: Any, axis: Any = None, out: Any = None) -> ndarray:
    return call("take", np.take, (self, indices, axis, out, "wrap"))


def _put(self: ndarray, indices: Any, values: Any, mode: str = "wrap") -> None:
    if mode not in ("wrap", "clip"):
        raise TypeError("clipmode not understood")
    call("put", np.ndarray.put, (self, indices, values, mode))


def attach() -> None:
    """Give `ndarray` its operators and methods."""
    for name, ufunc in (_ARITHMETIC | _WITHOUT_IN_PLACE | _COMPARISONS).items():
        setattr(ndarray, f"__{name}__", _binary(ufunc))
    for name, ufunc in (_ARITHMETIC | _WITHOUT_IN_PLACE).items():
        setattr(ndarray, f"__r{name}__", _binary(ufunc, swap=True))
    for name, ufunc in _ARITHMETIC.items():
        setattr(ndarray, f"__i{name}__", _in_place(ufunc))
    for name, ufunc in _UNARY.items():
        setattr(ndarray, f"__{name}__", _unary(ufunc))
    for name in _METHODS:
        setattr(ndarray, name, _method(name))
    ndarray.take = _take
    ndarray.put = _put
