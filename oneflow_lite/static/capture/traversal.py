"""The walk over Python objects from a function to all that it can read.

`outside.py` walks twice: before the recorded call over everything, to see afterwards what changed,
and after it over what the entered code names, to guard it.
"""

from __future__ import annotations

import abc
import argparse
import enum
import functools
import sys
from collections import namedtuple
from collections.abc import Collection, Iterable
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from oneflow_lite.device import Device
from oneflow_lite.nn.module import Module
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.size import Size
from oneflow_lite.static.capture.code_walk import Path, nested_codes, walk
from oneflow_lite.static.capture.holders import (
    CALLED,
    CONTAINERS,
    MISSING,
    attributes_of,
    container_base,
    content_of,
    contents,
    place,
    users_attributes,
)
from oneflow_lite.static.capture.trusted import (
    BUILTINS,
    PURE_MODULES,
    call_reason,
    is_found,
    is_reflective,
    is_users,
    origin,
    origin_of_class,
    origin_of_module,
)
from oneflow_lite.static.compile.stand_ins import ObjectStandIn, compiled_of
from oneflow_lite.tensor import Tensor

LIMIT = 200_000  # objects; more than that is no state that a training step reads

_Named = namedtuple("_Named", "field")
_LEAVES = {
    type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range,
    slice, object, Device, Size, CodeType, GetSetDescriptorType, MemberDescriptorType,
    WrapperDescriptorType, MethodDescriptorType, enum.property, type(_Named.field),
}  # fmt: skip
SCALARS = (bool, int, float, complex, str, bytes, type(None))
_PLAIN = (SimpleNamespace, argparse.Namespace)  # library classes that only hold attributes
_BASES = {*CONTAINERS, object, str, int, float, complex, bytes, Exception, BaseException, *_PLAIN}
_VITAL = frozenset(
    """
    training _parameters _buffers _modules _forward_hooks _forward_pre_hooks _backward_hooks
    _backward_pre_hooks
    """.split()
)
_REPLACED = ("forward", "__call__", "step")  # methods of the package that users' code replaces
_HARMLESS = ("typing", "abc", "enum", "collections.abc")  # bases without state of their own
# Modules of the package whose objects neither change nor lead to what users wrote.
_OPAQUE = (
    "op_expr", "extend", "device", "dtype", "autograd.mode", "autograd.user_backward",
    "static.compile.face",
)  # fmt: skip
# Modules whose objects say the same to everyone, or are gone through by other ways.
_STATELESS = ("typing", "types", "_collections", "dataclasses")
_WRAPPERS = (property, staticmethod, classmethod, functools.partial, functools.cached_property)
_WRAPPED = ("fget", "fset", "fdel", "__func__", "func", "args", "keywords")


