"""Groups are chains of elementwise ops on one shape that keep their inner results."""

from __future__ import annotations

import numpy as np

from oneflow_lite.static.runtime.plan import ExecutionPlan
from tests.static.build import Builder, assert_same_results

X = np.arange(1.0, 7).reshape(2, 3)


def groups(b: Builder, *fetches: str) -> tuple[list[list[str]], ExecutionPlan]:
    plan = b.plan(*fetches, passes=["inplace", "elementwise_grouping", "buffer_planning"])
    assert_same_results(b, plan)
    return [[op.type for op in group] for group in plan.groups], plan


def test_a_dag_that_ends_in_one_result_is_a_group() -> None:
    b = Builder()
    x = b.feed("x", X)
    y = b.op("exp", x)
    v = b.op("neg", y)
    end = b.op("mul", b.op("add", y, v), x)
    found, plan = groups(b, end)
    assert found == [["exp", "neg", "add", "mul"]]
    report = plan.reports[1]
    assert (report.fired, report.saved) == (1, {"ops": 3, "bytes": 3 * 48})
    assert all(op in plan.block.ops for op in plan.groups[0])


def test_a_chain_runs_in_one_buffer() -> None:
    b = Builder()
    chain = [b.op("exp", b.feed("x", X))]
    chain += [b.op("neg", chain[-1])]
    chain += [b.op("abs", chain[-1])]
    found, plan = groups(b, b.op("sum_to", chain[-1], shape=(3,)))
    assert found == [["exp", "neg", "abs"]]
    assert plan.memory_plan.places == dict.fromkeys(chain, (0, 48))


def test_a_result_that_is_used_outside_ends_a_group() -> None:
    b = Builder()
    x = b.feed("x", X)
    y = b.op("exp", x)
    v = b.op("neg", y)
    u = b.op("sqrt", v)
    end = b.op("sum_to", b.op("abs", u), shape=(3,))
    assert groups(b, end)[0] == [["exp", "neg", "sqrt", "abs"]]
    assert groups(b, end, v)[0] == [["exp", "neg"], ["sqrt", "abs"]]
    b.op("sum_to", v, shape=(3,))
    assert groups(b, end)[0] == [["exp", "neg"], ["sqrt", "abs"]]


def test_branches_that_meet_are_one_group() -> None:
    b = Builder()
    x = b.feed("x", X)
    y = b.op("mul", b.op("exp", x), b.op("sqrt", x))
    assert groups(b, y)[0] == [["exp", "sqrt", "mul"]]


def test_branches_that_do_not_meet_are_two_groups() -> None:
    b = Builder()
    x = b.feed("x", X)
    y = b.op("neg", b.op("exp", x))
    z = b.op("abs", b.op("sqrt", x))
    assert groups(b, y, z)[0] == [["exp", "neg"], ["sqrt", "abs"]]


def test_a_group_ends_where_all_is_inside() -> None:
    b = Builder()
    x = b.feed("x", X)
    y = b.op("exp", x)
    z = b.op("neg", y)
    end = b.op("mul", y, z)
    assert groups(b, z, end)[0] == []


def test_a_result_that_nobody_uses_is_in_no_group() -> None:
    b = Builder()
    x = b.feed("x", X)
    b.op("exp", x)
    assert groups(b, b.op("neg", x))[0] == []


def test_rows_that_are_normalized_are_not_elementwise() -> None:
    b = Builder()
    y = b.op("softmax", b.op("exp", b.feed("x", X)), dim=1)
    assert groups(b, b.op("neg", y))[0] == []


def test_another_shape_ends_a_group() -> None:
    b = Builder()
    y = b.op("neg", b.op("exp", b.feed("row", X[0])))
    z = b.op("abs", b.op("add", y, b.feed("x", X)))
    assert groups(b, z)[0] == [["exp", "neg"], ["add", "abs"]]


def test_other_ops_end_a_group() -> None:
    b = Builder()
    x = b.feed("x", X)
    y = b.op("neg", b.op("exp", x))
    z = b.op("sqrt", b.op("abs", b.op("reshape", y, shape=(6,))))
    w = b.external("w", X)
    t = b.op("exp", b.op("neg", w))
    b.op("copy_", w, t)
    assert groups(b, z)[0] == [["exp", "neg"], ["abs", "sqrt"], ["neg", "exp"]]


def test_no_group_of_one() -> None:
    b = Builder()
    assert groups(b, b.op("exp", b.feed("x", X)))[0] == []


def test_what_is_made_for_outside_is_in_no_group() -> None:
    b = Builder()
    y = b.op("exp", b.feed("x", X))
    z = b.op("neg", y)
    b.block.vars[y].persistable = True
    assert b.plan(z, passes=["elementwise_grouping"]).groups == []


def test_a_long_forward_pass_is_searched_in_linear_time() -> None:
    b = Builder()
    names = [b.feed("x", X[0])]
    for _ in range(2000):
        names.append(b.op("neg", names[-1]))
    plan = b.plan(*names, passes=["elementwise_grouping"])
    assert plan.groups == []
