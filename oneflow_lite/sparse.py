"""Sparse tensors in coordinates, as far as networks on graphs need them.

A SparseTensor is a matrix of indices, and a value for each index. Its operations are functors on
these two tensors (products gather rows and add them up), so gradients of any order flow to the
values and to the dense operand. An operation that it lacks takes `to_dense()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.arrays.device import Device, DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike, Number, as_dtype
from oneflow_lite.arrays.dtype_object import dtype as DTypeObject
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.arrays.size import Size
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    GradientError,
    ShapeError,
    arg_error,
)
from oneflow_lite.functors.creation import as_tensor, empty, zeros
from oneflow_lite.functors.declaring.checks import check_dims, check_tensor
from oneflow_lite.functors.joining import stack
from oneflow_lite.ops.exposure import attach_methods, expose
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.tensors.tensor_methods import TYPE_NAMES, layout as _Layout, type_

sparse_coo = _Layout("sparse_coo")


class SparseTensor:
    """Values at indices, and zeros elsewhere; indices may repeat, and their values add up.

    Made by `sparse_coo_tensor` and `Tensor.to_sparse`. It is no Tensor: methods that it lacks raise
    AttributeError.

    >>> import oneflow_lite as flow
    >>> x = flow.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> x
    tensor(indices=tensor([[0, 1],
                           [2, 0]]),
           values=tensor([3., 4.]),
           size=(2, 3), nnz=2, layout=oneflow_lite.sparse_coo)
    >>> x @ flow.ones(3, 1)
    tensor([[3.],
            [4.]])
    """

    is_sparse, layout = True, sparse_coo

    def __init__(
        self, indices: Tensor, values: Tensor, size: tuple[int, ...], coalesced: bool
    ) -> None:
        self._i, self._v, self.shape, self._is_coalesced = indices, values, Size(size), coalesced

    def _like(self, values: Tensor) -> SparseTensor:
        """Return a tensor with new values at the same places."""
        return SparseTensor(self._i, values, self.shape, self._is_coalesced)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a sparse tensor has no {name!r}; use to_dense(), or its indices and values",
            name=name,
        )

    # Indices and values

    def _indices(self) -> Tensor:
        return self._i

    def _values(self) -> Tensor:
        return self._v

    def _nnz(self) -> int:
        return self._v.shape[0]

    def indices(self) -> Tensor:
        """Return the indices, one column for each value; of a coalesced tensor only."""
        return self._certain("indices")._i

    def values(self) -> Tensor:
        """Return the values; of a coalesced tensor only."""
        return self._certain("values")._v

    def _certain(self, op: str) -> SparseTensor:
        if not self._is_coalesced:
            raise GradientError(
                f"{op}(): expected a coalesced tensor; call coalesce() first, or _{op}()"
            )
        return self

    def is_coalesced(self) -> bool:
        """Return whether the indices are known to be sorted and to be different."""
        return self._is_coalesced

    @property
    def dtype(self) -> DTypeObject:
        """The dtype of the values."""
        return self._v.dtype

    @property
    def device(self) -> Device:
        """The device of the values."""
        return self._v.device

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a CUDA device."""
        return self._v.is_cuda

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to the values."""
        return self._v.requires_grad

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Let gradients flow to the values, or not."""
        self._v.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient at the places of the values, each once; None before a backward pass."""
        if self._v.grad is None:
            return None
        total, count = (self._like(x).coalesce() for x in (self._v.grad, self._v.grad * 0 + 1))
        return total._like(total._v / count._v)  # values at one place have the same gradient

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    def sparse_dim(self) -> int:
        """Return the number of dimensions with indices."""
        return self._i.shape[0]

    def dense_dim(self) -> int:
        """Return the number of dimensions of a value."""
        return self._v.ndim - 1

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dimension."""
        if dim is None:
            return self.shape
        if -self.ndim <= dim < self.ndim:
            return self.shape[dim]
        expected, hint = f"{-self.ndim} to {self.ndim - 1}", "name a dimension that it has"
        raise arg_error("size", "dim", expected, dim, hint, DimError)

    def numel(self) -> int:
        """Return the number of elements, zeros included."""
        return self.shape.numel()

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        def part(name: str, x: Tensor) -> str:
            text = repr(x.detach())
            return f"{name}={text}".replace("\n", "\n" + " " * (8 + len(name)))

        lines = [part("indices", self._i), part("values", self._v)]
        facts = f"size={tuple(self.shape)}, nnz={self._nnz()}, layout={sparse_coo!r}"
        if self.requires_grad:
            leaf = self._v.is_leaf
            facts += ", requires_grad=True" if leaf else f", grad_fn={self._v.grad_fn!r}"
        return f"tensor({','.join([lines[0], f'{_INDENT}{lines[1]}', f'{_INDENT}{facts}'])})"

    def type(self, dtype: DTypeLike | None = None) -> Any:
        """Return PyTorch's name of the type, or the tensor with another dtype."""
        if dtype is None:
            return (
                str(type_(self._v))
                .replace("torch.", "torch.sparse.")
                .replace("sparse.cuda", "cuda.sparse")
            )
        return self._like(self._v.type(dtype))

    # Conversions

    def coalesce(self) -> SparseTensor:
        """Return the tensor with sorted indices, each once; values at one place are added up."""
        if self._is_coalesced:
            return self
        flat, places = FUNCTORS.get("unique")(self._flat(), return_inverse=True)
        values = self._v.new_zeros((flat.shape[0], *self._v.shape[1:]))
        values = values.index_add(0, places, self._v)
        rows = []
        for size in reversed(self.shape[: self.sparse_dim()]):  # an empty dimension divides by 1
            rows.append(flat % max(size, 1))
            flat = flat // max(size, 1)
        indices = stack(rows[::-1]) if rows else self._i[:, : values.shape[0]]
        return SparseTensor(indices, values, self.shape, True)

    def _flat(self) -> Tensor:
        """Return the place of each value in a row of all sparse dimensions."""
        flat = self._i.new_zeros(self._nnz())
        for row, size in zip(self._i, self.shape, strict=False):
            flat = flat * size + row
        return flat

    def to_dense(
        self, dtype: DTypeLike | None = None, *, masked_grad: bool | None = None
    ) -> Tensor:
        """Return the tensor with its zeros written out."""
        count = self.shape[: self.sparse_dim()].numel()
        full = self._v.new_zeros((count, *self._v.shape[1:])).index_add(0, self._flat(), self._v)
        full = full.reshape(self.shape)
        return full if dtype is None else full.to(dtype)

    def to_sparse(self, *args: Any, **options: Any) -> SparseTensor:
        """Return the tensor."""
        return self

    def to(self, *args: Any, **options: Any) -> SparseTensor:
        """Return the tensor with another dtype, on another device; see `Tensor.to`."""
        values = self._v.to(*args, **options)
        moved = self._like(values)
        moved._i = self._i.to(values.device)
        return moved

    def cpu(self) -> SparseTensor:
        """Return the tensor on the CPU."""
        return self.to("cpu")

    def cuda(self, device: DeviceLike | None = None, non_blocking: bool = False) -> SparseTensor:
        """Return the tensor on a CUDA device."""
        return self.to("cuda" if device is None else device)

    def float(self) -> SparseTensor:
        """Return the tensor as float32."""
        return self.to("float32")

    def double(self) -> SparseTensor:
        """Return the tensor as float64."""
        return self.to("float64")

    def half(self) -> SparseTensor:
        """Return the tensor as float16."""
        return self.to("float16")

    def long(self) -> SparseTensor:
        """Return the tensor as int64."""
        return self.to("int64")

    def detach(self) -> SparseTensor:
        """Return the tensor without history."""
        return self._like(self._v.detach())

    def clone(self) -> SparseTensor:
        """Return a copy."""
        return SparseTensor(self._i.clone(), self._v.clone(), self.shape, self._is_coalesced)

    def t(self) -> SparseTensor:
        """Return the transpose of a matrix."""
        if self.ndim != 2:
            expected, got = "2 dimensions", f"shape {self.shape}"
            raise arg_error("t", "self", expected, got, "use transpose()", ShapeError)
        return self.transpose(0, 1)

    T = property(t, doc="The transpose of a matrix.")

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Return the tensor with two sparse dimensions exchanged."""
        (a,), (b,) = (check_dims("transpose", d, self.ndim) for d in (dim0, dim1))
        order = list(range(self.ndim))
        order[a], order[b] = b, a
        if max(a, b) >= self.sparse_dim() and a != b:
            expected, hint = "sparse dimensions", "use to_dense()"
            raise arg_error("transpose", "dim0", expected, (dim0, dim1), hint, DimError)
        size = tuple(self.shape[i] for i in order)
        return SparseTensor(self._i[order[: self.sparse_dim()]], self._v, size, a == b)

    # Arithmetic

    def __neg__(self) -> SparseTensor:
        return self._like(-self._v)

    def _scaled(self, op: str, other: Any) -> Any:
        if isinstance(other, SparseTensor) or (isinstance(other, Tensor) and other.ndim):
            expected, hint = "a number or a 0-d tensor", "use to_dense()"
            raise arg_error(op, "other", expected, "a tensor", hint, ArgumentTypeError)
        return other

    def __mul__(self, other: Tensor | SparseTensor | Number) -> SparseTensor:
        """Return the tensor times a number or a 0-d tensor."""
        return self._like(self._v * self._scaled("mul", other))

    __rmul__ = mul = __mul__

    def __truediv__(self, other: Tensor | SparseTensor | Number) -> SparseTensor:
        """Return the tensor divided by a number or a 0-d tensor."""
        return self._like(self._v / self._scaled("div", other))

    div = __truediv__

    def __add__(self, other: Any) -> Any:
        """Return the sum with a sparse tensor, which is sparse, or with a dense tensor."""
        if isinstance(other, Tensor):
            return self.to_dense() + other
        if not isinstance(other, SparseTensor) or other.shape != self.shape:
            got = f"shape {other.shape}" if hasattr(other, "shape") else type(other).__name__
            expected, hint = f"a tensor of shape {self.shape}", "use to_dense()"
            raise arg_error("add", "other", expected, got, hint, ShapeError)
        from oneflow_lite.functors.joining import cat

        indices, values = cat([self._i, other._i], 1), cat([self._v, other._v])
        return SparseTensor(indices, values, self.shape, False).coalesce()

    __radd__ = add = __add__

    def sum(self, dim: int | Sequence[int] | None = None, dtype: DTypeLike | None = None) -> Any:
        """Return the sum of all elements, or over dimensions; see `sparse.sum`."""
        return sum(self, dim, dtype)

    def __matmul__(self, other: Tensor | SparseTensor) -> Tensor:
        """Return the product with a dense vector or matrix."""
        return _product("matmul", self, other, (1, 2))

    matmul = __matmul__

    def __rmatmul__(self, other: Tensor) -> Tensor:
        product: Tensor = self.t() @ (other if other.ndim == 1 else other.t())
        return product if other.ndim == 1 else product.t()

    def mm(self, mat2: Tensor) -> Tensor:
        """Return the product with a dense matrix."""
        return mm(self, mat2)

    def mv(self, vec: Tensor) -> Tensor:
        """Return the product with a dense vector."""
        return _product("mv", self, vec, (1,))


_INDENT = "\n" + " " * 7


def _product(op: str, x: Any, y: Any, ranks: tuple[int, ...]) -> Tensor:
    """Return x @ y: rows of y, gathered by column and weighted by value, add up by row."""
    if not isinstance(x, SparseTensor) or not isinstance(y, Tensor):
        got = f"{type(x).__name__} and {type(y).__name__}"
        expected, hint = "a sparse matrix and a dense tensor", "use to_sparse() or to_dense()"
        raise arg_error(op, "mat2", expected, got, hint, ArgumentTypeError)
    if x.ndim != 2 or x.dense_dim() or y.ndim not in ranks or y.shape[0] != x.shape[1]:
        got = f"shapes {x.shape} and {y.shape}"
        expected, hint = "a matrix (n, m) and one dense with m rows", "transpose one of them"
        raise arg_error(op, "mat2", expected, got, hint, ShapeError)
    if x.dtype != y.dtype:
        expected, hint = f"dtype {x.dtype}, that of the sparse matrix", "convert one with to()"
        raise arg_error(op, "mat2", expected, y.dtype, hint, DTypeError)
    rows, columns = x._i
    weights = x._v if y.ndim == 1 else x._v.unsqueeze(1)
    parts = y.index_select(0, columns) * weights
    result: Tensor = parts.new_zeros((x.shape[0], *y.shape[1:])).index_add(0, rows, parts)
    return result


def sparse_coo_tensor(
    indices: Tensor | Sequence[Sequence[int]],
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Make a sparse tensor of values at indices; `sparse_coo_tensor(size)` has no values.

    indices: integers, (sparse dimensions, number of values).
    values: (number of values, *), a tensor or a nested list; gradients flow to a tensor.
    size: by default the smallest that holds all indices.
    is_coalesced: True promises that the indices are sorted and differ, which is not checked.

    Raises `ShapeError` when numbers do not fit, `ArgumentError` for indices outside the size.

    >>> import oneflow_lite as flow
    >>> flow.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,)).to_dense()
    tensor([0., 5., 0.])
    """
    op = "sparse_coo_tensor"
    if values is None:
        size = Size(indices if size is None else size)
        indices = empty((len(size), 0), dtype="int64")
        values = zeros(0, dtype=dtype, device=device)
    places, found = as_tensor(indices), as_tensor(values)
    if dtype is not None or device is not None:
        found = found.to(device or found.device, as_dtype(op, dtype or found.dtype))
    places = places.detach().to(found.device, as_dtype(op, "int64"))
    if places.ndim != 2 or not found.ndim or places.shape[1] != found.shape[0]:
        got = f"indices {places.shape} and values {found.shape}"
        expected, hint = "indices (dimensions, n) and values (n, *)", "give one column for a value"
        raise arg_error(op, "values", expected, got, hint, ShapeError)
    sparse_dim, count = places.shape
    ends = [int(n) + 1 for n in places.amax(1).tolist()] if count else [0] * sparse_dim
    shape = Size((*ends, *found.shape[1:])) if size is None else Size(size)
    if len(shape) != sparse_dim + found.ndim - 1 or shape[sparse_dim:] != found.shape[1:]:
        expected = f"{sparse_dim} sizes, and then those of a value, {tuple(found.shape[1:])}"
        raise arg_error(op, "size", expected, shape, "change it or the values", ShapeError)
    low = int(places.min()) if count and sparse_dim else 0
    if low < 0 or any(end > n for end, n in zip(ends, shape, strict=False)):
        got = f"indices from {low} to {[end - 1 for end in ends]}"
        expected, hint = f"indices inside the size {shape}", "enlarge the size"
        raise arg_error(op, "indices", expected, got, hint, ArgumentError)
    if requires_grad:
        found = found.detach().clone().requires_grad_()
    return SparseTensor(places, found, shape, bool(is_coalesced) or (not count))


