"""CUDA devices: a thread for each, streams that wait for one another, errors that come back.

On a machine without a card these run on `tests/strict_cupy`, which also finds unordered streams.
"""

import contextlib
import importlib
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine import workers
from oneflow_lite.autograd.engine.graph_task import GraphTask
from oneflow_lite.autograd.engine.ready_queue import NodeTask
from oneflow_lite.tensors.mode import local
from tests import strict_cupy
from tests.conftest import REAL_CARD

DEVICES = ["cuda:0", "cuda:1"]


@pytest.fixture(autouse=True)
def cuda():
    """CuPy or the stand-in for it, with two devices."""
    if REAL_CARD:
        if flow.cuda.device_count() < 2:
            pytest.skip("two CUDA devices are needed, or none")
        yield importlib.import_module("cupy")
        return
    with strict_cupy.installed(device_count=2):
        yield importlib.import_module("cupy")


@pytest.fixture
def watch(cuda):
    """Yield the record that the stand-in makes of streams; nothing may be left unordered."""
    if REAL_CARD:
        pytest.skip("only the stand-in sees what streams do")
    with strict_cupy.watched() as watch:
        yield watch
        assert watch.found == []


def leaf(values, device="cuda:0"):
    return flow.tensor(values, device=device, requires_grad=True)


def name():
    return threading.current_thread().name


def worker(device):
    return f"oneflow_lite.autograd {device}"


class TestWhichThread:
    def test_none_before_a_cuda_node_runs(self):
        script = """
import threading
import oneflow_lite as flow
from tests import strict_cupy
assert threading.enumerate() == [threading.main_thread()]
x = flow.ones(2, requires_grad=True)
(x * x).sum().backward()
with strict_cupy.installed():
    (x * x).sum().backward()
    flow.autograd.grad((x * x).sum(), x, create_graph=True)
    y = flow.ones(2, device="cuda:1", requires_grad=True) * 2
    assert threading.enumerate() == [threading.main_thread()]
    y.sum().backward()
    assert [t.name for t in threading.enumerate()[1:]] == ["oneflow_lite.autograd cuda:1"]
"""
        if REAL_CARD:
            script = script.replace("with strict_cupy.installed():", "if True:")
        subprocess.run([sys.executable, "-c", script], check=True, timeout=120)

    @pytest.mark.parametrize("device", DEVICES)
    def test_one_for_each_device_and_always_the_same(self, device):
        seen = []
        for _ in range(3):
            x = leaf([1.0, 2.0], device)
            y = x * 2
            for tensor in (x, y):
                tensor.register_hook(lambda g: seen.append((name(), threading.get_ident())))
            y.sum().backward()
        assert len(set(seen)) == 1 and seen[0][0] == worker(device) and len(seen) == 6
        assert [t.name for t in threading.enumerate()].count(worker(device)) == 1

    def test_a_graph_over_two_devices_and_the_cpu(self):
        a, b, c = leaf([1.0, 2.0]), leaf([3.0, 4.0], "cuda:1"), leaf([5.0, 6.0], "cpu")
        first, second, third = a * 2, b * 3, c * 4
        total = (first.to("cuda:1") + second).cpu() * third
        seen = {}
        tensors = {"a": a, "b": b, "c": c, "1": first, "2": second, "3": third, "total": total}
        for key, tensor in tensors.items():
            tensor.register_hook(lambda g, key=key: seen.update({key: name()}))
        total.sum().backward()
        zero, one, here = worker("cuda:0"), worker("cuda:1"), name()
        assert seen == {
            "a": zero, "1": zero, "b": one, "2": one, "c": here, "3": here, "total": here,
        }  # fmt: skip
        assert a.grad.tolist() == [40.0, 48.0] and a.grad.device == flow.device("cuda:0")
        assert b.grad.tolist() == [60.0, 72.0] and b.grad.device == flow.device("cuda:1")
        assert c.grad.tolist() == [44.0, 64.0]

    def test_the_latest_node_first(self):
        x = leaf([1.0])
        order = []
        parts = []
        for k in range(6):
            parts.append(x * float(k))
            parts[-1].register_hook(lambda g, k=k: order.append(k))
        ready_queue = workers.ready_queue_of(flow.device("cuda:0"))
        busy = threading.Event()

        class UntilAllWait:
            """Keeps the worker busy while the caller hands it one root after the other."""

            def execute(self, node):
                busy.set()
                until = time.monotonic() + 60
                while len(ready_queue.waiting()) < 6 and time.monotonic() < until:
                    time.sleep(0.001)

        ready_queue.push(NodeTask(UntilAllWait(), x.grad_fn_node, 0))
        assert busy.wait(60)
        flow.autograd.backward(parts, [flow.ones(1, device="cuda:0")] * 6)
        assert order == [5, 4, 3, 2, 1, 0]

    def test_grad_of_leaves_and_others(self):
        x = leaf([1.0, 2.0])
        y = x.to("cuda:1") * 3
        z = (y * y).sum()
        for create_graph in (False, True):
            dx, dy = flow.autograd.grad(z, [x, y], retain_graph=True, create_graph=create_graph)
            assert dx.tolist() == [18.0, 36.0] and dx.device == x.device
            assert dy.tolist() == [6.0, 12.0] and dy.device == y.device
        (second,) = flow.autograd.grad(dx.sum(), x)
        assert second.tolist() == [18.0, 18.0] and x.grad is None


