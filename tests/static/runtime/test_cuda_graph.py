"""The CUDA-graph mode: launch N equals launch 1, and what a graph cannot repeat is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.device import CPU
from oneflow_lite.errors import ArgumentError, CaptureError
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.ir.program import OpDesc, VarDesc
from oneflow_lite.static.runtime.cuda_graph import CudaGraph
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from tests.conftest import REAL_CARD
from tests.static.build import Builder
from tests.static.runtime.analysed_programs import (
    PROGRAMS,
    Case,
    draws,
    expected,
    forward,
    given,
    numbers,
    on,
    training_step,
    written_views,
)

CAPTURED = [make for make in PROGRAMS.values() if make is not draws]


def core_of(case: Case, place: Any, mode: str = "cuda_graph") -> InterpreterCore:
    b, fetches = case
    return InterpreterCore(b.program, b.feeds, fetches, place, mode=mode)


def host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()


def close(results: list[Any], right: list[Any]) -> bool:
    return all(np.allclose(host(a), r, rtol=1e-4) for a, r in zip(results, right, strict=True))


def graph_of(core: InterpreterCore) -> CudaGraph:
    assert isinstance(core.runner, CudaGraph)
    return core.runner


@pytest.mark.parametrize("make", CAPTURED)
class TestLaunches:
    def test_the_last_equals_the_first(self, cuda: Any, make: Any) -> None:
        case = make()
        core = core_of(case, cuda)
        feeds, start = given(case[0], core)
        right = expected(*case, core)
        externals = on(cuda, start)
        held = []
        for _ in range(4):
            for array, content in zip(externals, start, strict=True):
                array.set(content)
            results = core.run(feeds, externals)
            assert close([*results, *externals], right)
            held.append([array.copy() for array in results])
        assert close(results, [host(array) for array in held[0]])
        assert close(held[0], right[: len(results)])

    def test_what_is_fetched_is_not_overwritten(self, cuda: Any, make: Any) -> None:
        case = make()
        for desc in case[0].block.vars.values():
            desc.device = cuda  # so that it stays on the device
        core = core_of(case, cuda)
        feeds, externals = (on(cuda, arrays) for arrays in given(case[0], core))
        held = core.run(feeds, externals)
        before = [host(array).copy() for array in held]
        core.run([array + 1 for array in feeds], externals)
        assert close(held, before)

    def test_follows_a_sequence_of_runs(self, cuda: Any, make: Any) -> None:
        """State goes from launch to launch, and other feeds are read each time."""
        case = make()
        runs = []
        for mode in ("cuda_graph", "work_queue"):
            core = core_of(case, cuda, mode)
            feeds, externals = given(case[0], core)
            externals = on(cuda, externals)
            results = []
            for step in range(3):
                results += core.run([array * (1 + step / 4) for array in feeds], externals)
            runs.append([host(array) for array in (*results, *externals)])
        assert close(*runs)


class TestWhatIsGiven:
    def test_other_arrays_are_captured_anew(self, cuda: Any) -> None:
        case = training_step()
        core = core_of(case, cuda)
        feeds, start = given(case[0], core)
        right = expected(*case, core)
        first, second = on(cuda, start), on(cuda, start)
        assert close([*core.run(feeds, first), *first], right)
        steps = graph_of(core)._idle[0].steps
        assert close([*core.run(feeds, second), *second], right)
        assert graph_of(core)._idle[0].steps is not steps
        assert close(first, right[2:])  # the old ones are left alone

    def test_feeds_that_are_written(self, cuda: Any) -> None:
        b = Builder()
        x = b.feed("x", numbers(3))
        b.op("copy_", x, b.op("exp", x))
        y = b.op("neg", x)
        for desc in b.block.vars.values():
            desc.device = cuda
        core = core_of((b, (y, x)), cuda)
        for _ in range(2):
            feed = cuda.put(numbers(3))
            negative, same = core.run([feed], [])
            assert same is feed
            assert close([negative, feed], [-np.exp(numbers(3)), np.exp(numbers(3))])

    def test_feeds_of_the_host_are_not(self, cuda: Any) -> None:
        case = written_views()
        core = core_of(case, cuda)
        feeds, externals = given(case[0], core)
        before = [array.copy() for array in feeds]
        core.run(feeds, on(cuda, externals))
        assert close(feeds, before)


class TestBetweenGraphs:
    def test_what_cupy_does_not_capture_runs_there(self, cuda: Any) -> None:
        case = training_step()
        core = core_of(case, cuda)
        feeds, externals = given(case[0], core)
        core.run(feeds, on(cuda, externals))
        graph = graph_of(core)
        if not REAL_CARD:
            assert graph.uncaptured == {"matmul", "matmul_nt", "matmul_tn"}
            assert len(graph._idle[0].steps) == 5 + 3  # matmuls; relu, relu_grad and the updates

    def test_errors_are_explained(self, cuda: Any) -> None:
        broken = [False]

        def product(xp: Any, x: Any) -> Any:
            if broken[0]:
                raise KeyError("no")
            return x @ x

        flow.register_kernel("product_of_test")(product)
        try:
            b = Builder()
            core = core_of((b, (b.op("product_of_test", b.feed("x", numbers(2, 2))),)), cuda)
            right = numbers(2, 2) @ numbers(2, 2)
            for broken[0] in (False, True, False):
                if broken[0]:
                    with pytest.raises(KeyError) as caught:
                        core.run([numbers(2, 2)], [])
                    assert caught.value.__notes__ == ["in op 'product_of_test'"]
                else:
                    assert close(core.run([numbers(2, 2)], []), [right])
        finally:
            KERNELS.remove("product_of_test")


class TestRefusals:
    def test_the_cpu(self) -> None:
        with pytest.raises(ArgumentError, match="'mode': expected 'straight_line' or 'work_queue'"):
            core_of(forward(), CPU)

    def test_random_ops(self, cuda: Any) -> None:
        with pytest.raises(CaptureError, match="'random_uniform', which draws random numbers"):
            core_of(draws(), cuda)

    @pytest.mark.parametrize(
        ("kernel", "device", "why"),
        [
            (lambda xp, x: xp.asarray([float(x.sum())]), None, "waits for the device"),
            (lambda xp, x: x + 1, "cpu", "runs on cpu"),
        ],
    )
    def test_ops_that_need_the_host(self, cuda: Any, kernel: Any, device: Any, why: str) -> None:
        flow.register_kernel("looks_of_test", device=device)(kernel)
        try:
            b = Builder()
            y = b.op("looks_of_test", b.op("exp", b.feed("x", numbers(2))))
            for _ in range(2):
                with pytest.raises(CaptureError, match=f"'looks_of_test', which {why}"):
                    core_of((b, (y,)), cuda).run([numbers(2)], [])
        finally:
            KERNELS.remove("looks_of_test")

    def test_copies_that_the_program_makes_itself(self, cuda: Any) -> None:
        b = Builder()
        x = b.feed("x", numbers(2))
        y = b.op("exp", x)
        b.block.create_var(VarDesc("there", (2,), np.dtype(np.float32)))
        b.block.append_op(OpDesc("to_device", (y,), ("there",), {"target": CPU, "source": cuda}))
        for name in (x, y):
            b.block.var(name).device = cuda
        with pytest.raises(CaptureError, match="'to_device', which copies between devices"):
            core_of((b, ("there",)), cuda)

    def test_an_error_while_capturing_leaves_nothing_behind(self, cuda: Any) -> None:
        broken = [True]

        def maybe(xp: Any, x: Any) -> Any:
            if broken[0]:
                raise KeyError("no")
            return x + 1

        b = Builder()
        broken[0] = False
        flow.register_kernel("maybe_of_test")(maybe)
        try:
            core = core_of((b, (b.op("maybe_of_test", b.feed("x", numbers(2))),)), cuda)
            broken[0] = True
            with pytest.raises(KeyError) as caught:
                core.run([numbers(2)], [])
            assert caught.value.__notes__ == ["in op 'maybe_of_test'"]
            broken[0] = False
            assert close(core.run([numbers(2)], []), [numbers(2) + 1])
        finally:
            KERNELS.remove("maybe_of_test")
