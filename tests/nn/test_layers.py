"""Layers with parameters against PyTorch: repr, state, output, gradients; and starting values."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn

INTEGERS = "integers"

# class, arguments, keyword arguments, input shape
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
