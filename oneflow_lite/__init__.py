"""oneflow_lite: OneFlow-style autograd in readable Python, on NumPy and CuPy arrays.

The public names, and nothing else; `import oneflow_lite as flow`.
"""

# The three op folders register what they hold, kernels first.
from oneflow_lite import kernels as kernels  # isort: skip
from oneflow_lite import functors as functors  # isort: skip
from oneflow_lite import grad_funcs as grad_funcs  # isort: skip

from oneflow_lite import autograd as autograd
from oneflow_lite import errors as errors
from oneflow_lite import nn as nn
from oneflow_lite import optim as optim
from oneflow_lite import testing as testing
from oneflow_lite import utils as utils
from oneflow_lite.autograd.grad_function import (
    AutoGradCaptureState as AutoGradCaptureState,
)
from oneflow_lite.autograd.grad_function import (
    OpExprGradFunction as OpExprGradFunction,
)
from oneflow_lite.autograd.grad_function import (
    register_grad_func as register_grad_func,
)
from oneflow_lite.autograd.mode import (
    enable_grad as enable_grad,
)
from oneflow_lite.autograd.mode import (
    is_grad_enabled as is_grad_enabled,
)
from oneflow_lite.autograd.mode import (
    no_grad as no_grad,
)
from oneflow_lite.autograd.mode import (
    set_grad_enabled as set_grad_enabled,
)
from oneflow_lite.device import Device
from oneflow_lite.device import make_cuda_module
from oneflow_lite.dtype import (
    bool_,
)
from oneflow_lite.dtype import (
    can_cast as can_cast,
)
from oneflow_lite.dtype import (
    complex64 as complex64,
)
from oneflow_lite.dtype import (
    complex128 as complex128,
)
from oneflow_lite.dtype import (
    dtype as dtype,
)
from oneflow_lite.dtype import (
    finfo as finfo,
)
from oneflow_lite.dtype import (
    float16 as float16,
)
from oneflow_lite.dtype import (
    float32 as float32,
)
from oneflow_lite.dtype import (
    float64 as float64,
)
from oneflow_lite.dtype import (
    get_default_dtype as get_default_dtype,
)
from oneflow_lite.dtype import (
    iinfo as iinfo,
)
from oneflow_lite.dtype import (
    int8 as int8,
)
from oneflow_lite.dtype import (
    int16 as int16,
)
from oneflow_lite.dtype import (
    int32 as int32,
)
from oneflow_lite.dtype import (
    int64 as int64,
)
from oneflow_lite.dtype import (
    promote_types as promote_types,
)
from oneflow_lite.dtype import (
    set_default_dtype as set_default_dtype,
)
from oneflow_lite.dtype import (
    uint8 as uint8,
)
from oneflow_lite.extend import register_op as register_op
from oneflow_lite.functors.activation import (
    celu as celu,
)
from oneflow_lite.functors.activation import (
    selu as selu,
)
from oneflow_lite.functors.activation_piecewise import (
    hardshrink as hardshrink,
)
from oneflow_lite.functors.activation_piecewise import (
    relu as relu,
)
from oneflow_lite.functors.activation_piecewise import (
    threshold as threshold,
)
from oneflow_lite.functors.adaptive_pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
)
from oneflow_lite.functors.adaptive_pooling import (
    adaptive_max_pool1d as adaptive_max_pool1d,
)
from oneflow_lite.functors.arithmetic import (
    abs as abs,
)
from oneflow_lite.functors.arithmetic import (
    add as add,
)
from oneflow_lite.functors.arithmetic import (
    addcdiv as addcdiv,
)
from oneflow_lite.functors.arithmetic import (
    addcmul as addcmul,
)
from oneflow_lite.functors.arithmetic import (
    angle as angle,
)
from oneflow_lite.functors.arithmetic import (
    ceil as ceil,
)
from oneflow_lite.functors.arithmetic import (
    clamp as clamp,
)
from oneflow_lite.functors.arithmetic import (
    clamp_max as clamp_max,
)
from oneflow_lite.functors.arithmetic import (
    clamp_min as clamp_min,
)
from oneflow_lite.functors.arithmetic import (
    complex as complex,
)
from oneflow_lite.functors.arithmetic import (
    conj as conj,
)
from oneflow_lite.functors.arithmetic import (
    div as div,
)
from oneflow_lite.functors.arithmetic import (
    floor as floor,
)
from oneflow_lite.functors.arithmetic import (
    floor_divide as floor_divide,
)
from oneflow_lite.functors.arithmetic import (
    fmod as fmod,
)
from oneflow_lite.functors.arithmetic import (
    frac as frac,
)
from oneflow_lite.functors.arithmetic import (
    lerp as lerp,
)
from oneflow_lite.functors.arithmetic import (
    maximum as maximum,
)
from oneflow_lite.functors.arithmetic import (
    minimum as minimum,
)
from oneflow_lite.functors.arithmetic import (
    mul as mul,
)
from oneflow_lite.functors.arithmetic import (
    nan_to_num as nan_to_num,
)
from oneflow_lite.functors.arithmetic import (
    neg as neg,
)
from oneflow_lite.functors.arithmetic import (
    positive as positive,
)
from oneflow_lite.functors.arithmetic import (
    pow as pow,
)
from oneflow_lite.functors.arithmetic import (
    reciprocal as reciprocal,
)
from oneflow_lite.functors.arithmetic import (
    remainder as remainder,
)
from oneflow_lite.functors.arithmetic import (
    round as round,
)
from oneflow_lite.functors.arithmetic import (
    rsqrt as rsqrt,
)
from oneflow_lite.functors.arithmetic import (
    rsub as rsub,
)
from oneflow_lite.functors.arithmetic import (
    sign as sign,
)
from oneflow_lite.functors.arithmetic import (
    sqrt as sqrt,
)
from oneflow_lite.functors.arithmetic import (
    square as square,
)
from oneflow_lite.functors.arithmetic import (
    sub as sub,
)
from oneflow_lite.functors.arithmetic import (
    trunc as trunc,
)
from oneflow_lite.functors.arithmetic import (
    where as where,
)
from oneflow_lite.functors.comparison import (
    allclose as allclose,
)
from oneflow_lite.functors.comparison import (
    eq as eq,
)
from oneflow_lite.functors.comparison import (
    equal as equal,
)
from oneflow_lite.functors.comparison import (
    ge as ge,
)
from oneflow_lite.functors.comparison import (
    gt as gt,
)
from oneflow_lite.functors.comparison import (
    isclose as isclose,
)
from oneflow_lite.functors.comparison import (
    isfinite as isfinite,
)
from oneflow_lite.functors.comparison import (
    isinf as isinf,
)
from oneflow_lite.functors.comparison import (
    isnan as isnan,
)
from oneflow_lite.functors.comparison import (
    le as le,
)
from oneflow_lite.functors.comparison import (
    lt as lt,
)
from oneflow_lite.functors.comparison import (
    ne as ne,
)
from oneflow_lite.functors.conv import (
    conv1d as conv1d,
)
from oneflow_lite.functors.conv import (
    conv2d as conv2d,
)
from oneflow_lite.functors.creation import (
    arange as arange,
)
from oneflow_lite.functors.creation import (
    as_tensor as as_tensor,
)
from oneflow_lite.functors.creation import (
    empty as empty,
)
from oneflow_lite.functors.creation import (
    empty_like as empty_like,
)
from oneflow_lite.functors.creation import (
    eye as eye,
)
from oneflow_lite.functors.creation import (
    from_dlpack as from_dlpack,
)
from oneflow_lite.functors.creation import (
    from_numpy as from_numpy,
)
from oneflow_lite.functors.creation import (
    full as full,
)
from oneflow_lite.functors.creation import (
    full_like as full_like,
)
from oneflow_lite.functors.creation import (
    linspace as linspace,
)
from oneflow_lite.functors.creation import (
    ones as ones,
)
from oneflow_lite.functors.creation import (
    ones_like as ones_like,
)
from oneflow_lite.functors.creation import (
    tensor as tensor,
)
from oneflow_lite.functors.creation import (
    zeros as zeros,
)
from oneflow_lite.functors.creation import (
    zeros_like as zeros_like,
)
from oneflow_lite.functors.diagonals import (
    diag as diag,
)
from oneflow_lite.functors.diagonals import (
    diag_embed as diag_embed,
)
from oneflow_lite.functors.diagonals import (
    diagonal as diagonal,
)
from oneflow_lite.functors.diagonals import (
    trace as trace,
)
from oneflow_lite.functors.diagonals import (
    tril as tril,
)
from oneflow_lite.functors.diagonals import (
    triu as triu,
)
from oneflow_lite.functors.dropout import (
    dropout as dropout,
)
from oneflow_lite.functors.einsum import (
    einsum as einsum,
)
from oneflow_lite.functors.einsum import (
    tensordot as tensordot,
)
from oneflow_lite.functors.embedding import (
    embedding as embedding,
)
from oneflow_lite.functors.extrema import (
    amax as amax,
)
from oneflow_lite.functors.extrema import (
    amin as amin,
)
from oneflow_lite.functors.extrema import (
    argmax as argmax,
)
from oneflow_lite.functors.extrema import (
    argmin as argmin,
)
from oneflow_lite.functors.extrema import (
    max as max,
)
from oneflow_lite.functors.extrema import (
    min as min,
)
from oneflow_lite.functors.index_select import (
    index_add as index_add,
)
from oneflow_lite.functors.index_select import (
    index_fill as index_fill,
)
from oneflow_lite.functors.index_select import (
    index_select as index_select,
)
from oneflow_lite.functors.indexing import (
    narrow as narrow,
)
from oneflow_lite.functors.indexing import (
    select as select,
)
from oneflow_lite.functors.inplace import (
    fill_ as fill_,
)
from oneflow_lite.functors.inplace import (
    zero_ as zero_,
)
from oneflow_lite.functors.joining import (
    cat as cat,
)
from oneflow_lite.functors.joining import (
    column_stack as column_stack,
)
from oneflow_lite.functors.joining import (
    concat as concat,
)
from oneflow_lite.functors.joining import (
    concatenate as concatenate,
)
from oneflow_lite.functors.joining import (
    dstack as dstack,
)
from oneflow_lite.functors.joining import (
    hstack as hstack,
)
from oneflow_lite.functors.joining import (
    meshgrid as meshgrid,
)
from oneflow_lite.functors.joining import (
    stack as stack,
)
from oneflow_lite.functors.joining import (
    vstack as vstack,
)
from oneflow_lite.functors.logic import (
    bitwise_and as bitwise_and,
)
from oneflow_lite.functors.logic import (
    bitwise_not as bitwise_not,
)
from oneflow_lite.functors.logic import (
    bitwise_or as bitwise_or,
)
from oneflow_lite.functors.logic import (
    bitwise_xor as bitwise_xor,
)
from oneflow_lite.functors.logic import (
    logical_and as logical_and,
)
from oneflow_lite.functors.logic import (
    logical_not as logical_not,
)
from oneflow_lite.functors.logic import (
    logical_or as logical_or,
)
from oneflow_lite.functors.logic import (
    logical_xor as logical_xor,
)
from oneflow_lite.functors.masking import (
    masked_fill as masked_fill,
)
from oneflow_lite.functors.masking import (
    masked_scatter as masked_scatter,
)
from oneflow_lite.functors.masking import (
    masked_select as masked_select,
)
from oneflow_lite.functors.masking import (
    nonzero as nonzero,
)
from oneflow_lite.functors.matmul import (
    addmm as addmm,
)
from oneflow_lite.functors.matmul import (
    addmv as addmv,
)
from oneflow_lite.functors.matmul import (
    baddbmm as baddbmm,
)
from oneflow_lite.functors.matmul import (
    bmm as bmm,
)
from oneflow_lite.functors.matmul import (
    dot as dot,
)
from oneflow_lite.functors.matmul import (
    matmul as matmul,
)
from oneflow_lite.functors.matmul import (
    mm as mm,
)
from oneflow_lite.functors.matmul import (
    mv as mv,
)
from oneflow_lite.functors.matmul import (
    outer as outer,
)
from oneflow_lite.functors.normalization import (
    batch_norm as batch_norm,
)
from oneflow_lite.functors.normalization import (
    group_norm as group_norm,
)
from oneflow_lite.functors.normalization import (
    instance_norm as instance_norm,
)
from oneflow_lite.functors.normalization import (
    layer_norm as layer_norm,
)
from oneflow_lite.functors.normalization import (
    rms_norm as rms_norm,
)
from oneflow_lite.functors.pooling import (
    avg_pool1d as avg_pool1d,
)
from oneflow_lite.functors.pooling import (
    max_pool1d as max_pool1d,
)
from oneflow_lite.functors.pooling import (
    max_pool2d as max_pool2d,
)
from oneflow_lite.functors.random import (
    Generator as Generator,
)
from oneflow_lite.functors.random import (
    bernoulli as bernoulli,
)
from oneflow_lite.functors.random import (
    default_generator as default_generator,
)
from oneflow_lite.functors.random import (
    get_rng_state as get_rng_state,
)
from oneflow_lite.functors.random import (
    initial_seed as initial_seed,
)
from oneflow_lite.functors.random import (
    manual_seed as manual_seed,
)
from oneflow_lite.functors.random import (
    rand as rand,
)
from oneflow_lite.functors.random import (
    rand_like as rand_like,
)
from oneflow_lite.functors.random import (
    randint as randint,
)
from oneflow_lite.functors.random import (
    randn as randn,
)
from oneflow_lite.functors.random import (
    randn_like as randn_like,
)
from oneflow_lite.functors.random import (
    randperm as randperm,
)
from oneflow_lite.functors.random import (
    seed as seed,
)
from oneflow_lite.functors.random import (
    set_rng_state as set_rng_state,
)
from oneflow_lite.functors.rearranging import (
    flip as flip,
)
from oneflow_lite.functors.rearranging import (
    roll as roll,
)
from oneflow_lite.functors.rearranging import (
    tile as tile,
)
from oneflow_lite.functors.reduce import (
    all as all,
)
from oneflow_lite.functors.reduce import (
    any as any,
)
from oneflow_lite.functors.reduce import (
    count_nonzero as count_nonzero,
)
from oneflow_lite.functors.reduce import (
    logsumexp as logsumexp,
)
from oneflow_lite.functors.reduce import (
    mean as mean,
)
from oneflow_lite.functors.reduce import (
    prod as prod,
)
from oneflow_lite.functors.reduce import (
    sum as sum,
)
from oneflow_lite.functors.scan import (
    cumprod as cumprod,
)
from oneflow_lite.functors.scan import (
    cumsum as cumsum,
)
from oneflow_lite.functors.scatter import (
    gather as gather,
)
from oneflow_lite.functors.scatter import (
    scatter as scatter,
)
from oneflow_lite.functors.scatter import (
    scatter_add as scatter_add,
)
from oneflow_lite.functors.scatter import (
    take as take,
)
from oneflow_lite.functors.scatter import (
    take_along_dim as take_along_dim,
)
from oneflow_lite.functors.shape import (
    broadcast_to as broadcast_to,
)
from oneflow_lite.functors.shape import (
    clone as clone,
)
from oneflow_lite.functors.shape import (
    flatten as flatten,
)
from oneflow_lite.functors.shape import (
    imag as imag,
)
from oneflow_lite.functors.shape import (
    movedim as movedim,
)
from oneflow_lite.functors.shape import (
    permute as permute,
)
from oneflow_lite.functors.shape import (
    ravel as ravel,
)
from oneflow_lite.functors.shape import (
    real as real,
)
from oneflow_lite.functors.shape import (
    reshape as reshape,
)
from oneflow_lite.functors.shape import (
    squeeze as squeeze,
)
from oneflow_lite.functors.shape import (
    t as t,
)
from oneflow_lite.functors.shape import (
    transpose as transpose,
)
from oneflow_lite.functors.shape import (
    unflatten as unflatten,
)
from oneflow_lite.functors.shape import (
    unsqueeze as unsqueeze,
)
from oneflow_lite.functors.similarity import (
    cosine_similarity as cosine_similarity,
)
from oneflow_lite.functors.softmax import (
    log_softmax as log_softmax,
)
from oneflow_lite.functors.softmax import (
    softmax as softmax,
)
from oneflow_lite.functors.sorting import (
    argsort as argsort,
)
from oneflow_lite.functors.sorting import (
    sort as sort,
)
from oneflow_lite.functors.sorting import (
    topk as topk,
)
from oneflow_lite.functors.splitting import (
    chunk as chunk,
)
from oneflow_lite.functors.splitting import (
    split as split,
)
from oneflow_lite.functors.splitting import (
    unbind as unbind,
)
from oneflow_lite.functors.statistics import (
    norm as norm,
)
from oneflow_lite.functors.statistics import (
    std as std,
)
from oneflow_lite.functors.statistics import (
    std_mean as std_mean,
)
from oneflow_lite.functors.statistics import (
    var as var,
)
from oneflow_lite.functors.statistics import (
    var_mean as var_mean,
)
from oneflow_lite.functors.transcendental import (
    erf as erf,
)
from oneflow_lite.functors.transcendental import (
    erfc as erfc,
)
from oneflow_lite.functors.transcendental import (
    exp as exp,
)
from oneflow_lite.functors.transcendental import (
    exp2 as exp2,
)
from oneflow_lite.functors.transcendental import (
    expm1 as expm1,
)
from oneflow_lite.functors.transcendental import (
    log as log,
)
from oneflow_lite.functors.transcendental import (
    log1p as log1p,
)
from oneflow_lite.functors.transcendental import (
    log2 as log2,
)
from oneflow_lite.functors.transcendental import (
    log10 as log10,
)
from oneflow_lite.functors.transcendental import (
    logaddexp as logaddexp,
)
from oneflow_lite.functors.transcendental import (
    sigmoid as sigmoid,
)
from oneflow_lite.functors.transcendental import (
    tanh as tanh,
)
from oneflow_lite.functors.transcendental import (
    xlogy as xlogy,
)
from oneflow_lite.functors.trigonometric import (
    acos as acos,
)
from oneflow_lite.functors.trigonometric import (
    acosh as acosh,
)
from oneflow_lite.functors.trigonometric import (
    asin as asin,
)
from oneflow_lite.functors.trigonometric import (
    asinh as asinh,
)
from oneflow_lite.functors.trigonometric import (
    atan as atan,
)
from oneflow_lite.functors.trigonometric import (
    atan2 as atan2,
)
from oneflow_lite.functors.trigonometric import (
    atanh as atanh,
)
from oneflow_lite.functors.trigonometric import (
    cos as cos,
)
from oneflow_lite.functors.trigonometric import (
    cosh as cosh,
)
from oneflow_lite.functors.trigonometric import (
    hypot as hypot,
)
from oneflow_lite.functors.trigonometric import (
    sin as sin,
)
from oneflow_lite.functors.trigonometric import (
    sinc as sinc,
)
from oneflow_lite.functors.trigonometric import (
    sinh as sinh,
)
from oneflow_lite.functors.trigonometric import (
    tan as tan,
)
from oneflow_lite.interpreter import (
    AutogradInterpreter as AutogradInterpreter,
)
from oneflow_lite.interpreter import (
    EagerInterpreter as EagerInterpreter,
)
from oneflow_lite.interpreter import (
    Interpreter as Interpreter,
)
from oneflow_lite.interpreter import (
    current_interpreter as current_interpreter,
)
from oneflow_lite.interpreter import (
    push_interpreter as push_interpreter,
)
from oneflow_lite.registry import (
    register_functor as register_functor,
)
from oneflow_lite.registry import (
    register_kernel as register_kernel,
)
from oneflow_lite.serialization import load as load
from oneflow_lite.serialization import save as save
from oneflow_lite.tensor import Tensor as Tensor

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

cuda = make_cuda_module()

__version__ = "0.1.0"
