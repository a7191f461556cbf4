"""The stand-in for `cupy.random`: NumPy's generators with the methods that CuPy's have."""

from typing import Any

import numpy as np

from tests.strict_cupy import facts
from tests.strict_cupy.array import call


class BitGenerator:
    """A seeded source of bits; the stand-in takes NumPy's Philox for each of CuPy's."""

    def __init__(self, seed: int | None = None) -> None:
        self.host = np.random.Philox(seed)


class XORWOW(BitGenerator):
    """CuPy's default."""


class MRG32k3a(BitGenerator):
    """One of CuPy's."""


class Philox4x3210(BitGenerator):
    """One of CuPy's."""


class Generator:
    """CuPy's Generator: fewer methods than NumPy's (no `permutation`, no `normal`, no `choice`)."""

    def __init__(self, bit_generator: BitGenerator) -> None:
        self.bit_generator = bit_generator
        self._host = np.random.Generator(bit_generator.host)

    def __getattr__(self, name: str) -> Any:
        if name not in facts.GENERATOR_METHODS:
            raise AttributeError(f"'Generator' object has no attribute {name!r}")
        return _drawing(name, getattr(self._host, name))


class RandomState:
    """CuPy's older generator."""

    def __init__(self, seed: int | None = None) -> None:
        self._host = np.random.RandomState(seed)

    def __getattr__(self, name: str) -> Any:
        if name not in facts.RANDOM_FUNCTIONS:
            raise AttributeError(f"'RandomState' object has no attribute {name!r}")
        return _drawing(name, getattr(self._host, name))


def _drawing(name: str, draw: Any) -> Any:
    def host_draw(*args: Any, **keywords: Any) -> Any:
        numbers = draw(*args, **keywords)
        return None if numbers is None else np.asarray(numbers)

    def function(*args: Any, **keywords: Any) -> Any:
        # CuPy's older functions take a dtype where NumPy's of the same names take none.
        if isinstance(draw.__self__, np.random.RandomState) and name != "randint":
            dtype = keywords.pop("dtype", None)
            result = call(name, host_draw, args, keywords)
            return result if dtype is None else result.astype(dtype)
        return call(name, host_draw, args, keywords)

    return function
