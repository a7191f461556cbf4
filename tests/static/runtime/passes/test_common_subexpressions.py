"""Equal ops become one, unless their results could ever differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.ops.registry import KERNELS, register_kernel
from oneflow_lite.static.runtime.passes.common_subexpressions import attribute_key
from oneflow_lite.static.runtime.plan import ExecutionPlan
from tests.static.build import Builder, assert_same_results

X = np.arange(1.0, 7).reshape(2, 3)


def merged(b: Builder, *fetches: str) -> tuple[ExecutionPlan, int]:
    plan = b.plan(*fetches, passes=["common_subexpressions"])
    assert_same_results(b, plan)
    return plan, plan.reports[0].fired


def test_equal_chains_become_one_views_included() -> None:
    b = Builder()
    x, w = b.feed("x", X), b.external("w", X)
    chains = [b.op("exp", b.op("transpose", w, dim0=0, dim1=1)) for _ in range(2)]
    y = b.op("add", *chains)
    plan, fired = merged(b, y, b.op("neg", x))
    assert fired == 2 and plan.reports[0].saved == {"ops": 2, "bytes": 48}
    assert [op.type for op in plan.block.ops] == ["transpose", "exp", "add", "neg"]


def test_a_write_in_between_keeps_them_apart() -> None:
    b = Builder()
    p = b.external("p", X)
    y = b.op("exp", p)
    b.op("fill_", b.op("select", p, dim=0, index=0), b.constant(np.float64(3)))
    assert merged(b, b.op("sub", y, b.op("exp", p)))[1] == 0


def test_a_write_to_other_given_memory_keeps_them_apart() -> None:
    # p and q may be views of one array
    b = Builder()
    p, q = b.external("p", X), b.external("q", X)
    y = b.op("exp", p)
    b.op("fill_", q, b.constant(np.float64(3)))
    assert merged(b, b.op("sub", y, b.op("exp", p)))[1] == 0


def test_a_write_elsewhere_does_not() -> None:
    b = Builder()
    t, c, p = b.op("neg", b.feed("x", X)), b.constant(X), b.external("p", X)
    y = b.op("add", t, c)
    b.op("fill_", p, b.constant(np.float64(3)))
    assert merged(b, b.op("sub", y, b.op("add", t, c)))[1] == 1
    b = Builder()
    p = b.external("p", X)
    y = b.op("exp", p)
    t = b.op("neg", p)
    b.op("fill_", t, b.constant(np.float64(3)))
    assert merged(b, b.op("sub", y, b.op("exp", p)), t)[1] == 1


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("through_a_view", [False, True])
def test_results_that_are_written_stay_apart(which: int, through_a_view: bool) -> None:
    b = Builder()
    x = b.feed("x", X)
    two = [b.op("exp", x), b.op("exp", x)]
    target = b.op("select", two[which], dim=1, index=0) if through_a_view else two[which]
    b.op("fill_", target, b.constant(np.float64(3)))
    assert merged(b, b.op("sub", *two))[1] == 0


def test_copies_by_reshape_stay_apart_when_written() -> None:
    b = Builder()
    x = b.op("transpose", b.op("neg", b.feed("x", X)), dim0=0, dim1=1)
    two = [b.op("reshape", x, shape=(6,)) for _ in range(2)]
    assert not np.shares_memory(*[b.arrays[n] for n in two])
    b.op("fill_", two[0], b.constant(np.float64(3)))
    assert merged(b, b.op("sub", *two))[1] == 0


def test_views_of_what_is_written_afterwards_are_merged() -> None:
    # weights are updated at the end of a step
    b = Builder()
    w = b.external("w", X)
    two = [b.op("transpose", w, dim0=0, dim1=1) for _ in range(2)]
    y = b.op("sub", *two)
    b.op("copy_", w, b.op("neg", w))
    assert merged(b, y)[1] == 1


def test_two_fetched_results_stay_apart() -> None:
    b = Builder()
    x = b.feed("x", X)
    two = [b.op("exp", x), b.op("exp", x)]
    assert merged(b, *two)[1] == 0
    views = [b.op("reshape", n, shape=(6,)) for n in two]
    assert merged(b, *views)[1] == 0
    assert merged(b, two[0], views[1])[1] == 0


def test_the_fetched_one_keeps_its_name() -> None:
    b = Builder()
    x = b.feed("x", X)
    first, second, third = (b.op("exp", x) for _ in range(3))
    z = b.op("mul", first, third)
    plan, fired = merged(b, second, z)
    assert fired == 2
    assert [op.outputs for op in plan.block.ops] == [(second,), (z,)]
    assert merged(b, second, third, z)[1] == 1  # two of the three are somebody's


def test_equal_constants_are_one_operand() -> None:
    b = Builder()
    x = b.feed("x", X)
    two = [b.op("add", x, b.constant(X)) for _ in range(2)]
    assert merged(b, b.op("sub", *two))[1] == 1
    for other in (X + 1, X.astype("f4"), np.asfortranarray(X), X[:1], X.view("i8")):
        b = Builder()
        x = b.feed("x", X)
        two = [b.op("add", x, b.constant(c)) for c in (X, other)]
        assert merged(b, b.op("sub", *two))[1] == 0


def test_fetched_constants_stay_apart() -> None:
    b = Builder()
    c = [b.constant(X) for _ in range(2)]
    y = b.op("sub", *[b.op("exp", n) for n in c])
    plan = b.plan(y, *c, passes=["common_subexpressions"])
    assert plan.reports[0].fired == 0 and plan.fetches == (y, *c)


def test_control_flow_may_write_what_it_reads() -> None:
    def kernel(xp, x):
        x[0] = 7
        return x.sum(1)

    kernel.__module__ = "oneflow_lite.kernels"  # a user's kernel may not write what it reads
    register_kernel("common_branch", random=True)(kernel)

    try:
        b = Builder()
        t = b.op("neg", b.feed("x", X))
        y = b.op("exp", t)
        b.op("common_branch", t)
        assert merged(b, b.op("sub", y, b.op("exp", t)))[1] == 0
    finally:
        KERNELS.remove("common_branch")


def test_random_ops_draw_each_for_itself() -> None:
    b = Builder()
    attrs = {"shape": (2,), "dtype": np.dtype("f8"), "generator": flow.Generator()}
    two = [b.op("random_uniform", **attrs) for _ in range(2)]
    assert b.plan(b.op("sub", *two), passes=["common_subexpressions"]).reports[0].fired == 0


def test_ops_of_users_stay_apart() -> None:
    @register_kernel("common_user_op")
    def kernel(xp, x):
        return x * 1

    try:
        b = Builder()
        x = b.op("neg", b.feed("x", X))
        y = b.op("common_user_op", x)
        assert merged(b, b.op("add", y, b.op("common_user_op", x)))[1] == 0
    finally:
        KERNELS.remove("common_user_op")


def test_what_an_op_of_a_user_hands_through_is_a_copy() -> None:
    @register_kernel("common_user_op")
    def kernel(xp, x):
        return np.ndarray(x.shape, x.dtype, x)

    try:
        b = Builder()
        x = b.feed("x", X)
        two = [b.op("exp", x), b.op("exp", x)]
        with pytest.warns(UserWarning, match="shares memory"):
            handed_through = b.op("common_user_op", two[0])
        b.op("fill_", handed_through, b.constant(np.float64(3)))
        assert merged(b, b.op("sub", *two))[1] == 1
    finally:
        KERNELS.remove("common_user_op")


SELF = np.ones(2)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (1, True, False),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        (0j, -0j, False),
        ((1, 2), (1, 2), True),
        ((1, 2), [1, 2], False),
        ((1, (2.0,)), (1, (2,)), False),
        (slice(0, 2), slice(0, 2, None), True),
        (slice(0, 2), slice(0, 2, 1), False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1.0}, False),
        (np.dtype("f8"), np.dtype(np.float64), True),
        (np.dtype("f8"), np.dtype("f4"), False),
        (np.float32(1), np.float32(1), True),
        (np.float32(1), np.float64(1), False),
        (SELF, SELF, True),
        (SELF, SELF.copy(), False),
        (None, None, True),
        (..., ..., True),
        ("x", b"x", False),
    ],
)
def test_attributes(a: Any, b: Any, equal: bool) -> None:
    assert (attribute_key(a) == attribute_key(b)) is equal
    if equal:
        assert hash(attribute_key(a)) == hash(attribute_key(b))


def test_other_attributes_are_another_op() -> None:
    b = Builder()
    x = b.feed("x", X)
    two = [b.op("select", x, dim=0, index=i) for i in (0, 1)]
    assert merged(b, b.op("sub", *two))[1] == 0
