"""Additions to a new node that a thread's modes ask for: packed tensors, checksums, tracebacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.autograd.rules.gradient_rules import (
    AutoGradCaptureState,
    OpExprGradFunction,
    WrappedGradFunction,
)
from oneflow_lite.autograd.rules.saved_tensor import (
    SavedTensor,
    checksum,
    overwritten_error,
    pack,
    unpack_packed,
)
from oneflow_lite.tensors.mode import StateChange, ThreadState
from oneflow_lite.tensors.node import FunctionNode
from oneflow_lite.tensors.tensor import Tensor


def annotate(node: FunctionNode, state: ThreadState, outputs: Sequence[Tensor] = ()) -> None:
    """Tell a new node to the thread's trace and anomaly mode, and pack or checksum its tensors.

    `outputs` are the tensors to which the node will be joined, where they are known.
    """
    if state.trace is not None:
        state.trace.made(node, outputs)
    if state.anomaly is not None:
        state.anomaly.remember(node)
    if not node.saved:
        return
    if state.saved_hooks is not None:
        with StateChange(grad_enabled=False, saved_hooks=None):
            node.saved = tuple([pack(s, node, state.saved_hooks) for s in node.saved])
        node.grad_function = PackedGradFunction(node.grad_function)
    elif state.debug:
        node.grad_function = ChecksummedGradFunction(node.grad_function, node.saved)


class PackedGradFunction(WrappedGradFunction):
    """The gradient function of a node whose saved tensors were packed by hooks."""

    def open(self, node: FunctionNode, saved: Any, recorded: bool) -> AutoGradCaptureState:
        """Let the unpack hook restore the saved tensors, and go on."""
        return self.inner.open(node, tuple(map(unpack_packed, saved)), recorded)

    def detached(self, saved: tuple[SavedTensor, ...]) -> tuple[Tensor, ...]:
        """Let the unpack hook restore the tensors that `node.saved_tensors` shows."""
        return self.inner.detached(tuple(map(unpack_packed, saved)))


class ChecksummedGradFunction(WrappedGradFunction):
    """The gradient function of a node that was recorded in debug mode."""

    def __init__(self, inner: OpExprGradFunction, saved: tuple[SavedTensor, ...]) -> None:
        super().__init__(inner)
        self.checksums = [checksum(s) for s in saved]

    def open(self, node: FunctionNode, saved: Any, recorded: bool) -> AutoGradCaptureState:
        """Compare the checksums, and go on."""
        for s, expected in zip(saved, self.checksums, strict=True):
            # Another version means a counted write, which has an error of its own.
            if s[2].version == s[3] and checksum(s) != expected:
                raise overwritten_error(s, node)
        return self.inner.open(node, saved, recorded)
