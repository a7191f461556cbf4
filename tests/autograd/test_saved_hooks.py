"""Hooks on saved tensors: when they are called, what they may return, and right gradients."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.graph import (
    disable_saved_tensors_hooks,
    increment_version,
    save_on_cpu,
    saved_tensors_hooks,
)
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    FreedGraphError,
    HookError,
    StaleTensorError,
)
from tests.autograd.leaves import leaf
from tests.functors.test_saved_tensors import CASES


def identity() -> Any:
    return saved_tensors_hooks(lambda tensor: tensor.detach(), lambda packed: packed)


def lists() -> Any:
    """Keep no array at all, but Python numbers."""

    def unpack(packed: Any) -> Any:
        numbers, dtype, shape = packed
        return flow.tensor(np.array(numbers, dtype).reshape(shape))

    return saved_tensors_hooks(lambda t: (t.detach().numpy().tolist(), t.dtype, t.shape), unpack)


def events_of(lib: Any, program: Any) -> tuple[list[Any], Any]:
    """Run a program with hooks that write down their calls."""
    events: list[Any] = []

    def pack(tensor: Any) -> Any:
        flags = (tensor.requires_grad, tensor.is_leaf, lib.is_grad_enabled())
        events.append(("pack", tuple(tensor.shape), *flags))
        return tensor.detach()

    def unpack(packed: Any) -> Any:
        events.append(("unpack", tuple(packed.shape), lib.is_grad_enabled()))
        return packed

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    result = program(lib, x, lambda: lib.autograd.graph.saved_tensors_hooks(pack, unpack))
    return events, result.tolist()


def program(function: Any) -> Any:
    PROGRAMS[function.__name__] = function
    return function


PROGRAMS: dict[str, Any] = {}


@program
def two_of_the_same(lib, x, hooks):
    with hooks():
        y = x * x
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return x.grad


@program
def one_needs_no_gradient(lib, x, hooks):
    with hooks():
        y = x * lib.ones(2)
    y.sum().backward()
    return x.grad


@program
def a_result(lib, x, hooks):
    with hooks():
        y = x.exp().sqrt()
    y.sum().backward()
    return x.grad


@program
def a_number(lib, x, hooks):
    with hooks():
        y = x * 2.5 / 3.0 + 1.0
    y.sum().backward()
    return x.grad


@program
def second_order(lib, x, hooks):
    with hooks():
        y = x.exp()
        (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    return x.grad


@program
def second_order_outside(lib, x, hooks):
    with hooks():
        y = x.exp()
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    return x.grad


@program
def without_recording(lib, x, hooks):
    with hooks(), lib.no_grad():
        return x.exp()


@program
def an_op_that_overwrites_its_input(lib, x, hooks):
    with hooks():
        y = x * 1
        y.mul_(x)
    y.sum().backward()
    return x.grad


@program
def an_op_that_overwrites_and_saves_its_result(lib, x, hooks):
    with hooks():
        y = x * 1
        y.sigmoid_()
    y.sum().backward()
    return x.grad


@program
def only_the_results_of_a_call_that_is_not_run(lib, x, hooks):
    with hooks():
        y = x.exp()
        z = y.sin()
    return lib.autograd.grad(z.sum(), y)[0]


@program
def entered_again(lib, x, hooks):
    block = hooks()
    with block, block:
        y = x.exp()
    with block:
        y = y.exp()
    y.sum().backward()
    return x.grad


class TestCalls:
    @pytest.mark.parametrize("name", PROGRAMS)
    def test_are_pytorchs(self, name):
        torch = pytest.importorskip("torch")
        ours, theirs = events_of(flow, PROGRAMS[name]), events_of(torch, PROGRAMS[name])
        assert ours[0] == theirs[0]
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)

    def test_are_there(self):
        events, grad = events_of(flow, two_of_the_same)
        assert events == [("pack", (2,), True, True, False)] * 2 + [("unpack", (2,), False)] * 4
        assert grad == [4.0, 8.0]

    def test_the_innermost_hooks_count(self):
        x = leaf([1.0, 2.0])
        seen: list[str] = []

        def block(name):
            return saved_tensors_hooks(
                lambda t: seen.append(f"pack {name}") or t.detach(),
                lambda t: seen.append(f"unpack {name}") or t,
            )

        with block("outer"):
            with block("inner"):
                y = x.exp()
            z = y.sin()
        z.sum().backward()
        assert seen == ["pack inner", "pack outer", "unpack outer", "unpack inner"]

    def test_after_an_error_in_the_block_they_are_off(self):
        x = leaf([1.0, 2.0])
        with pytest.raises(KeyError), saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
            raise KeyError
        assert x.exp().grad_fn.saved_tensors

    def test_a_leaf_is_given_as_it_is(self):
        x = leaf([1.0, 2.0])
        seen = []
        with saved_tensors_hooks(lambda t: seen.append(t) or t.detach(), lambda t: t):
            x.sin()
        assert seen[0].is_leaf
        assert seen[0].grad_fn_node is x.grad_fn_node

    def test_saved_tensors_of_the_node(self):
        x = leaf([1.0, 2.0])
        with lists():
            y = x.sin()
        assert y.grad_fn.saved_tensors[0].tolist() == [1.0, 2.0]
        assert not y.grad_fn.saved_tensors[0].requires_grad
        y.sum().backward()
        assert y.grad_fn.saved_tensors == ()
        with pytest.raises(FreedGraphError):
            y.sum().backward()

    def test_other_threads_are_not_reached(self):
        x = leaf([1.0, 2.0])
        seen: list[Any] = []
        results = []

        def work():
            results.append((x * x).grad_fn.saved_tensors[0])

        with saved_tensors_hooks(lambda t: seen.append(t.shape) or t.detach(), lambda t: t):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert seen == []
        assert results

    def test_what_is_packed_in_one_thread_is_unpacked_in_another(self):
        x = leaf([1.0, 2.0])
        with lists():
            y = (x * x).sum()
        thread = threading.Thread(target=y.backward)
        thread.start()
        thread.join()
        assert x.grad.tolist() == [2.0, 4.0]

    def test_hooks_that_compute_with_tensors(self):
        x = leaf([1.0, 2.0])
        seen = []
        with saved_tensors_hooks(
            lambda t: seen.append(flow.is_grad_enabled()) or (t * 2 + t.exp() * 0), lambda t: t / 2
        ):
            y = x.sin()
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.cos([1.0, 2.0]), rtol=1e-6)
        assert seen == [False]  # and the ops of the hook packed nothing

    def test_a_hook_that_records_is_not_called_for_that(self):
        x = leaf([1.0, 2.0])
        calls = []

        def pack(tensor):
            calls.append(tensor.shape)
            with flow.enable_grad():
                copy = tensor.detach().requires_grad_()
                (copy * copy).sum().backward()
            return copy.grad

        with saved_tensors_hooks(pack, lambda grad: grad / 2):
            y = x.sin()
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.cos([1.0, 2.0]), rtol=1e-6)
        assert len(calls) == 1

    def test_hooks_in_the_backward_pass_of_a_create_graph(self, device):
        x = flow.tensor([1.0, 2.0], device=device, requires_grad=True)
        y = (x**3).sum()
        threads = set()

        def pack(tensor):
            threads.add(threading.current_thread() is threading.main_thread())
            return tensor.detach()

        with saved_tensors_hooks(pack, lambda tensor: tensor):
            (g,) = flow.autograd.grad(y, x, create_graph=True)
        assert threads == {device == "cpu"}  # they reach the thread that works for the call
        g.sum().backward()
        assert x.grad.tolist() == [6.0, 12.0]


class TestContent:
    def test_numbers_only(self):
        x = leaf([1.0, 2.0])
        with lists():
            y = (x * x).exp().sum()
        y.backward()
        np.testing.assert_allclose(x.grad.numpy(), [2 * np.e, 4 * np.exp(4)], rtol=1e-6)

    def test_on_disk(self, tmp_path):
        x = leaf(np.random.default_rng(0).normal(size=(4, 5)))
        w = leaf(np.random.default_rng(1).normal(size=(5, 3)))

        def to_disk(tensor):
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
            np.save(path, tensor.detach().numpy())
            return path

        def both():
            y = (x @ w).tanh()
            (g,) = flow.autograd.grad((y * y).sum(), x, create_graph=True)
            return flow.autograd.grad((g * g).sum(), [x, w])

        expected = both()
        with saved_tensors_hooks(to_disk, lambda path: flow.from_numpy(np.load(path))):
            got = both()
        assert len(list(tmp_path.iterdir())) > 5
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())

    def test_a_copy_outlives_a_write_to_the_original(self):
        x = leaf([1.0, 2.0])
        a = x * 1
        with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = a * a
        with flow.no_grad():
            a.mul_(100)
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 4.0]

    def test_an_in_place_op_packs_the_old_content(self):
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x * 1
            y.mul_(w)
            y.mul_(w)
        y.sum().backward()
        assert x.grad.tolist() == [9.0, 16.0]
        assert w.grad.tolist() == [6.0, 16.0]

    def test_an_in_place_op_whose_result_is_kept(self):
        x = leaf([1.0, 2.0])
        with identity():
            y = x * 1
            y.exp_()
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0]), rtol=1e-6)

    def test_a_write_through_a_view(self):
        x, w = leaf([1.0, 2.0]), leaf(3.0)
        with lists():
            y = x * 1
            y[0].mul_(w)
            out = (y * y).sum()
        out.backward()
        assert x.grad.tolist() == [18.0, 4.0]
        assert w.grad.item() == 6.0

    def test_without_hooks_the_same_write_is_noticed(self):
        x = leaf([1.0, 2.0])
        a = x * 1
        y = a * a
        with flow.no_grad():
            a.mul_(100)
        with pytest.raises(StaleTensorError):
            y.sum().backward()

    @pytest.mark.slow(but=100)
    @pytest.mark.parametrize("hooks", [identity, lists])
    @pytest.mark.parametrize("name", CASES)
    def test_any_op_to_second_order(self, name, hooks):
        call, arrays = CASES[name]

        def both() -> list[Any]:
            xs = [flow.tensor(a).requires_grad_() for a in arrays]
            y = call(flow, *xs)
            y = (y * y.conj() if y.is_complex() else y * y).real.sum()
            firsts = flow.autograd.grad(y, xs, create_graph=True, allow_unused=True)
            found = list(firsts)
            terms = [(g * g.conj()).real.sum() for g in firsts if g is not None and g.requires_grad]
            if terms:
                found += flow.autograd.grad(sum(terms), xs, allow_unused=True)
            return found

        expected = both()
        with hooks():
            got = both()
        for a, b in zip(got, expected, strict=True):
            if b is None:
                assert a is None
            else:
                np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


class TestErrors:
    @pytest.mark.parametrize("bad", [None, 3, "text", np.ones(2, np.float32)])
    def test_unpack_returns_no_tensor(self, bad):
        x = leaf([1.0, 2.0])
        with saved_tensors_hooks(lambda t: t.detach(), lambda t: bad):
            y = x.exp()
        with pytest.raises(ArgumentTypeError, match="unpack hook returned"):
            y.sum().backward()
        assert x.grad is None
        with pytest.raises(ArgumentTypeError):
            _ = y.grad_fn.saved_tensors

    @pytest.mark.parametrize("bad", [flow.ones(1), flow.ones(2, dtype=flow.float64)])
    def test_unpack_returns_another_shape_or_dtype(self, bad):
        x = leaf([1.0, 2.0])
        with saved_tensors_hooks(lambda t: t.detach(), lambda t: bad):
            y = x.exp()
        with pytest.raises(HookError, match=r"unpack hook .* (shape|dtype)"):
            y.sum().backward()
        assert x.grad is None

    def test_pack_writes_to_its_tensor(self):
        x = leaf([1.0, 2.0])
        a = x * 1
        with saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
            with pytest.raises(HookError, match="pack hook wrote"):
                a.exp()
        a.sin().sum().backward()
        assert x.grad is not None

    @pytest.mark.parametrize("where", ["pack", "unpack"])
    def test_an_exception_keeps_its_type(self, where):
        def fail(value):
            raise KeyError("mine")

        def keep(value):
            return value.detach()

        x = leaf([1.0, 2.0])
        with pytest.raises(KeyError, match="mine") as caught:
            with saved_tensors_hooks(*((fail, keep) if where == "pack" else (keep, fail))):
                y = x.exp()
                y.sum().backward()
        assert where == "pack" or "in the backward pass, at exp_backward" in caught.value.__notes__
        assert flow.tensors.mode.local.state.saved_hooks is None
        assert flow.is_grad_enabled()
        x.exp().sum().backward()
        assert x.grad is not None

    def test_what_cannot_be_called(self):
        with pytest.raises(ArgumentTypeError, match="saved_tensors_hooks"):
            saved_tensors_hooks(3, lambda t: t)
        with pytest.raises(ArgumentTypeError, match="saved_tensors_hooks"):
            saved_tensors_hooks(lambda t: t, None)


class TestDisabling:
    def test_entering_raises_with_the_message(self):
        with disable_saved_tensors_hooks("not in here"):
            with pytest.raises(HookError, match="not in here"), identity():
                pass
            with pytest.raises(HookError, match="not in here"), save_on_cpu():
                pass
        with identity():
            pass

    def test_nested(self):
        with disable_saved_tensors_hooks("outer"):
            with disable_saved_tensors_hooks("inner"):
                with pytest.raises(HookError, match="inner"), identity():
                    pass
            with pytest.raises(HookError, match="outer"), identity():
                pass

    def test_inside_of_hooks(self):
        x = leaf([1.0, 2.0])
        with identity():
            with pytest.raises(HookError, match="no"), disable_saved_tensors_hooks("no"):
                pass
            y = x.exp()
        y.sum().backward()
        assert x.grad is not None

    def test_ops_go_on_without_hooks(self):
        x = leaf([1.0, 2.0])
        with disable_saved_tensors_hooks("no"):
            (x * x).sum().backward()
        assert x.grad.tolist() == [2.0, 4.0]


class TestSaveOnCpu:
    @pytest.mark.parametrize("pin_memory", [False, True])
    def test_gradients_to_second_order(self, device, pin_memory):
        x = flow.tensor([1.0, 2.0], device=device, requires_grad=True)
        w = flow.tensor([3.0, 4.0], device=device, requires_grad=True)
        with save_on_cpu(pin_memory=pin_memory):
            y = (x * w).exp()
            (g,) = flow.autograd.grad((y * 0.01).sum(), x, create_graph=True)
        g.sum().backward()
        numbers = 0.01 * np.exp([3.0, 8.0]) * np.array([9.0, 16.0])
        np.testing.assert_allclose(x.grad.cpu().numpy(), numbers, rtol=1e-5)
        assert x.grad.device == x.device

    def test_what_is_kept_is_on_the_host(self, device):
        x = flow.tensor([1.0, 2.0], device=device, requires_grad=True)
        with save_on_cpu():
            y = x.sin()
        device_of_x, packed = y.grad_fn.saved[0][1].value
        assert device_of_x == x.device
        assert not packed.is_cuda
        assert y.grad_fn.saved_tensors[0].device == x.device

    def test_what_is_kept_is_a_copy(self):
        x = leaf([1.0, 2.0])
        a = x * 1
        with save_on_cpu():
            y = a.sin()
        with flow.no_grad():
            a.zero_()
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.cos([1.0, 2.0]), rtol=1e-6)

    def test_another_device_type(self):
        with pytest.raises(ArgumentError, match="device_type"):
            save_on_cpu(device_type="tpu")


class TestIncrementVersion:
    def test_makes_a_raw_write_known(self):
        x = leaf([1.0, 2.0])
        a = x * 1
        y = a.sin()
        a.detach().numpy()[0] = 7.0
        increment_version(a)
        with pytest.raises(StaleTensorError, match="version 1"):
            y.sum().backward()

    def test_several(self):
        a, b = flow.zeros(2), flow.zeros(2)
        increment_version([a, b])
        increment_version(b[:1])
        assert (a._version, b._version) == (1, 2)


class TestLifetime:
    def test_packed_content_goes_with_the_node(self):
        class Content:
            def __init__(self, tensor):
                self.tensor = tensor

        gc.disable()
        try:
            contents = []

            def pack(tensor):
                content = Content(tensor.detach())
                contents.append(weakref.ref(content))
                return content

            x = leaf([1.0, 2.0])
            with saved_tensors_hooks(pack, lambda content: content.tensor):
                y, z = x.exp(), x.sin()
            y.sum().backward()
            assert [content() is None for content in contents] == [True, False]
            node = weakref.ref(z.grad_fn)
            del z
            assert contents[1]() is None
            assert node() is None
        finally:
            gc.enable()
