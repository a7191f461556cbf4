"""Ops as they run: a pushed interpreter writes down each op, its caller and its place."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from threading import get_ident
from typing import Any
from weakref import ref

from oneflow_lite.arrays.dtype_object import DTYPE_CLASSES
from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.explore.document import LeftOut, ModulePart, OpPart, Rebased
from oneflow_lite.explore.places import (
    REPLAY,
    Sources,
    Where,
    function_place,
    kernel_place,
    look_around,
)
from oneflow_lite.explore.seen import Seen
from oneflow_lite.explore.values import Values
from oneflow_lite.interpreter.stack import DEFAULT_STACK, Interpreter
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.node import FunctionNode
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.transforms.levels import BETWEEN, TransformInterpreter, levels_of

_WIDTH = 80  # characters of an attribute


class Modules:
    """Names each module that is called by the outermost module and the path down from it."""

    def __init__(self) -> None:
        self.parts: dict[str, ModulePart] = {}
        # By id: weak reference, name, the names of all modules in it by their ids.
        self._roots: dict[int, tuple[Any, str, dict[int, str]]] = {}
        self._counts: dict[str, int] = {}

    def path(self, called: Sequence[Any]) -> str:
        """Return the path of the innermost of the modules that are being called."""
        if not called:
            return ""
        root, module = called[0], called[-1]
        known = self._roots.get(id(root))
        if known is None or known[0]() is not root:
            kind = type(root).__name__
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            known = ref(root), f"{kind}#{count}" if count > 1 else kind, {}
            self._roots[id(root)] = known
        _, start, names = known
        if id(module) not in names:  # new, or a child that was added later
            for name, child in root.named_modules():
                path = names[id(child)] = f"{start}.{name}" if name else start
                self.parts.setdefault(path, ModulePart(path=path, kind=type(child).__name__))
        if id(module) not in names:  # called, but a child of no module
            path = names[id(module)] = f"{start}.<{type(module).__name__}>"
            self.parts[path] = ModulePart(path=path, kind=type(module).__name__)
        return names[id(module)]

    def roots(self) -> Iterator[tuple[str, Any]]:
        """Yield the outermost modules that still exist, with their names."""
        for reference, name, _ in self._roots.values():
            if (root := reference()) is not None:
                yield name, root


class Recorder:
    """The log of an exploration: ops, and the tensors, nodes, modules and sources they name.

    Attributes
    ----------
    seen : Seen
    sources : Sources
    modules : Modules
    ops : list of OpPart
    turns : object
        The film, which knows the backward call and node of a running op.
    limit : int
        How many ops are written down.
    left_out : LeftOut
    lock : lock
        Held for each entry: threads of several devices work at one backward call.
    """

    def __init__(self, values: bool, limit: int) -> None:
        self.limit = limit
        self.left_out = LeftOut(ops=0, runs=0)
        self.values = Values(values)
        self.seen = Seen(self.values)
        self.sources = Sources()
        self.modules = Modules()
        self.ops: list[OpPart] = []
        self.turns: Any = None
        self.lock = make_lock()
        self._threads: dict[int, int] = {get_ident(): 0}
        self._kernels: dict[tuple[str, str], str] = {}
        # Tensors that an op wrote: an in-place functor sets their history only after the op.
        self._written: list[tuple[OpPart, Any]] = []

    def is_full(self) -> bool:
        """Return whether only backward calls that have begun are still written down."""
        return len(self.ops) >= self.limit

    def where(self) -> Where:
        """Return the place from which the library was called."""
        return look_around(sys._getframe(1))

    # Ops

    def begin(self, op: OpExpr, inputs: Sequence[Any], attrs: dict[str, Any], below: Any) -> OpPart:
        """Write down an op that is about to run."""
        where = self.where()
        again = bool(where.functors) and where.functors[-1][0] == REPLAY
        if not again:
            self.settle()
        names = [*op.schema.inputs]
        names += [f"{op.schema.variadic}[{k}]" for k in range(len(inputs) - len(names))]
        seen = [None if x is None else self.seen.tensor(x) for x in inputs]
        interpreters = []
        # Once a thread has used a transform, its interpreter stays, and hands all other ops on.
        inside = any([levels_of(x) for x in inputs]) or op.op_type_name in BETWEEN
        while below is not None:
            hands_on = isinstance(below, TransformInterpreter) and not inside
            if not isinstance(below, OpWatch) and not hands_on:
                interpreters.append(type(below).__name__)
            below = below.inner
        device = next((x.device for x in inputs if x is not None), attrs.get("device", "cpu"))
        kind = str(device).partition(":")[0]
        if (op.op_type_name, kind) not in self._kernels:
            self._kernels[op.op_type_name, kind] = kernel_place(op, kind)
        part = self._part(op.op_type_name, where)
        part["interpreters"], part["kernel"] = interpreters, self._kernels[op.op_type_name, kind]
        part["inputs"], part["parameters"] = seen, names
        part["attrs"] = {name: self._told(value) for name, value in attrs.items()}
        part["writes"] = [i for k in op.schema.written if (i := seen[k]) is not None]
        for i, x in zip(seen, inputs, strict=True):
            if x is not None:
                part["versions"][str(i)] = [_version(x)]
        for x in inputs:
            if x is not None and not again:
                self._follow(x)
        return part

    def _part(self, name: str, where: Where) -> OpPart:
        run, by = self.turns.now()
        thread = self._threads.setdefault(get_ident(), len(self._threads))
        functor = where.functors[-1][1] if where.functors else where.dispatched
        part = OpPart(
            id=len(self.ops), op=name, functor=functor,
            functors=[functor for functor, _ in where.functors], interpreters=[], kernel="",
            source=self.sources.place(where.source), module=self.modules.path(where.modules),
            inputs=[], outputs=[], parameters=[], attrs={}, node=None, saved=[], versions={},
            writes=[], written={}, rebased=[], run=run, by=by, thread=thread, alive=0, error=None,
        )  # fmt: skip
        self.ops.append(part)
        return part

    def end(self, part: OpPart, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        """Write down the results of an op."""
        for x in inputs:
            if x is not None:
                number = self.seen.tensor(x)
                part["versions"][str(number)][1:] = [_version(x)]
                if part["functors"][-1:] != [REPLAY]:
                    self._rebase(part, x)
        part["versions"] = {i: v for i, v in part["versions"].items() if v != [0, 0]}
        for x in inputs:
            if x is not None and (number := self.seen.tensor(x)) in part["writes"]:
                self._written.append((part, ref(x)))
                value = self.values.of(x._data)
                if value is not None:
                    part["written"][str(number)] = value
        self._join(part, outputs)
        part["alive"] = self.seen.memory.state()[0]

    def _join(self, part: OpPart, outputs: Sequence[Tensor]) -> None:
        """Join an op to its outputs, and the outputs to their nodes."""
        part["outputs"] = [self.seen.tensor(y) for y in outputs]
        for number, y in zip(part["outputs"], outputs, strict=True):
            self.seen.moved(y)
            if y._edge is None or number in part["writes"]:
                continue
            node = self.seen.nodes[self.seen.node(y._edge[0])]
            node["tensor"] = number if node["tensor"] is None else node["tensor"]

    def fail(self, part: OpPart, error: BaseException) -> None:
        """Write down that an op raised; the end of a run, as in `checkpoint`, is no error."""
        part["versions"] = {}
        part["error"] = self.say(error) if isinstance(error, Exception) else None
        part["alive"] = self.seen.memory.state()[0]

    def say(self, error: BaseException) -> str:
        """Return an error as text; its class alone where values are left out."""
        kind = type(error).__name__
        return f"{kind}: {error}" if self.values.shown else kind

    def _told(self, value: Any) -> str:
        """Return an attribute as text; numbers that may be data are values."""
        structural = isinstance(value, (bool, int, str, *DTYPE_CLASSES, type(None)))
        # Shapes and dims say how an op works; other numbers may be the user's data.
        if type(value) is tuple and all(type(each) is int for each in value):
            structural = True
        if not (structural or self.values.shown):
            return "…"
        if type(value) in (list, tuple) and len(value) > _WIDTH:
            value = [*value[:_WIDTH], "..."]
        text = " ".join(str(getattr(value, "__qualname__", value)).split())
        return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 4]} ..."

    # Histories

    def _follow(self, x: Tensor) -> None:
        """Remember from which nodes a tensor and its base come."""
        self.seen.moved(x)
        if x._view is not None:
            self.seen.moved(x._view.base)

    def _rebase(self, part: OpPart, x: Tensor) -> None:
        """Note on an op that it changed the history of a tensor or of its base."""
        for each in (x,) if x._view is None else (x._view.base, x):
            old, new = self.seen.moved(each) or (None, None)
            node = None if new is None else self.seen.nodes[new]
            if node is not None and node["kind"] != "leaf":  # requires_grad_() makes a leaf
                number = self.seen.tensor(each)
                part["rebased"].append(Rebased(tensor=number, old=old, new=new))
                if node["op"] is None:
                    node["op"] = part["id"]

    def settle(self) -> None:
        """Find the histories that writes changed since the last call."""
        written, self._written = self._written, []
        for part, reference in written:
            x = reference()
            if x is not None:
                self._rebase(part, x)

    def join_node(self, part: OpPart, name: str, first: int) -> None:
        """Join an op to the node that recorded it, the last node of its name."""
        for node in reversed(self.seen.nodes[first:]):
            if node["name"] == name:
                part["node"], part["saved"] = node["id"], node["saved"]
                node["op"] = part["id"]
                break

    # Nodes

    def made(self, node: FunctionNode, outputs: Sequence[Tensor]) -> None:
        """Write down a new node; a custom Function's call is an op of its own."""
        for y in outputs:
            self.seen.tensor(y)
        number = self.seen.node(node)
        part = self.seen.nodes[number]
        where = self.where()
        part["source"] = self.sources.place(where.source)
        part["module"] = self.modules.path(where.modules)
        part["layer"], part["made_by"] = self.turns.layer()
        if part["kind"] == "function":
            op = self._part(node.name().removesuffix("Backward"), where)
            op["kernel"] = function_place(node.grad_function.function.forward)
            op["inputs"] = [self.seen.nodes[edge["to"]]["tensor"] for edge in part["edges"]]
            op["parameters"] = ["" for _ in op["inputs"]]
            op["outputs"] = [self.seen.tensor(y) for y in outputs]
            op["alive"] = self.seen.memory.state()[0]
            part["tensor"] = op["outputs"][0]
            part["op"], op["node"], op["saved"] = op["id"], number, part["saved"]


class OpWatch(Interpreter):
    """The interpreter that an exploration pushes."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op and write it down."""
        recorder = self.recorder
        if recorder.is_full():
            recorder.left_out["ops"] += 1
            return super().apply(op_expr, inputs, attrs)
        with recorder.lock:
            part = recorder.begin(op_expr, inputs, attrs, self.inner)
            first = len(recorder.seen.nodes)
        state, below = local.state, self.inner
        if state.interpreter is self:  # called from above, so the state is set as dispatch does
            local.state = state.replace(interpreter=None if below is DEFAULT_STACK else below)
        try:
            result = super().apply(op_expr, inputs, attrs)
        except BaseException as error:
            with recorder.lock:
                recorder.fail(part, error)
            raise
        finally:
            local.state = state
        with recorder.lock:
            outputs = result if type(result) is tuple else (result,)
            recorder.end(part, inputs, outputs)
            recorder.join_node(part, f"{op_expr.op_type_name}_backward", first)
        return result


def _version(x: Tensor) -> int:
    return 0 if x._storage is None else x._storage.version
