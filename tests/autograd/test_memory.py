"""No cycles, no leaks, and a chain of a million nodes; all with the garbage collector off."""

import contextlib
import gc
import subprocess
import sys
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine.graph_task import GraphTask


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.freeze()  # what other tests have left would be looked at by every collection here
    gc.disable()
    yield
    gc.enable()


def ours_alive():
    """Objects of the package's classes that only the collector could free."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return [o for o in gc.garbage if type(o).__module__.startswith("oneflow_lite")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def net():
    rng = np.random.default_rng(0)
    sizes = [(4, 8), (8,), (8, 8), (8,), (8, 1), (1,)]
    return [flow.tensor(rng.normal(size=s) * 0.5, requires_grad=True) for s in sizes]


def forward(params, x):
    w1, b1, w2, b2, w3, b3 = params
    return (flow.tanh(flow.relu(x @ w1 + b1) @ w2 + b2)) @ w3 + b3


X = flow.tensor(np.random.default_rng(1).normal(size=(16, 4)))
Y = flow.tensor(np.random.default_rng(2).normal(size=(16, 1)))


def train_step(params):
    loss = ((forward(params, X) - Y) ** 2).mean()
    for p in params:
        p.grad = None
    loss.backward()
    with flow.no_grad():
        for p in params:
            p.sub_(p.grad * 0.01)
    return loss


def second_order_step(params):
    x = X.detach().requires_grad_()
    y = forward(params, x).sum()
    (g,) = flow.autograd.grad(y, x, create_graph=True)
    (h,) = flow.autograd.grad((g * g).sum(), x, create_graph=True)
    grads = flow.autograd.grad((h * h).sum() + y, params, allow_unused=True)
    return [g for g in grads if g is not None]


def hooked_step(params):
    y = forward(params, X)
    y.retain_grad()
    handle = y.register_hook(lambda g: g * 1)
    y.sum().backward()
    handle.remove()
    assert y.grad is not None


def in_place_step(params):
    y = forward(params, X)
    y.mul_(2).add_(1)
    y.exp_()
    y.sum().backward()


def view_step(params):
    y = forward(params, X)
    (y[0] + y.t()[0, 1] + y.reshape(-1)[2]).sum().backward()


def retained_step(params):
    y = forward(params, X).sum()
    y.backward(retain_graph=True)
    y.backward()


def inspected_step(params):
    y = forward(params, X).sum()
    node = y.grad_fn
    assert node.next_functions and node.output_meta_data and node.input_meta_data
    assert node.saved_tensors is not None and node.backward_fn is not None
    repr(y)


def forgotten_step(params):
    forward(params, X).sum()  # a graph that is never walked


def failed_step(params):
    y = forward(params, X)
    with pytest.raises(RuntimeError):
        y.backward()
    with pytest.raises(RuntimeError):
        y.sum().backward(flow.ones(3))


def failed_hook_step(params):
    with flow.enable_grad():
        y = forward(params, X).sum()
    y.register_hook(lambda g: 1 / 0)
    with contextlib.suppress(ZeroDivisionError):
        y.backward()


def failed_deep_step(params):
    with flow.enable_grad():
        y = forward(params, X).sum()
    y.register_hook(lambda g: failed_hook_step(params) or {}["missing"])
    with contextlib.suppress(KeyError):
        y.backward()


def node_hooks_step(params):
    y = forward(params, X)
    y.grad_fn.register_hook(lambda in_grads, out_grads: None)
    y.grad_fn.register_prehook(lambda out_grads: out_grads)
    handle = params[0].register_post_accumulate_grad_hook(lambda leaf: None)
    y.sum().backward()
    handle.remove()


def several_roots_step(params):
    y = forward(params, X)
    z = forward(params, X)
    flow.autograd.backward([y.sum(), z.sum(), y[0, 0]], [Y[0, 0], None, None])


def pruned_step(params):
    y = forward(params, X)
    flow.autograd.grad(y.sum(), params[:1], retain_graph=True)
    y.sum().backward(inputs=params[3:])


def nested_step(params):
    y = forward(params, X)

    def hook(grad):
        with flow.enable_grad():
            second_order_step(params)

    y.register_hook(hook)
    y.sum().backward()


def nested_deep_step(params, depth=80):
    with flow.enable_grad():
        y = (params[1] * 2).sum()
    if depth:
        y.register_hook(lambda g: nested_deep_step(params, depth - 1))
    y.backward()


def anomaly_step(params):
    with flow.autograd.detect_anomaly():
        train_step(params)
        second_order_step(params)


def packed_step(params):
    with flow.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        train_step(params)


STEPS = {
    f.__name__: f
    for f in (
        train_step,
        second_order_step,
        hooked_step,
        in_place_step,
        view_step,
        retained_step,
        inspected_step,
        forgotten_step,
        failed_step,
        failed_hook_step,
        failed_deep_step,
        node_hooks_step,
        several_roots_step,
        pruned_step,
        nested_step,
        nested_deep_step,
        anomaly_step,
        packed_step,
    )
}


class TestNoGarbage:
    @pytest.mark.parametrize("queued", [False, True], ids=["in order", "queued"])
    @pytest.mark.parametrize("step", STEPS)
    def test_nothing_is_left_for_the_collector(self, step, queued, monkeypatch):
        monkeypatch.setattr(GraphTask, "always_queued", queued)
        params = net()
        STEPS[step](params)
        gc.collect()
        for _ in range(3):
            STEPS[step](params)
        assert ours_alive() == []

    @pytest.mark.slow
    @pytest.mark.parametrize(("step", "times"), [("train_step", 1000), ("second_order_step", 300)])
    def test_memory_is_flat(self, step, times):
        params = net()
        for _ in range(20):
            STEPS[step](params)
        gc.collect()
        tracemalloc.start()
        try:
            STEPS[step](params)
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(times):
                STEPS[step](params)
            assert ours_alive() == []  # this also empties the interpreter's list of free tuples
            after = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert after - before < 5_000  # one step's graph is larger than that

    def test_training_learns_while_it_leaks_nothing(self):
        params = net()
        first = train_step(params).item()
        for _ in range(200):
            last = train_step(params).item()
        assert last < first * 0.7

    def test_dropping_the_last_reference_frees_the_graph_at_once(self):
        x = flow.ones(4, requires_grad=True)
        y = (x * 2).exp()
        z = y.sum()
        node, array = weakref.ref(y.grad_fn), weakref.ref(y.numpy())
        del y
        assert node() is not None and array() is not None
        del z
        assert node() is None and array() is None

    def test_a_tensor_that_saved_itself(self):
        x = flow.ones(4, requires_grad=True)
        y = x.exp()
        node = weakref.ref(y.grad_fn)
        assert y.grad_fn.saved_tensors[0].tolist() == y.tolist()
        del y
        assert node() is None

    def test_gradients_with_history_are_freed(self):
        x = flow.ones(4, requires_grad=True)
        (g,) = flow.autograd.grad((x**3).sum(), x, create_graph=True)
        node = weakref.ref(g.grad_fn)
        del g
        assert node() is None

    def test_hooks_die_with_their_tensor(self):
        class Hook:
            def __call__(self, grad):
                return None

        hook = Hook()
        alive = weakref.ref(hook)
        x = flow.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(hook)
        del hook
        y.sum().backward()
        assert alive() is not None
        del y
        assert alive() is None

    def test_a_leaf_is_freed_with_its_gradient(self):
        x = flow.ones(4, requires_grad=True)
        (x * x).sum().backward()
        meta, array = weakref.ref(x.autograd_meta), weakref.ref(x.grad.numpy())
        del x
        assert meta() is None and array() is None

    def test_views(self):
        x = flow.ones(4, 4, requires_grad=True)
        y = x * 2
        view = y[0][1:]
        array = weakref.ref(y.numpy())
        del y
        assert array() is not None
        del view
        assert array() is None

    def test_an_error_that_is_kept_does_not_keep_the_graph_it_did_not_touch(self):
        x = flow.ones(2, requires_grad=True)
        y = (x * x).sum()
        y.backward()
        try:
            y.backward()
        except RuntimeError as error:
            kept = error.with_traceback(None)
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None, kept

    @pytest.mark.parametrize("queued", [False, True], ids=["in order", "queued"])
    @pytest.mark.parametrize("nested", [0, 1, 100])
    def test_an_error_whose_traceback_is_gone_keeps_nothing(self, nested, queued, monkeypatch):
        monkeypatch.setattr(GraphTask, "always_queued", queued)
        nodes = []

        def step(left):
            with flow.enable_grad():
                x = flow.ones(2, requires_grad=True)
                y = x.exp()
            nodes.append(weakref.ref(y.grad_fn))
            y.register_hook(lambda g: step(left - 1) if left else 1 / 0)
            y.backward(flow.ones(2))

        try:
            step(nested)
        except ZeroDivisionError as error:
            kept = error.with_traceback(None)
        assert len(nodes) == nested + 1
        assert [n() for n in nodes] == [None] * len(nodes), kept


def test_backward_with_create_graph_warns_of_its_cycle():
    x = flow.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="cycle"):
        (x**3).sum().backward(create_graph=True)
    x.grad = None  # breaks it
    del x
    assert ours_alive() == []


def test_other_calls_do_not_warn():
    x = flow.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x**3).sum().backward()
        flow.autograd.grad((x**3).sum(), x, create_graph=True)


def chain(length, x):
    y = x
    for _ in range(length):
        y = y + x
    return y


class TestLongChains:
    @pytest.mark.slow
    def test_a_node_costs_at_most_1_kb(self):
        length = 8_000
        x = flow.ones((), requires_grad=True)
        one = flow.ones(())
        for build in (lambda y: y + x, lambda y: y + one, lambda y: y * one, lambda y: y.neg()):
            y = build(x)
            tracemalloc.start()
            try:
                before = tracemalloc.get_traced_memory()[0]
                for _ in range(length):
                    y = build(y)
                used = tracemalloc.get_traced_memory()[0] - before
                tracemalloc.reset_peak()
                y.backward()
                peak = tracemalloc.get_traced_memory()[1] - before
            finally:
                tracemalloc.stop()
            assert used / length <= 1000
            assert peak / length <= 1500  # with the queue of the backward pass
            del y

    def test_higher_orders_of_a_chain(self):
        x = flow.tensor(1.0, dtype=flow.float64, requires_grad=True)
        y = x
        for _ in range(5_000):
            y = (y * x) * (1 / x.detach())
        (g,) = flow.autograd.grad(y, x, create_graph=True)
        assert g.item() == pytest.approx(5_001)
        (h,) = flow.autograd.grad(g, x)
        assert h.item() == pytest.approx(5_001 * 5_000)

    @pytest.mark.slow
    def test_a_million_nodes_at_the_default_recursion_limit(self):
        code = """
import gc, sys
gc.disable()
import oneflow_lite as flow
assert sys.getrecursionlimit() == 1000
x = flow.ones((), dtype=flow.float64, requires_grad=True)
y = x
for _ in range(1_000_000):
    y = y + x
assert y.item() == 1_000_001
y.backward()
assert x.grad.item() == 1_000_001
del y
print("freed")
"""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "freed\n"

    def test_a_wide_and_deep_graph(self):
        x = flow.tensor(1.0, dtype=flow.float64, requires_grad=True)
        a, b = x, x * 1
        for _ in range(20_000):
            a, b = (a + b) * 0.5, (a - b) * 0.5
        (a + b).backward()
        assert x.grad is not None
