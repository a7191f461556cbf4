"""Module: keeps parameters, buffers and submodules, and calls `forward`, where functors begin.

`hooks.py` runs the hooks around `forward`. `state_loading.py` treats single tensors when a state
dict is loaded, `conversion.py` when a module moves.
"""

from __future__ import annotations

import textwrap
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from oneflow_lite.arrays.device import CPU, DeviceLike, as_device
from oneflow_lite.arrays.dtype import DTypeLike, as_dtype, float16, float32, float64
from oneflow_lite.arrays.refusals import RAW, guard_class, refuse_call
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    FlowError,
    HookError,
    MissingMethodError,
    ModuleAttributeError,
    ModuleNameError,
    OptionError,
    StateDictError,
    arg_error,
)
from oneflow_lite.functors.creation import empty_like
from oneflow_lite.nn.conversion import convert_parameter, parse_target, shared
from oneflow_lite.nn.hooks import EVERYWHERE, call_with_hooks, mixed_hooks_error, register
from oneflow_lite.nn.parameter import Buffer, Parameter, clear_grad
from oneflow_lite.nn.state_loading import (
    Problems,
    Undo,
    as_dimensionless,
    mismatch,
    restorer,
    restorer_of_module,
)
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.hooks import Hook, RemovableHandle, check_callable
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

