"""Optimizer: groups, options, closures, state dicts and their exchange with PyTorch."""

import collections
import copy
import io
import math
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, optim
from oneflow_lite.errors import FlowError
from oneflow_lite.files.serialization import load, save


def leaves(count: int) -> list[nn.Parameter]:
    return [nn.Parameter(flow.full((2,), float(i + 1))) for i in range(count)]


def give_grads(parameters, value: float = 1.0) -> None:
    for parameter in parameters:
        parameter.grad = flow.full(parameter.shape, value)


def test_groups_have_options_of_their_own():
    a, b, c = leaves(3)
    optimizer = optim.SGD(
        [{"params": [a]}, {"params": b, "lr": 0.5, "momentum": 0.9}], lr=0.1, weight_decay=0.0
    )
    optimizer.add_param_group({"params": iter([c]), "lr": 1.0})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5, 1.0]
    assert [group["momentum"] for group in optimizer.param_groups] == [0, 0.9, 0]
    give_grads([a, b, c])
    optimizer.step()
    np.testing.assert_allclose([p[0].item() for p in (a, b, c)], [0.9, 1.5, 2.0], rtol=1e-6)


def test_parameters_may_have_names():
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"] == [net.weight, net.bias]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_the_repr_is_pytorchs(torch):
    ours, theirs = nn.Linear(1, 1), torch.nn.Linear(1, 1)
    for name in ("SGD", "Adam", "AdamW"):
        assert repr(getattr(optim, name)(ours.parameters(), lr=0.1)) == repr(
            getattr(torch.optim, name)(theirs.parameters(), lr=0.1)
        )


def test_zero_grad():
    parameters = leaves(2)
    optimizer = optim.SGD(parameters, lr=0.1)
    give_grads(parameters[:1])
    grad = parameters[0].grad
    optimizer.zero_grad(set_to_none=False)
    assert parameters[0].grad is grad
    assert not grad.any()
    optimizer.zero_grad()
    assert parameters[0].grad is None


def test_a_closure_is_called_with_gradients_enabled():
    (x,) = leaves(1)
    optimizer = optim.SGD([x], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with flow.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 2.0
    np.testing.assert_allclose(x.detach().numpy(), [0.8, 0.8], rtol=1e-6)
    assert optimizer.step() is None


def test_parameters_without_a_gradient_are_left_alone():
    a, b = leaves(2)
    optimizer = optim.Adam([a, b], lr=0.1, weight_decay=0.5)
    give_grads([a])
    optimizer.step()
    np.testing.assert_array_equal(b.detach().numpy(), [2.0, 2.0])
    assert set(optimizer.state_dict()["state"]) == {0}


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda p: optim.SGD(p[0]), TypeError, "iterable"),
        (lambda p: optim.SGD(3), TypeError, "iterable"),
        (lambda p: optim.SGD([]), ValueError, "at least one"),
        (lambda p: optim.SGD([1.0]), TypeError, "tensors"),
        (lambda p: optim.SGD([{"lr": 0.1}]), TypeError, "params"),
        (lambda p: optim.SGD([{"params": {p[0]}}]), TypeError, "list"),
        (lambda p: optim.SGD([p[0], p[0]]), ValueError, "once"),
        (lambda p: optim.SGD([{"params": p}, {"params": p[:1]}]), ValueError, "once"),
        (lambda p: optim.SGD([p[0] * 2]), ValueError, "leaf"),
        (lambda p: optim.SGD([("a", p[0]), p[1]]), ValueError, "names"),
        (lambda p: optim.SGD(p, lr=-1.0), ValueError, "lr"),
        (lambda p: optim.SGD(p, lr=math.nan), ValueError, "lr"),
        (lambda p: optim.SGD(p, momentum=-0.1), ValueError, "momentum"),
        (lambda p: optim.SGD(p, weight_decay=-0.1), ValueError, "weight_decay"),
        (lambda p: optim.SGD(p, nesterov=True), ValueError, "nesterov"),
        (lambda p: optim.SGD(p, nesterov=True, momentum=0.9, dampening=0.1), ValueError, "damp"),
        (lambda p: optim.SGD(p, differentiable=True), ValueError, "differentiable"),
        (lambda p: optim.SGD([{"params": p, "lr": -1.0}]), ValueError, "lr"),
        (lambda p: optim.Adam(p, lr=-1.0), ValueError, "lr"),
        (lambda p: optim.Adam(p, eps=-1.0), ValueError, "eps"),
        (lambda p: optim.Adam(p, betas=(1.0, 0.9)), ValueError, "betas"),
        (lambda p: optim.Adam(p, betas=(0.9, -0.1)), ValueError, "betas"),
        (lambda p: optim.Adam(p, betas=(0.9,)), ValueError, "betas"),
        (lambda p: optim.AdamW(p, weight_decay=-0.1), ValueError, "weight_decay"),
    ],
)
def test_bad_arguments(build, error, text):
    with pytest.raises(error, match=text) as caught:
        build(leaves(2))
    assert isinstance(caught.value, FlowError)


