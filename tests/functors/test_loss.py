"""Losses: values and derivatives against PyTorch, kinks, reductions, warnings, errors."""

import math
import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    FlowError,
    IndexRangeError,
    NotDifferentiableError,
    ShapeError,
)
from oneflow_lite.testing import Fixed, Sample, check_op

F = flow.nn.functional


def numbers(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng(seed).uniform(low, high, shape)


def classes(*shape, count=4, seed=5):
    return np.random.default_rng(seed).integers(0, count, shape)


X, Y = numbers(5, 4), numbers(5, 4, seed=1)
P, Q = numbers(5, 4, low=0.05, high=0.95), numbers(5, 4, seed=1, low=0.05, high=0.95)
SIMPLEX = Q / Q.sum(1, keepdims=True)
IGNORED = np.array([0, -100, 3, 1, -100])
IMAGE, LABELS = numbers(2, 3, 2, 2), classes(2, 2, 2, count=3)
W = numbers(4, low=0.2, high=2.0)

# Function of (nn.functional, *tensors) and the tensors; each with every reduction.
CASES = {
    "nll": (lambda f, x, t, **o: f.nll_loss(x, t, **o), X, classes(5)),
    "nll_weight": (lambda f, x, t, **o: f.nll_loss(x, t, DETACHED(f, W, x), **o), X, classes(5)),
    "nll_ignored": (lambda f, x, t, **o: f.nll_loss(x, t, **o), X, IGNORED),
    "nll_ignored_class": (
        lambda f, x, t, **o: f.nll_loss(x, t, DETACHED(f, W, x), ignore_index=2, **o),
        X,
        classes(5),
    ),
    "nll_image": (
        lambda f, x, t, **o: f.nll_loss(x, t, DETACHED(f, W[:3], x), ignore_index=1, **o),
        IMAGE,
        LABELS,
    ),
    "nll_unbatched": (lambda f, x, t, **o: f.nll_loss(x, t, **o), X[0], np.array(2)),
    "cross": (lambda f, x, t, **o: f.cross_entropy(x, t, **o), X, classes(5)),
    "cross_unbatched": (lambda f, x, t, **o: f.cross_entropy(x, t, **o), X[0], np.array(2)),
    "cross_image": (
        lambda f, x, t, **o: f.cross_entropy(x, t, DETACHED(f, W[:3], x), **o),
        IMAGE,
        LABELS,
    ),
    "cross_smoothed": (
        lambda f, x, t, **o: f.cross_entropy(x, t, label_smoothing=0.3, **o),
        X,
        IGNORED,
    ),
    "cross_smoothed_weight": (
        lambda f, x, t, **o: f.cross_entropy(
            x, t, DETACHED(f, W, x), ignore_index=1, label_smoothing=0.3, **o
        ),
        X,
        classes(5),
    ),
    "cross_smoothed_image": (
        lambda f, x, t, **o: f.cross_entropy(x, t, DETACHED(f, W[:3], x), label_smoothing=1.0, **o),
        IMAGE,
        LABELS,
    ),
    "cross_soft": (lambda f, x, t, **o: f.cross_entropy(x, t, **o), X, SIMPLEX),
    "cross_soft_unbatched": (lambda f, x, t, **o: f.cross_entropy(x, t, **o), X[0], SIMPLEX[0]),
    "cross_soft_smoothed_weight": (
        lambda f, x, t, **o: f.cross_entropy(x, t, DETACHED(f, W[:3], x), label_smoothing=0.2, **o),
        IMAGE,
        numbers(*IMAGE.shape, seed=3, low=0.0),
    ),
    "mse": (lambda f, x, y, **o: f.mse_loss(x, y, **o), X, Y),
    "mse_weight": (lambda f, x, y, w, **o: f.mse_loss(x, y, weight=w, **o), X, Y, P),
    "l1": (lambda f, x, y, **o: f.l1_loss(x, y, **o), X, Y),
    "l1_weight": (lambda f, x, y, w, **o: f.l1_loss(x, y, weight=w, **o), X, Y, P),
    "smooth_l1": (lambda f, x, y, **o: f.smooth_l1_loss(x, y, **o), X, Y),
    "smooth_l1_beta": (lambda f, x, y, **o: f.smooth_l1_loss(x, y, beta=0.5, **o), X, Y),
    "smooth_l1_beta_0": (lambda f, x, y, **o: f.smooth_l1_loss(x, y, beta=0.0, **o), X, Y),
    "huber": (lambda f, x, y, **o: f.huber_loss(x, y, **o), X, Y),
    "huber_delta": (lambda f, x, y, **o: f.huber_loss(x, y, delta=0.7, **o), X, Y),
    "huber_weight": (lambda f, x, y, w, **o: f.huber_loss(x, y, weight=w, **o), X, Y, P),
    "kl_div": (lambda f, x, y, **o: f.kl_div(x, y, **o), X, Q),
    "kl_div_log": (lambda f, x, y, **o: f.kl_div(x, y, log_target=True, **o), X, Y),
    "bce": (lambda f, x, y, **o: f.binary_cross_entropy(x, y, **o), P, Q),
    "bce_weight": (
        lambda f, x, y, **o: f.binary_cross_entropy(x, y, DETACHED(f, W, x), **o),
        P,
        Q,
    ),
    "logits": (lambda f, x, y, **o: f.binary_cross_entropy_with_logits(x, y, **o), X, Q),
    "logits_weights": (
        lambda f, x, y, **o: f.binary_cross_entropy_with_logits(
            x, y, DETACHED(f, W, x), pos_weight=DETACHED(f, W[::-1].copy(), x), **o
        ),
        X,
        Q,
    ),
}


def DETACHED(f, array, like):
    """A tensor that is not differentiated, of the dtype of `like`."""
    lib = flow if f is F else pytest.importorskip("torch")
    return lib.tensor(array).to(like.dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.filterwarnings("ignore:reduction. 'mean'", r"ignore:kl_div\(\)")
def test_agrees_with_pytorch(case, reduction, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    function, *arrays = case
    compare(
        lambda *tensors: function(F, *tensors, reduction=reduction),
        lambda *tensors: function(torch.nn.functional, *tensors, reduction=reduction),
        *[a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays],
        orders=3 if dtype == "float64" else 1,
    )


SMALL, TARGET = numbers(3, 2), np.array([1, 0, -100])
SAMPLES = {
    "nll_loss": [Sample(SMALL, Fixed(TARGET), reduction=r) for r in ("mean", "none")],
    "cross_entropy": [
        Sample(SMALL, Fixed(TARGET), label_smoothing=0.1),
        Sample(SMALL, numbers(3, 2, low=0.1)),
    ],
    "mse_loss": [Sample(SMALL, numbers(3, 2, seed=1), reduction=r) for r in ("mean", "none")],
    "l1_loss": [Sample(SMALL, numbers(3, 2, seed=1))],
    "smooth_l1_loss": [Sample(SMALL, numbers(3, 2, seed=1), beta=0.7)],
    "huber_loss": [Sample(SMALL, numbers(3, 2, seed=1), delta=0.7)],
    "kl_div": [Sample(SMALL, numbers(3, 2, low=0.1), reduction="batchmean")],
    "binary_cross_entropy": [Sample(P[:2, :2], Q[:2, :2])],
    "binary_cross_entropy_with_logits": [Sample(SMALL, Q[:3, :2])],
    "huber": [Sample(SMALL, delta=0.9)],
    "huber_grad": [Sample(SMALL, numbers(3, 2, seed=1), delta=0.9)],
    "nll_loss_grad": [
        Sample(
            numbers(*shape),
            Fixed(TARGET),
            None,
            shape=(3, 2),
            ignore_index=-100,
            reduction=reduction,
        )
        for reduction, shape in (("mean", ()), ("sum", ()), ("none", (3,)))
    ],
}


@pytest.mark.parametrize("op", SAMPLES)
def test_op(op, device):
    check_op(op, SAMPLES[op], device=device, degenerate=False)


KINKS = {
    "l1": (lambda f, x, y: f.l1_loss(x, y, reduction="sum"), [0.0, 1.0], [0.0, 1.0]),
    "huber": (lambda f, x, y: f.huber_loss(x, y, "sum", 0.5), [0.5, -0.5, 0.0], [0.0] * 3),
    "smooth_l1": (lambda f, x, y: f.smooth_l1_loss(x, y, beta=0.5), [0.5, -0.5, 0.0], [0.0] * 3),
    "bce": (
        lambda f, x, y: f.binary_cross_entropy(x, y.detach()),
        [0.0, 0.0, 1.0, 1.0, 1e-40],
        [0.0, 1.0, 0.0, 1.0, 1.0],
    ),
    "logits": (
        lambda f, x, y: f.binary_cross_entropy_with_logits(x, y),
        [0.0, 1000.0, -1000.0, 50.0],
        [0.0, 1.0, 1.0, 0.0],
    ),
    "kl_div": (lambda f, x, y: f.kl_div(x, y.detach(), reduction="sum"), [-1.0, -2.0], [0.0, 1.0]),
}


@pytest.mark.parametrize("name", KINKS)
def test_kinks_as_in_pytorch(name):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    function, *arrays = KINKS[name]
    compare(
        lambda *tensors: function(F, *tensors),
        lambda *tensors: function(torch.nn.functional, *tensors),
        *map(np.array, arrays),
        # Where the slope is cut off at 1e12, PyTorch has another formula for the second one.
        orders=1 if name == "bce" else 2,
        rtol=1e-6,
    )


def test_derivative_by_the_target_at_impossible_probabilities():
    torch = pytest.importorskip("torch")
    x, t = np.array([0.0, 1.0, 0.5]), np.array([0.5, 0.5, 0.5])
    found = []
    for lib in (flow, torch):
        target = lib.tensor(t).requires_grad_()
        with np.errstate(divide="ignore"):
            lib.nn.functional.binary_cross_entropy(lib.tensor(x), target).backward()
        found.append(target.grad.numpy())
    np.testing.assert_allclose(*found)


EMPTY = [
    ("nll_loss", np.zeros((0, 3)), np.zeros(0, int)),
    ("nll_loss", np.zeros((2, 3)), np.array([-100, -100])),
    ("cross_entropy", np.zeros((0, 3)), np.zeros(0, int)),
    ("cross_entropy", np.zeros((0, 3)), np.zeros((0, 3))),
    ("mse_loss", np.zeros(0), np.zeros(0)),
    ("huber_loss", np.zeros(0), np.zeros(0)),
    ("binary_cross_entropy", np.zeros(0), np.zeros(0)),
]


@pytest.mark.parametrize(("op", "x", "t"), EMPTY)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nothing_as_in_pytorch(op, x, t, reduction):
    torch = pytest.importorskip("torch")
    found = []
    for lib in (flow, torch):
        leaf = lib.tensor(x).requires_grad_()
        loss = getattr(lib.nn.functional, op)(leaf, lib.tensor(t), reduction=reduction)
        loss.sum().backward()
        found += [loss.detach().numpy(), leaf.grad.numpy()]
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[3])


def test_ignored_scores_may_be_infinite():
    x = flow.tensor([[0.5, 1.0], [math.inf, math.nan]], requires_grad=True)
    loss = F.nll_loss(x, flow.tensor([1, -100]))
    loss.backward()
    assert loss.item() == -1.0
    assert x.grad.tolist() == [[0.0, -1.0], [0.0, 0.0]]


def test_batchmean():
    x, y = flow.tensor(X), flow.tensor(Q)
    by_batch = F.kl_div(x, y, reduction="batchmean").item()
    assert by_batch == pytest.approx(F.kl_div(x, y, reduction="sum").item() / 5)
    one = F.kl_div(flow.tensor(-1.0), flow.tensor(0.5), reduction="batchmean")
    assert one.item() == pytest.approx(0.5 * (math.log(0.5) + 1))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_targets_of_any_integer_dtype(dtype):
    target = flow.tensor(classes(5).astype(dtype))
    assert F.nll_loss(flow.tensor(X), target).item() == pytest.approx(
        -X[range(5), classes(5)].mean()
    )


def test_halves_are_summed_in_single_precision():
    x = flow.tensor(np.full((4096, 2), -1.0, np.float16), requires_grad=True)
    loss = F.nll_loss(x, flow.zeros(4096, dtype=flow.int64))
    loss.backward()
    assert (loss.dtype, loss.item(), x.grad.dtype) == (flow.float16, 1.0, flow.float16)


@pytest.mark.parametrize(
    ("size_average", "reduce", "reduction"),
    [(True, None, "mean"), (False, None, "sum"), (None, False, "none"), (None, True, "mean")],
)
def test_deprecated_arguments(size_average, reduce, reduction):
    x, y = flow.tensor(X), flow.tensor(Y)
    with pytest.warns(UserWarning, match=rf"mse_loss\(\): .*reduction='{reduction}'") as caught:
        got = F.mse_loss(x, y, size_average, reduce)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(got.numpy(), F.mse_loss(x, y, reduction=reduction).numpy())


@pytest.mark.parametrize("op", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_broadcasting_warns(op):
    with pytest.warns(UserWarning, match=rf"{op}\(\): the target's shape \(4,\)") as caught:
        loss = getattr(F, op)(flow.tensor(X), flow.tensor(Y[0]), reduction="none")
    assert caught[0].filename == __file__
    assert loss.shape == (5, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(F, op)(flow.tensor(X), flow.tensor(Y))


def test_mean_divergence_warns():
    with pytest.warns(UserWarning, match="batchmean") as caught:
        F.kl_div(flow.tensor(X), flow.tensor(Q))
    assert caught[0].filename == __file__


def test_operands_meet_in_one_dtype():
    x, y = flow.tensor(X), flow.tensor(Y.astype("float32"), requires_grad=True)
    loss = F.mse_loss(x, y)
    loss.backward()
    assert (loss.dtype, y.grad.dtype) == (flow.float64, flow.float32)


def test_class_weights_have_no_gradient():
    weight = flow.ones(4, dtype=flow.float64, requires_grad=True)
    loss = F.nll_loss(flow.tensor(X, requires_grad=True), flow.tensor(classes(5)), weight)
    with pytest.raises(NotDifferentiableError, match=r"nll_loss.*'weight'"):
        loss.backward()


def _class(op="nll_loss", x=X, t=None, **options):
    target = classes(5) if t is None else t
    return lambda lib: getattr(F, op)(
        lib.tensor(x, requires_grad=True), lib.tensor(target), **options
    )


ERRORS = {
    "target too large": (_class(t=classes(5) + 4), IndexRangeError, "target"),
    "target negative": (_class(t=classes(5) - 5), IndexRangeError, "target"),
    "cross target": (_class("cross_entropy", t=classes(5) + 4), IndexRangeError, "target"),
    "no classes": (_class(x=X[:, :0]), IndexRangeError, "target"),
    "batches": (_class(t=classes(4)), ArgumentError, "target"),
    "many targets": (_class(t=classes(5, 4)), ShapeError, "target"),
    "image": (_class(x=IMAGE, t=LABELS[:, :1]), ShapeError, "target"),
    "float target": (_class(t=X[0]), DTypeError, "target"),
    "0-d input": (_class(x=np.array(1.0)), ArgumentError, "input"),
    "integer input": (
        lambda lib: F.nll_loss(lib.ones(5, 4, dtype=lib.int64), lib.tensor(classes(5))),
        DTypeError,
        "input",
    ),
    "weight shape": (
        lambda lib: F.nll_loss(lib.tensor(X), lib.tensor(classes(5)), lib.ones(3)),
        ShapeError,
        "weight",
    ),
    "weight dtype": (
        lambda lib: F.nll_loss(lib.tensor(X), lib.tensor(classes(5)), lib.ones(4)),
        DTypeError,
        "weight",
    ),
    "reduction": (_class(reduction="average"), ArgumentError, "reduction"),
    "reduction type": (_class(reduction=None), ArgumentTypeError, "reduction"),
    "batchmean": (_class(reduction="batchmean"), ArgumentError, "reduction"),
    "ignore_index": (_class(ignore_index=0.5), ArgumentTypeError, "ignore_index"),
    "smoothing": (_class("cross_entropy", label_smoothing=1.5), ArgumentError, "label_smoothing"),
    "soft batches": (_class("cross_entropy", t=Q[:4]), DTypeError, "target"),
    "soft ignored": (_class("cross_entropy", t=Q, ignore_index=1), ArgumentError, "ignore_index"),
    "soft integers": (_class("cross_entropy", t=classes(5, 4)), DTypeError, "target"),
    "soft weight": (
        lambda lib: F.cross_entropy(lib.tensor(X), lib.tensor(Q), lib.ones(3)),
        ShapeError,
        "weight",
    ),
    "mse reduction": (_class("mse_loss", t=Y, reduction="x"), ArgumentError, "reduction"),
    "mse integers": (
        lambda lib: F.mse_loss(lib.ones(2, dtype=lib.int64), lib.ones(2, dtype=lib.int64)),
        DTypeError,
        "input",
    ),
    "mse list": (lambda lib: F.mse_loss(lib.ones(2), [1.0, 2.0]), ArgumentTypeError, "target"),
    "mse weight": (_class("mse_loss", t=Y, weight=flow.ones(4)), ArgumentError, "weight"),
    "beta": (_class("smooth_l1_loss", t=Y, beta=-1), ArgumentError, "beta"),
    "delta": (_class("huber_loss", t=Y, delta=0), ArgumentError, "delta"),
    "delta type": (_class("huber_loss", t=Y, delta="a"), ArgumentTypeError, "delta"),
    "kl reduction": (_class("kl_div", t=Q, reduction="x"), ArgumentError, "reduction"),
    "bce range": (_class("binary_cross_entropy", x=P + 1, t=Q), ArgumentError, "input"),
    "bce nan": (_class("binary_cross_entropy", x=P * math.nan, t=Q), ArgumentError, "input"),
    "bce target": (_class("binary_cross_entropy", x=P, t=Q - 1), ArgumentError, "target"),
    "bce shapes": (_class("binary_cross_entropy", x=P, t=Q[:1]), ArgumentError, "target"),
    "bce dtypes": (
        _class("binary_cross_entropy", x=P, t=Q.astype("float32")),
        DTypeError,
        "target",
    ),
    "logits shapes": (
        _class("binary_cross_entropy_with_logits", t=Q[:1]),
        ArgumentError,
        "target",
    ),
    "logits integers": (
        _class("binary_cross_entropy_with_logits", t=classes(5, 4)),
        DTypeError,
        "target",
    ),
}


@pytest.mark.parametrize(("call", "error", "argument"), ERRORS.values(), ids=ERRORS)
def test_bad_arguments(call, error, argument):
    with pytest.raises(error, match=rf"^\w+\(\): argument '{argument}'") as caught:
        call(flow)
    assert isinstance(caught.value, FlowError)


def test_shapes_that_do_not_broadcast():
    with (
        pytest.warns(UserWarning),
        pytest.raises(ShapeError, match=r"mse_loss.*\(5, 4\) and \(4, 4\)"),
    ):
        F.mse_loss(flow.tensor(X), flow.tensor(Y[:4]))
