"""The list of modules of upper rooms that a lower room asks for by name.

A room imports the rooms below it alone. Where a lower room has to reach up, it asks here for a
module by the name of the part that the module plays, when that part is first needed.
"""

from __future__ import annotations

import importlib
from typing import Any

# The part, and the module that plays it.
PARTS = {
    "declarations": "functors.declaring.declare",  # `index`: what the stubs say
    "replay of views": "interpreter.dispatch",  # `Tensor`: the base of a view was written
    "caller's line": "tensors.caller_warnings",  # `kernel_watch`: a user's kernel shares memory
    "subclasses": "tensors.subclasses",  # `Tensor`: a class of somebody else's derives from it
    "results on meta": "interpreter.infer",  # `OpExpr`: the kernels of the device "meta"
    "loops of kernels": "kernels.loops",  # `eager_loops`: large arrays
    "cudnn kernels": "kernels.cudnn",  # `cudnn`: ops that cuDNN may run
    "writer of loops": "static.fusion.eager",  # `eager_loops`: machine code from expressions
    "boxing": "distributed.boxing",  # `placement`, `GlobalArray`: kernels reach ranks through them
    "batches": "transforms.batching",  # `engine/run`: grad() of a batch of gradients
    "making global tensors": "distributed.global_tensor",  # `placement`: functors that create
    "user's line": "static.ir.location",  # `profiler`: where an op was called
    "events of ops": "profiler.eager",  # `profiler.recorder`: stand-ins that write the log
    "events of Programs": "static.runtime.profiled",  # the same
    "events of flow.compile": "compiler.timed_calls",  # the same
}


def module(part: str) -> Any:
    """Return the module that plays a part."""
    return importlib.import_module(f"oneflow_lite.{PARTS[part]}")
