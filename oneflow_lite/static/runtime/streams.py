"""The CUDA streams of one run: copies on streams of their own, and events where streams meet.

Computation goes to the caller's stream, so results are in the caller's order. Memory goes back to
the stream that it was made on, after that stream has waited for the last use.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from oneflow_lite.arrays.device import Device, current_stream, on_device, on_stream
from oneflow_lite.static.ir.memory import memory_roots
from oneflow_lite.static.runtime.dependencies import EVENT
from oneflow_lite.static.runtime.instruction import Instruction

Place = tuple[Device, str]


class CoreStreams:
    """The streams of a core, for all its runs, and the variables that share memory."""

    def __init__(self, instructions: Sequence[Instruction], slots: dict[str, int]) -> None:
        roots = memory_roots(i.op for i in instructions if i.op is not None)
        self.root = {slot: slots.get(roots.get(n, n), slot) for n, slot in slots.items()}
        self.places = dict.fromkeys((i.device, i.stream) for i in instructions if i.stream)
        self.made_on = {s: i for i in instructions if i.stream == "h2d" for s in i.outputs}
        self._own: dict[Place, Any] = {}

    def stream(self, place: Place) -> Any:
        """Return the stream of a place; those for copies are made at the first use."""
        device, name = place
        if name == "compute":
            return current_stream(device)
        if place not in self._own:
            with on_device(device) as cupy:
                self._own[place] = cupy.cuda.Stream(non_blocking=True)
        return self._own[place]


class RunStreams:
    """The streams during one run of a core; does nothing where all is on the host."""

    def __init__(self, shared: CoreStreams, edge_kinds: dict[tuple[int, int], str]) -> None:
        self.shared = shared
        self.waits: defaultdict[int, list[int]] = defaultdict(list)
        self.marked: set[int] = set()
        self.events: dict[int, Any] = {}
        self.used: defaultdict[int, set[Place]] = defaultdict(set)
        self.streams: dict[Place, Any] = {}
        if self.shared.places:
            for (i, j), kind in edge_kinds.items():
                if kind == EVENT:
                    self.waits[j].append(i)
                    self.marked.add(i)

    def begin(self) -> None:
        """Make the streams for copies wait for the caller's work so far."""
        for place in self.shared.places:
            self.streams[place] = self.shared.stream(place)
            compute = (place[0], "compute")
            self.streams.setdefault(compute, self.shared.stream(compute))
            self._order(compute, place)

    def end(self) -> None:
        """Make the caller's stream wait for the streams for copies."""
        for place in self.shared.places:
            self._order(place, (place[0], "compute"))

    def before(self, instruction: Instruction, slots: list[Any]) -> AbstractContextManager[Any]:
        """Wait for events, and make the instruction's stream the current one."""
        if not self.shared.places:
            return contextlib.nullcontext()
        for i in self.waits[instruction.index]:
            event = self.events[i]
            if instruction.kind == "fetch":  # the caller gets it, on the caller's stream
                self._wait((event[0], "compute"), event[1])
            elif instruction.stream:
                self._wait((instruction.device, instruction.stream), event[1])
            else:
                event[1].synchronize()
        if not instruction.stream:
            return contextlib.nullcontext()
        place = (instruction.device, instruction.stream)
        for slot in instruction.slots:
            self.used[self.shared.root[slot]].add(place)
        return on_stream(place[0], self.streams[place])

    def after(self, instruction: Instruction) -> None:
        """Record the event that other instructions wait for."""
        if instruction.index in self.marked:
            place = (instruction.device, instruction.stream)
            with on_device(place[0]):
                self.events[instruction.index] = (place[0], self.streams[place].record())

    def before_drop(self, slot: int) -> None:
        """Make the stream that memory was made on wait for the other streams that used it."""
        if not self.shared.places:
            return
        root = self.shared.root[slot]
        used = self.used[root]
        maker = self.shared.made_on.get(root)
        for place in used:
            owner = (place[0], "compute") if maker is None else (maker.device, maker.stream)
            self._order(place, owner)

    def _order(self, first: Place, then: Place) -> None:
        if self.streams[first] == self.streams[then] and first[0] == then[0]:
            return
        with on_device(first[0]):
            event = self.streams[first].record()
        self._wait(then, event)

    def _wait(self, place: Place, event: Any) -> None:
        with on_device(place[0]):
            self.streams[place].wait_event(event)
