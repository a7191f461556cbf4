"""Learning rate schedulers against PyTorch's, epoch by epoch, for every argument."""

import copy
import inspect
import re
import warnings
from collections import Counter

import pytest

import oneflow_lite as flow
from oneflow_lite import nn, optim
from oneflow_lite.optim import lr_scheduler
from tests.optim.walk import (
    SCHEDULER_CASES,
    SCHEDULERS,
    Decay,
    Schedule,
    scheduler_class,
    wrong_kinds,
)

LED = ["ChainedScheduler", "LRScheduler", "ReduceLROnPlateau", "SequentialLR"]
each_case = pytest.mark.parametrize(("name", "number"), SCHEDULER_CASES)


def rates(optimizer) -> list[float]:
    return [group["lr"] for group in optimizer.param_groups]


def near(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-13)


def test_every_scheduler_and_argument_is_walked(torch):
    names = set(torch.optim.lr_scheduler.__all__)
    assert names == set(lr_scheduler.__all__) == {*SCHEDULERS, *LED} - {"SWALR"}
    for name in (*SCHEDULERS, *LED, "_LRScheduler"):
        ours, theirs = (
            inspect.signature(scheduler_class(lib, name)).parameters for lib in (flow, torch)
        )
        assert list(ours) == list(theirs)
        for argument, wanted in theirs.items():
            assert (ours[argument].default, ours[argument].kind) == (wanted.default, wanted.kind)
            if name in SCHEDULERS and argument not in ("optimizer", "last_epoch"):
                given = [repr(o.get(argument, wanted.default)) for o in SCHEDULERS[name]]
                assert len(set(given)) > 1, (name, argument)


@each_case
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_a_hundred_epochs_agree(torch, name, number, kind):
    ours, theirs = (Schedule(lib, name, number, kind) for lib in (flow, torch))
    for _ in range(100):
        assert ours.seen() == near(theirs.seen())
        assert ours.scheduler.last_epoch == theirs.scheduler.last_epoch
        ours.step()
        theirs.step()
    assert set(ours.scheduler.state_dict()) == set(theirs.scheduler.state_dict()) - {"anneal_func"}


@each_case
def test_a_scheduler_goes_on_from_its_state_and_from_pytorchs(torch, name, number):
    ours, theirs = (Schedule(lib, name, number) for lib in (flow, torch))
    for _ in range(37):
        ours.step()
        theirs.step()
    for source in (ours, theirs):
        twin = Schedule(flow, name, number)
        twin.optimizer.load_state_dict(source.optimizer.state_dict())
        twin.scheduler.load_state_dict(copy.deepcopy(source.scheduler.state_dict()))
        original = copy.deepcopy(ours)
        for _ in range(40):
            assert twin.seen() == near(original.seen())
            twin.step()
            original.step()


@each_case
@pytest.mark.parametrize("last_epoch", [0, 4, 9])
def test_going_on_from_an_epoch(torch, name, number, last_epoch):
    ours, theirs = (Schedule(lib, name, number, last_epoch=last_epoch) for lib in (flow, torch))
    for _ in range(40):
        assert ours.seen() == near(theirs.seen())
        ours.step()
        theirs.step()


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda o, k: lr_scheduler.ExponentialLR(o, 0.5, last_epoch=k), 0.5**4),
        (lambda o, k: lr_scheduler.LinearLR(o, 0.5, 1.0, 10, last_epoch=k), 0.7),
        (lambda o, k: lr_scheduler.CosineAnnealingLR(o, 8, last_epoch=k), 0.5),
        (lambda o, k: lr_scheduler.PolynomialLR(o, 8, last_epoch=k), 0.5),
        (lambda o, k: lr_scheduler.MultiplicativeLR(o, lambda e: 0.5, last_epoch=k), 0.5**4),
    ],
)
def test_a_scheduler_that_goes_on_leaves_the_rate_that_is_there(build, expected):
    parameter = nn.Parameter(flow.ones(1))
    optimizer = optim.SGD([parameter], lr=1.0)
    scheduler = build(optimizer, -1)
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    assert rates(optimizer) == [pytest.approx(expected)]
    later = optim.SGD([parameter], lr=1.0)
    later.load_state_dict(optimizer.state_dict())
    again = build(later, 3)
    assert (again.last_epoch, rates(later)) == (4, rates(optimizer))
    optimizer.step()
    scheduler.step()
    later.step()
    again.step()
    assert rates(later) == rates(optimizer)


