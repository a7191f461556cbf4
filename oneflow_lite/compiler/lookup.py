"""Python's rules of attribute and item access, followed without running anybody's code unseen."""

from __future__ import annotations

import abc
import enum
import functools
import operator
import types
import weakref
from collections import namedtuple
from collections.abc import Sequence
from types import FunctionType, MemberDescriptorType, MethodType
from typing import Any

import numpy as np

from oneflow_lite.compiler import same as kinds
from oneflow_lite.compiler.same import CONTAINERS, MAPPINGS, MISSING, is_a, is_atom, told
from oneflow_lite.compiler.stand_ins import ObjectStandIn, compiled_of
from oneflow_lite.nn.module import Module
from oneflow_lite.static.ir import tree
from oneflow_lite.static.ir.location import is_own_class as is_own_class, is_own_code
from oneflow_lite.tensors.tensor import OWN_FIELDS, Tensor, make_tensor

Observer = Any  # which stands on this module

members: Any = type.__dict__["__dict__"].__get__
_mro: Any = type.__dict__["__mro__"].__get__
_flags: Any = type.__dict__["__flags__"].__get__
_METAS = (type, abc.ABCMeta, enum.EnumMeta)
_IN_C = (types.MethodDescriptorType, types.WrapperDescriptorType)
_PLAIN = (FunctionType, property, *_IN_C)  # C.name is it
_FIELD = type(vars(namedtuple("_Named", "field"))["field"])
_PLACES = ("_parameters", "_buffers", "_modules")
# Of the package's own classes, these stay, but for those of all modules.
_OF_ATTRIBUTES = ("__getattribute__", "__getattr__", "__setattr__", "__get__", "__set__")
_GETATTR, _SETATTR = vars(Module)["__getattr__"], vars(Module)["__setattr__"]
# Attributes of tensors that guards, or the ops that made them, settle.
_SETTLED = frozenset(
    "shape dtype device ndim requires_grad is_leaf is_cuda is_cpu is_sparse T mT H mH data real "
    "imag itemsize nbytes layout is_nested is_meta is_quantized is_mps is_xpu is_ipu is_maia "
    "is_mkldnn is_mtia is_sparse_csr is_vulkan is_xla".split()
)
# Methods of tensors that look at what a replay does not keep the same.
_UNSETTLED = frozenset(
    "data_ptr is_set_to untyped_storage storage_offset is_inference is_pinned is_shared "
    "__reduce_ex__ __hash__ __dlpack__ __array__ __array_interface__ has_names".split()
)

# Special methods by which C code asks what it is given.
_C_ASKS = "abs array bool ceil complex contains divmod eq float floor ge getitem gt index int iter"
_C_ASKS += " le len lt ne pow reversed round setitem trunc"
_ASKED = [f"__{name}__" for name in _C_ASKS.split()]


def static(kind: type, name: str) -> tuple[type | None, Any]:
    """Return the class in the mro that has a member, and the member; no descriptor runs.

    >>> from oneflow_lite.compiler.lookup import static
    >>> static(bool, "bit_length")[0], static(int, "nothing")[0]
    (<class 'int'>, None)
    """
    for cls in _mro(kind) or type.__getattribute__(kind, "__mro__"):  # which fills in those of C
        table = members(cls)
        if name in table:
            return cls, table[name]
    return None, MISSING


def is_namedtuple(kind: type) -> bool:
    """Return whether a type was made by namedtuple() and added nothing to tuple's own ways."""
    ways = [static(kind, name)[0] for name in ("__iter__", "__len__", "__getitem__")]
    return tree.is_namedtuple(kind) and ways == [tuple] * 3


def fields_of(value: Any) -> dict[str, Any] | None:
    """Return an object's own `__dict__`, None where it has none."""
    owner, member = static(type(value), "__dict__")
    if owner is None or type(member) not in (types.GetSetDescriptorType, MemberDescriptorType):
        return None
    return member.__get__(value)  # type: ignore[no-any-return]