class TestWhatAWorkerRunsUnder:
    def test_grad_mode(self):
        x = leaf([1.0])
        modes = []
        y = x * 2
        y.register_hook(lambda g: modes.append(flow.is_grad_enabled()))
        flow.autograd.grad(y, x, retain_graph=True)
        with flow.no_grad():
            flow.autograd.grad(y, x, create_graph=True)
        assert modes == [False, True]

    def test_the_callers_interpreters(self):
        class Names(flow.Interpreter):
            seen: list[tuple[str, str]] = []

            def apply(self, op_expr, inputs, attrs):
                self.seen.append((op_expr.op_type_name, name()))
                return self.inner.apply(op_expr, inputs, attrs)

        x = leaf([1.0])
        y = flow.relu(x)
        with flow.push_interpreter(Names()) as names:
            y.backward(flow.ones(1, device="cuda:0"))
        assert ("relu_grad", worker("cuda:0")) in names.seen
        assert local.state.interpreter is None

    def test_anomaly_mode(self):
        x = leaf([0.0])
        with flow.autograd.detect_anomaly():
            y = flow.sqrt(x) * 0
            with pytest.raises(flow.errors.AnomalyError, match="sqrt_backward"):
                y.backward()

    def test_saved_tensors_hooks(self):
        x = leaf([2.0])
        seen = []

        def unpack(packed):
            seen.append(name())
            return packed

        with flow.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            y = x * x
        y.backward()
        assert set(seen) == {worker("cuda:0")} and x.grad.item() == 4.0

    def test_nothing_of_it_stays(self):
        x = leaf([1.0])
        with flow.autograd.detect_anomaly(), flow.enable_grad():
            (x * 2).backward()
        states = []
        ready_queue = workers.ready_queue_of(flow.device("cuda:0"))
        done = threading.Event()

        class Look:
            depth = 0

            def execute(self, node):
                states.append((local.state, local.task))
                done.set()

        from oneflow_lite.tensors.mode import GRAD

        ready_queue.push(NodeTask(Look(), x.grad_fn_node, 0))
        assert done.wait(10)
        assert states == [(GRAD, None)]


