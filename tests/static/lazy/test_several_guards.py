"""Programs that are captured in several guards: tensors are what they were in the first one."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.errors import CaptureError
from tests.static.runs import programs

ONES = np.ones(2, np.float32)


def run(main, startup, results, times=2):
    """Return what runs in a new scope give, one after the other."""
    executor, scope = static.Executor(), static.Scope()
    executor.run(startup, scope=scope)
    return [
        [y.tolist() for y in executor.run(main, {"x": ONES}, results, scope)] for _ in range(times)
    ]


@pytest.mark.parametrize("is_used", [True, False])
@pytest.mark.parametrize("clones", [True, False])
def test_a_tensor_that_was_made_in_one_guard_begins_each_run_anew(is_used, clones):
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2])
        total = flow.tensor([1.0, 2.0])
        y = total * x if is_used else x * 1
    main = main.clone() if clones else main
    with static.program_guard(main, startup):
        total.add_(x)
        z = total * 1
    first = [1, 2] if is_used else [1, 1]
    assert run(main, startup, [y, z]) == [[first, [2, 3]]] * 2


def test_a_constant_that_was_changed_between_two_guards_is_another_one():
    main, startup = programs()
    outside = flow.tensor([1.0, 2.0])
    with static.program_guard(main, startup):
        x = static.data("x", [2])
        made = flow.tensor([3.0, 4.0])
        before = made * outside + x
    made._data[...] = 5
    outside._data[...] = 6
    with static.program_guard(main, startup):
        after = made * outside
        made.add_(x)
        written = made * 1
    assert run(main, startup, [before, after, written]) == [[[4, 9], [30, 30], [6, 6]]] * 2


def test_what_one_guard_has_read_is_not_written_in_the_next():
    main, startup = programs()
    outside = flow.tensor([1.0, 2.0])
    with static.program_guard(main, startup):
        x = static.data("x", [2])
        x * outside.tolist()[0]
    with static.program_guard(main, startup), pytest.raises(CaptureError, match="were read"):
        outside.add_(x)


def test_a_constant_that_somebody_took_out_of_the_program_is_put_in_again():
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2])
        x * 2
    block = main.global_block()
    block.ops = []
    block.vars = {"x": block.vars["x"]}
    with static.program_guard(main, startup):
        y = x * 2
    assert run(main, startup, [y], times=1) == [[[2, 2]]]


def test_a_view_of_one_guard_is_written_in_the_next():
    main, startup = programs()
    outside = flow.tensor([1.0, 2.0, 3.0])
    with static.program_guard(main, startup):
        x = static.data("x", [2])
        made = flow.tensor([1.0, 2.0, 3.0])
        views = outside[1:], made[1:].detach()
    with static.program_guard(main, startup):
        for view in views:
            view.add_(x)
        y, z = outside * 1, made * 1
    assert run(main, startup, [y, z]) == [[[1, 3, 4], [1, 3, 4]], [[1, 4, 5], [1, 3, 4]]]
