"""What functions read and change outside, found before and after a call of them."""

import collections
import random
import types

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.static.capture import traversal
from oneflow_lite.static.capture.call_watch import CallWatch
from oneflow_lite.static.capture.outside import Outside
from tests.static.capture import reads_containers, reads_functions, reads_modules, reads_objects
from tests.static.capture.outside_reads import Net, Plain, config, reads_of

READS = [
    world
    for module in (reads_containers, reads_functions, reads_modules, reads_objects)
    for world in reads_of(module)
]


@pytest.fixture
def patch(monkeypatch):
    """Return a function that sets an entry or an attribute, for the length of a test."""

    def patch(target, name, value):
        if isinstance(target, dict):
            monkeypatch.setitem(target, name, value)
        else:
            monkeypatch.setattr(target, name, value)

    return patch


def looked_at(fn, *args, **kwargs):
    """Call `fn`, and return why it cannot be replayed, the guards, and what was outside."""
    outside = Outside.of(fn, args, kwargs)
    with CallWatch() as watch:
        fn(*args, **kwargs)
    reasons = [*watch.reasons(outside), *outside.changes(watch)]
    return reasons, outside.guards(watch), outside


@pytest.mark.parametrize("world", READS, ids=lambda world: world.__name__)
def test_guards_hold_until_what_was_read_changes(world, patch):
    fn, change = world(patch)
    x = flow.ones(2)
    reasons, guards, _ = looked_at(fn, x)
    assert reasons == []
    assert guards.check() and guards._unchanged()
    fn(x)
    assert guards.check()
    change()
    assert not guards.check()
    assert guards.why()


count = 0
seen: list = []


def stores():
    obj = Plain(value=2.0, items=[1, 2], d={"a": 1}, s={1})
    local = 0

    def attribute(x):
        obj.value += 1

    def new_attribute(x):
        obj.other = 1

    def deleted(x):
        del obj.value

    def set_by_name(x):
        setattr(obj, "va" + "lue", 7)

    def item(x):
        obj.items[0] = 5

    def augmented(x):
        obj.items += [1]

    def appended(x):
        obj.items.append(x)

    def appended_by_map(x):
        list(map(obj.items.append, [1]))

    def reordered(x):
        obj.items.reverse()

    def removed(x):
        del obj.d["a"]

    def updated(x):
        obj.d.update(a=2)

    def added(x):
        obj.s.add(2)

    def popped(x):
        obj.s.pop()

    def global_name(x):
        global count
        count += 1

    def global_list(x):
        seen.append(x)

    def closure(x):
        nonlocal local
        local += 1

    def closure_of_a_function_made_inside(x):
        def inner():
            nonlocal local
            local += 1

        inner()

    def class_attribute(x):
        Plain.shared = Plain.shared + 1

    def users_module(x):
        config.rate = config.rate / 2

    def package(x):
        flow.relu = lambda x: x

    def type_of_a_number(x):
        obj.value = 2

    def argument(x, xs=None):
        (seen if xs is None else xs).append(1)

    def module_attribute(x, net=Net()):  # noqa: B008
        net.scale = net.scale + 1

    def training(x, net=Net()):  # noqa: B008
        net.train(not net.training)

    def buffer(x, net=Net()):  # noqa: B008
        net.register_buffer("extra", x)

    def hook(x, net=Net()):  # noqa: B008
        net.register_forward_hook(lambda m, a, y: y)

    def function_attribute(x):
        stores.calls = getattr(stores, "calls", 0) + 1

    def learning_rate(x, optimizer=flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=1.0)):  # noqa: B008
        optimizer.param_groups[0]["lr"] *= 0.5

    return [f for f in locals().values() if isinstance(f, types.FunctionType)]


@pytest.mark.parametrize("store", stores(), ids=lambda f: f.__name__)
def test_what_is_stored_outside_is_reported(store, monkeypatch):
    monkeypatch.setattr(Plain, "shared", Plain.shared)
    monkeypatch.setattr(flow, "relu", flow.relu)
    reasons, _, _ = looked_at(store, flow.ones(1))
    assert any(r.startswith(("changed", "added")) for r in reasons), reasons


