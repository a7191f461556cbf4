"""Layers with parameters against PyTorch's: signature, text, state, draws, output, gradients."""

import inspect
import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn

# Where PyTorch has them; what has no parameters is tested with the layers of its family.
FAMILIES = "conv batchnorm instancenorm normalization linear sparse adaptive lazy container".split()
ELSEWHERE = {"Identity", "LocalResponseNorm", "CrossMapLRN2d", "Container"}
ROWS = ((3, 4), (3, 4))
NUMBERS = np.array([[0, 2, 1], [3, 3, 0]])
MANY = np.array([0, 2, 1, 3, 3, 0])

# What is built, and the inputs: shapes, or integers.
LAYERS = {
    "Linear(4, 3)": [(5, 4)],
    "Linear(4, 3, bias=False)": [(4,)],
    "Bilinear(4, 3, 2)": [(5, 4), (5, 3)],
    "Bilinear(2, 2, 1, bias=False)": [(2, 3, 2), (2, 3, 2)],
    "Conv1d(2, 4, 3, stride=2, padding=1, groups=2)": [(2, 2, 7)],
    "Conv1d(2, 2, 4, padding='same', padding_mode='circular')": [(2, 6)],
    "Conv2d(2, 4, (3, 2), padding=(1, 0), dilation=(1, 2), groups=2)": [(1, 2, 6, 6)],
    "Conv2d(2, 2, 3, padding='same', dilation=2, bias=False)": [(1, 2, 6, 5)],
    "Conv2d(1, 1, 3, padding=1, padding_mode='reflect')": [(1, 1, 5, 5)],
    "Conv2d(1, 1, 3, padding='valid', padding_mode='replicate')": [(1, 5, 5)],
    "Conv3d(2, 2, (1, 2, 3), stride=(1, 2, 1), padding=1)": [(1, 2, 2, 3, 3)],
    "Conv3d(2, 2, 2, padding='valid', groups=2)": [(2, 2, 3, 3)],
    "ConvTranspose1d(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2)": [(2, 2, 4)],
    "ConvTranspose2d(2, 3, (2, 3), stride=2, dilation=(1, 2), bias=False)": [(2, 3, 3)],
    "ConvTranspose2d(2, 2, 2, 3, output_padding=(1, 2), dilation=2)": [(1, 2, 2, 2)],
    "ConvTranspose3d(1, 2, 2, stride=(1, 2, 1))": [(1, 1, 2, 2, 2)],
    "BatchNorm1d(3)": [(5, 3)],
    "BatchNorm1d(3, momentum=None, eps=1e-3)": [(5, 3, 4)],
    "BatchNorm1d(3, bias=False)": [(5, 3)],
    "BatchNorm2d(2, track_running_stats=False)": [(3, 2, 2, 2)],
    "BatchNorm3d(2, momentum=0.3, affine=False)": [(3, 2, 2, 2, 1)],
    "SyncBatchNorm(2)": [(3, 2, 2)],
    "InstanceNorm1d(2)": [(3, 2, 4)],
    "InstanceNorm1d(2, affine=True)": [(2, 4)],
    "InstanceNorm2d(2, affine=True, track_running_stats=True)": [(3, 2, 2, 2)],
    "InstanceNorm2d(2, affine=True, bias=False, momentum=0.5)": [(2, 2, 2)],
    "InstanceNorm3d(2, track_running_stats=True, eps=1e-3)": [(3, 2, 1, 2, 2)],
    "GroupNorm(2, 4)": [(3, 4, 5)],
    "GroupNorm(2, 4, affine=False, eps=1e-3)": [(3, 4, 2, 2)],
    "GroupNorm(1, 2, bias=False)": [(3, 2, 2)],
    "LayerNorm((3, 4), eps=1e-3, bias=False)": [(2, 3, 4)],
    "LayerNorm([4])": [(2, 3, 4)],
    "LayerNorm(4, elementwise_affine=False)": [(2, 4)],
    "RMSNorm(4)": [(3, 4)],
    "RMSNorm((3, 4), 1e-3, elementwise_affine=False)": [(2, 3, 4)],
    "Embedding(5, 3, padding_idx=-4, norm_type=1.0)": [NUMBERS],
    "Embedding(5, 3, scale_grad_by_freq=True)": [NUMBERS],
    "Embedding(5, 3, max_norm=0.5, norm_type=1.0)": [NUMBERS],
    "EmbeddingBag(5, 3, padding_idx=3)": [NUMBERS],
    "EmbeddingBag(5, 3, mode='sum')": [MANY, np.array([0, 2, 2]), (6,)],
    "EmbeddingBag(5, 3, max_norm=0.5, mode='max')": [NUMBERS],
    "EmbeddingBag(5, 3, include_last_offset=True)": [
        MANY, np.array([0, 2, 6])
    ],
    "AdaptiveLogSoftmaxWithLoss(8, 9, [3, 5], div_value=2.0)": [(4, 8), np.array([0, 4, 3, 8])],
    "AdaptiveLogSoftmaxWithLoss(4, 6, [2], head_bias=True)": [(4,), np.array(5)],
    "LazyLinear(3)": [(5, 4)],
    "LazyLinear(3, bias=False)": [(4,)],
    "LazyConv1d(4, 3, groups=2)": [(2, 4, 7)],
    "LazyConv2d(2, 2, padding='same')": [(3, 4, 4)],
    "LazyConv3d(2, 2, bias=False)": [(1, 3, 2, 2, 3)],
    "LazyConvTranspose1d(2, 2)": [(2, 3)],
    "LazyConvTranspose2d(4, 2, stride=2, output_padding=1, groups=2)": [(1, 2, 2, 2)],
    "LazyConvTranspose3d(1, 2)": [(1, 2, 2, 2, 1)],
    "LazyBatchNorm1d()": [(3, 2)],
    "LazyBatchNorm2d(affine=False)": [(3, 2, 2, 2)],
    "LazyBatchNorm3d(track_running_stats=False, bias=False)": [(3, 2, 2, 2, 1)],
    "LazyInstanceNorm1d()": [(3, 2, 4)],
    "LazyInstanceNorm2d(affine=False)": [(3, 2, 2, 2)],
    "LazyInstanceNorm3d(1e-3, 0.3)": [(3, 2, 1, 2, 2)],
}  # fmt: skip
by_layer = pytest.mark.parametrize("text", LAYERS)


