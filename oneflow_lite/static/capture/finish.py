"""What a replay does after the Program has run, as one generated function: it wraps arrays in
tensors, counts writes, leaves gradients behind and puts the returned value together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oneflow_lite.autograd.function_node import AccumulateGrad
from oneflow_lite.static.capture.results import (
    Aliased,
    Given,
    GradientOf,
    Made,
    Results,
    Viewed,
    taken_view,
)
from oneflow_lite.static.capture.tree import Fixed, Leaf
from oneflow_lite.static.runtime.runner import frames
from oneflow_lite.tensor import Tensor

Finish = Callable[[Sequence[Tensor], Sequence[Any]], Any]
Join = Callable[[Sequence[Tensor], Sequence[Any], Sequence[Tensor], Sequence[Tensor]], None]


def make_finish(
    results: Results,
    versions: Sequence[tuple[int, Tensor | None, str, int]],
    joins: Sequence[tuple[Sequence[int], Sequence[int], Join]],
) -> tuple[Finish, Endings]:
    """Return `finish(arguments, fetched arrays)`, which returns what the function returns.

    The list of arrays ends with False, which becomes True when all is done but to return.
    `versions` says how often which storage is written. `joins` give results that require a
    gradient their places in the graph, one after the other; each is told which of them, and which
    other results it looks at.
    """
    writer = _Writer()
    for position, tensor, place, count in versions:
        given = f"x[{position}]" if tensor is None else writer.value(tensor)
        given += place
        writer.lines.append(f"({given}._storage or {given}.memory).version += {count}")
    entries = list(enumerate(results.entries))
    waiting = set()  # for their places in the graph
    for i, entry in entries:
        if isinstance(entry, Made):
            writer.made(i, entry)
            if entry.requires_grad == "node":
                waiting.add(i)
        elif isinstance(entry, Given):
            writer.given(i, entry)
    for i, entry in entries:
        if isinstance(entry, Made) and entry.shares is not None:
            writer.lines.append(f"y{i}._storage = y{entry.shares}.memory")
    # A view is recorded in the graph that its base has by then, and joins may look at views.
    there = {i for i, entry in entries if isinstance(entry, (Made, Given))} - waiting
    for outputs, others, join in (*joins, ((), (), None)):
        for i, entry in entries:
            if i not in there and i not in waiting and entry.source in there:
                writer.derived(i, entry)
                there.add(i)
        if join is not None:
            writer.join(join, outputs, others)
            there.update(outputs)
    for owner, gradient in results.gradients:
        writer.gradient(owner, results.entries[owner], gradient)
    writer.lines += ["found[-1] = True", f"return {writer.expression(results.spec)}"]
    source = "\n    ".join(["def finish(x, found):", *writer.lines])
    exec(compile(source, "<finish>", "exec"), writer.namespace)
    finish: Finish = writer.namespace["finish"]
    return finish, Endings(finish, writer, results)


class Endings:
    """What is left to do where an exception comes before, or in the middle of, a `finish`.

    Attributes
    ----------
    can_leave_gradients : bool
        Whether the gradients need nothing but their arrays.
    """

    def __init__(self, finish: Finish, writer: _Writer, results: Results) -> None:
        self._finish = finish
        self._lines = writer.lines[:-1]
        gradients = [(i, results.entries[i]) for _, i in results.gradients if i is not None]
        owners = [(i, results.entries[i]) for i, _ in results.gradients]
        self.can_leave_gradients = all(
            isinstance(entry, Made) and entry.shares is None and entry.requires_grad == "no"
            for _, entry in gradients
        ) and all(isinstance(entry, Given) for _, entry in owners)
        writer.lines = []
        if self.can_leave_gradients:
            for i, entry in gradients:
                writer.made(i, entry)
            for i, entry in owners:
                writer.given(i, entry)
            for (i, entry), (_, gradient) in zip(owners, results.gradients, strict=True):
                writer.gradient(i, entry, gradient)
        self._gradients = writer.lines
        self._namespace = writer.namespace

    def complete(self, arguments: Sequence[Tensor], found: list[Any], error: BaseException) -> None:
        """Do what `finish` has not done when an exception came."""
        names: dict[str, Any] = {"x": arguments, "found": found}
        line = 0
        for at in frames(error):
            if at.tb_frame.f_code is self._finish.__code__:
                names.update(at.tb_frame.f_locals)
                line = max(at.tb_lineno - 2, 0)  # each line does its one effect last
        if not found[-1]:
            exec("\n".join(self._lines[line:]), {**self._namespace, **names})

    def leave_gradients(
        self, arguments: Sequence[Tensor], found: Mapping[int, Any] | Sequence[Any]
    ) -> None:
        """Make gradients of what was found, and leave them behind."""
        names = {**self._namespace, "x": arguments, "found": found}
        exec("\n".join(self._gradients), names)


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {"new": Tensor.__new__}

    def value(self, value: Any) -> str:
        name = f"g{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def made(self, position: int, entry: Made) -> None:
        self.lines.append(f"y{position} = new({self.value(entry.cls)})")
        self.lines.append(f"y{position}._data = found[{entry.fetch}]")
        if entry.inference:
            self.lines.append(f"y{position}._inference = True")
        if entry.version:
            self.lines.append(f"y{position}.memory.version = {entry.version}")
        if entry.requires_grad == "leaf":
            self.lines.append(f"y{position}.requires_grad = True")

    def given(self, position: int, entry: Given) -> None:
        tensor = entry.tensor
        given = f"x[{entry.argument}]" if tensor is None else self.value(tensor)
        self.lines.append(f"y{position} = {given}")

    def gradient(self, owner: int, entry: Any, gradient: int | None) -> None:
        grad = None if gradient is None else f"y{gradient}"
        self.lines.append(f"{self._meta(entry, owner)}.acc_grad = {grad}")

    def _meta(self, entry: Any, position: int) -> str:
        """Return the expression for the AutogradMeta of a tensor whose gradient changes."""
        tensor = entry.tensor if isinstance(entry, Given) else None
        edge = None if tensor is None else tensor._edge
        if edge is not None and isinstance(edge[0], AccumulateGrad):
            return self.value(edge[0].meta)
        return f"y{position}.autograd_meta"

    def derived(self, position: int, entry: Aliased | GradientOf | Viewed) -> None:
        if isinstance(entry, Aliased):
            expression = f"y{entry.source}.detach()"
        elif isinstance(entry, GradientOf):
            expression = f"y{entry.source}.grad"
        else:
            take, chain, origin = map(self.value, (taken_view, entry.chain, entry.origin))
            expression = f"{take}(y{entry.source}, {chain}, {origin})"
        self.lines.append(f"y{position} = {expression}")

    def join(self, join: Join, outputs: Sequence[int], others: Sequence[int]) -> None:
        tuples = ["".join(f"y{i}, " for i in positions) for positions in (outputs, others)]
        self.lines.append(f"{self.value(join)}(x, found, ({tuples[0]}), ({tuples[1]}))")

    def expression(self, spec: Any) -> str:
        if isinstance(spec, Leaf):
            return f"y{spec.position}"
        if isinstance(spec, Fixed):
            return self.value(spec.value)
        children = [self.expression(child) for child in spec.children]
        listed = "".join(f"{child}, " for child in children)
        if spec.kind is dict:
            keys = [self.value(key) for key in spec.keys]
            pairs = [f"{k}: {c}" for k, c in zip(keys, children, strict=True)]
            return f"{{{', '.join(pairs)}}}"
        if spec.kind is list:
            return f"[{listed}]"
        return f"({listed})" if spec.kind is tuple else f"{self.value(spec.kind)}({listed})"
