"""The collectives in PyTorch's spelling, which write to the tensors passed to them.

Each goes through dispatch as a registered op, so that Programs and `flow.compile` see it. With
`async_op=True` a collective begins at once, and a `Work` says when it is done; while ops are
recorded it is done when the call returns. Gradients flow through
`flow.distributed.nn.functional`, and through these functions where they write a tensor that is no
leaf; a leaf is written as under `no_grad`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from oneflow_lite.arrays.device import array_module, on_device
from oneflow_lite.distributed.process_group import GroupMember, ProcessGroup, check_group
from oneflow_lite.distributed.reduce_op import ReduceOp, reduction
from oneflow_lite.distributed.work import DONE, Work
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, arg_error
from oneflow_lite.functors.creation import zeros
from oneflow_lite.functors.declaring.checks import check_tensor, check_tensors
from oneflow_lite.functors.joining import stack
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.mode import local, no_grad
from oneflow_lite.tensors.tensor import Tensor


def member(op: str, group: Any) -> ProcessGroup | None:
    """Return a group that this process is in, or None where this process is not a member.

    Outside of its group a call does nothing, as in PyTorch.
    """
    if group is GroupMember.NON_GROUP_MEMBER:
        return None
    return check_group(op, group)


def rank_of(op: str, argument: str, group: ProcessGroup, rank: Any, group_rank: Any = None) -> int:
    """Return the number in a group of a rank of the world, or `group_rank` where it is given."""
    if group_rank is not None:
        if isinstance(group_rank, int) and 0 <= group_rank < group.size():
            return group_rank
        expected, hint = f"0 to {group.size() - 1}", "name a rank of the group"
        raise arg_error(op, f"group_{argument}", expected, group_rank, hint, ArgumentError)
    if isinstance(rank, int) and rank in group.ranks:
        return group.ranks.index(rank)
    expected = f"one of {list(group.ranks)}, the ranks of the group"
    raise arg_error(op, argument, expected, rank, "name a member", ArgumentError)


def run(name: str, tensor: Tensor, /, **attrs: Any) -> Any:
    """Dispatch a collective; a leaf that it writes is written as under `no_grad`."""
    expr = op_expr(name)
    leaf = expr.schema.mutates and tensor.requires_grad and tensor.is_leaf
    with no_grad() if leaf else contextlib.nullcontext():
        return dispatch(expr, (tensor,), attrs)


def _begun(
    tensor: Tensor, async_op: bool, begin: Callable[[Any, Any], Work], sync: Callable[[], Any]
) -> Work | None:
    """Begin a collective that writes a tensor, and return without waiting where `async_op` says so.

    Where ops are recorded or the tensor is not contiguous, call `sync`, which waits.
    """
    array = tensor._data
    plain = local.state.interpreter is None and not getattr(array, "is_symbolic", False)
    if not async_op:
        sync()
        return None
    if not plain or not array.flags.c_contiguous:
        sync()
        return DONE
    # Dispatch, which counts writes, does not see this one.
    (tensor._storage or tensor.memory).version += 1
    with on_device(tensor.device):
        work = begin(array, array_module(tensor.device))
    work.tensors = [tensor]
    return work


def all_reduce(
    tensor: Tensor,
    op: ReduceOp | str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce a tensor over all ranks; each then has the result.

    Parameters
    ----------
    tensor : Tensor
        Of one shape and dtype on all ranks; written. float16 and bfloat16 are summed in float32.
    op : ReduceOp
    group : ProcessGroup, optional
        The world by default.
    async_op : bool
        Whether to return a `Work` at once, before it is done.

    Returns
    -------
    Work or None

    Raises
    ------
    DistributedError
        When the ranks make different calls, one has ended, or the timeout has passed.
    DTypeError
        When the dtype has no such reduction.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.distributed.init_process_group()
    >>> x = flow.tensor([1.0, 2.0])
    >>> flow.distributed.all_reduce(x)
    >>> x
    tensor([1., 2.])
    >>> flow.distributed.destroy_process_group()
    """
    name = "all_reduce"
    members = member(name, group)
    if members is None:
        return None
    check_tensor(name, "tensor", tensor)
    reduced = reduction(name, op, tensor.dtype)
    return _begun(
        tensor,
        async_op,
        lambda x, xp: members.transport(xp).all_reduce(x, x, reduced),
        lambda: run("all_reduce_", tensor, reduction=reduced, group=members),
    )


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp | str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce a tensor over all ranks; rank `dst` then has the result, the rest keep their tensors.

    dst: a rank of the world; `group_dst` counts in the group instead.
    """
    name = "reduce"
    members = member(name, group)
    if members is None:
        return None
    check_tensor(name, "tensor", tensor)
    target = rank_of(name, "dst", members, dst, group_dst)
    reduced = reduction(name, op, tensor.dtype)
    return _begun(
        tensor,
        async_op,
        lambda x, xp: members.transport(xp).reduce(x, x, target, reduced),
        lambda: run("reduce_to_", tensor, dst=target, reduction=reduced, group=members),
    )


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write the tensor of rank `src` to the tensors of all ranks.

    src: a rank of the world; `group_src` counts in the group instead.
    """
    name = "broadcast"
    members = member(name, group)
    if members is None:
        return None
    check_tensor(name, "tensor", tensor)
    source = rank_of(name, "src", members, src, group_src)
    return _begun(
        tensor,
        async_op,
        lambda x, xp: members.transport(xp).broadcast(x, source),
        lambda: run("broadcast_from_", tensor, src=source, group=members),
    )


