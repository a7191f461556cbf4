"""Modules that take images apart and put them together: shuffles, blocks, and other sizes."""

from __future__ import annotations

from collections.abc import Sequence

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.layer import layer


@layer("channel_shuffle")
class ChannelShuffle(Module):
    """Takes the channels of (N, C, *) from `groups` groups in turn (Zhang et al., 2017).

    >>> flow.nn.ChannelShuffle(2)(flow.arange(4).reshape(1, 4, 1)).flatten()
    tensor([0, 2, 1, 3])
    """

    groups: int


@layer("pixel_shuffle")
class PixelShuffle(Module):
    """Makes (*, C, H·r, W·r) of (*, C·r², H, W), r being `upscale_factor` (Shi et al., 2016).

    >>> flow.nn.PixelShuffle(2)(flow.arange(4).reshape(4, 1, 1))
    tensor([[[0, 1],
             [2, 3]]])
    """

    upscale_factor: int


@layer("pixel_unshuffle")
class PixelUnshuffle(Module):
    """Undoes `PixelShuffle`.

    >>> flow.nn.PixelUnshuffle(2)(flow.arange(4).reshape(1, 2, 2)).flatten()
    tensor([0, 1, 2, 3])
    """

    downscale_factor: int


@layer("unfold")
class Unfold(Module):
    """Writes the blocks of an input (N, C, H, W) or (C, H, W) as columns, (N, C·block, L).

    L is the number of blocks. Each option is a number, or one for each dimension.

    >>> flow.nn.Unfold(2)(flow.arange(6.0).reshape(1, 2, 3))
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.]])
    """

    kernel_size: int | Sequence[int]
    dilation: int | Sequence[int] = 1
    padding: int | Sequence[int] = 0
    stride: int | Sequence[int] = 1


@layer("fold")
class Fold(Module):
    """Adds up columns of blocks, as `Unfold` returns them, to an output of `output_size`.

    >>> flow.nn.Fold((2, 3), 2)(flow.ones(4, 2))
    tensor([[[1., 2., 1.],
             [1., 2., 1.]]])
    """

    output_size: int | Sequence[int]
    kernel_size: int | Sequence[int]
    dilation: int | Sequence[int] = 1
    padding: int | Sequence[int] = 0
    stride: int | Sequence[int] = 1


@layer("interpolate")
class Upsample(Module):
    """Brings (N, C, *) to another size, or to its own times `scale_factor`.

    size, scale_factor: a number, or a number for each dimension; either is needed.
    mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area".
    align_corners: whether the corners of both grids meet, where the mode is linear or cubic.
    recompute_scale_factor: whether the factors are computed again from the rounded sizes.

    >>> flow.nn.Upsample(scale_factor=2)(flow.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    size: int | Sequence[int] | None = None
    scale_factor: float | Sequence[float] | None = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def __post_init__(self) -> None:
        self.name = type(self).__name__
        factor = self.scale_factor
        if isinstance(factor, Sequence):
            self.scale_factor = tuple(map(float, factor))
        else:
            self.scale_factor = float(factor) if factor else None

    def extra_repr(self) -> str:
        """Return the size or the factor, and the mode."""
        by = "size" if self.scale_factor is None else "scale_factor"
        return f"{by}={getattr(self, by)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images by repeating elements.

    >>> flow.nn.UpsamplingNearest2d(size=(1, 4))(flow.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2., 2.]]]])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images, linear in both dimensions; the corners stay where they are.

    >>> flow.nn.UpsamplingBilinear2d(size=(1, 3))(flow.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)


guard_all(globals())
