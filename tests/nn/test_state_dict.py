"""state_dict and load_state_dict: names, sharing, and errors that leave the module alone."""

from collections import OrderedDict

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.errors import StateDictError


def network(lib) -> object:
    """A network with every kind of entry, in PyTorch or here."""
    return lib.nn.Sequential(
        OrderedDict(
            conv=lib.nn.Conv2d(1, 2, 3, bias=False),
            norm=lib.nn.BatchNorm2d(2),
            body=lib.nn.ModuleList([lib.nn.Linear(2, 2), lib.nn.Sequential(lib.nn.LayerNorm(2))]),
            table=lib.nn.Embedding(3, 2, padding_idx=0),
            loss=lib.nn.CrossEntropyLoss(weight=lib.ones(2)),
            plain=lib.nn.BatchNorm1d(2, affine=False, track_running_stats=False),
        )
    )


def contents(module: nn.Module) -> dict[str, np.ndarray]:
    return {key: value.numpy().copy() for key, value in module.state_dict().items()}


def assert_same(module: nn.Module, before: dict[str, np.ndarray]) -> None:
    after = contents(module)
    assert list(after) == list(before)
    for key, value in before.items():
        np.testing.assert_array_equal(after[key], value)


def test_keys_shapes_and_dtypes_are_pytorchs(torch):
    ours, theirs = network(flow).state_dict(), network(torch).state_dict()
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        assert ours[key].shape == tuple(value.shape)
        assert str(ours[key].dtype) == str(value.dtype).removeprefix("torch.")
    assert ours["norm.num_batches_tracked"].dtype == flow.int64


def test_a_state_dict_holds_detached_tensors_that_share_memory():
    layer = nn.Linear(2, 2)
    state = layer.state_dict()
    assert type(state) is OrderedDict
    assert not state["weight"].requires_grad
    assert type(state["weight"]) is flow.Tensor
    state["weight"].fill_(5)
    np.testing.assert_array_equal(layer.weight.numpy(), np.full((2, 2), 5.0))
    assert layer.state_dict(keep_vars=True)["weight"] is layer.weight
    into = OrderedDict(first=1)
    assert layer.state_dict(destination=into, prefix="net.") is into
    assert list(into) == ["first", "net.weight", "net.bias"]


def test_loading_copies_into_the_same_tensors():
    source, target = network(flow), network(flow)
    with flow.no_grad():
        for tensor in source.state_dict().values():
            tensor.fill_(3)
    parameters = list(target.parameters())
    result = target.load_state_dict(source.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert all(a is b for a, b in zip(parameters, target.parameters(), strict=True))
    assert_same(target, contents(source))
    assert not np.shares_memory(target.conv.weight.numpy(), source.conv.weight.numpy())


def test_loading_converts_the_dtype():
    layer = nn.Linear(2, 1)
    layer.load_state_dict(
        {"weight": flow.tensor([[1, 2]]), "bias": flow.ones(1, dtype=flow.float64)}
    )
    assert layer.weight.dtype == flow.float32
    np.testing.assert_array_equal(layer.weight.numpy(), [[1.0, 2.0]])


def test_every_problem_is_named_and_nothing_is_loaded():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.BatchNorm1d(2))
    state = {key: value + 1 for key, value in net.state_dict().items()}
    del state["1.bias"], state["2.running_mean"]
    state |= {"3.weight": flow.ones(1), "0.weight": flow.ones(3, 2), "0.bias": [1.0, 2.0]}
    before = contents(net)
    with pytest.raises(StateDictError) as caught:
        net.load_state_dict(state)
    text = str(caught.value)
    for expected in (
        "Sequential", "Missing key(s)", '"1.bias", "2.running_mean"', "Unexpected key(s)",
        '"3.weight"', "(3, 2)", "(2, 2)", '"0.bias"', "list", "strict=False",
    ):  # fmt: skip
        assert expected in text
    assert isinstance(caught.value, RuntimeError)
    assert_same(net, before)


def test_a_wrong_shape_is_an_error_without_strict_too():
    layer = nn.Linear(2, 2)
    before = contents(layer)
    with pytest.raises(StateDictError, match="size mismatch"):
        layer.load_state_dict({"bias": flow.ones(2), "weight": flow.ones(4)}, strict=False)
    assert_same(layer, before)