def slots_of(value: Any) -> dict[MemberDescriptorType, Any]:
    """Return the values in an object's slots."""
    classes = [cls for cls in _mro(type(value)) if "__slots__" in members(cls)]
    slots = [each for cls in classes for each in members(cls).values()]
    contents = {slot: _in_slot(value, slot) for slot in slots if type(slot) is MemberDescriptorType}
    return {slot: content for slot, content in contents.items() if content is not MISSING}


def _in_slot(value: Any, slot: MemberDescriptorType) -> Any:
    try:
        return slot.__get__(value)
    except AttributeError:
        return MISSING


def original(o: Observer, value: Any) -> Any:
    """Return the module or object that a compiled one stands for, else the value itself."""
    if not issubclass(type(value), ObjectStandIn):
        return value
    known, inner = o.outer(value), compiled_of(value).__wrapped__
    if known is not None and o.known(inner) is None:  # the stand-in keeps its original for good
        o.learn(inner, o.match.constant(inner), known.label, True)
    return inner


def own_attribute(value: Any, name: str) -> Any:
    """Return the object's own attribute of a name; MISSING when there is none."""
    fields = fields_of(value)
    if fields is not None and name in fields:
        return fields[name]
    _, member = static(type(value), name)
    return _in_slot(value, member) if type(member) is MemberDescriptorType else MISSING


def at_place(holder: Any, kind: str, key: Any) -> Any:
    """Return the content of an attribute, an item or a cell; MISSING for nothing."""
    if kind == "attribute":
        return own_attribute(holder, key)
    try:
        if kind == "item":
            return dict.get(holder, key, MISSING) if is_a(holder, dict) else holder[key]
        return holder.cell_contents
    except (IndexError, ValueError):
        return MISSING


def attribute(o: Observer, value: Any, name: str) -> Any:
    """Read an attribute by Python's rules; guard all that it depends on."""
    kind = type(value)
    if is_a(value, Tensor):
        return _of_tensor(o, value, name)
    if type(looked_up(o, kind, "__getattribute__")[1]) is FunctionType:
        o.refuse(f"{kind.__name__} has a __getattribute__ of its own")
    fields = None if is_a(value, type) or o.refused else fields_of(value)
    if name == "__dict__" and fields is not None:
        o.look_at(*[x for place, x in o.written.items() if place[0] == id(value)])
        o.exposed.update((id(value), id(fields)))
        return o.child(value, fields, ".__dict__")
    native = functools.partial(getattr, value, name)
    if (found := o.written_at(value, "attribute", name, native)) is not MISSING:
        return found
    if issubclass(kind, types.ModuleType):
        return _of_module(o, value, name)
    if kind is super:
        return _of_super(o, value, name)
    if kind is MethodType and name not in ("__func__", "__self__", "__name__"):
        return attribute(o, value.__func__, name)
    in_c = kind is functools.partial or kind.__module__ in ("builtins", "numpy")
    if is_a(value, enum.Enum):
        if name in ("value", "name"):
            return o.child(value, getattr(value, name), f".{name}")
    elif is_atom(value) or (in_c and not is_a(value, type)):
        if is_a(value, BaseException) and o.outer(value) is not None:
            o.refuse(f"it reads {name} of {o.named(value)}")
        content = getattr(value, name)
        # A method is bound at each reading.
        made = (types.BuiltinFunctionType, types.MethodWrapperType)
        is_new = is_atom(value) or type(content) in made
        return o.local(content) if is_new else o.child(value, content, f".{name}")
    return _of_object(o, value, name)


def _of_module(o: Observer, module: Any, name: str) -> Any:
    content = fields_of(module) or {}
    if name not in content:
        own = str(content.get("__name__", "")).partition(".")[0] == "oneflow_lite"
        if "__getattr__" in content and not own:
            o.refuse(f"it reads {name} of {o.named(module)}, which has a __getattr__")
        if getattr(module, name, MISSING) is MISSING:  # else it is loaded late
            o.guard(module, lambda e: f"not hasattr({e}, {name!r})", f"whether @.{name} is there")
    return o.child(module, getattr(module, name), f".{name}")


