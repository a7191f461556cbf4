"""Signatures, written by `python -m tests.stubs --write` from the declarations; not by hand."""

from collections.abc import Sequence
from oneflow_lite.functors.decompositions import CholeskyEx, Eigen, LDLFactor, LDLFactorEx, LUFactor, LUFactorEx, PLU, QRResult, SVDResult
from oneflow_lite.functors.linalg import InvEx, Lstsq, SLogDet, SolveEx
from oneflow_lite.tensors.tensor import Tensor
from typing import Any

def cholesky(input: Tensor, upper: bool = ..., *, out: Any = ...) -> Tensor: ...
def cholesky_ex(
    input: Tensor,
    *,
    upper: bool = ...,
    check_errors: bool = ...,
    out: Any = ...,
) -> CholeskyEx: ...
def cond(input: Tensor, p: Any = ..., *, out: Any = ...) -> Tensor: ...
def cross(input: Tensor, other: Tensor, *, dim: int = ..., out: Any = ...) -> Tensor: ...
def det(input: Tensor, *, out: Any = ...) -> Tensor: ...
def diagonal(A: Tensor, *, offset: int = ..., dim1: int = ..., dim2: int = ...) -> Tensor: ...
def eig(input: Tensor, *, out: Any = ...) -> Eigen: ...
def eigh(input: Tensor, UPLO: str = ..., *, out: Any = ...) -> Eigen: ...
def eigvals(input: Tensor, *, out: Any = ...) -> Tensor: ...
def eigvalsh(input: Tensor, UPLO: str = ..., *, out: Any = ...) -> Tensor: ...
def householder_product(input: Tensor, tau: Tensor, *, out: Any = ...) -> Tensor: ...
def inv(A: Tensor, *, out: Any = ...) -> Tensor: ...
def inv_ex(A: Tensor, *, check_errors: bool = ..., out: Any = ...) -> InvEx: ...
def ldl_factor(input: Tensor, *, hermitian: bool = ..., out: Any = ...) -> LDLFactor: ...
def ldl_factor_ex(
    input: Tensor,
    *,
    hermitian: bool = ...,
    check_errors: bool = ...,
    out: Any = ...,
) -> LDLFactorEx: ...
def ldl_solve(
    LD: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    hermitian: bool = ...,
    out: Any = ...,
) -> Tensor: ...
def lstsq(
    input: Tensor,
    b: Tensor,
    rcond: float | None = ...,
    *,
    driver: str | None | None = ...,
) -> Lstsq: ...
def lu(A: Tensor, *, pivot: bool = ..., out: Any = ...) -> PLU: ...
def lu_factor(A: Tensor, *, pivot: bool = ..., out: Any = ...) -> LUFactor: ...
def lu_factor_ex(
    A: Tensor,
    *,
    pivot: bool = ...,
    check_errors: bool = ...,
    out: Any = ...,
) -> LUFactorEx: ...
def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = ...,
    adjoint: bool = ...,
    out: Any = ...,
) -> Tensor: ...
def matmul(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def matrix_exp(input: Tensor) -> Tensor: ...
def matrix_norm(
    input: Tensor,
    ord: Any = ...,
    dim: Any = ...,
    keepdim: bool = ...,
    *,
    dtype: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def matrix_power(input: Tensor, n: int, *, out: Any = ...) -> Tensor: ...
def matrix_rank(
    input: Tensor,
    tol: Any = ...,
    hermitian: bool = ...,
    *,
    atol: Any = ...,
    rtol: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def multi_dot(tensors: Sequence[Tensor], *, out: Any = ...) -> Tensor: ...
def norm(
    input: Tensor,
    ord: Any = ...,
    dim: Any = ...,
    keepdim: bool = ...,
    *,
    dtype: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def pinv(
    input: Tensor,
    rcond: Any = ...,
    hermitian: bool = ...,
    *,
    atol: Any = ...,
    rtol: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def qr(A: Tensor, mode: str = ..., *, out: Any = ...) -> QRResult: ...
def slogdet(input: Tensor, *, out: Any = ...) -> SLogDet: ...
def solve(A: Tensor, B: Tensor, *, left: bool = ..., out: Any = ...) -> Tensor: ...
def solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = ...,
    check_errors: bool = ...,
    out: Any = ...,
) -> SolveEx: ...
def solve_triangular(
    input: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = ...,
    unitriangular: bool = ...,
    out: Any = ...,
) -> Tensor: ...
def svd(
    A: Tensor,
    full_matrices: bool = ...,
    *,
    driver: str | None = ...,
    out: Any = ...,
) -> SVDResult: ...
def svdvals(A: Tensor, *, driver: str | None = ..., out: Any = ...) -> Tensor: ...
def tensorinv(input: Tensor, ind: int = ..., *, out: Any = ...) -> Tensor: ...
def tensorsolve(input: Tensor, other: Tensor, dims: Any = ..., *, out: Any = ...) -> Tensor: ...
def vander(x: Tensor, *, N: int | None = ...) -> Tensor: ...
def vecdot(x: Tensor, y: Tensor, *, dim: int = ..., out: Any = ...) -> Tensor: ...
def vector_norm(
    input: Tensor,
    ord: float = ...,
    dim: Any = ...,
    keepdim: bool = ...,
    *,
    dtype: Any = ...,
    out: Any = ...,
) -> Tensor: ...
