"""PreparedRun, through the Executor: what goes in and comes out, and what is checked."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from oneflow_lite.static.ir.program import OpDesc, Program, VarDesc
from oneflow_lite.static.ir.scope import Scope, global_scope, scope_guard
from oneflow_lite.static.runtime.executor import Executor
from tests.static.runtime.executor_programs import F32, X, captured, counting, doubled


class Doubling(np.ndarray[Any, Any]):
    """An array that answers ufuncs with twice their results."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(x) for x in inputs]
        return 2 * getattr(ufunc, method)(*plain, **kwargs)


# Feeds


@pytest.mark.parametrize(
    ("value", "is_converted"),
    [
        (X, False),
        (flow.tensor(X), False),
        (X.tolist(), True),
        (X.astype(int).tolist(), True),
        (np.asfortranarray(X), False),
        (X.view(Doubling), False),
        (np.repeat(X, 2, axis=1)[:, ::2], False),
    ],
)
def test_what_may_be_fed(value: Any, is_converted: bool) -> None:
    main, y = doubled()
    (array,) = Executor().run(main, {"x": value}, [y])
    assert array.dtype == F32 and array.flags.c_contiguous
    np.testing.assert_array_equal(array, 2 * X + 1)
    assert is_converted == isinstance(value, list)


@pytest.mark.parametrize(
    ("feed", "kind", "text"),
    [
        ({}, ArgumentError, r"feed.*a value for 'x', float32\[2, 3\].*none"),
        ({"x": X, "z": X}, ArgumentError, r"feed.*'x', got 'z'"),
        ({"X": X}, ArgumentError, r"feed.*got 'X'"),
        ({"x": X[0]}, ShapeError, r"feed.*shape \(2, 3\) for 'x', got shape \(3,\)"),
        ({"x": X.T}, ShapeError, r"shape \(3, 2\)"),
        ({"x": X.astype("float64")}, DTypeError, r"dtype float32 for 'x', got dtype float64"),
        ({"x": flow.tensor(X).long()}, DTypeError, r"float32 for 'x', got dtype int64"),
        ({"x": (X * 1j).tolist()}, DTypeError, r"for 'x', got dtype complex128"),
        ({"x": [[1.0], [2.0, 3.0]]}, ArgumentTypeError, r"for 'x', got list"),
        ({"x": "text"}, ArgumentTypeError, r"for 'x', got str"),
        ({"x": None}, ArgumentTypeError, r"for 'x', got NoneType"),
        ("x", ArgumentTypeError, r"feed.*a dict"),
        ([X], ArgumentTypeError, r"feed.*a dict.*got list"),
    ],
)
def test_bad_feeds_name_the_variable(feed: Any, kind: type[Exception], text: str) -> None:
    main, y = doubled()
    executor = Executor()
    with pytest.raises(kind, match=text):
        executor.run(main, feed, [y])
    (array,) = executor.run(main, {"x": X}, [y])
    np.testing.assert_array_equal(array, 2 * X + 1)


def test_lists_are_not_rounded_to_integers() -> None:
    main, _, y = captured(lambda x: x + 1, x=([2], "int64"))
    assert Executor().run(main, {"x": [1, 2]}, [y])[0].tolist() == [2, 3]
    with pytest.raises(DTypeError, match="int64 for 'x', got dtype float64"):
        Executor().run(main, {"x": [1.0, 2.5]}, [y])


def test_a_symbolic_tensor_is_no_feed() -> None:
    main, y = doubled()
    other, z = doubled()
    with pytest.raises(ArgumentTypeError, match=r"feed.*'x', got a symbolic tensor"):
        Executor().run(main, {"x": z}, [y])
    assert other is not main


def test_only_what_the_results_depend_on_must_be_fed() -> None:
    main, _, (y, loss) = captured(
        lambda x, label: (x * 2, ((x - label) ** 2).sum()), x=([2, 3],), label=([2, 3],)
    )
    executor = Executor()
    np.testing.assert_array_equal(executor.run(main, {"x": X}, [y])[0], 2 * X)
    with pytest.raises(ArgumentError, match="'label'"):
        executor.run(main, {"x": X}, [loss])
    with pytest.raises(ArgumentError, match="'label'"):
        Executor(passes=()).run(main, {"x": X}, [y])
    assert executor.run(main, {"label": X, "x": X}, [loss])[0] == 0


def test_a_feed_that_state_depends_on_must_be_given() -> None:
    main, startup, _, _ = counting()
    executor, scope = Executor(), Scope()
    executor.run(startup, scope=scope)
    with pytest.raises(ArgumentError, match="'x'"):
        executor.run(main, {}, [], scope)


