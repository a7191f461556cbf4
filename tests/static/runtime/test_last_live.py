"""Last-live instructions: when a variable may be dropped."""

from __future__ import annotations

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.runtime.instruction import SHAPE_ONLY
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from tests.static.build import Builder
from tests.static.runtime.analysed_programs import PROGRAMS, numbers, written_views


def core_of(b: Builder, *fetches: str) -> InterpreterCore:
    return InterpreterCore(b.program, b.feeds, fetches, passes=(), mode="work_queue")


class TestUses:
    def test_what_comes_before_another_use_is_no_last_one(self) -> None:
        b = Builder()
        x = b.feed("x", numbers(2))
        y = b.op("exp", x)
        z = b.op("add", x, y)
        core = core_of(b, z)
        assert core.last_live_ops_before_shrink[x] == ["feed(x)", "exp", "add"]
        assert core.last_live_ops[x] == ["add"]

    def test_uses_that_nothing_orders_are_all_last_ones(self) -> None:
        b = Builder()
        x = b.feed("x", numbers(2))
        core = core_of(b, b.op("exp", x), b.op("neg", x))
        assert core.last_live_ops[x] == ["exp", "neg"]

    def test_what_nobody_reads_ends_with_its_making(self) -> None:
        b = Builder()
        y = b.op("exp", b.feed("x", numbers(2)))
        assert core_of(b).last_live_ops[y] == ["exp"]

    def test_a_fetch_is_a_use(self) -> None:
        b = Builder()
        y = b.op("exp", b.feed("x", numbers(2)))
        b.op("neg", y)
        assert core_of(b, y).last_live_ops[y] == ["neg", f"fetch({y})"]

    def test_an_op_that_writes_uses(self) -> None:
        core = core_of(*_spread(written_views()))
        assert core.last_live_ops["buffer"] == ["copy_#3"]

    @pytest.mark.parametrize("name", PROGRAMS)
    def test_every_variable_is_there(self, name: str) -> None:
        b, fetches = PROGRAMS[name]()
        core = core_of(b, *fetches)
        used = {n for op in b.block.ops for n in (*op.reads, *op.outputs)}
        assert set(core.last_live_ops) == used == set(core.slots)
        assert all(core.last_live_ops.values())


def _spread(case: tuple[Builder, tuple[str, ...]]) -> tuple[Builder, *tuple[str, ...]]:
    return (case[0], *case[1])


class TestWhereTheBufferIsNotNeeded:
    def test_a_reshape_does_not_prolong_a_life(self) -> None:
        b = Builder()
        y = b.op("exp", b.feed("x", numbers(2, 3)))
        flat = b.op("reshape", y, shape=(6,))
        z = b.op("neg", flat)
        core = core_of(b, z)
        assert core.last_live_ops_before_shrink[y] == ["exp"]
        assert core.last_live_ops[flat] == ["neg"]
        assert np.array_equal(core.run([numbers(2, 3)], [])[0], -np.exp(numbers(2, 3)).ravel())

    def test_unless_it_is_all_there_is(self) -> None:
        b = Builder()
        w = b.external("w", numbers(2, 3))
        flat = b.op("reshape", w, shape=(6,))
        core = core_of(b, flat)
        assert core.last_live_ops[w] == ["reshape"]

    def test_a_copying_reshape_still_finds_its_input(self) -> None:
        b = Builder()
        y = b.op("exp", b.feed("x", numbers(2, 3)))
        turned = b.op("transpose", y, dim0=0, dim1=1)
        flat = b.op("reshape", turned, shape=(6,))
        core = core_of(b, flat)
        assert np.array_equal(core.run([numbers(2, 3)], [])[0], np.exp(numbers(2, 3)).T.ravel())

    def test_a_shape_does_not_either(self) -> None:
        b = Builder()
        y = b.op("exp", b.feed("x", numbers(2)))
        core = core_of(b, b.op("neg", y), b.op("ones_like", y))
        assert core.last_live_ops_before_shrink[y] == ["exp", "neg"]

    def test_a_parameter_of_which_only_the_shape_is_wanted(self) -> None:
        b = Builder()
        zeros = b.op("zeros_like", b.external("w", numbers(2)))
        core = core_of(b, zeros)
        assert core.external_names == ("w",) and "w" not in core.slots
        assert not core.run([], [numbers(2)])[0].any()

    @pytest.mark.parametrize("name", SHAPE_ONLY)
    def test_these_ops_do_look_at_the_shape_alone(self, name: str) -> None:
        schema = KERNELS.get(name).schema
        assert set(SHAPE_ONLY[name]) <= set(schema.inputs)
        given = {"p": 0.5, "generator": flow.Generator().manual_seed(0)}
        attrs = {key: given[key] for key in schema.attrs}
        rng = np.random.default_rng(0)
        for dtype in (np.float32, np.float64):
            results = []
            for x in (rng.random((3, 4)).astype(dtype), np.broadcast_to(dtype(0), (3, 4))):
                given["generator"].manual_seed(0)
                results.append(op_expr(name).kernel(np)(*[x] * len(schema.inputs), **attrs))
            assert results[0].dtype == results[1].dtype == dtype
            assert np.array_equal(*results)
