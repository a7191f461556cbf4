"""Shared by kernels of linear algebra: calls that may fail, and LAPACK one matrix at a time.

NumPy and CuPy run most of LAPACK over stacks of matrices. For the rest, the OpenBLAS that came with
NumPy is called once for each matrix, or else SciPy's wrapper of LAPACK.
"""

from __future__ import annotations

import ctypes
import functools
import math

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


def inverse(x):
    """Return the inverses of matrices on the host; LinAlgError where one is singular.

    LU factors are inverted in place: 2 n³ steps, where NumPy solves for the columns of the identity
    in 8/3 n³. Rows are read as columns: the inverse of xᵀ is that of x, transposed.
    """
    n, char = x.shape[-1], x.dtype.char
    if n < _BLOCKED or _own("getri", char) is None:
        return np.linalg.inv(x)
    y, size, info = x.copy("C"), ctypes.c_int64(n), ctypes.c_int64()
    pivots, work = np.empty(n, np.int64), np.empty(n * _BLOCKED, y.dtype)
    by = ctypes.byref(size)
    for (matrix,) in each(y):
        given = by, _place(matrix), by, _place(pivots)
        _own("getrf", char)(by, *given, ctypes.byref(info))
        if not info.value:
            _own("getri", char)(*given, _place(work), _number(work.size), ctypes.byref(info))
        if info.value:
            raise np.linalg.LinAlgError("Singular matrix")
    return y


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
