"""Models and training steps for the cases."""

from __future__ import annotations

import oneflow_lite as flow

nn = flow.nn
F = nn.functional


def net():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def batch(i):
    return flow.arange(6.0).reshape(2, 3) / 8 + i / 16, flow.tensor([i % 2, 1])


def training_step(model, optimizer):
    def step(x, target):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def train(compiled, make_optimizer, change=lambda model, optimizer, i: None, steps=4):
    """Yield what each of some training steps leaves; `change` acts between them."""
    model = net()
    optimizer = make_optimizer(model.parameters())
    step = compiled(training_step(model, optimizer))
    for i in range(steps):
        yield step(*batch(i)), model, optimizer
        change(model, optimizer, i)


def must_be_negative(n):
    """Raise what an assertion raises; pytest leaves those of this file as they are."""
    assert n < 0, n
