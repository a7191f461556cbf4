"""Modules called with other tensors, fused, laid out anew and made without initialisation."""

import inspect

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import utils
from oneflow_lite.nn.utils.stateless import call_with
from tests.nn.twins import array, assert_close, give_numbers

X = np.random.default_rng(0).normal(size=(4, 3))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2, bias=False)
        self.second = nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x, scale=1.0):
        return self.second(self.first(x)) * scale


def kept(module):
    return {key: id(value) for key, value in module.state_dict(keep_vars=True).items()}


def test_outputs_and_gradients_are_pytorchs(torch):
    def build(lib):
        return lib.nn.Sequential(
            lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 2)
        ).double()

    ours, theirs = build(flow), build(torch)
    give_numbers(ours, theirs)
    results = []
    for lib, module, call in (
        (flow, ours, call_with),
        (torch, theirs, torch.func.functional_call),
    ):
        generator = np.random.default_rng(2)
        given = {
            name: lib.tensor(generator.uniform(0.5, 1, tuple(x.shape)), requires_grad=True)
            for name, x in module.named_parameters()
            if name != "2.bias"
        }
        statistics = {"1.running_mean": lib.zeros(4, dtype=lib.float64)}
        before = {key: array(value) for key, value in module.state_dict().items()}
        y = call(module, (given, statistics), lib.tensor(X))
        (y**2).sum().backward()
        for key, value in module.state_dict().items():
            if key not in ("1.running_var", "1.num_batches_tracked"):  # these were not replaced
                np.testing.assert_array_equal(array(value), before[key])
        results.append([y, statistics["1.running_mean"], *[x.grad for x in given.values()]])
        results[-1].append(module[2].bias.grad)
        assert module[0].weight.grad is None
    for a, b in zip(*results, strict=True):
        assert_close(a, b)


def test_the_module_is_as_it_was_also_after_an_error():
    module = Tied()
    before = kept(module)
    x = flow.ones(1, 2)
    assert call_with(module, {"first.weight": flow.eye(2)}, x, {"scale": 3.0}).tolist() == [[3, 3]]
    assert kept(module) == before
    with pytest.raises(flow.errors.ShapeError):
        call_with(module, {"first.weight": flow.eye(3)}, x)
    with pytest.raises(TypeError, match="Tensor"):
        call_with(module, {"first.weight": flow.eye(2), "second.weight": 3}, x, tie_weights=False)
    assert kept(module) == before


def test_tied_weights():
    module, x = Tied(), flow.ones(1, 2)
    twice = {"first.weight": flow.eye(2) * 2, "second.weight": flow.eye(2)}
    assert call_with(module, {"second.weight": flow.eye(2) * 2}, x).tolist() == [[4, 4]]
    with pytest.raises(ValueError, match="tie_weights"):
        call_with(module, twice, x)
    assert call_with(module, twice, x, tie_weights=False).tolist() == [[2, 2]]
    same = flow.eye(2) * 3
    both = {"first.weight": same, "second.weight": same}
    assert call_with(module, both, x).tolist() == [[9, 9]]


class Shared(nn.Module):
    """A submodule that is reachable by three names, at two depths."""

    def __init__(self, replaced=None) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.BatchNorm1d(1))
        self.alias = self.net
        self.deep = nn.ModuleDict({"k": self.net[0]})
        self.replaced = replaced

    def forward(self, x):
        y = self.net[0](x) + self.alias[0](x) + self.deep["k"](x)
        if self.replaced == "buffer":
            self.alias[1].running_mean = self.alias[1].running_mean + 1
        elif self.replaced == "submodule":
            self.net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.BatchNorm1d(1))
        elif self.replaced == "deleted":
            del self.alias[1].running_mean
        elif self.replaced == "error":
            raise KeyError("in forward")
        return y


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["net.0.weight", "alias.0.weight", "deep.k.weight"])
def test_a_submodule_with_several_names_is_as_it_was(name, strict):
    module, x = Shared(), flow.ones(1, 1)
    before = kept(module)
    given = {name: flow.full((1, 1), 5.0)}
    if strict:
        statistics = module.state_dict(keep_vars=True)
        given |= {k: v for k, v in statistics.items() if k.startswith("net.1")}
    assert call_with(module, given, x, strict=strict).item() == 15
    assert kept(module) == before
    different = {"net.0.weight": flow.zeros(1, 1), "deep.k.weight": flow.full((1, 1), 2.0)}
    assert call_with(module, different, x, tie_weights=False).item() == 6  # the later one
    assert kept(module) == before
    with pytest.raises(ValueError, match=r"alias.0.weight, deep.k.weight, net.0.weight"):
        call_with(module, different, x)


@pytest.mark.parametrize("replaced", ["buffer", "submodule", "deleted", "error"])
def test_places_that_forward_changes(replaced):
    module = Shared(replaced)
    seen = [module.net, module.net[0].weight, module.net[1].running_mean]
    weight, mean = flow.ones(1, 1), flow.zeros(1)
    given = {"net.0.weight": weight, "net.1.running_mean": mean, "alias.1.running_mean": mean}
    try:
        call_with(module, given, flow.ones(1, 1))
    except KeyError:
        assert replaced == "error"
    assert module.alias is seen[0]
    assert module.alias[0].weight is seen[1] and module.alias[1].running_mean is seen[2]
    assert given["net.0.weight"] is weight
    assert given["net.1.running_mean"] is given["alias.1.running_mean"]
    assert given["net.1.running_mean"].item() == (replaced == "buffer")


