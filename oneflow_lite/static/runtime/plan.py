"""ExecutionPlan: the ops of a Program for given feeds and fetches, as the passes leave them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from oneflow_lite.arrays.device import CPU, Device
from oneflow_lite.static.ir.memory import memory_roots
from oneflow_lite.static.ir.program import Block, Program, changes


@attrs.define
class PassReport:
    """The report of a pass on a plan: the number of times that it fired, and its savings by unit.

    Units are "ops" and "bytes" (of memory traffic or of buffers, as the pass documents).
    """

    name: str
    fired: int
    saved: dict[str, int] = attrs.field(factory=dict)


@attrs.frozen
class FusedOps:
    """Ops that run as machine code, in one loop.

    Attributes
    ----------
    ops : tuple of str
        Their types, in order.
    source : str
        What was compiled.
    bytes_saved : int
        Of the results that are not stored.
    outputs : tuple of str
        The variables that it makes.
    kind : {"loop", "call"}
        A call is more than one loop.
    """

    ops: tuple[str, ...]
    source: str
    bytes_saved: int
    outputs: tuple[str, ...] = ()
    kind: str = "loop"

    def __str__(self) -> str:
        named = ", ".join(self.ops[:4]) + (", ..." if len(self.ops) > 4 else "")
        saved = f"{self.bytes_saved:,} bytes not stored"
        return f"{len(self.ops)} ops in one {self.kind} ({named}), {saved}"


@attrs.define
class MemoryPlan:
    """The places of temporaries in the one preallocated piece of memory.

    Attributes
    ----------
    places : dict of str to (int, int)
        Variable to offset and bytes.
    arena_bytes : int
        The size of the piece, which is the reported peak.
    unshared_bytes : int
        The bytes of the same variables with a buffer each.
    """

    places: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    arena_bytes: int = 0
    unshared_bytes: int = 0


@attrs.define(eq=False)
class ExecutionPlan:
    """The ops of one Program for given feeds and fetches, which passes rewrite.

    Attributes
    ----------
    block : Block
        A copy of the global block that belongs to the plan; passes rewrite its `ops` and `vars`.
        Sub-blocks are attributes of control-flow ops and stay as they are.
    feeds, fetches : tuple of str
        Variables given at each run, and returned after it, in order.
    place : Device
    transfers : frozenset of str
        Variables that were added for copies between host and device.
    in_place : dict of str to str
        For an op's output, the variable whose memory it takes over: an input that is not needed
        after the op, or the target of a later `copy_` of the output.
    loops : list of FusedOps
    groups : dict of str to (Group, FusedOps)
        By its first output what a fused op is made of.
    fuses_until : int or None
        The number of the op from which on none is fused.
    compiles : {"at once", "last", "never"}
        When machine code is made of groups: as they are found, or of those that are left after all
        passes. Until then, or else, there is their source alone, and nothing can run.
    took_over : bool
        Whether large arrays go by the loops of eager mode: a plan's that took over.
    refused : list of str
        Groups of which no machine code could be made, and why.
    memory_plan : MemoryPlan
    reports : list of PassReport
    """

    block: Block
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    place: Device = CPU
    transfers: frozenset[str] = frozenset()
    in_place: dict[str, str] = attrs.field(factory=dict)
    loops: list[FusedOps] = attrs.field(factory=list)
    groups: dict[str, tuple[Any, FusedOps]] = attrs.field(factory=dict)
    fuses_until: int | None = None
    compiles: str = "at once"
    took_over: bool = False
    refused: list[str] = attrs.field(factory=list)
    memory_plan: MemoryPlan = attrs.field(factory=MemoryPlan)
    reports: list[PassReport] = attrs.field(factory=list)
    _notes: dict[str, Any] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls, program: Program, feeds: Sequence[str], fetches: Sequence[str], place: Device = CPU
    ) -> ExecutionPlan:
        """Make a plan with copies of a program's global ops and variables."""
        return cls(program.global_block(), tuple(feeds), tuple(fetches), place).copy()

    def copy(self, fuses_until: int | None = None, compiles: str = "at once") -> ExecutionPlan:
        """Return another plan of these ops, as a start for other passes."""
        block = Block(self.block.program)
        block.ops = [op.copy() for op in self.block.ops]
        block.vars = {name: desc.copy() for name, desc in self.block.vars.items()}
        made = ExecutionPlan(block, self.feeds, self.fetches, self.place, self.transfers)
        made.fuses_until, made.compiles = fuses_until, compiles
        made.reports = [*self.reports]
        return made

    def noted(self, what: str, find: Callable[[ExecutionPlan], Any]) -> Any:
        """Return the result of a function of the plan; it is called anew once the ops change."""
        now, note = self._notes.get(what, (None, None))
        if now != changes():
            note = find(self)
            self._notes[what] = changes(), note
        return note

    @property
    def roots(self) -> dict[str, str]:
        """For each variable its root: the variable in whose memory it lies; see `memory_roots`."""
        roots: dict[str, str] = self.noted("roots", lambda plan: memory_roots(plan.block.ops))
        return roots

    @property
    def external_names(self) -> tuple[str, ...]:
        """The persistable variables that a run needs, in the order in which it takes their arrays.

        A variable that an op makes before its first use, as in a startup program, is left out.
        """
        made: set[str] = set()
        used: dict[str, None] = {}
        for op in self.block.ops:
            used.update(dict.fromkeys(name for name in op.reads if name not in made))
            made.update(op.new_outputs)
        used.update(dict.fromkeys(name for name in self.fetches if name not in made))
        return tuple(name for name in used if self.block.var(name).persistable)
