"""Products of matrices and vectors: functions that users call, which check shapes and dtypes.

Everything that multiplies matrices ends in the ops `matmul`, `matmul_nt` (linear) or `dot`; vectors
are given a second dimension for it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from oneflow_lite.arrays.size import fits
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import DTypeError, FlowError, ShapeError, arg_error
from oneflow_lite.functors.arithmetic import scaled
from oneflow_lite.functors.declaring.checks import (
    cast,
    check_broadcast,
    check_dim,
    check_ndim,
    check_tensor,
)
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import Domain, Int, Square, Tensors, Vector
from oneflow_lite.interpreter.dispatch import dispatch1, dispatch2, promote
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

MATMUL = op_expr("matmul")
MATMUL_NT = op_expr("matmul_nt")
ADD = op_expr("add")
DOT = op_expr("dot")
RESHAPE = op_expr("reshape")

Shape = tuple[int, ...]


def _reshape(x: Tensor, shape: Shape) -> Tensor:
    return dispatch1(RESHAPE, x, {"shape": shape})


def _without_ones(product: Tensor, shape: Shape) -> Tensor:
    """Drop the dimension that a vector was given; nothing else has the product: it is no view."""
    y = _reshape(product, shape)
    y._view = None
    return y


def check_same_dtype(op: str, x: Tensor, argument: str, y: Tensor) -> bool:
    """Raise when the dtypes differ: PyTorch's products do not promote. Tell whether x is sparse."""
    try:
        if x._data.dtype == y._data.dtype:
            return False
    except AttributeError:
        if hasattr(x, "_nnz"):
            return True
        check_tensor(op, "input", x)
        check_tensor(op, argument, y)
    expected = f"dtype {x.dtype}, that of the first argument"
    raise arg_error(
        op, argument, expected, y.dtype, "convert one of them with .to(dtype)", DTypeError
    )


def _misfit_error(op: str, argument: str, expected: str, x: Shape, y: Shape) -> FlowError:
    expected = f"{expected} to go with the shape {x} before it"
    return arg_error(op, argument, expected, f"shape {y}", "transpose or reshape one of them")


def _check_product(x: Shape, y: Shape) -> None:
    """Check x (..., M, K) against y (..., K, N)."""
    if x[-1] != y[-2]:
        raise _misfit_error("matmul", "other", f"{x[-1]} rows", x, y)
    if len(x) > 2 and len(y) > 2 and x[:-2] != y[:-2]:
        try:
            np.broadcast_shapes(x[:-2], y[:-2])
        except ValueError:
            raise _misfit_error("matmul", "other", "batch sizes that broadcast", x, y) from None


_DTYPES = {"DTypeError": "When the dtypes differ."}
Fits = Annotated[
    Tensor,
    Domain(
        "Of the dtype of the first argument, and of a shape that fits.",
        "check_same_dtype(NAME, {first}, '{x}', {x})",
        uses=(check_same_dtype,),
        raises={"ShapeError": "When the shapes do not fit.", **_DTYPES},
    ),
]
_CHECK = "if check_same_dtype(NAME, {first}, '{x}', {x}): return {first} @ {x}"
FitsOrSparse = Annotated[Tensor, Fits.__metadata__[0]._replace(check=_CHECK)]
Unchecked = Annotated[Tensor, Domain(tensor="operand")]

_method = functools.partial(functor, "flow Tensor", out="same")
_written = functools.partial(_method, twin=True, old=True)