def test_a_name_of_a_tied_weight_satisfies_strict(torch):
    for lib, call in ((flow, call_with), (torch, torch.func.functional_call)):
        net = lib.nn.Sequential(lib.nn.Linear(1, 1, bias=False), lib.nn.Linear(1, 1, bias=False))
        net[1].weight = net[0].weight
        given, x = {"1.weight": lib.full((1, 1), 3.0)}, lib.ones(1, 1)
        assert call(net, given, x, strict=True).item() == 9
        with pytest.raises(RuntimeError, match=r"Missing key\(s\): '0.weight'"):
            call(net, given, x, strict=True, tie_weights=False)


@pytest.mark.parametrize("name", ["forward", "training", "first", "first.", "", 3])
def test_names_that_name_no_tensor_are_refused(name):
    module = Tied()
    before = kept(module), sorted(vars(module))
    with pytest.raises((TypeError, KeyError), match=r"functional_call\(\).*name"):
        call_with(module, {"first.weight": flow.eye(2), name: flow.eye(2)}, flow.ones(1, 2))
    assert (kept(module), sorted(vars(module))) == before


def test_strict_and_other_arguments():
    module, x = nn.Linear(2, 2), flow.ones(1, 2)
    with pytest.raises(
        RuntimeError, match=r"(?s)Unexpected key\(s\): 'w'.*Missing key\(s\): 'bias'"
    ):
        call_with(module, {"w": x, "weight": flow.eye(2)}, x, strict=True)
    with pytest.raises(ValueError, match="weight in several"):
        call_with(module, ({"weight": flow.eye(2)}, {"weight": flow.eye(2)}), x)
    with pytest.raises(TypeError, match="dict"):
        call_with(module, 3, x)
    named = dict(module.named_parameters())
    assert call_with(module, named, (x,), strict=True).shape == (1, 2)
    with pytest.warns(FutureWarning, match="functional_call"):
        utils.stateless.functional_call(module, named, x)


