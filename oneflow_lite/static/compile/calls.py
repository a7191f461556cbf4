"""Calls in a recorded function: each is entered, trusted, a builtin of the table, or refused.

Users' functions, and those of installed packages and of Python's library that are written in
Python, are entered. The package's functors and its engine are trusted leaves. A builtin stands in
a table here that says what it reads, or the call is refused by its name.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import enum
import functools
import inspect
import itertools
import linecache
import operator
from collections import deque
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
from oneflow_lite.static.compile.lookup import special
from oneflow_lite.static.compile.native import (
    BINARY,
    COMPARE,
    INPLACE,
    LOOK_AT_FRAME,
    UNARY,
    Native,
)
from oneflow_lite.static.compile.rewrite import is_rewritten
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
from oneflow_lite.static.compile.trusted import has_own_effect, origin
from oneflow_lite.tensor import Tensor

Observer = Any  # which stands on this module

SPECIAL_UNARY = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}
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
    serialization distributed nn.parallel.reducer
    """.split()
)
_ASKED = ("storage_offset", "is_inference", "is_pinned", "is_shared")  # methods of tensors
_ENTERED = (
    "oneflow_lite.optim.lr_scheduler",
    "oneflow_lite.optim.swa_utils",
    "oneflow_lite.static.graph",
)
_PURE_MODULES = ("math", "cmath")