def _write(op: str, argument: str, target: Tensor, value: Tensor) -> None:
    """Put a result into a tensor that was given for it."""
    check_tensor(op, argument, target)
    if target.numel() != value.numel():
        expected, hint = f"{value.numel()} elements", "give it the size of the result"
        raise arg_error(op, argument, expected, target, hint, ShapeError)
    if target.dtype != value.dtype:
        raise arg_error(op, argument, str(value.dtype), target.dtype, "convert it", DTypeError)
    leaf = target.requires_grad and target.is_leaf
    with no_grad() if leaf else contextlib.nullcontext():
        target.copy_(value.reshape(target.shape))


def _check_list(op: str, argument: str, value: Any, count: int, like: Tensor | None) -> None:
    check_tensors(op, value, argument)
    if len(value) != count:
        expected, hint = f"{count} tensors, one for each rank", "give one more or less"
        raise arg_error(op, argument, expected, f"{len(value)}", hint, ArgumentError)
    first = value[0] if like is None else like
    for each in value:
        if each.shape != first.shape or each.dtype != first.dtype:
            expected = f"tensors of shape {tuple(first.shape)} and dtype {first.dtype}"
            got = f"one of shape {tuple(each.shape)} and dtype {each.dtype}"
            raise arg_error(op, argument, expected, got, "make them alike", ShapeError)


def _check_sizes(op: str, argument: str, tensor: Any, count: int, other: Tensor, name: str) -> None:
    """Check that one tensor has `count` times the elements of another, before anything is sent."""
    check_tensor(op, argument, tensor)
    if tensor.numel() != count * other.numel():
        expected = f"{count * other.numel()} elements, {count} times those of {name!r}"
        raise arg_error(op, argument, expected, tensor, "give it that size", ShapeError)
    if tensor.dtype != other.dtype:
        expected = f"{other.dtype}, the dtype of {name!r}"
        raise arg_error(op, argument, expected, tensor.dtype, "convert one of them", DTypeError)


def _done(async_op: bool) -> Work | None:
    return DONE if async_op else None


