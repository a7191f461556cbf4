"""Window functions under the names of `torch.signal.windows`.

Each is computed in float64 on the host. A symmetric window of M entries begins as it ends; with
sym=False it is the first M entries of the window of M + 1, one period of a periodic signal. The
options dtype, device, layout and requires_grad are those of `flow.zeros`.

F. J. Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform"
(1978); A. H. Nuttall, "Some windows with very good sidelobe behavior" (1981).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from oneflow_lite.arrays.dtype import as_dtype
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, arg_error, memory_for
from oneflow_lite.functors.creation import check_layout, from_host
from oneflow_lite.functors.declaring.checks import check_int
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


class Options(TypedDict, total=False):
    """The options that every window takes."""

    sym: bool
    dtype: Any
    layout: Any
    device: Any
    requires_grad: bool


def _made(
    name: str,
    M: int,
    formula: Callable[[Any, int], Any],
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return formula(0 … M - 1, number of entries of the symmetric window) as a tensor."""
    op = f"signal.windows.{name}"
    M = check_int(op, "M", M, 0)
    if layout is not None:
        check_layout(op, layout)
    known = dtype is None or as_dtype(op, dtype).name in ("float32", "float64")
    _check(known, name, "dtype", "float32 or float64", dtype)
    one = M == 1 and name not in ("cosine", "exponential")  # where some formulas divide by 0
    with memory_for(op, M=M):
        values = np.ones(1) if one else formula(np.arange(M), M if sym or M == 1 else M + 1)
        to = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
        return from_host(op, values, to)


def _check(holds: bool, name: str, argument: str, expected: str, got: Any) -> None:
    if not holds:
        op = f"signal.windows.{name}"
        raise arg_error(op, argument, expected, got, "choose another value", ArgumentError)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, **options: Unpack[Options]
) -> Tensor:
    """Return the window exp(-|n - center| / tau).

    center: by default the middle; a symmetric window has no other.
    ArgumentError: when tau is not positive, or a symmetric window has a center.
    """
    _check(tau > 0, "exponential", "tau", "a positive number", tau)
    _check(center is None or not options.get("sym", True), "exponential", "center",
           "None for a symmetric window", center)  # fmt: skip

    def formula(n: Any, whole: int) -> Any:
        return np.exp(-abs(n - ((whole - 1) / 2 if center is None else center)) / tau)

    return _made("exponential", M, formula, **options)


def cosine(M: int, **options: Unpack[Options]) -> Tensor:
    """Return the window sin(π (n + ½) / M), half a wave."""
    return _made("cosine", M, lambda n, whole: np.sin(math.pi * (n + 0.5) / whole), **options)


def gaussian(M: int, *, std: float = 1.0, **options: Unpack[Options]) -> Tensor:
    """Return the window exp(-½ ((n - middle) / std)²).

    ArgumentError: when std is not positive.
    """
    _check(std > 0, "gaussian", "std", "a positive number", std)

    def formula(n: Any, whole: int) -> Any:
        return np.exp(-0.5 * ((n - (whole - 1) / 2) / std) ** 2)

    return _made("gaussian", M, formula, **options)


def kaiser(M: int, *, beta: float = 12.0, **options: Unpack[Options]) -> Tensor:
    """Return the window I₀(beta √(1 - (2n / (M - 1) - 1)²)) / I₀(beta).

    I₀ is the modified Bessel function of order 0.

    ArgumentError: when beta is negative.
    """
    _check(beta >= 0, "kaiser", "beta", "a number that is not negative", beta)
    return _made("kaiser", M, lambda n, whole: np.kaiser(whole, beta)[: len(n)], **options)


def bartlett(M: int, **options: Unpack[Options]) -> Tensor:
    """Return the triangle 1 - |2n / (M - 1) - 1|."""
    return _made("bartlett", M, lambda n, whole: 1 - abs(2 * n / (whole - 1) - 1), **options)


def general_cosine(M: int, *, a: Sequence[float], **options: Unpack[Options]) -> Tensor:
    """Return the window Σ (-1)ⁱ aᵢ cos(2π i n / (M - 1)).

    ArgumentError: when a is no sequence of numbers, or is empty.

    >>> import oneflow_lite as flow
    >>> flow.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _cosines("general_cosine", M, a, options)


def _cosines(name: str, M: int, a: Any, options: Options) -> Tensor:
    _check(isinstance(a, (list, tuple)) and len(a) > 0, name, "a", "a list of numbers", a)

    def formula(n: Any, whole: int) -> Any:
        angles = 2 * math.pi * n / (whole - 1)
        return sum((-1) ** i * weight * np.cos(i * angles) for i, weight in enumerate(a))

    return _made(name, M, formula, **options)


def general_hamming(M: int, *, alpha: float = 0.54, **options: Unpack[Options]) -> Tensor:
    """Return the window alpha - (1 - alpha) cos(2πn / (M - 1))."""
    return _cosines("general_hamming", M, [alpha, 1.0 - alpha], options)


def hamming(M: int, **options: Unpack[Options]) -> Tensor:
    """Return the window 0.54 - 0.46 cos(2πn / (M - 1))."""
    return _cosines("hamming", M, [0.54, 0.46], options)


def hann(M: int, **options: Unpack[Options]) -> Tensor:
    """Return the window ½ - ½ cos(2πn / (M - 1)).

    >>> import oneflow_lite as flow
    >>> flow.signal.windows.hann(4, sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _cosines("hann", M, [0.5, 0.5], options)


def blackman(M: int, **options: Unpack[Options]) -> Tensor:
    """Return the window 0.42 - 0.5 cos(2πn / (M - 1)) + 0.08 cos(4πn / (M - 1))."""
    return _cosines("blackman", M, [0.42, 0.5, 0.08], options)


def nuttall(M: int, **options: Unpack[Options]) -> Tensor:
    """Return Nuttall's window of four terms, whose side lobes are below -98 dB."""
    return _cosines("nuttall", M, [0.3635819, 0.4891775, 0.1365995, 0.0106411], options)


guard_all(globals())
