"""Checks that arrays are what a plan was made for: machine code trusts shape, dtype and layout.

Feeds, persistable variables and results of NumPy's functions come from outside of machine code. A
user's op may return something else than its `infer` rule says.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from oneflow_lite.errors import DTypeError, FlowError, ShapeError
from oneflow_lite.ops.function_writer import FunctionWriter
from oneflow_lite.static.ir.memory import is_dense, is_in_c_order, laid_out, strides_of
from oneflow_lite.static.ir.program import OpDesc, VarDesc

_IN_C_ORDER, _ALIGNED = 0x1, 0x100  # of NumPy's flags


def fits(array: Any, desc: VarDesc) -> bool:
    """Return whether an array is as its variable is described, in memory too."""
    if not _is_alike(array, desc) or (type(array) is np.ndarray and not array.flags.aligned):
        return False
    if is_in_c_order(desc):
        return bool(array.flags.c_contiguous)
    return 0 in desc.shape or _strides(array) == strides_of(desc)


def _is_alike(array: Any, desc: VarDesc) -> bool:
    return bool(array.shape == desc.shape and array.dtype == desc.dtype)


def _strides(array: Any) -> tuple[int, ...]:
    return tuple([0 if n == 1 else s for n, s in zip(array.shape, array.strides, strict=True)])


@attrs.frozen
class Mended:
    """A function that lays out an array as its variable is described; it raises where it cannot.

    Parameters
    ----------
    desc : VarDesc
    maker : OpDesc or None
        The op that made the array.
    is_written : bool
        Whether the array is written, so that no copy can stand for it.
    """

    desc: VarDesc
    maker: OpDesc | None = None
    is_written: bool = False

    def __call__(self, array: Any) -> Any:
        """Return the array, or a copy.

        Raises
        ------
        ShapeError, DTypeError, FlowError
        """
        desc = self.desc
        is_array = hasattr(array, "shape") and hasattr(array, "dtype")
        if is_array and type(array) is not np.ndarray and desc.device.type == "cpu":
            array = np.asarray(array)  # a number, or an array of a derived class
        if not is_array or not _is_alike(array, desc):
            same_shape = is_array and array.shape == desc.shape
            made = f"{array.dtype}{list(array.shape)}" if is_array else type(array).__name__
            raise (DTypeError if same_shape else ShapeError)(self._text(made))
        if fits(array, desc):
            return array
        if self.is_written or not is_dense(desc):
            raise FlowError(self._text(f"an array with strides {array.strides}"))
        return laid_out(array.copy() if desc.device.type == "cpu" else array, desc)

    def _text(self, made: str) -> str:
        name, known = repr(self.desc.name), self.desc.type_text
        if self.maker is None:
            return f"{name} was given {made}, and the Program was analysed for {known}"
        return (
            f"op {self.maker.type!r}: it made {made} for {name}, and its `infer` rule said "
            f"{known}; mend the rule, or the kernel"
        )


def checked(writer: FunctionWriter, local: str, mended: Mended) -> str:
    """Return the expression for a local that is looked at, and mended if it must be."""
    desc = mended.desc
    tests = [f"{local}.shape == {tuple(map(int, desc.shape))}"]
    tests.append(f"{local}.dtype is {writer.value(desc.dtype)}")
    in_c_order = is_in_c_order(desc)
    if desc.device.type != "cpu":
        tests += [f"{local}.flags.c_contiguous"] if in_c_order else []
    else:
        flags = _ALIGNED | (_IN_C_ORDER if in_c_order else 0)
        tests += [f"{local}.flags.num & {flags} == {flags}"]
    if not in_c_order:
        tests += [f"{local}.strides == {writer.value(desc.strides)}"]
    return f"({local} if {' and '.join(tests)} else ({local} := {writer.value(mended)}({local})))"
