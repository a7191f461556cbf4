"""That every registered op has samples, and that each sample dispatches its op."""

from __future__ import annotations

import pytest

import oneflow_lite as flow
from tests.declared_samples import Names
from tests.op_samples import SAMPLES, Sample, every_op, samples

OPS = every_op()


def types_in_a_program(sample: Sample) -> set[str]:
    """Return the types of the ops that a sample's Program has, in any block."""
    program = flow.static.Program()
    with flow.static.program_guard(program, flow.static.Program()):
        inputs = [
            flow.static.data(f"x{i}", x.shape, x.dtype).requires_grad_(i in sample.differentiable)
            for i, x in enumerate(sample.inputs)
        ]
        sample.call(*inputs)
    return {op.type for block in program.blocks for op in block.ops}


def test_every_registered_op_has_samples():
    missing = [name for name in OPS if not samples(name, "cuda")]
    assert not missing, f"no declared sample reaches these ops, nor tests/op_samples.py: {missing}"
    assert set(SAMPLES) <= set(OPS), f"no such ops: {sorted(set(SAMPLES) - set(OPS))}"


@pytest.mark.parametrize("op", SAMPLES)
def test_samples_by_hand_dispatch_their_op(op):
    """The others were chosen for it."""
    for sample in samples(op):
        if sample.control_flow:
            assert op in types_in_a_program(sample)
            continue
        with flow.push_interpreter(Names()) as names:
            sample.call(*sample.tensors())
        assert op in names.seen, f"{sample} dispatched {sorted(names.seen)}"
