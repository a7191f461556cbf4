"""optimizer.minimize: what it appends, and training that equals eager's bit for bit."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.errors import ArgumentError, CaptureError, GradientError

rng = np.random.default_rng(1)
STEPS = 6
X = rng.standard_normal((STEPS, 8, 3)).astype(np.float32)
Y = rng.standard_normal((STEPS, 8, 2)).astype(np.float32)


def make_net():
    return flow.nn.Sequential(flow.nn.Linear(3, 5), flow.nn.Tanh(), flow.nn.Linear(5, 2))


def clip(parameters):
    return flow.nn.utils.clip_grad_norm_(parameters, 0.05)


OPTIMIZERS = {
    "sgd": lambda p: flow.optim.SGD(p, lr=0.1),
    "momentum": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "dampening": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, maximize=True),
    "nesterov": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: flow.optim.Adam(p, lr=0.05),
    "amsgrad": lambda p: flow.optim.Adam(p, lr=0.05, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: flow.optim.AdamW(p, lr=0.05),
}


class Training:
    """A captured training step of a net and an optimizer."""

    def __init__(self, net, optimizer, **options):
        self.net, self.optimizer = net, optimizer
        self.main, self.startup = static.Program(), static.Program()
        with static.program_guard(self.main, self.startup):
            x, y = static.data("x", X.shape[1:]), static.data("y", Y.shape[1:])
            self.loss = flow.nn.MSELoss()(net(x), y)
            self.ops, self.pairs = optimizer.minimize(self.loss, **options)
        self.scope, self.executor = static.Scope(), static.Executor()
        self.executor.run(self.startup, scope=self.scope)

    def step(self, i):
        feed = {"x": X[i], "y": Y[i]}
        return self.executor.run(self.main, feed, [self.loss], self.scope)[0]

    def values(self):
        return [self.scope.find_var(p.name).copy() for p in self.net.parameters()]


def eager_step(net, optimizer, i, grad_clip=None):
    loss = flow.nn.MSELoss()(net(flow.tensor(X[i])), flow.tensor(Y[i]))
    optimizer.zero_grad()
    loss.backward()
    if grad_clip is not None:
        grad_clip(list(net.parameters()))
    optimizer.step()
    return loss.detach().numpy()


def same(training, net):
    for have, want in zip(training.values(), net.parameters(), strict=True):
        np.testing.assert_array_equal(have, want.detach().numpy())


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("grad_clip", [None, clip], ids=["plain", "clipped"])
def test_training_equals_eager(make, grad_clip):
    captured, eager = make_net(), make_net()
    eager.load_state_dict(captured.state_dict())
    training = Training(captured, make(list(captured.parameters())), grad_clip=grad_clip)
    optimizer = make(list(eager.parameters()))
    for i in range(STEPS):
        np.testing.assert_array_equal(training.step(i), eager_step(eager, optimizer, i, grad_clip))
        same(training, eager)


def test_what_is_returned_and_appended():
    net = make_net()
    training = Training(net, flow.optim.Adam(net.parameters()), grad_clip=clip)
    ops = training.main.global_block().ops
    assert training.ops == ops[-len(training.ops) :]
    assert {op.role for op in training.ops} == {"optimize"}
    assert [op.type for op in training.ops[-4:]] == ["adam_update"] * 4
    assert "norm" in {op.type for op in training.ops}
    assert [p is q for (p, _), q in zip(training.pairs, net.parameters(), strict=True)] == [
        True
    ] * 4
    roles = [op.role for op in ops]
    assert roles == sorted(roles, key=["forward", "backward", "optimize"].index)
    assert all(p.grad is None for p in net.parameters())


def test_state_lives_in_the_scope_and_not_in_the_optimizer():
    net = make_net()
    optimizer = flow.optim.Adam(net.parameters())
    training = Training(net, optimizer)
    name = "parameter_0_exp_avg"
    assert not training.scope.find_var(name).any()
    training.step(0)
    assert training.scope.find_var(name).all()
    assert not optimizer.state[net[0].weight]["exp_avg"].numpy().any()


@pytest.mark.filterwarnings("ignore:scheduler.step")  # it does not see the steps of a Program
@pytest.mark.parametrize("make", [OPTIMIZERS["adam"], OPTIMIZERS["momentum"]])
def test_a_learning_rate_changed_between_runs_takes_effect(make):
    captured, eager = make_net(), make_net()
    eager.load_state_dict(captured.state_dict())
    training = Training(captured, make(captured.parameters()))
    optimizer = make(eager.parameters())
    schedulers = [
        flow.optim.lr_scheduler.StepLR(o, 2, 0.1) for o in (training.optimizer, optimizer)
    ]
    fingerprint = training.main.fingerprint()
    for i in range(STEPS):
        training.step(i)
        eager_step(eager, optimizer, i)
        for scheduler in schedulers:
            scheduler.step()
    same(training, eager)
    assert training.main.fingerprint() == fingerprint


def test_a_learning_rate_that_is_a_tensor():
    captured, eager = make_net(), make_net()
    eager.load_state_dict(captured.state_dict())
    rates = [flow.tensor(0.1, dtype=flow.float64) for _ in range(2)]
    training = Training(captured, flow.optim.SGD(captured.parameters(), lr=rates[0]))
    optimizer = flow.optim.SGD(eager.parameters(), lr=rates[1])
    for i in range(STEPS):
        for rate in rates:
            rate.fill_(0.1 / (i + 1))
        training.step(i)
        eager_step(eager, optimizer, i)
    for o in (training.optimizer, optimizer):
        o.param_groups[0]["lr"] = flow.tensor(0.5, dtype=flow.float64)
    training.step(0)
    eager_step(eager, optimizer, 0)
    same(training, eager)


def test_the_learning_rate_survives_another_startup_run():
    net = make_net()
    training = Training(net, flow.optim.SGD(net.parameters(), lr=0.1))
    training.optimizer.param_groups[0]["lr"] = 0.0
    training.step(0)
    training.executor.run(training.startup, scope=training.scope)
    before = training.values()
    training.step(0)
    assert all(map(np.array_equal, before, training.values()))


def test_an_option_that_is_switched_on_needs_another_program():
    net = make_net()
    training = Training(net, flow.optim.Adam(net.parameters()))
    training.optimizer.param_groups[0]["weight_decay"] = 0.1
    with pytest.raises(ArgumentError, match="capture the Program again"):
        training.step(0)


def test_groups_have_options_of_their_own():
    captured, eager = make_net(), make_net()
    eager.load_state_dict(captured.state_dict())

    def make(net):
        groups = [{"params": net[0].parameters(), "lr": 0.5}, {"params": net[2].parameters()}]
        return flow.optim.SGD(groups, lr=0.01)

    training, optimizer = Training(captured, make(captured)), make(eager)
    for i in range(3):
        training.step(i)
        eager_step(eager, optimizer, i)
    same(training, eager)


def test_an_optimizer_without_parameters_takes_those_of_the_program():
    net = make_net()
    optimizer = flow.optim.Adam(lr=0.1)
    Training(net, optimizer)
    assert [id(p) for p in optimizer.param_groups[0]["params"]] == [id(p) for p in net.parameters()]
    with pytest.raises(ArgumentError, match="params"):
        flow.optim.Adam(lr=0.1).step()


def test_a_scheduler_may_be_made_before_the_optimizer_has_parameters():
    optimizer = flow.optim.SGD(lr=1.0)
    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    Training(make_net(), optimizer)
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_parameter_list_and_no_grad_set():
    for options in ({"parameter_list": ["parameter_0"]}, {"no_grad_set": {"parameter_1"}}):
        net = make_net()
        if "no_grad_set" in options:
            options["parameter_list"] = ["parameter_0", "parameter_1"]
        training = Training(net, flow.optim.SGD(net.parameters(), lr=0.1), **options)
        before = training.values()
        training.step(0)
        changed = [not np.array_equal(a, b) for a, b in zip(before, training.values(), strict=True)]
        assert changed == [True, False, False, False]
        assert len(training.ops) == 1


def test_gradients_from_before_are_neither_used_nor_lost():
    net = make_net()
    net[0].weight.grad = kept = flow.ones(5, 3)
    training = Training(
        net, flow.optim.SGD(net.parameters(), lr=0.1), parameter_list=["parameter_3"]
    )
    assert len(training.ops) == 1
    assert net[0].weight.grad is kept


def test_errors():
    net = make_net()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", X.shape[1:])
        with pytest.raises(GradientError, match="minimize"):
            optimizer.minimize(net(x))
        with pytest.raises(ArgumentError, match="startup_program"):
            optimizer.minimize(net(x).sum(), static.Program())
        with pytest.raises(CaptureError):  # which would look at the norm
            optimizer.minimize(
                net(x).sum(),
                grad_clip=lambda p: flow.nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True),
            )
    assert net[0].weight.grad is None


def test_two_optimizers_in_one_program():
    first, second = flow.nn.Linear(3, 2), flow.nn.Linear(2, 1)
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        loss = second(first(static.data("x", X.shape[1:]))).mean()
        ops = flow.optim.SGD(first.parameters(), lr=0.1).minimize(loss)[0]
        other = flow.optim.Adam(second.parameters(), lr=0.1).minimize(-loss)[0]
    assert [op.type for op in (*ops, *other)] == ["sgd_update"] * 2 + ["adam_update"] * 2
    assert len(main.before_run) == 2


def test_a_step_written_as_in_eager_code():
    captured, eager = make_net(), make_net()
    eager.load_state_dict(captured.state_dict())
    mine = flow.optim.Adam(captured.parameters(), lr=0.1)
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x, y = static.data("x", X.shape[1:]), static.data("y", Y.shape[1:])
        loss = flow.nn.MSELoss()(captured(x), y)
        mine.zero_grad()
        loss.backward()
        mine.step()
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    optimizer = flow.optim.Adam(eager.parameters(), lr=0.1)
    for i in range(3):
        if i == 2:
            mine.param_groups[0]["lr"] = optimizer.param_groups[0]["lr"] = 0.01
        executor.run(main, {"x": X[i], "y": Y[i]}, [loss], scope)
        eager_step(eager, optimizer, i)
    for have, want in zip(captured.parameters(), eager.parameters(), strict=True):
        np.testing.assert_array_equal(scope.find_var(have.name), want.detach().numpy())


def test_a_parameter_that_was_first_met_as_data_is_trained():
    class Net(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = flow.nn.Parameter(flow.from_numpy(np.zeros((3, 2), np.float32)))
            self.weight.data.uniform_(-1, 1)

        def forward(self, x):
            return x @ self.weight

    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x, y = static.data("x", X.shape[1:]), static.data("y", Y.shape[1:])
        net = Net()
        loss = flow.nn.MSELoss()(net(x), y)
        ops, pairs = flow.optim.SGD(lr=0.1).minimize(loss)
    assert [op.type for op in startup.global_block().ops][:2] == ["fill_constant", "uniform_"]
    assert len(ops) == len(pairs) == 1 and pairs[0][0] is net.weight
    with pytest.raises(CaptureError):
        net.weight.numpy()
    scope, executor = static.Scope(), static.Executor()
    flow.manual_seed(0)
    executor.run(startup, scope=scope)
    flow.manual_seed(0)
    eager = Net()
    optimizer = flow.optim.SGD(eager.parameters(), lr=0.1)
    for i in range(3):
        executor.run(main, {"x": X[i], "y": Y[i]}, [loss], scope)
        eager_step(eager, optimizer, i)
    have = scope.find_var(net.weight.name)
    np.testing.assert_array_equal(have, eager.weight.detach().numpy())


def test_groups_of_one_optimizer_may_be_stepped_by_several_programs():
    first, second = flow.nn.Linear(3, 1), flow.nn.Linear(3, 1)
    groups = [{"params": first.parameters()}, {"params": second.parameters(), "lr": 0.5}]
    optimizer = flow.optim.SGD(groups, lr=0.1)
    startup, executor, scope = static.Program(), static.Executor(), static.Scope()
    mains = []
    for layer in (first, second):
        main = static.Program()
        with static.program_guard(main, startup):
            optimizer.minimize(layer(static.data("x", [8, 3])).sum())
        mains.append(main)
    executor.run(startup, scope=scope)
    before = {name: scope.find_var(name).copy() for name in startup.parameters}
    for main in mains:
        executor.run(main, {"x": X[0]}, scope=scope)
    for layer, lr in ((first, 0.1), (second, 0.5)):
        moved = before[layer.weight.name] - scope.find_var(layer.weight.name)
        np.testing.assert_allclose(moved[0], X[0].sum(0) * lr, rtol=1e-4, atol=1e-6)


# Without a guard


def test_minimize_in_eager_code_is_backward_and_step():
    one, other = make_net(), make_net()
    other.load_state_dict(one.state_dict())
    mine = flow.optim.SGD(one.parameters(), lr=0.1)
    its = flow.optim.SGD(other.parameters(), lr=0.1)
    for i in range(2):
        mine.zero_grad()
        loss = flow.nn.MSELoss()(one(flow.tensor(X[i])), flow.tensor(Y[i]))
        ops, pairs = mine.minimize(loss, grad_clip=clip)
        eager_step(other, its, i, clip)
        assert ops == [] and len(pairs) == 4
    for have, want in zip(one.parameters(), other.parameters(), strict=True):
        assert flow.equal(have, want)
        assert flow.equal(have.grad, want.grad)


def test_eager_minimize_leaves_others_alone():
    net = make_net()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    before = [p.detach().clone() for p in net.parameters()]
    optimizer.minimize(net(flow.tensor(X[0])).sum(), no_grad_set={net[0].weight})
    changed = [not flow.equal(p, q) for p, q in zip(net.parameters(), before, strict=True)]
    assert changed == [False, True, True, True]
    assert net[0].weight.grad is not None
