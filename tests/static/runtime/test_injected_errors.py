"""An exception in each instruction of a Program in turn stops the run, and only that run."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, static
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.program import Program

MODES = ["straight_line", "work_queue"]
by_mode = pytest.mark.parametrize("mode", MODES)


class Injected(Exception):
    """An exception that only this test raises."""


class Fuse:
    """Stands in for kernels; once set, the call of that number raises."""

    def __init__(self) -> None:
        self.calls = 0
        self.blows_at = -1
        self.blown: tuple[str, ...] = ()  # the op, after those whose kernels called it
        self.running = threading.local()

    def around(self, op: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            number = self.calls
            self.calls += 1
            outer = getattr(self.running, "ops", ())
            self.running.ops = (*outer, op)
            try:
                if number == self.blows_at:
                    self.blown = self.running.ops
                    raise Injected(number)
                return kernel(*args, **kwargs)
            finally:
                self.running.ops = outer

        return run

    def set(self, number: int) -> None:
        self.calls, self.blows_at, self.blown = 0, number, ()


def fused(monkeypatch: pytest.MonkeyPatch, ops: Iterator[str]) -> Fuse:
    """Put a fuse before the kernels of these ops."""
    fuse = Fuse()
    for op in dict.fromkeys(ops):
        expr = op_expr(op)
        monkeypatch.setitem(expr._kernels, np, fuse.around(op, expr.kernel(np)))
    return fuse


def attempt_each(
    fuse: Fuse, run: Callable[[], Any], restore: Callable[[], None], line_of: Callable[..., Any]
) -> int:
    """Let each kernel call of a run fail in turn; return how many there are."""

    def result() -> Any:
        restore()
        return [np.array(y) for y in run()]

    result()  # the first run prepares
    fuse.set(-1)
    expected = result()
    count = fuse.calls
    lines, first = inspect.getsourcelines(line_of)
    places = [f"{__file__}:{first + k}" for k in range(len(lines))]
    for number in range(count):
        fuse.set(number)
        restore()
        with pytest.raises(Injected) as caught:
            run()
        assert type(caught.value) is Injected and caught.value.args == (number,)
        notes = caught.value.__notes__
        assert any(note.startswith(f"in op {op!r}") for note in notes for op in fuse.blown), notes
        assert any(place in note for note in notes for place in places), notes
        fuse.set(-1)
        for y, wanted in zip(result(), expected, strict=True):
            np.testing.assert_array_equal(y, wanted)
        assert fuse.calls == count
    return count


def build() -> tuple[Any, Any]:
    x = static.data("x", [4, 3])
    target = static.data("target", [4])
    hidden = nn.Linear(3, 5)(x).tanh()
    y = nn.Linear(5, 1)(hidden).reshape(-1)
    noise = flow.rand(4)
    y = static.nn.cond(y.sum() > 0, lambda: y * 2, lambda: y - noise)
    loss = (y - target).square().mean()
    flow.optim.Adam(lr=0.1).minimize(loss)
    return y, loss


def ops_of(program: Program) -> Iterator[str]:
    for block in program.blocks:
        for op in block.ops:
            yield op.type


@by_mode
def test_executor(mode, monkeypatch):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        fetches = build()
    scope = static.Scope()
    static.Executor().run(startup, scope=scope)
    state = {n: np.array(scope.find_var(n)) for n, d in main.global_block().vars.items()
             if d.persistable}  # fmt: skip
    fuse = fused(monkeypatch, ops_of(main))
    executor = static.Executor(mode=mode)
    rng = np.random.default_rng(0)
    feed = {"x": rng.random((4, 3), "float32"), "target": rng.random(4, "float32")}

    def restore():
        flow.manual_seed(0)
        for name, array in state.items():
            scope.find_var(name)[...] = array

    def run():
        return executor.run(main, feed=feed, fetch_list=list(fetches), scope=scope)

    assert attempt_each(fuse, run, restore, build) > 15


def make_step() -> Any:
    w = flow.tensor([[0.5, -1.0, 2.0]], requires_grad=True)
    seen = flow.zeros(3)
    optimizer = flow.optim.SGD([w], lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        h = (x * w).tanh() * 1
        seen.add_(h.detach().sum(0))
        h[0].mul_(2)
        h = nn.functional.dropout(h, 0.5)
        loss = (h * h).sum()
        loss.backward()
        optimizer.step()
        return loss, h.detach().t()

    def state():
        return [w, seen, *optimizer.own_tensors()]

    step.state = state
    return step


def fused_recordings(monkeypatch: pytest.MonkeyPatch, compiled: Any) -> Fuse:
    """Put a fuse before the kernels of all Programs that a compiled function has recorded."""
    cores = []
    for recording in compiled._recordings:
        functions = recording.ending.functions
        cores += [recording.core, *[each.core for each in functions if hasattr(each, "core")]]
    fuse = fused(monkeypatch, (op.type for core in cores for op in core.plan.block.ops))
    for core in cores:
        if core.mode == "straight_line":
            core.runner.bind(core.runner._bound[0] or ())
        else:
            for instruction in core.instructions:
                if instruction.kernel is not None:
                    instruction.kernel = op_expr(instruction.op.type).kernel(np)
    return fuse


@by_mode
@pytest.mark.unjudged("the n-th kernel call raises")
def test_compiled_training_step(mode, monkeypatch):
    x = flow.arange(6.0).reshape(2, 3) / 8
    step = make_step()
    compiled = flow.compile(step, mode=mode)
    for _ in range(4):
        compiled(x)
    fuse = fused_recordings(monkeypatch, compiled)
    kept, grad = [t.numpy().copy() for t in step.state()], step.state()[0].grad
    hits = compiled.explain().hits

    def restore():
        flow.manual_seed(0)
        step.state()[0].grad = grad  # zero_grad() looks whether there is one
        with flow.no_grad():
            for t, array in zip(step.state(), kept, strict=True):
                t.numpy()[...] = array

    def run():
        loss, h = compiled(x)
        return [loss.item(), h.numpy(), *[t.detach().numpy() for t in step.state()]]

    count = attempt_each(fuse, run, restore, make_step)
    assert count > 10
    told = compiled.explain()
    assert told.hits == hits + 2 * count + 2 and not told.fallbacks


@by_mode
@pytest.mark.unjudged("the n-th kernel call raises")
def test_compiled_function_with_backward_outside(mode, monkeypatch):
    w = flow.tensor([0.5, -1.0, 2.0], requires_grad=True)

    def f(x):
        y = (x * w).exp() + x.sin()
        return y * y.sum()

    x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
    compiled = flow.compile(f, mode=mode)
    for _ in range(2):
        flow.autograd.grad(compiled(x).sum(), x)
    fuse = fused_recordings(monkeypatch, compiled)

    def restore():
        w.grad = x.grad = None

    def run():
        y = compiled(x)
        g = flow.autograd.grad(y, [x, w], flow.ones(3))
        return [y.detach().numpy(), *[t.numpy() for t in g]]

    here = test_compiled_function_with_backward_outside
    assert attempt_each(fuse, run, restore, here) > 8
    assert not compiled.explain().fallbacks
