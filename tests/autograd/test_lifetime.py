"""Freed graphs, and what is released while backward runs."""

import contextlib
import math
import weakref

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine.graph_task import GraphTask
from oneflow_lite.errors import (
    FreedGraphError,
)
from tests.autograd.leaves import leaf


class TestFreedGraphs:
    def test_a_second_backward_raises_before_any_grad_changes(self):
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        y = x * w
        z = y.exp().sum()
        y.sum().backward()
        before = x.grad.numpy().copy(), w.grad.numpy().copy()
        with pytest.raises(FreedGraphError, match=r"mul_backward.*retain_graph=True"):
            z.backward()
        assert x.grad.numpy().tolist() == before[0].tolist()
        assert w.grad.numpy().tolist() == before[1].tolist()

    def test_it_raises_before_anything_is_run_or_freed(self):
        x, w = leaf(2.0), leaf(3.0)
        freed = x * x
        freed.backward()
        x.grad = None
        fresh = w.exp()
        calls = []
        fresh.register_hook(lambda g: calls.append(g))
        total = fresh * 2 + freed
        with pytest.raises(FreedGraphError):
            total.backward()
        assert calls == [] and w.grad is None and x.grad is None
        fresh.backward()  # its saved tensors are still there
        assert w.grad.item() == pytest.approx(math.exp(3))

    def test_retain_graph(self):
        x = leaf(2.0)
        y = x**3
        for n in range(1, 4):
            y.backward(retain_graph=True)
            assert x.grad.item() == 12 * n
        y.backward()
        with pytest.raises(FreedGraphError):
            y.backward()
        assert x.grad.item() == 48

    @pytest.mark.parametrize(
        ("retain_graph", "create_graph", "again"),
        [
            (None, False, False),
            (None, True, True),
            (True, False, True),
            (False, False, False),
            (True, True, True),
            (False, True, False),
        ],
    )
    def test_retain_graph_by_default_follows_create_graph(self, retain_graph, create_graph, again):
        x = leaf(2.0)
        y = x.exp()
        options = {"retain_graph": retain_graph, "create_graph": create_graph}
        flow.autograd.grad(y, x, **options)
        expectation = contextlib.nullcontext() if again else pytest.raises(FreedGraphError)
        with expectation:
            flow.autograd.grad(y, x)

    def test_nodes_that_save_nothing_may_be_walked_again(self):
        x = leaf([1.0, 2.0])
        y = (x + 1).sum()
        y.backward()
        y.backward()
        assert x.grad.tolist() == [2.0, 2.0]

    def test_a_freed_branch_that_grad_does_not_need(self):
        x, w = leaf(2.0), leaf(3.0)
        a = x * x
        a.backward()
        z = a * w
        assert flow.autograd.grad(z, w, retain_graph=True)[0].item() == 4
        with pytest.raises(FreedGraphError):
            flow.autograd.grad(z, x)
        z.backward(inputs=[w])
        assert w.grad.item() == 4

    def test_with_respect_to_a_freed_nodes_output(self):
        x = leaf(2.0)
        y = x * x
        y.backward()
        z = y * 3
        assert flow.autograd.grad(z, y)[0].item() == 3

    def test_grad_frees_what_it_ran_and_no_more(self):
        x, w = leaf(2.0), leaf(3.0)
        a, b = x.exp(), w.exp()
        z = a * b
        flow.autograd.grad(z, x)
        assert a.grad_fn.saved_tensors == ()
        assert len(b.grad_fn.saved_tensors) == 1
        b.backward()
        assert w.grad.item() == pytest.approx(math.exp(3))

    def test_a_node_to_which_nothing_arrived_is_freed_too(self):
        x = leaf([1.0, 2.0])

        y = x.exp()
        z = flow.relu(y) * 0 + y.detach()
        z.sum().backward()
        assert y.grad_fn.saved_tensors == ()


class TestReleaseWhileRunning:
    """A node's saved tensors go as soon as it ran, and a gradient as soon as it is used."""

    def test_saved_tensors(self):
        x = leaf(np.ones(4, np.float32))
        y = x.exp()
        later = (y * 1).exp()
        storage = weakref.ref(later._data)
        alive = []
        y.register_hook(lambda g: alive.append(storage() is not None))
        total = later.sum()
        del later
        total.backward()
        assert alive == [False]

    def test_saved_tensors_are_kept_with_retain_graph(self):
        x = leaf(np.ones(4, np.float32))
        y = x.exp()
        later = y.exp()
        storage = weakref.ref(later._data)
        alive = []
        y.register_hook(lambda g: alive.append(storage() is not None))
        total = later.sum()
        del later
        total.backward(retain_graph=True)
        assert alive == [True]

    def test_temporary_gradients(self):
        x = leaf(np.ones(4, np.float32))
        a = x * 2
        b = a * 3
        refs, alive = [], []
        b.register_hook(lambda g: refs.append(weakref.ref(g._data)))
        a.register_hook(lambda g: alive.append(refs[0]() is not None))
        (b * 4).sum().backward()
        assert alive == [False]

    def test_the_peak_of_a_chain_does_not_grow_with_its_length(self):
        import tracemalloc

        def extra(length):
            x = leaf(np.ones(10_000, np.float32))
            y = x
            for _ in range(length):
                y = y * 1.0
            total = y.sum()
            del y
            tracemalloc.start()
            total.backward()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return peak

        extra(5)
        assert extra(60) < extra(10) + 100_000  # one gradient is 40 kB

    def test_no_task_outlives_its_backward(self):
        import gc

        x = leaf(2.0)
        gc.collect()
        gc.disable()
        try:
            (x * x).exp().backward()
            assert not [o for o in gc.get_objects() if type(o) is GraphTask]
        finally:
            gc.enable()

    def test_a_failed_backward_leaves_no_task_once_its_error_is_gone(self):
        import gc

        x = leaf(2.0)
        handle = x.register_hook(lambda g: 1 / 0)
        gc.collect()
        gc.disable()
        try:
            with contextlib.suppress(ZeroDivisionError):
                (x * x).exp().backward()
            assert not [o for o in gc.get_objects() if type(o) is GraphTask]
        finally:
            gc.enable()
            handle.remove()
