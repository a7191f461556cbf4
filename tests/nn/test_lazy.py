"""Lazy layers: what they are before the first call, what they become, and what they refuse."""

import copy
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, static
from oneflow_lite.nn.modules.lazy import LazyModuleMixin
from oneflow_lite.nn.parameter import is_lazy


def net() -> nn.Module:
    flow.manual_seed(3)
    return nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyBatchNorm1d(), nn.LazyLinear(2))


X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def test_before_the_first_call(torch):
    layer = nn.LazyBatchNorm2d()
    theirs = torch.nn.LazyBatchNorm2d()
    ours = layer.state_dict()
    assert repr(ours) == repr(theirs.state_dict())
    assert layer.has_uninitialized_params()
    assert isinstance(layer.weight, nn.UninitializedParameter)
    assert isinstance(layer.running_mean, nn.UninitializedBuffer)
    assert isinstance(layer.running_mean, nn.Buffer)
    assert layer.weight.requires_grad
    assert layer.weight.is_leaf
    assert layer.weight.grad is None
    assert layer.weight.dtype == flow.float32
    assert layer.weight.device.type == "cpu"
    assert list(layer.parameters()) == [layer.weight, layer.bias]
    layer.reset_parameters()
    assert layer.has_uninitialized_params()


def test_the_first_call_makes_an_ordinary_layer():
    layer = nn.LazyLinear(3)
    weight, bias = layer.weight, layer.bias
    seen = []
    layer.register_forward_pre_hook(lambda module, args: seen.append(type(module)))
    weight.note = "kept"
    layer(flow.ones(5, 2))
    assert seen == [nn.Linear]
    assert type(layer) is nn.Linear
    assert layer.in_features == 2
    assert layer.weight is weight
    assert layer.bias is bias
    assert type(weight) is nn.Parameter
    assert weight.note == "kept"
    assert weight.abs().max() > 0
    layer(flow.ones(5, 2)).sum().backward()
    assert weight.grad.shape == (3, 2)
    with pytest.raises(RuntimeError):
        layer(flow.ones(5, 3))


def test_a_refused_input_leaves_the_layer_lazy():
    for layer, wrong in (
        (nn.LazyConv2d(4, 3, groups=2), flow.ones(1, 3, 5, 5)),
        (nn.LazyConv1d(4, 3), flow.ones(3)),
        (nn.LazyBatchNorm2d(), flow.ones(2, 3)),
        (nn.LazyInstanceNorm1d(), flow.ones(3)),
        (nn.LazyLinear(2), flow.tensor(1.0)),
    ):
        kind, text = type(layer), repr(layer)
        with pytest.raises((ValueError, IndexError, RuntimeError)):
            layer(wrong)
        assert type(layer) is kind
        assert repr(layer) == text
        assert layer.has_uninitialized_params()


def test_an_optimizer_may_come_first():
    module = net()
    optimizer = flow.optim.Adam(module.parameters(), lr=0.1)
    optimizer.zero_grad()
    optimizer.step()
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (module(flow.tensor(X)) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_conversion_before_the_first_call(device):
    layer = nn.LazyBatchNorm1d().to(device).double()
    assert layer.has_uninitialized_params()
    layer(flow.rand(3, 2, device=device, dtype=flow.float64))
    for tensor in (layer.weight, layer.bias, layer.running_mean):
        assert tensor.dtype == flow.float64
        assert tensor.device.type == device
    assert type(layer.running_mean) is flow.Tensor
    frozen = nn.LazyLinear(2)
    frozen.requires_grad_(False)
    frozen.weight.requires_grad = True
    frozen(flow.ones(3))
    assert [p.requires_grad for p in frozen.parameters()] == [True, False]


def test_copies_and_pickles():
    for make in (copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))):
        module = net().double()
        module[0].weight.requires_grad = False
        twin = make(module)
        assert repr(twin) == repr(module)
        assert is_lazy(twin[0].weight)
        assert twin[0].weight is not module[0].weight
        assert not twin[0].weight.requires_grad
        assert twin(flow.ones(4, 3, dtype=flow.float64)).dtype == flow.float64
        assert is_lazy(module[0].weight)


