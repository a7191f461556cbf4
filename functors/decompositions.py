"""Factorizations of matrices: functions that users call.

Some matrices have several: singular vectors and eigenvectors may be multiplied by -1 or by e^(iφ).
Gradients are right for functions of the factors that do not depend on this choice.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, NamedTuple

import numpy as np

from oneflow_lite.arrays.dtype import finfo
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError, arg_error
from oneflow_lite.functors.declaring.checks import check_matrix, require_integer
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    Count,
    Domain,
    Flag,
    Int,
    Matrix,
    Number,
    Positive,
    Square,
    choice,
    flag,
    tensor,
)
from oneflow_lite.functors.matmul import Fits, check_same_dtype
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

SOLVE_TRIANGULAR = op_expr("linalg_solve_triangular")
LDL_SOLVE = op_expr("linalg_ldl_solve")
LOBPCG = op_expr("lobpcg")

CholeskyEx = NamedTuple("CholeskyEx", [("L", Tensor), ("info", Tensor)])
LUFactor = NamedTuple("LUFactor", [("LU", Tensor), ("pivots", Tensor)])
LUFactorEx = NamedTuple("LUFactorEx", [("LU", Tensor), ("pivots", Tensor), ("info", Tensor)])
PLU = NamedTuple("PLU", [("P", Tensor), ("L", Tensor), ("U", Tensor)])
LDLFactor = NamedTuple("LDLFactor", [("LD", Tensor), ("pivots", Tensor)])
LDLFactorEx = NamedTuple("LDLFactorEx", [("LD", Tensor), ("pivots", Tensor), ("info", Tensor)])
QRResult = NamedTuple("QRResult", [("Q", Tensor), ("R", Tensor)])
Geqrf = NamedTuple("Geqrf", [("a", Tensor), ("tau", Tensor)])
SVDResult = NamedTuple("SVDResult", [("U", Tensor), ("S", Tensor), ("Vh", Tensor)])
OldSVD = NamedTuple("OldSVD", [("U", Tensor), ("S", Tensor), ("V", Tensor)])
Eigen = NamedTuple("Eigen", [("eigenvalues", Tensor), ("eigenvectors", Tensor)])


def _only(value: str, quick: str, hint: str, early: bool = False) -> Domain:
    """Return the domain of an argument that can have but one value."""
    line = f"raise arg_error(NAME, '{{x}}', '{value}', repr({{x}}), '{hint}', ArgumentError)"
    return Domain(f"Has to be {value}.", line, quick, uses=(arg_error, ArgumentError), early=early)


Rhs = Annotated[
    Tensor,
    Domain(
        "Of shape (*, n, k), in the dtype of the other matrices.",
        "check_matrix(NAME, {x}, '{x}')",
        uses=(check_matrix,),
        raises={"ShapeError": "When the shapes do not fit.", "DTypeError": "When dtypes differ."},
    ),
]
Pivot = Annotated[bool, _only("True", "{x}", "LAPACK exchanges rows")]
_PIVOTS = "Of int32, as LAPACK gives them, counted from 1."
Pivots = Annotated[Tensor, tensor(require_integer, "iu", _PIVOTS)]
_DRIVER = _only("None", "{x} is None", "NumPy and CuPy choose the algorithm themselves", early=True)
Driver = Annotated[str | None, _DRIVER]
Mode = Annotated[str, choice("reduced", "complete", "r")]
_TRIANGLE = choice("L", "U", says="The triangle that is read, lower or upper; or l and u.")
_UPPER_CASE = "{x} = {{'l': 'L', 'u': 'U'}}.get({x}) or "
Triangle = Annotated[
    str, _TRIANGLE._replace(check=_TRIANGLE.check.replace("{x} = ", _UPPER_CASE, 1))
]
CheckErrors = Annotated[bool, flag("Raise where the number is not 0.")]
Left = Annotated[bool, flag("False solves X A = B.")]
Hermitian = Annotated[bool, flag("Take L D Lᴴ for complex numbers.")]

_linalg = functools.partial(functor, "linalg", out="same")
_method = functools.partial(functor, "flow Tensor", out="same")


def check_fit(op: str, a: Tensor, b: Tensor, argument: str = "B") -> None:
    """Raise unless a (..., M, N) and b (..., M, K) fit: rows, dtypes, batches that broadcast."""
    check_same_dtype(op, a, argument, b)
    x, y = a._data.shape, b._data.shape
    short = min(len(x), len(y)) - 2
    pairs = zip(x[-2 - short : -2], y[-2 - short : -2], strict=True)
    if x[-2] == y[-2] and all(i == j or 1 in (i, j) for i, j in pairs):
        return
    expected = f"{x[-2]} rows, and batches that broadcast, to go with shape {x}"
    raise arg_error(op, argument, expected, b, "transpose or reshape one of them")


def solve_triangular(
    a: Tensor, b: Tensor, upper: bool, unit: bool = False, left: bool = True
) -> Tensor:
    """Return a⁻¹ b for a triangular a; nothing is checked."""
    return dispatch(SOLVE_TRIANGULAR, (a, b), {"upper": upper, "left": left, "unitriangular": unit})


def _identity(like: Tensor, rows: int, columns: int) -> Tensor:
    return F.eye(rows, columns, dtype=like.dtype, device=like.device)


@functor("flow Tensor linalg", out=True, samples="spd(3); spd(2, 2), upper=True")
def cholesky(input: Square, upper: Flag = False) -> Tensor:
    """Return the lower triangular L with positive diagonal such that input = L Lᴴ.

    upper: return Lᴴ, read from the upper triangle of the input, instead of the lower one.
    LinAlgError: when a matrix is not positive definite.

    >>> flow.linalg.cholesky(flow.tensor([[4.0, 2.0], [2.0, 2.0]]))[1]
    tensor([1., 1.])
    """
    return linalg_cholesky_ex(input, upper=upper, check_errors=True).L


@_linalg(samples="spd(3); spd(2, 2), upper=True")
def linalg_cholesky_ex(
    input: Square, *, upper: Flag = False, check_errors: CheckErrors = False
) -> CholeskyEx:
    """Return `cholesky` and 0, or the order of the first minor that is not positive.

    Up to that minor the result is right.
    """


@_linalg(samples="x(3, 3); x(2, 2, 4); x(3, 2)")
def linalg_lu_factor(A: Matrix, *, pivot: Pivot = True) -> LUFactor:
    """Return L and U in one matrix, and for each row the number of its partner, from 1 on.

    Rows and partners were exchanged, in this order.

    LinAlgError: when U has a 0 on its diagonal.
    """
    return LUFactor(*linalg_lu_factor_ex(A, check_errors=True)[:2])


@_linalg(samples="x(3, 3); x(2, 2, 4); x(3, 2)")
def linalg_lu_factor_ex(
    A: Matrix, *, pivot: Pivot = True, check_errors: CheckErrors = False
) -> LUFactorEx:
    """Return `lu_factor` and the number of the first 0 on the diagonal of each U, or 0."""


@_linalg(samples="x(3, 3); x(2, 2, 4); x(3, 2)")
def linalg_lu(A: Matrix, *, pivot: Pivot = True) -> PLU:
    """Return a permutation matrix P, L with unit diagonal, and U, such that A = P L U."""
    return lu_unpack(*linalg_lu_factor_ex(A)[:2])


@_method(out="any", samples="x(3, 3); x(2, 2, 4), get_infos=True")
def lu(A: Matrix, pivot: Pivot = True, get_infos: Flag = False) -> Any:
    """Return `linalg.lu_factor` unchecked, with get_infos `lu_factor_ex`; the older function."""
    return tuple(linalg_lu_factor_ex(A)[: 3 if get_infos else 2])


@functor("flow", out="same", samples="x(3, 3), np.int32([2, 3, 3]); x(3, 2), np.int32([3, 2])")
def lu_unpack(
    LU_data: Matrix, LU_pivots: Pivots, unpack_data: Flag = True, unpack_pivots: Flag = True
) -> PLU:
    """Return P, L and U of what `linalg.lu_factor` gives; empty where unpack_… is False."""
    m, n = LU_data._data.shape[-2:]
    k = min(m, n)
    P = L = U = F.zeros(0, dtype=LU_data.dtype, device=LU_data.device)
    if unpack_pivots:
        rows = F.lu_permutation(LU_pivots, size=m)
        places = F.arange(m, device=LU_data.device).unsqueeze(-1) == rows.unsqueeze(-2)
        P = places.to(LU_data.dtype)
    if unpack_data:
        L = LU_data[..., :k].tril(-1) + _identity(LU_data, m, k)
        U = LU_data[..., :k, :].triu()
    return PLU(P, L, U)


@_linalg(
    samples="""m(3), np.int32([3, 2, 3]), x(3, 2); m(2), np.int32([2, 2]), x(3, 2), left=False
        zm(2, 2), np.int32([[2, 2], [1, 2]]), z(2, 2, 1), adjoint=True"""
)
def linalg_lu_solve(
    LU: Square, pivots: Pivots, B: Rhs, *, left: Left = True, adjoint: Flag = False
) -> Tensor:
    """Return the X of A X = B, for the A that `linalg.lu_factor` took apart.

    adjoint: solve with Aᴴ.

    >>> A = flow.tensor([[1.0, 2.0], [2.0, 2.0]])
    >>> flow.linalg.lu_solve(*flow.linalg.lu_factor(A), A)[0]
    tensor([1., 0.])
    """
    return _lu_solve("linalg.lu_solve", LU, pivots, B, left, adjoint)


@_method(samples="x(3, 2), m(3), np.int32([3, 2, 3])")
def lu_solve(input: Rhs, LU_data: Square, LU_pivots: Pivots) -> Tensor:
    """Return `linalg.lu_solve(LU_data, LU_pivots, input)`; the older function."""
    return _lu_solve("lu_solve", LU_data, LU_pivots, input, True, False)


def _lu_solve(op: str, LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    if not left:  # X A = B is Aᴴ Xᴴ = Bᴴ
        return _lu_solve(op, LU, pivots, B.adjoint(), True, not adjoint).adjoint()
    check_fit(op, LU, B)
    _check_pivots(op, LU, pivots)
    rows = F.lu_permutation(pivots, size=LU._data.shape[-1])
    if not adjoint:
        B = solve_triangular(LU, _exchanged(B, rows), upper=False, unit=True)
        return solve_triangular(LU, B, upper=True)
    B = solve_triangular(LU.adjoint(), B, upper=False)
    B = solve_triangular(LU.adjoint(), B, upper=True, unit=True)
    return _exchanged(B, rows.argsort(-1))


def _check_pivots(op: str, factors: Tensor, pivots: Tensor) -> None:
    if pivots._data.shape != factors._data.shape[:-1]:
        expected = f"shape {factors._data.shape[:-1]}, a number for each row"
        raise arg_error(op, "pivots", expected, pivots, "pass what came with the factors")


def _exchanged(x: Tensor, rows: Tensor) -> Tensor:
    """Return matrices with their rows in another order; the batches broadcast."""
    batch = np.broadcast_shapes(x._data.shape[:-2], rows._data.shape[:-1])
    size = (*batch, *x._data.shape[-2:])
    return x.expand(size).gather(-2, rows.unsqueeze(-1).expand(size))


@_linalg(samples="fixed(spd(3)); fixed(zm(2, 2)), hermitian=False")
def linalg_ldl_factor(input: Square, *, hermitian: Hermitian = False) -> LDLFactor:
    """Return L and the block diagonal D of input = L D Lᵀ in one matrix, and LAPACK's pivots.

    input: its lower triangle alone is read. There is no gradient.
    LinAlgError: when D is singular.
    """
    return LDLFactor(*linalg_ldl_factor_ex(input, hermitian=hermitian, check_errors=True)[:2])


@_linalg(samples="fixed(spd(3)); fixed(zm(2, 2)), hermitian=False")
def linalg_ldl_factor_ex(
    input: Square, *, hermitian: Hermitian = False, check_errors: CheckErrors = False
) -> LDLFactorEx:
    """Return `ldl_factor` and the number of the first 0 on the diagonal of each D, or 0."""


@_linalg(samples="fixed(spd(2)), np.int32([1, 2]), x(2, 3)")
def linalg_ldl_solve(LD: Square, pivots: Pivots, B: Rhs, *, hermitian: Hermitian = False) -> Tensor:
    """Return the X of A X = B, for the A that `linalg.ldl_factor` took apart."""
    _check_pivots("linalg.ldl_solve", LD, pivots)
    check_fit("linalg.ldl_solve", LD, B)
    return dispatch(LDL_SOLVE, (LD, pivots, B), {"hermitian": hermitian})


@_linalg(samples="x(3, 3); x(2, 3, 2); x(2, 3), 'complete'; fixed(x(3, 2)), mode='r'")
def linalg_qr(A: Matrix, mode: Mode = "reduced") -> QRResult:
    """Return Q with orthonormal columns and an upper triangular R such that A = Q R.

    mode: "complete" makes Q square; it has no gradient for more rows than columns, as A does not
        determine the last columns. "r" leaves Q empty, and has no gradient.

    >>> flow.linalg.qr(flow.tensor([[3.0, 1.0], [0.0, 2.0]])).R
    tensor([[3., 1.],
            [0., 2.]])
    """


@_method(samples="x(3, 3); x(2, 3, 2); x(2, 3), False")
def qr(input: Matrix, some: Flag = True) -> QRResult:
    """Return `linalg.qr` in mode "reduced", or "complete" with some=False; the older function."""
    return linalg_qr(input, "reduced" if some else "complete")


@_method(out=True, samples="fixed(x(3, 2))")
def geqrf(input: Matrix) -> Geqrf:
    """Return R above the reflectors of Q, as `ormqr` takes them, and their factors; no gradient."""


def _reflected(input: Tensor, tau: Tensor, other: Tensor, turned: bool = False) -> Tensor:
    """Return Q y, or Qᴴ y, for y = `other` and the reflectors Hᵢ = 1 − τᵢ vᵢ vᵢᴴ of Q = H₁ H₂ …

    Q is 1 − V T Vᴴ with T⁻¹ = diag(1/τ) + the upper triangle of Vᴴ V: T. Joffrain et al.,
    "Accumulating Householder transformations, revisited", 2006.
    """
    m, k = input._data.shape[-2], tau._data.shape[-1]
    v = input[..., :k].tril(-1) + _identity(input, m, k)
    vh = v.adjoint()
    scaled = tau.unsqueeze(-1) * (vh @ v).triu(1)
    if turned:
        inner = solve_triangular(scaled.adjoint(), vh @ other, upper=False, unit=True)
        return other - v @ (tau.conj().unsqueeze(-1) * inner)
    return other - v @ solve_triangular(scaled, tau.unsqueeze(-1) * (vh @ other), True, True)


@functor(
    "linalg flow.orgqr Tensor.orgqr",
    out=True,
    spelled="input2=tau",
    samples="x(3, 2), x(2); z(2, 3, 3), z(2, 2)",
)
def linalg_householder_product(input: Matrix, tau: Fits) -> Tensor:
    """Return the first columns of the product of reflectors 1 - τ v vᴴ, as `geqrf` gives them.

    input: the v stand below its diagonal, which counts as 1; with no more columns than rows.
    tau: shape (*, k), with k at most the number of columns.

    >>> flow.linalg.householder_product(flow.zeros(2, 1), flow.tensor([2.0]))
    tensor([[-1.],
            [ 0.]])
    """
    (*batch, rows, columns), factors = input._data.shape, tau._data.shape
    if not factors or factors[:-1] != (*batch,) or not factors[-1] <= columns <= rows:
        which = f"matrix of shape {input.shape}, which has no more columns than rows"
        expected = f"at most {columns} factors for each {which}"
        raise arg_error(
            "linalg.householder_product", "tau", expected, tau, "pass what geqrf returns"
        )
    return _reflected(input, tau, _identity(input, rows, columns))


@_method(
    spelled="input2=tau input3=other",
    samples="""x(3, 2), x(2), x(3, 2); x(3, 2), x(2), x(2, 3), left=False
        z(2, 3, 2), z(2, 2), z(2, 3, 1), transpose=True""",
)
def ormqr(
    input: Matrix, tau: Fits, other: Rhs, left: Flag = True, transpose: Flag = False
) -> Tensor:
    """Return Q other, for the square Q of the reflectors that `geqrf` gives.

    left: False returns other Q.
    transpose: multiply by Qᴴ.
    """
    if not left:
        other, transpose = other.adjoint(), not transpose
    check_fit("ormqr", input, other, "other")
    y = _reflected(input, tau, other, transpose)
    return y if left else y.adjoint()


@_linalg(samples="x(3, 3); x(2, 3, 2), False; x(2, 3), full_matrices=False")
def linalg_svd(A: Matrix, full_matrices: Flag = True, *, driver: Driver = None) -> SVDResult:
    """Return U, the falling singular values S, and Vᴴ, such that A = U diag(S) Vᴴ.

    A gradient exists for functions that do not depend on signs and phases. It is finite where
    values differ, and where a function uses neither S nor the vectors of equal values.

    full_matrices: make U and V square; the added columns are arbitrary.

    >>> flow.linalg.svd(flow.tensor([[3.0, 0.0], [0.0, -4.0]])).S
    tensor([4., 3.])
    """


@_linalg(samples="x(3, 3); x(2, 3, 2)")
def linalg_svdvals(A: Matrix, *, driver: Driver = None) -> Tensor:
    """Return the singular values, falling."""


@_method(samples="x(3, 3); x(2, 3, 2); x(3, 2), compute_uv=False")
def svd(input: Matrix, some: Flag = True, compute_uv: Flag = True) -> OldSVD:
    """Return U, S and V (not Vᴴ) of `linalg.svd`; the older function.

    some: leave out the columns that make U and V square.
    compute_uv: False makes them of zeros, and square.
    """
    if compute_uv:
        u, s, vh = linalg_svd(input, not some)
        return OldSVD(u, s, vh.adjoint())
    *batch, m, n = input._data.shape
    u, v = (F.zeros(*batch, k, k, dtype=input.dtype, device=input.device) for k in (m, n))
    return OldSVD(u, linalg_svdvals(input), v)


@functor("flow", samples="x(4, 3), 2; x(2, 3, 4), 2, niter=1, M=x(3, 4)")
def svd_lowrank(
    A: Matrix, q: Count | None = 6, niter: Count = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S and V of the q largest singular values, roughly, from random products.

    Halko, Martinsson and Tropp, "Finding structure with randomness", 2009, algorithm 5.1.

    q: how many, a little more than the rank that matters.
    niter: how often the products are refined.
    M: what to subtract from A first.

    >>> U, S, V = flow.svd_lowrank(flow.ones(4, 3), q=2)
    >>> U.shape, S[0], V.shape
    ((4, 2), tensor(3.4641), (3, 2))
    """
    if M is not None:
        A = A - M
    m, n = A._data.shape[-2:]
    if m < n:
        A = A.adjoint()
    ah, count = A.adjoint(), 6 if q is None else q
    draw = F.randn(min(m, n), count, dtype=A.real.dtype, device=A.device).to(A.dtype)
    basis = linalg_qr(A @ draw).Q
    for _ in range(niter):  # QR after each product keeps small singular values from drowning
        basis = linalg_qr(A @ linalg_qr(ah @ basis).Q).Q
    u, s, vh = linalg_svd(basis.adjoint() @ A, full_matrices=False)
    u, v = basis @ u, vh.adjoint()
    return (v, s, u) if m < n else (u, s, v)


