"""Collectives of Python objects: pickled, and moved as tensors of bytes.

Unpickling runs the sender's code: the ranks of a program trust each other.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.distributed import collectives
from oneflow_lite.distributed.collectives import member, rank_of
from oneflow_lite.distributed.process_group import ProcessGroup
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.tensors.tensor import Tensor, make_tensor


def _packed(value: Any) -> Tensor:
    return make_tensor(np.frombuffer(pickle.dumps(value), np.uint8).copy())


def _unpacked(data: Tensor, size: int) -> Any:
    return pickle.loads(data._data[:size].tobytes())


def _sizes(data: Tensor, group: ProcessGroup) -> list[int]:
    """Return all ranks' sizes."""
    sizes = make_tensor(np.empty(group.size(), np.int64))
    mine = make_tensor(np.array([data.numel()], np.int64))
    collectives.all_gather_into_tensor(sizes, mine, group)
    return [int(size) for size in sizes._data]


def _padded(data: Tensor, size: int) -> Tensor:
    array = np.zeros(size, np.uint8)
    array[: data.numel()] = data._data
    return make_tensor(array)


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Put each rank's object into a list, on all ranks.

    >>> import oneflow_lite as flow
    >>> flow.distributed.init_process_group()
    >>> objects = [None]
    >>> flow.distributed.all_gather_object(objects, {"accuracy": 0.5})
    >>> objects
    [{'accuracy': 0.5}]
    >>> flow.distributed.destroy_process_group()
    """
    op = "all_gather_object"
    members = member(op, group)
    if members is None:
        return
    _check_length(op, "object_list", object_list, members.size())
    data = _packed(obj)
    sizes = _sizes(data, members)
    # Pickles differ in size, and a gather takes equal parts: each is padded to the largest.
    rows = make_tensor(np.empty((members.size(), max(sizes)), np.uint8))
    collectives.all_gather_into_tensor(rows, _padded(data, max(sizes)), members)
    for i, size in enumerate(sizes):
        object_list[i] = _unpacked(rows[i], size)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Put each rank's object into a list on rank `dst` (0 by default)."""
    op = "gather_object"
    members = member(op, group)
    if members is None:
        return
    target = 0 if dst is None is group_dst else rank_of(op, "dst", members, dst, group_dst)
    if members.rank() == target:
        _check_length(op, "object_gather_list", object_gather_list, members.size())
    data = _packed(obj)
    sizes = _sizes(data, members)
    rows = None
    if members.rank() == target:
        rows = [make_tensor(np.empty(max(sizes), np.uint8)) for _ in sizes]
    collectives.gather(_padded(data, max(sizes)), rows, group=members, group_dst=target)
    if rows is not None and object_gather_list is not None:
        for i, (row, size) in enumerate(zip(rows, sizes, strict=True)):
            object_gather_list[i] = _unpacked(row, size)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: DeviceLike | None = None,
    group_src: int | None = None,
) -> None:
    """Put the objects in a list of rank `src` (0 by default) into the lists of all other ranks."""
    op = "broadcast_object_list"
    members = member(op, group)
    if members is None:
        return
    source = 0 if src is None is group_src else rank_of(op, "src", members, src, group_src)
    data = _packed(object_list)
    size = make_tensor(np.array([data.numel()], np.int64))
    collectives.broadcast(size, group=members, group_src=source)
    count = int(size._data[0])
    if members.rank() != source:
        data = make_tensor(np.empty(count, np.uint8))
    collectives.broadcast(data, group=members, group_src=source)
    if members.rank() != source:
        given = _unpacked(data, count)
        _check_length(op, "object_list", object_list, len(given))
        object_list[:] = given


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Put object i of a list on rank `src` (0 by default) first in the list of rank i."""
    op = "scatter_object_list"
    members = member(op, group)
    if members is None:
        return
    source = 0 if src is None is group_src else rank_of(op, "src", members, src, group_src)
    if not scatter_object_output_list:
        expected, hint = "a list with room for an object", "pass [None]"
        raise arg_error(op, "scatter_object_output_list", expected, "[]", hint, ArgumentError)
    # All ranks get all objects: pickles differ in size, and a scatter takes equal parts.
    objects: list[Any] = [None]
    if members.rank() == source:
        _check_length(op, "scatter_object_input_list", scatter_object_input_list, members.size())
        objects = [list(scatter_object_input_list or ())]
    broadcast_object_list(objects, group=members, group_src=source)
    scatter_object_output_list[0] = objects[0][members.rank()]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: DeviceLike | None = None,
    group_dst: int | None = None,
) -> None:
    """Send a list of objects to one rank, which calls `recv_object_list`."""
    data = _packed(object_list)
    size = make_tensor(np.array([data.numel()], np.int64))
    collectives.send(size, dst, group, group_dst=group_dst)
    collectives.send(data, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: DeviceLike | None = None,
    group_src: int | None = None,
) -> int:
    """Receive a list of objects from a rank, or from any rank; return the sender's rank."""
    size = make_tensor(np.empty(1, np.int64))
    sender = collectives.recv(size, src, group, group_src=group_src)
    data = make_tensor(np.empty(int(size._data[0]), np.uint8))
    collectives.recv(data, sender, group)
    given = _unpacked(data, data.numel())
    _check_length("recv_object_list", "object_list", object_list, len(given))
    object_list[:] = given
    return sender


def _check_length(op: str, argument: str, value: Any, count: int) -> None:
    if not isinstance(value, (list, tuple)) or len(value) != count:
        got = type(value).__name__ if not isinstance(value, (list, tuple)) else f"{len(value)}"
        raise arg_error(op, argument, f"a list of {count}", got, "pass [None] * n", ArgumentError)
