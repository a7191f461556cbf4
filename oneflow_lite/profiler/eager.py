"""Stand-ins for eager code that time it: kernels, the nodes of backward calls, modules."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import Parameter
from threading import get_ident
from time import perf_counter as clock
from types import FunctionType, MethodType
from typing import Any
from weakref import getweakrefcount, ref

import attrs
import numpy as np
from numpy import ndarray

from oneflow_lite.autograd.engine.graph_task import GraphTask
from oneflow_lite.autograd.engine.queued_run import QueuedRun
from oneflow_lite.autograd.engine.rule_namespace import NUMPY_F, NUMPY_PARTS, KernelNamespace
from oneflow_lite.autograd.rules.gradient_rules import WrappedGradFunction
from oneflow_lite.interpreter.stack import EagerInterpreter
from oneflow_lite.nn.module import Module
from oneflow_lite.ops import eager_loops, op_expr as op_exprs
from oneflow_lite.ops.function_writer import FunctionWriter
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.ops.registry import Schema
from oneflow_lite.profiler.recorder import (
    FILLS,
    SHAPE_ONLY,
    Lines,
    Put,
    Recorder,
    What,
    name_of_parts,
    replaced,
    together,
)
from oneflow_lite.tensors.node import FunctionNode

Kernel = Callable[..., Any]


@attrs.define(eq=False)
class _Timed(What):
    """A kernel that is timed. Its stand-in is a function with this object bound as first argument.

    So ops of the same form share a function. An event in the middle of a step meets a cold cache,
    and its cost is the memory that it touches.
    """

    run: Kernel = attrs.field(kw_only=True)
    note: Callable[..., None] = attrs.field(kw_only=True)

    @classmethod
    def kernel(cls, op: OpExpr, run: Kernel, recorder: Recorder, function: Kernel) -> Kernel:
        """Return a stand-in for a kernel, which runs `function`."""
        note, written = _noting(recorder, op.schema), op.schema.written
        own = cls(op.op_type_name, "op", written=written, run=run, note=note)
        return MethodType(function, own)


def timed_kernel(op: OpExpr, run: Kernel, recorder: Recorder) -> Kernel:
    """Return a stand-in for a kernel of the CPU, which writes down its times and bytes.

    Most kernels make an array of a few arrays. Their stand-ins are generated, so that a test whose
    outcome the op decides is made once and not in each call.
    """
    schema, options = op.schema, recorder.options
    function: Kernel = _timed
    optional = getattr(getattr(run, "func", run), "__defaults__", None)
    if not (options.shapes or options.stack or schema.variadic or not schema.inputs or optional):
        defaults = {n: x for n, x in schema.attrs.items() if x is not Parameter.empty}
        head = ", ".join(["own_", *schema.inputs, *(["*"] if schema.attrs else []), *schema.attrs])
        function = _generated(f"timed_({head})", tuple(_stand_in(op, options.memory)))
        if defaults:
            function = FunctionType(function.__code__, function.__globals__)
            function.__kwdefaults__ = defaults
    return _Timed.kernel(op, run, recorder, function)


def _timed(own: _Timed, *arrays: Any, **attrs: Any) -> Any:
    start = clock()
    out = own.run(*arrays, **attrs)
    own.note(own, arrays, out, start, clock())
    return out


# The globals of generated functions: one dictionary for all, so that Python's look-ups stay cached.
_SCOPE = {"clock_": clock, "thread_": get_ident, "ndarray_": ndarray, "ref_": ref}


# From these inputs on, an optimizer's update takes single numbers, whose bytes are not worth
# counting.
_FIRST_NUMBERS = ("step", "lr")


@cache
def _generated(head: str, lines: tuple[str, ...]) -> FunctionType:
    return FunctionWriter(_SCOPE, lines).function(head, f"{__file__}, generated")  # type: ignore[no-any-return]


def _stand_in(op: OpExpr, memory: bool) -> list[str]:
    """Return the lines of a stand-in; few lines, since they meet a cold cache."""
    schema, inputs, name = op.schema, op.schema.inputs, op.op_type_name
    arrays = inputs[: next((i for i, x in enumerate(inputs) if x in _FIRST_NUMBERS), len(inputs))]
    sizes = []
    for i, x in enumerate(arrays):
        size = f"{x}.nbytes"
        if schema.written:
            size = f"(size{i}_ := {size} if {x} is not None else 0)"
        elif i:  # an array passed twice is read once, and a third input may be None
            not_read = [f"{x} is {each}" for each in (*inputs[:i], *["None"] * (len(inputs) > 2))]
            size = f"(0 if {' or '.join(not_read)} else {size})"
        sizes.append(size)
    # Inputs and results without bytes, as numbers and tuples, raise AttributeError and go to
    # `note`.
    read, written, is_usual, new = sizes, ["out_.nbytes"], "", "None"
    if schema.written:
        is_usual = f"type(out_) is not tuple or len(out_) <= {len(schema.written)}"
        written = [f"size{i}_" for i in schema.written if i < len(arrays)]
        if name in FILLS:
            read = [size for i, size in enumerate(sizes) if i not in schema.written]
            written = [sizes[i] for i in schema.written]
    elif schema.view_of is not None:
        read, written, is_usual = [], [], "type(out_) is ndarray_ and out_.base is not None"
    elif memory:
        is_usual, new = "type(out_) is ndarray_ and out_.base is None", "ref_(out_, gone_)"
    if name in SHAPE_ONLY:
        read = []
    given = ", ".join([*inputs, *[f"{each}={each}" for each in schema.attrs]])
    moved = ", ".join([" + ".join(each) or "0" for each in (read, written)])
    noted = f"extend_((own_, start_, end_, thread_(), {moved}, {new}))"
    return [
        "run_ = own_.run",
        "start_ = clock_()",
        f"out_ = run_({given})",
        "end_ = clock_()",
        "try:",
        *([f"    if {is_usual}:", f"        {noted}", "        return out_"] if is_usual else []),
        *([] if is_usual else [f"    {noted}", "    return out_"]),
        "except AttributeError:",
        "    pass",
        f"own_.note(own_, ({', '.join(inputs)},), out_, start_, end_)",
        "return out_",
    ]


def _noting(recorder: Recorder, schema: Schema) -> Callable[..., None]:
    """Return a function that writes down a call of an op with any inputs and results."""
    extend, memory = recorder.log.extend, recorder.options.memory
    detailed = recorder.options.shapes or recorder.options.stack
    aliases = schema.view_of is not None

    def note(
        what: What, arrays: Sequence[Any], out: Any, start: float, end: float, events: Any = None
    ) -> None:
        results = out if type(out) is tuple else (out,)
        given = [(id(x), getattr(x, "nbytes", 0)) for x in arrays]
        if aliases and getattr(results[0], "base", None) is not None:
            given, results = [], ()
        taken = [(id(y), getattr(y, "nbytes", 0)) for y in results]
        details = recorder.details(arrays, events) if detailed or events else None
        extend((what, start, end, get_ident(), given, taken, details))
        if memory:
            known = {id(array) for array in arrays}
            for array in results:
                if id(array) not in known:
                    recorder.made(what, array)

    return note


def _original(kernel: Any) -> Any:
    """Return the kernel behind a stand-in; a kernel that is no stand-in comes back itself."""
    own = getattr(kernel, "__self__", None)
    return own.run if type(own) is _Timed else kernel


def _kernels(recorder: Recorder) -> Iterator[None]:
    """Stand in for the kernels of dispatch on the CPU."""
    find = OpExpr.on_cpu
    _SCOPE.update(extend_=recorder.log.extend, gone_=recorder.log.append)

    def stand_in(op: OpExpr) -> None:
        kernel = op.run_in_eager
        if kernel is not None and _original(kernel) is kernel:
            timed = timed_kernel(op, kernel, recorder)
            op.run_in_eager = timed
            if op.run_on_cpu is not None:
                op.run_on_cpu = timed

    def timed_find(self: OpExpr) -> Kernel:
        kernel = find(self)
        stand_in(self)
        return kernel

    for op in list(op_exprs._OP_EXPRS.values()):
        stand_in(op)
    yield from replaced(OpExpr, "on_cpu", timed_find)
    for op in list(op_exprs._OP_EXPRS.values()):
        op.run_on_cpu, op.run_in_eager = _original(op.run_on_cpu), _original(op.run_in_eager)
    _SCOPE.update(extend_=None, gone_=None)


def _devices(recorder: Recorder) -> Iterator[None]:
    """Stand in for the kernels of dispatch on CUDA devices."""
    find = EagerInterpreter.device_kernel
    by_op: dict[OpExpr, Kernel] = {}

    def timed_find(self: EagerInterpreter, op: OpExpr, xp: Any) -> Kernel:
        timed = by_op.get(op)
        if timed is None:
            timed = by_op[op] = _Timed.kernel(op, find(self, op, xp), recorder, _timed_on_device)
        return timed

    yield from replaced(EagerInterpreter, "device_kernel", timed_find)


def _updates(recorder: Recorder) -> Iterator[None]:
    """Stand in for `Updates.done`, which runs all updates of an optimizer's step in one loop."""
    done, extend = eager_loops.Updates.done, recorder.log.extend
    whats: dict[Any, What] = {}

    def timed_done(self: eager_loops.Updates, name: str, updates: Sequence[Any]) -> bool:
        start = clock()
        if not done(self, name, updates):
            return False
        end = clock()
        what = whats.get((name, len(updates)))
        if what is None:
            parts = (name,) * len(updates)
            what = whats[name, len(updates)] = What(
                name_of_parts("joined", parts), "op", parts=parts
            )
        extend((what, start, end, get_ident(), *self.moved, None))
        return True

    yield from replaced(eager_loops.Updates, "done", timed_done)


