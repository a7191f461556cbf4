"""Convolution: values and derivatives against PyTorch, batching, memory, errors."""

import gc
import itertools
import tracemalloc

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays import threads
from oneflow_lite.errors import ArgumentTypeError, DTypeError, FlowError, ShapeError
from oneflow_lite.kernels import conv, conv_blocks, windows
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.testing import Sample, check_op

F = flow.nn.functional


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)


# Input, weight, bias, options.
CASES_2D = {
    "plain": ((2, 3, 5, 4), (4, 3, 3, 2), True, {}),
    "no_bias": ((2, 3, 5, 4), (4, 3, 3, 2), False, {}),
    "unbatched": ((3, 5, 4), (4, 3, 3, 2), True, {"padding": 1}),
    "stride": ((2, 2, 6, 7), (3, 2, 3, 3), True, {"stride": (2, 3)}),
    "stride_leaves_a_rest": ((1, 1, 6, 6), (1, 1, 3, 3), False, {"stride": 2}),
    "padding": ((2, 2, 4, 3), (2, 2, 3, 3), True, {"padding": (2, 1)}),
    "dilation": ((1, 2, 7, 6), (2, 2, 3, 2), True, {"dilation": (2, 3), "padding": 1}),
    "groups": ((2, 4, 4, 4), (6, 2, 3, 2), True, {"groups": 2}),
    "depthwise": ((2, 3, 5, 5), (6, 1, 3, 3), True, {"groups": 3, "padding": 1}),
    "same": ((1, 2, 5, 4), (2, 2, 3, 5), True, {"padding": "same"}),
    "same_uneven": ((1, 2, 5, 4), (2, 2, 2, 4), True, {"padding": "same", "dilation": (3, 1)}),
    "valid": ((1, 2, 5, 4), (2, 2, 3, 3), True, {"padding": "valid", "stride": 2}),
    "one_by_one": ((2, 3, 4, 5), (2, 3, 1, 1), True, {}),
    "many_channels": ((2, 7, 4, 3), (5, 7, 2, 2), True, {"stride": (1, 2), "padding": 1}),
    "many_channels_in_groups": ((2, 12, 4, 3), (4, 6, 2, 2), True, {"groups": 2, "padding": 1}),
    "one_by_one_of_many_channels": ((3, 7, 2, 3), (5, 7, 1, 1), True, {"stride": (1, 2)}),
    "outer_taps_meet_padding": ((2, 3, 1, 2), (4, 3, 3, 5), True, {"padding": (1, 2)}),
    "outer_taps_meet_padding_in_groups": (
        (2, 4, 2, 1),
        (4, 2, 3, 5),
        True,
        {"padding": (3, 4), "dilation": (3, 2), "groups": 2},
    ),
    "a_tap_at_one_end_meets_padding": (
        (1, 2, 2, 2),
        (2, 2, 3, 3),
        True,
        {"stride": 2, "padding": 1},
    ),
    "empty_batch_of_many_channels": ((0, 7, 4, 4), (3, 7, 2, 2), True, {}),
    "empty_batch": ((0, 2, 4, 4), (3, 2, 2, 2), True, {}),
    "all_at_once": (
        (2, 4, 9, 8),
        (4, 2, 3, 2),
        True,
        {"stride": (2, 1), "padding": (1, 2), "dilation": (2, 3), "groups": 2},
    ),
}
CASES_1D = {
    "plain": ((2, 3, 6), (4, 3, 3), True, {}),
    "unbatched": ((3, 6), (4, 3, 3), False, {"stride": (2,)}),
    "groups": ((2, 4, 7), (2, 2, 2), True, {"groups": 2, "dilation": 2, "padding": 1}),
    "no_tap_meets_the_input": ((1, 1, 1), (1, 1, 2), False, {"padding": 1, "dilation": 2}),
    "same": ((2, 2, 5), (2, 2, 4), True, {"padding": "same"}),
}
CASES = [("conv1d", *case) for case in CASES_1D.values()]
CASES += [("conv2d", *case) for case in CASES_2D.values()]
NAMES = [f"conv1d-{name}" for name in CASES_1D] + [f"conv2d-{name}" for name in CASES_2D]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("op", "input", "weight", "bias", "options"), CASES, ids=NAMES)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_agrees_with_pytorch(op, input, weight, bias, options, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    arrays = [numbers(*input).astype(dtype), numbers(*weight, seed=1).astype(dtype)]
    if bias:
        arrays.append(numbers(weight[0], seed=2).astype(dtype))
    compare(
        lambda *tensors: getattr(F, op)(*tensors, **options),
        lambda *tensors: getattr(torch.nn.functional, op)(*tensors, **options),
        *arrays,
        orders=3 if dtype == "float64" else 1,
        atol=1e-4 if dtype == "float32" else 1e-9,
    )


GEOMETRY = {"stride": (1, 2), "padding": (1, 0), "dilation": (2, 1), "groups": 1}
GROUPED = {"stride": (2,), "padding": (1,), "dilation": (1,), "groups": 2}
SAMPLES = {
    "conv2d": [
        Sample(numbers(1, 1, 3, 3), numbers(2, 1, 2, 2, seed=1), numbers(2, seed=2)),
        Sample(numbers(2, 2, 4), numbers(2, 1, 2, 2, seed=1), None, (2, 1), 1, 1, 2),
    ],
    "conv1d": [Sample(numbers(2, 2, 4), numbers(2, 1, 2, seed=1), numbers(2, seed=2), groups=2)],
    "conv_input_grad": [
        Sample(numbers(1, 2, 2, 2), numbers(2, 1, 2, 2, seed=1), input_size=(2, 5), **GEOMETRY),
        Sample(numbers(2, 2, 2), numbers(2, 3, 2, seed=1), input_size=(3,), **GROUPED),
    ],
    "conv_weight_grad": [
        Sample(numbers(1, 2, 2, 2), numbers(1, 1, 2, 4, seed=1), kernel_size=(2, 2), **GEOMETRY),
        Sample(numbers(2, 2, 2), numbers(2, 2, 3, seed=1), kernel_size=(2,), **GROUPED),
    ],
}


@pytest.mark.parametrize("op", SAMPLES)
def test_op(op, device):
    check_op(op, SAMPLES[op], device=device, degenerate=False)


@pytest.mark.parametrize("op", ["conv", "conv_weight_grad", "conv_input_grad"])
def test_three_spatial_dimensions_and_complex_numbers(op):
    torch = pytest.importorskip("torch")
    x, w = numbers(2, 2, 4, 3, 5) + 1j, numbers(3, 2, 2, 1, 3, seed=1) - 2j
    geometry = {"stride": (2, 1, 1), "padding": (1, 0, 2), "dilation": (1, 1, 2), "groups": 1}
    a, b = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
    y = torch.nn.functional.conv3d(a, b, **geometry)
    dy = numbers(*y.shape, seed=2) + 0.5j
    kernel = KERNELS.get(op).by_device[None]
    if op == "conv":
        got, expected = kernel(np, x, w, None, **geometry), y
    elif op == "conv_weight_grad":
        # PyTorch conjugates where the plain derivative, which a rule gives, does not.
        got = kernel(np, dy.conj(), x, kernel_size=w.shape[2:], **geometry).conj()
        (expected,) = torch.autograd.grad(y, b, torch.tensor(dy))
    else:
        got = kernel(np, dy.conj(), w, input_size=x.shape[2:], **geometry).conj()
        (expected,) = torch.autograd.grad(y, a, torch.tensor(dy))
    np.testing.assert_allclose(got, expected.detach().resolve_conj().numpy(), rtol=1e-10)


@pytest.mark.parametrize("shape", [(5, 3, 20, 20), (5, 90, 4, 3)], ids=["columns", "rows"])
@pytest.mark.parametrize("groups", [1, 2])
def test_images_in_several_batches_give_the_same(shape, groups, monkeypatch):
    x = flow.tensor(numbers(shape[0], shape[1] * groups, *shape[2:])).requires_grad_()
    w = flow.tensor(numbers(4 * groups, shape[1], 3, 3, seed=1)).requires_grad_()

    def run():
        y = F.conv2d(x, w, padding=1, groups=groups)
        return [y, *flow.autograd.grad((y * y).sum(), (x, w))]

    assert x.numel() > windows.FEW
    at_once = run()
    bytes_each = groups * shape[1] * 9 * shape[2] * shape[3] * 8
    monkeypatch.setattr(windows, "_BYTES_AT_ONCE", 2 * bytes_each + 1)
    assert windows.images_at_once(np, 5, bytes_each, w.numel() * 8) == 2
    for together, apart in zip(at_once, run(), strict=True):
        np.testing.assert_allclose(apart.numpy(), together.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (lambda: np.zeros((9, 9, 90)), lambda: numbers(9, 9, 90)),
        (lambda: np.zeros((9, 11, 93))[:, 1:-1, 2:-1], lambda: numbers(9, 9, 90)),
        (lambda: np.zeros((9, 9, 90)).swapaxes(0, 1), lambda: numbers(9, 9, 90)[::-1]),
        (lambda: np.zeros((9, 90, 9)).swapaxes(1, 2), lambda: numbers(9, 9, 90)),
        (lambda: np.zeros((9, 9, 90)), lambda: numbers(9, 9, 180)[..., ::2]),
        (lambda: np.zeros((9, 9, 90)), lambda: numbers(9, 9, 90)[..., ::-1]),
        (lambda: np.zeros((9, 9, 90), "f"), lambda: numbers(9, 9, 90)),
        (lambda: np.zeros((9, 9, 90)), lambda: np.broadcast_to(numbers(9, 1, 90), (9, 9, 90))),
        (lambda: np.zeros((9, 9, 90)), lambda: np.broadcast_to(numbers(9, 9, 1), (9, 9, 90))),
        (lambda: np.zeros(windows.FEW + 1), lambda: numbers(windows.FEW + 1)),
        (lambda: np.zeros((3, 4)), lambda: numbers(3, 4)),
        (lambda: np.zeros((0, 4)), lambda: numbers(0, 4)),
    ],
)
def test_copies_by_rows_are_copies(target, source):
    target, source = target(), source()
    windows.copy(target, source)
    np.testing.assert_array_equal(target, source.astype(target.dtype))


