"""Stand-ins for what runs at once: kernels, the nodes of backward calls, modules."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from sys import modules
from threading import get_ident
from time import perf_counter as clock
from typing import Any

import numpy as np
from numpy import ndarray

from oneflow_lite import op_expr as op_exprs
from oneflow_lite.autograd.gradient_rules import WrappedGradFunction
from oneflow_lite.autograd.graph_task import GraphTask
from oneflow_lite.autograd.node import FunctionNode
from oneflow_lite.autograd.queued_run import QueuedRun
from oneflow_lite.autograd.rule_namespace import NUMPY_F, KernelNamespace
from oneflow_lite.interpreter import EagerInterpreter
from oneflow_lite.nn.module import Module
from oneflow_lite.op_expr import OpExpr
from oneflow_lite.profiler.recorder import Put, Recorder, What, nbytes, replaced
from oneflow_lite.registry import Schema

# Ops that need no more of their first input than its shape.
_SHAPE_ONLY = frozenset("zeros_like ones_like dropout_mask empty_like full_like rand_like".split())
Kernel = Callable[..., Any]


def timed_kernel(op: OpExpr, run: Kernel, recorder: Recorder) -> Kernel:
    """Return what stands in for a kernel of the CPU."""
    what, schema = What(op.op_type_name, "op"), op.schema
    options, memory = recorder.options, recorder.options.memory
    extend, gone, ref = recorder.log.extend, recorder.log.append, weakref.ref
    note = _noting(recorder, what, schema)

    def timed(*arrays: Any, **attrs: Any) -> Any:
        start = clock()
        out = run(*arrays, **attrs)
        note(arrays, out, start, clock())
        return out

    # The same, with less to find out, for what most ops are: functions that make an array of one
    # or two.

    def timed_one(x: Any, **attrs: Any) -> Any:
        start = clock()
        out = run(x, **attrs) if attrs else run(x)
        end = clock()
        if type(out) is not ndarray or type(x) is not ndarray or (memory and out.base is not None):
            note((x,), out, start, end)
        elif memory:
            new = out.nbytes
            read, log = x.nbytes, (ref(out, gone), what, id(out), new)
            extend((what, start, end, get_ident(), read, new, None, *log))
        else:
            extend((what, start, end, get_ident(), x.nbytes, out.nbytes, None))
        return out

    def timed_two(x: Any, y: Any, **attrs: Any) -> Any:
        start = clock()
        out = run(x, y, **attrs) if attrs else run(x, y)
        end = clock()
        if type(out) is not ndarray or type(y) is not ndarray or (memory and out.base is not None):
            note((x, y), out, start, end)
            return out
        read = x.nbytes if x is y else x.nbytes + y.nbytes
        if memory:
            new = out.nbytes
            log = (ref(out, gone), what, id(out), new)
            extend((what, start, end, get_ident(), read, new, None, *log))
        else:
            extend((what, start, end, get_ident(), read, out.nbytes, None))
        return out

    chosen: Kernel = timed
    detailed = options.shapes or options.stack
    regular = not (schema.view_of or schema.written or schema.variadic or detailed)
    if regular and op.op_type_name not in _SHAPE_ONLY:
        chosen = {1: timed_one, 2: timed_two}.get(len(schema.inputs), timed)
    vars(chosen)["stands_for"] = run
    return chosen


def _noting(recorder: Recorder, what: What, schema: Schema) -> Callable[..., None]:
    """Return what writes down the call of any op."""
    aliases, written = schema.view_of is not None, schema.written
    reads = what.name not in _SHAPE_ONLY

    def note(arrays: Sequence[Any], out: Any, start: float, end: float, events: Any = None) -> None:
        read, size = _moved(arrays, out, reads, aliases, written)
        details = recorder.details(arrays, events)
        recorder.log.extend((what, start, end, get_ident(), read, size, details))
        if recorder.options.memory:
            known = {id(array) for array in arrays}
            for array in out if type(out) is tuple else (out,):
                if id(array) not in known and not (aliases and array.base is not None):
                    recorder.made(what, array)

    return note


def _moved(
    arrays: Sequence[Any], out: Any, reads: bool, aliases: bool, written: Sequence[int]
) -> tuple[int, int]:
    """Return the bytes that an op read and wrote."""
    results = out if type(out) is tuple else (out,)
    if aliases and all([getattr(y, "base", None) is not None for y in results]):
        return 0, 0
    targets = [arrays[i] for i in written if i < len(arrays)]
    known = {id(x) for x in targets}
    new = [y for y in results if id(y) not in known]
    return nbytes(arrays) if reads else 0, nbytes(targets) + nbytes(new)


def _original(kernel: Any) -> Any:
    """Return what a stand-in stands for; anything else is itself."""
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
    """Stand in for the long way through dispatch, which ops take that are asked for first."""
    apply = EagerInterpreter.apply
    noting: dict[str, Callable[..., None]] = {}

    def timed_apply(
        self: EagerInterpreter, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]
    ) -> Any:
        name, schema = op_expr.op_type_name, op_expr.schema
        note = noting.get(name)
        if note is None:
            note = noting[name] = _noting(recorder, What(name, "op"), schema)
        arrays = [None if x is None else x._data for x in inputs]
        events = _events() if "cupy" in modules else None
        start = clock()
        result = apply(self, op_expr, inputs, attrs)
        end = clock()
        results = result if type(result) is tuple else (result,)
        note(arrays, tuple([y._data for y in results]), start, end, events and events())
        run = op_expr.run_on_cpu
        if run is not None and _original(run) is run:
            op_expr.run_on_cpu = timed_kernel(op_expr, run, recorder)
        return result

    yield from replaced(EagerInterpreter, "apply", timed_apply)


def _events() -> Callable[[], Any] | None:
    """Begin to time what a stream of CUDA is given; None while it cannot be timed."""
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
    """Return what stands in for a kernel of a CUDA device."""
    note = _noting(recorder, What(op.op_type_name, "op"), op.schema)

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

    known = vars(NUMPY_F)
    kernels = {name: kernel for name, kernel in known.items() if name != "_xp"}
    for name in kernels:
        del known[name]
    yield from replaced(KernelNamespace, "__getattr__", timed_find)
    known.update({name: _original(kernel) for name, kernel in known.items()} | kernels)


def _nodes(recorder: Recorder) -> Iterator[None]:
    """Stand in for the ways in which a backward call goes through its nodes."""
    extend, memory = recorder.log.extend, recorder.options.memory
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

    def sent(task: Any, node: FunctionNode, function: Any) -> None:
        """Take note of gradients, which may be no kernel's results."""
        found = [task.not_ready.get(receiver) for receiver, _ in node.edges]
        if function is None and node.metas and node.metas[0]:
            found = [node.metas[0].acc_grad]
        for grad in found:
            array = getattr(grad, "_data", grad)
            if type(array) is ndarray:
                recorder.made(what_of(function), array)

    def turns(task: Any, nodes: Sequence[FunctionNode]) -> Iterator[FunctionNode]:
        thread, find = get_ident(), whats.get
        start = clock()
        for node in nodes:
            function = node.grad_function
            yield node
            end = clock()
            extend((find(function) or what_of(function), start, end, thread, 0, 0, None))
            if memory:
                sent(task, node, function)
                end = clock()
            start = end

    def timed_run(self: GraphTask, root: FunctionNode) -> None:
        start = clock()
        try:
            run(self, root)
        finally:
            extend((call, start, clock(), get_ident(), 0, 0, None))

    def timed_execute(self: Any, node: FunctionNode) -> None:
        start, function = clock(), node.grad_function
        execute(self, node)
        extend((what_of(function), start, clock(), get_ident(), 0, 0, None))
        if memory:
            sent(self.task, node, function)

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
    call, extend = Module.__call__, recorder.log.extend
    whats: dict[type, What] = {}

    def timed_call(self: Module, *args: Any, **kwargs: Any) -> Any:
        kind = type(self)
        what = whats.get(kind)
        if what is None:
            what = whats[kind] = What(f"nn.Module: {kind.__name__}", "module")
        start = clock()
        try:
            return call(self, *args, **kwargs)
        finally:
            extend((what, start, clock(), get_ident(), 0, 0, None))

    yield from replaced(Module, "__call__", timed_call)


instruments: list[Put] = [_kernels, _general_way, _rules, _nodes, _modules]
