"""Written by `python -m oneflow_lite.ops.index --write`; not by hand."""

from oneflow_lite.compatibility.parallel import DataParallel as DataParallel
from oneflow_lite.compiler.graph import Graph as Graph
from oneflow_lite.nn import (
    functional as functional, init as init, modules as modules, parameter as parameter,
    utils as utils
)
from oneflow_lite.nn import grad as grad
from oneflow_lite.nn import parallel as parallel
from oneflow_lite.nn.containers import (
    ModuleDict as ModuleDict, ModuleList as ModuleList, ParameterDict as ParameterDict,
    ParameterList as ParameterList, Sequential as Sequential
)
from oneflow_lite.nn.module import Module as Module
from oneflow_lite.nn.modules import *
from oneflow_lite.nn.parameter import (
    Buffer as Buffer, Parameter as Parameter, UninitializedBuffer as UninitializedBuffer,
    UninitializedParameter as UninitializedParameter
)
