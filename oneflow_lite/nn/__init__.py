"""Networks: modules, parameters, containers, initialisation, and functions without state.

It imports functors, `distributed`, `autograd` and the rooms below. Optimizers, files, profiles,
Programs and `flow.compile` know modules and parameters from here.
"""

from oneflow_lite.nn import functional, init, modules, parameter, utils
from oneflow_lite.nn.containers import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules import *  # noqa: F403  (exactly its __all__)
from oneflow_lite.nn.modules import __all__ as _layers
from oneflow_lite.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from oneflow_lite.ops.exposure import attach_methods as _attach_methods, expose as _expose

_expose(globals())
_attach_methods(Module)

__all__ = [
    "Buffer",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
    *_layers,
]
