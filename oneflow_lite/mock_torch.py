"""`import torch` that means this library: in a `with` block, a script, or a notebook.

    python -m oneflow_lite.mock_torch train.py --epochs 3
    python -m oneflow_lite.mock_torch -m pytest tests
    python -m oneflow_lite.mock_torch -c "import torch; print(torch.__version__)"
    %load_ext oneflow_lite.mock_torch

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
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution
from pathlib import Path
from types import ModuleType
from typing import Any

from oneflow_lite.arrays.dtype_object import dtype
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.ops.exposure import expose, load_all
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

VERSION = "2.13.0"  # of the PyTorch whose names the library has
METADATA = f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n"
_OWN = "oneflow_lite"


class _Torch(ModuleType):
    """The module that `import torch` gives: the library, under torch's name and version."""

    def __getattr__(self, name: str) -> Any:
        if name == "torch":  # people write `torch.torch.Tensor`
            return self
        if name == "ops":  # the room of that name is none of PyTorch's
            return importlib.import_module(f"{_OWN}.compatibility.library").ops
        value = vars(self)[name] = getattr(sys.modules[_OWN], name)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *dir(sys.modules[_OWN])})


class _Finder(MetaPathFinder, Loader):
    """Finds our module for a name of torch's."""

    def __init__(self) -> None:
        self._specs: dict[int, Any] = {}
        self._given: list[tuple[dict[str, Any], str]] = []

    @property
    def _table(self) -> Any:
        return importlib.import_module(f"{_OWN}.compatibility")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not _is_torch(name):
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
        parent, _, child = spec.name.rpartition(".")
        if parent and child not in vars(sys.modules[parent]):
            self._given.append((vars(sys.modules[parent]), child))
        self._specs[id(module)] = module.__spec__, getattr(module, "__path__", None)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if type(module) is _Torch:
            for room in ("functors", "kernels", "grad_funcs"):  # PyTorch is loaded as a whole, too
                load_all(room)
            importlib.import_module(f"{_OWN}.optim")
            return
        spec, path = self._specs.pop(id(module))  # the import system has put its own there
        module.__spec__ = spec
        if path is None:
            module.__path__ = []

    def take_back(self) -> None:
        """Take from modules what the import system has put there: their parts by torch's names."""
        for names, child in self._given:
            names.pop(child, None)
        self._given.clear()

    def _module(self, name: str) -> ModuleType | None:
        """Return the library's module of a name, or None."""
        if name == "functorch":  # the older name of torch.func
            return importlib.import_module(f"{_OWN}.func")
        parent, _, child = name.rpartition(".")
        path = name.removeprefix("torch.")
        place = path.rpartition(".")[0]
        member = getattr(sys.modules[parent], child, None)
        if not isinstance(member, ModuleType) and self._table.has(path):
            member = self._table.find(place, child)  # `annotations` of jit is Python's, too
        if isinstance(member, ModuleType):
            return self._table.answering(member, path)  # type: ignore[no-any-return]
        ours = f"{_OWN}.{path}"
        try:
            return self._table.answering(importlib.import_module(ours), path)  # type: ignore[no-any-return]
        except ModuleNotFoundError as error:
            if error.name is None or not ours.startswith(error.name):  # a missing dependency
                raise
        text = self._table.absent(place, child)
        raise ModuleNotFoundError(f"No module named {name!r} in oneflow_lite: {text}", name=name)

    def find_distributions(self, context: Any = None) -> list[Distribution]:
        """Answer for the distribution torch: packages ask for its version."""
        asked = getattr(context, "name", None)
        return [_Distribution()] if asked in (None, "torch") else []


class _Distribution(Distribution):
    """The metadata of a distribution of torch, which nobody has installed."""

    def read_text(self, filename: str) -> str | None:
        """Return the text of a file: METADATA, or none."""
        return METADATA if filename in ("METADATA", "PKG-INFO") else None

    def locate_file(self, path: Any) -> Any:
        """Return a path beside the library."""
        return Path(__file__).parent / path


_finder = _Finder()
_depth = 0
_put_aside: dict[str, ModuleType] = {}  # the other world's entries of sys.modules


def _is_torch(name: str) -> bool:
    return name in ("torch", "functorch") or name.startswith("torch.")


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


