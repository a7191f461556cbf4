"""Signatures, written by `python -m tests.stubs --write` from the declarations; not by hand."""

from oneflow_lite.tensors.tensor import Tensor
from typing import Any

def amax(
    input: Tensor,
    dim: Any = ...,
    *,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def amin(
    input: Tensor,
    dim: Any = ...,
    *,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def argmax(
    input: Tensor,
    dim: Any = ...,
    *,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def argmin(
    input: Tensor,
    dim: Any = ...,
    *,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def cumprod(
    input: Tensor,
    dim: int,
    *,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def cumsum(
    input: Tensor,
    dim: int,
    *,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def log_softmax(
    input: Tensor,
    dim: int,
    *,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = ...,
    input_mask: Tensor | None = ...,
    other_mask: Tensor | None = ...,
) -> Tensor: ...
def logsumexp(
    input: Tensor,
    dim: Any = ...,
    *,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def mean(
    input: Tensor,
    dim: Any = ...,
    *,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def median(
    input: Tensor,
    dim: int = ...,
    *,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def norm(
    input: Tensor,
    ord: Any = ...,
    dim: Any = ...,
    *,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def prod(
    input: Tensor,
    dim: Any = ...,
    *,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def softmax(
    input: Tensor,
    dim: int,
    *,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def softmin(
    input: Tensor,
    dim: int,
    *,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def std(
    input: Tensor,
    dim: Any = ...,
    unbiased: bool | None = ...,
    *,
    correction: float | None = ...,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def sum(
    input: Tensor,
    dim: Any = ...,
    *,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
def var(
    input: Tensor,
    dim: Any = ...,
    unbiased: bool | None = ...,
    *,
    correction: float | None = ...,
    keepdim: bool = ...,
    dtype: Any = ...,
    mask: Tensor | None = ...,
) -> Tensor: ...