_FIELDS: dict[str, Callable[[], Any]] = {  # attributes of every module, with their empty values
    "_parameters": dict,
    "_buffers": dict,
    "_non_persistent_buffers_set": set,
    "_backward_pre_hooks": dict,
    "_backward_hooks": dict,
    "_is_full_backward_hook": type(None),  # the kind of these hooks; None for a module without
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
_EXTRA = "_extra_state"  # the key of the result of get_extra_state
# Empty until a module is compiled in place: asked first, it costs calls of plain modules nothing.
IN_PLACE: list[bool] = []
# By kind of member: the user's functions that see every registered member, and may replace it.
_REGISTRATION_HOOKS: dict[str, dict[int, Hook]] = {"parameters": {}, "buffers": {}, "modules": {}}


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """The keys that a state dict lacks, and the keys that the module lacks."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class Module:
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
    dump_patches: ClassVar[bool] = False  # has no effect, as in PyTorch
    call_super_init: ClassVar[bool] = False
    """Whether `Module.__init__` hands its arguments to the next class of the MRO."""

    training: bool
    _version: ClassVar[int] = 1  # of the layout of a class's state; stands in the metadata
    _compiled_call_impl: Any = None  # set by `compile`
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    # Hooks are the values of these dicts. Other dicts say, under the same keys, how the hooks on
    # `forward` are called.
    _forward_hooks: dict[int, Hook]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: dict[int, Hook]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _backward_hooks: dict[int, Hook]
    _backward_pre_hooks: dict[int, Hook]
    _is_full_backward_hook: bool | None
    _state_dict_pre_hooks: dict[int, Hook]
    _state_dict_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks_with_module: dict[int, bool]
    _load_state_dict_post_hooks: dict[int, Hook]

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
        fields = self.__dict__  # past __setattr__, which looks for members that are not there yet
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
        for name, empty in _FIELDS.items():  # a pickle of an older version lacks new fields
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
        # Most modules have no hooks: their calls cost these five look-ups.
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or EVERYWHERE
        ):
            return call_with_hooks(self, args, kwargs)
        try:
            return self.forward(*args, **kwargs)
        except RAW as error:
            refuse_call(type(self).forward, error, (self, *args), kwargs)
            raise

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return call_with_hooks(self, args, kwargs)

    # Registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter, or, with None, a name for a parameter to come.

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
            The name of the attribute.
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
        # Python asks only for names that are no ordinary attributes.
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
        """Drop the present member of a name, except in one dict, where it keeps its position."""
        fields = self.__dict__
        fields.pop(name, None)
        for kind in ("_parameters", "_modules", "_buffers"):
            if kind != except_in:
                fields[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if name.isidentifier())

    # Submodules, parameters and buffers, in order and by name

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield this module and all modules below it, with dotted names; each once by default."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all modules below it, each once by default."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the direct submodules with their names, each once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yield the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters with their dotted names; a shared parameter once by default."""
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, each once, as an optimizer takes them."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers with their dotted names; a shared buffer once by default."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        owners = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for owner_name, owner in owners:
            for name, member in get_members_fn(owner):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{owner_name}.{name}" if owner_name else name), member

    def get_submodule(self, target: str) -> Module:
        """Return the submodule of this dotted name; '' is the module itself.

        Raises
        ------
        ModuleAttributeError
            When a part of the name is no attribute, or no module.
        """
        module = self
        for name in target.split(".") if target else ():
            module = module._get_module(name)
        return module

    def _get_module(self, name: str) -> Module:
        member = self._get_member(name)
        if not isinstance(member, Module):
            raise ModuleAttributeError(f"`{name}` is not an nn.Module")
        return member

    def _get_member(self, name: str) -> Any:
        if not hasattr(self, name):
            raise ModuleAttributeError(f"{type(self).__name__} has no attribute `{name}`")
        return getattr(self, name)

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the submodule of this dotted name; the module before the last dot must exist.

        Parameters
        ----------
        target : str
            Such as "encoder.layer.0".
        module : Module
            The new submodule.
        strict : bool
            Whether a submodule of this name must exist already.

        Raises
        ------
        ModuleAttributeError
            When a part of the name is missing, or is no module.
        ArgumentError
            When the name is empty or `module` is none.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> net = flow.nn.Sequential(flow.nn.Sequential(flow.nn.ReLU()))
        >>> net.set_submodule("0.0", flow.nn.Tanh())
        >>> net[0][0]
        Tanh()
        """
        if not target:
            raise arg_error(
                "set_submodule",
                "target",
                expected="the name of a submodule",
                got="''",
                hint="pass its path",
                kind=ArgumentError,
            )
        if not isinstance(module, Module):
            raise arg_error(
                "set_submodule",
                "module",
                expected="an nn.Module",
                got=type(module).__name__,
                hint="pass an instance",
                kind=ArgumentError,
            )
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent._get_module(name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of this dotted name."""
        path, _, name = target.rpartition(".")
        member = self.get_submodule(path)._get_member(name)
        if not isinstance(member, Parameter):
            raise ModuleAttributeError(f"`{name}` is not an nn.Parameter")
        return member

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer of this dotted name."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        buffer: Tensor = owner._get_member(name)
        if name not in owner._buffers:
            raise ModuleAttributeError(f"`{name}` is not a buffer")
        return buffer

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

    compile: Callable[..., None]  # from where flow.compile is: `ops/homes.py`

    # Moving and converting, in place: the Parameter objects stay the same

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device and convert floating point and complex tensors to a dtype.

        Called as `to(device)`, `to(dtype)`, `to(device, dtype)` or `to(tensor)`, positionally or
        by keyword. Integer and bool buffers keep their dtype. The module is changed and returned.

        Raises
        ------
        ArgumentTypeError
            When the dtype is neither floating point nor complex, and for any other argument.
        DeviceError
            When the device is not there.
        """
        device, dtype = parse_target(args, kwargs)

        def convert(tensor: Tensor) -> Tensor:
            inexact = tensor.is_floating_point() or tensor.is_complex()
            converted: Tensor = tensor.to(
                device=tensor.device if device is None else device,
                dtype=dtype if inexact and dtype is not None else tensor.dtype,
            )
            return converted

        return self._apply(convert)

    def cuda(self, device: DeviceLike | None = None) -> Self:
        """Move to a CUDA device, by default the current one."""
        return self.to(device=as_device("cuda" if device is None else device))

    def cpu(self) -> Self:
        """Move to the CPU."""
        return self.to(device=CPU)

    def xpu(self, device: DeviceLike | None = None) -> Self:
        """Raise `DeviceError`, as `mtia` and `ipu` do: the library knows the CPU and CUDA."""
        return self._absent("xpu", device)

    def mtia(self, device: DeviceLike | None = None) -> Self:
        """Raise `DeviceError`."""
        return self._absent("mtia", device)

    def ipu(self, device: DeviceLike | None = None) -> Self:
        """Raise `DeviceError`."""
        return self._absent("ipu", device)

    def _absent(self, kind: str, device: Any) -> Self:
        where = kind if device is None else f"{kind}:{device}"
        raise DeviceError(f"{kind}(): device '{where}' is not there; use cpu() or cuda()")

    def type(self, dst_type: DTypeLike) -> Self:
        """Convert every parameter and buffer to a dtype, or to a type as 'torch.FloatTensor'."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        return self._convert_floating(float32)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        return self._convert_floating(float64)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        return self._convert_floating(float16)

    def bfloat16(self) -> Self:
        """Convert floating point parameters and buffers to bfloat16, which needs ml_dtypes."""
        return self._convert_floating(as_dtype("bfloat16", "bfloat16"))

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Move to a device without copying; parameters and buffers then hold undefined values."""
        target = as_device(device)
        return self._apply(lambda tensor: empty_like(tensor, device=target), recurse)

    def share_memory(self) -> Self:
        """Put parameters and buffers on the CPU into memory that processes forked later share.

        All forked processes see the writes of each. A process that is spawned, or gets the module
        through a pickle, has a copy of its own.
        """
        return self._apply(shared)

    def _convert_floating(self, dtype: Any) -> Self:
        return self._apply(lambda t: t.to(dtype=dtype) if t.is_floating_point() else t)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, its gradient and every buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for parameter in self._parameters.values():
                if parameter is not None:
                    convert_parameter(parameter, fn)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    # State dicts

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Return parameters and persistent buffers by dotted name.

        The tensors share memory with the module; they are detached unless `keep_vars`.
        `flow.save` writes the returned dict.

        Parameters
        ----------
        *args
            The next three arguments in this order, as older scripts pass them.
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
            warn_caller(
                "state_dict(): pass destination, prefix and keep_vars by keyword", FutureWarning
            )
            given = (*args, *(destination, prefix, keep_vars)[len(args) :])
            destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata: dict[str, Any] = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata  # without the last dot
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
        """Put the state of this module alone into `destination`; a class may override it."""
        for name, tensor in self._own_state():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield name, parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                yield name, buffer

    def get_extra_state(self) -> Any:
        """Return a value for the state dict beside the tensors; see `set_extra_state`.

        `flow.save` writes numbers, strings, None, tensors, and lists, tuples and dicts of these.
        """
        raise _missing_error(self, "get_extra_state", "set_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take the result of `get_extra_state`; a class defines both methods or neither."""
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
            Names every missing, unexpected and mis-shaped key. The module is unchanged then, as
            after any other error: tensors, attributes, and what `get_extra_state` returns.
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
        problems = Problems()
        metadata = getattr(state_dict, "_metadata", None)
        own: Any = OrderedDict(state_dict)  # hooks may change it
        if metadata is not None:
            own._metadata = metadata
        keys = _IncompatibleKeys(missing, unexpected)

        def load(module: Any, state: Any, prefix: str) -> None:
            local_metadata = _metadata_of(metadata, prefix[:-1])
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            lists = (missing, unexpected, problems)
            has_extra = module.__class__.set_extra_state is not Module.set_extra_state
            problems.undo.append(restorer_of_module(module, has_extra))
            module._load_from_state_dict(state, prefix, local_metadata, True, *lists)
            parts: dict[str, dict[str, Any]] = {}  # a hook of a child gets the child's entries
            for key, value in state.items():
                name, dot, _ = key[len(prefix) :].partition(".")
                if dot and key.startswith(prefix):
                    parts.setdefault(name, {})[key] = value
            for name, child in module._modules.items():
                if child is not None:
                    load(child, parts.get(name, {}), f"{prefix}{name}.")
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
        except BaseException:  # an interrupt, too, must not leave half of a state
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
        """Take the state of this module alone from `state_dict`; a class may override it.

        `local_metadata` holds the `version` that the module had when it was saved, if the state
        dict says so. Missing and unexpected keys and messages are added to the lists.
        """
        for number, hook in self._load_state_dict_pre_hooks.items():
            first = (self,) if number in self._load_state_dict_pre_hooks_with_module else ()
            lists = (missing_keys, unexpected_keys, error_msgs)
            hook(*first, state_dict, prefix, local_metadata, strict, *lists)
        own = dict(self._own_state())
        assign = local_metadata.get("assign_to_params_buffers", False)
        undo = error_msgs.undo if isinstance(error_msgs, Problems) else []
        for name, tensor in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            value = state_dict[key]
            value = as_dimensionless(value, tensor)
            problem = mismatch(key, value, tensor, assign)
            if problem:
                error_msgs.append(problem)
            elif assign:
                self._assign(name, value, undo)
            else:
                if tensor.is_meta and not value.is_meta:
                    warn_caller(
                        f"load_state_dict(): copying a value for {key} to a parameter on the "
                        "device 'meta' has no effect; pass assign=True to assign it instead"
                    )
                with no_grad():
                    undo.append(restorer(tensor))
                    tensor.copy_(value)
        extra = prefix + _EXTRA
        if type(self).set_extra_state is not Module.set_extra_state:
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

    def _assign(self, name: str, value: Tensor, undo: list[Undo]) -> None:
        """Let a tensor of a state dict take the place of a parameter or buffer."""
        members: dict[str, Any] = self._parameters if name in self._parameters else self._buffers
        before = members[name]
        if isinstance(before, Parameter):
            if not isinstance(value, Parameter):
                value = Parameter(value, requires_grad=before.requires_grad)
            value.requires_grad_(before.requires_grad)
        undo.append(lambda: members.__setitem__(name, before))  # before the write, which may raise
        setattr(self, name, value)

    # Hooks around state dicts

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
        function: Any = getattr(hook, "__func__", hook)  # a method takes no attributes
        function._from_public_api = True
        return register(op, self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """Do the same for a hook that may return a dict to use instead."""
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
        """Do the same for a hook that is called, by default, without the module."""
        flags = (self._load_state_dict_pre_hooks_with_module,) if with_module else ()
        hooks = self._load_state_dict_pre_hooks
        return register("register_load_state_dict_pre_hook", hooks, hook, flags=flags)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after the module and its submodules were loaded.

        It may change the two lists, and returns None.
        """
        hooks = self._load_state_dict_post_hooks
        return register("register_load_state_dict_post_hook", hooks, hook)

    # Hooks around forward and in the backward pass

    def register_forward_pre_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args)` before every `forward`.

        Parameters
        ----------
        hook : callable
            Returns None, or the positional arguments to use instead (a single value need not be
            wrapped in a tuple). With `with_kwargs` it is called as `hook(module, args, kwargs)`
            and returns None or the pair `(args, kwargs)`.
        prepend : bool
            Whether it runs before the hooks that are registered already.
        with_kwargs : bool
            Whether it is given the keyword arguments.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook.
        """
        flags = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return register("register_forward_pre_hook", self._forward_pre_hooks, hook, prepend, flags)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after every `forward`.

        Parameters
        ----------
        hook : callable
            Returns None, or the output to use instead. With `with_kwargs` it is called as
            `hook(module, args, kwargs, output)`.
        prepend : bool
            Whether it runs before the hooks that are registered already.
        with_kwargs : bool
            Whether it is given the keyword arguments.
        always_call : bool
            Whether it also runs (with output None) when `forward` or a hook raised.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook.
        """
        flags = [self._forward_hooks_with_kwargs] if with_kwargs else []
        flags += [self._forward_hooks_always_called] if always_call else []
        return register("register_forward_hook", self._forward_hooks, hook, prepend, flags)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are complete.

        Parameters
        ----------
        hook : callable
            Gets a tuple with one place per output of `forward`: a tensor, or None for an output
            that is no tensor or got no gradient. Returns None, or the tuple to go on with.
        prepend : bool
            Whether it runs before the hooks that are registered already.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook, for calls of the module that follow.

        Raises
        ------
        HookError
            In the backward pass, when the hook returned any other value.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> layer = flow.nn.ReLU()
        >>> handle = layer.register_full_backward_pre_hook(lambda module, dy: (dy[0] * 10,))
        >>> x = flow.tensor([-1.0, 2.0], requires_grad=True)
        >>> layer(x).sum().backward()
        >>> x.grad
        tensor([ 0., 10.])
        """
        op = "register_full_backward_pre_hook"
        return register(op, self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the inputs' gradients are complete.

        Parameters
        ----------
        hook : callable
            Gets two tuples. `grad_input` has one place per positional argument of `forward`: a
            tensor (zeros where the argument requires no gradient or had no influence), or None
            where it is no tensor, or `autograd.grad` or `backward(inputs=)` did not ask for it.
            `grad_output` is as the prehooks left it. Returns None, or a tuple in the place of
            `grad_input`.
        prepend : bool
            Whether it runs before the hooks that are registered already.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook, for calls of the module that follow.

        Raises
        ------
        HookError
            In the backward pass, when the hook returned anything else.

        Warns
        -----
        UserWarning
            The hook is not called, because `forward` returned neither a tensor nor a tuple; or it
            is called with the gradients of the outputs alone, because no input requires one.

        Notes
        -----
        Inputs and outputs of the module become views, which may not be written in place.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> layer = flow.nn.ReLU()
        >>> handle = layer.register_full_backward_hook(lambda module, dx, dy: print(dx, dy))
        >>> x = flow.tensor([-1.0, 2.0], requires_grad=True)
        >>> layer(x).sum().backward()
        (tensor([0., 1.]),) (tensor([1., 1.]),)
        """
        op = "register_full_backward_hook"
        check_callable(op, hook)
        self._take_backward_hooks(op, full=True)
        return register(op, self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` at the node that made the output.

        PyTorch had this before `register_full_backward_hook`. The hook gets the gradients of the
        last op in `forward`, whose inputs need not be the module's inputs. A module cannot have
        backward hooks of both kinds.

        Raises
        ------
        HookError
            When the module has full backward hooks.
        """
        op = "register_backward_hook"
        check_callable(op, hook)
        self._take_backward_hooks(op, full=False)
        return register(op, self._backward_hooks, hook)

    def _take_backward_hooks(self, op: str, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise mixed_hooks_error(op, "on one module")
        self._is_full_backward_hook = full

    # Text

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the module's repr."""
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
    """Return the value to register, which hooks on all modules may replace."""
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


def _metadata_of(metadata: Any, name: str) -> dict[str, Any]:
    """Return what the metadata of a state dict say of a module."""
    found = (metadata or {}).get(name, {}) if isinstance(metadata or {}, Mapping) else None
    version = found.get("version") if isinstance(found, Mapping) else ""
    if version is not None and (type(version) is not int or version < 0):
        expected = "dicts with a 'version', a number of at least 0, by the names of modules"
        got, hint = repr(metadata)[:100], "leave it as state_dict() made it, or delete it"
        raise arg_error("load_state_dict", "_metadata", expected, got, hint, ArgumentTypeError)
    return dict(found)  # type: ignore[arg-type]


def _missing_error(module: Module, method: str, other: str) -> StateDictError:
    name = type(module).__name__
    return StateDictError(
        f"{method}(): {name} does not define it; a class that has {other}() defines both"
    )


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


guard_class(Module)
