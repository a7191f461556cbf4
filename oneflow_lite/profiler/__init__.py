"""Profiles of eager and compiled code: `profile`, under PyTorch's names.

While a profile is on, stand-ins for kernels, nodes and replays write down their times and the bytes
they move (`eager.py`, and `static/runtime/profiled.py` for replays). `events.py` makes a table of
the log, `chrome_trace.py` a trace; `flops.py` counts operations.
It imports `nn`, the interpreter, `autograd/rules` and the rooms below. `static/runtime` and
`compiler` write events with its recorder.
"""

from oneflow_lite.ops.exposure import expose as _expose
from oneflow_lite.profiler.copy_bandwidth import copy_bandwidth as copy_bandwidth
from oneflow_lite.profiler.events import (
    EventList as EventList,
    FunctionEvent as FunctionEvent,
    FunctionEventAvg as FunctionEventAvg,
)
from oneflow_lite.profiler.flops import FlopCounterMode as FlopCounterMode
from oneflow_lite.profiler.session import (
    ProfilerAction as ProfilerAction,
    ProfilerActivity as ProfilerActivity,
    profile as profile,
    record_function as record_function,
    schedule as schedule,
    supported_activities as supported_activities,
    tensorboard_trace_handler as tensorboard_trace_handler,
)

_expose(globals())