def names(torch, modules) -> list[str]:
    return [
        name
        for name, value in vars(torch.nn).items()
        if inspect.isclass(value)
        and value.__module__.removeprefix("torch.nn.").removeprefix("modules.") in modules
        and name not in ELSEWHERE
    ]


def build(library, text: str, **more):
    options = "".join([f", {name}={name}" for name in more])
    text = text[:-1].removesuffix(", ") + options + ")" if more else text
    return eval(text.replace("(, ", "("), {**vars(library.nn), **more})


def parts(function) -> list[tuple]:
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


def tensors(library, inputs, seed: int, dtype: str = "float64") -> list:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(x) if isinstance(x, tuple) else x for x in inputs]
    kinds = [getattr(library, dtype) if a.dtype.kind == "f" else library.int64 for a in arrays]
    made = [library.tensor(a, dtype=kind) for a, kind in zip(arrays, kinds, strict=True)]
    return [x.requires_grad_(x.is_floating_point()) for x in made]


def close(ours, theirs, rtol: float = 1e-8) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol, 1e-10)


def state_of(module) -> dict:
    return {
        key: (tuple(value.shape), str(value.dtype).removeprefix("torch."))
        for key, value in module.state_dict().items()
    }


# --- What there is --------------------------------------------------------------------------------