@each_case
def test_step_with_an_epoch(torch, name, number):
    ours, theirs = (Schedule(lib, name, number) for lib in (flow, torch))
    for epoch in (1, 2, 9, 30, 4):
        seen = []
        for each in (ours, theirs):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                each.step(epoch)
            seen.append([w.category for w in caught])
        assert seen[0] == seen[1]
        assert ours.seen() == near(theirs.seen())


def test_warm_restarts_within_epochs(torch):
    ours, theirs = (Schedule(lib, "CosineAnnealingWarmRestarts", 1) for lib in (flow, torch))
    for batch in range(100):
        ours.scheduler.step(batch / 4)
        theirs.scheduler.step(batch / 4)
        assert ours.seen() == near(theirs.seen())


# --- Schedulers of schedulers -------------------------------------------------------------------

PAIRS = [
    (lambda s, o: s.ConstantLR(o, 0.5, 7), lambda s, o: s.ExponentialLR(o, 0.9)),
    (lambda s, o: s.LinearLR(o, 0.1, 1.0, 5), lambda s, o: s.CosineAnnealingLR(o, 11)),
    (lambda s, o: s.StepLR(o, 4), lambda s, o: s.PolynomialLR(o, 20, 2.0)),
    (
        lambda s, o: s.MultiStepLR(o, [3, 8], 0.5),
        lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95),
    ),
]
KINDS = {
    "chained": lambda s, o, a, b: s.ChainedScheduler([a, b]),
    "chained with its optimizer": lambda s, o, a, b: s.ChainedScheduler([b, a], optimizer=o),
    "in turn": lambda s, o, a, b: s.SequentialLR(o, [a, b], [9]),
    "in turn, later": lambda s, o, a, b: s.SequentialLR(o, [b, a], milestones=[6], last_epoch=2),
    "in turn, at once": lambda s, o, a, b: s.SequentialLR(o, [a, b], [0]),
    "in turn of chained": lambda s, o, a, b: s.SequentialLR(
        o, [s.ChainedScheduler([a, b]), s.ExponentialLR(o, 0.8)], [5]
    ),
}


def led(lib, pair, kind):
    optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.4)
    schedulers = [build(lib.optim.lr_scheduler, optimizer) for build in PAIRS[pair]]
    return optimizer, KINDS[kind](lib.optim.lr_scheduler, optimizer, *schedulers)


# A chain that is led takes its first step again, and warns, in PyTorch as here.
@pytest.mark.filterwarnings("ignore:.*before")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pair", range(len(PAIRS)))
def test_schedulers_that_lead_others(torch, pair, kind):
    both = [led(lib, pair, kind) for lib in (flow, torch)]
    for epoch in range(30):
        (ours, scheduler), (theirs, wanted) = both
        assert rates(ours) == near(rates(theirs))
        assert scheduler.get_last_lr() == near(wanted.get_last_lr())
        for optimizer, each in both:
            optimizer.step()
            each.step()
        if epoch == 12:
            assert set(scheduler.state_dict()) == set(wanted.state_dict())
            for state in (scheduler.state_dict(), wanted.state_dict()):
                twin, again = led(flow, pair, kind)
                twin.load_state_dict(ours.state_dict())
                again.load_state_dict(copy.deepcopy(state))
            both[0] = (twin, again)


