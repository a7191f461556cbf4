"""Calls of kernels, noted while functors run: `sample_calls()` has one at least of each op."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

import oneflow_lite as flow
from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.ops.registry import KERNELS
from tests.declared_samples import gradient
from tests.op_samples import every_op, samples

F = flow.nn.functional

# The ops of the kernels' folder: those of control flow run Programs.
OPS = [
    op
    for op in every_op()
    if any(
        kernel.__module__.startswith("oneflow_lite.kernels")
        or kernel.__module__ == "oneflow_lite.ops.registry"
        for kernel in KERNELS.get(op).by_device.values()
    )
]


@attrs.frozen
class KernelCall:
    """One call of an op's kernel: arrays (or None) and attributes."""

    op: OpExpr
    arrays: tuple[Any, ...]
    attrs: dict[str, Any]

    def run(self, arrays: Sequence[Any] | None = None, **more: Any) -> Any:
        """Run the kernel on copies of the same layout, or on the given arrays themselves.

        It receives each message that it sends, and sends first what it receives: none is left over.
        """
        if arrays is None:
            arrays = [copied(x) for x in self.arrays]
        # Every run draws the same numbers.
        own = copy.deepcopy(self.attrs) if self.op.schema.random else self.attrs
        if not arrays:
            own = {name: value for name, value in own.items() if name != "device"}
        name = self.op.op_type_name
        if name == "receive_from_":
            own["group"].transport(np).send(np.array(arrays[0], order="C"), 0, own["tag"]).wait()
        with np.errstate(all="ignore"):
            result = self.op.kernel(np)(*arrays, **own, **more)
        if name == "send_to":
            own["group"].transport(np).recv(np.array(arrays[0], order="C"), 0, own["tag"]).wait()
        return result

    def laid_out(self, layout: Callable[[int, np.ndarray], np.ndarray]) -> KernelCall:
        """Return the call with other layouts of its arrays: `layout(position, array)`."""
        arrays = [None if x is None else layout(i, x) for i, x in enumerate(self.arrays)]
        return attrs.evolve(self, arrays=tuple(arrays))

    def __str__(self) -> str:
        shown = ["None" if x is None else f"{x.dtype}{x.shape}" for x in self.arrays]
        return f"{self.op.op_type_name}({', '.join(shown)}, {self.attrs})"


def copied(x: np.ndarray | None) -> np.ndarray | None:
    """Return a copy with the same strides."""
    if x is None:
        return None
    y = ArraySpec.of(x).allocate()
    y[...] = x
    return y


class Recorder(flow.Interpreter):
    """Notes every kernel call."""

    def __init__(self) -> None:
        self.calls: list[KernelCall] = []

    def apply(self, op_expr: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        arrays = tuple([None if x is None else copied(x._data) for x in inputs])
        noted = {k: copy.deepcopy(v) if k == "generator" else v for k, v in attrs.items()}
        self.calls.append(KernelCall(op_expr, arrays, noted))
        return self.inner.apply(op_expr, inputs, attrs)


def recorded(call: Callable[..., Any], *tensors: flow.Tensor) -> list[KernelCall]:
    """Return the kernel calls that a call makes."""
    recorder = Recorder()
    with np.errstate(all="ignore"), flow.push_interpreter(recorder):
        call(*tensors)
    return recorder.calls


@functools.cache
def sample_calls() -> tuple[KernelCall, ...]:
    """Return the kernel calls of all samples, each signature once."""
    found: dict[Any, KernelCall] = {}
    for op in every_op():
        for sample in samples(op, "cpu"):
            for call in recorded(sample.call, *sample.tensors()):
                found.setdefault(_signature(call), call)
    return tuple(found.values())


@functools.cache
def sized_calls() -> tuple[KernelCall, ...]:
    """Return calls of what works otherwise on other sizes and dtypes: empty, 0-d, large, halves."""
    found: dict[Any, KernelCall] = {}
    rng = np.random.default_rng(7)
    for shape in [(), (3,), (0, 4), (40, 30), (96, 100)]:
        for dtype in (np.float16, np.float32, np.float64):
            for function, operands in _SIZED:
                arrays = [(3 * rng.standard_normal(shape)).astype(dtype) for _ in range(operands)]
                if arrays[0].size > 3:  # the values where kernels branch
                    arrays[0].reshape(-1)[:6] = (0.0, -0.0, np.nan, np.inf, -np.inf, 100.0)
                    arrays[-1].reshape(-1)[4:8] = (0.0, -0.0, np.nan, np.inf)
                tensors = [flow.tensor(x).requires_grad_() for x in arrays]
                for call in recorded(gradient(function), *tensors):
                    found.setdefault(_signature(call), call)
    return tuple(found.values())


def _signature(call: KernelCall) -> Any:
    arrays = [x is not None and (x.shape, x.dtype, x.strides) for x in call.arrays]
    return call.op.op_type_name, repr(arrays), repr(sorted(call.attrs.items()))


def _last(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: function(x, dim=-1)


_SIZED: list[tuple[Callable[..., Any], int]] = [
    *[
        (getattr(F, name), 1)
        for name in """gelu silu elu softplus mish softsign logsigmoid relu leaky_relu hardtanh
        hardsigmoid hardswish hardshrink softshrink selu celu""".split()
    ],
    *[
        (getattr(flow, name), 1)
        for name in """abs neg exp log tanh sigmoid erf erfc square rsqrt reciprocal floor frac
        round sin sinc nan_to_num sum mean prod clone""".split()
    ],
    *[
        (getattr(flow, name), 2)
        for name in "add mul div maximum fmod remainder atan2 xlogy pow".split()
    ],
    *[(_last(getattr(flow, name)), 1) for name in "softmax log_softmax logsumexp cumsum".split()],
    (lambda x: F.gelu(x, approximate="tanh"), 1),
    (lambda x: F.threshold(x, 0.5, -1.0), 1),
    (lambda x: flow.clamp(x, -1.0, 1.5), 1),
    (lambda x, y: flow.where(x > y, x, y), 2),
    (lambda x, y: flow.div(x, y, rounding_mode="trunc"), 2),
    (lambda x, y: flow.lerp(x, y, x), 2),
    (lambda x: x.masked_fill(x > 0, -1.0), 1),
    (lambda x: F.dropout(x, 0.25), 1),
    (F.huber_loss, 2),
    (F.binary_cross_entropy_with_logits, 2),
]
