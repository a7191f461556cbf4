"""The first example of docs/static_programs.md, against eager training from the same start."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static

STEPS = 20


def batches():
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        x = rng.standard_normal((32, 16)).astype(np.float32)
        yield x, x.sum(1, keepdims=True) * 0.5


@pytest.fixture(scope="module")
def eager_losses():
    flow.manual_seed(0)
    net, criterion = flow.nn.Linear(16, 1), flow.nn.MSELoss()
    optimizer = flow.optim.Adam(net.parameters(), lr=0.1)
    losses = []
    for x, y in batches():
        loss = criterion(net(flow.tensor(x)), flow.tensor(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("passes", [None, ()], ids=["all passes", "no pass"])
@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_the_seed_example_equals_eager_training(eager_losses, mode, passes):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x, y = static.data("x", [32, 16]), static.data("y", [32, 1])
        net, criterion = flow.nn.Linear(16, 1), flow.nn.MSELoss()
        loss = criterion(net(x), y)
        optimizer = flow.optim.Adam(lr=0.1)
        optimizer.minimize(loss)
    scope = static.Scope()
    executor = static.Executor(mode=mode, passes=passes)
    flow.manual_seed(0)
    executor.run(startup, scope=scope)
    losses = []
    for a, b in batches():
        (value,) = executor.run(main, feed={"x": a, "y": b}, fetch_list=[loss], scope=scope)
        losses.append(float(value))
    assert losses == eager_losses
    assert losses[-1] < losses[0] / 2


def test_the_default_programs_and_the_global_scope_serve_as_well(eager_losses):
    main, startup = static.default_main_program(), static.default_startup_program()
    with static.scope_guard(static.Scope()):
        with static.program_guard(main):
            x, y = static.data("seed_x", [32, 16]), static.data("seed_y", [32, 1])
            loss = flow.nn.MSELoss()(flow.nn.Linear(16, 1)(x), y)
            flow.optim.Adam(lr=0.1).minimize(loss)
        executor = static.Executor()
        flow.manual_seed(0)
        executor.run(startup)
        losses = [
            float(executor.run(feed={"seed_x": a, "seed_y": b}, fetch_list=[loss.name])[0])
            for a, b in batches()
        ]
    assert losses == eager_losses
