"""Sub-blocks run like small Programs: what they are given, what they give, and when they change."""

from __future__ import annotations

import numpy as np

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.static.control_flow.block_run import run_block
from oneflow_lite.static.lazy.block_capture import notes_of


def captured_block(fn, *shape):
    """Return the first block of a choice between fn and a copy, with its inputs and outputs."""
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", shape)
        static.nn.cond(x.sum() > 0, lambda: fn(x), lambda: fn(x))
    (op,) = [op for op in main.global_block().ops if op.type == "cond"]
    return op.attrs["blocks"][0], op.attrs["names"], op.attrs["outputs"][0]


def test_results_are_new_and_in_c_order():
    block, names, outputs = captured_block(lambda x: (x.t(), x.t() * 2, x), 2, 3)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    first, second = (run_block(block, names, outputs, [x]) for _ in range(2))
    np.testing.assert_array_equal(first[0], x.T)
    np.testing.assert_array_equal(first[1], x.T * 2)
    arrays = [x, *first, *second]
    assert all(a.flags.c_contiguous for a in arrays)
    for i, a in enumerate(arrays):
        assert not any(np.may_share_memory(a, b) for b in arrays[:i])


def test_inputs_of_any_layout_are_taken_and_left_alone():
    block, names, outputs = captured_block(lambda x: x[0] + x.reshape(6)[3:], 2, 3)
    x = np.arange(6, dtype="float32").reshape(3, 2).T
    assert not x.flags.c_contiguous
    before = x.copy()
    (y,) = run_block(block, names, outputs, [x])
    np.testing.assert_array_equal(y, before[0] + before[1])
    np.testing.assert_array_equal(x, before)


def test_names_that_a_block_does_not_know_are_left_out():
    block, names, outputs = captured_block(lambda x: x + 1, 2)
    x = np.ones(2, "float32")
    (y,) = run_block(block, (*names, "other"), outputs, [x, None])
    assert y.tolist() == [2.0, 2.0]


def test_a_runner_is_kept_until_its_block_changes():
    block, names, outputs = captured_block(lambda x: x + 1, 2)
    x = np.full(2, 3, "float32")
    run_block(block, names, outputs, [x])
    runners = notes_of(block).runners
    run_block(block, names, outputs, [x])
    assert notes_of(block).runners is runners and len(runners) == 1
    with static.program_guard(static.Program()):
        flow.ones(2)  # another Program changes
    run_block(block, names, outputs, [x])
    assert notes_of(block).runners is runners
    block.ops[0].type = "mul"
    (y,) = run_block(block, names, outputs, [x])
    assert y.tolist() == [3.0, 3.0]


def test_a_copied_block_has_runners_of_its_own_but_the_same_trace():
    block, *_ = captured_block(lambda x: x + 1, 2)
    notes = notes_of(block)
    copy = block.program.clone().blocks[block.idx]
    other = notes_of(copy)
    assert other is not notes and other.trace is notes.trace is not None
    assert notes_of(copy) is other and notes_of(block) is notes
