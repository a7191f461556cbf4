"""Shapes, dtypes and devices: the same elements, seen or stored otherwise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oneflow_lite.device import Device, as_device
from oneflow_lite.dtype import as_dtype
from oneflow_lite.errors import (
    ArgumentTypeError,
    DimError,
    DTypeError,
    ShapeError,
    bad_argument,
)
from oneflow_lite.functors.checks import (
    cast as cast,
    check_dim,
    check_dims,
    check_ndim,
    check_shape,
    check_tensor,
)
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

_RESHAPE = op_expr("reshape")
_TRANSPOSE = op_expr("transpose")
_PERMUTE = op_expr("permute")
_SQUEEZE = op_expr("squeeze")
_UNSQUEEZE = op_expr("unsqueeze")
_EXPAND = op_expr("expand")
_SUM_TO = op_expr("sum_to")
_CLONE = op_expr("clone")
_REAL = op_expr("real")
_IMAG = op_expr("imag")
_VIEW_DTYPE = op_expr("view_dtype")
_TO_DEVICE = op_expr("to_device")


def _filled(
    op: str, argument: str, sizes: tuple[int, ...], total: int, input: Tensor
) -> tuple[int, ...]:
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
    raise bad_argument(
        ShapeError,
        op,
        argument,
        expected=f"sizes with product {total} (of shape {input.shape}), at most one of them -1",
        got=sizes,
        mend="choose sizes that keep the number of elements",
    )


def _sizes(op: str, given: tuple[Any, ...], named: dict[str, Any], *names: str) -> Any:
    """Return what was given by position, or by one of the names; raise for other names."""
    if not named:
        return given
    for name in names:
        if name in named:
            given = (*given, named.pop(name))
    for name in named:
        raise ArgumentTypeError(f"{op}() has no argument {name!r}; leave it out")
    return given


@register_functor("reshape")
def reshape(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """Return the elements in another shape: a view where the memory allows it, else a copy.

    One size may be -1 and is then computed.

    >>> import oneflow_lite as flow
    >>> flow.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    check_tensor("reshape", "input", input)
    sizes = check_shape("reshape", _sizes("reshape", shape, named, "shape"), "shape")
    return dispatch1(
        _RESHAPE, input, {"shape": _filled("reshape", "shape", sizes, input._data.size, input)}
    )


