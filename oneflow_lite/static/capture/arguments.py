"""Which calls a recording serves, as far as the arguments say: a generated function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.autograd.function_node import AccumulateGrad
from oneflow_lite.static.capture.tree import Fixed, Leaf, flatten, same_value
from oneflow_lite.tensor import Tensor

Match = Callable[[tuple[Any, ...], dict[str, Any]], "tuple[Tensor, ...] | None"]


class Arguments:
    """The arguments of the call that was recorded.

    Attributes
    ----------
    tensors : list of Tensor
        In the order in which they were found.
    match : callable
        Takes args and kwargs of another call; returns its tensors, None when it differs in
        structure, plain values, or a tensor's class, device, dtype, shape, layout, whether it
        requires a gradient or is a view, or which tensors are the same object.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tensors: list[Tensor] = []
        specs = [flatten(x, self.tensors) for x in args]
        keyword_specs = {name: flatten(x, self.tensors) for name, x in kwargs.items()}
        self.match = self._generate(specs, keyword_specs)

    def forget(self) -> None:
        """Let go of the tensors; `match` needs them no more."""
        self.tensors = []

    def _generate(self, specs: Sequence[Any], keyword_specs: dict[str, Any]) -> Match:
        writer = _Writer(self.tensors)
        keys = writer.value(tuple(keyword_specs))
        writer.lines.append(f"    if len(args) != {len(specs)} or tuple(kwargs) != {keys}: return")
        for i, spec in enumerate(specs):
            writer.check(spec, f"args[{i}]")
        for name, spec in keyword_specs.items():
            writer.check(spec, f"kwargs[{writer.value(name)}]")
        writer.check_identities()
        found = "".join(f"t{i}, " for i in range(len(self.tensors)))
        source = "\n".join(["def match(args, kwargs):", *writer.lines, f"    return ({found})"])
        exec(compile(source, "<arguments>", "exec"), writer.namespace)
        match: Match = writer.namespace["match"]
        return match


class _Writer:
    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {"same": same_value, "ndarray": np.ndarray}
        self._count = 0

    def value(self, value: Any) -> str:
        name = f"g{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def check(self, spec: Any, expression: str) -> None:
        if isinstance(spec, Leaf):
            self._tensor(spec.position, expression)
            return
        self._count += 1
        name = f"a{self._count}"
        self.lines.append(f"    {name} = {expression}")
        if isinstance(spec, Fixed):
            value = self.value(spec.value)
            if spec.is_plain:
                test = f"{name} is not {value} and not same({name}, {value})"
            else:
                test = f"{name} is not {value}"
            self.lines.append(f"    if {test}: return")
            return
        kind = self.value(spec.kind)
        size = len(spec.children)
        self.lines.append(f"    if type({name}) is not {kind} or len({name}) != {size}: return")
        if spec.kind is dict:
            keys = self.value(spec.keys)
            self.lines.append(f"    if tuple({name}) != {keys}: return")
            for i, child in enumerate(spec.children):
                self.check(child, f"{name}[{keys}[{i}]]")
            return
        for i, child in enumerate(spec.children):
            self.check(child, f"{name}[{i}]")

    def check_identities(self) -> None:
        """Check that those tensors are one object that were one, and no others."""
        first: dict[int, int] = {}
        for position, tensor in enumerate(self.tensors):
            earlier = first.setdefault(id(tensor), position)
            if earlier != position:
                self.lines.append(f"    if t{position} is not t{earlier}: return")
        if len(first) == 2:
            one, other = first.values()
            self.lines.append(f"    if t{one} is t{other}: return")
        elif len(first) > 2:
            ids = ", ".join(f"id(t{position})" for position in first.values())
            self.lines.append(f"    if len({{{ids}}}) != {len(first)}: return")

    def _tensor(self, position: int, expression: str) -> None:
        tensor = self.tensors[position]
        array, name, data = tensor._data, f"t{position}", f"d{position}"
        add = self.lines.append
        add(f"    {name} = {expression}")
        add(f"    if type({name}) is not {self.value(type(tensor))}: return")
        add(f"    {data} = {name}._data")
        known = [
            f"type({data}) is not {self.value(type(array))}",
            f"{data}.dtype is not {self.value(array.dtype)}",
            f"{data}.shape != {array.shape!r}",
            f"{data}.strides != {array.strides!r}",
        ]
        if not isinstance(array, np.ndarray):
            known.append(f"{name}.device != {self.value(tensor.device)}")
        add(f"    if {' or '.join(known)}: return")
        add(f"    if ({name}._view is None) is not {tensor._view is None}: return")
        if tensor._view is not None:
            add(f"    {name}.refresh_view()")
        edge = tensor._edge
        if edge is None:
            add(f"    if {name}._edge is not None: return")
        else:
            leaf = isinstance(edge[0], AccumulateGrad)
            kind = self.value(AccumulateGrad)
            add(f"    if {name}._edge is None: return")
            add(f"    if (type({name}._edge[0]) is {kind}) is not {leaf}: return")