def test_a_refused_group_is_not_added():
    a, b = leaves(2)
    optimizer = optim.SGD([a], lr=0.1)
    for group in ({"params": [b, a]}, {"params": [b], "lr": -1.0}, [b]):
        with pytest.raises((ValueError, TypeError)):
            optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 1


def spoiled_gradient(x, optimizer):
    x.grad.data = flow.ones(3)


def spoiled_by_complex_numbers(x, optimizer):
    x.grad.data = flow.ones(2, 2, dtype=flow.complex64)


def spoiled_parameter(x, optimizer):
    x.data = flow.ones(5)


def spoiled_memory(x, optimizer):
    x.data = flow.ones(1, 2).expand(2, 2)


def spoiled_state(x, optimizer):
    state = optimizer.state[x]
    state[next(name for name in state if name != "step")] = flow.ones(4)


def state_without_value(x, optimizer):
    state = optimizer.state[x]
    state[next(name for name in state if name != "step")] = None


def state_that_is_no_tensor(x, optimizer):
    state = optimizer.state[x]
    state[next(name for name in state if name != "step")] = "0.5"


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    ("spoil", "error", "text"),
    [
        (
            spoiled_gradient,
            RuntimeError,
            r"gradient of {}: expected shape \(2, 2\), got shape \(3,\)",
        ),
        (spoiled_by_complex_numbers, RuntimeError, "gradient of {}: expected real numbers"),
        (spoiled_parameter, RuntimeError, r"gradient of {}: expected shape \(5,\)"),
        (spoiled_memory, RuntimeError, "{}: expected one to write"),
        (spoiled_state, RuntimeError, r"state \w+ of {}: expected shape .*, got shape \(4,\)"),
        (state_without_value, TypeError, r"state \w+ of {}: expected a Tensor, got NoneType"),
        (state_that_is_no_tensor, TypeError, r"state \w+ of {}: expected a Tensor, got str"),
    ],
)
@pytest.mark.parametrize(
    "name", "Adadelta Adafactor Adagrad Adam Adamax ASGD Muon NAdam RAdam RMSprop Rprop SGD".split()
)
def test_a_step_that_cannot_be_taken_changes_nothing(name, spoil, error, text, first):
    if first and "state" in spoil.__name__ and name != "Adagrad":
        pytest.skip("there is no state before the first step")
    if first and (name, spoil) == ("Muon", spoiled_parameter):
        pytest.skip("it takes matrices only, and says so")
    weights = {key: nn.Parameter(flow.ones(2, 2)) for key in "abcd"}
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(optim, name)(weights.items(), **options)
    for _ in range(1 if first else 3):
        give_grads(weights.values())
        if not first:
            optimizer.step()

    def seen():
        kept = {f"{k} {n}": x for k, w in weights.items() for n, x in optimizer.state[w].items()}
        tensors = {k: x for k, x in (weights | kept).items() if isinstance(x, flow.Tensor)}
        return {key: x.detach().clone() for key, x in tensors.items()}

    spoil(weights["c"], optimizer)
    before = seen()
    pattern = text.format(r"parameter 2 \(c\) of group 0'").replace("'", "'?")
    with pytest.raises(error, match=rf"^{name}\.step\(\): argument '{pattern}") as caught:
        optimizer.step()
    assert isinstance(caught.value, FlowError)
    after = seen()  # a first step has made the state, and written none of it
    assert all(flow.equal(x, after[key]) for key, x in before.items())


def test_an_option_may_switch_a_state_off_and_on(torch):
    def run(lib):
        x = lib.ones(2, requires_grad=True)
        optimizer = lib.optim.SGD([x], lr=0.1, momentum=0.9)
        for momentum in (0.9, 0.9, 0, 0.5):
            optimizer.param_groups[0]["momentum"] = momentum
            x.grad = lib.ones(2)
            optimizer.step()
        return x.tolist()

    assert run(flow) == pytest.approx(run(torch))


