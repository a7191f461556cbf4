"""Names for the sake of others' scripts and packages: old ones, and some of no use here.

`names.py` is the table of them. Nothing here is imported before somebody asks for a name that is
not elsewhere. A name that is nowhere raises AttributeError with the nearest that exists. It imports
`nn`, `profiler`, functors and the rooms below, and `oneflow_lite` itself. `mock_torch` uses it.
"""

from __future__ import annotations

import difflib
import functools
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any

from oneflow_lite.compatibility.names import NAMES
from oneflow_lite.compatibility.refusal import refused
from oneflow_lite.ops.exposure import path_of, table, taken

# What a script that asks for an absent name is looking for.
HINTS = {
    "distributed.launch": "start the processes with mpiexec",
    "symeig": "use flow.linalg.eigh",
    "eig": "use flow.linalg.eig",
    "solve": "use flow.linalg.solve",
    "lstsq": "use flow.linalg.lstsq",
    "matrix_rank": "use flow.linalg.matrix_rank",
    "rfft": "use flow.fft.rfft",
    "ifft": "use flow.fft.ifft",
}
# The modules of the table, and the packages that they are in.
_PARTS = [path.split(".") for path in NAMES]
MODULES = {".".join(parts[:end]) for parts in _PARTS for end in range(1, len(parts) + 1)}


class StandIn(ModuleType):
    """A module that the table alone describes."""

    def __init__(self, path: str) -> None:
        super().__init__(f"torch.{path}", "See `compatibility/names.py`.")
        self.__path__: list[str] = []
        self._path = path

    def __getattr__(self, name: str) -> Any:
        value = vars(self)[name] = find(self._path, name)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *homes(self._path)})


_stand_in = functools.cache(StandIn)


@functools.cache
def homes(path: str) -> dict[str, tuple[str, str]]:
    """Return the home of each name that the table has of a module."""
    return table(NAMES.get(path, {}))


def find(path: str, name: str) -> Any:
    """Return what a name of a module means, by the table; raise AttributeError with a hint.

    >>> from oneflow_lite.compatibility import find
    >>> find("compiler", "is_compiling")()
    False
    """
    place = f"{path}.{name}".lstrip(".")
    if name in homes(path):
        home, own = homes(path)[name]
        kind, _, hint = home.partition(":")
        if kind == "refused":
            return refused(f"torch.{place}", hint.strip())
        value = taken(home, own)
        return answering(value, place) if isinstance(value, ModuleType) else value
    if place in MODULES:
        return _stand_in(place)
    raise AttributeError(absent(path, name), name=name)


def has(path: str) -> bool:
    """Return whether the table has a name, or a module, of a dotted path."""
    place, _, name = path.rpartition(".")
    return path in MODULES or name in homes(place)


_answers: dict[str, list[str]] = {}  # the paths that a module of ours answers for


def answering(module: ModuleType, path: str) -> ModuleType:
    """Let a module of ours answer for the names that the table has of PyTorch's module, too."""
    own = vars(module).get("__getattr__")
    if not module.__name__.startswith("oneflow_lite.") or isinstance(module, StandIn):
        return module
    if module.__name__ not in _answers:
        if own is not None and path_of(module.__name__) == path:  # it asks the table by itself
            return module
        paths = _answers[module.__name__] = []

        def __getattr__(name: str) -> Any:
            if own is not None:
                with suppress(AttributeError):
                    return own(name)
            place = next((each for each in paths if has(f"{each}.{name}")), path)
            if name.startswith("__"):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return find(place, name)

        vars(module)["__getattr__"] = __getattr__
    if path not in _answers[module.__name__]:
        _answers[module.__name__].append(path)
    return module


def absent(path: str, name: str) -> str:
    """Return the text of the error for a name that is not there, with the nearest substitute."""
    module = f"oneflow_lite.{path}".removesuffix(".")
    module = module if module in sys.modules else f"torch.{path}"
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        return text
    hint = HINTS.get(f"{path}.{name}".lstrip("."))
    if hint is None:
        known = [each for each in dir(sys.modules.get(module)) if not each.startswith("_")]
        near = difflib.get_close_matches(name, [*known, *homes(path)], 1, 0.75)
        hint = f"did you mean {near[0]!r}?" if near else None
    return text if hint is None else f"{text}; {hint}"
