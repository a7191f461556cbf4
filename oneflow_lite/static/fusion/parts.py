"""What joined functions are made of, on Numba's side: memory by its address, and inner functions.

Numba is imported with this module, which is itself imported when there is something to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_njit: Any = njit
_intrinsic: Callable[[Callable[..., Any]], Any] = intrinsic


@_intrinsic
def pointer(context: Any, address: Any) -> Any:
    """Return an address as what `carray` takes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@_njit
def divided(x: float, y: float) -> float:
    """Divide as Python does, which raises for 0."""
    return x / y


def part(function: Callable[..., Any]) -> Any:
    """Have Numba compile a function of a joined one, once that is compiled and not loaded."""
    return _njit(error_model="numpy", nogil=True)(function)


NAMES = {
    "carray": numba.carray, "pointer": pointer, "divided": divided, "part": part,
    "zeros": np.zeros, "bool_": np.bool_, "int64": np.int64,
}  # fmt: skip
