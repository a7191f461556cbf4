"""The observer: what a recorded call reads, decides and changes outside, as it happens.

The functions of a recorded call run from rewritten syntax trees (`rewrite.py`) whose every outer
read, decision, call and effect comes here. Objects are *held* (from outside, guarded by identity),
on a *path* (in an argument, guarded by type and read again at every call) or *local* (made by the
call). Of anything else the origin is unknown, and the call is refused. Once a call is refused it
goes on natively, for it is also the eager call.

No foreign object is ever asked anything that runs its code: `type()` and static look-ups only.
"""

from __future__ import annotations

import enum
import gc
import re
import sys
from collections.abc import Callable, Collection, Iterator
from importlib.util import resolve_name
from inspect import getargs
from types import BuiltinFunctionType, FunctionType, GenericAlias, MethodType, ModuleType, UnionType
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.size import Size
from oneflow_lite.compiler import calls, deferred, lookup, same as kinds
from oneflow_lite.compiler.deferred import Deferred, Symbol, fresh
from oneflow_lite.compiler.match import Match
from oneflow_lite.compiler.native import BINARY, COMPARE, UNARY, Direct, Native
from oneflow_lite.compiler.outside import NotReplayable, TensorState
from oneflow_lite.compiler.recorder import RecordingInterpreter, Source, describe
from oneflow_lite.compiler.rewrite import Unsupported, rewrite
from oneflow_lite.compiler.same import CONTAINERS, KINDS, MAPPINGS, MISSING, is_a, is_atom, told
from oneflow_lite.compiler.source import NoSource
from oneflow_lite.errors import InplaceError
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import is_lazy
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.static.ir.location import user_location
from oneflow_lite.static.ir.program import Location
from oneflow_lite.static.ir.tree import same
from oneflow_lite.tensors.node import AccumulateGrad
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.transforms.levels import levels_of

# A name or an argument of these classes stands for one object, whatever its content.
_BY_IDENTITY: Any = (Module, Optimizer, type, FunctionType, ModuleType, MethodType)
_BY_IDENTITY += (BuiltinFunctionType, enum.Enum)
_INSIDE = {*CONTAINERS, *kinds.VIEWS, slice}  # C code writes what is in them
# Names the arguments of what is no function.
_TAKES_ALL = lambda *args, **kwargs: None  # noqa: E731
_UNEXPLAINED: Any = (MemoryError, RecursionError, KeyboardInterrupt, SystemExit, GeneratorExit)
_UNEXPLAINED += (InplaceError,)


def _is_one(value: Any) -> bool:
    """Return whether an argument is taken for a certain object, and not for any of its kind."""
    if is_a(value, _BY_IDENTITY):
        return True
    return type(value).__module__.startswith("oneflow_lite.") and not is_a(value, Tensor)


def _lives_on_its_own(value: Any) -> bool:
    """Return whether guards must not keep an object alive: a model, an optimizer, a trainer."""
    if is_a(value, (Module, Optimizer)):
        return True
    return not _is_one(value) and not is_a(value, Tensor) and type(value) not in CONTAINERS


def _stays(value: Any) -> bool:
    """Return whether a value counts as constant when it is read after the call."""
    if is_a(value, (type, FunctionType)):
        return lookup.is_own_class(value) or value.__module__ == "builtins"
    return is_a(value, (ModuleType, BuiltinFunctionType))


@attrs.define(eq=False)
class Known:
    """An object whose origin is known."""

    value: Any
    expression: str | None = None  # its expression in the guards; None for what the call made
    label: str = ""  # how users would name it
    held: bool = False  # whether its identity is guarded


_TABLES = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")  # net[0].weight is read there


