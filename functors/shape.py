"""Shapes, dtypes and devices: the same elements, seen or stored otherwise."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from oneflow_lite.arrays.device import Device, as_device
from oneflow_lite.arrays.dtype import SCALAR_TYPES, as_dtype, is_dtype, result_dtype
from oneflow_lite.arrays.dtype_object import DTYPES, dtype as DTypeObject
from oneflow_lite.arrays.memory_format import check_memory_format
from oneflow_lite.arrays.size import fits
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentTypeError, DimError, DTypeError, ShapeError, arg_error
from oneflow_lite.functors.declaring import checks
from oneflow_lite.functors.declaring.checks import check_dim, check_dims, check_shape, check_tensor
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    Dim,
    Domain,
    IntOrInts,
    Sizes,
    TensorOrNumber,
)
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import register_functor
from oneflow_lite.tensors.tensor import Tensor

_RESHAPE, _TRANSPOSE, _PERMUTE = op_expr("reshape"), op_expr("transpose"), op_expr("permute")
_SQUEEZE, _EXPAND, _CLONE = op_expr("squeeze"), op_expr("expand"), op_expr("clone")


def _filled(op: str, argument: str, sizes: Any, total: int, input: Tensor) -> tuple[int, ...]:
    """Fill in the one size given as -1, and check the product of the sizes."""
    known, unknown = 1, -1
    for i, n in enumerate(sizes):
        if n == -1 and unknown < 0:
            unknown = i
        elif n < 0:
            known = -1
            break
        else:
            known *= n
    if unknown >= 0 and known > 0 and total % known == 0:
        return (*sizes[:unknown], total // known, *sizes[unknown + 1 :])
    if unknown < 0 and known == total:
        return sizes
    expected = f"sizes with product {total} (of shape {input.shape}), at most one of them -1"
    raise arg_error(op, argument, expected, sizes, "choose sizes that keep the number of elements")


@functor("flow Tensor", samples="x(2, 3), (3, -1)")
def reshape(input: AnyTensor, *shape: Sizes, **named: Any) -> Tensor:
    """Return the elements in another shape, one size of which may be -1: a view if it can be.

    ShapeError: when the sizes do not keep the number of elements.

    >>> flow.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    sizes = _filled("reshape", "shape", shape, input._data.size, input)
    return dispatch1(_RESHAPE, input, {"shape": sizes})


@functor("Tensor", samples="x(2, 3), 3, -1; x(2, 3), (6,)")
def view(input: AnyTensor, *shape: IntOrInts, **named: Any) -> Tensor:
    """Return the elements in another shape, sharing memory; raise where that needs a copy.

    A dtype instead of a shape reads the bytes as that dtype, without a gradient. One of another
    item size changes the last dimension, whose elements have to lie together.

    ShapeError: when the sizes do not keep the number of elements, or need a copy.
    DTypeError: when elements of the dtype would not begin and end where elements do.
    """
    given = checks.named_sizes("view", shape, named, "size", "dtype")
    if len(given) == 1 and not isinstance(given[0], (int, np.integer, tuple, list)):
        return _read_as(input, given[0])
    sizes = _filled("view", "shape", check_shape("view", given, "shape"), input._data.size, input)
    result = dispatch1(_RESHAPE, input, {"shape": sizes})
    if input._data.size and result is not input and result._view is None:  # it was copied
        expected = f"a shape that the strides {input.stride()} of shape {input.shape} allow"
        hint = "use reshape(), which copies where it must"
        raise arg_error("view", "shape", expected, result.shape, hint)
    return result


def _read_as(input: Tensor, dtype: Any) -> Tensor:
    chosen = as_dtype("view", dtype)
    _check_reading(input, chosen)
    result: Tensor = F.view_dtype(input.detach(), dtype=chosen)
    result._view = None  # it shares memory and version, as detach() does
    return result


def _check_reading(input: Tensor, dtype: Any) -> None:
    """Raise where elements of another size do not lie together in memory."""
    size, strides, own = dtype.itemsize, input.stride(), input._data.itemsize
    if size == own:
        return
    if strides[-1:] != (1,):
        expected, got, hint = "a last dimension of stride 1", f"strides {strides}", "contiguous()"
    else:
        counts = {"size(-1)": input.shape[-1], "storage_offset()": input.storage_offset()}
        counts |= {f"stride({dim})": step for dim, step in enumerate(strides[:-1])}
        wrong = [name for name, count in counts.items() if count * own % size]
        if not wrong:
            return
        expected, got = f"{wrong[0]} divisible by {size // own}", str(counts[wrong[0]])
        hint = "other slices" if "size(-1)" in wrong else "clone()"
    expected += f", to read elements of {own} bytes as {dtype} of {size}"
    raise arg_error("view", "dtype", expected, got, f"convert with to(), or use {hint}", DTypeError)