def class_of(o: Observer, value: Any) -> type:
    """Return the class of an object; the guards know it from now on."""
    if o.deferred(value):
        return type(value)
    kind, known = type(value), o.outer(value)
    if known is not None and known.held and not is_a(value, type):
        name = o.match.constant(kind)
        o.guard(value, lambda e: f"type({e}) is {name}", "type(@)")
    return learned(o, kind, kind.__name__)  # type: ignore[no-any-return]


def looked_up(o: Observer, kind: type, name: str) -> tuple[type | None, Any]:
    """Do as `static`; where the class may change, the guards know."""
    place = id(kind), name
    member: tuple[type | None, Any] | None = o.looked_up.get(place)
    if member is None:
        member = static(kind, name)
        if not o.refused:
            o.looked_up[place] = member
            stays = name in _OF_ATTRIBUTES and is_own_class(kind)
            if may_change(kind) and (not stays or member[0] is Module):
                _require_member(o, Module if stays else kind, *member, name)
    return member


def _require_member(o: Observer, kind: type, owner: type | None, member: Any, name: str) -> None:
    """Guard that a class has this member, or that it has none of this name."""
    c, label = o.match.constant, f"{kind.__name__}.{name}"
    if owner is not None and name.isidentifier() and type(kind) in _METAS:
        if type(member) in _PLAIN:
            o.match.require(f"{c(kind)}.{name} is {c(member)}", label)
            return
        if looked_up(o, type(member), "__get__")[0] is None:  # who reads the value, guards it
            o.match.require(f"type({c(kind)}.{name}) is {c(type(member))}", f"type({label})")
            return
    _require_in(o, _mro(kind), name)
    require_bases(o, kind)


def _require_in(o: Observer, classes: Sequence[type], name: str) -> tuple[type | None, Any]:
    """Guard the member of a name in the first class that has it, and its absence before."""
    for cls in classes:
        label, there = f"{cls.__name__}.{name}", members(cls).get(name, MISSING)
        if may_change(cls):
            table = o.match.constant(members(cls))
            if there is not MISSING:
                o.match.require(f"{table}.get({name!r}) is {o.match.constant(there)}", label)
            elif not is_own_class(cls):
                o.match.require(f"{name!r} not in {table}", f"whether {label} is there")
        if there is not MISSING:
            return cls, there
    return None, MISSING


def may_change(kind: type) -> bool:
    """Return whether the members of a class may change: those of classes in C stay."""
    return bool(_flags(kind) & 1 << 9)


def require_bases(o: Observer, kind: type) -> None:
    """Guard the bases of a class."""
    if not o.refused and may_change(kind):
        where, mro = f"{o.match.constant(kind)}.__mro__", o.match.constant(_mro(kind))
        o.match.require(f"{where} is {mro}", f"the bases of {kind.__name__}")


def method(o: Observer, value: Any, name: str) -> Any:
    """Return the special method that Python calls for an operation; MISSING when there is none."""
    return looked_up(o, class_of(o, value), name)[1]