@register_functor("view")
def view(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """Return the elements in another shape, sharing memory; raise where that needs a copy.

    With a dtype of the same size instead of a shape, the bytes are read as that dtype; no gradient
    flows through that.

    >>> import oneflow_lite as flow
    >>> x = flow.zeros(2, 3)
    >>> x.view(-1)[4] = 1.0
    >>> x
    tensor([[0., 0., 0.],
            [0., 1., 0.]])
    """
    check_tensor("view", "input", input)
    given = _sizes("view", shape, named, "size", "dtype")
    if len(given) == 1 and not isinstance(given[0], (int, np.integer, tuple, list)):
        return _read_as(input, given[0])
    sizes = check_shape("view", given, "shape")
    result = dispatch1(
        _RESHAPE, input, {"shape": _filled("view", "shape", sizes, input._data.size, input)}
    )
    if input._data.size and result is not input and result._view is None:  # it was copied
        raise bad_argument(
            ShapeError,
            "view",
            "shape",
            expected=f"a shape that the strides {input.stride()} of shape {input.shape} allow",
            got=result.shape,
            mend="use reshape(), which copies where it must",
        )
    return result


def _read_as(input: Tensor, dtype: Any) -> Tensor:
    chosen = as_dtype("view", dtype)
    if chosen.itemsize != input.dtype.itemsize:
        raise bad_argument(
            DTypeError,
            "view",
            "dtype",
            expected=f"a dtype of {input.dtype.itemsize} bytes, as {input.dtype}",
            got=chosen,
            mend="convert the elements with to()",
        )
    result = dispatch1(_VIEW_DTYPE, input.detach(), {"dtype": chosen})
    result._view = None  # it shares memory and version, as detach() does
    return result


@register_functor("view_as")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` viewed in the shape of `other`."""
    return view(input, check_tensor("view_as", "other", other).shape)


@register_functor("reshape_as")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` in the shape of `other`."""
    return reshape(input, check_tensor("reshape_as", "other", other).shape)


@register_functor("flatten")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return the tensor with the dimensions from `start_dim` to `end_dim` made one.

    >>> import oneflow_lite as flow
    >>> flow.zeros(2, 3, 4).flatten(1).shape
    (2, 12)
    """
    shape = check_tensor("flatten", "input", input).shape
    first = check_dim("flatten", start_dim, len(shape), "start_dim")
    last = check_dim("flatten", end_dim, len(shape), "end_dim")
    if first > last:
        raise bad_argument(
            ShapeError,
            "flatten",
            "end_dim",
            expected=f"at least start_dim = {first}",
            got=last,
            mend="swap the dimensions",
        )
    if not shape:
        return reshape(input, 1)
    if first == last:
        return input
    size = math.prod(shape[first : last + 1])
    return reshape(input, (*shape[:first], size, *shape[last + 1 :]))


@register_functor("ravel")
def ravel(input: Tensor) -> Tensor:
    """Return the elements in one dimension."""
    return reshape(input, (check_tensor("ravel", "input", input).numel(),))


@register_functor("unflatten")
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Return the tensor with one dimension split into several; one size may be -1."""
    shape = check_tensor("unflatten", "input", input).shape
    if not shape:
        raise bad_argument(
            DimError,
            "unflatten",
            "input",
            expected="at least one dimension",
            got="none",
            mend="use reshape()",
        )
    dim = check_dim("unflatten", dim, len(shape))
    if not isinstance(sizes, (tuple, list)) or not sizes:
        raise bad_argument(
            ShapeError if isinstance(sizes, (tuple, list)) else ArgumentTypeError,
            "unflatten",
            "sizes",
            expected="a tuple of at least one int",
            got=repr(sizes),
            mend="name the sizes that the dimension is split into",
        )
    parts = check_shape("unflatten", (sizes,), "sizes")
    parts = _filled("unflatten", "sizes", parts, shape[dim], input)
    return reshape(input, (*shape[:dim], *parts, *shape[dim + 1 :]))


@register_functor("squeeze")
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Return the tensor without the dimensions of size 1 (all of them, or those named)."""
    shape = check_tensor("squeeze", "input", input).shape
    dims = check_dims("squeeze", dim, len(shape)) if dim != () else ()
    return dispatch1(_SQUEEZE, input, {"dim": tuple(d for d in dims if shape[d] == 1)})


@register_functor("unsqueeze")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return the tensor with a dimension of size 1 inserted before `dim`."""
    rank = check_tensor("unsqueeze", "input", input)._data.ndim
    return dispatch1(_UNSQUEEZE, input, {"dim": check_dim("unsqueeze", dim, rank + 1)})


@register_functor("transpose")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return the tensor with two dimensions exchanged."""
    rank = check_tensor("transpose", "input", input)._data.ndim
    first = check_dim("transpose", dim0, rank, "dim0")
    second = check_dim("transpose", dim1, rank, "dim1")
    if not rank:
        return permute(input, ())
    return dispatch1(_TRANSPOSE, input, {"dim0": first, "dim1": second})


@register_functor("t")
def t(input: Tensor) -> Tensor:
    """Return the transpose of a matrix; fewer dimensions stay as they are."""
    rank = check_ndim("t", input, (0, 1, 2))._data.ndim
    return transpose(input, 0, 1) if rank == 2 else permute(input, tuple(range(rank)))


@register_functor("permute")
def permute(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """Return the tensor with its dimensions in another order.

    >>> import oneflow_lite as flow
    >>> flow.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    rank = check_tensor("permute", "input", input)._data.ndim
    order = check_shape("permute", _sizes("permute", dims, named, "dims"), "dims")
    if len(order) != rank:
        raise bad_argument(
            ShapeError,
            "permute",
            "dims",
            expected=f"{rank} dimensions, each once",
            got=order,
            mend="name every dimension once",
        )
    order = check_dims("permute", order, rank, "dims") if rank else ()
    return dispatch1(_PERMUTE, input, {"dims": order})


@register_functor("movedim")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Return the tensor with dimensions moved to other places; the others keep their order."""
    rank = check_tensor("movedim", "input", input)._data.ndim
    single = isinstance(source, int)
    sources = check_dims("movedim", (source,) if single else source, rank, "source")
    places = check_dims(
        "movedim", (destination,) if isinstance(destination, int) else destination, rank,
        "destination",
    )  # fmt: skip
    if len(sources) != len(places):
        raise bad_argument(
            ShapeError,
            "movedim",
            "destination",
            expected=f"{len(sources)} dimension(s), as many as in source",
            got=destination,
            mend="name one place per dimension",
        )
    order = [d for d in range(rank) if d not in sources]
    for place, dim in sorted(zip(places, sources, strict=True)):
        order.insert(place, dim)
    return permute(input, tuple(order))


@register_functor("expand")
def expand(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """Return the tensor with dimensions of size 1 repeated, without using memory; -1 keeps a size.

    >>> import oneflow_lite as flow
    >>> flow.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return _expanded("expand", input, _sizes("expand", shape, named, "size", "shape"))


def _expanded(op: str, input: Tensor, shape: tuple[Any, ...]) -> Tensor:
    have = check_tensor(op, "input", input).shape
    sizes = check_shape(op, shape, "size")
    extra = len(sizes) - len(have)
    kept = [have[i - extra] if n == -1 and i >= extra else n for i, n in enumerate(sizes)]
    fits = all(n >= 0 for n in kept) and all(
        h in (1, n) for h, n in zip(have, kept[max(extra, 0) :], strict=False)
    )
    if extra < 0 or not fits:
        raise bad_argument(
            ShapeError,
            op,
            "size",
            expected=f"sizes to which {have} broadcasts",
            got=sizes,
            mend="change only dimensions of size 1, or add dimensions in front",
        )
    return dispatch1(_EXPAND, input, {"shape": tuple(kept)})


@register_functor("broadcast_to")
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """Return the tensor broadcast to a size, without using memory."""
    return _expanded("broadcast_to", input, (size,))


@register_functor("expand_as")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the tensor broadcast to the shape of `other`."""
    return expand(input, check_tensor("expand_as", "other", other).shape)


@register_functor("sum_to")
def sum_to_size(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """Return the sum over those dimensions along which `shape` broadcasts to the input's shape."""
    have = check_tensor("sum_to_size", "input", input).shape
    given = _sizes("sum_to_size", shape, named, "size", "shape")
    sizes = check_shape("sum_to_size", given, "size")
    extra = len(have) - len(sizes)
    if extra < 0 or any(n not in (1, have[extra + i]) for i, n in enumerate(sizes)):
        raise bad_argument(
            ShapeError,
            "sum_to_size",
            "size",
            expected=f"sizes that broadcast to {have}",
            got=sizes,
            mend="use 1 where a dimension is to be summed",
        )
    return dispatch1(_SUM_TO, input, {"shape": sizes})


@register_functor("clone")
def clone(input: Tensor) -> Tensor:
    """Return a copy that gradients flow through."""
    return dispatch1(_CLONE, input)


@register_functor("contiguous")
def contiguous(input: Tensor) -> Tensor:
    """Return the tensor itself when its memory is contiguous, else a contiguous copy."""
    return input if check_tensor("contiguous", "input", input).is_contiguous() else clone(input)


@register_functor("real")
def real(input: Tensor) -> Tensor:
    """Return a view of the real parts; a real tensor is returned as it is."""
    return dispatch1(_REAL, input) if check_tensor("real", "input", input).is_complex() else input


@register_functor("imag")
def imag(input: Tensor) -> Tensor:
    """Return a view of the imaginary parts of a complex tensor."""
    if not check_tensor("imag", "input", input).is_complex():
        raise bad_argument(
            DTypeError,
            "imag",
            "input",
            expected="a complex dtype",
            got=input.dtype,
            mend="a real tensor has no imaginary part",
        )
    return dispatch1(_IMAG, input)


register_functor("cast")(cast)


@register_functor("to_device")
def transfer(input: Tensor, target: Any, source: Any = None) -> Tensor:
    """Return a copy on another device; the tensor itself when it is there."""
    target = as_device(target)
    here = check_tensor("to", "input", input).device
    if here == target:
        return input
    return dispatch(_TO_DEVICE, (input,), {"target": target, "source": here})


def to(input: Tensor, *args: Any, **named: Any) -> Tensor:
    """Convert dtype and device: `to(dtype)`, `to(device)`, `to(device, dtype)` or `to(other)`.

    Returns the tensor itself when nothing has to change.

    >>> import oneflow_lite as flow
    >>> flow.ones(2).to(flow.int64)
    tensor([1, 1])
    """
    check_tensor("to", "input", input)
    device, dtype = named.pop("device", None), named.pop("dtype", None)
    flags = [value for value in args if isinstance(value, bool)]  # non_blocking, copy
    copy = named.pop("copy", flags[1] if len(flags) > 1 else False)
    named.pop("non_blocking", None)
    _sizes("to", (), named)
    for value in args:
        if isinstance(value, bool):
            continue
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, (Device, int)) or (
            isinstance(value, str) and value.partition(":")[0] in ("cpu", "cuda")
        ):
            device = value
        elif value is not None:
            dtype = value
    result = input if dtype is None else cast(input, dtype)
    result = result if device is None else transfer(result, device)
    return clone(result) if copy and result is input else result
