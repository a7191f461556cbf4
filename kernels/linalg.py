"""Kernels that solve with matrices and invert them, determinants, the exponential, and products."""

from __future__ import annotations

import functools
import math

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.kernels.decompositions import in_order, linalg_lu_factor_ex, transposed
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import like_input, real_dtype
from oneflow_lite.kernels.lapack import (
    attempt,
    converged,
    each,
    fail,
    inverse,
    lapack,
    sign_and_logarithm,
    solve,
    solve_triangle,
)
from oneflow_lite.ops.registry import register_kernel

_INFO = np.dtype(np.int32)


def _like(*arrays):
    return like_input(arrays[-1])


# --- Solving ------------------------------------------------------------------------------------


def _solution(a, b, **attrs):
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return ArraySpec((*batch, *b.shape[-2:]), b.dtype)


def _solution_and_info(a, b, **attrs):
    return _solution(a, b), ArraySpec(a.shape[:-2], _INFO)


def _solved(call, a, b, **attrs):
    """Solve with the batch in front; the info has the dimensions of a alone."""
    ndim = max(call.ndim(0), call.ndim(1))
    x, info = call.run(call.front(0, ndim), call.front(1, ndim), **attrs)
    return x, call.F.reshape(info, shape=(call.size, *call.shape(0)[:-2]))


@register_kernel("linalg_solve_ex", infer=_solution_and_info, sbp="...MN,...MK->...", batch=_solved)
def linalg_solve_ex(xp, a, b, *, check_errors):
    """x with a x = b, for a (..., N, N) and b (..., N, K); nan where a is singular."""
    return _unless_singular(xp, "linalg.solve", a, check_errors, lambda a: _solve(xp, a, b, False))


@register_kernel(
    "linalg_solve_turned", infer=_solution_and_info, sbp="...MN,...MK->...", batch=_solved
)
def linalg_solve_turned(xp, a, b, *, check_errors):
    """x with aᵀ x = b, by the factors that a has."""
    return _unless_singular(xp, "linalg.solve", a, check_errors, lambda a: _solve(xp, a, b, True))


def _solve(xp, a, b, turned):
    if on_host(xp) and a.shape[:-2] == b.shape[:-2]:
        return solve(a, b, turned)
    return xp.linalg.solve(*_spread(xp, transposed(a) if turned else a, b))


def _spread(xp, a, b):
    """Broadcast the batches, which CuPy leaves to its caller."""
    if a.shape[:-2] == b.shape[:-2]:
        return a, b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return [xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b)]


def _inverse_and_info(a, **attrs):
    return ArraySpec(a.shape, a.dtype), ArraySpec(a.shape[:-2], _INFO)


@register_kernel("linalg_inv_ex", infer=_inverse_and_info, sbp="...MN->...")
def linalg_inv_ex(xp, a, *, check_errors):
    return _unless_singular(xp, "linalg.inv", a, check_errors, _inverse_by(xp))


def _inverse_by(xp):
    return inverse if on_host(xp) else xp.linalg.inv


def _unless_singular(xp, op, a, check_errors, routine):
    """Return the result of a routine, nan where a is singular, and the infos."""
    y = attempt(xp, routine, a)
    if y is not None:
        return in_order(xp, y), xp.zeros(a.shape[:-2], _INFO)
    # The routine fails for the whole batch; LU tells which of its matrices are singular.
    info = linalg_lu_factor_ex(xp, a, pivot=True, check_errors=False)[2]
    if check_errors:
        fail(
            op,
            info,
            expected="invertible matrices",
            got="a singular one: element {} on the diagonal of its U is 0",
            hint="use linalg.lstsq or linalg.pinv, or add a small multiple of the identity",
        )
    bad = (info != 0)[..., None, None]
    y = routine(xp.where(bad, xp.eye(a.shape[-1], dtype=a.dtype), a))
    return in_order(xp, xp.where(bad, y.dtype.type(np.nan), y)), info


def _triangular_solution(a, b, *, left, **attrs):
    return _solution(a, b)


@register_kernel(
    "linalg_solve_triangular", infer=_triangular_solution, sbp="...MN,...MK->...", linear="b"
)
def linalg_solve_triangular(xp, a, b, *, upper, left=True, unitriangular=False):
    """x with a x = b, or x a = b unless left; nothing is read on the other side of the diagonal."""
    if not left:  # aᵀ xᵀ = bᵀ
        y = _substitute(xp, transposed(a), transposed(b), not upper, unitriangular)
        return in_order(xp, transposed(y))
    return in_order(xp, _substitute(xp, a, b, upper, unitriangular))


