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
import inspect
import itertools
import linecache
import operator
import types
import warnings
from collections import deque, namedtuple
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from oneflow_lite.amp import GradScaler
from oneflow_lite.autograd.function import Function
from oneflow_lite.compiler import lookup, native, same as kinds
from oneflow_lite.compiler.deferred import PURE
from oneflow_lite.compiler.lookup import is_own_class, special
from oneflow_lite.compiler.same import CONTAINERS, MISSING, is_a, is_atom
from oneflow_lite.compiler.stand_ins import FunctionStandIn
from oneflow_lite.nn.hooks import EVERYWHERE
from oneflow_lite.nn.module import Module
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.optim.optimizer import Optimizer, number
from oneflow_lite.static.ir.location import is_own_code
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

Observer = Any  # which stands on this module

Args = tuple[Any, ...]
Words = dict[str, Any]

_REFLECTED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MODULE_CALL = vars(Module)["__call__"]
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
# Options that every update reads anew.
_STEP_OPTIONS = ("lr", "betas", "eps", "momentum", "dampening", "weight_decay")


# Own modules whose functions run as they are: they read their arguments alone.
_LEAVES = tuple(
    "functors kernels grad_funcs arrays ops tensors interpreter autograd static compiler optim "
    "nn.init nn.parameter nn.parallel.reducer distributed files.serialization "
    "interop.array_protocols array_api random extend errors "
    "amp.GradScaler".split()
)
_ENTERED = ("optim.lr_scheduler", "optim.swa_utils", "compiler.graph")
# Functions of this package with effects that no replay would repeat, on files or other processes.
_OWN_EFFECTS = frozenset(
    """Generator.get_state Generator.initial_seed Generator.manual_seed Generator.seed
    Generator.set_state fork_rng get_rng_state initial_seed load manual_seed register_functor
    register_grad_func register_kernel register_op save seed set_default_device set_default_dtype
    set_printoptions set_rng_state all_gather_object broadcast_object_list destroy_process_group
    gather_object init_process_group irecv isend monitored_barrier new_group recv_object_list
    scatter_object_list send_object_list set_debug_level replace_all_batch_norm_modules_""".split()
)


def call(o: Observer, f: Any, args: Args, kwargs: Words) -> Any:
    """Call anything, or return the Direct call of what is left to do."""
    if o.refused:  # nobody sees what a function does with a Symbol
        return native.direct(f, *o.plainly(args, kwargs))
    f = lookup.original(o, f)
    kind = type(f)
    if kind is MethodType:
        function = o.child(f, f.__func__, ".__func__", "")
        return call(o, function, (o.child(f, f.__self__, ".__self__", ""), *args), kwargs)
    if kind is FunctionType:
        return _function(o, f, args, kwargs)
    hashable = kind is types.BuiltinFunctionType or (is_a(f, type) and lookup.is_plain_class(f))
    pure = hashable and f in PURE and not kwargs
    if pure and (number := o.computed(f, "", *args)) is not MISSING:
        return number
    if kind not in _METHODS_IN_C or f.__name__ not in _PUTS:
        args, kwargs = o.plainly(args, kwargs)
    if hashable and (handler := _HANDLERS.get(f)) is not None:
        return handler(o, *args, **kwargs)
    if is_a(f, type):
        return _construct(o, f, args, kwargs)
    if (of_kind := _OF_KINDS.get(kind)) is not None:
        return of_kind(o, f, args, kwargs)
    if kind.__module__.startswith("numpy"):
        return _numpy(o, f, args, kwargs)
    if issubclass(kind, FunctionStandIn):  # a compiled function in this one
        inner = lookup.own_attribute(f, "__wrapped__")
        return call(o, o.child(f, inner, ".__wrapped__", ""), args, kwargs)
    member = lookup.method(o, f, "__call__")
    if type(member) is not FunctionType:
        return _unknown(o, f, args, kwargs)
    lookup.learned(o, member, "__call__")
    if member is not _MODULE_CALL or EVERYWHERE:
        return call(o, member, (f, *args), kwargs)
    known, fields = o.outer(f), lookup.fields_of(f) or {}
    if any([fields.get(name) for name in _HOOKS]):
        return call(o, member, (f, *args), kwargs)
    if known is not None:  # straight to forward(): nothing else waits
        own = o.match.bind(f"{known.expression}.__dict__")
        tests = [f"not {own}[{name!r}]" for name in _HOOKS]
        o.match.require(" and ".join(tests), f"whether {known.label} has hooks")
    return call(o, o.attribute(f, "forward"), args, kwargs)


# --- Functions ------------------------------------------------------------------------------------


def _unknown(o: Observer, f: Any, args: Args, kwargs: Words, name: str | None = None) -> Any:
    """Call a callable that nobody knows."""
    o.refuse(f"it calls {name or o.named(f)}")
    return native.direct(f, args, kwargs)


