"""Shared by kernels of linear algebra: calls that may fail, and LAPACK one matrix at a time.

NumPy and CuPy run most of LAPACK over stacks of matrices. For the rest, the OpenBLAS that came with
NumPy is called once for each matrix, or else SciPy's wrapper of LAPACK.
"""

from __future__ import annotations

import ctypes
import functools
import math
import threading
from typing import Any

import numpy as np

from oneflow_lite.arrays.blas_threads import openblas
from oneflow_lite.errors import LinAlgError, arg_error
from oneflow_lite.kernels.index_arrays import on_host


def attempt(xp, routine, *args, **options):
    """Return the result of a routine of `xp.linalg`, or None where it fails for any matrix.

    CuPy looks whether a routine failed only on demand: a look waits for the device.
    """
    try:
        if on_host(xp):
            return routine(*args, **options)
        import cupyx

        with cupyx.errstate(linalg="raise"):
            return routine(*args, **options)
    except np.linalg.LinAlgError:
        return None


def converged(xp, op, routine, *args, argument="A", **options):
    """Return the result of an iterative routine of `xp.linalg`; raise unless it converges."""
    result = attempt(xp, routine, *args, **options)
    if result is not None:
        return result
    raise arg_error(
        op,
        argument,
        expected="matrices for which the algorithm converges",
        got=f"shape {args[0].shape} with a matrix for which it does not",
        hint="look for inf and nan in it",
        kind=LinAlgError,
    )


def fail(op, info, *, expected, got, hint, argument="A"):
    """Raise for the first matrix whose `info`, the number of the bad diagonal element, is not 0."""
    where = [int(i[0]) for i in info.nonzero()] if info.ndim else []
    number = int(info[tuple(where)])
    batch = f" (batch element {', '.join(map(str, where))})" if where else ""
    raise arg_error(
        op, argument, expected=expected, got=got.format(number) + batch, hint=hint, kind=LinAlgError
    )


def first_on_diagonal(xp, matrices, wrong):
    """Return, for each matrix, the number of the first diagonal element that is wrong, or 0."""
    if not min(matrices.shape[-2:]):
        return xp.zeros(matrices.shape[:-2], np.int32)
    wrong = xp.asarray(wrong(matrices.diagonal(0, -2, -1)))
    return xp.asarray((wrong.argmax(-1) + 1) * wrong.any(-1)).astype(np.int32)


def each(*stacks):
    """Yield the matrices, or vectors, of each place in the batch; the batch shapes are equal."""
    count = math.prod(stacks[0].shape[:-2])
    batch = stacks[0].ndim - 2
    flat = [x.reshape(count, *x.shape[batch:]) for x in stacks]
    return zip(*flat, strict=True)


@functools.lru_cache
def lapack(name, char):
    """Return LAPACK's routine for a dtype, as ("getrf", "d")."""
    import scipy.linalg.lapack

    return getattr(scipy.linalg.lapack, _PREFIX[char] + name)


@functools.lru_cache
def blas(name, char):
    """Return a routine of BLAS for a dtype, as ("trsm", "d")."""
    import scipy.linalg.blas

    return getattr(scipy.linalg.blas, _PREFIX[char] + name)


def solve_triangle(a, y, upper, unit):
    """Overwrite y, (n, k) in C order, by a⁻¹ y; one call for all k columns.

    BLAS counts by columns, so it reads rows as a transposed matrix and solves yᵀ aᵀ = bᵀ. NumPy's
    own BLAS is asked, because SciPy's has threads of its own. Where calls of both alternate,
    threads that wait for the next call of one hold the cores that the other needs.
    """
    trsm = _own("trsm", y.dtype.char)
    if trsm is None:
        trsm = blas("trsm", y.dtype.char)
        if a.flags.f_contiguous and not a.flags.c_contiguous:
            trsm(1, a, y.T, 1, not upper, 1, unit, overwrite_b=1)
        else:
            trsm(1, a.T, y.T, 1, upper, 0, unit, overwrite_b=1)
        return
    a, by_rows, lead = _laid_out(a)
    rows, count = y.shape
    one = np.ones((), y.dtype)
    trsm(
        b"R",
        b"L" if by_rows == upper else b"U",
        b"N" if by_rows else b"T",
        b"U" if unit else b"N",
        _number(count),
        _number(rows),
        _place(one),
        _place(a),
        _number(lead),
        _place(y),
        _number(count),
    )


class _Last(threading.local):
    """The last matrices that a thread took apart, a copy of them, and their factors."""

    made: tuple[Any, ...] = ()


_last = _Last()


def has_factors(x):
    """Return whether `factors` serves these matrices on the host."""
    return x.shape[-1] >= _BLOCKED and x.size > 0 and _own("getri", x.dtype.char) is not None


