"""Backward inside a backward: on other graphs and the same one, in hooks and rules, very deep."""

import contextlib
import gc
import signal
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine import workers
from oneflow_lite.errors import AnomalyError, FreedGraphError, NestedBackwardError
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS
from oneflow_lite.tensors.mode import local
from tests.autograd.leaves import leaf

DEEP = 2000


@pytest.fixture(autouse=True)
def nothing_left():
    """No thread and no state outlives a test."""
    yield
    assert [t for t in threading.enumerate() if "nested" in t.name] == []
    assert local.task is None and flow.is_grad_enabled()


@pytest.fixture
def op():
    """Registers an op `x * 2` whose rule first calls a function."""
    name = "calls_back_of_a_test"

    def register(function):
        @flow.register_op(name)
        def double(xp, x):
            return x * 2

        @double.grad()
        def double_grad(F, ctx, dy):
            function()
            return dy * 2

        return double

    yield register
    for registry in (FUNCTORS, GRAD_FUNCS, KERNELS):
        if name in set(registry):
            registry.remove(name)


def on_tensor(y, function):
    y.register_hook(lambda grad: function())


def on_leaf(y, function):
    y.grad_fn.edges[0][0].output_meta(0)
    (leaf_node, _) = y.grad_fn.edges[0]
    leaf_node.register_prehook(lambda grads: function())


def on_node(y, function):
    y.grad_fn.register_hook(lambda in_grads, out_grads: function())


def before_node(y, function):
    y.grad_fn.register_prehook(lambda out_grads: function())


PLACES = [on_tensor, on_leaf, on_node, before_node]


class TestWhere:
    @pytest.mark.parametrize("place", PLACES)
    def test_on_another_graph(self, place):
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        y = x * 2

        def inner():
            with flow.enable_grad():
                (w * w).sum().backward()

        place(y, inner)
        (y * y).sum().backward()
        assert w.grad.tolist() == [6.0, 8.0] and x.grad.tolist() == [8.0, 16.0]

    @pytest.mark.parametrize("place", PLACES)
    def test_on_the_same_graph(self, place):
        x = leaf([1.0, 2.0])
        y = x * x
        found = []

        def inner():
            if not found:
                found.append(None)
                found[0] = flow.autograd.grad(y, x, flow.ones(2), retain_graph=True)[0].tolist()

        place(y, inner)
        (y * 3).sum().backward(retain_graph=True)
        assert found == [[2.0, 4.0]] and x.grad.tolist() == [6.0, 12.0]

    def test_in_a_post_accumulate_hook(self):
        x, w = leaf([1.0]), leaf([2.0])
        z = w * w
        x.register_post_accumulate_grad_hook(lambda leaf: z.backward())
        (x * 3).backward()
        assert w.grad.tolist() == [4.0] and x.grad.tolist() == [3.0]

    def test_in_a_rule(self, op):
        w = leaf([3.0])

        def inner():
            with flow.enable_grad():
                (w * w).backward()

        double = op(inner)
        x = leaf([1.0])
        double(double(x)).backward()
        assert x.grad.tolist() == [4.0] and w.grad.tolist() == [12.0]

    def test_in_a_recorded_pass(self, op):
        w = leaf([3.0])
        z = w * w
        double = op(lambda: z.backward(retain_graph=True))
        x = leaf([1.0])
        (dx,) = flow.autograd.grad(double(x) * x, x, create_graph=True)
        assert w.grad.tolist() == [6.0]
        (ddx,) = flow.autograd.grad(dx, x)
        assert w.grad.tolist() == [12.0]
        assert dx.tolist() == [4.0] and ddx.tolist() == [4.0]

    def test_sums_of_the_two_do_not_meet(self):
        """The outer task has part of the sums for x and y when the inner one sums for them too."""
        x = leaf([1.0, 2.0])
        y = x * 3
        a, b = y * 5, y * 7
        seen = []

        def inner(grad):
            if not seen:
                seen.append(y.autograd_meta.current_grad.tolist())
                y.backward(flow.ones(2), retain_graph=True)
                seen.append(y.autograd_meta.current_grad.tolist())

        a.register_hook(inner)
        (a + b).sum().backward()
        assert seen == [[7.0, 7.0]] * 2
        assert x.grad.tolist() == [39.0, 39.0]

    def test_an_inner_one_that_frees_what_the_outer_needs(self):
        x = leaf([1.0])
        y = x.exp()
        z = y * 2
        z.register_hook(lambda g: y.backward())
        with pytest.raises(FreedGraphError, match=r"exp_backward.*retain_graph=True"):
            z.backward()
        assert x.grad.item() == pytest.approx(np.e)  # of the inner one

    def test_an_inner_one_that_frees_the_node_that_runs(self):
        x = leaf([1.0])
        y = x.exp()
        inside = []

        def once(grad):
            if not inside:
                inside.append(True)
                y.backward()

        y.register_hook(once)
        with pytest.raises(FreedGraphError, match="exp_backward"):
            y.backward()
        assert x.grad.item() == pytest.approx(np.e)  # of the inner one

    def test_grad_of_a_gradient_in_a_hook(self):
        x = leaf([2.0])
        found = []

        def inner(grad):
            with flow.enable_grad():
                (first,) = flow.autograd.grad(x**3, x, create_graph=True)
                found.append(flow.autograd.grad(first, x)[0].item())

        y = x * 2
        y.register_hook(inner)
        y.backward()
        assert found == [12.0] and x.grad.item() == 2.0


