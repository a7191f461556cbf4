"""The device "meta": tensors of a shape and a dtype, without values and without memory."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.errors import DeviceError, NoDataError
from tests.op_samples import every_op, samples

META = flow.device("meta")
# Their results hold values, or have a shape that depends on values.
_NEED_VALUES = """
    allclose bincount equal masked_select masked_select_grad nonzero repeat_index unique
    unique_consecutive
""".split()


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value] if isinstance(value, flow.Tensor) else []


def described(value: Any) -> list[Any]:
    return [(x.shape, x.dtype, x.stride(), x.requires_grad) for x in leaves(value)]


@pytest.fixture
def x() -> flow.Tensor:
    return flow.empty(2, 3, device="meta")


@pytest.mark.parametrize("op", every_op())
def test_every_op_tells_what_its_results_look_like(op):
    for sample in samples(op):
        tensors = sample.tensors(device="meta")
        if not tensors or sample.control_flow:
            continue
        if op in _NEED_VALUES:
            with pytest.raises(NoDataError):
                sample.call(*tensors)
            continue
        found = sample.call(*tensors)
        assert described(found) == described(sample.call(*sample.tensors()))
        assert all(leaf.is_meta for leaf in leaves(found))


def test_a_tensor_shows_its_shape_in_place_of_values(x):
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    assert repr(x.half()[0]) == "tensor(..., device='meta', size=(3,), dtype=float16)"
    assert repr(flow.empty(0, device="meta")) == "tensor(..., device='meta', size=(0,))"
    assert (x.is_meta, x.is_cpu, x.is_cuda, x.data_ptr()) == (True, False, False, 0)
    assert not flow.ones(1).is_meta
    assert (x.device.type, x.device.index, x.device) == ("meta", None, META)


@pytest.mark.parametrize("make", [
    lambda: flow.empty(2, 3, device="meta"), lambda: flow.zeros(2, 3, device=META),
    lambda: flow.full((2, 3), 1.5, device="meta"), lambda: flow.randn(2, 3, device="meta"),
    lambda: flow.rand(2, 3, device="meta"), lambda: flow.ones_like(flow.ones(2, 3), device="meta"),
    lambda: flow.tensor([[1.0, 2, 3]] * 2, device="meta"), lambda: flow.eye(2, 3, device="meta"),
    lambda: flow.ones(2, 3).to("meta"), lambda: flow.ones(2, 3, device="meta").to("meta"),
    lambda: flow.empty_strided((2, 3), (3, 1), device="meta"),
    lambda: flow.arange(6.0, device="meta").view(2, 3),
])  # fmt: skip
def test_functions_that_make_tensors(make):
    assert described(make()) == described(flow.ones(2, 3))
    assert make().is_meta


def test_large_tensors_take_no_memory():
    x = flow.empty(10**6, 10**6, device="meta")
    assert x.numel() == 10**12
    y = (x.t() * 2 + x).relu().sum(1)
    assert (y.shape, y.is_meta) == ((10**6,), True)
    assert (x @ x).t().reshape(-1).shape == (10**12,)
    assert x[10**6 - 1, 10**6 - 1].shape == ()
    assert flow.arange(10**12, device="meta").numel() == 10**12
    with pytest.raises(NoDataError, match="infer rule"):
        flow.topk(x, 2)


def test_views_are_views(x):
    row = x[1]
    assert row._base is x
    row.add_(1)
    assert x._version == 1
    assert x.t().stride() == (1, 3)
    assert x.t().reshape(6)._base is None  # on the CPU it is a copy, too
    assert x.view(3, 2)._base is x


@pytest.mark.parametrize("read", [
    lambda x: x[0, 0].item(), lambda x: x.tolist(), lambda x: x.numpy(), lambda x: x.cpu(),
    lambda x: x.to("cpu"), lambda x: bool(x[0, 0] > 0), lambda x: float(x[0, 0]), np.array,
    lambda x: flow.zeros(2, 3).copy_(x), lambda x: x.nonzero(), lambda x: x[x > 0],
    lambda x: nn.Linear(2, 3, device="meta").to("cpu"), lambda x: flow.equal(x, x),
])  # fmt: skip
def test_values_cannot_be_read(x, read):
    with pytest.raises((NotImplementedError, TypeError)):  # as in PyTorch
        read(x)


def test_the_message_says_what_to_do(x):
    with pytest.raises(NoDataError, match=r"Cannot copy out of meta tensor; no data!.*to_empty"):
        x.cpu()


def test_other_devices_meet_it_as_numbers_alone(x):
    assert (x * 2 + flow.tensor(1.5)).is_meta
    assert (flow.tensor(1.5) + x).shape == (2, 3)
    for call in (lambda: x + flow.ones(3), lambda: flow.ones(2, 3) * x):
        with pytest.raises(DeviceError, match="device"):
            call()
    with pytest.raises(RuntimeError):
        flow.tensor(1.5).add_(flow.empty((), device="meta"))


def test_writes_have_no_effect(x):
    for write in (x.zero_, x.normal_, lambda: x.copy_(flow.ones(3)), lambda: x.add_(1)):
        assert write() is x
    x[0] = 1
    assert x.is_meta


def test_bfloat16(x):
    y = x.bfloat16() @ x.bfloat16().t()
    assert (y.dtype, y.shape) == (flow.bfloat16, (2, 2))
    assert flow.empty(2, dtype=flow.bfloat16, device="meta").dtype == flow.bfloat16


def _network() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.Sequential(nn.Embedding(10, 8), nn.TransformerEncoder(layer, 2), nn.Linear(8, 3))


def test_a_network_is_made_without_memory_and_filled():
    state = _network().state_dict()
    with flow.device("meta"):
        network = _network()
    assert all(p.is_meta for p in network.parameters())
    tokens = flow.zeros(2, 5, dtype=flow.int64, device="meta")
    assert network(tokens).shape == (2, 5, 3)
    with pytest.warns(UserWarning, match="assign=True"):
        network.load_state_dict(state)
    assert network[2].weight.is_meta
    network.load_state_dict(state, assign=True)
    assert network[2].weight.equal(state["2.weight"])
    network.to("meta").to_empty(device="cpu").load_state_dict(state)
    assert network[2].weight.equal(state["2.weight"])


def test_gradients_and_steps_of_an_optimizer():
    with flow.device("meta"):
        network = _network()
        tokens = flow.zeros(2, 5, dtype=flow.int64)
    optimizer = flow.optim.Adam(network.parameters())
    network(tokens).square().mean().backward()
    assert all(described(p.grad)[0][:2] == described(p)[0][:2] for p in network.parameters())
    optimizer.step()
    assert all(p.is_meta for p in network.parameters())
    x = flow.ones(3, device="meta", requires_grad=True)
    (first,) = flow.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = flow.autograd.grad(first.sum(), x)
    assert (second.shape, second.is_meta) == ((3,), True)


def test_a_module_is_skipped_the_initialisation():
    before = flow.get_rng_state()
    layer = nn.utils.skip_init(nn.Linear, 2, 3)
    assert layer.weight.is_cpu
    assert flow.get_rng_state() == before


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies(copied: Callable[[Any], Any], x):
    layer = copied(nn.Linear(2, 3, device="meta"))
    assert layer.weight.is_meta
    assert described(copied(x.requires_grad_())) == described(x)
    assert copied(x.detach()[:, 1:]).shape == (2, 2)


def test_a_parameter_is_made_anew_with_the_fields_of_another(x):
    """As packages do that make each parameter on "meta" when it is registered."""
    old = nn.Parameter(flow.ones(2))
    new = nn.Parameter(old.to("meta"), **vars(old) | {"requires_grad": False})
    assert (new.is_meta, new.requires_grad) == (True, False)
    with pytest.raises(TypeError, match="other"):
        nn.Parameter(old, other=1)


def test_parts_by_indices_of_the_cpu(x):
    assert x[flow.tensor([0, 1, 1])].shape == (3, 3)
    x[0] = flow.ones(3)
    x[1:] = 2
    assert x.is_meta


def test_a_file_is_read_for_its_shapes(x, tmp_path):
    flow.save({"weight": flow.ones(2, 3)}, tmp_path / "weights")
    found = flow.load(tmp_path / "weights", map_location="meta")["weight"]
    assert described(found) == described(x)


def _doubled(x: flow.Tensor) -> flow.Tensor:
    return (x * 2).relu()


def test_in_transforms_and_compiled(x):
    assert flow.vmap(lambda row: row.sum())(x).shape == (2,)
    assert flow.func.grad(lambda x: x.sin().sum())(x).is_meta
    compiled = flow.compile(_doubled)
    with pytest.warns(UserWarning, match="meta"):
        assert [compiled(x).shape for _ in range(3)] == [(2, 3)] * 3
