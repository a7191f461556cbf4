"""OpExpr: one op by name, with its schema, kernels and gradient function looked up once.

A functor holds an OpExpr at module level and hands it to `dispatch` with every call.
"""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import UnknownOpError
from oneflow_lite.registry import GRAD_FUNCS, KERNELS, Kernel, Schema

_OP_EXPRS: dict[str, OpExpr] = {}


class OpExpr:
    """An op: its name and, found on first use, `schema`, `cpu_kernel`, `cuda_kernel`, `plain` and
    `grad_function`.

    `plain` says that the op neither writes nor aliases its inputs, which lets dispatch take the
    short way. Get one from `op_expr(name)`; there is one object per name.
    """

    __slots__ = ("cpu_kernel", "cuda_kernel", "grad_function", "op_type_name", "plain", "schema")

    cpu_kernel: Kernel
    cuda_kernel: Kernel
    grad_function: Any
    op_type_name: str
    plain: bool
    schema: Schema

    def __init__(self, op_type_name: str) -> None:
        self.op_type_name = op_type_name

    def __getattr__(self, name: str) -> Any:
        # Reached only while a slot is empty: look the value up and keep it there.
        if name == "grad_function":
            found = GRAD_FUNCS.find(self.op_type_name)
            if found is None:
                return None  # not kept: a gradient may be registered later
            value: Any = found.resolve(self)
        elif name == "schema":
            value = KERNELS.get(self.op_type_name).schema
        elif name == "plain":
            value = not self.schema.mutates and self.schema.view_of is None
        elif name in ("cpu_kernel", "cuda_kernel"):
            value = self._find_kernel(name.removesuffix("_kernel"))
        else:
            raise AttributeError(f"OpExpr has no attribute {name!r}")
        setattr(self, name, value)
        return value

    def _find_kernel(self, device: str) -> Kernel:
        by_device = KERNELS.get(self.op_type_name).by_device
        kernel = by_device.get(device) or by_device.get(None)
        if kernel is None:
            raise UnknownOpError(
                f"op {self.op_type_name!r} has no kernel for {device}, only for "
                f"{', '.join(map(str, by_device))}; register one with "
                f"register_kernel({self.op_type_name!r}, device={device!r})"
            )
        return kernel

    def __repr__(self) -> str:
        return f"OpExpr({self.op_type_name!r})"


def op_expr(op_type_name: str) -> OpExpr:
    """Return the OpExpr of this name."""
    found = _OP_EXPRS.get(op_type_name)
    if found is None:
        found = _OP_EXPRS[op_type_name] = OpExpr(op_type_name)
    return found

