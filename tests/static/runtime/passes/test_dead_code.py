"""Dead code goes; what anybody could notice stays."""

from __future__ import annotations

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.ops.registry import KERNELS, register_kernel
from oneflow_lite.static.runtime.passes.dead_code import remove_dead_code
from tests.static.build import Builder, assert_same_results

X = np.arange(6.0).reshape(2, 3)


def types_left(b: Builder, *fetches: str) -> list[str]:
    plan = b.plan(*fetches, passes=["dead_code"])
    assert_same_results(b, plan)
    return [op.type for op in plan.block.ops]


def test_a_chain_that_nobody_needs_goes() -> None:
    b = Builder()
    x = b.feed("x", X)
    y = b.op("abs", x)
    b.op("sqrt", b.op("neg", y))
    plan = b.plan(y, passes=["dead_code"])
    assert [op.type for op in plan.block.ops] == ["abs"]
    (report,) = plan.reports
    assert (report.name, report.fired, report.saved) == ("dead_code", 2, {"ops": 2, "bytes": 96})
    assert len(b.block.ops) == 3  # the Program itself stays


def test_nothing_fires_where_all_is_needed() -> None:
    b = Builder()
    y = b.op("neg", b.feed("x", X))
    assert remove_dead_code(b.plan(y)).fired == 0


@pytest.mark.parametrize("kind", ["feed", "external"])
def test_writes_to_given_memory_stay(kind: str) -> None:
    b = Builder()
    x = getattr(b, kind)("x", X)
    row = b.op("select", x, dim=0, index=1)
    b.op("copy_", row, b.constant(np.ones(3)))
    assert types_left(b, b.op("neg", b.feed("y", X))) == ["select", "copy_", "neg"]


def test_a_write_stays_while_an_alias_is_read_later() -> None:
    b = Builder()
    y = b.op("neg", b.feed("x", X))
    early = b.op("reshape", y, shape=(3, 2))
    b.op("fill_", y, b.constant(np.float64(7)))
    assert types_left(b, early) == ["neg", "reshape", "fill_"]


def test_a_write_stays_while_a_later_op_reads_an_alias() -> None:
    b = Builder()
    y = b.op("neg", b.feed("x", X))
    other = b.op("transpose", y, dim0=0, dim1=1)
    b.op("fill_", b.op("select", y, dim=0, index=0), b.constant(np.float64(7)))
    assert types_left(b, b.op("abs", other)) == ["neg", "transpose", "select", "fill_", "abs"]


def test_a_write_after_the_last_read_goes() -> None:
    b = Builder()
    y = b.op("neg", b.feed("x", X))
    z = b.op("abs", y)
    b.op("fill_", y, b.constant(np.float64(7)))
    assert types_left(b, z) == ["neg", "abs"]


def test_random_ops_stay_for_those_after_them() -> None:
    b = Builder()
    attrs = {"shape": (2,), "dtype": np.dtype("f8"), "generator": flow.Generator()}
    b.op("random_uniform", **attrs)
    y = b.op("random_uniform", **attrs)
    plan = b.plan(y, passes=["dead_code"])
    assert [op.type for op in plan.block.ops] == ["random_uniform"] * 2


def test_what_is_made_for_outside_stays() -> None:
    b = Builder()
    y = b.op("full", shape=(2,), value=1.0, dtype=np.dtype("f8"))
    b.block.vars[y].persistable = True  # as in a startup program
    assert [op.type for op in b.plan(passes=["dead_code"]).block.ops] == ["full"]


def test_writes_to_it_stay_as_well() -> None:
    b = Builder()
    y = b.op("full", shape=(2,), value=1.0, dtype=np.dtype("f8"))
    b.block.vars[y].persistable = True
    b.op("fill_", b.op("narrow", y, dim=0, start=0, length=1), b.constant(np.float64(7)))
    left = [op.type for op in b.plan(passes=["dead_code"]).block.ops]
    assert left == ["full", "narrow", "fill_"]


def test_writes_to_memory_that_no_op_made_stay() -> None:
    b = Builder()
    x = b.external("x", X)
    b.block.vars[x].persistable = False  # nobody has said where it comes from
    b.op("fill_", x, b.constant(np.float64(7)))
    assert types_left(b) == ["fill_"]


def test_ops_of_users_stay() -> None:
    calls = []

    @register_kernel("dead_code_user_op")
    def kernel(xp, x):
        calls.append(x)
        return x + 1

    try:
        b = Builder()
        b.op("dead_code_user_op", b.feed("x", X))
        plan = b.plan(passes=["dead_code"])
        assert_same_results(b, plan)
        assert len(calls) == 5  # built once, and twice two runs
    finally:
        KERNELS.remove("dead_code_user_op")
