"""Networks: modules, parameters, containers, initialisation, and functions without state."""

from oneflow_lite.exposure import old_names as _old_names
from oneflow_lite.nn import functional, init, modules, utils
from oneflow_lite.nn.containers import ModuleDict, ModuleList, ParameterList, Sequential
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules import *  # noqa: F403  (exactly its __all__)
from oneflow_lite.nn.modules import __all__ as _layers
from oneflow_lite.nn.parameter import Parameter

__getattr__ = _old_names(__name__)

__all__ = [
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterList",
    "Sequential",
    "functional",
    "init",
    "modules",
    "utils",
    *_layers,
]
