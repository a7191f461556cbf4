"""Products of matrices and vectors: what users call; shapes and dtypes are checked here.

Everything that multiplies matrices ends in the ops `matmul`, `matmul_nt` (linear) or `dot`; vectors
are given a second dimension for it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oneflow_lite.errors import DTypeError, ShapeError
from oneflow_lite.functors.checks import check_broadcast, check_dim, check_ndim, check_tensor
from oneflow_lite.functors.complex import conj
from oneflow_lite.functors.creation import eye, zeros_like
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Int, Square, Tensors
from oneflow_lite.functors.reduce import sum
from oneflow_lite.interpreter import dispatch1, dispatch2
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor

MATMUL = op_expr("matmul")
MATMUL_NT = op_expr("matmul_nt")
MATMUL_TN = op_expr("matmul_tn")
ADD = op_expr("add")
DOT = op_expr("dot")
RESHAPE = op_expr("reshape")
CLONE = op_expr("clone")

Shape = tuple[int, ...]


def _reshape(x: Tensor, shape: Shape) -> Tensor:
    return dispatch1(RESHAPE, x, {"shape": shape})


def _without_ones(product: Tensor, shape: Shape) -> Tensor:
    """Drop the dimension that a vector was given. Nobody else has the product: this is no view."""
    y = _reshape(product, shape)
    y._view = None
    return y


def check_same_dtype(op: str, x: Tensor, argument: str, y: Tensor) -> None:
    """Raise when the dtypes differ: PyTorch's products do not promote either."""
    try:
        if x._data.dtype == y._data.dtype:
            return
    except AttributeError:
        check_tensor(op, "input", x)
        check_tensor(op, argument, y)
    raise DTypeError(
        f"{op}(): argument '{argument}': expected dtype {x.dtype}, that of the first argument, "
        f"got {y.dtype}; convert one of them with .to(dtype)"
    )


def _misfit(op: str, argument: str, expected: str, x: Shape, y: Shape) -> Exception:
    return ShapeError(
        f"{op}(): argument '{argument}': expected {expected} to go with the shape {x} before "
        f"it, got shape {y}; transpose or reshape one of them"
    )


def _check_product(op: str, argument: str, x: Shape, y: Shape) -> None:
    """Check x (..., M, K) against y (..., K, N)."""
    if x[-1] != y[-2]:
        raise _misfit(op, argument, f"{x[-1]} rows", x, y)
    if len(x) > 2 and len(y) > 2 and x[:-2] != y[:-2]:
        try:
            np.broadcast_shapes(x[:-2], y[:-2])
        except ValueError:
            raise _misfit(op, argument, "batch sizes that broadcast", x, y) from None


