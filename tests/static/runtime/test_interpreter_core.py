"""InterpreterCore: its tables are right, are needed to the last entry, and are what runs."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, FlowError
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.ir.program import Location, OpDesc
from oneflow_lite.static.runtime.interpreter_core import MODES, InterpreterCore
from oneflow_lite.static.runtime.passes import DEFAULT_PASSES
from tests.static.build import Builder
from tests.static.runtime.analysed_programs import (
    PROGRAMS,
    Case,
    expected,
    forward,
    given,
    numbers,
    outcome,
    reseed,
    same,
    survives_all_orders,
    training_step,
)

PAGE = Path(__file__).resolve().parents[3] / "docs" / "executor.md"


@pytest.fixture(params=PROGRAMS.values(), ids=PROGRAMS)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param()


def core_of(case: Case, mode: str = "work_queue", passes: Any = ()) -> InterpreterCore:
    b, fetches = case
    return InterpreterCore(b.program, b.feeds, fetches, passes=passes, mode=mode)


class TestRun:
    @pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
    @pytest.mark.parametrize("passes", [(), None, DEFAULT_PASSES], ids=["none", "fit", "all"])
    def test_equals_the_reference(self, case: Case, mode: str, passes: Any) -> None:
        b, fetches = case
        core = core_of(case, mode, passes)
        core.check()
        right = expected(b, fetches, core)
        for _ in range(3):
            reseed(b)
            feeds, externals = given(b, core)
            assert same([*core.run(feeds, externals), *externals], right)

    def test_results_are_in_memory_of_their_own(self, case: Case) -> None:
        b, fetches = case
        for mode in ("straight_line", "work_queue"):
            core = core_of(case, mode, None)
            reseed(b)
            held = core.run(*given(b, core))
            before = [array.copy() for array in held]
            core.run(*given(b, core))
            core.run([array + 1 for array in given(b, core)[0]], given(b, core)[1])
            assert same(held, before)

    def test_a_mode_that_does_not_exist(self) -> None:
        b, fetches = forward()
        with pytest.raises(ArgumentError, match="'mode': expected 'straight_line' or"):
            InterpreterCore(b.program, b.feeds, fetches, mode="fast")
        assert MODES == ("straight_line", "numpy", "work_queue", "cuda_graph")

    def test_a_constant_is_fetched_as_a_copy(self) -> None:
        b = Builder()
        c = b.constant(np.arange(4.0))
        view = b.op("reshape", c, shape=(2, 2))
        core = InterpreterCore(b.program, [], [c, view], mode="work_queue", passes=())
        for array in core.run([], []):
            array += 1
        assert same(core.run([], []), [np.arange(4.0), np.arange(4.0).reshape(2, 2)])

    def test_given_arrays_are_fetched_as_they_are(self) -> None:
        b = Builder()
        x, w = b.feed("x", numbers(2)), b.external("w", numbers(2))
        core = InterpreterCore(b.program, [x], [w, x, w], mode="work_queue", passes=())
        feed, external = numbers(2), numbers(2, seed=1)
        assert [i.name for i in core.instructions] == [
            "feed(x)",
            "fetch(w)",
            "fetch(x)",
            "fetch(w)#2",
        ]
        first, second, third = core.run([feed], [external])
        assert first is third is external and second is feed


class TestEveryEntryIsNeeded:
    """An entry that is taken out of a table is missed by the check, and by a run in some order."""

    def test_none_is_missing(self, case: Case) -> None:
        core = core_of(case)
        core.check()
        assert survives_all_orders(*case, core)

    def test_edges(self, case: Case) -> None:
        core = core_of(case)
        edges = [(i, j) for i, followers in enumerate(core.downstream) for j in followers]
        assert edges
        for i, j in edges:
            core.downstream[i].remove(j)
            core.dependency_count[j] -= 1
            with pytest.raises(FlowError, match=r"check\(\)"):
                core.check()
            assert not survives_all_orders(*case, core), (str(core.instructions[i]), j)
            core.downstream[i].append(j)
            core.dependency_count[j] += 1
        core.check()

    def test_an_edge_that_is_counted_and_gone(self, case: Case) -> None:
        core = core_of(case)
        for i, followers in enumerate(core.downstream):
            for j in list(followers):
                followers.remove(j)
                with pytest.raises(FlowError):
                    core.check()
                with pytest.raises(FlowError, match="never became ready"):
                    outcome(case[0], core, None)
                core.downstream[i].append(j)

    def test_last_uses(self, case: Case) -> None:
        core = core_of(case)
        for name, users in core.last_live_ops.items():
            assert users, name
            for user in list(users):
                users.remove(user)
                with pytest.raises(FlowError, match=f"'{name}' is last used by"):
                    core.check()
                assert not survives_all_orders(*case, core), (name, user)
                users.append(user)
        core.check()

    def test_what_is_too_much(self) -> None:
        core = core_of(forward())
        core.downstream[0].append(len(core.instructions) - 1)
        core.dependency_count[-1] += 1
        with pytest.raises(FlowError, match="is implied"):
            core.check()
        core = core_of(forward())
        core.last_live_ops["x"].append("mean")
        with pytest.raises(FlowError, match="'x' is last used by"):
            core.check()


class TestCaptured:
    """A training step with dropout and Adam, captured by the front end."""

    def program(self) -> tuple[Any, Any, Any]:
        main, startup = flow.static.Program(), flow.static.Program()
        with flow.static.program_guard(main, startup):
            x, label = flow.static.data("x", [4, 6]), flow.static.data("label", [4, 1])
            net = flow.nn.Sequential(
                flow.nn.Linear(6, 5), flow.nn.ReLU(), flow.nn.Dropout(0.5), flow.nn.Linear(5, 1)
            )
            loss = flow.nn.MSELoss()(net(x), label)
            flow.optim.Adam(net.parameters(), lr=0.1).minimize(loss)
        return main, startup, loss

    def losses(self, mode: str) -> list[Any]:
        main, startup, loss = self.program()
        with flow.static.scope_guard(flow.static.Scope()):
            executor = flow.static.Executor(mode=mode)
            flow.manual_seed(1)
            executor.run(startup)
            feed = {"x": numbers(4, 6), "label": numbers(4, 1, seed=1)}
            return [executor.run(main, feed=feed, fetch_list=[loss])[0] for _ in range(4)]

    def test_modes_give_the_same_bits(self) -> None:
        straight, queue = self.losses("straight_line"), self.losses("work_queue")
        assert same(straight, queue) and straight[0] != straight[-1]

    @pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
    def test_control_flow(self, mode: str) -> None:
        main = flow.static.Program()
        with flow.static.program_guard(main):
            x = flow.static.data("x", [3])
            y = flow.static.nn.cond(x.sum() > 0, lambda: x * 2, lambda: -x)
            z = flow.static.nn.cond(x.sum() < 0, lambda: y + 1, lambda: y - 1)
        core = flow.static.Executor(mode=mode).analyse(main, ["x"], [z])
        core.check()
        conds = [i.index for i in core.instructions if str(i).startswith("cond")]
        assert conds[1] in core.downstream_before_shrink[conds[0]]
        for sign, right in ((1, [1, 3, 5]), (-1, [2, 3, 4])):
            assert same(core.run([np.array([1, 2, 3], np.float32) * sign], []), [np.array(right)])

    @pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
    def test_every_entry_of_what_runs_is_checked(self, mode: str) -> None:
        main, _, loss = self.program()
        core = flow.static.Executor(mode=mode).analyse(main, ["x", "label"], [loss])
        core.check()
        for i, followers in enumerate(core.downstream):
            for j in list(followers):
                followers.remove(j)
                core.dependency_count[j] -= 1
                with pytest.raises(FlowError, match="nothing orders"):
                    core.check()
                followers.append(j)
                core.dependency_count[j] += 1
        for name, users in core.last_live_ops.items():
            for user in list(users):
                users.remove(user)
                with pytest.raises(FlowError, match=f"'{name}' is last used by"):
                    core.check()
                users.append(user)
        core.check()


class TestErrors:
    @pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
    def test_each_instruction_in_turn(self, case: Case, mode: str) -> None:
        """It stops the run and keeps its type; the op and the line are named; then all is well."""
        b, fetches = case
        for op in b.block.ops:
            kind, breaks = op.type, [True]
            op.location = Location("net.py", 12, "forward")
            op.type = breakable(op, breaks)
            try:
                core = core_of(case, mode)
                with pytest.raises(Broken) as caught:
                    core.run(*given(b, core))
                assert caught.value.__notes__ == [
                    f"in op {op.type!r}, captured at net.py:12 in forward"
                ]
                breaks[0] = False
                right = expected(b, fetches, core)
                reseed(b)
                feeds, externals = given(b, core)
                assert same([*core.run(feeds, externals), *externals], right)
            finally:
                KERNELS.remove(op.type)
                op.type = kind


class Broken(Exception):
    pass


numbered = itertools.count()


def breakable(op: OpDesc, breaks: list[bool]) -> str:
    """Register an op like another one, which raises while `breaks` holds; return its name."""
    schema, kernel = op.schema, op_expr(op.type).kernel(np)
    arrays = ", ".join(schema.inputs)
    keywords = ", ".join(op.attrs)
    passed = ", ".join([*schema.inputs, *[f"{name}={name}" for name in op.attrs]])
    source = (
        f"def run(xp, {arrays}{', ' * bool(arrays)}{'*, ' * bool(keywords)}{keywords}):\n"
        f"    if breaks[0]:\n        raise Broken\n"
        f"    return kernel({passed})\n"
    )
    names: dict[str, Any] = {"Broken": Broken, "breaks": breaks, "kernel": kernel}
    exec(source, names)
    name = f"breakable_{op.type}_{next(numbered)}"
    flow.register_kernel(
        name, mutates=schema.mutates, view_of=schema.view_of, random=schema.random
    )(names["run"])
    return name


def rows(table: str) -> list[list[str]]:
    """Return the cells of the rows of a Markdown table."""
    lines = table.strip().splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def captured_forward() -> InterpreterCore:
    """The forward pass of a linear layer and its loss, as the page captures it."""
    main = flow.static.Program()
    with flow.static.program_guard(main, flow.static.Program()):
        x, label = flow.static.data("x", [4, 16]), flow.static.data("label", [4, 1])
        loss = flow.nn.MSELoss()(flow.nn.Linear(16, 1)(x), label)
    return flow.static.Executor().analyse(main, ["x", "label"], [loss])


class TestThePage:
    """docs/executor.md shows the tables of the forward pass; they are the ones that are made."""

    def tables(self) -> list[list[list[str]]]:
        text = PAGE.read_text("utf-8")
        return [rows(m[0]) for m in re.finditer(r"(?:^\|.*\n)+", text, re.MULTILINE)]

    def test_instructions(self) -> None:
        core = captured_forward()
        name = [str(i) for i in core.instructions]
        made = [
            [
                str(i),
                name[i],
                str(core.dependency_count[i]),
                ", ".join(name[j] for j in core.downstream_before_shrink[i]),
                ", ".join(name[j] for j in core.downstream[i]),
            ]
            for i in range(len(name))
        ]
        assert made in self.tables()

    def test_lives(self) -> None:
        core = captured_forward()
        made = [
            [name, ", ".join(core.last_live_ops_before_shrink[name]), ", ".join(users)]
            for name, users in core.last_live_ops.items()
        ]
        assert made in self.tables()

    def test_each_variable_goes_with_its_consumers(self) -> None:
        core = captured_forward()
        assert core.last_live_ops["x"] == ["matmul_nt"]
        bias = core.plan.block.ops[1].inputs[1]
        assert bias is not None and core.last_live_ops[bias] == ["add"]
        for op in core.plan.block.ops[:-1]:
            consumers = [i.name for i in core.instructions if i.op and op.outputs[0] in i.op.reads]
            assert core.last_live_ops[op.outputs[0]] == consumers

    def test_updates_wait_for_the_last_reader_alone(self) -> None:
        core = core_of(training_step())
        name = [str(i) for i in core.instructions]
        before, after = (
            [name[i] for i, followers in enumerate(edges) if name.index("sgd_update") in followers]
            for edges in (core.downstream_before_shrink, core.downstream)
        )
        assert before == ["matmul_nt", "matmul_tn#2"]  # reads w1, makes its gradient
        assert after == ["matmul_tn#2"]


def test_print_shows_all_of_it() -> None:
    text = str(core_of(forward(), "straight_line", None))
    for word in (
        "feed(x)",
        "matmul_nt",
        "fetch(mean_4)",
        "direct",
        "last used by",
        "bytes instead",
    ):
        assert word in text
