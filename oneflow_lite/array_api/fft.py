"""The Fourier extension of the array API standard, which is NumPy's `np.fft` as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.array_api.adapter import adapter, functor
from oneflow_lite.array_api.elementwise import tensor
from oneflow_lite.array_api.functions import asarray
from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike, default_float
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

_ONE = "fft ifft rfft irfft hfft ihfft".split()
_MANY = "fftn ifftn rfftn irfftn fft2 ifft2 rfft2 irfft2".split()
__all__ = [*_ONE, *_MANY[:4], "fftfreq", "rfftfreq", "fftshift", "ifftshift"]


def _transform(name: str) -> Callable[..., Tensor]:
    if name in _ONE:

        def function(
            x: Tensor, /, n: int | None = None, axis: int = -1, norm: str | None = None
        ) -> Tensor:
            return functor(f"fft.{name}")(tensor(x), n, axis, norm)
    else:
        axes_default = (-2, -1) if name.endswith("2") else None

        def function(  # type: ignore[misc]
            x: Tensor,
            /,
            s: int | Sequence[int] | None = None,
            axes: int | Sequence[int] | None = axes_default,
            norm: str | None = None,
        ) -> Tensor:
            return functor(f"fft.{name}")(tensor(x), s, axes, norm)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return the transform `{name}`, scaled as `norm` says."
    return adapter(f"fft.{name}")(function)


for _name in [*_ONE, *_MANY]:
    globals()[_name] = _transform(_name)


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Return the frequencies of the entries of `fft`."""
    return asarray(np.fft.fftfreq(n, d), dtype or default_float(), device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Return the frequencies of the entries of `rfft`."""
    return asarray(np.fft.rfftfreq(n, d), dtype or default_float(), device=device)


def _shifted(x: Any, axes: Any, sign: int) -> Tensor:
    x = tensor(x)
    chosen = range(x.ndim) if axes is None else axes if isinstance(axes, (tuple, list)) else (axes,)
    sizes = [x.shape[i] for i in chosen]
    shifts = [n // 2 if sign > 0 else -(n // 2) for n in sizes]
    return functor("roll")(x, shifts, tuple(chosen)) if x.ndim else x.clone()


@adapter("fft.fftshift")
def fftshift(x: Tensor, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return the tensor with the frequency 0 moved to the centre."""
    return _shifted(x, axes, 1)


@adapter("fft.ifftshift")
def ifftshift(x: Tensor, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """Return the tensor as it was before `fftshift`."""
    return _shifted(x, axes, -1)