def test_without_strict_keys_are_skipped_and_reported():
    layer = nn.Linear(2, 2)
    weight = layer.weight.numpy().copy()
    result = layer.load_state_dict({"bias": flow.ones(2), "other": flow.ones(1)}, strict=False)
    assert result.missing_keys == ["weight"]
    assert result.unexpected_keys == ["other"]
    assert result == (["weight"], ["other"])
    assert "missing_keys=['weight']" in repr(result)
    np.testing.assert_array_equal(layer.bias.numpy(), [1.0, 1.0])
    np.testing.assert_array_equal(layer.weight.numpy(), weight)


def test_complex_values_are_not_cut_to_real_ones():
    layer = nn.Linear(1, 1, bias=False)
    with pytest.raises(StateDictError, match="complex"):
        layer.load_state_dict({"weight": flow.tensor([[1j]])})


@pytest.mark.parametrize("state", [None, [("weight", 1)], "weights.safetensors"])
def test_what_is_no_dict_is_refused(state):
    with pytest.raises(TypeError, match="state_dict"):
        nn.Linear(1, 1).load_state_dict(state)


def test_assign_takes_the_tensors_themselves():
    layer = nn.Linear(2, 1)
    layer.bias.requires_grad_(False)
    weight = flow.ones(1, 2, dtype=flow.float64)
    bias = flow.zeros(1)
    layer.load_state_dict({"weight": weight, "bias": bias}, assign=True)
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.dtype == flow.float64
    assert layer.weight.requires_grad
    assert not layer.bias.requires_grad
    assert np.shares_memory(layer.weight.numpy(), weight.numpy())
    norm = nn.BatchNorm1d(1)
    state = nn.BatchNorm1d(1).state_dict()
    norm.load_state_dict(state, assign=True)
    assert norm.running_mean is state["running_mean"]


def test_shared_parameters_have_an_entry_each_and_stay_shared():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    state = net.state_dict()
    assert list(state) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    net.load_state_dict({key: flow.ones_like(value) for key, value in state.items()})
    assert net[1].weight is net[0].weight
    np.testing.assert_array_equal(net[0].weight.numpy(), np.ones((2, 2)))


def test_loading_does_not_disturb_a_recorded_graph_silently():
    layer = nn.Linear(2, 2)
    y = layer(flow.ones(1, 2, requires_grad=True))
    layer.load_state_dict(nn.Linear(2, 2).state_dict())
    with pytest.raises(RuntimeError, match=r"version|modified|in place"):
        y.sum().backward()


def test_a_module_loads_onto_its_own_device(device):
    layer = nn.Linear(2, 2).to(device)
    layer.load_state_dict({"weight": flow.ones(2, 2), "bias": flow.ones(2)})
    assert layer.weight.device.type == device
    np.testing.assert_array_equal(layer.weight.cpu().numpy(), np.ones((2, 2)))


class Noting(nn.Module):
    """A module that takes extra state, and notes it in several ways."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(flow.zeros(2))
        self.extra, self.taken = {"a": 1}, 0

    def get_extra_state(self):
        return self.extra

    def set_extra_state(self, state):
        self.extra.update(state)
        self.taken, self.seen = self.taken + 1, True
        self.register_buffer("made", flow.ones(1))


def test_a_failed_load_undoes_extra_state_hooks_and_lazy_parameters():
    lazy = nn.LazyLinear(2)
    net = nn.Sequential(Noting(), lazy, nn.BatchNorm1d(2))
    handle = net.register_load_state_dict_pre_hook(lambda module, *_: setattr(module, "met", 1))
    parameters, before = list(net.parameters()), {**vars(net[0])}
    state = {"0.weight": flow.ones(2), "0._extra_state": {"a": 2, "b": 3}, "2.weight": flow.ones(5)}
    state |= {"1.weight": flow.ones(2, 3), "1.bias": flow.ones(2)}
    with pytest.raises(StateDictError, match="size mismatch for 2.weight"):
        net.load_state_dict(state)
    assert {**vars(net[0])} == before and net[0].taken == 0 and net[0].extra["a"] == 1
    assert not net[0]._buffers and net[0].weight.tolist() == [0, 0] and not hasattr(net, "met")
    assert all(x is y for x, y in zip(net.parameters(), parameters, strict=True))
    assert type(lazy.weight) is type(lazy.bias) is nn.UninitializedParameter
    assert lazy(flow.ones(1, 7)).shape == (1, 2)
    handle.remove()


@pytest.mark.parametrize(
    "metadata", ["text", 3, {"": 5}, *({"": {"version": x}} for x in ("1", -5, float("nan")))]
)
def test_metadata_without_sense_are_refused(metadata):
    net = nn.BatchNorm1d(2)
    state = net.state_dict()
    state._metadata = metadata
    with pytest.raises(TypeError, match="_metadata"):
        net.load_state_dict(state)
