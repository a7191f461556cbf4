"""What a call can reach and change: looked at, put back as it was, and compared with another look.

The judge takes a `World` before a call, one after the plain function and one after the replay. It
asks nothing of an object that would run its code: types and dicts are read as they are.
"""

from __future__ import annotations

import dis
import functools
import itertools
import random
import struct
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import (
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from oneflow_lite.autograd.autograd_meta import AutogradMeta
from oneflow_lite.autograd.function_node import AccumulateGrad, Edge, FunctionNode
from oneflow_lite.autograd.grad_function import HookedGradFunction
from oneflow_lite.autograd.hooks import NodeHooks
from oneflow_lite.device import Device
from oneflow_lite.errors import InplaceError
from oneflow_lite.functors.random import Generator
from oneflow_lite.nn.parameter import is_lazy
from oneflow_lite.size import Size
from oneflow_lite.storage import Storage, ViewInfo
from oneflow_lite.tensor import OWN_FIELDS, Tensor

LIMIT = 50_000  # objects; what lies behind them is not looked at
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "nothing"})()
_ATOMS = {
    bool, int, str, bytes, type(None), type(...), type(NotImplemented), type(MISSING), CodeType,
    Device,
}  # fmt: skip
# Modules whose classes and functions keep no state that a call of a user's function changes.
_LIBRARIES = {*sys.stdlib_module_names, "numpy", "scipy", "oneflow_lite", "pytest", "_pytest"}
_LIBRARIES -= {"__main__"}
# Classes among them whose objects do.
_HOLDERS: tuple[type, ...] = (
    SimpleNamespace, functools.partial, functools.cached_property, property, staticmethod,
    classmethod, BaseException,
)  # fmt: skip
_OWN_HOLDERS = ("nn", "optim", "distributions", "utils", "compatibility", "func")
_OF_FUNCTION = ("__code__", "__defaults__", "__kwdefaults__")
_UNCHANGING = {"__dict__", "__weakref__", "__doc__", "__module__", "_abc_impl"}  # of a class
_INTERNAL = (AutogradMeta, FunctionNode, HookedGradFunction, NodeHooks, ViewInfo, Storage)


class Fact:
    """Something of a holder that is compared by its value."""

    def __init__(self, token: Any) -> None:
        self.token = token


Parts = Iterable[tuple[str, Any]]
Looker = Callable[["World", Any], Parts]


