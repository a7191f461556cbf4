"""Kernels that reduce dimensions or segments, and running sums, products and extremes."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import ShapeError, arg_error
from oneflow_lite.kernels.batches import flat
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import add_at, on_host
from oneflow_lite.kernels.infer_rules import (
    accumulated,
    extreme_with_index,
    in_c_order,
    index_dtype,
    like_first,
    like_input,
    ordered,
    reduction,
    same_dtype,
    sum_dtype,
    truth_dtype,
)
from oneflow_lite.kernels.numerics import copied, sum_over
from oneflow_lite.ops.registry import register_kernel


def accumulator(dtype):
    """Return the dtype to sum or multiply in: int64 for integers and bools, float32 for halves."""
    if dtype.kind in "iub":
        return np.int64
    return np.float32 if dtype.char == "e" else None


@register_kernel("sum", infer=reduction(sum_dtype), scalar="sum(x)", linear="x")
def sum(xp, x, *, dim, keepdim, out=None):
    if x.dtype.char != "e":
        return sum_over(xp, x, dim, accumulator(x.dtype), out, keepdim)
    return _narrowed(sum_over(xp, x, dim, np.float32, None, keepdim), x.dtype, out)


@register_kernel("mean", infer=reduction(same_dtype), scalar="mean(x)", sbp="mean", linear="x")
def mean(xp, x, *, dim, keepdim, out=None):
    half = x.dtype.char == "e"
    y = sum_over(xp, x, dim, accumulator(x.dtype), None if half else out, keepdim)
    count = math.prod(x.shape[d] for d in dim)
    if half:
        return _narrowed(_quotient(xp, y, count, None), x.dtype, out)
    return _quotient(xp, y, count, out)


@register_kernel("prod", infer=reduction(sum_dtype))
def prod(xp, x, *, dim, keepdim, out=None):
    if x.dtype.char != "e":
        if x.dtype.char in "fd" and x.size >= _LARGE and xp is np and x.flags.c_contiguous:
            dtype = x.dtype
            x, dim = _in_columns(x, dim)
            if dtype.char == "f":
                return _narrowed(x.prod(dim, np.float64, None, keepdim), dtype, out)
        return x.prod(dim, accumulator(x.dtype), out, keepdim)
    return _narrowed(x.prod(dim, np.float32, None, keepdim), x.dtype, out)


_LARGE = 4096  # elements, from which the lines of a product are worth a look
_WIDE = 128


def _in_columns(x, dim):
    """Return x and dim of the same products, with shorter lines.

    NumPy multiplies along a line element by element. Here pieces of a line are multiplied with each
    other, as rows; those of float32 in float64.
    """
    n = x.shape[-1] if x.ndim else 0
    if x.ndim - 1 not in dim or (n % _WIDE and len(dim) < x.ndim):
        return x, dim
    if len(dim) == x.ndim:
        whole = x.size // _WIDE * _WIDE
        flat = x.reshape(-1)
        made = flat[:whole].reshape(-1, _WIDE).prod(0, np.float64)
        shape = (1,) * x.ndim
        made = np.concatenate([made, flat[whole:]])
        return made.reshape(*shape[1:], made.size), dim
    made = x.reshape(*x.shape[:-1], -1, _WIDE).prod(-2, np.float64)
    return made, dim


def _narrowed(y, dtype, out):
    return y.astype(dtype) if out is None else copied(y, out)


def _quotient(xp, y, count, out):
    if count:
        return xp.divide(y, count, out=out)
    return xp.multiply(y, math.nan, out=out)  # 0 / 0 is NaN in PyTorch too, and does not warn


@register_kernel("count_nonzero", infer=reduction(index_dtype))
def count_nonzero(xp, x, *, dim, out=None):
    return xp.asarray(x != 0).sum(dim, np.int64, out)


@register_kernel("any", infer=reduction(truth_dtype))
def any(xp, x, *, dim, keepdim, out=None):
    if x.dtype.char != "B":
        return x.any(dim, out=out, keepdims=keepdim)
    return _narrowed(x.any(dim, keepdims=keepdim), x.dtype, out)


@register_kernel("all", infer=reduction(truth_dtype))
def all(xp, x, *, dim, keepdim, out=None):
    if x.dtype.char != "B":
        return x.all(dim, out=out, keepdims=keepdim)
    return _narrowed(x.all(dim, keepdims=keepdim), x.dtype, out)


@register_kernel(
    "logsumexp",
    infer=reduction(same_dtype),
    scalar="m = amax(x); top = where(abs(m) < inf, m, 0); log(sum(exp(x - top))) + top",
)
def logsumexp(xp, x, *, dim, keepdim, out=None):
    """m + log Σ exp(x − m) with m = max x; infinite maxima are not subtracted."""
    if x.size == 0:
        zeros = x.sum(dim, None, out, keepdim)
        return xp.full_like(zeros, -math.inf) if out is None else copied(zeros - math.inf, out)
    top = x.real  # of complex numbers too: the logarithm is the principal one
    top = top.max(dim, None, True) if x.ndim else top
    top = xp.where(xp.isfinite(top), top, 0)
    y = sum_over(xp, xp.exp(x - top), dim, keepdim=True)
    with np.errstate(divide="ignore"):  # log 0 = -inf is the value for a line of -inf
        y = xp.log(y)
    kept = out if out is None or keepdim else xp.expand_dims(out, dim)
    y = xp.add(y, top, out=kept)
    if out is not None:
        return out
    return y if keepdim else y.squeeze(dim)


# --- Largest and smallest elements, and where they stand ------------------------------------------


def _axis(x, dim):
    # A 0-d tensor has a dimension 0 in PyTorch; NumPy's 0-d array has none.
    return dim if x.ndim else None


@register_kernel("amax", infer=reduction(same_dtype), scalar="amax(x)")
def amax(xp, x, *, dim, keepdim, out=None):
    # NumPy returns a 0-d array reduced over () as it is; the copy keeps the memory apart.
    return x.max(dim, out, keepdim) if x.ndim else copied(x, out)


@register_kernel("amin", infer=reduction(same_dtype), scalar="amin(x)")
def amin(xp, x, *, dim, keepdim, out=None):
    return x.min(dim, out, keepdim) if x.ndim else copied(x, out)


@register_kernel(
    "tie_weights",
    infer=in_c_order(like_first),
    scalar="t = where((x == y) | (isnan(x) & isnan(y)), 1, 0); t / sum(t)",
)
def tie_weights(xp, x, y, *, dim, out=None):
    """1 / (number of ties) where x equals its extremum y (dimensions kept), 0 elsewhere."""
    ties = x == y
    ties |= (x != x) & (y != y)  # where the extremum is NaN, the NaNs are its ties
    weights = ties.astype(x.dtype) if out is None else copied(ties, out)
    weights /= ties.sum(dim, None, None, True).astype(x.dtype)
    return weights


def _at(xp, index, y, keepdim, dim):
    index = index.astype(np.int64, copy=False)
    return (y, xp.expand_dims(index, dim)) if keepdim and y.ndim else (y, index)


@register_kernel("max", infer=extreme_with_index)
def max(xp, x, *, dim, keepdim):
    axis = _axis(x, dim)
    return _at(xp, x.argmax(axis), x.max(axis, None, keepdim), keepdim, dim)


@register_kernel("min", infer=extreme_with_index)
def min(xp, x, *, dim, keepdim):
    axis = _axis(x, dim)
    return _at(xp, x.argmin(axis), x.min(axis, None, keepdim), keepdim, dim)


def _batch_of_extremes(call, x, *, dim, keepdim):
    if dim is not None and x.ndim > 1:
        return call.run(x, dim=dim + 1 if dim >= 0 else dim, keepdim=keepdim)
    y = call.run(flat(call, x), dim=1, keepdim=False)
    return call.F.reshape(y, shape=(call.size, *(1,) * (x.ndim - 1))) if keepdim else y


@register_kernel("argmax", infer=reduction(index_dtype), batch=_batch_of_extremes)
def argmax(xp, x, *, dim, keepdim):
    index = xp.asarray(x.argmax(_axis(x, dim)))
    return _index(xp, index, x.ndim, dim, keepdim)


@register_kernel("argmin", infer=reduction(index_dtype), batch=_batch_of_extremes)
def argmin(xp, x, *, dim, keepdim):
    index = xp.asarray(x.argmin(_axis(x, dim)))
    return _index(xp, index, x.ndim, dim, keepdim)


def _index(xp, index, ndim, dim, keepdim):
    if keepdim and ndim:
        index = index.reshape((1,) * ndim) if dim is None else xp.expand_dims(index, dim)
    return index.astype(np.int64, copy=False)


# --- Running sums, products and extremes ----------------------------------------------------------

# Running sums and products of float32 are kept in float64, as in PyTorch: in float32 they lose a
# digit for each hundred steps.


def _along(dim, place):
    return (slice(None),) * dim + (place,)


@register_kernel("cumsum", infer=accumulated, linear="x")
def cumsum(xp, x, *, dim, out=None):
    if _is_large(xp, x) and (y := _sums(x, dim, out)) is not None:
        return y
    y = x.cumsum(dim if x.ndim else None, _running_dtype(x.dtype)).reshape(x.shape)
    if out is not None:
        return copied(y, out)
    return y.astype(x.dtype, copy=False) if x.dtype.kind in "fc" else y


@register_kernel("cumsum_grad", infer=in_c_order(like_first), reuses="dy")
def cumsum_grad(xp, dy, *, dim, out=None):
    """dx_i = Σ_{k ≥ i} dy_k"""
    if not dy.ndim:
        return copied(dy, out)
    if _is_large(xp, dy) and (dx := _sums(dy, dim, out, -1)) is not None:
        return dx
    wide = _running_dtype(dy.dtype)
    dx = xp.empty(dy.shape, dy.dtype) if out is None else out
    dx[...] = xp.flip(xp.flip(dy, dim).cumsum(dim, wide), dim)
    return dx


@register_kernel("cumprod", infer=accumulated)
def cumprod(xp, x, *, dim):
    if _is_large(xp, x) and math.prod(x.shape[dim + 1 :]) >= _WIDE:
        return _by_steps(np.multiply, x, dim, np.empty(x.shape, x.dtype), 1)
    y = x.cumprod(dim if x.ndim else None, _running_dtype(x.dtype)).reshape(x.shape)
    return y.astype(x.dtype, copy=False) if x.dtype.kind in "fc" else y


@register_kernel("cumprod_grad", infer=in_c_order(like_first))
@in_float32
def cumprod_grad(xp, dy, x, y, *, dim):
    """dx_i = Σ_{k ≥ i} dy_k y_k / x_i, or without a division where an x is 0."""
    if on_host(xp) and _is_safe(y, x):
        dx = cumsum_grad(xp, dy * y, dim=dim)
        dx /= x
        return dx
    # dx_i = y_{i-1} s_i with s_i = dy_i + x_{i+1} s_{i+1}, which divides by nothing.
    before = shift(xp, y, dim=dim, offset=1, fill=1)
    following = shift(xp, x, dim=dim, offset=-1, fill=0)
    return before * recurrence(xp, following, dy, dim=dim, reverse=True)


def _is_safe(product, x):
    """Return whether factors may be divided out of products of x.

    No factor is 0, and no product has lost digits near 0, which a division by a small factor would
    show.
    """
    if product.dtype.kind != "f" or not product.size:
        return False
    size = np.abs(product)
    lost = size.min() < np.finfo(product.dtype).tiny
    return size.max() < np.inf and (not lost or bool(np.abs(x).min() >= 0.5))


@register_kernel("product_of_others", infer=like_input)
@in_float32
def product_of_others(xp, x, *, dim):
    """y_i = Π_{j ≠ i} x_j along a dimension."""
    if on_host(xp) and x.ndim:
        total = prod(xp, x, dim=(dim,), keepdim=True)
        if _is_safe(total, x):
            return total / x

    def before(x):
        return shift(xp, cumprod(xp, x, dim=dim), dim=dim, offset=1, fill=1)

    return before(x) * xp.flip(before(xp.flip(x, dim)), dim)


def _running_dtype(dtype):
    """Return the dtype of a running sum or product."""
    return {"f": np.float64, "F": np.complex128}.get(dtype.char) or accumulator(dtype)


def _is_large(xp, x):
    large = xp is np and x.dtype.char in "fd" and x.size >= _LARGE
    return large and x.ndim > 0 and x.flags.c_contiguous


_PIECE = 32  # elements, whose running sums are one product with a triangle of ones


@functools.cache
def _triangle(dtype, step):
    ones = np.triu(np.ones((_PIECE, _PIECE), dtype))
    return ones if step > 0 else np.ascontiguousarray(ones.T)


def _sums(x, dim, out, step=1):
    """Return running sums, backwards for a step of -1; None where NumPy's way is as good.

    NumPy's takes 3 ns for each element, in any direction. Within a piece float32 is good enough;
    the sums of pieces are float64.
    """
    n, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
    if inner >= _WIDE:
        return _by_steps(np.add, x, dim, np.empty(x.shape, x.dtype) if out is None else out, step)
    if inner != 1 or n < 2 * _PIECE:
        return None
    lines = x.reshape(-1, n)
    rest = n % _PIECE
    # The rest is shorter than a piece: backwards its sum comes first, forwards last.
    whole = lines[:, : n - rest].reshape(-1, _PIECE)
    made = (whole @ _triangle(x.dtype, step)).reshape(len(lines), -1, _PIECE)
    ends = (whole.astype(np.float64) @ np.ones(_PIECE)).reshape(len(lines), -1)
    y = np.empty(x.shape, x.dtype) if out is None else out
    rows = y.reshape(-1, n)
    tail = lines[:, n - rest :]
    if step > 0:
        ends = ends.cumsum(1)
        made[:, 1:] += ends[:, :-1, None].astype(x.dtype)
        tail = tail.cumsum(1) + ends[:, -1:]
    else:
        tail = tail[:, ::-1].cumsum(1)[:, ::-1]
        ends = ends[:, ::-1].cumsum(1)[:, ::-1]
        if rest:
            ends += tail[:, :1]
            made[:, -1] += tail[:, :1]
        made[:, :-1] += ends[:, 1:, None].astype(x.dtype)
    if not (np.isfinite(ends[:, -1 if step > 0 else 0]).all() and np.isfinite(tail).all()):
        return None  # an infinity times one of the triangle's zeros is nan
    rows[:, : n - rest] = made.reshape(len(lines), -1)
    rows[:, n - rest :] = tail
    return y


def _by_steps(combine, x, dim, y, step):
    """Write to y `combine` of each slice along `dim` and all before it."""
    made = y if x.dtype.char == "d" else np.empty(x.shape, np.float64)
    made[...] = x
    rows = np.moveaxis(made, dim, 0)[::step]
    for before, now in itertools.pairwise(rows):
        combine(before, now, out=now)
    if made is not y:
        y[...] = made
    return y


def running(xp, combine, x, dim):
    """Return for each element `combine` of it and all before it along `dim`."""
    if not x.ndim:
        return x.copy()
    if on_host(xp) and isinstance(combine, np.ufunc):
        return combine.accumulate(x, dim)
    y = x.copy()
    width = 1
    while width < y.shape[dim]:  # in pairs of windows: log2 n passes over memory
        later, earlier = _along(dim, slice(width, None)), _along(dim, slice(None, -width))
        y[later] = combine(y[later], y[earlier])
        width *= 2
    return y


def _register_running_extreme(op_type_name, function):
    @register_kernel(op_type_name, infer=ordered)
    def running_extreme(xp, x, *, dim):
        """The extremum so far, and where it was last seen."""
        values = running(xp, getattr(xp, function), x, dim)
        if not x.ndim:
            return values, xp.zeros((), np.int64)
        places = xp.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - 1 - dim))
        seen = xp.where((x == values) | (x != x), places, 0)
        return values, running(xp, xp.maximum, seen, dim)


_register_running_extreme("cummax", "maximum")
_register_running_extreme("cummin", "minimum")


@register_kernel("logcumsumexp", infer=in_c_order(like_first))
@in_float32
def logcumsumexp(xp, x, *, dim):
    """y_i = log Σ_{k ≤ i} exp(x_k)"""
    if x.dtype.char == "f" and x.ndim and on_host(xp):
        return _logcumsumexp(x.astype(np.float64), dim).astype(x.dtype)
    if x.dtype.kind != "c":
        return running(xp, xp.logaddexp, x, dim)
    with np.errstate(all="ignore"):
        y = running(xp, functools.partial(_complex_logaddexp, xp), x, dim)
        return _unwound(xp, x, y, dim) if x.ndim and x.size else y


_EXPONENT = 600  # float64 has the exponential of so large a number, and of its negative


def _logcumsumexp(x, dim):
    """log Σ exp(x − max x) + max x, unless the exponential of an element would be lost"""
    top = x.max(dim, keepdims=True) if x.size else x
    if np.isfinite(top).all():
        below = x - top
        if not ((below < -_EXPONENT) & (below > -math.inf)).any():
            with np.errstate(divide="ignore"):  # log 0 = -inf is the value before the first number
                return np.log(np.exp(below, out=below).cumsum(dim)) + top
    return np.logaddexp.accumulate(x, dim)


def _complex_logaddexp(xp, x, y):
    larger = x.real >= y.real
    high, low = xp.where(larger, x, y), xp.where(larger, y, x)
    sum = high + xp.log(1 + xp.exp(low - high))
    return xp.where(high.real == -math.inf, high, sum)


def _unwound(xp, x, y, dim):
    """Return y with the multiples of 2πi that a sum in order gives, as in PyTorch.

    Such a sum goes on from the angle of the larger term, which is the sum so far or the new
    element.
    """
    before = shift(xp, y, dim=dim, offset=1, fill=-math.inf)
    renewed = ~(x.real < before.real)
    turn = xp.where(renewed, before - x, x - before)
    turn = xp.where(turn.real == -math.inf, 0, xp.angle(1 + xp.exp(turn)))
    places = xp.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - 1 - dim))
    begin = running(xp, xp.maximum, xp.where(renewed, places, 0), dim)
    angle = xp.take_along_axis(x.imag + turn - turn.cumsum(dim), begin, dim) + turn.cumsum(dim)
    rounds = xp.round((angle - y.imag) / (2 * math.pi))
    return y + 2j * math.pi * xp.where(xp.isfinite(rounds), rounds, 0)


@register_kernel("shift", infer=like_input)
def shift(xp, x, *, dim, offset, fill, out=None):
    """y_i = x_{i - offset}, with `fill` in the place that is left free; offset is 1 or -1."""
    y = xp.empty(x.shape, x.dtype) if out is None else out
    y[...] = fill
    if x.ndim:
        first, rest = _along(dim, slice(None, -1)), _along(dim, slice(1, None))
        if offset > 0:
            y[rest] = x[first]
        else:
            y[first] = x[rest]
    return y


@register_kernel("recurrence", infer=in_c_order(like_first), linear="b")
def recurrence(xp, a, b, *, dim, reverse):
    """s_i = a_i s_{i-1} + b_i from s_{-1} = 0 (reverse: from the other end)."""
    if not b.ndim:
        return b.copy()
    wide = _running_dtype(b.dtype) if b.dtype.kind in "fc" else None
    total, factor = b.astype(wide or b.dtype), a.astype(wide or a.dtype)
    if reverse:
        total, factor = xp.flip(total, dim), xp.flip(factor, dim)
    if xp is np and b.size >= _WIDE * b.shape[dim]:  # many lines, all of them in a step
        total, factor = (np.ascontiguousarray(np.moveaxis(x, dim, 0)) for x in (total, factor))
        for before, now, by in zip(total, total[1:], factor[1:], strict=False):
            now += by * before
        total = np.moveaxis(total, 0, dim)
    else:
        _join_windows(total, factor, dim)
    total = xp.flip(total, dim) if reverse else total
    return xp.ascontiguousarray(total).astype(b.dtype, copy=False)


def _join_windows(total, factor, dim):
    """Let total become s.

    A window of steps is the map s -> A s + S; windows are joined in pairs, so that the passes over
    the arrays number log2 n instead of n and nothing is divided.
    """
    width = 1
    while width < total.shape[dim]:
        later, earlier = _along(dim, slice(width, None)), _along(dim, slice(None, -width))
        total[later] += factor[later] * total[earlier]
        factor[later] = factor[later] * factor[earlier]
        width *= 2


# --- Segments -------------------------------------------------------------------------------------


def _along_axis(lengths, *, size, **attrs):
    return ArraySpec((*lengths.shape[:-1], size), np.dtype(np.int64))


@register_kernel("segment_ids", infer=_along_axis)
def segment_ids(xp, lengths, *, size, op, checked):
    """Return the segment of each of `size` elements; behind the last segment, their number.

    `lengths` (..., segments) gives (..., size). `checked` wants them to sum to `size`.
    """
    if checked and on_host(xp) and lengths.size:
        totals = lengths.sum(-1)
        if lengths.min() < 0 or (totals != size).any():
            raise arg_error(
                op,
                "lengths",
                expected=f"lengths of at least 0 that sum to {size}, the size of data along axis",
                got=lengths.tolist(),
                hint="let the segments cover data exactly",
                kind=ShapeError,
            )
    ends = xp.minimum(lengths.cumsum(-1), size).reshape(-1, lengths.shape[-1])
    marks = xp.zeros((len(ends), size + 1), np.int64)
    rows = xp.arange(len(ends)).reshape(-1, 1) * (size + 1)
    add_at(xp, marks.reshape(-1), rows + ends, xp.ones(ends.shape, np.int64))
    return marks[:, :size].cumsum(1).reshape(*lengths.shape[:-1], size)
