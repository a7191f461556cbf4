"""Elementwise functions of one operand or two, under NumPy's and the standard's names."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.array_api.adapter import adapter, as_tensors, functor, tensors_in
from oneflow_lite.arrays.dtype import SCALAR_TYPES, DType, common_dtype
from oneflow_lite.interpreter.dispatch import promote
from oneflow_lite.tensors.tensor import Tensor

# By the standard's or NumPy's name the functor's name, where the names differ.
RENAMED = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "bitwise_invert": "bitwise_not",
    "conjugate": "conj",
    "degrees": "rad2deg",
    "divide": "div",
    "equal": "eq",
    "fabs": "abs",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "power": "pow",
    "radians": "deg2rad",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "subtract": "sub",
}

# The standard's names, then NumPy's further names: each is a functor of as many operands.
UNARY = """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor isfinite
    isinf isnan log log10 log1p log2 logical_not negative positive reciprocal round sign signbit
    sin sinh sqrt square tan tanh trunc
""".split()
BINARY = """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign
    divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and
    logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract
""".split()
NUMPY_UNARY = """
    absolute arccos arccosh arcsin arcsinh arctan arctanh conjugate deg2rad degrees exp2 fabs
    frexp invert rad2deg radians rint
""".split()
NUMPY_BINARY = """
    arctan2 float_power fmax fmin fmod gcd heaviside lcm ldexp left_shift logaddexp2 power
    right_shift
""".split()
# These functors take a number in place of an operand; for all others it becomes a tensor first.
TAKE_NUMBERS = set(
    """
    add bitwise_and bitwise_or bitwise_xor div eq floor_divide fmod ge gt le lt mul ne pow
    remainder sub
    """.split()
)


def operate(name: str, *operands: Any, **options: Any) -> Any:
    """Run the functor of a name on operands: tensors, arrays, numbers, or sequences of numbers."""
    path = RENAMED.get(name, name)
    function = functor(path)
    given = _alike(operands)
    tensors = [isinstance(x, Tensor) for x in given]
    if not any(tensors) or (not all(tensors) and path not in TAKE_NUMBERS):
        given = promote(path, *given)
    return function(*given, **options)


def _alike(operands: Sequence[Any]) -> list[Any]:
    """Return the operands, with all tensors cast to a common dtype, whatever their shapes.

    In PyTorch a 0-d tensor counts less than a tensor with dimensions; in NumPy and the standard
    both count alike.
    """
    made: list[Any] = [x if isinstance(x, SCALAR_TYPES) else tensor(x) for x in operands]
    dtypes = {x._data.dtype for x in made if isinstance(x, Tensor)}
    common = functools.reduce(common_dtype, dtypes) if dtypes else None
    device = next((x.device for x in operands if isinstance(x, Tensor)), None)
    for i, x in enumerate(operands):
        if isinstance(x, (list, tuple)):  # made anew, so that its numbers lose no digit
            made[i] = tensor(x, common).to(device)
        elif len(dtypes) > 1 and isinstance(made[i], Tensor):
            made[i] = made[i].to(common)
    return made


def meet(name: str, *operands: Any) -> list[Tensor]:
    """Return operands, tensors, arrays, numbers or sequences, as tensors of one dtype."""
    return promote(name, *_alike(operands))


def tensor(x: Any, dtype: DType | None = None) -> Tensor:
    """Return a tensor, also of an array, a number or a nested sequence of numbers and tensors."""
    if isinstance(x, (list, tuple)) and tensors_in(x):
        x = functor("stack")(meet("stack", *x))
    x = as_tensors(x)
    if isinstance(x, Tensor):
        return x if dtype is None else x.to(dtype)
    return functor("tensor")(x, dtype=dtype)


def _make(name: str, count: int) -> Callable[..., Any]:
    if count == 1:

        def function(x: Any, /) -> Any:
            return operate(name, x)
    else:

        def function(x1: Any, x2: Any, /) -> Any:  # type: ignore[misc]
            return operate(name, x1, x2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return `{RENAMED.get(name, name)}` of each element."
    return adapter(name)(function)


for _name in [*UNARY, *NUMPY_UNARY]:
    globals()[_name] = _make(_name, 1)
for _name in [*BINARY, *NUMPY_BINARY]:
    globals()[_name] = _make(_name, 2)


@adapter("sign")
def sign(x: Any, /) -> Any:
    """Return -1, 0 or 1, z / |z| of complex numbers, and NaN of NaN, unlike PyTorch."""
    x = tensor(x)
    if x.dtype.kind not in "fc":
        return operate("sign", x)
    if x.is_complex():
        return functor("sgn")(x)
    return functor("where")(functor("isnan")(x), math.nan, functor("sign")(x))


@adapter("modf")
def modf(x: Any, /) -> Any:
    """Return fractions and whole parts."""
    return functor("frac")(x), functor("trunc")(x)


@adapter("divmod")
def divmod(x1: Any, x2: Any, /) -> Any:
    """Return quotients rounded down, and remainders."""
    return operate("floor_divide", x1, x2), operate("remainder", x1, x2)
