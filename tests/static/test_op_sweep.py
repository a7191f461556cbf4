"""Every registered op, captured: compiled and as a Program it gives the bits that eager gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import CaptureError
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.passes import DEFAULT_PASSES as PASSES
from tests.declared_samples import Sample, floats
from tests.op_samples import every_op, samples

OPS = every_op()
VARIANTS = range(3)
# A Python bool or a shape of theirs depends on values: they run eagerly.
READS_VALUES = {
    *("allclose", "equal", "nonzero", "masked_select", "masked_select_grad"),
    *("bincount", "repeat_index", "unique", "unique_consecutive"),
}
# Of what each iteration gives to an outer tensor, and of a third derivative's five terms.
SUMS_IN_ANOTHER_ORDER = {"while_loop_grad", "linalg_solve_turned"}
# The twins in single precision run once, on the CPU.
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


def plain(value: Any) -> Any:
    """Return the array of a tensor; what is none stays as it is."""
    return value.detach().cpu().numpy() if isinstance(value, flow.Tensor) else value


def assert_same(op: str, have: Sequence[Any], want: Sequence[Any], note: str) -> None:
    """Hold that two lists of results agree to the bit, or to 4 ulp where the order may differ."""
    for a, b in zip(map(plain, have), map(plain, want), strict=True):
        if not isinstance(b, np.ndarray):
            assert (type(a), a) == (type(b), b), note
            continue
        assert (a.dtype, a.shape) == (b.dtype, b.shape), note
        if op in SUMS_IN_ANOTHER_ORDER and b.dtype.kind == "f":
            np.testing.assert_array_max_ulp(a, b, 4)
        else:
            assert a.tobytes() == b.tobytes(), f"{note}\n{a}\nnot as eager\n{b}"


def run_eager(sample: Sample, variant: int, device: str = "cpu") -> list[Any]:
    """Return what eager execution gives."""
    flow.manual_seed(variant)
    return leaves(with_gradients(sample)(*sample.tensors(variant, device)))


# --- flow.compile -------------------------------------------------------------------------------


@pytest.mark.slow(but=60)
@by_op
@pytest.mark.filterwarnings("ignore")  # a call that stays eager says so once
def test_compiled_equals_eager(op, device):
    for sample in samples(op, device)[: None if device == "cpu" else 1]:
        run_eager(sample, 0, device)  # what is loaded late is another thing to a guard
        compiled = flow.compile(with_gradients(sample))
        kept = []
        for variant in VARIANTS:
            flow.manual_seed(variant)
            kept.append(leaves(compiled(*sample.tensors(variant, device))))
        for variant in VARIANTS:  # also that no call wrote the results of an earlier one
            want = run_eager(sample, variant, device)
            assert all(np.isfinite(plain(y)).all() for y in floats(want)), "outside the domain"
            assert_same(op, kept[variant], want, f"{sample}, call {variant}")
        seen = compiled.explain()
        if op in READS_VALUES:
            assert seen.fallbacks > 0, seen
        else:
            assert (seen.captures, seen.hits, seen.fallbacks) == (1, 2, 0), seen.reasons


def outer_gradients(sample: Sample, call: Callable[..., Any], variant: int) -> list[Any]:
    """Return recorded gradients of a sum of squares of the call's results."""
    flow.manual_seed(variant)
    tensors = sample.tensors(variant)
    joined = [y for y in floats(call(*tensors)) if y.requires_grad]
    if not joined:
        return []
    total = functools.reduce(flow.add, [(y * y).sum() for y in joined])
    inputs = [tensors[i] for i in sample.differentiable]
    return list(flow.autograd.grad(total, inputs, create_graph=True, allow_unused=True))


@pytest.mark.slow(but=40)
@by_op
@pytest.mark.filterwarnings("ignore")  # a call that stays eager says so once
def test_compiled_calls_are_differentiable_nodes(op):
    for sample in samples(op, "cpu"):
        compiled = flow.compile(sample.call)
        for variant in VARIANTS:
            have = outer_gradients(sample, compiled, variant)
            want = outer_gradients(sample, sample.call, variant)
            assert_same(op, have, want, f"{sample}, call {variant}")


def test_nearly_all_ops_are_captured():
    assert set(OPS) >= READS_VALUES
    assert len(READS_VALUES) <= 0.05 * len(OPS)


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


@pytest.mark.slow(but=60)
@by_op
def test_program_equals_eager(op, device):
    """All samples in a straight line on the CPU; the first by the work queue, too, and on CUDA."""
    for number, sample in enumerate(samples(op)[: None if device == "cpu" else 1]):
        if op in READS_VALUES:
            with pytest.raises(CaptureError):
                capture(sample)
            continue
        program, results = capture(sample)
        fetches = [y for y in results if y is not None]
        want = [run_eager(sample, variant, device) for variant in VARIANTS]
        for mode in ("straight_line", "work_queue")[: None if number == 0 else 1]:
            executor = flow.static.Executor(device, mode=mode)
            for variant in VARIANTS:
                arrays = sample.arrays(variant)
                before = [x.copy() for x in arrays]
                flow.manual_seed(variant)
                fetched = iter(executor.run(program, named(arrays), fetches))
                have = [None if y is None else next(fetched) for y in results]
                assert_same(op, have, want[variant], f"{sample}, run {variant}, {mode}")
                assert all(map(np.array_equal, arrays, before)), "a feed was written"


@pytest.mark.slow(but=20)
@by_op
def test_no_pass_changes_a_bit(op):
    choices = [tuple(PASSES), (), *[tuple(p for p in PASSES if p != name) for name in PASSES]]
    for sample in samples(op, "cpu")[:1] if op not in READS_VALUES else ():
        program, results = capture(sample)
        names = [y.name for y in results if y is not None]
        arrays = sample.arrays(1)
        eager = [y for y in run_eager(sample, 1) if y is not None]
        for passes in choices:
            core = InterpreterCore(program, list(named(arrays)), names, passes=passes)
            flow.manual_seed(1)
            externals = [program.parameters[n].numpy().copy() for n in core.external_names]
            have = core.run([x.copy() for x in arrays], externals)
            assert_same(op, have, eager, f"{sample} with the passes {passes}")
