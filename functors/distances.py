"""Norms, distances, angles, covariances, condition and rank: functions that users call."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any

import numpy as np

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError, FlowError, ShapeError, arg_error
from oneflow_lite.functors.declaring import checks, domains as D
from oneflow_lite.functors.declaring.checks import check_broadcast, check_dims, check_ndim
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import IntOrInts, Order, TensorOrNumber
from oneflow_lite.functors.decompositions import check_fit
from oneflow_lite.functors.linalg import Half, Tol, tolerances
from oneflow_lite.functors.matmul import check_same_dtype
from oneflow_lite.functors.statistics import NormDType, norm_for
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1, promote
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

CDIST = op_expr("cdist")

_linalg = functools.partial(functor, "linalg", out="same")
_method = functools.partial(functor, "flow Tensor")
_functional = functools.partial(functor, "functional flow")
_singular_values = functools.partial(dispatch1, op_expr("linalg_svdvals"))

Data = D.FloatingOrComplex
Keep = D.KeepDim
Cast = NormDType
_ALL = "The dimensions to reduce; None and () mean all."
Axes = Annotated[Any, D.Domain(_ALL, type="int or sequence of int")]
Weights = Tensor | None
_MM = "use_mm_for_euclid_dist"
ComputeMode = Annotated[str, D.choice(f"{_MM}_if_necessary", _MM, f"donot_{_MM}")]


@_linalg(
    samples="""x(2, 3); x(2, 3), 3, -1; x(2, 3), inf, 0, True
        x(2, 3), -inf; z(2, 3), 0.5, (0, 1); x(2, 3), 0"""
)
def linalg_vector_norm(
    input: Data, ord: D.Number = 2, dim: Axes = None, keepdim: Keep = False, *, dtype: Cast = None
) -> Tensor:
    """Return (Σ |x|^ord)^(1/ord), a real number; where it is 0 its gradient is 0.

    ord: 0 counts the elements that are not zero; inf and -inf give the largest and smallest |x|,
        whose gradient ties share.
    DimError: when a dimension is out of range, given twice, or empty where ord is inf or negative.

    >>> flow.linalg.vector_norm(flow.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return norm_for("linalg.vector_norm", input, ord, dim, keepdim)


def _bad_order_error(op: str, expected: str, got: Any) -> FlowError:
    return arg_error(op, "ord", expected, repr(got), "name one of these", ArgumentError)


@_linalg(
    samples="""x(2, 3); x(2, 3), 'nuc', keepdim=True; x(2, 3, 2), 1, (0, -1)
        x(2, 3), -inf; z(2, 3), 2; x(2, 3), -2"""
)
def linalg_matrix_norm(
    input: Data,
    ord: Order = "fro",
    dim: IntOrInts = (-2, -1),
    keepdim: Keep = False,
    *,
    dtype: Cast = None,
) -> Tensor:
    """Return the norm of the matrices in two dimensions.

    ord: "fro" the root of the sum of squares, "nuc" the sum of singular values, 2 and -2 the
        largest and smallest of them, 1 and -1 the largest and smallest Σ |x| of a column, inf and
        -inf of a row. Gradients at kinks are those of `amax`, `svdvals` and `vector_norm`.
    ArgumentError: when ord is another.
    DimError: when a dimension is out of range or given twice.

    >>> flow.linalg.matrix_norm(flow.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    return _matrix_norm("linalg.matrix_norm", input, ord, dim, keepdim)


def _matrix_norm(op: str, A: Tensor, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    dims = check_dims(op, dim, A._data.ndim)
    if len(dims) != 2:
        got, hint = f"{dim} for shape {A.shape}", "use linalg.vector_norm for other numbers of them"
        raise arg_error(op, "dim", "the two dimensions of matrices", got, hint)
    if ord == "fro":
        return norm_for(op, A, 2, dims, keepdim)
    if ord == "nuc" or ord in (2, -2):
        values = _singular_values(A.movedim(dims, (-2, -1)))
        norm = values.sum(-1) if ord == "nuc" else _extreme(values, ord, -1)
        for dim in sorted(dims) if keepdim else ():
            norm = norm.unsqueeze(dim)
        return norm
    if ord not in (1, -1, math.inf, -math.inf):
        raise _bad_order_error(op, "'fro', 'nuc', 2, -2, 1, -1, inf or -inf", ord)
    summed, rest = dims if ord in (1, -1) else reversed(dims)
    if not keepdim and rest > summed:  # the sum has dropped a dimension in front of it
        rest -= 1
    return _extreme(A.abs().sum(summed, keepdim), ord, rest, keepdim)


def _extreme(values: Tensor, ord: float, dim: int, keepdim: bool = False) -> Tensor:
    """Return the largest values for a positive ord, the smallest for a negative one.

    Of none the largest is 0, since norms are not negative.
    """
    if ord > 0 and not values._data.shape[dim]:
        return values.sum(dim, keepdim)
    return values.amax(dim, keepdim) if ord > 0 else values.amin(dim, keepdim)


@_linalg(
    samples="""x(2, 3); x(3), 3; x(2, 3), 'nuc'; x(2, 3), inf, 1
        x(2, 3), 1, (0, 1), True; z(2, 3), dim=0"""
)
def linalg_norm(
    input: Data, ord: Order = None, dim: Axes = None, keepdim: Keep = False, *, dtype: Cast = None
) -> Tensor:
    """Return `matrix_norm` where `dim` or the input has two dimensions, else `vector_norm`.

    ord: as there; None is 2 of all the elements, whatever their dimensions.
    ShapeError: when there are more than two dimensions, and an ord.
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
        raise arg_error(op, "dim", expected, got, "name them, or leave out ord")
    if isinstance(ord, str):
        raise _bad_order_error(op, "a number for vectors", ord)
    return norm_for(op, input, ord, dims, keepdim)


@_linalg(out=True, samples="x(3, 2); m(2, 3), 1; m(3), 'nuc'; zm(2), -2; m(2), 'fro'")
def linalg_cond(input: D.Matrix, p: Order = None) -> Tensor:
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
    inverse = F.where((info > 0).unsqueeze(-1).unsqueeze(-1), 0.0, inverse)
    norms = [_matrix_norm("linalg.cond", x, p, (-2, -1), False) for x in (input, inverse)]
    return F.where(info > 0, math.inf, norms[0] * norms[1])


@_linalg(out=True, samples="x(3, 2); spd(2, 2), hermitian=True; x(2, 2), rtol=0.5")
def linalg_matrix_rank(
    input: D.Matrix,
    tol: TensorOrNumber = None,
    hermitian: Half = False,
    *,
    atol: Tol = None,
    rtol: Tol = None,
) -> Tensor:
    """Return how many singular values do not count as 0.

    tol: atol, with an rtol of 0.

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


@_method(samples="x(2, 3), x(2, 3); x(2, 3), x(3), 1; x(4), x(4), inf; z(2), z(2), 3")
def dist(input: D.AnyTensor, other: Tensor, p: D.Number = 2) -> Tensor:
    """Return `linalg.vector_norm` of input - other, of all elements; at 0 the gradient is 0.

    ShapeError: when the shapes do not broadcast.
    """
    return norm_for("dist", input - other, p, None, False)


@_method(out="same", twin=True, samples="x(2, 3), 2, 0, 1.5; z(3, 2), 1, -1, 2.0")
def renorm(input: Data, p: D.Number, dim: D.Dim, maxnorm: D.NonNegative) -> Tensor:
    """Return the input, its slices along a dimension scaled down to a p-norm of at most maxnorm.

    ArgumentError: when p is not positive.
    ShapeError: when the input has less than two dimensions.

    >>> flow.renorm(flow.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)[0]
    tensor([0.6000, 0.8000])
    """
    if p <= 0:
        raise arg_error("renorm", "p", "above 0", p, "take another norm", ArgumentError)
    ndim = input._data.ndim
    if ndim < 2:
        raise arg_error("renorm", "input", "two dimensions or more", input, "unsqueeze it")
    dtype = input.dtype
    if dtype.kind == "f":  # PyTorch's gradient is exact to the last digit
        input = input.double()
    norms = norm_for("renorm", input, p, tuple(d for d in range(ndim) if d != dim), True)
    # As in PyTorch, 1e-7 keeps scaled slices a little below the bound.
    return (input * F.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)).to(dtype)


# --- Distances and angles ------------------------------------------------------------------------


@functor(
    "flow",
    samples="""x(3, 2), x(4, 2); x(2, 1, 3, 2), x(3, 2, 2), 1; x(3, 2), x(2, 2), inf
        x(3, 2), x(2, 2), 0.5; x(3, 2), x(2, 2), 3; x(3, 2), x(2, 2), 0
        x(3, 2), x(2, 2), compute_mode='use_mm_for_euclid_dist'""",
)
def cdist(
    x1: D.RealFloating,
    x2: D.RealFloating,
    p: D.NonNegative = 2.0,
    compute_mode: ComputeMode = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Return the distances (Σ |x1_i - x2_j|^p)^(1/p) of all rows of two matrices.

    x1, x2: shapes (*, m, k) and (*, n, k), of one dtype; their batches broadcast.
    p: 0 counts the elements that differ; inf gives the largest difference.
    compute_mode: whether to use a product of matrices for p = 2; by default for more than 25 rows.
        It is quick for many rows, and rough for rows that lie close together.
    returns: shape (*, m, n). A distance of 0 has the gradient 0.
    ShapeError: when the shapes do not fit.
    DTypeError: when the dtypes differ.

    >>> flow.cdist(flow.tensor([[0.0, 0.0]]), flow.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    check_same_dtype("cdist", x1, "x2", x2)
    x, y = x1._data.shape, x2._data.shape
    if len(x) < 2 or len(y) < 2 or x[-1] != y[-1]:
        expected, got = "two matrices with rows of one length", f"shape {x} and {y}"
        raise arg_error("cdist", "x2", expected, got, "reshape it")
    if x[:-2] != y[:-2]:
        check_fit("cdist", x1.mT, x2.mT, "x2")
    many = x[-2] > 25 or y[-2] > 25
    mm = compute_mode == _MM or (compute_mode.endswith("necessary") and many)
    return dispatch(CDIST, (x1, x2), {"p": p, "mm": mm and p == 2})


@functor("flow functional", samples="x(4, 2); x(3, 2), 1; x(3, 2), inf; x(3, 2), 1.5")
def pdist(input: D.RealFloating, p: D.NonNegative = 2.0) -> Tensor:
    """Return the distances of each two rows of a matrix: those above the diagonal of `cdist`.

    ShapeError: when the input is no matrix.
    """
    check_ndim("pdist", input, (2,))
    return F.upper_pairs(dispatch(CDIST, (input, input), {"p": p, "mm": False}))


@functor("functional", out=True, samples="x(2, 3); x(3, 2), 3, -2, 5.0; x(2, 3), 1, (0, 1)")
def normalize(
    input: D.AnyTensor, p: D.Number = 2.0, dim: IntOrInts = 1, eps: D.Number = 1e-12
) -> Tensor:
    """Divide vectors, floating or complex, by their norm: x / max(‖x‖, eps).

    dim: the dimension or dimensions that the vectors lie along.
    DimError: when a dimension is out of range.
    DTypeError: when the input holds integers.

    >>> flow.nn.functional.normalize(flow.tensor([[3., 4.]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / norm_for("normalize", input, p, dim, keepdim=True).clamp_min(eps)


@_functional(samples="x(2, 3), x(2, 3); x(2, 1, 3), x(2, 1), dim=-1; x(3), x(3), 0")
def cosine_similarity(
    x1: D.AnyTensor, x2: D.AnyTensor, dim: D.Int = 1, eps: D.Number = 1e-8
) -> Tensor:
    """Return the cosine of the angle between vectors: x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps)).

    x1, x2: floating; their shapes broadcast together.
    dim: that of the common shape along which the vectors lie.
    ShapeError: when the shapes do not broadcast.
    DimError: when the dimension is out of range.
    DTypeError: when the common dtype is not real floating.

    >>> flow.cosine_similarity(flow.tensor([[3., 4.]]), flow.tensor([[4., 3.]]))
    tensor([0.9600])
    """
    op = "cosine_similarity"
    shape = check_broadcast(op, "x2", x2, x1)
    dim = checks.check_dim(op, dim, len(shape))
    x, y = (checks.real_floating(op, each, "x1").expand(shape) for each in promote(op, x1, x2))
    norms = [norm_for(op, each, 2, dim, keepdim=True).clamp_min(eps) for each in (x, y)]
    return (x / norms[0] * (y / norms[1])).sum(dim)


@_functional(samples="x(2, 3), x(2, 3); x(2, 1, 3), x(2, 1), 1.0, keepdim=True; x(3), x(3), 3")
def pairwise_distance(
    x1: D.AnyTensor, x2: D.AnyTensor, p: D.Number = 2.0, eps: D.Number = 1e-6, keepdim: Keep = False
) -> Tensor:
    """Return the norm ‖x1 - x2 + eps‖ of the last dimension; eps keeps it from its kink at 0.

    ShapeError: when the shapes do not broadcast.
    """
    check_broadcast("pairwise_distance", "x2", x2, x1)
    return norm_for("pairwise_distance", x1 - x2 + eps, p, -1, keepdim=keepdim)


@_functional(samples="x(2, 3), x(2, 4), x(5, 3, 4), x(5); x(3), x(4), x(2, 3, 4)")
def bilinear(
    input1: D.AnyTensor, input2: D.AnyTensor, weight: D.AnyTensor, bias: D.AnyTensor | None = None
) -> Tensor:
    """Return Σ input1_i weight_oij input2_j + bias_o.

    input1, input2: (*, I) and (*, J), with the same leading dimensions.
    weight, bias: (O, I, J) and (O,).
    ShapeError: when the shapes do not fit.
    DTypeError: when the dtypes differ.

    >>> flow.nn.functional.bilinear(flow.ones(2), flow.ones(2), flow.ones(1, 2, 2))
    tensor([4.])
    """
    outs, *sizes = weight.shape if weight.ndim == 3 else (0, 0, 0)
    for name, x, shape in (
        ("weight", weight, (outs, *sizes)),
        ("input1", input1, (*input2.shape[:-1], sizes[0])),
        ("input2", input2, (*input1.shape[:-1], sizes[1])),
        ("bias", bias, (outs,)),
    ):
        if x is not None and (x.shape != shape or x.dtype != weight.dtype):
            expected = f"shape {shape} and dtype {weight.dtype}"
            got, kind = (x, ShapeError) if x.shape != shape else (x.dtype, DTypeError)
            raise arg_error("bilinear", name, expected, got, "match the weight", kind)
    y = F.einsum("...i,oij,...j->...o", input1, weight, input2)
    return y if bias is None else y + bias


# --- Covariances ---------------------------------------------------------------------------------


@_method(
    samples="""
        x(2, 4); x(4), correction=0; z(2, 4), correction=2; x(2, 3), fweights=np.int64([1, 2, 3])
        x(2, 3), aweights=fixed(pos(3)), correction=0"""
)
def cov(
    input: D.AnyTensor, *, correction: D.Int = 1, fweights: Weights = None, aweights: Weights = None
) -> Tensor:
    """Return the covariances of the rows of a matrix; a row, or a vector, is one variable.

    correction: taken off the count of observations.
    fweights, aweights: how often each observation counts (integers), and its weight.
    ShapeError: when a shape does not fit.
    DTypeError: when fweights are not integers, or aweights not floating.
    ArgumentError: when a weight is negative; on CUDA they are not looked at.

    >>> flow.cov(flow.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))[0]
    tensor([ 1., -1.])
    """
    input = checks.numeric("cov", check_ndim("cov", input, (0, 1, 2)))
    input = checks.floating("cov", input.reshape(1, -1) if input._data.ndim < 2 else input)
    count = input._data.shape[1]
    weights = None
    for argument, each, kinds in (("fweights", fweights, "iu"), ("aweights", aweights, "f")):
        if each is None:
            continue
        if checks.check_tensor("cov", argument, each)._data.dtype.kind not in kinds:
            expected = "integers" if kinds == "iu" else "a real floating dtype"
            raise arg_error("cov", argument, expected, each.dtype, "convert it", DTypeError)
        each = each if each._data.ndim else each.reshape(1)
        if each._data.shape != (count,):
            raise arg_error("cov", argument, f"one weight for each of {count}", each, "reshape it")
        if type(each._data) is np.ndarray and (each._data < 0).any():
            hint = "leave those observations out"
            raise arg_error("cov", argument, "no negative weight", each, hint, ArgumentError)
        weights = each if weights is None else weights * each
    if weights is None:
        weighted = centred = input - input.mean(1, True)
        factor = max(count - correction, 0)
    else:
        total = weights.sum()
        centred = input - ((input * weights).sum(1) / total).unsqueeze(1)
        taken = correction if aweights is None else (weights * aweights).sum() / total * correction
        weighted, factor = centred * weights, (total - taken).clamp_min(0)
    return (centred @ weighted.mT.conj() / factor).squeeze()


@_method(samples="x(2, 4); x(4); z(3, 4)")
def corrcoef(input: D.AnyTensor) -> Tensor:
    """Return the correlation coefficients of the rows of a matrix, by `cov`.

    ShapeError: when it has more than two dimensions.
    """
    covariance = cov(check_ndim("corrcoef", input, (0, 1, 2)))
    if not covariance._data.ndim:
        return covariance / covariance
    deviation = covariance.diagonal().real.sqrt()
    y = covariance / deviation.unsqueeze(1) / deviation
    if y.is_complex():
        return F.complex(y.real.clamp(-1, 1), y.imag.clamp(-1, 1))
    return y.clamp(-1, 1)