MEASURES = [5.0, 4.0, 4.0, 3.9999, 4.1, 4.0, 4.0, 3.0, 3.1, 3.2, 3.3, 3.1, 3.0, 3.0, 2.9, 2.9] * 3


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"patience": 1},
        {"mode": "max", "patience": 2, "factor": 0.5},
        {"patience": 0, "threshold": 0.5},
        {"patience": 1, "threshold": 0.2, "threshold_mode": "abs"},
        {"mode": "max", "patience": 1, "threshold": 0.2, "threshold_mode": "abs"},
        {"patience": 0, "cooldown": 3},
        {"patience": 0, "min_lr": 0.01},
        {"patience": 0, "min_lr": [0.01, 0.2]},
        {"patience": 0, "eps": 1e-2},
    ],
)
def test_a_plateau(torch, options):
    both = []
    for lib in (flow, torch):
        a, b = (lib.nn.Parameter(lib.ones(1)) for _ in range(2))
        optimizer = lib.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.7}], lr=0.2)
        both.append((optimizer, lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)))
    (ours, scheduler), (theirs, wanted) = both
    for i, measure in enumerate(MEASURES):
        scheduler.step(flow.tensor(measure))
        wanted.step(measure)
        assert rates(ours) == near(rates(theirs))
        assert scheduler.get_last_lr() == near(wanted.get_last_lr())
        if i == 20:
            assert set(scheduler.state_dict()) == set(wanted.state_dict())
            scheduler.load_state_dict(wanted.state_dict())
    scheduler.step(-1e9 if options.get("mode") != "max" else 1e9)
    assert scheduler.num_bad_epochs == 0
    with pytest.warns(UserWarning, match="deprecated"):
        scheduler.step(1.0, epoch=7)
    assert scheduler.last_epoch == 7


# --- Ours and the users' ------------------------------------------------------------------------


def users_own(lib):
    class Own(lib.optim.lr_scheduler._LRScheduler):
        def __init__(self, optimizer, warmup, last_epoch=-1):
            self.warmup = warmup
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            if not self._get_lr_called_within_step:
                warnings.warn("get_last_lr", UserWarning, stacklevel=2)
            share = min(1.0, (self.last_epoch + 1) / self.warmup) * 0.9**self._step_count
            return [base_lr * share for base_lr in self.base_lrs]

        def _get_closed_form_lr(self):
            return [base_lr * self.last_epoch for base_lr in self.base_lrs]

    class Undefined(lib.optim.lr_scheduler.LRScheduler):
        pass

    return Own, Undefined


@pytest.mark.filterwarnings("ignore:.*epoch")
def test_a_class_written_for_pytorch(torch):
    seen = []
    for lib in (flow, torch):
        own, undefined = users_own(lib)
        optimizer = lib.optim.Adam([lib.nn.Parameter(lib.ones(1))], lr=0.5)
        scheduler = own(optimizer, 4)
        for epoch in range(8):
            optimizer.step()
            scheduler.step(*([5] if epoch == 6 else []))
            seen.append(rates(optimizer) + [scheduler.last_epoch])
        with pytest.warns(UserWarning, match="get_last_lr"):
            scheduler.get_lr()
        with pytest.raises(NotImplementedError):
            undefined(optimizer)
    assert seen[:8] == seen[8:]


@each_case
def test_get_lr_is_not_for_users(torch, name, number):
    schedule = Schedule(flow, name, number)
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.scheduler.get_lr()


def test_groups_may_come_later_where_the_rate_before_is_all_that_counts():
    a, b = (nn.Parameter(flow.ones(1)) for _ in range(2))
    optimizer = optim.SGD([a], lr=1.0)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.add_param_group({"params": [b], "lr": 3.0})
    optimizer.step()
    scheduler.step()
    assert rates(optimizer) == [0.5, 1.5]
    strict = lr_scheduler.LambdaLR(optim.SGD([a], lr=1.0), lambda epoch: 1.0)
    strict.optimizer.add_param_group({"params": [b], "lr": 3.0})
    strict.optimizer.step()
    with pytest.raises(ValueError, match="groups"):
        strict.step()


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


def test_a_step_without_gradients_is_a_step():
    optimizer = optim.SGD([nn.Parameter(flow.ones(1))], lr=0.5)
    scheduler = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        scheduler.step()


def test_replays_of_a_step_are_steps():
    x = nn.Parameter(flow.ones(1))
    optimizer = optim.SGD([x], lr=0.5)
    lr_scheduler.ExponentialLR(optimizer, gamma=0.5)

    @flow.compile(fullgraph=True)
    def step(factor):
        optimizer.zero_grad()
        (x * factor).sum().backward()
        optimizer.step()

    for _ in range(4):
        step(flow.ones(1))
    optimizer._noted.clear()  # as if no scheduler had been there to ask
    scheduler = lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    hits = step.explain().hits
    step(flow.ones(1))
    assert step.explain().hits == hits + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


