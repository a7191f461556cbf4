"""Functions that users call to resize images, to read them at a grid, and to make grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError, arg_error
from oneflow_lite.functors.declaring.checks import check_int, check_ndim, real
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    Flag,
    FloatOrFloats,
    IntOrInts,
    RealFloating,
    attribute,
    choice,
    tensor,
)
from oneflow_lite.functors.spatial import check_ratios, check_sizes, same_dtype
from oneflow_lite.tensors.tensor import Tensor

# The map of each mode, and the numbers of spatial dimensions that it is for.
_WAYS = {
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
    expected, hint = "a real floating dtype, or uint8", "convert it with .float()"
    raise arg_error(op, argument, expected, input.dtype, hint, DTypeError)


_SHAPED = "Of shape (N, C, *size) with one to three sizes; floating or uint8."
_UNFIT = {"DTypeError": "When {x} has another dtype.", "ShapeError": "When {x} has another rank."}
Images = Annotated[Tensor, tensor(_images, "", _SHAPED, "x(1, 2, 3, 4)", **_UNFIT)]
Mode = Annotated[str, choice(*_WAYS)]


@functor(
    "functional functional.upsample",
    samples="""x(1, 2, 3), 5; x(1, 1, 3, 2), scale_factor=2.0
        x(1, 1, 2, 3, 2), (3, 2, 4), mode="trilinear"
        x(1, 2, 3), 5, mode="linear", align_corners=True; x(1, 1, 3, 4), (5, 2), mode="bilinear"
        x(1, 1, 3, 4), scale_factor=(1.7, 0.6), mode="bicubic"; x(1, 1, 5), 3, mode="area"
        x(1, 1, 5, 4), (2, 3), mode="bilinear", antialias=True; x(1, 1, 3), 7, mode="nearest-exact"
        x(1, 1, 5, 4), (2, 3), mode="bicubic", antialias=True""",
)
def interpolate(
    input: Images,
    size: IntOrInts = None,
    scale_factor: FloatOrFloats = None,
    mode: Mode = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: Flag = False,
) -> Tensor:
    """Resize sequences, images or volumes; `upsample` is the older name.

    size: of the result, a number or a sequence with a number for each dimension; this or
      `scale_factor` is needed.
    scale_factor: the quotient of the sizes of result and input, as a number or a sequence.
    mode: "linear" is for sequences, "bilinear", "bicubic" and "lanczos" for images, "trilinear" for
      volumes; "area" averages.
    align_corners: whether the centres of the first and last elements stay where they are, or their
      edges, as by default; not for "nearest" and "area".
    recompute_scale_factor: compute positions with the quotient of the sizes, not `scale_factor`.
    antialias: take all input elements that a shrunk element covers into account; needed by
      "lanczos", and possible with "bilinear" and "bicubic".
    ArgumentError: when options do not go together.
    ShapeError: when a size is too small, or sizes are too many or too few.

    >>> flow.nn.functional.interpolate(flow.tensor([[[1., 2.]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.2500, 1.7500, 2.0000]]])
    """
    spatial = input.ndim - 2
    way, numbers = _WAYS[mode]
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
    size = check_sizes("interpolate", "size", size, 0 if way == "area" else 1, spatial)
    if way == "area":
        return getattr(F, f"adaptive_avg_pool{spatial}d")(input, size)
    if antialias or (way == "cubic" and input.dtype.char == "B"):
        # PyTorch leaves a dimension alone whose size stays, whatever the factor.
        sizes = zip(input.shape[2:], size, scales, strict=True)
        scales = tuple([None if before == after else s for before, after, s in sizes])
    options = {"align_corners": bool(align_corners), "scales": scales, "antialias": antialias}
    return F.resample(input, output_size=size, mode=way, **options)


def _demand(holds: Any, argument: str, expected: str, got: Any) -> None:
    if not holds:
        hint = "see help(flow.nn.functional.interpolate) for what goes together"
        raise arg_error("interpolate", argument, expected, repr(got), hint, ArgumentError)


@functor("functional", samples="x(1, 1, 3, 2), 4; x(1, 1, 3, 2), None, 2")
def upsample_nearest(
    input: Images, size: IntOrInts = None, scale_factor: FloatOrFloats = None
) -> Tensor:
    """Do what `interpolate` does in mode "nearest"."""
    return interpolate(input, size, scale_factor)


@functor("functional", samples="x(1, 1, 3, 2), 4; x(1, 1, 3, 2), None, 2")
def upsample_bilinear(
    input: Images, size: IntOrInts = None, scale_factor: FloatOrFloats = None
) -> Tensor:
    """Do what `interpolate` does in mode "bilinear", with aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


