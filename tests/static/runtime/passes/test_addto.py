"""Sums accumulate in one buffer, and results are written where `copy_` would bring them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oneflow_lite.ops.registry import KERNELS, register_kernel
from oneflow_lite.static.runtime.plan import ExecutionPlan
from tests.static.build import Builder, assert_same_results

X = np.arange(1.0, 7).reshape(2, 3)


def planned(b: Builder, *fetches: str) -> ExecutionPlan:
    plan = b.plan(*fetches, passes=["addto", "inplace", "buffer_planning"])
    assert_same_results(b, plan)
    return plan


def test_terms_are_summed_in_one_buffer() -> None:
    b = Builder()
    x = b.feed("x", X)
    terms = [b.op(op, x) for op in ("neg", "exp", "sqrt", "abs")]
    first = b.op("add", terms[0], terms[1])
    second = b.op("add", terms[2], first)
    third = b.op("add", second, terms[3])
    plan = planned(b, b.op("sum_to", third, shape=(3,)))
    assert plan.in_place == {first: terms[0], second: first, third: second}
    report = plan.reports[0]
    assert (report.fired, report.saved) == (3, {"bytes": 3 * 48})


def test_other_ops_are_left_to_the_inplace_pass() -> None:
    b = Builder()
    z = b.op("mul", b.op("neg", b.feed("x", X)), b.constant(X))
    assert b.plan(z, passes=["addto"]).in_place == {}


def test_a_term_that_is_used_later_is_not_summed_into() -> None:
    b = Builder()
    x = b.feed("x", X)
    y, v = b.op("neg", x), b.op("exp", x)
    z = b.op("add", y, v)
    u = b.op("mul", y, v)
    assert planned(b, z, u).in_place == {u: y}


@pytest.mark.parametrize("kind", ["feed", "external", "temporary", "view"])
def test_a_result_is_written_home(kind: str) -> None:
    b = Builder()
    if kind in ("feed", "external"):
        x = getattr(b, kind)("x", X)
    else:
        x = b.op("neg", b.feed("v", np.stack([X, X])))
        x = b.op("select", x, dim=0, index=1) if kind == "view" else b.op("abs", b.external("w", X))
    t = b.op("add", x, b.feed("y", X))
    b.op("copy_", x, t)
    plan = planned(b, b.op("mul", x, x))
    assert plan.in_place[t] == x
    assert t not in plan.memory_plan.places or kind == "temporary"
    report = plan.reports[0]
    assert (report.fired, report.saved) == (1, {"bytes": 2 * 48})
    assert plan.block.ops[-2].type == "copy_"


def test_it_may_come_from_elsewhere() -> None:
    b = Builder()
    x, y = b.external("x", X), b.feed("y", X)
    t = b.op("mul", y, y)
    b.op("copy_", x, t)
    assert planned(b, b.op("neg", x)).in_place == {t: x}


def write_home(b: Builder, x: str, y: str, between: Any = None, op: str = "add") -> str:
    t = b.op(op, x, y)
    if between is not None:
        between(t)
    b.op("copy_", x, t)
    return str(t)


def test_a_result_that_is_used_after_the_copy_is_not() -> None:
    b = Builder()
    x = b.external("x", X)
    t = write_home(b, x, b.feed("y", X))
    z = b.op("neg", t)
    b.op("fill_", x, b.constant(np.float64(3)))
    plan = planned(b, z, b.op("exp", t))
    assert t not in plan.in_place
    assert t not in planned(b, t).in_place


def test_memory_that_is_used_in_between_is_not() -> None:
    made: list[str] = []
    for use in ("read", "read an alias", "write", "use of the result"):
        b = Builder()
        x, other = b.external("x", X), b.external("other", X)
        y = b.feed("y", X)
        alias = b.op("select", x, dim=0, index=0)

        def between(t: str) -> None:
            if use == "read":
                made.append(b.op("exp", x))
            elif use == "read an alias":
                made.append(b.op("exp", alias))
            elif use == "write":
                b.op("fill_", other, b.constant(np.float64(3)))
            else:
                made.append(b.op("reshape", t, shape=(6,)))

        t = write_home(b, x, y, between)
        made.append(b.op("neg", x))
        fetches = [n for n in made if n in b.block.vars]
        assert t not in planned(b, *fetches).in_place, use
        made.clear()


def test_a_target_that_is_made_after_the_result_is_not() -> None:
    b = Builder()
    base = b.op("neg", b.feed("v", np.stack([X, X])))
    t = b.op("add", b.feed("x", X), b.feed("y", X))
    x = b.op("select", base, dim=0, index=1)
    b.op("copy_", x, t)
    assert t not in planned(b, b.op("exp", base)).in_place


@pytest.mark.parametrize("other", ["shape", "dtype", "layout"])
def test_a_target_of_another_kind_is_not(other: str) -> None:
    x = {"shape": np.stack([X, X]), "dtype": X.astype("f4"), "layout": np.asfortranarray(X)}[other]
    b = Builder()
    target = b.external("x", x)
    y = b.feed("y", X)
    t = b.op("mul", y, y)
    b.op("copy_", target, t)
    assert planned(b, b.op("neg", target)).in_place == {}


def test_without_dimensions_there_is_nothing_to_gain() -> None:
    b = Builder()
    x = b.external("x", np.float64(3))
    write_home(b, x, b.feed("y", np.float64(4)))
    terms = b.op("neg", b.feed("v", np.float64(5))), b.op("exp", x)
    assert planned(b, b.op("abs", b.op("add", *terms))).in_place == {}


def test_other_writes_do_more_than_copy() -> None:
    b = Builder()
    x = b.external("x", X)
    t = b.op("add", x, b.feed("y", X))
    b.op("setitem_", x, t, index=(slice(None, None, -1), ...), dims=())
    assert t not in planned(b, b.op("neg", x)).in_place


def test_overlapping_operands_are_the_array_modules_business() -> None:
    b = Builder()
    x = b.external("x", X[:, :2])
    t = write_home(b, x, b.op("transpose", x, dim0=0, dim1=1))
    assert planned(b, b.op("neg", x)).in_place == {t: x}


def test_other_kernels_get_no_overlap_and_no_memory_from_outside() -> None:
    @register_kernel("addto_two_passes", reuses=("x", "y"))
    def kernel(xp, x, y, *, out=None):
        out = xp.add(x, 0, out=out)
        return xp.subtract(out, y, out=out) if y is not x else xp.subtract(out, out, out=out)

    kernel.__module__ = "oneflow_lite.kernels.test"
    try:
        b = Builder()  # a temporary and no overlap
        x = b.op("abs", b.feed("x", X[:, :2]))
        t = write_home(b, x, b.feed("y", X[:, :2]), op="addto_two_passes")
        assert planned(b, b.op("neg", x)).in_place[t] == x
        b = Builder()  # an overlap
        x = b.op("abs", b.feed("x", X[:, :2]))
        view = b.op("transpose", x, dim0=0, dim1=1)
        t = write_home(b, x, view, op="addto_two_passes")
        assert t not in planned(b, b.op("neg", x)).in_place
        b = Builder()  # memory that an exception would leave half written
        x = b.external("x", X)
        y = b.op("abs", b.feed("y", X))
        t = write_home(b, x, y, op="addto_two_passes")
        assert planned(b, b.op("neg", x)).in_place == {t: y}
    finally:
        KERNELS.remove("addto_two_passes")


def test_a_target_that_the_kernel_still_needs_is_not_written() -> None:
    @register_kernel("addto_late_reader", reuses="x")
    def kernel(xp, x, y, *, out=None):
        return xp.add(xp.exp(x, out=out), y, out=out)

    kernel.__module__ = "oneflow_lite.kernels.test"
    try:
        b = Builder()
        x = b.op("abs", b.feed("x", X))
        t = b.op("addto_late_reader", b.feed("y", X), x)
        b.op("copy_", x, t)
        assert t not in planned(b, b.op("neg", x)).in_place
    finally:
        KERNELS.remove("addto_late_reader")


def test_a_users_op_writes_where_it_wants_to() -> None:
    @register_kernel("addto_user_op", reuses="x")
    def kernel(xp, x, *, out=None):
        return x + 1

    try:
        b = Builder()
        x = b.op("abs", b.feed("x", X))
        t = b.op("addto_user_op", b.op("neg", b.feed("y", X)))
        b.op("copy_", x, t)
        assert t not in planned(b, b.op("neg", x)).in_place
    finally:
        KERNELS.remove("addto_user_op")


def test_a_run_that_ignores_the_plan_is_right_as_well() -> None:
    b = Builder()
    x = b.external("x", X)
    write_home(b, x, b.feed("y", X))
    plan = planned(b, b.op("neg", x))
    plan.in_place.clear()
    assert_same_results(b, plan)
