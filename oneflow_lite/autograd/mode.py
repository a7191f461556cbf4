"""What a thread carries from call to call: grad mode and the top interpreter, in one object.

Dispatch reads `local.state` once per op; both fields change together with that object.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class ThreadState:
    """Immutable by convention: a change replaces the whole object.

    `interpreter` is None while nothing was pushed on top of the default stack.
    """

    __slots__ = ("grad_enabled", "interpreter")

    def __init__(self, grad_enabled: bool, interpreter: Any = None) -> None:
        self.grad_enabled = grad_enabled
        self.interpreter = interpreter


GRAD = ThreadState(True)
NO_GRAD = ThreadState(False)


class _Local(threading.local):
    state: ThreadState = GRAD
    task: Any = None  # the GraphTask that runs on this thread


local = _Local()


def with_grad_mode(enabled: bool) -> ThreadState:
    """Return this thread's state with another grad mode."""
    interpreter = local.state.interpreter
    if interpreter is None:
        return GRAD if enabled else NO_GRAD
    return ThreadState(enabled, interpreter)


def is_grad_enabled() -> bool:
    """Return whether operations on this thread are recorded."""
    return local.state.grad_enabled


class _GradMode:
    """A context manager, usable again and nested, and a decorator for functions."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before: list[ThreadState] = []

    def __enter__(self) -> None:
        self._before.append(local.state)
        local.state = with_grad_mode(self._enabled)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        local.state = self._before.pop()

    def __call__(self, function: F) -> F:
        enabled = self._enabled
        if inspect.isgeneratorfunction(function):
            return _generator_in_mode(function, enabled)  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with _GradMode(enabled):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]  # wraps() keeps the signature


def _generator_in_mode(function: Callable[..., Any], enabled: bool) -> Callable[..., Any]:
    """Run each step of a generator in the mode, and what happens between the steps outside it."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step: Callable[[], Any] = lambda: next(generator)  # noqa: E731
        while True:
            try:
                with _GradMode(enabled):
                    value = step()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield value
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:
                step = functools.partial(generator.throw, error)
            else:
                step = functools.partial(generator.send, sent)

    return wrapped


class no_grad(_GradMode):
    """Do not record operations: a context manager, or a decorator with or without parentheses.

    >>> import oneflow_lite as flow
    >>> x = flow.ones(2, requires_grad=True)
    >>> with flow.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        mode = super().__new__(cls)
        mode.__init__()  # type: ignore[misc]
        return mode if function is None else mode(function)

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_GradMode):
    """Record operations, also inside `no_grad`: a context manager or a decorator."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        mode = super().__new__(cls)
        mode.__init__()  # type: ignore[misc]
        return mode if function is None else mode(function)

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_GradMode):
    """Switch recording on or off: takes effect at once, and until the end of a `with` block.

    >>> import oneflow_lite as flow
    >>> with flow.set_grad_enabled(False):
    ...     flow.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._outer = local.state
        local.state = with_grad_mode(self._enabled)

    def __enter__(self) -> None:
        self._before.append(self._outer)

    def __call__(self, function: F) -> F:
        local.state = self._outer  # a decorator changes nothing until the function is called
        return super().__call__(function)
