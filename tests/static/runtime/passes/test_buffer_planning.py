"""Temporaries share memory when they do not live at the same time, and only then."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.device import Device
from oneflow_lite.ops.registry import KERNELS, register_kernel
from oneflow_lite.static.runtime.passes import plannable
from oneflow_lite.static.runtime.passes.buffer_planning import ALIGNMENT
from oneflow_lite.static.runtime.plan import ExecutionPlan
from tests.static.build import Builder, assert_same_results
from tests.static.runtime.passes.random_programs import RandomProgram

X = np.arange(1.0, 17).reshape(4, 4)


def planned(b: Builder, *fetches: str) -> ExecutionPlan:
    plan = b.plan(*fetches, passes=["buffer_planning"])
    assert_same_results(b, plan)
    return plan


def test_a_chain_needs_two_buffers() -> None:
    b = Builder()
    y = b.feed("x", X)
    names = [y := b.op("neg", y) for _ in range(5)]
    plan = planned(b, b.op("abs", y))
    memory = plan.memory_plan
    assert [memory.places[n] for n in names] == [(0, 128), (128, 128)] * 2 + [(0, 128)]
    assert (memory.arena_bytes, memory.unshared_bytes) == (256, 640)
    report = plan.reports[0]
    assert (report.name, report.fired, report.saved) == ("buffer_planning", 5, {"bytes": 384})


def test_the_smallest_gap_that_is_large_enough_is_taken() -> None:
    b = Builder()
    x = b.feed("x", np.ones(64))
    feeds = {n: b.feed(f"f{n}", np.ones(n)) for n in (8, 16, 24, 32)}
    large, wall, small = b.op("neg", feeds[32]), b.op("neg", x), b.op("neg", feeds[16])
    other = b.op("neg", x)
    ends = [b.op("abs", large), b.op("abs", small)]
    again = b.op("neg", feeds[8]), b.op("neg", feeds[24])
    ends += [b.op("abs", n) for n in (*again, wall, other)]
    places = planned(b, *ends).memory_plan.places
    assert places[again[0]][0] == places[small][0]
    assert places[again[1]][0] == places[large][0]


def test_places_are_aligned() -> None:
    b = Builder()
    names = [b.op("neg", b.feed(f"x{n}", np.ones(n))) for n in (1, 3, 9, 5)]
    plan = planned(b, *[b.op("abs", n) for n in names])
    assert all(offset % ALIGNMENT == 0 for offset, _ in plan.memory_plan.places.values())
    assert plan.memory_plan.arena_bytes == 64 * 5


def test_a_view_keeps_the_memory() -> None:
    b = Builder()
    y = b.op("neg", b.feed("x", X))
    view = b.op("reshape", y, shape=(16,))
    other = b.op("exp", b.feed("v", X))
    plan = planned(b, b.op("add", b.op("sum_to", view, shape=(1,)), b.op("abs", other)))
    places = plan.memory_plan.places
    assert places[y][0] != places[other][0] and view not in places


def test_outputs_in_place_lie_where_their_operands_do() -> None:
    b = Builder()
    y = b.op("neg", b.feed("x", X))
    z = b.op("exp", y)
    end = b.op("sum_to", z, shape=(4,))
    plan = b.plan(end, passes=["inplace", "buffer_planning"])
    assert_same_results(b, plan)
    assert plan.memory_plan.places == {y: (0, 128), z: (0, 128)}
    assert plan.memory_plan.unshared_bytes == 256


def test_layouts_are_kept() -> None:
    b = Builder()
    y = b.op("neg", b.feed("x", np.asfortranarray(X)))
    plan = planned(b, b.op("sum_to", y, shape=(4,)))
    assert plan.block.var(y).strides == (8, 32) and y in plan.memory_plan.places


def test_what_is_not_planned() -> None:
    b = Builder()
    x = b.feed("x", X)
    drawn = b.op("random_permutation", n=2, dtype=np.dtype("i8"), generator=flow.Generator())
    empty = b.op("neg", b.feed("nothing", np.ones((0, 3))))
    fetched = b.op("neg", x)
    hidden = b.op("neg", x)
    view = b.op("select", hidden, dim=0, index=0)
    outside, elsewhere, sparse, plain = (b.op("neg", x) for _ in range(4))
    b.block.vars[outside].persistable = True
    b.block.vars[elsewhere].device = Device("cuda")
    b.block.vars[sparse].strides = (64, 16)
    c = b.op("add", x, b.constant(X))
    b.op("fill_", c, b.constant(np.float64(1)))
    plan = b.plan(fetched, view)
    assert plannable(plan) == {plain, c}
    assert drawn and empty  # made above


@pytest.mark.parametrize("random", [False, True])
def test_control_flow_may_hand_its_input_through_and_keeps_the_memory(random: bool) -> None:
    name = f"planning_handed_through_{random}"

    def kernel(xp, x):
        return np.ndarray(x.shape, x.dtype, x) if random else x * 1

    kernel.__module__ = "oneflow_lite.kernels"
    register_kernel(name, random=random)(kernel)
    try:
        b = Builder()
        y = b.op("neg", b.feed("x", X))
        z = b.op(name, y)
        other = b.op("exp", b.feed("v", X))
        end = b.op("add", z, b.op("abs", other))
        plan = planned(b, end)
        assert (y in plan.memory_plan.places) is not random
    finally:
        KERNELS.remove(name)


def test_no_two_lives_meet_in_one_place() -> None:
    """Checked from scratch: memory that overlaps is used at times that do not."""
    checked = 0
    for seed in range(60):
        random = RandomProgram(seed)
        plan = random.builder.plan(*random.fetches, passes=["buffer_planning"])
        uses: dict[str, set[int]] = {}
        arrays = random.builder.arrays
        for position, op in enumerate(plan.block.ops):
            for name in (*op.reads, *op.outputs):
                for owner in plan.memory_plan.places:
                    if np.shares_memory(arrays[name], arrays[owner]):
                        uses.setdefault(owner, set()).add(position)
        for (a, (begin, nbytes)), (b, (start, size)) in combinations(
            plan.memory_plan.places.items(), 2
        ):
            if begin < start + size and start < begin + nbytes:
                checked += 1
                early, late = sorted((uses[a], uses[b]), key=min)
                assert max(early) < min(late), (seed, a, b)
    assert checked > 100
