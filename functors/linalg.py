"""Solving with matrices, inverting them, determinants and the exponential: what users call."""

from __future__ import annotations

import functools
import math
from collections import namedtuple
from typing import Annotated, Any

from oneflow_lite.dtype import finfo
from oneflow_lite.errors import ShapeError
from oneflow_lite.functors.arithmetic import abs, where
from oneflow_lite.functors.checks import (
    check_broadcast,
    check_dim,
    check_dims,
    check_matrix,
    check_number,
    check_tensor,
)
from oneflow_lite.functors.creation import eye, zeros
from oneflow_lite.functors.declare import functor, unary
from oneflow_lite.functors.decompositions import check_fit, solve_triangular
from oneflow_lite.functors.diagonals import diagonal
from oneflow_lite.functors.domains import (
    AnyTensor,
    Count,
    Flag,
    Int,
    Matrix,
    Positive,
    Square,
    choice,
)
from oneflow_lite.functors.joining import cat
from oneflow_lite.functors.matmul import check_same_dtype
from oneflow_lite.functors.shape import adjoint, movedim, reshape
from oneflow_lite.functors.transcendental import log
from oneflow_lite.interpreter import dispatch, promote
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

SOLVE = op_expr("linalg_solve_ex")
INV = op_expr("linalg_inv_ex")
TRIANGULAR = op_expr("linalg_solve_triangular")
LSTSQ = op_expr("linalg_lstsq")
PINV = op_expr("pinv")
CROSS = op_expr("linalg_cross")

SolveEx = namedtuple("SolveEx", "result info")
InvEx = namedtuple("InvEx", "inverse info")
Triangular = namedtuple("Triangular", "solution cloned_coefficient")
Lstsq = namedtuple("Lstsq", "solution residuals rank singular_values")
SLogDet = namedtuple("SLogDet", "sign logabsdet")

# --- Solving ------------------------------------------------------------------------------------

_SOLVE_SAMPLES = "m(3), x(3, 2); m(2, 3), x(2, 3); zm(2), z(3, 2, 1); m(2), x(3, 2), left=False"


def _solved(op: str, a: Tensor, b: Tensor, left: bool, check_errors: bool) -> SolveEx:
    check_tensor(op, "B", b)
    check_same_dtype(op, a, "B", b)
    x, y = a._data.shape, b._data.shape
    vectors = len(y) == 1 or (len(y) == len(x) - 1 and y == x[:-1])
    if vectors and not left:
        raise ShapeError(
            f"{op}(): argument 'B': expected matrices, unless they are solved for on the left, "
            f"got shape {y}; unsqueeze it"
        )
    if vectors:
        b = b.unsqueeze(-1)
    if not left:
        a, b = a.mT, b.mT
    check_fit(op, a, b)
    result, info = dispatch(SOLVE, (a, b), {"check_errors": check_errors})
    return SolveEx(result.squeeze(-1) if vectors else result if left else result.mT, info)


@functor("linalg", out=True, samples=_SOLVE_SAMPLES)
def linalg_solve(A: Square, B: Tensor, *, left: Flag = True) -> Tensor:
    """Return the X of A X = B.

    B: shape (*, n, k); (n,) or, if it is that of A without its last size, (*, n) for vectors.
    left: False solves X A = B.
    LinAlgError: when a matrix is singular.
    ShapeError: when the shapes do not fit.

    >>> flow.linalg.solve(flow.tensor([[2.0, 0.0], [1.0, 1.0]]), flow.tensor([4.0, 5.0]))
    tensor([2., 3.])
    """
    return _solved("linalg.solve", A, B, left, True).result


@functor("linalg", out=True, samples=_SOLVE_SAMPLES)
def linalg_solve_ex(
    A: Square, B: Tensor, *, left: Flag = True, check_errors: Flag = False
) -> SolveEx:
    """Return `linalg.solve` and for each matrix 0, or the number of the first 0 on U's diagonal.

    B, left: as in `linalg.solve`.
    check_errors: raise for a singular matrix; otherwise its solution is nan.
    ShapeError: when the shapes do not fit.
    """
    return _solved("linalg.solve_ex", A, B, left, check_errors)


@functor(
    "linalg",
    out=True,
    samples="""
        m(3), x(3, 2), upper=True
        m(2, 2), x(2, 1), upper=False, unitriangular=True
        zm(2), z(3, 2), upper=True, left=False
    """,
)
def linalg_solve_triangular(
    input: Square, B: Matrix, *, upper: Flag, left: Flag = True, unitriangular: Flag = False
) -> Tensor:
    """Return the X of A X = B for a triangular A, the input, of which no more is read.

    upper: whether the upper triangle is read, or the lower one.
    left: False solves X A = B.
    unitriangular: take the diagonal as 1 without reading it.
    ShapeError: when the shapes do not fit.

    >>> A = flow.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> flow.linalg.solve_triangular(A, flow.tensor([[4.0], [5.0]]), upper=False)
    tensor([[2.],
            [3.]])
    """
    op = "linalg.solve_triangular"
    check_same_dtype(op, input, "B", B)
    check_fit(op, input, B if left else B.mT)
    attrs = {"upper": upper, "left": left, "unitriangular": unitriangular}
    return dispatch(TRIANGULAR, (input, B), attrs)


