"""Constants are computed once, unless a run could change or hand out the result."""

from __future__ import annotations

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.device import CPU
from oneflow_lite.static.runtime.passes.constant_folding import MAX_BYTES
from oneflow_lite.static.runtime.plan import ExecutionPlan
from tests.static.build import Builder, assert_same_results

X = np.arange(6.0).reshape(2, 3)
FULL = {"shape": (2, 3), "value": 2.0, "dtype": np.dtype("f8")}


def folded(b: Builder, *fetches: str) -> ExecutionPlan:
    plan = b.plan(*fetches, passes=["constant_folding"])
    assert_same_results(b, plan)
    return plan


def types(plan: ExecutionPlan) -> list[str]:
    return [op.type for op in plan.block.ops]


def test_a_chain_of_constants_is_computed_once() -> None:
    b = Builder()
    c = b.op("sqrt", b.op("mul", b.constant(X), b.op("full", **FULL)))
    plan = folded(b, b.op("add", b.feed("x", X), c))
    assert types(plan) == ["add"]
    assert plan.reports[0].fired == 3
    assert plan.reports[0].saved == {"ops": 3, "bytes": 3 * 48}
    assert not plan.block.var(c).value.flags.writeable
    assert b.block.var(c).value is None  # the Program itself stays


def test_the_device_of_a_creation_is_no_argument_of_the_kernel() -> None:
    b = Builder()
    c = b.op("full", **FULL)
    b.block.ops[0].attrs["device"] = CPU
    y = b.op("neg", c)
    assert types(b.plan(b.op("add", b.feed("x", X), y), passes=["constant_folding"])) == ["add"]


def test_the_layout_stays() -> None:
    b = Builder()
    c = b.op("abs", b.op("transpose", b.constant(X), dim0=0, dim1=1))
    plan = folded(b, b.op("sum_to", c, shape=(2,)), b.op("neg", b.feed("x", X)))
    assert plan.block.var(c).value.strides == b.arrays[c].strides == (8, 24)


def test_what_depends_on_a_feed_or_a_parameter_stays() -> None:
    b = Builder()
    y = b.op("neg", b.external("p", X))
    z = b.op("neg", b.feed("x", X))
    assert types(folded(b, b.op("add", y, z))) == ["neg", "neg", "add"]


def test_fetched_results_are_made_at_every_run() -> None:
    b = Builder()
    y = b.op("neg", b.constant(X))
    view = b.op("reshape", b.op("abs", b.constant(X)), shape=(6,))
    assert types(folded(b, y, view)) == ["neg", "abs", "reshape"]


@pytest.mark.parametrize("through_a_view", [False, True])
def test_what_is_written_is_made_at_every_run(through_a_view: bool) -> None:
    b = Builder()
    x = b.feed("x", X)
    y = b.op("full", **FULL)
    target, source = y, x
    if through_a_view:
        target, source = (b.op("select", n, dim=0, index=1) for n in (y, x))
    b.op("copy_", target, b.op("add", target, source))
    z = b.op("neg", y)
    plan = folded(b, z)
    assert "full" in types(plan) and plan.reports[0].fired == 0


def test_random_ops_are_drawn_at_every_run() -> None:
    b = Builder()
    attrs = {"shape": (2,), "dtype": np.dtype("f8"), "generator": flow.Generator()}
    y = b.op("neg", b.op("random_uniform", **attrs))
    assert types(b.plan(y, passes=["constant_folding"])) == ["random_uniform", "neg"]


def test_what_is_made_for_outside_stays() -> None:
    b = Builder()
    y = b.op("full", **FULL)
    b.block.vars[y].persistable = True
    assert types(b.plan(passes=["constant_folding"])) == ["full"]


def test_large_results_stay() -> None:
    b = Builder()
    count = MAX_BYTES // 8
    attrs = {"value": 1.0, "dtype": np.dtype("f8")}
    small, large = (b.op("full", shape=(n,), **attrs) for n in (count, count + 1))
    plan = folded(b, *(b.op("neg", b.op("add", n, n)) for n in (small, large)))
    assert large in [n for op in plan.block.ops for n in op.outputs]
    assert small not in [n for op in plan.block.ops for n in op.outputs]


def test_an_op_that_raises_does_so_in_the_run() -> None:
    b = Builder()
    c = b.op("add", b.constant(X), b.constant(X))
    y = b.op("add", b.feed("x", X), c)
    b.block.ops[0].inputs = (b.constant(X), b.constant(np.ones(7)))
    plan = b.plan(y, passes=["constant_folding"])
    assert types(plan) == ["add", "add"] and plan.reports[0].fired == 0