def test_what_was_changed_is_named():
    obj = Plain(value=2.0, inner=Plain(xs=[1, 2]))

    def f(x):
        obj.inner.xs[1] = 3
        obj.value = 1

    reasons, _, _ = looked_at(f, flow.ones(1))
    assert sorted(reasons) == ["changed obj.inner.xs[1]", "changed obj.value"]


def test_members_of_modules_are_named_as_users_name_them():
    net = Net()
    _, guards, outside = looked_at(net, flow.ones(2))
    assert outside.tensors[id(net.linear.weight)][1] == "Net.linear.weight"
    net.linear.weight = nn.Parameter(flow.ones(2, 2))
    assert guards.why() == "`Net.linear.weight` was a Parameter, is another one"


def test_tensors_that_are_keys_are_compared_by_identity_and_never_read(monkeypatch):
    a, b = flow.ones(1), flow.ones(1)
    table = {a: 2.0}
    monkeypatch.setattr(flow.Tensor, "__repr__", None)
    monkeypatch.setattr(flow.Tensor, "__eq__", None)
    reasons, guards, outside = looked_at(lambda x: x * table[a], flow.ones(1))
    assert reasons == [] and guards.check() and id(a) in outside.tensors
    table[b] = table.pop(a)
    assert guards.why()


def test_a_list_given_as_argument_may_not_be_changed_either():
    reasons, _, _ = looked_at(lambda xs: xs.append(1), [1])
    assert reasons == ["added argument 0[1]"]


def test_a_list_given_as_argument_is_left_to_the_arguments_guards():
    xs = [flow.ones(1), 2.0]
    reasons, guards, _ = looked_at(lambda xs: xs[0] * xs[1], xs)
    xs[1] = 3.0
    assert reasons == [] and guards.check()


def test_an_object_given_as_argument_is_guarded():
    obj = Plain(value=2.0)
    reasons, guards, _ = looked_at(lambda x, pair: x * pair["a"].value, flow.ones(1), {"a": obj})
    assert reasons == [] and guards.check()
    obj.value = 3.0
    assert guards.why() == "`a.value` was 2.0, is 3.0"


# What cannot be followed


array = np.ones(3)
iterator = iter([1, 2, 3])
numbers = (i for i in range(10))
sentinel = object()


class Guarded:
    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class Items:
    def __init__(self):
        self.value = array


guarded = Guarded()
items = Items()
items_of_none = Plain(unused=array, value=2.0)


@pytest.mark.parametrize(
    "f, word",
    [
        (lambda x: x * float(array[0]), "ndarray"),
        (lambda x: x * next(iterator), "list_iterator"),
        (lambda x: x * next(numbers), "generator"),
        (lambda x: [x * i for i in iterator], "list_iterator"),
        (lambda x: x * items.value[0], "ndarray"),
        (lambda x: guarded and x, "__getattribute__"),
        (lambda x: x * np.random.rand(), "np.random.rand"),
        (lambda x: x * random.random(), "random.random"),
        (lambda x: x * float(np.sqrt(2.0)), "np.sqrt"),
        (lambda x: [*map(random.uniform, [0], [1])], "random"),
        (lambda x: x * getattr(items, "value")[0], "ndarray"),  # noqa: B009
    ],
)
def test_what_cannot_be_followed_is_reported(f, word):
    reasons, _, _ = looked_at(f, flow.ones(1))
    assert any(word in reason for reason in reasons), reasons


def test_what_cannot_be_followed_and_is_not_read_is_no_matter():
    reasons, guards, _ = looked_at(lambda x: x * items_of_none.value, flow.ones(1))
    assert reasons == [] and guards.check()


def test_a_branch_that_was_not_entered_is_no_matter():
    def unused(x):
        return x * array

    def f(x):
        return unused(x) if config.rate < 0 else x

    assert looked_at(f, flow.ones(1))[0] == []


