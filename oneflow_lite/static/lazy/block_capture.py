"""Captures functions of the user in sub-blocks: the branches and bodies of control flow.

A sub-block uses no variable of the blocks around it. A tensor that a branch uses from outside, be
it one with values or a variable of an outer block, becomes an input of the control-flow op, and
inside the block a variable stands in for it.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.autograd.rules.gradient_rules import OpExprGradFunction
from oneflow_lite.errors import CaptureError
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.interpreter.stack import AutogradInterpreter, Interpreter
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.static.ir.location import at_user_line
from oneflow_lite.static.ir.memory import memory_roots
from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc
from oneflow_lite.static.lazy.lazy_interpreter import LazyInterpreter
from oneflow_lite.static.lazy.symbolic import (
    SymbolicArray,
    constant_key,
    is_number,
    no_value_error,
    plain,
    symbolic,
)
from oneflow_lite.tensors.mode import StateChange, local
from oneflow_lite.tensors.node import make_node, next_sequence_nr
from oneflow_lite.tensors.tensor import Tensor, make_tensor

_CLONE = op_expr("clone")
Constants = dict[Any, tuple[Any, VarDesc]]


class BlockNotes:
    """The notes that are kept with a sub-block.

    Attributes
    ----------
    block : weak reference
        The block itself: a copy of it, which begins with the notes of the original, tells by this
        that it needs its own.
    trace : Trace or None
        How it was captured, for its gradient; None for a block that was loaded.
    runners : dict
        The runners of the block, by feeds, fetches and device.
    checked : tuple of int and object
        How many changes of Programs there had been when the block was last looked at, and what it
        contained then.
    """

    def __init__(self, block: Block, trace: Any = None) -> None:
        self.block = weakref.ref(block)
        self.trace = trace
        self.runners: dict[Any, Any] = {}
        self.checked: tuple[int, Any] = (-1, None)


def notes_of(block: Block) -> BlockNotes:
    """Return the notes of a block, its own ones."""
    notes: BlockNotes | None = block.notes
    if notes is None or notes.block() is not block:
        notes = block.notes = BlockNotes(block, notes and notes.trace)
    return notes


class _FromOutside(OpExprGradFunction):
    """Stands for the graph around a sub-block, which no backward pass inside may reach."""

    node_name = "outside_of_the_block"
    whole = many = True

    def apply(self, F: Any, state: Any, out_grads: tuple[Any, ...]) -> Any:
        raise CaptureError(
            "backward(): inside a branch or body it would add to the .grad of tensors from "
            "outside, which a sub-block cannot do; return the loss and call backward() on the "
            "result, or take autograd.grad with respect to tensors made inside" + at_user_line()
        )


_FROM_OUTSIDE = _FromOutside()


@attrs.define(eq=False)
class Trace:
    """The symbolic tensors of a block that was captured, with their graph.

    Attributes
    ----------
    inputs : list of Tensor or None
        The stand-in for each input of the block; None where no gradient is taken.
    outputs : list of Tensor
    constants : dict
        The tensors with values that the block holds.
    ops, vars
        Those of the block.
    gradients : dict
        The blocks that compute its gradients, by the arguments of `backward_of`.
    """

    inputs: list[Any]
    outputs: list[Tensor]
    constants: Constants
    ops: list[OpDesc]
    vars: dict[str, VarDesc]
    gradients: dict[Any, Any] = attrs.field(factory=dict)
    scratch: Program = attrs.field(factory=Program)

    def copy_to(self, block: Block, left_out: Sequence[str]) -> None:
        """Copy ops and variables to another block, except the ops that make some variables."""
        block.vars = dict(self.vars)
        taken = set(left_out)
        block.ops = [op.copy() for op in self.ops if taken.isdisjoint(op.new_outputs)]


class Captured:
    """The tensors from outside that the blocks of one control-flow op use.

    Attributes
    ----------
    op : str
        The function that the user called, for messages.
    outer : list of Tensor
        The tensors, in the order in which they were met.
    stand_ins : list of Tensor
        The symbolic tensor for each.
    """

    def __init__(self, op: str, program: Program) -> None:
        self.op = op
        self.program = program
        self.outer: list[Tensor] = []
        self.stand_ins: list[Tensor] = []
        self._known: dict[Any, Tensor] = {}

    def stand_in(self, x: Tensor) -> Tensor:
        """Return the stand-in for a tensor from outside."""
        x.refresh_view()
        edge = x._edge
        key = (id(x._data), edge and (id(edge[0]), edge[1]))
        stand_in = self._known.get(key)
        if stand_in is None:
            stand_in = self._known[key] = self.new(x, edge is not None)
            self.outer.append(x)
            self.stand_ins.append(stand_in)
        return stand_in

    def new(self, x: Tensor, requires_grad: bool, prefix: str = "") -> Tensor:
        """Return a symbolic tensor like another one; a block runs on the device of its inputs."""
        spec = ArraySpec.of(plain(x._data))
        name = self.program.unique_name(prefix or f"{x.name or 'outer'}_in")
        desc = VarDesc(name, spec.shape, spec.dtype, strides=spec.strides)
        made = make_tensor(symbolic(desc, spec.allocate(), self.program))
        if requires_grad and spec.dtype.kind in "fc":
            node = make_node(_FROM_OUTSIDE, (), 0, (), {}, spec.shape, spec.dtype)
            made._edge = (node, 0)
        return made


class BlockCapture(Interpreter):
    """Appends the ops of a function to a block.

    At the top of the stack, it replaces tensors from outside by stand-ins; the AutogradInterpreter
    below it records the graph inside the block.

    Parameters
    ----------
    block : Block
    captured : Captured
    constants : dict, optional
        Those of the block that this one is derived from.
    role : str
        The role of the ops.
    """

    def __init__(
        self,
        block: Block,
        captured: Captured,
        constants: Constants | None = None,
        role: str = "forward",
    ) -> None:
        self.block = block
        self.captured = captured
        self.constants: Constants = dict(constants or {})
        self.made: dict[int, Any] = {}
        self.protected: list[Any] = []  # storages that must not be written
        self.lazy = _BlockInterpreter(self)
        self.lazy.role = role
        self.inner: Interpreter = AutogradInterpreter(self.lazy)
        self._outer: Any = local.state.interpreter
        self._first_nr = next_sequence_nr()

    @contextlib.contextmanager
    def capturing(self) -> Iterator[None]:
        """Append ops to the block while a `with` block runs."""
        with StateChange(interpreter=self):
            yield

    def declare(self, tensor: Tensor) -> None:
        """Add the variable of a stand-in to the block."""
        desc = tensor._data.var
        if desc.name not in self.block.vars:
            self.block.vars[desc.name] = desc
            self.protected.append(tensor.memory)

    # The interpreter

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Append one op."""
        taken = tuple([None if x is None else self.taken(x) for x in inputs])
        schema = op_expr.schema
        for i in schema.written:
            x = taken[i]
            if x is not None:
                self._check_write(op_expr.op_type_name, x, schema.random)
        result = self.inner.apply(op_expr, taken, attrs)
        if schema.random or self._views_constant(op_expr, taken):
            outputs = result if type(result) is tuple else (result,)
            self.protected += [y.memory for y in outputs]
        return result

    def _views_constant(self, op: OpExpr, inputs: tuple[Any, ...]) -> bool:
        """Return whether an op takes a view of a tensor with values, which the block only reads."""
        viewed = op.schema.view_of
        if viewed is None:
            return False
        return not isinstance(inputs[op.schema.inputs.index(viewed)]._data, SymbolicArray)

    def taken(self, x: Tensor) -> Tensor:
        """Return a tensor that the block can use in place of this one."""
        data = x._data
        if self.is_local(data) or self.is_constant(data):
            return x
        made = self.captured.stand_in(x)
        self.declare(made)
        return made

    def is_local(self, data: Any) -> bool:
        """Return whether an array is a variable of the block."""
        return (
            isinstance(data, SymbolicArray)
            and data.var is not None
            and self.block.vars.get(data.var.name) is data.var
        )

    def is_constant(self, data: Any) -> bool:
        """Return whether an array was made from Python numbers inside."""
        return id(data) in self.made or constant_key(data) in self.constants or is_number(data)

    def read(self, op: str, tensor: Tensor) -> None:
        """Refuse to read a value, which is known only when the Program runs."""
        data = tensor._data
        if isinstance(data, SymbolicArray):
            raise no_value_error(op, tensor.name)
        if not self.is_constant(data) and self._outer is not None:
            self._outer.read(op, tensor)

    def constant(self, tensor: Tensor) -> None:
        """Note a tensor that was made from Python numbers."""
        self.made[id(tensor._data)] = tensor._data

    def backward(self, nodes: Sequence[Any]) -> None:
        """Do nothing: the backward pass is captured like any other op."""

    def _check_write(self, op: str, x: Tensor, random: bool) -> None:
        if not isinstance(x._data, SymbolicArray):
            what = "a constant"
        elif any(x.memory is storage for storage in self.protected):
            what = f"{x.name!r}, which comes from outside of the block or from a nested one,"
        elif random:
            raise CaptureError(
                f"{op}(): random numbers cannot be drawn in place inside "
                f"{self.captured.op}(); draw new ones, as with flow.rand or flow.randn"
                + at_user_line()
            )
        else:
            return
        raise CaptureError(
            f"{op}(): it writes {what} in place inside {self.captured.op}(), where nobody would "
            "see it when the block does not run; compute a new tensor and return it, update "
            "parameters, buffers and statistics outside, and build modules before" + at_user_line()
        )

    # The results

    def own(self, x: Tensor, seen: list[Any]) -> Tensor:
        """Return a result as a new variable with memory of its own."""
        with self.capturing():
            x = self.taken(x)
            shared = (
                not self._makes(x._data)
                or x._view is not None
                or any(x.memory is storage for storage in (*seen, *self.protected))
            )
            made: Tensor = dispatch(_CLONE, (x,)) if shared else x
        seen.append(made.memory)
        return made

    def _makes(self, data: Any) -> bool:
        """Return whether an op of the block makes this variable."""
        return self.is_local(data) and any(data.var.name in op.new_outputs for op in self.block.ops)

    def kept(self, visible: Sequence[str]) -> tuple[str, ...]:
        """Return the variables that a backward block gets besides inputs and results.

        These are random numbers, which would differ when drawn again, and the results of loops,
        which are not run twice.
        """
        names = [n for op in self.block.ops if op.schema.random for n in op.outputs]
        return tuple(name for name in names if name not in visible)

    def finish(self, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        """Note on the block how it was captured."""
        for x in inputs:
            if x is not None:
                self.declare(x)
        block = self.block
        trace = Trace(
            list(inputs), list(outputs), self.constants, list(block.ops), dict(block.vars)
        )
        notes_of(block).trace = trace

    def check_graph(self, outputs: Sequence[Tensor]) -> None:
        """Raise when a gradient would leave the block other than through its stand-ins."""
        stack = [x._edge[0] for x in outputs if x._edge is not None]
        seen = set(stack)
        while stack:
            node = stack.pop()
            if node.grad_function is _FROM_OUTSIDE:
                continue
            if node.sequence_nr < self._first_nr:
                raise CaptureError(
                    f"{self.captured.op}(): an autograd.Function inside was given a tensor from "
                    "outside of the block, to which no gradient would flow; give it one made "
                    "inside, as with x.clone()" + at_user_line()
                )
            new = {after for after, _ in node.edges if after is not None} - seen
            seen |= new
            stack += new

    def prune(self, fetches: Sequence[str]) -> None:
        """Remove ops on which no result depends."""
        ops = self.block.ops
        roots = memory_roots(ops)
        needed = {roots.get(name, name) for name in fetches}
        kept = []
        for op in reversed(ops):
            if any(roots[name] in needed for name in (*op.outputs, *op.written)):
                needed.update(roots[name] for name in op.reads)
                kept.append(op)
        self.block.ops = kept[::-1]


class _BlockInterpreter(LazyInterpreter):
    """Appends to a sub-block, which has constants of its own and no persistable variables."""

    def __init__(self, capture: BlockCapture) -> None:
        super().__init__(capture.block.program, Program())
        self.block = capture.block
        self._capture = capture

    def data(self, desc: VarDesc) -> Tensor:
        """Refuse, since a variable of a sub-block cannot be fed."""
        raise CaptureError(
            f"data(): a variable that is fed cannot be declared inside {self._capture.captured.op}"
            f"(); declare {desc.name!r} before it" + at_user_line()
        )

    def _name(self, block: Block, tensor: Tensor, written: bool) -> str:
        data = tensor._data
        if isinstance(data, SymbolicArray):
            if isinstance(tensor, Parameter):
                raise CaptureError(
                    f"a module is built inside {self._capture.captured.op}(): its parameters "
                    "would be new at every run; build it before" + at_user_line()
                )
            assert data.var is not None
            return data.var.name
        constants = self._capture.constants
        key = constant_key(data)
        known = constants.get(key)
        if known is None:
            value = data.copy()
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            desc = VarDesc(block.program.unique_name("constant"), data.shape, data.dtype)
            desc.strides, desc.value = ArraySpec.of(value).strides, value
            known = constants[key] = (data, desc)
        desc = known[1]
        if desc.name not in block.vars:
            block.vars[desc.name] = desc
        return desc.name


def enclosing_block() -> Block | None:
    """Return the block to which this thread's ops are appended; None while they run."""
    interpreter: Any = local.state.interpreter
    while interpreter is not None:
        block = getattr(interpreter, "block", None)
        if isinstance(block, Block) and getattr(interpreter, "stopped", None) is None:
            return block
        interpreter = interpreter.inner
    return None


@contextlib.contextmanager
def undone_on_error(program: Program) -> Iterator[None]:
    """Remove the sub-blocks that a `with` block added, if it raises."""
    before = len(program.blocks)
    try:
        yield
    except BaseException:
        del program.blocks[before:]
        raise


def names_of(tensors: Sequence[Tensor]) -> tuple[str, ...]:
    """Return the names of symbolic tensors."""
    return tuple([x._data.var.name for x in tensors])
