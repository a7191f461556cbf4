"""Names before the files behind them are loaded: a file is imported when it is first asked for.

`names.py`, which `python -m oneflow_lite.ops.index --write` writes from the declarations, says
which family of `functors/`, `kernels/` and `grad_funcs/` registers a name, and where a functor is
exposed; `homes.py` says where all other public names are. A registry that misses a name asks here;
so do modules (`flow`, `flow.linalg`, ...) and classes.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from oneflow_lite import errors
from oneflow_lite.ops import homes, names
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS, Registry

ROOMS: dict[str, Registry[Any]] = {
    "functors": FUNCTORS,
    "kernels": KERNELS,
    "grad_funcs": GRAD_FUNCS,
}
# The place in declarations that a module exposes, where its name is another.
_PLACES = {"": "flow", "functions": "flow", "nn.functional": "functional"}
_exposed: list[dict[str, Any]] = []
_methods: list[LazyMethod] = []


# --- Families -------------------------------------------------------------------------------------


@functools.cache
def _families() -> dict[str, list[str]]:
    """Return the families that register each name."""
    found: dict[str, list[str]] = {}
    for family, words in names.FAMILIES.items():
        for name in words.split():
            found.setdefault(name, []).append(family)
    return found


@functools.cache
def _files(room: str) -> list[str]:
    package = importlib.import_module(f"oneflow_lite.{room}")
    return [file.name for file in pkgutil.iter_modules(package.__path__)]


def load(room: str, name: str | None, known_only: bool = False) -> None:
    """Import the family that registers a name; all of the room when the index has no such name."""
    known = _families().get(name or "") or _families().get((name or "").removesuffix("_"), [])
    for family in known:
        if family in _files(room):
            importlib.import_module(f"oneflow_lite.{room}.{family}")
    # Some ops have no functor, and some no gradient: nobody else has it, either.
    if not known_only and (not known or (room == "kernels" and name not in KERNELS._entries)):
        load_all(room)


@functools.cache
def load_all(room: str) -> None:
    """Import every family of a room."""
    for family in _files(room):
        importlib.import_module(f"oneflow_lite.{room}.{family}")


# --- Tables ---------------------------------------------------------------------------------------


def pairs(words: str) -> Iterator[tuple[str, str]]:
    """Yield each name of a table, and what it is called where it comes from."""
    for word in words.split():
        name, _, other = word.partition("=")
        yield name, other or name


@functools.cache
def functors(place: str) -> dict[str, str]:
    """Return the functor behind each name of a place, as declarations say: "flow", "Tensor"."""
    found: dict[str, str] = {}
    for places, words in names.EXPOSED.items():
        if place in places.split():
            found.update(pairs(words))
    return found


def table(lines: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return the home and the name there of each name."""
    return {name: (home, own) for home, words in lines.items() for name, own in pairs(words)}


@functools.cache
def public(path: str) -> dict[str, tuple[str, str]]:
    """Return the home of each name that users find in a module, and the name there."""
    return table(homes.MODULES.get(path, {}))


def taken(home: str, name: str) -> Any:
    """Return the object of a name in its home, as `homes.py` writes them."""
    path = home[1:] if home.startswith(":") else f"oneflow_lite.{home}"
    if path.endswith("*"):
        return importlib.import_module(path[:-1] + name)
    module = importlib.import_module(path)
    methods = vars(module).get("METHODS", {})
    return methods[name] if name in methods else getattr(module, name)


# --- Modules --------------------------------------------------------------------------------------


def expose(module: dict[str, Any]) -> None:
    """Give a module `__getattr__` and `__dir__`, by its globals: what users find, and no more.

    Type checkers do not see them: where a module has `__getattr__`, they believe every name.
    """
    path = path_of(module["__name__"])
    place = _PLACES.get(path, path)

    def __getattr__(name: str) -> Any:
        if (functor := functors(place).get(name)) is not None:
            module[name] = FUNCTORS.get(functor)
        elif (home := public(path).get(name)) is not None:
            module[name] = taken(*home)
        elif name.startswith("__") and name != "__config__":  # Python asks for those
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        else:
            return taken("compatibility", "find")(path, name)
        return module[name]

    def __dir__() -> list[str]:
        return sorted({*listed(module), *(name for name in module if name.startswith("__"))})

    module.update(__getattr__=__getattr__, __dir__=__dir__)
    _exposed.append(module)


def path_of(module: str) -> str:
    """Return the name of a module without that of the package."""
    return module.removeprefix("oneflow_lite").lstrip(".")


def listed(module: dict[str, Any]) -> set[str]:
    """Return the names that users find in a module: `__all__`, or what it defines or re-exports."""
    path = path_of(module["__name__"])
    written = _written(module["__file__"]) if "__file__" in module else module
    own = {name for name in module.get("__all__") or written if not _is_hint(module.get(name))}
    found = own | {*functors(_PLACES.get(path, path)), *public(path)}
    return {name for name in found if name[0] != "_"}


@functools.cache
def _written(file: str) -> list[str]:
    """Return the names that a file defines, or imports `as` themselves."""
    found: list[str] = []
    for node in ast.parse(Path(file).read_text("utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            inner = [n for target in node.targets for n in ast.walk(target)]
            found += [n.id for n in inner if isinstance(n, ast.Name) and type(n.ctx) is ast.Store]
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            found += getattr(importlib.import_module(str(node.module)), "__all__", [])
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [alias.name for alias in node.names if alias.asname == alias.name]
    return found


def _is_hint(value: Any) -> bool:
    """Return whether a value is for annotations alone: a type variable, or an alias."""
    kind = type(value)
    return kind.__module__ == "typing" or kind.__name__ in ("_CallableGenericAlias", "GenericAlias")


# --- Classes --------------------------------------------------------------------------------------


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


def attach_methods(cls: type) -> None:
    """Give a class the methods that stand above it: those of `homes.py`, and functors."""
    for name, home in table(homes.CLASSES[cls.__name__]).items():
        _methods.append(LazyMethod(cls, name, functools.partial(taken, *home)))
    for name, functor in functors(cls.__name__).items():
        _methods.append(LazyMethod(cls, name, functools.partial(FUNCTORS.get, functor)))
    if "__eq__" in vars(cls):  # which would take it away
        setattr(cls, "__hash__", object.__hash__)  # noqa: B010


def load_everything() -> None:
    """Import every family, and let modules and methods be what they are."""
    for room in ROOMS:
        load_all(room)
    for module in _exposed:
        path = path_of(module["__name__"])
        names_there = {*functors(_PLACES.get(path, path)), *(public(path) if not path else ())}
        for name in names_there - {*module}:
            module["__getattr__"](name)
    while _methods:
        _methods.pop().resolve()
    for registry in ROOMS.values():
        registry.missing = None  # what is not there now is nowhere


expose(vars(errors))  # which stands below this room
for _room, _registry in ROOMS.items():
    _registry.missing = functools.partial(load, _room)
