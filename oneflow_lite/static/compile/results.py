"""The results and effects of a replay: described once, written into one generated function.

A tensor that it returns or leaves is new memory that the Program computed, the very object that was
an argument or stood outside, an alias of such a one, a view of another tensor, or a gradient. Each
is an `Entry`; containers and objects around them are made again at every replay.
"""

from __future__ import annotations

import weakref
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import attrs

from oneflow_lite.autograd.gradient_rules import HookedGradFunction
from oneflow_lite.autograd.mode import local, set_grad_enabled
from oneflow_lite.autograd.node import AccumulateGrad
from oneflow_lite.function_writer import FunctionWriter
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.static.compile import lookup
from oneflow_lite.static.compile.recorder import describe
from oneflow_lite.static.compile.same import is_atom
from oneflow_lite.static.compile.tensor_states import TensorState, hooks_of, users_attributes
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.ir.tree import is_plain
from oneflow_lite.storage import NO_GRAD, SPLIT, Origin, ViewInfo
from oneflow_lite.tensor import Tensor

Observer = Any  # which stands on this module
_BASES = (OrderedDict, defaultdict, dict, list, SimpleNamespace, object)


class NotReplayable(Exception):
    """A recording cannot stand for later calls; the text says why."""


@attrs.frozen(eq=False)
class Entry:
    """A tensor that a replay has at hand when its Program has run.

    Attributes
    ----------
    lines : tuple of str
        The code that makes it, under the name y and its position.
    kind : {"given", "numbers", "made", "alias", "gradient", "view"}
        "given" was there before, "numbers" is an array to be read out. "made" is a tensor around an
        array that the Program gave, the variable `fetch`. The others are made of the entry at
        `source`.
    place : {"no", "leaf", "node"}
        In the graph: none, a new leaf, or an output of the compiled function's node.
    """

    tensor: Tensor
    lines: tuple[str, ...]
    kind: str
    source: int = -1
    fetch: str | None = None
    place: str = "no"

    @property
    def is_simple(self) -> bool:
        """Whether it needs nothing but the arguments and its array."""
        shares = "._storage = " in self.lines[-1]
        return self.source < 0 and self.place == "no" and not shares


class Effect(NamedTuple):
    """An effect of a call outside: its code, the entries it needs, and how many ops come before."""

    lines: Sequence[str]
    needs: Iterable[int]
    number: int


class Store(NamedTuple):
    """A place outside that a call gave another value, after `number` ops.

    It is an "attribute", "item" or "cell"; the key of a "count" is what it is called, with its dot
    or brackets, and the formula of its new number, in which @ is the old one.
    """

    holder: Any
    kind: str
    key: Any
    value: Any
    number: int


class Written(NamedTuple):
    """A storage outside that a call writes: a tensor's expression, and the ops' numbers."""

    given: str
    numbers: Sequence[int]