def test_every_layer_is_here_and_has_a_case(torch):
    every = set(names(torch, FAMILIES)) - set(names(torch, ["container"]))
    assert every == {text.partition("(")[0] for text in LAYERS}
    for name in [*every, *names(torch, ["container", "parameter"])]:
        assert name in nn.__all__ or name in nn.modules.__all__


def test_signatures_are_pytorchs(torch):
    for name in names(torch, FAMILIES):
        ours, theirs = getattr(nn, name), getattr(torch.nn, name)
        assert parts(ours.__init__) == parts(theirs.__init__), name
        for base in theirs.__mro__[: theirs.__mro__.index(torch.nn.Module)]:
            for method, value in vars(base).items():
                if method.startswith("_") or method in ("cls_to_become", "keys", "values"):
                    continue
                if callable(getattr(base, method)) and "Lazy" not in base.__name__:
                    have = parts(getattr(ours, method))
                    assert have == parts(getattr(theirs, method)), (name, method, value)


@by_layer
def test_a_layer_takes_dtype_and_device(text, device):
    module = build(flow, text, device=device, dtype=flow.float64)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        assert tensor.device.type == device
        assert tensor.dtype == (flow.int64 if "tracked" in name else flow.float64)


# --- What it does ---------------------------------------------------------------------------------


def twins(torch, text: str) -> tuple:
    """Return the layer here and in PyTorch, in float64 and with the same state."""
    ours, theirs = build(flow, text).double(), build(torch, text).double()
    if text.startswith("Lazy"):
        assert repr(ours) == repr(theirs)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        ours(*tensors(flow, LAYERS[text], 0)), theirs(*tensors(torch, LAYERS[text], 0))
    with torch.no_grad():
        for tensor in theirs.parameters():
            tensor.add_(0.1)  # weights of 1 and biases of 0 would hide a missing factor
    state = {key: flow.from_numpy(t.numpy().copy()) for key, t in theirs.state_dict().items()}
    assert state_of(ours) == state_of(theirs)
    ours.load_state_dict(state)
    return ours, theirs


@by_layer
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_layers_agree_with_pytorch(torch, text):
    ours, theirs = twins(torch, text)
    assert repr(ours) == repr(theirs)
    for name, value in vars(theirs).items():
        if not name.startswith("_"):
            assert getattr(ours, name) == value, name
    for training in (True, True, False):
        assert ours.train(training) is ours
        theirs.train(training)
        sides = []
        for library, module in ((flow, ours), (torch, theirs)):
            given = tensors(library, LAYERS[text], 3)
            y = module(*given)
            y = y if isinstance(y, library.Tensor) else y.output * y.loss
            factor = tensors(library, [tuple(y.shape)], 7)[0].detach()
            inner = [x for x in [*given, *module.parameters()] if x.requires_grad]
            first = library.autograd.grad((y * factor).sum(), inner, create_graph=True)
            sides.append([y, *first])
            bent = [g for g in first if g.requires_grad]
            if bent and "Bag" not in text and "max_norm" not in text:
                total = sum((g * g).sum() for g in bent)
                second = library.autograd.grad(total, inner, allow_unused=True)
                sides[-1] += [x * 0 if g is None else g for g, x in zip(second, inner, strict=True)]
            else:
                sides[-1] += [x * 0 for x in inner]
        for a, b in zip(*sides, strict=True):
            close(a, b)
        for key, value in theirs.state_dict().items():
            close(ours.state_dict()[key], value)


def test_adaptive_softmax_rates_all_classes(torch):
    ours, theirs = twins(torch, "AdaptiveLogSoftmaxWithLoss(8, 9, [3, 5], div_value=2.0)")
    x, x_torch = (tensors(library, [(20, 8)], 1)[0] * 3 for library in (flow, torch))
    close(ours.log_prob(x), theirs.log_prob(x_torch))
    np.testing.assert_array_equal(ours.predict(x).numpy(), theirs.predict(x_torch).numpy())
    target = np.arange(20) % 9
    output, loss = ours(x, flow.tensor(target))
    assert loss.item() == pytest.approx(theirs(x_torch, torch.tensor(target)).loss.item())
    close(output, theirs(x_torch, torch.tensor(target)).output)