def factors(x):
    """Return LU factors and pivots of xᵀ, as LAPACK reads rows; LinAlgError where x is singular.

    A thread keeps the factors of its last matrices, unless these are too large. So the determinant,
    the inverse and solutions of one matrix, and their gradients, share its factors, in Programs
    too. The content is compared: whatever wrote to the matrix, its factors are its own.
    """
    known = _last.made
    if (
        known
        and known[0].dtype == x.dtype
        and known[0].shape == x.shape
        and np.array_equal(known[0][..., 0, :], x[..., 0, :])  # spares most comparisons in vain
        and np.array_equal(known[0], x)
    ):
        return known[1:]
    n, char = x.shape[-1], x.dtype.char
    y, pivots = x.copy("C"), np.empty(x.shape[:-1], np.int64)
    size, info = ctypes.c_int64(n), ctypes.c_int64()
    by = ctypes.byref(size)
    for matrix, rows in each(y, pivots[..., None]):
        _own("getrf", char)(by, by, _place(matrix), by, _place(rows), ctypes.byref(info))
        if info.value:
            raise np.linalg.LinAlgError("Singular matrix")
    if x.nbytes <= _KEPT:
        _last.made = x.copy("C"), y, pivots
    return y, pivots


_KEPT = 1 << 25  # bytes of matrices whose factors a thread keeps, beside a copy of the matrices


def inverse(x):
    """Return the inverses of matrices on the host; LinAlgError where one is singular.

    LU factors are inverted in place: 2 n³ steps, where NumPy solves for the columns of the identity
    in 8/3 n³. Rows are read as columns: the inverse of xᵀ is that of x, transposed.
    """
    if not has_factors(x):
        return np.linalg.inv(x)
    n, char = x.shape[-1], x.dtype.char
    lu, pivots = factors(x)
    y, info = lu.copy(), ctypes.c_int64()
    work = np.empty(n * _BLOCKED, y.dtype)
    for matrix, rows in each(y, pivots[..., None]):
        given = _number(n), _place(matrix), _number(n), _place(rows)
        _own("getri", char)(*given, _place(work), _number(work.size), ctypes.byref(info))
    return y


def solve(a, b, turned):
    """Return a⁻¹ b, or a⁻ᵀ b, for stacks of equal sizes on the host; LinAlgError as `inverse`."""
    if not has_factors(a):
        return np.linalg.solve(a.swapaxes(-1, -2) if turned else a, b)
    n, count, char = a.shape[-1], b.shape[-1], a.dtype.char
    lu, pivots = factors(a)
    y = b.swapaxes(-1, -2).astype(a.dtype, order="C")  # columns lie one behind another
    info = ctypes.c_int64()
    for matrix, rows, columns in each(lu, pivots[..., None], y):
        _own("getrs", char)(
            b"N" if turned else b"T",  # the factors are those of aᵀ
            _number(n),
            _number(count),
            _place(matrix),
            _number(n),
            _place(rows),
            _place(columns),
            _number(n),
            ctypes.byref(info),
        )
    return y.swapaxes(-1, -2)


def sign_and_logarithm(x):
    """Return sign and logarithm of the absolute value of determinants on the host."""
    if not has_factors(x):
        return np.linalg.slogdet(x)
    try:
        lu, pivots = factors(x)
    except np.linalg.LinAlgError:
        return np.linalg.slogdet(x)
    diagonal = lu.diagonal(0, -2, -1)
    sizes = abs(diagonal)
    swaps = (pivots != np.arange(1, x.shape[-1] + 1)).sum(-1)
    sign = (diagonal / sizes).prod(-1) * (1 - 2 * (swaps % 2)).astype(x.dtype)
    return sign, np.log(sizes).sum(-1)


_BLOCKED = 64  # rows, from which blocks of LAPACK beat NumPy's loop over a batch


def _laid_out(a):
    """Return the matrix as BLAS can read it, whether rows are contiguous, and its leading size."""
    size = max(a.shape[0], 1)
    for by_rows, (far, near) in ((True, a.strides), (False, a.strides[::-1])):
        lead, rest = divmod(far, a.itemsize)
        if near == a.itemsize and lead >= size and not rest and a.flags.aligned:
            return a, by_rows, lead
    return np.array(a, order="C"), True, size


@functools.lru_cache
def _own(name, char):
    """Return a routine of the OpenBLAS that came with NumPy; None where there is none."""
    return getattr(openblas(), f"scipy_{_PREFIX[char]}{name}_64_", None)


def _number(value):
    return ctypes.byref(ctypes.c_int64(value))


def _place(array):
    return ctypes.c_void_p(array.ctypes.data)


_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}
