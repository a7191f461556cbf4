"""Cases for optimizers over several steps."""

from __future__ import annotations

import copy

import oneflow_lite as flow
from tests.compiler.capture.models import batch, net, train, training_step
from tests.compiler.capture.worlds import attempt, leaf, tensor

nn = flow.nn
F = nn.functional
SGD, Adam = flow.optim.SGD, flow.optim.Adam


def learning_rate_changed_by_hand(compiled):
    def change(model, optimizer, i):
        optimizer.param_groups[0]["lr"] = 0.5 / (i + 1)

    yield from train(compiled, lambda ps: SGD(ps, lr=0.5, momentum=0.9), change)


def learning_rate_scheduled(compiled):
    schedulers = []

    def make(parameters):
        optimizer = Adam(parameters, lr=0.5)
        schedulers.append(flow.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5))
        return optimizer

    yield from train(compiled, make, lambda model, optimizer, i: schedulers[-1].step())


def options_switched(compiled):
    def change(model, optimizer, i):
        group = optimizer.param_groups[0]
        group["weight_decay"] = (0.125, 0.0, 0.25)[i % 3]
        group["nesterov"] = i == 1
        group["momentum"] = 0.9 if i == 1 else 0.5

    yield from train(compiled, lambda ps: SGD(ps, lr=0.5, momentum=0.5), change)


def first_momentum_step(compiled):
    yield from train(compiled, lambda ps: SGD(ps, lr=0.5, momentum=0.9, dampening=0.5))


def variants_of_adam(compiled):
    yield from train(compiled, lambda ps: Adam(ps, lr=0.1, amsgrad=True, weight_decay=0.1))
    yield from train(compiled, lambda ps: flow.optim.AdamW(ps, lr=0.1, maximize=True))


def parameter_group_added(compiled):
    extra = leaf(1.0)

    def change(model, optimizer, i):
        if i == 1:
            extra.grad = tensor(1.0)
            optimizer.add_param_group({"params": [extra], "lr": 0.25})

    for seen in train(compiled, lambda ps: SGD(ps, lr=0.5), change):
        yield seen, extra


def optimizer_state_loaded(compiled):
    saved = []

    def change(model, optimizer, i):
        if i == 0:
            saved.append((copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())))
        if i == 2:
            model.load_state_dict(saved[0][0])
            optimizer.load_state_dict(saved[0][1])

    yield from train(compiled, lambda ps: Adam(ps, lr=0.1), change, steps=5)


def state_written_by_hand(compiled):
    def change(model, optimizer, i):
        for state in optimizer.state.values():
            state["exp_avg"].mul_(0.5)
            state["step"].fill_(10)

    yield from train(compiled, lambda ps: Adam(ps, lr=0.1), change)


def state_replaced_by_hand(compiled):
    def change(model, optimizer, i):
        for state in optimizer.state.values():
            if i == 2:
                state["exp_avg"] = flow.ones_like(state["exp_avg"])

    yield from train(compiled, lambda ps: Adam(ps, lr=0.1), change, steps=5)


def gradients_zeroed_or_dropped(compiled):
    model = net()
    optimizer = SGD(model.parameters(), lr=0.5)

    def step(x, target, to_none):
        optimizer.zero_grad(set_to_none=to_none)
        F.cross_entropy(model(x), target).backward()
        optimizer.step()

    step = compiled(step)
    for i, to_none in enumerate((True, False, False, True, False)):
        yield step(*batch(i), to_none), model


def gradients_accumulated(compiled):
    model = net()
    optimizer = SGD(model.parameters(), lr=0.5)

    def accumulate(x, target):
        loss = F.cross_entropy(model(x), target) / 2
        loss.backward()
        return loss.detach()

    accumulate = compiled(accumulate)
    for i in range(4):
        yield accumulate(*batch(i)), model
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()
            yield model


def step_every_second_call(compiled):
    model = net()
    optimizer = SGD(model.parameters(), lr=0.5)
    count = 0

    def step(x, target):
        nonlocal count
        F.cross_entropy(model(x), target).backward()
        count += 1
        if count % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()

    step = compiled(step)
    for i in range(4):
        yield step(*batch(i)), model, count


