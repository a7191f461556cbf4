"""The tapes of loops: each is found by the array that stands for it, and freed with it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import FlowError
from oneflow_lite.static.control_flow import loop_derivatives as tapes


def test_entries_go_with_the_array():
    before = len(tapes._entries)
    tape = tapes.make_tape(np, [(1,), (2,)])
    assert (tape.shape, tape.dtype) == (tapes.TAPE.shape, tapes.TAPE.dtype)
    assert tapes.read_tape(tape) == [(1,), (2,)]
    del tape
    assert len(tapes._entries) == before


def test_a_copy_is_refused():
    tape = tapes.make_tape(np, [(1,)])
    with pytest.raises(FlowError, match="copied"):
        tapes.read_tape(tape.copy())


def test_runs_leave_no_tapes_behind():
    main = flow.static.Program()
    with flow.static.program_guard(main):
        x = flow.static.data("x", [2])
        x.requires_grad = True
        y = flow.static.nn.while_loop(lambda y: y.sum() < 99, lambda y: y * 2, [x])[0]
        (dx,) = flow.static.gradients(y, x)
    executor = flow.static.Executor()
    gc.collect()
    before = len(tapes._entries)
    for _ in range(20):
        executor.run(main, {"x": np.ones(2, "float32")}, [y, dx])
    assert len(tapes._entries) <= before + 1  # the last one at most
    executor.run(main, {"x": np.ones(2, "float32")}, [y])
    del executor
    gc.collect()
    assert len(tapes._entries) == before
