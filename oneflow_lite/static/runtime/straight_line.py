"""StraightLine: replays a plan as a generated Python function with a line for each op.

Kernels, buffers, constants and all views of memory with a fixed place are made once, as globals of
that function; a line is a bare call such as `k3(b1, b2, b4)`. The number of a line is the number of
its op, so an exception names its op without any bookkeeping at run time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import CPU, array_module, current_stream, on_device
from oneflow_lite.arrays.host_memory import give_back_freed_memory
from oneflow_lite.ops.function_writer import FunctionWriter
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.ir.location import GENERATED
from oneflow_lite.static.ir.memory import shaped
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.given_arrays import Mended, checked, fits
from oneflow_lite.static.runtime.instruction import device_of_op
from oneflow_lite.static.runtime.passes.memory import is_library
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.static.runtime.runner import Runner, Stop, frames, of_stream

_OUT_BY_NAME = (np.maximum, np.minimum)  # NumPy warns about a third positional argument of these
_LARGE = 1 << 25  # bytes of results
ALIGNMENT = 64  # of buffers: a cache line, which also suits vector instructions


class _Desk:
    """Buffers, and the function that was generated around them, for one run at a time.

    On a CUDA device a desk belongs to one stream: a second stream may reach its buffers while work
    is still under way.
    """

    __slots__ = ("arena", "buffers", "function", "lines", "plan", "source", "used_on", "writer")

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.buffers: dict[str, Any] = {}
        self.function: Any = None
        self.used_on: Any = None
        self.writer: _RunWriter | None = None
        self.lines: list[OpDesc] = []  # the op of each
        self.source = ""
        if plan.place == CPU and sum(desc.nbytes for desc in plan.block.vars.values()) > _LARGE:
            give_back_freed_memory()  # the memory that the recording had for them
        if plan.memory_plan.places:
            xp = array_module(plan.place)
            raw = xp.empty(plan.memory_plan.arena_bytes + ALIGNMENT, np.uint8)
            address = raw.ctypes.data if xp is np else raw.data.ptr
            self.arena = raw[-address % ALIGNMENT :]
            for name, (offset, nbytes) in plan.memory_plan.places.items():
                desc = plan.block.var(name)
                piece = self.arena[offset : offset + nbytes].view(desc.dtype)
                self.buffers[name] = shaped(piece, desc)


Bound = tuple[tuple[Any, ...] | None, list[_Desk]]


class StraightLine(Runner):
    """A plan that runs as a function of arrays.

    Parameters
    ----------
    plan : ExecutionPlan
        After its passes have run.
    external_names : sequence of str, optional
        The persistable variables, in the order in which runs are given them; by default the plan's.

    Attributes
    ----------
    source : str
        The generated code, once a run has made it.
    """

    def __init__(self, plan: ExecutionPlan, external_names: Sequence[str] = ()) -> None:
        self.plan = plan
        self.source = ""
        self.external_names = tuple(external_names) or plan.external_names
        # The arrays of the persistable variables, and the idle desks around them. A run takes a
        # desk out of the list and puts it back, which needs no lock.
        self._bound: Bound = (None, [])

    def fill(self, fetched: list[Any], feeds: Sequence[Any], externals: Sequence[Any]) -> None:
        """Run the plan.

        Parameters
        ----------
        fetched : list
            Gets the fetches, in memory of their own, and False at its end.
        feeds : sequence of array
            In the order of `plan.feeds`; one that an op writes is written.
        externals : sequence of array
            In the order of `external_names`.
        """
        bound = self._bound
        if bound[0] is None or not all(map(is_, bound[0], externals)):
            bound = self.bind(externals)
        self.fill_bound(fetched, feeds, bound)

    @property
    def building(self) -> str:
        """The machine code that is being built, in words; empty where there is none."""
        return ""

    def bind(self, externals: Sequence[Any]) -> Bound:
        """Take over arrays for the persistable variables; the code around them is made anew.

        The first is made by the first run: many a plan never runs.
        """
        arrays, idle = tuple(externals), self._bound[1]
        self._bound = (arrays, [self._desk(arrays, idle.pop())] if idle else [])
        return self._bound

    def fill_bound(
        self, fetched: list[Any], feeds: Sequence[Any], bound: Bound | None = None
    ) -> None:
        """Run with the arrays that `bind` took over."""
        externals, idle = bound or self._bound
        place = self.plan.place
        stream = None if place is CPU else current_stream(place)
        try:
            desk = idle.pop() if stream is None else of_stream(idle, stream)
        except IndexError:  # all desks are at work, or none was made yet
            desk = None
        if desk is None:
            assert externals is not None
            desk = self._desk(externals, None)
        try:
            if stream is None:
                desk.function(fetched, *feeds)
            else:
                desk.used_on = stream
                with on_device(place):
                    desk.function(fetched, *feeds)
        except Exception as error:
            _explain(error, desk)
            raise
        finally:
            idle.append(desk)

    def stop_of(self, error: BaseException, fetched: list[Any]) -> Stop | None:
        """Say where the run that an exception ended was; None when it had not begun."""
        for at in frames(error):
            frame = at.tb_frame
            if frame.f_code.co_filename == GENERATED and frame.f_locals["found"] is fetched:
                names = {**frame.f_globals, **frame.f_locals}
                position, lines = max(at.tb_lineno - 2, 0), names["lines"]
                op = lines[position] if position < len(lines) else None
                values = {i: names[n] for i, n in enumerate(names["results"]) if n in names}
                return Stop(op, at.tb_next, values)
        return None

    def _desk(self, externals: tuple[Any, ...], desk: _Desk | None) -> _Desk:
        with on_device(self.plan.place):
            if desk is None or desk.plan is not self.plan:
                desk = _Desk(self.plan)
            self._generate(externals, desk)
        return desk

    # Code

    def _generate(self, externals: tuple[Any, ...], desk: _Desk) -> None:
        plan, block = desk.plan, desk.plan.block
        fixed: dict[str, Any] = dict(zip(self.external_names, externals, strict=True))
        fixed.update({n: d.value for n, d in block.vars.items() if d.value is not None})
        writer = desk.writer = _RunWriter(fixed)
        desk.lines = []
        last_use = _last_uses(plan)
        for position, op in enumerate(plan.block.ops):
            lines = _lines(plan, op, writer, desk.buffers)
            if not lines:
                continue
            dying = [
                writer.local(name)
                for name in last_use.get(position, ())
                if name not in fixed and name in writer.assigned
            ]
            if dying:
                lines[-1] = (lines[-1][0], f"{lines[-1][1]}; del {', '.join(dying)}")
                writer.assigned.difference_update(last_use[position])
            for each, line in lines:
                writer.lines.append(line)
                desk.lines.append(each)
        results = [writer.name(n) for n in plan.fetches]
        writer.lines.append(f"found += {', '.join([*results, 'False'])},")
        writer.names.update(lines=desk.lines, results=results)
        parameters = ", ".join(["found", *[writer.local(n) for n in plan.feeds]])
        desk.function = writer.function(f"run({parameters})", GENERATED)
        self.source = desk.source = writer.source


def _lines(
    plan: ExecutionPlan, op: OpDesc, writer: _RunWriter, buffers: dict[str, Any]
) -> list[tuple[OpDesc, str]]:
    """Return the code of one op, and which op a line belongs to."""
    ops = op.attrs["run"].ops if op.type == "joined" else [op]
    looked_at = {*writer.looked_at}
    lines = [(o, line) for o in ops if (line := _line(plan, o, writer, buffers)) is not None]
    if op.type != "joined":
        return lines
    joined, fixed = op.attrs["run"], writer.fixed
    copies = any([o.viewed is not None for o, _ in lines])  # what was to be a view
    stay = {x for x in joined.table if isinstance(x, str) and x in fixed}
    strange = copies or not all([fits(fixed[x], plan.block.var(x)) for x in stay])
    run = None if strange else joined.bound(fixed)
    if run is None:  # one by one, then
        return lines
    writer.looked_at = looked_at  # those lines do not run
    code = [_new(plan, name, writer) for name in joined.made if name not in plan.in_place]
    new = [n for o in ops for n in o.new_outputs]
    for name in [n for n in new if n in plan.in_place and n not in fixed]:
        code.append(f"{writer.local(name)} = {writer.name(plan.in_place[name])}")
        writer.assigned.add(name)
    given = [
        writer.name(n) if n in joined.made else writer.checked(plan, n, n in joined.written)
        for n in joined.given
    ]
    code.append(f"{writer.value(run)}({', '.join(given)})")
    return [(op, "; ".join(code))]


def _new(plan: ExecutionPlan, name: str, writer: _RunWriter) -> str:
    """Return the code that makes an array of its own for a variable."""
    desc = plan.block.var(name)
    writer.assigned.add(name)
    make = functools.partial(array_module(desc.device).empty, desc.shape, desc.dtype)
    return f"{writer.local(name)} = {writer.value(make)}()"


def _line(
    plan: ExecutionPlan, op: OpDesc, writer: _RunWriter, buffers: dict[str, Any]
) -> str | None:
    """Return the code of one op; None for a view that stays where it is."""
    fixed = writer.fixed
    xp = array_module(device_of_op(op, plan.block))
    kernel, is_ufunc = bound_kernel(op, xp, plan.took_over)
    if op.viewed is not None and all(name is None or name in fixed for name in op.inputs):
        source = fixed[op.viewed]
        try:
            view = kernel(*[None if name is None else fixed[name] for name in op.inputs])
        except Exception as error:
            error.add_note(op_and_line(op))
            raise
        if not isinstance(view, tuple) and xp.may_share_memory(view, source):
            fixed[op.outputs[0]] = view
            return None
    function = writer.value(kernel)
    inputs = [
        writer.checked(plan, n) if op.type == "fused" and n is not None else writer.name(n)
        for n in op.inputs
    ]

    def call(*out: str) -> str:
        return f"{function}({', '.join([*inputs, *out])})"

    new = op.new_outputs
    if op.type == "fused":
        fixed.update({n: buffers[n] for n in new if n in buffers})
        lines = [_new(plan, name, writer) for name in new if name not in buffers]
        return "; ".join([*lines, call(*map(writer.name, new))])
    if not new:
        if op.type == "copy_" and plan.in_place.get(op.inputs[1] or "") == op.inputs[0]:
            return None  # it was computed in that place
        return call()
    out = None
    if len(new) == 1 and op.schema.out:
        taken = plan.in_place.get(new[0])
        if op.type == "clone" and taken == op.inputs[0]:  # of a variable that dies
            if taken in fixed:
                fixed[new[0]] = fixed[taken]
                return None
            writer.assigned.add(new[0])
            return f"{writer.local(new[0])} = {writer.name(taken)}"
        if taken is not None:
            out = writer.name(taken)
            if taken in fixed:
                fixed[new[0]] = fixed[taken]
                return call(out if is_ufunc else f"out={out}")
            writer.assigned.add(new[0])
            return f"{writer.local(new[0])} = {call(f'out={out}')}"
        if new[0] in buffers:
            fixed[new[0]] = buffers[new[0]]
            out = writer.name(new[0])
            return call(out if is_ufunc else f"out={out}")
    writer.assigned.update(new)

    def is_0d(name: str) -> bool:  # NumPy returns a scalar
        desc = plan.block.var(name)
        return xp is np and not desc.shape and desc.device.type == "cpu"

    targets = [writer.local(n) if n in new else "_" for n in op.outputs]
    made = [n for n in op.outputs if n in new]
    if len(op.outputs) > 1 or op.returns_tuple:
        lines = [f"{', '.join(targets)}, = {call()}"]
        lines += [f"{t} = asarray({t})" for n in made if is_0d(n) for t in [writer.local(n)]]
    elif is_0d(new[0]):
        lines = [f"{targets[0]} = asarray({call()})"]
    else:
        lines = [f"{targets[0]} = {call()}"]
    for name in made:
        writer.makers[name] = op
        if not is_library(op):  # its `infer` rule may say something else
            lines.append(writer.checked(plan, name))
    return "; ".join(lines)


class _RunWriter(FunctionWriter):
    """Writes the function; knows which variables it holds, and under which names."""

    def __init__(self, fixed: dict[str, Any]) -> None:
        super().__init__({"asarray": np.asarray})
        self.fixed = fixed  # variables whose array is known before the run
        self.assigned: set[str] = set()
        self.makers: dict[str, OpDesc] = {}  # of locals
        self._locals: dict[str, str] = {}
        self.looked_at: set[str] = set()  # locals that were checked

    def local(self, name: str) -> str:
        """Return the local that holds a variable."""
        return self._locals.setdefault(name, f"v{len(self._locals)}")

    def checked(self, plan: ExecutionPlan, name: str, is_written: bool = False) -> str:
        """Return the expression for an array that must be as its variable is described.

        A local is looked at where it is used first.
        """
        desc = plan.block.var(name)
        mended = Mended(desc, self.makers.get(name), is_written)
        if name in self.fixed:
            array = self.fixed[name]
            text = self.name(name)
            return text if fits(array, desc) else f"{self.value(mended)}({text})"
        if name in self.looked_at:
            return self.local(name)
        self.looked_at.add(name)
        return checked(self, self.local(name), mended)

    def name(self, name: str | None) -> str:
        """Return the expression for a variable."""
        if name is None:
            return "None"
        if name not in self.fixed:
            return self.local(name)
        return self.value(self.fixed[name])


def bound_kernel(op: OpDesc, xp: Any, loops: bool = False) -> tuple[Callable[..., Any], bool]:
    """Return an op's kernel with its attributes bound, and whether it takes `out` by position.

    With `loops` it is the one of eager mode, which goes over to loops on large arrays.
    """
    expr = op_expr(op.type)
    kernel = expr.on_cpu() if loops and xp is np else expr.kernel(xp)
    attrs = op.attrs
    if not op.inputs and "device" in attrs:  # of an op that creates
        attrs = {name: value for name, value in attrs.items() if name != "device"}
    if attrs:
        return functools.partial(kernel, **attrs), False
    is_ufunc = KERNELS.get(op.type).ufunc is not None and isinstance(kernel, np.ufunc)
    return kernel, is_ufunc and kernel not in _OUT_BY_NAME


def _last_uses(plan: ExecutionPlan) -> dict[int, list[str]]:
    """Return by position the temporaries that no later op names and that are not fetched."""
    last: dict[str, int] = {}
    for position, op in enumerate(plan.block.ops):
        for name in (*op.reads, *op.outputs):
            if plan.block.var(name).is_temporary:
                last[name] = position
    dying: dict[int, list[str]] = {}
    fetched = set(plan.fetches)
    for name, position in last.items():
        if name not in fetched:
            dying.setdefault(position, []).append(name)
    return dying


def _explain(error: Exception, desk: _Desk) -> None:
    """Add a note on the op that failed, and on the user's line that called it."""
    for at in frames(error):
        here = at.tb_frame.f_globals is desk.function.__globals__
        if here and at.tb_lineno < len(desk.lines) + 2:
            error.add_note(op_and_line(desk.lines[max(at.tb_lineno - 2, 0)]))


def op_and_line(op: OpDesc) -> str:
    """Return the note for an exception in an op."""
    if op.type == "joined":
        op = op.attrs["run"].named
    where = "" if op.location is None else f", captured at {op.location}"
    return f"in op {op.type!r}{where}"
