"""`torch.fx`: the forward method of a module as a graph of calls, which can be changed and run.

`Tracer.trace` calls the method with proxies. A proxy notes what is done with it as a `Node`. While
a trace runs, the functions of this library that the method can see note a call when an argument is
a proxy; all others go through. A `GraphModule` runs a graph node by node.
"""

from __future__ import annotations

import contextlib
import copy
import dis
import functools
import inspect
import keyword
import operator
import re
import sys
from collections.abc import Callable, Iterator
from inspect import Parameter
from types import FunctionType
from typing import Any

import oneflow_lite as flow
from oneflow_lite.arrays.locks import cached_property, make_lock
from oneflow_lite.errors import ArgumentError, CaptureError, arg_error
from oneflow_lite.nn.containers import Sequential
from oneflow_lite.nn.module import Module
from oneflow_lite.tensors.tensor import Tensor

Target = Argument = Any
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_wrapped: list[tuple[dict[str, Any], str]] = []  # by `wrap`
_tracing = make_lock()  # a trace replaces functions for all threads
_OPERATORS = """
    add and floordiv lshift matmul mod mul or pow rshift sub truediv xor
""".split()
_COMPARISONS = "eq ge getitem gt invert le lt ne neg pos".split()


class TraceError(CaptureError, ValueError):
    """A forward method asks a proxy for what is known in a run alone."""


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return an argument with a function's results in the place of its nodes."""
    return _map(a, Node, fn)


def _map(a: Any, kind: type, fn: Callable[[Any], Any]) -> Any:
    if isinstance(a, kind):
        return fn(a)
    if isinstance(a, (tuple, list)):
        parts = [_map(each, kind, fn) for each in a]
        return type(a)(*parts) if hasattr(a, "_fields") else type(a)(parts)
    if isinstance(a, dict):
        return {key: _map(value, kind, fn) for key, value in a.items()}
    if isinstance(a, slice):
        return slice(*[_map(each, kind, fn) for each in (a.start, a.stop, a.step)])
    return a


