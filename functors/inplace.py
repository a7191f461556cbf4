"""In-place twins, made from the out-of-place functors: compute, write, move the history."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from oneflow_lite.autograd.function_node import next_sequence_nr
from oneflow_lite.autograd.mode import enable_grad, local, with_grad_mode
from oneflow_lite.autograd.saved_tensor import save_tensor
from oneflow_lite.dtype import can_cast
from oneflow_lite.errors import (
    ArgumentTypeError,
    DTypeError,
    InplaceError,
    ShapeError,
    bad_argument,
)
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.fill_value import fill_value
from oneflow_lite.functors.shape import cast, expand, transfer
from oneflow_lite.interpreter import dispatch, rebase_history
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.registry import FUNCTORS, register_functor
from oneflow_lite.scalars import scalar_tensor
from oneflow_lite.tensor import Tensor, make_tensor
from oneflow_lite.views import check_history, check_memory, check_writable

_COPY_ = op_expr("copy_")
_CLONE = op_expr("clone")
_FILL_ = op_expr("fill_")
_RESHAPE = op_expr("reshape")

TWINS = """
    abs acos acosh add addcdiv addcmul addmm asin asinh atan atan2 atanh baddbmm bitwise_and
    bitwise_or bitwise_xor ceil celu clamp clamp_max clamp_min cos cosh cumprod cumsum div elu
    erf erfc exp exp2 expm1 floor floor_divide fmod frac hardsigmoid hardswish hardtanh hypot
    index_add index_fill leaky_relu lerp log log10 log1p log2 masked_fill masked_scatter mish
    mul nan_to_num neg pow reciprocal relu relu6 remainder round rsqrt scatter scatter_add
    selu sgn sigmoid sign silu sin sinc sinh sqrt square sub tan tanh threshold tril triu trunc
    xlogy
""".split()


def make_inplace(name: str) -> Callable[..., Tensor]:
    """Make `name_` from the functor `name`: it writes its result into its first argument."""
    doc = f"Write the result of `{name}` into the tensor, and return the tensor."
    return _register_twin(name, write_result, doc)


def make_reshaping(name: str) -> Callable[..., Tensor]:
    """Make `name_` from the functor `name`, a view: it changes the tensor's own shape."""
    doc = f"Do what `{name}` does to the tensor itself: same memory, another shape."
    return _register_twin(name, take_view, doc)


