"""Module: registration, attributes, traversal, modes, conversion and repr."""

import copy
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.errors import ArgumentError, DeviceError, FlowError


class Block(nn.Module):
    """One of everything: parameter, buffers, submodule, empty slots."""

    def __init__(self, inner: nn.Module | None = None) -> None:
        super().__init__()
        self.scale = nn.Parameter(flow.ones(2))
        self.register_parameter("empty", None)
        self.register_buffer("count", flow.tensor(0))
        self.register_buffer("scratch", flow.zeros(2), persistent=False)
        self.register_buffer("nothing", None)
        self.inner = nn.Linear(2, 2) if inner is None else inner

    def forward(self, x):
        return self.inner(x) * self.scale


def names(pairs) -> list[str]:
    return [name for name, _ in pairs]


def test_what_is_assigned_is_registered():
    block = Block()
    assert names(block.named_parameters()) == ["scale", "inner.weight", "inner.bias"]
    assert names(block.named_parameters(prefix="p", recurse=False)) == ["p.scale"]
    assert names(block.named_buffers()) == ["count", "scratch"]
    assert names(block.named_modules()) == ["", "inner"]
    assert names(block.named_children()) == ["inner"]
    assert list(block.children()) == [block.inner]
    assert list(block.modules()) == [block, block.inner]
    assert [id(p) for p in block.parameters()] == [
        id(block.scale), id(block.inner.weight), id(block.inner.bias)
    ]  # fmt: skip
    assert [id(b) for b in block.buffers()] == [id(block.count), id(block.scratch)]
    assert block.empty is None
    assert block.nothing is None


def test_attributes_change_their_kind_when_they_are_assigned_anew():
    block = Block()
    block.note = "text"
    block.note = nn.Parameter(flow.zeros(1))
    assert names(block.named_parameters())[-2:] == ["inner.weight", "inner.bias"]
    assert "note" in names(block.named_parameters(recurse=False))
    assert "note" not in vars(block)
    block.note = nn.ReLU()
    assert names(block.named_children()) == ["inner", "note"]
    assert "note" not in names(block.named_parameters())
    block.count = nn.Parameter(flow.zeros(1))
    assert "count" not in names(block.named_buffers())
    block.scale = None
    assert block.scale is None
    block.scratch = flow.ones(3)  # stays a buffer, and stays out of the state dict
    assert dict(block.named_buffers())["scratch"].shape == (3,)
    assert "scratch" not in block.state_dict()
    block.inner = None
    assert list(block.children()) == [block.note]


def test_an_attribute_that_is_assigned_anew_keeps_its_place():
    block = nn.Module()
    block.a, block.b = nn.Parameter(flow.zeros(1)), nn.Parameter(flow.zeros(1))
    block.a = nn.Parameter(flow.ones(1))
    assert names(block.named_parameters()) == ["a", "b"]


def test_deleting_attributes():
    block = Block()
    del block.scale, block.count, block.inner, block.scratch
    assert names(block.named_parameters()) == []
    assert names(block.named_buffers()) == []
    assert list(block.children()) == []
    with pytest.raises(AttributeError, match="scale"):
        block.scale  # noqa: B018
    with pytest.raises(AttributeError):
        del block.missing


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda m: m.register_parameter("a.b", None), KeyError, "name"),
        (lambda m: m.register_parameter("", None), KeyError, "name"),
        (lambda m: m.register_parameter("training", None), KeyError, "already"),
        (lambda m: m.register_parameter(3, None), TypeError, "a str"),
        (lambda m: m.register_parameter("p", flow.ones(1)), TypeError, "Parameter"),
        (lambda m: m.register_buffer("a.b", None), KeyError, "name"),
        (lambda m: m.register_buffer("scale", None), KeyError, "already"),
        (lambda m: m.register_buffer("b", [1.0]), TypeError, "Tensor"),
        (lambda m: m.add_module("a.b", None), KeyError, "name"),
        (lambda m: m.add_module("count", nn.ReLU()), KeyError, "already"),
        (lambda m: m.add_module("m", 3), TypeError, "Module"),
        (lambda m: setattr(m, "scale", flow.ones(2)), TypeError, "scale"),
        (lambda m: setattr(m, "inner", 3), TypeError, "inner"),
        (lambda m: setattr(m, "count", 3), TypeError, "count"),
        (lambda m: m.train("yes"), ValueError, "mode"),
        (lambda m: m.get_parameter("inner"), AttributeError, "inner"),
        (lambda m: m.get_parameter("inner.missing"), AttributeError, "missing"),
        (lambda m: m.get_buffer("scale"), AttributeError, "scale"),
        (lambda m: m.get_submodule("scale"), AttributeError, "scale"),
        (lambda m: m.missing, AttributeError, "missing"),
        (lambda m: nn.Module()(1), NotImplementedError, "forward"),
        (lambda m: m.to(flow.int64), TypeError, "dtype"),
        (lambda m: m.to("tpu"), TypeError, "dtype"),
        (lambda m: m.to(colour="red"), TypeError, "colour"),
        (lambda m: m.register_forward_hook(3), TypeError, "hook"),
    ],
)
def test_bad_calls_raise_and_change_nothing(act, error, text):
    block = Block()
    before = {key: value.numpy().copy() for key, value in block.state_dict().items()}
    fields = {key: set(value) for key, value in vars(block).items() if isinstance(value, dict)}
    with pytest.raises(error, match=text) as caught:
        act(block)
    assert isinstance(caught.value, FlowError)
    assert fields == {k: set(v) for k, v in vars(block).items() if isinstance(v, dict)}
    assert block.training
    for key, value in block.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[key])
        assert value.dtype == before[key].dtype