def write_a_feed(x: Any) -> Any:
    """Write into the feed, and into it through a view."""
    x.mul_(2)
    x[0].add_(1)
    return x * 1


@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_feeds_are_not_modified(mode: str) -> None:
    main, _, y = captured(write_a_feed, x=([2, 3],))
    executor = Executor(mode=mode)
    feed = {"x": X.copy()}
    for _ in range(2):
        (array,) = executor.run(main, feed, [y])
        np.testing.assert_array_equal(array, write_a_feed(flow.tensor(X)).numpy())
        np.testing.assert_array_equal(feed["x"], X)
    feed["x"].flags.writeable = False
    executor.run(main, feed, [y])


@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_feeds_are_not_kept(mode: str) -> None:
    main, y = doubled()
    executor = Executor(mode=mode)
    array = X.copy()
    gone = weakref.ref(array)
    executor.run(main, {"x": array}, [y, "x"])
    del array
    gc.collect()
    assert gone() is None


# Fetches


@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_fetches_share_memory_with_nothing(mode: str) -> None:
    def build(x: Any) -> Any:
        w = flow.nn.Parameter(flow.tensor([1.0, 2.0, 3.0]))
        c = flow.tensor([4.0, 5.0, 6.0])
        y = x * w + c
        return [x, x.t(), x[0], y, y.t(), y.reshape(-1), w.reshape(3, 1), c.reshape(3, 1), y[0]]

    main, startup, results = captured(build, x=([2, 3],))
    persistable = [name for name, d in main.global_block().vars.items() if d.persistable]
    constants = [name for name, d in main.global_block().vars.items() if d.value is not None]
    fetches = [*results, *persistable, *constants]
    executor, scope = Executor(mode=mode), Scope()
    executor.run(startup, scope=scope)
    feed = X.copy()
    first = executor.run(main, {"x": feed}, fetches, scope)
    kept = [array.copy() for array in first]
    held = [feed, *(scope.find_var(name) for name in persistable)]
    held += [d.value for d in main.list_vars() if d.value is not None]
    second = executor.run(main, {"x": feed}, fetches, scope)
    for i, array in enumerate(first):
        assert not any(np.may_share_memory(array, other) for other in (*held, *second)), i
        assert not any(np.may_share_memory(array, other) for other in first[:i]), i
        array[...] = -1
    for again in (second, executor.run(main, {"x": feed}, fetches, scope)):
        for array, expected in zip(again, kept, strict=True):
            np.testing.assert_array_equal(array, expected)


def test_folded_constants_are_fetched_as_copies() -> None:
    main, _, (c, _) = captured(lambda x: (flow.full((3,), 2.0) * 3, x), x=([3],))
    executor = Executor()
    for _ in range(2):
        (array,) = executor.run(main, {}, [c])
        np.testing.assert_array_equal(array, [6, 6, 6])
        array[...] = 0


def test_constants_of_a_program_made_by_hand_are_safe() -> None:
    program = Program()
    program.global_block().create_var(VarDesc("c", (3,), F32, value=np.ones(3, F32)))
    for _ in range(2):
        (array,) = Executor().run(program, {}, ["c"])
        np.testing.assert_array_equal(array, [1, 1, 1])
        array[...] = 0


def test_expanded_results_may_be_written() -> None:
    main, _, y = captured(lambda x: (x * 1).expand(4, 3), x=([3],))
    (array,) = Executor().run(main, {"x": X[0]}, [y])
    array[0] = 9
    np.testing.assert_array_equal(array[1:], [X[0]] * 3)


# Scopes


def test_the_startup_program_fills_the_scope() -> None:
    main, startup, y, (weight, total) = counting()
    executor, scope = Executor(), Scope()
    assert executor.run(startup, scope=scope) == []
    assert set(scope.local_var_names()) == {weight, total}
    for step in range(1, 4):
        (array,) = executor.run(main, {"x": [1, 1, 1]}, [y], scope)
        np.testing.assert_array_equal(array, [1, 2, 3])
        np.testing.assert_array_equal(scope.find_var(total), [step] * 3)
    executor.run(startup, scope=scope)
    np.testing.assert_array_equal(scope.find_var(total), [0, 0, 0])


def test_the_global_scope_is_the_default() -> None:
    main, startup, y, (_, total) = counting()
    executor, scope = Executor(), Scope()
    with scope_guard(scope):
        executor.run(startup)
        executor.run(main, {"x": [1, 2, 3]}, [y])
    assert scope.find_var(total).tolist() == [1, 2, 3]
    assert total not in global_scope()


