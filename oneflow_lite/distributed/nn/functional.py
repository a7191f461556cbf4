"""Collectives that return new tensors and have gradients, to any order.

The gradients are of the sum of all ranks' losses: a tensor that was sent to a rank gets its
gradient back from that rank. All ranks call a function, and backward through it, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.distributed.collectives import rank_of, run, splits
from oneflow_lite.distributed.process_group import ProcessGroup, check_group
from oneflow_lite.distributed.reduce_op import ReduceOp, reduction
from oneflow_lite.errors import ArgumentError, ShapeError, arg_error
from oneflow_lite.functors.declaring.checks import check_tensor, check_tensors
from oneflow_lite.functors.joining import cat, stack
from oneflow_lite.functors.reduce import amax, amin, prod
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

# Their gradients need the values of all ranks, so the rows are exchanged and reduced here.
_OF_ROWS: dict[str, Any] = {"product": prod, "min": amin, "max": amax}


def _start(op: str, tensor: Any, group: Any, argument: str = "tensor") -> ProcessGroup:
    check_tensor(op, argument, tensor)
    return check_group(op, group)


def all_reduce(
    tensor: Tensor, op: ReduceOp | str = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """Return the reduction of all ranks' tensors.

    The gradient of a product and of extremes needs all ranks' values: where a gradient is recorded,
    these are gathered. Ranks that share an extreme share its gradient.

    >>> import oneflow_lite as flow
    >>> flow.distributed.init_process_group()
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> flow.distributed.nn.functional.all_reduce(x)
    tensor([1., 2.], grad_fn=<all_reduce_backward>)
    >>> flow.distributed.destroy_process_group()
    """
    members = _start("all_reduce", tensor, group)
    reduced = reduction("all_reduce", op, tensor.dtype)
    if reduced in _OF_ROWS and tensor.dtype.kind in "fc":
        return _OF_ROWS[reduced](run("all_gather", tensor, group=members), dim=0)
    return run("all_reduce", tensor, reduction=reduced, group=members)


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp | str = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """Return the sum or mean of all ranks' tensors on rank `dst`, zeros on all other ranks."""
    name = "reduce"
    members = _start(name, tensor, group)
    reduced = reduction(name, op, tensor.dtype)
    if reduced not in ("sum", "avg"):
        expected, hint = "SUM or AVG", "all_reduce() takes all of them"
        raise arg_error(name, "op", expected, op, hint, ArgumentError)
    target = rank_of(name, "dst", members, dst)
    return run("reduce_to", tensor, dst=target, reduction=reduced, group=members)


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """Return the tensor of rank `src`."""
    members = _start("broadcast", tensor, group)
    source = rank_of("broadcast", "src", members, src)
    return run("broadcast_from", tensor, src=source, group=members)


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Return all ranks' tensors."""
    members = _start("all_gather", tensor, group)
    return tuple(run("all_gather", tensor, group=members).unbind(0))


def all_gather_tensor(
    tensor: Tensor, gather_dim: int = 0, group: ProcessGroup | None = None
) -> Tensor:
    """Return all ranks' tensors, joined along a dimension."""
    return cat(list(all_gather(tensor, group)), gather_dim)


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Return all ranks' tensors on rank `dst`, zeros on all other ranks."""
    members = _start("gather", tensor, group)
    target = rank_of("gather", "dst", members, dst)
    return tuple(run("gather_to", tensor, dst=target, group=members).unbind(0))


def scatter(tensors: Sequence[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """Return this rank's tensor of a list on rank `src`.

    tensors: as many as ranks; on all ranks but `src` only their shape and dtype are read.
    """
    op = "scatter"
    check_tensors(op, tensors, "tensors")
    members = check_group(op, group)
    if len(tensors) != members.size():
        expected = f"{members.size()} tensors, one for each rank"
        raise arg_error(op, "tensors", expected, len(tensors), "on all ranks", ArgumentError)
    source = rank_of(op, "src", members, src)
    rows = stack(list(tensors))
    return run("scatter_from", rows, src=source, group=members)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp | str = ReduceOp.SUM,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Return this rank's tensor of a list, reduced over all ranks.

    output: not used; for PyTorch's scripts.
    """
    check_tensors("reduce_scatter", input_list, "input_list")
    members = check_group("reduce_scatter", group)
    return _reduce_scatter(stack(list(input_list)), op, members)


def reduce_scatter_tensor(
    tensor: Tensor,
    op: ReduceOp | str = ReduceOp.SUM,
    scatter_dim: int = 0,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Return this rank's part, along a dimension, of the sum or mean of all ranks' tensors."""
    name = "reduce_scatter_tensor"
    members = _start(name, tensor, group)
    if not tensor.ndim or tensor.shape[scatter_dim] % members.size():
        expected, hint = f"a size that {members.size()} divides", "pad the tensor"
        raise arg_error(name, "tensor", expected, tensor, hint, ShapeError)
    return _reduce_scatter(stack(list(tensor.chunk(members.size(), scatter_dim))), op, members)


def _reduce_scatter(rows: Tensor, op: Any, group: ProcessGroup) -> Tensor:
    name = "reduce_scatter"
    reduced = reduction(name, op, rows.dtype)
    if rows.shape[0] != group.size():
        expected, hint = f"{group.size()} tensors, one for each rank", "on all ranks"
        raise arg_error(name, "input_list", expected, f"{rows.shape[0]}", hint, ArgumentError)
    if reduced in _OF_ROWS and rows.dtype.kind in "fc":
        return _OF_ROWS[reduced](all_to_all_single(None, rows, group=group), dim=0)
    return run(name, rows, reduction=reduced, group=group)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
) -> tuple[Tensor, ...]:
    """Send tensor i of a list to rank i; return the tensors received.

    output_tensor_list: gives the shapes of the tensors received; not written.
    """
    op = "all_to_all"
    check_tensors(op, input_tensor_list, "input_tensor_list")
    check_tensors(op, output_tensor_list, "output_tensor_list")
    members = check_group(op, group)
    for name, given in (("output", output_tensor_list), ("input", input_tensor_list)):
        if len(given) != members.size():
            expected = f"{members.size()} tensors, one for each rank"
            argument = f"{name}_tensor_list"
            raise arg_error(op, argument, expected, f"{len(given)}", "on all ranks", ArgumentError)
    sent = tuple(x.numel() for x in input_tensor_list)
    got = tuple(x.numel() for x in output_tensor_list)
    rows = cat([x.reshape(-1) for x in input_tensor_list])
    parts = run(op, rows, sent=sent, got=got, group=members).split(list(got))
    return tuple(
        part.reshape(like.shape) for part, like in zip(parts, output_tensor_list, strict=True)
    )


def all_to_all_single(
    output: Tensor | None,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Send each rank a share of the rows of a tensor; return the shares received.

    output: not used; for PyTorch's scripts.
    """
    op = "all_to_all_single"
    members = _start(op, input, group, "input")
    sent = splits(op, "input_split_sizes", input_split_sizes, input, members.size())
    got = tuple(output_split_sizes) if output_split_sizes else sent
    if len(got) != members.size() or (not output_split_sizes and len(set(sent)) > 1):
        expected, hint = f"{members.size()} sizes", "say how many rows come from each rank"
        raise arg_error(op, "output_split_sizes", expected, got, hint, ArgumentError)
    return run("all_to_all", input, sent=sent, got=got, group=members)