def _observed(name: str, rule: Callable[..., Any], *how: str, operators: Any = None) -> Any:
    """Return the method that follows a rule, or does what CPython does once a call is refused.

    "looks" says that the rule looks at values, and does not only hand them on; "puts" that it puts
    the last of them somewhere; "inside" that it is about what the first value holds, which for a
    compiled module is the module. `operators` are those that may be applied to deferred numbers.
    """
    native = vars(Native)[name]
    looks, puts, inside = [each in how for each in ("looks", "puts", "inside")]

    def method(self: Observer, *args: Any) -> Any:
        if operators and (operator := operators.get(args[0])) and not self.refused:
            code = f"({{}} {args[0]} {{}})" if len(args) > 2 else f"({args[0]}{{}})"
            if (number := self.computed(operator, code, *args[1:])) is not MISSING:
                return number
        args = (*map(self.plain, args[:-1]), args[-1] if puts else self.plain(args[-1]))
        if looks:
            self.look_at(*args, inside=True)
        if self.refused:
            return native(self, *map(self.plain, args))
        first = lookup.original(self, args[0]) if inside else args[0]
        return rule(self, first, *args[1:])

    return method


class Observer(Native):
    """Notes the reads, decisions, calls and effects of a recorded call.

    Its methods without a docstring are explained in `Native`.

    Attributes
    ----------
    match : Match
        The guards so far.
    states : dict of int to TensorState
        Of the tensors from outside, by id, as each was before the call touched it.
    captured : set of int
        The ids of those that are no part of an argument.
    stores : dict
        The places outside that were written: (id of holder, kind, key) to holder, old value,
        whether the old value was read, and so is guarded, and how many ops were dispatched before.
    volatile : set of (id of holder, kind, key)
        Places that earlier calls wrote: what stands there is another object at every call.
    read_out : dict of int to Deferred
        The deferred floats, lists and arrays, by id; deferred ints are of the class Symbol.
    written : dict of (id of holder, kind, key) to Symbol
        The deferred ints that the call has put at places outside.
    grown : list
        The containers outside that the call has added to, each with the elements, and how many ops
        were dispatched before.
    """

    ended = False
    after_call = False
    reads_gradients = False  # whether the call looked at any `.grad`
    has_handlers = False  # whether users' code, or context managers, may see exceptions
    user_calls = 0  # of hooks and gradient rules

    def __init__(self, recorder: RecordingInterpreter, volatile: set[Any]) -> None:
        self.recorder = recorder
        self.volatile = volatile
        self.read_out: dict[int, Deferred] = {}
        self._read: list[tuple[Tensor, int, str]] = []  # tensors, with version and how
        self.arrays: list[Any] = []  # of NumPy, from outside, that tensors were made of
        self.called_at = user_location()
        self.match = Match()
        self.states: dict[int, TensorState] = {}
        self.captured: set[int] = set()
        self.stores: dict[tuple[int, str, Any], tuple[Any, Any, bool, int]] = {}
        self.written: dict[tuple[int, str, Any], Symbol] = {}
        self.grown: list[tuple[Any, Any, int]] = []
        self.optimizers: dict[int, Any] = {}
        self.scalers: list[Any] = []
        self._known: dict[int, Known] = {}
        self._reads: set[str] = set()
        self.looked_up: dict[tuple[int, str], Any] = {}  # members, by the ids of classes
        self.exposed: set[int] = set()  # the ids of objects whose `__dict__` was read, and of that
        self._outer_cells: set[int] = set()  # the ids of those of functions from outside
        self.managed: set[Any] = set()  # of generators in `with` statements
        recorder.on_end += [self._known.clear, self.read_out.clear, self.stores.clear]

    # Deferred numbers

    def deferred(self, value: Any) -> Deferred | None:
        """Return how a value is made, if it is deferred."""
        return value.of if type(value) is Symbol else self.read_out.get(id(value))

    def defer(self, of: Deferred) -> Any:
        """Return a value that is deferred from now on."""
        if type(of.value) is int:
            return Symbol(of)
        self.read_out[id(of.value)] = of
        return self.local(of.value)

    def plain(self, value: Any) -> Any:
        """Return a value as it is; guard the values that it was computed from."""
        if type(value) is Symbol:
            self.look_at(value)
            return int(value)
        if type(value) is tuple and Symbol in map(type, value):
            return tuple(map(self.plain, value))
        return value

    def slice(self, *parts: Any) -> slice:
        return slice(*map(self.plain, parts))

    def look_at(self, *values: Any, inside: bool = False) -> None:
        """Guard the numbers that deferred ones were made of, or end the recording at a tensor's.

        With `inside` also of those in tuples.
        """
        parts = [] if self.refused else [*values]
        for value in parts:  # which grow
            if (of := self.deferred(value)) is not None and of.read:
                self.recorder.read(*of.read)
            elif of is not None:
                self.match.same(of.expression, of.value, of.label)
            elif inside and type(value) is tuple:
                parts += value

    def computed(self, function: Any, code: str, *operands: Any) -> Any:
        """Return what a pure function makes of deferred numbers; MISSING where it has to look."""
        found = [self.deferred(each) or each for each in operands]
        if self.refused or Deferred not in map(type, found):
            return MISSING
        if " is " in code and not {Symbol, *deferred.NUMBERS}.issuperset(map(type, operands)):
            return " not " in code  # a number is no other object
        if (made := deferred.computed(function, code, found, self.match.constant)) is None:
            return MISSING
        of, condition = made
        if condition:
            self.match.require(condition, f"whether {of.label}")
        return of.value if type(of.value) is bool else self.defer(of)

    # Origins

    @property
    def refused(self) -> bool:
        """Whether the call goes on natively."""
        return self.ended or self.recorder.stopped is not None

    def end(self) -> None:
        """Let go of everything; a generator that goes on later runs natively."""
        self.recorder.end(self.recorder.stopped)
        self.__dict__ = {"ended": True}

    def refuse(self, reason: str) -> None:
        """End the recording.

        Code that runs after the call is users' code of backward passes to come. It runs in no
        replay, so it ends before it has done anything.
        """
        if self.ended:
            return
        if self.after_call:
            at = user_location()
            own = "code of this package keeps state"  # where none of a user's is in between
            what = own if at == self.called_at else f"{reason}, at {at}"
            self.recorder.stopped = f"its backward pass does more than compute: {what}"
            raise NotReplayable(self.recorder.stopped)
        self.recorder.stop(reason)

    def known(self, value: Any) -> Known | None:
        """Return the Known of an object; None for a stranger."""
        return self._known.get(id(value))

    def named(self, value: Any) -> str:
        """Return what users call an object from outside, and its type; of others the type."""
        known = None if self.refused else self.known(value)
        return f"{known.label} ({told(value)})" if known and known.label else told(value)

    def local(self, value: Any) -> Any:
        """Take note of an object that the call made."""
        if not self.refused and id(value) not in self._known and not is_atom(value):
            self._known[id(value)] = Known(value)
            if lookup.is_finalized(self, value):  # then it goes where Python lets it go
                self.refuse(f"it makes {told(value)}, whose end runs code")
        return value

    def outer(self, value: Any) -> Known | None:
        """Return the Known of an object from outside; None for an object that the call made.

        Strangers end the recording.
        """
        self.look_at(value)
        if not self.refused and any(value is each for each, *_ in self.grown):
            self.refuse(f"it reads {self._known[id(value)].label} after it added to it")
        if is_a(value, Tensor) and lookup.is_asked(self, type(value)):
            self.refuse(f"special methods of {told(value)} are not those of a tensor")
        if (known := self._known.get(id(value))) is None:
            if is_a(value, enum.Enum):
                self.learn(value, self.match.constant(value), told(value), True)
                return self.known(value)
            if type(value) in (tuple, Size):  # the elements come by themselves
                self.local(value)
            elif is_a(value, Tensor) and (self.recorder.find(value._data) or levels_of(value)):
                return None  # an op of this call made it
            elif not is_atom(value):
                self.refuse(f"it uses {told(value)} of unknown origin")
            return None
        return None if known.expression is None else known

    def note_read(self, value: Any, tensor: Tensor, how: str) -> Any:
        """Take note that a tensor was read as a value, which may only be handed on."""
        self._read.append((tensor, tensor._version, f"{how}(), at {user_location()}"))
        code = "{}" if how == "numpy" else f"{{}}.{how}()"
        return self.defer(Deferred(value, code, (tensor,), "", f"{how}()", (how, tensor)))

    def check_read(self) -> str | None:
        """Say why what was read cannot be read again at the end of a replay."""
        for tensor, version, how in self._read:
            if tensor._version != version:
                return f"it writes to {self.named(tensor)} after {how}"
        for scaler in self.scalers:
            if scaler._found:
                return f"it leaves {self.named(scaler)} between unscale_() or step() and update()"
        return None

    def read(self, value: Any, expression: str, label: str, held: bool, holder: Any = None) -> Any:
        """Take note of a value that was read outside; return it."""
        self._reads.add(expression)
        label = _TABLES.sub(lambda m: f"[{m[1]}]" if m[1].isdigit() else f".{m[1]}", label)
        if self.after_call and not _stays(value):
            self.refuse(f"it reads {label}")
        if is_atom(value):
            self.match.same(expression, value, label)
            return value
        if (known := self._known.get(id(value))) is not None:
            if known.expression is not None and known.expression != expression:
                self.match.require(f"{expression} is {known.expression}", label)
            return value
        if held or _is_one(value):
            if not is_a(holder, Module) and (not held or _lives_on_its_own(value)):
                self.learn(value, self.match.root(expression, value, label), label, True)
            else:
                self.match.same(expression, value, label)
                self.learn(value, self.match.constant(value), label, True)
        else:
            name, kind = self.match.bind(expression), self.match.constant(type(value))
            self.match.require(f"type({name}) is {kind}", f"type({label})")
            self.learn(value, name, label, False)
        return value

    def learn(self, value: Any, expression: str, label: str, held: bool) -> None:
        """Take note of an object from outside."""
        self._known[id(value)] = Known(value, expression, label, held)
        if is_a(value, Tensor):
            self._learn_tensor(value, expression, label, held)

    def _learn_tensor(self, tensor: Tensor, expression: str, label: str, held: bool) -> None:
        if id(tensor) in self.states:
            return
        if is_lazy(tensor):
            self.refuse(f"{label} gets its shape")
            return
        state = self.states[id(tensor)] = TensorState(tensor, label)
        if held:
            self.captured.add(id(tensor))
        self.recorder.know(Source(tensor, "", label), tensor._data)
        if not held:
            desc = describe(self._given(tensor, expression, label), tensor, need_check_feed=True)
            self.recorder.declare(tensor._data, desc)
        if state.grad is not None:
            self._known.setdefault(id(state.grad), Known(state.grad))
            self.recorder.know(Source(tensor, ".grad", f"{label}.grad"), state.grad._data)

    def hand_out(self, holder: Any) -> None:
        """Have replays given an object among the arguments: they write to it."""
        known, kind = self._known[id(holder)], type(holder)
        e = known.expression or ""
        self.match.holders[id(holder)] = e
        for other in self._known.values():
            if other is not known and other.expression is not None and type(other.value) is kind:
                label = f"whether {other.label} is {known.label}"
                self.match.require(f"{other.expression} is not {e}", label)

    def feed(self, tensor: Tensor) -> None:
        """Have a held tensor given like an argument: the call has given it another array."""
        known, array = self._known[id(tensor)], self.states[id(tensor)].data
        self.captured.discard(id(tensor))
        name = self._given(tensor, known.expression or "", known.label)
        self.recorder.feed(array, describe(name, tensor))

    def _given(self, tensor: Tensor, name: str, label: str) -> str:
        """Have a tensor fed, and guard what a Program takes for granted; return its variable."""
        self.match.tensors.append(tensor)
        self.match.feed_names[name] = label
        array, constant, require = tensor._data, self.match.constant, self.match.require
        data = self.match.bind(f"{name}._data")
        require(f"type({data}) is {constant(type(array))}", f"the array type of {label}")
        for what, how in (("dtype", "is"), ("shape", "=="), ("strides", "==")):
            require(f"{data}.{what} {how} {constant(getattr(array, what))}", f"{label}.{what}")
        if not is_a(array, np.ndarray):
            require(f"{name}.device == {constant(tensor.device)}", f"{label}.device")
        if tensor._view is not None:
            self.match.bind(f"{name}.refresh_view()")
        for slot, what in (("_view", "is a view"), ("_edge", "requires a gradient")):
            there = "" if getattr(tensor, slot) is None else "not "
            require(f"{name}.{slot} is {there}None", f"whether {label} {what}")
        inference = f"{'' if tensor._inference else 'not '}{name}._inference"
        require(inference, f"whether {label} is for inference")
        if (edge := tensor._edge) is not None:
            how = "is" if is_a(edge[0], AccumulateGrad) else "is not"
            is_leaf = f"type({name}._edge[0]) {how} {constant(AccumulateGrad)}"
            require(is_leaf, f"whether {label} is a leaf")
        return self.recorder.name(label)

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any], function: Any) -> Any:
        """Take note of the arguments of a call; return them as the observed function gets them."""
        self.recorder.on_end += [gc.enable] if gc.isenabled() else []
        gc.disable()  # a finalizer of garbage may call ops, which would be recorded
        given = self.match.constant((len(args), tuple(kwargs)))
        self.match.require(f"(len(args), tuple(kwargs)) == {given}", "how many arguments, by name,")
        owner: Any = function.__self__ if type(function) is MethodType else function
        if is_a(owner, Module) and function in (owner, owner._call_impl):
            function = owner.forward
        bound = type(function) is MethodType
        plain = function.__func__ if bound else function
        code = (plain if type(plain) is FunctionType else _TAKES_ALL).__code__
        own, more, rest = getargs(code)
        names = own[bound : code.co_argcount]
        names += [f"{more}[{i}]" for i in range(len(args) - len(names))]
        names[len(args) :] = [k if k in own else f"{rest}[{k!r}]" for k in kwargs]
        asked = [f"args[{i}]" for i in range(len(args))] + [f"kwargs[{k!r}]" for k in kwargs]
        taken: list[Any] = []
        for expression, label, value in zip(asked, names, (*args, *kwargs.values()), strict=True):
            taken.append(value)
            if type(value) in (int, float):
                kind = self.match.constant(type(value))
                self.match.require(f"type({expression}) is {kind}", f"type({label})")
                place = (None, "given", expression)
                taken[-1] = self.defer(Deferred(fresh(value), "", place, expression, label))
            else:
                self.read(value, expression, label, False)
        return taken[: len(args)], dict(zip(kwargs, taken[len(args) :], strict=True))

    # Contents

    def guard(self, value: Any, test: Callable[[str], str], label: str) -> None:
        """Guard something about an object from outside; @ is its name in the label."""
        known = self.outer(value)
        if known is not None and known.expression is not None:
            self.match.require(test(known.expression), label.replace("@", known.label))

    def child(self, holder: Any, value: Any, suffix: str, what: str | None = None) -> Any:
        """Take note of what an object holds: `suffix` is how it is read, `what` how it is told."""
        what = suffix if what is None else what
        known = self.outer(holder)
        if known is not None and not self.refused:
            if (number := self.unsettled(holder, "attribute", suffix[1:], value)) is not MISSING:
                return number
            held = known.held and (id(holder), "attribute", suffix[1:]) not in self.volatile
            table, bracket, key = suffix.partition("[")  # of a module, read once for all its keys
            where = f"{known.expression}{table}"
            where = (self.match.bind(where) if table and bracket else where) + bracket + key
            self.read(value, where, known.label + what, held, holder)
        elif known is None and not self.refused:
            self.local(value)
        return value

    def unsettled(self, holder: Any, kind: str, key: Any, value: Any) -> Any:
        """Return the deferred number for one at a place that calls write; MISSING for others."""
        written = (id(holder), kind, key) in self.volatile and id(holder) not in self.exposed
        if self.refused or not written or type(value) not in (int, float):
            return MISSING
        where, label = self.place_of(holder, kind, key)
        kind_now = f"type({where}) is {self.match.constant(type(value))}"
        self.match.require(kind_now, f"type({label})")
        return self.defer(Deferred(fresh(value), "", (holder, kind, key), where, label))

    def guard_length(self, value: Any, base: Any) -> None:
        """Guard how many elements there are in a container."""
        if is_a(value, Tensor):
            self.outer(value)
            return
        count, asked = base.__len__(value), "len"
        if lookup.looked_up(self, type(value), "__len__")[0] is not base:
            asked = f"{self.match.constant(base)}.__len__"
        self.guard(value, lambda e: f"{asked}({e}) == {count}", "len(@)")

    def contents(self, container: Any, but: Collection[Any] = ()) -> None:
        """Guard all that a container holds; the elements of one that the call made are noted.

        The values of a dict at the keys in `but` are not read.
        """
        self.look_at(*[x for place, x in self.written.items() if place[0] == id(container)])
        known, kind = self.outer(container), type(container)
        base = next((b for b in KINDS if issubclass(kind, b)), None)
        if known is None and base is not None:
            elements = base.values if issubclass(base, dict) else base.__iter__
            for value in list(elements(container)):
                self.local(value)
        if known is not None and base is None:
            self.refuse(f"it goes through {self.named(container)}")
        elif base in MAPPINGS:
            lookup.check_keys(self, container)
        if known is None or base is None or self.refused:
            return
        e, label, held = known.expression, known.label, known.held
        constant, require = self.match.constant, self.match.require
        at, listed = f"{e}[%s]", f"(*{e},)"
        if lookup.has_code(self, kind):  # which is another way to its elements
            at = f"{constant(getattr(base, '__getitem__', None))}({e}, %s)"
            listed = f"(*{constant(base)}.__iter__({e}),)"
        keys = tuple(base.__iter__(container))
        if base in kinds.SEQUENCES:
            self.guard_length(container, base)
        elif is_atom(keys):
            words = set(map(type, keys)) == {str}  # which compare by themselves
            asked = "%s == %s" if words else "same(%s, %s)"
            require(asked % (listed, constant(keys)), f"the keys of {label}")
        else:
            self.refuse(f"it goes through {label}, whose keys are objects")
            return
        values: Any = enumerate(keys) if base in kinds.SEQUENCES else ()
        if issubclass(base, dict):
            values = [(key, dict.__getitem__(container, key)) for key in keys if key not in but]
        for key, value in values:
            self.read(value, at % lookup.in_guards(self, key), f"{label}[{told(key)}]", held)

    def settled(self, value: Any, written: bool = False) -> bool:
        """Guard a value through and through; return False where code of a user's is in it.

        If it is `written` into a string by C code, also where that asks more than the guards know.
        """
        parts, seen, is_settled = [value], set[int](), True
        for part in parts:  # which grow
            self.look_at(part, inside=True)
            kind = type(part)
            if kind in (int, str, bytes) and sys.getsizeof(part) > 300:  # CPython counts the digits
                digits = sys.get_int_max_str_digits
                test = f"{self.match.constant(digits)}() == {digits()}"
                self.match.require(test, "how many digits of an int are text")
            inside = written and (kind in _INSIDE or is_a(part, BaseException))
            if written and not inside and (not is_atom(part) or is_a(part, np.generic)):
                return False
            if (is_atom(part) and not inside) or id(part) in seen:
                continue
            seen.add(id(part))
            if is_a(part, type):
                is_settled &= lookup.is_plain_class(part)
            elif is_a(part, (Tensor, FunctionType, MethodType, GenericAlias, UnionType)):
                self.outer(part)
            elif kind in (slice, range):
                parts += [part.start, part.stop, part.step]
            elif kind in CONTAINERS or (lookup.is_namedtuple(kind) and not kinds.has_ways(kind)):
                self.contents(part)
                parts += [*part, *(part.values() if kind in MAPPINGS else ())]
            elif self.outer(part) is not None:
                is_settled = False
            elif kind in kinds.VIEWS:
                parts += part
            elif is_a(part, BaseException) and not kinds.has_ways(kind):
                parts += part.args
            else:
                is_settled &= kinds.is_stream(kind) or is_a(part, np.ndarray)
        return is_settled

    # Names

    def name(self, site: FunctionType, name: str, value: Any) -> Any:
        if self.refused:
            return value
        scope = site.__globals__
        if name not in scope:
            test = f"{name!r} not in {self.match.constant(scope)}"
            self.match.require(test, f"whether {name} is a global")
            builtins = scope["__builtins__"]
            scope = vars(builtins) if is_a(builtins, ModuleType) else builtins
        return self._variable(scope, "item", name, value, name)

    def free(self, site: FunctionType, name: str, value: Any) -> Any:
        cell = self._outer_cell(site, name)
        return value if cell is None else self._variable(cell, "cell", "", value, name)

    def _variable(self, holder: Any, kind: str, key: str, value: Any, label: str) -> Any:
        """Take note of the value of a variable."""
        if (id(holder), kind, key) in self.stores:
            return self.written.get((id(holder), kind, key), value)
        if (number := self.unsettled(holder, kind, key, value)) is not MISSING:
            return number
        return self.read(value, self.place_of(holder, kind, key)[0], label, True)

    def _outer_cell(self, site: FunctionType, name: str) -> Any:
        """Return the cell of a variable; None when the call made it."""
        assert site.__closure__ is not None
        cell = site.__closure__[site.__code__.co_freevars.index(name)]
        return None if self.refused or id(cell) not in self._outer_cells else cell

    def store_global(self, site: FunctionType, name: str, value: Any) -> Any:
        return self.store(site.__globals__, "item", name, value)

    def store_free(self, site: FunctionType, name: str, value: Any) -> Any:
        cell = self._outer_cell(site, name)
        return self.plain(value) if cell is None else self.store(cell, "cell", "", value)

    def store(self, holder: Any, kind: str, key: Any, value: Any) -> Any:
        """Take note that a place outside is about to be written; return what is to be put there."""
        place = (id(holder), kind, key)
        if self.refused:
            return self.plain(value)
        self.recorder.note_change(holder)
        if place in self.stores:  # a replay that is stopped before this has no other value for it
            self.recorder.unsettle()
        else:
            was_read = self.place_of(holder, kind, key)[0] in self._reads
            old = lookup.at_place(holder, kind, key)
            self.stores[place] = (holder, old, was_read, self.recorder.calls)
        self.written.pop(place, None)
        if type(value) is not Symbol or id(holder) in self.exposed:
            return self.plain(value)
        self.written[place] = value
        return int(value)

    def grow(self, holder: Any, elements: Any) -> None:
        """Add elements to a list, deque or set outside."""
        self.recorder.note_change(holder)
        self.grown.append((holder, elements, self.recorder.calls))
        grows = holder.update if type(holder) is set else holder.extend
        grows([int(each) if type(each) is Symbol else each for each in elements])

    # Attributes and items

    attribute = _observed("attribute", lookup.attribute, "inside")
    set_attribute = _observed("set_attribute", lookup.set_attribute, "inside", "puts")
    delete_attribute = _observed("delete_attribute", lookup.delete_attribute, "inside")
    item = _observed("item", lookup.item, "inside")
    set_item = _observed("set_item", lookup.set_item, "inside", "puts")
    delete_item = _observed("delete_item", lookup.delete_item, "inside")

    def hold(self, what: str, owner: Any, key: Any) -> Any:
        if not self.refused and (known := self.known(owner)) and known.expression:
            self.volatile.add((id(owner), what, key))  # its value need not be guarded
        return super().hold(what, owner, key)

    def place_of(self, holder: Any, kind: str, key: Any) -> tuple[str, str]:
        """Return the expression of a place in the guards, and what users call it."""
        known = self.known(holder)
        if known is None or known.expression is None:
            known = Known(holder, self.match.constant(holder), told(holder))
        if kind == "item":
            spelled = lookup.in_guards(self, key)
            return f"{known.expression}[{spelled}]", f"{known.label}[{told(key)}]"
        name = "cell_contents" if kind == "cell" else key
        return f"{known.expression}.{name}", f"{known.label}.{name}"

    def written_at(self, holder: Any, kind: str, key: Any, read: Callable[[], Any]) -> Any:
        """Return what the call has put at a place; MISSING if nothing."""
        place = (id(holder), kind, key)
        return self.written.get(place, read()) if place in self.stores else MISSING

    # Calls

    def calling(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = calls.call(self, function, args, kwargs)
        return result if type(result) is Direct else [result].pop

    def plainly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return arguments as they are."""
        return tuple(map(self.plain, args)), {k: self.plain(v) for k, v in kwargs.items()}

    def entered(self, function: FunctionType) -> FunctionType:
        """Return the function that runs in the place of a user's, and is observed."""
        if self.outer(function) is not None:
            self._outer_cells.update(map(id, function.__closure__ or ()))
        code = function.__code__
        first = Location(code.co_filename, code.co_firstlineno, code.co_name)
        self.match.at = self.match.at or first
        try:
            return rewrite(function, self)
        except (NoSource, Unsupported) as error:
            self.refuse(f"{function.__qualname__}() cannot be observed: {error}")
            return function

    def callback(self, function: Any, held: bool = False, reads: bool = False) -> Any:
        """Return a function that unobserved code may call in the place of a user's.

        `held` says that guards of another kind know it, as they know the hooks of tensors; `reads`
        that the caller reads the result.
        """
        if held and self.known(function) is None:
            self.learn(function, self.match.constant(function), told(function), True)

        def run(*args: Any, **kwargs: Any) -> Any:
            if self.ended:
                return function(*args, **kwargs)
            self.user_calls += 1
            for value in (*args, *kwargs.values()):
                self.local(value)
            result = self.plain(self.call(function, *args, **kwargs))
            if reads and not self.refused and not self.settled(result):
                self.refuse(f"{told(result)} is read where it cannot be observed")
            return result

        return run

    def double_star(self, values: Any) -> Any:
        if type(values) not in MAPPINGS:
            self.refuse(f"it unpacks {self.named(values)} with **")
        elif not self.refused:
            self.contents(values)
        return values

    def unsupported(self, what: str) -> None:
        self.refuse(f"it has {what}")

    # Operators and decisions

    binary = _observed("binary", calls.binary, "looks", operators=BINARY)
    inplace = _observed("inplace", calls.inplace, "looks", operators=BINARY)
    compare = _observed("compare", calls.compare, "looks", operators=COMPARE)
    unary = _observed("unary", calls.unary, "looks", operators=UNARY)
    truth = _observed("truth", calls.truth, "looks")
    iterate = _observed("iterate", calls.iterate)
    key = _observed("key", lookup.check_key, "looks")
    context = _observed("context", calls.context)

    def format(self, value: Any, conversion: str, spec: str) -> str:
        value = self.plain(value)
        self.look_at(value)
        if not self.refused:
            value = calls.text(self, value, conversion)
        return super().format(value, conversion, spec)

    def made(self, value: Any) -> Any:
        if type(value) is list and Symbol in map(type, value):
            value[:] = map(self.plain, value)
        elif type(value) is dict and Symbol in map(type, value.values()):
            value.update({k: self.plain(v) for k, v in value.items()})
        return self.local(self.plain(value))

    def returned(self, value: Any) -> Any:
        at = None if self.refused else user_location()
        if at is not None and self.match.at and at.function == self.match.at.function:
            self.match.at = at  # the last line of the first function
        return value

    def imported(self, site: FunctionType, module: str, name: str, value: Any) -> Any:
        if not self.refused:
            module = resolve_name(module, site.__globals__.get("__package__"))
            where = f"{self.match.constant(sys.modules)}[{module!r}]"
            self.read(value, f"{where}.{name}" if name else where, name or module, True)
        return value

    # Exceptions

    def raised(self, error: Any) -> Any:
        if not self.refused and is_a(error, type):
            return self.call(error)
        return error

    def tries(self, site: FunctionType, yields: bool) -> None:
        if yields and not self.ended and sys._getframe(1).f_code not in self.managed:
            self.refuse("a generator yields in a try or with statement")
        self.has_handlers |= not (site.__module__ or "").startswith("oneflow_lite.")

    def caught(self, site: FunctionType, error: BaseException) -> None:
        if is_a(error, _UNEXPLAINED):
            self.refuse(f"it handles {type(error).__name__}")
        lookup.require_bases(self, type(error))
        self.local(error)

    # The end

    def changes(self) -> Iterator[tuple[Any, str, Any, Any, int]]:
        """Go through the places outside whose content has changed.

        Gives holder, kind, key, the new value, and how many ops were dispatched before.
        """
        for (_, kind, key), (holder, old, was_read, number) in self.stores.items():
            new = lookup.at_place(holder, kind, key)
            is_deferred = self.deferred(new) or (id(holder), kind, key) in self.written
            if is_deferred or not (was_read and same(old, new)):  # else nothing changes
                yield holder, kind, key, new, number