def chain(depth, leaf_tensor, action=lambda: None, frames=0):
    """Run a backward that has another one in its hook, and so on `depth` deep."""

    def step(n):
        y = leaf_tensor * 1.0
        y.register_hook(lambda grad: wrapped(n - 1, frames) if n else action())
        y.sum().backward()

    def wrapped(n, more):
        if more:
            return wrapped(n, more - 1)
        with flow.enable_grad():
            return step(n)

    step(depth)


class TestDeep:
    def test_from_the_main_thread(self):
        x = leaf([1.0])
        chain(DEEP, x)
        assert x.grad.item() == DEEP + 1

    def test_from_a_thread(self):
        x, problems = leaf([1.0]), []

        def work():
            try:
                chain(DEEP, x)
            except BaseException as error:
                problems.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(120)
        assert not problems and x.grad.item() == DEEP + 1

    def test_with_frames_of_users_in_between(self):
        x = leaf([1.0])
        chain(DEEP, x, frames=20)
        assert x.grad.item() == DEEP + 1

    def test_of_a_caller_that_is_deep_already(self):
        x = leaf([1.0])

        def down(n):
            if n:
                return down(n - 1)
            chain(100, x)
            return None

        used, frame = 0, sys._getframe()
        while frame is not None:
            used, frame = used + 1, frame.f_back
        down(sys.getrecursionlimit() - used - 150)
        assert x.grad.item() == 101

    def test_on_the_same_graph(self):
        x = leaf([1.0])
        y = x * 1.0
        z = y * 2.0
        left = [300]

        def inner(grad):
            if left[0]:
                left[0] -= 1
                z.backward(retain_graph=True)

        y.register_hook(inner)
        z.backward(retain_graph=True)
        assert x.grad.item() == 2.0 * 301

    def test_in_rules(self, op):
        x = leaf([1.0])
        left = [300]

        def inner():
            if left[0]:
                left[0] -= 1
                with flow.enable_grad():
                    double(x).backward()

        double = op(inner)
        double(x).backward()
        assert x.grad.item() == 2.0 * 301

    def test_threads_at_once(self):
        x = leaf([1.0])
        threads = [threading.Thread(target=chain, args=(300, x)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert x.grad.item() == 4 * 301.0

    def test_without_end(self, monkeypatch):
        """A hook that calls the backward that it is part of ends in an error."""
        monkeypatch.setattr(workers, "MAX_NESTED", 150)
        x = leaf([1.0])
        y = x * 2
        y.register_hook(lambda grad: y.backward())
        with pytest.raises(RecursionError, match="150 backward calls") as caught:
            y.backward()
        assert isinstance(caught.value, NestedBackwardError)

    def test_few_threads_do_it(self):
        x, most = leaf([1.0]), []
        chain(600, x, lambda: most.append(threading.active_count()))
        assert most[0] - threading.active_count() <= 30


class TestErrors:
    def test_arrive_with_type_and_a_short_note(self):
        x = leaf([1.0])

        def fail():
            raise KeyError("deep down")

        with pytest.raises(KeyError, match="deep down") as caught:
            chain(1500, x, fail)
        assert caught.value.__notes__ == ["in the backward pass, at mul_backward"]
        assert x.grad is None

    def test_notes_name_each_kind_of_node_once(self):
        x, w = leaf([1.0]), leaf([1.0])
        y, z = x.exp(), w.sin()

        def inner(grad):
            with flow.enable_grad():
                z.backward()

        y.register_hook(inner)
        z.register_hook(lambda grad: [][0])
        with pytest.raises(IndexError) as caught:
            (y * 1).backward()
        names = ["sin_backward", "exp_backward"]
        assert caught.value.__notes__ == [f"in the backward pass, at {name}" for name in names]

    def test_that_a_hook_catches(self):
        x, w = leaf([1.0]), leaf([1.0])
        z = w * 2
        z.register_hook(lambda grad: 1 / 0)

        def inner(grad):
            with contextlib.suppress(ZeroDivisionError):
                z.backward()

        y = x * 3
        y.register_hook(inner)
        y.backward()
        assert x.grad.item() == 3.0 and w.grad is None

    def test_nothing_holds_a_graph_after_one(self):
        x = leaf([1.0])
        nodes = []

        def fail():
            with flow.enable_grad():
                y = x.exp()
            nodes.append(weakref.ref(y.grad_fn))
            raise KeyError

        gc.collect()
        gc.disable()
        try:
            with contextlib.suppress(KeyError):
                chain(200, x, fail)
            assert nodes[0]() is None
        finally:
            gc.enable()

    @pytest.mark.parametrize("depth", [0, 1, 200])
    def test_an_interrupt_ends_all(self, depth):
        """Ctrl-C reaches the thread that works, and then all that wait for it."""
        x, ended = leaf([1.0]), []
        # A shell that starts the tests in the background has them ignore the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)

        def wait():
            try:
                signal.raise_signal(signal.SIGINT)
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline:
                    time.sleep(0.01)
            finally:
                ended.append(True)

        try:
            with pytest.raises(KeyboardInterrupt):
                chain(depth, x, wait)
        finally:
            signal.signal(signal.SIGINT, before)
        assert ended == [True] and x.grad is None
        (x * 2).backward()
        assert x.grad.item() == 2.0


class TestNewThread:
    """The thread that takes over when calls nest deep has all that belonged to the caller."""

    @pytest.fixture(autouse=True)
    def at_once(self, monkeypatch):
        monkeypatch.setattr(workers, "MAX_DEPTH", 0)

    def inside(self, look):
        """Call a function in a backward inside a backward."""
        x, w = leaf([1.0]), leaf([2.0])
        y = x * 1
        result = []

        def deep(grad):
            assert threading.current_thread().name == "oneflow_lite.autograd nested"
            result.append(look(w))

        def inner(grad):
            with flow.enable_grad():
                z = w * 2
                z.register_hook(deep)
                z.backward()

        y.register_hook(inner)
        y.backward()
        return result[0]

    def test_grad_mode_is_that_of_the_pass(self):
        assert self.inside(lambda w: flow.is_grad_enabled()) is False

    def test_interpreters(self):
        class Names(flow.Interpreter):
            def __init__(self):
                self.seen = []

            def apply(self, op_expr, inputs, attrs):
                self.seen.append((op_expr.op_type_name, threading.current_thread().name))
                return self.inner.apply(op_expr, inputs, attrs)

        with flow.push_interpreter(Names()) as names:
            self.inside(lambda w: w.cos())
        assert ("cos", "oneflow_lite.autograd nested") in names.seen

    def test_anomaly_mode(self):
        def look(w):
            with flow.enable_grad():
                y = flow.sqrt(w * 0) * 0
                y.backward()

        with pytest.raises(AnomalyError, match="sqrt_backward"), flow.autograd.detect_anomaly():
            self.inside(look)

    def test_saved_tensors_hooks(self):
        packed = []

        def pack(tensor):
            packed.append(threading.current_thread().name)
            return tensor

        def look(w):
            with flow.enable_grad():
                return w * w

        with flow.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            self.inside(look)
        assert packed[-1] == "oneflow_lite.autograd nested"

    def test_context_variables(self):
        with np.errstate(divide="raise"):
            assert self.inside(lambda w: np.geterr()["divide"]) == "raise"
        assert np.geterr()["divide"] != "raise"

    def test_depth(self):
        assert self.inside(lambda w: local.task.depth) == 1


def test_no_thread_for_calls_that_are_not_deep():
    x, names = leaf([1.0]), set()
    chain(workers.MAX_DEPTH // 2, x, lambda: names.add(threading.current_thread()))
    assert names == {threading.main_thread()}
