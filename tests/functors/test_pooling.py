"""Pooling: values and derivatives against PyTorch, ties and NaN, windows at the border, errors."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentTypeError, DTypeError, FlowError, ShapeError
from oneflow_lite.testing import Fixed, Sample, check_op

F = flow.nn.functional


def numbers(*shape, seed=0):
    """Distinct numbers, so that no maximum is a tie."""
    rng = np.random.default_rng(seed)
    return rng.permutation(math.prod(shape)).reshape(shape) * 0.37 - 3.0


WINDOWS_2D = {
    "halves": ((2, 3, 6, 4), (2,), {}),
    "unbatched": ((3, 6, 4), (2,), {}),
    "rest_left_out": ((1, 2, 7, 5), (2,), {}),
    "ceil": ((1, 2, 7, 5), (2,), {"ceil_mode": True}),
    "ceil_begins_outside": ((1, 1, 5, 5), (1, 3), {"ceil_mode": True}),
    "overlapping": ((2, 2, 6, 7), ((3, 2),), {"stride": (2, 1)}),
    "far_apart": ((1, 2, 7, 8), (2, 3), {}),
    "padded": ((1, 2, 5, 6), (3, 2, 1), {}),
    "padded_unevenly": ((1, 2, 5, 6), ((4, 3),), {"stride": 1, "padding": (2, 1)}),
    "padded_and_ceil": ((1, 2, 6, 6), (3, 2, 1), {"ceil_mode": True}),
    "whole": ((2, 3, 4, 5), ((4, 5),), {}),
    "one": ((1, 2, 3, 3), (1,), {}),
    "large": ((1, 1, 20, 20), (17, 3), {}),
    "empty_batch": ((0, 2, 4, 4), (2,), {}),
}
WINDOWS_1D = {
    "halves": ((2, 3, 6), (2,), {}),
    "unbatched": ((3, 7), (3, 2), {"padding": 1}),
    "ceil": ((2, 3, 7), ((2,),), {"ceil_mode": True}),
}
MAX = {
    "dilated": ((1, 2, 8, 9), (3, 2, 1, (2, 3)), {}),
    "dilated_apart": ((1, 1, 8, 8), (2, 4, 0, 3), {}),
    "dilated_with_padding": ((1, 1, 6, 6), (3, 1, 1, 2), {"ceil_mode": True}),
}
AVERAGE = {
    "padding_left_out": ((1, 2, 5, 6), (3, 2, 1, False, False), {}),
    "padding_left_out_and_ceil": ((1, 2, 6, 5), (3, 2, 1, True, False), {}),
    "own_divisor": ((1, 2, 5, 6), (3, 2, 1), {"divisor_override": 5}),
    "negative_divisor": ((1, 2, 4, 4), (2,), {"divisor_override": -2}),
}
ADAPTIVE = {
    "even": ((2, 3, 6, 4), ((3, 2),), {}),
    "uneven": ((2, 3, 7, 5), ((3, 4),), {}),
    "whole": ((2, 3, 5, 4), (1,), {}),
    "unbatched_and_kept": ((3, 5, 4), ((None, 2),), {}),
    "grown": ((1, 2, 3, 2), ((5, 4),), {}),
    "same": ((1, 2, 3, 2), ((3, 2),), {}),
    "empty_batch": ((0, 2, 4, 4), (2,), {}),
}
ADAPTIVE_1D = {"uneven": ((2, 3, 7), (3,), {}), "unbatched": ((3, 5), ((2,),), {})}
CASES = [
    pytest.param(op, *case, id=f"{op}-{name}")
    for op, table in (
        ("max_pool2d", {**WINDOWS_2D, **MAX}),
        ("max_pool1d", WINDOWS_1D),
        ("avg_pool2d", {**WINDOWS_2D, **AVERAGE}),
        ("avg_pool1d", WINDOWS_1D),
        ("adaptive_avg_pool2d", ADAPTIVE),
        ("adaptive_avg_pool1d", ADAPTIVE_1D),
        ("adaptive_max_pool2d", ADAPTIVE),
        ("adaptive_max_pool1d", ADAPTIVE_1D),
    )
    for name, case in table.items()
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("op", "shape", "args", "options"), CASES)
def test_agrees_with_pytorch(op, shape, args, options, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    if "max" in op:
        options = {**options, "return_indices": True}
    compare(
        lambda x: getattr(F, op)(x, *args, **options),
        lambda x: getattr(torch.nn.functional, op)(x, *args, **options),
        numbers(*shape).astype(dtype),
        orders=2 if dtype == "float64" else 1,
        atol=1e-4 if dtype == "float32" else 1e-9,
    )


SMALL = numbers(1, 2, 4, 3)
AVERAGES = {"kernel_size": (2, 2), "stride": (2, 1), "padding": (1, 1), "output_size": (3, 4)}
INDICES = np.array([[[0, 3], [2, 2]], [[5, 1], [1, 1]]])
SAMPLES = {
    "max_pool1d": [Sample(numbers(2, 5), 2), Sample(numbers(1, 2, 4), 3, 1, 1)],
    "max_pool2d": [Sample(SMALL, 2), Sample(SMALL, 3, 1, 1), Sample(SMALL, 2, 1, 0, (2, 1))],
    "avg_pool1d": [Sample(numbers(2, 5), 2), Sample(numbers(1, 2, 4), 3, 1, 1)],
    "avg_pool2d": [
        Sample(SMALL, 2),
        Sample(SMALL, 3, 1, 1),
        Sample(SMALL, 3, 2, 1, True, False),
        Sample(SMALL, 2, divisor_override=3),
    ],
    "adaptive_avg_pool1d": [Sample(numbers(2, 5), 3)],
    "adaptive_avg_pool2d": [Sample(SMALL, (3, 2)), Sample(SMALL, 1)],
    "adaptive_max_pool1d": [Sample(numbers(2, 5), 3)],
    "adaptive_max_pool2d": [Sample(SMALL, (3, 2)), Sample(SMALL, 1)],
    "plane_put": [
        Sample(numbers(2, 2, 2), Fixed(INDICES), input_size=(2, 3), disjoint=False),
        Sample(numbers(2, 2), Fixed(INDICES[:, 0]), input_size=(6,), disjoint=True),
    ],
    "plane_take": [Sample(numbers(2, 2, 3), Fixed(INDICES), spatial=2)],
    "avg_pool_grad": [
        Sample(numbers(1, 3, 4), input_size=(4, 3), divisor=4, **AVERAGES),
        Sample(numbers(1, 3, 4), input_size=(4, 3), divisor=((1, 2, 2), (1, 2, 2, 1)), **AVERAGES),
    ],
    "adaptive_avg_pool_grad": [Sample(numbers(2, 2, 3), input_size=(3, 5))],
}


@pytest.mark.parametrize("op", SAMPLES)
def test_op(op, device):
    check_op(op, SAMPLES[op], device=device, degenerate=False)


TIES = {
    "equal": [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
    "later_equal": [[0.0, 2.0, 1.0], [2.0, 2.0, 1.0], [2.0, 0.0, 2.0]],
    "nan": [[0.0, math.nan, 1.0], [math.nan, 5.0, 1.0], [0.0, 7.0, math.nan]],
    "infinite": [
        [-math.inf, -math.inf, math.inf],
        [-math.inf, -math.inf, 1.0],
        [0.0, math.inf, 0.0],
    ],
    "all_minus_infinity": [[-math.inf] * 3] * 3,
}


@pytest.mark.parametrize("args", [(2, 1), (2,), (3, 2, 1), (2, 2, 1), (3, 1, 1)])
@pytest.mark.parametrize("values", TIES.values(), ids=TIES)
def test_ties_and_nan_as_in_pytorch(values, args):
    torch = pytest.importorskip("torch")
    array = np.array(values)[None]
    x, t = flow.tensor(array).requires_grad_(), torch.tensor(array, requires_grad=True)
    y, indices = F.max_pool2d(x, *args, return_indices=True)
    expected, places = torch.nn.functional.max_pool2d(t, *args, return_indices=True)
    np.testing.assert_array_equal(y.numpy(), expected.detach().numpy())
    np.testing.assert_array_equal(indices.numpy(), places.numpy())
    y.backward(flow.ones_like(y))
    expected.backward(torch.ones_like(expected))
    np.testing.assert_array_equal(x.grad.numpy(), t.grad.numpy())


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_maxima_of_integers(dtype):
    x = flow.tensor(np.array([[[3, 1, 2], [0, 0, 7]]], dtype))
    y = F.max_pool2d(x, 2, 1, 1)
    assert y.dtype == x.dtype
    assert y.tolist() == [[[3, 3, 2, 2], [3, 3, 7, 7], [0, 0, 7, 7]]]


def test_maxima_of_negative_integers_in_the_padding():
    x = flow.tensor(np.full((1, 2, 2), -128, np.int8))
    y, indices = F.max_pool2d(x, 2, 2, 1, return_indices=True)
    assert y.tolist() == [[[-128, -128], [-128, -128]]]
    assert indices.tolist() == [[[0, 1], [2, 3]]]


def test_halves():
    x = flow.tensor(np.full((1, 1, 1, 4096), 100.0, np.float16))
    y = F.avg_pool2d(x, (1, 4096))
    assert y.dtype == flow.float16  # and the sum did not overflow
    assert y.item() == 100.0
    assert F.max_pool2d(x, (1, 2)).dtype == flow.float16


def test_result_shares_no_memory():
    x = flow.tensor(numbers(1, 2, 2, 2))
    for y in (F.avg_pool2d(x, 1), F.max_pool2d(x, 1), F.adaptive_avg_pool2d(x, 2)):
        assert np.array_equal(y.numpy(), x.numpy())
        assert not np.shares_memory(y.numpy(), x.numpy())


X = (2, 4, 8, 8)
ERRORS = {
    "max of 2 dimensions": ("max_pool2d", (8, 8), (2,), {}, ShapeError, "input"),
    "max of 5 dimensions": ("max_pool2d", (1, 1, 1, 8, 8), (2,), {}, ShapeError, "input"),
    "max without channels": ("max_pool2d", (2, 0, 8, 8), (2,), {}, ShapeError, "input"),
    "kernel 0": ("max_pool2d", X, (0,), {}, ShapeError, "kernel_size"),
    "kernel of 3": ("max_pool2d", X, ((2, 2, 2),), {}, ShapeError, "kernel_size"),
    "kernel is text": ("max_pool2d", X, ("a",), {}, ArgumentTypeError, "kernel_size"),
    "kernel too large": ("max_pool2d", X, (9,), {}, ShapeError, "kernel_size"),
    "stride 0": ("max_pool2d", X, (2, 0), {}, ShapeError, "stride"),
    "padding too large": ("max_pool2d", X, (2, 2, 2), {}, ShapeError, "padding"),
    "padding negative": ("max_pool2d", X, (2, 2, -1), {}, ShapeError, "padding"),
    "dilation 0": ("max_pool2d", X, (2, 2, 0, 0), {}, ShapeError, "dilation"),
    "1d of 4 dimensions": ("max_pool1d", X, (2,), {}, ShapeError, "input"),
    "average kernel 0": ("avg_pool2d", X, (0,), {}, ShapeError, "kernel_size"),
    "average padding": ("avg_pool2d", X, (2, 2, 2), {}, ShapeError, "padding"),
    "divisor 0": ("avg_pool2d", X, (2,), {"divisor_override": 0}, ShapeError, "divisor_override"),
    "adaptive negative": ("adaptive_avg_pool2d", X, (-1,), {}, ShapeError, "output_size"),
    "adaptive of 3": ("adaptive_avg_pool2d", X, ((1, 2, 3),), {}, ShapeError, "output_size"),
    "adaptive empty": ("adaptive_avg_pool2d", (2, 4, 0, 8), (1,), {}, ShapeError, "input"),
    "adaptive max": ("adaptive_max_pool1d", (2, 8), (1.5,), {}, ArgumentTypeError, "output_size"),
}


@pytest.mark.parametrize(
    ("op", "shape", "args", "options", "error", "argument"), ERRORS.values(), ids=ERRORS
)
def test_bad_arguments(op, shape, args, options, error, argument):
    x = flow.ones(*shape, requires_grad=True)
    with pytest.raises(error, match=rf"^{op}\(\): argument '{argument}'") as caught:
        getattr(F, op)(x, *args, **options)
    assert isinstance(caught.value, FlowError)
    assert isinstance(caught.value, TypeError if error is ArgumentTypeError else RuntimeError)
    assert x.grad is None and x._version == 0 and x.is_leaf


@pytest.mark.parametrize("op", ["avg_pool1d", "adaptive_avg_pool1d"])
def test_averages_need_floats(op):
    with pytest.raises(DTypeError, match=rf"{op}\(\): argument 'input': expected a floating"):
        getattr(F, op)(flow.ones(2, 8, dtype=flow.int64), 2)


@pytest.mark.parametrize("op", ["max_pool1d", "adaptive_max_pool1d"])
@pytest.mark.parametrize("dtype", ["bool", "complex64"])
def test_maxima_need_an_order(op, dtype):
    with pytest.raises(DTypeError, match=rf"{op}\(\): argument 'input'"):
        getattr(F, op)(flow.tensor(np.ones((2, 8), dtype)), 2)


@pytest.mark.parametrize("op", ["max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"])
def test_arrays_are_refused(op):
    with pytest.raises(ArgumentTypeError, match=rf"{op}\(\): argument 'input'"):
        getattr(F, op)(np.ones(X), 2)


def test_positions_have_no_gradient():
    x = flow.tensor(numbers(1, 4, 4), requires_grad=True)
    _, indices = F.max_pool2d(x, 2, return_indices=True)
    assert indices.dtype == flow.int64
    assert not indices.requires_grad


@pytest.mark.parametrize("op", ["adaptive_avg_pool2d", "adaptive_max_pool2d"])
def test_no_windows(op):
    x = flow.tensor(numbers(1, 2, 3, 2), requires_grad=True)
    y = getattr(F, op)(x, (0, 2))
    assert y.shape == (1, 2, 0, 2)
    y.sum().backward()
    assert not x.grad.numpy().any()


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_adaptive_maxima_with_ties_and_nan(spatial):
    torch = pytest.importorskip("torch")
    name, shape = f"adaptive_max_pool{spatial}d", (2, 3, *(9, 7, 8)[:spatial])
    x = np.random.default_rng(0).integers(0, 3, shape).astype(float)
    x.flat[::11] = math.nan
    for size in ((4, 3, 5)[:spatial], (9, 2, 11)[:spatial]):
        ours = getattr(F, name)(flow.tensor(x), size, return_indices=True)
        theirs = getattr(torch.nn.functional, name)(torch.tensor(x), size, return_indices=True)
        for y, expected in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(y.numpy(), expected.numpy())


@pytest.mark.parametrize("spatial", [2, 3])
def test_fractional_maxima_agree_with_pytorch(spatial):
    torch = pytest.importorskip("torch")
    name, rng = f"fractional_max_pool{spatial}d", np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        x = rng.integers(0, 9, (2, 3, *(13, 10, 8)[:spatial])).astype(dtype)
        x.flat[::17] = math.nan
        samples = rng.uniform(size=(2, 3, spatial)).astype(dtype)
        for kernel, size in ((2, (5, 4, 3)), ((3, 2, 1), (1, 6, 4))):
            args = (kernel if kernel == 2 else kernel[:spatial], size[:spatial])
            options = {"return_indices": True}
            ours = getattr(F, name)(
                flow.tensor(x), *args, **options, _random_samples=flow.tensor(samples)
            )
            theirs = getattr(torch.nn.functional, name)(
                torch.tensor(x), *args, **options, _random_samples=torch.tensor(samples)
            )
            for y, expected in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(y.numpy(), expected.numpy())


def test_fractional_windows_are_drawn():
    x = flow.tensor(numbers(1, 1, 16, 16))
    drawn = [F.fractional_max_pool2d(x, 2, output_ratio=0.6) for _ in range(4)]
    assert {y.shape for y in drawn} == {(1, 1, 9, 9)}
    assert len({y.sum().item() for y in drawn}) > 1


@pytest.mark.parametrize("power", [math.inf, -math.inf])
def test_infinite_powers(power):
    torch = pytest.importorskip("torch")
    x = numbers(2, 3, 5, 6)
    expected = torch.nn.functional.lp_pool2d(torch.tensor(x), power, 2, 1)
    np.testing.assert_array_equal(
        F.lp_pool2d(flow.tensor(x), power, 2, 1).numpy(), expected.numpy()
    )


def test_unpooling_undoes_pooling():
    x = flow.tensor(numbers(2, 3, 7, 5), requires_grad=True)
    y, indices = F.max_pool2d(x, 2, return_indices=True)
    z = F.max_unpool2d(y, indices, 2, output_size=x.shape)
    assert z.shape == x.shape
    assert ((z == 0) | (z == x)).all()
    assert z.sum().item() == pytest.approx(y.sum().item())


MAXIMA = flow.ones(1, 2, 2)
MORE_ERRORS = {
    "max_unpool2d of other indices": (
        lambda: F.max_unpool2d(MAXIMA, flow.zeros(1, 2, 3, dtype=flow.int64), 2),
        "indices",
    ),
    "max_unpool2d to a size too far": (
        lambda: F.max_unpool2d(MAXIMA, flow.zeros(1, 2, 2).long(), 2, output_size=(4, 6)),
        "output_size",
    ),
    "max_unpool2d of a position outside": (
        lambda: F.max_unpool2d(MAXIMA, flow.full((1, 2, 2), 16), 2),
        "indices",
    ),
    "fractional_max_pool2d without a size": (
        lambda: F.fractional_max_pool2d(MAXIMA, 1),
        "output_ratio",
    ),
    "fractional_max_pool2d of too much": (
        lambda: F.fractional_max_pool2d(MAXIMA, 2, 2),
        "output_size",
    ),
    "local_response_norm of a matrix": (
        lambda: F.local_response_norm(flow.ones(2, 2), 1),
        "input",
    ),
}


@pytest.mark.parametrize("name", MORE_ERRORS)
def test_more_bad_arguments(name):
    call, argument = MORE_ERRORS[name]
    with pytest.raises(FlowError, match=rf"^{name.split()[0]}\(\): argument '{argument}'"):
        call()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype, values", [("float16", [6e4] * 4), ("float32", [np.inf, -np.inf])])
def test_maxima_of_few_planes_are_looked_at_without_warnings(dtype, values):
    x = np.resize(np.array(values, dtype), (1, 1, 8))
    y = F.max_pool1d(flow.tensor(x), 1)
    np.testing.assert_array_equal(y.numpy(), x)
