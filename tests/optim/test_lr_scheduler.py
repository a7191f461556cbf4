"""Learning rate schedulers against PyTorch's, epoch by epoch."""

import warnings

import pytest

import oneflow_lite as flow
from oneflow_lite import nn, optim
from oneflow_lite.optim import lr_scheduler

SCHEDULERS = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.3}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (epoch + 1)}),
    ("LambdaLR", {"lr_lambda": [lambda epoch: 0.9**epoch, lambda epoch: 1 + epoch]}),
    ("LinearLR", {"start_factor": 0.25, "total_iters": 4}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 3}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingLR", {"T_max": 1}),
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(SCHEDULERS)]


def make(lib, optimizers, name, options):
    a, b = (lib.nn.Parameter(lib.ones(1)) for _ in range(2))
    optimizer = optimizers.SGD([{"params": [a]}, {"params": [b], "lr": 0.7}], lr=0.2)
    for parameter in (a, b):
        parameter.grad = lib.zeros(1)
    return optimizer, getattr(optimizers.lr_scheduler, name)(optimizer, **options)


def rates(optimizer) -> list[float]:
    return [group["lr"] for group in optimizer.param_groups]


@pytest.mark.parametrize(("name", "options"), SCHEDULERS, ids=IDS)
def test_rates_agree_with_pytorch(torch, name, options):
    optimizer, scheduler = make(flow, optim, name, options)
    reference, expected = make(torch, torch.optim, name, options)
    for _ in range(13):
        assert rates(optimizer) == pytest.approx(rates(reference), rel=1e-12, abs=1e-15)
        assert scheduler.get_last_lr() == pytest.approx(expected.get_last_lr(), abs=1e-15)
        assert scheduler.last_epoch == expected.last_epoch
        for pair in ((optimizer, scheduler), (reference, expected)):
            for each in pair:
                each.step()


@pytest.mark.parametrize(("name", "options"), SCHEDULERS, ids=IDS)
def test_a_scheduler_goes_on_from_its_state(name, options):
    optimizer, scheduler = make(flow, optim, name, options)
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    other, twin = make(flow, optim, name, options)
    other.load_state_dict(optimizer.state_dict())
    twin.load_state_dict(scheduler.state_dict())
    assert twin.last_epoch == 4
    assert twin.get_last_lr() == rates(optimizer)
    for _ in range(4):
        for each in (optimizer, scheduler, other, twin):
            each.step()
        assert rates(other) == rates(optimizer)


def test_chained_schedulers_multiply():
    optimizer = optim.SGD([nn.Parameter(flow.ones(1))], lr=1.0)
    optimizer.param_groups[0]["params"][0].grad = flow.ones(1)
    first = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    second = lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    optimizer.step()
    first.step()
    second.step()
    assert rates(optimizer) == pytest.approx([0.05])


def test_the_optimizer_uses_the_rate_that_was_set():
    x = nn.Parameter(flow.tensor([1.0]))
    optimizer = optim.SGD([x], lr=0.5)
    scheduler = lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    x.grad = flow.ones(1)
    for expected in (0.5, 0.25, 0.125):
        optimizer.step()
        scheduler.step()
        assert x.item() == expected


def test_a_rate_that_is_a_tensor_is_written():
    lr = flow.tensor(0.5)
    x = nn.Parameter(flow.tensor([1.0]))
    optimizer = optim.SGD([x], lr=lr)
    scheduler = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    x.grad = flow.ones(1)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is lr
    assert lr.item() == 0.25
    assert scheduler.base_lrs == [0.5]


def test_stepping_before_the_optimizer_warns_once():
    x = nn.Parameter(flow.ones(1))
    x.grad = flow.ones(1)
    optimizer = optim.SGD([x], lr=0.5)
    scheduler = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    with pytest.warns(UserWarning, match="before optimizer.step"):
        scheduler.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()
        in_order = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        optimizer.step()
        in_order.step()


def test_going_on_needs_the_initial_rates():
    optimizer = optim.SGD([nn.Parameter(flow.ones(1))], lr=0.5)
    with pytest.raises(ValueError, match="initial_lr"):
        lr_scheduler.StepLR(optimizer, 2, last_epoch=3)
    optimizer.param_groups[0]["initial_lr"] = 0.8
    assert lr_scheduler.ExponentialLR(optimizer, 0.5, last_epoch=3).base_lrs == [0.8]


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda o: lr_scheduler.StepLR(o, 0), ValueError, "step_size"),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 0), ValueError, "T_max"),
        (lambda o: lr_scheduler.LinearLR(o, start_factor=0.0), ValueError, "start_factor"),
        (lambda o: lr_scheduler.LinearLR(o, end_factor=1.5), ValueError, "end_factor"),
        (lambda o: lr_scheduler.LambdaLR(o, [abs, abs]), ValueError, "lr_lambda"),
        (lambda o: lr_scheduler.ExponentialLR("sgd", 0.5), TypeError, "optimizer"),
    ],
)
def test_bad_arguments(build, error, text):
    optimizer = optim.SGD([nn.Parameter(flow.ones(1))], lr=0.5)
    with pytest.raises(error, match=text):
        build(optimizer)
    assert rates(optimizer) == [0.5]


def test_a_lambda_that_fails_changes_no_rate():
    optimizer, scheduler = make(flow, optim, "LambdaLR", {"lr_lambda": lambda epoch: 1.0})

    def fail(epoch):
        raise KeyError(epoch)

    scheduler.lr_lambdas[1] = fail
    optimizer.param_groups[0]["lr"] = 0.123
    optimizer.step()
    with pytest.raises(KeyError):
        scheduler.step()
    assert rates(optimizer) == [0.123, 0.7]