class World:
    """All that some roots lead to, at one moment.

    Parameters
    ----------
    roots : mapping of str to object
        By the words that a difference names them with.
    before : World, optional
        An earlier look, which knows who is who; the first look can be put back.

    Attributes
    ----------
    facts : list of (int, str, token)
        What is compared: the number of the holder, which of its parts, and what that is.
    names : list of str
        How users call the holders, by number.
    """

    def __init__(self, roots: Mapping[str, Any], before: World | None = None) -> None:
        self.before = before
        self.facts: list[tuple[int, str, Any]] = []
        self.names: list[str] = []
        self.undo: list[Callable[[], None]] = []
        self.nodes: list[FunctionNode] = [] if before is None else before.nodes
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no identity is used twice
        self._saved: set[int] = set()
        self._queue: deque[tuple[int, Any]] = deque()
        for name, value in roots.items():
            self.facts.append((-1, name, self._token(value, -1, name)))
        while self._queue:
            number, value = self._queue.popleft()
            for label, part in _looker(type(value))(self, value):
                token = part.token if type(part) is Fact else self._token(part, number, label)
                self.facts.append((number, label, token))
        for position, node in enumerate(self.nodes):
            self.facts.append((-1, f"node {position} of the graph", node.saved is None))

    def place(self, number: int, label: str) -> str:
        """Return how users call a part of a holder."""
        is_name = number < 0 or label.startswith("the ")
        return label if is_name else self.names[number] + label

    def _token(self, value: Any, number: int, label: str) -> Any:
        """Return what stands for a value: its type and content, or who it is."""
        kind = type(value)
        if kind in _ATOMS:
            return kind, value
        if kind is float:
            return kind, struct.pack("d", value)
        if kind is complex:
            return kind, struct.pack("dd", value.real, value.imag)
        if isinstance(value, np.generic):
            return kind, value.tobytes()
        if isinstance(value, np.dtype):
            return np.dtype, str(value)
        return self.who(value, self.place(number, label))

    def who(self, value: Any, name: str, look: bool = True) -> tuple[str, int]:
        """Return who an object is, and look at it later."""
        known = None if self.before is None else self.before.number(value)
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.names)
            self._kept.append(value)
            self.names.append(name)
            if look and number < LIMIT:
                self._queue.append((number, value))
        return ("new", number) if known is None else ("known", known)

    def number(self, value: Any) -> int | None:
        """Return the number of an object that was met."""
        return self._numbers.get(id(value))

    def saves(self, value: Any) -> bool:
        """Return whether the content of an object is to be kept, to be put back."""
        if self.before is not None or id(value) in self._saved:
            return False
        self._saved.add(id(value))
        return True

    def put_back(self) -> None:
        """Have everything hold again what it held at this look."""
        for undo in self.undo:
            undo()

    # What is saved to be put back

    def save_mapping(self, owner: Any) -> None:
        """Keep what a dict holds."""
        if not self.saves(owner):
            return
        base: Any = OrderedDict if isinstance(owner, OrderedDict) else dict
        # A copy of a dict keeps the hashes, so that putting it back asks no key for its own.
        content: Any = dict.copy(owner) if base is dict else OrderedDict(base.items(owner))

        def undo() -> None:
            now = list(base.items(owner))
            if len(now) != len(content) or not all(
                [a is c and b is d for (a, b), (c, d) in zip(now, content.items(), strict=True)]
            ):
                base.clear(owner)
                base.update(owner, content)

        self.undo.append(undo)

    def save_slots(self, owner: Any) -> None:
        """Keep what the slots of an object hold."""
        if not self.saves(owner):
            return
        content = dict(_slots(owner))

        def undo() -> None:
            for member, value in content.items():
                if value is not MISSING:
                    member.__set__(owner, value)
                elif _held(member, owner) is not MISSING:
                    member.__delete__(owner)

        if content:
            self.undo.append(undo)

    def save_array(self, array: Any) -> Any:
        """Keep the content of the memory that an array lies in; return who owns it."""
        owner = link = array
        while (link := getattr(link, "base", None)) is not None:
            if hasattr(link, "copy"):  # no array: what `as_strided` stands between two of them
                owner = link
        if not self.saves(owner):
            return owner
        content = owner.copy()

        def undo() -> None:
            if not isinstance(owner, np.ndarray):
                owner[...] = content
            elif owner.tobytes() != content.tobytes():
                writeable = owner.flags.writeable
                owner.flags.writeable = True
                np.copyto(owner, content)
                owner.flags.writeable = writeable

        self.undo.append(undo)
        return owner

    def save_graph(self, start: Any) -> None:
        """Keep what autograd notes behind a tensor: metas, hooks, nodes, and views."""
        work = [start] if self.before is None else []
        while work and len(self.nodes) < LIMIT:
            value = work.pop()
            if isinstance(value, tuple):
                work.extend(value)
            elif isinstance(value, _INTERNAL) and id(value) not in self._saved:
                self._kept.append(value)
                if isinstance(value, FunctionNode) and not isinstance(value, AccumulateGrad):
                    self.nodes.append(value)
                fields = getattr(value, "__dict__", {})
                self.save_mapping(fields)
                self.save_slots(value)
                for held in (*fields.values(), *[held for _, held in _slots(value)]):
                    if type(held) is dict:
                        self.save_mapping(held)
                    elif type(held) is list:
                        self.save_list(held)
                        work.extend(held)
                    else:
                        work.append(held)

    def save_list(self, owner: Any) -> None:
        """Keep what a list or deque holds."""
        if not self.saves(owner):
            return
        base = list if isinstance(owner, list) else deque
        content = list(base.__iter__(owner))

        def undo() -> None:
            now = list(base.__iter__(owner))
            if len(now) != len(content) or not all(map(_is, now, content)):
                base.clear(owner)
                base.extend(owner, content)

        self.undo.append(undo)

    def save_set(self, owner: Any) -> None:
        """Keep what a set holds."""
        if not self.saves(owner):
            return
        content = set.copy(owner)

        def undo() -> None:
            if {id(x) for x in set.__iter__(owner)} != {id(x) for x in content}:
                set.clear(owner)
                set.update(owner, content)

        self.undo.append(undo)

    def save_named(self, owner: Any, read: Callable[[str], Any], names: Iterable[str]) -> None:
        """Keep some attributes of a class or function, or some names of a module."""
        content = {name: read(name) for name in names}
        put: Any = type.__setattr__ if isinstance(owner, type) else setattr
        remove: Any = type.__delattr__ if isinstance(owner, type) else delattr
        if isinstance(owner, dict):
            put, remove = dict.__setitem__, dict.__delitem__

        def undo() -> None:
            for name, value in content.items():
                now = read(name)
                if now is not value and value is MISSING:
                    remove(owner, name)
                elif now is not value:
                    put(owner, name, value)

        if self.before is None:
            self.undo.append(undo)