def test_columns_are_not_kept_for_backward():
    x = flow.tensor(numbers(2, 3, 8, 8)).requires_grad_()
    w = flow.tensor(numbers(4, 3, 3, 3, seed=1)).requires_grad_()
    y = F.conv2d(x, w)
    assert sorted(t.shape for t in y.grad_fn.saved_tensors) == [x.shape, w.shape]


def test_saves_only_what_is_needed():
    x = flow.tensor(numbers(2, 3, 8, 8))
    w = flow.tensor(numbers(4, 3, 3, 3, seed=1)).requires_grad_()
    (saved,) = F.conv2d(x, w).grad_fn.saved_tensors
    assert saved.shape == x.shape


def test_halves_are_summed_in_single_precision():
    x, w = np.full((1, 4096, 1, 1), 1.0, np.float16), np.full((1, 4096, 1, 1), 0.1, np.float16)
    y = F.conv2d(flow.tensor(x), flow.tensor(w))
    assert y.dtype == flow.float16
    np.testing.assert_allclose(y.numpy().item(), 4096 * float(np.float16(0.1)), rtol=1e-3)


def test_integers():
    y = F.conv2d(flow.arange(9).reshape(1, 1, 3, 3), flow.ones(1, 1, 2, 2, dtype=flow.int64))
    assert y.dtype == flow.int64
    assert y.tolist() == [[[[8, 12], [20, 24]]]]


