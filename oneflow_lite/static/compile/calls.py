"""What a call of a recorded function does: entered, left to itself, a pure builtin, or refused.

Users' functions, and those of installed packages and of Python's library that are written in
Python, are entered. The package's functors and its engine are trusted leaves. A builtin stands in
a table here that says what it reads, or the call is refused by its name.
"""

from __future__ import annotations

import abc
import builtins
import collections
import dataclasses
import enum
import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from types import (
    BuiltinFunctionType,
    FunctionType,
    GeneratorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
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
from oneflow_lite.static.compile.native import Native
from oneflow_lite.static.compile.rewrite import is_rewritten
from oneflow_lite.static.compile.same import CONTAINERS, is_a, is_atom, told
from oneflow_lite.static.compile.stand_ins import FunctionStandIn
from oneflow_lite.static.compile.trusted import has_own_effect, origin
from oneflow_lite.tensor import Tensor

Observer = Any  # which stands on this module

UNARY = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}
_BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul", "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
_ORDER = {
    "<": ("__lt__", "__gt__"), "<=": ("__le__", "__ge__"), ">": ("__gt__", "__lt__"),
    ">=": ("__ge__", "__le__"), "==": ("__eq__", "__eq__"), "!=": ("__ne__", "__ne__"),
}  # fmt: skip
_NATIVE = Native()
_SINGLE_DISPATCH = functools.singledispatch(lambda value: None).__code__  # type: ignore[attr-defined]
# Options that every update reads anew; where True, zero means that an input is left out.
_STEP_OPTIONS = {
    "lr": False, "betas": False, "eps": False, "momentum": True, "dampening": True,
    "weight_decay": True,
}  # fmt: skip

# Own modules whose functions run as they are: they read nothing but what they are given.
_LEAVES = tuple(
    f"oneflow_lite.{name}"
    for name in """
    functors kernels grad_funcs autograd tensor interpreter methods dtype device size storage
    registry random array_protocols array_api plain_functions memory_format complex creation
    op_expr extend inplace views errors optim nn.init nn.parameter spellings rng static
    serialization
    """.split()
)
_ASKED = ("storage_offset", "is_inference", "is_pinned", "is_shared")  # methods of tensors
_ENTERED = (
    "oneflow_lite.optim.lr_scheduler",
    "oneflow_lite.optim.swa_utils",
    "oneflow_lite.static.graph",
)
# Builtins that answer with nothing but what they are given, once that is read through and through.
_PURE = {
    vars(builtins)[name]
    for name in """
    abs all any ascii bin bool bytearray bytes chr complex dict divmod enumerate filter float
    frozenset hex int len list map max min next oct ord pow range reversed round set slice sorted
    str sum tuple zip memoryview
    """.split()
} | {
    collections.OrderedDict, collections.deque, collections.defaultdict, collections.Counter,
    functools.partial, functools.reduce, operator.attrgetter, operator.itemgetter,
}  # fmt: skip
_PURE_MODULES = ("math", "cmath", "_operator", "itertools")
_CALLING = (
    map,
    filter,
    sorted,
    max,
    min,
    functools.reduce,
    itertools.accumulate,
    itertools.starmap,
)
_READERS = frozenset(
    """
    get items keys values copy index count __contains__ __len__ __getitem__ __iter__ __eq__ __ne__
    __reversed__ isdisjoint issubset issuperset union intersection difference symmetric_difference
    __or__ __and__ __sub__ __xor__ __add__ __mul__
    """.split()
)