def test_going_on_needs_the_initial_rates(torch):
    for lib in (flow, torch):
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.5)
        with pytest.raises(KeyError, match="initial_lr"):
            lib.optim.lr_scheduler.StepLR(optimizer, 2, last_epoch=3)
        optimizer.param_groups[0]["initial_lr"] = 0.8
        assert lib.optim.lr_scheduler.ExponentialLR(optimizer, 0.5, last_epoch=3).base_lrs == [0.8]


BAD = [
    lambda s, o: s.ConstantLR(o, factor=1.5),
    lambda s, o: s.LinearLR(o, start_factor=0.0),
    lambda s, o: s.LinearLR(o, end_factor=1.5),
    lambda s, o: s.LambdaLR(o, [abs, abs]),
    lambda s, o: s.MultiplicativeLR(o, 3),
    lambda s, o: s.ExponentialLR("sgd", 0.5),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 2.5),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 1, "a"),
    lambda s, o: s.CyclicLR(o, 0.1, [0.2, 0.3]),
    lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="round"),
    lambda s, o: s.CyclicLR(3, 0.1, 0.2),
    lambda s, o: s.OneCycleLR(o, 0.1),
    lambda s, o: s.OneCycleLR(o, 0.1, total_steps=-1),
    lambda s, o: s.OneCycleLR(o, 0.1, total_steps=2.5),
    lambda s, o: s.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=0),
    lambda s, o: s.OneCycleLR(o, 0.1, total_steps=9, pct_start=1.5),
    lambda s, o: s.OneCycleLR(o, 0.1, total_steps=9, pct_start=1),
    lambda s, o: s.OneCycleLR(o, 0.1, total_steps=9, anneal_strategy="sin"),
    lambda s, o: s.OneCycleLR(o, [0.1, 0.2], total_steps=9),
    lambda s, o: s.OneCycleLR("sgd", 0.1, total_steps=9),
    lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    lambda s, o: s.ReduceLROnPlateau(o, mode="mean"),
    lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="both"),
    lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1, 0.2]),
    lambda s, o: s.ReduceLROnPlateau(3),
    lambda s, o: s.SequentialLR(o, [], []),
    lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]),
    lambda s, o: s.SequentialLR(o, [3], []),
    lambda s, o: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
    lambda s, o: s.ChainedScheduler([]),
    lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
]


@pytest.mark.parametrize("build", BAD)
def test_bad_arguments_raise_what_pytorch_raises(torch, build):
    theirs = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5)
    with pytest.raises(Exception) as wanted:
        build(torch.optim.lr_scheduler, theirs)
    ours = optim.SGD([nn.Parameter(flow.ones(1))], lr=0.5)
    with pytest.raises(wanted.type) as caught:
        build(lr_scheduler, ours)
    assert isinstance(caught.value, flow.errors.FlowError)


def refused(lib, name, argument, value):
    """Return what a constructor or the first steps raise."""
    x = lib.ones(1, requires_grad=True)
    optimizer = lib.optim.SGD([x], lr=0.1, momentum=0.9)
    given = (SCHEDULERS | {"ReduceLROnPlateau": [{}]})[name][0] | {argument: value}
    try:
        scheduler = scheduler_class(lib, name)(optimizer, **given)
        for _ in range(6):
            optimizer.step()
            scheduler.step(*([1.0] if name == "ReduceLROnPlateau" else []))
    except Exception as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*SCHEDULERS, "ReduceLROnPlateau"])