class Node:
    """A call in a graph.

    `op` is placeholder, get_attr, call_function, call_method, call_module or output; `target` the
    function, or the name; `args` and `kwargs` hold nodes and values; `users` are the nodes that
    take its result.
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Any, args: Any, kwargs: Any, type: Any
    ) -> None:
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self.args, self.kwargs = args, kwargs

    def _set(self, args: Any, kwargs: Any) -> None:
        for node in self.all_input_nodes:
            node.users.pop(self, None)
        self._args, self._kwargs = tuple(args), dict(kwargs)
        for node in self.all_input_nodes:
            node.users[self] = None

    args = property(lambda self: self._args, lambda self, args: self._set(args, self._kwargs))
    kwargs = property(lambda self: self._kwargs, lambda self, given: self._set(self._args, given))

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        found: dict[Node, None] = {}
        map_arg((self._args, self._kwargs), lambda node: found.setdefault(node))
        return list(found)

    def replace_all_uses_with(self, replace_with: Node, *args: Any, **options: Any) -> list[Node]:
        """Let all users take another node's result; return them."""
        users = [node for node in self.users if node is not replace_with]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take another node in the place of an input."""
        given = self._args, self._kwargs
        self._set(*map_arg(given, lambda node: new_input if node is old_input else node))

    def __repr__(self) -> str:
        return self.name

    def format_node(self) -> str:
        """Return the call as a line of text."""
        target = getattr(self.target, "__name__", self.target)
        return f"%{self.name} : {self.op}[target={target}](args={self.args}, kwargs={self.kwargs})"


class Graph:
    """A list of nodes, each behind the nodes whose results it takes."""

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, **options: Any) -> None:
        self.owning_module, self._tracer_cls = owning_module, tracer_cls
        self._nodes: list[Node] = []
        self._place: int | None = None  # where nodes are inserted; None is the end

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, in order; the graph can be changed while they are gone through."""
        return tuple(self._nodes)

    def _name(self, wanted: Any) -> str:
        text = re.sub(r"\W+", "_", str(wanted)).strip("_").lower() or "_"
        text = f"_{text}" if text[0].isdigit() or keyword.iskeyword(text) else text
        taken, number, name = {node.name for node in self._nodes}, 0, text
        while name in taken or name == "self":
            number += 1
            name = f"{text}_{number}"
        return name

    def create_node(
        self, op: str, target: Any, args: Any = None, kwargs: Any = None,
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a node at the place of insertion, by default the end."""
        wanted = name or getattr(target, "__name__", target)
        node = Node(self, self._name(wanted), op, target, args or (), kwargs or {}, type_expr)
        place = len(self._nodes) if self._place is None else self._place
        self._nodes.insert(place, node)
        if self._place is not None:
            self._place += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an argument of the graph."""
        args = () if default_value in (..., inspect.Parameter.empty) else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    get_attr = functools.partialmethod(create_node, "get_attr")
    call_function = functools.partialmethod(create_node, "call_function")
    call_method = functools.partialmethod(create_node, "call_method")
    call_module = functools.partialmethod(create_node, "call_module")

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add what the graph returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    @contextlib.contextmanager
    def _inserting(self, place: int | None) -> Iterator[None]:
        before, self._place = self._place, place
        try:
            yield
        finally:
            self._place = before

    def inserting_before(self, n: Node | None = None) -> Any:
        """Insert before a node in a `with` block; without a node, at the beginning."""
        return self._inserting(0 if n is None else self._nodes.index(n))

    def inserting_after(self, n: Node | None = None) -> Any:
        """Insert behind a node in a `with` block; without a node, at the end."""
        return self._inserting(None if n is None else self._nodes.index(n) + 1)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node away; raise `ArgumentError` where its result is taken."""
        if to_erase.users:
            expected, got = "a node without users", f"{to_erase} with {list(to_erase.users)}"
            hint = "call replace_all_uses_with first"
            raise arg_error("erase_node", "to_erase", expected, got, hint, ArgumentError)
        to_erase._set((), {})
        self._nodes.remove(to_erase)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda n: n) -> Node:
        """Add a node like one of another graph, whose arguments a function turns into ours."""
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take away calls of functions and attributes that nobody uses; return whether any was."""
        before = len(self._nodes)
        for node in reversed(self.nodes):
            name = getattr(node.target, "__name__", node.target)
            writes = name == "setitem" or name.endswith("_")
            kept = node.users or writes or node.op in ("placeholder", "output")
            if not kept and not (is_impure_node is not None and is_impure_node(node)):
                self.erase_node(node)
        return len(self._nodes) < before

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "owning_module": None}

    def lint(self) -> None:
        """Raise `CaptureError` where a node takes a result of a later node, or of another graph."""
        seen: set[Node] = set()
        for node in self._nodes:
            if not seen.issuperset(node.all_input_nodes):
                raise CaptureError(f"Graph.lint(): {node.format_node()} takes a result too early")
            seen.add(node)

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *[node.format_node() for node in self._nodes]])


# --- Tracing --------------------------------------------------------------------------------------


class Proxy:
    """A value of a trace: what is done with it becomes a node."""

    def __init__(self, node: Node, tracer: Any = None) -> None:
        self.node, self.tracer = node, tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_data":  # no tensor: functors ask __torch_function__
            raise AttributeError(name)
        return Attribute(self, name)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Proxy:
        """Note the call of a function."""
        found: list[Proxy] = []
        _map((args, kwargs or {}), Proxy, found.append)
        return found[0].tracer.create_proxy("call_function", func, args, kwargs or {})  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        return bool(self.tracer.to_bool(self))

    def __len__(self) -> int:
        return int(self.tracer.refuse(self, "its length"))

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        if caller is not None:
            for step in dis.get_instructions(caller.f_code):
                if step.offset == caller.f_lasti and step.opname == "UNPACK_SEQUENCE":
                    return iter([self._call(operator.getitem, self, n) for n in range(step.argval)])
        return iter(self.tracer.refuse(self, "its entries"))

    def __index__(self) -> int:
        return int(self.tracer.refuse(self, "its value"))

    __int__ = __index__

    def __setitem__(self, key: Any, value: Any) -> None:
        self._call(operator.setitem, self, key, value)

    def _call(self, function: Any, *args: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, args, {})  # type: ignore[no-any-return]

    def __hash__(self) -> int:
        return id(self)