class Results:
    """The tensors that a call returned or left behind, in a list without repetitions.

    `NotReplayable` is raised where a replay could not make one of them.

    Attributes
    ----------
    entries : list of Entry
        Later ones may be made of earlier ones.
    fetches : list of str
        The variables that the Program has to give.
    effects : list of Effect
    differentiable : list of Tensor
        The tensors whose place is "node", in order.
    """

    def __init__(
        self,
        observer: Observer,
        arguments: Sequence[Tensor],
        states: Sequence[TensorState],
        value: Any,
        stores: Sequence[Store],
    ) -> None:
        self._observer = observer
        self._recorder = observer.recorder
        self.arguments = arguments
        self._arguments = {id(tensor): i for i, tensor in reversed(list(enumerate(arguments)))}
        self._outside = {id(state.tensor): state.tensor for state in states}
        self._by_array: dict[int, Tensor] = {}
        self._by_storage: dict[int, int] = {}  # positions of what the call made
        self._views: dict[int, Tensor] = {}  # of tensors that were views before
        for state in sorted(states, key=lambda state: id(state.tensor) not in self._arguments):
            self._by_array.setdefault(id(state.data), state.tensor)
            if state.view is not None:
                self._views.setdefault(id(state.view), state.tensor)
        self._moved = {id(state.tensor) for state in states if state.moved}
        changed = [state.tensor for state in states if state.tensor.grad is not state.grad]
        self._gradients = {id(tensor.grad) for tensor in changed if tensor.grad is not None}
        self._found: dict[int, int] = {}
        self.entries: list[Entry] = []
        self.fetches: list[str] = []
        self.effects: list[Effect] = []
        self.differentiable: list[Tensor] = []
        self.writer = FunctionWriter({"new": Tensor.__new__})
        self._uses: Counter[int] = Counter()  # of containers and objects
        self._taken: dict[int, _Parts] = {}
        self._names: dict[int, str] = {}  # of those that are used several times
        self._lines: list[str] = []
        for state in states:
            if state.moved:
                self.effects.append(self._array(state))
        for tensor in changed:
            self.effects.append(self._gradient(tensor))
        self._count(value, "returned")
        for store in stores:
            self._count(store.value, "left behind")
        for store in stores:
            self.effects.append(self._store(store))
        # What is named is made with what is stored first, and not once more.
        self.can_leave = not self._names and all(map(self._can_leave, self.effects))
        returned = self._expression(value, [])
        self.ending = [*self._lines, "found[-1] = True", f"return {returned}"]

    def place(self, tensor: Tensor) -> str:
        """Return the expression of a tensor that was there before."""
        position = self._arguments.get(id(tensor))
        return self.writer.value(tensor) if position is None else f"x[{position}]"

    # What is left behind

    def _array(self, state: TensorState) -> Effect:
        """Give a tensor that was there before another array, as `.data` does when it is set."""
        block = self._recorder.block
        name = self._recorder.find(state.tensor._data)
        is_new = name is not None and block.var(name).is_temporary
        if state.view is not None or not is_new or self._recorder.roots.get(str(name)) != name:
            raise NotReplayable(
                f"a tensor of shape {state.data.shape} from outside got an array that the call "
                "did not make"
            )
        owner, given = self.position(state.tensor), self.position(state.tensor.detach())
        lines = [
            f"y{owner}._data = y{given}._data",
            f"y{owner}._storage = y{given}.memory",
            f"y{owner}._view = None",
        ]
        return Effect(lines, (owner, given), -1)

    def _gradient(self, tensor: Tensor) -> Effect:
        grad, position = tensor.grad, self.position(tensor)
        if grad is not None and grad.requires_grad:
            raise NotReplayable("a gradient with a graph of its own was left in .grad")
        if grad is not None and grad._view is not None:
            raise NotReplayable("a view was left in .grad")
        edge = None if id(tensor) in self._arguments else tensor._edge
        meta = f"y{position}.autograd_meta"
        if edge is not None and isinstance(edge[0], AccumulateGrad):
            meta = self.writer.value(edge[0].meta)
        if grad is None:
            return Effect([f"{meta}.acc_grad = None"], (position,), -1)
        made = self.position(grad)
        return Effect([f"{meta}.acc_grad = y{made}"], (position, made), -1)

    def _store(self, store: Store) -> Effect:
        holder, kind, key, value, number = store
        needs: list[int] = []
        self._lines = []
        place, name = self._holder(holder), self.writer.value(key)
        if kind == "count":
            where = f"{place}{key[0]}"
            # Two lines: one that an interrupt stops is done again.
            return Effect([f"n = {key[1].replace('@', where)}", f"{where} = n"], (), number)
        made = self._expression(value, needs)
        if kind == "item":
            line = f"{place}[{name}] = {made}"
        elif kind == "cell":
            line = f"{place}.cell_contents = {made}"
        else:
            setter = setattr if type(holder) is ModuleType else object.__setattr__
            line = f"{self.writer.value(setter)}({place}, {name}, {made})"
        lines, self._lines = [*self._lines, line], []
        return Effect(lines, needs, number)

    def _holder(self, holder: Any) -> str:
        """Return the expression of a holder: one in the arguments, or held weakly if it can be."""
        holders = list(self._observer.match.holders)
        if id(holder) in holders:
            return f"x[{len(self.arguments) + holders.index(id(holder))}]"
        try:
            return f"{self.writer.value(weakref.ref(holder))}()"
        except TypeError:
            return self.writer.value(holder)

    def _can_leave(self, effect: Effect) -> bool:
        """Return whether the ops before it are all that an effect needs."""
        entries = [self.entries[position] for position in effect.needs]
        if effect.number >= 0 and any(e.kind == "made" and e.tensor._version for e in entries):
            return False
        return all(entry.is_simple for entry in entries)

    # Values

    def _parts(self, value: Any, how: str) -> _Parts | None:
        """Take a container or object apart; None for what a replay hands on as it is.

        Raises
        ------
        NotReplayable
            When it cannot be made again.
        """
        if id(value) in self._observer.read_out or isinstance(value, Tensor):
            return None
        in_parts = type(value) is tuple and self._observer.read_out  # it may hold what was read
        if is_plain(value) or (is_atom(value) and not in_parts):
            return None
        kind, known = type(value), self._observer.known(value)
        outside = known is not None and known.expression is not None
        if outside and known.held and how != "returned":
            return None
        if outside and issubclass(kind, (list, dict)):
            raise NotReplayable(f"it {how} a list or dict that is also elsewhere")
        made = self._observer.known(kind)  # each call that makes a class makes another
        made_here = known is not None and not outside and (made is None or made.expression)
        parts = _taken_apart(value, bool(made_here))
        if parts is None or not all(map(is_plain, parts.keys)):
            raise NotReplayable(f"it {how} an object of type {kind.__name__}")
        return parts

    def _count(self, value: Any, how: str, within: tuple[int, ...] = ()) -> None:
        """Count how often each container and object is used."""
        parts = self._parts(value, how)
        if parts is None:
            return
        if id(value) in within:
            raise NotReplayable(f"it {how} an object that holds itself")
        self._uses[id(value)] += 1
        if id(value) not in self._taken:
            self._taken[id(value)] = parts
            for part in (*parts.items, *parts.values):
                self._count(part, how, (*within, id(value)))

    def _expression(self, value: Any, needs: list[int]) -> str:
        """Return the expression of a value; entries that it names are added to `needs`."""
        read = self._observer.read_out.get(id(value))
        if read is not None:
            position = self._numbers(read[1])
            needs.append(position)
            is_array = self.entries[position].kind == "numbers"
            return self._read_out(f"y{position}" if is_array else f"y{position}._data", read[2])
        if isinstance(value, Tensor):
            position = self.position(value)
            needs.append(position)
            return f"y{position}"
        if id(value) in self._names:
            return self._names[id(value)]
        if id(value) not in self._taken:
            return self.writer.value(value)
        kind, base, keys, items, names, values = self._taken[id(value)]
        listed = [self._expression(item, needs) for item in items]
        if keys:
            pairs = zip(map(self.writer.value, keys), listed, strict=True)
            made = f"{{{', '.join([f'{k}: {v}' for k, v in pairs])}}}"
        elif base in (dict, OrderedDict):
            made = "{}"
        else:
            made = (
                f"[{', '.join(listed)}]"
                if base is list
                else f"({''.join(f'{v}, ' for v in listed)})"
            )
        if base is tuple and kind is not tuple:
            made = f"{self.writer.value(kind)}{made}"
        elif kind not in (tuple, list, dict):
            given = "".join(f"{self._expression(v, needs)}, " for v in values)
            arguments = ", ".join(map(self.writer.value, (kind, base, names)))
            made = f"{self.writer.value(_made)}({arguments}, ({given}), {made})"
        if self._uses[id(value)] > 1:
            name = self._names[id(value)] = f"z{len(self._names)}"
            self._lines.append(f"{name} = {made}")
            return name
        return made

    def _read_out(self, array: str, how: Any) -> str:
        """Return the expression that reads an array: a method, or arithmetic on its result."""
        if type(how) is tuple:
            inner, op, other, reflected = how
            parts = [self._read_out(array, inner), self.writer.value(other)]
            return f"({f' {op} '.join(reversed(parts) if reflected else parts)})"
        return array if how == "numpy" else f"{array}.{how}()"

    # Tensors

    def position(self, tensor: Tensor) -> int:
        """Return where a tensor stands in `entries`, after adding it where it is new."""
        found = self._found.get(id(tensor))
        if found is None:
            self._found[id(tensor)] = found = self._new_entry(tensor)
            if self.entries[found].kind == "made":
                self._by_array.setdefault(id(tensor._data), tensor)
                if tensor._storage is not None:
                    self._by_storage.setdefault(id(tensor._storage), found)
        return found

    def _numbers(self, tensor: Tensor) -> int:
        """Return where the array of a tensor stands that was read out."""
        recorder, name = self._recorder, self._recorder.find(tensor._data)
        if name is None or id(tensor) in self._arguments or id(tensor) in self._outside:
            return self.position(tensor)
        if recorder.block.var(name).value is not None:
            name = self._copied(tensor)
        if recorder.block.var(name).persistable:
            raise NotReplayable("it read out memory that came from outside")
        return self._add(tensor.detach(), "numbers", f"@ = {self._fetched(name)}", fetch=name)

    def _add(self, tensor: Tensor, kind: str, *lines: str, **options: Any) -> int:
        """Add an entry, called @ in its lines; return its position."""
        name = f"y{len(self.entries)}"
        made = tuple([line.replace("@", name) for line in lines])
        self.entries.append(Entry(tensor, made, kind, **options))
        return len(self.entries) - 1

    def _fetched(self, name: str) -> str:
        """Return the array that the Program gives for a variable."""
        if name not in self.fetches:
            self.fetches.append(name)
        return f"found[{self.fetches.index(name)}]"

    def _new_entry(self, tensor: Tensor) -> int:
        if id(tensor) in self._arguments or id(tensor) in self._outside:
            return self._add(tensor, "given", f"@ = {self.place(tensor)}")
        owner = next((t for t in self._outside.values() if t.grad is tensor), None)
        if owner is not None and id(tensor) not in self._gradients:
            source = self.position(owner)
            return self._add(tensor, "gradient", f"@ = y{source}.grad", source=source)
        if users_attributes(tensor):
            raise NotReplayable("it returned a tensor with attributes that were set on it")
        view = tensor._view
        if view is not None:
            _check_unwatched(tensor)
            if tensor._inference and not local.state.inference:
                raise NotReplayable("it returned a view that was made in inference_mode")
            base, chain = self._base_of(view)
            if id(base) in self._moved:
                raise NotReplayable("it returned a view of a tensor that got another array")
            if view.origin in (None, NO_GRAD, SPLIT) or self._is_known(base):
                if view.origin not in (None, NO_GRAD, SPLIT):
                    raise NotReplayable(f"it returned a view that was made {view.origin.how}")
                _check_hooks(tensor, base)
                source = self.position(base)
                take, *given = map(self.writer.value, (_taken_view, chain, view.origin))
                line = f"@ = {take}(y{source}, {', '.join(given)})"
                return self._add(tensor, "view", line, source=source)
        twin = self._by_array.get(id(tensor._data))
        if twin is not None:
            if tensor._edge is not None or tensor._storage is not twin._storage:
                raise NotReplayable("it returned two tensors around one piece of memory")
            source = self.position(twin)
            return self._add(tensor, "alias", f"@ = y{source}.detach()", source=source)
        return self._new_tensor(tensor)

    def _base_of(self, view: ViewInfo) -> tuple[Tensor, tuple[Any, ...]]:
        """Return what a view was taken from, and how: a view that was there before, or the base."""
        steps = []
        link: ViewInfo | None = view
        while link is not None and id(link) not in self._views:
            steps.append((link.op_expr, link.attrs))
            link = link.parent
        if link is not None:
            return self._views[id(link)], tuple(reversed(steps))
        return view.base, view.chain()

    def _is_known(self, tensor: Tensor) -> bool:
        """Return whether anybody outside can see that a tensor is the base of a view."""
        known = (*self._arguments, *self._outside, *self._found)
        return id(tensor) in known

    def _new_tensor(self, tensor: Tensor) -> int:
        recorder = self._recorder
        name = recorder.find(tensor._data)
        if name is None or recorder.block.var(name).value is not None:
            name = self._copied(tensor)
        desc = recorder.block.var(name)
        storage = tensor._storage
        if desc.persistable or desc.need_check_feed or name in recorder.unknown:
            raise NotReplayable("it returned memory that came from outside")
        lines = [f"@ = new({self.writer.value(type(tensor))})", f"@._data = {self._fetched(name)}"]
        if tensor._inference:
            lines.append("@._inference = True")
        outside = () if storage is None else self._outside.values()
        shared = [t for t in outside if t._storage is storage and id(t) not in self._moved]
        if shared:  # as view(dtype) shares memory and version, though it is no view
            if tensor._edge is not None:
                raise NotReplayable("it returned memory that came from outside")
            lines.append(f"@._storage = y{self.position(shared[0])}.memory")
        elif id(storage) in self._by_storage:  # as a view and what was detached from it do
            lines.append(f"@._storage = y{self._by_storage[id(storage)]}.memory")
        elif tensor._version:
            lines.append(f"@.memory.version = {tensor._version}")
        place = "no"
        if tensor._edge is not None:
            _check_unwatched(tensor)
            if isinstance(tensor._edge[0], AccumulateGrad):
                place = "leaf"
                lines.append("@.requires_grad = True")
            else:
                place = "node"
                self.differentiable.append(tensor)
        return self._add(tensor, "made", *lines, fetch=name, place=place)

    def _copied(self, tensor: Tensor) -> str:
        """Have a constant copied, for what is returned must be new at every call."""
        recorder = self._recorder
        source = recorder.name_of(tensor)
        if recorder.block.var(source).value is None:
            raise NotReplayable("it returned memory that the recording has not seen")
        copy: str = recorder.program.unique_name("clone")
        recorder.block.create_var(describe(copy, tensor))
        recorder.block.append_op(OpDesc("clone", (source,), (copy,)))
        return copy