@functor("flow Tensor", out=True, samples="x(3, 2), m(3); x(2, 1), m(2, 2), False, True, True")
def triangular_solve(
    input: Matrix,
    A: Square,
    upper: Flag = True,
    transpose: Flag = False,
    unitriangular: Flag = False,
) -> Triangular:
    """Return `linalg.solve_triangular(A, input)` and a copy of A; the older function.

    upper, unitriangular: as there.
    transpose: solve with the transpose of A.
    ShapeError: when the shapes do not fit.
    """
    check_same_dtype("triangular_solve", input, "A", A)
    check_fit("triangular_solve", A, input)
    a = A.mT if transpose else A
    return Triangular(solve_triangular(a, input, upper != transpose, unitriangular), A.clone())


@functor("flow Tensor", out=True, samples="x(3, 2), m(3); x(2, 1), m(2, 2), True; z(2, 1), zm(2)")
def cholesky_solve(input: Matrix, L: Square, upper: Flag = False) -> Tensor:
    """Return the X of (L Lᴴ) X = input for a lower triangular L; what lies above is not read.

    upper: L is upper triangular, and X that of (Lᴴ L) X = input.
    ShapeError: when the shapes do not fit.

    >>> flow.cholesky_solve(flow.ones(2, 1), 2 * flow.eye(2))
    tensor([[0.2500],
            [0.2500]])
    """
    check_same_dtype("cholesky_solve", input, "L", L)
    check_fit("cholesky_solve", L, input)
    lower, higher = (adjoint(L), L) if upper else (L, adjoint(L))
    return solve_triangular(higher, solve_triangular(lower, input, False), True)


@functor("flow Tensor", out=True, samples="m(3); m(2, 2), True")
def cholesky_inverse(input: Square, upper: Flag = False) -> Tensor:
    """Return the inverse of L Lᴴ for a lower triangular L; what lies above is not read.

    upper: L is upper triangular, and the inverse that of Lᴴ L.
    """
    return cholesky_solve(
        eye(input._data.shape[-1], dtype=input.dtype, device=input.device), input, upper
    )


