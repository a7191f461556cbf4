"""Names before the files behind them are loaded: a family is imported when it is first asked for.

`index.py`, which `python -m tests.stubs --write` writes from the declarations, says which family
of `functors/`, `kernels/` and `grad_funcs/` registers a name, and where a functor is exposed. A
registry that misses a name asks here; so do the namespaces (`flow`, `flow.linalg`, ...) and Tensor.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

from oneflow_lite.ops import index
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS, Registry

ROOMS: dict[str, Registry[Any]] = {
    "functors": FUNCTORS,
    "kernels": KERNELS,
    "grad_funcs": GRAD_FUNCS,
}


@functools.cache
def families(room: str) -> dict[str, str]:
    """Return the family of each name that a room registers."""
    listed: dict[str, str] = getattr(index, room.upper())
    return {name: family for family, names in listed.items() for name in names.split()}


@functools.cache
def names(place: str) -> dict[str, str]:
    """Return the functor behind each name of a namespace."""
    found = {}
    for word in index.PLACES.get(place, "").split():
        name, _, functor = word.partition("=")
        found[name] = functor or name
    return found


def load(room: str, name: str | None, known_only: bool = False) -> None:
    """Import the family that registers a name; all of the room when the index has no such name."""
    family = families(room).get(name) if name is not None else None
    if family is not None:
        importlib.import_module(f"oneflow_lite.{room}.{family}")
    elif known_only:
        return
    elif room != "functors" or name not in families("kernels"):  # some ops have no functor
        load_all(room)


@functools.cache
def load_all(room: str) -> None:
    """Import every family of a room."""
    package = importlib.import_module(f"oneflow_lite.{room}")
    for family in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"oneflow_lite.{room}.{family.name}")


# Methods that stand above their class, by class: modules, and what they have for it ("name=other"
# where the method is called differently there). Tensor's old names are here, too: a fallback for
# absent names would make every look-up of an attribute slower.
METHODS: dict[str, dict[str, str]] = {
    "Tensor": {
        "functors.methods": index.METHODS,
        "interop.array_protocols": """
            __array_function__=array_function __array_namespace__=array_namespace
            __array_ufunc__=array_ufunc
        """,
        "compatibility.tensors": """
            new pin_memory share_memory_ storage storage_type untyped_storage volatile
        """,
        "functors.inplace": "fill_diagonal_",
        "sparse": "to_sparse",
        "interop.notebook": "_repr_html_=tensor_html",
        "distributed.global_tensor": """
            to_global to_local local_to_global global_to_global is_local placement sbp
        """,
    },
    "FunctionNode": {
        "autograd.engine.node_access": """
            __call__=call __dir__=attribute_names _look_up=saved_attribute
        """,
    },
    "Module": {
        "interop.notebook": "_repr_html_=module_html",
        "compiler.face": "compile=compile_in_place",
        "distributed.global_tensor": "to_global=module_to_global",
    },
    "SparseTensor": {"interop.notebook": "_repr_html_=sparse_html"},
    "Optimizer": {"static.lazy.minimize": "minimize"},
}
_namespaces: list[tuple[str, dict[str, Any]]] = []
_methods: list[LazyMethod] = []


def namespace(place: str, module: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    """Return `__getattr__` and `__dir__` of a module that exposes what the declarations say."""
    _namespaces.append((place, module))

    def __getattr__(name: str) -> Any:
        functor = names(place).get(name)
        if functor is None:
            return old_names(module["__name__"])(name)
        module[name] = FUNCTORS.get(functor)
        return module[name]

    def __dir__() -> list[str]:
        return sorted({*module, *names(place)})

    return __getattr__, __dir__


def old_names(module: str) -> Callable[[str], Any]:
    """Return `__getattr__` of a module whose names of older PyTorch are in `compatibility`."""

    def __getattr__(name: str) -> Any:
        return _of_module("compatibility", "find")(module, name)

    return __getattr__


class LazyMethod:
    """A method or property that takes its own place on a class when it is first looked up."""

    def __init__(self, owner: type, name: str, find: Callable[[], Any]) -> None:
        self._owner, self._name, self._find = owner, name, find
        setattr(owner, name, self)

    def resolve(self) -> None:
        """Put what the name stands for on the class."""
        if vars(self._owner)[self._name] is self:
            setattr(self._owner, self._name, self._find())

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        self.resolve()
        return getattr(self._owner if instance is None else instance, self._name)

    def __set__(self, instance: Any, value: Any) -> None:
        self.resolve()
        setattr(instance, self._name, value)


def _of_module(module: str, name: str) -> Any:
    found = vars(importlib.import_module(f"oneflow_lite.{module}"))
    return found.get("METHODS", found)[name]


def attach_methods(cls: type) -> None:
    """Give a class the methods that stand above it: `METHODS`, and what functors are exposed as."""
    for module, listed in METHODS[cls.__name__].items():
        for word in listed.split():
            name, _, other = word.partition("=")
            find = functools.partial(_of_module, module, other or name)
            _methods.append(LazyMethod(cls, name, find))
    for name, functor in names(cls.__name__).items():
        _methods.append(LazyMethod(cls, name, functools.partial(FUNCTORS.get, functor)))
    if "__eq__" in vars(cls):  # which would take it away
        setattr(cls, "__hash__", object.__hash__)  # noqa: B010


def load_everything() -> None:
    """Import every family, and let namespaces and methods be what they are."""
    for room in ROOMS:
        load_all(room)
    package = sys.modules["oneflow_lite"]
    for name in dir(package):
        getattr(package, name)
    for place, module in _namespaces:
        module.update({name: FUNCTORS.get(functor) for name, functor in names(place).items()})
    while _methods:
        _methods.pop().resolve()
    for registry in ROOMS.values():
        registry.missing = None  # what is not there now is nowhere


for _room, _registry in ROOMS.items():
    _registry.missing = functools.partial(load, _room)