# --- Reading at a grid ----------------------------------------------------------------------------

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@functor(
    "functional",
    samples="""
        x(1, 2, 3, 4), unit(1, 2, 2, 2); x(1, 1, 2, 3, 2), unit(1, 1, 2, 2, 3), "bilinear", "border"
        x(1, 1, 3, 4), x(1, 2, 2, 2), "bicubic", "reflection", True
        x(1, 1, 3, 4), x(1, 2, 2, 2); x(1, 1, 3, 4), unit(1, 1, 2, 2), 'nearest'""",
)
def grid_sample(
    input: RealFloating,
    grid: RealFloating,
    mode: Annotated[str, choice(*_MODES)] = "bilinear",
    padding_mode: Annotated[str, choice(*_PADDINGS)] = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Read images or volumes at a grid (Jaderberg et al., Spatial Transformer Networks, 2015).

    input: of shape (N, C, H, W) or (N, C, D, H, W).
    grid: of shape (N, *positions, 2) or (N, *positions, 3), and of the input's dtype: x, y (and z)
      from -1, the first column, to 1, the last one.
    mode: the way in which values between elements are made; "bicubic" is for images alone.
    padding_mode: the values outside: zeros, the nearest element of the border, or the mirror image.
    align_corners: whether -1 and 1 are the centres of the first and last elements (True), or their
      outer edges (False, the default).
    returns: (N, C, *positions).
    ShapeError: when the shapes do not go together.

    >>> flow.nn.functional.grid_sample(flow.tensor([[[[1., 3.]]]]), flow.zeros(1, 1, 1, 2))
    tensor([[[[2.]]]])
    """
    return _sampled("grid_sample", input, grid, mode, padding_mode, align_corners, (4, 5))


def _mode_number(op: str, argument: str, number: Any) -> int:
    if number in range(3):
        return number
    raise arg_error(op, argument, "0, 1 or 2", repr(number), "pass one of them", ArgumentError)


_OTHER = {"ArgumentError": "When {x} is not 0, 1 or 2."}
ModeNumber = Annotated[int, attribute(_mode_number, raises=_OTHER)]


def _numbered(name: str, ndims: tuple[int, ...], samples: str) -> Any:
    """Declare a function that PyTorch's grid_sample calls, with numbers in place of words."""

    def author(
        input: RealFloating,
        grid: RealFloating,
        interpolation_mode: ModeNumber,
        padding_mode: ModeNumber,
        align_corners: Flag,
    ) -> Tensor:
        """Do what `nn.functional.grid_sample` does, with the numbers of its modes.

        interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic.
        padding_mode: 0 zeros, 1 border, 2 reflection.
        """
        mode, padding = _MODES[interpolation_mode], _PADDINGS[padding_mode]
        return _sampled(name, input, grid, mode, padding, align_corners, ndims)

    author.__name__ = name
    return functor("flow", samples=samples)(author)


grid_sampler = _numbered("grid_sampler", (4, 5), "x(1, 1, 3, 4), unit(1, 2, 2, 2), 0, 0, False")
grid_sampler_2d = _numbered("grid_sampler_2d", (4,), "x(1, 1, 3, 4), x(1, 2, 2, 2), 2, 1, True")
_VOLUME = "x(1, 1, 2, 3, 2), unit(1, 1, 2, 2, 3), 0, 1, True"
grid_sampler_3d = _numbered("grid_sampler_3d", (5,), _VOLUME)


def _sampled(
    op: str, input: Tensor, grid: Tensor, mode: str, padding: str, aligned: Any, ndims: Any
) -> Tensor:
    spatial = input.ndim - 2
    fits = input.ndim in ndims and grid.ndim == input.ndim and 0 not in input.shape[2:]
    if not fits or (grid.shape[0], grid.shape[-1]) != (input.shape[0], spatial):
        of = f"of {' or '.join(map(str, ndims))} dimensions with elements"
        expected = f"shape (N, *positions, {spatial}) for an input (N, C, *size) {of}"
        got = f"shape {grid.shape}, input {input.shape}"
        raise arg_error(op, "grid", expected, got, "make them go together")
    same_dtype(op, input, grid=grid)
    if mode == "bicubic" and spatial != 2:
        expected, hint = "'bilinear' or 'nearest' for volumes", "choose another mode"
        raise arg_error(op, "mode", expected, repr(mode), hint, ArgumentError)
    attrs = {"interpolation_mode": mode, "padding_mode": padding, "align_corners": bool(aligned)}
    return F.plane_sample(input, grid, **attrs, orders=(0,) * spatial)


@functor(
    "functional flow.affine_grid_generator",
    samples="x(2, 2, 3), (2, 1, 2, 3); x(1, 3, 4), (1, 1, 2, 1, 3), True",
)
def affine_grid(
    theta: RealFloating, size: Sequence[int], align_corners: bool | None = None
) -> Tensor:
    """Return the grid by which `grid_sample` maps images or volumes affinely.

    theta: matrices of shape (N, 2, 3) for images, (N, 3, 4) for volumes.
    size, align_corners: of the result (N, C, *size) of `grid_sample`, and as there.
    returns: (N, *size, 2 or 3).
    ShapeError: when theta and size do not go together.

    >>> flow.nn.functional.affine_grid(flow.eye(2, 3)[None], (1, 1, 1, 2)).flatten()
    tensor([-0.5000,  0.0000,  0.5000,  0.0000])
    """
    size = tuple([check_int("affine_grid", "size", n, 1) for n in size])
    spatial = len(size) - 2
    if spatial not in (2, 3) or theta.shape != (size[0], spatial, spatial + 1):
        expected = "shape (N, 2, 3) for a size of 4 numbers, (N, 3, 4) for one of 5"
        got = f"shape {theta.shape} and size {size}"
        raise arg_error("affine_grid", "theta", expected, got, "make them go together")
    like = {"dtype": theta.dtype, "device": theta.device}
    ends = [1.0 if align_corners and n > 1 else 1 - 1 / n for n in size[2:]]
    # One position alone is at 0.0, not at -0.0.
    lines = [F.linspace(0.0 - end, end, n, **like) for end, n in zip(ends, size[2:], strict=True)]
    axes = F.meshgrid(*lines, indexing="ij")
    points = F.stack([*reversed(axes), F.ones(size[2:], **like)], dim=-1)
    grid = points.reshape(1, -1, spatial + 1) @ theta.transpose(1, 2)
    return grid.reshape(size[0], *size[2:], spatial)
