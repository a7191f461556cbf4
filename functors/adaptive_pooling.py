"""Adaptive pooling, which names the size of its result: what users call."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.functors.checks import require_floating
from oneflow_lite.functors.elementwise_checks import real
from oneflow_lite.functors.spatial import check_planes, check_sizes
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

AVG_POOL = op_expr("avg_pool")
ADAPTIVE_AVG_POOL = op_expr("adaptive_avg_pool")
ADAPTIVE_MAX_POOL = op_expr("adaptive_max_pool")


@register_functor("adaptive_avg_pool1d")
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of `output_size` windows that are as equal as they can be.

    Window i holds the elements ⌊i·L / L'⌋ to ⌈(i + 1)·L / L'⌉ - 1.

    Parameters
    ----------
    input : Tensor
        (N, C, L) or (C, L), floating or complex.
    output_size : int or tuple of one int
        L', the number of windows.

    Raises
    ------
    ShapeError
        When `output_size` is negative, or there is nothing to average.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.adaptive_avg_pool1d(flow.tensor([[1., 2., 6.]]), 2)
    tensor([[1.5000, 4.0000]])
    """
    input = require_floating("adaptive_avg_pool1d", input)
    return _adaptive("adaptive_avg_pool1d", ADAPTIVE_AVG_POOL, 1, input, output_size)


@register_functor("adaptive_avg_pool2d")
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of a grid of windows that are as equal as they can be.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W), floating or complex.
    output_size : int or tuple of two
        Height and width of the grid; None keeps the input's.

    Raises
    ------
    ShapeError
        When a size is negative, or there is nothing to average.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.adaptive_avg_pool2d(flow.ones(2, 3, 5, 7), (1, None)).shape
    (2, 3, 1, 7)
    """
    input = require_floating("adaptive_avg_pool2d", input)
    return _adaptive("adaptive_avg_pool2d", ADAPTIVE_AVG_POOL, 2, input, output_size)


@register_functor("adaptive_max_pool1d")
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima of the windows of `adaptive_avg_pool1d`.

    Parameters
    ----------
    input : Tensor
        (N, C, L) or (C, L).
    output_size : int or tuple of one int
        The number of windows.
    return_indices : bool
        Whether the positions of the maxima are returned too.

    Raises
    ------
    ShapeError
        When `output_size` is negative, or there is nothing to compare.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.adaptive_max_pool1d(flow.tensor([[1., 2., 6.]]), 2)
    tensor([[2., 6.]])
    """
    input = real("adaptive_max_pool1d", input)
    pooled = _adaptive("adaptive_max_pool1d", ADAPTIVE_MAX_POOL, 1, input, output_size)
    return pooled if return_indices else pooled[0]


@register_functor("adaptive_max_pool2d")
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the maxima of the windows of `adaptive_avg_pool2d`.

    Parameters
    ----------
    input : Tensor
        (N, C, H, W) or (C, H, W).
    output_size : int or tuple of two
        Height and width of the grid; None keeps the input's.
    return_indices : bool
        Whether the positions of the maxima are returned too.

    Raises
    ------
    ShapeError
        When a size is negative, or there is nothing to compare.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.adaptive_max_pool2d(flow.arange(9.).reshape(1, 3, 3), (1, 2))
    tensor([[[7., 8.]]])
    """
    input = real("adaptive_max_pool2d", input)
    pooled = _adaptive("adaptive_max_pool2d", ADAPTIVE_MAX_POOL, 2, input, output_size)
    return pooled if return_indices else pooled[0]


def _adaptive(op: str, op_expr: OpExpr, spatial: int, input: Tensor, output_size: Any) -> Any:
    check_planes(op, input, spatial)
    size = input.shape[-spatial:]
    if isinstance(output_size, (tuple, list)) and len(output_size) == spatial:
        output_size = [
            n if wanted is None else wanted for n, wanted in zip(size, output_size, strict=True)
        ]
    output_size = check_sizes(op, "output_size", output_size, spatial, 0)
    if op_expr is ADAPTIVE_AVG_POOL and all(
        n and m % n == 0 for m, n in zip(size, output_size, strict=True)
    ):
        kernel_size = tuple([m // n for m, n in zip(size, output_size, strict=True)])
        attrs = {
            "kernel_size": kernel_size,
            "stride": kernel_size,
            "padding": (0,) * spatial,
            "output_size": output_size,
            "divisor": math.prod(kernel_size),
        }
        return dispatch(AVG_POOL, (input,), attrs)
    return dispatch(op_expr, (input,), {"output_size": output_size})
