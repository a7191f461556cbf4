"""interpolate: sizes and options against PyTorch, bytes, transposes, values that spread, errors."""

import itertools

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from oneflow_lite.testing import Sample, check_op

interpolate = flow.nn.functional.interpolate


def numbers(*shape, dtype="float64"):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


def agree(shape, options, dtype, gradient=True, turned=False):
    torch = pytest.importorskip("torch")
    x = numbers(*shape, dtype=dtype)
    ours, theirs = flow.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y = interpolate(ours, **options)
    if turned:
        options = {**options, "size": options["size"][::-1]}
    expected = torch.nn.functional.interpolate(theirs.mT if turned else theirs, **options)
    expected = expected.mT if turned else expected
    tolerance = 1e-10 if dtype == "float64" else 2e-5
    np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), atol=tolerance)
    if gradient:
        y.square().sum().backward()
        expected.square().sum().backward()
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=20 * tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "linear aligned", "area"])
def test_every_size_of_sequences(mode, n, dtype):
    options = {"mode": mode.split()[0]}
    if mode.endswith("aligned"):
        options["align_corners"] = True
    for size in (1, 2, 3, 5, 7, 8, 13, 20, 29):
        agree((1, 2, n), {**options, "size": size}, dtype)
    for factor in (0.5, 0.7, 1.7, 2.0, 3.0):
        if int(n * factor):
            # Where a scaled position is a whole number, PyTorch's gradient may not be that of what
            # it computes: it works in another precision.
            gradient = not mode.startswith("nearest")
            for again in (None, True):
                extra = {"scale_factor": factor, "recompute_scale_factor": again}
                agree((1, 2, n), {**options, **extra}, dtype, gradient)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(
    "mode", ["bilinear", "bicubic", "bilinear antialias", "bicubic antialias", "lanczos antialias"]
)
def test_images(mode, align_corners, dtype):
    mode, _, antialias = mode.partition(" ")
    if mode == "lanczos" and align_corners:
        return
    options = {"mode": mode, "align_corners": align_corners, "antialias": bool(antialias)}
    for size in ((5, 3), (20, 9), (4, 19), (12, 9), (1, 2)):
        agree((2, 2, 12, 9), {**options, "size": size}, dtype)
    agree((1, 2, 1, 5), {**options, "size": (3, 2)}, dtype)
    for factors in ((0.3, 1.7), (2.5, 0.9)):
        agree((1, 2, 11, 7), {**options, "scale_factor": factors}, dtype)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_single_rows_and_columns(mode, antialias, align_corners):
    options = {"mode": mode, "align_corners": align_corners, "antialias": antialias}
    sizes = [*itertools.product((1, 2, 7), repeat=2), (12, 1), (1, 12)]
    for size, given in itertools.product(sizes, repeat=2):
        # PyTorch 2.13 with antialias shrinks to one column wrongly (the column differs from those
        # of an image that repeats it), so it gets the image on its side then: one row is right.
        agree(
            (1, 3, *given), {**options, "size": size}, "float64", turned=antialias and size[1] == 1
        )


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "trilinear", "area"])
def test_volumes(mode):
    for size in ((5, 3, 11), (3, 4, 5), (1, 7, 2)):
        agree((2, 2, 3, 4, 5), {"mode": mode, "size": size}, "float64")


FACTORS = (0.3, 1 / 3, 0.5, 0.7, 0.99, 1.0, 1.024, 1.1, 1.4, 1.5, 1.99, 2.0, 2.1, 2.7, 3.3)
WAYS = [
    *itertools.product(("nearest", "nearest-exact", "area"), (1, 2, 3), [None], [False]),
    *itertools.product(("linear",), [1], (False, True), [False]),
    *itertools.product(("bilinear", "bicubic"), [2], (False, True), (False, True)),
    ("lanczos", 2, False, True),
    *itertools.product(("trilinear",), [3], (False, True), [False]),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("mode", "spatial", "align_corners", "antialias"), WAYS)
