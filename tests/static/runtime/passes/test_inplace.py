"""Outputs take over dying operands, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.device import Device
from oneflow_lite.ops.registry import KERNELS, register_kernel
from oneflow_lite.static.runtime.plan import ExecutionPlan
from tests.static.build import Builder, assert_same_results

X = np.arange(1.0, 7).reshape(2, 3)


def planned(b: Builder, *fetches: str) -> ExecutionPlan:
    plan = b.plan(*fetches, passes=["inplace", "buffer_planning"])
    assert_same_results(b, plan)
    return plan


def start(x: Any = X) -> tuple[Builder, str]:
    """Return a builder and a temporary that may be taken over."""
    b = Builder()
    return b, b.op("neg", b.feed("x", x))


def test_a_chain_runs_in_one_buffer() -> None:
    b, y = start()
    z = b.op("exp", y)
    u = b.op("add", b.feed("v", X), z)
    end = b.op("sqrt", u)
    plan = planned(b, end)
    assert plan.in_place == {z: y, u: z, end: u}
    assert plan.reports[0].fired == 3 and plan.reports[0].saved == {"bytes": 3 * 48}
    assert plan.memory_plan.places == {}  # the last one is fetched


def test_one_operand_twice() -> None:
    b, y = start()
    z = b.op("mul", y, y)
    assert planned(b, z).in_place == {z: y}


def test_a_later_use_under_any_name_prevents_it() -> None:
    b, y = start()
    view = b.op("select", y, dim=0, index=0)
    z = b.op("exp", y)
    assert z not in planned(b, b.op("add", z, view)).in_place
    b, y = start()
    z = b.op("exp", y)
    assert z not in planned(b, b.op("add", z, y)).in_place


def test_a_fetched_operand_is_not_taken() -> None:
    b, y = start()
    view = b.op("reshape", y, shape=(6,))
    z = b.op("exp", y)
    assert planned(b, z, y).in_place == {}
    assert planned(b, z, view).in_place == {}


@pytest.mark.parametrize("kind", ["feed", "external"])
def test_what_is_given_is_not_taken(kind: str) -> None:
    b = Builder()
    z = b.op("exp", getattr(b, kind)("x", X))
    assert planned(b, z).in_place == {}


def test_a_constant_is_not_taken() -> None:
    b = Builder()
    assert planned(b, b.op("add", b.constant(X), b.feed("x", X))).in_place == {}


def test_a_view_is_not_taken() -> None:
    b, y = start()
    assert planned(b, b.op("exp", b.op("select", y, dim=0, index=1))).in_place == {}


def test_an_operand_that_another_one_overlaps_is_not_taken() -> None:
    b, y = start(X[:, :2])
    z = b.op("add", y, b.op("transpose", y, dim0=0, dim1=1))
    assert planned(b, z).in_place == {}


def test_shape_dtype_and_layout_must_agree() -> None:
    b, y = start()
    row = b.op("neg", b.feed("row", X[0]))
    z = b.op("add", y, row)
    assert planned(b, z).in_place == {z: y}
    b, y = start()
    assert planned(b, b.op("add", y, b.feed("more", np.ones((2, 2, 3))))).in_place == {}
    b, y = start()
    assert planned(b, b.op("gt", y, b.feed("other", X))).in_place == {}
    b, y = start()
    assert planned(b, b.op("cast", y, dtype=np.dtype("i8"))).in_place == {}
    b, y = start(np.asfortranarray(X))
    assert b.block.vars[y].strides == (8, 16)
    z = b.op("add", y, b.feed("other", X))
    assert planned(b, z).in_place == ({z: y} if b.block.vars[z].strides == (8, 16) else {})
    b.block.vars[z].strides = None
    assert b.plan(z, passes=["inplace"]).in_place == {}


def test_an_input_that_the_kernel_still_needs_is_not_taken() -> None:
    @register_kernel("inplace_late_reader", reuses="x")
    def kernel(xp, x, y, *, out=None):
        return xp.add(xp.exp(x, out=out), y, out=out)

    kernel.__module__ = "oneflow_lite.kernels.test"
    try:
        b, x = start()
        y = b.op("neg", b.feed("y", X))
        z = b.op("inplace_late_reader", x, y)
        assert planned(b, z).in_place == {z: x}
        b, x = start()
        y = b.op("neg", b.feed("y", X))
        z = b.op("inplace_late_reader", b.feed("v", X), y)
        assert planned(b, z).in_place == {}
        b, x = start()
        assert planned(b, b.op("inplace_late_reader", x, x)).in_place == {}
    finally:
        KERNELS.remove("inplace_late_reader")


def test_what_a_users_op_hands_through_is_a_copy_so_its_memory_is_taken() -> None:
    @register_kernel("inplace_user_op")
    def kernel(xp, x):
        return np.ndarray(x.shape, x.dtype, x)

    try:
        b, x = start()
        with pytest.warns(UserWarning, match="shares memory"):
            y = b.op("inplace_user_op", x)
        z = b.op("exp", x)
        assert planned(b, b.op("sub", y, z)).in_place.get(z) == x
    finally:
        KERNELS.remove("inplace_user_op")


def test_memory_that_a_kernel_allocates_itself_is_not_taken() -> None:
    @register_kernel("inplace_no_out")
    def kernel(xp, x):
        return x + 1

    kernel.__module__ = "oneflow_lite.kernels.test"
    try:
        b, y = start()
        z = b.op("neg", b.op("inplace_no_out", y))
        assert planned(b, z).in_place == {}
    finally:
        KERNELS.remove("inplace_no_out")


def test_random_numbers_are_temporaries_like_others() -> None:
    b = Builder()
    attrs = {"shape": (2, 3), "dtype": np.dtype("f8"), "generator": flow.Generator()}
    y = b.op("random_uniform", **attrs)
    z = b.op("neg", y)
    assert b.plan(z, passes=["inplace"]).in_place == {z: y}


def test_what_control_flow_has_seen_is_not_taken() -> None:
    def kernel(xp, *arrays):
        return np.ndarray(arrays[0].shape, arrays[0].dtype, arrays[0])

    kernel.__module__ = "oneflow_lite.kernels"  # what a user's kernel hands through is copied
    register_kernel("inplace_branch", random=True)(kernel)
    try:
        b, x = start()
        y = b.op("inplace_branch", x)
        z = b.op("exp", x)
        plan = planned(b, b.op("sub", z, b.op("neg", y)))
        assert z not in plan.in_place and x not in plan.memory_plan.places
    finally:
        KERNELS.remove("inplace_branch")


def test_an_output_for_outside_takes_nothing() -> None:
    b, y = start()
    z = b.op("exp", y)
    b.block.vars[z].persistable = True
    assert b.plan(z, passes=["inplace"]).in_place == {}


def test_other_devices_are_left_alone() -> None:
    b, y = start()
    z = b.op("exp", y)
    for name in (y, z):
        b.block.vars[name].device = Device("cuda")
    assert b.plan(z, passes=["inplace", "buffer_planning"]).in_place == {}


def test_a_users_op_writes_where_it_wants_to() -> None:
    @register_kernel("inplace_user_out", reuses="x")
    def kernel(xp, x, *, out=None):
        return x + 1

    try:
        b, y = start()
        z = b.op("inplace_user_out", y)
        plan = planned(b, b.op("sum_to", z, shape=(3,)))
        assert plan.in_place == {} and z not in plan.memory_plan.places
    finally:
        KERNELS.remove("inplace_user_out")


def test_a_fetched_variable_that_was_written_home_is_not_taken() -> None:
    b, x = start()
    t = b.op("add", x, b.feed("y", X))
    b.op("copy_", x, t)
    z = b.op("exp", x)
    plan = b.plan(z, x, passes=["addto", "inplace", "buffer_planning"])
    assert_same_results(b, plan)
    assert plan.in_place == {t: x}
    plan = b.plan(z, passes=["addto", "inplace", "buffer_planning"])
    assert_same_results(b, plan)
    assert plan.in_place == {t: x, z: x}