@pytest.mark.parametrize("size", [(7,), (8,), (2, 8), (1, 2, 8)])
def test_transposed_convolutions_take_an_output_size(torch, size):
    ours, theirs = twins(torch, "ConvTranspose1d(1, 2, 3, stride=2, padding=0)")
    shape = (1, 1, 3) if len(size) == 3 else (1, 3)
    y = ours(tensors(flow, [shape], 0)[0], output_size=size)
    close(y, theirs(tensors(torch, [shape], 0)[0], output_size=size))


def test_sync_batch_norm_takes_the_place_of_others(torch):
    def net(nn):
        inner = nn.Sequential(nn.BatchNorm2d(3, affine=False), nn.InstanceNorm2d(3))
        return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, momentum=None), inner).eval()

    ours, theirs = net(nn), net(torch.nn)
    norm = ours[1]
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(ours, process_group="group")
    assert converted is ours
    assert repr(ours) == repr(torch.nn.SyncBatchNorm.convert_sync_batchnorm(theirs))
    assert ours[1].weight is norm.weight
    assert ours[1].running_mean is norm.running_mean
    assert ours[1].process_group == "group"
    assert not ours[1].training
    single = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(2, bias=False))
    assert type(single) is nn.SyncBatchNorm
    assert single.bias is None


def test_a_refused_batch_is_not_counted():
    for momentum in (0.1, None):
        norm = nn.BatchNorm2d(2, momentum=momentum)
        for x in (flow.ones(2, 2), flow.ones(2, 3, 4, 4), flow.ones(1, 2, 1, 1)):
            with pytest.raises((ValueError, RuntimeError)):
                norm(x)
        assert norm.num_batches_tracked.item() == 0
        np.testing.assert_array_equal(norm.running_mean.numpy(), [0, 0])


def test_an_instance_norm_without_parameters_warns_of_other_channels():
    with pytest.warns(UserWarning, match="2 channels, got 3"):
        nn.InstanceNorm1d(2)(flow.rand(4, 3, 5))


def test_a_given_table(torch):
    table = np.arange(6.0).reshape(3, 2)
    for name, argument in (("Embedding", "padding_idx"), ("EmbeddingBag", "include_last_offset")):
        for freeze in (True, False):
            sides = []
            for library in (flow, torch):
                made = getattr(library.nn, name).from_pretrained
                sides.append(made(library.tensor(table), freeze, **{argument: 1}))
            ours, theirs = sides
            assert repr(ours) == repr(theirs)
            assert ours.weight.requires_grad is theirs.weight.requires_grad
            close(ours(flow.tensor([[2, 0]])), theirs(torch.tensor([[2, 0]])))


def test_a_sparse_table_has_dense_gradients():
    for layer in (nn.Embedding(3, 2, sparse=True), nn.EmbeddingBag(3, 2, sparse=True)):
        layer(flow.tensor([[0, 2]])).sum().backward()
        np.testing.assert_array_equal(layer.weight.grad.numpy()[1], [0, 0])


# --- How it begins --------------------------------------------------------------------------------


def draw_with_pytorch(torch, monkeypatch) -> None:
    """Let PyTorch's generator draw what the library draws."""

    def uniform_(self, a=0.0, b=1.0, generator=None):
        drawn = torch.empty(self.shape, dtype=torch.float64).uniform_(a, b)
        return self.copy_(flow.tensor(drawn.numpy()))

    def normal_(self, mean=0.0, std=1.0, generator=None):
        drawn = torch.empty(self.shape, dtype=torch.float64).normal_(mean, std)
        return self.copy_(flow.tensor(drawn.numpy()))

    monkeypatch.setattr(flow.Tensor, "uniform_", uniform_)
    monkeypatch.setattr(flow.Tensor, "normal_", normal_)


