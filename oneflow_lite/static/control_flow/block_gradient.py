"""Backward blocks: sub-blocks that compute the gradients of sub-blocks.

A backward block gets the inputs of the forward block, the variables that the forward block kept,
and the gradients of its results. It computes all other values of the forward block again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F
from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.errors import CaptureError, NotDifferentiableError
from oneflow_lite.static.ir.program import Block
from oneflow_lite.static.lazy.block_capture import (
    BlockCapture,
    Captured,
    Trace,
    enclosing_block,
    names_of,
    notes_of,
    undone_on_error,
)
from oneflow_lite.tensors.mode import StateChange, local
from oneflow_lite.tensors.tensor import Tensor

_lock = make_lock()  # two threads may take gradients of one block at once


@attrs.frozen(eq=False)
class Backward:
    """The backward blocks of several blocks with the same signature.

    Attributes
    ----------
    blocks : tuple of Block
    names : tuple of str
        The inputs of every block: those of the forward blocks, what these kept, and the gradients
        of their results.
    outputs : tuple of tuple of str or None
        For each block: the gradients, then the variables that it keeps.
    wanted : tuple of int
        The positions of the inputs of the forward blocks whose gradients these are.
    """

    blocks: tuple[Block, ...]
    names: tuple[str, ...]
    outputs: tuple[tuple[str | None, ...], ...]
    wanted: tuple[int, ...]


def trace_of(block: Block) -> Trace:
    """Return the trace of a block."""
    trace: Trace | None = notes_of(block).trace
    if trace is None:
        raise NotDifferentiableError(
            "control flow: the gradient of a block that was loaded or built by hand cannot be "
            "taken; capture it again, and save the Program after append_backward"
        )
    return trace


def is_differentiable(x: Any) -> bool:
    """Return whether a tensor or array may have a gradient."""
    return x.dtype.kind in "fc"


def backward_of(
    op: str,
    blocks: Sequence[Block],
    names: tuple[str, ...],
    kept: tuple[str, ...],
    needs: tuple[bool, ...],
    always: int = 0,
) -> Backward:
    """Return the backward blocks of some blocks, which are made once for each set of arguments.

    Parameters
    ----------
    op : str
        The function that the user called.
    blocks : sequence of Block
    names, kept : tuple of str
        The inputs of the blocks, and the variables that they keep.
    needs : tuple of bool
        Whether the gradient of each input is wanted.
    always : int
        How many of the first inputs get a gradient in any case, even if it is zero.
    """
    traces = [trace_of(block) for block in blocks]
    around = enclosing_block() or traces[0].scratch.global_block()
    keeps = local.state.grad_enabled
    key = (id(around.program), around.idx, names, kept, needs, keeps)
    with _lock, undone_on_error(around.program):
        known = traces[0].gradients.get(key)
        if known is None:
            made = _Maker(op, around, traces, names, kept).make(needs, always, keeps)
            # The block around them is kept too, so that its id is not used again.
            known = traces[0].gradients[key] = (around, made)
    return known[1]


class _Maker:
    """Captures one backward block for each block."""

    def __init__(
        self,
        op: str,
        around: Block,
        traces: list[Trace],
        names: tuple[str, ...],
        kept: tuple[str, ...],
    ) -> None:
        self.traces = traces
        self.names = names
        self.kept = kept
        self.captured = Captured(op, around.program)
        self.captures = []
        for trace in traces:
            new = around.program.create_block(around)
            trace.copy_to(new, kept)
            capture = BlockCapture(new, self.captured, trace.constants, "backward")
            self.captures.append(capture)

    def make(self, needs: tuple[bool, ...], always: int, keeps: bool) -> Backward:
        """Capture the gradients."""
        results = [y for y in self.traces[0].outputs if is_differentiable(y)]
        dys = [self.captured.new(y, True, f"{y.name}_grad") for y in results]
        grads_of_blocks = [
            self._gradients(capture, trace, needs, dys)
            for capture, trace in zip(self.captures, self.traces, strict=True)
        ]
        wanted = tuple(
            i
            for i, x in enumerate(self.traces[0].inputs)
            if x is not None
            and is_differentiable(x)
            and (i < always or any(grads.get(i) is not None for grads in grads_of_blocks))
        )
        if self.captured.outer:
            raise CaptureError(
                f"{self.captured.op}(): a gradient function inside uses a tensor from outside of "
                "the block; pass it to the function as an argument, made inside, as with clone()"
            )
        outputs = []
        for capture, trace, grads in zip(self.captures, self.traces, grads_of_blocks, strict=True):
            seen: list[Any] = []
            with StateChange(grad_enabled=True):
                made = [
                    capture.own(self._or_zeros(capture, grads.get(i), trace.inputs[i]), seen)
                    for i in wanted
                ]
            capture.prune(names_of(made))
            outputs.append(names_of(made))
            capture.finish([*trace.inputs, *[None] * len(self.kept), *dys], made)
        blocks = tuple([capture.block for capture in self.captures])
        names = (*self.names, *self.kept, *names_of(dys))
        return Backward(blocks, names, with_kept(self.captures, outputs, keeps), wanted)

    def _gradients(
        self, capture: BlockCapture, trace: Trace, needs: tuple[bool, ...], dys: list[Tensor]
    ) -> dict[int, Tensor | None]:
        """Capture the gradients of one block; return them by input."""
        for dy in dys:
            capture.declare(dy)
        results = [y for y in trace.outputs if is_differentiable(y)]
        pairs = [(y, dy) for y, dy in zip(results, dys, strict=True) if y.requires_grad]
        inputs = {
            i: x
            for i, x in enumerate(trace.inputs)
            if x is not None and needs[i] and x.requires_grad
        }
        if not pairs or not inputs:
            return {}
        roots, root_grads = zip(*pairs, strict=True)
        with capture.capturing(), StateChange(grad_enabled=True):
            grads = grad(
                roots, list(inputs.values()), root_grads, create_graph=True, allow_unused=True
            )
        return dict(zip(inputs, grads, strict=True))

    def _or_zeros(self, capture: BlockCapture, dx: Tensor | None, x: Tensor) -> Tensor:
        if dx is not None:
            return dx
        with capture.capturing():
            made: Tensor = FUNCTORS_F.zeros(x.shape, dtype=x.dtype, device=x.device)
        return made


def with_kept(
    captures: Sequence[BlockCapture], visible: Sequence[tuple[str, ...]], keeps: bool
) -> tuple[tuple[str | None, ...], ...]:
    """Return for each block its results, the variables that it keeps, and None for the rest."""
    if not keeps:
        return tuple(visible)
    own = [c.kept(names) for c, names in zip(captures, visible, strict=True)]
    outputs: list[tuple[str | None, ...]] = []
    for i, names in enumerate(visible):
        blanks = [kept if k == i else (None,) * len(kept) for k, kept in enumerate(own)]
        outputs.append((*names, *[name for part in blanks for name in part]))
    return tuple(outputs)


def kept_names(outputs: Sequence[Sequence[str | None]], visible: int) -> tuple[str, ...]:
    """Return the names of the variables that blocks keep, in the order of the outputs."""
    kept = zip(*[names[visible:] for names in outputs], strict=True)
    return tuple([next(name for name in column if name) for column in kept])


def replayed(op: str, body: Block, kept: tuple[str, ...]) -> Block:
    """Return a body that takes the variables it kept as inputs instead of making them again."""
    if not kept:
        return body
    trace = trace_of(body)
    around = enclosing_block() or trace.scratch.global_block()
    key = (id(around.program), around.idx, kept)
    with _lock:
        known = trace.gradients.get(key)
        if known is None:
            block = around.program.create_block(around)
            trace.copy_to(block, kept)
            capture = BlockCapture(block, Captured(op, around.program), trace.constants)
            capture.finish([*trace.inputs, *[None] * len(kept)], trace.outputs)
            known = trace.gradients[key] = (around, block)
    return known[1]
