"""What compares vectors: angles, distances and bilinear forms; and unit length, which helps it."""

from __future__ import annotations

from typing import Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import DTypeError, ShapeError
from oneflow_lite.functors.checks import check_broadcast, check_dim, real_floating, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Int, KeepDim, Number
from oneflow_lite.functors.statistics import norm_for
from oneflow_lite.interpreter import promote
from oneflow_lite.tensor import Tensor


@functor("functional", out=True, samples="x(2, 3); x(3, 2), 3, -2, 5.0; x(2, 3), 1, (0, 1)")
def normalize(input: AnyTensor, p: Number = 2.0, dim: Any = 1, eps: Number = 1e-12) -> Tensor:
    """Divide vectors by their norm: x / max(‖x‖, eps).

    input: floating or complex.
    dim: the dimension or dimensions that the vectors lie along.
    DimError: when a dimension is out of range.
    DTypeError: when the input holds integers.

    >>> flow.nn.functional.normalize(flow.tensor([[3., 4.], [0., 0.]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return input / norm_for("normalize", input, p, dim, keepdim=True).clamp_min(eps)


@functor("functional flow", samples="x(2, 3), x(2, 3); x(2, 1, 3), x(2, 1), dim=-1; x(3), x(3), 0")
def cosine_similarity(x1: AnyTensor, x2: AnyTensor, dim: Int = 1, eps: Number = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors: x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps)).

    x1, x2: floating; their shapes broadcast together.
    dim: the dimension, of the common shape, that the vectors lie along.
    ShapeError: when the shapes do not broadcast.
    DimError: when the dimension is out of range.
    DTypeError: when the common dtype is not real floating.

    >>> flow.cosine_similarity(flow.tensor([[3., 4.]]), flow.tensor([[4., 3.]]))
    tensor([0.9600])
    """
    op = "cosine_similarity"
    shape = check_broadcast(op, "x2", x2, x1)
    dim = check_dim(op, dim, len(shape))
    x, y = (real_floating(op, each, "x1").expand(shape) for each in promote(op, x1, x2))
    norms = [norm_for(op, each, 2, dim, keepdim=True).clamp_min(eps) for each in (x, y)]
    return (x / norms[0] * (y / norms[1])).sum(dim)


@functor(
    "functional flow",
    samples="x(2, 3), x(2, 3); x(2, 1, 3), x(2, 1), 1.0, keepdim=True; x(3), x(3), 3",
)
def pairwise_distance(
    x1: AnyTensor, x2: AnyTensor, p: Number = 2.0, eps: Number = 1e-6, keepdim: KeepDim = False
) -> Tensor:
    """Return the norm ‖x1 - x2 + eps‖ of the last dimension.

    x1, x2: their shapes broadcast together.
    eps: keeps the norm away from its kink at 0.
    ShapeError: when the shapes do not broadcast.
    """
    op = "pairwise_distance"
    check_broadcast(op, "x2", x2, x1)
    return norm_for(op, x1 - x2 + eps, p, -1, keepdim=keepdim)


@functor("functional flow", samples="x(2, 3), x(2, 4), x(5, 3, 4), x(5); x(3), x(4), x(2, 3, 4)")
def bilinear(
    input1: AnyTensor, input2: AnyTensor, weight: AnyTensor, bias: AnyTensor | None = None
) -> Tensor:
    """Return Σ input1_i weight_oij input2_j + bias_o.

    input1, input2: (*, I) and (*, J), with the same leading dimensions.
    weight, bias: (O, I, J) and (O,).
    ShapeError: when the shapes do not fit.
    DTypeError: when the dtypes differ.

    >>> flow.nn.functional.bilinear(flow.ones(2), flow.ones(2), flow.ones(1, 2, 2))
    tensor([4.])
    """
    outs, *sizes = weight.shape if weight.ndim == 3 else (0, 0, 0)
    for name, x, shape in (
        ("weight", weight, (outs, *sizes)),
        ("input1", input1, (*input2.shape[:-1], sizes[0])),
        ("input2", input2, (*input1.shape[:-1], sizes[1])),
        ("bias", bias, (outs,)),
    ):
        if x is not None and (x.shape != shape or x.dtype != weight.dtype):
            expected = f"shape {shape} and dtype {weight.dtype}"
            got, kind = (x, ShapeError) if x.shape != shape else (x.dtype, DTypeError)
            raise wrong("bilinear", name, expected, got, "match the weight", kind)
    y = F.einsum("...i,oij,...j->...o", input1, weight, input2)
    return y if bias is None else y + bias
