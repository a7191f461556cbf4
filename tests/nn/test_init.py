"""Starting values: distributions, bounds, reproducibility, and refusals."""

import inspect
import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.nn import init


def drawn(fill, shape=(200, 300), **options) -> np.ndarray:
    flow.manual_seed(0)
    tensor = flow.full(shape, 99.0, requires_grad=True)
    assert fill(tensor, **options) is tensor
    assert tensor.is_leaf
    assert tensor.requires_grad
    return tensor.detach().numpy()


def assert_uniform(values: np.ndarray, low: float, high: float) -> None:
    assert low <= values.min() < low + 0.01 * (high - low)
    assert high - 0.01 * (high - low) < values.max() <= high
    assert abs(values.mean() - (low + high) / 2) < 0.01 * (high - low)


def assert_normal(values: np.ndarray, mean: float, std: float) -> None:
    assert abs(values.mean() - mean) < 0.02 * std
    assert abs(values.std() - std) < 0.02 * std
    inside = (abs(values - mean) < std).mean()
    assert abs(inside - 0.6827) < 0.01


def test_uniform_and_normal():
    assert_uniform(drawn(init.uniform_), 0, 1)
    assert_uniform(drawn(init.uniform_, a=-2.0, b=3.0), -2, 3)
    assert_normal(drawn(init.normal_), 0, 1)
    assert_normal(drawn(init.normal_, mean=2.0, std=0.1), 2, 0.1)


def test_constants():
    assert (drawn(init.constant_, (2, 2), val=0.3) == np.float32(0.3)).all()
    assert (drawn(init.ones_, (2, 2)) == 1).all()
    assert (drawn(init.zeros_, (2, 2)) == 0).all()
    np.testing.assert_array_equal(drawn(init.eye_, (2, 3)), np.eye(2, 3))


def test_xavier_and_kaiming():
    fans = 300 + 200
    assert_uniform(drawn(init.xavier_uniform_), -math.sqrt(6 / fans), math.sqrt(6 / fans))
    assert_normal(drawn(init.xavier_normal_, gain=2.0), 0, 2 * math.sqrt(2 / fans))
    bound = math.sqrt(6 / 300)
    assert_uniform(drawn(init.kaiming_uniform_), -bound, bound)
    assert_normal(
        drawn(init.kaiming_normal_, mode="fan_out", nonlinearity="relu"), 0, math.sqrt(2 / 200)
    )
    bound = math.sqrt(3) * math.sqrt(2 / (1 + 5)) / math.sqrt(300)
    assert_uniform(drawn(init.kaiming_uniform_, a=math.sqrt(5)), -bound, bound)
    window = drawn(init.kaiming_normal_, (100, 20, 5, 5), mode="fan_in", nonlinearity="linear")
    assert_normal(window, 0, 1 / math.sqrt(500))


def test_truncated_normal():
    values = drawn(init.trunc_normal_)
    assert values.min() >= -2
    assert values.max() <= 2
    assert abs(values.std() - 0.8796) < 0.01  # of the standard normal cut at two deviations
    skewed = drawn(init.trunc_normal_, mean=1.0, std=0.5, a=1.0, b=9.0)
    assert skewed.min() >= 1
    assert abs(skewed.mean() - (1 + 0.5 * math.sqrt(2 / math.pi))) < 0.01
    half = flow.zeros(50, dtype=flow.float16)
    assert init.trunc_normal_(half).dtype == flow.float16
    assert half.abs().max().item() <= 2


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5), (3, 2, 2)])
def test_orthogonal(shape):
    q = drawn(init.orthogonal_, shape, gain=2.0).reshape(shape[0], -1) / 2
    small = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-6)


def test_a_generator_is_drawn_from():
    for fill in (
        init.uniform_, init.normal_, init.trunc_normal_, init.xavier_uniform_, init.xavier_normal_,
        init.kaiming_uniform_, init.kaiming_normal_, init.orthogonal_,
    ):  # fmt: skip
        results = []
        for seed in (3, 3, 4):
            generator = flow.Generator().manual_seed(seed)
            results.append(fill(flow.zeros(4, 4), generator=generator).numpy())
        np.testing.assert_array_equal(results[0], results[1])
        assert (results[0] != results[2]).any()


def test_gains(torch):
    transposed = [f"conv_transpose{n}d" for n in (1, 2, 3)]
    others = ["linear", "sigmoid", "tanh", "relu", "selu", "leaky_relu"]
    for name in ["conv1d", "conv2d", "conv3d", *transposed, *others]:
        assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    assert init.calculate_gain("leaky_relu", 0.2) == pytest.approx(
        torch.nn.init.calculate_gain("leaky_relu", 0.2)
    )


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda t: init.calculate_gain("softmax"), "nonlinearity"),
        (lambda t: init.calculate_gain("leaky_relu", "x"), "param"),
        (lambda t: init.xavier_uniform_(t), "2 dimensions"),
        (lambda t: init.kaiming_normal_(t), "2 dimensions"),
        (lambda t: init.kaiming_normal_(flow.ones(2, 2), mode="fan"), "mode"),
        (lambda t: init.eye_(t), "2 dimensions"),
        (lambda t: init.orthogonal_(t), "2 dimensions"),
        (lambda t: init.trunc_normal_(t, a=2.0, b=1.0), "a < b"),
        (lambda t: init.uniform_(t, 1.0, 0.0), "uniform_"),
        (lambda t: init.dirac_(t), "3 to 5 dimensions"),
        (lambda t: init.dirac_(flow.ones(3, 2, 2), groups=2), "groups"),
        (lambda t: init.sparse_(t, 0.5), "2 dimensions"),
    ],
)
def test_refusals_leave_the_tensor_alone(act, text):
    tensor = flow.ones(3)
    with pytest.raises(ValueError, match=text):
        act(tensor)
    np.testing.assert_array_equal(tensor.numpy(), np.ones(3))


