"""Program, Block, OpDesc and VarDesc, which capture makes and passes and the Executor work on.

The LazyInterpreter and the recorder of `flow.compile` append to a Program; nothing here runs.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

import attrs

from oneflow_lite.arrays.device import CPU, Device
from oneflow_lite.arrays.dtype import DType
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import ArgumentError, arg_error, type_error
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import Schema
from oneflow_lite.static.ir.texts import FEW, dot, listed, program_html, value_text

_count = 0  # of all changes to ops, variables and blocks


# Ops and variables are plain data that anyone may change, and an Executor must notice a change at
# every run. One counter serves all of them: while it stands still, no Program has changed.


def changes() -> int:
    """Return a number that grows with every change to any op, variable or block."""
    return _count


def note_change() -> None:
    """Count one change."""
    global _count
    _count += 1


def on_setattr(instance: Any, attribute: Any, value: Any) -> Any:
    """Count the assignment of an attribute; for `attrs.define(on_setattr=...)`."""
    note_change()
    return value


class TrackedList(list[Any]):
    """A list whose changes are counted."""


class TrackedDict(dict[Any, Any]):
    """A dict whose changes are counted."""


def _counted(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        finally:  # counted afterwards: a reader in between will read again
            note_change()

    return change


for _kind, _names in (
    (TrackedList, "append clear extend insert pop remove reverse sort"),
    (TrackedDict, "clear pop popitem setdefault update"),
):
    _operators = "__imul__ __iadd__" if _kind is TrackedList else "__ior__"
    for _name in f"{_names} {_operators} __setitem__ __delitem__".split():
        setattr(_kind, _name, _counted(getattr(_kind, _name)))


_NOTE: Any = attrs.field(default=None, init=False, repr=False, on_setattr=attrs.setters.NO_OP)
_HOOKS: Any = [attrs.setters.convert, on_setattr]
# The function that turns a copy to evaluation; `evaluation.py` stands above and puts it here.
FOR_TEST: list[Callable[[Program], None]] = []


@attrs.frozen
class Location:
    """A line of the user's source."""

    filename: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line} in {self.function}"


