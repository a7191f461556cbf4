"""Every registered op, captured: compiled and as a Program it gives the bits that eager gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import CaptureError, GradientError
from oneflow_lite.static.interpreter_core import InterpreterCore
from oneflow_lite.static.passes import PASSES
from tests.op_samples import Sample, floats, samples
from tests.test_op_samples import OPS

VARIANTS = range(3)
# A Python bool or a shape of theirs depends on values: they run eagerly.
READS_VALUES = {"allclose", "equal", "nonzero", "masked_select", "masked_select_grad"}
MIXES_DEVICES = {"to_device"}
# Replayed in another order, or with other numbers: a gradient of the call's gradient is refused.
SECOND_DERIVATIVE_REFUSED = {
    *("bernoulli_", "normal_", "orthogonal_", "trunc_normal_", "uniform_"),
    *("copy_slices", "take_slices", "take_slices_grad"),
}
by_op = pytest.mark.parametrize("op", OPS)


def with_gradients(sample: Sample) -> Callable[..., Any]:
    """Return the call of a sample together with the gradients of a weighted sum of its results."""
    call, differentiable = sample.call, sample.differentiable

    def step(*tensors: flow.Tensor) -> tuple[Any, Any]:
        results = call(*tensors)
        joined = [y for y in floats(results) if y.requires_grad]
        if not joined:
            return results, ()
        total = functools.reduce(flow.add, [(y * _weights(y)).sum() for y in joined])
        inputs = [tensors[i] for i in differentiable]
        return results, flow.autograd.grad(total, inputs, allow_unused=True)

    return step


def _weights(y: flow.Tensor) -> flow.Tensor:
    numbers = flow.arange(1, y.numel() + 1, dtype=y.dtype, device=y.device)
    return numbers.reshape(y.shape) / 8


def leaves(results: Any) -> list[Any]:
    """Return the tensors, numbers and Nones of a nested result."""
    if isinstance(results, (tuple, list)):
        return [leaf for part in results for leaf in leaves(part)]
    return [results]


def bits(value: Any) -> Any:
    """Return what must agree of a tensor, an array or a number."""
    if isinstance(value, flow.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    return type(value), value


def run_eager(sample: Sample, variant: int, device: str = "cpu") -> list[Any]:
    """Return the bits that eager execution gives."""
    flow.manual_seed(variant)
    return list(map(bits, leaves(with_gradients(sample)(*sample.tensors(variant, device)))))


# --- flow.compile -------------------------------------------------------------------------------


@by_op
@pytest.mark.filterwarnings("ignore")  # a call that stays eager says so once
def test_compiled_equals_eager(op, device):
    for sample in samples(op, device):
        compiled = flow.compile(with_gradients(sample))
        kept = []
        for variant in VARIANTS:
            flow.manual_seed(variant)
            kept.append(leaves(compiled(*sample.tensors(variant, device))))
        for variant in VARIANTS:  # also that no call wrote the results of an earlier one
            have = list(map(bits, kept[variant]))
            assert have == run_eager(sample, variant, device), f"{sample}, call {variant}"
        seen = compiled.explain()
        if op in READS_VALUES | MIXES_DEVICES:
            assert seen.fallbacks > 0, seen
        else:
            assert (seen.captures, seen.hits, seen.fallbacks) == (1, 2, 0), seen.reasons


def outer_gradients(sample: Sample, call: Callable[..., Any], variant: int) -> list[Any]:
    """Return the bits of recorded gradients of a sum of squares of the call's results."""
    flow.manual_seed(variant)
    tensors = sample.tensors(variant)
    joined = [y for y in floats(call(*tensors)) if y.requires_grad]
    if not joined:
        return []
    total = functools.reduce(flow.add, [(y * y).sum() for y in joined])
    inputs = [tensors[i] for i in sample.differentiable]
    found = flow.autograd.grad(total, inputs, create_graph=True, allow_unused=True)
    return list(map(bits, found))


@by_op
@pytest.mark.filterwarnings("ignore")  # a call that stays eager says so once
def test_compiled_calls_are_differentiable_nodes(op):
    for sample in samples(op, "cpu"):
        compiled = flow.compile(sample.call)
        for variant in VARIANTS:
            try:
                have = outer_gradients(sample, compiled, variant)
            except GradientError as error:
                assert op in SECOND_DERIVATIVE_REFUSED, error
            else:
                assert have == outer_gradients(sample, sample.call, variant), f"call {variant}"


def test_nearly_all_ops_are_captured():
    assert set(OPS) >= READS_VALUES | MIXES_DEVICES
    assert len(READS_VALUES | MIXES_DEVICES) <= 0.05 * len(OPS)


# --- Programs -----------------------------------------------------------------------------------


def capture(sample: Sample) -> tuple[flow.static.Program, list[Any]]:
    """Return the Program of a sample and its results, symbolic tensors and Nones."""
    program = flow.static.Program()
    with flow.static.program_guard(program, flow.static.Program()):
        tensors = [flow.static.data(f"x{i}", x.shape, x.dtype) for i, x in enumerate(sample.inputs)]
        for i in sample.differentiable:
            tensors[i].requires_grad_()
        return program, leaves(with_gradients(sample)(*tensors))


def named(arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the feeds of a sample's Program."""
    return {f"x{i}": x for i, x in enumerate(arrays)}


@by_op
@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_program_equals_eager(op, mode, device):
    for sample in samples(op, "cpu"):
        if op in READS_VALUES:
            with pytest.raises(CaptureError):
                capture(sample)
            continue
        program, results = capture(sample)
        fetches = [y for y in results if y is not None]
        executor = flow.static.Executor(device, mode=mode)
        for variant in VARIANTS:
            arrays = sample.arrays(variant)
            before = [x.copy() for x in arrays]
            flow.manual_seed(variant)
            fetched = iter(executor.run(program, named(arrays), fetches))
            have = [bits(None if y is None else next(fetched)) for y in results]
            assert have == run_eager(sample, variant, device), f"{sample}, run {variant}"
            assert all(map(np.array_equal, arrays, before)), "a feed was written"


@by_op
def test_no_pass_changes_a_bit(op):
    choices = [tuple(PASSES), (), *[tuple(p for p in PASSES if p != name) for name in PASSES]]
    for sample in samples(op, "cpu")[:1] if op not in READS_VALUES else ():
        program, results = capture(sample)
        names = [y.name for y in results if y is not None]
        arrays = sample.arrays(1)
        runs = []
        for passes in choices:
            core = InterpreterCore(program, list(named(arrays)), names, passes=passes)
            flow.manual_seed(1)
            externals = [np.array(program.parameters[n].numpy()) for n in core.external_names]
            runs.append(list(map(bits, core.run([x.copy() for x in arrays], externals))))
        eager = [want for want in run_eager(sample, 1) if want != bits(None)]
        for passes, have in zip(choices, runs, strict=True):
            assert have == eager, f"{sample} with the passes {passes}"
