"""What `Module.state_dict` collects and `Module.load_state_dict` checks and copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentTypeError, StateDictError, bad_argument
from oneflow_lite.nn.parameter import Parameter, is_lazy
from oneflow_lite.tensor import Tensor

if TYPE_CHECKING:
    from oneflow_lite.nn.module import Module


class IncompatibleKeys(NamedTuple):
    """The keys that a state dict lacked and those that the module lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


def _slots(
    module: Module, prefix: str
) -> Iterator[tuple[str, MutableMapping[str, Any], str, Tensor]]:
    """Yield key, owning dict, name and tensor of all that belongs into a state dict."""
    for path, owner in module.named_modules(prefix=prefix, remove_duplicate=False):
        start = f"{path}." if path else ""
        for name, parameter in owner._parameters.items():
            if parameter is not None:
                yield start + name, owner._parameters, name, parameter
        for name, buffer in owner._buffers.items():
            if buffer is not None and name not in owner._non_persistent_buffers:
                yield start + name, owner._buffers, name, buffer


def collect_state(
    module: Module, destination: Any, prefix: str, keep_vars: bool
) -> dict[str, Tensor]:
    """Fill `destination` with the parameters and persistent buffers of `module`."""
    for key, _, _, tensor in _slots(module, ""):
        destination[prefix + key] = tensor if keep_vars else tensor.detach()
    return destination  # type: ignore[no-any-return]


def load_state(
    module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Copy `state_dict` into `module`: everything is checked before the first tensor is written."""
    if not isinstance(state_dict, Mapping):
        raise bad_argument(
            ArgumentTypeError,
            "load_state_dict",
            "state_dict",
            expected="a dict of tensors by name",
            got=type(state_dict).__name__,
            mend="pass what state_dict() or flow.load() returned",
        )
    slots = list(_slots(module, ""))
    keys = {key for key, _, _, _ in slots}
    missing = [key for key in dict.fromkeys(slot[0] for slot in slots) if key not in state_dict]
    unexpected = [key for key in state_dict if key not in keys]
    problems = []
    if strict and unexpected:
        problems.append("Unexpected key(s) in state_dict: " + ", ".join(map(repr, unexpected)))
    if strict and missing:
        problems.append("Missing key(s) in state_dict: " + ", ".join(map(repr, missing)))
    for key, _, _, tensor in slots:
        if key in state_dict:
            problems.extend(_mismatch(key, state_dict[key], tensor))
    if problems:
        raise StateDictError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t"
            + "\n\t".join(problems)
            + "\nload it into the network it was saved from"
            + (", or pass strict=False to skip keys" if missing or unexpected else "")
        )
    with no_grad():
        for key, owner, name, tensor in slots:
            if key not in state_dict:
                continue
            if assign:
                owner[name] = _replacement(state_dict[key], tensor)
            else:
                tensor.copy_(state_dict[key])
    return IncompatibleKeys(missing, unexpected)


def _mismatch(key: str, value: Any, tensor: Tensor) -> list[str]:
    """Say what is wrong with the value for `key`, if anything is."""
    if not isinstance(value, Tensor):
        return [f"value of {key!r}: expected a Tensor, got {type(value).__name__}"]
    if is_lazy(tensor):  # takes any shape
        return []
    if value.shape != tensor.shape:
        return [
            f"size mismatch for {key!r}: the state dict has shape {tuple(value.shape)}, "
            f"the module has {tuple(tensor.shape)}"
        ]
    if value.is_complex() and not tensor.is_complex():
        return [f"dtype mismatch for {key!r}: complex values do not fit {tensor.dtype}"]
    return []


def _replacement(value: Tensor, tensor: Tensor) -> Tensor:
    if not isinstance(tensor, Parameter):
        return value
    if isinstance(value, Parameter):
        return value
    return Parameter(value, requires_grad=tensor.requires_grad)
