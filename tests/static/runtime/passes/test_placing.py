"""Sums of slices' gradients are written slice by slice, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.static.runtime.passes import placing
from oneflow_lite.static.runtime.plan import ExecutionPlan
from tests.static.build import Builder, assert_same_results

ROWS = slice(None)


def planned(b: Builder, *fetches: str) -> ExecutionPlan:
    plan = b.plan(*fetches, passes=["placing", "addto", "inplace", "buffer_planning"])
    assert_same_results(b, plan)
    return plan


def types(plan: ExecutionPlan) -> list[str]:
    return [op.type for op in plan.block.ops]


def among_zeros(b: Builder, name: str, index: Any, shape: tuple[int, ...] = (4, 6)) -> str:
    x = b.op("neg", b.feed(name, np.zeros(np.empty(shape)[index].shape)))  # all of it is -0.0
    return str(b.op("getitem_grad", x, index=index, shape=shape))


def added(b: Builder, *terms: str) -> str:
    first, *others = terms
    for each in others:
        first = str(b.op("add", first, each))
    return first


PARTS = (slice(2, 4), slice(0, 2), slice(4, 6))


def test_parts_of_all_columns_are_one_array_that_is_filled() -> None:
    b = Builder()
    plan = planned(b, added(b, *[among_zeros(b, f"x{i}", (ROWS, p)) for i, p in enumerate(PARTS)]))
    assert types(plan) == ["neg", "neg", "neg", "placed"]
    assert plan.block.ops[-1].attrs["whole"]
    assert plan.reports[0].fired == 1 and plan.reports[0].saved == {"ops": 4, "bytes": 4 * 192}


def test_the_sum_has_no_negative_zeros() -> None:
    b = Builder()
    total = added(b, *[among_zeros(b, f"x{i}", (ROWS, p)) for i, p in enumerate(PARTS)])
    assert not np.signbit(b.arrays[total]).any()
    planned(b, total)  # compares bits


@pytest.mark.parametrize(
    "indices",
    [
        [(slice(0, 2),), (slice(2, 3),)],
        [(1, Ellipsis), (3,), (0, ROWS)],
        [(Ellipsis, 2), (Ellipsis, slice(3, 6))],
        [(None, slice(0, 1)), (slice(1, 4), None)],
        [(ROWS, slice(0, 6, 5)), (slice(0, 0), slice(0, 6))],
        [slice(3, None), slice(None, 2)],
        [(slice(None, None, 2), 0), (ROWS, slice(1, None))],
    ],
)
def test_slices_that_leave_something_out(indices: list[Any]) -> None:
    b = Builder()
    plan = planned(b, added(b, *[among_zeros(b, f"x{i}", p) for i, p in enumerate(indices)]))
    assert types(plan)[-1] == "placed"


@pytest.mark.parametrize("case", ["overlap", "used", "fetched", "twice", "broadcast", "dtype"])
def test_what_is_no_such_sum_stays(case: str) -> None:
    b = Builder()
    x = among_zeros(b, "x", (ROWS, slice(0, 3)))
    y = among_zeros(b, "y", (ROWS, slice(2 if case == "overlap" else 3, 6)))
    if case == "twice":
        fetches = [str(b.op("add", x, x))]
    elif case == "broadcast":
        fetches = [str(b.op("add", x, among_zeros(b, "z", (slice(0, 2),), (6,))))]
    elif case == "dtype":
        fetches = [str(b.op("add", x, b.op("cast", y, dtype=np.dtype("float32"))))]
    else:
        fetches = [str(b.op("add", x, y))]
    if case == "used":
        fetches.append(str(b.op("exp", x)))
    if case == "fetched":
        fetches.append(x)
    assert "placed" not in types(planned(b, *fetches))


@pytest.mark.parametrize("what", ["piece", "zeros", "sum"])
def test_what_is_written_in_between_stays(what: str) -> None:
    b = Builder()
    piece = b.op("neg", b.feed("x", np.ones((4, 3))))
    x = b.op("getitem_grad", piece, index=(ROWS, slice(0, 3)), shape=(4, 6))
    y = among_zeros(b, "y", (ROWS, slice(3, 6)))
    seven = b.constant(np.float64(7))
    if what != "sum":
        b.op("fill_", piece if what == "piece" else x, seven)
    total = b.op("add", x, y)
    if what == "sum":
        b.op("fill_", total, seven)
    assert "placed" not in types(planned(b, total))


def test_a_part_of_a_sum_is_taken() -> None:
    b = Builder()
    x, y = (among_zeros(b, f"x{i}", (ROWS, p)) for i, p in enumerate(PARTS[:2]))
    plan = planned(b, added(b, b.op("exp", b.feed("z", np.ones((4, 6)))), added(b, x, y)))
    assert types(plan) == ["neg", "neg", "exp", "placed", "add"]


@pytest.mark.parametrize("order", [1, -1, 0])
def test_many_parts(order: int) -> None:
    """In no order, so many that each would have to be looked at stay apart."""
    b, n = Builder(), 2 * placing._MANY
    numbers = np.arange(n)[::order] if order else np.random.default_rng(0).permutation(n)
    terms = [among_zeros(b, f"x{i}", (int(i), Ellipsis), (n, 2)) for i in numbers]
    found = [t for t in types(planned(b, added(b, *terms))) if t not in ("neg", "getitem_grad")]
    assert found == ["placed"] if order else found[0] == "placed" and "add" in found


@pytest.mark.parametrize("way", ["chunk", "unbind", "index"])
def test_the_gradient_of_what_is_split(way: str) -> None:
    x = flow.randn(6, 8).requires_grad_()

    def step() -> list[Any]:
        if way == "chunk":
            a, b, c, d = x.chunk(4, 1)
        elif way == "unbind":
            a, b, *_, c, d = x.unbind(0)
        else:
            a, b, c, d = [x[t] for t in range(4)]
        y = flow.tanh(a) * b + c * flow.sigmoid(d)
        return list(flow.autograd.grad(y.sum(), x))

    compiled = flow.compile(step)
    with flow.use_jit(False):
        found = [compiled() for _ in range(3)][-1]
    ops = [op.type for op in compiled._recordings[0].core.plan.block.ops]
    assert "placed" in ops and "getitem_grad" not in ops
    assert all(
        a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(found, step(), strict=True)
    )
