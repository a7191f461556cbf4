"""The reach of a call: looked at, put back as it was, and compared with another look.

The judge takes a `World` before a call, one after the plain function and one after the replay. It
asks nothing of an object that would run its code: types and dicts are read as they are.
"""

from __future__ import annotations

import argparse
import dis
import functools
import itertools
import random
import struct
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
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

from oneflow_lite.arrays.device import Device
from oneflow_lite.autograd.rules.gradient_rules import HookedGradFunction
from oneflow_lite.errors import InplaceError
from oneflow_lite.functors.random import Generator
from oneflow_lite.nn.parameter import is_lazy
from oneflow_lite.tensors.autograd_meta import AutogradMeta
from oneflow_lite.tensors.hooks import NodeHooks
from oneflow_lite.tensors.node import AccumulateGrad, Edge, FunctionNode
from oneflow_lite.tensors.storage import Storage, ViewInfo
from oneflow_lite.tensors.tensor import OWN_FIELDS, Tensor

LIMIT = 50_000  # objects; what lies behind them is not looked at
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "nothing"})()
_ATOMS = {
    bool, int, str, bytes, type(None), type(...), type(NotImplemented), type(MISSING), CodeType,
    Device,
}  # fmt: skip
# Modules whose classes and functions keep no state that a call of a user's function changes.
_LIBRARIES = {*sys.stdlib_module_names, "numpy", "scipy", "oneflow_lite", "pytest", "_pytest"}
# Classes among them whose objects do.
_HOLDERS = {
    SimpleNamespace, argparse.Namespace, functools.partial, functools.cached_property, property,
    staticmethod, classmethod, BaseException,
}  # fmt: skip
_OWN_HOLDERS = ("nn", "optim", "distributions", "utils", "compatibility", "func")
_PARTS = {  # what C objects hold
    functools.partial: ("func", "args", "keywords"),
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    BaseException: ("args",),
    defaultdict: ("default_factory",),
    slice: ("start", "stop", "step"),
    range: ("start", "stop", "step"),
    MethodType: ("__self__", "__func__"),
    FunctionType: ("__code__", "__defaults__", "__kwdefaults__"),
}
_UNCHANGING = {"__dict__", "__weakref__", "__doc__", "__module__", "_abc_impl"}  # of a class
_INTERNAL = (AutogradMeta, FunctionNode, HookedGradFunction, NodeHooks, ViewInfo, Storage)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that a class statement made


class Fact:
    """Something of a holder that is compared by its value; of arrays as `kind` "values"."""

    def __init__(self, value: Any, kind: str = "is") -> None:
        self.token = (kind, value)


Parts = Iterable[tuple[str, Any]]
Looker = Callable[["World", Any], Parts]


