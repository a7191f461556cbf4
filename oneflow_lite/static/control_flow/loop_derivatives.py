"""Second and higher derivatives of loops: the loop is unrolled over its tape, with eager autograd.

Each iteration is one op, a sub-block whose gradient is a sub-block; autograd joins them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.errors import FlowError
from oneflow_lite.interpreter.stack import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.control_flow.tapes import Entry
from oneflow_lite.static.ir.block_notes import notes_of
from oneflow_lite.static.ir.program import Block
from oneflow_lite.tensors.mode import GRAD, local
from oneflow_lite.tensors.scalars import scalar_tensor
from oneflow_lite.tensors.tensor import Tensor, make_tensor

_CALL = op_expr("switch_case")  # it has one block, and calls it


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
        found = unrolled.derivatives(len(wanted))
    finally:
        local.state = before
    return [x._data.copy() for x in found]


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
        index = scalar_tensor(0, device=state[0].device)
        others = self.tensors[self.loop : self.loop + self.captured]
        for entry in self.entries:
            kept = map(make_tensor, entry[self.loop :])
            found = dispatch(_CALL, (index, *state, *others, *kept), self.attrs)
            state = found if type(found) is tuple else (found,)
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
        # They are materialized, so none of them is None.
        found: Sequence[Any] = grad(
            roots, inputs, root_grads, create_graph=True, materialize_grads=True
        )
        return list(found)
