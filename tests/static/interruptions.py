"""Functions that are stopped in the middle of a call, and all that can be seen of it afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.arrays.device import array_module
from oneflow_lite.interpreter.stack import AutogradInterpreter, EagerInterpreter
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.mode import StateChange

F = nn.functional


class Failure(Exception):
    """An exception that an op raises."""


class Interrupt(BaseException):
    """An exception that a signal handler raises."""


class Fuse:
    """Stands around kernels: the call of one number raises, before or after the kernel has run."""

    def __init__(self) -> None:
        self.blow(-1, Failure, "before")

    def blow(self, number: int, kind: type[BaseException], when: str) -> None:
        self.calls, self.number, self.kind, self.when = 0, number, kind, when
        self.blown = False

    def around(self, op: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            number, self.calls = self.calls, self.calls + 1
            if number != self.number or self.blown:
                return kernel(*args, **kwargs)
            self.blown = True
            if self.when == "after":
                kernel(*args, **kwargs)
            raise self.kind("there")

        return run


class FusedEager(EagerInterpreter):
    """Runs ops with a fuse around every kernel."""

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse

    def apply(self, op_expr: Any, inputs: Any, attrs: Any) -> Any:
        kernels = dict(op_expr._kernels)
        xp = (
            np
            if all(x is None or not x.is_cuda for x in inputs)
            else array_module(inputs[0].device)
        )
        kernel, on_cpu = op_expr.kernel(xp), op_expr.on_cpu()
        op_expr._kernels[xp] = self.fuse.around(op_expr.op_type_name, kernel)
        op_expr.run_in_eager = self.fuse.around(op_expr.op_type_name, on_cpu)
        try:
            return super().apply(op_expr, inputs, attrs)
        finally:
            op_expr._kernels.update(kernels)
            op_expr._kernels[xp] = kernel
            op_expr.run_in_eager = on_cpu


def eagerly(fuse: Fuse, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function op by op, with a fuse around the kernels."""
    with StateChange(interpreter=AutogradInterpreter(FusedEager(fuse))):
        return function(*args)


class World:
    """A function, and the tensors that it reads and writes.

    Attributes
    ----------
    function : callable
    args : tuple
    tensors : list of Tensor
        All that stays from call to call, the arguments among them.
    log : list
        What handlers in the function noted.
    """

    def __init__(self, make: Callable[[list[Any], Any], Any], device: str = "cpu") -> None:
        flow.manual_seed(0)
        self.log: list[Any] = []
        with_device = lambda *shape: flow.randn(*shape).to(device)  # noqa: E731
        self.function, self.args, self.tensors = make(self.log, with_device)
        self.places = self.log.pop() if self.log else None

    def settle(self, function: Callable[..., Any]) -> None:
        """Call until all is there that first calls make, and take note of how it is then."""
        for _ in range(4):
            function(*self.args)
        self.kept = [t.detach().cpu().numpy().copy() for t in self.everything()]
        self.grads = [t.grad for t in self.everything()]
        self.kept_grads = [None if g is None else g.cpu().numpy().copy() for g in self.grads]

    def everything(self) -> list[Any]:
        return [*self.args, *self.tensors()]

    def outcome(self, call: Callable[[], Any]) -> Any:
        """Begin from the kept state; return what a call gives or raises, and what it leaves."""
        flow.manual_seed(1)
        self.log.clear()
        if self.places is not None:
            self.places.take()
        for t, array, g, grad in zip(
            self.everything(), self.kept, self.grads, self.kept_grads, strict=True
        ):
            _fill(t, array)
            t.grad = g
            if g is not None:
                _fill(g, grad)
        before = [t._version for t in self.everything()]
        before_grads = [None if g is None else g._version for g in self.grads]
        try:
            result = _plain(call())
        except (Failure, Interrupt) as error:
            result = type(error), str(error)
        left = []
        for t, g, n, m in zip(self.everything(), self.grads, before, before_grads, strict=True):
            grad = t.grad
            same = grad is not None and grad is g
            left.append(
                (
                    t.detach().cpu().numpy().tobytes(),
                    t._version - n,
                    None if grad is None else grad.cpu().numpy().tobytes(),
                    same and grad._version - m,
                )
            )
        if self.places is not None:
            self.log.append(self.places.take())
        state = flow.random.get_rng_state()["state"]["state"]
        return result, left, list(self.log), state


