"""Programs with sub-blocks: copied, saved, listed, changed, run by several threads, and freed."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.errors import FlowError, NotDifferentiableError
from oneflow_lite.static import nn
from tests.static.control_flow.control_flow_checks import F64, array


def build_both():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2], F64)
        x.requires_grad = True
        y = nn.cond(x.sum() > 0, lambda: x * x, lambda: x * 3)
        z = nn.while_loop(lambda y: y.sum() < 9, lambda y: y * y + 1, [y])[0]
        (dx,) = static.gradients(z, x)
    return main, [z.name, dx.name]


@pytest.mark.parametrize("x", [array(1.0, 0.5), array(-1.0, 0.5)])
def test_programs_are_cloned_and_saved_with_their_blocks(tmp_path, x):
    main, fetches = build_both()
    want = static.Executor().run(main, {"x": x}, fetches)
    copy = main.clone()
    assert copy.fingerprint() == main.fingerprint()
    for op in copy.global_block().ops:
        for value in op.attrs.values():
            blocks = value if isinstance(value, tuple) else (value,)
            assert all(b.program is copy for b in blocks if isinstance(b, static.Block))
    static.save(main, tmp_path / "program")
    loaded, _ = static.load(tmp_path / "program")
    for program in (copy, loaded):
        got = static.Executor().run(program, {"x": x}, fetches)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_changed_block_is_another_program_and_runs_anew():
    main, fetches = build_both()
    x = array(-1.0, 0.5)
    executor = static.Executor()
    before, (want, _) = main.fingerprint(), executor.run(main, {"x": x}, fetches)
    op = next(op for op in main.global_block().ops if op.type == "cond")
    block = op.attrs["blocks"][1]
    block.ops[-1].type = "add"
    assert main.fingerprint() != before
    (got, _) = executor.run(main, {"x": x}, fetches)
    assert not np.array_equal(got, want)


def test_listing_and_picture_show_blocks():
    main, _ = build_both()
    assert "blocks=(block 1, block 2)" in str(main) and "block 3 in block 0" in str(main)
    assert "cluster_2" in main.to_dot()


def test_a_clone_for_testing_turns_dropout_in_blocks_off():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [50])
        x.requires_grad = True
        y = nn.cond(x.sum() > 0, lambda: flow.nn.functional.dropout(x, 0.5), lambda: x)
        static.gradients(y, x)
    ones = np.ones(50, "float32")
    run = static.Executor().run
    (trained,) = run(main, {"x": ones}, [y])
    (tested,) = run(main.clone(for_test=True), {"x": ones}, [y])
    assert 0 in trained and np.array_equal(tested, ones)


def test_blocks_are_inputs_of_their_op():
    main, fetches = build_both()
    core = static.Executor().analyse(main, ["x"], fetches)
    core.check()
    cond = next(i for i in core.instructions if i.name == "cond")
    feed = next(i for i in core.instructions if i.name == "feed(x)")
    assert set(feed.outputs) <= set(cond.inputs)
    assert cond.op.reads[-1] == "x"


def test_a_program_is_freed_with_its_blocks():
    main, fetches = build_both()
    executor = static.Executor()
    executor.run(main, {"x": array(1.0, 0.5)}, fetches)
    blocks = [weakref.ref(block) for block in main.blocks]
    executor.close()
    del main, executor
    gc.collect()
    assert not any(block() for block in blocks)


def test_threads_run_one_program_at_once():
    main, fetches = build_both()
    executor = static.Executor()
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(2) for _ in range(40)]
    want = [executor.run(main, {"x": x}, fetches) for x in values]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda x: static.Executor().run(main, {"x": x}, fetches), values))
        again = list(pool.map(lambda x: executor.run(main, {"x": x}, fetches), values))
    for a, b, c in zip(want, got, again, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_an_exception_inside_a_block_tells_the_line_and_the_next_run_works():
    main = static.Program()
    with static.program_guard(main):
        x, i = static.data("x", [3]), static.data("i", [1], "int64")
        y = nn.cond(x.sum() > 0, lambda: flow.index_select(x, 0, i), lambda: x[:1])
    run = static.Executor().run
    ones = np.ones(3, "float32")
    with pytest.raises(IndexError) as info:
        run(main, {"x": ones, "i": array(7, dtype="int64")}, [y])
    notes = "\n".join(info.value.__notes__)
    for word in ("'cond'", "test_control_flow_programs.py", "index_select"):
        assert word in notes
    assert run(main, {"x": ones, "i": array(1, dtype="int64")}, [y])[0].tolist() == [1.0]
    assert run(main, {"x": -ones, "i": array(7, dtype="int64")}, [y])[0].tolist() == [-1.0]


def test_second_derivatives_of_a_loaded_loop_say_that_they_are_not_there(tmp_path):
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2], F64)
        x.requires_grad = True
        y = nn.while_loop(lambda y: y.sum() < 9, lambda y: y * y + 1, [x])[0]
        (dx,) = static.gradients(y, x)
        (ddx,) = static.gradients(dx, x)
    static.save(main, tmp_path / "program")
    loaded, _ = static.load(tmp_path / "program")
    feed = {"x": array(1.0, 0.5)}
    want = static.Executor().run(main, feed, [dx])
    np.testing.assert_array_equal(static.Executor().run(loaded, feed, [dx]), want)
    with pytest.raises(FlowError, match="capture it again"):
        static.Executor().run(loaded, feed, [ddx])
    assert issubclass(NotDifferentiableError, FlowError)
