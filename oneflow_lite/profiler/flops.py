"""Floating-point operations of matrix products and convolutions, by the modules that do them."""

from __future__ import annotations

import collections
import math
from contextlib import ExitStack
from typing import Any

import numpy as np

from oneflow_lite.errors import UnsupportedError
from oneflow_lite.interpreter.stack import Interpreter, push_interpreter
from oneflow_lite.nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from oneflow_lite.nn.module import Module


def _flops(op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], result: Any) -> Any:
    """Return two for each product that is added, as PyTorch counts; 0 for other ops."""
    shapes: list[Any] = [None if x is None else x.shape for x in inputs]
    if op in ("matmul", "matmul_nt", "matmul_tn"):
        (*batch, m, k), (*other, b, n) = shapes
        m, k = (k, m) if op == "matmul_tn" else (m, k)
        return 2 * math.prod(np.broadcast_shapes(batch, other)) * m * k * (b if "nt" in op else n)
    if op == "contract":
        sizes = dict(zip((*attrs["xs"], *attrs["ys"]), (*shapes[0], *shapes[1]), strict=True))
        return 2 * math.prod(sizes.values())
    if op.startswith("conv"):
        weight = result.shape if op == "conv_weight_grad" else shapes[1]
        outputs = result.shape if op == "conv" else shapes[0]
        return 2 * math.prod(outputs) * math.prod(weight[1:])
    if op in ("attention", "attention_grad"):  # two products; five in the gradient
        q, k, v = shapes[op == "attention_grad" :][:3]
        times = 1 if op == "attention" else 2.5
        return int(2 * math.prod(q[:3]) * k[2] * (q[3] + v[3]) * times)
    if op.endswith(("_layer", "_layer_grad")):  # a recurrent layer's products with its state
        planes, boxes = ([s for s in shapes if s is not None and len(s) == n] for n in (2, 3))
        gates, weight = max(((b, w) for b in boxes for w in planes if w[0] == b[-1]), key=max)
        return 2 * math.prod(gates) * weight[1] * (2 if op.endswith("_grad") else 1)
    return 0


class _Counter(Interpreter):
    def __init__(self, mode: FlopCounterMode) -> None:
        self.mode = mode

    def apply(self, op_expr: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        assert self.inner is not None
        result = self.inner.apply(op_expr, inputs, attrs)
        op = op_expr.op_type_name
        if flops := _flops(op, inputs, attrs, result):
            for name in dict.fromkeys(["Global", *self.mode._active]):
                self.mode.flop_counts[name][op] += flops
        return result


class FlopCounterMode:
    """Count the floating-point operations of a `with` block: of products and convolutions.

    Parameters
    ----------
    mods : optional
        Accepted: modules are found as they are called.
    depth : int
        How deep the table goes into modules.
    display : bool
        Whether the end of the block prints the table.

    A module has the operations of its forward; those of the backward pass count as "Global" alone.

    Raises
    ------
    UnsupportedError
        For `custom_mapping`: the ops are those of this library.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> model = flow.nn.Sequential(flow.nn.Linear(4, 3), flow.nn.ReLU(), flow.nn.Linear(3, 2))
    >>> with flow.profiler.FlopCounterMode(display=False) as counter:
    ...     y = model(flow.ones(5, 4))
    >>> counter.get_total_flops(), dict(counter.get_flop_counts()["Sequential.2"])
    (180, {'matmul_nt': 60})
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None
    ) -> None:
        if custom_mapping:
            raise UnsupportedError("FlopCounterMode(): custom_mapping names ops of PyTorch's")
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, Any] = collections.defaultdict(collections.Counter)
        self._names: dict[int, str] = {}
        self._active: list[str] = []

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._block = ExitStack()
        self._block.enter_context(register_module_forward_pre_hook(self._enter))
        left = register_module_forward_hook(self._leave, always_call=True)
        self._block.enter_context(left)
        self._block.enter_context(push_interpreter(_Counter(self)))
        return self

    def __exit__(self, *error: Any) -> None:
        self._block.close()
        if self.display:
            print(self.get_table())

    def _enter(self, module: Module, args: Any) -> None:
        if id(module) not in self._names:
            kind = type(module).__name__
            for name, each in module.named_modules():
                self._names[id(each)] = f"{kind}.{name}".rstrip(".")
        self._active.append(self._names[id(module)])

    def _leave(self, module: Module, args: Any, output: Any) -> None:
        self._active.pop()

    def get_total_flops(self) -> int:
        """Return the number of all operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, Any]:
        """Return the numbers by the name of the module and of the op."""
        return dict(self.flop_counts)

    def get_table(self, depth: int | None = None) -> str:
        """Return the numbers of modules, as text."""
        depth = self.depth if depth is None else depth
        rows = [("Module", "FLOP", "% Total")]
        for name, counts in self.flop_counts.items():
            if name.count(".") < depth:
                flops = sum(counts.values())
                rows.append((name, f"{flops:,}", f"{flops / self.get_total_flops():.2%}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            f"{name:<{widths[0]}}  {flops:>{widths[1]}}  {share:>{widths[2]}}"
            for name, flops, share in rows
        )