def _fill(t: Any, array: Any) -> None:
    if isinstance(t._data, np.ndarray):
        t._data[...] = array
    else:
        t._data.set(np.ascontiguousarray(array).reshape(array.shape))


def _plain(value: Any) -> Any:
    if isinstance(value, flow.Tensor):
        edge = value.grad_fn is not None
        return value.detach().cpu().numpy().tobytes(), value.requires_grad, edge
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value


WORLDS: dict[str, Callable[[list[Any], Any], Any]] = {}


def world(make: Callable[[list[Any], Any], Any]) -> Callable[[list[Any], Any], Any]:
    WORLDS[make.__name__] = make
    return make


@world
def adam_step(log: list[Any], randn: Any) -> Any:
    """The usual training step: nothing to copy."""
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(randn(1).device)
    optimizer = flow.optim.Adam(net.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    tensors = lambda: [*net.parameters(), *_state(optimizer)]  # noqa: E731
    return step, (randn(5, 3), randn(5, 1)), tensors


@world
def dropout_and_statistics(log: list[Any], randn: Any) -> Any:
    """Random numbers, and running statistics that are written long before the end."""
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        y = net(x)
        y.square().mean().backward()
        optimizer.step()
        return y.detach()

    tensors = lambda: [*net.parameters(), *net.buffers(), *_state(optimizer)]  # noqa: E731
    return step, (randn(6, 3),), tensors


@world
def sums_of_gradients(log: list[Any], randn: Any) -> Any:
    """Gradients that are filled with zeros and added to, clipped, and weights that are averaged."""
    w, v = randn(3, 4).requires_grad_(), randn(4).requires_grad_()
    mean = w.detach().clone()
    optimizer = flow.optim.SGD([w, v], lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad(set_to_none=False)
        for part in x.chunk(2):
            ((part @ w).tanh() * v).sum().backward()
        nn.utils.clip_grad_norm_([w, v], 0.5)
        optimizer.step()
        with flow.no_grad():
            mean.mul_(0.9).add_(w, alpha=0.1)

    return step, (randn(4, 3),), lambda: [w, v, mean]


@world
def two_optimizers(log: list[Any], randn: Any) -> Any:
    """A second forward and backward pass after the first update."""
    a, b = randn(3, 2).requires_grad_(), randn(2, 3).requires_grad_()
    first, second = flow.optim.SGD([a], lr=0.1), flow.optim.SGD([b], lr=0.1, momentum=0.5)

    def step(x: Any) -> Any:
        first.zero_grad()
        loss = (x @ a @ b.detach()).square().sum()
        loss.backward()
        first.step()
        second.zero_grad()
        other = (x @ a.detach() @ b).sin().sum()
        other.backward()
        second.step()
        return loss.detach(), other.detach()

    return step, (randn(2, 3),), lambda: [a, b, *_state(second)]


@world
def handlers(log: list[Any], randn: Any) -> Any:
    """Everything that waits for an exception: except, finally, with, and after them an update."""
    w, seen = randn(3).requires_grad_(), randn(3)

    class Manager:
        def __enter__(self) -> None:
            pass

        def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
            if kind is not None:
                log.append(("exit", kind.__name__, str(error)))
            return False

    manager = Manager()

    def step(x: Any) -> Any:
        w.grad = None
        try:
            with manager:
                seen.add_(x)
                loss = (w * x).exp().sum()
                loss.backward()
        except Failure as error:
            log.append(str(error))
            seen.mul_(2)
            return seen * 3
        finally:
            seen.sub_(1)
        with flow.no_grad():
            w.sub_(w.grad, alpha=0.1)
        return loss.detach()

    return step, (randn(3),), lambda: [w, seen]


@world
def written_views(log: list[Any], randn: Any) -> Any:
    """An argument that is written through views, and returned with a graph."""
    w, table = randn(3).requires_grad_(), randn(4, 3)

    def step(x: Any, i: Any) -> Any:
        table[1].add_(x[0])
        x[1:].mul_(2)
        table[i] = x[:2] * 0.5
        x.neg_()
        y = (x * w).cos()
        return y, x, table[2:]

    return step, (randn(2, 3), flow.tensor([0, 3])), lambda: [w, table]


@world
def assigned_gradients(log: list[Any], randn: Any) -> Any:
    """Gradients that are assigned between writes."""
    w, v, count = randn(3).requires_grad_(), randn(3).requires_grad_(), randn(1)

    def step(x: Any) -> Any:
        dw, dv = flow.autograd.grad((w * v * x).sum(), [w, v])
        count.add_(1)
        w.grad = dw
        count.add_(2)
        v.grad = dv * 2
        count.add_(dw.sum())

    return step, (randn(3),), lambda: [w, v, count]


@world
def only_forward(log: list[Any], randn: Any) -> Any:
    """Nothing outside changes."""
    w = randn(3, 3).requires_grad_()
    return (lambda x: ((x @ w).tanh().exp(), x.sum())), (randn(2, 3),), lambda: [w]


class Places:
    """Attributes, items and counters outside; a world notes at the end of a call what they hold."""

    def __init__(self) -> None:
        self.steps = {"done": 0}
        self.take()

    def take(self) -> Any:
        """Return what they hold, and begin anew."""
        found = {name: _plain(value) for name, value in vars(self).items()}
        found["steps"] = dict(self.steps)
        self.calls, self.last, self.output, self.steps["done"] = 0, 0.0, None, 0
        return found


@world
def effects(log: list[Any], randn: Any) -> Any:
    """Attributes, items and counters that are written between gradients and updates."""
    w, v = randn(3).requires_grad_(), randn(3).requires_grad_()
    optimizer = flow.optim.SGD([w, v], lr=0.1)
    here = Places()
    log.append(here)

    def step(x: Any) -> Any:
        here.calls += 1
        optimizer.zero_grad()
        y = (w * v * x).tanh()
        loss = y.sum()
        here.output = y.detach() * 2
        loss.backward()
        here.steps["done"] += 1
        with flow.no_grad():
            w.sub_(w.grad, alpha=0.1)
            here.calls += 1
            v.sub_(v.grad, alpha=0.1)
        here.last = loss.item()
        here.steps["done"] += 2

    return step, (randn(3),), lambda: [w, v]


@world
def effects_written_twice(log: list[Any], randn: Any) -> Any:
    """A place that is written again later, and one that keeps a graph."""
    w, count = randn(3).requires_grad_(), randn(1)
    here = Places()
    log.append(here)

    def step(x: Any) -> Any:
        here.calls = 1
        count.add_(1)
        here.calls = 2
        here.last = 3.0
        count.add_(1)
        here.output = (w * x).sum().detach()
        here.last = 4.0
        count.add_(x.sum())

    return step, (randn(3),), lambda: [w, count]


def _state(optimizer: Any) -> list[Any]:
    return [t for kept in optimizer.state.values() for t in kept.values()]


def cores_of(compiled: Any) -> Iterator[Any]:
    """Go through the cores that a compiled function's hits run, and their backward passes."""
    for recording in compiled._recordings:
        yield recording.core
        yield from (each.core for each in recording.ending.functions if hasattr(each, "core"))


@contextlib.contextmanager
def fuse_kernels(compiled: Any, fuse: Any) -> Iterator[None]:
    """Put something around the kernels of what a compiled function has recorded."""
    cores = list(cores_of(compiled))
    changed = []
    for name in {op.type for core in cores for op in core.plan.block.ops}:
        expr = op_expr(name)
        kernel, on_cpu = expr.kernel(np), expr.on_cpu()
        changed.append((expr, kernel, on_cpu))
        expr._kernels[np] = fuse.around(name, kernel)
        expr._on_cpu = fuse.around(name, on_cpu)
    for core in cores:
        if core.mode == "straight_line":
            core.runner.bind(core.runner._bound[0] or ())
        for instruction in core.instructions:
            if instruction.kernel is not None:
                instruction.kernel = op_expr(instruction.op.type).kernel(np)
    try:
        yield
    finally:
        for expr, kernel, on_cpu in changed:
            expr._kernels[np] = kernel
            expr._on_cpu = on_cpu


def fuse_steps(compiled: Any, fuse: Fuse) -> None:
    """Put a fuse around the graphs, and what runs between them, of a compiled function."""
    for core in cores_of(compiled):
        for graphs in core.runner._idle:
            graphs.steps = [fuse.around("step", step) for step in graphs.steps]
