"""Python's rules of attribute and item access, followed without running anybody's code unseen."""

from __future__ import annotations

import enum
import functools
from collections import namedtuple
from types import (
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from oneflow_lite.nn.module import Module
from oneflow_lite.static.compile.same import (
    CONTAINERS,
    MAPPINGS,
    MISSING,
    SEQUENCES,
    is_a,
    is_atom,
    told,
)
from oneflow_lite.static.compile.stand_ins import ObjectStandIn, compiled_of
from oneflow_lite.tensor import OWN_FIELDS, Tensor

Observer = Any  # which stands on this module

_members: Any = type.__dict__["__dict__"].__get__
_mro: Any = type.__dict__["__mro__"].__get__
_module_content: Any = ModuleType.__dict__["__dict__"].__get__  # type: ignore[index]
_Named = namedtuple("_Named", "field")
_FIELD = type(vars(_Named)["field"])
# Attributes of tensors that guards, or the ops that made them, settle.
_SETTLED = frozenset(
    """
    shape dtype device ndim requires_grad is_leaf is_cuda is_cpu is_sparse T mT H mH data real imag
    itemsize nbytes layout is_nested is_meta is_quantized is_mps is_xpu is_ipu is_maia is_mkldnn
    is_mtia is_sparse_csr is_vulkan is_xla
    """.split()
)
# Methods of tensors that look at what a replay does not keep the same.
_UNSETTLED = frozenset(
    """
    data_ptr is_set_to untyped_storage
    __reduce_ex__ __hash__ __dlpack__ __array__ __array_interface__ has_names
    """.split()
)


def static(kind: type, name: str) -> tuple[type | None, Any]:
    """Return the class in the mro that has a member, and the member; no descriptor runs.

    >>> from oneflow_lite.static.compile.lookup import static
    >>> static(bool, "bit_length")[0], static(int, "nothing")[0]
    (<class 'int'>, None)
    """
    for cls in _mro(kind):
        members = _members(cls)
        if name in members:
            return cls, members[name]
    return None, MISSING


def is_namedtuple(kind: type) -> bool:
    """Return whether a type was made by namedtuple() and added nothing to tuple's own ways."""
    return (
        issubclass(kind, tuple)
        and static(kind, "_fields")[0] is not None
        and all(static(kind, name)[0] is tuple for name in ("__iter__", "__len__", "__getitem__"))
    )


def fields_of(value: Any) -> dict[str, Any] | None:
    """Return an object's own `__dict__`, None where it has none."""
    owner, member = static(type(value), "__dict__")
    if owner is None or type(member) not in (GetSetDescriptorType, MemberDescriptorType):
        return None
    found: dict[str, Any] = member.__get__(value)
    return found


def slots_of(value: Any) -> dict[MemberDescriptorType, Any]:
    """Return what stands in an object's slots."""
    found: dict[MemberDescriptorType, Any] = {}
    for cls in _mro(type(value)):
        for member in _members(cls).values() if "__slots__" in _members(cls) else ():
            if type(member) is MemberDescriptorType:
                try:
                    found[member] = member.__get__(value)
                except AttributeError:
                    continue
    return found


def original(o: Observer, value: Any) -> Any:
    """Return the module or object that a compiled one stands for, else the value itself."""
    if not issubclass(type(value), ObjectStandIn):
        return value
    known, inner = o.outer(value), compiled_of(value).__wrapped__
    if known is not None and o.known(inner) is None:  # the stand-in keeps its original for good
        o.learn(inner, o.match.constant(inner), known.label, True)
    return inner


def own_attribute(value: Any, name: str) -> Any:
    """Return what an object itself holds under a name, MISSING for nothing."""

    fields = vars(value) if type(value) is ModuleType else fields_of(value)
    if fields is not None and name in fields:
        return fields[name]
    _, member = static(type(value), name)
    if type(member) is MemberDescriptorType:
        try:
            return member.__get__(value)
        except AttributeError:
            return MISSING
    return MISSING


def attribute(o: Observer, value: Any, name: str) -> Any:
    """Read an attribute by Python's rules; what it depends on is guarded."""
    value = original(o, value)
    kind = type(value)
    if is_a(value, Tensor):
        return _tensor(o, value, name)
    if is_a(value, type):
        return _of_class(o, value, name)
    if kind is ModuleType or issubclass(kind, ModuleType):
        return _of_module(o, value, name)
    if kind is super:
        return _of_super(o, value, name)
    if is_a(value, enum.Enum):
        if o.known(value) is None:
            o.learn(value, o.match.constant(value), str(value.name), True)
        if name in ("value", "name"):
            return o.child(value, getattr(value, name), f".{name}", f".{name}")
        return _of_instance(o, value, name)
    if is_atom(value) or (kind.__module__ == "builtins" and kind not in (FunctionType, MethodType)):
        return _of_builtin(o, value, name)
    if kind in (FunctionType, MethodType, functools.partial):
        return _of_function(o, value, name)
    if is_a(value, (np.ndarray, np.generic)):
        check_array(o, value)
        return o.local(getattr(value, name))
    return _of_instance(o, value, name)


def _of_builtin(o: Observer, value: Any, name: str) -> Any:
    found = getattr(value, name)
    if not is_atom(value):
        o.outer(value)
        if name == "__dict__" or (is_a(value, BaseException) and o.outer(value) is not None):
            o.refuse(f"it reads {name} of {told(value)}")
    return found if is_atom(found) and not callable(found) else o.local(found)


def _of_function(o: Observer, value: Any, name: str) -> Any:
    if type(value) is MethodType and name not in ("__func__", "__self__", "__name__"):
        return attribute(o, value.__func__, name)
    found = getattr(o.original(value), name)
    return o.child(value, found, f".{name}", f".{name}")


def _of_module(o: Observer, module: Any, name: str) -> Any:
    content = _module_content(module)
    if name not in content:
        own = str(content.get("__name__", "")).partition(".")[0] == "oneflow_lite"
        loader = content.get("__getattr__")
        if loader is not None and not own:
            return o.call(o.read(loader, _of(o, module, ".__getattr__"), name, True), name)
        getattr(module, name, None)  # loaded late, and there from now on
        if name not in content:
            o.match.require(
                f"not hasattr({_of(o, module, '')}, {name!r})", f"`{name}` is there now"
            )
    found = getattr(module, name)
    return o.child(module, found, f".{name}", f".{name}")


def _of(o: Observer, value: Any, suffix: str) -> str:
    known = o.outer(value)
    return "None" if known is None else f"{known.expression}{suffix}"


def class_of(o: Observer, value: Any) -> type:
    """Return the class of an object; the guards know it from now on."""
    kind = type(value)
    known = o.outer(value)
    if known is not None:
        name = o.match.constant(kind)
        if known.held:
            o.match.require(
                f"type({known.expression}) is {name}", f"`{known.label}` is of another class"
            )
    if o.known(kind) is None:
        o.learn(kind, o.match.constant(kind), kind.__name__, True)
    return kind


def _require_member(o: Observer, kind: type, owner: type, name: str, member: Any) -> None:
    """Guard that a class, as instances see it, has this member."""
    if o.known(kind) is not None and o.known(kind).expression is None:
        return  # a class that the call made
    c = o.match.constant
    label = f"`{kind.__name__}.{name}` is another"
    if type(member) in (FunctionType, property):
        o.match.require(f"{c(kind)}.{name} is {c(member)}", label)
    elif type(member) is staticmethod:
        o.match.require(f"{c(kind)}.{name} is {c(member.__func__)}", label)
    else:
        o.match.same(f"{c(_members(owner))}[{name!r}]", member, label)


def method(o: Observer, value: Any, name: str) -> Any:
    """Return the special method that Python calls for an operation; MISSING when there is none."""
    kind = class_of(o, value)
    owner, member = static(kind, name)
    if owner is None:
        if not is_atom(value):
            o.match.require(
                f"getattr({o.match.constant(kind)}, {name!r}, None) is None",
                f"`{kind.__name__}.{name}` is there now",
            )
        return MISSING
    _require_member(o, kind, owner, name, member)
    return member


def _of_instance(o: Observer, value: Any, name: str) -> Any:
    kind = class_of(o, value)
    known = o.outer(value)
    if o.refused:
        return getattr(value, name)
    if name == "__class__":
        return kind
    if type(static(kind, "__getattribute__")[1]) is FunctionType:
        o.refuse(f"{kind.__name__} has a __getattribute__ of its own")
        return getattr(value, name)
    fields = fields_of(value)
    if name == "__dict__" and fields is not None:
        return o.child(value, fields, ".__dict__", ".__dict__")
    if (id(value), "attribute", name) in o.stores:  # written by this call
        o.settle_count(value, name)
        return getattr(value, name)
    owner, member = static(kind, name)
    if owner is not None:
        if is_a(member, property) and static(type(member), "__get__")[0] is property:
            _require_member(o, kind, owner, name, member)
            if member.fget is None:
                return getattr(value, name)
            o.learn(member.fget, o.match.constant(member.fget), name, True)
            return o.call(member.fget, value)
        if type(member) in (MemberDescriptorType, GetSetDescriptorType):
            return o.child(value, getattr(value, name), f".{name}", f".{name}")
        if static(type(member), "__set__")[0] is not None and type(member) is not FunctionType:
            return _bound(o, value, kind, owner, name, member)
    if fields is not None and name in fields:
        return o.child(value, fields[name], f".{name}", f".{name}")
    if owner is not None:
        if fields is not None and known is not None:
            o.match.require(
                f"{name!r} not in {known.expression}.__dict__",
                f"`{known.label}.{name}` is there now",
            )
        return _bound(o, value, kind, owner, name, member)
    if issubclass(kind, Module) and static(kind, "__getattr__")[0] is Module:
        for place in ("_parameters", "_buffers", "_modules"):
            if fields is not None and name in fields.get(place, ()):
                return o.child(value, fields[place][name], f".{place}[{name!r}]", f".{name}")
    getter = method(o, value, "__getattr__")
    if getter is not MISSING:
        if known is not None and fields is not None:
            o.match.require(
                f"{name!r} not in {known.expression}.__dict__",
                f"`{known.label}.{name}` is there now",
            )
        return o.call(_learned(o, getter, "__getattr__"), value, name)
    if known is not None:
        o.match.require(
            f"not hasattr({known.expression}, {name!r})", f"`{known.label}.{name}` is there now"
        )
    return getattr(value, name)  # which raises


def _bound(o: Observer, value: Any, kind: type, owner: type, name: str, member: Any) -> Any:
    """Return a member of a class as an instance has it."""
    _require_member(o, kind, owner, name, member)
    c = o.match.constant
    if type(member) is FunctionType:
        o.learn(member, c(member), f"{kind.__name__}.{name}", True)
        return o.local(MethodType(member, value))
    if type(member) is staticmethod:
        return _learned(o, member.__func__, name)
    if type(member) is classmethod:
        _learned(o, member.__func__, name)
        return o.local(MethodType(member.__func__, kind))
    if type(member) in (MethodDescriptorType, WrapperDescriptorType):
        return o.local(getattr(value, name))
    if type(member) is functools.cached_property:
        if o.outer(value) is not None:
            o.refuse(f"it fills the cached property {kind.__name__}.{name}")
            return getattr(value, name)
        found = o.call(_learned(o, member.func, name), value)
        object.__setattr__(value, name, found)
        return found
    getter = static(type(member), "__get__")
    if getter[0] is not None and type(member) is not type:
        if type(getter[1]) is FunctionType:
            _learned(o, member, name)
            return o.call(_learned(o, getter[1], "__get__"), member, value, kind)
        if not is_atom(member) and type(member) is not _FIELD:
            o.refuse(f"it reads {kind.__name__}.{name}, {told(member)}")
        return o.child(value, getattr(value, name), f".{name}", f".{name}")
    return o.read(member, f"{c(kind)}.{name}", f"{kind.__name__}.{name}", True)


def _learned(o: Observer, value: Any, label: str) -> Any:
    """Take note of an object that a guard has settled already."""
    if o.known(value) is None and not is_atom(value):
        o.learn(value, o.match.constant(value), label, True)
    return value


def _of_class(o: Observer, cls: type, name: str) -> Any:
    if o.known(cls) is None:
        o.outer(cls)
    meta = type(cls)
    if (
        is_a(cls, enum.EnumMeta)
        and static(cls, name)[0] is not None
        and is_a(getattr(cls, name), enum.Enum)
    ):
        return getattr(cls, name)
    owner, member = static(cls, name)
    above, data = static(meta, name)
    if above is not None and static(type(data), "__set__")[0] is not None:
        if above is not type:
            o.refuse(f"it reads {name} of a class of {meta.__name__}")
        return o.child(cls, getattr(cls, name), f".{name}", f".{name}")
    if owner is None:
        if above is None:
            o.match.require(
                f"not hasattr({_of(o, cls, '')}, {name!r})", f"`{cls.__name__}.{name}` is there now"
            )
            return getattr(cls, name)
        if type(data) is FunctionType:
            return o.local(MethodType(_learned(o, data, name), cls))
        return o.local(getattr(cls, name))
    known = o.outer(cls)
    if type(member) is classmethod:
        if known is not None:
            _require_member(o, cls, owner, name, member)
        return o.local(MethodType(_learned(o, member.__func__, name), cls))
    if type(member) in (MethodDescriptorType, WrapperDescriptorType):
        return getattr(cls, name)
    found = getattr(cls, name) if type(member) is not property else member
    return o.child(cls, found, f".{name}", f".{name}")


def _of_super(o: Observer, value: Any, name: str) -> Any:
    here, self, start = value.__thisclass__, value.__self__, value.__self_class__
    mro = _mro(start)
    o.match.require(
        f"{o.match.constant(start)}.__mro__ is {o.match.constant(mro)}", "the bases of a class"
    )
    _learned(o, start, start.__name__)
    for cls in mro[mro.index(here) + 1 :]:
        members = _members(cls)
        if name not in members:
            continue
        member = members[name]
        if type(member) is FunctionType:
            _require_member(o, cls, cls, name, member)
            _learned(o, member, name)
            return (
                o.local(MethodType(member, self))
                if not (is_a(self, type) and self is start and name == "__new__")
                else member
            )
        if type(member) is classmethod:
            return o.local(MethodType(_learned(o, member.__func__, name), start))
        if type(member) is staticmethod:
            return _learned(o, member.__func__, name)
        if type(member) is property and member.fget is not None:
            return o.call(_learned(o, member.fget, name), self)
        if type(member) in (MethodDescriptorType, WrapperDescriptorType):
            return o.local(getattr(value, name))
        if static(type(member), "__get__")[0] is not None and not is_a(member, type):
            o.refuse(f"it reads {cls.__name__}.{name}, {told(member)}, by super()")
            return getattr(value, name)
        return o.read(member, f"{o.match.constant(cls)}.{name}", f"{cls.__name__}.{name}", True)
    return getattr(value, name)


# --- Tensors --------------------------------------------------------------------------------------


def _tensor(o: Observer, tensor: Tensor, name: str) -> Any:
    known = o.outer(tensor)
    if o.refused:
        return getattr(tensor, name)
    if name in tensor.__dict__ and name not in OWN_FIELDS:
        if (id(tensor), "attribute", name) in o.stores:
            return getattr(tensor, name)
        return o.child(tensor, tensor.__dict__[name], f".{name}", f".{name}")
    kind = type(tensor)
    owner, member = static(kind, name)
    if owner is None:
        if known is not None:
            o.match.require(
                f"not hasattr({known.expression}, {name!r})", f"`{known.label}.{name}` is there now"
            )
        return getattr(tensor, name)
    if name == "__class__":
        return class_of(o, tensor)
    if name == "grad":
        o.reads_gradients = True
        state = o.states.get(id(tensor))
        if known is not None and state is not None and state.edge is state.grad is None:
            o.match.require(f"{known.expression}.grad is None", f"`{known.label}` has a gradient")
        grad = tensor.grad
        if grad is not None and o.known(grad) is None:
            o.local(grad)
        return grad
    if str(owner.__module__).partition(".")[0] != "oneflow_lite" or type(member) is FunctionType:
        if name in _UNSETTLED:
            o.refuse(f"it looks at {name} of a tensor")
            return getattr(tensor, name)
        if type(member) is property:
            _require_member(o, kind, owner, name, member)
            return o.call(_learned(o, member.fget, name), tensor)
        return _bound(o, tensor, kind, owner, name, member)
    if name not in _SETTLED:
        o.refuse(f"it looks at {name} of a tensor")
    return o.local(getattr(tensor, name))


# --- Writing --------------------------------------------------------------------------------------


def set_attribute(o: Observer, value: Any, name: str, new: Any) -> None:
    """Write an attribute by Python's rules."""
    value = original(o, value)
    kind = type(value)
    if is_a(value, Tensor):
        if static(kind, name)[0] is not None:  # grad, data, requires_grad: kept by tensor states
            o.reads_gradients |= name == "grad"
            o.outer(value)
            setattr(value, name, new)
            return
    else:
        setter = static(kind, "__setattr__")
        if setter[0] is not object and type(setter[1]) is FunctionType:
            if setter[0] is Module:
                _set_in_module(o, value, name, new)
                return
            class_of(o, value)
            _require_member(o, kind, setter[0], "__setattr__", setter[1])  # type: ignore[arg-type]
            o.call(_learned(o, setter[1], "__setattr__"), value, name, new)
            return
        if (
            setter[0] is not object
            and type(setter[1]) is WrapperDescriptorType
            and setter[0] is dict
        ):
            set_item(o, value, name, new)
            return
    raw_set(o, value, name, new)


def _set_in_module(o: Observer, module: Any, name: str, new: Any) -> None:
    if o.outer(module) is None:
        setattr(module, name, new)
        return
    fields = fields_of(module) or {}
    for place in ("_parameters", "_buffers", "_modules"):
        if name in fields.get(place, ()):
            o.store(fields[place], "item", name, fields[place][name])
            setattr(module, name, new)
            return
    if is_a(new, (Module, Tensor)) and type(new) is not Tensor:
        o.refuse(f"it registers {told(new)} in a module")
        setattr(module, name, new)
        return
    raw_set(o, module, name, new)


def raw_set(o: Observer, value: Any, name: str, new: Any) -> None:
    """Write an attribute as `object.__setattr__` does."""
    kind = type(value)
    o.settle_count(value, name)
    owner, member = static(kind, name)
    if type(member) is property and member.fset is not None:
        class_of(o, value)
        _require_member(o, kind, owner, name, member)  # type: ignore[arg-type]
        o.call(_learned(o, member.fset, name), value, new)
        return
    if owner is not None and type(member) not in (MemberDescriptorType, FunctionType):
        setter = static(type(member), "__set__")
        if type(setter[1]) is FunctionType:
            _learned(o, member, name)
            o.call(_learned(o, setter[1], "__set__"), member, value, new)
            return
    if o.outer(value) is not None:
        if is_a(value, (type, FunctionType)):
            o.refuse(f"it sets {name} of {told(value)}")
        o.store(value, "attribute", name, own_attribute(value, name))
    if type(static(kind, "__setattr__")[1]) is FunctionType and not is_a(value, Module):
        object.__setattr__(value, name, new)  # which a method of the class calls at its end
    else:
        setattr(value, name, new)


def delete_attribute(o: Observer, value: Any, name: str) -> None:
    """Delete an attribute."""
    value = original(o, value)
    if o.outer(value) is not None:
        if static(type(value), "__delattr__")[0] not in (object, Module) or is_a(
            value, (type, ModuleType)
        ):
            o.refuse(f"it deletes {name} of {told(value)}")
        o.store(value, "attribute", name, own_attribute(value, name))
    delattr(value, name)


# --- Items ----------------------------------------------------------------------------------------


def item(o: Observer, value: Any, key: Any) -> Any:
    """Read an item."""
    value = original(o, value)

    kind = type(value)
    if is_a(value, Tensor):
        o.outer(value)
        if not o.settled(key):
            o.refuse(f"it indexes a tensor with {told(key)}")
        return o.local(value[key])
    if is_atom(value) or is_a(value, type) or kind.__module__ == "typing":
        if not o.settled(key):
            o.refuse(f"it indexes with {told(key)}")
        return o.local(value[key])
    if is_a(value, np.ndarray):
        check_array(o, value)
        o.settled(key)
        return o.local(value[key])
    owner, getter = static(kind, "__getitem__")
    base = next((b for b in CONTAINERS if owner is b), None)
    if base is None and owner in (dict, list, tuple):
        base = owner
    if base in SEQUENCES:
        if is_a(key, slice) or not is_atom(key):
            o.contents(value)
            if not is_atom(key):
                o.refuse(f"it indexes with {told(key)}")
            return o.local(value[key])
        found = value[key] if _in(value, key) else MISSING
        if found is MISSING:
            o.contents(value)
            return value[key]  # which raises
        if (id(value), "item", key) in o.stores:
            return found
        return o.child(value, found, f"[{key!r}]", f"[{key!r}]")
    if base in MAPPINGS or owner is dict:
        check_key(o, key)
        if o.refused:
            return value[key]
        known = o.outer(value)
        if dict.__contains__(value, key):
            found = dict.__getitem__(value, key)
            if (id(value), "item", key) in o.stores:
                o.settle_count(value, key, "item")
                return found
            return o.child(value, found, f"[{in_guards(o, key)}]", f"[{told(key)}]")
        if known is not None:
            o.match.require(
                f"{in_guards(o, key)} not in {known.expression}",
                f"`{known.label}[{told(key)}]` is there now",
            )
            if static(kind, "__missing__")[0] is not None:
                o.refuse(f"it fills in {known.label}[{told(key)}]")
        return value[key]
    if type(getter) is FunctionType:
        member = method(o, value, "__getitem__")
        return o.call(_learned(o, member, "__getitem__"), value, key)
    o.refuse(f"it reads an item of {told(value)}")
    return value[key]


def check_array(o: Observer, array: Any) -> None:
    """Refuse a NumPy array from outside: nobody sees when its elements change."""
    if not is_atom(array) and o.outer(array) is not None:
        o.refuse("it looks at a NumPy array from outside")


def _in(value: Any, key: Any) -> bool:
    return type(key) in (int, bool) and -len(value) <= key < len(value)


def in_guards(o: Observer, key: Any) -> str:
    """Return what gives a key in the guards."""
    known = o.known(key)
    if known is not None and known.expression is not None:
        return str(known.expression)
    return repr(key) if type(key) is str else o.match.constant(key)


def set_item(o: Observer, value: Any, key: Any, new: Any) -> None:
    """Write an item."""
    value = original(o, value)

    kind = type(value)
    if is_a(value, Tensor):
        o.outer(value)
        if not o.settled(key):
            o.refuse(f"it indexes a tensor with {told(key)}")
        value[key] = new
        return
    owner, setter = static(kind, "__setitem__")
    if type(setter) is FunctionType:
        o.call(_learned(o, method(o, value, "__setitem__"), "__setitem__"), value, key, new)
        return

    if not is_a(key, slice):
        check_key(o, key)
    if o.outer(value) is not None:
        if owner in MAPPINGS and is_atom(key):
            o.settle_count(value, key, "item")
            o.store(value, "item", key, dict.get(value, key, MISSING))
        elif kind is list and _in(value, key):
            o.store(value, "item", key % len(value), value[key])
        else:
            o.refuse(f"it changes {told(value)}")
    value[key] = new


def delete_item(o: Observer, value: Any, key: Any) -> None:
    """Delete an item."""
    value = original(o, value)

    owner, deleter = static(type(value), "__delitem__")
    if type(deleter) is FunctionType:
        o.call(_learned(o, method(o, value, "__delitem__"), "__delitem__"), value, key)
        return
    if o.outer(value) is not None:
        if owner in MAPPINGS and is_atom(key) and dict.__contains__(value, key):
            o.store(value, "item", key, dict.__getitem__(value, key))
        else:
            o.refuse(f"it changes {told(value)}")
    del value[key]


def check_key(o: Observer, key: Any) -> None:
    """Allow only keys whose hash and equality run no code: atoms, and objects by identity."""
    if is_atom(key) or is_a(key, (Tensor, type, Module)):
        return
    if type(key) in (tuple, frozenset):
        for each in key:
            check_key(o, each)
            _check_key_stays(o, each)
        return
    _check_key_stays(o, key)
    _, member = static(type(key), "__hash__")
    if type(member) is FunctionType and type(key).__module__.partition(".")[0] != "oneflow_lite":
        o.refuse(f"it hashes {told(key)}")


def _check_key_stays(o: Observer, key: Any) -> None:
    """Refuse what is another object at every call, and no tensor: which it is, no guard says."""
    known = o.known(key)
    if known is not None and known.expression is not None and not known.held:
        o.refuse(f"it hashes {told(key)}, which is an argument")
