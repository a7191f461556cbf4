"""The CUDA-graph mode: the work of a run is captured once, and launched as a whole after that.

A graph reads and writes the addresses that it was captured with. So feeds are copied into buffers
that stay, and fetches are copied out of buffers. The arrays of persistable variables must stay the
same; with new arrays the work is captured again. CuPy refuses to capture calls of cuBLAS. An op
that calls cuBLAS runs between two graphs, and its result is copied to the address that the next
graph reads.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from oneflow_lite.arrays.device import Device, current_stream, on_device, on_stream
from oneflow_lite.errors import ArgumentError, CaptureError, arg_error
from oneflow_lite.ops.cudnn import NotPrepared
from oneflow_lite.static.ir.memory import memory_roots, shaped
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.instruction import RUNS_KERNEL, Instruction
from oneflow_lite.static.runtime.runner import Analysis, Runner, Stop, frames, of_stream, within
from oneflow_lite.static.runtime.straight_line import op_and_line

_captures = threading.local()


@contextlib.contextmanager
def _outside_of_capture(device: Device) -> Iterator[None]:
    """Go back to the stream and the memory that this thread had before it began to capture.

    A signal handler or a finalizer may call in the middle of that.
    """
    before = getattr(_captures, "before", None)
    if before is None:
        yield
        return
    stream, allocator = before
    _captures.before = None
    try:
        with on_stream(device, stream) as cupy, cupy.cuda.using_allocator(allocator):
            yield
    finally:
        _captures.before = before


class CudaGraph(Runner):
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
        self.stays = {n for n in core.slots if roots.get(n, n) in core.external_names}
        # Feeds are written, and results come to the host, after the last step.
        moves = any(i.stream in ("h2d", "d2h") for i in self.ops)
        self.in_order = not (moves or core.written.intersection(core.plan.feeds))
        self.uncaptured: set[str] = set()  # types of ops that CuPy refuses to capture
        self._idle: list[_Graphs] = []  # those that nobody launches

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
            f"({op_and_line(op)})"
        )

    def fill(self, fetched: list[Any], feeds: Sequence[Any], externals: Sequence[Any]) -> None:
        """Run once; see `Runner.fill`."""
        with on_device(self.device), _outside_of_capture(self.device):
            stream = current_stream(self.device)
            try:
                graphs = of_stream(self._idle, stream)
            except IndexError:
                graphs = _Graphs(self)
            graphs.used_on = stream
            try:
                graphs.fill(fetched, feeds, externals)
            finally:
                self._idle.append(graphs)

    def stop_of(self, error: BaseException, fetched: list[Any]) -> Stop | None:
        """Say where the run that an exception ended was; None when it had not begun."""
        for at in frames(error):
            here = at.tb_frame.f_locals
            if at.tb_frame.f_code is _Graphs.launch.__code__ and here["fetched"] is fetched:
                graphs: _Graphs = here["self"]
                return graphs.stop(within(error, RUNS_KERNEL))
        return None


class _Graphs:
    """The graphs of one capture, with their buffers, for one run at a time.

    The buffers belong to one stream: a second stream may reach them while work is under way.
    """

    used_on: Any = None

    def __init__(self, runner: CudaGraph) -> None:
        self.runner = runner
        self.core = runner.core
        self.device = runner.device
        self.externals: list[Any] | None = None
        self.steps: list[Callable[[], None]] = []
        self.ops: list[list[OpDesc]] = []  # of each step
        self._done = 0  # how many steps of the present launch are
        self.uncaptured = set(runner.uncaptured)
        self._slots: list[Any] = []
        self._pool: Any = None
        self._stream: Any = None

    def fill(self, fetched: list[Any], feeds: Sequence[Any], externals: Sequence[Any]) -> None:
        """Run once; with other arrays for the persistable variables everything is captured anew."""
        bound = self.externals
        if bound is None or any(a is not b for a, b in zip(bound, externals, strict=True)):
            self._capture(feeds, externals)
        self.launch(fetched, feeds)

    # Capture

    def _capture(self, feeds: Sequence[Any], externals: Sequence[Any]) -> None:
        with on_device(self.device) as cupy:
            if self._stream is None:
                self._stream = cupy.cuda.Stream(non_blocking=True)
            stream = current_stream(self.device)
            stream.synchronize()  # a launch may still use what is dropped now
            self.externals = None
            _captures.before = (stream, cupy.cuda.get_allocator())
            try:
                while (refused := self._capture_with_pool(cupy, feeds, externals)) is not None:
                    if refused:
                        self.uncaptured.add(refused)
                        self.runner.uncaptured.add(refused)
            finally:
                _captures.before = None
            self.externals = list(externals)

    def _capture_with_pool(
        self, cupy: Any, feeds: Sequence[Any], externals: Sequence[Any]
    ) -> str | None:
        self._pool = cupy.cuda.MemoryPool()  # nobody else may be given this memory
        with cupy.cuda.using_allocator(self._pool.malloc):
            self._prepare(cupy, feeds, externals)
            return self._capture_all()

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
        for instruction in self.runner.ops:
            if instruction.stream == "h2d" or self._runs_between(instruction):
                self._reserve(cupy, instruction)

    def _reserve(self, cupy: Any, instruction: Instruction) -> None:
        assert instruction.op is not None
        for name in instruction.op.new_outputs:
            desc = self.core.plan.block.var(name)
            piece = cupy.empty(desc.nbytes, "uint8").view(desc.dtype)
            self._slots[self.core.slots[name]] = shaped(piece, desc)

    def _runs_between(self, instruction: Instruction) -> bool:
        return instruction.op is not None and instruction.op.type in self.uncaptured

    def _capture_all(self) -> str | None:
        """Capture everything; return the type of the first op that cannot be captured, if any.

        An op may only need something before, which is there now: then the answer is "".
        """
        self.steps, self.ops = [], []
        batch: list[Instruction] = []
        for instruction in [*self.runner.body, None]:
            between = instruction is None or self._runs_between(instruction)
            divides = instruction is not None and instruction.op is self.runner.divides_at
            if batch and (between or divides):
                refused = self._capture_batch(batch)
                if refused is not None:
                    return refused
                batch = []
            if instruction is not None and between:
                self._add(self._between(instruction), [instruction])
            elif instruction is not None:
                batch.append(instruction)
        return None

    def _capture_batch(self, batch: list[Instruction]) -> str | None:
        stream = self._stream
        with on_stream(self.device, stream) as cupy:
            stream.begin_capture()
            for instruction in batch:
                try:
                    instruction.execute(self._slots)
                except BaseException as error:
                    # An interrupted capture is useless, and ending it may raise as well.
                    with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):
                        stream.end_capture()
                    assert instruction.op is not None
                    if isinstance(error, NotPrepared):
                        error.prepare()
                        return ""
                    if isinstance(error, NotImplementedError):
                        return instruction.op.type
                    if not isinstance(error, Exception):
                        raise
                    if "apturing" not in str(error) and "Capture" not in str(error):
                        error.add_note(op_and_line(instruction.op))
                        raise
                    raise CaptureError(
                        f"a CUDA graph cannot repeat op {instruction.op.type!r}, which waits for "
                        f"the device; use another mode ({op_and_line(instruction.op)})"
                    ) from error
            self._add(stream.end_capture().launch, batch)
        return None

    def _add(self, step: Callable[[], None], instructions: Sequence[Instruction]) -> None:
        self.steps.append(step)
        self.ops.append([i.op for i in instructions if i.op is not None])

    def _between(self, instruction: Instruction) -> Callable[[], None]:
        """Return a function that runs an op between two graphs."""

        def step() -> None:
            slots = list(self._slots)
            try:
                instruction.execute(slots)
            except Exception as error:
                assert instruction.op is not None
                error.add_note(op_and_line(instruction.op))
                raise
            for slot in instruction.outputs:
                if slots[slot] is not self._slots[slot]:
                    self._slots[slot][...] = slots[slot]

        return step

    # Launch

    def launch(self, fetched: list[Any], feeds: Sequence[Any]) -> None:
        """Copy the feeds in, launch the steps in order, and copy the fetches out."""
        core, slots = self.core, self._slots
        self._done = 0
        given = dict(zip(core.plan.feeds, feeds, strict=True))
        on_host: dict[int | None, Any] = {}
        for name, array in given.items():
            if slots[core.slots[name]] is None:
                on_host[core.slots[name]] = array
            else:
                slots[core.slots[name]][...] = array
        for instruction in self.runner.ops:
            if instruction.stream == "h2d":
                slots[instruction.outputs[0]].set(on_host[instruction.inputs[0]])
        for step in self.steps:
            step()
            self._done += 1
        for name in core.written.intersection(given):
            given[name][...] = slots[core.slots[name]]
        slots = list(slots)
        for instruction in self.runner.ops:
            if instruction.stream == "d2h":
                instruction.execute(slots)
        fetched += [*[self._fetched(name, given, slots) for name in core.plan.fetches], False]

    def stop(self, kernel: TracebackType | None) -> Stop:
        """Describe the launch that an exception has ended, in a kernel if there is a traceback."""
        ops = self.ops[self._done] if self._done < len(self.ops) else []
        values = {
            i: self._fetched(name, {}, self._slots)
            for i, name in enumerate(self.core.plan.fetches)
            if self._slots[self.core.slots[name]] is not None
        }
        return Stop(ops[0] if ops else None, kernel, values)

    def _fetched(self, name: str, given: dict[str, Any], slots: list[Any]) -> Any:
        if name in given:
            return given[name]
        array = slots[self.core.slots[name]]
        from_device = self.core.plan.block.var(name).device.type == "cpu"
        return array if from_device or name in self.runner.stays else array.copy()
