"""Every module, loss and optimizer: compiled and as a Program it trains as eagerly, to the bit."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from tests.static.module_cases import (
    CLIPS,
    MODULES,
    NO_FORWARD,
    OPTIMIZERS,
    SCHEDULERS,
    STEPS,
    ModuleCase,
    Net,
)

# None of these stays eager, nor is a scheduler told that no step was taken.
pytestmark = pytest.mark.filterwarnings(
    "error:flow.compile", "error:scheduler", "ignore:NLLLoss2d:FutureWarning"
)
by_module = pytest.mark.parametrize(
    "case", MODULES, ids=lambda case: re.sub(r"\s+", " ", case.text)
)
Seen = list[tuple[str, Any]]


def seen(module: flow.nn.Module, **more: Any) -> Seen:
    """Return what can be seen of a module: parameters, buffers and gradients, as bytes."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    tensors += [(f"{name}.grad", x.grad) for name, x in module.named_parameters()]
    return [(name, _bytes(x)) for name, x in [*tensors, *more.items()]]


def _bytes(x: Any) -> Any:
    array = x.detach().numpy() if isinstance(x, flow.Tensor) else x
    return None if array is None else (array.dtype.str, array.shape, array.tobytes())


def assert_same(have: list[Seen], want: list[Seen]) -> None:
    """Hold that two runs left the same, and name what differs."""
    for step, (a, b) in enumerate(zip(have, want, strict=True)):
        different = [name for (name, x), (_, y) in zip(a, b, strict=True) if x != y]
        assert not different, f"step {step}"


def test_every_module_has_a_case():
    classes = {name for name, value in vars(flow.nn).items() if inspect.isclass(value)}
    built = set(re.findall(r"nn\.(\w+)", " ".join(case.text for case in MODULES)))
    assert classes - NO_FORWARD == built


# --- flow.compile(module) -------------------------------------------------------------------------


def run_modes(case: ModuleCase, compiler: Callable[..., Any]) -> tuple[list[Seen], Any]:
    """Call a module in training and evaluation, with backward passes outside.

    Writes in place go to an argument without history here: with one, such a call is eager.
    """
    module = case.make()
    called = compiler(module)
    found = []
    for mode, step in itertools.product((True, False), range(3)):
        called.train(mode)
        inputs = case.tensors(step)
        if inputs[0].is_floating_point() and "inplace" not in case.text:
            inputs[0] = inputs[0].requires_grad_() * 1
            inputs[0].retain_grad()
        y = called(*inputs)
        if y.requires_grad:
            y.square().sum().backward()
        found.append(seen(module, y=y, dx=inputs[0].grad))
    return found, called


@pytest.mark.slow(but=40)
@by_module
def test_compiled_module_equals_eager(case):
    want, _ = run_modes(case, lambda module: module)
    have, compiled = run_modes(case, flow.compile)
    assert_same(have, want)
    explained = compiled.explain()
    assert (explained.captures + explained.hits, explained.fallbacks) == (6, 0), explained
    assert explained.captures <= 2, explained


@pytest.mark.slow(but=40)
@by_module
def test_compiled_module_without_gradients_equals_eager(case):
    eager, compiled = case.make(), flow.compile(case.make())
    with flow.no_grad():
        for step in range(3):
            results = []
            for module in (eager, compiled):
                flow.manual_seed(step)
                results.append(_bytes(module(*case.tensors(step))))
            assert results[0] == results[1]
    assert compiled.explain().fallbacks == 0


# --- Compiled training steps ----------------------------------------------------------------------


def train(
    case: ModuleCase,
    optimizer: str,
    compiler: Callable[..., Any],
    clip: str = "norm",
    scheduler: str = "exponential",
    steps: int = STEPS,
) -> Iterator[Any]:
    """Yield what each step leaves of a net around a module; at the end, the step function."""
    net = Net(case.make())
    optimizer_ = OPTIMIZERS[optimizer](net.parameters())
    scheduler_ = SCHEDULERS[scheduler](optimizer_)
    clip_ = CLIPS[clip]

    def step(*inputs: flow.Tensor) -> flow.Tensor:
        optimizer_.zero_grad()
        loss = net(*inputs)
        loss.backward()
        clip_(net.parameters())
        optimizer_.step()
        return loss.detach()

    step = compiler(step)
    for i in range(steps):
        loss = step(*case.tensors(i))
        scheduler_.step()
        state = [x for s in optimizer_.state.values() for x in s.values()]
        yield seen(net, loss=loss, **{f"state {k}": x for k, x in enumerate(state)})
    yield step


def check_training(*args: Any, **options: Any) -> None:
    """Hold that a compiled training step leaves at each call what the plain one leaves."""
    *want, _ = train(*args, lambda step: step, **options)
    *have, step = train(*args, flow.compile, **options)
    assert_same(have, want)
    explained = step.explain()
    assert (explained.captures, explained.hits, explained.fallbacks) == (2, STEPS - 2, 0), explained


_IN_TURN = list(zip(MODULES, itertools.cycle(OPTIMIZERS)))