class World:
    """All that some roots lead to, at one moment.

    Parameters
    ----------
    roots : mapping of str to object
        By the words that a difference names them with.
    before : World, optional
        The first look, which knows who is who, and can be put back.
    last : World, optional
        The look before this one: how far iterators have got since counts, as nobody can put them
        back.

    Attributes
    ----------
    facts : list of (int, str, token)
        The facts that are compared: the number of the holder, which of its parts, and what that is.
    """

    def __init__(
        self, roots: Mapping[str, Any], before: World | None = None, last: World | None = None
    ) -> None:
        self.before = before
        self.facts: list[tuple[int, str, Any]] = []
        self._named: list[tuple[int, str]] = []  # holders, each as a part of another one
        self.nodes: list[FunctionNode] = [] if before is None else before.nodes
        self._last = last or before
        self._places: dict[int, Any] = {}  # of iterators
        self._numbers: dict[int, int] = {}
        self._met: list[Any] = []  # so that no identity is used twice
        self._kept: set[int] = set()
        self._undo: list[Callable[[], None]] = []
        self._queue: deque[tuple[int, Any]] = deque()
        for name, value in roots.items():
            self.facts.append((-1, name, self._token(value, -1, name)))
        while self._queue:
            number, value = self._queue.popleft()
            for label, part in _looker(type(value))(self, value):
                token = part.token if type(part) is Fact else self._token(part, number, label)
                self.facts.append((number, label, token))
        for position, node in enumerate(self.nodes):
            freed = ("is", node.saved is None)
            self.facts.append((-1, f"whether {node.name()} ({position}) is freed", freed))

    def place(self, number: int, label: str) -> str:
        """Return how users call a part of a holder."""
        is_name = number < 0 or label.startswith("the ")
        return label if is_name else self.name(number) + label

    def name(self, number: int) -> str:
        """Return how users call a holder."""
        return self.place(*self._named[number])

    def number(self, value: Any) -> int:
        """Return the number of an object that was met."""
        return self._numbers[id(value)]

    def _token(self, value: Any, number: int, label: str) -> Any:
        """Return what stands for a value: its type and content, or who it is."""
        token = _atom(value)
        return self.who(value, number, label) if token is None else token

    def who(self, value: Any, holder: int, label: str, look: bool = True) -> tuple[str, int]:
        """Return who an object is, the part `label` of a holder, and look at it later."""
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._named)
            self._met.append(value)
            self._named.append((holder, label))
            if look and number < LIMIT:
                self._queue.append((number, value))
        known = None if self.before is None else self.before._numbers.get(id(value))
        return ("new", number) if known is None else ("known", known)

    def moved(self, value: Any, place: Any) -> Fact:
        """Say whether something that is iterated has got on since the last look, or how far."""
        self._places[id(value)] = place
        before = None if self._last is None else self._last._places.get(id(value))
        return Fact(place - before if type(before) is type(place) is int else place != before)

    # What is kept to be put back

    def put_back(self) -> None:
        """Have everything hold again what it held at this look."""
        for undo in self._undo:
            undo()

    def keep(self, owner: Any, read: Callable[[], Any], write: Callable[[list[Any]], None]) -> None:
        """Keep what an object holds, to be written back where something else is read then."""
        if self.before is not None or id(owner) in self._kept:
            return
        self._kept.add(id(owner))
        content = list(read())

        def undo() -> None:
            now = list(read())
            if len(now) != len(content) or not all(map(is_, now, content)):
                write(content)

        self._undo.append(undo)

    def keep_mapping(self, owner: Any) -> None:
        """Keep what a dict holds."""
        if self.before is not None:
            return
        base: Any = OrderedDict if isinstance(owner, OrderedDict) else dict

        def write(content: list[Any]) -> None:
            half = len(content) // 2
            base.clear(owner)
            base.update(owner, zip(content[:half], content[half:], strict=True))

        self.keep(owner, lambda: [*base.keys(owner), *base.values(owner)], write)

    def keep_elements(self, owner: Any, base: Any) -> None:
        """Keep what a list, deque or set holds."""

        def write(content: list[Any]) -> None:
            base.clear(owner)
            (base.update if base is set else base.extend)(owner, content)

        self.keep(owner, lambda: base.__iter__(owner), write)

    def keep_places(self, key: Any, places: Sequence[tuple[Any, Any]]) -> None:
        """Keep what stands at (owner, name): slots, attributes of functions, cells, globals."""

        def write(content: list[Any]) -> None:
            for (owner, name), value in zip(places, content, strict=True):
                if _read(owner, name) is not value:
                    _write(owner, name, value)

        self.keep(key, lambda: itertools.starmap(_read, places), write)

    def keep_array(self, array: Any) -> Any:
        """Keep the content of the memory that an array lies in; return who owns it."""
        owner = link = array
        while (link := getattr(link, "base", None)) is not None:
            if hasattr(link, "copy"):  # no array: what `as_strided` stands between two of them
                owner = link

        def write(content: list[Any]) -> None:
            if not isinstance(owner, np.ndarray):
                owner[...] = content[0]
            elif owner.tobytes() != content[0].tobytes():
                writeable = owner.flags.writeable
                owner.flags.writeable = True
                np.copyto(owner, content[0])
                owner.flags.writeable = writeable

        self.keep(owner, lambda: [owner.copy()], write)
        return owner

    def keep_graph(self, start: Any) -> None:
        """Keep what autograd notes behind a tensor: metas, hooks, nodes, and views."""
        work = [start] if self.before is None else []
        while work and len(self.nodes) < LIMIT:
            value = work.pop()
            if isinstance(value, tuple):
                work.extend(value)
            elif isinstance(value, _INTERNAL) and id(value) not in self._kept:
                if isinstance(value, FunctionNode) and not isinstance(value, AccumulateGrad):
                    self.nodes.append(value)
                for _, held in _fields(self, value):
                    if isinstance(held, dict):  # of hooks, too
                        self.keep_mapping(held)
                    elif type(held) is list:
                        self.keep_elements(held, list)
                        work.extend(held)
                    else:
                        work.append(held)
                self._kept.add(id(value))


