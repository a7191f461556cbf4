"""Matrix products: what users call; shapes and dtypes are checked here.

Everything that multiplies matrices ends in the ops `matmul`, `matmul_nt` (linear) or `dot`; vectors
are given a second dimension for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.errors import DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_ndim, check_tensor
from oneflow_lite.functors.out import write_out
from oneflow_lite.interpreter import dispatch1, dispatch2
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

MATMUL = op_expr("matmul")
MATMUL_NT = op_expr("matmul_nt")
MATMUL_TN = op_expr("matmul_tn")
ADD = op_expr("add")
DOT = op_expr("dot")
RESHAPE = op_expr("reshape")

Shape = tuple[int, ...]


def _reshape(x: Tensor, shape: Shape) -> Tensor:
    return dispatch1(RESHAPE, x, {"shape": shape})


def _without_ones(product: Tensor, shape: tuple[int, ...]) -> Tensor:
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
    raise bad_argument(
        DTypeError,
        op,
        argument,
        expected=f"dtype {x.dtype}, that of the first argument",
        got=y.dtype,
        mend="convert one of them with .to(dtype)",
    )


def _misfit(op: str, argument: str, expected: str, x: Shape, y: Shape) -> Exception:
    return bad_argument(
        ShapeError,
        op,
        argument,
        expected=f"{expected} to go with the shape {x} before it",
        got=f"shape {y}",
        mend="transpose or reshape one of them",
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


@register_functor("matmul")
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the matrix product, `input @ other`.

    Parameters
    ----------
    input : Tensor
        Shape (K,) or (..., M, K).
    other : Tensor
        Shape (K,) or (..., K, N), of the same dtype. Batch dimensions broadcast.
    out : Tensor, optional
        Receives the result.

    Returns
    -------
    Tensor
        Shape (..., M, N), without M or N where the argument is a vector.

    Raises
    ------
    ShapeError
        When an argument is 0-d, or the shapes do not fit.
    DTypeError
        When the dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.matmul(flow.ones(2, 3), flow.ones(5, 3, 4)).shape
    (5, 2, 4)
    >>> flow.matmul(flow.tensor([1., 2.]), flow.tensor([3., 4.]))
    tensor(11.)
    """
    if out is not None:
        return write_out("matmul", out, matmul, input, other)
    check_same_dtype("matmul", input, "other", other)
    x, y = input._data.shape, other._data.shape
    if len(x) > 1 < len(y):
        _check_product("matmul", "other", x, y)
        return dispatch2(MATMUL, input, other)
    if not x or not y:
        raise bad_argument(
            ShapeError,
            "matmul",
            "other" if x else "input",
            expected="at least one dimension",
            got=f"shapes {x} and {y}",
            mend="multiply by a 0-d tensor with *",
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


@register_functor("matmul_nt")
def matmul_nt(x: Tensor, y: Tensor) -> Tensor:
    """Return x yᵀ of two tensors of matrices; gradients use it, so nothing is checked.

    Examples
    --------
    >>> from oneflow_lite.registry import FUNCTORS
    >>> import oneflow_lite as flow
    >>> FUNCTORS.get("matmul_nt")(flow.ones(2, 3), flow.ones(4, 3)).shape
    (2, 4)
    """
    return dispatch2(MATMUL_NT, x, y)


@register_functor("matmul_tn")
def matmul_tn(x: Tensor, y: Tensor, *, merge: bool) -> Tensor:
    """Return xᵀ y of two tensors of matrices, summed over the batch with `merge`; see `matmul_nt`.

    Examples
    --------
    >>> from oneflow_lite.registry import FUNCTORS
    >>> import oneflow_lite as flow
    >>> FUNCTORS.get("matmul_tn")(flow.ones(5, 3, 2), flow.ones(5, 3, 4), merge=True).shape
    (2, 4)
    """
    return dispatch2(MATMUL_TN, x, y, {"merge": merge})


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


@register_functor("mm")
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the product of two matrices, (M, K) and (K, N); no broadcasting.

    Raises
    ------
    ShapeError, DTypeError
        As `matmul`, and when an argument is not a matrix.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.mm(flow.tensor([[1., 2.]]), flow.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    if out is not None:
        return write_out("mm", out, mm, input, mat2)
    return _product("mm", input, mat2, (2, 2), ("input", "mat2"))


@register_functor("bmm")
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the products of two batches of matrices, (B, M, K) and (B, K, N); no broadcasting.

    Raises
    ------
    ShapeError, DTypeError
        As `matmul`, and when an argument is not 3-d or the batch sizes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.bmm(flow.ones(5, 2, 3), flow.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    if out is not None:
        return write_out("bmm", out, bmm, input, mat2)
    return _product("bmm", input, mat2, (3, 3), ("input", "mat2"))


@register_functor("mv")
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the product of a matrix (M, K) and a vector (K,).

    Raises
    ------
    ShapeError, DTypeError
        As `matmul`, and when an argument has another number of dimensions.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.mv(flow.tensor([[1., 2.], [3., 4.]]), flow.tensor([1., 1.]))
    tensor([3., 7.])
    """
    if out is not None:
        return write_out("mv", out, mv, input, vec)
    return _product("mv", input, vec, (2, 1), ("input", "vec"))


@register_functor("dot")
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return Σ input · tensor of two vectors of equal length; nothing is conjugated.

    Raises
    ------
    ShapeError, DTypeError
        As `matmul`, and when an argument is not a vector.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.dot(flow.tensor([2, 3]), flow.tensor([2, 1]))
    tensor(7)
    """
    if out is not None:
        return write_out("dot", out, dot, input, tensor)
    return _product("dot", input, tensor, (1, 1), ("input", "tensor"))


@register_functor("outer")
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the matrix of all products of elements of two vectors, (M,) and (N,): (M, N).

    Raises
    ------
    ShapeError
        When an argument is not a vector.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.outer(flow.tensor([1., 2.]), flow.tensor([1., 10.]))
    tensor([[ 1., 10.],
            [ 2., 20.]])
    """
    if out is not None:
        return write_out("outer", out, outer, input, vec2)
    check_ndim("outer", input, (1,))
    check_ndim("outer", vec2, (1,), "vec2")
    return _reshape(input, (*input._data.shape, 1)) * vec2


def _added(op: str, input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """Return beta · input + alpha · product; with beta 0 the input is ignored, NaN and all."""
    check_same_dtype(op, product, "input", input)
    shape, wanted = input._data.shape, product._data.shape
    aligned = zip(reversed(shape), reversed(wanted), strict=False)
    if len(shape) > len(wanted) or any(a not in (1, b) for a, b in aligned):
        raise bad_argument(
            ShapeError,
            op,
            "input",
            expected=f"a shape that expands to that of the product, {wanted}",
            got=f"shape {shape}",
            mend="reshape it",
        )
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return (input if beta == 1 else input * beta) + product


@register_functor("addmm")
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Return beta · input + alpha · (mat1 @ mat2).

    Parameters
    ----------
    input : Tensor
        Of a shape that expands to (M, N). With beta 0 it is ignored, NaN and all.
    mat1, mat2 : Tensor
        Matrices (M, K) and (K, N).
    beta, alpha : number
        Factors.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    ShapeError, DTypeError
        As `mm`, and when `input` does not expand to the product.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.addmm(flow.ones(3), flow.ones(2, 4), flow.ones(4, 3), alpha=2)
    tensor([[9., 9., 9.],
            [9., 9., 9.]])
    """
    if out is not None:
        return write_out("addmm", out, addmm, input, mat1, mat2, beta=beta, alpha=alpha)
    product = _product("addmm", mat1, mat2, (2, 2), ("mat1", "mat2"))
    return _added("addmm", input, product, beta, alpha)


@register_functor("addmv")
def addmv(
    input: Tensor,
    mat: Tensor,
    vec: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Return beta · input + alpha · (mat @ vec), for a matrix (M, K) and a vector (K,).

    Parameters and errors are those of `addmm`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.addmv(flow.ones(2), flow.ones(2, 3), flow.ones(3), beta=10)
    tensor([13., 13.])
    """
    if out is not None:
        return write_out("addmv", out, addmv, input, mat, vec, beta=beta, alpha=alpha)
    product = _product("addmv", mat, vec, (2, 1), ("mat", "vec"))
    return _added("addmv", input, product, beta, alpha)


@register_functor("baddbmm")
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:
    """Return beta · input + alpha · (batch1 @ batch2), for batches (B, M, K) and (B, K, N).

    Parameters and errors are those of `addmm`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.baddbmm(flow.ones(1), flow.ones(5, 2, 3), flow.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    if out is not None:
        return write_out("baddbmm", out, baddbmm, input, batch1, batch2, beta=beta, alpha=alpha)
    product = _product("baddbmm", batch1, batch2, (3, 3), ("batch1", "batch2"))
    return _added("baddbmm", input, product, beta, alpha)


@register_functor("linear")
def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return input @ weightᵀ + bias.

    Parameters
    ----------
    input : Tensor
        Shape (..., in_features).
    weight : Tensor
        Shape (out_features, in_features), or (in_features,).
    bias : Tensor, optional
        Shape (out_features,), or 0-d.
    out : Tensor, optional
        Receives the result.

    Returns
    -------
    Tensor
        Shape (..., out_features), or (...,) for a weight that is a vector.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    DTypeError
        When the dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.linear(flow.ones(2, 3), flow.ones(4, 3), flow.ones(4))
    tensor([[4., 4., 4., 4.],
            [4., 4., 4., 4.]])
    """
    if out is not None:
        return write_out("linear", out, linear, input, weight, bias)
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
