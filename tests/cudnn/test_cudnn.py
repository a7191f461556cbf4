"""Ops on CUDA devices go through cuDNN where it takes them, with the results of CuPy's kernels."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.kernels import cudnn as nodes
from oneflow_lite.nn import functional as F
from oneflow_lite.ops import cudnn
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS, register_kernel
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from tests.cudnn.calls import CALLS, run_call
from tests.static.build import Builder
from tests.static.runtime.analysed_programs import given, numbers

TOLERANCE: dict[Any, float] = {np.float16: 4e-3, np.float32: 2e-5, np.float64: 1e-12}


@pytest.fixture(autouse=True)
def switches() -> Iterator[Any]:
    """PyTorch's switches, which are as before afterwards."""
    found = flow.backends.cudnn
    with found.flags(**{name: getattr(found, name) for name in SWITCHES}):
        yield found


SWITCHES = "enabled benchmark benchmark_limit deterministic allow_tf32".split()


def image(*shape: int, seed: int = 0, device: str = "cuda") -> Any:
    data = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return flow.tensor(data, device=device)


def conv(x: Any, channels: int = 4) -> Any:
    return F.conv2d(x, image(2, channels, 3, 3, seed=1, device=str(x.device)))


class TestResults:
    @pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda dtype: dtype.__name__)
    @pytest.mark.parametrize("name", CALLS)
    def test_are_those_of_the_kernels(
        self, library: Any, switches: Any, name: str, dtype: Any
    ) -> None:
        call = CALLS[name]
        found = run_call(call, dtype)
        refused = "norm" in name and dtype is np.float64
        refused |= "attention" in name and dtype is not np.float16
        assert [node for node, _ in library.ran] == ([] if refused else call.nodes.split())
        switches.enabled = False
        right = run_call(call, dtype)
        assert len(library.ran) == (0 if refused else len(call.nodes.split()))
        for a, b in zip(found, right, strict=True):
            assert a.dtype == b.dtype
            scale = max(1, np.abs(b).max())
            assert np.allclose(a, b, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)

    @pytest.mark.parametrize(
        "name", ["conv2d, uneven", "conv_transpose2d", "layer_norm", "batch_norm"]
    )
    def test_second_derivatives(self, library: Any, switches: Any, name: str) -> None:
        found = []
        for switches.enabled in (True, False):
            call = CALLS[name]
            xs = [image(*shape, seed=i) for i, shape in enumerate(call.shapes)]
            xs = [x.requires_grad_() for x in xs]
            y = call.function(*xs)
            first = flow.autograd.grad(
                (y * image(*y.shape, seed=9)).sum(), xs[:2], create_graph=True
            )
            second = flow.autograd.grad(sum((g * g).sum() for g in first), xs[:2])
            found.append([g.cpu().numpy() for g in second])
        for a, b in zip(*found, strict=True):
            assert np.allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())
        assert len(library.ran) > len(call.nodes.split())

    @pytest.mark.parametrize("batch", [6, 1])
    def test_running_statistics(self, library: Any, switches: Any, batch: int) -> None:
        found = []
        for switches.enabled in (True, False):
            norm = flow.nn.BatchNorm2d(4).to("cuda")
            norm(image(batch, 4, 3, 5) * 2 + 1)
            found.append([x.cpu().numpy() for x in (norm.running_mean, norm.running_var)])
        assert np.allclose(*found, rtol=1e-5)
        assert [node for node, _ in library.ran] == ["batchnorm" if batch > 1 else "layernorm"]

    def test_the_variance_is_not_below_zero_nor_lost_in_a_large_eps(self, library: Any) -> None:
        for eps, ran in ((1e-5, 1), (0.5, 1)):
            mean, var = flow.zeros(4, device="cuda"), flow.zeros(4, device="cuda")
            F.batch_norm(flow.full((8, 4), 3.0, device="cuda"), mean, var, training=True, eps=eps)
            assert (var.cpu().numpy() >= 0).all() and np.allclose(var.cpu().numpy(), 0, atol=1e-9)
            assert len(library.ran) == ran

    def test_layouts(self, library: Any) -> None:
        x = image(2, 7, 8, 4).permute(0, 3, 1, 2)
        w = image(3, 3, 5, 4).transpose(1, 3)[:, :, ::2]
        y = F.conv2d(x, w)
        right = F.conv2d(x.contiguous(), w.contiguous())
        assert np.array_equal(y.cpu().numpy(), right.cpu().numpy())
        assert len(library.built) == 1  # cuDNN is given C order in both cases
        z = F.layer_norm(x, (7, 8))
        assert np.array_equal(z.cpu().numpy(), F.layer_norm(x.contiguous(), (7, 8)).cpu().numpy())

    def test_results_own_their_memory(self, library: Any) -> None:
        import cupy

        x, dy = image(2, 4, 5, 5)._data, image(2, 4, 5, 5, seed=1)._data
        w, out = cupy.ones((4, 4, 3, 3), np.float32), cupy.empty((2, 4, 5, 5), np.float32)
        attrs = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
        assert op_expr("conv").kernel(cupy)(x, w, None, **attrs, out=out) is out
        z, rstd = op_expr("standardize").kernel(cupy)(x, groups=(8, 25), eps=1e-5)
        attrs = {"groups": (8, 25), "centred": True}
        right = op_expr("standardize_grad").kernel(cupy)(dy, z, rstd, **attrs).get()
        assert op_expr("standardize_grad").kernel(cupy)(dy, z, rstd, **attrs, out=z) is z
        assert np.array_equal(z.get(), right)
        attrs = {"groups": (2, 4, 25), "channels": (2, 4, 25), "needs": (True, False, False)}
        dx = op_expr("affine_norm_grad").kernel(cupy)(dy, z, rstd[:4], None, **attrs)
        assert dx.base is None and len(library.ran) == 5