def _is(a: Any, b: Any) -> bool:
    return a is b


def difference(
    plain: World, replay: World, near: float = 0.0, unlike: frozenset[str] = frozenset()
) -> str | None:
    """Say where the world that a replay left is not the one that the plain function left.

    Parameters
    ----------
    plain, replay : World
        With the same `before`.
    near : float
        How far numbers may be apart, of the largest of a tensor; 0 asks for the same bits.
    unlike : frozenset of str
        The parts that may differ.
    """
    if plain.facts == replay.facts:
        return None
    for want, have in itertools.zip_longest(plain.facts, replay.facts):
        if want == have:
            continue
        number, label, wanted = want or have
        found = have[2] if have is not None and have[:2] == (number, label) else MISSING
        wanted = wanted if want is not None else MISSING
        if label in unlike or _agree(wanted, found, near):
            continue
        world = plain if want is not None else replay
        place = world.place(number, label)
        shown = [_shown(token, world) for token, world in ((found, replay), (wanted, plain))]
        return f"`{place}`: the replay left {shown[0]}, the plain function {shown[1]}"
    return None


def _agree(want: Any, have: Any, near: float) -> bool:
    """Return whether two arrays are of the same numbers, whichever nan stands for no number."""
    if not (type(want) is type(have) is tuple and want[:-1] == have[:-1] and want[0] == "values"):
        return False
    _, dtype, shape, _ = want
    a, b = (np.frombuffer(bits, dtype).reshape(shape) for bits in (want[3], have[3]))
    if a.dtype.kind not in "fc" or a.size != b.size:
        return False
    if a.dtype.kind == "c":
        a, b = (np.ascontiguousarray(x).view(x.real.dtype) for x in (a, b))
    if not near:
        same = (a == b) & (np.signbit(a) == np.signbit(b))
        return bool((same | (np.isnan(a) & np.isnan(b))).all())
    if a.dtype != np.float64:
        near = max(near, 1e-5)
    scale = near * max(1.0, float(np.nanmax(np.abs(a), initial=0.0)))
    return np.allclose(a, b, rtol=0, atol=scale, equal_nan=True)


def _shown(token: Any, world: World) -> str:
    """Return a token in words."""
    if token is MISSING:
        return "nothing"
    if type(token) is not tuple:
        return repr(token)
    if token[0] == "values":
        text = np.array2string(np.frombuffer(token[3], token[1]).reshape(token[2]), threshold=20)
        return " ".join(text.split())
    if token[0] in ("new", "known"):
        names = world.before.names if token[0] == "known" and world.before else world.names
        return f"{'what was' if token[0] == 'known' else 'a new object,'} `{names[token[1]]}`"
    if token[0] in (float, complex):
        return str(np.frombuffer(token[1], token[0])[0])
    return repr(token[1])


# What the objects of each type hold


def _looker(kind: type) -> Looker:
    """Return the function that says what objects of a type hold."""
    known = _KNOWN.get(kind)
    if known is None:
        known = _KNOWN[kind] = _find_looker(kind)
    return known


_KNOWN: WeakKeyDictionary[type, Looker] = WeakKeyDictionary()


def _find_looker(kind: type) -> Looker:
    for base, looker in _LOOKERS.items():
        if issubclass(kind, base):
            return looker
    return _instance if any(map(_holds, kind.__mro__)) else _closed


def _holds(cls: type) -> bool:
    """Return whether objects of a class may hold what a call changes."""
    package, _, module = cls.__module__.partition(".")
    if package == "oneflow_lite":
        return module.startswith(_OWN_HOLDERS)
    return cls in _HOLDERS or not _is_library(package)