def special(o: Observer, value: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a special method as Python does for an operation; refuse where it is not a user's."""
    if not o.refused:
        inner = original(o, value)  # of a stand-in, those of the object are meant
        member = method(o, inner, name)
        if type(member) is FunctionType:
            result = o.plain(o.call(learned(o, member, name), inner, *args, **kwargs))
            return value if result is inner else result
        o.refuse(f"it applies {name} to {o.named(value)}")
    return getattr(type(value), name)(value, *args, **kwargs)


def _of_object(o: Observer, value: Any, name: str) -> Any:
    """Read an attribute of an object, or of a class."""
    kind = class_of(o, value)
    if o.refused:
        return getattr(value, name)
    if name == "__class__":
        return kind
    try:
        return stored(o, value, kind, name)
    except AttributeError:
        getter = method(o, value, "__getattr__")
        if getter is MISSING:
            raise
        return o.call(learned(o, getter, "__getattr__"), value, name)


def stored(o: Observer, value: Any, kind: type, name: str) -> Any:
    """Read an attribute as `__getattribute__` of object and of type do."""
    native, is_class = functools.partial(getattr, value, name), is_a(value, type)
    fields = None if is_class else fields_of(value)
    owner, member = looked_up(o, kind, name)
    if type(member) is MemberDescriptorType and own_attribute(value, name) is MISSING:
        o.refuse(f"it reads {name} of {o.named(value)}, which is empty")
        return native()  # which raises
    comes_first = owner is not None and looked_up(o, type(member), "__set__")[0] is not None
    if is_class and not comes_first:
        above, own = looked_up(o, value, name)
        if above is not None:
            return _got(o, MISSING, value, name, own, native)
    if fields is not None and name in fields and not comes_first:
        return o.child(value, fields[name], f".{name}")
    if owner is not None:
        if not comes_first:
            _require_unset(o, value, name)
        return _got(o, value, kind, name, member, native)
    if issubclass(kind, Module) and looked_up(o, kind, "__getattr__")[1] is _GETATTR:
        for place in _PLACES:
            if fields is not None and name in fields.get(place, ()):
                _require_unset(o, value, name)
                return o.child(value, fields[place][name], f".{place}[{name!r}]")
    _require_absent(o, value, name)
    if looked_up(o, kind, "__getattr__")[0] is None:
        content = native()  # which raises, but for proxies and the like
        o.refuse(f"it reads {name} of {o.named(value)}, which has ways of its own")
        return content
    what = f"{kind.__name__!r} object has no attribute {name!r}"
    raise AttributeError(what, name=name, obj=value)


def _require_unset(o: Observer, value: Any, name: str) -> None:
    """Guard that an object has not itself an attribute of this name."""
    if fields_of(value) is not None:
        bind, label = o.match.bind, f"whether @.{name} is there"
        o.guard(value, lambda e: f"{name!r} not in {bind(f'{e}.__dict__')}", label)


def _require_absent(o: Observer, value: Any, name: str) -> None:
    """Guard that neither an object nor its class has an attribute of this name."""
    label = f"whether @.{name} is there"
    if looked_up(o, type(value), "__getattr__")[0] is None:
        o.guard(value, lambda e: f"not hasattr({e}, {name!r})", label)
        return
    _require_unset(o, value, name)
    kind = o.match.constant(type(value))
    o.guard(value, lambda _: f"not hasattr({kind}, {name!r})", label)


def _got(o: Observer, value: Any, cls: type, name: str, member: Any, native: Any) -> Any:
    """Return the value of a class's member for an object; for the class where that is MISSING.

    `native` reads it as Python does; guards know the member already.
    """
    kind, of_object = type(member), value is not MISSING
    if kind is FunctionType:
        learned(o, member, f"{cls.__name__}.{name}")
        return o.local(MethodType(member, value)) if of_object else member
    if kind is staticmethod:
        return learned(o, member.__func__, name)
    if kind is classmethod:
        return o.local(MethodType(learned(o, member.__func__, name), cls))
    if kind in _IN_C:
        return o.local(native()) if of_object else member
    owner, getter = looked_up(o, kind, "__get__")
    if type(getter) is FunctionType:
        learned(o, member, name)
        given = value if of_object else None
        return o.call(learned(o, getter, "__get__"), member, given, cls)
    if owner is None or is_a(member, type) or not of_object:
        return o.child(cls, member if owner is None else native(), f".{name}")
    if owner is property and member.fget is not None:
        return o.call(o.child(learned(o, member, name), member.fget, ".fget"), value)
    if not is_atom(member) and kind is not _FIELD:
        o.refuse(f"it reads {cls.__name__}.{name}, {o.named(member)}")
    return o.child(value, native(), f".{name}")


def learned(o: Observer, value: Any, label: str) -> Any:
    """Take note of an object that a guard has settled already; return it."""
    if o.known(value) is None and not is_atom(value):
        o.learn(value, o.match.constant(value), label, True)
    return value


def _of_super(o: Observer, value: Any, name: str) -> Any:
    start, native = value.__self_class__, functools.partial(getattr, value, name)
    require_bases(o, start)
    learned(o, start, start.__name__)
    mro = _mro(start)
    owner, member = _require_in(o, mro[mro.index(value.__thisclass__) + 1 :], name)
    if owner is None:
        return native()  # which raises
    learned(o, owner, owner.__name__)
    whose = start if type(member) is classmethod else owner
    return _got(o, value.__self__, whose, name, member, native)


# --- Tensors --------------------------------------------------------------------------------------


def _of_tensor(o: Observer, tensor: Tensor, name: str) -> Any:
    kind, native = type(tensor), functools.partial(getattr, tensor, name)
    o.outer(tensor)
    if o.refused:
        return native()
    if name == "__class__":
        return class_of(o, tensor)
    if name == "grad":
        o.reads_gradients = True
        state = o.states.get(id(tensor))
        if state is not None and state.edge is state.grad is None:
            o.guard(tensor, lambda e: f"{e}.grad is None", "whether @ has a gradient")
        return o.local(native())
    if name in tensor.__dict__ and name not in OWN_FIELDS:
        found = o.written_at(tensor, "attribute", name, native)
        return o.child(tensor, native(), f".{name}") if found is MISSING else found
    owner, member = looked_up(o, kind, name)
    if owner is None:
        o.guard(tensor, lambda e: f"not hasattr({e}, {name!r})", f"whether @.{name} is there")
        return native()
    is_field = is_own_class(owner) and type(member) is not FunctionType
    if name in _UNSETTLED or (is_field and name not in _SETTLED):
        o.refuse(f"it looks at {name} of a tensor")
    if is_field or o.refused:
        return o.local(native())
    return _got(o, tensor, kind, name, member, native)


# --- Writing --------------------------------------------------------------------------------------


def set_attribute(o: Observer, value: Any, name: str, new: Any) -> None:
    """Write an attribute by Python's rules."""
    kind = type(value)
    setter = looked_up(o, kind, "__setattr__")[1]
    if is_a(value, Tensor) and looked_up(o, kind, name)[0] is not None:
        o.reads_gradients |= name == "grad"  # such are kept by tensor states
        o.outer(value)
        setattr(value, name, new)
    elif setter is _SETATTR:
        _set_in_module(o, value, name, new)
    elif type(setter) is FunctionType and not is_a(value, Tensor):
        special(o, value, "__setattr__", name, new)
    elif setter is vars(dict)["__setitem__"]:
        set_item(o, value, name, new)
    else:
        raw_set(o, value, name, new)


def _set_in_module(o: Observer, module: Any, name: str, new: Any) -> None:
    fields, outer = fields_of(module) or {}, o.outer(module) is not None
    places = [fields[place] for place in _PLACES if name in fields.get(place, ())]
    if places and outer:
        new = o.store(places[0], "item", name, new)
    elif outer and is_a(new, (Module, Tensor)) and type(new) is not Tensor:
        o.refuse(f"it registers {o.named(new)} in a module")
    elif not places:
        raw_set(o, module, name, new)
        return
    setattr(module, name, new)


def raw_set(o: Observer, value: Any, name: str, new: Any) -> None:
    """Write an attribute as `object.__setattr__` does."""
    kind = type(value)
    member = looked_up(o, kind, name)[1]
    setter, given = looked_up(o, type(member), "__set__")[1], [member, value, new]
    if type(member) is property:
        setter, given = o.child(learned(o, member, name), member.fset, ".fset"), [value, new]
    if type(setter) is FunctionType:
        class_of(o, value)
        learned(o, member, name)
        o.call(learned(o, setter, name), *given)
        return
    outer = o.outer(value) is not None
    if name == "__class__" or (outer and is_a(value, (type, FunctionType))):
        o.refuse(f"it sets {name} of {o.named(value)}")
    if outer:
        new = o.store(value, "attribute", name, new)
    new = o.plain(new)
    owner, setter = looked_up(o, kind, "__setattr__")
    if type(setter) is FunctionType and owner is not Module:
        base = type if is_a(value, type) else object
        base.__setattr__(value, name, new)  # which a method of the class calls at its end
    else:
        setattr(value, name, new)


def delete_attribute(o: Observer, value: Any, name: str) -> None:
    """Delete an attribute of what the call made."""
    has_deleter = type(looked_up(o, type(value), name)[1]) is property
    if o.outer(value) is not None or has_deleter or has_code(o, type(value), "__delattr__"):
        o.refuse(f"it deletes {name} of {o.named(value)}")
    delattr(value, name)


# --- Items ----------------------------------------------------------------------------------------


def item(o: Observer, value: Any, key: Any) -> Any:
    """Read an item."""
    kind = type(value)
    owner, getter = looked_up(o, kind, "__getitem__")
    if owner in CONTAINERS:
        return item_of(o, owner, value, key)
    plain = is_a(value, (Tensor, np.ndarray)) or kind is enum.EnumMeta
    if type(getter) is FunctionType and not plain:
        return special(o, value, "__getitem__", key)
    if (made := of_arrays(o, operator.getitem, (value, key), {})) is not MISSING:
        return made
    if plain or is_atom(value) or kind.__module__ in ("typing", "types"):
        _check_index(o, value, key)
    else:
        o.refuse(f"it reads an item of {o.named(value)}")
    return o.local(value[key])


def _check_index(o: Observer, value: Any, key: Any) -> None:
    """Refuse an index into a tensor, an array or a string that code of a user's is in."""
    check_array(o, value)
    if is_a(value, Tensor):
        o.outer(value)
    if not o.settled(key):
        o.refuse(f"it indexes {o.named(value)} with {o.named(key)}")


def item_of(o: Observer, base: Any, value: Any, key: Any) -> Any:
    """Read an item as a built-in container does, whatever a subclass does."""
    getter = base.__getitem__
    if issubclass(base, dict):
        if not has_key(o, value, key):
            return getter(value, key) if o.refused else _missing(o, value, key)
    elif type(key) not in (int, bool) or not -base.__len__(value) <= key < base.__len__(value):
        o.contents(value)
        if not is_atom(key):
            o.refuse(f"it indexes with {o.named(key)}")
        return o.local(getter(value, key))
    content = getter(value, key)
    if (found := o.written_at(value, "item", key, lambda: content)) is not MISSING:
        return found
    known, spelled = o.outer(value), in_guards(o, key)
    if known is not None and (found := o.unsettled(value, "item", key, content)) is not MISSING:
        return found
    if known is not None and looked_up(o, type(value), "__getitem__")[0] not in CONTAINERS:
        where = f"{o.match.constant(getter)}({known.expression}, {spelled})"
        return o.read(content, where, f"{known.label}[{told(key)}]", known.held)
    return o.child(value, content, f"[{spelled}]", f"[{told(key)}]")


def _missing(o: Observer, value: Any, key: Any) -> Any:
    """Read an item of a dict that is not there."""
    _, filler = looked_up(o, type(value), "__missing__")
    if type(filler) is FunctionType:
        return special(o, value, "__missing__", key)
    if filler is not MISSING:  # that of defaultdict
        if o.outer(value) is not None:
            o.refuse(f"it fills in {o.outer(value).label}[{o.named(key)}]")
        elif value.default_factory is not None and not o.refused:
            dict.__setitem__(value, key, o.plain(o.call(value.default_factory)))
    return dict.__getitem__(value, key) if filler is MISSING else value[key]


def has_key(o: Observer, container: Any, key: Any) -> bool:
    """Return whether a dict or set has a key; guards know. Once a call is refused, it is False."""
    check_key(o, key)
    check_keys(o, container)
    base: Any = next(b for b in kinds.KINDS if is_a(container, b))
    there = not o.refused and base.__contains__(container, key)  # hashed once, even if refused
    if not o.refused and (id(container), "item", key) not in o.stores:
        asked = f"{in_guards(o, key)} {'in' if there else 'not in'} "
        own = looked_up(o, type(container), "__contains__")[0] in CONTAINERS
        label = f"whether {told(key)} is in @"
        o.guard(container, lambda e: asked + (e if own else f"dict.keys({e})"), label)
    return there


def check_array(o: Observer, value: Any) -> None:
    """Refuse a NumPy array from outside: nobody sees when its elements change."""
    if is_a(value, np.ndarray) and o.outer(value) is not None:
        o.refuse("it looks at a NumPy array from outside")


def in_guards(o: Observer, key: Any) -> str:
    """Return the expression of a key in the guards."""
    known = o.known(key)
    if known is not None and known.expression is not None:
        return str(known.expression)
    short = type(key) is str or (type(key) is int and key.bit_length() < 64)
    return repr(key) if short else o.match.constant(key)


def set_item(o: Observer, value: Any, key: Any, new: Any) -> None:
    """Write an item."""
    owner, setter = looked_up(o, type(value), "__setitem__")
    if is_a(value, Tensor):
        _check_index(o, value, key)
        value[key] = new
    elif type(setter) is FunctionType:
        special(o, value, "__setitem__", key, new)
    else:
        set_item_of(o, owner, value, key, new)


def set_item_of(o: Observer, base: Any, value: Any, key: Any, new: Any) -> None:
    """Write an item as a built-in container does, whatever a subclass does."""
    if is_a(key, slice):
        if is_a(value, list):
            new = o.local(list(o.iterate(new)))
    elif base in MAPPINGS:
        check_key(o, key)
        check_keys(o, value)
    if o.outer(value) is not None:
        if base in MAPPINGS and is_atom(key):
            new = o.store(value, "item", key, new)
        elif type(value) is list and type(key) in (int, bool) and -len(value) <= key < len(value):
            new = o.store(value, "item", key % len(value), new)
        else:
            o.refuse(f"it changes {o.named(value)}")
    new = o.plain(new)
    if base in CONTAINERS and not o.refused:
        base.__setitem__(value, key, new)
    else:
        value[key] = new


def delete_item(o: Observer, value: Any, key: Any) -> None:
    """Delete an item of what the call made."""
    check_key(o, key)
    if o.outer(value) is not None or has_code(o, type(value), "__delitem__"):
        o.refuse(f"it deletes {o.named(key)} of {o.named(value)}")
    del value[key]


# Functions of NumPy, methods of its arrays and functors that read arrays, and nothing else.
_OF_ARRAYS = frozenset(
    """
    array asarray ascontiguousarray expand_dims moveaxis astype copy flatten ravel reshape squeeze
    swapaxes transpose tensor from_numpy as_tensor getitem add sub mul truediv
    """.split()
)


def of_arrays(o: Observer, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a function makes of NumPy arrays from outside; MISSING where none is among them.

    The guards make it again, before a replay begins, and feed it if it is a tensor.
    """
    arrays = [known for known in map(o.known, args) if known and type(known.value) is np.ndarray]
    if not arrays or getattr(f, "__name__", "") not in _OF_ARRAYS:
        return MISSING
    given, numeric = [*args, *kwargs.values()], "biufc"
    plain = [x for x in given if is_atom(x) or (is_a(x, type) and x.__module__ == "numpy")]
    o.look_at(*given, inside=True)
    fit = all([known.expression and known.value.dtype.kind in numeric for known in arrays])
    if o.refused or not fit or len(arrays) + len(plain) < len(given):
        return MISSING
    made, c = f(*args, **kwargs), o.match.constant
    spelled = [in_guards(o, x) for x in args]
    spelled += [f"{k}={in_guards(o, x)}" for k, x in kwargs.items()]
    text, label = f"{c(f)}({', '.join(spelled)})", f"{f.__name__}({arrays[0].label})"
    if type(made) not in (np.ndarray, Tensor):
        return o.read(made, text, label, False)
    for known in arrays:  # fed as well, so that nothing writes there unseen
        twin = o.match.bind(f"{c(make_tensor)}({known.expression})")
        if twin not in o.match.feed_names:
            o.learn(make_tensor(known.value), twin, known.label, False)
        o.arrays.append(known.value)
    o.learn(made, o.match.bind(f"{text}  # {len(o.match.tensors)}"), label, False)
    return made


# --- Hashing --------------------------------------------------------------------------------------


def has_code(o: Observer, kind: type, *names: str) -> bool:
    """Return whether a class answers to some special methods with Python code that is a user's."""
    methods = [looked_up(o, kind, name) for name in names or _READING]
    return any(
        type(member) is FunctionType
        and not (is_own_class(owner) or str(owner.__module__) == "enum")
        for owner, member in methods
    )


def is_finalized(o: Observer, value: Any) -> bool:
    """Return whether code of a user's runs when an object goes, or the object of a weakref."""
    if is_a(value, weakref.ref):
        return static(type(value), "__callback__")[1].__get__(value) is not None
    look: Any = static if is_own_class(type(value)) else functools.partial(looked_up, o)
    return may_change(look(type(value), "__del__")[0] or object)


def is_asked(o: Observer, kind: type) -> bool:
    """Return whether C code that is given a tensor may ask a method of a user's."""
    if not is_own_class(kind):
        return has_code(o, kind, *_ASKED)
    if (place := (id(kind), "C code")) not in o.looked_up:  # a user may have set one of ours
        found = [static(kind, name)[1] for name in (*_ASKED, "__add__", "__radd__")]
        own = [is_own_code(each.__code__) for each in found if type(each) is FunctionType]
        o.looked_up[place] = not all(own)
    return o.looked_up[place]  # type: ignore[no-any-return]


def asked(o: Observer, value: Any, *names: str) -> Any:
    """Return a value; if it is a tensor, guard the special methods that C code asks."""
    for name in [f"__{each}__" for each in names] if is_a(value, Tensor) else ():
        if static(type(value), name)[0] is not None:
            looked_up(o, type(value), name)
    return value


_READING = ("__iter__", "__len__", "__getitem__", "__contains__", "keys", "__reversed__")


def is_plain_class(value: Any) -> bool:
    """Return whether a class is made by none but metaclasses of Python and of the package."""
    meta = type(value)
    return meta in _METAS or meta.__module__.partition(".")[0] == "oneflow_lite"


def check_key(o: Observer, key: Any) -> Any:
    """Allow only keys whose hash and equality run no code: atoms, and objects by identity."""
    o.look_at(key, inside=True)
    parts = [key]
    for each in parts:  # which grow
        if type(each) in (tuple, frozenset):
            parts += each
        elif not is_atom(each) and has_code(o, type(original(o, each)), "__hash__", "__eq__"):
            o.refuse(f"it hashes {o.named(each)}")
        known = o.known(each)
        is_given = known is not None and known.expression is not None and not known.held
        # No guard knows it.
        if is_given and (each is not key or not is_a(key, (Tensor, type, Module))):
            o.refuse(f"it hashes {o.named(each)}, which is an argument")
    return key


def check_keys(o: Observer, container: Any) -> None:
    """Refuse a container with keys that C code compares by a user's code."""
    base = next(b for b in kinds.KINDS if is_a(container, b))
    for key in base.__iter__(container):
        if type(key) not in kinds.ATOMS:
            check_key(o, key)