class TestPlans:
    def test_are_built_once_for_each_kind_of_call(self, library: Any) -> None:
        x = image(1, 4, 6, 6)
        for _ in range(3):
            conv(x)
        assert (len(library.built), len(library.ran)) == (1, 3)
        conv(image(1, 4, 7, 6))
        conv(image(1, 4, 6, 6).half().float())
        assert len(library.built) == 2
        F.conv2d(x, image(2, 4, 3, 3), padding=1)
        F.conv2d(x.half(), image(2, 4, 3, 3).half())
        for eps in (0.1, 0.2, 0.1):
            F.layer_norm(x, (6,), eps=eps)
        assert len(library.built) == 6

    def test_the_oldest_gives_way(self, library: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr(cudnn, "PLANS", 2)
        sizes = (5, 6, 5, 7, 5, 6)
        for n in sizes:
            conv(image(1, 4, n, n))
        assert len(library.built) == 4  # 5, 6, 7, and 6 again: 5 was used in between

    def test_what_cudnn_does_not_take_is_remembered(self, library: Any) -> None:
        for _ in range(3):
            F.batch_norm(image(5, 6, 3), None, None, training=True)
        assert len(library.graphs) == 1 and library.ran == []

    def test_what_it_is_not_asked(self, library: Any) -> None:
        conv(image(0, 4, 6, 6))
        w = image(4, 2, 1, 1)
        F.conv_transpose2d(image(1, 4, 3, 3), w, stride=1, dilation=3, output_padding=2)
        F.layer_norm(image(3, 4).double(), (4,))
        assert library.ran == []

    def test_scratch_memory_is_as_large_as_the_plan_says(
        self, library: Any, monkeypatch: Any
    ) -> None:
        conv(image(1, 4, 6, 6))
        monkeypatch.setattr(
            cudnn._Plan, "workspace", property(lambda self: 8, lambda *_: None), False
        )
        with pytest.raises(AssertionError):
            conv(image(1, 4, 6, 7))


class TestSwitches:
    def test_engines(self, library: Any, switches: Any) -> None:
        x, y = image(1, 4, 6, 6), image(1, 4, 6, 6).half()
        w = image(2, 4, 3, 3).half()
        conv(x)
        switches.deterministic = True
        conv(x)
        switches.allow_tf32 = False
        conv(x)
        F.conv2d(y, w)
        engines = [engine for _, engine in library.ran]
        assert engines == ["adds in any order", "tensor cores", "plain", "tensor cores"]

    def test_deterministic_algorithms(self, library: Any) -> None:
        flow.use_deterministic_algorithms(True)
        try:
            conv(image(1, 4, 6, 6))
        finally:
            flow.use_deterministic_algorithms(False)
        conv(image(1, 4, 6, 6))
        assert [e for _, e in library.ran] == ["tensor cores", "adds in any order"]

    def test_benchmark_takes_the_quickest(
        self, library: Any, switches: Any, monkeypatch: Any
    ) -> None:
        import cupy

        def elapsed(start: Any, end: Any) -> float:
            return 1.0 if library.ran[-1][1] == "quick" else 2.0

        monkeypatch.setattr(cupy.cuda, "get_elapsed_time", elapsed)
        switches.benchmark = True
        right = conv(image(1, 4, 6, 6)).cpu().numpy()
        tried = len(library.ran)
        assert library.ran[-1] == ("conv_fprop", "quick") and tried == 5 * 4 + 1
        assert np.array_equal(conv(image(1, 4, 6, 6)).cpu().numpy(), right)
        assert len(library.ran) == tried + 1
        switches.benchmark_limit, switches.deterministic = 3, True
        conv(image(1, 4, 6, 6))
        assert {e for _, e in library.ran[tried + 1 :]} <= {"tensor cores", "rounds"}

    def test_what_is_there(self, library: Any, switches: Any) -> None:
        assert switches.is_available() and switches.version() == 92800
        assert switches.is_acceptable(image(1)) and not switches.is_acceptable(
            image(1, device="cpu")
        )
        assert not switches.is_acceptable(image(1).long())
        switches.enabled = False
        assert not switches.is_acceptable(image(1))
        conv(image(1, 4, 6, 6))
        assert library.ran == []


class TestWithout:
    def test_the_frontend(self, cuda: None, switches: Any, monkeypatch: Any) -> None:
        monkeypatch.setitem(sys.modules, "cudnn", None)
        cudnn.frontend.cache_clear()
        try:
            assert not switches.is_available() and switches.version() is None
            assert conv(image(1, 4, 6, 6)).shape == (1, 2, 4, 4)
        finally:
            cudnn.frontend.cache_clear()

    def test_a_handle(self, library: Any, monkeypatch: Any) -> None:
        asked = []

        def create_handle() -> None:
            asked.append(True)
            raise RuntimeError("CUDNN_STATUS_NOT_INITIALIZED")

        monkeypatch.setattr(library, "create_handle", create_handle)
        for _ in range(2):
            assert conv(image(1, 4, 6, 6)).shape == (1, 2, 4, 4)
        assert asked == [True] and library.ran == []

    def test_cupy(self, switches: Any) -> None:
        if not flow.cuda.is_available():
            assert not switches.is_available() and switches.version() is None

    def test_ranks_whose_sums_are_added_keep_the_kernel(self, library: Any) -> None:
        import cupy

        class Alone:
            def reduce(self, x: Any, how: str) -> Any:
                return x

        kernel = op_expr("standardize").kernel(cupy)
        kernel(cupy.ones((4, 3)), groups=(4, 3), eps=0.1, line=Alone())
        assert library.ran == []

    def test_a_users_kernel_stays(self, library: Any) -> None:
        import cupy

        def mine(xp: Any, x: Any, *, groups: Any, eps: Any) -> Any:
            return x + 1, x * 1

        mine.__module__ = "elsewhere"
        try:
            register_kernel("standardize", device="cuda")(mine)
            x = cupy.ones((4, 3), np.float32)
            y, _ = op_expr("standardize").kernel(cupy)(x, groups=(4, 3), eps=0.1)
            assert (y.get() == 2).all()
        finally:
            del KERNELS.get("standardize").by_device["cuda"]
            KERNELS.get("standardize")._is_library = None
            KERNELS.changed("standardize")


class TestThreadsAndDevices:
    def test_no_two_calls_at_a_time_have_one_handle(self, library: Any, monkeypatch: Any) -> None:
        x = image(1, 4, 6, 6)
        for _ in range(2):
            conv(x)
            conv(image(1, 4, 6, 6, device="cuda:1"))
        handles = {id(graph.handle) for graph in library.graphs}
        assert len(library.built) == len(handles) == 2
        both, right = threading.Barrier(2), cudnn._Plan.run

        def run(plan: Any, arrays: Any) -> None:
            both.wait()
            right(plan, arrays)

        monkeypatch.setattr(cudnn._Plan, "run", run)
        for _ in range(2):
            threads = [threading.Thread(target=conv, args=(x,)) for _ in range(2)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        assert len(library.ran) == 8
        assert len(library.built) == len({id(graph.handle) for graph in library.graphs}) == 3

    def test_the_stream_is_the_current_one(self, library: Any) -> None:
        import cupy

        x = image(1, 4, 6, 6)
        conv(x)
        with cupy.cuda.Stream(non_blocking=True) as stream:
            conv(x)  # the stand-in compares the handle's stream with the current one
            assert library.graphs[0].handle.stream == stream.ptr


def program() -> tuple[Builder, tuple[str, ...]]:
    b = Builder()
    x, w = b.feed("x", numbers(3, 4, 6, 6)), b.feed("w", numbers(4, 4, 3, 3))
    attrs = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    y = b.op("relu", b.op("conv", x, w, None, **attrs))
    z, rstd = b.op("standardize", y, groups=(3, 4, 36), eps=1e-5)
    return b, (b.op("neg", z), rstd)


class TestCapture:
    def test_a_whole_program_becomes_a_graph(self, library: Any) -> None:
        """Even at its first run: plans are built between two attempts to capture."""
        results = []
        for mode in ("cuda_graph", "work_queue"):
            b, fetches = program()
            place = flow.device("cuda:0")
            core = InterpreterCore(b.program, b.feeds, fetches, place, mode=mode)
            feeds, externals = given(b, core)
            for step in range(3):
                results.append(core.run([x * (1 + step) for x in feeds], externals))
            if mode == "cuda_graph":
                (graphs,) = core.runner._idle
                assert len(graphs.steps) == 1 and not graphs.uncaptured
                assert sorted(library.built) == ["batchnorm", "conv_fprop"]
                assert len(cudnn._captured) == 2
                library.forget()
        for one, other in zip(results[:3], results[3:], strict=True):
            for a, b in zip(one, other, strict=True):
                assert np.allclose(a, b, rtol=1e-4)

    def test_what_cudnn_does_not_take_runs_between_graphs(
        self, library: Any, switches: Any
    ) -> None:
        switches.enabled = False
        b, fetches = program()
        core = InterpreterCore(
            b.program, b.feeds, fetches, flow.device("cuda:0"), mode="cuda_graph"
        )
        core.run(*given(b, core))
        (graphs,) = core.runner._idle
        assert "conv" in graphs.uncaptured and library.ran == []

    def test_a_compiled_step(self, library: Any) -> None:
        w = image(4, 4, 3, 3, seed=1)

        def step(x: Any) -> Any:
            return F.layer_norm(F.conv2d(x, w, padding=1).relu(), (6, 6))

        compiled = flow.compile(step, mode="cuda_graph")
        for seed in range(4):
            x = image(2, 4, 6, 6, seed=seed)
            assert np.allclose(compiled(x).cpu().numpy(), step(x).cpu().numpy(), rtol=1e-5)
        assert sorted(library.built) == ["conv_fprop", "layernorm"]


class TestTheStandIn:
    """It notices what is wrong in a graph."""

    @pytest.mark.parametrize(
        "name", ["conv2d, uneven", "conv_transpose2d", "layer_norm", "batch_norm"]
    )
    def test_other_strides(self, library: Any, monkeypatch: Any, name: str) -> None:
        right = cudnn.c_strides
        monkeypatch.setattr(cudnn, "c_strides", lambda *given: right(*given)[::-1])
        with pytest.raises((AssertionError, ValueError)):
            self.compare(name)

    @pytest.mark.parametrize("attribute", ["pre_padding", "stride", "dilation"])
    def test_other_attributes(self, library: Any, monkeypatch: Any, attribute: str) -> None:
        right = nodes.run

        def wrong(*args: Any, **attrs: Any) -> Any:
            return right(*args, **attrs | {attribute: attrs[attribute][::-1]})

        monkeypatch.setattr(nodes, "run", wrong)
        with pytest.raises(AssertionError):
            self.compare("conv2d, uneven")

    def test_other_dtypes(self, library: Any, monkeypatch: Any) -> None:
        monkeypatch.setitem(cudnn._TYPES, "f", "DOUBLE")
        with pytest.raises(AssertionError):
            self.compare("conv2d")

    def compare(self, name: str) -> None:
        found = run_call(CALLS[name])
        with flow.backends.cudnn.flags(enabled=False):
            right = run_call(CALLS[name])
        assert all(np.allclose(a, b, rtol=1e-3) for a, b in zip(found, right, strict=True))
