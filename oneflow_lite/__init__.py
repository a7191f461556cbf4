"""oneflow_lite: OneFlow-style autograd in readable Python, on NumPy and CuPy arrays.

`import oneflow_lite as flow`. A name is loaded when it is first asked for: functions by their
declarations, all others from `ops/homes.py`. `__init__.pyi` and `functions.pyi` list them.
"""

from oneflow_lite.arrays.blas_threads import let_blas_sleep as _let_blas_sleep
from oneflow_lite.arrays.device import make_cuda_module as _make_cuda_module
from oneflow_lite.arrays.host_memory import keep_freed_memory as _keep_freed_memory
from oneflow_lite.interop.einops_backend import watch as _watch_for_einops
from oneflow_lite.ops.eager_loops import has_numba as _has_numba
from oneflow_lite.ops.exposure import attach_methods as _attach_methods, expose as _expose
from oneflow_lite.tensors.node import FunctionNode as _FunctionNode
from oneflow_lite.tensors.tensor import Tensor as _Tensor

__version__ = "0.1.0"

cuda = _make_cuda_module()
newaxis = None

_expose(globals())
_expose(vars(cuda))
_attach_methods(_Tensor)
_attach_methods(_FunctionNode)
_keep_freed_memory()
if _has_numba():
    _let_blas_sleep()
_watch_for_einops()
