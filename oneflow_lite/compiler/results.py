"""The end of a replay: its results, nodes and effects, written into one generated function.

A tensor that a replay returns or leaves is new memory that the Program computed, the very object
that was an argument or stood outside, an alias of such an object, a view of a tensor, or a
gradient. Each is an `Entry`; containers and objects around entries are made again at every replay.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import attrs

from oneflow_lite.arrays.array_spec import may_share_memory
from oneflow_lite.arrays.device import CPU
from oneflow_lite.autograd.rules.gradient_rules import HookedGradFunction
from oneflow_lite.compiler import lookup
from oneflow_lite.compiler.deferred import Deferred
from oneflow_lite.compiler.outside import NotReplayable, TensorState, hooks_of
from oneflow_lite.compiler.recorder import RecordingInterpreter
from oneflow_lite.compiler.same import is_atom
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.function_writer import FunctionWriter
from oneflow_lite.static.ir.program import VarDesc, make_anew
from oneflow_lite.static.ir.tree import is_plain
from oneflow_lite.static.runtime.runner import frames
from oneflow_lite.tensors.mode import set_grad_enabled
from oneflow_lite.tensors.node import NO_EDGE, AccumulateGrad, Edge, make_node, tensor_info
from oneflow_lite.tensors.storage import NO_GRAD, SPLIT, Origin, Storage, ViewInfo, ViewStep
from oneflow_lite.tensors.tensor import OWN_FIELDS, Tensor

Observer = Any  # which stands on this module
NEVER_WRITTEN = Storage()  # of what only a node holds
_BASES = (OrderedDict, defaultdict, dict, list, SimpleNamespace, object)


@attrs.frozen(eq=False)
class Entry:
    """A tensor that a replay has at hand when its Program has run.

    Of its kinds, "given" was there before, and "numbers" is an array to be read out. "made" is a
    tensor around an array that the Program gave, the variable `fetch`; so is a "leaf", and a
    "result", which gets a node. The others, "alias", "gradient" and "view", are made of the entry
    at `source`.
    """

    tensor: Tensor
    lines: tuple[str, ...]  # the code that makes it, under the name y and its position
    kind: str
    source: int = -1
    fetch: str | None = None


class Effect(NamedTuple):
    """An effect of a call outside: its code, the entries it needs, and how many ops come before."""

    lines: Sequence[str]
    needs: Iterable[int]
    number: int


class Results:
    """The tensors that a call returned or left behind, in a list without repetitions, and its end.

    `NotReplayable` is raised for a tensor that a replay could not make. When the nodes are added,
    `finish` writes the function.
    """

    def __init__(
        self, observer: Observer, value: Any, changes: Sequence[Any], feeds: Mapping[str, int]
    ) -> None:
        self._observer = observer
        self.recorder: RecordingInterpreter = observer.recorder
        self.states: dict[int, TensorState] = observer.states  # before the call
        self._arguments = {id(tensor): i for i, tensor in enumerate(observer.match.tensors)}
        self._whose: dict[int, Tensor] = {}  # by the ids of arrays, storages, views and gradients
        states = sorted(self.states.values(), key=lambda s: id(s.tensor) not in self._arguments)
        changed = [state.tensor for state in states if state.tensor.grad is not state.grad]
        for state in states:
            storage = None if state.moved else state.tensor._storage
            self._note(state.tensor, state.data, state.view, state.grad, storage)
        self._found: dict[int, int] = {}  # the places of tensors in `entries`
        self.entries: list[Entry] = []  # an entry may be made of an earlier entry
        self.fetches: list[str] = []  # the variables that the Program has to give
        self.effects: list[Effect] = []
        self._nodes: list[tuple[Any, Sequence[int], list[str]]] = []  # with outputs and lines
        self._writer = FunctionWriter(
            {"new": Tensor.__new__, "make_node": make_node, "tensor_info": tensor_info,
             "placed": _placed, "kept": _kept, "NO_EDGE": NO_EDGE, "NEVER": NEVER_WRITTEN}
        )  # fmt: skip
        self._binder = FunctionWriter(self._writer.names, ["pass"])
        self._names: dict[int, str] = {}  # of containers and objects; "" while one is made
        self._lines: list[str] = []
        self._before: dict[str, str] = {}  # places that are read before anything is left, by name
        self.effects += [self._array(state) for state in states if state.moved]
        self.effects += [self._gradient(tensor) for tensor in changed]
        left: list[Any] = [(number, self._store, change) for *change, number in changes]
        left += [(number, self._grown, growth) for *growth, number in observer.grown]
        for number, leave, what in sorted(left, key=lambda each: each[0]):
            lines, needs = leave(*what)
            self.effects.append(Effect([*self._lines, *lines], needs, number))
            self._lines = []
        returned = self._expression(value, [], "it returned @")
        self._ending = [*self._lines, "found[-1] = True", f"return {returned}"]
        # The expressions of the tensors that hold the memory of variables.
        self._holders: dict[str, str] = {}
        for position, entry in enumerate(self.entries):
            if (name := entry.fetch) is not None:
                self._holders.setdefault(self.recorder.roots.get(name, name), f"y{position}")
        self._holders.update({name: f"x[{position}]" for name, position in feeds.items()})

    def _note(self, tensor: Tensor, *owned: Any) -> None:
        """Take note of what belongs to a tensor; the first owner of each stays."""
        for each in owned:
            if each is not None:
                self._whose.setdefault(id(each), tensor)

    def place(self, tensor: Tensor) -> str:
        """Return the expression of a tensor that was there before."""
        position = self._arguments.get(id(tensor))
        return self._writer.value(tensor) if position is None else f"x[{position}]"

    # Effects outside

    def _array(self, state: TensorState) -> Effect:
        """Give a tensor that was there before another array, as `.data` does when it is set."""
        block = self.recorder.block
        name = self.recorder.find(state.tensor._data)
        is_new = name is not None and block.var(name).is_temporary
        if state.view is not None or not is_new or self.recorder.roots.get(str(name)) != name:
            at = self.recorder.changed_at.get(id(state.data), "")
            raise NotReplayable(f"{state.label} got an array that the call did not make{at}")
        owner, given = self.place(state.tensor), self.position(state.tensor.detach())
        lines = [
            f"{owner}._data = y{given}._data",
            f"{owner}._storage = y{given}.memory",
            f"{owner}._view = None",
        ]
        return Effect(lines, (given,), -1)

    def _gradient(self, tensor: Tensor) -> Effect:
        grad, node = tensor.grad, tensor._edge and tensor._edge[0]
        if grad is not None and grad.requires_grad:
            raise NotReplayable(f"{self.states[id(tensor)].label}.grad got a graph of its own")
        if grad is not None and grad._view is not None:
            raise NotReplayable(f"{self.states[id(tensor)].label}.grad became a view")
        meta = f"{self.place(tensor)}.autograd_meta"
        if id(tensor) not in self._arguments and isinstance(node, AccumulateGrad):
            meta = self._writer.value(node.meta)
        if grad is None:
            return Effect([f"{meta}.acc_grad = None"], (), -1)
        made = self.position(grad)
        return Effect([f"{meta}.acc_grad = y{made}"], (made,), -1)

    def _store(self, holder: Any, kind: str, key: Any, value: Any) -> tuple[list[str], list[int]]:
        needs: list[int] = []
        value = self._observer.written.get((id(holder), kind, key), value)
        label, at = self._observer.place_of(holder, kind, key)[1], self.recorder.changed_at
        made = self._expression(value, needs, f"it put @ into {label}{at[id(holder)]}")
        where = self._where(holder, kind, key)
        if kind != "attribute":
            return [f"{where} = {made}"], needs
        setter = self._writer.value(setattr if type(holder) is ModuleType else object.__setattr__)
        return [f"{setter}({self._holder(holder)}, {key!r}, {made})"], needs

    def _grown(self, holder: Any, elements: Any) -> tuple[list[str], list[int]]:
        needs: list[int] = []
        label, at = self._observer.named(holder), self.recorder.changed_at[id(holder)]
        made = self._literal(tuple(elements), needs, f"it put @ into {label}{at}")
        # An operator, and no method: an interrupt is not noticed between it and the next line.
        grows = f"h |= {{*{made}}}" if type(holder) is set else f"h += {made}"
        return [f"h = {self._holder(holder)}", grows], needs

    def _holder(self, holder: Any) -> str:
        """Return the expression of a holder: one in the arguments, or held weakly if it can be."""
        if id(holder) in self._observer.match.holders:
            return self._handed_out(id(holder))
        try:
            return f"{self._writer.value(weakref.ref(holder))}()"
        except TypeError:
            return self._writer.value(holder)

    def _handed_out(self, key: Any) -> str:
        """Return how a replay has an object or number among the arguments."""
        return f"x[{len(self._arguments) + list(self._observer.match.holders).index(key)}]"

    def _where(self, holder: Any, kind: str, key: Any) -> str:
        """Return the expression of a place."""
        if kind == "given":
            self._observer.match.holders.setdefault(key, key)
            return self._handed_out(key)
        if (known := self._observer.known(holder)) is not None and not known.held:
            self._observer.hand_out(holder)
        where = {"item": f"[{self._writer.value(key)}]", "attribute": f".{key}"}
        return self._holder(holder) + where.get(kind, ".cell_contents")

    def _can_leave(self, effect: Effect) -> bool:
        """Return whether the ops before it are all that an effect needs."""
        if any(line[0] == "z" for line in effect.lines):  # its content may have come later
            return False
        return all(
            entry.kind in ("given", "made", "numbers")
            and "._storage = " not in entry.lines[-1]
            and not (effect.number >= 0 and entry.kind == "made" and entry.tensor._version)
            for entry in [self.entries[position] for position in effect.needs]
        )

    # Values

    def _parts(self, value: Any, how: str) -> Any:
        """Take a container or object apart; None for what a replay hands on as it is."""
        kind, known = type(value), self._observer.known(value)
        if is_plain(value) or (is_atom(value) and self._is_settled(value)):
            return None
        outside = known is not None and known.expression is not None
        if outside and known.held and (how != "it returned @" or issubclass(kind, tuple)):
            return None
        if outside and issubclass(kind, (list, dict)):
            raise NotReplayable(how.replace("@", "a list or dict that is also elsewhere", 1))
        parts = _taken_apart(value, known is not None and not outside)
        if parts is None:
            raise NotReplayable(how.replace("@", f"an object of type {kind.__name__}", 1))
        return parts

    def _is_settled(self, value: Any) -> bool:
        """Return whether nothing in a number or tuple is deferred."""
        inside = value if type(value) is tuple else ()
        return not self._observer.deferred(value) and all(map(self._is_settled, inside))

    def _expression(self, value: Any, needs: Any, how: str) -> str:
        """Return the expression of a value; entries that it names are added to `needs`."""
        if (of := self._observer.deferred(value)) is not None:
            return self._deferred(of, needs)
        if isinstance(value, Tensor):
            needs.append(self.position(value))
            return f"y{needs[-1]}"
        known = self._observer.known(value) if issubclass(type(value), tuple) else None
        if known is not None and known.expression is not None and not known.held:
            self._observer.hand_out(value)  # the very one among the arguments
            return self._holder(value)
        name = self._names.get(id(value))
        if name == "":
            raise NotReplayable(how.replace("@", "an object that holds itself", 1))
        parts = None if name else self._parts(value, how)
        if parts is None:
            return name or self._writer.value(value)
        name, self._names[id(value)] = f"z{len(self._names)}", ""
        kind, base, content, attributes = parts
        made = self._literal(content, needs, how)
        if base is tuple and kind is not tuple:
            made = f"{self._writer.value(kind)}{made}"
        elif kind not in (tuple, list, dict):
            given = ", ".join([*map(self._writer.value, (kind, base)), made])
            made = f"{self._writer.value(_made)}({given}, {self._literal(attributes, needs, how)})"
        self._names[id(value)] = name
        self._lines.append(f"{name} = {made}")
        return name

    def _literal(self, content: Any, needs: Any, how: str) -> str:
        """Return the expression of a tuple, list or dict of values."""
        items = content.items() if type(content) is dict else enumerate(content)
        listed = [(k, f"{self._expression(item, needs, how)}, ") for k, item in items]
        if type(content) is dict:
            return f"{{{''.join([f'{self._writer.value(k)}: {item}' for k, item in listed])}}}"
        made = "".join([item for _, item in listed])
        return f"[{made}]" if type(content) is list else f"({made})"

    def _options(self) -> Any:
        """Return the function that hands options set in the call to optimizers, before a replay."""
        lines: list[str] = []
        for optimizer, options in self._observer.optimizers.values():
            later = [f"{key}: {self._expression(x, None, '')}, " for key, x in options.items()]
            if later:
                lines.append(f"{self._holder(optimizer)}.refresh_options({{{''.join(later)}}})")
        writer = FunctionWriter(self._writer.names, lines)
        return writer.function("prepare(x)", "<finish>") if lines else None

    def _deferred(self, of: Deferred, needs: list[int] | None) -> str:
        """Return the expression of a deferred value; a long one where `needs` is None."""
        if not of.code:
            where, name = self._where(*of.parts), f"c{len(self._before)}"
            return where if needs is None else self._before.setdefault(where, name)
        made = of.code.format(*[self._part(part, needs) for part in of.parts])
        if of.code == "{}" or needs is None:
            return made
        if (name := self._names.get(id(of), "")) == "":
            name = self._names[id(of)] = f"v{len(self._names)}"
            self._lines.append(f"{name} = {made}")
        return name

    def _part(self, part: Any, needs: list[int] | None) -> str:
        """Return the expression of what a deferred value is made of."""
        if type(part) is Deferred:
            return self._deferred(part, needs)
        if needs is None or not isinstance(part, Tensor):
            return self._writer.value(part)
        needs.append(self._numbers(part))
        return f"y{needs[-1]}{'' if self.entries[needs[-1]].kind == 'numbers' else '._data'}"

    # Tensors

    def position(self, tensor: Tensor) -> int:
        """Return where a tensor stands in `entries`, after adding it where it is new."""
        if (position := self._found.get(id(tensor))) is None:
            self._found[id(tensor)] = position = self._new_entry(tensor)
            if self.entries[position].fetch is not None:
                self._note(tensor, tensor._data, tensor._storage)
        return position

    def _numbers(self, tensor: Tensor) -> int:
        """Return where the array of a tensor stands that was read out."""
        state = self.states.get(id(tensor))
        if state is not None and state.moved:  # it may have read the array before or after
            raise NotReplayable(f"it read out {state.label}, which got another array")
        if state is not None:
            return self.position(tensor)
        desc = self._variable(tensor)
        if desc.persistable:
            raise NotReplayable("it read out memory that came from outside")
        return self._add(tensor, "numbers", f"@ = {self._fetched(desc.name)}")

    def _variable(self, tensor: Tensor) -> VarDesc:
        """Return the variable that a tensor is; a constant becomes one that every replay makes."""
        name = self.recorder.name_of(tensor)
        if name in self.recorder.unknown:
            raise NotReplayable("it returned memory that the recording has not seen")
        block = self.recorder.block
        make_anew(block, block.var(name))  # somebody may write it
        return block.var(name)

    def _add(
        self, tensor: Tensor, kind: str, *lines: str, source: Any = None, fetch: str | None = None
    ) -> int:
        """Add an entry, called @ in its lines, where # is its source; return its position."""
        at = -1 if source is None else self.position(source)
        name = f"y{len(self.entries)}"
        made = tuple([line.replace("@", name).replace("#", f"y{at}") for line in lines])
        self.entries.append(Entry(tensor, made, kind, at, fetch))
        return len(self.entries) - 1

    def _fetched(self, name: str) -> str:
        """Return the array that the Program gives for a variable."""
        if name not in self.fetches:
            self.fetches.append(name)
        return f"found[{self.fetches.index(name)}]"

    def _new_entry(self, tensor: Tensor) -> int:
        if id(tensor) in self.states:
            return self._add(tensor, "given", f"@ = {self.place(tensor)}")
        if (owner := self._whose.get(id(tensor))) is not None:
            return self._add(tensor, "gradient", "@ = #.grad", source=owner)
        if not OWN_FIELDS.issuperset(vars(tensor)):
            raise NotReplayable("it returned a tensor with attributes that were set on it")
        if (view := tensor._view) is not None:
            _check_unwatched(tensor)
            base, chain = self._base_of(view)
            state = self.states.get(id(base))
            if state is not None and state.moved:
                raise NotReplayable("it returned a view of a tensor that got another array")
            followed = view.origin in (None, NO_GRAD, SPLIT)
            if followed or state is not None or id(base) in self._found:
                if view.origin is not None and not followed:
                    raise NotReplayable(f"it returned a view that was made {view.origin.how}")
                _check_hooks(tensor, base)
                take, *given = map(self._writer.value, (_taken_view, chain, view.origin))
                return self._add(tensor, "view", f"@ = {take}(#, {', '.join(given)})", source=base)
        if (twin := self._whose.get(id(tensor._data))) is not None:
            if tensor._edge is not None or tensor._storage is not twin._storage:
                raise NotReplayable("it returned two tensors around one piece of memory")
            return self._add(tensor, "alias", "@ = #.detach()", source=twin)
        return self._new_tensor(tensor)

    def _base_of(self, view: ViewInfo) -> tuple[Tensor, tuple[Any, ...]]:
        """Return the source of a view, which is an older view or the base, and the ops since."""
        steps: list[ViewStep] = []
        link: ViewInfo | None = view
        while link is not None:
            if (owner := self._whose.get(id(link))) is not None:
                return owner, tuple(reversed(steps))
            steps.append((link.op_expr, link.attrs))
            link = link.parent
        return view.base, view.chain()

    def _new_tensor(self, tensor: Tensor) -> int:
        desc, storage = self._variable(tensor), tensor._storage
        if desc.persistable or desc.need_check_feed:
            raise NotReplayable("it returned memory that came from outside")
        cls, array = self._writer.value(type(tensor)), self._fetched(desc.name)
        lines = [f"@ = new({cls})", f"@._data = {array}"]
        if tensor._inference:
            lines.append("@._inference = True")
        # As view(dtype) shares memory and version, or what was detached from a view.
        if storage is not None and (twin := self._whose.get(id(storage))) is not None:
            if tensor._edge is not None and id(twin) in self.states:
                raise NotReplayable("it returned memory that came from outside")
            lines.append(f"@._storage = y{self.position(twin)}.memory")
        elif tensor._version:
            lines.append(f"@.memory.version = {tensor._version}")
        kind = "made"
        if tensor._edge is not None:
            _check_unwatched(tensor)
            kind = "leaf" if isinstance(tensor._edge[0], AccumulateGrad) else "result"
        if kind == "leaf":
            lines.append("@.requires_grad = True")
        return self._add(tensor, kind, *lines, fetch=desc.name)

    # The end

    def add_node(
        self, function: Any, outputs: Sequence[int], owners: Sequence[str], given: Mapping[str, int]
    ) -> None:
        """Have every replay make a node that gives the results at `outputs` a place in the graph.

        `owners` are the expressions of the tensors that get a gradient. `given` has the positions
        of the owners that are results, too, by their variables.
        """
        number = len(self._nodes)
        edges = "".join(f"{owner}._edge or NO_EDGE, " for owner in owners)
        lines = [f"edges{number}, above{number} = placed(({edges}))"]
        if all(owner.startswith("g") for owner in owners):  # the same at every call
            self._binder.lines += [f"global edges{number}, above{number}", lines.pop()]
        kept = "None"
        if function.saved is not None:
            kept = f"({''.join([f'{self._saved(name, given)}, ' for name in function.saved])})"
        ys = [f"y{i}" for i in outputs]
        lines.append(
            f"node = make_node({self._writer.value(function)}, edges{number}, above{number}, "
            f"{kept}, {{}}, {ys[0]}._data.shape, {ys[0]}._data.dtype)"
        )
        if len(ys) > 1 or self.entries[outputs[0]].tensor.device is not CPU:
            lines.append(f"node.infos = [{', '.join([f'tensor_info({y})' for y in ys])}]")
        lines += [f"{y}._edge = (node, {k})" for k, y in enumerate(ys)]
        self._nodes.append((function, outputs, lines))

    def _saved(self, name: str, given: Mapping[str, int]) -> str:
        """Return the code of a value that a node saves: an array, and who else holds its memory."""
        if name in given:
            return f"kept({name!r}, y{given[name]})"
        recorder = self.recorder
        root = recorder.roots.get(name, name)
        source = recorder.externals.get(root)
        holder = self._holders.get(root)
        if source is not None:
            holder = self.place(source.tensor) + source.place
        copied = root != name and not may_share_memory(recorder.arrays[name], recorder.arrays[root])
        if holder is None or copied:  # nobody can write there
            return f"({name!r}, {self._fetched(name)}, NEVER, 0, None)"
        array = "" if root == name and holder[0] != "y" else f", {self._fetched(name)}"
        return f"kept({name!r}, {holder}{array})"

    def finish(self, written: Mapping[str, int]) -> Ending:
        """Write the end of a replay; nothing comes after that.

        `written` says how often the call wrote to storages outside, each by the expression of a
        tensor.
        """
        lines = self._writer.lines
        lines += [f"({g}._storage or {g}.memory).version += {n}" for g, n in written.items()]
        counts = [*lines]
        # A view is recorded in the graph that its base has by then, and nodes may look at views.
        made_by = {i: k for k, (_, outputs, _) in enumerate(self._nodes, 1) for i in outputs}
        views: list[list[str]] = [[] for _ in range(len(self._nodes) + 1)]
        for i, entry in enumerate(self.entries):
            if entry.source < 0:
                lines += entry.lines
                made_by.setdefault(i, 0)
            else:
                made_by[i] = made_by[entry.source]
                views[made_by[i]] += entry.lines
        lines += views[0]
        for those, (_, _, node) in zip(views[1:], self._nodes, strict=True):
            lines += [*node, *those]
        before = [f"{name} = {where}" for where, name in self._before.items()]
        lines += before
        for effect in self.effects:
            lines += effect.lines
        lines += self._ending
        run = self._writer.function("finish(x, found)", "<finish>")
        bind = self._binder.function("bind()", "<finish>")
        makers = [entry.lines for entry in self.entries]
        left = self.effects if all(map(self._can_leave, self.effects)) else None
        functions = [function for function, _, _ in self._nodes]
        names, first, prepare = self._writer.names, [*counts, *before], self._options()
        return Ending(run, bind, functions, lines[:-1], names, first, makers, left, prepare)


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
    first: Sequence[str]  # the lines that count writes, and read what the effects are made of
    makers: Sequence[Sequence[str]]  # the lines that make each entry
    left: Sequence[Effect] | None  # the effects; None when one needs more than earlier ops made
    prepare: Any  # the function that is called before the Program runs, if any

    def complete(self, arguments: Sequence[Any], fetched: list[Any], error: BaseException) -> None:
        """Do the rest of `run` after an exception."""
        names: dict[str, Any] = {"x": arguments, "found": fetched}
        line = 0
        for at in frames(error):
            here = at.tb_frame.f_locals
            if at.tb_frame.f_globals is self.names and here["found"] is fetched:
                names.update(here)
                line = max(at.tb_lineno - 2, 0)  # each line does its one effect last
        if not fetched[-1]:
            exec("\n".join(self.lines[line:]), {**self.names, **names})

    def leave(self, arguments: Sequence[Tensor], fetched: Any, number: int) -> None:
        """Count all writes, and leave the effects that come before the op of a number."""
        names = {**self.names, "x": arguments, "found": fetched}
        exec("\n".join(self.first), names)
        made: set[int] = set()
        for effect in sorted(self.left or (), key=lambda effect: effect.number):
            if effect.number <= number:
                lines = [line for i in effect.needs if i not in made for line in self.makers[i]]
                exec("\n".join([*lines, *effect.lines]), names)
                made.update(effect.needs)


