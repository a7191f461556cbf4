"""RecordingInterpreter: runs ops eagerly and writes them down in a Program.

It stands below the AutogradInterpreter, where every kernel call passes, those of a backward pass
too. Memory is known by the identity of arrays. An array from outside belongs to an argument or a
captured tensor, an array that an op made is a variable, and any other was made from Python numbers.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.array_spec import memory_holder
from oneflow_lite.arrays.bfloat16_arrays import BFloat16Array
from oneflow_lite.arrays.device import device_of, on_device
from oneflow_lite.compiler.outside import NotReplayable
from oneflow_lite.errors import CaptureError
from oneflow_lite.functors.random import default_generator
from oneflow_lite.interpreter.infer import has_dynamic_shape, infer_outputs
from oneflow_lite.interpreter.stack import EagerInterpreter, Interpreter
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.static.ir.location import user_location
from oneflow_lite.static.ir.program import OpDesc, Program, VarDesc, generators_of
from oneflow_lite.static.lazy.symbolic import is_number
from oneflow_lite.tensors.caller_warnings import CallerWarning, depth_of
from oneflow_lite.tensors.node import FunctionNode, next_sequence_nr
from oneflow_lite.tensors.tensor import Tensor, make_tensor


@attrs.frozen(eq=False)
class Source:
    """The place where an array from outside is found again: a tensor, or its gradient."""

    tensor: Tensor
    place: str  # "" or ".grad"
    label: str  # what users call it

    @property
    def array(self) -> Any:
        """The array that is there now; None without a gradient."""
        tensor = self.tensor.grad if self.place else self.tensor
        return None if tensor is None else tensor._data


class RecordingInterpreter(Interpreter):
    """Executes and appends."""

    def __init__(self, fullgraph: bool) -> None:
        self.inner: Interpreter = EagerInterpreter()
        self.fullgraph = fullgraph
        self.program = Program()
        self.block = self.program.global_block()
        self.stopped: str | None = None  # why the recording ended; under `fullgraph` that raises
        self.arrays: dict[str, Any] = {}  # of the variables; kept, or ids would be used twice
        self.externals: dict[str, Source] = {}  # what came from outside and is no argument
        self.unknown: dict[str, Tensor] = {}  # what turned up from nowhere
        self.callbacks: dict[Callable[[], None], None] = {}  # before each replay, in this order
        self.warnings: list[CallerWarning] = []
        self._filters, self._depth = warnings.filters, depth_of(sys._getframe(1))
        self.roots: dict[str, str] = {}  # whose memory a variable lies in; some views are copies
        self.changed_at: dict[int, str] = {}  # the lines where objects and arrays were changed last
        self.switches = False  # whether `requires_grad` or `.data` of a tensor was set
        self.took_gradients = False  # whether a backward pass ran
        self.rehearses = False  # a backward pass, in which no other process takes part
        self.calls = 0  # ops that were dispatched, also without entering the Program
        self.adds = False  # whether ops are recorded that the plain function has not
        self._outside: dict[int, Source] = {}
        self._constants: dict[int, Any] = {}
        self._names: dict[int, str] = {}
        self._first_nr = next_sequence_nr()
        self._settled: int | None = None
        self._gradients: dict[int, tuple[Tensor, Tensor | None]] = {}  # by the id of their tensors
        self._states: dict[Any, Any] = {}  # of generators, as the last op has left them
        self.on_end: list[Callable[[], None]] = []
        self.check_generators([default_generator])

    def check_generators(self, drawn: Sequence[Any] = (), look: bool = True) -> None:
        """End the recording where something else than an op has set a generator."""
        for generator in {*self._states, *drawn}:
            stream = generator._streams.get("numpy")
            state = None if stream is None else stream.bit_generator.state
            if look and self._states.get(generator, state) not in (None, state):
                self.stop("it sets the state of a generator")
            self._states[generator] = state

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run the op and write it down."""
        if self.stopped is not None:
            return self.inner.apply(op_expr, inputs, attrs)
        op = op_expr.op_type_name
        number = -1 if self.adds else self.calls
        self.calls += not self.adds
        schema = op_expr.schema
        arrays = [None if x is None else x._data for x in inputs]
        if schema.dynamic_shape and has_dynamic_shape(op_expr, arrays, attrs):
            self.stop(f"the output shape of {op}() depends on values")
        elif any(map(holds_array, attrs.values())):
            self.stop(f"{op}() keeps an array among its attributes")
        names = tuple([None if x is None else self.name_of(x) for x in inputs])
        drawn = list(generators_of(attrs))
        if drawn and self.rehearses:
            raise NotReplayable("its backward pass draws random numbers")
        if drawn:
            self.check_generators(drawn)
        try:
            if self.rehearses and schema.effect:
                result = _stand_ins(op_expr, arrays, attrs)
            else:
                result = self.inner.apply(op_expr, inputs, attrs)
        except Exception as error:  # which other values might not cause, and the call may go on
            if self.stopped is None:
                self.end(f"{op}() raised {type(error).__name__}")
            raise
        if drawn:
            self.check_generators(drawn, look=False)
        outputs = result if type(result) is tuple else (result,)
        if any([type(y._data) is BFloat16Array for y in outputs]):
            self.stop("bfloat16 is computed eagerly")
        if any([y.is_meta for y in outputs]):
            self.stop("tensors on the device meta have no values to compute")
        if self.stopped is None:
            made = tuple([self._output(op, y, inputs, names) for y in outputs])
            if not schema.mutates and made[0] in names:
                return result  # handed through
            is_tuple = type(result) is tuple
            desc = OpDesc(
                op, names, made, attrs, user_location(), returns_tuple=is_tuple, number=number
            )
            self.block.append_op(desc)
            self._note_memory(desc, inputs, outputs)
        return result

    def read(self, op: str, tensor: Tensor) -> None:
        """End the recording: what happens next may depend on the value."""
        self.stop(f"{op}{'()' if op.isidentifier() else ''} reads a value")

    def constant(self, tensor: Tensor) -> None:
        """Keep a tensor that was made from Python numbers, which guards watch."""
        self._constants[id(tensor._data)] = tensor._data

    def backward(self, nodes: Sequence[FunctionNode]) -> None:
        """End the recording when a backward pass goes through what was recorded before it."""
        self.took_gradients = True
        for node in nodes:
            if node.edges and node.sequence_nr < self._first_nr:
                self.stop(f"a backward pass goes through {node.name()}, recorded outside")

    def before_run(self, callback: Callable[[], None]) -> None:
        """Have a function called before each replay."""
        self.callbacks[callback] = None

    def warned(self, warning: CallerWarning) -> None:
        """Have a warning given at each replay, under the filters that are there then."""
        if self.rehearses:
            raise NotReplayable("its backward pass gives a warning")
        if warning.raises() or warnings.filters is not self._filters:
            self.stop("it gives a warning that a filter raises, or under filters of its own")
        if warning.depth <= self._depth:
            self.stop("it gives a warning at the line of its caller")
        self.warnings.append(warning)

    def stop(self, reason: str) -> None:
        """End the recording; raise under `fullgraph`."""
        if self.stopped is not None:
            return
        location = None if self.rehearses else user_location()
        self.end(reason if location is None else f"{reason}, at {location}")
        if self.fullgraph:
            hint = "keep values inside tensors, as with where(), or leave fullgraph out"
            raise CaptureError(f"flow.compile(fullgraph=True): {self.stopped}; {hint}")

    def end(self, reason: str | None) -> None:
        """Note why no more is recorded; from now on objects go where Python lets them go."""
        self.stopped = reason
        while self.on_end:
            self.on_end.pop()()

    def _note_memory(self, desc: OpDesc, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Note in whose memory the outputs lie, and since when nothing but ops happens."""
        roots, viewed = self.roots, desc.viewed
        if viewed is not None:  # reshape copies some layouts
            base = memory_holder(inputs[desc.inputs.index(viewed)]._data)
            viewed = viewed if memory_holder(outputs[0]._data) is base else None
        for name in desc.inputs:
            if name is not None:
                roots.setdefault(name, name)
        for name in desc.outputs:
            roots.setdefault(name, name if viewed is None else roots[viewed])
        for name in desc.written:
            self.note_change(self.arrays[roots[name]])
        if any([self._is_outside(roots[name]) for name in desc.written]):
            moved = self._gradients_moved()
            if moved or self._settled is None:
                self._settled = self.calls if self.adds else desc.number

    # Events besides ops

    def note_change(self, value: Any) -> None:
        """Take note of the line at which an object or array is changed."""
        self.changed_at[id(value)] = f", at {user_location()}"

    def unsettle(self) -> None:
        """Take note that something happened that is no op, as the end of a block with a handler.

        A replay that is stopped later need not do that. A replay that is stopped earlier begins
        again, with everything outside as it was.
        """
        self._settled = None

    def note_switch(self, tensor: Tensor) -> None:
        """Take note that a tensor is about to change otherwise than by an op."""
        self.switches = True
        self.note_change(tensor._data)
        self.unsettle()

    def settled(self) -> int:
        """Return the number of the first op from which nothing but ops happened outside.

        One that is too large says that none did.
        """
        if self._settled is None or self._gradients_moved():
            return self.calls + 1
        return self._settled

    def _gradients_moved(self) -> bool:
        """Return whether a tensor from outside has got another gradient since the last call."""
        moved = [(t, t.grad) for t, grad in self._gradients.values() if t.grad is not grad]
        self._gradients.update({id(t): (t, grad) for t, grad in moved})
        return bool(moved)

    def _is_outside(self, name: str) -> bool:
        return name in self.unknown or not self.block.var(name).is_temporary

    # Variables

    def know(self, source: Source, array: Any) -> None:
        """Take note of where an array from outside is found again."""
        self._outside.setdefault(id(array), source)
        self._gradients.setdefault(id(source.tensor), (source.tensor, source.tensor.grad))

    def declare(self, array: Any, desc: VarDesc) -> str:
        """Make an array from outside a variable; the first name that it gets stays."""
        known = self._names.setdefault(id(array), desc.name)
        if known not in self.arrays:
            self.block.create_var(desc)
            self.arrays[known] = array
        return known

    def feed(self, array: Any, desc: VarDesc) -> None:
        """Have an array from outside given at each run."""
        name = self.declare(array, desc)
        self.externals.pop(name, None)
        known = self.block.var(name)
        known.need_check_feed, known.persistable = True, False

    def name(self, label: str) -> str:
        """Return a name for a variable that users call so."""
        return self.program.unique_name(label) if label in self.block.vars else label

    def find(self, array: Any) -> str | None:
        """Return the variable that an array is."""
        return self._names.get(id(array))

    def name_of(self, tensor: Tensor) -> str:
        """Return the variable that a tensor is, a new one when nobody has seen its array."""
        array = tensor._data
        if (name := self._names.get(id(array))) is not None:
            return name
        if (source := self._outside.get(id(array))) is not None:
            name = self.name(source.label)
            self.externals[name] = source
            desc = describe(name, tensor, persistable=True)
        else:
            name = self.program.unique_name("constant")
            desc = describe(name, tensor)
            if id(array) in self._constants or is_number(array):
                desc.value = array.copy()
            else:
                self.unknown[name] = tensor
        return self.declare(array, desc)

    def _output(
        self, op: str, tensor: Tensor, inputs: tuple[Any, ...], names: tuple[str | None, ...]
    ) -> str:
        for x, name in zip(inputs, names, strict=True):
            if x is not None and name is not None and x._data is tensor._data:
                return name  # it was written, or handed through
        name = self.program.unique_name(op)
        return self.declare(tensor._data, describe(name, tensor))


def _stand_ins(op: OpExpr, arrays: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """Return tensors of the kind that an op would make of these arrays, without running it."""
    (first,) = [array for array in arrays if array is not None][:1]
    with on_device(device_of(first)) as xp:
        specs = infer_outputs(op, arrays, attrs)
        made = [make_tensor(xp.ones(spec.shape, spec.dtype)) for spec in specs]
    return made[0] if len(made) == 1 else tuple(made)


def describe(name: str, tensor: Tensor, **options: Any) -> VarDesc:
    """Return the description of a tensor as a variable."""
    array, device = tensor._data, tensor.device
    strides = None if array.flags.c_contiguous else array.strides
    return VarDesc(name, array.shape, array.dtype, strides=strides, device=device, **options)


def holds_array(value: Any) -> bool:
    """Return whether there is an array in an attribute of an op."""
    if isinstance(value, (np.ndarray, Tensor)):
        return True
    if isinstance(value, (tuple, list, dict)):
        return any(map(holds_array, value.values() if isinstance(value, dict) else value))
    return type(value).__module__.startswith("cupy") and hasattr(value, "__cuda_array_interface__")
