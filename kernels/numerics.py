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
# From so many on, a sum in single precision may be long: at most _RUN numbers of a line are added
# in a run, and _ROWS rows.
_LARGE_SUM, _MANY = 4096, 65536
_RUN, _ROWS = 512, 32
_WIDE = 64  # elements in a row from which rows are added one by one
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
    xp: Any,
    x: Any,
    dim: Any,
    dtype: Any = None,
    out: Any = None,
    keepdim: bool = False,
    rounded: bool = True,
) -> Any:
    """Return x.sum(dim, dtype, out, keepdim), without long runs of additions in float32.

    NumPy adds in pairs along the innermost dimension alone; along others it keeps a running sum,
    which loses digits with its length. BLAS adds lines up 3 to 20 times quicker, as exactly. The
    sums of runs, which are few, are added in float64; unless `rounded`, the result is one of them.
    """
    if x.size < _LARGE_SUM or xp is not np:
        return x.sum(dim, dtype, out, keepdim)
    dims = (dim,) if isinstance(dim, int) else tuple(range(x.ndim)) if dim is None else dim
    made, kept, kind = None, x.ndim - len(dims), x.dtype.char
    # Up to 512 rows of few numbers lose less than the calls of more than one step cost.
    few = _ROWS if x.size >= _MANY else 512
    if dtype is not None and dtype not in (x.dtype, np.float32):
        pass
    elif kind in "fd" and x.flags.c_contiguous and dims and sorted(dims) == [*range(kept, x.ndim)]:
        made = _sum_of_lines(x.reshape(-1, math.prod(x.shape[kept:])))
        made = made.reshape((*x.shape[:kept], *(1,) * (keepdim * len(dims))))
    elif kind in "efF" and math.prod([x.shape[d] for d in dims]) > few:
        runs = _in_short_runs(x, dims)
        if runs is not x:
            made = runs.astype(np.result_type(runs, np.float64)).sum(dim, None, None, keepdim)
    if made is None:
        return x.sum(dim, dtype, out, keepdim)
    if out is not None:
        return copied(made, out)
    return made.astype(x.dtype if dtype is None else dtype, copy=False) if rounded else made


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
    """Return x.sum(1) of a matrix, in float64 where it takes two steps."""
    rows, length = x.shape
    if length <= _RUN:
        return x @ np.ones(length, x.dtype)
    runs = -(-length // _RUN)
    if length % runs == 0:  # one product for all lines
        made = x.reshape(-1, length // runs) @ np.ones(length // runs, x.dtype)
        return _sum_of_lines(made.reshape(rows, runs).astype(np.float64))
    whole = length // _RUN * _RUN
    made = x[:, :whole].reshape(rows, -1, _RUN) @ np.ones(_RUN, x.dtype)
    return _sum_of_lines(made.astype(np.float64)) + x[:, whole:] @ np.ones(length - whole, x.dtype)


def dot_of_lines(x: Any, y: Any) -> Any:
    """Return np.vecdot(x, y) of real arrays, without long runs of additions in float32."""
    length, half = x.shape[-1], _RUN // 2
    if length <= half or x.dtype.char != "f":
        return np.vecdot(x, y)
    runs = -(-length // half)
    if length % runs:
        whole = length // half * half
        rest = np.vecdot(x[..., whole:], y[..., whole:])
        return dot_of_lines(x[..., :whole], y[..., :whole]) + rest
    x, y = (each.reshape(*each.shape[:-1], runs, -1) for each in (x, y))
    return np.vecdot(x, y).sum(-1, np.float64).astype(x.dtype)


def _in_short_runs(x: Any, dim: tuple[int, ...]) -> Any:
    """Return x, or partial sums of it with as many dimensions, that add up in few steps."""
    dtype = np.float32 if x.dtype.char == "e" else None
    outer, stride = list(dim), 0
    for d in sorted(range(x.ndim), key=lambda d: abs(x.strides[d])):
        if x.shape[d] != 1:
            if d not in dim or stride not in (0, x.strides[d]):
                break
            outer.remove(d)  # NumPy joins it with the dimensions inside, and adds in pairs
            stride = x.strides[d] * x.shape[d]
    while math.prod(x.shape[d] for d in outer) > _ROWS:
        d = max(outer, key=x.shape.__getitem__)
        before, after = x.shape[:d], x.shape[d + 1 :]
        runs, rest = divmod(x.shape[d], _ROWS)
        parts = []
        if runs:
            rows = x[(*[slice(None)] * d, slice(runs * _ROWS))]
            wide = math.prod(after)
            if wide < _WIDE:  # NumPy adds long rows quickly: rows of all runs side by side
                parts.append(rows.reshape(*before, _ROWS, runs, *after).sum(d, dtype))
            elif x.dtype.char in "fd" and x.flags.c_contiguous:  # BLAS is twice as quick
                blocks = rows.reshape(*before, runs, _ROWS, wide)
                parts.append((np.ones(_ROWS, x.dtype) @ blocks).reshape(*before, runs, *after))
            else:
                parts.append(rows.reshape(*before, runs, _ROWS, *after).sum(d + 1, dtype))
        if rest:
            rows = x[(*[slice(None)] * d, slice(runs * _ROWS, None))]
            parts.append(rows.sum(d, dtype, None, True))
        x = parts[0] if len(parts) == 1 else np.concatenate(parts, d)
    return x


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