class _Parts(NamedTuple):
    """A container or an object in pieces: `names` are of its attributes, or their descriptors."""

    kind: type
    base: type
    keys: tuple[Any, ...]
    items: Sequence[Any]
    names: tuple[Any, ...]
    values: Sequence[Any]


def _taken_apart(value: Any, made_here: bool) -> _Parts | None:
    """Return the parts of an object, if another object of the same parts is like it."""
    kind = type(value)
    if kind is tuple or kind is list:
        return _Parts(kind, kind, (), value, (), ())
    fields = lookup.fields_of(value) or {}
    if lookup.is_namedtuple(kind):
        return None if fields else _Parts(kind, tuple, (), [*tuple.__iter__(value)], (), ())
    base = next(b for b in _BASES if issubclass(kind, b))
    makers = (base, dict) if base is OrderedDict else (base,)
    if lookup.static(kind, "__new__")[0] not in makers or base is defaultdict:
        return None
    keys: tuple[Any, ...] = ()
    items: Sequence[Any] = ()
    if base in (dict, OrderedDict):
        keys = tuple(dict.keys(value) if base is dict else OrderedDict.keys(value))
        items = [dict.__getitem__(value, key) for key in keys]
    elif base is list:
        items = tuple(list.__iter__(value))
    if kind is not base:
        if not made_here or kind.__module__.startswith(("oneflow_lite.", "builtins")):
            return None
        if lookup.static(kind, "__del__")[0] is not None:
            return None
    found: dict[Any, Any] = {**fields, **lookup.slots_of(value)}
    return _Parts(kind, base, keys, items, tuple(found), tuple(found.values()))


