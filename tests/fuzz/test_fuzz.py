"""Random programs of ops, views and in-place writes give PyTorch's and the oracle's numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from oneflow_lite import Tensor
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F, NUMPY_F
from oneflow_lite.autograd.rules import save_plan
from oneflow_lite.autograd.rules.saved_tensor import save_tensor
from oneflow_lite.functors.declaring import writes
from oneflow_lite.interpreter import history
from oneflow_lite.tensors.storage import Storage
from tests.fuzz import campaign
from tests.fuzz.programs import Leaf, Program, Ref, Step
from tests.fuzz.verdict import Disagreement, judge, torch

CHUNKS = 2
SIZE = 200


@pytest.mark.slow
@pytest.mark.parametrize("number", range(CHUNKS))
def test_programs_agree(number):
    counts = campaign.run(SIZE, number)
    print(campaign.report(counts))
    # What makes the programs worth running does occur in each chunk.
    assert counts["compared to order 2"] > SIZE // 10
    assert counts["writes, view, with history"] > SIZE // 20
    assert counts["writes, base, with history"] > SIZE // 10
    for error in ("StaleTensorError", "InplaceError"):
        assert any(what.endswith(f"raised: {error}") for what in counts)
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
STALE_RESULT = program(
    op(1, "keep_order", T[0]),
    write("exp_", T[1]),
    write("mul_number_", T[1]),
)
OVER_A_HISTORY = program(
    op(1, "sin", T[0]),
    view(2, "select", T[1], 1, 0),
    write("zero_", T[2]),
    op(3, "square", T[1]),
)


class TestCatches:
    """The verdict on programs whose answer is wrong; each mistake is made on purpose."""

    @pytest.mark.parametrize(
        "example", [THROUGH_A_VIEW, INTO_A_CONSTANT, STALE, STALE_RESULT, OVER_A_HISTORY]
    )
    def test_nothing_without_a_mistake(self, example):
        judge(example, Counter())

    def test_a_region_whose_old_gradient_survives(self, monkeypatch):
        for namespace in (NUMPY_F, FUNCTORS_F):
            right = namespace.copy_slices

            def wrong(base, value, *, right=right, **attrs):
                return base * 1 if value is None else right(base, value, **attrs)

            monkeypatch.setattr(namespace, "copy_slices", wrong)
        with pytest.raises(Disagreement, match="the copying run"):
            judge(OVER_A_HISTORY, Counter())

    def test_a_base_that_keeps_its_history(self, monkeypatch):
        monkeypatch.setattr(history, "rebase_history", Tensor.set_history)
        monkeypatch.setattr(writes, "rebase_history", Tensor.set_history)
        with pytest.raises(Disagreement):
            judge(THROUGH_A_VIEW, Counter())
        with pytest.raises(Disagreement):
            judge(INTO_A_CONSTANT, Counter())

    @pytest.mark.skipif(torch is None, reason="only PyTorch knows what is saved")
    def test_a_write_that_is_not_counted(self, monkeypatch):
        monkeypatch.setattr(Storage, "version", property(lambda self: 0, lambda self, new: None))
        with pytest.raises(Disagreement, match="version"):
            judge(STALE, Counter())

    @pytest.mark.skipif(torch is None, reason="only PyTorch knows what is saved")
    def test_a_saved_tensor_that_no_write_reaches(self, monkeypatch):
        def save_copy(name, tensor, edge):
            return save_tensor(name, tensor.detach().clone(), edge)

        monkeypatch.setattr(save_plan, "save_tensor", save_copy)
        with pytest.raises(Disagreement, match="PyTorch raises"):
            judge(STALE, Counter())
