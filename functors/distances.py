"""Distances between all rows, and covariances of all rows: what users call."""

from __future__ import annotations

from typing import Annotated

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import DTypeError
from oneflow_lite.functors.checks import check_ndim, check_tensor, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.decompositions import check_fit
from oneflow_lite.functors.domains import AnyTensor, Int, NonNegative, RealFloating, choice
from oneflow_lite.functors.matmul import check_same_dtype
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

Weights = Tensor | None

CDIST = op_expr("cdist")

_MM = "use_mm_for_euclid_dist"
ComputeMode = Annotated[str, choice(f"{_MM}_if_necessary", _MM, f"donot_{_MM}")]


@functor(
    "flow",
    samples="""
        x(3, 2), x(4, 2); x(2, 1, 3, 2), x(3, 2, 2), 1; x(3, 2), x(2, 2), inf
        x(3, 2), x(2, 2), 0.5; x(3, 2), x(2, 2), 3; x(3, 2), x(2, 2), 0
        x(3, 2), x(2, 2), compute_mode='use_mm_for_euclid_dist'
    """,
)
def cdist(
    x1: RealFloating,
    x2: RealFloating,
    p: NonNegative = 2.0,
    compute_mode: ComputeMode = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Return the distances (Σ |x1_i - x2_j|^p)^(1/p) of all rows of two matrices.

    x1, x2: shapes (*, m, k) and (*, n, k), of one dtype; their batches broadcast.
    p: 0 counts what differs; inf gives the largest difference.
    compute_mode: whether distances for p = 2 are computed by a product of matrices, which is quick
        for many rows (more than 25 by default) and rough for rows that lie close together.
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
        raise wrong("cdist", "x2", expected, got, "reshape it")
    check_fit("cdist", x1.mT, x2.mT, "x2")
    many = x[-2] > 25 or y[-2] > 25
    mm = compute_mode == _MM or (compute_mode.endswith("necessary") and many)
    return dispatch(CDIST, (x1, x2), {"p": p, "mm": mm and p == 2})


@functor("flow functional", samples="x(4, 2); x(3, 2), 1; x(3, 2), inf; x(3, 2), 1.5")
def pdist(input: RealFloating, p: NonNegative = 2.0) -> Tensor:
    """Return the distances of each two rows of a matrix: those above the diagonal of `cdist`.

    ShapeError: when the input is not a matrix.
    """
    check_ndim("pdist", input, (2,))
    return F.upper_pairs(dispatch(CDIST, (input, input), {"p": p, "mm": False}))


@functor(
    "flow Tensor",
    samples="""
        x(2, 4); x(4), correction=0; z(2, 4), correction=2; x(2, 3), fweights=np.int64([1, 2, 3])
        x(2, 3), aweights=fixed(pos(3)), correction=0
    """,
)
def cov(
    input: AnyTensor, *, correction: Int = 1, fweights: Weights = None, aweights: Weights = None
) -> Tensor:
    """Return the covariances of the rows of a matrix, each of which holds what one variable was.

    input: at most two dimensions; a vector is one variable.
    correction: taken off the count of observations.
    fweights: integers, how often each observation counts.
    aweights: the weight of each observation.
    ShapeError: when a shape does not fit.
    DTypeError: when fweights are not integers, or aweights not floating.

    >>> flow.cov(flow.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if check_ndim("cov", input, (0, 1, 2))._data.ndim < 2:
        input = input.reshape(1, -1)
    count = input._data.shape[1]
    weights = None
    for argument, each, kinds in (("fweights", fweights, "iu"), ("aweights", aweights, "f")):
        if each is None:
            continue
        if check_tensor("cov", argument, each)._data.dtype.kind not in kinds:
            expected = "integers" if kinds == "iu" else "a real floating dtype"
            raise wrong("cov", argument, expected, each.dtype, "convert it", DTypeError)
        if each._data.shape != (count,):
            raise wrong("cov", argument, f"one weight for each of {count}", each, "reshape it")
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


@functor("flow Tensor", samples="x(2, 4); x(4); z(3, 4)")
def corrcoef(input: AnyTensor) -> Tensor:
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
