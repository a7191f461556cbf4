"""Helpers that kernels of several families share: masks without branches, clipping, erf, a check.

Kernels call these on bare arrays; nothing here is an op.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.special_functions import special

# From so many elements on, several simple passes over an array are quicker than one clever call.
_LARGE = 1024
# From so many on, NumPy's vectorised clip outweighs what it costs to call.
_LARGE_FOR_CLIP = 8192
# From so many on, a sum in single precision may be long: at most _RUN numbers are added in a run.
_LARGE_SUM = 16384
_RUN = 1024
# Up to so many, in lines up to so long, the number of calls matters more than the arithmetic.
_FEW, _SHORT_LINE = 4096, 64
_INTEGER_OF_SIZE = {2: np.dtype("i2"), 4: np.dtype("i4"), 8: np.dtype("i8")}

# For kernels whose steps may overflow on the way to a right result, as 1 / (1 + exp(-x)) does.
quiet_overflow = np.errstate(over="ignore")


def copied(x: Any, out: Any = None) -> Any:
    """Return a copy of x in C order, or in `out`, which may be x."""
    if out is None:
        return x.copy()
    if out is not x:
        out[...] = x
    return out


def select(xp: Any, condition: Any, x: Any, y: Any, out: Any = None) -> Any:
    """Return x where `condition` holds, else y; x and y are of one dtype.

    All are of one shape, but x may be a number. NumPy's `where` branches on every element. Where
    the outcome has no pattern, as in most activations, mispredicted branches make it ten times
    slower than selecting bits. `out` may be x or y.
    """
    if y.size < _LARGE or xp is not np or y.dtype.char not in "efd":
        chosen = xp.where(condition, x, y)
        return chosen if out is None else copied(chosen, out)
    x, integer = np.asarray(x, y.dtype), _INTEGER_OF_SIZE[y.dtype.itemsize]
    if out is y:
        x, y, condition = y, x, ~condition
    y_bits = y.view(integer)
    bits = np.bitwise_xor(x.view(integer), y_bits, out=None if out is None else out.view(integer))
    np.multiply(bits, condition, out=bits)
    bits ^= y_bits
    return bits.view(x.dtype) if out is None else out


def select_if_quicker(xp: Any, condition: Any, x: Any, y: Any, out: Any = None) -> Any:
    """Return what `select` makes of any arrays and numbers; None where NumPy's `where` is as quick.

    NumPy's is as quick in float64, where bits take four passes, and where arrays broadcast.
    """
    if condition.size < _FEW or xp is not np or condition.dtype.char != "?":
        return None
    if not np.ndim(y):
        condition, x, y = ~condition, y, x
    if np.shape(y) != condition.shape or y.dtype.char not in "ef" or not y.flags.c_contiguous:
        return None
    if type(x) in (int, float):
        return select(np, condition, x, y, out)
    same = getattr(x, "dtype", None) is y.dtype and x.flags.c_contiguous
    return select(np, condition, x, y, out) if same and x.shape in ((), y.shape) else None


def keep_where(xp: Any, condition: Any, x: Any, out: Any = None) -> Any:
    """Return x where `condition` holds, else 0: also for an inf or nan, unlike `x * condition`.

    x is of a float dtype. `out` may be x.
    """
    if xp is not np:
        kept = xp.where(condition, x, 0)
        return kept if out is None else copied(kept, out)
    integer = _INTEGER_OF_SIZE[x.dtype.itemsize]  # bits times 1 or 0: no branch, no mask to make
    bits = np.multiply(x.view(integer), condition, out=None if out is None else out.view(integer))
    return bits.view(x.dtype) if out is None else out


def zeros(xp: Any, shape: Any, dtype: Any, out: Any = None) -> Any:
    """Return zeros, in `out` where that is given."""
    if out is None:
        return xp.zeros(shape, dtype)
    out.fill(0)
    return out


def sum_over(
    xp: Any, x: Any, dim: Any, dtype: Any = None, out: Any = None, keepdim: bool = False
) -> Any:
    """Return x.sum(dim, dtype, out, keepdim), without long runs of additions in float32.

    NumPy adds in pairs along the innermost dimension alone; along others it keeps a running sum,
    which loses digits with its length. BLAS adds lines up 3 to 20 times quicker, as exactly.
    """
    if x.size < _LARGE_SUM or xp is not np:
        return x.sum(dim, dtype, out, keepdim)
    if x.dtype.char in "fd" and x.flags.c_contiguous and (dtype is None or dtype is x.dtype):
        dims = (dim,) if isinstance(dim, int) else tuple(range(x.ndim)) if dim is None else dim
        kept = x.ndim - len(dims)
        if dims and sorted(dims) == list(range(kept, x.ndim)):
            shape = (*x.shape[:kept], *(1,) * (keepdim * len(dims)))
            made = _sum_of_lines(x.reshape(-1, math.prod(x.shape[kept:]))).reshape(shape)
            return made if out is None else copied(made, out)
    if x.dtype.char in "efF":
        x = _in_short_runs(x, dim, dtype)
    return x.sum(dim, dtype, out, keepdim)


@functools.lru_cache(256)
def ones_for_lines(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return a square matrix of ones: x.dot(ones) repeats a line's sum at each of its elements.

    None unless x is a matrix of few short lines. Arithmetic of such a matrix with a column of sums,
    which broadcasts, takes NumPy thrice as long as with a matrix.
    """
    few = len(shape) == 2 and 0 < shape[0] * shape[1] <= _FEW and shape[1] <= _SHORT_LINE
    return np.ones((shape[1], shape[1]), dtype) if few else None