def _function(o: Observer, f: Any, args: Args, kwargs: Words) -> Any:
    code = f.__code__
    if len(args) > code.co_argcount:  # `*args` is a tuple of what is left
        args = args[: code.co_argcount] + tuple(map(o.plain, args[code.co_argcount :]))
    own = is_own_code(code) or _is_functor(f)
    of_numpy = (f.__module__ or "").partition(".")[0] == "numpy"
    if (own and is_leaf(f)) or of_numpy or f in _HANDLERS:
        args, kwargs = o.plainly(args, kwargs)
    if (handler := _HANDLERS.get(f)) is not None:
        return handler(o, *args, **kwargs)
    known = o.outer(f)
    if o.refused:
        return call(o, f, args, kwargs)
    if own and is_leaf(f):
        return leaf(o, f, args, kwargs)
    if known is not None:
        parts = (f.__defaults__, f.__kwdefaults__)
        if not own:
            e, c = known.expression, o.match.constant
            for what in ("__code__", "__defaults__", "__kwdefaults__"):
                o.match.require(f"{e}.{what} is {c(getattr(f, what))}", f"{known.label}.{what}")
        for part in filter(None, parts):
            o.contents(lookup.learned(o, part, f"the defaults of {known.label}"))
    if of_numpy:
        return _numpy(o, f, args, kwargs)
    if code.co_filename.startswith("<") and not linecache.getlines(code.co_filename):
        return _generated(o, f, *o.plainly(args, kwargs))
    run = o.entered(f)
    if o.refused or "unsupported" in run.__code__.co_names:  # some of it is not observed
        args, kwargs = o.plainly(args, kwargs)
    if run.__code__.co_flags & inspect.CO_GENERATOR:
        return o.local(run(*args, **kwargs))
    return native.Direct(run, *args, **kwargs)


def _is_functor(f: Any) -> bool:
    """Return whether a function is what `register_op` made of a user's kernel."""
    written = f.__code__.co_filename.startswith("<")
    return written and FUNCTORS.find(f.__name__, known_only=True) is f


def is_leaf(f: Any) -> bool:
    """Return whether a function of the package runs as it is."""
    name = f"{f.__module__}.{f.__qualname__}".removeprefix("oneflow_lite.")
    trusted = name.startswith(_LEAVES) and not name.startswith(_ENTERED)
    return (trusted and is_own_code(f.__code__)) or _is_functor(f) or _is_transform(f)


def _is_transform(f: Any) -> bool:
    """Return whether a function is of `flow.func`, or made by it; such bear names of users'.

    It has the functions that it calls observed; see `of_user`.
    """
    own = type(f) is FunctionType and is_own_code(f.__code__)
    return own and f.__globals__.get("__name__") == "oneflow_lite.func"


def _generated(o: Observer, f: Any, args: Args, kwargs: Words) -> Any:
    """Call a function without a source, which dataclass() or namedtuple() may have written."""
    made: Any = args[0] if args else None
    fields = lookup.looked_up(o, type(made), "__dataclass_fields__")[1]
    if f.__name__ == "__new__" and is_a(made, type) and lookup.is_namedtuple(made):
        return o.local(f(*args, **kwargs))
    if f.__name__ != "__init__" or fields is MISSING:
        return _unknown(o, f, args, kwargs, f"{f.__qualname__}(), which has no source")
    plain = (dataclasses.MISSING, *CONTAINERS)
    if not all(any(x.default_factory is each for each in plain) for x in fields.values()):
        return _unknown(o, f, args, kwargs, f"{f.__qualname__}() with a factory of yours")
    # It runs on a stand-in, whose attributes are then set on the object.
    calls: list[Args] = []
    stand_in = types.SimpleNamespace(__post_init__=lambda *given: calls.append(given))
    f(stand_in, *args[1:], **kwargs)
    del stand_in.__post_init__
    given = {id(value) for value in (*args, *kwargs.values())}
    is_frozen = lookup.static(type(made), "__dataclass_params__")[1].frozen
    for name, value in vars(stand_in).items():
        if fields[name].default_factory in CONTAINERS and id(value) not in given:
            o.local(value)
        (object.__setattr__ if is_frozen else o.set_attribute)(made, name, value)
    for given_to in calls:
        special(o, made, "__post_init__", *given_to)
    return None


def leaf(o: Observer, f: Any, args: Args, kwargs: Words) -> Any:
    """Call a function or class of the package; users' functions that it is given are observed."""
    owner, name = args[0] if args else None, f.__name__
    effect = type(f) is FunctionType and f.__code__.co_qualname in _OWN_EFFECTS
    if is_a(owner, Optimizer) and f.__module__.startswith("oneflow_lite.optim"):
        effect = name not in ("step", "zero_grad")
    elif is_a(owner, (Tensor, Optimizer)) and name.startswith("register_"):  # a hook
        effect = o.outer(owner) is not None
    if effect:
        return _unknown(o, f, args, kwargs, f"{f.__qualname__}()")
    if (made := lookup.of_arrays(o, f, args, kwargs)) is not MISSING:
        return made
    optimizers = [value for value in args if is_a(value, Optimizer)]
    if optimizers or (is_a(owner, Tensor) and name == "backward"):
        o.reads_gradients = True
    for optimizer in optimizers:
        _optimizer(o, optimizer, name)
    if is_a(owner, GradScaler):
        for each in vars(owner) if o.known(owner) else ():
            lookup.attribute(o, owner, each)
        o.scalers.append(owner)
    as_is = _is_transform(f)  # which calls nothing unobserved
    args = tuple([a if as_is and callable(a) else _given(o, a) for a in args])
    words = {k: a if as_is and callable(a) else _given(o, a) for k, a in kwargs.items()}
    return o.local(f(*args, **words))


def _given(o: Observer, value: Any) -> Any:
    """Return the value that a trusted leaf gets for an argument."""
    kind = type(value)
    if is_a(value, Module) and lookup.has_code(o, kind, "__array__"):
        o.refuse(f"it hands {o.named(value)} to the package, whose __array__ may be asked")
    if is_a(value, (Tensor, Optimizer, Module)) or kind.__module__.startswith("oneflow_lite"):
        o.outer(value)
    elif kind in (FunctionType, MethodType):
        plain = value.__func__ if kind is MethodType else value
        return value if is_own_code(plain.__code__) else o.callback(value)
    elif not (is_a(value, type) or o.settled(value)) and (
        kind.__module__ != "contextlib" or o.outer(value) is not None
    ):
        o.refuse(f"it hands {o.named(value)} to the package")
    return value


