"""Ops that move elements between channels and positions: what users call."""

from __future__ import annotations

from oneflow_lite.functors.checks import wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Positive
from oneflow_lite.tensor import Tensor


@functor("flow functional", samples="x(1, 4, 2, 3), 2; x(9, 1, 2), 3; x(2, 1, 2), 1")
def pixel_shuffle(input: AnyTensor, upscale_factor: Positive) -> Tensor:
    """Make larger images of fewer channels: (*, C·r², H, W) becomes (*, C, H·r, W·r).

    Shi et al., Real-Time Single Image and Video Super-Resolution, 2016.

    upscale_factor: r.
    ShapeError: when there are fewer than three dimensions, or r² does not divide the channels.

    >>> flow.pixel_shuffle(flow.arange(4.).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    r = upscale_factor
    _check("pixel_shuffle", input, -3, r * r)
    *lead, channels, height, width = input.shape
    blocks = input.reshape(*lead, channels // (r * r), r, r, height, width)
    size = (*lead, channels // (r * r), height * r, width * r)
    return _copy(blocks.movedim((-4, -3), (-3, -1)), size)


@functor("flow functional", samples="x(1, 1, 4, 2), 2; x(2, 3, 6), 3; x(2, 1, 2), 1")
def pixel_unshuffle(input: AnyTensor, downscale_factor: Positive) -> Tensor:
    """Undo `pixel_shuffle`: (*, C, H·r, W·r) becomes (*, C·r², H, W).

    downscale_factor: r.
    ShapeError: when there are fewer than three dimensions, or r does not divide height and width.

    >>> flow.pixel_unshuffle(flow.arange(4.).reshape(1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    r = downscale_factor
    _check("pixel_unshuffle", input, -2, r)
    _check("pixel_unshuffle", input, -1, r)
    *lead, channels, height, width = input.shape
    blocks = input.reshape(*lead, channels, height // r, r, width // r, r)
    size = (*lead, channels * r * r, height // r, width // r)
    return _copy(blocks.movedim((-3, -1), (-4, -3)), size)


@functor("flow functional", samples="x(1, 4, 3), 2; x(2, 6, 1, 2), 3; x(1, 2, 3), 1")
def channel_shuffle(input: AnyTensor, groups: Positive) -> Tensor:
    """Deal the channels of (N, C, *) out to `groups` in turn (Zhang et al., ShuffleNet, 2018).

    ShapeError: when there are fewer than three dimensions, or the channels cannot be dealt.

    >>> flow.channel_shuffle(flow.arange(4.).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    _check("channel_shuffle", input, 1, groups)
    batch, channels, *size = input.shape
    blocks = input.reshape(batch, groups, channels // groups, *size)
    return _copy(blocks.transpose(1, 2), input.shape)


def _copy(moved: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the moved elements in new memory, in C order."""
    y = moved.reshape(shape)
    return y.clone() if y.is_view() else y


def _check(op: str, input: Tensor, dim: int, factor: int) -> None:
    if input.ndim < 3 or input.shape[dim] % factor:
        expected = f"three dimensions or more, and a multiple of {factor} in dimension {dim}"
        raise wrong(op, "input", expected, input, "reshape it, or choose another factor")
