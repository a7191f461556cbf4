"""Executor: results, what is analysed once, and errors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError
from oneflow_lite.static.ir.program import OpDesc, Program, VarDesc
from oneflow_lite.static.ir.scope import Scope
from oneflow_lite.static.runtime.executor import Executor
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from tests.static.reference import run_reference
from tests.static.runtime.executor_programs import F32, X, captured, counting, doubled


@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
@pytest.mark.parametrize("passes", [None, (), ("dead_code",)], ids=str)
def test_results_are_those_of_the_reference(mode: str, passes: Any) -> None:
    def build(x: Any, y: Any) -> Any:
        h = flow.softmax(x @ y, -1)
        return [h, h.t(), (h + 1).sum(), x.exp() * 2]

    main, _, results = captured(build, x=([2, 3],), y=([3, 4],))
    executor = Executor(mode=mode, passes=passes)
    feed = {"x": X, "y": np.ones((3, 4), F32)}
    expected = run_reference(main, feed)
    for _ in range(3):
        found = executor.run(main, feed, results)
        for tensor, array in zip(results, found, strict=True):
            assert type(array) is np.ndarray
            np.testing.assert_array_equal(array, expected[tensor.name])


def test_fetch_by_name_or_tensor_in_the_order_asked_for() -> None:
    main, y = doubled()
    found = Executor().run(main, {"x": X}, ["x", y, y.name, y])
    for array, expected in zip(found, [X, 2 * X + 1, 2 * X + 1, 2 * X + 1], strict=True):
        np.testing.assert_array_equal(array, expected)
    assert Executor().run(main, {"x": X}) == []


def test_return_numpy_false_returns_tensors() -> None:
    main, y = doubled()
    (tensor,) = Executor().run(main, {"x": X}, [y], return_numpy=False)
    assert isinstance(tensor, flow.Tensor) and not tensor.requires_grad
    np.testing.assert_array_equal(tensor.numpy(), 2 * X + 1)


def test_without_a_program_the_default_one_runs() -> None:
    main, y = doubled()
    executor = Executor()
    with flow.static.program_guard(main, flow.static.Program()):
        (array,) = executor.run(feed={"x": X}, fetch_list=[y])
        assert executor.analyse(feed=["x"], fetch_list=[y]) is executor.analyse(main, ["x"], [y])
    np.testing.assert_array_equal(array, 2 * X + 1)


@pytest.mark.parametrize(
    ("fetches", "kind", "text"),
    [
        (["y"], ArgumentError, r"fetch_list.*got 'y'"),
        (["mul"], ArgumentError, r"fetch_list.*such as 'mul_\d+'"),
        ("x", ArgumentTypeError, r"fetch_list.*a list.*got str"),
        ([None], ArgumentTypeError, "fetch_list.*got NoneType"),
        ([flow.ones(2)], ArgumentTypeError, "fetch_list.*got Tensor"),
    ],
)
def test_bad_fetches(fetches: Any, kind: type[Exception], text: str) -> None:
    main, y = doubled()
    with pytest.raises(kind, match=text):
        Executor().run(main, {"x": X}, fetches)
    with pytest.raises(ArgumentTypeError, match="fetch_list.*a list"):
        Executor().run(main, {"x": X}, y)


def test_a_program_is_expected() -> None:
    with pytest.raises(ArgumentTypeError, match=r"program.*a Program, got Block"):
        Executor().run(Program().global_block())  # type: ignore[arg-type]


def test_threads_may_share_an_executor() -> None:
    main, startup, y, (_, total) = counting()
    executor = Executor()
    scopes = [Scope() for _ in range(4)]
    for scope in scopes:
        executor.run(startup, scope=scope)
    wrong: list[Any] = []

    def work(number: int) -> None:
        for _ in range(50):
            (array,) = executor.run(main, {"x": [number] * 3}, [y], scopes[number])
            if array.tolist() != [number, 2 * number, 3 * number]:
                wrong.append(array)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [scope.find_var(total).tolist() for scope in scopes] == [
        [50.0 * n] * 3 for n in range(4)
    ]


# The cache


def test_analyse_returns_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    main, y = doubled()
    executor = Executor()
    core = executor.analyse(main, {"x": X}, [y])
    assert executor.analyse(main, ["x"], [y.name]) is core
    assert executor.analyse(main, "x", [y]) is core
    with pytest.raises(ArgumentTypeError, match="feed.*names"):
        executor.analyse(main, [X], [y])
    runs = []
    original = InterpreterCore.run

    def run(self: InterpreterCore, feeds: Any, externals: Any) -> Any:
        runs.append(self)
        return original(self, feeds, externals)

    monkeypatch.setattr(InterpreterCore, "run", run)
    executor.run(main, {"x": X}, [y])
    assert runs == [core]
    assert executor.analyse(main, ["x"], [y, "x"]) is not core
    assert Executor().analyse(main, ["x"], [y]) is not core
    assert "feed(x)" in str(core)


def test_programs_that_are_equal_are_analysed_once() -> None:
    main, y = doubled()
    executor = Executor()
    core = executor.analyse(main, ["x"], [y])
    assert executor.analyse(main.clone(), ["x"], [y]) is core


def test_a_changed_program_is_analysed_again() -> None:
    main, y = doubled()
    executor = Executor()
    before = executor.analyse(main, ["x"], [y])
    np.testing.assert_array_equal(executor.run(main, {"x": X}, [y])[0], 2 * X + 1)
    ops = main.global_block().ops
    ops[1].type = "sub"
    assert executor.analyse(main, ["x"], [y]) is not before
    np.testing.assert_array_equal(executor.run(main, {"x": X}, [y])[0], 2 * X - 1)
    ops[1].type = "add"
    assert executor.analyse(main, ["x"], [y]) is before


def test_an_analysed_program_keeps_its_sub_blocks() -> None:
    program = Program()
    block = program.global_block()
    block.create_var(VarDesc("x", (3,), F32, need_check_feed=True))
    inner = program.create_block(block)
    inner.create_var(VarDesc("y", (3,), F32))
    inner.append_op(OpDesc("exp", ("x",), ("y",)))
    block.create_var(VarDesc("z", (3,), F32))
    block.append_op(OpDesc("mul_scalar", ("x",), ("z",), {"factor": inner}))
    core = Executor(passes=()).analyse(program, ["x"], ["x"])
    (op,) = core.plan.block.ops
    assert op.attrs["factor"] is not inner
    inner.ops[0].type = "log"
    assert [op.type for op in op.attrs["factor"].ops] == ["exp"]


def test_the_order_of_feeds_does_not_matter() -> None:
    main, _, z = captured(lambda x, y: x - y, x=([2],), y=([2],))
    executor = Executor()
    core = executor.analyse(main, ["y", "x"], [z])
    assert executor.analyse(main, ["x", "y"], [z]) is core
    assert executor.run(main, {"y": [1, 2], "x": [5, 5]}, [z])[0].tolist() == [4, 3]


def test_the_cache_is_bounded_and_drops_what_was_not_used_for_longest() -> None:
    main, y = doubled()
    executor = Executor(cache_size=2)
    first = executor.analyse(main, ["x"], [y])
    second = executor.analyse(main, ["x"], ["x"])
    assert executor.analyse(main, ["x"], [y]) is first
    executor.analyse(main, ["x"], ["x", y])
    assert executor.analyse(main, ["x"], [y]) is first
    assert executor.analyse(main, ["x"], ["x"]) is not second
    executor.close()
    assert executor.analyse(main, ["x"], [y]) is not first


@pytest.mark.parametrize("size", [0, -1, None, 1.5, True])
def test_the_size_of_the_cache_is_checked(size: Any) -> None:
    with pytest.raises(ArgumentError, match="cache_size"):
        Executor(cache_size=size)


# Errors while running


@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_an_error_keeps_its_type_and_the_next_run_works(mode: str) -> None:
    main, _, y = captured(lambda x, i: x[i] * 2, x=([3],), i=([2], "int64"))
    executor = Executor(mode=mode)
    x = np.array([1, 2, 3], F32)
    with pytest.raises(IndexError) as error:
        executor.run(main, {"x": x, "i": [0, 7]}, [y])
    notes = "".join(error.value.__notes__)
    assert "getitem_advanced" in notes and "test_executor.py" in notes
    np.testing.assert_array_equal(executor.run(main, {"x": x, "i": [0, 2]}, [y])[0], [2, 6])


# Devices


def test_a_place_on_a_cuda_device(device: str) -> None:
    main, startup, y, (weight, total) = counting()
    executor, scope = Executor(device), Scope()
    executor.run(startup, scope=scope)
    for _ in range(2):
        found = executor.run(main, {"x": [1, 1, 1]}, [y, "x", weight], scope)
    assert [type(array) for array in found] == [np.ndarray] * 3
    assert [array.tolist() for array in found] == [[1, 2, 3], [1, 1, 1], [1, 2, 3]]
    held = scope.find_var(total)
    assert (type(held) is np.ndarray) == (device == "cpu")
    assert flow.device(device).type == "cpu" or held.get().tolist() == [2, 2, 2]
    scope.set(weight, np.array([2, 2, 2], "f"))
    assert executor.run(main, {"x": [1, 1, 1]}, [y], scope)[0].tolist() == [2, 2, 2]
