"""SavedTensor: the part of a tensor that a node keeps until its gradient is taken.

Almost every op makes one, so it is a plain tuple, a third of the price of an object: `(name, data,
storage, version, edge)`, with the storage's version at the time of saving.

An input keeps its edge. An output keeps `(None, index)`: its edge would lead back to the node that
holds it, a cycle; `unpack` attaches the node again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import device_of
from oneflow_lite.errors import ArgumentTypeError, FreedGraphError, HookError, StaleTensorError
from oneflow_lite.tensors.node import Edge, FunctionNode
from oneflow_lite.tensors.storage import Storage
from oneflow_lite.tensors.tensor import Tensor

SavedTensor = tuple[str, Any, Storage, int, Edge | None]


def save_tensor(name: str, tensor: Tensor, edge: Edge | None) -> SavedTensor:
    """Save a tensor under its name in the gradient rule."""
    storage = tensor._storage or tensor.memory
    return (name, tensor._data, storage, storage.version, edge)


def detached(saved: SavedTensor) -> Tensor:
    """Return the saved tensor without history; it shares memory and version."""
    tensor = Tensor.__new__(Tensor)
    tensor._data = saved[1]
    tensor._storage = saved[2]
    return tensor


def unpack(saved: SavedTensor, node: FunctionNode) -> Tensor:
    """Return the saved tensor with its place in the graph."""
    tensor = detached(saved)
    edge = saved[4]
    tensor._edge = (node, edge[1]) if edge is not None and edge[0] is None else edge
    return tensor


class Packed:
    """The result of a pack hook, in the place of a saved tensor's data."""

    __slots__ = ("device", "dtype", "shape", "unpack_hook", "value")

    def __init__(self, data: Any, value: Any, unpack_hook: Callable[[Any], Tensor]) -> None:
        self.shape = data.shape
        self.dtype = data.dtype
        self.device = device_of(data)
        self.value = value
        self.unpack_hook = unpack_hook


def pack(saved: SavedTensor, node: FunctionNode, hooks: tuple[Any, Any]) -> SavedTensor:
    """Let the pack hook replace the data. Its result has no version to check."""
    data = saved[1]
    if data.ndim == 0 and isinstance(data, np.ndarray) and not data.flags.writeable:
        return saved  # a number in the expression, as the 2.5 in x * 2.5
    tensor = unpack(saved, node)
    version = tensor._version
    value = hooks[0](tensor)
    if tensor._version != version:
        raise HookError(
            f"a pack hook wrote to the tensor of shape {tensor.shape} that {node.name()} saves; "
            "work on a copy, as tensor.clone()"
        )
    return (saved[0], Packed(data, value, hooks[1]), Storage(), 0, saved[4])


def unpack_packed(saved: SavedTensor) -> SavedTensor:
    """Call the unpack hook of a packed tensor."""
    name, packed, _, _, edge = saved
    if not isinstance(packed, Packed):
        return saved
    tensor = packed.unpack_hook(packed.value)
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(
            f"an unpack hook returned {type(tensor).__name__} for the saved tensor {name!r}; "
            "return a Tensor"
        )
    for what in ("shape", "dtype", "device"):
        got, expected = getattr(tensor, what), getattr(packed, what)
        if got != expected:
            raise HookError(
                f"an unpack hook returned a tensor of {what} {got} for the saved tensor {name!r} "
                f"of {what} {expected}; undo all that the pack hook did"
            )
    return save_tensor(name, tensor, edge)


def checksum(saved: SavedTensor) -> int:
    """Return a checksum of the data, for debug mode."""
    data = saved[1]
    host = data if isinstance(data, np.ndarray) else data.get()
    return zlib.crc32(host.tobytes())


def overwritten_error(saved: SavedTensor, node: FunctionNode) -> StaleTensorError:
    """Build the error for an array that was written behind the version counter's back."""
    return StaleTensorError(
        f"{node.name()}: the saved tensor {saved[0]!r} of shape {tuple(saved[1].shape)} changed "
        "without its version counter: something wrote to its array, as through numpy(); copy the "
        "array first, or write with the tensor's in-place methods"
    )


def stale_error(saved: SavedTensor, node: FunctionNode) -> StaleTensorError:
    """Build the error for a tensor that was overwritten after it was saved."""
    name, data, storage, version, _ = saved
    return StaleTensorError(
        f"{node.name()}: the saved tensor {name!r} of shape {tuple(data.shape)} was modified in "
        f"place: it is at version {storage.version}, the gradient needs version {version}; use "
        "the out-of-place op, or clone() the tensor before writing to it"
    )


def freed_error(node: FunctionNode) -> FreedGraphError:
    """Build the error for a node whose saved tensors are gone."""
    return FreedGraphError(
        f"backward(): the saved tensors of {node.name()} were released by an earlier "
        "backward; pass retain_graph=True to that one to go through the graph twice"
    )
