"""Tapes: the arrays of its iterations that a loop keeps for its gradient.

To a Program a tape is an empty array, a variable like any other: `while_loop` makes it,
`while_loop_grad` takes it, and it is freed when nothing holds it any more. Its entries are found by
the identity of that array, because no array could hold them: their number is known only in a run.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import FlowError

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
    found = _entries.get(id(tape))
    if found is None:
        raise FlowError(
            "while_loop: what the loop kept for its gradient was copied or replaced, which loses "
            "it; leave out hooks that pack saved tensors"
        )
    return found
