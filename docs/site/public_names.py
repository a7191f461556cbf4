"""The public names of the package, found in its own tables, and what they stand for.

A name of a module is public when `dir` lists it (`oneflow_lite/ops/exposure.py`). A class has the
methods and properties that it defines; Tensor has all that it answers to. A module is public when a
public name of another one leads to it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import attrs

import oneflow_lite as flow
from oneflow_lite import compatibility
from oneflow_lite.ops import exposure

# Modules that names lead to, and that are no namespaces of their own.
NOT_LISTED = {
    "nn.modules": "the layers, which are in nn",
    "nn.utils.stateless": "the home of func.functional_call",
    "distributed.global_tensor": "methods of Tensor",
    "distributions.constraint_registry": "its two functions are in distributions",
    **{
        f"onnx.{family}": "translations of ops"
        for family in "elementwise indexing layers reductions shapes".split()
    },
}
# Modules that users import by their whole path.
BY_PATH = ("array_api", "info", "nn.parallel", "static.passes", "static.plan")


@attrs.frozen
class Name:
    """One public name."""

    module: str  # "nn.functional"; "" for the package itself
    name: str  # "relu", or "Module.to" for a member of a class
    value: Any
    old: bool = False  # for older scripts, from `compatibility`

    @property
    def full(self) -> str:
        """The name as users write it."""
        return ".".join(filter(None, ("flow", self.module, self.name)))

    @property
    def doc(self) -> str:
        """The docstring; empty where there is none of its own."""
        told = callable(self.value) or isinstance(self.value, property)
        return inspect.cleandoc(self.value.__doc__ or "") if told else ""


def module_at(path: str) -> Any:
    """Return the module at a path of names, "" for the package itself."""
    try:
        return functools.reduce(getattr, filter(None, path.split(".")), flow)
    except AttributeError:
        return importlib.import_module(f"oneflow_lite.{path}")


@functools.cache
def names_of_module(path: str) -> dict[str, Any]:
    """Return the public names of a module, with their values."""
    module = module_at(path)
    values = {n: getattr(module, n) for n in dir(module) if n[0] != "_"}
    for name, value in values.items():
        if isinstance(value, ModuleType) and callable(value):  # the module of that function
            values[name] = getattr(value, name, value)
    return values


@functools.cache
def modules() -> dict[str, ModuleType]:
    """Return the public modules by path, "" for the package itself, parents first."""
    exposure.load_everything()
    found: dict[str, ModuleType] = {}
    todo = [("", flow), *((path, module_at(path)) for path in BY_PATH if _is_there(path))]
    while todo:
        path, module = todo.pop(0)
        if path in NOT_LISTED or module in found.values():
            continue
        found[path] = module
        for name, value in names_of_module(path).items():
            if isinstance(value, ModuleType) and value.__name__.startswith("oneflow_lite"):
                todo.append((f"{path}.{name}".lstrip("."), value))
    return dict(sorted(found.items()))


def _is_there(path: str) -> bool:
    try:
        return bool(module_at(path))
    except ModuleNotFoundError:
        return False


def _members(cls: type, public: set[type]) -> Iterator[tuple[str, Any]]:
    """Yield what a class defines without an underscore, itself or in bases that are not public."""
    homes = [base for base in cls.__mro__ if base is cls or base not in public]
    homes = [home for home in homes if home.__module__.startswith("oneflow_lite")]
    own_init = any("__init__" in vars(home) for home in homes)
    parameters = inspect.signature(cls).parameters if own_init else {}
    for name in sorted({name for home in homes for name in vars(home)}):
        value = next(vars(home)[name] for home in homes if name in vars(home))
        if isinstance(value, (classmethod, staticmethod)):
            value = value.__func__
        if name.startswith("_") or not (callable(value) or isinstance(value, property)):
            continue
        bases = [base for base in cls.__mro__[1:] if base in public]
        inherited = any(hasattr(b, name) or name in b.__annotations__ for b in bases)
        told = name in parameters if isinstance(value, property) else isinstance(value, type)
        if told or (inherited and not value.__doc__):
            continue  # told about as a parameter of the class, or where it comes from
        yield name, value


@functools.cache
def public_names() -> dict[str, Name]:
    """Return every public name by its spelling, `flow.nn.Module.to`."""
    found = [
        Name(path, name, value)
        for path in modules()
        for name, value in names_of_module(path).items()
        if not isinstance(value, ModuleType)
    ]
    classes = {n.value for n in found if isinstance(n.value, type)}
    told: set[type] = set()
    for each in sorted(found, key=rank):
        if isinstance(each.value, type) and each.value not in told:
            told.add(each.value)
            members = _members(each.value, classes)
            found += [Name(each.module, f"{each.name}.{name}", value) for name, value in members]
    found += _old_names()
    by_name: dict[str, Name] = {}
    for each in found:
        by_name.setdefault(each.full, each)
    return by_name


def rank(name: Name) -> tuple[Any, ...]:
    """Order names of one object: the first is where it is told about, the others point to it."""
    own = getattr(name.value, "__name__", "") == name.name
    return (name.old, "." in name.name, not own, name.module.count("."), name.full)


def _old_names() -> Iterator[Name]:
    """Yield the names that `compatibility` keeps for older scripts."""
    for path in ("", "autograd", "cuda", "nn", "nn.parallel"):
        for name, (home, _) in compatibility.homes(path).items():
            if home.startswith("compatibility.") and home.split(".")[1] not in NOT_OLD:
                yield Name(path, name, getattr(module_at(path), name), old=True)


# Files of names that docs/pytorch_names.md lists, and lists of modules.
NOT_OLD = {"*", "foreach", "helpers", "inert"}


@functools.cache
def homes() -> dict[int, str]:
    """Return the full name under which each object is told about, by its id."""
    found: dict[int, str] = {}
    for each in sorted(public_names().values(), key=rank):
        if callable(each.value):
            found.setdefault(id(each.value), each.full)
    return found


def has_page(name: Name) -> bool:
    """Return whether the page of a kind leads to one for this name, rather than to another name."""
    return "." not in name.name and homes().get(id(name.value)) == name.full


def of_module(module: str, defined_in: str = "", old: bool = False) -> list[Name]:
    """Return the names of a module without members of classes; of some origin only, if asked."""
    names = [n for n in public_names().values() if n.module == module and "." not in n.name]
    wanted = defined_in.split()
    return [n for n in names if n.old == old and (not wanted or _home(n.value) in wanted)]


def _home(value: Any) -> str:
    """Return the module that defines a value: "functors.reduce", "dtype"."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return str(module).removeprefix("oneflow_lite.")


def members_of(name: Name) -> list[Name]:
    """Return the members of a class."""
    start = f"{name.full}."
    return [n for full, n in public_names().items() if full.startswith(start) and "." in n.name]


def without_docstring() -> list[str]:
    """Return the functions, classes and properties that say nothing about themselves."""
    return [
        n.full
        for n in public_names().values()
        if not n.doc and (callable(n.value) or isinstance(n.value, property))
    ]
