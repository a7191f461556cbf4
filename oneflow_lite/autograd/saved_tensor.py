"""SavedTensor: what a node keeps of a tensor until its gradient is taken.

One is made for almost every op, so it is a plain tuple, a third of the price of an object:
`(name, data, storage, version, edge)`, the storage's version being that at the time of saving.

An input keeps its edge. An output keeps `(None, index)`: its edge would lead back to the node that
holds it, a cycle; `unpack` attaches it again.
"""

from __future__ import annotations

from typing import Any

from oneflow_lite.autograd.function_node import Edge, FunctionNode
from oneflow_lite.errors import StaleTensorError
from oneflow_lite.storage import Storage
from oneflow_lite.tensor import Tensor

SavedTensor = tuple[str, Any, Storage, int, Edge | None]


def save_tensor(name: str, tensor: Tensor, edge: Edge | None) -> SavedTensor:
    """Save a tensor under the name that its gradient rule knows it by."""
    storage = tensor._storage or tensor.storage
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


def stale(saved: SavedTensor, node: FunctionNode) -> StaleTensorError:
    """Build the error for a tensor that was overwritten after it was saved."""
    name, data, storage, version, _ = saved
    return StaleTensorError(
        f"{node.name()}: the saved tensor {name!r} of shape {tuple(data.shape)} was modified in "
        f"place: it is at version {storage.version}, the gradient needs version {version}; use "
        "the out-of-place op, or clone() the tensor before writing to it"
    )
