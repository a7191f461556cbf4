"""NodeTask and ReadyQueue: nodes whose gradient is complete, waiting for their thread."""

from __future__ import annotations

import queue
from typing import Any

import attrs


@attrs.frozen(order=False, eq=False)
class NodeTask:
    """A node of a backward call that may run.

    Attributes
    ----------
    queued_run : QueuedRun
        Runs the node.
    node : FunctionNode or None
        None does nothing but wake the thread that waits for the call to end.
    reentrant_depth : int
        The number of backward calls that the call is inside of.
    """

    queued_run: Any
    node: Any
    reentrant_depth: int

    def run(self) -> None:
        """Run the node on this thread."""
        if self.node is not None:
            self.queued_run.execute(self.node)

    def __lt__(self, other: NodeTask) -> bool:
        """Order by depth, the innermost first, then by sequence number, the latest first.

        Leaves with a post-accumulate hook go first: the hook may free or send the gradient early.
        """
        return self._priority() > other._priority()

    def _priority(self) -> tuple[int, float]:
        node = self.node
        leaf = node is not None and not node.edges and node.metas and node.metas[0]
        if node is None or (leaf and leaf.post_accumulate_hooks):
            return self.reentrant_depth, float("inf")
        return self.reentrant_depth, node.sequence_nr


class ReadyQueue:
    """The NodeTasks of one thread, the latest created node first: the order is deterministic."""

    def __init__(self) -> None:
        self._queue: queue.PriorityQueue[NodeTask] = queue.PriorityQueue()

    def push(self, node_task: NodeTask) -> None:
        """Add a NodeTask; any thread may."""
        self._queue.put(node_task)

    def pop(self) -> NodeTask:
        """Take the next NodeTask; wait while the queue is empty."""
        return self._queue.get()

    def waiting(self) -> list[NodeTask]:
        """Return the NodeTasks that wait, the next first."""
        with self._queue.mutex:
            return sorted(self._queue.queue)
