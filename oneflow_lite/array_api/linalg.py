"""The linear algebra extension of the array API standard, and NumPy's `np.linalg` beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.array_api.adapter import adapter, functor, through_numpy
from oneflow_lite.array_api.elementwise import meet, tensor
from oneflow_lite.array_api.functions import (
    as_float,
    axes_of,
    matmul as matmul,
    matrix_transpose as matrix_transpose,
    sum,
    tensordot as tensordot,
    vecdot as vecdot,
)
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

adapter("linalg.matmul")(matmul)
adapter("linalg.matrix_transpose")(matrix_transpose)
adapter("linalg.tensordot")(tensordot)
adapter("linalg.vecdot")(vecdot)


def _run(name: str, x: Any, *args: Any, **options: Any) -> Any:
    return functor(f"linalg.{name}")(as_float(x), *args, **options)


@adapter("linalg.cholesky")
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Return the Cholesky factor."""
    return _run("cholesky", x, upper=upper)


@adapter("linalg.cross")
def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements."""
    return functor("linalg.cross")(*meet("cross", x1, x2), dim=axis)


@adapter("linalg.det")
def det(x: Tensor, /) -> Tensor:
    """Return the determinant."""
    return _run("det", x)


@adapter("linalg.diagonal")
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return the diagonal of the last two axes."""
    return functor("diagonal")(tensor(x), offset, -2, -1)


@adapter("linalg.eigh")
def eigh(x: Tensor, /, UPLO: str = "L") -> Any:
    """Return eigenvalues and eigenvectors of a Hermitian matrix."""
    return _run("eigh", x, UPLO)


@adapter("linalg.eigvalsh")
def eigvalsh(x: Tensor, /, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of a Hermitian matrix."""
    return _run("eigvalsh", x, UPLO)


@adapter("linalg.eig")
def eig(x: Any, /) -> Any:
    """Return eigenvalues and eigenvectors."""
    return _run("eig", x)


@adapter("linalg.eigvals")
def eigvals(x: Any, /) -> Tensor:
    """Return the eigenvalues."""
    return _run("eigvals", x)


@adapter("linalg.inv")
def inv(x: Tensor, /) -> Tensor:
    """Return the inverse."""
    return _run("inv", x)


@adapter("linalg.matrix_norm")
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str = "fro") -> Tensor:
    """Return the norm of matrices."""
    return _run("matrix_norm", x, ord, (-2, -1), keepdims)


@adapter("linalg.matrix_power")
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Return the matrix multiplied n times with itself."""
    return functor("linalg.matrix_power")(tensor(x), n)


@adapter("linalg.matrix_rank")
def matrix_rank(
    x: Tensor,
    /,
    tol: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """Return the number of singular values that are not near 0."""
    return _run("matrix_rank", x, atol=tol, rtol=rtol, hermitian=hermitian)


@adapter("linalg.outer")
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the products of all pairs of elements of two vectors."""
    x, y = meet("outer", x1, x2)
    return functor("outer")(functor("flatten")(x), functor("flatten")(y))


@adapter("linalg.pinv")
def pinv(
    x: Tensor,
    /,
    rcond: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """Return the pseudo-inverse."""
    return _run("pinv", x, rtol=rcond if rtol is None else rtol, hermitian=hermitian)


@adapter("linalg.qr")
def qr(x: Tensor, /, mode: str = "reduced") -> Any:
    """Return the orthogonal and the triangular factor."""
    if mode == "raw":
        return through_numpy("linalg.qr", (x, mode), {})
    return _run("qr", x, mode).R if mode == "r" else _run("qr", x, mode)


@adapter("linalg.slogdet")
def slogdet(x: Tensor, /) -> Any:
    """Return sign and logarithm of the determinant."""
    return _run("slogdet", x)


@adapter("linalg.solve")
def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the solution of `x1 @ x = x2`; `x2` is a vector only where it has one dimension."""
    a, b = map(as_float, meet("solve", x1, x2))
    if b.ndim == 1:
        return functor("linalg.solve")(a, b.unsqueeze(-1)).squeeze(-1)
    if b.ndim == a.ndim - 1:  # PyTorch would take b for a batch of vectors if the shapes allow it
        b = b.unsqueeze(0)
    return functor("linalg.solve")(a, b)


@adapter("linalg.svd")
def svd(x: Tensor, /, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return the singular value decomposition."""
    return _run("svd", x, full_matrices) if compute_uv else _run("svdvals", x)


@adapter("linalg.svdvals")
def svdvals(x: Tensor, /) -> Tensor:
    """Return the singular values."""
    return _run("svdvals", x)


@adapter("linalg.trace")
def trace(x: Tensor, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Return the sum of a diagonal of the last two axes."""
    return sum(functor("diagonal")(tensor(x), offset, -2, -1), -1, dtype)


@adapter("linalg.vector_norm")
def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: float | str = 2,
) -> Tensor:
    """Return the norm of vectors along axes."""
    x = as_float(x)
    return _run("vector_norm", x, ord, None if axis is None else axes_of(x, axis), keepdims)


@adapter("linalg.norm")
def norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the norm of vectors or matrices, as `np.linalg.norm`."""
    return _run("norm", x, ord, axis, keepdims)


@adapter("linalg.cond")
def cond(x: Any, /, p: Any = None) -> Tensor:
    """Return the condition number."""
    return _run("cond", x, p)


@adapter("linalg.lstsq")
def lstsq(a: Any, b: Any, /, rcond: Any = None) -> Any:
    """Return solution, residuals, rank and singular values of a least squares problem."""
    x, y = map(as_float, meet("lstsq", a, b))
    vector = y.ndim == 1
    y = y.unsqueeze(-1) if vector else y
    solution, _, rank, _ = functor("linalg.lstsq")(x, y, rcond)
    residuals = y.real.new_zeros(0)
    if x.shape[0] > x.shape[1] == int(rank):
        residuals = functor("abs")(y - x @ solution).square().sum(0)
    return solution.squeeze(-1) if vector else solution, residuals, rank, svdvals(x)


@adapter("linalg.multi_dot")
def multi_dot(arrays: Any, /) -> Tensor:
    """Return the product of several matrices."""
    return functor("linalg.multi_dot")(meet("multi_dot", *arrays))


@adapter("linalg.tensorinv")
def tensorinv(x: Any, /, ind: int = 2) -> Tensor:
    """Return the inverse for `tensordot`."""
    return _run("tensorinv", x, ind)


@adapter("linalg.tensorsolve")
def tensorsolve(a: Any, b: Any, /, axes: Any = None) -> Tensor:
    """Return the solution of `tensordot(a, x, x.ndim) = b`."""
    return _run("tensorsolve", *map(as_float, meet("tensorsolve", a, b)), axes)


__all__ = """
    cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank
    matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
""".split()