class TestStreams:
    """The stand-in follows what each stream comes after; `watch` fails a test with a race."""

    def test_a_node_runs_on_the_stream_of_its_op(self, cuda):
        side = cuda.cuda.Stream(non_blocking=True)
        x = leaf([1.0, 2.0])
        with side:
            y = x * 2
        z = y * 3
        seen = {}
        for key, tensor in (("x", x), ("y", y), ("z", z)):
            tensor.register_hook(
                lambda g, key=key: seen.update({key: cuda.cuda.get_current_stream()})
            )
        z.backward(flow.ones(2, device="cuda:0"))
        null = cuda.cuda.Stream.null
        assert seen == {"x": null, "y": side, "z": null}
        assert x.grad.tolist() == [6.0, 6.0]

    def test_a_gradient_is_waited_for_before_it_is_used(self, cuda, watch):
        side = cuda.cuda.Stream(non_blocking=True)
        x = leaf([1.0, 2.0])
        side.wait_event(cuda.cuda.get_current_stream().record())
        with side:
            y = x * 2
        cuda.cuda.get_current_stream().wait_event(side.record())
        z = (y * x).sum()
        strict_cupy.clear_log()
        z.backward()
        records = {
            call.arguments[0]: (index, call.arguments[1])
            for index, call in enumerate(strict_cupy.log)
            if call.name == "Event.record"
        }
        waits = [
            (index, *call.arguments)
            for index, call in enumerate(strict_cupy.log)
            if call.name == "Stream.wait_event"
        ]
        null = cuda.cuda.Stream.null
        order = [(records[event][1], stream) for index, stream, event in waits]
        assert all(records[event][0] < index for index, _, event in waits)
        assert order == [
            (null, side),  # the side stream comes after what the caller did
            (null, side),  # the gradient of y goes to it
            (side, null),  # that gradient's memory is the null stream's
            (side, null),  # the gradient of x comes back
            (null, side),
            (side, null),  # and the caller comes after all of it
            (null, side),  # whatever was read there may be freed
        ]
        assert x.grad.tolist() == [4.0, 8.0]

    @pytest.mark.parametrize("create_graph", [False, True])
    def test_sums_over_streams(self, cuda, watch, create_graph):
        streams = [cuda.cuda.Stream(non_blocking=True) for _ in range(3)]
        x = leaf([1.0, 2.0])
        parts = []
        for k, stream in enumerate(streams):
            stream.wait_event(cuda.cuda.get_current_stream().record())
            with stream:
                parts.append((x * float(k + 1)) * (x + 1))
            cuda.cuda.get_current_stream().wait_event(stream.record())
        total = (parts[0] + parts[1] + parts[2]).sum()
        (dx,) = flow.autograd.grad(total, x, create_graph=create_graph)
        assert (dx + 0).tolist() == [18.0, 30.0]
        if create_graph:
            (ddx,) = flow.autograd.grad(dx.sum(), x)
            assert (ddx + 0).tolist() == [12.0, 12.0]

    def test_devices(self, cuda, watch):
        a = leaf([1.0, 2.0])
        b = leaf([3.0, 4.0], "cuda:1")
        for _ in range(3):
            product = (a * 2).to("cuda:1") * b
            (product.to("cuda:0") * a).cpu().sum().backward()
        assert (a.grad + 0).tolist() == [36.0, 96.0]
        assert (b.grad + 0).tolist() == [6.0, 24.0]

    def test_the_caller_on_a_stream_of_its_own(self, cuda, watch):
        """Its earlier work is seen, and the results that are kept are ready for it."""
        mine, side = cuda.cuda.Stream(non_blocking=True), cuda.cuda.Stream(non_blocking=True)
        x = leaf([1.0, 2.0])
        side.wait_event(cuda.cuda.get_current_stream().record())
        with side:
            y = x * 2
            z = y * y
        y.retain_grad()
        mine.wait_event(side.record())
        with mine:
            x.grad = flow.ones(2, device="cuda:0") + 1
            given = flow.ones(2, device="cuda:0") * 2
            z.backward(given, retain_graph=True)
            assert (x.grad + 0).tolist() == [18.0, 34.0]
            assert (y.grad + 0).tolist() == [8.0, 16.0]
            (dy,) = flow.autograd.grad(z, y, given, retain_graph=True)
            assert (dy + 0).tolist() == [8.0, 16.0]
        cuda.cuda.get_current_stream().wait_event(mine.record())

    def test_several_roots_on_several_streams(self, cuda, watch):
        side = cuda.cuda.Stream(non_blocking=True)
        x = leaf([1.0, 2.0])
        side.wait_event(cuda.cuda.get_current_stream().record())
        with side:
            y = x * 2
        z = x * 3
        one = flow.ones(2, device="cuda:0")
        flow.autograd.backward([y, z], [one, one * 2])
        assert (x.grad + 0).tolist() == [8.0, 8.0]

    def test_after_an_error_the_caller_may_read_what_was_accumulated(self, cuda, watch):
        side = cuda.cuda.Stream(non_blocking=True)
        first, x = leaf([1.0]), leaf([1.0])
        side.wait_event(cuda.cuda.get_current_stream().record())
        y = first * 2
        with side:
            z = x * 3
            root = z + 0
        y.register_hook(lambda g: 1 / 0)
        cuda.cuda.get_current_stream().wait_event(side.record())
        with pytest.raises(ZeroDivisionError):
            flow.autograd.backward([y, root], [flow.ones(1, device="cuda:0")] * 2)
        assert x.grad is None or (x.grad + 0).tolist() == [3.0]

    def test_memory_goes_back_when_its_last_reader_is_done(self, cuda, watch):
        """Nothing but the engine holds the gradients here, and each is read on another stream."""
        streams = [cuda.cuda.Stream(non_blocking=True) for _ in range(2)]
        x = leaf(np.ones(4))
        y = x
        made = []
        for k in range(8):
            stream = streams[k % 2]
            stream.wait_event(cuda.cuda.get_current_stream().record())
            stream.wait_event(streams[1 - k % 2].record())
            with stream:
                made.append(y * 2.0)
                made.append(made[-1] + x)
                y = made[-1]
        for stream in streams:
            cuda.cuda.get_current_stream().wait_event(stream.record())
        y.backward(flow.ones(4, dtype=y.dtype, device="cuda:0"))
        assert (x.grad + 0).tolist() == [511.0] * 4