def _operator(name: str, swapped: bool = False) -> Callable[..., Any]:
    function = getattr(operator, name, None) or getattr(operator, f"{name}_")
    if swapped:
        return lambda self, other: self._call(function, other, self)
    return lambda self, *others: self._call(function, self, *others)


for _name in [*_OPERATORS, *_COMPARISONS]:
    setattr(Proxy, f"__{_name}__", _operator(_name))
for _name in _OPERATORS:
    setattr(Proxy, f"__r{_name}__", _operator(_name, True))


class Attribute(Proxy):
    """An attribute of a proxy: a method once it is called, a value once it is used."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer

    @cached_property
    def node(self) -> Node:
        """The node that looks the attribute up."""
        return self.root._call(getattr, self.root, self.attr).node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class Tracer:
    """Makes the graph of a module or function; subclasses decide which modules stay one call."""

    def __init__(self, *options: Any, **more: Any) -> None:
        self.root: Module = Module()
        self.graph = Graph()
        self._paths: dict[int, str] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether a module is called as a whole: those of `nn`, but for `Sequential`."""
        ours = type(m).__module__.startswith(("oneflow_lite.nn", "torch.nn"))
        return ours and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Return the name of a submodule; raise NameError for a module of somebody else."""
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError(f"{type(mod).__name__} is no submodule of {type(self.root).__name__}")

    def call_module(self, m: Module, forward: Any, args: Any, kwargs: Any) -> Any:
        """Note the call of a leaf, or call what a module does."""
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    def create_node(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: Any = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: Any = None,
        type_expr: Any = None, *rest: Any,
    ) -> Proxy:  # fmt: skip
        """Add a node, and return the proxy of its result."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        return self.proxy(self.create_node(kind, target, args, kwargs, name, type_expr))

    def proxy(self, node: Node) -> Proxy:
        """Return the proxy of a node's result."""
        return Proxy(node, self)

    def create_arg(self, a: Any) -> Any:
        """Return an argument with nodes for its proxies, and for the tensors of the root."""
        return _map(_map(a, Proxy, lambda proxy: proxy.node), Tensor, self._tensor)

    def _tensor(self, tensor: Tensor) -> Node:
        if id(tensor) not in self._paths:
            name = f"_tensor_constant{len(self._paths)}"
            setattr(self.root, name, tensor)
            self._paths[id(tensor)] = name
        return self.graph.create_node("get_attr", self._paths[id(tensor)])

    def refuse(self, obj: Proxy, what: str) -> Any:
        """Raise: a trace has no values."""
        raise TraceError(
            f"symbolic_trace(): a trace does not know {what} ({obj.node.name}); let the module "
            "that asks be a leaf, by is_leaf_module, or its function one call, by fx.wrap"
        )

    def to_bool(self, obj: Proxy) -> bool:
        """Raise: a trace does not branch by values."""
        return bool(self.refuse(obj, "whether a value is true"))

    iter = keys = refuse

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module's forward method, or of a function.

        concrete_args: values of arguments that the graph is to take as given.
        """
        is_module = isinstance(root, Module)
        self.root = root if is_module else Module()
        self.graph = Graph(tracer_cls=type(self))
        owned = [*self.root.named_parameters(), *self.root.named_buffers()]
        self._paths = {id(tensor): name for name, tensor in owned}
        function = type(root).forward if is_module else root
        args: list[Any] = [root] if is_module else []
        for p in list(inspect.signature(function).parameters.values())[len(args) :]:
            if concrete_args is not None and p.name in concrete_args:
                args.append(concrete_args[p.name])
                continue
            star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
            default = () if p.default is p.empty else (p.default,)
            node = self.create_node("placeholder", star + p.name, default, {}, p.name)
            args.append(self.proxy(node))
        with _tracing, self._patches(function):
            result = function(*args)
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    @contextlib.contextmanager
    def _patches(self, function: Any) -> Iterator[None]:
        spaces = {id(vars(m)): vars(m) for m in (flow, flow.nn.functional, flow.functions)}
        for module in self.root.modules():
            if type(module).__module__.partition(".")[0] != "oneflow_lite":
                found = type(module).forward.__globals__
                spaces[id(found)] = found
        if isinstance(function, FunctionType):
            spaces[id(function.__globals__)] = function.__globals__
        call, marked = Module.__call__, list(_wrapped)
        for space in spaces.values():
            for name, value in list(space.items()):
                if name == "__getattr__" and space["__name__"].startswith("oneflow_lite"):
                    space[name] = self._finder(space, value)
                elif isinstance(value, FunctionType) and name[0] != "_" and _is_ours(value):
                    space[name] = self._noting(value)
        for space, name in marked:
            space[name] = self._noting(space[name])
            spaces[id(space)] = space

        def called(module: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(module, *args, **kwargs)

            return self.call_module(module, forward, args, kwargs)

        Module.__call__ = called  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Module.__call__ = call  # type: ignore[method-assign]
            for space in spaces.values():
                for name, value in list(space.items()):
                    if isinstance(value, FunctionType) and hasattr(value, "_noted"):
                        space[name] = value._noted

    def _noting(self, function: Any) -> Any:
        @functools.wraps(function)
        def noted(*args: Any, **kwargs: Any) -> Any:
            proxies: list[Proxy] = []
            _map((args, kwargs), Proxy, proxies.append)
            if proxies:
                return self.create_proxy("call_function", function, args, kwargs)
            return function(*args, **kwargs)

        noted._noted = function  # type: ignore[attr-defined]
        return noted

    def _finder(self, space: dict[str, Any], find: Any) -> Any:
        def found(name: str) -> Any:
            value = find(name)
            if isinstance(value, FunctionType) and _is_ours(value):
                value = space[name] = self._noting(value)
            return value

        found._noted = find  # type: ignore[attr-defined]
        return found


class GraphAppendingTracer(Tracer):
    """Adds what is done with proxies to a graph that somebody makes."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


