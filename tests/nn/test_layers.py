"""Every layer against PyTorch: repr, state, output, gradients; and starting values."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn

INTEGERS = "integers"

# class, arguments, keyword arguments, input shape (None: no call)
LAYERS = [
    ("Linear", (4, 3), {}, (5, 4)),
    ("Linear", (4, 3), {"bias": False}, (2, 5, 4)),
    ("Linear", (4, 3), {}, (4,)),
    ("Conv1d", (2, 3, 3), {}, (2, 2, 7)),
    ("Conv1d", (2, 4, 3), {"stride": 2, "padding": 1, "groups": 2}, (2, 2, 7)),
    ("Conv1d", (2, 2, 4), {"padding": "same", "padding_mode": "circular"}, (1, 2, 6)),
    ("Conv2d", (1, 2, 3), {}, (2, 1, 5, 6)),
    ("Conv2d", (2, 4, (3, 2)), {"padding": (1, 0), "dilation": (1, 2), "groups": 2}, (1, 2, 6, 6)),
    ("Conv2d", (2, 2, 3), {"padding": "same", "dilation": 2, "bias": False}, (1, 2, 6, 5)),
    ("Conv2d", (1, 1, 3), {"padding": "valid", "stride": (2, 1)}, (1, 1, 6, 5)),
    ("Conv2d", (1, 1, 3), {"padding": 1, "padding_mode": "reflect"}, (1, 1, 5, 5)),
    ("Conv2d", (1, 1, (3, 4)), {"padding": "same", "padding_mode": "replicate"}, (1, 1, 5, 5)),
    ("Conv2d", (1, 1, (3, 2)), {"padding": (2, 1), "padding_mode": "circular"}, (1, 1, 5, 5)),
    ("Conv2d", (1, 1, 3), {"padding": "valid", "padding_mode": "reflect"}, (1, 1, 5, 5)),
    ("MaxPool1d", (2,), {}, (2, 3, 7)),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 3, 8)),
    ("MaxPool2d", (2,), {}, (2, 3, 6, 6)),
    ("MaxPool2d", ((2, 3),), {"stride": (2, 1), "padding": 1, "dilation": 1}, (1, 1, 6, 6)),
    ("AvgPool1d", (2,), {}, (2, 3, 7)),
    ("AvgPool1d", (3,), {"stride": 2, "padding": 1, "count_include_pad": False}, (2, 3, 7)),
    ("AvgPool2d", (2,), {}, (2, 3, 6, 6)),
    ("AvgPool2d", ((2, 3),), {"stride": 2, "padding": 1, "divisor_override": 4}, (1, 1, 6, 6)),
    ("AdaptiveAvgPool2d", ((2, None),), {}, (1, 2, 5, 4)),
    ("AdaptiveAvgPool2d", (1,), {}, (1, 2, 5, 4)),
    ("BatchNorm1d", (3,), {}, (5, 3)),
    ("BatchNorm1d", (3,), {"momentum": None, "eps": 1e-3}, (5, 3, 4)),
    ("BatchNorm1d", (3,), {"affine": False}, (5, 3)),
    ("BatchNorm2d", (2,), {"momentum": 0.3}, (3, 2, 4, 4)),
    ("BatchNorm2d", (2,), {"track_running_stats": False}, (3, 2, 4, 4)),
    ("LayerNorm", (4,), {}, (3, 4)),
    ("LayerNorm", ((3, 4),), {"eps": 1e-3, "bias": False}, (2, 3, 4)),
    ("LayerNorm", ([4],), {"elementwise_affine": False}, (2, 3, 4)),
    ("GroupNorm", (2, 4), {}, (3, 4, 5)),
    ("GroupNorm", (2, 4), {"affine": False, "eps": 1e-3}, (3, 4, 2, 2)),
    ("RMSNorm", (4,), {}, (3, 4)),
    ("RMSNorm", ((3, 4),), {"eps": 1e-3, "elementwise_affine": False}, (2, 3, 4)),
    ("Embedding", (5, 3), {}, INTEGERS),
    ("Embedding", (5, 3), {"padding_idx": -4}, INTEGERS),
    ("Embedding", (5, 3), {"scale_grad_by_freq": True}, INTEGERS),
    ("Embedding", (5, 3), {"max_norm": 0.5, "norm_type": 1.0}, INTEGERS),
    ("Dropout", (0.3,), {}, None),
    ("Dropout", (), {"inplace": True}, None),
    ("Dropout", (0.0,), {}, (3, 4)),
    ("Flatten", (), {}, (2, 3, 4)),
    ("Flatten", (0, 1), {}, (2, 3, 4)),
    ("Unflatten", (1, (2, 3)), {}, (2, 6)),
    ("Identity", (3,), {"unused": 1}, (2, 6)),
    ("ReLU", (), {}, (3, 4)),
    ("ReLU6", (), {}, (3, 4)),
    ("LeakyReLU", (), {}, (3, 4)),
    ("LeakyReLU", (0.3,), {}, (3, 4)),
    ("ELU", (), {}, (3, 4)),
    ("ELU", (0.7,), {}, (3, 4)),
    ("SELU", (), {}, (3, 4)),
    ("CELU", (1.5,), {}, (3, 4)),
    ("GELU", (), {}, (3, 4)),
    ("GELU", ("tanh",), {}, (3, 4)),
    ("SiLU", (), {}, (3, 4)),
    ("Mish", (), {}, (3, 4)),
    ("Softplus", (), {}, (3, 4)),
    ("Softplus", (2, 1.0), {}, (3, 4)),
    ("Softsign", (), {}, (3, 4)),
    ("Sigmoid", (), {}, (3, 4)),
    ("LogSigmoid", (), {}, (3, 4)),
    ("Tanh", (), {}, (3, 4)),
    ("Tanhshrink", (), {}, (3, 4)),
    ("Hardtanh", (), {}, (3, 4)),
    ("Hardtanh", (-0.5, 0.7), {}, (3, 4)),
    ("Hardsigmoid", (), {}, (3, 4)),
    ("Hardswish", (), {}, (3, 4)),
    ("Softmax", (1,), {}, (3, 4)),
    ("LogSoftmax", (), {"dim": 0}, (3, 4)),
]

CASES = [pytest.param(*layer, id=f"{layer[0]}-{i}") for i, layer in enumerate(LAYERS)]


def twins(torch, name, args, kwargs):
    """Return the layer here and in PyTorch, in float64 and with the same state."""
    ours = getattr(nn, name)(*args, **kwargs).double()
    theirs = getattr(torch.nn, name)(*args, **kwargs).double()
    with torch.no_grad():
        for tensor in theirs.parameters():
            tensor.add_(0.1)  # weights of 1 and biases of 0 would hide a missing factor
    state = {key: flow.from_numpy(t.numpy().copy()) for key, t in theirs.state_dict().items()}
    ours.load_state_dict(state)
    return ours, theirs


@pytest.mark.parametrize(("name", "args", "kwargs", "shape"), CASES)
def test_layers_agree_with_pytorch(torch, name, args, kwargs, shape):
    ours, theirs = twins(torch, name, args, kwargs)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    if shape is None:
        return
    rng = np.random.default_rng(3)
    for training in (True, True, False):
        ours.train(training), theirs.train(training)
        if shape == INTEGERS:
            array = rng.integers(0, 5, (3, 4))
            x, x_torch = flow.tensor(array), torch.tensor(array)
        else:
            array = rng.standard_normal(shape) * 2
            x = flow.tensor(array, requires_grad=True)
            x_torch = torch.tensor(array, requires_grad=True)
        y, y_torch = ours(x), theirs(x_torch)
        assert y.shape == tuple(y_torch.shape)
        np.testing.assert_allclose(y.numpy(), y_torch.detach().numpy(), rtol=1e-9, atol=1e-12)
        for module in (ours, theirs):
            module.zero_grad()
        factor = rng.standard_normal(y.shape)
        (y * flow.tensor(factor)).sum().backward()
        (y_torch * torch.tensor(factor)).sum().backward()
        pairs = list(zip(ours.parameters(), theirs.parameters(), strict=True))
        if shape != INTEGERS:
            pairs.append((x, x_torch))
        for a, b in pairs:
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-7, atol=1e-10)
        for key, value in theirs.state_dict().items():
            mine = ours.state_dict()[key]
            np.testing.assert_allclose(mine.numpy(), value.numpy(), rtol=1e-9, atol=1e-12)
            assert str(mine.dtype) == str(value.dtype).removeprefix("torch.")


@pytest.mark.parametrize(
    "name",
    ["ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "SiLU", "Mish", "Hardtanh",
     "Hardsigmoid", "Hardswish"],
)  # fmt: skip
def test_activations_can_overwrite_their_input(torch, name):
    ours, theirs = getattr(nn, name)(inplace=True), getattr(torch.nn, name)(inplace=True)
    assert repr(ours) == repr(theirs)
    data = np.array([-4.0, -0.5, 0.25, 7.0])
    leaf = flow.tensor(data, requires_grad=True)
    x = leaf * 1
    y = ours(x)
    assert y is x
    np.testing.assert_allclose(y.detach().numpy(), theirs(torch.tensor(data)).numpy())
    y.sum().backward()
    outer = torch.tensor(data, requires_grad=True)
    theirs(outer * 1).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), outer.grad.numpy())


def test_max_pool_returns_indices(torch):
    x = np.random.default_rng(0).standard_normal((1, 2, 6, 6))
    for name, array in (("MaxPool2d", x), ("MaxPool1d", x[0])):
        y, at = getattr(nn, name)(2, return_indices=True)(flow.tensor(array))
        y_torch, at_torch = getattr(torch.nn, name)(2, return_indices=True)(torch.tensor(array))
        np.testing.assert_array_equal(y.numpy(), y_torch.numpy())
        np.testing.assert_array_equal(at.numpy(), at_torch.numpy())


def test_dropout_scales_what_it_keeps():
    flow.manual_seed(0)
    x = flow.ones(2000, requires_grad=True)
    y = nn.Dropout(0.25)(x)
    values, counts = np.unique(y.detach().numpy(), return_counts=True)
    np.testing.assert_allclose(values, [0.0, 1 / 0.75], rtol=1e-6)
    assert abs(counts[0] - 500) < 100
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
    flow.manual_seed(0)
    np.testing.assert_array_equal(nn.Dropout(0.25)(x).detach().numpy(), y.detach().numpy())
    assert not nn.Dropout(1.0)(x).any()


def test_batch_norm_counts_batches_and_forgets_on_reset():
    norm = nn.BatchNorm1d(2)
    x = flow.tensor([[1.0, 2.0], [3.0, 6.0]])
    norm(x)
    norm(x)
    norm.eval()(x)
    assert norm.num_batches_tracked.item() == 2
    np.testing.assert_allclose(norm.running_mean.numpy(), [2 * 0.19, 4 * 0.19], rtol=1e-6)
    norm.reset_running_stats()
    assert norm.num_batches_tracked.item() == 0
    np.testing.assert_array_equal(norm.running_mean.numpy(), [0.0, 0.0])
    np.testing.assert_array_equal(norm.running_var.numpy(), [1.0, 1.0])


def test_starting_values_are_within_pytorchs_bounds():
    flow.manual_seed(1)
    for layer, fan_in in ((nn.Linear(25, 400), 25), (nn.Conv2d(4, 50, (3, 5), groups=2), 30)):
        bound = 1 / math.sqrt(fan_in)
        for tensor in (layer.weight, layer.bias):
            assert tensor.abs().max().item() <= bound
            assert tensor.abs().max().item() > 0.9 * bound
            assert abs(tensor.mean().item()) < 0.25 * bound
    table = nn.Embedding(500, 20, padding_idx=3).weight.detach().numpy()
    assert abs(table.std() - 1) < 0.05
    np.testing.assert_array_equal(table[3], np.zeros(20))
    flow.manual_seed(7)
    first = nn.Linear(3, 3).weight.detach().numpy()
    flow.manual_seed(7)
    np.testing.assert_array_equal(nn.Linear(3, 3).weight.detach().numpy(), first)


def test_reset_parameters_draws_anew_in_place():
    for layer in (nn.Linear(3, 3), nn.Conv2d(1, 2, 3), nn.Embedding(3, 3, padding_idx=0)):
        weight, before = layer.weight, layer.weight.detach().numpy().copy()
        layer.reset_parameters()
        assert layer.weight is weight
        assert (weight.detach().numpy() != before).any()
    for layer in (nn.LayerNorm(2), nn.GroupNorm(1, 2), nn.RMSNorm(2), nn.BatchNorm2d(2)):
        layer.weight.data.fill_(9)
        layer.reset_parameters()
        np.testing.assert_array_equal(layer.weight.detach().numpy(), [1.0, 1.0])


def test_embedding_of_a_given_table():
    table = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    frozen = nn.Embedding.from_pretrained(table)
    assert not frozen.weight.requires_grad
    np.testing.assert_array_equal(frozen(flow.tensor([1, 0])).numpy(), [[3.0, 4.0], [1.0, 2.0]])
    trained = nn.Embedding.from_pretrained(table, freeze=False, padding_idx=0)
    assert trained.padding_idx == 0
    trained(flow.tensor([0, 1])).sum().backward()
    np.testing.assert_array_equal(trained.weight.grad.numpy(), [[0.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: nn.Linear(2.5, 1), TypeError, "in_features"),
        (lambda: nn.Linear(2, -1), ValueError, "out_features"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "out_channels"),
        (lambda: nn.Conv2d(4, 4, 3, groups=0), ValueError, "groups"),
        (lambda: nn.Conv2d(1, 1, (3, 3, 3)), ValueError, "kernel_size"),
        (lambda: nn.Conv2d(1, 1, 0), ValueError, "kernel_size"),
        (lambda: nn.Conv2d(1, 1, 3, padding=-1), ValueError, "padding"),
        (lambda: nn.Conv2d(1, 1, 3, padding="full"), ValueError, "padding"),
        (lambda: nn.Conv2d(1, 1, 3, padding="same", stride=2), ValueError, "padding"),
        (lambda: nn.Conv2d(1, 1, 3, padding_mode="mirror"), ValueError, "padding_mode"),
        (lambda: nn.GroupNorm(2, 3), ValueError, "num_channels"),
        (lambda: nn.LayerNorm("ab"), TypeError, "normalized_shape"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), ValueError, "padding_idx"),
        (lambda: nn.Embedding(3, 2, _weight=flow.ones(2, 3)), RuntimeError, "_weight"),
        (lambda: nn.Embedding.from_pretrained(flow.ones(3)), RuntimeError, "embeddings"),
        (lambda: nn.Dropout(1.5), ValueError, "p"),
        (lambda: nn.Hardtanh(1.0, -1.0), ValueError, "max_val"),
        (lambda: nn.Unflatten(1, 3), TypeError, "unflattened_size"),
        (lambda: nn.BatchNorm1d(2)(flow.ones(2)), ValueError, "BatchNorm1d"),
        (lambda: nn.BatchNorm2d(2)(flow.ones(2, 2, 2)), ValueError, "BatchNorm2d"),
        (lambda: nn.Linear(2, 2, dtype="no such"), TypeError, "dtype"),
    ],
)
def test_bad_arguments(build, error, text):
    with pytest.raises(error, match=text):
        build()


def test_batch_norm_leaves_its_statistics_alone_when_it_refuses_an_input():
    norm = nn.BatchNorm2d(2)
    for x in (flow.ones(2, 2), flow.ones(2, 3, 4, 4)):
        with pytest.raises((ValueError, RuntimeError)):
            norm(x)
    np.testing.assert_array_equal(norm.running_mean.numpy(), [0.0, 0.0])


def test_a_network_trains_on_a_device(device):
    flow.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
    x = flow.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], device=device)
    y = flow.tensor([[0.0], [1.0], [1.0], [0.0]], device=device)
    losses = []
    for _ in range(60):
        net.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        losses.append(loss.item())
        with flow.no_grad():
            for parameter in net.parameters():
                parameter.sub_(parameter.grad * 0.5)
    assert losses[-1] < 0.7 * losses[0]