def _atom(value: Any) -> tuple[Any, ...] | None:
    """Return what stands for a value that is nothing but its type and content."""
    kind = type(value)
    if kind in _ATOMS:
        return "is", value, kind
    if kind is float:
        return "is", repr(value), struct.pack("d", value)
    if kind is complex:
        return "is", repr(value), struct.pack("dd", value.real, value.imag)
    if kind is tuple:
        items = tuple(map(_atom, value))
        return None if None in items else ("is", value, items)
    if isinstance(value, np.generic):
        return "is", repr(value), value.tobytes()
    return ("is", str(value), np.dtype) if isinstance(value, np.dtype) else None


def _read(owner: Any, name: Any) -> Any:
    """Return what stands under a name of a dict or function, in a slot, or in a cell."""
    if type(owner) is dict:
        return owner.get(name, MISSING)
    try:
        if type(name) is MemberDescriptorType:
            return name.__get__(owner, type(owner))
        return getattr(owner, name)
    except (AttributeError, ValueError):
        return MISSING


def _write(owner: Any, name: Any, value: Any) -> None:
    """Put something, or nothing, in such a place."""
    put: Any = dict.__setitem__ if type(owner) is dict else setattr
    remove: Any = dict.__delitem__ if type(owner) is dict else delattr
    if type(name) is MemberDescriptorType:
        put, remove = type(name).__set__, type(name).__delete__
        owner, name = name, owner
    if value is MISSING:
        remove(owner, name)
    else:
        put(owner, name, value)


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
        number, label = (want or have)[:2]
        tokens = [MISSING if fact is None else fact[2] for fact in (have, want)]
        if want is None or have is None or want[:2] != have[:2]:  # which of them is there alone?
            only_in_replay = want is None or (have and have[:2] not in {f[:2] for f in plain.facts})
            number, label = (have if only_in_replay else want)[:2]
            tokens[bool(only_in_replay)] = MISSING
        elif label in unlike or _agree(tokens[0], tokens[1], near):
            continue
        place = (replay if tokens[1] is MISSING else plain).place(number, label)
        shown = [_shown(t, world) for t, world in zip(tokens, (replay, plain), strict=True)]
        return f"`{place}`: the replay left {shown[0]}, the plain function {shown[1]}"
    return None


def _agree(have: Any, want: Any, near: float) -> bool:
    """Return whether two arrays are of the same numbers, whichever nan stands for no number."""
    if not (have[0] == want[0] == "values" and have[1][:2] == want[1][:2]):
        return False
    a, b = (np.frombuffer(bits, dtype) for dtype, _, bits in (have[1], want[1]))
    if a.dtype.kind not in "fc":
        return False
    if a.dtype.kind == "c":
        a, b = (x.view(x.real.dtype) for x in (a, b))
    if not near:
        same = (a == b) & (np.signbit(a) == np.signbit(b))
        return bool((same | (np.isnan(a) & np.isnan(b))).all())
    if a.dtype != np.float64:
        near = max(near, 1e-5)
    scale = near * max(1.0, float(np.nanmax(np.abs(b), initial=0.0)))
    return np.allclose(a, b, rtol=0, atol=scale, equal_nan=True)


def _shown(token: Any, world: World) -> str:
    """Return a token in words."""
    if token is MISSING:
        return "nothing"
    if token[0] == "values":
        dtype, shape, bits = token[1]
        text = np.array2string(np.frombuffer(bits, dtype).reshape(shape), threshold=20)
        return " ".join(text.split())
    if token[0] in ("new", "known"):
        names = world.before if token[0] == "known" and world.before else world
        return f"{'what was' if token[0] == 'known' else 'a new object,'} `{names.name(token[1])}`"
    text = repr(token[1])
    return text if len(text) < 200 else text[:197] + "..."


# What the objects of each type hold


def _looker(kind: type) -> Looker:
    """Return the function that says what objects of a type hold."""
    known = _KNOWN.get(kind)
    if known is None:
        fitting = (looker for base, looker in _LOOKERS.items() if issubclass(kind, base))
        other = _instance if any(map(_holds, kind.__mro__)) else _closed
        known = _KNOWN[kind] = next(fitting, other)
    return known


_KNOWN: WeakKeyDictionary[type, Looker] = WeakKeyDictionary()


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
        yield "'s rest", world.moved(value, hint(value))
    notes = getattr(type(value), "notes_of_calls", None)
    if notes is not None:  # a compiled function
        names = [name for name in vars(value) if name not in notes]
        world.keep_places(value, [(vars(value), name) for name in names])
        yield from ((f".{name}", vars(value)[name]) for name in names)
    if isinstance(value, functools._lru_cache_wrapper):
        yield ".__wrapped__", value.__wrapped__


