"""Written by `python -m oneflow_lite.ops.index --write`; not by hand."""

from math import e as e, inf as inf, nan as nan, pi as pi
from oneflow_lite import (
    amp as amp, functions as functions, functors as functors, futures as futures,
    grad_funcs as grad_funcs, kernels as kernels, functions as _functions
)
from oneflow_lite import (
    autograd as autograd, distributed as distributed, distributions as distributions,
    errors as errors, fft as fft, func as func, linalg as linalg, masked as masked,
    mock_torch as mock_torch, nn as nn, onnx as onnx, optim as optim, profiler as profiler,
    random as random, signal as signal, sparse as sparse, special as special, static as static,
    testing as testing, utils as utils
)
from oneflow_lite.amp import (
    autocast as autocast, clear_autocast_cache as clear_autocast_cache,
    get_autocast_cpu_dtype as get_autocast_cpu_dtype, get_autocast_dtype as get_autocast_dtype,
    get_autocast_gpu_dtype as get_autocast_gpu_dtype, GradScaler as GradScaler,
    is_autocast_cpu_enabled as is_autocast_cpu_enabled, is_autocast_enabled as is_autocast_enabled
)
from oneflow_lite.arrays.device import (
    get_default_device as get_default_device, set_default_device as set_default_device,
    Device as _Device
)
from oneflow_lite.arrays.dtype import (
    can_cast as can_cast, finfo as finfo, get_default_dtype as get_default_dtype, iinfo as iinfo,
    promote_types as promote_types, set_default_dtype as set_default_dtype
)
from oneflow_lite.arrays.dtype_object import (
    complex128 as complex128, complex64 as complex64, dtype as dtype, float16 as float16,
    float32 as float32, float64 as float64, int16 as int16, int32 as int32, int64 as int64,
    int8 as int8, uint16 as uint16, uint32 as uint32, uint64 as uint64, uint8 as uint8,
    bool_ as _bool_, complex128 as _complex128, complex64 as _complex64, float64 as _float64,
    float32 as _float32, float16 as _float16, int32 as _int32, int64 as _int64, int16 as _int16
)
from oneflow_lite.arrays.memory_format import (
    channels_last as channels_last, channels_last_3d as channels_last_3d,
    contiguous_format as contiguous_format, memory_format as memory_format,
    preserve_format as preserve_format
)
from oneflow_lite.arrays.size import Size as Size
from oneflow_lite.autograd.rules.gradient_rules import (
    AutoGradCaptureState as AutoGradCaptureState, OpExprGradFunction as OpExprGradFunction,
    register_grad_func as register_grad_func
)
from oneflow_lite.compatibility import (
    backends as backends, hub as hub, jit as jit, library as library, types as types,
    version as version
)
from oneflow_lite.compatibility.helpers import (
    _assert as _assert, get_device_module as get_device_module, check as _check,
    check_index as _check_index, check_size as _check_size, check_type as _check_type,
    check_value as _check_value
)
from oneflow_lite.compatibility.inert import no as _no, none as _none
from oneflow_lite.compatibility.jit import ScriptModule as ScriptModule
from oneflow_lite.compatibility.settings import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode as get_deterministic_debug_mode,
    get_float32_matmul_precision as get_float32_matmul_precision,
    get_num_interop_threads as get_num_interop_threads, get_num_threads as get_num_threads,
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled as is_warn_always_enabled,
    set_default_tensor_type as set_default_tensor_type,
    set_deterministic_debug_mode as set_deterministic_debug_mode,
    set_float32_matmul_precision as set_float32_matmul_precision,
    set_flush_denormal as set_flush_denormal, set_num_interop_threads as set_num_interop_threads,
    set_num_threads as set_num_threads, set_warn_always as set_warn_always,
    use_deterministic_algorithms as use_deterministic_algorithms
)
from oneflow_lite.compatibility.tensors import (
    addmv_ as addmv_, bfloat16 as bfloat16, BFloat16Storage as BFloat16Storage,
    BFloat16Tensor as BFloat16Tensor, BoolStorage as BoolStorage, BoolTensor as BoolTensor,
    ByteStorage as ByteStorage, ByteTensor as ByteTensor, CharStorage as CharStorage,
    CharTensor as CharTensor, ComplexDoubleStorage as ComplexDoubleStorage,
    ComplexDoubleTensor as ComplexDoubleTensor, ComplexFloatStorage as ComplexFloatStorage,
    ComplexFloatTensor as ComplexFloatTensor, detach as detach, detach_ as detach_,
    DoubleStorage as DoubleStorage, DoubleTensor as DoubleTensor, embedding_bag as embedding_bag,
    FloatStorage as FloatStorage, FloatTensor as FloatTensor, HalfStorage as HalfStorage,
    HalfTensor as HalfTensor, IntStorage as IntStorage, IntTensor as IntTensor,
    LongStorage as LongStorage, LongTensor as LongTensor, ShortStorage as ShortStorage,
    ShortTensor as ShortTensor, typename as typename
)
from oneflow_lite.compiler.face import compile as compile, explain as explain
from oneflow_lite.distributed.placement import placement as placement, sbp as sbp
from oneflow_lite.distributions import quasirandom as quasirandom
from oneflow_lite.errors import DeviceError as _DeviceError
from oneflow_lite.explore import explore as explore
from oneflow_lite.extend import register_op as register_op
from oneflow_lite.files import serialization as serialization
from oneflow_lite.files.serialization import load as load, save as save
from oneflow_lite.func import vmap as vmap
from oneflow_lite.functions import *
from oneflow_lite.functors.creation import (
    as_tensor as as_tensor, asarray as asarray, empty_strided as empty_strided,
    from_dlpack as from_dlpack, from_file as from_file, from_numpy as from_numpy,
    frombuffer as frombuffer, tensor as tensor
)
from oneflow_lite.functors.inplace import fill_ as fill_, zero_ as zero_
from oneflow_lite.functors.joining import broadcast_shapes as broadcast_shapes
from oneflow_lite.functors.random import (
    Generator as Generator, default_generator as default_generator,
    get_rng_state as get_rng_state, initial_seed as initial_seed, manual_seed as manual_seed,
    seed as seed, set_rng_state as set_rng_state
)
from oneflow_lite.info import info as info
from oneflow_lite.interop import accelerator as accelerator
from oneflow_lite.interop.cuda import Event as Event, Stream as Stream
from oneflow_lite.interop.storages import (
    is_storage as is_storage, Storage as Storage, TypedStorage as TypedStorage,
    UntypedStorage as UntypedStorage
)
from oneflow_lite.interpreter.stack import (
    AutogradInterpreter as AutogradInterpreter, EagerInterpreter as EagerInterpreter,
    Interpreter as Interpreter, current_interpreter as current_interpreter,
    push_interpreter as push_interpreter
)
from oneflow_lite.nn.summarize import summary as summary
from oneflow_lite.nn.utils.weight_norm import norm_except_dim as norm_except_dim
from oneflow_lite.ops.registry import (
    register_functor as register_functor, register_kernel as register_kernel
)
from oneflow_lite.sparse import (
    sparse_coo as sparse_coo, sparse_coo_tensor as sparse_coo_tensor, spmm as spmm
)
from oneflow_lite.static.runtime.takeover import use_jit as use_jit
from oneflow_lite.tensors import (
    storage as storage, tensor as _tensor, tensor_repr as _tensor_repr
)
from oneflow_lite.tensors.mode import (
    enable_grad as enable_grad, inference_mode as inference_mode,
    is_grad_enabled as is_grad_enabled, is_inference_mode_enabled as is_inference_mode_enabled,
    no_grad as no_grad, set_grad_enabled as set_grad_enabled
)
from oneflow_lite.tensors.tensor import Tensor as Tensor
from oneflow_lite.tensors.tensor_methods import (
    get_device as get_device, is_inference as is_inference, is_nonzero as is_nonzero,
    is_same_size as is_same_size, is_signed as is_signed, layout as layout,
    resize_as_ as resize_as_, strided as strided, never as _never
)
from oneflow_lite.tensors.tensor_repr import (
    get_printoptions as get_printoptions, printoptions as printoptions,
    set_printoptions as set_printoptions
)
from oneflow_lite.utils import multiprocessing as multiprocessing
from types import ModuleType

OutOfMemoryError = _DeviceError
__version__: str
_check = _check
_check_index = _check_index
_check_is_size = _check_size
_check_type = _check_type
_check_value = _check_value
_tensor = _tensor
_tensor_str = _tensor_repr
bool = _bool_
cdouble = _complex128
cfloat = _complex64
cuda: ModuleType
device = _Device
double = _float64
float = _float32
functional = _functions
half = _float16
int = _int32
is_autocast_cache_enabled = _no
is_conj = _never
is_neg = _never
is_vulkan_available = _no
long = _int64
newaxis: None
set_autocast_cache_enabled = _none
short = _int16