def test_every_factor(mode, spatial, align_corners, antialias, dtype):
    """The matrix of the map is PyTorch's, and the gradient its transpose.

    PyTorch's own gradient is that of another map where a factor leaves or doubles a size.
    """
    torch = pytest.importorskip("torch")
    options = {"mode": mode, "align_corners": align_corners, "antialias": antialias}
    shapes = {1: [(2,), (10,)], 2: [(2, 2), (3, 5), (64, 3)], 3: [(2, 2, 2), (3, 2, 1)]}
    for shape in shapes[spatial]:
        pixels = np.eye(np.prod(shape), dtype=dtype).reshape(-1, 1, *shape)
        mixed = itertools.product((0.7, 1.0, 1.4), repeat=spatial)
        for factor, again in itertools.product((*FACTORS, *mixed), (None, True)):
            options |= {"scale_factor": factor, "recompute_scale_factor": again}
            try:
                expected = torch.nn.functional.interpolate(torch.tensor(pixels), **options).numpy()
            except RuntimeError:  # nothing would be left
                continue
            if antialias and expected.shape[-1] == 1:
                continue  # PyTorch shrinks to one column wrongly
            x = flow.tensor(pixels[:1], requires_grad=True)
            found = interpolate(flow.tensor(pixels), **options).numpy()
            np.testing.assert_allclose(found, expected, atol=3e-5, err_msg=str((shape, options)))
            weight = numbers(*expected.shape[2:]).astype(dtype)
            (interpolate(x, **options) * flow.tensor(weight)).sum().backward()
            by_hand = (expected * weight).reshape(len(expected), -1).sum(1).reshape(shape)
            np.testing.assert_allclose(x.grad.numpy()[0, 0], by_hand, atol=1e-4)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_bytes_are_those_of_pytorch(mode, antialias):
    torch = pytest.importorskip("torch")
    if mode == "nearest" and antialias:
        return
    x = np.random.default_rng(0).integers(0, 256, (1, 3, 16, 29)).astype(np.uint8)
    for given in ({"size": (40, 60)}, {"size": (13, 17)}, {"size": (5, 5)}, {"scale_factor": 1.03}):
        options = {**given, "mode": mode, "antialias": antialias}
        y = interpolate(flow.tensor(x), **options)
        assert y.dtype == flow.uint8
        expected = torch.nn.functional.interpolate(torch.tensor(x), **options).numpy()
        np.testing.assert_array_equal(y.numpy(), expected, err_msg=str(options))


MAPS = [
    {"mode": mode, "align_corners": aligned, "scales": (None, None), "antialias": antialias}
    for mode, aligned, antialias in (
        ("nearest", False, False),
        ("linear", True, False),
        ("cubic", False, False),
        ("cubic", False, True),
    )
]


def test_ops(device):
    for size in ((5, 2), (1, 9)):
        samples = [Sample(numbers(1, 3, 4), output_size=size, **each) for each in MAPS]
        check_op("resample", samples, degenerate=False, device=device)
        samples = [Sample(numbers(1, 3, 4), input_size=size, **each) for each in MAPS]
        check_op("resample_grad", samples, degenerate=False, device=device)


def test_halves_and_the_same_size_is_new_memory():
    x = flow.tensor(numbers(1, 1, 4, 5, dtype="float16"))
    assert interpolate(x, 7, mode="bilinear").dtype == flow.float16
    for mode in ("nearest", "bilinear"):
        y = interpolate(x, (4, 5), mode=mode)
        np.testing.assert_array_equal(y.numpy(), x.numpy())
        assert not np.shares_memory(y.numpy(), x.numpy())


def test_an_infinite_element_stays_where_it_is():
    x = np.zeros((1, 1, 9))
    x[..., 2] = np.inf
    y = interpolate(flow.tensor(x), 18, mode="linear").numpy()
    assert np.isfinite(y[..., :3]).all() and np.isfinite(y[..., 7:]).all()


@pytest.mark.parametrize(
    ("shape", "options", "error", "argument"),
    [
        ((3, 4), {"size": 2}, ShapeError, "input"),
        ((1, 1, 4), {}, ArgumentError, "size"),
        ((1, 1, 4), {"size": 2, "scale_factor": 2}, ArgumentError, "size"),
        ((1, 1, 4), {"size": 0}, ShapeError, "size"),
        ((1, 1, 4), {"size": (2, 2)}, ShapeError, "size"),
        ((1, 1, 4), {"size": 1.5}, ArgumentTypeError, "size"),
        ((1, 1, 4), {"scale_factor": 0.1}, ShapeError, "size"),
        ((1, 1, 4), {"scale_factor": (2, 2)}, ShapeError, "scale_factor"),
        ((1, 1, 4), {"size": 2, "mode": "bilinear"}, ArgumentError, "mode"),
        ((1, 1, 4), {"size": 2, "mode": "smooth"}, ArgumentError, "mode"),
        ((1, 1, 4), {"size": 2, "align_corners": False}, ArgumentError, "align_corners"),
        ((1, 1, 4), {"size": 2, "antialias": True}, ArgumentError, "antialias"),
        ((1, 1, 4, 4), {"size": 2, "mode": "lanczos"}, ArgumentError, "antialias"),
        (
            (1, 1, 4),
            {"size": 2, "recompute_scale_factor": True},
            ArgumentError,
            "recompute_scale_factor",
        ),
    ],
)
def test_errors(shape, options, error, argument):
    with pytest.raises(error, match=rf"^interpolate\(\): argument '{argument}'"):
        interpolate(flow.ones(*shape), **options)


def test_other_dtypes_are_refused():
    for dtype in (flow.int64, flow.complex64, flow.bool):
        with pytest.raises(DTypeError, match=r"^interpolate\(\): argument 'input'"):
            interpolate(flow.ones(1, 1, 4, dtype=dtype), 2)
