"""StraightLine: replays a plan as one generated Python function, one line for each op.

Kernels, buffers, constants and all views of memory with a fixed place are made once, as globals of
that function; a line is a bare call such as `k3(b1, b2, b4)`. The number of a line is the number of
its op, so an exception names its op without any bookkeeping at run time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import is_
from types import CodeType
from typing import Any

import numpy as np

from oneflow_lite.device import CPU, array_module, on_device
from oneflow_lite.function_writer import FunctionWriter
from oneflow_lite.locks import make_lock
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import KERNELS
from oneflow_lite.static.ir.layout import shaped
from oneflow_lite.static.ir.location import GENERATED
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.instruction import device_of_op
from oneflow_lite.static.runtime.plan import ExecutionPlan

_OUT_BY_NAME = (np.maximum, np.minimum)  # NumPy warns about a third positional argument of these
ALIGNMENT = 64  # of buffers: a cache line, which also suits vector instructions


class StraightLine:
    """A plan that runs as a function of arrays.

    Parameters
    ----------
    plan : ExecutionPlan
        After its passes have run.

    Attributes
    ----------
    source : str
        The generated code, once a run has made it.
    """

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.source = ""
        self.lines: list[OpDesc] = []  # the op of each line
        self.external_names = plan.external_names
        self._externals: tuple[Any, ...] | None = None
        self._function: Callable[..., tuple[Any, ...]] | None = None
        self._arena: Any = None
        self._buffers: dict[str, Any] = {}
        self._lock = make_lock()  # buffers serve one run at a time

    def run(self, feeds: Sequence[Any], externals: Sequence[Any]) -> list[Any]:
        """Run the plan.

        Parameters
        ----------
        feeds : sequence of array
            In the order of `plan.feeds`; one that an op writes is written.
        externals : sequence of array
            In the order of `external_names`.

        Returns
        -------
        list of array
            In the order of `plan.fetches`; results of ops are in memory of their own.
        """
        with self._lock:
            bound = self._externals
            if bound is None or not all(map(is_, bound, externals)):
                self._bind(externals)
            return list(self._call(feeds))

    def bind(self, externals: Sequence[Any]) -> None:
        """Take over arrays for the persistable variables, and generate the code around them."""
        with self._lock:
            self._bind(externals)

    def run_bound(self, feeds: Sequence[Any]) -> tuple[Any, ...]:
        """Run with the arrays that `bind` took over."""
        with self._lock:
            return self._call(feeds)

    def _bind(self, externals: Sequence[Any]) -> None:
        with on_device(self.plan.place):
            self._generate(tuple(externals))
        self._externals = tuple(externals)

    def _call(self, feeds: Sequence[Any]) -> tuple[Any, ...]:
        function = self._function
        assert function is not None
        try:
            if self.plan.place is CPU:
                return function(*feeds)
            with on_device(self.plan.place):
                return function(*feeds)
        except Exception as error:
            self._explain(error, function.__code__)
            raise

    def _explain(self, error: Exception, code: CodeType) -> None:
        """Add a note on the op that failed, and on the user's line that called it."""
        traceback = error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code is code:
                error.add_note(described(self.lines[traceback.tb_lineno - 2]))
            traceback = traceback.tb_next

    # Memory

    def _memory(self) -> dict[str, Any]:
        """Return the buffers of the memory plan, made at the first binding."""
        plan = self.plan.memory_plan
        if self._arena is None and plan.places:
            xp = array_module(self.plan.place)
            raw = xp.empty(plan.arena_bytes + ALIGNMENT, np.uint8)
            address = raw.ctypes.data if xp is np else raw.data.ptr
            self._arena = raw[-address % ALIGNMENT :]
            for name, (offset, nbytes) in plan.places.items():
                desc = self.plan.block.var(name)
                piece = self._arena[offset : offset + nbytes].view(desc.dtype)
                self._buffers[name] = shaped(piece, desc)
        return self._buffers

    # Code

    def _generate(self, externals: tuple[Any, ...]) -> None:
        plan, block = self.plan, self.plan.block
        fixed: dict[str, Any] = dict(zip(self.external_names, externals, strict=True))
        fixed.update({n: d.value for n, d in block.vars.items() if d.value is not None})
        buffers = self._memory()
        writer = _RunWriter(fixed)
        self.lines = []
        last_use = _last_uses(plan)
        for position, op in enumerate(plan.block.ops):
            line = self._line(op, writer, buffers)
            if line is None:
                continue
            dying = [
                writer.local(name)
                for name in last_use.get(position, ())
                if name not in fixed and name in writer.assigned
            ]
            if dying:
                line += f"; del {', '.join(dying)}"
                writer.assigned.difference_update(last_use[position])
            writer.lines.append(line)
            self.lines.append(op)
        results = "".join(f"{writer.name(n)}, " for n in plan.fetches)
        writer.lines.append(f"return ({results})")
        parameters = ", ".join(writer.local(n) for n in plan.feeds)
        self._function = writer.function(f"run({parameters})", GENERATED)
        self.source = writer.source

    def _line(self, op: OpDesc, writer: _RunWriter, buffers: dict[str, Any]) -> str | None:
        """Return the code of one op; None for a view that stays where it is."""
        fixed = writer.fixed
        xp = array_module(device_of_op(op, self.plan.block))
        kernel, is_ufunc = bound_kernel(op, xp)
        if op.viewed is not None and all(name is None or name in fixed for name in op.inputs):
            source = fixed[op.viewed]
            try:
                view = kernel(*[None if name is None else fixed[name] for name in op.inputs])
            except Exception as error:
                error.add_note(described(op))
                raise
            if not isinstance(view, tuple) and xp.may_share_memory(view, source):
                fixed[op.outputs[0]] = view
                return None
        function = writer.value(kernel)
        inputs = [writer.name(n) for n in op.inputs]

        def call(*out: str) -> str:
            return f"{function}({', '.join([*inputs, *out])})"

        new = op.new_outputs
        if not new:
            if op.type == "copy_" and self.plan.in_place.get(op.inputs[1] or "") == op.inputs[0]:
                return None  # it was computed in that place
            return call()
        out = None
        if len(new) == 1 and op.schema.out:
            taken = self.plan.in_place.get(new[0])
            if op.type == "clone" and taken == op.inputs[0]:  # of a variable that dies
                if taken in fixed:
                    fixed[new[0]] = fixed[taken]
                    return None
                writer.assigned.add(new[0])
                return f"{writer.local(new[0])} = {writer.name(taken)}"
            if taken is not None:
                out = writer.name(taken)
                if taken in fixed:
                    fixed[new[0]] = fixed[taken]
                    return call(out if is_ufunc else f"out={out}")
                writer.assigned.add(new[0])
                return f"{writer.local(new[0])} = {call(f'out={out}')}"
            if new[0] in buffers:
                fixed[new[0]] = buffers[new[0]]
                out = writer.name(new[0])
                return call(out if is_ufunc else f"out={out}")
        writer.assigned.update(new)

        def is_0d(name: str) -> bool:  # NumPy returns a scalar
            desc = self.plan.block.var(name)
            return xp is np and not desc.shape and desc.device.type == "cpu"

        targets = [writer.local(n) if n in new else "_" for n in op.outputs]
        if len(op.outputs) > 1 or op.returns_tuple:
            line = f"{', '.join(targets)}, = {call()}"
            scalars = [t for t, n in zip(targets, op.outputs, strict=True) if t != "_" and is_0d(n)]
            return "; ".join([line, *[f"{t} = asarray({t})" for t in scalars]])
        if is_0d(new[0]):
            return f"{targets[0]} = asarray({call()})"
        return f"{targets[0]} = {call()}"


