"""Tapes of loops, and the second and higher derivatives that unroll a loop over its tape.

A tape is the arrays of its iterations that a loop keeps for its gradient. To a Program it is an
empty array, a variable as any: `while_loop` makes it, `while_loop_grad` takes it, and it is freed
when nothing holds it any more. The entries of a tape are found by the identity of that array: no
array could hold them, for their number is known only in a run.

For a second derivative, each iteration is an op that runs a sub-block. The gradient of a sub-block
is a sub-block, too, and eager autograd joins the iterations.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.errors import FlowError
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.program import Block
from oneflow_lite.static.lazy.block_capture import notes_of
from oneflow_lite.tensors.mode import GRAD, local
from oneflow_lite.tensors.scalars import number_tensor
from oneflow_lite.tensors.tensor import Tensor, make_tensor

_CALL = op_expr("switch_case")  # it has one block, and calls it
Entry = tuple[Any, ...]  # the arrays of one iteration
TAPE = ArraySpec((0,), np.dtype(np.uint8))
_entries: dict[int, Sequence[Entry]] = {}


def make_tape(xp: Any, entries: Sequence[Entry]) -> Any:
    """Return the array that stands for these entries."""
    tape = xp.empty(TAPE.shape, TAPE.dtype)
    _entries[id(tape)] = entries
    weakref.finalize(tape, _entries.pop, id(tape), None)
    return tape


def read_tape(tape: Any) -> Sequence[Entry]:
    """Return the entries that an array stands for.

    Raises
    ------
    FlowError
        When it is a copy of a tape.
    """
    entries = _entries.get(id(tape))
    if entries is None:
        raise FlowError(
            "while_loop: what the loop kept for its gradient was copied or replaced, which loses "
            "it; leave out hooks that pack saved tensors"
        )
    return entries


def derivatives(
    entries: Sequence[Entry],
    arrays: Sequence[Any],
    body: Block,
    returned: tuple[str, ...],
    names: tuple[str, ...],
    sizes: tuple[int, int, int],
    wanted: tuple[tuple[int, ...], ...],
) -> list[Any]:
    """Return the derivatives of the order that `wanted` has entries; see `while_loop_grad`."""
    if notes_of(body).trace is None:
        raise FlowError(
            "while_loop: a Program that was loaded has no second derivatives of its loops; "
            "capture it again"
        )
    tensors = list(map(make_tensor, arrays))
    for x in tensors:
        if x.dtype.kind in "fc":
            x.requires_grad = True
    before = local.state
    local.state = GRAD
    try:
        unrolled = _Unrolled(entries, tensors, body, returned, names, sizes, wanted)
        grads = unrolled.derivatives(len(wanted))
    finally:
        local.state = before
    return [x._data.copy() for x in grads]


class _Unrolled:
    """A loop over the iterations on its tape."""

    def __init__(
        self,
        entries: Sequence[Entry],
        tensors: list[Tensor],
        body: Block,
        returned: tuple[str, ...],
        names: tuple[str, ...],
        sizes: tuple[int, int, int],
        wanted: tuple[tuple[int, ...], ...],
    ) -> None:
        self.entries = entries
        self.tensors = tensors
        self.loop, self.captured, self.floats = sizes
        self.wanted = wanted
        kept = len(entries[0]) - self.loop if entries else 0
        self.attrs = {
            "blocks": (body,),
            "names": names[: self.loop + self.captured + kept],
            "outputs": (returned,),
            "visible": len(returned),
            "keys": (),
        }

    def results(self) -> list[Tensor]:
        """Return the floating-point results of the loop."""
        state: Sequence[Tensor] = self.tensors[: self.loop]
        index = number_tensor(0, device=state[0].device)
        others = self.tensors[self.loop : self.loop + self.captured]
        for entry in self.entries:
            kept = map(make_tensor, entry[self.loop :])
            output = dispatch(_CALL, (index, *state, *others, *kept), self.attrs)
            state = output if type(output) is tuple else (output,)
        return [x for x in state if x.dtype.kind in "fc"]

    def derivatives(self, order: int) -> list[Tensor]:
        """Return the derivatives of an order; those of order 0 are the results themselves."""
        if not order:
            return self.results()
        ys = self.derivatives(order - 1)
        first = self.loop + self.captured + self.floats * (order > 1)
        first += sum(map(len, self.wanted[: order - 2])) if order > 2 else 0
        given = self.tensors[first : first + len(ys)]
        pairs = [(y, dy) for y, dy in zip(ys, given, strict=True) if y.requires_grad]
        inputs = [self.tensors[i - 1] for i in self.wanted[order - 1]]
        if not pairs:
            return [make_tensor(x._data * 0) for x in inputs]
        roots, root_grads = zip(*pairs, strict=True)
        # Materialized gradients are never None.
        grads: Sequence[Any] = grad(
            roots, inputs, root_grads, create_graph=True, materialize_grads=True
        )
        return list(grads)