@pytest.mark.slow(but=20)
@pytest.mark.parametrize(
    ("case", "optimizer"), _IN_TURN, ids=[f"{c.text}-{o}" for c, o in _IN_TURN]
)
def test_compiled_training_equals_eager(case, optimizer):
    check_training(case, optimizer)


DEEP = [case for case in MODULES if "Sequential" in case.text or case.text.endswith("ed()")]
of_deep_nets = pytest.mark.parametrize("case", DEEP, ids=range(len(DEEP)))


@pytest.mark.slow(but=4)
@of_deep_nets
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_compiled_optimizers_equal_eager(case, optimizer):
    check_training(case, optimizer, clip="no clipping")


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_compiled_schedules_and_clipping_equal_eager(clip, scheduler):
    check_training(DEEP[0], "adam", clip=clip, scheduler=scheduler)


# --- Programs -------------------------------------------------------------------------------------


def eager_steps(case: ModuleCase, optimizer: str, clip: str, scheduler: str) -> Iterator[Seen]:
    """Yield what eager steps leave: loss, parameters, buffers and the gradients before clipping."""
    net = Net(case.make())
    optimizer_ = OPTIMIZERS[optimizer](net.parameters())
    scheduler_ = SCHEDULERS[scheduler](optimizer_)
    flow.manual_seed(9)
    for i in range(STEPS):
        loss = net(*case.tensors(i))
        optimizer_.zero_grad()
        loss.backward()
        CLIPS[clip](list(net.parameters()))
        optimizer_.step()
        scheduler_.step()
        yield seen(net, loss=loss)


def program_steps(
    case: ModuleCase, optimizer: str, clip: str, scheduler: str, mode: str
) -> Iterator[Seen]:
    """Yield the same of a Program with `minimize`."""
    net = Net(case.make())
    optimizer_ = OPTIMIZERS[optimizer](net.parameters())
    main, startup, scope = static.Program(), static.Program(), static.Scope()
    with static.program_guard(main, startup):
        arrays = case.arrays(0)
        data = [static.data(f"x{k}", x.shape, x.dtype) for k, x in enumerate(arrays)]
        loss = net(*data)
        _, pairs = optimizer_.minimize(loss, grad_clip=CLIPS[clip])
    executor = static.Executor(mode=mode)
    executor.run(startup, scope=scope)
    scheduler_ = SCHEDULERS[scheduler](optimizer_)
    gradients = {id(parameter): gradient for parameter, gradient in pairs}
    flow.manual_seed(9)
    for i in range(STEPS):
        feed = {f"x{k}": x for k, x in enumerate(case.arrays(i))}
        fetches = [loss, *(gradients[id(p)] for p in net.parameters() if id(p) in gradients)]
        value, *found = executor.run(main, feed, fetches, scope)
        scheduler_.step()
        fetched = iter(found)
        named = [*net.named_parameters(), *net.named_buffers()]
        left = [(name, _bytes(_held(scope, x))) for name, x in named]
        for name, p in net.named_parameters():
            gradient = next(fetched) if id(p) in gradients else None
            left.append((f"{name}.grad", _bytes(gradient)))
        yield [*left, ("loss", _bytes(value))]


def _held(scope: static.Scope, x: flow.Tensor) -> Any:
    """Return the array of a parameter or buffer; the Program leaves alone what it has not met."""
    name = x.name
    found = None if name is None else scope.find_var(name)
    return x if found is None else found


def check_program(case: ModuleCase, optimizer: str, clip: str, scheduler: str, mode: str) -> None:
    """Hold that a Program's runs leave what eager steps leave."""
    have = list(program_steps(case, optimizer, clip, scheduler, mode))
    assert_same(have, list(eager_steps(case, optimizer, clip, scheduler)))


@pytest.mark.slow(but=20)
@pytest.mark.parametrize(
    ("case", "optimizer"), _IN_TURN, ids=[f"{c.text}-{o}" for c, o in _IN_TURN]
)
def test_program_training_equals_eager(case, optimizer):
    check_program(case, optimizer, "norm", "exponential", "straight_line")


@pytest.mark.slow(but=4)
@of_deep_nets
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_program_optimizers_equal_eager(case, optimizer):
    check_program(case, optimizer, "no clipping", "step", "work_queue")


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_program_schedules_and_clipping_equal_eager(clip, scheduler):
    check_program(DEEP[0], "adam", clip, scheduler, "straight_line")


@by_module
def test_program_in_evaluation_equals_eager(case):
    module = case.make().eval()
    program, startup, scope = static.Program(), static.Program(), static.Scope()
    with static.program_guard(program, startup):
        arrays = case.arrays(0)
        data = [static.data(f"x{k}", x.shape, x.dtype) for k, x in enumerate(arrays)]
        y = module(*data)
    executor = static.Executor()
    executor.run(startup, scope=scope)
    for step in range(3):
        feed = {f"x{k}": x for k, x in enumerate(case.arrays(step))}
        (have,) = executor.run(program, feed, [y], scope)
        np.testing.assert_array_equal(have, module(*case.tensors(step)).detach().numpy())