@functor("Tensor", samples="x(2, 3), fixed(x(3, 2))")
def view_as(input: AnyTensor, other: AnyTensor) -> Tensor:
    """Return `input` viewed in the shape of `other`."""
    return view(input, other.shape)


@functor("Tensor", samples="x(2, 3), fixed(x(3, 2))")
def reshape_as(input: AnyTensor, other: AnyTensor) -> Tensor:
    """Return `input` in the shape of `other`."""
    return reshape(input, other.shape)


@functor("flow Tensor", samples="x(2, 3, 2); x(2, 3, 2), 1; x(2, 3, 2), -3, -2")
def flatten(input: AnyTensor, start_dim: Dim = 0, end_dim: Dim = -1) -> Tensor:
    """Return the tensor with the dimensions from `start_dim` to `end_dim` made one.

    ShapeError: when `end_dim` lies before `start_dim`.
    """
    shape = input._data.shape
    if start_dim > end_dim:
        expected = f"at least start_dim = {start_dim}"
        raise arg_error("flatten", "end_dim", expected, end_dim, "swap the dimensions")
    if start_dim == end_dim:
        return input if shape else reshape(input, 1)
    size = math.prod(shape[start_dim : end_dim + 1])
    return reshape(input, (*shape[:start_dim], size, *shape[end_dim + 1 :]))


@functor("flow Tensor")
def ravel(input: AnyTensor) -> Tensor:
    """Return the elements in one dimension, in contiguous memory; a view where it is so already."""
    return contiguous(reshape(input, (input.numel(),)))


@functor("flow Tensor", samples="x(2, 6), 1, (2, -1); x(2, 6), -2, (1, 2)")
def unflatten(input: AnyTensor, dim: int, sizes: IntOrInts) -> Tensor:
    """Return the tensor with one dimension split into several; one size may be -1.

    ShapeError: when the sizes do not make up the dimension.
    DimError: when `dim` is out of range.
    """
    shape = input._data.shape
    if not shape:
        raise checks.dimension_error("unflatten", "input", DimError, "use reshape()")
    dim = check_dim("unflatten", dim, len(shape))
    if not isinstance(sizes, (tuple, list)) or not sizes:
        kind = ShapeError if isinstance(sizes, (tuple, list)) else ArgumentTypeError
        hint = "name the sizes that the dimension is split into"
        raise arg_error(
            "unflatten", "sizes", "a tuple of at least one int", repr(sizes), hint, kind
        )
    parts = check_shape("unflatten", (sizes,), "sizes")
    parts = _filled("unflatten", "sizes", parts, shape[dim], input)
    return reshape(input, (*shape[:dim], *parts, *shape[dim + 1 :]))


@functor(
    "flow Tensor",
    reshapes=True,
    listed=True,
    samples="x(1, 2, 1); x(1, 2, 1), -1; x(1, 2, 1), (0, 1)",
)
def squeeze(input: AnyTensor, dim: IntOrInts = None) -> Tensor:
    """Return the tensor without the dimensions of size 1, all or those named by `dim`.

    DimError: when a dimension is out of range or given twice.
    """
    shape = input._data.shape
    dims = check_dims("squeeze", dim, len(shape)) if dim is None or np.size(dim) else ()
    return dispatch1(_SQUEEZE, input, {"dim": tuple(d for d in dims if shape[d] == 1)})


_PLACE = Domain(
    "The place of the new dimension, counted from either end.",
    "{x} = check_dim(NAME, {x}, {first}._data.ndim + 1, '{x}')",
    raises={"DimError": "When {x} is out of range."},
    uses=(check_dim,),
)


@functor("flow Tensor", reshapes=True, samples="x(2, 3), 1; x(2, 3), -3")
def unsqueeze(input: AnyTensor, dim: Annotated[int, _PLACE]) -> Tensor:
    """Return the tensor with a dimension of size 1 inserted before `dim`."""


@functor("flow Tensor", reshapes=True, alias="swapdims", samples="x(2, 3, 2), 0, -2; x(2), 0, 0")
def transpose(input: AnyTensor, dim0: Dim, dim1: Dim) -> Tensor:
    """Return the tensor with two dimensions exchanged."""
    if not input._data.ndim:
        return permute(input, ())
    return dispatch1(_TRANSPOSE, input, {"dim0": dim0, "dim1": dim1})


@functor("flow Tensor", reshapes=True, samples="x(2, 3, 2), 0, -2")
def swapaxes(input: AnyTensor, axis0: Dim, axis1: Dim) -> Tensor:
    """Return the tensor with two dimensions exchanged; another name of `transpose`."""
    return transpose(input, axis0, axis1)