def sum_at_each(xp: Any, x: Any, dim: int) -> Any:
    """Return sum_over(xp, x, dim, keepdim=True), or sums repeated at each element if quicker."""
    if xp is np and x.ndim == 2 and dim in (1, -1):
        ones = ones_for_lines(x.shape, x.dtype)
        if ones is not None:
            return x.dot(ones)
    return sum_over(xp, x, dim, keepdim=True)


def _sum_of_lines(x: Any) -> Any:
    """Return x.sum(1) of a matrix."""
    rows, length = x.shape
    if length <= _RUN:
        return x @ np.ones(length, x.dtype)
    whole = length // _RUN * _RUN
    made = (x[:, :whole].reshape(rows, -1, _RUN) @ np.ones(_RUN, x.dtype)).sum(1)
    return made + x[:, whole:] @ np.ones(length - whole, x.dtype)


def _in_short_runs(x: Any, dim: int | tuple[int, ...], dtype: Any) -> Any:
    """Return x, or partial sums of it with as many dimensions, that add up in few steps."""
    dim = (dim,) if isinstance(dim, int) else dim
    outer, stride = list(dim), 0
    for d in sorted(range(x.ndim), key=lambda d: abs(x.strides[d])):
        if x.shape[d] != 1:
            if d not in dim or stride not in (0, x.strides[d]):
                break
            outer.remove(d)  # NumPy joins it with the dimensions inside, and adds in pairs
            stride = x.strides[d] * x.shape[d]
    while math.prod(x.shape[d] for d in outer) > _RUN:
        d = max(outer, key=x.shape.__getitem__)
        before = (slice(None),) * d
        runs, rest = divmod(x.shape[d], _RUN)
        parts = []
        if runs:
            blocks = x[(*before, slice(runs * _RUN))]
            blocks = blocks.reshape(*x.shape[:d], runs, _RUN, *x.shape[d + 1 :])
            parts.append(_sum_of_rows(blocks, d + 1, dtype))
        if rest:
            parts.append(x[(*before, slice(runs * _RUN, None))].sum(d, dtype, None, True))
        x = parts[0] if len(parts) == 1 else np.concatenate(parts, d)
    return x


def _sum_of_rows(x: Any, d: int, dtype: Any) -> Any:
    """Return x.sum(d, dtype); BLAS adds the rows of matrices several times quicker."""
    if x.dtype.char == "e" or not x.flags.c_contiguous:
        return x.sum(d, dtype)
    columns = (*x.shape[: d + 1], math.prod(x.shape[d + 1 :]))
    made = np.ones(x.shape[d], x.dtype) @ x.reshape(columns)
    return made.reshape(*x.shape[:d], *x.shape[d + 1 :])


