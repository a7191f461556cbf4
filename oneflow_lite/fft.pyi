"""Signatures, written by `python -m tests.stubs --write` from the declarations; not by hand."""

from collections.abc import Sequence
from oneflow_lite.tensors.tensor import Tensor
from typing import Any

def fft(
    input: Tensor,
    n: int | None = ...,
    dim: int = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def fft2(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def fftfreq(
    n: int,
    d: float = ...,
    *,
    out: Tensor | None = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
) -> Tensor: ...
def fftn(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] | None = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def fftshift(input: Tensor, dim: int | Sequence[int] | None = ...) -> Tensor: ...
def hfft(
    input: Tensor,
    n: int | None = ...,
    dim: int = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def hfft2(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def hfftn(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] | None = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def ifft(
    input: Tensor,
    n: int | None = ...,
    dim: int = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def ifft2(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def ifftn(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] | None = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def ifftshift(input: Tensor, dim: int | Sequence[int] | None = ...) -> Tensor: ...
def ihfft(
    input: Tensor,
    n: int | None = ...,
    dim: int = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def ihfft2(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def ihfftn(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] | None = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def irfft(
    input: Tensor,
    n: int | None = ...,
    dim: int = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def irfft2(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def irfftn(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] | None = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def rfft(
    input: Tensor,
    n: int | None = ...,
    dim: int = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def rfft2(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def rfftfreq(
    n: int,
    d: float = ...,
    *,
    out: Tensor | None = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
) -> Tensor: ...
def rfftn(
    input: Tensor,
    s: int | Sequence[int] | None = ...,
    dim: int | Sequence[int] | None = ...,
    norm: str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