def test_every_argument_is_checked(torch, name):
    names = inspect.signature(scheduler_class(torch, name)).parameters
    names = [x for x in names if x not in ("optimizer", "last_epoch")]
    ours, theirs = ([(x, y) for x in names for y in wrong_kinds(lib)] for lib in (flow, torch))
    for (argument, value), (_, other) in zip(ours, theirs, strict=True):
        error = refused(flow, name, argument, value)
        whole = value if type(value) is int else None
        if (name, argument, whole) == ("ConstantLR", "factor", 0):
            assert error is None  # PyTorch divides by 0 when the epochs are over
        elif (name, argument, whole) == ("OneCycleLR", "total_steps", 3):
            assert "step 4 of a cycle of 3" in str(error)
        else:
            if refused(torch, name, argument, other) is not None:
                assert error is not None, (argument, value)
            if error is not None:
                assert isinstance(error, flow.errors.FlowError), (argument, value, error)
                assert re.match(rf"{name}\(\): argument '\w+': expected", str(error)), error


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("StepLR", {"gamma": -0.1}, "a finite number of at least 0"),
        ("MultiStepLR", {"milestones": [2.5]}, "whole numbers"),
        ("MultiStepLR", {"milestones": "30"}, "whole numbers"),
        ("ConstantLR", {"total_iters": "5"}, "whole number"),
        ("CosineAnnealingLR", {"eta_min": float("nan")}, "finite"),
        ("CyclicLR", {"step_size_up": 0}, "above 0"),
        ("CyclicLR", {"scale_fn": 3}, "a function"),
        ("OneCycleLR", {"div_factor": 0.0}, "above 0"),
        ("PolynomialLR", {"power": -1.0}, "at least 0"),
        ("SWALR", {"swa_lr": [0.1, "0.2"]}, "a finite number"),
    ],
)
def test_arguments_without_sense_are_refused(name, options, expected):
    optimizer = optim.SGD([{"params": [nn.Parameter(flow.ones(1))]} for _ in range(2)], lr=0.1)
    with pytest.raises((ValueError, TypeError), match=expected):
        scheduler_class(flow, name)(optimizer, **(SCHEDULERS[name][0] | options))
    assert [sorted(group) for group in optimizer.param_groups] == [
        sorted({*optimizer.defaults, "params"})
    ] * 2


def test_a_rate_may_be_0_for_some_epochs():
    optimizer = optim.SGD([nn.Parameter(flow.ones(1))], lr=0.5)
    scheduler = lr_scheduler.ConstantLR(optimizer, factor=0, total_iters=2)
    seen = []
    for _ in range(4):
        seen += rates(optimizer)
        optimizer.step()
        scheduler.step()
    assert seen == [0, 0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("CosineAnnealingLR", {"T_max": 2.5}),
        ("CosineAnnealingLR", {"T_max": 3.0}),
        ("PolynomialLR", {"total_iters": float("inf")}),
        ("MultiStepLR", {"milestones": [2.0, 4]}),
        ("LinearLR", {"total_iters": 2.5}),
    ],
)
def test_lengths_may_be_floats(torch, name, options):
    seen = []
    for lib in (flow, torch):
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.5)
        scheduler = scheduler_class(lib, name)(optimizer, **options)
        seen.append([])
        for _ in range(8):
            optimizer.step()
            scheduler.step()
            seen[-1] += rates(optimizer)
    assert seen[0] == near(seen[1])


@pytest.mark.parametrize(("name", "text"), [("CyclicLR", 0.2), ("OneCycleLR", 9)])
def test_momentum_is_cycled_where_there_is_one(torch, name, text):
    for lib in (flow, torch):
        optimizer = lib.optim.Adagrad([lib.nn.Parameter(lib.ones(1))])
        build = getattr(lib.optim.lr_scheduler, name)
        with pytest.raises(ValueError, match="cycle_momentum"):
            build(optimizer, 0.1, text)
        assert build(optimizer, 0.1, text, cycle_momentum=False).last_epoch == 0


def test_a_cycle_ends(torch):
    for lib in (flow, torch):
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.5, momentum=0.9)
        scheduler = lib.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
        optimizer.step()
        scheduler.step()
        scheduler.step()
        with pytest.raises(ValueError, match="total"):
            scheduler.step()


def test_a_lambda_that_fails_changes_no_rate():
    params = [{"params": [nn.Parameter(flow.ones(1))], "lr": lr} for lr in (0.2, 0.7)]
    optimizer = optim.SGD(params)
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)

    def fail(epoch):
        raise KeyError(epoch)

    scheduler.lr_lambdas[1] = fail
    optimizer.param_groups[0]["lr"] = 0.123
    optimizer.step()
    with pytest.raises(KeyError):
        scheduler.step()
    assert rates(optimizer) == [0.123, 0.7]