class TestErrors:
    @pytest.mark.parametrize("kind", [KeyError, RuntimeError, SystemExit, KeyboardInterrupt])
    def test_keep_their_type_and_say_where(self, kind):
        x = leaf([1.0])
        y = x.exp()

        def hook(grad):
            raise kind("mine")

        handle = y.register_hook(hook)
        z = y * 2
        with pytest.raises(kind, match="mine") as caught:
            z.backward(retain_graph=True)
        if issubclass(kind, Exception):
            assert caught.value.__notes__ == ["in the backward pass, at exp_backward"]
        assert x.grad is None and local.task is None
        handle.remove()
        z.backward()
        assert x.grad.item() == pytest.approx(2 * np.e)

    def test_queued_nodes_are_skipped(self):
        x = leaf([1.0])
        parts = [x * float(k) for k in range(5)]
        ran = []
        for k, part in enumerate(parts):
            part.register_hook(lambda g, k=k: ran.append(k))
        parts[3].register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            flow.autograd.backward(parts, [flow.ones(1, device="cuda:0")] * 5)
        assert ran == [4, 3] and x.grad is None

    def test_on_one_device_while_the_other_one_works(self):
        a, b = leaf([1.0]), leaf([1.0], "cuda:1")
        y, z = a * 2, b * 2
        working, failed = threading.Event(), threading.Event()

        def work(grad):
            working.set()
            assert failed.wait(10)

        def fail(grad):
            assert working.wait(10)
            threading.Timer(0.05, failed.set).start()
            raise KeyError("cuda:0")

        y.register_hook(fail)
        z.register_hook(work)
        ones = [flow.ones(1, device=d) for d in DEVICES]
        with pytest.raises(KeyError):
            flow.autograd.backward([y, z], ones)
        assert failed.is_set()  # the call ends when no worker is at work for it any more
        assert a.grad is None and b.grad is None

    def test_nothing_holds_the_graph(self):
        x = leaf([1.0])
        y = x.exp()
        node = weakref.ref(y.grad_fn)
        y.register_hook(lambda g: 1 / 0)
        with contextlib.suppress(ZeroDivisionError):
            y.backward()
        del y
        assert node() is None


