"""Calls of ordinary functions are recorded while they run, and replayed: below `flow.compile`."""

from oneflow_lite.static.capture.compiled import (
    CompiledFunction as CompiledFunction,
    Explanation as Explanation,
)