def to_sparse(self: Tensor, sparse_dim: Any = None, **options: Any) -> SparseTensor:
    """Return the elements that are not 0 as a sparse tensor; its first dimensions are sparse."""
    count = self.ndim if sparse_dim is None else sparse_dim
    if not isinstance(count, int) or not min(1, self.ndim) <= count <= self.ndim:
        expected, hint = f"{min(1, self.ndim)} to {self.ndim}", "leave it out"
        raise arg_error("to_sparse", "sparse_dim", expected, repr(sparse_dim), hint, DimError)
    if not self.ndim:  # one place without a coordinate
        indices = zeros(0, self.count_nonzero(), dtype="int64", device=self.device)
        return SparseTensor(indices, self.reshape(1)[: indices.shape[1]], self.shape, True)
    there = self.detach() != 0
    if count < self.ndim:
        there = there.any(tuple(range(count, self.ndim)))
    indices = there.nonzero().t()
    return SparseTensor(indices, self[tuple(indices)], self.shape, True)


def mm(mat1: SparseTensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse and a dense matrix.

    >>> import oneflow_lite as flow
    >>> flow.sparse.mm(flow.eye(2).to_sparse(), flow.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _product("sparse.mm", mat1, mat2, (2,))


def spmm(input: Tensor | SparseTensor, mat2: Tensor) -> Tensor:
    """Return the product of a matrix, sparse or dense, and a dense matrix; `flow.spmm`."""
    product: Tensor = input @ mat2
    return product


def addmm(
    mat: Tensor, mat1: SparseTensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return `beta * mat + alpha * (mat1 @ mat2)` of a sparse matrix `mat1`."""
    product: Tensor = beta * check_tensor("sparse.addmm", "mat", mat) + alpha * mm(mat1, mat2)
    return product


def sum(
    input: SparseTensor, dim: int | Sequence[int] | None = None, dtype: DTypeLike | None = None
) -> Any:
    """Return the sum of all elements, or a sparse tensor of the sums over sparse dimensions."""
    input = input if dtype is None else input.to(as_dtype("sparse.sum", dtype))
    if dim is None:
        return input._v.sum()
    dims = check_dims("sparse.sum", dim, input.ndim)
    kept = [d for d in range(input.ndim) if d not in dims]
    count = input.sparse_dim()
    dense = tuple(1 + d - count for d in dims if d >= count)
    values = input._v.sum(dense) if dense else input._v
    rows = [d for d in kept if d < count]
    if not rows:
        return values.sum(0)
    size = tuple(input.shape[d] for d in kept)
    return SparseTensor(input._i[rows], values, size, False).coalesce()


def _typed(name: str, dtype: str) -> Any:
    def make(*data: Any, device: Any = None) -> SparseTensor:
        warn_caller(f"sparse.{name}() is deprecated; use sparse_coo_tensor(..., dtype=...)")
        if all(isinstance(n, int) for n in data):
            return sparse_coo_tensor(data, dtype=dtype, device=device)
        return sparse_coo_tensor(*data, dtype=dtype, device=device)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Make a sparse tensor of dtype {dtype}: of a size, or indices and values."
    return make


attach_methods(SparseTensor)
expose(globals())
globals().update({name: _typed(name, kind) for name, kind in TYPE_NAMES.items()})  # old names


guard_all(globals())
