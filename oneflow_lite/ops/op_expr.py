"""OpExpr: one op by name, with its schema, kernels and gradient function looked up once.

A functor holds an OpExpr at module level and hands it to `dispatch` with every call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.errors import UnknownOpError
from oneflow_lite.ops.cudnn import with_cudnn
from oneflow_lite.ops.eager_loops import with_loops
from oneflow_lite.ops.registry import GRAD_FUNCS, KERNELS, Schema

_OP_EXPRS: dict[str, OpExpr] = {}
_lock = make_lock()


class OpExpr:
    """An op. Get one from `op_expr(name)`; there is one object per name.

    Attributes
    ----------
    op_type_name : str
    run_in_eager : callable or None
        What eager mode calls with NumPy arrays: `run_in_eager(*arrays, **attrs)`; None until
        `on_cpu` found it.
    run_on_cpu : callable or None
        The same for the short way through dispatch, which ops that write their inputs do not take.
    aliases : bool
        Whether the output may be a view of the input.
    grad_function : OpExprGradFunction or None
        None until the first gradient.
    """

    __slots__ = (
        "_kernels", "_on_cpu", "_schema", "aliases", "grad_function", "op_type_name",
        "run_in_eager", "run_on_cpu",
    )  # fmt: skip

    def __init__(self, op_type_name: str) -> None:
        self.op_type_name = op_type_name
        self.forget()

    def forget(self) -> None:
        """Look everything up again at the next use."""
        self.run_in_eager: Callable[..., Any] | None = None
        self.run_on_cpu: Callable[..., Any] | None = None
        self.aliases = False
        self.grad_function: Any = None
        self._schema: Schema | None = None
        self._on_cpu: Callable[..., Any] | None = None
        self._kernels: dict[Any, Callable[..., Any]] = {}

    @property
    def schema(self) -> Schema:
        """The inputs and attributes of the op, and its effects on memory."""
        if self._schema is None:
            self._schema = KERNELS.get(self.op_type_name).schema
        return self._schema

    def kernel(self, xp: Any) -> Callable[..., Any]:
        """Return the kernel for numpy or cupy, with that module bound."""
        found = self._kernels.get(xp)
        if found is None:
            found = self._kernels[xp] = self._find_kernel(xp)
        return found

    def on_cpu(self) -> Callable[..., Any]:
        """Return the kernel that eager mode calls with NumPy arrays, with loops for large ones."""
        found = self._on_cpu
        if found is None:
            found = with_loops(self.op_type_name, self.kernel(np))
            self.run_in_eager = self._on_cpu = found
            if not self.schema.mutates:
                self.aliases = self.schema.view_of is not None
                self.run_on_cpu = found  # last: another thread may take the short way from now on
        return found

    def _find_kernel(self, xp: Any) -> Callable[..., Any]:
        device = "cpu" if xp is np else "cuda"
        self.schema  # noqa: B018  (an unknown name is answered with near misses)
        entry = KERNELS.get(self.op_type_name)
        kernel = entry.by_device.get(device)
        if kernel is None and entry.ufunc is not None:
            return getattr(xp, entry.ufunc)  # type: ignore[no-any-return]
        kernel = kernel or entry.by_device.get(None)
        if kernel is None:
            raise UnknownOpError(
                f"op {self.op_type_name!r} has no kernel for {device}, only for "
                f"{', '.join(map(str, entry.by_device))}; register one with "
                f"register_kernel({self.op_type_name!r}, device={device!r})"
            )
        found = functools.partial(kernel, xp)
        return found if xp is np else with_cudnn(self.op_type_name, found)

    def find_grad_function(self) -> Any:
        """Return the gradient function; None when the op has none."""
        if self.grad_function is None:
            with _lock:
                found = GRAD_FUNCS.find(self.op_type_name)
                if found is not None and self.grad_function is None:
                    self.grad_function = found.resolve(self)
        return self.grad_function

    def __repr__(self) -> str:
        return f"OpExpr({self.op_type_name!r})"


def op_expr(op_type_name: str) -> OpExpr:
    """Return the OpExpr of this name."""
    found = _OP_EXPRS.get(op_type_name)
    if found is None:
        found = _OP_EXPRS.setdefault(op_type_name, OpExpr(op_type_name))
    return found


def _forget(op_type_name: str) -> None:
    found = _OP_EXPRS.get(op_type_name)
    if found is not None:
        found.forget()


KERNELS.on_change.append(_forget)
GRAD_FUNCS.on_change.append(_forget)
