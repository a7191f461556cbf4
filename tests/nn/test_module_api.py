"""Module's whole interface next to PyTorch's: names, signatures, state, hooks on all modules."""

import copy
import inspect
import multiprocessing
import pickle
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.errors import FlowError
from oneflow_lite.nn.modules import module as everywhere
from tests.nn.twins import array


def test_every_name_of_pytorchs_module_is_there(torch):
    theirs = torch.nn.Module
    # Parts of its machinery that have no counterpart: what calls forward, tracing, replicas.
    internal = {
        "_get_backward_hooks", "_get_backward_pre_hooks",
        "_maybe_warn_non_full_backward_hook", "_replicate_for_data_parallel", "_slow_forward",
        "_wrapped_call_impl",
    }  # fmt: skip
    names = {name for name in dir(theirs) if not name.startswith("__")} | {"__setstate__"}
    assert {name for name in names if not hasattr(nn.Module, name)} == internal
    for name in sorted(names - internal - {"forward", "_named_members", "_apply"}):
        other, ours = getattr(theirs, name), getattr(nn.Module, name)
        if inspect.isfunction(other):
            assert parameters(ours) == parameters(other), name
    assert parameters(nn.Module.__init__) == parameters(theirs.__init__)
    other = torch.nn.modules.module
    assert {*other.__all__} == {*everywhere.__all__}
    for name in other.__all__:
        assert parameters(getattr(everywhere, name)) == parameters(getattr(other, name)), name


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in found]


def test_a_modules_attributes_are_pytorchs(torch):
    ours, theirs = vars(nn.Linear(1, 1)), vars(torch.nn.Linear(1, 1))
    assert {*theirs} - {*ours} == set()
    assert {*ours} - {*theirs} == {"_load_state_dict_pre_hooks_with_module"}


# --- __init__, pickles, compile -------------------------------------------------------------------


def test_init_takes_nothing_unless_it_hands_it_on():
    with pytest.raises(TypeError, match="args"):
        nn.Module(3)
    with pytest.raises(TypeError, match="size"):
        nn.Module(size=3)

    class Other:
        def __init__(self, size):
            self.size = size

    class Both(nn.Module, Other):
        call_super_init = True

        def __init__(self, size):
            super().__init__(size)

    assert Both(3).size == 3


def test_states_of_older_versions_get_what_they_lack():
    layer = nn.Linear(2, 2)
    state = {k: v for k, v in vars(layer).items() if "hooks" not in k}
    twin = nn.Linear.__new__(nn.Linear)
    twin.__setstate__(state)
    handle = twin.register_forward_hook(lambda m, a, y: y * 0, with_kwargs=False)
    assert not twin(flow.ones(1, 2)).any()
    handle.remove()
    assert list(pickle.loads(pickle.dumps(twin)).state_dict()) == ["weight", "bias"]


def test_compile_in_place():
    layer = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    twin = copy.deepcopy(layer)
    assert layer.compile() is None
    for _ in range(3):
        x = flow.randn(4, 2)
        np.testing.assert_allclose(array(layer(x)), array(twin(x)), rtol=1e-6)
    assert layer.explain().hits == 2
    assert type(layer).__name__ == "Sequential" and isinstance(layer, nn.Sequential)
    layer.compile(fullgraph=True)
    layer(x)
    copied = copy.deepcopy(layer)
    np.testing.assert_allclose(array(copied(x)), array(layer(x)), rtol=1e-6)
    with pytest.raises(TypeError):
        layer.compile(colour="red")


# --- Conversions ----------------------------------------------------------------------------------


def test_to_empty_and_types(device):
    layer = nn.Linear(2, 3)
    layer(flow.ones(1, 2)).sum().backward()
    weight = layer.weight
    assert layer.to_empty(device=device) is layer
    assert layer.weight is weight and weight.device.type == device
    assert weight.grad.device.type == device
    outer = nn.Sequential(nn.Linear(2, 2))
    outer.to_empty(device=device, recurse=False)
    assert outer[0].weight.device.type == "cpu"
    with pytest.raises(TypeError):
        layer.to_empty()