def call(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call anything."""
    f = f if o.refused else lookup.original(o, f)
    kind = type(f)
    if o.read_out and kind is not FunctionType and kind is not MethodType and f is not list.append:
        o.look_at(*args, *kwargs.values())
    if kind is FunctionType:
        return _function(o, f, args, kwargs)
    if kind is MethodType:
        function = o.child(f, f.__func__, ".__func__", "")
        return call(o, function, (o.child(f, f.__self__, ".__self__", ""), *args), kwargs)
    handler = _HANDLERS.get(f) if _hashable(o, f) else None
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


def _hashable(o: Observer, f: Any) -> bool:
    return is_a(f, BuiltinFunctionType) or (is_a(f, type) and lookup.is_plain_class(o, f))


# --- Functions ------------------------------------------------------------------------------------


def _function(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    code = f.__code__
    if len(args) > code.co_argcount:  # `*args` is a tuple of what is left
        args = args[: code.co_argcount] + tuple(map(o.plain, args[code.co_argcount :]))
    if is_rewritten(code):
        result = f(*args, **kwargs)
        return o.local(result) if is_a(result, GeneratorType) else result
    special = _OWN.get(f)
    if special is not None:
        return special(o, *args, **kwargs)
    known = o.outer(f)
    if o.refused:
        return o.natively(f, args, kwargs)
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
    if known is not None:
        e, label = known.expression, f"a default of {known.label}"
        for i, value in enumerate(f.__defaults__ or ()):
            o.read(value, f"{e}.__defaults__[{i}]", label, True)
        for name, value in (f.__kwdefaults__ or {}).items():
            o.read(value, f"{e}.__kwdefaults__[{name!r}]", label, True)
    if code.co_filename.startswith("<") and not linecache.getlines(code.co_filename):
        return _generated(o, f, args, kwargs)
    found = o.entered(f)
    if o.refused or "unsupported" in found.__code__.co_names:  # some of it is not observed
        result = o.natively(found, args, kwargs)
    else:
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


def _generated(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function without a source: those that dataclass() and namedtuple() write."""
    value: Any = args[0] if args else None
    name = f.__name__
    if is_a(value, type):
        is_new, fields = lookup.is_namedtuple(value), {}
        written = is_new
    else:
        fields = lookup.looked_up(o, type(value), "__dataclass_fields__")[1]
        is_new, written = False, fields is not MISSING or lookup.is_namedtuple(type(value))
    if name == "__init__" and fields is not MISSING and not is_new:
        _fill_dataclass(o, f, fields, args, kwargs)
        return None
    if is_new or (written and name in ("__eq__", "__repr__", "_asdict", "_replace")):
        if not is_new and not _settled_fields(o, *args):
            o.refuse(f"it calls {f.__qualname__}")
        return o.local(f(*args, **kwargs))
    o.refuse(f"{f.__qualname__}() has no source")
    return o.natively(f, args, kwargs)


def _fill_dataclass(
    o: Observer, f: Any, fields: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Set the fields of a dataclass's new object, as the `__init__` that was written for it."""
    bound = inspect.signature(f).bind(*args, **kwargs)
    bound.apply_defaults()
    extra = []
    of_class, given = vars(dataclasses)["_FIELD_CLASSVAR"], vars(dataclasses)["_FIELD_INITVAR"]
    for name, field in fields.items():
        factory, kind = field.default_factory, field._field_type
        if kind is of_class:
            continue
        if field.init and (factory is dataclasses.MISSING or not _is_left_out(bound, name)):
            found = bound.arguments[name]
        elif factory is not dataclasses.MISSING:
            where = f"{o.match.constant(field)}.default_factory"
            found = o.call(o.read(factory, where, f"the factory of {name}", True))
        elif field.default is not dataclasses.MISSING and lookup.fields_of(args[0]) is None:
            found = field.default  # which a class with slots cannot keep for it
        else:
            continue
        if kind is given:
            extra.append(found)
        elif lookup.static(type(args[0]), "__dataclass_params__")[1].frozen:
            object.__setattr__(args[0], name, found)
        else:
            o.set_attribute(args[0], name, found)
    if "__post_init__" in f.__code__.co_names:
        special(o, args[0], "__post_init__", *extra)


def _is_left_out(bound: Any, name: str) -> bool:
    return type(bound.arguments[name]).__name__ == "_HAS_DEFAULT_FACTORY_CLASS"


def _settled_fields(o: Observer, *values: Any) -> bool:
    """Read all attributes of objects; return whether no code of a user's is in them."""
    found = [
        o.child(value, each, f".{name}")
        for value in values
        for name, each in (lookup.fields_of(value) or {}).items()
    ]
    return all(map(o.settled, found))


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
    """Return the value that a trusted leaf gets for an argument."""
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
        step = lookup.looked_up(o, kind, "step")[1]
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
        o.refuse(f"it calls {f.__name__}(), a cache, with what may change")
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
    held = o.child(f, f.args, ".args")
    words = o.child(f, f.keywords, ".keywords")
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
    if lookup.looked_up(o, meta, "__call__")[0] is not type:
        o.refuse(f"it makes {cls.__name__}, whose metaclass has a __call__ of its own")
    if o.refused:
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


def _builtin(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a C function or method."""
    name = f.__name__
    if type(f) in (MethodDescriptorType, WrapperDescriptorType):
        return _of_owner(o, f, *args, kwargs=kwargs) if args else f(**kwargs)
    owner = f.__self__
    if owner is None or type(owner) is ModuleType:
        module = f.__module__ or getattr(owner, "__name__", "")
        if module.partition(".")[0] == "numpy":
            return _numpy(o, f, args, kwargs)
        letters = _LETTERS.get(f, "r" if module in _PURE_MODULES else None)
        if letters is None:
            o.refuse(f"it calls {name}()")
            return f(*args, **kwargs)
        return _native(o, f, letters, args, kwargs)
    if not is_a(owner, type):
        return _of_owner(o, f, owner, *args, kwargs=kwargs, bound=True)
    letters = _OF_CLASSES.get(name)
    if name == "__new__" and args and is_a(args[0], type):
        letters = "h" + _letters(owner)
        if owner is object:
            args, kwargs = args[:1], {}
    if letters is None:
        o.refuse(f"it calls {owner.__name__}.{name}()")
        letters = "h"
    return _native(o, f, letters, args, kwargs)


def _native(
    o: Observer, f: Any, letters: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call C code that does with its arguments what letters say, and nothing else."""
    holds = "m" in letters or (letters == "h" and f not in (max, min))  # whatever it is called
    if letters in ("tc", "tC") and len(args) == 1 and not {"func", "key"} & kwargs.keys():
        letters = "T"  # C code adds or compares the elements itself
    given = [
        _passed(o, f, letters[min(i, len(letters) - 1)], value) for i, value in enumerate(args)
    ]
    words = {
        k: _passed(o, f, "h" if holds else _WORDS.get(k, "r"), value) for k, value in kwargs.items()
    }
    return o.local(f(*given, **words))


def _passed(o: Observer, f: Any, letter: str, value: Any) -> Any:
    """Return the value that C code gets for an argument; guard the parts that it reads."""
    if letter == "h" or o.refused or (value is None and letter in "cC"):
        return value
    if letter in "cC":
        return o.callback(value, reads=letter == "C")
    if letter == "k":
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


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that runs in the place of max() or min()."""

    def run(o: Observer, *args: Any, **kwargs: Any) -> Any:
        letter = "h" if kwargs.get("key") is not None else "r"
        if len(args) == 1:
            letter = "t" if letter == "h" else "T"
        return _native(o, function, letter, args, kwargs)

    return run


def _sorted(o: Observer, *args: Any, **kwargs: Any) -> Any:
    return _native(o, sorted, "T" if kwargs.get("key") is None else "t", args, kwargs)


def _filter(o: Observer, *args: Any) -> Any:
    return _native(o, filter, "Ct" if args and args[0] is not None else "hT", args, {})


def _reversed(o: Observer, value: Any) -> Any:
    owner, member = lookup.looked_up(o, type(value), "__reversed__")
    if type(member) is FunctionType:
        return special(o, value, "__reversed__")
    if owner is None and type(lookup.looked_up(o, type(value), "__getitem__")[1]) is FunctionType:
        count = _length(o, value)
        return o.local(special(o, value, "__getitem__", i) for i in range(count)[::-1])
    if not is_atom(value):
        o.contents(value)
    return o.local(reversed(value))


def _length(o: Observer, value: Any) -> int:
    owner, member = lookup.looked_up(o, type(value), "__len__")
    if type(member) is FunctionType and not is_a(value, Tensor):
        return int(o.plain(special(o, value, "__len__")))
    if is_a(value, np.ndarray):
        lookup.check_array(o, value)
    elif not is_atom(value):
        o.guard_length(value, owner)
    return len(value)


def _number(function: Any) -> Callable[..., Any]:
    """Return the function that runs in the place of int(), float() or complex()."""
    name = f"__{function.__name__}__"

    def run(o: Observer, *args: Any, **kwargs: Any) -> Any:
        value = args[0] if args else None
        if function is float and is_a(value, Tensor):
            return _OWN[Tensor.item](o, value)
        if type(lookup.looked_up(o, type(value), name)[1]) is FunctionType and not is_a(
            value, Tensor
        ):
            return function(o.plain(special(o, value, name)), *args[1:], **kwargs)
        return _native(o, function, "r", args, kwargs)

    return run


def _of_owner(
    o: Observer, f: Any, owner: Any, *args: Any, kwargs: dict[str, Any], bound: bool = False
) -> Any:
    """Call a C method of an object."""
    kind, name = type(owner), f.__name__

    def native(letters: str, refused: str | None = None) -> Any:
        if refused is not None:
            o.refuse(refused)
        if bound:
            found = _native(o, f, letters or "r", args, kwargs)
        else:
            found = _native(o, f, "h" + letters, (owner, *args), kwargs)
        return found

    known = None if is_atom(owner) else o.outer(owner)
    label = told(owner) if known is None else known.label
    if name == "__setattr__" and len(args) == 2:
        return lookup.raw_set(o, owner, *args)
    if name in ("__getattribute__", "__getattr__") and len(args) == 1 and not is_a(owner, dict):
        return o.attribute(owner, args[0])
    base: Any = next((b for b in KINDS if issubclass(kind, b)), None)
    if base is not None:
        return _of_container(o, base, owner, name, args, kwargs, native)
    if is_atom(owner):
        reads = name in ("format", "format_map")
        if reads and _has_text_of_its_own((args, *kwargs.values())):
            return native("h", f"it calls {name}() of {told(owner)}")
        return native("t" if name == "join" else "r")
    if known is None:
        if name in ("__init__", "__init_subclass__", "__enter__", "__exit__"):
            return native(_letters(f.__objclass__))
        if is_a(owner, (np.ndarray, np.generic)):
            return native("r")
        if is_a(owner, BaseException):
            return native("h")
        if kind in STREAMS or is_a(owner, (type, super)):
            return native("r" if kind is not GeneratorType else "h")
    elif name in ("__class_getitem__", "__subclasses__"):
        return native("h")
    if name in ("__eq__", "__ne__") and lookup.looked_up(o, kind, name)[0] is object:
        return native("h")
    return native("h", f"it calls {name}() of {label}")


def _of_container(
    o: Observer,
    base: Any,
    owner: Any,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    native: Callable[..., Any],
) -> Any:
    """Call a method of a built-in container."""
    known = o.outer(owner)
    if name == "__getitem__":
        return lookup.item_of(o, base, owner, *args)
    if name == "__setitem__":
        return lookup.set_item_of(o, base, owner, *args)
    if name == "get" and args:
        there = lookup.has_key(o, owner, args[0])
        if there and not o.refused:
            return lookup.item_of(o, base, owner, args[0])
        return args[1] if len(args) > 1 and not o.refused else native("h")
    if name == "__contains__" and issubclass(base, dict):
        return lookup.has_key(o, owner, *args)
    if name == "__len__":
        o.guard_length(owner, base)
        return base.__len__(owner)
    letters = _METHODS.get(f"{base.__name__}.{name}", _METHODS.get(name))
    if letters is None:
        return native("h", f"it calls {name}() of {told(owner)}")
    if letters.startswith("!"):
        if known is not None:
            return native("h", f"it changes {known.label} by {name}()")
        letters = letters[1:]
    else:
        o.contents(owner)
    if letters.startswith("="):
        letters = letters[1:]
        if kwargs.get("key") is None and not o.settled(owner):
            o.refuse(f"it calls {name}() of {told(owner)}")
    return native(letters)


def _numpy(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy: of numbers, of arrays that the call made, and of tensors."""
    module, given = getattr(f, "__module__", None) or type(f).__module__, [*args, *kwargs.values()]
    calls = any(is_a(value, (FunctionType, MethodType, functools.partial)) for value in given)
    if calls or "random" in str(module) or not all(map(o.settled, given)):
        o.refuse(f"it calls {getattr(f, '__name__', type(f).__name__)}() of NumPy")
    return o.local(f(*args, **kwargs))


# What C code does with each argument; the last letter stands for those that follow, too.
#   r  reads it through and through    h  holds it      k  hashes it    c  calls it
#   t  goes through it, holds elements T  reads them    K  hashes them  C  reads what that returns
#   m  takes its items, as dict() does i  goes through it and through its elements
_FUNCTIONS: dict[str, list[Any]] = {
        "r": [
            object, int, float, complex, bool, str, type,
            abs, ascii, bin, bytearray, bytes, chr, divmod, hex, memoryview, oct, ord, pow, range,
            round, slice, operator.index, operator.concat, operator.countOf, operator.indexOf,
            itertools.count, np.dtype,
        ],
        "h": [MethodType, functools.partial, operator.attrgetter, operator.itemgetter],
        "t": [
            list, tuple, zip, itertools.chain, itertools.product, itertools.cycle,
            itertools.pairwise, itertools.zip_longest,
        ],
        "tr": [
            enumerate, collections.deque, itertools.islice, itertools.permutations,
            itertools.combinations, itertools.combinations_with_replacement, itertools.tee,
        ],
        "Tr": [sum], "T": [all, any], "K": [set, frozenset], "m": [dict, collections.OrderedDict],
        "hm": [collections.defaultdict], "ct": [map], "ci": [itertools.starmap],
        "cth": [functools.reduce],
        "Ct": [itertools.takewhile, itertools.dropwhile, itertools.filterfalse],
        "tc": [itertools.accumulate], "tC": [itertools.groupby], "tT": [itertools.compress],
        "hr": [itertools.repeat],
}  # fmt: skip
_LETTERS = {function: letters for letters, each in _FUNCTIONS.items() for function in each}
_WORDS = {"key": "C", "default": "h", "initial": "h", "fillvalue": "h", "func": "c"}
_OF_CLASSES = {
    "fromkeys": "Kh", "from_iterable": "i", "from_bytes": "r", "fromhex": "r", "maketrans": "r",
    "__subclasscheck__": "h", "__instancecheck__": "h", "__init_subclass__": "h",
}  # fmt: skip
# Of containers' methods; "!" changes the container, "=" compares its elements.
_METHODS = {
    name: letters
    for letters, names in {
        "r": "copy keys values items __iter__ __reversed__ most_common elements",
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
        "h": "tuple.__init__ __init_subclass__ __class_getitem__",
        "!hm": "defaultdict.__init__",
    }.items()
    for name in names.split()
}  # fmt: skip


# --- Operators and decisions ----------------------------------------------------------------------


def _has_special(o: Observer, value: Any, name: str) -> bool:
    """Return whether a special method is a Python function that is none of the package's."""
    kind = type(value)
    member = lookup.looked_up(o, kind, name)[1]
    if type(member) is not FunctionType or is_a(value, (np.ndarray, np.generic)):
        return False
    if is_a(value, Tensor):
        c = o.match.constant
        lookup.class_of(o, value)
        o.match.require(f"{c(kind)}.{name} is {c(member)}", f"`{kind.__name__}.{name}` is another")
        return origin(member.__code__) != "own"
    return True


def unary(o: Observer, op: str, value: Any) -> Any:
    """Apply a unary operator."""
    if op == "not":
        return not truth(o, value)
    if not o.settled(value):
        return special(o, value, SPECIAL_UNARY[op])
    return o.local(_NATIVE.unary(op, value))


def inplace(o: Observer, op: str, a: Any, b: Any) -> Any:
    """Apply an in-place operator."""
    return binary(o, op, a, b, True)


def binary(o: Observer, op: str, a: Any, b: Any, inplace: bool = False) -> Any:
    """Apply a binary operator by Python's rules."""
    native = _NATIVE.inplace if inplace else _NATIVE.binary
    if is_atom(a) and is_atom(b):
        return native(op, a, b)
    if op == "%" and type(a) in (str, bytes) and _has_text_of_its_own(b):
        o.refuse(f"it writes {told(b)} into a string")
    name = _BINARY[op]
    forward, reflected = (a, f"__{name}__", b), (b, f"__r{name}__", a)
    ways = [forward, reflected] if not _is_below(b, a) else [reflected, forward]
    for value, spelled, other in [(a, f"__i{name}__", b), *ways][not inplace :]:
        if not o.refused and not is_atom(value) and _has_special(o, value, spelled):
            found = special(o, value, spelled, other)
            if found is not NotImplemented:
                return found
        elif is_a(value, Tensor) and not is_atom(other) and not o.settled(other):
            found = getattr(Tensor, spelled, lambda *_: NotImplemented)(value, other)
            if found is not NotImplemented:
                o.refuse(f"it applies {op} to a Tensor and {told(other)}")
                return found
    changes = inplace and type(a) in CONTAINERS and type(a) not in (tuple, frozenset)
    if changes and o.outer(a) is not None:
        o.refuse(f"it changes {told(a)} in place")
    if changes and not is_atom(b) and op != "*":
        return native(op, a, _passed(o, native, "t" if is_a(a, (list, deque)) else "r", b))
    if type(a) in CONTAINERS and type(b) in CONTAINERS and op in "+|&-^":
        o.contents(a)
        o.contents(b)
        if op != "+":
            lookup.check_keys(o, a)
            lookup.check_keys(o, b)
    elif not (o.settled(a) and o.settled(b)) and not (op == "*" and type(a) in CONTAINERS):
        o.refuse(f"it applies {op} to {told(a)} and {told(b)}")
    return o.local(native(op, a, b))


def _is_below(b: Any, a: Any) -> bool:
    """Return whether an operand is of a proper subclass, and asked first."""
    return type(a) is not type(b) and issubclass(type(b), type(a))


def compare(o: Observer, op: str, a: Any, b: Any) -> Any:
    """Compare two values."""
    if op in ("is", "is not"):
        return identical(o, a, b) is (op == "is")
    if op in ("in", "not in"):
        return contains(o, b, a) is (op == "in")
    ways = [(a, b, _ORDER[op][0]), (b, a, _ORDER[op][1])]
    for x, y, name in ways[::-1] if _is_below(b, a) else ways:
        if o.refused or is_atom(x):
            continue
        if _has_special(o, x, name):
            if type(x) in CONTAINERS or _written_by_dataclass(o, x, name):
                if _settled_fields(o, a, b):  # the fields alone are compared
                    return _NATIVE.compare(op, a, b)
            else:
                found = special(o, x, name, y)
                if found is not NotImplemented:
                    return found
        elif is_a(x, Tensor):
            if not o.settled(y):
                o.refuse(f"it compares a tensor with {told(y)}")
            return o.local(_NATIVE.compare(op, a, b))
    if op in ("==", "!=") and not o.refused:
        if not is_atom(a) and not is_atom(b) and _by_identity(o, a) and _by_identity(o, b):
            return identical(o, a, b) is (op == "==")
        if (is_atom(a) and _by_identity(o, b)) or (is_atom(b) and _by_identity(o, a)):
            return _NATIVE.compare(op, a, b)
    if not (o.settled(a) and o.settled(b)):
        o.refuse(f"it compares {told(a)} with {told(b)}")
    return _NATIVE.compare(op, a, b)


def _written_by_dataclass(o: Observer, value: Any, name: str) -> bool:
    code = lookup.looked_up(o, type(value), name)[1].__code__
    return dataclasses.is_dataclass(type(value)) and not linecache.getlines(code.co_filename)


def _by_identity(o: Observer, value: Any) -> bool:
    return lookup.looked_up(o, type(value), "__eq__")[0] in (
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
    if is_atom(container):
        if not o.settled(value):
            o.refuse(f"it looks for {told(value)}")
        return value in container
    kind = type(container)
    owner, member = lookup.looked_up(o, kind, "__contains__")
    if type(member) is FunctionType and not is_a(container, (Tensor, enum.EnumMeta)):
        return truth(o, special(o, container, "__contains__", value))
    if owner in MAPPINGS:
        return lookup.has_key(o, container, value)
    if owner in SETS:
        o.contents(container)
        lookup.check_key(o, value)
        lookup.check_keys(o, container)
        for key in container if not is_atom(value) else ():
            if not is_atom(key):
                identical(o, value, key)
        return value in container
    if is_a(container, (Tensor, type)) or o.refused:
        if not (o.settled(container) and o.settled(value)):
            o.refuse(f"it looks for {told(value)} in {told(container)}")
        return value in container
    if owner in CONTAINERS:
        o.contents(container)
        elements = list(owner.__iter__(container))  # type: ignore[attr-defined]
    else:
        elements = o.iterate(container)
    return any(_equal(o, element, value) for element in elements)


def _equal(o: Observer, a: Any, b: Any) -> bool:
    """Tell whether two values count as equal, as `in` sees it."""
    same = a is b if is_atom(a) and is_atom(b) else identical(o, a, b)
    return same or truth(o, compare(o, "==", a, b))


def truth(o: Observer, value: Any) -> bool:
    """Decide by a value."""
    if value is True or value is False or value is None or is_atom(value):
        return bool(value)
    known = o.outer(value)
    if is_a(value, np.ndarray):
        lookup.check_array(o, value)
    if o.refused or is_a(value, (Tensor, np.ndarray)):
        return bool(value)
    for name in ("__bool__", "__len__"):
        owner, member = lookup.looked_up(o, type(value), name)
        if type(member) is FunctionType:
            return truth(o, o.plain(special(o, value, name)))
        if owner is not None:
            if known is not None:
                test = f"{'' if value else 'not '}{known.expression}"
                o.match.require(test, f"whether `{known.label}` is empty")
            return bool(value)
    return True


def iterate(o: Observer, value: Any) -> Any:
    """Return an iterator over the elements of a value."""
    if is_atom(value):
        return value
    kind = type(value)
    if is_a(value, Tensor):
        o.outer(value)
        return iter([o.local(each) for each in value])
    owner, member = lookup.looked_up(o, kind, "__iter__")
    if owner in CONTAINERS:
        o.contents(value)
        if o.outer(value) is None:
            return value
        return iter(list(owner.__iter__(value)))  # type: ignore[attr-defined]
    if type(member) is FunctionType and not is_a(value, enum.EnumMeta):
        found = special(o, value, "__iter__")
        return iterate(o, found) if found is not value else o.local(_steps(o, value))
    if type(lookup.looked_up(o, kind, "__next__")[1]) is FunctionType:
        return o.local(_steps(o, value))
    known = o.outer(value)
    strange = owner is None and not is_a(value, np.ndarray)
    if (known is not None or strange) and not is_a(value, enum.EnumMeta):
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


_TEXTS = {
    "": ("__format__", "__str__", "__repr__"), "s": ("__str__", "__repr__"), "r": ("__repr__",),
    "a": ("__repr__",),
}  # fmt: skip


def text(o: Observer, value: Any, conversion: str, spec: str) -> tuple[Any, Any]:
    """Return the text of a value in a string."""
    if is_atom(value) or o.refused:
        return value, conversion
    if is_a(value, Tensor):
        o.refuse("it writes a tensor's values into a string")
        return value, conversion
    for name in _TEXTS[conversion]:
        member = lookup.looked_up(o, type(value), name)[1]
        if type(member) is FunctionType and type(value) not in CONTAINERS:
            if _written_by_dataclass(o, value, name):
                if _settled_fields(o, value) and not _has_text_of_its_own(
                    (lookup.fields_of(value) or {}).values()
                ):
                    return value, conversion
                break
            if name == "__format__":
                return special(o, value, name, spec), None
            return special(o, value, name), ""
    if is_a(value, BaseException) and o.outer(value) is not None:
        o.settled(o.child(value, value.args, ".args"))
        return value, conversion
    if is_a(value, type) and lookup.is_plain_class(o, value):
        o.outer(value)
        c = o.match.constant(value)
        o.match.same(f"repr({c})", repr(value), f"the name of {value.__name__}")
    elif not o.settled(value) or _has_text_of_its_own(value):
        o.refuse(f"it writes {told(value)} into a string")
    return value, conversion


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
    kind = type(manager)
    if kind.__module__.startswith("oneflow_lite"):
        o.outer(manager)
        return manager
    enter, leave = (lookup.looked_up(o, kind, name)[1] for name in ("__enter__", "__exit__"))
    if type(enter) is FunctionType and type(leave) is FunctionType:
        o.has_handlers = True
        return _Entered(o, manager)
    o.refuse(f"it enters {told(manager)}")
    return manager


class _Entered:
    """A context manager of a user's, or of Python's library, whose methods are observed."""

    def __init__(self, o: Observer, manager: Any) -> None:
        self.o, self.manager = o, manager

    def __enter__(self) -> Any:
        return special(self.o, self.manager, "__enter__")

    def __exit__(self, *error: Any) -> bool:
        for each in error[1:]:
            self.o.local(each)
        swallowed: bool = self.o.truth(special(self.o, self.manager, "__exit__", *error))
        if swallowed and error[1] is not None:
            self.o.caught(None, error[1])
        return swallowed


# --- Builtins with ways of their own --------------------------------------------------------------


def _getattr(o: Observer, value: Any, name: str, *default: Any) -> Any:
    try:
        return o.attribute(value, _plain_name(o, name))
    except AttributeError:
        if not default:
            raise
        return default[0]


def _hasattr(o: Observer, value: Any, name: str) -> bool:
    return _getattr(o, value, name, MISSING) is not MISSING


def _plain_name(o: Observer, name: Any) -> Any:
    """Return the name of an attribute; one of a class of a user's may have code."""
    if type(name) is not str:
        o.refuse(f"it names an attribute by {told(name)}")
    return name


def _isinstance(o: Observer, value: Any, kind: Any) -> bool:
    _check_asked(o, kind, "__instancecheck__")
    if not is_atom(value):
        lookup.require_bases(o, lookup.class_of(o, value))
    return isinstance(value, kind)


def _issubclass(o: Observer, cls: Any, kind: Any) -> bool:
    _check_asked(o, kind, "__subclasscheck__")
    if is_a(cls, type):
        lookup.require_bases(o, cls)
    return issubclass(cls, kind)


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
    if len(args) == 1:
        if is_atom(args[0]):
            return lookup.learned(o, type(args[0]), type(args[0]).__name__)
        return lookup.class_of(o, args[0])
    o.refuse("it makes a class")
    return type(*args, **kwargs)


def _callable(o: Observer, value: Any) -> bool:
    if not is_atom(value):
        lookup.method(o, value, "__call__")
    return callable(value)


def _iter(o: Observer, value: Any, *sentinel: Any) -> Any:
    if sentinel:
        o.refuse("it calls iter() with a sentinel")
        return iter(value, *sentinel)
    return o.local(iter(o.iterate(value)))


def _next(o: Observer, iterator: Any, *default: Any) -> Any:
    if type(lookup.looked_up(o, type(iterator), "__next__")[1]) is FunctionType:
        try:
            return special(o, iterator, "__next__")
        except StopIteration:
            if not default:
                raise
            return default[0]
    if o.outer(iterator) is not None:
        o.refuse(f"it takes the next element of {told(iterator)}")
    return next(iterator, *default)


def _super(o: Observer, *args: Any) -> Any:
    for value in args:
        o.outer(value)
    return o.local(_NATIVE.call(super, *args))


def _count_elements(o: Observer, counts: Any, values: Any) -> None:
    if o.outer(counts) is not None:
        o.refuse(f"it counts in {told(counts)}")
    _native(o, collections._count_elements, "hK", (counts, values), {})  # type: ignore[attr-defined]


def _of_frame(function: Any) -> Callable[..., Any]:
    """Return the function for a builtin that looks at its caller's frame."""

    def run(o: Observer, *args: Any, **kwargs: Any) -> Any:
        o.refuse(f"it calls {function.__name__}()")
        return _NATIVE.call(function, *args, **kwargs)

    return run


def _vars(o: Observer, *args: Any) -> Any:
    return o.attribute(*args, "__dict__") if args else _of_frame(vars)(o)


def _on(method: str, *symbol: str) -> Callable[..., Any]:
    """Return the function that runs in the place of one like those of the module operator."""
    return lambda o, *operands: getattr(o, method)(*symbol, *operands)


def _bool(o: Observer, *args: Any) -> bool:
    return truth(o, *args) if args else False


def _str(o: Observer, *args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or kwargs:
        return _native(o, str, "r", args, kwargs)
    return o.format(args[0], "s", "")


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
    **{function: _of_frame(function) for function in LOOK_AT_FRAME}, super: _super,
    getattr: _getattr, hasattr: _hasattr, isinstance: _isinstance, issubclass: _issubclass,
    type: _type, iter: _iter, next: _next, id: _id, vars: _vars, hash: _hash, len: _length,
    callable: _callable,
    repr: lambda o, value: o.format(value, "r", ""),
    format: lambda o, value, spec="": o.format(value, "", spec),
    setattr: lambda o, f, name, value: o.set_attribute(f, _plain_name(o, name), value),
    delattr: lambda o, f, name: o.delete_attribute(f, _plain_name(o, name)),
    str: _str, bool: _bool, max: _extreme(max), min: _extreme(min), sorted: _sorted,
    filter: _filter, reversed: _reversed, operator.getitem: _on("item"),
    operator.setitem: _on("set_item"), operator.delitem: _on("delete_item"),
    operator.truth: _on("truth"),
    operator.contains: lambda o, a, b: o.compare("in", b, a),
    **{function: _number(function) for function in (int, float, complex)},
    **{
        function: _on(method, symbol)
        for method, table in (("binary", BINARY), ("inplace", INPLACE), ("unary", UNARY))
        for symbol, function in table.items()
    },
    **{f: _on("compare", s) for s, f in COMPARE.items() if type(f) is BuiltinFunctionType},
    collections._count_elements: _count_elements,  # type: ignore[attr-defined]
    staticmethod: lambda o, f: o.local(staticmethod(f)),
}  # fmt: skip


def _apply(o: Observer, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a Function of a user's: its methods are observed, in the backward pass as well."""
    members = {}
    for name in ("forward", "backward", "setup_context", "jvp", "vjp"):
        owner, member = lookup.looked_up(o, cls, name)
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
    """Return the function for a method that reads a tensor; values handed on are read later."""
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
    """Return the function for a method whose answer no other guard settles."""
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
