"""Programs that are captured once, analysed, and run by an Executor, under Paddle's names.

The rooms: `ir` (what a Program is), `lazy` (capture), `fusion` (machine code), `runtime` (passes
and the Executor), `control_flow`. It imports them, and is their door; `explore` uses it.
"""

from oneflow_lite.ops.exposure import expose as _expose
from oneflow_lite.static import nn as nn
from oneflow_lite.static.ir.program import (
    Block as Block,
    OpDesc as OpDesc,
    Program as Program,
    VarDesc as VarDesc,
)
from oneflow_lite.static.ir.saving import load as load, save as save
from oneflow_lite.static.ir.scope import (
    Scope as Scope,
    global_scope as global_scope,
    scope_guard as scope_guard,
)
from oneflow_lite.static.lazy.backward import (
    append_backward as append_backward,
    gradients as gradients,
)
from oneflow_lite.static.lazy.data import data as data
from oneflow_lite.static.lazy.default_programs import (
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    program_guard as program_guard,
)
from oneflow_lite.static.runtime.executor import Executor as Executor
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore as InterpreterCore

_expose(globals())
