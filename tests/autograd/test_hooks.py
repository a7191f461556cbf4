"""Hooks on gradients, and `current_grad` while they run."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    FlowError,
    GradientError,
    HookError,
)
from tests.autograd.leaves import leaf


class TestHooks:
    def test_a_hook_sees_the_complete_gradient_once(self):
        x = leaf(3.0)
        y = x * 2
        seen = []
        y.register_hook(lambda grad: seen.append(grad.item()))
        (y * y + y).backward()
        assert seen == [13.0]

    def test_on_a_leaf(self):
        x = leaf([1.0, 2.0])
        seen = []
        x.register_hook(lambda grad: seen.append(grad.tolist()))
        (x * x + x).sum().backward()
        assert seen == [[3.0, 5.0]]
        assert x.grad.tolist() == [3.0, 5.0]

    def test_replaces_the_gradient(self):
        x = leaf([1.0, 2.0])
        y = x * 2
        y.register_hook(lambda grad: grad * 10)
        x.register_hook(lambda grad: grad + 1)
        y.sum().backward()
        assert x.grad.tolist() == [21.0, 21.0]

    def test_run_in_order_each_seeing_what_the_one_before_returned(self):
        x = leaf(1.0)
        seen = []
        x.register_hook(lambda g: (seen.append(("a", g.item())), g * 2)[1])
        x.register_hook(lambda g: seen.append(("b", g.item())))
        x.register_hook(lambda g: (seen.append(("c", g.item())), g + 1)[1])
        (x * 3).backward()
        assert seen == [("a", 3.0), ("b", 6.0), ("c", 6.0)]
        assert x.grad.item() == 7

    def test_removal(self):
        x = leaf(1.0)
        first = x.register_hook(lambda g: g * 10)
        second = x.register_hook(lambda g: g * 2)
        first.remove()
        first.remove()
        (x * 3).backward()
        assert x.grad.item() == 6
        second.remove()
        (x * 3).backward()
        assert x.grad.item() == 9
        with x.register_hook(lambda g: g * 0):
            (x * 3).backward()
        (x * 3).backward()
        assert x.grad.item() == 12

    def test_one_removed_by_another_while_they_run(self):
        x = leaf(1.0)
        handles = []
        x.register_hook(lambda g: handles[0].remove())
        handles.append(x.register_hook(lambda g: g * 10))
        (x * 1).backward()
        (x * 1).backward()
        assert x.grad.item() in (11.0, 2.0)  # it may still run in the pass that removes it

    def test_in_autograd_grad(self):
        x = leaf(1.0)
        y = x * 3
        y.register_hook(lambda g: g * 10)
        x.register_hook(lambda g: g + 1)
        assert flow.autograd.grad(y, x)[0].item() == 31
        assert x.grad is None

    def test_a_captured_gradient_is_the_one_after_the_hooks(self):
        x = leaf(1.0)
        y = x * 3
        y.register_hook(lambda g: g * 10)
        gy, gx = flow.autograd.grad(y * 2, [y, x])
        assert (gy.item(), gx.item()) == (20, 60)

    def test_a_hook_before_retain_grad_and_one_after(self):
        x = leaf(1.0)
        y = x * 3
        y.retain_grad()
        y.register_hook(lambda g: g * 10)
        (y * 2).backward()
        assert y.grad.item() == 20
        assert x.grad.item() == 60

    def test_a_hook_with_history_under_create_graph(self):
        x = leaf(2.0)
        y = x * x
        y.register_hook(lambda g: g * x)
        (g,) = flow.autograd.grad(y, x, create_graph=True)  # 2x · x
        assert g.item() == 8
        assert flow.autograd.grad(g, x)[0].item() == 8

    def test_nothing_is_recorded_in_a_hook_without_create_graph(self):
        x = leaf(2.0)
        modes, results = [], []

        def hook(g):
            modes.append(flow.is_grad_enabled())
            results.append((x * g).requires_grad)

        x.register_hook(hook)
        (x * x).backward()
        flow.autograd.grad(x * x, x, create_graph=True)
        assert modes == results == [False, True]

    def test_an_error_keeps_its_type_and_names_the_op(self):
        class Mine(Exception):
            pass

        x = leaf(2.0)
        y = x.exp()

        def hook(grad):
            raise Mine("from the hook")

        handle = y.register_hook(hook)
        with pytest.raises(Mine, match="from the hook") as caught:
            (y * 2).backward(retain_graph=True)
        assert any("exp" in note for note in getattr(caught.value, "__notes__", []))
        assert flow.is_grad_enabled()
        assert x.grad is None
        handle.remove()
        (y * 2).backward()
        assert x.grad.item() == pytest.approx(2 * math.exp(2))

    @pytest.mark.parametrize("bad", [3.0, "text", np.ones(2, np.float32), (1,)])
    def test_a_hook_that_returns_no_tensor(self, bad):
        x = leaf([1.0, 2.0])
        x.register_hook(lambda g: bad)
        with pytest.raises(FlowError, match="hook"):
            (x * 2).sum().backward()
        assert x.grad is None

    @pytest.mark.parametrize("bad", [flow.ones(3), flow.ones(2, dtype=flow.float64)])
    def test_a_hook_that_returns_another_shape_or_dtype(self, bad):
        x = leaf([1.0, 2.0])
        x.register_hook(lambda g: bad)
        with pytest.raises(HookError, match=r"shape|dtype"):
            (x * 2).sum().backward()
        assert x.grad is None

    def test_without_a_gradient(self):
        with pytest.raises(GradientError, match="register_hook"):
            flow.ones(1).register_hook(lambda g: g)

    def test_a_hook_that_keeps_the_gradient_keeps_what_it_saw(self):
        x = leaf([1.0, 2.0])
        kept = []
        x.register_hook(lambda g: kept.append(g))
        (x * 2).sum().backward()
        (x * 2).sum().backward()
        assert [g.tolist() for g in kept] == [[2.0, 2.0], [2.0, 2.0]]
        assert x.grad.tolist() == [4.0, 4.0]
        x.grad.zero_()
        assert kept[0].tolist() == kept[1].tolist() == [2.0, 2.0]

    def test_a_hook_that_keeps_the_gradient_of_a_non_leaf(self):
        x = leaf([1.0, 2.0])
        y = x + 0
        kept = []
        y.register_hook(lambda g: kept.append(g))
        (y + y).sum().backward()
        x.grad.zero_()
        assert kept[0].tolist() == [2.0, 2.0]

    def test_a_hook_that_returns_a_tensor_it_keeps(self):
        x, mine = leaf([1.0, 2.0]), flow.tensor([5.0, 6.0])
        x.register_hook(lambda g: mine)
        (x * 2).sum().backward()
        (x * 2).sum().backward()
        assert x.grad.tolist() == [10.0, 12.0]
        assert mine.tolist() == [5.0, 6.0]

    def test_hooks_do_not_run_on_what_another_task_needs_not(self):
        x, w = leaf(1.0), leaf(2.0)
        seen = []
        w.register_hook(lambda g: seen.append(g.item()))
        flow.autograd.grad(x * w, x)
        assert seen == []

    def test_an_in_place_write_leaves_the_hook_with_the_old_value(self):
        x = leaf([1.0, 2.0])
        y = x * 2
        seen = []
        y.register_hook(lambda g: seen.append(("before", g.tolist())))
        y.mul_(3)
        y.register_hook(lambda g: seen.append(("after", g.tolist())))
        y.sum().backward()
        assert seen == [("after", [1.0, 1.0]), ("before", [3.0, 3.0])]


class TestCurrentGrad:
    def test_is_seen_in_a_hook_while_the_task_sums(self):
        x = leaf([1.0, 2.0])
        y = x * 2
        partial = []

        def hook(grad):
            current = x.autograd_meta.current_grad
            partial.append(None if current is None else current.tolist())

        y.register_hook(hook)
        # The later branch runs first: its part has arrived at x when the hook on y runs.
        (y + x * 10).sum().backward()
        assert partial == [[10.0, 10.0]]
        assert x.autograd_meta.current_grad is None
        assert x.grad.tolist() == [12.0, 12.0]

    def test_of_the_value_itself_in_its_own_hook(self):
        x = leaf([1.0, 2.0])
        y = x * 2
        seen = []
        y.register_hook(lambda g: seen.append(y.autograd_meta.current_grad.tolist()))
        (y * 3).sum().backward()
        assert seen == [[3.0, 3.0]]
        assert y.autograd_meta.current_grad is None

    def test_a_nested_task_sees_its_own_sum(self):
        x = leaf(2.0)
        y = x * 3
        seen = []

        def hook(grad):
            z = leaf(1.0)
            inner = []
            z.register_hook(lambda g: inner.append(y.autograd_meta.current_grad))
            with flow.enable_grad():
                (z * 5).backward()
            seen.append((inner, z.grad.item(), y.autograd_meta.current_grad.item()))

        y.register_hook(hook)
        (y * 7).backward()
        assert seen == [([None], 5.0, 7.0)]
        assert x.grad.item() == 21

    def test_is_none_after_an_error(self):
        x = leaf(2.0)
        y = x * 3
        y.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            (y * x).backward()
        assert x.autograd_meta.current_grad is None
        assert y.autograd_meta.current_grad is None
