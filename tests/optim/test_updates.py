"""The reach of an update: its op, memory, layouts, dtypes, devices."""

import gc

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, optim
from tests import strict_cupy

SGD = [
    {},
    {"momentum": 0.9, "nesterov": True},
    {"momentum": 0.5, "dampening": 0.1, "weight_decay": 0.1, "maximize": True},
]
OTHERS = {
    "Adam": {"weight_decay": 0.1, "amsgrad": True, "maximize": True},
    "AdamW": {},
    "NAdam": {"weight_decay": 0.1, "decoupled_weight_decay": True},
    "RAdam": {"weight_decay": 0.1, "betas": (0.5, 0.7)},
    "Adamax": {"weight_decay": 0.1},
    "Adagrad": {"weight_decay": 0.1},
    "Adadelta": {"weight_decay": 0.1},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Rprop": {"maximize": True},
    "ASGD": {"weight_decay": 0.1},
    "Adafactor": {"weight_decay": 0.1},
    "Muon": {},
}
CASES = [*[("SGD", options) for options in SGD], *OTHERS.items()]
IDS = [f"{name}-{'-'.join(options) or 'plain'}" for name, options in CASES]


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_layouts_of_memory_do_not_matter(name, options):
    results = []
    for array in (np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4).T.copy().T):
        x = flow.from_numpy(array.copy(order="K")).requires_grad_()
        x.grad = flow.from_numpy(np.ones((3, 4)) * 0.5)
        optimizer = getattr(optim, name)([x], lr=0.1, **options)
        for _ in range(3):
            optimizer.step()
        results.append(x.detach().numpy().copy())
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_every_update_is_one_op_that_writes_only_what_it_declares(name, options):
    class Ops(flow.Interpreter):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def apply(self, op_expr, inputs, attrs):
            self.seen.append(op_expr.op_type_name)
            before = {id(x): (x._version, x.numpy().copy()) for x in inputs if x is not None}
            result = self.inner.apply(op_expr, inputs, attrs)
            names = dict(zip(op_expr.schema.inputs, inputs, strict=True))
            for input_name, x in names.items():
                if x is None:
                    continue
                version, content = before[id(x)]
                if input_name in op_expr.schema.mutates:
                    assert x._version == version + 1
                else:
                    assert x._version == version
                    np.testing.assert_array_equal(x.numpy(), content)
            return result

    parameters = [nn.Parameter(flow.ones(3, 1)), nn.Parameter(flow.ones(2, 2)), flow.ones(1, 1)]
    optimizer = getattr(optim, name)(parameters, lr=0.1, **options)
    for _ in range(2):
        grads = [flow.full(p.shape, 0.5) for p in parameters[:2]]
        for parameter, grad in zip(parameters, grads, strict=False):
            parameter.grad = grad
        with flow.push_interpreter(Ops()) as ops:
            optimizer.step()
        assert ops.seen == [optimizer._op] * 2
        for parameter, grad in zip(parameters, grads, strict=False):
            assert parameter.grad is grad
            assert parameter.requires_grad
            assert parameter.is_leaf
    assert parameters[2] not in optimizer.state or name == "Adagrad"


def test_state_is_there_before_the_first_update():
    shapes = []

    class Look(flow.Interpreter):
        def apply(self, op_expr, inputs, attrs):
            shapes.append([len(state) for state in optimizer.state.values()])
            return self.inner.apply(op_expr, inputs, attrs)

    parameters = [nn.Parameter(flow.ones(2)) for _ in range(3)]
    optimizer = optim.Adam(parameters, amsgrad=True)
    for parameter in parameters:
        parameter.grad = flow.ones(2)
    with flow.push_interpreter(Look()):
        optimizer.step()
    assert shapes == [[4, 4, 4]] * 3


