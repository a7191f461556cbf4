"""`Program.clone(for_test=True)` of programs that use gradients in unusual ways."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.errors import ArgumentError
from tests.static.runs import programs

X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def eager_like(net, loss):
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def by_hand(net, loss):
    for parameter, grad in static.append_backward(loss):
        with flow.no_grad():
            parameter.sub_(grad * 0.1)


def from_grad(net, loss):
    loss.backward()
    with flow.no_grad():
        for parameter in net.parameters():
            parameter.add_(parameter.grad, alpha=-0.1)


@pytest.mark.parametrize("step", [eager_like, by_hand, from_grad])
def test_a_clone_does_not_train_however_the_step_was_written(step):
    main, startup = programs()
    with static.program_guard(main, startup):
        net = flow.nn.Linear(3, 1)
        y = net(static.data("x", [4, 3]))
        loss, mean = (y * y).mean(), y.abs().mean()
        step(net, loss)
    test = main.clone(for_test=True)
    executor, scope = static.Executor(), static.Scope()
    executor.run(startup, scope=scope)
    first = executor.run(test, {"x": X}, [loss, mean], scope)
    assert executor.run(test, {"x": X}, [loss, mean], scope) == first
    assert executor.run(main, {"x": X}, [loss], scope) == first[:1]
    assert executor.run(test, {"x": X}, [loss], scope)[0] < first[0]


def test_what_is_computed_from_gradients_is_no_part_of_a_clone(tmp_path):
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x = static.data("x", [3])
        x.requires_grad = True
        y = x * 2
        (dx,) = static.gradients((x * x).sum(), x)
        norm, early = dx.square().sum(), y + 1
        y[1:].add_(dx[1:])
        late = y + 1
    test, executor = main.clone(for_test=True), static.Executor()
    feed = {"x": np.ones(3, np.float32)}
    assert executor.run(test, feed, [early])[0].tolist() == [3, 3, 3]
    for y in (norm, late, dx):
        with pytest.raises(ArgumentError, match="fetch_list"):
            executor.run(test, feed, [y])
    static.save(test, tmp_path / "test.safetensors")
    assert static.load(tmp_path / "test.safetensors")[0].fingerprint() == test.fingerprint()


def test_gradients_inside_a_branch_stay():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [3])

        def cubed():
            y = (x * 2).detach()
            y.requires_grad = True
            return static.gradients((y**3).sum(), y)[0]

        z = static.nn.cond(x.sum() > 0, cubed, lambda: x * 1)
    (found,) = static.Executor().run(main.clone(for_test=True), {"x": np.ones(3, "f4")}, [z])
    assert found.tolist() == [12, 12, 12]
