"""The CUDA-graph mode: the work of a run is captured once, and launched as a whole after that.

A graph reads and writes the addresses that it was captured with. So feeds are copied into buffers
that stay, fetches are copied out of others, and the arrays of persistable variables must stay the
same; with others the work is captured again. CuPy refuses to capture calls of cuBLAS. Such ops run
between two graphs, and their results are copied to where the next graph reads them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.device import current_stream, on_device, on_stream
from oneflow_lite.errors import ArgumentError, CaptureError, arg_error
from oneflow_lite.locks import make_lock
from oneflow_lite.static.ir.aliases import memory_roots
from oneflow_lite.static.ir.layout import shaped
from oneflow_lite.static.runtime.analysis import Analysis
from oneflow_lite.static.runtime.instruction import Instruction
from oneflow_lite.static.runtime.straight_line import described


class CudaGraph:
    """Runs a core as CUDA graphs.

    Raises
    ------
    ArgumentError
        When the place is the CPU.
    CaptureError
        For an op that a graph cannot repeat: one that draws random numbers or runs on the host or
        another device and, at the first run, one that waits for the device.
    """

    def __init__(self, core: Analysis) -> None:
        self.core = core
        self.device = core.plan.place
        if self.device.type != "cuda":
            raise arg_error(
                "InterpreterCore",
                "mode",
                expected="'straight_line' or 'work_queue' on the CPU",
                got="'cuda_graph'",
                hint="choose one of these, or a CUDA place",
                kind=ArgumentError,
            )
        self.ops = [i for i in core.instructions if i.op is not None]
        self.body = [i for i in self.ops if i.stream not in ("h2d", "d2h")]
        for instruction in self.ops:
            self._check(instruction)
        roots = memory_roots(i.op for i in self.ops if i.op is not None)
        self._stays = {n for n in core.slots if roots.get(n, n) in core.external_names}
        self._uncaptured: set[str] = set()  # types of ops that CuPy refuses to capture
        self._externals: list[Any] | None = None
        self._slots: list[Any] = []
        self._steps: list[Callable[[], None]] = []
        self._pool: Any = None
        self._stream: Any = None
        self._lock = make_lock()  # the buffers serve one run at a time

    def _check(self, instruction: Instruction) -> None:
        op = instruction.op
        assert op is not None
        if op.schema.random:
            why = "draws random numbers, or chooses what to run"
        elif not instruction.stream or instruction.device != self.device:
            why = f"runs on {instruction.device}, not on {self.device}"
        elif instruction.stream != "compute" and instruction.kind != "transfer":
            why = "copies between devices"
        else:
            return
        raise CaptureError(
            f"a CUDA graph cannot repeat op {op.type!r}, which {why}; use another mode "
            f"({described(op)})"
        )

    def run(self, feeds: Sequence[Any], externals: Sequence[Any]) -> list[Any]:
        """Run once; see `InterpreterCore.run`."""
        with self._lock, on_device(self.device):
            bound = self._externals
            if bound is None or any(a is not b for a, b in zip(bound, externals, strict=True)):
                self._capture(feeds, externals)
            return self._launch(feeds)

    # Capture

    def _capture(self, feeds: Sequence[Any], externals: Sequence[Any]) -> None:
        with on_device(self.device) as cupy:
            if self._stream is None:
                self._stream = cupy.cuda.Stream(non_blocking=True)
            current_stream(self.device).synchronize()  # a launch may use the old buffers
            self._externals = None
            while True:
                self._pool = cupy.cuda.MemoryPool()  # this memory must not be given to others
                with cupy.cuda.using_allocator(self._pool.malloc):
                    self._prepare(cupy, feeds, externals)
                    refused = self._capture_all()
                if refused is None:
                    break
                self._uncaptured.add(refused)
            self._externals = list(externals)

    def _prepare(self, cupy: Any, feeds: Sequence[Any], externals: Sequence[Any]) -> None:
        """Make the buffers that the graphs read: feeds, and copies of feeds from the host."""
        core = self.core
        self._slots = list(core.constants)
        for name, array in zip(core.external_names, externals, strict=True):
            if name in core.slots:  # of some inputs only the shape is used
                self._slots[core.slots[name]] = array
        for name, array in zip(core.plan.feeds, feeds, strict=True):
            if core.plan.block.var(name).device.type == "cuda":
                self._slots[core.slots[name]] = cupy.empty_like(array)
        for instruction in self.ops:
            if instruction.stream == "h2d" or self._runs_between(instruction):
                self._reserve(cupy, instruction)

    def _reserve(self, cupy: Any, instruction: Instruction) -> None:
        assert instruction.op is not None
        for name in instruction.op.new_outputs:
            desc = self.core.plan.block.var(name)
            piece = cupy.empty(desc.nbytes, "uint8").view(desc.dtype)
            self._slots[self.core.slots[name]] = shaped(piece, desc)

    def _runs_between(self, instruction: Instruction) -> bool:
        return instruction.op is not None and instruction.op.type in self._uncaptured

    def _capture_all(self) -> str | None:
        """Capture everything; return the type of the first op that cannot be captured, if any."""
        self._steps = []
        batch: list[Instruction] = []
        for instruction in [*self.body, None]:
            if instruction is not None and not self._runs_between(instruction):
                batch.append(instruction)
                continue
            if batch:
                refused = self._capture_batch(batch)
                if refused is not None:
                    return refused
                batch = []
            if instruction is not None:
                self._steps.append(self._between(instruction))
        return None

    def _capture_batch(self, batch: list[Instruction]) -> str | None:
        stream = self._stream
        with on_stream(self.device, stream) as cupy:
            stream.begin_capture()
            for instruction in batch:
                try:
                    instruction.execute(self._slots)
                except Exception as error:
                    # An interrupted capture is useless, and ending it may raise as well.
                    with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):
                        stream.end_capture()
                    assert instruction.op is not None
                    if isinstance(error, NotImplementedError):
                        return instruction.op.type
                    if "apturing" not in str(error) and "Capture" not in str(error):
                        error.add_note(described(instruction.op))
                        raise
                    raise CaptureError(
                        f"a CUDA graph cannot repeat op {instruction.op.type!r}, which waits for "
                        f"the device; use another mode ({described(instruction.op)})"
                    ) from error
            self._steps.append(stream.end_capture().launch)
        return None

    def _between(self, instruction: Instruction) -> Callable[[], None]:
        """Return a function that runs an op between two graphs."""

        def step() -> None:
            slots = list(self._slots)
            try:
                instruction.execute(slots)
            except Exception as error:
                assert instruction.op is not None
                error.add_note(described(instruction.op))
                raise
            for slot in instruction.outputs:
                if slots[slot] is not self._slots[slot]:
                    self._slots[slot][...] = slots[slot]

        return step

    # Launch

    def _launch(self, feeds: Sequence[Any]) -> list[Any]:
        core, slots = self.core, self._slots
        given = dict(zip(core.plan.feeds, feeds, strict=True))
        on_host: dict[int | None, Any] = {}
        for name, array in given.items():
            if slots[core.slots[name]] is None:
                on_host[core.slots[name]] = array
            else:
                slots[core.slots[name]][...] = array
        for instruction in self.ops:
            if instruction.stream == "h2d":
                slots[instruction.outputs[0]].set(on_host[instruction.inputs[0]])
        for step in self._steps:
            step()
        for name in core.written.intersection(given):
            given[name][...] = slots[core.slots[name]]
        slots = list(slots)
        for instruction in self.ops:
            if instruction.stream == "d2h":
                instruction.execute(slots)
        return [self._fetched(name, given, slots) for name in core.plan.fetches]

    def _fetched(self, name: str, given: dict[str, Any], slots: list[Any]) -> Any:
        if name in given:
            return given[name]
        array = slots[self.core.slots[name]]
        from_device = self.core.plan.block.var(name).device.type == "cpu"
        return array if from_device or name in self._stays else array.copy()