def _instance(world: World, value: Any) -> Parts:
    kind = type(value)
    names = _parts(kind)
    yield "'s type", Fact(kind) if _is_library(kind.__module__) else kind
    if names:
        yield from [(f".{name}", getattr(value, name)) for name in names]
    if kind.__dictoffset__ or kind.__flags__ & _HEAP_TYPE:
        yield from _fields(world, value)


@functools.lru_cache(1000)
def _parts(kind: type) -> list[str]:
    """Return what C objects of a type hold."""
    return [name for base, names in _PARTS.items() if issubclass(kind, base) for name in names]


@functools.lru_cache(1000)
def _slots(kind: type) -> list[MemberDescriptorType]:
    return [
        member
        for cls in kind.__mro__
        for member in (vars(cls).values() if "__slots__" in vars(cls) else ())
        if type(member) is MemberDescriptorType
    ]


def _fields(world: World, value: Any) -> Parts:
    """Attributes: in slots and in the dict."""
    members = _slots(type(value))
    if members:
        world.keep_places(value, [(value, member) for member in members])
        yield from ((f".{member.__name__}", _read(value, member)) for member in members)
    try:
        fields = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return
    if type(fields) is dict:
        world.keep_mapping(fields)
        yield from ((f".{name}", held) for name, held in fields.items())


def _tuple(world: World, value: Any) -> Parts:
    yield from _instance(world, value)
    yield from ((f"[{i}]", item) for i, item in enumerate(tuple.__iter__(value)))


def _list(world: World, value: Any) -> Parts:
    base: Any = list if isinstance(value, list) else deque
    world.keep_elements(value, base)
    yield from _instance(world, value)
    yield from ((f"[{i}]", item) for i, item in enumerate(base.__iter__(value)))


def _dict(world: World, value: Any) -> Parts:
    base: Any = OrderedDict if isinstance(value, OrderedDict) else dict
    world.keep_mapping(value)
    yield from _instance(world, value)
    for i, (key, held) in enumerate(list(base.items(value))):
        plain = type(key) in _ATOMS or type(key) is float
        if not plain:
            yield f"'s key {i}", key
        yield f"[{key!r}]" if plain else f"[key {i}]", held


def _set(world: World, value: Any) -> Parts:
    base: Any = set if isinstance(value, set) else frozenset
    if base is set:
        world.keep_elements(value, set)
    yield from _instance(world, value)
    items = list(base.__iter__(value))
    plain = [x for x in items if type(x) in _ATOMS]
    yield "'s elements", Fact(frozenset((type(x), x) for x in plain))
    others = sorted([x for x in items if type(x) not in _ATOMS], key=id)
    yield from ((f"'s element {i}", x) for i, x in enumerate(others))


def _generator(world: World, value: Any) -> Parts:
    frame, inner = value.gi_frame, value.gi_yieldfrom
    hint = getattr(type(inner), "__length_hint__", lambda inner: None)
    fields = {} if frame is None else frame.f_locals
    plain = {name: held for name, held in fields.items() if type(held) in _ATOMS}
    place = (-1 if frame is None else frame.f_lasti, hint(inner), plain)
    yield "'s place", world.moved(value, place)
    yield from ((f"'s {name}", held) for name, held in fields.items() if name not in plain)


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
    yield from _instance(world, value)
    cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    yield from ((f"the variable {name}", cell) for name, cell in cells)
    places: list[tuple[Any, Any]] = [(value, name) for name in _PARTS[FunctionType]]
    scope = value.__globals__
    if not _is_library(scope.get("__name__")):
        names, stored = _names_in(value.__code__)
        for name in [name for name in names if name in scope or name in stored]:
            places.append((scope, name))
            held = scope.get(name, MISSING)
            yield f"the global {name}", held
            if isinstance(held, ModuleType) and not _is_library(held.__name__):
                inside = [name for name in names if name in vars(held)]
                places += [(vars(held), name) for name in inside]
                yield from ((f"the global {name}.{n}", vars(held)[n]) for n in inside)
    world.keep_places(value, places)


def _cell(world: World, cell: CellType) -> Parts:
    world.keep_places(cell, [(cell, "cell_contents")])
    yield "", _read(cell, "cell_contents")


def _class(world: World, cls: type) -> Parts:
    if not cls.__flags__ & _HEAP_TYPE:
        return
    yield from ((f"'s base {base.__name__}", base) for base in cls.__bases__)
    if _is_library(cls.__module__):
        return

    def members() -> dict[str, Any]:
        return {name: held for name, held in vars(cls).items() if name not in _UNCHANGING}

    def write(content: list[Any]) -> None:
        kept, now = dict(content), members()
        for name in now.keys() - kept.keys():
            type.__delattr__(cls, name)
        for name in [name for name, held in kept.items() if now.get(name, MISSING) is not held]:
            type.__setattr__(cls, name, kept[name])

    world.keep(cls, lambda: members().items(), write)
    yield from ((f".{name}", held) for name, held in members().items())