def test_a_whole_float_is_a_number_of_steps():
    optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=1.0)
    assert flow.optim.lr_scheduler.StepLR(optimizer, 2.0).step_size == 2
    with pytest.raises(TypeError, match=r"^StepLR\(\): argument 'step_size'"):
        flow.optim.lr_scheduler.StepLR(optimizer, 1.5)


def test_a_plateau_forgets(torch):
    plateaus = []
    for lib in (flow, torch):
        optimizer = lib.optim.SGD([lib.ones(1)], lr=1.0)
        plateau = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, cooldown=2)
        plateau.step(1.0)
        plateau.step(2.0)
        plateau._reset()
        plateaus.append({k: v for k, v in plateau.state_dict().items() if "mode" not in k})
    assert plateaus[0] == {key: plateaus[1][key] for key in plateaus[0]}


@pytest.mark.parametrize("name", ["StepLR", "ExponentialLR"])
def test_verbose_is_gone_as_in_pytorch(torch, name):
    for lib in (flow, torch):
        optimizer = lib.optim.SGD([lib.ones(1)], lr=1.0)
        with pytest.raises(TypeError, match="verbose"):
            getattr(lib.optim.lr_scheduler, name)(optimizer, 1, verbose=True)


def test_a_scheduler_of_a_package_has_the_helpers_of_pytorch():
    from oneflow_lite.optim.lr_scheduler import (
        EPOCH_DEPRECATION_WARNING,
        _enable_get_lr_call,
        _LRScheduler,
        _warn_get_lr_called_within_step,
    )

    class Half(_LRScheduler):
        def get_lr(self):
            _warn_get_lr_called_within_step(self)
            return [lr / 2 for lr in self.base_lrs]

    optimizer = flow.optim.SGD([flow.ones(1)], lr=1.0)
    optimizer._opt_called = True
    half = Half(optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        half.step()
        with _enable_get_lr_call(half):
            assert half.get_lr() == [0.5]
    with pytest.warns(UserWarning, match="get_last_lr"):
        half.get_lr()
    assert "epoch" in EPOCH_DEPRECATION_WARNING


@pytest.mark.parametrize(
    "name", [*SCHEDULERS, "ReduceLROnPlateau", "SequentialLR", "ChainedScheduler"]
)
def test_a_state_is_loaded_whole_or_not_at_all(name):
    optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)
    lib = flow.optim.lr_scheduler
    if name in ("SequentialLR", "ChainedScheduler"):
        inner = lib.ChainedScheduler([lib.StepLR(optimizer, 3)])
        led = [lib.ExponentialLR(optimizer, 0.9), inner, lib.LambdaLR(optimizer, Decay(0.5))]
        more = [[2, 4]] if name == "SequentialLR" else []
        scheduler = getattr(lib, name)(*([optimizer] if more else []), led, *more)
    else:
        options = SCHEDULERS.get(name, [{}])[0]
        scheduler = scheduler_class(flow, name)(optimizer, **options)
    state = copy.deepcopy(scheduler.state_dict())
    before = repr(state)

    def spoiled(node):
        """Yield states with one value that is of another kind."""
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in list(pairs) if not isinstance(node, Counter) else ():
            if isinstance(value, (dict, list)):
                for new in spoiled(value):
                    other = copy.copy(node)
                    other[key] = new
                    yield other
            for new in (None, "text", 3, [], [3, 4, "x"], {"a": 1}, object(), True, flow.ones(2)):
                other = copy.copy(node)
                other[key] = new
                yield other

    refused = 0
    for wrong in [None, "text", [], *spoiled(state)]:
        try:
            scheduler.load_state_dict(wrong)
        except flow.errors.FlowError:
            refused += 1
            assert repr(scheduler.state_dict()) == before
        else:
            scheduler.load_state_dict(copy.deepcopy(state))
            before = repr(scheduler.state_dict())
    assert refused > 10
    optimizer.step()
    scheduler.step(*([1.0] if name == "ReduceLROnPlateau" else []))