# Kernels of one op may go different ways, by sizes. The module of a way says which one it is.
_WAYS = {
    "conv_blocks": "conv weight_grad input_grad",
    "depthwise": "convolve weight_grad input_grad",
}


def _ways(recorder: Recorder) -> Iterator[None]:
    """Stand in for the ways of kernels, whose texts become notes of the ops that go them."""

    def timed(run: Kernel, way: str) -> Kernel:
        extend, what = recorder.log.extend, What(way, "way")

        def timed_way(*arrays: Any, **attrs: Any) -> Any:
            start = clock()
            out = run(*arrays, **attrs)
            if out is not False:  # a loop that is not built
                extend((what, start, clock(), get_ident(), 0, 0, None))
            return out

        return timed_way

    loop = eager_loops.Loop
    puts = [replaced(loop, "__call__", timed(loop.__call__, "a loop in machine code"))]
    for name, functions in _WAYS.items():
        module = importlib.import_module(f"oneflow_lite.kernels.{name}")
        puts += [
            replaced(module, function, timed(getattr(module, function), module.WAY))
            for function in functions.split()
        ]
    yield from together(*puts)


def _events() -> Callable[[], Any] | None:
    """Begin to time the CUDA stream; return a function that ends the timing, or None."""
    import cupy

    # Events that a CUDA graph captures cannot be read afterwards.
    if not cupy.cuda.is_available() or cupy.cuda.get_current_stream().is_capturing():
        return None
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()

    def finished() -> Any:
        end.record()
        return begin, end

    return finished