def test_an_update_that_fails_is_told_of_its_parameter(monkeypatch):
    parameters = leaves(3)
    optimizer = optim.SGD([{"params": parameters[:1]}, {"params": parameters[1:]}])
    give_grads(parameters)
    calls = []

    def update(*inputs, **attrs):
        calls.append(inputs)
        if len(calls) == 3:
            raise OSError("no more power")

    monkeypatch.setattr("oneflow_lite.optim.optimizer.FUNCTORS.get", lambda name: update)
    with pytest.raises(OSError, match="no more power") as caught:
        optimizer.step()
    assert caught.value.__notes__ == ["in SGD.step(): parameter 1 of group 1"]


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [("lr", "fast", TypeError), ("lr", None, TypeError), ("betas", (0.9, "b"), TypeError),
     ("lr", ..., KeyError)],
)  # fmt: skip
def test_an_option_that_was_spoiled_later_is_named(option, value, error):
    parameters = leaves(2)
    optimizer = optim.Adam(parameters)
    give_grads(parameters)
    optimizer.step()
    before = [x.detach().clone() for x in parameters]
    optimizer.param_groups[0][option] = value
    if value is ...:
        del optimizer.param_groups[0][option]
    with pytest.raises(error, match=rf"^Adam\.step\(\): argument '{option}'") as caught:
        optimizer.step()
    assert isinstance(caught.value, FlowError)
    assert all(flow.equal(x, y) for x, y in zip(before, parameters, strict=True))


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_state_dict_goes_on_where_it_stopped(name):
    options = {"momentum": 0.9, "dampening": 0.1} if name == "SGD" else {"amsgrad": True}
    first, second = leaves(3), leaves(3)
    one = getattr(optim, name)([{"params": first[:1], "lr": 0.3}, {"params": first[1:]}], **options)
    two = getattr(optim, name)([{"params": second[:1]}, {"params": second[1:]}], lr=9.0)
    for step in range(3):
        give_grads(first, step + 1.0)
        one.step()
    with flow.no_grad():
        for a, b in zip(first, second, strict=True):
            b.copy_(a)
    file = io.BytesIO()
    save(one.state_dict(), file)
    two.load_state_dict(load(io.BytesIO(file.getvalue())))
    assert [g["lr"] for g in two.param_groups] == [0.3, one.param_groups[1]["lr"]]
    assert two.param_groups[1]["params"][0] is second[1]
    for step in range(3):
        for parameters, optimizer in ((first, one), (second, two)):
            give_grads(parameters, step - 1.0)
            optimizer.step()
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_loading_copies_and_converts():
    (x,) = leaves(1)
    optimizer = optim.Adam([x])
    mean = flow.ones(2, dtype=flow.float64)
    state = {
        "state": {0: {"step": 3, "exp_avg": mean, "exp_avg_sq": mean}},
        "param_groups": [{**optimizer.state_dict()["param_groups"][0], "lr": 0.5}],
    }
    optimizer.load_state_dict(state)
    kept = optimizer.state[x]
    assert kept["exp_avg"].dtype == flow.float32
    assert kept["step"].item() == 3
    give_grads([x])
    optimizer.step()
    np.testing.assert_array_equal(mean.numpy(), [1.0, 1.0])
    assert optimizer.state_dict()["state"][0]["step"].item() == 4
    assert state["param_groups"][0]["lr"] == 0.5


def test_a_state_dict_that_does_not_fit_changes_nothing():
    parameters = leaves(2)
    optimizer = optim.SGD(parameters, lr=0.1, momentum=0.9)
    give_grads(parameters)
    optimizer.step()
    good = optimizer.state_dict()
    group = good["param_groups"][0]
    buffers = [state["momentum_buffer"] for state in optimizer.state.values()]
    for bad in (
        None,
        {"state": {}},
        {"state": {}, "param_groups": []},
        {"state": {}, "param_groups": [{**group, "params": [0]}]},
        {"state": {5: {}}, "param_groups": [{**group, "lr": 9.0}]},
        {
            "state": {0: {"momentum_buffer": flow.ones(2)}, 1: {"momentum_buffer": flow.ones(3)}},
            "param_groups": [{**group, "lr": 9.0}],
        },
        {"state": {0: 3}, "param_groups": [{**group, "lr": 9.0}]},
        {"state": {0: {"momentum_buffer": "1"}}, "param_groups": [{**group, "lr": 9.0}]},
        {"state": {}, "param_groups": [{**group, "lr": "9"}]},
        {"state": {}, "param_groups": [{**group, "nesterov": flow.ones(2)}]},
        {"state": {}, "param_groups": [None]},
        {"state": [], "param_groups": 3},
    ):
        with pytest.raises(ValueError, match="load_state_dict"):
            optimizer.load_state_dict(bad)
        assert optimizer.param_groups[0]["lr"] == 0.1
        assert optimizer.param_groups[0]["params"] == parameters
        assert [s["momentum_buffer"] for s in optimizer.state.values()] == buffers


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))], ids=["copy", "pickle"]
)
def test_copies_go_on_by_themselves(copied):
    net = nn.Linear(2, 1)
    optimizer = optim.Adam(net.parameters(), lr=0.1)

    def step(net, optimizer):
        optimizer.zero_grad()
        net(flow.ones(1, 2)).sum().backward()
        optimizer.step()

    step(net, optimizer)
    twin_net, twin = copied((net, optimizer))
    assert twin.param_groups[0]["params"][0] is twin_net.weight
    before = net.weight.detach().numpy().copy()
    step(twin_net, twin)
    np.testing.assert_array_equal(net.weight.detach().numpy(), before)
    step(net, optimizer)
    np.testing.assert_array_equal(net.weight.detach().numpy(), twin_net.weight.detach().numpy())


