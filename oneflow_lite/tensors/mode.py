"""The state of a thread: grad mode, the top interpreter and more, in one object.

Dispatch reads `local.state` once per op; all fields change together with that object. A GraphTask
keeps the state of the thread that called it, and every thread that works for it runs under it.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from oneflow_lite.errors import ArgumentTypeError, arg_error
from oneflow_lite.tensors.shown import Shown

F = TypeVar("F", bound=Callable[..., Any])


class ThreadState:
    """Immutable by convention: a change replaces the whole object.

    Attributes
    ----------
    grad_enabled : bool
    interpreter : Interpreter or None
        The top of the stack; None while the default interpreter is on top.
    anomaly : AnomalyMode or None
    saved_hooks : tuple of (pack, unpack) or None
    saved_hooks_disabled : str or None
        Why `saved_tensors_hooks` may not be entered.
    debug : bool
        Whether saved arrays are checksummed.
    trace : Trace or None
        Writes down the steps of a backward pass.
    inference : bool
        Whether `inference_mode` is on: tensors that are made then are marked.
    general : bool
        Whether any field is set but the two modes. The fast paths of dispatch and of the GraphTask
        check this field alone.
    """

    __slots__ = (
        "anomaly",
        "debug",
        "general",
        "grad_enabled",
        "inference",
        "interpreter",
        "saved_hooks",
        "saved_hooks_disabled",
        "trace",
    )

    def __init__(
        self,
        grad_enabled: bool,
        interpreter: Any = None,
        anomaly: Any = None,
        saved_hooks: Any = None,
        saved_hooks_disabled: str | None = None,
        debug: bool = False,
        trace: Any = None,
        inference: bool = False,
    ) -> None:
        self.grad_enabled = grad_enabled
        self.interpreter = interpreter
        self.anomaly = anomaly
        self.saved_hooks = saved_hooks
        self.saved_hooks_disabled = saved_hooks_disabled
        self.debug = debug
        self.trace = trace
        self.inference = inference
        set_up = (interpreter, anomaly, saved_hooks, saved_hooks_disabled, trace)
        self.general = debug or any([part is not None for part in set_up])

    def replace(self, **changes: Any) -> ThreadState:
        """Return a state that differs in some fields."""
        fields = {name: getattr(self, name) for name in _FIELDS}
        return ThreadState(**{**fields, **changes})

    def bare(self) -> ThreadState:
        """Return the state with this grad mode and nothing else set."""
        return _MODES[self.grad_enabled, self.inference]


_FIELDS = tuple(name for name in ThreadState.__slots__ if name != "general")
GRAD = ThreadState(True)
NO_GRAD = ThreadState(False)
_INFERENCE = ThreadState(False, inference=True)
_MODES = {
    (True, False): GRAD,
    (False, False): NO_GRAD,
    (True, True): _INFERENCE,  # nothing is recorded in inference_mode, under enable_grad neither
    (False, True): _INFERENCE,
}


class _Local(threading.local):
    state: ThreadState = GRAD
    task: Any = None  # the GraphTask that runs on this thread
    depth: int = 0  # of this thread's first backward call; above 0 on threads for nested calls
    ready_queue: Any = None  # of the device that this thread works for
    observer: Any = None  # of the call that flow.compile records on this thread
    # By id what is alive that gradients lead to and NumPy does not know: global arrays, borders of
    # transforms. One for all threads: a dict, because a count would lose steps between threads.
    foreign: dict[int, None] = {}  # noqa: RUF012


local = _Local()


def of_user(function: Any, reads: bool = False) -> Any:
    """Return a user's hook or rule as it has to be called: observed, while a call is recorded.

    `reads` says that the caller goes through the result.
    """
    observer = local.observer
    return function if observer is None else observer.callback(function, True, reads)


def with_grad_mode(enabled: bool) -> ThreadState:
    """Return this thread's state with another grad mode; it stays off in `inference_mode`."""
    state = local.state
    if not state.general:  # one of three objects, so that a switch of mode makes none
        return _MODES[enabled, state.inference]
    enabled = enabled and not state.inference
    return state if state.grad_enabled is enabled else state.replace(grad_enabled=enabled)


class StateChange:
    """Base of context managers that change fields of the thread's state and put them back.

    Other fields that change during the block stay changed.
    """

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> Any:
        state = local.state
        self._before.append({name: getattr(state, name) for name in self._changes})
        local.state = state.replace(**self._changes)
        return self

    def __exit__(self, *exc_info: object) -> None:
        local.state = local.state.replace(**self._before.pop())