@functor(
    "flow Tensor linalg",
    out=True,
    samples="""
        x(2, 3), x(3, 2)
        x(2, 2, 3), x(3, 2)
        x(2, 3), x(2, 3, 2)
        x(2, 1, 2, 3), x(2, 3, 2)
        x(3), x(3, 2)
        x(2, 3), x(3)
        x(3), x(3)
    """,
)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix product, `input @ other`.

    input: shape (K,) or (..., M, K).
    other: shape (K,) or (..., K, N), of the same dtype. Batch dimensions broadcast.
    returns: shape (..., M, N), without M or N where the argument is a vector.
    ShapeError: when an argument is 0-d, or the shapes do not fit.
    DTypeError: when the dtypes differ.

    >>> flow.matmul(flow.ones(2, 3), flow.ones(5, 3, 4)).shape
    (5, 2, 4)
    >>> flow.matmul(flow.tensor([1., 2.]), flow.tensor([3., 4.]))
    tensor(11.)
    """
    check_same_dtype("matmul", input, "other", other)
    x, y = input._data.shape, other._data.shape
    if len(x) > 1 < len(y):
        _check_product("matmul", "other", x, y)
        return dispatch2(MATMUL, input, other)
    if not x or not y:
        raise ShapeError(
            f"matmul(): argument '{'other' if x else 'input'}': expected at least one "
            f"dimension, got shapes {x} and {y}; multiply by a 0-d tensor with *"
        )
    if len(y) > 1:  # (K,) @ (..., K, N)
        _check_product("matmul", "other", x, y)
        row = dispatch2(MATMUL, _reshape(input, (1, *x)), other)
        return _without_ones(row, (*y[:-2], y[-1]))
    if x[-1] != y[0]:
        raise _misfit("matmul", "other", f"{x[-1]} elements", x, y)
    if len(x) > 1:  # (..., M, K) @ (K,)
        column = dispatch2(MATMUL, input, _reshape(other, (*y, 1)))
        return _without_ones(column, x[:-1])
    return dispatch2(DOT, input, other)


@functor(samples="x(2, 3), x(4, 3); x(2, 2, 3), x(2, 3); x(2, 2, 3), x(2, 4, 3)")
def matmul_nt(x: Tensor, y: Tensor) -> Tensor:
    """Return x yᵀ of two tensors of matrices; gradients use it, so nothing is checked."""
    return dispatch2(MATMUL_NT, x, y)


@functor(
    samples="""
        x(3, 2), x(3, 4), merge=False
        x(2, 3, 2), x(2, 3, 2), merge=False
        x(2, 3, 2), x(2, 3, 2), merge=True
    """
)
def matmul_tn(x: Tensor, y: Tensor, *, merge: bool) -> Tensor:
    """Return xᵀ y, summed over the batch with `merge`; see `matmul_nt`."""
    return dispatch2(MATMUL_TN, x, y, {"merge": merge})


# --- Products of exact ranks --------------------------------------------------------------------


def _product(
    op: str, x: Tensor, y: Tensor, ndims: tuple[int, int], names: tuple[str, str]
) -> Tensor:
    """Return x @ y for the ops that ask for exact numbers of dimensions."""
    check_ndim(op, x, ndims[:1], names[0])
    check_ndim(op, y, ndims[1:], names[1])
    check_same_dtype(op, x, names[1], y)
    a, b = x._data.shape, y._data.shape
    if a[-1] != b[-2 if ndims[1] > 1 else 0]:
        raise _misfit(op, names[1], f"{a[-1]} {'rows' if ndims[1] > 1 else 'elements'}", a, b)
    if ndims == (3, 3) and a[0] != b[0]:
        raise _misfit(op, names[1], f"batch size {a[0]}", a, b)
    return matmul(x, y)


@functor("flow Tensor", out=True, samples="x(2, 3), x(3, 2)")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices, (M, K) and (K, N); no broadcasting.

    ShapeError, DTypeError: as `matmul`, and when an argument is not a matrix.

    >>> flow.mm(flow.tensor([[1., 2.]]), flow.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    return _product("mm", input, mat2, (2, 2), ("input", "mat2"))


@functor("flow Tensor", out=True, samples="x(2, 2, 3), x(2, 3, 2)")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of two batches of matrices, (B, M, K) and (B, K, N); no broadcasting.

    ShapeError, DTypeError: as `matmul`, and when an argument is not 3-d or the batch sizes differ.

    >>> flow.bmm(flow.ones(5, 2, 3), flow.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    return _product("bmm", input, mat2, (3, 3), ("input", "mat2"))


@functor("flow Tensor", out=True, samples="x(2, 3), x(3)")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix (M, K) and a vector (K,).

    ShapeError, DTypeError: as `matmul`, and when an argument has another number of dimensions.

    >>> flow.mv(flow.tensor([[1., 2.], [3., 4.]]), flow.tensor([1., 1.]))
    tensor([3., 7.])
    """
    return _product("mv", input, vec, (2, 1), ("input", "vec"))


