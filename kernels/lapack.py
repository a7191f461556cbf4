"""Shared by kernels of linear algebra: calls that may fail, and LAPACK one matrix at a time.

NumPy and CuPy run most of LAPACK over stacks of matrices. For the rest, SciPy's wrapper of LAPACK
is called once for each matrix.
"""

from __future__ import annotations

import functools
import math

import numpy as np

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


_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}
