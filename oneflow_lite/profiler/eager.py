"""Stand-ins for eager code that time it: kernels, the nodes of backward calls, modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from sys import modules
from threading import get_ident
from time import perf_counter as clock
from types import FunctionType
from typing import Any
from weakref import getweakrefcount, ref

import numpy as np
from numpy import ndarray

from oneflow_lite import eager_loops, op_expr as op_exprs
from oneflow_lite.autograd.gradient_rules import WrappedGradFunction
from oneflow_lite.autograd.graph_task import GraphTask
from oneflow_lite.autograd.node import FunctionNode
from oneflow_lite.autograd.queued_run import QueuedRun
from oneflow_lite.autograd.rule_namespace import NUMPY_F, NUMPY_PARTS, KernelNamespace
from oneflow_lite.function_writer import FunctionWriter
from oneflow_lite.interpreter import EagerInterpreter
from oneflow_lite.nn.module import Module
from oneflow_lite.op_expr import OpExpr
from oneflow_lite.profiler.recorder import FILLS, SHAPE_ONLY, Put, Recorder, What, replaced
from oneflow_lite.registry import Schema

Kernel = Callable[..., Any]


def timed_kernel(op: OpExpr, run: Kernel, recorder: Recorder) -> Kernel:
    """Return a stand-in for a kernel of the CPU, which writes down its times and bytes.

    Most kernels make one array of a few. The stand-in is generated for each op: it has no test
    whose outcome is the same at all calls.
    """
    schema, options = op.schema, recorder.options
    what = What(op.op_type_name, "op", written=schema.written)
    names = {
        "run_": run, "note_": _noting(recorder, what, schema), "what_": what, "clock_": clock,
        "thread_": get_ident, "extend_": recorder.log.extend, "gone_": recorder.log.append,
        "ref_": ref, "ndarray_": ndarray,
    }  # fmt: skip
    lines = ["start_ = clock_()", "out_ = run_(*arrays_, **attrs_)"]
    parameters, arrays = "*arrays_, **attrs_", "arrays_"
    optional = getattr(getattr(run, "func", run), "__defaults__", None)
    irregular = schema.view_of or schema.written or schema.variadic or not schema.inputs or optional
    if not (irregular or options.shapes or options.stack or op.op_type_name in SHAPE_ONLY):
        inputs = schema.inputs
        parameters = ", ".join([*inputs, "**attrs_"] if schema.attrs else inputs)
        arrays = f"({', '.join(inputs)},)"
        sizes = [f"{inputs[0]}.nbytes"]
        for i, x in enumerate(inputs[1:], 1):  # an array that is given twice is read once
            same = " or ".join([f"{x} is {other}" for other in inputs[:i]])
            sizes.append(f"(0 if {same} else {x}.nbytes)")
        is_new = "type(out_) is ndarray_" + (" and out_.base is None" if options.memory else "")
        lines = [
            "start_ = clock_()",
            f"out_ = run_({parameters})",
            "end_ = clock_()",
            f"if {is_new}:",
            "    try:",
            f"        extend_((what_, start_, end_, thread_(), {' + '.join(sizes)}, out_.nbytes, "
            f"{'ref_(out_, gone_)' if options.memory else None}))",
            "        return out_",
            "    except AttributeError:  # a number was given",
            "        pass",
            f"note_({arrays}, out_, start_, end_)",
            "return out_",
        ]
    else:
        lines += ["note_(arrays_, out_, start_, clock_())", "return out_"]
    timed = FunctionWriter(names, lines).function(f"timed({parameters})", f"{__file__}, generated")
    vars(timed)["stands_for"] = run
    return timed  # type: ignore[no-any-return]


def _noting(recorder: Recorder, what: What, schema: Schema) -> Callable[..., None]:
    """Return a function that writes down a call of the op, whatever its inputs and results."""
    extend, memory = recorder.log.extend, recorder.options.memory
    detailed = recorder.options.shapes or recorder.options.stack
    aliases = schema.view_of is not None

    def note(arrays: Sequence[Any], out: Any, start: float, end: float, events: Any = None) -> None:
        results = out if type(out) is tuple else (out,)
        given = [(id(x), getattr(x, "nbytes", 0)) for x in arrays]
        if aliases and getattr(results[0], "base", None) is not None:
            given, results = [], ()
        taken = [(id(y), y.nbytes) for y in results]
        details = recorder.details(arrays, events) if detailed or events else None
        extend((what, start, end, get_ident(), given, taken, details))
        if memory:
            known = {id(array) for array in arrays}
            for array in results:
                if id(array) not in known:
                    recorder.made(what, array)

    return note


def _original(kernel: Any) -> Any:
    """Return the kernel behind a stand-in, or the kernel itself if it is none."""
    return getattr(kernel, "stands_for", kernel)


def _kernels(recorder: Recorder) -> Iterator[None]:
    """Stand in for the kernels of the short way through dispatch."""
    for op in list(op_exprs._OP_EXPRS.values()):
        if op.run_on_cpu is not None:
            op.run_on_cpu = timed_kernel(op, op.run_on_cpu, recorder)
    yield
    for op in list(op_exprs._OP_EXPRS.values()):
        if op.run_on_cpu is not None:
            op.run_on_cpu = _original(op.run_on_cpu)


def _general_way(recorder: Recorder) -> Iterator[None]:
    """Stand in for the long way through dispatch, which an op's first call takes."""
    apply, extend, options = EagerInterpreter.apply, recorder.log.extend, recorder.options
    found: dict[OpExpr, tuple[What, Callable[..., None], Sequence[int]]] = {}

    def find(op: OpExpr) -> tuple[What, Callable[..., None], Sequence[int]]:
        what, schema = What(op.op_type_name, "op", written=op.schema.written), op.schema
        # As optimizers' updates: several inputs, all different, of which some are written.
        regular = 0 < len(schema.written) < len(schema.inputs) and not schema.variadic
        if options.shapes or options.stack or what.name in FILLS:
            regular = False
        written = schema.written if regular else ()
        found[op] = what, _noting(recorder, what, schema), written
        return found[op]

    def timed_apply(
        self: EagerInterpreter, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]
    ) -> Any:
        what, note, written = found.get(op_expr) or find(op_expr)
        events = _events() if "cupy" in modules else None
        start = clock()
        result = apply(self, op_expr, inputs, attrs)
        end = clock()
        if written and (type(result) is not tuple or len(result) <= len(written)):
            read = size = 0
            for x in inputs:
                if x is not None:
                    read += x._data.nbytes
            for i in written:
                if inputs[i] is not None:
                    size += inputs[i]._data.nbytes
            extend((what, start, end, get_ident(), read, size, events and {"events": events()}))
            return result
        results = result if type(result) is tuple else (result,)
        arrays = [None if x is None else x._data for x in inputs]
        note(arrays, tuple([y._data for y in results]), start, end, events and events())
        run = op_expr.run_on_cpu
        if run is not None and _original(run) is run:
            op_expr.run_on_cpu = timed_kernel(op_expr, run, recorder)
        return result

    yield from replaced(EagerInterpreter, "apply", timed_apply)