class _RunWriter(FunctionWriter):
    """Writes the function; knows which variables it holds, and under which names."""

    def __init__(self, fixed: dict[str, Any]) -> None:
        super().__init__({"asarray": np.asarray})
        self.fixed = fixed  # variables whose array is known before the run
        self.assigned: set[str] = set()
        self._locals: dict[str, str] = {}

    def local(self, name: str) -> str:
        """Return the local that holds a variable."""
        return self._locals.setdefault(name, f"v{len(self._locals)}")

    def name(self, name: str | None) -> str:
        """Return the expression for a variable."""
        if name is None:
            return "None"
        if name not in self.fixed:
            return self.local(name)
        return self.value(self.fixed[name])


def bound_kernel(op: OpDesc, xp: Any) -> tuple[Callable[..., Any], bool]:
    """Return an op's kernel with its attributes bound, and whether it takes `out` by position."""
    kernel = op_expr(op.type).kernel(xp)
    attrs = op.attrs
    if not op.inputs and "device" in attrs:  # of an op that creates
        attrs = {name: value for name, value in attrs.items() if name != "device"}
    if attrs:
        return functools.partial(kernel, **attrs), False
    is_ufunc = KERNELS.get(op.type).ufunc is not None and isinstance(kernel, np.ufunc)
    return kernel, is_ufunc and kernel not in _OUT_BY_NAME


def _last_uses(plan: ExecutionPlan) -> dict[int, list[str]]:
    """Return by position the temporaries that no later op names and that are not fetched."""
    last: dict[str, int] = {}
    for position, op in enumerate(plan.block.ops):
        for name in (*op.reads, *op.outputs):
            if plan.block.var(name).is_temporary:
                last[name] = position
    found: dict[int, list[str]] = {}
    fetched = set(plan.fetches)
    for name, position in last.items():
        if name not in fetched:
            found.setdefault(position, []).append(name)
    return found


def described(op: OpDesc) -> str:
    """Return the note for an exception in an op."""
    where = "" if op.location is None else f", captured at {op.location}"
    return f"in op {op.type!r}{where}"