def _register_twin(name: str, run: Callable[..., Tensor], doc: str) -> Callable[..., Tensor]:
    functor = FUNCTORS.get(name)
    own_name = f"{name}_"

    @functools.wraps(functor)
    def twin(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return run(own_name, functor, input, args, kwargs)

    twin.__name__ = twin.__qualname__ = own_name
    twin.__doc__ = doc
    return register_functor(own_name)(twin)


def write_result(
    op: str,
    functor: Callable[..., Tensor],
    input: Tensor,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Tensor:
    """Write what a functor makes of a tensor into that tensor, and return the tensor.

    The result's node becomes the node of the tensor that was written. What that node saved of the
    old content is copied first, as PyTorch does; what it saved of the result is the tensor itself.
    """
    check_tensor(op, "input", input)
    if "out" in kwargs:
        raise bad_argument(
            ArgumentTypeError,
            op,
            "out",
            expected="no such argument",
            got=type(kwargs["out"]).__name__,
            mend=f"the tensor itself receives the result; use {op[:-1]}(..., out=...)",
        )
    _check_target(op, input)
    first_new = next_sequence_nr()
    source = input if local.state.saved_hooks is None else _snapshot(input)
    result = functor(source, *args, **kwargs)
    if result is source:
        return input
    result = _fit(op, input, result)
    edge = result._edge
    if edge is None:  # a constant: copy_ records where the tensor had a history
        dispatch(_COPY_, (input, result))
        return input
    check_writable(op, input, needs_grad=True)
    _keep_old_content(edge[0], first_new, input, (*args, *kwargs.values()))
    _unrecorded(_COPY_, input, result)
    node = edge[0]  # where it saved its output, that is now the tensor that was written
    node.saved = tuple(
        save_tensor(saved[0], input, saved[4]) if saved[1] is result._data else saved
        for saved in node.saved or ()
    )
    rebase_history(input, edge)
    return input


def _check_target(op: str, input: Tensor) -> None:
    """Raise `InplaceError` when `input` cannot be written in the grad mode that is on."""
    if local.state.grad_enabled:
        check_writable(op, input)
    else:
        check_memory(op, input)


def _fit(op: str, input: Tensor, result: Tensor) -> Tensor:
    """Check that a result can be stored in `input`, and cast it to its dtype."""
    if result.shape != input.shape:
        raise bad_argument(
            ShapeError,
            op,
            "other",
            expected=f"operands that broadcast to the tensor's shape {input.shape}",
            got=f"a result of shape {result.shape}",
            mend=f"use the out-of-place {op[:-1]}()",
        )
    if result.dtype is input.dtype:
        return result
    if input.is_complex() and not result.is_complex():
        raise bad_argument(
            DTypeError,
            op,
            "input",
            expected="a real dtype, which the result has",
            got=input.dtype,
            mend=f"use the out-of-place {op[:-1]}()",
        )
    if not can_cast(result.dtype, input.dtype):
        raise bad_argument(
            DTypeError,
            op,
            "other",
            expected=f"a result that can be stored as {input.dtype}",
            got=result.dtype,
            mend="convert the tensor to a floating point dtype first",
        )
    return cast(result, input.dtype)


def _snapshot(input: Tensor) -> Tensor:
    """Return the content and history of a tensor, for hooks that may keep what they see."""
    copy = _copied(input._data)
    copy._edge = input._edge
    return copy


def _copied(array: Any) -> Tensor:
    """Return a copy without history, made by an op, so that a pushed interpreter sees it."""
    return _unrecorded(_CLONE, make_tensor(array))


def _keep_old_content(node: Any, first_new: int, input: Tensor, operands: Any) -> None:
    """Copy what the nodes of this call saved of the content that is about to be overwritten.

    Other operands that share its memory are not copied: their gradient raises, as in PyTorch.
    """
    if input._storage is None:
        return
    # An alias made by detach() has the same array, but not the history.
    others = [(x._data, x._edge) for x in operands if isinstance(x, Tensor) and x is not input]
    stack = [node]
    while stack:
        node = stack.pop()
        if node.sequence_nr < first_new:
            continue
        if node.saved:
            node.saved = tuple(
                save_tensor(name, _copied(data), edge)
                if storage is input._storage
                and not any(data is array and edge is history for array, history in others)
                else (name, data, storage, version, edge)
                for name, data, storage, version, edge in node.saved
            )
        stack.extend(next_node for next_node, _ in node.edges if next_node is not None)


def _unrecorded(op: OpExpr, *inputs: Tensor) -> Tensor:
    """Dispatch an op of which autograd is to know nothing."""
    before = local.state
    local.state = with_grad_mode(False)
    try:
        result: Tensor = dispatch(op, inputs)
    finally:
        local.state = before
    return result


@register_functor("copy_")
def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write `src`, broadcast and converted, into the tensor, and return the tensor."""
    check_tensor("copy_", "input", input)
    if not isinstance(src, Tensor):
        return fill_(input, src)
    value = expand(cast(transfer(src, input.device), input.dtype), input.shape)
    return dispatch(_COPY_, (input, value))


@register_functor("fill_")
def fill_(input: Tensor, value: Any) -> Tensor:
    """Write one number, or a 0-d tensor, into every element, and return the tensor."""
    return _fill("fill_", input, value)


def _fill(op: str, input: Tensor, value: Any) -> Tensor:
    check_tensor(op, "input", input)
    _check_target(op, input)
    if not isinstance(value, Tensor):
        number = fill_value(op, "value", value, input.dtype)
        value = scalar_tensor(number, input.dtype, input.device)
    elif value.ndim:
        raise bad_argument(
            ShapeError,
            op,
            "value",
            expected="a number or a 0-d tensor",
            got=f"shape {value.shape}",
            mend="use copy_() for tensors",
        )
    return dispatch(_FILL_, (input, cast(value, input.dtype)))


@register_functor("zero_")
def zero_(input: Tensor) -> Tensor:
    """Write zeros into the tensor, and return the tensor."""
    return _fill("zero_", input, 0)


def take_view(
    op: str,
    functor: Callable[..., Tensor],
    input: Tensor,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Tensor:
    """Give a tensor the shape and the history of a view of it, and return the tensor."""
    check_tensor(op, "input", input).refresh_view()
    if input._edge is not None and input.is_leaf:
        raise InplaceError(
            f"{op}(): a leaf that requires a gradient keeps the shape that its .grad has; use the "
            f"out-of-place {op[:-1]}()"
        )
    if local.state.grad_enabled:
        check_history(op, input)
    with enable_grad():  # under no_grad too: the elements are the same, and so is their history
        result = functor(input, *args, **kwargs)
    _take_shape(input, result)
    return input


def _take_shape(input: Tensor, result: Tensor) -> None:
    """Give a tensor the shape and the history of a view of it."""
    view = result._view
    assert view is not None
    if input._view is not None:
        input._view = view
    else:  # views that were taken before begin with what leads back to the old shape
        undo = (view.op_expr, view.attrs)  # a transposition undoes itself
        if result.ndim != input.ndim:
            undo = (_RESHAPE, {"shape": input.shape})
        input._layout = (input._layout, *undo)
    input._data = result._data
    input.storage.version += 1
    if result._edge is not None:
        input.set_history(result._edge)


for _name in ("t", "transpose", "squeeze", "unsqueeze"):
    make_reshaping(_name)
