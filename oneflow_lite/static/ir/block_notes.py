"""Notes of control flow about a sub-block, while it is captured, differentiated and run."""

from __future__ import annotations

import weakref
from typing import Any

from oneflow_lite.static.ir.program import Block


class BlockNotes:
    """The notes that are kept with a sub-block.

    Attributes
    ----------
    block : weak reference
        The block itself: a copy of it, which begins with the notes of the original, tells by this
        that it needs its own.
    trace : Trace or None
        How it was captured, for its gradient; None for a block that was loaded.
    runners : dict
        The runners of the block, by feeds, fetches and device.
    checked : tuple of int and object
        How many changes of Programs there had been when the block was last looked at, and what it
        contained then.
    """

    def __init__(self, block: Block, trace: Any = None) -> None:
        self.block = weakref.ref(block)
        self.trace = trace
        self.runners: dict[Any, Any] = {}
        self.checked: tuple[int, Any] = (-1, None)


def notes_of(block: Block) -> BlockNotes:
    """Return the notes of a block, its own ones."""
    notes: BlockNotes | None = block.notes
    if notes is None or notes.block() is not block:
        notes = block.notes = BlockNotes(block, notes and notes.trace)
    return notes