def test_a_class_of_a_library_that_has_effects():
    import threading

    assert any("Lock" in r or "lock" in r for r in looked_at(lambda x: threading.Lock(), 1)[0])


def test_too_many_objects_are_a_reason(monkeypatch):
    monkeypatch.setattr(traversal, "LIMIT", 50)
    xs = [[i] for i in range(100)]
    assert any("more than 50 objects" in r for r in looked_at(lambda x: x * xs[0][0], 1)[0])


# What is ordinary


class Block(nn.Module):
    """Inner functions, containers, formatting: what models are made of."""

    SIZES = (2, 2)

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Linear(a, b) for a, b in zip(self.SIZES, self.SIZES, strict=True)]
        )
        self.names = [f"layer{i}" for i in range(len(self.layers))]
        self.norm = nn.BatchNorm1d(2)

    @property
    def depth(self):
        return len(self.layers)

    @staticmethod
    def act(x):
        return flow.relu(x)

    @classmethod
    def width(cls):
        return max(cls.SIZES)

    def forward(self, x):
        outs = {}
        for i, (name, layer) in enumerate(zip(self.names, self.layers, strict=True)):
            x = self.act(layer(x))
            outs[f"{name}:{i:03d}"] = x
        assert isinstance(x, flow.Tensor) and self.depth == len(outs)
        return self.norm(sum(outs.values()) / self.width())


@pytest.mark.parametrize(
    "make",
    [
        lambda ps: flow.optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=1e-3),
        lambda ps: flow.optim.SGD(ps, lr=0.1),
        lambda ps: flow.optim.Adam(ps, lr=0.1),
        lambda ps: flow.optim.AdamW([{"params": list(ps)}], lr=0.1, amsgrad=True),
    ],
)
def test_an_ordinary_training_step_has_no_reason_from_the_first_call_on(make):
    model, loss_fn = Block(), nn.MSELoss()
    optimizer = make(model.parameters())

    def step(x, y):
        def penalty():
            return sum((p * p).sum() for p in model.parameters() if p.ndim > 1)

        optimizer.zero_grad()
        loss = loss_fn(model(x), y) + 1e-3 * penalty()
        parts = sorted([("loss", 1), ("extra", 0)], key=lambda part: part[1])
        loss.backward()
        with flow.no_grad():
            for p in filter(lambda p: p.grad is not None, model.parameters()):
                p.grad.clamp_(-1, 1)
        optimizer.step()
        return {"loss": loss, "parts": parts, "text": f"{len(parts)} {max(1, 2)!r}"}

    x, y = flow.ones(3, 2), flow.ones(3, 2)
    for _ in range(2):
        reasons, guards, outside = looked_at(step, x, y)
        assert reasons == []
        assert guards.check() and guards._unchanged()
    step(x, y)
    assert guards.check(), guards.why()
    for p in model.parameters():
        assert id(p) in outside.tensors
    optimizer.param_groups[0]["lr"] = 0.01
    step(x, y)
    assert guards.check(), guards.why()
    model.eval()
    assert guards.why() == "`model.training` was True, is False"


@pytest.mark.parametrize(
    "change",
    [
        lambda o: o.param_groups[0].update(lr=flow.tensor(0.1)),
        lambda o: o.param_groups[0].update(momentum=0),
        lambda o: o.param_groups[0].update(nesterov=True),
        lambda o: o.param_groups[0]["params"].pop(),
        lambda o: o.add_param_group({"params": [flow.ones(1, requires_grad=True)]}),
        lambda o: o.state.clear(),
        lambda o: next(iter(o.state.values())).update(momentum_buffer=flow.ones(2, 2)),
        lambda o: next(iter(o.state.values())).pop("momentum_buffer"),
        lambda o: o.load_state_dict(o.state_dict()),
        lambda o: o._scalars.clear(),
        lambda o: setattr(o, "step", lambda: None),
    ],
)
def test_changes_of_an_optimizer_that_count(change):
    net = nn.Linear(2, 2)
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        net(x).sum().backward()
        optimizer.step()

    reasons, guards, _ = looked_at(step, flow.ones(1, 2))
    assert reasons == [] and guards.check()
    change(optimizer)
    assert not guards.check()


