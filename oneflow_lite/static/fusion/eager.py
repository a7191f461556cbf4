"""Eager loops written from the declarations of ops: groups of one op, and updates of optimizers.

The text of such a loop names sizes and numbers, which are given at each run. So a single loop
serves all shapes with the same broadcasting, and is kept as the loops of Programs are.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import is_
from types import ModuleType
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.threads import parts_of
from oneflow_lite.errors import FlowError
from oneflow_lite.interpreter.infer import infer_outputs
from oneflow_lite.interpreter.stack import count_writes
from oneflow_lite.ops.eager_loops import Loop
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import KERNELS, Lines
from oneflow_lite.static.fusion.building import undisturbed, wait_first
from oneflow_lite.static.fusion.group import (
    DTYPES,
    Group,
    NamedNumber,
    NamedSize,
    View,
    call_of,
    describe_group,
)
from oneflow_lite.static.fusion.joined import Joined, JoinedPart, update_time, write_joined
from oneflow_lite.static.fusion.loops import source_of
from oneflow_lite.static.fusion.updates import Update, update_of
from oneflow_lite.static.fusion.writer import NAME
from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc

_MOST = 256  # kinds of arguments that an op remembers
_loop = cache(Loop)  # by source


def load_machine() -> ModuleType:
    """Import `machine`, and LLVM with it; the end of the process waits first."""
    with undisturbed():
        machine = importlib.import_module("oneflow_lite.static.fusion.machine")
        wait_first()
    return machine


def function_of(op_type_name: str) -> Callable[..., Any]:
    """Return the function that does an op by a loop: it maps the kernel's arguments to its result.

    It returns None where NumPy is to do it, and until the loop has taken over.
    """
    op = op_expr(op_type_name)
    is_update = op.schema.inputs[:2] == ("param", "grad")
    make: Callable[..., _Lines | _Update | None] = _update if is_update else _lines
    # A text that decides by numbers differs from number to number.
    entry = KERNELS.get(op_type_name)
    text = entry.scalar.text if isinstance(entry.scalar, Lines) else entry.scalar
    decides = is_update or callable(text)
    plans: dict[Any, _Lines | _Update | None] = {}

    def run(*arrays: Any, out: Any = None, **attrs: Any) -> Any:
        key: list[Any] = [None if x is None else (x.shape, x.dtype.char) for x in arrays]
        key += (
            attrs.values()
            if decides
            else [x if type(x) is not float else 0 for x in attrs.values()]
        )
        try:
            plan = plans[tuple(key)]
        except KeyError:
            if len(plans) >= _MOST:
                plans.clear()
            plan = plans[tuple(key)] = make(op, arrays, attrs)
        return None if plan is None else plan(arrays, attrs, out)

    return run


def _described(
    op: OpExpr, arrays: Sequence[Any], attrs: dict[str, Any], outputs: Sequence[Any] | None = None
) -> tuple[OpDesc, Block]:
    """Return a call as Programs have it; without outputs the op writes its first input."""
    block = Program().global_block()
    inputs = tuple([None if x is None else f"x{i}" for i, x in enumerate(arrays)])
    names = (inputs[0] or "",) if outputs is None else [f"y{i}" for i in range(len(outputs))]
    for name, x in [*zip(inputs, arrays, strict=True), *zip(names, outputs or (), strict=False)]:
        if name is not None:
            block.vars[name] = VarDesc(name, x.shape, x.dtype)
    return OpDesc(op.op_type_name, inputs, tuple(names), attrs), block


# Groups of one op


class _Lines:
    """A group of one op for arrays of some shapes."""

    def __init__(
        self, group: Group, named: Group, block: Block, numbers: list[str], is_tuple: bool
    ) -> None:
        source, self.buffers = source_of(named, block)
        self.group, self.numbers, self.is_tuple = group, numbers, is_tuple
        self.loop = _loop(source)
        self.inputs = [int(name[1:]) for name in group.inputs]
        self.made = [(block.var(n).shape, block.var(n).dtype) for n in group.outputs]
        self.sizes = [*map(int, group.shape), group.line_count]
        self.run: Callable[..., None] | None = None

    def __call__(self, arrays: Sequence[Any], attrs: dict[str, Any], out: Any) -> Any:
        if out is None:
            results = [np.empty(shape, dtype) for shape, dtype in self.made]
        elif out.flags.carray and self.made == [(out.shape, out.dtype)]:
            results = [out]
        else:
            return None
        given: list[Any] = [arrays[i].reshape(-1) for i in self.inputs]
        given += [y.reshape(-1) for y in results]
        given += self.sizes
        given += [float(attrs[name]) for name in self.numbers]
        if self.run is None:
            buffers = [np.empty((0, 0), b.dtype) for b in self.buffers]
            machine, kernel = self.loop.built((*given, *buffers)) or (None, None)
            if machine is None:
                return None
            self.run = machine.ready(kernel, self.group, self.buffers)
        self.run(*given)
        return tuple(results) if self.is_tuple else results[0]


def _lines(op: OpExpr, arrays: Sequence[Any], given: dict[str, Any]) -> _Lines | None:
    try:
        outputs = infer_outputs(op, arrays, given)
    except FlowError:  # which the kernel will raise
        return None
    dtypes = {x.dtype for x in arrays if x is not None}
    floats = {d for d in dtypes if d.kind == "f"} | {y.dtype for y in outputs}
    if not dtypes <= DTYPES or len(floats) > 1 or outputs[0].dtype.char not in "fd":
        return None
    desc, block = _described(op, arrays, given, outputs)
    views = {
        parameter: View.in_c_order(name, block.var(name).shape)
        for parameter, name in zip(op.schema.inputs, desc.inputs, strict=True)
        if name is not None
    }
    call = call_of(desc, views, block)
    if call is None:
        return None
    used = set(NAME.findall(call.scalar.text))
    numbers = [n for n, x in given.items() if n in used and type(x) in (int, float)]
    desc.attrs.update({n: NamedNumber(given[n], f"p_{n}") for n in numbers})
    line = call.line if call.scalar.reduces else None
    size = call.frame.size
    group = describe_group([call], size, line, [*desc.outputs], block, {})
    call.names_count = True
    named = _named(describe_group([call], size, line, [*desc.outputs], block, {}), numbers)
    return _Lines(group, named, block, numbers, len(outputs) > 1)


def _named(group: Group, numbers: list[str]) -> Group:
    """Have a group call its sizes by names."""
    shape = tuple([NamedSize(n, f"n{d}") for d, n in enumerate(group.shape)])

    def named(strides: tuple[int, ...]) -> tuple[int, ...]:
        named_strides: list[int] = []
        step: int = 1
        for n, stride in zip(reversed(shape), reversed(strides), strict=True):
            named_strides.append(step if stride else 0)
            step = n * step if stride else step
        assert named_strides[::-1] == list(strides)  # dense, as all that lies in C order
        return tuple(reversed(named_strides))

    group.names = [*map(str, shape), "count", *[f"p_{n}" for n in numbers]]
    group.shape = shape
    for name, operand in group.operands.items():
        group.operands[name] = attrs.evolve(operand, strides=named(operand.strides))
    for step in group.steps:
        if step.strides:
            step.strides = named(step.strides)
        if step.output is not None:
            step.output_strides = named(step.output_strides)
    return group


# Updates


class _Update:
    """An update of one parameter, of any size."""

    def __init__(self, update: Update, made: Joined) -> None:
        self.loop, self.table, self.kept = _loop(made.source), len(made.table), made.kept
        self.order = [int(name[1:]) for name in made.given]
        self.arrays = len(update.arrays)
        self.run: Callable[..., None] | None = None

    def __call__(self, arrays: Sequence[Any], attrs: dict[str, Any], out: Any) -> Any:
        size = arrays[0].size
        given: list[Any] = [np.zeros(self.table, np.int64), np.zeros(self.kept)]
        given[0][1] = size  # behind the number of the call
        given += [x.reshape(-1) if x.ndim > 1 else x for x in [arrays[i] for i in self.order]]
        if self.run is None:
            machine, kernel = self.loop.built(given) or (None, None)
            if machine is None:
                return None
            self.run = partial(
                machine.run_divided, kernel, size, parts_of(update_time(size, self.arrays), size)
            )
        self.run(*given)
        return arrays[0]


def _update(op: OpExpr, arrays: Sequence[Any], given: dict[str, Any]) -> _Update | None:
    desc, block = _described(op, arrays, given)
    update = update_of(desc, block)
    if update is None:
        return None
    made = write_joined([JoinedPart((desc,), update)], [desc], block, lambda name: name, True)
    return _Update(update, made)


Updates = Sequence[tuple[Sequence[Any], dict[str, Any]]]


class JointUpdate:
    """All updates of a step, as Programs join them.

    Its table has the addresses of all but the gradients, as long as those arrays are the same.
    """

    def __init__(self, op_type_name: str) -> None:
        self.op = op_expr(op_type_name)
        self.kept: list[Any] = []  # the arrays of the table
        self.attrs: list[dict[str, Any]] = []
        self.made: Joined | None = None
        self.run: Callable[..., None] | None = None
        self.moved = 0, 0  # bytes that a step reads and writes

    def __call__(self, updates: Updates, work: int) -> bool:
        """Take a step; return False where that is for NumPy."""
        kept, grads = [], []
        for inputs, _ in updates:
            arrays: list[Any] = [None if x is None else x._data for x in inputs]
            param, grad = arrays[0], arrays.pop(1)
            if (
                type(grad) is not np.ndarray
                or not grad.flags.carray
                or grad.shape != param.shape
                or grad.dtype is not param.dtype
            ):
                return False
            grads.append(grad)
            kept += arrays
        attrs = [given for _, given in updates]
        if len(kept) != len(self.kept) or not all(map(is_, kept, self.kept)) or attrs != self.attrs:
            self.kept, self.attrs, self.run = kept, [dict(given) for given in attrs], None
            self.moved = self._moved(updates)
            self.made = self._joined(grads)
        if self.run is None:
            if self.made is None or not self._built(self.made, grads, work):
                return False
            self.run = self.made.bound(self.arrays)
            if self.run is None:  # they overlap
                self.made = None
                return False
        try:
            self.run(*grads)
            self._count(updates)
        except BaseException:  # an interrupt
            self._count(updates)
            raise
        return True

    def _count(self, updates: Updates) -> None:
        for inputs, _ in updates:
            count_writes(self.op, inputs)

    def _moved(self, updates: Updates) -> tuple[int, int]:
        sizes = [  # but those of single numbers
            [0 if x is None or not x._data.ndim else x._data.nbytes for x in inputs]
            for inputs, _ in updates
        ]
        written = [each[i] for each in sizes for i in self.op.schema.written]
        return sum(map(sum, sizes)), sum(written)

    def _joined(self, grads: list[Any]) -> Joined | None:
        """Describe the function of all updates; None where there is none."""
        block, each = Program().global_block(), len(self.kept) // len(grads)
        ops: list[OpDesc] = []
        parts: list[JoinedPart] = []
        self.arrays: dict[str, Any] = {}  # by name, but for gradients
        self.nanoseconds = 0.0
        for i, grad in enumerate(grads):
            arrays = self.kept[i * each : (i + 1) * each]
            if any([x is not None and type(x) is not np.ndarray for x in arrays]):
                return None
            arrays.insert(1, grad)
            op, own = _described(self.op, arrays, self.attrs[i])
            names = {name: f"{name}_{i}" for name in own.vars}
            block.vars.update({names[name]: desc for name, desc in own.vars.items()})
            op.inputs = tuple([None if name is None else names[name] for name in op.inputs])
            op.outputs = tuple([names[name] for name in op.outputs])
            update = update_of(op, block)
            if update is None or (parts and update is not parts[0].made_of):
                return None
            ops.append(op)
            parts.append(JoinedPart((op,), update))
            self.nanoseconds += update_time(grad.size, len(update.arrays))
            self.arrays.update({n: x for n, x in zip(op.inputs, arrays, strict=True) if n})
        given = {op.inputs[1] for op in ops}
        self.arrays = {name: x for name, x in self.arrays.items() if name not in given}
        return write_joined(parts, ops, block, lambda name: name if name in given else None, True)

    def _built(self, made: Joined, grads: list[Any], work: int) -> bool:
        # The table, the numbers between the two stages, and what is given at each step.
        like = [np.zeros(1, np.int64), np.zeros(1), *grads]
        machine, kernel = _loop(made.source).built(like, work) or (None, None)
        if machine is not None:
            parts = parts_of(self.nanoseconds, made.elements)
            made.kernel = partial(machine.run_divided, kernel, made.elements, parts)
        return machine is not None