def test_a_computed_parameter_is_refused():
    module = nn.Module()
    computed = nn.Parameter(flow.ones(2), requires_grad=False)
    computed.add_(flow.ones(2, requires_grad=True))
    with pytest.raises(ArgumentError, match="leaf"):
        module.p = computed
    assert not list(module.parameters())


def test_a_subclass_that_forgot_super_init():
    class Forgetful(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="super"):
        Forgetful()

    class AlsoForgetful(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(flow.ones(1))

    with pytest.raises(AttributeError, match="super"):
        AlsoForgetful()


def test_shared_members_are_yielded_once():
    layer = nn.Linear(2, 2)
    twin = nn.Linear(2, 2)
    twin.weight = layer.weight
    net = nn.Sequential(layer, twin, layer)
    assert names(net.named_parameters()) == ["0.weight", "0.bias", "1.bias"]
    assert len(names(net.named_parameters(remove_duplicate=False))) == 6
    assert names(net.named_modules()) == ["", "0", "1"]
    assert names(net.named_modules(remove_duplicate=False)) == ["", "0", "1", "2"]
    assert len(list(net.children())) == 2


def test_lookup_by_dotted_name():
    net = nn.Sequential(Block(), nn.Sequential(nn.BatchNorm1d(2)))
    assert net.get_submodule("") is net
    assert net.get_submodule("1.0") is net[1][0]
    assert net.get_parameter("0.inner.weight") is net[0].inner.weight
    assert net.get_buffer("1.0.running_mean") is net[1][0].running_mean


def test_modes_and_apply():
    net = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert net.eval() is net
    assert [m.training for m in net.modules()] == [False] * 4
    net.train()
    assert all(m.training for m in net.modules())
    seen = []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Dropout", "Dropout", "Sequential", "Sequential"]


def test_requires_grad_and_zero_grad():
    net = nn.Linear(2, 1)
    assert net.requires_grad_(False) is net
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(flow.ones(1, 2)).sum().backward()
    grad = net.weight.grad
    net.zero_grad(set_to_none=False)
    assert net.weight.grad is grad
    np.testing.assert_array_equal(grad.numpy(), [[0.0, 0.0]])
    net.zero_grad()
    assert net.weight.grad is None


def test_zeroing_a_gradient_leaves_the_graph_it_came_from_alone():
    x = nn.Parameter(flow.tensor([2.0]))
    (grad,) = flow.autograd.grad((x * x * x).sum(), x, create_graph=True)
    module = nn.Module()
    module.x = x
    x.grad = grad
    module.zero_grad(set_to_none=False)
    assert x.grad.item() == 0
    assert not x.grad.requires_grad
    assert grad.item() == 12.0


def test_conversion_keeps_parameters_and_integer_buffers():
    block = Block()
    weight = block.inner.weight
    block(flow.ones(1, 2)).sum().backward()
    assert block.double() is block
    assert block.inner.weight is weight
    assert weight.dtype == flow.float64
    assert weight.grad.dtype == flow.float64
    assert block.scratch.dtype == flow.float64
    assert block.count.dtype == flow.int64
    block(flow.ones(1, 2, dtype=flow.float64)).sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), np.full((2, 2), 2.0))
    assert block.half().scale.dtype == flow.float16
    assert block.float().scale.dtype == flow.float32
    assert block.to(flow.float64).scale.dtype == flow.float64
    assert block.to("cpu", flow.float32).scale.dtype == flow.float32
    assert block.to(flow.ones(1, dtype=flow.float64)).scale.dtype == flow.float64
    assert block.to(dtype=flow.float32, device="cpu", non_blocking=True).scale.dtype == flow.float32
    assert block.type(flow.float64).count.dtype == flow.float64
    assert [p.is_leaf for p in block.parameters()] == [True] * 3