class Traversal:
    """Goes through objects; a subclass says which names count and what to do with each holder.

    Attributes
    ----------
    unknown : list of str
        What was met and cannot be followed.
    tensors : dict of int to (Tensor, str)
        The tensors that were met, by id, and where.
    codes : set of code
        The users' code objects that were met.
    functions : list of (function, str)
        Those that are called, and where.
    any_attribute : bool
        Whether something was met that reads attributes by names that are values.
    too_many : str or None
        Why the walk ended early.
    """

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.tensors: dict[int, tuple[Tensor, str]] = {}
        self.codes: set[CodeType] = set()
        self.functions: list[tuple[FunctionType, str]] = []
        self.any_attribute = False
        self.too_many: str | None = None
        self._seen: dict[int, Any] = {}  # the objects themselves, so that no id is used again
        self._work: list[tuple[Any, str]] = []

    # What a subclass decides

    def wants(self, name: str) -> bool:
        """Return whether attributes of this name are read."""
        return True

    def mentions(self, name: str) -> bool:
        """Return whether users' code names this attribute."""
        return False

    def describes(self, name: str) -> bool:
        """Return whether users' code reads this attribute of functions or classes."""
        return True

    def enters(self, code: CodeType) -> bool:
        """Return whether functions of this code are called."""
        return True

    def is_foreign(self, code: CodeType) -> bool:
        """Return whether this code of a library was entered, which nobody knows enough of."""
        return False

    def hold(
        self, kind: str, owner: Any, content: dict[Any, Any], wanted: Any, path: str
    ) -> Collection[Any]:
        """Take note of an object that holds others: `wanted` are the keys that count.

        Returns those keys among them that need not be followed.
        """
        return ()

    # The walk

    def walk(self, value: Any, path: str) -> None:
        """Go through a value and all that it leads to."""
        self._work.append((value, path))
        while self._work:
            if len(self._seen) > LIMIT:
                self._work.clear()
                self.too_many = f"more than {LIMIT} objects can be reached, as {path}"
                return
            value, path = self._work.pop()
            if type(value) in _LEAVES or isinstance(value, np.dtype):
                continue
            if isinstance(value, np.generic) and not isinstance(value, np.void):
                continue
            if id(value) not in self._seen:
                self._seen[id(value)] = value
                self._visit(value, path)

    def met(self) -> Iterable[Any]:
        """Go through all objects that the walk came to."""
        return self._seen.values()

    def has_met(self, value: Any) -> bool:
        """Return whether the walk came to this object."""
        return self._seen.get(id(value)) is value

    def later(self, value: Any, path: str) -> None:
        """Put a value on the list of those to visit."""
        if type(value) not in SCALARS:
            self._work.append((value, path))

    def _visit(self, value: Any, path: str) -> None:
        kind = type(value)
        if isinstance(value, Tensor):
            self._tensor(value, path)
        elif issubclass(kind, ObjectStandIn):
            self.later(compiled_of(value), path)
        elif kind is FunctionType:
            self._function(value, path)
        elif kind is MethodType:
            self.later(value.__func__, path)
            self.later(value.__self__, path)
        elif kind in _WRAPPERS:
            if kind is functools.partial:
                self._held_extra(value, attributes_of(value), path)
            for name in _WRAPPED:
                self.later(getattr(value, name, None), path)
        elif kind is BuiltinFunctionType or isinstance(value, np.ufunc):
            self._builtin(value, path)
        elif kind is ModuleType:
            self.module(value, (), path)
        elif isinstance(value, type):
            self._class(value, path)
        elif not self._container(value, path):
            self._instance(value, path)

    def _tensor(self, tensor: Tensor, path: str) -> None:
        self.tensors[id(tensor)] = (tensor, path)
        self._held_extra(tensor, users_attributes(tensor), path)
        meta = tensor._meta
        for name in ("hooks", "post_accumulate_hooks"):
            hooks = getattr(meta, name, None)
            if hooks is not None:
                self.later(hooks, f"{path}.{name}")
        if type(tensor) is not Tensor:
            self.later(type(tensor), type(tensor).__qualname__)

    def _held_extra(self, owner: Any, extra: dict[str, Any], path: str) -> None:
        """Take note of attributes that users have set on what has none by itself."""
        self._held("attributes", owner, extra, filter(self.wants, extra), path)

    # Functions and names

    def _function(self, function: FunctionType, path: str) -> None:
        code = function.__code__
        whose = origin(code)
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        if whose == "own":  # a decorator of the package: what it wraps is followed, its own is not
            for name, cell in cells:
                inner = contents(cell)
                if is_users(inner):
                    self._held("cell", cell, {"": inner}, ("",), f"{name} of {path}")
            return
        codes = list(nested_codes(code)) if whose == "user" else []
        self.codes.update(codes)
        entered = [c for c in codes if self.enters(c)]
        content = content_of("function", function)
        if whose == "user":
            self._held_extra(function, attributes_of(function), path)
            named = [name for name in content if self.describes(name)]
            self._held("function", function, content, named, path)
            if not entered:
                return
        elif self.is_foreign(code):
            self.unknown.append(f"{path}() belongs to a library")
        self.functions.append((function, path))
        self._held("function", function, content, CALLED, path)
        free = {path for c in codes for path in walk(c).free}
        for name, cell in cells:
            inner = contents(cell)
            self.hold("cell", cell, {"": inner}, ("",), name)
            if type(inner) is ModuleType:
                for names in free:
                    if names[0] == name:
                        self.module(inner, names[1:], name)
            elif inner is not MISSING:
                self.later(inner, name)
        for c in entered:
            self.globals(c, function.__globals__)

    def globals(self, code: CodeType, scope: dict[str, Any]) -> None:
        """Follow the global names of a code object."""
        # pytest writes names with "@" into assertions; what they say is read when one fails.
        paths = [path for path in walk(code).globals if path[0][0] != "@"]
        names = dict.fromkeys(path[0] for path in paths)
        self.hold("globals", scope, scope, names, "")
        for name in walk(code).imports:
            for imported in {name, name.partition(".")[0]}:
                if imported in sys.modules:
                    self.module(sys.modules[imported], (), imported)
        for path in paths:
            name = path[0]
            value = scope.get(name, BUILTINS.get(name, MISSING))
            if type(value) is ModuleType:
                self.module(value, path[1:], name)
            elif value is not MISSING:
                self.later(value, name)

    def module(self, module: ModuleType, names: Path, path: str) -> None:
        """Follow what is taken of a Python module."""
        whose = origin_of_module(module.__name__)
        pure = whose == "own" or module.__name__ in PURE_MODULES
        content = vars(module)
        if not names:
            if pure:
                wanted = [name for name in content if self.mentions(name)]
                self._held("globals", content, content, wanted, path)
            else:
                self.unknown.append(f"{path} is a module that is handed on")
            return
        value = content.get(names[0], MISSING)
        path = f"{path}.{names[0]}"
        if value is MISSING and "__getattr__" in content:
            if whose != "own":
                self.unknown.append(f"{path} is made when it is read")
                return
            value = getattr(module, names[0], MISSING)  # loaded late, and there from now on
        self.hold("globals", content, content, names[:1], path.rpartition(".")[0])
        if type(value) is ModuleType:
            self.module(value, names[1:], path)
        elif whose == "library" and not pure:
            kind = value if isinstance(value, type) else type(value)
            constant = kind in SCALARS or issubclass(kind, (np.generic, np.dtype, np.ndarray))
            if not constant or isinstance(value, np.ndarray):
                self._later_unless_pure(value, path)
        elif value is not MISSING:
            self.later(value, path)

    def _later_unless_pure(self, value: Any, path: str) -> None:
        """Follow what a library module holds: a Python function is judged when it is entered."""
        if type(value) is not FunctionType:
            self.unknown.append(f"{path} belongs to a library")

    def _builtin(self, function: Any, path: str) -> None:
        if is_reflective(function):
            self.any_attribute = True
        elif (reason := call_reason(function)) is not None:
            self.unknown.append(f"{path} is {reason}, which may have effects")
        owner = getattr(function, "__self__", None)
        if owner is not None and type(owner) is not ModuleType:
            self.later(owner, path)

    # Classes and objects

    def _class(self, cls: type, path: str) -> None:
        if cls.__module__ in ("operator", "_operator"):  # attrgetter, itemgetter, methodcaller
            self.any_attribute = True
        if isinstance(cls, abc.ABCMeta):  # classes may be registered with it
            self.hold("abstract", cls, {}, (), path)
        whose = origin_of_class(cls)
        content = dict(cls.__dict__) if whose != "library" else {}
        if whose == "user":
            wanted = [n for n, v in content.items() if self._wants_member(n, v)]
            self._held("class", cls, content, wanted, cls.__qualname__)
            if "__getattribute__" in content:
                self.unknown.append(f"{cls.__qualname__} has a __getattribute__ of its own")
        elif whose == "own":  # a method that a user has put in the place of the package's
            wanted = [
                n for n, v in content.items() if n in _REPLACED or is_users(v) or self.mentions(n)
            ]
            self._held("class", cls, content, wanted, cls.__qualname__)
        for base in (*cls.__mro__[1:], type(cls)):
            if origin_of_class(base) != "library":
                self.later(base, base.__qualname__)
        if whose == "library" and not _is_library_constant(cls):
            self.unknown.append(f"{path} is {cls.__module__}.{cls.__qualname__}")

    def _wants_member(self, name: str, value: Any) -> bool:
        if name.startswith("__") and name.endswith("__"):  # operators call them without naming them
            return callable(value) or hasattr(value, "__func__") or self._named(name, value)
        return name != "_abc_impl" and self.wants(name)

    def _named(self, name: str, value: Any) -> bool:
        if name in ("__dict__", "__doc__", "__module__"):
            return False
        scalar = type(value) in SCALARS or name == "__match_args__"
        return self.mentions(name) or (self.wants(name) and (scalar or not self.any_attribute))

    def _container(self, value: Any, path: str) -> bool:
        """Follow a container's elements; return whether it is one and nothing else."""
        base = container_base(value)
        if base is None:
            return False
        content = content_of("items" if base is dict else "sequence", value)
        self._held(base.__name__, value, content, content, path)
        if base is dict:
            for key in content:
                self.later(key, f"a key of {path}")
            self.later(getattr(value, "default_factory", None), f"{path}.default_factory")
        return type(value) in CONTAINERS

    def _instance(self, value: Any, path: str) -> None:
        cls = type(value)
        whose = origin_of_class(cls)
        name = cls.__module__
        if isinstance(value, Optimizer):
            self._optimizer(value, path)
        elif whose == "own" and not isinstance(value, Module):
            part = name.partition(".")[2]
            if part.startswith(("nn", "optim")):
                self._attributes(value, path)
            elif part.startswith("static") and hasattr(value, "__wrapped__"):
                content = attributes_of(value)
                wanted = [n for n in content if n == "__wrapped__" or self.wants(n)]
                self._held("attributes", value, content, wanted, path)
            elif part not in _OPAQUE and not part.startswith("functors."):
                self.unknown.append(f"{path} is a {cls.__qualname__}")
        elif whose == "library" and cls not in _PLAIN and not isinstance(value, enum.Enum):
            if name not in _STATELESS or not is_found(cls):
                self.unknown.append(f"{path} is a {name}.{cls.__qualname__}")
        else:
            self._attributes(value, path)

    def _attributes(self, value: Any, path: str) -> None:
        cls = type(value)
        for base in cls.__mro__:
            known = base in _BASES or base.__module__ in _HARMLESS
            if not known and origin_of_class(base) == "library":
                self.unknown.append(f"{path} is a {base.__module__}.{base.__qualname__}")
        content = attributes_of(value)
        vital = _vital_names(value, content)
        wanted = [name for name in content if name in vital or self.wants(name)]
        self._held("attributes", value, content, wanted, path)
        self.later(cls, cls.__qualname__)

    def _optimizer(self, optimizer: Optimizer, path: str) -> None:
        content = attributes_of(optimizer)
        internal = {"state", "param_groups", "_scalars", "_noted", "defaults"}
        vital = ("state", "param_groups", "_hooks")
        wanted = [n for n in content if n in vital or self.wants(n)]
        self.hold("attributes", optimizer, content, wanted, path)
        for name in wanted:
            if name not in internal:
                self.later(content[name], f"{path}.{name}")
        self.later(type(optimizer), type(optimizer).__qualname__)
        self.optimizer(optimizer, path)

    def optimizer(self, optimizer: Optimizer, path: str) -> None:
        """Take note of an optimizer's groups and state."""

    def _held(
        self, kind: str, owner: Any, content: dict[Any, Any], wanted: Iterable[Any], path: str
    ) -> None:
        """Take note of a holder, and follow what it holds."""
        wanted = list(wanted)
        done = self.hold(kind, owner, content, wanted, path)
        for key in (key for key in wanted if key not in done):
            self.later(content[key], place(kind, path, key))


def is_vital(name: str) -> bool:
    """Return whether the package reads this attribute of every module."""
    return name in _VITAL


def _vital_names(value: Any, content: dict[str, Any]) -> Collection[str]:
    """Return the attributes that are read without being named in any code."""
    if isinstance(value, Module):
        return _VITAL
    if isinstance(value, SimpleNamespace):  # compared and printed as a whole
        return content
    if isinstance(value, BaseException):
        return ("args",)
    return ("_value_",) if isinstance(value, enum.Enum) else ()


def _is_library_constant(cls: type) -> bool:
    """Return whether using a class of a library has no effects beyond its own objects."""
    if cls.__module__ in PURE_MODULES or cls.__module__ == "builtins":
        return is_found(cls)
    return issubclass(cls, (np.generic, np.dtype, np.ndarray, *_PLAIN))
