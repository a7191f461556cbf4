"""The modules behind the names `cupy` and `cupyx`: NumPy's functions, found by name, wrapped."""

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from tests.strict_cupy import creation, devices, facts, generators, kernels, methods
from tests.strict_cupy.array import call, call_ufunc, ndarray


class Ufunc:
    """A ufunc over arrays of the stand-in and scalars, with the methods that CuPy's has."""

    def __init__(self, ufunc: Any) -> None:
        self._ufunc = ufunc
        self.__name__: str = ufunc.__name__
        self.nin, self.nout, self.nargs = ufunc.nin, ufunc.nout, ufunc.nargs

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return call_ufunc(self._ufunc, "__call__", args, keywords)

    def at(self, a: ndarray, indices: Any, *values: Any) -> None:
        call_ufunc(self._ufunc, "at", (a, indices, *values), {})

    def reduce(self, array: ndarray, **keywords: Any) -> Any:
        return call_ufunc(self._ufunc, "reduce", (array,), keywords)

    def accumulate(self, array: ndarray, **keywords: Any) -> Any:
        return call_ufunc(self._ufunc, "accumulate", (array,), keywords)

    def reduceat(self, array: ndarray, indices: ndarray, **keywords: Any) -> Any:
        return call_ufunc(self._ufunc, "reduceat", (array, indices), keywords)

    def outer(self, first: ndarray, second: ndarray) -> Any:
        return call_ufunc(self._ufunc, "outer", (first, second), {})


class Module(types.ModuleType):
    """A module that wraps what another one has under a name, when the name is first asked for."""

    def __init__(
        self,
        name: str,
        source: Any,
        *,
        only: frozenset[str] | None = None,
        lacking: frozenset[str] = frozenset(),
        own: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(name)
        self.__dict__.update(own or {})
        self._source, self._only, self._lacking = source, only, lacking

    def __getattr__(self, name: str) -> Any:
        missing = AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name.startswith("_") or name in self._lacking or not hasattr(self._source, name):
            raise missing
        value = getattr(self._source, name)
        if isinstance(value, types.ModuleType) or name not in (self._only or {name}):
            raise missing
        adapted = _adapt(name, value)
        setattr(self, name, adapted)
        return adapted


def _adapt(name: str, value: Any) -> Any:
    if isinstance(value, np.ufunc):
        return Ufunc(value)
    if isinstance(value, type) or not callable(value):
        return value
    return _function(name, value)


def _function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **keywords: Any) -> Any:
        if name not in facts.HOST_FIRST and args and _is_host_sequence(args[0]):
            raise TypeError(f"{name}() takes arrays; got a {type(args[0]).__name__}")
        return call(name, function, args, keywords)

    wrapped.__name__ = wrapped.__qualname__ = name
    return wrapped


def _is_host_sequence(value: Any) -> bool:
    """Return whether NumPy makes an array of this and CuPy does not: a list with no array in it."""
    return isinstance(value, list | tuple) and not any(
        isinstance(item, ndarray)
        or (isinstance(item, list | tuple) and not _is_host_sequence(item))
        for item in value
    )


def _get_array_module(*arguments: Any) -> Any:
    """Return the stand-in if any argument is one of its arrays, NumPy otherwise."""
    return cupy if any(isinstance(argument, ndarray) for argument in arguments) else np


def _make_random() -> Module:
    shared = generators.RandomState()
    classes = "BitGenerator Generator MRG32k3a Philox4x3210 RandomState XORWOW".split()
    own = {name: getattr(generators, name) for name in classes}
    own |= {name: getattr(shared, name) for name in facts.RANDOM_FUNCTIONS}
    own["default_rng"] = lambda seed=None: generators.Generator(generators.XORWOW(seed))
    return Module("cupy.random", None, own=own)


def _make_cupy() -> Module:
    stride_tricks = Module(
        "cupy.lib.stride_tricks",
        np.lib.stride_tricks,
        only=frozenset({"sliding_window_view"}),
        own={"as_strided": creation.as_strided},
    )
    return Module(
        "cupy",
        np,
        lacking=facts.LACKING_FUNCTIONS | facts.NOT_IMITATED,
        own={
            "__version__": "0+strict.stand.in",
            "cuda": devices.make_module(),
            "fft": Module("cupy.fft", np.fft),
            "get_array_module": _get_array_module,
            "is_available": devices.is_available,
            "lib": Module("cupy.lib", None, own={"stride_tricks": stride_tricks}),
            "linalg": Module("cupy.linalg", np.linalg, lacking=facts.LACKING_LINALG),
            "RawKernel": kernels.RawKernel,
            "RawModule": kernels.RawModule,
            "ndarray": ndarray,
            "random": _make_random(),
            "ufunc": Ufunc,
        }
        | {function.__name__: function for function in creation.FUNCTIONS},
    )


@contextlib.contextmanager
def _errstate(*, linalg: str) -> Iterator[None]:
    """Say whether routines of linear algebra raise where they fail; here they always do."""
    if linalg not in ("ignore", "raise"):
        raise NotImplementedError
    yield


def _make_cupyx() -> Module:
    def scatter(name: str) -> Callable[[ndarray, Any, Any], None]:
        return lambda a, slices, value: getattr(cupy, name).at(a, slices, value)

    def rsqrt(x: ndarray, out: ndarray | None = None) -> ndarray:
        return cupy.reciprocal(cupy.sqrt(x), out=out)

    scipy_module = Module(
        "cupyx.scipy",
        None,
        own={
            "linalg": Module("cupyx.scipy.linalg", scipy.linalg, only=facts.SCIPY_LINALG_FUNCTIONS),
            "special": Module("cupyx.scipy.special", scipy.special, only=facts.SPECIAL_FUNCTIONS),
        },
    )
    return Module(
        "cupyx",
        None,
        own={
            "empty_pinned": np.empty,
            "errstate": _errstate,
            "rsqrt": rsqrt,
            "scatter_add": scatter("add"),
            "scatter_max": scatter("maximum"),
            "scatter_min": scatter("minimum"),
            "scipy": scipy_module,
        },
    )


methods.attach()
cupy = _make_cupy()
cupyx = _make_cupyx()

# What `import` finds, by name.
BY_NAME: dict[str, types.ModuleType] = {
    "cupy": cupy,
    "cupy.cuda": cupy.cuda,
    "cupy.cuda.nccl": cupy.cuda.nccl,
    "cupy.cuda.runtime": cupy.cuda.runtime,
    "cupy.fft": cupy.fft,
    "cupy.lib": cupy.lib,
    "cupy.lib.stride_tricks": cupy.lib.stride_tricks,
    "cupy.linalg": cupy.linalg,
    "cupy.random": cupy.random,
    "cupyx": cupyx,
    "cupyx.scipy": cupyx.scipy,
    "cupyx.scipy.linalg": cupyx.scipy.linalg,
    "cupyx.scipy.special": cupyx.scipy.special,
}