@functor("linalg flow.inverse Tensor.inverse", out=True, samples="m(3); m(2, 2); zm(2)")
def linalg_inv(A: Square) -> Tensor:
    """Return the inverse.

    LinAlgError: when a matrix is singular.

    >>> flow.linalg.inv(flow.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return dispatch(INV, (A,), {"check_errors": True})[0]


@functor("linalg", out=True, samples="m(3); m(2, 2); zm(2)")
def linalg_inv_ex(A: Square, *, check_errors: Flag = False) -> InvEx:
    """Return `linalg.inv` and for each matrix 0, or the number of the first 0 on U's diagonal.

    check_errors: raise for a singular matrix; otherwise its inverse is nan.
    """


# --- Least squares ------------------------------------------------------------------------------


@functor(
    "linalg",
    samples="""
        x(4, 2), x(4, 3)
        x(2, 3), x(2, 1)
        z(2, 3, 2), z(2, 3), driver='gels'
        x(3, 2), x(3, 1), 1e-3, driver='gelsd'
    """,
)
def linalg_lstsq(
    input: Matrix,
    b: Tensor,
    rcond: float | None = None,
    *,
    driver: Annotated[str | None, choice("gels", "gelsy", "gelsd", "gelss")] | None = None,
) -> Lstsq:
    """Return the shortest X that minimises |A X - b| for the input A, residuals squared, and rank.

    All drivers compute by singular values here, and return what LAPACK's of that name do.

    b: shape (*, m, k); (*, m), if it is that of the input without its last size, for vectors.
    rcond: singular values up to rcond times the largest count as 0; by default the rounding error.
    driver: "gelsy" by default. "gels" takes the rank to be full, and gives no rank. "gelsd" and
        "gelss" give the singular values. Residuals are given where m > n, but not by "gelsy", nor
        where the rank is not full.
    ShapeError: when the shapes do not fit.

    >>> A = flow.tensor([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    >>> flow.linalg.lstsq(A, flow.tensor([[1.0], [2.0], [3.0]])).rank
    tensor(2)
    """
    check_tensor("linalg.lstsq", "b", b)
    check_same_dtype("linalg.lstsq", input, "b", b)
    *batch, m, n = input._data.shape
    vectors = b._data.shape == (*batch, m)
    b = b.unsqueeze(-1) if vectors else check_matrix("linalg.lstsq", b, "b")
    check_fit("linalg.lstsq", input, b, "b")
    driver = driver or "gelsy"
    if rcond is None:
        rcond = max(m, n) * float(finfo(input.dtype).eps)
    attrs = {"rcond": check_number("linalg.lstsq", "rcond", rcond), "driver": driver}
    solution, rank, values = dispatch(LSTSQ, (input, b), attrs)
    if m > n and driver != "gelsy" and (driver == "gels" or rank.eq(n).all().item()):
        residuals = abs(input @ solution - b).square().sum(-2)
    else:
        residuals = zeros(0, dtype=values.dtype, device=input.device)
    return Lstsq(solution.squeeze(-1) if vectors else solution, residuals, rank, values.detach())


def tolerances(op: str, A: Tensor, atol: Any, rtol: Any) -> tuple[Tensor, Tensor]:
    """Return the bounds under which singular values of A count as 0, as tensors.

    Without `rtol` the rounding error is taken, or 0 where there is an `atol`.
    """
    real = A._data.real.dtype

    def number(value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value.to(real)
        return zeros((), dtype=real, device=A.device) + check_number(op, "tol", value)

    least = number(0.0 if atol is None else atol)
    if rtol is not None:
        return least, number(rtol)
    error = max(A._data.shape[-2:]) * float(finfo(A.dtype).eps)
    return least, where(least > 0, 0.0, error * (least * 0 + 1))


@functor(
    "linalg",
    out=True,
    samples="x(3, 2); x(2, 2, 3), rtol=1e-3; spd(3), hermitian=True; z(2, 3), atol=1e-6",
)
def linalg_pinv(
    input: Matrix, rcond: Any = None, hermitian: Flag = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """Return the pseudoinverse (Moore and Penrose).

    rcond: the older name of rtol.
    hermitian: the input is symmetric or Hermitian; its lower triangle alone is read.
    atol, rtol: numbers, or tensors of one for each matrix: singular values up to atol, or up to
        rtol times the largest, count as 0. By default the rounding error.

    The gradient is that of matrices of the same rank.

    >>> flow.linalg.pinv(flow.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    atol, rtol = tolerances("linalg.pinv", input, atol, rtol if rcond is None else rcond)
    return dispatch(PINV, (input, atol, rtol), {"hermitian": hermitian})


@functor("flow Tensor", samples="x(3, 2); x(2, 2, 3), 1e-3")
def pinverse(input: Matrix, rcond: float = 1e-15) -> Tensor:
    """Return `linalg.pinv(input, rtol=rcond)`; the older function.

    rcond: singular values up to rcond times the largest count as 0.
    """
    return linalg_pinv(input, rtol=rcond)


# --- Determinants, the exponential --------------------------------------------------------------


_of_square = functools.partial(unary, domain=Square, on="flow Tensor linalg")

det = _of_square(
    "det",
    "Return the determinant.",
    "[[0.0, 1.0], [1.0, 0.0]] -> tensor(-1.)",
    op="linalg_det",
    samples="m(3); m(2, 2); zm(2)",
)
matrix_exp = _of_square(
    "matrix_exp",
    "Return the matrix exponential Σ Aⁿ / n!.",
    "[[0.0, 1.0], [0.0, 0.0]] -> tensor([[1., 1.],\n        [0., 1.]])",
    out=False,
    samples="x(3, 3); x(2, 2, 2); z(2, 2)",
)


@functor("flow Tensor linalg", op="linalg_slogdet", out=True, samples="m(3); m(2, 2); zm(2)")
def slogdet(input: Square) -> SLogDet:
    """Return the sign of the determinant, or its phase, and the logarithm of its absolute value.

    LinAlgError: when the gradient of a singular matrix is taken.

    >>> flow.linalg.slogdet(flow.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """


@functor("flow Tensor", samples="m(3); m(2, 2); zm(2)")
def logdet(input: Square) -> Tensor:
    """Return the logarithm of the determinant; nan where that is negative."""
    sign, logarithm = slogdet(input)
    if sign.is_complex():
        return logarithm + log(sign)
    return where(sign == -1, math.nan, logarithm)


# --- Tensors as matrices ------------------------------------------------------------------------


@functor("linalg", out=True, samples="m(4).reshape(4, 2, 2), 1; m(4).reshape(2, 2, 4)")
def linalg_tensorinv(input: Tensor, ind: Positive = 2) -> Tensor:
    """Return the inverse of a tensor for `tensordot`: that of the tensor as a matrix.

    input: of a shape whose first `ind` sizes have the product of the others.
    ind: how many dimensions stand for the rows.
    ShapeError: when the products differ.
    LinAlgError: when the matrix is singular.

    >>> flow.linalg.tensorinv(flow.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    shape = check_tensor("linalg.tensorinv", "input", input)._data.shape
    rows, columns = shape[:ind], shape[ind:]
    n = math.prod(rows)
    if n != math.prod(columns):
        raise ShapeError(
            f"linalg.tensorinv(): argument 'input': expected as many elements in the first {ind} "
            f"dimensions as in the others, got shape {shape}; reshape or permute it"
        )
    return reshape(linalg_inv(reshape(input, (n, n))), (*columns, *rows))


@functor(
    "linalg",
    out=True,
    samples="m(4).reshape(4, 2, 2), x(4); m(4).reshape(2, 4, 2), x(4), dims=(0,)",
)
def linalg_tensorsolve(input: Tensor, other: Tensor, dims: Any = None) -> Tensor:
    """Return the X with tensordot(input, X, X.ndim) = other.

    input: of the shape of the other, followed by that of X.
    dims: its dimensions to move to its end first.
    ShapeError: when the input has not as many elements for the other as for X.
    LinAlgError: when the input, as a matrix, is singular.
    """
    op = "linalg.tensorsolve"
    check_same_dtype(
        op, check_tensor(op, "input", input), "other", check_tensor(op, "other", other)
    )
    if dims is not None:
        chosen = check_dims(op, dims, input._data.ndim, "dims")
        input = movedim(
            input, chosen, tuple(range(input._data.ndim - len(chosen), input._data.ndim))
        )
    shape, n = input._data.shape[other._data.ndim :], other._data.size
    if math.prod(shape) != n or input._data.size != n * n:
        raise ShapeError(
            f"{op}(): argument 'input': expected {n} elements for each of the {n} of other, got "
            f"shape {input.shape}; reshape or permute it"
        )
    return reshape(linalg_solve(reshape(input, (n, n)), reshape(other, (n,))), shape)


@functor("linalg", samples="x(3); x(2, 3), N=2; i(3)")
def linalg_vander(x: AnyTensor, *, N: Count | None = None) -> Tensor:
    """Return the powers 0 … N - 1 of each element, along a new last dimension.

    N: how many; by default the last size of x.

    >>> flow.linalg.vander(flow.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    x = x if x._data.ndim else x.unsqueeze(0)
    shape = x._data.shape
    n = shape[-1] if N is None else N
    if x._data.dtype.kind == "b":
        x = x.long()
    one = x.unsqueeze(-1) ** 0
    if n <= 1:
        return one[..., :n]
    factors = x.unsqueeze(-1).expand(*shape, n - 1)
    return cat([one, factors.cumprod(-1)], -1)


@functor("linalg", samples="x(2, 3); x(2, 2, 3), offset=1, dim1=0, dim2=2")
def linalg_diagonal(A: AnyTensor, *, offset: Int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return `flow.diagonal`, by default of the last two dimensions; a view.

    offset: 0 the main diagonal, positive above it, negative below.
    dim1, dim2: the dimensions of the matrices.
    """
    return diagonal(A, offset, dim1, dim2)


@functor("linalg", out=True, samples="x(2, 3), x(1, 3); z(3, 2), z(3, 1), dim=0")
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross product along a dimension of size 3; the others broadcast.

    dim: the dimension, counted from either end.
    ShapeError: when it is not of size 3 in both, or the shapes do not broadcast.

    >>> flow.linalg.cross(flow.tensor([1.0, 0.0, 0.0]), flow.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return _crossed("linalg.cross", input, other, dim)


@functor("flow Tensor", out=True, samples="x(2, 3), x(2, 3), 1; x(3, 2), x(3, 2)")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross product, as `linalg.cross` does, by default along the first size of 3.

    dim: the dimension, counted from either end.
    ShapeError: when it is not of size 3 in both, or the shapes do not broadcast.
    """
    if dim is None:
        shape = check_tensor("cross", "input", input)._data.shape
        dim = shape.index(3) if 3 in shape else -1
    return _crossed("cross", input, other, dim)


def _crossed(op: str, input: Tensor, other: Tensor, dim: int) -> Tensor:
    x, y = promote(op, check_tensor(op, "input", input), check_tensor(op, "other", other))
    shape = check_broadcast(op, "other", y, x)
    dim = check_dim(op, dim, len(shape)) - len(shape)
    for argument, each in (("input", x), ("other", y)):
        size = each._data.shape
        if len(size) < -dim or size[dim] != 3:
            raise ShapeError(
                f"{op}(): argument '{argument}': expected size 3 in dimension {dim}, got shape "
                f"{size}; reshape or permute it"
            )
    return dispatch(CROSS, (x, y), {"dim": dim})
