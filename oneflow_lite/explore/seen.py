"""The tensors, memory and nodes that an exploration has met; nothing is kept alive."""

from __future__ import annotations

import contextlib
import functools
import math
from collections import deque
from collections.abc import Iterable
from typing import Any
from weakref import ref

from oneflow_lite.arrays.array_spec import owner
from oneflow_lite.autograd.engine.user_backward import CustomFunctionNode
from oneflow_lite.autograd.rules.gradient_rules import HookedGradFunction
from oneflow_lite.autograd.rules.saved_tensor import Packed, SavedTensor
from oneflow_lite.explore.document import (
    EdgePart,
    Gradient,
    NodePart,
    SavedPart,
    TensorPart,
)
from oneflow_lite.explore.places import rule_place, why_saved
from oneflow_lite.explore.values import Values
from oneflow_lite.nn.module import Module
from oneflow_lite.tensors.hooks import register_post_accumulate_hook
from oneflow_lite.tensors.node import AccumulateGrad, FunctionNode, GraphRoot
from oneflow_lite.tensors.tensor import Tensor

Named = tuple[str, Any]
dtype_name = functools.cache(str)  # NumPy takes long to name a dtype


class Memory:
    """The bytes of all memory that was seen; arrays that share memory count once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, int, int]] = {}  # by id: weak reference, number, bytes
        self._gone: deque[int] = deque()
        self._count = 0
        self._alive = 0
        self._freed = 0

    def number(self, array: Any) -> int:
        """Return the number of an array's memory; -1 where memory cannot be followed."""
        if not hasattr(array, "base"):
            return -1
        whole = owner(array)
        key = id(whole)
        known = self._known.get(key)
        if known is not None and known[0]() is whole:
            return known[1]
        self._settle()  # another array had this id before, and is gone
        gone = self._gone
        try:
            reference = ref(whole, lambda _: gone.append(key))
        except TypeError:
            return -1
        self._known[key] = reference, self._count, whole.nbytes
        self._alive += whole.nbytes
        self._count += 1
        return self._count - 1

    def _settle(self) -> None:
        while self._gone:
            _, _, size = self._known.pop(self._gone.popleft())
            self._alive -= size
            self._freed += size

    def state(self) -> tuple[int, int]:
        """Return the bytes that exist now, and the bytes that ceased to exist so far."""
        self._settle()
        return self._alive, self._freed


