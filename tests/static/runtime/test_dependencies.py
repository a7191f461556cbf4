"""Dependencies: the three rules on memory, kept orders, shrinking, and kinds of edges."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.runtime.dependencies import happens_before, shrink
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from tests.static.build import Builder
from tests.static.runtime.analysed_programs import PROGRAMS, draws, forward, numbers, written_views


def core_of(b: Builder, *fetches: str) -> InterpreterCore:
    return InterpreterCore(b.program, b.feeds, fetches, passes=(), mode="work_queue")


def edges(core: InterpreterCore, *, before_shrink: bool = False) -> set[tuple[str, str]]:
    table = core.downstream_before_shrink if before_shrink else core.downstream
    name = [str(i) for i in core.instructions]
    return {(name[i], name[j]) for i, followers in enumerate(table) for j in followers}


class TestRules:
    def test_read_after_write(self) -> None:
        b = Builder()
        y = b.op("neg", b.op("exp", b.feed("x", numbers(2))))
        core = core_of(b, y)
        assert edges(core) == {("feed(x)", "exp"), ("exp", "neg"), ("neg", f"fetch({y})")}
        assert core.dependency_count == [0, 1, 1, 1]

    def test_write_after_read(self) -> None:
        b = Builder()
        w, s = b.external("w", numbers(2)), b.external("s", numbers(2))
        y = b.op("exp", w)
        b.op("copy_", w, s)
        assert ("exp", "copy_") in edges(core_of(b, y))

    def test_write_after_write(self) -> None:
        b = Builder()
        w, s = b.external("w", numbers(2)), b.external("s", numbers(2))
        b.op("copy_", w, s)
        b.op("copy_", w, s)
        assert edges(core_of(b)) == {("copy_", "copy_#2")}

    def test_reads_are_free(self) -> None:
        b = Builder()
        x = b.external("x", numbers(2))
        fetches = [b.op("exp", x), b.op("exp", x), b.op("reshape", x, shape=(2, 1))]
        between = {(i, j) for i, j in edges(core_of(b, *fetches)) if "fetch" not in j}
        assert between == set()

    @pytest.mark.parametrize("write_view", [True, False])
    def test_a_view_is_its_base(self, write_view: bool) -> None:
        b = Builder()
        s = b.external("s", numbers(2, 3))
        a = b.op("exp", b.feed("x", numbers(2, 3)))
        view = b.op("transpose", b.op("reshape", a, shape=(3, 2)), dim0=0, dim1=1)
        written, read = (view, a) if write_view else (a, view)
        before = b.op("neg", read)
        b.op("copy_", written, s)
        after = b.op("neg", read)
        core = core_of(b, before, after)
        assert {("neg", "copy_"), ("copy_", "neg#2")} <= edges(core)
        core.check()

    def test_a_shape_is_no_read(self) -> None:
        b = Builder()
        x, s = b.feed("x", numbers(2)), b.external("s", numbers(2))
        zeros = b.op("zeros_like", x)
        core = core_of(b, zeros, b.op("add", x, s))
        assert core.dependency_count[1] == 0
        assert ("zeros_like", "add") not in edges(core, before_shrink=True)

    def test_both_inputs_of_one_op(self) -> None:
        b = Builder()
        x = b.feed("x", numbers(2))
        core = core_of(b, b.op("mul", x, x))
        assert core.downstream == [[1], [2], []]


class TestOrders:
    def test_feeds(self) -> None:
        assert ("feed(x)", "feed(label)") in edges(core_of(*_spread(forward())))

    def test_random_ops(self) -> None:
        found = edges(core_of(*_spread(draws())))
        assert {("random_uniform", "dropout_mask"), ("dropout_mask", "random_normal")} <= found

    def test_ops_that_give_nothing_back(self) -> None:
        seen: list[float] = []

        def tell(xp: Any, x: Any) -> Any:
            seen.append(float(x[0]))
            return ()

        flow.register_kernel("tell")(tell)
        try:
            b = Builder()
            x = b.feed("x", numbers(2))
            b.op("tell", b.op("exp", x))
            b.op("tell", x)
            core = core_of(b)
            assert ("tell", "tell#2") in edges(core)
            seen.clear()
            core.run([np.zeros(2)], [])
            assert seen == [1.0, 0.0]
        finally:
            KERNELS.remove("tell")


def _spread(case: Any) -> tuple[Any, ...]:
    b, fetches = case
    return (b, *fetches)


def closure(downstream: list[list[int]]) -> set[tuple[int, int]]:
    """All pairs that a way leads between, found one edge at a time."""
    pairs = {(i, j) for i, followers in enumerate(downstream) for j in followers}
    while True:
        longer = {(i, k) for i, j in pairs for j2, k in pairs if j == j2} | pairs
        if longer == pairs:
            return pairs
        pairs = longer


@pytest.mark.parametrize("seed", range(30))
def test_shrinking_keeps_the_order_and_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.randint(1, 12)
    graph = [[j for j in range(i + 1, n) if rng.random() < 0.4] for i in range(n)]
    small = shrink(graph)
    whole = closure(graph)
    assert closure(small) == whole
    assert whole == {
        (i, j) for i, bits in enumerate(happens_before(graph)) for j in range(n) if bits >> j & 1
    }
    for i, followers in enumerate(small):
        for j in followers:
            assert j in graph[i]
            without = [[k for k in f if (m, k) != (i, j)] for m, f in enumerate(small)]
            assert (i, j) not in closure(without)


@pytest.mark.parametrize("name", PROGRAMS)
def test_shrunk_tables_order_the_same(name: str) -> None:
    core = core_of(*_spread(PROGRAMS[name]()))
    assert closure(core.downstream) == closure(core.downstream_before_shrink)
    assert sum(core.dependency_count) == sum(map(len, core.downstream))


class TestKinds:
    def test_one_direct_edge_leads_on(self) -> None:
        core = core_of(*_spread(written_views()))
        assert set(core.edge_kinds) == {
            (i, j) for i, followers in enumerate(core.downstream) for j in followers
        }
        for i, followers in enumerate(core.downstream):
            kinds = [core.edge_kinds[i, j] for j in followers]
            assert kinds == (["direct"] + ["synchronous"] * len(kinds))[: len(kinds)]
