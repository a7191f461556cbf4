"""SavePlan: the parts of a call that a declared gradient function saves, found once for each op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite.autograd.rules.saved_tensor import SavedTensor, save_tensor
from oneflow_lite.errors import RegistrationError
from oneflow_lite.tensors.node import Edge
from oneflow_lite.tensors.tensor import Tensor

Saved = tuple[tuple[SavedTensor, ...], dict[str, Any]]  # what a node keeps: tensors, plain values
Saver = Callable[..., Saved]  # (inputs, outputs, attrs) -> Saved


class SavePlan:
    """The positions of the tensors that a node keeps, for a given set of inputs with gradients.

    `saver()` turns it into a function `(inputs, outputs, attrs) -> (saved, attrs)`; the few forms
    that most ops have are written out, and a loop serves the rest.
    """

    def __init__(self, op_type_name: str) -> None:
        self.op_type_name = op_type_name
        self.inputs: list[tuple[str, int]] = []
        self.outputs: list[tuple[str, int]] = []
        # (name on ctx, input, "shape" or "dtype")
        self.constants: list[tuple[str, int, str]] = []
        self.edges: list[tuple[str, int]] = []  # the node has them anyway
        # (name on ctx, first input, "" or "shape" or "dtype")
        self.variadic: list[tuple[str, int, str]] = []

    def saver(self) -> Saver | None:
        """Return the function that saves for a call; None when the rule needs no tensor."""
        if not (self.constants or self.variadic):
            counts = (len(self.inputs), len(self.outputs))
            if counts == (0, 0):
                return None
            if counts == (1, 0):
                return _save_one_input(*self.inputs[0], self.save)
            if counts == (2, 0):
                return _save_two_inputs(self.inputs[0], self.inputs[1], self.save)
            if counts == (0, 1):
                name, position = self.outputs[0]
                # `save` says when a rule names an output that the op does not have.
                return self.save if position else _save_only_output(name)
        return self.save

    def save(
        self, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...], attrs: dict[str, Any]
    ) -> Saved:
        saved = []
        for name, i in self.inputs:
            tensor = inputs[i]
            if tensor is None:
                attrs = {**attrs, name: None}
                continue
            storage = tensor._storage or tensor.memory
            saved.append((name, tensor._data, storage, storage.version, tensor._edge))
        for name, i in self.outputs:
            y = outputs[i] if i < len(outputs) else self._output(outputs, i, name)
            storage = y._storage or y.memory
            saved.append((name, y._data, storage, storage.version, output_edge(y, i)))
        if self.constants or self.variadic:
            attrs = dict(attrs)
            for name, i, what in self.constants:
                attrs[name] = None if inputs[i] is None else getattr(inputs[i]._data, what)
            for name, first, what in self.variadic:
                if what:
                    attrs[name] = tuple(getattr(x._data, what) for x in inputs[first:])
                else:
                    rest = enumerate(inputs[first:])
                    saved.extend(save_tensor(f"{name}[{k}]", x, x._edge) for k, x in rest)
        return tuple(saved), attrs

    def _output(self, outputs: tuple[Tensor, ...], position: int, name: str) -> Tensor:
        if position < len(outputs):
            return outputs[position]
        raise RegistrationError(
            f"gradient function {self.op_type_name!r}: saves={name!r}, but the op has "
            f"{len(outputs)} output(s), counted from 'y0'"
        )


def _save_one_input(name: str, position: int, general: Saver) -> Saver:
    def save(inputs: Any, outputs: Any, attrs: Any) -> Any:
        tensor = inputs[position]
        if tensor is None:
            return general(inputs, outputs, attrs)
        storage = tensor._storage or tensor.memory
        return ((name, tensor._data, storage, storage.version, tensor._edge),), attrs

    return save


def _save_two_inputs(first: tuple[str, int], second: tuple[str, int], general: Saver) -> Saver:
    (name_x, i), (name_y, j) = first, second

    def save(inputs: Any, outputs: Any, attrs: Any) -> Any:
        x, y = inputs[i], inputs[j]
        if x is None or y is None:
            return general(inputs, outputs, attrs)
        of_x, of_y = x._storage or x.memory, y._storage or y.memory
        saved = (
            (name_x, x._data, of_x, of_x.version, x._edge),
            (name_y, y._data, of_y, of_y.version, y._edge),
        )
        return saved, attrs

    return save


def _save_only_output(name: str) -> Saver:
    def save(inputs: Any, outputs: Any, attrs: Any) -> Any:
        y = outputs[0]
        return (save_tensor(name, y, output_edge(y, 0)),), attrs

    return save


def output_edge(y: Tensor, position: int) -> Edge | None:
    """Return the place of an output in the graph, without its node; None for an integer output."""
    return (None, position) if y._data.dtype.kind in "fc" else None