def _optimizer(o: Observer, optimizer: Any, name: str) -> None:
    """Take note of an optimizer's groups and state before one of its methods runs."""
    known = o.outer(optimizer)
    if known is None or o.refused:
        return
    groups = o.child(optimizer, optimizer.param_groups, ".param_groups")
    o.contents(groups)
    if name != "step":  # it asks for nothing but tensors
        for group in groups:
            o.contents(o.child(group, group["params"], "['params']"))
        return
    set_inside = {
        (i, k): o.written.get((id(group), "item", k), value)
        for i, group in enumerate(groups)
        for k, value in group.items()
        if (id(group), "item", k) in o.stores
    }
    if (before := o.optimizers.setdefault(id(optimizer), (optimizer, set_inside))[1]) != set_inside:
        o.refuse(f"it changes options of {known.label} between two steps")
    if before is not set_inside:
        return
    e, label, c = known.expression, known.label, o.match.constant
    if not is_leaf(lookup.method(o, optimizer, "step")):
        o.refuse(f"it hands {o.named(optimizer)} to the package, whose step() it calls")
    hooks = [hook for each in optimizer._hooks.values() for hook in each.values()]
    listed = f"h for d in {e}._hooks.values() for h in d.values()"
    _require_listed(o, listed, hooks, f"the hooks of {label}")
    for i, group in enumerate(groups):
        numbers = {k for k, value in group.items() if k in _STEP_OPTIONS and is_atom(value)}
        o.contents(group, numbers)
        for name, value in group.items():
            now, what = f"{c(group)}[{name!r}]", f"{label}.param_groups[{i}][{name!r}]"
            if (of := o.deferred(set_inside.get((i, name)))) is not None:
                now = of.expression or o.look_at(value)
            if name in numbers and (of is not None or (i, name) not in set_inside):
                o.match.require(f"type({now}) is {c(type(value))}", f"type({what})")
                o.match.require(f"(not {now}) is {not value}", f"not {what}")  # zero leaves it out
            elif not is_atom(value):
                o.contents(value)
    for tensor in optimizer.own_tensors():
        lookup.learned(o, tensor, f"the state of {label}")


def _require_listed(o: Observer, listed: str, objects: list[Any], label: str) -> None:
    """Guard which objects an expression goes through."""
    ids = o.match.constant([id(each) for each in objects])
    o.match.constant(objects)  # so that their ids stay theirs
    o.match.require(f"[id(each) for each in ({listed})] == {ids}", label)


def settle_optimizer(o: Observer, optimizer: Any) -> None:
    """Guard an optimizer's state as the call has left it: a first step makes it."""
    known, c = o.known(optimizer), o.match.constant
    e, state, label = known.expression, optimizer.state, f"{known.label}.state"
    o.match.same(f"{e}.state", state, label)
    states, tests = o.match.bind(f"[*{c(state)}.values()]"), []
    o.match.require(f"len({states}) == {len(state)}", f"len({label})")
    for i, each in enumerate(state.values()):
        # Every replay puts the tensors there that the call itself has put there.
        kept = {k: v for k, v in each.items() if (id(each), "item", k) not in o.stores}
        tests.append(f"{states}[{i}] is {c(each)}")
        tests += [f"{c(each)}[{lookup.in_guards(o, k)}] is {c(v)}" for k, v in kept.items()]
        tests += [f"len({c(each)}) == {len(each)}"] if len(kept) == len(each) else []
    o.match.require(" and ".join(tests) or "True", label)
    tensors = [t for _, options in optimizer._scalars.values() for t in options]
    listed = f"t for _, ts in {e}._scalars.values() for t in ts"
    _require_listed(o, listed, tensors, f"the options of {known.label}")


def _cached(o: Observer, f: Any, args: Args, kwargs: Words) -> Any:
    """Call a cache, of lru_cache() or singledispatch(): it gives one object for equal arguments."""
    known, given = o.outer(f), [lookup.check_key(o, x) for x in (*args, *kwargs.values())]
    held = [x for x in given if is_atom(x) or getattr(o.known(x), "held", False)]
    if known is None or o.refused or len(held) < len(given):
        return _unknown(o, f, args, kwargs, f"{f.__name__}(), a cache, with what may change")
    missed = f.cache_info().misses
    try:
        result = f(*args, **kwargs)
    finally:
        if f.cache_info().misses > missed:
            o.refuse(f"{known.label}() was not in its cache")
    if not o.refused:
        where = f"{known.expression}(*{o.match.constant(args)}, **{o.match.constant(kwargs)})"
        o.read(result, where, f"{known.label}()", True)
    return result


def _partial(o: Observer, f: Any, args: Args, kwargs: Words) -> Any:
    function = o.child(f, f.func, ".func", "")
    o.contents(o.child(f, f.args, ".args", ".args"))
    o.contents(o.child(f, f.keywords, ".keywords", ".keywords"))
    return call(o, function, (*f.args, *args), {**f.keywords, **kwargs})


def _getter(o: Observer, f: Any, args: Args, kwargs: Words) -> Any:
    """Apply an itemgetter of one key that the call made."""
    keys = f.__reduce__()[1]
    if o.outer(f) is not None or len(args) != 1 or len(keys) > 1:
        return _unknown(o, f, args, kwargs)
    return o.item(*args, *keys)


# --- Classes --------------------------------------------------------------------------------------


