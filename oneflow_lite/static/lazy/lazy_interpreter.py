"""LazyInterpreter: appends ops to a Program instead of running them, and returns symbolic tensors.

It stands below an AutogradInterpreter, so functors, modules and gradient rules are the eager ones.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import CaptureError
from oneflow_lite.interpreter.explain import global_tensor_error
from oneflow_lite.interpreter.infer import has_dynamic_shape, infer_outputs
from oneflow_lite.interpreter.stack import Interpreter
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.ops.registry import Schema
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.static.ir.location import at_user_line, user_location
from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc
from oneflow_lite.static.lazy.persistables import (
    OptimizerOptions,
    Persistables,
    Stage,
    is_trained,
    stage,
)
from oneflow_lite.static.lazy.symbolic import SymbolicArray, no_value_error, plain, symbolic
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.storage import NO_GRAD, SPLIT
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.tensors.views import link

ndarray = np.ndarray
_returned: dict[Schema, tuple[int | None, ...]] = {}  # outputs that are inputs written in place


class LazyInterpreter(Interpreter):
    """Captures ops.

    Ops that build a network go to the startup Program, all others to the main one; see
    docs/static_programs.md.

    Parameters
    ----------
    main, startup : Program
    outermost : frame, optional
        The caller of `program_guard`; the frames above it tell where an op was called.

    Attributes
    ----------
    block : Block
        Where ops are appended.
    role : {"forward", "backward", "optimize"}
        The purpose of the ops.
    """

    def __init__(self, main: Program, startup: Program, outermost: FrameType | None = None) -> None:
        self.main = main
        self.startup = startup
        self.block: Block = main.global_block()
        self.role = "forward"
        self.persistables = Persistables(main, startup)
        self._outermost = outermost

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Append one op; return symbolic tensors."""
        block = self._block_of(op_expr, inputs)
        if getattr(attrs.get("dtype"), "char", "") == "E":
            raise CaptureError(
                f"{op_expr.op_type_name}(): bfloat16 is computed eagerly, never in a Program; use "
                "flow.float16 or flow.float32"
            )
        arrays = [None if x is None else plain(x._data) for x in inputs]
        if any(x is not None and x.is_global for x in inputs):
            raise global_tensor_error(op_expr.op_type_name)
        results = _results(op_expr, arrays, attrs)
        written = op_expr.schema.written
        for i in written:
            base = None if inputs[i] is None else self.persistables.viewed(inputs[i])
            if base is not None:
                self._note_written_view(block, base)
        for i, x in enumerate(inputs):  # this may rename the variable of an earlier input
            if x is not None and not _is_symbolic(x):
                self._name(block, x, i in written)
        names = tuple(
            [
                None if x is None else self._name(block, x, i in written)
                for i, x in enumerate(inputs)
            ]
        )
        role = self._role(op_expr)
        op = OpDesc(op_expr.op_type_name, names, (), dict(attrs), user_location(), role=role)
        op.returns_tuple = len(results) != 1
        outputs = []
        for k, array in enumerate(results):
            position = _position(op_expr, arrays, attrs, k) if written else None
            if position is None:
                outputs.append(self._output(block, op_expr, inputs, attrs, array, len(results)))
            else:
                outputs.append(inputs[position])
        op.outputs = tuple(
            [y._data.var.name if _is_symbolic(y) else self._name(block, y, True) for y in outputs]
        )
        block.append_op(op)
        self.persistables.note_order(op)
        for i in written:
            if inputs[i] is not None:
                self._note_write(block, inputs[i])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def read(self, op: str, tensor: Tensor) -> None:
        """Refuse to read a value, which is known only when the Program runs.

        Raises
        ------
        CaptureError
        """
        if op == "copy.deepcopy" and (_is_symbolic(tensor) or self._is_building()):
            return  # values stay inside: a symbolic array is copied by an op
        if _is_symbolic(tensor) or self.persistables.is_written(tensor):
            raise no_value_error(op, tensor.name)
        self.persistables.note_read(tensor)

    def constant(self, tensor: Tensor) -> None:
        """Note a tensor that was made from Python numbers."""
        if not self._is_building():
            self.persistables.note_made(tensor)

    def before_run(self, callback: Callable[[], None]) -> None:
        """Have a function called before each run of the main Program."""
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, Optimizer):
            self.main.before_run.append(OptimizerOptions(owner, self.persistables))
        else:
            self.main.before_run.append(lambda scope: callback())

    def data(self, desc: VarDesc) -> Tensor:
        """Add a variable that is fed, or made by an op the caller appends; return its tensor."""
        self.block.create_var(desc)
        array = ArraySpec(desc.shape, desc.dtype, desc.strides).allocate()
        return make_tensor(symbolic(desc, array, self.block.program))

    # The program and the role of an op

    def _role(self, op: OpExpr) -> str:
        """Return the role of an op; `backward()` and `step()` may be captured, too."""
        if self.role != "forward":
            return self.role
        if op.op_type_name.endswith("_update"):  # the state of an optimizer
            return "optimize"
        task = local.task
        return "backward" if task is not None and task.accumulate else "forward"

    def _is_building(self) -> bool:
        return stage(self._outermost) is Stage.BUILD

    def _block_of(self, op: OpExpr, inputs: tuple[Any, ...]) -> Block:
        """Return the startup block for an op that builds a network, else the current block."""
        if self.block.idx:
            return self.block
        target = self.startup.global_block()
        for x in inputs:
            if x is not None and _is_symbolic(x):
                desc = x._data.var
                if desc is None or target.vars.get(desc.name) is not desc:
                    return self.block
        where = stage(self._outermost)
        if where is Stage.BUILD:
            return target
        if where is Stage.RUN:
            return self.block
        fills = op.schema.random or op.op_type_name in ("copy_", "fill_")
        written = [inputs[i] for i in op.schema.written if inputs[i] is not None]
        first = fills and written and all(map(self._is_unused_parameter, written))
        return target if first else self.block

    def _is_unused_parameter(self, tensor: Tensor) -> bool:
        """Return whether a tensor is a parameter that no op of the main Program has taken yet."""
        if _is_symbolic(tensor):
            desc = tensor._data.var
            return desc.is_parameter and desc.name not in self.main.global_block().vars
        if not is_trained(tensor):
            return False
        known = self.persistables.find(tensor)
        return known is None or known.name not in self.main.global_block().vars

    # Variables

    def _name(self, block: Block, tensor: Tensor, written: bool) -> str:
        """Return the name of an input's variable."""
        data = tensor._data
        if not isinstance(data, SymbolicArray):
            return self.persistables.name(block, tensor, written)
        desc = data.var
        if desc is None:
            raise CaptureError(
                f"a tensor of shape {tensor.shape} was computed from a symbolic one outside of "
                "program_guard; move the computation inside"
            )
        if tensor._edge is not None and desc.need_check_feed:
            desc.stop_gradient = False
        if isinstance(tensor, Parameter) and not desc.persistable:
            if block.program is self.main and self._visible(block, data):
                self.persistables.promote(desc, tensor)
            desc.is_parameter = True
        if block.program is self.startup or self._visible(block, data):
            return desc.name
        if desc.persistable or self.startup.global_block().vars.get(desc.name) is desc:
            return self._take_over(desc, tensor)
        raise CaptureError(
            f"the variable {desc.name!r} belongs to another Program, or to a block that is not "
            "around this one; capture what is used together in one program"
        )

    def _visible(self, block: Block, data: SymbolicArray) -> bool:
        """Return whether a block can use the variable of an array."""
        assert data.var is not None
        around: Block | None = block
        while around is not None:
            desc = around.vars.get(data.var.name)
            if desc is not None:
                return desc is data.var or data.family is block.program.family
            around = around.parent
        return False

    def _take_over(self, desc: VarDesc, tensor: Tensor) -> str:
        """Add a variable of the startup Program to the main one."""
        if not desc.persistable:
            made = next(op for op in self.startup.global_block().ops if desc.name in op.outputs)
            if made.viewed is not None:
                raise CaptureError(
                    f"{desc.name!r}, a view of {made.viewed!r} that was taken while a module was "
                    "built, is used in a run; take the view in forward()"
                )
            desc.persistable = True
            self.startup.parameters[desc.name] = tensor
        return self.persistables.declare(self.main, desc, tensor)

    def _output(
        self,
        block: Block,
        op: OpExpr,
        inputs: tuple[Any, ...],
        attrs: dict[str, Any],
        array: Any,
        count: int,
    ) -> Tensor:
        """Return a new symbolic tensor in the memory of an array."""
        program = block.program
        prefix = "init_" if program is self.startup else ""
        desc = VarDesc(
            program.unique_name(prefix + op.op_type_name),
            array.shape,
            array.dtype,
            strides=ArraySpec.of(array).strides,
        )
        block.create_var(desc)
        if local.state.grad_enabled and array.dtype.kind in "fc":
            desc.stop_gradient = not any(x is not None and x._edge is not None for x in inputs)
        y = make_tensor(symbolic(desc, array, program))
        viewed = op.schema.view_of
        if viewed is not None:
            x = inputs[op.schema.inputs.index(viewed)]
            if not array.size or np.may_share_memory(array, plain(x._data)):
                origin = None if local.state.grad_enabled else NO_GRAD
                link(op, x, y, attrs, origin or (SPLIT if count > 1 else None))
                if not _is_symbolic(x):
                    self.persistables.note_viewed(x)
        return y

    def _note_write(self, block: Block, tensor: Tensor) -> None:
        (tensor._storage or tensor.memory).version += 1
        if _is_symbolic(tensor) or not isinstance(tensor._data, ndarray):
            return
        desc = self.persistables.find(tensor)
        if desc is None:  # made from data while capturing: known only in a run
            desc = block.var(self._name(block, tensor, written=True))
            tensor._data = symbolic(desc, tensor._data, block.program)
        elif block.program is self.startup:
            self.persistables.hide(tensor, desc)

    def _note_written_view(self, block: Block, base: Tensor) -> None:
        """Let a block write to a tensor with values of which it has taken views."""
        name = self.persistables.name_viewed(block, base)
        if self.persistables.find(base) is None and isinstance(base._data, ndarray):
            base._data = symbolic(block.var(name), base._data, block.program)