@functor("flow", samples="x(4, 3), 2; x(2, 3, 4), center=False")
def pca_lowrank(
    A: Matrix, q: Count | None = None, center: Flag = True, niter: Count = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `svd_lowrank` of the columns of A without their means: its principal components.

    q: how many, at most the smaller size of A; by default at most 6.
    center: subtract the means.
    ArgumentError: when q is above the smaller size of A.
    """
    size = min(A._data.shape[-2:])
    q = min(6, size) if q is None else q
    if q > size:
        expected = f"at most {size}, the smaller size of A"
        raise arg_error("pca_lowrank", "q", expected, q, "ask for fewer components", ArgumentError)
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)


@functor(
    "flow",
    samples="""spd(4), 1, None, fixed(x(4, 1)), niter=50, tol=1e-12
        spd(2, 4), X=fixed(x(2, 4, 1)), largest=False, niter=50, tol=1e-12""",
)
def lobpcg(
    A: Square,
    k: Positive | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: Positive | None = None,
    iK: Tensor | None = None,
    niter: Int | None = None,
    tol: Number | None = None,
    largest: Flag | None = None,
    method: Annotated[str | None, choice("basic", "ortho")] | None = None,
    tracker: None = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """Return k eigenvalues of a real symmetric matrix, the best first, and eigenvectors as columns.

    Knyazev, "Toward the optimal preconditioned eigensolver", 2001, in one version: `method` and
    the `ortho_…` parameters have no effect. Gradients are those of the exact pairs, symmetric, and
    exist where an eigenvalue is simple.

    k: by default the number of columns of X, or 1.
    B: solve A x = λ B x, for a positive definite B.
    X, n: where to begin, of shape (*, m, n); by default n = k random columns.
    iK: a preconditioner, near to the inverse of A.
    niter: the most steps; 1000 by default, -1 for any number.
    tol: the relative size of residuals at the end; the root of the rounding error by default.
    largest: True, the default, or False for the smallest eigenvalues.
    ArgumentError: when A has less than 3 n rows, or there is a `tracker`.
    DTypeError, ShapeError: when a matrix does not fit A.

    >>> flow.lobpcg(flow.tensor([1.0, 4.0, 2.0, 3.0]).diag(), X=flow.ones(4, 1))[0]
    tensor([4.])
    """
    op, m = "lobpcg", A._data.shape[-1]
    if A.is_complex():
        hint = "use linalg.eigh"
        raise arg_error(op, "A", "a real floating dtype", A.dtype, hint, DTypeError)
    if tracker is not None:
        raise arg_error(op, "tracker", "None", tracker, "call it with niter=1", ArgumentError)
    for name, each in (("B", B), ("X", X), ("iK", iK)):
        if each is not None:
            check_fit(op, A, check_matrix(op, each, name), name)
    n = (n or k or 1) if X is None else X._data.shape[-1]
    k = (n if X is not None else 1) if k is None else k
    if m < 3 * n or k > n:
        expected = f"at least {k} columns to begin with, and 3 times as many rows of A"
        raise arg_error(op, "n", expected, f"{n} for {m} rows", "use linalg.eigh", ArgumentError)
    if X is None:
        X = F.randn(*A._data.shape[:-1], n, dtype=A.dtype, device=A.device)
    attrs = {"k": k, "niter": 1000 if niter is None else niter, "largest": largest is not False}
    attrs["tol"] = float(finfo(A.dtype).eps) ** 0.5 if tol is None else tol
    given = (A, B, X.detach(), None if iK is None else iK.detach())
    values, vectors = dispatch(LOBPCG, given, attrs)
    return values, vectors


@_linalg(samples="spd(3); spd(2, 2), 'U'")
def linalg_eigh(input: Square, UPLO: Triangle = "L") -> Eigen:
    """Return eigenvalues, rising, of symmetric or Hermitian matrices, and eigenvectors as columns.

    A gradient exists for functions that do not depend on signs and phases. It is finite where
    values differ, and where a function uses neither the values nor the vectors of equal values.
    """


@_linalg(samples="spd(3); spd(2, 2), 'U'")
def linalg_eigvalsh(input: Square, UPLO: Triangle = "L") -> Tensor:
    """Return the eigenvalues of symmetric or Hermitian matrices, rising."""


@_linalg(out=True, samples="m(3); zm(2, 2)")
def linalg_eig(input: Square) -> Eigen:
    """Return the complex eigenvalues, in no order, and eigenvectors of length 1 as columns.

    A gradient exists for functions that do not depend on phases. It is finite where values differ,
    and where a function uses neither the values nor the vectors of equal values.

    >>> flow.linalg.eig(flow.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """


@_linalg(out=True, samples="m(3); zm(2, 2)")
def linalg_eigvals(input: Square) -> Tensor:
    """Return the complex eigenvalues, in no order."""
