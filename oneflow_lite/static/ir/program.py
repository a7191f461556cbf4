"""Program, Block, OpDesc and VarDesc: what is captured, and what passes and the Executor work on.

The LazyInterpreter and the recorder of `flow.compile` append to a Program; nothing here runs.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from oneflow_lite.device import CPU, Device
from oneflow_lite.dtype import DType
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import Schema
from oneflow_lite.static.ir.evaluation import to_evaluation
from oneflow_lite.static.ir.fingerprint import fingerprint
from oneflow_lite.static.ir.listing import list_block, list_op, list_program
from oneflow_lite.static.ir.program_dot import program_to_dot
from oneflow_lite.static.ir.tracked import TrackedDict, TrackedList, changes, on_setattr

_HOOKS: Any = [attrs.setters.convert, on_setattr]


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
        The content of a constant, which nothing may write.
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

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count * self.dtype.itemsize

    @property
    def is_temporary(self) -> bool:
        """Whether an op of the Program makes it and nobody outside holds it."""
        return not (self.persistable or self.need_check_feed or self.value is not None)


@attrs.define(eq=False, on_setattr=_HOOKS)
class OpDesc:
    """One call of an op in a Program.

    Attributes
    ----------
    type : str
        The registered op's name.
    inputs : tuple of str or None
        Variables in the order of the kernel's parameters, None for an optional one left out.
    outputs : tuple of str
        Variables; an input that the op writes and returns is named again here. Any other is new:
        only ops that write in place give a variable another value later.
    attrs : dict
        The kernel's keyword arguments.
    location : Location or None
        The user's line that called the op.
    returns_tuple : bool
        Whether the kernel answers with a tuple, be it of one array.
    role : {"forward", "backward", "optimize"}
        What the op is there for; a clone for testing keeps the forward ops.
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

    @property
    def schema(self) -> Schema:
        """What the op takes and what it does to memory."""
        return op_expr(self.type).schema

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables that are given to the kernel, each once."""
        return tuple(dict.fromkeys(name for name in self.inputs if name is not None))

    @property
    def written(self) -> tuple[str, ...]:
        """The inputs that the kernel writes in place."""
        names = [self.inputs[i] for i in self.schema.written]
        return tuple(name for name in names if name is not None)

    @property
    def new_outputs(self) -> tuple[str, ...]:
        """The outputs that are no inputs written in place."""
        return tuple(name for name in self.outputs if name not in self.written)

    @property
    def viewed(self) -> str | None:
        """The input whose memory the output may share."""
        schema = self.schema
        return None if schema.view_of is None else self.inputs[schema.inputs.index(schema.view_of)]

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

    def copy(self) -> OpDesc:
        """Return a copy with attributes of its own."""
        return attrs.evolve(self)

    def __str__(self) -> str:
        return list_op(self)


@attrs.define(eq=False, on_setattr=_HOOKS)
class Block:
    """A sequence of ops and their variables; a sub-block sees its parent's variables, too."""

    program: Program = attrs.field(repr=False)
    idx: int = 0
    parent_idx: int = -1
    ops: list[OpDesc] = attrs.field(factory=TrackedList, converter=TrackedList)
    vars: dict[str, VarDesc] = attrs.field(factory=TrackedDict, converter=TrackedDict)
    # What control flow knows of a sub-block: how it is differentiated, and what runs it.
    notes: Any = attrs.field(default=None, repr=False, on_setattr=attrs.setters.NO_OP)

    @property
    def parent(self) -> Block | None:
        """The block around this one."""
        return None if self.parent_idx < 0 else self.program.blocks[self.parent_idx]

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
        return list_block(self)


class Family:
    """A Program and its clones, whose variables are known by the same tensors."""

    notes: Any = None  # what capturing knows of those tensors


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
        # Called with the scope before each run, as to bring learning rates up to date.
        self.before_run: list[Callable[[Any], None]] = []
        self.family = Family()
        self._fingerprint: tuple[int, str] | None = None

    def global_block(self) -> Block:
        """Return the outermost block."""
        return self.blocks[0]

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
        """Go through the variables of all blocks."""
        for block in self.blocks:
            yield from block.vars.values()

    def clone(self, for_test: bool = False) -> Program:
        """Return a copy whose ops and variables are its own; constants are shared.

        Parameters
        ----------
        for_test : bool
            Leave out the backward and update ops with all that is computed from them, and turn
            the others to evaluation: dropout lets everything through, batch normalization uses its
            running statistics and no longer updates them, and state that matters to its own
            updates alone, as the counter `num_batches_tracked`, stands still. Other random ops
            stay. Variables that nothing makes or uses any more are left out.

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
            block.vars = {name: attrs.evolve(desc) for name, desc in block.vars.items()}
            block.ops = [op.copy() for op in block.ops]
            for op in block.ops:
                op.attrs = {name: _moved(value, other) for name, value in op.attrs.items()}
        if for_test:
            other.before_run = []
            to_evaluation(other)
        return other

    def fingerprint(self) -> str:
        """Return a hash of ops, attributes and variables, but not of source lines.

        Programs of one fingerprint run alike. It is computed again when an op, a variable or a
        block of any program was changed: added, removed, given another attribute or type. What is
        not seen is a change inside a value, as a write to the array of a constant: assign a new
        array instead. It is the same in every process unless an attribute is an object that only
        this process knows, such as a random generator of the user's.
        """
        known, now = self._fingerprint, changes()
        if known is None or known[0] != now:
            known = self._fingerprint = (now, fingerprint(self))
        return known[1]

    def to_dot(self) -> str:
        """Return the program as text for Graphviz: ops are boxes, variables ellipses.

        Sub-blocks are clusters. Parameters and other persistable variables are filled, and dashed
        edges lead to inputs that an op writes in place.
        """
        return program_to_dot(self)

    def __str__(self) -> str:
        return list_program(self)

    def __repr__(self) -> str:
        ops = sum(len(block.ops) for block in self.blocks)
        return f"Program({len(self.blocks)} blocks, {ops} ops)"


def _blocks_in(values: Iterable[Any]) -> Iterator[Block]:
    """Go through the blocks among the attributes of an op."""
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
