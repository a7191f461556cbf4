"""Futures, with PyTorch's methods: values that may still have to be waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import GenericAlias
from typing import Any


class Future:
    """A value that comes later.

    Parameters
    ----------
    source : callable, optional
        Waits for the value and returns it; without a source, `set_result` gives the value. A list
        of devices, which PyTorch's scripts pass, has no effect.

    >>> from oneflow_lite.futures import Future
    >>> later = Future()
    >>> twice = later.then(lambda known: 2 * known.value())
    >>> later.set_result(4)
    >>> twice.wait(), twice.done()
    (8, True)
    """

    __class_getitem__: Any = classmethod(GenericAlias)

    def __init__(self, source: Any = None, *, devices: Any = None) -> None:
        self._source: Callable[[], Any] | None = source if callable(source) else None
        self._known = self._failed = False
        self._value: Any = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def __repr__(self) -> str:
        return f"Future({'done' if self._known else 'waiting'})"

    def set_result(self, value: Any) -> None:
        """Give the value, once."""
        if self._known:
            raise RuntimeError("Future.set_result(): it has a value already; make another Future")
        self._known, self._value = True, value
        for callback in self._callbacks:
            callback(self)

    def set_exception(self, error: BaseException) -> None:
        """Let `wait` raise an error."""
        self._failed = True
        self.set_result(error)

    def wait(self) -> Any:
        """Wait for the value, and return it."""
        if not self._known:
            if self._source is None:
                raise RuntimeError("Future.wait(): nobody has given a value; call set_result()")
            try:
                value = self._source()
            except Exception as error:  # kept, as a second wait() has to raise it, too
                self.set_exception(error)
            else:
                self.set_result(value)
        if self._failed:
            raise self._value
        return self._value

    value = wait

    def done(self) -> bool:
        """Return whether the value is known."""
        return self._known

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return the future of `callback(self)`, which runs when the new future is waited for."""

        def follow() -> Any:
            self.wait()
            return callback(self)

        return Future(follow)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Have a function called with this future when its value is known."""
        if self._known:
            callback(self)
        else:
            self._callbacks.append(callback)


def collect_all(futures: Sequence[Future]) -> Future:
    """Return the future of a list of futures, all of which are done."""

    def follow() -> list[Future]:
        wait_all(futures)
        return list(futures)

    return Future(follow)


def wait_all(futures: Sequence[Future]) -> list[Any]:
    """Wait for all values, and return them."""
    return [each.wait() for each in futures]