def test_result_is_contiguous():
    x = flow.tensor(numbers(3, 4, 4, 2)).permute(3, 0, 1, 2)
    assert F.conv2d(x, flow.tensor(numbers(2, 3, 2, 2))).is_contiguous()


X, W, B = (2, 4, 8, 8), (6, 4, 3, 3), (6,)
ERRORS = {
    "input of 2 dimensions": (((8, 8), W, B), {}, ShapeError, "input"),
    "weight of 3 dimensions": ((X, (4, 3, 3), B), {}, ShapeError, "weight"),
    "channels": ((X, (6, 3, 3, 3), B), {}, ShapeError, "input"),
    "bias": ((X, W, (5,)), {}, ShapeError, "bias"),
    "bias of 2 dimensions": ((X, W, (6, 1)), {}, ShapeError, "bias"),
    "groups do not divide": ((X, (6, 1, 3, 3), B), {"groups": 4}, ShapeError, "groups"),
    "no groups": ((X, W, B), {"groups": 0}, ShapeError, "groups"),
    "groups is no int": ((X, W, B), {"groups": 1.0}, ArgumentTypeError, "groups"),
    "stride 0": ((X, W, B), {"stride": 0}, ShapeError, "stride"),
    "stride of 3": ((X, W, B), {"stride": (1, 1, 1)}, ShapeError, "stride"),
    "stride 1.5": ((X, W, B), {"stride": 1.5}, ArgumentTypeError, "stride"),
    "stride True": ((X, W, B), {"stride": True}, ArgumentTypeError, "stride"),
    "negative padding": ((X, W, B), {"padding": -1}, ShapeError, "padding"),
    "dilation 0": ((X, W, B), {"dilation": (1, 0)}, ShapeError, "dilation"),
    "unknown padding": ((X, W, B), {"padding": "full"}, ShapeError, "padding"),
    "same with stride": ((X, W, B), {"padding": "same", "stride": 2}, ShapeError, "padding"),
    "filter too large": (((2, 4, 2, 8), W, B), {}, ShapeError, "weight"),
    "dilated filter too large": ((X, W, B), {"dilation": 4}, ShapeError, "weight"),
}