@functor("flow Tensor", out=True, samples="x(3), x(3)")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return Σ input · tensor of two vectors of equal length; nothing is conjugated.

    ShapeError, DTypeError: as `matmul`, and when an argument is not a vector.

    >>> flow.dot(flow.tensor([2, 3]), flow.tensor([2, 1]))
    tensor(7)
    """
    return _product("dot", input, tensor, (1, 1), ("input", "tensor"))


@functor("flow Tensor", out=True, samples="x(3), x(3); z(3), z(3)")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Return Σ conj(input) · other of two vectors of equal length.

    ShapeError, DTypeError: as `dot`.

    >>> flow.vdot(flow.tensor([1j, 2j]), flow.tensor([1j, 1j]))
    tensor(3.+0.j)
    """
    check_ndim("vdot", input, (1,))
    return _product("vdot", conj(input), other, (1, 1), ("input", "other"))


@functor("flow Tensor", out=True, alias="ger", samples="x(3), x(2)")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return the matrix of all products of elements of two vectors, (M,) and (N,): (M, N).

    ShapeError: when an argument is not a vector.

    >>> flow.outer(flow.tensor([1., 2.]), flow.tensor([1., 10.]))
    tensor([[ 1., 10.],
            [ 2., 20.]])
    """
    check_ndim("outer", input, (1,))
    check_ndim("outer", vec2, (1,), "vec2")
    return _reshape(input, (*input._data.shape, 1)) * vec2


@functor("flow Tensor", out=True, samples="x(2, 3), x(4, 3); x(3), x(2, 2, 3); x(2), x()")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Return the products of the last dimensions of two tensors, summed: (..., K) and (*, K).

    A 0-d argument multiplies the other one.

    returns: shape (..., *).
    ShapeError: when the last sizes differ.
    DTypeError: when the dtypes differ.

    >>> flow.inner(flow.tensor([1., 2.]), flow.tensor([[1., 0.], [1., 1.]]))
    tensor([1., 3.])
    """
    check_same_dtype("inner", input, "other", other)
    x, y = input._data.shape, other._data.shape
    if not x or not y:
        return input * other
    if x[-1] != y[-1]:
        raise _misfit("inner", "other", f"a last size of {x[-1]}", x, y)
    rows = _reshape(input, (math.prod(x[:-1]), x[-1]))
    columns = _reshape(other, (math.prod(y[:-1]), y[-1]))
    return _without_ones(dispatch2(MATMUL_NT, rows, columns), (*x[:-1], *y[:-1]))


@functor("linalg", out=True, samples="x(2, 3), x(2, 3); z(2, 3), z(3), dim=-1; x(2, 3), x(), dim=0")
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return Σ conj(x) · y along one dimension; the other ones broadcast.

    ShapeError: when the shapes do not broadcast.
    DTypeError: when the dtypes differ.

    >>> flow.linalg.vecdot(flow.ones(2, 3), flow.tensor([1., 2., 3.]))
    tensor([6., 6.])
    """
    check_same_dtype("linalg.vecdot", x, "y", y)
    check_broadcast("linalg.vecdot", "y", y, x)
    products = conj(x) * y
    return sum(products, check_dim("linalg.vecdot", dim, products._data.ndim))


# --- Products added to something ----------------------------------------------------------------


def _added(op: str, input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """Return beta · input + alpha · product; with beta 0 the input is ignored, NaN and all."""
    check_same_dtype(op, product, "input", input)
    shape, wanted = input._data.shape, product._data.shape
    aligned = zip(reversed(shape), reversed(wanted), strict=False)
    if len(shape) > len(wanted) or any(a not in (1, b) for a, b in aligned):
        raise ShapeError(
            f"{op}(): argument 'input': expected a shape that expands to that of the product, "
            f"{wanted}, got shape {shape}; reshape it"
        )
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return (input if beta == 1 else input * beta) + product


@functor(
    "flow Tensor",
    out=True,
    twin=True,
    samples="x(2, 2), x(2, 3), x(3, 2), beta=0; x(2), x(2, 3), x(3, 2), beta=2, alpha=0.5",
)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta · input + alpha · (mat1 @ mat2).

    input: of a shape that expands to (M, N). With beta 0 it is ignored, NaN and all.
    mat1, mat2: matrices (M, K) and (K, N).
    beta, alpha: factors.
    ShapeError, DTypeError: as `mm`, and when `input` does not expand to the product.

    >>> flow.addmm(flow.ones(3), flow.ones(2, 4), flow.ones(4, 3), alpha=2)
    tensor([[9., 9., 9.],
            [9., 9., 9.]])
    """
    product = _product("addmm", mat1, mat2, (2, 2), ("mat1", "mat2"))
    return _added("addmm", input, product, beta, alpha)


