"""Kernels that take matrices apart: Cholesky, LU, LDL, QR, singular values, eigenvalues.

They take stacks of matrices (..., M, N). An `info` is 0 for each matrix that has the factorization.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import ArgumentError, NotDifferentiableError, arg_error
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import like_input, real_dtype
from oneflow_lite.kernels.lapack import attempt, converged, each, fail, first_on_diagonal, lapack
from oneflow_lite.ops.registry import register_kernel

_INT = np.dtype(np.int32)


def transposed(x):
    return x.swapaxes(-1, -2)


def in_order(xp, x):
    return xp.asarray(x, order="C")  # not by ascontiguousarray, which makes vectors of 0-d arrays


def _with_info(x, **attrs):
    return ArraySpec(x.shape, x.dtype), ArraySpec(x.shape[:-2], _INT)


def _with_pivots(x, **attrs):
    pivots = ArraySpec((*x.shape[:-2], min(x.shape[-2:])), _INT)
    return ArraySpec(x.shape, x.dtype), pivots, ArraySpec(x.shape[:-2], _INT)


# --- Cholesky -----------------------------------------------------------------------------------


@register_kernel("linalg_cholesky_ex", infer=_with_info, sbp="...MN->...")
def linalg_cholesky_ex(xp, x, *, upper, check_errors):
    """L with x = L Lᴴ, read from the lower triangle of x; with upper, Lᴴ from the upper one."""
    lower = transposed(x).conj() if upper else x
    y = attempt(xp, xp.linalg.cholesky, lower)
    if y is not None:
        info = xp.zeros(x.shape[:-2], np.int32)
    else:
        y = _partial_cholesky(xp, lower)
        info = first_on_diagonal(xp, y, lambda d: ~(d.real > 0))
        if check_errors:
            fail(
                "linalg.cholesky",
                info,
                expected="positive definite matrices",
                got="one whose leading minor of order {} is not positive",
                hint="add a small multiple of the identity, or use linalg.cholesky_ex",
                argument="input",
            )
    return in_order(xp, transposed(y).conj() if upper else y), info


def _partial_cholesky(xp, x):
    """Return factors that are right up to the first pivot that is not positive; it stays there."""
    y = xp.tril(x)
    for j in range(x.shape[-1]):
        column = x[..., j:, j] - (y[..., j:, :j] @ y[..., j, :j, None].conj())[..., 0]
        pivot = column[..., :1].real
        y[..., j:, j] = column / xp.sqrt(xp.where(pivot > 0, pivot, 1))
    return y


# --- LU and LDL ---------------------------------------------------------------------------------


@register_kernel("linalg_lu_factor_ex", infer=_with_pivots, sbp="...MN->...")
def linalg_lu_factor_ex(xp, x, *, pivot, check_errors):
    """L (without its unit diagonal) and U in one matrix, and the rows exchanged, from 1."""
    *batch, m, n = x.shape
    y = xp.empty(x.shape, x.dtype)
    pivots = xp.empty((*batch, min(m, n)), np.int32)
    if x.size:
        if on_host(xp):
            getrf = lapack("getrf", x.dtype.char)
        else:
            getrf = _cuda_getrf
        for matrix, factors, rows in each(x, y, pivots):
            factors[...], rows[...] = getrf(matrix)[:2]
        pivots += 1
    info = first_on_diagonal(xp, y, lambda d: d == 0)
    if check_errors and (info != 0).any():
        fail(
            "linalg.lu_factor",
            info,
            expected="matrices that lu_solve can divide by",
            got="a singular one: element {} on the diagonal of U is 0",
            hint="use linalg.lu or linalg.lu_factor_ex for the factors alone",
        )
    return y, pivots, info


def _cuda_getrf(matrix):
    import cupyx.scipy.linalg

    return cupyx.scipy.linalg.lu_factor(matrix, check_finite=False)


def _rows_of(pivots, *, size):
    return ArraySpec((*pivots.shape[:-1], size), np.dtype(np.int64))


@register_kernel("lu_permutation", infer=_rows_of, sbp="...M->...")
def lu_permutation(xp, pivots, *, size):
    """The rows of a matrix in the order in which L U has them."""
    batch = pivots.shape[:-1]
    count = math.prod(batch)
    rows = xp.broadcast_to(xp.arange(size), (count, size)).copy()
    swaps = pivots.reshape(count, pivots.shape[-1])
    which = xp.arange(count)
    for i in range(swaps.shape[1]):
        k = swaps[:, i] - 1
        kept = rows[:, i].copy()
        rows[:, i] = rows[which, k]
        rows[which, k] = kept
    return rows.reshape(*batch, size)


def _on_host(kernel):
    """Let a kernel of the host serve CUDA, where CuPy has no such routine."""

    @functools.wraps(kernel)
    def there_and_back(xp, *arrays, **attrs):
        if on_host(xp):
            return kernel(np, *arrays, **attrs)
        outputs = kernel(np, *[x.get() for x in arrays], **attrs)
        if isinstance(outputs, tuple):
            return tuple(map(xp.asarray, outputs))
        return xp.asarray(outputs)

    return there_and_back


@register_kernel("linalg_ldl_factor_ex", infer=_with_pivots, sbp="...MN->...")
@_on_host
def linalg_ldl_factor_ex(xp, x, *, hermitian, check_errors):
    """The lower triangle of L and D with x = L D Lᵀ (Lᴴ if hermitian), and LAPACK's pivots."""
    if x.shape[-1] != x.shape[-2]:  # LAPACK would read beyond its end
        op, hint = "linalg.ldl_factor", "pass square ones"
        raise arg_error(op, "input", "square matrices", f"shape {x.shape}", hint)
    y = np.empty(x.shape, x.dtype)
    pivots = np.empty(x.shape[:-1], np.int32)
    info = np.zeros(x.shape[:-2], np.int32)
    factor = lapack(_of_symmetry("trf", x, hermitian), x.dtype.char)
    codes = info.reshape(-1)
    for i, (matrix, factors, rows) in enumerate(each(x, y, pivots)):
        factors[...], rows[...], codes[i] = factor(matrix, lower=1)
    if check_errors and info.any():
        fail(
            "linalg.ldl_factor",
            info,
            expected="matrices that ldl_solve can divide by",
            got="a singular one: element {} on the diagonal of D is 0",
            hint="use linalg.ldl_factor_ex for the factors alone",
            argument="input",
        )
    return np.tril(y), pivots, info