def _construct(o: Observer, cls: type, args: Args, kwargs: Words) -> Any:
    """Make an object of a class."""
    if cls.__module__.startswith("oneflow_lite"):
        if issubclass(cls, Optimizer):
            o.refuse("it makes an optimizer")
        return leaf(o, cls, args, kwargs)
    o.outer(cls)
    made_by = lookup.looked_up(o, type(cls), "__call__")[0]
    asked = lookup.looked_up(o, cls, "_missing_")[0] if made_by is enum.EnumMeta else None
    if asked is enum.Enum and len(args) == 1 and is_atom(args):  # it looks up a member
        return cls(*args, **kwargs)
    if made_by is not type or issubclass(cls, type):
        o.refuse(f"it makes a {cls.__name__}, which is a class or whose metaclass has a __call__")
    if o.refused:
        return native.direct(cls, args, kwargs)
    owner, new = lookup.looked_up(o, cls, "__new__")
    init = lookup.looked_up(o, cls, "__init__")[1]
    if type(new) is staticmethod:
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
    return next(_LETTERS[c] for c in cls.__mro__ if c in _LETTERS)


# --- Builtins -------------------------------------------------------------------------------------

# How C code treats each argument; the last letter stands for all further arguments, too.
#   r  reads it through and through    h  holds it     k  hashes it, and compares it with others
#   i  goes through it: its elements are held; read where it is R, hashed (K), gone through (I)
#   c  calls it                        q  calls it, and reads what that returns
#   m  takes its items, as dict() does: it is a mapping, or goes through pairs (p)
# Given a callback ("key", or c or q), it hands on the values that it would read.
_LETTERS = {
    getattr(importlib.import_module(module or "builtins"), name): letters
    for letters, names in {
        "r": "object int float complex bool str type abs ascii bin bytearray bytes chr divmod hex "
        "memoryview oct ord pow range round slice operator.index operator.concat operator.countOf "
        "operator.indexOf itertools.count numpy.dtype",
        "h": "types.MethodType functools.partial staticmethod BaseException operator.attrgetter "
        "operator.itemgetter",
        "i": "list tuple zip itertools.product itertools.cycle itertools.pairwise "
        "itertools.zip_longest",
        "ir": "enumerate iter collections.deque itertools.islice itertools.tee "
        "itertools.permutations itertools.combinations itertools.combinations_with_replacement",
        "Rr": "sum", "R": "all any sorted", "x": "max min", "K": "set frozenset",
        "m": "dict collections.OrderedDict", "hm": "collections.defaultdict", "ci": "map",
        "cI": "itertools.starmap", "cih": "functools.reduce", "qR": "filter",
        "qi": "itertools.takewhile itertools.dropwhile itertools.filterfalse",
        "Rc": "itertools.accumulate", "Rq": "itertools.groupby", "iR": "itertools.compress",
        "hr": "itertools.repeat",
    }.items()
    for module, _, name in [each.rpartition(".") for each in names.split()]
}  # fmt: skip
_ELEMENTS = {"R": "r", "K": "k", "I": "i", "m": "p"}
_WORDS = {"key": "q", "default": "h", "initial": "h", "fillvalue": "h", "func": "c"}
# Of methods of containers; "!" changes a container, "=" compares its elements.
_METHODS = {
    name: letters
    for letters, names in {
        "r": "copy keys values items __iter__ __reversed__ __len__",
        "=r": "index count __eq__ __ne__ __lt__ __le__ __gt__ __ge__ isdisjoint issubset "
        "issuperset union intersection difference symmetric_difference __contains__ __or__ __and__ "
        "__sub__ __xor__ __add__ __mul__ __rmul__",
        "!h": "append appendleft __init__",
        "!i": "extend extendleft list.__iadd__ deque.__iadd__ list.__init__ deque.__init__",
        "!rh": "insert",
        "!r": "rotate pop popleft reverse clear popitem __delitem__ __imul__ __iand__ __isub__ "
        "__ixor__ set.__ior__",
        "!=r": "remove", "!=q": "sort", "!k": "add discard set.remove move_to_end",
        "!kh": "setdefault dict.pop OrderedDict.pop defaultdict.pop",
        "!m": "update dict.__init__ OrderedDict.__init__ __ior__",
        "!K": "set.update set.__init__ difference_update intersection_update",
        "h": "tuple.__init__", "!hm": "defaultdict.__init__",
    }.items()
    for name in names.split()
}  # fmt: skip
# Those that only put elements into a list, deque or set: one, or all of a container.
_PUTS = frozenset("append add extend update __iadd__".split())
_METHODS_IN_C = (types.BuiltinFunctionType, types.MethodWrapperType)
_OF_CLASSES = {"fromkeys": "Kh", "from_iterable": "I", "__init_subclass__": "h"}


def observed(o: Observer, value: Any, *names: str) -> Any:
    """Return the object that C code gets for a value that it asks by the first of some methods.

    Where that special method is a user's, the object is a stand-in, whose method is observed.
    """
    for name in () if o.refused or is_atom(value) or is_a(value, Tensor) else names:
        if _is_users(o, value, name):
            return _stand_in(value, {name: partial(special, o, value, name)})
        if lookup.static(type(value), name)[0] not in (None, object):
            break
    return value


def _stand_in(value: Any, methods: dict[str, Any]) -> Any:
    """Return an object with these methods, whose class is called like that of a value."""
    members = {name: staticmethod(method) for name, method in methods.items()}
    return type(type(value).__name__, (), {"__iter__": lambda self: self, **members})()


