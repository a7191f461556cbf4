"""A run that begins in the middle of another one, from wherever, does not disturb it."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.ops.op_expr import op_expr
from tests.static.interruptions import fuse_kernels

pytestmark = pytest.mark.unjudged("the n-th kernel call begins another run")

MODES = ["straight_line", "work_queue"]
by_mode = pytest.mark.parametrize("mode", MODES)


class Visitor:
    """Stands in for kernels, and calls a function in the middle of one of them, once.

    A kernel that takes `out` writes it first, so that what the visit overwrites would be seen.
    """

    def __init__(self) -> None:
        self.visit: Callable[[], None] | None = None
        self.at, self.calls = -1, 0

    def around(self, op: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            result = kernel(*args, **kwargs)
            number, self.calls = self.calls, self.calls + 1
            if number == self.at and self.visit is not None:
                visit, self.visit = self.visit, None
                visit()
            return result

        return run

    def set(self, at: int, visit: Callable[[], None] | None) -> None:
        self.at, self.visit, self.calls = at, visit, 0


@contextlib.contextmanager
def visited(ops: Any, xp: Any = np) -> Iterator[Visitor]:
    """Put a visitor behind the kernels of these ops."""
    visitor = Visitor()
    changed = []
    for op in dict.fromkeys(ops):
        expr = op_expr(op)
        kernel = expr.kernel(xp)
        changed.append((expr, kernel))
        expr._kernels[xp] = visitor.around(op, kernel)
    try:
        yield visitor
    finally:
        for expr, kernel in changed:
            expr._kernels[xp] = kernel


def by_signal(visit: Callable[[], None]) -> None:
    if threading.current_thread() is not threading.main_thread():
        return visit()  # where no handler runs
    before = signal.signal(signal.SIGTERM, lambda number, frame: visit())
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def by_finalizer(visit: Callable[[], None]) -> None:
    class Object:
        def __del__(self) -> None:
            visit()

    Object()


def by_callback(visit: Callable[[], None]) -> None:
    class Object:
        pass

    x = Object()
    kept = weakref.ref(x, lambda ref: visit())
    del x
    assert kept() is None


def by_collection(visit: Callable[[], None]) -> None:
    class Object:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            visit()

    Object()
    gc.collect(0)


def by_thread(visit: Callable[[], None]) -> None:
    thread = threading.Thread(target=visit)
    thread.start()
    thread.join()


WAYS = [by_signal, by_finalizer, by_callback, by_collection, by_thread]
by_way = pytest.mark.parametrize("way", WAYS)


def network(n: int) -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(n)
    weights = [flow.tensor(rng.standard_normal((n, n)), requires_grad=True) for _ in range(3)]

    def f(x: Any) -> Any:
        for w in weights:
            x = (x @ w).tanh() + x.exp() * 0.1
        return x.sum(), x

    return f, weights


@by_mode
@by_way
@pytest.mark.parametrize("with_grad", [True, False])
def test_a_compiled_function(mode: str, way: Callable[..., None], with_grad: bool) -> None:
    f, weights = network(3)
    x, other = (flow.tensor(np.full((3, 3), k), requires_grad=True) for k in (0.3, 0.7))

    def call(function: Any, x: Any) -> Any:
        with flow.set_grad_enabled(with_grad):  # the visit may come in a backward pass
            loss, y = function(x)
            loss = loss + y.mean()
        if not with_grad:
            return loss, y
        return [y, *flow.autograd.grad(loss, [x, *weights])]

    expected, nested = call(f, x), call(f, other)
    found: list[Any] = []
    compiled = flow.compile(f, mode=mode)
    call(compiled, x), call(compiled, x)
    visitor = Visitor()
    with fuse_kernels(compiled, visitor):
        visitor.set(-1, None)
        call(compiled, x)
        count = visitor.calls
        assert count > 12
        for at in range(count):
            visitor.set(at, lambda: way(lambda: found.append(call(compiled, other))))
            results = call(compiled, x)
            assert visitor.visit is None and len(found) == 1
            for outcome, right in ((results, expected), (found.pop(), nested)):
                for y, z in zip(outcome, right, strict=True):
                    np.testing.assert_array_equal(y.detach().numpy(), z.detach().numpy())
    assert compiled.explain().hits > 1.3 * count  # a visit inside a backward pass is none


@by_mode
@by_way
def test_an_executor(mode: str, way: Callable[..., None]) -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [4, 3])
        h = flow.nn.Linear(3, 5)(x).tanh()
        y = static.nn.cond(h.sum() > 0, lambda: h.exp(), lambda: h * 2)
        loss = (y * y).mean()
        flow.optim.SGD(lr=0.1).minimize(loss)
    executor = static.Executor(mode=mode)
    scopes = [static.Scope(), static.Scope()]
    flow.manual_seed(0)
    static.Executor().run(startup, scope=scopes[0])
    names = [n for n, d in main.global_block().vars.items() if d.persistable]
    start = {n: np.array(scopes[0].find_var(n)) for n in names}
    feeds = [{"x": np.full((4, 3), k, "float32")} for k in (1.0, -2.0)]

    def run(k: int) -> list[Any]:
        for n in names:
            if scopes[k].find_var(n) is None:
                scopes[k].set(n, start[n])
            scopes[k].find_var(n)[...] = start[n]
        results = executor.run(main, feed=feeds[k], fetch_list=[y, loss], scope=scopes[k])
        return [*results, *[np.array(scopes[k].find_var(n)) for n in names]]

    with visited(op.type for block in main.blocks for op in block.ops) as visitor:
        expected = [run(0), run(1)]
        visitor.set(-1, None)
        run(0)
        count = visitor.calls
        assert count > 10
        found: list[Any] = []
        for at in range(count):
            visitor.set(at, lambda: way(lambda: found.append(run(1))))
            results = run(0)
            assert visitor.visit is None
            for outcome, right in ((results, expected[0]), (found.pop(), expected[1])):
                for a, b in zip(outcome, right, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_a_cuda_graph(cuda: Any) -> None:
    f, weights = network(3)
    weights[:] = [w.detach().to("cuda") for w in weights]
    x, other = (flow.tensor(np.full((3, 3), k)).to("cuda") for k in (0.3, 0.7))
    compiled = flow.compile(lambda x: f(x)[1], mode="cuda_graph")
    expected, nested = (f(t)[1].cpu().numpy() for t in (x, other))
    for _ in range(3):
        compiled(x)
    (graphs,) = compiled._recordings[0].core.runner._idle
    steps = graphs.steps
    assert len(steps) > 3
    found: list[Any] = []

    def visit(step: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            step()
            found.append(compiled(other).cpu().numpy())

        return run

    for k in range(len(steps)):
        graphs.steps = [*steps[:k], visit(steps[k]), *steps[k + 1 :]]
        np.testing.assert_array_equal(compiled(x).cpu().numpy(), expected)
        np.testing.assert_array_equal(found.pop(), nested)
    graphs.steps = steps
    assert not compiled.explain().fallbacks


def test_while_a_cuda_graph_is_captured(cuda: Any) -> None:
    """The visitor is not captured; it goes back to the stream from which the call came."""
    x, other = flow.full((3,), 0.25).to("cuda"), flow.full((3,), 0.5).to("cuda")
    inner = flow.compile(lambda x: (x * 3).exp() + x, mode="cuda_graph")
    outer = flow.compile(lambda x: (x * 2).tanh() - x, mode="cuda_graph")
    for _ in range(2):
        inner(other)
    right = inner(other).cpu().numpy()
    found: list[Any] = []
    with visited(["mul", "tanh", "sub"], sys.modules["cupy"]) as visitor:
        outer(x)  # recorded
        for at in range(3):
            outer._recordings[0].core.runner._idle.clear()  # so that it is captured again
            visitor.set(at, lambda: found.append(inner(other)))
            y = outer(x)
            assert visitor.visit is None
            np.testing.assert_array_equal(found.pop().cpu().numpy(), right)
            np.testing.assert_allclose(y.cpu().numpy(), np.tanh([0.5] * 3) - 0.25, rtol=1e-6)
            np.testing.assert_allclose(outer(x).cpu().numpy(), y.cpu().numpy())


@by_mode
def test_many_threads_at_once(mode: str) -> None:
    f, weights = network(8)
    compiled = flow.compile(f, mode=mode)
    for _ in range(3):
        compiled(flow.zeros(8, 8, dtype=flow.float64))
    start = threading.Barrier(4)
    wrong: list[Any] = []

    def work(k: int) -> None:
        try:
            start.wait()
            x = flow.tensor(np.full((8, 8), k / 10))
            right = f(x)[1]
            for _ in range(50):
                y = compiled(x)[1]
                if not np.array_equal(y.detach().numpy(), right.detach().numpy()):
                    wrong.append(k)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert compiled.explain().captures == 1


def test_a_kernel_that_waits_for_a_thread_that_runs_the_same_program() -> None:
    """Nobody waits for buffers, so nobody waits for ever."""
    with visited(["exp"]) as visitor:
        compiled = flow.compile(lambda x: x.exp() + 1)
        x = flow.ones(2)
        compiled(x), compiled(x)
        results: list[Any] = []
        visitor.set(0, lambda: by_thread(lambda: results.append(compiled(x * 0).tolist())))
        y = compiled(x)
    assert results == [[2.0, 2.0]] and y.tolist() == pytest.approx([np.e + 1] * 2)


def test_buffers_that_served_a_visit_are_kept_for_the_next() -> None:
    with visited(["exp"]) as visitor:
        compiled = flow.compile(lambda x: (x.exp() + 1).exp())
        x = flow.ones(2)
        compiled(x), compiled(x)
        runner = compiled._recordings[0].core.runner
        for _ in range(5):
            visitor.set(0, lambda: compiled(x))
            compiled(x)
    assert len(runner._bound[1]) == 2