def _of_symmetry(name, x, hermitian):
    return ("he" if hermitian and x.dtype.kind == "c" else "sy") + name


def _solution(factors, pivots, b, **attrs):
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    return ArraySpec((*batch, *b.shape[-2:]), b.dtype)


def _check_pivots(pivots):
    """Raise for wrong pivots, which LAPACK would follow out of its memory.

    A block of two rows has a negative number for each of both.
    """
    n, i = len(pivots), 0
    while i < n:
        pair = pivots[i] < 0
        if not 1 <= abs(pivots[i]) <= n or (pair and (i + 1 == n or pivots[i + 1] >= 0)):
            raise arg_error(
                "linalg.ldl_solve",
                "pivots",
                expected="those of linalg.ldl_factor",
                got=pivots.tolist(),
                hint="pass what it returned",
                kind=ArgumentError,
            )
        i += 2 if pair else 1


@register_kernel("linalg_ldl_solve", infer=_solution, sbp="...MN,...M,...MK->...")
@_on_host
def linalg_ldl_solve(xp, factors, pivots, b, *, hermitian):
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    n = factors.shape[-1]
    y = np.empty((*batch, *b.shape[-2:]), b.dtype)
    solve = lapack(_of_symmetry("trs", factors, hermitian), b.dtype.char)
    spread = [
        np.broadcast_to(factors, (*batch, n, n)),
        np.broadcast_to(pivots, (*batch, n)),
        np.broadcast_to(b, y.shape),
    ]
    if y.size:
        for matrix, rows, right, solution in each(*spread, y):
            _check_pivots(rows)
            solution[...] = solve(matrix, rows, right, lower=1)[0]
    return y


# --- QR -----------------------------------------------------------------------------------------


def _q_and_r(x, *, mode):
    *batch, m, n = x.shape
    k = m if mode == "complete" else min(m, n)
    q = ArraySpec((0,) if mode == "r" else (*batch, m, k), x.dtype)
    return q, ArraySpec((*batch, k, n), x.dtype)


def _q_and_r_of_batch(call, x, *, mode):
    q, r = call.run(x, mode=mode)
    if mode == "r":  # Q has no element in any entry
        q = call.F.expand(call.F.reshape(q, shape=(1, 0)), shape=(call.size, 0))
    return q, r


@register_kernel("linalg_qr", infer=_q_and_r, sbp="...MN->...", batch=_q_and_r_of_batch)
def linalg_qr(xp, x, *, mode):
    if mode == "r":
        r = converged(xp, "linalg.qr", xp.linalg.qr, x, mode)
        return xp.empty((0,), x.dtype), in_order(xp, r)
    q, r = converged(xp, "linalg.qr", xp.linalg.qr, x, mode)
    return in_order(xp, q), in_order(xp, r)


