"""nn.functional.unfold and fold, which lay the windows of images side by side: what users call."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.errors import ShapeError
from oneflow_lite.functors.checks import check_ndim
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import FloatingOrComplex
from oneflow_lite.functors.spatial import check_sizes
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

COL2IM = op_expr("col2im")
IM2COL = op_expr("im2col")


@functor("functional", samples="x(1, 2, 3, 4), 2; x(2, 3, 4), (2, 1), (1, 2), (1, 0), (2, 1)")
def functional_unfold(
    input: FloatingOrComplex, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Return the windows of images as columns.

    input: of shape (N, C, H, W) or (C, H, W).
    kernel_size, stride, padding, dilation: int or two ints, as in `conv2d`.
    returns: (N, C·kernel, number of windows), or the same without N.
    ShapeError: when shapes or sizes do not fit.

    >>> flow.nn.functional.unfold(flow.arange(9.).reshape(1, 3, 3), (2, 2), stride=(1, 1))
    tensor([[0., 1., 3., 4.],
            [1., 2., 4., 5.],
            [3., 4., 6., 7.],
            [4., 5., 7., 8.]])
    """
    op = "functional.unfold"
    geometry = _geometry(op, kernel_size, dilation, padding, stride)
    size = check_ndim(op, input, (3, 4)).shape[-2:]
    if min(_blocks(size, **geometry)) < 1:
        raise ShapeError(
            f"{op}(): argument 'kernel_size': expected windows that fit into the input, shape "
            f"{input.shape}, got {geometry['kernel_size']} with padding {geometry['padding']}; use "
            "a smaller window or more padding"
        )
    return dispatch1(IM2COL, input, geometry)


@functor("functional", samples="x(1, 8, 6), (3, 4), 2; x(2, 3), (2, 4), (1, 2), (2, 1), 0, (2, 1)")
def fold(
    input: FloatingOrComplex,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Add columns back to the windows of images: the transposed map of `nn.functional.unfold`.

    input: of shape (N, C·kernel, number of windows), or without N.
    output_size: height and width of the images.
    kernel_size, stride, padding, dilation: int or two ints, as in `conv2d`.
    returns: (N, C, *output_size), or the same without N.
    ShapeError: when shapes or sizes do not fit.

    >>> flow.nn.functional.fold(flow.ones(4, 4), (3, 3), 2)
    tensor([[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]])
    """
    geometry = _geometry("fold", kernel_size, dilation, padding, stride)
    output_size = check_sizes("fold", "output_size", output_size, 2)
    kernel, blocks = math.prod(geometry["kernel_size"]), _blocks(output_size, **geometry)
    rows, columns = check_ndim("fold", input, (2, 3)).shape[-2:]
    if rows % kernel or min(blocks) < 1 or columns != math.prod(blocks):
        raise ShapeError(
            f"fold(): argument 'input': expected a multiple of {kernel} rows, and a column for "
            f"each of {blocks} windows, got shape {input.shape}; pass the sizes that unfold was "
            "called with"
        )
    return dispatch1(COL2IM, input, {"output_size": output_size, **geometry})


def _geometry(
    op: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> dict[str, tuple[int, ...]]:
    return {
        "kernel_size": check_sizes(op, "kernel_size", kernel_size, 2),
        "dilation": check_sizes(op, "dilation", dilation, 2),
        "padding": check_sizes(op, "padding", padding, 2, 0),
        "stride": check_sizes(op, "stride", stride, 2),
    }


def _blocks(size: tuple[int, ...], **geometry: tuple[int, ...]) -> list[int]:
    """Return how many windows each dimension has."""
    return [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, *geometry.values(), strict=True)
    ]