def test_types_by_name_and_bfloat16():
    layer = nn.BatchNorm1d(2)
    assert layer.bfloat16().weight.dtype == flow.bfloat16
    assert layer.num_batches_tracked.dtype == flow.int64
    assert layer.type(flow.float64).running_mean.dtype == flow.float64
    assert layer.type("torch.FloatTensor").weight.dtype == flow.float32
    for name in ("xpu", "mtia", "ipu"):
        with pytest.raises(RuntimeError, match=name):
            getattr(layer, name)()


def test_to_refuses_integers_as_pytorch(torch):
    for lib in (flow, torch):
        with pytest.raises(TypeError, match="floating point or complex"):
            lib.nn.Linear(1, 1).to(lib.int64)


def test_apply_is_called_on_every_module_that_overrides_it():
    seen = []

    class Packed(nn.Linear):
        def _apply(self, fn, recurse=True):
            seen.append(recurse)
            return super()._apply(fn, recurse)

    nn.Sequential(Packed(1, 1), nn.Sequential(Packed(1, 1))).double()
    assert seen == [True, True]


def test_shared_memory_is_seen_by_forked_processes():
    layer = nn.Linear(2, 2)
    before = array(layer.weight)
    assert layer.share_memory() is layer
    np.testing.assert_array_equal(array(layer.weight), before)

    def work():
        with flow.no_grad():
            layer.weight.fill_(7)

    with warnings.catch_warnings():  # other threads of the tests are no matter here
        warnings.simplefilter("ignore", DeprecationWarning)
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
    process.join(20)
    assert process.exitcode == 0
    assert (layer.weight == 7).all()
    layer(flow.ones(1, 2)).sum().backward()
    with pytest.warns(UserWarning, match="without elements"):
        empty = nn.Linear(0, 2)
    assert empty.share_memory().weight.shape == (2, 0)


# --- Names ----------------------------------------------------------------------------------------


def test_submodules_are_set_as_in_pytorch(torch):
    for lib in (flow, torch):
        relu, tanh = lib.nn.ReLU, lib.nn.Tanh
        net = lib.nn.Sequential(OrderedDict(a=lib.nn.Sequential(relu()), b=tanh()))
        net.set_submodule("a.0", lib.nn.Linear(1, 1))
        net.set_submodule("c", tanh())
        net.set_submodule("b", relu(), strict=True)
        kinds = [type(m).__name__ for m in net.modules()]
        assert kinds == ["Sequential", "Sequential", "Linear", "ReLU", "Tanh"]
        for error, method, *args in (
            (ValueError, "set_submodule", "", relu()),
            (ValueError, "set_submodule", "a", 3),
            (AttributeError, "set_submodule", "x.y", relu()),
            (AttributeError, "set_submodule", "x", relu(), True),
            (AttributeError, "set_submodule", "a.0.weight", relu()),
            (AttributeError, "get_submodule", "a.1"),
            (AttributeError, "get_submodule", "a.0.weight"),
            (AttributeError, "get_parameter", "a.0.x"),
            (AttributeError, "get_parameter", "a.0"),
            (AttributeError, "get_buffer", "a.0.x"),
            (AttributeError, "get_buffer", "a.0.weight"),
        ):
            with pytest.raises(error):
                getattr(net, method)(*args)


def test_duplicates_are_listed_as_in_pytorch(torch):
    found = []
    for lib in (flow, torch):
        shared = lib.nn.Linear(1, 1)
        net = lib.nn.Sequential(shared, lib.nn.Sequential(shared))
        net[1].register_buffer("tied", lib.ones(1))
        net.register_buffer("tied", net[1].tied)
        names = [
            [name for name, _ in walk(prefix="p", remove_duplicate=unique)]
            for walk in (net.named_parameters, net.named_buffers, net.named_modules)
            for unique in (True, False)
        ]
        counts = [len(list(net.modules(remove_duplicate=unique))) for unique in (True, False)]
        found.append((names, counts))
    assert found[0] == found[1]


# --- State dicts ----------------------------------------------------------------------------------