def _is_ours(function: Any) -> bool:
    home = function.__module__ or ""
    return home.startswith("oneflow_lite.") and not home.startswith("oneflow_lite.compatibility.fx")


def wrap(fn_or_name: Any) -> Any:
    """Let a function of the calling module be one call in a graph: by name, or as a decorator."""
    frame = sys._getframe(1)
    if not isinstance(fn_or_name, (str, FunctionType)):
        return fn_or_name
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped.append((frame.f_globals, name))
    return fn_or_name


# --- Running --------------------------------------------------------------------------------------


def _put(module: Module, target: str, value: Any) -> None:
    """Let a module have a value under a dotted name."""
    *owners, last = target.split(".")
    for name in owners:
        if not hasattr(module, name):
            setattr(module, name, Module())
        module = getattr(module, name)
    if isinstance(value, Tensor) and not isinstance(value, flow.nn.Parameter):
        module.register_buffer(last, value)
    else:
        setattr(module, last, value)


class Interpreter:
    """Runs the graph of a module node by node; subclasses do otherwise with some of the nodes."""

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module, self.graph = module, module.graph if graph is None else graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, **options: Any) -> Any:
        """Return what the graph returns for arguments; `initial_env` has results of nodes."""
        self.env, self.args_iter = dict(initial_env or {}), iter(args)
        left = {node: len(node.users) for node in self.graph.nodes}
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            for taken in node.all_input_nodes:  # let go of what nobody takes any more
                left[taken] -= 1
                if not left[taken] and self.garbage_collect_values:
                    del self.env[taken]
        return None

    def run_node(self, n: Node) -> Any:
        """Return the result of a node, by the method that is called as its op."""
        return getattr(self, n.op)(n.target, *self.fetch_args_kwargs_from_env(n))

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """Return the arguments of a node, with results in the place of nodes."""
        return map_arg((n.args, n.kwargs), self.env.__getitem__)  # type: ignore[no-any-return]

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        """Return the next argument, all that are left, or a default."""
        return list(self.args_iter) if target[0] == "*" else next(self.args_iter, *args)

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        """Return an attribute of the module."""
        return operator.attrgetter(target)(self.module)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        """Call a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """Call a submodule."""
        return self.module.get_submodule(target)(*args, **kwargs)

    def output(self, target: str, args: Any, kwargs: Any) -> Any:
        """Return the result of the graph."""
        return args[0]


class GraphModule(Module):
    """A module that runs a graph; it has the submodules and attributes that the graph names.

    >>> import oneflow_lite as flow
    >>> from oneflow_lite.compatibility import fx
    >>> traced = fx.symbolic_trace(flow.nn.Sequential(flow.nn.Linear(2, 2), flow.nn.ReLU()))
    >>> [node.op for node in traced.graph.nodes]
    ['placeholder', 'call_module', 'call_module', 'output']
    """

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        named = [n.target for n in graph.nodes if n.op in ("call_module", "get_attr")]
        for target in sorted(set(named), key=lambda path: path.count(".")):
            is_dict = isinstance(root, dict)  # of what the graph names
            _put(self, target, root[target] if is_dict else operator.attrgetter(target)(root))
        self.training, self._class_name = getattr(root, "training", True), class_name
        self.graph = graph

    _class_name = "GraphModule"

    @property
    def graph(self) -> Graph:
        """The graph; setting it compiles it."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        self._graph = g
        g.owning_module = self
        self.recompile()

    def recompile(self) -> str:
        """Take a change of the graph over; return its text."""
        takes = [(n.target, n.args) for n in self._graph.nodes if n.op == "placeholder"]
        kinds = [Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD]
        self._takes = inspect.Signature(
            [
                Parameter(
                    name.lstrip("*"), kinds[name.count("*")], default=(*d, Parameter.empty)[0]
                )
                for name, d in takes
            ]
        )
        return self.code

    @property
    def code(self) -> str:
        """The graph as text."""
        return str(self._graph)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph, node by node."""
        bound = self._takes.bind(*args, **kwargs)
        bound.apply_defaults()
        run = Interpreter(self)
        run.placeholder = lambda name, *_: bound.arguments[name.lstrip("*")]  # type: ignore[method-assign]
        return run.run()

    def _get_name(self) -> str:
        return self._class_name

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module under a dotted name."""
        owner, _, last = target.rpartition(".")
        setattr(self.get_submodule(owner), last, m)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away the submodules that the graph does not name."""
        used = [f"{n.target}." for n in self.graph.nodes if n.op in ("call_module", "get_attr")]
        for name in reversed([f"{name}." for name, _ in self.named_modules() if name]):
            if not any(path.startswith(name) or name.startswith(path) for path in used):
                owner, _, last = name[:-1].rpartition(".")
                delattr(self.get_submodule(owner), last)

    def __reduce__(self) -> Any:
        kept = {key: value for key, value in vars(self).items() if key not in ("_graph", "_takes")}
        return _rebuilt, (kept, self._graph)

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        return _rebuilt(*copy.deepcopy(self.__reduce__()[1], memo))


def _rebuilt(kept: dict[str, Any], graph: Graph) -> GraphModule:
    root = Module()
    root.__dict__.update(kept)
    return GraphModule(root, graph, kept["_class_name"])


_CodeOnlyModule = Module


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Return a module or function as a `GraphModule`."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
