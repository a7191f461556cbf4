"""Hooks of every kind: their order as docs/hooks.md has it, what they get, and what they may do."""

from __future__ import annotations

import contextlib
import gc
import re
import threading
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, GradientError, HookError
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS
from tests.autograd.leaves import leaf

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hooks.md"
ROW = re.compile(r"^\| `((?:backward|grad)\(.*?\))` \| `([^`]*)` \| (?:same|`([^`]*)`) \|$", re.M)
ROWS = ROW.findall(PAGE.read_text("utf-8"))


def node_of(lib: Any, tensor: Any) -> Any:
    """Return the node of a tensor, also of a leaf."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    if lib is flow:
        return tensor.grad_fn_node
    return tensor.view_as(tensor).grad_fn.next_functions[0][0]


def events_of(lib: Any, call: str) -> list[str]:
    """Make the graph of the page, run one call, and return what ran."""
    events: list[str] = []
    x = lib.tensor([1.0, 2.0], requires_grad=True)

    def unpack(packed: Any) -> Any:
        note("y.gradient")
        return packed

    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), unpack):
        y = x.exp()
    y.retain_grad()
    values = {"x": x, "y": y}
    filled: set[str] = set()

    def note(event: str = "") -> None:
        for name, what in (("y", "y.retain_grad"), ("x", "x.accumulate")):
            if values[name].grad is not None and name not in filled:
                filled.add(name)
                events.append(what)
        if event:
            events.append(event)

    nodes = []
    for name, value in values.items():
        value.register_hook(lambda g, name=name: note(f"{name}.hook"))
        node = node_of(lib, value)
        node.register_prehook(lambda out_grads, name=name: note(f"{name}.prehook"))
        node.register_hook(lambda in_grads, out_grads, name=name: note(f"{name}.node_hook"))
        nodes.append(node)
    x.register_post_accumulate_grad_hook(lambda t: note("x.post_accumulate"))
    names = {"x": x, "y": y, "out": y.sum(), "one": lib.ones(2)}
    names |= {"backward": lib.autograd.backward, "grad": lib.autograd.grad}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # backward(create_graph=True) makes a cycle
        eval(call, names)
    note()
    x.grad = y.grad = None
    return events


class TestTheTable:
    def test_is_there(self):
        assert len(ROWS) == 12

    @pytest.mark.parametrize(("call", "ours", "theirs"), ROWS, ids=[row[0] for row in ROWS])
    def test_a_row_holds(self, call, ours, theirs):
        assert events_of(flow, call) == ours.split()

    @pytest.mark.parametrize(("call", "ours", "theirs"), ROWS, ids=[row[0] for row in ROWS])
    def test_a_row_says_the_truth_of_pytorch(self, call, ours, theirs):
        torch = pytest.importorskip("torch")
        assert events_of(torch, call) == (theirs or ours).split()


def values_of(lib: Any, call: str) -> Any:
    """Run a call on a graph whose hooks all change what they get; return all numbers seen."""
    seen: list[Any] = []

    def number(t: Any) -> Any:
        return None if t is None else round(float(t.detach().sum()), 3)

    def note(name: str, *grads: Any) -> None:
        seen.append((name, *[tuple(map(number, g)) for g in grads]))

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    w = lib.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    out = y.sin().sum()
    nodes = []
    for name, value in (("x", x), ("w", w), ("y", y)):
        value.register_hook(lambda g, name=name: note(f"{name}.hook", [g]) or g * 2)
        node = node_of(lib, value)
        node.register_prehook(
            lambda gs, name=name: note(f"{name}.prehook", gs) or tuple(g * 3 for g in gs)
        )
        node.register_hook(lambda gi, go, name=name: note(f"{name}.node_hook", gi, go))
        nodes.append(node)
    y.grad_fn.register_hook(lambda gi, go: tuple(None if g is None else g * 5 for g in gi))
    names = {"x": x, "w": w, "y": y, "out": out, "grad": lib.autograd.grad, "one": lib.ones(2)}
    result = eval(call, names)
    grads = [number(t.grad) for t in (x, w)]
    # A leaf's turn comes as soon as it can in PyTorch, and at the end here.
    leaves = sorted(e for e in seen if e[0][0] in "xw")
    others = [e for e in seen if e[0][0] not in "xw"]
    return others, leaves, grads, result and [number(g) for g in result]


@pytest.mark.parametrize(
    "call",
    [
        "out.backward()",
        "out.backward(inputs=[x])",
        "out.backward(inputs=[x, w])",
        "out.backward(inputs=[y, w])",
        "y.backward(one)",
        "x.backward(one)",
        "grad(out, [x])",
        "grad(out, [w, x])",
        "grad(out, [w, x], create_graph=True)",
        "grad(out, [y])",
        "grad([out, y], [x], [None, one])",
        "grad([y, x], [x], [one, one])",
    ],
)
def test_what_hooks_see_and_return_is_what_pytorchs_do(call):
    torch = pytest.importorskip("torch")
    assert values_of(flow, call) == values_of(torch, call)


class TestNodeHooks:
    def test_a_gradient_that_the_call_does_not_need_is_none(self):
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        y = x * w
        seen = []
        y.grad_fn.register_hook(lambda gi, go: seen.append([g is None for g in gi]))
        flow.autograd.grad(y.sum(), w, retain_graph=True)
        y.sum().backward(inputs=[x], retain_graph=True)
        y.sum().backward()
        assert seen == [[True, False], [False, True], [False, False]]

    def test_a_broadcast_gradient_has_the_shape_of_the_input(self):
        x, w = leaf(np.ones((2, 3), np.float32)), leaf([1.0, 2.0, 3.0])
        y = x * w
        shapes = []
        y.grad_fn.register_hook(lambda gi, go: shapes.append([g.shape for g in (*gi, *go)]))
        y.sum().backward()
        assert shapes == [[(2, 3), (3,), (2, 3)]]
        assert w.grad.tolist() == [2.0, 2.0, 2.0]

    def test_several_outputs_of_which_one_gets_no_gradient(self):
        class Both(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                return x * 2, w * 3

            @staticmethod
            def backward(ctx, dx, dw):
                seen.append((dx.tolist(), dw.tolist()))
                return dx * 2, dw * 3

        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        seen: list[Any] = []
        first, second = Both.apply(x, w)
        first.grad_fn.register_prehook(lambda gs: seen.append([g is None for g in gs]))
        first.grad_fn.register_hook(lambda gi, go: seen.append([g is None for g in (*gi, *go)]))
        first.sum().backward(retain_graph=True)
        assert seen == [[False, True], ([1.0, 1.0], [0.0, 0.0]), [False, False, False, True]]
        assert (x.grad.tolist(), w.grad.tolist()) == ([2.0, 2.0], [0.0, 0.0])
        seen.clear()
        flow.autograd.grad((first + second).sum(), w)
        assert seen == [[False, False], ([1.0, 1.0], [1.0, 1.0]), [True, False, False, False]]

    def test_an_ops_own_two_outputs_of_which_one_gets_no_gradient(self):
        op = flow.register_op("two_parts")(lambda xp, x: (x * 2, x * 3))
        try:
            op.grad()(lambda F, ctx, first, second: first * 2 + second * 3)
            x = leaf([1.0, 2.0])
            first, _ = op(x)
            seen = []
            first.grad_fn.register_prehook(lambda gs: seen.append([g is None for g in gs]))
            first.sum().backward()
            assert seen == [[False, True]]
            assert x.grad.tolist() == [2.0, 2.0]
        finally:
            for registry in (KERNELS, FUNCTORS, GRAD_FUNCS):
                registry.remove("two_parts")

    def test_run_in_order_each_on_what_the_one_before_returned(self):
        x = leaf(2.0)
        y = x * 3
        y.grad_fn.register_prehook(lambda gs: (gs[0] + 1,))
        y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))
        y.grad_fn.register_hook(lambda gi, go: (gi[0] + 1, None))
        y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
        y.backward()
        assert x.grad.item() == ((1 + 1) * 10 * 3 + 1) * 10

    def test_a_prehook_that_returns_none_for_all_stops_the_gradient(self):
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        y = x * w
        seen = []
        y.grad_fn.register_prehook(lambda gs: (None,))
        y.grad_fn.register_hook(lambda gi, go: seen.append((gi, go)))
        (y + x).sum().backward()
        assert seen == [((None, None), (None,))]
        assert w.grad is None
        assert x.grad.tolist() == [1.0, 1.0]

    def test_a_prehook_of_a_leafs_node_that_returns_none(self):
        x = leaf([1.0, 2.0])
        x.grad_fn_node.register_prehook(lambda gs: (None,))
        x.sum().backward()
        assert x.grad is None

    def test_a_hook_adds_a_gradient_where_there_was_none(self):
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        y = x * w
        y.grad_fn.register_prehook(lambda gs: (None,))
        y.grad_fn.register_hook(lambda gi, go: (flow.ones(2), flow.ones(2) * 7))
        y.sum().backward()
        assert (x.grad.tolist(), w.grad.tolist()) == ([1.0, 1.0], [7.0, 7.0])

    def test_of_a_complex_op(self):
        z = leaf(np.array([1 + 2j, 3 - 1j]))
        y = z * z
        seen = []
        y.grad_fn.register_hook(lambda gi, go: seen.append((gi[0] + gi[1]).tolist()))
        y.real.sum().backward()
        np.testing.assert_allclose(seen, [z.grad.tolist()])
        np.testing.assert_allclose(z.grad.numpy(), np.conj(2 * z.detach().numpy()))

    def test_a_real_input_of_a_complex_op_gets_the_real_part(self):
        x = leaf([1.0, 2.0])
        y = x.to(flow.complex64)
        dtypes = []
        y.grad_fn.register_hook(lambda gi, go: dtypes.append(gi[0].dtype))
        y.abs().sum().backward()
        assert dtypes == [flow.float32]

    def test_second_order_through_hooks(self):
        x = leaf(2.0)
        y = x**3
        y.grad_fn.register_prehook(lambda gs: (gs[0] * x,))
        y.grad_fn.register_hook(lambda gi, go: tuple(g and g * x for g in gi))
        (first,) = flow.autograd.grad(y, x, create_graph=True)  # 3x² · x · x
        assert first.item() == 48
        assert flow.autograd.grad(first, x)[0].item() == pytest.approx(12 * 2**3)

    def test_hooks_that_keep_what_they_get(self):
        x = leaf([1.0, 2.0])
        y = x * 3
        kept: list[Any] = []
        y.grad_fn.register_hook(lambda gi, go: kept.extend([gi[0], go[0]]))
        y.register_hook(kept.append)
        x.grad_fn_node.register_prehook(lambda gs: kept.append(gs[0]))
        x.grad_fn_node.register_hook(lambda gi, go: kept.append(go[0]))
        y.sum().backward()
        (x * 3).sum().backward()
        x.grad.zero_()
        assert [g.tolist() for g in kept] == [[1.0] * 2, [3.0] * 2, [1.0] * 2, *[[3.0] * 2] * 4]

    def test_a_hook_that_keeps_what_goes_to_a_leaf(self):
        x = leaf([1.0, 2.0])
        y = x * 3
        kept: list[Any] = []
        y.grad_fn.register_hook(lambda gi, go: kept.append(gi[0]))
        y.sum().backward()
        (x * 3).sum().backward()
        assert kept[0].tolist() == [3.0, 3.0]
        assert x.grad.tolist() == [6.0, 6.0]

    def test_a_hook_on_one_node_leaves_other_nodes_of_the_op_alone(self):
        x = leaf(2.0)
        y = x * 3
        y.grad_fn.register_hook(lambda gi, go: (gi[0] * 0, None))
        (x * 3).backward()
        assert x.grad.item() == 3
        y.backward()
        assert x.grad.item() == 3

    def test_removal(self):
        x = leaf(2.0)
        y = x * 3
        handles = [
            y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None)),
            y.grad_fn.register_prehook(lambda gs: (gs[0] * 100,)),
            x.grad_fn_node.register_prehook(lambda gs: (gs[0] * 1000,)),
        ]
        y.backward(retain_graph=True)
        assert x.grad.item() == 3_000_000
        for handle, expected in zip(handles, (300_000, 3000, 3), strict=True):
            handle.remove()
            x.grad = None
            y.backward(retain_graph=True)
            assert x.grad.item() == expected

    def test_a_handle_as_a_context_manager(self):
        x = leaf(2.0)
        y = x * 3
        with y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,)):
            y.backward(retain_graph=True)
        y.backward()
        assert x.grad.item() == 33

    def test_a_hook_that_registers_hooks_further_on(self):
        x = leaf(2.0)
        y = x * 3
        late: list[str] = []

        def register(grad):
            y.register_hook(lambda g: late.append("same step"))
            y.grad_fn.register_prehook(lambda gs: late.append("prehook"))
            y.grad_fn.register_hook(lambda gi, go: late.append("node hook"))
            x.register_hook(lambda g: late.append("leaf"))
            x.register_post_accumulate_grad_hook(lambda t: late.append("post"))

        with y.register_hook(register):
            y.backward(retain_graph=True)
        assert late == ["prehook", "node hook", "leaf", "post"]
        late.clear()
        y.backward()
        assert late == ["same step", "prehook", "node hook", "leaf", "post"]

    def test_a_hook_removed_before_its_turn(self):
        x = leaf(2.0)
        y = x * 3
        ran = []
        later = [
            y.grad_fn.register_prehook(lambda gs: ran.append("prehook")),
            y.grad_fn.register_hook(lambda gi, go: ran.append("node hook")),
            x.register_post_accumulate_grad_hook(lambda t: ran.append("post")),
        ]
        y.register_hook(lambda g: [handle.remove() for handle in later] and None)
        y.backward()
        assert ran == []
        assert x.grad.item() == 3

    def test_saved_tensors_and_names_of_a_hooked_node(self):
        x = leaf([1.0, 2.0])
        y = x.exp()
        y.grad_fn.register_hook(lambda gi, go: None)
        assert y.grad_fn.name() == "exp_backward"
        assert y.grad_fn.saved_tensors[0].tolist() == y.tolist()
        assert y.grad_fn.next_functions == ((x.grad_fn_node, 0),)

    def test_metadata_is_the_users_own(self):
        y = leaf(1.0) * 2
        y.grad_fn.metadata["mine"] = 3
        assert y.grad_fn.metadata == {"mine": 3}

    def test_in_another_thread(self):
        x = leaf([1.0, 2.0])
        y = x * 3
        y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
        thread = threading.Thread(target=y.sum().backward)
        thread.start()
        thread.join()
        assert x.grad.tolist() == [30.0, 30.0]


class TestAnInPlaceWrite:
    def test_node_hooks_stay_with_the_old_node(self):
        x = leaf([1.0, 2.0])
        y = x * 2
        seen = []
        y.grad_fn.register_prehook(lambda gs: seen.append(("old", gs[0].tolist())))
        y.mul_(5)
        y.grad_fn.register_prehook(lambda gs: seen.append(("new", gs[0].tolist())))
        y.sum().backward()
        assert seen == [("new", [1.0, 1.0]), ("old", [5.0, 5.0])]
        assert x.grad.tolist() == [10.0, 10.0]

    def test_hooks_on_a_base_that_is_written_through_a_view(self):
        x = leaf([1.0, 2.0])
        y = x * 2
        seen = []
        y.register_hook(lambda g: seen.append(("old", g.tolist())))
        y[0].mul_(5)
        y.register_hook(lambda g: seen.append(("new", g.tolist())))
        y.sum().backward()
        assert seen == [("new", [1.0, 1.0]), ("old", [5.0, 1.0])]
        assert x.grad.tolist() == [10.0, 2.0]

    def test_hooks_on_a_leaf_stay_when_it_is_written_without_recording(self):
        x = leaf([1.0, 2.0])
        seen = []
        x.register_hook(lambda g: seen.append(g.tolist()))
        x.register_post_accumulate_grad_hook(lambda t: seen.append("post"))
        with flow.no_grad():
            x.mul_(3)
        x.sum().backward()
        assert seen == [[1.0, 1.0], "post"]


class TestPostAccumulate:
    def test_sees_the_sum_each_time(self):
        x = leaf(1.0)
        seen = []
        x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item())))
        (x * 3).backward()
        (x * 4).backward()
        assert seen == [(True, 3.0), (True, 7.0)]

    def test_may_take_the_gradient_away(self):
        x = leaf(1.0)

        def step(tensor):
            with flow.no_grad():
                tensor -= tensor.grad
            tensor.grad = None

        x.register_post_accumulate_grad_hook(step)
        (x * 3).backward()
        assert x.grad is None
        assert x.item() == -2

    def test_only_leaves_have_them(self):
        x = leaf(1.0)
        for tensor in (x * 2, flow.ones(1)):
            with pytest.raises(GradientError, match="register_post_accumulate_grad_hook"):
                tensor.register_post_accumulate_grad_hook(print)

    def test_not_in_grad(self):
        x = leaf(1.0)
        x.register_post_accumulate_grad_hook(lambda t: pytest.fail("it ran"))
        x.grad_fn_node.register_hook(lambda gi, go: pytest.fail("it ran"))
        assert flow.autograd.grad(x * 3, x)[0].item() == 3

    def test_does_not_keep_the_leaf(self):
        gc.disable()
        try:
            x = leaf(1.0)
            x.register_post_accumulate_grad_hook(lambda t: None)
            (x * 2).backward()
            reference = weakref.ref(x)
            del x
            assert reference() is None
        finally:
            gc.enable()


def register(kind: str, x: Any, y: Any, hook: Any) -> Any:
    if kind == "tensor":
        return y.register_hook(hook)
    if kind == "prehook":
        return y.grad_fn.register_prehook(hook)
    if kind == "node hook":
        return y.grad_fn.register_hook(hook)
    if kind == "post-accumulate":
        return x.register_post_accumulate_grad_hook(hook)
    if kind == "leaf prehook":
        return x.grad_fn_node.register_prehook(hook)
    assert kind == "leaf node hook"
    return x.grad_fn_node.register_hook(hook)


KINDS = ["tensor", "prehook", "node hook", "post-accumulate", "leaf prehook", "leaf node hook"]


class TestErrors:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("create_graph", [False, True])
    def test_an_exception_keeps_its_type_and_leaves_the_engine_usable(self, kind, create_graph):
        class Mine(Exception):
            pass

        def hook(*grads):
            raise Mine("from the hook")

        x, other = leaf([1.0, 2.0]), leaf([5.0, 6.0])
        y = x.exp()
        handle = register(kind, x, y, hook)
        before = flow.tensors.mode.local.state
        with pytest.raises(Mine, match="from the hook") as caught:
            if create_graph:
                with pytest.warns(UserWarning, match="cycle"):
                    y.sum().backward(create_graph=True)
            else:
                y.sum().backward(retain_graph=True)
        name = "accumulate_grad" if "leaf" in kind or "post" in kind else "exp_backward"
        assert f"in the backward pass, at {name}" in caught.value.__notes__
        assert flow.tensors.mode.local.state is before
        assert flow.tensors.mode.local.task is None
        assert flow.is_grad_enabled()
        done = kind in ("post-accumulate", "leaf node hook")
        assert (x.grad is not None) is done
        (other * 2).sum().backward()
        assert other.grad.tolist() == [2.0, 2.0]
        handle.remove()
        x.grad = None
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy())

    @pytest.mark.parametrize("kind", ["tensor", "prehook", "node hook", "leaf prehook"])
    @pytest.mark.parametrize("what", ["shape", "dtype", "type"])
    def test_a_wrong_gradient(self, kind, what):
        bad = {"shape": flow.ones(1), "dtype": flow.ones(2, dtype=flow.float64), "type": 3.0}[what]
        x = leaf([1.0, 2.0])
        y = x.exp()
        register(kind, x, y, lambda *grads: bad if kind == "tensor" else (bad,))
        expected = ArgumentTypeError if what == "type" else HookError
        with pytest.raises(expected, match="a hook on") as caught:
            y.sum().backward()
        assert {"type": "float"}.get(what, what) in str(caught.value)

    @pytest.mark.parametrize("kind", ["prehook", "node hook", "leaf prehook", "leaf node hook"])
    def test_a_wrong_number_of_gradients_or_no_tuple(self, kind):
        for bad, error in (((), HookError), ((None,) * 3, HookError), ([None], ArgumentTypeError)):
            x = leaf([1.0, 2.0])
            y = x.exp()
            register(kind, x, y, lambda *grads, bad=bad: bad)
            if kind == "leaf node hook" and bad == ():
                continue  # it may return what it gets
            with pytest.raises(error, match="hook on"):
                y.sum().backward()

    def test_a_value_from_a_post_accumulate_hook(self):
        x = leaf(1.0)
        x.register_post_accumulate_grad_hook(lambda t: t.grad)
        with pytest.raises(ArgumentTypeError, match="returned Tensor"):
            (x * 2).backward()

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_cannot_be_called(self, kind):
        x = leaf([1.0, 2.0])
        y = x.exp()
        with pytest.raises(ArgumentTypeError, match="callable"):
            register(kind, x, y, 3)
        y.sum().backward()
        assert x.grad is not None

    def test_an_error_in_a_nested_call_of_a_hook(self):
        x, z = leaf(2.0), leaf(3.0)
        y = x * 3

        def hook(grad):
            with flow.enable_grad():
                inner = z * 2
            inner.register_hook(lambda g: 1 / 0)
            inner.backward()

        y.register_hook(hook)
        with pytest.raises(ZeroDivisionError):
            y.backward()
        assert flow.tensors.mode.local.task is None
        assert x.grad is None
        assert z.grad is None


class TestLifetime:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_hook_does_not_keep_the_graph(self, kind):
        gc.disable()
        try:
            x = leaf([1.0, 2.0])
            y = x.exp()
            register(kind, x, y, lambda *grads: None)
            flow.autograd.graph.register_multi_grad_hook([x, y], lambda grads: None)
            y.sum().backward()
            node, leaf_node = weakref.ref(y.grad_fn), weakref.ref(x.grad_fn_node)
            del x, y
            assert node() is None
            assert leaf_node() is None
        finally:
            gc.enable()

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_hook_that_raises_does_not_keep_the_graph(self, kind):
        gc.disable()
        try:
            x = leaf([1.0, 2.0])
            y = x.exp()
            register(kind, x, y, lambda *grads: 1 / 0)
            with contextlib.suppress(ZeroDivisionError):
                y.sum().backward()
            node, leaf_node = weakref.ref(y.grad_fn), weakref.ref(x.grad_fn_node)
            del x, y
            assert node() is None
            assert leaf_node() is None
        finally:
            gc.enable()


class TestMultiGradHook:
    def run(self, lib: Any, mode: str) -> list[Any]:
        a = lib.tensor([1.0, 2.0], requires_grad=True)
        b = lib.tensor([3.0, 4.0], requires_grad=True)
        c, d = a * b, a * b * 2
        seen: list[Any] = []

        def fn(grads: Any) -> None:
            if mode == "any":
                seen.append(grads.tolist())
            else:
                seen.append([g if g is None else g.tolist() for g in grads])

        handle = lib.autograd.graph.register_multi_grad_hook((a, b, c, d), fn, mode=mode)
        c.sum().backward(retain_graph=True)
        c.sum().backward(inputs=[a], retain_graph=True)
        (c * d).sum().backward(retain_graph=True)
        (c.sum() + d.sum()).backward(inputs=[b], retain_graph=True)
        lib.autograd.grad(d.sum(), c, allow_unused=True, retain_graph=True)
        (a.detach().requires_grad_() * 2).sum().backward()
        handle.remove()
        c.sum().backward()
        return seen

    @pytest.mark.parametrize("mode", ["all", "any"])
    def test_is_called_as_pytorchs(self, mode):
        torch = pytest.importorskip("torch")
        assert self.run(flow, mode) == self.run(torch, mode)

    def test_once_per_call_with_none_for_what_the_call_does_not_reach(self):
        seen = self.run(flow, "all")
        assert [[g is not None for g in grads] for grads in seen] == [
            [True, True, True, False],
            [True, False, True, False],
            [True, True, True, True],
            [False, True, True, True],
        ]

    def test_does_not_wait_for_what_the_call_does_not_reach(self):
        x = leaf(2.0)
        y, z = x * 3, x * 5
        order: list[str] = []
        flow.autograd.graph.register_multi_grad_hook([y, z], lambda grads: order.append("multi"))
        x.register_hook(lambda g: order.append("leaf"))
        y.backward()
        assert order == ["multi", "leaf"]

    def test_in_grad_on_leaves(self):
        a, b = leaf(2.0), leaf(3.0)
        seen = []
        flow.autograd.graph.register_multi_grad_hook([a, b], lambda g: seen.append(g))
        flow.autograd.grad(a * b, [a, b])
        assert [g.item() for g in seen[0]] == [3.0, 2.0]

    def test_a_gradient_that_never_arrives(self):
        x = leaf([1.0, 2.0])
        y = x * 2
        z = x * 3
        z.grad_fn.register_prehook(lambda gs: (None,))  # so that w gets none
        w = leaf([5.0, 6.0])
        v = w * z
        v.grad_fn.register_hook(lambda gi, go: (None, gi[1]))
        seen = []
        flow.autograd.graph.register_multi_grad_hook([y, w], lambda g: seen.append(g))
        (y + v).sum().backward()
        assert len(seen) == 1
        assert seen[0][0].tolist() == [1.0, 1.0]
        assert seen[0][1] is None

    def test_nested_calls_have_gradients_of_their_own(self):
        x = leaf(2.0)
        y, z = x * 3, x * 5
        seen = []

        def fn(grads):
            seen.append([g if g is None else g.item() for g in grads])

        flow.autograd.graph.register_multi_grad_hook([y, x], fn)

        def nested(grad):
            with flow.enable_grad():
                inner = x * 7
            inner.backward()

        y.register_hook(nested)
        (y + z).backward()
        assert seen == [[None, 7.0], [1.0, 8.0]]

    def test_an_error_does_not_spoil_the_next_call(self):
        x = leaf(2.0)
        y = x * 3
        seen = []
        flow.autograd.graph.register_multi_grad_hook([y, x], lambda grads: seen.append(grads))
        with y.register_hook(lambda g: 1 / 0), pytest.raises(ZeroDivisionError):
            y.backward(retain_graph=True)
        assert seen == []
        y.backward()
        assert [g.item() for g in seen[0]] == [1.0, 3.0]

    def test_errors(self):
        register_multi = flow.autograd.graph.register_multi_grad_hook
        x = leaf(1.0)
        with pytest.raises(ArgumentError, match="mode"):
            register_multi([x], print, mode="some")
        with pytest.raises(ArgumentTypeError, match="callable"):
            register_multi([x], 3)
        with pytest.raises(GradientError, match="requires a gradient"):
            register_multi([x, flow.ones(1)], print)
        seen = []
        register_multi([x, flow.ones(1)], lambda g: seen.append(g.item()), mode="any")
        (x * 2).backward()
        assert seen == [2.0]


class TestGradientEdge:
    def test_of_leaves_and_others(self):
        x = leaf([1.0, 2.0])
        y = x * 3
        edge = flow.autograd.graph.get_gradient_edge
        assert edge(x).node is x.grad_fn_node
        assert (edge(y).node, edge(y).output_nr) == (y.grad_fn, 0)
        with pytest.raises(GradientError, match="get_gradient_edge"):
            edge(flow.ones(1))

    def test_stands_for_inputs_and_outputs(self):
        x = leaf([1.0, 2.0])
        y = x * 3
        out = (y * y).sum()
        to_x, to_y, to_out = map(flow.autograd.graph.get_gradient_edge, (x, y, out))
        gx, gy = flow.autograd.grad(to_out, [to_x, to_y], retain_graph=True)
        assert (gx.tolist(), gy.tolist()) == ([18.0, 36.0], [6.0, 12.0])
        (gx,) = flow.autograd.grad([to_y], x, [flow.ones(2)], retain_graph=True)
        assert gx.tolist() == [3.0, 3.0]
        flow.autograd.backward(to_out, inputs=[to_x])
        assert x.grad.tolist() == [18.0, 36.0]

    def test_checks_the_gradient_of_an_output(self):
        y = leaf([1.0, 2.0]) * 3
        edge = flow.autograd.graph.get_gradient_edge(y)
        with pytest.raises(GradientError, match=r"shape \(2,\)"):
            flow.autograd.backward(edge)
        with pytest.raises(GradientError, match="shape"):
            flow.autograd.backward(edge, flow.ones(3))

    def test_an_unused_input(self):
        x, w = leaf([1.0, 2.0]), leaf([1.0, 2.0])
        edge = flow.autograd.graph.get_gradient_edge(w)
        with pytest.raises(GradientError, match="not used"):
            flow.autograd.grad((x * 2).sum(), edge)
        (zeros,) = flow.autograd.grad((x * 2).sum(), edge, materialize_grads=True)
        assert zeros.tolist() == [0.0, 0.0]