def _substitute(xp, a, b, upper, unit):
    a, b = _spread(xp, a, b)
    if not b.size:
        return b.copy()
    if not on_host(xp):
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(a, b, lower=not upper, unit_diagonal=unit, check_finite=False)
    y = b.copy("C")
    for matrix, right in each(a, y):
        solve_triangle(matrix, right, upper, unit)
    return y


# --- Least squares ------------------------------------------------------------------------------


def _turned(x, *others, **attrs):
    return ArraySpec((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)


def _batch_of_inverses(call, x, atol, rtol, **attrs):
    """The tolerances are aligned with the dimensions in front of the matrices."""
    x = call.front(0)
    ndim = max([x.ndim - 3, *[call.ndim(i) for i in (1, 2) if call.values[i] is not None]])
    atol, rtol = [
        call.front(i, ndim) if own else call.values[i]
        for i, own in zip((1, 2), call.batched[1:], strict=True)
    ]
    return call.run(call.front(0, ndim + 2), atol, rtol, **attrs)


@register_kernel("pinv", infer=_turned, batch=_batch_of_inverses)
def pinv(xp, x, atol, rtol, *, hermitian):
    """The pseudoinverse, where singular values up to max(atol, rtol · the largest) count as 0.

    Both are numbers for each matrix. By default rtol is the relative rounding error of x.
    """
    if rtol is None:
        rtol = max(x.shape[-2:]) * float(xp.finfo(x.dtype).eps)
    else:
        rtol = rtol[..., None]
    atol = 0 if atol is None else atol[..., None]
    if hermitian:
        s, u = converged(xp, "linalg.pinv", xp.linalg.eigh, x)
        vh = transposed(u).conj()
    else:
        u, s, vh = converged(xp, "linalg.pinv", xp.linalg.svd, x, False)
    inverse = _reciprocals(xp, s, atol, rtol)
    return in_order(xp, (transposed(vh).conj() * inverse[..., None, :]) @ transposed(u).conj())


def _reciprocals(xp, s, atol, rtol):
    """Return 1/s, and 0 where |s| is at most max(atol, rtol · the largest)."""
    if not s.shape[-1]:
        return s
    size = abs(s)
    kept = size > xp.maximum(atol, rtol * size.max(-1, keepdims=True))
    return xp.where(kept, 1 / xp.where(kept, s, 1), 0).astype(s.dtype, copy=False)


def _least_squares(a, b, *, rcond, driver):
    *batch, m, n = a.shape
    rank = (0,) if driver == "gels" else tuple(batch)
    s = (*batch, min(m, n)) if driver in ("gelsd", "gelss") else (0,)
    solution = ArraySpec((*batch, n, b.shape[-1]), b.dtype)
    return solution, ArraySpec(rank, np.dtype(np.int64)), ArraySpec(s, real_dtype(a.dtype))


def _systems(shapes, attrs):
    """Split the batch, but not the outputs that a driver leaves empty."""
    more = {"gels": ",,", "gelsy": ",...,"}.get(attrs["driver"], ",...,...")
    return f"...MN,...MK->...{more}"


def _batch_of_systems(call, a, b, **attrs):
    ndim = max(call.ndim(0), call.ndim(1))
    x, rank, values = call.run(call.front(0, ndim), call.front(1, ndim), **attrs)
    none = call.F.expand  # what a driver leaves empty has no batch yet
    if attrs["driver"] == "gels":
        rank = none(rank, shape=(call.size, 0))
    if attrs["driver"] in ("gels", "gelsy"):
        values = none(values, shape=(call.size, 0))
    return x, rank, values


@register_kernel("linalg_lstsq", infer=_least_squares, sbp=_systems, batch=_batch_of_systems)
def linalg_lstsq(xp, a, b, *, rcond, driver):
    """The shortest x that minimises |a x − b|, the rank of a and its singular values.

    CUDA computes every driver of LAPACK by singular values; the outputs are its namesake's.
    """
    if on_host(xp):
        x, rank, s = _by_driver(*_spread(xp, a, b), rcond=rcond, driver=driver)
    else:
        u, s, vh = converged(xp, "linalg.lstsq", xp.linalg.svd, a, False)
        inverse = _reciprocals(xp, s, 0, 0 if driver == "gels" else rcond)
        x = transposed(vh).conj() @ (inverse[..., None] * (transposed(u).conj() @ b))
        rank = xp.asarray((inverse != 0).sum(-1))
    nothing = s.reshape(-1)[:0]
    return (
        in_order(xp, x),
        nothing.astype(np.int64) if driver == "gels" else in_order(xp, rank),
        in_order(xp, s) if driver in ("gelsd", "gelss") else nothing.copy(),
    )


def _by_driver(a, b, *, rcond, driver):
    """Return solutions, ranks and singular values of one driver of LAPACK."""
    import scipy.linalg

    *batch, m, n = a.shape
    x = np.zeros((*batch, n, b.shape[-1]), a.dtype)
    rank = np.zeros((*batch, 1), np.int64)
    s = np.zeros((*batch, min(m, n)), a.real.dtype)
    for matrix, right, solution, its_rank, values in each(a, b, x, rank, s) if x.size and m else ():
        if driver == "gels":
            padded = np.zeros((max(m, n), right.shape[-1]), a.dtype)
            padded[:m] = right
            _, y, info = lapack("gels", a.dtype.char)(matrix, padded)
            if info:
                fail(
                    "linalg.lstsq",
                    np.array(info),
                    expected="matrices of full rank for driver='gels'",
                    got="one whose triangular factor has a 0 as element {} on the diagonal",
                    hint="take driver='gelsd'",
                    argument="input",
                )
            solution[...] = y[:n]
            continue
        solution[...], _, its_rank[...], found = converged(
            np,
            "linalg.lstsq",
            scipy.linalg.lstsq,
            matrix,
            right,
            cond=rcond,
            check_finite=False,
            lapack_driver=driver,
            argument="input",
        )
        if driver != "gelsy":
            values[...] = found
    return x, rank[..., 0], s


# --- Determinants -------------------------------------------------------------------------------


def _determinant(x):
    return ArraySpec(x.shape[:-2], x.dtype)


@register_kernel("linalg_det", infer=_determinant, sbp="...MN->...")
def linalg_det(xp, x):
    return in_order(xp, xp.linalg.det(x))


def _sign_and_logarithm(x):
    return _determinant(x), ArraySpec(x.shape[:-2], real_dtype(x.dtype))


@register_kernel("linalg_slogdet", infer=_sign_and_logarithm, sbp="...MN->...")
def linalg_slogdet(xp, x):
    sign, logarithm = (sign_and_logarithm if on_host(xp) else xp.linalg.slogdet)(x)
    return in_order(xp, sign), in_order(xp, logarithm)


def _by_inverse(of_one, formula):
    """Let `formula(xp, *arrays, inverse transposed, determinant)` serve where it is accurate.

    The result is a polynomial of the elements, so singular matrices have it, too. The kernel serves
    these matrices, and matrices with an inaccurate inverse. For 1 by 1 matrices the result is the
    constant `of_one`.
    """

    def decorator(kernel):
        @functools.wraps(kernel)
        def chosen(xp, *arrays):
            x = arrays[-1]
            if x.shape[-1] == 1:
                return xp.full(x.shape, of_one, x.dtype)
            inverted = attempt(xp, _inverse_by(xp), x)
            if inverted is None:
                return in_order(xp, kernel(xp, *arrays))
            y = formula(xp, *arrays[:-1], transposed(inverted), linalg_det(xp, x)[..., None, None])
            if x.size:
                condition = abs(x).sum(-2).max(-1) * abs(inverted).sum(-2).max(-1)
                rough = condition > _ILL / xp.finfo(x.dtype).eps
                if rough.any():
                    y = xp.where(rough[..., None, None], kernel(xp, *arrays), y)
            return in_order(xp, y)

        return chosen

    return decorator


_ILL = 1e-4  # over the rounding error: the largest condition with an accurate inverse


@register_kernel("cofactor", infer=_like, sbp="...MN->...")
@_by_inverse(1, lambda xp, inverse, det: det * inverse)
def cofactor(xp, x):
    """The derivative of det x by each element of x: det(x) x⁻ᵀ."""
    turn, u, s, vh = _turned_apart(xp, x)
    return turn * (u.conj() * _products_without_one(xp, s)[..., None, :]) @ vh.conj()


@register_kernel("cofactor_grad", infer=_like, sbp="...MN,...MN->...", linear="g")
@_by_inverse(
    0,
    lambda xp, g, y, det: det * ((y * g).sum((-1, -2), keepdims=True) * y - y @ transposed(g) @ y),
)
def cofactor_grad(xp, g, x):
    """The derivative of Σ g · cofactor(x) by each element of x."""
    turn, u, s, vh = _turned_apart(xp, x)
    g = transposed(u).conj() @ g @ transposed(vh).conj()
    products = _products_without_two(xp, s)
    y = -products * transposed(g)
    diagonal = xp.arange(x.shape[-1])
    y[..., diagonal, diagonal] = (products * g.diagonal(0, -2, -1)[..., None, :]).sum(-1)
    return turn * (u.conj() @ y @ vh.conj())


def _turned_apart(xp, x):
    """Return det U · det Vᴴ, a sign or a phase, and U, s and Vᴴ of x = U diag(s) Vᴴ."""
    u, s, vh = converged(xp, "linalg.det", xp.linalg.svd, x)
    return (linalg_det(xp, u) * linalg_det(xp, vh))[..., None, None], u, s, vh


def _products_without_one(xp, s):
    """Return for each i the product of all s but s_i."""
    others = ~xp.eye(s.shape[-1], dtype=bool)
    return xp.where(others, s[..., None, :], 1).prod(-1)


def _products_without_two(xp, s):
    """Return for each i and j the product of all s, which fall, but s_i and s_j; 0 where i = j."""
    n = s.shape[-1]
    places = xp.arange(n)
    smaller = _products_without_one(xp, s)[..., xp.maximum(places[:, None], places)]
    larger = s[..., xp.minimum(places[:, None], places)]
    y = xp.where(larger == 0, 0, smaller / xp.where(larger == 0, 1, larger))
    if n > 1:  # where two s are 0, the product without both may differ from 0
        y[..., n - 2, n - 1] = y[..., n - 1, n - 2] = s[..., : n - 2].prod(-1)
    return xp.where(xp.eye(n, dtype=bool), 0, y)


# --- Functions of a matrix, products ------------------------------------------------------------

# Padé's approximant of degree 13 is exact to double precision up to this norm. N. J. Higham, "The
# scaling and squaring method for the matrix exponential revisited", SIAM Review 51 (2009).
_NORM = 5.371920351148152
_PADE = [math.comb(13, k) * math.factorial(26 - k) // math.factorial(13) for k in range(14)]


@register_kernel("matrix_exp", infer=_like, sbp="...MN->...")
def matrix_exp(xp, x):
    """Σ xⁿ / n!: scaled down to a small norm, approximated, and squared as often as halved."""
    if not x.size:
        return x.copy()
    b = [float(c) / _PADE[0] for c in _PADE]
    norm = abs(x).sum(-2).max(-1)
    times = xp.ceil(xp.log2(xp.maximum(norm, _NORM) / _NORM))
    times = xp.where(xp.isfinite(times), times, 0)
    x = x * (0.5**times).astype(norm.dtype)[..., None, None]
    one = xp.eye(x.shape[-1], dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x2 @ x4
    odd = x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2
    odd = x @ (odd + b[1] * one)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + one
    y = xp.linalg.solve(even - odd, even + odd)
    for i in range(int(times.max())):
        y = xp.where((times > i)[..., None, None], y @ y, y)
    return in_order(xp, y)


def _crossed(x, y, *, dim):
    return ArraySpec(np.broadcast_shapes(x.shape, y.shape), x.dtype)


@register_kernel("linalg_cross", infer=_crossed, sbp="elementwise", linear="x y")
def linalg_cross(xp, x, y, *, dim):
    """z_i = x_{i+1} y_{i+2} - x_{i+2} y_{i+1}, counted modulo 3."""
    z = xp.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    behind = (slice(None),) * (z.ndim - 1 - dim % z.ndim)
    x1, x2, x3 = [x[(..., i, *behind)] for i in range(3)]
    y1, y2, y3 = [y[(..., i, *behind)] for i in range(3)]
    z[(..., 0, *behind)] = x2 * y3 - x3 * y2
    z[(..., 1, *behind)] = x3 * y1 - x1 * y3
    z[(..., 2, *behind)] = x1 * y2 - x2 * y1
    return z
