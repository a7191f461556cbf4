"""Parameters that modules compute from other tensors, each time that the parameter is read."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import (
    ArgumentError,
    SerializationError,
    StateDictError,
    arg_error,
)
from oneflow_lite.nn.containers import ModuleDict, ModuleList
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_depth = 0  # of `cached` blocks
_cache: dict[tuple[int, str], Tensor] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Compute every parametrized tensor at most once inside the block.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(flow.nn.Linear(2, 2))
    >>> layer.weight is layer.weight
    False
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of a tensor, and the originals from which it is computed.

    Parameters
    ----------
    modules : sequence of Module
        They are called in turn, the first on the originals.
    original : Tensor or Parameter
        The tensor before. The `right_inverse` of a module, where it is defined, turns it into the
        tensor that is kept: `original`, or `original0`, `original1`, ... for a sequence.
    unsafe : bool
        Whether shape and dtype of the result may differ from the tensor's.

    Raises
    ------
    ArgumentError
        Without modules; when a `right_inverse` returns no tensor, or another dtype or device; or
        when shape or dtype change, unless `unsafe`.
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise _option_error(
                "ParametrizationList", "modules", "at least one", "none", "pass a module"
            )
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(_tensors("register_parametrization", new))
        shape, dtype = original.shape, original.dtype
        if self.is_tensor:
            for what in ("dtype", "device"):
                if getattr(original, what) != getattr(new, what):
                    raise _option_error(
                        "right_inverse",
                        "result",
                        f"{what} {getattr(original, what)}, that of the tensor",
                        getattr(new, what),
                        "convert it there, or return a tuple",
                    )
            _set(original, new)
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            _check_same("register_parametrization", self(), shape, dtype)

    def right_inverse(self, value: Tensor) -> None:
        """Change the originals so that the parametrized tensor becomes `value`.

        Raises
        ------
        StateDictError
            When a parametrization has no `right_inverse`.
        ArgumentError
            When a result does not fit the originals; they are unchanged then.
        """
        op = "right_inverse"
        with no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise StateDictError(
                        f"{op}(): parametrization {type(module).__name__} does not implement "
                        "right_inverse, so the tensor cannot be set; define it"
                    )
                new = module.right_inverse(new)
            originals = [new] if self.is_tensor else _tensors(op, new)
            if self.is_tensor and not isinstance(new, Tensor):
                raise _option_error(op, "result", "a tensor", type(new).__name__, "return one")
            if len(originals) != self.ntensors:
                raise _option_error(
                    op, "result", f"{self.ntensors} tensors", len(originals), "return as many"
                )
            kept = self._originals()
            for before, after in zip(kept, originals, strict=True):
                if before.dtype != after.dtype:
                    raise _option_error(
                        op, "result", f"dtype {before.dtype}", after.dtype, "convert it"
                    )
            for before, after in zip(kept, originals, strict=True):
                _set(before, after)

    def _originals(self) -> list[Tensor]:
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def forward(self) -> Any:
        """Return the parametrized tensor."""
        first, *rest = list(self)
        result = first(*self._originals())
        for module in rest:
            result = module(result)
        return result


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Have a parameter or buffer of a module computed by another module.

    Reading `module.tensor_name` calls `parametrization` on the original, which is now
    `module.parametrizations.tensor_name.original`. Setting it calls the `right_inverse` of the
    parametrization. A second parametrization is called on the result of the first.

    Parameters
    ----------
    module : Module
        Changed, and returned.
    tensor_name : str
        The parameter or buffer.
    parametrization : Module
        Its `forward` takes the original, or originals when `right_inverse` returned a sequence.
    unsafe : bool
        Whether shape and dtype may change; nothing is called to check it then.

    Raises
    ------
    ArgumentError
        When the module has no such tensor, or shape or dtype change though not `unsafe`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.nn.utils import parametrize
    >>> class Symmetric(flow.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).t()
    >>> layer = flow.nn.Linear(3, 3)
    >>> layer = parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> flow.equal(layer.weight, layer.weight.t()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    op = "register_parametrization"
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(op, getattr(module, tensor_name), parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise _option_error(
            op,
            "tensor_name",
            f"a parameter, buffer or parametrized tensor of {module._get_name()}",
            repr(tensor_name),
            "name one of them",
        )
    listed = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    kind = type_before_parametrizations(module)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = listed
    _use_class(module, kind)
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has parametrizations, or has parametrizations of a given tensor."""
    listed = getattr(module, "parametrizations", None)
    if not isinstance(listed, ModuleDict):
        return False
    return len(listed) > 0 if tensor_name is None else tensor_name in listed


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized tensor a plain parameter or buffer of the module again.

    Parameters
    ----------
    module : Module
        Changed, and returned.
    tensor_name : str
        The tensor.
    leave_parametrized : bool
        Whether it keeps its computed values, or gets the values of the original.

    Raises
    ------
    ArgumentError
        When the tensor is not parametrized, or when `leave_parametrized` is False and the tensor
        has several originals.
    """
    op = "remove_parametrizations"
    if not is_parametrized(module, tensor_name):
        expected = f"a parametrized tensor of {module._get_name()}"
        raise _option_error(
            op, "tensor_name", expected, repr(tensor_name), "see its parametrizations"
        )
    listed = module.parametrizations[tensor_name]
    if not listed.is_tensor and not leave_parametrized:
        expected = "True, as the tensor is computed from several"
        raise _option_error(op, "leave_parametrized", expected, False, "leave it out")
    if listed.is_tensor:
        original = listed.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    else:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    kind = type_before_parametrizations(module)
    del module.parametrizations[tensor_name]
    _use_class(module, kind)
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module had before it was parametrized."""
    kind = module.__class__
    return kind.__bases__[0] if is_parametrized(module) else kind


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give a module the parametrizations, and the originals, of another module.

    Parameters
    ----------
    from_module, to_module : Module
        `to_module` is changed and returned; both share the parametrizations afterwards.
    tensor_name : str, optional
        The tensor to take over; all tensors by default.
    """
    if not is_parametrized(from_module):
        return to_module
    source = from_module.parametrizations
    for name in list(source) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source[name]:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for kind in ("_parameters", "_buffers"):
            getattr(target, kind).update(getattr(source[name], kind))
    return to_module


def _use_class(module: Module, base: type) -> None:
    """Give a module a class of its own, with a property for every parametrized tensor.

    Python finds properties on classes alone, and the module's class serves other modules, too.
    """
    members: dict[str, Any] = {name: _property(name) for name in module.parametrizations}
    if members:
        members["__getstate__"] = _refuse_pickle
        if not hasattr(base, "__deepcopy__"):
            members["__deepcopy__"] = _deepcopy
        members["__module__"] = __name__
        base = type(f"Parametrized{base.__name__}", (base,), members)
    module.__class__ = base


def _property(name: str) -> property:
    def get(self: Module) -> Any:
        parametrization = self.parametrizations[name]
        if not _depth:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def set(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set)


def _deepcopy(self: Module, memo: dict[int, Any]) -> Module:
    replica: Module = self.__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    return replica


def _refuse_pickle(self: Module) -> Any:
    raise SerializationError(
        f"pickle: {type(self).__name__} has a class that exists in this process alone; save its "
        "state_dict(), or remove_parametrizations() first"
    )


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set(target: Tensor, source: Tensor) -> None:
    """Let a tensor take the memory of `source`; saved old values become stale."""
    if source is not target:
        target.memory.version += 1
        target.data = source.detach()


def _tensors(op: str, value: Any) -> Sequence[Any]:
    """Return a sequence of tensors; raise `ArgumentError` for any other value."""
    if isinstance(value, Sequence) and all(isinstance(part, Tensor) for part in value):
        return value
    expected = "a Tensor or a sequence of tensors from right_inverse"
    raise _option_error(
        op, "parametrization", expected, type(value).__name__, "return one of these"
    )


def _check_same(op: str, value: Any, shape: Any, dtype: Any) -> None:
    """Raise `ArgumentError` unless a parametrization made a tensor of this shape and dtype."""
    if not isinstance(value, Tensor):
        got = type(value).__name__
        raise _option_error(op, "parametrization", "one that returns a tensor", got, "return one")
    for what, expected in (("dtype", dtype), ("shape", shape)):
        got = getattr(value, what)
        if expected != got:
            raise _option_error(
                op,
                "parametrization",
                f"one that keeps the {what} {expected} of the tensor",
                got,
                "pass unsafe=True if the module can do with that",
            )


def _check_another(op: str, tensor: Tensor, parametrization: Any) -> None:
    """Raise `ArgumentError` when a further parametrization changes shape or dtype."""
    made = parametrization(tensor)
    _check_same(op, made, tensor.shape, tensor.dtype)
    if hasattr(parametrization, "right_inverse"):
        with contextlib.suppress(NotImplementedError):
            back = parametrization.right_inverse(made)
            _check_same(f"{op}(): right_inverse", back, tensor.shape, tensor.dtype)


def _option_error(op: str, argument: str, expected: str, got: Any, hint: str) -> Exception:
    return arg_error(op, argument, expected, got, hint, ArgumentError)


guard_all(globals())