def _single_updates(recorder: Recorder) -> Iterator[None]:
    """Run each update of an optimizer as an op of its own."""
    yield from replaced(eager_loops, "joins_updates", False)


def _events() -> Callable[[], Any] | None:
    """Begin to time the CUDA stream; return a function that ends that, None if not possible."""
    import cupy

    if not cupy.cuda.is_available() or cupy.cuda.get_current_stream().is_capturing():
        return None
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()

    def finished() -> Any:
        end.record()
        return begin, end

    return finished


def _timed_on_device(op: OpExpr, run: Kernel, recorder: Recorder) -> Kernel:
    """Return a stand-in for a kernel of a CUDA device."""
    note = _noting(recorder, What(op.op_type_name, "op", written=op.schema.written), op.schema)

    def timed(*arrays: Any, **attrs: Any) -> Any:
        events = _events()
        start = clock()
        out = run(*arrays, **attrs)
        note(arrays, out, start, clock(), events and events())
        return out

    return timed


def _rules(recorder: Recorder) -> Iterator[None]:
    """Stand in for the kernels that gradient rules take from `F`."""
    find = KernelNamespace.__getattr__

    def timed_find(self: KernelNamespace, name: str) -> Any:
        kernel = find(self, name)
        make = timed_kernel if self._xp is np else _timed_on_device
        timed = make(op_exprs.op_expr(name), kernel, recorder)
        setattr(self, name, timed)
        return timed

    namespaces = (vars(NUMPY_F), vars(NUMPY_PARTS))
    for known in namespaces:
        for name, kernel in list(known.items()):
            if name != "_xp":
                known[name] = timed_kernel(op_exprs.op_expr(name), kernel, recorder)
    yield from replaced(KernelNamespace, "__getattr__", timed_find)
    for known in namespaces:
        known.update({name: _original(kernel) for name, kernel in known.items()})


