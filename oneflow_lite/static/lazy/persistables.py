"""The variables that tensors with values become when a captured op takes them.

Here is also told whether a captured op builds a network (startup Program) or is part of every run.
OptimizerOptions brings learning rates and the like up to date in a scope before each run.
"""

from __future__ import annotations

import enum
import sys
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec, memory_holder
from oneflow_lite.errors import ArgumentError, CaptureError
from oneflow_lite.nn import init
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.static.ir.location import at_user_line, user_location
from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc, make_anew
from oneflow_lite.static.ir.scope import Scope
from oneflow_lite.static.lazy.symbolic import SymbolicArray, constant_key, symbolic
from oneflow_lite.tensors.node import AccumulateGrad
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.tensors.views import same_memory

_CALL = Module.__call__.__code__
_INIT_FILE = init.__file__
_BUILDERS = ("__init__", "reset_parameters", "reset_running_stats")


class Stage(enum.Enum):
    """The part of the user's program in which an op was called."""

    BUILD = "while a module is built or its parameters are initialised"
    RUN = "inside the forward of a module"
    SCRIPT = "elsewhere"


def stage(outermost: FrameType | None) -> Stage:
    """Return the stage of the current call, judged by the frames above `outermost`.

    A module is built in its `__init__`, `reset_parameters` and `reset_running_stats`; the functions
    of `nn.init` initialise.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not outermost:
        code = frame.f_code
        if code is _CALL:
            return Stage.RUN
        if code.co_filename == _INIT_FILE:
            return Stage.BUILD
        if code.co_name in _BUILDERS and code.co_argcount:
            first = frame.f_locals.get(code.co_varnames[0])  # self, whatever it is called
            if isinstance(first, Module):
                return Stage.BUILD
        frame = frame.f_back
    return Stage.SCRIPT


def is_buffer(tensor: Tensor) -> bool:
    """Return whether a tensor is a buffer of a module that is being called."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL:
            module = frame.f_locals["self"]
            if any(buffer is tensor for buffer in module.buffers()):
                return True
        frame = frame.f_back
    return False


# By startup program and Program: the arrays from outside that it holds as constants, by their ids.
_Frozen = WeakKeyDictionary[Program, dict[int, Any]]
_frozen: WeakKeyDictionary[Program, _Frozen] = WeakKeyDictionary()


@attrs.define(eq=False)
class _FamilyNotes:
    """Notes on the tensors that a Program and its clones have met, in all guards.

    Attributes
    ----------
    constants : dict
        Tensors that a Program holds, by array or number.
    made, read : dict
        Tensors that were made from data while capturing, and tensors whose values Python read.
    viewed : dict
        Tensors with values of which views were captured, by storage.
    """

    constants: dict[Any, tuple[Any, VarDesc]] = attrs.field(factory=dict)
    made: dict[int, Any] = attrs.field(factory=dict)
    read: dict[int, Any] = attrs.field(factory=dict)
    viewed: dict[int, Tensor] = attrs.field(factory=dict)


def _notes_of(program: Program) -> _FamilyNotes:
    notes: _FamilyNotes | None = program.family.notes
    if notes is None:
        notes = program.family.notes = _FamilyNotes()
    return notes