@by_layer
def test_the_same_draws_give_the_same_parameters(torch, monkeypatch, text):
    draw_with_pytorch(torch, monkeypatch)
    sides = []
    for library in (flow, torch):
        torch.manual_seed(5)
        module = build(library, text, dtype=library.float64)
        if text.startswith("Lazy"):
            module(*tensors(library, LAYERS[text], 0))
        first = [value.detach().clone() for value in module.parameters()]
        module.reset_parameters()
        again = [value.detach() for value in module.parameters()]
        sides.append([*first, *again, torch.rand(1)])
    for ours, theirs in zip(*sides, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


# --- Bad arguments --------------------------------------------------------------------------------

BAD = """
Linear(2.5, 1)
Linear("a", 1)
Linear(2, -1)
Linear(None, 1)
Linear(2, 2, dtype="no such")
Linear(2, 2, dtype=T.int64)
Linear(2, 2, device="nowhere")
Bilinear(0, 2, 2)
Bilinear(-1, 2, 2)
Bilinear(2, -2, 2)
Bilinear(2, 2, 2.5)
Conv2d(3, 4, 3, groups=2)
Conv2d(4, 3, 3, groups=2)
Conv2d(4, 4, 3, groups=0)
Conv2d(4, 4, 3, groups=-1)
Conv2d(1, 1, (3, 3, 3))
Conv2d(1, 1, 0)
Conv2d(1, 1, -1)
Conv2d(1, 1, 3, padding=-1)
Conv2d(1, 1, 3, stride=0)
Conv2d(1, 1, 3, padding="full")
Conv2d(1, 1, 3, padding="same", stride=2)
Conv2d(1, 1, 3, padding_mode="mirror")
Conv2d(1, 1, 2.5)
Conv2d(1, 1, "3")
Conv2d(-1, 1, 3)
Conv1d(1, 1, (3, 3))
Conv1d(1, 1, 3, padding="full")
Conv3d(1, 1, (3, 3))
ConvTranspose2d(3, 4, 3, groups=2)
ConvTranspose2d(4, 3, 3, groups=2)
ConvTranspose2d(1, 1, 3, padding_mode="reflect")
ConvTranspose1d(1, 1, 3, padding_mode="circular")
ConvTranspose2d(1, 1, 3, padding_mode="mirror")
ConvTranspose2d(1, 1, 3, padding="same")
ConvTranspose3d(1, 1, 3, groups=0)
BatchNorm1d(-1)
BatchNorm1d("a")
BatchNorm1d(2.5)
BatchNorm2d(2, dtype=T.int64)
InstanceNorm1d(-1)
InstanceNorm1d(-1, affine=True)
InstanceNorm2d(None, affine=True)
SyncBatchNorm(-1)
GroupNorm(2, 3)
GroupNorm(0, 3)
GroupNorm(-1, 3)
GroupNorm(1.5, 3)
GroupNorm("a", 3)
GroupNorm(1, -1)
LayerNorm("ab")
LayerNorm(-1)
LayerNorm((2, -1))
LayerNorm(2.5)
LayerNorm(None)
RMSNorm("ab")
RMSNorm(-1)
RMSNorm(2.5)
Embedding(3, 2, padding_idx=3)
Embedding(10, 2, padding_idx=25)
Embedding(3, 2, padding_idx=-4)
Embedding(3, 2, padding_idx=1.5)
Embedding(3, 2, padding_idx="a")
Embedding(-3, 2)
Embedding(3, -2)
Embedding(3.5, 2)
Embedding(3, 2, _weight=T.ones(2, 3))
Embedding(3, 2, _weight=[[1.0, 2.0]])
Embedding(3, 2, dtype=T.int64)
Embedding.from_pretrained(T.ones(3))
Embedding.from_pretrained(T.ones(3, 2, 2))
Embedding.from_pretrained([[1.0]])
Embedding.from_pretrained(T.ones(3, 2), padding_idx=3)
EmbeddingBag(3, 2, padding_idx=3)
EmbeddingBag(3, 2, padding_idx=-4)
EmbeddingBag(-3, 2)
EmbeddingBag(3, 2, _weight=T.ones(2, 3))
EmbeddingBag.from_pretrained(T.ones(3))
EmbeddingBag.from_pretrained(T.ones(3, 2), padding_idx=-9)
AdaptiveLogSoftmaxWithLoss(4, 10, [])
AdaptiveLogSoftmaxWithLoss(4, 10, [5, 3])
AdaptiveLogSoftmaxWithLoss(4, 10, [3, 3])
AdaptiveLogSoftmaxWithLoss(4, 10, [0, 3])
AdaptiveLogSoftmaxWithLoss(4, 10, [3, 10])
AdaptiveLogSoftmaxWithLoss(4, 10, [3, 12])
AdaptiveLogSoftmaxWithLoss(4, 10, [2.5, 3])
AdaptiveLogSoftmaxWithLoss(4, 10, 3)
AdaptiveLogSoftmaxWithLoss(4, 10, None)
AdaptiveLogSoftmaxWithLoss(-4, 10, [3])
AdaptiveLogSoftmaxWithLoss(4, 10, [3], div_value=0)
AdaptiveLogSoftmaxWithLoss(4, 10.5, [3])
LazyLinear(-1)
LazyLinear(2.5)
LazyLinear("a")
LazyConv2d(4, 3, padding="full")
LazyConv2d(3, 3, groups=2)
LazyConv2d(4, 3, groups=0)
LazyConv2d(4, 3, padding_mode="mirror")
LazyConvTranspose2d(4, 3, padding_mode="reflect")
LazyConvTranspose2d(3, 3, groups=2)
LazyConv2d(4, (3, 3, 3))
LazyLinear(2, dtype=T.int64)
LazyBatchNorm1d(dtype=T.int64)
BatchNorm1d(2)(T.ones(2))
BatchNorm1d(2)(T.ones(2, 3))
BatchNorm1d(2)(T.ones(1, 2))
BatchNorm2d(2)(T.ones(2, 2, 2))
BatchNorm3d(2)(T.ones(2, 2, 2, 2))
InstanceNorm1d(2)(T.ones(2, 2, 2, 2))
InstanceNorm1d(2)(T.ones(2))
InstanceNorm2d(2)(T.ones(2, 2))
InstanceNorm2d(2, affine=True)(T.ones(2, 3, 2, 2))
InstanceNorm3d(2)(T.ones(2, 2, 2))
InstanceNorm1d(2)(T.ones(2, 2, 1))
SyncBatchNorm(2)(T.ones(2))
SyncBatchNorm(2)(T.ones(1, 2))
Linear(2, 2)(T.ones(3))
Linear(2, 2)([1.0, 2.0])
Bilinear(2, 3, 2)(T.ones(2), T.ones(2))
Bilinear(2, 3, 2)(T.ones(2, 2), T.ones(3, 3))
Conv2d(2, 2, 2)(T.ones(2, 2))
Conv2d(2, 2, 2)(T.ones(3, 3, 3))
Conv2d(2, 2, 2)(T.ones(2, 1, 1))
ConvTranspose2d(1, 1, 3, output_padding=1)(T.ones(1, 1, 3, 3))
ConvTranspose2d(1, 1, 3, stride=2)(T.ones(1, 1, 3, 3), output_size=(9, 9))
ConvTranspose2d(1, 1, 3, stride=2)(T.ones(1, 1, 3, 3), output_size=(9,))
ConvTranspose2d(1, 1, 3, stride=2)(T.ones(1, 1, 3, 3), output_size=(1, 1, 1, 9, 9))
ConvTranspose2d(1, 1, 3, stride=2)(T.ones(1, 1, 3, 3), output_size=9)
ConvTranspose2d(1, 1, 3, stride=2)(T.ones(1, 1), output_size=(8, 8))
GroupNorm(2, 4)(T.ones(2, 3))
GroupNorm(2, 4)(T.ones(4))
LayerNorm(3)(T.ones(2, 2))
LayerNorm(())(T.ones(2, 2))
RMSNorm(3)(T.ones(2, 2))
Embedding(3, 2)(T.tensor([3]))
Embedding(3, 2)(T.tensor([1.0]))
EmbeddingBag(3, 2)(T.tensor([1, 3]), T.tensor([0]))
EmbeddingBag(3, 2)(T.tensor([[1, 2]]), None, T.ones(1, 2))
AdaptiveLogSoftmaxWithLoss(4, 10, [3])(T.ones(2, 4), T.tensor([1]))
AdaptiveLogSoftmaxWithLoss(4, 10, [3])(T.ones(2, 4), T.tensor([1, 10]))
AdaptiveLogSoftmaxWithLoss(4, 10, [3])(T.ones(2, 4), T.tensor([1, -1]))
AdaptiveLogSoftmaxWithLoss(4, 10, [3])(T.ones(4), T.tensor([1]))
AdaptiveLogSoftmaxWithLoss(4, 10, [3])(T.ones(4), T.tensor([[1]]))
AdaptiveLogSoftmaxWithLoss(4, 10, [3])(T.ones(1, 4), T.tensor([[1]]))
AdaptiveLogSoftmaxWithLoss(4, 10, [3])(T.ones(1, 3), T.tensor([1]))
AdaptiveLogSoftmaxWithLoss(4, 10, [3]).log_prob(T.ones(4))
LazyConv2d(2, 2)(T.ones(2, 2))
LazyConv2d(4, 3, groups=2)(T.ones(1, 3, 5, 5))
LazyBatchNorm1d()(T.ones(2))
LazyBatchNorm2d()(T.ones(2, 3))
LazyInstanceNorm2d()(T.ones(2, 3))
LazyLinear(2)(T.tensor(1.0))
LazyLinear(2).forward(T.ones(2))
LazyLinear(2).weight.shape
LazyLinear(2).weight + 1
LazyLinear(2).weight.numel()
LazyLinear(2).weight.sum()
LazyLinear(2).weight.materialize((2, -1))
UninitializedParameter(dtype=T.int64)
Buffer([1.0])
Parameter([1.0])
Sequential(1)
Sequential(ReLU())[1]
Sequential(ReLU()).pop(3)
Sequential(ReLU()).append(1)
Sequential(ReLU()).insert(5, ReLU())
Sequential(ReLU()).extend(1)
Sequential(ReLU()) + ReLU()
Sequential(ReLU()) + [ReLU()]
Sequential(ReLU()) * 0
Sequential(ReLU()) * -1
Sequential(ReLU()) * 1.5
Sequential(ReLU()).__mul__("a")
2.0 * Sequential(ReLU())
Sequential(ReLU()).__iadd__(ReLU())
Sequential(ReLU()).__iadd__([ReLU()])
Sequential(ReLU()).__imul__(0)
Sequential(ReLU()).__imul__(1.5)
Sequential(ReLU()).__delitem__(4)
Sequential(ReLU()).__setitem__(4, ReLU())
Sequential(ReLU()).__setitem__(0, 1)
ModuleList(1)
ModuleList([1])
ModuleList([ReLU()])[1]
ModuleList([ReLU()]).extend(1)
ModuleList([ReLU()]).append(1)
ModuleList([ReLU()]).insert(4, ReLU())
ModuleList([ReLU()])(T.ones(2))
ModuleDict(3)
ModuleDict(["abc"])
ModuleDict([1])
ModuleDict({"a.b": ReLU()})
ModuleDict({"": ReLU()})
ModuleDict({1: ReLU()})
ModuleDict({"a": 1})
ModuleDict({"keys": ReLU()})
ModuleDict({"a": ReLU()})(T.ones(2))
ParameterList(1)
ParameterList(T.ones(2))
ParameterList("ab")
ParameterList([T.ones(2)])[1]
ParameterList([T.ones(2)])(1)
ParameterList([T.ones(2)]).extend(1)
ParameterList([T.ones(2)]).extend(T.ones(2))
ParameterList([T.ones(2)]).__setitem__(3, T.ones(2))
ParameterList([T.tensor(2)])
ParameterDict(3)
ParameterDict([1])
ParameterDict([("a",)])
ParameterDict({"a": T.ones(2)})["b"]
ParameterDict({"a": T.ones(2)}).pop("b")
ParameterDict({"a": T.ones(2)})(1)
ParameterDict({}).popitem()
ParameterDict({"a.b": T.ones(2)})
ParameterDict({"": T.ones(2)})
ParameterDict({1: T.ones(2)})
ParameterDict({"a": T.ones(2)}) | 3
init.calculate_gain("softmax")
init.calculate_gain("leaky_relu", "x")
init.calculate_gain("leaky_relu", True)
init.xavier_uniform_(T.ones(3))
init.xavier_normal_(T.ones(()))
init.kaiming_normal_(T.ones(3))
init.kaiming_uniform_(T.ones(2, 2), mode="fan")
init.kaiming_uniform_(T.ones(2, 2), mode=3)
init.kaiming_uniform_(T.ones(2, 2), nonlinearity="gelu")
init.eye_(T.ones(3))
init.eye_(T.ones(2, 2, 2))
init.dirac_(T.ones(3, 3))
init.dirac_(T.ones(3, 3, 3, 3, 3, 3))
init.dirac_(T.ones(3, 3, 3), groups=2)
init.dirac_(T.ones(3, 3, 3), groups=0)
init.sparse_(T.ones(3), 0.5)
init.sparse_(T.ones(3, 3, 3), 0.5)
init.sparse_(T.ones(3, 3), 0.5, std=-1)
init.orthogonal_(T.ones(3))
init.trunc_normal_(T.ones(3), a=2.0, b=1.0)
init.trunc_normal_(T.ones(3), std=0.0)
init.trunc_normal_(T.ones(3), std=-1.0)
init.uniform_(T.ones(3), 1.0, 0.0)
init.normal_(T.ones(3), std=-1.0)
init.constant_(T.ones(3), "a")
init.constant_([1.0], 1)
init.ones_([1.0])
init.uniform_(T.ones(3, dtype=T.int64))
init.normal_(T.ones(3, dtype=T.int64))
parameter.UninitializedBuffer().sum()
"""
# Classes that PyTorch's Python happens to raise, and what stands for them here.
ACCIDENTS = {
    AttributeError: (AttributeError, TypeError, ValueError),
    ZeroDivisionError: ValueError,
    IndexError: (IndexError, RuntimeError, TypeError),
    NotImplementedError: RuntimeError,
}


def outcome(library, line: str) -> type | None:
    """Return the class of the exception that a line raises."""
    scope = {**vars(library.nn), "T": library, "parameter": library.nn.parameter}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eval(line, scope)
        except Exception as error:
            return type(error)
    return None


@pytest.mark.parametrize("line", BAD.strip().splitlines())
def test_bad_arguments_raise_what_pytorch_raises(torch, line):
    ours, theirs = outcome(flow, line), outcome(torch, line)
    assert ours is not None
    assert issubclass(ours, flow.errors.FlowError)
    if theirs is not None:  # some of them PyTorch notices at the first call, or not at all
        assert issubclass(ours, ACCIDENTS.get(theirs, theirs)), (ours, theirs)


def test_a_state_from_before_batches_were_counted():
    torch = pytest.importorskip("torch")
    for lib in (torch, flow):
        old = {k: v for k, v in lib.nn.BatchNorm1d(2).state_dict().items() if "tracked" not in k}
        norm = lib.nn.BatchNorm1d(2)
        norm.num_batches_tracked.add_(5)
        assert not norm.load_state_dict(dict(old)).missing_keys
        assert norm.num_batches_tracked.item() == 5