def _reflectors(x):
    return like_input(x), ArraySpec((*x.shape[:-2], min(x.shape[-2:])), x.dtype)


@register_kernel("geqrf", infer=_reflectors, sbp="...MN->...")
def geqrf(xp, x):
    """LAPACK's QR: R above reflectors below the diagonal, and their factors tau."""
    reflectors, tau = converged(xp, "geqrf", xp.linalg.qr, x, "raw")
    return in_order(xp, transposed(reflectors)), in_order(xp, tau)


# --- Singular values ----------------------------------------------------------------------------


def _singular(x, *, full_matrices):
    *batch, m, n = x.shape
    k = min(m, n)
    return (
        ArraySpec((*batch, m, m if full_matrices else k), x.dtype),
        ArraySpec((*batch, k), real_dtype(x.dtype)),
        ArraySpec((*batch, n if full_matrices else k, n), x.dtype),
    )


@register_kernel("linalg_svd", infer=_singular, sbp="...MN->...")
def linalg_svd(xp, x, *, full_matrices):
    u, s, vh = converged(xp, "linalg.svd", xp.linalg.svd, x, full_matrices)
    return in_order(xp, u), in_order(xp, s), in_order(xp, vh)


def _singular_values(x):
    return ArraySpec((*x.shape[:-2], min(x.shape[-2:])), real_dtype(x.dtype))


@register_kernel("linalg_svdvals", infer=_singular_values, sbp="...MN->...")
def linalg_svdvals(xp, x):
    return in_order(xp, converged(xp, "linalg.svdvals", xp.linalg.svd, x, compute_uv=False))


# --- Eigenvalues --------------------------------------------------------------------------------


def _eigen(values_of, with_vectors):
    """Return the rule of an op that gives eigenvalues, and eigenvectors if it does."""

    def rule(x, **attrs):
        values = ArraySpec(x.shape[:-1], values_of(x.dtype))
        vectors = x.dtype if values.dtype.kind == "f" else values.dtype
        return (values, ArraySpec(x.shape, vectors)) if with_vectors else values

    return rule


def complex_dtype(dtype):
    """Return the dtype of complex numbers with parts of a dtype."""
    return np.result_type(dtype, np.complex64)


@register_kernel("linalg_eigh", infer=_eigen(real_dtype, True), sbp="...MN->...")
def linalg_eigh(xp, x, *, UPLO):
    values, vectors = converged(xp, "linalg.eigh", xp.linalg.eigh, x, UPLO, argument="input")
    return in_order(xp, values), in_order(xp, vectors)


@register_kernel("linalg_eigvalsh", infer=_eigen(real_dtype, False), sbp="...MN->...")
def linalg_eigvalsh(xp, x, *, UPLO):
    values = converged(xp, "linalg.eigvalsh", xp.linalg.eigvalsh, x, UPLO, argument="input")
    return in_order(xp, values)


@register_kernel("linalg_eig", infer=_eigen(complex_dtype, True), sbp="...MN->...")
def linalg_eig(xp, x):
    values, vectors = converged(xp, "linalg.eig", xp.linalg.eig, x, argument="input")
    dtype = complex_dtype(x.dtype)  # NumPy returns real arrays where no value is complex
    return tuple([in_order(xp, y.astype(dtype, copy=False)) for y in (values, vectors)])


@register_kernel("linalg_eigvals", infer=_eigen(complex_dtype, False), sbp="...MN->...")
def linalg_eigvals(xp, x):
    values = converged(xp, "linalg.eigvals", xp.linalg.eigvals, x, argument="input")
    return in_order(xp, values.astype(complex_dtype(x.dtype), copy=False))


def _over_gaps_of_batch(call, x, *others):
    ndim = call.ndim(0)  # the others broadcast with x, and may have fewer dimensions
    return call.run(*[call.front(i, ndim) for i in range(4)])


@register_kernel(
    "over_gaps", infer=lambda x, gaps, d, other: like_input(x), batch=_over_gaps_of_batch
)
def over_gaps(xp, x, gaps, d, other):
    """x / gaps, but 0 for 0 / 0 where gradients of columns have zeros in both columns of a pair.

    gaps: (..., N, N) for pairs of columns, or (..., 1, N) for the columns of x alone.
    d, other: the gradients, of N columns; the other one may be None.
    """
    unused = ~(d != 0).any(-2)
    if other is not None:
        unused &= ~(other != 0).any(-2)
    pairs = unused[..., None, :]
    if gaps.shape[-2] > 1:
        pairs = pairs & unused[..., None]
    forgiven = pairs & (x == 0) & (gaps == 0)
    return xp.where(forgiven, x, x / xp.where(forgiven, 1, gaps)).astype(x.dtype, copy=False)