@attrs.define(eq=False, on_setattr=_HOOKS)
class VarDesc:
    """A variable of a Program.

    Attributes
    ----------
    name : str
    shape : tuple of int
    dtype : numpy.dtype
    persistable : bool
        Whether its value outlives a run: parameters, buffers, optimizer state, captured tensors.
    stop_gradient : bool
        Whether no gradient flows to it.
    need_check_feed : bool
        Whether it is fed, and so checked.
    is_parameter : bool
    strides : tuple of int or None
        In bytes, as the op laid out its output; None for C order.
    device : Device
    value : array or None
        The content of a constant, which must not be written.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    persistable: bool = False
    stop_gradient: bool = True
    need_check_feed: bool = False
    is_parameter: bool = False
    strides: tuple[int, ...] | None = None
    device: Device = CPU
    value: Any = None

    def copy(self) -> VarDesc:
        """Return a copy, of a constant with the same array."""
        return VarDesc(*_var_fields(self))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count * self.dtype.itemsize

    @property
    def is_temporary(self) -> bool:
        """Whether an op of the Program makes it and nothing outside holds it."""
        return not (self.persistable or self.need_check_feed or self.value is not None)

    @property
    def type_text(self) -> str:
        """Dtype and shape, as `float32[2, 3]`."""
        return f"{self.dtype}{list(self.shape)}"

    @property
    def identity(self) -> str:
        """Text that is the same for variables that are alike."""
        flags = (self.persistable, self.stop_gradient, self.need_check_feed, self.is_parameter)
        place = (self.strides, self.device, value_text(self.value))
        return f"{self.name!r} {self.shape} {self.dtype} {flags} {place}"

    @property
    def kind(self) -> str:
        """ "feed", "parameter", "persistable", "constant" or "temporary"."""
        if self.need_check_feed:
            return "feed"
        if self.is_parameter:
            return "parameter"
        if self.persistable:
            return "persistable"
        return "temporary" if self.value is None else "constant"

    def __str__(self) -> str:
        text = f"{self.kind} {self.name}: {self.type_text}"
        if self.value is not None and self.value.size <= FEW:
            text += f" = {self.value.tolist()}"
        return text if self.device.type == "cpu" else f"{text} on {self.device}"


class _Uses:
    """The effects of an op on its variables, found once until the op gets new variables."""

    __slots__ = ("new_outputs", "reads", "schema", "viewed", "written")

    def __init__(self, type: str, inputs: tuple[str | None, ...], outputs: tuple[str, ...]) -> None:
        schema = self.schema = op_expr(type).schema
        self.reads = tuple(dict.fromkeys([name for name in inputs if name is not None]))
        written = [inputs[i] for i in schema.written] if schema.written else ()
        self.written = tuple([name for name in written if name is not None])
        self.new_outputs = tuple([name for name in outputs if name not in self.written])
        base = schema.view_of
        self.viewed = None if base is None else inputs[schema.inputs.index(base)]


def _forget(op: OpDesc, attribute: Any, value: Any) -> Any:
    op._found = None
    return value


@attrs.define(eq=False, on_setattr=[*_HOOKS, _forget])
class OpDesc:
    """One call of an op in a Program.

    Attributes
    ----------
    type : str
        The registered op's name.
    inputs : tuple of str or None
        Variables in the order of the kernel's parameters, None for an optional one that is left
        out.
    outputs : tuple of str
        Variables; an input that the op writes and returns is named again here. Any other is new:
        only ops that write in place give a variable another value later.
    attrs : dict
        The kernel's keyword arguments.
    location : Location or None
        The user's line that called the op.
    returns_tuple : bool
        Whether the kernel returns a tuple, even of one array.
    role : {"forward", "backward", "optimize"}
        The purpose of the op; a clone for testing keeps the forward ops.
    number : int
        Which of the calls that `flow.compile` recorded this is; -1 for one that was added.
    """

    type: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Any] = attrs.field(factory=TrackedDict, converter=TrackedDict)
    location: Location | None = None
    role: str = "forward"
    returns_tuple: bool = False
    number: int = -1
    _found: _Uses | None = _NOTE

    @property
    def schema(self) -> Schema:
        """The op's inputs and attributes, and its effects on memory."""
        return op_expr(self.type).schema if self._found is None else self._found.schema

    def _find(self) -> _Uses:
        self._found = _Uses(self.type, self.inputs, self.outputs)
        return self._found

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables that the kernel gets, each once."""
        return (self._found or self._find()).reads

    @property
    def written(self) -> tuple[str, ...]:
        """The inputs that the kernel writes in place."""
        return (self._found or self._find()).written

    @property
    def new_outputs(self) -> tuple[str, ...]:
        """The outputs that are no inputs written in place."""
        return (self._found or self._find()).new_outputs

    @property
    def viewed(self) -> str | None:
        """The input whose memory the output may share."""
        return (self._found or self._find()).viewed

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The sub-blocks that it runs."""
        return tuple(_blocks_in(self.attrs.values()))

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers, itself or in a sub-block."""
        if not self.schema.random:
            return False
        blocks = self.blocks
        return not blocks or any(op.draws for block in blocks for op in block.ops)

    @property
    def has_effect(self) -> bool:
        """Whether it does something that others see, itself or in a sub-block."""
        schema = self.schema
        if not schema.random or "generator" in self.attrs:  # no op with sub-blocks
            return schema.effect
        return any(op.has_effect for block in self.blocks for op in block.ops)

    def copy(self) -> OpDesc:
        """Return a copy with attributes of its own."""
        new = OpDesc(*_op_fields(self))
        new._found = self._found
        return new

    @property
    def identity(self) -> str:
        """Text that is the same for ops that are alike, whatever their lines in the source."""
        options = value_text(sorted(self.attrs.items()))
        return (
            f"{self.type!r} {self.inputs} {self.outputs} {self.role} {self.returns_tuple} {options}"
        )

    @property
    def attrs_text(self) -> str:
        """The attributes in braces, each name with its value; nothing where there are none."""
        named = ", ".join(f"{name}={listed(value)}" for name, value in self.attrs.items())
        return f"{{{named}}}" if named else ""

    def to_text(self, types: str = "") -> str:
        """Return `y = matmul(x, w)  {attrs}  # file.py:12`, with more after the attributes."""
        outputs = f"{', '.join(self.outputs)} = " if self.outputs else ""
        inputs = ", ".join("None" if name is None else name for name in self.inputs)
        options = self.attrs_text and f"  {self.attrs_text}"
        at = self.location
        source = "" if at is None else f"  # {os.path.basename(at.filename)}:{at.line}"
        return f"{outputs}{self.type}({inputs}){options}{types}{source}"

    __str__ = to_text


_var_fields = attrgetter(*[field.name for field in attrs.fields(VarDesc)])
_op_fields = attrgetter(*[field.name for field in attrs.fields(OpDesc) if field.init])


@attrs.define(eq=False, on_setattr=_HOOKS)
class Block:
    """A sequence of ops and their variables; a sub-block sees its parent's variables, too."""

    program: Program = attrs.field(repr=False)
    idx: int = 0
    parent_idx: int = -1
    ops: list[OpDesc] = attrs.field(factory=TrackedList, converter=TrackedList)
    vars: dict[str, VarDesc] = attrs.field(factory=TrackedDict, converter=TrackedDict)
    # Notes of control flow on a sub-block: its gradient, and its runner.
    notes: Any = attrs.field(default=None, repr=False, on_setattr=attrs.setters.NO_OP)

    @property
    def parent(self) -> Block | None:
        """The block around this one."""
        return None if self.parent_idx < 0 else self.program.blocks[self.parent_idx]

    @guarded
    def var(self, name: str) -> VarDesc:
        """Return a variable of this block or one around it.

        Raises
        ------
        ArgumentError
            When there is none of that name.
        """
        block: Block | None = self
        while block is not None:
            if name in block.vars:
                return block.vars[name]
            block = block.parent
        raise arg_error(
            "Block.var",
            "name",
            expected="the name of a variable of the program",
            got=repr(name),
            hint="see the names with print(program)",
            kind=ArgumentError,
        )

    @guarded
    def create_var(self, desc: VarDesc) -> VarDesc:
        """Add a variable, whose name must be new."""
        if desc.name in self.vars:
            raise arg_error(
                "Block.create_var",
                "name",
                expected="a new name",
                got=repr(desc.name),
                hint="choose another one",
                kind=ArgumentError,
            )
        self.vars[desc.name] = desc
        return desc

    def append_op(self, op: OpDesc) -> OpDesc:
        """Add an op at the end."""
        self.ops.append(op)
        return op

    def __str__(self) -> str:
        """The variables, then the ops; a temporary is listed with the op that makes it."""
        parent = "" if self.parent_idx < 0 else f" in block {self.parent_idx}"
        lines = [f"block {self.idx}{parent}"]
        lines += [f"  {desc}" for desc in self.vars.values() if not desc.is_temporary]
        for op in self.ops:
            types = ", ".join(self.var(name).type_text for name in op.outputs) or "nothing"
            role = "" if op.role == "forward" else f"  [{op.role}]"
            lines.append(f"  {op.to_text(f' -> {types}{role}')}")
        return "\n".join(lines)


