"""Which calls a recording serves, as far as the arguments say: a generated function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.autograd.node import AccumulateGrad
from oneflow_lite.static.capture.holders import users_attributes
from oneflow_lite.static.ir.tree import Fixed, Leaf, flatten, mutable_containers, same
from oneflow_lite.tensor import OWN_FIELDS, Tensor

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
        self._containers: list[Any] = []
        pairs = zip([*specs, *keyword_specs.values()], [*args, *kwargs.values()], strict=True)
        for spec, value in pairs:
            self._containers += mutable_containers(spec, value)
        self._writer = _Writer(self.tensors)
        self._writer.begin(specs, keyword_specs, self._containers)
        self.match = self._writer.function()

    def look_further(
        self, attributes: Sequence[tuple[dict[str, Any], bool]], outside: Sequence[Any]
    ) -> None:
        """Have `match` compare more.

        Parameters
        ----------
        attributes : sequence of (dict, bool)
            What users have set on each tensor and the call read, and whether it may have asked
            for what is not there.
        outside : sequence of list or dict
            Those that the call could compare its arguments with, by identity.
        """
        for i, (read, asks) in enumerate(attributes):
            self._writer.check_attributes(i, read, asks)
        self._writer.check_places(self._containers, outside)
        self.match = self._writer.function()

    def forget(self) -> None:
        """Let go of what was given; `match` needs it no more."""
        self.tensors, self._containers = [], []
        del self._writer


class _Writer:
    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {"same": same, "ndarray": np.ndarray, "own": OWN_FIELDS}
        self.mutable: list[str] = []  # the names of lists and dicts
        self._count = 0

    def begin(
        self, specs: Sequence[Any], keyword_specs: dict[str, Any], containers: Sequence[Any]
    ) -> None:
        """Check structure and plain values, and what the tensors are like at this moment."""
        keys = self.value(tuple(keyword_specs))
        self.lines.append(f"    if len(args) != {len(specs)} or tuple(kwargs) != {keys}: return")
        for i, spec in enumerate(specs):
            self.check(spec, f"args[{i}]")
        for name, spec in keyword_specs.items():
            self.check(spec, f"kwargs[{self.value(name)}]")
        self.check_identities([f"t{i}" for i in range(len(self.tensors))], self.tensors)
        self.check_identities(self.mutable, containers)

    def function(self) -> Match:
        """Return what has been written so far as a function."""
        found = "".join(f"t{i}, " for i in range(len(self.tensors)))
        source = "\n".join(["def match(args, kwargs):", *self.lines, f"    return ({found})"])
        exec(compile(source, "<arguments>", "exec"), self.namespace)
        match: Match = self.namespace["match"]
        return match

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
        if spec.kind in (list, dict):
            self.mutable.append(name)
        kind = self.value(spec.kind)
        size = len(spec.children)
        self.lines.append(f"    if type({name}) is not {kind} or len({name}) != {size}: return")
        if spec.kind is dict:
            keys = self.value(spec.keys)
            words = all(type(key) is str for key in spec.keys)
            test = f"tuple({name}) != {keys}" if words else f"not same(tuple({name}), {keys})"
            self.lines.append(f"    if {test}: return")
            for i, child in enumerate(spec.children):
                self.check(child, f"{name}[{keys}[{i}]]")
            return
        for i, child in enumerate(spec.children):
            self.check(child, f"{name}[{i}]")

    def check_attributes(self, position: int, read: dict[str, Any], asks: bool) -> None:
        """Check what users have set on a tensor."""
        fields = f"t{position}.__dict__"
        if asks:
            names = self.value(set(users_attributes(self.tensors[position])))
            self.lines.append(f"    if {fields}.keys() - own != {names}: return")
        for name, value in read.items():
            test = f"same({fields}.get({name!r}), {self.value(value)})"
            self.lines.append(f"    if {name!r} not in {fields} or not {test}: return")

    def check_identities(self, names: Sequence[str], objects: Sequence[Any]) -> None:
        """Check that those objects are one that were one, and no others."""
        first: dict[int, str] = {}
        for name, value in zip(names, objects, strict=True):
            earlier = first.setdefault(id(value), name)
            if earlier != name:
                self.lines.append(f"    if {name} is not {earlier}: return")
        if len(first) == 2:
            one, other = first.values()
            self.lines.append(f"    if {one} is {other}: return")
        elif len(first) > 2:
            ids = ", ".join(f"id({name})" for name in first.values())
            self.lines.append(f"    if len({{{ids}}}) != {len(first)}: return")

    def check_places(self, containers: Sequence[Any], outside: Sequence[Any]) -> None:
        """Check which lists and dicts are also outside."""
        ids = {id(value) for value in outside}
        known = self.value(ids)
        for name, value in zip(self.mutable, containers, strict=True):
            if id(value) in ids:
                self.lines.append(f"    if {name} is not {self.value(value)}: return")
            elif ids:
                self.lines.append(f"    if id({name}) in {known}: return")

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