def _builtin(o: Observer, f: Any, args: Args, kwargs: Words) -> Any:
    """Call a C function, or a C method of an object."""
    if type(f) in (types.MethodDescriptorType, types.WrapperDescriptorType):
        if not args or not is_a(args[0], f.__objclass__):
            return f(*args, **kwargs)  # which raises
        return _builtin(o, f.__get__(args[0]), args[1:], kwargs)
    name, owner, letters = f.__name__, f.__self__, None
    is_function = owner is None or is_a(owner, types.ModuleType)
    if name == "__setattr__" and len(args) == 2:
        return lookup.raw_set(o, owner, *args)
    base: Any = next((b for b in kinds.KINDS if is_a(owner, b)), None)
    if base is not None:
        return _of_container(o, base, f, args, kwargs)
    if is_function:
        module = f.__module__ or getattr(owner, "__name__", "")
        if module.partition(".")[0] == "numpy":
            return _numpy(o, f, args, kwargs)
        letters = _LETTERS.get(f, "r" if module in ("math", "cmath") else None)
    elif name == "__new__" and args and is_a(args[0], type):
        letters = "h" + _letters(owner)
    elif is_a(owner, type):
        letters = _OF_CLASSES.get(name)
    elif is_atom(owner):
        letters = "i" if name == "join" else "r"
        given = (*args, *kwargs.values()) if name in ("format", "format_map") else ()
        if not all([o.settled(each, written=True) for each in given]):
            letters = None
    elif type(owner) is np.ndarray and o.known(owner) is not None:
        return _numpy(o, getattr(np.ndarray, name), (owner, *args), kwargs)
    elif o.known(owner) is not None and o.outer(owner) is None:
        if name in ("__init__", "__init_subclass__", "__enter__", "__exit__"):
            letters = _letters(f.__objclass__)
        elif is_a(owner, BaseException) or kinds.is_stream(type(owner)):
            letters = "r"
    if letters is None:
        of = "" if is_function else f" of {o.named(owner)}"
        return _unknown(o, f, args, kwargs, f"{name}(){of}")
    return _native(o, f, letters, args, kwargs)


def _native(o: Observer, f: Any, letters: str, args: Args, kwargs: Words) -> Any:
    """Call C code that does with its arguments what letters say, and nothing else."""
    holds = "m" in letters or letters == "h"  # a word, whatever it is called
    if letters == "x":
        letters = "R" if len(args) == 1 else "r"
    callbacks = [kwargs.get("key"), kwargs.get("func")]
    callbacks += [a for a, letter in zip(args, letters, strict=False) if letter in "cq"]
    if any(callback is not None for callback in callbacks):
        letters = letters.replace("R", "i").replace("r", "h")
    each = letters.ljust(len(args), letters[-1])
    given = [_passed(o, f, letter, value) for letter, value in zip(each, args, strict=False)]
    words = {k: _passed(o, f, "h" if holds else _WORDS.get(k, "r"), kwargs[k]) for k in kwargs}
    return o.local(f(*given, **words))


def _passed(o: Observer, f: Any, letter: str, value: Any) -> Any:
    """Return the value that C code gets for an argument; guard the parts that it reads."""
    if letter == "h" or o.refused or (value is None and letter in "cq"):
        return value
    if letter not in "iI":
        o.look_at(value, inside=True)
    if letter in "cq":
        return o.callback(value, reads=letter == "q")
    if letter == "k":
        return lookup.check_key(o, value)
    if letter == "r":
        if not (kinds.is_stream(type(value)) or o.settled(value)):
            o.refuse(f"it calls {f.__name__}() of {o.named(value)}")
        return lookup.asked(o, value, f.__name__, *"float complex index add radd".split())
    if letter == "K" and (is_a(value, kinds.SETS) or type(value) is dict):  # as it is
        lookup.check_keys(o, value)
        o.contents(value)
    elif letter == "p" and type(value) in (tuple, list):
        lookup.check_key(o, value[0] if value else None)
    elif letter == "m" and type(value) in kinds.MAPPINGS:
        o.contents(value)
    elif letter == "p" or (letter == "m" and lookup.looked_up(o, type(value), "keys")[0]):
        o.refuse(f"it takes the items of {o.named(value)}")
    elif not is_atom(value):
        values, inner = o.iterate(value), _ELEMENTS.get(letter)
        return values if inner is None else (_passed(o, f, inner, each) for each in values)
    return value


def _of_container(o: Observer, base: Any, f: Any, args: Args, kwargs: Words) -> Any:
    """Call a method of a built-in container."""
    name, owner = f.__name__, f.__self__
    known, given = o.known(owner), args if name in ("append", "add") else (*args, None)[0]
    puts = name in _PUTS and type(owner) in (list, deque, set) and len(args) == 1 and not kwargs
    if puts and known is not None and known.expression and type(given) in CONTAINERS:
        keeps = lookup.check_key if type(owner) is set else lambda _, x: x
        o.grow(owner, [keeps(o, x) for x in (args if given is args else o.iterate(given))])
        return owner if name == "__iadd__" else None
    args, kwargs = o.plainly(args, kwargs)
    known = o.outer(owner)
    if name == "__getitem__":
        return lookup.item_of(o, base, owner, *args)
    if name == "__setitem__":
        return lookup.set_item_of(o, base, owner, *args)
    if name == "get" and args:
        there = lookup.has_key(o, owner, args[0])
        if not o.refused:
            return lookup.item_of(o, base, owner, args[0]) if there else (*args[1:], None)[0]
    letters = _METHODS.get(f"{base.__name__}.{name}", _METHODS.get(name, ""))
    if letters[:1] == "!" and known is not None:
        o.refuse(f"it changes {known.label} by {name}()")
    elif letters[:1] != "!":
        o.contents(owner)
    read = "=" in letters and kwargs.get("key") is None
    if not letters or (read and not o.settled(owner)):
        return _unknown(o, f, args, kwargs, f"{name}() of {o.named(owner)}")
    return _native(o, f, letters.lstrip("!="), args, kwargs)