def _timed_on_device(own: _Timed, *arrays: Any, **attrs: Any) -> Any:
    """Stand in for a kernel of a CUDA device."""
    events = _events()
    start = clock()
    out = own.run(*arrays, **attrs)
    own.note(own, arrays, out, start, clock(), events and events())
    return out


def _rules(recorder: Recorder) -> Iterator[None]:
    """Stand in for the kernels that gradient rules take from `F`."""
    find = KernelNamespace.__getattr__
    namespaces = [vars(NUMPY_F), vars(NUMPY_PARTS)]

    def timed_find(self: KernelNamespace, name: str) -> Any:
        kernel, op = find(self, name), op_exprs.op_expr(name)
        known = vars(self)
        known[name] = op.run_in_eager
        if self._xp is not np:
            known[name] = _Timed.kernel(op, kernel, recorder, _timed_on_device)
            namespaces.append(known)
        return known[name]

    for known in namespaces:
        known.update({n: op_exprs.op_expr(n).run_in_eager for n in known if n != "_xp"})
    yield from replaced(KernelNamespace, "__getattr__", timed_find)
    for known in namespaces:
        known.update({name: _original(kernel) for name, kernel in known.items()})


def _nodes(recorder: Recorder) -> Iterator[None]:
    """Stand in for the methods by which a backward call goes through its nodes."""
    extend, gone, memory = recorder.log.extend, recorder.log.append, recorder.options.memory
    run, execute = GraphTask.run, QueuedRun._execute
    by_name: dict[str, What] = {}
    whats: dict[Any, What] = {}  # by gradient function
    find = whats.get
    call = What("backward", "backward")

    def what_of(function: Any) -> What:
        name = "accumulate_grad" if function is None else function.node_name
        what = by_name.get(name) or by_name.setdefault(name, What(name, "node"))
        if not isinstance(function, WrappedGradFunction):  # of these each node has its own
            whats[function] = what
        return what

    def sent(task: Any, node: FunctionNode, what: What) -> None:
        """Take note of gradients that a node made without a kernel."""
        sums = task.not_ready
        for receiver, _ in node.edges:
            array = sums.get(receiver)
            if type(array) is ndarray and array.base is None and not getweakrefcount(array):
                extend((ref(array, gone), what, array.nbytes))
        if node.grad_function is None and node.metas and node.metas[0]:
            grad = node.metas[0].acc_grad
            if grad is not None and type(grad._data) is ndarray and not getweakrefcount(grad._data):
                recorder.made(what, grad._data)

    def timed(nodes: Sequence[FunctionNode], ended: Callable[[float], None]) -> Iterator[Any]:
        for node in nodes:
            yield node
            ended(clock())

    def timed_and_sent(task: Any, nodes: Sequence[FunctionNode]) -> Iterator[Any]:
        start = clock()
        for node in nodes:
            what = find(node.grad_function) or what_of(node.grad_function)
            yield node
            end = clock()
            extend((what, start, end, get_ident(), 0, 0, None))
            sent(task, node, what)
            start = end

    def turns(run_nodes: Callable[..., None]) -> Callable[..., None]:
        def timed_nodes(self: GraphTask, nodes: Sequence[FunctionNode]) -> None:
            # The engine takes nodes from an iterator, which runs between two nodes: it sees the end
            # of each without a frame around it.
            if memory:
                run_nodes(self, timed_and_sent(self, nodes))
                return
            times = [clock()]
            try:
                run_nodes(self, timed(nodes, times.append))
            finally:  # a rule may raise
                whats = [find(node.grad_function) or what_of(node.grad_function) for node in nodes]
                extend((Lines(whats), get_ident(), times))

        return timed_nodes

    def timed_run(self: GraphTask, root: FunctionNode) -> None:
        start = clock()
        try:
            run(self, root)
        finally:
            extend((call, start, clock(), get_ident(), 0, 0, None))

    def timed_execute(self: Any, node: FunctionNode) -> None:
        start, what = clock(), what_of(node.grad_function)
        execute(self, node)
        extend((what, start, clock(), get_ident(), 0, 0, None))
        if memory:
            sent(self.task, node, what)

    yield from together(
        replaced(GraphTask, "run", timed_run),
        replaced(GraphTask, "_run_nodes", turns(GraphTask._run_nodes)),
        replaced(GraphTask, "_run_in_order", turns(GraphTask._run_in_order)),
        replaced(QueuedRun, "_execute", timed_execute),
    )


def _modules(recorder: Recorder) -> Iterator[None]:
    """Stand in for the calls of modules, if `with_modules` asks for these."""
    if not recorder.options.modules:
        yield
        return
    # Only the code changes: compiled functions hold this function itself.
    function, extend = vars(Module)["__call__"], recorder.log.extend
    code, names = function.__code__, function.__globals__
    call = FunctionType(code, names)
    whats: dict[type, What] = {}

    def timed_call(self: Module, args: Any, kwargs: Any) -> Any:
        kind = type(self)
        what = whats.get(kind)
        if what is None:
            what = whats[kind] = What(f"nn.Module: {kind.__name__}", "module")
        start = clock()
        try:
            return call(self, *args, **kwargs)
        finally:
            extend((what, start, clock(), get_ident(), 0, 0, None))

    names["_timed_call"] = timed_call
    function.__code__ = _call_of_module.__code__.replace(co_name=code.co_name)
    yield
    function.__code__ = code
    del names["_timed_call"]


def _call_of_module(self: Module, *args: Any, **kwargs: Any) -> Any:
    return _timed_call(self, args, kwargs)  # type: ignore[name-defined]  # noqa: F821


instruments: list[Put] = [_kernels, _devices, _updates, _ways, _rules, _nodes, _modules]
