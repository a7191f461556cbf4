"""Transfers: feeds to the device, fetches back, host-only ops in between, and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.device import CPU
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.ir.program import OpDesc, VarDesc
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.transfers import insert_transfers
from tests import strict_cupy
from tests.conftest import REAL_CARD
from tests.static.build import Builder
from tests.static.runtime.analysed_programs import (
    expected,
    forward,
    given,
    numbers,
    on,
    training_step,
)

MODES = ["straight_line", "work_queue"]


def moved(plan: ExecutionPlan) -> list[str]:
    return [f"{op.type}({', '.join(map(str, op.inputs))})" for op in plan.block.ops]


def close(results: list[Any], right: list[Any]) -> bool:
    hosts = [a if isinstance(a, np.ndarray) else a.get() for a in results]
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(hosts, right, strict=True))


class TestOnTheHost:
    def test_nothing_is_inserted(self) -> None:
        b, fetches = training_step()
        plan = b.plan(*fetches)
        before = moved(plan)
        insert_transfers(plan)
        assert plan.transfers == frozenset()
        assert moved(plan) == before and plan.fetches == fetches


class TestOnADevice:
    @pytest.mark.parametrize("mode", MODES)
    def test_a_number_goes_there_too(self, cuda: Any, mode: str) -> None:
        with flow.static.program_guard(program := flow.static.Program()):
            x, t = flow.static.data("x", [3], "float32"), flow.static.data("t", [], "int64")
            y = flow.nn.functional.nll_loss(x * 1, t)
        core = InterpreterCore(program, ["x", "t"], [y.name], cuda, passes=(), mode=mode)
        (found,) = core.run([np.arange(3.0, dtype=np.float32), np.array(2)], [])
        assert found == -2.0

    def test_feeds_go_there_and_fetches_come_back(self, cuda: Any) -> None:
        b, fetches = forward()
        core = InterpreterCore(b.program, b.feeds, fetches, cuda, passes=(), mode="work_queue")
        core.check()
        kinds = [(i.name, i.kind, i.queue, i.stream) for i in core.instructions]
        assert kinds == [
            ("feed(x)", "feed", "host", ""),
            ("feed(label)", "feed", "host", ""),
            ("to_device", "transfer", "device", "h2d"),
            ("to_device#2", "transfer", "device", "h2d"),
            *[
                (name, "op", "device", "compute")
                for name in "matmul_nt add sub square mean".split()
            ],
            ("to_device#3", "transfer", "device", "d2h"),
            ("fetch(mean_4)", "fetch", "host", ""),
        ]
        edge = {
            (core.instructions[i].name, core.instructions[j].name): kind
            for (i, j), kind in core.edge_kinds.items()
        }
        assert edge["feed(x)", "to_device"] == "synchronous"
        assert edge["to_device", "matmul_nt"] == "event"
        assert edge["matmul_nt", "add"] == "direct"
        assert edge["mean", "to_device#3"] == "event"
        assert edge["to_device#3", "fetch(mean_4)"] == "synchronous"

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("case", [forward, training_step])
    @pytest.mark.parametrize("passes", [(), None])
    def test_results_are_those_of_the_host(
        self, cuda: Any, mode: str, case: Any, passes: Any
    ) -> None:
        b, fetches = case()
        core = InterpreterCore(b.program, b.feeds, fetches, cuda, passes=passes, mode=mode)
        feeds, externals = given(b, core)
        externals = on(cuda, externals)
        results = core.run(feeds, externals)
        assert all(type(array) is np.ndarray for array in results)
        assert close([*results, *externals], expected(b, fetches, core))

    @pytest.mark.skipif(REAL_CARD, reason="only the stand-in counts copies")
    def test_no_other_copies(self, cuda: Any) -> None:
        b, fetches = forward()
        core = InterpreterCore(b.program, b.feeds, fetches, cuda)
        feeds, externals = given(b, core)
        externals = on(cuda, externals)
        core.run(feeds, externals)
        strict_cupy.clear_log()
        core.run(feeds, externals)
        assert len(strict_cupy.transfers("h2d")) == 2
        assert len(strict_cupy.transfers("d2h")) == 1

    def test_constants_and_new_arrays_are_there(self, cuda: Any) -> None:
        b = Builder()
        x = b.feed("x", numbers(3))
        two = b.constant(np.full(3, 2, np.float32))
        full = b.op("full", shape=(3,), value=1.0, dtype=np.dtype(np.float32))
        b.block.ops[-1].attrs["device"] = CPU
        y = b.op("add", b.op("mul", x, two), full)
        for mode in MODES:
            core = InterpreterCore(b.program, [x], [y, x], cuda, passes=(), mode=mode)
            result, same = core.run([numbers(3)], [])
            assert np.array_equal(result, numbers(3) * 2 + 1)
            assert np.array_equal(same, numbers(3))

    def test_a_program_of_that_device_stays_there(self, cuda: Any) -> None:
        b, fetches = forward()
        for desc in b.block.vars.values():
            desc.device = cuda
        for mode in MODES:
            core = InterpreterCore(b.program, b.feeds, fetches, cuda, passes=(), mode=mode)
            assert not [i for i in core.instructions if i.kind == "transfer"]
            feeds, externals = given(b, core)
            results = core.run(on(cuda, feeds), on(cuda, externals))
            assert not isinstance(results[0], np.ndarray)
            assert close(results, expected(b, fetches, core)[:1])

    def test_ops_with_a_kernel_for_the_host_alone(self, cuda: Any) -> None:
        @flow.register_kernel("host_only", device="cpu")
        def host_only(xp: Any, x: Any) -> Any:
            assert xp is np and type(x) is np.ndarray
            return x + 1, x * 2

        @flow.register_kernel("host_only_", device="cpu", mutates="x")
        def host_only_(xp: Any, x: Any, y: Any) -> Any:
            x += y
            return x

        try:
            b = Builder()
            x = b.feed("x", numbers(3))
            w = b.external("w", numbers(3, seed=1))
            more, twice = b.op("host_only", b.op("exp", x))
            b.op("host_only_", w, more)
            y = b.op("add", w, twice)
            core = InterpreterCore(b.program, [x], [y], cuda, passes=(), mode="work_queue")
            core.check()
            queues = {i.name: i.queue for i in core.instructions}
            assert queues["host_only"] == queues["host_only_"] == "host"
            assert queues["exp"] == queues["copy_"] == queues["add"] == "device"
            for mode in MODES:
                core = InterpreterCore(b.program, [x], [y], cuda, passes=(), mode=mode)
                feeds, externals = given(b, core)
                right = expected(b, [y], core)
                externals = on(cuda, externals)
                assert close([*core.run(feeds, externals), *externals], right)
        finally:
            KERNELS.remove("host_only")
            KERNELS.remove("host_only_")


class TestDTypes:
    def plan(self, result: Any) -> ExecutionPlan:
        b = Builder()
        b.feed("x", np.ones(2, np.float32))
        b.feed("y", np.full((), 0.1))
        b.block.create_var(VarDesc("z", (2,), np.dtype(result)))
        b.block.append_op(OpDesc("add", ("x", "y"), ("z",)))
        return b.plan("z")

    def test_operands_are_cast_to_what_the_result_was_declared_with(self) -> None:
        plan = self.plan("float32")
        insert_transfers(plan)
        assert plan.transfers == {"y@float32"}
        assert moved(plan) == ["cast(y)", "add(x, y@float32)"]
        core = InterpreterCore(plan.block.program, ["x", "y"], ["z"], mode="work_queue")
        assert [i.kind for i in core.instructions if i.op] == ["transfer", "op"]
        [z] = core.run([np.ones(2, np.float32), np.full((), 0.1)], [])
        assert z.dtype == np.float32
        assert np.array_equal(z, (flow.ones(2) + flow.tensor(0.1, dtype=flow.float64)).numpy())

    def test_none_where_the_function_answers_so_by_itself(self) -> None:
        plan = self.plan("float64")
        insert_transfers(plan)
        assert plan.transfers == frozenset()
        b, fetches = training_step()
        insert_transfers(plan := b.plan(*fetches))
        assert plan.transfers == frozenset()