def test_state_dict_hooks_run_as_in_pytorch(torch):
    logs = []
    for lib in (flow, torch):
        log = []

        def note(kind, log=log):
            return lambda *args: log.append(
                (kind, [type(a).__name__ if hasattr(a, "forward") else
                        list(a) if isinstance(a, dict) else str(a) for a in args])
            )  # fmt: skip

        net = lib.nn.Sequential(lib.nn.Linear(1, 1, bias=False), lib.nn.LayerNorm(1))
        for name, module in (("net", net), ("linear", net[0])):
            module.register_state_dict_pre_hook(note(f"before {name}"))
            module.register_state_dict_post_hook(note(f"after {name}"))
            module._register_state_dict_hook(note(f"old {name}"))
            module.register_load_state_dict_pre_hook(note(f"load {name}"))
            module._register_load_state_dict_pre_hook(note(f"old load {name}"))
            module.register_load_state_dict_post_hook(note(f"loaded {name}"))
        state = net.state_dict()
        log.append({key: dict(value) for key, value in state._metadata.items()})
        net.load_state_dict(state)
        logs.append(log)
    assert [str(entry) for entry in logs[0]] == [str(entry) for entry in logs[1]]


def test_hooks_change_what_is_saved_and_loaded(torch):
    for lib in (flow, torch):
        net = lib.nn.Sequential(lib.nn.Linear(1, 1))

        def rename(module, state, prefix, metadata):
            state[prefix + "kernel"] = state.pop(prefix + "weight")

        def back(state, prefix, metadata, strict, missing, unexpected, errors):
            state[prefix + "weight"] = state.pop(prefix + "kernel")

        def forgive(module, keys):
            keys.missing_keys.clear()

        saving = net[0].register_state_dict_post_hook(rename)
        loading = net[0]._register_load_state_dict_pre_hook(back)
        state = net.state_dict()
        assert list(state) == ["0.bias", "0.kernel"]
        state["0.kernel"] = state["0.kernel"] * 0 + 3
        net.load_state_dict(state)
        assert net[0].weight.item() == 3
        saving.remove()
        loading.remove()
        forgiving = net.register_load_state_dict_post_hook(forgive)
        assert net.load_state_dict({}).missing_keys == []
        forgiving.remove()
        net._register_state_dict_hook(lambda module, state, *rest: {"other": state})
        assert list(net.state_dict()) == ["other"]
        with pytest.raises(RuntimeError):
            net._register_state_dict_hook(rename)


def test_methods_are_hooks_too():
    class Net(nn.Linear):
        def __init__(self):
            super().__init__(1, 1)
            self.register_state_dict_post_hook(self.drop)

        def drop(self, module, state, prefix, metadata):
            del state[prefix + "bias"]
            return self.result

    net = Net()
    net.result = None
    assert list(net.state_dict()) == ["weight"]
    net.result = {}
    with pytest.raises(RuntimeError, match="None"):
        net.state_dict()


def test_hooks_that_return_what_they_may_not(torch):
    for lib in (flow, torch):
        layer = lib.nn.Linear(1, 1)
        handle = layer.register_state_dict_post_hook(lambda *args: {})
        with pytest.raises(RuntimeError, match="None"):
            layer.state_dict()
        handle.remove()
        handle = layer.register_load_state_dict_post_hook(lambda *args: 1)
        with pytest.raises(AssertionError):
            layer.load_state_dict(layer.state_dict())


def extra(lib):
    class Extra(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(1))
            self.extra = {"calls": 3}

        def get_extra_state(self):
            return self.extra

        def set_extra_state(self, state):
            self.extra = state

    return Extra


def test_extra_state(torch):
    for lib in (flow, torch):
        net = lib.nn.Sequential(extra(lib)(), lib.nn.Linear(1, 1))
        state = net.state_dict()
        assert list(state) == ["0.weight", "0._extra_state", "1.weight", "1.bias"]
        twin = lib.nn.Sequential(extra(lib)(), lib.nn.Linear(1, 1))
        twin[0].extra = None
        twin.load_state_dict(state)
        assert twin[0].extra == {"calls": 3}
        del state["0._extra_state"]
        with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0._extra_state"'):
            twin.load_state_dict(state)
        assert twin.load_state_dict(state, strict=False).missing_keys == ["0._extra_state"]
        with pytest.raises(RuntimeError, match=r'Unexpected key\(s\).*"_extra_state"'):
            net[1].load_state_dict({**net[1].state_dict(), "_extra_state": 1})
        for name in ("get_extra_state", "set_extra_state"):
            with pytest.raises(RuntimeError, match=name):
                getattr(net[1], name)(*[1][: name.startswith("set")])


