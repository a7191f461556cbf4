"""grid_sample and affine_grid: every mode against PyTorch, positions far outside, errors."""

import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError
from oneflow_lite.testing import Sample, check_op

F = flow.nn.functional
MODES = ["bilinear", "nearest", "bicubic"]
PADDINGS = ["zeros", "border", "reflection"]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
def test_agrees_with_pytorch(mode, padding, align_corners, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    for shape, positions in (
        ((2, 3, 5, 6), (4, 7)),
        ((1, 2, 1, 4), (4, 7)),
        ((2, 2, 3, 4, 5), (3, 4, 2)),
        ((0, 3, 5, 6), (2, 2)),
        ((2, 3, 5, 6), (0, 2)),
    ):
        if mode == "bicubic" and len(shape) == 5:
            continue
        x, grid = numbers(*shape), 1.5 * numbers(shape[0], *positions, len(shape) - 2, seed=1)
        compare(
            lambda x, grid: F.grid_sample(x, grid, mode, padding, align_corners),
            lambda x, grid: torch.nn.functional.grid_sample(x, grid, mode, padding, align_corners),
            x.astype(dtype),
            grid.astype(dtype),
            orders=1,
            rtol=1e-9 if dtype == "float64" else 1e-3,
            atol=1e-9 if dtype == "float64" else 1e-3,
        )


def test_positions_far_outside():
    torch = pytest.importorskip("torch")
    x = np.arange(1.0, 13).reshape(1, 1, 3, 4)
    grid = np.array([[[[1e10, 0.0], [0.0, -1e10], [3.0, 2.5], [np.nan, 0.0], [0.0, np.nan]]]])
    for mode in MODES:
        for padding in PADDINGS[:2]:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                y = F.grid_sample(flow.tensor(x), flow.tensor(grid), mode, padding, True)
            expected = torch.nn.functional.grid_sample(
                torch.tensor(x), torch.tensor(grid), mode, padding, True
            )
            np.testing.assert_allclose(y.numpy(), expected.numpy(), err_msg=f"{mode} {padding}")


def test_what_lies_outside_is_not_read():
    x = np.full((1, 1, 2, 2), np.inf)
    for mode in MODES:
        y = F.grid_sample(flow.tensor(x), flow.full((1, 1, 1, 2), 9.0).double(), mode)
        assert y.item() == 0


def options(mode, padding, align_corners, orders):
    return {
        "interpolation_mode": mode,
        "padding_mode": padding,
        "align_corners": align_corners,
        "orders": orders,
    }


CASES = [
    options("bilinear", "zeros", True, (0, 0)),
    options("bilinear", "reflection", False, (0, 0)),
    options("bicubic", "zeros", False, (0, 1)),
    options("bicubic", "border", False, (0, 0)),
    options("bicubic", "reflection", True, (1, 0)),
    options("bicubic", "reflection", False, (0, 0)),
]


@pytest.mark.slow
def test_ops(device):
    cases = CASES if device == "cpu" else CASES[3:4]
    options = {"degenerate": False, "second_order": device == "cpu", "device": device}
    x, dy, grid = numbers(1, 2, 2, 3), numbers(1, 2, 1, 2), numbers(1, 1, 2, 2, seed=5)
    check_op("plane_sample", [Sample(x, grid, **c) for c in cases], **options)
    samples = [Sample(dy, grid, input_size=(2, 3), **c) for c in cases[:4]]
    check_op("plane_sample_input_grad", samples, **options)
    samples = [Sample(dy, x, grid, **c) for c in cases[:3]]
    check_op("plane_sample_grid_grad", samples, **options)


@pytest.mark.parametrize("align_corners", [False, True])
def test_affine_grids_agree_with_pytorch(align_corners):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    for theta, size in (
        (numbers(2, 2, 3), (2, 1, 3, 4)),
        (numbers(1, 2, 3), (1, 1, 1, 4)),
        (numbers(2, 3, 4), (2, 1, 2, 1, 3)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch: sizes of 1 with aligned corners
            compare(
                lambda t, size=size: F.affine_grid(t, size, align_corners),
                lambda t, size=size: torch.nn.functional.affine_grid(t, size, align_corners),
                theta,
            )


X, G = (2, 3, 4, 5), (2, 6, 7, 2)


@pytest.mark.parametrize(
    ("shapes", "mode", "error", "argument"),
    [
        ((X[1:], G), "bilinear", ShapeError, "grid"),
        ((X, G[1:]), "bilinear", ShapeError, "grid"),
        ((X, (1, *G[1:])), "bilinear", ShapeError, "grid"),
        ((X, (*G[:3], 3)), "bilinear", ShapeError, "grid"),
        (((2, 3, 0, 5), G), "bilinear", ShapeError, "grid"),
        (((2, 3, 4, 5, 6), (2, 1, 1, 1, 3)), "bicubic", ArgumentError, "mode"),
        ((X, G), "cubic", ArgumentError, "mode"),
    ],
)
def test_errors(shapes, mode, error, argument):
    with pytest.raises(error, match=rf"^grid_sample\(\): argument '{argument}'"):
        F.grid_sample(*[flow.zeros(*shape) for shape in shapes], mode)


def test_other_errors():
    with pytest.raises(DTypeError, match=r"^grid_sample\(\): argument 'grid'"):
        F.grid_sample(flow.zeros(*X), flow.zeros(*G).double())
    with pytest.raises(ArgumentError, match=r"^grid_sampler\(\): argument 'padding_mode'"):
        flow.grid_sampler(flow.zeros(*X), flow.zeros(*G), 0, 3, False)
    with pytest.raises(ShapeError, match=r"^affine_grid\(\): argument 'theta'"):
        F.affine_grid(flow.zeros(2, 2, 3), (1, 1, 3, 4))
