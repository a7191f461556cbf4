"""Calls in a recorded function: each is entered, trusted, a builtin of the table, or refused.

Users' functions, and those of installed packages and of Python's library that are written in
Python, are entered. The package's functors and its engine are trusted leaves. A builtin stands in
a table here that says what it reads, or the call is refused by its name.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import importlib
import linecache
import operator
from collections import deque
from collections.abc import Callable, Iterator
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    GeneratorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from oneflow_lite.autograd.function import Function
from oneflow_lite.nn.hooks import EVERYWHERE
from oneflow_lite.nn.module import Module
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.static.compile import lookup
from oneflow_lite.static.compile.lookup import special
from oneflow_lite.static.compile.native import (
    BINARY,
    COMPARE,
    INPLACE,
    LOOK_AT_FRAME,
    UNARY,
    Native,
)
from oneflow_lite.static.compile.same import (
    CONTAINERS,
    KINDS,
    MAPPINGS,
    MISSING,
    SETS,
    STREAMS,
    VIEWS,
    is_a,
    is_atom,
    told,
)
from oneflow_lite.static.compile.stand_ins import FunctionStandIn
from oneflow_lite.static.ir.location import is_own_code
from oneflow_lite.tensor import Tensor

Observer = Any  # which stands on this module

_NATIVE = Native()
_REFLECTED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DISPATCH = functools.singledispatch(lambda value: None).dispatch.__code__
# Options that every update reads anew; where True, zero means that an input is left out.
_STEP_OPTIONS = {
    "lr": False, "betas": False, "eps": False, "momentum": True, "dampening": True,
    "weight_decay": True,
}  # fmt: skip


def _modules(names: str) -> tuple[str, ...]:
    return tuple([f"oneflow_lite.{name}" for name in names.split()])


# Own modules whose functions run as they are: they read nothing but what they are given.
_LEAVES = _modules(
    """
    functors kernels grad_funcs autograd tensor interpreter methods dtype device size storage
    registry random array_protocols array_api plain_functions memory_format complex creation
    op_expr extend inplace views errors optim nn.init nn.parameter spellings rng static
    serialization distributed nn.parallel.reducer
    """
)
_ENTERED = _modules("optim.lr_scheduler optim.swa_utils static.graph")
# Functions of this package with effects that no replay would repeat, on files or other processes.
_OWN_EFFECTS = frozenset(
    """
    Generator.get_state Generator.initial_seed Generator.manual_seed Generator.seed
    Generator.set_state get_rng_state initial_seed load manual_seed
    register_functor register_grad_func register_kernel register_op save seed set_default_dtype
    set_rng_state
    all_gather_object broadcast_object_list destroy_process_group gather_object init_process_group
    irecv isend monitored_barrier new_group recv_object_list scatter_object_list send_object_list
    set_debug_level
    """.split()
)


def call(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call anything."""
    f = f if o.refused else lookup.original(o, f)
    kind = type(f)
    if kind is MethodType:
        function = o.child(f, f.__func__, ".__func__", "")
        return call(o, function, (o.child(f, f.__self__, ".__self__", ""), *args), kwargs)
    if kind is FunctionType:
        return _function(o, f, args, kwargs)
    args, kwargs = o.plainly(args, kwargs)
    if o.read_out and f is not list.append:
        o.look_at(*args, *kwargs.values())
    if kind is BuiltinFunctionType or (is_a(f, type) and lookup.is_plain_class(o, f)):  # hashable
        handler = _HANDLERS.get(f)
        if handler is not None:
            return handler(o, *args, **kwargs)
    if is_a(f, type):
        return _construct(o, f, args, kwargs)
    of_kind = _OF_KINDS.get(kind)
    if of_kind is not None:
        return of_kind(o, f, args, kwargs)
    if is_a(f, np.ufunc) or kind.__module__.startswith("numpy"):
        return _numpy(o, f, args, kwargs)
    if issubclass(kind, FunctionStandIn):  # a compiled function in this one
        inner = lookup.own_attribute(f, "__wrapped__")
        return o.call(o.child(f, inner, ".__wrapped__", ""), *args, **kwargs)
    if is_a(f, Module):
        return _module(o, f, args, kwargs)
    member = lookup.method(o, f, "__call__")
    if type(member) is FunctionType:
        o.learn(member, o.match.constant(member), "__call__", True)
        return o.call(member, f, *args, **kwargs)
    return _unknown(o, f, args, kwargs)


# --- Functions ------------------------------------------------------------------------------------


def _unknown(o: Observer, f: Any, args: Any, kwargs: Any, name: str | None = None) -> Any:
    """Call what nobody knows."""
    o.refuse(f"it calls {name or told(f)}")
    return f(*args, **kwargs)


