"""That every registered op has samples, and that each sample dispatches its op."""

from __future__ import annotations

import numpy as np
import pytest

import oneflow_lite as flow
from tests.declared_samples import Names
from tests.op_samples import SAMPLES, Sample, every_op, floats, samples

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


@pytest.mark.parametrize("op", OPS)
def test_samples_dispatch_their_op(op, device):
    for sample in samples(op, device):
        if sample.control_flow:
            assert op in types_in_a_program(sample)
            continue
        tensors = sample.tensors(device=device)
        with flow.push_interpreter(Names()) as names:
            sample.call(*tensors)
        assert op in names.seen, f"{sample} dispatched {sorted(names.seen)}"


@pytest.mark.parametrize("op", OPS)
def test_samples_leave_their_inputs_alone_and_have_gradients(op):
    for sample in samples(op, "cpu"):
        tensors = sample.tensors()
        outputs = floats(sample.call(*tensors))
        for tensor, array in zip(tensors, sample.inputs, strict=True):
            np.testing.assert_array_equal(tensor.detach().numpy(), array)
        joined = [y for y in outputs if y.requires_grad]
        if sample.differentiable and joined:
            inputs = [tensors[i] for i in sample.differentiable]
            total = sum(y.sum() for y in joined)
            grads = flow.autograd.grad(total, inputs, allow_unused=True)
            assert all(np.isfinite(g.numpy()).all() for g in grads if g is not None)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.filterwarnings("error")
def test_variants_stay_inside_the_domain(op):
    for sample in samples(op, "cpu"):
        for variant in range(4):
            arrays = sample.arrays(variant)
            for array, original in zip(arrays, sample.inputs, strict=True):
                assert (array.shape, array.dtype) == (original.shape, original.dtype)
            for y in floats(sample.call(*sample.tensors(variant))):
                assert np.isfinite(y.detach().numpy()).all()
