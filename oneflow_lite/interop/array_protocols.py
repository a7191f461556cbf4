"""The protocols through which other libraries meet tensors: NumPy's dispatch and the array API.

`np.sin(t)` and `np.mean(t)` arrive here and go on to the adapters of `oneflow_lite.array_api`,
which call functors, so gradients are recorded. Functions without an adapter are NumPy's on the
arrays; a call that would lose a gradient raises instead.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from oneflow_lite import array_api
from oneflow_lite.array_api import (
    numpy_only as numpy_only,
    padding as padding,
    sampled as sampled,
)
from oneflow_lite.array_api.adapter import (
    ADAPTERS,
    NoFunctorError,
    functor,
    no_gradient_error,
    tensors_in,
    through_numpy,
)
from oneflow_lite.array_api.elementwise import meet, tensor
from oneflow_lite.array_api.functions import cast
from oneflow_lite.array_api.places import MOVERS
from oneflow_lite.arrays.device import is_array
from oneflow_lite.errors import ArgumentError, InplaceError, arg_error
from oneflow_lite.interop import scipy_special
from oneflow_lite.tensors.tensor import Tensor

# Functors of ufuncs of scipy.special with another name; the rest is looked up by name.
SCIPY_SPECIAL = {
    "expit": "sigmoid",
    "gammaln": "lgamma",
    "j0": "bessel_j0",
    "j1": "bessel_j1",
    "k0": "modified_bessel_k0",
    "k0e": "scaled_modified_bessel_k0",
    "k1": "modified_bessel_k1",
    "k1e": "scaled_modified_bessel_k1",
    "psi": "digamma",
    "y0": "bessel_y0",
    "y1": "bessel_y1",
}

# The reductions, by their ufunc: `np.add.reduce` is `sum`.
REDUCE = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
ACCUMULATE = {"add": "cumsum", "multiply": "cumprod"}
ACCUMULATE_FUNCTORS = {"maximum": "cummax", "minimum": "cummin", "logaddexp": "logcumsumexp"}

# Functions of NumPy that write into an argument, and the tensor's own method for each.
WRITERS = {
    "copyto": "copy_()",
    "fill_diagonal": "diagonal() and copy_()",
    "place": "tensor[mask] = values",
    "put": "index_put_() or tensor[index] = values",
    "put_along_axis": "scatter_()",
    "putmask": "masked_fill_() or tensor[mask] = values",
}

# Values of NumPy's options that change nothing here.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "casting": ("same_kind",),
    "device": (None, "cpu"),
    "order": (None, "A", "C", "K"),
    "subok": (True, False),
    "where": (True,),
}


def _unknown(values: Any) -> bool:
    """Return whether a value has a protocol of its own, so that its type decides first."""
    known = (None, np.ndarray.__array_ufunc__, array_ufunc)
    for value in values:
        own = getattr(type(value), "__array_ufunc__", None)
        ours = isinstance(value, np.generic) or is_array(value)
        if own not in known and (not ours or isinstance(value, np.ndarray)):
            return True
    return False


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """Run a ufunc of NumPy, or of scipy.special, through its functor."""
    out = options.pop("out", None)
    if _unknown((*inputs, *(out or ()))):
        return NotImplemented
    name = f"np.{ufunc.__name__}" if method == "__call__" else f"np.{ufunc.__name__}.{method}"
    outs = () if out is None else tuple([x for x in out if x is not None])
    if method == "at":
        raise InplaceError(f"{name}(): a tensor is not written this way; use index_put_()")
    try:
        run = _functor_of(ufunc, method)
    except NoFunctorError:
        run = None
    if run is None or options.get("where", True) is not True or any(map(is_array, outs)):
        return _without_functor(name, ufunc, method, inputs, options, outs)
    options.pop("where", None)
    dtype = options.pop("dtype", None)
    try:
        if method == "__call__" and not options:
            given = inputs if dtype is None else [cast(x, dtype) for x in inputs]
            result = run(*given)
        else:
            result = run(*inputs, **options, **({} if dtype is None else {"dtype": dtype}))
    except NoFunctorError:
        return _without_functor(name, ufunc, method, inputs, options, outs)
    return _written(name, result, outs)


def _functor_of(ufunc: np.ufunc, method: str) -> Callable[..., Any] | None:
    name = ufunc.__name__
    special = sys.modules.get("scipy.special")
    if special is not None and getattr(special, name, None) is ufunc:
        if method != "__call__":
            return None
        if name in scipy_special.DERIVATIVES:
            return functools.partial(scipy_special.run, name)
        path = SCIPY_SPECIAL.get(name, name)
        try:
            special_functor = functor(f"special.{path}")
        except NoFunctorError:
            special_functor = functor(path)
        return lambda *xs: special_functor(*(xs if len(xs) == 1 else meet(path, *xs)))
    if getattr(np, name, None) is not ufunc:
        return None
    if method == "__call__":
        return ADAPTERS.get(name)
    if method == "reduce":
        return _reducer(name)
    if method == "accumulate":
        return _accumulator(name)
    if method == "outer":
        run = ADAPTERS.get(name)
        return None if run is None else functools.partial(_outer, run)
    return None


def _reducer(name: str) -> Callable[..., Any] | None:
    if name in REDUCE:
        run = ADAPTERS[REDUCE[name]]
    elif name == "logaddexp":
        run = _logsumexp
    else:
        return None

    def reduce(x: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False) -> Any:
        x = cast(x, dtype)
        return run(x, axis=None if not x.ndim else axis, keepdims=keepdims)

    return reduce


def _logsumexp(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return functor("logsumexp")(x, tuple(range(x.ndim)) if axis is None else axis, keepdims)


def _accumulator(name: str) -> Callable[..., Any] | None:
    def accumulate(x: Any, axis: int = 0, dtype: Any = None) -> Any:
        x = cast(x, dtype)
        if name in ACCUMULATE:
            return ADAPTERS[ACCUMULATE[name]](x, axis=axis)
        result = functor(ACCUMULATE_FUNCTORS[name])(x, axis)
        return result[0] if isinstance(result, tuple) else result

    return accumulate if name in ACCUMULATE or name in ACCUMULATE_FUNCTORS else None


def _outer(run: Callable[..., Any], x: Any, y: Any) -> Any:
    x, y = tensor(x), tensor(y)
    return run(x.reshape(*x.shape, *[1] * y.ndim), y)


def _without_functor(
    name: str, ufunc: np.ufunc, method: str, inputs: Any, options: Any, outs: Any
) -> Any:
    """Let NumPy compute; raise where a gradient would get lost."""
    if any([x.requires_grad for x in tensors_in((inputs, options, outs))]) and (
        outs or options.get("where", True) is not True
    ):
        what = "out" if outs else "where"
        raise arg_error(
            name,
            what,
            expected="none where a tensor requires a gradient, since it would not be recorded",
            got=f"{what}=",
            hint="use flow.where() on the result, or detach() the tensors",
            kind=ArgumentError,
        )
    if any([isinstance(x, Tensor) for x in outs]):
        return _written(name, _without_functor(name, ufunc, method, inputs, options, ()), outs)
    run = ufunc if method == "__call__" else getattr(ufunc, method)
    out = {"out": outs if len(outs) > 1 else outs[0]} if outs else {}
    result = through_numpy(name.removeprefix("np."), inputs, {**options, **out}, run)
    return (outs if len(outs) > 1 else outs[0]) if outs else result


def _written(name: str, result: Any, outs: tuple[Any, ...]) -> Any:
    """Return the result, or write it to the tensors of `out=` and return these."""
    if not outs:
        return result
    results = result if isinstance(result, tuple) else (result,)
    if any([x.requires_grad for x in (*results, *outs)]):
        raise arg_error(
            name,
            "out",
            expected="none where a tensor requires a gradient, since the write is not recorded",
            got="a tensor",
            hint="call it without out, or detach() the tensors",
            kind=ArgumentError,
        )
    for x, y in zip(outs, results, strict=True):
        x.copy_(y)
    return outs if len(outs) > 1 else outs[0]


def array_function(
    self: Tensor, function: Callable[..., Any], types: Any, args: Any, options: Any
) -> Any:
    """Run a function of NumPy through its adapter."""
    if not all([issubclass(cls, (Tensor, np.ndarray)) for cls in types]):
        return NotImplemented
    module = function.__module__.partition("numpy")[2].lstrip(".")
    path = f"{module}.{function.__name__}" if module else function.__name__
    run = ADAPTERS.get(path)
    target = args[0] if args else options.get("dst", options.get("a"))
    if path in WRITERS and isinstance(target, Tensor) and (run is None or options):
        raise InplaceError(
            f"np.{path}(): a tensor is not written this way; use Tensor.{WRITERS[path]}"
        )
    if not (path in WRITERS and not isinstance(target, Tensor)):
        for fit in [table[path] for table in (ADAPTERS, MOVERS) if path in table]:
            call = _fitting(fit, function, args, options)
            if call is not None:
                return fit(*call[0], **call[1])
    if path in WRITERS and any([x.requires_grad for x in tensors_in((args, options))]):
        raise no_gradient_error(f"np.{path}", options)
    return through_numpy(path, args, options, function)


def _says_nothing(option: str, value: Any) -> bool:
    return isinstance(value, (str, bool, type(None))) and value in NEUTRAL.get(option, ())


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _fitting(
    run: Callable[..., Any], function: Callable[..., Any], args: Any, options: Any
) -> tuple[Any, Any] | None:
    """Return the arguments in the adapter's form; None for options that it does not know."""
    options = {key: value for key, value in options.items() if not _says_nothing(key, value)}
    try:
        _signature(run).bind(*args, **options)
    except TypeError:
        pass
    else:
        return args, options
    try:  # NumPy's names of the first parameters, which the adapter takes by position only
        bound = _signature(function).bind(*args, **options)
        call = bound.args, bound.kwargs
        _signature(run).bind(*call[0], **call[1])
    except (TypeError, ValueError):
        return None
    return call


def array_namespace(self: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    """Return the module with the functions of the array API standard."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise arg_error(
            "__array_namespace__",
            "api_version",
            expected="a version up to '2024.12'",
            got=repr(api_version),
            hint="leave it out",
            kind=ArgumentError,
        )
    return array_api
