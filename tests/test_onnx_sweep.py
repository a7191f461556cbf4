"""Every op that has a translation to ONNX: onnxruntime gives what the kernel gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import CaptureError, OnnxError
from oneflow_lite.ops.registry import KERNELS, Lines
from tests.op_samples import Sample, every_op, samples

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
# Their samples need something else that has no translation, or are the calls that are refused.
OTHERWISE = {
    "batch_norm": "update_running",
    "pow_integer": "cumprod",
    "plane_take": "max_unpool",
    "scatter_amin": "scatter_mask",
    "shift": "recurrence",
}
# What is written from an expression although ONNX, or onnxruntime, has not all of its functions.
WITHOUT = {"bitwise_left_shift", "bitwise_right_shift", "copysign", "gcd", "lcm", "nextafter"}
WITHOUT |= {"signbit", "isclose"}


def is_translated(op: str) -> bool:
    """Return whether an op has a translation of its own, or an expression to make one from."""
    from oneflow_lite.onnx.registry import TRANSLATIONS

    kernel = KERNELS.get(op)
    expressed = kernel.scalar is not None or kernel.ufunc is not None
    return op in TRANSLATIONS or (
        expressed and not isinstance(kernel.scalar, Lines) and op not in WITHOUT
    )


def outputs(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in outputs(part)]
    return [value.numpy()] if isinstance(value, flow.Tensor) else []


def recording(sample: Sample) -> Callable[..., Any]:
    """Return the call of a sample, which may take gradients in it."""

    def call(*tensors: flow.Tensor) -> Any:
        with flow.enable_grad():
            given = list(tensors)
            for i in sample.differentiable:
                given[i] = tensors[i].detach().requires_grad_()
            return sample.call(*given)

    return call


@pytest.mark.parametrize("op", [op for op in every_op() if is_translated(op)])
@pytest.mark.filterwarnings("ignore")
def test_onnxruntime_agrees(op: str) -> None:
    refused: list[str] = []
    compared = 0
    for sample in samples(op):
        arrays = sample.arrays()
        if sample.control_flow or any(x.dtype.char in "dDF" for x in arrays):
            continue  # onnxruntime knows most ops in single precision alone
        tensors = [flow.tensor(x) for x in arrays]
        call = recording(sample)
        want = outputs(call(*tensors))
        try:
            model = flow.onnx.export(call, tuple(tensors))
        except (OnnxError, CaptureError) as error:
            refused.append(str(error))
            continue
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        known = {x.name for x in session.get_inputs()}
        named = zip(model.graph.input, arrays, strict=True)
        have = session.run(None, {x.name: array for x, array in named if x.name in known})
        for a, b in zip(have, want, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), sample
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6, err_msg=str(sample))
        compared += 1
    if op in OTHERWISE:
        assert refused and all(OTHERWISE[op] in text for text in refused)
    elif refused:
        assert compared, refused


def test_most_ops_of_networks_have_a_translation() -> None:
    assert sum(map(is_translated, every_op())) > 200