@register_kernel("free_of_phase", infer=lambda x, phase, of: like_input(x), batch="front")
def free_of_phase(xp, x, phase, *, of):
    """A copy of x, part of a gradient; raises where the loss depends on the phase of a vector.

    Singular vectors and eigenvectors are as good after a turn by e^(iφ). `phase` is the derivative
    of the loss by φ: unless it vanishes the loss is no function of the matrix.
    """
    if phase.size and abs(phase).max() > 1e-2:  # PyTorch's tolerance: a rounded sum is not 0
        raise NotDifferentiableError(
            f"{of}: the loss depends on the phase of complex vectors, which is arbitrary, so it "
            "has no derivative; use their absolute values, or products in which the phase cancels"
        )
    return x.copy()


# --- Few eigenvalues ------------------------------------------------------------------------------


def _few(a, b, x, t, *, k, **attrs):
    batch = a.shape[:-2]
    return ArraySpec((*batch, k), a.dtype), ArraySpec((*batch, a.shape[-1], k), a.dtype)


def _batch_of_problems(call, *given, **attrs):
    ndim = max(call.ndim(i) for i, value in enumerate(given) if value is not None)
    aligned = [None if v is None else call.front(i, ndim) for i, v in enumerate(given)]
    return call.run(*aligned, **attrs)


@register_kernel("lobpcg", infer=_few, batch=_batch_of_problems)
def lobpcg(xp, a, b, x, t, *, k, niter, tol, largest):
    """The k largest (or smallest) w of a v = w b v, and the v, found from the columns of x.

    t, an approximation of a⁻¹, turns residuals into better directions; b and t may be None.
    """
    given = [y for y in (a, b, x, t) if y is not None]
    batch = np.broadcast_shapes(*[y.shape[:-2] for y in given])
    values = xp.empty((*batch, k), a.dtype)
    vectors = xp.empty((*batch, a.shape[-1], k), a.dtype)
    for place in np.ndindex(batch):
        parts = [
            None if y is None else xp.broadcast_to(y, (*batch, *y.shape[-2:]))[place]
            for y in (a, b, x, t)
        ]
        w, v = _locally_optimal(xp, *parts, k=k, niter=niter, tol=tol, largest=largest)
        values[place], vectors[place] = w[:k], v[:, :k]
    return values, vectors


def _locally_optimal(xp, a, b, x, t, *, k, niter, tol, largest):
    """Improve x by the best vectors in the space of x, its residuals and the last step.

    A. V. Knyazev, "Toward the optimal preconditioned eigensolver" (2001).
    """

    def by(matrix, y):
        return y if matrix is None else matrix @ y

    def best(*columns):
        """The best vectors in the space of these columns, orthonormal in the sense of b."""
        s = xp.concatenate(columns, 1)
        for _ in range(2):  # twice, for the sake of rounding: Stathopoulos and Wu (2002)
            s = s / xp.maximum(_lengths(xp, s), xp.finfo(s.dtype).tiny)
            d, v = converged(xp, "lobpcg", xp.linalg.eigh, s.T @ by(b, s))
            kept = d > d[-1] * len(d) * xp.finfo(s.dtype).eps
            s = s @ (v[:, kept] / xp.sqrt(d[kept]))
        w, v = converged(xp, "lobpcg", xp.linalg.eigh, s.T @ (a @ s))
        order = slice(None, None, -1) if largest else slice(None)
        return w[order][:count], (s @ v[:, order])[:, :count]

    count, last = x.shape[1], None
    sizes = [_lengths(xp, by(m, x)).max() / _lengths(xp, x).max() for m in (a, b)]
    w, x = best(x)
    while True:
        residuals = a @ x - by(b, x) * w
        error = _lengths(xp, residuals) / (_lengths(xp, x) * (sizes[0] + abs(w) * sizes[1]))
        if niter == 0 or (error[:k] <= tol).all():
            return w, x
        niter -= 1
        r, before = by(t, residuals), x
        r = r - x @ (x.T @ by(b, r))
        w, x = best(x, r) if last is None else best(x, r, last)
        last = x - before @ (before.T @ by(b, x))


def _lengths(xp, x):
    return xp.sqrt((x * x).sum(0))