def _numpy(o: Observer, f: Any, args: Args, kwargs: Words) -> Any:
    """Call a function of NumPy: of numbers, of arrays that the call made, and of tensors."""
    if (made := lookup.of_arrays(o, f, args, kwargs)) is not MISSING:
        return made
    module, given = getattr(f, "__module__", None) or type(f).__module__, [*args, *kwargs.values()]
    calls = any(is_a(value, (FunctionType, MethodType, partial)) for value in given)
    if calls or "random" in str(module) or not all(map(o.settled, given)):
        o.refuse(f"it calls {getattr(f, '__name__', type(f).__name__)}() of NumPy")
    return o.local(f(*args, **kwargs))


# --- Operators and decisions ----------------------------------------------------------------------


def _is_users(o: Observer, value: Any, name: str) -> bool:
    """Return whether a special method is a Python function that is none of the package's."""
    member = lookup.looked_up(o, type(value), name)[1]
    of_numpy = type(value).__module__.partition(".")[0] == "numpy"
    if type(member) is not FunctionType or of_numpy:
        return False
    return not (is_a(value, Tensor) and is_own_code(member.__code__))


def _answer(o: Observer, a: Any, b: Any, names: list[str], always: bool = False) -> Any:
    """Return the answer of the first special method that knows an operation; MISSING for C code.

    The last of the names is that of the right operand's method, which is asked first where it is of
    a subclass that has one of its own; for comparisons `always` so.
    """
    ways = [(a, name, b) for name in names[:-1]]
    comes_first = type(a) is not type(b) and issubclass(type(b), type(a))
    if comes_first and not always:
        one, other = [lookup.static(type(x), names[-1])[1] for x in (a, b)]
        comes_first = one is not other
    if always or type(a) is not type(b):
        ways.insert(len(ways) - comes_first, (b, names[-1], a))
    for value, name, other in ways:
        if o.refused:
            break
        if is_atom(value):
            kind, numbers = type(value), (int, float)
            answers = name == "__mod__" and kind in (str, bytes)
            if kind in numbers and is_a(other, numbers) and hasattr(kind, name):
                answers = getattr(kind, name)(value, other) is not NotImplemented
            if answers:  # C code, whatever methods the other operand has
                break
            continue
        if _is_users(o, value, name):
            answer = special(o, value, name, other)
        elif is_a(value, Tensor) and not o.settled(other):
            answer = getattr(Tensor, name, lambda *_: NotImplemented)(value, other)
            if answer is not NotImplemented:
                o.refuse(f"it applies {name} to a Tensor and {o.named(other)}")
        else:
            continue
        if answer is not NotImplemented:
            return answer
    return MISSING


def unary(o: Observer, op: str, value: Any) -> Any:
    """Apply a unary operator."""
    if op == "not":
        return not truth(o, value)
    name = f"__{native.UNARY[op].__name__}__"
    if not o.settled(value) or (is_a(value, Tensor) and _is_users(o, value, name)):
        return special(o, value, name)
    return o.local(native.UNARY[op](value))


def binary(o: Observer, op: str, a: Any, b: Any, inplace: bool = False) -> Any:
    """Apply a binary operator by Python's rules."""
    operate = (native.INPLACE if inplace else native.BINARY)[op]
    if op == "%" and type(a) in (str, bytes) and not o.settled(b, written=True):
        o.refuse(f"it writes {o.named(b)} into a string")
    if is_atom(a) and is_atom(b):
        return operate(a, b)
    name = native.BINARY[op].__name__.strip("_")
    if (made := lookup.of_arrays(o, operate, (a, b), {})) is not MISSING:
        return made
    answer = _answer(o, a, b, [f"__i{name}__", f"__{name}__", f"__r{name}__"][not inplace :])
    if answer is not MISSING:
        return answer
    changed = lookup.static(type(a), f"__i{name}__")[1]
    if inplace and type(changed) is types.WrapperDescriptorType and type(a) in CONTAINERS:
        answer = o.call(changed, a, b)
        if answer is not NotImplemented:
            return answer
    if type(a) in CONTAINERS and type(b) in CONTAINERS and op in "+|&-^":
        for each in (a, b):
            o.contents(each)
            if op != "+":
                lookup.check_keys(o, each)
    elif not (o.settled(a) and o.settled(b)) and not (
        op == "*" and type(a) in CONTAINERS and is_atom(b)
    ):
        o.refuse(f"it applies {op} to {o.named(a)} and {o.named(b)}")
    return o.local(operate(a, b))


inplace = partial(binary, inplace=True)


def compare(o: Observer, op: str, a: Any, b: Any) -> Any:
    """Compare two values."""
    if op in ("is", "is not"):
        return identical(o, a, b) is (op == "is")
    if op in ("in", "not in"):
        return contains(o, b, a) is (op == "in")
    if is_atom(a) and is_atom(b):
        return native.COMPARE[op](a, b)
    names = [f"__{native.COMPARE[each].__name__}__" for each in (op, _REFLECTED.get(op, op))]
    answer = _answer(o, a, b, names, always=True)
    if answer is not MISSING:
        return answer
    if op in ("==", "!=") and not o.refused:
        kinds = [type(each) for each in (a, b) if not is_atom(each)]
        if all([lookup.looked_up(o, kind, "__eq__")[0] is object for kind in kinds]):
            return identical(o, a, b) is (op == "==")
    if not (o.settled(a) and o.settled(b)):
        o.refuse(f"it compares {o.named(a)} with {o.named(b)}")
    return o.local(native.COMPARE[op](a, b))


def identical(o: Observer, a: Any, b: Any) -> bool:
    """Tell whether two values are one object; where that may change, it is guarded."""
    if is_atom(a) or is_atom(b):
        if a is not b and type(a) is type(b) and a == b:
            o.refuse("it compares the identity of equal numbers or strings")
        return a is b
    one, other = o.outer(a), o.outer(b)
    if one is not None and other is not None and not (one.held and other.held):
        is_ = "is" if a is b else "is not"
        label = f"whether {one.label} is {other.label}"
        o.match.require(f"{one.expression} {is_} {other.expression}", label)
    if any(s.grad is x for s in o.states.values() for x in (a, b)):
        o.refuse("it compares a gradient by identity")
    return a is b


