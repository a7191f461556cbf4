"""`flow.compile`: calls of ordinary functions are recorded while they run, and replayed."""

from oneflow_lite.exposure import load_everything
from oneflow_lite.static.capture.compiled import (
    CompiledFunction as CompiledFunction,
    Explanation as Explanation,
    compile as compile,
)

load_everything()  # so that no recording meets a name that is being loaded