def _placed(edges: tuple[Edge, ...]) -> tuple[tuple[Edge, ...], int]:
    """Return places in the graph, and the topological number above them."""
    return edges, 1 + max([edge[0].topological_nr for edge in edges if edge[0] is not None])


def _kept(name: str, tensor: Tensor, array: Any = None) -> tuple[Any, ...]:
    """Return a saved value of a node: a tensor, or another array in that tensor's memory."""
    storage = tensor.memory
    return name, tensor._data if array is None else array, storage, storage.version, None


def _taken_apart(value: Any, made_here: bool) -> tuple[type, type, Any, dict[Any, Any]] | None:
    """Return the parts of an object, if another object of the same parts is like it.

    These are its class, the built-in class under it, the content, and the attributes: by their
    names, or by their descriptors.
    """
    kind = type(value)
    if kind is tuple or kind is list:
        return kind, kind, value, {}
    fields = lookup.fields_of(value) or {}
    if lookup.is_namedtuple(kind):
        return None if fields else (kind, tuple, tuple(tuple.__iter__(value)), {})
    base = next(b for b in _BASES if issubclass(kind, b))
    makers = (base, dict) if base is OrderedDict else (base,)
    if lookup.static(kind, "__new__")[0] not in makers or base is defaultdict:
        return None
    content: Any = ()
    if base in (dict, OrderedDict):
        keys = tuple(base.keys(value))  # type: ignore[attr-defined]
        if not all(map(is_plain, keys)):
            return None
        content = {key: dict.__getitem__(value, key) for key in keys}
    elif base is list:
        content = [*list.__iter__(value)]
    strange = not made_here or kind.__module__.startswith(("oneflow_lite.", "builtins"))
    if kind is not base and strange:
        return None
    return kind, base, content, {**fields, **lookup.slots_of(value)}


def _made(kind: type, base: Any, content: Any, attributes: Mapping[Any, Any]) -> Any:
    """Make an object of a class from its content and attributes, as copying it would."""
    made: Any = base.__new__(kind)
    if base is list:
        made[:] = content
    elif content:
        for key, value in content.items():
            base.__setitem__(made, key, value)
    for name, value in attributes.items():
        if type(name) is str:
            made.__dict__[name] = value
        else:
            name.__set__(made, value)
    return made


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
        if (meta and meta._hooks) or isinstance(node.grad_function, HookedGradFunction):
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
