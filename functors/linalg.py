"""Functions that users call to solve with matrices and invert them; determinants, exponentials."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any, NamedTuple

from oneflow_lite.arrays.dtype import finfo
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.functors.declaring import checks, domains as D
from oneflow_lite.functors.declaring.checks import check_tensor
from oneflow_lite.functors.declaring.declare import functor, unary
from oneflow_lite.functors.declaring.domains import Flag, IntOrInts, Matrix, Square, TensorOrNumber
from oneflow_lite.functors.decompositions import Left, Rhs, check_fit, solve_triangular
from oneflow_lite.functors.matmul import Fits, check_same_dtype
from oneflow_lite.interpreter.dispatch import dispatch, promote
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

SOLVE = op_expr("linalg_solve_ex")
LSTSQ = op_expr("linalg_lstsq")
CROSS = op_expr("linalg_cross")

SolveEx = NamedTuple("SolveEx", [("result", Tensor), ("info", Tensor)])
InvEx = NamedTuple("InvEx", [("inverse", Tensor), ("info", Tensor)])
Triangular = NamedTuple("Triangular", [("solution", Tensor), ("cloned_coefficient", Tensor)])
Lstsq = NamedTuple(
    "Lstsq",
    [("solution", Tensor), ("residuals", Tensor), ("rank", Tensor), ("singular_values", Tensor)],
)
SLogDet = NamedTuple("SLogDet", [("sign", Tensor), ("logabsdet", Tensor)])

_TOLERANCE = (
    "A number, or a tensor of one for each matrix: singular values up to atol, or up to rtol times "
    "the largest, count as 0. By default the rounding error."
)
Half = Annotated[bool, D.flag("Take the input as Hermitian; read its lower triangle alone.")]
Tol = Annotated[Any, D.Domain(_TOLERANCE, type="Tensor or number")]

_linalg = functools.partial(functor, "linalg", out="same")
_method = functools.partial(functor, "flow Tensor", out="same")

_SQUARE = "m(3); m(2, 2); zm(2)"
_SOLVE_SAMPLES = "m(3), x(3, 2); m(2, 3), x(2, 3); zm(2), z(3, 2, 1); m(2), x(3, 2), left=False"


def _solved(op: str, a: Tensor, b: Tensor, left: bool, check_errors: bool) -> SolveEx:
    vectors = b._data.ndim == 1 or b._data.shape == a._data.shape[:-1]
    if vectors and not left:
        expected = "matrices, unless they are solved for on the left"
        raise arg_error(op, "B", expected, b, "unsqueeze it")
    if vectors:
        b = b.unsqueeze(-1)
    if not left:
        a, b = a.mT, b.mT
    check_fit(op, a, b)
    result, info = dispatch(SOLVE, (a, b), {"check_errors": check_errors})
    return SolveEx(result.squeeze(-1) if vectors else result if left else result.mT, info)


@_linalg(samples=_SOLVE_SAMPLES)
def linalg_solve(A: Square, B: Fits, *, left: Left = True) -> Tensor:
    """Return the X of A X = B.

    B: (*, n, k); (n,) or, if it is the shape of A without its last size, (*, n) for vectors.
    LinAlgError: when a matrix is singular.

    >>> flow.linalg.solve(flow.tensor([[2.0, 0.0], [1.0, 1.0]]), flow.tensor([4.0, 5.0]))
    tensor([2., 3.])
    """
    return _solved("linalg.solve", A, B, left, True).result


@_linalg(samples=_SOLVE_SAMPLES)
def linalg_solve_ex(
    A: Square, B: Fits, *, left: Left = True, check_errors: Flag = False
) -> SolveEx:
    """Return `linalg.solve` and for each matrix 0, or the number of the first 0 on U's diagonal.

    check_errors: raise for a singular matrix; otherwise its solution is nan.
    """
    return _solved("linalg.solve_ex", A, B, left, check_errors)


@_linalg(
    samples="""m(3), x(3, 2), upper=True; m(2, 2), x(2, 1), upper=False, unitriangular=True
        zm(2), z(3, 2), upper=True, left=False"""
)
def linalg_solve_triangular(
    input: Square, B: Rhs, *, upper: Flag, left: Left = True, unitriangular: Flag = False
) -> Tensor:
    """Return the X of A X = B for a triangular A, the input, of which no more is read.

    unitriangular: take the diagonal as 1 without reading it.
    """
    check_fit("linalg.solve_triangular", input, B if left else B.mT)
    return solve_triangular(input, B, upper, unitriangular, left)


@_method(samples="x(3, 2), m(3); x(2, 1), m(2, 2), False, True, True")
def triangular_solve(
    input: Rhs, A: Square, upper: Flag = True, transpose: Flag = False, unitriangular: Flag = False
) -> Triangular:
    """Return `linalg.solve_triangular(A, input)`, or of Aᵀ, and a copy of A; the older function."""
    check_same_dtype("triangular_solve", input, "A", A)
    check_fit("triangular_solve", A, input)
    a = A.mT if transpose else A
    return Triangular(solve_triangular(a, input, upper != transpose, unitriangular), A.clone())


@_method(
    out=True, spelled="input2=L", samples="x(3, 2), m(3); x(2, 1), m(2, 2), True; z(2, 1), zm(2)"
)
def cholesky_solve(input: Rhs, L: Square, upper: Flag = False) -> Tensor:
    """Return the X of (L Lᴴ) X = input for a lower triangular L, or with `upper` (Lᴴ L) X = input.

    The other side of the diagonal is not read.
    """
    check_same_dtype("cholesky_solve", input, "L", L)
    check_fit("cholesky_solve", L, input)
    lower, higher = (L.adjoint(), L) if upper else (L, L.adjoint())
    return solve_triangular(higher, solve_triangular(lower, input, False), True)


@_method(out=True, samples="m(3); m(2, 2), True")
def cholesky_inverse(input: Square, upper: Flag = False) -> Tensor:
    """Return the inverse of the A that `cholesky_solve` solves with.

    LinAlgError: when the diagonal has a 0.
    """
    inverse = linalg_inv(input.triu() if upper else input.tril())
    return inverse @ inverse.adjoint() if upper else inverse.adjoint() @ inverse


@functor("linalg flow.inverse Tensor.inverse", out="same", spelled="input=A", samples=_SQUARE)
def linalg_inv(A: Square) -> Tensor:
    """Return the inverse.

    LinAlgError: when a matrix is singular.
    """
    return linalg_inv_ex(A, check_errors=True).inverse


@_linalg(samples=_SQUARE)
def linalg_inv_ex(A: Square, *, check_errors: Flag = False) -> InvEx:
    """Return `linalg.inv` and for each matrix 0, or the number of the first 0 on U's diagonal.

    check_errors: raise for a singular matrix; otherwise its inverse is nan.
    """


@functor(
    "linalg",
    samples="""x(4, 2), x(4, 3); x(2, 3), x(2, 1); z(2, 3, 2), z(2, 3), driver='gels'
        x(3, 2), x(3, 1), 1e-3, driver='gelsd'""",
)
def linalg_lstsq(
    input: Matrix,
    b: Fits,
    rcond: D.Number | None = None,
    *,
    driver: Annotated[str | None, D.choice("gels", "gelsy", "gelsd", "gelss")] | None = None,
) -> Lstsq:
    """Return the shortest X that minimises |A X - b| for the input A, residuals squared, and rank.

    b: shape (*, m, k); (*, m), if it is that of the input without its last size, for vectors.
    rcond: singular values up to rcond times the largest count as 0; by default the rounding error.
    driver: LAPACK's routine. "gelsy", the default, bounds by rcond the condition of a QR with
        columns exchanged, and gives no residuals; others do where m > n and the rank is full.
        "gels" takes it to be full, and gives no rank; "gelsd" and "gelss" give singular values.
    LinAlgError: when "gels" meets a matrix that cannot have full rank.

    >>> flow.linalg.lstsq(flow.tensor([[1.0], [1.0]]), flow.tensor([1.0, 2.0])).solution
    tensor([1.5000])
    """
    *batch, m, n = input._data.shape
    vectors = b._data.shape == (*batch, m)
    b = b.unsqueeze(-1) if vectors else checks.check_matrix("linalg.lstsq", b, "b")
    check_fit("linalg.lstsq", input, b, "b")
    driver = driver or "gelsy"
    if rcond is None:
        rcond = max(m, n) * float(finfo(input.dtype).eps)
    solution, rank, values = dispatch(LSTSQ, (input, b), {"rcond": rcond, "driver": driver})
    if m > n and driver != "gelsy" and (driver == "gels" or rank.eq(n).all().item()):
        residuals = (input @ solution - b).abs().square().sum(-2)
    else:
        residuals = F.zeros(0, dtype=values.dtype, device=input.device)
    return Lstsq(solution.squeeze(-1) if vectors else solution, residuals, rank, values.detach())


def tolerances(op: str, A: Tensor, atol: Any, rtol: Any) -> tuple[Tensor, Tensor]:
    """Return the bounds as tensors; rtol is the rounding error, or 0 where there is an atol."""
    real = A.real._data.dtype

    def number(value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return checks.real(op, value, "tol").to(real)
        return F.zeros((), dtype=real, device=A.device) + checks.check_number(op, "tol", value)

    least = number(0.0 if atol is None else atol)
    if rtol is not None:
        return least, number(rtol)
    error = max(A._data.shape[-2:]) * float(finfo(A.dtype).eps)
    return least, F.where(least > 0, 0.0, error * (least * 0 + 1))


@_linalg(
    out=True, samples="x(3, 2); x(2, 2, 3), rtol=1e-3; spd(3), hermitian=True; z(2, 3), atol=1e-6"
)
def linalg_pinv(
    input: Matrix,
    rcond: TensorOrNumber = None,
    hermitian: Half = False,
    *,
    atol: Tol = None,
    rtol: Tol = None,
) -> Tensor:
    """Return the pseudoinverse (Moore and Penrose); its gradient takes the rank as given.

    rcond: the older name of rtol.

    >>> flow.linalg.pinv(flow.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    if rcond is not None and rtol is not None:
        hint = "leave one out"
        raise arg_error("linalg.pinv", "rcond", "no rtol beside it", rcond, hint, ArgumentError)
    atol, rtol = tolerances("linalg.pinv", input, atol, rtol if rcond is None else rcond)
    return F.pinv(input, atol, rtol, hermitian=hermitian)


@functor("flow Tensor", samples="x(3, 2); x(2, 2, 3), 1e-3")
def pinverse(input: Matrix, rcond: float = 1e-15) -> Tensor:
    """Return `linalg.pinv(input, rtol=rcond)`; the older function."""
    return linalg_pinv(input, rtol=rcond)


_of_square = functools.partial(unary, domain=Square, on="flow Tensor linalg")

_DET = "Return the determinant."
det = _of_square("det", _DET, op="linalg_det", spelled="A=input", samples=_SQUARE)
matrix_exp = _of_square(
    "matrix_exp",
    "Return the matrix exponential Σ Aⁿ / n!.",
    "[[0.0, 1.0], [0.0, 0.0]] -> tensor([[1., 1.],\n        [0., 1.]])",
    out=False,
    samples="x(3, 3); x(2, 2, 2); z(2, 2)",
)


@functor("flow Tensor linalg", op="linalg_slogdet", out="same", spelled="A=input", samples=_SQUARE)
def slogdet(input: Square) -> SLogDet:
    """Return the sign of the determinant, or its phase, and the logarithm of its absolute value.

    LinAlgError: when the gradient of a singular matrix is taken.

    >>> flow.linalg.slogdet(flow.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """


@functor("flow Tensor", samples=_SQUARE)
def logdet(input: Square) -> Tensor:
    """Return the logarithm of the determinant; nan where that is negative."""
    sign, logarithm = slogdet(input)
    if sign.is_complex():
        return logarithm + sign.log()
    return F.where(sign == -1, math.nan, logarithm)


@_linalg(out=True, samples="m(4).reshape(4, 2, 2), 1; m(4).reshape(2, 2, 4)")
def linalg_tensorinv(input: D.AnyTensor, ind: D.Positive = 2) -> Tensor:
    """Return the inverse of a tensor for `tensordot`: that of the tensor as a matrix.

    ind: how many dimensions stand for the rows.
    ShapeError: when the products of the sizes of rows and columns differ.
    LinAlgError: when the matrix is singular.

    >>> flow.linalg.tensorinv(flow.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    shape = input._data.shape
    rows, columns = shape[:ind], shape[ind:]
    n = math.prod(rows)
    if n != math.prod(columns):
        expected = f"as many elements in the first {ind} dimensions as in the others"
        raise arg_error("linalg.tensorinv", "input", expected, input, "reshape or permute it")
    return linalg_inv(input.reshape(n, n)).reshape((*columns, *rows))


@_linalg(out=True, samples="m(4).reshape(4, 2, 2), x(4); m(4).reshape(2, 4, 2), x(4), dims=(0,)")
def linalg_tensorsolve(input: Tensor, other: Fits, dims: IntOrInts = None) -> Tensor:
    """Return the X with tensordot(input, X, X.ndim) = other.

    input: of the shape of the other, followed by that of X, after `dims` are moved to the end.
    LinAlgError: when the input, as a matrix, is singular.
    """
    op, ndim = "linalg.tensorsolve", input._data.ndim
    if dims is not None:
        chosen = checks.check_dims(op, dims, ndim, "dims")
        input = input.movedim(chosen, tuple(range(ndim - len(chosen), ndim)))
    shape, n = input._data.shape[other._data.ndim :], other._data.size
    if math.prod(shape) != n or input._data.size != n * n:
        expected = f"{n} elements for each of the {n} of other"
        raise arg_error(op, "input", expected, input, "reshape or permute it")
    return linalg_solve(input.reshape(n, n), other.reshape(n)).reshape(shape)


@functor("linalg", samples="x(3); x(2, 3), N=2; i(3)")
def linalg_vander(x: D.AnyTensor, *, N: D.Count | None = None) -> Tensor:
    """Return the powers 0 … N - 1 of each element, along a new last dimension.

    N: by default the last size of x.

    >>> flow.linalg.vander(flow.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    x = x if x._data.ndim else x.unsqueeze(0)
    n = x._data.shape[-1] if N is None else N
    x = (x.long() if x._data.dtype.kind == "b" else x).unsqueeze(-1)
    if n <= 1:
        return (x**0)[..., :n]
    return F.cat([x**0, x.expand(*x._data.shape[:-1], n - 1).cumprod(-1)], -1)


@functor("linalg", samples="x(2, 3); x(2, 2, 3), offset=1, dim1=0, dim2=2")
def linalg_diagonal(A: D.AnyTensor, *, offset: D.Int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return `flow.diagonal`, by default of the last two dimensions; a view."""
    return A.diagonal(offset, dim1, dim2)


_CROSSED = {"ShapeError": "When a size is not 3, or the shapes do not broadcast."}
Crossed = Annotated[Tensor, D.Domain("Of size 3 along the dimension.", raises=_CROSSED)]


@_linalg(samples="x(2, 3), x(1, 3); z(3, 2), z(3, 1), dim=0")
def linalg_cross(input: Crossed, other: Crossed, *, dim: int = -1) -> Tensor:
    """Return the cross product along a dimension.

    >>> flow.linalg.cross(flow.tensor([1.0, 0.0, 0.0]), flow.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return _crossed("linalg.cross", input, other, dim)


@_method(samples="x(2, 3), x(2, 3), 1; x(3, 2), x(3, 2)")
def cross(input: Crossed, other: Crossed, dim: int | None = None) -> Tensor:
    """Return the cross product, as `linalg.cross` does, by default along the first size of 3."""
    if dim is None:
        shape = check_tensor("cross", "input", input)._data.shape
        dim = shape.index(3) if 3 in shape else -1
    return _crossed("cross", input, other, dim)


def _crossed(op: str, input: Tensor, other: Tensor, dim: int) -> Tensor:
    x, y = promote(op, check_tensor(op, "input", input), check_tensor(op, "other", other))
    shape = checks.check_broadcast(op, "other", y, x)
    dim = checks.check_dim(op, dim, len(shape)) - len(shape)
    for argument, each in (("input", x), ("other", y)):
        if each._data.ndim < -dim or each._data.shape[dim] != 3:
            raise arg_error(
                op, argument, f"size 3 in dimension {dim}", each, "reshape or permute it"
            )
    return dispatch(CROSS, (x, y), {"dim": dim})
