"""Module: keeps parameters, buffers and submodules, and calls `forward`, where functors begin."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from oneflow_lite.autograd.hooks import RemovableHandle
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    FlowError,
    MissingMethodError,
    ModuleAttributeError,
    ModuleNameError,
    arg_error,
)
from oneflow_lite.nn.conversion import Conversion
from oneflow_lite.nn.hooks import EVERYWHERE, Hook, ModuleHooks, register
from oneflow_lite.nn.parameter import Buffer, Parameter, clear_grad
from oneflow_lite.nn.state import ModuleState
from oneflow_lite.nn.traversal import Traversal
from oneflow_lite.tensor import Tensor

if TYPE_CHECKING:
    from oneflow_lite.static.compile.face import CompiledCall

_FIELDS: dict[str, Callable[[], Any]] = {  # what every module has, and what makes an empty one
    "_parameters": dict,
    "_buffers": dict,
    "_non_persistent_buffers_set": set,
    "_backward_pre_hooks": dict,
    "_backward_hooks": dict,
    "_is_full_backward_hook": type(None),  # whether they are full ones; None where there are none
    "_forward_hooks": dict,
    "_forward_hooks_with_kwargs": dict,
    "_forward_hooks_always_called": dict,
    "_forward_pre_hooks": dict,
    "_forward_pre_hooks_with_kwargs": dict,
    "_state_dict_hooks": dict,
    "_state_dict_pre_hooks": dict,
    "_load_state_dict_pre_hooks": dict,
    "_load_state_dict_pre_hooks_with_module": dict,
    "_load_state_dict_post_hooks": dict,
    "_modules": dict,
}
# Empty until a module is compiled in place: asking this first makes the others' calls no slower.
IN_PLACE: list[bool] = []
# Functions of the user that see, and may replace, what any module registers; by kind.
_REGISTRATION_HOOKS: dict[str, dict[int, Hook]] = {"parameters": {}, "buffers": {}, "modules": {}}


class Module(Traversal, ModuleHooks, ModuleState, Conversion):
    """Base class of every network and layer.

    A subclass calls `super().__init__()`, assigns parameters and submodules as attributes, and
    defines `forward`. Calling the module runs `forward` and the hooks around it.

    Attributes
    ----------
    training : bool
        Whether the module is in training mode; dropout and batch normalization look at it.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> class Affine(flow.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = flow.nn.Parameter(flow.tensor([2.0]))
    ...
    ...     def forward(self, x):
    ...         return x * self.scale + 1
    >>> affine = Affine()
    >>> affine(flow.tensor([3.0])).item(), list(affine.state_dict())
    (7.0, ['scale'])
    """

    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    dump_patches: ClassVar[bool] = False  # PyTorch's, without effect there as well
    call_super_init: ClassVar[bool] = False
    """Whether `Module.__init__` hands its arguments to the next class of the MRO."""

    training: bool
    _compiled_call_impl: CompiledCall | None = None  # set by `compile`
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise arg_error(
                f"{type(self).__name__}.__init__",
                next(iter(kwargs), "args"),
                expected="no arguments",
                got=f"{len(args)} positional and {len(kwargs)} keyword arguments",
                hint="take them in the __init__ of the subclass",
                kind=ArgumentTypeError,
            )
        fields = self.__dict__
        fields["training"] = True
        for name, empty in _FIELDS.items():
            fields[name] = empty()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: Any) -> None:
        state, slots = state if isinstance(state, tuple) else (state, {})  # of a class with slots
        self.__dict__.update(state)
        for name, value in slots.items():
            setattr(self, name, value)
        for name, empty in _FIELDS.items():  # that an older version of the package did not have
            if name not in self.__dict__:
                self.__dict__[name] = empty()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; every subclass defines it."""
        raise MissingMethodError(
            f'module [{type(self).__name__}] is missing the required "forward" function; '
            "define it, or call the submodules yourself"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if IN_PLACE and self._compiled_call_impl is not None:
            return self._compiled_call_impl.of(self)(*args, **kwargs)
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or EVERYWHERE
        ):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self._call_with_hooks(args, kwargs)

    # Registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter, or with None a name that may hold one later.

        Raises
        ------
        ModuleNameError
            When the name is empty, contains a dot or is taken.
        ArgumentTypeError
            When `param` is not a Parameter.
        ArgumentError
            When `param` was computed from other tensors.
        """
        self._check_name("register_parameter", "parameters", name)
        if param is not None and not isinstance(param, Parameter):
            raise arg_error(
                "register_parameter",
                "param",
                expected=f"a Parameter or None for {name!r}",
                got=type(param).__name__,
                hint="wrap the tensor with flow.nn.Parameter(...)",
                kind=ArgumentTypeError,
            )
        if param is not None and param.grad_fn is not None:
            raise arg_error(
                "register_parameter",
                "param",
                expected=f"a leaf tensor for {name!r}",
                got=f"one computed by {param.grad_fn.name()}",
                hint="compute the value in forward(), or pass Parameter(value.detach())",
                kind=ArgumentError,
            )
        if param is not None:
            param = _registered("parameters", self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is part of the module's state but is not trained.

        Parameters
        ----------
        name : str
            The attribute under which it is found.
        tensor : Tensor or None
            None is kept, moves nowhere and stays out of the state dict.
        persistent : bool
            Whether it is part of the state dict.

        Raises
        ------
        ModuleNameError
            When the name is empty, contains a dot or is taken.
        ArgumentTypeError
            When `tensor` is neither a tensor nor None.
        """
        self._check_name("register_buffer", "buffers", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise arg_error(
                "register_buffer",
                "tensor",
                expected=f"a Tensor or None for {name!r}",
                got=type(tensor).__name__,
                hint="wrap the value with flow.tensor(...)",
                kind=ArgumentTypeError,
            )
        self._buffers[name] = _registered("buffers", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a submodule; the same as `add_module`."""
        self._check_name("add_module", "modules", name)
        if module is not None and not isinstance(module, Module):
            raise arg_error(
                "add_module",
                "module",
                expected=f"a Module or None for {name!r}",
                got=type(module).__name__,
                hint="pass an instance of an nn.Module subclass",
                kind=ArgumentTypeError,
            )
        self._modules[name] = _registered("modules", self, name, module)

    add_module = register_module

    def _check_name(self, op: str, kind: str, name: str) -> None:
        """Raise when `name` cannot be registered among `kind`, 'parameters' for example."""
        registered = self.__dict__.get(f"_{kind}")
        if registered is None:
            raise _uninitialized_error(f"register {kind}")
        if not isinstance(name, str):
            raise arg_error(
                op,
                "name",
                expected="a str",
                got=type(name).__name__,
                hint="name it with a string",
                kind=ArgumentTypeError,
            )
        if not name or "." in name or (name not in registered and hasattr(self, name)):
            raise arg_error(
                op,
                "name",
                expected="a new name without dots",
                got=repr(name) + (" (an attribute already)" if name and "." not in name else ""),
                hint="choose another name",
                kind=ModuleNameError,
            )

    # Attributes

    def __getattr__(self, name: str) -> Any:
        # Reached only for names that are no ordinary attribute.
        fields = self.__dict__
        for kind in ("_parameters", "_modules", "_buffers"):
            members = fields.get(kind)  # missing while a copy or a subclass is half built
            if members is not None and name in members:
                return members[name]
        if name == "explain" and self._compiled_call_impl is not None:
            return self._compiled_call_impl.of(self).explain
        raise ModuleAttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in fields:
                raise _uninitialized_error("assign parameters")
            self._forget(name, except_in="_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in fields:
                raise _uninitialized_error("assign modules")
            self._forget(name, except_in="_modules")
            self._modules[name] = _registered("modules", self, name, value)
        elif name in fields.get("_parameters", ()):
            if value is not None:
                raise _wrong_member_error(name, value, "a Parameter", "flow.nn.Parameter(...)")
            self._parameters[name] = None
        elif name in fields.get("_modules", ()):
            if value is not None:
                raise _wrong_member_error(name, value, "a Module", "an nn.Module")
            self._modules[name] = None
        elif isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        elif name in fields.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise _wrong_member_error(name, value, "a Tensor", "flow.tensor(...)")
            self._buffers[name] = _registered("buffers", self, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        fields = self.__dict__
        for kind in ("_parameters", "_modules", "_buffers"):
            if name in fields.get(kind, ()):
                del fields[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def _forget(self, name: str, except_in: str) -> None:
        """Make way for a member: drop what the name means now; its place among its kind stays."""
        fields = self.__dict__
        fields.pop(name, None)
        for kind in ("_parameters", "_modules", "_buffers"):
            if kind != except_in:
                fields[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if name.isidentifier())

    # Modes and gradients

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call `fn` on every submodule and then on this module; return this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode, or with False evaluation mode, here and below."""
        if not isinstance(mode, bool):
            raise arg_error(
                "train",
                "mode",
                expected="a bool",
                got=repr(mode),
                hint="pass True or False",
                kind=ArgumentError,
            )
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode here and below."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether gradients are computed for the parameters here and below."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or with `set_to_none=False` fill them with zeros."""
        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Have calls of this module compiled, with the options of `flow.compile`.

        Where a class defines `__call__`, that is what it does in `super().__call__()`. Copies and
        pickles are compiled as well; `flow.explain` tells how the calls went.
        """
        face = import_module("oneflow_lite.static.compile.face")  # it stands on modules
        face.compile_in_place(self, *args, **kwargs)

    # Text

    def extra_repr(self) -> str:
        """Return what stands between the parentheses of the module's repr."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {module!r}" for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        body = textwrap.indent("\n".join(lines + children), "  ")
        return f"{self._get_name()}(\n{body}\n)"


def _registered(kind: str, module: Module, name: str, value: Any) -> Any:
    """Return what is to be registered: hooks on all modules may replace it."""
    for hook in list(_REGISTRATION_HOOKS[kind].values()):
        result = hook(module, name, value)
        value = value if result is None else result
    return value


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, param)` whenever a module registers a parameter.

    It returns None, or the parameter to register instead.
    """
    op = "register_module_parameter_registration_hook"
    return register(op, _REGISTRATION_HOOKS["parameters"], hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever a module registers a buffer.

    It returns None, or the tensor to register instead.
    """
    op = "register_module_buffer_registration_hook"
    return register(op, _REGISTRATION_HOOKS["buffers"], hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever a module registers a submodule.

    It returns None, or the module to register instead.
    """
    op = "register_module_module_registration_hook"
    return register(op, _REGISTRATION_HOOKS["modules"], hook)


def _uninitialized_error(what: str) -> ModuleAttributeError:
    return ModuleAttributeError(
        f"cannot {what} before Module.__init__() call; call super().__init__() first"
    )


def _wrong_member_error(name: str, value: object, expected: str, hint: str) -> FlowError:
    return arg_error(
        "Module.__setattr__",
        name,
        expected=f"{expected} or None",
        got=type(value).__name__,
        hint=f"assign {hint}, or delete the attribute first",
        kind=ArgumentTypeError,
    )