def test_a_module_moves_to_a_device(device):
    block = Block()
    weight, before = block.inner.weight, block.inner.weight.numpy().copy()
    block(flow.ones(1, 2)).sum().backward()
    assert block.to(device) is block
    assert block.inner.weight is weight
    tensors = [*block.parameters(), *block.buffers(), weight.grad]
    assert {t.device.type for t in tensors} == {device}
    y = block(flow.ones(3, 2, device=device))
    y.sum().backward()
    assert weight.grad.device.type == device
    np.testing.assert_array_equal(block.cpu().inner.weight.numpy(), before)
    np.testing.assert_allclose(weight.grad.numpy(), np.full((2, 2), 4.0))


def test_layers_are_built_on_a_device(device):
    net = nn.Sequential(
        nn.Linear(2, 3, device=device, dtype=flow.float64),
        nn.BatchNorm1d(3, device=device, dtype=flow.float64),
        nn.LayerNorm(3, device=device, dtype=flow.float64),
    )
    for tensor in net.state_dict().values():
        assert tensor.device.type == device
        assert tensor.dtype in (flow.float64, flow.int64)


def test_without_a_cuda_device_the_module_stays_as_it_was():
    if flow.cuda.is_available():
        pytest.skip("there is a CUDA device")
    layer = nn.Linear(2, 2)
    with pytest.raises(DeviceError, match="CuPy"):
        layer.cuda()
    assert {p.device.type for p in layer.parameters()} == {"cpu"}


def test_copies_are_independent():
    block = Block()
    block(flow.ones(1, 2)).sum().backward()
    for twin in (copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
        assert names(twin.named_parameters()) == names(block.named_parameters())
        for ours, theirs in zip(block.parameters(), twin.parameters(), strict=True):
            assert isinstance(theirs, nn.Parameter)
            assert theirs.requires_grad
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
            assert not np.shares_memory(ours.numpy(), theirs.numpy())
        with flow.no_grad():
            twin.inner.weight.fill_(7)
        assert not (block.inner.weight == 7).any()
    assert block.scale.grad is not None and copy.deepcopy(block).scale.grad is None


def test_a_copy_keeps_shared_parameters_shared():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    twin = copy.deepcopy(net)
    assert twin[1].weight is twin[0].weight
    assert twin[1].weight is not net[0].weight


def test_dir_names_members():
    listed = dir(Block())
    assert {"scale", "inner", "count", "forward"} <= set(listed)


class Described(nn.Module):
    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.lines = lines

    def extra_repr(self) -> str:
        return "\n".join(self.lines)


def test_repr_of_own_modules():
    assert repr(Described()) == "Described()"
    assert repr(Described("a=1")) == "Described(a=1)"
    assert repr(Described("a=1", "b=2")) == "Described(\n  a=1\n  b=2\n)"
    outer = Described("a=1")
    outer.inner = Described("c", "d")
    assert repr(outer) == "Described(\n  a=1\n  (inner): Described(\n    c\n    d\n  )\n)"


def test_modules_that_contain_themselves():
    ring = nn.Module()
    ring.linear, ring.inner, ring.me = nn.Linear(2, 2), nn.ReLU(), ring
    ring.inner.up = ring
    assert names(ring.named_modules()) == ["", "linear", "inner"]
    assert names(ring.named_parameters()) == ["linear.weight", "linear.bias"]
    assert len(list(copy.deepcopy(ring).modules())) == 3
    with pytest.raises(RecursionError):  # as in PyTorch, where it walks the children
        ring.train()
