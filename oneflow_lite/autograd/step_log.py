"""The steps of a backward call, written down while it runs: `flow.autograd.trace`."""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from oneflow_lite.autograd.mode import StateChange
from oneflow_lite.autograd.node import FunctionNode
from oneflow_lite.errors import ArgumentTypeError, GradientError, arg_error
from oneflow_lite.tensor import Tensor, make_tensor

_HEAD = ("step", "node", "ready queue", "dependencies", "current_grad")
_LINES = 8  # printed of one cell
_WIDTH = 40  # characters printed of one sum


@attrs.frozen(eq=False)
class Step:
    """The state of a backward call after one of its nodes ran.

    Attributes
    ----------
    task : int
        The number of the backward call. Calls inside of others have numbers of their own.
    node : FunctionNode or None
        The node that ran; None in the first step, before any node did.
    ready_queue : list of FunctionNode
        Nodes that wait for no gradient any more, the next one to run first.
    dependencies : dict of FunctionNode to int
        How many nodes have yet to send a gradient to each node that has not run.
    current_grad : dict of str to Tensor
        The sums that have arrived at nodes that have not run, copied, by the node's short name.
    """

    task: int
    node: FunctionNode | None
    ready_queue: list[FunctionNode]
    dependencies: dict[FunctionNode, int]
    current_grad: dict[str, Tensor]


class _Progress:
    """A backward call that is being traced."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.done: set[FunctionNode] = set()


class StepLog:
    """The steps of the backward calls in a `trace` block; printed, it is a table.

    Attributes
    ----------
    steps : list of Step
    """

    def __init__(self, names: dict[FunctionNode, str]) -> None:
        self.steps: list[Step] = []
        self._names = names
        self._node_numbers = itertools.count(1)
        self._task_numbers = itertools.count(1)
        self._progress: weakref.WeakKeyDictionary[Any, _Progress] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()

    def name(self, node: FunctionNode) -> str:
        """Return the short name of a node.

        It is the one given to `trace`, or the node's own with a number: in each traced call nodes
        are numbered in the order in which they were made.
        """
        if node not in self._names:
            self._names[node] = f"{node.name()}#{next(self._node_numbers)}"
        return self._names[node]

    def step(self, task: Any, node: FunctionNode | None) -> None:
        """Write down how a GraphTask stands, at its start and after each node."""
        with self._lock:
            progress = self._progress.get(task)
            if progress is None:
                progress = self._progress[task] = _Progress(next(self._task_numbers))
                for known in reversed(task.nodes):
                    self.name(known)
            if node is not None:
                progress.done.add(node)
            counts = {n: task.dependencies[n] for n in task.nodes if n not in progress.done}
            ready = [n for n, count in counts.items() if not count]
            sums = dict(self._sums(task, counts))
            self.steps.append(Step(progress.number, node, ready, counts, sums))

    def _sums(self, task: Any, nodes: dict[FunctionNode, int]) -> Iterator[tuple[str, Tensor]]:
        for node in nodes:
            grads = task.not_ready.get(node)
            if node.infos is None:
                grads = [grads]
            for i, grad in enumerate(grads or ()):
                if grad is not None:
                    number = f"[{i}]" if len(grads) > 1 else ""
                    copy = getattr(grad, "_data", grad).copy()
                    yield self.name(node) + number, make_tensor(copy)

    def __str__(self) -> str:
        steps_of_task: Counter[int] = Counter()
        rows = []
        for step in self.steps:
            rows.append(self._row(step, f"{step.task}.{steps_of_task[step.task]}"))
            steps_of_task[step.task] += 1
        return _table(rows) if rows else ""

    def _row(self, step: Step, number: str) -> list[list[str]]:
        """Return the cells of a step, each a list of lines."""
        waiting = [f"{self.name(n)}: {count}" for n, count in step.dependencies.items() if count]
        sums = [f"{name}: {_short(grad)}" for name, grad in step.current_grad.items()]
        return [
            [number],
            ["(start)" if step.node is None else self.name(step.node)],
            _first(list(map(self.name, step.ready_queue))),
            _first(waiting),
            _first(sums),
        ]


def _first(lines: list[str]) -> list[str]:
    if len(lines) <= _LINES:
        return lines
    return [*lines[: _LINES - 1], f"... {len(lines) - _LINES + 1} more"]


def _short(grad: Tensor) -> str:
    """Return the content of a tensor on one line, shortened."""
    array = grad.cpu().numpy()
    text = np.array2string(
        array, max_line_width=sys.maxsize, precision=4, separator=", ", threshold=6, edgeitems=2
    )
    text = " ".join(text.split())
    if len(text) > _WIDTH:
        text = f"{text[: _WIDTH - 4]} ..."
    return text if array.size <= 6 else f"{text} {array.shape}"


def _table(rows: Sequence[Sequence[list[str]]]) -> str:
    cells = [[[title] for title in _HEAD], *rows]
    widths = [max(len(line) for row in cells for line in (row[i] or [""])) for i in range(5)]
    rule = [["-" * width] for width in widths]
    lines = []
    for row in (cells[0], rule, *cells[1:]):
        for parts in itertools.zip_longest(*row, fillvalue=""):
            line = "  ".join(p.ljust(w) for p, w in zip(parts, widths, strict=True))
            lines.append(line.rstrip())
    return "\n".join(lines)


class trace(StateChange):
    """Write down every step of the backward calls in a block: a context manager.

    It gives a `StepLog`. Each of its `steps` has the node that ran, and how the call stood after
    it: `dependencies`, `ready_queue` and the sums of gradients so far. Printed, it is a table. The
    log holds the nodes and copies of the sums: it is for graphs small enough to read. For this
    thread only, and the threads that work for its backward calls.

    Parameters
    ----------
    **tensors : Tensor
        Tensors that require a gradient, by the names under which the table shows their nodes.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor(2.0, requires_grad=True)
    >>> w = flow.tensor(5.0, requires_grad=True)
    >>> with flow.autograd.trace(x=x, w=w) as t:
    ...     (x * w + x).backward()
    >>> print(t)
    step  node            ready queue     dependencies       current_grad
    ----  --------------  --------------  -----------------  ------------------
    1.0   (start)         add_backward#2  mul_backward#1: 1  add_backward#2: 1.
                                          w: 1
                                          x: 2
    1.1   add_backward#2  mul_backward#1  w: 1               mul_backward#1: 1.
                                          x: 1               x: 1.
    1.2   mul_backward#1  w                                  w: 2.
                          x                                  x: 6.
    1.3   w               x                                  x: 6.
    1.4   x
    >>> [(t.name(step.node), len(step.ready_queue)) for step in t.steps[1:]]
    [('add_backward#2', 1), ('mul_backward#1', 2), ('w', 1), ('x', 0)]
    """

    def __init__(self, **tensors: Tensor) -> None:
        names: dict[FunctionNode, str] = {}
        for name, tensor in tensors.items():
            wrong = not isinstance(tensor, Tensor)
            node = None if wrong else tensor.grad_fn_node
            if node is None:
                raise arg_error(
                    "trace",
                    name,
                    expected="a Tensor that requires a gradient",
                    got=type(tensor).__name__ if wrong else "one that does not",
                    hint="name only such tensors",
                    kind=ArgumentTypeError if wrong else GradientError,
                )
            names[node] = name
        self._log_names = names
        super().__init__(trace=None)

    def __enter__(self) -> StepLog:
        log = StepLog(dict(self._log_names))
        self._changes = {"trace": log}
        super().__enter__()
        return log
