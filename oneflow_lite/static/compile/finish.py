"""What a replay does after the Program has run, as one generated function: it wraps arrays in
tensors, counts writes, leaves gradients behind and puts the returned value together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from oneflow_lite.autograd.node import AccumulateGrad
from oneflow_lite.function_writer import compiled
from oneflow_lite.static.compile.results import (
    Aliased,
    Given,
    GradientOf,
    Made,
    Numbers,
    Results,
    Store,
    Viewed,
    taken_view,
)
from oneflow_lite.static.ir.tree import Fixed, Leaf, ReadOut, places
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
        writer.entry(i, entry)
        if isinstance(entry, Made) and entry.requires_grad == "node":
            waiting.add(i)
    for i, entry in entries:
        if isinstance(entry, Made) and entry.shares is not None:
            writer.lines.append(f"y{i}._storage = y{entry.shares}.memory")
    # A view is recorded in the graph that its base has by then, and joins may look at views.
    there = {i for i, entry in entries if isinstance(entry, (Made, Given, Numbers))} - waiting
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
    for store in results.stores:
        writer.store(store, results)
    writer.lines += ["found[-1] = True", f"return {writer.expression(results.spec, results)}"]
    source = "\n    ".join(["def finish(x, found):", *writer.lines])
    exec(compiled(source, "<finish>"), writer.namespace)
    finish: Finish = writer.namespace["finish"]
    return finish, Endings(finish, writer, results)


class Endings:
    """What is left to do where an exception comes before, or in the middle of, a `finish`.

    Attributes
    ----------
    can_leave : bool
        Whether gradients, and what is stored outside, need nothing but their arrays.
    """

    def __init__(self, finish: Finish, writer: _Writer, results: Results) -> None:
        self._finish = finish
        self._lines = writer.lines[:-1]
        self._namespace = writer.namespace
        entries = results.entries
        stored = [position for store in results.stores for position in places(store.value)]
        self.can_leave = (
            all(isinstance(entries[owner], Given) for owner, _ in results.gradients)
            and all(_needs_its_array(entries[i]) for _, i in results.gradients if i is not None)
            and all(
                isinstance(entry, (Given, Numbers))
                or (_needs_its_array(entry) and not entry.version)
                for entry in map(entries.__getitem__, stored)
            )
        )
        # Lines, and how many ops come before each.
        self._left = _lines_to_leave(writer, results) if self.can_leave else []

    def complete(self, arguments: Sequence[Tensor], found: list[Any], error: BaseException) -> None:
        """Do what `finish` has not done when an exception came."""
        names: dict[str, Any] = {"x": arguments, "found": found}
        line = 0
        for at in frames(error):
            if at.tb_frame.f_globals is self._namespace:
                names.update(at.tb_frame.f_locals)
                line = max(at.tb_lineno - 2, 0)  # each line does its one effect last
        if not found[-1]:
            exec("\n".join(self._lines[line:]), {**self._namespace, **names})

    def leave(
        self, arguments: Sequence[Tensor], found: Mapping[int, Any] | Sequence[Any], number: int
    ) -> None:
        """Leave gradients behind, and what is stored outside before the op of a number."""
        names = {**self._namespace, "x": arguments, "found": found}
        exec("\n".join(line for before, line in self._left if before <= number), names)


def _needs_its_array(entry: Any) -> bool:
    return isinstance(entry, Made) and entry.shares is None and entry.requires_grad == "no"


def _lines_to_leave(writer: _Writer, results: Results) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    known: set[int] = set()

    def make(positions: Iterable[int | None]) -> None:
        writer.lines = []
        for i in positions:
            if i is not None and i not in known:
                known.add(i)
                writer.entry(i, results.entries[i])

    make(itertools.chain.from_iterable(results.gradients))
    for owner, gradient in results.gradients:
        writer.gradient(owner, results.entries[owner], gradient)
    found += [(-1, line) for line in writer.lines]
    for store in sorted(results.stores, key=lambda store: store.number):
        make(places(store.value))
        writer.store(store, results)
        found += [(store.number, line) for line in writer.lines]
    return found


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {"new": Tensor.__new__}

    def value(self, value: Any) -> str:
        name = f"g{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def entry(self, position: int, entry: Any) -> None:
        """Take up what needs no other entry."""
        if isinstance(entry, Made):
            self._made(position, entry)
        elif isinstance(entry, Given):
            tensor = entry.tensor
            given = f"x[{entry.argument}]" if tensor is None else self.value(tensor)
            self.lines.append(f"y{position} = {given}")
        elif isinstance(entry, Numbers):
            self.lines.append(f"y{position} = found[{entry.fetch}]")

    def _made(self, position: int, entry: Made) -> None:
        self.lines.append(f"y{position} = new({self.value(entry.cls)})")
        self.lines.append(f"y{position}._data = found[{entry.fetch}]")
        if entry.inference:
            self.lines.append(f"y{position}._inference = True")
        if entry.version:
            self.lines.append(f"y{position}.memory.version = {entry.version}")
        if entry.requires_grad == "leaf":
            self.lines.append(f"y{position}.requires_grad = True")

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

    def store(self, store: Store, results: Results) -> None:
        """Leave something in a place outside."""
        holder, kind, key, spec, _ = store
        place, name = self.value(holder), self.value(key)
        if kind == "count":
            suffix, op, operand = key
            # Two lines: one that an interrupt stops is done again.
            self.lines.append(f"n = {place}{suffix} {op} {self.value(operand)}")
            self.lines.append(f"{place}{suffix} = n")
            return
        value = self.expression(spec, results)
        if kind == "item":
            self.lines.append(f"{place}[{name}] = {value}")
        elif kind == "cell":
            self.lines.append(f"{place}.cell_contents = {value}")
        else:
            setter = setattr if type(holder) is ModuleType else object.__setattr__
            self.lines.append(f"{self.value(setter)}({place}, {name}, {value})")

    def read_out(self, array: str, how: Any) -> str:
        """Return what reads an array: a method, or what a number makes with that."""
        if type(how) is tuple:
            inner, op, other, reflected = how
            parts = [self.read_out(array, inner), self.value(other)]
            return f"({f' {op} '.join(reversed(parts) if reflected else parts)})"
        return array if how == "numpy" else f"{array}.{how}()"

    def expression(self, spec: Any, results: Results) -> str:
        if isinstance(spec, Leaf):
            return f"y{spec.position}"
        if isinstance(spec, ReadOut):
            numbers = isinstance(results.entries[spec.position], Numbers)
            array = f"y{spec.position}" if numbers else f"y{spec.position}._data"
            return self.read_out(array, spec.how)
        if isinstance(spec, Fixed):
            return self.value(spec.value)
        children = [self.expression(child, results) for child in spec.children]
        listed = "".join(f"{child}, " for child in children)
        if spec.kind is dict:
            keys = [self.value(key) for key in spec.keys]
            pairs = [f"{k}: {c}" for k, c in zip(keys, children, strict=True)]
            return f"{{{', '.join(pairs)}}}"
        if spec.kind is list:
            return f"[{listed}]"
        if spec.keys:
            return (
                f"{self.value(_made)}({self.value(spec.kind)}, {self.value(spec.keys)}, ({listed}))"
            )
        return f"({listed})" if spec.kind is tuple else f"{self.value(spec.kind)}({listed})"


def _made(kind: type, names: Sequence[str], values: Sequence[Any]) -> Any:
    """Make an object of a class from its attributes, as copying it would."""
    found: Any = object.__new__(kind)
    found.__dict__.update(zip(names, values, strict=True))
    return found