class TestNested:
    @pytest.mark.parametrize("outer", ["cpu", *DEVICES])
    @pytest.mark.parametrize("inner", ["cpu", *DEVICES])
    def test_in_a_hook(self, outer, inner):
        x, w = leaf([1.0, 2.0], outer), leaf([3.0, 4.0], inner)

        def hook(grad):
            with flow.enable_grad():
                (w * w).sum().backward()

        y = x * 2
        y.register_hook(hook)
        y.sum().backward()
        assert w.grad.tolist() == [6.0, 8.0] and x.grad.tolist() == [2.0, 2.0]

    @pytest.mark.parametrize("devices", [DEVICES[:1], DEVICES, ["cpu", *DEVICES]], ids=str)
    def test_hundreds_deep(self, devices):
        leaves = [leaf([1.0], device) for device in devices]

        def step(n):
            x = leaves[n % len(leaves)]
            with flow.enable_grad():
                y = x * 1.0
                if n:
                    y.register_hook(lambda g: step(n - 1))
                y.sum().backward()

        step(300)
        assert sum(x.grad.item() for x in leaves) == 301.0
        assert not [t for t in threading.enumerate() if t.name.endswith("nested")]

    def test_a_nested_thread_has_the_callers_device_and_stream(self, cuda, monkeypatch):
        monkeypatch.setattr(workers, "MAX_DEPTH", 0)
        stream = cuda.cuda.Stream(non_blocking=True)
        with cuda.cuda.Device(1):
            other = cuda.cuda.Stream(non_blocking=True)
        x, w = leaf([1.0], "cpu"), leaf([1.0], "cpu")
        seen = []

        def look(grad):
            seen.append((name(), cuda.cuda.Device().id, cuda.cuda.get_current_stream()))
            with cuda.cuda.Device(0):
                seen.append(cuda.cuda.get_current_stream())

        def hook(grad):
            with flow.enable_grad():
                y = w * 2
                y.register_hook(look)
                y.backward()

        y = x * 2
        y.register_hook(hook)
        with stream, cuda.cuda.Device(1), other:
            y.backward()
        assert seen == [("oneflow_lite.autograd nested", 1, other), stream]


class TestManyCallers:
    def test_give_what_one_gives(self):
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0], "cuda:1")

            def work():
                for _ in range(40):
                    ((a * 2).to("cuda:1") * b).cpu().sum().backward()

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert a.grad.tolist() == [960.0, 1280.0]
            assert b.grad.tolist() == [320.0, 640.0]
        finally:
            sys.setswitchinterval(before)

    def test_current_grad_is_that_of_the_node(self):
        """Hooks that run at the same time on two devices see their own sums."""
        a, b = leaf([1.0]), leaf([1.0], "cuda:1")
        y, z = a * 2, b * 2
        both, seen = threading.Barrier(2), {}

        def hook(key, tensor):
            def call(grad):
                both.wait(10)
                seen[key] = tensor.autograd_meta.current_grad.item()
                both.wait(10)

            return call

        y.register_hook(hook("y", y))
        z.register_hook(hook("z", z))
        ones = [flow.ones(1, device=d) for d in DEVICES]
        flow.autograd.backward([y, z], [ones[0] * 3, ones[1] * 5])
        assert seen == {"y": 3.0, "z": 5.0}


@pytest.mark.skipif(not hasattr(os, "fork") or REAL_CARD, reason="CUDA does not survive a fork")
def test_a_forked_child_starts_its_own_workers():
    x = leaf([1.0])
    (x * 2).backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that threads are alive
        child = os.fork()
    if child == 0:
        try:
            y = leaf([1.0])
            (y * 3).backward()
            os._exit(0 if y.grad.item() == 3.0 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_a_task_without_cuda_nodes_waits_for_no_stream():
    x = leaf([1.0], "cpu")
    assert not GraphTask.always_queued
    if not REAL_CARD:
        strict_cupy.clear_log()
        (x * x).backward()
        assert strict_cupy.log == []