def gradients_clipped(compiled):
    model = net()
    optimizer = SGD(model.parameters(), lr=0.5)

    def step(x, target):
        optimizer.zero_grad()
        F.cross_entropy(model(x), target).backward()
        total = nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        nn.utils.clip_grad_value_(model.parameters(), 0.125)
        optimizer.step()
        return total

    step = compiled(step)
    for i in range(3):
        yield step(*batch(i)), model


def loss_logged(compiled):
    model = net()
    optimizer = SGD(model.parameters(), lr=0.5)
    history = []

    def step(x, target):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        history.append(loss.item())

    step = compiled(step)
    for i in range(3):
        yield step(*batch(i)), model, history


def step_outside_between_forwards(compiled):
    model = net()
    forward = compiled(model)
    optimizer = SGD(model.parameters(), lr=0.5, momentum=0.9)
    for i in range(3):
        x, target = batch(i)
        loss = F.cross_entropy(forward(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss, model


def validation_between_steps(compiled):
    model = net()
    optimizer = SGD(model.parameters(), lr=0.5)
    forward, step = compiled(model), compiled(training_step(model, optimizer))
    for i in range(3):
        yield step(*batch(i)), model
        with flow.no_grad():
            yield forward(batch(i)[0])
        yield forward(batch(i)[0])


def two_models_in_turn(compiled):
    def step(model, optimizer, x, target):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = compiled(step)
    models = [net(), net()]
    optimizers = [SGD(m.parameters(), lr=0.5) for m in models]
    for i in range(4):
        yield step(models[i % 2], optimizers[i % 2], *batch(i)), models


def moving_average_of_parameters(compiled):
    model, average = net(), net()

    def update(decay):
        with flow.no_grad():
            for p, a in zip(model.parameters(), average.parameters(), strict=True):
                a.mul_(decay).add_(p, alpha=1 - decay)

    update = compiled(update)
    for decay in (0.5, 0.75, 0.5) * 2:
        yield update(decay), average, model
        with flow.no_grad():
            model[0].weight.add_(1)


def failing_step(compiled):
    model = net()
    optimizer = SGD(model.parameters(), lr=0.5, momentum=0.9)
    step = compiled(training_step(model, optimizer))
    for i, classes in enumerate((1, 7, 1, 7)):
        x, _ = batch(i)
        yield attempt(step, x, flow.tensor([0, classes])), model, optimizer


def scheduler_inside(compiled):
    model = net()
    optimizer = SGD(model.parameters(), lr=0.5)
    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    inner = training_step(model, optimizer)

    def step(x, target):
        loss = inner(x, target)
        scheduler.step()
        return loss, scheduler.get_last_lr()

    step = compiled(step)
    for i in range(5):
        yield step(*batch(i)), model, scheduler.get_last_lr()


def two_optimizers_in_one_step(compiled):
    model = net()
    first = SGD(model[0].parameters(), lr=0.5, momentum=0.9)
    second = Adam(model[2].parameters(), lr=0.1)

    def step(x, target):
        first.zero_grad()
        second.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        first.step()
        second.step()
        return loss.detach()

    step = compiled(step)
    for i in range(4):
        yield step(*batch(i)), model, first, second
        second.param_groups[0]["lr"] /= 2


def optimizer_of_an_inner_leaf(compiled):
    def f(x):
        y = x.detach().clone().requires_grad_()
        inner = flow.optim.SGD([y], lr=0.1, momentum=0.9)
        for _ in range(2):
            inner.zero_grad()
            (y * y).sum().backward()
            inner.step()
        return y.detach()

    f = compiled(f)
    for i in range(4):
        yield f(tensor(1.0, float(i)))


def learning_rate_of_one_step_inside(compiled):
    w = leaf(1.0, 2.0)
    sgd = SGD([w], lr=0.1)

    def f(x):
        group = sgd.param_groups[0]
        sgd.zero_grad()
        (w * x).sum().backward()
        group["lr"] = 0.5
        sgd.step()
        group["lr"] = 0.1
        sgd.step()

    f = compiled(f)
    for i in range(5):
        f(tensor(1.0, float(i)))
        yield w