@functor(
    "flow Tensor linalg",
    out="same",
    samples="""x(2, 3), x(3, 2); x(2, 2, 3), x(3, 2); x(2, 3), x(2, 3, 2); x(2, 1, 2, 3), x(2, 3, 2)
        x(3), x(3, 2); x(2, 3), x(3); x(3), x(3)""",
)
def matmul(input: Tensor, other: FitsOrSparse) -> Tensor:
    """Return the matrix product, `input @ other`.

    input, other: (K,) or (..., M, K), and (K,) or (..., K, N), of one dtype; batches broadcast.

    >>> flow.matmul(flow.ones(2, 3), flow.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    x, y = input._data.shape, other._data.shape
    if len(x) > 1 < len(y):
        _check_product(x, y)
        return dispatch2(MATMUL, input, other)
    if not x or not y:
        expected, got = "at least one dimension", f"shapes {x} and {y}"
        argument, hint = "other" if x else "input", "multiply by a 0-d tensor with *"
        raise arg_error("matmul", argument, expected, got, hint)
    if len(y) > 1:  # (K,) @ (..., K, N)
        _check_product(x, y)
        row = dispatch2(MATMUL, _reshape(input, (1, *x)), other)
        return _without_ones(row, (*y[:-2], y[-1]))
    if x[-1] != y[0]:
        raise _misfit_error("matmul", "other", f"{x[-1]} elements", x, y)
    if len(x) > 1:  # (..., M, K) @ (K,)
        column = dispatch2(MATMUL, input, _reshape(other, (*y, 1)))
        return _without_ones(column, x[:-1])
    return dispatch2(DOT, input, other)


@functor(samples="x(2, 3), x(4, 3); x(2, 2, 3), x(2, 3); x(2, 2, 3), x(2, 4, 3)")
def matmul_nt(x: Unchecked, y: Unchecked) -> Tensor:
    """Return x yᵀ of two tensors of matrices; gradients use it, so nothing is checked."""


_TN_SAMPLES = "x(3, 2), x(3, 4), merge=False; {0}, {0}, merge=False; {0}, {0}, merge=True"


@functor(samples=_TN_SAMPLES.format("x(2, 3, 2)"))
def matmul_tn(x: Unchecked, y: Unchecked, *, merge: bool) -> Tensor:
    """Return xᵀ y, summed over the batch with `merge`; see `matmul_nt`."""


_RANKS = {"ShapeError": "When an argument is of another rank, or the shapes do not fit.", **_DTYPES}
Factor = Annotated[Tensor, Domain("Of exactly the rank named above.", raises=_RANKS)]


def _product(op: str, ranks: tuple[int, int], x: Tensor, y: Tensor, names: Sequence[str]) -> Tensor:
    """Check factors, whose ranks are given, and return x @ y."""
    if type(x) is not Tensor and hasattr(x, "_nnz"):
        return x @ y
    check_ndim(op, x, ranks[:1], names[0])
    check_ndim(op, y, ranks[1:], names[1])
    check_same_dtype(op, x, names[1], y)
    a, b = x._data.shape, y._data.shape
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        raise _misfit_error(op, names[1], f"{a[-1]} {'rows' if len(b) > 1 else 'elements'}", a, b)
    if ranks == (3, 3) and a[0] != b[0]:
        raise _misfit_error(op, names[1], f"batch size {a[0]}", a, b)
    return matmul(x, y)


@_method(samples="x(2, 3), x(3, 2)")
def mm(input: Factor, mat2: Factor) -> Tensor:
    """Return the product of two matrices, (M, K) and (K, N)."""
    return _product("mm", (2, 2), input, mat2, ("input", "mat2"))


@_method(samples="x(2, 2, 3), x(2, 3, 2)")
def bmm(input: Factor, mat2: Factor) -> Tensor:
    """Return the products of two batches of matrices, (B, M, K) and (B, K, N)."""
    return _product("bmm", (3, 3), input, mat2, ("input", "mat2"))


@_method(samples="x(2, 3), x(3)")
def mv(input: Factor, vec: Factor) -> Tensor:
    """Return the product of a matrix (M, K) and a vector (K,)."""
    return _product("mv", (2, 1), input, vec, ("input", "vec"))


@_method(samples="x(3), x(3)")
def dot(input: Factor, tensor: Factor) -> Tensor:
    """Return Σ input · tensor of two vectors of equal length; nothing is conjugated."""
    return _product("dot", (1, 1), input, tensor, ("input", "tensor"))


@_method(samples="x(3), x(3); z(3), z(3)")
def vdot(input: Vector, other: Factor) -> Tensor:
    """Return Σ conj(input) · other of two vectors of equal length.

    >>> flow.vdot(flow.tensor([1j, 2j]), flow.tensor([1j, 1j]))
    tensor(3.+0.j)
    """
    return _product("vdot", (1, 1), F.conj(input), other, ("input", "other"))


@_method(out=True, alias="ger", samples="x(3), x(2)")
def outer(input: Vector, vec2: Vector) -> Tensor:
    """Return the matrix of all products of elements of two vectors, (M,) and (N,): (M, N)."""
    return _reshape(input, (*input._data.shape, 1)) * vec2


@_method(out=True, samples="x(2, 3), x(4, 3); x(3), x(2, 2, 3); x(2), x()")
def inner(input: Tensor, other: Fits) -> Tensor:
    """Return the products of the last dimensions of two tensors, summed: (..., *).

    input, other: (..., K) and (*, K); a 0-d tensor is a factor.

    >>> flow.inner(flow.tensor([1., 2.]), flow.tensor([[1., 0.], [1., 1.]]))
    tensor([1., 3.])
    """
    x, y = input._data.shape, other._data.shape
    if not x or not y:
        return input * other
    if x[-1] != y[-1]:
        raise _misfit_error("inner", "other", f"a last size of {x[-1]}", x, y)
    rows = _reshape(input, (math.prod(x[:-1]), x[-1]))
    columns = _reshape(other, (math.prod(y[:-1]), y[-1]))
    return _without_ones(dispatch2(MATMUL_NT, rows, columns), (*x[:-1], *y[:-1]))


@functor(
    "linalg", out="same", samples="x(2, 3), x(2, 3); z(2, 3), z(3), dim=-1; x(2, 3), x(), dim=0"
)
def linalg_vecdot(x: Tensor, y: Fits, *, dim: int = -1) -> Tensor:
    """Return Σ conj(x) · y along one dimension; the rest broadcast."""
    check_broadcast("linalg.vecdot", "y", y, x)
    products = F.conj(x) * y
    return products.sum(check_dim("linalg.vecdot", dim, products._data.ndim))


_EXPANDS = {"ShapeError": "When {x} does not expand to the product.", **_DTYPES}
Added = Annotated[Tensor, Domain("Expands to the shape of the product.", raises=_EXPANDS)]
_BETA = "The factor of `input`; with 0 the input is ignored, even NaN."
Beta = Annotated[Any, Domain(_BETA, type="number")]
Alpha = Annotated[Any, Domain("The factor of the product.", type="number")]


def _added(op: str, input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """Return beta · input + alpha · product."""
    check_same_dtype(op, product, "input", input)
    if not fits(product._data.shape, input._data.shape):
        expected = f"a shape that expands to that of the product, {product.shape}"
        raise arg_error(op, "input", expected, input, "reshape it")
    if alpha != 1:
        product = scaled(op, "alpha", product, alpha)
    if beta == 0:  # the gradient of the input is zero, and not missing
        return F.flat_in(product, input) if input.requires_grad else product
    return (input if beta == 1 else scaled(op, "beta", input, beta)) + product


@_written(samples="x(2, 2), x(2, 3), x(3, 2), beta=0; x(2), x(2, 3), x(3, 2), beta=2, alpha=0.5")
def addmm(input: Added, mat1: Factor, mat2: Factor, *, beta: Beta = 1, alpha: Alpha = 1) -> Tensor:
    """Return beta · input + alpha · (mat1 @ mat2), for matrices (M, K) and (K, N).

    >>> flow.addmm(flow.ones(3), flow.ones(1, 4), flow.ones(4, 3), alpha=2)
    tensor([[9., 9., 9.]])
    """
    product = _product("addmm", (2, 2), mat1, mat2, ("mat1", "mat2"))
    return _added("addmm", input, product, beta, alpha)


@_written(samples="x(2), x(2, 3), x(3), beta=2")
def addmv(input: Added, mat: Factor, vec: Factor, *, beta: Beta = 1, alpha: Alpha = 1) -> Tensor:
    """Return beta · input + alpha · (mat @ vec), for a matrix (M, K) and a vector (K,)."""
    return _added("addmv", input, _product("addmv", (2, 1), mat, vec, ("mat", "vec")), beta, alpha)


@_written(samples="x(2, 2, 2), x(2, 2, 3), x(2, 3, 2), alpha=3")
def baddbmm(
    input: Added, batch1: Factor, batch2: Factor, *, beta: Beta = 1, alpha: Alpha = 1
) -> Tensor:
    """Return beta · input + alpha · (batch1 @ batch2), for batches (B, M, K) and (B, K, N)."""
    product = _product("baddbmm", (3, 3), batch1, batch2, ("batch1", "batch2"))
    return _added("baddbmm", input, product, beta, alpha)


@_written(samples="x(2, 2), x(2, 2, 3), x(2, 3, 2), beta=2")
def addbmm(
    input: Added, batch1: Factor, batch2: Factor, *, beta: Beta = 1, alpha: Alpha = 1
) -> Tensor:
    """Return beta · input + alpha · Σ batch1 @ batch2, summed over the batch."""
    product = _product("addbmm", (3, 3), batch1, batch2, ("batch1", "batch2"))
    return _added("addbmm", input, cast(product.sum(0), product.dtype), beta, alpha)


@_written(out=True, samples="x(3, 2), x(3), x(2), alpha=2; x(1), x(3), x(2)")
def addr(input: Added, vec1: Vector, vec2: Vector, *, beta: Beta = 1, alpha: Alpha = 1) -> Tensor:
    """Return beta · input + alpha · outer(vec1, vec2)."""
    x, v, w = promote("addr", check_tensor("addr", "input", input), vec1, vec2)
    return _added("addr", x, outer(v, w), beta, alpha)


@functor(
    "functional",
    out="same",
    samples="""x(2, 3), x(4, 3), x(4); x(2, 2, 3), x(2, 3), x(2)
        x(2, 3), x(4, 3); x(3), x(4, 3), x(4)""",
)
def linear(input: Tensor, weight: Fits, bias: Fits | None = None) -> Tensor:
    """Return input @ weightᵀ + bias.

    weight, bias: (out_features, in_features) and (out_features,), or (in_features,) and 0-d.

    >>> flow.nn.functional.linear(flow.ones(1, 3), flow.ones(4, 3), flow.ones(4))
    tensor([[4., 4., 4., 4.]])
    """
    x, w = input._data.shape, weight._data.shape
    if not 1 <= len(w) <= 2 or not x or x[-1] != w[-1]:
        size = x[-1] if x else "the input's last size"
        raise _misfit_error("linear", "weight", f"shape (out_features, {size})", x, w)
    if bias is not None and bias._data.shape != w[:-1] and not fits(w[:-1], bias._data.shape):
        raise _misfit_error("linear", "bias", f"shape {w[:-1]}", w, bias._data.shape)
    if len(w) == 1:
        product = matmul(input, weight)
    elif len(x) == 1:
        product = _without_ones(dispatch2(MATMUL_NT, _reshape(input, (1, *x)), weight), w[:1])
    else:
        product = dispatch2(MATMUL_NT, input, weight)
    return product if bias is None else dispatch2(ADD, product, bias)


@functor("linalg", out="same", samples="[x(2, 3), x(3, 1), x(1, 2)]; [x(3), x(3, 2), x(2)]")
def linalg_multi_dot(tensors: Tensors) -> Tensor:
    """Return the product of two matrices or more, multiplied in the order that is cheapest.

    tensors: matrices; the first and the last may be vectors.
    ShapeError: when the shapes do not fit.
    """
    return _chain("linalg.multi_dot", tensors, 2)


@functor("flow", out="same", samples="x(2, 3), x(3, 1), x(1, 2); x(2, 3)")
def chain_matmul(*matrices: Factor) -> Tensor:
    """Return the product of matrices; the older name of `linalg.multi_dot`."""
    return _chain("chain_matmul", matrices, 1)


def _chain(op: str, tensors: Sequence[Tensor], least: int) -> Tensor:
    if len(tensors) < least:
        expected = f"at least {least} of them"
        raise arg_error(op, "tensors", expected, len(tensors), "pass more", ShapeError)
    last = len(tensors) - 1
    for i, x in enumerate(tensors):
        check_ndim(op, x, (1, 2) if i in (0, last) else (2,), f"tensors[{i}]")
        check_same_dtype(op, tensors[0], f"tensors[{i}]", x)
    shapes = [x._data.shape for x in tensors]
    for i, (x, y) in enumerate(itertools.pairwise(shapes), 1):
        if x[-1] != y[0]:
            raise _misfit_error(op, f"tensors[{i}]", f"{x[-1]} rows", x, y)
    sizes = [shape[0] for shape in shapes] + [shapes[-1][-1]]
    for end in (0, -1):
        sizes[end] = 1 if len(shapes[end]) == 1 else sizes[end]
    return _multiply(tensors, tuple(sizes))


@functools.lru_cache(maxsize=8192)
def _split(sizes: Shape) -> tuple[int, int]:
    """Return the least number of multiplications for factors of these sizes, and where to split."""
    ways = []
    for k, size in enumerate(sizes[1:-1], 1):
        parts = _split(sizes[: k + 1])[0] + _split(sizes[k:])[0]
        ways.append((parts + sizes[0] * size * sizes[-1], k))
    return min(ways, default=(0, 0))


def _multiply(tensors: Sequence[Tensor], sizes: Shape) -> Tensor:
    if len(tensors) == 1:
        return tensors[0]
    k = _split(sizes)[1]
    return matmul(_multiply(tensors[:k], sizes[: k + 1]), _multiply(tensors[k:], sizes[k:]))


@functor("flow Tensor linalg", out=True, samples="m(2), 0; m(2, 2), 3; zm(2), -2; m(3), 1")
def matrix_power(input: Square, n: Int) -> Tensor:
    """Return the n-th power of square matrices; of their inverses for a negative n.

    LinAlgError: when a matrix is singular and n is negative.

    >>> flow.linalg.matrix_power(flow.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    if n == 0:
        size = input._data.shape[-1]
        return F.zeros_like(input) + F.eye(size, dtype=input.dtype, device=input.device)
    if n == 1:
        return input.clone()
    return _power(input, n) if n > 0 else _power(F.linalg_inv(input), -n)


def _power(x: Tensor, n: int) -> Tensor:
    if n == 1:
        return x
    half = _power(x, n // 2)
    square = matmul(half, half)
    return matmul(square, x) if n % 2 else square