def _made(kind: type, base: Any, names: Sequence[Any], values: Sequence[Any], content: Any) -> Any:
    """Make an object of a class from its attributes and content, as copying it would."""
    found: Any = base.__new__(kind)
    if base is list:
        found[:] = content
    elif content:
        for key, value in content.items():
            base.__setitem__(found, key, value)
    for name, value in zip(names, values, strict=True):
        if type(name) is str:
            found.__dict__[name] = value
        else:
            name.__set__(found, value)
    return found


def _check_unwatched(tensor: Tensor) -> None:
    """Raise where something waits for the gradient of a tensor that every replay makes anew."""
    edge = tensor._edge
    seen = edge is not None and edge[0].metas is not None
    if seen and (tensor.grad is not None or tensor.retains_grad):
        raise NotReplayable("it returned a tensor whose gradient it kept")
    if hooks_of(tensor):
        raise NotReplayable("it returned a tensor with hooks on its gradient")


def _check_hooks(tensor: Tensor, base: Tensor) -> None:
    """Raise where hooks are set between a view and its base."""
    edge = tensor._edge
    while edge is not None and edge != base._edge and edge[0] is not None:
        node, index = edge
        meta = node.metas and node.metas[index]
        if (meta and meta.hooks) or isinstance(node.grad_function, HookedGradFunction):
            raise NotReplayable("it returned a view with hooks on its gradient")
        edge = node.edges[0] if len(node.edges) == 1 else None


def _taken_view(base: Tensor, chain: tuple[Any, ...], origin: Origin | None) -> Tensor:
    """Return a view of a tensor, by its ops, made in the way that `origin` says."""
    with set_grad_enabled(origin is not NO_GRAD):
        for op, options in chain:
            base = dispatch1(op, base, options)
    if origin is SPLIT and base._view is not None:
        base._view.origin = SPLIT
    return base