class Persistables:
    """The variables that tensors with values become in a main and a startup Program.

    A tensor that is trained, or written by a captured op, is persistable: an op in the startup
    Program gives it the content of that time, and from then on it lives in the scope. Any other is
    a constant with the content that it has when it is first used.
    """

    def __init__(self, main: Program, startup: Program) -> None:
        self.main = main
        self.startup = startup
        self._kept: dict[int, tuple[Any, VarDesc]] = {}
        self._owners: dict[int, list[tuple[Any, VarDesc]]] = {}  # the same, by piece of memory
        self._notes = _notes_of(main)
        self._checked: set[tuple[Program, Any]] = set()  # constants that were met in this guard
        self._numbers: dict[str, int] = {}
        self._order: dict[int, tuple[int, OpDesc]] = {}
        self.filled: set[str] = set()  # variables that an op of the startup Program writes
        variables = startup.global_block().vars
        for name, tensor in startup.parameters.items():
            self._remember(tensor._data, variables[name])

    def note_made(self, tensor: Tensor) -> None:
        """Note a tensor that was made from data while capturing; each run makes it again."""
        self._notes.made[id(tensor._data)] = tensor._data

    def note_read(self, tensor: Tensor) -> None:
        """Note that Python read the values of a tensor, which must not change then."""
        self._notes.read[id(tensor._data)] = tensor._data

    def note_viewed(self, tensor: Tensor) -> None:
        """Note that a view of a tensor with values was captured."""
        self._notes.viewed[id(tensor.memory)] = tensor

    def viewed(self, tensor: Tensor) -> Tensor | None:
        """Return the tensor with values that a captured view belongs to."""
        base = self._notes.viewed.get(id(tensor.memory))
        return None if base is None or isinstance(base._data, SymbolicArray) else base

    def find(self, tensor: Tensor) -> VarDesc | None:
        """Return the persistable variable of a tensor with values."""
        known = self._kept.get(id(tensor._data))
        return None if known is None else known[1]

    def is_written(self, tensor: Tensor) -> bool:
        """Return whether the values of a tensor are known only in a run."""
        key = id(tensor._data)
        constant = self._notes.constants.get(key)
        return key in self._kept or (constant is not None and constant[1].value is None)

    def name(self, block: Block, tensor: Tensor, written: bool) -> str:
        """Return the name of a tensor's variable, in a block that can use it."""
        program = block.program
        kept = self.find(tensor)
        made_here = id(tensor._data) in self._notes.made
        if kept is None and (
            is_trained(tensor) or (not made_here and (written or is_buffer(tensor)))
        ):
            kept = self.keep(tensor)
        if kept is None:
            return self._constant(program, tensor, written)
        if is_trained(tensor) and not kept.is_parameter:  # first met as `parameter.data`
            kept.is_parameter, kept.stop_gradient = True, tensor._edge is None
            for each in (self.main, self.startup):
                each.parameters[kept.name] = tensor
        if kept.name in self.filled and isinstance(tensor._data, np.ndarray):
            self.hide(tensor, kept)
        return self.declare(program, kept, tensor)

    def name_viewed(self, block: Block, tensor: Tensor) -> str:
        """Return the name of the variable that a block writes through a view taken before.

        A constant that the startup Program writes is a variable from that Program's first op on.
        """
        if block.program is self.startup and self.find(tensor) is None:
            return self._constant(self.startup, tensor, written=True)
        return self.name(block, tensor, written=True)

    def hide(self, tensor: Tensor, desc: VarDesc) -> None:
        """Make a tensor refuse to show values, since the startup Program fills it."""
        self.filled.add(desc.name)
        tensor._data = symbolic(desc, tensor._data, self.startup)

    def declare(self, program: Program, desc: VarDesc, tensor: Tensor) -> str:
        """Add a persistable variable to a program."""
        variables, parameters = program.global_block().vars, program.parameters
        known = variables.get(desc.name)
        if known is None:
            variables[desc.name] = desc
            parameters[desc.name] = tensor
        elif known is not desc:  # it is a copy in a clone of the program
            same = parameters.get(desc.name)
            if same is None or (same is not tensor and same._data is not tensor._data):
                raise CaptureError(
                    f"two variables of the Program would be called {desc.name!r}: they come from "
                    "different startup programs; capture both with the same startup program"
                )
        return desc.name

    def keep(self, tensor: Tensor, name: str | None = None) -> VarDesc:
        """Make a tensor a persistable variable that begins with its current content."""
        known = self.find(tensor)
        if known is not None:
            return known
        array = tensor._data
        if id(array) in self._notes.read:
            raise CaptureError(
                f"the values of a tensor of shape {tensor.shape} were read while capturing, and "
                "now it becomes a variable of the Program: what depends on the values would be "
                f"frozen; read them before program_guard{at_user_line()}"
            )
        twin = self._twin(array)
        if twin is not None:
            self._remember(array, twin)
            return twin
        trained = is_trained(tensor)
        if name is None or name in self.startup.global_block().vars:
            name = self._new_name(name or ("parameter" if trained else "buffer"))
        desc = VarDesc(
            name,
            array.shape,
            array.dtype,
            persistable=True,
            stop_gradient=tensor._edge is None,
            is_parameter=trained,
            strides=ArraySpec.of(array.copy(order="K")).strides,
            device=tensor.device,
        )
        self._thaw(array, desc, tensor)
        block = self.startup.global_block()
        block.append_op(self._initialise(desc, tensor))
        block.create_var(desc)
        self._remember(array, desc)
        self.startup.parameters[name] = tensor
        tensor._name = name
        return desc

    def _initialise(self, desc: VarDesc, tensor: Tensor) -> OpDesc:
        """Return the op that gives a variable the content of a tensor."""
        array = tensor._data
        host = array if isinstance(array, np.ndarray) else array.get()
        first = host.reshape(-1)[:1]
        if host.size and host.tobytes() == first.tobytes() * host.size:
            attrs = {"shape": desc.shape, "value": first.item(), "dtype": desc.dtype}
            attrs["device"] = tensor.device
            return OpDesc("fill_constant", (), (desc.name,), attrs, user_location())
        source = self._constant(self.startup, tensor, written=False)
        return OpDesc("clone", (source,), (desc.name,), {}, user_location())

    def _thaw(self, array: Any, desc: VarDesc, tensor: Tensor) -> None:
        """Replace a constant that the main Program has read so far by the variable."""
        frozen = self._notes.constants.get(id(array))
        if frozen is not None and not _has_content(frozen[1], array):
            frozen = None  # it changed between two guards, and both contents are used
        held = _frozen.get(self.startup) or _Frozen()
        holders = [program for program, arrays in held.items() if id(array) in arrays]
        if any(program is not self.main or frozen is None for program in holders):
            raise CaptureError(
                f"a tensor of shape {tensor.shape} that becomes a variable was captured as a "
                "constant before, with the same startup program; first capture the program that "
                f"writes it{at_user_line()}"
            )
        if frozen is None:
            return
        del self._notes.constants[id(array)]
        held.get(self.main, {}).pop(id(array), None)
        old = frozen[1].name
        for block in self.main.blocks:
            block.vars.pop(old, None)
            for op in block.ops:
                op.inputs = tuple([desc.name if name == old else name for name in op.inputs])
        self.declare(self.main, desc, tensor)

    def _constant(self, program: Program, tensor: Tensor, written: bool) -> str:
        array = tensor._data
        block = program.global_block()
        constants = _notes_of(program).constants
        key = constant_key(array)
        known = constants.get(key)
        if known is None or not self._is_as_it_was(program, key, *known):
            self._twin(array)
            value = array.copy(order="K")
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            desc = VarDesc(program.unique_name("constant"), array.shape, array.dtype, value=value)
            desc.strides = ArraySpec.of(value).strides
            desc.device = tensor.device
            block.create_var(desc)
            known = constants[key] = (array, desc)
            if id(array) not in self._notes.made and program is self.main:
                held = _frozen.setdefault(self.startup, _Frozen())
                held.setdefault(self.main, {})[id(array)] = array
        if written:
            make_anew(block, known[1], user_location())
        return known[1].name

    def _is_as_it_was(self, program: Program, key: Any, array: Any, desc: VarDesc) -> bool:
        """Return whether there is a constant of an earlier guard with the current content."""
        if (program, key) not in self._checked:
            self._checked.add((program, key))
            there = program.global_block().vars.get(desc.name) is desc
            return there and (desc.value is None or _has_content(desc, array))
        return True

    def _remember(self, array: Any, desc: VarDesc) -> None:
        self._kept[id(array)] = (array, desc)
        if isinstance(array, np.ndarray):
            self._owners.setdefault(id(memory_holder(array)), []).append((array, desc))

    def _twin(self, array: Any) -> VarDesc | None:
        """Return the variable with exactly an array's memory; raise for a part of another's."""
        if not isinstance(array, np.ndarray):
            return None
        for other, desc in self._owners.get(id(memory_holder(array)), ()):
            if np.may_share_memory(array, other):
                if same_memory(array, other):
                    return desc
                raise CaptureError(
                    f"a tensor of shape {array.shape} shares memory with the variable "
                    f"{desc.name!r}; make the view while capturing, so that the Program knows "
                    f"that it is one{at_user_line()}"
                )
        return None

    def _new_name(self, prefix: str) -> str:
        """Return the first free name of `prefix_0`, `prefix_1` and so on."""
        blocks = (*self.startup.blocks, *self.main.blocks)
        while True:
            number = self._numbers.get(prefix, 0)
            self._numbers[prefix] = number + 1
            name = f"{prefix}_{number}"
            if not any(name in block.vars for block in blocks):
                return name

    def note_order(self, op: OpDesc) -> None:
        """Note the order in which ops are called."""
        self._order[id(op)] = (len(self._order), op)

    def _came_before(self, op: OpDesc, other: OpDesc) -> bool:
        last = (-1, None)
        return self._order.get(id(op), last)[0] < self._order.get(id(other), last)[0]

    def promote(self, desc: VarDesc, tensor: Tensor) -> None:
        """Move the ops that make a variable to the startup Program; it becomes persistable.

        Raises
        ------
        CaptureError
            When it is computed from data or from something that every run changes.
        """
        block, target = self.main.global_block(), self.startup.global_block()
        wanted, moved = {desc.name}, []
        for op in reversed(list(block.ops)):
            if wanted.isdisjoint((*op.outputs, *op.written)):
                continue
            wanted.update(op.reads, op.outputs)
            moved.append(op)
        for name in wanted:
            var = block.var(name)
            if var.need_check_feed or (var.persistable and name not in target.vars):
                raise CaptureError(
                    f"the parameter {desc.name!r} is computed from {name!r}, which is not known "
                    f"before a run; make parameters from data or with nn.init{at_user_line()}"
                )
        for op in reversed(moved):
            block.ops.remove(op)
            # Random numbers must be drawn in the order of the calls.
            later = [i for i, other in enumerate(target.ops) if self._came_before(op, other)]
            target.ops.insert(later[0] if later else len(target.ops), op)
        used = {name for op in block.ops for name in (*op.reads, *op.outputs)}
        for name in wanted:
            var = block.vars[name]
            target.vars.setdefault(name, var)
            if name not in used and name != desc.name:
                del block.vars[name]
            elif var.value is None:
                var.persistable = True
        desc.is_parameter = is_trained(tensor)
        desc.stop_gradient = tensor._edge is None
        for program in (self.startup, self.main):
            program.parameters[desc.name] = tensor


