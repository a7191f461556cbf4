"""SGD, Adam and AdamW against PyTorch's over 100 steps, and what an update may touch."""

import gc

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, optim
from tests import strict_cupy

STEPS = 100
SGD = [
    {},
    {"momentum": 0.9},
    {"momentum": 0.9, "nesterov": True},
    {"momentum": 0.9, "dampening": 0.3},
    {"weight_decay": 0.1},
    {"maximize": True, "weight_decay": 0.1},
    {"momentum": 0.5, "dampening": 0.1, "weight_decay": 0.1, "maximize": True},
    {"momentum": 0.5, "nesterov": True, "weight_decay": 0.1, "maximize": True},
]
ADAM = [
    {},
    {"betas": (0.5, 0.9), "eps": 1e-3},
    {"amsgrad": True},
    {"weight_decay": 0.3},
    {"weight_decay": 0.1, "amsgrad": True, "maximize": True},
    {"maximize": True},
]
CASES = [
    pytest.param(name, options, id=f"{name}-{'-'.join(options) or 'plain'}")
    for name, listed in (("SGD", SGD), ("Adam", ADAM), ("AdamW", ADAM))
    for options in listed
]


class Fit:
    """One and the same small fit, in PyTorch or here."""

    def __init__(self, lib, dtype: str) -> None:
        rng = np.random.default_rng(0)
        self.lib, self.dtype = lib, dtype
        self.parameters = [self.leaf(rng.standard_normal(s)) for s in ((4, 3), (3,), ())]
        self.batches = rng.standard_normal((STEPS, 8, 4)).astype(dtype)

    def leaf(self, array):
        return self.lib.tensor(np.array(array, self.dtype), requires_grad=True)

    def run(self, optimizer, steps=range(STEPS)) -> None:
        weight, bias, scale = self.parameters
        for step in steps:
            optimizer.zero_grad()
            y = self.lib.tanh(self.lib.tensor(self.batches[step]) @ weight + bias) * scale
            # A maximized loss must stay bounded, or rounding errors grow with the parameters.
            ((y - 0.3) * (y - 0.3)).mean().backward()
            optimizer.step()

    def values(self) -> list[np.ndarray]:
        return [parameter.detach().numpy() for parameter in self.parameters]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_hundred_steps_agree_with_pytorch(torch, name, options, dtype):
    ours, theirs = Fit(flow, dtype), Fit(torch, dtype)
    optimizer = getattr(optim, name)(ours.parameters, lr=0.01, **options)
    reference = getattr(torch.optim, name)(theirs.parameters, lr=0.01, foreach=False, **options)
    start = [value.copy() for value in ours.values()]
    ours.run(optimizer)
    theirs.run(reference)
    for a, b, before in zip(ours.values(), theirs.values(), start, strict=True):
        assert a.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12 if dtype == "float64" else 1e-6)
        assert (a != before).all()
    for parameter, expected in zip(ours.parameters, theirs.parameters, strict=True):
        for key, value in reference.state[expected].items():
            if value is not None:
                mine = optimizer.state[parameter][key].numpy()
                np.testing.assert_allclose(mine, value.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_complex_parameters_agree_with_pytorch(torch, name):
    options = {"momentum": 0.9, "dampening": 0.2} if name == "SGD" else {"amsgrad": True}
    start, pull = np.array([1 + 2j, -0.5j]), np.array([0.3 - 1j, 2 + 0j])
    results = []
    for lib, optimizers in ((flow, optim), (torch, torch.optim)):
        x = lib.tensor(start, requires_grad=True)
        optimizer = getattr(optimizers, name)([x], lr=0.1, weight_decay=0.01, **options)
        for _ in range(20):
            x.grad = x.detach() * 0.5 + lib.tensor(pull)
            optimizer.step()
        results.append(x.detach().numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-10)


@pytest.mark.parametrize(("name", "options"), CASES[:3] + CASES[-2:])
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


@pytest.mark.parametrize(("name", "options"), CASES)
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

    parameters = [nn.Parameter(flow.ones(3)), nn.Parameter(flow.ones(2, 2)), flow.ones(1)]
    optimizer = getattr(optim, name)(parameters, lr=0.1, **options)
    op = "sgd_update" if name == "SGD" else "adam_update"
    for _ in range(2):
        grads = [flow.full(p.shape, 0.5) for p in parameters[:2]]
        for parameter, grad in zip(parameters, grads, strict=False):
            parameter.grad = grad
        with flow.push_interpreter(Ops()) as ops:
            optimizer.step()
        assert ops.seen == [op, op]
        for parameter, grad in zip(parameters, grads, strict=False):
            assert parameter.grad is grad
            assert parameter.requires_grad
            assert parameter.is_leaf
    assert parameters[2] not in optimizer.state


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
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_parameters_keep_their_dtype(name, dtype):
    x = nn.Parameter(flow.ones(3, dtype=dtype))
    x.grad = flow.ones(3, dtype=dtype)
    optimizer = getattr(optim, name)([x], lr=0.1, weight_decay=0.1)
    optimizer.step()
    assert x.dtype == dtype
    assert x.detach().numpy().dtype == dtype
    assert (x < 1).all()


@pytest.mark.parametrize(("name", "options"), CASES)
def test_updates_on_a_device(device, name, options):
    results = []
    for where in ("cpu", device):
        x = flow.tensor([1.0, -2.0, 3.0]).to(where).requires_grad_()
        optimizer = getattr(optim, name)([x], lr=0.1, **options)
        for step in range(3):
            x.grad = flow.tensor([1.0, 0.5, -1.0]).to(where) * (step + 1)
            optimizer.step()
        for tensor in optimizer.state[x].values():
            assert tensor.device.type == where
        results.append(x.detach().cpu().numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_a_step_copies_nothing_to_the_host(device):
    if device == "cpu" or strict_cupy.real_device_present():
        pytest.skip("transfers are recorded by the stand-in for CuPy")
    x = flow.ones(3, device=device, requires_grad=True)
    x.grad = flow.ones(3, device=device)
    for optimizer in (optim.SGD([x], momentum=0.9, dampening=0.1), optim.Adam([x], amsgrad=True)):
        optimizer.step()
        strict_cupy.clear_log()
        optimizer.param_groups[0]["lr"] = 0.5
        optimizer.step()
        assert not strict_cupy.transfers("d2h")


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
