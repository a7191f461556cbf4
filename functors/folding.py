"""nn.functional.unfold and fold, which lay the windows of images side by side: what users call."""

from __future__ import annotations

import math
from typing import Annotated, Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.functors.checks import check_ndim, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import FloatingOrComplex
from oneflow_lite.functors.spatial import sizes
from oneflow_lite.tensor import Tensor

Two = Annotated[Any, sizes("One for both dimensions, or two, as in `conv2d`.", ", 1, 2")]
Pad = Annotated[Any, sizes("How much is added on both sides.", ", 0, 2")]


@functor("functional", samples="x(1, 2, 3, 4), 2; x(2, 3, 4), (2, 1), (1, 2), (1, 0), (2, 1)")
def functional_unfold(
    input: FloatingOrComplex, kernel_size: Two, dilation: Two = 1, padding: Pad = 0, stride: Two = 1
) -> Tensor:
    """Return the windows of images as columns.

    input: of shape (N, C, H, W) or (C, H, W).
    returns: (N, C·kernel, number of windows), or the same without N.
    ShapeError: when shapes or sizes do not fit.

    >>> flow.nn.functional.unfold(flow.arange(4.).reshape(1, 1, 4), (1, 2))
    tensor([[0., 1., 2.],
            [1., 2., 3.]])
    """
    geometry = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding}
    blocks = _blocks(check_ndim("functional.unfold", input, (3, 4)).shape, stride, **geometry)
    if min(blocks) < 1:
        expected = f"windows that fit into the input, shape {input.shape}"
        got, mend = f"{kernel_size} with padding {padding}", "use a smaller window or more padding"
        raise wrong("functional.unfold", "kernel_size", expected, got, mend)
    return F.im2col(input, **geometry, stride=stride)


@functor("functional", samples="x(1, 8, 6), (3, 4), 2; x(2, 3), (2, 4), (1, 2), (2, 1), 0, (2, 1)")
def fold(
    input: FloatingOrComplex,
    output_size: Two,
    kernel_size: Two,
    dilation: Two = 1,
    padding: Pad = 0,
    stride: Two = 1,
) -> Tensor:
    """Add columns back to the windows of images: the transposed map of `nn.functional.unfold`.

    input: of shape (N, C·kernel, number of windows), or without N.
    output_size: height and width of the images.
    returns: (N, C, *output_size), or the same without N.
    ShapeError: when shapes or sizes do not fit.

    >>> flow.nn.functional.fold(flow.ones(2, 3), (1, 4), (1, 2))
    tensor([[[1., 2., 2., 1.]]])
    """
    geometry = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding}
    kernel, blocks = math.prod(kernel_size), _blocks(output_size, stride, **geometry)
    rows, columns = check_ndim("fold", input, (2, 3)).shape[-2:]
    if rows % kernel or min(blocks) < 1 or columns != math.prod(blocks):
        expected = f"a multiple of {kernel} rows, and a column for each of {blocks} windows"
        raise wrong("fold", "input", expected, input, "pass the sizes that unfold was called with")
    return F.col2im(input, output_size=output_size, **geometry, stride=stride)


def _blocks(shape: Any, stride: Any, kernel_size: Any, dilation: Any, padding: Any) -> list[int]:
    """Return how many windows each dimension has."""
    each = zip(shape[-2:], stride, kernel_size, dilation, padding, strict=True)
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, s, k, d, p in each]
