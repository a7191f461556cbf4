"""Factorizations of matrices: what users call.

Where a matrix has several, as vectors do that may be multiplied by -1 or by e^(iφ), gradients are
those of what does not depend on the choice.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Annotated, Any

from oneflow_lite.errors import ArgumentError, ShapeError
from oneflow_lite.functors.checks import check_int
from oneflow_lite.functors.complex import conj
from oneflow_lite.functors.creation import arange, eye, zeros
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.diagonals import tril, triu
from oneflow_lite.functors.domains import Count, Flag, Matrix, Square, attribute, choice
from oneflow_lite.functors.matmul import check_same_dtype
from oneflow_lite.functors.random import randn
from oneflow_lite.functors.reduce import mean
from oneflow_lite.functors.scatter import take_along_dim
from oneflow_lite.functors.shape import adjoint
from oneflow_lite.functors.sorting import argsort
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

CHOLESKY = op_expr("linalg_cholesky_ex")
LU = op_expr("linalg_lu_factor_ex")
LDL = op_expr("linalg_ldl_factor_ex")
QR = op_expr("linalg_qr")
SVD = op_expr("linalg_svd")
SVDVALS = op_expr("linalg_svdvals")
SOLVE_TRIANGULAR = op_expr("linalg_solve_triangular")
PERMUTATION = op_expr("lu_permutation")

Triangle = Annotated[str, choice("L", "U", says="Which triangle is read, lower or upper.")]


def _check_pivot(op: str, argument: str, pivot: Any) -> bool:
    if not pivot:
        raise ArgumentError(
            f"{op}(): argument '{argument}': expected True, got {pivot}; LAPACK exchanges rows"
        )
    return True


def _check_driver(op: str, argument: str, driver: Any) -> None:
    if driver is not None:
        raise ArgumentError(
            f"{op}(): argument '{argument}': expected None, got {driver!r}; NumPy and CuPy choose "
            "the algorithm themselves"
        )


Pivot = Annotated[bool, attribute(_check_pivot, says="Has to be True.")]
Driver = Annotated[str | None, attribute(_check_driver, says="Has to be None.")]


def solve_triangular(a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """Return a⁻¹ b for a triangular a; nothing is checked."""
    attrs = {"upper": upper, "left": True, "unitriangular": unit}
    return dispatch(SOLVE_TRIANGULAR, (a, b), attrs)


def _identity(like: Tensor, rows: int, columns: int) -> Tensor:
    return eye(rows, columns, dtype=like.dtype, device=like.device)


# --- Cholesky -----------------------------------------------------------------------------------

CholeskyEx = namedtuple("CholeskyEx", "L info")


@functor("flow Tensor linalg", out=True, samples="spd(3); spd(2, 2), upper=True")
def cholesky(input: Square, upper: Flag = False) -> Tensor:
    """Return the lower triangular L with positive diagonal such that input = L Lᴴ.

    upper: return Lᴴ, read from the upper triangle of the input, instead of the lower one.
    LinAlgError: when a matrix is not positive definite.

    >>> flow.linalg.cholesky(flow.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    return dispatch(CHOLESKY, (input,), {"upper": upper, "check_errors": True})[0]


@functor("linalg", out=True, samples="spd(3); spd(2, 2), upper=True")
def linalg_cholesky_ex(
    input: Square, *, upper: Flag = False, check_errors: Flag = False
) -> CholeskyEx:
    """Return `cholesky` and, for each matrix, the order of the first minor that is not positive.

    upper: as in `cholesky`.
    check_errors: raise where there is one; otherwise L is right up to there.
    """


# --- LU and LDL ---------------------------------------------------------------------------------


def _factored(A: Tensor, check_errors: bool = False) -> Any:
    return dispatch(LU, (A,), {"pivot": True, "check_errors": check_errors})


LUFactor = namedtuple("LUFactor", "LU pivots")
LUFactorEx = namedtuple("LUFactorEx", "LU pivots info")
PLU = namedtuple("PLU", "P L U")
LDLFactor = namedtuple("LDLFactor", "LD pivots")
LDLFactorEx = namedtuple("LDLFactorEx", "LD pivots info")


@functor("linalg", out=True, samples="x(3, 3); x(2, 2, 4); x(3, 2)")
def linalg_lu_factor(A: Matrix, *, pivot: Pivot = True) -> LUFactor:
    """Return L and U in one matrix, and the rows that were exchanged with each, from 1.

    LinAlgError: when U has a 0 on its diagonal.

    >>> flow.linalg.lu_factor(flow.tensor([[1.0, 2.0], [2.0, 2.0]])).pivots
    tensor([2, 2], dtype=int32)
    """
    return LUFactor(*_factored(A, True)[:2])


@functor("linalg", out=True, samples="x(3, 3); x(2, 2, 4); x(3, 2)")
def linalg_lu_factor_ex(
    A: Matrix, *, pivot: Pivot = True, check_errors: Flag = False
) -> LUFactorEx:
    """Return `lu_factor` and the number of the first 0 on the diagonal of each U, or 0.

    check_errors: raise where there is one.
    """


@functor("linalg", out=True, samples="x(3, 3); x(2, 2, 4); x(3, 2)")
def linalg_lu(A: Matrix, *, pivot: Pivot = True) -> PLU:
    """Return a permutation matrix P, L with unit diagonal, and U, such that A = P L U.

    >>> flow.linalg.lu(flow.tensor([[1.0, 2.0], [2.0, 2.0]])).U
    tensor([[2., 2.],
            [0., 1.]])
    """
    return _unpacked(*_factored(A)[:2])


def _unpacked(LU_data: Tensor, LU_pivots: Tensor) -> PLU:
    m, n = LU_data._data.shape[-2:]
    k = min(m, n)
    rows = dispatch1(PERMUTATION, LU_pivots, {"size": m})
    places = arange(m, device=LU_data.device).unsqueeze(-1) == rows.unsqueeze(-2)
    lower = tril(LU_data[..., :k], -1) + _identity(LU_data, m, k)
    return PLU(places.to(LU_data.dtype), lower, triu(LU_data[..., :k, :]))


@functor("flow Tensor", out=True, samples="x(3, 3); x(2, 2, 4), get_infos=True")
def lu(A: Matrix, pivot: Pivot = True, get_infos: Flag = False) -> Any:
    """Return `linalg.lu_factor` without its check; the older function.

    get_infos: return the infos of `linalg.lu_factor_ex`, too.
    """
    return tuple(_factored(A)[: 3 if get_infos else 2])


@functor("flow", out=True, samples="x(3, 3), np.int32([2, 3, 3]); x(3, 2), np.int32([3, 2])")
def lu_unpack(
    LU_data: Matrix, LU_pivots: Tensor, unpack_data: Flag = True, unpack_pivots: Flag = True
) -> PLU:
    """Return P, L and U of what `linalg.lu_factor` gives.

    LU_pivots: of int32, counted from 1.
    unpack_data, unpack_pivots: whether L and U, and P, are wanted; they are empty otherwise.
    """
    made = _unpacked(LU_data, LU_pivots)
    nothing = zeros(0, dtype=LU_data.dtype, device=LU_data.device)
    return PLU(
        made.P if unpack_pivots else nothing, *(made[1:] if unpack_data else (nothing, nothing))
    )


@functor(
    "linalg",
    out=True,
    samples="""
        m(3), np.int32([3, 2, 3]), x(3, 2)
        zm(2, 2), np.int32([[2, 2], [1, 2]]), z(2, 2, 1), adjoint=True
        m(2), np.int32([2, 2]), x(3, 2), left=False
    """,
)
def linalg_lu_solve(
    LU: Square, pivots: Tensor, B: Matrix, *, left: Flag = True, adjoint: Flag = False
) -> Tensor:
    """Return the X of A X = B, for the A that `linalg.lu_factor` took apart.

    pivots: of int32, counted from 1.
    left: False solves X A = B.
    adjoint: solve with Aᴴ.
    ShapeError: when the shapes do not fit.

    >>> A = flow.tensor([[1.0, 2.0], [2.0, 2.0]])
    >>> flow.linalg.lu_solve(*flow.linalg.lu_factor(A), A)
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _lu_solve("linalg.lu_solve", LU, pivots, B, left, adjoint)


def _lu_solve(
    op: str, LU: Tensor, pivots: Tensor, B: Tensor, left: bool, conjugated: bool
) -> Tensor:
    if not left:
        return adjoint(_lu_solve(op, LU, pivots, adjoint(B), True, not conjugated))
    check_same_dtype(op, LU, "B", B)
    check_fit(op, LU, B)
    rows = dispatch1(PERMUTATION, pivots, {"size": LU._data.shape[-1]})
    if not conjugated:
        B = solve_triangular(LU, _rows(B, rows), upper=False, unit=True)
        return solve_triangular(LU, B, upper=True)
    B = solve_triangular(adjoint(LU), B, upper=False)
    B = solve_triangular(adjoint(LU), B, upper=True, unit=True)
    return _rows(B, argsort(rows))


def _rows(x: Tensor, order: Tensor) -> Tensor:
    return take_along_dim(x, order.unsqueeze(-1), -2)


def check_fit(op: str, a: Tensor, b: Tensor, argument: str = "B") -> None:
    """Raise unless a (..., M, N) and b (..., M, K) have as many rows and batches that broadcast."""
    x, y = a._data.shape, b._data.shape
    short = min(len(x), len(y)) - 2
    pairs = zip(x[-2 - short : -2], y[-2 - short : -2], strict=True)
    if x[-2] == y[-2] and all(i == j or 1 in (i, j) for i, j in pairs):
        return
    raise ShapeError(
        f"{op}(): argument '{argument}': expected {x[-2]} rows, and batches that broadcast, to "
        f"go with shape {x}, got shape {y}; transpose or reshape one of them"
    )


@functor("flow Tensor", out=True, samples="x(3, 2), m(3), np.int32([3, 2, 3])")
def lu_solve(input: Matrix, LU_data: Square, LU_pivots: Tensor) -> Tensor:
    """Return `linalg.lu_solve(LU_data, LU_pivots, input)`; the older function.

    LU_pivots: of int32, counted from 1.
    ShapeError: when the shapes do not fit.
    """
    return _lu_solve("lu_solve", LU_data, LU_pivots, input, True, False)


@functor("linalg", out=True, samples="fixed(spd(3)); fixed(zm(2, 2)), hermitian=False")
def linalg_ldl_factor(input: Square, *, hermitian: Flag = False) -> LDLFactor:
    """Return L and the block diagonal D of input = L D Lᵀ in one matrix, and LAPACK's pivots.

    Reads the lower triangle. Has no gradient.

    hermitian: take L D Lᴴ for complex numbers.
    LinAlgError: when D is singular.

    >>> flow.linalg.ldl_factor(flow.tensor([[2.0, 2.0], [2.0, 3.0]])).LD
    tensor([[2., 0.],
            [1., 1.]])
    """
    return LDLFactor(*dispatch(LDL, (input,), {"hermitian": hermitian, "check_errors": True})[:2])


@functor("linalg", out=True, samples="fixed(spd(3)); fixed(zm(2, 2)), hermitian=False")
def linalg_ldl_factor_ex(
    input: Square, *, hermitian: Flag = False, check_errors: Flag = False
) -> LDLFactorEx:
    """Return `ldl_factor` and the number of the first 0 on the diagonal of each D, or 0.

    hermitian: as in `ldl_factor`.
    check_errors: raise where there is one.
    """


@functor("linalg", out=True, samples="fixed(spd(2)), np.int32([1, 2]), x(2, 3)")
def linalg_ldl_solve(LD: Square, pivots: Tensor, B: Matrix, *, hermitian: Flag = False) -> Tensor:
    """Return the X of A X = B, for the A that `linalg.ldl_factor` took apart.

    pivots: of int32, as `ldl_factor` gives them.
    hermitian: as there.

    >>> A = flow.tensor([[2.0, 2.0], [2.0, 3.0]])
    >>> flow.linalg.ldl_solve(*flow.linalg.ldl_factor(A), A)
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_same_dtype("linalg.ldl_solve", LD, "B", B)
    check_fit("linalg.ldl_solve", LD, B)
    return dispatch(op_expr("linalg_ldl_solve"), (LD, pivots, B), {"hermitian": hermitian})


# --- QR -----------------------------------------------------------------------------------------

QRResult = namedtuple("QRResult", "Q R")
Geqrf = namedtuple("Geqrf", "a tau")


@functor(
    "linalg", out=True, samples="x(3, 3); x(2, 3, 2); x(2, 3), 'complete'; fixed(x(3, 2)), mode='r'"
)
def linalg_qr(
    A: Matrix, mode: Annotated[str, choice("reduced", "complete", "r")] = "reduced"
) -> QRResult:
    """Return Q with orthonormal columns and an upper triangular R such that A = Q R.

    mode: "complete" makes Q square, and "r" leaves it empty. Neither has a gradient where Q has
        columns that A does not determine.

    >>> flow.linalg.qr(flow.tensor([[3.0, 1.0], [0.0, 2.0]])).R
    tensor([[3., 1.],
            [0., 2.]])
    """


@functor("flow Tensor", out=True, samples="x(3, 3); x(2, 3, 2); x(2, 3), False")
def qr(input: Matrix, some: Flag = True) -> QRResult:
    """Return `linalg.qr` in mode "reduced", or "complete" with some=False; the older function.

    some: leave out the columns of Q beyond those of the input.
    """
    return QRResult(*dispatch(QR, (input,), {"mode": "reduced" if some else "complete"}))


@functor("flow Tensor", out=True, samples="fixed(x(3, 2))")
def geqrf(input: Matrix) -> Geqrf:
    """Return R above the reflectors that make Q, and their factors tau, as LAPACK does.

    `ormqr` and `linalg.householder_product` take them. Has no gradient.

    >>> flow.geqrf(flow.ones(3, 2)).tau.shape
    (2,)
    """


def _check_tau(op: str, input: Tensor, tau: Tensor) -> None:
    check_same_dtype(op, input, "tau", tau)
    shape, factors = input._data.shape, tau._data.shape
    fits = len(factors) == len(shape) - 1 and factors[:-1] == shape[:-2]
    if fits and factors[-1] <= shape[-1] <= shape[-2]:
        return
    raise ShapeError(
        f"{op}(): argument 'tau': expected at most {shape[-1]} factors for each matrix of shape "
        f"{shape}, which has no more columns than rows, got shape {factors}; pass what geqrf "
        "returns"
    )


def _reflected(input: Tensor, tau: Tensor, other: Tensor, turned: bool = False) -> Tensor:
    """Return Q other, or Qᴴ other, for the Q = H₁ H₂ … of reflectors Hᵢ = 1 − τᵢ vᵢ vᵢᴴ.

    That is 1 − V T Vᴴ with T⁻¹ = diag(1/τ) + the upper triangle of Vᴴ V: T. Joffrain et al.,
    "Accumulating Householder transformations, revisited", 2006.
    """
    m, k = input._data.shape[-2], tau._data.shape[-1]
    v = tril(input[..., :k], -1) + _identity(input, m, k)
    vh = adjoint(v)
    scaled = tau.unsqueeze(-1) * triu(vh @ v, 1)
    if turned:
        inner = solve_triangular(adjoint(scaled), vh @ other, upper=False, unit=True)
        return other - v @ (conj(tau).unsqueeze(-1) * inner)
    return other - v @ solve_triangular(scaled, tau.unsqueeze(-1) * (vh @ other), True, True)


@functor("linalg flow.orgqr Tensor.orgqr", out=True, samples="x(3, 2), x(2); z(2, 3, 3), z(2, 2)")
def linalg_householder_product(input: Matrix, tau: Tensor) -> Tensor:
    """Return the first columns of the product of reflectors 1 - τ v vᴴ, as `geqrf` gives them.

    input: the v stand below its diagonal, which counts as 1; with no more columns than rows.
    tau: shape (*, k), with k at most the number of columns.
    ShapeError: when the shapes do not fit.

    >>> flow.linalg.householder_product(flow.zeros(2, 2), flow.tensor([2.0, 0.0]))
    tensor([[-1.,  0.],
            [ 0.,  1.]])
    """
    _check_tau("linalg.householder_product", input, tau)
    return _reflected(input, tau, _identity(input, *input._data.shape[-2:]))


@functor(
    "flow Tensor",
    out=True,
    samples="""
        x(3, 2), x(2), x(3, 2)
        z(2, 3, 2), z(2, 2), z(2, 3, 1), transpose=True
        x(3, 2), x(2), x(2, 3), left=False
    """,
)
def ormqr(
    input: Matrix, tau: Tensor, other: Matrix, left: Flag = True, transpose: Flag = False
) -> Tensor:
    """Return Q other, for the square Q of the reflectors that `geqrf` gives.

    input: the reflectors stand below its diagonal.
    tau: their factors, of shape (*, k).
    left: False returns other Q.
    transpose: multiply by Qᴴ.
    ShapeError: when the shapes do not fit.

    >>> flow.ormqr(flow.zeros(2, 1), flow.tensor([2.0]), flow.ones(2, 1))
    tensor([[-1.],
            [ 1.]])
    """
    check_same_dtype("ormqr", input, "tau", tau)
    check_same_dtype("ormqr", input, "other", other)
    if not left:
        other, transpose = adjoint(other), not transpose
    check_fit("ormqr", input, other, "other")
    y = _reflected(input, tau, other, transpose)
    return y if left else adjoint(y)


# --- Singular values ----------------------------------------------------------------------------

SVDResult = namedtuple("SVDResult", "U S Vh")
OldSVD = namedtuple("OldSVD", "U S V")


@functor("linalg", out=True, samples="x(3, 3); x(2, 3, 2), False; x(2, 3), full_matrices=False")
def linalg_svd(A: Matrix, full_matrices: Flag = True, *, driver: Driver = None) -> SVDResult:
    """Return U, the falling singular values S, and Vᴴ, such that A = U diag(S) Vᴴ.

    full_matrices: make U and V square. What completes them is arbitrary, and so are signs and
        phases of all vectors: a gradient exists of what does not depend on them, and finite where
        singular values differ.

    >>> flow.linalg.svd(flow.tensor([[3.0, 0.0], [0.0, -4.0]])).S
    tensor([4., 3.])
    """
    return SVDResult(*dispatch(SVD, (A,), {"full_matrices": full_matrices}))


@functor("linalg", out=True, samples="x(3, 3); x(2, 3, 2)")
def linalg_svdvals(A: Matrix, *, driver: Driver = None) -> Tensor:
    """Return the singular values, falling."""
    return dispatch1(SVDVALS, A)


@functor("flow Tensor", out=True, samples="x(3, 3); x(2, 3, 2); x(3, 2), compute_uv=False")
def svd(input: Matrix, some: Flag = True, compute_uv: Flag = True) -> OldSVD:
    """Return U, S and V (not Vᴴ) of `linalg.svd`; the older function.

    some: leave out what makes U and V square.
    compute_uv: with False, U and V are square and of zeros.
    """
    if compute_uv:
        u, s, vh = dispatch(SVD, (input,), {"full_matrices": not some})
        return OldSVD(u, s, adjoint(vh))
    *batch, m, n = input._data.shape
    u, v = (zeros(*batch, k, k, dtype=input.dtype, device=input.device) for k in (m, n))
    return OldSVD(u, dispatch1(SVDVALS, input), v)


@functor("flow", samples="x(4, 3), 2; x(2, 3, 4), 2, niter=1, M=x(3, 4)")
def svd_lowrank(
    A: Matrix, q: Count | None = 6, niter: Count = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S and V of the q largest singular values, roughly, from random products.

    q: how many, a little more than the rank that matters.
    niter: how often the products are refined.
    M: what to subtract from A first.

    Halko, Martinsson and Tropp, "Finding structure with randomness", 2009, algorithm 5.1.

    >>> U, S, V = flow.svd_lowrank(flow.ones(4, 3), q=2)
    >>> U.shape, S[0], V.shape
    ((4, 2), tensor(3.4641), (3, 2))
    """
    if M is not None:
        A = A - M
    m, n = A._data.shape[-2:]
    if m < n:
        A = adjoint(A)
    ah = adjoint(A)
    size = min(m, n)
    draw = randn(size, 6 if q is None else q, dtype=A.real.dtype, device=A.device).to(A.dtype)
    basis = linalg_qr(A @ draw).Q
    for _ in range(niter):
        basis = linalg_qr(A @ linalg_qr(ah @ basis).Q).Q
    u, s, vh = linalg_svd(adjoint(basis) @ A, full_matrices=False)
    u, v = basis @ u, adjoint(vh)
    return (v, s, u) if m < n else (u, s, v)


@functor("flow", samples="x(4, 3), 2; x(2, 3, 4), center=False")
def pca_lowrank(
    A: Matrix, q: Count | None = None, center: Flag = True, niter: Count = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `svd_lowrank` of the columns of A without their means: its principal components.

    q: how many, at most the smaller size of A; by default at most 6.
    center: subtract the means.
    niter: as in `svd_lowrank`.
    ArgumentError: when q is above the smaller size of A.

    >>> U, S, V = flow.pca_lowrank(flow.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), q=1)
    >>> S, V.abs()
    (tensor([4.]), tensor([[0.7071],
            [0.7071]]))
    """
    size = min(A._data.shape[-2:])
    q = min(6, size) if q is None else check_int("pca_lowrank", "q", q)
    if q > size:
        raise ArgumentError(
            f"pca_lowrank(): argument 'q': expected at most {size}, the smaller size of A, got "
            f"{q}; ask for fewer components"
        )
    return svd_lowrank(A - mean(A, -2, True) if center else A, q, niter)


# --- Eigenvalues --------------------------------------------------------------------------------

Eigen = namedtuple("Eigen", "eigenvalues eigenvectors")


@functor("linalg", out=True, samples="spd(3); spd(2, 2), 'U'")
def linalg_eigh(input: Square, UPLO: Triangle = "L") -> Eigen:
    """Return eigenvalues, rising, of symmetric or Hermitian matrices, and eigenvectors as columns.

    Signs and phases of the vectors are arbitrary: a gradient exists of what does not depend on
    them, and is finite where eigenvalues differ.

    >>> flow.linalg.eigh(flow.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """


@functor("linalg", out=True, samples="spd(3); spd(2, 2), 'U'")
def linalg_eigvalsh(input: Square, UPLO: Triangle = "L") -> Tensor:
    """Return the eigenvalues of symmetric or Hermitian matrices, rising."""


@functor("linalg", out=True, samples="m(3); zm(2, 2)")
def linalg_eig(input: Square) -> Eigen:
    """Return the complex eigenvalues, in no order, and eigenvectors of length 1 as columns.

    Their phases are arbitrary: a gradient exists of what does not depend on them, and is finite
    where eigenvalues differ.

    >>> flow.linalg.eig(flow.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([2.+0.j, 1.+0.j])
    """


@functor("linalg", out=True, samples="m(3); zm(2, 2)")
def linalg_eigvals(input: Square) -> Tensor:
    """Return the complex eigenvalues, in no order.

    >>> flow.linalg.eigvals(flow.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j])
    """
