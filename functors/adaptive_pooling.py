"""Adaptive pooling, which names the size of its result: what users call."""

from __future__ import annotations

import math
from typing import Annotated, Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.functors import spatial as S
from oneflow_lite.functors.domains import Flag
from oneflow_lite.tensor import Tensor


def grid_size(op: str, argument: str, value: Any, input: Tensor) -> tuple[int, ...]:
    """Return the sizes of the result; None keeps one of the input's."""
    spatial = S.number_of(op)
    if isinstance(value, (tuple, list)) and len(value) == spatial:
        size = input.shape[-spatial:]
        value = [n if wanted is None else wanted for n, wanted in zip(size, value, strict=True)]
    return S.check_sizes(op, argument, value, 0)


_SAYS = "How many windows each dimension gets, or one number for all; None keeps its size."
GridSize = Annotated[Any, S.sizes(_SAYS, ", {first}", grid_size)]


@S.spatially("functional flow", "functional", samples="x(1, 2, S), 2; x(2, S), 1")
def adaptive_avg_pool_nd(input: S.FloatingPlanes, output_size: GridSize) -> Tensor:
    """Return the means of windows that are as equal as they can be.

    Window i of L' holds the elements ⌊i·L / L'⌋ to ⌈(i + 1)·L / L'⌉ - 1 of L.

    >>> flow.adaptive_avg_pool1d(flow.tensor([[1., 2., 6.]]), 2)
    tensor([[1.5000, 4.0000]])
    """
    size = input.shape[-len(output_size) :]
    if not all(n and m % n == 0 for m, n in zip(size, output_size, strict=True)):
        return F.adaptive_avg_pool(input, output_size=output_size)
    step = tuple([m // n for m, n in zip(size, output_size, strict=True)])
    windows = {"kernel_size": step, "stride": step, "padding": (0,) * len(step)}
    return F.avg_pool(input, **windows, output_size=output_size, divisor=math.prod(step))


@S.spatially(
    "functional flow", "functional", samples="x(1, 2, S), 2; x(2, S), 1, True", indices=True
)
def adaptive_max_pool_nd(
    input: S.RealPlanes, output_size: GridSize, return_indices: Flag = False
) -> Any:
    """Return the maxima of the windows of `adaptive_avg_pool1d` and its like.

    return_indices: whether the positions of the maxima are returned too, counted in C order.

    >>> flow.nn.functional.adaptive_max_pool2d(flow.arange(9.).reshape(1, 3, 3), (1, 2))
    tensor([[[7., 8.]]])
    """
    pooled = F.adaptive_max_pool(input, output_size=output_size)
    return pooled if return_indices else pooled[0]