@pytest.mark.parametrize("change", [{"lr": 0.5}, {"momentum": 0.5}, {"lr": 0.0}])
def test_numbers_that_each_step_reads_anew_do_not_count(change):
    net = nn.Linear(2, 2)
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        net(x).sum().backward()
        optimizer.step()

    _, guards, _ = looked_at(step, flow.ones(1, 2))
    optimizer.param_groups[0].update(change)
    assert guards.check(), guards.why()


def test_a_learning_rate_that_the_users_code_reads_counts():
    optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=0.1)
    _, guards, _ = looked_at(lambda x: x * optimizer.param_groups[0]["lr"], flow.ones(1))
    optimizer.param_groups[0]["lr"] = 0.2
    assert guards.why() == "`optimizer.param_groups[0]['lr']` was 0.1, is 0.2"


def test_state_that_users_make_is_a_change():
    w = flow.ones(1, requires_grad=True)
    optimizer = flow.optim.SGD([w], lr=0.1)

    def f(x):
        optimizer.state[w]["calls"] = 1

    assert looked_at(f, flow.ones(1))[0]


@pytest.mark.filterwarnings("ignore:scheduler.step")
def test_a_scheduler_stepped_inside_is_a_change():
    optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=0.1)
    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, 1)

    def step(x):
        optimizer.step()
        scheduler.step()

    assert any("lr" in reason for reason in looked_at(step, flow.ones(1))[0])


def test_containers_and_classes_made_inside_are_no_matter():
    def f(x):
        class Local:
            def __init__(self, k):
                self.k = k

        pairs = collections.OrderedDict(a=Local(1))
        pairs["b"] = Local(2)
        pairs["a"].k += 1
        total = [p.k for p in pairs.values()]
        total.append(3)
        return x * sum(total)

    assert looked_at(f, flow.ones(1))[0] == []


def test_an_op_of_ones_own_and_its_rule(request):
    @flow.register_op("outside_cube")
    def cube(xp, x):
        return np.multiply(x, x) * x

    @cube.grad(saves="x")
    def cube_grad(F, ctx, dy):
        return dy * 3 * ctx.x**2

    try:
        reasons, guards, _ = looked_at(
            lambda x: cube(x).sum().backward(), flow.ones(1, requires_grad=True)
        )
    finally:
        for registry in ("KERNELS", "FUNCTORS", "GRAD_FUNCS"):
            getattr(flow.registry, registry).remove("outside_cube")
    assert reasons == [] and guards.check()


def test_a_function_of_ones_own_with_its_gradient():
    class Double(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            return dy * 2

    reasons, guards, _ = looked_at(
        lambda x: Double.apply(x).sum().backward(), flow.ones(1, requires_grad=True)
    )
    assert reasons == [] and guards.check()


def test_hooks_of_tensors_are_followed():
    k = 2.0
    w = flow.ones(1, requires_grad=True)
    w.register_hook(lambda g: g * k)
    reasons, guards, _ = looked_at(lambda x: (x * w).sum().backward(), flow.ones(1))
    assert reasons == [] and guards.check()
    k = 3.0
    assert not guards.check()


@pytest.mark.filterwarnings("ignore:flow.compile")  # after the change it may run eagerly
@pytest.mark.parametrize("world", READS, ids=lambda world: world.__name__)
def test_a_compiled_function_follows_what_it_reads(world, patch):
    fn, change = world(patch)
    compiled = flow.compile(fn)
    x = flow.tensor([1.0, -2.0])
    for _ in range(3):
        assert compiled(x).tolist() == fn(x).tolist()
    explanation = compiled.explain()
    assert explanation.hits == 2 and explanation.fallbacks == 0, explanation
    change()
    for _ in range(2):
        flow.manual_seed(0)
        got = compiled(x)
        flow.manual_seed(0)
        want = fn(x)
        assert got.tolist() == want.tolist() and got.dtype == want.dtype