def contains(o: Observer, container: Any, value: Any) -> bool:
    """Tell whether a container has a value."""
    owner = lookup.looked_up(o, type(container), "__contains__")[0]
    if owner in (*kinds.MAPPINGS, *kinds.SETS):
        return lookup.has_key(o, container, value) or (o.refused and value in container)
    asked = observed(o, container, "__contains__")
    if asked is not container and type(container) is not enum.EnumMeta:
        return truth(o, special(o, container, "__contains__", value))
    if is_atom(container) or is_a(container, (Tensor, type, np.ndarray)) or o.refused:
        if not (o.settled(container) and o.settled(value)):
            o.refuse(f"it looks for {o.named(value)} in {o.named(container)}")
        return value in container
    if owner in CONTAINERS:
        o.contents(container)
        elements: Any = vars(owner)["__iter__"](container)
    else:
        elements = o.iterate(container)
    for each in elements:
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
    lookup.check_array(o, value)
    varies = any(lookup.static(type(value), name)[0] is not None for name in names)
    if varies and asked is value and known is not None and not is_a(value, (Tensor, np.ndarray)):
        test = f"{'' if value else 'not '}{known.expression}"
        o.match.require(test, f"bool({known.label})")
    return bool(asked)


def iterate(o: Observer, value: Any) -> Any:
    """Return an iterator over the elements of a value."""
    if is_atom(value) or type(value) is enum.EnumMeta:
        return value
    if is_a(value, Tensor):
        o.outer(value)
        return iter([o.local(each) for each in lookup.asked(o, value, "iter")])
    owner = lookup.looked_up(o, type(value), "__iter__")[0]
    if owner in CONTAINERS:
        o.contents(value)
        return value if o.outer(value) is None else vars(owner)["__iter__"](value)
    if _is_users(o, value, "__iter__"):
        iterator = special(o, value, "__iter__")
        if iterator is not value:
            return iterate(o, iterator)
    asked = observed(o, value, "__next__")
    if asked is not value:
        return o.local(iter(asked))
    if o.outer(value) is not None or (owner is None and not is_a(value, np.ndarray)):
        o.refuse(f"it goes through {o.named(value)}")
    return value


def text(o: Observer, value: Any, conversion: str) -> Any:
    """Return the object whose text is written into a string for a value."""
    names = ("__format__", "__str__", "__repr__")[{"": 0, "s": 1}.get(conversion, 2) :]
    asked = observed(o, value, *names)
    if is_a(value, Tensor):
        o.refuse("it writes a tensor's values into a string")
    elif asked is value and not o.settled(value, written=True):
        o.refuse(f"it writes {o.named(value)} into a string")
    return asked


def context(o: Observer, manager: Any) -> Any:
    """Return the manager that a `with` statement enters in the place of another one."""

    def leave(kind: Any, error: Any, traceback: Any) -> bool:
        o.exception()
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
        if type(manager).__name__ == "_GeneratorContextManager":
            o.managed.add(manager.gen.gi_code)
        enter = partial(special, o, manager, "__enter__")
        return _stand_in(manager, {"__enter__": enter, "__exit__": leave})
    else:
        o.refuse(f"it enters {o.named(manager)}")
    return manager


# --- Builtins with ways of their own --------------------------------------------------------------


def _getattr(o: Observer, value: Any, name: str, *default: Any) -> Any:
    try:
        return o.attribute(value, _passed(o, getattr, "r", name))
    except AttributeError:
        if not default:
            raise
        return default[0]


def _length(o: Observer, value: Any) -> int:
    asked, owner = observed(o, value, "__len__"), lookup.looked_up(o, type(value), "__len__")[0]
    if asked is value and owner is not None:
        o.guard_length(value, owner)
    return len(asked)


def _reversed(o: Observer, value: Any) -> Any:
    asked = observed(o, value, "__reversed__")
    missing = lookup.looked_up(o, type(value), "__reversed__")[0] is None
    if missing and _is_users(o, value, "__getitem__"):
        return o.local(o.item(value, i) for i in range(_length(o, value))[::-1])
    if asked is value:
        o.contents(value)
    return o.local(reversed(asked))


def _asks(ask: Any, o: Observer, value: Any, kind: Any) -> bool:
    """Run in the place of isinstance() or issubclass()."""
    meta = type(kind)
    if meta is tuple:
        return any(_asks(ask, o, value, each) for each in kind)
    plain = meta.__module__.partition(".")[0] in ("oneflow_lite", "enum", "typing", "types")
    how = f"__{ask.__name__.removeprefix('is')}check__"
    if meta is abc.ABCMeta:  # classes may be registered with it
        token = o.match.constant(abc.get_cache_token)
        o.match.require(
            f"{token}() == {abc.get_cache_token()!r}",
            "the count of registrations with abstract classes",
        )
    elif not plain and lookup.looked_up(o, meta, how)[0] not in (None, type):
        o.refuse(f"it asks {meta.__name__} what its classes are")
    follows = is_a(kind, type) and lookup.static(kind, "_is_protocol")[1] is True
    owners: Any = [lookup.static(type(value), x)[0] for x in ("__class__", "__getattribute__")]
    tells = any(lookup.may_change(owner) and not is_own_class(owner) for owner in owners)
    if follows or (ask is isinstance and tells):
        o.refuse(f"it asks whether {o.named(value)} is, or does as, {o.named(kind)}")
    cls = value if ask is issubclass else lookup.class_of(o, value)
    if is_a(cls, type):
        lookup.require_bases(o, cls)
    return bool(ask(value, kind))