# Packages choose functions by the module that the class of a tensor is from.
_homes: dict[type, str] = {Tensor: "torch", Parameter: "torch.nn.parameter"}


def _exchange_homes() -> None:
    for cls, home in _homes.items():
        _homes[cls], cls.__module__ = cls.__module__, home


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
        _exchange_homes()
    before = set(sys.modules) - back
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            sys.meta_path.remove(_finder)
            _finder.take_back()
            dtype.prefix = ""
            _exchange_homes()
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


def load_ipython_extension(shell: Any) -> None:
    """Let `import torch` mean this library in a notebook: `%load_ext oneflow_lite.mock_torch`."""
    _notebook.append(enable())
    _notebook[-1].__enter__()


def unload_ipython_extension(shell: Any) -> None:
    """Take it back: `%unload_ext oneflow_lite.mock_torch`."""
    if _notebook:
        _notebook.pop().__exit__(None, None, None)


_notebook: list[Any] = []


def write_stand_in() -> Path:
    """Write a distribution torch without modules, so that pip takes its requirement as met.

    `pip uninstall torch` takes it away. Raises `FileExistsError` where a torch is installed.
    """
    folder = Path(sysconfig.get_path("purelib")) / f"torch-{VERSION}.dist-info"
    found = [*folder.parent.glob("torch-*.dist-info")]
    if found and found != [folder]:
        raise FileExistsError(f"torch is installed: {found[0]}; pip uninstall torch first")
    folder.mkdir(exist_ok=True)
    texts = {"METADATA": METADATA, "INSTALLER": f"{_OWN}\n"}
    texts["RECORD"] = "".join(f"{folder.name}/{name},,\n" for name in [*texts, "RECORD"])
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return folder


_USAGE = f"""usage: python -m {_OWN}.mock_torch [-c command | -m module | file] [arguments]

Run Python code in which `import torch` means {_OWN}.

  -c command   run a command, as `python -c` does
  -m module    run a module, as `python -m pytest` does
  file         run a script, or a folder or archive that has a __main__.py
  --stand-in   write a distribution torch without modules, so that pip installs packages that need
               torch, but not torch
  --help       show this text
"""


def main() -> None:
    """Run a script, -m a module or -c a command, in which `import torch` means this library.

    Under mpiexec it finds its rank where torchrun puts it, in RANK, WORLD_SIZE and LOCAL_RANK.
    """
    given = sys.argv[1:]
    if not given or given[0] in ("-h", "--help"):
        print(_USAGE, end="", file=sys.stdout if given else sys.stderr)
        sys.exit(0 if given else 2)
    if given[0] == "--stand-in":
        print(write_stand_in())
        return
    kind = given[0] if given[0] in ("-c", "-m") else ""
    if given[0].startswith("-") and not kind:
        sys.exit(f"unknown option {given[0]}\n{_USAGE}")
    if kind and not given[1:]:
        sys.exit(f"Argument expected for the {kind} option\n{_USAGE}")
    sys.argv = given[1:] if kind == "-m" else given[:1] + given[2:] if kind else given
    rank = importlib.import_module(f"{_OWN}.distributed.process_group").launcher_environment()
    os.environ.update({name: text for name, text in rank.items() if name not in os.environ})
    with enable():
        if kind == "-c":
            sys.path[0] = ""
            names = {"__name__": "__main__", "__builtins__": __builtins__}
            sys.modules["__main__"] = main_module = ModuleType("__main__")
            vars(main_module).update(names)
            exec(compile(given[1], "<string>", "exec"), vars(main_module))
        elif kind == "-m":
            sys.path[0] = os.getcwd()
            runpy.run_module(given[1], run_name="__main__", alter_sys=True)
        elif not os.path.exists(given[0]):
            path = os.path.abspath(given[0])
            sys.exit(f"{sys.executable}: can't open file {path!r}: No such file or directory")
        else:
            sys.path[0] = str(Path(given[0]).resolve().parent)
            runpy.run_path(given[0], run_name="__main__")


if __name__ == "__main__":
    # Python runs this file as `__main__`, a second module: the first has the state.
    importlib.import_module("oneflow_lite.mock_torch").main()
