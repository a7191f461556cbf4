"""Names that can be imported and not be used: classes that raise when they are called.

A class can stand in annotations and tables, and be asked by `isinstance`, which answers False.
"""

from __future__ import annotations

import functools
from abc import ABCMeta
from typing import Any

from oneflow_lite.errors import UnsupportedError


class Refusal(ABCMeta):
    """The type of the refused names."""

    _path: str
    _hint: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(f"{cls._path} is not supported; {cls._hint}")

    def __getattr__(cls, name: str) -> Any:
        if name[0].isupper():  # a member of an enumeration, a default in a signature
            return refused(f"{cls._path}.{name}", cls._hint)
        raise AttributeError(f"{cls._path}.{name} is not supported; {cls._hint}", name=name)

    def __repr__(cls) -> str:
        return f"<refused {cls._path}>"

    def __getitem__(cls, item: Any) -> Any:
        return cls  # in annotations


@functools.cache
def refused(path: str, hint: str) -> Refusal:
    """Return the class of a refused name."""
    doc = f"Refused when it is called: {hint}."
    body = {"__doc__": doc, "__module__": __name__, "_path": path, "_hint": hint}
    return Refusal(path.rpartition(".")[2], (), body)
