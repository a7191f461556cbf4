"""Threads: each has its own grad mode and interpreter stack, and leaves are shared without loss."""

import threading

import numpy as np
import pytest

import oneflow_lite as flow


def run(*functions):
    """Run functions in threads that start together; raise what one of them raised."""
    barrier, problems = threading.Barrier(len(functions)), []

    def guarded(function):
        try:
            barrier.wait(10)
            function()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if problems:
        raise problems[0]


class TestGradMode:
    def test_a_new_thread_records_whatever_its_starter_does(self):
        seen = []
        with flow.no_grad():
            run(lambda: seen.append(flow.is_grad_enabled()))
        assert seen == [True]

    def test_is_per_thread(self):
        inside, done = threading.Event(), threading.Event()
        seen = []

        def without():
            with flow.no_grad():
                inside.set()
                done.wait(10)
                seen.append(("without", (x * 2).requires_grad))

        def with_grad():
            inside.wait(10)
            seen.append(("with", (x * 2).requires_grad))
            done.set()

        x = flow.ones(1, requires_grad=True)
        run(without, with_grad)
        assert seen == [("with", True), ("without", False)]
        assert flow.is_grad_enabled()

    def test_the_decorator_is_per_thread(self):
        x = flow.ones(1, requires_grad=True)

        @flow.no_grad()
        def double():
            return (x * 2).requires_grad or flow.is_grad_enabled()

        results = []

        def work():
            for _ in range(200):
                results.append(double())
                results.append(not (x * 2).requires_grad)

        run(*[work] * 4)
        assert not any(results)


def test_the_interpreter_stack_is_per_thread():
    class Count(flow.Interpreter):
        def __init__(self):
            self.calls = 0

        def apply(self, op_expr, inputs, attrs):
            self.calls += 1
            return self.inner.apply(op_expr, inputs, attrs)

    counters = [Count() for _ in range(4)]

    def work(counter, times):
        with flow.push_interpreter(counter):
            for _ in range(times):
                x * 2

    x = flow.ones(2)
    run(*[lambda c=c, n=n: work(c, n) for n, c in enumerate(counters, start=50)])
    assert [c.calls for c in counters] == [50, 51, 52, 53]


class TestBackward:
    @pytest.mark.parametrize("shape", [(), (3,), (1000,)], ids=str)
    def test_eight_threads_that_share_a_leaf_give_the_exact_sum(self, shape):
        x = flow.ones(shape, dtype=flow.float64, requires_grad=True)
        times = 100

        def work(k):
            for _ in range(times):
                (x * float(k)).sum().backward()

        run(*[lambda k=k: work(k) for k in range(1, 9)])
        assert (x.grad.numpy() == times * sum(range(1, 9))).all()

    def test_graphs_that_share_a_part(self):
        x = flow.tensor([1.0, 2.0], dtype=flow.float64, requires_grad=True)
        shared = x.exp()

        def work(k):
            for _ in range(50):
                (shared * float(k)).sum().backward(retain_graph=True)

        run(*[lambda k=k: work(k) for k in range(1, 9)])
        np.testing.assert_allclose(x.grad.numpy(), 50 * 36 * np.exp([1.0, 2.0]), rtol=1e-12)

    def test_autograd_grad_in_threads(self):
        x = flow.tensor([1.0, 2.0], dtype=flow.float64, requires_grad=True)
        y = (x**3).sum()
        results = []

        def work():
            for _ in range(50):
                (g,) = flow.autograd.grad(y, x, create_graph=True)
                (h,) = flow.autograd.grad(g.sum(), x)
                results.append((g.tolist(), h.tolist()))

        run(*[work] * 8)
        assert results == [([3.0, 12.0], [6.0, 12.0])] * 400
        assert x.grad is None

    def test_one_object_is_accumulated_into(self):
        x = flow.ones(4, requires_grad=True)
        x.sum().backward()
        first = x.grad
        run(*[lambda: x.sum().backward()] * 8)
        assert x.grad is first and first.tolist() == [9.0] * 4

    def test_current_grad_is_the_threads_own(self):
        x = flow.ones(2, requires_grad=True)
        y = x * 2
        inside, looked = threading.Event(), threading.Event()
        seen = []

        def hook(grad):
            inside.set()
            looked.wait(10)
            seen.append(("own", y.autograd_meta.current_grad.tolist()))

        y.register_hook(hook)

        def look():
            inside.wait(10)
            seen.append(("other", y.autograd_meta.current_grad))
            looked.set()

        run(lambda: (y * 3).sum().backward(), look)
        assert seen == [("other", None), ("own", [3.0, 3.0])]

    def test_a_hook_that_runs_another_backward_on_the_same_leaf(self):
        """The lock on a leaf is not held while users' code runs."""
        x = flow.ones(2, requires_grad=True)
        done = []

        def hook(grad):
            if not done:
                done.append(True)
                with flow.enable_grad():
                    (x * 5).sum().backward()

        x.register_hook(hook)
        run(lambda: (x * 2).sum().backward())
        assert x.grad.tolist() == [7.0, 7.0]

    def test_leaves_made_in_another_thread(self):
        made = []
        run(lambda: made.append(flow.ones(2, requires_grad=True)))
        (made[0] * 3).sum().backward()
        assert made[0].grad.tolist() == [3.0, 3.0]

    def test_an_op_is_looked_up_by_many_threads_at_once(self):
        op = flow.registry.FUNCTORS.get("tan")
        flow.op_expr.op_expr("tan").forget()
        x = flow.tensor([0.5], requires_grad=True)
        results = []
        run(*[lambda: results.append(flow.autograd.grad(op(x), x)[0].item())] * 8)
        assert len(set(results)) == 1