def call(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call anything."""
    f = lookup.original(o, f)
    kind = type(f)
    if o.read_out and kind is not FunctionType and kind is not MethodType and f is not list.append:
        o.look_at(*args, *kwargs.values())
    if kind is FunctionType:
        return _function(o, f, args, kwargs)
    if kind is MethodType:
        function = o.child(f, f.__func__, ".__func__", "")
        return call(o, function, (o.child(f, f.__self__, ".__self__", ""), *args), kwargs)
    handler = _HANDLERS.get(f) if _hashable(f) else None
    if handler is not None:
        return handler(o, *args, **kwargs)
    if is_a(f, type):
        return _construct(o, f, args, kwargs)
    if kind is functools.partial:
        return _partial(o, f, args, kwargs)
    if kind in (
        BuiltinFunctionType,
        MethodWrapperType,
        MethodDescriptorType,
        WrapperDescriptorType,
    ):
        return _builtin(o, f, args, kwargs)
    if is_a(f, np.ufunc) or type(f).__module__.startswith("numpy"):
        return _numpy(o, f, args, kwargs)
    if kind is functools._lru_cache_wrapper:
        return _cached(o, f, args, kwargs)
    if issubclass(kind, FunctionStandIn):  # a compiled function in this one
        inner = lookup.own_attribute(f, "__wrapped__")
        return o.call(o.child(f, inner, ".__wrapped__", ""), *args, **kwargs)
    if is_a(f, Module):
        return _module(o, f, args, kwargs)
    if kind in (operator.attrgetter, operator.itemgetter) and o.outer(f) is None:
        return _getter(o, f, *args)
    member = lookup.method(o, f, "__call__")
    if type(member) is FunctionType:
        o.learn(member, o.match.constant(member), "__call__", True)
        return o.call(member, f, *args, **kwargs)
    if not is_atom(f):
        o.refuse(f"it calls {told(f)}")
    return f(*args, **kwargs)


def _hashable(f: Any) -> bool:
    return is_a(f, (BuiltinFunctionType, type, FunctionType)) and type(f).__hash__ is not None


# --- Functions ------------------------------------------------------------------------------------


def _function(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    code = f.__code__
    if is_rewritten(code):
        return f(*args, **kwargs)
    special = _OWN.get(f)
    if special is not None:
        return special(o, *args, **kwargs)
    known = o.outer(f)
    if o.refused:
        return f(*args, **kwargs)
    module, own = f.__module__ or "", origin(code) == "own" or _is_functor(f)
    dispatch = f.__dict__.get("dispatch") if code is _SINGLE_DISPATCH else None
    if dispatch is not None and args and known is not None:
        cls = type(args[0]) if is_atom(args[0]) else lookup.class_of(o, args[0])
        chosen = dispatch(cls)
        o.read(chosen, f"{known.expression}.dispatch({o.match.constant(cls)})", f.__name__, True)
        return o.call(chosen, *args, **kwargs)
    if known is not None and known.held and not own:
        c, e = o.match.constant, known.expression
        o.match.require(
            f"{e}.__code__ is {c(code)} and {e}.__defaults__ is {c(f.__defaults__)} "
            f"and {e}.__kwdefaults__ is {c(f.__kwdefaults__)}",
            f"the code of `{known.label}` is another",
        )
    if own:
        if is_leaf(f):
            return leaf(o, f, args, kwargs)
    elif module.partition(".")[0] == "numpy":
        return _numpy(o, f, args, kwargs)
    elif code.co_filename.startswith("<") and not _has_source(code):
        return _generated(o, f, args, kwargs)
    for i, value in enumerate(f.__defaults__ or ()):
        if known is not None:
            o.read(
                value, f"{known.expression}.__defaults__[{i}]", f"a default of {known.label}", True
            )
    for name, value in (f.__kwdefaults__ or {}).items():
        if known is not None:
            o.read(value, f"{known.expression}.__kwdefaults__[{name!r}]", name, True)
    found = o.entered(f)
    result = found(*args, **kwargs)
    return o.local(result) if is_a(result, GeneratorType) else result


def _is_functor(f: Any) -> bool:
    """Return whether a function is what `register_op` made of a user's kernel."""
    return (
        f.__code__.co_filename.startswith("<") and FUNCTORS.find(f.__name__, known_only=True) is f
    )


def is_own(f: Any) -> bool:
    """Return whether a function or method belongs to the package."""
    f = f.__func__ if type(f) is MethodType else f
    return type(f) is not FunctionType or origin(f.__code__) != "user" or _is_functor(f)


def is_leaf(f: Any) -> bool:
    """Return whether a function of the package runs as it is."""
    if _is_functor(f):
        return True
    module = f.__module__ or ""
    trusted = module.startswith(_LEAVES) and not module.startswith(_ENTERED)
    return trusted and origin(f.__code__) == "own"


def _has_source(code: Any) -> bool:
    import linecache

    return bool(linecache.getlines(code.co_filename))


def _generated(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function without a source: those that dataclass() and namedtuple() write."""
    owner = type(args[0]) if args else None
    written = owner is not None and (dataclasses.is_dataclass(owner) or lookup.is_namedtuple(owner))
    is_new = bool(args) and is_a(args[0], type) and lookup.is_namedtuple(args[0])
    if f.__name__ == "__init__" and written and owner is not None:
        bound = _bind(o, f, args, kwargs)
        for field in dataclasses.fields(owner):
            if field.init and field.name in bound:
                object.__setattr__(args[0], field.name, bound[field.name])
            elif field.default_factory is not dataclasses.MISSING:
                object.__setattr__(args[0], field.name, o.call(field.default_factory))
            elif not field.init and field.default is not dataclasses.MISSING:
                object.__setattr__(args[0], field.name, field.default)
        post = lookup.method(o, args[0], "__post_init__")
        if type(post) is FunctionType:
            extra = [
                bound[n]
                for n, f in owner.__dataclass_fields__.items()
                if f._field_type is vars(dataclasses)["_FIELD_INITVAR"]
            ]
            o.learn(post, o.match.constant(post), "__post_init__", True)
            o.call(post, args[0], *extra)
        return None
    if is_new or (written and f.__name__ in ("__eq__", "__repr__", "_asdict", "_replace")):
        if not is_new and not _settled_fields(o, *args):
            o.refuse(f"it calls {f.__qualname__}")
        return o.local(f(*args, **kwargs))
    o.refuse(f"{f.__qualname__}() has no source")
    return f(*args, **kwargs)


def _settled_fields(o: Observer, *values: Any) -> bool:
    """Read all attributes of objects; return whether no code of a user's is in them."""
    found = [
        o.child(value, each, f".{name}", f".{name}")
        for value in values
        for name, each in (lookup.fields_of(value) or {}).items()
    ]
    return all(map(o.settled, found))


def _bind(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    import inspect

    bound = inspect.signature(f).bind(*args, **kwargs)
    given = dict(bound.arguments)
    for name, parameter in inspect.signature(f).parameters.items():
        if name not in given and parameter.default is not parameter.empty:
            if type(parameter.default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS":
                continue
            given[name] = parameter.default
            o.settled(o.local(parameter.default))
    return given


def leaf(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of the package; users' functions that it is given are observed."""
    if has_own_effect(f.__code__) or _leaves_something(o, f, args):
        o.refuse(f"it calls {f.__qualname__}()")
        return f(*args, **kwargs)
    if any(is_a(a, Optimizer) for a in args) or (
        args and is_a(args[0], Tensor) and f.__name__ == "backward"
    ):
        o.reads_gradients = True
    for value in args:
        if is_a(value, Optimizer):
            _optimizer(o, value)
    args = tuple([_given(o, a) for a in args])
    kwargs = {name: _given(o, a) for name, a in kwargs.items()}
    return o.local(f(*args, **kwargs))


def _leaves_something(o: Observer, f: Any, args: tuple[Any, ...]) -> bool:
    """Return whether a method hooks what is outside, or is one of optimizers that is no step."""
    if not args or not is_a(args[0], (Tensor, Optimizer)):
        return False
    if is_a(args[0], Optimizer) and f.__module__.startswith("oneflow_lite.optim"):
        return f.__name__ not in ("step", "zero_grad")
    return f.__name__.startswith("register_") and o.outer(args[0]) is not None


def _given(o: Observer, value: Any) -> Any:
    """Return what a trusted leaf gets for an argument."""
    if is_atom(value) or is_a(value, (Tensor, type)):
        if is_a(value, Tensor):
            o.outer(value)
        return value
    kind = type(value)
    if kind in (FunctionType, MethodType):
        whose = origin(getattr(value, "__func__", value).__code__)
        return value if whose == "own" else o.callback(value)
    if is_a(value, (Optimizer, Module)) or kind.__module__.startswith("oneflow_lite"):
        o.outer(value)
        return value
    if not o.settled(value) and not (kind.__module__ == "contextlib" and o.outer(value) is None):
        o.refuse(f"it hands {told(value)} to the package")
    return value


def _optimizer(o: Observer, optimizer: Any) -> None:
    """Take note of an optimizer's groups and state before one of its methods runs."""
    known = o.outer(optimizer)
    if known is None or o.refused or id(optimizer) in o.optimizers:
        return
    o.optimizers[id(optimizer)] = optimizer
    e, label = known.expression, known.label
    kind = lookup.class_of(o, optimizer)
    if not kind.__module__.startswith("oneflow_lite"):
        step = lookup.static(kind, "step")[1]
        o.match.same(f"{o.match.constant(kind)}.step", step, f"{label}.step")
    hooks = [hook for each in optimizer._hooks.values() for hook in each.values()]
    listed = f"[id(h) for d in {e}._hooks.values() for h in d.values()]"
    o.match.constant(hooks)
    o.match.require(
        f"{listed} == {o.match.constant(list(map(id, hooks)))}"
        if hooks
        else f"not any({e}._hooks.values())",
        f"the hooks of `{label}`",
    )
    groups = optimizer.param_groups
    o.read(groups, f"{e}.param_groups", f"{label}.param_groups", True)
    c = o.match.constant
    o.match.require(f"len({c(groups)}) == {len(groups)}", f"the number of groups of `{label}`")
    for i, group in enumerate(groups):
        o.read(group, f"{c(groups)}[{i}]", f"{label}.param_groups[{i}]", True)
        g = c(group)
        keys = c(list(group))
        o.match.require(f"[*{g}] == {keys}", f"the options of `{label}`")
        for name, value in group.items():
            where, text = f"{g}[{name!r}]", f"{label}.param_groups[{i}][{name!r}]"
            if name in _STEP_OPTIONS and _is_number(value):
                kind_of = f"type({where}) is {c(type(value))}"
                if _STEP_OPTIONS[name]:
                    kind_of += f" and (not {where}) is {not value}"
                o.match.require(kind_of, f"`{text}` is of another kind")
            else:
                o.read(value, where, text, True)
                if not is_atom(value):
                    o.contents(value)
    for tensor in optimizer.own_tensors():
        if o.known(tensor) is None:
            o.learn(tensor, c(tensor), f"the state of {label}", True)


def settle_optimizer(o: Observer, optimizer: Any) -> None:
    """Guard an optimizer's state as the call has left it: a first step makes it."""
    known, c = o.known(optimizer), o.match.constant
    e, label, state = known.expression, known.label, optimizer.state
    o.match.same(f"{e}.state", state, f"{label}.state")
    # What the call itself puts there is put there by every replay, too.
    put = {key for each in state.values() for key in each if (id(each), "item", key) in o.stores}
    states = o.match.bind(f"[*{c(state)}.values()]")
    o.match.require(f"len({states}) == {len(state)}", f"the state of `{label}`")
    for i, each in enumerate(state.values()):
        tests = [f"{states}[{i}] is {c(each)}"]
        if put.isdisjoint(each):
            tests.append(f"len({c(each)}) == {len(each)}")
        tests += [
            f"{c(each)}[{repr(k) if type(k) is str else c(k)}] is {c(v)}"
            for k, v in each.items()
            if k not in put
        ]
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
    """Call what lru_cache() made: the function is observed, the cache gives the object."""
    known = o.outer(f)
    words = tuple(kwargs.values())
    if known is None or o.refused or not all([_is_fixed(o, x) for x in (*args, *words)]):
        if known is not None:
            o.refuse(f"it calls {known.label}, a cache, with what may change")
        return f(*args, **kwargs)
    missed = f.cache_info().misses
    found = f(*args, **kwargs)
    if f.cache_info().misses > missed:
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
    return is_atom(value) or (known is not None and known.held)


def _partial(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function = o.child(f, f.func, ".func", "")
    held = o.child(f, f.args, ".args", ".args")
    words = o.child(f, f.keywords, ".keywords", ".keywords")
    o.contents(held)
    o.contents(words)
    return o.call(function, *f.args, *args, **{**f.keywords, **kwargs})


def _getter(o: Observer, f: Any, value: Any) -> Any:
    """Apply an attrgetter or itemgetter that the call made."""
    names = f.__reduce__()[1]
    found = []
    for name in names:
        if type(f) is operator.itemgetter:
            found.append(o.item(value, name))
        else:
            each = value
            for part in name.split("."):
                each = o.attribute(each, part)
            found.append(each)
    return found[0] if len(found) == 1 else o.local(tuple(found))


def _module(o: Observer, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Module: straight to forward() where nothing else waits."""
    member = lookup.method(o, module, "__call__")
    known = o.outer(module)
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
    if cls in _PURE or cls.__module__ in (
        "builtins",
        "_io",
        "itertools",
        "collections",
        "numpy",
        "fractions",
    ):
        return _pure(o, cls, args, kwargs)
    if cls.__module__.startswith("oneflow_lite"):
        if issubclass(cls, Optimizer):
            o.refuse("it makes an optimizer")
        given = tuple([_given(o, a) for a in args])
        return o.local(cls(*given, **{name: _given(o, a) for name, a in kwargs.items()}))
    o.outer(cls)
    meta = type(cls)
    if is_a(cls, enum.EnumMeta):
        if not is_atom(args):
            o.refuse(f"it looks up a member of {cls.__name__}")
        return cls(*args, **kwargs)
    if lookup.static(meta, "__call__")[0] is not type:
        o.refuse(f"it makes {cls.__name__}, whose metaclass has a __call__ of its own")
    if lookup.static(cls, "__new__")[0] is None or o.refused:
        return cls(*args, **kwargs)
    owner, new = lookup.static(cls, "__new__")
    new = new.__func__ if type(new) is staticmethod else new
    if type(new) is FunctionType:
        made = o.call(_settle(o, cls, new, "__new__"), cls, *args, **kwargs)
    elif owner is object:
        made = object.__new__(cls)
    else:
        if not all(map(o.settled, args)):
            o.refuse(f"it makes {cls.__name__}")
        made = new(cls, *args, **kwargs)
    if type(made) is not cls and not issubclass(type(made), cls):
        return made
    o.local(made)
    owner, init = lookup.static(cls, "__init__")
    if type(init) is FunctionType:
        o.call(_settle(o, cls, init, "__init__"), made, *args, **kwargs)
    elif owner is object:
        if args or kwargs:
            return cls(*args, **kwargs) if owner is lookup.static(cls, "__new__")[0] else made
    else:
        if not all(map(o.settled, args)):
            o.refuse(f"it makes {cls.__name__}")
        init(made, *args, **kwargs)
    return made


def _settle(o: Observer, cls: type, function: Any, name: str) -> Any:
    """Guard a special method of a class that Python finds by itself."""
    if o.known(function) is None:
        o.match.require(
            f"{o.match.constant(cls)}.{name} is {o.match.constant(function)}",
            f"`{cls.__name__}.{name}` is another",
        )
        o.learn(function, o.match.constant(function), f"{cls.__name__}.{name}", True)
    return function


# --- Builtins -------------------------------------------------------------------------------------


def _called(o: Observer, function: Any) -> Any:
    """Return what C code may call in the place of a function of a user's."""
    users = type(function) in (FunctionType, MethodType) and not is_own(function)
    return o.callback(function) if users else function


def _pure(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a builtin that answers with nothing but what it is given."""
    given = list(args)
    if f in _CALLING:
        given = [_called(o, a) for a in given]
        if "key" in kwargs and kwargs["key"] is not None:
            kwargs = {**kwargs, "key": _called(o, kwargs["key"])}
    if f is len and len(given) == 1:
        return _length(o, given[0])
    if f in (str, bool) and len(given) == 1 and not is_atom(given[0]):
        if f is bool:
            return truth(o, given[0])
        found = text(o, given[0], "s", "")[0]
        return str(found) if found is given[0] else found
    if f is float and len(given) == 1 and is_a(given[0], Tensor):
        return _OWN[Tensor.item](o, given[0])
    if (
        f in (int, float, complex)
        and given
        and not is_atom(given[0])
        and not is_a(given[0], Tensor)
    ):
        return special(o, given[0], f"__{f.__name__}__")
    for i, value in enumerate(given):
        if is_a(value, (FunctionType, MethodType, functools.partial)) or is_atom(value):
            continue
        if f in _ITERATING and not o.settled(value):
            given[i] = value = o.iterate(value)
            given[i] = o.local(list(value)) if f is not next else value
            o.settled(given[i])
        elif not o.settled(value):
            handed_on = f in _HOLDING and type(value) in CONTAINERS
            if not handed_on:
                o.refuse(f"it calls {f.__name__}() of {told(value)}")
    if f in (set, frozenset, dict):
        for value in given:
            for element in value if type(value) in CONTAINERS else ():
                lookup.check_key(o, element if f is not dict or type(value) is dict else element[0])
    if not all(map(o.settled, kwargs.values())) and f is not dict and f is not functools.partial:
        o.refuse(f"it calls {f.__name__}()")
    return o.local(f(*given, **kwargs))


_ITERATING = {
    list, tuple, set, frozenset, sum, max, min, sorted, any, all, enumerate, zip, map, filter,
    reversed, dict, itertools.chain, itertools.product, itertools.islice, itertools.repeat,
}  # fmt: skip


# What their arguments hold is handed on as it is.
_HOLDING = {
    list, tuple, dict, enumerate, zip, map, filter, set, frozenset, functools.partial,
}  # fmt: skip


def _length(o: Observer, value: Any) -> int:
    known = None if is_atom(value) else o.outer(value)
    if (
        is_a(value, Tensor)
        or type(value) in CONTAINERS
        or (known is None and type(value).__module__ == "builtins")
    ):
        if known is not None and not is_a(value, Tensor):
            o.match.require(
                f"len({known.expression}) == {len(value)}", f"the length of `{known.label}`"
            )
        return len(value)
    if is_a(value, np.ndarray):
        lookup.check_array(o, value)
    if is_atom(value) or is_a(value, np.ndarray):
        return len(value)
    owner = lookup.static(type(value), "__len__")[0]
    if owner in CONTAINERS and known is not None:
        o.match.require(
            f"len({known.expression}) == {len(value)}", f"the length of `{known.label}`"
        )
        return len(value)
    return int(special(o, value, "__len__"))


def _builtin(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a C function or method."""
    kind, name = type(f), f.__name__
    if kind in (MethodDescriptorType, WrapperDescriptorType):
        if not args:
            return f(*args, **kwargs)
        return _of_owner(o, f, args[0], name, args[1:], kwargs)
    owner = f.__self__
    if owner is None or type(owner) is ModuleType:
        if (
            f in _PURE
            or f.__module__ in _PURE_MODULES
            or getattr(owner, "__name__", "") in _PURE_MODULES
        ):
            return _pure(o, f, args, kwargs)
        if f.__module__ == "_functools" or f.__module__ == "_collections":
            return _pure(o, f, args, kwargs)
        if (f.__module__ or "").partition(".")[0] == "numpy":
            return _numpy(o, f, args, kwargs)
        if f.__module__ in ("_abc",):
            return f(*args, **kwargs)
        o.refuse(f"it calls {name}()")
        return f(*args, **kwargs)
    if is_a(owner, type):
        if name in (
            "__new__",
            "fromkeys",
            "from_bytes",
            "fromhex",
            "maketrans",
            "__subclasscheck__",
            "__instancecheck__",
            "__init_subclass__",
        ):
            if name == "__new__" and args and is_a(args[0], type):
                if owner is object:
                    return o.local(object.__new__(args[0]))
                if not all(map(o.settled, args[1:])):
                    o.refuse(f"it calls {owner.__name__}.__new__()")
            return o.local(f(*args, **kwargs))
        o.refuse(f"it calls {owner.__name__}.{name}()")
        return f(*args, **kwargs)
    return _of_owner(o, None, owner, name, args, kwargs, f)


def _of_owner(
    o: Observer,
    unbound: Any,
    owner: Any,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    bound: Any = None,
) -> Any:
    """Call a C method of an object."""

    def native() -> Any:
        found = bound(*args, **kwargs) if unbound is None else unbound(owner, *args, **kwargs)
        return found if found is owner or found is NotImplemented else o.local(found)

    kind = type(owner)
    if name == "__setattr__" and len(args) == 2:
        lookup.raw_set(o, owner, *args)
        return None
    if name in ("__getattribute__", "__getattr__") and len(args) == 1 and not is_a(owner, dict):
        return o.attribute(owner, args[0])
    if name in ("__init__", "__init_subclass__", "__enter__", "__exit__") and (
        is_atom(owner) or o.outer(owner) is None
    ):
        if not all(map(o.settled, args)):
            o.refuse(f"it calls {name}() of {told(owner)}")
        return native()
    if name == "__class_getitem__" or name == "__subclasses__":
        return native()
    if is_atom(owner):
        if not all(map(o.settled, args)) or not all(map(o.settled, kwargs.values())):
            o.refuse(f"it calls {name}() of {told(owner)}")
        return native()
    base = next(filter(lambda b: issubclass(kind, b), CONTAINERS), None)
    known = o.outer(owner)
    if base is not None:
        if name == "__getitem__":
            return _plain_item(o, owner, args[0], native)
        if name == "__setitem__" or (name == "setdefault" and known is not None):
            if name == "__setitem__":
                lookup.set_item(o, owner, *args)
                return None
            o.refuse(f"it changes {known.label}")
            return native()
        if name == "get" and issubclass(kind, dict):
            lookup.check_key(o, args[0])
            if dict.__contains__(owner, args[0]):
                return _plain_item(o, owner, args[0], native)
            if known is not None:
                key = lookup.in_guards(o, args[0])
                o.match.require(f"{key} not in {known.expression}", f"`{known.label}` got a key")
            return args[1] if len(args) > 1 else None
        if name == "__contains__":
            return contains(o, owner, args[0])
        if name == "__len__":
            return _length(o, owner)
        if name in _READERS:
            o.contents(owner)
            searches = name in ("index", "count", "__eq__", "__ne__")
            if (searches and not o.settled(owner)) or not all(map(o.settled, args)):
                o.refuse(f"it calls {name}() of {told(owner)}")
            return native()
        if known is not None:
            o.refuse(f"it changes {known.label} by {name}()")
        elif name in ("remove", "sort", "__eq__") and not o.settled(owner):
            o.refuse(f"it calls {name}() of {told(owner)}")
        elif name in ("extend", "update", "extendleft", "__iadd__", "__ior__"):
            args = tuple(
                [a if type(a) in CONTAINERS else o.local(list(o.iterate(a))) for a in args]
            )
            for a in args:
                o.contents(a)
            return o.local(
                bound(*args, **kwargs) if unbound is None else unbound(owner, *args, **kwargs)
            )
        elif name in ("add", "pop", "discard") and args:
            lookup.check_key(o, args[0])
        elif name == "sort" and kwargs.get("key") is not None:
            kwargs = {**kwargs, "key": _called(o, kwargs["key"])}
            return bound(*args, **kwargs) if unbound is None else unbound(owner, *args, **kwargs)
        return native()
    if is_a(owner, (np.ndarray, np.generic)) and known is None:
        o.settled(args)
        return native()
    if known is None and kind.__module__ in ("builtins", "itertools", "collections", "functools"):
        if not all(map(o.settled, args)):
            o.refuse(f"it calls {name}() of {told(owner)}")
        return native()
    if known is None and is_a(owner, BaseException):
        return native()
    if name in ("__eq__", "__ne__", "__hash__") and lookup.static(kind, name)[0] is object:
        if name == "__hash__":
            o.refuse("it asks for a hash")
        return native()
    o.refuse(f"it calls {name}() of {told(owner)}")
    return native()


def _plain_item(o: Observer, owner: Any, key: Any, native: Callable[[], Any]) -> Any:
    """Read an item of a built-in container as the container's own method does."""
    known = o.outer(owner)
    if known is None:
        return native()
    if is_a(owner, dict):
        lookup.check_key(o, key)
        if dict.__contains__(owner, key) and not o.refused:
            found = dict.__getitem__(owner, key)
            if (id(owner), "item", key) in o.stores:
                o.settle_count(owner, key, "item")
                return found
            return o.child(owner, found, f"[{lookup.in_guards(o, key)}]", f"[{told(key)}]")
        o.match.require(
            f"{lookup.in_guards(o, key)} not in {known.expression}", f"`{known.label}` got a key"
        )
        return native()
    return lookup.item(o, owner, key)


def _numpy(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy: of numbers, of arrays that the call made, and of tensors."""
    module = getattr(f, "__module__", None) or getattr(type(f), "__module__", "")
    if "random" in str(module) or not all(map(o.settled, (*args, *kwargs.values()))):
        o.refuse(f"it calls {getattr(f, '__name__', type(f).__name__)}() of NumPy")
    return o.local(f(*args, **kwargs))


# --- Operators and decisions ----------------------------------------------------------------------


def special(o: Observer, value: Any, name: str, *args: Any) -> Any:
    """Call a special method as Python does for an operation; refuse where it is not a user's."""
    member = lookup.method(o, value, name)
    if type(member) is FunctionType:
        o.learn(member, o.match.constant(member), name, True)
        return o.call(member, value, *args)
    o.refuse(f"it applies {name} to {told(value)}")
    return getattr(value, name)(*args)


def operate(o: Observer, op: str, a: Any, b: Any, inplace: bool) -> Any:
    """Apply a binary operator by Python's rules."""
    native = _NATIVE.inplace if inplace else _NATIVE.binary
    if is_atom(a) and is_atom(b):
        return native(op, a, b)
    name = _BINARY[op]
    if type(a) in CONTAINERS and (inplace or op in "+*|&-^"):
        if inplace and type(a) not in (tuple, frozenset):
            if o.outer(a) is not None:
                o.refuse(f"it changes {told(a)} in place")
            return native(
                op, a, o.local(list(o.iterate(b))) if type(a) is list and not is_atom(b) else b
            )
        if type(b) in CONTAINERS or is_atom(b):
            o.contents(a)
            o.contents(b) if not is_atom(b) else None
            return o.local(native(op, a, b))
    replaced = [
        _is_replaced(o, x, f"__{prefix}{name}__")
        for x, prefix in ((a, "i" if inplace else ""), (a, ""), (b, "r"))
    ]
    simple = (Tensor, np.ndarray)
    if (
        not any(replaced)
        and (is_a(a, simple) or is_atom(a) or type(a) in CONTAINERS)
        and (is_a(b, simple) or is_atom(b) or type(b) in CONTAINERS)
    ):
        if not o.settled(a) or not o.settled(b):
            o.refuse(f"it applies {op} to {told(a)} and {told(b)}")
        return o.local(native(op, a, b))
    if not o.refused:
        kinds = [f"__i{name}__"] if inplace else []
        for spelled in kinds:
            if type(lookup.static(type(a), spelled)[1]) is FunctionType:
                found = special(o, a, spelled, b)
                if found is not NotImplemented:
                    return found
        if (
            type(a) is not type(b)
            and issubclass(type(b), type(a))
            and type(lookup.static(type(b), f"__r{name}__")[1]) is FunctionType
        ):
            found = special(o, b, f"__r{name}__", a)
            if found is not NotImplemented:
                return found
        if type(lookup.static(type(a), f"__{name}__")[1]) is FunctionType:
            found = special(o, a, f"__{name}__", b)
            if found is not NotImplemented:
                return found
        if type(lookup.static(type(b), f"__r{name}__")[1]) is FunctionType:
            found = special(o, b, f"__r{name}__", a)
            if found is not NotImplemented:
                return found
        o.refuse(f"it applies {op} to {told(a)} and {told(b)}")
    return native(op, a, b)


def _is_replaced(o: Observer, value: Any, name: str) -> bool:
    """Return whether a user's function stands in the place of an operator of tensors."""
    if not is_a(value, Tensor):
        return False
    owner, member = lookup.static(type(value), name)
    if owner is None or type(member) is not FunctionType:
        return False
    kind = lookup.class_of(o, value)
    c = o.match.constant
    o.match.require(f"{c(kind)}.{name} is {c(member)}", f"`{kind.__name__}.{name}` is another")
    return origin(member.__code__) != "own"


def compare(o: Observer, op: str, a: Any, b: Any) -> Any:
    """Compare two values."""
    if op in ("is", "is not"):
        return identical(o, a, b) is (op == "is")
    if op in ("in", "not in"):
        return contains(o, b, a) is (op == "in")
    if is_atom(a) and is_atom(b):
        return _NATIVE.compare(op, a, b)
    for x, y, name in ((a, b, _ORDER[op][0]), (b, a, _ORDER[op][1])):
        if is_a(x, Tensor):
            if _is_replaced(o, x, name):
                return special(o, x, name, y)
            if not o.settled(y):
                o.refuse(f"it compares a tensor with {told(y)}")
            return o.local(_NATIVE.compare(op, a, b))
        if (
            not is_atom(x)
            and type(lookup.static(type(x), name)[1]) is FunctionType
            and type(x).__module__.partition(".")[0] != "numpy"
        ):
            if o.refused:
                break
            if type(x) not in CONTAINERS and not _written_by_dataclass(x, name):
                found = special(o, x, name, y)
                if found is not NotImplemented:
                    return found
            elif _settled_fields(o, a, b):  # the fields alone are compared
                return _NATIVE.compare(op, a, b)
    if op in ("==", "!=") and _by_identity(a) and _by_identity(b):
        return identical(o, a, b) is (op == "==")
    if not (o.settled(a) and o.settled(b)):
        if (
            op in ("==", "!=")
            and (_by_identity(a) or _by_identity(b))
            and (is_atom(a) or is_atom(b))
        ):
            return _NATIVE.compare(op, a, b)
        o.refuse(f"it compares {told(a)} with {told(b)}")
    return _NATIVE.compare(op, a, b)


def _written_by_dataclass(value: Any, name: str) -> bool:
    return dataclasses.is_dataclass(type(value)) and not _has_source(
        lookup.static(type(value), name)[1].__code__
    )


def _by_identity(value: Any) -> bool:
    return lookup.static(type(value), "__eq__")[0] in (
        object,
        type(value) if type(value) is type else object,
    )


def identical(o: Observer, a: Any, b: Any) -> bool:
    """Tell whether two values are one object; where that may change, it is guarded."""
    if o.refused:
        return a is b
    if is_a(a, type) and is_a(b, type) and (o.known(a) is None or o.known(b) is None):
        return a is b
    if is_atom(a) or is_atom(b):
        constants = (None, True, False, Ellipsis, NotImplemented)
        if (
            not any(a is c or b is c for c in constants)
            and a is not b
            and is_atom(a)
            and is_atom(b)
            and type(a) is type(b)
            and a == b
        ):
            o.refuse("it compares the identity of equal numbers or strings")
        for x in (a, b):
            if not is_atom(x):
                o.outer(x)
        return a is b
    one, other = o.outer(a), o.outer(b)
    if one is not None and other is not None and not (one.held and other.held):
        is_ = "is" if a is b else "is not"
        o.match.require(
            f"{one.expression} {is_} {other.expression}",
            f"whether `{one.label}` is `{other.label}`",
        )
    for x in (a, b):
        if is_a(x, Tensor) and any(s.grad is x for s in o.states.values()):
            o.refuse("it compares a gradient by identity")
    return a is b


def contains(o: Observer, container: Any, value: Any) -> bool:
    """Tell whether a container has a value."""
    kind = type(container)
    if is_atom(container):
        if not o.settled(value):
            o.refuse(f"it looks for {told(value)}")
        return value in container
    owner, member = lookup.static(kind, "__contains__")
    if is_a(container, dict) and owner in (dict, collections.OrderedDict):
        lookup.check_key(o, value)
        known = o.outer(container)
        there = dict.__contains__(container, value)
        if known is not None and not o.refused and (id(container), "item", value) not in o.stores:
            key, is_in = lookup.in_guards(o, value), "in" if there else "not in"
            o.match.require(f"{key} {is_in} {known.expression}", f"the keys of `{known.label}`")
        return there
    if kind in CONTAINERS:
        o.contents(container)
        if kind in (set, frozenset):
            lookup.check_key(o, value)
            if not is_atom(value):
                _relate(o, value, container)
            return value in container
        for element in container:
            if (
                identical(o, element, value)
                if not is_atom(element) or not is_atom(value)
                else element is value
            ):
                return True
            if compare_truth(o, element, value):
                return True
        return False
    if type(member) is FunctionType:
        return truth(o, special(o, container, "__contains__", value))
    return any(compare_truth(o, element, value) for element in o.iterate(container))


def compare_truth(o: Observer, a: Any, b: Any) -> bool:
    """Tell whether two values count as equal, as `in` sees it."""
    return a is b or truth(o, compare(o, "==", a, b))


def _relate(o: Observer, value: Any, container: Any) -> None:
    """Guard which keys, compared by identity, an object is and is not."""
    for key in container:
        if not is_atom(key):
            identical(o, value, key)


def truth(o: Observer, value: Any) -> bool:
    """Decide by a value."""
    if value is True or value is False or value is None or is_atom(value):
        return bool(value)
    if is_a(value, (Tensor, np.ndarray)):
        if is_a(value, Tensor):
            o.outer(value)
        else:
            lookup.check_array(o, value)
        return bool(value)
    kind = type(value)
    known = o.outer(value)
    if o.refused:
        return bool(value)
    for name in ("__bool__", "__len__"):
        owner, member = lookup.static(kind, name)
        if owner is None:
            continue
        if type(member) is FunctionType:
            found = special(o, value, name)
            return truth(o, found)
        if known is not None:
            o.match.require(
                f"{'' if value else 'not '}{known.expression}", f"whether `{known.label}` is empty"
            )
        return bool(value)
    if not kind.__flags__ & (1 << 8) and known is not None and kind.__flags__ & (1 << 9):
        lookup.method(o, value, "__bool__")
        lookup.method(o, value, "__len__")
    return True


def iterate(o: Observer, value: Any) -> Any:
    """Return what goes through the elements of a value."""
    if is_atom(value):
        return value
    kind = type(value)
    if is_a(value, Tensor):
        o.outer(value)
        return iter([o.local(each) for each in value])
    if is_a(value, enum.EnumMeta):
        return value
    owner, member = lookup.static(kind, "__iter__")
    if kind in CONTAINERS or owner in CONTAINERS:
        if o.outer(value) is not None:
            o.contents(value)
            return iter(list(owner.__iter__(value)))  # type: ignore[union-attr]
        o.contents(value)
        return value
    if type(member) is FunctionType:
        found = special(o, value, "__iter__")
        return iterate(o, found) if found is not value else _steps(o, value)
    if type(lookup.static(kind, "__next__")[1]) is FunctionType:
        return _steps(o, value)
    if o.outer(value) is not None or (owner is None and not is_a(value, np.ndarray)):
        o.refuse(f"it goes through {told(value)}")
    return value


def _steps(o: Observer, iterator: Any) -> Iterator[Any]:
    """Go through a user's iterator."""
    while True:
        try:
            element = special(o, iterator, "__next__")
        except StopIteration:
            return
        yield element


def text(o: Observer, value: Any, conversion: str, spec: str) -> tuple[Any, Any]:
    """Return what stands for a value in a string."""
    if is_atom(value):
        return value, conversion
    if is_a(value, Tensor):
        o.refuse("it writes a tensor's values into a string")
        return value, conversion
    names = {
        "r": ("__repr__",),
        "s": ("__str__", "__repr__"),
        "": ("__format__", "__str__", "__repr__"),
        "a": ("__repr__",),
    }
    for name in names[conversion]:
        member = lookup.static(type(value), name)[1]
        if type(member) is FunctionType and type(value) not in CONTAINERS:
            if _written_by_dataclass(value, name):
                if _settled_fields(o, value):
                    return value, conversion
                break
            if name == "__format__":
                return special(o, value, name, spec), None
            return special(o, value, name), ""
    if is_a(value, BaseException) and o.outer(value) is not None:
        o.settled(o.child(value, value.args, ".args", ".args"))
    if (
        is_a(value, type)
        or is_a(value, BaseException)
        or (o.settled(value) and not _has_tensor(value))
    ):
        return value, conversion
    o.refuse(f"it writes {told(value)} into a string")
    return value, conversion


def _has_tensor(value: Any) -> bool:
    if is_a(value, (Tensor, FunctionType, MethodType)):
        return True
    if is_a(value, dict):
        return any(map(_has_tensor, value.values()))
    return type(value) in CONTAINERS and any(map(_has_tensor, value))


def context(o: Observer, manager: Any) -> Any:
    """Return what a `with` statement enters in the place of a manager."""
    kind = type(manager)
    if kind.__module__.startswith("oneflow_lite"):
        o.outer(manager)
        return manager
    enter, leave = (lookup.static(kind, name)[1] for name in ("__enter__", "__exit__"))
    if type(enter) is FunctionType and type(leave) is FunctionType:
        return _Entered(o, manager)
    o.refuse(f"it enters {told(manager)}")
    return manager


class _Entered:
    """A context manager of a user's, or of Python's library, whose methods are observed."""

    def __init__(self, o: Observer, manager: Any) -> None:
        self.o, self.manager = o, manager

    def __enter__(self) -> Any:
        return (
            special(self.o, self.manager, "__enter__")
            if not self.o.refused
            else type(self.manager).__enter__(self.manager)
        )

    def __exit__(self, *error: Any) -> bool:
        if self.o.refused:
            return bool(type(self.manager).__exit__(self.manager, *error))
        if error[1] is not None:
            self.o.local(error[1])
            self.o.local(error[2])
        swallowed = truth(self.o, special(self.o, self.manager, "__exit__", *error))
        if swallowed and error[1] is not None:
            self.o.caught(None, error[1])
        return swallowed


# --- Builtins with ways of their own --------------------------------------------------------------


def _getattr(o: Observer, value: Any, name: str, *default: Any) -> Any:
    try:
        return o.attribute(value, name)
    except AttributeError:
        if not default:
            raise
        return default[0]


def _hasattr(o: Observer, value: Any, name: str) -> bool:
    try:
        o.attribute(value, name)
    except AttributeError:
        return False
    return True


def _isinstance(o: Observer, value: Any, kind: Any) -> bool:
    for each in kind if type(kind) is tuple else (kind,):
        meta = type(each)
        checks = lookup.static(meta, "__instancecheck__")
        if meta is abc.ABCMeta:  # classes may be registered with it
            token = o.match.constant(abc.get_cache_token)
            o.match.require(f"{token}() == {abc.get_cache_token()!r}", "registered classes")
        if is_a(each, type) and getattr(each, "_is_protocol", False):
            o.refuse("it asks whether an object follows a protocol")
        elif checks[0] not in (None, type, abc.ABCMeta) and meta.__module__.partition(".")[
            0
        ] not in ("oneflow_lite", "enum", "typing", "types"):
            o.refuse(f"it asks {meta.__name__} for instances")
    if not is_atom(value):
        lookup.class_of(o, value)
    return isinstance(value, kind)


def _issubclass(o: Observer, cls: Any, kind: Any) -> bool:
    return issubclass(cls, kind)


def _type(o: Observer, *args: Any, **kwargs: Any) -> Any:
    if len(args) == 1:
        return type(args[0]) if is_atom(args[0]) else lookup.class_of(o, args[0])
    o.refuse("it makes a class")
    return type(*args, **kwargs)


def _callable(o: Observer, value: Any) -> bool:
    if not is_atom(value):
        lookup.class_of(o, value)
    return callable(value)


def _repr(o: Observer, value: Any) -> str:
    found, conversion = text(o, value, "r", "")
    return repr(found) if conversion or is_atom(value) else found


def _format(o: Observer, value: Any, spec: str = "") -> str:
    found, _ = text(o, value, "", spec)
    return format(found, spec if found is value else "")


def _iter(o: Observer, value: Any, *sentinel: Any) -> Any:
    if sentinel:
        o.refuse("it calls iter() with a sentinel")
        return iter(value, *sentinel)
    return o.local(iter(o.iterate(value)))


def _next(o: Observer, iterator: Any, *default: Any) -> Any:
    if type(lookup.static(type(iterator), "__next__")[1]) is FunctionType:
        try:
            return special(o, iterator, "__next__")
        except StopIteration:
            if not default:
                raise
            return default[0]
    if o.outer(iterator) is not None:
        o.refuse(f"it takes the next element of {told(iterator)}")
    return next(iterator, *default)


def _setattr(o: Observer, value: Any, name: str, new: Any) -> None:
    o.set_attribute(value, name, new)


def _delattr(o: Observer, value: Any, name: str) -> None:
    o.delete_attribute(value, name)


def _vars(o: Observer, value: Any) -> Any:
    return o.attribute(value, "__dict__")


def _hash(o: Observer, value: Any) -> int:
    if not is_atom(value):
        o.refuse("it asks for a hash")
    return hash(value)


def _id(o: Observer, value: Any) -> int:
    known = o.known(value)
    if not is_atom(value) and (known is None or not known.held):
        o.refuse(f"it asks for the id() of {told(value)}")
    return id(value)


_HANDLERS: dict[Any, Callable[..., Any]] = {
    getattr: _getattr, hasattr: _hasattr, isinstance: _isinstance, issubclass: _issubclass,
    type: _type, callable: _callable, repr: _repr, format: _format, iter: _iter, next: _next,
    id: _id, setattr: _setattr, delattr: _delattr, vars: _vars, hash: _hash,
    staticmethod: lambda o, f: o.local(staticmethod(f)),
}  # fmt: skip


def _apply(o: Observer, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a Function of a user's: its methods are observed, in the backward pass as well."""
    members = {}
    for name in ("forward", "backward", "setup_context", "jvp", "vjp"):
        owner, member = lookup.static(cls, name)
        if type(member) is staticmethod and owner is not Function:
            o.match.require(
                f"{o.match.constant(cls)}.{name} is {o.match.constant(member.__func__)}",
                f"`{cls.__name__}.{name}` is another",
            )
            o.learn(member.__func__, o.match.constant(member.__func__), name, True)
            members[name] = staticmethod(o.callback(member.__func__))
    observed = type(
        cls.__name__,
        (cls,),
        {**members, "__module__": cls.__module__, "__qualname__": cls.__qualname__},
    )
    return o.local(
        vars(Function)["apply"].__func__(observed, *[_given(o, a) for a in args], **kwargs)
    )


def _read(how: str) -> Callable[..., Any]:
    """Return what runs for a method that reads a tensor: what is only handed on is read later."""
    method = getattr(Tensor, how)

    def read(o: Observer, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        plain = type(tensor) is Tensor and not args and not kwargs and not o.refused
        if plain and type(tensor._data) is np.ndarray:
            array = tensor._data
            known = o.outer(tensor)
            if (
                how != "numpy"
                and array.size == 1
                and not array.ndim * (how == "tolist")
                and array.dtype.kind == "f"
            ):
                return o.note_read(array.item(), tensor, "item")
            if how == "tolist" and array.ndim:
                return o.note_read(array.tolist(), tensor, "tolist")
            free = known is None and tensor._edge is None and array.base is None
            if how == "numpy" and free:
                return o.note_read(array, tensor, "numpy")
        return leaf(o, method, (tensor, *args), kwargs)

    return read


def _asked(name: str) -> Callable[..., Any]:
    """Return what runs for a method whose answer no other guard settles."""
    method = getattr(Tensor, name)

    def ask(o: Observer, tensor: Any, *args: Any) -> Any:
        known, found = o.outer(tensor), method(tensor, *args)
        if known is not None and not args:
            o.read(found, f"{known.expression}.{name}()", f"{known.label}.{name}()", True)
        return found

    return ask


_OWN: dict[Any, Callable[..., Any]] = {
    vars(Function)["apply"].__func__: _apply,
    **{getattr(Tensor, n): _asked(n) for n in _ASKED},
    **{getattr(Tensor, how): _read(how) for how in ("item", "tolist", "numpy")},
}