class Replacing(nn.Module):
    """A buffer that is assigned, and an attribute that is no parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", flow.zeros(()))
        self.plain = flow.zeros(1)

    def forward(self):
        self.count = self.count + 1
        return self.plain


def test_replaced_buffers_come_back_in_the_dict():
    module = Replacing()
    given = {"count": flow.tensor(5.0), "plain": flow.ones(1), "new": flow.ones(1)}
    assert call_with(module, given).tolist() == [1]
    assert (given["count"].item(), module.count.item()) == (6, 0)
    assert module.plain.tolist() == [0]
    assert not hasattr(module, "new")


def test_parametrized_and_compiled_modules():
    layer = utils.parametrizations.weight_norm(nn.Linear(2, 2, bias=False))
    key = "parametrizations.weight.original0"
    given = {key: flow.zeros(2, 1, requires_grad=True)}
    assert not call_with(layer, given, flow.ones(1, 2)).any()
    plain = nn.Linear(2, 2)

    def loss(weight, x):
        return call_with(plain, {"weight": weight}, x).sum()

    compiled = flow.compile(loss)
    for i in range(3):
        weight = flow.full((2, 2), float(i), requires_grad=True)
        compiled(weight, flow.ones(1, 2)).backward()
        assert weight.grad.tolist() == [[1, 1], [1, 1]]
    assert list(dict(plain.named_parameters())) == ["weight", "bias"]


def test_second_order_through_a_call():
    layer = nn.Linear(2, 1, bias=False).double()

    def energy(weight):
        return call_with(layer, {"weight": weight}, flow.tensor([[1.0, 2.0]]).double()).pow(2).sum()

    hessian = flow.autograd.functional.hessian(energy, flow.ones(1, 2, dtype=flow.float64))
    np.testing.assert_allclose(array(hessian).reshape(2, 2), [[2, 4], [4, 8]])


# --- Fusion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("kind", ["conv", "linear"])
def test_fused_layers_do_what_both_did(torch, kind, affine, bias):
    if kind == "linear" and not affine:
        pytest.skip("PyTorch has no fusion for it")
    fused = []
    for lib in (flow, torch):
        first, norm = {
            "conv": lambda lib=lib: (
                lib.nn.Conv2d(2, 3, 2, bias=bias), lib.nn.BatchNorm2d(3, affine=affine)
            ),
            "linear": lambda lib=lib: (
                lib.nn.Linear(2, 3, bias=bias), lib.nn.BatchNorm1d(3, affine=affine)
            ),
        }[kind]()  # fmt: skip
        net = lib.nn.Sequential(first, norm).double().eval()
        fused.append((net, lib))
    give_numbers(fused[0][0], fused[1][0])
    x = np.random.default_rng(0).normal(size=(2, 2, 4, 4) if kind == "conv" else (4, 2))
    results = []
    for net, lib in fused:
        one = getattr(lib.nn.utils, f"fuse_{kind}_bn_eval")(net[0], net[1])
        assert type(one) is type(net[0]) and one is not net[0]
        assert_close(one(lib.tensor(x)), net(lib.tensor(x)))
        results.append(one)
    for (name, a), (other, b) in zip(
        results[0].named_parameters(), results[1].named_parameters(), strict=True
    ):
        assert (name, a.requires_grad) == (other, b.requires_grad)
        assert_close(a, b)


def test_fusion_of_transposed_weights(torch):
    values = [np.random.default_rng(i).uniform(0.5, 1.5, n) for i, n in
              enumerate([(2, 3, 2), 3, 3, 3, 3, 3])]  # fmt: skip
    found = []
    for lib in (flow, torch):
        weight, bias, *statistics, w, b = (lib.tensor(v) for v in values)
        make = lib.nn.utils.fuse_conv_bn_weights
        found.append(make(weight, bias, *statistics, 1e-5, w, b, transpose=True))
    for a, b in zip(*found, strict=True):
        assert_close(a, b)
    assert isinstance(found[0][0], nn.Parameter)


def test_fusion_is_refused():
    conv, norm = nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)
    for act in (
        lambda: utils.fuse_conv_bn_eval(conv, norm),
        lambda: utils.fuse_conv_bn_eval(conv.eval(), norm),
        lambda: utils.fuse_conv_bn_eval(
            conv.eval(), nn.BatchNorm2d(1, track_running_stats=False).eval()
        ),
        lambda: utils.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(2).eval()),
    ):
        with pytest.raises(AssertionError) as caught:
            act()
        assert isinstance(caught.value, flow.errors.FlowError)


# --- The rest -------------------------------------------------------------------------------------


def test_skip_init_draws_nothing(device):
    flow.manual_seed(3)
    expected = flow.rand(3)
    flow.manual_seed(3)
    layer = utils.skip_init(nn.Linear, 2, 3, bias=False, device=device, dtype=flow.float64)
    assert layer.weight.device.type == device and layer.weight.dtype == flow.float64
    flow.manual_seed(3)
    utils.skip_init(nn.Linear, 2, 3)
    np.testing.assert_array_equal(array(flow.rand(3)), array(expected))
    for wrong in (Tied, dict, 3):
        with pytest.raises(RuntimeError, match="device"):
            utils.skip_init(wrong)


def test_memory_formats_change_strides_alone(torch):
    built = []
    for lib in (flow, torch):
        net = lib.nn.Sequential(lib.nn.Conv2d(3, 4, 2), lib.nn.Sequential(lib.nn.Conv2d(4, 2, 1)))
        assert lib.nn.utils.convert_conv2d_weight_memory_format(net, lib.channels_last) is net
        built.append(net)
    give_numbers(*built)
    strides = [[net[0].weight.stride(), net[1][0].weight.stride()] for net in built]
    assert strides[0][0] == strides[1][0] == (12, 1, 6, 3)
    net = built[0]
    before, x = array(net[0].weight), flow.randn(1, 3, 5, 5)
    y = array(net(x))
    utils.convert_conv2d_weight_memory_format(net, flow.contiguous_format)
    assert net[0].weight.is_contiguous()
    np.testing.assert_array_equal(array(net[0].weight), before)
    np.testing.assert_allclose(array(net(x)), y, rtol=1e-5, atol=1e-6)
    assert utils.convert_conv3d_weight_memory_format(net, flow.channels_last_3d) is net
    assert net[0].weight.is_contiguous()
    with pytest.raises(TypeError, match="memory_format"):
        utils.convert_conv2d_weight_memory_format(net, "channels_last")


def test_clipping_by_a_known_norm(torch):
    for lib in (flow, torch):
        x = lib.zeros(2, requires_grad=True)
        x.grad = lib.tensor([3.0, 4.0])
        lib.nn.utils.clip_grads_with_norm_(x, 1.0, lib.tensor(10.0))
        np.testing.assert_allclose(array(x.grad), [0.3, 0.4], rtol=1e-5)
        lib.nn.utils.clip_grads_with_norm_([lib.zeros(1)], 1.0, lib.tensor(10.0))
        with pytest.warns(FutureWarning):
            assert lib.nn.utils.clip_grad_norm([x], 0.1).item() == pytest.approx(0.5, rel=1e-5)
        with pytest.warns(UserWarning, match="generator"):
            lib.nn.utils.clip_grad_norm_((y for y in []), 1.0)


def test_names_and_signatures_are_pytorchs(torch):
    theirs = torch.nn.utils
    missing = {*theirs.__all__} - {*utils.__all__}
    assert missing <= {"rnn"}  # in a file of its own
    for name in {*theirs.__all__} - missing:
        ours, other = getattr(utils, name), getattr(theirs, name)
        if not inspect.ismodule(other):
            assert parameters(ours) == parameters(other), name
    assert parameters(call_with) == parameters(torch.func.functional_call)
    assert parameters(utils.stateless.functional_call) == parameters(
        theirs.stateless.functional_call
    )


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in found]
