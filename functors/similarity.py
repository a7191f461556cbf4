"""Vectors of unit length, and the angle between vectors: compositions of norms."""

from __future__ import annotations

from typing import Any

from oneflow_lite.functors.arithmetic import clamp_min
from oneflow_lite.functors.checks import (
    check_broadcast,
    check_dim,
    check_tensor,
)
from oneflow_lite.functors.elementwise_checks import check_number, real_floating
from oneflow_lite.functors.out import write_out
from oneflow_lite.functors.reduce import sum
from oneflow_lite.functors.shape import expand
from oneflow_lite.functors.statistics import norm_for
from oneflow_lite.interpreter import promote
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor


@register_functor("normalize")
def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divide vectors by their norm: x / max(‖x‖, eps).

    Parameters
    ----------
    input : Tensor
        Floating or complex.
    p : float
        The exponent of the norm.
    dim : int or tuple of int
        The dimensions that the vectors lie along.
    eps : float
        What is divided by instead where the norm is smaller.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DimError
        When a dimension is out of range.
    DTypeError
        When the input holds integers.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.normalize(flow.tensor([[3., 4.], [0., 0.]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    if out is not None:
        return write_out("normalize", out, normalize, input, p, dim, eps)
    op = "normalize"
    p, eps = check_number(op, "p", p), check_number(op, "eps", eps)
    return input / clamp_min(norm_for(op, input, p, dim, keepdim=True), eps)


@register_functor("cosine_similarity")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors: x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps)).

    Parameters
    ----------
    x1, x2 : Tensor
        Floating; their shapes broadcast together.
    dim : int
        The dimension, of the common shape, that the vectors lie along.
    eps : float
        What is divided by instead where a norm is smaller.

    Raises
    ------
    ShapeError
        When the shapes do not broadcast.
    DimError
        When the dimension is out of range.
    DTypeError
        When the common dtype is not real floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.cosine_similarity(flow.tensor([[3., 4.]]), flow.tensor([[4., 3.]]))
    tensor([0.9600])
    """
    op = "cosine_similarity"
    check_tensor(op, "x1", x1)
    shape = check_broadcast(op, "x2", check_tensor(op, "x2", x2), x1)
    dim = check_dim(op, dim, len(shape))
    eps = check_number(op, "eps", eps)
    units = []
    for x in promote(op, x1, x2):
        x = expand(real_floating(op, x, "x1"), shape)
        units.append(x / clamp_min(norm_for(op, x, 2, dim, keepdim=True), eps))
    return sum(units[0] * units[1], dim)
