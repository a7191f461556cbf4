"""GlobalArray: the array that a global tensor holds, of which each rank has a part.

It has the shape and dtype of the whole, so that functors, modules and gradient rules see one
tensor. Its own memory is never read: `local` is this rank's part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.distributed.placement import B, NdSbp, P, Shape, placement as Placement
from oneflow_lite.errors import ArgumentTypeError
from oneflow_lite.ops import upward
from oneflow_lite.tensors.mode import local as thread

_READS_NO_VALUE = frozenset((np.may_share_memory, np.shape))


class GlobalArray(np.ndarray[Any, Any]):
    """The array of a global tensor.

    Attributes
    ----------
    placement : placement
    sbp : tuple of Sbp
        One for each axis of the placement.
    local : array
        This rank's part; empty where the rank is not on the placement.
    boxed : dict
        Results of boxing a partial sum, by signature: the tensor's version then, and the array.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]
    is_global = True
    placement: Placement
    sbp: NdSbp
    local: Any
    boxed: dict[Any, Any]

    def __del__(self) -> None:
        if "local" in self.__dict__:  # else it is a mere view
            thread.foreign.pop(id(self), None)

    @property
    def home(self) -> tuple[Placement, NdSbp]:
        """The layout of the gradient of this tensor, if it is a leaf: partial sums are summed."""
        return self.placement, tuple(B if each is P else each for each in self.sbp)

    def copy(self, order: Any = "C") -> GlobalArray:
        """Return the same global tensor with a copy of this rank's part."""
        return global_array(self.placement, self.sbp, self.shape, self.dtype, self.local.copy())

    def get(self) -> Any:
        """Return the whole as a NumPy array; all ranks call it together."""
        return upward.module("boxing").gathered(self)

    def item(self, *index: Any) -> Any:
        """Return an element of the whole."""
        return self.get().item(*index)

    def tolist(self) -> Any:
        """Return the whole as nested lists."""
        return self.get().tolist()

    def __getitem__(self, index: Any) -> Any:
        """Return an array without values, of the shape of a part."""
        part = np.broadcast_to(np.zeros((), self.dtype), self.shape)[index]
        if not isinstance(part, np.ndarray):
            raise _no_whole_error("getitem")
        return part

    def __setitem__(self, index: Any, value: Any) -> None:
        """Fill all of it with a number; a part of it is written by an op."""
        if index is not Ellipsis or isinstance(value, np.ndarray):
            raise _no_whole_error("setitem")
        self.local[...] = value

    def __repr__(self) -> str:
        return f"GlobalArray(shape={self.shape}, dtype={self.dtype}, sbp={self.sbp})"

    __str__ = __repr__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        raise _no_whole_error(f"numpy.{ufunc.__name__}")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _READS_NO_VALUE:
            plain = [x.view(np.ndarray) if isinstance(x, GlobalArray) else x for x in args]
            return func(*plain, **kwargs)
        if func is np.zeros_like and len(args) == 1:  # an optimizer makes its state so
            made = args[0].copy()
            made.local[...] = 0
            return made
        raise _no_whole_error(f"numpy.{func.__name__}")


def _no_whole_error(what: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"{what}(): a global tensor is no array on one rank; call .to_local() for this rank's part "
        "of it, or .numpy() on all ranks for the whole"
    )


def _refusing(method: str) -> Callable[..., Any]:
    def refuse(self: GlobalArray, *args: Any, **kwargs: Any) -> Any:
        raise _no_whole_error(method.strip("_"))

    refuse.__name__ = refuse.__qualname__ = method
    return refuse


# Methods that NumPy answers in C, without asking __array_ufunc__ or __array_function__.
for _name in """
    __array__ __bool__ __bytes__ __complex__ __contains__ __copy__ __deepcopy__ __dlpack__ __float__
    __index__ __int__ __iter__ __reduce__ __reduce_ex__ all any argmax
    argmin argpartition argsort astype byteswap choose clip compress cumprod cumsum diagonal dot
    dump dumps fill flatten max mean min nonzero partition prod ptp put repeat round searchsorted
    sort std sum take tobytes tofile trace var
""".split():
    setattr(GlobalArray, _name, _refusing(_name))


def global_array(
    where: Placement, nd_sbp: NdSbp, shape: Shape, dtype: Any, local: Any
) -> GlobalArray:
    """Return the global array of a shape of which `local` is this rank's part."""
    made: GlobalArray = ArraySpec(tuple(shape), dtype).phantom().view(GlobalArray)
    made.placement, made.sbp, made.local, made.boxed = where, nd_sbp, local, {}
    thread.foreign[id(made)] = None  # while any lives, backward passes go through dispatch
    return made