def test_state_dicts():
    known = nn.Linear(2, 3)
    for assign in (False, True):
        layer = nn.LazyLinear(3)
        layer.load_state_dict(nn.LazyLinear(3).state_dict(), assign=assign)
        assert layer.has_uninitialized_params()
        layer.load_state_dict(known.state_dict(), assign=assign)
        assert not layer.has_uninitialized_params()
        with pytest.raises(AssertionError, match=r"loaded with shape \(3, 2\)"):
            layer(flow.ones(5))
        assert type(layer) is nn.LazyLinear
        assert layer.in_features == 0
        x = flow.ones(2)
        np.testing.assert_array_equal(layer(x).detach().numpy(), known(x).detach().numpy())
        assert repr(layer) == repr(known)
    before = known.weight.detach().clone()
    with pytest.raises(RuntimeError, match="not known yet"):
        known.load_state_dict(nn.LazyLinear(3).state_dict())
    np.testing.assert_array_equal(known.weight.detach().numpy(), before.numpy())


def test_compiled_networks_begin_with_one_eager_call():
    plain, module = net(), net()
    compiled = flow.compile(module)
    for step in range(4):
        x = flow.tensor(X) * (step + 1)
        if not step:
            flow.manual_seed(5)
        want = plain(x)
        if not step:
            flow.manual_seed(5)
        np.testing.assert_array_equal(compiled(x).detach().numpy(), want.detach().numpy())
    said = compiled.explain()
    assert (said.captures, said.hits, said.fallbacks) == (1, 2, 1)


def test_a_network_may_be_lazy_in_a_program():
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    with static.program_guard(main, startup):
        module = net()
        loss = (module(static.data("x", (4, 3), "float32")) - 1).square().mean()
        flow.optim.SGD(module.parameters(), lr=0.1).minimize(loss)
    executor = static.Executor()
    executor.run(startup, scope=scope)
    losses = [float(executor.run(main, {"x": X}, [loss], scope)[0]) for _ in range(10)]
    assert losses[-1] < losses[0]
    assert "Lazy" not in repr(module)


class Scale(LazyModuleMixin, nn.Module):
    """A lazy module of a user, which stays what it is."""

    def __init__(self):
        super().__init__()
        self.factor = nn.UninitializedParameter()
        self.calls = 0

    def initialize_parameters(self, x, *, start=1.0):
        self.calls += 1
        self.factor.materialize(x.shape[-1:])
        nn.init.constant_(self.factor, start)

    def forward(self, x, *, start=1.0):
        return x * self.factor


def test_lazy_modules_of_users():
    module = Scale()
    for _ in range(2):
        np.testing.assert_array_equal(
            module(flow.ones(2), start=3.0).detach().numpy(), np.float32([3, 3])
        )
    assert module.calls == 1
    assert type(module) is Scale

    class Forgetful(Scale):
        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="still uninitialized"):
        Forgetful()(flow.ones(2))

    class Undefined(LazyModuleMixin, nn.Linear):
        pass

    with pytest.raises(NotImplementedError, match="initialize_parameters"):
        Undefined(2, 2)(flow.ones(2))


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_the_first_call_may_have_an_output_size(spatial):
    layer = getattr(nn, f"LazyConvTranspose{spatial}d")(4, 3, stride=2)
    size = [12] * spatial
    assert layer(flow.ones(2, 3, *[5] * spatial), output_size=size).shape == (2, 4, *size)
    assert not is_lazy(layer.weight)


def test_uninitialized_tensors():
    parameter = nn.UninitializedParameter(requires_grad=False, dtype=flow.float64)
    parameter.materialize(3)
    assert type(parameter) is nn.Parameter
    assert (parameter.shape, parameter.dtype, parameter.requires_grad) == (
        (3,),
        flow.float64,
        False,
    )
    other = nn.UninitializedParameter()
    other.materialize((2, 1), dtype=flow.float64)
    assert other.dtype == flow.float64
    (other * 2).sum().backward()
    assert other.grad.shape == (2, 1)
    buffer = nn.UninitializedBuffer(persistent=False)
    module = nn.Module()
    module.b = buffer
    assert dict(module.named_buffers()) == {"b": buffer}
    assert not module.state_dict()
    buffer.copy_(flow.tensor([[1.0, 2.0]]))
    assert type(module.b) is flow.Tensor
    np.testing.assert_array_equal(module.b.numpy(), [[1, 2]])
    assert is_lazy(copy.copy(nn.UninitializedBuffer()))
    assert not is_lazy(buffer)
    with pytest.raises(TypeError, match="shape"):
        nn.UninitializedParameter().materialize((2.5,))