class Family:
    """A Program and its clones, whose variables are known by the same tensors."""

    notes: Any = None  # notes of capture on those tensors


class Program:
    """Blocks of ops, captured once and run many times; block 0 is the global one.

    >>> import oneflow_lite as flow
    >>> main = flow.static.Program()
    >>> with flow.static.program_guard(main):
    ...     x = flow.static.data("x", [2, 3])
    ...     y = flow.relu(x)
    >>> [op.type for op in main.global_block().ops]
    ['relu']
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = TrackedList([Block(self)])
        self._numbers = itertools.count()
        self.parameters: dict[str, Any] = {}  # tensors that are persistable variables, by name
        # Called with the scope before each run, for example to update learning rates.
        self.before_run: list[Callable[[Any], None]] = []
        self.family = Family()
        self._fingerprint: tuple[int, str] | None = None

    def global_block(self) -> Block:
        """Return the outermost block."""
        return self.blocks[0]

    @guarded
    def create_block(self, parent: Block) -> Block:
        """Add a sub-block."""
        block = Block(self, len(self.blocks), parent.idx)
        self.blocks.append(block)
        return block

    def unique_name(self, prefix: str) -> str:
        """Return a name that no variable of this program has."""
        while True:
            name = f"{prefix}_{next(self._numbers)}"
            if not any(name in block.vars for block in self.blocks):
                return name

    def list_vars(self) -> Iterator[VarDesc]:
        """Yield the variables of all blocks."""
        for block in self.blocks:
            yield from block.vars.values()

    @guarded
    def clone(self, for_test: bool = False) -> Program:
        """Return a copy whose ops and variables are its own; constants are shared.

        Parameters
        ----------
        for_test : bool
            Leave out backward and update ops with all that is computed from them, and turn the
            others to evaluation: dropout keeps everything, batch normalization uses its running
            statistics without updating them, and state that matters only to its own updates, such
            as the counter `num_batches_tracked`, no longer changes. Other random ops stay.
            Variables that nothing makes or uses any more are left out.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> main = flow.static.Program()
        >>> with flow.static.program_guard(main):
        ...     x = flow.static.data("x", [2, 3])
        ...     y = flow.dropout(x, 0.5)
        >>> [op.type for op in main.clone(for_test=True).global_block().ops]
        ['ones_like', 'mul']
        """
        other = copy.copy(self)
        for name, value in vars(self).items():  # maps between tensors and names, among others
            if isinstance(value, (dict, list, set)):
                setattr(other, name, copy.copy(value))
        other._fingerprint = None
        other.blocks = TrackedList(attrs.evolve(block, program=other) for block in self.blocks)
        for block in other.blocks:
            block.vars = {name: desc.copy() for name, desc in block.vars.items()}
            block.ops = [op.copy() for op in block.ops]
            for op in block.ops:
                op.attrs = {name: _moved(value, other) for name, value in op.attrs.items()}
        if for_test:
            other.before_run = []
            for turn in FOR_TEST:
                turn(other)
        return other

    def fingerprint(self) -> str:
        """Return a hash of ops, attributes and variables, but not of source lines.

        Programs with the same fingerprint behave the same. It is computed again after an op, a
        variable or a block of any program was added, removed or given another attribute or type. A
        change inside a value, such as a write to the array of a constant, is not noticed: assign a
        new array instead. It is the same in every process unless an attribute is an object that
        only this process knows, such as a random generator of the user.
        """
        known, now = self._fingerprint, changes()
        if known is None or known[0] != now:
            known = self._fingerprint = (now, self._hash())
        return known[1]

    def _hash(self) -> str:
        digest = hashlib.sha256()
        for block in self.blocks:
            digest.update(f"block {block.parent_idx}\n".encode())
            items: list[VarDesc | OpDesc] = [*block.vars.values(), *block.ops]
            for item in items:
                digest.update(f"{item.identity}\n".encode())
        return digest.hexdigest()

    def to_dot(self) -> str:
        """Return the program as text for Graphviz: ops are boxes, variables ellipses.

        Sub-blocks are clusters. Parameters and other persistable variables are filled, and dashed
        edges lead to inputs that an op writes in place.
        """
        return dot(self)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.blocks))

    def _repr_html_(self) -> str:
        return program_html(self)

    def __repr__(self) -> str:
        ops = sum(len(block.ops) for block in self.blocks)
        return f"Program({len(self.blocks)} blocks, {ops} ops)"


def check_program(op: str, argument: str, program: Any) -> None:
    """Check that an argument is a Program."""
    if not isinstance(program, Program):
        raise type_error(op, argument, "a Program", program, "make one with flow.static.Program()")


def make_anew(block: Block, desc: VarDesc, location: Location | None = None) -> None:
    """Turn a constant into a variable that begins every run with the constant's content."""
    if desc.value is not None:
        kept = block.program.unique_name("constant")
        block.create_var(attrs.evolve(desc, name=kept))
        desc.value = None
        block.ops.insert(0, OpDesc("clone", (kept,), (desc.name,), {}, location))


def generators_of(attrs: Mapping[str, Any]) -> Iterator[Any]:
    """Go through the generators from which an op draws, itself or in a sub-block."""
    if "generator" in attrs:
        yield attrs["generator"]
    for block in _blocks_in(attrs.values()):
        for op in block.ops:
            yield from generators_of(op.attrs)


def _blocks_in(values: Iterable[Any]) -> Iterator[Block]:
    """Yield the blocks among the attributes of an op."""
    for value in values:
        if isinstance(value, Block):
            yield value
        elif type(value) in (tuple, list):
            yield from _blocks_in(value)


def _moved(value: Any, program: Program) -> Any:
    """Return an attribute with blocks replaced by those of another program."""
    if isinstance(value, Block):
        return program.blocks[value.idx]
    if type(value) in (tuple, list):
        return type(value)(_moved(item, program) for item in value)
    return value
