"""Calls of compiled functions while a profile is on: see `profiler/recorder.py`."""

from __future__ import annotations

from collections.abc import Iterator
from threading import get_ident
from time import perf_counter as clock
from typing import Any

from oneflow_lite.compiler.function import CompiledFunction
from oneflow_lite.profiler.recorder import Put, Recorder, What, replaced


def _calls(recorder: Recorder) -> Iterator[None]:
    """Stand in for calls of compiled functions."""
    call, extend = CompiledFunction.__call__, recorder.log.extend
    whats: dict[str, What] = {}

    def timed_call(self: CompiledFunction, /, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__
        what = whats.get(name) or whats.setdefault(name, What(f"compiled {name}", "compiled"))
        start = clock()
        try:
            return call(self, *args, **kwargs)
        finally:
            extend((what, start, clock(), get_ident(), 0, 0, None))

    yield from replaced(CompiledFunction, "__call__", timed_call)


instruments: list[Put] = [_calls]