def test_without_the_startup_program() -> None:
    main, startup, y, (weight, total) = counting()
    executor, scope = Executor(), Scope()
    with pytest.raises(ArgumentError, match=r"scope.*run the startup program first"):
        executor.run(main, {"x": [1, 1, 1]}, [y], scope)
    executor.run(startup, scope=scope)
    executor.run(main, {"x": [1, 1, 1]}, [y], scope)
    scope.erase(total)
    with pytest.raises(ArgumentError, match=f"scope.*{total!r}.*run the startup program first"):
        executor.run(main, {"x": [1, 1, 1]}, [y], scope)
    assert weight in scope


@pytest.mark.parametrize(
    ("value", "kind"), [(np.ones(4, "f"), ShapeError), (np.ones(3, "d"), DTypeError)]
)
def test_the_scope_is_checked(value: Any, kind: type[Exception]) -> None:
    main, startup, y, (weight, _) = counting()
    executor, scope = Executor(), Scope()
    executor.run(startup, scope=scope)
    executor.run(main, {"x": [1, 1, 1]}, [y], scope)
    scope.set(weight, value)
    with pytest.raises(kind, match=f"scope.*{weight!r}"):
        executor.run(main, {"x": [1, 1, 1]}, [y], scope)


def test_values_that_are_set_or_written_are_used() -> None:
    main, startup, y, (weight, _) = counting()
    executor, scope = Executor(), Scope()
    executor.run(startup, scope=scope)
    feed = {"x": [1, 1, 1]}
    executor.run(main, feed, [y], scope)
    scope.set(weight, np.array([4, 5, 6], "f"))
    assert executor.run(main, feed, [y], scope)[0].tolist() == [4, 5, 6]
    scope.find_var(weight)[0] = 9
    assert executor.run(main, feed, [y], scope)[0].tolist() == [9, 5, 6]
    scope.set(weight, np.asfortranarray([7, 8, 9], "f"))
    assert executor.run(main, feed, [y], scope)[0].tolist() == [7, 8, 9]


def test_scopes_do_not_mix() -> None:
    main, startup, y, (_, total) = counting()
    executor = Executor()
    scopes = [Scope(), Scope()]
    for scope in scopes:
        executor.run(startup, scope=scope)
    for scope in (scopes[0], scopes[1], scopes[0]):
        executor.run(main, {"x": [1, 1, 1]}, [y], scope)
    assert [scope.find_var(total)[0] for scope in scopes] == [2, 1]


def test_a_child_scope_updates_its_parent() -> None:
    main, startup, y, (_, total) = counting()
    executor, scope = Executor(), Scope()
    executor.run(startup, scope=scope)
    child = scope.new_scope()
    executor.run(main, {"x": [1, 1, 1]}, [y], child)
    assert scope.find_var(total).tolist() == [1, 1, 1]
    assert child.local_var_names() == []
    scope.drop_kids()
    with pytest.raises(ArgumentError, match="startup"):
        executor.run(main, {"x": [1, 1, 1]}, [y], child)


def test_a_feed_may_be_what_the_scope_holds() -> None:
    main, startup, y, (_, total) = counting()
    executor, scope = Executor(), Scope()
    executor.run(startup, scope=scope)
    scope.set(total, np.ones(3, "f"))
    for value in (scope.find_var(total), scope.find_var(total)[:]):
        before = value.copy()
        found = executor.run(main, {"x": value}, [y, "x", total], scope)
        np.testing.assert_array_equal(found[0], before * [1, 2, 3])
        np.testing.assert_array_equal(found[1], before)
        np.testing.assert_array_equal(found[2], before * 2)


def test_a_persistable_variable_that_is_made_at_every_run() -> None:
    program = Program()
    block = program.global_block()
    block.create_var(VarDesc("x", (3,), F32, need_check_feed=True))
    block.create_var(VarDesc("p", (3,), F32, persistable=True))
    block.append_op(OpDesc("exp", ("x",), ("p",)))
    executor, scope = Executor(), Scope()
    for value in ([0, 0, 0], [1, 2, 3]):
        (array,) = executor.run(program, {"x": value}, ["p"], scope)
        expected = np.exp(np.array(value, F32))
        np.testing.assert_array_equal(array, expected)
        assert not np.may_share_memory(array, scope.find_var("p"))
        array[...] = 0
        np.testing.assert_array_equal(scope.find_var("p"), expected)


def test_a_program_may_write_to_the_scope_before_each_run() -> None:
    main, startup, y, (weight, _) = counting()
    executor, scope = Executor(), Scope()
    executor.run(startup, scope=scope)
    numbers = iter((2.0, 3.0))
    main.before_run.append(lambda scope: scope.find_var(weight).fill(next(numbers)))
    for number in (2, 3):
        assert executor.run(main, {"x": [1, 1, 1]}, [y], scope)[0].tolist() == [number] * 3


