"""The steps of in-place functors: compute, write, move the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite.arrays.dtype import can_cast
from oneflow_lite.autograd.rules.saved_tensor import save_tensor
from oneflow_lite.errors import DTypeError, InplaceError, arg_error
from oneflow_lite.functors.declaring.checks import cast, check_tensor
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.interpreter.history import rebase_history
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.tensors.mode import inference_mode, local, with_grad_mode
from oneflow_lite.tensors.node import next_sequence_nr
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.tensors.views import check_history, check_memory, check_writable

_COPY_ = op_expr("copy_")
_CLONE = op_expr("clone")
_RESHAPE = op_expr("reshape")


def write_result(
    op: str,
    functor: Callable[..., Tensor],
    input: Tensor,
    args: Any,
    kwargs: dict[str, Any],
    same: bool = False,
) -> Tensor:
    """Write the result of a functor on a tensor into that tensor, and return the tensor.

    With `same`, a result of another dtype raises, instead of being cast where that keeps its kind.

    The result's node becomes the node of the tensor that was written. If the node saved the old
    content, the content is copied first, as in PyTorch; a saved result is the tensor itself.
    """
    check_tensor(op, "input", input)
    check_target(op, input)
    first_new = next_sequence_nr()
    source = input if local.state.saved_hooks is None else _snapshot(input)
    result = functor(source, *args, **kwargs)
    if result is source:
        return input
    result = _fit(op, input, result, same)
    edge = result._edge
    if edge is None:  # a constant: copy_ records where the tensor had a history
        dispatch(_COPY_, (input, result))
        return input
    check_writable(op, input, needs_grad=True)
    _keep_old_content(edge[0], first_new, input, (*args, *kwargs.values()))
    _unrecorded(_COPY_, input, result)
    node = edge[0]  # an output that it saved is now the tensor that was written
    node.saved = tuple(
        save_tensor(saved[0], input, saved[4]) if saved[1] is result._data else saved
        for saved in node.saved or ()
    )
    rebase_history(input, edge)
    return input


def check_target(op: str, input: Tensor) -> None:
    """Raise `InplaceError` when `input` cannot be written in the grad mode that is on."""
    if local.state.grad_enabled:
        check_writable(op, input)
    else:
        check_memory(op, input)


def _fit(op: str, input: Tensor, result: Tensor, same: bool) -> Tensor:
    """Check that a result can be stored in `input`, and cast it to its dtype, unless `same` is."""
    if result._data.shape != input._data.shape:
        expected = f"operands that broadcast to the tensor's shape {input.shape}"
        got, hint = f"a result of shape {result.shape}", f"use the out-of-place {op[:-1]}()"
        raise arg_error(op, "other", expected, got, hint)
    if result._data.dtype is input._data.dtype:
        return result
    if same or (input.is_complex() and result._data.dtype.kind not in "cb"):
        kind = str(result.dtype) if same else "a real dtype"
        expected, hint = f"{kind}, which the result has", f"use the out-of-place {op[:-1]}()"
        raise arg_error(op, "input", expected, input.dtype, hint, DTypeError)
    if not can_cast(result.dtype, input.dtype):
        expected = f"a result that can be stored as {input.dtype}"
        hint = "convert the tensor to a floating point dtype first"
        raise arg_error(op, "other", expected, result.dtype, hint, DTypeError)
    return cast(result, input.dtype)


def _snapshot(input: Tensor) -> Tensor:
    """Return a copy of a tensor with its history: hooks may keep the tensors they are given."""
    copy = _copied(input._data)
    copy._edge = input._edge
    return copy


def _copied(array: Any) -> Tensor:
    """Return a copy without history, made by an op, so that a pushed interpreter sees it."""
    return _unrecorded(_CLONE, make_tensor(array))


def _keep_old_content(node: Any, first_new: int, input: Tensor, operands: Any) -> None:
    """Copy the arrays that nodes of this call saved, where they are about to be overwritten.

    Other operands that share the memory are not copied: their gradient raises, as in PyTorch.
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
    """Dispatch an op that autograd does not record."""
    before = local.state
    local.state = with_grad_mode(False)
    try:
        result: Tensor = dispatch(op, inputs)
    finally:
        local.state = before
    return result


def take_view(
    op: str, functor: Callable[..., Tensor], input: Tensor, args: Any, kwargs: dict[str, Any]
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
    # In every mode: the elements are the same, and so is their history.
    with inference_mode(False):
        result = functor(input, *args, **kwargs)
    _take_shape(input, result)
    return input


def _take_shape(input: Tensor, result: Tensor) -> None:
    """Give a tensor the shape and the history of a view of it."""
    view = result._view
    assert view is not None
    if input._view is not None:
        input._view = view
    else:  # earlier views are of the old shape: their chains begin with the op that restores it
        undo = (view.op_expr, view.attrs)  # a transposition undoes itself
        if "storage_offset" in view.attrs:  # the old sizes and strides, from the old first element
            attrs = {"size": input.shape, "stride": input.stride()}
            undo = (view.op_expr, {**attrs, "storage_offset": -view.attrs["storage_offset"]})
        elif result.ndim != input.ndim:
            undo = (_RESHAPE, {"shape": input.shape})
        input._layout = (input._layout, *undo)
    input._data = result._data
    input.memory.version += 1
    if result._edge is not None:
        input.set_history(result._edge)