@pytest.mark.parametrize(("shapes", "options", "error", "argument"), ERRORS.values(), ids=ERRORS)
def test_bad_arguments(shapes, options, error, argument):
    tensors = [flow.ones(*shape, requires_grad=True) for shape in shapes]
    with pytest.raises(error, match=rf"^conv2d\(\): argument '{argument}'") as caught:
        F.conv2d(*tensors, **options)
    builtin = TypeError if error is ArgumentTypeError else RuntimeError
    assert isinstance(caught.value, FlowError)
    assert isinstance(caught.value, builtin)
    assert all(t.grad is None and t._version == 0 and t.is_leaf for t in tensors)


def test_dtypes_must_agree():
    x, w = flow.ones(*X, dtype=flow.float64), flow.ones(*W)
    with pytest.raises(DTypeError, match=r"conv2d\(\): argument 'weight': .*float64.*float32"):
        F.conv2d(x, w)
    with pytest.raises(DTypeError, match=r"conv2d\(\): argument 'bias'"):
        F.conv2d(flow.ones(*X), w, flow.ones(6, dtype=flow.float64))


@pytest.mark.parametrize("position", range(3))
def test_arrays_are_refused(position):
    tensors = [flow.ones(*shape) for shape in (X, W, B)]
    tensors[position] = tensors[position].tolist()
    with pytest.raises(ArgumentTypeError, match=r"conv2d\(\): argument '(input|weight|bias)'"):
        F.conv2d(*tensors)


