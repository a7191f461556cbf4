"""OneFlow-style autograd in readable Python on NumPy and CuPy."""

from oneflow_lite.dtype import *
from oneflow_lite.dtype import bool_ as bool
from oneflow_lite.device import Device as device, make_cuda_module
from oneflow_lite.tensor import Tensor
from oneflow_lite import kernels, functors, grad_funcs, errors, autograd
from oneflow_lite.functors import methods as _methods
from oneflow_lite.functors.creation import tensor, as_tensor, from_numpy, from_dlpack
from oneflow_lite.functors.random import Generator, manual_seed, default_generator
from oneflow_lite.interpreter import Interpreter, push_interpreter
from oneflow_lite.autograd.mode import *
from oneflow_lite.autograd.mode import no_grad, enable_grad, set_grad_enabled, is_grad_enabled
from oneflow_lite.autograd.grad_function import OpExprGradFunction, register_grad_func
from oneflow_lite.registry import register_kernel, register_functor
from oneflow_lite.extend import register_op
from oneflow_lite.registry import FUNCTORS as _F
_methods.attach()
for _n in _F: globals().setdefault(_n, _F.get(_n))
cuda = make_cuda_module()
from oneflow_lite import testing
