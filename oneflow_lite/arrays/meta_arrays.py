"""Arrays of the device "meta", which have a shape, a dtype and strides, but no elements.

To the library the device is one like CUDA: its arrays are no NumPy arrays, and it has an array
module of its own. The "kernel" of an op there is the op's infer rule, which tells what the result
looks like (`OpExpr.kernel`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec, c_strides
from oneflow_lite.arrays.dtype_object import bfloat16
from oneflow_lite.errors import NoDataError


def no_data_error(what: str) -> NoDataError:
    """Build the error for reading values that a tensor on the device "meta" does not have."""
    return NoDataError(
        f"{what}(): Cannot copy out of meta tensor; no data! It has a shape and a dtype alone; "
        "make memory with empty_like(x, device=...) or module.to_empty(device=...), and fill it"
    )


class MetaArray:
    """An array without elements.

    Attributes
    ----------
    spec : ArraySpec
    base : MetaArray or None
        The array of which this one is a view.
    """

    __slots__ = ("__weakref__", "base", "spec")
    base: MetaArray | None

    def __init__(self, spec: ArraySpec, base: MetaArray | None = None) -> None:
        self.spec = spec
        self.base = base if base is None or base.base is None else base.base

    shape = property(lambda self: self.spec.shape)
    ndim = property(lambda self: self.spec.ndim)
    size = property(lambda self: self.spec.size)
    itemsize = property(lambda self: self.spec.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    flags = property(lambda self: self.spec.phantom().flags)
    is_bfloat16 = property(lambda self: self.dtype.char == "E")
    data = property(lambda self: self)  # a stand-in for CuPy's memory, and its address
    mem = property(lambda self: self if self.base is None else self.base)
    ptr = 0

    @property
    def dtype(self) -> Any:
        """The dtype, as arrays show it."""
        own = self.spec.dtype
        return bfloat16() if own.kind == "V" else own

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in bytes."""
        return self.spec.strides or c_strides(self.shape, self.itemsize)

    def copy(self, order: Any = "C") -> MetaArray:
        """Return an array of its own, in C order."""
        return MetaArray(ArraySpec(self.shape, self.dtype))

    def astype(self, dtype: Any, copy: bool = True) -> MetaArray:
        """Return an array of another dtype, in C order."""
        return MetaArray(ArraySpec(self.shape, dtype))

    def ravel(self, order: Any = "C") -> MetaArray:
        """Return an array of one dimension."""
        return MetaArray(ArraySpec((self.size,), self.dtype), self)

    def view(self, dtype: Any) -> MetaArray:
        """Return the bytes of an array of one dimension as another dtype."""
        return MetaArray(ArraySpec((self.nbytes // dtype.itemsize,), dtype), self)

    def __getitem__(self, index: Any) -> MetaArray:
        """Return a part, as basic indexing takes it."""
        parts = index if isinstance(index, tuple) else (index,)
        parts = parts if any(part is ... for part in parts) else (*parts, ...)
        return MetaArray(ArraySpec.of(self.spec.phantom()[parts]), self)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write nothing, as there are no elements."""

    def __len__(self) -> int:
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"MetaArray(shape={self.shape}, dtype={self.dtype})"

    def __reduce__(self) -> Any:
        return MetaArray, (self.spec,)


def _refusing(method: str) -> Callable[..., Any]:
    def refuse(self: MetaArray, *args: Any, **kwargs: Any) -> Any:
        raise no_data_error("numpy" if method == "get" else method.strip("_"))

    return refuse


for _name in """
    __array__ __array_ufunc__ __bool__ __complex__ __dlpack__ __dlpack_device__ __float__ __index__
    __int__ __iter__ get item tobytes tolist
""".split():
    setattr(MetaArray, _name, _refusing(_name))


class MetaModule:
    """The array module of the device: what makes arrays, and nothing that computes."""

    __name__ = "meta"
    ndarray = MetaArray

    def empty(self, shape: Any, dtype: Any = float, order: Any = "C") -> MetaArray:
        """Return an array of a shape."""
        sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        dtype = dtype if hasattr(dtype, "char") else np.dtype(dtype)
        return MetaArray(ArraySpec(sizes, dtype))

    zeros = ones = empty

    def full(self, shape: Any, value: Any, dtype: Any = float) -> MetaArray:
        """Return an array of a shape."""
        return self.empty(shape, dtype)

    def asarray(self, value: Any, dtype: Any = None) -> MetaArray:
        """Return an array that looks like another one."""
        return on_meta(np.asarray(value, dtype))

    def eye(self, n: int, m: int | None = None, dtype: Any = float) -> MetaArray:
        """Return an array of the shape of a matrix."""
        return self.empty((n, n if m is None else m), dtype)

    def empty_like(self, x: Any, dtype: Any = None) -> MetaArray:
        """Return an array of the shape of another one."""
        return self.empty(x.shape, x.dtype if dtype is None else dtype)

    zeros_like = ones_like = empty_like

    def broadcast_to(self, x: Any, shape: Any) -> MetaArray:
        """Return an array of a shape."""
        return self.empty(shape, x.dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise no_data_error(f"numpy.{name}")


meta_module = MetaModule()


def on_meta(array: Any) -> MetaArray:
    """Return an array without elements that looks like an array of any device."""
    return MetaArray(ArraySpec.of(array))