def all_gather(
    tensor_list: Sequence[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Put each rank's tensor into a list of tensors, on all ranks.

    Even with `async_op` the call waits; `all_gather_into_tensor` does not.
    """
    op = "all_gather"
    members = member(op, group)
    if members is None:
        return None
    check_tensor(op, "tensor", tensor)
    _check_list(op, "tensor_list", tensor_list, members.size(), tensor)
    rows = run(op, tensor, group=members)
    for i, target in enumerate(tensor_list):
        _write(op, f"tensor_list[{i}]", target, rows[i])
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Put the tensors of all ranks into `output_tensor`, in order of rank, on all ranks.

    output_tensor: concatenated or stacked, with as many elements as all ranks' inputs; written.
    """
    op = "all_gather_into_tensor"
    members = member(op, group)
    if members is None:
        return None
    check_tensor(op, "input_tensor", input_tensor)
    size = members.size()
    _check_sizes(op, "output_tensor", output_tensor, size, input_tensor, "input_tensor")
    given = input_tensor._data
    return _begun(
        output_tensor,
        async_op and bool(given.flags.c_contiguous),
        lambda out, xp: members.transport(xp).all_gather(given, out),
        lambda: _write(
            op, "output_tensor", output_tensor, run("all_gather", input_tensor, group=members)
        ),
    ) or _done(async_op)


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Put each rank's tensor into a list of tensors on rank `dst` (0 by default)."""
    op = "gather"
    members = member(op, group)
    if members is None:
        return None
    check_tensor(op, "tensor", tensor)
    target = 0 if dst is None is group_dst else rank_of(op, "dst", members, dst, group_dst)
    if members.rank() == target:
        if gather_list is None:
            hint = "pass a list with one for each rank"
            raise arg_error(op, "gather_list", "tensors on rank dst", None, hint, ArgumentError)
        _check_list(op, "gather_list", gather_list, members.size(), tensor)
    elif gather_list:
        hint = "leave it out there"
        got = f"{len(gather_list)} tensors"
        raise arg_error(op, "gather_list", "None on other ranks than dst", got, hint, ArgumentError)
    rows = run("gather_to", tensor, dst=target, group=members)
    for i, each in enumerate(gather_list or ()):
        _write(op, f"gather_list[{i}]", each, rows[i])
    return _done(async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give rank i the tensor i of a list on rank `src` (0 by default)."""
    op = "scatter"
    members = member(op, group)
    if members is None:
        return None
    check_tensor(op, "tensor", tensor)
    source = 0 if src is None is group_src else rank_of(op, "src", members, src, group_src)
    if members.rank() == source:
        if scatter_list is None:
            hint = "pass a list with one for each rank"
            raise arg_error(op, "scatter_list", "tensors on rank src", None, hint, ArgumentError)
        _check_list(op, "scatter_list", scatter_list, members.size(), tensor)
        rows = stack(list(scatter_list))
    else:
        if scatter_list:
            got, hint = f"{len(scatter_list)} tensors", "leave it out there"
            expected = "None on other ranks than src"
            raise arg_error(op, "scatter_list", expected, got, hint, ArgumentError)
        # The op takes rows on every rank, and reads only their shape and dtype here.
        rows = tensor.detach().expand(members.size(), *tensor.shape)
    _write(op, "tensor", tensor, run("scatter_from", rows, src=source, group=members))
    return _done(async_op)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp | str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce each tensor of a list over all ranks; rank i gets the result for tensor i."""
    name = "reduce_scatter"
    members = member(name, group)
    if members is None:
        return None
    check_tensor(name, "output", output)
    _check_list(name, "input_list", input_list, members.size(), output)
    reduced = reduction(name, op, output.dtype)
    rows = stack(list(input_list))
    _write(name, "output", output, run(name, rows, reduction=reduced, group=members))
    return _done(async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp | str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce a tensor over all ranks and give each rank its part, in order of the ranks.

    input: with as many elements as all ranks' outputs.
    """
    name = "reduce_scatter_tensor"
    members = member(name, group)
    if members is None:
        return None
    check_tensor(name, "output", output)
    _check_sizes(name, "input", input, members.size(), output, "output")
    reduced = reduction(name, op, output.dtype)
    given = input._data
    shape = (members.size(), *output.shape)
    return _begun(
        output,
        async_op and bool(given.flags.c_contiguous),
        lambda out, xp: members.transport(xp).reduce_scatter(given, out, reduced),
        lambda: _write(
            name,
            "output",
            output,
            run("reduce_scatter", input.reshape(shape), reduction=reduced, group=members),
        ),
    ) or _done(async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send tensor i of a list to rank i, and put the tensors received into `output_tensor_list`.

    Shapes may differ; sender and receiver give a tensor the same number of elements.
    """
    op = "all_to_all"
    members = member(op, group)
    if members is None:
        return None
    for name, given in (
        ("output_tensor_list", output_tensor_list),
        ("input_tensor_list", input_tensor_list),
    ):
        check_tensors(op, given, name)
        if len(given) != members.size():
            expected, hint = f"{members.size()} tensors, one for each rank", "give one more or less"
            raise arg_error(op, name, expected, f"{len(given)}", hint, ArgumentError)
    from oneflow_lite.functors.joining import cat

    sent = tuple(x.numel() for x in input_tensor_list)
    got = tuple(x.numel() for x in output_tensor_list)
    rows = cat([x.reshape(-1) for x in input_tensor_list])
    parts = run(op, rows, sent=sent, got=got, group=members).split(list(got))
    for i, (target, part) in enumerate(zip(output_tensor_list, parts, strict=True)):
        _write(op, f"output_tensor_list[{i}]", target, part)
    return _done(async_op)


def splits(op: str, argument: str, value: Any, tensor: Tensor, size: int) -> tuple[int, ...]:
    """Return how many rows go to, or come from, each rank; equal shares by default."""
    rows = tensor.shape[0] if tensor.ndim else 0
    if value:
        counts = tuple(int(n) for n in value)
        if len(counts) == size and sum(counts) == rows and min(counts) >= 0:
            return counts
        expected = f"{size} sizes that sum to {rows}"
        raise arg_error(op, argument, expected, list(value), "one for each rank", ArgumentError)
    if tensor.ndim and rows % size == 0:
        return (rows // size,) * size
    expected, hint = f"a first dimension that {size} divides", f"pass {argument}"
    raise arg_error(op, argument.split("_")[0], expected, tensor, hint, ShapeError)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each rank a share of the rows of a tensor, and join the shares received.

    output_split_sizes, input_split_sizes: how many rows come from, and go to, each rank; equal
    shares by default.
    """
    op = "all_to_all_single"
    members = member(op, group)
    if members is None:
        return None
    check_tensor(op, "input", input)
    check_tensor(op, "output", output)
    sent = splits(op, "input_split_sizes", input_split_sizes, input, members.size())
    got = splits(op, "output_split_sizes", output_split_sizes, output, members.size())
    if input.dtype != output.dtype or input.shape[1:] != output.shape[1:]:
        expected = f"rows of shape {tuple(input.shape[1:])} and dtype {input.dtype}"
        raise arg_error(op, "output", expected, output, "make it like the input", ShapeError)
    _write(op, "output", output, run("all_to_all", input, sent=sent, got=got, group=members))
    return _done(async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor],
    op: ReduceOp | str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce each tensor of a list over all ranks."""
    for x in tensors:
        all_reduce(x, op, group)
    return _done(async_op)


def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gather each tensor of a list: `output_tensor_lists[r]` gets the tensors of rank r."""
    for i, x in enumerate(input_tensor_list):
        all_gather([given[i] for given in output_tensor_lists], x, group)
    return _done(async_op)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Sequence[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until all ranks have called this, no longer than `timeout`, a timedelta."""
    if timeout is not None and not async_op:
        monitored_barrier(group, timeout)
        return None
    op = "barrier"
    members = member(op, group)
    if members is None:
        return None
    if async_op and local.state.interpreter is None:
        return members.transport(array_module(zeros(()).device)).barrier()
    run(op, zeros(()), group=members)
    return _done(async_op)


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """Wait until all ranks have called this, no longer than `timeout`, a timedelta."""
    import numpy as np

    members = member("monitored_barrier", group)
    if members is not None:
        members.transport(np).barrier().wait(timeout)


# From one rank to another


def _check_peer(op: str, argument: str, group: ProcessGroup, rank: Any, group_rank: Any) -> int:
    peer = rank_of(op, argument, group, rank, group_rank)
    if peer == group.rank():
        expected, hint = "another rank", "copy the tensor instead"
        raise arg_error(op, argument, expected, f"{rank}, this one", hint, ArgumentError)
    return peer


def _check_tag(op: str, tag: Any) -> int:
    if isinstance(tag, int) and 0 <= tag < 2**15:  # MPI promises no larger tags
        return tag
    raise arg_error(op, "tag", "0 to 32767", tag, "choose a smaller one", ArgumentError)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to one rank, which calls `recv`; return when the tensor may be written."""
    op = "send"
    members = member(op, group)
    if members is not None:
        check_tensor(op, "tensor", tensor)
        peer = _check_peer(op, "dst", members, dst, group_dst)
        run("send_to", tensor, dst=peer, tag=_check_tag(op, tag), group=members)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from a rank, or from any rank; return the sender's rank in the world.

    DistributedError: when the message has another size.
    """
    op = "recv"
    members = member(op, group)
    if members is None:
        return -1
    check_tensor(op, "tensor", tensor)
    tag = _check_tag(op, tag)
    if src is None and group_src is None:
        work = irecv(tensor, None, group, tag)
        assert work is not None
        work.wait()
        return members.global_rank(work.source.rank)  # type: ignore[attr-defined]
    peer = _check_peer(op, "src", members, src, group_src)
    run("receive_from_", tensor, src=peer, tag=tag, group=members)
    return members.global_rank(peer)


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begin to send a tensor; it may be written when the `Work` is done."""
    op = "isend"
    members = member(op, group)
    if members is None:
        return None
    check_tensor(op, "tensor", tensor)
    peer = _check_peer(op, "dst", members, dst, group_dst)
    with on_device(tensor.device) as xp:
        array = tensor._data
        array = array if array.flags.c_contiguous else array.copy(order="C")
        return members.transport(xp).send(array, peer, _check_tag(op, tag))


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begin to receive a tensor; it is there when the `Work` is done."""
    op = "irecv"
    members = member(op, group)
    if members is None:
        return None
    check_tensor(op, "tensor", tensor)
    if not tensor._data.flags.c_contiguous:
        expected, hint = "a contiguous tensor", "receive into one, and copy"
        raise arg_error(op, "tensor", expected, tensor, hint, ShapeError)
    anyone = src is None and group_src is None
    peer = None if anyone else _check_peer(op, "src", members, src, group_src)
    tag = _check_tag(op, tag)
    (tensor._storage or tensor.memory).version += 1
    with on_device(tensor.device) as xp:
        work = members.transport(xp).recv(tensor._data, peer, tag)
    work.tensors = [tensor]
    return work


class P2POp:
    """A send or a receive that `batch_isend_irecv` begins: `isend` or `irecv` and its arguments."""

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            expected, hint = "isend or irecv", "pass flow.distributed.isend"
            raise arg_error("P2POp", "op", expected, op, hint, ArgumentTypeError)
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several sends and receives; return their works."""
    return [
        each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer)
        for each in p2p_op_list
    ]
