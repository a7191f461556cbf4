"""`flow.compile`: calls of ordinary functions are recorded while they run, and replayed."""

from oneflow_lite.static.capture.compiled import (
    CompiledFunction as CompiledFunction,
    Explanation as Explanation,
    compile as compile,
)
