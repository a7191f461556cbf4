"""Programs that are captured once, analysed, and run by an Executor, under Paddle's names."""

from oneflow_lite.static import (
    minimize as minimize,  # attaches Optimizer.minimize
    nn as nn,
)
from oneflow_lite.static.backward import append_backward as append_backward, gradients as gradients
from oneflow_lite.static.data import data as data
from oneflow_lite.static.default_programs import (
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    program_guard as program_guard,
)
from oneflow_lite.static.executor import Executor as Executor
from oneflow_lite.static.interpreter_core import InterpreterCore as InterpreterCore
from oneflow_lite.static.program import (
    Block as Block,
    OpDesc as OpDesc,
    Program as Program,
    VarDesc as VarDesc,
)
from oneflow_lite.static.saving import load as load, save as save
from oneflow_lite.static.scope import (
    Scope as Scope,
    global_scope as global_scope,
    scope_guard as scope_guard,
)