def is_trained(tensor: Tensor) -> bool:
    """Return whether a tensor is a parameter: one of a module, or a leaf that wants a gradient."""
    edge = tensor._edge
    return isinstance(tensor, Parameter) or (edge is not None and type(edge[0]) is AccumulateGrad)


def _has_content(desc: VarDesc, array: Any) -> bool:
    """Return whether a constant equals the current content of an array."""
    return bool(desc.value.tobytes() == array.tobytes())


class OptimizerOptions:
    """The options of an optimizer as persistable variables, which a Program reads.

    An Executor calls it with the scope before each run of the Program, so that
    `optimizer.param_groups[0]["lr"] = 0.01` takes effect without capturing again.
    """

    def __init__(self, optimizer: Optimizer, persistables: Persistables) -> None:
        self.optimizer = optimizer
        kind = type(optimizer).__name__.lower()
        self.names = [
            None if tensor is None else persistables.keep(tensor, f"{kind}_option_{i}").name
            for i, tensor in enumerate(optimizer.option_tensors())
        ]
        for param, kept in optimizer.state.items():
            known = persistables.find(param)
            name = param.name if known is None else known.name
            for key, value in kept.items():
                if isinstance(value, Tensor):
                    persistables.keep(value, f"{name}_{key}")

    def __call__(self, scope: Scope) -> None:
        """Write the current options into a scope."""
        self.optimizer.refresh_options()
        # Groups that take their first step elsewhere come after the others.
        tensors = self.optimizer.option_tensors()[: len(self.names)]
        if [tensor is None for tensor in tensors] != [name is None for name in self.names]:
            raise ArgumentError(
                f"an option of {type(self.optimizer).__name__} was switched on or off after the "
                "Program was captured, such as momentum set from 0; capture the Program again"
            )
        for name, tensor in zip(self.names, tensors, strict=True):
            if name is None or tensor is None:
                continue
            known = scope.find_var(name)
            if known is None:
                scope.set(name, tensor)
            elif isinstance(tensor._data, np.ndarray):
                known.fill(tensor._data.item())
            else:
                known[...] = tensor._data