@functor("flow Tensor", reshapes=True)
def t(input: AnyTensor) -> Tensor:
    """Return the transpose of a matrix; fewer dimensions stay as they are.

    ShapeError: when there are more than two dimensions.
    """
    rank = checks.check_ndim("t", input, (0, 1, 2))._data.ndim
    return transpose(input, 0, 1) if rank == 2 else permute(input, tuple(range(rank)))


@functor("flow Tensor", samples="z(2, 3); z(2, 2, 3)")
def adjoint(input: AnyTensor) -> Tensor:
    """Return matrices transposed and conjugated; of real numbers a view.

    ShapeError: when `input` is a vector.
    """
    if not input._data.ndim:
        return F.conj(permute(input, ()))
    return F.conj(transpose(checks.check_matrices("adjoint", input), -2, -1))


def conjugate_transpose(input: Tensor) -> Tensor:
    """The matrix transposed and conjugated; `Tensor.H`."""
    return adjoint(checks.check_ndim("H", input, (0, 2)))


@functor("flow Tensor", samples="x(2, 3, 2), (2, 0, -2)")
def permute(input: AnyTensor, *dims: Sizes, **named: Any) -> Tensor:
    """Return the tensor with its dimensions in another order.

    ShapeError: when not every dimension is named.
    DimError: when a dimension is out of range or given twice.
    """
    rank = input._data.ndim
    if len(dims) != rank:
        expected = f"{rank} dimensions, each once"
        raise arg_error("permute", "dims", expected, dims, "name every dimension once")
    dims = check_dims("permute", dims, rank, "dims") if rank else ()
    return dispatch1(_PERMUTE, input, {"dims": dims})


@functor("flow Tensor", alias="moveaxis", samples="x(2, 3, 2), 0, -1; x(2, 3, 2), (0, 1), (1, 2)")
def movedim(input: AnyTensor, source: IntOrInts, destination: IntOrInts) -> Tensor:
    """Return the tensor with dimensions moved to other places; the others keep their order.

    ShapeError: when dimensions and places differ in number.
    DimError: when a dimension is out of range or given twice.
    """
    rank = input._data.ndim
    sources = check_dims("movedim", source, rank, "source") if np.size(source) else ()
    places = check_dims("movedim", destination, rank, "destination") if np.size(destination) else ()
    if len(sources) != len(places):
        expected = f"{len(sources)} dimension(s), as many as in source"
        hint = "name one place per dimension"
        raise arg_error("movedim", "destination", expected, f"{destination}", hint)
    order = [d for d in range(rank) if d not in sources]
    for place, dim in sorted(zip(places, sources, strict=True)):
        order.insert(place, dim)
    return permute(input, tuple(order))


@functor("Tensor", samples="x(2, 1), -1, 3; x(3), (2, 3)")
def expand(input: AnyTensor, *size: Sizes, **named: Any) -> Tensor:
    """Return the tensor with dimensions of size 1 repeated, without using memory; -1 keeps a size.

    ShapeError: when the tensor does not broadcast to these sizes.

    >>> flow.tensor([[1]]).expand(-1, 3)
    tensor([[1, 1, 1]])
    """
    return _expanded("expand", input, size)


def _expanded(op: str, input: Tensor, sizes: tuple[int, ...]) -> Tensor:
    have = input._data.shape
    extra = len(sizes) - len(have)
    kept = tuple([have[i - extra] if n == -1 and i >= extra else n for i, n in enumerate(sizes)])
    if min(kept, default=0) < 0 or not fits(kept, have):
        hint = "change only dimensions of size 1, or add dimensions in front"
        raise arg_error(op, "size", f"sizes to which {have} broadcasts", sizes, hint)
    return dispatch1(_EXPAND, input, {"shape": kept})


@functor("flow Tensor", listed=True, samples="x(2, 1), (3, 2, 3)")
def broadcast_to(input: AnyTensor, size: IntOrInts) -> Tensor:
    """Return the tensor broadcast to a size, without using memory."""
    return _expanded("broadcast_to", input, check_shape("broadcast_to", (size,)))


@functor("Tensor", samples="x(2, 1), fixed(x(3, 2, 3))")
def expand_as(input: AnyTensor, other: AnyTensor) -> Tensor:
    """Return the tensor broadcast to the shape of `other`."""
    return expand(input, other.shape)


@functor("Tensor", samples="x(2, 3), 1, 3; x(2, 3), (3,)")
def sum_to_size(input: AnyTensor, *size: Sizes, **named: Any) -> Tensor:
    """Return the sum over those dimensions along which `size` broadcasts to the input's shape.

    ShapeError: when it does not.
    """
    have = input._data.shape
    if not fits(have, size):
        hint = "use 1 where a dimension is to be summed"
        raise arg_error("sum_to_size", "size", f"sizes that broadcast to {have}", size, hint)
    return dispatch1(op_expr("sum_to"), input, {"shape": size})


