"""The parts of joined functions on Numba's side: memory by its address, and inner functions.

Numba is imported with this module, which is itself imported when there is something to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.numpy_support import carray

_njit: Any = njit
_checked: Callable[[Callable[..., Any]], Any] = _njit(error_model="python")
_intrinsic: Callable[[Callable[..., Any]], Any] = intrinsic


@_intrinsic
def pointer(context: Any, address: Any) -> Any:
    """Return an address as what `carray` takes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@_checked
def divided(x: float, y: float) -> float:
    """Divide as Python does, which raises for 0."""
    return x / y


def part(function: Callable[..., Any]) -> Any:
    """Have Numba compile a function of a joined one, once that is compiled and not loaded.

    Python does not call it, so it needs no wrappers, which take long to build.
    """
    inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _njit(error_model="numpy", nogil=True, **inner)(function)


NAMES = {
    "carray": carray, "pointer": pointer, "divided": divided, "part": part,
    "zeros": np.zeros, "bool_": np.bool_, "int64": np.int64,
}  # fmt: skip