def _is_library(module: Any) -> bool:
    return type(module) is str and module.partition(".")[0] in _LIBRARIES


def _closed(world: World, value: Any) -> Parts:
    """An object that is known by who it is, and by how far it has got where it is iterated."""
    yield "'s type", Fact(type(value))
    hint = getattr(type(value), "__length_hint__", None)
    if hint is not None:
        yield "'s rest", Fact(hint(value))
    if hasattr(type(value), "notes_of_calls"):  # a compiled function
        yield ".function", value.function
    if isinstance(value, functools._lru_cache_wrapper):
        yield ".__wrapped__", value.__wrapped__


def _generator(world: World, value: Any) -> Parts:
    frame = value.gi_frame
    yield "'s place", Fact(None if frame is None else frame.f_lasti)


def _fields(world: World, value: Any) -> Parts:
    """Attributes: in the dict and in slots."""
    try:
        fields = object.__getattribute__(value, "__dict__")
    except AttributeError:
        fields = None
    if type(fields) is dict:
        world.save_mapping(fields)
        yield from ((f".{name}", held) for name, held in fields.items())
    if type(value).__flags__ & _HEAP_TYPE:
        world.save_slots(value)
        yield from ((f".{member.__name__}", held) for member, held in _slots(value))


_HEAP_TYPE = 1 << 9  # a class that a class statement made


def _slots(value: Any) -> Iterator[tuple[Any, Any]]:
    for cls in type(value).__mro__:
        for name, member in vars(cls).items() if "__slots__" in vars(cls) else ():
            if type(member) is MemberDescriptorType and name != "__weakref__":
                yield member, _held(member, value)


def _held(member: MemberDescriptorType, owner: Any) -> Any:
    """Return what a slot holds."""
    try:
        return member.__get__(owner, type(owner))
    except AttributeError:
        return MISSING