class Seen:
    """Numbers tensors and nodes in the order of their first appearance, and describes each.

    Attributes
    ----------
    tensors, nodes : list
        The parts of the document.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self.memory = Memory()
        self.tensors: list[TensorPart] = []
        self.nodes: list[NodePart] = []
        self._by_tensor: dict[int, tuple[Any, int]] = {}  # by id: weak reference, number
        self._by_array: dict[int, tuple[Any, int]] = {}
        self._by_node: dict[int, tuple[Any, int]] = {}
        self._came_from: dict[int, int | None] = {}  # the node of each tensor at the last look

    # Tensors

    def tensor(self, tensor: Tensor) -> int:
        """Return the number of a tensor."""
        number = _look_up(self._by_tensor, tensor)
        if number is None:
            number = self._new_tensor(tensor)
        part = self.tensors[number]
        edge = tensor._edge
        part["requires_grad"] = edge is not None
        if edge is not None and isinstance(edge[0], AccumulateGrad):
            part["leaf"] = True
            self.nodes[self.node(edge[0])]["tensor"] = number
        return number

    def _new_tensor(self, tensor: Tensor) -> int:
        view = tensor._view
        base = None if view is None else self.tensor(view.base)
        number = len(self.tensors)
        array = tensor._data
        self.tensors.append(
            TensorPart(
                id=number, name=tensor._name or "", shape=list(tensor.shape),
                dtype=dtype_name(tensor.dtype), device=str(tensor.device), bytes=_bytes(array),
                level=getattr(array, "told", ""), leaf=False, requires_grad=False, view_of=base,
                alias_of=_look_up(self._by_array, array), memory=self.memory.number(array),
                value=self.values.of(array),
            )
        )  # fmt: skip
        _keep(self._by_tensor, tensor, number)
        if self.tensors[number]["alias_of"] is None:
            _keep(self._by_array, array, number)
        return number

    def moved(self, tensor: Tensor) -> tuple[int | None, int | None] | None:
        """Return the nodes that a tensor came from before and comes from now, if they differ."""
        number = self.tensor(tensor)
        now = None if tensor._edge is None else self.node(tensor._edge[0])
        before = self._came_from.get(number, now)
        self._came_from[number] = now
        return None if before == now else (before, now)

    def named(self, names: Iterable[Named]) -> None:
        """Name tensors of the graph that have no name yet."""
        for name, tensor in names:
            edge = tensor._edge
            node = None if edge is None else _look_up(self._by_node, edge[0])
            number = _look_up(self._by_tensor, tensor) if node is None else self.tensor(tensor)
            if node is not None and edge[1] == 0 and self.nodes[node]["tensor"] is None:
                self.nodes[node]["tensor"] = number
            if number is not None and not self.tensors[number]["name"]:
                self.tensors[number]["name"] = name

    def gradient(self, output: int, grad: Any) -> Gradient:
        """Describe a gradient, an array or a tensor."""
        array = getattr(grad, "_data", grad)
        self.memory.number(array)
        return Gradient(
            output=output, shape=list(array.shape), dtype=dtype_name(array.dtype),
            bytes=_bytes(array), value=self.values.of(array),
        )  # fmt: skip

    # Nodes

    def node(self, node: FunctionNode) -> int:
        """Return the number of a node; all nodes that it leads to are numbered before it."""
        number = _look_up(self._by_node, node)
        if number is None:
            new = {node: None}  # no recursion: graphs are deeper than Python's stack
            stack = [node]
            while stack:
                for other, _ in stack.pop().edges:
                    if other is None or other in new or _look_up(self._by_node, other) is not None:
                        continue
                    new[other] = None
                    stack.append(other)
            for each in sorted(new, key=lambda each: each.sequence_nr):
                number = self._new_node(each)
        assert number is not None
        return number

    def _new_node(self, node: FunctionNode) -> int:
        number = len(self.nodes)
        _keep(self._by_node, node, number)
        shapes = [None if info is None else list(info.shape) for info in node.output_tensor_infos]
        edges = []
        for i, (other, index) in enumerate(node.edges):
            if other is not None:
                info = other.output_tensor_infos[index]
                edges.append(
                    EdgePart(
                        to=self.node(other), output=index, input=i,
                        shape=list(info.shape) if info else [],
                        dtype=dtype_name(info.dtype) if info else "",
                    )
                )  # fmt: skip
        leaf = isinstance(node, AccumulateGrad)
        self.nodes.append(
            NodePart(
                id=number, name=node.name(), label="", kind=_kind(node),
                topological_nr=node.topological_nr, sequence_nr=node.sequence_nr,
                module="", source=None, op=None,
                rule="" if leaf else rule_place(node.grad_function),
                layer=0, made_by=None, shape=list(node.shape), shapes=shapes,
                dtype=dtype_name(node.dtype), tensor=None,
                saved=[self._saved(each, node) for each in node.saved or ()],
                hooks=hooks_of(node), edges=edges,
            )
        )  # fmt: skip
        return number

    def _saved(self, saved: SavedTensor, node: FunctionNode) -> SavedPart:
        name, array, _, version, _ = saved
        size = math.prod(array.shape) * array.dtype.itemsize
        return SavedPart(
            name=name, tensor=_look_up(self._by_array, array), shape=list(array.shape),
            dtype=dtype_name(array.dtype), bytes=size, version=version,
            packed=isinstance(array, Packed), why=why_saved(node.grad_function, name, node.edges),
        )  # fmt: skip

    def save_anew(self, node: FunctionNode) -> None:
        """Describe a node's hooks again and, unless it was freed, its saved tensors."""
        part = self.nodes[self.node(node)]
        part["hooks"] = hooks_of(node)
        if node.saved:
            anew = [self._saved(each, node) for each in node.saved]
            for old, new in zip(part["saved"], anew, strict=False):
                if new["packed"]:  # a hook has packed the tensor since
                    new["tensor"], new["version"] = old["tensor"], old["version"]
            part["saved"][:] = anew  # in place: the op has the same list

    def label_nodes(self) -> None:
        """Give each node its label on the page: a leaf its tensor's name, else a number."""
        in_order = sorted(self.nodes, key=lambda part: part["sequence_nr"])
        for place, part in enumerate(in_order, 1):
            name = "" if part["tensor"] is None else self.tensors[part["tensor"]]["name"]
            part["label"] = name if name and part["kind"] == "leaf" else f"{part['name']}#{place}"

    def living(self) -> list[FunctionNode]:
        """Return the nodes that still exist."""
        nodes = [reference() for reference, _ in self._by_node.values()]
        return [node for node in nodes if node is not None]