@functor("flow Tensor", out=True, twin=True, samples="x(2), x(2, 3), x(3), beta=2")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta · input + alpha · (mat @ vec), for a matrix (M, K) and a vector (K,).

    Parameters and errors are those of `addmm`.

    >>> flow.addmv(flow.ones(2), flow.ones(2, 3), flow.ones(3), beta=10)
    tensor([13., 13.])
    """
    product = _product("addmv", mat, vec, (2, 1), ("mat", "vec"))
    return _added("addmv", input, product, beta, alpha)


@functor("flow Tensor", out=True, twin=True, samples="x(2, 2, 2), x(2, 2, 3), x(2, 3, 2), alpha=3")
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """Return beta · input + alpha · (batch1 @ batch2), for batches (B, M, K) and (B, K, N).

    Parameters and errors are those of `addmm`.

    >>> flow.baddbmm(flow.ones(1), flow.ones(5, 2, 3), flow.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    product = _product("baddbmm", batch1, batch2, (3, 3), ("batch1", "batch2"))
    return _added("baddbmm", input, product, beta, alpha)


@functor("flow Tensor", out=True, twin=True, samples="x(2, 2), x(2, 2, 3), x(2, 3, 2), beta=2")
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """Return beta · input + alpha · Σ batch1 @ batch2, summed over the batch.

    Parameters and errors are those of `addmm`.

    >>> flow.addbmm(flow.ones(1, 1), flow.ones(5, 1, 3), flow.ones(5, 3, 1))
    tensor([[16.]])
    """
    product = _product("addbmm", batch1, batch2, (3, 3), ("batch1", "batch2"))
    return _added("addbmm", input, sum(product, 0), beta, alpha)


@functor(
    "flow Tensor", out=True, twin=True, samples="x(3, 2), x(3), x(2), alpha=2; x(1), x(3), x(2)"
)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta · input + alpha · outer(vec1, vec2).

    Parameters and errors are those of `addmm`.

    >>> flow.addr(flow.ones(1), flow.tensor([1.0, 2.0]), flow.tensor([1.0, 10.0]))
    tensor([[ 2., 11.],
            [ 3., 21.]])
    """
    check_ndim("addr", vec1, (1,), "vec1")
    check_ndim("addr", vec2, (1,), "vec2")
    return _added("addr", input, outer(vec1, vec2), beta, alpha)


@functor(
    "functional",
    out=True,
    samples="""
        x(2, 3), x(4, 3), x(4)
        x(2, 2, 3), x(2, 3), x(2)
        x(2, 3), x(4, 3)
        x(3), x(4, 3), x(4)
    """,
)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return input @ weightᵀ + bias.

    input: shape (..., in_features).
    weight: shape (out_features, in_features), or (in_features,).
    bias: shape (out_features,), or 0-d.
    returns: shape (..., out_features), or (...,) for a weight that is a vector.
    ShapeError: when the shapes do not fit.
    DTypeError: when the dtypes differ.

    >>> flow.nn.functional.linear(flow.ones(2, 3), flow.ones(4, 3), flow.ones(4))
    tensor([[4., 4., 4., 4.],
            [4., 4., 4., 4.]])
    """
    check_same_dtype("linear", input, "weight", weight)
    x, w = input._data.shape, weight._data.shape
    if not 1 <= len(w) <= 2 or not x or x[-1] != w[-1]:
        size = x[-1] if x else "the input's last size"
        raise _misfit("linear", "weight", f"shape (out_features, {size})", x, w)
    if bias is not None:
        check_same_dtype("linear", input, "bias", bias)
        b, n = bias._data.shape, w[0] if len(w) == 2 else 1
        if len(b) > 1 or (b and b[0] != n and b[0] != 1) or (b and len(w) == 1):
            raise _misfit("linear", "bias", f"shape {w[:-1]}", w, b)
    if len(w) == 1:
        product = matmul(input, weight)
    elif len(x) == 1:
        product = _without_ones(dispatch2(MATMUL_NT, _reshape(input, (1, *x)), weight), w[:1])
    else:
        product = dispatch2(MATMUL_NT, input, weight)
    return product if bias is None else dispatch2(ADD, product, bias)


# --- Chains and powers --------------------------------------------------------------------------


@functor("linalg", out=True, samples="[x(2, 3), x(3, 1), x(1, 2)]; [x(3), x(3, 2), x(2)]")
def linalg_multi_dot(tensors: Tensors) -> Tensor:
    """Return the product of two matrices or more, multiplied in the order that is cheapest.

    tensors: matrices; the first and the last may be vectors.
    ShapeError: when the shapes do not fit.

    >>> flow.linalg.multi_dot([flow.ones(2, 3), flow.ones(3, 1), flow.ones(1, 2)])
    tensor([[3., 3.],
            [3., 3.]])
    """
    return _chain("linalg.multi_dot", list(tensors))


@functor("flow", out=True, samples="x(2, 3), x(3, 1), x(1, 2); x(2, 3)")
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Return the product of matrices; the older name of `linalg.multi_dot`.

    ShapeError: when the shapes do not fit.

    >>> flow.chain_matmul(flow.ones(2, 3), flow.ones(3, 2))
    tensor([[3., 3.],
            [3., 3.]])
    """
    return _chain("chain_matmul", list(matrices))


def _chain(op: str, tensors: list[Tensor]) -> Tensor:
    last = len(tensors) - 1
    for i, x in enumerate(tensors):
        check_ndim(op, x, (1, 2) if i in (0, last) else (2,), f"tensors[{i}]")
        check_same_dtype(op, tensors[0], f"tensors[{i}]", x)
    sizes = [x._data.shape[0] for x in tensors] + [tensors[-1]._data.shape[-1]]
    if tensors[0]._data.ndim == 1:
        sizes[0] = 1
    for i in range(last):
        x, y = tensors[i]._data.shape, tensors[i + 1]._data.shape
        if x[-1] != y[0]:
            raise _misfit(op, f"tensors[{i + 1}]", f"{x[-1]} rows", x, y)
    if tensors[-1]._data.ndim == 1:
        sizes[-1] = 1
    return _multiply(tensors, _splits(sizes), 0, last)


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return where to part each run of factors so that the fewest numbers are multiplied."""
    n = len(sizes) - 1
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


def _multiply(tensors: list[Tensor], split: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return tensors[i]
    k = split[i, j]
    return matmul(_multiply(tensors, split, i, k), _multiply(tensors, split, k + 1, j))


@functor("flow Tensor linalg", out=True, samples="m(2), 0; m(2, 2), 3; zm(2), -2; m(3), 1")
def matrix_power(input: Square, n: Int) -> Tensor:
    """Return the n-th power of square matrices; of their inverses for a negative n.

    LinAlgError: when a matrix is singular and n is negative.

    >>> flow.linalg.matrix_power(flow.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    if n == 0:
        one = eye(input._data.shape[-1], dtype=input.dtype, device=input.device)
        return zeros_like(input) + one
    if n < 0:
        return _power(FUNCTORS.get("linalg_inv")(input), -n)
    return dispatch1(CLONE, input) if n == 1 else _power(input, n)


def _power(x: Tensor, n: int) -> Tensor:
    if n == 1:
        return x
    half = _power(x, n // 2)
    square = matmul(half, half)
    return matmul(square, x) if n % 2 else square
