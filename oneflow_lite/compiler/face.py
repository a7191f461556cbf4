"""`flow.compile` and what is asked of its results: the face of all that records and replays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar, overload

from oneflow_lite.compiler.function import CompiledFunction, Explanation
from oneflow_lite.compiler.stand_ins import (
    ObjectStandIn,
    acts_like_a_function,
    compiled_of,
    stand_in,
)
from oneflow_lite.errors import ArgumentError, arg_error, type_error
from oneflow_lite.nn.module import IN_PLACE, Module
from oneflow_lite.ops.exposure import load_everything
from oneflow_lite.static.runtime.interpreter_core import MODES

F = TypeVar("F", bound=Callable[..., Any])


@overload
def compile(model: F, *, fullgraph: bool = False, mode: str | None = None) -> F: ...
@overload
def compile(*, fullgraph: bool = False, mode: str | None = None) -> Callable[[F], F]: ...
def compile(
    model: Callable[..., Any] | None = None, *, fullgraph: bool = False, mode: str | None = None
) -> Any:
    """Return a function, or a module, that replays what calls of `model` have done before.

    The first call with arguments of certain shapes runs eagerly and is recorded. Later calls that
    agree in everything the function read run the recorded Program; others are recorded anew. A
    call that cannot be repeated without running the function, because it reads values or changes
    objects outside, stays eager, with one warning.

    Parameters
    ----------
    model : callable or Module
        The function to compile; left out, `compile` is a decorator with options. A function that
        was compiled before is compiled anew, with these options.
    fullgraph : bool
        Whether to raise `CaptureError` instead of running eagerly.
    mode : {None, "straight_line", "numpy", "work_queue", "cuda_graph"}
        How the Program is run, see `static.InterpreterCore`; None takes the first.

    Returns
    -------
    callable
        A function with the name and the attributes of `model`. For a Module, or another object
        that can be called, one that passes for it: attributes, methods, `isinstance`, state dict,
        copies and pickles are those of `model`, which itself stays as it is. Its `explain()`
        counts captures, hits and fallbacks and gives reasons; where the object has a method of
        that name, `flow.explain` does.

    Raises
    ------
    ArgumentTypeError
        When `model` cannot be called.
    ArgumentError
        For another mode.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> w = flow.ones(2, requires_grad=True)
    >>> @flow.compile
    ... def step(x):
    ...     loss = (w * x).sum()
    ...     loss.backward()
    ...     with flow.no_grad():
    ...         w.sub_(w.grad * 0.1)
    ...     w.grad = None
    ...     return loss
    >>> for _ in range(4):
    ...     print(round(step(flow.ones(2)).item(), 4))
    2.0
    1.8
    1.6
    1.4
    >>> step.explain().captures, step.explain().hits
    (1, 3)
    """
    if mode is not None and mode not in MODES:
        known, hint = f"None or one of {', '.join(map(repr, MODES))}", "leave it out"
        raise arg_error("compile", "mode", known, repr(mode), hint=hint, kind=ArgumentError)
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, mode=mode)
    if isinstance(model, (staticmethod, classmethod)):
        return type(model)(compile(model.__func__, fullgraph=fullgraph, mode=mode))
    if isinstance(model, ObjectStandIn):
        model = compiled_of(model)
    if isinstance(model, CompiledFunction):
        model = model.__wrapped__
    if not callable(model):
        hint = "pass what is called, not its result"
        raise type_error("compile", "model", "a function or a Module", model, hint)
    compiled = CompiledFunction(model, fullgraph, mode)
    return compiled if acts_like_a_function(model) else stand_in(compiled)


def explain(compiled: Any) -> Explanation:
    """Return how the calls of a compiled function or module went so far.

    Parameters
    ----------
    compiled : callable
        What `flow.compile` returned, a method that it decorates, or a Module whose `compile` was
        called.

    Returns
    -------
    Explanation
        Its `captures`, `hits` and `fallbacks` are counts, its `reasons` say why calls ran eagerly.

    Raises
    ------
    ArgumentTypeError
        For what is not compiled.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> layer = flow.nn.Linear(2, 2)
    >>> layer.compile()
    >>> for _ in range(3):
    ...     y = layer(flow.ones(2))
    >>> flow.explain(layer)
    Explanation(captures=1, hits=2, fallbacks=0, reasons=[])
    """
    if (function := function_of(compiled)) is None:
        expected, hint = "what flow.compile returned", "compile it first"
        raise type_error("explain", "compiled", expected, compiled, hint)
    return CompiledFunction.explain(function)  # it may have an attribute of that name


def function_of(compiled: Any) -> CompiledFunction | None:
    """Return the function that records and replays the calls of an object; None without one."""
    inner = compiled
    if not isinstance(inner, ObjectStandIn) and isinstance(inner, (MethodType, staticmethod)):
        inner = inner.__func__  # a stand-in may pass for a method
    if isinstance(inner, ObjectStandIn):
        inner = compiled_of(inner)
    elif isinstance(inner, Module) and inner._compiled_call_impl is not None:
        inner = inner._compiled_call_impl.of(inner)
    return inner if isinstance(inner, CompiledFunction) else None


class CompiledCall:
    """The mark of `Module.compile` in a module: from then on calls go through it.

    A copy of the module, however it was made, gets a compiled function of its own.
    """

    notes_of_calls = frozenset(("_function",))

    def __init__(self, fullgraph: bool, mode: str | None) -> None:
        self._options = fullgraph, mode
        self._function: CompiledFunction | None = None
        IN_PLACE[:] = [True]

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledCall, self._options

    def of(self, module: Module) -> CompiledFunction:
        """Return the compiled function to call instead of the module."""
        function = self._function
        if function is not None and function.__wrapped__.__self__ is module:
            return function
        function = CompiledFunction(module._call_impl, *self._options)
        function.__name__ = type(module).__name__
        call = self if self._function is None else CompiledCall(*self._options)
        call._function = function
        module.__dict__["_compiled_call_impl"] = call
        return function


def compile_in_place(self: Module, *args: Any, **kwargs: Any) -> None:
    """Have calls of this module compiled, with the options of `flow.compile`.

    Where a class defines `__call__`, that is what it does in `super().__call__()`. Copies and
    pickles are compiled as well; `flow.explain` tells how the calls went.
    """
    compiled = compile(self, *args, **kwargs)  # checks the options
    options = {name: getattr(compiled_of(compiled), f"_{name}") for name in ("fullgraph", "mode")}
    self.__dict__["_compiled_call_impl"] = call = CompiledCall(**options)
    call.of(self)


load_everything()  # so that no recording meets a name that is being loaded