def _bytes(array: Any) -> int:
    return int(getattr(array, "nbytes", 0))


def _look_up(table: dict[int, tuple[Any, int]], thing: Any) -> int | None:
    known = table.get(id(thing))
    return known[1] if known is not None and known[0]() is thing else None


def _keep(table: dict[int, tuple[Any, int]], thing: Any, number: int) -> None:
    with contextlib.suppress(TypeError):  # a stand-in for an array may have no weak references
        table[id(thing)] = ref(thing), number


def _kind(node: FunctionNode) -> str:
    if isinstance(node, AccumulateGrad):
        return "leaf"
    if isinstance(node, CustomFunctionNode):
        return "function"
    return "root" if isinstance(node, GraphRoot) else "op"


def hooks_of(node: FunctionNode) -> list[str]:
    """Return the hooks on a node and on its values, in words."""
    described = []
    for meta in node.metas or ():
        if meta is None:
            continue
        described += [f"tensor hook {_called(hook)}" for hook in (meta.hooks or {}).values()]
        after = (meta.post_accumulate_hooks or {}).values()
        described += [f"post-accumulate hook {_called(hook)}" for hook in after]
        described += ["retain_grad"] if meta.retain_grad else []
    function = node.grad_function
    own = function.hooks if isinstance(function, HookedGradFunction) else None
    if isinstance(node, AccumulateGrad):
        own = node.hooks
    if own is not None:
        described += [f"prehook {_called(hook)}" for hook in own.pre.values()]
        described += [f"hook {_called(hook)}" for hook in own.post.values()]
    return described


def _called(hook: Any) -> str:
    if getattr(hook, "__module__", "") == register_post_accumulate_hook.__module__:
        names = hook.__code__.co_freevars  # a wrapper around the user's hook
        hook = hook.__closure__[names.index("hook")].cell_contents
    hook = getattr(hook, "func", hook)
    return str(getattr(hook, "__qualname__", type(hook).__qualname__))


def names_in(scope: dict[str, Any], modules: Iterable[tuple[str, Any]]) -> Iterable[Named]:
    """Yield tensors with their names: paths in modules, and variables."""
    own = [(name, value) for name, value in scope.items() if isinstance(value, Module)]
    for path, module in (*modules, *own):
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            yield f"{path}.{name}", tensor
    for name, value in scope.items():
        inside: list[Named] = [(name, value)]
        if type(value) in (list, tuple):
            inside = [(f"{name}[{i}]", x) for i, x in enumerate(value)]
        elif type(value) is dict:
            inside = [(f"{name}[{k!r}]", x) for k, x in value.items() if isinstance(x, Tensor)]
        yield from (each for each in inside if isinstance(each[1], Tensor))
