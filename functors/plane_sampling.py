"""grid_sample and what makes grids for it: what users call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors.checks import check_int, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Flag, RealFloating, attribute, choice
from oneflow_lite.functors.spatial import same_dtype
from oneflow_lite.tensor import Tensor

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@functor(
    "functional",
    samples="""
        x(1, 2, 3, 4), unit(1, 2, 2, 2); x(1, 1, 2, 3, 2), unit(1, 1, 2, 2, 3), "bilinear", "border"
        x(1, 1, 3, 4), x(1, 2, 2, 2), "bicubic", "reflection", True
        x(1, 1, 3, 4), x(1, 2, 2, 2); x(1, 1, 3, 4), unit(1, 1, 2, 2), "nearest"
    """,
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
    mode: how values between elements are made; "bicubic" is for images alone.
    padding_mode: what lies outside: zeros, the nearest element of the border, or the mirror image.
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
    raise wrong(op, argument, "0, 1 or 2", repr(number), "pass one of them", ArgumentError)


_OTHER = {"ArgumentError": "When {x} is not 0, 1 or 2."}
ModeNumber = Annotated[int, attribute(_mode_number, raises=_OTHER)]


def _numbered(name: str, ndims: tuple[int, ...], samples: str) -> Any:
    """Declare the function that PyTorch has below grid_sample, with numbers for words."""

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
        raise wrong(op, "grid", expected, got, "make them go together")
    same_dtype(op, input, grid=grid)
    if mode == "bicubic" and spatial != 2:
        expected, mend = "'bilinear' or 'nearest' for volumes", "choose another mode"
        raise wrong(op, "mode", expected, repr(mode), mend, ArgumentError)
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
        raise wrong("affine_grid", "theta", expected, got, "make them go together")
    like = {"dtype": theta.dtype, "device": theta.device}
    ends = [1.0 if align_corners and n > 1 else 1 - 1 / n for n in size[2:]]
    # One position alone is at 0.0, not at -0.0.
    lines = [F.linspace(0.0 - end, end, n, **like) for end, n in zip(ends, size[2:], strict=True)]
    axes = F.meshgrid(*lines, indexing="ij")
    points = F.stack([*reversed(axes), F.ones(size[2:], **like)], dim=-1)
    grid = points.reshape(1, -1, spatial + 1) @ theta.transpose(1, 2)
    return grid.reshape(size[0], *size[2:], spatial)
