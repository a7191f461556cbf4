"""Names that can be imported and not be used: classes that raise when they are called.

A class can stand in annotations and tables, and be asked by `isinstance`, which answers False.
"""

from __future__ import annotations

import functools
from abc import ABCMeta
from typing import Any

from oneflow_lite.errors import UnsupportedError

# Largest number, distance of 1 to the next, smallest normal number: of the 8 bit floats of the Open
# Compute Project (OFP8 and MX specifications), and of those without infinities and -0.
_FLOATS = {
    "float8_e4m3fn": (448.0, 0.125, 2.0**-6),
    "float8_e4m3fnuz": (240.0, 0.125, 2.0**-7),
    "float8_e5m2": (57344.0, 0.25, 2.0**-14),
    "float8_e5m2fnuz": (57344.0, 0.25, 2.0**-15),
    "float8_e8m0fnu": (2.0**127, 1.0, 2.0**-127),
}


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
    name = path.rpartition(".")[2]
    body: dict[str, Any] = {"__doc__": doc, "__module__": __name__, "_path": path, "_hint": hint}
    if name in _FLOATS:  # packages ask for limits when they are imported
        top, eps, tiny = _FLOATS[name]
        limits = {"max": top, "min": -top if eps < 1 else tiny, "eps": eps, "tiny": tiny}
        body |= {"limits": {**limits, "smallest_normal": tiny, "resolution": 1.0, "bits": 8}}
        body |= {
            "itemsize": 1,
            "is_floating_point": True,
            "is_complex": False,
            "is_signed": eps < 1,
        }
    return Refusal(name, (), body)