def test_messages_name_the_same_keys_as_pytorchs(torch):
    said = []
    for lib in (flow, torch):
        net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Sequential(lib.nn.BatchNorm1d(2)))
        state = net.state_dict()
        del state["1.0.weight"], state["0.bias"]
        state |= {"2.w": lib.ones(1), "0.extra": lib.ones(1), "other": lib.ones(1)}
        state["0.weight"] = lib.ones(3, 2)
        with pytest.raises(RuntimeError) as caught:
            net.load_state_dict(state)
        text = str(caught.value).replace("torch.Size([3, 2])", "(3, 2)")
        said.append(text.replace("torch.Size([2, 2])", "(2, 2)").split("\n"))
    assert said[0][: len(said[1])] == said[1]
    keys = nn.Linear(1, 1).load_state_dict({}, strict=False)
    theirs = torch.nn.Linear(1, 1).load_state_dict({}, strict=False)
    assert repr(keys) == repr(theirs) and str(keys) == str(theirs)
    assert type(keys).__name__ == type(theirs).__name__


def test_a_failed_load_takes_back_what_was_written():
    class Late(nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *rest):
            super()._load_from_state_dict(state_dict, prefix, *rest)
            if state_dict[prefix + "bias"].isnan().any():
                raise ArithmeticError("not a number")

    net = nn.Sequential(nn.Linear(1, 1), Late(1, 1))
    tensors = net.state_dict(keep_vars=True)
    before = {key: array(value) for key, value in tensors.items()}
    bad = {key: value + 1 for key, value in net.state_dict().items()}
    bad["1.bias"] = flow.full((1,), float("nan"))
    for assign in (False, True):
        with pytest.raises(ArithmeticError):
            net.load_state_dict(bad, assign=assign)
        for key, value in net.state_dict(keep_vars=True).items():
            assert value is tensors[key]
            np.testing.assert_array_equal(array(value), before[key])


def test_a_scalar_takes_one_element(torch):
    for lib in (flow, torch):
        module = lib.nn.Module()
        module.scale = lib.nn.Parameter(lib.tensor(1.0))
        module.load_state_dict({"scale": lib.tensor([4.0])})
        assert module.scale.item() == 4


def test_positional_arguments_of_state_dict(torch):
    for lib in (flow, torch):
        into = OrderedDict()
        layer = lib.nn.Linear(1, 1)
        with pytest.warns(FutureWarning):
            assert layer.state_dict(into, "net.", True) is into
        assert into["net.weight"] is layer.weight


def test_a_tensor_of_a_state_dict_keeps_the_flag_of_the_parameter(torch):
    for lib in (flow, torch):
        layer = lib.nn.Linear(1, 1)
        layer.weight.requires_grad_(False)
        given = lib.nn.Parameter(lib.ones(1, 1))
        layer.load_state_dict({"weight": given, "bias": lib.ones(1)}, assign=True)
        assert layer.weight is given and not given.requires_grad
        assert layer.bias.requires_grad


# --- Hooks on all modules, and on registration ----------------------------------------------------


def test_hooks_on_all_modules_run_as_in_pytorch(torch):
    logs = []
    for lib in (flow, torch):
        place = everywhere if lib is flow else torch.nn.modules.module
        log = []

        def note(kind, log=log):
            return lambda module, *rest: log.append((kind, type(module).__name__, len(rest)))

        handles = [
            place.register_module_forward_pre_hook(note("pre")),
            place.register_module_forward_hook(note("post")),
            place.register_module_forward_hook(note("post kwargs"), with_kwargs=True),
            place.register_module_full_backward_pre_hook(note("backward pre")),
            place.register_module_full_backward_hook(note("backward")),
        ]
        try:
            net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Tanh())
            net[0].register_forward_hook(note("own"))
            net[0].register_full_backward_hook(note("own backward"))
            net(lib.ones(1, 2, requires_grad=True)).sum().backward()
        finally:
            for handle in handles:
                handle.remove()
        count = len(log)
        net(lib.ones(1, 2))
        assert log[count:] == [("own", "Linear", 2)]
        logs.append(log)
    assert logs[0] == logs[1]


def test_global_hooks_replace_and_always_run():
    with everywhere.register_module_forward_pre_hook(lambda m, args: args[0] * 0):
        assert not nn.Identity()(flow.ones(2)).any()
    with everywhere.register_module_forward_hook(lambda m, args, y: y + 5):
        assert nn.Identity()(flow.zeros(1)).item() == 5
    seen = []

    def note(module, args, output):
        seen.append(output)

    with everywhere.register_module_forward_hook(note, always_call=True):
        with pytest.raises(NotImplementedError):
            nn.Module()(flow.ones(1))
    assert seen == [None]
    with pytest.raises(TypeError, match="hook"):
        everywhere.register_module_forward_hook(3)


