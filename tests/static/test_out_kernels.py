"""That a kernel given `out=` writes there, bit for bit, what it returns without."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.device import Device, on_device
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS
from tests.op_samples import every_op
from tests.static.kernel_calls import KernelCall, copied, recorded, sample_calls, sized_calls

TAKING_OUT = [op for op in every_op() if KERNELS.get(op).schema.out]


def calls(op: str) -> list[KernelCall]:
    """Return the calls of an op that are not of a shape which depends on values."""
    noted = [*sample_calls(), *sized_calls(), *_more_calls()]
    return [call for call in noted if call.op.op_type_name == op]


def _more_calls() -> list[KernelCall]:
    x = flow.tensor(np.cos(np.arange(24.0)).reshape(2, 3, 4).astype(np.float32))
    found: list[KernelCall] = []
    for function in _MORE:
        found += recorded(function, x)
        found += recorded(function, x.double())
    truth = np.array([[True, False, True], [False, False, True]])
    other = truth[:, ::-1].copy()
    for op in _OF_TRUTH_VALUES:
        operands = (truth, other)[: len(op_expr(op).schema.inputs)]
        found.append(KernelCall(op_expr(op), operands, {}))
    numbers = np.array([1.5, -2.5])
    found.append(KernelCall(op_expr("cast"), (numbers,), {"dtype": numbers.dtype}))
    return found


_OF_TRUTH_VALUES = """eq ne lt le gt ge isnan isinf isfinite logical_and logical_or logical_xor
    logical_not signbit""".split()


_MORE: list[Callable[[flow.Tensor], Any]] = [
    lambda x: flow.einsum("ijk,lk->ijl", x, x[0]),
    lambda x: flow.einsum("ijk,lk->lij", x, x[0]),
    lambda x: flow.einsum("ij,kl->ljik", x[0], x[1]),
    lambda x: x @ x[0].t(),
    lambda x: x.half() @ x[0].t().half(),
    lambda x: x.sum((0, 2), keepdim=True),
    lambda x: x.half().sum(1),
    lambda x: x.mean((0, 2)),
    lambda x: x[:, :0].mean(1),
    lambda x: flow.logsumexp(x, (0, 2)),
    lambda x: flow.logsumexp(x, 1, keepdim=True),
    lambda x: flow.logsumexp(x[:, :0], 1),
    lambda x: flow.all(x.to(flow.uint8), 1),
    lambda x: flow.any(x.to(flow.uint8), 1),
    lambda x: x.sum_to_size(1, 3, 1),
    lambda x: x.sum_to_size(3, 4),
    lambda x: x.half().sum_to_size(4),
    lambda x: x.to(flow.int64).floor(),
    lambda x: x.to(flow.int64).sum(1),
    lambda x: x.to(flow.complex64).conj(),
    lambda x: flow.sgn(x.to(flow.complex64)),
    lambda x: x.to(flow.complex64).to(flow.float32),
    lambda x: flow.full((2, 3), -1.5, dtype=x.dtype),
    lambda x: flow.rand(3, 4, dtype=flow.float16),
    lambda x: flow.randn(3, 4, dtype=flow.float16),
    lambda x: flow.bernoulli(x.abs().half()),
    lambda x: flow.nn.functional.pad(x, (1, 2), value=2.5),
    lambda x: flow.nn.functional.pad(x, (1, 2), mode="circular"),
    lambda x: flow.nn.functional.nll_loss(
        x, flow.tensor(np.array([[0, 1, 2, 0], [2, 2, 1, 0]])), x[0, :, 0].abs(), reduction="none"
    ),
    lambda x: flow.nn.functional.nll_loss(
        x, flow.tensor(np.array([[0, 1, 2, 0], [2, 2, 1, 0]])), ignore_index=2, reduction="sum"
    ),
    lambda x: flow.where(x.to(flow.int64) > 0, x.to(flow.int64), -x.to(flow.int64)),
    lambda x: flow.div(x.to(flow.int64), 3, rounding_mode="trunc"),
    lambda x: x.to(flow.bool) ** x.to(flow.bool),
    lambda x: flow.round(x, decimals=1),
    lambda x: x.cumsum(0),
    lambda x: flow.count_nonzero(x[0, 0, 0]),
    lambda x: flow.clamp(x, x - 0.25, x + 0.25),
    lambda x: flow.heaviside(x, x),
    lambda x: x.half().cumsum(0),
]


def garbage(like: np.ndarray) -> np.ndarray:
    """Return an array of the same shape, dtype and layout that nothing has been computed to."""
    y = copied(like)
    assert y is not None
    y[...] = math.nan if y.dtype.kind in "fc" else 77
    return y


def assert_same_bits(found: Any, expected: np.ndarray, call: KernelCall) -> None:
    __tracebackhide__ = True
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), call
    assert found.tobytes() == expected.tobytes(), call


def test_the_usual_ops_take_out():
    ops = [op for op in every_op() if not op_expr(op).schema.effect]  # collectives do not
    assert len(TAKING_OUT) >= 0.5 * len(ops)


@pytest.mark.parametrize("op", TAKING_OUT)
def test_the_result_is_written_to_out(op):
    found = calls(op)
    assert found, f"give {op} a call"
    for call in found:
        expected = np.asarray(call.run())
        out = garbage(expected)
        arrays = [copied(x) for x in call.arrays]
        assert call.run(arrays, out=out) is out, call
        assert_same_bits(out, expected, call)
        for given, before in zip(arrays, call.arrays, strict=True):
            assert given is None or given.tobytes() == before.tobytes(), call


@pytest.mark.slow(but=60)
@pytest.mark.parametrize("op", [op for op in TAKING_OUT if KERNELS.get(op).schema.reuses])
def test_out_may_be_an_input_that_is_reused(op):
    schema = KERNELS.get(op).schema
    met = set()
    for call in calls(op):
        expected = np.asarray(call.run())
        for i, name in enumerate(schema.inputs):
            x = call.arrays[i]
            if name not in schema.reuses or (x.shape, x.dtype) != (expected.shape, expected.dtype):
                continue
            if x.strides != expected.strides and x.size:
                continue
            arrays = [copied(x) for x in call.arrays]
            out = arrays[i]
            assert call.run(arrays, out=out) is out, (name, call)
            assert_same_bits(out, expected, call)
            met.add(name)
    assert met == set(schema.reuses), f"{op} reuses {schema.reuses}"


@pytest.mark.slow(but=60)
@pytest.mark.parametrize("op", TAKING_OUT)
def test_one_array_may_be_given_for_several_inputs(op):
    """As in x * x, where the input that is reused is also another one."""
    schema = KERNELS.get(op).schema
    for call in calls(op):
        first = call.arrays[0] if call.arrays else None
        if first is None or schema.variadic or len(call.arrays) < 2:
            continue
        alike = [
            i
            for i, x in enumerate(call.arrays)
            if x is not None and (x.shape, x.dtype, x.strides) == _description(first)
        ]
        if len(alike) < 2:
            continue
        shared = [first if i in alike else x for i, x in enumerate(call.arrays)]
        expected = np.asarray(call.run([copied(x) for x in shared]))
        if _description(first) != (expected.shape, expected.dtype, expected.strides):
            continue
        if all(schema.inputs[i] in schema.reuses for i in alike):
            own = copied(first)
            arrays = [own if i in alike else copied(x) for i, x in enumerate(shared)]
            assert call.run(arrays, out=own) is own, call
            assert_same_bits(own, expected, call)


def _description(x: np.ndarray) -> Any:
    return x.shape, x.dtype, x.strides


# --- On a device --------------------------------------------------------------------------------


@pytest.mark.slow(but=60)
@pytest.mark.parametrize("device", ["cuda"], indirect=True)
@pytest.mark.parametrize("op", TAKING_OUT)
def test_a_device_writes_to_out(op, device):
    schema = KERNELS.get(op).schema
    for call in calls(op):
        with on_device(Device(device)) as xp:
            expected = call.op.kernel(xp)(*_on_device(call, device), **_own_attrs(call))
            out = xp.empty_like(expected)
            arrays = _on_device(call, device)
            assert call.op.kernel(xp)(*arrays, out=out, **_own_attrs(call)) is out, call
            assert_same_bits(out.get(), expected.get(), call)
            for i, name in enumerate(schema.inputs):
                arrays = _on_device(call, device)
                x = arrays[i]
                if name in schema.reuses and (x.shape, x.dtype) == (out.shape, out.dtype):
                    found = call.op.kernel(xp)(*arrays, out=x, **_own_attrs(call))
                    assert found is x, (name, call)
                    assert_same_bits(x.get(), expected.get(), call)


def _own_attrs(call: KernelCall) -> dict[str, Any]:
    attrs = copy.deepcopy(call.attrs) if call.op.schema.random else call.attrs
    return attrs if call.arrays else {k: v for k, v in attrs.items() if k != "device"}


def _on_device(call: KernelCall, device: str) -> list[Any]:
    return [
        None if x is None else flow.tensor(np.ascontiguousarray(x), device=device)._data
        for x in call.arrays
    ]
