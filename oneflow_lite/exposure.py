"""Names before the files behind them are loaded: a family is imported when it is first asked for.

`index.py`, which `python -m tests.stubs --write` writes from the declarations, says which family
of `functors/`, `kernels/` and `grad_funcs/` registers a name, and where a functor is exposed. A
registry that misses a name asks here; so do the namespaces (`flow`, `flow.linalg`, ...) and Tensor.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from oneflow_lite import index
from oneflow_lite.registry import FUNCTORS, GRAD_FUNCS, KERNELS, Registry

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


def load(room: str, name: str | None) -> None:
    """Import the family that registers a name; all of the room when the index has no such name."""
    family = families(room).get(name) if name is not None else None
    if family is not None:
        importlib.import_module(f"oneflow_lite.{room}.{family}")
    elif room != "functors" or name not in families("kernels"):  # some ops have no functor
        load_all(room)


@functools.cache
def load_all(room: str) -> None:
    """Import every family of a room."""
    package = importlib.import_module(f"oneflow_lite.{room}")
    for family in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"oneflow_lite.{room}.{family.name}")


def namespace(place: str, module: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    """Return `__getattr__` and `__dir__` of a module that exposes what the declarations say."""

    def __getattr__(name: str) -> Any:
        functor = names(place).get(name)
        if functor is None:
            if name == "__all__":
                return [each for each in __dir__() if not each.startswith("_")]
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        module[name] = FUNCTORS.get(functor)
        return module[name]

    def __dir__() -> list[str]:
        return sorted({*module, *names(place)})

    return __getattr__, __dir__


class LazyMethod:
    """A method that takes its own place on a class when it is first looked up."""

    def __init__(self, owner: type, name: str, functor: str) -> None:
        self._owner, self._name, self._functor = owner, name, functor

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        setattr(self._owner, self._name, FUNCTORS.get(self._functor))
        return getattr(owner if instance is None else instance, self._name)


def attach_methods(cls: type) -> None:
    """Give Tensor the methods and operators that the declarations say."""
    for name, functor in names("Tensor").items():
        setattr(cls, name, LazyMethod(cls, name, functor))


def load_everything() -> None:
    """Import every family, and let the methods of Tensor be what they are."""
    for room in ROOMS:
        load_all(room)
    from oneflow_lite.tensor import Tensor

    for name, functor in names("Tensor").items():
        if isinstance(Tensor.__dict__[name], LazyMethod):
            setattr(Tensor, name, FUNCTORS.get(functor))


for _room, _registry in ROOMS.items():
    _registry.missing = functools.partial(load, _room)