def _nodes(recorder: Recorder) -> Iterator[None]:
    """Stand in for the ways in which a backward call goes through its nodes."""
    extend, gone, memory = recorder.log.extend, recorder.log.append, recorder.options.memory
    run, run_nodes = GraphTask.run, GraphTask._run_nodes
    run_in_order, execute = GraphTask._run_in_order, QueuedRun._execute
    by_name: dict[str, What] = {}
    whats: dict[Any, What] = {}  # by gradient function
    call = What("backward", "backward")

    def what_of(function: Any) -> What:
        name = "accumulate_grad" if function is None else function.node_name
        what = by_name.get(name) or by_name.setdefault(name, What(name, "node"))
        if not isinstance(function, WrappedGradFunction):  # of which each node has its own
            whats[function] = what
        return what

    def sent(task: Any, node: FunctionNode, what: What) -> None:
        """Take note of gradients, which may be no kernel's results."""
        sums = task.not_ready
        for receiver, _ in node.edges:
            array = sums.get(receiver)
            if type(array) is ndarray and array.base is None and not getweakrefcount(array):
                extend((ref(array, gone), what, array.nbytes))
        if node.grad_function is None and node.metas and node.metas[0]:
            grad = node.metas[0].acc_grad
            if grad is not None and type(grad._data) is ndarray and not getweakrefcount(grad._data):
                recorder.made(what, grad._data)

    def turns(task: Any, nodes: Sequence[FunctionNode]) -> Iterator[FunctionNode]:
        thread, find = get_ident(), whats.get
        start = clock()
        for node in nodes:
            function = node.grad_function
            yield node
            end = clock()
            what = find(function) or what_of(function)
            extend((what, start, end, thread, 0, 0, None))
            if memory:
                sent(task, node, what)
            start = end

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

    puts = [
        replaced(GraphTask, "run", timed_run),
        replaced(GraphTask, "_run_nodes", lambda self, nodes: run_nodes(self, turns(self, nodes))),
        replaced(
            GraphTask, "_run_in_order", lambda self, nodes: run_in_order(self, turns(self, nodes))
        ),
        replaced(QueuedRun, "_execute", timed_execute),
    ]
    for put in puts:
        next(put)
    yield
    for put in puts:
        next(put, None)


def _modules(recorder: Recorder) -> Iterator[None]:
    """Stand in for the calls of modules, where they are asked for."""
    if not recorder.options.modules:
        yield
        return
    # Only the code changes: compiled functions are for this very function.
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


instruments: list[Put] = [_kernels, _general_way, _single_updates, _rules, _nodes, _modules]
