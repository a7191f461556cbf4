"""The steps of a backward call, written down while it runs: `flow.autograd.trace`."""

from __future__ import annotations

import collections
import itertools
import sys
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.errors import ArgumentTypeError, GradientError, arg_error
from oneflow_lite.tensors.html_text import Html, block, element, facts, joined, table
from oneflow_lite.tensors.mode import StateChange, local
from oneflow_lite.tensors.node import FunctionNode
from oneflow_lite.tensors.tensor import Tensor, make_tensor

_HEAD = ("step", "node", "ready queue", "dependencies", "current_grad")
_LINES = 8  # printed of a cell
_ROWS = 200  # shown in a notebook
_WIDTH = 40  # characters printed of one sum


class TaskWatch:
    """Base of watchers, which are told each step of a backward call; `trace` in a thread's state.

    The calls come from the threads that work for a task, one at a time for each task.
    """

    def made(self, node: FunctionNode, outputs: Sequence[Tensor]) -> None:
        """Take note of a new node, and of the tensors to which it is about to be joined."""

    def turn(self, task: Any, node: FunctionNode) -> None:
        """Take note that the turn of a node comes, before its gradient is used."""

    def changed(self, task: Any, node: FunctionNode) -> None:
        """Take note that a node was sent a gradient, or zero."""

    def step(self, task: Any, node: FunctionNode | None) -> None:
        """Take note of the state of a task, at its start and after each node."""

    def end(self, task: Any, error: BaseException | None) -> None:
        """Take note that a task is over."""


class _Both(TaskWatch):
    """The watcher of a block and the watcher of the block around it, as one."""

    def __init__(self, *watches: TaskWatch) -> None:
        self.watches = watches

    def made(self, node: FunctionNode, outputs: Sequence[Tensor]) -> None:
        for watch in self.watches:
            watch.made(node, outputs)

    def turn(self, task: Any, node: FunctionNode) -> None:
        for watch in self.watches:
            watch.turn(task, node)

    def changed(self, task: Any, node: FunctionNode) -> None:
        for watch in self.watches:
            watch.changed(task, node)

    def step(self, task: Any, node: FunctionNode | None) -> None:
        for watch in self.watches:
            watch.step(task, node)

    def end(self, task: Any, error: BaseException | None) -> None:
        for watch in self.watches:
            watch.end(task, error)


class watching(StateChange):
    """Have a watcher follow the backward calls of this thread: a context manager."""

    def __init__(self, watch: TaskWatch) -> None:
        super().__init__(trace=watch)

    def __enter__(self) -> Any:
        outer, watch = local.state.trace, self._changes["trace"]
        if outer is not None:
            self._changes = {"trace": _Both(outer, watch)}
        super().__enter__()
        self._changes = {"trace": watch}
        return watch


Sums = Sequence[Tensor | None] | None  # of the gradients that arrived, one for each output


@attrs.frozen(eq=False)
class _Change:
    """The changes of one step: the counts and sums of the nodes that were sent a gradient."""

    node: FunctionNode | None
    counts: dict[FunctionNode, int]
    sums: dict[FunctionNode, Sums]


class _Names:
    """The short names of nodes."""

    def __init__(self, given: dict[FunctionNode, str]) -> None:
        self._given = given
        self._numbers = itertools.count(1)

    def of(self, node: FunctionNode) -> str:
        """Return the given name of a node, or its own name with the next number."""
        if node not in self._given:
            self._given[node] = f"{node.name()}#{next(self._numbers)}"
        return self._given[node]


class _BackwardCall:
    """A backward call: the order of its nodes, and the changes of each step."""

    def __init__(self, number: int, names: _Names, nodes: Sequence[FunctionNode]) -> None:
        self.number, self.name = number, names.of
        for node in reversed(nodes):
            names.of(node)
        self.places = {node: place for place, node in enumerate(nodes)}
        self.changes: list[_Change] = []
        self.touched: dict[FunctionNode, None] = {}

    def states(self, last: int) -> Iterator[tuple[dict[FunctionNode, int], dict[Any, Sums]]]:
        """Yield counts and sums after each step up to step `last`; the dicts are used again."""
        counts: dict[FunctionNode, int] = {}
        sums: dict[Any, Sums] = {}
        for change in self.changes[: last + 1]:
            counts.update(change.counts)
            sums.update(change.sums)
            if change.node is not None:
                counts.pop(change.node, None)
                sums.pop(change.node, None)
            yield counts, sums

    def named(self, sums: dict[Any, Sums]) -> dict[str, Tensor]:
        """Return sums by the names of their nodes, in the order in which the nodes run."""
        named = {}
        for node in sorted(sums, key=self.places.__getitem__):
            grads = sums[node] or ()
            for i, grad in enumerate(grads):
                if grad is not None:
                    name = self.name(node)
                    named[f"{name}[{i}]" if len(grads) > 1 else name] = grad
        return named