def test_compiled_calls_see_hooks_on_all_modules():
    layer = flow.compile(nn.Linear(2, 2))
    for _ in range(2):
        layer(flow.ones(1, 2))
    seen = []
    with everywhere.register_module_forward_hook(lambda m, args, y: seen.append(1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            layer(flow.ones(1, 2))
    assert seen == [1]
    before = layer.explain().hits
    layer(flow.ones(1, 2))
    assert (seen, layer.explain().hits) == ([1], before + 1)


def test_regular_backward_hooks(torch):
    found = []
    for lib in (flow, torch):
        seen = []
        layer = lib.nn.Tanh()
        handle = layer.register_backward_hook(lambda m, dx, dy, seen=seen: seen.append((dx, dy)))
        with pytest.raises(RuntimeError, match="full"):
            layer.register_full_backward_hook(print)
        x = lib.tensor([0.5, -1.0], requires_grad=True)
        (layer(x * 1) * 3).sum().backward()
        handle.remove()
        layer(x * 1).sum().backward()
        assert len(seen) == 1
        found.append([array(seen[0][0][0]), array(seen[0][1][0]), array(x.grad)])
        other = lib.nn.Tanh()
        other.register_full_backward_hook(lambda *args: None)
        with pytest.raises(RuntimeError, match="regular"):
            other.register_backward_hook(print)
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_regular_backward_hooks_warn_and_replace():
    class Two(nn.Module):
        def forward(self, x):
            return [(x * 2).exp()]

    module = Two()
    module.register_backward_hook(lambda m, dx, dy: (dx[0] * 10,))
    x = flow.zeros(1, requires_grad=True)
    with pytest.warns(FutureWarning, match="register_full_backward_hook"):
        y = module(x * 1)
    y[0].backward()
    assert x.grad.item() == 20
    assert module(flow.zeros(1))[0].grad_fn is None
    with everywhere.register_module_backward_hook(lambda m, dx, dy: None):
        with pytest.raises(RuntimeError, match="all modules"):
            everywhere.register_module_full_backward_hook(print)
    with everywhere.register_module_full_backward_hook(print):
        with pytest.raises(RuntimeError, match="all modules"):
            everywhere.register_module_backward_hook(print)


def test_registration_hooks_see_and_replace(torch):
    logs = []
    for lib in (flow, torch):
        place = everywhere if lib is flow else torch.nn.modules.module
        log = []

        def note(module, name, value, log=log):
            log.append((type(module).__name__, name, type(value).__name__))

        handles = [
            place.register_module_parameter_registration_hook(note),
            place.register_module_buffer_registration_hook(note),
            place.register_module_module_registration_hook(note),
        ]
        try:
            net = lib.nn.Sequential(lib.nn.BatchNorm1d(1), lib.nn.Linear(1, 1, bias=False))
            net.extra = lib.nn.ReLU()
            net[0].running_mean = lib.ones(1)
            net.add_module("none", None)
        finally:
            for handle in handles:
                handle.remove()
        with place.register_module_module_registration_hook(lambda m, n, value: lib.nn.Tanh()):
            assert type(lib.nn.Sequential(lib.nn.ReLU())[0]) is lib.nn.Tanh
        with place.register_module_parameter_registration_hook(
            lambda m, n, value: lib.nn.Parameter(value.detach() * 0)
        ):
            module = lib.nn.Module()
            module.weight = lib.nn.Parameter(lib.ones(1))
            assert module.weight.item() == 0
        logs.append(log)
    ours, theirs = ([entry for entry in log if entry[1] != "num_batches_tracked"] for log in logs)
    assert sorted(map(str, ours)) == sorted(map(str, theirs))


def test_errors_are_ours():
    for act in (
        lambda: nn.Module(3),
        lambda: nn.Linear(1, 1).get_extra_state(),
        lambda: nn.Linear(1, 1).set_submodule("", nn.ReLU()),
        lambda: nn.Linear(1, 1).ipu(2),
    ):
        with pytest.raises(FlowError):
            act()