def test_an_update_of_a_tensor_that_the_graph_needs_is_noticed():
    weight = nn.Parameter(flow.ones(2))
    optimizer = optim.SGD([weight], lr=0.1)
    y = (weight * weight).sum()
    weight.grad = flow.ones(2)
    optimizer.step()
    with pytest.raises(RuntimeError, match=r"version|modified|in place"):
        y.backward()


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_options_are_read_at_every_step(torch, name):
    options = {"momentum": 0.9, "dampening": 0.1} if name == "SGD" else {}
    results = []
    for lib, optimizers in ((flow, optim), (torch, torch.optim)):
        x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
        optimizer = getattr(optimizers, name)([x], lr=0.1, **options)
        for step in range(6):
            group = optimizer.param_groups[0]
            group["lr"] = 0.1 / (step + 1)
            group["weight_decay"] = 0.0 if step < 3 else 0.2
            if name == "SGD":
                group["momentum"] = 0.9 if step % 2 else 0.4
            else:
                group["betas"] = (0.5, 0.9) if step > 2 else (0.9, 0.99)
            x.grad = x.detach() * 0.5
            optimizer.step()
        results.append(x.detach().numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)


def test_a_learning_rate_may_be_a_tensor():
    lr = flow.tensor(0.5)
    x = nn.Parameter(flow.tensor([1.0]))
    optimizer = optim.SGD([x], lr=lr)
    x.grad = flow.ones(1)
    optimizer.step()
    assert x.item() == 0.5
    lr.fill_(0.25)
    optimizer.step()
    assert x.item() == 0.25
    optimizer.param_groups[0]["lr"] = 1.0
    optimizer.step()
    assert x.item() == -0.75
    assert lr.item() == 0.25


def test_dampening_that_comes_later_does_not_undampen_a_step(torch):
    results = []
    for lib, optimizers in ((flow, optim), (torch, torch.optim)):
        x = lib.tensor([1.0], dtype=lib.float64, requires_grad=True)
        optimizer = optimizers.SGD([x], lr=0.1, momentum=0.9)
        for step in range(4):
            optimizer.param_groups[0]["dampening"] = 0.5 if step > 1 else 0
            x.grad = lib.tensor([1.0], dtype=lib.float64)
            optimizer.step()
        results.append(x.item())
    assert results[0] == pytest.approx(results[1], rel=1e-12)


@pytest.mark.parametrize("dtype", [flow.float16, flow.float32, flow.float64])
@pytest.mark.parametrize("name", ["SGD", *OTHERS])
def test_parameters_keep_their_dtype(name, dtype):
    x = nn.Parameter(flow.ones(3, 2, dtype=dtype))
    x.grad = flow.ones(3, 2, dtype=dtype)
    optimizer = getattr(optim, name)([x], lr=0.1)
    optimizer.step()
    assert x.dtype == dtype
    assert x.detach().numpy().dtype == dtype
    assert (x < 1).all()


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_updates_on_a_device(device, name, options):
    results = []
    for where in ("cpu", device):
        x = flow.tensor([[1.0, -2.0, 3.0]]).to(where).requires_grad_()
        optimizer = getattr(optim, name)([x], lr=0.1, **options)
        for step in range(3):
            x.grad = flow.tensor([[1.0, 0.5, -1.0]]).to(where) * (step + 1)
            optimizer.step()
        for tensor in optimizer.state[x].values():
            assert tensor.device.type == where
        results.append(x.detach().cpu().numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_a_step_copies_nothing_to_the_host(device, name, options):
    if device == "cpu" or strict_cupy.real_device_present():
        pytest.skip("transfers are recorded by the stand-in for CuPy")
    x = flow.ones(3, 2, device=device, requires_grad=True)
    x.grad = flow.ones(3, 2, device=device)
    optimizer = getattr(optim, name)([x], **options)
    optimizer.step()
    strict_cupy.clear_log()
    optimizer.param_groups[0]["lr"] = 0.5
    optimizer.step()
    assert not strict_cupy.transfers("d2h")


def test_a_rate_may_lie_on_another_device(device):
    lr = flow.tensor(0.5, dtype=flow.float64)
    x = flow.ones(2, device=device, requires_grad=True)
    optimizer = optim.SGD([x], lr=lr)
    for expected in (0.5, 0.25):
        x.grad = flow.ones(2, device=device)
        optimizer.step()
        assert x.detach().cpu().numpy()[0] == expected
        lr.fill_(0.25)


def test_memory_stays_flat_over_many_steps():
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = optim.Adam(net.parameters(), amsgrad=True)
    x = flow.ones(2, 4)

    def step() -> None:
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    step()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(50):
            step()
        assert len(gc.get_objects()) - before < 20
    finally:
        gc.enable()
