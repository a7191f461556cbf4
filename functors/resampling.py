"""interpolate and its older names: what users call; the arithmetic is that of `resample`."""

from __future__ import annotations

from typing import Annotated, Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError
from oneflow_lite.functors.checks import check_ndim, real, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Flag, choice, tensor
from oneflow_lite.functors.spatial import check_ratios, check_sizes
from oneflow_lite.tensor import Tensor

# The map of each mode, and the numbers of spatial dimensions that it is for.
_MODES = {
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "trilinear": ("linear", (3,)),
    "bicubic": ("cubic", (2,)),
    "lanczos": ("lanczos", (2,)),
    "area": ("area", (1, 2, 3)),
}


def _images(op: str, input: Tensor, argument: str) -> Tensor:
    if real(op, input, argument).dtype.kind in "f" or input.dtype.char == "B":
        return check_ndim(op, input, (3, 4, 5), argument)
    expected, mend = "a real floating dtype, or uint8", "convert it with .float()"
    raise wrong(op, argument, expected, input.dtype, mend, DTypeError)


_SHAPED = "Of shape (N, C, *size) with one to three sizes; floating or uint8."
_RAISES = {
    "DTypeError": "When {x} is of another dtype.",
    "ShapeError": "When {x} has other dimensions.",
}
Images = Annotated[Tensor, tensor(_images, "", _SHAPED, "x(1, 2, 3, 4)", **_RAISES)]
Mode = Annotated[str, choice(*_MODES)]


@functor(
    "functional functional.upsample",
    samples="""
        x(1, 2, 3), 5; x(1, 1, 3, 2), scale_factor=2.0
        x(1, 1, 2, 3, 2), (3, 2, 4), mode="trilinear"
        x(1, 2, 3), 5, mode="linear", align_corners=True; x(1, 1, 3, 4), (5, 2), mode="bilinear"
        x(1, 1, 3, 4), scale_factor=(1.7, 0.6), mode="bicubic"; x(1, 1, 5), 3, mode="area"
        x(1, 1, 5, 4), (2, 3), mode="bilinear", antialias=True; x(1, 1, 3), 7, mode="nearest-exact"
        x(1, 1, 5, 4), (2, 3), mode="bicubic", antialias=True""",
)
def interpolate(
    input: Images,
    size: Any = None,
    scale_factor: Any = None,
    mode: Mode = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: Flag = False,
) -> Tensor:
    """Resize sequences, images or volumes; `upsample` is the older name.

    size: int or one for each dimension: the size of the result; this or `scale_factor` is needed.
    scale_factor: number or one for each dimension: the size of the result over that of the input.
    mode: "linear" is for sequences, "bilinear" and "bicubic" are for images, "trilinear" for
      volumes; "area" averages.
    align_corners: whether the centres of the first and last elements stay where they are (True), or
      their edges (False, the default); not for "nearest" and "area".
    recompute_scale_factor: compute positions with the quotient of the sizes, not `scale_factor`.
    antialias: whether all that a shrunk element covers has a part in it; only for images, with
      "bilinear", "bicubic" and "lanczos".
    ArgumentError: when options do not go together.
    ShapeError: when a size is too small, or there are too many or too few.

    >>> flow.nn.functional.interpolate(flow.tensor([[[1., 2.]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.2500, 1.7500, 2.0000]]])
    """
    spatial = input.ndim - 2
    way, numbers = _MODES[mode]
    _demand(spatial in numbers, "mode", f"one for an input of {input.ndim} dimensions", mode)
    if way in ("nearest", "nearest-exact", "area"):
        _demand(align_corners is None, "align_corners", f"none for mode {mode!r}", align_corners)
    if antialias or mode == "lanczos":
        fits = antialias and mode in ("bilinear", "bicubic", "lanczos")
        _demand(fits, "antialias", f"{not antialias} for mode {mode!r}", antialias)
        _demand(not (align_corners and mode == "lanczos"), "align_corners", "False", align_corners)
    either = (size is None) != (scale_factor is None)
    _demand(either, "size", "either it or scale_factor", (size, scale_factor))
    scales: tuple[float | None, ...] = (None,) * spatial
    if scale_factor is not None:
        given = check_ratios("interpolate", "scale_factor", scale_factor, spatial)
        size = [int(n * each) for n, each in zip(input.shape[2:], given, strict=True)]
        scales = scales if recompute_scale_factor else given
    else:
        _demand(not recompute_scale_factor, "recompute_scale_factor", "a scale_factor", "size")
    size = check_sizes("interpolate", "size", size, spatial=spatial)
    if way == "area":
        return getattr(F, f"adaptive_avg_pool{spatial}d")(input, size)
    options = {"align_corners": bool(align_corners), "scales": scales, "antialias": antialias}
    return F.resample(input, output_size=size, mode=way, **options)


def _demand(holds: Any, argument: str, expected: str, got: Any) -> None:
    if not holds:
        mend = "see help(flow.nn.functional.interpolate) for what goes together"
        raise wrong("interpolate", argument, expected, repr(got), mend, ArgumentError)


@functor("functional", samples="x(1, 1, 3, 2), 4; x(1, 1, 3, 2), None, 2")
def upsample_nearest(input: Images, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Do what `interpolate` does in mode "nearest"."""
    return interpolate(input, size, scale_factor)


@functor("functional", samples="x(1, 1, 3, 2), 4; x(1, 1, 3, 2), None, 2")
def upsample_bilinear(input: Images, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Do what `interpolate` does in mode "bilinear", with aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)
