"""oneflow_lite: OneFlow-style autograd in readable Python, on NumPy and CuPy arrays.

The public names, and nothing else; `import oneflow_lite as flow`. Functions of the declarations
(`functions.pyi` lists them), and the names below, are loaded when they are first asked for.
"""

from importlib import import_module as _import_module
from math import e as e, inf as inf, nan as nan, pi as pi
from typing import TYPE_CHECKING, Any

from oneflow_lite import autograd as autograd, errors as errors
from oneflow_lite.arrays.blas_threads import let_blas_sleep as _let_blas_sleep
from oneflow_lite.arrays.device import Device, make_cuda_module
from oneflow_lite.arrays.dtype import (
    as_dtype as _as_dtype,
    bool_,
    can_cast as can_cast,
    complex64 as complex64,
    complex128 as complex128,
    dtype as dtype,
    finfo as finfo,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    get_default_dtype as get_default_dtype,
    iinfo as iinfo,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    promote_types as promote_types,
    set_default_dtype as set_default_dtype,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from oneflow_lite.arrays.host_memory import keep_freed_memory
from oneflow_lite.arrays.memory_format import (
    channels_last as channels_last,
    channels_last_3d as channels_last_3d,
    contiguous_format as contiguous_format,
    memory_format as memory_format,
    preserve_format as preserve_format,
)
from oneflow_lite.arrays.size import Size as Size
from oneflow_lite.autograd.rules.gradient_rules import (
    AutoGradCaptureState as AutoGradCaptureState,
    OpExprGradFunction as OpExprGradFunction,
    register_grad_func as register_grad_func,
)
from oneflow_lite.functors.creation import tensor as tensor
from oneflow_lite.interop.einops_backend import watch as _watch_for_einops
from oneflow_lite.interpreter.stack import (
    AutogradInterpreter as AutogradInterpreter,
    EagerInterpreter as EagerInterpreter,
    Interpreter as Interpreter,
    current_interpreter as current_interpreter,
    push_interpreter as push_interpreter,
)
from oneflow_lite.ops import eager_loops as _eager_loops
from oneflow_lite.ops.exposure import (
    attach_methods as _attach_methods,
    names as _names,
    old_names as _old_names,
)
from oneflow_lite.ops.registry import (
    FUNCTORS as _FUNCTORS,
    register_functor as register_functor,
    register_kernel as register_kernel,
)
from oneflow_lite.tensors.mode import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from oneflow_lite.tensors.node import FunctionNode as _FunctionNode
from oneflow_lite.tensors.tensor import Tensor as Tensor
from oneflow_lite.tensors.tensor_methods import (
    get_device as get_device,
    is_inference as is_inference,
    is_nonzero as is_nonzero,
    is_same_size as is_same_size,
    is_signed as is_signed,
    layout as layout,
    never as _never,
    resize_as_ as resize_as_,
    strided as strided,
)
from oneflow_lite.tensors.tensor_repr import (
    get_printoptions as get_printoptions,
    printoptions as printoptions,
    set_printoptions as set_printoptions,
)

device = Device
bool = bool_
half = float16
float = float32
double = float64
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128

is_conj = is_neg = _never
newaxis = None

_attach_methods(Tensor)
_attach_methods(_FunctionNode)
cuda = make_cuda_module()
cuda.__getattr__ = _old_names(cuda.__name__)  # type: ignore[method-assign]
keep_freed_memory()
if _eager_loops.has_numba():
    _let_blas_sleep()
_watch_for_einops()

__version__ = "0.1.0"

if TYPE_CHECKING:
    mock_torch: Any  # it stands above this module
    from oneflow_lite import (
        distributed as distributed,
        distributions as distributions,
        fft as fft,
        func as func,
        functors as functors,
        grad_funcs as grad_funcs,
        kernels as kernels,
        linalg as linalg,
        masked as masked,
        nn as nn,
        onnx as onnx,
        optim as optim,
        profiler as profiler,
        random as random,
        sparse as sparse,
        special as special,
        static as static,
        testing as testing,
        utils as utils,
    )
    from oneflow_lite.arrays.device import (
        get_default_device as get_default_device,
        set_default_device as set_default_device,
    )
    from oneflow_lite.compiler.face import compile as compile, explain as explain
    from oneflow_lite.distributed.placement import placement as placement, sbp as sbp
    from oneflow_lite.explore import explore as explore
    from oneflow_lite.extend import register_op as register_op
    from oneflow_lite.files.serialization import load as load, save as save
    from oneflow_lite.func import vmap as vmap
    from oneflow_lite.functions import *  # noqa: F403
    from oneflow_lite.functors.creation import (
        as_tensor as as_tensor,
        asarray as asarray,
        empty_strided as empty_strided,
        from_dlpack as from_dlpack,
        from_numpy as from_numpy,
        frombuffer as frombuffer,
    )
    from oneflow_lite.functors.inplace import fill_ as fill_, zero_ as zero_
    from oneflow_lite.functors.joining import broadcast_shapes as broadcast_shapes
    from oneflow_lite.functors.random import (
        Generator as Generator,
        default_generator as default_generator,
        get_rng_state as get_rng_state,
        initial_seed as initial_seed,
        manual_seed as manual_seed,
        seed as seed,
        set_rng_state as set_rng_state,
    )
    from oneflow_lite.functors.shape import (
        is_complex as is_complex,
        is_floating_point as is_floating_point,
        is_tensor as is_tensor,
        numel as numel,
        result_type as result_type,
    )
    from oneflow_lite.info import info as info
    from oneflow_lite.nn.summarize import summary as summary
    from oneflow_lite.nn.utils.weight_norm import norm_except_dim as norm_except_dim
    from oneflow_lite.sparse import (
        sparse_coo as sparse_coo,
        sparse_coo_tensor as sparse_coo_tensor,
        spmm as spmm,
    )
    from oneflow_lite.static.runtime.takeover import use_jit as use_jit
else:
    _MODULES = """
        distributed distributions fft func functors grad_funcs kernels linalg masked mock_torch nn
        onnx optim profiler random sparse special static testing utils
    """.split()
    _MEMBERS = {
        "arrays.device": "get_default_device set_default_device",
        "distributed.placement": "placement sbp",
        "explore": "explore",
        "extend": "register_op",
        "func": "vmap",
        "static.runtime.takeover": "use_jit",
        "info": "info",
        "nn.summarize": "summary",
        "functors.creation": "as_tensor asarray empty_strided from_dlpack from_numpy frombuffer",
        "functors.joining": "broadcast_shapes",
        "functors.inplace": "fill_ zero_",
        "functors.shape": "is_complex is_floating_point is_tensor numel result_type",
        "functors.random": "Generator default_generator get_rng_state initial_seed manual_seed "
        "seed set_rng_state",
        "nn.utils.weight_norm": "norm_except_dim",
        "files.serialization": "load save",
        "sparse": "sparse_coo sparse_coo_tensor spmm",
        "compiler.face": "compile explain",
    }
    _ELSEWHERE = {name: module for module, names in _MEMBERS.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name in _names("flow"):
            value = _FUNCTORS.get(_names("flow")[name])
        elif name in _MODULES:
            value = _import_module(f"oneflow_lite.{name}")
        elif name in _ELSEWHERE:
            value = getattr(_import_module(f"oneflow_lite.{_ELSEWHERE[name]}"), name)
        elif name == "bfloat16":
            value = _as_dtype("bfloat16", name)
        else:
            return _old_names("oneflow_lite")(name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_names("flow"), *_MODULES, *_ELSEWHERE})
