"""Threads: each has its own grad mode and interpreter stack, and leaves are shared without loss."""

import queue
import sys
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
        op = flow.ops.registry.FUNCTORS.get("tan")
        flow.ops.op_expr.op_expr("tan").forget()
        x = flow.tensor([0.5], requires_grad=True)
        results = []
        run(*[lambda: results.append(flow.autograd.grad(op(x), x)[0].item())] * 8)
        assert len(set(results)) == 1


@pytest.fixture
def switching():
    """Threads take turns every microsecond."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def integers(shape, seed):
    """Small integers as float64: their sums are exact in any order."""
    values = np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float64)
    return flow.tensor(values, requires_grad=True)


def net(leaves):
    """A graph with branches that meet, broadcasting, indexing and an op with a view."""
    x, w, b = leaves
    h = x @ w + b
    y = h * h + flow.relu(h)
    z = y.t()[1:] * 2 + h.t()[1:]
    return (z * z).sum() + (y[:, 0] * h.sum(1)).sum()


def leaves_of(seed):
    return [integers((3, 4), seed), integers((4, 5), seed + 1), integers((5,), seed + 2)]


def grads_of(leaves, total, **options):
    return [g.numpy() for g in flow.autograd.grad(total, leaves, **options)]


@pytest.mark.usefixtures("switching")
class TestManyRuns:
    """Thousands of runs with threads that take turns all the time give the serial numbers."""

    def test_one_graph_in_two_threads(self):
        leaves = leaves_of(0)
        total = net(leaves)
        expected = grads_of(leaves, total, retain_graph=True)
        wrong, runs = [], []

        def work():
            for _ in range(300):
                found = grads_of(leaves, total, retain_graph=True)
                wrong.extend(1 for f, e in zip(found, expected, strict=True) if (f != e).any())
                runs.append(1)

        run(work, work)
        assert len(runs) == 600 and not wrong

    def test_one_graph_accumulates_from_two_threads(self):
        leaves = leaves_of(0)
        total = net(leaves)
        expected = grads_of(leaves, total, retain_graph=True)

        def work():
            for _ in range(300):
                total.backward(retain_graph=True)

        run(work, work)
        for x, grad in zip(leaves, expected, strict=True):
            assert (x.grad.numpy() == 600 * grad).all()

    def test_one_graph_recorded_in_two_threads(self):
        x = integers((3,), 0)
        y = (x * x * x).sum()
        wrong, runs = [], []

        def work():
            for _ in range(200):
                (first,) = flow.autograd.grad(y, x, create_graph=True)
                (second,) = flow.autograd.grad(first.sum(), x, retain_graph=True)
                wrong.append((second.numpy() != 6 * x.numpy()).any())
                runs.append(1)

        run(work, work)
        assert len(runs) == 400 and not any(wrong)

    def test_eight_graphs_that_share_leaves(self):
        leaves = leaves_of(0)
        expected = [sum(k * g for k in range(1, 9)) * 40 for g in grads_of(leaves, net(leaves))]

        def work(k):
            for _ in range(40):
                (net(leaves) * float(k)).backward()

        run(*[lambda k=k: work(k) for k in range(1, 9)])
        for x, grad in zip(leaves, expected, strict=True):
            assert (x.grad.numpy() == grad).all()

    @pytest.mark.slow(but=1)
    def test_independent_graphs(self):
        """All of it in every thread: forward, backward, views, writes, second order."""
        wrong, runs = [], []

        def numbers(seed):
            leaves = leaves_of(seed)
            grads = grads_of(leaves, net(leaves))
            x = integers((4,), seed)
            y = x * 1
            y[1:3].mul_(x[:2])
            (first,) = flow.autograd.grad((y * y).sum(), x, create_graph=True)
            grads.append(first.detach().numpy())
            grads.extend(grads_of([x], (first * first).sum()))
            return grads

        expected = [numbers(seed) for seed in range(6)]

        def work(seed):
            for _ in range(60):
                found = numbers(seed)
                wrong.extend(
                    seed
                    for f, e in zip(found, expected[seed], strict=True)
                    if f.tobytes() != e.tobytes()
                )
                runs.append(1)

        run(*[lambda s=s: work(s) for s in range(6)])
        assert len(runs) == 360 and not wrong

    def test_forward_in_one_thread_and_backward_in_another(self):
        graphs, wrong = queue.Queue(), []
        serial = [grads_of(leaves, net(leaves)) for leaves in map(leaves_of, range(5))]

        def forward():
            for k in range(150):
                leaves = leaves_of(k % 5)
                graphs.put((k % 5, leaves, net(leaves)))
            graphs.put(None)

        def backward():
            while (item := graphs.get()) is not None:
                seed, leaves, total = item
                total.backward()
                wrong.extend(
                    seed
                    for x, grad in zip(leaves, serial[seed], strict=True)
                    if x.grad.numpy().tobytes() != grad.tobytes()
                )
            graphs.put(None)

        run(forward, backward, backward)
        assert wrong == []

    def test_a_graph_that_is_freed_raises_in_all_but_one(self):
        """The one that comes first may be stopped as well: where the other one is ahead of it."""
        outcomes = []
        for _ in range(150):
            x = integers((2,), 0)
            y = x
            for _ in range(20):
                y = y * x
            total = y.sum()

            def work(total=total):
                try:
                    total.backward()
                    outcomes.append("ran")
                except flow.errors.FreedGraphError:
                    outcomes.append("freed")

            run(work, work)
        assert len(outcomes) == 300 and "freed" in outcomes


@pytest.mark.usefixtures("switching")
class TestFirstUse:
    """An object that is made on first use is made once, whoever comes first."""

    def test_hooks_are_not_lost(self):
        for _ in range(100):
            x = flow.ones(1, requires_grad=True)
            y = x * 2
            calls = []

            def register(y=y, x=x, calls=calls):
                y.register_hook(lambda g: calls.append("tensor"))
                x.register_post_accumulate_grad_hook(lambda leaf: calls.append("accumulated"))
                y.grad_fn.register_hook(lambda *grads: calls.append("node"))
                x.grad_fn_node.register_prehook(lambda grads: calls.append("leaf"))

            run(*[register] * 3)
            y.backward()
            assert sorted(calls) == sorted(["tensor", "accumulated", "node", "leaf"] * 3)

    def test_hooks_come_and_go_while_backward_runs(self):
        x = integers((3,), 0)
        y = x * 2
        total = (y * y).sum()
        stop = threading.Event()
        problems = []

        def churn():
            while not stop.is_set():
                handles = [t.register_hook(lambda g: None) for t in (x, y)]
                handles.append(y.grad_fn.register_prehook(lambda grads: None))
                for handle in handles:
                    handle.remove()

        def work():
            try:
                for _ in range(200):
                    (grad,) = flow.autograd.grad(total, x, retain_graph=True)
                    if (grad.numpy() != 8 * x.numpy()).any():
                        problems.append(grad)
            finally:
                stop.set()

        run(churn, work)
        assert problems == []

    def test_a_storage_that_two_nodes_saved_is_one(self):
        """Or a write would pass unseen by one of them, and its gradient be silently wrong."""
        for _ in range(300):
            x = flow.ones(2, requires_grad=True)
            w = flow.ones(2)
            products = []
            run(*[lambda: products.append(x * w)] * 2)
            w.add_(1)
            for product in products:
                with pytest.raises(flow.errors.StaleTensorError):
                    product.sum().backward()

    def test_a_view_is_a_view_when_its_op_is_new(self):
        op = flow.ops.op_expr.op_expr("transpose")
        x = flow.ones(2, 3)
        views = []
        for _ in range(100):
            op.forget()
            run(*[lambda: views.append(x.t())] * 3)
        assert len(views) == 300 and all(view._base is x for view in views)

    def test_writes_are_counted(self):
        x = flow.zeros(3)
        y = x.detach()

        def work():
            for _ in range(500):
                y.add_(1)

        run(work, work, work)
        assert x._version == 1500

    def test_the_meta_of_a_value_is_one(self):
        for _ in range(200):
            y = flow.ones(1, requires_grad=True) * 2
            metas = []
            run(*[lambda: metas.append(y.autograd_meta)] * 3)
            assert len(set(map(id, metas))) == 1


def test_an_op_opens_its_short_way_last(monkeypatch):
    """A thread that takes it must find that the op makes views."""
    op = flow.ops.op_expr.op_expr("transpose")
    op.forget()
    names = []
    monkeypatch.setattr(
        flow.ops.op_expr.OpExpr,
        "__setattr__",
        lambda self, name, value: names.append(name) or object.__setattr__(self, name, value),
        raising=False,
    )
    flow.ones(2, 3).t()
    assert names[-2:] == ["aliases", "run_on_cpu"] and op.aliases