def test_other_things_than_tensors_are_refused():
    for fill in (init.ones_, init.normal_, init.kaiming_normal_, init.orthogonal_):
        with pytest.raises(TypeError, match="tensor"):
            fill([1.0])


def test_a_tensor_without_elements_is_left_alone_with_a_warning():
    with pytest.warns(UserWarning, match="without elements"):
        assert init.kaiming_uniform_(flow.zeros(0, 3)).shape == (0, 3)


def test_nothing_is_recorded_or_aliased(device):
    tensor = flow.zeros(3, 3, device=device, requires_grad=True)
    for fill in (init.eye_, init.orthogonal_, init.trunc_normal_, init.normal_, init.ones_):
        fill(tensor)
        assert tensor.grad_fn is None
    init.sparse_(tensor, 0.5)
    filters = init.dirac_(flow.zeros(3, 3, 1, device=device, requires_grad=True))
    assert tensor.grad_fn is filters.grad_fn is None
    assert tensor.device.type == filters.device.type == device
    assert (tensor.cpu() == 0).sum() == 6
    np.testing.assert_array_equal(filters.detach().cpu().numpy()[..., 0], np.eye(3))


def test_names_and_signatures_are_pytorchs(torch):
    functions = [n for n, f in vars(torch.nn.init).items() if inspect.isfunction(f)]
    for name in functions:
        ours, theirs = getattr(init, name, None), getattr(torch.nn.init, name)
        if name.startswith("_") and ours is None:
            continue  # PyTorch's own helpers
        if hasattr(init, f"{name}_"):  # a deprecated name takes anything and hands it on
            theirs = getattr(torch.nn.init, f"{name}_")
        have, want = (list(inspect.signature(f).parameters.values()) for f in (ours, theirs))
        want = want[: len(have)] if name.startswith("_") else want
        assert [(p.name, p.default) for p in have][: len(want)] == [
            (p.name, p.default) for p in want
        ]


OLD = (
    "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal "
    "orthogonal sparse"
).split()


@pytest.mark.parametrize("name", OLD)
def test_old_names_warn_and_do_the_same(torch, name):
    given = {"constant": (0.5,), "sparse": (0.5,)}.get(name, ())
    shape = (2, 3, 3) if name == "dirac" else (3, 4)
    flow.manual_seed(1)
    want = getattr(init, f"{name}_")(flow.zeros(shape), *given)
    flow.manual_seed(1)
    with pytest.warns(FutureWarning, match=f"nn.init.{name}_") as caught:
        have = getattr(init, name)(flow.zeros(shape), *given)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(have.numpy(), want.numpy())
    assert getattr(init, name).__name__ == getattr(torch.nn.init, name).__name__


@pytest.mark.parametrize(
    ("shape", "groups"),
    [((4, 2, 3), 1), ((4, 2, 3), 2), ((2, 4, 2, 5), 1), ((6, 1, 3, 1, 2), 3), ((0, 2, 1), 1)],
)
def test_dirac(torch, shape, groups):
    ours = init.dirac_(flow.full(shape, 9.0), groups)
    theirs = torch.nn.init.dirac_(torch.full(shape, 9.0), groups)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    if len(shape) == 3 and shape[0]:
        x = flow.rand(1, shape[1] * groups, 5)
        y = flow.nn.functional.conv1d(x, ours, padding=1, groups=groups)
        np.testing.assert_array_equal(y[:, :2].numpy(), x[:, :2].numpy())


@pytest.mark.parametrize("sparsity", [0.0, 0.25, 0.31, 1.0])
def test_sparse(torch, monkeypatch, sparsity):
    values = drawn(init.sparse_, (20, 5), sparsity=sparsity, std=2.0)
    np.testing.assert_array_equal((values == 0).sum(0), [math.ceil(sparsity * 20)] * 5)
    if sparsity == 0.25:
        assert len({tuple(np.flatnonzero(column)) for column in values.T}) == 5
        assert_normal(drawn(init.sparse_, (400, 300), sparsity=0.0), 0, 0.01)


def test_an_orthogonal_matrix_is_made_of_normal_numbers_as_pytorch_makes_it(torch, monkeypatch):
    for shape in ((3, 5), (5, 3), (2, 3, 2)):
        torch.manual_seed(2)
        theirs = torch.nn.init.orthogonal_(torch.empty(shape, dtype=torch.float64), 2.0)
        torch.manual_seed(2)
        rows = shape[0], math.prod(shape[1:])
        numbers = torch.empty(rows, dtype=torch.float64).normal_().numpy()
        monkeypatch.setattr("oneflow_lite.kernels.random._normal", lambda *_, n=numbers: n)
        ours = init.orthogonal_(flow.zeros(shape, dtype=flow.float64), 2.0)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9)