@functor("flow Tensor")
def clone(input: AnyTensor, *, memory_format: Any = None) -> Tensor:
    """Return a copy that gradients flow through."""
    if memory_format is not None:
        check_memory_format("clone", memory_format)
    return dispatch1(_CLONE, input)


@functor("Tensor")
def contiguous(input: AnyTensor, memory_format: Any = None) -> Tensor:
    """Return the tensor itself when its memory is contiguous, else a contiguous copy."""
    check_memory_format("contiguous", memory_format)
    return input if input.is_contiguous() else clone(input)


@functor("flow", samples="z(2, 3); x(2)")
def real(input: AnyTensor) -> Tensor:
    """Return a view of the real parts; a real tensor is returned as it is."""
    return dispatch1(op_expr("real"), input) if input.is_complex() else input


@functor("flow", samples="z(2, 3)")
def imag(input: AnyTensor) -> Tensor:
    """Return a view of the imaginary parts of a complex tensor.

    DTypeError: when `input` is real.
    """
    if input.is_complex():
        return dispatch1(op_expr("imag"), input)
    hint = "a real tensor has no imaginary part"
    raise arg_error("imag", "input", "a complex dtype", input.dtype, hint, DTypeError)


@functor("flow Tensor", op="conj", out="same", twin="flow Tensor", samples="z(2, 3); x(2)")
def conj_physical(input: AnyTensor) -> Tensor:
    """Return a copy of the complex conjugate."""


@functor("flow Tensor", alias="resolve_neg")
def resolve_conj(input: AnyTensor) -> Tensor:
    """Return the tensor itself: no conjugation or negation is ever put off here."""
    return input


cast = register_functor("cast")(checks.cast)
register_functor("sum_to")(sum_to_size)


@register_functor("to_device")
def transfer(input: Tensor, target: Any, source: Any = None) -> Tensor:
    """Return a copy on another device; the tensor itself when it is there."""
    target, here = as_device(target), check_tensor("to", "input", input).device
    if here == target:
        return input
    return dispatch(op_expr("to_device"), (input,), {"target": target, "source": here})


@functor("Tensor", samples="x(2, 3); i(2, 3), float32; x(2), copy=True")
def to(input: AnyTensor, *args: Any, **named: Any) -> Tensor:
    """Convert as in `to(dtype)`, `to(device)`, `to(device, dtype)` or `to(other)`, if need be.

    >>> flow.ones(2).to(flow.int64)
    tensor([1, 1])
    """
    device, dtype = named.pop("device", None), named.pop("dtype", None)
    flags = [value for value in args if isinstance(value, bool)]  # non_blocking, copy
    copy = named.pop("copy", flags[1] if len(flags) > 1 else False)
    named.pop("non_blocking", None)
    check_memory_format("to", named.pop("memory_format", None))
    checks.named_sizes("to", (), named)
    for value in (each for each in args if not isinstance(each, bool)):
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, (Device, int)) or (isinstance(value, str) and not is_dtype(value)):
            device = value
        elif value is not None:
            dtype = value
    result = input if dtype is None else cast(input, dtype)
    result = result if device is None else transfer(result, device)
    return clone(result) if copy and result is input else result


# --- Questions that compute nothing ---------------------------------------------------------------


@functor("flow")
def is_tensor(obj: Any) -> bool:
    """Return whether an object is a Tensor."""
    return isinstance(obj, Tensor)


@functor("flow Tensor")
def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return math.prod(check_tensor("numel", "input", input).shape)


@functor("flow Tensor")
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is a floating point dtype."""
    return check_tensor("is_floating_point", "input", input)._data.dtype.kind == "f"


@functor("flow Tensor")
def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is complex."""
    return check_tensor("is_complex", "input", input)._data.dtype.kind == "c"


@functor(
    "flow", spelled="tensor=tensor1 other=tensor2 scalar1=tensor1 scalar2=tensor2 scalar=tensor2"
)
def result_type(tensor1: TensorOrNumber, tensor2: TensorOrNumber) -> DTypeObject:
    """Return the dtype in which two operands, tensors or numbers, meet.

    >>> flow.result_type(flow.tensor([1]), 1.5)
    dtype('float32')
    """
    arrays, scalars = [], []
    for argument, value in (("tensor1", tensor1), ("tensor2", tensor2)):
        if isinstance(value, SCALAR_TYPES):
            scalars.append(value)
        else:
            x = check_tensor("result_type", argument, value)
            arrays.append((x._data.dtype, x.ndim))
    return DTYPES[result_dtype(arrays, scalars)]
