"""The end of a replay: its results, nodes and effects, written into one generated function.

A tensor that a replay returns or leaves is new memory that the Program computed, the very object
that was an argument or stood outside, an alias of such a one, a view of another tensor, or a
gradient. Each is an `Entry`; containers and objects around them are made again at every replay.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import attrs

from oneflow_lite.autograd.gradient_rules import HookedGradFunction
from oneflow_lite.autograd.mode import local, set_grad_enabled
from oneflow_lite.autograd.node import NO_EDGE, AccumulateGrad, Edge, make_node, tensor_info
from oneflow_lite.device import CPU
from oneflow_lite.function_writer import FunctionWriter
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.static.compile import lookup
from oneflow_lite.static.compile.recorder import RecordingInterpreter, describe
from oneflow_lite.static.compile.same import is_atom
from oneflow_lite.static.compile.tensor_states import TensorState, hooks_of, users_attributes
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.ir.tree import is_plain
from oneflow_lite.static.runtime.runner import frames
from oneflow_lite.storage import NO_GRAD, SPLIT, Origin, Storage, ViewInfo
from oneflow_lite.tensor import Tensor

Observer = Any  # which stands on this module
NEVER_WRITTEN = Storage()  # of what only a node holds
_BASES = (OrderedDict, defaultdict, dict, list, SimpleNamespace, object)


class NotReplayable(Exception):
    """A recording cannot stand for later calls; the text says why."""


@attrs.frozen(eq=False)
class Entry:
    """A tensor that a replay has at hand when its Program has run.

    Of its kinds, "given" was there before, and "numbers" is an array to be read out. "made" is a
    tensor around an array that the Program gave, the variable `fetch`. The others, "alias",
    "gradient" and "view", are made of the entry at `source`.
    """

    tensor: Tensor
    lines: tuple[str, ...]  # the code that makes it, under the name y and its position
    kind: str
    source: int = -1
    fetch: str | None = None
    place: str = "no"  # in the graph; or a new "leaf", or an output of the function's "node"


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
    """The tensors that a call returned or left behind, in a list without repetitions, and its end.

    `NotReplayable` is raised where a replay could not make one of them. When the nodes are added,
    `finish` writes the function.
    """

    def __init__(
        self,
        observer: Observer,
        arguments: Sequence[Tensor],
        value: Any,
        stores: Sequence[Store],
    ) -> None:
        self.states: list[TensorState] = list(observer.states.values())
        states = self.states  # of the tensors from outside, before the call
        self._observer = observer
        self.recorder: RecordingInterpreter = observer.recorder
        self.arguments = arguments
        self._arguments = {id(tensor): i for i, tensor in reversed(list(enumerate(arguments)))}
        self._outside = {id(state.tensor): state.tensor for state in states}
        self._by_array: dict[int, Tensor] = {}
        self._by_storage: dict[int, Tensor] = {}
        self._views: dict[int, Tensor] = {}  # of tensors that were views before
        for state in sorted(states, key=lambda state: id(state.tensor) not in self._arguments):
            self._by_array.setdefault(id(state.data), state.tensor)
            if not state.moved:
                self._by_storage.setdefault(id(state.tensor._storage), state.tensor)
            if state.view is not None:
                self._views.setdefault(id(state.view), state.tensor)
        self._moved = {id(state.tensor) for state in states if state.moved}
        changed = [state.tensor for state in states if state.tensor.grad is not state.grad]
        self._gradients = {id(tensor.grad) for tensor in changed if tensor.grad is not None}
        self._found: dict[int, int] = {}
        self.entries: list[Entry] = []  # later ones may be made of earlier ones
        self.fetches: list[str] = []  # the variables that the Program has to give
        self.effects: list[Effect] = []
        self.differentiable: list[Tensor] = []  # those whose place is "node", in order
        self._functions: list[Any] = []
        self._nodes: list[tuple[Sequence[int], list[str]]] = []  # their outputs and lines
        self._writer = FunctionWriter(
            {"new": Tensor.__new__, "make_node": make_node, "tensor_info": tensor_info,
             "placed": _placed, "kept": _kept, "NO_EDGE": NO_EDGE, "NEVER": NEVER_WRITTEN}
        )  # fmt: skip
        self._binder = FunctionWriter(self._writer.names, ["pass"])
        self._names: dict[int, str] = {}  # of containers and objects; "" while one is made
        self._count = count()
        self._lines: list[str] = []
        self.effects += [self._array(state) for state in states if state.moved]
        self.effects += [self._gradient(tensor) for tensor in changed]
        self.effects += [self._store(store) for store in stores]
        returned = self._expression(value, [], "returned")
        self._ending = [*self._lines, "found[-1] = True", f"return {returned}"]

    def place(self, tensor: Tensor) -> str:
        """Return the expression of a tensor that was there before."""
        position = self._arguments.get(id(tensor))
        return self._writer.value(tensor) if position is None else f"x[{position}]"

    # What is left behind

    def _array(self, state: TensorState) -> Effect:
        """Give a tensor that was there before another array, as `.data` does when it is set."""
        block = self.recorder.block
        name = self.recorder.find(state.tensor._data)
        is_new = name is not None and block.var(name).is_temporary
        if state.view is not None or not is_new or self.recorder.roots.get(str(name)) != name:
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
            meta = self._writer.value(edge[0].meta)
        if grad is None:
            return Effect([f"{meta}.acc_grad = None"], (position,), -1)
        made = self.position(grad)
        return Effect([f"{meta}.acc_grad = y{made}"], (position, made), -1)

    def _store(self, store: Store) -> Effect:
        holder, kind, key, value, number = store
        place, name = self._holder(holder), self._writer.value(key)
        if kind == "count":
            where = f"{place}{key[0]}"
            # Two lines: one that an interrupt stops is done again.
            return Effect([f"n = {key[1].replace('@', where)}", f"{where} = n"], (), number)
        needs: list[int] = []
        made = self._expression(value, needs, "left behind")
        if kind == "item":
            line = f"{place}[{name}] = {made}"
        elif kind == "cell":
            line = f"{place}.cell_contents = {made}"
        else:
            setter = setattr if type(holder) is ModuleType else object.__setattr__
            line = f"{self._writer.value(setter)}({place}, {name}, {made})"
        lines, self._lines = [*self._lines, line], []
        return Effect(lines, needs, number)

    def _holder(self, holder: Any) -> str:
        """Return the expression of a holder: one in the arguments, or held weakly if it can be."""
        holders = list(self._observer.match.holders)
        if id(holder) in holders:
            return f"x[{len(self.arguments) + holders.index(id(holder))}]"
        try:
            return f"{self._writer.value(weakref.ref(holder))}()"
        except TypeError:
            return self._writer.value(holder)

    def _can_leave(self, effect: Effect) -> bool:
        """Return whether the ops before it are all that an effect needs."""
        if any(line[0] == "z" for line in effect.lines):  # its content may have come later
            return False
        return all(
            entry.source < 0
            and entry.place == "no"
            and "._storage = " not in entry.lines[-1]
            and not (effect.number >= 0 and entry.kind == "made" and entry.tensor._version)
            for entry in [self.entries[position] for position in effect.needs]
        )

    # Values

    def _parts(self, value: Any, how: str) -> _Parts | None:
        """Take a container or object apart; None for what a replay hands on as it is."""
        in_parts = type(value) is tuple and self._observer.read_out  # it may hold what was read
        if is_plain(value) or (is_atom(value) and not in_parts):
            return None
        kind, known = type(value), self._observer.known(value)
        outside = known is not None and known.expression is not None
        if outside and known.held and how != "returned":
            return None
        if outside and issubclass(kind, (list, dict)):
            raise NotReplayable(f"it {how} a list or dict that is also elsewhere")
        parts = _taken_apart(value, known is not None and not outside)
        if parts is None or not all(map(is_plain, parts.keys)):
            raise NotReplayable(f"it {how} an object of type {kind.__name__}")
        return parts

    def _expression(self, value: Any, needs: list[int], how: str) -> str:
        """Return the expression of a value; entries that it names are added to `needs`."""
        read = self._observer.read_out.get(id(value))
        if read is not None or isinstance(value, Tensor):
            position = self.position(value) if read is None else self._numbers(read[1])
            needs.append(position)
            if read is None:
                return f"y{position}"
            is_array = self.entries[position].kind == "numbers"
            return self._read_out(f"y{position}" if is_array else f"y{position}._data", read[2])
        name = self._names.get(id(value))
        if name == "":
            raise NotReplayable(f"it {how} an object that holds itself")
        parts = None if name else self._parts(value, how)
        if parts is None:
            return name or self._writer.value(value)
        self._names[id(value)] = ""
        kind, base, keys, items, names, values = parts
        listed = [f"{self._expression(item, needs, how)}, " for item in items]
        if base in (dict, OrderedDict):
            pairs = zip(map(self._writer.value, keys), listed, strict=True)
            made = f"{{{''.join([f'{k}: {v}' for k, v in pairs])}}}"
        else:
            made = f"[{''.join(listed)}]" if base is list else f"({''.join(listed)})"
        if base is tuple and kind is not tuple:
            made = f"{self._writer.value(kind)}{made}"
        elif kind not in (tuple, list, dict):
            given = "".join([f"{self._expression(v, needs, how)}, " for v in values])
            arguments = ", ".join(map(self._writer.value, (kind, base, names)))
            made = f"{self._writer.value(_made)}({arguments}, ({given}), {made})"
        name = self._names[id(value)] = f"z{next(self._count)}"
        self._lines.append(f"{name} = {made}")
        return name

    def _read_out(self, array: str, how: Any) -> str:
        """Return the expression that reads an array: a method, or arithmetic on its result."""
        if type(how) is tuple:
            inner, op, other, reflected = how
            parts = [self._read_out(array, inner), self._writer.value(other)]
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
                self._by_storage.setdefault(id(tensor._storage), tensor)
        return found

    def _numbers(self, tensor: Tensor) -> int:
        """Return where the array of a tensor stands that was read out."""
        recorder, name = self.recorder, self.recorder.find(tensor._data)
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
            followed = view.origin in (None, NO_GRAD, SPLIT)
            if followed or id(base) in (*self._arguments, *self._outside, *self._found):
                if view.origin is not None and not followed:
                    raise NotReplayable(f"it returned a view that was made {view.origin.how}")
                _check_hooks(tensor, base)
                source = self.position(base)
                take, *given = map(self._writer.value, (_taken_view, chain, view.origin))
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

    def _new_tensor(self, tensor: Tensor) -> int:
        recorder = self.recorder
        name = recorder.find(tensor._data)
        if name is None or recorder.block.var(name).value is not None:
            name = self._copied(tensor)
        desc = recorder.block.var(name)
        storage = tensor._storage
        if desc.persistable or desc.need_check_feed or name in recorder.unknown:
            raise NotReplayable("it returned memory that came from outside")
        lines = [f"@ = new({self._writer.value(type(tensor))})", f"@._data = {self._fetched(name)}"]
        if tensor._inference:
            lines.append("@._inference = True")
        # As view(dtype) shares memory and version, or what was detached from a view.
        twin = None if storage is None else self._by_storage.get(id(storage))
        if twin is not None:
            if tensor._edge is not None and id(twin) in self._outside:
                raise NotReplayable("it returned memory that came from outside")
            lines.append(f"@._storage = y{self.position(twin)}.memory")
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
        recorder = self.recorder
        source = recorder.name_of(tensor)
        if recorder.block.var(source).value is None:
            raise NotReplayable("it returned memory that the recording has not seen")
        copy: str = recorder.program.unique_name("clone")
        recorder.block.create_var(describe(copy, tensor))
        recorder.block.append_op(OpDesc("clone", (source,), (copy,)))
        return copy

    # The end

    def add_node(
        self,
        function: Any,
        outputs: Sequence[int],
        owners: Sequence[str],
        saved: Iterable[tuple[str, str | None, bool]] | None,
    ) -> None:
        """Have every replay make a node that gives the results at `outputs` a place in the graph.

        `owners` are the expressions of the tensors that get a gradient. For each variable that it
        keeps, `saved` has the expression of the tensor that holds its memory, None where there is
        none, and whether that tensor is the variable. A node that was released keeps nothing.
        """
        number = len(self._nodes)
        edges = "".join(f"{owner}._edge or NO_EDGE, " for owner in owners)
        lines = [f"edges{number}, above{number} = placed(({edges}))"]
        if all(owner.startswith("g") for owner in owners):  # the same at every call
            self._binder.lines += [f"global edges{number}, above{number}", lines.pop()]
        kept = "None"
        if saved is not None:
            kept = f"({''.join([f'{self._saved(*item)}, ' for item in saved])})"
        ys = [f"y{i}" for i in outputs]
        lines.append(
            f"node = make_node({self._writer.value(function)}, edges{number}, above{number}, "
            f"{kept}, {{}}, {ys[0]}._data.shape, {ys[0]}._data.dtype)"
        )
        if len(ys) > 1 or self.entries[outputs[0]].tensor.device is not CPU:
            lines.append(f"node.infos = [{', '.join([f'tensor_info({y})' for y in ys])}]")
        lines += [f"{y}._edge = (node, {k})" for k, y in enumerate(ys)]
        self._nodes.append((outputs, lines))
        self._functions.append(function)

    def _saved(self, name: str, given: str | None, is_it: bool) -> str:
        if given is None:
            return f"({name!r}, {self._fetched(name)}, NEVER, 0, None)"
        return f"kept({name!r}, {given}{'' if is_it else f', {self._fetched(name)}'})"

    def finish(self, written: Sequence[Written]) -> Ending:
        """Write the end of a replay; nothing comes after that."""
        lines = self._writer.lines
        for given, numbers in written:
            lines.append(f"({given}._storage or {given}.memory).version += {len(numbers)}")
        # A view is recorded in the graph that its base has by then, and nodes may look at views.
        made_by = {i: k for k, (outputs, _) in enumerate(self._nodes, 1) for i in outputs}
        views: list[list[str]] = [[] for _ in range(len(self._nodes) + 1)]
        for i, entry in enumerate(self.entries):
            if entry.source < 0:
                lines += entry.lines
                made_by.setdefault(i, 0)
            else:
                made_by[i] = made_by[entry.source]
                views[made_by[i]] += entry.lines
        for those, (_, node) in zip(views, [*self._nodes, ((), [])], strict=True):
            lines += [*those, *node]
        for effect in self.effects:
            lines += effect.lines
        lines += self._ending
        run = self._writer.function("finish(x, found)", "<finish>")
        bind = self._binder.function("bind()", "<finish>")
        left: list[tuple[int, str]] = []
        known: set[int] = set()
        for effect in sorted(self.effects, key=lambda effect: effect.number):
            needs = [i for i in dict.fromkeys(effect.needs) if i not in known]
            known.update(needs)
            made = [line for i in needs for line in self.entries[i].lines]
            left += [(effect.number, line) for line in (*made, *effect.lines)]
        names, functions = self._writer.names, self._functions
        can_leave = all(map(self._can_leave, self.effects))
        return Ending(run, bind, functions, lines[:-1], names, left if can_leave else None)


@attrs.frozen(eq=False)
class Ending:
    """The end of a replay, after the Program has run, as one function.

    `run` takes the arguments and the arrays of the Program, and returns what the function returns.
    The list of arrays ends with False, which becomes True when all is done but to return.
    """

    run: Any
    bind: Any  # takes the places in the graph that tensors from outside have now
    functions: Sequence[Any]  # the gradient functions of the nodes
    lines: Sequence[str]  # of the function, but the last
    names: dict[str, Any]  # its globals
    # How many ops come before a line that leaves something behind; None when some of it needs more
    # than the arrays that ops before it have made.
    left: Sequence[tuple[int, str]] | None

    def complete(self, arguments: Sequence[Tensor], found: list[Any], error: BaseException) -> None:
        """Do what `run` has not done when an exception came."""
        names: dict[str, Any] = {"x": arguments, "found": found}
        line = 0
        for at in frames(error):
            if at.tb_frame.f_globals is self.names:
                names.update(at.tb_frame.f_locals)
                line = max(at.tb_lineno - 2, 0)  # each line does its one effect last
        if not found[-1]:
            exec("\n".join(self.lines[line:]), {**self.names, **names})

    def leave(
        self, arguments: Sequence[Tensor], found: Any, number: int, versions: Mapping[str, int]
    ) -> None:
        """Leave behind what is there before the op of a number; `versions` counts writes."""
        names = {**self.names, "x": arguments, "found": found}
        for given, times in versions.items():
            eval(given, names).memory.version += times
        exec("\n".join(line for before, line in self.left or () if before <= number), names)


def _placed(edges: tuple[Edge, ...]) -> tuple[tuple[Edge, ...], int]:
    """Return places in the graph, and the topological number above them."""
    return edges, 1 + max([edge[0].topological_nr for edge in edges if edge[0] is not None])


def _kept(name: str, tensor: Tensor, array: Any = None) -> tuple[Any, ...]:
    """Return a saved value of a node: a tensor, or another array in that tensor's memory."""
    storage = tensor.memory
    return name, tensor._data if array is None else array, storage, storage.version, None


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