def _is_symbolic(tensor: Tensor) -> bool:
    return isinstance(tensor._data, SymbolicArray)


def _results(op: OpExpr, arrays: list[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """Return arrays with arbitrary content, of the shapes and layouts of the op's outputs."""
    if op.schema.view_of is not None and not has_dynamic_shape(op, arrays, attrs):
        result = op.kernel(np)(*arrays, **attrs)
        return result if type(result) is tuple else (result,)
    try:
        specs = infer_outputs(op, arrays, attrs)
    except CaptureError as error:
        raise CaptureError(f"{error}{at_user_line()}") from None
    return tuple([spec.allocate() for spec in specs])


def _position(op: OpExpr, arrays: list[Any], attrs: dict[str, Any], output: int) -> int | None:
    """Return the position of the written input that an output is; None for new memory.

    Found by running the kernel once for each op, on arrays of the same kind. One whose calls others
    see is not run: it returns what it writes.
    """
    if op.schema.effect:
        return op.schema.written[output] if output < len(op.schema.written) else None
    known = _returned.get(op.schema)
    if known is None:
        own = [None if x is None else ArraySpec.of(x).allocate() for x in arrays]
        # Random numbers come from a copy of the generator.
        own_attrs = copy.deepcopy(attrs) if op.schema.random else attrs
        with np.errstate(all="ignore"):
            made = op.kernel(np)(*own, **own_attrs)
        results = made if type(made) is tuple else (made,)
        known = _returned[op.schema] = tuple(
            [next((i for i in op.schema.written if own[i] is y), None) for y in results]
        )
    return known[output] if output < len(known) else None