def _instance(world: World, value: Any) -> Parts:
    kind = type(value)
    yield "'s type", kind if not _is_library(kind.__module__) else Fact(kind)
    if isinstance(value, functools.partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    elif isinstance(value, property):
        yield from ((".fget", value.fget), (".fset", value.fset), (".fdel", value.fdel))
    elif isinstance(value, (staticmethod, classmethod)):
        yield ".__func__", value.__func__
    elif isinstance(value, BaseException):
        yield ".args", value.args
    yield from _fields(world, value)


def _more(world: World, value: Any) -> Parts:
    """What a subclass of a container holds besides."""
    if type(value).__flags__ & _HEAP_TYPE:
        yield from _instance(world, value)
    else:
        yield "'s type", Fact(type(value))


def _tuple(world: World, value: Any) -> Parts:
    yield from _more(world, value)
    yield from ((f"[{i}]", item) for i, item in enumerate(tuple.__iter__(value)))


def _list(world: World, value: Any) -> Parts:
    world.save_list(value)
    yield from _more(world, value)
    base: Any = list if isinstance(value, list) else deque
    yield from ((f"[{i}]", item) for i, item in enumerate(base.__iter__(value)))


def _dict(world: World, value: Any) -> Parts:
    world.save_mapping(value)
    yield from _more(world, value)
    if isinstance(value, defaultdict):
        yield ".default_factory", value.default_factory
    for i, (key, held) in enumerate(list(dict.items(value))):
        plain = type(key) in _ATOMS or type(key) is float
        if not plain:
            yield f"'s key {i}", key
        yield f"[{key!r}]" if plain else f"[key {i}]", held


def _set(world: World, value: Any) -> Parts:
    if isinstance(value, set):
        world.save_set(value)
    yield from _more(world, value)
    base: Any = set if isinstance(value, set) else frozenset
    items = list(base.__iter__(value))
    plain = [x for x in items if type(x) in _ATOMS]
    yield "'s elements", Fact(frozenset((type(x), x) for x in plain))
    others = sorted([x for x in items if type(x) not in _ATOMS], key=id)
    yield from ((f"'s element {i}", x) for i, x in enumerate(others))


def _slice(world: World, value: Any) -> Parts:
    yield from (("'s type", Fact(type(value))), ("'s start", value.start))
    yield from (("'s stop", value.stop), ("'s step", value.step))


def _names_in(code: CodeType) -> tuple[list[str], set[str]]:
    """Return the names that code and the code inside it mention, and the globals that it sets."""
    found = _mentioned.get(id(code))
    if found is None or found[0] is not code:
        work, names, stored = [code], dict[str, None](), set[str]()
        for inner in work:
            names.update(dict.fromkeys(inner.co_names))
            work.extend(c for c in inner.co_consts if type(c) is CodeType)
            steps = dis.get_instructions(inner)
            stored.update(s.argval for s in steps if s.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"))
        found = _mentioned[id(code)] = (code, list(names), stored)
    return found[1:]


_mentioned: dict[int, tuple[CodeType, list[str], set[str]]] = {}


def _function(world: World, value: FunctionType) -> Parts:
    yield ".__code__", value.__code__
    yield ".__defaults__", value.__defaults__
    yield ".__kwdefaults__", value.__kwdefaults__
    world.save_named(value, functools.partial(getattr, value), _OF_FUNCTION)
    if value.__dict__:
        yield ".__dict__", value.__dict__
    else:
        world.save_mapping(value.__dict__)
    cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    yield from ((f"the variable {name}", cell) for name, cell in cells)
    scope = value.__globals__
    if _is_library(scope.get("__name__")):
        return
    names, stored = _names_in(value.__code__)
    known = [name for name in names if name in scope or name in stored]
    world.save_named(scope, lambda name: scope.get(name, MISSING), known)
    for name in known:
        held = scope.get(name, MISSING)
        yield f"the global {name}", held
        if isinstance(held, ModuleType) and not _is_library(held.__name__):
            inside = [n for n in names if n in vars(held)]
            world.save_named(vars(held), vars(held).get, inside)
            yield from ((f"the global {name}.{n}", vars(held)[n]) for n in inside)


def _method(world: World, value: MethodType) -> Parts:
    yield ".__self__", value.__self__
    yield ".__func__", value.__func__


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _cell(world: World, cell: CellType) -> Parts:
    content = _contents(cell)
    yield "", content
    if world.saves(cell):

        def undo() -> None:
            if _contents(cell) is not content:
                if content is MISSING:
                    del cell.cell_contents
                else:
                    cell.cell_contents = content

        world.undo.append(undo)


def _class(world: World, cls: type) -> Parts:
    if _is_library(cls.__module__) or not cls.__flags__ & _HEAP_TYPE:
        bases: Any = cls.__bases__ if cls.__flags__ & _HEAP_TYPE else ()
        yield from ((f"'s base {b.__name__}", b) for b in bases if not _is_library(b.__module__))
        return
    names = [name for name in vars(cls) if name not in _UNCHANGING]
    world.save_named(cls, lambda name: vars(cls).get(name, MISSING), names)
    if world.before is None:

        def undo() -> None:
            for name in [n for n in vars(cls) if n not in names and n not in _UNCHANGING]:
                type.__delattr__(cls, name)

        world.undo.append(undo)
    yield from ((f".{name}", vars(cls)[name]) for name in names)
    yield from ((f"'s base {base.__name__}", base) for base in cls.__bases__)


def _module(world: World, module: ModuleType) -> Parts:
    return ()  # what of it counts, the functions say that mention it


def _random(world: World, value: random.Random) -> Parts:
    state = value.getstate()
    yield "'s state", Fact(state)
    if world.saves(value):
        world.undo.append(lambda: value.setstate(state))


def _own_generator(world: World, value: Generator) -> Parts:
    """A generator of this library; CuPy's stream of it can be neither read nor put back."""
    world.save_mapping(vars(value))
    world.save_mapping(value._streams)
    yield ".initial_seed()", value.initial_seed()
    if np.__name__ in value._streams:
        yield "", value._streams[np.__name__]


def _stream(world: World, value: Any) -> Parts:
    bits = getattr(value, "bit_generator", None) or getattr(value, "_bit_generator", value)
    state = bits.state
    yield "'s state", Fact(_frozen(state))

    def undo() -> None:
        bits.state = state

    if world.saves(bits):
        world.undo.append(undo)


def _frozen(state: Any) -> Any:
    """Return the state of a generator as something that can be compared."""
    if isinstance(state, dict):
        return tuple([(key, _frozen(value)) for key, value in state.items()])
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _values(world: World, array: Any) -> Fact:
    """An array's content, with its dtype and shape."""
    if world.before is None:
        return Fact(None)
    host = array if isinstance(array, np.ndarray) else array.get()
    kind = host.dtype
    if kind.kind not in "biufc":  # bfloat16, objects
        return Fact(("bits", str(kind), host.shape, host.tobytes()))
    return Fact(("values", kind.str, host.shape, host.tobytes()))


def _layout(array: Any) -> Fact:
    """An array's strides, where they say anything."""
    if 0 in array.shape:
        return Fact(())
    pairs = zip(array.shape, array.strides, strict=True)
    return Fact(tuple(None if size == 1 else stride for size, stride in pairs))


def _array(world: World, array: Any) -> Parts:
    world.save_array(array)
    yield "'s dtype", Fact(str(array.dtype))
    yield "'s shape", Fact(array.shape)
    yield "'s strides", _layout(array)
    if array.dtype.kind == "O":
        yield "'s elements", list(array.flat)
    else:
        yield "'s values", _values(world, array)


def _tensor(world: World, tensor: Tensor) -> Parts:
    if is_lazy(tensor):
        yield from _instance(world, tensor)
        return
    try:
        tensor.refresh_view()
        yield "'s history is followed", Fact(True)
    except InplaceError:
        yield "'s history is followed", Fact(False)
    memory = tensor.memory
    array, edge, view = tensor._data, tensor._edge, tensor._view
    world.save_graph((edge, view, tensor._meta))
    world.save_mapping(vars(tensor))
    yield "'s type", Fact(type(tensor))
    if getattr(array, "is_symbolic", False):  # a variable of a Program
        return
    yield ".dtype", Fact(str(array.dtype))
    yield ".shape", Fact(tuple(array.shape))
    yield ".device", Fact(str(tensor.device))
    yield ".stride()", _layout(array)
    yield "'s values", _values(world, array)
    owner = world.save_array(array)
    name = world.names[world.number(tensor) or 0]
    yield "'s memory", Fact(world.who(owner, f"{name}'s memory", look=False))
    place = "none" if edge is None else "node"
    place = "leaf" if edge is not None and isinstance(edge[0], AccumulateGrad) else place
    yield "'s place in the graph", Fact(place)
    yield ".is_inference()", Fact(tensor._inference)
    yield "._base", None if view is None else view.base
    yield ".memory", memory
    meta = _meta(edge, tensor)
    yield ".grad", None if meta is None else meta.acc_grad
    yield ".retains_grad", Fact(edge is not None and meta is not None and meta.retain_grad)
    yield from ((f"'s hook {i}", hook) for i, hook in enumerate(_hooks(edge, meta)))
    users = [name for name in vars(tensor) if name not in OWN_FIELDS]
    yield from ((f".{name}", vars(tensor)[name]) for name in users)


def _meta(edge: Edge | None, tensor: Tensor) -> AutogradMeta | None:
    if edge is None:
        return tensor._meta
    metas = edge[0].metas
    return None if metas is None else metas[edge[1]]


def _hooks(edge: Edge | None, meta: AutogradMeta | None) -> Iterator[Any]:
    if meta is not None:
        yield from (meta.hooks or {}).values()
        yield from (meta.post_accumulate_hooks or {}).values()
    if edge is not None and isinstance(edge[0], AccumulateGrad) and edge[0].hooks is not None:
        yield from (*edge[0].hooks.pre.values(), *edge[0].hooks.post.values())


def _storage(world: World, storage: Storage) -> Parts:
    world.save_mapping(vars(storage))
    yield ".version", Fact(storage.version)


_LOOKERS: dict[type, Looker] = {
    Tensor: _tensor,
    Storage: _storage,
    Generator: _own_generator,
    np.ndarray: _array,
    np.random.Generator: _stream,
    np.random.BitGenerator: _stream,
    np.random.RandomState: _stream,
    random.Random: _random,
    Size: _tuple,
    tuple: _tuple,
    list: _list,
    deque: _list,
    dict: _dict,
    set: _set,
    frozenset: _set,
    slice: _slice,
    range: _slice,
    FunctionType: _function,
    MethodType: _method,
    CellType: _cell,
    ModuleType: _module,
    GeneratorType: _generator,
    type: _class,
}
