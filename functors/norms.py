"""Norms of vectors and matrices, and what is told by singular values: what users call."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, FlowError
from oneflow_lite.functors import domains as D
from oneflow_lite.functors.checks import check_dims, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.linalg import Bound, Hermitian, tolerances
from oneflow_lite.functors.statistics import norm_for
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

SVDVALS = op_expr("linalg_svdvals")

_linalg = functools.partial(functor, "linalg", out=True)

Values = D.FloatingOrComplex
Keep = D.KeepDim
Cast = D.CastTo
Axes = Annotated[Any, D.Domain("The dimensions to reduce; None and () mean all.")]


@_linalg(
    samples="""
        x(2, 3); x(2, 3), 3, -1; x(2, 3), inf, 0, True
        x(2, 3), -inf; z(2, 3), 0.5, (0, 1); x(2, 3), 0
    """,
)
def linalg_vector_norm(
    input: Values, ord: D.Number = 2, dim: Axes = None, keepdim: Keep = False, *, dtype: Cast = None
) -> Tensor:
    """Return (Σ |x|^ord)^(1/ord), by default over all dimensions.

    ord: 0 counts what is not zero; inf and -inf give the largest and smallest absolute value.
    returns: real. The gradient where the norm is 0 is 0; for inf and -inf ties share it.
    DimError: when a dimension is out of range, given twice, or empty where ord is inf or negative.

    >>> flow.linalg.vector_norm(flow.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return norm_for("linalg.vector_norm", input, ord, dim, keepdim)


def _bad_order(op: str, expected: str, got: Any) -> FlowError:
    return wrong(op, "ord", expected, repr(got), "name one of these", ArgumentError)


def _singular_values(A: Tensor) -> Tensor:
    return dispatch1(SVDVALS, A)


@_linalg(
    samples="""
        x(2, 3); x(2, 3), 'nuc', keepdim=True; x(2, 3, 2), 1, (0, -1)
        x(2, 3), -inf; z(2, 3), 2; x(2, 3), -2
    """,
)
def linalg_matrix_norm(
    input: Values,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: Keep = False,
    *,
    dtype: Cast = None,
) -> Tensor:
    """Return the norm of matrices.

    ord: "fro" the root of the sum of squares, "nuc" the sum of singular values, 2 and -2 the
        largest and smallest of them, 1 and -1 the largest and smallest sum of absolute values of a
        column, inf and -inf of a row.
    dim: the two dimensions of the matrices.
    returns: real. Gradients at kinks are those of `amax`, `svdvals` and `vector_norm`.
    ArgumentError: when ord is another.
    DimError: when a dimension is out of range or given twice.

    >>> flow.linalg.matrix_norm(flow.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    return _matrix_norm("linalg.matrix_norm", input, ord, dim, keepdim)


def _matrix_norm(op: str, A: Tensor, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    dims = check_dims(op, dim, A._data.ndim)
    if len(dims) != 2:
        got, mend = f"{dim} for shape {A.shape}", "use linalg.vector_norm for other numbers of them"
        raise wrong(op, "dim", "the two dimensions of matrices", got, mend)
    if ord == "fro":
        return norm_for(op, A, 2, dims, keepdim)
    if ord == "nuc" or ord in (2, -2):
        values = _singular_values(A.movedim(dims, (-2, -1)))
        norm = values.sum(-1) if ord == "nuc" else _extreme(values, ord, -1)
        for dim in sorted(dims) if keepdim else ():
            norm = norm.unsqueeze(dim)
        return norm
    if ord not in (1, -1, math.inf, -math.inf):
        raise _bad_order(op, "'fro', 'nuc', 2, -2, 1, -1, inf or -inf", ord)
    lines, others = dims if ord in (1, -1) else reversed(dims)
    if not keepdim and others > lines:
        others -= 1
    return _extreme(A.abs().sum(lines, keepdim), ord, others, keepdim)


def _extreme(values: Tensor, ord: float, dim: int, keepdim: bool = False) -> Tensor:
    """Return the largest values for a positive ord, the smallest for a negative one."""
    return values.amax(dim, keepdim) if ord > 0 else values.amin(dim, keepdim)


@_linalg(
    samples="""
        x(2, 3); x(3), 3; x(2, 3), 'nuc'; x(2, 3), inf, 1
        x(2, 3), 1, (0, 1), True; z(2, 3), dim=0
    """,
)
def linalg_norm(
    input: Values, ord: Any = None, dim: Axes = None, keepdim: Keep = False, *, dtype: Cast = None
) -> Tensor:
    """Return `matrix_norm` where `dim` or the input has two dimensions, else `vector_norm`.

    ord: as there; None is 2 of all the elements.
    dim: the dimensions to reduce. Without it there are one or two, if `ord` is given.
    ShapeError: when the number of dimensions is another.
    ArgumentError: when ord is not one of theirs.
    """
    op = "linalg.norm"
    if ord is None:
        return norm_for(op, input, 2, dim, keepdim)
    dims = check_dims(op, dim, input._data.ndim)
    if len(dims) == 2:
        return _matrix_norm(op, input, ord, dims, keepdim)
    if len(dims) > 2:
        expected, got = "one dimension or two for an ord", f"{dim} for shape {input.shape}"
        raise wrong(op, "dim", expected, got, "name them, or leave out ord")
    if isinstance(ord, str):
        raise _bad_order(op, "a number for vectors", ord)
    return norm_for(op, input, ord, dims, keepdim)


@_linalg(samples="x(3, 2); m(2, 3), 1; m(3), 'nuc'; zm(2), -2; m(2), 'fro'")
def linalg_cond(input: D.Matrix, p: Any = None) -> Tensor:
    """Return the condition number |A| |A⁻¹|; inf for singular matrices.

    p: the ord of `matrix_norm`; 2 by default, for which matrices need not be square.
    ShapeError: when one is not square and p not 2 or -2.

    >>> flow.linalg.cond(flow.tensor([[2.0, 0.0], [0.0, 0.5]]))
    tensor(4.)
    """
    if p in (None, 2, -2):
        values = _singular_values(input)
        if not values._data.shape[-1]:
            return values.sum(-1)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    inverse, info = F.linalg_inv_ex(input)
    norms = [_matrix_norm("linalg.cond", x, p, (-2, -1), False) for x in (input, inverse)]
    return F.where(info > 0, math.inf, norms[0] * norms[1])


@_linalg(samples="x(3, 2); spd(2, 2), hermitian=True; x(2, 2), rtol=0.5")
def linalg_matrix_rank(
    input: D.Matrix,
    tol: Any = None,
    hermitian: Hermitian = False,
    *,
    atol: Bound = None,
    rtol: Bound = None,
) -> Tensor:
    """Return how many singular values do not count as 0.

    tol: the older name of atol, with an rtol of 0.

    >>> flow.linalg.matrix_rank(flow.ones(2, 2))
    tensor(1)
    """
    input = input.detach()
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = tolerances("linalg.matrix_rank", input, atol, rtol)
    values = F.linalg_eigvalsh(input).abs() if hermitian else _singular_values(input)
    if not values._data.shape[-1]:
        return values.sum(-1).long()
    bound = F.maximum(atol, rtol * values.amax(-1))
    return (values > bound.unsqueeze(-1)).sum(-1)


@functor(
    "flow Tensor", samples="x(2, 3), x(2, 3); x(2, 3), x(3), 1; x(4), x(4), inf; z(2), z(2), 3"
)
def dist(input: D.AnyTensor, other: Tensor, p: D.Number = 2) -> Tensor:
    """Return the norm of input - other, of all elements; 0 has the gradient 0.

    p: as in `linalg.vector_norm`.
    ShapeError: when the shapes do not broadcast.
    """
    return norm_for("dist", input - other, p, None, False)


@functor("flow Tensor", out=True, twin=True, samples="x(2, 3), 2, 0, 1.5; z(3, 2), 1, -1, 2.0")
def renorm(input: Values, p: D.Number, dim: D.Dim, maxnorm: D.NonNegative) -> Tensor:
    """Return the input with its slices along a dimension scaled down to a norm of at most maxnorm.

    p: the order of the norm, above 0.
    ArgumentError: when p is not positive.
    ShapeError: when the input has less than two dimensions.

    >>> flow.renorm(flow.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if p <= 0:
        raise wrong("renorm", "p", "above 0", p, "take another norm", ArgumentError)
    ndim = input._data.ndim
    if ndim < 2:
        raise wrong("renorm", "input", "two dimensions or more", input, "unsqueeze it")
    norms = norm_for("renorm", input, p, tuple(d for d in range(ndim) if d != dim), True)
    return input * F.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)