def test_a_layout_that_views_were_captured_for_is_restored() -> None:
    program = Program()
    block = program.global_block()
    block.create_var(VarDesc("p", (2, 3), F32, persistable=True, strides=(4, 8)))
    block.create_var(VarDesc("v", (3, 2), F32))
    block.create_var(VarDesc("c", (), F32, value=np.array(1, F32)))
    block.append_op(OpDesc("transpose", ("p",), ("v",), {"dim0": 0, "dim1": 1}))
    block.append_op(OpDesc("fill_", ("v",), ("v",), {"value": 5.0}))
    executor, scope = Executor(), Scope()
    scope.set("p", X)
    (array,) = executor.run(program, {}, ["p"], scope)
    np.testing.assert_array_equal(array, np.full((2, 3), 5))
    assert scope.find_var("p").strides == (4, 8)


@pytest.fixture
def twice() -> Iterator[Callable[[flow.Tensor], flow.Tensor]]:
    @flow.register_op("prepared_run_twice")
    def twice(xp: Any, x: Any) -> Any:
        return x * 2

    yield twice
    flow.ops.registry.KERNELS.remove("prepared_run_twice")
    flow.ops.registry.FUNCTORS.remove("prepared_run_twice")


@pytest.mark.parametrize("use", ["an op of the user", "add_", "copy_"])
@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_a_feed_that_an_op_needs_for_no_result_is_missed(use: str, mode: str, twice: Any) -> None:
    uses = {
        "an op of the user": twice,
        "add_": lambda x: x.add_(1),
        "copy_": lambda x: x.copy_(x * 2),
    }
    main = flow.static.Program()
    with flow.static.program_guard(main):
        x, y = flow.static.data("x", [2]), flow.static.data("y", [2])
        uses[use](x)
        z = y * 2
    with pytest.raises(ArgumentError, match="a value for 'x', float32"):
        Executor(mode=mode).run(main, {"y": np.ones(2, F32)}, [z])


@pytest.mark.parametrize("numbers", [[1, 300], [-1, 2]])
def test_numbers_that_a_dtype_does_not_have_are_not_wrapped(numbers: list[int]) -> None:
    main = flow.static.Program()
    with flow.static.program_guard(main):
        y = flow.static.data("x", [2], "uint8") + 1
    with pytest.raises(ArgumentTypeError, match=rf"numbers from {min(numbers)} to"):
        Executor().run(main, {"x": numbers}, [y])
    assert Executor().run(main, {"x": [0, 254]}, [y])[0].tolist() == [1, 255]


@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_a_variable_whose_op_was_removed_is_named(mode: str) -> None:
    main = flow.static.Program()
    with flow.static.program_guard(main):
        y = flow.static.data("x", [2]).exp()
        z = y * 2
    del main.global_block().ops[0]
    for fetched in (y, z):
        with pytest.raises(ArgumentError, match="an op that makes 'exp_0'"):
            Executor(mode=mode).run(main, {"x": np.ones(2, F32)}, [fetched])


def test_a_clone_for_testing_shares_the_scope_of_the_training() -> None:
    flow.manual_seed(0)
    model = flow.nn.Sequential(
        flow.nn.Linear(3, 4), flow.nn.BatchNorm1d(4), flow.nn.Dropout(0.5), flow.nn.Linear(4, 1)
    )
    main, startup = flow.static.Program(), flow.static.Program()
    with flow.static.program_guard(main, startup):
        x, target = flow.static.data("x", [8, 3]), flow.static.data("target", [8, 1])
        y = model(x)
        loss = flow.nn.functional.mse_loss(y, target)
        flow.optim.SGD(lr=0.1, momentum=0.9).minimize(loss)
    test = main.clone(for_test=True)
    executor, scope = Executor(), Scope()
    executor.run(startup, scope=scope)
    rng = np.random.default_rng(0)
    feed = {"x": rng.normal(size=(8, 3)).astype(F32), "target": np.ones((8, 1), F32)}
    losses = [executor.run(main, feed, [loss], scope)[0] for _ in range(5)]
    before = {name: scope.find_var(name).copy() for name in scope.local_var_names()}
    found = executor.run(test, feed, [y, loss], scope)
    for name, array in before.items():
        np.testing.assert_array_equal(scope.find_var(name), array)
    with flow.no_grad():
        for name, tensor in main.parameters.items():
            if tensor.name == name and name in before:
                tensor._data = before[name]
    model.eval()
    expected = model(flow.tensor(feed["x"]))
    np.testing.assert_array_equal(found[0], expected.numpy())
    assert found[1] < losses[0]
    np.testing.assert_array_equal(executor.run(test, feed, [y], scope)[0], found[0])
