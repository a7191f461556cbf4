"""`import torch` that means this library, in a `with` block or for a whole script.

    python -m oneflow_lite.mock_torch train.py --epochs 3

An import hook answers for `torch` and every name that begins with `torch.`. On entering, the real
torch is put aside. On leaving, every module that was imported inside and took an object from our
torch is put aside. So each world finds its own modules again. A module that was imported before
keeps the torch it has.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from oneflow_lite.arrays.dtype_object import dtype
from oneflow_lite.ops.exposure import expose

expose(globals())

VERSION = "2.13.0"  # of the PyTorch whose names the library has
_OWN = "oneflow_lite"


class _Torch(ModuleType):
    """The module that `import torch` gives: the library, under torch's name and version."""

    def __getattr__(self, name: str) -> Any:
        if name == "ops":  # the room of that name is none of PyTorch's
            return importlib.import_module(f"{_OWN}.compatibility.library").ops
        return getattr(sys.modules[_OWN], name)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *dir(sys.modules[_OWN])})


class _Finder(MetaPathFinder, Loader):
    """Finds our module for a name of torch's."""

    def __init__(self) -> None:
        self._specs: dict[int, Any] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "torch" and not name.startswith("torch."):
            return None
        if name != "torch" and self._module(name) is None:
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.name == "torch":
            torch = _Torch("torch", "oneflow_lite under the name of PyTorch.")
            torch.__version__ = VERSION  # type: ignore[attr-defined]
            return torch
        module = self._module(spec.name)
        assert module is not None
        self._specs[id(module)] = module.__spec__, getattr(module, "__path__", None)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if type(module) is _Torch:
            return
        spec, path = self._specs.pop(id(module))  # the import system has put its own there
        module.__spec__ = spec
        if path is None:
            module.__path__ = []

    def _module(self, name: str) -> ModuleType | None:
        """Return the library's module of a name, or None."""
        parent, _, child = name.rpartition(".")
        member = getattr(sys.modules[parent], child, None)
        if isinstance(member, ModuleType):
            return member
        ours = f"{_OWN}.{name.removeprefix('torch.')}"
        try:
            return importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name is None or not ours.startswith(error.name):  # a missing dependency
                raise
        home = sys.modules[parent]
        text = _absent(home.__name__ if type(home) is not _Torch else _OWN, child)
        raise ModuleNotFoundError(f"No module named {name!r} in oneflow_lite: {text}", name=name)


def _absent(module: str, name: str) -> str:
    from oneflow_lite.compatibility import absent

    return absent(module, name)


_finder = _Finder()
_depth = 0
_put_aside: dict[str, ModuleType] = {}  # the other world's entries of sys.modules


def _is_torch(name: str) -> bool:
    return name == "torch" or name.startswith("torch.")


def _bound(new: dict[str, ModuleType]) -> set[str]:
    """Return the names of the modules that hold an object of torch's, or of a module so bound."""
    bound = {name for name in new if _is_torch(name)}
    packages: set[str] = set()

    def holds(module: ModuleType) -> bool:
        for value in list(vars(module).values()):
            home = value.__name__ if isinstance(value, ModuleType) else _home(value)
            if home in bound or home.partition(".")[0] in {_OWN, "torch", *packages}:
                return True
        return False

    while True:
        more = {n for n, module in new.items() if n not in bound and holds(module)}
        # A package whose part is bound goes as a whole.
        packages |= {n.partition(".")[0] for n in bound | more} - {"__main__"}
        more |= {n for n in new if n not in bound and n.partition(".")[0] in packages}
        if not more:
            return bound
        bound |= more


def _home(value: Any) -> str:
    try:
        home = getattr(value, "__module__", None)
    except Exception:  # an object of somebody else's that answers in its own way
        return ""
    return home if isinstance(home, str) else ""


def _change_world(names: set[str]) -> None:
    """Put modules of these names aside, and bring back the modules that were put aside."""
    global _put_aside
    names |= set(_put_aside)
    leaving = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.modules.update(_put_aside)
    _put_aside = leaving


@contextmanager
def enable() -> Iterator[None]:
    """Let `import torch` mean this library in a `with` block; `flow.mock_torch()` is the same.

    Blocks may be nested. `torch.__version__` is the version of PyTorch whose names the library has.

    Raises `ModuleNotFoundError` for a module of torch's that the library lacks.

    >>> import oneflow_lite as flow
    >>> with flow.mock_torch():
    ...     import torch
    ...     import torch.nn.functional as F
    >>> torch.nn is flow.nn, F.relu is flow.nn.functional.relu, torch.__version__
    (True, True, '2.13.0')
    """
    global _depth
    back = set() if _depth else set(_put_aside)
    if not _depth:
        _change_world({name for name in sys.modules if _is_torch(name)})
        sys.meta_path.insert(0, _finder)
        dtype.prefix = "torch."
    before = set(sys.modules) - back
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            sys.meta_path.remove(_finder)
            dtype.prefix = ""
            new = {
                name: module
                for name, module in list(sys.modules.items())
                if (name not in before or _is_torch(name))
                and hasattr(module, "__dict__")
                and name.partition(".")[0] != _OWN
            }
            importlib.invalidate_caches()
            _change_world(_bound(new))


class _Callable(ModuleType):
    """This module: `flow.mock_torch()` is `flow.mock_torch.enable()`."""

    def __call__(self) -> Any:
        return enable()


sys.modules[__name__].__class__ = _Callable


def main() -> None:
    """Run a script, or with -m a module, in which `import torch` means this library.

    Under mpiexec it finds its rank where torchrun puts it, in RANK, WORLD_SIZE and LOCAL_RANK.
    """
    as_module = sys.argv[1:2] == ["-m"]
    arguments = sys.argv[2:] if as_module else sys.argv[1:]
    if not arguments:
        sys.exit("usage: python -m oneflow_lite.mock_torch [-m] script.py [arguments]")
    sys.argv = arguments
    given = importlib.import_module(f"{_OWN}.distributed.process_group").launcher_environment()
    os.environ.update({name: text for name, text in given.items() if name not in os.environ})
    with enable():
        if as_module:
            runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(arguments[0]).resolve().parent)
            runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    # Python runs this file as `__main__`, a second module: the first has the state.
    importlib.import_module("oneflow_lite.mock_torch").main()
