"""Random programs of ops, views and in-place writes give PyTorch's and the oracle's numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.op_expr import op_expr
from tests.fuzz import campaign
from tests.fuzz.programs import Leaf, Program, Ref, Step
from tests.fuzz.verdict import Disagreement, judge, torch

CHUNKS = 10
SIZE = 100


@pytest.mark.parametrize("number", range(CHUNKS))
def test_programs_agree(number):
    counts = campaign.run(SIZE, number)
    print(campaign.report(counts))
    # What makes the programs worth running does occur in each chunk.
    assert counts["compared to order 2"] > SIZE // 5
    assert counts["writes, view, with history"] > SIZE // 10
    assert counts["writes, base, with history"] > SIZE // 10
    assert counts["both raised: StaleTensorError"] > 0
    assert counts["both raised: InplaceError"] > 0
    stopped = sum(n for what, n in counts.items() if what.startswith("stricter"))
    assert stopped < SIZE // 10


def program(*steps: Step, shape=(2, 3), leaves=1) -> Program:
    return Program(tuple(Leaf(shape, seed, True, False, False) for seed in range(leaves)), steps)


def op(made, name, *args):
    return Step("op", name, args, (Ref(made),))


def view(made, name, *args):
    return Step("view", name, args, (Ref(made),))


def write(name, *args, no_grad=False):
    return Step("write", name, args, (), no_grad)


T = [Ref(i) for i in range(9)]
THROUGH_A_VIEW = program(
    op(1, "keep_order", T[0]),
    view(2, "select", T[1], 0, 0),
    write("mul_", T[2], T[2]),
    op(3, "sin", T[1]),
)
INTO_A_CONSTANT = Program(
    (Leaf((2, 3), 0, True, False, False), Leaf((2, 3), 1, False, False, False)),
    (
        view(2, "narrow", T[1], 1, 0, 2),
        view(3, "select", T[1], 0, 1),
        op(4, "index_select", T[0], 1, np.array([0, 1])),
        write("add_", T[2], T[4]),
        op(5, "square", T[3]),
    ),
)
STALE = program(
    op(1, "keep_order", T[0]),
    op(2, "exp", T[1]),
    write("mul_number_", T[2], no_grad=True),
)
OVER_A_HISTORY = program(
    op(1, "sin", T[0]),
    view(2, "select", T[1], 1, 0),
    write("zero_", T[2]),
    op(3, "square", T[1]),
)


class TestCatches:
    """The verdict on programs whose answer is wrong; each mistake is made on purpose."""

    @pytest.mark.parametrize("example", [THROUGH_A_VIEW, INTO_A_CONSTANT, STALE, OVER_A_HISTORY])
    def test_nothing_without_a_mistake(self, example):
        judge(example, Counter())

    def test_a_region_whose_old_gradient_survives(self, monkeypatch):
        op = op_expr("copy_slices")
        kernel = op.kernel(np)

        def wrong(base, value, **attrs):
            return base.copy() if value is None else kernel(base, value, **attrs)

        self.replace_kernel(monkeypatch, "copy_slices", wrong)
        with pytest.raises(Disagreement, match="the copying run"):
            judge(OVER_A_HISTORY, Counter())

    def test_a_base_that_keeps_its_history(self, monkeypatch):
        from oneflow_lite import interpreter

        monkeypatch.setattr(interpreter, "rebase_history", interpreter.Tensor.set_history)
        monkeypatch.setattr(flow.functors.inplace, "rebase_history", flow.Tensor.set_history)
        with pytest.raises(Disagreement):
            judge(THROUGH_A_VIEW, Counter())
        with pytest.raises(Disagreement):
            judge(INTO_A_CONSTANT, Counter())

    @pytest.mark.skipif(torch is None, reason="only PyTorch knows what is saved")
    def test_versions_that_are_not_compared(self, monkeypatch):
        from oneflow_lite.autograd import grad_function

        monkeypatch.setattr(grad_function, "stale", lambda saved, node: None)
        with pytest.raises(Disagreement):
            judge(STALE, Counter())

    @staticmethod
    def replace_kernel(monkeypatch, name, kernel):
        from oneflow_lite.autograd.gradients import FUNCTORS_F, NUMPY_F

        monkeypatch.setattr(NUMPY_F, name, kernel)
        monkeypatch.setattr(FUNCTORS_F, name, kernel)
