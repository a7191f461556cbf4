"""Loading a state dict: its mistakes, and functions that undo the writes so far."""

from __future__ import annotations

import contextlib
import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oneflow_lite.nn.parameter import is_lazy
from oneflow_lite.tensors.tensor import Tensor

if TYPE_CHECKING:
    pass

Undo = Callable[[], Any]


class Problems(list[str]):
    """Messages about a state dict, and functions that undo the writes so far."""

    def __init__(self) -> None:
        super().__init__()
        self.undo: list[Undo] = []


def as_dimensionless(value: Any, tensor: Tensor) -> Any:
    """Return the value for a tensor; PyTorch 0.3 gave a scalar a dimension."""
    is_plain = isinstance(value, Tensor) and not is_lazy(value) and not is_lazy(tensor)
    return value[0] if is_plain and value.shape == (1,) and not tensor.ndim else value


def restorer(tensor: Tensor) -> Undo:
    """Return a function that writes the present values of a tensor back, or makes it lazy again."""
    if is_lazy(tensor):
        lazy: Any = tensor
        fields, stub = _restorer_of_fields(tensor), _restorer_of_fields(lazy._stub)
        return lambda: [fields(), stub()]
    before = tensor.detach().clone()
    return lambda: tensor.copy_(before)


def restorer_of_module(module: Any, has_extra: bool) -> Undo:
    """Return a function that gives a module back its attributes, members and extra state."""
    members = [kept for kept in vars(module).values() if type(kept) in (dict, OrderedDict, set)]
    before = [(kept, kept.copy()) for kept in members]
    fields = _restorer_of_fields(module)
    extra: list[Any] = []
    if has_extra:
        with contextlib.suppress(Exception):  # there may be none yet, or one that is not copied
            extra.append(copy.deepcopy(module.get_extra_state()))

    def restore() -> None:
        fields()
        with contextlib.suppress(Exception):  # the error that led here says more
            for each in extra:
                module.set_extra_state(each)
        fields()
        for kept, entries in before:
            kept.clear()
            kept.update(entries)

    return restore


def _restorer_of_fields(owner: Any) -> Undo:
    """Return a function that gives an object back its class and its attributes."""
    kind, before = type(owner), dict(vars(owner))

    def restore() -> None:
        owner.__class__ = kind
        vars(owner).clear()
        vars(owner).update(before)

    return restore


def mismatch(key: str, value: Any, tensor: Tensor, assign: bool) -> str:
    """Return a message if the value for `key` does not fit the tensor, else an empty text."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected a Tensor from the state dict, '
            f"got {type(value).__name__}"
        )
    if is_lazy(tensor):  # it takes any shape
        return ""
    if value.shape != tensor.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {tuple(value.shape)} from "
            f"checkpoint, the shape in current model is {tuple(tensor.shape)}."
        )
    if value.is_complex() and not tensor.is_complex() and not assign:
        return f"dtype mismatch for {key}: complex values do not fit {tensor.dtype}"
    return ""
