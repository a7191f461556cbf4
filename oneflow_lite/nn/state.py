"""The part of `Module` that collects its state, and checks and copies one into it.

`state_dict` and `load_state_dict` go through a module and those below it; what each of them adds
and takes is up to `_save_to_state_dict` and `_load_from_state_dict`, which a class may override.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from oneflow_lite.autograd.hooks import RemovableHandle, check_callable
from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import (
    ArgumentTypeError,
    HookError,
    OptionError,
    StateDictError,
    arg_error,
)
from oneflow_lite.nn.hooks import Hook, register
from oneflow_lite.nn.parameter import Parameter, is_lazy
from oneflow_lite.tensor import Tensor

if TYPE_CHECKING:
    from oneflow_lite.nn.module import Module

_EXTRA = "_extra_state"  # the key of what get_extra_state returns
_Undo = Callable[[], Any]


class _Problems(list[str]):
    """What is wrong with a state dict, and how to take back what was written of it so far."""

    def __init__(self) -> None:
        super().__init__()
        self.undo: list[_Undo] = []


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """The keys that a state dict lacked and those that the module lacks."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class ModuleState:
    """What `Module` knows about state dicts."""

    _version: ClassVar[int] = 1  # of the layout of a class's state; stands in the metadata
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _state_dict_pre_hooks: dict[int, Hook]
    _state_dict_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks_with_module: dict[int, bool]
    _load_state_dict_post_hooks: dict[int, Hook]

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Return parameters and persistent buffers by dotted name.

        The tensors share memory with the module; they are detached unless `keep_vars`.
        `flow.save` writes what is returned.

        Parameters
        ----------
        *args
            The three below in this order, as older scripts pass them.
        destination : dict, optional
            The dict to fill and return; a new one by default, whose `_metadata` holds the
            `_version` of every module.
        prefix : str
            Put before every name.
        keep_vars : bool
            Whether the parameters themselves are returned rather than detached tensors.

        Raises
        ------
        HookError
            When a hook of `register_state_dict_post_hook` returns something.
        """
        if args:
            warnings.warn(
                "state_dict(): pass destination, prefix and keep_vars by keyword",
                FutureWarning,
                stacklevel=2,
            )
            given = (*args, *(destination, prefix, keep_vars)[len(args) :])
            destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata: dict[str, Any] = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}{name}."
                module.state_dict(destination=destination, prefix=below, keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is not None and getattr(hook, "_from_public_api", False):
                raise HookError(
                    "state_dict(): a hook of register_state_dict_post_hook returned "
                    f"{type(result).__name__}; change the dict that it is given and return None"
                )
            destination = destination if result is None else result
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put what belongs to this module alone into `destination`; a class may override it."""
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not ModuleState.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield name, parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                yield name, buffer

    def get_extra_state(self) -> Any:
        """Return what a class wants in its state dict beside tensors; it defines both methods.

        `flow.save` writes numbers, strings, None, tensors, and lists, tuples and dicts of these.
        """
        raise _missing_error(self, "get_extra_state", "set_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` returned; a class defines both methods."""
        raise _missing_error(self, "set_extra_state", "get_extra_state")

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy the tensors of a state dict into parameters and persistent buffers.

        Parameters
        ----------
        state_dict : mapping of str to Tensor
            As `state_dict` returns it, or `flow.load`.
        strict : bool
            Whether missing and unexpected keys are an error.
        assign : bool
            Whether the tensors of `state_dict` take the places of the module's own, keeping their
            dtype and device, instead of being copied into them.

        Returns
        -------
        NamedTuple
            Lists `missing_keys` and `unexpected_keys`.

        Raises
        ------
        StateDictError
            Names every missing, unexpected and mis-shaped key; the tensors hold what they held.
        HookError
            When a hook of `register_load_state_dict_post_hook` returns something.
        """
        if not isinstance(state_dict, Mapping):
            raise arg_error(
                "load_state_dict",
                "state_dict",
                expected="a dict of tensors by name",
                got=type(state_dict).__name__,
                hint="pass what state_dict() or flow.load() returned",
                kind=ArgumentTypeError,
            )
        missing: list[str] = []
        unexpected: list[str] = []
        problems = _Problems()
        metadata = getattr(state_dict, "_metadata", None)
        own: Any = OrderedDict(state_dict)  # hooks may change it
        if metadata is not None:
            own._metadata = metadata
        keys = _IncompatibleKeys(missing, unexpected)

        def load(module: Any, state: Any, prefix: str) -> None:
            local_metadata = dict((metadata or {}).get(prefix[:-1], {}))
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            lists = (missing, unexpected, problems)
            module._load_from_state_dict(state, prefix, local_metadata, True, *lists)
            for name, child in module._modules.items():
                if child is not None:
                    below = f"{prefix}{name}."
                    load(child, {k: v for k, v in state.items() if k.startswith(below)}, below)
            for hook in module._load_state_dict_post_hooks.values():
                result = hook(module, keys)
                if result is not None:
                    raise OptionError(
                        "load_state_dict(): a hook of register_load_state_dict_post_hook returned "
                        f"{type(result).__name__}; change the lists that it is given, and return "
                        "None"
                    )

        try:
            load(self, own, "")
            if strict:
                for what, names in (("Unexpected", unexpected), ("Missing", missing)):
                    if names:
                        listed = ", ".join(f'"{name}"' for name in names)
                        problems.insert(0, f"{what} key(s) in state_dict: {listed}. ")
            if problems:
                raise StateDictError(
                    f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                    + "\n\t".join(problems)
                    + "\nload it into the network it was saved from"
                    + (", or pass strict=False to skip keys" if missing or unexpected else "")
                )
        except BaseException:
            with no_grad():
                for step in reversed(problems.undo):
                    step()
            raise
        return keys

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take what belongs to this module alone from `state_dict`; a class may override it.

        `local_metadata` holds the `version` that the module had when it was saved, if the state
        dict says so. What is wrong goes into the three lists.
        """
        for number, hook in self._load_state_dict_pre_hooks.items():
            first = (self,) if number in self._load_state_dict_pre_hooks_with_module else ()
            lists = (missing_keys, unexpected_keys, error_msgs)
            hook(*first, state_dict, prefix, local_metadata, strict, *lists)
        own = dict(self._own_state())
        assign = local_metadata.get("assign_to_params_buffers", False)
        undo = error_msgs.undo if isinstance(error_msgs, _Problems) else []
        for name, tensor in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            value = state_dict[key]
            if isinstance(value, Tensor) and _old_scalar(value, tensor):
                value = value[0]  # as PyTorch 0.3 wrote what has no dimension
            problem = _mismatch(key, value, tensor, assign)
            if problem:
                error_msgs.append(problem)
            elif assign:
                self._assign(name, value, undo)
            else:
                with no_grad():
                    undo.append(_restore(tensor))
                    tensor.copy_(value)
        extra = prefix + _EXTRA
        if type(self).set_extra_state is not ModuleState.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    first_name, dot, _ = key[len(prefix) :].partition(".")
                    if first_name not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _assign(self, name: str, value: Tensor, undo: list[_Undo]) -> None:
        """Let a tensor of a state dict take the place of a parameter or buffer."""
        members: dict[str, Any] = self._parameters if name in self._parameters else self._buffers
        before = members[name]
        if isinstance(before, Parameter):
            if not isinstance(value, Parameter):
                value = Parameter(value, requires_grad=before.requires_grad)
            value.requires_grad_(before.requires_grad)
        undo.append(lambda: members.__setitem__(name, before))
        setattr(self, name, value)

    # Hooks

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module's state is collected."""
        return register("register_state_dict_pre_hook", self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after the state is collected.

        It may change the dict, and returns None.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> layer = flow.nn.Linear(1, 1)
        >>> def drop_bias(module, state_dict, prefix, local_metadata):
        ...     del state_dict[prefix + "bias"]
        >>> handle = layer.register_state_dict_post_hook(drop_bias)
        >>> list(layer.state_dict())
        ['weight']
        """
        op = "register_state_dict_post_hook"
        check_callable(op, hook)
        cast(Any, getattr(hook, "__func__", hook))._from_public_api = True  # a method has none
        return register(op, self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """Call a hook as the one above, whose result, if any, takes the place of the dict."""
        if getattr(hook, "_from_public_api", False):
            raise HookError(
                "_register_state_dict_hook(): the function was registered with "
                "register_state_dict_post_hook before; define another one"
            )
        return register("_register_state_dict_hook", self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call a hook before the module takes its part of a state dict.

        It is called as `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` and may change the dict and the lists.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Hook, with_module: bool = False
    ) -> RemovableHandle:
        """Call a hook as the one above, by default without the module."""
        flags = (self._load_state_dict_pre_hooks_with_module,) if with_module else ()
        hooks = self._load_state_dict_pre_hooks
        return register("register_load_state_dict_pre_hook", hooks, hook, flags=flags)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after the module and those below it were loaded.

        It may change the two lists, and returns None.
        """
        hooks = self._load_state_dict_post_hooks
        return register("register_load_state_dict_post_hook", hooks, hook)


def _missing_error(module: object, method: str, other: str) -> StateDictError:
    name = type(module).__name__
    return StateDictError(
        f"{method}(): {name} does not define it; a class that has {other}() defines both"
    )


def _old_scalar(value: Tensor, tensor: Tensor) -> bool:
    lazy = is_lazy(value) or is_lazy(tensor)
    return not lazy and value.shape == (1,) and not tensor.ndim


def _restore(tensor: Tensor) -> _Undo:
    """Return what writes the present values of a tensor back; a lazy one has none."""
    if is_lazy(tensor):
        return lambda: None
    before = tensor.detach().clone()
    return lambda: tensor.copy_(before)


def _mismatch(key: str, value: Any, tensor: Tensor, assign: bool) -> str:
    """Say what is wrong with the value for `key`, if anything is."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected a Tensor from the state dict, '
            f"got {type(value).__name__}"
        )
    if is_lazy(tensor):  # takes any shape
        return ""
    if value.shape != tensor.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {tuple(value.shape)} from "
            f"checkpoint, the shape in current model is {tuple(tensor.shape)}."
        )
    if value.is_complex() and not tensor.is_complex() and not assign:
        return f"dtype mismatch for {key}: complex values do not fit {tensor.dtype}"
    return ""
