"""The copying interpreter: what a program means, said without shared memory and without writes.

Each memory holds one value per autograd base, a flat tensor, and every tensor of the program is a
base and the positions in it that the tensor shows. Reading picks these positions out of the value.
A write makes a new value, in which these positions hold what was written, and leaves the old one
alone. Only out-of-place ops of oneflow_lite run here, so neither its views nor its in-place ops
can make the derivatives wrong.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

import oneflow_lite as flow
from tests.fuzz import vocabulary as words
from tests.fuzz.eager import EagerRun
from tests.fuzz.programs import Program, Ref, Step


@attrs.define(eq=False)
class Base:
    """A history of its own over a memory: what an op made, or what detach() did."""

    memory: Memory
    cells: Any  # where in the memory its elements lie
    part: str  # "whole", or the part of complex cells that it is: "real", "imag"
    value: Any  # a flat tensor


@attrs.define(eq=False)
class Memory:
    """The common part of tensors that share memory."""

    cells: Any
    bases: list[Base] = attrs.field(factory=list)

    def read(self, base: Base) -> Any:
        return _part(self.cells[base.cells], base.part)

    def write(self, base: Base) -> None:
        if base.part == "whole":
            self.cells[base.cells] = base.value.numpy()
        else:
            _part(self.cells, base.part)[base.cells] = base.value.numpy()


def _part(x: Any, part: str) -> Any:
    return x if part == "whole" else getattr(x, part)


@attrs.define(eq=False)
class Shown:
    """A tensor of the program: positions in a base."""

    base: Base
    positions: Any
    part: str = "whole"
    constant: bool = False  # a view that was made under no_grad has no history
    grad: Any = None


class CopyingRun(EagerRun):
    """One run of a program in which nothing is ever written."""

    def __init__(self, program: Program) -> None:
        self.lib = flow
        self.tensors: dict[int, Any] = {}
        self.seen: list[list[Any]] = []  # hooks are none of its business
        self.born: dict[int, int] = {}
        self.leaves: dict[int, Any] = {}  # by tensor: the flat tensor to differentiate by
        for i, leaf in enumerate(program.leaves):
            self.new(i, flow.tensor(np.array(leaf.array(), order="C")))
            if leaf.requires_grad:
                self.require_grad(i)

    def new(self, i: int, x: Any) -> None:
        """Give a tensor a memory of its own."""
        flat = x.reshape(-1).clone()
        memory = Memory(flat.numpy().copy())
        base = Base(memory, np.arange(flat.numel()), "whole", flat)
        memory.bases.append(base)
        self.tensors[i] = Shown(base, np.arange(flat.numel()).reshape(x.shape))

    def require_grad(self, i: int) -> None:
        base = self.tensors[i].base
        base.value = base.value.detach().clone().requires_grad_()
        self.leaves[i] = base.value

    # Reading and writing

    def read(self, x: Shown) -> Any:
        elements = _part(_take(x.base.value, x.positions), x.part)
        return elements.detach() if x.constant else elements

    def write(self, x: Shown, value: Any) -> None:
        """Replace the base by one that holds `value` at the positions of `x`."""
        base = x.base
        if x.part == "real":
            value = flow.complex(value, _take(base.value, x.positions).imag)
        elif x.part == "imag":
            value = flow.complex(_take(base.value, x.positions).real, value)
        count = base.value.numel()
        source = np.zeros(count, int)
        written = np.zeros(count, bool)
        source[x.positions.ravel()] = np.arange(x.positions.size)
        written[x.positions.ravel()] = True
        if not written.any():
            return
        placed = _take(value.reshape(-1), source)
        after = flow.where(flow.tensor(written), placed, base.value)
        if not flow.is_grad_enabled():
            after = _moved_to(base.value, after)
        base.value = after
        base.memory.write(base)
        for other in base.memory.bases:
            if other is not base:  # its history knows nothing of the write
                other.value = _moved_to(other.value, flow.tensor(base.memory.read(other)))

    # The steps

    def given(self, argument: Any) -> Any:
        if isinstance(argument, Ref):
            return self.read(self.tensors[argument])
        return super().given(argument)

    def version(self, i: int) -> int:
        return 0

    def shown(self, argument: Any) -> Shown:
        return self.tensors[argument]  # type: ignore[no-any-return]

    def run_op(self, step: Step, *args: Any) -> None:
        self.new(step.made[0], words.OPS[step.name](flow, *args))

    def run_view(self, step: Step, *args: Any) -> None:
        x = self.shown(step.args[0])
        positions = words.VIEWS[step.name].positions(x.positions, *step.args[1:])
        part = step.name if step.name in ("real", "imag") else x.part
        self.tensors[step.made[0]] = Shown(x.base, positions, part, x.constant or step.no_grad)

    def run_views(self, step: Step, *args: Any) -> None:
        x = self.shown(step.args[0])
        parts = words.MULTI_VIEWS[step.name].positions(x.positions, *step.args[1:])
        for i, positions in zip(map(int, step.made), parts, strict=True):
            self.tensors[i] = Shown(x.base, positions, x.part, x.constant or step.no_grad)

    def run_detach(self, step: Step, x: Any) -> None:
        old = self.shown(step.args[0])
        memory = old.base.memory
        part = old.part if old.base.part == "whole" else old.base.part
        flat = x.detach().reshape(-1).clone()
        base = Base(memory, old.base.cells[old.positions.ravel()], part, flat)
        memory.bases.append(base)
        positions = np.arange(old.positions.size).reshape(old.positions.shape)
        self.tensors[step.made[0]] = Shown(base, positions)

    def run_write(self, step: Step, *args: Any) -> None:
        x = self.shown(step.args[0])
        value = words.WRITES[step.name].value(flow, *args)
        self.write(x, value)

    def run_setitem(self, step: Step, x: Any, value: Any, *index: Any) -> None:
        target = self.shown(step.args[0])
        positions = np.asarray(target.positions[tuple(step.args[2:])])
        if not isinstance(value, flow.Tensor):
            value = flow.full(positions.shape, value, dtype=x.dtype)
        value = value.to(x.dtype).expand(positions.shape)
        self.write(Shown(target.base, positions, target.part), value)

    def run_reshaper(self, step: Step, x: Any, *args: Any) -> None:
        target = self.shown(step.args[0])
        view = words.VIEWS[words.RESHAPERS[step.name]]
        target.positions = view.positions(target.positions, *step.args[1:])

    def run_mark(self, step: Step, x: Any) -> None:
        if step.name == "requires_grad_":
            if not self.shown(step.args[0]).base.value.requires_grad:
                self.require_grad(step.args[0])
        elif step.name.startswith("backward"):
            self.accumulate(self.objective(x, 0))

    def accumulate(self, total: Any) -> None:
        if not total.requires_grad:
            return
        leaves = list(self.leaves)
        wanted = self.leaf_tensors(leaves)
        grads = flow.autograd.grad(total, wanted, retain_graph=True, allow_unused=True)
        for i, grad in zip(leaves, self.arrays(self.shaped(grads, leaves)), strict=True):
            if grad is not None:
                before = self.tensors[i].grad
                self.tensors[i].grad = grad if before is None else before + grad

    # What is compared

    def leaf_tensors(self, leaves: list[int]) -> list[Any]:
        return [self.leaves[i] for i in leaves]

    def clear_gradients(self) -> None:
        for x in self.tensors.values():
            x.grad = None

    def backward_from(self, tensors: list[int]) -> None:
        self.clear_gradients()
        terms = [self.objective(self.value(i), 0) for i in tensors]
        self.accumulate(sum(terms[1:], terms[0]))

    def shaped(self, grads: Any, leaves: list[int]) -> list[Any]:
        pairs = zip(grads, leaves, strict=True)
        return [None if g is None else _take(g, self.tensors[i].positions) for g, i in pairs]

    def value(self, i: int) -> Any:
        return self.read(self.tensors[i])

    def content(self, i: int) -> Any:
        return self.array(self.value(i))

    def accumulated(self, i: int) -> Any:
        return self.tensors[i].grad


def _take(flat: Any, positions: Any) -> Any:
    """Pick elements of a flat tensor."""
    index = flow.tensor(np.array(positions, int).reshape(-1))
    return flow.index_select(flat, 0, index).reshape(positions.shape)


def _moved_to(value: Any, content: Any) -> Any:
    """Return `content` with the history of `value`: what a write under no_grad leaves behind."""
    with flow.enable_grad():
        moved = value.clone()
    moved.numpy()[...] = content.numpy()  # nothing has seen it yet
    return moved
