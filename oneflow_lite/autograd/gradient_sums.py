"""GradientSums: what arrives at the nodes of a backward call, and what becomes of the sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.autograd.autograd_meta import AutogradMeta
from oneflow_lite.autograd.gradient_modes import FUNCTORS_F, fits
from oneflow_lite.autograd.gradient_rules import as_given, as_tensors
from oneflow_lite.autograd.hooks import check_replacement
from oneflow_lite.autograd.node import AccumulateGrad, FunctionNode
from oneflow_lite.autograd.rule_namespace import KernelNamespace
from oneflow_lite.autograd.task_graph import TaskGraph
from oneflow_lite.bfloat16_arrays import adopted
from oneflow_lite.device import CPU, Device, array_module, device_of
from oneflow_lite.errors import GradientError
from oneflow_lite.locks import make_lock
from oneflow_lite.tensor import Tensor, make_tensor

ndarray = np.ndarray
_accumulate_lock = make_lock()


class GradientSums(TaskGraph):
    """The part of a GraphTask that sums gradients; its attributes are described there."""

    create_graph: bool
    accumulate: bool
    recorded: bool
    gradients: Any
    not_ready: dict[FunctionNode, Any]
    owned: set[FunctionNode]
    hooks_at_inputs = True  # a captured gradient is the one after the hooks of its tensor
    _seen: dict[FunctionNode, list[Any]] | None = None  # complete gradients, for hooks to look at

    # What arrives at a node

    def _receive(self, node: FunctionNode, index: int, grad: Any, sender: Any) -> None:
        """Check a gradient and add it to the partial sum of one output of a node."""
        grad = self._conform(grad, node, index, sender)
        buffers = self.not_ready.get(node)
        if node.infos is not None:
            if buffers is None:
                buffers = self.not_ready[node] = [None] * len(node.infos)
            before = buffers[index]
            buffers[index] = grad if before is None else self.gradients.add(before, grad)
        elif buffers is None:
            self.not_ready[node] = grad
        else:
            self.owned.discard(node)
            self.not_ready[node] = self.gradients.add(buffers, grad)

    def _conform(self, grad: Any, node: FunctionNode, index: int, sender: Any) -> Any:
        """Sum a gradient to the shape of its value and check it; name the culprit otherwise."""
        data = getattr(grad, "_data", None) if self.recorded else grad
        value: Any = node if node.infos is None else node.infos[index]
        if (
            type(data) is ndarray
            and data.shape == value.shape
            and data.dtype is value.dtype
            and (value is node or value.device is CPU)
        ):
            return grad
        if isinstance(grad, (tuple, list)):
            if len(grad) != 1:
                raise self._wrong_count_error(sender, tuple(grad))
            grad = grad[0]
        info = node.output_tensor_infos[index]
        assert info is not None
        if isinstance(grad, Tensor) != self.recorded or not hasattr(grad, "dtype"):
            wanted = "Tensor" if self.recorded else "array"
            raise self._wrong_gradient_error(sender, "type", wanted, type(grad).__name__)
        if grad.shape != info.shape:
            if not fits(grad.shape, info.shape):
                raise self._wrong_gradient_error(sender, "shape", info.shape, grad.shape)
            grad = self._namespace(info.device).sum_to(grad, shape=info.shape)
        if grad.dtype is not info.dtype:
            if grad.dtype.kind == "c" and info.dtype.kind == "f":
                F = self._namespace(info.device)
                grad = F.clone(F.real(grad))
            if grad.dtype != info.dtype:
                raise self._wrong_gradient_error(sender, "dtype", info.dtype, grad.dtype)
        device = grad.device if isinstance(grad, Tensor) else None
        if device is None:
            if isinstance(grad, np.generic):
                grad = np.asarray(grad)
            device = device_of(grad)
        if device != info.device:
            raise self._wrong_gradient_error(sender, "device", info.device, device)
        return grad

    def _namespace(self, device: Device) -> Any:
        """Return F for gradients on a device."""
        if self.recorded or device is CPU:
            return self.gradients.F
        return KernelNamespace(array_module(device))

    def _wrong_gradient_error(
        self, sender: Any, what: str, expected: object, got: object
    ) -> GradientError:
        name = "the caller" if sender is None else sender.name()
        return GradientError(
            f"{name} returned a gradient of {what} {got}, expected {what} {expected}, that of the "
            "input; mend its gradient rule"
        )

    def _wrong_count_error(self, node: FunctionNode, grads: tuple[Any, ...]) -> GradientError:
        return GradientError(
            f"{node.name()} returned {len(grads)} gradient(s) for {len(node.edges)} input(s); "
            "return one gradient, or None, per input"
        )

    def _materialize(
        self, node: FunctionNode, function: Any, grads: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Fill the missing gradients of a node's outputs with zeros, where its rule wants that."""
        if not function.materialize:
            return tuple(grads)
        return tuple(
            [
                self.gradients.zeros(info) if grad is None and info is not None else grad
                for grad, info in zip(grads, node.output_tensor_infos, strict=True)
            ]
        )

    # What happens to a gradient that is complete

    def _finish(self, node: FunctionNode, out_grad: Any) -> Any:
        """Run hooks on complete gradients, keep retained ones, capture, and end at leaves."""
        captures = () if self.exec_info is None else self.exec_info[node].captures
        metas: Any = node.metas
        if not (node.edges or captures or node.infos or metas[0].hooks):
            if node.hooks or metas[0].post_accumulate_hooks:  # type: ignore[attr-defined]
                self._accumulate(node, metas[0], out_grad)
            else:
                self._add(node, metas[0], out_grad)
            return None
        if not self.accumulate and not node.infos and not (metas and metas[0] and metas[0].hooks):
            self._capture(node, captures, out_grad)
            return out_grad
        grads = [out_grad] if node.infos is None else out_grad
        if self._seen is None:
            self._seen = {}
        self._seen[node] = grads
        for index, grad in enumerate(grads):
            if grad is None:
                continue
            meta = metas[index] if metas else None
            captured = [each for each in captures if each[0] == index]
            if meta is not None and meta.hooks and (self.hooks_at_inputs or not captured):
                grad = grads[index] = self._run_hooks(node, index, meta, grad)
            if not self.accumulate:
                self._capture(node, captured, grad)
            elif type(node) is AccumulateGrad or captured or (meta and meta.retain_grad):
                self._accumulate(node, meta or node.output_meta(index), grad)
        del self._seen[node]
        return grads[0] if node.infos is None else grads

    def _capture(self, node: FunctionNode, captures: Sequence[tuple[int, int]], grad: Any) -> None:
        """Keep the complete gradient of one value for `autograd.grad`."""
        ours = self.create_graph or (node in self.owned and len(captures) == 1)
        for _, position in captures:
            self.captured_grads[position] = grad if ours else self._copy(grad)

    def _copy(self, grad: Any) -> Any:
        """Return a gradient in memory that no other one shares, by an op where ops are recorded."""
        return FUNCTORS_F.clone(grad) if self.recorded else grad.copy()

    def _run_hooks(self, node: FunctionNode, index: int, meta: AutogradMeta, grad: Any) -> Any:
        self.owned.discard(node)  # a hook may keep what it sees
        assert meta.hooks is not None
        for hook in list(meta.hooks.values()):
            replaced = hook(self.gradients.wrap(grad))
            if replaced is None:
                continue
            info = node.output_tensor_infos[index]
            check_replacement(f"a hook on the gradient of {node.name()}", replaced, info)
            grad = self.gradients.unwrap(replaced)
        return grad

    def _accumulate(self, node: FunctionNode, meta: AutogradMeta, grad: Any) -> None:
        """Add a complete gradient to `.grad`, between the hooks that run before and after."""
        hooks = node.hooks if type(node) is AccumulateGrad else None
        if hooks is not None:
            self.owned.discard(node)
            (grad,) = as_given(hooks.run_pre(node, as_tensors((grad,))))
            if grad is None:
                return
        self._add(node, meta, grad)
        if meta.post_accumulate_hooks:
            for hook in list(meta.post_accumulate_hooks.values()):
                hook()
        if hooks is not None:
            hooks.run_post(node, (), as_tensors((grad,)))

    def _add(self, node: FunctionNode, meta: AutogradMeta, grad: Any) -> None:
        """Add a complete gradient to `acc_grad`, in memory that no other gradient shares."""
        with _accumulate_lock:
            before = meta.acc_grad
            if self.recorded:
                meta.acc_grad = self._recorded_sum(node, before, grad)
            elif before is None:
                if type(node) is not AccumulateGrad or node not in self.owned:
                    grad = grad.copy()
                meta.acc_grad = make_tensor(adopted(grad))
            elif before._edge is not None:
                meta.acc_grad = make_tensor(before._data + grad)
            else:
                try:
                    before._data += grad
                except ValueError:  # it was transposed, or expanded: the op says what is wrong
                    FUNCTORS_F.add_(before, make_tensor(grad))
                    raise
                (before._storage or before.memory).version += 1

    def _recorded_sum(self, node: FunctionNode, before: Tensor | None, grad: Tensor) -> Any:
        """Do the same in ops, which a pushed interpreter sees."""
        F = FUNCTORS_F
        if before is None:
            return grad.detach() if node in self.owned else F.clone(grad)
        if self.create_graph or before._edge is not None:
            return F.add(before, grad)
        return F.add_(before, grad)

    def current_grad(self, meta: AutogradMeta) -> Tensor | None:
        """Return the partial sum for one value, while this task sums into it."""
        sums = self.not_ready.copy()  # copy() is one step, whatever other threads do
        for node, grads in (self._seen or {}).copy().items():
            sums[node] = grads[0] if node.infos is None else grads
        for node, grad in sums.items():
            for index, candidate in enumerate(node.metas or ()):
                if candidate is meta:
                    found = grad if node.infos is None else grad[index]
                    return None if found is None else self.gradients.wrap(found)
        return None
