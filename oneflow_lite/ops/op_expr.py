"""OpExpr: one op by name, with its schema, kernels and gradient function looked up once.

A functor holds an OpExpr at module level and hands it to `dispatch` with every call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.arrays.meta_arrays import meta_module
from oneflow_lite.errors import UnknownOpError
from oneflow_lite.ops import upward
from oneflow_lite.ops.cudnn import with_cudnn
from oneflow_lite.ops.eager_loops import with_loops
from oneflow_lite.ops.kernel_watch import watched
from oneflow_lite.ops.registry import GRAD_FUNCS, KERNELS, Schema

_OP_EXPRS: dict[str, OpExpr] = {}
_lock = make_lock()


class OpExpr:
    """An op. Get it from `op_expr(name)`, which returns the same object for a name each time.

    Attributes
    ----------
    op_type_name : str
    run_in_eager : callable or None
        The function that eager mode calls with NumPy arrays: `run_in_eager(*arrays, **attrs)`;
        None until `on_cpu` was called.
    run_on_cpu : callable or None
        The same for the short way through dispatch, which ops that write their inputs or draw
        random numbers do not take.
    draws : bool
        Whether it draws random numbers, known once a kernel was found.
    aliases : bool
        Whether the output may be a view of the input.
    grad_function : OpExprGradFunction or None
        None until the first gradient.
    """

    __slots__ = (
        "_kernels",
        "_on_cpu",
        "_schema",
        "aliases",
        "draws",
        "grad_function",
        "op_type_name",
        "run_in_eager",
        "run_on_cpu",
    )  # fmt: skip

    def __init__(self, op_type_name: str) -> None:
        self.op_type_name = op_type_name
        self.forget()

    def forget(self) -> None:
        """Look everything up again at the next use."""
        self.run_in_eager: Callable[..., Any] | None = None
        self.run_on_cpu: Callable[..., Any] | None = None
        self.draws = False
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
        """Return the kernel for numpy or cupy, with that module bound; on "meta" the infer rule."""
        kernel = self._kernels.get(xp)
        if kernel is None:
            kernel = self._kernels[xp] = self._find_kernel(xp)
        return kernel

    def on_cpu(self) -> Callable[..., Any]:
        """Return the kernel that eager mode calls with NumPy arrays, with loops for large ones."""
        kernel = self._on_cpu
        if kernel is None:
            kernel = with_loops(self.op_type_name, self.kernel(np))
            self.run_in_eager = self._on_cpu = kernel
            self.draws = self.schema.random
            # Random numbers go the long way: a transform may have to draw them.
            if not self.schema.mutates and not self.draws:
                self.aliases = self.schema.view_of is not None
                self.run_on_cpu = kernel  # last: another thread may take the short way from now on
        return kernel

    def _find_kernel(self, xp: Any) -> Callable[..., Any]:
        if xp is meta_module:
            return functools.partial(upward.module("results on meta").describe, self)
        device = "cpu" if xp is np else "cuda"
        self.schema  # noqa: B018  (an unknown name is answered with near misses)
        entry = KERNELS.get(self.op_type_name)
        kernel = entry.by_device.get(device)
        if kernel is None and entry.ufunc is not None:  # without a Python frame in between
            return getattr(xp, entry.ufunc)  # type: ignore[no-any-return]
        kernel = kernel or entry.by_device.get(None)
        if kernel is None:
            raise UnknownOpError(
                f"op {self.op_type_name!r} has no kernel for {device}, only for "
                f"{', '.join(map(str, entry.by_device))}; register one with "
                f"register_kernel({self.op_type_name!r}, device={device!r})"
            )
        if not entry.is_library:
            return watched(self.op_type_name, kernel, entry.schema, xp)
        bound = functools.partial(kernel, xp)
        return bound if xp is np else with_cudnn(self.op_type_name, bound)

    def find_grad_function(self) -> Any:
        """Return the gradient function; None when the op has none."""
        if self.grad_function is None:
            with _lock:
                rules = GRAD_FUNCS.find(self.op_type_name)
                if rules is not None and self.grad_function is None:  # no other thread was first
                    self.grad_function = rules.resolve(self)
        return self.grad_function

    def __repr__(self) -> str:
        return f"OpExpr({self.op_type_name!r})"


def op_expr(op_type_name: str) -> OpExpr:
    """Return the OpExpr of this name."""
    expr = _OP_EXPRS.get(op_type_name)
    if expr is None:
        expr = _OP_EXPRS.setdefault(op_type_name, OpExpr(op_type_name))  # one for all threads
    return expr


def _forget(op_type_name: str) -> None:
    expr = _OP_EXPRS.get(op_type_name)
    if expr is not None:
        expr.forget()


KERNELS.on_change.append(_forget)
GRAD_FUNCS.on_change.append(_forget)
