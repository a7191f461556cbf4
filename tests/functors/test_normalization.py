"""Normalization: values and derivatives against PyTorch, running statistics, dropout, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    FlowError,
    ShapeError,
)
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.testing import Sample, check_op

F = flow.nn.functional


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-2.0, 2.0, shape)


def _layer_norm(f, x, *parameters, shape=None, eps=1e-5):
    weight, bias = [*parameters, None, None][:2]
    return f.layer_norm(x, shape or tuple(x.shape[-1:]), weight, bias, eps)


def _batch_norm(f, x, *parameters, **options):
    weight, bias = [*parameters, None, None][:2]
    return f.batch_norm(x, None, None, weight, bias, True, **options)


# A function of (nn.functional, tensors), and the shapes of the tensors.
CASES = {
    "layer_norm": (_layer_norm, (3, 4), (4,), (4,)),
    "layer_norm_plain": (_layer_norm, (3, 4)),
    "layer_norm_weight": (_layer_norm, (2, 3, 4), (4,)),
    "layer_norm_bias": (lambda f, x, b: f.layer_norm(x, (4,), None, b), (3, 4), (4,)),
    "layer_norm_eps": (lambda f, *t: _layer_norm(f, *t, eps=0.5), (3, 4), (4,), (4,)),
    "layer_norm_two_dimensions": (
        lambda f, *t: _layer_norm(f, *t, shape=(3, 4)),
        (2, 3, 4),
        (3, 4),
        (3, 4),
    ),
    "layer_norm_whole": (lambda f, *t: _layer_norm(f, *t, shape=(3, 4)), (3, 4), (3, 4), (3, 4)),
    "layer_norm_empty": (_layer_norm, (0, 4), (4,), (4,)),
    "rms_norm": (lambda f, x, w: f.rms_norm(x, (4,), w), (3, 4), (4,)),
    "rms_norm_plain": (lambda f, x: f.rms_norm(x, (4,)), (2, 3, 4)),
    "rms_norm_eps": (lambda f, x, w: f.rms_norm(x, (3, 4), w, 0.5), (2, 3, 4), (3, 4)),
    "batch_norm": (_batch_norm, (3, 2, 2, 3), (2,), (2,)),
    "batch_norm_plain": (_batch_norm, (3, 2, 4)),
    "batch_norm_weight": (_batch_norm, (5, 2), (2,)),
    "batch_norm_bias": (lambda f, x, b: f.batch_norm(x, None, None, None, b, True), (5, 2), (2,)),
    "batch_norm_eps": (lambda f, *t: _batch_norm(f, *t, eps=0.5), (5, 2), (2,), (2,)),
    "batch_norm_eval": (
        lambda f, x, m, v, w, b: f.batch_norm(x, m.detach(), v.detach().abs(), w, b, eps=0.1),
        (3, 2, 4),
        *[(2,)] * 4,
    ),
    "batch_norm_eval_plain": (
        lambda f, x, m, v: f.batch_norm(x, m.detach(), v.detach().abs()),
        (3, 2),
        *[(2,)] * 2,
    ),
    "group_norm": (lambda f, x, w, b: f.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,)),
    "group_norm_plain": (lambda f, x: f.group_norm(x, 2, eps=0.1), (2, 6)),
    "group_norm_one_channel_each": (lambda f, x, w: f.group_norm(x, 3, w), (2, 3, 2, 2), (3,)),
    "instance_norm": (
        lambda f, x, w, b: f.instance_norm(x, None, None, w, b),
        (2, 3, 4),
        (3,),
        (3,),
    ),
    "instance_norm_plain": (lambda f, x: f.instance_norm(x, eps=0.1), (2, 3, 2, 2)),
    "normalize": (lambda f, x: f.normalize(x), (3, 4)),
    "normalize_other": (lambda f, x: f.normalize(x, 3, -2, 5.0), (3, 2, 4)),
    "cosine_similarity": (lambda f, x, y: f.cosine_similarity(x, y), (3, 4), (3, 4)),
    "cosine_similarity_broadcast": (
        lambda f, x, y: f.cosine_similarity(x, y, dim=-1),
        (2, 1, 4),
        (3, 1),
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    function, *shapes = CASES[name]
    # PyTorch has no second derivative with a bias alone.
    second = dtype == "float64" and not name.endswith("_bias")
    compare(
        lambda *tensors: function(F, *tensors),
        lambda *tensors: function(torch.nn.functional, *tensors),
        *[numbers(*shape, seed=i).astype(dtype) for i, shape in enumerate(shapes)],
        orders=2 if second else 1,
        atol=1e-4 if dtype == "float32" else 1e-9,
        rtol=1e-3 if dtype == "float32" else 1e-7,
    )


def _composed(x, dims, weight, bias, centred=True):
    if centred:
        x = x - x.mean(dims, True)
    return x * ((x * x).mean(dims, True) + 0.1).rsqrt() * weight + bias


# PyTorch's own layer_norm has third derivatives that contradict differences of its second ones.
THIRD = {
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (4,), w, b, 0.1),
        lambda x, w, b: _composed(x, (1,), w, b),
        (4,),
    ),
    "rms_norm": (
        lambda x, w, b: F.rms_norm(x, (4,), w, 0.1) + b,
        lambda x, w, b: _composed(x, (1,), w, b, centred=False),
        (4,),
    ),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w.reshape(3), b.reshape(3), True, eps=0.1),
        lambda x, w, b: _composed(x, (0, 2), w, b),
        (3, 1),
    ),
}


@pytest.mark.parametrize(("ours", "theirs", "shape"), THIRD.values(), ids=THIRD)
def test_third_derivatives_agree_with_a_composition(ours, theirs, shape):
    pytest.importorskip("torch")
    from tests.functors.agreement import compare

    x = numbers(2, 3, 2) if shape == (3, 1) else numbers(3, 4)
    arrays = [x, numbers(*shape, seed=1), numbers(*shape, seed=2)]
    compare(ours, theirs, *arrays, orders=3, rtol=1e-7)


ROWS = numbers(2, 3)
CHANNELS = numbers(2, 2, 2)
SAMPLES = {
    "layer_norm": [
        Sample(ROWS, (3,), numbers(3, seed=1), numbers(3, seed=2)),
        Sample(ROWS, (2, 3), None, numbers(2, 3, seed=2), 0.3),
        Sample(ROWS, (3,)),
    ],
    "rms_norm": [Sample(ROWS, (3,), numbers(3, seed=1), 0.2), Sample(ROWS, (2, 3))],
    "group_norm": [Sample(CHANNELS, 1, numbers(2, seed=1), numbers(2, seed=2))],
    "normalize": [Sample(ROWS)],
    "cosine_similarity": [Sample(ROWS, numbers(1, 3, seed=1))],
    "standardize_grad": [
        Sample(
            ROWS,
            numbers(2, 3, seed=1),
            np.array([[0.5], [1.5]]),
            groups=(2, 3),
            centred=centred,
        )
        for centred in (True, False)
    ],
}


@pytest.mark.parametrize("op", SAMPLES)
def test_op(op, device):
    check_op(op, SAMPLES[op], device=device, degenerate=False, rtol=1e-4)


def test_batch_norm_op(device):
    samples = [Sample(CHANNELS, numbers(2, seed=1), numbers(2, seed=2))]
    check_op(_train, samples, device=device, degenerate=False, rtol=1e-4)


def _train(x, weight, bias):
    return F.batch_norm(x, None, None, weight, bias, True)


# With one output alone the gradients of the others are missing.
OUTPUTS = {"standardize": 2, "affine_norm": 3, "rms_norm": 3, "batch_norm": 5}


@pytest.mark.parametrize(
    ("op", "output"), [(op, i) for op, n in OUTPUTS.items() for i in (*range(n), slice(n))]
)
def test_every_output_of_the_kernel_has_its_gradient(op, output):
    """Also z, rstd, variance and mean, which second derivatives reach."""
    expr = op_expr(op)
    x = CHANNELS if op == "batch_norm" else ROWS
    attrs = {name: x.shape for name in ("groups", "channels") if name in expr.schema.attrs}
    scale = [numbers(x.shape[1], seed=i) for i in range(1, len(expr.schema.inputs))]
    check_op(
        lambda *tensors: dispatch(expr, tensors, {**attrs, "eps": 0.1})[output],
        [Sample(x, *scale)],
        degenerate=False,
        rtol=1e-4,
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", ["batch_norm", "instance_norm"])
@pytest.mark.parametrize("momentum", [0.1, 1.0, 0.0])
def test_running_statistics_as_in_pytorch(op, momentum, dtype):
    torch = pytest.importorskip("torch")
    found = []
    for lib in (flow, torch):
        functional = F if lib is flow else torch.nn.functional
        mean = lib.tensor(np.array([0.5, -0.5, 1.0], dtype))
        var = lib.tensor(np.array([1.0, 2.0, 0.5], dtype))
        for step in range(3):
            x = lib.tensor(numbers(2, 3, 4, seed=step).astype(dtype) * 3 + 1)
            getattr(functional, op)(x, mean, var, None, None, True, momentum)
        y = getattr(functional, op)(x, mean, var, None, None, False, momentum)
        found.append([mean.numpy(), var.numpy(), y.numpy()])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(
            ours, theirs, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6
        )


def test_running_statistics_are_written_in_place_and_without_history():
    mean, var = flow.zeros(3), flow.ones(3)
    array = mean.numpy()
    x = flow.tensor(numbers(4, 3).astype("float32"), requires_grad=True)
    F.batch_norm(x, mean, var, training=True)
    assert np.shares_memory(mean.numpy(), array)
    assert array.any()
    assert (mean._version, var._version) == (1, 1)
    assert not mean.requires_grad and not var.requires_grad


def test_empty_batch_leaves_running_statistics():
    mean, var = flow.zeros(3), flow.ones(3)
    y = F.batch_norm(flow.zeros(0, 3, 2), mean, var, training=True)
    assert y.shape == (0, 3, 2)
    assert (mean.tolist(), var.tolist()) == ([0.0] * 3, [1.0] * 3)


def test_variance_of_large_values_in_single_precision():
    x = np.float32(1e4) + numbers(64, 256).astype(np.float32)
    exact = x.astype(np.float64)
    exact = (exact - exact.mean(1, keepdims=True)) / exact.std(1, keepdims=True)
    y = F.layer_norm(flow.tensor(x), (256,), eps=0.0)
    np.testing.assert_allclose(y.numpy(), exact, atol=2e-3)


HALVES = {
    "layer_norm": lambda lib, f, x, w: f.layer_norm(x, (6,), w),
    "rms_norm": lambda lib, f, x, w: f.rms_norm(x, (6,), w.to(x.dtype)),
    "batch_norm": lambda lib, f, x, w: f.batch_norm(x, lib.zeros(6), lib.ones(6), w, None, True),
    "group_norm": lambda lib, f, x, w: f.group_norm(x, 2, w, lib.zeros(6)),
}


@pytest.mark.parametrize("function", HALVES.values(), ids=HALVES)
def test_halves_with_single_precision_weights(function):
    torch = pytest.importorskip("torch")
    array = (numbers(4, 6) * 1000).astype(np.float16)  # the squares overflow
    scale = np.arange(24, dtype=np.float16).reshape(4, 6)
    found = []
    for lib in (flow, torch):
        x = lib.tensor(array).requires_grad_()
        w = lib.ones(6).requires_grad_()
        y = function(lib, lib.nn.functional, x, w)
        (y * lib.tensor(scale)).sum().backward()
        assert x.grad.dtype == x.dtype == y.dtype
        found.append([y.detach().numpy(), w.grad.numpy()])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-2, atol=1e-2)


def test_second_derivative_of_halves():
    x = flow.tensor(numbers(2, 4).astype(np.float16), requires_grad=True)
    w = flow.ones(4, dtype=flow.float16, requires_grad=True)
    (dx,) = flow.autograd.grad((F.layer_norm(x, (4,), w) ** 3).sum(), x, create_graph=True)
    ddx, dw = flow.autograd.grad((dx * dx).sum(), (x, w))
    assert ddx.dtype == dw.dtype == flow.float16
    assert ddx.numpy().any()


def test_weight_of_a_batch_norm_on_halves_in_evaluation():
    x = flow.tensor(np.ones((2, 3), np.float16))
    assert F.batch_norm(x, flow.zeros(3), flow.ones(3)).dtype == flow.float16


@pytest.mark.parametrize("x", [[0.0, 0.0], [3e-13, 4e-13]], ids=["zero", "tiny"])
def test_normalize_near_zero_as_in_pytorch(x):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(
        lambda v: F.normalize(v, dim=0),
        lambda v: torch.nn.functional.normalize(v, dim=0),
        np.array(x),
        orders=1,
    )


def test_cosine_similarity_at_zero_as_in_pytorch():
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(
        F.cosine_similarity,
        torch.nn.functional.cosine_similarity,
        np.zeros((1, 3)),
        np.array([[1.0, 2.0, 3.0]]),
        orders=1,
    )


# Dropout


def test_dropout_keeps_and_scales():
    flow.manual_seed(0)
    x = flow.ones(10_000, requires_grad=True)
    y = F.dropout(x, 0.3)
    kept = y.numpy() != 0
    assert 0.67 < kept.mean() < 0.73
    np.testing.assert_allclose(y.numpy()[kept], 1 / 0.7, rtol=1e-6)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy())
    assert y.grad_fn.next_functions[0][0] is x.grad_fn_node


def test_dropout_repeats_with_the_seed():
    x = flow.ones(100)
    flow.manual_seed(3)
    first = F.dropout(x)
    assert not np.array_equal(F.dropout(x).numpy(), first.numpy())
    flow.manual_seed(3)
    np.testing.assert_array_equal(F.dropout(x).numpy(), first.numpy())


@pytest.mark.parametrize("options", [{"training": False}, {"p": 0.0}])
def test_dropout_that_drops_nothing(options):
    x = flow.ones(5)
    assert F.dropout(x, **options) is x


def test_dropout_of_everything_and_in_place():
    x = flow.full((4,), 3.0)
    assert F.dropout(x, 1.0).tolist() == [0.0] * 4
    assert x.tolist() == [3.0] * 4
    assert F.dropout(x, 1.0, inplace=True) is x
    assert x.tolist() == [0.0] * 4


X = (2, 4, 8)
ERRORS = {
    "layer shape": (lambda x: F.layer_norm(x, (7,)), ShapeError, "normalized_shape"),
    "layer nothing": (lambda x: F.layer_norm(x, ()), ShapeError, "normalized_shape"),
    "layer too long": (lambda x: F.layer_norm(x, (1, 2, 4, 8)), ShapeError, "normalized_shape"),
    "layer int": (lambda x: F.layer_norm(x, 8), ArgumentTypeError, "normalized_shape"),
    "layer weight": (lambda x: F.layer_norm(x, (8,), flow.ones(7)), ShapeError, "weight"),
    "layer bias": (lambda x: F.layer_norm(x, (8,), None, flow.ones(1, 8)), ShapeError, "bias"),
    "layer eps": (lambda x: F.layer_norm(x, (8,), eps="a"), ArgumentTypeError, "eps"),
    "layer integers": (lambda x: F.layer_norm(x.long(), (8,)), DTypeError, "input"),
    "layer dtypes": (
        lambda x: F.layer_norm(x, (8,), flow.ones(8, dtype=flow.float64)),
        DTypeError,
        "weight",
    ),
    "layer list": (lambda x: F.layer_norm(x.tolist(), (8,)), ArgumentTypeError, "input"),
    "rms shape": (lambda x: F.rms_norm(x, (4,)), ShapeError, "normalized_shape"),
    "rms weight": (lambda x: F.rms_norm(x, (8,), flow.ones(4)), ShapeError, "weight"),
    "batch channels": (
        lambda x: F.batch_norm(x, flow.zeros(3), flow.ones(4)),
        ShapeError,
        "running_mean",
    ),
    "batch evaluation": (lambda x: F.batch_norm(x, None, None), ArgumentError, "running_mean"),
    "batch one statistic": (
        lambda x: F.batch_norm(x, flow.zeros(4), None, training=True),
        ArgumentError,
        "running_var",
    ),
    "batch one value": (
        lambda x: F.batch_norm(x[:1, :, :1], None, None, training=True),
        ArgumentError,
        "input",
    ),
    "batch weight": (
        lambda x: F.batch_norm(x, None, None, flow.ones(8), training=True),
        ShapeError,
        "weight",
    ),
    "batch 1d": (lambda x: F.batch_norm(x[0, 0], None, None, training=True), DimError, "input"),
    "group divisor": (lambda x: F.group_norm(x, 3), ShapeError, "num_groups"),
    "group none": (lambda x: F.group_norm(x, 0), ShapeError, "num_groups"),
    "group weight": (lambda x: F.group_norm(x, 2, flow.ones(2)), ShapeError, "weight"),
    "group 1d": (lambda x: F.group_norm(x[0, 0], 2), DimError, "input"),
    "group one value": (lambda x: F.group_norm(x[:1, :, :1], 4), ArgumentError, "input"),
    "instance one value": (lambda x: F.instance_norm(x[:, :, :1]), ArgumentError, "input"),
    "normalize dim": (lambda x: F.normalize(x, dim=3), DimError, "dim"),
    "normalize integers": (lambda x: F.normalize(x.long()), DTypeError, "input"),
    "cosine shapes": (lambda x: F.cosine_similarity(x, x[:, :3]), ShapeError, "x2"),
    "cosine dim": (lambda x: F.cosine_similarity(x, x, dim=3), DimError, "dim"),
    "cosine integers": (lambda x: F.cosine_similarity(x.long(), x.long()), DTypeError, "x1"),
    "dropout large": (lambda x: F.dropout(x, 1.5), ArgumentError, "p"),
    "dropout negative": (lambda x: F.dropout(x, -0.1, training=False), ArgumentError, "p"),
    "dropout text": (lambda x: F.dropout(x, "a"), ArgumentTypeError, "p"),
}


@pytest.mark.parametrize(("call", "error", "argument"), ERRORS.values(), ids=ERRORS)
def test_bad_arguments(call, error, argument):
    x = flow.ones(*X, requires_grad=True)
    with pytest.raises(error, match=rf"\(\): argument '{argument}'") as caught:
        call(x)
    assert isinstance(caught.value, FlowError)
    assert x.grad is None and x._version == 0 and x.is_leaf


LONG = numbers(2, 1_500_001).astype(np.float32)
TALL = 3 + numbers(300_001, 4).astype(np.float32)
# Sums of so many float32 numbers that running sums would be wrong in the fourth digit.
ACCURATE = {
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[1:]), LONG),
    "rms_norm": (lambda x: F.rms_norm(x, x.shape[1:]), LONG),
    "group_norm": (lambda x: F.group_norm(x.reshape(1, 2, -1), 2), LONG),
    "batch_norm": (lambda x: F.batch_norm(x.reshape(1, 2, -1), None, None, training=True), LONG),
    "batch_norm_of_rows": (lambda x: F.batch_norm(x, None, None, training=True), TALL),
    "batch_norm_of_lines": (
        lambda x: F.batch_norm(x.reshape(-1, 2, 2), None, None, training=True),
        TALL[:-1],
    ),
    "sum": (lambda x: x.sum(0), TALL),
    "sum_of_two_dimensions": (lambda x: x.reshape(2, -1, 2, 2).sum((0, 1, 3)), TALL[:-1]),
    "sum_transposed": (lambda x: x.T.reshape(2, 2, -1).sum(2), TALL),
    "sum_of_halves": (lambda x: x.half().sum(0).float() / 3, TALL[:20_000]),
    "mean": (lambda x: x.mean(0), TALL),
    "var": (lambda x: x.var(0), TALL),
    "std": (lambda x: x.std(0), TALL),
    "norm": (lambda x: x.norm(), LONG),
    "norm_of_columns": (lambda x: x.norm(dim=0), TALL),
    "softmax": (lambda x: x.softmax(0), TALL),
    "log_softmax": (lambda x: x.log_softmax(0), TALL),
    "logsumexp": (lambda x: x.logsumexp(0), TALL),
}


@pytest.mark.parametrize("name", ACCURATE)
def test_large_groups_keep_their_digits(name):
    function, x = ACCURATE[name]
    single = function(flow.tensor(x)).numpy()
    double = function(flow.tensor(x.astype(np.float64))).numpy()
    bound = 1e-3 if name == "sum_of_halves" else 3e-6
    np.testing.assert_allclose(single, double, rtol=bound, atol=bound * np.abs(double).max())


def test_the_gradients_of_large_groups_keep_their_digits():
    for function, x in (ACCURATE["layer_norm"], ACCURATE["batch_norm_of_rows"]):
        found = []
        for dtype in (np.float32, np.float64):
            leaf = flow.tensor(x.astype(dtype), requires_grad=True)
            (function(leaf + flow.zeros(x.shape[1:], dtype=dtype)) ** 3).sum().backward()
            found.append(leaf.grad.numpy())
        np.testing.assert_allclose(*found, atol=2e-5 * np.abs(found[1]).max())


def test_the_gradient_of_a_bias_of_many_rows_keeps_its_digits():
    for shape in ((4,), (1, 4), (300_001, 1)):
        found = []
        for dtype in (np.float32, np.float64):
            bias = flow.zeros(shape, dtype=dtype, requires_grad=True)
            (flow.tensor(TALL.astype(dtype)) * bias).sum().backward()
            found.append(bias.grad.numpy())
        np.testing.assert_allclose(*found, rtol=3e-6)
