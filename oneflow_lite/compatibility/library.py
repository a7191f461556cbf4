"""`torch.library`: custom ops of PyTorch's form, each an op of `register_op`.

The function gets tensors; its tensor parameters are the inputs of the op, all others attributes.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from oneflow_lite.autograd.rules.gradient_rules import OpExprGradFunction, register_grad_func
from oneflow_lite.compatibility.refusal import refused
from oneflow_lite.errors import ArgumentError, RegistrationError, UnknownOpError, arg_error
from oneflow_lite.extend import register_op
from oneflow_lite.ops import registry
from oneflow_lite.ops.function_writer import FunctionWriter
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.testing import Fixed, Sample, check_op

_OPS: dict[str, CustomOpDef] = {}
_fakes: dict[str, Callable[..., Any]] = {}  # of ops that are not registered yet


class _Parameter(NamedTuple):
    name: str
    kind: str  # "tensor", "tensors" or "attribute"
    default: Any


class CustomOpDef:
    """A custom op; calling it dispatches."""

    def __init__(self, name: str, function: Callable[..., Any], mutates: tuple[str, ...]) -> None:
        self._name, self._function, self._mutates = name, function, mutates
        self.__doc__ = function.__doc__
        self._parameters = _parameters(name, function)
        self._op_type_name = name.replace("::", "_").replace(".", "_")
        self._signature = inspect.signature(function)
        register = register_op(self._op_type_name, mutates=mutates, infer=self._infer)
        self._functor = register(self._kernel(function))
        self._fake: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        inputs: list[Any] = []
        for parameter in self._inputs():
            value = bound.arguments[parameter.name]
            inputs += value if parameter.kind == "tensors" else [value]
        attrs = {name: bound.arguments[name] for name in self._names()}
        result = self._functor(*inputs, **attrs)
        return None if self._mutates and self._returns_nothing() else result

    @property
    def default(self) -> CustomOpDef:
        """The op itself, as the one overload that it has."""
        return self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"

    def _returns_nothing(self) -> bool:
        return self._signature.return_annotation in (None, "None")

    def _kernel(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a kernel that makes tensors of its arrays, and calls the function."""
        listed = [f"*{p.name}" if p.kind == "tensors" else p.name for p in self._inputs()]
        attrs = self._names()
        star = ["*"] if attrs and not any(text[0] == "*" for text in listed) else []
        signature = ", ".join(["xp", *listed, *star, *attrs])
        given = "".join(f"{text.lstrip('*')}, " for text in listed)
        lines = [f"return RUN(({given}), {{{', '.join(f'{name!r}: {name}' for name in attrs)}}})"]
        run = functools.partial(self._run, function)
        file = function.__code__.co_filename  # tells whether a cell of a notebook runs again
        kernel = FunctionWriter({"RUN": run}, lines).function(f"kernel({signature})", file)
        kernel.__module__, kernel.__doc__ = function.__module__, function.__doc__
        kernel.__qualname__ = kernel.__name__ = function.__name__
        kernel.__defaults__ = tuple(
            p.default for p in self._inputs() if p.default is not inspect.Parameter.empty
        )
        kernel.__kwdefaults__ = {
            p.name: p.default
            for p in self._parameters
            if p.kind == "attribute" and p.default is not inspect.Parameter.empty
        }
        return kernel  # type: ignore[no-any-return]

    def _names(self) -> list[str]:
        return [p.name for p in self._parameters if p.kind == "attribute"]

    def _inputs(self) -> list[_Parameter]:
        """Return the parameters that are inputs, a list of tensors last."""
        inputs = [p for p in self._parameters if p.kind != "attribute"]
        return sorted(inputs, key=lambda p: p.kind == "tensors")

    def _arguments(self, inputs: Iterable[Any], attrs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the arguments in the order of the function's parameters."""
        rest = iter(inputs)
        values = dict(attrs)
        for p in self._inputs():
            values[p.name] = list(rest) if p.kind == "tensors" else next(rest)
        return tuple(values[p.name] for p in self._parameters)

    def _run(
        self, function: Callable[..., Any], arrays: tuple[Any, ...], attrs: dict[str, Any]
    ) -> Any:
        flat: list[Any] = []
        for parameter, value in zip(self._inputs(), arrays, strict=True):
            flat.extend(value if parameter.kind == "tensors" else [value])
        made = [None if a is None else make_tensor(a) for a in flat]
        by_name: Any = dict(zip([p.name for p in self._inputs()], made, strict=False))
        with no_grad():
            result = function(*self._arguments(made, attrs))
        if self._mutates and result is None:
            written = tuple(by_name[name]._data for name in self._mutates)
            return written if len(written) > 1 else written[0]
        if isinstance(result, (tuple, list)):
            return tuple(y._data if isinstance(y, Tensor) else y for y in result)
        return result._data if isinstance(result, Tensor) else result

    def _infer(self, *specs: Any, **attrs: Any) -> Any:
        """Describe the results by the fake function, if there is one."""
        if self._fake is None:
            return None
        variadic = bool(self._inputs()) and self._inputs()[-1].kind == "tensors"
        fixed = len(self._inputs()) - variadic
        arrays = [None if spec is None else spec.allocate() for spec in specs]
        given = (*arrays[:fixed], arrays[fixed:]) if variadic else tuple(arrays)
        return self._run(self._fake, given, attrs)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register `backward(ctx, *out_grads)`, which returns a gradient for each parameter."""
        register_grad_func(self._op_type_name)(_gradient(self, backward, setup_context))

    def register_fake(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Register the function that makes results of the right shapes and dtypes."""
        self._fake = function
        return function

    def register_kernel(
        self, device_types: Any, function: Callable[..., Any] | None = None, /
    ) -> Any:
        """Register another function for `"cpu"` or `"cuda"`; without a function a decorator."""
        if function is None:
            return functools.partial(self.register_kernel, device_types)
        for device in [device_types] if isinstance(device_types, str) else device_types:
            registry.register_kernel(self._op_type_name, device=device)(self._kernel(function))
        return function


def _gradient(
    op: CustomOpDef, backward: Callable[..., Any], setup: Callable[..., Any] | None
) -> type[OpExprGradFunction]:
    class Gradient(OpExprGradFunction):
        def capture(self, state: Any, inputs: Any, outputs: Any, attrs: dict[str, Any]) -> None:
            if setup is not None:
                output = outputs if len(outputs) > 1 else outputs[0]
                setup(ctx=state, inputs=op._arguments(inputs, attrs), output=output)
            state.number_of_inputs = len(inputs)

        def apply(self, F: Any, state: Any, out_grads: tuple[Any, ...]) -> Any:
            needs = op._arguments(state.needs_input_grad, dict.fromkeys(op._names(), False))
            state.needs_input_grad = needs
            grads = backward(state, *out_grads)
            grads = grads if isinstance(grads, tuple) else (grads,)
            if len(grads) != len(op._parameters):
                raise arg_error(
                    op._name,
                    "backward",
                    expected=f"{len(op._parameters)} gradients, one or None for each parameter",
                    got=len(grads),
                    hint="return None for parameters without a gradient",
                    kind=ArgumentError,
                )
            by_name = dict(zip([p.name for p in op._parameters], grads, strict=True))
            flat: list[Any] = []
            for p in op._inputs():
                grad = by_name[p.name]
                if p.kind == "tensors":
                    left = state.number_of_inputs - len(flat)
                    flat += [None] * left if grad is None else list(grad)
                else:
                    flat.append(grad)
            return tuple(flat)

    Gradient.__module__ = backward.__module__  # a user's: it gets tensors, and is watched
    return Gradient


def _parameters(name: str, function: Callable[..., Any]) -> list[_Parameter]:
    """Read a function's parameters; raise for the kinds that an op cannot have."""
    hints = typing.get_type_hints(function)
    found = []
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name not in hints:
            raise RegistrationError(
                f"custom_op({name!r}): the parameter {p} needs a type, as `x: Tensor` or "
                "`scale: float`, and no stars: the types say which parameters are inputs"
            )
        found.append(_Parameter(p.name, _kind(hints[p.name]), p.default))
    if [p.kind for p in found].count("tensors") > 1:
        raise RegistrationError(f"custom_op({name!r}): an op takes one list of tensors at most")
    return found


def _kind(hint: Any) -> str:
    if hint is Tensor:
        return "tensor"
    parts = typing.get_args(hint)
    if typing.get_origin(hint) in (Union, types.UnionType) and Tensor in parts:
        return "tensor"
    return "tensors" if Tensor in parts else "attribute"


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an op of a function of tensors; without the function a decorator.

    Parameters
    ----------
    name : str
        `"namespace::name"`; `torch.ops.namespace.name` finds the op.
    fn : callable
        Its parameters carry types: those of type Tensor are inputs, others attributes.
    mutates_args : sequence of str
        The inputs that it writes.
    device_types, schema, tags : optional
        Accepted; the types of the function say the schema.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> @flow.library.custom_op("doc::squared", mutates_args=())
    ... def squared(x: flow.Tensor) -> flow.Tensor:
    ...     return x * x
    >>> squared.register_autograd(
    ...     lambda ctx, dy: dy * 2 * ctx.saved_tensors[0],
    ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    ... )
    >>> x = flow.tensor(3.0, requires_grad=True)
    >>> flow.autograd.grad(squared(x), x)
    (tensor(6.),)
    """
    if name.count("::") != 1:
        raise RegistrationError(f"custom_op(): expected 'namespace::name', got {name!r}")
    if fn is None:
        return functools.partial(
            custom_op, name, mutates_args=mutates_args, device_types=device_types
        )
    mutates = (mutates_args,) if isinstance(mutates_args, str) else tuple(mutates_args)
    op = _OPS[name] = CustomOpDef(name, fn, mutates)
    op._fake = _fakes.pop(name, None)
    return op


def _find(op: Any) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if op not in _OPS:
        raise UnknownOpError(f"no custom op is registered as {op!r}; call custom_op first")
    return _OPS[op]


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """Register the gradient of a custom op, given or by name; see `CustomOpDef`."""
    _find(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Register the shapes of a custom op's results; without the function a decorator.

    The op may be registered later: packages describe ops of a library that was not loaded.
    """
    if func is None:
        return functools.partial(register_fake, op)
    if isinstance(op, str) and op not in _OPS:
        _fakes[op] = func
        return func
    return _find(op).register_fake(func)


def register_kernel(
    op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Register a function of a custom op for a device; without the function a decorator."""
    return _find(op).register_kernel(device_types, func)


def opcheck(
    op: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, **options: Any
) -> dict[str, str]:
    """Certify a custom op by a sample call, as `testing.check_op` does; raise where it fails."""
    values = []
    for value in args:
        given = value
        if isinstance(given, Tensor):
            given = given.detach().double() if given.is_floating_point() else given.detach()
            given = given if value.requires_grad else Fixed(given)
        values.append(given)
    checks = {"degenerate": False, "single_precision": False, "layouts": False}
    check_op(_find(op), [Sample(*values, **(kwargs or {}))], **checks)
    return {"test_autograd_registration": "SUCCESS", "test_schema": "SUCCESS"}


class _Namespace:
    """`torch.ops`, and `torch.ops.mylib`: custom ops, and functors as `torch.ops.aten`."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def load_library(self, path: Any) -> None:
        """Raise OSError: a library of PyTorch's C++ cannot be loaded."""
        raise OSError(f"ops.load_library(): {path} is made for PyTorch's C++; write ops in Python")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not self._name:
            return _Namespace(name)
        found = _OPS.get(f"{self._name}::{name}")
        if found is None and self._name in ("aten", "prim"):
            return _overloaded(f"torch.ops.{self._name}.{name}", name)
        if found is None:
            raise AttributeError(f"no custom op is registered as '{self._name}::{name}'", name=name)
        return found


class _Overloaded:
    """A functor, and each of its overloads, which are the functor."""

    def __init__(self, functor: Callable[..., Any]) -> None:
        self._functor = functor

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._functor(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._functor, name) if name.startswith("__") else self


@functools.cache
def _overloaded(path: str, name: str) -> _Overloaded:
    """Return the functor of a name, or a stand-in that raises when it is called."""
    functor = FUNCTORS.find(name) if "aten" in path else None
    return _Overloaded(functor or refused(path, "call the function of flow"))


ops = _Namespace()