def _next(o: Observer, iterator: Any, *default: Any) -> Any:
    asked = observed(o, iterator, "__next__")
    if asked is iterator and o.outer(iterator) is not None:
        o.refuse(f"it takes the next element of {o.named(iterator)}")
    return next(asked, *default)


def _id(o: Observer, value: Any) -> int:
    known = o.known(value)
    if not is_atom(value) and (known is None or not known.held):
        o.refuse(f"it asks for the id() of {o.named(value)}")
    return id(value)


def _on(method: str, *symbol: str) -> Callable[..., Any]:
    """Return the function that runs in the place of a function of the module operator."""
    return lambda o, *operands: getattr(o, method)(*symbol, *operands)


def _warn(o: Observer, *args: Any, **kwargs: Any) -> Any:
    """Give a warning of a user's, as each replay will."""
    words = dict(zip(("message", "category", "stacklevel"), args, strict=False), **kwargs)
    kind, ways = words.get("category", Warning), ("__new__", "__init__", "__str__")
    plain = kind is None or (type(kind) is type and not lookup.has_code(o, kind, *ways))
    if type(words.get("message")) is str and plain and len(words) == len(args) + len(kwargs):
        return warn_caller(**words)
    return _unknown(o, warnings.warn, args, kwargs, "warn()")


def _apply(o: Observer, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a Function of a user's: its methods are observed, in the backward pass as well."""
    members: dict[str, Any] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    for name in ("forward", "backward", "setup_context", "jvp", "vjp"):
        owner, member = lookup.looked_up(o, cls, name)
        if type(member) is staticmethod and owner is not Function:
            members[name] = staticmethod(o.callback(lookup.learned(o, member.__func__, name)))
    made = type(cls.__name__, (cls,), members)
    return leaf(o, vars(Function)["apply"].__func__, (made, *args), kwargs)


def _read(how: str, o: Observer, tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a method that reads a tensor; a value that is only handed on is read later."""
    array = tensor._data if type(tensor) is Tensor else None
    if type(array) is np.ndarray and not (args or kwargs or o.refused):
        known = o.outer(tensor)
        if how == "tolist" and array.ndim:
            return o.note_read(array.tolist(), tensor, "tolist")
        if how != "numpy" and array.size == 1 and array.dtype.kind in "fiu":
            return o.note_read(array.item(), tensor, "item")
        if how == "numpy" and known is tensor._edge is array.base is None:
            return o.note_read(array, tensor, "numpy")
    return leaf(o, getattr(Tensor, how), (tensor, *args), kwargs)


_HANDLERS: dict[Any, Callable[..., Any]] = {
    getattr: _getattr, isinstance: partial(_asks, isinstance),
    issubclass: partial(_asks, issubclass),
    type: lambda o, *args, **kwargs: (
        lookup.class_of(o, *args) if len(args) == 1 else _construct(o, type, args, kwargs)
    ),
    itertools.chain: lambda o, *each: _native(o, itertools.chain.from_iterable, "I", (each,), {}),
    next: _next, id: _id, len: _length, reversed: _reversed,
    callable: lambda o, value: lookup.method(o, value, "__call__") is not MISSING,
    float: lambda o, *args: (
        _HANDLERS[Tensor.item](o, lookup.asked(o, *args, "float"))
        if args and type(args[0]) is Tensor and args[0].numel() == 1 and args[0].is_floating_point()
        else _native(o, float, "r", args, {})
    ),
    str: lambda o, *args, **kwargs: (
        o.format(*args, "s", "") if len(args) == 1 and not kwargs
        else _native(o, str, "r", args, kwargs)
    ),
    hasattr: lambda o, value, name: _getattr(o, value, name, MISSING) is not MISSING,
    repr: lambda o, value: o.format(value, "r", ""),
    format: lambda o, value, spec="": o.format(value, "", spec),
    setattr: lambda o, f, name, value: o.set_attribute(f, _passed(o, setattr, "r", name), value),
    delattr: lambda o, f, name: o.delete_attribute(f, _passed(o, delattr, "r", name)),
    bool: lambda o, *args: truth(o, *args) if args else False,
    super: lambda o, *args: native.Direct(super, *args),  # it looks at its caller's frame
    namedtuple: lambda o, *args, **kwargs: _unknown(o, namedtuple, args, kwargs, "namedtuple()"),
    vars: lambda o, *args: o.attribute(*args, "__dict__") if args else _builtin(o, vars, (), {}),
    **{
        function: _on(method, symbol)
        for method in ("binary", "inplace", "unary", "compare")
        for symbol, function in getattr(native, method.upper()).items()
        if type(function) is types.BuiltinFunctionType
    },
    vars(Function)["apply"].__func__: _apply, warnings.warn: _warn,
    number: lambda o, x: _HANDLERS[Tensor.item](o, x) if is_a(x, Tensor) else x,
    **{getattr(Tensor, how): partial(_read, how) for how in ("item", "tolist", "numpy")},
}  # fmt: skip
_OF_KINDS: dict[Any, Callable[..., Any]] = {
    partial: _partial, functools._lru_cache_wrapper: _cached, operator.itemgetter: _getter,
    types.BuiltinFunctionType: _builtin, types.MethodWrapperType: _builtin,
    types.MethodDescriptorType: _builtin, types.WrapperDescriptorType: _builtin,
    type(getattr(np.random.rand, "__func__", None)):  # a function of Cython
        lambda o, f, args, kwargs: _unknown(o, f, args, kwargs, f"{f.__name__}()"),
}  # fmt: skip