TRANSPOSED = {
    "channels": (((1, 3, 4), (2, 2, 3)), {}, "input"),
    "bias": (((1, 2, 4), (2, 2, 3), (3,)), {}, "bias"),
    "groups": (((1, 3, 4), (3, 2, 3)), {"groups": 2}, "groups"),
    "output_padding": (((1, 2, 4), (2, 2, 3)), {"output_padding": 1}, "output_padding"),
    "nothing left": (((1, 2, 1), (2, 2, 3)), {"padding": 2}, "padding"),
    "weight": (((1, 2, 4), (2, 2, 3, 3)), {}, "weight"),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_bad_arguments_of_transposed_convolutions(name):
    shapes, options, argument = TRANSPOSED[name]
    with pytest.raises(ShapeError, match=rf"^conv_transpose1d\(\): argument '{argument}'"):
        F.conv_transpose1d(*[flow.ones(*shape) for shape in shapes], **options)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("channels", [1, 7])
def test_transposed_convolutions_agree_with_pytorch(channels, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    for spatial, options in (
        (1, {"stride": 3, "padding": 1, "output_padding": 2}),
        (2, {"stride": (2, 1), "dilation": (1, 3), "output_padding": (1, 2)}),
        (3, {"stride": 2, "padding": (1, 0, 1), "groups": 2}),
    ):
        name, groups = f"conv_transpose{spatial}d", options.get("groups", 1)
        arrays = [
            numbers(2, channels * groups, *(3, 2, 2)[:spatial]),
            numbers(channels * groups, 2, *(2, 3, 2)[:spatial], seed=1),
            numbers(2 * groups, seed=2),
        ]
        compare(
            lambda *tensors, n=name, o=options: getattr(F, n)(*tensors, **o),
            lambda *tensors, n=name, o=options: getattr(torch.nn.functional, n)(*tensors, **o),
            *[a.astype(dtype) for a in arrays],
            orders=2 if dtype == "float64" else 1,
            atol=1e-4 if dtype == "float32" else 1e-9,
        )


def test_an_infinite_weight_meets_gradients_alone():
    weight = flow.tensor([[[1.0, np.inf]]])
    y = F.conv_transpose1d(flow.ones(1, 1, 2), weight, stride=2)
    assert y.tolist() == [[[1.0, np.inf, 1.0, np.inf]]]


@pytest.mark.filterwarnings("ignore:invalid value")  # of the products of matrices
@pytest.mark.parametrize(
    ("size", "kernel"),
    [
        ((3, 5, 20, 19), (3, 3)),
        ((4, 40, 60), (4,)),
        ((70, 20, 9, 8), (5, 2)),
        ((2, 3, 9, 8, 11), (3, 2, 3)),
        ((16, 20, 7, 7), (3, 3)),  # from here on, in matrices of each channel
        ((130, 3, 8, 8), (3, 2)),
        ((60, 6, 14), (4,)),
        ((24, 9, 3, 5, 4), (2, 3, 1)),
        ((6, 9, 14, 15), (5, 5)),  # from here on, in matrices for rows
        ((1, 3, 50, 60), (4, 6)),
        ((3, 4, 9, 5, 11), (5, 2, 2)),
    ],
)
def test_filters_of_one_channel_agree_with_products_of_matrices(size, kernel, monkeypatch):
    names = "conv", "conv_input_grad", "conv_weight_grad"
    run = {name: op_expr(name).kernel(np) for name in names}
    weight = numbers(size[1], 1, *kernel)
    for stride, padding, dilation in itertools.product((1, 2, 3), (0, 1, 2), (1, 2)):
        x = numbers(*size, seed=1)
        spatial = {"stride": stride, "padding": padding, "dilation": dilation}
        attrs = {key: (n,) * len(kernel) for key, n in spatial.items()} | {"groups": size[1]}
        dy = numbers(*run["conv"](x, weight, None, **attrs).shape, seed=2)
        for special in (False, True):
            if special:  # at edges, where other taps meet padding or nothing
                x[0, 0, ..., -1], dy[-1, 1, ..., 0], x[0, 1, ..., 3] = np.inf, np.nan, -np.inf
            calls = [
                ("conv", (x, weight, numbers(size[1])), {}),
                ("conv_input_grad", (dy, weight), {"input_size": size[2:]}),
                ("conv_weight_grad", (dy, x), {"kernel_size": kernel}),
            ]
            if special:
                infinite = weight.copy()
                infinite[1, 0, ..., 0] = np.inf
                calls.append(("conv_input_grad", (dy, infinite), {"input_size": size[2:]}))
            for name, arrays, own in calls:
                found = run[name](*arrays, **own, **attrs)
                with monkeypatch.context() as patch:
                    patch.setattr(conv, "_alone", lambda *_: False)
                    wanted = run[name](*arrays, **own, **attrs)
                np.testing.assert_allclose(found, wanted, 1e-9, 1e-9)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(
    ("size", "kernel", "stride"),
    [
        ((3, 7, 20, 19), 3, 1),
        ((6, 7, 14, 15), 5, 1),
        ((40, 7, 12, 14), 6, 2),
        ((16, 7, 7, 7), 3, 1),
    ],
)
def test_the_number_of_threads_changes_no_bit_of_a_filter_of_one_channel(
    size, kernel, stride, special, monkeypatch
):
    weight = numbers(size[1], 1, kernel, kernel).astype("f")
    attrs = {key: (n, n) for key, n in (("stride", stride), ("padding", 2), ("dilation", 1))}
    attrs["groups"] = size[1]
    run = {name: op_expr(name).kernel(np) for name in ("conv", "conv_input_grad")}
    run["conv_weight_grad"] = op_expr("conv_weight_grad").kernel(np)
    x = numbers(*size, seed=1).astype("f")
    dy = run["conv"](x, weight, None, **attrs)
    if special:
        x[0, 2, 1, 1], dy[1, 4, 3, 0] = np.inf, np.nan
    monkeypatch.setattr(threads, "SHARED", 0)
    found = []
    for count in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        found.append(
            [
                run["conv"](x, weight, None, **attrs).tobytes(),
                run["conv_input_grad"](dy, weight, input_size=size[2:], **attrs).tobytes(),
                run["conv_weight_grad"](dy, x, kernel_size=(kernel, kernel), **attrs).tobytes(),
            ]
        )
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(("size", "kernel"), [((2, 30, 20, 20), 3), ((2, 30, 20, 20), 5)])
def test_memory_of_filters_of_one_channel_needs_no_garbage_collector(size, kernel):
    x = flow.tensor(numbers(*size)).requires_grad_()
    w = flow.tensor(numbers(size[1], 1, kernel, kernel)).requires_grad_()

    def step():
        y = F.conv2d(x, w, stride=2, groups=size[1])
        flow.autograd.grad(y, (x, w), flow.ones_like(y))

    step()
    gc.collect()
    gc.disable()
    try:
        step()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_sums_of_many_taps_need_no_einsum(monkeypatch):
    x, attrs = numbers(2, 30, 14, 14), {"stride": (1, 1), "dilation": (1, 1), "groups": 30}
    run = op_expr("conv").kernel(np)
    monkeypatch.setattr(np, "einsum", None)
    run(x, numbers(30, 1, 5, 5), None, padding=(2, 2), **attrs)
    with pytest.raises(TypeError, match="not callable"):
        run(x, numbers(30, 1, 3, 3), None, padding=(1, 1), **attrs)


# Input, weight, stride, padding, dilation, groups.
BLOCKS = {
    "1d": ((2, 3, 40), (4, 3, 5), (2,), (2,), (1,), 1),
    "2d": ((2, 3, 11, 9), (5, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "3d": ((2, 2, 6, 5, 7), (3, 2, 3, 2, 3), (1, 2, 1), (1, 0, 2), (1, 1, 2), 1),
    "groups": ((2, 4, 9, 8), (6, 2, 3, 2), (2, 1), (1, 1), (1, 3), 2),
    "phases_without_taps": ((1, 2, 9, 9), (3, 2, 2, 2), (3, 4), (0, 1), (3, 2), 1),
    "a_rest_without_windows": ((1, 2, 10, 12), (3, 2, 2, 3), (3, 4), (0, 0), (1, 1), 1),
    "more_padding_than_taps": ((1, 2, 2, 5), (3, 2, 2, 2), (3, 2), (2, 3), (4, 1), 1),
}


def _all_in_blocks(monkeypatch, bytes_at_once):
    monkeypatch.setattr(conv_blocks, "_BYTES", bytes_at_once)
    for name in ("_PRODUCTS", "_ROWS", "_POSITIONS"):
        monkeypatch.setattr(conv_blocks, name, 1)


def _three_maps(x, weight, *geometry):
    names = ("stride", "padding", "dilation", "groups")
    attrs = dict(zip(names, geometry, strict=True))
    y = conv.conv(np, x, weight, numbers(len(weight), seed=3).astype(x.dtype), **attrs)
    dy = numbers(*y.shape, seed=2).astype(x.dtype)
    dweight = conv.conv_weight_grad(np, dy, x, kernel_size=weight.shape[2:], **attrs)
    dx = conv.conv_input_grad(np, dy, weight, input_size=x.shape[2:], **attrs)
    return y, dweight, dx


@pytest.mark.parametrize("bytes_at_once", [1, 2000, 2**20])
@pytest.mark.parametrize("count", ["1", "3"])
@pytest.mark.parametrize("case", BLOCKS.values(), ids=BLOCKS)
def test_blocks_agree_with_whole_images(case, count, bytes_at_once, monkeypatch):
    shape, weight_shape, *geometry = case
    arrays = numbers(*shape), numbers(*weight_shape, seed=1)
    expected = _three_maps(*arrays, *geometry)
    _all_in_blocks(monkeypatch, bytes_at_once)
    monkeypatch.setenv("OMP_NUM_THREADS", count)
    got = _three_maps(*arrays, *geometry)
    for mine, theirs, again in zip(got, expected, _three_maps(*arrays, *geometry), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(mine, again)


def test_infinite_filters_meet_no_padding_in_blocks(monkeypatch):
    dy, weight = numbers(1, 3, 6, 6), numbers(3, 2, 3, 3, seed=1)
    weight[0, 0, 0, 0] = np.inf
    geometry = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    expected = conv.conv_input_grad(np, dy, weight, input_size=(6, 6), **geometry)
    _all_in_blocks(monkeypatch, 1000)
    got = conv.conv_input_grad(np, dy, weight, input_size=(6, 6), **geometry)
    np.testing.assert_array_equal(got, expected)


def test_memory_of_large_images_is_bounded():
    x, weight = np.zeros((1, 16, 200, 200), np.float32), np.zeros((16, 16, 5, 5), np.float32)
    geometry = {"stride": (1, 1), "padding": (2, 2), "dilation": (1, 1), "groups": 1}
    calls = {
        "conv": lambda: conv.conv(np, x, weight, None, **geometry),
        "weight": lambda: conv.conv_weight_grad(np, x, x, kernel_size=(5, 5), **geometry),
        "input": lambda: conv.conv_input_grad(np, x, weight, input_size=(200, 200), **geometry),
    }
    for name, call in calls.items():
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        blocks = 2 * conv_blocks._BYTES * threads.threads()
        assert peak < 3 * x.nbytes + blocks, name