def _function(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    code = f.__code__
    if len(args) > code.co_argcount:  # `*args` is a tuple of what is left
        args = args[: code.co_argcount] + tuple(map(o.plain, args[code.co_argcount :]))
    own, of_numpy = _is_own(f), (f.__module__ or "").partition(".")[0] == "numpy"
    if own or of_numpy:
        args, kwargs = o.plainly(args, kwargs)
    handler = _HANDLERS.get(f)
    if handler is not None:
        return handler(o, *args, **kwargs)
    known = o.outer(f)
    if o.refused:
        return o.natively(f, args, kwargs)
    if code is _DISPATCH:
        return _cached(o, f, args, kwargs)
    if own and is_leaf(f):
        return leaf(o, f, args, kwargs)
    e, c = "" if known is None else known.expression, o.match.constant
    if known is not None and known.held and not own:
        o.match.require(
            f"{e}.__code__ is {c(code)} and {e}.__defaults__ is {c(f.__defaults__)} "
            f"and {e}.__kwdefaults__ is {c(f.__kwdefaults__)}",
            f"the code of `{known.label}` is another",
        )
    if of_numpy:
        return _numpy(o, f, args, kwargs)
    if known is not None:
        defaults = [(f".__defaults__[{i}]", value) for i, value in enumerate(f.__defaults__ or ())]
        words = (f.__kwdefaults__ or {}).items()
        defaults += [(f".__kwdefaults__[{name!r}]", value) for name, value in words]
        for where, value in defaults:
            o.read(value, e + where, f"a default of {known.label}", True)
    if code.co_filename.startswith("<") and not linecache.getlines(code.co_filename):
        return _generated(o, f, *o.plainly(args, kwargs))
    found = o.entered(f)
    if o.refused or "unsupported" in found.__code__.co_names:  # some of it is not observed
        return _generator(o, o.natively(found, args, kwargs))
    return _generator(o, found(*args, **kwargs))


def _generator(o: Observer, result: Any) -> Any:
    return o.local(result) if is_a(result, GeneratorType) else result


def _is_functor(f: Any) -> bool:
    """Return whether a function is what `register_op` made of a user's kernel."""
    return (
        f.__code__.co_filename.startswith("<") and FUNCTORS.find(f.__name__, known_only=True) is f
    )


def _is_own(f: Any) -> bool:
    return is_own_code(f.__code__) or _is_functor(f)


def is_leaf(f: Any) -> bool:
    """Return whether a function of the package runs as it is."""
    module = f.__module__ or ""
    trusted = module.startswith(_LEAVES) and not module.startswith(_ENTERED)
    return _is_functor(f) or (trusted and is_own_code(f.__code__))


def _generated(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function without a source, which dataclass() or namedtuple() may have written."""
    value: Any = args[0] if args else None
    fields = lookup.looked_up(o, type(value), "__dataclass_fields__")[1]
    if f.__name__ == "__init__" and fields is not MISSING:
        return _fill_dataclass(o, f, fields, value, args[1:], kwargs)
    if f.__name__ == "__new__" and is_a(value, type) and lookup.is_namedtuple(value):
        return o.local(f(*args, **kwargs))
    o.refuse(f"{f.__qualname__}() has no source")
    return f(*args, **kwargs)


def _fill_dataclass(
    o: Observer, f: Any, fields: Any, made: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Run the `__init__` that dataclass() wrote on another object; set what it sets there."""
    observed: dict[int, Any] = {}
    for name, field in fields.items():
        factory = field.default_factory
        if factory is not dataclasses.MISSING:
            where = f"{o.match.constant(field)}.default_factory"
            o.read(factory, where, f"the factory of {name}", True)
            observed[id(factory)] = CellType(o.callback(factory))
    if any(id(field.default) in observed for field in fields.values()):
        o.refuse(f"{f.__qualname__}() has a default that is a factory")
        f(made, *args, **kwargs)
        return
    cells = [observed.get(id(cell.cell_contents), cell) for cell in f.__closure__ or ()]
    init = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, tuple(cells))
    init.__kwdefaults__ = f.__kwdefaults__
    calls: list[tuple[Any, ...]] = []
    found = SimpleNamespace(__post_init__=lambda *given: calls.append(given))
    init(found, *args, **kwargs)
    is_frozen = lookup.static(type(made), "__dataclass_params__")[1].frozen
    del found.__post_init__
    for name, value in vars(found).items():
        (object.__setattr__ if is_frozen else o.set_attribute)(made, name, value)
    for given in calls:
        special(o, made, "__post_init__", *given)


def leaf(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function or class of the package; users' functions that it is given are observed."""
    owner, name = args[0] if args else None, f.__name__
    effect = type(f) is FunctionType and f.__code__.co_qualname in _OWN_EFFECTS
    if is_a(owner, Optimizer) and f.__module__.startswith("oneflow_lite.optim"):
        effect = name not in ("step", "zero_grad")
    elif is_a(owner, (Tensor, Optimizer)) and name.startswith("register_"):  # a hook
        effect = o.outer(owner) is not None
    if effect:
        return _unknown(o, f, args, kwargs, f"{f.__qualname__}()")
    optimizers = [value for value in args if is_a(value, Optimizer)]
    if optimizers or (is_a(owner, Tensor) and name == "backward"):
        o.reads_gradients = True
    for optimizer in optimizers:
        _optimizer(o, optimizer)
    args = tuple([_given(o, a) for a in args])
    return o.local(f(*args, **{name: _given(o, a) for name, a in kwargs.items()}))


def _given(o: Observer, value: Any) -> Any:
    """Return the value that a trusted leaf gets for an argument."""
    kind = type(value)
    if is_atom(value) or is_a(value, type):
        return value
    if kind is FunctionType or kind is MethodType:
        plain = value.__func__ if kind is MethodType else value
        return value if is_own_code(plain.__code__) else o.callback(value)
    if is_a(value, (Tensor, Optimizer, Module)) or kind.__module__.startswith("oneflow_lite"):
        o.outer(value)
    elif not o.settled(value) and not (kind.__module__ == "contextlib" and o.outer(value) is None):
        o.refuse(f"it hands {told(value)} to the package")
    return value


def _optimizer(o: Observer, optimizer: Any) -> None:
    """Take note of an optimizer's groups and state before one of its methods runs."""
    known = o.outer(optimizer)
    if known is None or o.refused or id(optimizer) in o.optimizers:
        return
    o.optimizers[id(optimizer)] = optimizer
    e, label, c = known.expression, known.label, o.match.constant
    lookup.method(o, optimizer, "step")
    hooks = [hook for each in optimizer._hooks.values() for hook in each.values()]
    c(hooks)  # so that their ids stay theirs
    listed = f"[id(h) for d in {e}._hooks.values() for h in d.values()]"
    o.match.require(f"{listed} == {c(list(map(id, hooks)))}", f"the hooks of `{label}`")
    groups = o.child(optimizer, optimizer.param_groups, ".param_groups", ".param_groups")
    o.contents(groups)
    for i, group in enumerate(groups):
        numbers = {k for k, value in group.items() if k in _STEP_OPTIONS and _is_number(value)}
        o.contents(group, numbers)
        for name, value in group.items():
            where, text = f"{c(group)}[{name!r}]", f"`{label}.param_groups[{i}][{name!r}]`"
            if name in numbers:
                then = f" and (not {where}) is {not value}" if _STEP_OPTIONS[name] else ""
                kind_of = f"type({where}) is {c(type(value))}{then}"
                o.match.require(kind_of, f"{text} is of another kind")
            elif not is_atom(value):
                o.contents(value)
    for tensor in optimizer.own_tensors():
        if o.known(tensor) is None:
            o.learn(tensor, c(tensor), f"the state of {label}", True)


def settle_optimizer(o: Observer, optimizer: Any) -> None:
    """Guard an optimizer's state as the call has left it: a first step makes it."""
    known, c = o.known(optimizer), o.match.constant
    e, label, state = known.expression, known.label, optimizer.state
    o.match.same(f"{e}.state", state, f"{label}.state")
    states = o.match.bind(f"[*{c(state)}.values()]")
    o.match.require(f"len({states}) == {len(state)}", f"the state of `{label}`")
    for i, each in enumerate(state.values()):
        # What the call itself puts there is put there by every replay, too.
        kept = {k: v for k, v in each.items() if (id(each), "item", k) not in o.stores}
        tests = [f"{states}[{i}] is {c(each)}"]
        tests += [f"len({c(each)}) == {len(each)}"] if len(kept) == len(each) else []
        tests += [f"{c(each)}[{lookup.in_guards(o, k)}] is {c(v)}" for k, v in kept.items()]
        o.match.require(" and ".join(tests), f"the state of `{label}`")
    tensors = [t for _, options in optimizer._scalars.values() for t in options]
    c(tensors)  # so that their ids stay theirs
    read = f"[id(t) for _, ts in {e}._scalars.values() for t in ts]"
    o.match.require(f"{read} == {c(list(map(id, tensors)))}", f"the options of `{label}`")


def _is_number(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_number, value))
    return type(value) in (bool, int, float)


def _cached(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call what gives one object for the same arguments: of lru_cache(), or singledispatch()."""
    known = o.outer(f)
    if known is None or o.refused or not all([_is_fixed(o, x) for x in (args, *kwargs.values())]):
        return _unknown(o, f, args, kwargs, f"{f.__name__}(), a cache, with what may change")
    missed = f.cache_info().misses if type(f) is not FunctionType else 0
    found = f(*args, **kwargs)
    if type(f) is not FunctionType and f.cache_info().misses > missed:
        o.refuse(f"{known.label}() was not in its cache")
    c = o.match.constant
    o.read(found, f"{known.expression}(*{c(args)}, **{c(dict(kwargs))})", f"{known.label}()", True)
    return found


def _is_fixed(o: Observer, value: Any) -> bool:
    """Return whether an argument is one value or one object at every call."""
    if type(value) is tuple:
        return all([_is_fixed(o, each) for each in value])
    known = o.known(value)
    lookup.check_key(o, value)
    is_builtin = is_a(value, type) and value.__module__ == "builtins"
    return is_atom(value) or is_builtin or (known is not None and known.held)


def _partial(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function = o.child(f, f.func, ".func", "")
    o.contents(o.child(f, f.args, ".args", ".args"))
    o.contents(o.child(f, f.keywords, ".keywords", ".keywords"))
    return o.call(function, *f.args, *args, **{**f.keywords, **kwargs})


def _getter(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply an attrgetter or itemgetter that the call made."""
    if o.outer(f) is not None or len(args) != 1:
        return _unknown(o, f, args, kwargs)
    names = f.__reduce__()[1]
    if type(f) is operator.itemgetter:
        found = [o.item(args[0], name) for name in names]
    else:
        found = [functools.reduce(o.attribute, name.split("."), args[0]) for name in names]
    return found[0] if len(found) == 1 else o.local(tuple(found))


def _module(o: Observer, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Module: straight to forward() where nothing else waits."""
    member, known = lookup.method(o, module, "__call__"), o.outer(module)
    fields = lookup.fields_of(module) or {}
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    if member is not vars(Module)["__call__"] or EVERYWHERE or any([fields.get(n) for n in hooks]):
        o.learn(member, o.match.constant(member), "__call__", True)
        return o.call(member, module, *args, **kwargs)
    if known is not None:
        f = o.match.bind(f"{known.expression}.__dict__")
        tests = [f"not {f}[{name!r}]" for name in hooks]
        o.match.require(" and ".join(tests), f"`{known.label}` has hooks now")
    return o.call(o.attribute(module, "forward"), *args, **kwargs)


# --- Classes --------------------------------------------------------------------------------------


def _construct(o: Observer, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make an object of a class."""
    if cls.__module__.startswith("oneflow_lite"):
        if issubclass(cls, Optimizer):
            o.refuse("it makes an optimizer")
        return leaf(o, cls, args, kwargs)
    o.outer(cls)
    if is_a(cls, enum.EnumMeta):
        if not is_atom(args):
            o.refuse(f"it looks up a member of {cls.__name__}")
    elif lookup.looked_up(o, type(cls), "__call__")[0] is not type:
        o.refuse(f"it makes {cls.__name__}, whose metaclass has a __call__ of its own")
    if o.refused or is_a(cls, enum.EnumMeta):
        return cls(*args, **kwargs)
    owner, new = lookup.looked_up(o, cls, "__new__")
    init = lookup.looked_up(o, cls, "__init__")[1]
    if type(new) is staticmethod:
        lookup.require_member(o, cls, cls, "__new__", new)
        made = o.call(lookup.learned(o, new.__func__, "__new__"), cls, *args, **kwargs)
    elif type(init) is not FunctionType:
        return _native(o, cls, _letters(cls), args, kwargs)
    elif owner is object or (owner in CONTAINERS and owner not in (tuple, frozenset)):
        made = new(cls)  # what it is given, it leaves to __init__
    else:
        made = _native(o, new, "h" + _letters(owner), (cls, *args), kwargs)
    if is_a(made, cls):
        o.local(made)
        if type(init) is FunctionType:
            special(o, made, "__init__", *args, **kwargs)
        elif init is not vars(object)["__init__"]:
            _native(o, init, "h" + _letters(cls), (made, *args), kwargs)
    return made


def _letters(cls: Any) -> str:
    """Return the letters of a class: how the making of its objects treats its arguments."""
    if issubclass(cls, BaseException):
        return "h"
    return next(_LETTERS[c] for c in cls.__mro__ if c in _LETTERS)


# --- Builtins -------------------------------------------------------------------------------------

# What C code does with each argument; the last letter stands for those that follow, too.
#   r  reads it through and through    h  holds it      k  hashes it    c  calls it
#   t  goes through it, holds elements T  reads them    K  hashes them  C  reads what that returns
#   m  takes its items, as dict() does i  goes through it and through its elements
#   w  changes it
# What it would read, it only hands on where it is given a callback ("key", or one of c and C).
_LETTERS = {
    getattr(importlib.import_module(module or "builtins"), name): letters
    for letters, names in {
        "r": "object int float complex bool str type abs ascii bin bytearray bytes chr divmod hex "
        "memoryview oct ord pow range round slice operator.index operator.concat operator.countOf "
        "operator.indexOf itertools.count numpy.dtype",
        "h": "types.MethodType functools.partial operator.attrgetter operator.itemgetter",
        "t": "list tuple zip itertools.chain itertools.product itertools.cycle itertools.pairwise "
        "itertools.zip_longest",
        "tr": "enumerate collections.deque itertools.islice itertools.permutations itertools.tee "
        "itertools.combinations itertools.combinations_with_replacement",
        "Tr": "sum", "T": "all any sorted", "x": "max min", "K": "set frozenset",
        "m": "dict collections.OrderedDict", "hm": "collections.defaultdict", "ct": "map",
        "ci": "itertools.starmap", "cth": "functools.reduce", "CT": "filter",
        "Ct": "itertools.takewhile itertools.dropwhile itertools.filterfalse",
        "Tc": "itertools.accumulate", "TC": "itertools.groupby", "tT": "itertools.compress",
        "hr": "itertools.repeat", "wK": "collections._count_elements",
    }.items()
    for module, _, name in [each.rpartition(".") for each in names.split()]
}  # fmt: skip
_WORDS = {"key": "C", "default": "h", "initial": "h", "fillvalue": "h", "func": "c"}
# Of methods of classes, and of containers; "!" changes a container, "=" compares its elements.
_METHODS = {
    name: letters
    for letters, names in {
        "r": "copy keys values items __iter__ __reversed__ most_common elements from_bytes fromhex "
        "maketrans",
        "=r": "index count __eq__ __ne__ __lt__ __le__ __gt__ __ge__ isdisjoint issubset "
        "issuperset union intersection difference symmetric_difference __contains__ __or__ __and__ "
        "__sub__ __xor__ __add__ __mul__ __rmul__",
        "!h": "append appendleft __init__",
        "!t": "extend extendleft list.__iadd__ list.__init__ deque.__init__",
        "!rh": "insert", "!r": "rotate pop popleft reverse clear popitem __delitem__",
        "!=r": "remove", "!=C": "sort", "!k": "add discard set.remove move_to_end",
        "!kh": "setdefault dict.pop OrderedDict.pop defaultdict.pop",
        "!m": "update dict.__init__ OrderedDict.__init__ __ior__",
        "!K": "set.update set.__ior__ set.__init__ difference_update intersection_update",
        "h": "tuple.__init__ __init_subclass__ __class_getitem__ __subclasscheck__ "
        "__instancecheck__",
        "!hm": "defaultdict.__init__", "Kh": "fromkeys", "i": "from_iterable",
    }.items()
    for name in names.split()
}  # fmt: skip
# Of methods of other objects that the call made.
_OF_LOCALS: list[tuple[Any, str]] = [
    ((np.ndarray, np.generic), "r"), ((BaseException, GeneratorType), "h"),
    ((*STREAMS, type, super), "r"),
]  # fmt: skip
# The special methods by which C code asks an object, in the order in which it looks for them.
_PROTOCOLS: dict[Any, str] = {
    int: "__int__ __index__ __trunc__", float: "__float__ __index__",
    complex: "__complex__ __float__ __index__", abs: "__abs__", round: "__round__",
}  # fmt: skip


def observed(o: Observer, value: Any, *names: str) -> Any:
    """Return what C code gets for an object that it asks by the first of these special methods.

    Where that method is a user's, this is another object, whose method observes it.
    """
    for name in () if o.refused or is_atom(value) or is_a(value, Tensor) else names:
        if _is_users(o, value, name):
            return _stand_in(value, {name: functools.partial(special, o, value, name)})
        if lookup.static(type(value), name)[0] not in (None, object):
            break
    return value


def _stand_in(value: Any, methods: dict[str, Any]) -> Any:
    """Return an object with these methods, whose class is called like that of a value."""
    members = {name: staticmethod(method) for name, method in methods.items()}
    return type(type(value).__name__, (), {"__iter__": lambda self: self, **members})()


def _builtin(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a C function or method."""
    name = f.__name__
    if type(f) in (MethodDescriptorType, WrapperDescriptorType):
        if not args or not is_a(args[0], f.__objclass__):
            return f(*args, **kwargs)  # which raises
        return _method(o, f.__get__(args[0]), args[0], args[1:], kwargs)
    owner = f.__self__
    if owner is None or type(owner) is ModuleType:
        module = f.__module__ or getattr(owner, "__name__", "")
        if module.partition(".")[0] == "numpy":
            return _numpy(o, f, args, kwargs)
        letters = _LETTERS.get(f, "r" if module in ("math", "cmath") else None)
        if letters is None:
            return _unknown(o, f, args, kwargs, f"{name}()")
        return _native(o, f, letters, args, kwargs)
    if not is_a(owner, type):
        return _method(o, f, owner, args, kwargs)
    letters = _METHODS.get(name, "!")
    if name == "__new__" and args and is_a(args[0], type):
        letters = "h" + _letters(owner)
        if owner is object:
            args, kwargs = args[:1], {}
    if letters[0] in "!=":
        return _unknown(o, f, args, kwargs, f"{owner.__name__}.{name}()")
    return _native(o, f, letters, args, kwargs)


def _native(
    o: Observer, f: Any, letters: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call C code that does with its arguments what letters say, and nothing else."""
    if args and type(f) in (type, BuiltinFunctionType) and f in _PROTOCOLS:
        asked = observed(o, args[0], *_PROTOCOLS[f].split())
        if asked is not args[0]:
            return o.local(f(asked, *args[1:], **kwargs))
    holds = "m" in letters or letters == "h"  # a word, whatever it is called
    if letters == "x":
        letters = "T" if len(args) == 1 else "r"
    callbacks = [kwargs.get("key"), kwargs.get("func")]
    callbacks += [a for a, letter in zip(args, letters, strict=False) if letter in "cC"]
    if any(callback is not None for callback in callbacks):
        letters = letters.replace("T", "t").replace("r", "h")
    each = letters.ljust(len(args), letters[-1])
    given = [_passed(o, f, letter, value) for letter, value in zip(each, args, strict=False)]
    words = {k: _passed(o, f, "h" if holds else _WORDS.get(k, "r"), kwargs[k]) for k in kwargs}
    return o.local(f(*given, **words))


def _passed(o: Observer, f: Any, letter: str, value: Any) -> Any:
    """Return the value that C code gets for an argument; guard the parts that it reads."""
    if letter == "h" or o.refused or (value is None and letter in "cC"):
        return value
    if letter in "cC":
        return o.callback(value, reads=letter == "C")
    if letter == "w":
        if o.outer(value) is not None:
            o.refuse(f"it changes {told(value)}")
    elif letter == "k":
        lookup.check_key(o, value)
    elif letter == "r" and type(value) not in STREAMS:
        if not o.settled(value):
            o.refuse(f"it calls {f.__name__}() of {told(value)}")
    elif letter == "m" and lookup.looked_up(o, type(value), "keys")[0] is not None:
        if type(value) not in MAPPINGS:
            o.refuse(f"it takes the items of {told(value)}")
            return value
        o.contents(value)
        lookup.check_keys(o, value)
    elif not is_atom(value):
        values = o.iterate(value)
        return values if letter == "t" else _each(o, f, letter, values)
    return value


def _each(o: Observer, f: Any, letter: str, values: Any) -> Iterator[Any]:
    """Yield the elements that C code reads, hashes, or takes as the pairs of a dict."""
    for value in values:
        if letter == "i":
            value = o.iterate(value)
        elif o.refused:
            pass
        elif letter in "mK":
            if letter == "m" and type(value) not in (tuple, list):
                o.refuse(f"it takes the items of {told(value)}")
            else:
                lookup.check_key(o, value if letter == "K" else value[0] if value else None)
        elif not o.settled(value):
            o.refuse(f"it calls {f.__name__}() of {told(value)}")
        yield value


def _method(o: Observer, f: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a C method of an object, to which it is bound."""
    kind, name = type(owner), f.__name__
    if name == "__setattr__" and len(args) == 2:
        return lookup.raw_set(o, owner, *args)
    base: Any = next((b for b in KINDS if issubclass(kind, b)), None)
    if name in ("__getattribute__", "__getattr__") and len(args) == 1 and not is_a(owner, dict):
        return o.attribute(owner, args[0])
    if base is not None:
        return _of_container(o, base, f, owner, args, kwargs)
    known = None if is_atom(owner) else o.outer(owner)
    letters = None
    if is_atom(owner):
        letters = "t" if name == "join" else "r"
        if name in ("format", "format_map") and _has_text_of_its_own((args, *kwargs.values())):
            letters = None
    elif known is not None:
        letters = "h" if name in ("__class_getitem__", "__subclasses__") else None
    elif name in ("__init__", "__init_subclass__", "__enter__", "__exit__"):
        letters = _letters(f.__objclass__)
    else:
        letters = next((letters for kinds, letters in _OF_LOCALS if is_a(owner, kinds)), None)
    if name in ("__eq__", "__ne__") and lookup.looked_up(o, kind, name)[0] is object:
        letters = "h"
    if letters is None:
        whose = told(owner) if known is None else known.label
        return _unknown(o, f, args, kwargs, f"{name}() of {whose}")
    return _native(o, f, letters, args, kwargs)


def _of_container(
    o: Observer, base: Any, f: Any, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a method of a built-in container."""
    name, known = f.__name__, o.outer(owner)
    if name == "__getitem__":
        return lookup.item_of(o, base, owner, *args)
    if name == "__setitem__":
        return lookup.set_item_of(o, base, owner, *args)
    if name == "__contains__" and issubclass(base, dict):
        return lookup.has_key(o, owner, *args)
    if name == "get" and args:
        there = lookup.has_key(o, owner, args[0])
        if not o.refused:
            return lookup.item_of(o, base, owner, args[0]) if there else (*args[1:], None)[0]
    if name == "__len__":
        o.guard_length(owner, base)
        return base.__len__(owner)
    letters = _METHODS.get(f"{base.__name__}.{name}", _METHODS.get(name))
    if letters is not None and not letters.startswith("!"):
        o.contents(owner)
    elif letters is not None and known is not None:
        o.refuse(f"it changes {known.label} by {name}()")
    read = letters is not None and "=" in letters and kwargs.get("key") is None
    if letters is None or (read and not o.settled(owner)):
        return _unknown(o, f, args, kwargs, f"{name}() of {told(owner)}")
    return _native(o, f, letters.lstrip("!="), args, kwargs)


def _numpy(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy: of numbers, of arrays that the call made, and of tensors."""
    module, given = getattr(f, "__module__", None) or type(f).__module__, [*args, *kwargs.values()]
    calls = any(is_a(value, (FunctionType, MethodType, functools.partial)) for value in given)
    if calls or "random" in str(module) or not all(map(o.settled, given)):
        o.refuse(f"it calls {getattr(f, '__name__', type(f).__name__)}() of NumPy")
    return o.local(f(*args, **kwargs))


# --- Operators and decisions ----------------------------------------------------------------------


def _is_users(o: Observer, value: Any, name: str) -> bool:
    """Return whether a special method is a Python function that is none of the package's."""
    kind = type(value)
    member = lookup.looked_up(o, kind, name)[1]
    if type(member) is not FunctionType or is_a(value, (np.ndarray, np.generic)):
        return False
    if is_a(value, Tensor):
        c = o.match.constant
        lookup.class_of(o, value)
        o.match.require(f"{c(kind)}.{name} is {c(member)}", f"`{kind.__name__}.{name}` is another")
        return not is_own_code(member.__code__)
    return True


def _answer(o: Observer, a: Any, b: Any, names: list[str], always: bool = False) -> Any:
    """Return what the first special method says that knows an operation; MISSING for C code's.

    The last of the names is that of the right operand's method, which is asked first where it is of
    a subclass that has one of its own; for comparisons `always` so.
    """
    ways = [(a, name, b) for name in names[:-1]] + [(b, names[-1], a)]
    if type(a) is not type(b) and issubclass(type(b), type(a)):
        one, other = [lookup.static(type(x), names[-1])[1] for x in (a, b)]
        if always or one is not other:
            ways.insert(len(ways) - 2, ways.pop())
    for value, name, other in ways:
        if o.refused or is_atom(value):
            continue
        if _is_users(o, value, name):
            found = special(o, value, name, other)
        elif is_a(value, Tensor) and not o.settled(other):
            found = getattr(Tensor, name, lambda *_: NotImplemented)(value, other)
            if found is not NotImplemented:
                o.refuse(f"it applies {name} to a Tensor and {told(other)}")
        else:
            continue
        if found is not NotImplemented:
            return found
    return MISSING


def unary(o: Observer, op: str, value: Any) -> Any:
    """Apply a unary operator."""
    if op == "not":
        return not truth(o, value)
    if not o.settled(value):
        return special(o, value, f"__{UNARY[op].__name__}__")
    return o.local(_NATIVE.unary(op, value))


def binary(o: Observer, op: str, a: Any, b: Any, inplace: bool = False) -> Any:
    """Apply a binary operator by Python's rules."""
    native = _NATIVE.inplace if inplace else _NATIVE.binary
    if is_atom(a) and is_atom(b):
        return native(op, a, b)
    if op == "%" and type(a) in (str, bytes) and _has_text_of_its_own(b):
        o.refuse(f"it writes {told(b)} into a string")
    name = BINARY[op].__name__.strip("_")
    found = _answer(o, a, b, [f"__i{name}__", f"__{name}__", f"__r{name}__"][not inplace :])
    if found is not MISSING:
        return found
    changes = inplace and type(a) in CONTAINERS and type(a) not in (tuple, frozenset)
    if changes and o.outer(a) is not None:
        o.refuse(f"it changes {told(a)} in place")
    if changes and not is_atom(b) and op != "*":
        b = _passed(o, native, "t" if is_a(a, (list, deque)) else "r", b)
    elif type(a) in CONTAINERS and type(b) in CONTAINERS and op in "+|&-^":
        for each in (a, b):
            o.contents(each)
            if op != "+":
                lookup.check_keys(o, each)
    elif not (o.settled(a) and o.settled(b)) and not (op == "*" and type(a) in CONTAINERS):
        o.refuse(f"it applies {op} to {told(a)} and {told(b)}")
    return o.local(native(op, a, b))


inplace = functools.partial(binary, inplace=True)


def compare(o: Observer, op: str, a: Any, b: Any) -> Any:
    """Compare two values."""
    if op in ("is", "is not"):
        return identical(o, a, b) is (op == "is")
    if op in ("in", "not in"):
        return contains(o, b, a) is (op == "in")
    names = [f"__{COMPARE[each].__name__}__" for each in (op, _REFLECTED.get(op, op))]
    found = _answer(o, a, b, names, always=True)
    if found is not MISSING:
        return found
    if op in ("==", "!=") and not o.refused:
        owners = [
            object if is_atom(x) else lookup.looked_up(o, type(x), "__eq__")[0] for x in (a, b)
        ]
        if owners == [object, object]:
            atoms = is_atom(a) or is_atom(b)
            return _NATIVE.compare(op, a, b) if atoms else identical(o, a, b) is (op == "==")
    if not (o.settled(a) and o.settled(b)):
        o.refuse(f"it compares {told(a)} with {told(b)}")
    return o.local(_NATIVE.compare(op, a, b))


def identical(o: Observer, a: Any, b: Any) -> bool:
    """Tell whether two values are one object; where that may change, it is guarded."""
    classes = is_a(a, type) and is_a(b, type) and (o.known(a) is None or o.known(b) is None)
    if o.refused or classes:
        return a is b
    one, other = [None if is_atom(x) else o.outer(x) for x in (a, b)]
    if is_atom(a) or is_atom(b):
        if a is not b and type(a) is type(b) and a == b:
            o.refuse("it compares the identity of equal numbers or strings")
        return a is b
    if one is not None and other is not None and not (one.held and other.held):
        is_ = "is" if a is b else "is not"
        o.match.require(
            f"{one.expression} {is_} {other.expression}",
            f"whether `{one.label}` is `{other.label}`",
        )
    if any(s.grad is x for s in o.states.values() for x in (a, b)):
        o.refuse("it compares a gradient by identity")
    return a is b


def contains(o: Observer, container: Any, value: Any) -> bool:
    """Tell whether a container has a value."""
    owner = lookup.looked_up(o, type(container), "__contains__")[0]
    if owner in MAPPINGS:
        return lookup.has_key(o, container, value)
    if owner in SETS:
        o.contents(container)
        lookup.check_key(o, value)
        lookup.check_keys(o, container)
        for key in container if not is_atom(value) else ():
            identical(o, value, key)
        return value in container
    asked = observed(o, container, "__contains__")
    if asked is not container and not is_a(container, enum.EnumMeta):
        return truth(o, special(o, container, "__contains__", value))
    if is_atom(container) or is_a(container, (Tensor, type)) or o.refused:
        if not (o.settled(container) and o.settled(value)):
            o.refuse(f"it looks for {told(value)} in {told(container)}")
        return value in container
    if owner in CONTAINERS:
        o.contents(container)
        elements: Any = vars(owner)["__iter__"](container)
    else:
        elements = o.iterate(container)
    for each in list(elements):
        same = each is value if is_atom(each) and is_atom(value) else identical(o, each, value)
        if same or truth(o, compare(o, "==", each, value)):
            return True
    return False


def truth(o: Observer, value: Any) -> bool:
    """Decide by a value."""
    if is_atom(value):
        return bool(value)
    known, names = o.outer(value), ("__bool__", "__len__")
    asked = observed(o, value, *names)
    varies = any(lookup.static(type(value), name)[0] is not None for name in names)
    if is_a(value, np.ndarray):
        lookup.check_array(o, value)
    elif varies and asked is value and known is not None and not is_a(value, Tensor):
        test = f"{'' if value else 'not '}{known.expression}"
        o.match.require(test, f"whether `{known.label}` is empty")
    return bool(asked)


def iterate(o: Observer, value: Any) -> Any:
    """Return an iterator over the elements of a value."""
    if is_atom(value):
        return value
    if is_a(value, Tensor):
        o.outer(value)
        return iter([o.local(each) for each in value])
    owner = lookup.looked_up(o, type(value), "__iter__")[0]
    if owner in CONTAINERS:
        o.contents(value)
        elements = vars(owner)["__iter__"](value)
        return value if o.outer(value) is None else iter(list(elements))
    if is_a(value, enum.EnumMeta):
        return value
    if _is_users(o, value, "__iter__"):
        found = special(o, value, "__iter__")
        if found is not value:
            return iterate(o, found)
    asked = observed(o, value, "__next__")
    if asked is not value:
        return o.local(iter(asked))
    if o.outer(value) is not None or (owner is None and not is_a(value, np.ndarray)):
        o.refuse(f"it goes through {told(value)}")
    return value


def text(o: Observer, value: Any, conversion: str) -> Any:
    """Return what is written into a string in the place of a value."""
    if is_atom(value) or o.refused:
        return value
    names = ("__format__", "__str__", "__repr__")[{"": 0, "s": 1}.get(conversion, 2) :]
    asked = observed(o, value, *names)
    if asked is not value:
        return asked
    if is_a(value, Tensor):
        o.refuse("it writes a tensor's values into a string")
    elif not o.settled(value) or _has_text_of_its_own(value):
        o.refuse(f"it writes {told(value)} into a string")
    return value


def _has_text_of_its_own(value: Any) -> bool:
    """Return whether something is in a value that C code would write by more than guards know."""
    if is_a(value, (Tensor, FunctionType, MethodType, type)):
        return True
    if is_a(value, dict):
        return any(_has_text_of_its_own(pair) for pair in dict.items(value))
    if type(value) in (*CONTAINERS, *VIEWS):
        return any(map(_has_text_of_its_own, value))
    return not is_atom(value) and not is_a(value, (np.ndarray, slice, BaseException))


def context(o: Observer, manager: Any) -> Any:
    """Return the manager that a `with` statement enters in the place of another one."""

    def leave(kind: Any, error: Any, traceback: Any) -> bool:
        o.local(error)
        o.local(traceback)
        swallowed: bool = o.truth(special(o, manager, "__exit__", kind, error, traceback))
        if swallowed and error is not None:
            o.caught(None, error)
        return swallowed

    if type(manager).__module__.startswith("oneflow_lite"):
        o.outer(manager)
    elif all([_is_users(o, manager, name) for name in ("__enter__", "__exit__")]):
        o.has_handlers = True
        enter = functools.partial(special, o, manager, "__enter__")
        return _stand_in(manager, {"__enter__": enter, "__exit__": leave})
    else:
        o.refuse(f"it enters {told(manager)}")
    return manager


# --- Builtins with ways of their own --------------------------------------------------------------


def _getattr(o: Observer, value: Any, name: str, *default: Any) -> Any:
    try:
        return o.attribute(value, _plain_name(o, name))
    except AttributeError:
        if not default:
            raise
        return default[0]


def _plain_name(o: Observer, name: Any) -> Any:
    """Return the name of an attribute; one of a class of a user's may have code."""
    if type(name) is not str:
        o.refuse(f"it names an attribute by {told(name)}")
    return name


def _length(o: Observer, value: Any) -> int:
    asked, owner = observed(o, value, "__len__"), lookup.looked_up(o, type(value), "__len__")[0]
    if is_a(value, np.ndarray):
        lookup.check_array(o, value)
    elif asked is value and not is_atom(value) and owner is not None:
        o.guard_length(value, owner)
    return len(asked)


def _reversed(o: Observer, value: Any) -> Any:
    asked = observed(o, value, "__reversed__")
    missing = lookup.looked_up(o, type(value), "__reversed__")[0] is None
    if missing and _is_users(o, value, "__getitem__"):
        return o.local(o.item(value, i) for i in range(_length(o, value))[::-1])
    if asked is value and not is_atom(value):
        o.contents(value)
    return o.local(reversed(asked))


def _asks(ask: Any) -> Callable[..., Any]:
    """Return the function that runs in the place of isinstance() or issubclass()."""

    def run(o: Observer, value: Any, kinds: Any) -> bool:
        _check_asked(o, kinds, f"__{ask.__name__.removeprefix('is')}check__")
        if ask is issubclass or is_atom(value):
            cls = value if ask is issubclass else type(value)
        else:
            cls = lookup.class_of(o, value)
        if is_a(cls, type):
            lookup.require_bases(o, cls)
        return bool(ask(value, kinds))

    return run


def _check_asked(o: Observer, kind: Any, name: str) -> None:
    """Guard what classes are asked for that have their own idea of what is one of them."""
    for each in kind if type(kind) is tuple else (kind,):
        meta = type(each)
        plain = meta.__module__.partition(".")[0] in ("oneflow_lite", "enum", "typing", "types")
        if meta is tuple:
            _check_asked(o, each, name)
        elif meta is abc.ABCMeta:  # classes may be registered with it
            token = o.match.constant(abc.get_cache_token)
            o.match.require(f"{token}() == {abc.get_cache_token()!r}", "registered classes")
        elif not plain and lookup.looked_up(o, meta, name)[0] not in (None, type):
            o.refuse(f"it asks {meta.__name__} what its classes are")
        if is_a(each, type) and getattr(each, "_is_protocol", False):
            o.refuse("it asks whether an object follows a protocol")


def _type(o: Observer, *args: Any, **kwargs: Any) -> Any:
    if len(args) != 1:
        o.refuse("it makes a class")
        return type(*args, **kwargs)
    if is_atom(args[0]):
        return lookup.learned(o, type(args[0]), type(args[0]).__name__)
    return lookup.class_of(o, args[0])


def _callable(o: Observer, value: Any) -> bool:
    if not is_atom(value):
        lookup.method(o, value, "__call__")
    return callable(value)


def _next(o: Observer, iterator: Any, *default: Any) -> Any:
    asked = observed(o, iterator, "__next__")
    if asked is iterator and o.outer(iterator) is not None:
        o.refuse(f"it takes the next element of {told(iterator)}")
    return next(asked, *default)


def _id(o: Observer, value: Any) -> int:
    known = o.known(value)
    if not is_atom(value) and (known is None or not known.held):
        o.refuse(f"it asks for the id() of {told(value)}")
    return id(value)


def _of_frame(function: Any) -> Callable[..., Any]:
    """Return the function for a builtin that looks at its caller's frame."""

    def run(o: Observer, *args: Any) -> Any:
        if function is not super:
            o.refuse(f"it calls {function.__name__}()")
        return o.local(_NATIVE.call(function, *args))

    return run


def _on(method: str, *symbol: str) -> Callable[..., Any]:
    """Return the function that runs in the place of one like those of the module operator."""
    return lambda o, *operands: getattr(o, method)(*symbol, *operands)


def _apply(o: Observer, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a Function of a user's: its methods are observed, in the backward pass as well."""
    members: dict[str, Any] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    for name in ("forward", "backward", "setup_context", "jvp", "vjp"):
        owner, member = lookup.looked_up(o, cls, name)
        if type(member) is staticmethod and owner is not Function:
            c, function = o.match.constant, member.__func__
            o.match.require(
                f"{c(cls)}.{name} is {c(function)}", f"`{cls.__name__}.{name}` is another"
            )
            o.learn(function, c(function), name, True)
            members[name] = staticmethod(o.callback(function))
    made = type(cls.__name__, (cls,), members)
    return leaf(o, vars(Function)["apply"].__func__, (made, *args), kwargs)


def _read(how: str) -> Callable[..., Any]:
    """Return the function for a method that reads a tensor; values handed on are read later."""
    method = getattr(Tensor, how)

    def read(o: Observer, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        array = tensor._data if type(tensor) is Tensor else None
        if type(array) is np.ndarray and not (args or kwargs or o.refused):
            known = o.outer(tensor)
            if how == "tolist" and array.ndim:
                return o.note_read(array.tolist(), tensor, "tolist")
            if how != "numpy" and array.size == 1 and array.dtype.kind == "f":
                return o.note_read(array.item(), tensor, "item")
            if how == "numpy" and known is tensor._edge is array.base is None:
                return o.note_read(array, tensor, "numpy")
        return leaf(o, method, (tensor, *args), kwargs)

    return read


def _asked(name: str) -> Callable[..., Any]:
    """Return the function for a method of tensors whose answer no other guard settles."""
    method = getattr(Tensor, name)

    def ask(o: Observer, tensor: Any, *args: Any) -> Any:
        known, found = o.outer(tensor), method(tensor, *args)
        if known is not None and not args:
            o.read(found, f"{known.expression}.{name}()", f"{known.label}.{name}()", True)
        return found

    return ask


_HANDLERS: dict[Any, Callable[..., Any]] = {
    getattr: _getattr, isinstance: _asks(isinstance), issubclass: _asks(issubclass), type: _type,
    next: _next, id: _id, len: _length, callable: _callable, reversed: _reversed,
    iter: lambda o, *args: (
        o.local(iter(o.iterate(*args)))
        if len(args) == 1
        else _unknown(o, iter, args, {}, "iter() with a sentinel")
    ),
    float: lambda o, *args: (
        _HANDLERS[Tensor.item](o, *args)
        if is_a(args and args[0], Tensor)
        else _native(o, float, "r", args, {})
    ),
    str: lambda o, *args, **kwargs: (
        o.format(*args, "s", "")
        if len(args) == 1 and not kwargs
        else _native(o, str, "r", args, kwargs)
    ),
    hasattr: lambda o, value, name: _getattr(o, value, name, MISSING) is not MISSING,
    repr: lambda o, value: o.format(value, "r", ""),
    format: lambda o, value, spec="": o.format(value, "", spec),
    setattr: lambda o, f, name, value: o.set_attribute(f, _plain_name(o, name), value),
    delattr: lambda o, f, name: o.delete_attribute(f, _plain_name(o, name)),
    bool: lambda o, *args: truth(o, *args) if args else False,
    **{f: _of_frame(f) for f in LOOK_AT_FRAME},
    vars: lambda o, *args: o.attribute(*args, "__dict__") if args else _of_frame(vars)(o),
    staticmethod: lambda o, f: o.local(staticmethod(f)),
    operator.getitem: _on("item"), operator.setitem: _on("set_item"),
    operator.delitem: _on("delete_item"), operator.truth: _on("truth"),
    operator.contains: lambda o, a, b: o.compare("in", b, a),
    **{
        function: _on(method, symbol)
        for method, table in (
            ("binary", BINARY), ("inplace", INPLACE), ("unary", UNARY), ("compare", COMPARE)
        )
        for symbol, function in table.items()
        if type(function) is BuiltinFunctionType
    },
    vars(Function)["apply"].__func__: _apply,
    **{getattr(Tensor, how): _read(how) for how in ("item", "tolist", "numpy")},
    **{
        getattr(Tensor, name): _asked(name)
        for name in ("storage_offset", "is_inference", "is_pinned", "is_shared")
    },
}  # fmt: skip
_OF_KINDS = {
    functools.partial: _partial, functools._lru_cache_wrapper: _cached,
    operator.attrgetter: _getter, operator.itemgetter: _getter,
    BuiltinFunctionType: _builtin, MethodWrapperType: _builtin, MethodDescriptorType: _builtin,
    WrapperDescriptorType: _builtin,
}  # fmt: skip