def is_grad_enabled() -> bool:
    """Return whether operations on this thread are recorded."""
    return local.state.grad_enabled


class _GradMode(Shown):
    """A grad mode as a context manager, which can be reused and nested, and as a decorator."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(local.state.grad_enabled)
        local.state = with_grad_mode(self._enabled)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        local.state = with_grad_mode(self._before.pop())

    def __call__(self, function: F) -> F:
        return in_mode(function, lambda: _GradMode(self._enabled))


def in_mode(function: F, mode: Callable[[], Any]) -> F:
    """Return a function, generator function or coroutine function that runs in a mode.

    Each call, and each step of a generator or a coroutine, has a context of its own.
    """
    if inspect.isgeneratorfunction(function):
        return _generator_in_mode(function, mode)  # type: ignore[return-value]
    if inspect.iscoroutinefunction(function):
        steps: Callable[..., Any] = types.coroutine(_generator_in_mode(function, mode))

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await steps(*args, **kwargs)

        return awaited  # type: ignore[return-value]
    if inspect.isasyncgenfunction(function):
        raise arg_error(
            "decorator of a grad mode",
            "function",
            "a function, a generator function or a coroutine function",
            f"the asynchronous generator function {function.__qualname__}",
            "enter the mode in its body, and leave it before each `yield` and `await`",
            ArgumentTypeError,
        )

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with mode():
            return function(*args, **kwargs)

    return wrapped  # type: ignore[return-value]  # wraps() keeps the signature


def _generator_in_mode(function: Callable[..., Any], mode: Callable[[], Any]) -> Callable[..., Any]:
    """Run each step of a generator in the mode, and its caller's code between steps outside it."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step: Callable[[], Any] = lambda: generator.send(None)  # noqa: E731
        while True:
            try:
                with mode():
                    value = step()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield value
            except GeneratorExit:
                with mode():
                    generator.close()
                raise
            except BaseException as error:
                step = functools.partial(generator.throw, error)
            else:
                step = functools.partial(generator.send, sent)

    return wrapped


class no_grad(_GradMode):
    """Do not record operations: a context manager, or a decorator with or without parentheses.

    The mode is the thread's. Tasks of asyncio share it, so decorate a coroutine function instead of
    awaiting inside a `with` block: the mode then holds in its steps, and not between them.

    >>> import oneflow_lite as flow
    >>> x = flow.ones(2, requires_grad=True)
    >>> with flow.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        mode = super().__new__(cls)
        mode.__init__()  # type: ignore[misc]  # Python calls it only where a no_grad comes back
        return mode if function is None else mode(function)

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_GradMode):
    """Record operations, also inside `no_grad`: a context manager or a decorator.

    Inside `inference_mode` nothing is recorded; `inference_mode(False)` records there, too.
    """

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
        self._outer = local.state.grad_enabled
        local.state = with_grad_mode(self._enabled)

    def __enter__(self) -> None:
        self._before.append(self._outer)

    def __call__(self, function: F) -> F:
        # A decorator changes nothing until the function is called.
        local.state = with_grad_mode(self._outer)
        return super().__call__(function)


class inference_mode(Shown):
    """Do not record operations, and mark the tensors that are made: a context manager, a decorator.

    `inference_mode(False)` records, in whatever mode it is entered. Versions are counted and views
    followed as ever. A marked tensor may therefore be used later where PyTorch forbids it.

    >>> import oneflow_lite as flow
    >>> with flow.inference_mode():
    ...     y = flow.ones(2, requires_grad=True) * 2
    >>> y.requires_grad, y.is_inference()
    (False, True)
    """

    def __new__(cls, mode: Any = True) -> Any:
        made = super().__new__(cls)
        if callable(mode):
            made.__init__()  # type: ignore[misc]
            return made(mode)
        return made

    def __init__(self, mode: bool = True) -> None:
        self._mode = bool(mode)
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        state = local.state
        self._before.append((state.grad_enabled, state.inference))
        self._set(not self._mode, self._mode)

    def __exit__(self, *exc_info: object) -> None:
        self._set(*self._before.pop())

    def _set(self, grad_enabled: bool, inference: bool) -> None:
        state = local.state
        if state.general:
            local.state = state.replace(grad_enabled=grad_enabled, inference=inference)
        else:
            local.state = _MODES[grad_enabled, inference]

    def __call__(self, function: F) -> F:
        return in_mode(function, lambda: inference_mode(self._mode))


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is in `inference_mode`."""
    return local.state.inference