class Step:
    """The state of a backward call after one of its nodes ran.

    Only the changes are kept; the state is put together when it is read.

    Attributes
    ----------
    task : int
        The number of the backward call. A nested call has a number of its own.
    node : FunctionNode or None
        The node that ran; None in the first step, before any node ran.
    """

    def __init__(self, call: _BackwardCall, position: int) -> None:
        self._call, self._position = call, position
        self.task = call.number
        self.node = call.changes[position].node

    def _state(self) -> tuple[dict[FunctionNode, int], dict[Any, Sums]]:
        (state,) = collections.deque(self._call.states(self._position), maxlen=1)
        return state

    @property
    def ready_queue(self) -> list[FunctionNode]:
        """Nodes that wait for no gradient any more, the next one to run first."""
        return _ready(self._state()[0])

    @property
    def dependencies(self) -> dict[FunctionNode, int]:
        """For each node that has not run, how many nodes have yet to send it a gradient."""
        return self._state()[0]

    @property
    def current_grad(self) -> dict[str, Tensor]:
        """The sums that have arrived at nodes that have not run, copied, by short name."""
        return self._call.named(self._state()[1])

    def __repr__(self) -> str:
        return f"Step(task={self.task}, node={self.node})"

    def cells(self, counts: dict[Any, int], sums: dict[Any, Sums]) -> list[list[str]]:
        """Return the cells of the step's row in a table, each a list of lines."""
        name, named = self._call.name, self._call.named(sums)
        return [
            [f"{self.task}.{self._position}"],
            ["(start)" if self.node is None else name(self.node)],
            _first(list(map(name, _ready(counts)))),
            _first([f"{name(n)}: {count}" for n, count in counts.items() if count]),
            _first([f"{name}: {_short(grad)}" for name, grad in named.items()]),
        ]

    def _repr_html_(self) -> str:
        cells = map(_lines, self.cells(*self._state()))
        return block(facts(zip(_HEAD, cells, strict=True)), label="a step of a backward call")


def _ready(counts: dict[FunctionNode, int]) -> list[FunctionNode]:
    return [node for node, count in counts.items() if not count]


class StepLog(TaskWatch):
    """The steps of the backward calls in a `trace` block; printed, it is a table.

    Attributes
    ----------
    steps : list of Step
    """

    def __init__(self, names: dict[FunctionNode, str]) -> None:
        self.steps: list[Step] = []
        self._names = _Names(names)
        self._task_numbers = itertools.count(1)
        self._calls: weakref.WeakKeyDictionary[Any, _BackwardCall] = weakref.WeakKeyDictionary()
        self._lock = make_lock()

    def name(self, node: FunctionNode) -> str:
        """Return the short name of a node.

        It is the name given to `trace`, or the node's own name with a number: in each traced call
        nodes are numbered in the order in which they were made.
        """
        return self._names.of(node)

    def changed(self, task: Any, node: FunctionNode) -> None:
        """Take note that a node was sent a gradient, or zero."""
        self._calls[task].touched[node] = None

    def step(self, task: Any, node: FunctionNode | None) -> None:
        """Write down the state of a GraphTask, at its start and after each node."""
        with self._lock:
            if node is None:
                call = _BackwardCall(next(self._task_numbers), self._names, task.nodes)
                self._calls[task] = call
                call.touched = dict.fromkeys(task.nodes)
            call = self._calls[task]
            touched, call.touched = call.touched, {}
            counts = {n: task.dependencies[n] for n in touched}
            sums = {n: _copied(task, n) for n in touched if n in task.not_ready}
            call.changes.append(_Change(node, counts, sums))
            self.steps.append(Step(call, len(call.changes) - 1))

    def __repr__(self) -> str:
        return f"StepLog({len(self.steps)} steps; print() shows its table)"

    def __str__(self) -> str:
        rows = list(self._rows())
        return _table(rows) if rows else ""

    def _rows(self) -> Iterator[list[list[str]]]:
        """Yield the cells of each step, each a list of lines."""
        running: dict[_BackwardCall, Iterator[Any]] = {}
        for step in self.steps:
            call = step._call
            states = running.setdefault(call, call.states(len(call.changes)))
            yield step.cells(*next(states))

    def _repr_html_(self) -> str:
        rows = [list(map(_lines, cells)) for cells in itertools.islice(self._rows(), _ROWS)]
        rest = len(self.steps) - len(rows)
        more = [element("p", f"... {rest} more steps")] if rest else []
        return block(table(_HEAD, rows), *more, label="steps of backward calls")


def _copied(task: Any, node: FunctionNode) -> Sums:
    """Return copies of the sums that have arrived at a node."""
    grads = task.not_ready.get(node)
    return [
        None if grad is None else make_tensor(getattr(grad, "_data", grad).copy())
        for grad in ([grads] if node.infos is None else grads or ())
    ]


def _lines(lines: Sequence[str]) -> Html:
    return joined(element("div", line) for line in lines)


def _first(lines: list[str]) -> list[str]:
    if len(lines) <= _LINES:
        return lines
    return [*lines[: _LINES - 1], f"... {len(lines) - _LINES + 1} more"]


def _short(grad: Tensor) -> str:
    """Return the content of a tensor on one line, shortened."""
    if (told := getattr(grad._data, "told", None)) is not None:  # of a transform
        return f"{told}, shape={tuple(grad.shape)}"
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


class trace(watching):
    """Write down every step of the backward calls in a block: a context manager.

    It gives a `StepLog`. Each of its `steps` has the node that ran and the state of the call after
    it: `dependencies`, `ready_queue` and the sums of gradients so far. Printed, it is a table. The
    log holds the nodes, and a copy of each sum that a step changed. For this thread only, and the
    threads that work for its backward calls. Blocks nest.

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
        super().__init__(StepLog({}))

    def __enter__(self) -> StepLog:
        self._changes = {"trace": StepLog(dict(self._log_names))}
        return super().__enter__()  # type: ignore[no-any-return]