def _module(world: World, module: ModuleType) -> Parts:
    return ()  # what of it counts, the functions say that mention it


def _random(world: World, value: random.Random) -> Parts:
    world.keep(value, lambda: [value.getstate()], lambda content: value.setstate(content[0]))
    yield "'s state", Fact(value.getstate())


def _own_generator(world: World, value: Generator) -> Parts:
    """A generator of this library; CuPy's stream of it can be neither read nor put back."""
    world.keep_mapping(vars(value))
    world.keep_mapping(value._streams)
    yield ".initial_seed()", value.initial_seed()
    if np.__name__ in value._streams:
        yield "", value._streams[np.__name__]


def _stream(world: World, value: Any) -> Parts:
    bits = getattr(value, "bit_generator", None) or getattr(value, "_bit_generator", value)
    world.keep(bits, lambda: [bits.state], lambda content: setattr(bits, "state", content[0]))
    yield "'s state", Fact(_frozen(bits.state))


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
    if not isinstance(kind, np.dtype) or kind.kind not in "biufc":  # bfloat16
        return Fact((str(kind), host.shape, host.tobytes()))
    return Fact((kind.str, host.shape, host.tobytes()), "values")


_dtype = functools.lru_cache(100)(str)  # NumPy makes its name anew each time


def _layout(array: Any) -> Fact:
    """An array's strides, where they say anything."""
    if 0 in array.shape:
        return Fact(())
    pairs = zip(array.shape, array.strides, strict=True)
    return Fact(tuple(None if size == 1 else stride for size, stride in pairs))


def _array(world: World, array: Any) -> Parts:
    world.keep_array(array)
    yield "'s dtype", Fact(_dtype(array.dtype))
    yield "'s shape", Fact(array.shape)
    yield "'s strides", _layout(array)
    if array.dtype.kind == "O":
        yield from ((f".flat[{i}]", item) for i, item in enumerate(array.flat))
    else:
        yield "'s values", _values(world, array)


def _tensor(world: World, tensor: Tensor) -> Parts:
    yield "'s type", Fact(type(tensor))
    if is_lazy(tensor) or getattr(tensor._data, "is_symbolic", False):  # without values of its own
        yield from _fields(world, tensor)
        return
    try:
        tensor.refresh_view()
        yield "'s history is followed", Fact(True)
    except InplaceError:
        yield "'s history is followed", Fact(False)
    memory = tensor.memory
    array, edge, view = tensor._data, tensor._edge, tensor._view
    world.keep_graph((edge, view, tensor._leaf))
    world.keep_mapping(vars(tensor))
    yield ".dtype", Fact(_dtype(array.dtype))
    yield ".shape", Fact(tuple(array.shape))
    yield ".device", Fact(str(tensor.device))
    yield ".stride()", _layout(array)
    yield "'s values", _values(world, array)
    owner = world.keep_array(array)
    yield "'s memory", Fact(world.who(owner, world.number(tensor), "'s memory", look=False))
    leaf = edge is not None and isinstance(edge[0], AccumulateGrad)
    place = "none" if edge is None else "leaf" if leaf else "node"
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
        return tensor._leaf
    metas = edge[0].metas
    return None if metas is None else metas[edge[1]]


def _hooks(edge: Edge | None, meta: AutogradMeta | None) -> Iterator[Any]:
    if meta is not None:
        yield from (meta.hooks or {}).values()
        yield from (meta.post_accumulate_hooks or {}).values()
    if edge is not None and isinstance(edge[0], AccumulateGrad) and edge[0].hooks is not None:
        yield from (*edge[0].hooks.pre.values(), *edge[0].hooks.post.values())


def _storage(world: World, storage: Storage) -> Parts:
    world.keep_mapping(vars(storage))
    yield ".version", Fact(storage.version)


_LOOKERS: dict[type, Looker] = {
    Tensor: _tensor, Storage: _storage, Generator: _own_generator, np.ndarray: _array,
    np.random.Generator: _stream, np.random.BitGenerator: _stream,
    np.random.RandomState: _stream, random.Random: _random,
    tuple: _tuple, list: _list, deque: _list, dict: _dict, set: _set, frozenset: _set,
    slice: _instance, range: _instance, MethodType: _instance, FunctionType: _function,
    CellType: _cell, ModuleType: _module, GeneratorType: _generator, type: _class,
}  # fmt: skip
