"""SavedTensor: what a node keeps of a tensor until its gradient is taken."""

from __future__ import annotations

from oneflow_lite.autograd.function_node import Edge, FunctionNode
from oneflow_lite.errors import StaleTensorError
from oneflow_lite.storage import Storage
from oneflow_lite.tensor import Tensor


class SavedTensor:
    """A payload and the version of its storage at the time.

    An input keeps its edge. An output keeps `(None, index)`: its edge would lead back to the node
    that holds it, a cycle; `unpack` attaches it again.
    """

    __slots__ = ("data", "edge", "name", "storage", "version")

    def __init__(self, name: str, tensor: Tensor, edge: Edge | None) -> None:
        storage = tensor._storage
        if storage is None:
            storage = tensor._storage = Storage()
        self.name = name
        self.data = tensor._data
        self.storage = storage
        self.version = storage.version
        self.edge = edge

    def unpack(self, node: FunctionNode) -> Tensor:
        """Return the saved tensor with its place in the graph."""
        tensor = self.detached()
        edge = self.edge
        tensor._edge = (node, edge[1]) if edge is not None and edge[0] is None else edge
        return tensor

    def detached(self) -> Tensor:
        """Return the saved tensor without history; it shares memory and version."""
        tensor = Tensor.__new__(Tensor)
        tensor._data = self.data
        tensor._storage = self.storage
        return tensor

    def stale(self, node: FunctionNode) -> StaleTensorError:
        """Build the error for a payload that was overwritten after it was saved."""
        return StaleTensorError(
            f"{node.name()}: the saved tensor {self.name!r} of shape {tuple(self.data.shape)} was "
            f"modified in place: it is at version {self.storage.version}, the gradient needs "
            f"version {self.version}; use the out-of-place op, or clone() the tensor before "
            "writing to it"
        )