def clip(xp: Any, x: Any, low: Any, high: Any, out: Any = None) -> Any:
    """Return x kept between two numbers; nan stays nan."""
    if x.size < _LARGE_FOR_CLIP:
        return xp.minimum(xp.maximum(x, low, out=out), high, out=out)
    return xp.clip(x, low, high, out=out)


def at_least(xp: Any, x: Any, low: Any, out: Any = None) -> Any:
    """Return the larger of x and a number; nan stays nan.

    NumPy vectorises clip with numbers, but maximum only between two arrays.
    """
    if x.size < _LARGE_FOR_CLIP or x.dtype.kind != "f":
        return xp.maximum(x, low, out=out)
    return xp.clip(x, low, math.inf, out=out)


def at_most(xp: Any, x: Any, high: Any, out: Any = None) -> Any:
    """Return the smaller of x and a number; nan stays nan."""
    if x.size < _LARGE_FOR_CLIP or x.dtype.kind != "f":
        return xp.minimum(x, high, out=out)
    return xp.clip(x, -math.inf, high, out=out)


def check_probabilities(xp: Any, op: str, argument: str, values: Any, hint: str) -> None:
    """Raise `ArgumentError` unless all values lie in 0 … 1; on CUDA a look would be a copy."""
    if not on_host(xp) or not values.size:
        return
    low, high = values.min(), values.max()
    if low >= 0 and high <= 1:
        return
    raise arg_error(
        op,
        argument,
        expected="values from 0 to 1",
        got=f"{low} to {high}",
        hint=hint,
        kind=ArgumentError,
    )


# erf(x) = tanh(x P(x²)): P has no poles, and tanh flattens its error where erf is near 1. These
# coefficients minimise the largest relative error over |x| ≤ 4 (1e-7); beyond, float32's erf is ±1.
_ERF_LIMIT_SQUARED = 16.0
_ERF_COEFFICIENTS = (
    1.41893660e-07,
    -5.66902795e-06,
    8.76398750e-05,
    -6.19789613e-04,
    -1.91826846e-04,
    1.02769055e-01,
    1.12837927,
)


@functools.cache
def has_wide_functions() -> bool:
    """Return whether NumPy's elementary functions take AVX-512; `log1p` has no other SIMD."""
    info = np.lib.introspect.opt_func_info("^log1p$", "float32")
    loops = [loop["current"] for kinds in info.values() for loop in kinds.values()]
    return any("V4" in name or "AVX512" in name for name in loops)


def log1p(xp: Any, x: Any, out: Any = None) -> Any:
    """Return log(1 + x) for x from 0 to 1, in fresh memory or in `out`, which may be x.

    On many float32 numbers NumPy's vectorised log of the rounded sum, and the first term of what
    rounding left out, take a third of the time, and are within 4 units in the last place.
    """
    if x.size < _LARGE or xp is not np or x.dtype.char != "f" or has_wide_functions():
        return xp.log1p(x, out=out)
    sum = x + 1
    rest = x - (sum - 1)
    rest /= sum
    np.log(sum, out=sum)
    return np.add(sum, rest, out=out)


def erf(xp: Any, x: Any, out: Any = None) -> Any:
    """Return the error function of a real array, in fresh memory or in `out`, which is not x.

    SciPy's goes element by element; on many float32 numbers NumPy's vectorised tanh with a fitted
    polynomial is ten times quicker and within 4 units in the last place.
    """
    if x.size < _LARGE or xp is not np or x.dtype.char != "f":
        return special(xp).erf(x, out=out)
    with np.errstate(over="ignore"):
        square = x * x
    at_most(xp, square, _ERF_LIMIT_SQUARED, out=square)
    y = np.multiply(square, _ERF_COEFFICIENTS[0], out=out)
    for coefficient in _ERF_COEFFICIENTS[1:-1]:
        y += coefficient
        y *= square
    y += _ERF_COEFFICIENTS[-1]
    y *= x
    return np.tanh(y, out=y)