def test_an_optimizer_of_ones_own():
    class SignDescent(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @flow.no_grad()
        def step(self):
            for group in self.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        param.sub_(param.grad.sign() * group["lr"])

    (x,) = leaves(1)
    optimizer = SignDescent([x], lr=0.25)
    give_grads([x], -3.0)
    optimizer.step()
    np.testing.assert_array_equal(x.detach().numpy(), [1.25, 1.25])
    assert optimizer.state_dict() == {"state": {}, "param_groups": [{"lr": 0.25, "params": [0]}]}


class ByHand(optim.Optimizer):
    """One that does not call `__init__`, as packages have them."""

    def __init__(self, params):
        self.param_groups = [{"params": list(params), "lr": 0.25}]
        self.state = collections.defaultdict(dict)
        self.defaults = {"lr": 0.25}

    @flow.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for param in group["params"]:
                param.sub_(param.grad, alpha=group["lr"])
                self.state[param]["count"] = self.state[param].get("count", 0) + 1


class Around(optim.Optimizer):
    """One that leaves everything to another."""

    state = property(lambda self: self.inner.state)
    param_groups = property(lambda self: self.inner.param_groups)
    defaults = property(lambda self: self.inner.defaults)

    def __init__(self, inner):
        self.inner = inner

    def step(self, closure=None):
        return self.inner.step(closure)


@pytest.mark.parametrize("made", [ByHand, lambda x: Around(optim.SGD(x, lr=0.25, momentum=0.5))])
def test_an_optimizer_may_do_without_init(made):
    (x,) = leaves(1)
    optimizer, seen = made([x]), []
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    optimizer.register_step_post_hook(lambda *args: seen.append("step"))
    optimizer.register_state_dict_pre_hook(lambda *args: seen.append("state"))
    for _ in range(2):
        optimizer.zero_grad()
        x.sum().backward()
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.0625
    twin = copy.deepcopy(optimizer)
    kept = optimizer.state_dict()
    assert seen == ["step", "step", "state"]
    assert len(kept["state"]) == 1
    optimizer.param_groups[0]["lr"] = 1.0
    if isinstance(optimizer, ByHand):
        optimizer.load_state_dict(kept)
        assert optimizer.param_groups[0]["lr"] == 0.0625
        assert optimizer.state[x] == {"count": 2}
    optimizer.add_param_group({"params": leaves(1)})
    assert [group["lr"] for group in optimizer.param_groups][1] == 0.25
    assert len(twin.param_groups) == 1
    assert twin.param_groups[0]["params"][0] is not x
    assert "Parameter Group 1" in repr(optimizer)


def test_state_under_a_name_of_the_users(torch):
    for lib, x in ((flow, flow.ones(1)), (torch, torch.ones(1))):
        optimizer = lib.optim.SGD([x.requires_grad_()], lr=0.1)
        optimizer.state["x"] = 1
        optimizer.state["epochs"] = [2, 3]
        kept = optimizer.state_dict()
        assert kept["state"] == {"x": 1, "epochs": [2, 3]}
        twin = lib.optim.SGD([x], lr=0.1)
        twin.load_state_dict(kept)
        assert dict(twin.state) == kept["state"]


def test_groups_are_told_apart_in_the_repr(torch):
    texts = [
        repr(lib.optim.SGD([{"params": lib.ones(1)}, {"params": lib.ones(1)}], lr=0.1))
        for lib in (flow, torch)
    ]
    assert texts[0] == texts[1]


def test_a_step_that_was_put_on_the_instance_is_not_copied():
    (x,) = leaves(1)
    optimizer = optim.SGD([x], lr=0.1)
    optimizer.step = lambda closure=None: None
    twin = pickle.loads(pickle.dumps(optimizer))
    give_grads(twin.param_groups[0]["params"])
    twin.step()
    assert twin.param_groups[0]["params"][0].tolist() == [flow.tensor(0.9).item()] * 2


def test_a_module_that_changed_its_dtype_is_still_optimized():
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    net.double()
    net(flow.ones(1, 2, dtype=flow.float64)).sum().backward()
    before = net.weight.detach().numpy().copy()
    optimizer.step()
    np.testing.assert_allclose(net.weight.detach().numpy(), before - 0.1, rtol=1e-12)
